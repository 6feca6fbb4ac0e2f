/* SPDX-License-Identifier: Apache-2.0
 *
 * Named tensors in a folder: what a checkpoint is, without knowing modules. Each rank of a mesh writes the elements of
 * which it is the first holder to a file of its own, in the format of safetensors; then the mesh's first rank writes
 * the index that names the files. Invariant: at any moment the folder's index names files that are whole. */
#ifndef DTI_STORE_H
#define DTI_STORE_H

#include "tensor/tensor.h"
#include "train/index.h"

typedef struct dti_item { const char *name; dt_tensor *x; } dti_item; /* in the order of the files                 */

typedef struct dti_store {
    dt_mesh *mesh;                 /* of all ranks that take part: those of the items are among them               */
    const char *folder;
    const dti_item *items;
    int n;
    int64_t step, updates;         /* kept in the index                                                            */
} dti_store;

/* Can they be kept: none of them is P, all lie among the mesh's ranks? false: the error, the same on every rank. */
bool dti_store_check(const dti_store *store);
/* Write them; what the folder's index named before goes. false: the error, and the folder is as it was. Collective over
 * the mesh. */
bool dti_store_save(const dti_store *store);
/* The folder's index, the same on every rank; empty where this rank takes no part: it is not of the mesh, or dry.
 * false: the error, and nothing to end. Collective. */
bool dti_store_index(dt_mesh *mesh, const char *folder, dti_index *index);
/* Has the index all items, and nothing else that is a parameter (no "/" in its name) or, with `all`, whatever it is?
 * false: the error, the same on every rank. Items need no values. */
bool dti_store_fits(const dti_store *store, dti_index *index, bool all);
/* The items' parts, of which they are the only owners, from the files of an index that fits. taken (NULL: not wanted):
 * bytes that this rank read. false: the error, and parts may have been written. Collective. */
bool dti_store_load(const dti_store *store, const dti_index *index, int64_t *taken);
/* Is there an index in the folder? The same on every rank. Collective. */
bool dti_store_exists(dt_mesh *mesh, const char *folder);
/* Is this rank one that reads and writes? */
bool dti_store_takes_part(const dt_mesh *mesh);

#endif
