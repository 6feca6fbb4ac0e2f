/* SPDX-License-Identifier: Apache-2.0
 *
 * Two products of matrices, the first split by columns, the second by rows: what tensor parallelism makes of an MLP. No
 * op knows of it. The operands are placed, and what a row of the op table says (its rule and its polynomial) gives the
 * placements of every result:
 *
 *   [m, k] R        times  [k, n] S(1)  is  [m, n] S(1)      n is split and stays so
 *   [m, n] S(1)     times  [n, k] S(0)  is  [m, k] P(sum)    n is split and reduced: each rank has a summand
 *
 * Nothing moves until the sum is asked for. Then the same with operands that do not fit: what has to move is moved and
 * counted as implied, and in a strict scope it is an error that says what to write. All results are held against the
 * value that one rank computes alone.
 *
 * Run: ./03_sharded_matmul --dt-ranks=8 --dt-mesh=dp=2,tp=4     ranks are threads
 *      ./03_sharded_matmul --dt-ranks=5 --dt-mesh=tp=5          uneven pieces */
#include <inttypes.h>
#include <stdio.h>

#include <dtensor/dtensor.h>

enum { ROWS = 12, WIDE = 16, HIDDEN = 24 };        /* rows of x; columns of x and y; of h between them                */

/* ---- what is computed -------------------------------------------------------------------------------------------- */

/* The same numbers wherever they lie: a function of the place in the whole tensor. */
static double number(int which, int64_t row, int64_t column)
{
    return (double)((row * 7 + column * 3 + which * 5) % 11) / 8 - 0.5;
}

static void fill(const dt_box *box, void *values, void *arg)
{
    double *to = values;
    for (int64_t i = box->lo[0]; i < box->hi[0]; i++)
        for (int64_t j = box->lo[1]; j < box->hi[1]; j++) *to++ = number(*(const int *)arg, i, j);
}

static dt_tensor *make(dt_mesh *mesh, int which, const char *spec)
{
    return dt_from_fn(dt_spec_parse(mesh, spec), fill, &which);
}

/* Element [i, j] of (x a) b, as one rank computes it. */
static double alone(int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t h = 0; h < HIDDEN; h++) {
        double hidden = 0;
        for (int64_t k = 0; k < WIDE; k++) hidden += number(0, i, k) * number(1, k, h);
        sum += hidden * number(2, h, j);
    }
    return sum;
}

static void fill_alone(const dt_box *box, void *values, void *arg)
{
    double *to = values;
    (void)arg;
    for (int64_t i = box->lo[0]; i < box->hi[0]; i++)
        for (int64_t j = box->lo[1]; j < box->hi[1]; j++) *to++ = alone(i, j);
}

/* By its row, as any op of the table and of one's own is called. */
static dt_tensor *matmul(dt_tensor *a, dt_tensor *b)
{
    return a && b ? dt_apply(dt_op_find("matmul"), (dt_tensor *[]){ a, b }, 2, NULL) : NULL;
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static void show(dt_context *ctx, const char *what, dt_tensor *x)
{
    dt_print(ctx, "  %-34s %s\n", what, dt_spec_text(dt_tensor_spec(x)));
}

/* What has been communicated since `before`, in calls, and in bytes that rank 0 received. */
static void show_moves(dt_context *ctx, dt_mesh *mesh, dt_counters before)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    bool any = false;
    dt_print(ctx, "  communicated:");
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) {
        int64_t calls = now.calls[kind] - before.calls[kind], bytes = now.bytes[kind] - before.bytes[kind];
        if (calls == 0 || kind == DT_COMM_LOCAL) continue;
        dt_print(ctx, "%s %" PRId64 " %s, %" PRId64 " bytes", any ? ";" : "", calls,
                 dt_comm_kind_text((dt_comm_kind)kind), bytes);
        any = true;
    }
    dt_print(ctx, "%s; %" PRId64 " of them implied\n\n", any ? "" : " nothing", now.implied - before.implied);
}

/* The comparison communicates too, so it comes when everything has been counted. */
static void check(dt_context *ctx, dt_mesh *mesh, dt_tensor *y)
{
    dt_tensor *due = dt_from_fn(dt_spec_create(mesh, DT_F64, DT_SHAPE(ROWS, WIDE), ""), fill_alone, NULL);
    bool close = dt_tensor_close(y, due, 1e-12, 1e-12);
    dt_print(ctx, "  the value is that of one rank alone: %s\n\n", close ? "yes" : "NO");
    if (!close) dt_context_fail(ctx, DT_ERR_STATE, "another value than one rank computes");
}

/* ---- three ways -------------------------------------------------------------------------------------------------- */

static void megatron(dt_context *ctx, dt_mesh *mesh)
{
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_print(ctx, "columns, then rows: placed so that nothing has to move\n");
    dt_tensor *x = make(mesh, 0, "f64[12,16]@dp:S(0)");           /* [m, k]  each dp rank has its rows of x          */
    dt_tensor *a = make(mesh, 1, "f64[16,24]@tp:S(1)");           /* [k, n]  columns                                 */
    dt_tensor *b = make(mesh, 2, "f64[24,16]@tp:S(0)");           /* [n, k]  rows                                    */
    dt_tensor *h = matmul(x, a);
    dt_tensor *y = matmul(h, b);
    show(ctx, "x", x), show(ctx, "a", a), show(ctx, "b", b), show(ctx, "h = x a", h), show(ctx, "y = h b", y);
    show_moves(ctx, mesh, before);

    before = dt_mesh_counters(mesh, NULL);
    dt_tensor *whole = dt_redistribute(y, "tp:R,*");
    show(ctx, "y, summed over tp", whole);
    show_moves(ctx, mesh, before);
    check(ctx, mesh, whole);
}

static void implied(dt_context *ctx, dt_mesh *mesh)
{
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_print(ctx, "rows, then rows: x is split by rows along tp, where a is split by columns\n");
    dt_tensor *x = make(mesh, 0, "f64[12,16]@dp:S(0),tp:S(0)");
    dt_tensor *a = make(mesh, 1, "f64[16,24]@tp:S(1)");
    dt_tensor *b = make(mesh, 2, "f64[24,16]@tp:S(0)");
    dt_tensor *h = matmul(x, a);                                  /* one mesh dim splits one factor: something moves */
    dt_tensor *y = matmul(h, b);
    show(ctx, "x", x), show(ctx, "h = x a", h), show(ctx, "y = h b", y);
    show_moves(ctx, mesh, before);
    check(ctx, mesh, y);
}

static void strict(dt_context *ctx, dt_mesh *mesh)
{
    dt_print(ctx, "the same in a strict scope\n");
    dt_tensor *x = make(mesh, 0, "f64[12,16]@dp:S(0),tp:S(0)");
    dt_tensor *a = make(mesh, 1, "f64[16,24]@tp:S(1)");
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    dt_tensor *h = matmul(x, a);
    dt_scope_pop(ctx, scope, NULL);
    char message[512];
    snprintf(message, sizeof message, "%s", dt_context_error(ctx));
    if (h || dt_context_status(ctx) != DT_ERR_PLACEMENT) return;   /* tp=1: everything fits; or another error         */
    dt_context_clear(ctx);
    dt_print(ctx, "  %s\n", message);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "dp,tp");
    dt_print(ctx, "mesh %s\n\n", dt_mesh_text(mesh));
    megatron(ctx, mesh);
    implied(ctx, mesh);
    strict(ctx, mesh);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
