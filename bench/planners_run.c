/* SPDX-License-Identifier: Apache-2.0
 *
 * The peers' chains run on numbers, element by element and with no cleverness, so that no model claims bytes for a
 * chain that does not reach its target. */
#include "planners.h"

#include <stdlib.h>
#include <string.h>

typedef struct numbers {           /* value of element e on rank r: at[r * elements + e]                           */
    const peer_problem *problem;
    int ranks;
    int64_t elements;
    int64_t *at, *next;
    peer_box boxes[PEER_RANKS];    /* what the ranks hold now                                                      */
    const char *wrong;             /* the first thing that is                                                      */
} numbers;

typedef struct moment { const peer_step *step; peer_box before, after; int rank; int64_t received; } moment;

static void fail(numbers *n, const char *wrong) { if (!n->wrong) n->wrong = wrong; }

static bool in_box(const numbers *n, const peer_box *box, int64_t element)
{
    for (int d = n->problem->dims - 1; d >= 0; d--) {
        int64_t i = element % n->problem->shape[d];
        if (i < box->lo[d] || i >= box->hi[d]) return false;
        element /= n->problem->shape[d];
    }
    return true;
}

static bool holds(const numbers *n, int rank, int64_t element) { return in_box(n, &n->boxes[rank], element); }

static void enter(numbers *n, const peer_state *state)
{
    for (int rank = 0; rank < n->ranks; rank++) n->boxes[rank] = peer_holds(n->problem, state, rank);
}

/* Do two ranks differ along some mesh dims only? */
static bool together(const numbers *n, unsigned along, int a, int b)
{
    for (int m = 0; m < n->problem->mesh_dims; m++)
        if (!(along >> m & 1) && peer_coord(n->problem, m, a) != peer_coord(n->problem, m, b)) return false;
    return true;
}

static unsigned partial_dims(const numbers *n, const peer_state *state)
{
    unsigned mask = 0;
    for (int m = 0; m < n->problem->mesh_dims; m++) mask |= (unsigned)(state->place[m] == PEER_P) << m;
    return mask;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static int64_t whole_value(int64_t element) { return element * 7 + 3; }

/* Rank 0 of a sum has what the others, which have numbers of their own, leave over. */
static int64_t contribution(const numbers *n, unsigned partial, int rank, int64_t element)
{
    int64_t number = 0, count = 1, others = 0;
    for (int m = 0; m < n->problem->mesh_dims; m++) {
        if (!(partial >> m & 1)) continue;
        number = number * n->problem->size[m] + peer_coord(n->problem, m, rank);
        count *= n->problem->size[m];
    }
    if (number) return (element * 31 + number * 17) % 101;
    for (int64_t i = 1; i < count; i++) others += (element * 31 + i * 17) % 101;
    return whole_value(element) - others;
}

static void check_target(numbers *n, const peer_state *target)
{
    unsigned partial = partial_dims(n, target);
    enter(n, target);
    for (int rank = 0; rank < n->ranks; rank++)
        for (int64_t e = 0; e < n->elements; e++) {
            int64_t sum = 0;
            for (int other = 0; other < n->ranks; other++)
                if (together(n, partial, rank, other)) sum += n->at[other * n->elements + e];
            if (holds(n, rank, e) && sum != whole_value(e)) fail(n, "wrong values at the target");
        }
}

/* ---- collectives, one element of one rank ------------------------------------------------------------------------ */

static int64_t take(numbers *n, moment *now, int64_t e)
{
    if (in_box(n, &now->before, e)) return n->at[now->rank * n->elements + e];
    now->received++;
    for (int other = 0; other < n->ranks; other++)
        if (together(n, now->step->along, now->rank, other) && holds(n, other, e))
            return n->at[other * n->elements + e];
    return fail(n, "an element that no rank of the group holds"), 0;
}

static int64_t add_up(numbers *n, const moment *now, int64_t e)
{
    int64_t sum = 0;
    for (int other = 0; other < n->ranks; other++) {
        if (!together(n, now->step->along, now->rank, other)) continue;
        if (!holds(n, other, e)) fail(n, "a contribution that its rank does not hold");
        sum += n->at[other * n->elements + e];
    }
    return sum;
}

static int64_t local(numbers *n, const moment *now, int64_t e)
{
    bool held = in_box(n, &now->before, e);
    for (int m = 0; m < n->problem->mesh_dims; m++) {
        if (now->step->after.place[m] != PEER_P || now->step->before.place[m] == PEER_P) continue;
        if (!held) return 0;
        bool keeps = now->step->before.place[m] != PEER_R || peer_coord(n->problem, m, now->rank) == 0;
        return keeps ? n->at[now->rank * n->elements + e] : 0;
    }
    if (!held) fail(n, "a slice of what is not held");
    return n->at[now->rank * n->elements + e];
}

static int64_t result(numbers *n, moment *now, int64_t e)
{
    switch (now->step->move) {
    case PEER_LOCAL: return local(n, now, e);
    case PEER_REDUCE_SCATTER:
    case PEER_ALL_REDUCE: return add_up(n, now, e);
    default: return take(n, now, e);
    }
}

static void run_step(numbers *n, const peer_step *step)
{
    enter(n, &step->before);
    for (int rank = 0; rank < n->ranks; rank++) {
        moment now = { step, n->boxes[rank], peer_holds(n->problem, &step->after, rank), rank, 0 };
        for (int64_t e = 0; e < n->elements; e++)
            n->next[rank * n->elements + e] = in_box(n, &now.after, e) ? result(n, &now, e) : 0;
        bool moves = step->move == PEER_GATHER || step->move == PEER_ALL_TO_ALL;
        if (moves && now.received * n->problem->element != peer_received(n->problem, step, rank))
            fail(n, "other bytes than the formula's");
    }
    int64_t *swap = n->at;
    n->at = n->next;
    n->next = swap;
}

static void run_chain(numbers *n, const peer_step *steps, int count, peer_state state, const peer_state *target)
{
    enter(n, &state);
    for (int rank = 0; rank < n->ranks; rank++)
        for (int64_t e = 0; e < n->elements; e++)
            n->at[rank * n->elements + e] = holds(n, rank, e)
                                          ? contribution(n, partial_dims(n, &state), rank, e) : 0;
    for (int i = 0; i < count; i++) {
        if (memcmp(&steps[i].before, &state, sizeof state)) fail(n, "a step that begins elsewhere than the last ended");
        run_step(n, &steps[i]);
        state = steps[i].after;
    }
    if (memcmp(&state, target, sizeof state)) fail(n, "another state than the target");
    check_target(n, target);
}

const char *peer_run(const peer_problem *problem, const peer_step *steps, int count, peer_state source,
                     peer_state target)
{
    numbers n = { .problem = problem, .ranks = peer_ranks(problem), .elements = 1 };
    for (int d = 0; d < problem->dims; d++) n.elements *= problem->shape[d];
    n.at = calloc((size_t)(n.ranks * n.elements), sizeof *n.at);
    n.next = calloc((size_t)(n.ranks * n.elements), sizeof *n.next);
    if (n.at && n.next) run_chain(&n, steps, count, source, &target);
    else fail(&n, "no memory");
    free(n.at);
    free(n.next);
    return n.wrong;
}

/* ---- simple cases ------------------------------------------------------------------------------------------------ */

/* Along one mesh dim of n ranks, a tensor of M bytes: what the collectives are known to cost. */
const char *peer_check_simple(void)
{
    enum { N = 4, M = 8 * 12 * 4 };
    static const peer_problem problem = { 1, { N }, 2, { 8, 12 }, 4 };
    static const struct simple { int8_t from, to; int64_t bytes, replicated; const char *wrong; } simple[] = {
        { 0, PEER_R, (N - 1) * M / N, (N - 1) * M / N, "an all-gather is not (n-1)/n M" },
        { PEER_P, 0, (N - 1) * M / N, 2 * (N - 1) * M / N, "a reduce-scatter is not (n-1)/n M" },
        { PEER_P, PEER_R, 2 * (N - 1) * M / N, 2 * (N - 1) * M / N, "an all-reduce is not 2(n-1)/n M" },
        { 0, 1, (N - 1) * M / N / N, (N - 1) * M / N, "an all-to-all is not (n-1)/n of the local bytes" },
        { PEER_R, 1, 0, 0, "a slice moves bytes" },
    };
    const char *wrong = NULL;
    peers *p = peers_create(&problem);
    for (size_t i = 0; p && i < sizeof simple / sizeof simple[0]; i++)
        for (int kind = 0; kind < PEER_COUNT; kind++) {
            peer_step steps[PEER_STEPS];
            peer_state from = peer_state_of(&problem, &simple[i].from), to = peer_state_of(&problem, &simple[i].to);
            peer_cost cost = peers_price(p, steps, peers_route(p, (peer_kind)kind, from, to, steps));
            int64_t bytes = kind == PEER_REPLICATE ? simple[i].replicated : simple[i].bytes;
            bool right = cost.received == bytes && cost.sent == bytes && cost.padded == bytes;
            if (!right || cost.total != N * bytes) wrong = simple[i].wrong;
        }
    peers_destroy(p);
    return p ? wrong : "no memory";
}
