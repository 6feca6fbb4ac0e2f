/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU; no biases. */
#include "nn/layers.h"

static double or_else(double number, double otherwise) { return number != 0 ? number : otherwise; }

static bool has_params(const dt_module *self, const void *params)
{
    if (!params) dt_context_fail(dt_module_context(self), DT_ERR_ARG, "llama: no params");
    return params != NULL;
}

/* ---- block ------------------------------------------------------------------------------------------------------- */

typedef struct block { dt_module *attn_norm, *attn, *mlp_norm, *mlp; } block;

static void block_init(dt_module *self, const void *params)
{
    const dt_llama_params *p = params;
    dt_mesh *mesh = dt_module_mesh(self);
    block *b = dt_module_state(self);
    if (!has_params(self, p)) return;
    const dt_nn_attention_params heads = { .width = p->width, .heads = p->heads, .kv_heads = p->kv_heads,
                                           .rope_base = or_else(p->rope_base, 10000), .causal = true,
                                           .dtype = p->dtype };
    b->attn_norm = dt_module_add(self, "attn_norm", dt_nn_rms_norm(mesh, p->width, p->eps, p->dtype));
    b->attn = dt_module_add(self, "attn", dt_nn_attention(mesh, &heads));
    b->mlp_norm = dt_module_add(self, "mlp_norm", dt_nn_rms_norm(mesh, p->width, p->eps, p->dtype));
    b->mlp = dt_module_add(self, "mlp", dt_nn_swiglu(mesh, p->width, p->mlp_width, p->dtype));
    dti_nn_calm(self, "attn.wo.weight", p->layers);
    dti_nn_calm(self, "mlp.down.weight", p->layers);
}

static dt_tensor *block_forward(dt_module *self, dt_tensor *const *in)
{
    const block *b = dt_module_state(self);
    dt_tensor *x = in[0];                                      /* [b,s,w]                                          */
    x = dt_add(x, dt_module_call(b->attn, dt_module_call(b->attn_norm, x)));
    return dt_add(x, dt_module_call(b->mlp, dt_module_call(b->mlp_norm, x)));
}

static const dt_module_type block_type = {
    .name = "llama_block", .state_bytes = sizeof(block), .init = block_init, .forward = block_forward,
};

dt_module *dt_nn_llama_block(dt_mesh *mesh, const dt_llama_params *params)
{
    return dt_module_create(mesh, &block_type, params);
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct llama { dt_module *embed, *layers, *norm, *head; } llama;

static dt_module *make_block(dt_mesh *mesh, const void *params) { return dt_nn_llama_block(mesh, params); }

static void llama_init(dt_module *self, const void *params)
{
    const dt_llama_params *p = params;
    dt_mesh *mesh = dt_module_mesh(self);
    llama *m = dt_module_state(self);
    if (!has_params(self, p)) return;
    m->embed = dt_module_add(self, "embed", dt_nn_embedding(mesh, p->vocab, p->width, p->dtype));
    m->layers = dt_module_add(self, "layers", dti_nn_layers(mesh, p->layers, make_block, p));
    m->norm = dt_module_add(self, "norm", dt_nn_rms_norm(mesh, p->width, p->eps, p->dtype));
    dt_tensor *tied = p->tied ? dti_nn_embedding_weight(m->embed) : NULL;
    m->head = dt_module_add(self, "head", dti_nn_head(mesh, p->width, p->vocab, p->dtype, tied));
}

static dt_tensor *llama_forward(dt_module *self, dt_tensor *const *in)
{
    const llama *m = dt_module_state(self);
    dt_tensor *x = dt_module_call(m->embed, in[0]);            /* [b,s] -> [b,s,w]                                 */
    x = dt_module_call(m->layers, x);
    return dt_module_call(m->head, dt_module_call(m->norm, x)); /* [b,s,vocab]                                     */
}

static const dt_module_type llama_type = {
    .name = "llama", .state_bytes = sizeof(llama), .init = llama_init, .forward = llama_forward,
};

dt_module *dt_nn_llama(dt_mesh *mesh, const dt_llama_params *params)
{
    return dt_module_create(mesh, &llama_type, params);
}
