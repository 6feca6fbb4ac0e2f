/* SPDX-License-Identifier: Apache-2.0
 *
 * A module type, a style and hooks of one's own. The library has no MLP with a squared ReLU; here is one, and what a
 * type is made of: a struct of state, init that adds parameters and children, forward as ops on tensors. A style is
 * four texts: where parameters lie along one mesh dim, what inputs and the result are placed as there. With it one row
 * of a table splits every such MLP, wherever it stands, and the rest is the library's: gradients, the optimiser,
 * checkpoints, fully_shard know nothing of this type and need not.
 *
 * Hooks see what goes in and out. One drops inputs, in training alone, keyed by path and step: the same elements on
 * every mesh. One looks on: how large are results?
 *
 * Run: ./10_own_module --dt-ranks=4
 *      ./10_own_module --dt-ranks=3         96 features over 3 ranks, the same numbers */
#include "show.h"

enum { LAYERS = 2, WIDTH = 24, SAMPLES = 32, STEPS = 60 };

/* ---- an MLP: down(relu(up(x))^2), after So et al. 2021, Primer: Searching for Efficient Transformers ------------- */

typedef struct squared { dt_tensor *up, *down; } squared;

static void squared_init(dt_module *self, const void *params)
{
    int64_t width = *(const int64_t *)params;
    squared *m = dt_module_state(self);
    m->up = dt_module_param(self, "up", DT_SHAPE(4 * width, width), NULL);
    m->down = dt_module_param(self, "down", DT_SHAPE(width, 4 * width), &(dt_param_params){ .scale = 0.5 });
}

/* [b, w] -> [b, w] */
static dt_tensor *squared_forward(dt_module *self, dt_tensor *const *in)
{
    const squared *m = dt_module_state(self);
    dt_tensor *h = dt_relu(dt_linear(in[0], m->up, NULL));             /* [b, 4w] tp:S(1)                          */
    return dt_linear(dt_mul(h, h), m->down, NULL);                     /* [b, w] tp:P(sum), by the style R         */
}

static const dt_module_type squared_type = {
    .name = "squared", .state_bytes = sizeof(squared), .init = squared_init, .forward = squared_forward,
};

/* Along one mesh dim: rows of up, columns of down, whole inputs and results. */
static const dt_style squared_split = { .name = "squared", .params = "up=S(0);down=S(1)", .in = "R", .out = "R" };

/* ---- a tower of them, each with a norm, beside a residual -------------------------------------------------------- */

typedef struct tower { dt_module *norm[LAYERS], *mlp[LAYERS]; } tower;

static void tower_init(dt_module *self, const void *params)
{
    static const char *const norms[LAYERS] = { "norm0", "norm1" }, *const mlps[LAYERS] = { "mlp0", "mlp1" };
    int64_t width = *(const int64_t *)params;
    tower *t = dt_module_state(self);
    dt_mesh *mesh = dt_module_mesh(self);
    for (int i = 0; i < LAYERS; i++) {
        t->norm[i] = dt_module_add(self, norms[i], dt_nn_rms_norm(mesh, width, 0, DT_F32));
        t->mlp[i] = dt_module_add(self, mlps[i], dt_module_create(mesh, &squared_type, params));
    }
}

static dt_tensor *tower_forward(dt_module *self, dt_tensor *const *in)
{
    const tower *t = dt_module_state(self);
    dt_tensor *x = in[0];
    for (int i = 0; i < LAYERS; i++) x = dt_add(x, dt_module_call(t->mlp[i], dt_module_call(t->norm[i], x)));
    return x;
}

static const dt_module_type tower_type = {
    .name = "tower", .state_bytes = sizeof(tower), .init = tower_init, .forward = tower_forward,
};

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static dt_tensor *drop(dt_module *self, int index, dt_tensor *in, void *arg)
{
    (void)arg;
    return dt_module_is_training(self) ? dt_dropout(in, 0.05, dt_module_key(self, (uint64_t)index)) : in;
}

/* arg: whether to look. What a hook returns goes on, so it returns what it got. */
static dt_tensor *look(dt_module *self, dt_tensor *out, void *arg)
{
    const bool *looks = arg;
    if (!*looks) return out;
    dt_tensor *x = dt_detach(out);
    dt_print(dt_module_context(self), "%s gives %s, mean square %.1f\n", dt_module_path(self),
             dt_spec_text(dt_tensor_spec(x)), dt_tensor_item(dt_mean(dt_mul(x, x), DT_ALL, false)));
    return out;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static dt_tensor *loss_of(dt_module *model, dt_tensor *truth, uint64_t seed)
{
    dt_mesh *mesh = dt_module_mesh(model);
    dt_tensor *x = dt_randn(dt_spec_create(mesh, DT_F32, DT_SHAPE(SAMPLES, WIDTH), NULL), seed);
    dt_tensor *error = dt_sub(dt_module_call(model, x), dt_linear(x, truth, NULL));
    return dt_mean(dt_mul(error, error), DT_ALL, false);
}

static void train(dt_module *model, dt_tensor *truth)
{
    dt_context *ctx = dt_module_context(model);
    dt_optim *adamw = dt_optim_adamw(model, NULL);
    for (int step = 0; step < STEPS && !dt_context_status(ctx); step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_counters before = dt_mesh_counters(dt_module_mesh(model), NULL);
        dt_tensor *loss = loss_of(model, truth, 1000 + (uint64_t)step);
        dt_module_zero_grad(model);
        dt_backward(loss, NULL);
        dt_optim_step(adamw, dt_lr_linear(step, 6, STEPS, 1e-2, 1e-3));
        if (step == 0) show_calls(dt_module_mesh(model), NULL, "a step moves", before);
        if (step % 20 == 0 || step == STEPS - 1) dt_print(ctx, "step %2d  loss %.2f\n", step, dt_tensor_item(loss));
        dt_scope_pop(ctx, scope, NULL);
    }
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    static const dt_style_row rows[] = { { "mlp*", &squared_split, NULL, NULL } };
    const int64_t width = WIDTH;
    bool looks = false;
    (void)arg;
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp");
    dt_module *model = dt_module_create(mesh, &tower_type, &width), *mlps[LAYERS];
    dt_parallelize(model, "tp", rows, DT_COUNT(rows));
    dt_module_materialize(model, 1);

    int n = dt_module_list(model, "mlp*", mlps, LAYERS);
    for (int i = 0; i < n && i < LAYERS; i++) dt_module_hook(mlps[i], drop, look, &looks);
    dt_tensor *params[2 * LAYERS + LAYERS];
    n = dt_module_params(model, NULL, params, DT_COUNT(params));
    for (int i = 0; i < n && i < DT_COUNT(params); i++)
        dt_print(ctx, "%-13s %s\n", dt_param_path(params[i]), dt_spec_text(dt_tensor_spec(params[i])));

    dt_tensor *truth = dt_randn(dt_spec_create(mesh, DT_F32, DT_SHAPE(WIDTH, WIDTH), NULL), 7);
    train(model, truth);
    dt_module_train(model, false);                                     /* nothing is dropped from here on          */
    looks = true;
    dt_print(ctx, "judged: loss %.2f\n", dt_tensor_item(loss_of(model, truth, 99)));
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
