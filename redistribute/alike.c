/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks to look at, so that all are counted. Along a block where the cuts of both ends divide, and where one
 * end cuts on where the other stops, another digit means other pieces of the same size that overlap likewise: no count
 * depends on it. The digits of all other blocks tell ranks apart, and those with a digit on one of them stand for the
 * rest. So what a plan moves among thousands of ranks is mostly what one of them moves. */
#include "redistribute/plan.h"

typedef struct chain { const dti_holding *holding; int first, count; } chain; /* the carves of one block              */

static chain chain_of(const dti_holding *holding, int block)
{
    chain c = { holding, 0, 0 };
    while (c.first < holding->carve_count && holding->carves[c.first].block < block) c.first++;
    while (c.first + c.count < holding->carve_count && holding->carves[c.first + c.count].block == block) c.count++;
    return c;
}

/* Do two carves cut by different digits of an index? They then cut one within the other. */
static bool apart(const dti_carve *x, const dti_carve *y)
{
    int64_t x_end = x->size * x->inner, y_end = y->size * y->inner;
    return x_end <= y_end / y->pieces || y_end <= x_end / x->pieces;
}

/* Is every piece of a block of n as large as any other, and are they cut before anything is shared by count? */
static bool divides(const chain *c, int64_t n)
{
    int64_t left = n;
    bool counted = false;
    for (int i = 0; i < c->count; i++) {
        const dti_carve *carve = &c->holding->carves[c->first + i];
        if (left % carve->pieces) return false;
        if (carve->size && (counted || carve->size % carve->pieces || n % (carve->size * carve->inner))) return false;
        for (int k = 0; k < i && carve->size; k++)
            if (!apart(&c->holding->carves[c->first + k], carve)) return false;
        counted |= carve->size == 0;
        left = left / carve->pieces * (carve->count ? 1 : carve->hi - carve->lo);
    }
    return true;
}

/* Has a carve the first digits of another, of the same factor? */
static bool begins(const dti_holding *a, const dti_carve *x, const dti_holding *b, const dti_carve *y)
{
    if (x->size != y->size || x->inner != y->inner || x->count > y->count) return false;
    if (x->count == 0) return y->count == 0 && x->pieces == y->pieces && x->lo == y->lo && x->hi == y->hi;
    for (int i = 0; i < x->count; i++) {
        const dti_digit *p = &a->digits[x->first + i], *q = &b->digits[y->first + i];
        if (p->size != q->size || p->stride != q->stride) return false;
    }
    return true;
}

/* Does one chain go on where the other stops? */
static bool continues(const chain *longer, const chain *shorter)
{
    for (int i = 0; i < shorter->count; i++) {
        const dti_carve *x = &shorter->holding->carves[shorter->first + i];
        const dti_carve *y = &longer->holding->carves[longer->first + i];
        if (!begins(shorter->holding, x, longer->holding, y)) return false;
        if (x->count < y->count && i + 1 < shorter->count) return false;
    }
    return true;
}

/* May the last carve of either be the one with fewer digits? */
static bool in_line(const chain *a, const chain *b)
{
    return (b->count <= a->count && continues(a, b)) || (a->count <= b->count && continues(b, a));
}

static uint32_t digits_of(const dti_frame *frame, const chain *c)
{
    uint32_t atoms = 0;
    for (int i = c->first; i < c->first + c->count; i++) {
        const dti_carve *carve = &c->holding->carves[i];
        for (int d = carve->first; d < carve->first + carve->count; d++)
            if (c->holding->digits[d].mode != DTI_OPEN) atoms |= dti_frame_atom(frame, c->holding->digits[d].stride);
    }
    return atoms;
}

static uint32_t zeros_of(const dti_frame *frame, const dti_holding *holding)
{
    uint32_t atoms = 0;
    for (int i = 0; i < holding->zero_count; i++) atoms |= dti_frame_atom(frame, holding->zeros[i].stride);
    return atoms;
}

/* The atoms on whose digits it depends what a rank holds, keeps or is asked for in a step. */
static uint32_t telling(const dti_frame *frame, const dti_step *step)
{
    uint32_t atoms = zeros_of(frame, step->from) | zeros_of(frame, step->to);
    for (int b = 0; b < frame->block_count; b++) {
        chain from = chain_of(step->from, b), to = chain_of(step->to, b);
        if (divides(&from, frame->blocks[b]) && divides(&to, frame->blocks[b]) && in_line(&from, &to)) continue;
        atoms |= digits_of(frame, &from) | digits_of(frame, &to);
    }
    return atoms;
}

dti_ranks dti_ranks_all(const dti_step *steps, int n)
{
    const dti_holding *from = steps[0].from, *to = steps[n - 1].to;
    return (dti_ranks){ .from = from, .to = to, .times = 1, .all = true, .count = to->ranks + from->ranks };
}

/* Ranks of both ends; of a regular frame those with digit 0 on all atoms but some. */
static dti_ranks ranks_with(const dti_frame *frame, const dti_step *steps, int n, uint32_t atoms)
{
    dti_ranks ranks = dti_ranks_all(steps, n);
    ranks.all = !frame->regular || dti_frame_size(frame, dti_frame_all(frame)) != ranks.to->ranks;
    for (int i = 0; i < n; i++) ranks.all |= steps[i].maps || steps[i].early;
    if (ranks.all) return ranks;
    ranks.count = 1;
    for (int i = 0; i < frame->atom_count; i++) {
        if (!(atoms & dti_bit(i))) {
            ranks.times *= frame->atoms[i].axis.size;
            continue;
        }
        ranks.axes[ranks.axis_count++] = frame->atoms[i].axis;
        ranks.count *= frame->atoms[i].axis.size;
    }
    return ranks;
}

dti_ranks dti_ranks_alike(const dti_frame *frame, const dti_step *steps, int n)
{
    uint32_t atoms = 0;
    for (int i = 0; i < n; i++) atoms |= telling(frame, &steps[i]);
    return ranks_with(frame, steps, n, atoms);
}

dti_ranks dti_ranks_sending_alike(const dti_frame *frame, const dti_step *steps, int n)
{
    uint32_t atoms = 0, copies = 0;
    bool even = true;
    for (int i = 0; i < n; i++) {
        atoms |= telling(frame, &steps[i]);
        for (int c = 0; c < steps[i].copy_count; c++)
            copies |= dti_frame_atom(frame, steps[i].asked[steps[i].sum_count + steps[i].cut_count + c].stride);
    }
    dti_ranks ranks = ranks_with(frame, steps, n, atoms);
    for (int i = 0; i < n && !ranks.all && !atoms; i++)
        even &= dti_step_sends_evenly(frame, &steps[i], ranks.from->base);
    return ranks.all || (even && !atoms) ? ranks : ranks_with(frame, steps, n, atoms | copies);
}

static bool is_member(const dti_holding *holding, int rank)
{
    return dti_axes_reach(holding->members, holding->member_count, rank - holding->base);
}

bool dti_ranks_next(dti_ranks *ranks)
{
    while (ranks->at < ranks->count) {
        int i = ranks->at++;
        if (!ranks->all) {
            ranks->rank = ranks->to->base + dti_axes_offset(ranks->axes, ranks->axis_count, i);
            return true;
        }
        bool taker = i < ranks->to->ranks;
        ranks->rank = taker ? dti_holding_member(ranks->to, i) : dti_holding_member(ranks->from, i - ranks->to->ranks);
        if (taker || !is_member(ranks->to, ranks->rank)) return true;
    }
    return false;
}
