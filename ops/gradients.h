/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of the library's rows, as ops, and the ops that only gradients need. */
#ifndef DTI_OPS_GRADIENTS_H
#define DTI_OPS_GRADIENTS_H

#include <dtensor/ops.h>

#include "ops/attributes.h"

/* ---- element by element (elementwise_gradient.c) ----------------------------------------------------------------- */

dt_status dti_grad_add(dt_gradient *g);
dt_status dti_grad_sub(dt_gradient *g);
dt_status dti_grad_mul(dt_gradient *g);
dt_status dti_grad_div(dt_gradient *g);
dt_status dti_grad_pow(dt_gradient *g);
dt_status dti_grad_same(dt_gradient *g);   /* that of the result                                                   */
dt_status dti_grad_mul_scalar(dt_gradient *g);
dt_status dti_grad_div_scalar(dt_gradient *g);
dt_status dti_grad_pow_scalar(dt_gradient *g);
dt_status dti_grad_neg(dt_gradient *g);
dt_status dti_grad_abs(dt_gradient *g);
dt_status dti_grad_exp(dt_gradient *g);
dt_status dti_grad_log(dt_gradient *g);
dt_status dti_grad_sqrt(dt_gradient *g);
dt_status dti_grad_rsqrt(dt_gradient *g);
dt_status dti_grad_sin(dt_gradient *g);
dt_status dti_grad_cos(dt_gradient *g);
dt_status dti_grad_tanh(dt_gradient *g);
dt_status dti_grad_sigmoid(dt_gradient *g);
dt_status dti_grad_relu(dt_gradient *g);
dt_status dti_grad_gelu(dt_gradient *g);
dt_status dti_grad_gelu_tanh(dt_gradient *g);
dt_status dti_grad_silu(dt_gradient *g);
dt_status dti_grad_swiglu(dt_gradient *g);
dt_status dti_grad_where(dt_gradient *g);
dt_status dti_grad_clamp(dt_gradient *g);
dt_status dti_grad_masked_fill(dt_gradient *g);
dt_status dti_grad_cast(dt_gradient *g);

/* ---- over dims (reduce_gradient.c) ------------------------------------------------------------------------------- */

dt_status dti_grad_sum(dt_gradient *g);
dt_status dti_grad_mean(dt_gradient *g);
dt_status dti_grad_extreme(dt_gradient *g); /* of max and min: shared evenly among ties                            */
dt_status dti_grad_prod(dt_gradient *g);
dt_status dti_grad_logsumexp(dt_gradient *g);
dt_status dti_grad_var(dt_gradient *g);
dt_status dti_grad_norm(dt_gradient *g);

/* ---- softmax, norms, picking (normalize_gradient.c, index_gradient.c) -------------------------------------------- */

dt_status dti_grad_softmax(dt_gradient *g);
dt_status dti_grad_log_softmax(dt_gradient *g);
dt_status dti_grad_rms_norm(dt_gradient *g);
dt_status dti_grad_layer_norm(dt_gradient *g);
dt_status dti_grad_embedding(dt_gradient *g);
dt_status dti_grad_index_select(dt_gradient *g);
dt_status dti_grad_index_add(dt_gradient *g);
dt_status dti_grad_gather(dt_gradient *g);
dt_status dti_grad_scatter_add(dt_gradient *g);

/* ---- running sums, order (order_gradient.c) ---------------------------------------------------------------------- */

dt_status dti_grad_cumsum(dt_gradient *g);
dt_status dti_grad_sort(dt_gradient *g);
dt_status dti_grad_topk(dt_gradient *g);

/* ---- views (view_gradient.c) ------------------------------------------------------------------------------------- */

dt_status dti_grad_view(dt_gradient *g);   /* in the operand's shape                                               */
dt_status dti_grad_permute(dt_gradient *g);
dt_status dti_grad_transpose(dt_gradient *g);

/* ---- along a dim (move_gradient.c) ------------------------------------------------------------------------------- */

dt_status dti_grad_cat(dt_gradient *g);
dt_status dti_grad_stack(dt_gradient *g);
dt_status dti_grad_split(dt_gradient *g);
dt_status dti_grad_slice(dt_gradient *g);
dt_status dti_grad_select(dt_gradient *g);
dt_status dti_grad_roll(dt_gradient *g);
dt_status dti_grad_flip(dt_gradient *g);
dt_status dti_grad_pad(dt_gradient *g);

/* ---- random numbers (random.c) ----------------------------------------------------------------------------------- */

dt_status dti_grad_dropout(dt_gradient *g);

/* ---- positions and attention (attention_gradient.c) -------------------------------------------------------------- */

dt_status dti_grad_rope(dt_gradient *g);
dt_status dti_grad_attention(dt_gradient *g);

/* ---- cross-entropy (cross_entropy.c) ----------------------------------------------------------------------------- */

dt_status dti_grad_cross_entropy(dt_gradient *g);

/* ---- products (matmul_gradient.c) -------------------------------------------------------------------------------- */

dt_status dti_grad_matmul(dt_gradient *g);
dt_status dti_grad_linear(dt_gradient *g);
dt_status dti_grad_addmm(dt_gradient *g);
dt_status dti_grad_einsum(dt_gradient *g); /* in einsum.c                                                          */

/* ---- ops of their own (derivatives.c) ---------------------------------------------------------------------------- */

dt_tensor *dti_gelu_slope(dt_tensor *g, dt_tensor *x); /* g times the derivative at x                               */
dt_tensor *dti_gelu_tanh_slope(dt_tensor *g, dt_tensor *x);
dt_tensor *dti_silu_slope(dt_tensor *g, dt_tensor *x);
dt_tensor *dti_matmul_nt(dt_tensor *a, dt_tensor *b);  /* [.. m,k] [.. n,k] -> [.. m,n]                             */
dt_tensor *dti_matmul_tn(dt_tensor *a, dt_tensor *b);  /* [.. k,m] [.. k,n] -> [.. m,n]                             */
dt_tensor *dti_linear_input(dt_tensor *g, dt_tensor *w);  /* [.. n] [n,k] -> [.. k]                                 */
dt_tensor *dti_linear_weight(dt_tensor *g, dt_tensor *x); /* [.. n] [.. k] -> [n,k]                                 */
/* What comes back to q, k, v and, where it is asked for, the mask: result[0 .. 3], the last in the dtype that sums. in:
 * q, k, v, lse as attention keeps it, delta: the sum of g times its result over d, g, mask. (attention.c) */
dt_status dti_attention_grad(const dti_attention *attributes, dt_tensor *const in[7], bool mask, dt_tensor **result);
/* dt_cumsum, from the end on, or without the element itself (order.c). */
dt_tensor *dti_cumsum_with(dt_tensor *x, dti_cumsum how);
/* Dims of size 1 put in, so that they are these of the result (view.c). */
dt_tensor *dti_unsqueeze(dt_tensor *x, dt_dims dims);
/* A number with the dtype and mesh of x, whole. */
dt_tensor *dti_number_like(dt_tensor *x, double value);

#endif
