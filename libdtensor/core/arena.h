/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that lives as long as its context: many small objects, freed all at once. */
#ifndef DTI_ARENA_H
#define DTI_ARENA_H

#include <stddef.h>

typedef struct dti_arena { struct dti_arena_chunk *chunks; size_t chunk_bytes; size_t total; } dti_arena;

/* Zeroed bytes, aligned for any type; NULL when memory ran out. */
void *dti_arena_take(dti_arena *arena, size_t bytes);
/* A copy of n characters, ended by 0; NULL when memory ran out. */
char *dti_arena_text(dti_arena *arena, const char *text, size_t n);
void dti_arena_fini(dti_arena *arena);

#endif
