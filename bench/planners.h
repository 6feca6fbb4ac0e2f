/* SPDX-License-Identifier: Apache-2.0
 *
 * Models of the usual ways to plan a redistribution, as chains of collectives, priced in bytes by closed formulas.
 * Nothing here knows libdtensor. The models differ in how they choose the chain; what a collective costs, and where
 * elements lie, is the same for all: n over k pieces cuts at ceil(i n / k), nested mesh dims as one of the
 * product size.
 *
 *   replicate   reduce and gather all that changes, then slice
 *   greedy      mesh dim by mesh dim, one collective each, from the last mesh dim to the first, then the rest from the
 *               first to the last; what is nested in a changing split is gathered first (as PyTorch DTensor does by
 *               default)
 *   shortest    the chain of collectives on one mesh dim each with the fewest bytes, by search over all states
 */
#ifndef BENCH_PLANNERS_H
#define BENCH_PLANNERS_H

#include <stdbool.h>
#include <stdint.h>

enum { PEER_MESH_DIMS = 4, PEER_DIMS = 4, PEER_STEPS = 4 * PEER_MESH_DIMS, PEER_RANKS = 64 };
enum { PEER_R = -1, PEER_P = -2 };         /* as a place; from 0 on: the dim that a mesh dim splits                */

typedef enum peer_kind { PEER_REPLICATE, PEER_GREEDY, PEER_SHORTEST, PEER_COUNT } peer_kind;

typedef struct peer_problem {
    int mesh_dims, size[PEER_MESH_DIMS];   /* outermost first, rank = row-major                                    */
    int dims;
    int64_t shape[PEER_DIMS];
    int64_t element;                       /* bytes                                                                */
} peer_problem;

typedef struct peer_state {                /* per mesh dim; equal states have equal bytes                          */
    int8_t place[PEER_MESH_DIMS];
    int8_t depth[PEER_MESH_DIMS];          /* how many mesh dims split the same dim before it                      */
} peer_state;

typedef enum peer_move { PEER_LOCAL, PEER_GATHER, PEER_ALL_TO_ALL, PEER_REDUCE_SCATTER, PEER_ALL_REDUCE } peer_move;

typedef struct peer_step {
    peer_move move;
    unsigned along;                        /* mesh dims, a bit each; more than one only for gather and all-reduce  */
    peer_state before, after;
} peer_step;

typedef struct peer_cost {
    int steps;                             /* that move bytes                                                      */
    int64_t received, sent, total;         /* by the busiest receiver, by the busiest sender, by all               */
    int64_t padded, padded_total;          /* received where pieces are padded to the largest                      */
} peer_cost;

typedef struct peers peers;                /* the models for one problem, with the graph of all states             */

/* NULL: memory ran out. */
peers *peers_create(const peer_problem *problem);
void peers_destroy(peers *p);

/* A state from places, mesh dims on one dim splitting it in mesh order. */
peer_state peer_state_of(const peer_problem *problem, const int8_t *places);
/* The chain of a model, into steps[PEER_STEPS]; returns how many. */
int peers_route(peers *p, peer_kind kind, peer_state source, peer_state target, peer_step *steps);
peer_cost peers_price(const peers *p, const peer_step *steps, int n);
const char *peer_name(peer_kind kind);

/* ---- for checking ------------------------------------------------------------------------------------------------ */

typedef struct peer_box { int64_t lo[PEER_DIMS], hi[PEER_DIMS]; } peer_box;

int peer_ranks(const peer_problem *problem);
int peer_coord(const peer_problem *problem, int mesh_dim, int rank);
/* What a rank holds in a state. */
peer_box peer_holds(const peer_problem *problem, const peer_state *state, int rank);
/* Bytes that one rank receives in a step. */
int64_t peer_received(const peer_problem *problem, const peer_step *step, int rank);
/* Runs a chain on numbers, collective by collective. NULL, or what is wrong: a step takes what nobody has, the bytes
 * are not those of the formula, or the result is not the target. */
const char *peer_run(const peer_problem *problem, const peer_step *steps, int n, peer_state source, peer_state target);
/* Collectives on one mesh dim cost what is known of them: NULL, or which does not. */
const char *peer_check_simple(void);

#endif
