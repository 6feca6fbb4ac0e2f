/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise functions in i64, to which small integers and bool are widened. Arithmetic is of unsigned
 * numbers, so that it wraps. */
#include <string.h>

#include "ops/cpu/map.h"

typedef int64_t number;

DTI_INLINE number wrapped(uint64_t bits)
{
    number same;
    memcpy(&same, &bits, sizeof same);
    return same;
}

DTI_INLINE number value(dti_map map, number x, number y, number z, number a, number b)
{
    switch (map) {
    case DTI_MAP_ADD: return wrapped((uint64_t)x + (uint64_t)y);
    case DTI_MAP_SUB: return wrapped((uint64_t)x - (uint64_t)y);
    case DTI_MAP_MUL: return wrapped((uint64_t)x * (uint64_t)y);
    case DTI_MAP_NEG: return wrapped(0 - (uint64_t)x);
    case DTI_MAP_ABS: return x < 0 ? wrapped(0 - (uint64_t)x) : x;
    case DTI_MAP_RELU: return x > 0 ? x : 0;
    case DTI_MAP_ADD_NUMBER: return wrapped((uint64_t)x + (uint64_t)a);
    case DTI_MAP_SUB_NUMBER: return wrapped((uint64_t)x - (uint64_t)a);
    case DTI_MAP_MUL_NUMBER: return wrapped((uint64_t)x * (uint64_t)a);
    case DTI_MAP_AXPBY: return wrapped((uint64_t)a * (uint64_t)x + (uint64_t)b * (uint64_t)y);
    case DTI_MAP_CLAMP: return (x < a ? a : x) > b ? b : (x < a ? a : x);
    case DTI_MAP_WHERE: return x != 0 ? y : z;
    case DTI_MAP_FILL: return y != 0 ? a : x;
    case DTI_MAP_NOT: return x == 0;
    case DTI_MAP_EQ: return x == y;
    case DTI_MAP_NE: return x != y;
    case DTI_MAP_LT: return x < y;
    case DTI_MAP_LE: return x <= y;
    case DTI_MAP_GT: return x > y;
    case DTI_MAP_GE: return x >= y;
    default: return x;
    }
}

DTI_INLINE void of_run(const dti_map_run *run, number *a, number *b)
{
    *a = run->a_whole;
    *b = run->b_whole;
}

#include "ops/cpu/map_loops.h"

DTI_CLONES void dti_map_i64(const dti_map_run *run) { all_loops(run); }
