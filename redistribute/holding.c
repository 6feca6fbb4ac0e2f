/* SPDX-License-Identifier: Apache-2.0
 *
 * Holdings: built carve by carve, asked for a rank's set. The common case, one cut along a block and no open digit, is
 * a division or two. */
#include "redistribute/holding.h"

#include <string.h>

#include "placements/cut.h"

static void use_room(dti_room *room)
{
    room->holding.zeros = room->zeros;
    room->holding.digits = room->digits;
    room->holding.carves = room->carves;
}

void dti_room_init(dti_room *room, const dti_layout *layout)
{
    room->holding = (dti_holding){
        .base = layout->base, .ranks = layout->ranks, .member_count = layout->member_count, .members = layout->members,
    };
    room->full = false;
    use_room(room);
}

static void copy_arrays(dti_holding *to, const dti_holding *from)
{
    memcpy(to->zeros, from->zeros, (size_t)from->zero_count * sizeof *from->zeros);
    memcpy(to->digits, from->digits, (size_t)from->digit_count * sizeof *from->digits);
    memcpy(to->carves, from->carves, (size_t)from->carve_count * sizeof *from->carves);
}

void dti_room_copy(dti_room *to, const dti_holding *from)
{
    to->holding = *from;
    to->full = false;
    use_room(to);
    copy_arrays(&to->holding, from);
}

size_t dti_holding_bytes(const dti_holding *holding)
{
    return sizeof *holding + (size_t)holding->carve_count * sizeof *holding->carves
        + (size_t)holding->digit_count * sizeof *holding->digits + (size_t)holding->zero_count * sizeof *holding->zeros;
}

const dti_holding *dti_holding_place(const dti_holding *holding, void *bytes)
{
    dti_holding *placed = bytes;
    *placed = *holding;
    placed->carves = (dti_carve *)(void *)(placed + 1);
    placed->digits = (dti_digit *)(void *)(placed->carves + holding->carve_count);
    placed->zeros = (dti_axis *)(void *)(placed->digits + holding->digit_count);
    copy_arrays(placed, holding);
    return placed;
}

const dti_holding *dti_holding_freeze(const dti_holding *holding, dti_arena *arena)
{
    void *bytes = dti_arena_take(arena, dti_holding_bytes(holding));
    return bytes ? dti_holding_place(holding, bytes) : NULL;
}

/* A new carve behind the others of its block; NULL where the room is full. */
static dti_carve *new_carve(dti_room *room, int block, int digits)
{
    dti_holding *holding = &room->holding;
    room->full |= holding->carve_count == DTI_MAX_CARVES || holding->digit_count + digits > DTI_MAX_DIGITS;
    if (room->full) return NULL;
    int at = holding->carve_count++;
    for (; at > 0 && holding->carves[at - 1].block > block; at--) holding->carves[at] = holding->carves[at - 1];
    return &holding->carves[at];
}

static bool adds_nothing(const dti_digit *digit, const dti_digit *there)
{
    return digit->stride == there->stride && digit->size == there->size
        && (digit->mode == DTI_OPEN || digit->mode == there->mode);
}

/* Is the factor cut by these digits already, as the first of more or none, and at least as narrowly? */
static bool redundant(const dti_room *room, int block, int64_t size, int64_t inner, const dti_digit *digits, int n)
{
    for (int c = 0; c < room->holding.carve_count && size; c++) {
        const dti_carve *carve = &room->carves[c];
        if (carve->block != block || carve->size != size || carve->inner != inner || carve->count < n) continue;
        int same = 0;
        while (same < n && adds_nothing(&digits[same], &room->digits[carve->first + same])) same++;
        if (same == n) return true;
    }
    return false;
}

/* Can a digit of two carves of one factor be one: is one of them open, or are they alike? */
static bool joins(const dti_digit *a, const dti_digit *b)
{
    return a->size == b->size && a->stride == b->stride
        && (a->mode == b->mode || a->mode == DTI_OPEN || b->mode == DTI_OPEN);
}

/* Cut the factor by the same digits in one carve that is there already: what is behind that carve is done to each of
 * its pieces alone, whichever are left. */
static bool joined(dti_room *room, int block, int64_t size, int64_t inner, const dti_digit *digits, int n)
{
    for (int c = room->holding.carve_count - 1; c >= 0; c--) {
        const dti_carve *carve = &room->carves[c];
        if (carve->block != block || carve->size != size || carve->inner != inner || carve->count != n) continue;
        dti_digit *there = &room->digits[carve->first];
        int same = 0;
        while (same < n && joins(&digits[same], &there[same])) same++;
        for (int i = 0; i < n && same == n; i++)
            if (there[i].mode == DTI_OPEN) there[i].mode = digits[i].mode;
        if (same == n) return true;
    }
    return false;
}

void dti_room_carve(dti_room *room, int block, int64_t size, int64_t inner, const dti_digit *digits, int n)
{
    if (redundant(room, block, size, inner, digits, n)) return;
    if (size && joined(room, block, size, inner, digits, n)) return;
    dti_carve *carve = new_carve(room, block, n);
    if (!carve) return;
    *carve = (dti_carve){ .block = block, .first = room->holding.digit_count, .count = n, .pieces = 1, .size = size,
                          .inner = inner };
    for (int i = 0; i < n; i++) {
        room->digits[room->holding.digit_count++] = digits[i];
        carve->pieces *= digits[i].size;
    }
}

void dti_room_part(dti_room *room, int block, int lo, int hi, int pieces)
{
    dti_carve *carve = new_carve(room, block, 0);
    if (carve) *carve = (dti_carve){ .block = block, .pieces = pieces, .lo = lo, .hi = hi };
}

/* A share of all values, the last along its block: it takes nothing away, and would only count in smaller pieces. */
static bool idle_share(const dti_holding *holding, int at)
{
    const dti_carve *carve = &holding->carves[at];
    bool last = at + 1 == holding->carve_count || holding->carves[at + 1].block != carve->block, open = true;
    for (int d = carve->first; d < carve->first + carve->count; d++) open &= holding->digits[d].mode == DTI_OPEN;
    return last && open && carve->size == 0 && carve->count > 0;
}

void dti_room_carve_all(dti_room *room, const dti_holding *by)
{
    for (int i = 0; i < by->carve_count; i++) {
        const dti_carve *carve = &by->carves[i];
        if (idle_share(by, i)) continue;
        if (carve->count == 0) dti_room_part(room, carve->block, carve->lo, carve->hi, carve->pieces);
        else dti_room_carve(room, carve->block, carve->size, carve->inner, by->digits + carve->first, carve->count);
    }
    for (int i = 0; i < by->zero_count; i++) room->zeros[room->holding.zero_count++] = by->zeros[i];
}

void dti_room_set(dti_room *room, dti_axis axis, dti_digit_mode mode)
{
    for (int i = 0; i < room->holding.digit_count; i++)
        if (room->digits[i].stride == axis.stride && room->digits[i].mode != DTI_OPEN) room->digits[i].mode = mode;
}

bool dti_holding_has(const dti_holding *holding, int rank)
{
    for (int i = 0; i < holding->zero_count; i++)
        if (dti_axis_digit(holding->zeros[i], rank - holding->base)) return false;
    return dti_axes_reach(holding->members, holding->member_count, rank - holding->base);
}

int dti_holding_member(const dti_holding *holding, int index)
{
    return holding->base + dti_axes_offset(holding->members, holding->member_count, index);
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

/* Add the indices of one piece of a factor, in a block of n. */
static void factor_piece(const dti_carve *carve, int64_t n, int64_t piece, dti_set *out)
{
    int64_t lo = dti_cut(carve->size, carve->pieces, piece) * carve->inner;
    int64_t hi = dti_cut(carve->size, carve->pieces, piece + 1) * carve->inner;
    int64_t period = carve->size * carve->inner;
    if (lo == 0 && hi == period) period = hi = n; /* all of each: of few indices pieces are mostly that, or none      */
    for (int64_t at = 0; at < n && lo < hi && !out->lost; at += period) dti_set_append(out, at + lo, at + hi);
}

/* out = the elements number lo to hi of a set. */
static void set_part(const dti_set *set, int64_t lo, int64_t hi, dti_set *out)
{
    const dti_interval *at = dti_set_at(set);
    for (int i = 0; i < set->n && hi > 0; i++) {
        int64_t count = at[i].hi - at[i].lo;
        dti_set_append(out, at[i].lo + (lo > 0 ? lo : 0), at[i].lo + (hi < count ? hi : count));
        lo -= count;
        hi -= count;
    }
}

static void carve_set(const dti_carve *carve, int64_t n, int64_t piece, const dti_set *set, dti_set *out)
{
    dti_set_clear(out);
    if (carve->size == 0) {
        int64_t count = dti_set_count(set), last = carve->count ? piece + 1 : carve->hi;
        set_part(set, dti_cut(count, carve->pieces, carve->count ? piece : carve->lo),
                 dti_cut(count, carve->pieces, last), out);
        return;
    }
    dti_set whole;
    dti_set_init(&whole);
    factor_piece(carve, n, piece, &whole);
    dti_set_intersect(set, &whole, out);
    dti_set_fini(&whole);
}

/* How many values of a digit a rank has. */
static int values(const dti_digit *digit)
{
    return digit->mode == DTI_CLOSED ? 1 : digit->mode == DTI_OPEN ? digit->size : digit->size - 1;
}

/* Value number i of these. */
static int value(const dti_holding *holding, int index, int rank, int i)
{
    const dti_digit *digit = &holding->digits[index];
    int own = digit->mode == DTI_OPEN ? 0 : dti_digit_of(holding, index, rank);
    return digit->mode == DTI_CLOSED ? own : digit->mode == DTI_OPEN ? i : i + (i >= own);
}

static int64_t combinations(const dti_holding *holding, const dti_carve *carve)
{
    int64_t count = 1;
    for (int i = carve->first; i < carve->first + carve->count; i++) count *= values(&holding->digits[i]);
    return count;
}

/* The piece that combination number i of a rank's digits names. */
static int64_t piece_of(const dti_holding *holding, const dti_carve *carve, int rank, int64_t combination)
{
    int64_t weight = 1, piece = 0;
    for (int i = carve->first + carve->count - 1; i >= carve->first; i--) {
        int count = values(&holding->digits[i]);
        piece += value(holding, i, rank, (int)(combination % count)) * weight;
        combination /= count;
        weight *= holding->digits[i].size;
    }
    return piece;
}

typedef struct chain { const dti_holding *holding; int last, rank; int64_t n; dti_set *out; } chain;

/* A carve whose digits are all open restricts nothing, unless what it leaves is counted behind it. */
static bool restricts(const dti_holding *holding, int at, int last)
{
    const dti_carve *carve = &holding->carves[at];
    if (carve->count == 0) return true;
    for (int d = carve->first; d < carve->first + carve->count; d++)
        if (holding->digits[d].mode != DTI_OPEN) return true;
    for (int i = at + 1; i < last; i++)
        if (holding->carves[i].size == 0 && restricts(holding, i, last)) return true;
    return false;
}

/* Is anything shared by count from a carve on? Then pieces must be carved one by one. */
static bool counts(const dti_holding *holding, int at, int last)
{
    while (at < last && holding->carves[at].size) at++;
    return at < last;
}

/* ---- intervals: where each combination of digits leaves one, as cuts of one factor and shares of its pieces do --- */

enum { FEW_PIECES = 16, FEW_CUTS = 6 }; /* far more are a set, which need not go through them one by one             */

/* What a carve leaves: intervals of the block, or, shared by count, pieces of what there is. */
typedef struct cut { int pieces; int n; dti_interval at[FEW_PIECES]; } cut;

/* The next digit inside each piece so far, which are numbers. false: too many. */
static bool cut_inside(const dti_holding *holding, int index, int rank, cut *of)
{
    const dti_digit *digit = &holding->digits[index];
    int own = digit->mode == DTI_OPEN ? 0 : dti_digit_of(holding, index, rank), count = values(digit), n = of->n;
    if (digit->mode == DTI_CLOSED) {
        for (int i = 0; i < n; i++) of->at[i].lo = of->at[i].lo * digit->size + own;
        return true;
    }
    if (n * count > FEW_PIECES) return false;
    of->n = n * count;
    for (int i = n - 1; i >= 0; i--) {
        int64_t outer = of->at[i].lo * digit->size;
        for (int v = count - 1; v >= 0; v--)
            of->at[i * count + v].lo = outer + v + (digit->mode == DTI_OTHER && v >= own);
    }
    return true;
}

/* Those that touch as one. */
static void join_pieces(cut *of)
{
    int n = 0;
    for (int i = 0; i < of->n; i++) {
        if (n && of->at[n - 1].hi == of->at[i].lo) of->at[n - 1].hi = of->at[i].hi;
        else of->at[n++] = of->at[i];
    }
    of->n = n;
}

/* apart: something is counted within each piece. */
static bool find_pieces(const chain *c, const dti_carve *carve, bool apart, cut *of)
{
    of->n = 1;
    of->pieces = carve->size ? 0 : carve->pieces;
    of->at[0] = (dti_interval){ carve->lo, carve->hi };
    if (carve->count == 0) return true;
    of->at[0].lo = 0;
    for (int d = carve->first; d < carve->first + carve->count; d++)
        if (!cut_inside(c->holding, d, c->rank, of)) return false;
    for (int i = 0; i < of->n; i++) {
        of->at[i].hi = of->at[i].lo + 1;
        if (carve->size == 0) continue;
        of->at[i].lo = dti_cut(carve->size, carve->pieces, of->at[i].lo) * carve->inner;
        of->at[i].hi = dti_cut(carve->size, carve->pieces, of->at[i].hi) * carve->inner;
    }
    if (!apart && of->n > 1) join_pieces(of);
    return true;
}

/* A piece of what is left. */
static dti_interval piece_of_cut(const cut *of, int i, int64_t lo, int64_t hi)
{
    dti_interval part = of->at[i];
    if (of->pieces) {
        part.lo = lo + dti_cut(hi - lo, of->pieces, of->at[i].lo);
        part.hi = lo + dti_cut(hi - lo, of->pieces, of->at[i].hi);
    }
    if (part.lo < lo) part.lo = lo;
    if (part.hi > hi) part.hi = hi;
    return part;
}

/* What is left of [lo, hi), the last cut first; mostly cuts leave one piece. */
static void cut_interval(const cut *cuts, int n, int64_t lo, int64_t hi, dti_set *out)
{
    for (; n && lo < hi && cuts[n - 1].n == 1; n--) {
        dti_interval part = piece_of_cut(&cuts[n - 1], 0, lo, hi);
        lo = part.lo;
        hi = part.hi;
    }
    if (lo >= hi) return;
    if (n == 0) dti_set_append(out, lo, hi);
    for (int i = 0; n && i < cuts[n - 1].n; i++) {
        dti_interval part = piece_of_cut(&cuts[n - 1], i, lo, hi);
        cut_interval(cuts, n - 1, part.lo, part.hi, out);
    }
}

static bool is_open(const dti_holding *holding, const dti_carve *carve)
{
    bool open = carve->count > 0;
    for (int d = carve->first; d < carve->first + carve->count; d++) open &= holding->digits[d].mode == DTI_OPEN;
    return open;
}

/* false: this is not such a chain, and nothing was done. */
static bool cut_intervals(const chain *c, int first)
{
    cut cuts[FEW_CUTS]; /* large: what is read of it is set */
    bool counted = false;
    int n = 0;
    for (int at = c->last - 1; at >= first; at--) {
        const dti_carve *carve = &c->holding->carves[at];
        if (!counted && is_open(c->holding, carve)) continue;
        if (n == FEW_CUTS || (carve->size && carve->size * carve->inner != c->n)) return false;
        if (!find_pieces(c, carve, counted, &cuts[n++])) return false;
        counted |= carve->size == 0;
    }
    cut_interval(cuts, n, 0, c->n, c->out);
    dti_set_sort(c->out);
    return true;
}

/* All pieces of a factor that the rank has, as one set. */
static void factor_pieces(const chain *c, const dti_carve *carve, dti_set *out)
{
    int64_t period = carve->size * carve->inner, count = combinations(c->holding, carve);
    dti_set once;
    dti_set_init(&once);
    for (int64_t i = 0; i < count; i++)
        factor_piece(carve, period, piece_of(c->holding, carve, c->rank, i), &once);
    dti_set_repeat(&once, period, 0, period ? c->n / period : 0, out);
    dti_set_fini(&once);
}

static void carve_on(const chain *c, int at, const dti_set *set);

static void carve_at_once(const chain *c, int at, const dti_set *set)
{
    dti_set pieces, part;
    dti_set_init(&pieces);
    dti_set_init(&part);
    factor_pieces(c, &c->holding->carves[at], &pieces);
    dti_set_intersect(set, &pieces, &part);
    carve_on(c, at + 1, &part);
    dti_set_fini(&pieces);
    dti_set_fini(&part);
}

/* Carve a set by carve number `at` and those behind it. */
static void carve_on(const chain *c, int at, const dti_set *set)
{
    while (at < c->last && !restricts(c->holding, at, c->last)) at++;
    if (at == c->last) {
        const dti_interval *v = dti_set_at(set);
        for (int i = 0; i < set->n; i++) dti_set_scatter(c->out, v[i].lo, v[i].hi);
        c->out->lost |= set->lost;
        return;
    }
    if (!counts(c->holding, at, c->last)) {
        carve_at_once(c, at, set);
        return;
    }
    const dti_carve *carve = &c->holding->carves[at];
    int64_t count = set->n ? combinations(c->holding, carve) : 0;
    dti_set part;
    dti_set_init(&part);
    for (int64_t i = 0; i < count; i++) {
        carve_set(carve, c->n, piece_of(c->holding, carve, c->rank, i), set, &part);
        carve_on(c, at + 1, &part);
    }
    dti_set_fini(&part);
}

void dti_holding_set(const dti_holding *holding, int block, int64_t n, int rank, dti_set *set)
{
    dti_set_clear(set);
    int first = 0, last;
    while (first < holding->carve_count && holding->carves[first].block < block) first++;
    for (last = first; last < holding->carve_count && holding->carves[last].block == block;) last++;
    chain c = { holding, last, rank, n, set };
    if (cut_intervals(&c, first)) return;
    while (!restricts(holding, first, last)) first++;
    const dti_carve *carve = &holding->carves[first];
    if (last == first + 1 && carve->size && combinations(holding, carve) == 1) {
        factor_piece(carve, n, piece_of(holding, carve, rank, 0), set);
        return;
    }
    dti_set whole;
    dti_set_init(&whole);
    dti_set_append(&whole, 0, n);
    carve_on(&c, first, &whole);
    dti_set_sort(set);
    dti_set_fini(&whole);
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

bool dti_holding_closes(const dti_holding *holding, dti_axis axis)
{
    for (int i = 0; i < holding->digit_count; i++)
        if (holding->digits[i].mode == DTI_CLOSED && holding->digits[i].stride == axis.stride) return true;
    for (int i = 0; i < holding->zero_count; i++)
        if (holding->zeros[i].stride == axis.stride) return true;
    return false;
}

static bool digits_equal(const dti_holding *a, const dti_carve *x, const dti_holding *b, const dti_carve *y)
{
    for (int i = 0; i < x->count; i++) {
        const dti_digit *p = &a->digits[x->first + i], *q = &b->digits[y->first + i];
        if (p->size != q->size || p->stride != q->stride || p->mode != q->mode) return false;
    }
    return true;
}

static bool carves_equal(const dti_holding *a, const dti_carve *x, const dti_holding *b, const dti_carve *y)
{
    return x->block == y->block && x->size == y->size && x->inner == y->inner && x->count == y->count
        && x->pieces == y->pieces && x->lo == y->lo && x->hi == y->hi
        && digits_equal(a, x, b, y);
}

/* Are the digits of a cut the first of another's, of the same factor? Then it makes the larger pieces. */
static bool begins(const dti_holding *a, const dti_carve *x, const dti_holding *b, const dti_carve *y)
{
    return x->size && x->size == y->size && x->inner == y->inner && x->count <= y->count && digits_equal(a, x, b, y);
}

bool dti_holding_within(const dti_holding *a, const dti_holding *b, int block)
{
    int i = 0, k = 0;
    while (i < a->carve_count && a->carves[i].block < block) i++;
    while (k < b->carve_count && b->carves[k].block < block) k++;
    for (; k < b->carve_count && b->carves[k].block == block; i++, k++) {
        const dti_carve *x = &b->carves[k];
        bool last = k + 1 == b->carve_count || b->carves[k + 1].block != block;
        if (i == a->carve_count || a->carves[i].block != block) return false;
        if (!carves_equal(b, x, a, &a->carves[i]) && !(last && begins(b, x, a, &a->carves[i]))) return false;
    }
    return true;
}

bool dti_holding_equal(const dti_holding *a, const dti_holding *b)
{
    if (a->base != b->base || a->member_count != b->member_count || a->carve_count != b->carve_count
        || a->zero_count != b->zero_count
        || memcmp(a->members, b->members, (size_t)a->member_count * sizeof *a->members)
        || memcmp(a->zeros, b->zeros, (size_t)a->zero_count * sizeof *a->zeros)) return false;
    for (int i = 0; i < a->carve_count; i++)
        if (!carves_equal(a, &a->carves[i], b, &b->carves[i])) return false;
    return true;
}

bool dti_holding_shares(const dti_holding *holding)
{
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].size == 0) return true;
    return false;
}
