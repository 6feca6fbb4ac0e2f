/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the tape share. */
#ifndef DTI_TAPE_CLASSES_H
#define DTI_TAPE_CLASSES_H

#include "autograd/tape.h"

/* A node without inputs, whose state is the gradient so far: a hidden tensor, or NULL. */
extern const dti_node_class dti_leaf_class;
extern const dti_recorder dti_tape_recorder;

void dti_node_release(dti_node *node);
/* Give up what it saved. */
void dti_node_spend(dti_node *node);

#endif
