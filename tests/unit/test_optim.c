/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimisers against a plain loop in f64, wherever parameters, states and gradients lie; what a step moves; clipping;
 * learning rates; the loss over tokens. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
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

typedef struct bag_params { dt_mesh *mesh; dt_dtype dtype; const part *parts; int n; } bag_params;

static void bag_init(dt_module *self, const void *params)
{
    const bag_params *p = params;
    dt_shape shape = DT_SHAPE(ROWS, COLUMNS);
    for (int i = 0; i < p->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        dt_tensor *x = dt_module_param(self, name, shape, &(dt_param_params){ p->dtype, DT_INIT_NORMAL, 0, 0, 0 });
        dti_param *param = dti_param_of(x);
        if (!expect(param != NULL, "no parameter %d", i)) return;
        dti_param_store(param, dt_spec_create(p->mesh, p->dtype, shape, p->parts[i].stored));
        if (p->parts[i].state) param->state = dt_spec_create(p->mesh, p->dtype, shape, p->parts[i].state);
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
    bag_params params = { mesh, dtype, of, n };
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

static const dt_adamw_params adamw_params = { .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1, .no_decay = "p1, p[36]" };
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

static const test_row rows[] = {
    { "steps_are_those_of_a_loop", steps_are_those_of_a_loop },
};

const suite the_suite = { "optim", rows, DT_COUNT(rows) };
