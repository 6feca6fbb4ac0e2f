/* SPDX-License-Identifier: Apache-2.0
 *
 * GPT: layer norms, learned positions, attention and GELU with biases, dropout. */
#include "nn/layers.h"

static bool has_params(const dt_module *self, const void *params)
{
    if (!params) dt_context_fail(dt_module_context(self), DT_ERR_ARG, "gpt: no params");
    return params != NULL;
}

/* ---- block ------------------------------------------------------------------------------------------------------- */

typedef struct block { dt_module *attn_norm, *attn, *mlp_norm, *mlp, *drop; } block;

static void block_init(dt_module *self, const void *params)
{
    const dt_gpt_params *p = params;
    dt_mesh *mesh = dt_module_mesh(self);
    block *b = dt_module_state(self);
    if (!has_params(self, p)) return;
    const dt_nn_attention_params heads = { .width = p->width, .heads = p->heads, .causal = true, .bias = true,
                                           .dropout = p->dropout, .dtype = p->dtype };
    int64_t mlp_width = p->mlp_width ? p->mlp_width : 4 * p->width;
    b->attn_norm = dt_module_add(self, "attn_norm", dt_nn_layer_norm(mesh, p->width, p->eps, p->dtype));
    b->attn = dt_module_add(self, "attn", dt_nn_attention(mesh, &heads));
    b->mlp_norm = dt_module_add(self, "mlp_norm", dt_nn_layer_norm(mesh, p->width, p->eps, p->dtype));
    b->mlp = dt_module_add(self, "mlp", dt_nn_gelu_mlp(mesh, p->width, mlp_width, p->dtype));
    b->drop = dt_module_add(self, "drop", dt_nn_dropout(mesh, p->dropout));
    dti_nn_calm(self, "attn.wo.weight", p->layers);
    dti_nn_calm(self, "mlp.down.weight", p->layers);
}

static dt_tensor *block_forward(dt_module *self, dt_tensor *const *in)
{
    const block *b = dt_module_state(self);
    dt_tensor *x = in[0];                                      /* [b,s,w]                                          */
    x = dt_add(x, dt_module_call(b->attn, dt_module_call(b->attn_norm, x)));
    dt_tensor *y = dt_module_call(b->mlp, dt_module_call(b->mlp_norm, x));
    return dt_add(x, dt_module_call(b->drop, y));
}

static const dt_module_type block_type = {
    .name = "gpt_block", .state_bytes = sizeof(block), .init = block_init, .forward = block_forward,
};

dt_module *dt_nn_gpt_block(dt_mesh *mesh, const dt_gpt_params *params)
{
    return dt_module_create(mesh, &block_type, params);
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct gpt { dt_module *embed, *positions, *drop, *layers, *norm, *head; int64_t most; } gpt;

static dt_module *make_block(dt_mesh *mesh, const void *params) { return dt_nn_gpt_block(mesh, params); }

static void gpt_init(dt_module *self, const void *params)
{
    const dt_gpt_params *p = params;
    dt_mesh *mesh = dt_module_mesh(self);
    gpt *m = dt_module_state(self);
    if (!has_params(self, p)) return;
    m->most = p->positions;
    m->embed = dt_module_add(self, "embed", dt_nn_embedding(mesh, p->vocab, p->width, p->dtype));
    m->positions = dt_module_add(self, "positions", dt_nn_embedding(mesh, p->positions, p->width, p->dtype));
    m->drop = dt_module_add(self, "drop", dt_nn_dropout(mesh, p->dropout));
    m->layers = dt_module_add(self, "layers", dti_nn_layers(mesh, p->layers, make_block, p));
    m->norm = dt_module_add(self, "norm", dt_nn_layer_norm(mesh, p->width, p->eps, p->dtype));
    dt_tensor *tied = p->tied ? dti_nn_embedding_weight(m->embed) : NULL;
    m->head = dt_module_add(self, "head", dti_nn_head(mesh, p->width, p->vocab, p->dtype, tied));
}

/* [s,w] */
static dt_tensor *positions_of(dt_module *self, dt_tensor *ids)
{
    const gpt *m = dt_module_state(self);
    int64_t s = dt_tensor_size(ids, -1);
    if (s > m->most)
        dt_context_fail(dt_module_context(self), DT_ERR_SHAPE, "a sequence of %lld, expected at most %lld positions",
                        (long long)s, (long long)m->most);
    const dt_spec *spec = dt_spec_create(dt_module_mesh(self), DT_I64, DT_SHAPE(s), NULL);
    return dt_module_call(m->positions, dt_arange(spec, 0, 1));
}

static dt_tensor *gpt_forward(dt_module *self, dt_tensor *const *in)
{
    const gpt *m = dt_module_state(self);
    dt_tensor *x = dt_module_call(m->embed, in[0]);            /* [b,s] -> [b,s,w]                                 */
    x = dt_module_call(m->drop, dt_add(x, positions_of(self, in[0])));
    x = dt_module_call(m->layers, x);
    return dt_module_call(m->head, dt_module_call(m->norm, x)); /* [b,s,vocab]                                     */
}

static const dt_module_type gpt_type = {
    .name = "gpt", .state_bytes = sizeof(gpt), .init = gpt_init, .forward = gpt_forward,
};

dt_module *dt_nn_gpt(dt_mesh *mesh, const dt_gpt_params *params) { return dt_module_create(mesh, &gpt_type, params); }
