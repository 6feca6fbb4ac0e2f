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

enum { PLACED_MOST = 32 };             /* placements of one operand along one mesh dim                             */

typedef struct placed_choice {         /* of an operand along the one dim of a mesh; of an absent one NULL         */
    int count, plain;                  /* R first, then the other plain ones: S of a factor that it has, P(sum)    */
    const dt_spec *at[PLACED_MOST];
} placed_choice;

placed_choice placed_choices(const op_call *call, dt_mesh *mesh, int operand);
/* An operand, placed as another of its shape. */
const dt_spec *placed_alike(const op_call *call, int operand, const dt_spec *other);
/* One more on a list, empty; NULL: no memory, which is a failure of the running test. */
placed *placed_more(placed_list *list);

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
    bool walk;                         /* more combinations than those are walked (walk.h), not drawn              */
} placed_effort;

/* All that this says for one of n calls: combinations on a mesh of one dim, else the others. */
void placed_call(const op_call *call, dt_mesh *mesh, const placed_effort *effort, int n, placed_list *list);
void placed_free(placed_list *list);

#endif
