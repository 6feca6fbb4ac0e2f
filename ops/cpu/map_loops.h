/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of one dtype, one for each function, so that each is compiled by itself. Part of a file that has defined
 * before: *number*, the type; *value* of a function at one element; *of_run*, the two numbers of a run. */
#include "ops/cpu/map.h"

DTI_INLINE void loop(dti_map map, const dti_map_run *run)
{
    number *restrict out = run->out, a, b;
    const number *x = run->in[0], *y = run->in[1], *z = run->in[2];
    of_run(run, &a, &b);
    for (size_t i = 0; i < run->blocks * DTI_LANES; i++) out[i] = value(map, x[i], y[i], z[i], a, b);
}

DTI_INLINE void all_loops(const dti_map_run *run)
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
