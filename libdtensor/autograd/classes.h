/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the tape share. */
#ifndef DTI_TAPE_CLASSES_H
#define DTI_TAPE_CLASSES_H

#include "autograd/tape.h"

/* A node without inputs, whose state is the gradient so far: a hidden tensor, or NULL. */
extern const dti_node_class dti_leaf_class;
extern const dti_recorder dti_tape_recorder;

/* One backward on its way. One within another, of a function that is recomputed, passes what was made from `first` on;
 * what that leads to before belongs to the outer one, which passes it in its turn, with the gradients of all. */
typedef struct dti_walk {
    struct dti_walk *outer;        /* NULL: all nodes are its own                                                  */
    dt_context *ctx;
    int64_t first;
    dti_node *left;                /* to be passed, the last made first; they and what they lead to are listed     */
    dti_node *found, *last;        /* listed, but not yet what they lead to                                        */
} dti_walk;

typedef struct dti_tape_state {
    int64_t next;                  /* number of the next node                                                      */
    dti_node *unused;              /* to be given back                                                             */
    bool freeing;
    dti_walk *walk;                /* the innermost under way; NULL: none                                          */
    const int64_t *since;          /* writes of the context when the function ran that is run again; NULL: none is  */
    struct dti_use *use;           /* the innermost that has begun; NULL: none                                     */
    int ahead;                     /* leaves that uses gather ahead                                                */
    struct dti_use *first_use, *last_use; /* in the order in which they begin                                      */
} dti_tape_state;

dti_tape_state *dti_tape_state_of(dt_context *ctx);
/* Backward through what was made from node number first on, within the walk that is under way. A y that depends on no
 * leaf has nothing to pass. false: the error. */
bool dti_backward_within(dt_tensor *y, dt_tensor *seed, int64_t first);

void dti_node_release(dti_node *node);
/* Give up what it saved. */
void dti_node_spend(dti_node *node);

#endif
