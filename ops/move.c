/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements moved along one dim: cat, stack, split, slice, select, roll, flip, pad. A row's derive says which parts of
 * the result come from where (dt_index_map); the kernel copies them, or, where the dim is split, they are pulled.
 * Values are those of the operands, so what is P stays so. Invariant: parts of a result ascend and do not overlap. */
#include <stddef.h>
#include <string.h>

#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"
#include "tensor/tensor.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* The dims of a tensor, "a b1 c": that of the map with a number, 0: without. dropped: not at all. */
static void put_term(dti_pen *pen, int dims, int dim, int number, bool dropped)
{
    for (int d = 0; d < dims; d++) {
        if (dropped && d == dim) continue;
        dti_put(pen, " %c", 'a' + d);
        if (d == dim && number) dti_put(pen, "%d", number);
    }
}

static void tell_size(dt_derived *out, int dim, int number, int64_t size)
{
    out->size[out->size_count].letter = (char)('a' + dim);
    out->size[out->size_count].number = (uint8_t)number;
    out->size[out->size_count++].size = size;
}

static void add_part(dt_derived *out, dt_index_part part) { out->map.part[out->map.part_count++] = part; }

/* "a b1 c -> a b c", with this size of b in the result. */
static void begin_one(const dt_shape *x, int dim, int64_t size, dt_derived *out)
{
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    put_term(&pen, x->n, dim, 1, false);
    dti_put(&pen, " ->");
    put_term(&pen, x->n, dim, 0, false);
    tell_size(out, dim, 0, size);
    out->map.dim = dim;
}

/* ---- one operand ------------------------------------------------------------------------------------------------- */

/* As Python counts: from the end where negative, no further than the ends. */
static int64_t clamp_index(int64_t index, int64_t n)
{
    if (index < 0) index += n;
    return index < 0 ? 0 : index < n ? index : n;
}

static dt_status derive_slice(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_slice *asked = attributes;
    (void)n;
    if (asked->step < 1)
        return dt_context_fail(ctx, DT_ERR_ARG, "slice: expected a step of at least 1, got %lld; see dt_flip",
                               (long long)asked->step);
    int64_t start = clamp_index(asked->start, shapes[0].dim[asked->dim]);
    int64_t stop = clamp_index(asked->stop, shapes[0].dim[asked->dim]);
    int64_t count = stop > start ? (stop - start - 1) / asked->step + 1 : 0;
    begin_one(&shapes[0], asked->dim, count, out);
    add_part(out, (dt_index_part){ .hi = count, .from = start, .step = asked->step });
    return DT_OK;
}

static dt_status derive_select(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_at *at = attributes;
    int64_t size = shapes[0].dim[at->dim], index = at->index < 0 ? at->index + size : at->index;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)n;
    if (index < 0 || index >= size)
        return dt_context_fail(ctx, DT_ERR_ARG, "select: expected an index of dim %d, which has %lld elements, got "
                               "%lld", at->dim, (long long)size, (long long)at->index);
    put_term(&pen, shapes[0].n, at->dim, 1, false);
    dti_put(&pen, " ->");
    put_term(&pen, shapes[0].n, at->dim, 0, true);
    out->map.dim = at->dim;
    add_part(out, (dt_index_part){ .hi = 1, .from = index, .step = 1 });
    return DT_OK;
}

static dt_status derive_roll(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_at *by = attributes;
    int64_t size = shapes[0].dim[by->dim], shift = size ? by->index % size : 0;
    (void)ctx;
    (void)n;
    if (shift < 0) shift += size;
    begin_one(&shapes[0], by->dim, size, out);
    if (shift) add_part(out, (dt_index_part){ .hi = shift, .from = size - shift, .step = 1 });
    add_part(out, (dt_index_part){ .lo = shift, .hi = size, .step = 1 });
    return DT_OK;
}

static dt_status derive_flip(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int dim = ((const dti_along *)attributes)->dim;
    int64_t size = shapes[0].dim[dim];
    (void)ctx;
    (void)n;
    begin_one(&shapes[0], dim, size, out);
    add_part(out, (dt_index_part){ .hi = size, .from = size - 1, .step = -1 });
    return DT_OK;
}

static dt_status derive_pad(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_pad *by = attributes;
    int64_t size = shapes[0].dim[by->dim];
    (void)n;
    if (by->before < 0 || by->after < 0)
        return dt_context_fail(ctx, DT_ERR_ARG, "pad: expected at least 0 elements before and after, got %lld and "
                               "%lld; see dt_slice", (long long)by->before, (long long)by->after);
    if (by->before > INT64_MAX - size || by->after > INT64_MAX - size - by->before)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "pad: dim %d would have more than 2^63 - 1 elements", by->dim);
    begin_one(&shapes[0], by->dim, by->before + size + by->after, out);
    add_part(out, (dt_index_part){ .lo = by->before, .hi = by->before + size, .step = 1 });
    return DT_OK;
}

/* ---- one to several ---------------------------------------------------------------------------------------------- */

/* *sizes, one of which may be -1, as those of a dim's pieces. */
static bool read_sizes(const dt_shape *asked, int64_t n, int64_t *sizes)
{
    int64_t left = n;
    int open = -1;
    if (asked->n < 1 || asked->n > DT_MAX_RESULTS) return false;
    for (int i = 0; i < asked->n; i++) {
        sizes[i] = asked->dim[i];
        if (sizes[i] == -1 && open < 0) open = i;
        else if (sizes[i] < 0 || sizes[i] > left) return false;
        else left -= sizes[i];
    }
    if (open >= 0) sizes[open] = left;
    return open >= 0 || left == 0;
}

/* "a b -> a b1, a b2": as many results as sizes. */
static dt_status derive_split(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_unflatten *into = attributes;
    int64_t sizes[DT_MAX_RESULTS], size = shapes[0].dim[into->dim], at = 0;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)n;
    if (!read_sizes(&into->sizes, size, sizes))
        return dt_context_fail(ctx, DT_ERR_SHAPE, "split: expected 1 .. %d sizes that are %lld together, one of them "
                               "-1 at most, for dim %d", DT_MAX_RESULTS, (long long)size, into->dim);
    put_term(&pen, shapes[0].n, into->dim, 0, false);
    dti_put(&pen, " ->");
    out->map.dim = into->dim;
    for (int r = 0; r < into->sizes.n; r++) {
        dti_put(&pen, "%s", r ? "," : "");
        put_term(&pen, shapes[0].n, into->dim, r + 1, false);
        tell_size(out, into->dim, r + 1, sizes[r]);
        add_part(out, (dt_index_part){ .result = r, .hi = sizes[r], .from = at, .step = 1 });
        at += sizes[r];
    }
    return DT_OK;
}

/* ---- several to one ---------------------------------------------------------------------------------------------- */

/* The value is a sum, of operands that are 0 where others are. */
static void put_sum(int n, dt_derived *out)
{
    dti_pen pen = { out->polynomial, sizeof out->polynomial, 0 };
    for (int i = 0; i < n; i++) dti_put(&pen, "%sx%d", i ? " + " : "", i);
    dti_put(&pen, ", rising");
}

static dt_status check_all_there(dt_context *ctx, const char *op, const dt_shape *shapes, int n)
{
    for (int i = 0; i < n; i++)
        if (shapes[i].n < 0)
            return dt_context_fail(ctx, DT_ERR_ARG, "%s: expected a tensor for x%d, got none", op, i);
    return DT_OK;
}

/* "a b1, a b2 -> a b". */
static dt_status derive_cat(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int dim = ((const dti_along *)attributes)->dim;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    int64_t at = 0;
    dt_status status = check_all_there(ctx, "cat", shapes, n);
    if (status) return status;
    out->map.dim = dim;
    for (int i = 0; i < n; i++) {
        int64_t size = shapes[i].n > dim ? shapes[i].dim[dim] : 0;     /* of too few dims: binding refuses it      */
        if (size > INT64_MAX - at)
            return dt_context_fail(ctx, DT_ERR_SHAPE, "cat: dim %d would have more than 2^63 - 1 elements", dim);
        dti_put(&pen, "%s", i ? "," : "");
        put_term(&pen, shapes[0].n, dim, i + 1, false);
        add_part(out, (dt_index_part){ .operand = i, .lo = at, .hi = at + size, .step = 1 });
        at += size;
    }
    dti_put(&pen, " ->");
    put_term(&pen, shapes[0].n, dim, 0, false);
    tell_size(out, dim, 0, at);
    put_sum(n, out);
    return DT_OK;
}

/* "a b, a b -> a A b". */
static dt_status derive_stack(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int64_t dim = ((const dti_stack *)attributes)->dim, dims = shapes[0].n;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    dt_status status = check_all_there(ctx, "stack", shapes, n);
    if (status) return status;
    if (dim < -dims - 1 || dim > dims)
        return dt_context_fail(ctx, DT_ERR_ARG, "stack: expected dim in %lld .. %lld, got %lld", (long long)-dims - 1,
                               (long long)dims, (long long)dim);
    if (dims == DT_MAX_DIMS)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "stack: expected at most %d dims, got %lld", DT_MAX_DIMS - 1,
                               (long long)dims);
    out->map.dim = (int)(dim < 0 ? dim + dims + 1 : dim);
    for (int i = 0; i < n; i++) {
        dti_put(&pen, "%s", i ? "," : "");
        put_term(&pen, (int)dims, -1, 0, false);
        add_part(out, (dt_index_part){ .operand = i, .lo = i, .hi = i + 1, .step = 1 });
    }
    dti_put(&pen, " ->");
    for (int d = 0; d <= dims; d++)
        dti_put(&pen, " %c", d == out->map.dim ? 'A' : 'a' + d - (d > out->map.dim));
    out->size[out->size_count].letter = 'A';
    out->size[out->size_count++].size = n;
    put_sum(n, out);
    return DT_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute one_dim[] = { { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) } };
static const dt_attribute new_dim[] = { { "dim", DT_ATTRIBUTE_INT, offsetof(dti_stack, dim) } };
static const dt_attribute into[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_unflatten, dim) },
    { "sizes", DT_ATTRIBUTE_SHAPE, offsetof(dti_unflatten, sizes) },
};
static const dt_attribute from_to[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_slice, dim) }, { "start", DT_ATTRIBUTE_INT, offsetof(dti_slice, start) },
    { "stop", DT_ATTRIBUTE_INT, offsetof(dti_slice, stop) }, { "step", DT_ATTRIBUTE_INT, offsetof(dti_slice, step) },
};
static const dt_attribute one_index[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_at, dim) }, { "index", DT_ATTRIBUTE_INT, offsetof(dti_at, index) },
};
static const dt_attribute by[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_at, dim) }, { "shift", DT_ATTRIBUTE_INT, offsetof(dti_at, index) },
};
static const dt_attribute around[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_pad, dim) }, { "before", DT_ATTRIBUTE_INT, offsetof(dti_pad, before) },
    { "after", DT_ATTRIBUTE_INT, offsetof(dti_pad, after) }, { "value", DT_ATTRIBUTE_NUMBER, offsetof(dti_pad, value) },
};

static const dt_op cat = {
    .head = "cat(x...)", .derive = derive_cat, .attributes = one_dim, .attribute_count = DT_COUNT(one_dim),
    .attribute_bytes = sizeof(dti_along), .kernel = dti_cpu_move, .gradient = dti_grad_cat,
    .doc = "one behind the other along dim",
};
static const dt_op stack = {
    .head = "stack(x...)", .derive = derive_stack, .attributes = new_dim, .attribute_count = DT_COUNT(new_dim),
    .attribute_bytes = sizeof(dti_stack), .kernel = dti_cpu_move, .gradient = dti_grad_stack,
    .doc = "one behind the other along a new dim, dim of the result",
};
static const dt_op split = {
    .head = "split(x)", .polynomial = "x, rising", .derive = derive_split, .attributes = into,
    .attribute_count = DT_COUNT(into), .attribute_bytes = sizeof(dti_unflatten), .kernel = dti_cpu_move,
    .gradient = dti_grad_split, .doc = "a dim in pieces of these sizes",
};
static const dt_op slice = {
    .head = "slice(x)", .polynomial = "x, rising", .derive = derive_slice, .attributes = from_to,
    .attribute_count = DT_COUNT(from_to), .attribute_bytes = sizeof(dti_slice), .kernel = dti_cpu_move,
    .gradient = dti_grad_slice, .doc = "start to stop of dim, by step",
};
static const dt_op select_row = {
    .head = "select(x)", .polynomial = "x, rising", .derive = derive_select, .attributes = one_index,
    .attribute_count = DT_COUNT(one_index), .attribute_bytes = sizeof(dti_at), .kernel = dti_cpu_move,
    .gradient = dti_grad_select, .doc = "one index of dim, which is taken out",
};
static const dt_op roll = {
    .head = "roll(x)", .polynomial = "x, rising", .derive = derive_roll, .attributes = by,
    .attribute_count = DT_COUNT(by), .attribute_bytes = sizeof(dti_at), .kernel = dti_cpu_move,
    .gradient = dti_grad_roll, .doc = "shifted along dim, what leaves at its end comes in at its beginning",
};
static const dt_op flip = {
    .head = "flip(x)", .polynomial = "x, rising", .derive = derive_flip, .attributes = one_dim,
    .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along), .kernel = dti_cpu_move,
    .gradient = dti_grad_flip, .doc = "dim turned round",
};
/* x + 1: of what is P the first rank has the number. */
static const dt_op pad = {
    .head = "pad(x)", .polynomial = "x + 1, rising", .derive = derive_pad, .attributes = around,
    .attribute_count = DT_COUNT(around), .attribute_bytes = sizeof(dti_pad), .kernel = dti_cpu_move,
    .gradient = dti_grad_pad, .doc = "a number before and after along dim",
};

const dt_op *const dti_ops_move[] = { &cat, &stack, &split, &slice, &select_row, &roll, &flip, &pad, NULL };

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_slice(dt_tensor *x, int dim, int64_t start, int64_t stop, int64_t step)
{
    return dt_apply(&slice, &x, 1, &(dti_slice){ .dim = dim, .start = start, .stop = stop, .step = step });
}

dt_tensor *dt_select(dt_tensor *x, int dim, int64_t index)
{
    return dt_apply(&select_row, &x, 1, &(dti_at){ .dim = dim, .index = index });
}

dt_tensor *dt_roll(dt_tensor *x, int dim, int64_t shift)
{
    return dt_apply(&roll, &x, 1, &(dti_at){ .dim = dim, .index = shift });
}

dt_tensor *dt_flip(dt_tensor *x, int dim) { return dt_apply(&flip, &x, 1, &(dti_along){ .dim = dim }); }

dt_tensor *dt_pad(dt_tensor *x, int dim, int64_t before, int64_t after, double value)
{
    return dt_apply(&pad, &x, 1, &(dti_pad){ .dim = dim, .before = before, .after = after, .value = value });
}

/* A call has at most so many operands, or results. More are put together in groups, and groups of these, so that each
 * element is copied as often as there are levels. */
static int64_t group_of(int64_t n, int64_t most)
{
    int64_t each = 1;
    while (each * most < n) each *= most;
    return each;
}

static dt_tensor *join(bool new_dim_first, dt_tensor *const *x, int n, int dim)
{
    dt_tensor *group[DT_MAX_OPERANDS];
    int64_t each = group_of(n, DT_MAX_OPERANDS);
    int count = 0;
    if (n <= DT_MAX_OPERANDS && new_dim_first) return dt_apply(&stack, x, n, &(dti_stack){ dim });
    if (n <= DT_MAX_OPERANDS) return dt_apply(&cat, x, n, &(dti_along){ .dim = dim });
    for (int64_t at = 0; at < n; at += each)
        group[count++] = join(new_dim_first, x + at, (int)(n - at < each ? n - at : each), dim);
    return dt_apply(&cat, group, count, &(dti_along){ .dim = dim });
}

dt_tensor *dt_cat(dt_tensor *const *x, int n, int dim) { return join(false, x, n, dim); }
dt_tensor *dt_stack(dt_tensor *const *x, int n, int dim) { return join(true, x, n, dim); }

typedef struct pieces { const int64_t *sizes; int64_t each; int last; } pieces; /* sizes; NULL: each, but the last    */

static int64_t size_of(const pieces *p, int64_t i) { return p->sizes ? p->sizes[i] : i == p->last ? -1 : p->each; }

/* Of pieces first .. end - 1 together. */
static int64_t size_of_all(const pieces *p, int64_t first, int64_t end)
{
    int64_t all = 0;
    for (int64_t i = first; i < end; i++) {
        int64_t size = size_of(p, i);
        if (size == -1) return -1;
        all = size > INT64_MAX - all ? INT64_MAX : all + size;
    }
    return all;
}

static dt_status take_apart(dt_tensor *x, const pieces *p, int64_t first, int64_t n, int dim, dt_tensor **result)
{
    int64_t each = group_of(n, DT_MAX_RESULTS);
    dti_unflatten how = { .dim = dim };
    dt_tensor *group[DT_MAX_RESULTS] = { NULL };
    for (int64_t at = 0; at < n; at += each)
        how.sizes.dim[how.sizes.n++] = size_of_all(p, first + at, first + (n - at < each ? n : at + each));
    if (each == 1) return dt_apply_all(&split, &x, 1, &how, result, (int)n);
    dt_status status = dt_apply_all(&split, &x, 1, &how, group, how.sizes.n);
    for (int64_t at = 0, i = 0; at < n && status == DT_OK; at += each, i++)
        status = take_apart(group[i], p, first + at, n - at < each ? n - at : each, dim, result + at);
    return status;
}

static dt_status take_all(dt_tensor *x, const pieces *p, int n, int dim, dt_tensor **result)
{
    dt_status status = take_apart(x, p, 0, n, dim, result);
    for (int i = 0; i < n && status; i++) result[i] = NULL;
    return status;
}

static dt_status check_count(const dt_tensor *x, const char *op, int n, const void *sizes, dt_tensor *const *result)
{
    if (!x) return DT_ERR_ARG;
    if (!sizes || !result)
        return dt_context_fail(x->ctx, DT_ERR_ARG, "%s: got no %s", op, sizes ? "room for pieces" : "sizes");
    if (n > 0) return DT_OK;
    return dt_context_fail(x->ctx, DT_ERR_ARG, "%s: expected at least one piece, got %d", op, n);
}

dt_status dt_split(dt_tensor *x, const int64_t *sizes, int n, int dim, dt_tensor **result)
{
    dt_status status = check_count(x, "split", n, sizes, result);
    return status ? status : take_all(x, &(pieces){ .sizes = sizes }, n, dim, result);
}

dt_status dt_chunk(dt_tensor *x, int n, int dim, dt_tensor **result)
{
    dt_status status = check_count(x, "chunk", n, x, result);
    if (status) return status;
    const dt_shape *shape = &x->spec->shape;
    int at = dim < 0 ? dim + shape->n : dim;
    int64_t size = at >= 0 && at < shape->n ? shape->dim[at] : 0, each = size / n + (size % n != 0);
    int count = each ? (int)((size - 1) / each + 1) : n;
    for (int i = count; i < n; i++) result[i] = NULL;
    return take_all(x, &(pieces){ .each = each, .last = count - 1 }, count, dim, result);
}
