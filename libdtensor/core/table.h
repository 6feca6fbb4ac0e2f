/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table of pointers by 64-bit hash. It knows no keys: who looks up walks the values of one hash and compares.
 *
 *     for (size_t at = dti_table_first(&t, hash); (value = dti_table_value(&t, hash, &at)) != NULL;)
 *         if (same(value, key)) return value;
 */
#ifndef DTI_TABLE_H
#define DTI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct dti_slot { uint64_t hash; void *value; } dti_slot;
typedef struct dti_table { size_t count, capacity; dti_slot *slots; } dti_table; /* capacity: 0 or a power of two */

static inline size_t dti_table_first(const dti_table *table, uint64_t hash)
{
    return table->capacity ? (size_t)hash & (table->capacity - 1) : 0;
}

/* The next value of this hash from *at on, NULL at the end; moves *at past it. */
static inline void *dti_table_value(const dti_table *table, uint64_t hash, size_t *at)
{
    if (table->capacity == 0) return NULL;
    while (table->slots[*at].value) {
        const dti_slot *slot = &table->slots[*at];
        *at = (*at + 1) & (table->capacity - 1);
        if (slot->hash == hash) return slot->value;
    }
    return NULL;
}

/* Add a value that is not NULL. false: memory ran out, nothing changed. */
bool dti_table_add(dti_table *table, uint64_t hash, void *value);
/* Take one out again; one that is not there: nothing. */
void dti_table_remove(dti_table *table, uint64_t hash, const void *value);
void dti_table_fini(dti_table *table);

static inline uint64_t dti_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hash of n bytes; the same on every rank, but not across byte orders. */
static inline uint64_t dti_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t hash = dti_hash_mix(seed, n), word;
    for (; n >= 8; at += 8, n -= 8) {
        memcpy(&word, at, 8);
        hash = dti_hash_mix(hash, word);
    }
    if (n) {
        word = 0;
        for (size_t i = 0; i < n; i++) word |= (uint64_t)at[i] << (8 * i);
        hash = dti_hash_mix(hash, word);
    }
    return hash;
}

#endif
