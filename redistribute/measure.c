/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a step by closed formulas: a rank's part is a product of sets, so what it lacks is one product less another.
 * Nothing here looks at pairs of ranks. */
#include "redistribute/plan.h"

#include <stdlib.h>

#include "placements/cut.h"

/* ---- sets in the target's numbers -------------------------------------------------------------------------------- */

static void clip(const dti_set *set, int64_t lo, int64_t hi, dti_set *out)
{
    dti_set window;
    dti_set_init(&window);
    dti_set_append(&window, lo, hi);
    dti_set_intersect(set, &window, out);
}

/* The target indices whose source index, through the map, is in a set. */
static void unmap(const dti_map *map, const dti_set *set, dti_set *out)
{
    const dti_interval *at = dti_set_at(set);
    dti_set moved;
    dti_set_init(&moved);
    for (int i = 0; i < set->n; i++) {
        const dti_interval *v = map->reversed ? &at[set->n - 1 - i] : &at[i];
        if (map->reversed) dti_set_append(&moved, map->shift - v->hi + 1, map->shift - v->lo + 1);
        else dti_set_append(&moved, v->lo - map->shift, v->hi - map->shift);
    }
    clip(&moved, map->lo, map->hi, out);
    dti_set_fini(&moved);
}

void dti_step_from(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set)
{
    if (!step->maps) {
        dti_holding_set(step->from, block, frame->blocks[block], rank, set);
        return;
    }
    dti_set held;
    dti_set_init(&held);
    dti_holding_set(step->from, block, step->maps[block].source_size, rank, &held);
    unmap(&step->maps[block], &held, set);
    dti_set_fini(&held);
}

void dti_step_to(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set)
{
    if (!step->maps) {
        dti_holding_set(step->to, block, frame->blocks[block], rank, set);
        return;
    }
    dti_set held;
    dti_set_init(&held);
    dti_holding_set(step->to, block, frame->blocks[block], rank, &held);
    clip(&held, step->maps[block].lo, step->maps[block].hi, set);
    dti_set_fini(&held);
}

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

/* Elements that taker is to hold, and of these those that holder holds. */
static dti_volume volume(const dti_frame *frame, const dti_step *step, int taker, int holder)
{
    if (!dti_holding_has(step->to, taker)) return (dti_volume){ 0, 0 };
    dti_volume v = { 1, dti_holding_has(step->from, holder) };
    dti_set to, from;
    dti_set_init(&to);
    dti_set_init(&from);
    for (int b = 0; b < frame->block_count && v.to; b++) {
        dti_step_to(frame, step, b, taker, &to);
        v.to *= dti_set_count(&to);
        if (!v.kept) continue;
        dti_step_from(frame, step, b, holder, &from);
        v.kept *= dti_set_shared(&to, &from);
    }
    dti_set_fini(&to);
    dti_set_fini(&from);
    return v.to ? v : (dti_volume){ 0, 0 };
}

dti_volume dti_step_volume(const dti_frame *frame, const dti_step *step, int rank)
{
    return volume(frame, step, rank, rank);
}

int64_t dti_step_received(const dti_frame *frame, const dti_step *step, int rank)
{
    dti_volume v = volume(frame, step, rank, rank);
    return (v.to * step->summed_ranks - v.kept) * (int64_t)dt_dtype_bytes(step->travels);
}

/* Elements of a rank's that its group is to hold: all of them, but for what other groups share out. */
static int64_t offered(const dti_frame *frame, const dti_step *step, int rank)
{
    dti_room wanted;
    dti_step all = *step;
    dti_room_copy(&wanted, step->to);
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        dti_room_set(&wanted, step->asked[i], DTI_OPEN);
    wanted.holding.zero_count = 0;
    all.to = &wanted.holding;
    int64_t count = 1;
    dti_set from, to;
    dti_set_init(&from);
    dti_set_init(&to);
    for (int b = 0; b < frame->block_count; b++) {
        dti_step_from(frame, step, b, rank, &from);
        if (step->maps || step->sum_count) {
            dti_step_to(frame, &all, b, rank, &to);
            count *= dti_set_shared(&from, &to);
        } else {
            count *= dti_set_count(&from);
        }
    }
    dti_set_fini(&from);
    dti_set_fini(&to);
    return count;
}

/* All that is asked of a rank and its copies, shared among them by the cut. */
int64_t dti_step_sent(const dti_frame *frame, const dti_step *step, int rank)
{
    if (!dti_holding_has(step->from, rank)) return 0;
    const dti_axis *copies = step->asked + step->sum_count + step->cut_count;
    int64_t asked = offered(frame, step, rank) * step->takers;
    int offset = rank - step->from->base, count = 1, anchor = rank;
    for (int i = 0; i < step->copy_count; i++) {
        anchor -= dti_axis_digit(copies[i], offset) * copies[i].stride;
        count *= copies[i].size;
    }
    for (int i = 0; i < count; i++) {
        int copy = anchor, number = i;
        for (int a = step->copy_count - 1; a >= 0; a--) {
            copy += number % copies[a].size * copies[a].stride;
            number /= copies[a].size;
        }
        asked -= volume(frame, step, copy, rank).kept;
    }
    int64_t own = dti_axes_number(copies, step->copy_count, offset);
    return (dti_cut(asked, count, own + 1) - dti_cut(asked, count, own)) * (int64_t)dt_dtype_bytes(step->travels);
}

int64_t dti_step_messages(const dti_step *step)
{
    int64_t classes = 1;
    for (int i = 0; i < step->sum_count + step->cut_count; i++) classes *= step->asked[i].size;
    return classes - step->own;
}

/* ---- link classes ------------------------------------------------------------------------------------------------ */

/* What the ranks of one place of the topology hold together: `from` with all digits inside the place open. */
typedef struct place_view { dti_room room; dti_step step; int summed; } place_view;

static void view_place(const dti_frame *frame, const dti_step *step, int level, place_view *view)
{
    dti_room_copy(&view->room, step->from);
    view->step = *step;
    view->step.from = &view->room.holding;
    view->summed = 1;
    for (int i = 0; i < frame->atom_count; i++) {
        if (frame->atoms[i].link <= level) continue;
        dti_room_set(&view->room, frame->atoms[i].axis, DTI_OPEN);
        for (int s = 0; s < step->sum_count; s++)
            if (step->asked[s].stride == frame->atoms[i].axis.stride) view->summed *= step->asked[s].size;
    }
}

/* Elements that a rank receives from outside its place. */
static int64_t from_outside(const dti_frame *frame, const place_view *view, int rank)
{
    dti_volume v = dti_step_volume(frame, &view->step, rank);
    return v.to * view->step.summed_ranks - v.kept * view->summed;
}

typedef struct tally { const dti_topology *topology; int rank; int64_t link[DT_MAX_LINKS]; } tally;

static void tally_pull(const dti_pull *pull, void *arg)
{
    tally *t = arg;
    int link = dti_topology_class(t->topology, pull->rank, t->rank);
    if (pull->rank != t->rank) t->link[link < t->topology->level_count ? link : link - 1] += pull->count;
}

/* Per class by going through the pulls, where levels and axes do not align; far too many pairs: all by the slowest. */
static void count_pulls(const dti_frame *frame, const dti_topology *topology, const dti_step *step, int rank,
                        int64_t *link)
{
    int64_t size = (int64_t)dt_dtype_bytes(step->travels);
    if ((int64_t)step->from->ranks * step->to->ranks > 1 << 14) {
        link[0] += dti_step_received(frame, step, rank);
        return;
    }
    tally t = { topology, rank, { 0 } };
    dti_step_pulls(frame, topology, step, rank, tally_pull, &t);
    for (int l = 0; l < topology->level_count; l++) link[l] += t.link[l] * size;
}

static void count_views(const dti_frame *frame, const dti_topology *topology, const place_view *views,
                        const dti_step *step, int rank, int64_t *link)
{
    int64_t size = (int64_t)dt_dtype_bytes(step->travels), outside = 0;
    for (int l = 0; l < topology->level_count; l++) {
        bool last = l + 1 == topology->level_count;
        int64_t bytes = last ? dti_step_received(frame, step, rank) : from_outside(frame, &views[l], rank) * size;
        link[l] += bytes - outside;
        outside = bytes;
    }
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static void add_rank(const int64_t *link, int links, dti_moves *moves)
{
    int64_t received = 0;
    for (int l = 0; l < links; l++) {
        received += link[l];
        moves->link[l] = later(moves->link[l], link[l]);
    }
    moves->received = later(moves->received, received);
    moves->total += received;
}

/* A view per step and level but the last; NULL: not needed, not possible, or memory ran out. */
static place_view *make_views(const dti_frame *frame, const dti_topology *topology, const dti_step *steps, int n)
{
    int levels = topology->level_count - 1;
    if (!levels || !frame->aligned || !frame->regular || !n) return NULL;
    place_view *views = malloc((size_t)(n * levels) * sizeof *views);
    for (int i = 0; views && i < n * levels; i++) view_place(frame, &steps[i / levels], i % levels, &views[i]);
    return views;
}

static void count_rank(const dti_frame *frame, const dti_topology *topology, const place_view *views,
                       const dti_step *steps, int n, int rank, dti_moves *moves)
{
    int64_t link[DT_MAX_LINKS] = { 0 };
    for (int s = 0; s < n; s++) {
        if (views) count_views(frame, topology, views + s * (topology->level_count - 1), &steps[s], rank, link);
        else if (topology->level_count == 1) link[0] += dti_step_received(frame, &steps[s], rank);
        else count_pulls(frame, topology, &steps[s], rank, link);
    }
    add_rank(link, topology->level_count, moves);
}

dti_moves dti_route_moves(const dti_frame *frame, const dti_topology *topology, const dti_step *steps, int n)
{
    dti_moves moves = { 0, 0, { 0 } };
    if (n == 0) return moves;
    place_view *views = make_views(frame, topology, steps, n);
    const dti_holding *from = steps[0].from, *to = steps[n - 1].to;
    for (int i = 0; i < to->ranks; i++)
        count_rank(frame, topology, views, steps, n, dti_holding_member(to, i), &moves);
    for (int i = 0; i < from->ranks && !frame->regular; i++) {
        int rank = dti_holding_member(from, i);
        if (!dti_holding_has(to, rank)) count_rank(frame, topology, views, steps, n, rank, &moves);
    }
    free(views);
    return moves;
}
