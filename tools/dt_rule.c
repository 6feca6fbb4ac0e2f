/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt rule`: which placements an op's operands take, and what its results are. It reads the line, asks what a call of
 * the row would ask, in a dry context, and makes the plans of what would move. Invariant: what it shows as taken is
 * what dt_apply takes. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "dry.h"
#include "ops/pull.h"
#include "rule.h"

enum {
    OPTION_MESH, OPTION_RANKS, OPTION_TOPOLOGY, OPTION_RULE, OPTION_POLYNOMIAL, OPTION_DTYPES, OPTION_STRICT,
    OPTION_JSON, OPTION_COUNT
};

static const tool_option options[OPTION_COUNT] = {
    [OPTION_MESH] = { "mesh", "MESH", "the mesh of the operands, dp=2,tp=4; required" },
    [OPTION_RANKS] = { "ranks", "N", "ranks in all; default: the product of the mesh's sizes" },
    [OPTION_TOPOLOGY] = { "topology", "LEVELS", "where ranks stand, node=2,gpu=4; default: DT_TOPOLOGY, else flat" },
    [OPTION_RULE] = { "rule", "TEXT", "try this rule; OP is then a head, 'mine(x, w)'" },
    [OPTION_POLYNOMIAL] = { "polynomial", "TEXT", "beside --rule, 'x w'; default: none" },
    [OPTION_DTYPES] = { "dtypes", "TEXT", "beside --rule, 'ff->f'; default: all operands and results alike" },
    [OPTION_STRICT] = { "strict", NULL, "fail where something would move, as a strict scope does" },
    [OPTION_JSON] = { "json", NULL, "one JSON object" },
};

enum { MANY_RANKS = 1024 };            /* of more the busiest is not looked for                                    */

/* ---- the op ------------------------------------------------------------------------------------------------------ */

static size_t name_length(const char *head) { return strcspn(head, "("); }

/* How many characters must change to make one name of another, at most `most` + 1. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
    int row[65];
    if (n > 64 || m > 64) return 64;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]), fewer = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = changed < fewer ? changed : fewer;
        }
    }
    return row[m];
}

/* A slip of the hand away, or the start of it. */
static bool is_near(const char *name, const char *head)
{
    size_t n = strlen(name), m = name_length(head);
    return distance(name, n, head, m) <= 1 + (int)m / 6 || (n >= 2 && n < m && strncmp(name, head, n) == 0);
}

static int fail_unknown(const char *command, const char *name)
{
    char near[256];
    dti_pen pen = { near, sizeof near, 0 };
    near[0] = '\0';
    for (int i = 0; i < dt_op_count(); i++) {
        const char *head = dt_op_at(i)->head;
        if (is_near(name, head)) dti_put(&pen, "%s%.*s", pen.at ? ", " : "; near it: ", (int)name_length(head), head);
    }
    return tool_fail(command, TOOL_FAILED, "unknown op \"%s\"%s; dt info --ops lists them", name, near);
}

static int find_op(const tool_call *call, rule_report *r)
{
    const char *const *values = call->values, *name = call->arguments[0];
    if (values[OPTION_RULE]) {
        r->own = (dt_op){ .head = name, .rule = values[OPTION_RULE], .polynomial = values[OPTION_POLYNOMIAL],
                          .dtypes = values[OPTION_DTYPES] };
        r->op = &r->own;
        return TOOL_OK;
    }
    if (values[OPTION_POLYNOMIAL] || values[OPTION_DTYPES])
        return tool_fail(call->command, TOOL_USAGE, "--%s is of a row that --rule tries",
                         options[values[OPTION_POLYNOMIAL] ? OPTION_POLYNOMIAL : OPTION_DTYPES].name);
    if (name[name_length(name)])
        return tool_fail(call->command, TOOL_USAGE, "a head, \"%s\", needs --rule", name);
    r->op = dt_op_find(name);
    return r->op ? TOOL_OK : fail_unknown(call->command, name);
}

/* ---- its operands ------------------------------------------------------------------------------------------------ */

/* name=value; a spec has no "=", and a "[" before it could. */
static bool is_attribute(const char *word) { return word[strcspn(word, "=[@")] == '='; }

/* How many operands a head names. What is wrong with the head is said where the row is read. */
static int head_count(const char *head)
{
    const char *at = head + name_length(head);
    int n = *at && at[1 + strspn(at + 1, " ")] != ')' ? 1 : 0;
    for (; *at; at++) n += *at == ',';
    return n < DT_MAX_OPERANDS ? n : DT_MAX_OPERANDS;
}

static int read_words(const tool_call *call, rule_report *r)
{
    for (int i = 1; i < call->argument_count; i++) {
        const char *word = call->arguments[i];
        bool attribute = is_attribute(word);
        int limit = attribute ? DT_MAX_ATTRIBUTES : DT_MAX_OPERANDS, *n = attribute ? &r->attribute_count : &r->n;
        if (*n == limit)
            return tool_fail(call->command, TOOL_FAILED, "\"%s\": more than %d %s", word, limit,
                             attribute ? "attributes" : "operands");
        if (attribute) r->attribute_texts[*n] = word;
        else if (strcmp(word, "-") != 0 && !(r->given[*n] = dt_spec_parse(r->mesh, word)))
            return tool_fail_context(call->command, dt_mesh_context(r->mesh));
        ++*n;
    }
    if (r->n < head_count(r->op->head)) r->n = head_count(r->op->head); /* those left out at the end are absent  */
    return TOOL_OK;
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

static int64_t received(const rule_way *way, int i, int rank)
{
    int64_t bytes = 0;
    for (int k = 0; k < RULE_MOVES; k++)
        if (way->plans[i][k]) bytes += dt_plan_received(way->plans[i][k], rank);
    return bytes;
}

/* Of operands first .. end - 1, received by the rank with most of all. Of one plan that is its price. */
static int64_t busiest(const rule_way *way, int first, int end, int ranks)
{
    int64_t most = 0, sum = 0;
    int moving = 0;
    for (int i = first; i < end; i++)
        for (int k = 0; k < RULE_MOVES; k++) {
            int64_t bytes = dt_plan_price(way->plans[i][k]).bytes;
            moving += bytes > 0;
            sum += bytes;
        }
    if (moving < 2 || ranks > MANY_RANKS) return sum;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t bytes = 0;
        for (int i = first; i < end; i++) bytes += received(way, i, rank);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void plan_operand(const dt_spec *given, const dt_spec *used, const dt_plan **plans)
{
    const dt_spec *via = dti_dispatch_via(given, used);
    if (!via) return;
    plans[0] = dt_plan_create(given, via, DT_PLAN_TIME);
    if (via != used) plans[1] = dt_plan_create(via, used, DT_PLAN_TIME);
    for (int k = 0; k < RULE_MOVES; k++) dt_plan_step_count(plans[k]); /* may fail, here and not while printing     */
}

/* Results are pulled where an index map's dim is split. */
static void plan_results(const rule_report *r, const dti_answer *answer, rule_way *way)
{
    const dt_index_map *map = &r->asking.derived.map;
    dti_dispatch d = { .n = r->n, .result_count = r->asking.rule.result_count };
    memcpy(d.used, answer->used, sizeof d.used);
    memcpy(d.result, answer->result, sizeof d.result);
    way->pulls = map->part_count && dti_pulls(map, &d);
    for (int k = 0; k < d.result_count && way->pulls; k++) {
        way->plans[RULE_PULLS + k][0] = dti_pull_plan(map, &d, k);
        dt_plan_step_count(way->plans[RULE_PULLS + k][0]);
        way->moved[RULE_PULLS + k] = dt_plan_price(way->plans[RULE_PULLS + k][0]).bytes;
    }
}

/* What the first rank receives where the op is made of others: the call itself, without data. */
static void count_statistics(const rule_report *r, const dti_answer *answer, rule_way *way)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    dt_tensor *x[DT_MAX_OPERANDS] = { NULL };
    int scope = dt_scope_push(ctx, 0);
    for (int i = 0; i < r->n; i++)
        if (r->given[i]) x[i] = dt_zeros(answer->used[i]);
    dt_counters before = dt_mesh_counters(r->mesh, NULL);
    dt_apply(r->op, x, r->n, r->values);
    dt_counters after = dt_mesh_counters(r->mesh, NULL);
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) way->statistics += after.bytes[k] - before.bytes[k];
    way->calls = after.implied - before.implied;
    dt_scope_pop(ctx, scope, NULL);
}

/* The plans are those of a call: for the least time. false: the context says why. */
static bool plan_way(const rule_report *r, const dti_answer *answer, rule_way *way)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    int ranks = dt_rank_count(ctx);
    *way = (rule_way){ .answer = answer };
    for (int i = 0; i < r->n; i++) {
        if (r->given[i] && answer->used[i] != r->given[i]) plan_operand(r->given[i], answer->used[i], way->plans[i]);
        way->moved[i] = busiest(way, i, i + 1, ranks);
    }
    plan_results(r, answer, way);
    if (answer->broken_dims) count_statistics(r, answer, way);
    way->bytes = busiest(way, 0, RULE_TENSORS, ranks) + way->statistics;
    return dt_context_status(ctx) == DT_OK;
}

static bool is_same(const dti_answer *a, const dti_answer *b)
{
    return memcmp(a->used, b->used, sizeof a->used) == 0 && memcmp(a->result, b->result, sizeof a->result) == 0;
}

static bool is_listed(const rule_report *r, const dti_answer *answer)
{
    if (is_same(answer, r->way.answer)) return true;
    for (int i = 0; i < r->other_count; i++)
        if (is_same(answer, r->others[i].answer)) return true;
    return false;
}

static bool list_others(rule_report *r)
{
    for (int i = 0; i < r->listed.answer_count; i++) {
        const dti_answer *answer = &r->listed.answer[i];
        if (is_listed(r, answer)) continue;
        if (!plan_way(r, answer, &r->others[r->other_count])) return false;
        r->other_count++;
    }
    return true;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* false: the context says why. */
static bool ask(rule_report *r)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    dt_shape scalar = DT_SCALAR;
    dti_attributes attributes = { 0 };
    return rule_attributes(ctx, r->op, r->attribute_texts, r->attribute_count, r->values)
        && dti_attributes_read(ctx, r->op, r->values, r->given[0] ? &r->given[0]->shape : &scalar, &attributes)
        && dti_row_ask(ctx, r->op, r->given, r->n, &attributes, &r->asking)
        && dti_propagate(ctx, &r->asking.ask, 1, &r->taken)
        && dti_propagate(ctx, &r->asking.ask, DTI_MAX_ALTERNATIVES, &r->listed)
        && plan_way(r, &r->taken.answer[0], &r->way) && list_others(r);
}

/* The call itself, in a strict scope: it says what would have to move. */
static bool is_strict(const rule_report *r)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    dt_tensor *x[DT_MAX_OPERANDS] = { NULL };
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    for (int i = 0; i < r->n; i++)
        if (r->given[i]) x[i] = dt_zeros(r->given[i]);
    dt_apply(r->op, x, r->n, r->values);
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx) == DT_OK;
}

static int report(const tool_call *call, dt_context *ctx, rule_report *r)
{
    if (!dry_topology(ctx, call->values[OPTION_TOPOLOGY])) return tool_fail_context(call->command, ctx);
    r->mesh = dt_mesh_create(ctx, call->values[OPTION_MESH]);
    if (!r->mesh) return tool_fail_context(call->command, ctx);
    int status = find_op(call, r);
    if (status == TOOL_OK) status = read_words(call, r);
    if (status != TOOL_OK) return status;
    if (!ask(r) || (call->values[OPTION_STRICT] && !is_strict(r))) return tool_fail_context(call->command, ctx);
    if (call->values[OPTION_JSON]) rule_print_json(call->out, r);
    else if (!rule_print_text(call->out, r)) return tool_fail(call->command, TOOL_FAILED, "out of memory");
    return TOOL_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int rule_run(const tool_call *call)
{
    dt_context *ctx = NULL;
    if (!call->values[OPTION_MESH])
        return tool_fail(call->command, TOOL_USAGE, "expected --mesh, the mesh of the operands; see dt rule --help");
    int status = dry_begin(call->command, call->values[OPTION_MESH], call->values[OPTION_RANKS], &ctx);
    if (status != TOOL_OK) return status;
    rule_report *r = calloc(1, sizeof *r);
    status = r ? report(call, ctx, r) : tool_fail(call->command, TOOL_FAILED, "out of memory");
    free(r);
    dt_context_destroy(&ctx);
    return status;
}

const tool_command dt_rule_command = {
    .name = "rule",
    .summary = "which placements an op's operands take, and what its results are",
    .arguments = "OP SPEC... [NAME=VALUE...]",
    .argument_count = 1,
    .argument_limit = 1 + DT_MAX_OPERANDS + DT_MAX_ATTRIBUTES,
    .details = "A SPEC per operand, f32[64,512]@tp:S(1); \"-\" is an absent one, as are those left out at the end.\n"
               "Attributes are dim=1, dims=0,2, keep=true, value=-0.5, dtype=bf16, shape=2,3, as the op has them;\n"
               "those left out are 0. dt info --ops lists the ops.\n"
               "Bytes are what the busiest rank receives, by the plans that would run; of more than 1024 ranks the\n"
               "bytes of the busiest of each operand, added. Times are of moves and work, by the formulas that\n"
               "choose.\n",
    .options = options,
    .option_count = OPTION_COUNT,
    .run = rule_run,
};
