/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps, and the mesh dims that they run along as a list. */
#include "step.h"

#include <ctype.h>
#include <string.h>

/* ---- dims of a step ---------------------------------------------------------------------------------------------- */

typedef void (*name_fn)(const char *name, size_t n, void *arg);

static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* Does a name stand among the first n characters of a text of dims? */
static bool stands_before(const char *text, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i + length <= n; i++)
        if ((i == 0 || !is_name_char(text[i - 1])) && strncmp(text + i, name, length) == 0
            && !is_name_char(text[i + length]))
            return true;
    return false;
}

/* Each mesh dim of a step once: of "x,y", or, from mesh to mesh, of "x=4 > a=2,x=2". */
static void each_dim(const char *dims, name_fn fn, void *arg)
{
    for (const char *at = dims; *at;) {
        size_t n = 0;
        while (is_name_char(at[n])) n++;
        bool is_name = n && isalpha((unsigned char)*at);
        if (is_name && !stands_before(dims, (size_t)(at - dims), at, n)) fn(at, n, arg);
        at += n ? n : 1;
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void put_dim(const char *name, size_t n, void *arg)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    json_text(arg, NULL, text);
}

static void put_step(json *j, const dt_plan_step *step)
{
    json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
    json_text(j, "kind", dt_comm_kind_text(step->kind));
    json_begin(j, "dims", JSON_ARRAY, JSON_ONE_LINE);
    each_dim(step->dims, put_dim, j);
    json_end(j);
    json_int(j, "bytes", step->bytes);
    json_int(j, "messages", step->messages);
    json_bool(j, "sums", step->sums);
    json_text(j, "travels", dt_dtype_text(step->travels));
    json_text(j, "sums_in", step->sums ? dt_dtype_text(step->sums_in) : NULL);
    json_text(j, "gives", dt_dtype_text(step->gives));
    json_end(j);
}

void step_json(json *j, const dt_plan *const *plans, int n, json_look look)
{
    json_begin(j, "steps", JSON_ARRAY, look);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < dt_plan_step_count(plans[k]); i++) {
            dt_plan_step step = dt_plan_step_at(plans[k], i);
            put_step(j, &step);
        }
    json_end(j);
}
