/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans between all pairs of placements on small meshes, on even, uneven, tiny and empty shapes, judged by the oracle:
 * every element arrives once, sums count every contribution once, bytes are those the plan says and no more than needed.
 * The largest rows take every 7th or 11th pair; all of them where DT_TEST_LONG is set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/oracle.h"
#include "suite.h"

/* ---- specs ------------------------------------------------------------------------------------------------------- */

enum { MAX_SPECS = 512, MAX_REPORTS = 8 };

typedef struct place_set { int count; oracle_spec specs[MAX_SPECS]; } place_set;

/* How one row is walked. */
typedef struct walk {
    const char *mesh_text;
    const char *partial;           /* what P is: "P", "P(max)"                                                     */
    int stride;                    /* of pairs                                                                     */
    int reports;                   /* failures printed so far                                                      */
    int64_t pairs, over;           /* tried; with P, more than the bound in all                                    */
} walk;

static void report(walk *w, const oracle_spec *a, const oracle_spec *b, const char *what)
{
    if (w->reports++ < MAX_REPORTS)
        expect(false, "%s: %s -> %s %s", w->mesh_text, a->text, strchr(b->text, ']') + 1, what);
}

/* Append the place of a mesh dim: 0: R, 1: P, 2 + d: S(d). */
static void put_place(char *text, size_t room, const char *name, int place, const char *partial)
{
    size_t used = strlen(text);
    const char *comma = text[used - 1] == '@' ? "" : ",";
    if (place == 1) snprintf(text + used, room - used, "%s%s:%s", comma, name, partial);
    else if (place > 1) snprintf(text + used, room - used, "%s%s:S(%d)", comma, name, place - 2);
}

/* The spec of one choice of places, mesh dims written forward or backward. */
static void spec_text(const walk *w, dt_mesh *mesh, const char *shape, const int *places, bool backward, char *text,
                      size_t room)
{
    int dims = dt_mesh_dim_count(mesh);
    snprintf(text, room, "f32[%s]@", shape);
    for (int i = 0; i < dims; i++) {
        int d = backward ? dims - 1 - i : i;
        put_place(text, room, dt_mesh_dim_name(mesh, d), places[d], w->partial);
    }
    if (text[strlen(text) - 1] == '@') text[strlen(text) - 1] = '\0';
}

/* Do two mesh dims split one dim, so that their order matters? */
static bool shares(const int *places, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (places[i] > 1 && places[i] == places[j]) return true;
    return false;
}

static int tensor_dims(const char *shape)
{
    int n = 1;
    for (; *shape; shape++) n += *shape == ',';
    return n;
}

static void add_spec(walk *w, place_set *set, dt_mesh *mesh, const char *shape, const int *places, bool backward)
{
    char text[256];
    spec_text(w, mesh, shape, places, backward, text, sizeof text);
    if (expect(set->count < MAX_SPECS && oracle_read(&set->specs[set->count], mesh, text), "%s is read: %s", text,
               dt_context_error(dt_mesh_context(mesh))))
        set->count++;
}

static void add_specs(walk *w, place_set *set, dt_mesh *mesh, const char *shape)
{
    int dims = dt_mesh_dim_count(mesh), kinds = 2 + tensor_dims(shape), places[DT_MAX_MESH_DIMS], all = 1;
    for (int d = 0; d < dims; d++) all *= kinds;
    for (int i = 0; i < all; i++) {
        for (int d = dims - 1, rest = i; d >= 0; d--, rest /= kinds) places[d] = rest % kinds;
        add_spec(w, set, mesh, shape, places, false);
        if (shares(places, dims)) add_spec(w, set, mesh, shape, places, true);
    }
}

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

static void check_bytes(walk *w, const dt_plan *plan, const oracle_spec *a, const oracle_spec *b,
                        const oracle_count *count)
{
    oracle_bound bound;
    oracle_bound_of(a, b, &bound);
    dt_plan_cost cost = dt_plan_price(plan);
    if (bound.busiest >= 0) {
        for (int r = 0; r < a->world; r++)
            if (count->received[r] != bound.rank[r] * 4) report(w, a, b, "receives more or less than is due");
        if (cost.lower_bound != bound.busiest * 4) report(w, a, b, "has another lower bound");
        if (cost.bytes != cost.lower_bound || cost.ratio != 1) report(w, a, b, "is not at its bound");
    }
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

static int mesh_ranks(const char *text)
{
    int ranks = 1;
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) ranks *= (int)strtol(at + 1, NULL, 10);
    return ranks;
}

static void check_shape(walk *w, const char *shape)
{
    static place_set set;
    dt_context *ctx = dt_context_dry(mesh_ranks(w->mesh_text));
    set.count = 0;
    add_specs(w, &set, dt_mesh_create(ctx, w->mesh_text), shape);
    for (int64_t i = 0; i < (int64_t)set.count * set.count; i += w->stride)
        check_pair(w, &set.specs[i / set.count], &set.specs[i % set.count]);
    for (int i = 0; i < set.count; i++) oracle_free(&set.specs[i]);
    dt_context_destroy(&ctx);
}

/* All pairs on a mesh, of some shapes, or every stride-th: all are at the bound. */
static void check_mesh(const char *mesh, const char *partial, const char *const *shapes, int stride)
{
    walk w = { mesh, partial, getenv("DT_TEST_LONG") ? 1 : stride, 0, 0, 0 };
    for (; *shapes; shapes++) check_shape(&w, *shapes);
    expect(w.over == 0, "%s: %lld of %lld pairs are over the bound", mesh, (long long)w.over, (long long)w.pairs);
    printf("# %s: %lld pairs, %lld over the bound\n", mesh, (long long)w.pairs, (long long)w.over);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const char *const lines[] = { "12", "13", "5", "2", "1", "0", NULL };
static const char *const planes[] = { "4,6", "5,7", "8,3", "2,1", "1,1", "3,0", NULL };
static const char *const cubes[] = { "4,4,4", "3,5,2", "1,2,3", NULL };

static void test_mesh_2(void) { check_mesh("x=2", "P", lines, 1), check_mesh("x=2", "P", planes, 1); }
static void test_mesh_3(void) { check_mesh("x=3", "P", lines, 1), check_mesh("x=3", "P", planes, 1); }
static void test_mesh_4(void) { check_mesh("x=4", "P", lines, 1), check_mesh("x=4", "P", planes, 1); }
static void test_mesh_2x2(void) { check_mesh("x=2,y=2", "P", lines, 1), check_mesh("x=2,y=2", "P", planes, 1); }
static void test_mesh_2x3(void) { check_mesh("x=2,y=3", "P", lines, 1), check_mesh("x=2,y=3", "P", planes, 1); }
static void test_mesh_4x2(void) { check_mesh("x=4,y=2", "P", lines, 1), check_mesh("x=4,y=2", "P", planes, 1); }
static void test_mesh_2x2x2_lines(void) { check_mesh("x=2,y=2,z=2", "P", lines, 1); }
static void test_mesh_2x2x2_planes(void) { check_mesh("x=2,y=2,z=2", "P", planes, 7); }
static void test_mesh_2x2x2_cubes(void) { check_mesh("x=2,y=2,z=2", "P", cubes, 11); }

static void test_cubes(void)
{
    static const char *const meshes[] = { "x=2", "x=3", "x=4", "x=2,y=2", "x=2,y=3", "x=4,y=2" };
    for (int i = 0; i < DT_COUNT(meshes); i++) check_mesh(meshes[i], "P", cubes, 1);
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
};

const suite the_suite = { "plan_pairs", rows, DT_COUNT(rows) };
