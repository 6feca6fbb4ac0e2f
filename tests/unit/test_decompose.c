/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops over dims that are split: the tensor stays where it is, statistics of rows move, and the value and its gradient
 * are those of one rank. That every row does so on every placement, the conformance test shows; here are bytes. */
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

typedef struct traffic { int64_t calls, bytes; } traffic;

static traffic traffic_of(dt_mesh *mesh)
{
    dt_counters c = dt_mesh_counters(mesh, NULL);
    traffic t = { 0, 0 };
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) {
        if (k != DT_COMM_LOCAL) t.calls += c.calls[k];
        t.bytes += c.bytes[k];
    }
    return t;
}

static traffic since(dt_mesh *mesh, traffic before)
{
    traffic now = traffic_of(mesh);
    return (traffic){ now.calls - before.calls, now.bytes - before.bytes };
}

/* ---- values, gradients, bytes ------------------------------------------------------------------------------------ */

typedef dt_tensor *op_fn(dt_tensor *x, dt_tensor *w);

static dt_tensor *softmax_0(dt_tensor *x, dt_tensor *w) { return (void)w, dt_softmax(x, 0); }
static dt_tensor *softmax_1(dt_tensor *x, dt_tensor *w) { return (void)w, dt_softmax(x, 1); }
static dt_tensor *softmax_2(dt_tensor *x, dt_tensor *w) { return (void)w, dt_softmax(x, 2); }
static dt_tensor *log_softmax(dt_tensor *x, dt_tensor *w) { return (void)w, dt_log_softmax(x, -1); }
static dt_tensor *logsumexp(dt_tensor *x, dt_tensor *w) { return (void)w, dt_logsumexp(x, DT_DIMS(-1), true); }
static dt_tensor *var(dt_tensor *x, dt_tensor *w) { return (void)w, dt_var(x, DT_DIMS(-1), 1, false); }
static dt_tensor *norm(dt_tensor *x, dt_tensor *w) { return (void)w, dt_norm(x, DT_DIMS(-1), false); }
static dt_tensor *rms_norm(dt_tensor *x, dt_tensor *w) { return dt_rms_norm(x, w, 1e-5); }
static dt_tensor *layer_norm(dt_tensor *x, dt_tensor *w) { return dt_layer_norm(x, w, w, 1e-5); }

static const struct split {
    const char *name, *mesh, *x, *w, *result, *w_grad;
    op_fn *fn;
    int forward;                       /* calls                                                                    */
    int rows;                          /* numbers in a statistic, of one rank                                      */
} splits[] = {
    { "softmax over another dim", "x=4", "f64[8,12,16]@x:S(0)", NULL, "x:S(0)", NULL, softmax_1, 0, 0 },
    { "softmax", "x=4", "f64[8,12,16]@x:S(2)", NULL, "x:S(2)", NULL, softmax_2, 2, 96 },
    { "softmax, uneven", "x=4", "f64[8,3,15]@x:S(2)", NULL, "x:S(2)", NULL, softmax_2, 2, 24 },
    { "softmax, empty pieces", "x=4", "f64[3,8]@x:S(0)", NULL, "x:S(0)", NULL, softmax_0, 2, 8 },
    { "softmax, two mesh dims", "x=2,y=2", "f64[8,3,16]@x:S(2),y:S(2)", NULL, "x:S(2),y:S(2)", NULL, softmax_2, 2, 24 },
    { "softmax, rows split too", "x=2,y=2", "f64[8,16]@x:S(0),y:S(1)", NULL, "x:S(0),y:S(1)", NULL, softmax_1, 2, 4 },
    { "log_softmax", "x=4", "f64[8,16]@x:S(1)", NULL, "x:S(1)", NULL, log_softmax, 2, 8 },
    { "logsumexp", "x=4", "f64[8,16]@x:S(1)", NULL, "x:R", NULL, logsumexp, 2, 8 },
    { "var", "x=4", "f64[8,16]@x:S(1)", NULL, "x:R", NULL, var, 2, 8 },
    { "norm", "x=4", "f64[8,16]@x:S(1)", NULL, "x:R", NULL, norm, 2, 8 },
    { "rms_norm, rows split", "x=4", "f64[20,5,10]@x:S(0)", "f64[5,10]", "x:S(0)", "x:P", rms_norm, 0, 0 },
    { "rms_norm", "x=4", "f64[20,5,10]@x:S(1)", "f64[5,10]", "x:S(1)", "x:S(0)", rms_norm, 1, 20 },
    { "rms_norm over one dim", "x=4", "f64[20,5,10]@x:S(2)", "f64[10]@x:S(0)", "x:S(2)", "x:S(0)", rms_norm, 1, 100 },
    { "layer_norm, rows split", "x=4", "f64[20,5,10]@x:S(0)", "f64[5,10]", "x:S(0)", "x:P", layer_norm, 0, 0 },
    { "layer_norm", "x=4", "f64[20,5,10]@x:S(2)", "f64[5,10]", "x:S(2)", "x:S(1)", layer_norm, 2, 20 },
};

static dt_tensor *leaf(dt_mesh *mesh, const char *spec, uint64_t key)
{
    return spec ? dt_require_grad(dt_randn(dt_spec_parse(mesh, spec), key)) : NULL;
}

/* The same on one rank's terms. */
static dt_tensor *whole_leaf(dt_tensor *x) { return x ? dt_require_grad(dt_detach(dt_redistribute(x, ""))) : NULL; }

static void expect_close(const struct split *s, const char *what, dt_tensor *got, dt_tensor *due)
{
    if (!expect(got && due, "%s: no %s", s->name, what)) return;
    expect(dt_tensor_close(dt_redistribute(got, ""), due, 1e-12, 1e-13), "%s: %s is not what one rank has", s->name,
           what);
}

/* A statistic is reduced: at most twice its bytes come to a rank, and once more for each peer where it is small. */
static void expect_statistics(const struct split *s, const char *what, traffic t, int calls, int ranks)
{
    expect(t.bytes <= (int64_t)calls * s->rows * 8 * ranks, "%s, %s: %lld bytes are more than %d statistics", s->name,
           what, (long long)t.bytes, calls);
}

static dt_status split_rank(dt_context *ctx, void *arg)
{
    const struct split *s = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, s->mesh);
    dt_tensor *x = leaf(mesh, s->x, 1), *w = leaf(mesh, s->w, 2), *x1 = whole_leaf(x), *w1 = whole_leaf(w);
    dt_tensor *due = s->fn(x1, w1), *seed = due ? dt_randn(dt_tensor_spec(due), 3) : NULL;
    dt_backward(due, seed);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    traffic before = traffic_of(mesh);
    dt_tensor *y = s->fn(x, w);
    traffic forward = since(mesh, before);
    if (!expect(y, "%s: %s", s->name, dt_context_error(ctx))) return dt_context_status(ctx);
    expect(forward.calls == s->forward, "%s: %lld calls forward, expected %d", s->name, (long long)forward.calls,
           s->forward);
    expect_statistics(s, "forward", forward, s->forward, dt_rank_count(ctx));
    expect(dt_spec_has(dt_tensor_spec(y), s->result), "%s: result %s", s->name, dt_spec_text(dt_tensor_spec(y)));
    expect_close(s, "value", y, due);
    dt_tensor *g = dt_redistribute(dt_detach(seed), dt_spec_placements(dt_tensor_spec(y)));
    before = traffic_of(mesh);
    dt_backward(y, g);
    dt_scope_pop(ctx, scope, NULL);
    expect_statistics(s, "backward", since(mesh, before), 2, dt_rank_count(ctx));
    expect(dt_grad(x) && dt_tensor_spec(dt_grad(x)) == dt_tensor_spec(x), "%s: gradient %s", s->name,
           dt_grad(x) ? dt_spec_text(dt_tensor_spec(dt_grad(x))) : "not there");
    expect_close(s, "gradient", dt_grad(x), dt_grad(x1));
    if (!w) return dt_context_status(ctx);
    expect(dt_grad(w) && dt_spec_has(dt_tensor_spec(dt_grad(w)), s->w_grad), "%s: gradient of w %s", s->name,
           dt_grad(w) ? dt_spec_text(dt_tensor_spec(dt_grad(w))) : "not there");
    expect_close(s, "gradient of w", dt_grad(w), dt_grad(w1));
    return dt_context_status(ctx);
}

static void statistics_move_and_nothing_else(void)
{
    for (int i = 0; i < DT_COUNT(splits); i++) launch(4, split_rank, &splits[i]);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

static dt_status first_rank(dt_context *ctx, void *arg)
{
    const double nan = strtod("nan", NULL);
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const double values[][7] = { { 1, 3, 2, 3, 0, 3, 3 }, { 0, 0, 0, 0, 0, 0, 0 }, { 1, 2, 3, 4, nan, 6, nan } };
    const int64_t largest[] = { 1, 0, 4 }, smallest[] = { 4, 0, 4 };
    (void)arg;
    for (int i = 0; i < DT_COUNT(values); i++) {
        dt_tensor *x = dt_from_host(dt_spec_parse(mesh, "f64[7]@x:S(0)"), -1, values[i], sizeof values[i]);
        expect((int64_t)dt_tensor_item(dt_argmax(x, 0, false)) == largest[i], "argmax of %d", i);
        expect((int64_t)dt_tensor_item(dt_argmin(x, 0, false)) == smallest[i], "argmin of %d", i);
    }
    dt_tensor *ones = dt_full(dt_spec_parse(mesh, "f32[10,5,3,8]@x:S(0)"), 1);
    expect(dt_tensor_item(dt_sum(dt_argmax(ones, 0, false), DT_ALL, false)) == 0, "argmax of ones is not 0");
    return dt_context_status(ctx);
}

static void the_first_of_all_pieces(void)
{
    for (int ranks = 2; ranks <= 5; ranks++) launch(ranks, first_rank, NULL);
}

/* ---- a row of a user --------------------------------------------------------------------------------------------- */

static dt_status never(const dt_call *call) { return dt_context_fail(call->ctx, DT_ERR_STATE, "the kernel ran"); }

static dt_status center_parts(dt_decomposition *d)
{
    dt_tensor *mean = dt_redistribute(dt_mean(d->in[0], DT_DIMS(1), true), d->whole);
    d->out[0] = dt_sub(d->in[0], mean);
    return dt_context_status(d->ctx);
}

static dt_status wrong_parts(dt_decomposition *d)
{
    d->out[0] = dt_mean(d->in[0], DT_DIMS(1), true);
    return dt_context_status(d->ctx);
}

static dt_status own_parts(dt_decomposition *d)
{
    d->out[0] = dt_apply(d->op, d->in, 1, NULL);
    return dt_context_status(d->ctx);
}

/* The rank with the fewest columns receives most. */
static dt_status whole_parts(dt_decomposition *d)
{
    d->out[0] = dt_neg(dt_redistribute(d->in[0], d->whole));
    return dt_context_status(d->ctx);
}

static dt_status no_parts(dt_decomposition *d) { return (void)d, DT_OK; }

static dt_status users_rank(dt_context *ctx, void *arg)
{
    static const dt_op center = { .head = "center(x)", .rule = "m n! -> m n!", .kernel = never,
                                .decompose = center_parts };
    static const dt_op wrong = { .head = "wrong(x)", .rule = "m n! -> m n!", .kernel = never,
                                .decompose = wrong_parts };
    static const dt_op none = { .head = "none_of(x)", .rule = "m n! -> m n!", .kernel = never,
                                .decompose = no_parts };
    static const dt_op own = { .head = "own(x)", .rule = "m n! -> m n!", .kernel = never, .decompose = own_parts };
    dt_tensor *x = dt_arange(dt_spec_parse(dt_mesh_create(ctx, "x"), "f64[4,6]@x:S(1)"), 0, 1);
    (void)arg;
    dt_tensor *y = dt_apply(&center, &x, 1, NULL);
    expect(y && dt_spec_has(dt_tensor_spec(y), "x:S(1)"), "center: %s", dt_context_error(ctx));
    expect(dt_tensor_item(dt_sum(dt_mul(y, y), DT_ALL, false)) == 70, "center: the sum of squares is not 70");
    expect(!dt_apply(&wrong, &x, 1, NULL), "a result of another shape");
    expect_error(ctx, DT_ERR_STATE, "wrong: made of others its result is f64[4,1]", "another shape");
    expect(!dt_apply(&none, &x, 1, NULL), "no result");
    expect_error(ctx, DT_ERR_STATE, "none_of: made of others it gives no result 0", "no result");
    expect(!dt_apply(&own, &x, 1, NULL), "of itself");
    expect_error(ctx, DT_ERR_STATE, "own: made of others", "of itself");
    return dt_context_status(ctx);
}

static dt_status busiest_rank(dt_context *ctx, void *arg)
{
    static const dt_op whole = { .head = "whole(x)", .rule = "m n! -> m n!", .kernel = never,
                                 .decompose = whole_parts };
    dt_tensor *x = dt_arange(dt_spec_parse(dt_mesh_create(ctx, "x"), "f64[4,7]@x:S(1)"), 0, 1);
    (void)arg;
    const char *text = dt_explain(dt_apply(&whole, &x, 1, NULL));
    expect(strstr(text, "parts    160  received by the busiest rank in 1 calls") != NULL, "4 of 7 columns: %s", text);
    expect(strstr(text, "bytes    160  received by the busiest rank, of operands and parts") != NULL, "%s", text);
    return dt_context_status(ctx);
}

static void parts_are_those_of_the_busiest(void) { launch(3, busiest_rank, NULL); }

static void rows_of_users_are_made_of_others(void)
{
    launch(2, users_rank, NULL);
    launch(3, users_rank, NULL);
}

static const test_row rows[] = {
    { "statistics move and nothing else", statistics_move_and_nothing_else },
    { "parts are those of the busiest", parts_are_those_of_the_busiest },
    { "the first of all pieces", the_first_of_all_pieces },
    { "rows of users are made of others", rows_of_users_are_made_of_others },
};

const suite the_suite = { "decompose", rows, DT_COUNT(rows) };
