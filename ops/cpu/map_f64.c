/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise functions in f64. */
#include <math.h>

#include "ops/cpu/map.h"

DTI_INLINE double value(dti_map map, double x, double y, double z, double a, double b)
{
    switch (map) {
    case DTI_MAP_ADD: return x + y;
    case DTI_MAP_SUB: return x - y;
    case DTI_MAP_MUL: return x * y;
    case DTI_MAP_NEG: return -x;
    case DTI_MAP_ABS: return fabs(x);
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
    case DTI_MAP_SQRT: return sqrt(x);
    default: return x;
    }
}

DTI_INLINE void loop(dti_map map, const dti_map_run *run)
{
    double *restrict out = run->out, a = (double)run->a, b = (double)run->b;
    const double *x = run->in[0], *y = run->in[1], *z = run->in[2];
    for (size_t i = 0; i < run->blocks * DTI_LANES; i++) out[i] = value(map, x[i], y[i], z[i], a, b);
}

DTI_CLONES void dti_map_f64(const dti_map_run *run)
{
    switch (run->map) {
    case DTI_MAP_ADD: loop(DTI_MAP_ADD, run); break;
    case DTI_MAP_SUB: loop(DTI_MAP_SUB, run); break;
    case DTI_MAP_MUL: loop(DTI_MAP_MUL, run); break;
    case DTI_MAP_NEG: loop(DTI_MAP_NEG, run); break;
    case DTI_MAP_ABS: loop(DTI_MAP_ABS, run); break;
    case DTI_MAP_RELU: loop(DTI_MAP_RELU, run); break;
    case DTI_MAP_ADD_NUMBER: loop(DTI_MAP_ADD_NUMBER, run); break;
    case DTI_MAP_SUB_NUMBER: loop(DTI_MAP_SUB_NUMBER, run); break;
    case DTI_MAP_MUL_NUMBER: loop(DTI_MAP_MUL_NUMBER, run); break;
    case DTI_MAP_AXPBY: loop(DTI_MAP_AXPBY, run); break;
    case DTI_MAP_CLAMP: loop(DTI_MAP_CLAMP, run); break;
    case DTI_MAP_WHERE: loop(DTI_MAP_WHERE, run); break;
    case DTI_MAP_FILL: loop(DTI_MAP_FILL, run); break;
    case DTI_MAP_NOT: loop(DTI_MAP_NOT, run); break;
    case DTI_MAP_EQ: loop(DTI_MAP_EQ, run); break;
    case DTI_MAP_NE: loop(DTI_MAP_NE, run); break;
    case DTI_MAP_LT: loop(DTI_MAP_LT, run); break;
    case DTI_MAP_LE: loop(DTI_MAP_LE, run); break;
    case DTI_MAP_GT: loop(DTI_MAP_GT, run); break;
    case DTI_MAP_GE: loop(DTI_MAP_GE, run); break;
    case DTI_MAP_DIV: loop(DTI_MAP_DIV, run); break;
    case DTI_MAP_DIV_NUMBER: loop(DTI_MAP_DIV_NUMBER, run); break;
    case DTI_MAP_SQRT: loop(DTI_MAP_SQRT, run); break;
    default: break;
    }
}
