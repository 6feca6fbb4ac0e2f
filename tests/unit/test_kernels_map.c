/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops by values: against one line of C each, over dtypes, lengths, shapes that broadcast, edges of the
 * numbers; and what they refuse. */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "ops/cpu/map.h"
#include "ops/values.h"

static const dt_dtype floats[] = { DT_F64, DT_F32, DT_BF16, DT_F16 };
static const dt_dtype dtypes[] = { DT_F64, DT_F32, DT_BF16, DT_F16, DT_I64, DT_I32, DT_U8, DT_BOOL };

/* ---- of one operand ---------------------------------------------------------------------------------------------- */

static double rsqrt_of(double x) { return 1 / sqrt(x); }
static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }
static double relu_of(double x) { return isnan(x) ? x : x > 0 ? x : 0; }
static double gelu_of(double x) { return 0.5 * x * erfc(-x / sqrt(2)); }
static double gelu_tanh_of(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }
static double silu_of(double x) { return x * sigmoid_of(x); }
static double neg_of(double x) { return -x; }

typedef struct single {
    const char *name;
    dt_tensor *(*op)(dt_tensor *x);
    double (*due)(double x);
    double ulps;
} single;

static const single singles[] = {
    { "neg", dt_neg, neg_of, 0 }, { "abs", dt_abs, fabs, 0 }, { "exp", dt_exp, exp, 2 }, { "log", dt_log, log, 2 },
    { "sqrt", dt_sqrt, sqrt, 0.5 }, { "rsqrt", dt_rsqrt, rsqrt_of, 2 }, { "sin", dt_sin, sin, 1 },
    { "cos", dt_cos, cos, 1 }, { "tanh", dt_tanh, tanh, 8 }, { "sigmoid", dt_sigmoid, sigmoid_of, 4 },
    { "relu", dt_relu, relu_of, 0 }, { "gelu", dt_gelu, gelu_of, 64 }, { "gelu_tanh", dt_gelu_tanh, gelu_tanh_of, 64 },
    { "silu", dt_silu, silu_of, 8 },
};

/* Lengths around blocks and buffers; values from tiny to large, and those that are no numbers. */
static const double edges[] = { 0, -0.0, 1, -1, 0.5, -0.5, 1e-5, -1e-5, 88, -88, 700, -700, 1e-30, 3e4, -3e4 };
static const double no_numbers[] = { INFINITY, -INFINITY, NAN };
static const int64_t lengths[] = { 0, 1, 7, 15, 16, 17, 100, 511, 512, 513, 1030 };

static double sample(int64_t i)
{
    if (i < DT_COUNT(edges)) return edges[i];
    return sin((double)i) * 6;
}

/* Where the reference itself loses digits, tanh of its 1 + tanh. */
static double least_of(const single *op) { return op->due == gelu_tanh_of ? 1e-14 : 0; }

static void check_single(dt_mesh *mesh, const single *op, dt_dtype dtype, int64_t n)
{
    double numbers[VALUES] = { 0 };
    values x, y;
    for (int64_t i = 0; i < n; i++) numbers[i] = sample(i);
    dt_tensor *from = tensor_of(mesh, dtype, DT_SHAPE(n), numbers);
    read_values(from, &x);
    read_values(op->op(from), &y);
    for (int64_t i = 0; i < n; i++) {
        double due = rounded(dtype, op->due(x.at[i]));
        double least = dtype == DT_F16 ? 0x1p-24 : dtype == DT_F64 ? least_of(op) : 0x1p-133;
        if (!expect(near(dtype, y.at[i], due, op->ulps, least), "%s of %s %.17g: %.17g, not %.17g", op->name,
                    dt_dtype_text(dtype), x.at[i], y.at[i], due)) return;
    }
}

static dt_status run_singles(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int k = 0; k < DT_COUNT(singles); k++)
        for (int t = 0; t < DT_COUNT(floats); t++)
            for (int l = 0; l < DT_COUNT(lengths); l++) check_single(mesh, &singles[k], floats[t], lengths[l]);
    return dt_context_status(ctx);
}

static void test_singles(void) { on_one_rank(run_singles); }

static dt_status run_no_numbers(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int k = 0; k < DT_COUNT(singles); k++)
        for (int t = 0; t < DT_COUNT(floats); t++) {
            values y;
            read_values(singles[k].op(tensor_of(mesh, floats[t], DT_SHAPE(3), no_numbers)), &y);
            for (int i = 0; i < 3; i++) {
                double due = singles[k].due(no_numbers[i]);
                expect(near(floats[t], y.at[i], due, 0, 0), "%s of %s %g: %g, not %g", singles[k].name,
                       dt_dtype_text(floats[t]), no_numbers[i], y.at[i], due);
            }
        }
    values y;
    read_values(dt_relu(tensor_of(mesh, DT_F32, DT_SHAPE(1), (double[]){ -0.0 })), &y);
    expect(!signbit(y.at[0]), "relu(-0) is 0");
    read_values(dt_log(tensor_of(mesh, DT_F64, DT_SHAPE(3), (double[]){ -1, 0x1p-1060, -0.0 })), &y);
    expect(isnan(y.at[0]) && fabs(y.at[1] + 1060 * log(2)) < 1e-12 && y.at[2] == -INFINITY, "log at the edges");
    read_values(dt_exp(tensor_of(mesh, DT_F64, DT_SHAPE(4), (double[]){ 709.7, 709.8, -745, -746 })), &y);
    expect(fabs(y.at[0] / exp(709.7) - 1) < 1e-15 && y.at[1] == INFINITY && y.at[2] == 0x1p-1074 && y.at[3] == 0,
           "exp at the edges: %g %g %g %g", y.at[0], y.at[1], y.at[2], y.at[3]);
    return dt_context_status(ctx);
}

static void test_no_numbers(void) { on_one_rank(run_no_numbers); }

/* ---- of two ------------------------------------------------------------------------------------------------------ */

static double add_of(double x, double y) { return x + y; }
static double sub_of(double x, double y) { return x - y; }
static double mul_of(double x, double y) { return x * y; }
static double div_of(double x, double y) { return x / y; }
static double eq_of(double x, double y) { return x == y; }
static double ne_of(double x, double y) { return x != y; }
static double lt_of(double x, double y) { return x < y; }
static double le_of(double x, double y) { return x <= y; }
static double gt_of(double x, double y) { return x > y; }
static double ge_of(double x, double y) { return x >= y; }
static double swiglu_of(double x, double y) { return silu_of(x) * y; }
static double and_of(double x, double y) { return x != 0 && y != 0; }
static double or_of(double x, double y) { return x != 0 || y != 0; }

typedef struct pair {
    const char *name;
    dt_tensor *(*op)(dt_tensor *x, dt_tensor *y);
    double (*due)(double x, double y);
    double ulps;
    const char *takes;                 /* n: no bools, f: floats, b: bools, t: all                                 */
    bool truth;
} pair;

static const pair pairs[] = {
    { "add", dt_add, add_of, 0.5, "t", false }, { "sub", dt_sub, sub_of, 0.5, "n", false },
    { "mul", dt_mul, mul_of, 0.5, "t", false }, { "div", dt_div, div_of, 0.5, "f", false },
    { "pow", dt_pow, pow, 1, "f", false }, { "swiglu", dt_swiglu, swiglu_of, 8, "f", false },
    { "eq", dt_eq, eq_of, 0, "t", true }, { "ne", dt_ne, ne_of, 0, "t", true }, { "lt", dt_lt, lt_of, 0, "t", true },
    { "le", dt_le, le_of, 0, "t", true }, { "gt", dt_gt, gt_of, 0, "t", true }, { "ge", dt_ge, ge_of, 0, "t", true },
    { "and", dt_logical_and, and_of, 0, "b", true }, { "or", dt_logical_or, or_of, 0, "b", true },
    { "xor", dt_logical_xor, ne_of, 0, "b", true },
};

typedef struct shapes { dt_shape x, y, due; } shapes;

static const shapes broadcasts[] = {
    { { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
    { { 1, { 5 } }, { 0, { 0 } }, { 1, { 5 } } },
    { { 2, { 3, 4 } }, { 1, { 4 } }, { 2, { 3, 4 } } },
    { { 2, { 3, 1 } }, { 2, { 1, 4 } }, { 2, { 3, 4 } } },
    { { 3, { 2, 3, 4 } }, { 2, { 3, 1 } }, { 3, { 2, 3, 4 } } },
    { { 3, { 2, 1, 4 } }, { 3, { 2, 3, 1 } }, { 3, { 2, 3, 4 } } },
    { { 2, { 2, 600 } }, { 1, { 600 } }, { 2, { 2, 600 } } },
    { { 2, { 2, 1 } }, { 2, { 2, 600 } }, { 2, { 2, 600 } } },
    { { 2, { 0, 3 } }, { 1, { 3 } }, { 2, { 0, 3 } } },
    { { 2, { 1, 3 } }, { 2, { 0, 1 } }, { 2, { 0, 3 } } },
    { { 4, { 2, 1, 2, 16 } }, { 3, { 3, 1, 16 } }, { 4, { 2, 3, 2, 16 } } },
};

static bool takes(const pair *op, dt_dtype dtype)
{
    return *op->takes == 'f' ? dtype <= DT_F16 : *op->takes == 'b' ? dtype == DT_BOOL
         : *op->takes == 'n' ? dtype != DT_BOOL : true;
}

static void check_pair(dt_mesh *mesh, const pair *op, dt_dtype dtype, const shapes *s)
{
    dt_dtype result = op->truth ? DT_BOOL : dtype;
    dt_tensor *from = drawn(mesh, dtype, s->x, 1), *by = drawn(mesh, dtype, s->y, 2);
    values x, y, z;
    read_values(from, &x);
    read_values(by, &y);
    read_values(op->op(from, by), &z);
    expect(z.n == count_of(&s->due) && z.shape.n == s->due.n, "%s: %lld elements", op->name, (long long)z.n);
    for (int64_t i = 0; i < z.n; i++) {
        double a = broadcast_at(&x, &s->due, i), b = broadcast_at(&y, &s->due, i), due = op->due(a, b);
        if (dtype == DT_U8 && !op->truth) due = (double)((int)due & 255);
        due = rounded(result, due);
        if (!expect(near(result, z.at[i], due, op->ulps, 0), "%s of %s %g, %g: %.17g, not %.17g", op->name,
                    dt_dtype_text(dtype), a, b, z.at[i], due)) return;
    }
}

static dt_status run_pairs(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int k = 0; k < DT_COUNT(pairs); k++)
        for (int t = 0; t < DT_COUNT(dtypes); t++)
            for (int s = 0; s < DT_COUNT(broadcasts) && takes(&pairs[k], dtypes[t]); s++)
                check_pair(mesh, &pairs[k], dtypes[t], &broadcasts[s]);
    return dt_context_status(ctx);
}

static void test_pairs(void) { on_one_rank(run_pairs); }

/* An element gets the same bits whatever lies beside it. */
static dt_status run_alone(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    double numbers[600];
    (void)arg;
    for (int i = 0; i < 600; i++) numbers[i] = sample(i);
    for (int k = 0; k < DT_COUNT(singles); k++)
        for (int t = 0; t < DT_COUNT(floats); t++) {
            values all, one;
            read_values(singles[k].op(tensor_of(mesh, floats[t], DT_SHAPE(600), numbers)), &all);
            for (int64_t i = 0; i < 600; i += 37) {
                read_values(singles[k].op(tensor_of(mesh, floats[t], DT_SHAPE(1), numbers + i)), &one);
                expect(memcmp(&one.at[0], &all.at[i], sizeof(double)) == 0, "%s, element %lld", singles[k].name,
                       (long long)i);
            }
        }
    return dt_context_status(ctx);
}

static void test_alone(void) { on_one_rank(run_alone); }

/* ---- numbers, choices, dtypes ------------------------------------------------------------------------------------ */

static void expect_values(dt_tensor *x, const double *due, const char *what)
{
    values y;
    read_values(x, &y);
    for (int64_t i = 0; i < y.n; i++)
        expect(near(DT_F64, y.at[i], due[i], 0, 0), "%s, element %lld: %g, not %g", what, (long long)i, y.at[i],
               due[i]);
}

static dt_status run_numbers(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x = tensor_of(mesh, DT_F32, DT_SHAPE(4), (double[]){ -2, -0.5, 3, NAN });
    dt_tensor *i = tensor_of(mesh, DT_I32, DT_SHAPE(3), (double[]){ -2, 0, 2147483647 });
    dt_tensor *u = tensor_of(mesh, DT_U8, DT_SHAPE(2), (double[]){ 3, 250 });
    (void)arg;
    expect_values(dt_add_scalar(x, 1.5), (double[]){ -0.5, 1, 4.5, NAN }, "add_scalar");
    expect_values(dt_sub_scalar(x, 1.5), (double[]){ -3.5, -2, 1.5, NAN }, "sub_scalar");
    expect_values(dt_mul_scalar(x, -2), (double[]){ 4, 1, -6, NAN }, "mul_scalar");
    expect_values(dt_div_scalar(x, 2), (double[]){ -1, -0.25, 1.5, NAN }, "div_scalar");
    expect_values(dt_pow_scalar(x, 2), (double[]){ 4, 0.25, 9, NAN }, "pow_scalar");
    expect_values(dt_clamp(x, -1, 1), (double[]){ -1, -0.5, 1, NAN }, "clamp");
    expect_values(dt_clamp(x, -INFINITY, 0), (double[]){ -2, -0.5, 0, NAN }, "clamp from above");
    expect_values(dt_clamp(i, 0, INFINITY), (double[]){ 0, 0, 2147483647 }, "clamp integers");
    expect_values(dt_add_scalar(i, 1), (double[]){ -1, 1, -2147483648.0 }, "integers wrap");
    expect_values(dt_mul_scalar(u, 2), (double[]){ 6, 244 }, "bytes wrap");
    expect_values(dt_neg(u), (double[]){ 253, 6 }, "bytes wrap at 0");
    for (int n = 1; n <= 3; n++) expect_values(dt_mul_scalar(u, n), (double[]){ 3 * n, 250 * n & 255 }, "remembered");
    return dt_context_status(ctx);
}

static void test_numbers(void) { on_one_rank(run_numbers); }

static dt_status run_choices(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *c = tensor_of(mesh, DT_BOOL, DT_SHAPE(2, 1), (double[]){ 1, 0 });
    dt_tensor *x = tensor_of(mesh, DT_F16, DT_SHAPE(2, 2), (double[]){ 1, 2, 3, 4 });
    dt_tensor *y = tensor_of(mesh, DT_F16, DT_SCALAR, (double[]){ NAN });
    (void)arg;
    expect_values(dt_where(c, x, y), (double[]){ 1, 2, NAN, NAN }, "where");
    expect_values(dt_masked_fill(x, c, -INFINITY), (double[]){ -INFINITY, -INFINITY, 3, 4 }, "masked_fill");
    expect_values(dt_masked_fill(dt_cast(x, DT_I64), c, 7), (double[]){ 7, 7, 3, 4 }, "masked_fill of integers");
    expect_values(dt_logical_not(c), (double[]){ 0, 1 }, "not");
    return dt_context_status(ctx);
}

static void test_choices(void) { on_one_rank(run_choices); }

static dt_status run_casts(dt_context *ctx, void *arg)
{
    static const double numbers[] = { 0, 1, -1.5, 2.75, 300, -7, 100000, 1e10 };
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int a = 0; a < DT_COUNT(dtypes); a++)
        for (int b = 0; b < DT_COUNT(dtypes); b++) {
            dt_tensor *x = tensor_of(mesh, dtypes[a], DT_SHAPE(8), numbers), *y = dt_cast(x, dtypes[b]);
            values from, to;
            read_values(x, &from);
            read_values(y, &to);
            expect(y && dt_spec_dtype(dt_tensor_spec(y)) == dtypes[b], "cast to %s", dt_dtype_text(dtypes[b]));
            for (int i = 0; i < 8; i++) {
                bool cut = dtypes[a] >= DT_I64 && (dtypes[b] == DT_U8 || dtypes[b] == DT_I32);
                double due = cut && dtypes[b] == DT_U8 ? (double)((int64_t)from.at[i] & 255)
                           : cut ? (double)(int32_t)(uint32_t)(int64_t)from.at[i] : rounded(dtypes[b], from.at[i]);
                expect(to.at[i] == due, "%s %g to %s: %g, not %g", dt_dtype_text(dtypes[a]), from.at[i],
                       dt_dtype_text(dtypes[b]), to.at[i], due);
            }
        }
    return dt_context_status(ctx);
}

static void test_casts(void) { on_one_rank(run_casts); }

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static dt_status run_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x = drawn(mesh, DT_F32, DT_SHAPE(2, 3), 1), *y = drawn(mesh, DT_F32, DT_SHAPE(4), 1);
    dt_tensor *i = drawn(mesh, DT_I32, DT_SHAPE(2, 3), 1), *b = drawn(mesh, DT_BOOL, DT_SHAPE(2, 3), 1);
    (void)arg;
    expect(!dt_add(x, y), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected leading dims that broadcast, got 3 in x and 4 in y", "3 and 4");
    expect(!dt_add(x, i), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected one dtype", "f32 and i32");
    expect(!dt_div(i, i), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected a float for x, got i32[2,3]", "div of integers");
    expect(!dt_exp(i), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected a float", "exp of integers");
    expect(!dt_sub(b, b), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected numbers for x, got bool[2,3]", "sub of bools");
    expect(!dt_logical_and(b, x), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected bool for y", "and of floats");
    expect(!dt_where(x, x, x), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected bool for c", "where");
    expect(!dt_add_scalar(i, 0.5), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a whole number for i32, got 0.5", "half an integer");
    expect(!dt_clamp(i, NAN, 1), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a whole number", "clamp at NaN");
    expect(!dt_cast(x, (dt_dtype)99), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "99 is no dtype", "cast to nothing");
    expect(!dt_mul(x, NULL), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for y, got none", "one operand");
    return dt_context_status(ctx);
}

static void test_errors(void) { on_one_rank(run_errors); }

/* ---- f64 in registers -------------------------------------------------------------------------------------------- */

enum { WIDENED = 64 * DTI_LANES };

static bool same_number(float x, float y) { return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y)); }

/* Of f32 as of the same numbers in f64, rounded: every bit. */
static void check_widened(dti_map map)
{
    static float x[WIDENED], y[WIDENED], got[WIDENED];
    static double wide_x[WIDENED], wide_y[WIDENED], due[WIDENED];
    for (int i = 0; i < WIDENED; i++) {
        wide_x[i] = (double)(x[i] = (float)sample(i));
        wide_y[i] = (double)(y[i] = (float)sample(WIDENED - i));
    }
    dti_map_run narrow = { .map = map, .in = { x, y, y }, .out = got, .blocks = WIDENED / DTI_LANES, .a = 1.5 };
    dti_map_run wide = { .map = map, .in = { wide_x, wide_y, wide_y }, .out = due, .blocks = WIDENED / DTI_LANES,
                         .a = 1.5 };
    dti_map_smooth_f32(&narrow);
    dti_map_smooth(&wide);
    for (int i = 0; i < WIDENED; i++)
        expect(same_number(got[i], (float)due[i]), "map %d at %g, %g: expected %a, got %a", (int)map, wide_x[i],
               wide_y[i], (double)(float)due[i], (double)got[i]);
}

static void test_widened(void)
{
    for (int map = DTI_MAP_WIDE; map <= DTI_MAP_SILU_SLOPE; map++) check_widened((dti_map)map);
}

static const test_row rows[] = {
    { "singles", test_singles }, { "no_numbers", test_no_numbers }, { "pairs", test_pairs }, { "alone", test_alone },
    { "numbers", test_numbers }, { "choices", test_choices }, { "casts", test_casts }, { "errors", test_errors },
    { "widened", test_widened },
};

const suite the_suite = { "kernels_map", rows, DT_COUNT(rows) };
