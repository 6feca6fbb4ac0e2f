/* SPDX-License-Identifier: Apache-2.0
 *
 * All placements of a tensor on a mesh, as text: each mesh dim R, P or S(d), mesh dims that split one dim in both
 * orders, as written forward and backward. */
#ifndef PLACES_H
#define PLACES_H

#include <dtensor/mesh.h>

enum { PLACES_MAX = 512 };

typedef struct place_list { int count; char text[PLACES_MAX][64]; } place_list; /* "x:S(0),y:P"; "": R everywhere  */

/* partial: what P is, "P" or "P(max)"; NULL: none is. */
void places_fill(place_list *list, const dt_mesh *mesh, int tensor_dims, const char *partial);
/* The spec text of placement i: "f32[4,6]@x:S(0)". */
const char *places_spec(const place_list *list, int i, const char *sizes, char *text, size_t room);
/* How many dims "4,6" has. */
int places_dims(const char *sizes);
/* How many ranks "x=2,y=3" has. */
int places_ranks(const char *mesh);

#endif
