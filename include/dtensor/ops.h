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

DT_API dt_tensor *dt_add(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_sub(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_mul(dt_tensor *x, dt_tensor *y);
DT_API dt_tensor *dt_mul_scalar(dt_tensor *x, double value);
DT_API dt_tensor *dt_gelu(dt_tensor *x);
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
