/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimisers against a plain loop in f64, wherever parameters, states and gradients lie; what a step moves; masters;
 * clipping; refusals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "core/table.h"
#include "errors.h"
#include "launch.h"
#include "nn/module.h"
#include "train/optim.h"

enum { ROWS = 13, COLUMNS = 5, ELEMENTS = ROWS * COLUMNS, INNER = 6, PARTS = 12, MOST_RANKS = 5 };

/* ---- a bag of parameters ----------------------------------------------------------------------------------------- */

/* Where a parameter, its states and the factors of its gradient lie: a product of INNER columns and rows, which are
 * split where it is to be P. a NULL: no gradient. */
typedef struct part { const char *stored, *state, *a, *b; } part;

static const part parts[] = {
    { "", NULL, "", "" },                              /* whole                                                    */
    { "", NULL, "x:S(1)", "x:S(0)" },                  /* waits to be summed, as with dp                           */
    { "x:S(0)", NULL, "x:S(0)", "" },                  /* as with tp                                               */
    { "x:S(0)", NULL, "x:S(1)", "x:S(0)" },            /* as stored by a fully sharded group                       */
    { "x:S(1)", NULL, "x:S(1),y:S(1)", "x:S(0),y:S(0)" },
    { "x:S(0),y:S(0)", NULL, "y:S(0)", "" },
    { "y:S(0),x:S(0)", NULL, "y:S(0),x:S(1)", "x:S(0)" }, /* fully sharded over what tp has split                  */
    { "", "x:S(0)", "x:S(1)", "x:S(0)" },              /* states in pieces, zero 1                                 */
    { "", "x:S(0)", "x:S(0)", "" },                    /* gradients too, zero 2                                    */
    { "y:S(0)", "y:S(0),x:S(0)", "y:S(0),x:S(1)", "x:S(0)" },
    { "", "x:S(0),y:S(1)", "", "" },
    { "x:S(0)", NULL, NULL, NULL },
};

/* meshes: of each; NULL: the module's. */
typedef struct bag_params { dt_mesh *const *meshes; dt_dtype dtype; const part *parts; int n; } bag_params;

static void bag_init(dt_module *self, const void *params)
{
    const bag_params *p = params;
    dt_shape shape = DT_SHAPE(ROWS, COLUMNS);
    for (int i = 0; i < p->n; i++) {
        char name[16];
        dt_mesh *mesh = p->meshes ? p->meshes[i] : dt_module_mesh(self);
        snprintf(name, sizeof name, "p%d", i);
        dt_tensor *x = dt_module_param(self, name, shape, &(dt_param_params){ p->dtype, DT_INIT_NORMAL, 0, 0, 0 });
        dti_param *param = dti_param_of(x);
        if (!expect(param != NULL, "no parameter %d", i)) return;
        dti_param_store(param, dt_spec_create(mesh, p->dtype, shape, p->parts[i].stored));
        if (p->parts[i].state) param->state = dt_spec_create(mesh, p->dtype, shape, p->parts[i].state);
    }
}

static dt_tensor *bag_forward(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    return in[0];
}

static const dt_module_type bag = { .name = "bag", .init = bag_init, .forward = bag_forward };

static dt_module *bag_new(dt_mesh *mesh, dt_dtype dtype, const part *of, int n)
{
    bag_params params = { NULL, dtype, of, n };
    dt_module *module = dt_module_create(mesh, &bag, &params);
    dt_module_materialize(module, 7);
    return module;
}

static dt_mesh *mesh_of(dt_context *ctx) { return dt_mesh_create(ctx, dt_rank_count(ctx) % 2 ? "x,y=1" : "x,y=2"); }

static dt_tensor *factor(dt_tensor *param, int64_t rows, int64_t columns, const char *placements, uint64_t seed)
{
    const dt_spec *spec = dt_tensor_spec(param);
    return dt_randn(dt_spec_create(dt_spec_mesh(spec), dt_spec_dtype(spec), DT_SHAPE(rows, columns), placements), seed);
}

/* Add a gradient, placed as the product comes. */
static void give_gradient(dt_tensor *param, const part *of, uint64_t seed)
{
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(dt_tensor_spec(param)));
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *a = of->a ? factor(param, ROWS, INNER, of->a, seed) : NULL;
    if (a) dt_backward(dt_mul_scalar(param, 1), dt_matmul(a, factor(param, INNER, COLUMNS, of->b, seed + 1)));
    expect(dt_context_status(ctx) == DT_OK, "gradient at %s, %s: %s", of->stored, of->a ? of->a : "-",
           dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
}

static uint64_t seed_of(int step, int i) { return (uint64_t)(1000 * step + 2 * i + 11); }

static void give_gradients(dt_tensor *const *params, const part *of, int n, int step)
{
    for (int i = 0; i < n; i++) give_gradient(params[i], &of[i], seed_of(step, i));
}

static void read_values(dt_tensor *x, double *values)
{
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x)));
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor_to_host(dt_cast(x, DT_F64), -1, values, ELEMENTS * sizeof *values);
    dt_scope_pop(ctx, scope, NULL);
}

/* The same gradient, by the definition; of numbers in the dtype, not rounded. */
static void due_gradient(dt_tensor *param, uint64_t seed, double *due)
{
    double a[ROWS * INNER], b[INNER * COLUMNS];
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(dt_tensor_spec(param)));
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor_to_host(dt_cast(factor(param, ROWS, INNER, "", seed), DT_F64), -1, a, sizeof a);
    dt_tensor_to_host(dt_cast(factor(param, INNER, COLUMNS, "", seed + 1), DT_F64), -1, b, sizeof b);
    dt_scope_pop(ctx, scope, NULL);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++) {
            due[i * COLUMNS + k] = 0;
            for (int j = 0; j < INNER; j++) due[i * COLUMNS + k] += a[i * INNER + j] * b[j * COLUMNS + k];
        }
}

static double farthest(const double *x, const double *due)
{
    double far = 0;
    for (int i = 0; i < ELEMENTS; i++) far = isnan(x[i]) ? INFINITY : fmax(far, fabs(x[i] - due[i]));
    return far;
}

/* ---- steps against a loop ---------------------------------------------------------------------------------------- */

typedef struct plain { double w[ELEMENTS], m[ELEMENTS], v[ELEMENTS]; } plain;

static const dt_adamw_params adamw_params = { .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1,
                                              .no_decay = "p1, p[36]" };
static const dt_sgd_params plain_params = { .weight_decay = 0.1, .no_decay = "p1, p[36]" };
static const dt_sgd_params momentum_params = { .momentum = 0.9, .weight_decay = 0.1, .no_decay = "p1, p[36]" };
static const dt_sgd_params nesterov_params = { .momentum = 0.9, .nesterov = true, .weight_decay = 0.1,
                                               .no_decay = "p1, p[36]" };

static bool decays(int i) { return i != 1 && i != 3 && i != 6; }

static void plain_adamw(plain *p, const double *g, double lr, double decay, int step)
{
    for (int i = 0; i < ELEMENTS; i++) {
        p->m[i] = 0.9 * p->m[i] + 0.1 * g[i];
        p->v[i] = 0.99 * p->v[i] + 0.01 * g[i] * g[i];
        double m = p->m[i] / (1 - pow(0.9, step)), v = p->v[i] / (1 - pow(0.99, step));
        p->w[i] = p->w[i] - lr * decay * p->w[i] - lr * m / (sqrt(v) + 1e-3);
    }
}

static void plain_sgd(plain *p, const double *g, double lr, double decay, int step)
{
    (void)step;
    for (int i = 0; i < ELEMENTS; i++) p->w[i] -= lr * (g[i] + decay * p->w[i]);
}

static void plain_momentum(plain *p, const double *g, double lr, double decay, int step)
{
    (void)step;
    for (int i = 0; i < ELEMENTS; i++) {
        p->m[i] = 0.9 * p->m[i] + g[i] + decay * p->w[i];
        p->w[i] -= lr * p->m[i];
    }
}

static void plain_nesterov(plain *p, const double *g, double lr, double decay, int step)
{
    (void)step;
    for (int i = 0; i < ELEMENTS; i++) {
        double by = g[i] + decay * p->w[i];
        p->m[i] = 0.9 * p->m[i] + by;
        p->w[i] -= lr * (by + 0.9 * p->m[i]);
    }
}

static dt_optim *new_adamw(dt_module *root) { return dt_optim_adamw(root, &adamw_params); }
static dt_optim *new_sgd(dt_module *root) { return dt_optim_sgd(root, &plain_params); }
static dt_optim *new_momentum(dt_module *root) { return dt_optim_sgd(root, &momentum_params); }
static dt_optim *new_nesterov(dt_module *root) { return dt_optim_sgd(root, &nesterov_params); }

static const struct kind {
    const char *name;
    dt_optim *(*make)(dt_module *root);
    void (*step)(plain *p, const double *g, double lr, double decay, int step);
} kinds[] = {
    { "adamw", new_adamw, plain_adamw }, { "sgd", new_sgd, plain_sgd }, { "momentum", new_momentum, plain_momentum },
    { "nesterov", new_nesterov, plain_nesterov },
};

/* far: what rounding of states and weights adds up to in three steps of 0.1; rounded: of a parameter and a gradient
 * of about 10 that are kept in the dtype. */
static const struct exactness { dt_dtype dtype; double far, rounded, gradient; } exact[] = {
    { DT_F64, 1e-13, 1e-13, 1e-13 }, { DT_F32, 1e-5, 1e-5, 1e-5 }, { DT_BF16, 1e-5, 0x1p-6, 0.5 },
};

typedef struct stepped { const struct kind *kind; const struct exactness *exact; } stepped;

static void compare(const stepped *s, const dt_optim *optim, int i, const plain *due, const char *when)
{
    double values[ELEMENTS];
    const dti_optim_slot *slot = &optim->slots[i];
    read_values(slot->param, values);
    expect(farthest(values, due->w) <= s->exact->rounded, "%s, %s, %s: part %d is %g off", s->kind->name,
           dt_spec_text(dt_tensor_spec(slot->param)), when, i, farthest(values, due->w));
    for (int k = 0; k < DTI_OPTIM_STATES; k++) {
        const double *of[DTI_OPTIM_STATES] = { due->w, due->m, due->v };
        if (!slot->state[k] || (k == DTI_OPTIM_MASTER && !parts[i].a)) continue;
        read_values(slot->state[k], values);
        expect(farthest(values, of[k]) <= 10 * s->exact->far, "%s, %s: %s of part %d is %g off", s->kind->name, when,
               optim->kind->states[k], i, farthest(values, of[k]));
        expect(dt_tensor_spec(slot->state[k]) == slot->spec, "state %s", dt_spec_text(slot->spec));
    }
}

static dt_status steps(dt_context *ctx, void *arg)
{
    const stepped *s = arg;
    dt_mesh *mesh = mesh_of(ctx);
    dt_module *module = bag_new(mesh, s->exact->dtype, parts, PARTS);
    dt_optim *optim = s->kind->make(module);
    dt_tensor *params[PARTS];
    plain due[PARTS] = { { { 0 }, { 0 }, { 0 } } };
    if (!expect(optim && dt_module_params(module, NULL, params, PARTS) == PARTS, "%s", dt_context_error(ctx)))
        return dt_context_status(ctx);
    for (int i = 0; i < PARTS; i++) read_values(params[i], due[i].w);
    for (int step = 1; step <= 3; step++) {
        give_gradients(params, parts, PARTS, step);
        expect(dt_optim_step(optim, 0.1 / step) == DT_OK, "%s: %s", s->kind->name, dt_context_error(ctx));
        expect(dt_optim_steps(optim) == step && ctx->step == step, "step %d", step);
        for (int i = 0; i < PARTS; i++) {
            double g[ELEMENTS], product[ELEMENTS];
            if (!parts[i].a) continue;
            due_gradient(params[i], seed_of(step, i), product);
            read_values(dt_grad(params[i]), g);
            expect(farthest(g, product) <= s->exact->gradient, "gradient %d is %g off", i, farthest(g, product));
            expect(dt_tensor_spec(dt_grad(params[i])) == optim->slots[i].spec, "a gradient stays reduced: %s",
                   dt_spec_text(dt_tensor_spec(dt_grad(params[i]))));
            s->kind->step(&due[i], g, 0.1 / step, decays(i) ? 0.1 : 0, step);
        }
        dt_module_zero_grad(module);
    }
    for (int i = 0; i < PARTS; i++) compare(s, optim, i, &due[i], "after three");
    return dt_context_status(ctx);
}

static void steps_are_those_of_a_loop(void)
{
    for (int k = 0; k < DT_COUNT(kinds); k++)
        for (int e = 0; e < DT_COUNT(exact); e++) {
            stepped s = { &kinds[k], &exact[e] };
            for (int ranks = 1; ranks <= MOST_RANKS; ranks++) launch(ranks, steps, &s);
        }
}

/* Gradients that are drawn, and so the same bits on every mesh: so is what comes of them. */
static dt_status bits(dt_context *ctx, void *arg)
{
    static const char *const placed[] = { "", "x:S(0)", "x:S(1)", "y:S(0),x:S(0)", "x:P", "x:S(0),y:S(1)" };
    uint64_t *sums = arg, own[PARTS];
    dt_module *module = bag_new(mesh_of(ctx), DT_F32, parts, PARTS);
    dt_optim *optim = new_adamw(module);
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    for (int step = 1; step <= 2; step++) {
        for (int i = 0; i < PARTS; i++)
            dt_backward(dt_mul_scalar(params[i], 1), factor(params[i], ROWS, COLUMNS, placed[(i + step) % 6],
                                                            seed_of(step, i)));
        dt_clip_grad_norm(module, 1e9);
        dt_optim_step(optim, 0.1);
        dt_module_zero_grad(module);
    }
    for (int i = 0; i < PARTS; i++) {
        own[i] = dt_tensor_checksum(params[i]);
        if (dt_rank_count(ctx) == 1) sums[i] = own[i];
        expect(sums[i] == own[i], "%d ranks: part %d has other bits", dt_rank_count(ctx), i);
    }
    return dt_context_status(ctx);
}

static void bits_do_not_hang_on_the_mesh(void)
{
    uint64_t sums[PARTS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) launch(ranks, bits, sums);
}

/* ---- what moves -------------------------------------------------------------------------------------------------- */

typedef struct moves { int64_t calls[DT_COMM_KIND_COUNT], bytes; } moves;

static moves moves_of(dt_mesh *mesh, const char *dim)
{
    dt_counters counters = dt_mesh_counters(mesh, dim);
    moves m = { { 0 }, 0 };
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) {
        m.calls[kind] = kind == DT_COMM_LOCAL ? 0 : counters.calls[kind];
        m.bytes += counters.bytes[kind];
    }
    return m;
}

static moves less(moves m, const moves *before)
{
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) m.calls[kind] -= before->calls[kind];
    m.bytes -= before->bytes;
    return m;
}

static void expect_moves(moves got, const moves *due, int64_t others, const char *what)
{
    int64_t bytes = due->bytes * others;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++)
        expect(got.calls[kind] == due->calls[kind], "%s: %lld times %s, expected %lld", what,
               (long long)got.calls[kind], dt_comm_kind_text((dt_comm_kind)kind), (long long)due->calls[kind]);
    expect(bytes < 0 || got.bytes == bytes, "%s: %lld bytes, expected %lld", what, (long long)got.bytes,
           (long long)bytes);
}

/* A step of four parameters alike, by itself and after clipping. bytes: of an element that this rank lacks of a tensor
 * in pieces; -1: not counted. */
static const struct step_moves {
    const char *name;
    part of;
    dt_dtype dtype;
    moves step, clip, step_after;
} step_moves[] = {
    { "replicated", { "", NULL, "", "" }, DT_F32, { { 0 }, 0 }, { { 0 }, 0 }, { { 0 }, 0 } },
    { "data parallel", { "", NULL, "x:S(1)", "x:S(0)" }, DT_F32,
      { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { 0 }, 0 } },
    { "in pieces", { "x:S(0)", NULL, "x:S(0)", "" }, DT_F32,
      { { 0 }, 0 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { 0 }, 0 } },
    { "reduced by backward", { "x:S(0)", NULL, "x:S(1)", "x:S(0)" }, DT_F32,
      { { 0 }, 0 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { 0 }, 0 } },
    { "zero 1", { "", "x:S(0)", "x:S(1)", "x:S(0)" }, DT_F32,
      { { [DT_COMM_REDUCE_SCATTER] = 1, [DT_COMM_ALL_GATHER] = 1 }, -1 },
      { { [DT_COMM_REDUCE_SCATTER] = 1, [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { [DT_COMM_ALL_GATHER] = 1 }, -1 } },
    { "zero 2", { "", "x:S(0)", "x:S(0)", "" }, DT_F32,
      { { [DT_COMM_ALL_GATHER] = 1 }, 4 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 },
      { { [DT_COMM_ALL_GATHER] = 1 }, 4 } },
    { "zero 2, bf16", { "", "x:S(0)", "x:S(0)", "" }, DT_BF16,
      { { [DT_COMM_ALL_GATHER] = 1 }, 2 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 },
      { { [DT_COMM_ALL_GATHER] = 1 }, 2 } },
    { "data parallel, bf16", { "", NULL, "x:S(1)", "x:S(0)" }, DT_BF16,
      { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { 0 }, 0 } },
    { "masters", { "x:S(0)", NULL, "x:S(0)", "" }, DT_BF16,
      { { 0 }, 0 }, { { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, { { 0 }, 0 } },
};

static moves measured_step(dt_optim *optim, dt_mesh *mesh)
{
    moves before = moves_of(mesh, "x");
    expect(dt_optim_step(optim, 0.1) == DT_OK, "%s", dt_context_error(dt_mesh_context(mesh)));
    return less(moves_of(mesh, "x"), &before);
}

static dt_status measure(dt_context *ctx, void *arg)
{
    enum { ALIKE = 4 };
    const struct step_moves *s = arg;
    const part of[ALIKE] = { s->of, s->of, s->of, s->of };
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=1");
    dt_module *module = bag_new(mesh, s->dtype, of, ALIKE);
    dt_optim *optim = dt_optim_adamw(module, &(dt_adamw_params){ .weight_decay = 0.1, .no_decay = "p[12]" });
    dt_tensor *params[ALIKE];
    dt_module_params(module, NULL, params, ALIKE);
    int64_t others = ALIKE * (ELEMENTS - dti_part_count(dt_spec_create(mesh, DT_F32, DT_SHAPE(ROWS, COLUMNS), "x:S(0)"),
                                                        dt_rank(ctx)));
    int64_t implied = dt_mesh_counters(mesh, NULL).implied;
    for (int step = 0; step < 2; step++) {
        int strict = dt_scope_push(ctx, step ? DT_SCOPE_STRICT : 0); /* nothing of it is implied                   */
        give_gradients(params, of, ALIKE, step);
        expect_moves(measured_step(optim, mesh), &s->step, others, s->name);
        dt_module_zero_grad(module);
        give_gradients(params, of, ALIKE, step);
        moves before = moves_of(mesh, "x");
        expect(dt_clip_grad_norm(module, 1) != NULL, "%s", dt_context_error(ctx));
        expect_moves(less(moves_of(mesh, "x"), &before), &s->clip, others, s->name);
        expect_moves(measured_step(optim, mesh), &s->step_after, others, s->name);
        dt_module_zero_grad(module);
        dt_scope_pop(ctx, strict, NULL);
    }
    expect(dt_mesh_counters(mesh, NULL).implied == implied, "%s: moves that nobody asked for", s->name);
    return dt_context_status(ctx);
}

/* Gradients travel as their group says, and are kept as their states are. */
static dt_status travel(dt_context *ctx, void *arg)
{
    static const part of[] = { { "", "x:S(0)", "x:S(1)", "x:S(0)" } };
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y=1");
    int64_t bytes[2];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        dt_module *module = bag_new(mesh, DT_F32, of, 1);
        module->use_params.reduce = i ? DT_BF16 : DT_DTYPE_DEFAULT;
        module->params->group = module;
        give_gradients(&module->params->tensor, of, 1, 1);
        moves before = moves_of(mesh, "x");
        dt_clip_grad_norm(module, INFINITY);
        moves got = less(moves_of(mesh, "x"), &before);
        dt_tensor *grad = dt_grad(module->params->tensor);
        expect(got.calls[DT_COMM_REDUCE_SCATTER] == 1 && got.calls[DT_COMM_ALL_REDUCE] == 1, "another step");
        expect(grad && strcmp(dt_spec_text(dt_tensor_spec(grad)), "f32[13,5]@x:S(0)") == 0, "a gradient");
        bytes[i] = dt_mesh_counters(mesh, "x").bytes[DT_COMM_REDUCE_SCATTER] - (i ? bytes[0] : 0);
    }
    expect(bytes[0] > 0 && bytes[0] == 2 * bytes[1], "%lld bytes, as bf16 %lld", (long long)bytes[0],
           (long long)bytes[1]);
    return dt_context_status(ctx);
}

static void a_step_reduces_once(void)
{
    for (int i = 0; i < DT_COUNT(step_moves); i++) launch(4, measure, &step_moves[i]);
    launch(4, travel, NULL);
}

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

enum { MESHES = 4, MANY = 8 };

/* Meshes of six ranks: 3 x 2, these as one dim, that split again, and 2 x 3, which has no refinement with the first. */
static void make_meshes(dt_context *ctx, dt_mesh *meshes[MESHES])
{
    meshes[0] = dt_mesh_create(ctx, "x=3,y=2");
    meshes[1] = dt_mesh_flatten(meshes[0], "x,y", "all");
    meshes[2] = dt_mesh_split(meshes[1], "all", "kv=3,rep=2");
    meshes[3] = dt_mesh_create(ctx, "x=2,y=3");
}

static const struct { part of; int mesh; } many[MANY] = {
    { { "x:S(0),y:S(1)", NULL, "x:S(0)", "" }, 0 },
    { { "", NULL, "all:S(1)", "all:S(0)" }, 1 },
    { { "all:S(0)", NULL, "all:S(0)", "" }, 1 },
    { { "", NULL, "", "" }, 0 },
    { { "kv:S(0)", NULL, "kv:S(0),rep:S(1)", "rep:S(0)" }, 2 },
    { { "", "y:S(0)", "x:S(1),y:S(1)", "x:S(0),y:S(0)" }, 0 },
    { { "x:S(0)", NULL, NULL, NULL }, 0 },
    { { "x:S(0)", NULL, "x:S(0),y:S(1)", "y:S(0)" }, 3 }, /* last: left out where calls are counted                */
};

/* A module of parameters on several meshes, a part of them below in another dtype. */
static dt_module *many_new(dt_mesh *const *meshes, dt_dtype dtype, dt_dtype below, int n)
{
    part of[MANY];
    dt_mesh *on[MANY];
    for (int i = 0; i < n; i++) {
        of[i] = many[i].of;
        on[i] = meshes[many[i].mesh];
    }
    int half = n / 2;
    dt_module *root = dt_module_create(meshes[0], &bag, &(bag_params){ on, dtype, of, half });
    bag_params rest = { on + half, below, of + half, n - half };
    dt_module_add(root, "rest", dt_module_create(meshes[0], &bag, &rest));
    dt_module_materialize(root, 7);
    return root;
}

static double due_gradients(dt_tensor *const *params, const part *of, int n, double due[][ELEMENTS])
{
    double squares = 0;
    for (int i = 0; i < n; i++) {
        if (!of[i].a) continue;
        due_gradient(params[i], seed_of(1, i), due[i]);
        for (int k = 0; k < ELEMENTS; k++) squares += due[i][k] * due[i][k];
    }
    return sqrt(squares);
}

static uint64_t checksum_of(dt_tensor *const *params, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        if (dt_grad(params[i])) sum = dti_hash_mix(sum, dt_tensor_checksum(dt_grad(params[i])));
    return sum;
}

static void expect_norm(dt_tensor *norm, double due, double rtol, const char *what)
{
    if (!expect(norm != NULL, "%s: no norm", what)) return;
    double got = dt_tensor_item(norm);
    expect(fabs(got - due) <= rtol * due, "%s: %.17g, expected %.17g", what, got, due);
    expect(dt_spec_has(dt_tensor_spec(norm), ""), "%s: %s", what, dt_spec_text(dt_tensor_spec(norm)));
}

/* Above the norm nothing changes; below it all are scaled; then the norm is what was asked for. */
static void clip_all(dt_module *root, dt_tensor *const *params, const part *of, int n, double rtol)
{
    double due[PARTS][ELEMENTS], got[ELEMENTS], norm = due_gradients(params, of, n, due);
    expect_norm(dt_clip_grad_norm(root, INFINITY), norm, rtol, "asked for alone");
    uint64_t before = checksum_of(params, n);
    expect_norm(dt_clip_grad_norm(root, 2 * norm), norm, rtol, "below the most");
    expect(checksum_of(params, n) == before, "gradients changed");
    expect_norm(dt_clip_grad_norm(root, norm / 4), norm, rtol, "above it");
    for (int i = 0; i < n; i++) {
        expect((dt_grad(params[i]) != NULL) == (of[i].a != NULL), "part %d has a gradient or not", i);
        if (!of[i].a) continue;
        read_values(dt_grad(params[i]), got);
        for (int k = 0; k < ELEMENTS; k++) due[i][k] /= 4;
        expect(farthest(got, due[i]) <= 10 * rtol, "part %d is %g off", i, farthest(got, due[i]));
    }
    expect_norm(dt_clip_grad_norm(root, 1e9), norm / 4, rtol, "clipped");
}

static dt_status clip_one(dt_context *ctx, void *arg)
{
    const struct exactness *e = arg;
    dt_module *module = bag_new(mesh_of(ctx), e->dtype, parts, PARTS);
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    give_gradients(params, parts, PARTS, 1);
    clip_all(module, params, parts, PARTS, e->gradient);
    return dt_context_status(ctx);
}

static dt_status clip_many(dt_context *ctx, void *arg)
{
    const dt_dtype *dtypes = arg;
    dt_mesh *meshes[MESHES];
    dt_tensor *params[MANY];
    part of[MANY];
    make_meshes(ctx, meshes);
    dt_module *root = many_new(meshes, dtypes[0], dtypes[1], MANY);
    for (int i = 0; i < MANY; i++) of[i] = many[i].of;
    expect(dt_module_params(root, NULL, params, MANY) == MANY, "%s", dt_context_error(ctx));
    give_gradients(params, of, MANY, 1);
    clip_all(root, params, of, MANY, dtypes[0] == DT_F64 && dtypes[1] == DT_F64 ? 1e-13 : 1e-5);
    dt_optim *optim = dt_optim_sgd(root, NULL);
    expect(dt_optim_step(optim, 0.1) == DT_OK, "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void clipping_gives_the_serial_norm(void)
{
    static const dt_dtype dtypes[][2] = {
        { DT_F64, DT_F64 }, { DT_F32, DT_F32 }, { DT_F32, DT_F64 }, { DT_F64, DT_F32 },
    };
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int e = 0; e < 2; e++) launch(ranks, clip_one, &exact[e]);
    for (int i = 0; i < DT_COUNT(dtypes); i++) launch(6, clip_many, dtypes[i]);
}

/* What waits is reduced as a step reduces it, then come the squares: 8 bytes from each of the others at most. */
static dt_status clip_moves(dt_context *ctx, void *arg)
{
    dt_mesh *meshes[MESHES];
    dt_tensor *params[MANY];
    part of[MANY];
    (void)arg;
    make_meshes(ctx, meshes);
    dt_module *root = many_new(meshes, DT_F32, DT_F32, MANY - 1);
    for (int i = 0; i < MANY; i++) of[i] = many[i].of;
    dt_module_params(root, NULL, params, MANY - 1);
    give_gradients(params, of, MANY - 1, 1);
    dt_clip_grad_norm(root, INFINITY);
    moves before = moves_of(meshes[0], NULL);
    expect(dt_clip_grad_norm(root, 1) != NULL, "%s", dt_context_error(ctx));
    moves got = less(moves_of(meshes[0], NULL), &before);
    expect_moves(got, &(moves){ { [DT_COMM_ALL_REDUCE] = 1 }, -1 }, 1, "squares");
    expect(got.bytes <= 2 * 5 * 8, "squares are %lld bytes", (long long)got.bytes);
    return dt_context_status(ctx);
}

static void clipping_adds_one_reduction(void) { launch(6, clip_moves, NULL); }

/* Gradients of zero stay zero; without gradients the norm is 0. */
static dt_status clip_nothing(dt_context *ctx, void *arg)
{
    dt_module *module = bag_new(mesh_of(ctx), DT_F32, parts, PARTS);
    dt_tensor *params[PARTS];
    (void)arg;
    dt_module_params(module, NULL, params, PARTS);
    expect_norm(dt_clip_grad_norm(module, 1), 0, 0, "no gradients");
    dt_backward(dt_mul_scalar(params[1], 1), dt_zeros(dt_tensor_spec(params[1])));
    expect_norm(dt_clip_grad_norm(module, 1), 0, 0, "zeros");
    double got[ELEMENTS], zeros[ELEMENTS] = { 0 };
    read_values(dt_grad(params[1]), got);
    expect(farthest(got, zeros) == 0, "zeros stay so");
    return dt_context_status(ctx);
}

static void nothing_is_clipped(void)
{
    launch(1, clip_nothing, NULL);
    launch(3, clip_nothing, NULL);
}

/* ---- masters ----------------------------------------------------------------------------------------------------- */

static void copy_values(dt_tensor *x, dt_tensor *values)
{
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x)));
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    expect(dt_copy_into(x, values) == DT_OK, "%s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
}

static void one_step(dt_module *module, dt_optim *optim, int step, double lr)
{
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    give_gradients(params, parts, PARTS, step);
    expect(dt_optim_step(optim, lr) == DT_OK, "%s", dt_context_error(module->ctx));
    dt_module_zero_grad(module);
}

/* Steps smaller than a bf16 can show add up. */
static dt_status small_steps(dt_context *ctx, void *arg)
{
    static const part one[] = { { "", "x:S(0)", "", "" } };
    (void)arg;
    dt_module *module = bag_new(mesh_of(ctx), DT_BF16, one, 1);
    dt_tensor *param = NULL;
    double before[ELEMENTS], after[ELEMENTS];
    dt_module_params(module, NULL, &param, 1);
    copy_values(param, dt_full(dt_tensor_spec(param), 1));
    dt_optim *optim = dt_optim_sgd(module, NULL);
    read_values(param, before);
    for (int step = 0; step < 64; step++) {
        dt_backward(dt_mul_scalar(param, 1), dt_full(dt_tensor_spec(param), -1));
        dt_optim_step(optim, 0x1p-12);
        dt_module_zero_grad(module);
    }
    read_values(param, after);
    for (int i = 0; i < ELEMENTS; i++) before[i] += 0x1p-6;
    expect(farthest(after, before) == 0, "%g off", farthest(after, before));
    return dt_context_status(ctx);
}

/* What somebody else writes is what is updated from then on. */
static dt_status written_outside(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_module *module = bag_new(mesh_of(ctx), DT_BF16, parts, PARTS);
    dt_optim *optim = new_momentum(module);
    dt_tensor *params[PARTS];
    double got[ELEMENTS], due[ELEMENTS];
    dt_module_params(module, NULL, params, PARTS);
    one_step(module, optim, 1, 0.1);
    for (int i = 0; i < PARTS; i++) copy_values(params[i], dt_full(dt_tensor_spec(params[i]), i));
    one_step(module, optim, 2, 0);
    for (int i = 0; i < PARTS; i++) {
        read_values(params[i], got);
        for (int k = 0; k < ELEMENTS; k++) due[k] = i;
        expect(farthest(got, due) == 0, "part %d is %g off", i, farthest(got, due));
    }
    return dt_context_status(ctx);
}

static dt_status take_states(dt_optim *optim, const dt_optim *from)
{
    for (int i = 0; i < optim->n; i++) {
        copy_values(optim->slots[i].param, from->slots[i].param);
        for (int k = 0; k < DTI_OPTIM_STATES; k++)
            if (optim->slots[i].state[k]) copy_values(optim->slots[i].state[k], from->slots[i].state[k]);
    }
    dti_optim_restored(optim, from->steps);
    return optim->ctx->status;
}

/* States that were read go on bit for bit. */
static dt_status restored(dt_context *ctx, void *arg)
{
    const struct kind *kind = arg;
    dt_module *a = bag_new(mesh_of(ctx), DT_BF16, parts, PARTS), *b = bag_new(mesh_of(ctx), DT_BF16, parts, PARTS);
    dt_optim *one = kind->make(a), *other = kind->make(b);
    dt_tensor *x[PARTS], *y[PARTS];
    dt_module_params(a, NULL, x, PARTS);
    dt_module_params(b, NULL, y, PARTS);
    one_step(a, one, 1, 0.1);
    one_step(a, one, 2, 0.1);
    take_states(other, one);
    one_step(a, one, 3, 0.1);
    one_step(b, other, 3, 0.1);
    for (int i = 0; i < PARTS; i++)
        expect(dt_tensor_checksum(x[i]) == dt_tensor_checksum(y[i]), "%s: part %d has other bits", kind->name, i);
    expect(dt_optim_steps(other) == 3, "%lld steps", (long long)dt_optim_steps(other));
    return dt_context_status(ctx);
}

static void masters_keep_what_is_rounded(void)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        launch(ranks, small_steps, NULL);
        launch(ranks, written_outside, NULL);
        for (int k = 0; k < DT_COUNT(kinds); k++) launch(ranks, restored, &kinds[k]);
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void tied_init(dt_module *self, const void *params)
{
    (void)params;
    dt_tensor *w = dt_module_param(self, "w", DT_SHAPE(4, 4), &(dt_param_params){ .dtype = DT_F64 });
    dt_module_tie(self, "again", w);
    dt_param_params of = { .dtype = DT_F64, .init = DT_INIT_ZEROS };
    *(dt_tensor **)dt_module_state(self) = w;
    ((dt_tensor **)dt_module_state(self))[1] = dt_module_param(self, "bias", DT_SHAPE(4), &of);
}

/* [b,4] twice through one weight. */
static dt_tensor *tied_forward(dt_module *self, dt_tensor *const *in)
{
    dt_tensor **own = dt_module_state(self);
    return dt_linear(dt_tanh(dt_linear(in[0], own[0], own[1])), own[0], NULL);
}

static const dt_module_type tied = { "tied", 2 * sizeof(dt_tensor *), 1, tied_init, tied_forward, NULL };

/* Data parallel, and fully sharded by dt_fully_shard's zero; 0 here: not at all. */
static dt_module *tied_new(dt_mesh *mesh, int zero)
{
    dt_module *module = dt_module_create(mesh, &tied, NULL);
    if (zero) dt_fully_shard(module, "", "dp", &(dt_fully_shard_params){ .zero = zero });
    dt_module_materialize(module, 3);
    return module;
}

typedef struct curve { int zero; double loss[20]; } curve;

static dt_status train(dt_context *ctx, void *arg)
{
    curve *c = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "dp");
    dt_module *module = tied_new(mesh, c->zero);
    dt_optim *optim = dt_optim_adamw(module, &(dt_adamw_params){ .weight_decay = 0.01, .no_decay = "bias" });
    expect(optim && optim->n == 2, "a tied parameter is one");
    dt_tensor *x = dt_randn(dt_spec_parse(mesh, "f64[12,4]@dp:S(0)"), 1);
    dt_tensor *y = dt_randn(dt_spec_parse(mesh, "f64[12,4]@dp:S(0)"), 2);
    for (int step = 0; step < DT_COUNT(c->loss); step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *far = dt_sub(dt_module_call(module, x), y), *loss = dt_mean(dt_mul(far, far), DT_ALL, false);
        double item = dt_tensor_item(loss);
        if (c->zero == 0 && dt_rank_count(ctx) == 1) c->loss[step] = item;
        expect(fabs(item - c->loss[step]) <= 1e-12 * c->loss[step],
               "%d ranks, zero %d, step %d: loss %.17g, alone %.17g", dt_rank_count(ctx), c->zero, step, item,
               c->loss[step]);
        dt_backward(loss, NULL);
        dt_clip_grad_norm(module, 0.5);
        expect(dt_optim_step(optim, dt_lr_cosine(step, 3, DT_COUNT(c->loss), 0.1, 0.01)) == DT_OK, "%s",
               dt_context_error(ctx));
        dt_module_zero_grad(module);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void training_is_the_same_on_all_ranks(void)
{
    curve c = { 0, { 0 } };
    for (; c.zero <= 3; c.zero++)
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) launch(ranks, train, &c);
    expect(c.loss[19] < 0.9 * c.loss[0], "loss %g, then %g", c.loss[0], c.loss[19]);
}

/* A dry run has the moves of a step, and no values. */
static void a_dry_step_is_counted(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_module *module = bag_new(mesh, DT_BF16, parts, PARTS);
    dt_optim *optim = new_adamw(module);
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    give_gradients(params, parts, PARTS, 1);
    moves before = moves_of(mesh, NULL);
    expect(dt_clip_grad_norm(module, 1) && dt_optim_step(optim, 0.1) == DT_OK, "%s", dt_context_error(ctx));
    expect(less(moves_of(mesh, NULL), &before).bytes > 0, "nothing moved");
    dt_context_destroy(&ctx);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void ask_beta1(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .beta1 = 1 }); }
static void ask_beta2(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .beta2 = -0.1 }); }
static void ask_eps(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .eps = -1 }); }
static void ask_nan(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .weight_decay = NAN }); }
static void ask_decay(dt_module *m) { dt_optim_sgd(m, &(dt_sgd_params){ .weight_decay = -1 }); }
static void ask_momentum(dt_module *m) { dt_optim_sgd(m, &(dt_sgd_params){ .momentum = 1.5 }); }
static void ask_nesterov(dt_module *m) { dt_optim_sgd(m, &(dt_sgd_params){ .nesterov = true }); }
static void ask_pattern(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .no_decay = "p1,**.bias" }); }
static void ask_no_pattern(dt_module *m) { dt_optim_adamw(m, &(dt_adamw_params){ .no_decay = "p[1" }); }
static void ask_rate(dt_module *m) { dt_optim_step(dt_optim_adamw(m, NULL), -1e-3); }
static void ask_no_rate(dt_module *m) { dt_optim_step(dt_optim_adamw(m, NULL), NAN); }
static void ask_norm(dt_module *m) { dt_clip_grad_norm(m, 0); }
static void ask_no_norm(dt_module *m) { dt_clip_grad_norm(m, NAN); }

static const struct refusal { void (*ask)(dt_module *m); dt_status status; const char *says; } refusals[] = {
    { ask_beta1, DT_ERR_ARG, "dt_optim_adamw: expected beta1 of at least 0 and below 1, got 1" },
    { ask_beta2, DT_ERR_ARG, "expected beta2 of at least 0 and below 1, got -0.1" },
    { ask_eps, DT_ERR_ARG, "expected eps of at least 0 and below inf, got -1" },
    { ask_nan, DT_ERR_ARG, "expected weight_decay of at least 0 and below inf, got nan" },
    { ask_decay, DT_ERR_ARG, "dt_optim_sgd: expected weight_decay of at least 0" },
    { ask_momentum, DT_ERR_ARG, "dt_optim_sgd: expected momentum of at least 0 and below 1, got 1.5" },
    { ask_nesterov, DT_ERR_ARG, "dt_optim_sgd: nesterov needs a momentum above 0" },
    { ask_pattern, DT_ERR_ARG, "dt_optim_adamw: no parameter matches \"**.bias\" of no_decay" },
    { ask_no_pattern, DT_ERR_PARSE, "p[1" },
    { ask_rate, DT_ERR_ARG, "dt_optim_step: expected a learning rate of at least 0, got -0.001" },
    { ask_no_rate, DT_ERR_ARG, "dt_optim_step: expected a learning rate of at least 0, got nan" },
    { ask_norm, DT_ERR_ARG, "dt_clip_grad_norm: expected a norm above 0, got 0" },
    { ask_no_norm, DT_ERR_ARG, "dt_clip_grad_norm: expected a norm above 0, got nan" },
};

/* A step that is refused leaves all as it was, and the next one is as if there had been none. */
static void expect_needed(dt_module *module)
{
    dt_context *ctx = module->ctx;
    dt_optim *optim = new_adamw(module);
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    give_gradients(params, parts, PARTS, 1);
    uint64_t before = dt_tensor_checksum(params[0]);
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *y = dt_mul(params[7], params[7]);
    expect(dt_optim_step(optim, 0.1) == DT_ERR_STATE, "the tape needs a parameter");
    expect_error(ctx, DT_ERR_STATE, "dt_optim_step: p7 f64[13,5] is to be written, and the tape still needs", "step");
    expect(y && dt_optim_steps(optim) == 0 && dt_tensor_checksum(params[0]) == before, "something was written");
    dt_scope_pop(ctx, scope, NULL);
    expect(dt_optim_step(optim, 0.1) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_tensor_checksum(params[0]) != before, "nothing was written");
    dt_module_zero_grad(module);
}

static dt_status refused(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = mesh_of(ctx);
    dt_module *module = bag_new(mesh, DT_F64, parts, PARTS);
    for (int i = 0; i < DT_COUNT(refusals); i++) {
        refusals[i].ask(module);
        expect_error(ctx, refusals[i].status, refusals[i].says, refusals[i].says);
    }
    expect_needed(module);
    bag_params params = { NULL, DT_F32, parts, PARTS };
    dt_module *bare = dt_module_create(mesh, &bag, &params);
    expect(dt_optim_adamw(bare, NULL) == NULL, "no values");
    expect_error(ctx, DT_ERR_STATE, "dt_optim_adamw: p0 has no values; see dt_module_materialize", "no values");
    expect(dt_optim_adamw(NULL, NULL) == NULL && dt_optim_sgd(NULL, NULL) == NULL, "no module");
    expect(dt_clip_grad_norm(NULL, 1) == NULL && dt_optim_step(NULL, 1) == DT_ERR_ARG, "nothing");
    expect(dt_optim_steps(NULL) == 0, "no optimiser");
    dt_optim *optim = dt_optim_adamw(module, NULL);
    dt_context_fail(ctx, DT_ERR_ARG, "by the program");
    expect(!dt_optim_adamw(module, NULL) && dt_optim_step(optim, 1) == DT_ERR_ARG, "failed before");
    expect(dt_optim_steps(optim) == 0, "no step");
    dt_context_clear(ctx);
    return dt_context_status(ctx);
}

static void bad_numbers_are_refused(void)
{
    launch(1, refused, NULL);
    launch(3, refused, NULL);
}

/* One rank that fails alone: the others are told, and nobody waits. */
static dt_status fail_alone(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_module *module = bag_new(mesh_of(ctx), DT_F64, parts, PARTS);
    dt_optim *optim = new_adamw(module);
    dt_tensor *params[PARTS];
    dt_module_params(module, NULL, params, PARTS);
    give_gradients(params, parts, PARTS, 1);
    if (dt_rank(ctx) == 1) return dt_context_fail(ctx, DT_ERR_ARG, "alone");
    return dt_optim_step(optim, 0.1);
}

static void a_rank_that_fails_is_told_of(void)
{
    char error[512] = "";
    expect(dt_launch_threads(3, fail_alone, NULL, error, sizeof error) == DT_ERR_ARG, "%s", error);
    expect(strstr(error, "alone") != NULL, "%s", error);
}

static const test_row rows[] = {
    { "steps_are_those_of_a_loop", steps_are_those_of_a_loop },
    { "bits_do_not_hang_on_the_mesh", bits_do_not_hang_on_the_mesh },
    { "a_step_reduces_once", a_step_reduces_once },
    { "clipping_gives_the_serial_norm", clipping_gives_the_serial_norm },
    { "clipping_adds_one_reduction", clipping_adds_one_reduction },
    { "nothing_is_clipped", nothing_is_clipped },
    { "masters_keep_what_is_rounded", masters_keep_what_is_rounded },
    { "training_is_the_same_on_all_ranks", training_is_the_same_on_all_ranks },
    { "a_dry_step_is_counted", a_dry_step_is_counted },
    { "bad_numbers_are_refused", bad_numbers_are_refused },
    { "a_rank_that_fails_is_told_of", a_rank_that_fails_is_told_of },
};

const suite the_suite = { "optim", rows, DT_COUNT(rows) };
