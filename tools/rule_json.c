/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dt rule` found out, as JSON. */
#include "rule.h"

#include "json.h"
#include "step.h"

enum { ROOM = 1024 };

typedef void (*put_fn)(dti_pen *pen, const dti_rule *rule);

static const char *written(put_fn put, const dti_rule *rule, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    room[0] = '\0';
    put(&pen, rule);
    return room;
}
static const char *text_or_null(const dt_spec *spec) { return spec ? dt_spec_text(spec) : NULL; }

static void json_results(json *j, const dti_answer *answer, const char *key, int first, int end)
{
    json_begin(j, key, JSON_ARRAY, JSON_ONE_LINE);
    for (int i = first; i < end; i++) json_text(j, NULL, dt_spec_text(answer->result[i]));
    json_end(j);
}

static void json_outputs(json *j, const rule_report *r, const dti_answer *answer)
{
    int seen = dti_rule_results(&r->why.asking.rule), all = r->why.asking.rule.result_count;
    json_results(j, answer, "outputs", 0, seen);
    if (all > seen) json_results(j, answer, "kept", seen, all);
}

static void json_inputs(json *j, const rule_report *r)
{
    json_begin(j, "inputs", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < r->n; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", dti_rule_name(&r->why.asking.rule, i));
        json_text(j, "given", text_or_null(r->given[i]));
        json_text(j, "used", text_or_null(r->why.way.answer->used[i]));
        json_int(j, "bytes", r->why.way.moved[i]);
        step_json(j, r->why.way.plans[i], DTI_MOVES, JSON_ONE_LINE);
        json_end(j);
    }
    json_end(j);
}

/* Of results that an index map leads to, in the order of outputs. */
static void json_pulls(json *j, const dti_way *way, int results)
{
    json_begin(j, "pulls", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < results; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_int(j, "bytes", way->moved[DTI_PULLS + i]);
        step_json(j, way->plans[DTI_PULLS + i], DTI_MOVES, JSON_ONE_LINE);
        json_end(j);
    }
    json_end(j);
}

static void json_along(const dti_reason *a, void *arg)
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

static void json_cost(json *j, const dti_way *way)
{
    if (way->calls) json_int(j, "statistics", way->statistics);
    json_int(j, "bytes", way->bytes);
    json_real(j, "time_us", (double)way->answer->ns / 1e3);
}

static void json_others(json *j, const rule_report *r)
{
    json_begin(j, "alternatives", JSON_ARRAY, JSON_LINES);
    for (int k = 0; k < r->why.other_count; k++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_begin(j, "inputs", JSON_ARRAY, JSON_ONE_LINE);
        for (int i = 0; i < r->n; i++) json_text(j, NULL, text_or_null(r->why.others[k].answer->used[i]));
        json_end(j);
        json_outputs(j, r, r->why.others[k].answer);
        json_cost(j, &r->why.others[k]);
        json_end(j);
    }
    json_end(j);
}

static void json_op(json *j, const rule_report *r)
{
    char room[ROOM];
    json_text(j, "op", dti_rule_op(&r->why.asking.rule));
    json_text(j, "head", written(dti_put_head, &r->why.asking.rule, room));
    json_text(j, "rule", written(dti_put_rule, &r->why.asking.rule, room));
    json_text(j, "polynomial", written(dti_put_polynomial, &r->why.asking.rule, room));
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
    json_outputs(&j, r, r->why.way.answer);
    if (r->why.way.pulls) json_pulls(&j, &r->why.way, r->why.asking.rule.result_count);
    json_cost(&j, &r->why.way);
    json_begin(&j, "along", JSON_ARRAY, JSON_LINES);
    dti_explain_along(&r->why, json_along, &j);
    json_end(&j);
    json_others(&j, r);
    json_end(&j);
}
