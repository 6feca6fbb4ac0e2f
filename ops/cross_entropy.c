/* SPDX-License-Identifier: Apache-2.0
 *
 * Cross-entropy of logits and targets. The row gives a loss and a weight for each target, and keeps what a gradient
 * needs to go back from logits alone; sum and mean are ops on top. */
#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/decompositions.h"
#include "ops/gradients.h"
#include "ops/losses.h"
#include "ops/tables.h"
#include "tensor/tensor.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* A rule in which # stands for the dims of the targets, letters a, b, c.. as many as the first operand has but for
 * some. That one is missing is said where the rule is bound. */
static dt_status write_rule(dt_context *ctx, const char *op, const dt_shape *first, int others, const char *format,
                            dt_derived *out)
{
    int dims = first->n < 0 ? 0 : first->n - others;
    char letters[2 * DT_MAX_DIMS] = "";
    dti_pen pen = { letters, sizeof letters, 0 };
    if (dims < 0)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "%s: expected at least 1 dim, of classes, got none", op);
    for (int d = 0; d < dims; d++) dti_put(&pen, "%s%c", d ? " " : "", 'a' + d);
    pen = (dti_pen){ out->rule, sizeof out->rule, 0 };
    for (; *format; format++) dti_put(&pen, *format == '#' ? "%s" : "%.1s", *format == '#' ? letters : format);
    return DT_OK;
}

static bool check_smoothing(dt_context *ctx, double smoothing)
{
    if (smoothing >= 0 && smoothing <= 1) return true;
    dt_context_fail(ctx, DT_ERR_ARG, "cross_entropy: expected label_smoothing in 0 .. 1, got %g", smoothing);
    return false;
}

static dt_status derive_cross_entropy(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                      dt_derived *out)
{
    (void)n;
    if (!check_smoothing(ctx, ((const dti_cross_entropy *)attributes)->smoothing)) return DT_ERR_ARG;
    return write_rule(ctx, "cross_entropy", &shapes[0], 1, "# v!, #, v!? -> #, # | #, #", out);
}

/* With class weights three numbers a target, else one. */
static dt_status derive_sums(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)attributes;
    (void)n;
    out->size[0].letter = 'k';
    out->size[0].size = shapes[3].n < 0 ? 1 : 3;
    out->size_count = 1;
    return write_rule(ctx, "cross_entropy_sums", &shapes[0], 1, "# v, #, #, v? -> #, # k", out);
}

static dt_status derive_end(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dt_shape *parts = &shapes[3];
    (void)attributes;
    (void)n;
    out->size[0].letter = 'k';
    out->size[0].size = parts->n > 0 && parts->dim[parts->n - 1] == 3 ? 3 : 1;
    out->size_count = 1;
    return write_rule(ctx, "cross_entropy_end", &shapes[0], 0, "#, #, #, # k! -> #, #, #, #", out);
}

static dt_status derive_grad(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)attributes;
    (void)n;
    return write_rule(ctx, "cross_entropy_grad", &shapes[0], 1, "# v, #, #, #, #, v? -> # v", out);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute smoothing[] = {
    { "smoothing", DT_ATTRIBUTE_NUMBER, offsetof(dti_cross_entropy, smoothing) },
};

static const dt_op cross_entropy = {
    .head = "cross_entropy(x, targets, w)", .polynomial = "none, saves x targets w", .dtypes = "fis->ssss",
    .derive = derive_cross_entropy, .attributes = smoothing, .attribute_count = DT_COUNT(smoothing),
    .attribute_bytes = sizeof(dti_cross_entropy), .kernel = dti_cpu_cross_entropy,
    .decompose = dti_parts_of_cross_entropy, .gradient = dti_grad_cross_entropy,
    .doc = "loss of each target, by the softmax of its logits, and its weight",
};
static const dt_op cross_entropy_sums = {
    .head = "cross_entropy_sums(x, targets, max, w)", .polynomial = "none", .dtypes = "fifs->ww",
    .derive = derive_sums, .attributes = smoothing, .attribute_count = DT_COUNT(smoothing),
    .attribute_bytes = sizeof(dti_cross_entropy), .kernel = dti_cpu_cross_entropy_sums,
    .doc = "sums over classes that the loss of each target is made of",
};
static const dt_op cross_entropy_end = {
    .head = "cross_entropy_end(targets, max, sum, parts)", .polynomial = "none", .dtypes = "ifss->ssss",
    .derive = derive_end, .kernel = dti_cpu_cross_entropy_end, .doc = "the loss of each target from its sums",
};
/* Probabilities come of x and lse alone, so it is linear in what comes back, and needs no other class. */
static const dt_op cross_entropy_grad = {
    .head = "cross_entropy_grad(x, targets, lse, scale, g, w)", .polynomial = "g", .dtypes = "fissss->f",
    .derive = derive_grad, .attributes = smoothing, .attribute_count = DT_COUNT(smoothing),
    .attribute_bytes = sizeof(dti_cross_entropy), .kernel = dti_cpu_cross_entropy_grad,
    .doc = "the gradient of cross_entropy's x",
};

const dt_op *const dti_ops_cross_entropy[] = {
    &cross_entropy, &cross_entropy_sums, &cross_entropy_end, &cross_entropy_grad, NULL,
};

/* ---- classes that are split -------------------------------------------------------------------------------------- */

/* Three small reductions: the largest logit of each target, then two sums that hang on it. */
dt_status dti_parts_of_cross_entropy(dt_decomposition *d)
{
    dt_tensor *x = d->in[0], *targets = d->in[1], *sums[2] = { NULL };
    dt_tensor *max = dt_redistribute(dt_max(x, DT_DIMS(-1), false), d->whole);
    dt_apply_all(&cross_entropy_sums, (dt_tensor *[]){ x, targets, max, d->in[2] }, 4, d->attributes, sums, 2);
    for (int i = 0; i < DT_COUNT(sums); i++) sums[i] = dt_redistribute(sums[i], d->whole);
    return dt_apply_all(&cross_entropy_end, (dt_tensor *[]){ targets, max, sums[0], sums[1] }, 4, NULL, d->out, 4);
}

/* ---- the gradient ------------------------------------------------------------------------------------------------ */

/* The target's weight is a number to x. */
dt_status dti_grad_cross_entropy(dt_gradient *g)
{
    if (g->wanted[2]) return dt_context_fail(g->ctx, DT_ERR_UNAVAILABLE, "cross_entropy: its weights have no gradient");
    if (!g->out_grad[0]) return DT_OK;
    dt_tensor *in[6] = { g->in[0], g->in[1], g->out[2], g->out[3], g->out_grad[0], g->in[2] };
    g->in_grad[0] = dt_apply(&cross_entropy_grad, in, 6, g->attributes);
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

/* ---- the front --------------------------------------------------------------------------------------------------- */

/* Of losses and weights of all targets. Where nothing weighs, the sum of losses is 0, and so is the mean. */
static dt_tensor *mean(dt_tensor *loss, dt_tensor *weight)
{
    dt_tensor *all = dt_redistribute(dt_sum(dt_detach(weight), DT_ALL, false), "");
    dt_tensor *none = dt_eq(all, dti_number_like(all, 0));
    return dt_div(dt_sum(loss, DT_ALL, false), dt_masked_fill(all, none, 1));
}

static dt_tensor *reduced(dt_tensor *const *y, dt_reduction reduction)
{
    if (reduction == DT_REDUCTION_NONE) return y[0];
    return reduction == DT_REDUCTION_SUM ? dt_sum(y[0], DT_ALL, false) : mean(y[0], y[1]);
}

static bool check_params(dt_context *ctx, const dt_cross_entropy_params *params)
{
    if (!check_smoothing(ctx, params->label_smoothing)) return false; /* a known call asks no row                  */
    if ((unsigned)params->reduction <= DT_REDUCTION_NONE) return true;
    return dt_context_fail(ctx, DT_ERR_ARG, "cross_entropy: %d is no DT_REDUCTION_*", (int)params->reduction), false;
}

dt_tensor *dti_cross_entropy_wide(dt_tensor *logits, dt_tensor *targets, const dt_cross_entropy_params *params)
{
    dt_cross_entropy_params with = params ? *params : (dt_cross_entropy_params){ .label_smoothing = 0 };
    dt_tensor *y[2] = { NULL };
    if (!logits) return dt_apply(&cross_entropy, (dt_tensor *[]){ NULL, targets, with.class_weights }, 3,
                                 &(dti_cross_entropy){ 0 });
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(dt_tensor_spec(logits)));
    if (!check_params(ctx, &with)) return NULL;
    int scope = dt_scope_push(ctx, 0);
    dt_apply_all(&cross_entropy, (dt_tensor *[]){ logits, targets, with.class_weights }, 3,
                 &(dti_cross_entropy){ with.label_smoothing }, y, 2);
    dt_tensor *loss = y[0] ? reduced(y, with.reduction) : NULL;
    if (loss && !dti_tensor_made_of(loss, y[0])) loss = NULL;
    return dt_scope_pop(ctx, scope, loss);
}

dt_tensor *dt_cross_entropy(dt_tensor *logits, dt_tensor *targets, const dt_cross_entropy_params *params)
{
    dt_tensor *loss = dti_cross_entropy_wide(logits, targets, params);
    dt_dtype dtype = loss ? dt_spec_dtype(dt_tensor_spec(logits)) : DT_DTYPE_DEFAULT;
    if (!loss || dt_spec_dtype(dt_tensor_spec(loss)) == dtype) return loss;
    dt_tensor *narrow = dt_cast(loss, dtype);
    if (narrow) dti_tensor_come_of(narrow, loss);
    return narrow;
}
