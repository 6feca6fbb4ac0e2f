/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for a route: what the source's and the target's ranks hold, which routes between them are offered, and
 * which is the best. */
#include "redistribute/search.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static int64_t busiest_sender(const dti_search *s, const dti_route *route)
{
    int64_t most = 0;
    for (dti_ranks r = dti_ranks_sending_alike(&s->frame, route->steps, route->step_count); dti_ranks_next(&r);) {
        int64_t sent = 0;
        for (int i = 0; i < route->step_count; i++) sent += dti_step_sent(&s->frame, &route->steps[i], NULL, r.rank);
        if (sent > most) most = sent;
    }
    return most;
}

static dti_moves count(const dti_search *s, const dti_route *route, dti_moves *stages)
{
    return dti_route_moves(&s->frame, s->plan->topology, route->steps, route->step_count, stages);
}

/* Fewer bytes on the slower classes, slowest first, by the busiest receiver; then by all ranks together, then by the
 * busiest over all classes; to other ranks rather by the busiest receiver, then the busiest sender; then fewer
 * steps. */
static bool fewer_bytes(const dti_search *s, const dti_route *route, const dti_moves *moves)
{
    const dti_moves *best = &s->best_moves;
    for (int l = 0; l + 1 < s->plan->topology->level_count; l++)
        if (moves->link[l] != best->link[l]) return moves->link[l] < best->link[l];
    if (s->frame.regular && moves->total != best->total) return moves->total < best->total;
    if (moves->received != best->received) return moves->received < best->received;
    if (!s->frame.regular) {
        int64_t sent = busiest_sender(s, route), least = busiest_sender(s, &s->best);
        if (sent != least) return sent < least;
    }
    if (moves->total != best->total) return moves->total < best->total;
    return route->step_count < s->best.step_count;
}

static void count_best(dti_search *s)
{
    if (!s->counted) s->best_moves = count(s, &s->best, s->best_stages);
    s->counted = true;
}

bool dti_search_done(dti_search *s)
{
    count_best(s);
    return s->best_moves.received * dti_plan_ranks(s->plan) <= s->best_moves.total + s->best_moves.total / DTI_SLACK;
}

static void set_best(dti_search *s, const dti_route *route)
{
    s->best.step_count = route->step_count;
    memcpy(s->best.steps, route->steps, (size_t)route->step_count * sizeof *route->steps);
}

static void take(dti_search *s, const dti_route *route, const dti_moves *moves, const dti_moves *stages)
{
    set_best(s, route);
    s->best_moves = *moves;
    memcpy(s->best_stages, stages, (size_t)route->step_count * sizeof *stages);
}

void dti_search_offer(dti_search *s, const dti_route *route)
{
    dti_moves stages[DTI_MAX_STEPS];
    if (!s->found) {
        set_best(s, route);
        s->found = true;
        return;
    }
    count_best(s);
    dti_moves moves = count(s, route, stages);
    if (fewer_bytes(s, route, &moves)) take(s, route, &moves, stages);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static bool keeps_first(dti_partial kind) { return kind == DTI_SUM || kind == DTI_PROD; }

/* Would P(avg) of integers be divided, or multiplied, without a sum? Then bits would be lost. */
static bool loses_bits(const dti_search *s, const dti_atom *atom)
{
    bool integers = dti_sum_dtype(s->plan->source->layout->dtype) == DT_I64
        || dti_sum_dtype(s->plan->target->layout->dtype) == DT_I64;
    return integers && ((atom->source == DTI_AVG && atom->target == DTI_SUM)
                        || (atom->target == DTI_AVG && (atom->source == DTI_SUM || atom->source_cuts)));
}

static bool sort_atoms(dti_search *s)
{
    for (int i = 0; i < s->frame.atom_count; i++) {
        const dti_atom *atom = &s->frame.atoms[i];
        if (atom->source && atom->target && !dti_partial_mixes(atom->source, atom->target)) {
            dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s to %s: P(%s) does not become P(%s); redistribute to R between them",
                     dt_spec_text(s->plan->source), dt_spec_text(s->plan->target), dti_partial_names[atom->source],
                     dti_partial_names[atom->target]);
            return false;
        }
        if (loses_bits(s, atom)) {
            dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s to %s: P(avg) of integers comes from R, and becomes R or S, only",
                     dt_spec_text(s->plan->source), dt_spec_text(s->plan->target));
            return false;
        }
        if (atom->source && atom->target) s->kept |= dti_bit(i);
        else if (atom->source) s->summed |= dti_bit(i);
        else if (keeps_first(atom->target) && !atom->source_cuts) s->sliced |= dti_bit(i);
    }
    return true;
}

/* Scaling of P(avg): divided by its ranks where it is summed or becomes a sum, multiplied where the reverse. */
static void set_scale(dti_search *s)
{
    s->plan->multiply = s->plan->divide = 1;
    for (int i = 0; i < s->frame.atom_count; i++) {
        const dti_atom *atom = &s->frame.atoms[i];
        if (atom->source == DTI_AVG && atom->target != DTI_AVG) s->plan->divide *= atom->axis.size;
        if (atom->target == DTI_AVG && (atom->source == DTI_SUM || atom->source_cuts))
            s->plan->multiply *= atom->axis.size;
    }
}

/* What ranks must hold in the end: the target's cuts, and where S becomes P the source's: a rank keeps what it had and
 * has the identity elsewhere. */
static void build_target(const dti_search *s, dti_room *to)
{
    dti_room_init(to, s->plan->target->layout);
    dti_frame_cut(&s->side, s->plan->target->layout, ~UINT32_C(0), to);
    uint32_t stays = 0;
    for (int i = 0; i < s->frame.atom_count && s->frame.regular; i++)
        if (s->frame.atoms[i].source_cuts && s->frame.atoms[i].target) stays |= dti_bit(i);
    if (stays) dti_frame_cut(&s->frame, s->plan->source->layout, stays, to);
    for (int i = 0; i < s->side.atom_count && !s->frame.regular; i++)
        if (keeps_first(s->side.atoms[i].target)) to->zeros[to->holding.zero_count++] = s->side.atoms[i].axis;
}

/* R becomes P(sum): the first rank keeps the value, where nothing moves; else each keeps a share, so that all
 * receive. */
static void slice_target(const dti_search *s, bool first, dti_room *to)
{
    for (int i = 0; i < s->frame.atom_count && first; i++)
        if (s->sliced & dti_bit(i)) to->zeros[to->holding.zero_count++] = s->frame.atoms[i].axis;
    if (first) return;
    dti_room pieces;               /* shared out piece by piece of the source, so that shares lie within pieces    */
    dti_room_copy(&pieces, s->from);
    dti_frame_open(&s->frame, dti_frame_all(&s->frame), &pieces);
    dti_room_carve_all(to, &pieces.holding);
    to->holding.zero_count = 0;
    dti_frame_share(&s->frame, s->sliced, to);
}

static void build_source(dti_search *s)
{
    dti_room from;
    dti_room_init(&from, s->plan->source->layout);
    dti_frame_cut(&s->frame, s->plan->source->layout, ~UINT32_C(0), &from);
    s->from = dti_search_keep(s, &from);
}

static void build_end(dti_search *s)
{
    dti_room to;
    bool slices = s->frame.regular && s->sliced;
    build_target(s, &to);
    if (slices) slice_target(s, !s->summed, &to);
    s->to = dti_search_keep(s, &to);
    if (!slices || s->summed) return;
    dti_step local;
    dti_search_step(s, &s->frame, s->from, s->to, true, 0, &local);
    if (!dti_step_moves(&s->frame, &local)) return;
    slice_target(s, false, &to);
    s->to = dti_search_keep(s, &to);
}

static int64_t largest_part(const dti_search *s)
{
    dti_step step = { .from = s->from, .to = s->to };
    int64_t most = 0;
    for (dti_ranks r = dti_ranks_alike(&s->frame, &step, 1, NULL); dti_ranks_next(&r);) {
        int64_t held = dti_step_held(&s->frame, &step, NULL, r.rank);
        if (held > most) most = held;
    }
    return most * (int64_t)dt_dtype_bytes(s->plan->source->layout->dtype);
}

/* Bytes of the mean part of a holding. */
static int64_t mean_part(const dti_search *s, const dti_holding *holding)
{
    int64_t parts = dti_frame_size(&s->frame, dti_frame_closed(&s->frame, holding));
    return s->frame.elements / parts * (int64_t)dt_dtype_bytes(s->plan->source->layout->dtype);
}

/* No largest part is less than the mean. */
static bool may_be_small(const dti_search *s)
{
    return mean_part(s, s->from) < dti_option_number(s->ctx, DTI_OPTION_SMALL, 0);
}

/* What the busiest rank receives at least where every rank sums for itself: all contributions but its own. */
static int64_t least_direct(const dti_search *s)
{
    return mean_part(s, s->to) * (dti_frame_size(&s->frame, s->summed) - 1);
}

/* Over one class of links, of a route by which the busiest rank receives so many bytes. */
static int64_t known_ns(const dti_search *s, const dti_route *route, int64_t bytes)
{
    dti_price prices[DT_MAX_LINKS];
    int64_t messages = 0;
    dti_price_table(s->plan->topology, prices);
    for (int i = 0; i < route->step_count; i++) messages += dti_step_messages(&route->steps[i]);
    return dti_route_stage(route) * prices->start_ns + dti_price_link(prices, bytes, messages) - prices->start_ns;
}

/* One step rather than more, where it moves no more bytes; for time, where it moves a tenth more, too, or parts are
 * small. */
static void prefer_known(dti_search *s)
{
    dti_route direct;
    bool time = s->plan->goal == DT_PLAN_TIME;
    int64_t most = time ? s->received + s->received / 10 : s->received;
    if (s->best.step_count < 2 || (s->direct > most && !(time && may_be_small(s)))) return;
    dti_search_direct_sum(s, &direct);
    if (!time || known_ns(s, &direct, s->direct) < known_ns(s, &s->best, s->staged)) set_best(s, &direct);
}

/* The least time among routes within a tenth of the fewest bytes; among all where parts are small. */
static void prefer_time(dti_search *s)
{
    if (!s->frame.regular || !s->summed || s->best.step_count < 2) return;
    count_best(s);
    bool small = may_be_small(s) && largest_part(s) < dti_option_number(s->ctx, DTI_OPTION_SMALL, 0);
    int64_t most = s->best_moves.received + s->best_moves.received / 10;
    if (!small && least_direct(s) > most) return;
    dti_route direct;
    dti_moves stage;
    dti_search_direct_sum(s, &direct);
    dti_moves moves = count(s, &direct, &stage);
    if (!small && moves.received > most) return;
    const dti_topology *topology = s->plan->topology;
    int64_t ns = dti_route_ns(topology, s->best.steps, s->best.step_count, s->best_stages);
    if (dti_route_ns(topology, direct.steps, 1, &stage) >= ns) return;
    take(s, &direct, &moves, &stage);
}

static void init_frames(dti_search *s)
{
    const dti_layout *source = s->plan->source->layout, *target = s->plan->target->layout;
    dti_frame_init(&s->frame, source, target, s->plan->topology);
    s->side = s->frame;
    if (s->frame.regular) return;
    dti_frame_init(&s->side, target, target, s->plan->topology);
    s->side.block_count = s->frame.block_count;
    memcpy(s->side.blocks, s->frame.blocks, sizeof s->frame.blocks);
}

/* ---- the chosen route as a value --------------------------------------------------------------------------------- */

/* Steps name holdings of the search; each becomes one value, however many steps name it. */
static const dti_holding *frozen(dti_search *s, const dti_step *before, const dti_step *steps, int n,
                                 const dti_holding *holding)
{
    for (int i = 0; i < n; i++) {
        if (before[i].from == holding) return steps[i].from;
        if (before[i].to == holding) return steps[i].to;
    }
    return dti_holding_freeze(holding, &s->ctx->arena);
}

static bool keep_best(dti_search *s)
{
    dt_plan *plan = s->plan;
    int n = s->best.step_count;
    if (s->full)
        return dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s to %s: more cuts than a plan can hold",
                        dt_spec_text(plan->source), dt_spec_text(plan->target)), false;
    dti_step *steps = dti_context_take(s->ctx, ((size_t)n + 1) * sizeof *steps);
    bool kept = steps != NULL;
    for (int i = 0; i < n && kept; i++) {
        steps[i] = s->best.steps[i];
        steps[i].from = frozen(s, s->best.steps, steps, i, s->best.steps[i].from);
        if (steps[i].early) steps[i].early = steps[0].from;
        steps[i].to = s->best.steps[i].from == s->best.steps[i].to ? steps[i].from
                    : frozen(s, s->best.steps, steps, i, s->best.steps[i].to);
        kept = steps[i].from && steps[i].to;
    }
    plan->steps = steps;
    plan->step_count = n;
    plan->even = s->known;
    plan->measured = s->counted && dti_plan_stage_room(plan);
    plan->moves = s->best_moves;
    if (plan->measured && plan->stages) memcpy(plan->stages, s->best_stages, (size_t)n * sizeof *plan->stages);
    plan->from = kept ? frozen(s, s->best.steps, steps, n, s->from) : NULL;
    plan->to = kept ? frozen(s, s->best.steps, steps, n, s->to) : NULL;
    return plan->from && plan->to ? true : (dti_fail(s->ctx, DT_ERR_MEMORY, "no memory for a plan"), false);
}

/* Where S becomes P a rank keeps what it has, but among identities: that is a step. */
static bool splits_to_partial(const dti_search *s)
{
    for (int i = 0; i < s->frame.atom_count; i++)
        if (s->frame.atoms[i].source_cuts && s->frame.atoms[i].target) return true;
    return false;
}

static bool nothing_to_do(const dti_search *s)
{
    return !s->summed && s->plan->multiply == 1 && s->plan->divide == 1 && s->frame.regular && !splits_to_partial(s)
        && s->plan->source->layout->dtype == s->plan->target->layout->dtype
        && dti_holding_equal(s->from, s->to);
}

static void search_all(dti_search *s)
{
    if (!s->frame.regular) dti_search_across(s);
    else if (s->summed) dti_search_sums(s);
    else dti_search_pulls(s);
}

bool dti_route_choose(dt_context *ctx, dt_plan *plan, dti_search *s)
{
    s->ctx = ctx;
    s->plan = plan;
    s->full = false;
    s->used = 0;
    s->summed = s->kept = s->sliced = 0;
    s->found = s->counted = s->known = false;
    s->best.step_count = 0;
    init_frames(s);
    if (!sort_atoms(s)) return false;
    set_scale(s);
    build_source(s);
    build_end(s);
    s->from_atoms = dti_frame_closed(&s->frame, s->from);
    s->to_atoms = dti_frame_closed(&s->frame, s->to);
    if (!nothing_to_do(s)) search_all(s);
    if (s->known) prefer_known(s);
    else if (plan->goal == DT_PLAN_TIME) prefer_time(s);
    return keep_best(s);
}

dti_search *dti_search_new(void)
{
    dti_search *search = malloc(sizeof *search);
    if (search) search->plan = NULL;
    return search;
}

const dti_frame *dti_search_frame(const dti_search *search, const dt_plan *plan)
{
    return search->plan == plan ? &search->frame : NULL;
}
