/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt rule`: which placements an op's operands take, and what its results are. It reads the line, and has a call of the
 * row explained in a dry context. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "dry.h"
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

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* false: the context says why. */
static bool ask(rule_report *r)
{
    return rule_attributes(dt_mesh_context(r->mesh), r->op, r->attribute_texts, r->attribute_count, r->values)
        && dti_explain(r->mesh, r->op, r->given, r->n, r->values, NULL, &r->why);
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

static bool print_text(FILE *out, const rule_report *r)
{
    char *text = dti_explain_text(&r->why);
    if (text) fputs(text, out);
    free(text);
    return text != NULL;
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
    else if (!print_text(call->out, r)) return tool_fail(call->command, TOOL_FAILED, "out of memory");
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
