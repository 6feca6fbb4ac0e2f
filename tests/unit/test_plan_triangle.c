/* SPDX-License-Identifier: Apache-2.0
 *
 * The triangle: no detour is cheaper. For all placements a, b, c of a tensor, a -> c moves no more than a -> b and
 * b -> c together: with R and S by the busiest receiver and in all, on every shape; with P in all, on even shapes,
 * unless a and c are P along a mesh dim where b is not, for then a -> c keeps apart what the detour adds up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/places.h"
#include "suite.h"

enum { MAX_REPORTS = 8 };

typedef struct price { int64_t bytes, total; } price;

typedef struct table {
    const char *mesh, *sizes;
    place_list places;
    price *prices;                 /* [source][target]                                                             */
    int reports;
    int64_t triples, broken, busier; /* broken: of the promise; busier: only for the busiest, with P               */
} table;

static price *price_of(const table *t, int source, int target) { return &t->prices[source * t->places.count + target]; }

static const dt_spec *spec_of(const table *t, dt_mesh *mesh, int i)
{
    char text[128];
    const dt_spec *spec = dt_spec_parse(mesh, places_spec(&t->places, i, t->sizes, text, sizeof text));
    expect(spec != NULL, "%s: %s", text, dt_context_error(dt_mesh_context(mesh)));
    return spec;
}

static bool fill(table *t, const char *partial)
{
    dt_context *ctx = dt_context_dry(places_ranks(t->mesh));
    dt_mesh *mesh = dt_mesh_create(ctx, t->mesh);
    places_fill(&t->places, mesh, places_dims(t->sizes), partial);
    t->prices = calloc((size_t)t->places.count * (size_t)t->places.count, sizeof *t->prices);
    for (int i = 0; i < t->places.count * t->places.count && t->prices; i++) {
        int source = i / t->places.count, target = i % t->places.count;
        const dt_plan *plan = dt_plan_create(spec_of(t, mesh, source), spec_of(t, mesh, target), DT_PLAN_BYTES);
        dt_plan_cost cost = dt_plan_price(plan);
        expect(plan != NULL, "%s", dt_context_error(ctx));
        *price_of(t, source, target) = (price){ cost.bytes, cost.total };
    }
    dt_context_destroy(&ctx);
    return expect(t->prices != NULL, "memory");
}

/* Is a mesh dim P in placement i? */
static bool is_partial(const table *t, int i, const char *dim)
{
    const char *at = strstr(t->places.text[i], dim);
    return at && at[2] == 'P';
}

static bool has_partial(const table *t, int i) { return strstr(t->places.text[i], ":P") != NULL; }

/* Are a and c P along a mesh dim where b is not? */
static bool adds_up(const table *t, int a, int b, int c)
{
    static const char *const dims[] = { "x:", "y:", "z:" };
    bool adds = false;
    for (int d = 0; d < DT_COUNT(dims); d++)
        adds |= is_partial(t, a, dims[d]) && !is_partial(t, b, dims[d]) && is_partial(t, c, dims[d]);
    return adds;
}

static void report(table *t, int a, int b, int c)
{
    price straight = *price_of(t, a, c), first = *price_of(t, a, b), second = *price_of(t, b, c);
    if (t->reports++ < MAX_REPORTS)
        expect(false, "%s f32[%s]: %s -> %s moves %lld, %lld in all; over %s: %lld + %lld, %lld + %lld in all", t->mesh,
               t->sizes, t->places.text[a], t->places.text[c], (long long)straight.bytes, (long long)straight.total,
               t->places.text[b], (long long)first.bytes, (long long)second.bytes, (long long)first.total,
               (long long)second.total);
}

static void compare(table *t, int a, int b, int c)
{
    price straight = *price_of(t, a, c), first = *price_of(t, a, b), second = *price_of(t, b, c);
    bool partial = has_partial(t, a) || has_partial(t, b) || has_partial(t, c);
    bool busier = straight.bytes > first.bytes + second.bytes, more = straight.total > first.total + second.total;
    if (adds_up(t, a, b, c)) return;
    t->triples++;
    t->busier += busier && partial;
    if (!more && (!busier || partial)) return;
    t->broken++;
    report(t, a, b, c);
}

static void check(const char *mesh, const char *sizes, const char *partial)
{
    static table t;
    t = (table){ .mesh = mesh, .sizes = sizes };
    int n = fill(&t, partial) ? t.places.count : 0;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            for (int c = 0; c < n; c++) compare(&t, a, b, c);
    expect(t.broken == 0, "%s f32[%s]: %lld of %lld triples are cheaper with a detour", mesh, sizes,
           (long long)t.broken, (long long)t.triples);
    if (partial)
        printf("# %s f32[%s]: %lld triples, %lld busier than their detour\n", mesh, sizes, (long long)t.triples,
               (long long)t.busier);
    free(t.prices);
}

static const char *const meshes[] = { "x=4", "x=2,y=2", "x=2,y=3", "x=4,y=2" };

static void check_all(const char *const *sizes, int n, const char *partial)
{
    for (int i = 0; i < n * DT_COUNT(meshes); i++) check(meshes[i / n], sizes[i % n], partial);
}

static void test_split(void)
{
    static const char *const sizes[] = { "24", "13", "3", "24,24", "5,7", "2,1", "1,2,3" };
    check_all(sizes, DT_COUNT(sizes), NULL);
}

static void test_partial(void)
{
    static const char *const sizes[] = { "144", "48,48" };
    check_all(sizes, DT_COUNT(sizes), "P");
}

static void test_split_2x2x2(void)
{
    static const char *const sizes[] = { "8", "13", "8,8", "5,7", "8,8,8", "3,5,2" };
    for (int i = 0; i < DT_COUNT(sizes); i++) check("x=2,y=2,z=2", sizes[i], NULL);
}

static void test_partial_2x2x2(void)
{
    check("x=2,y=2,z=2", "64", "P");
    check("x=2,y=2,z=2", "64,64", "P");
    if (getenv("DT_TEST_LONG")) check("x=2,y=2,z=2", "64,64,64", "P");
}

static const test_row rows[] = {
    { "split", test_split },
    { "partial", test_partial },
    { "split_2x2x2", test_split_2x2x2 },
    { "partial_2x2x2", test_partial_2x2x2 },
};

const suite the_suite = { "plan_triangle", rows, DT_COUNT(rows) };
