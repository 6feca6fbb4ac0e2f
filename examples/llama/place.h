/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the model lies: the one file that differs between one rank, DP, FSDP, HSDP, TP, SP and their mixes. */
#ifndef LLAMA_PLACE_H
#define LLAMA_PLACE_H

#include <dtensor/dtensor.h>

/* What is asked for, as words joined by "+": tp or sp along mesh dim tp; fsdp, zero1 or zero2 along dp; hsdp, which is
 * fsdp along dp and a copy along replicate. Whatever is said, batches are split along dp and replicate. */
typedef struct placement {
    bool tp, sp, hsdp;
    int zero;                      /* 0: parameters are whole along dp; 1 to 3: as in dt_fully_shard_params           */
} placement;

/* false: the context has failed with what was expected. Local. */
bool placement_read(dt_context *ctx, const char *style, placement *p);
/* The mesh's dims, for dt_mesh_create. */
const char *placement_mesh(const placement *p);
/* How a batch lies on it. */
const char *placement_batch(const placement *p);
/* Place a model that has no values yet. compute: DT_DTYPE_DEFAULT is as stored. */
dt_status placement_apply(const placement *p, dt_module *model, dt_dtype compute);

#endif
