/* SPDX-License-Identifier: Apache-2.0
 *
 * A function of which only the inputs are kept: backward runs it again, on leaves of the same values, and passes back
 * through what that recorded. Tensors that the function finds by itself, as parameters, were made before: gradients of
 * theirs wait there for the backward that runs, which passes them in their turn, once. It runs again under the step and
 * micro-batch of the first time, so that it draws what it drew. */
#include "autograd/classes.h"
#include "autograd/use.h"

enum { MOST_INPUTS = 16 };

typedef struct recompute_state {
    dt_fn fn;
    void *arg;
    int64_t step, writes;          /* of the context, when it ran                                                  */
    int micro_batch, n, use_count;
    dt_tensor *in[MOST_INPUTS];
    const dt_spec *made;           /* what fn returned                                                             */
    dti_use *uses[];               /* that it took from: they began outside                                        */
} recompute_state;

static size_t state_bytes(int uses) { return sizeof(recompute_state) + (size_t)uses * sizeof(dti_use *); }

static void release(dti_node *node)
{
    recompute_state *s = node->state;
    for (int i = 0; i < s->n; i++) dti_tensor_destroy(s->in[i]);
    for (int i = 0; i < s->use_count; i++) dti_use_release(s->uses[i]);
    dti_context_give(node->ctx, s, state_bytes(s->use_count));
    node->state = NULL;
}

/* The inputs again, those with gradients as leaves. */
static bool make_leaves(const recompute_state *s, uint32_t wanted, dt_tensor **in)
{
    for (int i = 0; i < s->n; i++) {
        in[i] = dt_detach(s->in[i]);
        if (s->in[i] && !in[i]) return false;
        if ((wanted >> i & 1) && !dt_require_grad(in[i])) return false;
    }
    return true;
}

static dt_tensor *call(dt_context *ctx, dt_fn fn, void *arg, dt_tensor *const *in)
{
    dt_tensor *y = fn(in, arg);
    if (!y && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_ARG, "dt_recompute: the function returned no tensor");
    return y;
}

/* With the uses that it took from: from the outermost to the innermost, and back. */
static dt_tensor *call_with_uses(dt_context *ctx, const recompute_state *s, dt_tensor *const *in)
{
    int begun = s->use_count;
    while (begun > 0 && dti_use_begin(s->uses[begun - 1])) begun--;
    dt_tensor *y = begun == 0 ? call(ctx, s->fn, s->arg, in) : NULL;
    for (; begun < s->use_count; begun++) dti_use_end(s->uses[begun], NULL);
    return y;
}

static dt_tensor *call_again(dt_context *ctx, const recompute_state *s, dt_tensor *const *in)
{
    int64_t step = ctx->step;
    int micro_batch = ctx->micro_batch;
    ctx->step = s->step;
    ctx->micro_batch = s->micro_batch;
    dt_tensor *y = call_with_uses(ctx, s, in);
    ctx->step = step;
    ctx->micro_batch = micro_batch;
    return y;
}

/* It may lie otherwise: its gradient is moved to it. */
static bool is_again(dt_context *ctx, const dt_spec *made, const dt_spec *again)
{
    bool same = made->shape.n == again->shape.n && made->form.dtype == again->form.dtype && made->mesh == again->mesh;
    for (int d = 0; same && d < made->shape.n; d++) same = made->shape.dim[d] == again->shape.dim[d];
    if (!same)
        dti_fail(ctx, DT_ERR_STATE, "dt_recompute: the function returned %s and, called again in backward, %s; "
                 "expected the same both times", dt_spec_text(made), dt_spec_text(again));
    return same;
}

static bool backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    const recompute_state *s = node->state;
    dt_tensor *in[MOST_INPUTS] = { NULL };
    dti_tape_state *tape = dti_tape_state_of(node->ctx);
    const int64_t first = tape->next, *since = tape->since;
    if (!make_leaves(s, wanted, in)) return false;
    dti_scope_drop_flags(node->ctx, DT_SCOPE_NO_GRAD);
    tape->since = &s->writes;
    dt_tensor *y = call_again(node->ctx, s, in);
    tape->since = since;
    if (!y || !is_again(node->ctx, s->made, y->spec) || !dti_backward_within(y, grad[0], first)) return false;
    for (int i = 0; i < s->n; i++)
        if (wanted >> i & 1) in_grad[i] = dt_grad(in[i]);
    return true;
}

static const dti_node_class recompute_class = { "a recomputed function", backward, release, false, NULL };

static dt_tensor *run(dt_context *ctx, dt_fn fn, void *arg, dt_tensor *const *in, unsigned flags)
{
    int scope = dt_scope_push(ctx, flags);
    return scope ? dt_scope_pop(ctx, scope, call(ctx, fn, arg, in)) : NULL;
}

static dt_context *context_of(dt_tensor *const *in, int n)
{
    for (int i = 0; i < n && i < MOST_INPUTS; i++)
        if (in[i]) return in[i]->ctx;
    return NULL;
}

/* A handle of its own: what the function returns may be one of its inputs, or pinned. */
static dt_tensor *record(dt_context *ctx, dt_fn fn, void *arg, dt_tensor *const *in, int n, dt_tensor *y)
{
    dt_tensor *out = dt_detach(y);
    int uses = dti_uses_taken(ctx, NULL);
    recompute_state *s = out ? dti_context_borrow(ctx, state_bytes(uses)) : NULL;
    if (!s) return NULL;
    *s = (recompute_state){ .fn = fn, .arg = arg, .n = n, .made = y->spec, .step = ctx->step, .writes = ctx->writes,
                            .micro_batch = ctx->micro_batch, .use_count = dti_uses_taken(ctx, s->uses) };
    for (int i = 0; i < n; i++) s->in[i] = dti_tape_save(in[i]);
    return dti_tape_record(ctx, &recompute_class, s, in, n, &out, 1) ? out : NULL;
}

dt_tensor *dt_recompute(dt_fn fn, void *arg, dt_tensor *const *in, int n)
{
    dt_context *ctx = in ? context_of(in, n) : NULL;
    if (!ctx || dti_failed(ctx)) return NULL;
    if (n > MOST_INPUTS)
        return dti_fail(ctx, DT_ERR_ARG, "dt_recompute: expected at most %d inputs, got %d", MOST_INPUTS, n), NULL;
    if (!fn) return dti_fail(ctx, DT_ERR_ARG, "dt_recompute: no function"), NULL;
    bool records = ctx->recorder && !(dti_scope_flags(ctx) & DT_SCOPE_NO_GRAD);
    dti_uses_watch(ctx);
    dt_tensor *y = run(ctx, fn, arg, in, records ? DT_SCOPE_NO_GRAD : 0);
    return y && records ? record(ctx, fn, arg, in, n, y) : y;
}
