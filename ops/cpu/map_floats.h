/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of floats at one element, and their loops. Part of a file that has defined *number*, *magnitude* and *root*
 * before. */
#include "ops/cpu/map.h"

DTI_INLINE number value(dti_map map, number x, number y, number z, number a, number b)
{
    switch (map) {
    case DTI_MAP_ADD: return x + y;
    case DTI_MAP_SUB: return x - y;
    case DTI_MAP_MUL: return x * y;
    case DTI_MAP_NEG: return -x;
    case DTI_MAP_ABS: return magnitude(x);
    case DTI_MAP_RELU: return x > 0 ? x : x != x ? x : 0;
    case DTI_MAP_ADD_NUMBER: return x + a;
    case DTI_MAP_SUB_NUMBER: return x - a;
    case DTI_MAP_MUL_NUMBER: return x * a;
    case DTI_MAP_AXPBY: return a * x + b * y;
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
    case DTI_MAP_DIV: return x / y;
    case DTI_MAP_DIV_NUMBER: return x / a;
    case DTI_MAP_SQRT: return root(x);
    default: return x;
    }
}

DTI_INLINE void of_run(const dti_map_run *run, number *a, number *b)
{
    *a = (number)run->a;
    *b = (number)run->b;
}

#include "ops/cpu/map_loops.h"
