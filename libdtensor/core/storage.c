/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of blocks: lists of free ones, four sizes to a power of two, the last released first, as it is still in the
 * processor's cache. A block keeps its dti_storage, so that a warm cache takes nothing from anybody. Where pages come
 * from is not known here. Invariant: a free block is poisoned whole, a taken one beyond what was asked for. */
#include <string.h>

#include "core/pages.h"
#include "core/poison.h"
#include "core/sizes.h"
#include "core/storage.h"

enum { MOST_BITS = 60, CLASS_COUNT = DTI_SIZE_CLASSES(MOST_BITS) };

typedef struct block {
    dti_storage storage;           /* first: a storage is its block                                                */
    struct block *next;            /* in its list                                                                  */
    struct block *made;            /* the one made before                                                          */
    void *bytes;                   /* NULL: spare, or of the class of nothing                                      */
    size_t size;
} block;

typedef struct cache {
    block *free[CLASS_COUNT];      /* by class                                                                     */
    block *spare;                  /* without bytes                                                                */
    block *made;                   /* all                                                                          */
    int64_t now, peak;             /* bytes asked for                                                              */
    size_t held;                   /* bytes of all blocks                                                          */
    size_t limit;                  /* of held; 0: none                                                             */
} cache;

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void drop_bytes(cache *c, block *b)
{
    if (!b->bytes) return;
    dti_unpoison(b->bytes, b->size);
    dti_pages_give(b->bytes, b->size);
    c->held -= b->size;
    b->bytes = NULL;
}

static void trim(cache *c)
{
    for (int class = 1; class < CLASS_COUNT; class++)
        while (c->free[class]) {
            block *b = c->free[class];
            c->free[class] = b->next;
            drop_bytes(c, b);
            b->next = c->spare;
            c->spare = b;
        }
}

static void cache_fini(void *state)
{
    cache *c = state;
    for (block *b = c->made; b; b = b->made) {
        dti_unpoison(&b->storage, sizeof b->storage);
        drop_bytes(c, b);
    }
}

/* One without bytes. */
static block *block_new(cache *c, dt_context *ctx)
{
    block *b = c->spare;
    if (b) {
        c->spare = b->next;
        return b;
    }
    b = dti_context_take(ctx, sizeof *b);
    if (!b) return NULL;
    b->made = c->made;
    c->made = b;
    dti_poison(&b->storage, sizeof b->storage);
    return b;
}

static void *take_pages(const cache *c, size_t bytes)
{
    bool fits = c->limit == 0 || (c->held <= c->limit && bytes <= c->limit - c->held);
    return fits ? dti_pages_take(bytes) : NULL;
}

/* One of a class, free but in no list. NULL, and no error yet, where there are no pages for it. */
static block *block_of_class(cache *c, dt_context *ctx, int class)
{
    block *b = block_new(c, ctx);
    if (!b || class == 0) return b;
    b->size = dti_size_of_class(class);
    b->bytes = take_pages(c, b->size);
    if (b->bytes) {
        c->held += b->size;
        dti_poison(b->bytes, b->size);
        return b;
    }
    b->next = c->spare;
    c->spare = b;
    return NULL;
}

static block *block_take(cache *c, dt_context *ctx, int class)
{
    block *b = c->free[class];
    if (!b) return block_of_class(c, ctx, class);
    c->free[class] = b->next;
    return b;
}

/* Before memory is said to be out, what peers have taken comes back, and if that is no block of this class, all cached
 * pages go. */
static block *block_take_hard(cache *c, dt_context *ctx, int class)
{
    if (dti_failed(ctx)) return NULL;
    if (ctx->peers.comm && ctx->peers.reclaim) ctx->peers.reclaim(ctx->peers.comm);
    if (!c->free[class]) trim(c);
    return block_take(c, ctx, class);
}

/* ---- storages ---------------------------------------------------------------------------------------------------- */

static dti_storage *out_of_memory(dt_context *ctx, size_t n, const cache *c)
{
    dti_fail(ctx, DT_ERR_MEMORY, "out of memory: asked for %zu bytes, tensors of this rank hold %lld, in blocks of %zu",
             n, (long long)c->now, c->held);
    return NULL;
}

dti_storage *dti_storage_new(dt_context *ctx, size_t n)
{
    cache *c = dti_context_layer(ctx, DTI_LAYER_STORAGE, sizeof *c, cache_fini);
    if (!c) return NULL;
    if (n > (size_t)1 << MOST_BITS) return out_of_memory(ctx, n, c);
    int class = dti_size_class(n);
    block *b = block_take(c, ctx, class);
    if (!b) b = block_take_hard(c, ctx, class);
    if (!b) return out_of_memory(ctx, n, c);
    dti_unpoison(&b->storage, sizeof b->storage);
    if (n) dti_unpoison(b->bytes, n);
    b->storage = (dti_storage){ .ctx = ctx, .bytes = b->bytes, .n = n, .references = 1 };
    c->now += (int64_t)n;
    if (c->now > c->peak) c->peak = c->now;
    return &b->storage;
}

dti_storage *dti_storage_retain(dti_storage *storage)
{
    if (storage) storage->references++;
    return storage;
}

void dti_storage_release(dti_storage *storage)
{
    if (!storage || --storage->references > 0) return;
    block *b = (block *)storage;
    cache *c = storage->ctx->layers[DTI_LAYER_STORAGE].state;
    int class = dti_size_class(storage->n);
    c->now -= (int64_t)storage->n;
    b->next = c->free[class];
    c->free[class] = b;
    if (b->bytes) dti_poison(b->bytes, b->size);
    dti_poison(storage, sizeof *storage);
}

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

int64_t dti_storage_now(const dt_context *ctx)
{
    const cache *c = ctx->layers[DTI_LAYER_STORAGE].state;
    return c ? c->now : 0;
}

int64_t dti_storage_peak(const dt_context *ctx)
{
    const cache *c = ctx->layers[DTI_LAYER_STORAGE].state;
    return c ? c->peak : 0;
}

void dti_storage_trim(dt_context *ctx)
{
    cache *c = ctx->layers[DTI_LAYER_STORAGE].state;
    if (c) trim(c);
}

void dti_storage_limit(dt_context *ctx, size_t bytes)
{
    cache *c = dti_context_layer(ctx, DTI_LAYER_STORAGE, sizeof *c, cache_fini);
    if (c) c->limit = bytes;
}
