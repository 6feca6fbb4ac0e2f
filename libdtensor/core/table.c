/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding to the table, growing it, taking out; looking up is in the header. Open addressing, one step at a time.
 * Invariant: at most half of the slots are taken, so every walk meets an empty one, and none is empty between where the
 * walk to a value begins and the value. */
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

/* Values behind the gap move into it where it lies on their walk. */
static void close_gap(dti_table *table, size_t gap)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (gap + 1) & mask; table->slots[at].value; at = (at + 1) & mask) {
        size_t first = dti_table_first(table, table->slots[at].hash);
        if (((at - first) & mask) < ((at - gap) & mask)) continue;
        table->slots[gap] = table->slots[at];
        gap = at;
    }
    table->slots[gap] = (dti_slot){ 0, NULL };
}

void dti_table_remove(dti_table *table, uint64_t hash, const void *value)
{
    if (table->capacity == 0) return;
    size_t at = dti_table_first(table, hash), mask = table->capacity - 1;
    while (table->slots[at].value && table->slots[at].value != value) at = (at + 1) & mask;
    if (!table->slots[at].value) return;
    close_gap(table, at);
    table->count--;
}

void dti_table_fini(dti_table *table)
{
    free(table->slots);
    *table = (dti_table){ 0 };
}
