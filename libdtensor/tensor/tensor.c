/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor handles: made, shared, kept, held, and asked for their parts. */
#include "tensor/tensor.h"

#include <stdlib.h>

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

dti_body *dti_tensor_body(dt_tensor *x)
{
    if (x->body) return x->body;
    x->body = dti_context_borrow(x->ctx, sizeof *x->body);
    if (x->body) *x->body = (dti_body){ .references = 1, .handles = !x->hidden };
    return x->body;
}

static void drop_copies(dti_body *body)
{
    while (body->copies) {
        dt_tensor *copy = body->copies;
        body->copies = copy->next_copy;
        dti_tensor_destroy(copy);
    }
}

void dti_tensor_need(dt_tensor *x) { x->body->needs++; }

void dti_tensor_need_no_more(dt_tensor *x)
{
    if (--x->body->needs == 0 && x->body->handles == 0) drop_copies(x->body);
}

static void release_body(dt_tensor *x)
{
    dti_body *body = x->body;
    if (!body) return;
    body->others -= x->other;
    if (!x->hidden && --body->handles == 0) drop_copies(body);
    if (--body->references) return;
    drop_copies(body);
    if (body->node) x->ctx->recorder->release(body->node);
    dti_context_give(x->ctx, body, sizeof *body);
}

void dti_tensor_drop_copies(dt_tensor *x) { drop_copies(x->body); }

void dti_tensor_leave(dt_tensor *x)
{
    release_body(x);
    x->body = NULL;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void destroy(dti_handle *handle)
{
    dt_tensor *x = (dt_tensor *)(void *)handle;
    release_body(x);
    dti_origin_release(x->origin);
    dti_storage_release(x->storage);
    if (x->text) free(x->text);
    dti_context_give(x->ctx, x, sizeof *x);
}

void dti_tensor_destroy(dt_tensor *x)
{
    if (x) destroy(&x->handle);
}

dt_tensor *dti_tensor_hide(dt_tensor *x)
{
    if (!x || x->hidden) return x;
    dti_scope_disown(&x->handle);
    x->hidden = true;
    if (x->other) x->body->others--;
    x->other = false;
    if (x->body && --x->body->handles == 0) drop_copies(x->body);
    return x;
}

dt_tensor *dti_tensor_new(const dt_spec *spec, dti_storage *storage)
{
    dt_context *ctx = spec->mesh->ctx;
    dt_tensor *x = dti_context_borrow(ctx, sizeof *x);
    if (!x) {
        dti_storage_release(storage);
        return NULL;
    }
    *x = (dt_tensor){ .handle.destroy = destroy, .ctx = ctx, .spec = spec, .storage = storage };
    dti_scope_own(ctx, &x->handle);
    return x;
}

dt_tensor *dti_tensor_share(dt_tensor *x)
{
    dti_body *body = dti_tensor_body(x);
    dt_tensor *y = body ? dti_tensor_new(x->spec, x->storage ? dti_storage_retain(x->storage) : NULL) : NULL;
    if (!y) return NULL;
    y->body = body;
    y->named = x->named;
    y->origin = dti_origin_hold(x->origin);
    y->other = x->other;
    body->others += x->other;
    body->references++;
    body->handles++;
    return y;
}

bool dti_tensor_ok(const dt_tensor *x)
{
    if (!x || dti_failed(x->ctx)) return false;
    if (x->unmade)
        dti_fail(x->ctx, DT_ERR_STATE, "%s has no values yet; see dt_module_materialize", dt_spec_text(x->spec));
    return !x->unmade;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const dt_spec *dt_tensor_spec(const dt_tensor *x) { return x ? x->spec : NULL; }

int64_t dt_tensor_size(const dt_tensor *x, int dim)
{
    if (!x || dti_failed(x->ctx)) return 0;
    int n = x->spec->shape.n;
    if (dim < -n || dim >= n) {
        dti_fail(x->ctx, DT_ERR_ARG, "dt_tensor_size: no dim %d in %s", dim, dt_spec_text(x->spec));
        return 0;
    }
    return x->spec->shape.dim[dim < 0 ? dim + n : dim];
}

const void *dt_tensor_data(const dt_tensor *x) { return x && x->storage ? x->storage->bytes : NULL; }

/* ---- beyond scopes ----------------------------------------------------------------------------------------------- */

dt_tensor *dt_tensor_keep(dt_tensor *x)
{
    if (x) dti_scope_keep(x->ctx, &x->handle);
    return x;
}

void dt_tensor_hold(dt_tensor **slot, dt_tensor *x)
{
    if (!slot) {
        if (x) dti_fail(x->ctx, DT_ERR_ARG, "dt_tensor_hold: no slot for %s", dt_spec_text(x->spec));
        return;
    }
    bool made = !x || !x->unmade || dti_tensor_ok(x); /* values would not come to another handle                   */
    dt_tensor *held = x && made ? dti_tensor_share(x) : NULL;
    if (held) dti_scope_disown(&held->handle);
    if (*slot) {
        dti_scope_disown(&(*slot)->handle);
        dti_tensor_destroy(*slot);
    }
    *slot = held;
}
