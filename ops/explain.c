/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call takes and could take, with the plans of what moves, and the reasons, which are asked of
 * dti_partial_decide as the search asked it. No text but theirs. */
#include "ops/explain.h"

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "ops/pull.h"
#include "placements/views.h"

enum { MANY_RANKS = 1024 };            /* of more the busiest is not looked for                                    */

/* ---- ways -------------------------------------------------------------------------------------------------------- */

static int64_t received(const dti_way *way, int i, int rank)
{
    int64_t bytes = 0;
    for (int k = 0; k < DTI_MOVES; k++)
        if (way->plans[i][k]) bytes += dt_plan_received(way->plans[i][k], rank);
    return bytes;
}

/* What ranks receive of the parts of an op; by_rank: NULL where they are too many. */
typedef struct receipts { int64_t *by_rank; int ranks; } receipts;

static int64_t of_parts(const receipts *parts, int rank) { return parts && parts->by_rank ? parts->by_rank[rank] : 0; }

/* Of operands first .. end - 1, and of parts, received by the rank with most of all. Of one plan that is its price. */
static int64_t busiest(const dti_way *way, int first, int end, int ranks, const receipts *parts)
{
    int64_t most = 0, sum = parts ? way->statistics : 0;
    int moving = sum > 0;
    for (int i = first; i < end; i++)
        for (int k = 0; k < DTI_MOVES; k++) {
            int64_t bytes = dt_plan_price(way->plans[i][k]).bytes;
            moving += bytes > 0;
            sum += bytes;
        }
    if (moving < 2 || ranks > MANY_RANKS) return sum;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t bytes = of_parts(parts, rank);
        for (int i = first; i < end; i++) bytes += received(way, i, rank);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void plan_operand(const dt_spec *given, const dt_spec *on, const dt_spec *used, const dt_plan **plans)
{
    const dt_spec *via = dti_dispatch_via(given, on, used);
    if (!via) return;
    plans[0] = dt_plan_create(given, via, DT_PLAN_TIME);
    if (via != used) plans[1] = dt_plan_create(via, used, DT_PLAN_TIME);
    for (int k = 0; k < DTI_MOVES; k++) dt_plan_step_count(plans[k]); /* may fail, here and not while printing      */
}

/* Results are pulled where an index map's dim is split. */
static void plan_results(const dti_explanation *e, const dti_answer *answer, dti_way *way)
{
    const dt_index_map *map = &e->asking.derived.map;
    dti_dispatch d = { .n = e->n, .result_count = e->asking.rule.result_count };
    memcpy(d.used, answer->used, sizeof d.used);
    memcpy(d.result, answer->result, sizeof d.result);
    way->pulls = map->part_count && dti_pulls(map, &d);
    for (int k = 0; k < d.result_count && way->pulls; k++) {
        way->plans[DTI_PULLS + k][0] = dti_pull_plan(map, &d, k);
        dt_plan_step_count(way->plans[DTI_PULLS + k][0]);
        way->moved[DTI_PULLS + k] = dt_plan_price(way->plans[DTI_PULLS + k][0]).bytes;
    }
}

static void count_move(const dt_event *event, void *arg)
{
    const receipts *parts = arg;
    for (int r = 0; event->kind == DT_EVENT_MOVE && r < parts->ranks; r++)
        parts->by_rank[r] += dt_plan_received(event->object, r);
}

/* What ranks receive where the op is made of others: the call itself, on a mesh without data. */
static void call_dry(const dti_explanation *e, dt_mesh *mesh, const dti_answer *answer, receipts *parts, dti_way *way)
{
    dt_context *ctx = dt_mesh_context(mesh);
    dt_tensor *x[DT_MAX_OPERANDS] = { NULL };
    int observers = ctx->observer_count;
    int scope = dt_scope_push(ctx, 0);
    for (int i = 0; i < e->n; i++)
        if (e->given[i]) x[i] = dt_zeros(dt_spec_parse(mesh, dt_spec_text(answer->used[i])));
    dt_counters before = dt_mesh_counters(mesh, NULL);
    if (parts->by_rank) {
        ctx->observers[observers].fn = count_move;
        ctx->observers[ctx->observer_count++].arg = parts;
    }
    dt_apply(e->op, x, e->n, e->attributes.values);
    ctx->observer_count = observers;
    dt_counters after = dt_mesh_counters(mesh, NULL);
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) way->statistics += after.bytes[k] - before.bytes[k];
    for (int r = 0; parts->by_rank && r < parts->ranks; r++)
        if (parts->by_rank[r] > way->statistics) way->statistics = parts->by_rank[r];
    way->calls = after.implied - before.implied;
    dt_scope_pop(ctx, scope, NULL);
}

/* By ranks of the context, what was counted by those of the mesh. */
static void place_receipts(const dti_explanation *e, receipts *parts, int ranks)
{
    int64_t *placed = calloc((size_t)ranks, sizeof *placed);
    for (int rank = 0; placed && parts->by_rank && rank < ranks; rank++) {
        int own = dti_mesh_index(e->mesh, rank);
        if (own >= 0) placed[rank] = parts->by_rank[own];
    }
    free(parts->by_rank);
    parts->by_rank = placed;
}

/* A context with data is not asked to communicate: another one stands for it. */
static void count_statistics(const dti_explanation *e, const dti_answer *answer, receipts *parts, dti_way *way)
{
    dt_context *ctx = e->mesh->ctx, *dry = ctx->dry ? ctx : dt_context_dry(e->mesh->size);
    dt_mesh *mesh = ctx->dry ? e->mesh : dt_mesh_create(dry, e->mesh->text);
    parts->ranks = dt_rank_count(dry);
    if (dt_rank_count(ctx) <= MANY_RANKS) parts->by_rank = calloc((size_t)dt_rank_count(ctx), sizeof *parts->by_rank);
    if (mesh) call_dry(e, mesh, answer, parts, way);
    if (dry == ctx) return;
    place_receipts(e, parts, dt_rank_count(ctx));
    dt_context_destroy(&dry);
}

/* The plans are those of a call: for the least time. false: the context says why. */
static bool plan_way(const dti_explanation *e, const dti_answer *answer, dti_way *way)
{
    dt_context *ctx = dt_mesh_context(e->mesh);
    int ranks = dt_rank_count(ctx);
    *way = (dti_way){ .answer = answer };
    for (int i = 0; i < e->n; i++) {
        if (e->given[i] && answer->used[i] != e->given[i])
            plan_operand(e->given[i], e->on[i], answer->used[i], way->plans[i]);
        way->moved[i] = busiest(way, i, i + 1, ranks, NULL);
    }
    plan_results(e, answer, way);
    receipts parts = { NULL, 0 };
    if (answer->broken_dims) count_statistics(e, answer, &parts, way);
    way->bytes = busiest(way, 0, DTI_MOVING, ranks, &parts);
    free(parts.by_rank);
    return dt_context_status(ctx) == DT_OK;
}

static bool is_same(const dti_answer *a, const dti_answer *b)
{
    return memcmp(a->used, b->used, sizeof a->used) == 0 && memcmp(a->result, b->result, sizeof a->result) == 0;
}

static bool is_listed(const dti_explanation *e, const dti_answer *answer)
{
    if (is_same(answer, e->way.answer)) return true;
    for (int i = 0; i < e->other_count; i++)
        if (is_same(answer, e->others[i].answer)) return true;
    return false;
}

static bool list_others(dti_explanation *e)
{
    for (int i = 0; i < e->listed.answer_count; i++) {
        const dti_answer *answer = &e->listed.answer[i];
        if (is_listed(e, answer)) continue;
        if (!plan_way(e, answer, &e->others[e->other_count])) return false;
        e->other_count++;
    }
    return true;
}

bool dti_explain(dt_mesh *mesh, const dt_op *op, const dt_spec *const *given, int n, const void *attributes,
                 const dt_spec *asked, dti_explanation *out)
{
    dt_context *ctx = dt_mesh_context(mesh);
    dt_shape scalar = DT_SCALAR;
    memset(out, 0, sizeof *out);
    out->op = op;
    out->mesh = mesh;
    out->n = n;
    for (int i = 0; i < n; i++) out->given[i] = given[i];
    if (!dti_attributes_read(ctx, op, attributes, n && given[0] ? &given[0]->shape : &scalar, &out->attributes))
        return false;
    out->attributes.asked = asked;
    if (!dti_meshes_join(ctx, op->head, given, n, out->on)) return false;
    for (int i = 0; i < n; i++)
        if (out->on[i]) out->mesh = out->on[i]->mesh;
    return dti_row_ask(ctx, op, out->on, n, &out->attributes, &out->asking)
        && dti_propagate(ctx, &out->asking.ask, 1, &out->taken)
        && dti_propagate(ctx, &out->asking.ask, DTI_MAX_ALTERNATIVES, &out->listed)
        && plan_way(out, &out->taken.answer[0], &out->way) && list_others(out);
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

/* The bound factor that is `size` indices of an operand's dim d, behind those that multiply to `before`; -1: none. */
static int factor_at(const dti_bound *bound, const dti_bound_dims *dims, int d, int64_t before, int64_t size)
{
    int end = dims->form.factor_first[d + 1], first = dims->form.factor_first[d];
    int64_t product = 1;
    while (first < end && product < before) product *= dims->form.size[first++];
    if (first == end || product != before || dims->factor[first] < 0) return -1;
    if (dims->form.size[first] == size) return dims->factor[first];
    const dti_bound_letter *letter = &bound->letter[bound->factor[dims->factor[first]].letter];
    return dims->factor[first] == letter->first && letter->size == size ? letter->whole : -1;
}

/* How an operand was placed along mesh dim m. false: by a factor that no letter has. */
static bool given_place(const dti_explanation *e, int i, int m, dti_place *place)
{
    const dti_form *form = &e->on[i]->form;
    int f = dti_form_split_by(form, m), d = 0;
    int64_t before = 1;
    dti_bound_dims dims;
    *place = (dti_place){ .what = (int8_t)dti_form_place(form, m), .kind = form->partial[m] };
    if (place->what != DTI_PLACE_S) return true;
    dti_bound_operand(&e->asking.rule, &e->taken.bound, i, 0, &dims);
    while (form->factor_first[d + 1] <= f) d++;
    for (int k = form->factor_first[d]; k < f; k++) before *= form->size[k];
    place->factor = (int16_t)factor_at(&e->taken.bound, &dims, d, before, form->size[f]);
    return place->factor >= 0;
}

static bool same_place(dti_place a, dti_place b)
{
    return a.what == b.what && a.kind == b.kind && (a.what != DTI_PLACE_S || a.factor == b.factor);
}

/* All operands as they were given along mesh dim m. false: one cannot be said. */
static bool given_strategy(const dti_explanation *e, int m, dti_strategy *given, bool *moves)
{
    bool said = true;
    memset(given, 0, sizeof *given);
    for (int i = 0; i < e->n; i++) {
        if (!e->given[i]) continue;
        bool is_said = given_place(e, i, m, &given->operand[i]);
        said &= is_said;
        if (given->operand[i].what == DTI_PLACE_R) continue;
        *moves |= !is_said || !same_place(given->operand[i], e->way.answer->along[m].operand[i]);
    }
    return said;
}

/* The operands of a strategy alone. */
static void put_operands(dti_pen *pen, const dti_explanation *e, const dti_strategy *s)
{
    for (int i = 0, n = 0; i < e->n; i++) {
        if (!e->given[i]) continue;
        dti_put(pen, "%s%s ", n++ ? ", " : "", dti_rule_name(&e->asking.rule, i));
        dti_put_place(pen, &e->asking.rule, &e->taken.bound, s->operand[i]);
    }
}

static void look_along(const dti_explanation *e, int m, dti_reason *reason)
{
    dti_strategy taken = e->way.answer->along[m], given;
    const dti_rule *rule = &e->asking.rule;
    const dti_bound *bound = &e->taken.bound;
    dti_pen takes = { reason->takes, DTI_REASON, 0 }, why = { reason->why, DTI_REASON, 0 };
    memset(reason, 0, sizeof *reason);
    reason->dim = dt_mesh_dim_name(e->mesh, m);
    dti_partial_decide(rule, bound, &taken, &why);
    dti_put_strategy(&takes, rule, bound, &taken);
    if (!*reason->why) strcpy(reason->why, "nothing is split: all ranks do the same");
    bool said = given_strategy(e, m, &given, &reason->moves);
    if (!reason->moves || !said) return;
    dti_pen before = { reason->given, DTI_REASON, 0 }, refusal = { reason->refusal, DTI_REASON, 0 };
    put_operands(&before, e, &given);
    if (dti_partial_decide(rule, bound, &given, &refusal))
        strcpy(reason->refusal, "by itself it would do; other mesh dims, integers that round, or the cost forbid it");
}

/* Mesh dims of size 1 are none. */
void dti_explain_along(const dti_explanation *e, dti_reason_fn fn, void *arg)
{
    for (int m = 0; m < dt_mesh_dim_count(e->mesh); m++) {
        dti_reason reason;
        if (dt_mesh_size(e->mesh, dt_mesh_dim_name(e->mesh, m)) == 1) continue;
        look_along(e, m, &reason);
        fn(&reason, arg);
    }
}

/* ---- of a tensor ------------------------------------------------------------------------------------------------- */

static char *explained(dt_context *ctx, const dti_dispatch *d)
{
    dti_explanation *e = malloc(sizeof *e);
    char *text = NULL;
    if (e && dti_explain(d->result[0]->mesh, d->op, d->in, d->n, d->values, d->asked, e)) {
        e->by_sign = true;
        text = dti_explain_text(e);
    }
    if (!text && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "%s: no memory to explain it", d->op->head);
    free(e);
    return text;
}

const char *dti_dispatch_explained(dt_context *ctx, dti_origin *origin)
{
    dti_dispatch *d = (dti_dispatch *)(void *)origin;
    if (!d->explained) d->explained = explained(ctx, d);
    return d->explained;
}
