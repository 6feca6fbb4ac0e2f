/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward: from a seed through the nodes that it reaches, the last made first. Invariant: when a node is asked, all
 * nodes that used its outputs have been; so its gradients are whole, and each function is called once. */
#include "autograd/classes.h"
#include "autograd/use.h"
#include "core/number.h"
#include "core/shape.h"

/* ---- which nodes ------------------------------------------------------------------------------------------------- */

static void append(dti_walk *w, dti_node *node)
{
    if (node->listed) return;
    node->listed = true;
    node->references++;
    node->next = NULL;
    *(w->found ? &w->last->next : &w->found) = node;
    w->last = node;
}

static dti_node *merge(dti_node *a, dti_node *b)
{
    dti_node *merged, **end = &merged;
    while (a && b) {
        dti_node **later = a->number > b->number ? &a : &b;
        *end = *later;
        end = &(*later)->next;
        *later = *end;
    }
    *end = a ? a : b;
    return merged;
}

/* The first n of a list, the last made first; the rest of it goes to *rest. */
static dti_node *sort(dti_node *list, int n, dti_node **rest)
{
    if (n == 1) {
        *rest = list->next;
        list->next = NULL;
        return list;
    }
    dti_node *a = sort(list, n / 2, &list);
    return merge(a, sort(list, n - n / 2, rest));
}

/* The walk that passes a node: this one, or one that it is within. */
static dti_walk *walk_of(dti_walk *w, const dti_node *node)
{
    while (w->outer && node->number < w->first) w = w->outer;
    return w;
}

static bool check_unspent(const dti_walk *w, const dti_node *node)
{
    if (!node->spent) return true;
    dti_fail(w->ctx, DT_ERR_STATE, "dt_backward: has passed %s before; what it saved is gone", node->class->name);
    return false;
}

/* Find what the nodes found last lead to, and put all of them in order to the others that are to be passed. */
static bool close_walk(dti_walk *w)
{
    dti_node *rest;
    bool unspent = true;
    int n = 0;
    for (dti_node *node = w->found; node; node = node->next, n++) {
        unspent = unspent && check_unspent(w, node);
        for (int k = 0; k < node->in_count; k++)
            if (node->in[k].node) append(walk_of(w, node->in[k].node), node->in[k].node);
    }
    if (n) w->left = merge(w->left, sort(w->found, n, &rest));
    w->found = NULL;
    return unspent;
}

/* All that the first reaches. Of a backward within another, which a hook or a recomputed function may begin, without
 * what the outer one has still to pass. */
static bool collect(dti_walk *w, dti_node *first)
{
    bool unspent = true;
    append(walk_of(w, first), first);
    for (; w; w = w->outer) unspent &= close_walk(w);
    return unspent;
}

static void drop_gradients(dti_node *node)
{
    for (int r = 0; r < node->out_count; r++) {
        dti_tensor_destroy(node->grad[r]);
        node->grad[r] = NULL;
    }
}

static dti_node *take_first(dti_walk *w)
{
    dti_node *node = w->left;
    if (node) w->left = node->next;
    return node;
}

/* A node that has been passed, or never will be; those that it reaches are in the walk, and held. */
static void drop(dti_node *node)
{
    node->listed = false;
    drop_gradients(node);
    dti_node_release(node);
}

/* ---- one node ---------------------------------------------------------------------------------------------------- */

static bool add_gradient(dti_node *node, int output, dt_tensor *grad)
{
    dt_tensor *before = node->grad[output];
    dt_tensor *sum = before ? dti_gradient_add(before, grad) : dti_tensor_share(grad);
    if (!sum) return false;
    dti_tensor_destroy(before);
    node->grad[output] = dti_tensor_hide(sum);
    return true;
}

static bool same_shape(const dt_spec *a, const dt_spec *b) { return dti_shape_same(&a->shape, &b->shape); }

static bool check_hooked(const dt_tensor *grad, const dt_tensor *other)
{
    if (other->ctx != grad->ctx)
        return dti_fail(grad->ctx, DT_ERR_ARG, "dt_grad_hook: returned a tensor of another context"), false;
    if (dt_spec_dtype(other->spec) == dt_spec_dtype(grad->spec) && other->spec->mesh == grad->spec->mesh
        && same_shape(other->spec, grad->spec))
        return true;
    dti_fail(grad->ctx, DT_ERR_SHAPE, "dt_grad_hook: expected a gradient like %s on %s, got %s on %s",
             dt_spec_text(grad->spec), dt_mesh_text(grad->spec->mesh), dt_spec_text(other->spec),
             dt_mesh_text(other->spec->mesh));
    return false;
}

static bool call_hooks(dti_node *node)
{
    for (const dti_hook *hook = node->hooks; hook; hook = hook->next) {
        if (!node->grad[hook->output]) continue;
        dt_tensor *grad = dti_tensor_share(node->grad[hook->output]);
        dt_tensor *other = grad ? hook->fn(grad, hook->arg) : NULL;
        if (dti_failed(node->ctx)) return false;
        if (!other || other == grad) continue;
        if (!check_hooked(grad, other)) return false;
        dti_tensor_destroy(node->grad[hook->output]);
        node->grad[hook->output] = dti_tensor_hide(dti_tensor_share(other));
        if (!node->grad[hook->output]) return false;
    }
    return true;
}

static uint32_t wanted(const dti_node *node)
{
    uint32_t mask = 0;
    for (int i = 0; i < node->in_count && i < 32; i++)
        if (node->in[i].node) mask |= UINT32_C(1) << i;
    return mask;
}

static bool any_gradient(const dti_node *node)
{
    for (int r = 0; r < node->out_count; r++)
        if (node->grad[r]) return true;
    return false;
}

static bool pass_back(dti_node *node, dt_tensor **in_grad)
{
    if (!call_hooks(node) || !node->class->backward(node, node->grad, wanted(node), in_grad)) return false;
    for (int i = 0; i < node->in_count; i++)
        if (in_grad[i] && node->in[i].node && !add_gradient(node->in[i].node, node->in[i].output, in_grad[i]))
            return false;
    return true;
}

static bool pass(dti_node *node)
{
    if (!any_gradient(node)) return true;
    size_t bytes = (size_t)(node->in_count ? node->in_count : 1) * sizeof(dt_tensor *);
    dt_tensor **in_grad = dti_context_borrow_zeros(node->ctx, bytes);
    bool passed = in_grad && pass_back(node, in_grad);
    if (in_grad) dti_context_give(node->ctx, in_grad, bytes);
    return passed;
}

/* In a scope of its own, so that what it makes ends; gradients are hidden, and outlive it. */
static bool pass_in_scope(dti_node *node)
{
    int scope = dt_scope_push(node->ctx, DT_SCOPE_NO_GRAD);
    bool done = scope && pass(node);
    if (scope) dt_scope_pop(node->ctx, scope, NULL);
    drop_gradients(node);
    if (!node->class->again) dti_node_spend(node);
    return done && !dti_failed(node->ctx);
}

/* ---- the seed ---------------------------------------------------------------------------------------------------- */

/* The gradient of a value with respect to itself: one, R where the value is P. */
static dt_tensor *ones(const dt_tensor *y)
{
    const dt_spec *spec = dti_spec_summed(y->spec);
    return spec ? dt_full(spec, 1) : NULL;
}

static bool check_seed(const dt_tensor *y, const dt_tensor *seed)
{
    dt_context *ctx = y->ctx;
    if (!y->body || !y->body->node)
        return dti_fail(ctx, DT_ERR_STATE, "dt_backward: %s depends on no leaf; see dt_require_grad",
                        dt_spec_text(y->spec)), false;
    if (!seed && dti_shape_count(&y->spec->shape) != 1)
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_backward: expected one element or a seed, got %s",
                        dt_spec_text(y->spec)), false;
    if (seed && seed->ctx != ctx)
        return dti_fail(ctx, DT_ERR_ARG, "dt_backward: a seed of another context"), false;
    if (seed && !dti_tensor_ok(seed)) return false;
    if (seed && seed->spec->mesh != y->spec->mesh)
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_backward: expected a seed on mesh %s, got one on %s",
                        dt_mesh_text(y->spec->mesh), dt_mesh_text(seed->spec->mesh)), false;
    if (seed && (!same_shape(seed->spec, y->spec) || dt_spec_dtype(seed->spec) != dt_spec_dtype(y->spec)))
        return dti_fail(ctx, same_shape(seed->spec, y->spec) ? DT_ERR_DTYPE : DT_ERR_SHAPE,
                        "dt_backward: expected a seed like %s, got %s", dt_spec_text(y->spec),
                        dt_spec_text(seed->spec)), false;
    return true;
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static void go(dti_walk *w, dt_tensor *y, dt_tensor *seed)
{
    dti_node *first = y->body->node, *node;
    dt_tensor *grad = seed ? seed : ones(y);
    if (!grad) return;
    bool going = collect(w, first) && add_gradient(first, y->body->output, grad);
    while ((node = take_first(w)) != NULL) {
        going = going && pass_in_scope(node);
        drop(node);
    }
}

static bool walk(dt_tensor *y, dt_tensor *seed, bool within, int64_t first)
{
    dt_context *ctx = y->ctx;
    dti_tape_state *tape = dti_tape_state_of(ctx);
    int scope = tape ? dt_scope_push(ctx, DT_SCOPE_NO_GRAD) : 0;
    if (!scope) return false;
    dti_walk w = { .outer = within ? tape->walk : NULL, .ctx = ctx, .first = first }, *before = tape->walk;
    tape->walk = &w;
    dti_scope_drop_flags(ctx, DT_SCOPE_STRICT); /* what moves for a gradient nobody can write                       */
    if (!before) dti_uses_settle_ahead(ctx);
    if (check_seed(y, seed)) go(&w, y, seed);
    if (!before) dti_uses_settle_ahead(ctx);
    tape->walk = before;
    dt_scope_pop(ctx, scope, NULL);
    return !dti_failed(ctx);
}

bool dti_tape_is_walking(dt_context *ctx)
{
    const dti_tape_state *tape = dti_tape_state_of(ctx);
    return tape && tape->walk;
}

dt_status dt_backward(dt_tensor *y, dt_tensor *seed)
{
    dt_context *ctx = y ? y->ctx : seed ? seed->ctx : NULL;
    if (!ctx) return DT_ERR_ARG;
    if (!y && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_ARG, "dt_backward: got a seed for no tensor");
    if (!dti_failed(ctx)) walk(y, seed, false, 0);
    return dt_context_status(ctx);
}

bool dti_backward_within(dt_tensor *y, dt_tensor *seed, int64_t first)
{
    return !y->body || !y->body->node || walk(y, seed, true, first);
}

/* ---- leaves and hooks -------------------------------------------------------------------------------------------- */

static bool is_float(const dt_spec *spec) { return dt_spec_dtype(spec) <= DT_F16; }

dt_tensor *dt_require_grad(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return NULL;
    dti_node *node = x->body ? x->body->node : NULL;
    if (node && node->class == &dti_leaf_class) return x;
    if (node) {
        dti_fail(x->ctx, DT_ERR_STATE, "dt_require_grad: %s was made of leaves; see dt_detach", dt_spec_text(x->spec));
        return NULL;
    }
    if (!is_float(x->spec)) {
        dti_fail(x->ctx, DT_ERR_DTYPE, "dt_require_grad: expected a float, got %s", dt_spec_text(x->spec));
        return NULL;
    }
    x->ctx->recorder = &dti_tape_recorder;
    return dti_tape_record(x->ctx, &dti_leaf_class, NULL, NULL, 0, &x, 1) ? x : NULL;
}

dt_tensor *dt_grad(dt_tensor *x)
{
    dti_node *node = x && !dti_failed(x->ctx) && x->body ? x->body->node : NULL;
    return node && node->class == &dti_leaf_class ? node->state : NULL;
}

void dti_grad_drop(dt_tensor *x)
{
    dti_node *node = x->body ? x->body->node : NULL;
    if (!node || node->class != &dti_leaf_class) return;
    dti_tensor_destroy(node->state);
    node->state = NULL;
}

bool dti_tape_hook(dt_tensor *x, dt_grad_fn fn, void *arg, void (*release)(void *arg))
{
    dti_hook **at = &x->body->node->hooks, *hook = dti_context_borrow(x->ctx, sizeof *hook);
    if (!hook && release) release(arg);
    if (!hook) return false;
    while (*at) at = &(*at)->next;
    *hook = (dti_hook){ .output = x->body->output, .fn = fn, .arg = arg, .release = release };
    *at = hook;
    return true;
}

dt_status dt_grad_hook(dt_tensor *x, dt_grad_fn fn, void *arg)
{
    if (!dti_tensor_ok(x)) return x ? x->ctx->status : DT_ERR_ARG;
    if (!fn || !x->body || !x->body->node)
        return dti_fail(x->ctx, fn ? DT_ERR_STATE : DT_ERR_ARG, "dt_grad_hook: %s",
                        fn ? "the tensor has no gradient" : "no function");
    dti_tape_hook(x, fn, arg, NULL);
    return x->ctx->status;
}

dt_tensor *dt_detach(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return NULL;
    dt_tensor *y = dti_tensor_new(x->spec, x->storage ? dti_storage_retain(x->storage) : NULL);
    if (y) dti_tensor_come_of(y, x);
    return y;
}
