/* SPDX-License-Identifier: Apache-2.0
 *
 * The peers' chains of collectives and their prices. Every state here gives a rank one box, because a split is only
 * ever taken away or added as the innermost of its dim. */
#include "planners.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STATES = 4096, MAX_EDGES = PEER_MESH_DIMS * (PEER_DIMS + 2) };

typedef struct edge { int to; int64_t cost; peer_step step; } edge;

struct peers {
    peer_problem problem;
    int state_count, origin;       /* origin: the source that came_by and far are of; -1: none                     */
    peer_state states[MAX_STATES];
    edge edges[MAX_STATES][MAX_EDGES];
    int edge_count[MAX_STATES];
    int came_from[MAX_STATES], came_by[MAX_STATES];
    int64_t far[MAX_STATES];
    bool done[MAX_STATES];
};

const char *peer_name(peer_kind kind)
{
    static const char *const names[PEER_COUNT] = { "replicate", "greedy", "shortest" };
    return names[kind];
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

int peer_ranks(const peer_problem *problem)
{
    int ranks = 1;
    for (int m = 0; m < problem->mesh_dims; m++) ranks *= problem->size[m];
    return ranks;
}

int peer_coord(const peer_problem *problem, int mesh_dim, int rank)
{
    for (int m = problem->mesh_dims - 1; m > mesh_dim; m--) rank /= problem->size[m];
    return rank % problem->size[mesh_dim];
}

/* How many mesh dims split a dim. */
static int splits(const peer_problem *problem, const peer_state *state, int dim)
{
    int n = 0;
    for (int m = 0; m < problem->mesh_dims; m++) n += state->place[m] == dim;
    return n;
}

static bool innermost(const peer_problem *problem, const peer_state *state, int m)
{
    return state->place[m] >= 0 && state->depth[m] == splits(problem, state, state->place[m]) - 1;
}

/* One mesh dim placed otherwise; as a split it is the innermost. */
static peer_state placed(const peer_problem *problem, const peer_state *state, int m, int place)
{
    peer_state next = *state;
    next.place[m] = PEER_R;
    next.depth[m] = (int8_t)(place >= 0 ? splits(problem, &next, place) : 0);
    next.place[m] = (int8_t)place;
    return next;
}

peer_state peer_state_of(const peer_problem *problem, const int8_t *places)
{
    peer_state state;
    memset(&state, 0, sizeof state);
    memset(state.place, PEER_R, sizeof state.place);
    for (int m = 0; m < problem->mesh_dims; m++) state = placed(problem, &state, m, places[m]);
    return state;
}

static bool same(const peer_state *a, const peer_state *b) { return memcmp(a, b, sizeof *a) == 0; }

static int64_t up(int64_t n, int64_t k) { return (n + k - 1) / k; }

peer_box peer_holds(const peer_problem *problem, const peer_state *state, int rank)
{
    peer_box box;
    for (int d = 0; d < problem->dims; d++) {
        int64_t piece = 0, pieces = 1;
        for (int depth = 0; depth < splits(problem, state, d); depth++)
            for (int m = 0; m < problem->mesh_dims; m++) {
                if (state->place[m] != d || state->depth[m] != depth) continue;
                piece = piece * problem->size[m] + peer_coord(problem, m, rank);
                pieces *= problem->size[m];
            }
        box.lo[d] = up(piece * problem->shape[d], pieces);
        box.hi[d] = up((piece + 1) * problem->shape[d], pieces);
    }
    return box;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t volume(const peer_problem *problem, const peer_box *box)
{
    int64_t n = 1;
    for (int d = 0; d < problem->dims; d++) n *= larger(0, box->hi[d] - box->lo[d]);
    return n;
}

static int64_t overlap(const peer_problem *problem, const peer_box *a, const peer_box *b)
{
    peer_box both;
    for (int d = 0; d < problem->dims; d++) {
        both.lo[d] = larger(a->lo[d], b->lo[d]);
        both.hi[d] = lesser(a->hi[d], b->hi[d]);
    }
    return volume(problem, &both);
}

static int group_size(const peer_problem *problem, unsigned along)
{
    int size = 1;
    for (int m = 0; m < problem->mesh_dims; m++)
        if (along >> m & 1) size *= problem->size[m];
    return size;
}

/* A rank's number among those that differ from it along some mesh dims only. */
static int group_rank(const peer_problem *problem, unsigned along, int rank)
{
    int number = 0;
    for (int m = 0; m < problem->mesh_dims; m++)
        if (along >> m & 1) number = number * problem->size[m] + peer_coord(problem, m, rank);
    return number;
}

/* A rank's part of n elements that an all-reduce sums there and then sends to the others. */
static int64_t share(const peer_problem *problem, unsigned along, int64_t n, int rank)
{
    int k = group_size(problem, along), i = group_rank(problem, along, rank);
    return up((i + 1) * n, k) - up(i * n, k);
}

typedef struct flow { int64_t in, out; } flow;

static flow elements(const peer_problem *problem, const peer_step *step, int rank)
{
    peer_box before = peer_holds(problem, &step->before, rank), after = peer_holds(problem, &step->after, rank);
    int64_t had = volume(problem, &before), has = volume(problem, &after), k = group_size(problem, step->along), part;
    switch (step->move) {
    case PEER_GATHER: return (flow){ has - had, (k - 1) * had };
    case PEER_REDUCE_SCATTER: return (flow){ (k - 1) * has, had - has };
    case PEER_ALL_TO_ALL:
        part = overlap(problem, &before, &after);
        return (flow){ has - part, had - part };
    case PEER_ALL_REDUCE:
        part = share(problem, step->along, had, rank);
        return (flow){ (k - 1) * part + had - part, (k - 1) * part + had - part };
    default: return (flow){ 0, 0 };
    }
}

int64_t peer_received(const peer_problem *problem, const peer_step *step, int rank)
{
    return elements(problem, step, rank).in * problem->element;
}

/* With every piece padded to the largest of its group: (k - 1) pieces. An all-reduce needs no padding. */
static int64_t padded(const peer_problem *problem, const peer_step *step, int rank)
{
    if (step->move == PEER_LOCAL || step->move == PEER_ALL_REDUCE) return peer_received(problem, step, rank);
    peer_box before = peer_holds(problem, &step->before, rank), after = peer_holds(problem, &step->after, rank);
    int64_t piece = group_size(problem, step->along) - 1;
    for (int d = 0; d < problem->dims; d++) {
        int64_t pieces = 1;
        for (int m = 0; m < problem->mesh_dims; m++)
            if (step->along >> m & 1 && (step->before.place[m] == d) != (step->after.place[m] == d))
                pieces *= problem->size[m];
        int64_t whole = larger(before.hi[d] - before.lo[d], after.hi[d] - after.lo[d]);
        piece *= up(whole, pieces);
    }
    return piece * problem->element;
}

peer_cost peers_price(const peers *p, const peer_step *steps, int n)
{
    peer_cost cost = { 0, 0, 0, 0, 0, 0 };
    for (int i = 0; i < n; i++) cost.steps += steps[i].move != PEER_LOCAL;
    for (int rank = 0; rank < peer_ranks(&p->problem); rank++) {
        int64_t in = 0, out = 0, with_pads = 0;
        for (int i = 0; i < n; i++) {
            flow moved = elements(&p->problem, &steps[i], rank);
            in += moved.in * p->problem.element;
            out += moved.out * p->problem.element;
            with_pads += padded(&p->problem, &steps[i], rank);
        }
        cost.received = larger(cost.received, in);
        cost.sent = larger(cost.sent, out);
        cost.padded = larger(cost.padded, with_pads);
        cost.total += in;
        cost.padded_total += with_pads;
    }
    return cost;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* The collective that takes one mesh dim from its place to another. Nobody moves bytes to become partial. */
static peer_move move_between(int from, int to)
{
    if (from == to || from == PEER_R || to == PEER_P) return PEER_LOCAL;
    if (from == PEER_P) return to == PEER_R ? PEER_ALL_REDUCE : PEER_REDUCE_SCATTER;
    return to == PEER_R ? PEER_GATHER : PEER_ALL_TO_ALL;
}

static peer_step step_on(const peer_problem *problem, const peer_state *before, int m, int place)
{
    return (peer_step){ move_between(before->place[m], place), 1u << m, *before, placed(problem, before, m, place) };
}

/* ---- replicate --------------------------------------------------------------------------------------------------- */

/* Does a mesh dim's split stay where it is: itself and all outside it on the dim? */
static bool stays(const peer_problem *problem, const peer_state *a, const peer_state *b, int m)
{
    if (a->place[m] != b->place[m] || a->depth[m] != b->depth[m]) return false;
    for (int o = 0; o < problem->mesh_dims && a->place[m] >= 0; o++) {
        bool outer = a->place[o] == a->place[m] && a->depth[o] < a->depth[m];
        if (outer && (b->place[o] != a->place[o] || b->depth[o] != a->depth[o])) return false;
    }
    return true;
}

/* All that changes and has one place becomes R at once. */
static int replicate_all(const peer_problem *problem, const peer_state *target, bool partial, peer_state *now,
                         peer_step *step)
{
    *step = (peer_step){ partial ? PEER_ALL_REDUCE : PEER_GATHER, 0, *now, *now };
    for (int m = 0; m < problem->mesh_dims; m++) {
        if (stays(problem, now, target, m) || now->place[m] == PEER_R || (now->place[m] == PEER_P) != partial) continue;
        step->along |= 1u << m;
        step->after.place[m] = PEER_R;
        step->after.depth[m] = 0;
    }
    *now = step->after;
    return step->along != 0;
}

static int slice_all(const peer_problem *problem, const peer_state *target, peer_state *now, peer_step *steps)
{
    int n = 0;
    for (int depth = 0; depth < problem->mesh_dims; depth++)
        for (int m = 0; m < problem->mesh_dims; m++) {
            if (now->place[m] == target->place[m] || target->depth[m] != depth) continue;
            steps[n] = step_on(problem, now, m, target->place[m]);
            *now = steps[n++].after;
        }
    return n;
}

static int replicate(const peer_problem *problem, peer_state now, const peer_state *target, peer_step *steps)
{
    int n = replicate_all(problem, target, true, &now, steps);
    n += replicate_all(problem, target, false, &now, steps + n);
    return n + slice_all(problem, target, &now, steps + n);
}

/* ---- greedy ------------------------------------------------------------------------------------------------------ */

/* Which mesh dims before m split a dim, a bit each. */
static unsigned splitters(const peer_state *state, int dim, int m)
{
    unsigned mask = 0;
    for (int i = 0; i < m; i++) mask |= (unsigned)(state->place[i] == dim) << i;
    return mask;
}

static int greedy_step(const peer_problem *problem, peer_state *now, int m, int place, peer_step *step)
{
    if (now->place[m] == place) return 0;
    *step = step_on(problem, now, m, place);
    *now = step->after;
    return 1;
}

static int greedy(const peer_problem *problem, peer_state now, const peer_state *target, peer_step *steps)
{
    bool sharded = false;
    int n = 0;
    for (int m = 0; m < problem->mesh_dims; m++) sharded |= now.place[m] >= 0 && problem->size[m] > 1;
    for (int m = problem->mesh_dims - 1; m >= 0 && sharded; m--) {
        int place = target->place[m];
        if (place >= 0 && splitters(&now, place, m) != splitters(target, place, m)) place = PEER_R;
        n += greedy_step(problem, &now, m, place, steps + n);
    }
    for (int m = 0; m < problem->mesh_dims; m++) n += greedy_step(problem, &now, m, target->place[m], steps + n);
    return n;
}

/* ---- shortest ---------------------------------------------------------------------------------------------------- */

static int find(const peers *p, const peer_state *state)
{
    int i = 0;
    while (i < p->state_count && !same(&p->states[i], state)) i++;
    return i;
}

static int64_t busiest(const peer_problem *problem, const peer_step *step)
{
    int64_t most = 0;
    for (int rank = 0; rank < peer_ranks(problem); rank++) most = larger(most, peer_received(problem, step, rank));
    return most;
}

static void add_edge(peers *p, int from, int m, int place)
{
    peer_step step = step_on(&p->problem, &p->states[from], m, place);
    int to = find(p, &step.after);
    if (to == MAX_STATES) return;
    if (to == p->state_count) p->states[p->state_count++] = step.after;
    p->edges[from][p->edge_count[from]++] = (edge){ to, busiest(&p->problem, &step), step };
}

/* All states, from R everywhere on, and all single collectives between them. */
static void build_graph(peers *p)
{
    memset(&p->states[0], 0, sizeof p->states[0]);
    memset(p->states[0].place, PEER_R, sizeof p->states[0].place);
    p->state_count = 1;
    for (int from = 0; from < p->state_count; from++)
        for (int m = 0; m < p->problem.mesh_dims; m++) {
            int now = p->states[from].place[m];
            if (now >= 0 && !innermost(&p->problem, &p->states[from], m)) continue;
            for (int place = PEER_P; place < p->problem.dims; place++)
                if (place != now) add_edge(p, from, m, place);
        }
}

static int nearest(const peers *p)
{
    int best = -1;
    for (int i = 0; i < p->state_count; i++)
        if (!p->done[i] && p->far[i] >= 0 && (best < 0 || p->far[i] < p->far[best])) best = i;
    return best;
}

/* Fewest bytes of the busiest rank of each step, added; then fewest steps, counted in the low bits. */
static void measure_from(peers *p, int origin)
{
    for (int i = 0; i < p->state_count; i++) p->far[i] = -1, p->done[i] = false;
    p->far[origin] = 0;
    for (int at; (at = nearest(p)) >= 0;) {
        p->done[at] = true;
        for (int e = 0; e < p->edge_count[at]; e++) {
            const edge *next = &p->edges[at][e];
            int64_t far = p->far[at] + next->cost * 64 + 1;
            if (p->far[next->to] >= 0 && p->far[next->to] <= far) continue;
            p->far[next->to] = far;
            p->came_from[next->to] = at;
            p->came_by[next->to] = e;
        }
    }
    p->origin = origin;
}

static int shortest(peers *p, const peer_state *source, const peer_state *target, peer_step *steps)
{
    int from = find(p, source), to = find(p, target), n = 0;
    if (p->origin != from) measure_from(p, from);
    for (int at = to; at != from; at = p->came_from[at]) n++;
    for (int at = to, i = n; at != from; at = p->came_from[at])
        steps[--i] = p->edges[p->came_from[at]][p->came_by[at]].step;
    return n;
}

/* ---- the models -------------------------------------------------------------------------------------------------- */

peers *peers_create(const peer_problem *problem)
{
    peers *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->problem = *problem;
    p->origin = -1;
    build_graph(p);
    return p;
}

void peers_destroy(peers *p) { free(p); }

int peers_route(peers *p, peer_kind kind, peer_state source, peer_state target, peer_step *steps)
{
    switch (kind) {
    case PEER_REPLICATE: return replicate(&p->problem, source, &target, steps);
    case PEER_GREEDY: return greedy(&p->problem, source, &target, steps);
    default: return shortest(p, &source, &target, steps);
    }
}
