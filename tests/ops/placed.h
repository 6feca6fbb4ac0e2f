/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the operands of a call may lie on a mesh: R, each S, each P; S of a dim, and of a factor of it where its size
 * has any. */
#ifndef OPS_PLACED_H
#define OPS_PLACED_H

#include "calls.h"

enum { PLACED_TEXT = 96 };

typedef struct placed {
    char spec[CALL_OPERANDS][PLACED_TEXT]; /* "": absent                                                           */
    bool free;                         /* nothing need move                                                        */
} placed;

typedef struct placed_list { int count, room; placed *at; } placed_list;

/* Add to a list: every combination of placements along the one dim of a mesh, or *most* of them drawn at random; ... */
void placed_all(const op_call *call, dt_mesh *mesh, int most, placed_list *list);
/* ... every pair of strategies along the two dims of a mesh, one each; ... */
void placed_pairs(const op_call *call, dt_mesh *mesh, int most, placed_list *list);
/* ... every placement of one operand, the others R; ... */
void placed_singles(const op_call *call, dt_mesh *mesh, int most, placed_list *list);
/* ... and n drawn at random. */
void placed_draws(const op_call *call, dt_mesh *mesh, int n, uint64_t seed, placed_list *list);
typedef struct placed_effort {         /* per call and mesh, at most                                               */
    int combinations, pairs, singles;
    int draws;                         /* of all calls of a row on one mesh                                        */
} placed_effort;

/* All that this says for one of n calls: combinations on a mesh of one dim, else the others. */
void placed_call(const op_call *call, dt_mesh *mesh, const placed_effort *effort, int n, placed_list *list);
void placed_free(placed_list *list);

#endif
