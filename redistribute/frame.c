/* SPDX-License-Identifier: Apache-2.0
 *
 * Common refinements: of two factor lists by walking their borders, of two sets of axes by chopping all of them at all
 * their borders. Both fail softly: a border that one side cannot have is left out, and the blocks grow. */
#include "redistribute/frame.h"

#include <string.h>

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Elements behind one index of factor f. */
static int64_t inner_of(const dti_layout *layout, int f)
{
    int64_t inner = 1;
    for (int i = layout->factor_count - 1; i > f; i--) inner *= layout->factors[i].size;
    return inner;
}

/* Can a block border lie at this many elements: between two factors, or inside one that is whole, or cut into equal
 * pieces of a multiple of it? */
static bool has_border(const dti_layout *layout, int64_t border)
{
    int64_t inner = 1;
    for (int f = layout->factor_count - 1; f >= 0; f--) {
        const dti_layout_factor *factor = &layout->factors[f];
        if (border == inner) return true;
        if (border < inner * factor->size)
            return factor->size % factor->pieces == 0 && border % inner == 0
                && inner * factor->size / factor->pieces % border == 0;
        inner *= factor->size;
    }
    return border == inner;
}

static int add_borders(const dti_layout *from, const dti_layout *both, int64_t *borders, int n)
{
    int64_t inner = 1;
    for (int f = from->factor_count - 1; f >= 0; f--) {
        if (inner > 1 && has_border(both, inner)) borders[n++] = inner;
        inner *= from->factors[f].size;
    }
    return n;
}

static void sort_down(int64_t *v, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && v[j - 1] < v[j]; j--) {
            int64_t swap = v[j];
            v[j] = v[j - 1];
            v[j - 1] = swap;
        }
}

static void set_blocks(dti_frame *frame)
{
    int64_t borders[2 * DT_MAX_FACTORS], above = frame->elements;
    int n = 0;
    if (frame->elements) {
        n = add_borders(frame->source, frame->target, borders, n);
        n = add_borders(frame->target, frame->source, borders, n);
        sort_down(borders, n);
    }
    frame->block_count = 0;
    for (int i = 0; i < n; i++) {
        if (borders[i] >= above) continue;
        frame->blocks[frame->block_count++] = above / borders[i];
        above = borders[i];
    }
    if (above != 1 || frame->block_count == 0) frame->blocks[frame->block_count++] = above;
}

/* ---- atoms ------------------------------------------------------------------------------------------------------- */

typedef struct axis_borders { int at[8 * DTI_MAX_AXES]; int n; } axis_borders;

static void add_border(axis_borders *b, int at)
{
    int i = b->n;
    while (i > 0 && b->at[i - 1] < at) i--;
    if (i > 0 && b->at[i - 1] == at) return;
    memmove(b->at + i + 1, b->at + i, (size_t)(b->n - i) * sizeof *b->at);
    b->at[i] = at;
    b->n++;
}

static void add_axes(axis_borders *b, const dti_axis *axes, int n)
{
    for (int i = 0; i < n; i++) {
        add_border(b, axes[i].stride);
        add_border(b, axes[i].stride * axes[i].size);
    }
}

static void add_layout(axis_borders *b, const dti_layout *layout)
{
    add_axes(b, layout->members, layout->member_count);
    add_axes(b, layout->axes, layout->axis_count);
    add_axes(b, layout->partials, layout->partial_count);
}

/* Within one axis each border divides the next, so it is the product of what lies between them. */
static bool axes_divide(const axis_borders *b, const dti_axis *axes, int n)
{
    for (int i = 0; i < n; i++) {
        int above = axes[i].stride * axes[i].size;
        for (int j = 0; j < b->n; j++) {
            if (b->at[j] >= above || b->at[j] < axes[i].stride) continue;
            if (above % b->at[j]) return false;
            above = b->at[j];
        }
    }
    return true;
}

static bool layout_divides(const axis_borders *b, const dti_layout *layout)
{
    return axes_divide(b, layout->members, layout->member_count) && axes_divide(b, layout->axes, layout->axis_count)
        && axes_divide(b, layout->partials, layout->partial_count);
}

static bool axis_covers(dti_axis axis, dti_axis atom)
{
    return atom.stride >= axis.stride && atom.stride < axis.stride * axis.size;
}

static bool cuts(const dti_layout *layout, dti_axis atom)
{
    for (int i = 0; i < layout->axis_count; i++)
        if (axis_covers(layout->axes[i], atom)) return true;
    return false;
}

static dti_partial partial(const dti_layout *layout, dti_axis atom)
{
    for (int i = 0; i < layout->partial_count; i++)
        if (axis_covers(layout->partials[i], atom)) return layout->kinds[i];
    return DTI_PARTIAL_NONE;
}

static void add_atom(dti_frame *frame, dti_axis axis)
{
    frame->atoms[frame->atom_count++] = (dti_atom){
        .axis = axis,
        .source_cuts = cuts(frame->source, axis), .source = partial(frame->source, axis),
        .target_cuts = frame->regular && cuts(frame->target, axis),
        .target = frame->regular ? partial(frame->target, axis) : DTI_PARTIAL_NONE,
        .link = -1,
    };
}

static void set_atoms(dti_frame *frame, const axis_borders *b)
{
    frame->atom_count = 0;
    for (int m = 0; m < frame->source->member_count; m++) {
        dti_axis member = frame->source->members[m];
        int above = member.stride * member.size;
        for (int j = 0; j < b->n; j++) {
            if (b->at[j] >= above || b->at[j] < member.stride) continue;
            add_atom(frame, (dti_axis){ above / b->at[j], b->at[j] });
            above = b->at[j];
        }
    }
}

/* How far the last rank is from the first. */
static int extent(const dti_layout *layout)
{
    int sum = 0;
    for (int i = 0; i < layout->member_count; i++) sum += (layout->members[i].size - 1) * layout->members[i].stride;
    return sum;
}

/* Levels whose border lies inside an axis chop it too, where they divide it; divides: the borders so far do. */
static bool add_levels(axis_borders *b, bool divides, const dti_topology *topology, const dti_layout *source,
                       const dti_layout *target)
{
    if (divides && topology->level_count == 1) return true;
    axis_borders with = *b;
    for (int i = 0; i + 1 < topology->level_count; i++) {
        int ranks = topology->levels[i].ranks, begin = source->base % ranks;
        if (begin && begin + extent(source) >= ranks) return false;
        if (ranks > 1) add_border(&with, ranks);
    }
    if (!layout_divides(&with, source) || !layout_divides(&with, target)) return false;
    *b = with;
    return true;
}

/* The outermost level that tells two ranks apart which differ by one step of an atom. */
static void set_links(dti_frame *frame, const dti_topology *topology)
{
    for (int i = 0; i < frame->atom_count; i++) {
        dti_atom *atom = &frame->atoms[i];
        atom->link = 0;
        while (atom->link + 1 < topology->level_count && atom->axis.stride < topology->levels[atom->link].ranks)
            atom->link++;
    }
}

void dti_frame_init(dti_frame *frame, const dti_layout *source, const dti_layout *target,
                    const dti_topology *topology)
{
    frame->source = source;
    frame->target = target;
    frame->elements = 1;
    for (int f = 0; f < source->factor_count; f++) frame->elements *= source->factors[f].size;
    set_blocks(frame);

    axis_borders b;
    b.n = 0;
    add_layout(&b, source);
    axis_borders alone = b;
    add_layout(&b, target);
    frame->regular = dti_layout_same_ranks(source, target) && layout_divides(&b, source) && layout_divides(&b, target);
    if (!frame->regular) b = alone;
    frame->aligned = add_levels(&b, frame->regular, topology, source, frame->regular ? target : source);
    set_atoms(frame, &b);
    if (frame->aligned) set_links(frame, topology);
}

void dti_frame_dims(dti_frame *frame, const dt_spec *target)
{
    *frame = (dti_frame){ .source = target->layout, .target = target->layout, .elements = 1, .regular = true,
                          .block_count = target->shape.n };
    for (int d = 0; d < target->shape.n; d++) {
        frame->blocks[d] = target->shape.dim[d];
        frame->elements *= target->shape.dim[d];
    }
}

/* ---- cuts as carves ---------------------------------------------------------------------------------------------- */

/* The block in which a factor's cuts lie: the one its outer end reaches into. */
static int block_of(const dti_frame *frame, int64_t outer_end, int64_t *block_inner)
{
    int block = frame->block_count - 1;
    *block_inner = 1;
    while (block > 0 && outer_end > *block_inner * frame->blocks[block]) *block_inner *= frame->blocks[block--];
    return block;
}

static int axis_digits(const dti_frame *frame, dti_axis axis, uint32_t closed, dti_digit *digits)
{
    int n = 0;
    for (int i = 0; i < frame->atom_count; i++) {
        const dti_atom *atom = &frame->atoms[i];
        if (axis_covers(axis, atom->axis))
            digits[n++] = (dti_digit){ atom->axis.size, atom->axis.stride, closed >> i & 1 ? DTI_CLOSED : DTI_OPEN };
    }
    return n;
}

static void cut_factor(const dti_frame *frame, const dti_layout *layout, int f, uint32_t closed,
                       dti_room *room)
{
    const dti_layout_factor *factor = &layout->factors[f];
    int64_t inner = inner_of(layout, f), block_inner, end = inner * factor->size;
    int block = block_of(frame, end, &block_inner), n = 0;
    dti_digit digits[DTI_MAX_AXES];
    for (int i = 0; i < factor->axis_count; i++)
        n += axis_digits(frame, layout->axes[factor->axis_first + i], closed, digits + n);
    if (block_inner <= inner) dti_room_carve(room, block, factor->size, inner / block_inner, digits, n);
    else dti_room_carve(room, block, end / block_inner, 1, digits, n);
}

void dti_frame_cut(const dti_frame *frame, const dti_layout *layout, uint32_t closed, dti_room *room)
{
    for (int f = 0; f < layout->factor_count && frame->elements; f++)
        if (layout->factors[f].axis_count) cut_factor(frame, layout, f, closed, room);
}

uint32_t dti_frame_closed(const dti_frame *frame, const dti_holding *holding)
{
    uint32_t closed = 0;
    for (int d = 0; d < holding->digit_count; d++)
        if (holding->digits[d].mode == DTI_CLOSED) closed |= dti_frame_atom(frame, holding->digits[d].stride);
    for (int z = 0; z < holding->zero_count; z++) closed |= dti_frame_atom(frame, holding->zeros[z].stride);
    return closed;
}

/* ---- atoms and rooms --------------------------------------------------------------------------------------------- */

int dti_frame_size(const dti_frame *frame, uint32_t atoms)
{
    int size = 1;
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms & dti_bit(i)) size *= frame->atoms[i].axis.size;
    return size;
}

int64_t dti_frame_largest(const dti_frame *frame, const dti_holding *holding, int block)
{
    int64_t n = frame->blocks[block], pieces = 1;
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].block == block) pieces *= holding->carves[i].pieces;
    return (n + pieces - 1) / pieces;
}

void dti_frame_share(const dti_frame *frame, uint32_t atoms, dti_room *room)
{
    dti_digit digits[DTI_MAX_BLOCKS][DTI_MAX_AXES];
    int counts[DTI_MAX_BLOCKS] = { 0 };
    int64_t parts[DTI_MAX_BLOCKS];
    for (int b = 0; b < frame->block_count; b++) parts[b] = dti_frame_largest(frame, &room->holding, b);
    for (int i = 0; i < frame->atom_count; i++) {
        if (!(atoms >> i & 1)) continue;
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
        digits[best][counts[best]++] = (dti_digit){ axis.size, axis.stride, DTI_CLOSED };
    }
    for (int b = 0; b < frame->block_count; b++)
        if (counts[b]) dti_room_carve(room, b, 0, 1, digits[b], counts[b]);
}

void dti_frame_open(const dti_frame *frame, uint32_t atoms, dti_room *room)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (atoms >> i & 1) dti_room_set(room, frame->atoms[i].axis, DTI_OPEN);
}

uint32_t dti_frame_inside(const dti_frame *frame, int level)
{
    uint32_t atoms = 0;
    for (int i = 0; i < frame->atom_count; i++)
        if (frame->atoms[i].link > level) atoms |= UINT32_C(1) << i;
    return atoms;
}

uint32_t dti_frame_all(const dti_frame *frame) { return dti_frame_inside(frame, -2); }

