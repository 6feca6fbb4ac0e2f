/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise functions in f64. */
#include <math.h>

#include "ops/cpu/vector.h"

typedef double number;

DTI_INLINE number magnitude(number x) { return fabs(x); }
DTI_INLINE number root(number x) { return sqrt(x); }

#include "ops/cpu/map_floats.h"

DTI_CLONES void dti_map_f64(const dti_map_run *run) { all_loops(run); }
