/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a Llama of bytes on text, on any mesh. The model comes from the library, placements from place.c; nothing else
 * here knows how many ranks there are.
 *
 * Run: ./llama                                                            one rank
 *      ./llama --dt-ranks=8 --dt-mesh=dp=2,tp=4 --style=sp+fsdp           the same numbers on eight
 *      ./llama --checkpoint=state --resume --dt-ranks=4 --style=fsdp      goes on, on another mesh
 *      ./llama --text=/usr/include --size=10m --dtype=bf16 --help */
#include <math.h>
#include <string.h>

#include "generate.h"
#include "place.h"
#include "report.h"

/* ---- what can be asked for --------------------------------------------------------------------------------------- */

typedef struct size { const char *name; dt_llama_params model; int64_t batch, length; double lr; } size;

static const size sizes[] = {
    { "tiny", { .vocab = 256, .width = 64, .layers = 2, .heads = 4, .kv_heads = 2, .mlp_width = 176 }, 8, 64, 4e-3 },
    { "small", { .vocab = 256, .width = 128, .layers = 4, .heads = 8, .kv_heads = 4, .mlp_width = 344 }, 8, 128, 3e-3 },
    { "10m", { .vocab = 256, .width = 320, .layers = 8, .heads = 8, .kv_heads = 4, .mlp_width = 864 }, 8, 256, 1e-3 },
    { "25m", { .vocab = 256, .width = 512, .layers = 8, .heads = 8, .kv_heads = 4, .mlp_width = 1376 }, 8, 256, 1e-3 },
};

typedef struct options {
    const size *size;
    placement placement;
    dt_dtype compute;
    const char *text, *checkpoint, *csv, *svg, *prompt;
    int64_t steps, batch, length, seed, save_every, micro_batches, generate;
    double lr, temperature;
    bool resume;
} options;

static const size *find_size(dt_context *ctx, const char *name)
{
    for (int i = 0; i < DT_COUNT(sizes); i++)
        if (strcmp(sizes[i].name, name) == 0) return &sizes[i];
    dt_context_fail(ctx, DT_ERR_ARG, "--size=%s: expected tiny, small, 10m or 25m", name);
    return NULL;
}

static bool read_dtype(dt_context *ctx, const char *name, dt_dtype *compute)
{
    *compute = strcmp(name, "bf16") == 0 ? DT_BF16 : DT_DTYPE_DEFAULT;
    if (*compute || strcmp(name, "f32") == 0) return true;
    dt_context_fail(ctx, DT_ERR_ARG, "--dtype=%s: expected f32 or bf16", name);
    return false;
}

static bool check(dt_context *ctx, const options *o)
{
    bool sizes_fit = o->steps >= 0 && o->batch > 0 && o->length > 1;
    if (sizes_fit && o->micro_batches > 0 && o->save_every >= 0 && o->lr > 0) return true;
    dt_context_fail(ctx, DT_ERR_ARG, "--steps, --batch, --length, --micro-batches, --save-every or --lr: out of range");
    return false;
}

static bool read_options(dt_context *ctx, options *o)
{
    const char *name = dt_option_text(ctx, "size", "small", "tiny, small, 10m or 25m");
    const char *style = dt_option_text(ctx, "style", "dp", "dp, tp, sp, zero1, zero2, fsdp, hsdp, joined by +");
    const char *dtype = dt_option_text(ctx, "dtype", "f32", "what is computed in: f32 or bf16; stored is f32");
    o->text = dt_option_text(ctx, "text", "/usr/share/common-licenses", "a file or a folder to learn from");
    o->steps = dt_option_int(ctx, "steps", 200, "training steps, of all runs that resume");
    o->batch = dt_option_int(ctx, "batch", 0, "sequences per step; 0: by size");
    o->length = dt_option_int(ctx, "length", 0, "bytes of a sequence; 0: by size");
    o->micro_batches = dt_option_int(ctx, "micro-batches", 1, "parts of a batch whose gradients are added");
    o->lr = dt_option_float(ctx, "lr", 0, "peak learning rate; 0: by size");
    o->seed = dt_option_int(ctx, "seed", 1, "of weights and batches");
    o->checkpoint = dt_option_text(ctx, "checkpoint", "", "folder to save to; none: not at all");
    o->save_every = dt_option_int(ctx, "save-every", 100, "steps between checkpoints");
    o->resume = dt_option_flag(ctx, "resume", "go on from the checkpoint, if there is one");
    o->csv = dt_option_text(ctx, "csv", "", "file for the losses as CSV");
    o->svg = dt_option_text(ctx, "svg", "", "file for them as a picture");
    o->generate = dt_option_int(ctx, "generate", 200, "bytes to write in the end");
    o->prompt = dt_option_text(ctx, "prompt", "The license", "what they go on from");
    o->temperature = dt_option_float(ctx, "temperature", 0.6, "0: always the likeliest byte");
    if (!dt_options_done(ctx) || !(o->size = find_size(ctx, name))) return false;
    if (!o->batch) o->batch = o->size->batch;
    if (!o->length) o->length = o->size->length;
    if (o->lr == 0) o->lr = o->size->lr;
    return placement_read(ctx, style, &o->placement) && read_dtype(ctx, dtype, &o->compute) && check(ctx, o);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef struct training {
    const options *o;
    dt_context *ctx;
    dt_mesh *mesh;
    dt_module *model;
    dt_optim *adamw;
    dt_text *text;
    const dt_spec *batch;          /* of one micro-batch                                                           */
} training;

enum { HELD_OUT = 1000000 };       /* steps from here on are batches to judge by                                   */

static dt_tensor *loss_of(const training *t, double first, double last, int64_t step)
{
    dt_tensor *ids, *targets;
    if (dt_text_batch(t->text, t->batch, first, last, (uint64_t)t->o->seed, step, &ids, &targets)) return NULL;
    return dt_token_loss(dt_module_call(t->model, ids), targets, NULL);
}

/* Gradients of the whole batch: those of all micro-batches but the last wait to be reduced. */
static double accumulate(const training *t, int64_t step)
{
    double loss = 0;
    int64_t n = t->o->micro_batches;
    dt_module_zero_grad(t->model);
    for (int64_t m = 0; m < n; m++) {
        int scope = dt_scope_push(t->ctx, m < n - 1 ? DT_SCOPE_NO_REDUCE : 0);
        dt_context_step(t->ctx, step, (int)m);
        dt_tensor *part = dt_mul_scalar(loss_of(t, 0, 0.9, step * n + m), 1 / (double)n);
        dt_backward(part, NULL);
        loss += dt_tensor_item(part);
        dt_scope_pop(t->ctx, scope, NULL);
    }
    return loss;
}

static void train_step(const training *t, int64_t step, report *r)
{
    int scope = dt_scope_push(t->ctx, 0);
    double lr = dt_lr_cosine(step, t->o->steps / 20, t->o->steps, t->o->lr, t->o->lr / 10);
    double loss = accumulate(t, step);
    dt_tensor *norm = dt_clip_grad_norm(t->model, 1.0);
    dt_optim_step(t->adamw, lr);
    report_step(r, step, loss, dt_tensor_item(norm), lr);
    dt_scope_pop(t->ctx, scope, NULL);
}

static void save(const training *t, int64_t step)
{
    const options *o = t->o;
    bool due = step == o->steps || (o->save_every && step % o->save_every == 0);
    if (*o->checkpoint && due) dt_checkpoint_save(t->model, t->adamw, step, o->checkpoint);
}

static void judge(const training *t)
{
    int scope = dt_scope_push(t->ctx, DT_SCOPE_NO_GRAD);
    double loss = 0;
    enum { BATCHES = 4 };
    dt_module_train(t->model, false);
    for (int i = 0; i < BATCHES; i++) loss += dt_tensor_item(loss_of(t, 0.9, 1, HELD_OUT + i)) / BATCHES;
    dt_module_train(t->model, true);
    dt_print(t->ctx, "\nloss on text it has not seen: %.4f, %.3f bits per byte\n", loss, loss / log(2));
    dt_scope_pop(t->ctx, scope, NULL);
}

static bool begin(training *t, dt_context *ctx, const options *o, int64_t *step)
{
    *t = (training){ .o = o, .ctx = ctx };
    *step = 0;
    t->mesh = dt_mesh_create(ctx, placement_mesh(&o->placement));
    t->model = dt_nn_llama(t->mesh, &o->size->model);
    if (!t->model || placement_apply(&o->placement, t->model, o->compute)) return false;
    dt_module_materialize(t->model, (uint64_t)o->seed);
    t->adamw = dt_optim_adamw(t->model, &(dt_adamw_params){ .beta2 = 0.95, .weight_decay = 0.1,
                                                            .no_decay = "**.*norm.weight" });
    t->text = dt_text_open(ctx, o->text);
    t->batch = dt_spec_create(t->mesh, DT_I32, DT_SHAPE(o->batch, o->length), placement_batch(&o->placement));
    if (o->resume && *o->checkpoint && dt_checkpoint_exists(ctx, o->checkpoint))
        dt_checkpoint_load(t->model, t->adamw, step, o->checkpoint);
    return dt_context_status(ctx) == DT_OK;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    options o;
    training t;
    report r;
    int64_t step;
    (void)arg;
    if (!read_options(ctx, &o) || !begin(&t, ctx, &o, &step)) return dt_context_status(ctx);
    dt_print(ctx, "%lld bytes of text from %s\n", (long long)dt_text_bytes(t.text), o.text);
    report_model(t.model);
    if (step) dt_print(ctx, "going on from step %lld of %s\n", (long long)step, o.checkpoint);
    if (!report_begin(&r, t.mesh, step, o.steps, o.batch * o.length * o.micro_batches)) return dt_context_status(ctx);
    while (step < o.steps && !dt_context_status(ctx)) {
        train_step(&t, step++, &r);
        save(&t, step);
    }
    report_collectives(&r);
    report_files(&r, o.csv, o.svg);
    report_end(&r);
    judge(&t);
    if (o.generate > 0) generate(t.model, o.prompt, (int)o.generate, (int)o.length, o.temperature, (uint64_t)o.seed);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
