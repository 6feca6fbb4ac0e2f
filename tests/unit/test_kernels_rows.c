/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, norms and picking by number, by values: against loops, along every dim of a few shapes; on ranks that hold a
 * part of what is picked from; and what they refuse. */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "ops/values.h"

static const dt_dtype floats[] = { DT_F64, DT_F32, DT_BF16, DT_F16 };

static void expect_values(dt_tensor *x, const double *due, double ulps, const char *what)
{
    values y;
    read_values(x, &y);
    for (int64_t i = 0; i < y.n; i++)
        expect(near(DT_F64, y.at[i], due[i], ulps, 0), "%s, element %lld: %.17g, not %.17g", what, (long long)i,
               y.at[i], due[i]);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* The sum of exp along a dim, at the row of element i. */
static double sum_at(const values *x, int dim, int64_t i, double *max)
{
    int64_t inner = 1, size = x->shape.dim[dim];
    for (int d = dim + 1; d < x->shape.n; d++) inner *= x->shape.dim[d];
    int64_t first = i / (size * inner) * size * inner + i % inner;
    double sum = 0;
    *max = -INFINITY;
    for (int64_t k = 0; k < size; k++) *max = fmax(*max, x->at[first + k * inner]);
    for (int64_t k = 0; k < size; k++) sum += exp(x->at[first + k * inner] - *max);
    return sum;
}

static void check_softmax(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, int dim)
{
    static _Thread_local values x, soft, log_soft;
    dt_tensor *from = drawn(mesh, dtype, shape, 5);
    read_values(from, &x);
    read_values(dt_softmax(from, dim), &soft);
    read_values(dt_log_softmax(from, dim - shape.n), &log_soft);
    for (int64_t i = 0; i < x.n; i++) {
        double max, sum = sum_at(&x, dim, i, &max);
        double due = rounded(dtype, exp(x.at[i] - max) / sum), logged = rounded(dtype, x.at[i] - max - log(sum));
        double ulps = dtype == DT_F64 ? 8 : 1;
        expect(near(dtype, soft.at[i], due, ulps, 0x1p-24), "softmax of %s: %.17g, not %.17g",
               dt_dtype_text(dtype), soft.at[i], due);
        expect(near(dtype, log_soft.at[i], logged, ulps, 1e-15), "log_softmax of %s: %.17g, not %.17g",
               dt_dtype_text(dtype), log_soft.at[i], logged);
    }
}

static dt_status run_softmax(dt_context *ctx, void *arg)
{
    static const dt_shape shapes[] = {
        { 1, { 1 } }, { 1, { 33 } }, { 2, { 3, 600 } }, { 2, { 40, 19 } }, { 3, { 2, 5, 3 } }, { 2, { 0, 3 } },
        { 2, { 3, 0 } },
    };
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < DT_COUNT(floats); t++)
        for (int s = 0; s < DT_COUNT(shapes); s++)
            for (int d = 0; d < shapes[s].n; d++) check_softmax(mesh, floats[t], shapes[s], d);
    dt_tensor *x = tensor_of(mesh, DT_F32, DT_SHAPE(2, 2), (double[]){ 1000, 1000, -INFINITY, 3 });
    expect_values(dt_softmax(x, 1), (double[]){ 0.5, 0.5, 0, 1 }, 0, "no overflow, and nothing for -inf");
    return dt_context_status(ctx);
}

static void test_softmax(void) { on_one_rank(run_softmax); }

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* The norm of element i by loops over its row of n; centered: layer_norm. */
static double normalized(const values *x, const values *w, const values *b, int64_t n, int64_t i, bool centered)
{
    const double *row = x->at + i / n * n;
    double mean = 0, squares = 0;
    for (int64_t k = 0; k < n && centered; k++) mean += row[k] / (double)n;
    for (int64_t k = 0; k < n; k++) squares += (row[k] - mean) * (row[k] - mean) / (double)n;
    return (x->at[i] - mean) / sqrt(squares + 1e-5) * w->at[i % n] + (b ? b->at[i % n] : 0);
}

static void check_norms(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, dt_shape trailing)
{
    static _Thread_local values x, w, b, rms, layer;
    dt_tensor *from = drawn(mesh, dtype, shape, 1), *weight = drawn(mesh, dtype, trailing, 2);
    dt_tensor *bias = drawn(mesh, dtype, trailing, 3);
    int64_t n = count_of(&trailing);
    read_values(from, &x);
    read_values(weight, &w);
    read_values(bias, &b);
    read_values(dt_rms_norm(from, weight, 1e-5), &rms);
    read_values(dt_layer_norm(from, weight, n % 2 ? bias : NULL, 1e-5), &layer);
    expect(rms.n == x.n && layer.n == x.n, "a norm keeps the shape");
    for (int64_t i = 0; i < x.n; i++) {
        double due = rounded(dtype, normalized(&x, &w, NULL, n, i, false));
        double centered = rounded(dtype, normalized(&x, &w, n % 2 ? &b : NULL, n, i, true));
        double ulps = dtype == DT_F64 ? 16 : 1;
        expect(near(dtype, rms.at[i], due, ulps, 0), "rms_norm of %s: %.17g, not %.17g",
               dt_dtype_text(dtype), rms.at[i], due);
        expect(near(dtype, layer.at[i], centered, ulps, 1e-14), "layer_norm of %s: %.17g, not %.17g",
               dt_dtype_text(dtype), layer.at[i], centered);
    }
}

static dt_status run_norms(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < DT_COUNT(floats); t++) {
        check_norms(mesh, floats[t], DT_SHAPE(3, 7), DT_SHAPE(7));
        check_norms(mesh, floats[t], DT_SHAPE(2, 3, 40), DT_SHAPE(40));
        check_norms(mesh, floats[t], DT_SHAPE(4, 5, 3), DT_SHAPE(5, 3));
        check_norms(mesh, floats[t], DT_SHAPE(6), DT_SHAPE(6));
        check_norms(mesh, floats[t], DT_SHAPE(0, 6), DT_SHAPE(6));
    }
    dt_tensor *x = drawn(mesh, DT_F32, DT_SHAPE(2, 3), 1), *w = drawn(mesh, DT_F32, DT_SHAPE(2), 1);
    expect(!dt_rms_norm(x, w, 1e-5), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected one size for a, got 3 in x and 2 in w", "other dims");
    expect(!dt_layer_norm(NULL, w, NULL, 1e-5), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for x, got none", "no x");
    expect(!dt_rms_norm(x, NULL, 1e-5), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for w, got none", "no w");
    expect(!dt_layer_norm(x, dt_zeros(dt_spec_parse(mesh, "f32[]")), NULL, 1e-5), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected 1 .. 2 dims for w, as x has, got 0", "no dims");
    expect(!dt_softmax(x, 2), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected dim in -2 .. 1, got 2", "softmax");
    expect(!dt_softmax(dt_cast(x, DT_I32), 0), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected a float", "softmax of integers");
    return dt_context_status(ctx);
}

static void test_norms(void) { on_one_rank(run_norms); }

/* ---- by number --------------------------------------------------------------------------------------------------- */

static dt_status run_picks(dt_context *ctx, void *arg)
{
    static const dt_dtype numbers[] = { DT_I64, DT_I32, DT_U8 };
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *w = tensor_of(mesh, DT_BF16, DT_SHAPE(3, 2), (double[]){ 1, 2, 3, 4, 5, 6 });
    (void)arg;
    for (int t = 0; t < DT_COUNT(numbers); t++) {
        dt_tensor *ids = tensor_of(mesh, numbers[t], DT_SHAPE(2, 2), (double[]){ 2, 0, 1, 2 });
        expect_values(dt_embedding(w, ids), (double[]){ 5, 6, 1, 2, 3, 4, 5, 6 }, 0, "embedding");
    }
    dt_tensor *two = tensor_of(mesh, DT_I64, DT_SHAPE(3), (double[]){ 1, 1, 0 });
    expect_values(dt_index_select(w, 1, two), (double[]){ 2, 2, 1, 4, 4, 3, 6, 6, 5 }, 0, "index_select");
    dt_tensor *each = tensor_of(mesh, DT_I64, DT_SHAPE(3, 1), (double[]){ 1, 0, 1 });
    expect_values(dt_gather(w, 1, each), (double[]){ 2, 3, 6 }, 0, "gather");
    dt_tensor *down = tensor_of(mesh, DT_I64, DT_SHAPE(2, 2), (double[]){ 2, 0, 2, 0 });
    expect_values(dt_gather(w, 0, down), (double[]){ 5, 2, 5, 2 }, 0, "gather down");
    dt_tensor *y = tensor_of(mesh, DT_BF16, DT_SHAPE(2, 2), (double[]){ 10, 20, 30, 40 });
    expect_values(dt_scatter_add(w, 0, down, y), (double[]){ 1, 62, 3, 4, 45, 6 }, 0, "scatter_add");
    dt_tensor *hot = dt_one_hot(two, 3, DT_F16);
    expect_values(hot, (double[]){ 0, 1, 0, 0, 1, 0, 1, 0, 0 }, 0, "one_hot");
    expect(strcmp(dt_spec_text(dt_tensor_spec(hot)), "f16[3,3]") == 0, "%s", dt_spec_text(dt_tensor_spec(hot)));
    values none;
    read_values(dt_embedding(w, dt_zeros(dt_spec_parse(mesh, "i64[0]"))), &none);
    expect(none.n == 0 && none.shape.n == 2, "no ids, no rows");
    return dt_context_status(ctx);
}

static void test_picks(void) { on_one_rank(run_picks); }

static dt_status run_bad_picks(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *w = dt_zeros(dt_spec_parse(mesh, "f32[3,2]")), *f = dt_zeros(dt_spec_parse(mesh, "f32[2]"));
    dt_tensor *high = tensor_of(mesh, DT_I64, DT_SHAPE(2), (double[]){ 0, 3 });
    dt_tensor *low = tensor_of(mesh, DT_I32, DT_SHAPE(1), (double[]){ -1 });
    (void)arg;
    expect(!dt_embedding(w, high), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected ids in 0 .. 2, got 3", "beyond the table");
    expect(!dt_embedding(w, low), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected ids in 0 .. 2, got -1", "below it");
    expect(!dt_one_hot(high, 3, DT_F32), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected ids in 0 .. 2, got 3", "one_hot");
    expect(!dt_one_hot(high, -1, DT_F32), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a size of at least 0, got -1", "one_hot of less than nothing");
    expect(!dt_embedding(w, f), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected an integer for ids, got f32[2]", "ids that are none");
    expect(!dt_gather(w, 1, high), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected 2 dims for ids", "gather");
    expect(!dt_index_select(w, 2, high), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected dim in -2 .. 1, got 2", "index_select");
    return dt_context_status(ctx);
}

static void test_bad_picks(void) { on_one_rank(run_bad_picks); }

/* ---- on ranks that hold a part ----------------------------------------------------------------------------------- */

typedef struct placed { const char *table, *ids, *due; } placed;

static const placed places[] = {
    { "x:S(0)", "", "x:P(sum)" }, { "x:S(1)", "", "x:S(1)" }, { "", "x:S(0)", "x:S(0)" },
    { "x:P(sum)", "", "x:P(sum)" },
};

static dt_status run_parts(dt_context *ctx, void *arg)
{
    static const double ids[] = { 12, 0, 5, 5, 9, 1, 7 };
    dt_mesh *mesh = mesh_of(ctx);
    double due[14];
    (void)arg;
    for (int i = 0; i < 14; i++) due[i] = ids[i / 2] * 2 + i % 2;
    dt_tensor *w = dt_arange(dt_spec_parse(mesh, "f32[13,2]"), 0, 1), *n = tensor_of(mesh, DT_I64, DT_SHAPE(7), ids);
    dt_tensor *picked = tensor_of(mesh, DT_F32, DT_SHAPE(7, 2), due);
    for (int k = 0; k < DT_COUNT(places); k++) {
        dt_tensor *y = dt_embedding(dt_redistribute(w, places[k].table), dt_redistribute(n, places[k].ids));
        expect(y && dt_spec_has(dt_tensor_spec(y), places[k].due), "%s, %s: %s", places[k].table, places[k].ids,
               y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(ctx));
        expect(dt_tensor_close(y, picked, 0, 0), "%s, %s: other values", places[k].table, places[k].ids);
    }
    dt_tensor *x = dt_redistribute(w, "x:S(0)"), *mean = dt_mean(x, DT_DIMS(0), false);
    expect(dt_spec_has(dt_tensor_spec(mean), "x:P(sum)"), "%s", dt_spec_text(dt_tensor_spec(mean)));
    expect(dt_tensor_close(mean, tensor_of(mesh, DT_F32, DT_SHAPE(2), (double[]){ 12, 13 }), 1e-6, 0), "an even mean");
    expect(dt_tensor_item(dt_add_scalar(dt_sum(x, DT_ALL, false), 10)) == 335, "a number is added once");
    expect(dt_tensor_item(dt_max(dt_neg(x), DT_ALL, false)) == 0, "max of neg");
    return dt_context_status(ctx);
}

static void test_parts(void)
{
    char error[512] = "";
    for (int ranks = 2; ranks <= 4; ranks++)
        expect(dt_launch_threads(ranks, run_parts, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks, error);
}

static dt_status run_bad_id(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *w = dt_zeros(dt_spec_parse(mesh, "f32[13,2]@x:S(0)"));
    (void)arg;
    expect(!dt_embedding(w, tensor_of(mesh, DT_I64, DT_SHAPE(1), (double[]){ 13 })), "a result");
    expect(dt_context_status(ctx) == DT_ERR_ARG, "%s", dt_context_error(ctx));
    expect(strstr(dt_context_error(ctx), "expected ids in 0 .. 12, got 13"), "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void test_bad_id(void)
{
    char error[512] = "";
    expect(dt_launch_threads(3, run_bad_id, NULL, error, sizeof error) == DT_ERR_ARG, "%s", error);
}

static const test_row rows[] = {
    { "softmax", test_softmax }, { "norms", test_norms }, { "picks", test_picks }, { "bad_picks", test_bad_picks },
    { "parts", test_parts }, { "bad_id", test_bad_id },
};

const suite the_suite = { "kernels_rows", rows, DT_COUNT(rows) };
