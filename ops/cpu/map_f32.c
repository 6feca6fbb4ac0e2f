/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise functions in f32. */
#include <math.h>

#include "ops/cpu/vector.h"

typedef float number;

DTI_INLINE number magnitude(number x) { return fabsf(x); }
DTI_INLINE number root(number x) { return sqrtf(x); }

#include "ops/cpu/map_floats.h"

DTI_CLONES void dti_map_f32(const dti_map_run *run) { all_loops(run); }
