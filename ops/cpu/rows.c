/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows gathered, worked on, scattered. Where the innermost dim is not along them, several are gathered side by side.
 * Invariant: a row is computed from its own elements alone. */
#include "ops/cpu/room.h"
#include "ops/cpu/rows.h"

#include <math.h>
#include <string.h>

#include "core/number.h"
#include "ops/cpu/dims.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"
#include "placements/spec.h"

typedef struct gathering {
    const dt_call *call;
    dt_dtype dtype;                    /* of what is gathered                                                      */
    dti_nest nest;
    const dti_rows *how;
    int64_t stride;                    /* of gathered rows                                                         */
    int64_t done;                      /* rows that have results                                                   */
    dti_row row;
    double *rows;
} gathering;

static char *element(const dt_part *x, int64_t at) { return (char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype); }

/* ---- a row ------------------------------------------------------------------------------------------------------- */

static void get_numbers(gathering *g)
{
    for (int i = 1; i <= g->how->numbers; i++) {
        const dt_part *x = &g->call->in[i];
        if (!x->data) continue;
        dti_numbers_convert(x->dtype, element(x, g->done), DT_F64, &g->row.number[i], 1);
        if (g->dtype == DT_I64) dti_numbers_convert(x->dtype, element(x, g->done), DT_I64, &g->row.integer[i], 1);
    }
}

static void put_numbers(gathering *g)
{
    for (int r = g->how->back; r < g->call->out_count; r++) {
        const dt_part *y = &g->call->out[r];
        if (y->data) dti_numbers_convert(DT_F64, &g->row.result[r], y->dtype, element(y, g->done), 1);
    }
    g->done++;
}

static void work(gathering *g, double *x)
{
    g->row.x = x;
    g->row.integers = (const int64_t *)(const void *)x;
    get_numbers(g);
    g->how->fn(&g->row);
    put_numbers(g);
}

/* ---- the innermost dim is along rows ----------------------------------------------------------------------------- */

static void run_rows(gathering *g)
{
    const dt_part *from = &g->call->in[0], *to = &g->call->out[0];
    dti_walk *kept = &g->nest.kept, *along = &g->nest.reduced;
    for (bool more = dti_walk_begin(kept); more; more = dti_walk_next(kept)) {
        double *x = g->rows;
        for (bool inside = dti_walk_begin(along); inside; inside = dti_walk_next(along), x += g->nest.inner)
            dti_numbers_convert(from->dtype, element(from, kept->at + along->at), g->dtype, x, g->nest.inner);
        work(g, g->rows);
        x = g->rows;
        for (bool inside = g->how->back && dti_walk_begin(along); inside;
             inside = dti_walk_next(along), x += g->nest.inner)
            dti_numbers_convert(g->dtype, x, to->dtype, element(to, kept->at + along->at), g->nest.inner);
    }
}

/* ---- the innermost dim is across them ---------------------------------------------------------------------------- */

static void gather(gathering *g, int64_t at, int64_t count)
{
    double across[DTI_LANES];
    dti_walk *along = &g->nest.reduced;
    double *x = g->rows;
    for (bool more = dti_walk_begin(along); more; more = dti_walk_next(along), x++) {
        dti_numbers_convert(g->call->in[0].dtype, element(&g->call->in[0], at + along->at), g->dtype, across, count);
        for (int64_t i = 0; i < count; i++) memcpy(x + i * g->stride, across + i, sizeof *x);
    }
}

static void scatter(gathering *g, int64_t at, int64_t count)
{
    double across[DTI_LANES];
    dti_walk *along = &g->nest.reduced;
    double *x = g->rows;
    for (bool more = dti_walk_begin(along); more; more = dti_walk_next(along), x++) {
        for (int64_t i = 0; i < count; i++) across[i] = x[i * g->stride];
        dti_numbers_convert(g->dtype, across, g->call->out[0].dtype, element(&g->call->out[0], at + along->at), count);
    }
}

static void run_columns(gathering *g)
{
    dti_walk *kept = &g->nest.kept;
    for (bool more = dti_walk_begin(kept); more; more = dti_walk_next(kept))
        for (int64_t i = 0; i < g->nest.inner; i += DTI_LANES) {
            int64_t count = g->nest.inner - i < DTI_LANES ? g->nest.inner - i : DTI_LANES;
            gather(g, kept->at + i, count);
            for (int64_t k = 0; k < count; k++) work(g, g->rows + k * g->stride);
            if (g->how->back) scatter(g, kept->at + i, count);
        }
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static const double *widen(const dt_call *call, int operand, double *to, int64_t n)
{
    if (operand == 0 || operand >= call->in_count || !call->in[operand].spec) return NULL;
    dti_numbers_convert(call->in[operand].dtype, call->in[operand].data, DT_F64, to, n);
    return to;
}

static int64_t elements(const dt_part *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->shape.n; d++) n *= x->shape.dim[d];
    return n;
}

/* Of the elements that this rank holds along a dim. NULL: memory ran out. */
static int64_t *indices(dt_context *ctx, const dt_part *x, int dim)
{
    int64_t *index = dti_room_take(ctx, (size_t)x->shape.dim[dim] * sizeof *index), n = 0;
    dti_set held;
    dti_set_init(&held);
    dti_spec_set(x->spec, dim, x->rank, &held);
    bool known = index && !held.lost;
    for (int i = 0; i < held.n && known; i++)
        for (int64_t at = dti_set_at(&held)[i].lo; at < dti_set_at(&held)[i].hi; at++) index[n++] = at;
    dti_set_fini(&held);
    if (known) return index;
    dti_room_give(index);
    return NULL;
}

dt_status dti_rows_run(const dt_call *call, const dti_rows *how)
{
    gathering g = { .call = call, .dtype = call->in[0].dtype <= DT_F16 ? DT_F64 : DT_I64, .how = how };
    g.nest = dti_nest_of(&call->in[0].shape, &how->dims);
    g.row.attributes = call->attributes;
    g.row.n = dti_walk_count(&g.nest.reduced) * (g.nest.taken ? g.nest.inner : 1);
    g.stride = (int64_t)(dti_blocks(g.row.n) + 1) * DTI_LANES;
    if (!call->out[0].data && (how->back || elements(&call->out[0]) == 0)) return DT_OK;
    int64_t rows = g.nest.taken ? 1 : DTI_LANES;
    int64_t *index = how->indexed ? indices(call->ctx, &call->in[0], how->dims.dim[0]) : NULL;
    size_t bytes = (size_t)((rows + 2) * g.stride) * sizeof *g.rows;
    g.rows = dti_room_take(call->ctx, bytes);
    if (g.rows) memset(g.rows, 0, bytes);
    if (!g.rows || (how->indexed && !index)) {
        dti_room_give(index);
        dti_room_give(g.rows);
        return dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for %lld numbers", call->op->head,
                               (long long)((rows + 2) * g.stride));
    }
    g.row.index = index;
    g.row.w = widen(call, how->w, g.rows + rows * g.stride, g.row.n);
    g.row.b = widen(call, how->b, g.rows + (rows + 1) * g.stride, g.row.n);
    if (g.nest.taken) run_rows(&g);
    else run_columns(&g);
    dti_room_give(g.rows);
    dti_room_give(index);
    return DT_OK;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static bool is_finite(double x) { return x - x == 0; }

static void logsumexp_row(dti_row *row)
{
    double max = dti_row_max(row->x, row->n);
    row->result[0] = is_finite(max) ? max + log(dti_row_exp_sum(row->x, max, row->n)) : max;
}

static void var_row(dti_row *row)
{
    const dti_over *over = row->attributes;
    double squares = dti_row_squares(row->x, dti_row_sum(row->x, row->n) / (double)row->n, row->n);
    row->result[0] = row->n > over->correction ? squares / ((double)row->n - (double)over->correction) : NAN;
}

/* Squares of what has been brought near 1 do not overflow. */
static void norm_row(dti_row *row)
{
    double max = 0, squares;
    for (int64_t i = 0; i < row->n; i++) max = fabs(row->x[i]) > max ? fabs(row->x[i]) : max;
    bool scaled = is_finite(max) && (max > 0x1p500 || (max > 0 && max < 0x1p-500));
    if (scaled) dti_row_scale(row->x, 0, 1 / max, NULL, NULL, row->n);
    squares = dti_row_squares(row->x, 0, row->n);
    row->result[0] = scaled ? max * sqrt(squares) : sqrt(squares);
}

/* The first that is larger than all before it, or a NaN. */
static void argmax_row(dti_row *row)
{
    int64_t at = 0;
    for (int64_t i = 1; i < row->n && row->x[at] == row->x[at]; i++)
        if (row->x[i] > row->x[at] || row->x[i] != row->x[i]) at = i;
    row->result[0] = (double)at;
}

static void argmin_row(dti_row *row)
{
    int64_t at = 0;
    for (int64_t i = 1; i < row->n && row->x[at] == row->x[at]; i++)
        if (row->x[i] < row->x[at] || row->x[i] != row->x[i]) at = i;
    row->result[0] = (double)at;
}

static void argmax_integers(dti_row *row)
{
    int64_t at = 0;
    for (int64_t i = 1; i < row->n; i++)
        if (row->integers[i] > row->integers[at]) at = i;
    row->result[0] = (double)at;
}

static void argmin_integers(dti_row *row)
{
    int64_t at = 0;
    for (int64_t i = 1; i < row->n; i++)
        if (row->integers[i] < row->integers[at]) at = i;
    row->result[0] = (double)at;
}

static dt_dims over(const dt_call *call) { return ((const dti_over *)call->attributes)->dims; }

static dt_status reduce(const dt_call *call, dti_row_fn fn)
{
    return dti_rows_run(call, &(dti_rows){ .dims = over(call), .fn = fn });
}

static dt_status find(const dt_call *call, dti_row_fn floats, dti_row_fn integers)
{
    dt_dims dims = { 1, { ((const dti_along *)call->attributes)->dim } };
    return dti_rows_run(call, &(dti_rows){ .dims = dims, .fn = call->in[0].dtype <= DT_F16 ? floats : integers });
}

dt_status dti_cpu_logsumexp(const dt_call *call) { return reduce(call, logsumexp_row); }
dt_status dti_cpu_var(const dt_call *call) { return reduce(call, var_row); }
dt_status dti_cpu_norm(const dt_call *call) { return reduce(call, norm_row); }
dt_status dti_cpu_argmax(const dt_call *call) { return find(call, argmax_row, argmax_integers); }
dt_status dti_cpu_argmin(const dt_call *call) { return find(call, argmin_row, argmin_integers); }

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static void softmax_row(dti_row *row)
{
    double sum = dti_row_exp(row->x, dti_row_max(row->x, row->n), row->n);
    dti_row_scale(row->x, 0, 1 / sum, NULL, NULL, row->n);
}

static void log_softmax_row(dti_row *row)
{
    double max = dti_row_max(row->x, row->n), sum = dti_row_exp_sum(row->x, max, row->n);
    dti_row_scale(row->x, max, 1, NULL, NULL, row->n);
    dti_row_scale(row->x, log(sum), 1, NULL, NULL, row->n);
}

static dt_status along(const dt_call *call, dti_row_fn fn)
{
    dt_dims dims = { 1, { ((const dti_along *)call->attributes)->dim } };
    return dti_rows_run(call, &(dti_rows){ .dims = dims, .back = true, .fn = fn });
}

dt_status dti_cpu_softmax(const dt_call *call) { return along(call, softmax_row); }
dt_status dti_cpu_log_softmax(const dt_call *call) { return along(call, log_softmax_row); }

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static void rms_norm_row(dti_row *row)
{
    const dti_norm *norm = row->attributes;
    double scale = 1 / sqrt(dti_row_squares(row->x, 0, row->n) / (double)row->n + norm->eps);
    dti_row_scale(row->x, 0, scale, row->w, NULL, row->n);
    row->result[1] = scale;
}

static void layer_norm_row(dti_row *row)
{
    const dti_norm *norm = row->attributes;
    double mean = dti_row_sum(row->x, row->n) / (double)row->n;
    double scale = 1 / sqrt(dti_row_squares(row->x, mean, row->n) / (double)row->n + norm->eps);
    dti_row_scale(row->x, mean, scale, row->w, row->b, row->n);
    row->result[1] = mean;
    row->result[2] = scale;
}

/* The trailing dims that w has. */
static dt_status normalize(const dt_call *call, dti_row_fn fn)
{
    dt_dims dims = { call->in[1].shape.n, { 0 } };
    for (int i = 0; i < dims.n; i++) dims.dim[i] = call->in[0].shape.n - dims.n + i;
    return dti_rows_run(call, &(dti_rows){ .dims = dims, .back = true, .w = 1, .b = 2, .fn = fn });
}

dt_status dti_cpu_rms_norm(const dt_call *call) { return normalize(call, rms_norm_row); }
dt_status dti_cpu_layer_norm(const dt_call *call) { return normalize(call, layer_norm_row); }

/* ---- parts of decompositions ------------------------------------------------------------------------------------- */

static void exp_sum_row(dti_row *row) { row->result[0] = dti_row_exp_sum(row->x, row->number[1], row->n); }

static void square_sum_row(dti_row *row) { row->result[0] = dti_row_squares(row->x, row->number[1], row->n); }

static void exp_less_row(dti_row *row) { dti_row_exp(row->x, row->number[1], row->n); }

static void scale_row(dti_row *row)
{
    dti_row_scale(row->x, row->number[2], row->number[1], row->w, row->b, row->n);
}

/* What is nowhere here is behind all that is somewhere else. */
static void first_of_row(dti_row *row)
{
    double sought = row->number[1];
    row->result[0] = (double)INT64_MAX;
    for (int64_t i = 0; i < row->n; i++) {
        if (row->x[i] != sought && (row->x[i] == row->x[i] || sought == sought)) continue;
        row->result[0] = (double)row->index[i];
        return;
    }
}

static void first_of_integers(dti_row *row)
{
    row->result[0] = (double)INT64_MAX;
    for (int64_t i = 0; i < row->n; i++) {
        if (row->integers[i] != row->integer[1]) continue;
        row->result[0] = (double)row->index[i];
        return;
    }
}

dt_status dti_cpu_exp_sum(const dt_call *call)
{
    return dti_rows_run(call, &(dti_rows){ .dims = over(call), .numbers = 1, .fn = exp_sum_row });
}

dt_status dti_cpu_square_sum(const dt_call *call)
{
    return dti_rows_run(call, &(dti_rows){ .dims = over(call), .numbers = 1, .fn = square_sum_row });
}

dt_status dti_cpu_exp_less(const dt_call *call)
{
    return dti_rows_run(call, &(dti_rows){ .dims = over(call), .back = true, .numbers = 1, .fn = exp_less_row });
}

dt_status dti_cpu_scale_rows(const dt_call *call)
{
    return dti_rows_run(call, &(dti_rows){ .dims = over(call), .back = true, .numbers = 2, .w = 3, .b = 4,
                                           .fn = scale_row });
}

dt_status dti_cpu_first_of(const dt_call *call)
{
    dt_dims dims = { 1, { ((const dti_along *)call->attributes)->dim } };
    return dti_rows_run(call, &(dti_rows){ .dims = dims, .indexed = true, .numbers = 1,
                                           .fn = call->in[0].dtype <= DT_F16 ? first_of_row : first_of_integers });
}
