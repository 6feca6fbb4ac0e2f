/* SPDX-License-Identifier: Apache-2.0
 *
 * An independent judge of plans. It reads specs from their text and cuts element by element; it carries a plan's pulls
 * out on 64-bit tokens, one per element and contributor, added with wrap-around; it counts bytes pull by pull; and it
 * knows the least that any plan must move by looking at every element and rank. Of the planner it uses dti_step_pulls
 * and the numbering of blocks, and nothing else. Slow and small: for some dozens of ranks and some hundreds of
 * elements. */
#ifndef ORACLE_H
#define ORACLE_H

#include <dtensor/plan.h>

enum { ORACLE_MAX_RANKS = 64, ORACLE_MAX_STEPS = 16 };

/* A spec as the oracle reads it. */
typedef struct oracle_spec {
    char text[256];
    const dt_spec *spec;
    int world, ranks, dims;        /* of the run; of the mesh; dims of the mesh                                    */
    int64_t elements;
    int size[DT_MAX_MESH_DIMS];
    char kind[DT_MAX_MESH_DIMS];   /* per mesh dim: R, S, or P's s(um), a(vg), M(ax), m(in), p(rod)                */
    int at[ORACLE_MAX_RANKS];      /* mesh rank of a world rank; -1: not a member                                  */
    unsigned char *holds;          /* [world][elements]                                                            */
} oracle_spec;

/* Read "f32[6,4]@y:S(0),x:S(0)" on a mesh. false: the library refuses it, or it is beyond the oracle's limits. */
bool oracle_read(oracle_spec *spec, dt_mesh *mesh, const char *text);
void oracle_free(oracle_spec *spec);
bool oracle_holds(const oracle_spec *spec, int world_rank, int64_t element);
bool oracle_partial(const oracle_spec *spec);

/* The least that any plan moves, in elements. */
typedef struct oracle_bound {
    int64_t total;                 /* received by all ranks; -1: not known (P to P on two meshes)                  */
    int64_t busiest;               /* without P: by the busiest; else -1                                           */
    int64_t rank[ORACLE_MAX_RANKS]; /* without P: by each rank                                                      */
} oracle_bound;

void oracle_bound_of(const oracle_spec *source, const oracle_spec *target, oracle_bound *bound);

/* What a plan moves, in bytes, pull by pull. */
typedef struct oracle_count {
    int64_t received[ORACLE_MAX_RANKS], sent[ORACLE_MAX_RANKS];
    int64_t link_received[ORACLE_MAX_RANKS][DT_MAX_LINKS], link_sent[ORACLE_MAX_RANKS][DT_MAX_LINKS];
    int64_t stage_received[ORACLE_MAX_STEPS][ORACLE_MAX_RANKS]; /* steps that run at once are a stage            */
    int64_t stage_messages[ORACLE_MAX_STEPS][ORACLE_MAX_RANKS];
    int64_t total;
    int links;
} oracle_count;

/* Carry a plan out and count it. NULL, or what is wrong with it: a pull of what is not there, an element twice, left
 * out or wrong in the end, bytes that are not those the plan says. */
const char *oracle_try(const dt_plan *plan, const oracle_spec *source, const oracle_spec *target, oracle_count *count);

#endif
