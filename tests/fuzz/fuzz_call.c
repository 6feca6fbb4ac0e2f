/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls from any text: the first byte chooses the mesh; the lines behind it are an op, or head, rule and polynomial of
 * a row, then operands ("-" is an absent one) and attributes name=value, in any order. What is refused is refused in
 * one line. What is answered is legal along every mesh dim, keeps shapes and dtypes, and can be reached from what was
 * given. */
#include "fuzz.h"

#include <dtensor/plan.h>

#include "ops/pull.h"
#include "tools/rule.h"

enum { MANY = 4096 };              /* elements of operands for which plans are made                                */

static const char *const meshes[] = { "dp=2,tp=4", "a=3,one=1,b=2", "x", "p=2,q=2,r=2,s=2", "wide=512,tall=32" };
static const int ranks[] = { 8, 6, 1, 16, 16384 };

static fuzz_run runs[DT_COUNT(meshes)];

typedef struct call {
    dt_op own;
    const dt_op *op;
    int n, attribute_count;
    const dt_spec *in[DT_MAX_OPERANDS];
    const char *texts[DT_MAX_ATTRIBUTES];
    _Alignas(16) unsigned char values[DT_MAX_ATTRIBUTE_BYTES];
    dti_attributes attributes;
    dti_asking asking;
    dti_propagation one, many;
} call;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Cut the line that ends at the next newline; *text then stands behind it. */
static char *line(char **text)
{
    char *begin = *text, *end = strchr(begin, '\n');
    *text = end ? end + 1 : begin + strlen(begin);
    if (end) *end = '\0';
    return begin;
}

static bool read_op(call *c, char **text)
{
    const char *head = line(text);
    if (!strchr(head, '(')) return (c->op = dt_op_find(head)) != NULL;
    c->own.head = head;
    c->own.rule = line(text);
    c->own.polynomial = line(text);
    c->op = &c->own;
    return true;
}

/* false: some operand is none. */
static bool read_words(dt_context *ctx, dt_mesh *mesh, call *c, char **text)
{
    while (**text) {
        const char *word = line(text);
        if (word[strcspn(word, "=[@")] == '=') {
            if (c->attribute_count < DT_MAX_ATTRIBUTES) c->texts[c->attribute_count++] = word;
        } else if (c->n < DT_MAX_OPERANDS) {
            const dt_spec *spec = strcmp(word, "-") == 0 ? NULL : dt_spec_parse(mesh, word);
            if (dt_context_status(ctx)) return false;
            c->in[c->n++] = spec;
        }
    }
    return true;
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

static int64_t elements_of(dt_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++)
        if (shape.dim[d] > MANY || (n *= shape.dim[d]) > MANY) return MANY + 1;
    return n;
}

static void can_be_used(dt_context *ctx, const dt_spec *given, const dt_spec *used)
{
    dt_shape a = dt_spec_shape(given), b = dt_spec_shape(used);
    fuzz_demand(a.n == b.n, "as many dims");
    for (int d = 0; d < a.n; d++) fuzz_demand(a.dim[d] == b.dim[d], "the same sizes");
    fuzz_demand(dt_spec_dtype(given) == dt_spec_dtype(used), "the same dtype");
    fuzz_demand(dt_spec_check(used) == DT_OK, dt_context_error(ctx));
    if (elements_of(a) > MANY || dt_rank_count(ctx) > 64) return;
    const dt_spec *via = dti_dispatch_via(given, given, used);
    fuzz_demand(dt_plan_create(given, via, DT_PLAN_TIME) != NULL, dt_context_error(ctx));
    fuzz_demand(dt_plan_create(via, used, DT_PLAN_TIME) != NULL, dt_context_error(ctx));
}

/* Results along an index map have plans, which move no more than the results' bytes to each rank. */
static void can_be_pulled(dt_context *ctx, const call *c, const dti_answer *answer)
{
    const dt_index_map *map = &c->asking.derived.map;
    dti_dispatch d = { .op = c->op, .n = c->n, .result_count = c->asking.rule.result_count };
    memcpy(d.used, answer->used, sizeof d.used);
    memcpy(d.result, answer->result, sizeof d.result);
    if (!map->part_count || dt_rank_count(ctx) > 64) return;
    fuzz_demand(dti_map_check(ctx, map, &d), dt_context_error(ctx));
    for (int r = 0; r < d.result_count && dti_pulls(map, &d); r++) {
        if (elements_of(dt_spec_shape(d.result[r])) > MANY) continue;
        const dt_plan *plan = dti_pull_plan(map, &d, r);
        fuzz_demand(plan != NULL, dt_context_error(ctx));
        int64_t part = elements_of(dt_spec_shape(d.result[r])) * (int64_t)dt_dtype_bytes(dt_spec_dtype(d.result[r]));
        fuzz_demand(dt_plan_price(plan).bytes <= part, "a rank receives no more than the result");
    }
}

static void holds(dt_context *ctx, const call *c, const dti_propagation *p, const dti_answer *answer)
{
    char why[2048] = "";
    for (int i = 0; i < c->n; i++) {
        fuzz_demand(!c->in[i] == !answer->used[i], "the same operands");
        if (c->in[i]) can_be_used(ctx, c->in[i], answer->used[i]);
    }
    for (int r = 0; r < c->asking.rule.result_count; r++)
        fuzz_demand(dt_spec_check(answer->result[r]) == DT_OK, dt_context_error(ctx));
    for (int m = 0; m < dt_mesh_dim_count(p->mesh); m++) {
        dti_strategy again = answer->along[m];
        dti_pen pen = { why, sizeof why, 0 };
        fuzz_demand(dti_partial_decide(&c->asking.rule, &p->bound, &again, &pen), why);
        fuzz_demand(memcmp(&again, &answer->along[m], sizeof again) == 0, "decided alike");
    }
    can_be_pulled(ctx, c, answer);
    fuzz_demand(answer->bytes >= 0 && answer->ns >= 0, "costs are no less than nothing");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool ask(dt_context *ctx, call *c)
{
    dt_shape scalar = DT_SCALAR, first = c->n && c->in[0] ? dt_spec_shape(c->in[0]) : scalar;
    return rule_attributes(ctx, c->op, c->texts, c->attribute_count, c->values)
        && dti_attributes_read(ctx, c->op, c->values, &first, &c->attributes)
        && dti_row_ask(ctx, c->op, c->in, c->n, &c->attributes, &c->asking);
}

static void try_call(dt_context *ctx, call *c)
{
    bool made = ask(ctx, c);
    fuzz_outcome(ctx, made, false);
    if (!made) return;
    made = dti_propagate(ctx, &c->asking.ask, 1, &c->one);
    fuzz_outcome(ctx, made, false);
    fuzz_demand(dti_propagate(ctx, &c->asking.ask, DTI_MAX_ALTERNATIVES, &c->many) == made, "the same again");
    fuzz_outcome(ctx, made, false);
    if (!made) return;
    fuzz_demand(c->one.answer_count == 1 && c->many.answer_count >= 1, "an answer");
    holds(ctx, c, &c->one, &c->one.answer[0]);
    for (int i = 0; i < c->many.answer_count; i++) holds(ctx, c, &c->many, &c->many.answer[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static call c;
    if (size == 0) return 0;
    int which = data[0] % DT_COUNT(meshes);
    dt_context *ctx = fuzz_context(&runs[which], ranks[which]);
    dt_mesh *mesh = dt_mesh_create(ctx, meshes[which]);
    char *text = fuzz_text(data + 1, size - 1), *rest = text;
    memset(&c, 0, sizeof c);
    bool read = read_op(&c, &rest) && read_words(ctx, mesh, &c, &rest);
    if (read) try_call(ctx, &c);
    dt_context_clear(ctx);
    free(text);
    return 0;
}
