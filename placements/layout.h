/* SPDX-License-Identifier: Apache-2.0
 *
 * Where elements lie, with every name taken away: the tensor as one row-major list of factors, each cut by an ordered
 * list of axes over ranks, and the axes along which values are partial. In normal form and interned: layouts that say
 * the same are one pointer, whatever mesh, view, shape or spelling they came from. */
#ifndef DTI_LAYOUT_H
#define DTI_LAYOUT_H

#include <dtensor/spec.h>

#include "mesh/mesh.h"
#include "placements/set.h"

typedef enum dti_partial {
    DTI_PARTIAL_NONE = 0, DTI_SUM, DTI_AVG, DTI_MAX, DTI_MIN, DTI_PROD, DTI_PARTIAL_COUNT
} dti_partial;

/* Text of a kind, "sum"; NULL ends the list of kinds at DTI_PARTIAL_COUNT. */
extern const char *const dti_partial_names[DTI_PARTIAL_COUNT + 1];

/* Do two kinds mix in one spec, and convert into each other? sum and avg do, each kind does with itself. */
static inline bool dti_partial_mixes(dti_partial a, dti_partial b)
{
    return a == b || (a <= DTI_AVG && b <= DTI_AVG);
}

typedef struct dti_layout_factor {
    int64_t size, pieces;          /* pieces: product of the axes' sizes                                           */
    int axis_first, axis_count;    /* in axes, outermost cut first                                                 */
} dti_layout_factor;

typedef struct dti_layout {
    uint64_t hash;
    dt_dtype dtype;
    int base;                      /* world rank at coordinates 0                                                  */
    int ranks;                     /* how many ranks there are: the product of the members' sizes                  */
    int member_count, factor_count, axis_count, partial_count;
    const dti_layout_factor *factors;
    const dti_axis *members;       /* all ranks, largest stride first, touching ones merged                        */
    const dti_axis *axes;
    const dti_axis *partials;      /* largest stride first                                                         */
    const dti_partial *kinds;      /* by partial                                                                   */
} dti_layout;

/* Is a world rank among the layout's? */
bool dti_layout_has(const dti_layout *layout, int world_rank);
/* World rank of the layout's rank number i, in ascending order. */
int dti_layout_rank(const dti_layout *layout, int i);
/* Have two layouts the same ranks? */
bool dti_layout_same_ranks(const dti_layout *a, const dti_layout *b);

#endif
