/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training.h"

#include <math.h>
#include <string.h>

#include "launch.h"

enum { MOST_PARTS = 4, MOST_PARAMS = 64, SEED = 7 };

static const char the_text[] =
    "A tensor has one global value and a placement on a named mesh. Every op has one row that says which placements "
    "it can take and give; what does not fit is redistributed. Data, tensor, sequence and fully sharded parallelism "
    "are then no features with code of their own: they are placements. A gradient is a tensor with a placement of its "
    "own, and a redistribution is the identity on values; so nothing is ever summed twice, or not at all. Uneven and "
    "empty pieces are normal everywhere: thirteen rows on four ranks are four, three, three and three.";

/* ---- models ------------------------------------------------------------------------------------------------------ */

dt_module *training_model(dt_mesh *mesh, const training *t)
{
    dt_module *model = t->gpt.vocab ? dt_nn_gpt(mesh, &t->gpt) : dt_nn_llama(mesh, &t->placing.llama);
    placing_apply(model, &t->placing);
    dt_module_materialize(model, SEED);
    return model;
}

trainer trainer_new(dt_context *ctx, const training *t)
{
    trainer new = { .of = t, .mesh = dt_mesh_create(ctx, t->placing.mesh) };
    new.text = dt_text_from_bytes(ctx, the_text, sizeof the_text - 1);
    new.model = training_model(new.mesh, t);
    new.optim = dt_optim_adamw(new.model, &(dt_adamw_params){ .weight_decay = 0.1, .no_decay = "**.*norm.weight" });
    return new;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static dt_tensor *without_spaces(dt_tensor *targets)
{
    return dt_masked_fill(targets, dt_eq(targets, dt_fill(targets, ' ')), -1);
}

static void batch_on(const trainer *t, const char *placements, dt_tensor **ids, dt_tensor **targets)
{
    const dt_spec *spec =
        dt_spec_create(t->mesh, DT_I64, DT_SHAPE(TRAINING_BATCH, TRAINING_LENGTH), placements);
    if (dt_text_batch(t->text, spec, 0, 1, SEED, t->step, ids, targets) == DT_OK) *targets = without_spaces(*targets);
}

void trainer_batch(const trainer *t, dt_tensor **ids, dt_tensor **targets)
{
    batch_on(t, t->of->placing.batch, ids, targets);
}

/* Loss of some sequences, of which backward has passed. */
static double learn(const trainer *t, dt_tensor *ids, dt_tensor *targets, dt_tensor *count)
{
    dt_tensor *loss = dt_token_loss(dt_module_call(t->model, ids), targets, count);
    dt_backward(loss, NULL);
    return dt_tensor_item(loss);
}

/* A part of a batch that is whole on every rank, placed as a batch is: nothing moves. */
static dt_tensor *part_of(const trainer *t, dt_tensor *whole, int part)
{
    int64_t n = TRAINING_BATCH / t->of->parts;
    return dt_redistribute(dt_slice(whole, 0, part * n, (part + 1) * n, 1), t->of->placing.batch);
}

static double learn_parts(const trainer *t)
{
    dt_tensor *ids = NULL, *targets = NULL;
    double loss = 0;
    batch_on(t, "", &ids, &targets);
    dt_tensor *count = dt_token_count(targets);
    for (int part = 0; part < t->of->parts; part++) {
        int scope = dt_scope_push(dt_module_context(t->model), part + 1 < t->of->parts ? DT_SCOPE_NO_REDUCE : 0);
        loss += learn(t, part_of(t, ids, part), part_of(t, targets, part), count);
        dt_scope_pop(dt_module_context(t->model), scope, NULL);
    }
    return loss;
}

static double learn_whole(const trainer *t)
{
    dt_tensor *ids = NULL, *targets = NULL;
    trainer_batch(t, &ids, &targets);
    return learn(t, ids, targets, NULL);
}

double trainer_step(trainer *t)
{
    dt_context *ctx = dt_module_context(t->model);
    int scope = dt_scope_push(ctx, 0);
    double loss = t->of->parts > 1 ? learn_parts(t) : learn_whole(t);
    dt_clip_grad_norm(t->model, t->of->unclipped ? INFINITY : 0.5);
    dt_optim_step(t->optim, dt_lr_cosine(t->step++, 5, TRAINING_STEPS, 1e-2, 1e-3));
    dt_module_zero_grad(t->model);
    dt_scope_pop(ctx, scope, NULL);
    return loss;
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

typedef struct drawing { const training *of; curve *to; } drawing;

static uint64_t checksum(dt_module *model)
{
    dt_tensor *params[MOST_PARAMS];
    uint64_t sum = 0;
    int n = dt_module_params(model, NULL, params, MOST_PARAMS);
    for (int i = 0; i < n && i < MOST_PARAMS; i++) sum = sum * 31 + dt_tensor_checksum(params[i]);
    return sum;
}

static dt_status draw(dt_context *ctx, void *arg)
{
    const drawing *d = arg;
    trainer t = trainer_new(ctx, d->of);
    curve mine = { .params = 0 };
    for (int i = 0; i < TRAINING_STEPS && dt_context_status(ctx) == DT_OK; i++) mine.loss[i] = trainer_step(&t);
    mine.params = checksum(t.model);
    if (dt_rank(ctx) == 0) *d->to = mine;
    return dt_context_status(ctx);
}

curve training_curve(const training *t)
{
    curve drawn = { .params = 0 };
    launch(t->placing.ranks, draw, &(drawing){ t, &drawn });
    return drawn;
}
