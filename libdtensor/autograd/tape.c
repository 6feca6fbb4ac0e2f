/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes: made, linked, released. Leaves, pins and borders are classes of their own; ops add theirs. */
#include "autograd/tape.h"

#include <string.h>

#include "autograd/classes.h"

dti_tape_state *dti_tape_state_of(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_TAPE, sizeof(dti_tape_state), NULL);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void give_hooks(dti_node *node)
{
    while (node->hooks) {
        dti_hook *hook = node->hooks;
        node->hooks = hook->next;
        if (hook->release) hook->release(hook->arg);
        dti_context_give(node->ctx, hook, sizeof *hook);
    }
}

void dti_node_spend(dti_node *node)
{
    if (!node->spent && node->class->release) node->class->release(node);
    node->spent = true;
}

/* With its edges and gradients. */
static size_t node_bytes(int in_count, int out_count)
{
    return sizeof(dti_node) + (size_t)in_count * sizeof(dti_edge) + (size_t)out_count * sizeof(dt_tensor *);
}

static void free_node(dti_node *node)
{
    dti_node_spend(node);
    for (int i = 0; i < node->in_count; i++) dti_node_release(node->in[i].node);
    for (int r = 0; r < node->out_count; r++) dti_tensor_destroy(node->grad[r]);
    give_hooks(node);
    dti_context_give(node->ctx, node, node_bytes(node->in_count, node->out_count));
}

/* A node may be the last to hold another, by an edge or by what it saved, and so on: these wait in a list, for chains
 * are longer than the stack. */
void dti_node_release(dti_node *node)
{
    if (!node || --node->references) return;
    dti_tape_state *tape = dti_tape_state_of(node->ctx);
    node->next = tape->unused;
    tape->unused = node;
    if (tape->freeing) return;
    tape->freeing = true;
    while (tape->unused) {
        dti_node *first = tape->unused;
        tape->unused = first->next;
        free_node(first);
    }
    tape->freeing = false;
}

static bool link(dti_node *node, dt_tensor *const *in, int n, dt_tensor *const *out, int m)
{
    for (int i = 0; i < n; i++) {
        if (!in[i] || !in[i]->body || !in[i]->body->node) continue;
        node->in[i] = (dti_edge){ in[i]->body->node, in[i]->body->output };
        node->in[i].node->references++;
    }
    for (int r = 0; r < m; r++) {
        if (out[r] && dt_spec_dtype(out[r]->spec) > DT_F16) continue; /* numbers of elements: nothing hangs on them  */
        dti_body *body = out[r] ? dti_tensor_body(out[r]) : NULL;
        if (out[r] && !body) return false;
        if (!body) continue;
        body->node = node;
        body->output = r;
        node->references++;
    }
    return true;
}

bool dti_tape_record(dt_context *ctx, const dti_node_class *class, void *state, dt_tensor *const *in, int n,
                     dt_tensor *const *out, int m)
{
    dti_tape_state *tape = dti_tape_state_of(ctx);
    dti_node *node = tape ? dti_context_borrow(ctx, node_bytes(n, m)) : NULL;
    if (!node) {
        dti_node failed = { .class = class, .ctx = ctx, .state = state };
        if (class->release) class->release(&failed);
        return false;
    }
    dti_edge *edges = (dti_edge *)(void *)(node + 1);
    *node = (dti_node){ .class = class, .ctx = ctx, .references = 1, .number = tape->next++, .in_count = n,
                        .out_count = m, .in = edges, .grad = (dt_tensor **)(void *)(edges + n), .state = state };
    memset(edges, 0, node_bytes(n, m) - sizeof *node);
    bool linked = link(node, in, n, out, m);
    dti_node_release(node);        /* from now on what it made holds it                                            */
    return linked;
}

static bool has_gradient(const dt_tensor *x) { return x && x->body && x->body->node; }

static bool records(const dt_tensor *x)
{
    return has_gradient(x) && !(dti_scope_flags(x->ctx) & DT_SCOPE_NO_GRAD);
}

bool dti_tape_records(dt_tensor *const *in, int n)
{
    for (int i = 0; i < n; i++)
        if (records(in[i])) return true;
    return false;
}

bool dti_tape_leaves_stand(dt_context *ctx, dt_tensor *const *in, int n)
{
    const int64_t *since = dti_tape_state_of(ctx)->since;
    for (int i = 0; i < n && since; i++) {
        bool leaf = has_gradient(in[i]) && in[i]->body->node->class == &dti_leaf_class;
        if (!leaf || in[i]->body->written <= *since) continue;
        dti_fail(ctx, DT_ERR_STATE, "dt_recompute: %s has been written since the function ran that backward runs again",
                 dt_spec_text(in[i]->spec));
        return false;
    }
    return true;
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

dt_tensor *dti_tape_save(dt_tensor *x) { return x ? dti_tensor_hide(dti_tensor_share(x)) : NULL; }

dt_tensor *dti_tape_save_own(dt_tensor *x)
{
    if (!x) return NULL;
    return dti_tensor_hide(dti_tensor_new(x->spec, x->storage ? dti_storage_retain(x->storage) : NULL));
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static void leaf_release(dti_node *node)
{
    dti_tensor_destroy(node->state);
    node->state = NULL;
}

/* Its gradient stays, and grows with every backward. */
static bool leaf_backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    dt_tensor *before = node->state;
    (void)wanted;
    (void)in_grad;
    if (!grad[0]) return true;
    dt_tensor *sum = before ? dti_gradient_add(before, grad[0]) : dti_tensor_share(grad[0]);
    if (!sum) return false;
    dti_tensor_destroy(before);
    node->state = dti_tensor_hide(sum);
    return true;
}

const dti_node_class dti_leaf_class = { "leaf", leaf_backward, leaf_release, true, NULL };

bool dti_grad_set(dt_tensor *x, dt_tensor *grad)
{
    dt_tensor *kept = dti_tensor_hide(dti_tensor_share(grad));
    if (!kept) return false;
    dti_tensor_destroy(x->body->node->state);
    x->body->node->state = kept;
    return true;
}

/* ---- pins -------------------------------------------------------------------------------------------------------- */

typedef struct pin_state {
    const dt_spec *source, *target;
    uint32_t named;
    dt_tensor *kept;               /* the source, if it costs less than what was made of it                        */
    int64_t writes;                /* how often that had been written: since then it is another value              */
} pin_state;

static bool pin_backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    const pin_state *pin = node->state;
    if (!grad[0] || !(wanted & 1)) return true;
    in_grad[0] = dti_gradient_through(grad[0], pin->source, pin->target, pin->named);
    return in_grad[0] != NULL;
}

static void pin_release(dti_node *node)
{
    pin_state *pin = node->state;
    if (pin->kept) pin->kept->body->kept--;
    dti_tensor_destroy(pin->kept);
    dti_context_give(node->ctx, pin, sizeof *pin);
    node->state = NULL;
}

static dt_tensor *pin_source(const dti_node *node, int output)
{
    const pin_state *pin = node->state;
    (void)output;
    return pin && pin->kept && pin->kept->body->writes == pin->writes ? pin->kept : NULL;
}

static const dti_node_class pin_class = { "redistribute", pin_backward, pin_release, true, pin_source };

static bool costs_less(const dt_tensor *source, const dt_tensor *copy)
{
    if (dti_scope_flags(source->ctx) & DT_SCOPE_KEEP_GATHERED) return false;
    return source->body->node->class == &dti_leaf_class
        || dti_spec_part_bytes(source->spec) < dti_spec_part_bytes(copy->spec);
}

dt_tensor *dti_tape_source(const dt_tensor *x)
{
    const dti_node *node = x->body ? x->body->node : NULL;
    return node && node->class->source ? node->class->source(node, x->body->output) : NULL;
}

static bool pinned(dt_tensor *x, dt_tensor *y, uint32_t named)
{
    pin_state *pin = dti_tape_leaves_stand(x->ctx, &x, 1) ? dti_context_borrow(x->ctx, sizeof *pin) : NULL;
    if (!pin) return false;
    *pin = (pin_state){ x->spec, y->spec, named, costs_less(x, y) ? dti_tape_save(x) : NULL, 0 };
    if (pin->kept) {
        pin->kept->body->kept++;
        pin->writes = pin->kept->body->writes;
    }
    return dti_tape_record(x->ctx, &pin_class, pin, &x, 1, &y, 1);
}

/* ---- borders ----------------------------------------------------------------------------------------------------- */

typedef struct border_state { const dt_spec *source, *stated; bool to_local; } border_state;

/* The parts of one tensor as another, of the same bytes here. */
static dt_tensor *relabel(dt_tensor *x, const dt_spec *spec)
{
    return x ? dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL) : NULL;
}

static bool border_backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    const border_state *border = node->state;
    if (!grad[0] || !(wanted & 1)) return true;
    if (border->to_local) in_grad[0] = relabel(dti_tensor_to(grad[0], border->source), border->stated);
    else in_grad[0] = relabel(dti_tensor_to(grad[0], border->stated), border->source);
    return in_grad[0] != NULL;
}

static void border_release(dti_node *node)
{
    dti_context_give(node->ctx, node->state, sizeof(border_state));
    node->state = NULL;
}

static const dti_node_class border_class = { "local", border_backward, border_release, true, NULL };

/* Of two specs the one on a mesh of one rank is the local tensor's. */
static bool crossed(dt_tensor *x, dt_tensor *y, const dt_spec *grad)
{
    border_state *border = dti_context_borrow(x->ctx, sizeof *border);
    bool to_local = grad->mesh == x->spec->mesh;
    if (!border) return false;
    *border = (border_state){ to_local ? y->spec : x->spec, grad, to_local };
    return dti_tape_record(x->ctx, &border_class, border, &x, 1, &y, 1);
}

const dti_recorder dti_tape_recorder = { records, pinned, crossed, dti_node_release };
