/* SPDX-License-Identifier: Apache-2.0
 *
 * The norm of all gradients, and their clipping by it. The norm stays on the devices: what it comes to is multiplied
 * in, whatever it is. Invariant: each element counts once, wherever its gradient lies and whoever has copies. */
#include <math.h>

#include "train/optim.h"

/* The parameters below root that have a gradient, and where these are to lie. */
typedef struct clipping { dt_context *ctx; int n, room; dt_tensor **params, **grads; const dt_spec **specs; } clipping;

static void fini(clipping *c)
{
    size_t bytes = (size_t)c->room * sizeof(void *);
    dti_context_give(c->ctx, c->params, bytes);
    dti_context_give(c->ctx, c->grads, bytes);
    dti_context_give(c->ctx, (void *)c->specs, bytes);
}

static bool init(clipping *c, dt_module *root)
{
    *c = (clipping){ .ctx = root->ctx, .room = dt_module_params(root, NULL, NULL, 0) };
    size_t bytes = (size_t)c->room * sizeof(void *);
    c->params = dti_context_borrow(c->ctx, bytes);
    c->grads = dti_context_borrow(c->ctx, bytes);
    c->specs = dti_context_borrow(c->ctx, bytes);
    if (!c->params || !c->grads || !c->specs) return false;
    dt_module_params(root, NULL, c->params, c->room);
    for (int i = 0; i < c->room; i++) {
        if (!dt_grad(c->params[i])) continue;
        c->params[c->n] = c->params[i];
        if (!(c->specs[c->n] = dti_state_spec(c->params[i]))) return false;
        c->n++;
    }
    return true;
}

/* A scalar as the gradients that it multiplies want it. */
static dt_tensor *lie_with(dt_tensor *scalar, const dt_tensor *grad)
{
    if (scalar && scalar->spec->mesh != grad->spec->mesh)
        scalar = dt_redistribute_to(scalar, grad->spec->mesh, "");
    if (scalar && dt_spec_dtype(scalar->spec) != dt_spec_dtype(grad->spec))
        scalar = dt_cast(scalar, dt_spec_dtype(grad->spec));
    return scalar;
}

static bool alike(const dt_tensor *a, const dt_tensor *b)
{
    return a->spec->mesh == b->spec->mesh && dt_spec_dtype(a->spec) == dt_spec_dtype(b->spec);
}

/* Those of one mesh and dtype are one list. */
static bool multiply(dt_tensor **grads, int n, dt_tensor *by)
{
    for (int first = 0, own; first < n; first += own) {
        own = 0;
        for (int k = first; k < n; k++)
            if (alike(grads[k], grads[first])) {
                dt_tensor *other = grads[first + own];
                grads[first + own++] = grads[k];
                grads[k] = other;
            }
        dt_tensor *scalar = lie_with(by, grads[first]);
        if (!scalar || dt_mul_into_list(grads + first, own, scalar)) return false;
    }
    return true;
}

static dt_tensor *clip(clipping *c, dt_module *root, double max_norm)
{
    if (c->n == 0) return dt_zeros(dt_spec_create(root->mesh, DT_F32, DT_SCALAR, ""));
    if (!dti_grads_settle(c->ctx, c->params, c->specs, c->n, c->grads)) return NULL;
    dt_tensor *norm = dt_norm_list(c->grads, c->n);
    if (!norm || isinf(max_norm)) return norm;
    dt_tensor *by = dt_clamp(dt_div(dt_fill(norm, max_norm), norm), -INFINITY, 1);
    return by && multiply(c->grads, c->n, by) ? norm : NULL;
}

dt_tensor *dt_clip_grad_norm(dt_module *root, double max_norm)
{
    dt_context *ctx = root ? root->ctx : NULL;
    if (dti_failed(ctx)) return NULL;
    if (!(max_norm > 0))
        return dti_fail(ctx, DT_ERR_ARG, "dt_clip_grad_norm: expected a norm above 0, got %g", max_norm), NULL;
    clipping c;
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *norm = scope && init(&c, root) ? clip(&c, root, max_norm) : NULL;
    if (scope) fini(&c);
    if (scope) norm = dt_scope_pop(ctx, scope, dti_failed(ctx) ? NULL : norm);
    return norm;
}
