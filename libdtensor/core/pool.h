/* SPDX-License-Identifier: Apache-2.0
 *
 * Small objects that come and go, as handles and nodes do: cut from an arena, kept in lists by size once they are given
 * back, so that what has been made before takes nothing from the heap. Free ones are poisoned in address-sanitizer
 * builds, and there each rests for a while before it is taken again: a stale handle is caught. A pool that is all zero
 * is empty and ready; it ends with its arena. */
#ifndef DTI_POOL_H
#define DTI_POOL_H

#include "core/arena.h"
#include "core/sizes.h"

enum { DTI_POOL_BITS = 30, DTI_POOL_CLASSES = DTI_SIZE_CLASSES(DTI_POOL_BITS) };

typedef struct dti_pool_list { struct dti_pool_free *first, *last; size_t count; } dti_pool_list;
typedef struct dti_pool { dti_pool_list lists[DTI_POOL_CLASSES]; } dti_pool; /* by class of size                    */

/* Bytes that are not initialised, aligned for any type; NULL when memory ran out. */
void *dti_pool_take(dti_pool *pool, dti_arena *arena, size_t bytes);
/* Take back an object of so many bytes. NULL: nothing. */
void dti_pool_give(dti_pool *pool, void *object, size_t bytes);

#endif
