/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over dims. The rule is written for the dims asked for: "a b c -> a c". Sums are linear, so what they leave
 * is P(sum); the largest and the smallest rise. What is no such thing wants the dims whole. */
#include <stdio.h>

#include <dtensor/ops.h>

#include "core/pen.h"
#include "core/shape.h"
#include "ops/cpu/kernels.h"
#include "ops/decompositions.h"
#include "ops/gradients.h"
#include "ops/tables.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Letters a, b, c..; those of reduced dims flagged. Where they are kept, letters A, B, C.. of size 1 stand for them. */
static dt_status write_rule(const dt_dims *dims, bool keep, const dt_shape *x, const char *flag, dt_derived *out)
{
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    for (int d = 0; d < x->n; d++) dti_put(&pen, "%c%s ", 'a' + d, dti_dims_have(dims, d) ? flag : "");
    dti_put(&pen, "->");
    for (int d = 0; d < x->n; d++) {
        bool reduced = dti_dims_have(dims, d);
        if (!reduced) dti_put(&pen, " %c", 'a' + d);
        if (!reduced || !keep) continue;
        dti_put(&pen, " %c", 'A' + d);
        out->size[out->size_count].letter = (char)('A' + d);
        out->size[out->size_count++].size = 1;
    }
    return DT_OK;
}

static dt_status write_over(const void *attributes, const dt_shape *shapes, const char *flag, dt_derived *out)
{
    const dti_over *over = attributes;
    return write_rule(&over->dims, over->keep, &shapes[0], flag, out);
}

static dt_status derive_sum(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_over(attributes, shapes, "", out);
}

static dt_status derive_max(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_over(attributes, shapes, ":max", out);
}

static dt_status derive_min(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_over(attributes, shapes, ":min", out);
}

static dt_status derive_prod(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_over(attributes, shapes, ":prod", out);
}

static dt_status derive_whole(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_over(attributes, shapes, "!", out);
}

static dt_status derive_index(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_along *along = attributes;
    (void)n;
    if (shapes[0].dim[along->dim] == 0)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "argmax, argmin: expected an element in dim %d, got none",
                               along->dim);
    return write_rule(&(dt_dims){ 1, { along->dim } }, along->keep, &shapes[0], "!", out);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute over[] = {
    { "dims", DT_ATTRIBUTE_DIMS, offsetof(dti_over, dims) },
    { "keep", DT_ATTRIBUTE_BOOL, offsetof(dti_over, keep) },
};
static const dt_attribute over_corrected[] = {
    { "dims", DT_ATTRIBUTE_DIMS, offsetof(dti_over, dims) },
    { "keep", DT_ATTRIBUTE_BOOL, offsetof(dti_over, keep) },
    { "correction", DT_ATTRIBUTE_INT, offsetof(dti_over, correction) },
};
static const dt_attribute along[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) },
    { "keep", DT_ATTRIBUTE_BOOL, offsetof(dti_along, keep) },
};

static const dt_op sum = {
    .head = "sum(x)", .polynomial = "x", .derive = derive_sum, .attributes = over, .attribute_count = DT_COUNT(over),
    .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_sum, .gradient = dti_grad_sum, .doc = "sum over dims",
};
/* Local sums over the global count: a sum, however uneven the pieces. */
static const dt_op mean = {
    .head = "mean(x)", .polynomial = "x", .dtypes = "f->f", .derive = derive_sum, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_mean,
    .gradient = dti_grad_mean, .doc = "mean over dims",
};
static const dt_op largest = {
    .head = "max(x)", .polynomial = "none, rising, saves x result", .derive = derive_max, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_max,
    .gradient = dti_grad_extreme, .doc = "largest over dims; NaN where there is one",
};
static const dt_op smallest = {
    .head = "min(x)", .polynomial = "none, rising, saves x result", .derive = derive_min, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_min,
    .gradient = dti_grad_extreme, .doc = "smallest over dims; NaN where there is one",
};
static const dt_op product = {
    .head = "prod(x)", .polynomial = "none, saves x result", .derive = derive_prod, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_prod,
    .gradient = dti_grad_prod, .doc = "product over dims",
};
static const dt_op any = {
    .head = "any(x)", .polynomial = "none, rising", .dtypes = "b->b", .derive = derive_max, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_max,
    .doc = "is one true?",
};
static const dt_op all = {
    .head = "all(x)", .polynomial = "none, rising", .dtypes = "b->b", .derive = derive_min, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_min,
    .doc = "are all true?",
};
static const dt_op logsumexp = {
    .head = "logsumexp(x)", .polynomial = "none, saves x result", .dtypes = "f->f", .derive = derive_whole,
    .attributes = over, .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over),
    .kernel = dti_cpu_logsumexp, .decompose = dti_parts_of_logsumexp, .gradient = dti_grad_logsumexp,
    .doc = "log of the sum of exp over dims",
};
static const dt_op variance = {
    .head = "var(x)", .polynomial = "none, saves x", .dtypes = "f->f", .derive = derive_whole,
    .attributes = over_corrected, .attribute_count = DT_COUNT(over_corrected), .attribute_bytes = sizeof(dti_over),
    .kernel = dti_cpu_var, .decompose = dti_parts_of_var, .gradient = dti_grad_var,
    .doc = "squared distances from the mean over dims, by their count less the correction",
};
static const dt_op norm = {
    .head = "norm(x)", .polynomial = "none, saves x result", .dtypes = "f->f", .derive = derive_whole,
    .attributes = over, .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over),
    .kernel = dti_cpu_norm, .decompose = dti_parts_of_norm, .gradient = dti_grad_norm,
    .doc = "root of the sum of squares over dims",
};
static const dt_op argmax = {
    .head = "argmax(x)", .polynomial = "none", .dtypes = "t->i", .derive = derive_index, .attributes = along,
    .attribute_count = DT_COUNT(along), .attribute_bytes = sizeof(dti_along), .kernel = dti_cpu_argmax,
    .decompose = dti_parts_of_argmax,
    .doc = "index of the largest along a dim, the first of several; of a NaN where there is one",
};
static const dt_op argmin = {
    .head = "argmin(x)", .polynomial = "none", .dtypes = "t->i", .derive = derive_index, .attributes = along,
    .attribute_count = DT_COUNT(along), .attribute_bytes = sizeof(dti_along), .kernel = dti_cpu_argmin,
    .decompose = dti_parts_of_argmin,
    .doc = "index of the smallest along a dim, the first of several; of a NaN where there is one",
};

const dt_op *const dti_ops_reduce[] = {
    &sum, &mean, &largest, &smallest, &product, &any, &all, &logsumexp, &variance, &norm, &argmax, &argmin, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

static dt_tensor *reduce(const dt_op *op, dt_tensor *x, dt_dims dims, bool keep, int64_t correction)
{
    return dt_apply(op, &x, 1, &(dti_over){ .dims = dims, .keep = keep, .correction = correction });
}

dt_tensor *dt_sum(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&sum, x, dims, keep, 0); }
dt_tensor *dt_mean(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&mean, x, dims, keep, 0); }
dt_tensor *dt_max(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&largest, x, dims, keep, 0); }
dt_tensor *dt_min(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&smallest, x, dims, keep, 0); }
dt_tensor *dt_prod(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&product, x, dims, keep, 0); }
dt_tensor *dt_any(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&any, x, dims, keep, 0); }
dt_tensor *dt_all(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&all, x, dims, keep, 0); }
dt_tensor *dt_logsumexp(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&logsumexp, x, dims, keep, 0); }
dt_tensor *dt_norm(dt_tensor *x, dt_dims dims, bool keep) { return reduce(&norm, x, dims, keep, 0); }

dt_tensor *dt_var(dt_tensor *x, dt_dims dims, int64_t correction, bool keep)
{
    return reduce(&variance, x, dims, keep, correction);
}

dt_tensor *dt_argmax(dt_tensor *x, int dim, bool keep)
{
    return dt_apply(&argmax, &x, 1, &(dti_along){ .dim = dim, .keep = keep });
}

dt_tensor *dt_argmin(dt_tensor *x, int dim, bool keep)
{
    return dt_apply(&argmin, &x, 1, &(dti_along){ .dim = dim, .keep = keep });
}
