/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of an op from texts: a reader per kind. Whether a dim is one of the operand's is not known here. */
#include "rule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/scan.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool read_int(dti_scan *scan, void *value)
{
    int64_t number;
    bool minus = dti_scan_char(scan, '-');
    if (!dti_scan_int(scan, "an integer", &number)) return false;
    *(int64_t *)value = minus ? -number : number;
    return true;
}

static bool read_dim(dti_scan *scan, void *value)
{
    const char *at = scan->at;
    int64_t number;
    if (!read_int(scan, &number)) return false;
    if (number < -DT_MAX_DIMS || number >= DT_MAX_DIMS)
        return dti_scan_fail(scan, DT_ERR_ARG, at, "expected a dim in %d .. %d", -DT_MAX_DIMS, DT_MAX_DIMS - 1);
    *(int *)value = (int)number;
    return true;
}

/* "all", or dims. */
static bool read_dims(dti_scan *scan, void *value)
{
    dt_dims *dims = value;
    *dims = DT_ALL;
    if (dti_scan_text(scan, "all")) return true;
    do {
        if (dims->n == DT_MAX_DIMS) return dti_scan_fail(scan, DT_ERR_ARG, scan->at, "more than %d dims", DT_MAX_DIMS);
        if (!read_dim(scan, &dims->dim[dims->n++])) return false;
    } while (dti_scan_char(scan, ','));
    return true;
}

static bool read_bool(dti_scan *scan, void *value)
{
    static const char *const words[] = { "false", "true" };
    for (int i = 0; i < DT_COUNT(words); i++) {
        if (!dti_scan_text(scan, words[i])) continue;
        *(bool *)value = i != 0;
        return true;
    }
    return dti_scan_expected(scan, "true or false");
}

static bool read_number(dti_scan *scan, void *value)
{
    char *end;
    double number = strtod(scan->at, &end);
    if (end == scan->at || *scan->at == ' ' || *scan->at == '\t') return dti_scan_expected(scan, "a number");
    scan->at = end;
    *(double *)value = number;
    return true;
}

static bool read_dtype(dti_scan *scan, void *value)
{
    int32_t dtype;
    if (!dti_scan_dtype(scan, &dtype)) return false;
    *(dt_dtype *)value = (dt_dtype)dtype;
    return true;
}

/* Nothing is the shape of a scalar. */
static bool read_shape(dti_scan *scan, void *value)
{
    dt_shape *shape = value;
    *shape = DT_SCALAR;
    if (*scan->at == '\0') return true;
    do {
        if (shape->n == DT_MAX_DIMS) return dti_scan_fail(scan, DT_ERR_ARG, scan->at, "more than %d dims", DT_MAX_DIMS);
        if (!read_int(scan, &shape->dim[shape->n++])) return false;
    } while (dti_scan_char(scan, ','));
    return true;
}

/* All that is left. */
static bool read_text(dti_scan *scan, void *value)
{
    size_t n = strlen(scan->at);
    if (n >= DT_MAX_TEXT)
        return dti_scan_fail(scan, DT_ERR_ARG, scan->at, "more than %d characters", DT_MAX_TEXT - 1);
    memcpy(value, scan->at, n + 1);
    scan->at += n;
    return true;
}

typedef struct kind { const char *name; bool (*read)(dti_scan *scan, void *value); } kind;

static const kind kinds[DT_ATTRIBUTE_KIND_COUNT] = {
    [DT_ATTRIBUTE_INT] = { "int", read_int },       [DT_ATTRIBUTE_DIM] = { "dim", read_dim },
    [DT_ATTRIBUTE_DIMS] = { "dims", read_dims },    [DT_ATTRIBUTE_BOOL] = { "bool", read_bool },
    [DT_ATTRIBUTE_NUMBER] = { "number", read_number }, [DT_ATTRIBUTE_DTYPE] = { "dtype", read_dtype },
    [DT_ATTRIBUTE_SHAPE] = { "shape", read_shape }, [DT_ATTRIBUTE_LIST] = { "list", read_shape },
    [DT_ATTRIBUTE_TEXT] = { "text", read_text },
};

const char *rule_attribute_kind(dt_attribute_kind which) { return kinds[which].name; }

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void list_names(const dt_op *op, char *text, size_t room)
{
    dti_pen pen = { text, room, 0 };
    dti_put(&pen, op->attribute_count ? "it has " : "it has none");
    for (int i = 0; i < op->attribute_count; i++) dti_put(&pen, "%s%s", i ? ", " : "", op->attributes[i].name);
}

static int find(const dt_op *op, dti_word name)
{
    for (int i = 0; i < op->attribute_count; i++)
        if (dti_word_is(name, op->attributes[i].name)) return i;
    return -1;
}

static bool read_attribute(dti_scan *scan, const dt_op *op, unsigned *seen, char *values)
{
    char names[256];
    dti_word name;
    if (!dti_scan_name(scan, &name)) return false;
    int i = find(op, name);
    if (i < 0) {
        list_names(op, names, sizeof names);
        return dti_scan_fail(scan, DT_ERR_ARG, name.text, "%.*s has no attribute %.*s, %s",
                             (int)strcspn(op->head, "("), op->head, name.n, name.text, names);
    }
    if (*seen >> i & 1) return dti_scan_fail(scan, DT_ERR_ARG, name.text, "%.*s stands twice", name.n, name.text);
    *seen |= 1u << i;
    if (!dti_scan_char(scan, '=')) return dti_scan_expected(scan, "\"=\"");
    return kinds[op->attributes[i].kind].read(scan, values + op->attributes[i].offset)
        && dti_scan_end(scan, "the end");
}

bool rule_attributes(dt_context *ctx, const dt_op *op, const char *const *texts, int n, void *values)
{
    unsigned seen = 0;
    for (int i = 0; i < n; i++) {
        dti_scan scan = { ctx, "attribute", texts[i], texts[i] };
        if (!read_attribute(&scan, op, &seen, values)) return false;
    }
    return true;
}
