/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that pick elements by number. They are linear in what is picked from: a rank gives what it holds and nothing
 * else, so a split of the dim that is picked from leaves a sum. */
#include <stdio.h>

#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* The dims of x as letters a, b, c.., the one along which it goes as *letters* say. */
static void put_dims(dti_pen *pen, int rank, int dim, const char *letters)
{
    for (int d = 0; d < rank; d++) {
        if (d == dim) dti_put(pen, " %s", letters);
        else dti_put(pen, " %c", 'a' + d);
    }
}

/* "a x c, n -> a n c" for dim 1 of 3. */
static dt_status derive_index_select(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                     dt_derived *out)
{
    const dti_along *along = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)ctx;
    (void)n;
    put_dims(&pen, shapes[0].n, along->dim, "x");
    dti_put(&pen, ", n ->");
    put_dims(&pen, shapes[0].n, along->dim, "n");
    return DT_OK;
}

/* "a x c, a n c -> a n c". */
static dt_status derive_gather(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_along *along = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)ctx;
    (void)n;
    put_dims(&pen, shapes[0].n, along->dim, "x");
    dti_put(&pen, ",");
    put_dims(&pen, shapes[0].n, along->dim, "n");
    dti_put(&pen, " ->");
    put_dims(&pen, shapes[0].n, along->dim, "n");
    return DT_OK;
}

/* "a x c, a n c, a n c -> a x c". */
static dt_status derive_scatter_add(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                    dt_derived *out)
{
    const dti_along *along = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)ctx;
    (void)n;
    for (int term = 0; term < 3; term++) {
        put_dims(&pen, shapes[0].n, along->dim, term ? "n" : "x");
        dti_put(&pen, "%s", term < 2 ? "," : " ->");
    }
    put_dims(&pen, shapes[0].n, along->dim, "x");
    return DT_OK;
}

/* "a x c, A B, a A B c -> a x c" for ids of two dims. */
static dt_status derive_index_add(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out)
{
    const dti_along *along = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    char letters[2 * DT_MAX_DIMS + 1] = "";
    dti_pen ids = { letters, sizeof letters, 0 };
    (void)ctx;
    for (int d = 0; n > 1 && d < shapes[1].n; d++) dti_put(&ids, "%s%c", d ? " " : "", 'A' + d);
    put_dims(&pen, shapes[0].n, along->dim, "x");
    dti_put(&pen, ", %s,", letters);
    put_dims(&pen, shapes[0].n, along->dim, letters);
    dti_put(&pen, " ->");
    put_dims(&pen, shapes[0].n, along->dim, "x");
    return DT_OK;
}

static dt_status derive_one_hot(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    const dti_one_hot *one_hot = attributes;
    (void)shapes;
    (void)n;
    if (one_hot->size < 0)
        return dt_context_fail(ctx, DT_ERR_ARG, "one_hot: expected a size of at least 0, got %lld",
                               (long long)one_hot->size);
    out->size[0].letter = 'v';
    out->size[0].size = one_hot->size;
    out->size_count = 1;
    return DT_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute one_dim[] = { { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) } };
static const dt_attribute classes[] = {
    { "size", DT_ATTRIBUTE_INT, offsetof(dti_one_hot, size) },
    { "dtype", DT_ATTRIBUTE_DTYPE, offsetof(dti_one_hot, dtype) },
};

static const dt_op embedding = {
    .head = "embedding(w, ids)", .rule = "v h, ... -> ... h", .polynomial = "w, saves ids", .dtypes = "ti->t",
    .kernel = dti_cpu_embedding, .gradient = dti_grad_embedding, .doc = "rows of w by their numbers",
};
static const dt_op index_select = {
    .head = "index_select(x, ids)", .polynomial = "x, saves ids", .dtypes = "ti->t", .derive = derive_index_select,
    .attributes = one_dim, .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_index_select, .gradient = dti_grad_index_select,
    .doc = "slices of x along a dim by their numbers",
};
static const dt_op gather = {
    .head = "gather(x, ids)", .polynomial = "x, saves ids", .dtypes = "ti->t", .derive = derive_gather,
    .attributes = one_dim,
    .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along), .kernel = dti_cpu_gather,
    .gradient = dti_grad_gather, .doc = "elements of x, numbered along a dim",
};
static const dt_op scatter_add = {
    .head = "scatter_add(x, ids, y)", .polynomial = "x + y, saves ids", .dtypes = "tit->t",
    .derive = derive_scatter_add,
    .attributes = one_dim, .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_scatter_add, .gradient = dti_grad_scatter_add,
    .doc = "x, to whose elements, numbered along a dim, those of y are added",
};
static const dt_op index_add = {
    .head = "index_add(x, ids, y)", .polynomial = "x + y, saves ids", .dtypes = "tit->t", .derive = derive_index_add,
    .attributes = one_dim, .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_index_add, .gradient = dti_grad_index_add,
    .doc = "x, to whose slices along a dim, by their numbers, those of y are added",
};
static const dt_op one_hot = {
    .head = "one_hot(ids)", .rule = "... -> ... v", .polynomial = "none", .dtypes = "i->d", .derive = derive_one_hot,
    .attributes = classes, .attribute_count = DT_COUNT(classes), .attribute_bytes = sizeof(dti_one_hot),
    .kernel = dti_cpu_one_hot, .doc = "1 at each number, along a new last dim, else 0",
};

const dt_op *const dti_ops_index[] = { &embedding, &index_select, &gather, &scatter_add, &index_add, &one_hot, NULL };

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_embedding(dt_tensor *table, dt_tensor *ids)
{
    return dt_apply(&embedding, (dt_tensor *[]){ table, ids }, 2, NULL);
}

dt_tensor *dt_index_select(dt_tensor *x, int dim, dt_tensor *ids)
{
    return dt_apply(&index_select, (dt_tensor *[]){ x, ids }, 2, &(dti_along){ .dim = dim });
}

dt_tensor *dt_gather(dt_tensor *x, int dim, dt_tensor *ids)
{
    return dt_apply(&gather, (dt_tensor *[]){ x, ids }, 2, &(dti_along){ .dim = dim });
}

dt_tensor *dt_scatter_add(dt_tensor *x, int dim, dt_tensor *ids, dt_tensor *values)
{
    return dt_apply(&scatter_add, (dt_tensor *[]){ x, ids, values }, 3, &(dti_along){ .dim = dim });
}

dt_tensor *dt_index_add(dt_tensor *x, int dim, dt_tensor *ids, dt_tensor *values)
{
    return dt_apply(&index_add, (dt_tensor *[]){ x, ids, values }, 3, &(dti_along){ .dim = dim });
}

dt_tensor *dt_one_hot(dt_tensor *ids, int64_t size, dt_dtype dtype)
{
    return dt_apply(&one_hot, &ids, 1, &(dti_one_hot){ size, dtype, 0 });
}

dt_tensor *dt_one_hot_placed(dt_tensor *ids, int64_t size, dt_dtype dtype, const char *placements)
{
    return dt_apply_placed(&one_hot, &ids, 1, &(dti_one_hot){ size, dtype, 0 }, placements);
}
