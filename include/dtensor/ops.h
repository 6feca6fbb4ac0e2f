/* SPDX-License-Identifier: Apache-2.0
 *
 * One declaration per row of the op table. dt_<op>(operands, attributes); a number instead of the last operand:
 * dt_<op>_scalar; an optional operand: NULL; more than three attributes: dt_<op>_params. A result is always a new
 * tensor. */
#ifndef DTENSOR_OPS_H
#define DTENSOR_OPS_H

#include <dtensor/autograd.h>
#include <dtensor/op.h>

DT_BEGIN_DECLS

typedef enum dt_reduction { DT_REDUCTION_MEAN = 0, DT_REDUCTION_SUM, DT_REDUCTION_NONE } dt_reduction;
typedef struct dt_attention_params {
    bool causal;
    double scale;                                                    /* 0: 1/sqrt(d)                               */
    dt_tensor *mask;                                                 /* added to the scores; NULL: none            */
} dt_attention_params;

typedef struct dt_cross_entropy_params {                              /* a negative target is ignored               */
    dt_reduction reduction;
    double label_smoothing;
    dt_tensor *class_weights;
} dt_cross_entropy_params;

/* ---- element by element ------------------------------------------------------------------------------------------ *
 * Operands are of one dtype and broadcast: aligned at the last dim, sizes are equal or one of them is 1. bf16 and f16
 * are computed in f32 or wider and rounded once; integers wrap; of bools the sum is or, the product and. A number is
 * taken in that wider dtype; for integers it is a whole one. NULL and DT_ERR_SHAPE: shapes that do not broadcast;
 * DT_ERR_DTYPE: dtypes that differ, or that the op has no meaning for; DT_ERR_ARG: a number with a fraction for
 * integers. Collective.                                                                                               */

DT_API dt_tensor *dt_add(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_sub(dt_tensor *x, dt_tensor *y);                /* not of bools                               */
DT_API dt_tensor *dt_mul(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_div(dt_tensor *x, dt_tensor *y);                /* floats                                     */
DT_API dt_tensor *dt_pow(dt_tensor *x, dt_tensor *y);                /* floats                                     */
DT_API dt_tensor *dt_add_scalar(dt_tensor *x, double value);
DT_API dt_tensor *dt_sub_scalar(dt_tensor *x, double value);         /* not of bools                               */
DT_API dt_tensor *dt_mul_scalar(dt_tensor *x, double value);
DT_API dt_tensor *dt_div_scalar(dt_tensor *x, double value);         /* floats                                     */
DT_API dt_tensor *dt_pow_scalar(dt_tensor *x, double value);         /* floats                                     */
/* -x and |x|; not of bools. */
DT_API dt_tensor *dt_neg(dt_tensor *x);
DT_API dt_tensor *dt_abs(dt_tensor *x);
/* Floats: as in <math.h>, a NaN where there is no value; dt_rsqrt is 1 / sqrt(x). */
DT_API dt_tensor *dt_exp(dt_tensor *x);
DT_API dt_tensor *dt_log(dt_tensor *x);
DT_API dt_tensor *dt_sqrt(dt_tensor *x);
DT_API dt_tensor *dt_rsqrt(dt_tensor *x);
DT_API dt_tensor *dt_sin(dt_tensor *x);
DT_API dt_tensor *dt_cos(dt_tensor *x);
DT_API dt_tensor *dt_tanh(dt_tensor *x);
/* Activations, floats but for relu. Of a NaN they are NaN. */
DT_API dt_tensor *dt_sigmoid(dt_tensor *x);                          /* 1 / (1 + exp(-x))                          */
DT_API dt_tensor *dt_relu(dt_tensor *x);                             /* x where positive, else 0                   */
DT_API dt_tensor *dt_gelu(dt_tensor *x);                             /* x times the normal distribution up to x    */
DT_API dt_tensor *dt_gelu_tanh(dt_tensor *x);                        /* its approximation with tanh                */
DT_API dt_tensor *dt_silu(dt_tensor *x);                             /* x sigmoid(x)                               */
DT_API dt_tensor *dt_swiglu(dt_tensor *gate, dt_tensor *up);         /* silu(gate) up                              */
/* Comparisons, of any dtype, to bool. No comparison with a NaN holds but dt_ne. */
DT_API dt_tensor *dt_eq(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_ne(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_lt(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_le(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_gt(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_ge(dt_tensor *x, dt_tensor *y);
/* Of bools. */
DT_API dt_tensor *dt_logical_and(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_logical_or(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_logical_xor(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_logical_not(dt_tensor *x);
/* x where c, a bool, is true, y elsewhere. */
DT_API dt_tensor *dt_where(dt_tensor *c, dt_tensor *x, dt_tensor *y);
/* x, but at least min and at most max: infinities for one of them; max where they cross. A NaN stays one. */
DT_API dt_tensor *dt_clamp(dt_tensor *x, double min, double max);
/* x, but the number where mask, a bool, is true. */
DT_API dt_tensor *dt_masked_fill(dt_tensor *x, dt_tensor *mask, double value);
/* x in another dtype: to floats rounded to nearest even, floats to integers truncated and saturated with NaN as 0,
 * integers to integers by their low bits, to bool != 0. DT_ERR_DTYPE: no dtype. A float that is P stays so, each
 * summand rounded by itself, but where the dtype's range is smaller. */
DT_API dt_tensor *dt_cast(dt_tensor *x, dt_dtype dtype);

DT_API dt_tensor *dt_sum(dt_tensor *x, dt_dims dims, bool keep);
DT_API dt_tensor *dt_mean(dt_tensor *x, dt_dims dims, bool keep);
DT_API dt_tensor *dt_matmul(dt_tensor *a, dt_tensor *b);             /* [.. m,k] [.. k,n] -> [.. m,n]              */
DT_API dt_tensor *dt_linear(dt_tensor *x, dt_tensor *w, dt_tensor *bias); /* [.. k] [n,k] [n]? -> [.. n]           */
DT_API dt_tensor *dt_softmax(dt_tensor *x, int dim);
DT_API dt_tensor *dt_rms_norm(dt_tensor *x, dt_tensor *w, double eps); /* over the trailing dims w has              */
DT_API dt_tensor *dt_dropout(dt_tensor *x, double p, uint64_t key);  /* the same mask on every mesh                */
DT_API dt_tensor *dt_embedding(dt_tensor *table, dt_tensor *ids);    /* [v,h] [..] -> [.. h]                       */
DT_API dt_tensor *dt_rope(dt_tensor *x, double base, int64_t offset); /* [b,s,h,d], by global position             */
/* [b,s,h,d] [b,t,g,d] [b,t,g,d]. */
DT_API dt_tensor *dt_attention(dt_tensor *q, dt_tensor *k, dt_tensor *v, const dt_attention_params *params);
DT_API dt_tensor *dt_cross_entropy(dt_tensor *logits, dt_tensor *targets, const dt_cross_entropy_params *params);
DT_API dt_tensor *dt_reshape(dt_tensor *x, dt_shape shape);          /* one size may be -1                         */
DT_API dt_tensor *dt_cat(dt_tensor *const *x, int n, int dim);
/* The in-place write; refused while the tape needs x. */
DT_API dt_status dt_copy_into(dt_tensor *x, dt_tensor *values);

DT_END_DECLS

#endif
