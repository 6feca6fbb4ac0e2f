/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dt rule` found out, as text and as JSON. Prints and decides nothing, but why a placement was not kept: that is
 * asked of dti_partial_decide, as the search asked it. */
#include "rule.h"

#include <string.h>

#include "json.h"
#include "step.h"
#include "tool.h"

enum { ROOM = 1024 };

static const char *operand_name(const rule_report *r, int i) { return dti_rule_name(&r->asking.rule, i); }

/* "R" where there is nothing to say. */
static const char *placements_of(const dt_spec *spec)
{
    const char *text = dt_spec_placements(spec);
    return *text ? text : "R";
}

typedef void (*put_fn)(dti_pen *pen, const dti_rule *rule);

static const char *written(put_fn put, const dti_rule *rule, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    room[0] = '\0';
    put(&pen, rule);
    return room;
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

/* What happens along one mesh dim. */
typedef struct along {
    const char *dim;
    char takes[ROOM], why[ROOM];
    bool moves;                        /* some placement is not kept                                               */
    char given[ROOM], refusal[ROOM];   /* where it moves: as it was given, and what forbids that; "": nothing      */
} along;

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

static bool is_split(const dti_form *form, int factor, int m)
{
    for (int k = form->split_first[factor]; k < form->split_first[factor + 1]; k++)
        if (form->split[k] == m) return true;
    return false;
}

/* How an operand was placed along mesh dim m. false: by a factor that no letter has. */
static bool given_place(const rule_report *r, int i, int m, dti_place *place)
{
    const dti_form *form = &r->given[i]->form;
    dti_bound_dims dims;
    *place = (dti_place){ .what = form->partial[m] ? DTI_PLACE_P : DTI_PLACE_R, .kind = form->partial[m] };
    dti_bound_operand(&r->asking.rule, &r->taken.bound, i, 0, &dims);
    for (int d = 0; d < form->dim_count; d++) {
        int64_t before = 1;
        for (int f = form->factor_first[d]; f < form->factor_first[d + 1]; before *= form->size[f++]) {
            if (!is_split(form, f, m)) continue;
            int factor = factor_at(&r->taken.bound, &dims, d, before, form->size[f]);
            *place = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)factor };
            return factor >= 0;
        }
    }
    return true;
}

static bool same_place(dti_place a, dti_place b)
{
    return a.what == b.what && a.kind == b.kind && (a.what != DTI_PLACE_S || a.factor == b.factor);
}

/* All operands as they were given along mesh dim m. false: one cannot be said. */
static bool given_strategy(const rule_report *r, int m, dti_strategy *given, bool *moves)
{
    bool said = true;
    memset(given, 0, sizeof *given);
    for (int i = 0; i < r->n; i++) {
        if (!r->given[i]) continue;
        bool is_said = given_place(r, i, m, &given->operand[i]);
        said &= is_said;
        if (given->operand[i].what == DTI_PLACE_R) continue;
        *moves |= !is_said || !same_place(given->operand[i], r->way.answer->along[m].operand[i]);
    }
    return said;
}

/* The operands of a strategy alone. */
static void put_operands(dti_pen *pen, const rule_report *r, const dti_strategy *s)
{
    for (int i = 0, n = 0; i < r->n; i++) {
        if (!r->given[i]) continue;
        dti_put(pen, "%s%s ", n++ ? ", " : "", operand_name(r, i));
        dti_put_place(pen, &r->asking.rule, &r->taken.bound, s->operand[i]);
    }
}

static void look_along(const rule_report *r, int m, along *a)
{
    dti_strategy taken = r->way.answer->along[m], given;
    const dti_bound *bound = &r->taken.bound;
    dti_pen takes = { a->takes, ROOM, 0 }, why = { a->why, ROOM, 0 };
    memset(a, 0, sizeof *a);
    a->dim = dt_mesh_dim_name(r->mesh, m);
    dti_partial_decide(&r->asking.rule, bound, &taken, &why);
    dti_put_strategy(&takes, &r->asking.rule, bound, &taken);
    if (!*a->why) strcpy(a->why, "nothing is split: all ranks do the same");
    bool said = given_strategy(r, m, &given, &a->moves);
    if (!a->moves || !said) return;
    dti_pen before = { a->given, ROOM, 0 }, refusal = { a->refusal, ROOM, 0 };
    put_operands(&before, r, &given);
    if (dti_partial_decide(&r->asking.rule, bound, &given, &refusal))
        strcpy(a->refusal, "by itself it would do; other mesh dims, integers that round, or the cost forbid it");
}

typedef void (*along_fn)(const along *a, void *arg);

/* Mesh dims of size 1 are none. */
static void each_along(const rule_report *r, along_fn fn, void *arg)
{
    for (int m = 0; m < dt_mesh_dim_count(r->mesh); m++) {
        along a;
        if (dt_mesh_size(r->mesh, dt_mesh_dim_name(r->mesh, m)) == 1) continue;
        look_along(r, m, &a);
        fn(&a, arg);
    }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_op(FILE *out, const void *arg)
{
    const rule_report *r = arg;
    char room[ROOM];
    fprintf(out, "op\t%s\n", written(dti_put_head, &r->asking.rule, room));
    fprintf(out, "rule\t%s\n", written(dti_put_rule, &r->asking.rule, room));
    fprintf(out, "polynomial\t%s\n", written(dti_put_polynomial, &r->asking.rule, room));
    for (int i = 0; i < r->attribute_count; i++) fprintf(out, "attribute\t%s\n", r->attribute_texts[i]);
    fprintf(out, "mesh\t%s\n", dt_mesh_text(r->mesh));
}

/* "all_gather tp", "reduce_scatter tp, all_gather dp"; "-": nothing. */
static void put_moves(FILE *out, const dt_plan *const *plans)
{
    int n = 0;
    for (int k = 0; k < RULE_MOVES; k++)
        for (int i = 0; i < dt_plan_step_count(plans[k]); i++, n++) {
            dt_plan_step step = dt_plan_step_at(plans[k], i);
            fprintf(out, "%s%s %s", n ? ", " : "", dt_comm_kind_text(step.kind), step.dims);
        }
    if (n == 0) fputs("-", out);
}

static void put_operand(FILE *out, const rule_report *r, int i)
{
    fprintf(out, "%s\t", operand_name(r, i));
    if (!r->given[i]) {
        fputs("absent\n", out);
        return;
    }
    fprintf(out, "%s\t%s\t%lld\t", dt_spec_text(r->given[i]), dt_spec_text(r->way.answer->used[i]),
            (long long)r->way.moved[i]);
    put_moves(out, r->way.plans[i]);
    fputc('\n', out);
}

static void put_operand_rows(FILE *out, const void *arg)
{
    const rule_report *r = arg;
    fputs("operand\tgiven\tused\tbytes\tmoves\n", out);
    for (int i = 0; i < r->n; i++) put_operand(out, r, i);
}

static void put_results(FILE *out, const void *arg)
{
    const rule_report *r = arg;
    if (r->way.pulls) fputs("result\tpulled\tbytes\tmoves\n", out);
    for (int i = 0; i < r->asking.rule.result_count; i++) {
        const char *which = i < dti_rule_results(&r->asking.rule) ? "result" : "kept";
        fprintf(out, "%s\t%s", r->way.pulls ? "" : which, dt_spec_text(r->way.answer->result[i]));
        if (r->way.pulls) {
            fprintf(out, "\t%lld\t", (long long)r->way.moved[RULE_PULLS + i]);
            put_moves(out, r->way.plans[RULE_PULLS + i]);
        }
        fputc('\n', out);
    }
}

static void put_cost(FILE *out, const void *arg)
{
    const rule_way *way = &((const rule_report *)arg)->way;
    if (way->calls)
        fprintf(out, "parts\t%lld\treceived by the first rank in %lld calls, statistics of rows\n",
                (long long)way->statistics, (long long)way->calls);
    fprintf(out, "bytes\t%lld\treceived by the busiest rank\n", (long long)way->bytes);
    fprintf(out, "time\t%.3f\tus, moves and work, by the formulas that choose\n", (double)way->answer->ns / 1e3);
}

static void put_along(const along *a, void *arg)
{
    fprintf(arg, "%s\t%s\t%s\n", a->dim, a->takes, a->why);
    if (*a->given) fprintf(arg, "\tnot %s\t%s\n", a->given, a->refusal);
}

static void put_why(FILE *out, const void *arg)
{
    fputs("along\ttakes\twhy\n", out);
    each_along(arg, put_along, out);
}

static void put_other(FILE *out, const rule_report *r, const rule_way *way)
{
    fprintf(out, "%lld\t%.3f", (long long)way->bytes, (double)way->answer->ns / 1e3);
    for (int i = 0; i < r->n; i++)
        if (r->given[i]) fprintf(out, "\t%s", placements_of(way->answer->used[i]));
    for (int i = 0; i < dti_rule_results(&r->asking.rule); i++)
        fprintf(out, "\t%s", placements_of(way->answer->result[i]));
    fputc('\n', out);
}

static void put_others(FILE *out, const void *arg)
{
    const rule_report *r = arg;
    if (r->other_count == 0) {
        fputs("no alternatives\n", out);
        return;
    }
    fputs("bytes\tus", out);
    for (int i = 0; i < r->n; i++)
        if (r->given[i]) fprintf(out, "\t%s", operand_name(r, i));
    for (int i = 0; i < dti_rule_results(&r->asking.rule); i++) fputs("\tresult", out);
    fputs("\n", out);
    for (int i = 0; i < r->other_count; i++) put_other(out, r, &r->others[i]);
}

typedef struct section { tool_put_fn put; const char *columns; } section;

bool rule_print_text(FILE *out, const rule_report *r)
{
    static const section sections[] = {
        { put_op, "ll" }, { put_operand_rows, "lllrl" }, { put_results, "llrl" }, { put_cost, "lrl" },
        { put_why, "lll" }, { put_others, "rrllllllllllllllllllllllllllllll" },
    };
    for (int i = 0; i < DT_COUNT(sections); i++) {
        if (i) fputc('\n', out);
        if (!tool_put(out, sections[i].columns, sections[i].put, r)) return false;
    }
    return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *text_or_null(const dt_spec *spec) { return spec ? dt_spec_text(spec) : NULL; }

static void json_results(json *j, const dti_answer *answer, const char *key, int first, int end)
{
    json_begin(j, key, JSON_ARRAY, JSON_ONE_LINE);
    for (int i = first; i < end; i++) json_text(j, NULL, dt_spec_text(answer->result[i]));
    json_end(j);
}

static void json_outputs(json *j, const rule_report *r, const dti_answer *answer)
{
    int seen = dti_rule_results(&r->asking.rule), all = r->asking.rule.result_count;
    json_results(j, answer, "outputs", 0, seen);
    if (all > seen) json_results(j, answer, "kept", seen, all);
}

static void json_inputs(json *j, const rule_report *r)
{
    json_begin(j, "inputs", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < r->n; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", operand_name(r, i));
        json_text(j, "given", text_or_null(r->given[i]));
        json_text(j, "used", text_or_null(r->way.answer->used[i]));
        json_int(j, "bytes", r->way.moved[i]);
        step_json(j, r->way.plans[i], RULE_MOVES, JSON_ONE_LINE);
        json_end(j);
    }
    json_end(j);
}

static void json_along(const along *a, void *arg)
{
    json *j = arg;
    json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
    json_text(j, "dim", a->dim);
    json_text(j, "takes", a->takes);
    json_text(j, "why", a->why);
    json_text(j, "given", *a->given ? a->given : NULL);
    json_text(j, "why_not", *a->given ? a->refusal : NULL);
    json_end(j);
}

/* Of results that an index map leads to, in the order of outputs. */
static void json_pulls(json *j, const rule_report *r)
{
    json_begin(j, "pulls", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < r->asking.rule.result_count && r->way.pulls; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_int(j, "bytes", r->way.moved[RULE_PULLS + i]);
        step_json(j, r->way.plans[RULE_PULLS + i], RULE_MOVES, JSON_ONE_LINE);
        json_end(j);
    }
    json_end(j);
}

static void json_cost(json *j, const rule_way *way)
{
    if (way->calls) json_int(j, "statistics", way->statistics);
    json_int(j, "bytes", way->bytes);
    json_real(j, "time_us", (double)way->answer->ns / 1e3);
}

static void json_others(json *j, const rule_report *r)
{
    json_begin(j, "alternatives", JSON_ARRAY, JSON_LINES);
    for (int k = 0; k < r->other_count; k++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_begin(j, "inputs", JSON_ARRAY, JSON_ONE_LINE);
        for (int i = 0; i < r->n; i++) json_text(j, NULL, text_or_null(r->others[k].answer->used[i]));
        json_end(j);
        json_outputs(j, r, r->others[k].answer);
        json_cost(j, &r->others[k]);
        json_end(j);
    }
    json_end(j);
}

static void json_op(json *j, const rule_report *r)
{
    char room[ROOM];
    json_text(j, "op", dti_rule_op(&r->asking.rule));
    json_text(j, "head", written(dti_put_head, &r->asking.rule, room));
    json_text(j, "rule", written(dti_put_rule, &r->asking.rule, room));
    json_text(j, "polynomial", written(dti_put_polynomial, &r->asking.rule, room));
    json_begin(j, "attributes", JSON_ARRAY, JSON_ONE_LINE);
    for (int i = 0; i < r->attribute_count; i++) json_text(j, NULL, r->attribute_texts[i]);
    json_end(j);
    json_text(j, "mesh", dt_mesh_text(r->mesh));
}

void rule_print_json(FILE *out, const rule_report *r)
{
    json j = { .out = out };
    json_begin(&j, NULL, JSON_OBJECT, JSON_LINES);
    json_op(&j, r);
    json_inputs(&j, r);
    json_outputs(&j, r, r->way.answer);
    if (r->way.pulls) json_pulls(&j, r);
    json_cost(&j, &r->way);
    json_begin(&j, "along", JSON_ARRAY, JSON_LINES);
    each_along(r, json_along, &j);
    json_end(&j);
    json_others(&j, r);
    json_end(&j);
}
