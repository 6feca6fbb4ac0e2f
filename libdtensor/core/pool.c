/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of free objects. The one given back last is taken first, as it is still in the processor's cache; where they
 * are poisoned, the one given back first, and only from a list that is long. Invariant: a free object is poisoned
 * whole, one in use beyond what was asked for. */
#include "core/pool.h"

#include "core/poison.h"

#ifdef DTI_POISONS
enum { RESTING = 64 };                 /* so many of a size stay free                                              */
#else
enum { RESTING = 0 };
#endif

typedef struct dti_pool_free { struct dti_pool_free *next; } dti_pool_free;

static void *take_first(dti_pool_list *list)
{
    dti_pool_free *object = list->first;
    dti_unpoison(object, sizeof *object);
    list->first = object->next;
    list->count--;
    return object;
}

static void put_first(dti_pool_list *list, dti_pool_free *object)
{
    object->next = list->first;
    if (!list->first) list->last = object;
    list->first = object;
}

static void put_last(dti_pool_list *list, dti_pool_free *object)
{
    object->next = NULL;
    if (!list->first) list->first = object;
    else {
        dti_unpoison(list->last, sizeof *object);
        list->last->next = object;
        dti_poison(list->last, sizeof *object);
    }
    list->last = object;
}

void *dti_pool_take(dti_pool *pool, dti_arena *arena, size_t bytes)
{
    if (bytes > (size_t)1 << DTI_POOL_BITS) return NULL;
    if (bytes == 0) bytes = 1;
    int class = dti_size_class(bytes);
    dti_pool_list *list = &pool->lists[class];
    size_t size = dti_size_of_class(class);
    void *object = list->count > RESTING ? take_first(list) : dti_arena_take(arena, size);
    if (!object) return NULL;
    dti_poison(object, size);
    dti_unpoison(object, bytes);
    return object;
}

void dti_pool_give(dti_pool *pool, void *object, size_t bytes)
{
    if (!object) return;
    int class = dti_size_class(bytes ? bytes : 1);
    dti_pool_list *list = &pool->lists[class];
    size_t size = dti_size_of_class(class);
    dti_unpoison(object, sizeof(dti_pool_free));
    (RESTING ? put_last : put_first)(list, object);
    list->count++;
    dti_poison(object, size);
}
