/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists: what goes together is one call, and each result is what it is by itself, bit for bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>
#include <dtensor/op.h>

#include "errors.h"
#include "launch.h"

enum { MOST = 160 };

static dt_tensor *drawn(dt_mesh *mesh, const char *spec, uint64_t seed)
{
    return dt_randn(dt_spec_parse(mesh, spec), seed);
}

static int64_t calls_of(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t n = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) n += counters.calls[kind];
    return n;
}

static int64_t bytes_of(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t n = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) n += counters.bytes[kind];
    return n;
}

static size_t part_bytes(const dt_tensor *x)
{
    const dt_spec *spec = dt_tensor_spec(x);
    int rank = 0;
    size_t bytes = dt_dtype_bytes(dt_spec_dtype(spec));
    while (dt_mesh_rank(dt_spec_mesh(spec), rank) != dt_rank(dt_mesh_context(dt_spec_mesh(spec)))) rank++;
    dt_shape shape = dt_spec_local_shape(spec, rank);
    for (int d = 0; d < shape.n; d++) bytes *= (size_t)shape.dim[d];
    return bytes;
}

static void expect_same(dt_tensor *x, dt_tensor *y, const char *what, int i)
{
    bool same = x && y && dt_tensor_spec(x) == dt_tensor_spec(y);
    if (same && dt_tensor_data(x)) same = memcmp(dt_tensor_data(x), dt_tensor_data(y), part_bytes(x)) == 0;
    expect(same, "%s: %d is %s, by itself %s", what, i, x ? dt_spec_text(dt_tensor_spec(x)) : "nothing",
           y ? dt_spec_text(dt_tensor_spec(y)) : "nothing");
}

/* ---- any placements ---------------------------------------------------------------------------------------------- */

static const char *const places[] = { "R", "S(0)", "S(1)", "P" };

static const char *placed(char *text, size_t room, int i)
{
    snprintf(text, room, "x:%s,y:%s", places[i / 4 % 4], places[i % 4]);
    return text;
}

/* From everything to everything, in one list and one by one; steps of one stage and kind are counted once. */
static dt_status pairs(dt_context *ctx, void *arg)
{
    static const int targets[] = { 0, 1, 2, 4, 5, 6, 8, 9, 10 };
    char text[MOST][32];
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y");
    dt_tensor *x[MOST], *y[MOST], *z[MOST];
    const char *to[MOST];
    int n = 0;
    bool together = arg != NULL;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < DT_COUNT(targets); k++, n++) {
            char source[32], spec[64];
            snprintf(spec, sizeof spec, "f32[13,%d]@%s", 5 + n % 3, placed(source, sizeof source, i));
            x[n] = drawn(mesh, spec, (uint64_t)n);
            to[n] = placed(text[n], sizeof text[n], targets[k]);
        }
    int64_t before = bytes_of(mesh), planned = 0, calls = calls_of(mesh);
    for (int i = 0; i < n; i++) {
        const dt_spec *spec = dt_spec_replace(dt_tensor_spec(x[i]), to[i]);
        planned += dt_plan_received(dt_plan_create(dt_tensor_spec(x[i]), spec, DT_PLAN_TIME), dt_rank(ctx));
    }
    if (together) {
        dt_work *work[MOST];
        dt_redistribute_start_list(x, n, to, work);
        for (int i = n - 1; i >= 0; i--) y[i] = dt_work_wait(work[i]);
    } else dt_redistribute_list(x, n, to, y);
    expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    expect(bytes_of(mesh) - before == planned, "%lld bytes, planned %lld", (long long)(bytes_of(mesh) - before),
           (long long)planned);
    int64_t alone = calls_of(mesh);
    for (int i = 0; i < n; i++) z[i] = dt_redistribute(x[i], to[i]);
    alone = calls_of(mesh) - alone;
    calls = calls_of(mesh) - alone - calls;
    expect(calls <= 40 && 2 * calls < alone, "%lld calls, one by one %lld", (long long)calls, (long long)alone);
    for (int i = 0; i < n; i++) expect_same(y[i], z[i], to[i], i);
    return dt_context_status(ctx);
}

static void any_placements(void)
{
    launch(4, pairs, NULL);
    launch(6, pairs, NULL);
    launch(4, pairs, (void *)(uintptr_t)"started");
}

/* ---- what is one call -------------------------------------------------------------------------------------------- */

static const struct counted { const char *spec, *to; dt_comm_kind kind; } counted[] = {
    { "f32[40,6]@x:S(0)", "x:R,*", DT_COMM_ALL_GATHER },     { "f32[7]@x:S(0)", "x:R,*", DT_COMM_ALL_GATHER },
    { "bf16[30,4]@x:S(1)", "x:R,*", DT_COMM_ALL_GATHER },    { "f64[12,6]@x:P", "x:R,*", DT_COMM_ALL_REDUCE },
    { "f32[40,6]@x:P", "x:R,*", DT_COMM_ALL_REDUCE },        { "f32[40,6]@x:P", "x:S(0),*", DT_COMM_REDUCE_SCATTER },
    { "f32[40]@x:P", "x:S(0),*", DT_COMM_REDUCE_SCATTER },   { "f32[8,8]@x:S(0)", "x:S(1)", DT_COMM_ALL_TO_ALL },
    { "f32[8,8]@x:S(1)", "x:S(0)", DT_COMM_ALL_TO_ALL },     { "f32[9,9]", "x:S(0)", DT_COMM_LOCAL },
};

static dt_status one_call(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x[DT_COUNT(counted)], *y[DT_COUNT(counted)];
    const char *to[DT_COUNT(counted)];
    for (int i = 0; i < DT_COUNT(counted); i++) {
        x[i] = drawn(mesh, counted[i].spec, (uint64_t)i);
        to[i] = counted[i].to;
    }
    expect(dt_redistribute_list(x, DT_COUNT(x), to, y) == DT_OK, "%s", dt_context_error(ctx));
    dt_counters of_x = dt_mesh_counters(mesh, "x"), all = dt_mesh_counters(mesh, NULL);
    for (int kind = 0; kind < DT_COMM_LOCAL; kind++) {
        int due = kind == DT_COMM_ALL_GATHER || kind == DT_COMM_ALL_REDUCE || kind == DT_COMM_REDUCE_SCATTER
            || kind == DT_COMM_ALL_TO_ALL;
        expect(all.calls[kind] == due && of_x.calls[kind] == due, "%s: %lld calls", dt_comm_kind_text(kind),
               (long long)all.calls[kind]);
    }
    expect(all.implied == 0, "all were asked for");
    return dt_context_status(ctx);
}

static void what_goes_together_is_one_call(void)
{
    launch(4, one_call, NULL);
    dt_context *dry = dt_context_dry(4);
    expect(one_call(dry, NULL) == DT_OK, "%s", dt_context_error(dry));
    dt_context_destroy(&dry);
}

/* ---- with the tape ----------------------------------------------------------------------------------------------- */

static dt_status recorded(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *a = dt_require_grad(drawn(mesh, "f64[6,4]@x:S(0)", 1)), *b = dt_require_grad(drawn(mesh, "f64[6,4]", 2));
    dt_tensor *x[] = { a, b, a, dt_detach(a), dt_detach(a) }, *y[DT_COUNT(x)], *again[DT_COUNT(x)];
    const char *to[] = { "", "", "x:R", "", "" };
    expect(dt_redistribute_list(x, DT_COUNT(x), to, y) == DT_OK, "%s", dt_context_error(ctx));
    expect(calls_of(mesh) == 1, "%lld gathers", (long long)calls_of(mesh));
    expect(dt_redistribute_list(x, 3, to, again) == DT_OK && calls_of(mesh) == 1, "what is pinned is there");
    dt_tensor *seed = drawn(mesh, "f64[6,4]@x:P", 3), *sum = dt_add(dt_add(dt_mul(y[0], y[1]), y[2]), y[3]);
    expect(dt_backward(sum, seed) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_spec_has(dt_tensor_spec(dt_grad(a)), "x:S(0)") && dt_spec_has(dt_tensor_spec(dt_grad(b)), ""), "placed");
    dt_tensor *one = dt_full(dt_tensor_spec(b), 1);
    int quiet = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect(dt_tensor_close(dt_grad(a), dt_mul(dt_add(b, one), seed), 1e-12, 0), "of a");
    expect(dt_tensor_close(dt_grad(b), dt_mul(a, seed), 1e-12, 0), "of b");
    dt_scope_pop(ctx, quiet, NULL);
    return dt_context_status(ctx);
}

static void lists_are_recorded(void) { launch(2, recorded, NULL); }

/* ---- meshes ------------------------------------------------------------------------------------------------------ */

/* Tensors on meshes of their own, of which a rank is in some. */
static dt_status meshes(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2"), *flat = dt_mesh_flatten(mesh, "x,y", "all");
    dt_mesh *first = dt_mesh_select(mesh, "x=0"), *second = dt_mesh_select(mesh, "x=1");
    dt_tensor *x[] = { drawn(mesh, "f64[6,4]@x:S(0)", 1), drawn(first, "f64[5]@y:S(0)", 2),
                       drawn(flat, "f64[9]@all:S(0)", 3), drawn(second, "f64[4]@y:P", 4),
                       drawn(first, "f64[8]@y:S(0)", 5) };
    const char *to[] = { "x:S(1)", "", "", "", "" };
    dt_tensor *y[DT_COUNT(x)];
    expect(dt_redistribute_list(x, DT_COUNT(x), to, y) == DT_OK, "%s", dt_context_error(ctx));
    for (int i = 0; i < DT_COUNT(x); i++) {
        dt_tensor *due = dt_redistribute(x[i], to[i]);
        bool member = dt_mesh_coord(dt_spec_mesh(dt_tensor_spec(x[i])), NULL) >= 0;
        if (member) expect_same(y[i], due, to[i], i);
        else expect(dt_tensor_data(y[i]) == NULL, "a rank outside has no part of %d", i);
    }
    double due = 0;
    for (int i = 0; i < DT_COUNT(x); i++) {
        dt_tensor *whole = dt_redistribute_to(x[i], flat, "");
        due += dt_tensor_item(dt_sum(dt_mul(whole, whole), DT_ALL, false));
    }
    int64_t before = calls_of(mesh) + calls_of(flat);
    dt_tensor *norm = dt_norm_list((dt_tensor *[]){ x[0], x[2] }, 2);
    expect(norm && calls_of(mesh) + calls_of(flat) == before + 1, "one sum over views of the same ranks");
    norm = dt_norm_list(x, DT_COUNT(x));
    double got = dt_tensor_item(norm);
    expect(fabs(got - sqrt(due)) < 1e-12, "norm %g, expected %g", got, sqrt(due));
    expect(norm && dt_spec_mesh(dt_tensor_spec(norm)) == mesh, "on the first's mesh");
    return dt_context_status(ctx);
}

static void tensors_lie_on_meshes_of_their_own(void) { launch(4, meshes, NULL); }

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Weights gathered for products: one gather for all, and what was made belongs to the weights. */
static dt_status products(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *in[12], *y[6], *due[6];
    for (int i = 0; i < 6; i++) {
        in[2 * i] = drawn(mesh, "f64[64,8]@x:S(0)", 7);
        in[2 * i + 1] = dt_require_grad(drawn(mesh, "f64[8,3]@x:S(0)", (uint64_t)(i / 2)));
    }
    expect(dt_apply_list(dt_op_find("matmul"), in, 2, 6, NULL, y) == DT_OK, "%s", dt_context_error(ctx));
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    expect(counters.calls[DT_COMM_ALL_GATHER] == 1 && counters.implied == 6, "%lld gathers, %lld implied",
           (long long)counters.calls[DT_COMM_ALL_GATHER], (long long)counters.implied);
    for (int i = 0; i < 6; i++) expect_same(y[i], due[i] = dt_matmul(in[2 * i], in[2 * i + 1]), "matmul", i);
    expect(dt_mesh_counters(mesh, NULL).calls[DT_COMM_ALL_GATHER] == 1, "the copies are the weights'");
    expect(dt_backward(y[3], dt_full(dt_tensor_spec(y[3]), 1)) == DT_OK && dt_grad(in[7]), "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void rows_are_applied_to_lists(void) { launch(4, products, NULL); }

/* ---- a step of an optimiser -------------------------------------------------------------------------------------- */

static const char *const shapes[] = { "[40,6]", "[7]", "[]", "[3,5]", "[1,2]" };
enum { WEIGHTS = DT_COUNT(shapes) };

static void make(dt_mesh *mesh, const char *placements, uint64_t seed, dt_tensor **x)
{
    for (int i = 0; i < WEIGHTS; i++) {
        char spec[64];
        bool scalar = strcmp(shapes[i], "[]") == 0 && strchr(placements, 'S');
        bool bare = scalar || !*placements;
        snprintf(spec, sizeof spec, "f64%s%s%s", shapes[i], bare ? "" : "@", bare ? "" : placements);
        x[i] = drawn(mesh, spec, seed + (uint64_t)i);
    }
}

/* ZeRO by hand: gradients that are P become the states' shards in one step, are clipped, and update shards, which are
 * gathered in one step; against whole tensors. */
static dt_status zero(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w[WEIGHTS], *g[WEIGHTS], *shard[WEIGHTS], *m[WEIGHTS], *v[WEIGHTS], *due[WEIGHTS], *grad[WEIGHTS];
    const char *to[WEIGHTS];
    dt_adamw_into_params p = { .lr = 0.1, .weight_decay = 0.1, .step = 3 };
    make(mesh, "", 10, w);
    make(mesh, "", 10, due);
    make(mesh, "x:P", 20, g);
    make(mesh, "x:S(0)", 10, shard);
    make(mesh, "x:S(0)", 30, m);
    make(mesh, "x:S(0)", 40, v);
    for (int i = 0; i < WEIGHTS; i++) {
        to[i] = dt_spec_shape(dt_tensor_spec(w[i])).n ? "x:S(0)" : "";
        dt_mul_into(v[i], dt_copy(v[i]));
    }
    int64_t calls = calls_of(mesh);
    expect(dt_redistribute_list(g, WEIGHTS, to, grad) == DT_OK, "%s", dt_context_error(ctx));
    dt_tensor *norm = dt_norm_list(grad, WEIGHTS), *scale = dt_div(dt_full(dt_tensor_spec(norm), 1), norm);
    dt_mul_into_list(grad, WEIGHTS, scale);
    dt_adamw_into_list(shard, m, v, grad, WEIGHTS, &p);
    expect(dt_copy_into_list(w, shard, WEIGHTS) == DT_OK, "%s", dt_context_error(ctx));
    calls = calls_of(mesh) - calls;
    expect(calls == 4, "%lld calls: a reduce-scatter, an all-reduce of a scalar, one of the norm, a gather",
           (long long)calls);
    double sum = 0;
    for (int i = 0; i < WEIGHTS; i++) {
        dt_tensor *whole = dt_redistribute(g[i], "");
        sum += dt_tensor_item(dt_sum(dt_mul(whole, whole), DT_ALL, false));
    }
    expect(fabs(dt_tensor_item(norm) - sqrt(sum)) < 1e-12, "norm %g, expected %g", dt_tensor_item(norm), sqrt(sum));
    dt_tensor *whole_m[WEIGHTS], *whole_v[WEIGHTS];
    make(mesh, "", 30, whole_m);
    make(mesh, "", 40, whole_v);
    for (int i = 0; i < WEIGHTS; i++) {
        dt_mul_into(whole_v[i], dt_copy(whole_v[i]));
        dt_adamw_into(due[i], whole_m[i], whole_v[i], dt_mul(dt_redistribute(g[i], ""), scale), &p);
        expect(dt_tensor_close(w[i], due[i], 1e-12, 1e-14), "weight %d", i);
    }
    return dt_context_status(ctx);
}

static void optimisers_step_with_shards(void)
{
    launch(4, zero, NULL);
    launch(3, zero, NULL);
}

static dt_status norms(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=2");
    dt_tensor *x[] = { drawn(mesh, "f32[6,4]@x:P", 1), drawn(mesh, "f32[6,4]@y:P", 2), drawn(mesh, "bf16[5]@x:S(0)", 3),
                       drawn(mesh, "f32[3,3]@x:S(0),y:S(1)", 4), drawn(mesh, "f32[0]", 5), drawn(mesh, "f32[2,2]", 6) };
    double sum = 0;
    for (int i = 0; i < DT_COUNT(x); i++) {
        dt_tensor *wide = dt_cast(dt_redistribute(x[i], ""), DT_F64);
        sum += dt_tensor_item(dt_sum(dt_mul(wide, wide), DT_ALL, false));
    }
    dt_tensor *norm = dt_norm_list(x, DT_COUNT(x));
    double got = dt_tensor_item(norm);
    expect(fabs(got - sqrt(sum)) < 1e-5 * sqrt(sum), "%g, expected %g", got, sqrt(sum));
    expect(dt_spec_dtype(dt_tensor_spec(norm)) == DT_F32 && dt_spec_has(dt_tensor_spec(norm), ""), "%s",
           dt_spec_text(dt_tensor_spec(norm)));
    dt_tensor *a = dt_require_grad(drawn(mesh, "f64[6,4]@x:S(0)", 1));
    dt_tensor *b = dt_require_grad(drawn(mesh, "f64[3]@y:P", 2));
    norm = dt_norm_list((dt_tensor *[]){ a, b }, 2);
    expect(dt_backward(norm, NULL) == DT_OK, "%s", dt_context_error(ctx));
    int quiet = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect(dt_tensor_close(dt_grad(a), dt_div(a, norm), 1e-12, 1e-15), "the direction of a");
    expect(dt_tensor_close(dt_grad(b), dt_div(b, norm), 1e-12, 1e-15), "the direction of b");
    dt_scope_pop(ctx, quiet, NULL);
    return dt_context_status(ctx);
}

static void norms_count_each_element_once(void)
{
    launch(4, norms, NULL);
    launch(6, norms, NULL);
}

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static dt_status refused(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *a = drawn(mesh, "f64[6,4]@x:S(0)", 1), *b = drawn(mesh, "f64[6,4]", 2), *c = drawn(mesh, "f64[4,6]", 3);
    dt_tensor *none[] = { a, NULL }, *two[] = { a, b }, *turned[] = { a, c }, *twice[] = { a, a }, *y[2] = { NULL };
    dt_redistribute_list(none, 2, (const char *[]){ "", "" }, y);
    expect_error(ctx, DT_ERR_ARG, "dt_redistribute_list: tensor 1 of 2 is none", "one is missing");
    dt_redistribute_list(two, 2, (const char *[]){ "", "z:S(0)" }, y);
    expect_error(ctx, DT_ERR_PLACEMENT, "has no dim \"z\"", "no such dim");
    dt_redistribute_list(two, 2, NULL, y);
    expect_error(ctx, DT_ERR_ARG, "expected placements for 2 tensors", "no placements");
    dt_redistribute_start_list(two, 2, (const char *[]){ "", "" }, NULL);
    expect_error(ctx, DT_ERR_ARG, "expected room for 2 tensors", "no room");
    dt_copy_into_list(two, turned, 2);
    expect_error(ctx, DT_ERR_ARG, "copy_into: x f64[6,4]@x:S(0) is written, and is two", "of itself");
    dt_copy_into_list(two, (dt_tensor *[]){ b, c }, 2);
    expect_error(ctx, DT_ERR_SHAPE, "copy_into: expected values of the shape of x f64[6,4]", "another shape");
    dt_axpby_into_list(two, (dt_tensor *[]){ b, dt_copy(b) }, 2, 1, 1);
    expect_error(ctx, DT_ERR_ARG, "axpby_into: call 0 of 2 takes y f64[6,4], which another of the list writes", "read");
    dt_axpby_into_list(twice, (dt_tensor *[]){ dt_copy(b), dt_copy(b) }, 2, 1, 1);
    expect_error(ctx, DT_ERR_ARG, "axpby_into: call 0 of 2 takes x f64[6,4]@x:S(0), which another", "written twice");
    dt_axpby_into_list(two, turned, 2, 1, 1);
    expect_error(ctx, DT_ERR_ARG, "axpby_into: x f64[6,4]@x:S(0) is written, and is two", "the first");
    dt_norm_list(none, 2);
    expect_error(ctx, DT_ERR_ARG, "sum_squares", "one is missing");
    dt_norm_list((dt_tensor *[]){ a, drawn(mesh, "i32[4]", 1) }, 2);
    expect_error(ctx, DT_ERR_DTYPE, "sum_squares(x): expected a float for x, got i32[4]", "integers");
    expect(dt_redistribute_list(NULL, 0, NULL, NULL) == DT_OK && dt_copy_into_list(NULL, NULL, 0) == DT_OK, "nothing");
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    dt_axpby_into_list(&b, &a, 1, 1, 1);
    expect_error(ctx, DT_ERR_PLACEMENT, "axpby_into: strict", "strict");
    dt_scope_pop(ctx, scope, NULL);
    expect(dt_axpby_into_list(&b, &a, 1, 1, 1) == DT_OK, "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void bad_lists_are_refused(void) { launch(2, refused, NULL); }

static const test_row rows[] = {
    { "any placements", any_placements },
    { "what goes together is one call", what_goes_together_is_one_call },
    { "lists are recorded", lists_are_recorded },
    { "tensors lie on meshes of their own", tensors_lie_on_meshes_of_their_own },
    { "rows are applied to lists", rows_are_applied_to_lists },
    { "optimisers step with shards", optimisers_step_with_shards },
    { "norms count each element once", norms_count_each_element_once },
    { "bad lists are refused", bad_lists_are_refused },
};

const suite the_suite = { "list", rows, DT_COUNT(rows) };
