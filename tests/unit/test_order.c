/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums, sort and topk against plain loops, with ties, NaN and zeros of both signs, on worlds of 1 to 7 ranks:
 * their dim whole, split unevenly, with empty pieces, by several mesh dims, in a factor. Where it is split the result
 * lies as it should, and what moves is one number per row and piece, the first of each piece, or the tensor there and
 * back. */
#include <math.h>
#include <stdlib.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

enum { MAX = 512 };

/* ---- by loops ---------------------------------------------------------------------------------------------------- */

/* Of x [outer, n, inner]. */
typedef struct array { int64_t outer, n, inner; double x[MAX]; } array;

static double drawn(int64_t i)
{
    uint64_t hash = ((uint64_t)i * 2654435761u + 12345) % 1000003 % 11;
    return hash == 3 ? NAN : hash == 4 ? -0.0 : hash == 5 ? INFINITY : (double)hash - 5;
}

static array array_of(const dt_spec *spec, int dim, bool odd)
{
    dt_shape shape = dt_spec_shape(spec);
    array a = { 1, shape.dim[dim], 1, { 0 } };
    for (int d = 0; d < dim; d++) a.outer *= shape.dim[d];
    for (int d = dim + 1; d < shape.n; d++) a.inner *= shape.dim[d];
    for (int64_t i = 0; i < a.outer * a.n * a.inner; i++) {
        a.x[i] = drawn(i);
        if (!odd && !isfinite(a.x[i])) a.x[i] = 2;
    }
    return a;
}

static int64_t at(const array *a, int64_t row, int64_t i)
{
    return (row / a->inner * a->n + i) * a->inner + row % a->inner;
}

/* Does element i of a row come before element k? */
static bool precedes(const array *a, int64_t row, int64_t i, int64_t k, bool down)
{
    double x = a->x[at(a, row, i)], y = a->x[at(a, row, k)];
    bool less = isnan(y) ? !isnan(x) : x < y, more = isnan(x) ? !isnan(y) : x > y;
    return less || more ? (down ? more : less) : i < k;
}

/* The place that each element of a row comes to. */
static int64_t place_of(const array *a, int64_t row, int64_t i, bool down)
{
    int64_t place = 0;
    for (int64_t k = 0; k < a->n; k++) place += precedes(a, row, k, i, down);
    return place;
}

static bool same(double x, double y) { return isnan(x) ? isnan(y) : x == y; }

/* ---- against them ------------------------------------------------------------------------------------------------ */

typedef struct sample { const char *mesh, *spec; int dim; } sample;

static const sample samples[] = {
    { "x", "f64[3,13]", 1 }, { "x", "f64[3,13]@x:S(0)", 1 }, { "x", "f64[3,13]@x:S(1)", 1 },
    { "x", "f64[4,2,3]@x:S(1)", 1 }, { "x", "f64[9,2]@x:S(0)", 0 }, { "x", "f32[17]@x:S(0)", 0 },
    { "x", "bf16[2,11]@x:S(1)", 1 }, { "x", "f64[0,3]@x:S(0)", 0 }, { "x", "f64[3,0]@x:S(0)", 1 },
    { "x", "f64[2,(3 7)]@x:S(1.1)", 1 }, { "x", "f64[(3 5),2]@x:S(0.0)", 0 }, { "x", "f64[(2 3 4)]@x:S(0.1)", 0 },
    { "x=2,y=2", "f64[3,13]@x:S(1),y:S(1)", 1 }, { "x=2,y=2", "f64[3,13]@y:S(1),x:S(1)", 1 },
    { "x=2,y=2", "f64[3,13]@x:S(0),y:S(1)", 1 }, { "x=2,y=2", "f64[(3 5),4]@x:S(0.0),y:S(0.1)", 0 },
    { "x=2,y=3", "f64[2,3,5]@x:S(1),y:S(2)", 1 }, { "x=2,y=3", "f64[20]@y:S(0),x:S(0)", 0 },
    { "x=2,y=3", "f64[(5 4)]@y:S(0.0),x:S(0.1)", 0 },
};

static int64_t host(dt_tensor *x, int64_t n, double *to)
{
    dt_tensor *wide = x ? dt_cast(x, DT_F64) : NULL;
    if (!wide || dt_tensor_to_host(wide, -1, to, (size_t)n * sizeof *to)) return 0;
    return n;
}

static void try_cumsum(dt_tensor *x, const array *a, const sample *s)
{
    double got[MAX];
    int64_t n = a->outer * a->n * a->inner;
    dt_dtype dtype = dt_spec_dtype(dt_tensor_spec(x));
    dt_tensor *y = dt_cumsum(x, s->dim);
    if (!expect(y && host(y, n, got) == n, "cumsum of %s: none", s->spec)) return;
    expect(dt_tensor_spec(y) == dt_tensor_spec(x), "cumsum of %s is %s", s->spec, dt_spec_text(dt_tensor_spec(y)));
    for (int64_t row = 0; row < a->outer * a->inner; row++) {
        double sum = 0, near = dtype == DT_BF16 ? 0.2 : 0;             /* sums of small integers                   */
        for (int64_t i = 0; i < a->n; i++) {
            sum += a->x[at(a, row, i)];
            expect(same(sum, got[at(a, row, i)]) || fabs(sum - got[at(a, row, i)]) <= near,
                   "cumsum of %s: row %lld, element %lld is %g, expected %g", s->spec, (long long)row, (long long)i,
                   got[at(a, row, i)], sum);
        }
    }
}

/* The first k of each row of a, in results of k. */
static void expect_order(dt_tensor *const y[2], const array *a, int64_t k, bool down, const char *what,
                         const char *spec)
{
    double values[MAX], numbers[MAX];
    int64_t n = a->outer * k * a->inner;
    array result = { a->outer, k, a->inner, { 0 } };
    bool told = host(y[0], n, values) == n && host(y[1], n, numbers) == n;
    if (!expect(told, "%s of %s: none", what, spec)) return;
    for (int64_t row = 0; row < a->outer * a->inner; row++)
        for (int64_t i = 0; i < a->n; i++) {
            int64_t place = place_of(a, row, i, down), to = place < k ? at(&result, row, place) : -1;
            expect(to < 0 || (numbers[to] == (double)i && same(values[to], a->x[at(a, row, i)])),
                   "%s of %s: row %lld, place %lld has element %g, %g, expected %lld, %g", what, spec, (long long)row,
                   (long long)place, numbers[to], values[to], (long long)i, a->x[at(a, row, i)]);
        }
}

static void try_order(dt_tensor *x, const array *a, const sample *s)
{
    for (int down = 0; down < 2; down++) {
        dt_tensor *y[2] = { NULL };
        if (!expect(dt_sort(x, s->dim, down, y) == DT_OK, "%s", dt_context_error(dt_mesh_context(dt_spec_mesh(
            dt_tensor_spec(x)))))) return;
        expect(dt_tensor_spec(y[0]) == dt_tensor_spec(x), "sort of %s is %s", s->spec,
               dt_spec_text(dt_tensor_spec(y[0])));
        expect_order(y, a, a->n, down, down ? "sort down" : "sort", s->spec);
        for (int64_t k = 0; k <= a->n; k += 1 + (k > 2) * 4) {
            dt_tensor *first[2] = { NULL };
            dt_topk(x, k, s->dim, down, first);
            expect_order(first, a, k, down, down ? "the largest" : "the smallest", s->spec);
        }
    }
}

static dt_status run_sample(dt_context *ctx, void *arg)
{
    const sample *s = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, s->mesh);
    const dt_spec *spec = dt_spec_parse(mesh, s->spec);
    const dt_spec *wide = spec ? dt_spec_create(mesh, DT_F64, dt_spec_shape(spec), "") : NULL;
    for (int odd = 0; odd < 2 && wide; odd++) {
        array a = array_of(spec, s->dim, odd);
        int64_t n = a.outer * a.n * a.inner;
        dt_tensor *x = dt_cast(dt_from_host(wide, -1, a.x, (size_t)n * sizeof a.x[0]), dt_spec_dtype(spec));
        dt_tensor *like = dt_add(dt_zeros(spec), x);                   /* in the factors of the spec, too          */
        expect(like && dt_tensor_spec(like) == spec, "%s: %s", s->spec, like ? dt_spec_text(dt_tensor_spec(like)) : "");
        if (!like) break;
        try_cumsum(like, &a, s);
        try_order(like, &a, s);
    }
    return dt_context_status(ctx);
}

static void by_loops(void)
{
    static const int worlds[] = { 1, 2, 3, 5, 7 };
    for (int i = 0; i < DT_COUNT(samples); i++) {
        const char *mesh = samples[i].mesh;
        if (strcmp(mesh, "x") != 0) launch(strcmp(mesh, "x=2,y=2") == 0 ? 4 : 6, run_sample, &samples[i]);
        else
            for (int w = 0; w < DT_COUNT(worlds); w++) launch(worlds[w], run_sample, &samples[i]);
    }
}

/* ---- integers, bools, what is partial ---------------------------------------------------------------------------- */

static dt_status run_kinds(dt_context *ctx, void *arg)
{
    static const int64_t wide[7] = { 3, -5, INT64_MAX, 1, INT64_MIN, 3, -5 };
    static const bool flags[5] = { false, false, true, false, true };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    int64_t sums[7], due = 0;
    bool seen[5];
    (void)arg;
    dt_tensor *x = dt_from_host(dt_spec_parse(mesh, "i64[7]@x:S(0)"), -1, wide, sizeof wide), *y[2];
    dt_tensor_to_host(dt_cumsum(x, 0), -1, sums, sizeof sums);
    for (int i = 0; i < 7; i++) {
        due = (int64_t)((uint64_t)due + (uint64_t)wide[i]);
        expect(sums[i] == due, "integers wrap: element %d is %lld, expected %lld", i, (long long)sums[i],
               (long long)due);
    }
    dt_sort(x, 0, false, y);
    static const int64_t order[7] = { 4, 1, 6, 3, 0, 5, 2 };
    dt_tensor_to_host(y[1], -1, sums, sizeof sums);
    for (int i = 0; i < 7; i++) expect(sums[i] == order[i], "integers: place %d has %lld", i, (long long)sums[i]);
    dt_tensor_to_host(dt_cumsum(dt_from_host(dt_spec_parse(mesh, "bool[5]@x:S(0)"), -1, flags, sizeof flags), 0), -1,
                      seen, sizeof seen);
    for (int i = 0; i < 5; i++) expect(seen[i] == (i >= 2), "bools: element %d", i);
    dt_tensor *p = dt_redistribute(dt_arange(dt_spec_parse(mesh, "f64[4,3]"), 1, 1), "x:P"), *run = dt_cumsum(p, 0);
    expect(dt_spec_has(dt_tensor_spec(run), "x:P"), "a sum of what is P is %s", dt_spec_text(dt_tensor_spec(run)));
    expect(dt_tensor_item(dt_max(run, DT_ALL, false)) == 30, "of P: %g", dt_tensor_item(dt_max(run, DT_ALL, false)));
    return dt_context_status(ctx);
}

static void kinds(void)
{
    for (int ranks = 1; ranks <= 5; ranks += 2) launch(ranks, run_kinds, NULL);
}

/* Split along one mesh dim, and P along the other. */
static dt_status run_partial(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    (void)arg;
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f64[5,7]"), 1, 1);
    dt_tensor *y = dt_cumsum(dt_redistribute(x, "x:S(1),y:P"), 1);
    expect(dt_spec_has(dt_tensor_spec(y), "x:S(1),y:P"), "%s", dt_spec_text(dt_tensor_spec(y)));
    expect(dt_tensor_close(y, dt_cumsum(x, 1), 0, 0), "of what is split and P");
    return dt_context_status(ctx);
}

static void split_and_partial(void) { launch(4, run_partial, NULL); }

/* ---- what moves -------------------------------------------------------------------------------------------------- */

static int64_t received(dt_mesh *mesh)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t sum = 0;
    for (int i = 0; i < DT_COMM_KIND_COUNT; i++) sum += now.bytes[i];
    return sum;
}

enum { ROWS = 8, COLUMNS = 4096, K = 5 };

static dt_status run_bytes(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f32[8,4096]@x:S(1)"), 1)), *y[2];
    (void)arg;
    int64_t before = received(mesh);
    dt_tensor *sum = dt_cumsum(x, 1);
    int64_t moved = received(mesh) - before, there = ROWS / 4 * COLUMNS * 3 / 4, back = there;
    expect(moved == ROWS * 3 * 8, "cumsum: %lld bytes, expected a number of each row and other piece",
           (long long)moved);
    before = received(mesh);
    dt_topk(x, K, -1, true, y);
    moved = received(mesh) - before;
    expect(moved == ROWS * 3 * K * 12, "topk: %lld bytes, expected the first of each other piece", (long long)moved);
    expect(dt_spec_has(dt_tensor_spec(y[0]), ""), "topk lies %s", dt_spec_text(dt_tensor_spec(y[0])));
    before = received(mesh);
    dt_backward(y[0], dt_full(dt_tensor_spec(y[0]), 1));
    expect(received(mesh) == before, "back from topk: %lld bytes", (long long)(received(mesh) - before));
    before = received(mesh);
    dt_sort(x, -1, true, y);
    moved = received(mesh) - before;
    expect(moved == there * 4 + back * 12, "sort: %lld bytes, expected %lld", (long long)moved,
           (long long)(there * 4 + back * 12));
    before = received(mesh);
    dt_backward(sum, dt_full(dt_spec_parse(mesh, "f32[8,4096]@x:S(1)"), 1));
    moved = received(mesh) - before;
    expect(moved == ROWS * 3 * 8, "back from cumsum: %lld bytes", (long long)moved);
    return dt_context_status(ctx);
}

static void what_moves(void) { launch(4, run_bytes, NULL); }

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static dt_status run_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[3,4]@x:S(1)")), *y[2];
    (void)arg;
    dt_topk(x, 5, 1, true, y);
    expect_error(ctx, DT_ERR_ARG, "topk: expected a k of at most 4, the size of dim 1, got 5", "k is too large");
    dt_topk(x, -1, 1, true, y);
    expect_error(ctx, DT_ERR_ARG, "expected a k of at least 0, got -1", "k is negative");
    dt_cumsum(x, 2);
    expect_error(ctx, DT_ERR_ARG, "cumsum", "no such dim");
    dt_sort(x, -3, false, y);
    expect_error(ctx, DT_ERR_ARG, "sort", "no such dim");
    return dt_context_status(ctx);
}

static void errors(void) { launch(2, run_errors, NULL); }

static const test_row rows[] = {
    { "by_loops", by_loops }, { "kinds", kinds }, { "split_and_partial", split_and_partial },
    { "what_moves", what_moves }, { "errors", errors },
};

const suite the_suite = { "order", rows, DT_COUNT(rows) };
