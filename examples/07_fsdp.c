/* SPDX-License-Identifier: Apache-2.0
 *
 * Fully sharded data parallelism, and what stands between it and plain data parallelism. Every rank has a part of the
 * batch; what differs is where weights, gradients and the optimiser's states rest:
 *
 *   whole           all on every rank: gradients are P after backward, and summed once per step
 *   zero 1          states in pieces: gradients are reduced to pieces by the step, new weights gathered
 *   zero 2          gradients in pieces, too: reduced by backward, group by group
 *   fully sharded   weights in pieces, too: gathered in one call per group when its module is called and when backward
 *                   reaches it, gradients reduced to pieces in one
 *
 * Groups are the layers, and the root with what they leave. None of it changes a loss, but for bf16: then weights are
 * gathered, used and their gradients sent in two bytes, stored and stepped in four. The all_reduce of forward is the
 * loss's. Backward gathers what it needs: not the embedding's table.
 *
 * Run: ./07_fsdp --dt-ranks=4 --dt-small=0
 *      ./07_fsdp --dt-ranks=3             pieces are uneven */
#include "show.h"

enum { BATCH = 8, LENGTH = 32, STEPS = 5 };

static const dt_llama_params llama = { .vocab = 128, .width = 64, .layers = 3, .heads = 4, .mlp_width = 160 };
static const char text[] = "She sells sea shells by the sea shore; the shells she sells are sea shells, I am sure. "
                           "So if she sells sea shells on the sea shore, then I am sure she sells sea shore shells.\n";

typedef struct setting {
    const char *name;
    bool in_groups;
    dt_fully_shard_params params;
} setting;

static const setting settings[] = {
    { "whole", false, { 0 } },
    { "zero 1", true, { .zero = 1 } },
    { "zero 2", true, { .zero = 2 } },
    { "fully sharded", true, { 0 } },
    { "fully sharded, gathered until backward", true, { .keep_gathered = true } },
    { "fully sharded, computed in bf16", true, { .compute = DT_BF16 } },
};

static dt_module *make_model(dt_mesh *mesh, const setting *s)
{
    dt_module *model = dt_nn_llama(mesh, &llama);
    if (s->in_groups) {
        dt_fully_shard(model, "layers.*", "dp", &s->params);
        dt_fully_shard(model, "", "dp", &s->params);
    }
    dt_module_materialize(model, 1);
    return model;
}

/* One step; what its parts moved is printed if it is shown. Returns the loss. */
static double train_step(dt_module *model, dt_optim *adamw, const dt_text *data, int64_t step, bool shown)
{
    dt_mesh *mesh = dt_module_mesh(model);
    const dt_spec *spec = dt_spec_create(mesh, DT_I64, DT_SHAPE(BATCH, LENGTH), "dp:S(0)");
    dt_tensor *ids = NULL, *targets = NULL;
    int scope = dt_scope_push(dt_mesh_context(mesh), 0);
    dt_text_batch(data, spec, 0, 1, 3, step, &ids, &targets);
    dt_module_zero_grad(model);
    dt_counters before = dt_mesh_counters(mesh, "dp");
    dt_tensor *loss = dt_token_loss(dt_module_call(model, ids), targets, NULL);
    if (shown) show_calls(mesh, "dp", "  forward ", before);
    before = dt_mesh_counters(mesh, "dp");
    dt_backward(loss, NULL);
    if (shown) show_calls(mesh, "dp", "  backward", before);
    before = dt_mesh_counters(mesh, "dp");
    dt_optim_step(adamw, 3e-3);
    if (shown) show_calls(mesh, "dp", "  step    ", before);
    double value = dt_tensor_item(loss);
    dt_scope_pop(dt_mesh_context(mesh), scope, NULL);
    return value;
}

static void run(dt_mesh *mesh, const dt_text *data, const setting *s)
{
    dt_context *ctx = dt_mesh_context(mesh);
    double losses[STEPS] = { 0 };
    int scope = dt_scope_push(ctx, 0);
    int64_t begin = dt_mesh_counters(mesh, NULL).memory;
    dt_module *model = make_model(mesh, s);
    int64_t weights = dt_mesh_counters(mesh, NULL).memory - begin;
    dt_optim *adamw = dt_optim_adamw(model, NULL);
    int64_t states = dt_mesh_counters(mesh, NULL).memory - begin - weights;

    dt_print(ctx, "%s: weights %" PRId64 " B, states %" PRId64 " B on a rank\n", s->name, weights, states);
    for (int i = 0; i < STEPS && !dt_context_status(ctx); i++)
        losses[i] = train_step(model, adamw, data, i, i == 1);
    dt_print(ctx, "  loss    ");
    for (int i = 0; i < STEPS; i++) dt_print(ctx, " %.1f", losses[i]);
    dt_print(ctx, "\n\n");
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp");
    const dt_text *data = dt_text_from_bytes(ctx, text, sizeof text - 1);
    for (int i = 0; i < DT_COUNT(settings) && !dt_context_status(ctx); i++) run(mesh, data, &settings[i]);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
