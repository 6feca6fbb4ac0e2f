/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor: the only place that both moves and computes. Stage by stage it starts every exchange, makes the copies
 * that need none, and completes them; of several plans all at once. What lies between source and target lives in
 * buffers of its own until it is read. */
#include "redistribute/execute.h"

#include <string.h>

#include "redistribute/compile.h"

struct dti_running {
    dt_plan *plan;
    dt_context *ctx;
    int started;                   /* steps that were, all of one stage behind the other                           */
    int finished;                  /* of several plans: how many of them were finished                             */
    bool counted;                  /* with others                                                                  */
    dti_storage *target;
    dti_storage **sources;         /* one, or one per part; as they travel                                         */
    int source_count;
    dti_storage **between;         /* per step; NULL where it writes the target                                    */
    dt_dtype wire;                 /* of the target's buffer: what the last step writes                            */
};

/* ---- local copies ------------------------------------------------------------------------------------------------ */

static void copy_loops(const dti_copy *copy, int dim, const char *from, char *to, size_t size)
{
    if (dim == copy->dims) {
        memcpy(to, from, (size_t)copy->run * size);
        return;
    }
    for (int64_t i = 0; i < copy->count[dim]; i++)
        copy_loops(copy, dim + 1, from + i * copy->from_stride[dim] * (int64_t)size,
                   to + i * copy->to_stride[dim] * (int64_t)size, size);
}

static void copy_all(const dti_copies *copies, const dti_storage *source, dti_storage *target, size_t size)
{
    for (int i = 0; i < copies->n; i++)
        copy_loops(&copies->at[i], 0, (const char *)source->bytes + copies->at[i].from * (int64_t)size,
                   (char *)target->bytes + copies->at[i].to * (int64_t)size, size);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static size_t list_bytes(int n) { return (size_t)n * sizeof(dti_storage *); }

static dti_storage **list_new(dt_context *ctx, int n) { return dti_context_borrow_zeros(ctx, list_bytes(n)); }

static void running_free(dti_running *r)
{
    for (int i = 0; r->sources && i < r->source_count; i++) dti_storage_release(r->sources[i]);
    for (int i = 0; r->between && i < r->plan->step_count; i++) dti_storage_release(r->between[i]);
    dti_storage_release(r->target);
    dti_context_give(r->ctx, r->sources, list_bytes(r->source_count));
    dti_context_give(r->ctx, r->between, list_bytes(r->plan->step_count));
    dti_context_give(r->ctx, r, sizeof *r);
}

static dti_storage *as_dtype(const dti_running *r, dti_storage *source, dt_dtype from, dt_dtype to)
{
    if (from == to || !source) return source ? dti_storage_retain(source) : NULL;
    int64_t n = (int64_t)(source->n / dt_dtype_bytes(from));
    dti_storage *converted = dti_storage_new(r->ctx, (size_t)n * dt_dtype_bytes(to));
    if (converted) dti_numbers_convert(from, source->bytes, to, converted->bytes, n);
    return converted;
}

/* The first step says in what the source travels: what is narrower is converted to before, once. */
static bool take_sources(dti_running *r, dti_storage *const *sources)
{
    const dt_plan *plan = r->plan;
    dt_dtype stored = plan->source->layout->dtype;
    for (int i = 0; i < r->source_count; i++) {
        r->sources[i] = as_dtype(r, sources[i], stored, plan->step_count ? plan->steps[0].travels : stored);
        if (sources[i] && !r->sources[i]) return false;
    }
    return true;
}

/* How what is partial is combined: of a layout, of another where it has nothing partial. */
static dti_combine combine_of(const dti_layout *layout, const dti_layout *other)
{
    static const dti_combine of[DTI_PARTIAL_COUNT] = {
        [DTI_SUM] = DTI_COMBINE_SUM, [DTI_AVG] = DTI_COMBINE_SUM, [DTI_MAX] = DTI_COMBINE_MAX,
        [DTI_MIN] = DTI_COMBINE_MIN, [DTI_PROD] = DTI_COMBINE_PROD,
    };
    const dti_layout *partial = layout->partial_count ? layout : other;
    return of[partial->partial_count ? partial->kinds[0] : DTI_SUM];
}

/* The target's part; where no step writes all of it, the identity of its kind of P, or the fill. */
static bool make_target(dti_running *r, double fill)
{
    const dti_program *program = r->plan->program;
    const dti_step *last = &r->plan->steps[r->plan->step_count - 1];
    r->wire = last->sum_count ? last->gives : last->travels;
    r->target = dti_storage_new(r->ctx, (size_t)program->elements * dt_dtype_bytes(r->wire));
    if (!r->target) return false;
    if (!program->partly) return true;
    if (r->plan->mapped) dti_numbers_fill(r->wire, fill, r->target->bytes, program->elements);
    else dti_numbers_identity(r->wire, combine_of(r->plan->target->layout, r->plan->source->layout), r->target->bytes,
                              program->elements);
    return true;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static dti_storage *source_of(const dti_running *r, int i)
{
    const dti_action *action = &r->plan->program->actions[i];
    if (action->source >= 0) return r->between[action->source];
    return r->sources[r->plan->mapped ? i : 0];
}

static dti_storage *target_of(const dti_running *r, int i)
{
    return r->plan->program->actions[i].target < 0 ? r->target : r->between[i];
}

static bool make_between(dti_running *r, int i)
{
    const dti_action *action = &r->plan->program->actions[i];
    if (action->target < 0) return true;
    r->between[i] = dti_storage_new(r->ctx, (size_t)action->elements * dt_dtype_bytes(action->step->gives));
    return r->between[i] != NULL;
}

static dti_call call_of(const dt_plan *plan, int i)
{
    const char *text = plan->program->call;
    return (dti_call){ dti_hash(text, strlen(text), (uint64_t)i + 1), text };
}

/* P(avg) scales the sums of the last stage that sums, before they are rounded; without sums the result. */
static bool scales(const dt_plan *plan, int i)
{
    if (plan->multiply == 1 && plan->divide == 1) return false;
    for (int later = i + 1; later < plan->step_count; later++)
        if (plan->steps[later].sum_count && plan->steps[later].stage > plan->steps[i].stage) return false;
    return plan->steps[i].sum_count > 0;
}

static bool scales_result(const dt_plan *plan)
{
    bool sums = false;
    for (int i = 0; i < plan->step_count; i++) sums |= plan->steps[i].sum_count > 0;
    return !sums && (plan->multiply != 1 || plan->divide != 1);
}

/* Exchanges to be started: at once, or, of several plans, those of one group and kind together. */
typedef struct pending { dti_group *group; bool all_reduces, begun; dti_exchange exchange; } pending;
typedef struct batch { dt_context *ctx; pending *at; int n, room; } batch;

static void batch_free(batch *b) { dti_context_give(b->ctx, b->at, (size_t)b->room * sizeof *b->at); }

static bool grow(batch *b)
{
    batch larger = { b->ctx, NULL, b->n, b->room ? 2 * b->room : 16 };
    larger.at = dti_context_borrow(b->ctx, (size_t)larger.room * sizeof *b->at);
    if (!larger.at) return false;
    if (b->n) memcpy(larger.at, b->at, (size_t)b->n * sizeof *b->at);
    batch_free(b);
    *b = larger;
    return true;
}

static bool put_off(batch *b, dti_group *group, bool all_reduces, const dti_exchange *exchange)
{
    if (b->n == b->room && !grow(b)) return false;
    b->at[b->n++] = (pending){ group, all_reduces, false, *exchange };
    return true;
}

static bool start_now(dti_group *group, bool all_reduces, const dti_exchange *exchange)
{
    const dti_comm_ops *ops = group->comm->ops;
    return (all_reduces ? ops->all_reduce : ops->start)(group, exchange) == DT_OK;
}

/* Those that go with one, in order; the first's hash is that of all. */
static int gather_alike(batch *b, int first, dti_exchange *list)
{
    int n = 0;
    uint64_t hash = 0;
    for (int i = first; i < b->n; i++) {
        pending *p = &b->at[i];
        if (p->begun || p->group != b->at[first].group || p->all_reduces != b->at[first].all_reduces) continue;
        p->begun = true;
        hash = dti_hash_mix(hash, p->exchange.call.hash);
        list[n++] = p->exchange;
    }
    if (n > 1) list[0].call.hash = hash;
    return n;
}

static bool start_alike(const pending *p, const dti_exchange *list, int n)
{
    const dti_comm_ops *ops = p->group->comm->ops;
    if (n > 1 && ops->start_list) return ops->start_list(p->group, list, n, p->all_reduces) == DT_OK;
    for (int i = 0; i < n; i++)
        if (!start_now(p->group, p->all_reduces, &list[i])) return false;
    return true;
}

/* Members of a group have the same steps in it, so the same lists, in the same order. */
static bool start_batch(batch *b)
{
    size_t bytes = (size_t)b->n * sizeof(dti_exchange);
    dti_exchange *list = dti_context_borrow(b->ctx, bytes);
    bool started = list != NULL;
    for (int i = 0; i < b->n && started; i++) {
        int n = b->at[i].begun ? 0 : gather_alike(b, i, list);
        started = start_alike(&b->at[i], list, n);
    }
    dti_context_give(b->ctx, list, bytes);
    b->n = 0;
    return started;
}

static bool start_step(dti_running *r, int i, batch *together)
{
    const dti_action *action = &r->plan->program->actions[i];
    const dti_step *step = action->step;
    if (!make_between(r, i)) return false;
    dti_storage *source = source_of(r, i), *target = target_of(r, i);
    if (!action->moves) {
        if (source) copy_all(&action->gets, source, target, dt_dtype_bytes(step->travels));
        return true;
    }
    if (!action->group) return true;
    dti_exchange exchange = {
        .call = call_of(r->plan, i), .dtype = step->travels, .source = source, .target = target->bytes,
        .gets = action->gets.at, .get_count = action->gets.n, .target_dtype = step->gives,
        .contributions = step->sum_count ? step->summed_ranks : 0,
        .combine = combine_of(r->plan->source->layout, r->plan->target->layout),
        .multiply = r->plan->multiply, .divide = scales(r->plan, i) ? r->plan->divide : 0,
        .result = action->all_reduces ? target : NULL,
    };
    if (together) return put_off(together, action->group, action->all_reduces, &exchange);
    return start_now(action->group, action->all_reduces, &exchange);
}

static bool finish_step(dti_running *r, int i)
{
    const dti_action *action = &r->plan->program->actions[i];
    if (action->moves && action->group && action->group->comm->ops->finish(action->group) != DT_OK) return false;
    size_t size = dt_dtype_bytes(action->step->travels);
    if (action->early.n) copy_all(&action->early, r->sources[0], target_of(r, i), size);
    return true;
}

/* Start all steps of the next stage. */
static bool start_stage(dti_running *r, batch *together)
{
    int first = r->started, n = dti_stage_steps(r->plan, first);
    while (r->started < first + n)
        if (!start_step(r, r->started++, together)) return false;
    return true;
}

static bool finish_stage(dti_running *r)
{
    int n = r->started, first = n - 1;
    while (first > 0 && r->plan->steps[first - 1].stage == r->plan->steps[n - 1].stage) first--;
    for (int i = first; i < n; i++)
        if (!finish_step(r, i)) return false;
    return true;
}

/* ---- front door -------------------------------------------------------------------------------------------------- */

static bool begin(dti_running *r, dti_storage *const *sources, double fill, batch *together)
{
    dt_plan *plan = r->plan;
    if (!plan->program) plan->program = dti_program_new(plan);
    if (!plan->program) return false;
    r->source_count = plan->mapped ? plan->step_count : 1;
    r->sources = list_new(r->ctx, r->source_count);
    r->between = list_new(r->ctx, plan->step_count);
    if (!r->sources || !r->between || !take_sources(r, sources)) return false;
    if (plan->step_count == 0) return true;
    return make_target(r, fill) && start_stage(r, together);
}

static dti_running *start(const dt_plan *plan, dti_storage *const *sources, double fill, batch *together)
{
    dt_context *ctx = plan->target->mesh->ctx;
    dti_running *r = dti_context_borrow(ctx, sizeof *r);
    if (!r) return NULL;
    *r = (dti_running){ .plan = (dt_plan *)(uintptr_t)plan, .ctx = ctx };
    if (begin(r, sources, fill, together)) return r;
    running_free(r);
    return NULL;
}

dti_running *dti_plan_start(const dt_plan *plan, dti_storage *const *sources, double fill)
{
    return start(plan, sources, fill, NULL);
}

/* In the target's dtype. */
static dti_storage *finished(dti_running *r)
{
    const dt_plan *plan = r->plan;
    if (plan->step_count == 0) return dti_storage_retain(r->sources[0]);
    dt_dtype dtype = plan->target->layout->dtype;
    dti_storage *result = as_dtype(r, r->target, r->wire, dtype);
    if (result && scales_result(plan))
        dti_numbers_scale(dtype, result->bytes, plan->program->elements, plan->multiply, plan->divide);
    return result;
}

dti_storage *dti_plan_finish(dti_running *r)
{
    dti_storage *result = NULL;
    bool going = r->plan->step_count == 0 || finish_stage(r);
    while (going && r->started < r->plan->step_count) going = start_stage(r, NULL) && finish_stage(r);
    if (going) result = finished(r);
    if (result && !r->counted) dti_plans_count(r->ctx, &r->plan, 1);
    running_free(r);
    return result;
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

static void give_up(dti_moving *moving, int n)
{
    for (int i = 0; i < n; i++) {
        if (moving[i].running) running_free(moving[i].running);
        dti_storage_release(moving[i].result);
        moving[i].running = NULL;
        moving[i].result = NULL;
    }
}

static bool count_all(dt_context *ctx, dti_moving *moving, int n)
{
    size_t bytes = (size_t)n * sizeof(dt_plan *);
    dt_plan **plans = dti_context_borrow(ctx, bytes);
    if (!plans) return false;
    for (int i = 0; i < n; i++) {
        plans[i] = moving[i].running->plan;
        moving[i].running->counted = true;
    }
    dti_plans_count(ctx, plans, n);
    dti_context_give(ctx, plans, bytes);
    return !dti_failed(ctx);
}

bool dti_plans_start(dt_context *ctx, dti_moving *moving, int n)
{
    batch together = { .ctx = ctx };
    bool started = true;
    for (int i = 0; i < n; i++) moving[i].running = NULL, moving[i].result = NULL;
    for (int i = 0; i < n && started; i++) {
        moving[i].running = start(moving[i].plan, moving[i].sources, 0, &together);
        started = moving[i].running != NULL;
    }
    started = started && start_batch(&together) && count_all(ctx, moving, n);
    batch_free(&together);
    if (!started) give_up(moving, n);
    return started;
}

static bool is_under_way(const dti_running *r) { return r->started < r->plan->step_count; }

/* The next stage of all that have one. */
static bool start_stages(dti_moving *moving, int n, batch *together, bool *any)
{
    *any = false;
    for (int i = 0; i < n; i++) {
        if (!is_under_way(moving[i].running)) continue;
        *any = true;
        if (!start_stage(moving[i].running, together)) return false;
    }
    return !*any || start_batch(together);
}

/* The stages that were started; of a plan without steps there are none. */
static bool finish_stages(dti_moving *moving, int n)
{
    for (int i = 0; i < n; i++) {
        dti_running *r = moving[i].running;
        if (r->finished == r->started) continue;
        if (!finish_stage(r)) return false;
        r->finished = r->started;
    }
    return true;
}

bool dti_plans_finish(dt_context *ctx, dti_moving *moving, int n)
{
    batch together = { .ctx = ctx };
    bool any = n > 0, going = true;
    while (any && going) going = finish_stages(moving, n) && start_stages(moving, n, &together, &any);
    for (int i = 0; i < n && going; i++) going = (moving[i].result = finished(moving[i].running)) != NULL;
    for (int i = 0; i < n && going; i++) {
        running_free(moving[i].running);
        moving[i].running = NULL;
    }
    batch_free(&together);
    if (!going) give_up(moving, n);
    return going;
}
