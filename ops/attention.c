/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions and attention. Kernels learn from what a rank holds where it is in the whole sequence. */
#include <dtensor/ops.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

static dt_status refuse(dt_tensor *x, const char *what, double value)
{
    return dt_context_fail(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x))), DT_ERR_ARG, "%s, got %g", what, value);
}

/* ---- rope -------------------------------------------------------------------------------------------------------- */

static dt_status check_pairs(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)attributes;
    (void)n;
    (void)out;
    if (shapes[0].n != 4 || shapes[0].dim[3] % 2 == 0) return DT_OK;
    return dt_context_fail(ctx, DT_ERR_SHAPE, "rope: expected an even d, for pairs, got %lld",
                           (long long)shapes[0].dim[3]);
}

static const dt_attribute turning[] = {
    { "base", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, base) },
    { "offset", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, offset) },
    { "turns", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, turns) },
};

static const dt_op rope = {
    .head = "rope(x)", .rule = "b s h d! -> b s h d", .polynomial = "x", .dtypes = "f->f", .derive = check_pairs,
    .attributes = turning, .attribute_count = DT_COUNT(turning), .attribute_bytes = sizeof(dti_rope),
    .kernel = dti_cpu_rope, .gradient = dti_grad_rope, .doc = "pairs of x turned by their position",
};

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* As large as it counts. */
static int64_t times(int64_t a, int64_t b) { return b && a > INT64_MAX / b ? INT64_MAX : a * b; }

/* So many products of a query and a key, two operations per element. */
static int64_t products(const dt_shape *q, const dt_shape *k, int64_t n)
{
    for (int d = 0; d < q->n; d++) n = times(n, q->dim[d]);
    return times(times(n, 2), k->n > 1 ? k->dim[1] : 1);
}

static int64_t attention_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return products(&in[0], &in[1], 2);
}

static int64_t attention_grad_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return products(&in[0], &in[1], 5);
}

static const dt_attribute attending[] = {
    { "scale", DT_ATTRIBUTE_NUMBER, offsetof(dti_attention, scale) },
    { "causal", DT_ATTRIBUTE_BOOL, offsetof(dti_attention, causal) },
};

static const dt_op attention = {
    .head = "attention(q, k, v, mask)",
    .rule = "b s (g r) d!, b t~ g d!, b t~ g d!, s t? -> b s (g r) d! | b s (g r)",
    .polynomial = "v, saves q k v mask result", .dtypes = "ffff->fs", .attributes = attending,
    .attribute_count = DT_COUNT(attending), .attribute_bytes = sizeof(dti_attention), .kernel = dti_cpu_attention,
    .flops = attention_flops, .gradient = dti_grad_attention,
    .doc = "v weighted by the softmax of q k, scaled; masked",
};
/* Probabilities come of q, k and lse alone, so it is linear in what comes back. */
static const dt_op attention_grad = {
    .head = "attention_grad(q, k, v, lse, delta, g, mask)",
    .rule = "b s (g r) d!, b t~ g d!, b t~ g d!, b s (g r), b s (g r), b s (g r) d!, s t? -> "
            "b s (g r) d!, b t g d!, b t g d!",
    .polynomial = "g - delta", .dtypes = "fffssff->fff", .attributes = attending,
    .attribute_count = DT_COUNT(attending), .attribute_bytes = sizeof(dti_attention),
    .kernel = dti_cpu_attention_grad, .flops = attention_grad_flops, .doc = "gradients of q, k and v of attention",
};

/* And of the mask, which all batches and heads share. */
static const dt_op attention_mask_grad = {
    .head = "attention_mask_grad(q, k, v, lse, delta, g, mask)",
    .rule = "b s (g r) d!, b t~ g d!, b t~ g d!, b s (g r), b s (g r), b s (g r) d!, s t -> "
            "b s (g r) d!, b t g d!, b t g d!, s t",
    .polynomial = "g - delta", .dtypes = "fffssff->fffs", .attributes = attending,
    .attribute_count = DT_COUNT(attending), .attribute_bytes = sizeof(dti_attention),
    .kernel = dti_cpu_attention_grad, .flops = attention_grad_flops,
    .doc = "gradients of q, k, v and the mask of attention",
};

const dt_op *const dti_ops_attention[] = { &rope, &attention, &attention_grad, &attention_mask_grad, NULL };

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_rope(dt_tensor *x, double base, int64_t offset)
{
    if (x && !(base > 0)) return refuse(x, "rope: expected a base above 0", base), NULL;
    return dt_apply(&rope, &x, 1, &(dti_rope){ base, (double)offset, 1 });
}

dt_tensor *dt_attention(dt_tensor *q, dt_tensor *k, dt_tensor *v, const dt_attention_params *params)
{
    dt_attention_params with = params ? *params : (dt_attention_params){ .scale = 0 };
    return dt_apply(&attention, (dt_tensor *[]){ q, k, v, with.mask }, 4,
                    &(dti_attention){ .scale = with.scale, .causal = with.causal });
}

dt_status dti_attention_grad(const dti_attention *attributes, dt_tensor *const in[7], bool mask, dt_tensor **result)
{
    return dt_apply_all(mask ? &attention_mask_grad : &attention_grad, in, 7, attributes, result, mask ? 4 : 3);
}
