/* SPDX-License-Identifier: Apache-2.0
 *
 * Storage: blocks are aligned and apart, references and bytes are counted, a warm cache asks the system for nothing,
 * what is free is poisoned, and a context that ends frees all. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* getrusage's fields */
#endif
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/poison.h"
#include "core/storage.h"
#include "suite.h"

#ifdef DTI_POISONS
static bool poisoned(const void *bytes) { return __asan_address_is_poisoned(bytes); }
enum { POISONS = 1 };
#else
static bool poisoned(const void *bytes) { return bytes == NULL; }
enum { POISONS = 0 };
#endif

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void blocks_of_every_size(void)
{
    dt_context *ctx = dt_context_dry(1);
    int bad = 0;
    for (size_t n = 0; n < 9000; n = n < 600 ? n + 1 : n + 61) {
        dti_storage *s = dti_storage_new(ctx, n);
        if (!s || s->n != n || s->references != 1 || s->ctx != ctx || (n == 0) != (s->bytes == NULL)) bad++;
        else if ((uintptr_t)s->bytes % DTI_ALIGN != 0) bad++;
        else if (n) memset(s->bytes, 0xff, n);
        if (n % 2) dti_storage_release(s);
    }
    expect(bad == 0, "%d blocks are NULL, unaligned or say something wrong", bad);
    for (int power = 9; power < 26; power++)
        for (int more = -1; more < 2; more++) {
            size_t n = (size_t)((1 << power) + more);
            dti_storage *s = dti_storage_new(ctx, n);
            expect(s && (uintptr_t)s->bytes % DTI_ALIGN == 0, "%zu bytes", n);
            memset(s->bytes, 1, n < 5000 ? n : 5000);
            ((char *)s->bytes)[n - 1] = 2;
            dti_storage_release(s);
        }
    dt_context_destroy(&ctx);
}

static void blocks_do_not_overlap(void)
{
    enum { N = 300, ROUNDS = 4000 };
    static dti_storage *held[N];
    dt_context *ctx = dt_context_dry(1);
    unsigned seed = 1;
    int bad = 0;
    memset(held, 0, sizeof held);
    for (int round = 0; round < ROUNDS; round++) {
        int i = (int)below(&seed, N);
        if (held[i]) {
            const unsigned char *bytes = held[i]->bytes;
            for (size_t k = 0; k < held[i]->n; k++) bad += bytes[k] != (unsigned char)i;
            dti_storage_release(held[i]);
        }
        held[i] = dti_storage_new(ctx, below(&seed, 1u << below(&seed, 14)));
        if (held[i]->n) memset(held[i]->bytes, i, held[i]->n);
    }
    expect(bad == 0, "%d bytes were overwritten", bad);
    dt_context_destroy(&ctx);                                          /* with what is still held                  */
    expect(!ctx, "the context is gone");
}

static void references_are_counted(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_storage *s = dti_storage_new(ctx, 100);
    void *bytes = s->bytes;
    expect(dti_storage_retain(s) == s && s->references == 2, "retained: %d", s->references);
    dti_storage_release(s);
    expect(s->references == 1 && dti_storage_now(ctx) == 100, "one left: %d", s->references);
    dti_storage *other = dti_storage_new(ctx, 100);
    expect(other->bytes != bytes, "a block was given away that is in use");
    dti_storage_release(s);
    expect(dti_storage_now(ctx) == 100, "released: %lld bytes", (long long)dti_storage_now(ctx));
    dti_storage *again = dti_storage_new(ctx, 100);
    expect(again->bytes == bytes, "the block released last comes first");
    dti_storage_release(NULL);
    expect(!dti_storage_retain(NULL), "nothing is retained");
    dt_context_destroy(&ctx);
}

static void accounts(const dt_context *ctx, int64_t now, int64_t peak)
{
    expect(dti_storage_now(ctx) == now, "now %lld, want %lld", (long long)dti_storage_now(ctx), (long long)now);
    expect(dti_storage_peak(ctx) == peak, "peak %lld, want %lld", (long long)dti_storage_peak(ctx), (long long)peak);
}

static void bytes_are_accounted_as_asked_for(void)
{
    dt_context *ctx = dt_context_dry(1);
    accounts(ctx, 0, 0);
    dti_storage_trim(ctx);
    dti_storage *a = dti_storage_new(ctx, 65), *b = dti_storage_new(ctx, 1000001), *c = dti_storage_new(ctx, 0);
    accounts(ctx, 1000066, 1000066);
    dti_storage_release(b);
    accounts(ctx, 65, 1000066);
    b = dti_storage_new(ctx, 7);
    accounts(ctx, 72, 1000066);
    dti_storage_release(a);
    dti_storage_release(b);
    dti_storage_release(c);
    dti_storage_trim(ctx);
    accounts(ctx, 0, 1000066);
    dt_context_destroy(&ctx);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static const size_t warm_sizes[] = { 1, 64, 700, 4096, 5000, 70000, 300000, 1 << 20, 3000000, 16 << 20 };

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void take_and_touch(dt_context *ctx)
{
    dti_storage *taken[DT_COUNT(warm_sizes)];
    for (int i = 0; i < DT_COUNT(warm_sizes); i++) {
        taken[i] = dti_storage_new(ctx, warm_sizes[i]);
        char *bytes = taken[i]->bytes;
        for (size_t at = 0; at < warm_sizes[i]; at += 1024) bytes[at] = 1;
    }
    for (int i = 0; i < DT_COUNT(warm_sizes); i++) dti_storage_release(taken[i]);
}

static void a_warm_cache_asks_the_system_for_nothing(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < 3; i++) take_and_touch(ctx);
    size_t arena = ctx->arena.total;
    long before = faults();
    for (int i = 0; i < 20; i++) take_and_touch(ctx);
    long during = faults() - before;
    expect(during == 0, "%ld page faults", during);
    expect(ctx->arena.total == arena, "the arena grew by %zu", ctx->arena.total - arena);
    dti_storage_trim(ctx);
    before = faults();
    take_and_touch(ctx);
    expect(faults() > before, "pages that were given back were still there");
    expect(ctx->arena.total == arena, "blocks without bytes are used again");
    dt_context_destroy(&ctx);
}

/* Pages of this process, touched or not; 0: the system does not say. */
static long mapped_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages;
}

static void trim_gives_all_of_it_back(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(warm_sizes); i++) {
        long before = 0;
        for (int round = 0; round < 50; round++) {
            dti_storage_release(dti_storage_new(ctx, warm_sizes[i]));
            dti_storage_trim(ctx);
            if (round == 9) before = mapped_pages();
        }
        long more = mapped_pages() - before;
        expect(POISONS || more < 1000, "%zu bytes, taken and given back 40 times: %ld more pages", warm_sizes[i], more);
    }
    dt_context_destroy(&ctx);
}

static void trim_leaves_what_is_in_use(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_storage *kept[DT_COUNT(warm_sizes)];
    for (int i = 0; i < DT_COUNT(warm_sizes); i++) {
        dti_storage *gone = dti_storage_new(ctx, warm_sizes[i]);
        kept[i] = dti_storage_new(ctx, warm_sizes[i]);
        memset(kept[i]->bytes, i + 1, warm_sizes[i]);
        dti_storage_release(gone);
    }
    dti_storage_trim(ctx);
    dti_storage_trim(ctx);
    int bad = 0;
    for (int i = 0; i < DT_COUNT(warm_sizes); i++)
        for (size_t at = 0; at < warm_sizes[i]; at++) bad += ((char *)kept[i]->bytes)[at] != i + 1;
    expect(bad == 0, "%d bytes changed", bad);
    dt_context_destroy(&ctx);
}

/* ---- errors and the end ------------------------------------------------------------------------------------------ */

static void memory_that_cannot_be_had(void)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, ((size_t)1 << 60) + 1, (size_t)1 << 60,
                                    (size_t)1 << 56 };
    dt_context *ctx = dt_context_dry(1);
    dti_storage *held = dti_storage_new(ctx, 1000);
    dti_storage_release(dti_storage_new(ctx, 5000));
    size_t arena = ctx->arena.total;
    for (int i = 0; i < 1000; i++) {
        dti_storage_new(ctx, (size_t)1 << 60);
        dt_context_clear(ctx);
    }
    expect(ctx->arena.total == arena, "failing 1000 times costs %zu bytes", ctx->arena.total - arena);
    for (int i = 0; i < DT_COUNT(sizes); i++) {
        char asked[32];
        snprintf(asked, sizeof asked, "%zu", sizes[i]);
        expect(!dti_storage_new(ctx, sizes[i]), "got %zu bytes", sizes[i]);
        const char *error = dt_context_error(ctx);
        expect(dt_context_status(ctx) == DT_ERR_MEMORY && strstr(error, asked) && strstr(error, "1000"), "%s", error);
        expect(dti_storage_now(ctx) == 1000 && dti_storage_peak(ctx) == 5000 + 1000, "accounts changed");
        dt_context_clear(ctx);
        dti_storage_release(dti_storage_new(ctx, 5000));
        expect(dt_context_status(ctx) == DT_OK, "the next one is had");
    }
    dti_storage_release(held);
    dt_context_destroy(&ctx);
}

/* ---- memory is short --------------------------------------------------------------------------------------------- */

enum { LIMIT = 1 << 20, PART = 256 << 10, OTHER = 640 << 10 }; /* a part and another one fit, two parts do not      */

static void cached_pages_go_when_memory_is_short(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_storage_limit(ctx, LIMIT);
    dti_storage *a = dti_storage_new(ctx, PART), *b = dti_storage_new(ctx, PART);
    expect(a && b, "%s", dt_context_error(ctx));
    memset(b->bytes, 7, PART);
    dti_storage_release(a);
    dti_storage *other = dti_storage_new(ctx, OTHER - 100);
    expect(other && dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    expect(((char *)b->bytes)[PART - 1] == 7, "what is in use stays");
    expect(!dti_storage_new(ctx, PART), "more than there is");
    const char *error = dt_context_error(ctx);
    expect(dt_context_status(ctx) == DT_ERR_MEMORY && strstr(error, "asked for 262144 bytes"), "%s", error);
    dt_context_clear(ctx);
    dti_storage_limit(ctx, 0);
    expect(dti_storage_new(ctx, PART) != NULL, "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

typedef struct shown { dti_storage *block; int asked; } shown;

static void give_back(void *comm)
{
    shown *s = comm;
    s->asked++;
    dti_storage_release(s->block);
    s->block = NULL;
}

static void fail_nothing(void *comm) { (void)comm; }

static void peers_are_asked_when_memory_is_short(void)
{
    dt_context *ctx = dt_context_dry(1);
    shown s = { 0 };
    ctx->peers = (dti_peers){ .comm = &s, .failed = fail_nothing, .reclaim = give_back };
    dti_storage_limit(ctx, 2 * PART);
    s.block = dti_storage_new(ctx, PART);
    dti_storage *held = dti_storage_new(ctx, PART);
    void *bytes = s.block->bytes;
    expect(s.asked == 0, "asked while there is memory");
    dti_storage *again = dti_storage_new(ctx, PART);
    expect(again && again->bytes == bytes && s.asked == 1, "asked %d times: %s", s.asked, dt_context_error(ctx));
    s.block = again;
    dti_storage_limit(ctx, LIMIT);
    dti_storage *other = dti_storage_new(ctx, OTHER - 100);
    expect(other && s.asked == 2, "a block of another size, asked %d times: %s", s.asked, dt_context_error(ctx));
    expect(!dti_storage_new(ctx, PART) && s.asked == 3 && dt_context_status(ctx) == DT_ERR_MEMORY, "asked %d times: %s",
           s.asked, dt_context_error(ctx));
    dti_storage_release(held);
    dti_storage_release(other);
    ctx->peers = (dti_peers){ 0 };
    dt_context_destroy(&ctx);
}

static void free_bytes_are_poisoned(void)
{
    if (!POISONS) return;
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(warm_sizes); i++) {
        dti_storage *s = dti_storage_new(ctx, warm_sizes[i]);
        char *bytes = s->bytes;
        size_t n = warm_sizes[i];
        expect(!poisoned(bytes) && !poisoned(bytes + n - 1), "%zu: in use", n);
        if (n % 64) expect(poisoned(bytes + n), "%zu: the byte behind", n);
        dti_storage_release(s);
        expect(poisoned(bytes) && poisoned(bytes + n - 1) && poisoned(bytes + n / 2), "%zu: free", n);
        expect(poisoned(s), "%zu: a stale storage", n);
        dti_storage *again = dti_storage_new(ctx, n - 1);
        if (n > 1 && again->bytes == bytes)
            expect(!poisoned(bytes + n - 2) && poisoned(bytes + n - 1), "%zu: again", n);
        dti_storage_release(again);
    }
    dt_context_destroy(&ctx);
}

static void release_both(void *state)
{
    dti_storage **held = state;
    dti_storage_release(held[0]);
    dti_storage_release(held[1]);
}

static void layers_above_may_release_when_they_end(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_storage **held = dti_context_layer(ctx, DTI_LAYER_PLAN, 2 * sizeof *held, release_both);
    held[0] = dti_storage_new(ctx, 10);
    held[1] = dti_storage_new(ctx, 3000000);
    dti_storage_new(ctx, 5000000);                                     /* nobody's                                 */
    dti_storage_new(ctx, 50);
    dt_context_destroy(&ctx);
    expect(!ctx, "ended");
}

static void contexts_are_apart(void)
{
    dt_context *a = dt_context_dry(1), *b = dt_context_dry(1);
    dti_storage *s = dti_storage_new(a, 500), *t = dti_storage_new(b, 600);
    void *bytes = s->bytes;
    dti_storage_release(s);
    expect(dti_storage_now(a) == 0 && dti_storage_now(b) == 600, "accounts are mixed");
    s = dti_storage_new(b, 500);
    expect(s->bytes != bytes, "a block of another context");
    dti_storage_release(s);
    dti_storage_release(t);
    dt_context_destroy(&a);
    dt_context_destroy(&b);
}

static const test_row rows[] = {
    { "blocks_of_every_size", blocks_of_every_size },
    { "blocks_do_not_overlap", blocks_do_not_overlap },
    { "references_are_counted", references_are_counted },
    { "bytes_are_accounted_as_asked_for", bytes_are_accounted_as_asked_for },
    { "a_warm_cache_asks_the_system_for_nothing", a_warm_cache_asks_the_system_for_nothing },
    { "trim_gives_all_of_it_back", trim_gives_all_of_it_back },
    { "trim_leaves_what_is_in_use", trim_leaves_what_is_in_use },
    { "memory_that_cannot_be_had", memory_that_cannot_be_had },
    { "cached_pages_go_when_memory_is_short", cached_pages_go_when_memory_is_short },
    { "peers_are_asked_when_memory_is_short", peers_are_asked_when_memory_is_short },
    { "free_bytes_are_poisoned", free_bytes_are_poisoned },
    { "layers_above_may_release_when_they_end", layers_above_may_release_when_they_end },
    { "contexts_are_apart", contexts_are_apart },
};

const suite the_suite = { "storage", rows, DT_COUNT(rows) };
