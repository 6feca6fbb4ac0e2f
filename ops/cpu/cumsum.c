/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums: floats in f64, rounded once an element, integers wrapping. */
#include "ops/cpu/kernels.h"
#include "ops/cpu/rows.h"

/* The number of a row is what it starts from; without one that is -0, so that the first element keeps its bits. */
static void run_floats(dti_row *row, double sum)
{
    const dti_cumsum *how = row->attributes;
    for (int64_t i = 0; i < row->n; i++) {
        double *at = row->x + (how->reverse ? row->n - 1 - i : i), before = sum;
        sum += *at;
        *at = how->exclusive ? before : sum;
    }
}

static void run_integers(dti_row *row, int64_t start)
{
    const dti_cumsum *how = row->attributes;
    int64_t *x = (int64_t *)(void *)row->x;
    uint64_t sum = (uint64_t)start;
    for (int64_t i = 0; i < row->n; i++) {
        int64_t *at = x + (how->reverse ? row->n - 1 - i : i);
        uint64_t before = sum;
        sum += (uint64_t)*at;
        *at = (int64_t)(how->exclusive ? before : sum);
    }
}

static void floats(dti_row *row) { run_floats(row, -0.0); }
static void floats_after(dti_row *row) { run_floats(row, row->number[1]); }
static void integers(dti_row *row) { run_integers(row, 0); }
static void integers_after(dti_row *row) { run_integers(row, row->integer[1]); }

dt_status dti_cpu_cumsum(const dt_call *call)
{
    bool real = call->in[0].dtype <= DT_F16, after = call->in_count > 1;
    dti_row_fn fn = real ? (after ? floats_after : floats) : after ? integers_after : integers;
    return dti_rows_run(call, &(dti_rows){ .dims = { 1, { ((const dti_cumsum *)call->attributes)->dim } },
                                           .back = true, .numbers = after, .fn = fn });
}
