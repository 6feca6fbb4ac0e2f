/* SPDX-License-Identifier: Apache-2.0
 *
 * One Llama, every parallelism: tensor and sequence parallelism on mesh dim tp, fully sharded on fsdp, copies on dp.
 * The model is the same; the table below, two lines for groups and the batch's placements say all, and a mesh dim of
 * size 1 says nothing. So one program is a single rank, DP, FSDP, HSDP, ZeRO, TP, TP+SP and their mixes, as it is run:
 *
 * Run: ./08_two_dims --dt-ranks=8 --dt-mesh=fsdp=2,tp=4 --dt-small=0     two dims, the fewest bytes
 *      ./08_two_dims --dt-ranks=8 --dt-mesh=dp=2,fsdp=2,tp=2         three
 *      ./08_two_dims --dt-ranks=8 --dt-mesh=dp=2,fsdp=4              HSDP
 *      ./08_two_dims --dt-ranks=4 --dt-mesh=tp=4 --style=tp          without SP
 *      ./08_two_dims --dt-ranks=4 --dt-mesh=fsdp=4 --zero=1          whole weights, states in pieces
 *      ./08_two_dims                                                 one rank
 *
 * It prints where each parameter rests (not with --brief), what one step moved along each mesh dim, and losses: the
 * same for all of them. docs/parallelism.md goes through them. */
#include <string.h>

#include "show.h"

enum { BATCH = 8, LENGTH = 32, STEPS = 3 };

static const dt_llama_params llama = { .vocab = 128, .width = 64, .layers = 2, .heads = 8, .kv_heads = 2,
                                       .mlp_width = 160 };
static const char text[] = "Peter Piper picked a peck of pickled peppers. A peck of pickled peppers Peter Piper "
                           "picked. If Peter Piper picked a peck of pickled peppers, where is the peck he picked?\n";

/* ---- placements -------------------------------------------------------------------------------------------------- */

static const dt_style_row tp_sp[] = {                                  /* activations between are S(1), over s     */
    { "embed", &dt_style_vocab, NULL, "S(1)" },                        /* reduce-scatter                           */
    { "layers.*.*_norm", &dt_style_sequence, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },                      /* one all-gather for q, k and v            */
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, "S(1)" },           /* reduce-scatter                           */
    { "layers.*.mlp", &dt_style_io, "R", NULL },                       /* one all-gather for gate and up           */
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, "S(1)" },          /* reduce-scatter                           */
    { "norm", &dt_style_sequence, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },                         /* logits stay split over the vocabulary    */
};

static const dt_style_row tp[] = {                                     /* activations between are R                */
    { "embed", &dt_style_vocab, NULL, NULL },                          /* all-reduce                               */
    { "layers.*.attn", &dt_style_io, "R", NULL },
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, NULL },             /* all-reduce                               */
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, NULL },            /* all-reduce                               */
    { "head", &dt_style_colwise, NULL, NULL },
};

static dt_module *make_model(dt_mesh *mesh, bool sequence, int zero)
{
    const dt_fully_shard_params pieces = { .zero = zero };
    dt_module *model = dt_nn_llama(mesh, &llama);
    if (sequence) dt_parallelize(model, "tp", tp_sp, DT_COUNT(tp_sp));
    else dt_parallelize(model, "tp", tp, DT_COUNT(tp));
    dt_fully_shard(model, "layers.*", "fsdp", &pieces);
    dt_fully_shard(model, "", "fsdp", &pieces);
    dt_module_materialize(model, 1);
    return model;
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static void show_params(dt_module *model)
{
    dt_context *ctx = dt_module_context(model);
    dt_tensor *params[64];
    int n = dt_module_params(model, NULL, params, DT_COUNT(params));
    for (int i = 0; i < n && i < DT_COUNT(params); i++)
        if (!strstr(dt_param_path(params[i]), "layers.1"))             /* which is as layers.0                     */
            dt_print(ctx, "%-26s %s\n", dt_param_path(params[i]), dt_spec_text(dt_tensor_spec(params[i])));
}

/* What a step moved along each mesh dim, from *before on. */
static void show_dims(dt_mesh *mesh, const char *part, const dt_counters *before)
{
    char what[64];
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++) {
        const char *dim = dt_mesh_dim_name(mesh, d);
        if (dt_mesh_size(mesh, dim) == 1) continue;
        snprintf(what, sizeof what, "%s %-4s", part, dim);
        show_calls(mesh, dim, what, before[d]);
    }
}

static void look(dt_mesh *mesh, dt_counters *now)
{
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++) now[d] = dt_mesh_counters(mesh, dt_mesh_dim_name(mesh, d));
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static void train_step(dt_module *model, dt_optim *adamw, const dt_text *data, int64_t step)
{
    dt_mesh *mesh = dt_module_mesh(model);
    dt_context *ctx = dt_mesh_context(mesh);
    const dt_spec *spec = dt_spec_create(mesh, DT_I64, DT_SHAPE(BATCH, LENGTH), "dp:S(0),fsdp:S(0)");
    dt_tensor *ids = NULL, *targets = NULL;
    dt_counters before[DT_MAX_MESH_DIMS];
    int scope = dt_scope_push(ctx, 0);
    dt_text_batch(data, spec, 0, 1, 3, step, &ids, &targets);
    dt_module_zero_grad(model);
    look(mesh, before);
    dt_tensor *loss = dt_token_loss(dt_module_call(model, ids), targets, NULL);
    if (step == 1) show_dims(mesh, "  forward ", before);
    look(mesh, before);
    dt_backward(loss, NULL);
    if (step == 1) show_dims(mesh, "  backward", before);
    look(mesh, before);
    dt_optim_step(adamw, 3e-3);
    if (step == 1) show_dims(mesh, "  step    ", before);
    dt_print(ctx, "step %" PRId64 "  loss %.2f\n", step, dt_tensor_item(loss));
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    const char *style = dt_option_text(ctx, "style", "sp", "tp, or sp: with sequence parallelism");
    int zero = (int)dt_option_int(ctx, "zero", 3, "3: fully sharded; 2, 1: whole weights, on fsdp");
    bool brief = dt_option_flag(ctx, "brief", "nothing of parameters");
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp,fsdp,tp");
    dt_module *model = make_model(mesh, strcmp(style, "sp") == 0, zero);
    dt_optim *adamw = dt_optim_adamw(model, NULL);
    const dt_text *data = dt_text_from_bytes(ctx, text, sizeof text - 1);
    if (!brief) show_params(model);
    for (int64_t step = 0; step < STEPS && !dt_context_status(ctx); step++) train_step(model, adamw, data, step);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
