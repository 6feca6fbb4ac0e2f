/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs of plans add to the counters of meshes: a call for what users see as one step, the bytes that this rank
 * receives. Without a program, as in a dry run, these are worked out once the counters are asked for. */
#include "redistribute/compile.h"

/* What is counted as one call, along the dims of a mesh; reach: the largest distance of ranks along what moves, which
 * tells parts of a dim from the whole. */
typedef struct counted { dt_mesh *mesh; uint32_t dims; int reach; dt_comm_kind kind; int stage; } counted;

static int reach_of(const dt_mesh *mesh, uint32_t dims)
{
    int reach = 0;
    for (int d = 0; d < mesh->dim_count; d++)
        for (int a = 0; a < mesh->dims[d].axis_count && (dims >> d & 1); a++)
            reach += mesh->dims[d].axes[a].stride * (mesh->dims[d].axes[a].size - 1);
    return reach;
}

static bool is_first(const counted *before, int n, const counted *call)
{
    for (int i = 0; i < n; i++)
        if (before[i].mesh == call->mesh && before[i].dims == call->dims && before[i].reach == call->reach
            && before[i].kind == call->kind && before[i].stage == call->stage) return false;
    return true;
}

static void count_call(const counted *call, bool first, int64_t bytes)
{
    dt_counters *counters = dti_mesh_counting(call->mesh);
    for (int d = 0; counters && d <= call->mesh->dim_count; d++) {
        if (d < call->mesh->dim_count && !(call->dims >> d & 1)) continue;
        counters[d].calls[call->kind] += first;                    /* the last one stands for all dims             */
        counters[d].bytes[call->kind] += bytes;
    }
}

/* What this rank receives in each call, once for all times; without a program when it is asked for. */
static void count_received(dt_plan *plan)
{
    if (!plan->program) plan->uncounted_runs += dti_plan_settle_late(plan);
    for (int i = 0; i < plan->shown_count && plan->program; i++) {
        dti_shown *behind = &plan->behind[i];
        behind->received = 0;
        for (int s = behind->first; s < behind->first + behind->count; s++)
            behind->received += plan->program->actions[s].received;
    }
}

static counted call_behind(const dt_plan *plan, int i)
{
    const dti_shown *behind = &plan->behind[i];
    return (counted){ behind->mesh, behind->dims, reach_of(behind->mesh, behind->dims), plan->shown[i].kind,
                      plan->steps[behind->first].stage };
}

/* The same call on what a mesh is a view of. false: it is none. */
static bool to_origin(counted *call)
{
    dt_mesh *origin = call->mesh->origin;
    if (!origin) return false;
    call->dims = dti_mesh_dims_of_view(origin, call->mesh, call->dims);
    call->mesh = origin;
    return true;
}

static void count_plan(dt_plan *plan, counted *before, int *n)
{
    if (plan->shown_count && plan->behind[0].received < 0) count_received(plan);
    for (int i = 0; i < plan->shown_count; i++) {
        counted call = call_behind(plan, i);
        int64_t bytes = plan->behind[i].received < 0 ? 0 : plan->behind[i].received;
        if (call.kind == DT_COMM_LOCAL) continue;
        do {
            bool first = is_first(before, *n, &call);
            count_call(&call, first, bytes);
            if (first) before[(*n)++] = call;
        } while (to_origin(&call));
    }
}

void dti_plan_count_late(dt_plan *plan)
{
    if (plan->uncounted_runs == 0) return;
    dti_plan_expect(plan);
    for (int i = 0; i < plan->shown_count; i++) {
        counted call = call_behind(plan, i);
        if (call.kind == DT_COMM_LOCAL) continue;
        do count_call(&call, false, plan->behind[i].received * plan->uncounted_runs);
        while (to_origin(&call));
    }
    plan->uncounted_runs = 0;
}

/* How many calls of a plan there are to tell apart. */
static int calls_of(const dt_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->shown_count; i++)
        for (const dt_mesh *view = plan->behind[i].mesh; view; view = view->origin) n++;
    return n;
}

void dti_plans_count(dt_context *ctx, dt_plan *const *plans, int n)
{
    counted few[DTI_MAX_STEPS], *before = few;
    int room = 0, count = 0;
    for (int i = 0; i < n; i++) {
        if (!dti_plan_name(plans[i])) return;
        room += calls_of(plans[i]);
    }
    size_t bytes = (size_t)room * sizeof *before;
    if (room > DTI_MAX_STEPS && !(before = dti_context_borrow(ctx, bytes))) return;
    for (int i = 0; i < n; i++) {
        count_plan(plans[i], before, &count);
        dti_plan_notify(plans[i], DT_EVENT_MOVE);
    }
    if (before != few) dti_context_give(ctx, before, bytes);
}
