/* SPDX-License-Identifier: Apache-2.0
 *
 * Small objects that come and go, as handles and nodes do: cut from an arena, kept in lists by size once they are given
 * back, so that what has been made before takes nothing from the heap. Free ones are poisoned in address-sanitizer
 * builds, and there each rests for a while before it is taken again: a stale handle is caught. A pool that is all zero
 * is empty and ready; it ends with its arena. */
#ifndef DTI_POOL_H
#define DTI_POOL_H

#include "core/arena.h"
#include "core/poison.h"
#include "core/sizes.h"

enum { DTI_POOL_BITS = 30, DTI_POOL_MOST = 1 << DTI_POOL_BITS };

typedef struct dti_pool_free { struct dti_pool_free *next; } dti_pool_free;
typedef struct dti_pool_list { dti_pool_free *first, *last; size_t count; } dti_pool_list; /* last, count: of those
                                                                                              that rest            */
typedef struct dti_pool { dti_pool_list lists[DTI_SIZE_CLASSES(DTI_POOL_BITS)]; } dti_pool; /* by class of size    */

/* What is not the rule: sizes that cannot be had, no free object, poison; bytes are at least 1. */
void *dti_pool_take_new(dti_pool *pool, dti_arena *arena, size_t bytes);
void dti_pool_give_resting(dti_pool *pool, void *object, size_t bytes);

/* Bytes that are not initialised, aligned for any type; NULL when memory ran out. */
static inline void *dti_pool_take(dti_pool *pool, dti_arena *arena, size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (DTI_IS_POISONED || bytes > DTI_POOL_MOST) return dti_pool_take_new(pool, arena, bytes);
    dti_pool_list *list = &pool->lists[dti_size_class(bytes)];
    dti_pool_free *object = list->first;
    if (!object) return dti_pool_take_new(pool, arena, bytes);
    list->first = object->next;
    return object;
}

/* Take back an object of so many bytes. NULL: nothing. */
static inline void dti_pool_give(dti_pool *pool, void *object, size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (!object) return;
    if (DTI_IS_POISONED) {
        dti_pool_give_resting(pool, object, bytes);
        return;
    }
    dti_pool_list *list = &pool->lists[dti_size_class(bytes)];
    dti_pool_free *freed = object;
    freed->next = list->first;
    list->first = freed;
}

#endif
