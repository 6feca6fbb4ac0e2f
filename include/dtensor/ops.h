/* SPDX-License-Identifier: Apache-2.0
 *
 * One declaration per row of the op table. dt_<op>(operands, attributes); a number instead of the last operand:
 * dt_<op>_scalar; an optional operand: NULL; more than three attributes: dt_<op>_params. A result is always a new
 * tensor; dt_<op>_into writes its first operands instead. */
#ifndef DTENSOR_OPS_H
#define DTENSOR_OPS_H

#include <dtensor/autograd.h>
#include <dtensor/op.h>

DT_BEGIN_DECLS

typedef enum dt_reduction { DT_REDUCTION_MEAN = 0, DT_REDUCTION_SUM, DT_REDUCTION_NONE } dt_reduction;
typedef struct dt_attention_params {
    bool causal;
    double scale;                                                    /* 0: 1/sqrt(d)                               */
    dt_tensor *mask;                                                 /* [s,t], added to the scores; NULL: none     */
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
 * integers. Collective.                                                                                              */

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

/* ---- over dims --------------------------------------------------------------------------------------------------- *
 * dims: DT_DIMS(-1), DT_ALL. keep: they stay, with size 1. Floats are summed in f64 and rounded once, integers wrap, a
 * sum of bools is their or. NULL and DT_ERR_ARG: a dim out of range, or named twice; DT_ERR_DTYPE: not floats where
 * floats are due. Collective.                                                                                        */

DT_API dt_tensor *dt_sum(dt_tensor *x, dt_dims dims, bool keep);     /* of nothing: 0                              */
DT_API dt_tensor *dt_mean(dt_tensor *x, dt_dims dims, bool keep);    /* floats; of nothing: NaN                    */
DT_API dt_tensor *dt_prod(dt_tensor *x, dt_dims dims, bool keep);    /* of nothing: 1                              */
/* The largest, the smallest; NaN where there is one; -0 is less than 0. Of nothing: the least, the largest number. */
DT_API dt_tensor *dt_max(dt_tensor *x, dt_dims dims, bool keep);
DT_API dt_tensor *dt_min(dt_tensor *x, dt_dims dims, bool keep);
/* Of bools: is one true, are all? */
DT_API dt_tensor *dt_any(dt_tensor *x, dt_dims dims, bool keep);
DT_API dt_tensor *dt_all(dt_tensor *x, dt_dims dims, bool keep);
/* Floats: log of the sum of exp, without overflow between; root of the sum of squares. */
DT_API dt_tensor *dt_logsumexp(dt_tensor *x, dt_dims dims, bool keep);
DT_API dt_tensor *dt_norm(dt_tensor *x, dt_dims dims, bool keep);
/* Floats: squared distances from the mean, summed and divided by their count less the correction, 1 for a sample; NaN
 * where that leaves none. */
DT_API dt_tensor *dt_var(dt_tensor *x, dt_dims dims, int64_t correction, bool keep);
/* Where along one dim the largest, the smallest is, i64: the first of several, the first NaN where there is one.
 * DT_ERR_SHAPE: the dim is empty. */
DT_API dt_tensor *dt_argmax(dt_tensor *x, int dim, bool keep);
DT_API dt_tensor *dt_argmin(dt_tensor *x, int dim, bool keep);

/* ---- running sums and order -------------------------------------------------------------------------------------- *
 * Along one dim, of any dtype. NaN is the largest number, 0 and -0 are alike, and of alike elements the first comes
 * first: so the order is the same on every mesh. Indices are i64. NULL and DT_ERR_ARG: a dim out of range.
 * Collective.                                                                                                        */

/* The sum of the elements up to each, in the dtype of x: floats are summed in f64, integers wrap, bools are or-ed. What
 * is P stays so. */
DT_API dt_tensor *dt_cumsum(dt_tensor *x, int dim);
/* result: the elements in order, the smallest or the largest first; where they were. */
DT_API dt_status dt_sort(dt_tensor *x, int dim, bool descending, dt_tensor *result[2]);
/* Of these the first k: the largest, or the smallest, in order. DT_ERR_ARG: k is negative, or more than there are. */
DT_API dt_status dt_topk(dt_tensor *x, int64_t k, int dim, bool largest, dt_tensor *result[2]);

/* ---- products of matrices ---------------------------------------------------------------------------------------- *
 * Any dtype, operands alike; bf16 and f16 are summed in f32 and rounded once. A sum of no products is 0. NULL and
 * DT_ERR_SHAPE: dims that do not fit; DT_ERR_DTYPE: dtypes that differ. Collective.                                  */

DT_API dt_tensor *dt_matmul(dt_tensor *a, dt_tensor *b);             /* [.. m,k] [.. k,n] -> [.. m,n]              */
DT_API dt_tensor *dt_bmm(dt_tensor *a, dt_tensor *b);                /* [s,m,k] [s,k,n] -> [s,m,n]                 */
DT_API dt_tensor *dt_linear(dt_tensor *x, dt_tensor *w, dt_tensor *bias); /* [.. k] [n,k] [n]? -> [.. n]           */
/* c plus the product: [n], [m,n], [1,n], [m,1] or a scalar, [m,k], [k,n] -> [m,n]. */
DT_API dt_tensor *dt_addmm(dt_tensor *c, dt_tensor *a, dt_tensor *b);
/* The sum of products that an equation says, of 1 .. DT_MAX_OPERANDS tensors: "bij,bjk->bik". A letter is a dim of all
 * operands that have it, where a dim of 1 is stretched; what the result lacks is summed over. "..." are any dims, which
 * broadcast. Without "->" the result has "...", then the letters that stand once, A to Z, a to z. Two operands are one
 * op, and more are multiplied two at a time, from the left. NULL and DT_ERR_PARSE: no equation, a letter twice in one
 * operand (a diagonal) or in none; DT_ERR_ARG: another number of operands. */
DT_API dt_tensor *dt_einsum(const char *equation, dt_tensor *const *x, int n);

/* ---- softmax and norms ------------------------------------------------------------------------------------------- *
 * Floats, computed in f64 and rounded once. NULL and DT_ERR_ARG: a dim out of range, an eps below 0; DT_ERR_SHAPE: w
 * is not the trailing dims of x; DT_ERR_DTYPE. Collective. */

DT_API dt_tensor *dt_softmax(dt_tensor *x, int dim);                 /* exp(x) over its sum along dim              */
DT_API dt_tensor *dt_log_softmax(dt_tensor *x, int dim);             /* its log                                    */
/* Over the trailing dims that w has: x over the root of its mean square plus eps, times w; x less its mean, over the
 * root of its variance plus eps, times w, plus bias. */
DT_API dt_tensor *dt_rms_norm(dt_tensor *x, dt_tensor *w, double eps);
DT_API dt_tensor *dt_layer_norm(dt_tensor *x, dt_tensor *w, dt_tensor *bias, double eps);

/* ---- by number --------------------------------------------------------------------------------------------------- *
 * ids: integers of any dtype, numbers of the whole tensor from 0 on. NULL and DT_ERR_ARG: an id out of range, on every
 * rank that has it; DT_ERR_SHAPE; DT_ERR_DTYPE: ids that are no integers. Collective.                                */

DT_API dt_tensor *dt_embedding(dt_tensor *table, dt_tensor *ids);    /* [v,h] [..] -> [.. h]                       */
DT_API dt_tensor *dt_index_select(dt_tensor *x, int dim, dt_tensor *ids); /* slices along dim; ids: [n]            */
/* Elements along dim: y[i][j] = x[i][ids[i][j]] for the last of two. ids has x's sizes in the other dims. */
DT_API dt_tensor *dt_gather(dt_tensor *x, int dim, dt_tensor *ids);
/* x, to which values, placed as dt_gather picks, are added in the order of ids. */
DT_API dt_tensor *dt_scatter_add(dt_tensor *x, int dim, dt_tensor *ids, dt_tensor *values);
/* x, to whose slices along dim, numbered by ids of any dims, those of values are added: values has the dims of ids
 * in the place of dim. */
DT_API dt_tensor *dt_index_add(dt_tensor *x, int dim, dt_tensor *ids, dt_tensor *values);
DT_API dt_tensor *dt_one_hot(dt_tensor *ids, int64_t size, dt_dtype dtype); /* [..] -> [.. size]                   */
/* The same, made as it is to lie (dt_apply_placed). */
DT_API dt_tensor *dt_one_hot_placed(dt_tensor *ids, int64_t size, dt_dtype dtype, const char *placements);

/* ---- views ------------------------------------------------------------------------------------------------------- *
 * The same elements, of any dtype; what is P stays so. A dim made of several is their product, and is split as they
 * were: nothing moves. One taken apart is split in its parts where the cuts fall on their borders; else it is
 * redistributed. Reshape, flatten, unflatten, squeeze and unsqueeze take no memory: they share that of x. NULL and
 * DT_ERR_ARG: a dim out of range, or named twice; DT_ERR_SHAPE: sizes that do not multiply to what is there.
 * Collective.                                                                                                        */

DT_API dt_tensor *dt_permute(dt_tensor *x, dt_dims order);           /* dim d of the result is order's d of x      */
DT_API dt_tensor *dt_transpose(dt_tensor *x, int i, int j);          /* two dims exchanged                         */
DT_API dt_tensor *dt_unsqueeze(dt_tensor *x, int dim);               /* a dim of size 1, dim of the result         */
DT_API dt_tensor *dt_squeeze(dt_tensor *x, int dim);                 /* dim, of size 1, taken out                  */
DT_API dt_tensor *dt_flatten(dt_tensor *x, int first, int last);     /* these dims and those between as one        */
DT_API dt_tensor *dt_unflatten(dt_tensor *x, int dim, dt_shape shape); /* dim as several; one size may be -1       */
DT_API dt_tensor *dt_reshape(dt_tensor *x, dt_shape shape);          /* one size may be -1                         */
/* Dims of size 1 as often as shape says, and others in front; a size may be -1: as it is. */
DT_API dt_tensor *dt_expand(dt_tensor *x, dt_shape shape);
/* The same, made as it is to lie (dt_apply_placed). */
DT_API dt_tensor *dt_expand_placed(dt_tensor *x, dt_shape shape, const char *placements);

/* ---- along a dim ------------------------------------------------------------------------------------------------- *
 * Elements moved, of any dtype; what is P stays so. Where dim is split the result is split by the same mesh dims, cut
 * anew, and what comes to lie on another rank moves, no more: that is the op's own, no implied redistribution. NULL and
 * DT_ERR_ARG: a dim out of range; DT_ERR_SHAPE. Collective.                                                          */

/* n >= 1 tensors, equal but in dim, one behind the other; equal in all, along a new dim, dim of the result. */
DT_API dt_tensor *dt_cat(dt_tensor *const *x, int n, int dim);
DT_API dt_tensor *dt_stack(dt_tensor *const *x, int n, int dim);
/* pieces[0 .. n - 1] of these sizes, one of which may be -1: what the others leave. */
DT_API dt_status dt_split(dt_tensor *x, const int64_t *sizes, int n, int dim, dt_tensor **pieces);
/* At most n pieces, of ceil(size / n), but the last: pieces that are then left over are NULL. */
DT_API dt_status dt_chunk(dt_tensor *x, int n, int dim, dt_tensor **pieces);
/* Elements start, start + step .. of dim, before stop. start and stop as in Python: from the end where negative, and no
 * error beyond the ends, INT64_MAX for all. NULL and DT_ERR_ARG: step is below 1. */
DT_API dt_tensor *dt_slice(dt_tensor *x, int dim, int64_t start, int64_t stop, int64_t step);
/* One of dim, which is taken out; negative: from the end. Where dim is split it goes to all ranks. DT_ERR_ARG: there is
 * none. */
DT_API dt_tensor *dt_select(dt_tensor *x, int dim, int64_t index);
DT_API dt_tensor *dt_roll(dt_tensor *x, int dim, int64_t shift);     /* i to i + shift, round the end              */
DT_API dt_tensor *dt_flip(dt_tensor *x, int dim);                    /* turned round                               */
/* So many more of a number. DT_ERR_ARG: fewer than 0; a number with a fraction for integers. */
DT_API dt_tensor *dt_pad(dt_tensor *x, int dim, int64_t before, int64_t after, double value);

/* ---- triangles --------------------------------------------------------------------------------------------------- *
 * Of the last two dims, by position in the whole tensor: x where the column is at most, at least, the row plus
 * diagonal, 0 elsewhere. What is P stays so. NULL and DT_ERR_SHAPE: fewer than two dims. Collective.                 */

DT_API dt_tensor *dt_tril(dt_tensor *x, int64_t diagonal);
DT_API dt_tensor *dt_triu(dt_tensor *x, int64_t diagonal);

/* ---- as another lies --------------------------------------------------------------------------------------------- *
 * Of any dtype. What is P stays so, of the value that is asked for. DT_ERR_ARG: a number with a fraction for
 * integers. Collective.                                                                                              */

DT_API dt_tensor *dt_copy(dt_tensor *x);
DT_API dt_tensor *dt_fill(dt_tensor *x, double value);               /* the number in the place of each element    */

/* ---- random numbers ---------------------------------------------------------------------------------------------- *
 * Numbered by the index of an element in the whole tensor under a key, so the same on every mesh, placement and dtype.
 * Calls with one key and shape draw the same; who calls makes keys differ, by step and place. Collective.            */

/* Floats: each element is 0 with probability p, whatever it was, else times 1 / (1 - p). No mask is kept: the gradient
 * draws again. NULL and DT_ERR_ARG: p is not in [0, 1). */
DT_API dt_tensor *dt_dropout(dt_tensor *x, double p, uint64_t key);

/* ---- positions and attention ------------------------------------------------------------------------------------- *
 * Floats; positions are those of the whole tensor, whoever holds them. NULL and DT_ERR_SHAPE: dims that do not fit;
 * DT_ERR_DTYPE. Collective.                                                                                          */

/* x of [b,s,h,d] turned by its position: elements i and i + d/2 of a head, i < d/2, are a pair (the halves of Llama's
 * published weights for transformers, not neighbours), turned by (offset + position) base^(-2i/d). Computed in f64 and
 * rounded once. NULL and DT_ERR_SHAPE: d is odd; DT_ERR_ARG: base is not above 0. */
DT_API dt_tensor *dt_rope(dt_tensor *x, double base, int64_t offset);

/* Attention of q [b,s,h,d] to k and v [b,t,g,d], g heads for h of q: head i reads head i / (h/g). params NULL: all 0.
 * Scores are q k times the scale plus mask [s,t], -infinity hiding a key; causal: position i of q sees 0 .. i of k and
 * v. A row that sees no key is 0. Scores are never all there: memory grows with s and t, not with their product; but a
 * gradient of the mask is [s,t]. Computed in f64 for f64, else in f32, and rounded once. NULL and DT_ERR_SHAPE: h is no
 * multiple of g, or dims that do not fit. */
DT_API dt_tensor *dt_attention(dt_tensor *q, dt_tensor *k, dt_tensor *v, const dt_attention_params *params);

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Cross-entropy of logits [.. v], floats, and targets [..], numbers of classes: of each target the negative log of the
 * softmax of its logits at it, times the class's weight. params NULL: all 0. Label smoothing e takes that of the
 * target times 1 - e, and adds e / v times that of every class, each times its own weight. A negative target is
 * ignored: its loss is 0. The mean divides by the weight of targets that are not, 1 each without class weights; where
 * that is 0 by 1, so that it is 0 where none is there. Computed in f64, kept in f32 or wider; the result has the
 * dtype of logits. Class weights, [v] of any float dtype, have no gradient. Collective. NULL and DT_ERR_ARG: a target
 * of v or above, on every rank that has it; smoothing that is not in [0, 1]; DT_ERR_SHAPE: dims that do not fit;
 * DT_ERR_DTYPE. */
DT_API dt_tensor *dt_cross_entropy(dt_tensor *logits, dt_tensor *targets, const dt_cross_entropy_params *params);
/* ---- in place ---------------------------------------------------------------------------------------------------- *
 * The first operands are written where they lie, the others redistributed to fit them. Tensors are values, so what is
 * written has one owner: all handles of a tensor (dt_tensor_hold) are it; what else shares its elements, as a view, a
 * dt_detach or a redistribution that moved nothing, is another tensor. A gradient (dt_grad) that shares its elements
 * gets some of its own. Redistributed copies kept of the value end. Writes are not recorded. DT_ERR_STATE: another
 * tensor or work not waited for shares what is to be written; the tape still needs it; it was made of leaves; an
 * operand has a gradient, and this is no DT_SCOPE_NO_GRAD scope. DT_ERR_PLACEMENT: what is written is P, where the
 * value is not linear in it. DT_ERR_ARG: it is two of the operands. DT_ERR_SHAPE; DT_ERR_DTYPE. Collective.          */

typedef struct dt_adamw_into_params {
    double lr, weight_decay;
    double beta1, beta2, eps;                                        /* 0: 0.9, 0.999, 1e-8                        */
    int64_t step;                                                    /* from 1; 0: 1                               */
} dt_adamw_into_params;

typedef struct dt_sgd_into_params {
    double lr, weight_decay, momentum;
    bool nesterov;
} dt_sgd_into_params;

/* x takes the elements of values, which may lie on another mesh and be P, of one shape, in any dtype: they are
 * redistributed to x's spec, P too, and converted as dt_cast does. That is no implied redistribution. */
DT_API dt_status dt_copy_into(dt_tensor *x, dt_tensor *values);
/* x becomes a x + b y, x y: of one dtype; y broadcasts. x may be P(sum) or P(avg), in dt_mul_into if y is not. */
DT_API dt_status dt_axpby_into(dt_tensor *x, dt_tensor *y, double a, double b);
DT_API dt_status dt_mul_into(dt_tensor *x, dt_tensor *y);
/* One step of AdamW: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w = (1 - lr weight_decay) w - lr m' /
 * (sqrt(v') + eps), m' and v' divided by 1 - beta^step. Floats of one shape, each of any dtype; computed in f64 where
 * one of them is, else in f32. w, m and v placed alike, none P; g is summed and redistributed to them. */
DT_API dt_status dt_adamw_into(dt_tensor *w, dt_tensor *m, dt_tensor *v, dt_tensor *g,
                               const dt_adamw_into_params *params);
/* One step of SGD: v = momentum v + g + weight_decay w, w -= lr v, or, nesterov, w -= lr (g + weight_decay w +
 * momentum v). v NULL: no momentum, w -= lr (g + weight_decay w). Else as dt_adamw_into. */
DT_API dt_status dt_sgd_into(dt_tensor *w, dt_tensor *v, dt_tensor *g, const dt_sgd_into_params *params);

/* The same on lists of n, of which one call is made each, and what is redistributed goes together (dt_apply_list). What
 * one call writes is no operand of another. y of the second is one for all. */
DT_API dt_status dt_copy_into_list(dt_tensor *const *x, dt_tensor *const *values, int n);
DT_API dt_status dt_axpby_into_list(dt_tensor *const *x, dt_tensor *const *y, int n, double a, double b);
DT_API dt_status dt_mul_into_list(dt_tensor *const *x, int n, dt_tensor *y);
DT_API dt_status dt_adamw_into_list(dt_tensor *const *w, dt_tensor *const *m, dt_tensor *const *v, dt_tensor *const *g,
                                    int n, const dt_adamw_into_params *params);
DT_API dt_status dt_sgd_into_list(dt_tensor *const *w, dt_tensor *const *v, dt_tensor *const *g, int n,
                                  const dt_sgd_into_params *params);

/* ---- over lists -------------------------------------------------------------------------------------------------- */

/* The root of the sum of all squares of n tensors of floats, wherever each lies: what is P is summed, all together; the
 * squares are summed in f64 where they are, then once. A scalar, R on the first's mesh, in f64 if the first
 * is, else in f32. NULL and the error as of an op. Collective over all meshes. */
DT_API dt_tensor *dt_norm_list(dt_tensor *const *x, int n);

DT_END_DECLS

#endif
