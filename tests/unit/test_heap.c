/* SPDX-License-Identifier: Apache-2.0
 *
 * What is called again takes nothing from the heap, and its context does not grow: calls of ops that are remembered,
 * the tape and backward, redistributions, steps of an optimiser. A handle that has ended is poisoned. */
#include <sys/resource.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "core/poison.h"
#include "heap.h"
#include "launch.h"
#include "nn/module.h"

enum { WARM = 100, TIMES = 100 };      /* warm: longer than objects rest where they are poisoned                    */

typedef struct round {
    const char *name, *mesh, *x, *w;
    int ranks;                         /* 0: a dry context                                                         */
    void (*fn)(dt_context *ctx, dt_tensor *x, dt_tensor *w);
    dt_module *(*make)(dt_mesh *mesh); /* of whose parameters w is one, and all lie so; NULL: of none               */
} round;

/* ---- what is called ---------------------------------------------------------------------------------------------- */

static void forward(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_gelu(dt_mul_scalar(dt_add(x, w), 2));
    dt_scope_pop(ctx, scope, NULL);
}

static void product(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_matmul(x, w);
    dt_scope_pop(ctx, scope, NULL);
}

static void both_ways(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_tensor *y = dt_gelu(dt_mul(dt_add(x, w), w));
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
}

static dt_tensor *halved(dt_tensor *grad, void *arg)
{
    (void)arg;
    return dt_mul_scalar(grad, 0.5);
}

static void hooked(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_tensor *y = dt_mul(x, w);
    dt_grad_hook(y, halved, NULL);
    dt_backward(y, x);
}

static dt_tensor *squared(dt_tensor *const *in, void *arg)
{
    (void)arg;
    return dt_mul(in[0], in[0]);
}

static void recomputed(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_backward(dt_recompute(squared, NULL, (dt_tensor *[]){ w }, 1), x);
}

/* Placed by the caller, and by an op that must move one of its operands. */
static void moved(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_tensor *whole = dt_redistribute(w, "tp:R");
    dt_backward(dt_redistribute(dt_add(dt_mul(x, whole), w), "tp:S(1)"), x);
}

static void started(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    (void)w;
    dt_work_wait(dt_redistribute_start(x, "tp:R"));
}

static void reduced(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_backward(dt_redistribute(dt_sum(dt_mul(x, w), DT_ALL, false), "tp:R"), NULL);
}

/* Made of other ops, as the dim is split. */
static void decomposed(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_backward(dt_softmax(dt_mul(x, w), 1), x);
}

/* Pulled, as the dim is split, both ways; copied where it is not. */
static void along_a_dim(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    (void)ctx;
    dt_tensor *y = dt_roll(dt_cat((dt_tensor *[]){ x, dt_flip(w, 0) }, 2, 0), 0, 3);
    dt_backward(dt_slice(y, 0, 2, 15, 2), dt_select(dt_stack((dt_tensor *[]){ dt_slice(x, 0, 0, 7, 1) }, 1, 0), 0, 0));
}

static void held(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    dt_tensor *slot = NULL;
    (void)ctx;
    dt_tensor_hold(&slot, dt_add(x, w));
    dt_tensor_hold(&slot, dt_mul(slot, w));
    dt_tensor_hold(&slot, NULL);
}

/* In a list, and from there a number. */
static void written(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *list[] = { x, dt_copy(x) };
    dt_axpby_into_list(list, (dt_tensor *[]){ w, w }, 2, 0.5, 0.25);
    dt_copy_into_list(list, (dt_tensor *[]){ w, w }, 2);
    dt_mul_into_list(list, 2, dt_norm_list(list, 2));
    dt_scope_pop(ctx, scope, NULL);
}

static void moved_together(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    dt_tensor *y[2];
    dt_work *work[2];
    (void)ctx;
    dt_redistribute_list((dt_tensor *[]){ x, w }, 2, (const char *[]){ "tp:R", "tp:R" }, y);
    dt_redistribute_start_list((dt_tensor *[]){ x, x }, 2, (const char *[]){ "tp:R", "tp:R" }, work);
    for (int i = 0; i < 2; i++) dt_work_wait(work[i]);
}

/* A step of a model but for its optimiser: w says which. */
static void model_step(dt_context *ctx, dt_tensor *x, dt_tensor *w)
{
    dt_module *model = dti_param_of(w)->module;
    while (model->parent) model = model->parent;
    dt_context_step(ctx, ctx->step + 1, 0);
    dt_module_zero_grad(model);
    dt_tensor *logits = dt_module_call(model, x);
    dt_backward(dt_mean(dt_mul(logits, logits), DT_ALL, false), NULL);
}

static dt_module *llama(dt_mesh *mesh)
{
    return dt_nn_llama(mesh, &(dt_llama_params){ .vocab = 17, .width = 12, .layers = 2, .heads = 3, .mlp_width = 13 });
}

static dt_module *gpt(dt_mesh *mesh)
{
    dt_module *m = dt_nn_gpt(mesh, &(dt_gpt_params){ .vocab = 17, .width = 12, .layers = 2, .heads = 3, .positions = 6,
                                                     .dropout = 0.1, .tied = true });
    dt_module_recompute(m, "layers.*");
    return m;
}

static const round rounds[] = {
    { "without kernels", "dp=2,tp=4", "f32[64,32]@dp:S(0)", "f32[64,32]@dp:S(0)", 0, forward, NULL },
    { "a product without kernel", "dp=2,tp=4", "f32[64,32]@dp:S(0)", "f32[32,64]@tp:S(1)", 0, product, NULL },
    { "a product that moves, dry", "dp=2,tp=4", "f32[64,32]@dp:S(0)", "f32[32,64]@dp:S(0)", 0, product, NULL },
    { "decomposed, dry", "dp=2,tp=4", "f32[64,32]@tp:S(1)", "f32[64,32]@tp:S(1)", 0, decomposed, NULL },
    { "backward without kernels", "dp=2,tp=4", "f32[64,32]@dp:S(0)", "f32[64,32]@dp:S(0)", 0, both_ways, NULL },
    { "forward", "tp=1", "f32[64,33]", "f32[64,33]", 1, forward, NULL },
    { "forward and backward", "tp=1", "f32[64,33]", "f32[64,33]", 1, both_ways, NULL },
    { "hooks", "tp=1", "f32[64,33]", "f32[64,33]", 1, hooked, NULL },
    { "recomputed", "tp=1", "f32[64,33]", "f32[64,33]", 1, recomputed, NULL },
    { "handles that are held", "tp=1", "f32[64,33]", "f32[64,33]", 1, held, NULL },
    { "on two ranks", "tp=2", "f32[13,33]@tp:S(0)", "f32[13,33]@tp:S(0)", 2, both_ways, NULL },
    { "along a dim", "tp=2", "f32[13,33]@tp:S(0)", "f32[13,33]@tp:S(0)", 2, along_a_dim, NULL },
    { "along a dim that is whole", "tp=1", "f32[13,33]", "f32[13,33]", 1, along_a_dim, NULL },
    { "along a dim, dry", "dp=2,tp=4", "f32[13,33]@dp:S(0)", "f32[13,33]@dp:S(0)", 0, along_a_dim, NULL },
    { "redistributed", "tp=2", "f32[13,33]@tp:S(1)", "f32[13,33]@tp:S(0)", 2, moved, NULL },
    { "started and waited for", "tp=2", "f32[13,33]@tp:S(1)", "f32[13,33]@tp:S(0)", 2, started, NULL },
    { "written in place", "tp=1", "f32[64,33]", "f32[64,33]", 1, written, NULL },
    { "written in place, dry", "dp=2,tp=4", "f32[64,32]@dp:S(0)", "f32[64,32]@tp:S(0)", 0, written, NULL },
    { "written on two ranks", "tp=2", "f32[13,33]@tp:S(1)", "f32[13,33]@tp:S(0)", 2, written, NULL },
    { "moved together", "tp=2", "f32[13,33]@tp:S(1)", "f32[13,33]@tp:S(0)", 2, moved_together, NULL },
    { "llama, dry", "dp=2,tp=4", "i64[4,6]@dp:S(0)", "tp:S(0)", 0, model_step, llama },
    { "llama", "tp=1", "i64[4,6]", "", 1, model_step, llama },
    { "llama on two ranks", "tp=2", "i64[4,6]@tp:S(0)", "tp:S(0)", 2, model_step, llama },
    { "gpt, recomputed, on two ranks", "tp=2", "i64[4,6]@tp:S(1)", "tp:S(0)", 2, model_step, gpt },
    { "reduced", "tp=2", "f32[13,33]@tp:S(1)", "f32[13,33]@tp:S(1)", 2, reduced, NULL },
};

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void in_scope(const round *r, dt_context *ctx, dt_tensor *x, dt_tensor *w, int times)
{
    for (int i = 0; i < times; i++) {
        int scope = dt_scope_push(ctx, 0);
        r->fn(ctx, x, w);
        dt_scope_pop(ctx, scope, NULL);
    }
}

/* A leaf; of a model one of its parameters, all of which are placed as said. */
static dt_tensor *leaf_of(const round *r, dt_mesh *mesh)
{
    dt_tensor *params[64];
    if (!r->make) return dt_require_grad(dt_rand(dt_spec_parse(mesh, r->w), 2));
    dt_module *model = r->make(mesh);
    int n = dt_module_params(model, NULL, params, DT_COUNT(params));
    for (int i = 0; i < n; i++)
        dti_param_store(dti_param_of(params[i]), dt_spec_replace(dt_tensor_spec(params[i]), r->w));
    dt_module_materialize(model, 1);
    return params[0];
}

static dt_tensor *input_of(const round *r, dt_mesh *mesh)
{
    const dt_spec *spec = dt_spec_parse(mesh, r->x);
    return dt_spec_dtype(spec) == DT_I64 ? dt_full(spec, 3) : dt_rand(spec, 1);
}

static dt_status count(dt_context *ctx, void *arg)
{
    const round *r = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, r->mesh);
    dt_tensor *x = input_of(r, mesh), *w = leaf_of(r, mesh);
    in_scope(r, ctx, x, w, WARM);
    long calls = heap_calls();
    size_t before = ctx->arena.total;
    in_scope(r, ctx, x, w, TIMES);
    calls = heap_calls() - calls;
    expect(dt_context_status(ctx) == DT_OK, "%s: %s", r->name, dt_context_error(ctx));
    expect(calls == 0, "%s: %ld calls of the heap in %d rounds", r->name, calls, TIMES);
    expect(ctx->arena.total == before, "%s: the context holds %zu bytes, %zu before", r->name, ctx->arena.total,
           before);
    return dt_context_status(ctx);
}

static void count_dry(const round *r)
{
    dt_context *ctx = dt_context_dry(8);
    count(ctx, (void *)(uintptr_t)r);
    dt_context_destroy(&ctx);
}

static void the_heap_is_counted(void)
{
    long before = heap_calls();
    dt_context *ctx = dt_context_dry(1);
    dt_context_destroy(&ctx);
    expect(!heap_counts() || heap_calls() > before + 1, "a context was made without a call of the heap");
}

static void what_is_called_again_takes_nothing_from_the_heap(void)
{
    for (int i = 0; i < DT_COUNT(rounds); i++) {
        char error[512] = "";
        if (rounds[i].ranks == 0) count_dry(&rounds[i]);
        else if (dt_launch_threads(rounds[i].ranks, count, (void *)(uintptr_t)&rounds[i], error, sizeof error))
            expect(false, "%s: %s", rounds[i].name, error);
    }
}

/* ---- steps of an optimiser --------------------------------------------------------------------------------------- */

/* A weight that waits to be summed, and one of which states and copies lie in pieces, in bf16: the step moves, rounds
 * and gathers. */
static void two_init(dt_module *self, const void *params)
{
    (void)params;
    dt_module_param(self, "a", DT_SHAPE(13, 40), NULL);
    dt_tensor *b = dt_module_param(self, "b", DT_SHAPE(13, 4000), &(dt_param_params){ .dtype = DT_BF16 });
    dti_param_of(b)->state = dt_spec_replace(dt_tensor_spec(b), "tp:S(0)");
}

static dt_tensor *two_forward(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    return in[0];
}

static const dt_module_type two = { .name = "two", .init = two_init, .forward = two_forward };

static void add_gradient(dt_tensor *w)
{
    const dt_spec *spec = dt_tensor_spec(w);
    dt_backward(dt_mul_scalar(w, 1), dt_full(dt_spec_replace(spec, "tp:P"), 0.5));
}

static void take_steps(dt_module *module, dt_optim *optim, int times)
{
    dt_context *ctx = dt_module_context(module);
    dt_tensor *w[2];
    for (int i = 0; i < times; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_module_params(module, NULL, w, DT_COUNT(w));
        for (int k = 0; k < DT_COUNT(w); k++) add_gradient(w[k]);
        dt_clip_grad_norm(module, 1);
        dt_optim_step(optim, 1e-3);
        dt_module_zero_grad(module);
        dt_scope_pop(ctx, scope, NULL);
    }
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Pages are the process's: counted where one rank is all of it. */
static dt_status count_steps(dt_context *ctx, void *arg)
{
    dt_optim *(*const *make)(dt_module *root) = arg;
    dt_module *module = dt_module_create(dt_mesh_create(ctx, "tp"), &two, NULL);
    dt_module_materialize(module, 1);
    dt_optim *optim = (*make)(module);
    take_steps(module, optim, WARM);
    long calls = heap_calls(), pages = faults();
    size_t before = ctx->arena.total;
    take_steps(module, optim, TIMES);
    pages = faults() - pages;
    calls = heap_calls() - calls;
    expect(dt_context_status(ctx) == DT_OK && dt_optim_steps(optim) == WARM + TIMES, "%s", dt_context_error(ctx));
    expect(calls == 0, "%ld calls of the heap in %d steps", calls, TIMES);
    expect(ctx->arena.total == before, "the context holds %zu bytes, %zu before", ctx->arena.total, before);
    expect(!heap_counts() || dt_rank_count(ctx) > 1 || pages == 0, "%ld page faults in %d steps", pages, TIMES);
    return dt_context_status(ctx);
}

static dt_optim *new_adamw(dt_module *root) { return dt_optim_adamw(root, &(dt_adamw_params){ .no_decay = "b" }); }
static dt_optim *new_sgd(dt_module *root) { return dt_optim_sgd(root, &(dt_sgd_params){ .momentum = 0.9 }); }

static void a_step_takes_nothing_from_the_heap(void)
{
    static dt_optim *(*const makers[])(dt_module *root) = { new_adamw, new_sgd };
    for (int i = 0; i < DT_COUNT(makers); i++) {
        launch(1, count_steps, &makers[i]);
        launch(2, count_steps, &makers[i]);
    }
}

/* ---- stale handles ----------------------------------------------------------------------------------------------- */

#ifdef DTI_POISONS
static bool poisoned(const void *bytes) { return __asan_address_is_poisoned(bytes); }
#else
static bool poisoned(const void *bytes) { return bytes != NULL; }
#endif

static void a_handle_that_has_ended_is_poisoned(void)
{
    dt_context *ctx = dt_context_dry(1);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp=1");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4]"));
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *y = dt_neg(x);
    dt_scope_pop(ctx, scope, NULL);
    expect(poisoned(y), "ended with its scope");
    for (int i = 0; i < 20; i++) dt_neg(x);
    expect(poisoned(y), "taken again at once");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "the_heap_is_counted", the_heap_is_counted },
    { "what_is_called_again_takes_nothing_from_the_heap", what_is_called_again_takes_nothing_from_the_heap },
    { "a_step_takes_nothing_from_the_heap", a_step_takes_nothing_from_the_heap },
    { "a_handle_that_has_ended_is_poisoned", a_handle_that_has_ended_is_poisoned },
};

const suite the_suite = { "heap", rows, DT_COUNT(rows) };
