/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the op table, as they are written: what a call makes of one is what `dt rule` shows. */
#include "info_ops.h"

#include <string.h>

#include "json.h"
#include "rule.h"

static const char *or_else(const char *text, const char *otherwise) { return text ? text : otherwise; }

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_attributes(FILE *out, const dt_op *op)
{
    for (int i = 0; i < op->attribute_count; i++)
        fprintf(out, "%s%s=%s", i ? " " : "", op->attributes[i].name, rule_attribute_kind(op->attributes[i].kind));
    if (op->attribute_count == 0) fputs("-", out);
}

/* A derived text may say more than the row's own. */
static void put_text(FILE *out, const dt_op *op, const char *text, const char *otherwise)
{
    fprintf(out, "%s%s\t", or_else(text, op->derive ? "" : otherwise), op->derive ? text ? " *" : "*" : "");
}

static void put_ops(FILE *out, const void *arg)
{
    (void)arg;
    fputs("op\trule\tpolynomial\tdtypes\tattributes\t\n", out);
    for (int i = 0; i < dt_op_count(); i++) {
        const dt_op *op = dt_op_at(i);
        fprintf(out, "%s\t", op->head);
        put_text(out, op, op->rule, "->");
        put_text(out, op, op->polynomial, "none");
        fprintf(out, "%s\t", or_else(op->dtypes, "t"));
        put_attributes(out, op);
        fprintf(out, "\t%s\n", or_else(op->doc, ""));
    }
}

bool info_ops_text(FILE *out)
{
    if (!tool_put(out, "llllll", put_ops, NULL)) return false;
    fputs("\n*  attributes and shapes say more; dt rule shows what\n", out);
    return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void json_attributes(json *j, const dt_op *op)
{
    json_begin(j, "attributes", JSON_ARRAY, JSON_ONE_LINE);
    for (int i = 0; i < op->attribute_count; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", op->attributes[i].name);
        json_text(j, "kind", rule_attribute_kind(op->attributes[i].kind));
        json_end(j);
    }
    json_end(j);
}

static void json_op(json *j, const dt_op *op)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(op->head, "("), op->head);
    json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
    json_text(j, "name", name);
    json_text(j, "head", op->head);
    json_text(j, "rule", op->rule);
    json_text(j, "polynomial", op->polynomial);
    json_text(j, "dtypes", op->dtypes);
    json_bool(j, "derived", op->derive != NULL);
    json_attributes(j, op);
    json_text(j, "doc", op->doc);
    json_end(j);
}

void info_ops_json(FILE *out)
{
    json j = { .out = out };
    json_begin(&j, NULL, JSON_OBJECT, JSON_LINES);
    json_begin(&j, "ops", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < dt_op_count(); i++) json_op(&j, dt_op_at(i));
    json_end(&j);
    json_end(&j);
}
