/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients between backward and the optimiser. Invariant: once settled, a gradient lies where its parameter's states
 * do, in their dtype, and is not P; settling again moves nothing. */
#include "autograd/tape.h"
#include "train/optim.h"

static const dt_spec *widened(const dt_spec *spec)
{
    return dti_spec_as_dtype(spec, dt_spec_dtype(spec) == DT_F64 ? DT_F64 : DT_F32);
}

/* Pieces of mesh dims of one rank are whole: there states lie as the parameter. */
const dt_spec *dti_state_spec(const dt_tensor *x)
{
    const dti_param *param = dti_param_of(x);
    const dt_spec *own = widened(x->spec), *asked = own && param && param->state ? widened(param->state) : own;
    return asked && asked->layout == own->layout ? own : asked;
}

typedef struct moving { int n; dt_tensor **from, **to; const dt_spec **specs; int *which; } moving;

/* What a gradient travels as: as its group says where it is to be summed, else as it is. NULL: the error. */
static const dt_spec *travelling(const dt_tensor *x, const dt_spec *spec)
{
    const dti_param *param = dti_param_of(x);
    const dt_module *group = param ? param->group : NULL;
    if (!group || !spec->layout->partial_count) return spec;
    return dti_spec_as_dtype(spec, group->use_params.reduce);
}

/* from becomes what travels. */
static bool round_all(dt_context *ctx, dt_tensor *const *params, moving *m)
{
    bool rounds = false;
    for (int k = 0; k < m->n; k++) {
        const dt_spec *spec = m->from[k]->spec;
        if (!(m->specs[k] = travelling(params[m->which[k]], spec))) return false;
        rounds |= m->specs[k] != spec;
    }
    if (!rounds) return true;
    if (!dti_tensors_to(ctx, m->from, m->specs, m->n, m->to)) return false;
    for (int k = 0; k < m->n; k++) m->from[k] = m->to[k];
    return true;
}

static bool move(dt_context *ctx, dt_tensor *const *params, const dt_spec *const *specs, int n, moving *m)
{
    for (int i = 0; i < n; i++) {
        dt_tensor *grad = dt_grad(params[i]);
        if (grad->spec == specs[i]) continue;
        m->from[m->n] = grad;
        m->which[m->n++] = i;
    }
    if (!round_all(ctx, params, m)) return false;
    for (int k = 0; k < m->n; k++) m->specs[k] = specs[m->which[k]];
    if (m->n && !dti_tensors_to(ctx, m->from, m->specs, m->n, m->to)) return false;
    for (int k = 0; k < m->n; k++)
        if (!dti_grad_set(params[m->which[k]], m->to[k])) return false;
    return true;
}

/* In a scope of its own: from then on gradients are their leaves' alone, and can be written. */
bool dti_grads_settle(dt_context *ctx, dt_tensor *const *params, const dt_spec *const *specs, int n, dt_tensor **grads)
{
    size_t bytes = (size_t)n * sizeof(void *), which = (size_t)n * sizeof(int);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    moving m = { 0, dti_context_borrow(ctx, bytes), dti_context_borrow(ctx, bytes), dti_context_borrow(ctx, bytes),
                 dti_context_borrow(ctx, which) };
    bool done = scope && m.from && m.to && m.specs && m.which && move(ctx, params, specs, n, &m);
    if (scope) dt_scope_pop(ctx, scope, NULL);
    dti_context_give(ctx, m.from, bytes);
    dti_context_give(ctx, m.to, bytes);
    dti_context_give(ctx, (void *)m.specs, bytes);
    dti_context_give(ctx, m.which, which);
    for (int i = 0; i < n && done; i++) grads[i] = dt_grad(params[i]);
    return done;
}
