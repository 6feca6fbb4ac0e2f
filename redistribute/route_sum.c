/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes with sums: each element is summed by one rank that both contributes to it and is to hold it, where there is
 * one; then copied to its other holders. Atoms that are whole in the target, and whole or P in the source, are free:
 * they share out the summing. By link class the fastest come first. */
#include "redistribute/search.h"

#include "core/number.h"

enum { MAX_CONFLICTS = 3, MAX_PIECES = 64 };

/* Atoms that may share out the summing: they cut neither the holding nor the target. */
static uint32_t free_atoms(const dti_search *s, const dti_holding *from)
{
    return dti_frame_all(&s->frame)
        & ~(dti_frame_closed(&s->frame, from) | dti_frame_closed(&s->frame, s->to) | s->kept);
}

/* Where elements are summed, as far as they are not summed along other atoms later: by a rank that holds a
 * contribution. Some atoms share out what they may. */
static const dti_holding *sum_at_source(dti_search *s, const dti_holding *from, uint32_t later, uint32_t sharing)
{
    dti_room sums, target;
    dti_room_copy(&sums, from);
    dti_room_copy(&target, s->to);
    dti_frame_open(&s->frame, later | dti_frame_closed(&s->frame, from), &target);
    dti_room_carve_all(&sums, &target.holding);
    dti_frame_share(&s->frame, free_atoms(s, from) & sharing, &sums);
    return dti_search_keep(s, &sums);
}

/* The same by a rank that is to hold the result. */
static const dti_holding *sum_at_target(dti_search *s)
{
    dti_room sums, source;
    dti_room_copy(&sums, s->to);
    dti_room_copy(&source, s->from);
    dti_frame_open(&s->frame, dti_frame_closed(&s->frame, s->to), &source);
    dti_room_carve_all(&sums, &source.holding);
    dti_frame_share(&s->frame, free_atoms(s, s->from), &sums);
    return dti_search_keep(s, &sums);
}

/* The sums in one step, or one link class after the other, fastest first. Returns where they end. */
static const dti_holding *append_sums(dti_search *s, dti_route *route, bool by_link)
{
    const dti_holding *from = s->from;
    if (!by_link || !s->frame.aligned) {
        const dti_holding *to = sum_at_source(s, from, 0, dti_frame_all(&s->frame));
        dti_search_add(s, route, &s->frame, from, to, true, s->summed);
        return to;
    }
    for (int level = s->plan->topology->level_count - 1; level >= 0; level--) {
        uint32_t atoms = dti_frame_inside(&s->frame, level - 1) & ~dti_frame_inside(&s->frame, level);
        if (!(atoms & s->summed)) continue;
        uint32_t later = s->summed & ~dti_frame_inside(&s->frame, level - 1);
        const dti_holding *to = sum_at_source(s, from, later, atoms);
        dti_search_add(s, route, &s->frame, from, to, true, s->summed & atoms);
        if (later) route->steps[route->step_count - 1].gives = s->plan->source->layout->dtype;
        from = to;
    }
    return from;
}

/* Sums that end at `at`, then the copies; none where every rank then has what it is to hold. */
static void offer_copies(dti_search *s, dti_route *route, const dti_holding *at, bool by_link)
{
    dti_step copies = dti_search_step(s, &s->frame, at, s->to, true, 0);
    if (dti_step_moves(&s->frame, &copies)) {
        dti_search_pull(s, route, &s->frame, at, s->to, by_link);
    } else {
        route->steps[route->step_count - 1].to = s->to;
        route->steps[route->step_count - 1].within = 0;
    }
    dti_search_offer(s, route);
}

static void offer_sums(dti_search *s, bool by_link)
{
    dti_route route = { .step_count = 0 };
    const dti_holding *at = append_sums(s, &route, by_link);
    offer_copies(s, &route, at, by_link);
}

static void offer_sum_at_target(dti_search *s)
{
    dti_route route = { .step_count = 0 };
    const dti_holding *at = sum_at_target(s);
    dti_search_add(s, &route, &s->frame, s->from, at, true, s->summed);
    offer_copies(s, &route, at, false);
}

void dti_search_direct_sum(dti_search *s, dti_route *route)
{
    route->step_count = 0;
    dti_search_add(s, route, &s->frame, s->from, s->to, true, s->summed);
}

/* ---- balanced sums ----------------------------------------------------------------------------------------------- *
 * Where axes shard something before and something else after, some elements have a rank that both contributes and is to
 * hold them; it sums them. Others have not. Of these a part is summed by target holders and the rest, shared evenly, by
 * source holders, such that no rank receives more than another: with p contributors, h target holders and c holders of
 * both, a rank receives 1 + (p - 2) / c times what it shares with the source, and 1 + part (p - 1) / h times what it
 * does not.                                                                                                          */

static bool divides(const dti_holding *holding)
{
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].size % holding->carves[i].pieces) return false;
    return true;
}

/* Do all cuts leave equal pieces, and can each be shared out by all ranks, in so many parts, and none is empty? */
static bool is_even(const dti_search *s, int64_t pieces)
{
    int64_t ranks = dti_frame_size(&s->frame, dti_frame_all(&s->frame));
    bool even = divides(s->from) && divides(s->to);
    for (int b = 0; b < s->frame.block_count && even; b++)
        even = s->frame.blocks[b] > 0 && s->frame.blocks[b] % (ranks * pieces) == 0;
    return even;
}

/* What one end, closed by its own cuts, has of a region; nothing else is closed but some atoms, and some share. */
static const dti_holding *keep_view(dti_search *s, const dti_region *r, bool target, uint32_t closed, uint32_t sharing)
{
    dti_room view;
    dti_region_view(s, r, target ? s->to : s->from, target ? s->from : s->to, closed, &view);
    if (sharing) dti_frame_share(&s->frame, sharing, &view);
    return dti_search_keep(s, &view);
}

/* Add the sums of a region, and the pull of its results; at_target: by whom they are summed. */
static void add_region(dti_search *s, const dti_region *r, bool at_target, dti_route *sums, dti_route *copies)
{
    uint32_t from = dti_frame_closed(&s->frame, s->from), to = dti_frame_closed(&s->frame, s->to);
    uint32_t both = r->first == dti_bits(r->axes) ? from & ~to : 0;
    uint32_t sharing = dti_frame_all(&s->frame) & ~s->kept & ~(at_target ? to | both : from);
    const dti_holding *source = keep_view(s, r, false, 0, 0), *target = keep_view(s, r, true, 0, 0);
    const dti_holding *at = keep_view(s, r, at_target, at_target ? both : 0, sharing);
    sums->steps[sums->step_count] = dti_search_step(s, &s->frame, source, at, true, s->summed);
    copies->steps[copies->step_count] = dti_search_step(s, &s->frame, at, target, true, 0);
    if (!is_even(s, r->pieces) && !dti_step_holds(&s->frame, &sums->steps[sums->step_count])) return;
    sums->steps[sums->step_count++].stage = 0;
    copies->steps[copies->step_count].gives = s->plan->target->layout->dtype;
    copies->steps[copies->step_count++].stage = 1;
}

/* The part of a region without common holders that target holders sum, as a fraction of small numbers. */
static int target_part(const dti_search *s, int *pieces)
{
    uint32_t to = dti_frame_closed(&s->frame, s->to);
    int p = dti_frame_size(&s->frame, s->summed), c = dti_frame_size(&s->frame, free_atoms(s, s->from));
    int h = dti_frame_size(&s->frame, dti_frame_all(&s->frame) & ~to & ~s->kept);
    *pieces = c * (p - 1);
    int part = h * (p - 2) < *pieces ? h * (p - 2) : *pieces;
    for (int d = *pieces; d > 1; d--)
        if (part % d == 0 && *pieces % d == 0) part /= d, *pieces /= d;
    return part;
}

static bool can_balance(const dti_search *s, uint32_t conflicts)
{
    int pieces;
    target_part(s, &pieces);
    return dti_bits(conflicts) <= MAX_CONFLICTS && pieces <= MAX_PIECES && !dti_holding_shares(s->to);
}

/* Regions and what of them is shared out are even too. */
static bool balances_evenly(const dti_search *s, uint32_t conflicts)
{
    int pieces;
    target_part(s, &pieces);
    int64_t ranks = dti_frame_size(&s->frame, dti_frame_all(&s->frame));
    return can_balance(s, conflicts) && is_even(s, ranks * pieces);
}

static void offer_balanced(dti_search *s, uint32_t conflicts)
{
    dti_route sums = { .step_count = 0 }, copies = { .step_count = 0 };
    int n = dti_bits(conflicts), pieces, part = target_part(s, &pieces);
    if (!can_balance(s, conflicts)) return;
    add_region(s, &(dti_region){ conflicts, n, 0, 1, 1 }, true, &sums, &copies);
    for (int i = 0; i < n; i++) {
        if (part > 0) add_region(s, &(dti_region){ conflicts, i, 0, part, pieces }, true, &sums, &copies);
        if (part < pieces) add_region(s, &(dti_region){ conflicts, i, part, pieces, pieces }, false, &sums, &copies);
    }
    for (int i = 0; i < copies.step_count; i++) sums.steps[sums.step_count++] = copies.steps[i];
    dti_search_offer(s, &sums);
}

/* Above 0: contributions may be cheaper than copies of their sum; 0: they cost as much. */
static int widened(const dti_search *s)
{
    const dti_layout *source = s->plan->source->layout, *target = s->plan->target->layout;
    return (int)dt_dtype_bytes(target->dtype) - (int)dt_dtype_bytes(source->dtype);
}

/* Sums of one link class travel on in the source's dtype, which may not hold the sum that an average divides. */
static bool sums_overflow(const dti_search *s)
{
    dt_dtype dtype = s->plan->source->layout->dtype;
    bool small = dtype == DT_F16 || (dti_sum_dtype(dtype) == DT_I64 && dtype != DT_I64);
    return small && s->plan->divide != 1;
}

/* Every rank sums for itself all that it is to hold. */
static void offer_direct_sum(dti_search *s)
{
    dti_route direct;
    dti_search_direct_sum(s, &direct);
    dti_search_offer(s, &direct);
}

/* Where a contribution costs as much as a copy, and all links the same, all of these move as many bytes together: the
 * first that shares them evenly will do. Where all parts are even sums at the source spare no rank what balanced sums
 * do not: that was tried, not proved (tests/unit/test_plan_pairs.c). */
void dti_search_sums(dti_search *s)
{
    bool levels = s->frame.aligned && s->plan->topology->level_count > 1 && !sums_overflow(s);
    uint32_t from = dti_frame_closed(&s->frame, s->from), to = dti_frame_closed(&s->frame, s->to);
    uint32_t conflicts = from & to & ~dti_step_common(&s->frame, s->from, s->to);
    bool alike = conflicts && s->plan->topology->level_count == 1 && widened(s) == 0;
    if (conflicts) offer_sum_at_target(s);
    if (alike && dti_search_done(s)) return;
    if (alike && balances_evenly(s, conflicts)) {
        offer_balanced(s, conflicts);
        return;
    }
    offer_sums(s, false);
    if (widened(s) > 0) offer_direct_sum(s);
    if (levels) offer_sums(s, true);
    else if (conflicts && !dti_search_done(s)) offer_balanced(s, conflicts);
}
