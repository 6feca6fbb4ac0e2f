/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions: views of a holding that are limited to the elements whose holders before and after differ, or not, along
 * certain axes. All views of one region mean the same elements. */
#include "redistribute/search.h"

static void set_region(const dti_search *s, const dti_region *r, uint32_t closed, dti_room *room)
{
    int number = 0;
    dti_frame_open(&s->frame, ~(closed | r->axes), room);
    for (int i = 0; i < s->frame.atom_count; i++) {
        if (!(r->axes & dti_bit(i))) continue;
        dti_digit_mode mode = number < r->first ? DTI_CLOSED : number == r->first ? DTI_OTHER : DTI_OPEN;
        dti_room_set(room, s->frame.atoms[i].axis, mode);
        number++;
    }
}

static int64_t pieces_along(const dti_holding *holding, int block)
{
    int64_t pieces = 1;
    for (int i = 0; i < holding->carve_count; i++)
        if (holding->carves[i].block == block) pieces *= holding->carves[i].pieces;
    return pieces;
}

/* Where the cuts of both ends leave most: the same block for every view, so that all take the same part. */
static int largest_block(const dti_search *s)
{
    int best = 0;
    int64_t most = -1;
    for (int b = 0; b < s->frame.block_count; b++) {
        int64_t left = s->frame.blocks[b] / pieces_along(s->from, b) / pieces_along(s->to, b);
        if (left <= most) continue;
        most = left;
        best = b;
    }
    return best;
}

void dti_region_view(const dti_search *s, const dti_region *r, const dti_holding *end, const dti_holding *other,
                     uint32_t also_closed, dti_room *view)
{
    dti_room modes;
    dti_room_copy(view, end);
    dti_room_copy(&modes, other);
    set_region(s, r, also_closed, &modes);
    dti_room_carve_all(view, &modes.holding);
    if (r->hi - r->lo < r->pieces) dti_room_part(view, largest_block(s), r->lo, r->hi, r->pieces);
}
