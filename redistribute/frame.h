/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame in which two layouts can be compared: blocks, the finest dims whose borders both factor lists respect, and
 * atoms, the finest axes whose products all axes of both are. Where the two rank lists differ, or their axes have no
 * common refinement (2x3 against 3x2), the frame is irregular: its atoms are the source's alone. */
#ifndef DTI_FRAME_H
#define DTI_FRAME_H

#include "mesh/topology.h"
#include "placements/spec.h"
#include "redistribute/holding.h"

typedef struct dti_atom {
    dti_axis axis;
    bool source_cuts, target_cuts; /* it shards a factor there                                                     */
    dti_partial source, target;    /* or is partial                                                                */
    int link;                      /* link class between ranks that differ only here; -1: levels do not align      */
} dti_atom;

typedef struct dti_frame {
    const dti_layout *source, *target;
    int64_t elements;
    bool regular;
    bool aligned;                  /* every level of the topology has its border between atoms                     */
    int block_count, atom_count;
    int64_t blocks[DTI_MAX_BLOCKS]; /* sizes, outermost first                                                      */
    dti_atom atoms[DTI_MAX_AXES];  /* largest stride first                                                         */
} dti_frame;

static inline uint32_t dti_bit(int i) { return UINT32_C(1) << i; }

static inline int dti_bits(uint32_t bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

void dti_frame_init(dti_frame *frame, const dti_layout *source, const dti_layout *target,
                    const dti_topology *topology);

/* The frame of index maps: the dims of a spec are its blocks, and it has no atoms. */
void dti_frame_dims(dti_frame *frame, const dt_spec *target);
/* Carve by the cuts of the layout whose axes the atoms refine; digits on atoms not in the mask are open. */
void dti_frame_cut(const dti_frame *frame, const dti_layout *layout, uint32_t closed, dti_room *room);
/* All atoms; those along which ranks stay inside a place of a level (-1: the outermost); the product of some atoms'
 * sizes. */
uint32_t dti_frame_all(const dti_frame *frame);
uint32_t dti_frame_inside(const dti_frame *frame, int level);
int dti_frame_size(const dti_frame *frame, uint32_t atoms);
/* The atom of this stride; 0: none. */
static inline uint32_t dti_frame_atom(const dti_frame *frame, int stride)
{
    for (int i = 0; i < frame->atom_count; i++)
        if (frame->atoms[i].axis.stride == stride) return dti_bit(i);
    return 0;
}
/* Open the digits on some atoms. */
void dti_frame_open(const dti_frame *frame, uint32_t atoms, dti_room *room);
/* Share what a room leaves out over atoms that cut nothing in it: each along the block it divides most evenly. */
void dti_frame_share(const dti_frame *frame, uint32_t atoms, dti_room *room);
/* Elements of the largest part along a block. */
int64_t dti_frame_largest(const dti_frame *frame, const dti_holding *holding, int block);
/* Which atoms a holding closes. */
uint32_t dti_frame_closed(const dti_frame *frame, const dti_holding *holding);

#endif
