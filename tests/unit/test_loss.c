/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning rates, and the loss over the tokens of a batch: micro-batches add up to it. */
#include <math.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

/* ---- learning rates ---------------------------------------------------------------------------------------------- */

static const struct rate { int64_t step, warmup, total; double cosine, linear; } rates[] = {
    { 0, 4, 13, 0, 0 },          { 1, 4, 13, 0.25, 0.25 },       { 4, 4, 13, 1, 1 },
    { 8, 4, 13, 0.55, 0.55 },    { 6, 4, 13, 0.868198051533946, 0.775 },
    { 12, 4, 13, 0.1, 0.1 },     { 100, 4, 13, 0.1, 0.1 },       { 0, 0, 13, 1, 1 },
    { -5, 4, 13, 0, 0 },         { -5, 0, 13, 1, 1 },            { 0, 0, 1, 0.1, 0.1 },
    { 3, 20, 13, 0.15, 0.15 },   { 20, 20, 13, 0.1, 0.1 },       { 6, -3, 13, 0.55, 0.55 },
    { 0, 0, 0, 0.1, 0.1 },
};

static void rates_rise_and_fall(void)
{
    for (int i = 0; i < DT_COUNT(rates); i++) {
        const struct rate *r = &rates[i];
        double cosine = dt_lr_cosine(r->step, r->warmup, r->total, 1, 0.1);
        double linear = dt_lr_linear(r->step, r->warmup, r->total, 1, 0.1);
        expect(fabs(cosine - r->cosine) < 1e-14, "row %d: %.15g, expected %.15g", i, cosine, r->cosine);
        expect(fabs(linear - r->linear) < 1e-14, "row %d: %.15g, expected %.15g", i, linear, r->linear);
    }
}

/* ---- the loss over tokens ---------------------------------------------------------------------------------------- */

enum { TOKENS = 12, VOCAB = 7, WIDTH = 3 };

/* Of the first four one is valid, of the next none, then all: micro-batches weigh by what they have. */
static const int64_t targets_of[TOKENS] = { -1, 3, -1, -100, -1, -1, -1, -1, 0, 6, 2, 2 };

static dt_tensor *loss_of(dt_tensor *w, int first, int n, const char *placed, dt_tensor *count, dt_tensor **targets)
{
    dt_mesh *mesh = dt_spec_mesh(dt_tensor_spec(w));
    dt_dtype dtype = dt_spec_dtype(dt_tensor_spec(w));
    dt_tensor *all = dt_randn(dt_spec_create(mesh, dtype, DT_SHAPE(TOKENS, WIDTH), ""), 5);
    dt_tensor *x = dt_redistribute(dt_slice(all, 0, first, first + n, 1), placed);
    *targets = dt_from_host(dt_spec_create(mesh, DT_I64, DT_SHAPE(n), placed), -1, targets_of + first,
                            (size_t)n * sizeof *targets_of);
    return dt_token_loss(dt_linear(x, w, NULL), *targets, count);
}

typedef struct counted { const char *weight, *tokens; dt_dtype dtype; double rtol; } counted;

/* bf16: the gradient of a micro-batch is rounded before it is added, each to 8 bits. */
static const counted counts[] = {
    { "", "x:S(0)", DT_F64, 1e-13 }, { "x:S(0)", "", DT_F64, 1e-13 }, { "", "", DT_F64, 1e-13 },
    { "", "x:S(0)", DT_F32, 1e-6 },  { "x:S(0)", "", DT_BF16, 0x1p-7 },
};

static dt_status accumulate(dt_context *ctx, void *arg)
{
    const counted *c = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const dt_spec *spec = dt_spec_create(mesh, c->dtype, DT_SHAPE(VOCAB, WIDTH), c->weight);
    dt_tensor *w = dt_require_grad(dt_randn(spec, 1)), *other = dt_require_grad(dt_randn(spec, 1)), *t = NULL;
    dt_tensor *whole = loss_of(w, 0, TOKENS, c->tokens, NULL, &t), *count = dt_token_count(t);
    expect(count && dt_tensor_item(count) == 5, "%g tokens", dt_tensor_item(count));
    expect(strcmp(dt_spec_text(dt_tensor_spec(count)), "f32[]") == 0, "%s", dt_spec_text(dt_tensor_spec(count)));
    expect(dt_spec_dtype(dt_tensor_spec(whole)) == (c->dtype == DT_F64 ? DT_F64 : DT_F32), "a wide loss");
    dt_backward(whole, NULL);
    double sum = 0;
    for (int first = 0; first < TOKENS; first += 4) {
        dt_tensor *loss = loss_of(other, first, 4, c->tokens, count, &t);
        sum += dt_tensor_item(loss);
        expect(dt_backward(loss, NULL) == DT_OK, "%s", dt_context_error(ctx));
    }
    double item = dt_tensor_item(whole);
    expect(fabs(sum - item) <= c->rtol * item && item > 0, "losses add up to %.17g, expected %.17g", sum, item);
    expect(dt_tensor_close(dt_grad(other), dt_grad(w), c->rtol, c->rtol), "gradients of micro-batches, %s, %s",
           c->weight, c->tokens);
    return dt_context_status(ctx);
}

/* The mean of dt_cross_entropy; without a valid target 0, and no gradient that is NaN. */
static dt_status means(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *logits = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[2,3,7]@x:S(0)"), 1));
    int64_t values[] = { 1, -1, 2, 6, 0, -7 }, none[] = { -1, -1, -1, -1, -1, -1 };
    const dt_spec *spec = dt_spec_parse(mesh, "i64[2,3]@x:S(0)");
    dt_tensor *targets = dt_from_host(spec, -1, values, sizeof values);
    dt_tensor *empty = dt_from_host(spec, -1, none, sizeof none);
    double due = dt_tensor_item(dt_cross_entropy(logits, targets, NULL));
    double got = dt_tensor_item(dt_token_loss(logits, targets, NULL));
    expect(fabs(got - due) <= 1e-14 * due, "%.17g, expected %.17g", got, due);
    dt_tensor *loss = dt_token_loss(logits, empty, NULL);
    expect(dt_tensor_item(loss) == 0 && dt_tensor_item(dt_token_count(empty)) == 0, "no valid target");
    expect(dt_backward(loss, NULL) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_close(dt_grad(logits), dt_zeros(dt_tensor_spec(logits)), 0, 0), "no gradient");
    expect(!dt_token_loss(logits, NULL, NULL), "no targets");
    expect_error(ctx, DT_ERR_ARG, "dt_token_loss: expected logits and targets, got no targets", "no targets");
    expect(!dt_token_loss(NULL, targets, NULL), "no logits");
    expect_error(ctx, DT_ERR_ARG, "dt_token_loss: expected logits and targets, got no logits", "no logits");
    expect(!dt_token_loss(logits, targets, targets), "no count");
    expect_error(ctx, DT_ERR_SHAPE, "dt_token_loss: expected a count that is a float scalar, got i64[2,3]", "count");
    expect(!dt_token_count(logits), "floats");
    expect_error(ctx, DT_ERR_DTYPE, "dt_token_count: expected integers, got f64[2,3,7]", "floats");
    expect(!dt_token_count(NULL) && !dt_token_loss(NULL, NULL, NULL), "nothing at all");
    return dt_context_status(ctx);
}

static void micro_batches_add_up(void)
{
    for (int ranks = 1; ranks <= 5; ranks++) {
        for (int i = 0; i < DT_COUNT(counts); i++) launch(ranks, accumulate, &counts[i]);
        launch(ranks, means, NULL);
    }
}

static const test_row rows[] = {
    { "rates_rise_and_fall", rates_rise_and_fall },
    { "micro_batches_add_up", micro_batches_add_up },
};

const suite the_suite = { "loss", rows, DT_COUNT(rows) };
