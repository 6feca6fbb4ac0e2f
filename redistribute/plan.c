/* SPDX-License-Identifier: Apache-2.0
 *
 * The front door of plans: arguments checked, plans cached by (source, target, goal), prices counted at the first
 * question. */
#include "redistribute/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/pen.h"
#include "core/shape.h"
#include "redistribute/compile.h"

typedef struct plan_state { dti_table plans; dti_search *search; dt_plan *unsettled; } plan_state;

static void state_fini(void *state)
{
    plan_state *s = state;
    for (size_t i = 0; i < s->plans.capacity; i++)
        if (s->plans.slots[i].value) dti_program_free(((dt_plan *)s->plans.slots[i].value)->program);
    dti_table_fini(&s->plans);
    free(s->search);
}

static plan_state *state_get(dt_context *ctx)
{
    plan_state *state = dti_context_layer(ctx, DTI_LAYER_PLAN, sizeof *state, state_fini);
    if (state && !state->search) state->search = dti_search_new();
    if (state && !state->search) dti_fail(ctx, DT_ERR_MEMORY, "no memory to search for plans");
    return state && state->search ? state : NULL;
}

/* ---- makers ------------------------------------------------------------------------------------------------------ */

/* Do the bytes of all ranks' wholes, sent and received, summed and copied, stay within an int64? */
bool dti_plan_countable(const dt_context *ctx, const dt_spec *spec)
{
    int64_t most = INT64_MAX / 4 / ctx->rank_count / (int64_t)dt_dtype_bytes((dt_dtype)spec->form.dtype);
    for (int d = 0; d < spec->shape.n; d++) {
        if (spec->shape.dim[d] == 0) return true;
        most /= spec->shape.dim[d];
    }
    return most > 0;
}

static bool check_arguments(dt_context *ctx, const dt_spec *source, const dt_spec *target, dt_plan_goal goal)
{
    if (!source || !target)
        return dti_fail(ctx, DT_ERR_ARG, "dt_plan_create: no %s spec", source ? "target" : "source"), false;
    if (source->mesh->ctx != target->mesh->ctx)
        return dti_fail(ctx, DT_ERR_ARG, "dt_plan_create: %s and %s belong to two contexts", dt_spec_text(source),
                        dt_spec_text(target)), false;
    if ((int)goal < 0 || goal >= DT_PLAN_GOAL_COUNT)
        return dti_fail(ctx, DT_ERR_ARG, "dt_plan_create: %d is no goal", (int)goal), false;
    if (!dti_shape_same(&source->shape, &target->shape))
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_plan_create: %s and %s have different shapes", dt_spec_text(source),
                        dt_spec_text(target)), false;
    if (!dti_plan_countable(ctx, source) || !dti_plan_countable(ctx, target))
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_plan_create: %s is too large for the bytes of %d ranks to be counted",
                        dt_spec_text(dti_plan_countable(ctx, source) ? target : source), ctx->rank_count), false;
    return true;
}

static dt_plan *plan_new(dt_context *ctx, plan_state *state, const dt_spec *source, const dt_spec *target,
                         dt_plan_goal goal)
{
    const dti_topology *topology = dti_topology_get(ctx);
    dt_plan *plan = topology ? dti_context_take(ctx, sizeof *plan) : NULL;
    if (!plan) return NULL;
    plan->source = source;
    plan->target = target;
    plan->goal = goal;
    plan->topology = topology;
    if (!dti_route_choose(ctx, plan, state->search)) return NULL;
    dti_plan_notify(plan, DT_EVENT_PLAN);
    return plan;
}

void dti_plan_notify(const dt_plan *plan, dt_event_kind kind)
{
    dt_context *ctx = plan->target->mesh->ctx;
    if (ctx->observer_count)
        dti_notify(ctx, &(dt_event){ .kind = kind, .text = dt_spec_text(plan->target), .object = plan });
}

static const dt_plan *recall(const dt_context *ctx, const dt_spec *source, const dt_spec *target, dt_plan_goal goal,
                             uint64_t hash)
{
    const plan_state *state = ctx->layers[DTI_LAYER_PLAN].state;
    if (!state) return NULL;
    const dt_plan *plan;
    for (size_t at = dti_table_first(&state->plans, hash); (plan = dti_table_value(&state->plans, hash, &at)) != NULL;)
        if (plan->source == source && plan->target == target && plan->goal == goal && !plan->mapped) return plan;
    return NULL;
}

static dt_context *either_context(const dt_spec *source, const dt_spec *target)
{
    return source ? source->mesh->ctx : target ? target->mesh->ctx : NULL;
}

const dt_plan *dt_plan_create(const dt_spec *source, const dt_spec *target, dt_plan_goal goal)
{
    dt_context *ctx = either_context(source, target);
    if (dti_failed(ctx)) return NULL;
    uint64_t hash = dti_hash_mix((uint64_t)(uintptr_t)source, (uint64_t)(uintptr_t)target + (uint64_t)goal);
    const dt_plan *found = recall(ctx, source, target, goal, hash);
    if (found) return found;
    if (!check_arguments(ctx, source, target, goal)) return NULL;
    plan_state *state = state_get(ctx);
    dt_plan *plan = state ? plan_new(ctx, state, source, target, goal) : NULL;
    if (!plan) return NULL;
    if (dti_table_add(&state->plans, hash, plan)) return plan;
    dti_fail(ctx, DT_ERR_MEMORY, "no memory for a table of plans");
    return NULL;
}

const dt_plan *dti_plan_kept(const dt_context *ctx, uint64_t hash, dti_plan_is_fn is, const void *arg)
{
    const plan_state *state = ctx->layers[DTI_LAYER_PLAN].state;
    if (!state) return NULL;
    const dt_plan *plan;
    for (size_t at = dti_table_first(&state->plans, hash); (plan = dti_table_value(&state->plans, hash, &at)) != NULL;)
        if (is(plan, arg)) return plan;
    return NULL;
}

bool dti_plan_keep(dt_context *ctx, uint64_t hash, dt_plan *plan)
{
    plan_state *state = state_get(ctx);
    if (state && dti_table_add(&state->plans, hash, plan)) return true;
    if (!dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "no memory for a table of plans");
    return false;
}

void dti_plan_frame(const dt_plan *plan, dti_frame *frame)
{
    const plan_state *state = plan->target->mesh->ctx->layers[DTI_LAYER_PLAN].state;
    const dti_frame *known = state && state->search ? dti_search_frame(state->search, plan) : NULL;
    if (known) *frame = *known;
    else if (plan->mapped) dti_frame_dims(frame, plan->target);
    else dti_frame_init(frame, plan->source->layout, plan->target->layout, plan->topology);
}

/* ---- ranks that take part ---------------------------------------------------------------------------------------- */

int dti_plan_ranks(const dt_plan *plan)
{
    const dti_layout *source = plan->source->layout, *target = plan->target->layout;
    if (dti_layout_same_ranks(source, target)) return source->ranks;
    int ranks = source->ranks;
    for (int i = 0; i < target->ranks; i++) ranks += !dti_layout_has(source, dti_layout_rank(target, i));
    return ranks;
}

int dti_plan_rank(const dt_plan *plan, int i)
{
    const dti_layout *source = plan->source->layout, *target = plan->target->layout;
    if (i < source->ranks) return dti_layout_rank(source, i);
    i -= source->ranks;
    for (int t = 0; t < target->ranks; t++) {
        int rank = dti_layout_rank(target, t);
        if (!dti_layout_has(source, rank) && i-- == 0) return rank;
    }
    return -1;
}

/* ---- price ------------------------------------------------------------------------------------------------------- */

/* A plan's answers are counted once; the plan is the same value before and after. */
static dt_plan *answering(const dt_plan *plan) { return (dt_plan *)(uintptr_t)plan; }

typedef struct send_count { const dt_plan *plan; int taker; int64_t size; int64_t *by_rank; int links; } send_count;

static void count_send(const dti_pull *pull, void *arg)
{
    send_count *s = arg;
    int link = dti_topology_class(s->plan->topology, pull->rank, s->taker);
    if (pull->rank != s->taker)
        s->by_rank[(int64_t)pull->rank * s->links + (link < s->links ? link : s->links - 1)] += pull->count * s->size;
}

static int64_t *count_sends(const dt_plan *plan, const dti_frame *frame)
{
    int links = plan->topology->level_count;
    size_t n = (size_t)plan->source->mesh->ctx->rank_count * (size_t)links;
    int64_t *by_rank = dti_context_take(plan->source->mesh->ctx, n * sizeof *by_rank);
    if (!by_rank) return NULL;
    send_count s = { plan, 0, 0, memset(by_rank, 0, n * sizeof *by_rank), links };
    for (int i = 0; i < plan->step_count; i++)
        for (int r = 0; r < plan->steps[i].to->ranks; r++) {
            s.taker = dti_holding_member(plan->steps[i].to, r);
            s.size = (int64_t)dt_dtype_bytes(plan->steps[i].travels);
            if (dti_step_pulls(frame, plan->topology, &plan->steps[i], s.taker, count_send, &s)) continue;
            dti_fail(plan->source->mesh->ctx, DT_ERR_MEMORY, "no memory to count what a plan sends");
            return NULL;
        }
    return by_rank;
}

/* Where link classes are more than one, bytes sent by every rank over each, counted once; NULL where ranks are too many
 * for it, or memory ran out. */
static const int64_t *sends_by_link(const dt_plan *plan, const dti_frame *frame)
{
    int64_t ranks = dti_plan_ranks(plan);
    if (!plan->sends && plan->topology->level_count > 1 && ranks * ranks <= DTI_COUNTED_PAIRS)
        answering(plan)->sends = count_sends(plan, frame);
    return plan->sends;
}

static int64_t sent_by_formula(const dt_plan *plan, const dti_frame *frame, dti_memo *const *memos, int rank)
{
    int64_t sent = 0;
    for (int i = 0; i < plan->step_count; i++)
        sent += dti_step_sent(frame, &plan->steps[i], memos ? memos[i] : NULL, rank);
    return sent;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t busiest_by_formula(const dt_plan *plan, const dti_frame *frame)
{
    int64_t most = 0;
    if (plan->step_count == 0) return 0;
    dti_ranks ranks = dti_ranks_sending_alike(frame, plan->steps, plan->step_count);
    dti_memo **memos = dti_memos_new(frame, plan->steps, plan->step_count, ranks.count);
    while (dti_ranks_next(&ranks)) most = later(most, sent_by_formula(plan, frame, memos, ranks.rank));
    dti_memos_free(memos, plan->step_count);
    return most;
}

static void price_sends(const dt_plan *plan, const dti_frame *frame, dt_plan_cost *cost)
{
    int links = plan->topology->level_count, world = plan->source->mesh->ctx->rank_count;
    const int64_t *sends = sends_by_link(plan, frame);
    if (!sends) cost->sent = busiest_by_formula(plan, frame);
    for (int r = 0; r < world && sends; r++) {
        int64_t sent = 0;
        for (int l = 0; l < links; l++) {
            sent += sends[(int64_t)r * links + l];
            cost->link_sent[l] = later(cost->link_sent[l], sends[(int64_t)r * links + l]);
        }
        cost->sent = later(cost->sent, sent);
    }
    for (int l = 0; l < links && !sends; l++) cost->link_sent[l] = links == 1 ? cost->sent : -1;
}

/* A rank's part of a spec, also of what it holds as the identity of a sum. */
static int64_t spec_bytes(const dt_spec *spec, int world_rank)
{
    int rank = dti_mesh_index(spec->mesh, world_rank);
    if (rank < 0) return 0;
    dt_shape shape = dt_spec_local_shape(spec, rank);
    int64_t bytes = (int64_t)dt_dtype_bytes((dt_dtype)spec->form.dtype);
    for (int d = 0; d < shape.n; d++) bytes *= shape.dim[d];
    return bytes;
}

/* The results of all stages but the last, seen as parts of the target: what of them is, needs no room of its own. */
typedef struct between {
    int n;                         /* steps before the last stage                                                  */
    dti_step *fits;                /* the source as it is, a step for each result, the target as it is             */
    dti_memo **memos;
    dti_ranks ranks;
} between;

static int steps_before_last(const dt_plan *plan)
{
    int n = 0, last = plan->step_count ? plan->steps[plan->step_count - 1].stage : 0;
    while (n < plan->step_count && plan->steps[n].stage < last) n++;
    return n;
}

static bool between_init(const dt_plan *plan, const dti_frame *frame, between *b)
{
    b->n = steps_before_last(plan);
    b->fits = malloc(((size_t)b->n + 2) * sizeof *b->fits);
    if (!b->fits) return false;
    b->fits[0] = (dti_step){ .from = plan->from, .to = plan->from };
    for (int i = 0; i < b->n; i++) b->fits[i + 1] = (dti_step){ .from = plan->steps[i].to, .to = plan->to };
    b->fits[b->n + 1] = (dti_step){ .from = plan->to, .to = plan->to };
    b->ranks = dti_ranks_alike(frame, b->fits, b->n + 2, NULL);
    b->memos = dti_memos_new(frame, b->fits, b->n + 1, b->ranks.count);
    return true;
}

static void between_fini(between *b)
{
    dti_memos_free(b->memos, b->n + 1);
    free(b->fits);
}

static int64_t between_bytes(const dt_plan *plan, const dti_frame *frame, const between *b, int stage, int rank)
{
    int64_t bytes = 0;
    for (int i = 0; i < b->n; i++) {
        const dti_step *step = &plan->steps[i];
        if (step->stage != stage) continue;
        dti_memo *memo = b->memos ? b->memos[i + 1] : NULL;
        int64_t held = dti_step_held(frame, &b->fits[i + 1], memo, rank);
        bool fits = dti_step_volume(frame, &b->fits[i + 1], memo, rank).kept == held;
        if (!fits || step->gives != plan->target->layout->dtype) bytes += held * (int64_t)dt_dtype_bytes(step->gives);
    }
    return bytes;
}

static int64_t peak_bytes(const dt_plan *plan, const dti_frame *frame)
{
    int64_t peak = 0;
    between b;
    if (!between_init(plan, frame, &b)) return 0;
    while (dti_ranks_next(&b.ranks)) {
        int rank = b.ranks.rank;
        int64_t most = 0, before = 0;
        for (int stage = 0; b.n && stage <= plan->steps[b.n - 1].stage; stage++) {
            int64_t after = between_bytes(plan, frame, &b, stage, rank);
            most = later(most, before + after);
            before = after;
        }
        peak = later(peak, spec_bytes(plan->source, rank) + spec_bytes(plan->target, rank) + most);
    }
    between_fini(&b);
    return peak;
}

int dti_stage_steps(const dt_plan *plan, int first)
{
    return dti_steps_at_once(plan->steps + first, plan->step_count - first);
}

bool dti_plan_stage_room(dt_plan *plan)
{
    if (plan->step_count == 0 || dti_stage_steps(plan, 0) == plan->step_count) return true;
    plan->stages = dti_context_take(plan->target->mesh->ctx, (size_t)plan->step_count * sizeof *plan->stages);
    return plan->stages != NULL;
}

dti_moves dti_plan_measure(dt_plan *plan)
{
    if (!plan->measured && dti_plan_stage_room(plan)) {
        dti_frame frame;
        dti_plan_frame(plan, &frame);
        plan->moves = dti_route_moves(&frame, plan->topology, plan->steps, plan->step_count, plan->stages);
        plan->measured = true;
    }
    return plan->moves;
}

double dti_plan_time_us(dt_plan *plan)
{
    if (plan->timed) return plan->time_us;
    dti_moves all = dti_plan_measure(plan);
    if (!plan->measured) return 0;
    const dti_moves *stages = plan->stages ? plan->stages : &all; /* there is but one stage                        */
    plan->time_us = (double)dti_route_ns(plan->topology, plan->steps, plan->step_count, stages) / 1000;
    plan->timed = true;
    return plan->time_us;
}

static void settle(dt_context *ctx)
{
    plan_state *state = state_get(ctx);
    for (dt_plan *plan; state && (plan = state->unsettled) != NULL; plan->unsettled = false) {
        state->unsettled = plan->next_unsettled;
        if (plan->untimed_runs) ctx->time += (double)plan->untimed_runs * dti_plan_time_us(plan) * 1e-6;
        plan->untimed_runs = 0;
        dti_plan_count_late(plan);
    }
    ctx->settle = NULL;
}

bool dti_plan_settle_late(dt_plan *plan)
{
    dt_context *ctx = plan->target->mesh->ctx;
    plan_state *state = state_get(ctx);
    if (!state || plan->unsettled) return state != NULL;
    plan->unsettled = true;
    plan->next_unsettled = state->unsettled;
    state->unsettled = plan;
    ctx->settle = settle;
    return true;
}

void dti_plan_predict(dt_plan *plan)
{
    if (plan->timed) plan->target->mesh->ctx->time += plan->time_us * 1e-6;
    else plan->untimed_runs += dti_plan_settle_late(plan);
}

static void count_cost(const dt_plan *plan, dt_plan_cost *cost)
{
    dti_frame frame;
    dti_plan_frame(plan, &frame);
    dti_moves moves = dti_plan_measure(answering(plan));
    cost->bytes = moves.received;
    cost->total = moves.total;
    cost->link_count = plan->topology->level_count;
    memcpy(cost->link_bytes, moves.link, sizeof cost->link_bytes);
    dti_plan_bound(plan, &frame, &moves, &cost->total_bound, &cost->lower_bound);
    cost->ratio = cost->lower_bound ? (double)cost->bytes / (double)cost->lower_bound : 1;
    price_sends(plan, &frame, cost);
    cost->peak_bytes = peak_bytes(plan, &frame);
    cost->time_us = dti_plan_time_us(answering(plan));
}

dt_plan_cost dt_plan_price(const dt_plan *plan)
{
    if (!plan) return (dt_plan_cost){ 0 };
    if (!plan->cost) {
        dt_plan_cost *cost = dti_context_take(plan->source->mesh->ctx, sizeof *cost);
        if (!cost) return (dt_plan_cost){ 0 };
        count_cost(plan, cost);
        answering(plan)->cost = cost;
    }
    return *plan->cost;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

int dt_plan_step_count(const dt_plan *plan)
{
    return plan && dti_plan_show(answering(plan)) ? plan->shown_count : 0;
}

dt_plan_step dt_plan_step_at(const dt_plan *plan, int step)
{
    if (step < 0 || step >= dt_plan_step_count(plan)) return (dt_plan_step){ .dims = "" };
    return plan->shown[step];
}

static bool takes_part(const dt_plan *plan, int rank)
{
    return plan && rank >= 0 && rank < plan->source->mesh->ctx->rank_count;
}

int64_t dt_plan_received(const dt_plan *plan, int rank)
{
    if (!takes_part(plan, rank)) return -1;
    dti_frame frame;
    dti_plan_frame(plan, &frame);
    int64_t bytes = 0;
    for (int i = 0; i < plan->step_count; i++) bytes += dti_step_received(&frame, &plan->steps[i], NULL, rank);
    return bytes;
}

int64_t dt_plan_sent(const dt_plan *plan, int rank)
{
    if (!takes_part(plan, rank)) return -1;
    dti_frame frame;
    dti_plan_frame(plan, &frame);
    if (plan->topology->level_count == 1) return sent_by_formula(plan, &frame, NULL, rank);
    const int64_t *sends = sends_by_link(plan, &frame);
    if (!sends) return -1;
    int links = plan->topology->level_count;
    int64_t sent = 0;
    for (int l = 0; l < links; l++) sent += sends[(int64_t)rank * links + l];
    return sent;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_plan(dti_pen *pen, const dt_plan *plan)
{
    dt_plan_cost cost = dt_plan_price(plan);
    dti_put(pen, "%s -> %s\n", dt_spec_text(plan->source), dt_spec_text(plan->target));
    for (int i = 0; i < plan->shown_count; i++) {
        const dt_plan_step *step = &plan->shown[i];
        dti_put(pen, "  %d. %s", i + 1, dt_comm_kind_text(step->kind));
        if (*step->dims) dti_put(pen, " (%s)", step->dims);
        dti_put(pen, " %lld bytes in %lld messages\n", (long long)step->bytes, (long long)step->messages);
    }
    if (plan->shown_count == 0) dti_put(pen, "  nothing to do\n");
    dti_put(pen, "  received %lld bytes by the busiest rank, bound %lld, ratio %.3f; sent %lld\n",
            (long long)cost.bytes, (long long)cost.lower_bound, cost.ratio, (long long)cost.sent);
    for (int l = 0; l < cost.link_count && cost.link_count > 1; l++)
        dti_put(pen, "  over %s: received %lld, sent %lld\n", plan->topology->levels[l].name,
                (long long)cost.link_bytes[l], (long long)cost.link_sent[l]);
    dti_put(pen, "  peak memory %lld bytes, time %.1f us\n", (long long)cost.peak_bytes, cost.time_us);
}

const char *dt_plan_text(const dt_plan *plan)
{
    if (!plan || !dti_plan_show(answering(plan))) return "";
    if (plan->text) return plan->text;
    dti_pen measure = { NULL, 0, 0 };
    put_plan(&measure, plan);
    char *text = dti_context_take(plan->source->mesh->ctx, measure.at + 1);
    if (!text) return "";
    dti_pen write = { text, measure.at + 1, 0 };
    put_plan(&write, plan);
    answering(plan)->text = text;
    return text;
}
