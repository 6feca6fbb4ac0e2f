/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of training costs: what it communicates, what a layer keeps for backward, and that it takes nothing from
 * the heap and no page. Collectives are those that are known of each kind of parallelism, no more and no larger. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "comm/comm.h"
#include "core/context.h"
#include "errors.h"
#include "heap.h"
#include "launch.h"
#include "models/training.h"

enum { LAYERS = 2, HEADS = 4, KV_HEADS = 2, HEAD = 8, WIDTH = HEADS * HEAD, MLP_WIDTH = 48 };

#define LLAMA(type) .llama = { .vocab = TRAINING_VOCAB, .width = WIDTH, .layers = LAYERS, .heads = HEADS, \
                               .kv_heads = KV_HEADS, .mlp_width = MLP_WIDTH, .dtype = type }
#define TP .rows = tp_rows, .row_count = TP_ROWS
#define SP .rows = sp_rows, .row_count = SP_ROWS

/* ---- collectives ------------------------------------------------------------------------------------------------- */

typedef enum phase { FORWARD, LOSS, BACKWARD, CLIP, STEP, PHASES } phase;
typedef struct collectives { int all_gathers, reduce_scatters, all_reduces; } collectives;

static const char *const phases[PHASES] = { "forward", "loss", "backward", "clip", "step" };

typedef struct counting {
    placing placing;
    const char *dim;
    collectives due[PHASES];
} counting;

/* Of L layers: forward, loss, backward, clip, step. Beside what layers do, the embedding's result is reduced and the
 * head's input is like a column-parallel layer's. */
#define TP_DUE { [FORWARD] = { 0, 0, 2 * LAYERS + 1 }, [LOSS] = { 0, 0, 3 }, [BACKWARD] = { 0, 0, 2 * LAYERS + 1 }, \
                 [CLIP] = { 0, 0, 1 } }                        /* of squares                                       */
/* Of backward: duals, and two inputs per layer and the head's again. Norm weights are summed when clipped. */
#define SP_DUE { [FORWARD] = { 2 * LAYERS + 1, 2 * LAYERS + 1, 0 }, [LOSS] = { 0, 0, 3 }, \
                 [BACKWARD] = { 2 * (2 * LAYERS + 1), 2 * LAYERS + 1, 0 }, [CLIP] = { 0, 0, 2 } }
/* Fewer heads of k and v than ranks: their weights are summed over the ranks that have copies, when clipped. */
#define TP_COPIES_DUE { [FORWARD] = { 0, 0, 2 * LAYERS + 1 }, [LOSS] = { 0, 0, 3 }, \
                        [BACKWARD] = { 0, 0, 2 * LAYERS + 1 }, [CLIP] = { 0, 0, 2 } }
#define SP_COPIES_DUE { [FORWARD] = { 2 * LAYERS + 1, 2 * LAYERS + 1, 0 }, [LOSS] = { 0, 0, 3 }, \
                        [BACKWARD] = { 2 * (2 * LAYERS + 1), 2 * LAYERS + 1, 0 }, [CLIP] = { 0, 0, 3 } }
/* Groups: each layer, and the rest. The loss counts targets. */
#define FSDP_DUE { [FORWARD] = { LAYERS + 1, 0, 0 }, [LOSS] = { 0, 0, 1 }, [BACKWARD] = { LAYERS + 1, LAYERS + 1, 0 }, \
                   [CLIP] = { 0, 0, 1 } }
/* One reduction of all gradients. */
#define DP_DUE { [LOSS] = { 0, 0, 1 }, [CLIP] = { 0, 0, 1 } }

static const counting countings[] = {
    { { "dp=2", "dp:S(0)", .ranks = 2, LLAMA(DT_F32) }, "dp", DP_DUE },
    { { "dp=3", "dp:S(0)", .ranks = 3, LLAMA(DT_F32) }, "dp", DP_DUE },
    { { "tp=2", "", TP, .ranks = 2, LLAMA(DT_F32) }, "tp", TP_DUE },
    { { "tp=4", "", TP, .ranks = 4, LLAMA(DT_F32) }, "tp", TP_COPIES_DUE },
    { { "tp=2", "", SP, .ranks = 2, LLAMA(DT_F32) }, "tp", SP_DUE },
    { { "tp=4", "", SP, .ranks = 4, LLAMA(DT_F32) }, "tp", SP_COPIES_DUE },
    { { "dp=2", "dp:S(0)", .sharded = "dp", .ranks = 2, LLAMA(DT_F32) }, "dp", FSDP_DUE },
    { { "dp=3", "dp:S(0)", .sharded = "dp", .ranks = 3, LLAMA(DT_F32) }, "dp", FSDP_DUE },
    { { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .keep_gathered = true }, .ranks = 2, LLAMA(DT_F32) }, "dp",
      { [FORWARD] = { LAYERS + 1, 0, 0 }, [LOSS] = { 0, 0, 1 }, [BACKWARD] = { 0, LAYERS + 1, 0 },
        [CLIP] = { 0, 0, 1 } } },
    { { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 1 }, .ranks = 2, LLAMA(DT_F32) }, "dp",
      { [LOSS] = { 0, 0, 1 }, [CLIP] = { 0, 1, 1 }, [STEP] = { 1, 0, 0 } } },
    { { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 2 }, .ranks = 2, LLAMA(DT_F32) }, "dp",
      { [LOSS] = { 0, 0, 1 }, [BACKWARD] = { 0, LAYERS + 1, 0 }, [CLIP] = { 0, 0, 1 }, [STEP] = { 1, 0, 0 } } },
    { { "rep=2,dp=2", "rep:S(0),dp:S(0)", .sharded = "dp", .ranks = 4, LLAMA(DT_F32) }, "dp", FSDP_DUE },
    { { "rep=2,dp=2", "rep:S(0),dp:S(0)", .sharded = "dp", .ranks = 4, LLAMA(DT_F32) }, "rep", DP_DUE },
    { { "dp=2,tp=2", "dp:S(0)", TP, .ranks = 4, LLAMA(DT_F32) }, "dp", DP_DUE },
    { { "dp=2,tp=2", "dp:S(0)", TP, .ranks = 4, LLAMA(DT_F32) }, "tp", TP_DUE },
    { { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .ranks = 4, LLAMA(DT_F32) }, "dp", FSDP_DUE },
    { { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .ranks = 4, LLAMA(DT_F32) }, "tp", SP_DUE },
    /* Weights are summed over dp in one call, norm weights over all ranks in another. */
    { { "dp=2,tp=2", "dp:S(0)", SP, .ranks = 4, LLAMA(DT_F32) }, "dp", { [LOSS] = { 0, 0, 1 }, [CLIP] = { 0, 0, 2 } } },
    { { "dp=2,tp=2", "dp:S(0)", SP, .ranks = 4, LLAMA(DT_F32) }, "tp", SP_DUE },
};

static int64_t all_calls(const dt_counters *c)
{
    int64_t n = 0;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) n += k == DT_COMM_LOCAL ? 0 : c->calls[k];
    return n;
}

static void expect_calls(const counting *c, phase at, const dt_counters *before, const dt_counters *now)
{
    const collectives *due = &c->due[at];
    int gathers = (int)(now->calls[DT_COMM_ALL_GATHER] - before->calls[DT_COMM_ALL_GATHER]);
    int scatters = (int)(now->calls[DT_COMM_REDUCE_SCATTER] - before->calls[DT_COMM_REDUCE_SCATTER]);
    int reduces = (int)(now->calls[DT_COMM_ALL_REDUCE] - before->calls[DT_COMM_ALL_REDUCE]);
    int others = (int)(all_calls(now) - all_calls(before)) - gathers - scatters - reduces;
    expect(gathers == due->all_gathers && scatters == due->reduce_scatters && reduces == due->all_reduces && !others,
           "%s%s, %s along %s: %d all-gathers, %d reduce-scatters, %d all-reduces, %d others; expected %d, %d, %d",
           c->placing.mesh, c->placing.sharded ? " sharded" : "", phases[at], c->dim, gathers, scatters, reduces,
           others, due->all_gathers, due->reduce_scatters, due->all_reduces);
}

typedef struct stepping { dt_tensor *ids, *targets, *logits, *loss; } stepping;

static void forward(trainer *t, stepping *s) { s->logits = dt_module_call(t->model, s->ids); }
static void loss(trainer *t, stepping *s)
{
    (void)t;
    s->loss = dt_token_loss(s->logits, s->targets, NULL);
}
static void backward(trainer *t, stepping *s)
{
    (void)t;
    dt_backward(s->loss, NULL);
}
static void clip(trainer *t, stepping *s)
{
    (void)s;
    dt_clip_grad_norm(t->model, 0.5);
}
static void step(trainer *t, stepping *s)
{
    (void)s;
    dt_optim_step(t->optim, 1e-3);
}

static void (*const run[PHASES])(trainer *t, stepping *s) = { forward, loss, backward, clip, step };

static dt_status count_rank(dt_context *ctx, void *arg)
{
    const counting *c = arg;
    training of = { .placing = c->placing };
    trainer t = trainer_new(ctx, &of);
    for (int i = 0; i < 2; i++) {
        stepping s = { NULL, NULL, NULL, NULL };
        int scope = dt_scope_push(ctx, 0);
        trainer_batch(&t, &s.ids, &s.targets);
        int64_t implied = dt_mesh_counters(t.mesh, NULL).implied;
        for (int at = 0; at < PHASES; at++) {
            dt_counters before = dt_mesh_counters(t.mesh, c->dim);
            run[at](&t, &s);
            dt_counters now = dt_mesh_counters(t.mesh, c->dim);
            expect_calls(c, (phase)at, &before, &now);
        }
        /* Nobody wrote the loss's statistics; all else somebody did. */
        implied = dt_mesh_counters(t.mesh, NULL).implied - implied;
        expect(implied == (c->placing.rows ? 3 : 0), "%s: %d implied", c->placing.mesh, (int)implied);
        dt_module_zero_grad(t.model);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

/* On ranks, and without: the same. */
static void test_collectives(void)
{
    for (int i = 0; i < DT_COUNT(countings); i++) {
        dt_context *ctx = dt_context_dry(countings[i].placing.ranks);
        count_rank(ctx, (void *)(uintptr_t)&countings[i]);
        expect_no_error(ctx, countings[i].placing.mesh);
        dt_context_destroy(&ctx);
        launch(countings[i].placing.ranks, count_rank, &countings[i]);
    }
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Of a ring, for messages of any size. */
static dt_context *without_small_messages(int ranks)
{
    char name[] = "test", option[] = "--dt-small=0", *args[] = { name, option, NULL }, **argv = args;
    int argc = 2;
    dt_context *ctx = dt_context_dry(ranks);
    dt_options_read(ctx, &argc, &argv);
    return ctx;
}

/* The loss over a split vocabulary moves numbers of rows: maxima as logits are, two sums as f64. Never the logits. */
static void expect_loss_bytes(int ranks, dt_dtype dtype)
{
    char mesh[16];
    dt_context *ctx = without_small_messages(ranks);
    snprintf(mesh, sizeof mesh, "tp=%d", ranks);
    training of = { .placing = { mesh, "", TP, .ranks = ranks, LLAMA(dtype) } };
    trainer t = trainer_new(ctx, &of);
    stepping s = { NULL, NULL, NULL, NULL };
    trainer_batch(&t, &s.ids, &s.targets);
    forward(&t, &s);
    dt_counters before = dt_mesh_counters(t.mesh, "tp");
    loss(&t, &s);
    dt_counters now = dt_mesh_counters(t.mesh, "tp");
    int64_t bytes = now.bytes[DT_COMM_ALL_REDUCE] - before.bytes[DT_COMM_ALL_REDUCE];
    int64_t row = (int64_t)dt_dtype_bytes(dtype) + 2 * (int64_t)sizeof(double);
    int64_t due = 2 * (ranks - 1) * TRAINING_BATCH * TRAINING_LENGTH * row / ranks;
    expect(bytes == due, "%s: the loss moves %lld bytes, expected %lld", mesh, (long long)bytes, (long long)due);
    expect_no_error(ctx, "the loss");
    dt_context_destroy(&ctx);
}

static void test_loss_bytes(void)
{
    expect_loss_bytes(2, DT_F32);
    expect_loss_bytes(4, DT_F32);
    expect_loss_bytes(8, DT_F64);
}

/* All gradients once, 2 (n-1)/n of their bytes; pieces (n-1)/n each way. */
static void expect_gradient_bytes(int ranks)
{
    char mesh[16];
    dt_context *ctx = without_small_messages(ranks);
    snprintf(mesh, sizeof mesh, "dp=%d", ranks);
    training of = { .placing = { mesh, "dp:S(0)", .ranks = ranks, LLAMA(DT_F32) } };
    trainer t = trainer_new(ctx, &of);
    stepping s = { NULL, NULL, NULL, NULL };
    trainer_batch(&t, &s.ids, &s.targets);
    for (int at = 0; at < CLIP; at++) run[at](&t, &s);
    dt_counters before = dt_mesh_counters(t.mesh, "dp");
    for (int at = CLIP; at < PHASES; at++) run[at](&t, &s);
    dt_counters now = dt_mesh_counters(t.mesh, "dp");
    int64_t layer = WIDTH * (2 * HEADS * HEAD + 2 * KV_HEADS * HEAD + 3 * MLP_WIDTH + 2);
    int64_t params = 2 * TRAINING_VOCAB * WIDTH + LAYERS * layer + WIDTH;
    int64_t bytes = now.bytes[DT_COMM_ALL_REDUCE] - before.bytes[DT_COMM_ALL_REDUCE];
    int64_t due = 2 * (ranks - 1) * params * (int64_t)sizeof(float) / ranks;
    expect(bytes == due, "%s: a step moves %lld bytes, expected %lld", mesh, (long long)bytes, (long long)due);
    expect_no_error(ctx, "a step");
    dt_context_destroy(&ctx);
}

static void test_gradient_bytes(void)
{
    expect_gradient_bytes(2);
    expect_gradient_bytes(4);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { B = 2, S = 16 };

static const placing keepings[] = {
    { "tp=1", "", .ranks = 1, LLAMA(DT_BF16) },
    { "tp=2", "", TP, .ranks = 2, LLAMA(DT_BF16) },
    { "tp=2", "", SP, .ranks = 2, LLAMA(DT_BF16) },
};

/* Bytes that a layer keeps on each of t ranks: 12sbh + 4sb n_kv d_h + 6sbF of bf16, of which 8sbh are whole without SP;
 * besides, what that does not name. */
static int64_t layer_bytes(int t, bool sequence)
{
    int64_t rows = B * S, whole = sequence ? t : 1;
    int64_t residual = 2 * rows * WIDTH;           /* one bf16 [b,s,h]                                             */
    int64_t bytes = 4 * residual / whole;          /* inputs and results of both norms                             */
    bytes += 2 * residual / t;                     /* queries, and what attention gives                            */
    bytes += 4 * rows * KV_HEADS * HEAD / t;       /* keys and values                                              */
    bytes += 6 * rows * MLP_WIDTH / t;             /* gate, up, and their product                                  */
    bytes += 4 * rows * HEADS / t;                 /* attention: a log-sum-exp in f32 of each row and head         */
    bytes += 2 * 4 * rows / whole;                 /* norms: an inverse deviation in f32 of each row               */
    return bytes;
}

/* Bytes now. What peers may still read is held for a while: at a barrier all have read what came before. */
static int64_t settled_memory(dt_mesh *mesh)
{
    dti_comm *comm = dti_comm_of(dt_mesh_context(mesh));
    dti_group *group = comm ? comm->ops->group(comm, (int[]){ 0, 1 }, dt_mesh_size(mesh, NULL)) : NULL;
    if (group) comm->ops->barrier(group, (dti_call){ 1, "memory is settled" });
    if (group) comm->ops->reclaim(comm);
    return dt_mesh_counters(mesh, NULL).memory;
}

/* Blocks one after the other: the input of the first was there before, the result of the last is the next one's. */
static dt_status keep_rank(dt_context *ctx, void *arg)
{
    const placing *p = arg;
    bool sequence = p->rows == sp_rows;
    training of = { .placing = *p };
    dt_mesh *mesh = dt_mesh_create(ctx, p->mesh);
    dt_module *layers = dt_module_find(training_model(mesh, &of), "layers");
    const dt_spec *spec = dt_spec_create(mesh, DT_BF16, DT_SHAPE(B, S, WIDTH), sequence ? "tp:S(1)" : "");
    for (int i = 0; i < 2; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *x = dt_require_grad(dt_randn(spec, 3));
        int64_t before = settled_memory(mesh);
        dt_tensor *y = dt_module_call(layers, x);
        int64_t bytes = settled_memory(mesh) - before, due = LAYERS * layer_bytes(p->ranks, sequence);
        expect(bytes == due, "%s: %d layers keep %lld bytes, expected %lld", p->mesh, LAYERS, (long long)bytes,
               (long long)due);
        dt_backward(y, dt_randn(dt_tensor_spec(y), 4));
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void test_memory(void)
{
    for (int i = 0; i < DT_COUNT(keepings); i++) launch(keepings[i].ranks, keep_rank, &keepings[i]);
}

/* ---- heap and pages ---------------------------------------------------------------------------------------------- */

enum { WARM = 20, TIMES = 20 };

static const training steadies[] = {
    { .placing = { "dp=1", "", .ranks = 1, LLAMA(DT_F64) } },
    { .placing = { "dp=1", "", .ranks = 1, LLAMA(DT_F32) } },
    { .placing = { "dp=1", "", .recompute = true, .ranks = 1, LLAMA(DT_F32) }, .parts = 4 },
    { .placing = { "dp=1", "", .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 1, LLAMA(DT_F32) } },
    { .placing = { "tp=2", "", SP, .ranks = 2, LLAMA(DT_F32) } },
    { .placing = { "dp=2", "dp:S(0)", .sharded = "dp", .ranks = 2, LLAMA(DT_F32) } },
};

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static dt_status steady_rank(dt_context *ctx, void *arg)
{
    const training *of = arg;
    trainer t = trainer_new(ctx, of);
    for (int i = 0; i < WARM; i++) trainer_step(&t);
    long calls = heap_calls(), pages = faults();
    size_t before = ctx->arena.total;
    for (int i = 0; i < TIMES; i++) trainer_step(&t);
    pages = faults() - pages;
    calls = heap_calls() - calls;
    const char *mesh = of->placing.mesh;
    expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    if (!heap_counts()) return dt_context_status(ctx); /* a sanitizer stands there, and objects rest */
    expect(calls == 0, "%s: %ld calls of the heap in %d steps", mesh, calls, TIMES);
    expect(ctx->arena.total == before, "%s: the context holds %zu bytes, %zu before", mesh, ctx->arena.total, before);
    expect(pages == 0, "%s: %ld page faults in %d steps", mesh, pages, TIMES);
    return dt_context_status(ctx);
}

static void test_steady(void)
{
    for (int i = 0; i < DT_COUNT(steadies); i++) launch(steadies[i].placing.ranks, steady_rank, &steadies[i]);
}

static const test_row rows[] = {
    { "collectives", test_collectives }, { "loss bytes", test_loss_bytes }, { "gradient bytes", test_gradient_bytes },
    { "memory", test_memory },           { "steady", test_steady },
};

const suite the_suite = { "training_costs", rows, DT_COUNT(rows) };
