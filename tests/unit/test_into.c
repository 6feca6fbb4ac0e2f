/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing in place: what is written, by whom, what else keeps its value, and when it is refused. That rows which write
 * give what one rank gives, test_conformance.c says. */
#include <math.h>
#include <string.h>

#include <dtensor/dtensor.h>
#include <dtensor/op.h>

#include "errors.h"
#include "launch.h"

static dt_tensor *drawn(dt_mesh *mesh, const char *spec, uint64_t seed)
{
    return dt_randn(dt_spec_parse(mesh, spec), seed);
}

/* Is x what due is, and bits where due is no result of sums? Collective. */
static void expect_close(dt_tensor *x, dt_tensor *due, double rtol, const char *what)
{
    expect(x && due && dt_tensor_close(x, due, rtol, rtol), "%s: %s", what,
           x ? dt_spec_text(dt_tensor_spec(x)) : "nothing");
}

static int64_t bytes_of(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t bytes = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) bytes += counters.bytes[kind];
    return bytes;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static const struct copied { const char *x, *values; double close; } copies[] = {
    { "f64[13,6]@x:S(0)", "f64[13,6]@x:S(0)", 0 }, { "f64[13,6]", "f64[13,6]@x:S(0)", 0 },
    { "f64[13,6]@x:S(1)", "f64[13,6]@x:S(0)", 0 }, { "f64[13,6]@x:S(0),y:S(1)", "f64[13,6]@y:P", 1e-12 },
    { "f64[13,6]@x:P", "f64[13,6]", 0 },           { "f64[13,6]@y:S(0),x:S(0)", "f64[13,6]@x:S(0),y:S(0)", 0 },
    { "bf16[13,6]", "f64[13,6]@x:S(0)", 0x1p-7 },  { "f64[13,6]@x:S(0)", "f32[13,6]@y:S(1)", 1e-6 },
    { "f64[0,6]@x:S(0)", "f64[0,6]", 0 },          { "f64[]", "f64[]@x:P", 1e-12 },
};

static dt_status copied(dt_context *ctx, void *arg)
{
    const struct copied *c = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=2"), *flat = dt_mesh_flatten(mesh, "x,y", "all");
    dt_tensor *x = drawn(mesh, c->x, 1), *values = drawn(mesh, c->values, 2), *held = NULL;
    const dt_spec *spec = dt_tensor_spec(x);
    dt_tensor_hold(&held, x);
    expect(dt_copy_into(held, values) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_spec(x) == spec, "it stays where it is");
    expect_close(x, values, c->close, c->x);
    expect_close(held, values, c->close, c->values);
    values = dt_redistribute_to(dt_full(dt_tensor_spec(values), 3), flat, "");
    expect(dt_copy_into(x, values) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(held, dt_full(spec, 3), 0, "from another mesh");
    expect(dt_copy_into(x, x) == DT_OK, "%s", dt_context_error(ctx));
    dt_tensor_hold(&held, NULL);
    return dt_context_status(ctx);
}

static void values_are_copied(void)
{
    for (int i = 0; i < DT_COUNT(copies); i++) launch(4, copied, &copies[i]);
}

/* What was redistributed of the old value is not read any more; strict scopes take a copy that was asked for. */
static dt_status fresh(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = dt_require_grad(drawn(mesh, "f64[8,4]@x:S(0)", 1)), *x = drawn(mesh, "f64[6,8]@x:S(0)", 2);
    int quiet = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *before = dt_matmul(x, w), *old = dt_copy(w);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    expect(dt_copy_into(w, dt_redistribute(dt_mul_scalar(old, 2), "")) == DT_OK, "%s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    expect_close(dt_matmul(x, w), dt_mul_scalar(before, 2), 1e-12, "twice the value");
    expect_close(old, dt_mul_scalar(w, 0.5), 0, "a copy keeps its value");
    dt_scope_pop(ctx, quiet, NULL);
    return dt_context_status(ctx);
}

static void old_copies_end(void) { launch(2, fresh, NULL); }

/* Peers read what was gathered while its owner writes it again. */
static dt_status raced(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_full(dt_spec_parse(mesh, "f32[4096]@x:S(0)"), 0), *one = dt_full(dt_tensor_spec(x), 1);
    for (int i = 0; i < 20; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *whole = dt_redistribute(x, "");
        dt_axpby_into(x, one, 1, 1);
        expect(((const float *)dt_tensor_data(whole))[4095] == (float)i, "element of round %d", i);
        dt_tensor *sum = dt_redistribute(dt_add(whole, dt_redistribute(x, "")), "x:S(0)");
        expect_close(sum, dt_full(dt_tensor_spec(sum), 2 * i + 1), 0, "both");
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void peers_read_the_old_value(void)
{
    launch(4, raced, NULL);
    launch(3, raced, NULL);
}

/* ---- optimisers -------------------------------------------------------------------------------------------------- */

static const struct optimised { const char *w, *g; } optimised[] = {
    { "f64[13,5]", "f64[13,5]" },          { "f64[13,5]@x:S(0)", "f64[13,5]@x:P" },
    { "f64[13,5]", "f64[13,5]@x:S(1)" },   { "f64[(2 13),5]@x:S(0.1)", "f64[(2 13),5]@x:S(0.1)" },
    { "f64[2,5]@x:S(0)", "f64[2,5]@x:P" },
};

static dt_tensor *scaled(dt_tensor *x, double a, dt_tensor *y, double b)
{
    return dt_add(dt_mul_scalar(x, a), dt_mul_scalar(y, b));
}

/* Momentum as two updates, against ops that make new tensors. */
static dt_status momentum(dt_context *ctx, void *arg)
{
    const struct optimised *o = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = drawn(mesh, o->w, 1), *buffer = dt_zeros(dt_tensor_spec(w));
    dt_tensor *due = dt_copy(w), *due_buffer = dt_zeros(dt_tensor_spec(w));
    for (int step = 1; step <= 3; step++) {
        dt_tensor *g = drawn(mesh, o->g, (uint64_t)(step + 5));
        expect(dt_axpby_into(buffer, g, 0.9, 1) == DT_OK, "%s", dt_context_error(ctx));
        expect(dt_axpby_into(w, buffer, 1 - 0.01, -0.1) == DT_OK, "%s", dt_context_error(ctx));
        due_buffer = scaled(due_buffer, 0.9, g, 1);
        due = scaled(due, 1 - 0.01, due_buffer, -0.1);
    }
    expect_close(w, due, 1e-12, o->w);
    return dt_context_status(ctx);
}

static dt_tensor *adamw_direction(dt_tensor *m, dt_tensor *v, int step)
{
    dt_tensor *first = dt_div_scalar(m, 1 - pow(0.9, step)), *second = dt_div_scalar(v, 1 - pow(0.99, step));
    return dt_div(first, dt_add_scalar(dt_sqrt(second), 1e-3));
}

static dt_status adamw(dt_context *ctx, void *arg)
{
    const struct optimised *o = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = drawn(mesh, o->w, 1), *m = dt_zeros(dt_tensor_spec(w)), *v = dt_zeros(dt_tensor_spec(w));
    dt_tensor *due = dt_copy(w), *due_m = dt_copy(m), *due_v = dt_copy(v);
    for (int step = 1; step <= 3; step++) {
        dt_tensor *g = drawn(mesh, o->g, (uint64_t)(step + 5)), *whole = dt_redistribute(g, "");
        dt_adamw_into_params p = { .lr = 0.1, .weight_decay = 0.2, .beta2 = 0.99, .eps = 1e-3, .step = step };
        expect(dt_adamw_into(w, m, v, g, &p) == DT_OK, "%s", dt_context_error(ctx));
        due_m = scaled(due_m, 0.9, whole, 0.1);
        due_v = scaled(due_v, 0.99, dt_mul(whole, whole), 0.01);
        due = scaled(due, 1 - 0.1 * 0.2, adamw_direction(due_m, due_v, step), -0.1);
    }
    expect_close(m, due_m, 1e-12, "m");
    expect_close(v, due_v, 1e-12, "v");
    expect_close(w, due, 1e-11, o->w);
    return dt_context_status(ctx);
}

static void optimisers_step(void)
{
    for (int i = 0; i < DT_COUNT(optimised); i++) {
        launch(4, momentum, &optimised[i]);
        launch(3, adamw, &optimised[i]);
    }
}

/* States of other dtypes than the weight's; no memory but what is there. */
static dt_status mixed(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = drawn(mesh, "bf16[70,9]@x:S(0)", 1), *m = dt_zeros(dt_spec_parse(mesh, "f32[70,9]@x:S(0)"));
    dt_tensor *v = dt_zeros(dt_tensor_spec(m)), *g = drawn(mesh, "bf16[70,9]@x:S(0)", 2), *due = dt_copy(w);
    dt_adamw_into_params p = { .lr = 0.25 };
    int64_t before = dt_mesh_counters(mesh, NULL).memory_peak;
    expect(dt_adamw_into(w, m, v, g, &p) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_mesh_counters(mesh, NULL).memory_peak == before, "nothing new");
    dt_tensor *sign = dt_sub(dt_cast(dt_gt(g, dt_fill(g, 0)), DT_BF16), dt_cast(dt_lt(g, dt_fill(g, 0)), DT_BF16));
    expect_close(w, scaled(due, 1, sign, -0.25), 0x1p-6, "a first step goes by the sign");
    expect_close(m, dt_mul_scalar(dt_cast(g, DT_F32), 0.1), 1e-6, "m");
    return dt_context_status(ctx);
}

static void states_have_their_dtypes(void) { launch(2, mixed, NULL); }

/* Gradients that wait as P are added up without communication, and clipped. */
static dt_status accumulated(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *sum = drawn(mesh, "f64[6,4]@x:P", 1), *due = dt_redistribute(sum, "");
    dt_tensor *g = drawn(mesh, "f64[6,4]@x:P", 2), *whole = drawn(mesh, "f64[4]", 3);
    int64_t before = bytes_of(mesh);
    dt_axpby_into(sum, g, 1, 0.5);
    dt_axpby_into(sum, whole, 1, 1);
    dt_mul_into(sum, dt_full(dt_spec_parse(mesh, "f64[]"), 0.25));
    expect(bytes_of(mesh) == before && dt_spec_has(dt_tensor_spec(sum), "x:P"), "it waits");
    due = dt_mul_scalar(dt_add(scaled(due, 1, g, 0.5), whole), 0.25);
    expect_close(sum, due, 1e-12, "a sum");
    return dt_context_status(ctx);
}

static void partial_targets_stay_partial(void) { launch(4, accumulated, NULL); }

/* ---- with the tape ----------------------------------------------------------------------------------------------- */

/* Leaves whose gradients came of one tensor: each is its own. */
static dt_status gradients(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *a = dt_require_grad(drawn(mesh, "f64[6,4]@x:S(0)", 1)), *b = dt_require_grad(dt_copy(dt_detach(a)));
    dt_tensor *seed = drawn(mesh, "f64[6,4]@x:S(0)", 3), *due = dt_copy(seed);
    expect(dt_backward(dt_add(a, b), seed) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_mul_into(dt_grad(a), dt_full(dt_spec_parse(mesh, "f64[]"), 2)) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(dt_grad(a), dt_mul_scalar(due, 2), 0, "clipped");
    expect_close(dt_grad(b), due, 0, "the other");
    expect_close(seed, due, 0, "the seed");
    return dt_context_status(ctx);
}

static void gradients_are_their_leaves(void) { launch(2, gradients, NULL); }

/* A weight that was pinned, and whose pin is at hand, is written after backward; the pin keeps its value, forward and
 * backward. */
static dt_status pinned(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = dt_require_grad(drawn(mesh, "f64[8,4]@x:S(0)", 1)), *whole = dt_redistribute(w, "");
    dt_tensor *old = drawn(mesh, "f64[8,4]@x:S(0)", 1), *seed = dt_full(dt_spec_parse(mesh, "f64[8,4]"), 1);
    dt_tensor *c = dt_require_grad(drawn(mesh, "f64[8,4]", 2));
    expect(dt_backward(dt_mul(whole, c), seed) == DT_OK, "%s", dt_context_error(ctx));
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect(dt_axpby_into(w, dt_grad(w), 1, -1) == DT_OK, "%s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    expect_close(w, dt_sub(old, c), 1e-12, "a step");
    expect_close(whole, old, 0, "the pin's value");
    expect(dt_backward(dt_mul(whole, c), seed) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(dt_grad(c), dt_mul_scalar(old, 2), 1e-12, "by the value of the pin");
    expect(dt_backward(dt_mul(dt_redistribute(w, ""), c), seed) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(dt_grad(c), dt_add(dt_mul_scalar(old, 2), w), 1e-12, "a new pin, of the new value");
    return dt_context_status(ctx);
}

static void pins_keep_their_value(void) { launch(2, pinned, NULL); }

/* A loop of steps: forward, backward and update within one scope, weights held. */
static dt_status trained(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *w = NULL, *x = drawn(mesh, "f64[12,6]@x:S(0)", 1), *due = drawn(mesh, "f64[12,3]@x:S(0)", 2);
    dt_tensor_hold(&w, dt_require_grad(drawn(mesh, "f64[6,3]@x:S(0)", 3)));
    double first = 0, last = 0;
    for (int step = 0; step < 30; step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *far = dt_sub(dt_matmul(x, dt_redistribute(w, "")), due);
        dt_tensor *loss = dt_mean(dt_mul(far, far), DT_ALL, false);
        last = dt_tensor_item(loss);
        if (step == 0) first = last;
        expect(dt_backward(loss, NULL) == DT_OK, "%s", dt_context_error(ctx));
        int quiet = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
        expect(dt_axpby_into(w, dt_grad(w), 1, -0.02) == DT_OK, "%s", dt_context_error(ctx));
        dt_scope_pop(ctx, quiet, NULL);
        dt_scope_pop(ctx, scope, NULL);
    }
    expect(last < 0.9 * first, "loss %g, then %g", first, last);
    dt_tensor_hold(&w, NULL);
    return dt_context_status(ctx);
}

static void weights_are_trained(void) { launch(3, trained, NULL); }

/* ---- rows of a program ------------------------------------------------------------------------------------------- */

static dt_status shift_kernel(const dt_call *call)
{
    double *x = call->out[0].data, *count = call->out[1].data;
    const double *by = call->in[1].data;
    int64_t m = call->out[0].shape.dim[0], n = call->out[0].shape.dim[1];
    expect(call->out[0].data == call->in[0].data, "one memory");
    for (int64_t i = 0; i < m; i++) {
        for (int64_t k = 0; k < n; k++) x[i * n + k] += by[i];
        count[i] = (double)n;
    }
    return DT_OK;
}

static const dt_op shift = { .head = "shift(x, by)", .rule = "m n, m -> m n, m", .polynomial = "none",
                             .kernel = shift_kernel, .writes = 1 };
static const dt_op greedy = { .head = "greedy(x, by)", .rule = "m n, m -> m n, m", .polynomial = "none",
                              .kernel = shift_kernel, .writes = 3 };
static const dt_op turned = { .head = "turned(x, y)", .rule = "m n, n m -> n m", .polynomial = "none",
                              .kernel = shift_kernel, .writes = 1 };

static dt_status shifted(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = drawn(mesh, "f64[6,4]@x:S(0)", 1), *by = drawn(mesh, "f64[6]", 2), *y[2] = { NULL };
    dt_tensor *due = dt_add(x, dt_unsqueeze(by, 1));
    expect(dt_apply_all(&shift, (dt_tensor *[]){ x, by }, 2, NULL, y, 2) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(x, due, 0, "written");
    expect_close(y[0], due, 0, "and given");
    expect(y[1] && dt_spec_has(dt_tensor_spec(y[1]), "x:S(0)"), "another result");
    expect(dt_apply(&shift, (dt_tensor *[]){ y[0], by }, 2, NULL) != NULL, "what is given is it");
    dt_apply(&greedy, (dt_tensor *[]){ x, by }, 2, NULL);
    expect_error(ctx, DT_ERR_ARG, "greedy(x, by): writes 3 operands, expected at most its 2", "too many");
    dt_apply(&turned, (dt_tensor *[]){ x, drawn(mesh, "f64[4,6]", 3) }, 2, NULL);
    expect_error(ctx, DT_ERR_SHAPE, "turned: writes x f64[6,4]@x:S(0), and the result has another shape", "turned");
    return dt_context_status(ctx);
}

static void rows_of_a_program_write(void) { launch(2, shifted, NULL); }

/* x = x + y, cut in ways without a refinement: x stays. */
static dt_status cut(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=2");
    dt_tensor *x = drawn(mesh, "f64[(5 6)]@y:S(0.1)", 1), *y = drawn(mesh, "f64[(6 5)]@x:S(0.1)", 2);
    dt_tensor *due = dt_add(dt_copy(x), y);
    const dt_spec *spec = dt_tensor_spec(x);
    expect(dt_axpby_into(x, y, 1, 1) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_spec(x) == spec, "it stays where it is");
    expect_close(x, due, 0, "cut otherwise");
    return dt_context_status(ctx);
}

static void operands_are_cut_otherwise(void) { launch(6, cut, NULL); }

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

typedef struct bench { dt_mesh *mesh; dt_tensor *w, *x, *y; dt_work *work; } bench;

static void need(bench *b) { b->y = dt_mul(b->w, b->x); }
static void need_leaf(bench *b) { b->y = dt_mul(b->w, b->w); }
static void need_source(bench *b)
{
    b->y = dt_mul(dt_redistribute(b->w, ""), dt_require_grad(drawn(b->mesh, "f64[8,4]", 4)));
}
static void detach(bench *b) { b->y = dt_detach(b->x); }
static void move_nothing(bench *b) { b->y = dt_redistribute(b->x, "*"); }
static void start(bench *b) { b->work = dt_redistribute_start(b->x, ""); }
static void nothing(bench *b) { (void)b; }

static void write_x(bench *b) { dt_axpby_into(b->x, dt_full(dt_tensor_spec(b->x), 1), 1, 1); }
static void copy_x(bench *b) { dt_copy_into(b->x, dt_full(dt_tensor_spec(b->x), 1)); }
static void write_y(bench *b) { dt_mul_into(b->y, b->x); }
static void write_w(bench *b)
{
    dt_context *ctx = dt_mesh_context(b->mesh);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_copy_into(b->w, b->x);
    dt_scope_pop(ctx, scope, NULL);
}
static void write_made(bench *b)
{
    dt_context *ctx = dt_mesh_context(b->mesh);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_copy_into(b->y, b->x);
    dt_scope_pop(ctx, scope, NULL);
}
static void record(bench *b) { dt_axpby_into(b->x, b->w, 1, 1); }
static void record_leaf(bench *b) { dt_copy_into(b->w, b->x); }
static void twice(bench *b) { dt_axpby_into(b->x, b->x, 1, 1); }
static void twice_adamw(bench *b) { dt_adamw_into(b->x, dt_copy(b->x), b->x, dt_copy(b->x), NULL); }
static void not_linear(bench *b)
{
    dt_tensor *w = drawn(b->mesh, "f64[8,4]@x:P", 5), *m = drawn(b->mesh, "f64[8,4]@x:P", 6);
    dt_adamw_into(w, m, dt_copy(m), b->x, NULL);
}
static void not_alike(bench *b)
{
    dt_adamw_into(b->x, drawn(b->mesh, "f64[8,4]", 6), drawn(b->mesh, "f64[8,4]", 7), dt_copy(b->x), NULL);
}
static void largest(bench *b) { dt_mul_into(dt_redistribute(dt_copy(b->x), "x:P(max)"), b->x); }
static void broadcast(bench *b) { dt_axpby_into(drawn(b->mesh, "f64[4]", 3), b->x, 1, 1); }
static void small_gradient(bench *b)
{
    dt_adamw_into(b->x, dt_copy(b->x), dt_copy(b->x), drawn(b->mesh, "f64[4]", 3), NULL);
}
static void other_shape(bench *b) { dt_copy_into(b->x, drawn(b->mesh, "f64[4,8]", 3)); }
static void other_dtype(bench *b) { dt_axpby_into(b->x, drawn(b->mesh, "f32[8,4]", 3), 1, 1); }
static void no_values(bench *b) { dt_copy_into(b->x, NULL); }

static const struct refusal {
    const char *what;
    void (*before)(bench *b), (*write)(bench *b);
    dt_status status;
    const char *says;
} refusals[] = {
    { "the tape has it", need, write_x, DT_ERR_STATE, "axpby_into: x f64[8,4]@x:S(0) is to be written, and the" },
    { "a leaf that it has", need_leaf, write_w, DT_ERR_STATE, "copy_into: x f64[8,4]@x:S(0) is to be written, and" },
    { "to be gathered again", need_source, write_w, DT_ERR_STATE, "and the tape still needs it" },
    { "made of leaves", need, write_made, DT_ERR_STATE, "writes x f64[8,4]@x:S(0), which was made of leaves" },
    { "a second tensor", detach, write_x, DT_ERR_STATE, "another tensor, or work not waited for, shares its" },
    { "a second tensor", detach, copy_x, DT_ERR_STATE, "shares its elements: see dt_copy" },
    { "what did not move", move_nothing, write_x, DT_ERR_STATE, "shares its elements" },
    { "what did not move", move_nothing, copy_x, DT_ERR_STATE, "shares its elements" },
    { "under way", start, write_x, DT_ERR_STATE, "is to be written" },
    { "an operand has a gradient", nothing, record, DT_ERR_STATE, "axpby_into: writes x f64[8,4]@x:S(0), which is" },
    { "a leaf with gradients", nothing, record_leaf, DT_ERR_STATE, "expected a DT_SCOPE_NO_GRAD scope" },
    { "two operands", nothing, twice, DT_ERR_ARG, "axpby_into: x f64[8,4]@x:S(0) is written, and is two of" },
    { "two operands", nothing, twice_adamw, DT_ERR_ARG, "adamw_into: w f64[8,4]@x:S(0) is written, and is two" },
    { "the other way", move_nothing, write_y, DT_ERR_ARG, "mul_into: x f64[8,4]@x:S(0) is written, and is two" },
    { "partial", nothing, not_linear, DT_ERR_PLACEMENT, "adamw_into: writes w f64[8,4]@x:P(sum), m f64[8,4]@x:P(sum)" },
    { "not alike", nothing, not_alike, DT_ERR_PLACEMENT, "which cannot stay so along x" },
    { "the largest", nothing, largest, DT_ERR_PLACEMENT, "mul_into: writes x f64[8,4]@x:P(max)" },
    { "too small", nothing, broadcast, DT_ERR_SHAPE, "axpby_into: writes x f64[4], and the result has another shape" },
    { "a small gradient", nothing, small_gradient, DT_ERR_SHAPE, "adamw_into" },
    { "another shape", nothing, other_shape, DT_ERR_SHAPE, "copy_into: expected values of the shape of x f64[8,4]@x" },
    { "another dtype", nothing, other_dtype, DT_ERR_DTYPE, "axpby_into(x, y): expected one dtype" },
    { "no values", nothing, no_values, DT_ERR_ARG, "copy_into: expected x and values, got f64[8,4]@x:S(0) alone" },
};

/* And the context can be used after that: x has its value, and is written when nothing is in the way. */
static dt_status refused(dt_context *ctx, void *arg)
{
    const struct refusal *r = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    bench b = { .mesh = mesh };
    b.w = dt_require_grad(drawn(mesh, "f64[8,4]@x:S(0)", 1));
    b.x = drawn(mesh, "f64[8,4]@x:S(0)", 2);
    dt_tensor *due = drawn(mesh, "f64[8,4]@x:S(0)", 2);
    int scope = dt_scope_push(ctx, 0);
    r->before(&b);
    r->write(&b);
    expect_error(ctx, r->status, r->says, r->what);
    dt_scope_pop(ctx, scope, NULL);
    expect_close(b.x, due, 0, r->what);
    write_x(&b);
    expect_close(b.x, dt_add_scalar(due, 1), 0, r->what);
    write_w(&b);
    expect_close(b.w, b.x, 0, r->what);
    return dt_context_status(ctx);
}

static void writes_are_refused(void)
{
    for (int i = 0; i < DT_COUNT(refusals); i++) launch(2, refused, &refusals[i]);
}

/* y = w x, of which w alone has a gradient: that is x, whatever has become of w. */
static dt_status written_unneeded(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *w = dt_require_grad(drawn(mesh, "f64[8,4]@x:S(0)", 1)), *x = drawn(mesh, "f64[8,4]@x:S(0)", 2);
    (void)arg;
    dt_tensor *y = dt_mul(w, x);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect(dt_copy_into(w, dt_zeros(dt_tensor_spec(w))) == DT_OK, "written: %s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
    expect_close(dt_grad(w), x, 0, "the gradient of what was written");
    return dt_context_status(ctx);
}

static void what_nobody_needs_is_written(void) { launch(2, written_unneeded, NULL); }

static const test_row rows[] = {
    { "values are copied", values_are_copied },
    { "old copies end", old_copies_end },
    { "peers read the old value", peers_read_the_old_value },
    { "optimisers step", optimisers_step },
    { "states have their dtypes", states_have_their_dtypes },
    { "partial targets stay partial", partial_targets_stay_partial },
    { "gradients are their leaves' own", gradients_are_their_leaves },
    { "pins keep their value", pins_keep_their_value },
    { "weights are trained", weights_are_trained },
    { "rows of a program write", rows_of_a_program_write },
    { "operands are cut otherwise", operands_are_cut_otherwise },
    { "writes are refused", writes_are_refused },
    { "what nobody needs is written", what_nobody_needs_is_written },
};

const suite the_suite = { "into", rows, DT_COUNT(rows) };
