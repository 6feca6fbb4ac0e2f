/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses: leaves stored on one spec and used on another, in groups. Each gradient is held against that of leaves that are
 * whole, and collectives are counted. */
#include <stdio.h>

#include <dtensor/dtensor.h>

#include "autograd/use.h"
#include "errors.h"
#include "launch.h"
#include "tensor/tensor.h"

enum { LAYERS = 3, ROWS = 12 };

/* A chain of layers x -> gelu(x w' + b), each a group. */
typedef struct layer { dt_tensor *w, *b; dti_use *use; } layer;

typedef struct placing {
    const char *mesh, *stored, *used, *x, *seed; /* placements; used may differ in dtype                          */
    dt_dtype dtype, compute, reduce;
    const char *grad;
    bool keep, recompute;
    int prefetch, n;
} placing;

typedef struct network { layer layers[LAYERS]; const placing *how; dt_mesh *mesh; } network;

static const int64_t widths[LAYERS + 1] = { 5, 7, 6, 3 };

static dt_tensor *leaf(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const char *placements, uint64_t seed)
{
    return dt_require_grad(dt_randn(dt_spec_create(mesh, dtype, shape, placements), seed));
}

static const dt_spec *with(const dt_tensor *x, dt_dtype dtype, const char *placements)
{
    const dt_spec *spec = dt_tensor_spec(x);
    return dt_spec_create(dt_spec_mesh(spec), dtype ? dtype : dt_spec_dtype(spec), dt_spec_shape(spec), placements);
}

static void add(layer *l, const placing *how, dt_tensor *x)
{
    const dt_spec *grad = how->grad ? with(x, 0, how->grad) : NULL;
    expect(dti_use_add(l->use, x, with(x, how->compute, how->used), grad), "a leaf is added");
}

static void make_layer(network *net, int i, const char *stored)
{
    layer *l = &net->layers[i];
    dt_mesh *mesh = net->mesh;
    l->w = leaf(mesh, net->how->dtype, DT_SHAPE(widths[i + 1], widths[i]), stored, 10 + (uint64_t)i);
    l->b = leaf(mesh, net->how->dtype, DT_SHAPE(widths[i + 1]), stored, 20 + (uint64_t)i);
}

static void make(network *net, dt_mesh *mesh, const placing *how, bool uses)
{
    dti_use_params params = { how->reduce, how->keep, how->prefetch };
    *net = (network){ .how = how, .mesh = mesh };
    for (int i = 0; i < LAYERS; i++) {
        make_layer(net, i, uses ? how->stored : NULL);
        if (!uses) continue;
        net->layers[i].use = dti_use_new(dt_mesh_context(mesh), &params);
        add(&net->layers[i], how, net->layers[i].w);
        add(&net->layers[i], how, net->layers[i].b);
    }
}

static void end(network *net)
{
    for (int i = 0; i < LAYERS; i++) dti_use_destroy(net->layers[i].use);
}

static dt_tensor *call_layer(dt_tensor *const *in, void *arg)
{
    const layer *l = arg;
    int scope = dt_scope_push(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(in[0]))), 0);
    bool begun = l->use && dti_use_begin(l->use);
    dt_tensor *w = l->w, *b = l->b;
    if (!l->use) { /* as a use would: rounded to what is computed in */
        dt_dtype dtype = dt_spec_dtype(dt_tensor_spec(in[0]));
        if (dt_spec_dtype(dt_tensor_spec(w)) != dtype) w = dt_cast(w, dtype), b = dt_cast(b, dtype);
    }
    dt_tensor *y = dt_gelu(dt_linear(in[0], w, b));
    if (begun) y = dti_use_end(l->use, y);
    return dt_scope_pop(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(in[0]))), scope, y);
}

static dt_tensor *forward(network *net, dt_tensor *x)
{
    for (int i = 0; i < LAYERS && x; i++) {
        layer *l = &net->layers[i];
        x = net->how->recompute ? dt_recompute(call_layer, l, &x, 1) : call_layer(&x, l);
    }
    return x;
}

static dt_tensor *input(const network *net, int step, bool placed)
{
    dt_dtype dtype = net->how->compute ? net->how->compute : net->how->dtype;
    const dt_spec *spec = dt_spec_create(net->mesh, dtype, DT_SHAPE(ROWS, widths[0]), placed ? net->how->x : NULL);
    return dt_randn(spec, 100 + (uint64_t)step);
}

static void run(network *net, int step, bool placed)
{
    dt_context *ctx = dt_mesh_context(net->mesh);
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *y = forward(net, input(net, step, placed));
    dt_backward(dt_sum(dt_mul(y, y), DT_ALL, false), NULL);
    dt_scope_pop(ctx, scope, NULL);
}

static void expect_close(dt_tensor *x, dt_tensor *y, double tolerance, const char *what, int i)
{
    expect(x && y && dt_tensor_close(dt_redistribute(x, ""), dt_redistribute(y, ""), tolerance, tolerance),
           "%s %d: %s is not %s", what, i, x ? dt_tensor_text(x) : "none", y ? dt_tensor_text(y) : "none");
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static double tolerance(const placing *how) { return how->compute == DT_BF16 ? 0.1 : 1e-12; }

static dt_status gradients_rank(dt_context *ctx, void *arg)
{
    const placing *how = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, how->mesh);
    network used, whole;
    make(&used, mesh, how, true);
    make(&whole, mesh, how, false);
    for (int step = 0; step < 2; step++) { /* the second adds to the first                                            */
        run(&used, step, true);
        run(&whole, step, false);
    }
    for (int i = 0; i < LAYERS; i++) {
        expect_close(dt_grad(used.layers[i].w), dt_grad(whole.layers[i].w), tolerance(how), "weight", i);
        expect_close(dt_grad(used.layers[i].b), dt_grad(whole.layers[i].b), tolerance(how), "bias", i);
        const dt_tensor *w = used.layers[i].w;
        expect(!w->used, "nothing is in use at the end");
        expect(!w->body->copies, "no copy is left of layer %d", i);
    }
    end(&used);
    return dt_context_status(ctx);
}

static const placing hows[] = {
    { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 0, 2 },
    { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, true, false, 0, 2 },
    { "dp=3", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 1, 3 },
    { "dp=4", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, true, 0, 4 },
    { "dp=4", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, true, 2, 4 },
    { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F32, DT_BF16, 0, NULL, false, false, 1, 2 },
    { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F32, DT_BF16, DT_F32, NULL, false, false, 0, 2 },
    { "dp=2,tp=2", "tp:S(0),dp:S(0)", "tp:S(0)", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 1, 4 },
    { "dp=2,tp=3", "dp:S(0)", "", "dp:S(0),tp:S(0)", NULL, DT_F64, 0, 0, NULL, false, true, 1, 6 },
    { "dp=3", "", "", "dp:S(0)", NULL, DT_F64, 0, 0, "dp:S(0)", false, false, 0, 3 },
};

static void test_gradients(void)
{
    for (int i = 0; i < DT_COUNT(hows); i++) launch(hows[i].n, gradients_rank, &hows[i]);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static int64_t calls(dt_mesh *mesh, dt_comm_kind kind) { return dt_mesh_counters(mesh, NULL).calls[kind]; }

typedef struct counts { placing how; int gathers, scatters; } counts;

static dt_status counts_rank(dt_context *ctx, void *arg)
{
    const counts *c = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, c->how.mesh);
    network net;
    make(&net, mesh, &c->how, true);
    for (int step = 0; step < 3; step++) {
        int64_t gathers = calls(mesh, DT_COMM_ALL_GATHER), scatters = calls(mesh, DT_COMM_REDUCE_SCATTER);
        run(&net, step, true);
        gathers = calls(mesh, DT_COMM_ALL_GATHER) - gathers;
        scatters = calls(mesh, DT_COMM_REDUCE_SCATTER) - scatters;
        expect(gathers == c->gathers && scatters == c->scatters,
               "step %d: %d all-gathers, expected %d; %d reduce-scatters, expected %d", step, (int)gathers, c->gathers,
               (int)scatters, c->scatters);
        expect(dt_mesh_counters(mesh, NULL).implied == 0, "nothing is implied");
    }
    end(&net);
    return dt_context_status(ctx);
}

/* One gather per group forward; one backward, but of the first group, whose input has no gradient: nobody needs its
 * weight; one reduce-scatter per group. A function that is run again gathers then, and not again for its backward. */
static const counts all_counts[] = {
    { { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 0, 2 }, 2 * LAYERS - 1, LAYERS },
    { { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 1, 2 }, 2 * LAYERS - 1, LAYERS },
    { { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, false, 3, 2 }, 2 * LAYERS - 1, LAYERS },
    { { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, true, false, 0, 2 }, LAYERS, LAYERS },
    { { "dp=2", "dp:S(0)", "", "dp:S(0)", NULL, DT_F64, 0, 0, NULL, false, true, 0, 2 }, 2 * LAYERS, LAYERS },
    { { "dp=2", "", "", "dp:S(0)", NULL, DT_F64, 0, 0, "dp:S(0)", false, false, 0, 2 }, 0, LAYERS },
};

static void test_collectives(void)
{
    for (int i = 0; i < DT_COUNT(all_counts); i++) launch(2, counts_rank, &all_counts[i]);
}

/* ---- accumulation ------------------------------------------------------------------------------------------------ */

static dt_status accumulate_rank(dt_context *ctx, void *arg)
{
    const placing *how = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, how->mesh);
    network used, whole;
    make(&used, mesh, how, true);
    make(&whole, mesh, how, false);
    for (int step = 0; step < 4; step++) {
        int64_t before = calls(mesh, DT_COMM_REDUCE_SCATTER);
        int scope = dt_scope_push(ctx, step % 2 == 0 ? DT_SCOPE_NO_REDUCE : 0);
        run(&used, step, true);
        dt_scope_pop(ctx, scope, NULL);
        int64_t made = calls(mesh, DT_COMM_REDUCE_SCATTER) - before;
        expect(made == (step % 2 == 0 ? 0 : LAYERS), "step %d: %d reduce-scatters", step, (int)made);
        run(&whole, step, false);
    }
    for (int i = 0; i < LAYERS; i++) {
        expect_close(dt_grad(used.layers[i].w), dt_grad(whole.layers[i].w), 1e-12, "weight", i);
        expect(dt_spec_has(dt_tensor_spec(dt_grad(used.layers[i].w)), how->stored), "reduced to %s, got %s",
               how->stored, dt_spec_text(dt_tensor_spec(dt_grad(used.layers[i].w))));
    }
    end(&used);
    return dt_context_status(ctx);
}

static void test_accumulation(void) { launch(2, accumulate_rank, &hows[0]); }

static dt_tensor *twice(dt_tensor *grad, void *arg)
{
    ++*(int *)arg;
    return dt_mul_scalar(grad, 2);
}

/* Each micro-batch passes a leaf's hooks once. */
static dt_status hooked_rank(dt_context *ctx, void *arg)
{
    const placing *how = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, how->mesh);
    network used, whole;
    int seen = 0;
    make(&used, mesh, how, true);
    make(&whole, mesh, how, false);
    dt_grad_hook(used.layers[1].w, twice, &seen);
    for (int step = 0; step < 3; step++) {
        int scope = dt_scope_push(ctx, step < 2 ? DT_SCOPE_NO_REDUCE : 0);
        run(&used, step, true);
        dt_scope_pop(ctx, scope, NULL);
        run(&whole, step, false);
    }
    expect(seen == 3, "the hook saw %d gradients", seen);
    expect_close(dt_grad(used.layers[1].w), dt_mul_scalar(dt_grad(whole.layers[1].w), 2), 1e-12, "hooked weight", 1);
    expect_close(dt_grad(used.layers[0].w), dt_grad(whole.layers[0].w), 1e-12, "weight", 0);
    end(&used);
    return dt_context_status(ctx);
}

static void test_hooked(void) { launch(3, hooked_rank, &hows[2]); }

/* ---- no gradients, and functions within -------------------------------------------------------------------------- */

static dt_status no_grad_rank(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2");
    network used, whole;
    make(&used, mesh, arg, true);
    make(&whole, mesh, arg, false);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect_close(forward(&used, input(&used, 0, true)), forward(&whole, input(&whole, 0, false)), 1e-12, "result", 0);
    dt_scope_pop(ctx, scope, NULL);
    expect(calls(mesh, DT_COMM_REDUCE_SCATTER) == 0, "nothing goes back");
    end(&used);
    return dt_context_status(ctx);
}

static void test_no_grad(void) { launch(2, no_grad_rank, &hows[0]); }

/* A function that is run again takes a parameter of what is around it. */
static dt_tensor *inner(dt_tensor *const *in, void *arg)
{
    const layer *l = arg;
    return dt_gelu(dt_linear(in[0], l->w, l->b));
}

static dt_status inner_rank(dt_context *ctx, void *arg)
{
    const placing *how = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, how->mesh);
    network used, whole;
    make(&used, mesh, how, true);
    make(&whole, mesh, how, false);
    layer *l = &used.layers[0];
    dt_tensor *x = input(&used, 0, true);
    if (!expect(dti_use_begin(l->use), "a use begins: %s", dt_context_error(ctx))) return DT_OK;
    dt_tensor *y = dt_mul_scalar(dt_recompute(inner, l, &x, 1), 2);
    y = dti_use_end(l->use, y);
    dt_backward(dt_sum(dt_mul(y, y), DT_ALL, false), NULL);
    expect(calls(mesh, DT_COMM_ALL_GATHER) == 2, "gathered %d times", (int)calls(mesh, DT_COMM_ALL_GATHER));
    dt_tensor *z = input(&whole, 0, false);
    z = dt_mul_scalar(inner(&z, &whole.layers[0]), 2);
    dt_backward(dt_sum(dt_mul(z, z), DT_ALL, false), NULL);
    expect_close(dt_grad(l->w), dt_grad(whole.layers[0].w), 1e-12, "weight", 0);
    end(&used);
    return dt_context_status(ctx);
}

static void test_inner_recompute(void) { launch(2, inner_rank, &hows[0]); }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Between forward and backward only the pieces are there; with keep what is needed of all that was gathered. */
static dt_status memory_rank(dt_context *ctx, void *arg)
{
    const placing *how = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, how->mesh);
    network used;
    make(&used, mesh, how, true);
    int64_t before = dt_mesh_counters(mesh, NULL).memory, activations = ROWS / 2 * widths[0] * 8, weights = 0;
    for (int i = 1; i <= LAYERS; i++) activations += 2 * ROWS / 2 * widths[i] * 8; /* both ends of a gelu            */
    for (int i = 1; i < LAYERS; i++) weights += widths[i] * widths[i + 1] * 8; /* x of the first has no gradient     */
    dt_tensor *y = forward(&used, input(&used, 0, true));
    int64_t kept = dt_mesh_counters(mesh, NULL).memory - before, due = activations + (how->keep ? weights : 0);
    expect(y && kept == due, "%lld bytes kept, expected %lld", (long long)kept, (long long)due);
    end(&used);
    return dt_context_status(ctx);
}

static void test_memory(void)
{
    launch(2, memory_rank, &hows[0]);
    launch(2, memory_rank, &hows[1]);
}

/* ---- writes, errors ---------------------------------------------------------------------------------------------- */

static dt_status written_rank(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2");
    network net;
    make(&net, mesh, arg, true);
    dt_tensor *w = net.layers[1].w;
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *y = forward(&net, input(&net, 0, true));
    int inside = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_copy_into(w, dt_zeros(dt_tensor_spec(w)));
    expect_error(ctx, DT_ERR_STATE, "the tape still needs it", "a leaf in use by the tape");
    dt_scope_pop(ctx, inside, NULL);
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
    dt_scope_pop(ctx, scope, NULL);
    scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_copy_into(w, dt_zeros(dt_tensor_spec(w)));
    dt_copy_into(net.layers[1].b, dt_zeros(dt_tensor_spec(net.layers[1].b)));
    y = forward(&net, input(&net, 1, true));
    dt_tensor *bias = dt_gelu(dt_linear(dt_zeros(dt_spec_create(mesh, DT_F64, DT_SHAPE(ROWS, widths[2]), NULL)),
                                        dt_redistribute(net.layers[2].w, ""), dt_redistribute(net.layers[2].b, "")));
    expect_close(y, bias, 1e-12, "what was written is used, layer", 1);
    dt_scope_pop(ctx, scope, NULL);
    expect_no_error(ctx, "a leaf is written between steps");
    end(&net);
    return dt_context_status(ctx);
}

/* Nor is one written that a function takes which backward runs again. */
static dt_status written_again_rank(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=4");
    for (int uses = 0; uses < 2; uses++) {
        network net;
        make(&net, mesh, arg, uses);
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *y = forward(&net, input(&net, 0, uses));
        int inside = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
        dt_copy_into(net.layers[1].w, dt_zeros(dt_tensor_spec(net.layers[1].w)));
        dt_scope_pop(ctx, inside, NULL);
        dt_backward(dt_sum(y, DT_ALL, false), NULL);
        expect_error(ctx, DT_ERR_STATE, "has been written since", "a leaf of a function that is run again");
        dt_scope_pop(ctx, scope, NULL);
        if (uses) end(&net);
    }
    return dt_context_status(ctx);
}

static void test_written_again(void) { launch(4, written_again_rank, &hows[3]); }

/* What the first layer gathers ahead for the second, nobody asks for before the second is written. */
static dt_status ahead_rank(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=3");
    network used;
    make(&used, mesh, arg, true);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *x = input(&used, 0, true);
    forward(&used, x);
    call_layer(&x, &used.layers[0]);
    dt_tensor *w = used.layers[1].w;
    expect(dt_copy_into(w, dt_zeros(dt_tensor_spec(w))) == DT_OK, "written: %s", dt_context_error(ctx));
    dt_tensor *y = call_layer(&x, &used.layers[0]), *bias = dt_gelu(dt_redistribute(used.layers[1].b, ""));
    y = dt_redistribute(call_layer(&y, &used.layers[1]), "");
    expect_close(y, dt_expand(bias, DT_SHAPE(ROWS, widths[2])), 1e-12, "what was written is used, layer", 1);
    dt_scope_pop(ctx, scope, NULL);
    end(&used);
    return dt_context_status(ctx);
}

static void test_ahead(void) { launch(3, ahead_rank, &hows[2]); }

static void test_writes(void)
{
    launch(2, written_rank, &hows[0]);
    launch(2, written_rank, &hows[2]);
}

static dt_status errors_rank(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2"), *other = dt_mesh_create(ctx, "tp=2");
    dti_use *use = dti_use_new(ctx, &(dti_use_params){ 0 });
    dt_tensor *w = leaf(mesh, DT_F32, DT_SHAPE(4, 4), "dp:S(0)", 1);
    expect(!dti_use_add(use, w, dt_spec_create(other, DT_F32, DT_SHAPE(4, 4), NULL), NULL), "another mesh");
    expect_error(ctx, DT_ERR_PLACEMENT, "on its own mesh", "used on another mesh");
    expect(dti_use_begin(use) && dti_use_end(use, w) == w, "a use of nothing");
    dti_use_destroy(use);
    return dt_context_status(ctx);
}

static void test_errors(void) { launch(2, errors_rank, NULL); }

static const test_row rows[] = {
    { "gradients", test_gradients },     { "collectives", test_collectives }, { "accumulation", test_accumulation },
    { "no_grad", test_no_grad },         { "inner_recompute", test_inner_recompute },
    { "memory", test_memory },           { "writes", test_writes },           { "ahead", test_ahead },
    { "hooked", test_hooked },           { "written again", test_written_again },
    { "errors", test_errors },
};

const suite the_suite = { "use", rows, DT_COUNT(rows) };
