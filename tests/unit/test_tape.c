/* SPDX-License-Identifier: Apache-2.0
 *
 * The tape: gradients of redistributions and borders, sums of gradients, what is kept and when it goes. Ops are rows of
 * the test's own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>
#include <dtensor/op.h>

#include "errors.h"
#include "launch.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int64_t count_of(const dt_part *part)
{
    int64_t n = 1;
    for (int d = 0; d < part->shape.n; d++) n *= part->shape.dim[d];
    return n;
}

static dt_status plus_kernel(const dt_call *call)
{
    const double *x = call->in[0].data, *y = call->in[1].data;
    double *out = call->out[0].data;
    for (int64_t i = 0; i < count_of(&call->out[0]); i++) out[i] = x[i] + y[i];
    return DT_OK;
}

static dt_status times_kernel(const dt_call *call)
{
    const double *x = call->in[0].data, *y = call->in[1].data;
    double *out = call->out[0].data;
    for (int64_t i = 0; i < count_of(&call->out[0]); i++) out[i] = x[i] * y[i];
    return DT_OK;
}

static dt_tensor *times(dt_tensor *x, dt_tensor *y);

static dt_status plus_gradient(dt_gradient *g)
{
    g->in_grad[0] = g->in_grad[1] = g->out_grad[0];
    return DT_OK;
}

static dt_status times_gradient(dt_gradient *g)
{
    if (g->wanted[0]) g->in_grad[0] = times(g->out_grad[0], g->in[1]);
    if (g->wanted[1]) g->in_grad[1] = times(g->out_grad[0], g->in[0]);
    return DT_OK;
}

static const dt_op plus_row = { .head = "plus(x, y)", .rule = "..., ... -> ...", .polynomial = "x + y, rising",
                                .kernel = plus_kernel, .gradient = plus_gradient };
static const dt_op times_row = { .head = "times(x, y)", .rule = "..., ... -> ...", .polynomial = "x y",
                                 .kernel = times_kernel, .gradient = times_gradient };
static const dt_op dead_end = { .head = "dead_end(x, y)", .rule = "..., ... -> ...", .polynomial = "x y",
                                .kernel = times_kernel };

static dt_tensor *plus(dt_tensor *x, dt_tensor *y) { return dt_apply(&plus_row, (dt_tensor *[]){ x, y }, 2, NULL); }
static dt_tensor *times(dt_tensor *x, dt_tensor *y) { return dt_apply(&times_row, (dt_tensor *[]){ x, y }, 2, NULL); }

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static dt_tensor *leaf(dt_mesh *mesh, const char *spec)
{
    return dt_require_grad(dt_rand(dt_spec_parse(mesh, spec), 7));
}

static int64_t calls(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t n = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) n += counters.calls[kind];
    return n;
}

static int64_t calls_of(dt_mesh *mesh, dt_comm_kind kind) { return dt_mesh_counters(mesh, NULL).calls[kind]; }

static void expect_placed(dt_tensor *x, const char *placements)
{
    expect(x && dt_spec_has(dt_tensor_spec(x), placements), "%s, expected %s",
           x ? dt_spec_text(dt_tensor_spec(x)) : "nothing", placements);
}

/* Is every element the same number? Collective. */
static void expect_all(dt_tensor *x, double value)
{
    if (!expect(x, "a tensor of %g", value)) return;
    dt_tensor *same = dt_full(dt_tensor_spec(x), value);
    expect(dt_tensor_close(x, same, 1e-12, 0), "%s is not all %g", dt_spec_text(dt_tensor_spec(x)), value);
}

/* ---- redistributions --------------------------------------------------------------------------------------------- */

static const struct moved {
    const char *source, *target, *seed, *gradient;
    dt_comm_kind kind;             /* forward                                                                      */
    int backward;                  /* calls                                                                        */
} moved[] = {
    { "f64[13,3]@x:S(0)", "", "", "x:S(0)", DT_COMM_ALL_GATHER, 0 },
    { "f64[3,14]@x:S(1)", "", "", "x:S(1)", DT_COMM_ALL_GATHER, 0 },
    { "f64[13,3]", "x:S(0)", "x:S(0)", "x:R", DT_COMM_LOCAL, 1 },
    { "f64[12,3]@x:P", "", "", "x:R", DT_COMM_ALL_REDUCE, 0 },
    { "f64[12,3]@x:P", "x:S(0)", "x:S(0)", "x:R", DT_COMM_REDUCE_SCATTER, 1 },
    { "f64[12,3]@x:P", "x:P", "x:P", "x:P", DT_COMM_LOCAL, 0 },
    { "f64[12,3]@x:P", "x:P", "", "x:R", DT_COMM_LOCAL, 0 },
    { "f64[12,3]", "x:P", "", "x:R", DT_COMM_LOCAL, 0 },
    { "f64[12,3]", "", "x:P", "x:R", DT_COMM_LOCAL, 1 },
    { "f64[12,3]", "*", "x:P", "x:P", DT_COMM_LOCAL, 0 },
    { "f64[12,3]@x:S(0)", "*", "x:P", "x:S(0)", DT_COMM_LOCAL, 1 },
    { "f64[8,8]@x:S(0)", "x:S(1)", "x:S(1)", "x:S(0)", DT_COMM_ALL_TO_ALL, 1 },
};

static dt_status redistributed(dt_context *ctx, void *arg)
{
    const struct moved *m = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, m->source);
    int64_t before = calls(mesh);
    dt_tensor *y = dt_redistribute(x, m->target);
    expect(calls(mesh) - before == (m->kind != DT_COMM_LOCAL), "%s to %s: calls forward", m->source, m->target);
    if (m->kind != DT_COMM_LOCAL) expect(calls_of(mesh, m->kind) == 1, "%s to %s: kind", m->source, m->target);
    dt_tensor *seed = dt_full(dt_spec_replace(dt_tensor_spec(x), m->seed), 1);
    before = calls(mesh);
    expect(dt_backward(y, seed) == DT_OK, "%s", dt_context_error(ctx));
    expect(calls(mesh) - before == m->backward, "%s to %s: %lld calls backward", m->source, m->target,
           (long long)(calls(mesh) - before));
    expect_placed(dt_grad(x), m->gradient);
    expect_all(dt_grad(x), 1);
    return dt_context_status(ctx);
}

static void gradients_of_redistributions(void)
{
    for (int i = 0; i < DT_COUNT(moved); i++) launch(4, redistributed, &moved[i]);
}

/* Started early and waited for: the same. To another mesh: back to the first. */
static dt_status other_ways(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=2"), *flat = dt_mesh_flatten(mesh, "x,y", "all");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)");
    dt_tensor *y = dt_work_wait(dt_redistribute_start(x, "x:R,*"));
    expect(dt_backward(y, dt_full(dt_tensor_spec(y), 1)) == DT_OK, "%s", dt_context_error(ctx));
    expect_placed(dt_grad(x), "x:S(0)");
    dt_tensor *z = dt_redistribute_to(x, flat, "all:S(1)");
    expect(dt_backward(z, dt_full(dt_tensor_spec(z), 2)) == DT_OK, "%s", dt_context_error(ctx));
    expect_placed(dt_grad(x), "x:S(0)");
    expect_all(dt_grad(x), 3);
    return dt_context_status(ctx);
}

static void gradients_of_other_redistributions(void) { launch(4, other_ways, NULL); }

/* ---- pins -------------------------------------------------------------------------------------------------------- */

/* Three users of one gathered tensor: one gather forward, one reduction backward. */
static dt_status one_pin(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *part = dt_rand(dt_spec_parse(mesh, "f64[8,4]@x:P"), 3);
    dt_tensor *a = dt_redistribute(x, "x:R"), *b = dt_redistribute(x, ""), *c = dt_redistribute(a, "x:R");
    expect(calls_of(mesh, DT_COMM_ALL_GATHER) == 1, "%lld gathers", (long long)calls_of(mesh, DT_COMM_ALL_GATHER));
    dt_tensor *y = plus(plus(times(a, part), times(b, part)), times(c, part));
    expect_placed(y, "x:P");
    expect(dt_backward(y, dt_full(dt_spec_parse(mesh, "f64[8,4]"), 1)) == DT_OK, "%s", dt_context_error(ctx));
    expect(calls_of(mesh, DT_COMM_REDUCE_SCATTER) == 1 && calls(mesh) == 2, "one sum for all: %lld, %lld calls",
           (long long)calls_of(mesh, DT_COMM_REDUCE_SCATTER), (long long)calls(mesh));
    expect_placed(dt_grad(x), "x:S(0)");
    expect(dt_tensor_close(dt_grad(x), plus(plus(part, part), part), 1e-12, 0), "three times the factor");
    return dt_context_status(ctx);
}

static void pins_of_one_tensor_are_one(void) { launch(4, one_pin, NULL); }

/* What was gathered and has ended is gathered once more, for all who need it; the tape keeps the parts. */
static dt_status gathered_again(dt_context *ctx, void *arg)
{
    const unsigned flags = arg ? DT_SCOPE_KEEP_GATHERED : 0;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *leaves = leaf(mesh, "f64[64,64]@x:S(0)"), *y = NULL;
    dt_tensor *seed = dt_full(dt_spec_parse(mesh, "f64[64,64]@x:S(1)"), 1);
    int64_t before = dt_mesh_counters(mesh, NULL).memory, part = 64 * 64 * 8 / 4;
    int scope = dt_scope_push(ctx, flags);
    dt_tensor *x = times(leaves, leaves), *whole = dt_redistribute(x, "");
    y = dt_scope_pop(ctx, scope, dt_redistribute(times(times(whole, whole), whole), "x:S(1)"));
    int64_t kept = dt_mesh_counters(mesh, NULL).memory - before;
    expect(calls_of(mesh, DT_COMM_ALL_GATHER) == 1, "one gather forward");
    /* the result, the square that is a factor, and the parts of what was gathered, or all of it too */
    expect(kept == (arg ? 10 : 6) * part, "%lld parts are kept", (long long)(kept / part));
    expect(dt_backward(y, seed) == DT_OK, "%s", dt_context_error(ctx));
    expect(calls_of(mesh, DT_COMM_ALL_GATHER) == (arg ? 2 : 3), "%lld gathers, one of the gradient",
           (long long)calls_of(mesh, DT_COMM_ALL_GATHER));
    dt_tensor *three = dt_full(dt_tensor_spec(leaves), 6), *square = times(leaves, leaves);
    expect(dt_tensor_close(dt_grad(leaves), times(three, times(times(square, square), leaves)), 1e-12, 0), "6 x^5");
    return dt_context_status(ctx);
}

static void what_was_gathered_is_gathered_again(void)
{
    launch(4, gathered_again, NULL);
    launch(4, gathered_again, (void *)(uintptr_t)"keep");
}

/* ---- borders ----------------------------------------------------------------------------------------------------- */

static const struct border { const char *spec, *grad; double value; const char *placed; } borders[] = {
    { "f64[8,4]@x:S(0)", "x:S(0)", 1, "x:S(0)" },
    { "f64[8,4]", "", 1, "x:R" },
    { "f64[8,4]", "x:P", 4, "x:P" },           /* each rank did a part of it: four ones add up                      */
};

static dt_status to_local(dt_context *ctx, void *arg)
{
    const struct border *b = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, b->spec), *local = dt_to_local(x, b->grad);
    expect(dt_backward(local, dt_full(dt_tensor_spec(local), 1)) == DT_OK, "%s", dt_context_error(ctx));
    expect_placed(dt_grad(x), b->placed);
    expect_all(dt_grad(x), b->value);
    return dt_context_status(ctx);
}

static dt_status from_local(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *whole = dt_rand(dt_spec_parse(mesh, "f64[8,4]@x:S(0)"), 1);
    dt_tensor *local = dt_require_grad(dt_detach(dt_to_local(whole, "x:S(0)")));
    dt_tensor *x = dt_from_local(local, dt_tensor_spec(whole), "x:S(0)");
    expect(dt_backward(x, dt_full(dt_spec_parse(mesh, "f64[8,4]"), 2)) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_size(dt_grad(local), 0) == 2, "its own rows");
    expect_all(dt_grad(local), 2);
    return dt_context_status(ctx);
}

static void gradients_across_borders(void)
{
    for (int i = 0; i < DT_COUNT(borders); i++) launch(4, to_local, &borders[i]);
    launch(4, from_local, NULL);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static dt_status sums(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *w = leaf(mesh, "f64[8,4]@x:S(0)");
    dt_tensor *y = plus(times(x, w), times(x, x));
    expect(dt_backward(y, dt_full(dt_tensor_spec(y), 1)) == DT_OK, "%s", dt_context_error(ctx));
    expect(calls(mesh) == 0, "nothing moves");
    expect(dt_tensor_close(dt_grad(x), plus(w, plus(x, x)), 1e-12, 0), "w + 2 x");
    expect(dt_tensor_close(dt_grad(w), x, 1e-12, 0), "x");
    y = plus(x, x);                            /* a second graph adds to the leaf                                   */
    expect(dt_backward(y, dt_full(dt_tensor_spec(y), 1)) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_close(dt_grad(x), plus(plus(w, plus(x, x)), dt_full(dt_tensor_spec(x), 2)), 1e-12, 0), "and 2");
    return dt_context_status(ctx);
}

static void gradients_add_up(void) { launch(4, sums, NULL); }

/* S, R and P of one value: P, without a message; then it is right when it is read. */
static dt_status mixed_sums(dt_context *ctx, void *arg)
{
    (void)arg;
    static const char *const seeds[] = { "x:S(0)", "", "x:P", "x:S(1)" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(seeds) * DT_COUNT(seeds); i++) {
        dt_tensor *x = leaf(mesh, "f64[8,4]");
        for (int k = 0; k < 2; k++) {
            dt_tensor *y = dt_redistribute(x, "*");
            const char *seed = seeds[k ? i / DT_COUNT(seeds) : i % DT_COUNT(seeds)];
            dt_backward(y, dt_full(dt_spec_replace(dt_tensor_spec(y), seed), k + 1));
        }
        expect_all(dt_grad(x), 3);
    }
    return dt_context_status(ctx);
}

static void gradients_of_any_placement_add_up(void)
{
    launch(4, mixed_sums, NULL);
    launch(3, mixed_sums, NULL);
}

/* ---- what ends when ---------------------------------------------------------------------------------------------- */

static dt_status memory(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[64,64]"), *y = NULL;
    int64_t before = dt_mesh_counters(mesh, NULL).memory, part = 64 * 64 * 8;
    int scope = dt_scope_push(ctx, 0);
    y = x;
    for (int i = 0; i < 10; i++) y = times(y, y);
    y = dt_scope_pop(ctx, scope, y);
    expect(dt_mesh_counters(mesh, NULL).memory == before + 10 * part, "all inputs are kept: %lld",
           (long long)(dt_mesh_counters(mesh, NULL).memory - before));
    scope = dt_scope_push(ctx, 0);
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    dt_scope_pop(ctx, scope, NULL);
    expect(dt_mesh_counters(mesh, NULL).memory == before + 2 * part, "the result and the gradient stay: %lld",
           (long long)(dt_mesh_counters(mesh, NULL).memory - before));
    return dt_context_status(ctx);
}

static void memory_goes_as_backward_passes(void) { launch(2, memory, NULL); }

/* A chain longer than any stack, dropped and passed. */
static dt_status long_chain(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int round = 0; round < 2; round++) {
        dt_tensor *x = leaf(mesh, "f64[1]"), *y = NULL;
        dt_tensor_hold(&y, x);
        for (int i = 0; i < 50000; i++) {
            int scope = dt_scope_push(ctx, 0);
            dt_tensor_hold(&y, i % 2 ? plus(y, x) : times(y, y));
            if (i % 2 == 0) dt_tensor_hold(&y, times(y, dt_full(dt_tensor_spec(y), 0.01)));
            dt_scope_pop(ctx, scope, NULL);
        }
        if (round) expect(dt_backward(y, NULL) == DT_OK, "%s", dt_context_error(ctx));
        dt_tensor_hold(&y, NULL);
    }
    return dt_context_status(ctx);
}

static void chains_may_be_long(void) { launch(1, long_chain, NULL); }

/* ---- hooks, regions ---------------------------------------------------------------------------------------------- */

typedef struct hooked { int calls; dt_tensor *other; } hooked;

static dt_tensor *hook(dt_tensor *grad, void *arg)
{
    hooked *h = arg;
    h->calls++;
    return h->other ? times(grad, h->other) : NULL;
}

static dt_status hooks(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *y = plus(x, x);
    hooked see = { 0, NULL }, replace = { 0, dt_full(dt_tensor_spec(x), 5) };
    expect(dt_grad_hook(y, hook, &see) == DT_OK && dt_grad_hook(x, hook, &replace) == DT_OK, "hooks");
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    expect(see.calls == 1 && replace.calls == 1, "%d and %d calls", see.calls, replace.calls);
    expect_all(dt_grad(x), 10);
    return dt_context_status(ctx);
}

static void hooks_see_whole_gradients(void) { launch(2, hooks, NULL); }

typedef struct within { dt_tensor *y, *seed; int calls; } within;

static dt_tensor *backward_within(dt_tensor *grad, void *arg)
{
    (void)grad;
    within *w = arg;
    if (w->calls++ == 0) dt_backward(w->y, w->seed);
    return NULL;
}

static dt_tensor *other_shape(dt_tensor *grad, void *arg)
{
    dt_mesh *mesh = dt_spec_mesh(dt_tensor_spec(grad));
    return dt_zeros(dt_spec_parse(mesh, arg));
}

/* A backward within a backward: through leaves that the outer one has passed, and what it has still to pass. */
static dt_status nested(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *one = dt_full(dt_tensor_spec(x), 1), *h = plus(x, x);
    dt_tensor *later = dt_require_grad(dt_full(dt_tensor_spec(x), 1));
    within w = { plus(later, later), one, 0 }, same = { h, one, 0 };
    dt_grad_hook(h, backward_within, &w);
    expect(dt_backward(times(h, later), one) == DT_OK && w.calls == 1, "%s", dt_context_error(ctx));
    expect(dt_tensor_close(dt_grad(later), plus(h, plus(one, one)), 0, 0), "of both");
    h = same.y = plus(x, x);
    dt_grad_hook(h, backward_within, &same);
    expect(dt_backward(h, one) == DT_OK, "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void backward_within_backward(void) { launch(2, nested, NULL); }

static dt_status hooked_badly(dt_context *ctx, void *arg)
{
    (void)arg;
    static const char *const specs[] = { "f64[99]", "i32[8,4]", "f32[8,4]" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(specs); i++) {
        dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)");
        dt_grad_hook(x, other_shape, (void *)(uintptr_t)specs[i]);
        dt_backward(plus(x, x), dt_full(dt_tensor_spec(x), 1));
        expect_error(ctx, DT_ERR_SHAPE, "expected a gradient like f64[8,4]@x:S(0)", specs[i]);
        expect(dt_grad(x) == NULL, "no gradient");
    }
    return dt_context_status(ctx);
}

static void hooks_return_gradients(void) { launch(2, hooked_badly, NULL); }

static dt_status regions(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]"), *y;
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    y = dt_scope_pop(ctx, scope, times(x, x));
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    expect_error(ctx, DT_ERR_STATE, "depends on no leaf", "a region without gradients");
    y = times(dt_detach(x), x);
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    expect(dt_tensor_close(dt_grad(x), x, 0, 0), "one factor is detached");
    return dt_context_status(ctx);
}

static void regions_without_gradients(void) { launch(2, regions, NULL); }

typedef struct again { int calls; dt_tensor *w; } again;

static dt_tensor *square_times(dt_tensor *const *in, void *arg)
{
    again *a = arg;
    a->calls++;
    return times(times(times(in[0], in[0]), in[1]), a->w);
}

/* Only the inputs are kept; a leaf that the function finds by itself gets its gradient, too. */
static dt_status recomputed(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[64,64]@x:S(0)"), *c = dt_full(dt_tensor_spec(x), 3);
    dt_tensor *seed = dt_full(dt_tensor_spec(x), 1);
    again a = { 0, leaf(mesh, "f64[64,64]@x:S(0)") };
    int64_t before = dt_mesh_counters(mesh, NULL).memory;
    dt_tensor *y = dt_recompute(square_times, &a, (dt_tensor *[]){ x, c }, 2);
    expect(dt_mesh_counters(mesh, NULL).memory - before == 32 * 64 * 8, "the result alone is new");
    expect(a.calls == 1 && dt_backward(y, seed) == DT_OK && a.calls == 2, "%s", dt_context_error(ctx));
    dt_tensor *six = dt_full(dt_tensor_spec(x), 6), *three = dt_full(dt_tensor_spec(x), 3);
    expect(dt_tensor_close(dt_grad(x), times(times(six, x), a.w), 1e-12, 0), "6 x w");
    expect(dt_tensor_close(dt_grad(a.w), times(three, times(x, x)), 1e-12, 0), "3 x x");
    expect(dt_backward(y, seed) == DT_ERR_STATE, "twice");
    return dt_context_clear(ctx);
}

static void functions_are_recomputed(void) { launch(2, recomputed, NULL); }

/* ---- functions that find tensors by themselves ------------------------------------------------------------------- */

typedef struct found {                 /* what functions close over                                                */
    dt_tensor *h, *w;
    bool recompute;                    /* are functions recomputed, or called?                                     */
} found;

static dt_tensor *call(const found *f, dt_fn fn, dt_tensor *x)
{
    return f->recompute ? dt_recompute(fn, (void *)(uintptr_t)f, &x, 1) : fn(&x, (void *)(uintptr_t)f);
}

static dt_tensor *times_h(dt_tensor *const *in, void *arg)
{
    const found *f = arg;
    return times(times(in[0], f->h), f->w);
}

static dt_tensor *times_gathered(dt_tensor *const *in, void *arg)
{
    const found *f = arg;
    return dt_redistribute(times(in[0], dt_redistribute(f->h, "")), "x:S(0)");
}

static dt_tensor *only_h(dt_tensor *const *in, void *arg)
{
    (void)in;
    return ((const found *)arg)->h;
}

static dt_tensor *only_in(dt_tensor *const *in, void *arg)
{
    (void)arg;
    return in[0];
}

static dt_tensor *nested_twice(dt_tensor *const *in, void *arg)
{
    const found *f = arg;
    dt_tensor *y = call(f, times_h, in[0]);
    return plus(call(f, times_h, y), times(call(f, only_h, y), f->w));
}

static dt_tensor *nested_thrice(dt_tensor *const *in, void *arg)
{
    return call(arg, nested_twice, call(arg, times_gathered, in[0]));
}

/* Functions that share what is no leaf, and use it twice, one after the other and one within the other. */
static const dt_fn finders[][3] = {
    { times_h, times_h, times_h }, { times_gathered, times_gathered, times_h }, { only_h, times_h, only_h },
    { nested_twice, nested_twice, times_h }, { nested_thrice, times_h, nested_thrice }, { only_in, times_h, only_in },
};

/* Gradients of x and w, with functions called or recomputed. */
static void find_gradients(dt_mesh *mesh, const dt_fn *fns, bool recompute, dt_tensor **gradients)
{
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *w = leaf(mesh, "f64[8,4]@x:S(0)");
    found f = { times(x, w), w, recompute };
    dt_tensor *y = call(&f, fns[1], call(&f, fns[0], f.h)), *z = call(&f, fns[2], f.h);
    dt_tensor *sum = plus(times(y, z), y);
    expect(dt_backward(sum, dt_full(dt_tensor_spec(sum), 1)) == DT_OK, "%s", dt_context_error(dt_mesh_context(mesh)));
    gradients[0] = dt_grad(x);
    gradients[1] = dt_grad(w);
}

static dt_status found_twice(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(finders); i++) {
        dt_tensor *due[2], *got[2];
        find_gradients(mesh, finders[i], false, due);
        find_gradients(mesh, finders[i], true, got);
        for (int k = 0; k < 2; k++)
            expect(got[k] && dt_tensor_close(got[k], due[k], 1e-12, 0), "functions %d, gradient %d", i, k);
    }
    return dt_context_status(ctx);
}

static void functions_share_what_they_find(void) { launch(2, found_twice, NULL); }

/* What several functions found has one whole gradient; a function of nothing that has one has nothing to pass. */
static dt_status found_once(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]@x:S(0)"), *one = dt_full(dt_tensor_spec(x), 1);
    found f = { plus(x, x), leaf(mesh, "f64[8,4]@x:S(0)"), true };
    hooked of_h = { 0, NULL }, of_w = { 0, NULL };
    dt_grad_hook(f.h, hook, &of_h);
    dt_grad_hook(f.w, hook, &of_w);
    dt_tensor *y = plus(plus(call(&f, times_h, one), call(&f, times_h, one)), call(&f, nested_twice, one));
    expect(dt_backward(y, one) == DT_OK, "%s", dt_context_error(ctx));
    expect(of_h.calls == 1 && of_w.calls == 1, "%d and %d calls of hooks", of_h.calls, of_w.calls);
    y = plus(x, call(&f, only_in, one));
    expect(dt_backward(y, one) == DT_OK, "%s", dt_context_error(ctx));
    f.h = plus(x, x);
    y = call(&f, times_h, one);
    expect(dt_backward(f.h, one) == DT_OK, "%s", dt_context_error(ctx));
    dt_backward(y, one);
    expect_error(ctx, DT_ERR_STATE, "dt_backward: has passed", "what it found was passed before");
    return dt_context_status(ctx);
}

static void what_functions_find_is_passed_once(void) { launch(2, found_once, NULL); }

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static dt_tensor *nothing(dt_tensor *const *in, void *arg)
{
    (void)in, (void)arg;
    return NULL;
}

static dt_status derives_too_much(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out)
{
    (void)ctx, (void)attributes, (void)shapes, (void)n;
    snprintf(out->rule, sizeof out->rule, "... -> ...");
    out->stretches = true;
    out->batch.n = 99;
    return DT_OK;
}

static dt_status no_kernel(const dt_call *call)
{
    (void)call;
    return DT_OK;
}

static dt_tensor *shape_by_call(dt_tensor *const *in, void *arg)
{
    int *calls = arg;
    return (*calls)++ ? dt_sum(in[0], DT_DIMS(1), false) : dt_exp(in[0]);
}

static dt_status derive_still(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)ctx;
    (void)attributes;
    (void)n;
    snprintf(out->rule, sizeof out->rule, "a1 b -> a b");
    out->size[0].letter = 'a';
    out->size[0].size = shapes[0].dim[0];
    out->size_count = 1;
    out->map.part_count = 1;
    out->map.part[0] = (dt_index_part){ .hi = shapes[0].dim[0] };
    return DT_OK;
}

/* Rows that a program wrote wrong. */
static dt_status bad_rows(dt_context *ctx, void *arg)
{
    (void)arg;
    static const dt_attribute out_of_it[] = { { "v", DT_ATTRIBUTE_INT, 1000 } };
    static const dt_attribute odd[] = { { "v", DT_ATTRIBUTE_KIND_COUNT, 0 } };
    static const dt_op headless = { .rule = "... -> ...", .kernel = plus_kernel };
    static const dt_op derived = { .head = "f(x)", .derive = derives_too_much, .kernel = plus_kernel };
    static const dt_op outside = { .head = "f(x)", .rule = "... -> ...", .kernel = plus_kernel, .attributes = out_of_it,
                                   .attribute_count = 1, .attribute_bytes = 8 };
    static const dt_op kind = { .head = "f(x)", .rule = "... -> ...", .kernel = plus_kernel, .attributes = odd,
                                .attribute_count = 1, .attribute_bytes = 8 };
    static const dt_op table = { .head = "f(x)", .rule = "... -> ...", .kernel = plus_kernel, .attribute_count = 1,
                                 .attribute_bytes = 8 };
    static const dt_op still_row = { .head = "still(x)", .derive = derive_still, .kernel = plus_kernel };
    static const dt_op letters = { .head = "f(x)", .rule = "... -> ...", .kernel = plus_kernel, .dtypes = "t -> z" };
    static const dt_op blanks = { .head = "f(x)", .rule = "... -> ...", .kernel = no_kernel, .dtypes = "t -> i" };
    static const struct { const dt_op *op; const char *says; } given[] = {
        { NULL, "expected a row with a head" },         { &headless, "expected a row with a head" },
        { &derived, "derives is out of range" },        { &outside, "does not lie in a struct of 8" },
        { &kind, "of no DT_ATTRIBUTE_* kind" },         { &table, "got 1 in none" },
        { &letters, "expected letters" },
    };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x[DT_MAX_OPERANDS + 1];
    int64_t value = 0;
    for (int i = 0; i < DT_COUNT(x); i++) x[i] = leaf(mesh, "f64[8,4]");
    for (int i = 0; i < DT_COUNT(given); i++) {
        dt_apply(given[i].op, x, 1, &value);
        expect_error(ctx, DT_ERR_ARG, given[i].says, given[i].says);
    }
    dt_tensor *y = dt_apply(&blanks, (dt_tensor *[]){ dt_detach(x[0]) }, 1, NULL);
    expect(y && dt_spec_dtype(dt_tensor_spec(y)) == DT_I64, "blanks between letters");
    dt_add_scalar(dt_zeros(dt_spec_parse(mesh, "i32[8]@x:P")), 0.5);
    expect_error(ctx, DT_ERR_ARG, "expected a whole number", "on all ranks, though one alone would add it");
    dt_apply(&plus_row, x, DT_COUNT(x), NULL);
    expect_error(ctx, DT_ERR_ARG, "17 operands, more than 16", "operands");
    dt_apply_all(&plus_row, x, 2, NULL, x, -1);
    expect_error(ctx, DT_ERR_ARG, "room for -1", "results");
    dt_apply_all(&plus_row, x, 2, NULL, NULL, 1);
    expect_error(ctx, DT_ERR_ARG, "nowhere", "no results");
    dt_recompute(nothing, NULL, x, DT_COUNT(x));
    expect_error(ctx, DT_ERR_ARG, "expected at most 16 inputs, got 17", "inputs");
    int calls = 0;
    dt_tensor *leaf = dt_require_grad(dt_zeros(dt_spec_parse(mesh, "f32[4,3]@x:S(0)")));
    dt_backward(dt_sum(dt_recompute(shape_by_call, &calls, &leaf, 1), DT_ALL, false), NULL);
    expect_error(ctx, DT_ERR_STATE, "returned f32[4,3]@x:S(0) and, called again in backward, f32[4]@x:S(0)", "again");
    dt_apply(&still_row, &leaf, 1, NULL);
    expect_error(ctx, DT_ERR_ARG, "still(x): part 0 of its index map has step 0", "a map that stands still");
    dt_addmm(NULL, leaf, leaf);
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for c, got none", "addmm without c");
    dt_one_hot(dt_zeros(dt_spec_parse(mesh, "i64[4]")), 0, DT_F32);
    expect_error(ctx, DT_ERR_ARG, "one_hot(ids): expected no ids, of a size of 0, got 0", "no classes");
    dt_recompute(nothing, NULL, x, 1);
    expect_error(ctx, DT_ERR_ARG, "the function returned no tensor", "nothing came");
    return dt_context_status(ctx);
}

static void bad_rows_are_refused(void) { launch(2, bad_rows, NULL); }

static dt_status refused(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = leaf(mesh, "f64[8,4]"), *y = times(x, x), *i = dt_zeros(dt_spec_parse(mesh, "i32[2]"));
    dt_backward(y, NULL);
    expect_error(ctx, DT_ERR_SHAPE, "one element or a seed, got f64[8,4]", "a seed is needed");
    dt_backward(y, dt_full(dt_spec_parse(mesh, "f64[4,8]"), 1));
    expect_error(ctx, DT_ERR_SHAPE, "a seed like f64[8,4]", "of the same shape");
    dt_backward(y, dt_full(dt_spec_parse(mesh, "f32[8,4]"), 1));
    expect_error(ctx, DT_ERR_DTYPE, "a seed like f64[8,4]", "of the same dtype");
    dt_backward(y, dt_full(dt_spec_parse(dt_mesh_create(ctx, "z"), "f64[8,4]"), 1));
    expect_error(ctx, DT_ERR_SHAPE, "a seed on mesh x=2, got one on z=2", "on the same mesh");
    expect(dt_backward(y, dt_full(dt_tensor_spec(y), 1)) == DT_OK, "the right seed, after errors");
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    expect_error(ctx, DT_ERR_STATE, "has passed", "twice");
    dt_require_grad(i);
    expect_error(ctx, DT_ERR_DTYPE, "expected a float", "integers");
    dt_require_grad(y);
    expect_error(ctx, DT_ERR_STATE, "see dt_detach", "no leaf");
    dt_grad_hook(i, hook, NULL);
    expect_error(ctx, DT_ERR_STATE, "no gradient", "no hook");
    dt_apply(&dead_end, (dt_tensor *[]){ x, x }, 2, NULL);
    expect_error(ctx, DT_ERR_UNAVAILABLE, "dead_end(x, y): has no gradient", "a row without one");
    expect(dt_grad(y) == NULL && dt_grad(i) == NULL, "no gradient is no error");
    expect(dt_backward(NULL, NULL) == DT_ERR_ARG && dt_require_grad(NULL) == NULL, "nothing");
    return dt_context_status(ctx);
}

static void bad_input_is_refused(void) { launch(2, refused, NULL); }

/* ---- what was used ----------------------------------------------------------------------------------------------- */

static dt_tensor *log_sum(dt_tensor *const *x, void *arg)
{
    (void)arg;
    return dt_logsumexp(x[0], DT_DIMS(0), false);
}

/* Summands that differ much from their sum, which is rounded: the gradient is one at what was rounded, whatever the
 * tape keeps, and so it sums to 1. */
static dt_status rounded_rank(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const char *dtypes[] = { "bf16", "f16", "f32" };
    for (int i = 0; i < DT_COUNT(dtypes); i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "%s[64]@x:P", dtypes[i]);
        dt_tensor *x = dt_require_grad(dt_mul_scalar(dt_randn(dt_spec_parse(mesh, spec), 3), 30.1));
        dt_tensor *y = arg ? dt_recompute(log_sum, NULL, &x, 1) : log_sum(&x, NULL);
        dt_backward(y, NULL);
        double sum = dt_tensor_item(dt_sum(dt_cast(dt_redistribute(dt_grad(x), ""), DT_F64), DT_ALL, false));
        expect(fabs(sum - 1) < 0.02, "%s: a gradient that sums to %g", spec, sum);
    }
    return dt_context_status(ctx);
}

static void gradients_are_at_what_was_used(void)
{
    launch(4, rounded_rank, NULL);
    launch(4, rounded_rank, "again");
}

static dt_status numbers_rank(dt_context *ctx, void *arg)
{
    dt_tensor *x = leaf(dt_mesh_create(ctx, "x"), "f64[8]@x:S(0)"), *top[2];
    (void)arg;
    dt_topk(x, 3, 0, true, top);
    expect(dt_backward(dt_sum(top[1], DT_ALL, false), NULL) != DT_OK, "backward from numbers of elements");
    expect_error(ctx, DT_ERR_STATE, "depends on no leaf", "backward from numbers of elements");
    dt_backward(dt_sum(top[0], DT_ALL, false), NULL);
    expect(dt_tensor_item(dt_sum(dt_grad(x), DT_ALL, false)) == 3, "the gradient of topk");
    expect(dt_backward(NULL, x) == DT_ERR_ARG, "a seed for no tensor");
    expect_error(ctx, DT_ERR_ARG, "a seed for no tensor", "a seed for no tensor");
    dt_tensor *pair = leaf(dt_mesh_create(ctx, "x"), "f64[2]");
    dt_backward(dt_var(pair, DT_ALL, 2, false), NULL);
    expect(isnan(dt_tensor_item(dt_sum(dt_grad(pair), DT_ALL, false))), "the gradient of a variance of nothing");
    return dt_context_status(ctx);
}

static void numbers_of_elements_have_no_gradient(void) { launch(2, numbers_rank, NULL); }

static const test_row rows[] = {
    { "gradients are at what was used", gradients_are_at_what_was_used },
    { "numbers of elements have no gradient", numbers_of_elements_have_no_gradient },
    { "gradients of redistributions", gradients_of_redistributions },
    { "gradients of other redistributions", gradients_of_other_redistributions },
    { "pins of one tensor are one", pins_of_one_tensor_are_one },
    { "what was gathered is gathered again", what_was_gathered_is_gathered_again },
    { "gradients across borders", gradients_across_borders },
    { "gradients add up", gradients_add_up },
    { "gradients of any placement add up", gradients_of_any_placement_add_up },
    { "memory goes as backward passes", memory_goes_as_backward_passes },
    { "chains may be long", chains_may_be_long },
    { "hooks see whole gradients", hooks_see_whole_gradients },
    { "backward within backward", backward_within_backward },
    { "hooks return gradients", hooks_return_gradients },
    { "regions without gradients", regions_without_gradients },
    { "functions are recomputed", functions_are_recomputed },
    { "functions share what they find", functions_share_what_they_find },
    { "what functions find is passed once", what_functions_find_is_passed_once },
    { "bad input is refused", bad_input_is_refused },
    { "bad rows are refused", bad_rows_are_refused },
};

const suite the_suite = { "tape", rows, DT_COUNT(rows) };
