/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows with an index map (dt_index_map), on a dim that is split: their results are pulled, one plan each. */
#ifndef DTI_OPS_PULL_H
#define DTI_OPS_PULL_H

#include "ops/dispatch.h"
#include "redistribute/map.h"

/* Do a row's parts lie within the operands and results of a call? false and DT_ERR_ARG otherwise. */
bool dti_map_check(dt_context *ctx, const dt_index_map *map, const dti_dispatch *d);
/* Is the map's dim split, in an operand as it is used or in a result? Where it is not the kernel copies. */
bool dti_pulls(const dt_index_map *map, const dti_dispatch *d);
/* The plan of a result. NULL and the error: parts that lead out of range, no memory. */
const dt_plan *dti_pull_plan(const dt_index_map *map, const dti_dispatch *d, int result);

#endif
