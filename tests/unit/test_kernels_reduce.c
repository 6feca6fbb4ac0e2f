/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions by values: against loops over all elements, for every set of dims of a few shapes, kept and not, over
 * dtypes; edges of the numbers; and what they refuse. */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "ops/values.h"

static const dt_dtype dtypes[] = { DT_F64, DT_F32, DT_BF16, DT_F16, DT_I64, DT_I32, DT_U8, DT_BOOL };

/* ---- by loops ---------------------------------------------------------------------------------------------------- */

typedef struct row { int64_t n; double at[VALUES]; } row; /* the elements that become one                          */

static double sum_of(const row *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++) sum += r->at[i];
    return sum;
}

static double mean_of(const row *r) { return sum_of(r) / (double)r->n; }

static double max_of(const row *r)
{
    double max = -INFINITY;
    for (int64_t i = 0; i < r->n; i++) max = isnan(r->at[i]) || isnan(max) ? NAN : fmax(max, r->at[i]);
    return max;
}

static double min_of(const row *r)
{
    double min = INFINITY;
    for (int64_t i = 0; i < r->n; i++) min = isnan(r->at[i]) || isnan(min) ? NAN : fmin(min, r->at[i]);
    return min;
}

static double prod_of(const row *r)
{
    double prod = 1;
    for (int64_t i = 0; i < r->n; i++) prod *= r->at[i];
    return prod;
}

static double logsumexp_of(const row *r)
{
    double max = max_of(r), sum = 0;
    for (int64_t i = 0; i < r->n; i++) sum += exp(r->at[i] - max);
    return r->n ? max + log(sum) : -INFINITY;
}

static double squares_of(const row *r, double center)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++) sum += (r->at[i] - center) * (r->at[i] - center);
    return sum;
}

static double norm_of(const row *r) { return sqrt(squares_of(r, 0)); }
static double var_of(const row *r) { return r->n ? squares_of(r, mean_of(r)) / (double)r->n : NAN; }
static dt_tensor *dt_var_0(dt_tensor *x, dt_dims dims, bool keep) { return dt_var(x, dims, 0, keep); }

typedef struct reduction {
    const char *name;
    dt_tensor *(*op)(dt_tensor *x, dt_dims dims, bool keep);
    double (*due)(const row *r);
    char takes;                        /* f: floats, b: bools, t: all                                              */
} reduction;

static const reduction reductions[] = {
    { "sum", dt_sum, sum_of, 't' }, { "mean", dt_mean, mean_of, 'f' }, { "max", dt_max, max_of, 't' },
    { "min", dt_min, min_of, 't' }, { "prod", dt_prod, prod_of, 'f' }, { "any", dt_any, max_of, 'b' },
    { "all", dt_all, min_of, 'b' }, { "logsumexp", dt_logsumexp, logsumexp_of, 'f' }, { "var", dt_var_0, var_of, 'f' },
    { "norm", dt_norm, norm_of, 'f' },
};

static bool takes(const reduction *op, dt_dtype dtype)
{
    return op->takes == 't' || (op->takes == 'b' ? dtype == DT_BOOL : dtype <= DT_F16);
}

/* The elements of x that become element k of the result; dims by bit. */
static void gather(const values *x, unsigned dims, int64_t k, row *out)
{
    out->n = 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t rest = i, at = 0, weight = 1;
        for (int d = x->shape.n - 1; d >= 0; d--) {
            if (!(dims >> d & 1)) {
                at += rest % x->shape.dim[d] * weight;
                weight *= x->shape.dim[d];
            }
            rest /= x->shape.dim[d];
        }
        if (at == k) out->at[out->n++] = x->at[i];
    }
}

static double due_of(const reduction *op, dt_dtype dtype, const row *r)
{
    double due = op->due(r);
    if (dtype == DT_U8 && op->due == sum_of) due = (double)((int64_t)due & 255);
    if (dtype == DT_I64 && r->n == 0) return due > 0 ? 0x1p63 : due < 0 ? -0x1p63 : due;
    return rounded(dtype, dtype == DT_BOOL && due < 0 ? 0 : due);
}

static dt_shape result_shape(const dt_shape *x, unsigned dims, bool keep)
{
    dt_shape out = { 0, { 0 } };
    for (int d = 0; d < x->n; d++)
        if (!(dims >> d & 1) || keep) out.dim[out.n++] = dims >> d & 1 ? 1 : x->dim[d];
    return out;
}

static dt_dims dims_of(unsigned bits, int rank)
{
    dt_dims dims = { 0, { 0 } };
    for (int d = rank - 1; d >= 0; d--)
        if (bits >> d & 1) dims.dim[dims.n++] = d % 2 ? d : d - rank;  /* any order, from both ends                */
    return dims;
}

static void check(dt_mesh *mesh, const reduction *op, dt_dtype dtype, const dt_shape *shape, unsigned dims, bool keep)
{
    static _Thread_local values x, y;
    static _Thread_local row r;
    dt_tensor *from = drawn(mesh, dtype, *shape, 7);
    dt_shape due = result_shape(shape, dims, keep);
    read_values(from, &x);
    read_values(op->op(from, dims_of(dims, shape->n), keep), &y);
    expect(y.shape.n == due.n && memcmp(y.shape.dim, due.dim, sizeof due.dim) == 0, "%s: shape", op->name);
    for (int64_t k = 0; k < y.n; k++) {
        gather(&x, dims, k, &r);
        double wanted = due_of(op, dtype, &r), least = 1e-13 * (1 + sqrt(squares_of(&r, 0)));
        if (!expect(near(dtype, y.at[k], wanted, dtype == DT_F64 ? 100 : 1, least), "%s of %s, dims %x, element %lld: "
                    "%.17g, not %.17g", op->name, dt_dtype_text(dtype), dims, (long long)k, y.at[k], wanted)) return;
    }
}

static const dt_shape shapes[] = {
    { 0, { 0 } }, { 1, { 1 } }, { 1, { 17 } }, { 1, { 1100 } }, { 2, { 5, 7 } }, { 2, { 70, 3 } }, { 2, { 3, 530 } },
    { 3, { 2, 5, 4 } }, { 3, { 3, 1, 16 } }, { 4, { 2, 3, 2, 3 } }, { 2, { 0, 3 } }, { 2, { 3, 0 } }, { 1, { 0 } },
};

static dt_status run_all(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int k = 0; k < DT_COUNT(reductions); k++)
        for (int t = 0; t < DT_COUNT(dtypes); t++)
            for (int s = 0; s < DT_COUNT(shapes) && takes(&reductions[k], dtypes[t]); s++)
                for (unsigned dims = shapes[s].n ? 1 : 0; dims < 1u << shapes[s].n; dims++)
                    check(mesh, &reductions[k], dtypes[t], &shapes[s], dims, (dims + (unsigned)s) % 2);
    return dt_context_status(ctx);
}

static void test_all(void) { on_one_rank(run_all); }

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static double item(dt_tensor *x)
{
    values y;
    read_values(x, &y);
    return y.at[0];
}

static dt_status run_edges(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    dt_tensor *zeros = tensor_of(mesh, DT_F32, DT_SHAPE(2), (double[]){ -0.0, 0 });
    expect(!signbit(item(dt_max(zeros, DT_ALL, false))) && signbit(item(dt_min(zeros, DT_ALL, false))), "-0 < 0");
    dt_tensor *nan = tensor_of(mesh, DT_BF16, DT_SHAPE(3), (double[]){ 1, NAN, INFINITY });
    expect(isnan(item(dt_max(nan, DT_ALL, false))) && isnan(item(dt_min(nan, DT_ALL, false))), "NaN goes through");
    expect(item(dt_argmax(nan, 0, false)) == 1 && item(dt_argmin(nan, 0, false)) == 1, "and is found");
    dt_tensor *large = tensor_of(mesh, DT_F16, DT_SHAPE(3), (double[]){ 60000, 60000, -60000 });
    expect(item(dt_sum(large, DT_ALL, false)) == rounded(DT_F16, 60000), "rounded once");
    expect(item(dt_mean(large, DT_ALL, false)) == rounded(DT_F16, 20000), "and divided before");
    dt_tensor *bytes = tensor_of(mesh, DT_U8, DT_SHAPE(3), (double[]){ 200, 100, 1 });
    expect(item(dt_sum(bytes, DT_ALL, false)) == 45, "bytes wrap");
    expect(item(dt_max(bytes, DT_ALL, false)) == 200, "bytes have no sign");
    dt_tensor *huge = tensor_of(mesh, DT_F64, DT_SHAPE(2), (double[]){ 3e200, 4e200 });
    expect(fabs(item(dt_norm(huge, DT_ALL, false)) / 5e200 - 1) < 1e-15, "a norm does not overflow");
    dt_tensor *apart = tensor_of(mesh, DT_F32, DT_SHAPE(2), (double[]){ 1000, -1000 });
    expect(item(dt_logsumexp(apart, DT_ALL, false)) == 1000, "nor does a sum of exp");
    dt_tensor *none = tensor_of(mesh, DT_F32, DT_SHAPE(2), (double[]){ -INFINITY, -INFINITY });
    expect(item(dt_logsumexp(none, DT_ALL, false)) == -INFINITY, "log of 0");
    dt_tensor *sample = tensor_of(mesh, DT_F64, DT_SHAPE(4), (double[]){ 1, 2, 3, 6 });
    expect(fabs(item(dt_var(sample, DT_ALL, 1, false)) - 14.0 / 3) < 1e-15, "var of a sample");
    expect(isnan(item(dt_var(sample, DT_ALL, 4, false))), "of too few");
    expect(!signbit(item(dt_sum(dt_zeros(dt_spec_parse(mesh, "f32[0]")), DT_ALL, false))), "a sum of nothing is 0");
    return dt_context_status(ctx);
}

static void test_edges(void) { on_one_rank(run_edges); }

static dt_status run_indices(dt_context *ctx, void *arg)
{
    static const double numbers[] = { 3, 9, 9, -4, 2, -4, 7, 7, 7, 0, 1, 0 };
    static const double due[][12] = { { 1, 1, 0, 1 }, { 0, 0, 0, 0 }, { 2, 0, 0 }, { 1, 3, 1 } };
    dt_mesh *mesh = mesh_of(ctx);
    values y;
    (void)arg;
    for (int t = 0; t < DT_COUNT(dtypes) - 2; t++) {
        dt_tensor *x = tensor_of(mesh, dtypes[t], DT_SHAPE(4, 3), numbers), *made[] = {
            dt_argmax(x, 1, true), dt_argmin(x, 1, false), dt_argmax(x, 0, false), dt_argmin(x, -2, false),
        };
        for (int k = 0; k < 4; k++) {
            read_values(made[k], &y);
            expect(dt_spec_dtype(dt_tensor_spec(made[k])) == DT_I64 && y.n == (k < 2 ? 4 : 3), "indices");
            for (int64_t i = 0; i < y.n; i++)
                expect(y.at[i] == due[k][i], "%s, %d: element %lld is %g, not %g", dt_dtype_text(dtypes[t]), k,
                       (long long)i, y.at[i], due[k][i]);
        }
    }
    return dt_context_status(ctx);
}

static void test_indices(void) { on_one_rank(run_indices); }

/* A result gets the same bits whatever is computed beside it. */
static dt_status run_alone(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    double column[40], both[40 * 20];
    values all, one;
    (void)arg;
    for (int i = 0; i < 40; i++) column[i] = sin(i * i) * exp(i % 9);
    for (int i = 0; i < 40 * 20; i++) both[i] = i % 20 == 11 ? column[i / 20] : cos(i);
    read_values(dt_sum(tensor_of(mesh, DT_F64, DT_SHAPE(40, 20), both), DT_DIMS(0), false), &all);
    read_values(dt_sum(tensor_of(mesh, DT_F64, DT_SHAPE(40, 1), column), DT_DIMS(0), false), &one);
    expect(memcmp(&all.at[11], &one.at[0], sizeof(double)) == 0, "a column: %.17g, alone %.17g", all.at[11], one.at[0]);
    read_values(dt_norm(tensor_of(mesh, DT_F64, DT_SHAPE(40, 20), both), DT_DIMS(0), false), &all);
    read_values(dt_norm(tensor_of(mesh, DT_F64, DT_SHAPE(40, 1), column), DT_DIMS(0), false), &one);
    expect(memcmp(&all.at[11], &one.at[0], sizeof(double)) == 0, "its norm");
    return dt_context_status(ctx);
}

static void test_alone(void) { on_one_rank(run_alone); }

static dt_status run_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x = drawn(mesh, DT_F32, DT_SHAPE(2, 3), 1), *i = drawn(mesh, DT_I32, DT_SHAPE(2, 3), 1);
    (void)arg;
    expect(!dt_sum(x, DT_DIMS(2), false), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected dims in -2 .. 1, got 2", "out of range");
    expect(!dt_max(x, DT_DIMS(0, -2), false), "a result");
    expect_error(ctx, DT_ERR_ARG, "dim 0 stands twice", "twice");
    expect(!dt_mean(i, DT_ALL, false), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected a float for x, got i32[2,3]", "mean of integers");
    expect(!dt_any(x, DT_ALL, false), "a result");
    expect_error(ctx, DT_ERR_DTYPE, "expected bool", "any of floats");
    expect(!dt_argmax(x, -3, false), "a result");
    expect_error(ctx, DT_ERR_ARG, "expected dim in -2 .. 1, got -3", "argmax");
    expect(!dt_argmin(drawn(mesh, DT_F32, DT_SHAPE(2, 0), 1), 1, false), "a result");
    expect_error(ctx, DT_ERR_SHAPE, "expected an element in dim 1, got none", "argmin of nothing");
    return dt_context_status(ctx);
}

static void test_errors(void) { on_one_rank(run_errors); }

static const test_row rows[] = {
    { "all", test_all }, { "edges", test_edges }, { "indices", test_indices }, { "alone", test_alone },
    { "errors", test_errors },
};

const suite the_suite = { "kernels_reduce", rows, DT_COUNT(rows) };
