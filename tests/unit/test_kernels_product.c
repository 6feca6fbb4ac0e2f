/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices by values: against three loops, over sizes around tiles and panels, batches that broadcast,
 * dtypes; and what they refuse. */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "ops/gradients.h"
#include "ops/values.h"

static const dt_dtype dtypes[] = { DT_F64, DT_F32, DT_BF16, DT_F16, DT_I64, DT_I32, DT_U8, DT_BOOL };

/* ---- by loops ---------------------------------------------------------------------------------------------------- */

typedef struct sizes { int64_t m, n, k; } sizes;

static const sizes all_sizes[] = {
    { 1, 1, 1 }, { 3, 4, 5 }, { 6, 16, 8 }, { 7, 17, 9 }, { 13, 33, 2 }, { 1, 40, 30 }, { 40, 1, 30 }, { 5, 3, 600 },
    { 0, 3, 2 }, { 3, 0, 2 }, { 3, 4, 0 }, { 2, 2, 0 },
};

/* One element, its sum of magnitudes. */
typedef struct element { double sum, magnitude; } element;

static element multiply(const double *a, int64_t a_step, const double *b, int64_t b_step, int64_t k)
{
    element e = { 0, 0 };
    for (int64_t p = 0; p < k; p++) {
        e.sum += a[p * a_step] * b[p * b_step];
        e.magnitude += fabs(a[p * a_step] * b[p * b_step]);
    }
    return e;
}

static double least_of(dt_dtype dtype, element e)
{
    return dtype >= DT_I64 ? 0 : e.magnitude * (dtype == DT_F64 ? 1e-14 : 1e-5);
}

static double due_of(dt_dtype dtype, double sum)
{
    return dtype == DT_U8 ? (double)((int64_t)sum & 255) : rounded(dtype, sum);
}

static void expect_element(dt_dtype dtype, double got, element e, const char *what, int64_t at)
{
    double due = due_of(dtype, e.sum);
    expect(near(dtype, got, due, 1, least_of(dtype, e)), "%s, %s, element %lld: %.17g, not %.17g", what,
           dt_dtype_text(dtype), (long long)at, got, due);
}

static void check_matmul(dt_mesh *mesh, dt_dtype dtype, sizes s)
{
    static _Thread_local values a, b, c;
    dt_tensor *x = drawn(mesh, dtype, DT_SHAPE(s.m, s.k), 1), *y = drawn(mesh, dtype, DT_SHAPE(s.k, s.n), 2);
    read_values(x, &a);
    read_values(y, &b);
    read_values(dt_matmul(x, y), &c);
    for (int64_t i = 0; i < c.n; i++)
        expect_element(dtype, c.at[i], multiply(a.at + i / s.n * s.k, 1, b.at + i % s.n, s.n, s.k), "matmul", i);
}

static void check_linear(dt_mesh *mesh, dt_dtype dtype, sizes s, bool biased)
{
    static _Thread_local values a, w, bias, c;
    dt_tensor *x = drawn(mesh, dtype, DT_SHAPE(s.m, s.k), 1), *y = drawn(mesh, dtype, DT_SHAPE(s.n, s.k), 2);
    dt_tensor *z = drawn(mesh, dtype, DT_SHAPE(s.n), 3);
    read_values(x, &a);
    read_values(y, &w);
    read_values(z, &bias);
    read_values(dt_linear(x, y, biased ? z : NULL), &c);
    expect(c.n == s.m * s.n, "linear: %lld elements", (long long)c.n);
    for (int64_t i = 0; i < c.n; i++) {
        element e = multiply(a.at + i / s.n * s.k, 1, w.at + i % s.n * s.k, 1, s.k);
        if (biased) e.sum += bias.at[i % s.n];
        e.magnitude += fabs(bias.at[i % s.n]);
        expect_element(dtype, c.at[i], e, "linear", i);
    }
}

static void check_addmm(dt_mesh *mesh, dt_dtype dtype, sizes s, dt_shape shape)
{
    static _Thread_local values a, b, add, c;
    dt_tensor *x = drawn(mesh, dtype, DT_SHAPE(s.m, s.k), 1), *y = drawn(mesh, dtype, DT_SHAPE(s.k, s.n), 2);
    dt_tensor *z = drawn(mesh, dtype, shape, 3);
    read_values(x, &a);
    read_values(y, &b);
    read_values(z, &add);
    read_values(dt_addmm(z, x, y), &c);
    expect(c.n == s.m * s.n, "addmm: %lld elements", (long long)c.n);
    for (int64_t i = 0; i < c.n; i++) {
        element e = multiply(a.at + i / s.n * s.k, 1, b.at + i % s.n, s.n, s.k);
        double more = broadcast_at(&add, &c.shape, i);
        e.sum += more;
        e.magnitude += fabs(more);
        expect_element(dtype, c.at[i], e, "addmm", i);
    }
}

typedef dt_tensor *(*product_fn)(dt_tensor *a, dt_tensor *b);

/* Products that gradients are made of: a lies as [k, m], or b as [n, k]. */
static void check_turned(dt_mesh *mesh, dt_dtype dtype, sizes s, product_fn fn, bool turn_a, bool turn_b)
{
    static _Thread_local values a, b, c;
    dt_tensor *x = drawn(mesh, dtype, turn_a ? DT_SHAPE(s.k, s.m) : DT_SHAPE(s.m, s.k), 1);
    dt_tensor *y = drawn(mesh, dtype, turn_b ? DT_SHAPE(s.n, s.k) : DT_SHAPE(s.k, s.n), 2);
    read_values(x, &a);
    read_values(y, &b);
    read_values(fn(x, y), &c);
    expect(c.n == s.m * s.n, "turned: %lld elements", (long long)c.n);
    for (int64_t i = 0; i < c.n; i++) {
        const double *row = a.at + i / s.n * (turn_a ? 1 : s.k), *column = b.at + i % s.n * (turn_b ? s.k : 1);
        expect_element(dtype, c.at[i], multiply(row, turn_a ? s.m : 1, column, turn_b ? 1 : s.n, s.k), "turned", i);
    }
}

static void check_gradients(dt_mesh *mesh, dt_dtype dtype, sizes s)
{
    check_turned(mesh, dtype, s, dti_matmul_nt, false, true);
    check_turned(mesh, dtype, s, dti_matmul_tn, true, false);
    check_turned(mesh, dtype, s, dti_linear_input, false, false);
    check_turned(mesh, dtype, s, dti_linear_weight, true, false);
}

static dt_status run_sizes(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < DT_COUNT(dtypes); t++)
        for (int i = 0; i < DT_COUNT(all_sizes); i++) {
            sizes s = all_sizes[i];
            check_matmul(mesh, dtypes[t], s);
            check_linear(mesh, dtypes[t], s, true);
            check_linear(mesh, dtypes[t], s, false);
            check_gradients(mesh, dtypes[t], s);
            dt_shape added[] = { DT_SHAPE(s.m, s.n), DT_SHAPE(s.n), DT_SHAPE(1, s.n), DT_SHAPE(s.m, 1), DT_SCALAR,
                                 DT_SHAPE(1, 1), DT_SHAPE(1) };
            for (int k = 0; k < DT_COUNT(added); k++) check_addmm(mesh, dtypes[t], s, added[k]);
        }
    return dt_context_status(ctx);
}

static void test_sizes(void) { on_one_rank(run_sizes); }

/* Sizes from which on a library may do it, where the build has one. */
static dt_status run_large(dt_context *ctx, void *arg)
{
    static const sizes large = { 64, 64, 300 };
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < DT_COUNT(dtypes); t++) {
        check_matmul(mesh, dtypes[t], large);
        check_linear(mesh, dtypes[t], large, true);
        check_linear(mesh, dtypes[t], large, false);
        check_gradients(mesh, dtypes[t], large);
        check_addmm(mesh, dtypes[t], large, DT_SHAPE(64));
        check_addmm(mesh, dtypes[t], large, DT_SHAPE(64, 1));
        check_addmm(mesh, dtypes[t], large, DT_SHAPE(64, 64));
    }
    return dt_context_status(ctx);
}

static void test_large(void) { on_one_rank(run_large); }

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct batch { dt_shape a, b, c; } batch;

static const batch batches[] = {
    { { 3, { 4, 3, 5 } }, { 3, { 4, 5, 2 } }, { 3, { 4, 3, 2 } } },
    { { 3, { 4, 3, 5 } }, { 2, { 5, 2 } }, { 3, { 4, 3, 2 } } },
    { { 2, { 3, 5 } }, { 3, { 4, 5, 2 } }, { 3, { 4, 3, 2 } } },
    { { 4, { 2, 1, 3, 5 } }, { 3, { 3, 5, 2 } }, { 4, { 2, 3, 3, 2 } } },
    { { 4, { 1, 3, 3, 5 } }, { 4, { 2, 1, 5, 2 } }, { 4, { 2, 3, 3, 2 } } },
    { { 3, { 1, 3, 5 } }, { 3, { 1, 5, 2 } }, { 3, { 1, 3, 2 } } },
    { { 3, { 0, 3, 5 } }, { 2, { 5, 2 } }, { 3, { 0, 3, 2 } } },
};

static dt_shape leading(const dt_shape *shape)
{
    dt_shape out = *shape;
    out.n -= 2;
    return out;
}

/* Which matrix of an operand goes with matrix i of the result. */
static int64_t matrix_of(const dt_shape *x, const dt_shape *c, int64_t i)
{
    static _Thread_local values numbers;
    dt_shape shape = leading(c);
    numbers.shape = leading(x);
    for (int64_t k = 0; k < count_of(&numbers.shape); k++) numbers.at[k] = (double)k;
    return (int64_t)broadcast_at(&numbers, &shape, i);
}

static dt_status run_batches(dt_context *ctx, void *arg)
{
    static _Thread_local values a, b, c;
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < DT_COUNT(batches); t++) {
        const batch *s = &batches[t];
        dt_tensor *x = drawn(mesh, DT_F32, s->a, 1), *y = drawn(mesh, DT_F32, s->b, 2);
        read_values(x, &a);
        read_values(y, &b);
        read_values(dt_matmul(x, y), &c);
        expect(c.n == count_of(&s->c) && c.shape.n == s->c.n, "batch %d: %lld elements", t, (long long)c.n);
        for (int64_t i = 0; i < c.n; i++) {
            const double *left = a.at + matrix_of(&s->a, &s->c, i / 6) * 15 + i % 6 / 2 * 5;
            const double *right = b.at + matrix_of(&s->b, &s->c, i / 6) * 10 + i % 2;
            expect_element(DT_F32, c.at[i], multiply(left, 1, right, 2, 5), "batch", i);
        }
    }
    dt_tensor *x = drawn(mesh, DT_F64, DT_SHAPE(4, 3, 5), 1), *y = drawn(mesh, DT_F64, DT_SHAPE(4, 5, 2), 2);
    expect(dt_tensor_close(dt_bmm(x, y), dt_matmul(x, y), 0, 0), "bmm is matmul: %s", dt_context_error(ctx));
    dt_tensor *w = drawn(mesh, DT_F64, DT_SHAPE(2, 5), 3);
    read_values(dt_linear(x, w, NULL), &c);
    expect(c.shape.n == 3 && c.n == 24, "linear keeps leading dims");
    read_values(dt_linear(drawn(mesh, DT_F64, DT_SHAPE(5), 1), w, NULL), &c);
    expect(c.shape.n == 1 && c.n == 2, "a vector, too");
    return dt_context_status(ctx);
}

static void test_batches(void) { on_one_rank(run_batches); }

/* ---- bits -------------------------------------------------------------------------------------------------------- */

/* Rows and columns of a product are products of rows and columns, bit for bit. */
static dt_status run_alone(dt_context *ctx, void *arg)
{
    static _Thread_local values a, b, all, one;
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int t = 0; t < 4; t++) {
        dt_tensor *x = drawn(mesh, dtypes[t], DT_SHAPE(20, 50), 1), *y = drawn(mesh, dtypes[t], DT_SHAPE(50, 37), 2);
        read_values(x, &a);
        read_values(y, &b);
        read_values(dt_matmul(x, y), &all);
        for (int64_t i = 0; i < 20; i++) {
            read_values(dt_matmul(tensor_of(mesh, dtypes[t], DT_SHAPE(1, 50), a.at + i * 50), y), &one);
            expect(memcmp(one.at, all.at + i * 37, 37 * sizeof(double)) == 0, "row %lld alone", (long long)i);
        }
        double column[50];
        for (int64_t j = 0; j < 37; j++) {
            for (int k = 0; k < 50; k++) column[k] = b.at[k * 37 + j];
            read_values(dt_matmul(x, tensor_of(mesh, dtypes[t], DT_SHAPE(50, 1), column)), &one);
            for (int i = 0; i < 20; i++)
                expect(memcmp(&one.at[i], &all.at[i * 37 + j], sizeof(double)) == 0, "column %lld alone", (long long)j);
        }
    }
    return dt_context_status(ctx);
}

static void test_alone(void) { on_one_rank(run_alone); }

static dt_status run_special(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    values y;
    (void)arg;
    dt_tensor *a = tensor_of(mesh, DT_F32, DT_SHAPE(2, 2), (double[]){ INFINITY, 0, NAN, 1 });
    dt_tensor *b = tensor_of(mesh, DT_F32, DT_SHAPE(2, 2), (double[]){ 1, 0, 2, 3 });
    read_values(dt_matmul(a, b), &y);
    expect(y.at[0] == INFINITY && isnan(y.at[1]) && isnan(y.at[2]) && isnan(y.at[3]), "no shortcut past a zero");
    dt_tensor *half = tensor_of(mesh, DT_F16, DT_SHAPE(1, 3), (double[]){ 300, 300, 300 });
    dt_tensor *back = tensor_of(mesh, DT_F16, DT_SHAPE(3, 1), (double[]){ 300, -300, 1 });
    read_values(dt_matmul(half, back), &y);
    expect(y.at[0] == 300, "summed in f32: %g", y.at[0]);
    return dt_context_status(ctx);
}

static void test_special(void) { on_one_rank(run_special); }

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static dt_status run_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x = drawn(mesh, DT_F32, DT_SHAPE(2, 3), 1), *y = drawn(mesh, DT_F32, DT_SHAPE(4, 2), 1);
    dt_tensor *h = drawn(mesh, DT_BF16, DT_SHAPE(3, 2), 1), *v = drawn(mesh, DT_F32, DT_SHAPE(3), 1);
    (void)arg;
    expect(!dt_matmul(x, y), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected one size for k, got 3 in a and 4 in b", "matmul");
    expect(!dt_matmul(x, v), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected at least 2 dims for b (... k n), got 1", "a vector");
    expect(!dt_matmul(x, h), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected one dtype", "two dtypes");
    expect(!dt_bmm(x, y), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected 3 dims for a", "bmm");
    expect(!dt_linear(x, dt_zeros(dt_spec_parse(mesh, "f32[4,3]")), v), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected one size for n, got 4 in w and 3 in b", "linear");
    expect(!dt_addmm(v, x, dt_zeros(dt_spec_parse(mesh, "f32[3,4]"))), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected one size for n, got 3 in c and 4 in b", "addmm");
    expect(!dt_addmm(x, v, x), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "2 for a and b, got 2, 1 and 2", "addmm of a vector");
    expect(!dt_linear(x, NULL, v), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for w, got none", "linear without weights");
    return dt_context_status(ctx);
}

static void test_errors(void) { on_one_rank(run_errors); }

static const test_row rows[] = {
    { "sizes", test_sizes }, { "large", test_large }, { "batches", test_batches }, { "alone", test_alone },
    { "special", test_special },
    { "errors", test_errors },
};

const suite the_suite = { "kernels_product", rows, DT_COUNT(rows) };
