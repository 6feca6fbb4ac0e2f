/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the ops that decompositions are made of. What reduces x is P where x is split, as every reduction is. */
#include "ops/parts.h"

#include "core/pen.h"
#include "core/shape.h"
#include "ops/cpu/kernels.h"
#include "ops/tables.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

typedef enum term { TERM_X, TERM_NUMBERS, TERM_ROW } term;

/* Letters a, b, c.. of all dims, of those that numbers have, of those that a row has. */
static void put_term(dti_pen *pen, const dt_dims *dims, int n, term which)
{
    for (int d = 0; d < n; d++)
        if (which == TERM_X || dti_dims_have(dims, d) == (which == TERM_ROW)) dti_put(pen, "%c ", 'a' + d);
}

/* A rule from its pattern: x, n and r stand for the three terms. */
static dt_status write_rule(const void *attributes, const dt_shape *x, const char *pattern, dt_derived *out)
{
    const dt_dims *dims = &((const dti_over *)attributes)->dims;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    for (; *pattern; pattern++) {
        if (*pattern == 'x') put_term(&pen, dims, x->n, TERM_X);
        else if (*pattern == 'n') put_term(&pen, dims, x->n, TERM_NUMBERS);
        else if (*pattern == 'r') put_term(&pen, dims, x->n, TERM_ROW);
        else dti_put(&pen, "%c", *pattern);
    }
    return DT_OK;
}

static dt_status derive_sum(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_rule(attributes, &shapes[0], "x -> n", out);
}

static dt_status derive_shifted(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_rule(attributes, &shapes[0], "x, n -> n", out);
}

static dt_status derive_centered(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                 dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_rule(attributes, &shapes[0], "x, n? -> n", out);
}

static dt_status derive_less(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_rule(attributes, &shapes[0], "x, n -> x", out);
}

static dt_status derive_scaled(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)n;
    return write_rule(attributes, &shapes[0], "x, n, n?, r?, r? -> x", out);
}

static dt_status derive_first(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int dim = ((const dti_along *)attributes)->dim;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)ctx;
    (void)n;
    for (int d = 0; d < shapes[0].n; d++) dti_put(&pen, "%c%s ", 'a' + d, d == dim ? ":min" : "");
    for (int side = 0; side < 2; side++) {
        dti_put(&pen, side ? "->" : ",");
        for (int d = 0; d < shapes[0].n; d++)
            if (d != dim) dti_put(&pen, " %c", 'a' + d);
    }
    return DT_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute over[] = { { "dims", DT_ATTRIBUTE_DIMS, offsetof(dti_over, dims) } };
static const dt_attribute along[] = { { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) } };

static const dt_op wide_sum = {
    .head = "wide_sum(x)", .polynomial = "x", .dtypes = "f->w", .derive = derive_sum, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_sum,
    .doc = "sum over dims, in f64",
};
static const dt_op exp_sum = {
    .head = "exp_sum(x, shift)", .polynomial = "none", .dtypes = "ss->w", .derive = derive_shifted, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_exp_sum,
    .doc = "sum of exp(x - shift) over dims, in f64",
};
static const dt_op square_sum = {
    .head = "square_sum(x, center)", .polynomial = "none", .dtypes = "ss->w", .derive = derive_centered,
    .attributes = over, .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over),
    .kernel = dti_cpu_square_sum, .doc = "sum of squared distances from center over dims, in f64",
};
static const dt_op first_of = {
    .head = "first_of(x, number)", .polynomial = "none", .dtypes = "tt->i", .derive = derive_first,
    .attributes = along, .attribute_count = DT_COUNT(along), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_first_of, .doc = "the first index along a dim at which x is the number",
};
static const dt_op exp_less = {
    .head = "exp_less(x, number)", .polynomial = "none", .dtypes = "fs->f", .derive = derive_less, .attributes = over,
    .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over), .kernel = dti_cpu_exp_less,
    .doc = "exp(x - number of its row)",
};
static const dt_op scale_rows = {
    .head = "scale_rows(x, scale, center, w, b)", .polynomial = "none", .dtypes = "fssss->f", .derive = derive_scaled,
    .attributes = over, .attribute_count = DT_COUNT(over), .attribute_bytes = sizeof(dti_over),
    .kernel = dti_cpu_scale_rows, .doc = "x less its row's center, times its scale, times w, plus b",
};

const dt_op *const dti_ops_parts[] = {
    &wide_sum, &exp_sum, &square_sum, &first_of, &exp_less, &scale_rows, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

static dt_tensor *apply(const dt_op *op, dt_tensor *const *in, int n, dt_dims dims)
{
    return dt_apply(op, in, n, &(dti_over){ .dims = dims });
}

dt_tensor *dti_wide_sum(dt_tensor *x, dt_dims dims) { return apply(&wide_sum, &x, 1, dims); }

dt_tensor *dti_exp_sum(dt_tensor *x, dt_tensor *shift, dt_dims dims)
{
    return apply(&exp_sum, (dt_tensor *[]){ x, shift }, 2, dims);
}

dt_tensor *dti_square_sum(dt_tensor *x, dt_tensor *center, dt_dims dims)
{
    return apply(&square_sum, (dt_tensor *[]){ x, center }, 2, dims);
}

dt_tensor *dti_first_of(dt_tensor *x, dt_tensor *number, int dim)
{
    return dt_apply(&first_of, (dt_tensor *[]){ x, number }, 2, &(dti_along){ .dim = dim });
}

dt_tensor *dti_exp_less(dt_tensor *x, dt_tensor *number, dt_dims dims)
{
    return apply(&exp_less, (dt_tensor *[]){ x, number }, 2, dims);
}

dt_tensor *dti_scale_rows(dt_tensor *x, dt_tensor *scale, dt_tensor *center, dt_tensor *w, dt_tensor *bias,
                          dt_dims dims)
{
    return apply(&scale_rows, (dt_tensor *[]){ x, scale, center, w, bias }, 5, dims);
}
