/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums and order along a dim. Where it is split: of running sums one number per row and piece moves; of the
 * first ones those of each piece; what is sorted goes to where the dim is whole, and comes back. */
#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/parts.h"
#include "ops/pieces.h"
#include "ops/tables.h"
#include "tensor/tensor.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* A term of letters a, b, c..; dim as *letter* says, "": left out. */
static void put_term(dti_pen *pen, int n, int dim, const char *letter, const char *behind)
{
    for (int d = 0; d < n; d++) {
        if (d != dim) dti_put(pen, "%c ", 'a' + d);
        else if (*letter) dti_put(pen, "%s ", letter);
    }
    dti_put(pen, "%s", behind);
}

/* "a b! c -> a b! c" for dim 1 of 3; a second operand has a number per row, or one for each element, or for each along
 * the dim; *results* of the dim as *letter*. */
static void write_rule(const dt_shape *shapes, int n, int dim, const char *letter, int results, dt_derived *out)
{
    const char whole[] = { (char)('a' + dim), '!', 0 };
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    put_term(&pen, shapes[0].n, dim, whole, n > 1 ? ", " : "-> ");
    if (n > 1 && shapes[1].n == 1 && shapes[0].n > 1 && results > 1) dti_put(&pen, "%s-> ", whole);
    else if (n > 1) put_term(&pen, shapes[0].n, dim, results > 1 ? whole : "", "-> ");
    for (int r = 0; r < results; r++)
        put_term(&pen, shapes[0].n, dim, *letter ? letter : whole, r + 1 < results ? ", " : "");
}

static dt_status derive_cumsum(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    write_rule(shapes, n, ((const dti_cumsum *)attributes)->dim, "", 1, out);
    return DT_OK;
}

static dt_status derive_sort(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    write_rule(shapes, n, ((const dti_sort *)attributes)->dim, "", 2, out);
    return DT_OK;
}

static dt_status derive_candidates(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                   dt_derived *out)
{
    const dti_topk *how = attributes;
    if (how->k < 0)
        return dt_context_fail(ctx, DT_ERR_ARG, "topk: expected a k of at least 0, got %lld", (long long)how->k);
    out->size[out->size_count].letter = 'K';
    out->size[out->size_count++].size = how->k;
    write_rule(shapes, n, how->dim, "K!", 2, out);
    return DT_OK;
}

static dt_status derive_topk(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_topk *how = attributes;
    int64_t size = shapes[0].dim[how->dim];
    if (how->k > size)
        return dt_context_fail(ctx, DT_ERR_ARG, "topk: expected a k of at most %lld, the size of dim %d, got %lld",
                               (long long)size, how->dim, (long long)how->k);
    return derive_candidates(ctx, attributes, shapes, n, out);
}

/* ---- running sums, split ----------------------------------------------------------------------------------------- */

static const dt_op cumsum, cumsum_after_floats, cumsum_after_integers;

static bool is_real(dt_tensor *x) { return x && dt_spec_dtype(dt_tensor_spec(x)) <= DT_F16; }

/* x from starts on, one per row; NULL: from 0. */
static dt_tensor *run(dt_tensor *x, dt_tensor *starts, dti_cumsum how)
{
    if (!starts) return dt_apply(&cumsum, &x, 1, &how);
    const dt_op *op = is_real(starts) ? &cumsum_after_floats : &cumsum_after_integers;
    return dt_apply(op, (dt_tensor *[]){ x, starts }, 2, &how);
}

/* Sums of rows as running sums start from them. */
static dt_tensor *totals(dt_tensor *x, int dim)
{
    if (is_real(x)) return dti_wide_sum(x, DT_DIMS(dim));
    return dt_cast(dt_sum(x, DT_DIMS(dim), false), DT_I64);
}

/* dim is a product, of which any factor may be split: rows along the rest of it start where those before them end. */
static dt_tensor *run_product(const dt_decomposition *d, dt_tensor *x, dt_tensor *starts, dti_cumsum how,
                              int64_t first)
{
    dt_tensor *apart = dt_unflatten(x, how.dim, DT_SHAPE(first, -1));
    dti_cumsum before = how, along = how;
    before.exclusive = true;
    along.dim++;
    dt_tensor *ends = run(dt_redistribute(totals(apart, along.dim), d->whole), starts, before);
    return dt_flatten(run(apart, ends, along), how.dim, along.dim);
}

/* The sum of each piece goes to all ranks, which add up those before their own. */
static dt_tensor *run_pieces(const dt_decomposition *d, dt_tensor *x, dt_tensor *starts, dti_cumsum how)
{
    const dt_spec *spec = dt_tensor_spec(x);
    dt_dims dim = DT_DIMS(how.dim);
    dti_cumsum before = how;
    before.exclusive = true;
    dt_tensor *piece = dti_piece_of(x), *sum = totals(piece, how.dim);
    if (!sum) return NULL;
    const dt_spec *each = dti_spec_of_pieces(spec, how.dim, 1, dt_spec_dtype(dt_tensor_spec(sum)));
    dt_tensor *sums = dt_redistribute(dti_of_piece(dti_unsqueeze(sum, dim), each), d->whole);
    dt_tensor *ends = run(sums, starts, before), *own = ends && each ? dti_piece_of(dti_tensor_to(ends, each)) : NULL;
    return own ? dti_of_piece(run(piece, dt_squeeze(own, how.dim), how), spec) : NULL;
}

static dt_status parts_of_cumsum(dt_decomposition *d)
{
    dti_cumsum how = *(const dti_cumsum *)d->attributes;
    dt_tensor *x = d->in[0], *starts = d->in_count > 1 ? d->in[1] : NULL;
    int64_t first;
    if (dti_spec_factors(dt_tensor_spec(x), how.dim, &first) > 1) d->out[0] = run_product(d, x, starts, how, first);
    else d->out[0] = run_pieces(d, x, starts, how);
    return dt_context_status(d->ctx);
}

/* ---- order, split ------------------------------------------------------------------------------------------------ */

static const dt_op topk_numbered, sort;

static dt_status parts_of_sort(dt_decomposition *d)
{
    const dti_sort *how = d->attributes;
    const dt_spec *aside = dti_spec_aside(dt_tensor_spec(d->in[0]), how->dim);
    dt_tensor *x = aside ? dti_tensor_to(d->in[0], aside) : NULL;
    return x ? dt_apply_all(&sort, &x, 1, d->attributes, d->out, 2) : dt_context_status(d->ctx);
}

/* The first of each piece, with their numbers in the whole tensor; of all these the first. */
static dt_status parts_of_topk(dt_decomposition *d)
{
    dti_topk how = *(const dti_topk *)d->attributes;
    const dt_spec *spec = dt_tensor_spec(d->in[0]);
    int64_t k = how.k, most = dti_spec_largest_piece(spec, how.dim);
    dt_tensor *numbers = dti_piece_of(dt_arange(dti_spec_of_dim(spec, how.dim), 0, 1)), *of[2] = { NULL };
    if (most < how.k) how.k = most;
    if (dt_apply_all(&topk_numbered, (dt_tensor *[]){ dti_piece_of(d->in[0]), numbers }, 2, &how, of, 2))
        return dt_context_status(d->ctx);
    for (int r = 0; r < 2; r++) {
        dt_dtype dtype = dt_spec_dtype(dt_tensor_spec(of[r]));
        of[r] = dt_redistribute(dti_of_piece(of[r], dti_spec_of_pieces(spec, how.dim, how.k, dtype)), d->whole);
    }
    how.k = k;
    return dt_apply_all(&topk_numbered, of, 2, &how, d->out, 2);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute running[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_cumsum, dim) },
    { "reverse", DT_ATTRIBUTE_BOOL, offsetof(dti_cumsum, reverse) },
    { "exclusive", DT_ATTRIBUTE_BOOL, offsetof(dti_cumsum, exclusive) },
};
static const dt_attribute sorting[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_sort, dim) },
    { "descending", DT_ATTRIBUTE_BOOL, offsetof(dti_sort, descending) },
};
static const dt_attribute choosing[] = {
    { "k", DT_ATTRIBUTE_INT, offsetof(dti_topk, k) },
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_topk, dim) },
    { "largest", DT_ATTRIBUTE_BOOL, offsetof(dti_topk, largest) },
};

static const dt_op cumsum = {
    .head = "cumsum(x)", .polynomial = "x", .derive = derive_cumsum, .attributes = running,
    .attribute_count = DT_COUNT(running), .attribute_bytes = sizeof(dti_cumsum), .kernel = dti_cpu_cumsum,
    .decompose = parts_of_cumsum, .gradient = dti_grad_cumsum, .doc = "sum of the elements along a dim up to each",
};
static const dt_op cumsum_after_floats = {
    .head = "cumsum_after(x, start)", .polynomial = "x + start", .dtypes = "fs->f", .derive = derive_cumsum,
    .attributes = running, .attribute_count = DT_COUNT(running), .attribute_bytes = sizeof(dti_cumsum),
    .kernel = dti_cpu_cumsum, .decompose = parts_of_cumsum, .doc = "the same from a number per row on",
};
static const dt_op cumsum_after_integers = {
    .head = "cumsum_after_integer(x, start)", .polynomial = "none", .dtypes = "ti->t", .derive = derive_cumsum,
    .attributes = running, .attribute_count = DT_COUNT(running), .attribute_bytes = sizeof(dti_cumsum),
    .kernel = dti_cpu_cumsum, .decompose = parts_of_cumsum, .doc = "the same, of integers",
};
static const dt_op sort = {
    .head = "sort(x)", .polynomial = "none, saves result", .dtypes = "t->ti", .derive = derive_sort,
    .attributes = sorting, .attribute_count = DT_COUNT(sorting), .attribute_bytes = sizeof(dti_sort),
    .kernel = dti_cpu_sort, .decompose = parts_of_sort, .gradient = dti_grad_sort,
    .doc = "elements along a dim in order, and where they were; NaN is the largest",
};
static const dt_op topk = {
    .head = "topk(x)", .polynomial = "none, saves result", .dtypes = "t->ti", .derive = derive_topk,
    .attributes = choosing, .attribute_count = DT_COUNT(choosing), .attribute_bytes = sizeof(dti_topk),
    .kernel = dti_cpu_topk, .decompose = parts_of_topk, .gradient = dti_grad_topk,
    .doc = "the k largest along a dim, or smallest, and where they were",
};
static const dt_op topk_numbered = {
    .head = "topk_numbered(x, numbers)", .polynomial = "none", .dtypes = "ti->ti", .derive = derive_candidates,
    .attributes = choosing, .attribute_count = DT_COUNT(choosing), .attribute_bytes = sizeof(dti_topk),
    .kernel = dti_cpu_topk, .doc = "topk of elements that have numbers; -1 is none, and stands for what is missing",
};

const dt_op *const dti_ops_order[] = {
    &cumsum, &cumsum_after_floats, &cumsum_after_integers, &sort, &topk, &topk_numbered, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_cumsum(dt_tensor *x, int dim) { return run(x, NULL, (dti_cumsum){ .dim = dim }); }

dt_tensor *dti_cumsum_with(dt_tensor *x, dti_cumsum how) { return run(x, NULL, how); }

dt_status dt_sort(dt_tensor *x, int dim, bool descending, dt_tensor *result[2])
{
    return dt_apply_all(&sort, &x, 1, &(dti_sort){ .dim = dim, .descending = descending }, result, 2);
}

dt_status dt_topk(dt_tensor *x, int64_t k, int dim, bool largest, dt_tensor *result[2])
{
    return dt_apply_all(&topk, &x, 1, &(dti_topk){ .k = k, .dim = dim, .largest = largest }, result, 2);
}
