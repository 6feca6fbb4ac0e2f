/* SPDX-License-Identifier: Apache-2.0
 *
 * Pulls through index maps: slice, pad, cat, split, roll, flip and stack along sharded dims, and their gradients. The
 * target is made of parts; in a part, element j of the target comes from element shift + j, or shift - j, of a source,
 * dim by dim, or every so-manieth. What no part covers is filled. Sources and target lie on one mesh, each cut as its
 * own spec says.
 *
 *   slice x[2:9]     one part    { 0, 7, .shift = 2 }
 *   pad by 3         one part    { 3, 3 + n, .shift = -3 }
 *   cat(x, y)        two parts   { 0, n, 0 } of x, { n, n + m, .shift = -n } of y
 *   roll by k        two parts   { k, n, .shift = -k }, { 0, k, .shift = n - k } of x
 *   flip             one part    { 0, n, .shift = n - 1, .reversed = true }
 *   slice x[2:9:3]   one part    { 0, 3, .shift = 2, .stride = 3 }
 */
#ifndef DTI_MAP_H
#define DTI_MAP_H

#include "redistribute/plan.h"

typedef struct dti_part {
    const dt_spec *source;
    dti_map maps[DT_MAX_DIMS];     /* per dim of the target; source_size is filled in                              */
} dti_part;

/* The plan of a target made of n parts; made once, and kept by the context.
 * DT_ERR_SHAPE: dims that do not match, a map out of range, parts that overlap; DT_ERR_DTYPE: other dtypes;
 * DT_ERR_PLACEMENT: another mesh, or P that is not the same in source and target. Local. */
const dt_plan *dti_plan_mapped(const dt_spec *target, const dti_part *parts, int n);

#endif
