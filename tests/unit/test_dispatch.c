/* SPDX-License-Identifier: Apache-2.0
 *
 * What is remembered of calls has an end, and what the tape needs of it stays; results say why they lie where they do;
 * attributes are checked before a row or a kernel sees them. */
#include <math.h>
#include <stddef.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "ops/dispatch.h"
#include "tensor/tensor.h"

/* ---- remembered calls -------------------------------------------------------------------------------------------- */

static dt_tensor *triangle(dt_tensor *x, int64_t diagonal)
{
    int scope = dt_scope_push(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x))), 0);
    dt_tensor *y = dt_tril(x, diagonal);
    return dt_scope_pop(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x))), scope, y);
}

static void an_attribute_may_be_new_in_every_step(void)
{
    dt_context *ctx = dt_context_dry(2);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4,4]@x:S(0)"));
    const dti_dispatch *first = dti_dispatch_get(ctx, dt_op_find("exp"), (const dt_spec *[]){ x->spec }, 1,
                                                 &(dti_attributes){ 0 });
    for (int64_t step = 0; step < 3 * DTI_REMEMBERED; step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_exp(triangle(x, step));
        dt_scope_pop(ctx, scope, NULL);
        expect(dti_dispatch_count(ctx) <= DTI_REMEMBERED, "%d calls", dti_dispatch_count(ctx));
    }
    expect(dti_dispatch_get(ctx, dt_op_find("exp"), (const dt_spec *[]){ x->spec }, 1, &(dti_attributes){ 0 }) == first,
           "what every step calls is not forgotten");
    expect_no_error(ctx, "steps");
    dt_context_destroy(&ctx);
}

static dt_status backward_of_a_forgotten_call(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_require_grad(dt_full(dt_spec_parse(mesh, "f64[3,3]"), 2));
    dt_tensor *y = triangle(x, 0), *other = dt_zeros(dt_spec_parse(mesh, "f64[1,1]"));
    for (int64_t step = 0; step <= DTI_REMEMBERED; step++) {
        int scope = dt_scope_push(ctx, 0);
        triangle(other, step);
        dt_scope_pop(ctx, scope, NULL);
    }
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
    expect(dt_tensor_item(dt_sum(dt_grad(x), DT_ALL, false)) == 6, "the gradient of a triangle is one");
    return dt_context_status(ctx);
}

static void the_tape_holds_what_it_needs(void)
{
    char error[512] = "";
    expect(dt_launch_threads(1, backward_of_a_forgotten_call, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- explained --------------------------------------------------------------------------------------------------- */

static void expect_lines(dt_tensor *x, const char *const *lines, int n)
{
    const char *text = dt_explain(x);
    for (int i = 0; i < n; i++) expect(strstr(text, lines[i]) != NULL, "no \"%s\" in:\n%s", lines[i], text);
}

static dt_tensor *first(dt_tensor *const *in, void *arg) { return (void)arg, in[0]; }

static void a_loss_says_of_what_it_is_made(dt_mesh *mesh)
{
    static const char *const parts[] = { "op          cross_entropy(x, targets, w)\n", "\n\nop          div(x, y)\n" };
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[8,16]@tp:S(0)")), *targets;
    targets = dt_zeros(dt_spec_parse(mesh, "i64[8]@tp:S(0)"));
    dt_tensor *loss = dt_cross_entropy(x, targets, NULL);
    expect_lines(loss, parts, DT_COUNT(parts));
    expect(dt_explain(loss) == dt_explain(loss), "made once");
    dt_cross_entropy_params none = { .reduction = DT_REDUCTION_NONE };
    expect(strstr(dt_explain(dt_cross_entropy(x, targets, &none)), "\nop ") == NULL, "one op is told of once");
}

static void a_result_says_why_it_lies_there(void)
{
    static const char *const product[] = {
        "op          matmul(a, b)\nrule        ... m k, ... k n -> ... m n\n",
        "a        f32[64,512]@tp:S(0)   f32[64,512]           98304  all_gather tp\n",
        "\n\nresult  f32[64,256]@tp:S(1)\n\nbytes  98304  received by the busiest rank\n",
        "tp     a R, b S(n) -> S(n)  n is split and stays so\n",
        "       not a S(m), b S(n)   a is S(m) and b is S(n), but a mesh dim splits one factor\n",
        "393216  4.264  tp:S(0)  R        tp:S(0)\n",
    };
    static const char *const negative[] = {
        "attribute   value<0\n", "tp     x P(max) -> P(min)  the value falls with x\n",
    };
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp=4");
    dt_tensor *a = dt_zeros(dt_spec_parse(mesh, "f32[64,512]@tp:S(0)"));
    dt_tensor *y = dt_matmul(a, dt_zeros(dt_spec_parse(mesh, "f32[512,256]@tp:S(1)")));
    expect_lines(y, product, DT_COUNT(product));
    expect(dt_explain(y) == dt_explain(y), "it lives as long as the tensor");
    expect_lines(dt_mul_scalar(dt_zeros(dt_spec_parse(mesh, "f32[64]@tp:P(max)")), -2), negative, DT_COUNT(negative));
    expect(dt_explain(dt_dropout(a, 0.5, 3))[0] == 'o', "numbers that are checked: %s", dt_context_error(ctx));
    expect(strcmp(dt_explain(a), "no op made it\n") == 0, "an input: %s", dt_explain(a));
    expect(strcmp(dt_explain(dt_redistribute(a, "")), "no op made it\n") == 0, "an input, redistributed");
    dt_tensor *same[] = { dt_redistribute(y, ""), dt_work_wait(dt_redistribute_start(y, "tp:S(0)")), dt_detach(y),
                          dt_redistribute(dt_require_grad(dt_detach(y)), "tp:S(1)"), dt_recompute(first, NULL, &y, 1) };
    for (int i = 0; i < DT_COUNT(same); i++) expect(dt_explain(same[i]) == dt_explain(y), "what made it, %d", i);
    a_loss_says_of_what_it_is_made(mesh);
    expect_no_error(ctx, "explained");
    expect(strcmp(dt_explain(NULL), "") == 0, "nothing");
    dt_context_fail(ctx, DT_ERR_STATE, "failed");
    expect(strcmp(dt_explain(y), "") == 0, "of a failed context");
    dt_context_destroy(&ctx);
}

static void what_is_forgotten_can_be_explained(void)
{
    dt_context *ctx = dt_context_dry(2);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4,4]@x:S(0)")), *y = dt_tril(x, 7);
    for (int64_t step = 0; step < 2 * DTI_REMEMBERED; step++) {
        int scope = dt_scope_push(ctx, 0);
        triangle(x, 100 + step);
        dt_scope_pop(ctx, scope, NULL);
    }
    expect_lines(y, (const char *[]){ "attribute   diagonal=7\n" }, 1);
    expect_no_error(ctx, "explained");
    dt_context_destroy(&ctx);
}

/* ---- new dims ---------------------------------------------------------------------------------------------------- */

/* It lies as asked, has the value of the whole one, and was not cut out of that. */
static void expect_made(dt_mesh *mesh, dt_counters before, dt_tensor *y, dt_tensor *whole, const char *placements)
{
    dt_counters after = dt_mesh_counters(mesh, NULL);
    if (!expect(y != NULL, "%s: %s", placements, dt_context_error(dt_mesh_context(mesh)))) return;
    expect(dt_spec_has(dt_tensor_spec(y), placements), "%s: %s", placements, dt_spec_text(dt_tensor_spec(y)));
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) expect(after.calls[k] == before.calls[k], "%s: moved", placements);
    expect(dt_tensor_close(y, whole, 0, 0), "%s: another value", placements);
}

static dt_status make_placed(dt_context *ctx, void *arg)
{
    static const int64_t numbers[5] = { 3, 0, 6, 2, 6 };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_tensor *ids = dt_from_host(dt_spec_parse(mesh, "i64[5]"), -1, numbers, sizeof numbers);
    dt_tensor *whole = dt_one_hot(ids, 7, DT_F32);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    expect_made(mesh, before, dt_one_hot_placed(ids, 7, DT_F32, "x:S(1)"), whole, "x:S(1)");
    before = dt_mesh_counters(mesh, NULL);
    expect_made(mesh, before, dt_one_hot_placed(ids, 7, DT_F32, "x:S(1),y:S(1)"), whole, "x:S(1),y:S(1)");
    dt_tensor *rows = dt_redistribute(ids, "x:S(0)");
    before = dt_mesh_counters(mesh, NULL);
    expect_made(mesh, before, dt_one_hot_placed(rows, 7, DT_F32, "y:S(1),*"), whole, "x:S(0),y:S(1)");
    expect(dt_spec_has(dt_tensor_spec(dt_one_hot(rows, 7, DT_F32)), "x:S(0)"), "not asked: as the ids lie");
    dt_tensor *turned = dt_one_hot_placed(rows, 7, DT_F32, "x:S(1)");
    expect(dt_spec_has(dt_tensor_spec(turned), "x:S(1)") && dt_tensor_close(turned, whole, 0, 0), "asked otherwise");
    expect(!dt_one_hot_placed(ids, 7, DT_F32, "z:S(1)"), "no mesh dim z");
    expect_error(ctx, DT_ERR_PLACEMENT, "has no dim \"z\"", "no mesh dim z");
    return dt_context_status(ctx);
}

static dt_status stretch_placed(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "x:S(0)", "x:S(2)", "x:S(0),y:S(2)", "y:S(2),x:S(2)" };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_shape shape = DT_SHAPE(3, 4, 6);
    for (int i = 0; i < DT_COUNT(places) - 1; i++) {
        dt_tensor *x = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[4,1]"), 1));
        dt_tensor *other = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[4,1]"), 1));
        dt_tensor *due = dt_expand(other, shape);
        dt_counters before = dt_mesh_counters(mesh, NULL);
        dt_tensor *y = dt_expand_placed(x, shape, places[i]), *seed = dt_randn(dt_spec_parse(mesh, "f64[3,4,6]"), 2);
        expect_made(mesh, before, y, due, places[i]);
        dt_backward(y, seed);
        dt_backward(due, seed);
        expect(dt_tensor_close(dt_grad(x), dt_grad(other), 1e-12, 1e-12), "%s: another gradient", places[i]);
    }
    dt_tensor *x = dt_randn(dt_spec_parse(mesh, "f64[4,1]"), 1), *y = dt_expand_placed(x, shape, places[3]);
    expect(y && dt_spec_has(dt_tensor_spec(y), places[3]), "split by y first");
    expect(dt_tensor_close(y, dt_expand(x, shape), 0, 0), "split by y first: another value");
    return dt_context_status(ctx);
}

static void new_dims_lie_as_asked(void)
{
    char error[512] = "";
    expect(dt_launch_threads(4, make_placed, NULL, error, sizeof error) == DT_OK, "%s", error);
    expect(dt_launch_threads(4, stretch_placed, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

typedef struct lists { dt_shape sizes, numbers; } lists;

static const dt_attribute two_lists[] = {
    { "sizes", DT_ATTRIBUTE_SHAPE, offsetof(lists, sizes) },
    { "numbers", DT_ATTRIBUTE_LIST, offsetof(lists, numbers) },
};

static dt_status sees_lists(const dt_call *call)
{
    const lists *l = call->attributes;
    *(float *)call->out[0].data = (float)(l->sizes.n + l->numbers.n + l->sizes.dim[DT_MAX_DIMS - 1]);
    return DT_OK;
}

static const dt_op takes_lists = {
    .head = "takes_lists(x)", .rule = "->", .polynomial = "none", .attributes = two_lists,
    .attribute_count = DT_COUNT(two_lists), .attribute_bytes = sizeof(lists), .kernel = sees_lists,
};

static dt_status check_lists(dt_context *ctx, void *arg)
{
    static const struct { lists of; dt_status status; const char *message; } bad[] = {
        { { { -1, { 0 } }, { 0, { 0 } } }, DT_ERR_SHAPE, "expected 0 .. 8 numbers for sizes, got -1" },
        { { { 9, { 0 } }, { 0, { 0 } } }, DT_ERR_SHAPE, "expected 0 .. 8 numbers for sizes, got 9" },
        { { { 2, { 3, -2 } }, { 0, { 0 } } }, DT_ERR_SHAPE, "expected sizes or -1 for sizes, got -2" },
        { { { 0, { 0 } }, { 9, { 0 } } }, DT_ERR_ARG, "expected 0 .. 8 numbers for numbers, got 9" },
    };
    (void)arg;
    dt_tensor *x = dt_zeros(dt_spec_parse(dt_mesh_create(ctx, "x"), "f32[]"));
    for (int i = 0; i < DT_COUNT(bad); i++) {
        expect(dt_apply(&takes_lists, &x, 1, &bad[i].of) == NULL, "%s", bad[i].message);
        expect_error(ctx, bad[i].status, bad[i].message, "a list");
    }
    lists good = { { 2, { 3, -1, 0, 0, 0, 0, 0, 77 } }, { 1, { -5 } } };
    expect(dt_tensor_item(dt_apply(&takes_lists, &x, 1, &good)) == 3, "what stands behind the last is 0");
    int remembered = dti_dispatch_count(ctx);
    good.sizes.dim[5] = 1;
    dt_apply(&takes_lists, &x, 1, &good);
    expect(dti_dispatch_count(ctx) == remembered, "and no part of what a call is remembered by");
    dt_softmax(x, 0);
    expect_error(ctx, DT_ERR_ARG, "a scalar has no dims, got dim 0", "a dim of a scalar");
    return dt_context_status(ctx);
}

static void lists_are_checked(void)
{
    char error[512] = "";
    expect(dt_launch_threads(1, check_lists, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static dt_status never(const dt_call *call) { (void)call; return DT_ERR_STATE; }

/* A rule is kept by all texts of its row: rows of one head differ, and so do polynomials. */
static void rows_may_share_a_head(void)
{
    static const dt_op ops[] = {
        { .head = "f(x)", .rule = "m n -> m n", .polynomial = "x", .kernel = never },
        { .head = "f(x)", .rule = "m n -> n m", .polynomial = "x", .kernel = never },
        { .head = "f(x)", .rule = "m n -> m n", .polynomial = "none", .kernel = never },
    };
    static const char *const texts[] = { "f32[4,6]@x:P(sum)", "f32[6,4]@x:P(sum)", "f32[4,6]@x:S(0)" };
    dt_context *ctx = dt_context_dry(2);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4,6]@x:P"));
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < DT_COUNT(ops); i++) {
            const char *text = dt_spec_text(dt_tensor_spec(dt_apply(&ops[i], &x, 1, NULL)));
            expect(strcmp(text, texts[i]) == 0, "row %d: got %s, expected %s", i, text, texts[i]);
        }
    dt_tensor *two[] = { x, x };
    expect(dt_apply(&ops[0], two, 2, NULL) == NULL, "two operands");
    expect_error(ctx, DT_ERR_ARG, "expected 1 operands, got 2", "too many for a kept rule");
    dt_context_destroy(&ctx);
}

static void norms_want_an_eps_of_at_least_0(void)
{
    dt_context *ctx = dt_context_dry(1);
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[2,3]")), *w = dt_zeros(dt_spec_parse(mesh, "f32[3]"));
    const double bad[] = { -1e-5, NAN };
    expect(dt_rms_norm(x, w, 0) && dt_layer_norm(x, w, NULL, 1e-5), "an eps");
    for (int i = 0; i < DT_COUNT(bad); i++) {
        expect(dt_rms_norm(x, w, bad[i]) == NULL, "rms_norm, %g", bad[i]);
        expect_error(ctx, DT_ERR_ARG, "rms_norm: expected an eps of at least 0", "rms_norm");
        expect(dt_layer_norm(x, w, NULL, bad[i]) == NULL, "layer_norm, %g", bad[i]);
        expect_error(ctx, DT_ERR_ARG, "layer_norm: expected an eps of at least 0", "layer_norm");
    }
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "an attribute may be new in every step", an_attribute_may_be_new_in_every_step },
    { "the tape holds what it needs", the_tape_holds_what_it_needs },
    { "a result says why it lies there", a_result_says_why_it_lies_there },
    { "what is forgotten can be explained", what_is_forgotten_can_be_explained },
    { "new dims lie as asked", new_dims_lie_as_asked },
    { "lists are checked", lists_are_checked },
    { "rows may share a head", rows_may_share_a_head },
    { "norms want an eps of at least 0", norms_want_an_eps_of_at_least_0 },
};

const suite the_suite = { "dispatch", rows, DT_COUNT(rows) };
