/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of operands, and what ranks hold of an element that is partial. All are functions of numbers, so that every
 * rank makes its own part and nothing is sent. */
#ifndef OPS_ELEMENTS_H
#define OPS_ELEMENTS_H

#include "placements/layout.h"

typedef enum value_kind {
    VALUES_EXACT,                      /* halves between -3 and 3, ties among them: their sums and small products are
                                          the same in any order                                                    */
    VALUES_ROUGH,                      /* any between -1 and 1: sums are rounded                                    */
    VALUES_SPECIAL,                    /* as EXACT, with infinities and NaN                                         */
    VALUE_KINDS
} value_kind;

typedef struct value_range { bool given; double low, high; } value_range; /* not given: as the kind says            */

/* An element of a dtype; *seed* tells elements apart. */
double value_draw(value_kind kind, dt_dtype dtype, value_range range, uint64_t seed);

enum { VALUE_PAD = 10 };               /* up to 6 ranks                                                            */

typedef struct value_split {           /* how ranks hold a partial element                                          */
    dti_partial kind;                  /* DTI_SUM where sum and avg mix                                             */
    int count, averaged;               /* contributions; how many of them are averaged: the product of those dims   */
    dt_dtype dtype;
    bool exact;                        /* contributions may be other than the value and nothing                     */
} value_split;

/* Can contributions be found whose combination is the value, bit for bit? */
bool value_splits(const value_split *split);
/* Contribution i of a value. What is summed or averaged is at most VALUE_PAD larger in all than the value. */
double value_part(const value_split *split, double value, int i, uint64_t seed);

#endif
