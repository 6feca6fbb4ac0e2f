/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor-parallel MLP as a module of one's own, trained with AdamW on a function that it does not know. The module is
 * that of one rank: no word about ranks in it. Three lines place it, before its parameters have values:
 *
 *   up     tp:S(0)     its rows are columns of the product: h comes out in pieces, nothing moves
 *   down   tp:S(1)     meets h in pieces: the result is P, summands of the value; the bias counts once
 *   ""     out R       the module's result is placed as R: one all-reduce
 *
 * Backward nothing moves along tp: the gradient of an R result is R, and nobody asks for that of x. Where dp splits the
 * batch the gradients are P along dp, and are summed together by the first who needs their value: here the clipping.
 * The losses are the same on every mesh.
 *
 * Run: ./06_tp_mlp --dt-ranks=8 --dt-mesh=dp=2,tp=4 --dt-small=0
 *      ./06_tp_mlp --dt-ranks=1
 *      ./06_tp_mlp --dt-ranks=3 --dt-mesh=tp=3 --steps=200     128 rows over 3 ranks are 43, 43, 42 */
#include "show.h"

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct mlp { dt_tensor *up, *down, *bias; } mlp;

static void mlp_init(dt_module *self, const void *params)
{
    int64_t width = *(const int64_t *)params;
    mlp *m = dt_module_state(self);
    m->up = dt_module_param(self, "up", DT_SHAPE(4 * width, width), NULL);
    m->down = dt_module_param(self, "down", DT_SHAPE(width, 4 * width), NULL);
    m->bias = dt_module_param(self, "bias", DT_SHAPE(width), &(dt_param_params){ .init = DT_INIT_ZEROS });
}

/* [b, w] -> [b, w] */
static dt_tensor *mlp_forward(dt_module *self, dt_tensor *const *in)
{
    const mlp *m = dt_module_state(self);
    dt_tensor *h = dt_gelu(dt_linear(in[0], m->up, NULL));             /* [b, 4w] dp:S(0),tp:S(1)                  */
    return dt_linear(h, m->down, m->bias);                             /* [b, w] dp:S(0),tp:P(sum)                 */
}

static const dt_module_type mlp_type = {
    .name = "mlp", .state_bytes = sizeof(mlp), .init = mlp_init, .forward = mlp_forward,
};

static dt_module *make_mlp(dt_mesh *mesh, int64_t width)
{
    static const dt_style_row rows[] = { { "", &dt_style_io, NULL, "R" } };
    dt_module *model = dt_module_create(mesh, &mlp_type, &width);
    dt_place(model, "up", "tp:S(0)", NULL);
    dt_place(model, "down", "tp:S(1)", NULL);
    dt_parallelize(model, "tp", rows, DT_COUNT(rows));
    dt_module_materialize(model, 42);
    return model;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

typedef struct trainer {
    dt_mesh *mesh;
    dt_module *model;
    dt_optim *adamw;
    dt_tensor *truth;                                                  /* what is to be learnt                     */
    int64_t width, steps;
} trainer;

/* What a part of a step moved, along both mesh dims, in the step that is shown. */
static void show_part(const trainer *t, bool shown, const char *part, dt_counters before[2])
{
    static const char *dims[] = { "tp", "dp" };
    char what[64];
    for (int i = 0; i < 2; i++) {
        snprintf(what, sizeof what, "  %-8s along %s", part, dims[i]);
        if (shown) show_calls(t->mesh, dims[i], what, before[i]);
        before[i] = dt_mesh_counters(t->mesh, dims[i]);
    }
}

static dt_status train_step(const trainer *t, int64_t step)
{
    dt_context *ctx = dt_mesh_context(t->mesh);
    bool shown = step == 1;
    dt_counters before[2];
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *x = dt_randn(dt_spec_create(t->mesh, DT_F32, DT_SHAPE(64, t->width), "dp:S(0)"), 1000 + (uint64_t)step);
    dt_tensor *y = dt_gelu(dt_linear(x, t->truth, NULL));
    dt_module_zero_grad(t->model);
    show_part(t, false, "", before);
    dt_tensor *error = dt_sub(dt_module_call(t->model, x), y);
    dt_tensor *loss = dt_mean(dt_mul(error, error), DT_ALL, false);
    show_part(t, shown, "forward", before);
    dt_backward(loss, NULL);
    show_part(t, shown, "backward", before);
    dt_clip_grad_norm(t->model, 1);
    dt_optim_step(t->adamw, dt_lr_cosine(step, t->steps / 10, t->steps, 1e-2, 1e-3));
    show_part(t, shown, "clip,step", before);
    if (step % 20 == 0 || step == t->steps - 1)
        dt_print(ctx, "step %3" PRId64 "  loss %.2f\n", step, dt_tensor_item(loss));
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    trainer t = { .width = dt_option_int(ctx, "width", 32, "features"),
                  .steps = dt_option_int(ctx, "steps", 100, "training steps") };
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    t.mesh = dt_mesh_create(ctx, "dp,tp");
    t.model = make_mlp(t.mesh, t.width);
    t.adamw = dt_optim_adamw(t.model, &(dt_adamw_params){ .weight_decay = 0.01, .no_decay = "bias" });
    t.truth = dt_randn(dt_spec_create(t.mesh, DT_F32, DT_SHAPE(t.width, t.width), NULL), 7);

    dt_tensor *params[3];
    int n = dt_module_params(t.model, NULL, params, DT_COUNT(params));
    for (int i = 0; i < n; i++)
        dt_print(ctx, "%-5s %s\n", dt_param_path(params[i]), dt_spec_text(dt_tensor_spec(params[i])));
    for (int64_t step = 0; step < t.steps && !dt_context_status(ctx); step++) train_step(&t, step);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
