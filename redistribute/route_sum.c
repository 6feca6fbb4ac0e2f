/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes with sums: each element is summed by one rank that both contributes to it and is to hold it, where there is
 * one; then copied to its other holders. Atoms that are whole in the target, and whole or P in the source, are free:
 * they share out the summing. By link class the fastest come first. */
#include "redistribute/search.h"

#include "core/number.h"
#include "placements/cut.h"

enum { MAX_CONFLICTS = 3, MAX_PIECES = 64 };

/* Atoms that may share out the summing: they cut neither the holding nor the target. */
static uint32_t free_atoms(const dti_search *s, const dti_holding *from)
{
    uint32_t closed = from == s->from ? s->from_atoms : dti_frame_closed(&s->frame, from);
    return dti_frame_all(&s->frame) & ~(closed | s->to_atoms | s->kept);
}

/* Where elements are summed, as far as they are not summed along other atoms later: by a rank that holds a
 * contribution. Some atoms share out what they may. */
static const dti_holding *sum_at_source(dti_search *s, const dti_holding *from, uint32_t later, uint32_t sharing)
{
    dti_room sums, target;
    dti_room_copy(&sums, from);
    dti_room_copy(&target, s->to);
    dti_frame_open(&s->frame, later | (from == s->from ? s->from_atoms : dti_frame_closed(&s->frame, from)), &target);
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
    dti_frame_open(&s->frame, s->to_atoms, &source);
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
    dti_step copies;
    dti_search_step(s, &s->frame, at, s->to, true, 0, &copies);
    if (dti_step_moves(&s->frame, &copies)) dti_search_pull(s, route, &s->frame, at, s->to, by_link);
    else route->steps[route->step_count - 1].to = s->to;
    dti_search_offer(s, route);
}

static void offer_sums(dti_search *s, bool by_link)
{
    dti_route route;
    route.step_count = 0;
    const dti_holding *at = append_sums(s, &route, by_link);
    offer_copies(s, &route, at, by_link);
}

static void offer_sum_at(dti_search *s, const dti_holding *at)
{
    dti_route route;
    route.step_count = 0;
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

/* What one end, closed by its own cuts, has of a region; nothing else is closed but some atoms, and some share. */
static const dti_holding *keep_view(dti_search *s, const dti_region *r, bool target, uint32_t closed, uint32_t sharing)
{
    dti_room view;
    dti_region_view(s, r, target ? s->to : s->from, target ? s->from : s->to, closed, &view);
    if (sharing) dti_frame_share(&s->frame, sharing, &view);
    return dti_search_keep(s, &view);
}

/* Does any rank have anything of a region? Axes before the first to differ may leave no other to differ. */
static bool is_there(const dti_search *s, const dti_region *r, bool alike, const dti_step *sum)
{
    bool surely = alike && (r->first == 0 || r->first == dti_bits(r->axes));
    return surely || dti_step_holds(&s->frame, sum);
}

typedef enum evenness { EVEN, UNEVEN, ROUGH } evenness; /* rough: it cannot be told                                   */

/* Add the sums of a region, and the pull of its results; at_target: by whom they are summed. */
static evenness add_region(dti_search *s, const dti_region *r, bool at_target, dti_route *sums, dti_route *copies)
{
    uint32_t both = r->first == dti_bits(r->axes) ? s->from_atoms & ~s->to_atoms : 0;
    uint32_t sharing = dti_frame_all(&s->frame) & ~s->kept & ~(at_target ? s->to_atoms | both : s->from_atoms);
    const dti_holding *source = keep_view(s, r, false, 0, 0), *target = keep_view(s, r, true, 0, 0);
    const dti_holding *at = keep_view(s, r, at_target, at_target ? both : 0, sharing);
    bool alike = dti_search_alike(s, at);
    evenness evenly = !alike ? ROUGH : !at_target && dti_search_crosses_within(s, at) ? UNEVEN : EVEN;
    dti_step *sum = &sums->steps[sums->step_count], *copy = &copies->steps[copies->step_count];
    dti_search_step(s, &s->frame, source, at, true, s->summed, sum);
    if (!is_there(s, r, alike, sum)) return evenly;
    dti_search_step(s, &s->frame, at, target, true, 0, copy);
    sum->stage = 0;
    copy->gives = s->plan->target->layout->dtype;
    copy->stage = 1;
    sums->step_count++;
    copies->step_count++;
    return evenly;
}

/* Contributors, target holders, holders of both where an element has any; the part of a region without these that
 * target holders sum, as a fraction of small numbers. over: it should be more than all of it. */
typedef struct sharing { int64_t p, h, c, part, pieces; bool over; } sharing;

static sharing find_sharing(const dti_search *s)
{
    sharing w;
    w.p = dti_frame_size(&s->frame, s->summed);
    w.h = dti_frame_size(&s->frame, dti_frame_all(&s->frame) & ~s->to_atoms & ~s->kept);
    w.c = dti_frame_size(&s->frame, free_atoms(s, s->from));
    w.pieces = w.c * (w.p - 1);
    w.over = w.h * (w.p - 2) > w.pieces;
    w.part = w.over ? w.pieces : w.h * (w.p - 2);
    int64_t common = dti_common_divisor(w.part, w.pieces);
    w.part /= common;
    w.pieces /= common;
    return w;
}

static bool can_balance(const dti_search *s, const sharing *w, uint32_t conflicts)
{
    return dti_bits(conflicts) <= MAX_CONFLICTS && w->pieces <= MAX_PIECES && !dti_holding_shares(s->to);
}

static evenness worse(evenness a, evenness b) { return a > b ? a : b; }

/* All regions' sums, then all their copies; of no more regions than tell that they are not even, unless all are wanted.
 * Where a cut that ends crosses one of the target, not all ranks that are to hold what has holders of both are some of
 * these. */
static evenness balance(dti_search *s, const sharing *w, uint32_t conflicts, bool wanted, dti_route *sums)
{
    dti_route copies;
    int n = dti_bits(conflicts), part = (int)w->part, pieces = (int)w->pieces;
    bool apart = dti_search_crosses(s, s->from_atoms & ~s->to_atoms) == DTI_APART;
    evenness all = w->over || !apart ? UNEVEN : EVEN;
    sums->step_count = copies.step_count = 0;
    for (int i = n; i >= 0 && (wanted || all == EVEN); i--) {
        dti_region at_target = { conflicts, i, 0, part, pieces }, at_source = { conflicts, i, part, pieces, pieces };
        if (i == n) at_target.hi = at_target.pieces = 1;
        if (i == n || part > 0) all = worse(all, add_region(s, &at_target, true, sums, &copies));
        if (i < n && part < pieces) all = worse(all, add_region(s, &at_source, false, sums, &copies));
    }
    for (int i = 0; i < copies.step_count; i++) sums->steps[sums->step_count++] = copies.steps[i];
    return all;
}

static void offer_balanced(dti_search *s, uint32_t conflicts)
{
    dti_route route;
    sharing w = find_sharing(s);
    if (!can_balance(s, &w, conflicts)) return;
    balance(s, &w, conflicts, true, &route);
    dti_search_offer(s, &route);
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

/* Every rank sums for itself all that it is to hold: where contributions are narrower than their sum, or two, no more
 * bytes may move. */
static void offer_direct_sum(dti_search *s)
{
    dti_route direct;
    if (widened(s) <= 0 && dti_frame_size(&s->frame, s->summed) != 2) return;
    dti_search_direct_sum(s, &direct);
    dti_search_offer(s, &direct);
}

/* ---- without a count --------------------------------------------------------------------------------------------- *
 * Where all divides, N elements on R ranks, p contributors and h target holders: a rank that has nothing of what it is
 * to hold, and sums an R-th of all, receives N / R (p + h - 1). The mean is less by the elements that have a holder of
 * both: one in c, all values of the conflicts together. If cuts do not cross, sums at the target are even. If they do,
 * some rank has nothing of what it is to hold, and only balanced sums may spare it; where they do not, none here does,
 * and none is dearer whose sums are even. Without conflicts c is 1. Tried over all pairs on some meshes, not proved
 * (tests/unit/test_plan_known.c, test_plan_pairs.c).                                                                 */

/* Is what the busiest rank receives more than the mean by too little to matter, whoever sums? */
static bool hardly_differs(const sharing *w, int64_t c) { return c * (w->p + w->h - 1) >= DTI_SLACK; }

/* N / R. */
static int64_t share_bytes(const dti_search *s)
{
    int64_t ranks = dti_frame_size(&s->frame, dti_frame_all(&s->frame) & ~s->kept);
    return s->frame.elements / ranks * (int64_t)dt_dtype_bytes(s->plan->source->layout->dtype);
}

/* Each rank alone would sum all h N / R that it is to hold: where cuts cross, some has contributed nothing of it, else
 * one in c and all values of the cuts that end. */
static void know(dti_search *s, const sharing *w, int64_t c, bool crosses, bool even)
{
    int64_t part = share_bytes(s);
    int64_t own = crosses ? 0 : w->h * part / (c * dti_frame_size(&s->frame, s->from_atoms & ~s->to_atoms));
    s->known = true;
    s->staged = s->received = part * (w->p + w->h - 1) - (even ? part / c : 0);
    s->direct = part * w->h * w->p - own;
}

/* Of balanced sums who sums more copies less: the one sums what has holders of both, the other at the target; both sum
 * at the source. */
static void know_stages(dti_search *s, const sharing *w, int64_t c, bool even)
{
    int64_t part = share_bytes(s), at_target = part * w->part / w->pieces, at_both = part * w->h / w->c;
    int64_t at_source = (part - at_target) * (w->p - 1), more = at_both * (w->p - 1);
    if (more < at_target * w->p) more = at_target * w->p;
    s->staged = at_source - (even ? at_source / c : 0) + more;
    s->staged += part * w->h - (at_both < at_target ? at_both : at_target);
}

/* Is a holding one of as much by each rank? */
static bool is_even(const dti_search *s, const dti_holding *holding)
{
    return dti_search_alike(s, holding) && !dti_search_crosses_within(s, holding);
}

/* The best of these routes, where what is known of them tells. false: it does not. */
static bool offer_known(dti_search *s, uint32_t conflicts)
{
    dti_route balanced;
    sharing w = find_sharing(s);
    if (!can_balance(s, &w, conflicts) || !is_even(s, s->from) || !is_even(s, s->to)) return false;
    int64_t c = dti_frame_size(&s->frame, conflicts);
    dti_crossing crossing = dti_search_crosses(s, s->from_atoms);
    bool crosses = crossing != DTI_APART;
    if (crossing == DTI_ASKEW || (crosses && hardly_differs(&w, c))) return false;
    evenness evenly = crosses ? balance(s, &w, conflicts, false, &balanced) : UNEVEN;
    const dti_holding *at = evenly == UNEVEN ? sum_at_target(s) : NULL;
    if (at && !is_even(s, at)) at = sum_at_source(s, s->from, 0, dti_frame_all(&s->frame));
    if (at && !is_even(s, at)) at = NULL;
    if (evenly == ROUGH || (evenly == UNEVEN && !at && (w.over || !crosses))) return false;
    if (evenly == UNEVEN && !at && balance(s, &w, conflicts, true, &balanced) == ROUGH) return false;
    if (at) offer_sum_at(s, at);
    else dti_search_offer(s, &balanced);
    bool even = evenly == EVEN || !crosses;
    know(s, &w, c, crosses, even);
    if (!at) know_stages(s, &w, c, even);
    return true;
}

/* Sums at a rank that contributes and is to hold them are even where their parts are. */
static void know_sums(dti_search *s)
{
    sharing w = find_sharing(s);
    bool even = is_even(s, s->from) && is_even(s, s->to) && is_even(s, s->best.steps[0].to);
    if (even && dti_search_crosses(s, s->from_atoms) == DTI_APART) know(s, &w, 1, false, true);
}

/* Where a contribution costs as much as a copy, and all links the same, all of these move as many bytes together: the
 * first that shares them evenly will do. */
void dti_search_sums(dti_search *s)
{
    bool levels = s->frame.aligned && s->plan->topology->level_count > 1 && !sums_overflow(s);
    uint32_t conflicts = s->from_atoms & s->to_atoms & ~dti_step_common(&s->frame, s->from, s->to);
    bool alike = s->plan->topology->level_count == 1 && widened(s) == 0;
    if (conflicts && alike && offer_known(s, conflicts)) return;
    if (conflicts) offer_sum_at(s, sum_at_target(s));
    if (conflicts && alike && dti_search_done(s)) return;
    offer_sums(s, false);
    if (!conflicts && alike) know_sums(s);
    if (!s->known) offer_direct_sum(s);
    if (levels) offer_sums(s, true);
    else if (conflicts && !dti_search_done(s)) offer_balanced(s, conflicts);
}
