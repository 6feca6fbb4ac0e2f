/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks to look at, so that all are counted. Along a block where the cuts of both ends divide, and where one
 * end cuts on where the other stops, another digit means other pieces of the same size that overlap likewise: no count
 * depends on it. Along other blocks digits may be linked: where the one digit of the source and another of the target
 * say which half of an index they mean, both turned are the same halves with their names changed. Of linked digits the
 * first may be 0. The digits of all other blocks tell ranks apart, and those with a digit on one of them stand for the
 * rest. So what a plan moves among thousands of ranks is mostly what one of them moves. */
#include "redistribute/plan.h"

#include "placements/cut.h"

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

/* The atoms of a frame, those of composite sizes taken apart: what is linked may be a part of a digit. A mesh has fewer
 * than 2^31 ranks, so there are fewer than 31 parts. */
typedef struct fine { int count; dti_axis axes[DTI_MAX_AXES]; } fine;

static int least_factor(int n)
{
    for (int f = 2; f <= n / f; f++)
        if (n % f == 0) return f;
    return n;
}

static void fine_init(const dti_frame *frame, fine *f)
{
    f->count = 0;
    for (int i = 0; i < frame->atom_count; i++) {
        dti_axis left = frame->atoms[i].axis;
        for (int size; left.size > 1; left.size /= size) {
            size = least_factor(left.size);
            f->axes[f->count++] = (dti_axis){ size, left.stride * (left.size / size) };
        }
    }
}

static uint32_t parts_of(const fine *f, int size, int stride)
{
    uint32_t parts = 0;
    for (int i = 0; i < f->count; i++)
        if (f->axes[i].stride >= stride && f->axes[i].stride / size < stride) parts |= dti_bit(i);
    return parts;
}

static uint32_t digits_of(const fine *f, const chain *c)
{
    uint32_t parts = 0;
    for (int i = c->first; i < c->first + c->count; i++) {
        const dti_carve *carve = &c->holding->carves[i];
        for (int d = carve->first; d < carve->first + carve->count; d++) {
            const dti_digit *digit = &c->holding->digits[d];
            if (digit->mode != DTI_OPEN) parts |= parts_of(f, digit->size, digit->stride);
        }
    }
    return parts;
}

static uint32_t zeros_of(const fine *f, const dti_holding *holding)
{
    uint32_t parts = 0;
    for (int i = 0; i < holding->zero_count; i++)
        parts |= parts_of(f, holding->zeros[i].size, holding->zeros[i].stride);
    return parts;
}

/* Does nothing depend on the digits that cut a block? */
static bool counts_alike(const dti_frame *frame, int block, const chain *from, const chain *to)
{
    int64_t n = frame->blocks[block];
    return divides(from, n) && divides(to, n) && in_line(from, to);
}

/* The parts on whose digits it depends what a rank holds, keeps or is asked for in a step. */
static uint32_t telling(const dti_frame *frame, const fine *f, const dti_step *step)
{
    uint32_t parts = zeros_of(f, step->from) | zeros_of(f, step->to);
    for (int b = 0; b < frame->block_count; b++) {
        chain from = chain_of(step->from, b), to = chain_of(step->to, b);
        if (!counts_alike(frame, b, &from, &to)) parts |= digits_of(f, &from) | digits_of(f, &to);
    }
    return parts;
}

/* ---- linked digits ----------------------------------------------------------------------------------------------- *
 * All cuts of a block by one factor into equal pieces number its pieces by digits, each at a place of its own; a place
 * is what lies between two products of sizes. Turn the digit of every index at one place: pieces change their names,
 * and nothing else. If the ranks' digits at that place are turned as well, and the indices at the other places where
 * these name pieces, and so on, each rank has the names of what it had. What is counted out within pieces, as shares
 * and parts are, stays where it is in its piece, so it must be counted in pieces that are cut at all those places.   */

typedef struct place { int before, end; uint32_t parts; } place;

typedef struct links {
    const dti_frame *frame;
    const fine *fine;
    uint32_t telling;              /* parts whose digits cannot be turned                                          */
    uint32_t with[DTI_MAX_AXES];   /* per part: those that are turned with it; 0: no cut names it                  */
} links;

typedef struct places {            /* of one block, in one step                                                    */
    const fine *fine;
    int64_t size, inner, repeats;  /* of the factor that all cuts are of, and how often the block has it           */
    int n;
    place at[DTI_MAX_DIGITS];
    int counted_in;                /* pieces within which anything is counted out; 0: nothing is                   */
    uint32_t telling;              /* parts of what is                                                             */
} places;

static void add_place(places *p, int before, int end, uint32_t part)
{
    int i = 0;
    while (i < p->n && (p->at[i].before != before || p->at[i].end != end)) i++;
    if (i == DTI_MAX_DIGITS) p->telling |= part;
    else if (i < p->n) p->at[i].parts |= part;
    else p->at[p->n++] = (place){ before, end, part };
}

static void add_digits(places *p, const dti_holding *holding, const dti_carve *carve, int before)
{
    for (int d = carve->first; d < carve->first + carve->count; d++) {
        const dti_digit *digit = &holding->digits[d];
        uint32_t parts = digit->mode == DTI_OPEN ? 0 : parts_of(p->fine, digit->size, digit->stride);
        int end = before;
        for (int i = 0; i < p->fine->count; i++) {
            if (!(parts & dti_bit(i))) continue;
            add_place(p, end, end * p->fine->axes[i].size, dti_bit(i));
            end *= p->fine->axes[i].size;
        }
        before *= digit->size;
    }
}

/* The factor of the first cut of either chain; without one the block. */
static void find_factor(places *p, const chain *from, const chain *to, int64_t n)
{
    p->size = n;
    p->inner = 1;
    for (int i = from->count + to->count - 1; i >= 0; i--) {
        const chain *c = i < from->count ? from : to;
        const dti_carve *carve = &c->holding->carves[c->first + (i < from->count ? i : i - from->count)];
        if (carve->size == 0) continue;
        p->size = carve->size;
        p->inner = carve->inner;
    }
    p->repeats = n / (p->size * p->inner);
}

/* The places of a chain's cuts. Equal shares of what cuts leave are cuts. false: it is none whose digits can be
 * turned. */
static bool add_chain(places *p, const chain *c)
{
    int pieces = 1;
    bool counted = false;
    for (int i = c->first; i < c->first + c->count; i++) {
        const dti_carve *carve = &c->holding->carves[i];
        if (carve->size == 0) {
            counted |= carve->count == 0 || p->repeats != 1 || p->size / pieces % carve->pieces;
            if (counted) p->telling |= digits_of(p->fine, &(chain){ c->holding, i, 1 });
            else add_digits(p, c->holding, carve, pieces), pieces *= carve->pieces;
            continue;
        }
        if (counted || carve->size != p->size || carve->inner != p->inner || carve->size % carve->pieces) return false;
        if (pieces % carve->pieces && carve->pieces % pieces) return false;
        if (carve->pieces > pieces) pieces = carve->pieces;
        add_digits(p, c->holding, carve, 1);
    }
    if (counted) p->counted_in = (int)dti_common_divisor(pieces, p->counted_in);
    return true;
}

static void link_parts(links *l, uint32_t parts)
{
    uint32_t all = parts;
    for (int i = 0; i < l->fine->count; i++)
        if (parts & dti_bit(i)) all |= l->with[i];
    for (int i = 0; i < l->fine->count; i++)
        if (all & dti_bit(i)) l->with[i] = all;
}

/* Two places that are not one, and not apart, are of digits that name pieces each in its own way. */
static void link_places(links *l, const places *p)
{
    for (int i = 0; i < p->n; i++) {
        link_parts(l, p->at[i].parts);
        if (p->counted_in && p->counted_in % p->at[i].end) l->telling |= p->at[i].parts;
        for (int k = 0; k < i; k++)
            if (p->at[i].before % p->at[k].end && p->at[k].before % p->at[i].end)
                l->telling |= p->at[i].parts | p->at[k].parts;
    }
}

static void link_block(links *l, const chain *from, const chain *to, int64_t n)
{
    places p; /* large: what is read of it is set */
    p.fine = l->fine;
    p.n = p.counted_in = 0;
    p.telling = 0;
    find_factor(&p, from, to, n);
    if (p.repeats * p.size * p.inner == n && add_chain(&p, from) && add_chain(&p, to)) link_places(l, &p);
    else p.telling |= digits_of(l->fine, from) | digits_of(l->fine, to);
    l->telling |= p.telling;
}

static void link_step(links *l, const dti_step *step)
{
    l->telling |= zeros_of(l->fine, step->from) | zeros_of(l->fine, step->to);
    for (int b = 0; b < l->frame->block_count; b++) {
        chain from = chain_of(step->from, b), to = chain_of(step->to, b);
        if (l->frame->blocks[b] && !counts_alike(l->frame, b, &from, &to))
            link_block(l, &from, &to, l->frame->blocks[b]);
    }
}

/* The parts that tell ranks apart: of those that are turned together all but the first, or all. */
static uint32_t telling_linked(const links *l)
{
    uint32_t parts = l->telling;
    for (int i = 0; i < l->fine->count; i++) {
        bool first = !(l->with[i] & (dti_bit(i) - 1));
        if ((l->with[i] & l->telling) || !first) parts |= l->with[i] & dti_bit(i);
    }
    return parts;
}

static int first_of(uint32_t parts)
{
    int first = 0;
    while (!(parts >> first & 1)) first++;
    return first;
}

static void set_classes(const links *l, dti_classes *classes)
{
    uint32_t parts = telling_linked(l);
    classes->count = 1;
    classes->n = 0;
    for (int i = 0; i < l->fine->count; i++) {
        if (!(parts & dti_bit(i))) continue;
        bool turned = l->with[i] && !(l->with[i] & l->telling);
        classes->axes[classes->n].axis = l->fine->axes[i];
        classes->axes[classes->n++].with = turned ? l->fine->axes[first_of(l->with[i])].stride : 0;
        classes->count *= l->fine->axes[i].size;
    }
}

int dti_class_of(const dti_classes *classes, int offset)
{
    int class = 0;
    for (int i = 0; i < classes->n; i++) {
        dti_axis axis = classes->axes[i].axis;
        int digit = offset / axis.stride % axis.size;
        if (classes->axes[i].with) digit += axis.size - offset / classes->axes[i].with % axis.size;
        class = class * axis.size + digit % axis.size;
    }
    return class;
}

static void join_links(links *l, const links *of)
{
    l->telling |= of->telling;
    for (int i = 0; i < l->fine->count; i++)
        if (of->with[i]) link_parts(l, of->with[i]);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

dti_ranks dti_ranks_all(const dti_step *steps, int n)
{
    const dti_holding *from = steps[0].from, *to = steps[n - 1].to;
    return (dti_ranks){ .from = from, .to = to, .times = 1, .all = true, .count = to->ranks + from->ranks };
}

/* Can a part of the ranks stand for all? */
static bool all_apart(const dti_frame *frame, const dti_step *steps, int n)
{
    bool apart = !frame->regular || dti_frame_size(frame, dti_frame_all(frame)) != steps[n - 1].to->ranks;
    for (int i = 0; i < n; i++) apart |= steps[i].maps || steps[i].early;
    return apart;
}

/* Those with digit 0 on all parts but some. */
static dti_ranks ranks_with(const fine *f, const dti_step *steps, int n, uint32_t parts)
{
    dti_ranks ranks = dti_ranks_all(steps, n);
    ranks.all = false;
    ranks.count = 1;
    for (int i = 0; i < f->count; i++) {
        if (!(parts & dti_bit(i))) {
            ranks.times *= f->axes[i].size;
            continue;
        }
        ranks.axes[ranks.axis_count++] = f->axes[i];
        ranks.count *= f->axes[i].size;
    }
    return ranks;
}

dti_ranks dti_ranks_alike(const dti_frame *frame, const dti_step *steps, int n, dti_classes *classes)
{
    fine f;
    if (all_apart(frame, steps, n)) return dti_ranks_all(steps, n);
    fine_init(frame, &f);
    links all = { .frame = frame, .fine = &f };
    for (int i = 0; i < n; i++) {
        links one = { .frame = frame, .fine = &f };
        link_step(&one, &steps[i]);
        if (classes) set_classes(&one, &classes[i]);
        join_links(&all, &one);
    }
    return ranks_with(&f, steps, n, telling_linked(&all));
}

dti_ranks dti_ranks_sending_alike(const dti_frame *frame, const dti_step *steps, int n)
{
    uint32_t parts = 0, copies = 0;
    bool even = true;
    fine f;
    if (all_apart(frame, steps, n)) return dti_ranks_all(steps, n);
    fine_init(frame, &f);
    for (int i = 0; i < n; i++) {
        const dti_axis *copy = steps[i].asked + steps[i].sum_count + steps[i].cut_count;
        parts |= telling(frame, &f, &steps[i]);
        for (int c = 0; c < steps[i].copy_count; c++) copies |= parts_of(&f, copy[c].size, copy[c].stride);
    }
    for (int i = 0; i < n && !parts; i++) even &= dti_step_sends_evenly(frame, &steps[i], steps[0].from->base);
    return ranks_with(&f, steps, n, even && !parts ? parts : parts | copies);
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
