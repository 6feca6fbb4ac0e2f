/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows whose result has, at each place, a function of the operands there: which function it is. One kernel runs them
 * all, and finds it behind the row. */
#ifndef DTI_OPS_MAP_H
#define DTI_OPS_MAP_H

#include "ops/attributes.h"

/* Of x, y, z: the elements of the operands; of a, b: the attributes' numbers. */
typedef enum dti_map {
    DTI_MAP_ADD, DTI_MAP_SUB, DTI_MAP_MUL, DTI_MAP_NEG, DTI_MAP_ABS, DTI_MAP_RELU, DTI_MAP_ADD_NUMBER,
    DTI_MAP_SUB_NUMBER, DTI_MAP_MUL_NUMBER, DTI_MAP_AXPBY, DTI_MAP_CLAMP, DTI_MAP_WHERE, DTI_MAP_FILL,
    DTI_MAP_NOT, DTI_MAP_EQ, DTI_MAP_NE, DTI_MAP_LT, DTI_MAP_LE, DTI_MAP_GT, DTI_MAP_GE,
    DTI_MAP_INTEGERS,              /* from here on floats alone                                                    */
    DTI_MAP_DIV = DTI_MAP_INTEGERS, DTI_MAP_DIV_NUMBER, DTI_MAP_SQRT,
    DTI_MAP_WIDE,                  /* from here on in f64, whatever the dtype                                      */
    DTI_MAP_POW = DTI_MAP_WIDE, DTI_MAP_POW_NUMBER, DTI_MAP_EXP, DTI_MAP_LOG, DTI_MAP_RSQRT, DTI_MAP_SIN, DTI_MAP_COS,
    DTI_MAP_TANH, DTI_MAP_SIGMOID, DTI_MAP_GELU, DTI_MAP_GELU_TANH, DTI_MAP_SILU, DTI_MAP_SWIGLU,
    DTI_MAP_GELU_SLOPE, DTI_MAP_GELU_TANH_SLOPE, DTI_MAP_SILU_SLOPE /* x times the derivative at y                */
} dti_map;

typedef struct dti_map_row {
    dt_op op;                      /* first: dti_cpu_map is given its address                                      */
    dti_map map;
    int of;                        /* the operand in whose dtype it is computed                                    */
    bool numbers;                  /* its attributes are dti_map_numbers                                           */
    bool once;                     /* the number is added, so by one rank alone where the result is a sum          */
} dti_map_row;

#endif
