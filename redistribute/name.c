/* SPDX-License-Identifier: Apache-2.0
 *
 * Names: which collective a step's pulls are. A name is for people, counters, and backends that have a native call for
 * it; the pulls are what happens. */
#include <string.h>

#include "core/pen.h"
#include "redistribute/plan.h"

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static int closed_among(const dti_step *step, int first, int count)
{
    int closed = 0;
    for (int i = first; i < first + count; i++) closed += dti_holding_closes(step->to, step->asked[i]);
    return closed;
}

static bool any_open(const dti_holding *holding)
{
    for (int i = 0; i < holding->digit_count; i++)
        if (holding->digits[i].mode != DTI_CLOSED) return true;
    return false;
}

/* Are the pieces after the step those before it, only on other ranks? */
static bool same_pieces(const dti_holding *a, const dti_holding *b)
{
    if (a->carve_count != b->carve_count || any_open(a) || any_open(b)) return false;
    for (int i = 0; i < a->carve_count; i++) {
        const dti_carve *x = &a->carves[i], *y = &b->carves[i];
        bool alone = i + 1 == a->carve_count || a->carves[i + 1].block != x->block;
        if (!alone || x->block != y->block || x->size != y->size || x->inner != y->inner || x->pieces != y->pieces)
            return false;
    }
    return true;
}

static bool cut_here(const dti_holding *holding, dti_axis axis, int block)
{
    for (int i = 0; i < holding->carve_count; i++)
        for (int d = 0; d < holding->carves[i].count && holding->carves[i].block == block; d++)
            if (holding->digits[holding->carves[i].first + d].stride == axis.stride) return true;
    return false;
}

/* Does every axis that cuts before and after cut another block after? */
static bool blocks_change(const dti_frame *frame, const dti_step *step)
{
    for (int i = step->sum_count; i < step->sum_count + step->cut_count; i++)
        for (int b = 0; b < frame->block_count; b++)
            if (cut_here(step->from, step->asked[i], b) && cut_here(step->to, step->asked[i], b)) return false;
    return true;
}

static dt_comm_kind summing_kind(const dti_step *step)
{
    int closed = closed_among(step, 0, step->sum_count);
    if (step->cut_count) return DT_COMM_EXCHANGE;
    return closed == step->sum_count ? DT_COMM_REDUCE_SCATTER : closed == 0 ? DT_COMM_ALL_REDUCE : DT_COMM_EXCHANGE;
}

dt_comm_kind dti_step_kind(const dti_frame *frame, const dti_step *step)
{
    if (step->sum_count) return summing_kind(step);
    int closed = closed_among(step, 0, step->cut_count);
    if (!step->own)
        return step->cut_count == 0 ? DT_COMM_BROADCAST
             : same_pieces(step->from, step->to) ? DT_COMM_PERMUTE : DT_COMM_EXCHANGE;
    if (step->cut_count == 0) return DT_COMM_LOCAL;
    if (step->copy_count) return DT_COMM_EXCHANGE;
    if (closed == 0) return DT_COMM_ALL_GATHER;
    if (closed < step->cut_count) return DT_COMM_EXCHANGE;
    if (same_pieces(step->from, step->to)) return DT_COMM_PERMUTE;
    return blocks_change(frame, step) ? DT_COMM_ALL_TO_ALL : DT_COMM_EXCHANGE;
}

/* ---- mesh dims --------------------------------------------------------------------------------------------------- */

/* Do ranks that differ along an axis differ along a mesh dim? Both may be products of finer ones. */
static bool dim_has(const dti_mesh_dim *dim, dti_axis axis)
{
    for (int i = 0; i < dim->axis_count; i++) {
        int end = dim->axes[i].stride * dim->axes[i].size;
        if (axis.stride < end && dim->axes[i].stride < axis.stride * axis.size) return true;
    }
    return false;
}

static bool step_runs_along(const dti_step *step, const dti_mesh_dim *dim)
{
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        if (dim_has(dim, step->asked[i])) return true;
    return false;
}

static void put_dims(dti_pen *pen, const dt_mesh *mesh, const dti_step *steps, int n)
{
    const char *comma = "";
    for (int d = 0; d < mesh->dim_count; d++) {
        bool along = false;
        for (int i = 0; i < n; i++) along |= step_runs_along(&steps[i], &mesh->dims[d]);
        if (!along) continue;
        dti_put(pen, "%s%s", comma, mesh->dims[d].name);
        comma = ",";
    }
}

/* Does a step run inside the target's mesh, where that has other ranks? */
static bool in_target(const dt_plan *plan, const dti_step *step)
{
    return !dti_layout_same_ranks(plan->source->layout, plan->target->layout) && step->own
        && step->from->members == plan->target->layout->members;
}

/* Steps inside one mesh name its dims; a step from one rank list to another names both meshes' dims. */
static void put_step_dims(dti_pen *pen, const dt_plan *plan, const dti_step *steps, int n)
{
    if (steps->own) put_dims(pen, in_target(plan, steps) ? plan->target->mesh : plan->source->mesh, steps, n);
    else dti_put(pen, "%s > %s", plan->source->mesh->text, plan->target->mesh->text);
}

/* The mesh whose dims count a step's calls, and which of them do: between meshes all of the source's. */
static void set_behind(const dt_plan *plan, int first, int n, dti_shown *behind)
{
    *behind = (dti_shown){ .first = first, .count = n, .mesh = plan->source->mesh, .received = -1 };
    if (in_target(plan, &plan->steps[first])) behind->mesh = plan->target->mesh;
    for (int d = 0; d < behind->mesh->dim_count; d++)
        for (int i = first; i < first + n; i++)
            if (!plan->steps[i].own || step_runs_along(&plan->steps[i], &behind->mesh->dims[d]))
                behind->dims |= UINT32_C(1) << d;
}

static const char *dims_text(dt_context *ctx, const dt_plan *plan, const dti_step *steps, int n)
{
    dti_pen measure = { NULL, 0, 0 };
    put_step_dims(&measure, plan, steps, n);
    dti_pen write = { dti_context_take(ctx, measure.at + 1), measure.at + 1, 0 };
    if (write.text) put_step_dims(&write, plan, steps, n);
    return write.text;
}

/* ---- steps as users see them ------------------------------------------------------------------------------------- */

/* How many steps from the first on are one all-reduce: sums and copies that leave every cut as it was. */
static int all_reduce_steps(const dt_plan *plan)
{
    bool sums = plan->step_count && plan->steps->sum_count;
    return sums && dti_holding_equal(plan->from, plan->to) ? plan->step_count : 0;
}

static bool asks_along(const dti_step *step, dti_axis axis)
{
    for (int i = 0; i < step->sum_count + step->cut_count + step->copy_count; i++)
        if (step->asked[i].stride == axis.stride && step->asked[i].size == axis.size) return true;
    return false;
}

/* Sums that are shared out, then copied to all that share. */
static bool has_both_halves(const dt_plan *plan)
{
    const dti_step *sum = plan->steps, *copy = sum + 1;
    if (plan->step_count != 2 || all_reduce_steps(plan) != 2 || copy->sum_count || copy->from != sum->to) return false;
    if (sum->kind != DT_COMM_REDUCE_SCATTER || sum->copy_count || !sum->own || sum->early) return false;
    if (copy->kind != DT_COMM_ALL_GATHER || copy->early || copy->stage == sum->stage) return false;
    for (int i = 0; i < sum->sum_count; i++)
        if (!asks_along(copy, sum->asked[i])) return false;
    return true;
}

/* Two ranks that take all of each other receive as much as in halves. */
static bool sums_by_two(const dt_plan *plan)
{
    const dti_step *sum = plan->steps;
    return plan->step_count == 1 && sum->kind == DT_COMM_ALL_REDUCE && sum->own && sum->summed_ranks == 2
        && !sum->copy_count && !sum->early && dt_dtype_bytes(sum->travels) == dt_dtype_bytes(sum->gives);
}

bool dti_plan_all_reduces(const dt_plan *plan)
{
    return !plan->mapped && (has_both_halves(plan) || sums_by_two(plan));
}

static void count_message(const dti_pull *pull, void *arg)
{
    int64_t *count = arg;
    (void)pull;
    ++*count;
}

static int64_t received_in(const dti_frame *frame, const dti_step *steps, dti_memo *const *memos, int n, int rank)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (steps[i].kind != DT_COMM_LOCAL) bytes += dti_step_received(frame, &steps[i], memos ? memos[i] : NULL, rank);
    return bytes;
}

/* A rank asks itself at most once per step. In large worlds pulls are not gone through. */
static int64_t messages_to(const dt_plan *plan, const dti_frame *frame, const dti_step *step, int rank)
{
    int64_t count = 0, ranks = dti_plan_ranks(plan);
    if (ranks * ranks > DTI_COUNTED_PAIRS) return dti_step_messages(step);
    dti_step_pulls(frame, plan->topology, step, rank, count_message, &count);
    return count - (dti_step_volume(frame, step, NULL, rank).kept > 0);
}

/* The rank that receives most in some steps. */
static int busiest(const dti_frame *frame, const dti_step *steps, int n)
{
    dti_ranks ranks = dti_ranks_alike(frame, steps, n, NULL);
    dti_memo **memos = dti_memos_new(frame, steps, n, ranks.count);
    int64_t most = -1;
    int rank = 0;
    while (dti_ranks_next(&ranks)) {
        int64_t bytes = received_in(frame, steps, memos, n, ranks.rank);
        if (bytes <= most) continue;
        most = bytes;
        rank = ranks.rank;
    }
    dti_memos_free(memos, n);
    return rank;
}

/* The name that all steps of a stage share, as far as they move anything. */
static dt_comm_kind stage_kind(const dti_step *steps, int n)
{
    dt_comm_kind kind = DT_COMM_LOCAL;
    for (int i = 0; i < n; i++) {
        if (steps[i].kind == DT_COMM_LOCAL || steps[i].kind == kind) continue;
        kind = kind == DT_COMM_LOCAL ? steps[i].kind : DT_COMM_EXCHANGE;
    }
    return kind;
}

static bool is_local(const dti_step *steps, int n) { return stage_kind(steps, n) == DT_COMM_LOCAL; }

/* What the steps behind a shown one move, where that is known. */
static dti_moves moves_behind(const dt_plan *plan, const dti_shown *behind)
{
    return behind->count < plan->step_count && plan->stages ? plan->stages[behind->first] : plan->moves;
}

/* Do any ranks receive anything in some steps? */
static bool moves_any(const dt_plan *plan, const dti_shown *behind)
{
    const dti_step *steps = &plan->steps[behind->first];
    bool any = false;
    if (is_local(steps, behind->count)) return false;
    if (plan->even || plan->measured) return plan->even || moves_behind(plan, behind).received > 0;
    dti_frame frame;
    dti_plan_frame(plan, &frame);
    for (int i = 0; i < behind->count && !any; i++) any = dti_step_moves(&frame, &steps[i]);
    return any;
}

static void name_step(const dt_plan *plan, bool all_reduce, const dti_shown *behind, dt_plan_step *step)
{
    const dti_step *first = &plan->steps[behind->first], *last = first + behind->count - 1;
    *step = (dt_plan_step){ .kind = DT_COMM_LOCAL, .sums = first->sum_count > 0, .travels = first->travels,
                            .sums_in = first->sums_in, .gives = last->gives };
    if (!moves_any(plan, behind)) return;
    step->kind = all_reduce ? DT_COMM_ALL_REDUCE : stage_kind(first, behind->count);
}

void dti_plan_expect(const dt_plan *plan)
{
    int rank = plan->target->mesh->ctx->rank;
    dti_frame frame;
    if (!is_local(plan->steps, plan->step_count)) dti_plan_frame(plan, &frame);
    for (int i = 0; i < plan->shown_count; i++) {
        dti_shown *behind = &plan->behind[i];
        const dti_step *steps = &plan->steps[behind->first];
        bool counted = plan->measured && steps->to->base == rank;
        behind->received = is_local(steps, behind->count) ? 0
                         : counted                        ? moves_behind(plan, behind).first
                                                          : received_in(&frame, steps, NULL, behind->count, rank);
    }
}

bool dti_plan_name(dt_plan *plan)
{
    if (plan->shown) return true;
    dt_context *ctx = plan->target->mesh->ctx;
    dt_plan_step *shown = dti_context_take(ctx, ((size_t)plan->step_count + 1) * sizeof *shown);
    plan->behind = dti_context_take(ctx, ((size_t)plan->step_count + 1) * sizeof *plan->behind);
    int joined = all_reduce_steps(plan);
    for (int i = 0, n; shown && plan->behind && i < plan->step_count; i += n) {
        dti_shown *behind = &plan->behind[plan->shown_count];
        n = joined ? joined : dti_stage_steps(plan, i);
        set_behind(plan, i, n, behind);
        name_step(plan, joined > 0, behind, &shown[plan->shown_count++]);
    }
    if (!shown || !plan->behind) return false;
    plan->shown = shown;
    return true;
}

bool dti_plan_moves(dt_plan *plan)
{
    bool moves = false;
    if (!dti_plan_name(plan)) return false;
    for (int i = 0; i < plan->shown_count; i++) moves |= plan->shown[i].kind != DT_COMM_LOCAL;
    return moves;
}

/* What only people ask for. */
static bool describe(const dt_plan *plan, const dti_frame *frame, const dti_shown *behind, dt_plan_step *step)
{
    const dti_step *steps = &plan->steps[behind->first];
    step->bytes = moves_behind(plan, behind).received;
    step->dims = dims_text(plan->target->mesh->ctx, plan, steps, behind->count);
    int rank = step->bytes ? busiest(frame, steps, behind->count) : 0;
    for (int i = 0; i < behind->count && step->bytes; i++) step->messages += messages_to(plan, frame, &steps[i], rank);
    return step->dims != NULL;
}

bool dti_plan_show(dt_plan *plan)
{
    if (!dti_plan_name(plan)) return false;
    dti_frame frame;
    dti_plan_frame(plan, &frame);
    dti_plan_measure(plan);
    for (int i = 0; i < plan->shown_count; i++)
        if (!plan->shown[i].dims && !describe(plan, &frame, &plan->behind[i], &plan->shown[i])) return false;
    return true;
}
