/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of ops on the tape: what is saved of them, and the way back of their gradients. The row's gradient computes;
 * here its results are summed over dims that were stretched, and brought back to where the operand was split. */
#include "ops/gradient.h"

#include <stddef.h>
#include <string.h>

#include <dtensor/ops.h>

#include "core/shape.h"
#include "placements/views.h"

typedef struct op_state {
    dti_dispatch *dispatch;
    dt_tensor *in[DT_MAX_OPERANDS], *out[DT_MAX_RESULTS];
    const dt_spec *again[DT_MAX_OPERANDS]; /* the operand is a copy of in on this spec, to be made again; NULL: is in */
    _Alignas(16) unsigned char attributes[DT_MAX_ATTRIBUTE_BYTES]; /* of the dispatch's row: as many as it has     */
} op_state;

/* ---- what is saved ----------------------------------------------------------------------------------------------- */

static bool is_leaf(const dt_tensor *x) { return x->body && x->body->node && x->body->node->in_count == 0; }

/* Of a source and the copy that was used: what costs fewer bytes beyond what lives anyway; the copy where they are
 * equal. */
static dt_tensor *cheaper(dt_tensor *source, dt_tensor *copy)
{
    if (source == copy) return source;
    if (dti_scope_flags(source->ctx) & DT_SCOPE_KEEP_GATHERED) return copy;
    return is_leaf(source) || dti_spec_part_bytes(source->spec) < dti_spec_part_bytes(copy->spec) ? source : copy;
}

/* Of one that the user gathered, what it was gathered from. */
static void save_operand(op_state *s, int i, dt_tensor *x)
{
    dt_tensor *source = dti_tape_source(x);
    s->in[i] = dti_tape_save(source ? source : x);
    if (!source || !s->in[i]) return;
    s->again[i] = x->spec;
    dti_tensor_need(s->in[i]);
}

/* One that was P is summed, and rounded, again as it was: the gradient is one at the numbers that were used. */
static void save_summed(op_state *s, int i, dt_tensor *x)
{
    s->in[i] = dti_tape_save(x);
    if (!s->in[i]) return;
    s->again[i] = s->dispatch->used[i];
    dti_tensor_need(s->in[i]);
}

static void save_used(op_state *s, int i, dt_tensor *in, dt_tensor *used)
{
    dt_tensor *kept = cheaper(in, used);
    bool summed = kept != used && kept->spec->layout->partial_count > 0;
    if (!summed) save_operand(s, i, kept);
    else if (dti_tape_source(kept)) save_operand(s, i, used);
    else save_summed(s, i, kept);
}

static void save(op_state *s, dt_tensor *const *in, dt_tensor *const *used, dt_tensor *const *out)
{
    const dti_rule *rule = s->dispatch->rule;
    uint32_t wanted = 0;
    for (int i = 0; i < s->dispatch->n; i++)
        if (in[i] && in[i]->body && in[i]->body->node) wanted |= UINT32_C(1) << i;
    uint32_t saved = dti_rule_saves(rule, wanted);
    for (int i = 0; i < s->dispatch->n; i++)
        if ((saved >> i & 1) && in[i]) save_used(s, i, in[i], used[i]);
    for (int r = 0; r < s->dispatch->result_count; r++)
        if (rule->saves_result || r >= dti_rule_results(rule)) s->out[r] = dti_tape_save_own(out[r]);
}

static void release(dti_node *node)
{
    op_state *s = node->state;
    for (int i = 0; i < s->dispatch->n; i++) {
        if (s->again[i]) dti_tensor_need_no_more(s->in[i]);
        dti_tensor_destroy(s->in[i]);
    }
    for (int r = 0; r < s->dispatch->result_count; r++) dti_tensor_destroy(s->out[r]);
    dti_dispatch_release(s->dispatch);
    dti_context_give(node->ctx, s, sizeof *s);
    node->state = NULL;
}

/* ---- the way back ------------------------------------------------------------------------------------------------ */

/* Sum over leading dims that the operand lacks, then over those where it has one element. */
static dt_tensor *unstretched(dt_tensor *grad, const dt_shape *shape)
{
    dt_dims leading = { 0 }, single = { 0 };
    for (int d = 0; d < grad->spec->shape.n - shape->n; d++) leading.dim[leading.n++] = d;
    if (leading.n) grad = dt_sum(grad, leading, false);
    for (int d = 0; grad && d < shape->n; d++)
        if (shape->dim[d] == 1 && grad->spec->shape.dim[d] != 1) single.dim[single.n++] = d;
    return grad && single.n ? dt_sum(grad, single, true) : grad;
}

/* The same on another view of its ranks; as it is, where that has no such placement. */
static dt_tensor *on_mesh(dt_tensor *grad, dt_mesh *mesh)
{
    const dt_spec *spec;
    if (!dti_spec_on(grad->spec, mesh, &spec)) return NULL;
    return spec && spec != grad->spec ? dti_tensor_to(grad, spec) : grad;
}

static bool bring_back(const dti_dispatch *d, int i, dt_tensor **grad)
{
    const dt_spec *in = d->in[i];
    dt_tensor *g = unstretched(*grad, &in->shape);
    if (g && (!dti_shape_same(&g->spec->shape, &in->shape) || dt_spec_dtype(g->spec) != dt_spec_dtype(in))) {
        dti_fail(g->ctx, DT_ERR_STATE, "%s: the gradient of %s %s is %s", dti_rule_op(d->rule), dt_spec_text(in),
                 dti_rule_name(d->rule, i), dt_spec_text(g->spec));
        return false;
    }
    g = g ? on_mesh(g, in->mesh) : NULL;
    *grad = g ? dti_gradient_through(g, in, d->used[i], 0) : NULL;
    return *grad != NULL;
}

/* What was saved of an operand, as it was used. */
static dt_tensor *restored(const op_state *s, int i)
{
    const dti_dispatch *d = s->dispatch;
    dt_tensor *x = s->in[i];
    if (!x || !s->again[i]) return x;
    if (x->spec == d->in[i] && s->again[i] == d->used[i]) x = dti_tensor_copy(x, d->via[i]);
    return x ? dti_tensor_copy(x, s->again[i]) : NULL;
}

static bool backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    op_state *s = node->state;
    const dti_dispatch *d = s->dispatch;
    dt_gradient g = { .ctx = node->ctx, .op = d->op, .attributes = s->attributes, .in_count = d->n,
                      .out_count = d->result_count };
    for (int i = 0; i < d->n; i++) {
        g.in[i] = restored(s, i);
        if (s->again[i] && !g.in[i]) return false;
        g.in_spec[i] = d->in[i];
        g.in_shape[i] = d->in[i] ? d->in[i]->shape : (dt_shape){ .n = -1 };
        g.wanted[i] = wanted >> i & 1;
    }
    for (int r = 0; r < d->result_count; r++) {
        g.out[r] = s->out[r];
        g.out_grad[r] = grad[r];
    }
    dt_status status = d->op->gradient(&g);
    if (status && !dti_failed(node->ctx)) dti_fail(node->ctx, status, "%s: its gradient failed", dti_rule_op(d->rule));
    for (int i = 0; i < d->n && !dti_failed(node->ctx); i++) {
        if (!g.wanted[i] || !g.in_grad[i]) continue;
        if (!bring_back(d, i, &g.in_grad[i])) return false;
        in_grad[i] = g.in_grad[i];
    }
    return !dti_failed(node->ctx);
}

static const dti_node_class op_class = { "an op", backward, release, false, NULL };

/* ---- front ------------------------------------------------------------------------------------------------------- */

static bool any_float(const dti_dispatch *d)
{
    for (int r = 0; r < dti_rule_results(d->rule); r++)
        if (dt_spec_dtype(d->result[r]) <= DT_F16) return true;
    return false;
}

bool dti_op_record(dt_context *ctx, dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *in,
                   dt_tensor *const *used, dt_tensor *const *out)
{
    if (!dti_tape_records(in, d->n)) return true;
    if (!dti_tape_leaves_stand(ctx, in, d->n)) return false;
    if (!d->op->gradient && !any_float(d)) return true;
    if (!d->op->gradient)
        return dti_fail(ctx, DT_ERR_UNAVAILABLE, "%s: has no gradient; see dt_detach", d->op->head), false;
    op_state *s = dti_context_borrow(ctx, sizeof *s);
    if (!s) return false;
    memset(s, 0, offsetof(op_state, attributes));
    s->dispatch = dti_dispatch_hold(d);
    memcpy(s->attributes, attributes->values, attributes->bytes);
    save(s, in, used, out);
    return dti_tape_record(ctx, &op_class, s, in, d->n, out, d->result_count);
}
