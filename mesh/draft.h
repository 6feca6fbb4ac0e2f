/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh before it is one: dims are added from the outermost, then it is interned, and equal drafts become one mesh.
 * The only way in which a struct dt_mesh comes to be. */
#ifndef DTI_DRAFT_H
#define DTI_DRAFT_H

#include "mesh/mesh_text.h"
#include "mesh/topology.h"

/* What the mesh layer keeps in its context. */
typedef struct dti_mesh_state {
    dti_table meshes;
    bool has_topology;             /* read once, at the first question                                             */
    dti_topology topology;
} dti_mesh_state;

typedef struct dti_draft {
    dt_context *ctx;
    dt_mesh *origin;               /* of a view of the same ranks, if it is new; NULL: none                        */
    int base;
    int dim_count;
    dti_item dims[DT_MAX_MESH_DIMS]; /* name and size                                                              */
    int axis_counts[DT_MAX_MESH_DIMS];
    int axis_count;
    dti_axis axes[DTI_MAX_AXES];   /* of all dims, one after the other                                             */
} dti_draft;

/* The layer's state; NULL and the error when memory ran out. */
dti_mesh_state *dti_mesh_state_get(dt_context *ctx);

/* A draft without dims. */
void dti_draft_init(dti_draft *draft, dt_context *ctx, int base);
/* Add a dim of these axes, outermost first: size-1 axes are dropped, touching ones merged. The caller knows that there
 * is room: at most DT_MAX_MESH_DIMS dims, sizes whose product is an int. */
void dti_draft_dim(dti_draft *draft, dti_word name, const dti_axis *axes, int n);
/* The mesh of the draft: the one there is, or a new one, of which observers are told; is_new may be NULL. NULL and the
 * error when memory ran out. */
dt_mesh *dti_draft_intern(const dti_draft *draft, bool *is_new);

#endif
