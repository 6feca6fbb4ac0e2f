/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of the library's rows, as their fronts fill them and their kernels read them. No padding is left
 * unnamed: calls are remembered by these bytes. */
#ifndef DTI_OPS_ATTRIBUTES_H
#define DTI_OPS_ATTRIBUTES_H

#include <dtensor/op.h>

typedef struct dti_map_numbers { double a, b; } dti_map_numbers; /* a value; clamp: min, max                       */

typedef struct dti_adamw { double lr, beta1, beta2, eps, weight_decay, step; } dti_adamw;

typedef struct dti_sgd { double lr, weight_decay, momentum; bool nesterov, zero[7]; } dti_sgd;

typedef struct dti_cast { dt_dtype dtype, from; } dti_cast; /* from: of the operand; 0: not told                   */

typedef struct dti_squares { dt_dtype dtype; int zero; } dti_squares; /* of the sum                                */

typedef struct dti_over {          /* reductions over dims                                                         */
    dt_dims dims;
    bool keep, zero[3];
    int64_t correction;            /* of var: the count is divided by less                                         */
} dti_over;

typedef struct dti_along {         /* what happens along one dim                                                   */
    int dim;
    bool keep, zero[3];
} dti_along;

typedef struct dti_cumsum {        /* along one dim: the sum up to an element, or from it on                       */
    int dim;
    bool reverse, exclusive, zero[2]; /* exclusive: without it                                                     */
} dti_cumsum;

typedef struct dti_sort { int dim; bool descending, zero[3]; } dti_sort;

typedef struct dti_topk { int64_t k; int dim; bool largest, zero[3]; } dti_topk;

typedef struct dti_two_dims { int first, second; } dti_two_dims;

typedef struct dti_unflatten { int dim, zero; dt_shape sizes; } dti_unflatten; /* a dim as these, or in these        */

typedef struct dti_slice { int dim, zero; int64_t start, stop, step; } dti_slice;

typedef struct dti_at { int dim, zero; int64_t index; } dti_at; /* one of a dim, or by how much it is rolled         */

typedef struct dti_pad { int dim, zero; int64_t before, after; double value; } dti_pad;

typedef struct dti_stack { int64_t dim; } dti_stack;

typedef struct dti_triangle { int64_t diagonal; } dti_triangle;

typedef struct dti_one_hot { int64_t size; dt_dtype dtype; int zero; } dti_one_hot;

typedef struct dti_norm { double eps; } dti_norm;

typedef struct dti_cross_entropy { double smoothing; } dti_cross_entropy;

typedef struct dti_einsum { char equation[DT_MAX_TEXT]; } dti_einsum;

typedef struct dti_dropout { double p, low, high; } dti_dropout; /* the key's halves: numbers, which no call is
                                                                    remembered by                                  */

typedef struct dti_rope { double base, offset, turns; } dti_rope; /* turns: 1, or -1 for the gradient              */

typedef struct dti_attention { double scale; bool causal, zero[7]; } dti_attention;

#endif
