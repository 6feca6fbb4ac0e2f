/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviour to reproduce, a row a line of that list, numbered as there: what an op gives where its operands lie so,
 * what moves for it, and where gradients come to lie. "Serial" is the same call on tensors that are R. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static void on(int ranks, dt_rank_fn fn, const void *arg)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(ranks, fn, (void *)(uintptr_t)arg, error, sizeof error);
    expect(status == DT_OK, "%d ranks: %s", ranks, error);
}

static dt_tensor *numbers(dt_mesh *mesh, const char *spec, uint64_t seed)
{
    return dt_randn(dt_spec_parse(mesh, spec), seed);
}

/* A leaf with the value of a draw, placed so: the same whatever the placement, P too. */
static dt_tensor *leaf(dt_mesh *mesh, const char *sizes, const char *placements, uint64_t seed)
{
    return dt_require_grad(dt_detach(dt_redistribute(numbers(mesh, sizes, seed), placements)));
}

/* A tensor of which each rank has this part. */
static dt_tensor *of_locals(dt_mesh *mesh, const char *spec, const char *sizes, const double *values, int n)
{
    char place[32];
    snprintf(place, sizeof place, "x=%d", dt_mesh_coord(mesh, "x"));
    dt_mesh *one = dt_mesh_select(mesh, place);
    dt_tensor *local = dt_from_host(dt_spec_parse(one, sizes), -1, values, (size_t)n * sizeof *values);
    return dt_from_local(local, dt_spec_parse(mesh, spec), "");
}

static void expect_placed(dt_tensor *x, const char *placements, const char *what)
{
    expect(x && dt_spec_has(dt_tensor_spec(x), placements), "%s: %s, expected %s", what,
           x ? dt_spec_text(dt_tensor_spec(x)) : "nothing", placements);
}

static void expect_close(dt_tensor *x, dt_tensor *due, const char *what)
{
    if (!expect(x && due, "%s: nothing", what)) return;
    expect(dt_tensor_close(x, due, 1e-12, 1e-12), "%s: %s is not serial", what, dt_spec_text(dt_tensor_spec(x)));
}

static void expect_item(dt_tensor *x, double due, const char *what)
{
    double item = dt_tensor_item(x);
    expect(fabs(item - due) <= 1e-12 * (1 + fabs(due)), "%s: %.17g, expected %.17g", what, item, due);
}

/* Calls that moved something since. */
static int64_t calls_since(const dt_mesh *mesh, const dt_counters *before)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t calls = 0;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++)
        if (k != DT_COMM_LOCAL) calls += now.calls[k] - before->calls[k];
    return calls;
}

static int64_t of_kind(const dt_mesh *mesh, const dt_counters *before, dt_comm_kind kind)
{
    return dt_mesh_counters(mesh, NULL).calls[kind] - before->calls[kind];
}

static void expect_calls(const dt_mesh *mesh, const dt_counters *before, int due, const char *what)
{
    int64_t calls = calls_since(mesh, before);
    expect(calls == due, "%s: %lld calls, expected %d", what, (long long)calls, due);
}

/* ---- 1 .. 5: redistributions ------------------------------------------------------------------------------------- */

typedef struct moved_case { const char *source, *target, *seed, *gradient; int forward, backward; } moved_case;

static const moved_case moved[] = {
    { "f64[12,3]@x:S(0)", "", "", "x:S(0)", 1, 0 }, { "f64[13,3]@x:S(0)", "", "", "x:S(0)", 1, 0 },
    { "f64[14,3]@x:S(0)", "", "", "x:S(0)", 1, 0 }, { "f64[3,12]@x:S(1)", "", "", "x:S(1)", 1, 0 },
    { "f64[3,13]@x:S(1)", "", "", "x:S(1)", 1, 0 }, { "f64[3,14]@x:S(1)", "", "", "x:S(1)", 1, 0 },
    { "f64[12,3]", "x:S(0)", "x:S(0)", "", 0, 1 }, { "f64[13,3]", "x:S(0)", "x:S(0)", "", 0, 1 },
    { "f64[14,3]", "x:S(0)", "x:S(0)", "", 0, 1 }, { "f64[3,13]", "x:S(1)", "x:S(1)", "", 0, 1 },
    { "f64[12,3]@x:P", "", "", "", 1, 0 },
    { "f64[12,3]@x:P", "x:S(0)", "x:S(0)", "", 1, 1 }, { "f64[13,3]@x:P", "x:S(0)", "x:S(0)", "", 1, 1 },
    { "f64[3,14]@x:P", "x:S(1)", "x:S(1)", "", 1, 1 },
    { "f64[12,3]@x:P", "x:P", "x:P", "x:P", 0, 0 }, { "f64[12,3]@x:P", "x:P", "", "", 0, 0 },
};

static dt_status redistributed(dt_context *ctx, void *arg)
{
    const moved_case *m = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_require_grad(dt_full(dt_spec_parse(mesh, m->source), 2));
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_redistribute(x, m->target);
    expect_calls(mesh, &before, m->forward, m->source);
    dt_tensor *seed = dt_full(dt_spec_replace(dt_tensor_spec(y), m->seed), 1);
    before = dt_mesh_counters(mesh, NULL);
    dt_backward(y, seed);
    expect_calls(mesh, &before, m->backward, m->source);
    expect_placed(dt_grad(x), m->gradient, m->source);
    expect_close(dt_grad(x), dt_full(dt_spec_replace(dt_tensor_spec(x), ""), 1), "a gradient of ones is ones");
    return dt_context_status(ctx);
}

static void case_1_to_5_gradients_of_redistributions(void)
{
    for (int i = 0; i < DT_COUNT(moved); i++) on(4, redistributed, &moved[i]);
}

/* ---- 19, 20: the border ------------------------------------------------------------------------------------------ */

static dt_status border(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[4,3]", "", 1);
    expect(!dt_to_local(x, NULL), "to_local needs the gradient's placements");
    expect_error(ctx, DT_ERR_ARG, "the gradient's placements", "to_local");
    expect(!dt_from_local(NULL, dt_tensor_spec(x), NULL), "from_local, too");
    expect_error(ctx, DT_ERR_ARG, "the gradient's placements", "from_local");
    dt_tensor *local = dt_to_local(x, "x:P");
    dt_backward(dt_sum(local, DT_ALL, false), NULL);
    expect_placed(dt_grad(x), "x:P", "a gradient that is stated P");
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *read = dt_redistribute(dt_grad(x), "");
    expect(of_kind(mesh, &before, DT_COMM_ALL_REDUCE) == 1, "read as R it is one all-reduce");
    expect_close(read, dt_full(dt_tensor_spec(x), dt_rank_count(ctx)), "read as R");
    return dt_context_status(ctx);
}

static void case_19_gradients_are_stated_at_the_border(void) { on(4, border, NULL); }

static dt_status wrong_locals(dt_context *ctx, void *arg)
{
    char place[32];
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    snprintf(place, sizeof place, "x=%d", dt_rank(ctx));
    dt_mesh *one = dt_mesh_select(mesh, place);
    dt_tensor *local = dt_zeros(dt_spec_create(one, DT_F64, DT_SHAPE(3, 2 + dt_rank(ctx)), NULL));
    expect(!dt_from_local(local, dt_spec_parse(mesh, "f64[3,14]@x:S(1)"), "x:S(1)"), "rank %d", dt_rank(ctx));
    expect_error(ctx, DT_ERR_SHAPE, "do not fit", "2, 3, 4, 5 columns where 4, 3, 4, 3 are due");
    return dt_context_status(ctx);
}

static void case_20_locals_that_do_not_fit(void) { on(4, wrong_locals, NULL); }

/* ---- products ---------------------------------------------------------------------------------------------------- */

typedef dt_tensor *(*binary_fn)(dt_tensor *a, dt_tensor *b);

typedef struct product { binary_fn op; const char *a, *b, *result; } product;

/* Value and both gradients, of operands placed so, are those of whole ones. */
static dt_tensor *product_is_serial(dt_mesh *mesh, const product *p, const char *a_placed, const char *b_placed)
{
    char what[128];
    snprintf(what, sizeof what, "%s@%s, %s@%s", p->a, a_placed, p->b, b_placed);
    dt_tensor *a = leaf(mesh, p->a, a_placed, 1), *b = leaf(mesh, p->b, b_placed, 2);
    dt_tensor *whole_a = leaf(mesh, p->a, "", 1), *whole_b = leaf(mesh, p->b, "", 2);
    dt_tensor *y = p->op(a, b), *due = p->op(whole_a, whole_b), *seed = numbers(mesh, p->result, 3);
    expect_close(y, due, what);
    dt_backward(y, seed);
    dt_backward(due, seed);
    expect_close(dt_grad(a), dt_grad(whole_a), what);
    expect_close(dt_grad(b), dt_grad(whole_b), what);
    return y;
}

static dt_status all_pairs(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "x:S(0)", "x:S(1)", "x:S(2)", "x:P" };
    const product *p = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    int dims = dt_spec_shape(dt_spec_parse(mesh, p->a)).n;
    for (int i = 0; i < DT_COUNT(places); i++)
        for (int k = 0; k < DT_COUNT(places); k++) {
            if (dims < 3 && (i == 3 || k == 3)) continue;
            int scope = dt_scope_push(ctx, 0);
            product_is_serial(mesh, p, places[i], places[k]);
            dt_scope_pop(ctx, scope, NULL);
        }
    return dt_context_status(ctx);
}

static dt_status without_communication(dt_context *ctx, void *arg)
{
    static const char *const cases[][3] = {
        { "x:S(0)", "", "x:S(0)" }, { "", "x:S(1)", "x:S(1)" }, { "x:S(1)", "x:S(0)", "x:P" },
    };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(cases); i++) {
        dt_tensor *a = leaf(mesh, "f64[12,8]", cases[i][0], 1), *b = leaf(mesh, "f64[8,16]", cases[i][1], 2);
        dt_counters before = dt_mesh_counters(mesh, NULL);
        expect_placed(dt_matmul(a, b), cases[i][2], "mm");
        expect_calls(mesh, &before, 0, cases[i][2]);
    }
    dt_tensor *few = leaf(mesh, "f64[3,4]", "x:S(0)", 1), *b = leaf(mesh, "f64[4,5]", "", 2);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_matmul(few, b);
    expect_placed(y, "x:S(0)", "3 rows on 4 ranks");
    expect_calls(mesh, &before, 0, "an empty rank");
    expect(dt_spec_local_shape(dt_tensor_spec(y), 1).dim[0] + dt_spec_local_shape(dt_tensor_spec(y), 3).dim[0] == 1
               || dt_spec_local_shape(dt_tensor_spec(y), 3).dim[0] == 0, "one rank is empty");
    expect_close(y, dt_matmul(leaf(mesh, "f64[3,4]", "", 1), b), "3 rows on 4 ranks");
    return dt_context_status(ctx);
}

static void case_25_mm_all_pairs(void)
{
    static const product mm = { dt_matmul, "f64[12,8]", "f64[8,16]", "f64[12,16]" };
    on(4, all_pairs, &mm);
}

static void case_25_26_mm_that_moves_nothing(void) { on(4, without_communication, NULL); }

static dt_status bias_once(dt_context *ctx, void *arg)
{
    static const char *const shapes[] = { "f64[6]", "f64[1,6]", "f64[5,1]", "f64[]" };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[5,8]", "x:S(1)", 1), *w = leaf(mesh, "f64[6,8]", "x:S(1)", 2);
    dt_tensor *whole_x = leaf(mesh, "f64[5,8]", "", 1), *whole_w = leaf(mesh, "f64[6,8]", "", 2);
    dt_tensor *b = leaf(mesh, "f64[6]", "", 3);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_linear(x, w, b);
    expect_placed(y, "x:P", "linear");
    expect_calls(mesh, &before, 0, "linear");
    expect_close(y, dt_linear(whole_x, whole_w, b), "linear, its bias once");
    dt_tensor *turned = dt_transpose(w, 0, 1), *whole_turned = dt_transpose(whole_w, 0, 1);
    for (int i = 0; i < DT_COUNT(shapes); i++) {
        dt_tensor *c = leaf(mesh, shapes[i], "", 4);
        before = dt_mesh_counters(mesh, NULL);
        y = dt_addmm(c, x, turned);
        expect_placed(y, "x:P", shapes[i]);
        expect_calls(mesh, &before, 0, shapes[i]);
        expect_close(y, dt_addmm(c, whole_x, whole_turned), shapes[i]);
    }
    return dt_context_status(ctx);
}

static void case_27_a_bias_counts_once(void) { on(4, bias_once, NULL); }

static dt_status sums_of_both(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_tensor *a = leaf(mesh, "f64[4,6]", "x:P", 1), *b = leaf(mesh, "f64[6,8]", "x:P", 2);
    dt_tensor *due = dt_matmul(leaf(mesh, "f64[4,6]", "", 1), leaf(mesh, "f64[6,8]", "", 2));
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_matmul(a, b);
    expect_placed(y, "x:P", "P and P: one is reduced");
    expect_calls(mesh, &before, 1, "P and P");
    expect_close(y, due, "P and P");
    b = leaf(mesh, "f64[6,8]", "y:P", 2);
    before = dt_mesh_counters(mesh, NULL);
    y = dt_matmul(a, b);
    expect_placed(y, "x:P,y:P", "[P, R] x [R, P]");
    expect_calls(mesh, &before, 0, "[P, R] x [R, P]");
    expect_close(y, due, "[P, R] x [R, P]");
    return dt_context_status(ctx);
}

static void case_28_sums_times_sums(void) { on(4, sums_of_both, NULL); }

static dt_status no_inner_dim(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *a = dt_zeros(dt_spec_parse(mesh, "f64[12,0]@x:S(0)")), *b = dt_zeros(dt_spec_parse(mesh, "f64[0,4]"));
    expect_close(dt_matmul(a, b), dt_zeros(dt_spec_parse(mesh, "f64[12,4]")), "(12,0) x (0,4)");
    return dt_context_status(ctx);
}

static void case_29_bmm_all_pairs(void)
{
    static const product bmm = { dt_bmm, "f64[4,8,4]", "f64[4,4,8]", "f64[4,8,8]" };
    on(4, all_pairs, &bmm);
    on(4, no_inner_dim, NULL);
}

/* ---- embedding --------------------------------------------------------------------------------------------------- */

static dt_tensor *ids_of(dt_mesh *mesh, int rows, int columns, int step, int most)
{
    int64_t values[64];
    for (int i = 0; i < rows * columns; i++) values[i] = i * step % most;
    const dt_spec *spec = dt_spec_create(mesh, DT_I64, DT_SHAPE(rows, columns), NULL);
    return dt_from_host(spec, -1, values, (size_t)(rows * columns) * sizeof *values);
}

static void by_columns(dt_mesh *mesh)
{
    dt_tensor *w = leaf(mesh, "f64[17,12]", "x:S(1)", 1), *whole = leaf(mesh, "f64[17,12]", "", 1);
    dt_tensor *ids = ids_of(mesh, 8, 8, 5, 17), *seed = numbers(mesh, "f64[8,8,12]", 2);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_embedding(w, ids);
    expect_placed(y, "x:S(2)", "W S(1)");
    dt_backward(y, seed);
    expect_calls(mesh, &before, 0, "W S(1)");
    expect_placed(dt_grad(w), "x:S(1)", "the gradient of W S(1)");
    dt_backward(dt_embedding(whole, ids), seed);
    expect_close(dt_grad(w), dt_grad(whole), "the gradient of W S(1)");
}

static void by_rows(dt_mesh *mesh, const char *sizes, int rows, int columns)
{
    dt_tensor *w = leaf(mesh, sizes, "x:S(0)", 1), *other = leaf(mesh, sizes, "x:S(0)", 2);
    dt_tensor *ids = ids_of(mesh, 8, 8, 3, rows), *more = ids_of(mesh, 8, 8, 7, rows);
    dt_tensor *whole = leaf(mesh, sizes, "", 1), *whole_other = leaf(mesh, sizes, "", 2);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_embedding(w, ids), *z = dt_embedding(other, more);
    expect_placed(y, "x:P", sizes);
    expect_calls(mesh, &before, 0, "two embeddings, neither used");
    expect_close(y, dt_embedding(whole, ids), sizes);
    expect_close(z, dt_embedding(whole_other, more), "the second of one shape");
    dt_tensor *seed = dt_randn(dt_spec_create(mesh, DT_F64, DT_SHAPE(8, 8, columns), NULL), 3);
    dt_backward(y, seed);
    dt_backward(dt_embedding(whole, ids), seed);
    expect_placed(dt_grad(w), "x:S(0)", sizes);
    expect_close(dt_grad(w), dt_grad(whole), sizes);
}

static dt_status embeddings(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    by_columns(mesh);
    by_rows(mesh, "f64[10,20]", 10, 20);
    by_rows(mesh, "f64[13,22]", 13, 22);
    by_rows(mesh, "f64[15,14]", 15, 14);
    return dt_context_status(ctx);
}

static void case_30_embedding(void) { on(4, embeddings, NULL); }

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static dt_status reductions(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[13,5]", "x:S(0)", 1), *whole = leaf(mesh, "f64[13,5]", "", 1);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *sum = dt_sum(x, DT_DIMS(0), false), *mean = dt_mean(x, DT_ALL, false);
    dt_tensor *most = dt_max(x, DT_DIMS(0), false);
    expect_calls(mesh, &before, 0, "reductions over a split dim");
    expect_placed(sum, "x:P", "a sum");
    expect_placed(most, "x:P(max)", "a maximum");
    expect_close(sum, dt_sum(whole, DT_DIMS(0), false), "a sum");
    expect_close(mean, dt_mean(whole, DT_ALL, false), "a mean of 13 over 4 ranks");
    expect_close(most, dt_max(whole, DT_DIMS(0), false), "a maximum");
    return dt_context_status(ctx);
}

static dt_status shared_gradients(dt_context *ctx, void *arg)
{
    static const double tied[8] = { 3, 1, 3, 2, 0, 3, -1, 3 }, quarters[8] = { .25, 0, .25, 0, 0, .25, 0, .25 };
    static const double zeros[8] = { 2, 0, 3, 5, 2, 1, 1, 1 }, products[8] = { 0, 60, 0, 0, 0, 0, 0, 0 };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const dt_spec *spec = dt_spec_parse(mesh, "f64[8]@x:S(0)");
    dt_tensor *x = dt_require_grad(dt_from_host(spec, -1, tied, sizeof tied));
    dt_backward(dt_max(x, DT_ALL, false), NULL);
    expect_close(dt_grad(x), dt_from_host(spec, -1, quarters, sizeof quarters), "ties of all ranks share");
    x = dt_require_grad(dt_from_host(spec, -1, zeros, sizeof zeros));
    dt_backward(dt_prod(x, DT_ALL, false), NULL);
    expect_close(dt_grad(x), dt_from_host(spec, -1, products, sizeof products), "a product with a zero");
    x = dt_require_grad(dt_full(dt_spec_parse(mesh, "f32[4]@x:S(0)"), 1.5));
    dt_backward(dt_cast(x, DT_F64), dt_full(dt_spec_parse(mesh, "f64[4]"), 2));
    expect(dt_spec_dtype(dt_tensor_spec(dt_grad(x))) == DT_F32, "a cast's gradient is cast back");
    return dt_context_status(ctx);
}

static dt_status first_of_equals(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_full(dt_spec_parse(mesh, "f64[10,5,3,8]@x:S(0)"), 1);
    expect_item(dt_sum(dt_argmax(x, 0, false), DT_ALL, false), 0, "argmax of equals");
    return dt_context_status(ctx);
}

static void case_36_reductions_over_a_split_dim(void)
{
    on(4, reductions, NULL);
    for (int ranks = 1; ranks <= 3; ranks++) on(ranks, shared_gradients, NULL);
    on(2, first_of_equals, NULL);
}

static dt_status numbers_count_once(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f64[10]@x:S(0)"), 0, 1);
    dt_tensor *sum = dt_sum(x, DT_ALL, false), *mean = dt_mean(x, DT_ALL, false);
    expect_placed(sum, "x:P", "sum(x)");
    expect_item(dt_add_scalar(sum, 10), 55, "sum(x) + 10");
    expect_item(dt_add(sum, dt_full(dt_spec_parse(mesh, "f64[]"), 10)), 55, "sum(x) + a tensor");
    for (int i = 1; i <= 3; i++) expect_item(dt_mul_scalar(mean, i), 4.5 * i, "mean(x) times a number");
    return dt_context_status(ctx);
}

static void case_37_38_numbers(void) { on(2, numbers_count_once, NULL); }

static dt_status norms(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    double values[2] = { dt_rank(ctx) ? 2 : 1, dt_rank(ctx) ? 1 : 3 };
    dt_tensor *x = of_locals(mesh, "f64[2]@x:P", "f64[2]", values, 2), *norm = dt_norm(x, DT_ALL, false);
    expect_item(norm, 5, "the norm of 3, 4");
    expect_item(dt_mul(norm, norm), 25, "its square");
    expect_item(dt_sum(dt_mul(x, x), DT_ALL, false), 25, "its sum of squares");
    expect_item(dt_norm(dt_full(dt_spec_parse(mesh, "f64[8,8]@x:S(0)"), 1), DT_ALL, false), 8, "the norm of ones");
    return dt_context_status(ctx);
}

static void case_39_40_norms(void) { on(2, norms, NULL); }

/* ---- partial operands -------------------------------------------------------------------------------------------- */

typedef struct partial_case { binary_fn op; const char *a, *b, *result; int calls; } partial_case;

static dt_tensor *first_relu(dt_tensor *a, dt_tensor *b)
{
    (void)b;
    return dt_relu(a);
}

static const partial_case partials[] = {
    { dt_add, "x:P", "x:P", "x:P", 0 },            { dt_add, "x:P(avg)", "", "x:P(avg)", 0 },
    { dt_add, "x:P", "", "x:P", 0 },               { dt_mul, "x:P", "", "x:P", 0 },
    { dt_mul, "x:P", "x:P", "x:P", 1 },            { first_relu, "x:P(max)", "", "x:P(max)", 0 },
    { first_relu, "x:P", "", NULL, 1 },
};

static dt_status partial_operands(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(partials); i++) {
        const partial_case *p = &partials[i];
        dt_tensor *a = leaf(mesh, "f64[8,3]", p->a, 1), *b = leaf(mesh, "f64[8,3]", p->b, 2);
        dt_counters before = dt_mesh_counters(mesh, NULL);
        dt_tensor *y = p->op(a, b);
        expect_calls(mesh, &before, p->calls, p->a);
        if (p->result) expect_placed(y, p->result, p->a);
        else expect(!strchr(dt_spec_placements(dt_tensor_spec(y)), 'P'), "relu of P(sum) reduces first");
        expect_close(y, p->op(leaf(mesh, "f64[8,3]", "", 1), leaf(mesh, "f64[8,3]", "", 2)), p->a);
    }
    return dt_context_status(ctx);
}

static void case_41_partial_operands(void) { on(4, partial_operands, NULL); }

static dt_status like_a_sum(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[3,3]", "x:P", 1);
    expect_close(dt_fill(x, 1), dt_full(dt_spec_parse(mesh, "f64[3,3]"), 1), "ones like P");
    expect_close(dt_fill(x, 8), dt_full(dt_spec_parse(mesh, "f64[3,3]"), 8), "fill of P");
    return dt_context_status(ctx);
}

static void case_42_the_value_of_ones_like_a_sum(void) { on(4, like_a_sum, NULL); }

static dt_status extremes(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    double one = dt_rank(ctx) ? 5 : 1, two = dt_rank(ctx) ? 2 : 7;
    dt_tensor *a = of_locals(mesh, "f64[]@x:P(max)", "f64[]", &one, 1);
    dt_tensor *b = of_locals(mesh, "f64[]@x:P(max)", "f64[]", &two, 1);
    expect_item(dt_add(a, b), 12, "P(max) + P(max)");
    expect_placed(dt_mul_scalar(a, -1), "x:P(min)", "P(max) times -1");
    expect_item(dt_mul_scalar(a, -1), -5, "P(max) times -1");
    expect_placed(dt_neg(a), "x:P(min)", "-P(max)");
    expect_item(dt_neg(a), -5, "-P(max)");
    return dt_context_status(ctx);
}

static void case_45_extremes(void) { on(2, extremes, NULL); }

/* ---- 43: random numbers ------------------------------------------------------------------------------------------ */

static dt_tensor *dropped(dt_tensor *const *in, void *arg)
{
    (void)arg;
    return dt_dropout(in[0], 0.5, 7);
}

/* The sums of 8 x 16 numbers and of what dropout leaves, weighted by their index. */
static double weighed(dt_tensor *x)
{
    dt_tensor *weights = dt_arange(dt_spec_replace(dt_tensor_spec(x), ""), 1, 1);
    return dt_tensor_item(dt_sum(dt_mul(x, weights), DT_ALL, false));
}

static dt_status one_tensor_everywhere(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "x:S(0)", "x:S(1)", "x:P" };
    const uint64_t *due = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(places); i++) {
        const dt_spec *spec = dt_spec_replace(dt_spec_parse(mesh, "f64[8,16]"), places[i]);
        dt_tensor *x = dt_rand(spec, 5);
        expect(dt_tensor_checksum(dt_redistribute(x, "")) == *due, "%s on %d", places[i], dt_rank_count(ctx));
        dt_tensor *ones = dt_require_grad(dt_full(spec, 1)), *again = dt_require_grad(dt_full(spec, 1));
        dt_tensor *y = dropped(&ones, NULL), *z = dt_recompute(dropped, NULL, &again, 1);
        dt_tensor *seed = dt_full(dt_spec_parse(mesh, "f64[8,16]"), 1);
        dt_backward(y, seed);
        dt_backward(z, seed);
        expect(weighed(y) == weighed(dt_dropout(dt_full(dt_spec_parse(mesh, "f64[8,16]"), 1), 0.5, 7)), "dropout");
        expect_close(dt_grad(ones), y, "dropout draws the same backward");
        expect_close(dt_grad(again), z, "and in recompute");
    }
    return dt_context_status(ctx);
}

static dt_status checksum(dt_context *ctx, void *arg)
{
    *(uint64_t *)arg = dt_tensor_checksum(dt_rand(dt_spec_parse(dt_mesh_create(ctx, "x"), "f64[8,16]"), 5));
    return dt_context_status(ctx);
}

static void case_43_random_numbers(void)
{
    uint64_t due = 0;
    on(1, checksum, &due);
    for (int ranks = 1; ranks <= 4; ranks++) on(ranks, one_tensor_everywhere, &due);
}

/* ---- 46, 47: layers ---------------------------------------------------------------------------------------------- */

enum { HALF_LAYERS = 160 };

/* Norm, columns, rows, residual: x is R, and so is its gradient, summed where n is pinned. */
static dt_tensor *half_layer(dt_mesh *mesh, dt_tensor *x, dt_tensor **norm)
{
    *norm = dt_require_grad(dt_full(dt_spec_parse(mesh, "f32[8]"), 1));
    dt_tensor *up = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[16,8]@x:S(0)")));
    dt_tensor *down = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[8,16]@x:S(1)")));
    dt_tensor *n = dt_redistribute(dt_rms_norm(x, *norm, 1e-5), "x:R,*");
    dt_tensor *y = dt_linear(dt_gelu(dt_linear(n, up, NULL)), down, NULL);
    return dt_add(x, dt_redistribute(y, "x:R,*"));
}

static void case_46_half_layers(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *norm[HALF_LAYERS], *x = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[2,3,8]")));
    dt_tensor *y = x;
    dt_counters before = dt_mesh_counters(mesh, NULL);
    for (int i = 0; i < HALF_LAYERS; i++) y = half_layer(mesh, y, &norm[i]);
    expect_calls(mesh, &before, HALF_LAYERS, "forward");
    before = dt_mesh_counters(mesh, NULL);
    dt_backward(y, dt_zeros(dt_spec_parse(mesh, "f32[2,3,8]")));
    dt_counters after = dt_mesh_counters(mesh, NULL);
    expect_calls(mesh, &before, HALF_LAYERS, "backward");
    expect(after.calls[DT_COMM_ALL_REDUCE] - before.calls[DT_COMM_ALL_REDUCE] == HALF_LAYERS, "they are all-reduces");
    int64_t bytes = after.bytes[DT_COMM_ALL_REDUCE] - before.bytes[DT_COMM_ALL_REDUCE];
    const dt_plan *one = dt_plan_create(dt_spec_parse(mesh, "f32[2,3,8]@x:P"), dt_tensor_spec(x), DT_PLAN_TIME);
    expect(bytes == HALF_LAYERS * dt_plan_price(one).bytes, "%lld bytes, of [b, s, h] each", (long long)bytes);
    for (int i = 0; i < HALF_LAYERS; i++) expect_placed(dt_grad(norm[i]), "", "the gradient of a norm's weight");
    expect_no_error(ctx, "half layers");
    dt_context_destroy(&ctx);
}

/* Five products with one activation, which is placed for each of them. */
static dt_tensor *five_products(dt_mesh *mesh, dt_tensor *input)
{
    int scope = dt_scope_push(dt_mesh_context(mesh), 0);
    dt_tensor *x = dt_mul_scalar(input, 2), *sum = NULL;
    for (int i = 0; i < 5; i++) {
        dt_tensor *w = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[16,8]@x:S(0)")));
        dt_tensor *y = dt_linear(dt_redistribute(x, "x:R,*"), w, NULL);
        sum = sum ? dt_add(sum, y) : y;
    }
    return dt_scope_pop(dt_mesh_context(mesh), scope, sum);
}

static void case_47_one_gathered_activation(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *input = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[2,12,8]@x:S(1)")));
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *sum = five_products(mesh, input);
    expect(of_kind(mesh, &before, DT_COMM_ALL_GATHER) == 1, "q, k, v, gate and up: one gather forward");
    expect_calls(mesh, &before, 1, "forward");
    before = dt_mesh_counters(mesh, NULL);
    dt_backward(sum, dt_zeros(dt_spec_parse(mesh, "f32[2,12,16]@x:S(2)")));
    expect(of_kind(mesh, &before, DT_COMM_ALL_GATHER) == 1, "one gather backward");
    expect(of_kind(mesh, &before, DT_COMM_REDUCE_SCATTER) == 1, "and its dual");
    expect_calls(mesh, &before, 2, "backward");
    expect_no_error(ctx, "one gathered activation");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "case_1_to_5_gradients_of_redistributions", case_1_to_5_gradients_of_redistributions },
    { "case_19_gradients_are_stated_at_the_border", case_19_gradients_are_stated_at_the_border },
    { "case_20_locals_that_do_not_fit", case_20_locals_that_do_not_fit },
    { "case_25_mm_all_pairs", case_25_mm_all_pairs },
    { "case_25_26_mm_that_moves_nothing", case_25_26_mm_that_moves_nothing },
    { "case_27_a_bias_counts_once", case_27_a_bias_counts_once },
    { "case_28_sums_times_sums", case_28_sums_times_sums },
    { "case_29_bmm_all_pairs", case_29_bmm_all_pairs },
    { "case_30_embedding", case_30_embedding },
    { "case_36_reductions_over_a_split_dim", case_36_reductions_over_a_split_dim },
    { "case_37_38_numbers", case_37_38_numbers },
    { "case_39_40_norms", case_39_40_norms },
    { "case_41_partial_operands", case_41_partial_operands },
    { "case_42_the_value_of_ones_like_a_sum", case_42_the_value_of_ones_like_a_sum },
    { "case_43_random_numbers", case_43_random_numbers },
    { "case_45_extremes", case_45_extremes },
    { "case_46_half_layers", case_46_half_layers },
    { "case_47_one_gathered_activation", case_47_one_gathered_activation },
};

const suite the_suite = { "cases", rows, DT_COUNT(rows) };
