/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding to the table and growing it; looking up is in the header. Open addressing, one step at a time, nothing is ever
 * removed. Invariant: at most half of the slots are taken, so every walk meets an empty one. */
#include "core/table.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

static void put(dti_table *table, uint64_t hash, void *value)
{
    size_t at = dti_table_first(table, hash);
    while (table->slots[at].value) at = (at + 1) & (table->capacity - 1);
    table->slots[at] = (dti_slot){ hash, value };
}

static bool grow(dti_table *table)
{
    if (table->capacity > SIZE_MAX / 4 / sizeof(dti_slot)) return false;
    dti_table wider = { table->count, table->capacity ? 2 * table->capacity : FIRST_CAPACITY, NULL };
    wider.slots = calloc(wider.capacity, sizeof *wider.slots);
    if (!wider.slots) return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i].value) put(&wider, table->slots[i].hash, table->slots[i].value);
    free(table->slots);
    *table = wider;
    return true;
}

bool dti_table_add(dti_table *table, uint64_t hash, void *value)
{
    if (2 * (table->count + 1) > table->capacity && !grow(table)) return false;
    put(table, hash, value);
    table->count++;
    return true;
}

void dti_table_fini(dti_table *table)
{
    free(table->slots);
    *table = (dti_table){ 0 };
}
