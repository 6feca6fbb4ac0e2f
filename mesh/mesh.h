/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a mesh: each dim is a list of axes over the ranks of the run. A mesh rank's coordinate along a dim is
 * the row-major number of its digits on the dim's axes; digit of a world rank on an axis = (rank - base) / stride %
 * size. */
#ifndef DTI_MESH_H
#define DTI_MESH_H

#include <dtensor/mesh.h>

#include "core/context.h"
#include "core/scan.h"

typedef struct dti_axis { int size, stride; } dti_axis;

enum { DTI_MAX_AXES = 31 };        /* axes of size >= 2 of one mesh: ranks are counted in an int                   */

typedef struct dti_mesh_dim {
    const char *name;
    int size;
    int axis_count;                /* 0 where size is 1; no axis has size 1; touching axes are one                 */
    dti_axis *axes;                /* outermost first                                                              */
} dti_mesh_dim;

struct dt_mesh {
    dt_context *ctx;
    const char *text;
    uint64_t hash;
    int base;                      /* world rank of coordinates 0                                                  */
    int size;                      /* how many ranks                                                               */
    int rank;                      /* this rank's, row-major; -1: not a member                                     */
    int dim_count;
    dti_mesh_dim dims[DT_MAX_MESH_DIMS];
    dt_counters *counters;         /* per dim, then of all together; NULL: nothing was communicated                */
    struct dt_mesh *origin;        /* whose dims were split or flattened for this one; NULL: it is no such view    */
};

/* Index of a dim by name, -1: none. */
int dti_mesh_find(const dt_mesh *mesh, dti_word name);
/* Index of a dim by name; -1 and DT_ERR_ARG, listing the mesh, for none. */
int dti_mesh_dim_index(const dt_mesh *mesh, dti_word name);
/* Mesh rank of a world rank; -1: not a member. */
int dti_mesh_index(const dt_mesh *mesh, int world_rank);
/* The mesh of one rank of the run, without dims. NULL and the error when memory ran out. */
dt_mesh *dti_mesh_of_rank(dt_context *ctx, int world_rank);
/* Coordinate of a world rank along a dim; -1: not a member. */
int dti_mesh_coord_of(const dt_mesh *mesh, int dim, int world_rank);

static inline int dti_axis_digit(dti_axis axis, int offset) { return offset / axis.stride % axis.size; }
/* Row-major number of the digits that an offset (world rank - base) has on a list of axes; the offset of a number. */
int dti_axes_coord(const dti_axis *axes, int n, int offset);
int dti_axes_offset(const dti_axis *axes, int n, int coord);
/* Is an offset one of those? Axes largest stride first, as the members of a layout are. */
bool dti_axes_reach(const dti_axis *axes, int n, int offset);

/* The dims of a mesh that its ranks move along when those of a view of it move along these. */
uint32_t dti_mesh_dims_of_view(const dt_mesh *mesh, const dt_mesh *view, uint32_t dims);
/* The mesh's counters, to be added to; NULL and the error when memory ran out. */
dt_counters *dti_mesh_counting(dt_mesh *mesh);
/* Merge touching axes of an ordered list in place: (a, s) then (b, t) with s = b t is (a b, t). The new count. */
int dti_axes_merge(dti_axis *axes, int n);

#endif
