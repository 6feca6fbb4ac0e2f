/* SPDX-License-Identifier: Apache-2.0
 *
 * The tape: what made a value, so that gradients can go back. It knows functions, no ops: a node is a class with a
 * backward function, edges to the nodes that made its inputs, and whatever state the class keeps. Nodes live as long as
 * a value made by them or by a later node lives; what they saved goes when backward has passed them.
 *
 * Nodes are numbered as they are made, and backward goes through those that the seed reaches from the last to the
 * first: the same order on every rank. The gradients of one output are summed before its node is asked. */
#ifndef DTI_TAPE_H
#define DTI_TAPE_H

#include <dtensor/autograd.h>

#include "tensor/tensor.h"

typedef struct dti_node dti_node;

typedef struct dti_node_class {
    const char *name;
    /* in_grad[i] = the gradient of input i, for those that have a node (of the first 32 a mask), of the outputs'
     * gradients (NULL: zero); in the innermost scope. NULL in_grad: it is zero. false: the error. */
    bool (*backward)(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad);
    void (*release)(dti_node *node); /* give up its state; once                                                    */
    bool again;                    /* it saves no tensors, so backward may pass as often as it likes               */
    /* What is to be kept in the place of an output: see dti_tape_source. NULL: never anything. */
    dt_tensor *(*source)(const dti_node *node, int output);
} dti_node_class;

typedef struct dti_edge { dti_node *node; int output; } dti_edge; /* node NULL: has no gradient                    */

typedef struct dti_hook {
    struct dti_hook *next;
    int output;
    dt_grad_fn fn;
    void *arg;
    void (*release)(void *arg);    /* NULL: nothing                                                                */
} dti_hook;

struct dti_node {
    const dti_node_class *class;
    dt_context *ctx;
    int references;
    bool spent;                    /* backward has passed, and what was saved is gone                              */
    int64_t number;
    int in_count, out_count;
    dti_edge *in;                  /* these two lie behind the node                                                */
    dt_tensor **grad;              /* of each output, summed so far, during backward                               */
    dti_hook *hooks;
    dti_node *next;                /* in the list that is being worked on                                          */
    bool listed;
    void *state;                   /* of the class                                                                 */
};

/* Would a function of these tensors be recorded: has one a gradient, outside a no-grad scope? */
bool dti_tape_records(dt_tensor *const *in, int n);
/* Record that a node of this class made out of in. state belongs to the node, on failure too. false: the error. */
bool dti_tape_record(dt_context *ctx, const dti_node_class *class, void *state, dt_tensor *const *in, int n,
                     dt_tensor *const *out, int m);
/* A value kept by the tape: a hidden handle that shares the copies of x; or, own, one that knows no node, for a node's
 * own results. NULL for NULL, and on failure. */
dt_tensor *dti_tape_save(dt_tensor *x);
dt_tensor *dti_tape_save_own(dt_tensor *x);

/* What a pinned tensor was made of, if that has fewer bytes here, or is a leaf; the leaf of one in use: to be kept in
 * its place. NULL: x itself is to be kept. The tape owns it. */
dt_tensor *dti_tape_source(const dt_tensor *x);
/* As dt_grad_hook, of a tensor that has a node; release is called with arg when the hook ends, on failure too. false:
 * the error. */
bool dti_tape_hook(dt_tensor *x, dt_grad_fn fn, void *arg, void (*release)(void *arg));
/* In a function that backward runs again: are its leaves as they were when it ran first? false and DT_ERR_STATE: one
 * has been written since. */
bool dti_tape_leaves_stand(dt_context *ctx, dt_tensor *const *in, int n);
/* Is a backward under way? */
bool dti_tape_is_walking(dt_context *ctx);

/* Forget the gradient of a leaf; of what is none: nothing. */
void dti_grad_drop(dt_tensor *x);

/* ---- gradients (gradient.c) -------------------------------------------------------------------------------------- */

/* The sum of two gradients of one value, in the innermost scope: P along mesh dims where either is, else S where either
 * is, else R. NULL: the error. */
dt_tensor *dti_gradient_add(dt_tensor *a, dt_tensor *b);
/* A gradient as it comes back through a redistribution from source to target (design, law five): along mesh dims that
 * are named, S where the source is S, as it is where both are P, else R; along others S where the source is S, else as
 * it is. NULL: the error. */
dt_tensor *dti_gradient_through(dt_tensor *grad, const dt_spec *source, const dt_spec *target, uint32_t named);
/* Where that comes to lie, for a gradient on the source's mesh; in the source's dtype. NULL: the error. */
const dt_spec *dti_gradient_through_spec(const dt_spec *grad, const dt_spec *source, const dt_spec *target,
                                         uint32_t named);
/* The gradient of a leaf from now on, in the place of what it has. false: the error, and it has that still. */
bool dti_grad_set(dt_tensor *x, dt_tensor *grad);

#endif
