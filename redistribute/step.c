/* SPDX-License-Identifier: Apache-2.0
 *
 * A step between two holdings: whom a rank asks, in what the elements travel. */
#include "redistribute/search.h"

/* Behind the room for all there is room for one, to be written over: a search that needs it is full, and fails. */
const dti_holding *dti_search_keep(dti_search *s, const dti_room *room)
{
    size_t align = _Alignof(max_align_t), bytes = (dti_holding_bytes(&room->holding) + align - 1) / align * align;
    size_t most = sizeof s->holdings - sizeof *room, at = s->used;
    bool fits = bytes <= most - at;
    s->full |= room->full || !fits;
    if (fits) s->used += bytes;
    return dti_holding_place(&room->holding, s->holdings + (fits ? at : most));
}

/* ---- whom a rank asks -------------------------------------------------------------------------------------------- */

static bool same_digit(const dti_digit *p, const dti_digit *q) { return p->stride == q->stride && p->size == q->size; }

/* Atoms closed in the same place of two carves of one factor: behind as many pieces. */
static uint32_t common_digits(const dti_frame *frame, const dti_holding *a, const dti_carve *x, const dti_holding *b,
                              const dti_carve *y)
{
    uint32_t shared = 0;
    int before_x = 1, before_y = 1;
    for (int i = 0, k = 0; i < x->count && k < y->count;) {
        const dti_digit *p = &a->digits[x->first + i], *q = &b->digits[y->first + k];
        bool closed = p->mode == DTI_CLOSED && q->mode == DTI_CLOSED, earlier = before_x <= before_y;
        if (closed && before_x == before_y && same_digit(p, q)) shared |= dti_frame_atom(frame, p->stride);
        if (earlier) before_x *= p->size, i++;
        else before_y *= q->size, k++;
    }
    return shared;
}

/* Are two carves the same but for the modes of their digits? */
static bool same_carve(const dti_holding *a, const dti_carve *x, const dti_holding *b, const dti_carve *y)
{
    bool same = x->block == y->block && x->size == y->size && x->inner == y->inner && x->count == y->count
        && x->pieces == y->pieces && x->lo == y->lo && x->hi == y->hi;
    for (int d = 0; d < x->count && same; d++) same = same_digit(&a->digits[x->first + d], &b->digits[y->first + d]);
    return same;
}

/* What is shared by count is the same where the block's carves before it are. */
static bool same_before(const dti_holding *a, int i, const dti_holding *b, int k)
{
    int block = a->carves[i].block;
    for (; i >= 0 && k >= 0 && a->carves[i].block == block && b->carves[k].block == block; i--, k--)
        if (!same_carve(a, &a->carves[i], b, &b->carves[k])) return false;
    return (i < 0 || a->carves[i].block != block) && (k < 0 || b->carves[k].block != block);
}

uint32_t dti_step_common(const dti_frame *frame, const dti_holding *a, const dti_holding *b)
{
    uint32_t shared = 0;
    for (int i = 0; i < a->carve_count; i++)
        for (int k = 0; k < b->carve_count; k++) {
            const dti_carve *x = &a->carves[i], *y = &b->carves[k];
            if (x->block != y->block || x->size != y->size || x->inner != y->inner) continue;
            if (x->size || same_before(a, i, b, k)) shared |= common_digits(frame, a, x, b, y);
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
                    *(to->carves[c].size ? &cuts : &shares) |= dti_bit(i);
    return shares & ~cuts & ~dti_frame_closed(frame, from);
}

static void list_axes(const dti_frame *frame, uint32_t atoms, dti_axis *axes, int *at, int *count)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms & dti_bit(i)) axes[(*at)++] = frame->atoms[i].axis, ++*count;
}

static dt_dtype sums_in(dt_dtype dtype) { return dtype == DT_BF16 || dtype == DT_F16 ? DT_F32 : dtype; }

static dt_dtype smaller(dt_dtype a, dt_dtype b) { return dt_dtype_bytes(b) < dt_dtype_bytes(a) ? b : a; }

/* What is summed travels as it is, and what is only moved as the smaller of both dtypes, to the last step; a sum that
 * is not all gives what it takes (append_sums). */
static void set_dtypes(const dti_search *s, uint32_t summed, bool last, dti_step *step)
{
    dt_dtype source = s->plan->source->layout->dtype, target = s->plan->target->layout->dtype;
    dt_dtype moved = s->summed ? target : smaller(source, target);
    step->travels = summed ? source : moved;
    step->sums_in = summed ? sums_in(source) : DT_DTYPE_DEFAULT;
    step->gives = last ? target : moved;
}

/* How many ranks that differ in some atoms, which nothing closes, are to hold an element: but for its holders' own
 * digit where it is only for others. */
static int takers(const dti_frame *frame, uint32_t atoms, const dti_holding *to)
{
    int count = dti_frame_size(frame, atoms);
    for (int d = 0; d < to->digit_count; d++) {
        uint32_t atom = dti_frame_atom(frame, to->digits[d].stride);
        if (to->digits[d].mode == DTI_OTHER && (atom & atoms))
            count = count / to->digits[d].size * (to->digits[d].size - 1);
    }
    return count;
}

/* A step in a frame whose atoms both holdings use; own: to a holding of the same ranks. Along atoms that only share
 * out a sum every rank asks the copies that have its own digits: they are as many and as busy as any. */
void dti_search_step(const dti_search *s, const dti_frame *frame, const dti_holding *from, const dti_holding *to,
                     bool own, uint32_t summed, dti_step *step)
{
    *step = (dti_step){ .from = from, .to = to, .own = own, .summed_ranks = dti_frame_size(frame, summed) };
    set_dtypes(s, summed, to == s->to, step);
    uint32_t cut = dti_frame_closed(frame, from) & ~summed, next = dti_frame_closed(frame, to);
    uint32_t asked = own ? (summed | cut | next) & ~s->kept & ~dti_step_common(frame, from, to) : dti_frame_all(frame);
    if (summed) asked &= ~shared_out(frame, from, to) | summed;
    int at = 0;
    list_axes(frame, asked & summed, step->asked, &at, &step->sum_count);
    list_axes(frame, asked & cut, step->asked, &at, &step->cut_count);
    list_axes(frame, asked & ~summed & ~cut, step->asked, &at, &step->copy_count);
    step->takers = own ? takers(frame, asked & ~next, to)
                       : to->ranks / dti_frame_size(&s->side, dti_frame_closed(&s->side, to));
    step->kind = dti_step_kind(frame, step);
}

void dti_search_add(dti_search *s, dti_route *route, const dti_frame *frame, const dti_holding *from,
                    const dti_holding *to, bool own, uint32_t summed)
{
    dti_step *step = &route->steps[route->step_count];
    dti_search_step(s, frame, from, to, own, summed, step);
    step->stage = dti_route_stage(route);
    route->step_count++;
}

int dti_route_stage(const dti_route *route)
{
    return route->step_count ? route->steps[route->step_count - 1].stage + 1 : 0;
}

static bool lacks(const dti_frame *frame, const dti_step *step, int rank)
{
    dti_volume v = dti_step_volume(frame, step, NULL, rank);
    return v.to * step->summed_ranks > v.kept;
}

/* Mostly the first rank is one that does, or one whose digit on one axis is not that on the others. */
bool dti_step_moves(const dti_frame *frame, const dti_step *step)
{
    const int tried[] = { 0, 1, step->to->ranks / 2 };
    if (step->kind == DT_COMM_LOCAL) return false;
    for (int i = 0; i < DT_COUNT(tried); i++)
        if (tried[i] < step->to->ranks && lacks(frame, step, dti_holding_member(step->to, tried[i]))) return true;
    for (dti_ranks r = dti_ranks_alike(frame, step, 1, NULL); dti_ranks_next(&r);)
        if (lacks(frame, step, r.rank)) return true;
    return false;
}

bool dti_step_holds(const dti_frame *frame, const dti_step *step)
{
    dti_step held = { .from = step->to, .to = step->to };
    if (dti_step_held(frame, &held, NULL, step->to->base)) return true;
    for (dti_ranks r = dti_ranks_alike(frame, step, 1, NULL); dti_ranks_next(&r);)
        if (dti_step_held(frame, &held, NULL, r.rank)) return true;
    return false;
}
