/* SPDX-License-Identifier: Apache-2.0
 *
 * Legality by numbers: ops written as plain loops over small tensors, on two ranks. It knows what S, R and P(kind) mean
 * and what an op computes; of rules it knows nothing. */
#ifndef ORACLE_H
#define ORACLE_H

#include "bound.h"
#include "ops/partial.h"

enum { ORACLE_DIMS = 3, ORACLE_ELEMENTS = 64, ORACLE_RANKS = 2 };

typedef struct oracle_op {
    bound_call call;                   /* the row under test and its shapes                                        */
    const char *letters;               /* what the loops run over                                                  */
    int64_t size[4];                   /* of letters                                                               */
    const char *operand[3];            /* letters of an operand's dims; '.': a dim of 1; NULL: the end             */
    const char *result;
    dti_partial reduce;                /* how inside is combined over letters that the result lacks                */
    double (*inside)(const double *value, const int64_t *index); /* one element per operand, index of each letter  */
    double (*outside)(const double *value); /* added once per element of the result; NULL: nothing                 */
    double number;                     /* added once per element                                                   */
    bool divide;                       /* by the global number of elements that are reduced                        */
    bool choice;                       /* operand 0 holds 0 and 1                                                  */
    bool index;                        /* operand 1 holds indices, 0 .. 2                                          */
} oracle_op;

/* Do the places of operands, with lift, rescale and lift_number, and fresh, give the results that the strategy says,
 * for a few draws of values? */
bool oracle_holds(const oracle_op *op, const bound_parts *parts, const dti_strategy *strategy);

#endif
