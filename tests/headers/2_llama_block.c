/* A Llama decoder block as a module; one table for TP + SP, one line for FSDP. No word about ranks in the model.
 * Run: ./llama_block --dt-ranks=8 --dt-mesh=tp=4 */
#include <dtensor/dtensor.h>

typedef struct config { int64_t width, heads, kv_heads, mlp_width; } config;

/* ---- the model: attention and block as user modules, linear, norm and SwiGLU from the library ------------------- */

typedef struct attention { dt_module *wq, *wk, *wv, *wo; int64_t heads, kv_heads, head; } attention;

static void attention_init(dt_module *self, const void *params)
{
    const config *c = params;
    attention *a = dt_module_state(self);
    dt_mesh *mesh = dt_module_mesh(self);
    a->heads = c->heads, a->kv_heads = c->kv_heads, a->head = c->width / c->heads;
    dt_linear_params whole_heads = { .unit = a->head };
    a->wq = dt_module_add(self, "wq", dt_nn_linear(mesh, c->width, a->heads * a->head, &whole_heads));
    a->wk = dt_module_add(self, "wk", dt_nn_linear(mesh, c->width, a->kv_heads * a->head, &whole_heads));
    a->wv = dt_module_add(self, "wv", dt_nn_linear(mesh, c->width, a->kv_heads * a->head, &whole_heads));
    a->wo = dt_module_add(self, "wo", dt_nn_linear(mesh, a->heads * a->head, c->width, NULL));
}

static dt_tensor *attention_forward(dt_module *self, dt_tensor *const *in)
{
    const attention *a = dt_module_state(self);
    dt_tensor *x = in[0];                                                    /* [b,s,w]   tp:R           */
    int64_t b = dt_tensor_size(x, 0), s = dt_tensor_size(x, 1);
    dt_tensor *q = dt_reshape(dt_module_call(a->wq, x), DT_SHAPE(b, s, a->heads, a->head));     /* tp:S(2) */
    dt_tensor *k = dt_reshape(dt_module_call(a->wk, x), DT_SHAPE(b, s, a->kv_heads, a->head));  /* 2 on 4 */
    dt_tensor *v = dt_reshape(dt_module_call(a->wv, x), DT_SHAPE(b, s, a->kv_heads, a->head));
    q = dt_rope(q, 500000.0, 0);
    k = dt_rope(k, 500000.0, 0);
    dt_tensor *o = dt_attention(q, k, v, &(dt_attention_params){ .causal = true });
    return dt_module_call(a->wo, dt_reshape(o, DT_SHAPE(b, s, -1)));         /* [b,s,w]   tp:P -> tp:S(1) */
}

static const dt_module_type attention_type = {
    .name = "attention", .state_bytes = sizeof(attention), .init = attention_init, .forward = attention_forward,
};

typedef struct block { dt_module *attn_norm, *attn, *mlp_norm, *mlp; } block;

static void block_init(dt_module *self, const void *params)
{
    const config *c = params;
    block *b = dt_module_state(self);
    dt_mesh *mesh = dt_module_mesh(self);
    b->attn_norm = dt_module_add(self, "attn_norm", dt_nn_rms_norm(mesh, c->width, 0, DT_F32));
    b->attn = dt_module_add(self, "attn", dt_module_create(mesh, &attention_type, c));
    b->mlp_norm = dt_module_add(self, "mlp_norm", dt_nn_rms_norm(mesh, c->width, 0, DT_F32));
    b->mlp = dt_module_add(self, "mlp", dt_nn_swiglu(mesh, c->width, c->mlp_width, DT_F32));
}

static dt_tensor *block_forward(dt_module *self, dt_tensor *const *in)
{
    const block *b = dt_module_state(self);
    dt_tensor *x = in[0];                                                    /* [b,s,w]   dp:S(0),tp:S(1) */
    x = dt_add(x, dt_module_call(b->attn, dt_module_call(b->attn_norm, x)));
    return dt_add(x, dt_module_call(b->mlp, dt_module_call(b->mlp_norm, x)));
}

static const dt_module_type block_type = {
    .name = "block", .state_bytes = sizeof(block), .init = block_init, .forward = block_forward,
};

/* ---- the placements: TP + SP in nine rows, FSDP in one line ---------------------------------------------------- */

static const dt_style_row tp_sp[] = {
    { "attn_norm", &dt_style_sequence, NULL, NULL },
    { "attn", &dt_style_io, "R", NULL },                    /* one all-gather for q, k and v */
    { "attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "attn.wo", &dt_style_rowwise, NULL, "S(1)" },         /* reduce-scatter */
    { "mlp_norm", &dt_style_sequence, NULL, NULL },
    { "mlp", &dt_style_io, "R", NULL },
    { "mlp.gate", &dt_style_colwise, NULL, NULL },
    { "mlp.up", &dt_style_colwise, NULL, NULL },
    { "mlp.down", &dt_style_rowwise, NULL, "S(1)" },
};

static dt_status rank_main(dt_context *ctx, void *arg)
{
    const config *c = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "dp,tp");
    dt_module *model = dt_module_create(mesh, &block_type, c);
    dt_parallelize(model, "tp", tp_sp, DT_COUNT(tp_sp));
    dt_fully_shard(model, "", "dp", &(dt_fully_shard_params){ .compute = DT_BF16 });
    dt_module_materialize(model, 1);

    dt_tensor *params[32];
    int n = dt_module_params(model, "**", params, DT_COUNT(params));
    for (int i = 0; i < n; i++)
        dt_print(ctx, "%-24s %s\n", dt_param_path(params[i]), dt_spec_text(dt_tensor_spec(params[i])));

    const dt_spec *spec = dt_spec_create(mesh, DT_BF16, DT_SHAPE(4, 64, c->width), "dp:S(0),tp:S(1)");
    dt_counters before = dt_mesh_counters(mesh, "tp");
    dt_tensor *y = dt_module_call(model, dt_randn(spec, 2));
    dt_backward(dt_mean(dt_mul(y, y), DT_ALL, false), NULL);
    dt_counters after = dt_mesh_counters(mesh, "tp");

    dt_print(ctx, "y %s\n", dt_spec_text(dt_tensor_spec(y)));
    dt_print(ctx, "tp: %d all-gathers, %d reduce-scatters\n",
             (int)(after.calls[DT_COMM_ALL_GATHER] - before.calls[DT_COMM_ALL_GATHER]),
             (int)(after.calls[DT_COMM_REDUCE_SCATTER] - before.calls[DT_COMM_REDUCE_SCATTER]));
    for (int i = 0; i < n && i < DT_COUNT(params); i++)     /* norms: tp:P(sum) until someone needs the whole */
        dt_print(ctx, "d %-22s %s\n", dt_param_path(params[i]), dt_spec_text(dt_tensor_spec(dt_grad(params[i]))));
    return dt_context_status(ctx);
}

int main(int argc, char **argv)
{
    config c = { .width = 256, .heads = 8, .kv_heads = 2, .mlp_width = 688 };
    return dt_launch(&argc, &argv, rank_main, &c);
}
