/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects are cut from chunks, one behind the other, and never given back alone. An arena that is all zero is empty and
 * ready. Invariant: the bytes of a chunk from `used` on have never been handed out, so they are still zero. */
#include "core/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4 << 10, ALIGNMENT = _Alignof(max_align_t) };

struct dti_arena_chunk {
    struct dti_arena_chunk *next;
    size_t used, bytes;
    max_align_t data[];
};

/* No object may be larger than this: differences of pointers into it must fit. */
static const size_t max_bytes = (size_t)PTRDIFF_MAX - sizeof(struct dti_arena_chunk) - ALIGNMENT;

static struct dti_arena_chunk *chunk_create(dti_arena *arena, size_t bytes)
{
    struct dti_arena_chunk *chunk = calloc(1, sizeof *chunk + bytes);
    if (!chunk) return NULL;
    chunk->bytes = bytes;
    arena->total += sizeof *chunk + bytes;
    return chunk;
}

static void *chunk_take(struct dti_arena_chunk *chunk, size_t bytes)
{
    void *taken = (char *)chunk->data + chunk->used;
    chunk->used += bytes;
    return taken;
}

/* A chunk of its own, placed behind the newest one so that the rest of that one is still used. */
static void *take_alone(dti_arena *arena, size_t bytes)
{
    struct dti_arena_chunk *chunk = chunk_create(arena, bytes);
    if (!chunk) return NULL;
    struct dti_arena_chunk **at = arena->chunks ? &arena->chunks->next : &arena->chunks;
    chunk->next = *at;
    *at = chunk;
    return chunk_take(chunk, bytes);
}

void *dti_arena_take(dti_arena *arena, size_t bytes)
{
    if (bytes > max_bytes) return NULL;
    if (bytes == 0) bytes = 1;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->chunks && bytes <= arena->chunks->bytes - arena->chunks->used) return chunk_take(arena->chunks, bytes);
    if (arena->chunk_bytes == 0) arena->chunk_bytes = CHUNK_BYTES;
    if (bytes > arena->chunk_bytes / 4) return take_alone(arena, bytes);
    struct dti_arena_chunk *chunk = chunk_create(arena, arena->chunk_bytes);
    if (!chunk) return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk_take(chunk, bytes);
}

char *dti_arena_text(dti_arena *arena, const char *text, size_t n)
{
    if (n > max_bytes) return NULL; /* n + 1 could be 0 */
    char *copy = dti_arena_take(arena, n + 1);
    if (copy && n) memcpy(copy, text, n);
    return copy;
}

void dti_arena_fini(dti_arena *arena)
{
    while (arena->chunks) {
        struct dti_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->total = 0;
}
