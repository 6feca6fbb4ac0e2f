/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing operands in place. Such calls are not recorded; so nothing that has a gradient takes part, but in a scope
 * without gradients, and there what is written is a leaf or has none. What holds of the elements, tensor/own.c says. */
#include "ops/write.h"

#include <stdio.h>

#include <dtensor/ops.h>

#include "autograd/tape.h"
#include "autograd/use.h"

bool dti_write_fits(dt_context *ctx, const dti_dispatch *d)
{
    for (int i = 0; i < d->op->writes; i++) {
        if (d->in[i]->layout == d->used[i]->layout && d->in[i]->layout == d->result[i]->layout) continue;
        dti_fail(ctx, DT_ERR_PLACEMENT, "%s: writes %s %s, and would have to take it as %s and leave it as %s; "
                 "expected what is written to be placed alike", dti_rule_op(d->rule), dti_rule_name(d->rule, i),
                 dt_spec_text(d->in[i]), dt_spec_text(d->used[i]), dt_spec_text(d->result[i]));
        return false;
    }
    return true;
}

static bool is_one(const dt_tensor *a, const dt_tensor *b)
{
    return a == b || (a->body && a->body == b->body) || (a->storage && a->storage == b->storage);
}

/* A kernel may read an element after it has written another. */
static bool check_apart(const dt_tensor *x, const char *op, const char *name, dt_tensor *const *in, int n)
{
    int times = 0;
    for (int i = 0; i < n; i++) times += in[i] && is_one(in[i], x);
    if (times < 2) return true;
    dti_fail(x->ctx, DT_ERR_ARG, "%s: %s %s is written, and is two of the operands", op, name, dt_spec_text(x->spec));
    return false;
}

static bool check_gradients(const dt_tensor *x, const char *op, const char *name, dt_tensor *const *in, int n)
{
    const dti_node *node = x->body ? x->body->node : NULL;
    if (dti_tape_records(in, n))
        return dti_fail(x->ctx, DT_ERR_STATE, "%s: writes %s %s, which is not recorded, and operands have gradients; "
                        "expected a DT_SCOPE_NO_GRAD scope", op, name, dt_spec_text(x->spec)), false;
    if (node && node->in_count)
        return dti_fail(x->ctx, DT_ERR_STATE, "%s: writes %s %s, which was made of leaves; expected a leaf, or a "
                        "tensor without a gradient, as dt_copy in a DT_SCOPE_NO_GRAD scope", op, name,
                        dt_spec_text(x->spec)), false;
    return true;
}

bool dti_write_may(dt_tensor *x, const char *op, const char *name, dt_tensor *const *in, int n)
{
    char who[160];
    dti_uses_settle_ahead(x->ctx);
    snprintf(who, sizeof who, "%s: %s", op, name);
    return check_apart(x, op, name, in, n) && check_gradients(x, op, name, in, n) && dti_tensor_own(x, who);
}

bool dti_write_ready(dt_context *ctx, const dti_dispatch *d, dt_tensor *const *in)
{
    for (int i = 0; i < d->op->writes; i++)
        if (!dti_write_may(in[i], dti_rule_op(d->rule), dti_rule_name(d->rule, i), in, d->n)) return false;
    return !dti_failed(ctx);
}
