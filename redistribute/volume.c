/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank is to hold after a step and holds before it: sets along blocks, and counts of their products. Over many
 * ranks a block's sets repeat, for they depend only on the digits that carve the block: a memo keeps one set per value
 * of these. */
#include "redistribute/plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets in the target's numbers -------------------------------------------------------------------------------- */

static void clip(const dti_set *set, int64_t lo, int64_t hi, dti_set *out)
{
    dti_set window;
    dti_set_init(&window);
    dti_set_append(&window, lo, hi);
    dti_set_intersect(set, &window, out);
}

/* n / by, rounded up. */
static int64_t up(int64_t n, int64_t by) { return n > 0 ? (n - 1) / by + 1 : -(-n / by); }

/* The target indices whose source index, through the map, is in a set. */
static void unmap(const dti_map *map, const dti_set *set, dti_set *out)
{
    const dti_interval *at = dti_set_at(set);
    int64_t stride = map->stride ? map->stride : 1;
    dti_set moved;
    dti_set_init(&moved);
    for (int i = 0; i < set->n; i++) {
        const dti_interval *v = map->reversed ? &at[set->n - 1 - i] : &at[i];
        int64_t lo = map->reversed ? map->shift - v->hi + 1 : v->lo - map->shift, hi = lo + v->hi - v->lo;
        dti_set_append(&moved, up(lo, stride), up(hi, stride));
    }
    clip(&moved, map->lo, map->hi, out);
    dti_set_fini(&moved);
}

void dti_step_from(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set)
{
    if (!step->maps) {
        dti_holding_set(step->from, block, frame->blocks[block], rank, set);
        return;
    }
    dti_set held;
    dti_set_init(&held);
    dti_holding_set(step->from, block, step->maps[block].source_size, rank, &held);
    unmap(&step->maps[block], &held, set);
    dti_set_fini(&held);
}

void dti_step_to(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set)
{
    if (!step->maps) {
        dti_holding_set(step->to, block, frame->blocks[block], rank, set);
        return;
    }
    dti_set held;
    dti_set_init(&held);
    dti_holding_set(step->to, block, frame->blocks[block], rank, &held);
    clip(&held, step->maps[block].lo, step->maps[block].hi, set);
    dti_set_fini(&held);
}

/* Is each rank's part of `to` seen to be of its `from` along a block? */
static bool stays_within(const dti_step *step, int block)
{
    return !step->maps && dti_holding_within(step->to, step->from, block);
}

/* ---- memo -------------------------------------------------------------------------------------------------------- */

enum { MAX_MEMO_SETS = 1 << 16, FEW_RANKS = 3 };

typedef struct memo_side {         /* one holding's sets along one block                                           */
    int axis_count, size;          /* size: how many values its axes' digits take together                         */
    int first;                     /* the number of the set of digits 0                                            */
    dti_axis axes[DTI_MAX_AXES];
} memo_side;

struct dti_memo {                  /* of one piece with its arrays                                                 */
    const dti_frame *frame;
    dti_step step;
    uint32_t within;               /* bit b: stays_within                                                          */
    dti_memo *before;              /* of a step that leads to `from`: its sets are these; NULL: own ones           */
    int set_count;
    dti_set *sets;
    int64_t *counts;               /* -1: not made yet                                                             */
    memo_side sides[];             /* of `to`, block by block, then of `from`                                      */
};

static bool among(const dti_axis *axes, int n, int stride)
{
    for (int i = 0; i < n; i++)
        if (axes[i].stride == stride) return true;
    return false;
}

/* The axes on whose digits a holding's set along a block depends. */
static void find_axes(const dti_holding *holding, int block, memo_side *side)
{
    side->axis_count = 0;
    side->size = 1;
    for (int c = 0; c < holding->carve_count; c++)
        for (int d = holding->carves[c].first; d < holding->carves[c].first + holding->carves[c].count; d++) {
            const dti_digit *digit = &holding->digits[d];
            if (holding->carves[c].block != block || digit->mode == DTI_OPEN) continue;
            if (among(side->axes, side->axis_count, digit->stride) || side->size > MAX_MEMO_SETS) continue;
            side->axes[side->axis_count++] = (dti_axis){ digit->size, digit->stride };
            side->size *= digit->size;
        }
}

/* false: there are too many sets to keep. */
static bool find_sides(const dti_frame *frame, const dti_step *step, int n, memo_side *sides, int *sets)
{
    *sets = 0;
    for (int i = 0; i < n; i++) {
        bool to = i < frame->block_count;
        find_axes(to ? step->to : step->from, to ? i : i - frame->block_count, &sides[i]);
        sides[i].first = *sets;
        *sets += sides[i].size;
        if (sides[i].size > MAX_MEMO_SETS) return false;
    }
    return true;
}

static dti_memo *memo_new(const dti_frame *frame, const dti_step *step, dti_memo *before)
{
    memo_side sides[2 * DTI_MAX_BLOCKS];
    int n = before ? frame->block_count : 2 * frame->block_count, count;
    if (!find_sides(frame, step, n, sides, &count)) return NULL;
    size_t align = _Alignof(max_align_t), named = (size_t)n * sizeof *sides;
    size_t own = (sizeof(dti_memo) + named + align - 1) / align * align;
    dti_memo *memo = malloc(own + (size_t)count * (sizeof *memo->sets + sizeof *memo->counts));
    if (!memo) return NULL;
    memo->frame = frame;
    memo->step = *step;
    memo->within = 0;
    for (int b = 0; b < frame->block_count; b++) memo->within |= stays_within(step, b) ? dti_bit(b) : 0;
    memo->before = before;
    memo->set_count = count;
    memo->sets = (dti_set *)(void *)((char *)memo + own);
    memo->counts = (int64_t *)(void *)(memo->sets + count);
    memcpy(memo->sides, sides, named);
    for (int i = 0; i < count; i++) memo->counts[i] = -1;
    return memo;
}

static void memo_free(dti_memo *memo)
{
    for (int i = 0; memo && i < memo->set_count; i++)
        if (memo->counts[i] >= 0) dti_set_fini(&memo->sets[i]);
    free(memo);
}

/* The memo of one of the steps before that leads to where a step begins. */
static dti_memo *memo_before(dti_memo *const *memos, int n, const dti_step *step)
{
    for (int i = 0; i < n && !step->maps; i++)
        if (memos[i] && memos[i]->step.to == step->from && !memos[i]->step.maps) return memos[i];
    return NULL;
}

dti_memo **dti_memos_new(const dti_frame *frame, const dti_step *steps, int n, int ranks)
{
    if (ranks < FEW_RANKS) return NULL;
    dti_memo **memos = malloc(((size_t)n + 1) * sizeof *memos);
    for (int i = 0; memos && i < n; i++) 
        memos[i] = memo_new(frame, &steps[i], memo_before(memos, i, &steps[i]));
    return memos;
}

void dti_memos_free(dti_memo **memos, int n)
{
    for (int i = 0; memos && i < n; i++) memo_free(memos[i]);
    free(memos);
}

static const dti_set *side_set(dti_memo *memo, bool to, int block, int rank, int64_t *count)
{
    if (!to && memo->before) return side_set(memo->before, true, block, rank, count);
    const memo_side *side = &memo->sides[to ? block : memo->frame->block_count + block];
    const dti_holding *holding = to ? memo->step.to : memo->step.from;
    int i = side->first + dti_axes_coord(side->axes, side->axis_count, rank - holding->base);
    if (memo->counts[i] < 0) {
        dti_set_init(&memo->sets[i]);
        (to ? dti_step_to : dti_step_from)(memo->frame, &memo->step, block, rank, &memo->sets[i]);
        memo->counts[i] = dti_set_count(&memo->sets[i]);
    }
    *count = memo->counts[i];
    return &memo->sets[i];
}

/* ---- volumes ----------------------------------------------------------------------------------------------------- */

static dti_volume remembered(dti_memo *memo, int taker, int holder)
{
    dti_volume v = { 1, dti_holding_has(memo->step.from, holder) };
    for (int b = 0; b < memo->frame->block_count && v.to; b++) {
        int64_t count;
        const dti_set *to = side_set(memo, true, b, taker, &count);
        v.to *= count;
        if (taker == holder && (memo->within >> b & 1)) v.kept *= count;
        else if (v.kept) v.kept *= dti_set_shared(to, side_set(memo, false, b, holder, &count));
    }
    return v;
}

static dti_volume counted(const dti_frame *frame, const dti_step *step, int taker, int holder)
{
    dti_volume v = { 1, dti_holding_has(step->from, holder) };
    dti_set to, from;
    dti_set_init(&to);
    dti_set_init(&from);
    for (int b = 0; b < frame->block_count && v.to; b++) {
        dti_step_to(frame, step, b, taker, &to);
        int64_t count = dti_set_count(&to);
        v.to *= count;
        if (taker == holder && stays_within(step, b)) {
            v.kept *= count;
            continue;
        }
        if (!v.kept) continue;
        dti_step_from(frame, step, b, holder, &from);
        v.kept *= dti_set_shared(&to, &from);
    }
    dti_set_fini(&to);
    dti_set_fini(&from);
    return v;
}

dti_volume dti_pair_volume(const dti_frame *frame, const dti_step *step, dti_memo *memo, int taker, int holder)
{
    if (!dti_holding_has(step->to, taker)) return (dti_volume){ 0, 0 };
    dti_volume v = memo ? remembered(memo, taker, holder) : counted(frame, step, taker, holder);
    return v.to ? v : (dti_volume){ 0, 0 };
}

int64_t dti_early_volume(const dti_frame *frame, const dti_step *step, int taker, int holder)
{
    if (!step->early || !dti_holding_has(step->early, taker) || !dti_holding_has(step->to, taker)) return 0;
    int64_t count = dti_holding_has(step->from, holder);
    dti_set to, from, early, both;
    dti_set_init(&to), dti_set_init(&from), dti_set_init(&early), dti_set_init(&both);
    for (int b = 0; b < frame->block_count && count; b++) {
        dti_step_to(frame, step, b, taker, &to);
        dti_step_from(frame, step, b, holder, &from);
        dti_holding_set(step->early, b, frame->blocks[b], taker, &early);
        dti_set_intersect(&to, &from, &both);
        count *= dti_set_shared(&both, &early);
    }
    dti_set_fini(&to), dti_set_fini(&from), dti_set_fini(&early), dti_set_fini(&both);
    return count;
}

/* What a rank has either in `from` or since earlier it keeps, once. */
dti_volume dti_step_volume(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    dti_volume v = dti_pair_volume(frame, step, memo, rank, rank);
    if (!step->early) return v;
    dti_step earlier = { .from = step->early, .to = step->to };
    v.kept += dti_pair_volume(frame, &earlier, NULL, rank, rank).kept - dti_early_volume(frame, step, rank, rank);
    return v;
}

int64_t dti_step_held(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank)
{
    if (!dti_holding_has(step->from, rank)) return 0;
    int64_t held = 1, count;
    dti_set from;
    dti_set_init(&from);
    for (int b = 0; b < frame->block_count; b++) {
        if (memo) side_set(memo, false, b, rank, &count);
        else dti_step_from(frame, step, b, rank, &from), count = dti_set_count(&from);
        held *= count;
    }
    dti_set_fini(&from);
    return held;
}
