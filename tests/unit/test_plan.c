/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: caching, errors, the names of collectives, dtypes, memory, text, goals, two meshes, topologies, many ranks.
 * What is moved is judged by the oracle in every row of every table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/oracle.h"
#include "plan/places.h"
#include "redistribute/plan.h"
#include "errors.h"
#include "suite.h"

/* ---- contexts, meshes, plans ------------------------------------------------------------------------------------- */

/* A context with DT_TOPOLOGY and DT_SMALL as given; NULL: unset. */
static dt_context *context_with(int n, const char *topology, const char *small)
{
    if (topology) setenv("DT_TOPOLOGY", topology, 1);
    if (small) setenv("DT_SMALL", small, 1);
    dt_context *ctx = dt_context_dry(n);
    unsetenv("DT_TOPOLOGY");
    unsetenv("DT_SMALL");
    expect(ctx != NULL, "a context of %d ranks", n);
    return ctx;
}

static dt_context *context_of(int n) { return context_with(n, NULL, NULL); }

/* "a=2,b=3", or a view of it: "a=2,b=3 select a=1", "a=2,b=3 flatten a,b x", "x=6 split x a=2,b=3". */
static dt_mesh *mesh_of(dt_context *ctx, const char *text)
{
    char base[64] = "", view[16] = "", a[64] = "", b[64] = "";
    sscanf(text, "%63s %15s %63s %63s", base, view, a, b);
    dt_mesh *mesh = dt_mesh_create(ctx, base);
    if (strcmp(view, "select") == 0) return dt_mesh_select(mesh, a);
    if (strcmp(view, "flatten") == 0) return dt_mesh_flatten(mesh, a, b);
    if (strcmp(view, "split") == 0) return dt_mesh_split(mesh, a, b);
    return mesh;
}

static const dt_plan *plan_of(dt_mesh *mesh, const char *source, const char *target)
{
    const dt_plan *plan = dt_plan_create(dt_spec_parse(mesh, source), dt_spec_parse(mesh, target), DT_PLAN_BYTES);
    expect(plan != NULL, "%s -> %s: %s", source, target, dt_context_error(dt_mesh_context(mesh)));
    return plan;
}

/* A plan between two meshes, tried by the oracle; bound: what any plan must move. */
typedef struct trial { oracle_spec source, target; const dt_plan *plan; oracle_count count; oracle_bound bound; } trial;

static bool try_plan(trial *t, dt_mesh *from, const char *source, dt_mesh *to, const char *target)
{
    dt_context *ctx = dt_mesh_context(from);
    bool read = oracle_read(&t->source, from, source) && oracle_read(&t->target, to, target);
    if (!expect(read, "%s -> %s: %s", source, target, dt_context_error(ctx))) return false;
    t->plan = dt_plan_create(t->source.spec, t->target.spec, DT_PLAN_BYTES);
    const char *wrong = oracle_try(t->plan, &t->source, &t->target, &t->count);
    bool right = expect(wrong == NULL, "%s on %s -> %s on %s %s %s", source, dt_mesh_text(from), target,
                        dt_mesh_text(to), wrong, dt_context_error(ctx));
    expect(dt_plan_check(t->plan) == DT_OK, "the plan's own check agrees: %s", dt_context_error(ctx));
    oracle_bound_of(&t->source, &t->target, &t->bound);
    return right;
}

static void end_trial(trial *t)
{
    oracle_free(&t->source);
    oracle_free(&t->target);
}

/* ---- one pointer, one event -------------------------------------------------------------------------------------- */

typedef struct seen { int plans; const void *object; } seen;

static void see(const dt_event *event, void *arg)
{
    seen *log = arg;
    if (event->kind != DT_EVENT_PLAN) return;
    log->plans++;
    log->object = event->object;
}

static void test_interned(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const dt_spec *a = dt_spec_parse(mesh, "f32[16,8]@dp:S(0)"), *b = dt_spec_parse(mesh, "f32[16,8]@tp:S(1)");
    seen log = { 0, NULL };
    dt_context_observe(ctx, see, &log);
    const dt_plan *plan = dt_plan_create(a, b, DT_PLAN_BYTES);
    expect(plan && log.plans == 1 && log.object == plan, "an event for a new plan: %d", log.plans);
    expect(dt_plan_create(a, b, DT_PLAN_BYTES) == plan && log.plans == 1, "an equal plan is the same, and no event");
    const dt_plan *fast = dt_plan_create(a, b, DT_PLAN_TIME), *back = dt_plan_create(b, a, DT_PLAN_BYTES);
    expect(fast && fast != plan && back && back != plan, "goal and direction tell plans apart");
    expect(log.plans == 3, "%d events", log.plans);
    dt_plan_price(plan);
    dt_plan_text(plan);
    dt_plan_check(plan);
    expect(log.plans == 3, "questions make no plan");
    for (int i = 1; i <= 600; i++) {
        char from[48], to[48];
        snprintf(from, sizeof from, "f32[%d,8]@dp:S(0)", i);
        snprintf(to, sizeof to, "f32[%d,8]@tp:S(0)", i);
        expect(plan_of(mesh, from, to) == plan_of(mesh, from, to), "%s -> %s is kept", from, to);
    }
    expect(dt_plan_create(a, b, DT_PLAN_BYTES) == plan, "still the same");
    expect_no_error(ctx, "interned");
    dt_context_destroy(&ctx);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef struct refusal { const char *source, *target; dt_plan_goal goal; dt_status status; const char *part; } refusal;

static const refusal refusals[] = { /* on dp=2,tp=4 */
    { "f32[16,8]", "f32[8,16]", DT_PLAN_BYTES, DT_ERR_SHAPE, "f32[16,8]" },
    { "f32[16,8]", "f32[128]", DT_PLAN_BYTES, DT_ERR_SHAPE, "f32[128]" },
    { "f32[]", "f32[1]", DT_PLAN_BYTES, DT_ERR_SHAPE, "f32[1]" },
    { "u8[9223372036854775807]", "u8[9223372036854775807]@tp:P", DT_PLAN_BYTES, DT_ERR_SHAPE, "too large for" },
    { "u8[2,100000000000000000]", "f32[2,100000000000000000]", DT_PLAN_BYTES, DT_ERR_SHAPE, "f32[2,100000" },
    { "f32[16]@tp:P(sum)", "f32[16]@tp:P(max)", DT_PLAN_BYTES, DT_ERR_PLACEMENT, "P(max)" },
    { "f32[16]@tp:P(max)", "f32[16]@tp:P(min)", DT_PLAN_BYTES, DT_ERR_PLACEMENT, "P(min)" },
    { "f32[16]@tp:P(avg)", "f32[16]@tp:P(prod)", DT_PLAN_TIME, DT_ERR_PLACEMENT, "P(avg)" },
    { "f32[16]", "f32[16]@tp:S(0)", (dt_plan_goal)2, DT_ERR_ARG, "goal" },
    { "f32[16]", "f32[16]@tp:S(0)", (dt_plan_goal)-1, DT_ERR_ARG, "goal" },
};

static void test_refused(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    for (int i = 0; i < DT_COUNT(refusals); i++) {
        const refusal *row = &refusals[i];
        const dt_spec *a = dt_spec_parse(mesh, row->source), *b = dt_spec_parse(mesh, row->target);
        expect(a && b, "row %d: %s", i, dt_context_error(ctx));
        expect(dt_plan_create(a, b, row->goal) == NULL, "%s -> %s is refused", row->source, row->target);
        expect_error(ctx, row->status, row->part, row->source);
        expect(dt_plan_create(a, b, row->goal) == NULL, "%s -> %s is refused again", row->source, row->target);
        expect_error(ctx, row->status, row->part, row->source);
    }
    plan_of(mesh, "f32[8]@tp:P(sum)", "f32[8]@tp:P(avg)");
    plan_of(mesh, "f32[8]@tp:P(max)", "f32[8]@dp:P(min)"); /* along other mesh dims kinds do not meet */
    expect_no_error(ctx, "kinds that mix");
    dt_context_destroy(&ctx);
}

static void test_two_contexts(void)
{
    dt_context *ctx = context_of(4), *other = context_of(4);
    const dt_spec *a = dt_spec_parse(dt_mesh_create(ctx, "x=4"), "f32[8]");
    const dt_spec *b = dt_spec_parse(dt_mesh_create(other, "x=4"), "f32[8]@x:S(0)");
    expect(dt_plan_create(a, b, DT_PLAN_BYTES) == NULL, "specs of two contexts are refused");
    expect_error(ctx, DT_ERR_ARG, "two contexts", "two contexts");
    expect_no_error(other, "the target's context");
    dt_context_destroy(&ctx);
    dt_context_destroy(&other);
}

static void test_null(void)
{
    static const dt_plan_cost none;
    dt_context *ctx = context_of(4);
    const dt_spec *a = dt_spec_parse(dt_mesh_create(ctx, "x=4"), "f32[8]");
    expect(dt_plan_create(NULL, NULL, DT_PLAN_BYTES) == NULL, "no specs");
    expect(dt_plan_create(a, NULL, DT_PLAN_BYTES) == NULL, "no target");
    expect_error(ctx, DT_ERR_ARG, "no target", "no target");
    expect(dt_plan_create(NULL, a, DT_PLAN_BYTES) == NULL, "no source");
    expect_error(ctx, DT_ERR_ARG, "no source", "no source");
    dt_plan_cost cost = dt_plan_price(NULL);
    dt_plan_step step = dt_plan_step_at(NULL, 0);
    expect(memcmp(&cost, &none, sizeof cost) == 0, "no price");
    expect(dt_plan_step_count(NULL) == 0 && step.bytes == 0 && step.messages == 0, "no steps");
    expect(strcmp(dt_plan_text(NULL), "") == 0, "no text");
    expect(dt_plan_received(NULL, 0) == -1 && dt_plan_sent(NULL, 0) == -1, "no bytes");
    expect(dt_plan_check(NULL) != DT_OK, "nothing to check");
    dt_context_destroy(&ctx);
}

static bool step_is_none(dt_plan_step step)
{
    return step.bytes == 0 && step.messages == 0 && !step.sums && step.travels == DT_DTYPE_DEFAULT
        && step.sums_in == DT_DTYPE_DEFAULT && step.gives == DT_DTYPE_DEFAULT && (!step.dims || !*step.dims);
}

static void test_out_of_range(void)
{
    dt_context *ctx = context_of(4);
    const dt_plan *plan = plan_of(dt_mesh_create(ctx, "x=4"), "f32[8]@x:S(0)", "f32[8]");
    expect(dt_plan_step_count(plan) == 1, "one step");
    expect(step_is_none(dt_plan_step_at(plan, -1)) && step_is_none(dt_plan_step_at(plan, 1)), "no step out of range");
    expect(!step_is_none(dt_plan_step_at(plan, 0)), "one in range");
    expect(dt_plan_received(plan, -1) == -1 && dt_plan_received(plan, 4) == -1, "received by no rank");
    expect(dt_plan_sent(plan, -1) == -1 && dt_plan_sent(plan, 4) == -1, "sent by no rank");
    expect(dt_plan_received(plan, 3) == 24 && dt_plan_sent(plan, 3) == 24, "three parts of two elements");
    expect_no_error(ctx, "out of range");
    dt_context_destroy(&ctx);
}

static void test_failed_context(void)
{
    dt_context *ctx = context_of(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    const dt_spec *a = dt_spec_parse(mesh, "f32[8]@x:S(0)"), *b = dt_spec_parse(mesh, "f32[8]");
    const dt_plan *plan = dt_plan_create(a, b, DT_PLAN_BYTES);
    dt_context_fail(ctx, DT_ERR_STATE, "something else");
    expect(dt_plan_create(a, b, DT_PLAN_BYTES) == NULL && dt_plan_create(b, a, DT_PLAN_BYTES) == NULL, "no plans");
    expect(dt_plan_check(plan) == DT_ERR_STATE, "no check");
    expect_error(ctx, DT_ERR_STATE, "something else", "the first error stays");
    expect(dt_plan_create(a, b, DT_PLAN_BYTES) == plan, "a cleared context makes plans again");
    dt_context_destroy(&ctx);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

typedef struct name_row { const char *mesh, *source, *target, *steps; } name_row;

static const name_row names[] = {
    /* one mesh dim */
    { "x=4", "f32[12,3]@x:S(0)", "f32[12,3]", "all_gather(x)" },
    { "x=4", "f32[13,3]@x:S(0)", "f32[13,3]", "all_gather(x)" },
    { "x=4", "f32[14,3]@x:S(0)", "f32[14,3]", "all_gather(x)" },
    { "x=4", "f32[3,12]@x:S(1)", "f32[3,12]", "all_gather(x)" },
    { "x=4", "f32[3,13]@x:S(1)", "f32[3,13]", "all_gather(x)" },
    { "x=4", "f32[3,14]@x:S(1)", "f32[3,14]", "all_gather(x)" },
    { "x=4", "f32[12,3]", "f32[12,3]@x:S(0)", "local(x)" },
    { "x=4", "f32[13,3]", "f32[13,3]@x:S(0)", "local(x)" },
    { "x=4", "f32[3,14]", "f32[3,14]@x:S(1)", "local(x)" },
    { "x=4", "f32[12,3]", "f32[12,3]", "" },
    { "x=4", "f32[12,3]@x:S(0)", "f32[12,3]@x:S(0)", "" },
    { "x=4", "f32[12,3]@x:P", "f32[12,3]", "all_reduce(x)" },
    { "x=4", "f32[13,3]@x:P(max)", "f32[13,3]", "all_reduce(x)" },
    { "x=4", "f32[12,3]@x:P(avg)", "f32[12,3]", "all_reduce(x)" },
    { "x=4", "f32[2]@x:P(min)", "f32[2]", "all_reduce(x)" },
    { "x=4", "f32[]@x:P(prod)", "f32[]", "all_reduce(x)" },
    { "x=4", "f32[12,3]@x:P", "f32[12,3]@x:S(0)", "reduce_scatter(x)" },
    { "x=4", "f32[13,3]@x:P(max)", "f32[13,3]@x:S(0)", "reduce_scatter(x)" },
    { "x=4", "f32[1,1]@x:P", "f32[1,1]@x:S(0)", "reduce_scatter(x)" },
    { "x=4", "f32[12,3]@x:P", "f32[12,3]@x:P", "" },
    { "x=4", "f32[12,3]@x:P(max)", "f32[12,3]@x:P(max)", "" },
    { "x=4", "f32[12,3]", "f32[12,3]@x:P", "local(x)" },
    { "x=4", "f32[8,8]@x:S(0)", "f32[8,8]@x:S(1)", "all_to_all(x)" },
    { "x=4", "f32[8,8]@x:S(1)", "f32[8,8]@x:S(0)", "all_to_all(x)" },
    { "x=4", "f32[8,8,8]@x:S(0)", "f32[8,8,8]@x:S(1)", "all_to_all(x)" },
    { "x=4", "f32[8,5]@x:S(0)", "f32[8,5]@x:S(1)", "all_to_all(x)" },
    { "x=4", "f32[5,8]@x:S(1)", "f32[5,8]@x:S(0)", "all_to_all(x)" },
    { "x=4", "f32[5,5]@x:S(0)", "f32[5,5]@x:S(1)", "all_to_all(x)" },
    { "x=4", "f32[2,8]@x:S(0)", "f32[2,8]", "all_gather(x)" },
    { "x=4", "f32[2,8]@x:S(0)", "f32[2,8]@x:S(1)", "all_to_all(x)" },
    { "x=4", "f32[8,8]@x:S(0)", "f32[8,8]@x:P", "local()" },
    /* dims of size 1 */
    { "x=4,y=1", "f32[8,8]@y:S(0)", "f32[8,8]", "" },
    { "x=4,y=1", "f32[8,8]@y:P", "f32[8,8]", "" },
    { "x=4,y=1", "f32[8,8]@y:P", "f32[8,8]@y:S(1)", "" },
    { "x=4,y=1", "f32[8,8]@y:S(0)", "f32[8,8]@y:P(max)", "" },
    { "x=4,y=1", "f32[8,8]@y:S(0),x:S(0)", "f32[8,8]@x:S(0),y:S(1)", "" },
    { "x=4,y=1", "f32[8,8]@y:P,x:S(0)", "f32[8,8]@x:S(1)", "all_to_all(x)" },
    /* several mesh dims */
    { "x=2,y=2", "f32[10,5]@x:S(0),y:S(0)", "f32[10,5]", "all_gather(x,y)" },
    { "x=2,y=2", "f32[9,5]@x:S(0),y:S(0)", "f32[9,5]", "all_gather(x,y)" },
    { "x=2,y=2", "f32[3,5]@x:S(0),y:S(1)", "f32[3,5]", "all_gather(x,y)" },
    { "x=2,y=2", "f32[1,3]@x:S(0),y:S(1)", "f32[1,3]", "all_gather(x,y)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:S(1)", "f32[8,8]@x:S(0)", "all_gather(y)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:P", "f32[8,8]@x:S(0)", "all_reduce(y)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:P", "f32[8,8]@x:S(0),y:S(1)", "reduce_scatter(y)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:P", "f32[8,8]@x:S(0),y:S(0)", "reduce_scatter(y)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:P", "f32[8,8]@x:S(1),y:P", "all_to_all(x)" },
    { "x=2,y=2", "f32[8,8]@x:S(0),y:S(1)", "f32[8,8]@x:S(1),y:S(0)", "permute(x,y)" },
    { "f=8,t=8", "f32[64]@f:S(0),t:S(0)", "f32[64]@t:S(0),f:S(0)", "permute(f,t)" },
    { "f=8,t=8", "f32[64,2]@f:S(0),t:S(0)", "f32[64,2]@t:S(0),f:S(0)", "permute(f,t)" },
    { "x=2,y=2,z=2", "f32[8,8]@x:P,y:P,z:P", "f32[8,8]", "all_reduce(x,y,z)" },
    { "x=2,y=2,z=2", "f32[8,8]@x:P,z:P", "f32[8,8]", "all_reduce(x,y,z)" }, /* y's copies share the work */
    { "x=2,y=2,z=2", "f32[8,8]@x:S(0),y:S(0),z:S(0)", "f32[8,8]", "all_gather(x,y,z)" },
    { "x=2,y=2,z=2", "f32[8,8]@z:S(0),x:S(0),y:S(0)", "f32[8,8]", "all_gather(x,y,z)" },
    { "x=2,y=2,z=2", "f32[8,8]@y:S(0),z:S(0),x:S(0)", "f32[8,8]", "all_gather(x,y,z)" },
    { "x=2,y=2,z=2", "f32[8,8]@x:P,y:S(0),z:P", "f32[8,8]", "reduce_scatter(x,z) all_gather(x,y,z)" },
    { "x=2,y=2", "f32[8,8]@x:P(sum),y:P(avg)", "f32[8,8]", "all_reduce(x,y)" },
    /* whom ranks need not ask: y numbers the same pieces before and after */
    { "x=2,y=2,z=2", "f32[8,8]@x:S(0),y:S(0)", "f32[8,8]@z:S(0),y:S(0)", "exchange(x,z)" },
    { "x=2,y=2,z=2", "f32[7,8]@x:S(0),y:S(0)", "f32[7,8]@z:S(0),y:S(0)", "exchange(x,z)" },
    { "x=2,y=2,z=2", "f32[8,8]@x:S(0),y:S(0),z:P", "f32[8,8]@z:S(0),y:S(0)", "reduce_scatter(z) all_gather(x)" },
    { "x=2,y=3", "f32[10]@x:P,y:P", "f32[10]@x:S(0),y:S(0)", "reduce_scatter(x,y)" },
    /* two contributions are summed in one step, though others could share in it */
    { "x=4,y=2", "f32[4]@y:P", "f32[4]@y:S(0)", "reduce_scatter(y)" },
    { "x=4,y=2", "f32[5]@y:P", "f32[5]@y:S(0)", "reduce_scatter(y)" },
    { "x=5,y=2", "f32[16]@y:P", "f32[16]", "all_reduce(y)" },
    { "x=4,y=3", "f32[12]@y:P", "f32[12]@y:S(0)", "reduce_scatter(y) all_gather(x)" },
    { "x=2,y=3", "f32[10]@x:P,y:P", "f32[10]@y:S(0),x:S(0)", "reduce_scatter(x,y)" },
};

static const char *steps_text(const dt_plan *plan, char *text, size_t room)
{
    *text = '\0';
    for (int i = 0; i < dt_plan_step_count(plan); i++) {
        dt_plan_step step = dt_plan_step_at(plan, i);
        size_t used = strlen(text);
        snprintf(text + used, room - used, "%s%s(%s)", i ? " " : "", dt_comm_kind_text(step.kind), step.dims);
    }
    return text;
}

static void expect_steps(const dt_plan *plan, const char *steps, const char *what)
{
    char text[256];
    steps_text(plan, text, sizeof text);
    expect(strcmp(text, steps) == 0, "%s: got \"%s\", expected \"%s\"", what, text, steps);
}

static void test_names(void)
{
    for (int i = 0; i < DT_COUNT(names); i++) {
        const name_row *row = &names[i];
        dt_context *ctx = context_of(places_ranks(row->mesh));
        dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
        char what[160];
        trial t;
        snprintf(what, sizeof what, "%s: %s -> %s", row->mesh, row->source, row->target);
        try_plan(&t, mesh, row->source, mesh, row->target);
        expect_steps(t.plan, row->steps, what);
        expect(t.count.total == t.bound.total * 4, "%s: %lld bytes in all, bound %lld", what, (long long)t.count.total,
               (long long)t.bound.total * 4);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* Several mesh dims at once: one step, every rank receives no more than what it lacks. */
static void test_one_step(void)
{
    static const char *const pairs[][2] = {
        { "x:S(0),y:S(0),z:S(0)", "x:S(1),y:S(1),z:S(1)" }, { "x:S(0),y:S(1),z:S(0)", "x:S(1),y:S(0),z:S(0)" },
        { "x:S(0),y:S(1),z:S(2)", "x:S(2),y:S(1),z:S(0)" }, { "x:S(1),y:S(0),z:S(0)", "y:S(0),z:S(0)" },
        { "x:S(0),y:S(0),z:S(1)", "x:S(0),y:S(1),z:S(2)" },
    };
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2,z=2");
    for (int i = 0; i < DT_COUNT(pairs); i++) {
        char source[64], target[64];
        trial t;
        snprintf(source, sizeof source, "f32[8,8,8]@%s", pairs[i][0]);
        snprintf(target, sizeof target, "f32[8,8,8]@%s", pairs[i][1]);
        try_plan(&t, mesh, source, mesh, target);
        expect(dt_plan_step_count(t.plan) == 1, "%s -> %s: %d steps", source, target, dt_plan_step_count(t.plan));
        for (int r = 0; r < 8; r++)
            expect(t.count.received[r] == t.bound.rank[r] * 4, "%s -> %s: rank %d", source, target, r);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

/* Only the ranks off the diagonal move data, and they swap their blocks. */
static void test_swap(void)
{
    dt_context *ctx = context_of(4);
    const dt_plan *plan = plan_of(dt_mesh_create(ctx, "x=2,y=2"), "f32[8,6]@x:S(0),y:S(1)", "f32[8,6]@x:S(1),y:S(0)");
    for (int r = 0; r < 4; r++) {
        int64_t due = r == 1 || r == 2 ? 48 : 0;
        expect(dt_plan_received(plan, r) == due && dt_plan_sent(plan, r) == due, "rank %d moves %lld, %lld", r,
               (long long)dt_plan_received(plan, r), (long long)dt_plan_sent(plan, r));
    }
    dt_plan_step step = dt_plan_step_at(plan, 0);
    expect(dt_plan_step_count(plan) == 1 && !step.sums, "one step");
    expect(step.bytes == 48 && step.messages == 1, "one block, one message");
    dt_context_destroy(&ctx);
}

/* On 4x2 every input of R, S(0), S(1), P to every output of R, S(0), S(1). */
static void test_every_input(void)
{
    static const char *const places[] = { "R", "S(0)", "S(1)", "P" };
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4,y=2");
    for (int i = 0; i < 16 * 9; i++) {
        char source[64], target[64];
        trial t;
        snprintf(source, sizeof source, "f32[16,24]@x:%s,y:%s", places[i / 9 / 4], places[i / 9 % 4]);
        snprintf(target, sizeof target, "f32[16,24]@x:%s,y:%s", places[i % 9 / 3], places[i % 3]);
        try_plan(&t, mesh, source, mesh, target);
        expect(t.count.total == t.bound.total * 4, "%s -> %s is at its bound", source, target);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

/* ---- kinds of partial -------------------------------------------------------------------------------------------- */

/* Every kind from and to every place; what cannot be is refused. */
static void test_kinds(void)
{
    static const char *const places[] = { "R", "S(0)", "S(1)", "P(sum)", "P(avg)", "P(max)", "P(min)", "P(prod)" };
    static const char *const others[] = { "R", "S(0)", "S(1)" };
    dt_context *ctx = context_of(6);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=3");
    for (int i = 0; i < 8 * 8 * 3 * 3; i++) {
        int a = i / 72, b = i / 9 % 8;
        bool mixes = a < 3 || b < 3 || a == b || (a < 5 && b < 5);
        char source[64], target[64];
        trial t;
        snprintf(source, sizeof source, "f32[4,5]@x:%s,y:%s", others[i / 3 % 3], places[a]);
        snprintf(target, sizeof target, "f32[4,5]@x:%s,y:%s", others[i % 3], places[b]);
        if (!mixes) {
            dt_plan_create(dt_spec_parse(mesh, source), dt_spec_parse(mesh, target), DT_PLAN_BYTES);
            expect_error(ctx, DT_ERR_PLACEMENT, "P(", source);
            continue;
        }
        try_plan(&t, mesh, source, mesh, target);
        expect(t.count.total == t.bound.total * 4, "%s -> %s: %lld bytes, bound %lld", source, target,
               (long long)t.count.total, (long long)t.bound.total * 4);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

typedef struct dtype_row { const char *source, *target; dt_dtype travels, sums_in, gives; int64_t bytes; } dtype_row;

static const dtype_row dtypes[] = { /* the one step on x=4 */
    { "f32[8,8]@x:S(0)", "f32[8,8]", DT_F32, DT_DTYPE_DEFAULT, DT_F32, 192 },
    { "f32[8,8]@x:S(0)", "bf16[8,8]", DT_BF16, DT_DTYPE_DEFAULT, DT_BF16, 96 },
    { "bf16[8,8]@x:S(0)", "f32[8,8]", DT_BF16, DT_DTYPE_DEFAULT, DT_F32, 96 },
    { "f32[8,8]@x:S(0)", "bf16[8,8]@x:S(1)", DT_BF16, DT_DTYPE_DEFAULT, DT_BF16, 24 },
    { "f32[8,8]@x:P", "f32[8,8]@x:S(0)", DT_F32, DT_F32, DT_F32, 192 },
    { "f64[8,8]@x:P", "f64[8,8]@x:S(0)", DT_F64, DT_F64, DT_F64, 384 },
    { "i64[8,8]@x:P", "i64[8,8]@x:S(0)", DT_I64, DT_I64, DT_I64, 384 },
    { "bf16[8,8]@x:P", "bf16[8,8]@x:S(0)", DT_BF16, DT_F32, DT_BF16, 96 },
    { "f16[8,8]@x:P(max)", "f16[8,8]@x:S(0)", DT_F16, DT_F32, DT_F16, 96 },
    { "bf16[8,8]@x:P", "f32[8,8]@x:S(0)", DT_BF16, DT_F32, DT_F32, 96 },
    { "f32[8,8]@x:P", "bf16[8,8]@x:S(0)", DT_F32, DT_F32, DT_BF16, 192 },
    { "bf16[8,8]@x:P", "bf16[8,8]", DT_BF16, DT_F32, DT_BF16, 192 },
    { "bf16[8,8]@x:P", "f32[8,8]", DT_BF16, DT_F32, DT_F32, 96 + 192 },
    { "f32[8,8]@x:P", "bf16[8,8]", DT_F32, DT_F32, DT_BF16, 192 + 96 },
    { "f32[8,8]", "bf16[8,8]", DT_BF16, DT_DTYPE_DEFAULT, DT_BF16, 0 },
    { "f32[8,8]@x:S(0)", "f64[8,8]@x:S(0)", DT_F32, DT_DTYPE_DEFAULT, DT_F64, 0 },
    { "u8[8,8]@x:S(0)", "u8[8,8]", DT_U8, DT_DTYPE_DEFAULT, DT_U8, 48 },
    { "bool[8,8]@x:S(0)", "bool[8,8]@x:S(1)", DT_BOOL, DT_DTYPE_DEFAULT, DT_BOOL, 12 },
};

static void test_dtypes(void)
{
    dt_context *ctx = context_of(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    for (int i = 0; i < DT_COUNT(dtypes); i++) {
        const dtype_row *row = &dtypes[i];
        trial t;
        try_plan(&t, mesh, row->source, mesh, row->target);
        dt_plan_step step = dt_plan_step_at(t.plan, 0);
        expect(step.travels == row->travels && step.sums_in == row->sums_in && step.gives == row->gives,
               "%s -> %s: travels as %s, sums in %s, gives %s", row->source, row->target, dt_dtype_text(step.travels),
               dt_dtype_text(step.sums_in), dt_dtype_text(step.gives));
        expect(step.bytes == row->bytes, "%s -> %s: %lld bytes", row->source, row->target, (long long)step.bytes);
        expect(step.sums == (row->sums_in != DT_DTYPE_DEFAULT), "%s -> %s sums", row->source, row->target);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

/* ---- memory, text ------------------------------------------------------------------------------------------------ */

typedef struct peak_row { const char *mesh, *source, *target; int64_t bytes; } peak_row;

static const peak_row peaks[] = {
    { "x=4,y=2", "f32[8,8,8]@y:S(0),x:S(2)", "f32[8,8,8]@x:S(1),y:S(1)", 256 + 256 },
    { "x=4", "f32[13,3]@x:S(0)", "f32[13,3]", 48 + 156 },
    { "x=4", "f32[13,3]", "f32[13,3]@x:S(0)", 156 + 48 },
    { "x=4", "f32[8,8]@x:P", "f32[8,8]", 256 + 256 },
    { "x=4", "f32[8,8]@x:P", "f32[8,8]@x:S(0)", 256 + 64 },
    { "x=4", "f32[8,8]", "f32[8,8]@x:P", 256 + 256 },
    { "x=4", "f32[8,8]@x:S(0)", "bf16[8,8]", 64 + 128 },
    { "x=2,y=2,z=2", "f32[8,8]@x:P,y:S(0),z:P", "f32[8,8]", 128 + 256 },
    { "x=4", "f32[0,8]@x:S(1)", "f32[0,8]", 0 },
};

static void test_peak(void)
{
    for (int i = 0; i < DT_COUNT(peaks); i++) {
        dt_context *ctx = context_of(places_ranks(peaks[i].mesh));
        const dt_plan *plan = plan_of(dt_mesh_create(ctx, peaks[i].mesh), peaks[i].source, peaks[i].target);
        expect(dt_plan_price(plan).peak_bytes == peaks[i].bytes, "%s -> %s: peak %lld", peaks[i].source,
               peaks[i].target, (long long)dt_plan_price(plan).peak_bytes);
        dt_context_destroy(&ctx);
    }
}

static void expect_part(const char *text, const char *part)
{
    expect(strstr(text, part) != NULL, "\"%s\" has no \"%s\"", text, part);
}

static void test_text(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2,z=2");
    const dt_plan *plan = plan_of(mesh, "f32[8,8]@x:P,y:S(0),z:P", "f32[8,8]");
    const char *text = dt_plan_text(plan);
    expect(strncmp(text, "f32[8,8]@x:P(sum),y:S(0),z:P(sum) -> f32[8,8]\n", 46) == 0, "the specs first: %s", text);
    expect_part(text, "reduce_scatter");
    expect_part(text, "all_gather");
    expect_part(text, "x,y,z");
    expect_part(text, "224 bytes");
    expect_part(text, "bound 320");
    expect(dt_plan_text(plan) == text, "made once");
    expect_part(dt_plan_text(plan_of(mesh, "f32[8]", "f32[8]")), "nothing");
    dt_context_destroy(&ctx);
}

static void test_nothing(void)
{
    dt_context *ctx = context_of(4);
    const dt_plan *plan = plan_of(dt_mesh_create(ctx, "x=4"), "f32[0,4]@x:S(1)", "f32[0,4]");
    dt_plan_cost cost = dt_plan_price(plan);
    expect(cost.bytes == 0 && cost.sent == 0, "an empty tensor moves nothing");
    expect(cost.lower_bound == 0 && cost.ratio == 1, "which is the least");
    expect(cost.total == 0 && cost.total_bound == 0 && cost.time_us == 0, "and takes no time");
    dt_context_destroy(&ctx);
}

/* ---- parts of regions -------------------------------------------------------------------------------------------- */

typedef struct uneven { const char *from, *source, *to, *target; } uneven;

static const uneven unevens[] = { /* of 18 ranks; sums by region whose views would part different blocks */
    { "a=3,b=2,c=3", "i32[16,120]@b:S(1),a:S(0),c:P", "a=3,b=2,c=3", "i32[16,120]@b:S(1),a:S(1),c:S(1)" },
    { "a=6,b=3", "f32[17,24]@a:S(0),b:P", "x=2,y=9", "f32[17,24]@y:S(1),x:S(0)" },
};

static void test_regions(void)
{
    for (int i = 0; i < DT_COUNT(unevens); i++) {
        trial t;
        dt_context *ctx = context_of(18);
        dt_mesh *from = dt_mesh_create(ctx, unevens[i].from), *to = dt_mesh_create(ctx, unevens[i].to);
        if (try_plan(&t, from, unevens[i].source, to, unevens[i].target)) {
            dt_plan_cost cost = dt_plan_price(t.plan);
            expect(cost.total == cost.total_bound && cost.total == t.count.total, "%s moves %lld, bound %lld",
                   unevens[i].source, (long long)cost.total, (long long)cost.total_bound);
        }
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* A sum that gives what its copies do not take. */
static void test_dtypes_that_do_not_meet(void)
{
    dt_context *ctx = context_of(4);
    const dt_plan *plan = plan_of(dt_mesh_create(ctx, "x=4"), "f32[64]@x:P", "f32[64]");
    dt_plan damaged = *plan;
    dti_step steps[2];
    expect(plan->step_count == 2, "%d steps", plan->step_count);
    memcpy(steps, plan->steps, sizeof steps);
    damaged.steps = steps;
    expect(dt_plan_check(&damaged) == DT_OK, "as it was: %s", dt_context_error(ctx));
    steps[0].gives = DT_BF16;
    dt_plan_check(&damaged);
    expect_error(ctx, DT_ERR_STATE, "takes elements in another dtype", "bf16 taken as f32");
    dt_context_destroy(&ctx);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Messages of P -> R on x=4: 6 as a sum and copies, 3 where every rank sums for itself. */
static void expect_messages(dt_context *ctx, const char *shape, dt_plan_goal goal, int64_t messages, const char *what)
{
    char source[64];
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    snprintf(source, sizeof source, "%s@x:P", shape);
    const dt_plan *plan = dt_plan_create(dt_spec_parse(mesh, source), dt_spec_parse(mesh, shape), goal);
    dt_plan_step step = dt_plan_step_at(plan, 0);
    expect_steps(plan, "all_reduce(x)", what);
    expect(step.messages == messages, "%s: %lld messages, expected %lld", what, (long long)step.messages,
           (long long)messages);
    expect(dt_plan_check(plan) == DT_OK, "%s: %s", what, dt_context_error(ctx));
}

static void test_time(void)
{
    dt_context *ctx = context_of(4);
    expect_messages(ctx, "f32[8]", DT_PLAN_BYTES, 6, "fewest bytes");
    expect_messages(ctx, "f32[8]", DT_PLAN_TIME, 3, "least time, small");
    expect_messages(ctx, "f32[65536]", DT_PLAN_TIME, 6, "least time, large");
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    const dt_spec *a = dt_spec_parse(mesh, "f32[8]@x:P"), *b = dt_spec_parse(mesh, "f32[8]");
    double fast = dt_plan_price(dt_plan_create(a, b, DT_PLAN_TIME)).time_us;
    double slow = dt_plan_price(dt_plan_create(a, b, DT_PLAN_BYTES)).time_us;
    expect(fast > 0 && fast < slow, "%g us are less than %g us", fast, slow);
    dt_context_destroy(&ctx);
}

static void test_small(void)
{
    char program[] = "program", option[] = "--dt-small=0";
    char *args[] = { program, option, NULL }, **argv = args;
    int argc = 2;
    dt_context *ctx = context_of(4);
    expect(dt_options_read(ctx, &argc, &argv) == DT_OK, "%s", dt_context_error(ctx));
    expect_messages(ctx, "f32[8]", DT_PLAN_TIME, 6, "--dt-small=0");
    dt_context_destroy(&ctx);
    ctx = context_with(4, NULL, "0");
    expect_messages(ctx, "f32[8]", DT_PLAN_TIME, 6, "DT_SMALL=0");
    dt_context_destroy(&ctx);
    ctx = context_with(4, NULL, "100000000");
    expect_messages(ctx, "f32[65536]", DT_PLAN_TIME, 3, "DT_SMALL=100000000");
    dt_context_destroy(&ctx);
}

/* ---- two meshes -------------------------------------------------------------------------------------------------- */

/* over: bytes in all beyond the bound, as known: sums are shared over all ranks of the source, also those that are no
 * target holders; and parts do not stay where they are when the target's P has no common refinement. */
typedef struct meshes_row { const char *from, *source, *to, *target; int64_t over; } meshes_row;

static const meshes_row same_ranks[] = { /* the same elements on the same ranks: nothing moves */
    { "a=2,b=3", "f32[12]@a:S(0),b:S(0)", "c=3,d=2", "f32[12]@c:S(0),d:S(0)", 0 },
    { "a=2,b=3", "f32[13]@a:S(0),b:S(0)", "x=6", "f32[13]@x:S(0)", 0 },
    { "a=2,b=3", "f32[13]@a:S(0),b:S(0)", "a=2,b=3 flatten a,b x", "f32[13]@x:S(0)", 0 },
    { "x=6", "f32[7,2]@x:S(0)", "x=6 split x a=3,b=2", "f32[7,2]@a:S(0),b:S(0)", 0 },
    { "x=8 split x kv=4,rep=2", "f32[9]@kv:S(0)", "a=4,b=2", "f32[9]@a:S(0)", 0 },
    { "a=2,b=3", "f32[12]", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=4", "f32[12]@a:P", "c=2,d=2,e=2", "f32[12]@c:P", 0 },
};

static void test_views(void)
{
    for (int i = 0; i < DT_COUNT(same_ranks); i++) {
        const meshes_row *row = &same_ranks[i];
        dt_context *ctx = context_of(places_ranks(row->from));
        trial t;
        try_plan(&t, mesh_of(ctx, row->from), row->source, mesh_of(ctx, row->to), row->target);
        expect(t.count.total == 0 && dt_plan_price(t.plan).bytes == 0, "%s on %s is %s on %s: %lld bytes", row->source,
               row->from, row->target, row->to, (long long)t.count.total);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

static const meshes_row other_meshes[] = {
    { "a=2,b=3", "f32[12]@a:S(0)", "c=3,d=2", "f32[12]@c:S(0)", 0 },
    { "a=2,b=3", "f32[13,5]@b:S(0)", "c=3,d=2", "f32[13,5]@d:S(1)", 0 },
    { "a=2,b=3", "f32[13,5]@a:S(0),b:S(1)", "c=3,d=2", "f32[13,5]@c:S(0),d:S(1)", 0 },
    { "a=2,b=3", "f32[12]@a:S(0),b:S(0)", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=3", "f32[12]", "c=3,d=2", "f32[12]@d:S(0)", 0 },
    { "a=2,b=3", "f32[12]@a:P", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=3", "f32[12]@b:P", "c=3,d=2", "f32[12]@c:S(0)", 0 },
    { "a=2,b=3", "f32[12]@a:S(0)", "c=3,d=2", "f32[12]@c:P", 48 },
    { "a=2,b=4", "f32[16]@a:S(0)", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:S(0)", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:P", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:S(0)", "x=8 split x c=4,d=2", "f32[16]@c:S(0)", 0 },
    /* other ranks */
    { "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[8,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=1", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(1)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[8,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[8,6]", "pp=2,tp=4 select pp=1", "f32[8,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:P", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:P", "pp=2,tp=4 select pp=1", "f32[9,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:P", 0 },
    { "tp=4,pp=2 select pp=0", "f32[9,6]@tp:S(1)", "tp=4,pp=2 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=3,tp=2 select pp=0", "f32[9,6]@tp:S(1)", "pp=3,tp=2 select pp=2", "f32[9,6]@tp:S(0)", 0 },
    /* overlapping */
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:S(0)", "pp=2,tp=4", "f32[9,6]@pp:S(0),tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", "pp=2,tp=4", "f32[9,6]", 0 },
    { "pp=2,tp=4 select pp=1", "f32[9,6]@tp:P", "pp=2,tp=4", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[9,6]@pp:S(0),tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[9,6]@pp:P,tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 108 },
    { "pp=2,tp=4 select tp=1", "f32[8]@pp:S(0)", "pp=2,tp=4 select pp=1", "f32[8]@tp:S(0)", 0 },
    { "pp=2,tp=4 select tp=1", "f32[8]", "pp=2,tp=4 select pp=1", "f32[8]", 0 },
    { "pp=2,tp=4 select tp=1", "f32[8]@pp:P", "pp=2,tp=4 select pp=1", "f32[8]@tp:S(0)", 8 },
    /* one rank */
    { "pp=2,tp=4 select pp=0,tp=1", "f32[64]", "pp=2,tp=4 select pp=1", "f32[64]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4", "f32[13]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4", "f32[13]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[13]@pp:S(0),tp:S(0)", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 0 },
    { "pp=2,tp=4", "f32[13]@tp:P", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 44 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4 select pp=1,tp=3", "f32[13]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 0 },
};

static void test_meshes(void)
{
    for (int i = 0; i < DT_COUNT(other_meshes); i++) {
        const meshes_row *row = &other_meshes[i];
        dt_context *ctx = context_of(places_ranks(row->from));
        trial t;
        try_plan(&t, mesh_of(ctx, row->from), row->source, mesh_of(ctx, row->to), row->target);
        expect(t.count.total == t.bound.total * 4 + row->over, "%s on %s -> %s on %s: %lld bytes, bound %lld + %lld",
               row->source, row->from, row->target, row->to, (long long)t.count.total, (long long)t.bound.total * 4,
               (long long)row->over);
        for (int r = 0; r < t.source.world && t.bound.busiest >= 0; r++)
            expect(t.count.received[r] == t.bound.rank[r] * 4, "%s on %s -> %s on %s: rank %d receives what it lacks",
                   row->source, row->from, row->target, row->to, r);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* Between part of the ranks and all of them, in every placement: shapes of fewer elements than ranks, too. */
static void check_part(const char *topology, const char *part, const char *dim, const char *shape)
{
    static const char *const places[] = { "R", "S(0)", "P" };
    dt_context *ctx = context_with(6, topology, NULL);
    dt_mesh *all = mesh_of(ctx, "b=3,c=2"), *some = mesh_of(ctx, part);
    bool right = true;
    for (int i = 0; i < 54 && right; i++) {
        char of_all[64], of_some[64];
        trial t;
        snprintf(of_all, sizeof of_all, "f32[%s]@b:%s,c:%s", shape, places[i / 2 % 3], places[i / 6 % 3]);
        snprintf(of_some, sizeof of_some, "f32[%s]@%s:%s", shape, dim, places[i / 18]);
        right = i % 2 ? try_plan(&t, some, of_some, all, of_all) : try_plan(&t, all, of_all, some, of_some);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

static void test_part_of_ranks(void)
{
    static const char *const topologies[] = { NULL, "node=2,gpu=3" }, *const shapes[] = { "1", "2", "7" };
    for (int t = 0; t < DT_COUNT(topologies); t++)
        for (int s = 0; s < DT_COUNT(shapes); s++) {
            check_part(topologies[t], "b=3,c=2 select c=1", "b", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select c=0", "b", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select b=1", "c", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select b=2", "c", shapes[s]);
        }
}

/* One holder and many takers: each element leaves the holder once, not once per taker. */
static void test_relay(void)
{
    static const char *const targets[] = { "a=2,b=8 select a=1", "a=2,b=8" };
    for (int i = 0; i < DT_COUNT(targets); i++) {
        dt_context *ctx = context_of(16);
        trial t;
        try_plan(&t, mesh_of(ctx, "a=2,b=8 select a=0,b=0"), "f32[64]", mesh_of(ctx, targets[i]), "f32[64]");
        int64_t sent = dt_plan_price(t.plan).sent, all = dt_plan_price(t.plan).total;
        expect(sent <= 2 * 256, "%s: the busiest sends %lld of %lld", targets[i], (long long)sent, (long long)all);
        expect(dt_plan_step_count(t.plan) == 2, "%s: %d steps", targets[i], dt_plan_step_count(t.plan));
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* Many holders of the same answer in turn. */
static void test_many_to_one(void)
{
    dt_context *ctx = context_of(16);
    trial t;
    try_plan(&t, mesh_of(ctx, "a=2,b=8 select a=0"), "f32[64]", mesh_of(ctx, "a=2,b=8 select a=1,b=0"), "f32[64]");
    expect(dt_plan_price(t.plan).sent == 32, "each of 8 sends an eighth: %lld", (long long)dt_plan_price(t.plan).sent);
    end_trial(&t);
    dt_context_destroy(&ctx);
}

/* ---- topologies -------------------------------------------------------------------------------------------------- */

static void specs_text(int i, char *text, size_t room, const char *mesh, const char *shape)
{
    static const char *const places[] = { "R", "S(0)", "S(1)", "P" };
    if (strchr(mesh, ',')) snprintf(text, room, "f32[%s]@x:%s,y:%s", shape, places[i / 4], places[i % 4]);
    else snprintf(text, room, "f32[%s]@x:%s", shape, places[i]);
}

/* All pairs of places on a mesh that stands on a topology: links are counted right, nothing gets lost. */
static void check_topology(const char *topology, const char *mesh_text, const char *shape)
{
    dt_context *ctx = context_with(places_ranks(mesh_text), topology, NULL);
    dt_mesh *mesh = dt_mesh_create(ctx, mesh_text);
    int n = strchr(mesh_text, ',') ? 16 : 4;
    bool right = true;
    for (int i = 0; i < n * n && right; i++) {
        char source[64], target[64];
        trial t;
        specs_text(i / n, source, sizeof source, mesh_text, shape);
        specs_text(i % n, target, sizeof target, mesh_text, shape);
        right = expect(try_plan(&t, mesh, source, mesh, target), "on %s", topology);
        for (int r = 0; r < t.source.world; r++) {
            int64_t over = 0;
            for (int l = 0; l < t.count.links; l++) over += t.count.link_received[r][l];
            expect(over == dt_plan_received(t.plan, r), "classes sum up");
        }
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

static void test_topologies(void)
{
    static const char *const topologies[] = { "node=2,gpu=4", "node=4,gpu=2", "node=3,gpu=3", "pod=2,node=2,gpu=2",
                                              "node=2,gpu=5", "node=8,gpu=1", "node=1,gpu=8", "node=2,gpu=2,core=2" };
    static const char *const meshes[] = { "x=8", "x=2,y=4", "x=4,y=2" };
    for (int i = 0; i < DT_COUNT(topologies) * DT_COUNT(meshes); i++) {
        check_topology(topologies[i / DT_COUNT(meshes)], meshes[i % DT_COUNT(meshes)], "8,4");
        check_topology(topologies[i / DT_COUNT(meshes)], meshes[i % DT_COUNT(meshes)], "3,5");
    }
    check_topology("node=3,gpu=2", "x=6", "13,2");
    check_topology("node=3,gpu=2", "x=2,y=3", "6,6");
    check_topology("node=2,gpu=3", "x=2,y=3", "5,7");
}

/* Bytes that the ranks [first, last) get over the outermost links. */
static int64_t into(const trial *t, int first, int last)
{
    int64_t bytes = 0;
    for (int r = first; r < last; r++) bytes += t->count.link_received[r][0];
    return bytes;
}

typedef struct crossing_row { const char *topology, *mesh, *source, *target; int64_t into, busiest; } crossing_row;

static const crossing_row crossings[] = { /* into each node of 4 (or 2) ranks, and into its busiest rank, in bytes */
    { "node=2,gpu=4", "x=8", "f32[16]@x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:S(0),y:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:S(0),x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:S(0)", "f32[16]", 0, 0 },
    { "node=4,gpu=2", "x=8", "f32[16]@x:S(0)", "f32[16]", 12 * 4, 6 * 4 },
    { "node=2,gpu=4", "x=8", "f32[16]@x:P", "f32[16]", 16 * 4, 4 * 4 },
    { "node=2,gpu=4", "x=8", "f32[16]@x:P", "f32[16]@x:S(0)", 8 * 4, 2 * 4 },
    { "node=4,gpu=2", "x=8", "f32[16]@x:P", "f32[16]", 24 * 4, 12 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:P,y:P", "f32[16]@x:S(0),y:S(0)", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:P", "f32[16]", 0, 0 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]", "f32[16]@x:S(0),y:S(0)", 0, 0 },
};

static void test_crossing(void)
{
    for (int i = 0; i < DT_COUNT(crossings); i++) {
        const crossing_row *row = &crossings[i];
        dt_context *ctx = context_with(8, row->topology, NULL);
        dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
        trial t;
        try_plan(&t, mesh, row->source, mesh, row->target);
        int node = strcmp(row->topology, "node=2,gpu=4") ? 2 : 4;
        for (int first = 0; first < 8; first += node)
            expect(into(&t, first, first + node) == row->into,
                   "%s on %s, %s -> %s: %lld bytes into a node, expected %lld", row->mesh, row->topology, row->source,
                   row->target, (long long)into(&t, first, first + node), (long long)row->into);
        expect(dt_plan_price(t.plan).link_bytes[0] == row->busiest, "%s on %s, %s -> %s: %lld bytes into a rank",
               row->mesh, row->topology, row->source, row->target, (long long)dt_plan_price(t.plan).link_bytes[0]);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* ---- balance ----------------------------------------------------------------------------------------------------- */

/* Ranks that hold the same send the same, to an element. */
static void check_balance(const trial *t)
{
    for (int a = 0; a < t->source.world; a++) {
        int64_t all = 0, copies = 0;
        for (int b = 0; b < t->source.world; b++) {
            if (memcmp(t->source.holds + a * t->source.elements, t->source.holds + b * t->source.elements,
                       (size_t)t->source.elements)) continue;
            all += t->count.sent[b];
            copies++;
        }
        expect((double)t->count.sent[a] < (double)all / (double)copies + 4,
               "%s -> %s: rank %d sends %lld of %lld by %lld", t->source.text, t->target.text, a,
               (long long)t->count.sent[a], (long long)all, (long long)copies);
    }
}

static void test_balance(void)
{
    static const char *const places[] = { "R", "S(0)", "S(1)" };
    static const char *const shapes[] = { "12,12", "13,7", "2,3" };
    static const int sizes[][2] = { { 2, 2 }, { 2, 3 }, { 4, 2 }, { 2, 4 } };
    for (int i = 0; i < DT_COUNT(sizes) * DT_COUNT(shapes) * 81; i++) {
        const int *size = sizes[i / 81 / DT_COUNT(shapes)];
        const char *shape = shapes[i / 81 % DT_COUNT(shapes)];
        char mesh_text[32], source[64], target[64];
        trial t;
        snprintf(mesh_text, sizeof mesh_text, "x=%d,y=%d", size[0], size[1]);
        snprintf(source, sizeof source, "f32[%s]@x:%s,y:%s", shape, places[i / 27 % 3], places[i / 9 % 3]);
        snprintf(target, sizeof target, "f32[%s]@x:%s,y:%s", shape, places[i / 3 % 3], places[i % 3]);
        dt_context *ctx = context_of(size[0] * size[1]);
        dt_mesh *mesh = dt_mesh_create(ctx, mesh_text);
        if (try_plan(&t, mesh, source, mesh, target)) check_balance(&t);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* ---- many ranks -------------------------------------------------------------------------------------------------- */

static const char *const wide[][2] = {
    { "f32[65536,512]@dp:S(0),tp:S(1)", "f32[65536,512]@dp:S(0)" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]@tp:S(0),dp:S(0)" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]@dp:S(1)" },
    { "f32[65536,512]@dp:P,tp:S(1)", "f32[65536,512]@tp:S(1)" },
    { "f32[65536,512]@dp:P,tp:P", "f32[65536,512]" },
    { "f32[65536,512]@dp:P,tp:P", "f32[65536,512]@dp:S(0),tp:S(0)" },
};

/* What is counted by looking at few ranks holds for those in between. */
static void check_wide(dt_mesh *mesh, const char *source, const char *target)
{
    const dt_plan *plan = plan_of(mesh, source, target);
    dt_plan_cost cost = dt_plan_price(plan);
    expect(cost.bytes >= cost.lower_bound && cost.total >= cost.total_bound,
           "%s: %s -> %s: bytes %lld, bound %lld, total %lld, bound %lld", dt_mesh_text(mesh), source, target,
           (long long)cost.bytes, (long long)cost.lower_bound, (long long)cost.total, (long long)cost.total_bound);
    int64_t most = 0, sent = 0;
    for (int r = 0; r < 16384; r += 127) {
        int64_t received = dt_plan_received(plan, r);
        if (received > most) most = received;
        if (dt_plan_sent(plan, r) > sent) sent = dt_plan_sent(plan, r);
    }
    expect(most <= cost.bytes && most * 16384 >= cost.total, "%s: %s -> %s: received", dt_mesh_text(mesh),
           source, target);
    expect(sent <= cost.sent, "%s: %s -> %s: sent", dt_mesh_text(mesh), source, target);
}

static void test_many_ranks(void)
{
    static const char *const meshes[] = { "dp=2048,tp=8", "dp=128,tp=128" };
    static const char *const machines[] = { NULL, "node=2048,gpu=8" };
    for (int i = 0; i < DT_COUNT(meshes) * DT_COUNT(machines); i++) {
        dt_context *ctx = context_with(16384, machines[i % 2], NULL);
        dt_mesh *mesh = dt_mesh_create(ctx, meshes[i / 2]);
        for (int k = 0; k < DT_COUNT(wide); k++) check_wide(mesh, wide[k][0], wide[k][1]);
        expect_no_error(ctx, "many ranks");
        dt_context_destroy(&ctx);
    }
}

/* What no later sum needs is not summed: by link class no more in all than at once, and less over the slow links. */
static void test_many_ranks_by_link(void)
{
    dt_context *ctx = context_with(16384, "node=2048,gpu=8", NULL);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=128,tp=128");
    dt_plan_cost cost = dt_plan_price(plan_of(mesh, "f32[16384,16384]@tp:P", "f32[16384,16384]@dp:P,tp:S(0)"));
    int64_t share = (int64_t)16384 * 16384 * 4 / 16384;      /* what a rank is to hold                              */
    expect(cost.bytes == 127 * share && cost.bytes == cost.lower_bound, "bytes %lld", (long long)cost.bytes);
    expect(cost.link_bytes[0] == 15 * share, "between nodes %lld", (long long)cost.link_bytes[0]);
    dt_context_destroy(&ctx);
}

static void test_many_ranks_bytes(void)
{
    dt_context *ctx = context_of(16384);
    dt_mesh *mesh = dt_mesh_create(ctx, "f=128,t=128");
    const dt_plan *gather = plan_of(mesh, "f32[16384]@f:S(0),t:S(0)", "f32[16384]");
    expect(dt_plan_price(gather).bytes == 16383 * 4 && dt_plan_price(gather).sent == 16383 * 4, "all gather of 16,384");
    expect(dt_plan_step_at(gather, 0).messages == 16383, "from all others");
    const dt_plan *swap = plan_of(mesh, "f32[16384]@f:S(0),t:S(0)", "f32[16384]@t:S(0),f:S(0)");
    expect(dt_plan_price(swap).total == (16384 - 128) * 4 && dt_plan_price(swap).bytes == 4, "all but the diagonal");
    const dt_plan *reduce = plan_of(mesh, "f32[16384]@f:P,t:P", "f32[16384]");
    expect(dt_plan_price(reduce).bytes == 2 * 16383 * 4, "all reduce of 16,384: %lld",
           (long long)dt_plan_price(reduce).bytes);
    expect_no_error(ctx, "many ranks");
    dt_context_destroy(&ctx);
}

/* A cut into more pieces than there are indices leaves all or nothing, which is seen without going through the rest of
 * the tensor. */
static void test_long_and_thin(void)
{
    static const char *const thin[][2] = {
        { "f32[1099511627776,1]@x:P", "f32[1099511627776,1]@y:S(1)" },
        { "f32[1099511627776,1,1]@x:S(2)", "f32[1099511627776,1,1]@y:S(1)" },
        { "f32[1099511627776,(1 1)]@x:P,y:S(1.1)", "f32[1099511627776,(1 1)]@x:S(1.0)" },
    };
    dt_context *ctx = context_of(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    for (int i = 0; i < DT_COUNT(thin); i++) {
        dt_plan_cost cost = dt_plan_price(plan_of(mesh, thin[i][0], thin[i][1]));
        expect(cost.total > 0 && cost.total == cost.total_bound, "%s to %s: %lld bytes, at least %lld", thin[i][0],
               thin[i][1], (long long)cost.total, (long long)cost.total_bound);
    }
    expect_no_error(ctx, "long and thin");
    dt_context_destroy(&ctx);
}

/* ---- which plans are one all-reduce ------------------------------------------------------------------------------ */

static void test_all_reduces(void)
{
    static const struct { const char *mesh, *source, *target; bool is; } of[] = {
        { "x=4", "f32[64]@x:P", "f32[64]", true },
        { "x=4", "bf16[3]@x:P(avg)", "f32[3]", true },
        { "x=2,y=3", "f32[64]@x:P,y:P", "f32[64]", true },
        { "x=2,y=3", "f32[64]@x:P", "f32[64]", true },
        { "x=2,y=3", "f32[64,6]@x:S(0),y:P", "f32[64,6]@x:S(0)", true },
        { "y=3,x=2", "f32[64,6]@x:P,y:S(0)", "f32[64,6]@y:S(0)", true },
        { "x=2,y=3", "f32[64]@x:P,y:P", "f32[64]@y:P", true },
        { "x=4", "f32[64]@x:P", "f32[64]@x:S(0)", false },
        { "x=4", "f32[64]@x:S(0)", "f32[64]", false },
        { "x=2,y=2", "f32[64,6]@x:S(0),y:P", "f32[64,6]", false },
        { "x=2,y=2", "f32[64,6]@x:S(0),y:P", "f32[64,6]@x:S(1)", false },
    };
    for (int i = 0; i < DT_COUNT(of); i++) {
        dt_context *ctx = context_of(strchr(of[i].mesh, '3') ? 6 : 4);
        const dt_plan *plan = plan_of(dt_mesh_create(ctx, of[i].mesh), of[i].source, of[i].target);
        expect(plan && dti_plan_all_reduces(plan) == of[i].is, "%s -> %s on %s", of[i].source, of[i].target,
               of[i].mesh);
        dt_context_destroy(&ctx);
    }
}

static const test_row rows[] = {
    { "all_reduces", test_all_reduces },
    { "interned", test_interned },
    { "refused", test_refused },
    { "two_contexts", test_two_contexts },
    { "null", test_null },
    { "out_of_range", test_out_of_range },
    { "failed_context", test_failed_context },
    { "names", test_names },
    { "regions", test_regions },
    { "dtypes_that_do_not_meet", test_dtypes_that_do_not_meet },
    { "one_step", test_one_step },
    { "swap", test_swap },
    { "every_input", test_every_input },
    { "kinds", test_kinds },
    { "dtypes", test_dtypes },
    { "peak", test_peak },
    { "text", test_text },
    { "nothing", test_nothing },
    { "time", test_time },
    { "small", test_small },
    { "views", test_views },
    { "meshes", test_meshes },
    { "part of the ranks", test_part_of_ranks },
    { "relay", test_relay },
    { "many_to_one", test_many_to_one },
    { "topologies", test_topologies },
    { "crossing", test_crossing },
    { "balance", test_balance },
    { "many_ranks", test_many_ranks },
    { "many_ranks_bytes", test_many_ranks_bytes },
    { "long_and_thin", test_long_and_thin },
    { "many_ranks_by_link", test_many_ranks_by_link },
};

const suite the_suite = { "plan", rows, DT_COUNT(rows) };
