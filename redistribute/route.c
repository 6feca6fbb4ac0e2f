/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes: the chains of holdings that could take the source to the target, and the choice among them.
 *
 *   pull        source -> target, directly; cut by link class, what is needed from outside a place is fetched once
 *               for the whole place, by the rank there that matches its holder, and then spread inside; and, to another
 *               mesh where many ranks ask few, each element is fetched by one of them and then spread (a relay).
 *   sum, pull   each element is summed by one rank that both contributes to it and is to hold it, where there is one; then
 *               copied to its other holders. Axes that are whole in the target and whole or P in the source are free:
 *               they share out the summing. Cut by link class, fastest first. */
#include "redistribute/plan.h"

#include <string.h>

enum { MAX_ROOMS = 64, MAX_CONFLICTS = 3 };

struct dti_search {
    dt_context *ctx;
    dt_plan *plan;
    dti_frame frame;
    dti_frame side;                /* the target's own atoms; as frame where that is regular                       */
    uint32_t summed, kept, sliced; /* atoms P -> other, P -> P, and R -> P(sum or prod)                            */
    int room_count;
    dti_room rooms[MAX_ROOMS + 1];
    dti_room *from, *to;
    dti_route best;
    dti_moves best_moves;
    const dti_holding *best_to;    /* what ranks hold in the end, by the best route                                */
    bool found, counted;           /* counted: best_moves is of best                                               */
};

typedef struct dti_search search;

static bool keeps_first(dti_partial kind) { return kind == DTI_SUM || kind == DTI_PROD; }

static uint32_t bit(int i) { return UINT32_C(1) << i; }

static int count_bits(uint32_t bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

/* The room after the last is there to be overwritten: a search that needs so many is full, and fails. */
static dti_room *new_room(search *s) { return &s->rooms[s->room_count < MAX_ROOMS ? s->room_count++ : MAX_ROOMS]; }

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static uint32_t atoms_of(const dti_frame *frame, int stride)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (frame->atoms[i].axis.stride == stride) return bit(i);
    return 0;
}

/* Atoms closed in two carves of one factor that have the same digits up to there: they name the same pieces. */
static uint32_t common_digits(const dti_frame *frame, const dti_holding *a, const dti_carve *x, const dti_holding *b,
                              const dti_carve *y, bool *alike)
{
    uint32_t shared = 0;
    *alike = x->size == y->size && x->inner == y->inner && x->pieces == y->pieces && x->lo == y->lo && x->hi == y->hi;
    if (x->size != y->size || x->inner != y->inner || (x->size == 0 && !*alike)) return 0;
    for (int n = 0; n < x->count && n < y->count; n++) {
        const dti_digit *p = &a->digits[x->first + n], *q = &b->digits[y->first + n];
        *alike &= p->stride == q->stride && p->size == q->size;
        if (p->stride != q->stride || p->size != q->size) break;
        if (p->mode == DTI_CLOSED && q->mode == DTI_CLOSED) shared |= atoms_of(frame, p->stride);
    }
    return shared;
}

/* Atoms whose digits mean the same in both holdings: a rank need only ask ranks that share them with it. */
static uint32_t common(const dti_frame *frame, const dti_holding *a, const dti_holding *b)
{
    uint32_t shared = 0;
    int i = 0, j = 0;
    while (i < a->carve_count && j < b->carve_count) {
        int block = a->carves[i].block < b->carves[j].block ? a->carves[i].block : b->carves[j].block;
        bool alike = true;
        for (int k = 0; alike && i + k < a->carve_count && j + k < b->carve_count; k++) {
            alike = a->carves[i + k].block == block && b->carves[j + k].block == block;
            if (alike) shared |= common_digits(frame, a, &a->carves[i + k], b, &b->carves[j + k], &alike);
        }
        while (i < a->carve_count && a->carves[i].block == block) i++;
        while (j < b->carve_count && b->carves[j].block == block) j++;
    }
    return shared;
}

/* Atoms that cut nothing before a step and only share out after it. */
static uint32_t shared_out(const dti_frame *frame, const dti_holding *from, const dti_holding *to)
{
    uint32_t shares = 0, cuts = 0;
    for (int c = 0; c < to->carve_count; c++)
        for (int d = to->carves[c].first; d < to->carves[c].first + to->carves[c].count; d++)
            for (int i = 0; i < frame->atom_count; i++)
                if (frame->atoms[i].axis.stride == to->digits[d].stride && to->digits[d].mode == DTI_CLOSED)
                    *(to->carves[c].size ? &cuts : &shares) |= bit(i);
    return shares & ~cuts & ~dti_frame_closed(frame, from);
}

static void list_axes(const dti_frame *frame, uint32_t atoms, dti_axis *axes, int *at, int *count)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms & bit(i)) axes[(*at)++] = frame->atoms[i].axis, ++*count;
}

static int size_of(const dti_frame *frame, uint32_t atoms)
{
    int size = 1;
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms & bit(i)) size *= frame->atoms[i].axis.size;
    return size;
}

static dt_dtype sums_in(dt_dtype dtype) { return dtype == DT_BF16 || dtype == DT_F16 ? DT_F32 : dtype; }

static dt_dtype smaller(dt_dtype a, dt_dtype b) { return dt_dtype_bytes(b) < dt_dtype_bytes(a) ? b : a; }

/* What is summed travels as it is, and what is only moved as the smaller of both dtypes, to the last step. */
static void set_dtypes(const search *s, uint32_t summed, bool last, dti_step *step)
{
    dt_dtype source = s->plan->source->layout->dtype, target = s->plan->target->layout->dtype;
    dt_dtype moved = s->summed ? target : smaller(source, target);
    step->travels = summed ? source : moved;
    step->sums_in = summed ? sums_in(source) : DT_DTYPE_DEFAULT;
    step->gives = last ? target : summed && (s->summed & ~summed) ? source : moved;
}

/* A step in a frame whose atoms both holdings use; own: to a holding of the same ranks. Along atoms that only share out a
 * sum every rank asks the copies that have its own digits: they are as many and as busy as any. */
static dti_step make_step(const search *s, const dti_frame *frame, const dti_room *from, const dti_room *to, bool own,
                          uint32_t summed)
{
    dti_step step = {
        .from = &from->holding, .to = &to->holding, .own = own, .summed_ranks = size_of(frame, summed),
    };
    set_dtypes(s, summed, to == s->to, &step);
    uint32_t cut = dti_frame_closed(frame, step.from) & ~summed, next = dti_frame_closed(frame, step.to);
    uint32_t all = frame->atom_count == 32 ? ~UINT32_C(0) : bit(frame->atom_count) - 1;
    uint32_t asked = own ? (summed | cut | next) & ~s->kept & ~common(frame, step.from, step.to) : all;
    if (summed) asked &= ~shared_out(frame, step.from, step.to) | summed;
    int at = 0;
    list_axes(frame, asked & summed, step.asked, &at, &step.sum_count);
    list_axes(frame, asked & cut, step.asked, &at, &step.cut_count);
    list_axes(frame, asked & ~summed & ~cut, step.asked, &at, &step.copy_count);
    step.takers = own ? size_of(frame, asked & ~next)
                      : to->holding.ranks / size_of(&s->side, dti_frame_closed(&s->side, step.to));
    step.kind = dti_step_kind(frame, &step);
    return step;
}

static void add_step(search *s, dti_route *route, const dti_frame *frame, const dti_room *from, const dti_room *to,
                     bool own, uint32_t summed)
{
    dti_step *step = &route->steps[route->step_count];
    *step = make_step(s, frame, from, to, own, summed);
    step->stage = route->step_count++;
}

/* Does any rank lack something that a step is to give it? */
static bool moves_any(const search *s, const dti_step *step)
{
    for (int i = 0; i < step->to->ranks; i++) {
        dti_volume v = dti_step_volume(&s->frame, step, NULL, dti_holding_member(step->to, i));
        if (v.to > v.kept) return true;
    }
    return false;
}

static bool holds_any(const search *s, const dti_step *step)
{
    for (int i = 0; i < step->to->ranks; i++)
        if (dti_step_volume(&s->frame, step, NULL, dti_holding_member(step->to, i)).to) return true;
    return false;
}

/* ---- free shares ------------------------------------------------------------------------------------------------- */

/* Elements of the largest part along a block. */
static int64_t largest(const dti_frame *frame, const dti_holding *holding, int block)
{
    int64_t n = frame->blocks[block], pieces = 1;
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].block == block) pieces *= holding->carves[i].pieces;
    return (n + pieces - 1) / pieces;
}

/* Share the elements out over atoms that cut nothing so far: each along the block it divides most evenly. */
static void share_out(const dti_frame *frame, uint32_t atoms, dti_room *room)
{
    dti_digit digits[DTI_MAX_BLOCKS][DTI_MAX_AXES];
    int counts[DTI_MAX_BLOCKS] = { 0 };
    int64_t parts[DTI_MAX_BLOCKS];
    for (int b = 0; b < frame->block_count; b++) parts[b] = largest(frame, &room->holding, b);
    for (int i = 0; i < frame->atom_count; i++) {
        if (!(atoms & bit(i))) continue;
        dti_axis axis = frame->atoms[i].axis;
        int best = 0;
        double worst = 2;
        for (int b = 0; b < frame->block_count; b++) {
            double share = parts[b] ? (double)((parts[b] + axis.size - 1) / axis.size) / (double)parts[b] : 1;
            if (share >= worst) continue;
            worst = share;
            best = b;
        }
        parts[best] = (parts[best] + axis.size - 1) / axis.size;
        digits[best][counts[best]++] = (dti_digit){ axis.size, axis.stride, false };
    }
    for (int b = 0; b < frame->block_count; b++)
        if (counts[b]) dti_room_carve(room, b, 0, 1, digits[b], counts[b]);
}

static void open_atoms(const dti_frame *frame, uint32_t atoms, dti_room *room)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms & bit(i)) dti_room_set(room, frame->atoms[i].axis, DTI_OPEN);
}

/* Atoms of a frame by link class: those inside a place of the level, or at one level only. */
static uint32_t inside(const dti_frame *frame, int level)
{
    uint32_t atoms = 0;
    for (int i = 0; i < frame->atom_count; i++)
        if (frame->atoms[i].link > level) atoms |= bit(i);
    return atoms;
}

static uint32_t every(const dti_frame *frame) { return inside(frame, -2); }

/* ---- plain pulls ------------------------------------------------------------------------------------------------- */

/* What a rank fetches from outside for its place: what the place needs, as far as it matches the holder's digits inside. */
static dti_room *fetch_room(search *s, const dti_frame *frame, const dti_room *from, const dti_room *to, int level)
{
    uint32_t in = inside(frame, level), out = every(frame) & ~in;
    dti_room *room = new_room(s), need;
    dti_room_copy(room, &from->holding);
    open_atoms(frame, out, room);
    dti_room_copy(&need, &to->holding);
    open_atoms(frame, in & dti_frame_closed(frame, &from->holding), &need);
    dti_room_carve_all(room, &need.holding);
    return room;
}

/* Is a step worth cutting at a level? It crosses the border, and ranks inside are to hold the same: what one fetches for all
 * would else be fetched by each. */
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

/* Append the pull from one holding to another, all at once or one link class after the other, slowest first. */
static void append_pull(search *s, dti_route *route, const dti_frame *frame, const dti_room *from, const dti_room *to,
                        bool by_link)
{
    dti_step whole = make_step(s, frame, from, to, true, 0);
    for (int level = 0; by_link && frame->aligned && level + 1 < s->plan->topology->level_count; level++) {
        if (!worth_cutting(frame, &whole, level)) continue;
        dti_room *fetched = fetch_room(s, frame, from, to, level);
        add_step(s, route, frame, from, fetched, true, 0);
        from = fetched;
        whole = make_step(s, frame, from, to, true, 0);
    }
    whole.stage = route->step_count;
    route->steps[route->step_count++] = whole;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Atoms that may share out the summing: they cut neither the holding nor the target. */
static uint32_t free_atoms(const search *s, const dti_room *from)
{
    return every(&s->frame)
        & ~(dti_frame_closed(&s->frame, &from->holding) | dti_frame_closed(&s->frame, &s->to->holding) | s->kept);
}

/* Where elements are summed, as far as some atoms decide: by a rank that holds a contribution. */
static dti_room *sum_at_source(search *s, const dti_room *from, uint32_t atoms)
{
    dti_room *room = new_room(s), target;
    dti_room_copy(room, &from->holding);
    dti_room_copy(&target, &s->to->holding);
    open_atoms(&s->frame, ~atoms | dti_frame_closed(&s->frame, &from->holding), &target);
    dti_room_carve_all(room, &target.holding);
    share_out(&s->frame, free_atoms(s, from) & atoms, room);
    return room;
}

/* The same by a rank that is to hold the result. */
static dti_room *sum_at_target(search *s)
{
    dti_room *room = new_room(s), source;
    dti_room_copy(room, &s->to->holding);
    dti_room_copy(&source, &s->from->holding);
    open_atoms(&s->frame, dti_frame_closed(&s->frame, &s->to->holding), &source);
    dti_room_carve_all(room, &source.holding);
    share_out(&s->frame, free_atoms(s, s->from), room);
    return room;
}

/* The sums in one step, or one link class after the other, fastest first. Returns where they end. */
static dti_room *append_sums(search *s, dti_route *route, bool by_link)
{
    dti_room *from = s->from;
    if (!by_link || !s->frame.aligned) {
        dti_room *to = sum_at_source(s, from, every(&s->frame));
        add_step(s, route, &s->frame, from, to, true, s->summed);
        return to;
    }
    for (int level = s->plan->topology->level_count - 1; level >= 0; level--) {
        uint32_t atoms = inside(&s->frame, level - 1) & ~inside(&s->frame, level);
        if (!(atoms & s->summed)) continue;
        dti_room *to = sum_at_source(s, from, atoms);
        add_step(s, route, &s->frame, from, to, true, s->summed & atoms);
        from = to;
    }
    return from;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static int64_t route_ns(const search *s, const dti_route *route)
{
    dti_price prices[DT_MAX_LINKS];
    int64_t ns = 0;
    dti_price_table(s->plan->topology, prices);
    for (int i = 0; i < route->step_count; i++) {
        const dti_step *step = &route->steps[i];
        dti_moves moves = dti_route_moves(&s->frame, s->plan->topology, step, 1);
        int64_t messages = dti_step_messages(step);
        if (moves.total) ns += dti_price_step(prices, s->plan->topology->level_count, moves.link, messages);
    }
    return ns;
}

static int64_t busiest_sender(const search *s, const dti_route *route)
{
    int64_t most = 0;
    for (int r = 0; r < dti_plan_ranks(s->plan); r++) {
        int64_t sent = 0;
        for (int i = 0; i < route->step_count; i++)
            sent += dti_step_sent(&s->frame, &route->steps[i], NULL, dti_plan_rank(s->plan, r));
        if (sent > most) most = sent;
    }
    return most;
}

static dti_moves count(const search *s, const dti_route *route)
{
    return dti_route_moves(&s->frame, s->plan->topology, route->steps, route->step_count);
}

/* Fewer bytes on the slowest class, then on the others, then in all; then by the busiest sender, then fewer steps. */
static bool fewer_bytes(const search *s, const dti_route *route, const dti_moves *moves)
{
    const dti_moves *best = &s->best_moves;
    for (int l = 0; l + 1 < s->plan->topology->level_count; l++)
        if (moves->link[l] != best->link[l]) return moves->link[l] < best->link[l];
    if (moves->received != best->received) return moves->received < best->received;
    if (moves->total != best->total) return moves->total < best->total;
    if (!s->frame.regular) {
        int64_t sent = busiest_sender(s, route), least = busiest_sender(s, &s->best);
        if (sent != least) return sent < least;
    }
    return route->step_count < s->best.step_count;
}

/* Take a route if it is better than the best so far. A single route is never counted. */
static void offer(search *s, const dti_route *route)
{
    dti_moves moves = { 0, 0, { 0 } };
    if (s->found) {
        if (!s->counted) s->best_moves = count(s, &s->best);
        moves = count(s, route);
        s->counted = true;
        if (!fewer_bytes(s, route, &moves)) return;
    }
    s->best = *route;
    s->best_moves = moves;
    s->best_to = &s->to->holding;
    s->found = true;
}

static void offer_pull(search *s, bool by_link)
{
    dti_route route = { .step_count = 0 };
    append_pull(s, &route, &s->frame, s->from, s->to, by_link);
    if (!by_link || route.step_count > 1) offer(s, &route);
}

/* Sums that end at `at`, then the copies; none where every rank then has what it is to hold. */
static void offer_copies(search *s, dti_route *route, dti_room *at, bool by_link)
{
    dti_step copies = make_step(s, &s->frame, at, s->to, true, 0);
    if (moves_any(s, &copies)) append_pull(s, route, &s->frame, at, s->to, by_link);
    else route->steps[route->step_count - 1].to = &s->to->holding;
    offer(s, route);
}

static void offer_sums(search *s, bool by_link)
{
    dti_route route = { .step_count = 0 };
    dti_room *at = append_sums(s, &route, by_link);
    offer_copies(s, &route, at, by_link);
}

static void offer_sum_at_target(search *s)
{
    dti_route route = { .step_count = 0 };
    dti_room *at = sum_at_target(s);
    add_step(s, &route, &s->frame, s->from, at, true, s->summed);
    offer_copies(s, &route, at, false);
}

/* Every target holder sums for itself: more bytes, one step. */
static void direct_sum(search *s, dti_route *route)
{
    route->step_count = 0;
    add_step(s, route, &s->frame, s->from, s->to, true, s->summed);
}

/* ---- balanced sums ----------------------------------------------------------------------------------------------- *
 * Where axes shard something before and something else after, elements fall into regions: those with a rank that both
 * contributes and is to hold them, and, by the first axis along which the two are different ranks, the others. The first
 * are summed by that rank. Of the others a part is summed by target holders and the rest, shared evenly, by source holders,
 * such that no rank receives more than another: with p contributors, h target holders and c holders of both, a rank receives
 * 1 + (p - 2) / c times what it shares with the source, and 1 + part (p - 1) / h times what it does not.              */

static bool has_shares(const dti_holding *holding)
{
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].size == 0) return true;
    return false;
}

typedef struct region {
    int first;                     /* conflict that is other; the count of conflicts: none is                      */
    uint32_t conflicts;
    int lo, hi, pieces;            /* which part of the region's elements                                          */
} region;

static void set_conflicts(const search *s, const region *r, uint32_t closed, dti_room *room)
{
    int number = 0;
    open_atoms(&s->frame, ~(closed | r->conflicts), room);
    for (int i = 0; i < s->frame.atom_count; i++) {
        if (!(r->conflicts & bit(i))) continue;
        dti_digit_mode mode = number < r->first ? DTI_CLOSED : number == r->first ? DTI_OTHER : DTI_OPEN;
        dti_room_set(room, s->frame.atoms[i].axis, mode);
        number++;
    }
}

static int largest_block(const search *s, const dti_holding *holding)
{
    int best = 0;
    for (int b = 1; b < s->frame.block_count; b++)
        if (largest(&s->frame, holding, b) > largest(&s->frame, holding, best)) best = b;
    return best;
}

/* A region as one end sees it: closed by its own cuts, the other end's cuts telling the region. */
static dti_room *region_view(search *s, const region *r, const dti_room *end, const dti_room *other, uint32_t also_closed)
{
    dti_room *view = new_room(s), modes;
    dti_room_copy(view, &end->holding);
    dti_room_copy(&modes, &other->holding);
    set_conflicts(s, r, also_closed, &modes);
    dti_room_carve_all(view, &modes.holding);
    if (r->hi - r->lo < r->pieces) dti_room_part(view, largest_block(s, &view->holding), r->lo, r->hi, r->pieces);
    return view;
}

/* Add the sums of a region, and the pull of its results; at_target: by whom they are summed. */
static void add_region(search *s, const region *r, bool at_target, dti_route *sums, dti_route *copies)
{
    uint32_t from = dti_frame_closed(&s->frame, &s->from->holding), to = dti_frame_closed(&s->frame, &s->to->holding);
    uint32_t both = r->first == count_bits(r->conflicts) ? from & ~to : 0;
    dti_room *source = region_view(s, r, s->from, s->to, 0), *target = region_view(s, r, s->to, s->from, 0);
    dti_room *at = at_target ? region_view(s, r, s->to, s->from, both) : region_view(s, r, s->from, s->to, 0);
    share_out(&s->frame, every(&s->frame) & ~s->kept & ~(at_target ? to | both : from), at);
    sums->steps[sums->step_count] = make_step(s, &s->frame, source, at, true, s->summed);
    copies->steps[copies->step_count] = make_step(s, &s->frame, at, target, true, 0);
    if (!holds_any(s, &sums->steps[sums->step_count])) return;
    sums->steps[sums->step_count++].stage = 0;
    copies->steps[copies->step_count].gives = s->plan->target->layout->dtype;
    copies->steps[copies->step_count++].stage = 1;
}

/* The part of a region without common holders that target holders sum, as a fraction of small numbers. */
static int target_part(const search *s, int *pieces)
{
    uint32_t to = dti_frame_closed(&s->frame, &s->to->holding);
    int p = size_of(&s->frame, s->summed), c = size_of(&s->frame, free_atoms(s, s->from));
    int h = size_of(&s->frame, every(&s->frame) & ~to & ~s->kept);
    *pieces = c * (p - 1);
    int part = h * (p - 2) < *pieces ? h * (p - 2) : *pieces;
    for (int d = *pieces; d > 1; d--)
        if (part % d == 0 && *pieces % d == 0) part /= d, *pieces /= d;
    return part;
}

static void offer_balanced(search *s, uint32_t conflicts)
{
    dti_route sums = { .step_count = 0 }, copies = { .step_count = 0 };
    int n = count_bits(conflicts), pieces, part = target_part(s, &pieces);
    if (n > MAX_CONFLICTS || pieces > 64 || has_shares(&s->to->holding)) return;
    add_region(s, &(region){ n, conflicts, 0, 1, 1 }, true, &sums, &copies);
    for (int i = 0; i < n; i++) {
        if (part > 0) add_region(s, &(region){ i, conflicts, 0, part, pieces }, true, &sums, &copies);
        if (part < pieces) add_region(s, &(region){ i, conflicts, part, pieces, pieces }, false, &sums, &copies);
    }
    for (int i = 0; i < copies.step_count; i++) sums.steps[sums.step_count++] = copies.steps[i];
    offer(s, &sums);
}

/* ---- to other ranks ---------------------------------------------------------------------------------------------- */

static void offer_across(search *s, dti_route route, const dti_room *from)
{
    add_step(s, &route, &s->frame, from, s->to, false, 0);
    offer(s, &route);
}

/* Each element first to one of its target holders, then to the others. */
static void offer_relay(search *s, dti_route route, const dti_room *from)
{
    uint32_t copies = every(&s->side) & ~dti_frame_closed(&s->side, &s->to->holding);
    if (!copies) return;
    dti_room *relay = new_room(s);
    dti_room_copy(relay, &s->to->holding);
    share_out(&s->side, copies, relay);
    add_step(s, &route, &s->frame, from, relay, false, 0);
    append_pull(s, &route, &s->side, relay, s->to, true);
    offer(s, &route);
}

static void search_across(search *s)
{
    dti_route sums = { .step_count = 0 };
    dti_room *from = s->from;
    if (s->summed) {
        from = new_room(s);
        dti_room_copy(from, &s->from->holding);
        share_out(&s->frame, every(&s->frame) & ~dti_frame_closed(&s->frame, &from->holding), from);
        add_step(s, &sums, &s->frame, s->from, from, true, s->summed);
    }
    offer_across(s, sums, from);
    offer_relay(s, sums, from);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static bool sort_atoms(search *s)
{
    for (int i = 0; i < s->frame.atom_count; i++) {
        const dti_atom *atom = &s->frame.atoms[i];
        if (atom->source && atom->target && !dti_partial_mixes(atom->source, atom->target)) {
            dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s to %s: P(%s) does not become P(%s); redistribute to R between them",
                     s->plan->source->text, s->plan->target->text, dti_partial_names[atom->source],
                     dti_partial_names[atom->target]);
            return false;
        }
        if (atom->source && atom->target) s->kept |= bit(i);
        else if (atom->source) s->summed |= bit(i);
        else if (keeps_first(atom->target) && !atom->source_cuts) s->sliced |= bit(i);
    }
    return true;
}

/* Scaling of P(avg): divided by its ranks where it is summed or becomes a sum, multiplied where the reverse. */
static void set_scale(search *s)
{
    s->plan->multiply = s->plan->divide = 1;
    for (int i = 0; i < s->frame.atom_count; i++) {
        const dti_atom *atom = &s->frame.atoms[i];
        if (atom->source == DTI_AVG && atom->target != DTI_AVG) s->plan->divide *= atom->axis.size;
        if (atom->target == DTI_AVG && (atom->source == DTI_SUM || atom->source_cuts)) s->plan->multiply *= atom->axis.size;
    }
}

/* What ranks must hold in the end: the target's cuts, and where S becomes P either what the rank had (the identity stands
 * elsewhere), or, for the sake of balance where values move anyway, a share as where R becomes P. */
static void build_target(search *s, bool keep)
{
    s->to = new_room(s);
    dti_room_init(s->to, s->plan->target->layout);
    dti_frame_cut(&s->side, s->plan->target->layout, ~UINT32_C(0), s->to);
    uint32_t stays = 0;
    for (int i = 0; i < s->frame.atom_count && s->frame.regular; i++)
        if (s->frame.atoms[i].source_cuts && s->frame.atoms[i].target) stays |= bit(i);
    s->sliced = keep ? s->sliced & ~stays : s->sliced | stays;
    if (stays && keep) dti_frame_cut(&s->frame, s->plan->source->layout, stays, s->to);
    for (int i = 0; i < s->side.atom_count && !s->frame.regular; i++)
        if (keeps_first(s->side.atoms[i].target)) s->to->zeros[s->to->holding.zero_count++] = s->side.atoms[i].axis;
}

/* R becomes P(sum): the first rank keeps the value, where nothing moves; else each keeps a share, so that all receive. */
static void slice_target(search *s, bool first)
{
    for (int i = 0; i < s->frame.atom_count && first; i++)
        if (s->sliced & bit(i)) s->to->zeros[s->to->holding.zero_count++] = s->frame.atoms[i].axis;
    if (first) return;
    dti_room pieces;               /* shared out piece by piece of the source, so that shares lie within pieces    */
    dti_room_copy(&pieces, &s->from->holding);
    open_atoms(&s->frame, every(&s->frame), &pieces);
    dti_room_carve_all(s->to, &pieces.holding);
    s->to->holding.zero_count = 0;
    share_out(&s->frame, s->sliced, s->to);
}

static void build_source(search *s)
{
    s->from = new_room(s);
    dti_room_init(s->from, s->plan->source->layout);
    dti_frame_cut(&s->frame, s->plan->source->layout, ~UINT32_C(0), s->from);
}

static void build_end(search *s, bool keep)
{
    build_target(s, keep);
    if (!s->frame.regular || !s->sliced) return;
    slice_target(s, !s->summed);
    if (s->summed) return;
    dti_step local = make_step(s, &s->frame, s->from, s->to, true, 0);
    if (moves_any(s, &local)) slice_target(s, false);
}

static bool splits_to_partial(const search *s)
{
    for (int i = 0; i < s->frame.atom_count; i++)
        if (s->frame.atoms[i].source_cuts && s->frame.atoms[i].target) return true;
    return false;
}

static void search_regular(search *s)
{
    bool levels = s->frame.aligned && s->plan->topology->level_count > 1;
    if (!s->summed) {
        offer_pull(s, false);
        if (levels) offer_pull(s, true);
        return;
    }
    uint32_t from = dti_frame_closed(&s->frame, &s->from->holding), to = dti_frame_closed(&s->frame, &s->to->holding);
    uint32_t conflicts = from & to & ~common(&s->frame, &s->from->holding, &s->to->holding);
    if (conflicts) offer_sum_at_target(s);
    offer_sums(s, false);
    if (levels) offer_sums(s, true);
    else if (conflicts) offer_balanced(s, conflicts);
}

/* The least time among routes within a tenth of the fewest bytes; below --dt-small bytes among all. */
static void prefer_time(search *s)
{
    if (!s->frame.regular || !s->summed || s->best.step_count < 2) return;
    if (!s->counted) s->best_moves = count(s, &s->best);
    dti_route direct;
    direct_sum(s, &direct);
    dti_moves moves = dti_route_moves(&s->frame, s->plan->topology, direct.steps, 1);
    bool small = moves.received < dti_option_number(s->ctx, DTI_OPTION_SMALL, 0);
    if (!small && moves.received > s->best_moves.received + s->best_moves.received / 10) return;
    if (route_ns(s, &direct) >= route_ns(s, &s->best)) return;
    s->best = direct;
    s->best_to = &s->to->holding;
}

static void init_frames(search *s)
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

static const dti_holding *freeze(search *s, const dti_holding *holding)
{
    return dti_room_freeze((const dti_room *)(const void *)holding, &s->ctx->arena);
}

/* Steps name holdings of the search; each becomes one value, however many steps name it. */
static const dti_holding *frozen(search *s, const dti_step *before, const dti_step *steps, int n, const dti_holding *holding)
{
    for (int i = 0; i < n; i++) {
        if (before[i].from == holding) return steps[i].from;
        if (before[i].to == holding) return steps[i].to;
    }
    return freeze(s, holding);
}

static bool any_full(const search *s)
{
    bool full = s->room_count == MAX_ROOMS;
    for (int i = 0; i < s->room_count; i++) full |= s->rooms[i].full;
    return full;
}

static bool keep_best(search *s)
{
    dt_plan *plan = s->plan;
    int n = s->best.step_count;
    if (any_full(s))
        return dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s to %s: more cuts than a plan can hold", plan->source->text,
                        plan->target->text), false;
    dti_step *steps = dti_context_take(s->ctx, ((size_t)n + 1) * sizeof *steps);
    bool kept = steps != NULL;
    for (int i = 0; i < n && kept; i++) {
        steps[i] = s->best.steps[i];
        steps[i].from = frozen(s, s->best.steps, steps, i, s->best.steps[i].from);
        steps[i].to = s->best.steps[i].from == s->best.steps[i].to ? steps[i].from
                    : frozen(s, s->best.steps, steps, i, s->best.steps[i].to);
        kept = steps[i].from && steps[i].to;
    }
    plan->steps = steps;
    plan->step_count = n;
    plan->from = kept ? frozen(s, s->best.steps, steps, n, &s->from->holding) : NULL;
    plan->to = kept ? frozen(s, s->best.steps, steps, n, s->best_to) : NULL;
    return plan->from && plan->to ? true : (dti_fail(s->ctx, DT_ERR_MEMORY, "no memory for a plan"), false);
}

static bool nothing_to_do(const search *s)
{
    return !s->summed && s->plan->multiply == 1 && s->plan->divide == 1 && s->frame.regular
        && s->plan->source->layout->dtype == s->plan->target->layout->dtype
        && dti_holding_equal(&s->from->holding, &s->to->holding);
}

static void search_all(search *s)
{
    if (!s->frame.regular) {
        search_across(s);
        return;
    }
    search_regular(s);
    if (!s->summed || !splits_to_partial(s)) return;
    build_end(s, false);
    search_regular(s);
}

bool dti_route_choose(dt_context *ctx, dt_plan *plan, dti_search *s)
{
    s->ctx = ctx;
    s->plan = plan;
    s->room_count = 0;
    s->summed = s->kept = s->sliced = 0;
    s->found = s->counted = false;
    s->best.step_count = 0;
    init_frames(s);
    if (!sort_atoms(s)) return false;
    set_scale(s);
    build_source(s);
    build_end(s, true);
    s->best_to = &s->to->holding;
    if (!nothing_to_do(s)) search_all(s);
    if (plan->goal == DT_PLAN_TIME) prefer_time(s);
    return keep_best(s);
}

size_t dti_search_bytes(void) { return sizeof(search); }
