/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search knows of sums without a count is what a count finds: at most so many bytes by the busiest rank, in all
 * and stage by stage, so many if each rank sums for itself, and every step that is not local moves something. */
#include <stdio.h>
#include <stdlib.h>

#include <dtensor/dtensor.h>

#include "plan/places.h"
#include "redistribute/search.h"
#include "suite.h"

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

typedef struct walk { const char *mesh, *sizes; dt_plan_goal goal; int64_t known, pairs; } walk;

static void check_steps(const dti_search *s, const dt_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++)
        expect(plan->steps[i].kind == DT_COMM_LOCAL || dti_step_moves(&s->frame, &plan->steps[i]),
               "%s -> %s: step %d moves nothing", dt_spec_text(plan->source), dt_spec_text(plan->target), i);
}

static int64_t staged(const dt_plan *plan, const dti_moves *stages)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->step_count; i += dti_stage_steps(plan, i)) bytes += stages[i].received;
    return bytes;
}

/* No more than is known; by time parts may differ by a 16th. */
static void check_bytes(dti_search *s, const dt_plan *plan, dt_plan_goal goal)
{
    const char *from = dt_spec_text(plan->source), *to = dt_spec_text(plan->target);
    dti_moves stages[DTI_MAX_STEPS], all = dti_route_moves(&s->frame, plan->topology, plan->steps, plan->step_count,
                                                           stages);
    int64_t rough = goal == DT_PLAN_TIME ? s->received / DTI_ROUGH : 0;
    expect(all.received <= s->received + rough && staged(plan, stages) <= s->staged + rough,
           "%s -> %s: %lld bytes by the busiest rank, known as %lld; stage by stage %lld, known as %lld", from, to,
           (long long)all.received, (long long)s->received, (long long)staged(plan, stages), (long long)s->staged);
    expect(all.total <= s->received * dti_plan_ranks(plan) + rough, "%s -> %s: more than that in the mean", from, to);
    dti_route direct;
    dti_search_direct_sum(s, &direct);
    dti_moves alone = dti_route_moves(&s->frame, plan->topology, direct.steps, 1, NULL);
    expect(alone.received >= s->direct - rough && alone.received <= s->direct + rough,
           "%s -> %s: %lld bytes if each sums for itself, known as %lld", from, to, (long long)alone.received,
           (long long)s->direct);
}

static void check_pair(dt_context *ctx, dti_search *s, walk *w, const dt_spec *source, const dt_spec *target)
{
    dt_plan plan = { .source = source, .target = target, .goal = w->goal, .topology = dti_topology_get(ctx) };
    expect(dti_route_choose(ctx, &plan, s), "%s -> %s: %s", dt_spec_text(source), dt_spec_text(target),
           dt_context_error(ctx));
    w->pairs++;
    if (!s->known) return;
    w->known++;
    check_steps(s, &plan);
    if (plan.step_count > 1 || w->goal == DT_PLAN_BYTES) check_bytes(s, &plan, w->goal); /* else more is allowed   */
}

/* What takes the least time moves at most a tenth more, where parts are large. */
static void check_tenth(const dt_spec *source, const dt_spec *target)
{
    int64_t fewest = dt_plan_price(dt_plan_create(source, target, DT_PLAN_BYTES)).bytes;
    int64_t taken = dt_plan_price(dt_plan_create(source, target, DT_PLAN_TIME)).bytes;
    expect(taken <= fewest + fewest / 10, "%s -> %s: %lld bytes for time, %lld at least", dt_spec_text(source),
           dt_spec_text(target), (long long)taken, (long long)fewest);
}

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

static void check_all(walk *w)
{
    static place_list all;
    char from[128], to[128];
    dti_search *search = dti_search_new();
    dt_context *ctx = dt_context_dry(places_ranks(w->mesh));
    dt_mesh *mesh = dt_mesh_create(ctx, w->mesh);
    places_fill(&all, mesh, places_dims(w->sizes), "P");
    for (int64_t k = 0; k < (int64_t)all.count * all.count && dt_context_status(ctx) == DT_OK; k++) {
        places_spec(&all, (int)(k / all.count), w->sizes, from, sizeof from);
        places_spec(&all, (int)(k % all.count), w->sizes, to, sizeof to);
        check_pair(ctx, search, w, dt_spec_parse(mesh, from), dt_spec_parse(mesh, to));
    }
    expect(w->known > 0, "%s on %s: nothing is known", w->sizes, w->mesh);
    printf("# %s on %s: known of %lld of %lld pairs\n", w->sizes, w->mesh, (long long)w->known, (long long)w->pairs);
    dt_context_destroy(&ctx);
    free(search);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void check_goals(const char *mesh, const char *sizes)
{
    check_all(&(walk){ mesh, sizes, DT_PLAN_BYTES, 0, 0 });
    check_all(&(walk){ mesh, sizes, DT_PLAN_TIME, 0, 0 });
}

static void test_tenth(void)
{
    static place_list all;
    char from[128], to[128];
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2,z=2");
    places_fill(&all, mesh, 2, "P");
    for (int64_t k = 0; k < (int64_t)all.count * all.count; k++) {
        places_spec(&all, (int)(k / all.count), "512,520", from, sizeof from);
        places_spec(&all, (int)(k % all.count), "512,520", to, sizeof to);
        check_tenth(dt_spec_parse(mesh, from), dt_spec_parse(mesh, to));
    }
    expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void test_2x8(void) { check_goals("x=2,y=8", "1024,64"); }
static void test_4x4(void) { check_goals("x=4,y=4", "1024,96"); }
static void test_3x4(void) { check_goals("x=3,y=4", "1152,288"); }
static void test_2x3x2(void) { check_goals("x=2,y=3,z=2", "144,576"); }
static void test_2x2x4(void) { check_goals("x=2,y=2,z=4", "256,512"); }

static const test_row rows[] = {
    { "2x8", test_2x8 },
    { "tenth", test_tenth },
    { "4x4", test_4x4 },
    { "3x4", test_3x4 },
    { "2x3x2", test_2x3x2 },
    { "2x2x4", test_2x2x4 },
};

const suite the_suite = { "plan_known", rows, DT_COUNT(rows) };
