/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans between all pairs of placements on small meshes, on even, uneven, tiny and empty shapes, judged by the oracle:
 * every element arrives once, sums count every contribution once, bytes are those the plan says and no more than are
 * needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/oracle.h"
#include "plan/places.h"
#include "redistribute/plan.h"
#include "suite.h"

/* ---- how a row is walked ----------------------------------------------------------------------------------------- */

enum { MAX_REPORTS = 8 };

typedef struct walk {
    const char *mesh_text;
    int reports;                   /* failures printed so far                                                      */
    int64_t pairs, over;           /* tried; more than the bound in all                                            */
} walk;

static void report(walk *w, const oracle_spec *a, const oracle_spec *b, const char *what)
{
    if (w->reports++ < MAX_REPORTS)
        expect(false, "%s: %s -> %s %s", w->mesh_text, a->text, strchr(b->text, ']') + 1, what);
}

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

static void check_bytes(walk *w, const dt_plan *plan, const oracle_spec *a, const oracle_spec *b,
                        const oracle_count *count)
{
    oracle_bound bound;
    oracle_bound_of(a, b, &bound);
    dt_plan_cost cost = dt_plan_price(plan);
    if (plan->step_count && plan->moves.first != count->received[plan->to->base])
        report(w, a, b, "has another count of what the first rank receives");
    if (bound.busiest >= 0) {
        for (int r = 0; r < a->world; r++)
            if (count->received[r] != bound.rank[r] * 4) report(w, a, b, "receives more or less than is due");
        if (cost.lower_bound != bound.busiest * 4) report(w, a, b, "has another lower bound");
        if (cost.bytes != cost.lower_bound || cost.ratio != 1) report(w, a, b, "is not at its bound");
    }
    if (cost.lower_bound * a->ranks < cost.total_bound) report(w, a, b, "has a lower bound below the mean");
    if (count->total < bound.total * 4) report(w, a, b, "moves less than is possible");
    if (cost.total_bound > bound.total * 4) report(w, a, b, "claims a total bound that is too high");
    if (bound.busiest >= 0 && cost.total_bound != bound.total * 4) report(w, a, b, "has another total bound");
    bool over = count->total != bound.total * 4 || cost.total_bound != bound.total * 4;
    w->over += over;
    if (over && getenv("DT_TEST_SHOW"))
        printf("# over: %s: %s -> %s total %lld, its bound %lld, least %lld\n", w->mesh_text, a->text, b->text,
               (long long)count->total, (long long)cost.total_bound, (long long)bound.total * 4);
}

static void check_pair(walk *w, const oracle_spec *a, const oracle_spec *b)
{
    oracle_count count;
    dt_context *ctx = dt_mesh_context(dt_spec_mesh(a->spec));
    const dt_plan *plan = dt_plan_create(a->spec, b->spec, DT_PLAN_BYTES);
    const char *wrong = oracle_try(plan, a, b, &count);
    w->pairs++;
    if (wrong) report(w, a, b, wrong);
    if (plan) check_bytes(w, plan, a, b, &count);
    if (dt_context_status(ctx) != DT_OK) report(w, a, b, dt_context_error(ctx));
    dt_context_clear(ctx);
}

static void check_shape(walk *w, const char *sizes)
{
    static place_list all;
    static oracle_spec specs[PLACES_MAX];
    dt_context *ctx = dt_context_dry(places_ranks(w->mesh_text));
    dt_mesh *mesh = dt_mesh_create(ctx, w->mesh_text);
    char text[128];
    places_fill(&all, mesh, places_dims(sizes), "P");
    for (int i = 0; i < all.count; i++)
        expect(oracle_read(&specs[i], mesh, places_spec(&all, i, sizes, text, sizeof text)), "%s is read: %s", text,
               dt_context_error(ctx));
    for (int64_t i = 0; i < (int64_t)all.count * all.count; i++)
        check_pair(w, &specs[i / all.count], &specs[i % all.count]);
    for (int i = 0; i < all.count; i++) oracle_free(&specs[i]);
    dt_context_destroy(&ctx);
}

/* All pairs on a mesh, of some shapes: all are at the bound. */
static void check_mesh(const char *mesh, const char *const *shapes)
{
    walk w = { mesh, 0, 0, 0 };
    for (; *shapes; shapes++) check_shape(&w, *shapes);
    expect(w.over == 0, "%s: %lld of %lld pairs are over the bound", mesh, (long long)w.over, (long long)w.pairs);
    printf("# %s: %lld pairs, %lld over the bound\n", mesh, (long long)w.pairs, (long long)w.over);
}

/* ---- the busiest rank -------------------------------------------------------------------------------------------- */

/* Bytes of the busiest ranks of all pairs together, no more than with every route tried and counted: leaving routes out
 * must not add any. */
typedef struct even_row { const char *mesh, *sizes; int64_t bytes; } even_row;

static const even_row evens[] = {
    { "x=2,y=2,z=2", "64,64", 28906800 },
    { "x=4,y=2", "64,128", 2840788 },
    { "x=2,y=2,z=2", "64,64,64", 6187196848 },
    { "x=2,y=3,z=2", "144,576", 528266816 },
    { "x=4,y=4", "1024,96", 30512832 },
    { "x=2,y=2,z=4", "256,512", 789677300 },
    { "x=3,y=4", "1152,288", 106573824 },
    { "x=2,y=8", "1024,64", 22000996 },
};

static void test_busiest(void)
{
    static place_list all;
    char from[128], to[128];
    for (int i = 0; i < DT_COUNT(evens); i++) {
        dt_context *ctx = dt_context_dry(places_ranks(evens[i].mesh));
        dt_mesh *mesh = dt_mesh_create(ctx, evens[i].mesh);
        int64_t bytes = 0;
        places_fill(&all, mesh, places_dims(evens[i].sizes), "P");
        for (int64_t k = 0; k < (int64_t)all.count * all.count; k++) {
            places_spec(&all, (int)(k / all.count), evens[i].sizes, from, sizeof from);
            places_spec(&all, (int)(k % all.count), evens[i].sizes, to, sizeof to);
            bytes += dt_plan_price(dt_plan_create(dt_spec_parse(mesh, from), dt_spec_parse(mesh, to),
                                                  DT_PLAN_BYTES)).bytes;
        }
        expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
        expect(bytes == evens[i].bytes, "%s on %s: %lld bytes, expected %lld", evens[i].sizes, evens[i].mesh,
               (long long)bytes, (long long)evens[i].bytes);
        dt_context_destroy(&ctx);
    }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const char *const lines[] = { "12", "13", "5", "2", "1", "0", NULL };
static const char *const planes[] = { "4,6", "5,7", "8,3", "2,1", "1,1", "3,0", NULL };
static const char *const cubes[] = { "4,4,4", "3,5,2", "1,2,3", NULL };

static void test_mesh_2(void) { check_mesh("x=2", lines), check_mesh("x=2", planes); }
static void test_mesh_3(void) { check_mesh("x=3", lines), check_mesh("x=3", planes); }
static void test_mesh_4(void) { check_mesh("x=4", lines), check_mesh("x=4", planes); }
static void test_mesh_2x2(void) { check_mesh("x=2,y=2", lines), check_mesh("x=2,y=2", planes); }
static void test_mesh_2x3(void) { check_mesh("x=2,y=3", lines), check_mesh("x=2,y=3", planes); }
static void test_mesh_4x2(void) { check_mesh("x=4,y=2", lines), check_mesh("x=4,y=2", planes); }
static void test_mesh_2x2x2_lines(void) { check_mesh("x=2,y=2,z=2", lines); }
static void test_mesh_2x2x2_planes(void) { check_mesh("x=2,y=2,z=2", planes); }
static void test_mesh_2x2x2_cubes(void) { check_mesh("x=2,y=2,z=2", cubes); }

static void test_cubes(void)
{
    static const char *const meshes[] = { "x=2", "x=3", "x=4", "x=2,y=2", "x=2,y=3", "x=4,y=2" };
    for (int i = 0; i < DT_COUNT(meshes); i++) check_mesh(meshes[i], cubes);
}

static const test_row rows[] = {
    { "mesh_2", test_mesh_2 },
    { "mesh_3", test_mesh_3 },
    { "mesh_4", test_mesh_4 },
    { "mesh_2x2", test_mesh_2x2 },
    { "mesh_2x3", test_mesh_2x3 },
    { "mesh_4x2", test_mesh_4x2 },
    { "mesh_2x2x2_lines", test_mesh_2x2x2_lines },
    { "mesh_2x2x2_planes", test_mesh_2x2x2_planes },
    { "mesh_2x2x2_cubes", test_mesh_2x2x2_cubes },
    { "cubes", test_cubes },
    { "busiest", test_busiest },
};

const suite the_suite = { "plan_pairs", rows, DT_COUNT(rows) };
