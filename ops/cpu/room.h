/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that a kernel needs while it runs: from where tensors have theirs, so that a call that is made again takes
 * nothing from the heap and no fresh page. The storage it is part of stands before it. */
#ifndef DTI_OPS_CPU_ROOM_H
#define DTI_OPS_CPU_ROOM_H

#include "core/storage.h"

/* Not initialised. NULL and DT_ERR_MEMORY. */
static inline void *dti_room_take(dt_context *ctx, size_t bytes)
{
    dti_storage *storage = bytes > SIZE_MAX - DTI_ALIGN ? NULL : dti_storage_new(ctx, DTI_ALIGN + bytes);
    if (!storage) return NULL;
    *(dti_storage **)storage->bytes = storage;
    return (char *)storage->bytes + DTI_ALIGN;
}

/* room NULL: nothing. */
static inline void dti_room_give(void *room)
{
    if (room) dti_storage_release(*(dti_storage **)(void *)((char *)room - DTI_ALIGN));
}

#endif
