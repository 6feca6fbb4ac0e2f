/* Tensor-parallel MLP on a synthetic regression, AdamW. Run: ./tp_mlp --dt-ranks=8 --dt-mesh=tp=4 --steps=200 */
#include <dtensor/dtensor.h>

typedef struct mlp { dt_tensor *up, *down, *bias; } mlp;

static void mlp_init(dt_module *self, const void *params)
{
    int64_t width = *(const int64_t *)params;
    mlp *m = dt_module_state(self);
    m->up = dt_module_param(self, "up", DT_SHAPE(4 * width, width), NULL);
    m->down = dt_module_param(self, "down", DT_SHAPE(width, 4 * width), NULL);
    m->bias = dt_module_param(self, "bias", DT_SHAPE(width), &(dt_param_params){ .init = DT_INIT_ZEROS });
}

static dt_tensor *mlp_forward(dt_module *self, dt_tensor *const *in)
{
    const mlp *m = dt_module_state(self);
    dt_tensor *h = dt_gelu(dt_linear(in[0], m->up, NULL));  /* [b, 4w] dp:S(0),tp:S(1)    no communication    */
    return dt_linear(h, m->down, m->bias);                  /* [b, w]  dp:S(0),tp:P(sum)  bias counted once   */
}

static const dt_module_type mlp_type = { "mlp", sizeof(mlp), 1, mlp_init, mlp_forward, NULL };

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    int64_t steps = dt_option_int(ctx, "steps", 200, "training steps");
    int64_t batch = dt_option_int(ctx, "batch", 256, "samples per step");
    int64_t width = dt_option_int(ctx, "width", 128, "features");
    double lr = dt_option_float(ctx, "lr", 3e-3, "peak learning rate");
    if (!dt_options_done(ctx)) return dt_context_status(ctx);

    dt_mesh *mesh = dt_mesh_create(ctx, "dp,tp");
    dt_module *model = dt_module_create(mesh, &mlp_type, &width);
    dt_place(model, "up", "tp:S(0)", NULL);                 /* the whole of tensor parallelism: two lines */
    dt_place(model, "down", "tp:S(1)", NULL);
    dt_module_materialize(model, 42);
    dt_optim *adamw = dt_optim_adamw(model, &(dt_adamw_params){ .weight_decay = 0.01, .no_decay = "bias" });
    const dt_spec *x_spec = dt_spec_create(mesh, DT_F32, DT_SHAPE(batch, width), "dp:S(0)");
    dt_tensor *truth = dt_randn(dt_spec_create(mesh, DT_F32, DT_SHAPE(width, width), NULL), 7);

    for (int64_t step = 0; step < steps && !dt_context_status(ctx); step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *x = dt_randn(x_spec, 1000 + (uint64_t)step);
        dt_tensor *error = dt_sub(dt_module_call(model, x), dt_gelu(dt_linear(x, truth, NULL)));
        dt_tensor *loss = dt_mean(dt_mul(error, error), DT_ALL, false);

        dt_module_zero_grad(model);
        dt_backward(loss, NULL);
        dt_tensor *norm = dt_clip_grad_norm(model, 1.0);
        dt_optim_step(adamw, dt_lr_cosine(step, steps / 10, steps, lr, lr / 10));
        if (step % 20 == 0 || step == steps - 1)
            dt_print(ctx, "step %4d  loss %.6f  |grad| %.4f\n", (int)step, dt_tensor_item(loss), dt_tensor_item(norm));
        dt_scope_pop(ctx, scope, NULL);
    }
    dt_counters tp = dt_mesh_counters(mesh, "tp"), dp = dt_mesh_counters(mesh, "dp");
    dt_print(ctx, "all-reduces: tp %d, dp %d\n", (int)tp.calls[DT_COMM_ALL_REDUCE], (int)dp.calls[DT_COMM_ALL_REDUCE]);
    return dt_context_status(ctx);
}

int main(int argc, char **argv)
{
    return dt_launch(&argc, &argv, rank_main, NULL);
}
