/* SPDX-License-Identifier: Apache-2.0
 *
 * Room for a kernel while it runs, from where tensors have theirs: so its pages stay, and it is accounted. */
#ifndef DTI_OPS_CPU_ROOM_H
#define DTI_OPS_CPU_ROOM_H

#include "core/storage.h"

/* So many bytes, not initialised, aligned as a tensor. NULL and the error when memory ran out. */
static inline void *dti_room_take(dt_context *ctx, size_t bytes)
{
    dti_storage *storage = dti_storage_new(ctx, bytes + DTI_ALIGN);
    if (!storage) return NULL;
    *(dti_storage **)storage->bytes = storage;
    return (char *)storage->bytes + DTI_ALIGN;
}

/* NULL: nothing. */
static inline void dti_room_give(void *room)
{
    if (room) dti_storage_release(*(dti_storage **)(void *)((char *)room - DTI_ALIGN));
}

#endif
