/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a step by closed formulas: a rank's part is a product of sets, so what it lacks is one product less another.
 * Nothing here looks at pairs of ranks. */
#include "redistribute/plan.h"

#include <stdlib.h>
#include <string.h>

#include "placements/cut.h"

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

static int64_t received(const dti_step *step, dti_volume v)
{
    return (v.to * step->summed_ranks - v.kept) * (int64_t)dt_dtype_bytes(step->travels);
}

int64_t dti_step_received(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    return received(step, dti_step_volume(frame, step, memo, rank));
}

static bool is_asked(const dti_step *step, int stride)
{
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        if (step->asked[i].stride == stride) return true;
    return false;
}

/* Is the result shared out along axes that are not asked along? Then each group of askers wants its share only. */
static bool shares_apart(const dti_step *step)
{
    for (int c = 0; c < step->to->carve_count; c++) {
        const dti_carve *carve = &step->to->carves[c];
        for (int d = carve->first; d < carve->first + carve->count && carve->size == 0; d++)
            if (step->to->digits[d].mode == DTI_CLOSED && !is_asked(step, step->to->digits[d].stride)) return true;
    }
    return false;
}

/* Elements of a rank's that its group is to hold: all, or those of the group's share. */
static int64_t offered(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    if (!step->maps && !(step->own && shares_apart(step))) return dti_step_held(frame, step, memo, rank);
    dti_room wanted;
    dti_step all = *step;
    dti_room_copy(&wanted, step->to);
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        dti_room_set(&wanted, step->asked[i], DTI_OPEN);
    wanted.holding.zero_count = 0;
    all.to = &wanted.holding;
    return dti_step_volume(frame, &all, NULL, rank).kept;
}

/* What ranks that have it since earlier do not ask of a rank; but its own, which is no asking. */
static int64_t not_asked(const dti_frame *frame, const dti_step *step, int rank)
{
    int64_t count = 0;
    for (int i = 0; step->early && i < step->early->ranks; i++) {
        int taker = dti_holding_member(step->early, i);
        if (taker != rank) count += dti_early_volume(frame, step, taker, rank);
    }
    return count;
}

static const dti_axis *copy_axes(const dti_step *step) { return step->asked + step->sum_count + step->cut_count; }

static int copy_ranks(const dti_step *step)
{
    int count = 1;
    for (int i = 0; i < step->copy_count; i++) count *= copy_axes(step)[i].size;
    return count;
}

/* Elements that are asked of a rank and its copies together. */
static int64_t asked_of(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    if (step->own && step->sum_count + step->cut_count == 0) return 0;      /* everyone holds what it is to hold      */
    if (!dti_holding_has(step->from, rank)) return 0;
    const dti_axis *copies = copy_axes(step);
    int64_t asked = offered(frame, step, memo, rank) * step->takers - not_asked(frame, step, rank);
    int anchor = rank;
    for (int i = 0; i < step->copy_count; i++)
        anchor -= dti_axis_digit(copies[i], rank - step->from->base) * copies[i].stride;
    for (int i = 0; i < copy_ranks(step); i++)
        asked -= dti_pair_volume(frame, step, memo, anchor + dti_axes_offset(copies, step->copy_count, i), rank).kept;
    return asked;
}

bool dti_step_sends_evenly(const dti_frame *frame, const dti_step *step, int rank)
{
    return asked_of(frame, step, NULL, rank) % copy_ranks(step) == 0;
}

/* What is asked of a rank and its copies, shared among them by the cut. */
int64_t dti_step_sent(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    int64_t asked = asked_of(frame, step, memo, rank), count = copy_ranks(step);
    int64_t own = dti_axes_coord(copy_axes(step), step->copy_count, rank - step->from->base);
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
typedef struct place_view { dti_room room; dti_step step; int summed; dti_memo **memo; } place_view;

static void view_place(const dti_frame *frame, const dti_step *step, int level, int ranks, place_view *view)
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
    view->memo = dti_memos_new(frame, &view->step, 1, ranks);
}

/* Elements that a rank receives from outside its place. */
static int64_t from_outside(const dti_frame *frame, const place_view *view, int rank)
{
    dti_volume v = dti_step_volume(frame, &view->step, view->memo ? *view->memo : NULL, rank);
    return v.to * view->step.summed_ranks - v.kept * view->summed;
}

typedef struct tally { const dti_topology *topology; int rank; int64_t link[DT_MAX_LINKS]; } tally;

static void tally_pull(const dti_pull *pull, void *arg)
{
    tally *t = arg;
    int link = dti_topology_class(t->topology, pull->rank, t->rank);
    if (pull->rank != t->rank) t->link[link < t->topology->level_count ? link : link - 1] += pull->count;
}

static bool few_pairs(const dti_step *step) { return (int64_t)step->from->ranks * step->to->ranks <= 1 << 14; }

/* Per class by going through the pulls, where levels and axes do not align; far too many pairs: all by the slowest. */
static void count_pulls(const dti_frame *frame, const dti_topology *topology, const dti_step *step, int rank,
                        int64_t *link)
{
    int64_t size = (int64_t)dt_dtype_bytes(step->travels);
    if (!few_pairs(step)) {
        link[0] += dti_step_received(frame, step, NULL, rank);
        return;
    }
    tally t = { topology, rank, { 0 } };
    dti_step_pulls(frame, topology, step, rank, tally_pull, &t);
    for (int l = 0; l < topology->level_count; l++) link[l] += t.link[l] * size;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* One chain of steps being counted, over all ranks. */
typedef struct counting {
    const dti_frame *frame;
    const dti_topology *topology;
    const dti_step *steps;
    int n, levels;                 /* levels: borders between places, one less than link classes                   */
    dti_ranks ranks;               /* to look at                                                                   */
    dti_classes classes[DTI_MAX_STEPS]; /* per step                                                                */
    dti_volume *known;             /* per step and class, to: -1: not counted yet; NULL: as memos                  */
    int known_first[DTI_MAX_STEPS];
    dti_memo **memos;
    place_view *views;             /* per step and level; NULL: not needed, not possible, or memory ran out        */
    dti_moves moves, *stages;      /* stages: NULL where they are not asked for                                    */
} counting;

/* Ranks of a class are counted once. */
static dti_volume volume_of(const counting *c, int s, int rank)
{
    dti_memo *memo = c->memos ? c->memos[s] : NULL;
    if (!c->known) return dti_step_volume(c->frame, &c->steps[s], memo, rank);
    dti_volume *known = &c->known[c->known_first[s] + dti_class_of(&c->classes[s], rank - c->ranks.to->base)];
    if (known->to < 0) *known = dti_step_volume(c->frame, &c->steps[s], memo, rank);
    return *known;
}

static void count_step(const counting *c, int s, int rank, int64_t *link)
{
    const dti_step *step = &c->steps[s];
    if (c->levels && !c->views) {
        count_pulls(c->frame, c->topology, step, rank, link);
        return;
    }
    int64_t size = (int64_t)dt_dtype_bytes(step->travels), outside = 0;
    for (int l = 0; l <= c->levels; l++) {
        int64_t bytes = l == c->levels ? received(step, volume_of(c, s, rank))
                                       : from_outside(c->frame, &c->views[s * c->levels + l], rank) * size;
        link[l] += bytes - outside;
        outside = bytes;
    }
}

static void add_rank(const counting *c, const int64_t *link, dti_moves *moves)
{
    int64_t bytes = 0;
    for (int l = 0; l <= c->levels; l++) {
        bytes += link[l];
        moves->link[l] = later(moves->link[l], link[l]);
    }
    if (c->ranks.at == 1) moves->first = bytes;
    moves->received = later(moves->received, bytes);
    moves->total += bytes * c->ranks.times;
}

static void count_rank(counting *c)
{
    int64_t all[DT_MAX_LINKS] = { 0 };
    for (int s = 0, n; s < c->n; s += n) {
        int64_t link[DT_MAX_LINKS] = { 0 };
        n = dti_steps_at_once(c->steps + s, c->n - s);
        for (int i = s; i < s + n; i++) count_step(c, i, c->ranks.rank, link);
        for (int l = 0; l <= c->levels; l++) all[l] += link[l];
        if (c->stages) add_rank(c, link, &c->stages[s]);
    }
    add_rank(c, all, &c->moves);
}

static void known_init(counting *c)
{
    int count = 0;
    if (c->ranks.all || c->ranks.count == 1 || c->n == 1) return;
    for (int s = 0; s < c->n; count += c->classes[s++].count) c->known_first[s] = count;
    c->known = malloc((size_t)count * sizeof *c->known);
    for (int i = 0; c->known && i < count; i++) c->known[i].to = -1;
}

/* Over which links a rank receives depends on where it stands, unless places and axes align. */
static void counting_init(counting *c)
{
    bool aligned = c->frame->aligned && c->frame->regular, pairs = c->levels && !aligned && few_pairs(c->steps);
    dti_classes *classes = c->n <= DTI_MAX_STEPS ? c->classes : NULL;
    c->ranks = pairs ? dti_ranks_all(c->steps, c->n) : dti_ranks_alike(c->frame, c->steps, c->n, classes);
    c->known = NULL;
    if (classes) known_init(c);
    c->memos = dti_memos_new(c->frame, c->steps, c->n, c->ranks.count);
    c->views = NULL;
    if (!c->levels || !aligned) return;
    c->views = malloc((size_t)(c->n * c->levels) * sizeof *c->views);
    for (int i = 0; c->views && i < c->n * c->levels; i++)
        view_place(c->frame, &c->steps[i / c->levels], i % c->levels, c->ranks.count, &c->views[i]);
}

static void counting_fini(counting *c)
{
    dti_memos_free(c->memos, c->n);
    free(c->known);
    for (int i = 0; c->views && i < c->n * c->levels; i++) dti_memos_free(c->views[i].memo, 1);
    free(c->views);
}

dti_moves dti_route_moves(const dti_frame *frame, const dti_topology *topology, const dti_step *steps, int n,
                          dti_moves *stages)
{
    counting c; /* large: its arrays are set where they are read */
    c.frame = frame;
    c.topology = topology;
    c.steps = steps;
    c.n = n;
    c.levels = topology->level_count - 1;
    c.stages = stages;
    c.moves = (dti_moves){ 0 };
    if (n == 0) return c.moves;
    if (stages) memset(stages, 0, (size_t)n * sizeof *stages);
    counting_init(&c);
    while (dti_ranks_next(&c.ranks)) count_rank(&c);
    counting_fini(&c);
    return c.moves;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

int dti_steps_at_once(const dti_step *steps, int n)
{
    int count = 1;
    while (count < n && steps[count].stage == steps[0].stage) count++;
    return count;
}

int64_t dti_route_ns(const dti_topology *topology, const dti_step *steps, int n, const dti_moves *stages)
{
    dti_price prices[DT_MAX_LINKS];
    int64_t ns = 0;
    dti_price_table(topology, prices);
    for (int i = 0, count; i < n; i += count) {
        int64_t messages = 0;
        count = dti_steps_at_once(steps + i, n - i);
        for (int k = i; k < i + count; k++) messages += dti_step_messages(&steps[k]);
        if (stages[i].total) ns += dti_price_step(prices, topology->level_count, stages[i].link, messages);
    }
    return ns;
}
