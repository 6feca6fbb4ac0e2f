/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh gives names to the ways in which ranks are grouped: "dp=2,tp=4", outermost first, so rank = dp * 4 + tp. A
 * name without a size takes it from --dt-mesh; the first that is not there takes the ranks that remain, others are 1.
 * So a program names its dims and a run gives sizes. An unknown dim is an error everywhere; a dim of size 1 behaves
 * like none. Equal meshes are one pointer. Views (slice, select, flatten, split) name the same ranks otherwise; they
 * cost no message, and fail with DT_ERR_PARSE on text in no notation.
 *
 * notation   mesh = dim {"," dim} ;  dim = name ["=" int] ;  name = letter {letter|digit|"_"} {"." int} ;
 */
#ifndef DTENSOR_MESH_H
#define DTENSOR_MESH_H

#include <dtensor/context.h>

DT_BEGIN_DECLS

enum { DT_MAX_MESH_DIMS = 16 };        /* dims of a mesh                                                            */

/* A mesh over all ranks; text NULL: as --dt-mesh says, else one dim "ranks". Warns the logger when the innermost dim
 * leaves the host. DT_ERR_PARSE: text in no notation, a name twice; DT_ERR_ARG: sizes whose product is not the number
 * of ranks, a size that does not divide it, a dim of --dt-mesh that text lacks. Collective. */
DT_API dt_mesh *dt_mesh_create(dt_context *ctx, const char *text);
/* This rank's sub-mesh of some dims, "dp,tp", in the order written: the ranks that differ from it only there. A rank
 * outside the mesh gets the sub-mesh at coordinate 0 of the other dims. DT_ERR_ARG: a dim the mesh has not, or twice.
 * Local. */
DT_API dt_mesh *dt_mesh_slice(dt_mesh *mesh, const char *dims);
/* The sub-mesh at given coordinates, "pp=1": the dims not named, the same on every rank. Ranks elsewhere are not its
 * members: their coordinates are -1, and what they make on it has a spec and no data. DT_ERR_ARG: an unknown dim, a
 * coordinate out of range. Local. */
DT_API dt_mesh *dt_mesh_select(dt_mesh *mesh, const char *coords);
/* Several dims as one, row-major in the order written; it stands where the first of them stood. DT_ERR_ARG: an unknown
 * dim, one twice, a name that another dim of the mesh has. Local. */
DT_API dt_mesh *dt_mesh_flatten(dt_mesh *mesh, const char *dims, const char *name);
/* One dim as several, "tp" into "kv=8,rep=2", outermost first; one size may be left out. DT_ERR_ARG: sizes whose
 * product is not the dim's, an unknown dim, a name already taken, a cut inside one of several flattened dims that does
 * not divide it (2 x 3 as 3 x 2), more dims than DT_MAX_MESH_DIMS. Local. */
DT_API dt_mesh *dt_mesh_split(dt_mesh *mesh, const char *dim, const char *text);

/* Ranks along one dim; NULL: all its ranks. 0 and DT_ERR_ARG for an unknown dim. Local. */
DT_API int dt_mesh_size(const dt_mesh *mesh, const char *dim);
/* This rank's coordinate along one dim; NULL: its rank in the mesh; -1: not a member. Local. */
DT_API int dt_mesh_coord(const dt_mesh *mesh, const char *dim);
/* The rank, as dt_rank counts, of a mesh's rank (0 .. size - 1, row-major over its dims); -1 out of range. Local. */
DT_API int dt_mesh_rank(const dt_mesh *mesh, int rank);
/* How many dims it has, those of size 1 too. Local. */
DT_API int dt_mesh_dim_count(const dt_mesh *mesh);
/* Name of a dim, 0 .. count - 1; NULL out of range. Local. The mesh owns the text. */
DT_API const char *dt_mesh_dim_name(const dt_mesh *mesh, int dim);
/* "dp=2,tp=4"; parses back. "" for NULL and for a mesh of no dims, all of which were selected. Local. The mesh owns the
 * text. */
DT_API const char *dt_mesh_text(const dt_mesh *mesh);
/* The context it was made in; NULL for NULL. Local. */
DT_API dt_context *dt_mesh_context(const dt_mesh *mesh);
/* What was communicated along one dim of this mesh since the context began; NULL: all. What moved along dims of a view
 * of the same ranks (flatten, split; also of parameters with fewer units than ranks, nn.h) counts for the dims that
 * these were made of, too. Local. */
DT_API dt_counters dt_mesh_counters(const dt_mesh *mesh, const char *dim);

/* ---- topology -------------------------------------------------------------------------------------------------- *
 * Where the ranks stand: levels from the outermost, "node=2,gpu=8", ranks numbered row-major. Level names are known
 * ones, in this order: pod, node, package, numa, l3, gpu, core, rank; they carry the prices of plans. From
 * --dt-topology, else from the machine for ranks that run here, else (dry) flat. */

enum { DT_MAX_LINKS = 4 };

/* The topology in its notation; parses back. Local. The context owns the text; "" and the error if --dt-topology is in
 * no notation or has fewer places than there are ranks. */
DT_API const char *dt_topology_text(dt_context *ctx);
/* Link classes, one per level. Local. */
DT_API int dt_topology_link_count(dt_context *ctx);
/* Name of a link class, 0 the outermost and slowest: the level whose border it crosses. NULL out of range. Local. */
DT_API const char *dt_topology_link_name(dt_context *ctx, int link);
/* The link class between two ranks: the outermost level at which they differ; the number of classes for a rank and
 * itself, or another at its place; -1 out of range. Local. */
DT_API int dt_topology_link(dt_context *ctx, int rank, int peer);

DT_END_DECLS

#endif
