/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint knows no mesh: what was saved by one is loaded by another, and training goes on as if nothing had been.
 * A Llama is trained on the first mesh; in the middle it is saved, each element once, by a rank that has it. Then the
 * same model is made on the second mesh, which places everything otherwise, and loads: each rank reads what it needs.
 * Weights, the optimiser's states and the step come along, so the losses of the second half are the first mesh's.
 *
 * Run: ./09_checkpoint --dt-ranks=4
 *      ./09_checkpoint --dt-ranks=4 --from=fsdp=2,tp=2 --to=fsdp=1,tp=4
 *      ./09_checkpoint --dt-ranks=6 --from=fsdp=6,tp=1 --to=fsdp=2,tp=3 --steps=20 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "show.h"

enum { BATCH = 6, LENGTH = 32, PATH = 512 };

static const dt_llama_params llama = { .vocab = 128, .width = 48, .layers = 2, .heads = 6, .mlp_width = 128 };
static const char text[] = "How much wood would a woodchuck chuck if a woodchuck could chuck wood? He would chuck, he "
                           "would, as much as he could, and chuck as much wood as a woodchuck would.\n";

/* ---- a model on a mesh ------------------------------------------------------------------------------------------- */

static const dt_style_row tp[] = {
    { "embed", &dt_style_vocab, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, NULL },
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },
};

/* Placed, without values. */
static dt_module *make_model(dt_mesh *mesh)
{
    dt_module *model = dt_nn_llama(mesh, &llama);
    dt_parallelize(model, "tp", tp, DT_COUNT(tp));
    dt_fully_shard(model, "layers.*", "fsdp", NULL);
    dt_fully_shard(model, "", "fsdp", NULL);
    return model;
}

static void show_one(dt_module *model, const char *path)
{
    dt_tensor *x = NULL;
    dt_module_params(model, path, &x, 1);
    dt_print(dt_module_context(model), "  %-24s %s\n", path, dt_spec_text(dt_tensor_spec(x)));
}

/* Steps first .. last - 1, with their losses. */
static void train(dt_module *model, dt_optim *adamw, const dt_text *data, int64_t first, int64_t last)
{
    dt_mesh *mesh = dt_module_mesh(model);
    dt_context *ctx = dt_mesh_context(mesh);
    const dt_spec *spec = dt_spec_create(mesh, DT_I64, DT_SHAPE(BATCH, LENGTH), "fsdp:S(0)");
    dt_print(ctx, "  steps %2" PRId64 " to %2" PRId64 ", loss", first, last - 1);
    for (int64_t step = first; step < last && !dt_context_status(ctx); step++) {
        dt_tensor *ids = NULL, *targets = NULL;
        int scope = dt_scope_push(ctx, 0);
        dt_text_batch(data, spec, 0, 1, 3, step, &ids, &targets);
        dt_tensor *loss = dt_token_loss(dt_module_call(model, ids), targets, NULL);
        dt_module_zero_grad(model);
        dt_backward(loss, NULL);
        dt_optim_step(adamw, 3e-3);
        dt_print(ctx, " %.2f", dt_tensor_item(loss));
        dt_scope_pop(ctx, scope, NULL);
    }
    dt_print(ctx, "\n");
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

/* A new folder, which rank 0 makes and names to all. */
static dt_status make_folder(dt_mesh *mesh, char path[PATH])
{
    const char *temporary = getenv("TMPDIR");
    char name[PATH] = "";
    if (dt_rank(dt_mesh_context(mesh)) == 0) {
        snprintf(name, PATH, "%s/checkpoint-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(name))
            return dt_context_fail(dt_mesh_context(mesh), DT_ERR_IO, "mkdtemp(\"%s\"): error %d", name, errno);
    }
    dt_tensor *bytes = dt_from_host(dt_spec_create(mesh, DT_U8, DT_SHAPE(PATH), NULL), 0, name, PATH);
    return dt_tensor_to_host(bytes, -1, path, PATH);
}

/* The folder goes with what is in it. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    char file[2 * PATH];
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);                                                  /* "." and ".." are refused                 */
    }
    if (folder) closedir(folder);
    rmdir(path);
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    int64_t steps = dt_option_int(ctx, "steps", 12, "training steps, half of them before the checkpoint"), step = -1;
    const char *from = dt_option_text(ctx, "from", "fsdp=4,tp=1", "the mesh that saves");
    const char *to = dt_option_text(ctx, "to", "fsdp=2,tp=2", "the mesh that loads");
    char path[PATH] = "";
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    const dt_text *data = dt_text_from_bytes(ctx, text, sizeof text - 1);
    dt_mesh *first = dt_mesh_create(ctx, from), *second = dt_mesh_create(ctx, to);
    if (!first || !second || make_folder(first, path)) return dt_context_status(ctx);

    dt_module *model = make_model(first);
    dt_module_materialize(model, 1);
    dt_optim *adamw = dt_optim_adamw(model, NULL);
    dt_print(ctx, "%s\n", dt_mesh_text(first));
    show_one(model, "layers.0.attn.wq.weight");
    train(model, adamw, data, 0, steps / 2);
    dt_checkpoint_save(model, adamw, steps / 2, path);
    train(model, adamw, data, steps / 2, steps);

    dt_module *other = make_model(second);
    dt_module_materialize(other, 2);                                   /* values that the checkpoint's replace     */
    dt_optim *other_adamw = dt_optim_adamw(other, NULL);
    dt_checkpoint_load(other, other_adamw, &step, path);
    dt_print(ctx, "%s, from the checkpoint of step %" PRId64 "\n", dt_mesh_text(second), step);
    show_one(other, "layers.0.attn.wq.weight");
    train(other, other_adamw, data, step, steps);
    if (dt_rank(ctx) == 0) remove_folder(path);                        /* all have loaded, for all have trained    */
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
