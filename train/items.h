/* SPDX-License-Identifier: Apache-2.0
 *
 * A module's parameters and an optimiser's states as named tensors that are read and written whole. A parameter's name
 * is its path below the root, a state's is that of its parameter with "/" and the state's own behind it. */
#ifndef DTI_ITEMS_H
#define DTI_ITEMS_H

#include "train/optim.h"
#include "train/store.h"

typedef struct dti_items {
    dt_module *root;
    dti_arena arena;               /* of the names                                                                 */
    dti_item *at;
    int n, room;
} dti_items;

/* All parameters below root, then the states beside them (optim NULL: none). who: the call, for messages. false: the
 * error, and nothing to end. DT_ERR_ARG: an optimiser of another module. */
bool dti_items_list(dti_items *items, dt_module *root, dt_optim *optim, const char *who);
/* Make parameters that have no values; then they all can be written, now. false: the error. Collective. */
bool dti_items_open(const dti_items *items, const char *who);
/* They have been written. */
void dti_items_written(const dti_items *items);
void dti_items_fini(dti_items *items);
dti_store dti_items_store(const dti_items *items, const char *folder);

#endif
