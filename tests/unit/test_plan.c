/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: caching, errors, the names of collectives, dtypes, memory, text, goals. What is moved is judged by the oracle
 * in every row of every table. */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/places.h"
#include "plan/trial.h"
#include "redistribute/plan.h"
#include "errors.h"
#include "suite.h"

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
};

const suite the_suite = { "plan", rows, DT_COUNT(rows) };
