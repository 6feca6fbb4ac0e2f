/* SPDX-License-Identifier: Apache-2.0
 *
 * A row bound to shapes written as text, for tests of what is inside ops. */
#ifndef BOUND_H
#define BOUND_H

#include <string.h>

#include "core/scan.h"
#include "ops/bind.h"

typedef struct bound_call {        /* as texts                                                                     */
    const dti_row_text *row;
    const char *shapes;            /* of the operands, "[3,4] [(2 3)] -"; "-": absent                              */
    const char *batch;             /* what "..." is asked to be, "[2,3]"; NULL: nothing                            */
    const char *sizes;             /* what attributes say, "c=5 d=2"; NULL: nothing                                */
} bound_call;

typedef struct bound_parts {
    dti_rule rule;
    dti_bound bound;
    dti_form form[DTI_MAX_OPERANDS];
    dt_shape batch;
    dti_letter_size sizes[8];
    dti_rule_call call;
} bound_parts;

static inline bool bound_shapes(dti_scan *scan, bound_parts *parts)
{
    int n = 0;
    for (dti_scan_space(scan); *scan->at; dti_scan_space(scan), n++) {
        if (dti_scan_char(scan, '-')) continue;
        parts->form[n].dtype = DT_U8;
        if (!dti_scan_sizes(scan, &parts->form[n])) return false;
        parts->call.operand[n] = &parts->form[n];
    }
    return true;
}

static inline bool bound_batch(dti_scan *scan, bound_parts *parts)
{
    dti_form form;
    memset(&form, 0, sizeof form);
    if (!dti_scan_sizes(scan, &form)) return false;
    parts->batch.n = form.dim_count;
    for (int d = 0; d < form.dim_count; d++) parts->batch.dim[d] = dti_form_dim(&form, d);
    parts->call.batch = &parts->batch;
    return true;
}

static inline bool bound_sizes(dti_scan *scan, bound_parts *parts)
{
    parts->call.sizes = parts->sizes;
    for (dti_scan_space(scan); *scan->at; dti_scan_space(scan)) {
        dti_letter_size *size = &parts->sizes[parts->call.size_count++];
        size->letter = *scan->at++;
        while (*scan->at >= '0' && *scan->at <= '9') size->number = (uint8_t)(10 * size->number + *scan->at++ - '0');
        if (!dti_scan_char(scan, '=') || !dti_scan_int(scan, "a size", &size->size)) return false;
    }
    return true;
}

/* Parse and bind; false, and the context's error, where something is refused. */
static inline bool bound_make(dt_context *ctx, const bound_call *call, bound_parts *parts)
{
    dti_scan shapes = { ctx, "shapes", call->shapes, call->shapes };
    dti_scan batch = { ctx, "batch", call->batch, call->batch }, sizes = { ctx, "sizes", call->sizes, call->sizes };
    memset(parts, 0, sizeof *parts);
    if (!dti_rule_parse(ctx, call->row, &parts->rule) || !bound_shapes(&shapes, parts)) return false;
    if (call->batch && !bound_batch(&batch, parts)) return false;
    if (call->sizes && !bound_sizes(&sizes, parts)) return false;
    return dti_rule_bind(ctx, &parts->rule, &parts->call, &parts->bound);
}

#endif
