/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for the CPU: each sees this rank's parts and nothing else. The same bits for the same input, whatever lies
 * beside it. */
#ifndef DTI_OPS_CPU_KERNELS_H
#define DTI_OPS_CPU_KERNELS_H

#include "ops/attributes.h"

/* map.c: rows that are a dti_map_row. Sums and products in the sum dtype, smooth functions in f64, rounded once. */
dt_status dti_cpu_map(const dt_call *call);
/* optim.c: w, m, v, g; w, g, and w, v, g by a dti_sgd. All but g are written. In f64 where one is, else in f32. */
dt_status dti_cpu_adamw(const dt_call *call);
dt_status dti_cpu_sgd(const dt_call *call);
dt_status dti_cpu_momentum(const dt_call *call);
/* The operand in the result's dtype. */
dt_status dti_cpu_cast(const dt_call *call);
/* reduce.c: over the dims of a dti_over; a mean is the sum over the count of the whole tensor. */
dt_status dti_cpu_sum(const dt_call *call);
dt_status dti_cpu_mean(const dt_call *call);
dt_status dti_cpu_max(const dt_call *call);
dt_status dti_cpu_min(const dt_call *call);
dt_status dti_cpu_prod(const dt_call *call);
/* squares.c: all of them, in f64. */
dt_status dti_cpu_sum_squares(const dt_call *call);
/* rows.c: reductions that want their dims whole, by a dti_over or a dti_along. */
dt_status dti_cpu_logsumexp(const dt_call *call);
dt_status dti_cpu_var(const dt_call *call);
dt_status dti_cpu_norm(const dt_call *call);
dt_status dti_cpu_argmax(const dt_call *call);
dt_status dti_cpu_argmin(const dt_call *call);
/* Along the dim of a dti_along. */
dt_status dti_cpu_softmax(const dt_call *call);
dt_status dti_cpu_log_softmax(const dt_call *call);
/* Over the trailing dims that w has: x, w; x, w, b?. They keep 1/rms; mean, 1/deviation. */
dt_status dti_cpu_rms_norm(const dt_call *call);
dt_status dti_cpu_layer_norm(const dt_call *call);
/* Over the dims of a dti_over; a number per row, f64: x, shift; x, center?; x, number; x, scale, center?, w?, b?. */
dt_status dti_cpu_exp_sum(const dt_call *call);
dt_status dti_cpu_square_sum(const dt_call *call);
dt_status dti_cpu_exp_less(const dt_call *call);
dt_status dti_cpu_scale_rows(const dt_call *call);
/* Along the dim of a dti_along, by index in the whole tensor: x, number. */
dt_status dti_cpu_first_of(const dt_call *call);
/* cross_entropy.c: x, targets, w?; keeps the log-sum-exp of a row and the weight of its classes. */
dt_status dti_cpu_cross_entropy(const dt_call *call);
/* Its halves, for classes that are split: sums of x, targets, max, w?; what comes of targets, max, sum, parts. */
dt_status dti_cpu_cross_entropy_sums(const dt_call *call);
dt_status dti_cpu_cross_entropy_end(const dt_call *call);
/* x, targets, lse, scale, g, w?. */
dt_status dti_cpu_cross_entropy_grad(const dt_call *call);
/* index.c: numbers count in the whole tensor; what another rank holds gives -0. */
dt_status dti_cpu_embedding(const dt_call *call);
dt_status dti_cpu_index_select(const dt_call *call);
dt_status dti_cpu_gather(const dt_call *call);
dt_status dti_cpu_scatter_add(const dt_call *call);
dt_status dti_cpu_index_add(const dt_call *call);
dt_status dti_cpu_one_hot(const dt_call *call);
/* cumsum.c: x, start?, a number per row. */
dt_status dti_cpu_cumsum(const dt_call *call);
/* order.c: x, numbers?: elements with the number -1 are none. They give elements and numbers, i64. */
dt_status dti_cpu_sort(const dt_call *call);
dt_status dti_cpu_topk(const dt_call *call);
/* random.c: which elements are kept hangs on the key and on their numbers in the whole tensor alone. */
dt_status dti_cpu_dropout(const dt_call *call);
/* rope.c: by the positions of dim 1 in the whole tensor. */
dt_status dti_cpu_rope(const dt_call *call);
/* attention.c: q, k, v, mask?; keeps the log-sum-exp of scores. In the dtype that sums, rounded once. */
dt_status dti_cpu_attention(const dt_call *call);
/* attention_gradient.c: q, k, v, lse, delta, g, mask?; the mask's is the fourth result, where there is one. */
dt_status dti_cpu_attention_grad(const dt_call *call);
/* matmul.c: products of matrices by product.h. a, b with leading dims; x, w, b?; c, a, b. */
dt_status dti_cpu_matmul(const dt_call *call);
dt_status dti_cpu_linear(const dt_call *call);
dt_status dti_cpu_addmm(const dt_call *call);
/* With the last two dims of b, of a, the other way round. */
dt_status dti_cpu_matmul_nt(const dt_call *call);
dt_status dti_cpu_matmul_tn(const dt_call *call);
/* The gradients of linear: g w; the transpose of g, by rows, times x. */
dt_status dti_cpu_linear_input(const dt_call *call);
dt_status dti_cpu_linear_weight(const dt_call *call);
/* einsum.c: sums of products of one operand or two, by the equation of a dti_einsum. */
dt_status dti_cpu_einsum(const dt_call *call);
/* view.c: the operand's elements as they lie; with dims in another order, by a dt_shape or a dti_two_dims; several
 * times, where dims of one element stretch. */
dt_status dti_cpu_copy(const dt_call *call);
dt_status dti_cpu_permute(const dt_call *call);
dt_status dti_cpu_transpose(const dt_call *call);
dt_status dti_cpu_expand(const dt_call *call);
/* move.c: along an index map. */
dt_status dti_cpu_move(const dt_call *call);
/* fill.c: the first of a dti_map_numbers. */
dt_status dti_cpu_fill(const dt_call *call);
/* triangle.c: 0 above, below a diagonal of the last two dims, by position in the whole tensor. */
dt_status dti_cpu_tril(const dt_call *call);
dt_status dti_cpu_triu(const dt_call *call);

#endif
