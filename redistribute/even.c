/* SPDX-License-Identifier: Apache-2.0
 *
 * How evenly holdings share elements out, told from their carves alone: where pieces are alike, and cuts before and
 * after do not meet in one digit of an index, every rank receives the same, and nothing need be counted. */
#include "redistribute/search.h"

/* Into how many pieces a carve cuts each that there is: those that were cut from the same factor are cut on. 0: across
 * their borders. */
static int64_t cuts_into(const dti_holding *holding, int at)
{
    const dti_carve *carve = &holding->carves[at];
    int64_t before = 1, pieces = carve->pieces;
    for (int i = at - 1; i >= 0 && holding->carves[i].block == carve->block && carve->size; i--) {
        const dti_carve *other = &holding->carves[i];
        bool same = other->size == carve->size && other->inner == carve->inner;
        if (same && other->pieces > before) before = other->pieces;
    }
    return before % pieces == 0 ? 1 : pieces % before ? 0 : pieces / before;
}

/* A carve that does not divide a piece makes parts that differ by one index; the fewer are left the more that is. What
 * is shared by count is shared within each piece, however many of them a rank has. left: indices of a piece. */
bool dti_search_alike(const dti_search *s, const dti_holding *holding)
{
    int64_t left = 0, roundings = 0, least = INT64_MAX;
    bool counted = false;
    if (s->frame.elements == 0) return false;
    for (int i = 0, block = -1; i < holding->carve_count; i++) {
        const dti_carve *carve = &holding->carves[i];
        if (carve->block != block) left = s->frame.blocks[block = carve->block], counted = false;
        int64_t pieces = cuts_into(holding, i);
        bool divides = pieces && left % pieces == 0;
        if (carve->size && (counted || !divides || carve->size % carve->pieces)) return false;
        int64_t taken = carve->count ? 1 : carve->hi - carve->lo;
        left = left / pieces * taken + left % pieces * taken / pieces;
        counted |= carve->size == 0;
        roundings += !divides;
        if (!divides && left < least) least = left;
        if (left == 0) return false;
    }
    return roundings == 0 || (s->plan->goal == DT_PLAN_TIME && least >= roundings * DTI_ROUGH);
}

/* The indices of a block that a digit tells apart: all below hi, in steps of lo. */
typedef struct span { int block, stride; int64_t lo, hi; } span;

/* Those of the digits that restrict what a rank holds, but for some atoms'. */
static int spans_of(const dti_search *s, const dti_holding *holding, uint32_t without, span *spans)
{
    int n = 0;
    for (int i = 0; i < holding->carve_count; i++) {
        const dti_carve *carve = &holding->carves[i];
        int64_t hi = carve->size * carve->inner, lo;
        for (int d = carve->first; d < carve->first + carve->count && carve->size; d++, hi = lo) {
            const dti_digit *digit = &holding->digits[d];
            lo = hi / digit->size;
            if (digit->mode != DTI_OPEN && !(dti_frame_atom(&s->frame, digit->stride) & without))
                spans[n++] = (span){ carve->block, digit->stride, lo, hi };
        }
    }
    return n;
}

static bool divide(int64_t a, int64_t b) { return a && b && (a % b == 0 || b % a == 0); }

/* Are the digits of one places in the other's pieces, or the reverse? Halves are none in thirds. */
static bool nest(const span *a, const span *b)
{
    return divide(a->lo, b->lo) && divide(a->lo, b->hi) && divide(a->hi, b->lo) && divide(a->hi, b->hi);
}

static dti_crossing crossing(const span *a, const span *b)
{
    if (a->block != b->block) return DTI_APART;
    if (!nest(a, b)) return DTI_ASKEW;
    if (a->stride == b->stride && a->lo == b->lo && a->hi == b->hi) return DTI_APART;
    return a->lo < b->hi && b->lo < a->hi ? DTI_CROSSING : DTI_APART;
}

dti_crossing dti_search_crosses(const dti_search *s, uint32_t atoms)
{
    span from[DTI_MAX_DIGITS], to[DTI_MAX_DIGITS];
    uint32_t common = dti_step_common(&s->frame, s->from, s->to);
    int m = spans_of(s, s->from, common | ~atoms, from), n = spans_of(s, s->to, common, to);
    dti_crossing worst = DTI_APART;
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++) {
            dti_crossing pair = crossing(&from[i], &to[k]);
            if (pair > worst) worst = pair;
        }
    return worst;
}

bool dti_search_crosses_within(const dti_search *s, const dti_holding *holding)
{
    span spans[DTI_MAX_DIGITS];
    int n = spans_of(s, holding, 0, spans);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (crossing(&spans[i], &spans[k]) != DTI_APART) return true;
    return false;
}
