/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes without sums: a pull from the source to the target. Cut by link class, what ranks of one place need from
 * outside is fetched once, by the rank there that matches its holder, or in shares, and then spread inside. To other
 * ranks, where many ask few, each element is fetched by one of them and then spread: a relay. */
#include "redistribute/search.h"

enum { MAX_REGIONS = 3 };

/* What a rank fetches from outside for its place: what the place needs, as far as it matches the holder's digits
 * inside. */
static const dti_holding *fetch(dti_search *s, const dti_frame *frame, const dti_holding *from, const dti_holding *to,
                                int level)
{
    uint32_t in = dti_frame_inside(frame, level), out = dti_frame_all(frame) & ~in;
    dti_room fetched, need;
    dti_room_copy(&fetched, from);
    dti_frame_open(frame, out, &fetched);
    dti_room_copy(&need, to);
    dti_frame_open(frame, in & dti_frame_closed(frame, from), &need);
    dti_room_carve_all(&fetched, &need.holding);
    return dti_search_keep(s, &fetched);
}

/* Is a step worth cutting at a level? It crosses the border, and ranks inside are to hold the same: what one fetches
 * for all would else be fetched by each. */
static bool worth_cutting(const dti_frame *frame, const dti_step *step, int level)
{
    bool same = false, out = false;
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        for (int k = 0; k < frame->atom_count; k++) {
            if (frame->atoms[k].axis.stride != step->asked[i].stride) continue;
            same |= frame->atoms[k].link > level && !dti_holding_closes(step->to, step->asked[i]);
            out |= frame->atoms[k].link <= level;
        }
    return same && out;
}

/* Atoms inside a place along which neither holding is cut: all ranks there need the same and have the same. */
static uint32_t idle_inside(const dti_search *s, const dti_frame *frame, const dti_holding *from, const dti_holding *to,
                            int level)
{
    uint32_t cut = dti_frame_closed(frame, from) | dti_frame_closed(frame, to);
    return dti_frame_inside(frame, level) & ~cut & ~s->kept;
}

/* Where all ranks of a place need the same from outside, each fetches a share and they gather. What a rank has it does
 * not fetch: there is a region for each atom across the border, of what it lacks along that one first, and one of what
 * it has. */
static void fetch_shares(dti_search *s, dti_route *route, const dti_frame *frame, const dti_holding *from,
                         const dti_holding *to, int level)
{
    uint32_t in = dti_frame_inside(frame, level), closed = dti_frame_closed(frame, from);
    uint32_t same = dti_step_common(frame, from, to);
    dti_region region = { .axes = closed & ~same & ~in, .hi = 1, .pieces = 1 };
    int n = dti_bits(region.axes), stage = dti_route_stage(route);
    const dti_holding *fetched[MAX_REGIONS + 1];
    dti_room view;
    for (region.first = 0; region.first <= n; region.first++) {
        dti_region_view(s, &region, to, from, closed & (in | same), &view);
        if (region.first < n) dti_frame_share(frame, idle_inside(s, frame, from, to, level), &view);
        fetched[region.first] = dti_search_keep(s, &view);
        dti_search_add(s, route, frame, from, fetched[region.first], true, 0);
        route->steps[route->step_count - 1].stage = stage;
    }
    for (region.first = 0; region.first <= n; region.first++) {
        dti_region_view(s, &region, to, from, closed & same, &view);
        dti_search_add(s, route, frame, fetched[region.first], dti_search_keep(s, &view), true, 0);
        route->steps[route->step_count - 1].stage = stage + 1;
        route->steps[route->step_count - 1].gives = s->plan->target->layout->dtype;
    }
}

/* Only where nothing that cuts before cuts otherwise after, and at the last border. */
static bool can_share(const dti_search *s, const dti_frame *frame, const dti_holding *from, const dti_holding *to,
                      int level)
{
    uint32_t before = dti_frame_closed(frame, from), after = dti_frame_closed(frame, to);
    uint32_t same = dti_step_common(frame, from, to);
    uint32_t across = before & ~same & ~dti_frame_inside(frame, level);
    return idle_inside(s, frame, from, to, level) && across && dti_bits(across) <= MAX_REGIONS
        && !(before & after & ~same) && level + 2 == s->plan->topology->level_count;
}

void dti_search_pull(dti_search *s, dti_route *route, const dti_frame *frame, const dti_holding *from,
                     const dti_holding *to, bool by_link)
{
    dti_step whole;
    dti_search_step(s, frame, from, to, true, 0, &whole);
    by_link &= !dti_holding_shares(to); /* shares of what the place lacks would be other shares          */
    for (int level = 0; by_link && frame->aligned && level + 1 < s->plan->topology->level_count; level++) {
        if (can_share(s, frame, from, to, level)) {
            fetch_shares(s, route, frame, from, to, level);
            return;
        }
        if (!worth_cutting(frame, &whole, level)) continue;
        const dti_holding *fetched = fetch(s, frame, from, to, level);
        dti_search_add(s, route, frame, from, fetched, true, 0);
        from = fetched;
        dti_search_step(s, frame, from, to, true, 0, &whole);
    }
    whole.stage = dti_route_stage(route);
    route->steps[route->step_count++] = whole;
}

static void offer_pull(dti_search *s, bool by_link)
{
    dti_route route = { .step_count = 0 };
    dti_search_pull(s, &route, &s->frame, s->from, s->to, by_link);
    if (!by_link || route.step_count > 1) dti_search_offer(s, &route);
}

void dti_search_pulls(dti_search *s)
{
    offer_pull(s, false);
    if (s->frame.aligned && s->plan->topology->level_count > 1) offer_pull(s, true);
}

/* ---- to other ranks ---------------------------------------------------------------------------------------------- */

static void offer_across(dti_search *s, dti_route route, const dti_holding *from)
{
    dti_search_add(s, &route, &s->frame, from, s->to, false, 0);
    dti_search_offer(s, &route);
}

/* Each element first to one of its target holders, then to the others. */
static void offer_relay(dti_search *s, dti_route route, const dti_holding *from)
{
    uint32_t copies = dti_frame_all(&s->side) & ~dti_frame_closed(&s->side, s->to);
    if (!copies) return;
    dti_room room;
    dti_room_copy(&room, s->to);
    dti_frame_share(&s->side, copies, &room);
    const dti_holding *relay = dti_search_keep(s, &room);
    dti_search_add(s, &route, &s->frame, from, relay, false, 0);
    int copies_from = route.step_count;
    dti_search_pull(s, &route, &s->side, relay, s->to, true);
    if (copies_from + 1 == route.step_count && from == s->from) route.steps[copies_from].early = from;
    dti_search_offer(s, &route);
}

void dti_search_across(dti_search *s)
{
    dti_route sums = { .step_count = 0 };
    const dti_holding *from = s->from;
    if (s->summed) {
        dti_room room;
        dti_room_copy(&room, s->from);
        dti_frame_share(&s->frame, dti_frame_all(&s->frame) & ~dti_frame_closed(&s->frame, s->from), &room);
        from = dti_search_keep(s, &room);
        dti_search_add(s, &sums, &s->frame, s->from, from, true, s->summed);
    }
    offer_across(s, sums, from);
    offer_relay(s, sums, from);
}
