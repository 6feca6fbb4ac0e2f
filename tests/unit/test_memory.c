/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena, the pool, the table and the pen: alignment, zeroes, what is taken again, growth, equal hashes, sizes that
 * cannot be had, texts as printf writes them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/pen.h"
#include "core/poison.h"
#include "core/pool.h"
#include "core/table.h"
#include "suite.h"

#include <dtensor/types.h>

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

static void arena_gives_aligned_zeroed_bytes(void)
{
    dti_arena arena = { 0 };
    int bad = 0;
    for (size_t n = 0; n < 6000; n++) { /* across many chunks, and past the size of shared ones */
        unsigned char *bytes = dti_arena_take(&arena, n);
        if (!bytes || (uintptr_t)bytes % _Alignof(max_align_t) != 0 || !is_zero(bytes, n)) bad++;
        else memset(bytes, 0xff, n);
    }
    expect(bad == 0, "%d of 6000 takes are NULL, unaligned or not zero", bad);
    dti_arena_fini(&arena);
}

static void arena_objects_do_not_overlap(void)
{
    enum { N = 2000 };
    dti_arena arena = { 0 };
    unsigned char *taken[N];
    int bad = 0;
    for (int i = 0; i < N; i++) {
        taken[i] = dti_arena_take(&arena, (size_t)(i % 70 + 1));
        memset(taken[i], i % 251, (size_t)(i % 70 + 1));
    }
    for (int i = 0; i < N; i++)
        for (int at = 0; at <= i % 70; at++) bad += taken[i][at] != i % 251;
    expect(bad == 0, "%d bytes were overwritten", bad);
    dti_arena_fini(&arena);
}

static void arena_takes_of_nothing_differ(void)
{
    dti_arena arena = { 0 };
    void *a = dti_arena_take(&arena, 0), *b = dti_arena_take(&arena, 0);
    expect(a && b && a != b, "two takes of 0 bytes: %p, %p", a, b);
    dti_arena_fini(&arena);
}

static void arena_counts_what_it_holds(void)
{
    dti_arena arena = { 0 };
    dti_arena_take(&arena, 1);
    size_t small = arena.total;
    expect(small >= 1, "one byte taken, total %zu", small);
    dti_arena_take(&arena, 1 << 20);
    expect(arena.total >= small + (1 << 20), "total %zu after a MiB more than %zu", arena.total, small);
    size_t large = arena.total;
    dti_arena_take(&arena, 1);
    expect(arena.total == large, "a large object ended the chunk in use: %zu, was %zu", arena.total, large);
    dti_arena_fini(&arena);
    expect(arena.total == 0 && !arena.chunks, "after fini: total %zu", arena.total);
    expect(dti_arena_take(&arena, 8) != NULL, "an ended arena can begin again");
    dti_arena_fini(&arena);
    dti_arena_fini(&arena);
}

static void arena_refuses_impossible_sizes(void)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 64, SIZE_MAX / 2 + 1, SIZE_MAX / 2,
                                    SIZE_MAX / 2 - 16 };
    dti_arena arena = { 0 };
    for (int i = 0; i < DT_COUNT(sizes); i++) {
        expect(!dti_arena_take(&arena, sizes[i]), "took %zu bytes", sizes[i]);
        expect(!dti_arena_text(&arena, "", sizes[i]), "took a text of %zu bytes", sizes[i]);
    }
    expect(arena.total == 0, "total %zu", arena.total);
    dti_arena_fini(&arena);
}

static void arena_copies_texts(void)
{
    dti_arena arena = { 0 };
    const char *text = dti_arena_text(&arena, "dp=2,tp=4", 4), *empty = dti_arena_text(&arena, NULL, 0);
    expect(text && strcmp(text, "dp=2") == 0, "got %s", text ? text : "NULL");
    expect(empty && *empty == '\0', "the empty text");
    dti_arena_fini(&arena);
}

/* ---- pool -------------------------------------------------------------------------------------------------------- */

static void pool_objects_are_taken_again(void)
{
    enum { N = 300 };
    static const size_t sizes[] = { 0, 1, 64, 65, 128, 400, 5000, 70000 };
    dti_arena arena = { 0 };
    dti_pool pool = { 0 };
    for (int s = 0; s < DT_COUNT(sizes); s++) {
        for (int i = 0; i < N; i++) dti_pool_give(&pool, dti_pool_take(&pool, &arena, sizes[s]), sizes[s]);
        size_t held = arena.total;
        for (int i = 0; i < N; i++) dti_pool_give(&pool, dti_pool_take(&pool, &arena, sizes[s]), sizes[s]);
        expect(arena.total == held, "%zu bytes: the arena holds %zu, %zu before", sizes[s], arena.total, held);
    }
    dti_pool_give(&pool, NULL, 64);
    dti_arena_fini(&arena);
}

static void pool_objects_do_not_overlap(void)
{
    enum { N = 300, ROUNDS = 20000 };
    dti_arena arena = { 0 };
    dti_pool pool = { 0 };
    unsigned char *taken[N] = { NULL };
    size_t bytes[N];
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t random = dti_hash(&round, sizeof round, 3);
        int i = (int)(random % N);
        for (size_t at = 0; taken[i] && at < bytes[i]; at++) bad += taken[i][at] != i % 251;
        dti_pool_give(&pool, taken[i], bytes[i]);
        bytes[i] = (size_t)(random >> 32) % 700 + 1;
        taken[i] = dti_pool_take(&pool, &arena, bytes[i]);
        bad += (uintptr_t)taken[i] % _Alignof(max_align_t) != 0;
        memset(taken[i], i % 251, bytes[i]);
    }
    expect(bad == 0, "%d bytes were overwritten, or objects unaligned", bad);
    dti_arena_fini(&arena);
}

static void pool_objects_are_poisoned_when_free(void)
{
#ifdef DTI_POISONS
    dti_arena arena = { 0 };
    dti_pool pool = { 0 };
    char *object = dti_pool_take(&pool, &arena, 100);
    expect(!__asan_address_is_poisoned(object + 99) && __asan_address_is_poisoned(object + 104), "in use");
    dti_pool_give(&pool, object, 100);
    expect(__asan_address_is_poisoned(object) && __asan_address_is_poisoned(object + 99), "free");
    expect(dti_pool_take(&pool, &arena, 100) != object, "taken again at once");
    dti_arena_fini(&arena);
#endif
}

static void pool_refuses_impossible_sizes(void)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2, ((size_t)1 << DTI_POOL_BITS) + 1 };
    dti_arena arena = { 0 };
    dti_pool pool = { 0 };
    for (int i = 0; i < DT_COUNT(sizes); i++)
        expect(!dti_pool_take(&pool, &arena, sizes[i]), "took %zu bytes", sizes[i]);
    expect(arena.total == 0, "total %zu", arena.total);
}

/* ---- table ------------------------------------------------------------------------------------------------------ */

static bool has(const dti_table *table, uint64_t hash, const void *wanted)
{
    const void *value;
    for (size_t at = dti_table_first(table, hash); (value = dti_table_value(table, hash, &at)) != NULL;)
        if (value == wanted) return true;
    return false;
}

static int count_of(const dti_table *table, uint64_t hash)
{
    int n = 0;
    for (size_t at = dti_table_first(table, hash); dti_table_value(table, hash, &at);) n++;
    return n;
}

static void table_starts_empty(void)
{
    dti_table table = { 0 };
    for (uint64_t hash = 0; hash < 100; hash++) expect(count_of(&table, hash) == 0, "hash %d", (int)hash);
    dti_table_fini(&table);
}

static void table_finds_all_of_100000(void)
{
    enum { N = 100000 };
    static char values[N];
    dti_table table = { 0 };
    int failed = 0, lost = 0, doubled = 0;
    for (int i = 0; i < N; i++) failed += !dti_table_add(&table, dti_hash(&i, sizeof i, 1), &values[i]);
    for (int i = 0; i < N; i++) {
        uint64_t hash = dti_hash(&i, sizeof i, 1);
        lost += !has(&table, hash, &values[i]);
        doubled += count_of(&table, hash) != 1;
    }
    expect(failed == 0 && lost == 0 && doubled == 0, "%d not added, %d lost, %d not once", failed, lost, doubled);
    expect(table.count == N, "count %zu", table.count);
    expect(table.capacity > N && (table.capacity & (table.capacity - 1)) == 0, "capacity %zu", table.capacity);
    int absent = N;
    expect(count_of(&table, dti_hash(&absent, sizeof absent, 1)) == 0, "found what was never added");
    dti_table_fini(&table);
    expect(table.count == 0 && table.capacity == 0 && !table.slots, "fini leaves an empty table");
}

static void table_keeps_equal_hashes_apart(void)
{
    enum { N = 1000 };
    static char values[N], other;
    static const uint64_t hashes[] = { 0, 15, UINT64_MAX, UINT64_C(0x8000000000000000) };
    for (int h = 0; h < DT_COUNT(hashes); h++) {
        dti_table table = { 0 };
        int lost = 0;
        for (int i = 0; i < N; i++) dti_table_add(&table, hashes[h], &values[i]);
        dti_table_add(&table, hashes[h] ^ 1, &other); /* stands among them */
        for (int i = 0; i < N; i++) lost += !has(&table, hashes[h], &values[i]);
        expect(lost == 0, "hash row %d: %d lost", h, lost);
        expect(count_of(&table, hashes[h]) == N, "hash row %d: %d values", h, count_of(&table, hashes[h]));
        expect(count_of(&table, hashes[h] ^ 1) == 1 && has(&table, hashes[h] ^ 1, &other), "row %d: its neighbour", h);
        dti_table_fini(&table);
    }
}

static void hash_sees_every_byte_and_the_length(void)
{
    unsigned char bytes[24] = { 0 };
    for (size_t n = 1; n <= sizeof bytes; n++) {
        uint64_t before = dti_hash(bytes, n, 7);
        expect(dti_hash(bytes, n - 1, 7) != before, "%zu and %zu zeroes hash alike", n - 1, n);
        expect(dti_hash(bytes, n, 8) != before, "two seeds hash alike");
        for (size_t i = 0; i < n; i++) {
            bytes[i] = 1;
            expect(dti_hash(bytes, n, 7) != before, "byte %zu of %zu does not count", i, n);
            bytes[i] = 0;
        }
    }
}

/* ---- pen --------------------------------------------------------------------------------------------------------- */

/* Written twice into so much room, beside what snprintf makes of it. */
static void compare(size_t room, const char *what, const char *due, const char *got, size_t at)
{
    size_t n = strlen(due);
    expect(at == n, "%s: %zu characters, not %zu", what, at, n);
    if (room) expect(strlen(got) == (n < room ? n : room - 1) && strncmp(got, due, room - 1) == 0,
                     "%s in %zu: \"%s\", not \"%s\"", what, room, got, due);
}

static void pen_writes_as_printf_does(void)
{
    static const long long numbers[] = { 0, 7, -1, 1234567890, INT_MAX, INT_MIN };
    static const char *const words[] = { "", "S", "a longer word, with %s in it" };
    char due[256], got[256];
    for (size_t room = 0; room < 70; room++)
        for (int i = 0; i < DT_COUNT(numbers) * DT_COUNT(words); i++) {
            long long wide = numbers[i / DT_COUNT(words)], wider = wide * INT_MAX;
            const char *word = words[i % DT_COUNT(words)];
            dti_pen pen = { got, room, 0 };
            memset(got, '#', sizeof got);
            dti_put(&pen, "[%s,%d", word, (int)wide);
            dti_put(&pen, ")%c%lld|", 'x', wider);
            dti_put(&pen, "%.1f%%%s%5d%d", 0.5, word, 42, 7);
            snprintf(due, sizeof due, "[%s,%d)%c%lld|%.1f%%%s%5d%d", word, (int)wide, 'x', wider, 0.5, word, 42, 7);
            compare(room, word, due, got, pen.at);
            expect(got[room] == '#', "wrote behind its room of %zu", room);
        }
    dti_pen least = { got, sizeof got, 0 };
    dti_put(&least, "%lld", LLONG_MIN);
    expect(strcmp(got, "-9223372036854775808") == 0, "the least number is %s", got);
}

static const test_row rows[] = {
    { "arena_gives_aligned_zeroed_bytes", arena_gives_aligned_zeroed_bytes },
    { "arena_objects_do_not_overlap", arena_objects_do_not_overlap },
    { "arena_takes_of_nothing_differ", arena_takes_of_nothing_differ },
    { "arena_counts_what_it_holds", arena_counts_what_it_holds },
    { "arena_refuses_impossible_sizes", arena_refuses_impossible_sizes },
    { "arena_copies_texts", arena_copies_texts },
    { "pool_objects_are_taken_again", pool_objects_are_taken_again },
    { "pool_objects_do_not_overlap", pool_objects_do_not_overlap },
    { "pool_objects_are_poisoned_when_free", pool_objects_are_poisoned_when_free },
    { "pool_refuses_impossible_sizes", pool_refuses_impossible_sizes },
    { "table_starts_empty", table_starts_empty },
    { "table_finds_all_of_100000", table_finds_all_of_100000 },
    { "table_keeps_equal_hashes_apart", table_keeps_equal_hashes_apart },
    { "hash_sees_every_byte_and_the_length", hash_sees_every_byte_and_the_length },
    { "pen_writes_as_printf_does", pen_writes_as_printf_does },
};

const suite the_suite = { "memory", rows, DT_COUNT(rows) };
