/* SPDX-License-Identifier: Apache-2.0
 *
 * The pulls of one rank in one step. Ranks that hold the same form a class: the digits of the axes that number
 * contributions and that cut name it, those along which it is copied tell its ranks apart. A rank asks each class for
 * what it shares with the class's holding; a class it is in itself it need not ask. Where a class has copies, the
 * nearest ones answer, and all that is asked of them is laid end to end and cut evenly: so senders are balanced to an
 * element. */
#include "redistribute/plan.h"

#include "placements/cut.h"

typedef struct asking {
    const dti_frame *frame;
    const dti_topology *topology;
    const dti_step *step;
    int rank, anchor;              /* anchor: the rank with digit 0 on every axis asked along                      */
    int copies;                    /* ranks of one class                                                           */
    bool has_early;                /* steps with `early` have no copies                                            */
    dti_set to[DTI_MAX_BLOCKS], from[DTI_MAX_BLOCKS], shared[DTI_MAX_BLOCKS], early[DTI_MAX_BLOCKS];
    dti_pull_fn fn;
    void *arg;
} asking;

static int axes_size(const dti_axis *axes, int n)
{
    int size = 1;
    for (int i = 0; i < n; i++) size *= axes[i].size;
    return size;
}

static int class_axes(const dti_step *step) { return step->sum_count + step->cut_count; }

static int class_rank(const asking *a, int class, int copy)
{
    const dti_step *step = a->step;
    return a->anchor + dti_axes_offset(step->asked, class_axes(step), class)
        + dti_axes_offset(step->asked + class_axes(step), step->copy_count, copy);
}

static bool in_class(const asking *a, int class, int rank)
{
    return dti_holding_has(a->step->from, rank)
        && dti_axes_coord(a->step->asked, class_axes(a->step), rank - a->step->from->base) == class;
}

/* shared = what a rank with these sets is to hold of the class's; returns how many elements. */
static int64_t share(const asking *a, const dti_set *to, dti_set *shared)
{
    int64_t count = 1;
    for (int b = 0; b < a->frame->block_count && count; b++) {
        dti_set_intersect(&to[b], &a->from[b], &shared[b]);
        count *= dti_set_count(&shared[b]);
    }
    return count;
}

static void emit(const asking *a, int class, int rank, int64_t first, int64_t count)
{
    int cuts = axes_size(a->step->asked + a->step->sum_count, a->step->cut_count);
    dti_pull pull = { rank, class / cuts, a->shared, first, count, false };
    a->fn(&pull, a->arg);
}

static int64_t product(const asking *a, const dti_set *sets)
{
    int64_t count = 1;
    for (int b = 0; b < a->frame->block_count; b++) count *= dti_set_count(&sets[b]);
    return count;
}

/* The same without what the rank has since earlier: block by block what lies outside that, inside it in the blocks
 * before. */
static void emit_rest(asking *a, int class, int rank)
{
    dti_set shared;
    for (int b = 0; b < a->frame->block_count; b++) {
        shared = a->shared[b];
        dti_set_init(&a->shared[b]);
        dti_set_subtract(&shared, &a->early[b], &a->shared[b]);
        int64_t count = product(a, a->shared);
        if (count) emit(a, class, rank, 0, count);
        dti_set_intersect(&shared, &a->early[b], &a->shared[b]);
        dti_set_fini(&shared);
    }
}

/* What the rank has since earlier comes from there. */
static void emit_early(asking *a)
{
    if (!a->has_early) return;
    for (int b = 0; b < a->frame->block_count; b++) dti_set_intersect(&a->to[b], &a->early[b], &a->shared[b]);
    dti_pull pull = { a->rank, 0, a->shared, 0, product(a, a->shared), true };
    if (pull.count) a->fn(&pull, a->arg);
}

/* ---- classes with copies ----------------------------------------------------------------------------------------- */

/* Link class between a rank and the nearest copies of a class; the topology's count of classes where it is one. */
static int nearest(const asking *a, int class, int rank)
{
    int best = 0;
    for (int i = 0; i < a->copies && a->topology->level_count > 1; i++) {
        int link = dti_topology_class(a->topology, class_rank(a, class, i), rank);
        if (link > best) best = link;
    }
    return best;
}

/* Do two ranks stand in one place of the level above a link class, so that neither crosses more than it? */
static bool within(const asking *a, int link, int rank, int other)
{
    return dti_topology_class(a->topology, rank, other) >= link;
}

/* Ranks that may ask the class: number i of them, copies' digits first, so that each copy's own kin come together. */
static int taker(const asking *a, int i)
{
    const dti_step *step = a->step;
    if (!step->own) return dti_holding_member(step->to, i);
    int classes = axes_size(step->asked, class_axes(step));
    return class_rank(a, i % classes, i / classes);
}

static int taker_count(const asking *a)
{
    return a->step->own ? axes_size(a->step->asked, class_axes(a->step) + a->step->copy_count) : a->step->to->ranks;
}

/* How many elements another rank asks of the class. */
static int64_t demand(const asking *a, int class, int rank)
{
    if (in_class(a, class, rank) || !dti_holding_has(a->step->to, rank)) return 0;
    int64_t count = 1;
    dti_set to;
    dti_set_init(&to);
    for (int b = 0; b < a->frame->block_count && count; b++) {
        dti_step_to(a->frame, a->step, b, rank, &to);
        count *= dti_set_shared(&to, &a->from[b]);
    }
    dti_set_fini(&to);
    return count;
}

/* Ask the nearest copies for this rank's part of all that is asked of them. */
static void ask_copies(const asking *a, int class, int64_t count)
{
    int link = nearest(a, class, a->rank), holders = 0;
    int64_t before = 0, all = 0;
    for (int i = 0; i < a->copies; i++) holders += within(a, link, class_rank(a, class, i), a->rank);
    for (int i = 0; i < taker_count(a); i++) {
        int rank = taker(a, i);
        if (rank == a->rank) before = all;
        if (within(a, link, rank, a->rank) && nearest(a, class, rank) == link) all += demand(a, class, rank);
    }
    for (int i = 0, holder = 0; i < a->copies; i++) {
        int rank = class_rank(a, class, i);
        if (!within(a, link, rank, a->rank)) continue;
        int64_t lo = dti_cut(all, holders, holder) - before, hi = dti_cut(all, holders, holder + 1) - before;
        holder++;
        if (lo < 0) lo = 0;
        if (hi > count) hi = count;
        if (lo < hi) emit(a, class, rank, lo, hi - lo);
    }
}

/* ---- all classes ------------------------------------------------------------------------------------------------- */

static void ask_class(asking *a, int class)
{
    if (!dti_holding_has(a->step->from, class_rank(a, class, 0))) return;   /* ranks between those that hold          */
    for (int b = 0; b < a->frame->block_count; b++)
        dti_step_from(a->frame, a->step, b, class_rank(a, class, 0), &a->from[b]);
    int64_t count = share(a, a->to, a->shared);
    if (count == 0) return;
    if (a->has_early) emit_rest(a, class, in_class(a, class, a->rank) ? a->rank : class_rank(a, class, 0));
    else if (in_class(a, class, a->rank)) emit(a, class, a->rank, 0, count);
    else if (a->copies == 1) emit(a, class, class_rank(a, class, 0), 0, count);
    else ask_copies(a, class, count);
}

static bool any_lost(const asking *a)
{
    bool lost = false;
    for (int b = 0; b < a->frame->block_count; b++)
        lost |= a->to[b].lost | a->from[b].lost | a->shared[b].lost | a->early[b].lost;
    return lost;
}

static void init_sets(asking *a)
{
    for (int b = 0; b < a->frame->block_count; b++) {
        dti_set_init(&a->to[b]);
        dti_set_init(&a->from[b]);
        dti_set_init(&a->shared[b]);
        dti_set_init(&a->early[b]);
        if (a->has_early) dti_holding_set(a->step->early, b, a->frame->blocks[b], a->rank, &a->early[b]);
        dti_step_to(a->frame, a->step, b, a->rank, &a->to[b]);
    }
}

static void fini_sets(asking *a)
{
    for (int b = 0; b < a->frame->block_count; b++) {
        dti_set_fini(&a->to[b]);
        dti_set_fini(&a->from[b]);
        dti_set_fini(&a->shared[b]);
        dti_set_fini(&a->early[b]);
    }
}

bool dti_step_pulls(const dti_frame *frame, const dti_topology *topology, const dti_step *step, int rank,
                    dti_pull_fn fn, void *arg)
{
    if (!dti_holding_has(step->to, rank)) return true;
    asking a = { .frame = frame, .topology = topology, .step = step, .rank = rank, .fn = fn, .arg = arg };
    int axes = class_axes(step) + step->copy_count;
    a.anchor = step->own ? rank : step->from->base;
    for (int i = 0; i < axes && step->own; i++)
        a.anchor -= dti_axis_digit(step->asked[i], rank - step->from->base) * step->asked[i].stride;
    a.copies = axes_size(step->asked + class_axes(step), step->copy_count);
    a.has_early = step->early && dti_holding_has(step->early, rank);
    init_sets(&a);
    emit_early(&a);
    int classes = axes_size(step->asked, class_axes(step));
    for (int class = 0; class < classes && !any_lost(&a); class++) ask_class(&a, class);
    bool lost = any_lost(&a);
    fini_sets(&a);
    return !lost;
}
