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

void dti_frame_init(dti_frame *frame, const dti_layout *source, const dti_layout *target,
                    const dti_topology *topology);

/* The frame of index maps: the dims of a spec are its blocks, and it has no atoms. */
void dti_frame_dims(dti_frame *frame, const dt_spec *target);
/* Carve by the cuts of the layout whose axes the atoms refine; digits on atoms not in the mask are open. */
void dti_frame_cut(const dti_frame *frame, const dti_layout *layout, uint32_t closed, dti_room *room);
/* Which atoms a holding closes. */
uint32_t dti_frame_closed(const dti_frame *frame, const dti_holding *holding);

#endif
