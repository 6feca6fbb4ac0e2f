/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut function against its definition in 128-bit integers; that it commutes with every split and flatten of a mesh;
 * interval sets against bitmaps. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "placements/cut.h"
#include "placements/set.h"
#include "suite.h"
#include "written.h"

__extension__ typedef __int128 wide;

/* ---- the cut ---------------------------------------------------------------------------------------------------- */

typedef struct cut_row { int64_t n, k; int64_t sizes[8]; } cut_row;

static const cut_row cuts[] = {
    { 13, 4, { 4, 3, 3, 3 } }, { 14, 4, { 4, 3, 4, 3 } }, { 12, 4, { 3, 3, 3, 3 } }, { 9, 4, { 3, 2, 2, 2 } },
    { 2, 4, { 1, 0, 1, 0 } }, { 3, 4, { 1, 1, 1, 0 } }, { 1, 4, { 1 } }, { 0, 4, { 0 } }, { 5, 4, { 2, 1, 1, 1 } },
    { 7, 2, { 4, 3 } }, { 10, 6, { 2, 2, 1, 2, 2, 1 } }, { 4, 1, { 4 } }, { 8, 3, { 3, 3, 2 } },
    { 2, 6, { 1, 0, 0, 1 } },
};

static void test_rows(void)
{
    for (int r = 0; r < DT_COUNT(cuts); r++)
        for (int64_t i = 0; i < cuts[r].k; i++) {
            int64_t size = dti_cut(cuts[r].n, cuts[r].k, i + 1) - dti_cut(cuts[r].n, cuts[r].k, i);
            expect(size == cuts[r].sizes[i], "%lld over %lld: piece %lld has %lld", (long long)cuts[r].n,
                   (long long)cuts[r].k, (long long)i, (long long)size);
        }
}

/* ceil(i n / k), by comparing: the smallest c with c k >= i n. */
static bool is_cut(int64_t n, int64_t k, int64_t i, int64_t c)
{
    return (wide)c * k >= (wide)i * n && ((wide)c - 1) * k < (wide)i * n;
}

/* All that holds of one cut: its place, sizes that differ by one at most, and the way back. */
static void try_cut(int64_t n, int64_t k, int64_t i)
{
    int64_t lo = dti_cut(n, k, i), hi = dti_cut(n, k, i + 1);
    expect(is_cut(n, k, i, lo) && is_cut(n, k, i + 1, hi), "cut %lld of %lld over %lld: %lld, %lld", (long long)i,
           (long long)n, (long long)k, (long long)lo, (long long)hi);
    expect(0 <= lo && lo <= hi && hi <= n, "%lld over %lld: inside", (long long)n, (long long)k);
    expect(hi - lo == n / k || hi - lo == n / k + 1, "%lld over %lld: even but for one", (long long)n, (long long)k);
    if (lo == hi) return;
    expect(dti_cut_piece(n, k, lo) == i && dti_cut_piece(n, k, hi - 1) == i, "%lld over %lld: piece %lld found again",
           (long long)n, (long long)k, (long long)i);
}

static void test_small(void)
{
    for (int64_t n = 0; n <= 130; n++)
        for (int64_t k = 1; k <= 70; k++) {
            expect(dti_cut(n, k, 0) == 0 && dti_cut(n, k, k) == n, "%lld over %lld: ends", (long long)n, (long long)k);
            for (int64_t i = 0; i < k; i++) try_cut(n, k, i);
            for (int64_t j = 0; j < n; j++) {
                int64_t i = dti_cut_piece(n, k, j);
                expect(dti_cut(n, k, i) <= j && j < dti_cut(n, k, i + 1), "%lld is in piece %lld", (long long)j,
                       (long long)i);
            }
        }
}

static int64_t random_up_to(unsigned *seed, int64_t max)
{
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) bits = bits << 16 | below(seed, 1 << 16);
    return (int64_t)((bits >> 1) >> below(seed, 60)) % max + 1;
}

static void test_huge(void)
{
    unsigned seed = 1;
    for (int round = 0; round < 200000; round++) {
        int64_t n = random_up_to(&seed, INT64_MAX - 1), k = random_up_to(&seed, INT_MAX);
        try_cut(n, k, random_up_to(&seed, k) - 1);
        int64_t j = random_up_to(&seed, n) - 1, i = dti_cut_piece(n, k, j);
        expect(dti_cut(n, k, i) <= j && j < dti_cut(n, k, i + 1), "%lld of %lld over %lld", (long long)j, (long long)n,
               (long long)k);
    }
    static const int64_t sizes[] = {
        INT64_MAX, INT64_MAX - 1, 1ll << 62, (1ll << 62) + 1, (1ll << 62) - 1, INT_MAX, 1,
    };
    static const int64_t pieces[] = { 1, 2, 3, 7, 16384, INT_MAX - 1, INT_MAX };
    for (int s = 0; s < DT_COUNT(sizes); s++)
        for (int p = 0; p < DT_COUNT(pieces); p++) {
            expect(dti_cut(sizes[s], pieces[p], 0) == 0, "begins at 0");
            expect(dti_cut(sizes[s], pieces[p], pieces[p]) == sizes[s], "ends at n");
            try_cut(sizes[s], pieces[p], 0);
            try_cut(sizes[s], pieces[p], pieces[p] / 2);
            try_cut(sizes[s], pieces[p], pieces[p] - 1);
        }
}

/* Cutting by a b refines cutting by a: the cuts by a are every b-th of those by a b. */
static void test_refines(void)
{
    unsigned seed = 3;
    for (int64_t n = 0; n <= 64; n++)
        for (int64_t a = 1; a <= 12; a++)
            for (int64_t b = 1; b <= 12; b++)
                for (int64_t i = 0; i <= a; i++)
                    expect(dti_cut(n, a, i) == dti_cut(n, a * b, i * b), "%lld over %lld x %lld at %lld", (long long)n,
                           (long long)a, (long long)b, (long long)i);
    for (int round = 0; round < 20000; round++) {
        int64_t n = random_up_to(&seed, INT64_MAX - 1), a = random_up_to(&seed, 46340), b = random_up_to(&seed, 46340);
        int64_t i = random_up_to(&seed, a + 1) - 1;
        expect(dti_cut(n, a, i) == dti_cut(n, a * b, i * b), "%lld over %lld x %lld at %lld", (long long)n,
               (long long)a, (long long)b, (long long)i);
    }
}

/* ---- cuts commute with views ------------------------------------------------------------------------------------ */

enum { RANKS = 12, PARTS = 4, ALL_N = 64 };

typedef struct parts { int n, size[PARTS]; } parts;

static const parts products[] = { /* every way to write 2 .. 12 as an ordered product */
    { 1, { 2 } }, { 1, { 3 } }, { 1, { 4 } }, { 2, { 2, 2 } }, { 1, { 5 } }, { 1, { 6 } }, { 2, { 2, 3 } },
    { 2, { 3, 2 } }, { 1, { 7 } }, { 1, { 8 } }, { 2, { 2, 4 } }, { 2, { 4, 2 } }, { 3, { 2, 2, 2 } }, { 1, { 9 } },
    { 2, { 3, 3 } }, { 1, { 10 } }, { 2, { 2, 5 } }, { 2, { 5, 2 } }, { 1, { 11 } }, { 1, { 12 } }, { 2, { 2, 6 } },
    { 2, { 6, 2 } }, { 2, { 3, 4 } }, { 2, { 4, 3 } }, { 3, { 2, 2, 3 } }, { 3, { 2, 3, 2 } }, { 3, { 3, 2, 2 } },
};

static int ranks_of(const parts *p)
{
    int ranks = 1;
    for (int i = 0; i < p->n; i++) ranks *= p->size[i];
    return ranks;
}

static void parts_text(const parts *p, char *text, size_t bytes)
{
    size_t at = 0;
    for (int i = 0; i < p->n; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%sp%d=%d", i ? "," : "", i, p->size[i]);
}

/* "p2:S(0),p0:S(0)" of an order of parts; with placed false the dims alone. */
static void order_text(const int *order, int n, bool placed, char *text, size_t bytes)
{
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%sp%d%s", i ? "," : "", order[i], placed ? ":S(0)" : "");
}

typedef struct pieces { int64_t lo[RANKS], hi[RANKS]; } pieces;

/* What each rank of the run holds of a dim of n. */
static pieces pieces_of(dt_mesh *mesh, int64_t n, const char *placements)
{
    pieces p;
    memset(&p, 0, sizeof p);
    const dt_spec *spec = dt_spec_create(mesh, DT_F32, DT_SHAPE(n), placements);
    expect(spec != NULL, "%s: %s", placements, dt_context_error(dt_mesh_context(mesh)));
    for (int i = 0; i < dt_mesh_size(mesh, NULL); i++) {
        dt_box box;
        if (dt_spec_boxes(spec, i, &box, 1) == 0) continue;
        p.lo[dt_mesh_rank(mesh, i)] = box.lo[0];
        p.hi[dt_mesh_rank(mesh, i)] = box.hi[0];
    }
    return p;
}

/* The same by definition: the piece's number counts the coordinates of the parts in this order. */
static pieces pieces_by_order(const parts *p, const int *order, int n_order, int64_t n)
{
    pieces result;
    memset(&result, 0, sizeof result);
    for (int rank = 0; rank < ranks_of(p); rank++) {
        int coord[PARTS] = { 0 }, rest = rank;
        for (int i = p->n - 1; i >= 0; i--) {
            coord[i] = rest % p->size[i];
            rest /= p->size[i];
        }
        int64_t piece = 0, count = 1;
        for (int i = 0; i < n_order; i++) {
            piece = piece * p->size[order[i]] + coord[order[i]];
            count *= p->size[order[i]];
        }
        int64_t lo = (piece * n + count - 1) / count, hi = ((piece + 1) * n + count - 1) / count;
        if (lo == hi) continue;
        result.lo[rank] = lo;
        result.hi[rank] = hi;
    }
    return result;
}

static void try_order(dt_mesh *mesh, const parts *p, const int *order, int n_order)
{
    char dims[64], placed[96];
    order_text(order, n_order, false, dims, sizeof dims);
    order_text(order, n_order, true, placed, sizeof placed);
    dt_mesh *flat = dt_mesh_flatten(mesh, dims, "flat");
    for (int64_t n = 1; n <= ALL_N; n++) {
        pieces want = pieces_by_order(p, order, n_order, n), split = pieces_of(mesh, n, placed);
        pieces joined = pieces_of(flat, n, "flat:S(0)");
        expect(memcmp(&split, &want, sizeof want) == 0, "%lld at %s of %s", (long long)n, placed, dt_mesh_text(mesh));
        expect(memcmp(&joined, &want, sizeof want) == 0, "%lld on %s, flattened from %s of %s", (long long)n,
               dt_mesh_text(flat), dims, dt_mesh_text(mesh));
        const dt_spec *a = dt_spec_create(mesh, DT_F32, DT_SHAPE(n), placed);
        expect(dt_spec_same(a, dt_spec_create(flat, DT_F32, DT_SHAPE(n), "flat:S(0)")), "%s", dt_spec_text(a));
    }
}

/* Every ordered choice of parts, one after the other. */
static void try_orders(dt_mesh *mesh, const parts *p, int *order, int n)
{
    if (n) try_order(mesh, p, order, n);
    for (int i = 0; i < p->n; i++) {
        bool taken = false;
        for (int j = 0; j < n; j++) taken |= order[j] == i;
        if (taken) continue;
        order[n] = i;
        try_orders(mesh, p, order, n + 1);
    }
}

static void try_product(const parts *p)
{
    char text[64];
    int order[PARTS] = { 0 };
    parts_text(p, text, sizeof text);
    dt_context *ctx = dt_context_dry(ranks_of(p));
    dt_mesh *whole = dt_mesh_create(ctx, "x"), *split = dt_mesh_split(whole, "x", text);
    expect(split == dt_mesh_create(ctx, text), "%s: %s", text, dt_context_error(ctx));
    try_orders(split, p, order, 0);
    for (int i = 0; i < p->n; i++) order[i] = i;
    for (int64_t n = 1; n <= ALL_N; n++) {
        pieces a = pieces_of(whole, n, "x:S(0)"), b = pieces_by_order(p, order, p->n, n);
        expect(memcmp(&a, &b, sizeof a) == 0, "%lld on x and on %s", (long long)n, text);
    }
    dt_context_destroy(&ctx);
}

static void test_views(void)
{
    for (int i = 0; i < DT_COUNT(products); i++) try_product(&products[i]);
}

/* ---- sets ------------------------------------------------------------------------------------------------------- */

enum { BITS = 400 };

typedef struct bitmap { bool at[BITS]; } bitmap;

static void bitmap_draw(bitmap *map, unsigned *seed)
{
    unsigned run = 1 + below(seed, 30);
    bool on = below(seed, 2);
    for (int i = 0; i < BITS; i++) {
        if (below(seed, run) == 0) on = !on;
        map->at[i] = on && i < BITS - 8;
    }
    if (below(seed, 10) == 0) memset(map, 0, sizeof *map);
}

static int run_end(const bitmap *map, int i)
{
    while (i < BITS && map->at[i]) i++;
    return i;
}

/* In order, each run in one or several parts, with empty intervals between. */
static void set_of_bitmap(dti_set *set, const bitmap *map, unsigned *seed)
{
    dti_set_clear(set);
    for (int i = 0; i < BITS; i++) {
        dti_set_append(set, i, i);
        if (!map->at[i]) continue;
        int end = run_end(map, i), middle = i + (int)below(seed, (unsigned)(end - i + 1));
        dti_set_append(set, i, middle);
        dti_set_append(set, middle, end);
        i = end;
    }
}

static void expect_set(const dti_set *set, const bitmap *map, const char *what)
{
    const dti_interval *at = dti_set_at(set);
    int n = 0, count = 0;
    for (int i = 0; i < BITS; i++) {
        if (!map->at[i]) continue;
        int end = run_end(map, i);
        if (!expect(n < set->n, "%s: %d intervals are too few", what, set->n)) return;
        expect(at[n].lo == i && at[n].hi == end, "%s: interval %d is [%lld, %lld), expected [%d, %d)", what, n,
               (long long)at[n].lo, (long long)at[n].hi, i, end);
        count += end - i;
        n++;
        i = end;
    }
    expect(n == set->n, "%s: %d intervals, expected %d", what, set->n, n);
    expect(dti_set_count(set) == count, "%s: %lld indices, expected %d", what, (long long)dti_set_count(set), count);
    expect(!set->lost, "%s: nothing is lost", what);
}

static void try_scatter(const bitmap *map, unsigned *seed)
{
    dti_interval parts_of[BITS];
    int n = 0;
    for (int i = 0; i < BITS; i++) {
        if (!map->at[i]) continue;
        int end = i + 1 + (int)below(seed, (unsigned)(run_end(map, i) - i));
        parts_of[n++] = (dti_interval){ i, end };
        i = end - 1;
    }
    dti_set set;
    dti_set_init(&set);
    for (; n > 0; n--) {
        int at = (int)below(seed, (unsigned)n);
        dti_set_scatter(&set, parts_of[at].lo, parts_of[at].hi);
        dti_set_scatter(&set, 7, 7);
        parts_of[at] = parts_of[n - 1];
    }
    dti_set_sort(&set);
    expect_set(&set, map, "scatter");
    dti_set_sort(&set);
    expect_set(&set, map, "sorted again");
    dti_set_fini(&set);
}

static void try_pair(dti_set *a, dti_set *b, dti_set *both, unsigned *seed)
{
    bitmap x, y, z;
    int shared = 0;
    bitmap_draw(&x, seed);
    bitmap_draw(&y, seed);
    set_of_bitmap(a, &x, seed);
    set_of_bitmap(b, &y, seed);
    expect_set(a, &x, "append");
    expect_set(b, &y, "append");
    for (int i = 0; i < BITS; i++) shared += z.at[i] = x.at[i] && y.at[i];
    dti_set_intersect(a, b, both);
    expect_set(both, &z, "intersect");
    expect(dti_set_shared(a, b) == shared && dti_set_shared(b, a) == shared, "shared");
    dti_set_intersect(a, a, both);
    expect_set(both, &x, "intersect with itself");
    try_scatter(&x, seed);
}

static void test_sets(void)
{
    unsigned seed = 5;
    dti_set a, b, both;
    dti_set_init(&a);
    dti_set_init(&b);
    dti_set_init(&both);
    for (int round = 0; round < 3000; round++) try_pair(&a, &b, &both, &seed);
    dti_set_fini(&a);
    dti_set_fini(&b);
    dti_set_fini(&both);
}

/* Every set of [0, n), n up to 6, repeated over every range. */
static void test_repeat(void)
{
    dti_set inner, out;
    dti_set_init(&inner);
    dti_set_init(&out);
    for (int n = 1; n <= 6; n++)
        for (int bits = 0; bits < 1 << n; bits++) {
            dti_set_clear(&inner);
            for (int i = 0; i < n; i++)
                if (bits >> i & 1) dti_set_append(&inner, i, i + 1);
            for (int first = 0; first <= 5; first++)
                for (int last = first; last <= 9; last++) {
                    bitmap map;
                    memset(&map, 0, sizeof map);
                    for (int o = first; o < last; o++)
                        for (int i = 0; i < n; i++) map.at[o * n + i] = bits >> i & 1;
                    dti_set_repeat(&inner, n, first, last, &out);
                    expect_set(&out, &map, "repeat");
                }
        }
    dti_set_clear(&inner);
    dti_set_append(&inner, 0, 1ll << 40);
    dti_set_repeat(&inner, 1ll << 40, 3, 1 << 20, &out);
    expect(out.n == 1 && dti_set_count(&out) == ((1ll << 20) - 3) << 40, "whole sets are one interval");
    dti_set_clear(&inner);
    dti_set_repeat(&inner, 1ll << 40, 0, 1ll << 40, &out);
    expect(out.n == 0, "nothing, however often, is nothing");
    dti_set_fini(&inner);
    dti_set_fini(&out);
}

/* Few parts in every order, touching or not. */
static void test_sort(void)
{
    for (int gaps = 0; gaps < 4; gaps++)
        for (int order = 0; order < 6; order++) {
            int lo[3] = { 0, 2 + (gaps & 1), 5 + (gaps & 1) + (gaps >> 1) }, first = order / 2, second;
            second = (first + 1 + order % 2) % 3;
            int turn[3] = { first, second, 3 - first - second };
            bitmap map;
            dti_set set;
            memset(&map, 0, sizeof map);
            dti_set_init(&set);
            for (int i = 0; i < 3; i++) {
                dti_set_scatter(&set, lo[turn[i]], lo[turn[i]] + 2 + (turn[i] == 1));
                memset(map.at + lo[i], true, i == 1 ? 3 : 2);
            }
            dti_set_sort(&set);
            expect_set(&set, &map, "sort");
            dti_set_fini(&set);
        }
}

static void test_lost(void)
{
    dti_set a, b, both;
    dti_set_init(&a);
    dti_set_init(&b);
    dti_set_init(&both);
    dti_set_append(&a, 0, 2);
    dti_set_append(&b, 1, 3);
    a.lost = true;
    dti_set_intersect(&a, &b, &both);
    expect(both.lost, "what is made of a lost set is lost");
    dti_set_intersect(&b, &b, &both);
    expect(both.lost, "and stays so");
    dti_set_fini(&both);
    expect(!both.lost, "until it ends");
    dti_set_repeat(&a, 4, 0, 2, &both);
    expect(both.lost, "repeat");
    dti_set_fini(&a);
    dti_set_fini(&b);
    dti_set_fini(&both);
}

static const test_row rows[] = {
    { "rows", test_rows },
    { "small", test_small },
    { "huge", test_huge },
    { "refines", test_refines },
    { "views", test_views },
    { "sets", test_sets },
    { "repeat", test_repeat },
    { "sort", test_sort },
    { "lost", test_lost },
};

const suite the_suite = { "cut", rows, DT_COUNT(rows) };
