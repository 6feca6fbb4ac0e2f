/* SPDX-License-Identifier: Apache-2.0
 *
 * Lower bounds on what must be received, whatever the plan. Without sums a rank must receive what it lacks. With sums,
 * each element of p contributors and h target holders is received p - 1 times to be summed and h - 1 times to be
 * copied, and once more where no rank both contributes to it and is to hold it.
 *
 * For the busiest rank: a plan that moves no more than that in all receives an element's sums and copies only at ranks
 * that contribute to it or are to hold it. Ranks linked by such elements form groups, and a group's bytes are received
 * within it; so some rank of it receives at least the group's mean. */
#include <stdlib.h>

#include "redistribute/plan.h"

enum { MAX_GROUPED_RANKS = 256 };  /* above, one group of all ranks: a weaker bound, still a bound                 */

typedef struct bounding {
    const dt_plan *plan;
    const dti_frame *frame;
    dti_step ends;                 /* the step from the source's holding to the target's, as if there were one     */
    int64_t contribution, copy, least; /* bytes of an element: as summed, as copied, the smaller                   */
    int64_t per_element;           /* bytes per element where no rank is both, of all its source holders together  */
    int64_t sources, both;         /* how many of these there are; how many ranks are source and target holder     */
    dti_memo **memo;
} bounding;

/* The product of the sizes of axes that one holding, or both, leave uncut; P that stays P tells elements apart. */
static int64_t uncut(const dti_frame *frame, const dti_holding *a, const dti_holding *b)
{
    int64_t size = 1;
    for (int i = 0; i < frame->atom_count; i++) {
        const dti_atom *atom = &frame->atoms[i];
        bool kept = atom->source && atom->target;
        if (!kept && !dti_holding_closes(a, atom->axis) && !(b && dti_holding_closes(b, atom->axis)))
            size *= atom->axis.size;
    }
    return size;
}

static int64_t contributors(const dti_frame *frame)
{
    int64_t size = 1;
    for (int i = 0; i < frame->atom_count; i++)
        if (frame->atoms[i].source && !frame->atoms[i].target) size *= frame->atoms[i].axis.size;
    return size;
}

static bounding make_bound(const dt_plan *plan, const dti_frame *frame)
{
    const dti_holding *from = plan->from, *to = plan->to;
    int64_t a = (int64_t)dt_dtype_bytes(plan->source->layout->dtype);
    int64_t b = (int64_t)dt_dtype_bytes(plan->target->layout->dtype);
    bounding bound = { .plan = plan, .frame = frame, .ends = plan->steps[0], .contribution = a, .copy = b,
                    .least = a < b ? a : b };
    bound.ends.from = from;
    bound.ends.to = to;
    bound.ends.summed_ranks = 1;
    bound.ends.travels = a < b ? plan->source->layout->dtype : plan->target->layout->dtype;
    int64_t p = contributors(frame), h = uncut(frame, to, NULL);
    if (bound.copy > (p - 1) * a && p > 1) bound.copy = (p - 1) * a; /* summing again may be cheaper than copying   */
    bound.per_element = (p - 1) * a + (h - 1) * bound.copy + bound.least;
    bound.sources = uncut(frame, from, NULL);
    bound.both = uncut(frame, from, to);
    return bound;
}

/* What the elements of some ranks cost all ranks: held and kept are sums over these ranks, which count each element
 * once for each of its source holders, and for each rank that is both. */
typedef struct ledger { int64_t held, kept; } ledger;

static void enter(const bounding *bound, int rank, int64_t times, ledger *book)
{
    dti_memo *memo = bound->memo ? *bound->memo : NULL;
    book->held += dti_step_held(bound->frame, &bound->ends, memo, rank) * times;
    book->kept += dti_step_volume(bound->frame, &bound->ends, memo, rank).kept * times;
}

static int64_t cost(const bounding *bound, const ledger *book)
{
    return book->held / bound->sources * bound->per_element - book->kept / bound->both * bound->least;
}

static int64_t mean(int64_t bytes, int ranks) { return (bytes + ranks - 1) / ranks; }

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int group_of(int *parent, int i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static bool touch(const bounding *bound, int holder, int taker)
{
    bool shares = true;
    dti_set a, b;
    dti_set_init(&a);
    dti_set_init(&b);
    for (int i = 0; i < bound->frame->block_count && shares; i++) {
        dti_step_from(bound->frame, &bound->ends, i, holder, &a);
        dti_step_to(bound->frame, &bound->ends, i, taker, &b);
        shares = dti_set_shared(&a, &b) > 0;
    }
    dti_set_fini(&a);
    dti_set_fini(&b);
    return shares;
}

static int64_t largest_mean(const bounding *bound, const int *parent, int n)
{
    int64_t most = 0;
    for (int root = 0; root < n; root++) {
        ledger book = { 0, 0 };
        int ranks = 0;
        for (int i = 0; i < n; i++)
            if (parent[i] == root) enter(bound, dti_plan_rank(bound->plan, i), 1, &book), ranks++;
        if (ranks && mean(cost(bound, &book), ranks) > most) most = mean(cost(bound, &book), ranks);
    }
    return most;
}

static int64_t grouped_mean(const bounding *bound, int n)
{
    int parent[MAX_GROUPED_RANKS];
    for (int i = 0; i < n; i++) parent[i] = i;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (group_of(parent, i) != group_of(parent, j)
                && touch(bound, dti_plan_rank(bound->plan, i), dti_plan_rank(bound->plan, j)))
                parent[group_of(parent, i)] = group_of(parent, j);
    for (int i = 0; i < n; i++) parent[i] = group_of(parent, i);
    return largest_mean(bound, parent, n);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* A plan of one step is the step between its ends. */
static void without_sums(const bounding *bound, const dti_moves *planned, int64_t *total, int64_t *busiest)
{
    bool one = bound->plan->step_count == 1;
    dti_moves moves = one ? *planned : dti_route_moves(bound->frame, bound->plan->topology, &bound->ends, 1, NULL);
    *total = moves.total;
    *busiest = moves.received;
}

static void with_sums(bounding *bound, int64_t *total, int64_t *busiest)
{
    int n = dti_plan_ranks(bound->plan);
    dti_ranks ranks = dti_ranks_alike(bound->frame, &bound->ends, 1, NULL);
    bound->memo = dti_memos_new(bound->frame, &bound->ends, 1, ranks.count);
    ledger book = { 0, 0 };
    *busiest = 0;
    while (dti_ranks_next(&ranks)) {
        dti_memo *memo = bound->memo ? *bound->memo : NULL;
        int64_t need = dti_step_volume(bound->frame, &bound->ends, memo, ranks.rank).to * bound->least;
        if (need > *busiest) *busiest = need;
        enter(bound, ranks.rank, ranks.times, &book);
    }
    *total = cost(bound, &book);
    int64_t least = n <= MAX_GROUPED_RANKS ? grouped_mean(bound, n) : mean(*total, n);
    if (least > *busiest) *busiest = least;
}

static bool disjoint(const dt_plan *plan)
{
    for (int i = 0; i < plan->target->layout->ranks; i++)
        if (dti_layout_has(plan->source->layout, dti_layout_rank(plan->target->layout, i))) return false;
    return true;
}

/* To other ranks, or across axes without common refinement. Which ranks are source and target holder at once is asked
 * only as far as there are any: the bound allows that every element has one. */
static void across(const bounding *bound, int64_t *total, int64_t *busiest)
{
    const dti_holding *to = bound->plan->to;
    int64_t p = contributors(bound->frame), held = 0, elements = bound->frame->elements;
    *busiest = 0;
    for (int i = 0; i < to->ranks; i++) {
        int64_t need = dti_step_volume(bound->frame, &bound->ends, NULL, dti_holding_member(to, i)).to;
        held += need;
        if (need * bound->least > *busiest) *busiest = need * bound->least;
    }
    *total = elements * (p - 1) * bound->contribution + (held > elements ? held - elements : 0) * bound->copy
           + (disjoint(bound->plan) ? elements * bound->least : 0);
    int64_t least = mean(*total, dti_plan_ranks(bound->plan));
    if (least > *busiest) *busiest = least;
}

void dti_plan_bound(const dt_plan *plan, const dti_frame *frame, const dti_moves *moves, int64_t *total,
                    int64_t *busiest)
{
    *total = *busiest = 0;
    if (plan->step_count == 0) return;
    if (plan->mapped) {            /* every rank receives what it lacks, and nothing else                          */
        *total = moves->total;
        *busiest = moves->received;
        return;
    }
    bounding bound = make_bound(plan, frame);
    bool sums = contributors(frame) > 1;
    if (!sums) without_sums(&bound, moves, total, busiest);
    else if (frame->regular) with_sums(&bound, total, busiest);
    else across(&bound, total, busiest);
    dti_memos_free(bound.memo, 1);
}
