/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of all combinations of placements along one mesh dim are to be executed, where executing all has no end. */
#ifndef OPS_WALK_H
#define OPS_WALK_H

#include "placed.h"

/* How many combinations there are along the one dim of a mesh. */
int64_t walk_size(const op_call *call, dt_mesh *mesh);
/* Walk them, add to a list those that bring a part that no other brought, and return how many were walked. Of very many
 * it walks what brings all parts (walk.c says why), and more where *choices*. What does not propagate is added, too:
 * whoever executes it sees why. Local; the mesh is without data. */
int64_t walk_call(const op_call *call, dt_mesh *mesh, bool choices, placed_list *list);

#endif
