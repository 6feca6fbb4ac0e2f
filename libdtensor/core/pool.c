/* SPDX-License-Identifier: Apache-2.0
 *
 * New objects, and lists where they are poisoned. Elsewhere the one given back last is taken first, as it is still in
 * the processor's cache; here the one given back first, and only from a list that is long. Invariant: a free object is
 * poisoned whole, one in use beyond what was asked for. */
#include "core/pool.h"

enum { RESTING = 64 };                 /* so many of a size stay free                                              */

static dti_pool_free *take_first(dti_pool_list *list)
{
    dti_pool_free *object = list->first;
    dti_unpoison(object, sizeof *object);
    list->first = object->next;
    list->count--;
    return object;
}

void *dti_pool_take_new(dti_pool *pool, dti_arena *arena, size_t bytes)
{
    if (bytes > DTI_POOL_MOST) return NULL;
    int class = dti_size_class(bytes);
    dti_pool_list *list = &pool->lists[class];
    size_t size = dti_size_of_class(class);
    void *object = DTI_IS_POISONED && list->count > RESTING ? take_first(list) : dti_arena_take(arena, size);
    if (!object) return NULL;
    dti_poison(object, size);
    dti_unpoison(object, bytes);
    return object;
}

void dti_pool_give_resting(dti_pool *pool, void *object, size_t bytes)
{
    int class = dti_size_class(bytes);
    dti_pool_list *list = &pool->lists[class];
    dti_unpoison(object, sizeof(dti_pool_free));
    ((dti_pool_free *)object)->next = NULL;
    if (list->first) {
        dti_unpoison(list->last, sizeof *list->last);
        list->last->next = object;
        dti_poison(list->last, sizeof *list->last);
    } else list->first = object;
    list->last = object;
    list->count++;
    dti_poison(object, dti_size_of_class(class));
}
