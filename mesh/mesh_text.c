/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and prints the lists of names of the mesh notation. Knows no mesh and no topology: which names exist is for its
 * callers. Invariant: what it has read has no name twice, and every number written is in its kind's range. */
#include "mesh/mesh_text.h"

#include <limits.h>

#include "core/pen.h"

typedef enum number_rule { NUMBER_NONE, NUMBER_OPTIONAL, NUMBER_REQUIRED } number_rule;

typedef struct list_rule {
    const char *what;              /* what is read, for messages                                                   */
    number_rule number;
    const char *number_what;
    int min;                       /* smallest number                                                              */
    int max_items;
    dt_status twice;               /* of a name that stands twice                                                  */
} list_rule;

static const list_rule rules[DTI_LIST_KIND_COUNT] = {
    [DTI_LIST_MESH] = { "mesh", NUMBER_OPTIONAL, "a size", 1, DT_MAX_MESH_DIMS, DT_ERR_PARSE },
    [DTI_LIST_OPTION] = { "--dt-mesh", NUMBER_REQUIRED, "a size", 1, DT_MAX_MESH_DIMS, DT_ERR_PARSE },
    [DTI_LIST_DIMS] = { "mesh dims", NUMBER_NONE, "", 0, DT_MAX_MESH_DIMS, DT_ERR_ARG },
    [DTI_LIST_COORDS] = { "mesh coordinates", NUMBER_REQUIRED, "a coordinate", 0, DT_MAX_MESH_DIMS, DT_ERR_ARG },
    [DTI_LIST_PARTS] = { "mesh split", NUMBER_OPTIONAL, "a size", 1, DT_MAX_MESH_DIMS, DT_ERR_ARG },
    [DTI_LIST_LEVELS] = { "topology", NUMBER_REQUIRED, "a size", 1, DT_MAX_LINKS, DT_ERR_PARSE },
};

int dti_list_find(const dti_list *list, dti_word name)
{
    for (int i = 0; i < list->n; i++) {
        dti_word other = list->items[i].name;
        if (other.n == name.n && memcmp(other.text, name.text, (size_t)name.n) == 0) return i;
    }
    return -1;
}

static bool read_number(dti_scan *scan, const list_rule *rule, int *number)
{
    *number = DTI_UNSIZED;
    if (rule->number == NUMBER_NONE) return true;
    if (!dti_scan_char(scan, '='))
        return rule->number == NUMBER_OPTIONAL || dti_scan_expected(scan, "\"=\" and a number");
    const char *at = scan->at;
    int64_t value;
    if (!dti_scan_int(scan, rule->number_what, &value)) return false;
    if (value < rule->min || value > INT_MAX)
        return dti_scan_fail(scan, DT_ERR_ARG, at, "expected %s from %d to %d, got %lld", rule->number_what, rule->min,
                             INT_MAX, (long long)value);
    *number = (int)value;
    return true;
}

static bool read_item(dti_list *list, const list_rule *rule)
{
    dti_item item;
    if (!dti_scan_name(&list->scan, &item.name)) return false;
    if (dti_list_find(list, item.name) >= 0)
        return dti_scan_fail(&list->scan, rule->twice, item.name.text, "\"%.*s\" stands twice", item.name.n,
                             item.name.text);
    if (list->n == rule->max_items)
        return dti_scan_fail(&list->scan, DT_ERR_ARG, item.name.text, "expected at most %d names, got one more",
                             rule->max_items);
    if (!read_number(&list->scan, rule, &item.number)) return false;
    list->items[list->n++] = item;
    return true;
}

bool dti_list_read(dti_list *list, dt_context *ctx, dti_list_kind kind, const char *text)
{
    const list_rule *rule = &rules[kind];
    list->n = 0;
    list->scan = (dti_scan){ .ctx = ctx, .what = rule->what, .text = text, .at = text };
    if (text == NULL) {
        dti_fail(ctx, DT_ERR_ARG, "%s: expected a text, got NULL", rule->what);
        return false;
    }
    do {
        if (!read_item(list, rule)) return false;
    } while (dti_scan_char(&list->scan, ','));
    return dti_scan_end(&list->scan, "\",\"");
}

/* Product of the sizes there are; stops at the first partial product above INT_MAX, so it cannot overflow. */
static int64_t sized_product(const dti_list *list)
{
    int64_t product = 1;
    for (int i = 0; i < list->n && product <= INT_MAX; i++)
        if (list->items[i].number != DTI_UNSIZED) product *= list->items[i].number;
    return product;
}

bool dti_list_fill(dti_list *list, int total)
{
    int64_t product = sized_product(list);
    int first = 0;
    while (first < list->n && list->items[first].number != DTI_UNSIZED) first++;
    bool whole = first == list->n;
    if (whole ? product != total : total % product != 0) {
        char got[DTI_LIST_BYTES];
        dti_list_print(list->items, list->n, got);
        dti_fail(list->scan.ctx, DT_ERR_ARG, "%s \"%s\": expected sizes whose product %s %d, got %s", list->scan.what,
                 list->scan.text, whole ? "is" : "divides", total, got);
        return false;
    }
    for (int i = first; i < list->n; i++)
        if (list->items[i].number == DTI_UNSIZED) list->items[i].number = i == first ? (int)(total / product) : 1;
    return true;
}

size_t dti_list_print(const dti_item *items, int n, char *text)
{
    dti_pen pen = { .text = text, .room = DTI_LIST_BYTES };
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        dti_put(&pen, "%s%.*s", i ? "," : "", items[i].name.n, items[i].name.text);
        if (items[i].number != DTI_UNSIZED) dti_put(&pen, "=%d", items[i].number);
    }
    return pen.at;
}
