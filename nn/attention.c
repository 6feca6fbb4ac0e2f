/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped-query attention of a sequence to itself. Heads are units of the weights that make and take them, so however
 * these are cut, a head is on one rank. */
#include <math.h>

#include "nn/layers.h"

typedef struct attention { dt_nn_attention_params with; dt_module *wq, *wk, *wv, *wo; } attention;

/* Heads and their size, once the defaults are in. */
static bool read_params(dt_module *self, const dt_nn_attention_params *given, dt_nn_attention_params *with)
{
    dt_context *ctx = dt_module_context(self);
    if (!given) return dt_context_fail(ctx, DT_ERR_ARG, "attention: no params"), false;
    *with = *given;
    if (!with->kv_heads) with->kv_heads = with->heads;
    bool fits = with->heads > 0 && with->kv_heads > 0 && with->heads % with->kv_heads == 0;
    if (fits && !with->head && with->width % with->heads == 0) with->head = with->width / with->heads;
    if (!(with->rope_base >= 0 && with->rope_base < INFINITY))
        return dt_context_fail(ctx, DT_ERR_ARG, "attention: expected a rope_base above 0, or 0, got %g",
                               with->rope_base), false;
    if (fits && with->head > 0 && with->dropout >= 0 && with->dropout < 1) return true;
    dt_context_fail(ctx, DT_ERR_ARG, "attention: width %lld, %lld heads of %lld, %lld of k and v, dropout %g",
                    (long long)with->width, (long long)with->heads, (long long)with->head, (long long)with->kv_heads,
                    with->dropout);
    return false;
}

static dt_module *heads_of(dt_module *self, const char *name, int64_t heads)
{
    const dt_nn_attention_params *with = &((const attention *)dt_module_state(self))->with;
    dt_linear_params params = { .bias = with->bias, .dtype = with->dtype, .unit = with->head };
    return dt_module_add(self, name, dt_nn_linear(dt_module_mesh(self), with->width, heads * with->head, &params));
}

static void attention_init(dt_module *self, const void *params)
{
    attention *a = dt_module_state(self);
    dt_nn_attention_params *with = &a->with;
    if (!read_params(self, params, with)) return;
    a->wq = heads_of(self, "wq", with->heads);
    a->wk = heads_of(self, "wk", with->kv_heads);
    a->wv = heads_of(self, "wv", with->kv_heads);
    a->wo = dt_module_add(self, "wo",
                          dt_nn_linear(dt_module_mesh(self), with->heads * with->head, with->width,
                                       &(dt_linear_params){ .bias = with->bias, .dtype = with->dtype,
                                                            .in_unit = with->head }));
}

/* [b,s,w] -> [b,s,heads,d] */
static dt_tensor *project(const attention *a, dt_module *w, int64_t heads, dt_tensor *x)
{
    dt_tensor *y = dt_module_call(w, x);
    return dt_unflatten(y, -1, DT_SHAPE(heads, a->with.head));
}

static dt_tensor *attention_forward(dt_module *self, dt_tensor *const *in)
{
    const attention *a = dt_module_state(self);
    const dt_nn_attention_params *with = &a->with;
    dt_tensor *q = project(a, a->wq, with->heads, in[0]);
    dt_tensor *k = project(a, a->wk, with->kv_heads, in[0]);
    dt_tensor *v = project(a, a->wv, with->kv_heads, in[0]);
    if (with->rope_base != 0) {
        q = dt_rope(q, with->rope_base, 0);
        k = dt_rope(k, with->rope_base, 0);
    }
    dt_tensor *o = dt_attention(q, k, v, &(dt_attention_params){ .causal = with->causal });
    o = dt_module_call(a->wo, dt_flatten(o, 2, 3));            /* [b,s,h,d] -> [b,s,w]                             */
    bool drops = with->dropout > 0 && dt_module_is_training(self);
    return drops ? dt_dropout(o, with->dropout, dt_module_key(self, 0)) : o;
}

static const dt_module_type attention_type = {
    .name = "attention", .state_bytes = sizeof(attention), .init = attention_init, .forward = attention_forward,
};

dt_module *dt_nn_attention(dt_mesh *mesh, const dt_nn_attention_params *params)
{
    return dt_module_create(mesh, &attention_type, params);
}
