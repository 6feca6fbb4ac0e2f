/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves elements along a dim, on thread ranks: values by plain loops, where results lie, how many elements cross
 * ranks, forward and backward, and that a dim that is split is never gathered for it. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"

enum { MAX_ELEMENTS = 1024, MAX_PIECES = 40 };

/* ---- what is moved ----------------------------------------------------------------------------------------------- */

typedef dt_tensor *move_fn(dt_tensor *x);

static dt_tensor *slice_2_9(dt_tensor *x) { return dt_slice(x, 0, 2, 9, 1); }
static dt_tensor *slice_none(dt_tensor *x) { return dt_slice(x, 0, 5, 5, 1); }
static dt_tensor *slice_all(dt_tensor *x) { return dt_slice(x, 0, -100, INT64_MAX, 1); }
static dt_tensor *slice_thirds(dt_tensor *x) { return dt_slice(x, 0, 1, INT64_MAX, 3); }
static dt_tensor *slice_last(dt_tensor *x) { return dt_slice(x, -1, -2, INT64_MAX, 1); }
static dt_tensor *select_5(dt_tensor *x) { return dt_select(x, 0, 5); }
static dt_tensor *select_last(dt_tensor *x) { return dt_select(x, 0, -1); }
static dt_tensor *select_of_last(dt_tensor *x) { return dt_select(x, -1, 0); }
static dt_tensor *roll_1(dt_tensor *x) { return dt_roll(x, 0, 1); }
static dt_tensor *roll_back(dt_tensor *x) { return dt_roll(x, 0, -29); }
static dt_tensor *roll_by_0(dt_tensor *x) { return dt_roll(x, 0, 0); }
static dt_tensor *flip_first(dt_tensor *x) { return dt_flip(x, 0); }
static dt_tensor *flip_last(dt_tensor *x) { return dt_flip(x, -1); }
static dt_tensor *pad_by_3(dt_tensor *x) { return dt_pad(x, 0, 3, 3, -7); }
static dt_tensor *pad_last(dt_tensor *x) { return dt_pad(x, -1, 0, 2, 0.5); }
static dt_tensor *pad_by_0(dt_tensor *x) { return dt_pad(x, 0, 0, 0, 1); }
static dt_tensor *doubled(dt_tensor *x) { return dt_cat((dt_tensor *[]){ x, x }, 2, 0); }
static dt_tensor *with_itself(dt_tensor *x) { return dt_stack((dt_tensor *[]){ x, dt_neg(x) }, 2, -1); }

/* ---- values ------------------------------------------------------------------------------------------------------ */

typedef struct values { dt_shape shape; int64_t n; double at[MAX_ELEMENTS]; } values;

static bool read_values(dt_tensor *x, values *out)
{
    out->n = 1;
    if (!x) return false;
    out->shape = dt_spec_shape(dt_tensor_spec(x));
    for (int d = 0; d < out->shape.n; d++) out->n *= out->shape.dim[d];
    return out->n <= MAX_ELEMENTS && dt_tensor_to_host(x, -1, out->at, (size_t)out->n * sizeof *out->at) == DT_OK;
}

/* The same of the same numbers, nowhere split. */
static void expect_serial(dt_tensor *x, dt_tensor *y, move_fn *move)
{
    static _Thread_local values got, due;
    const char *text = dt_spec_text(dt_tensor_spec(x));
    dt_tensor *whole = move(dt_redistribute(x, ""));
    if (!expect(read_values(y, &got) && read_values(whole, &due), "%s: no result", text)) return;
    bool same = got.n == due.n && got.shape.n == due.shape.n
        && memcmp(got.at, due.at, (size_t)got.n * sizeof got.at[0]) == 0;
    expect(same, "%s to %s: is not what one rank has", text, dt_spec_text(dt_tensor_spec(y)));
}

/* ---- what moves -------------------------------------------------------------------------------------------------- */

/* Elements of f64 that this rank has received by exchanges, and calls of any other kind, implied ones too. */
typedef struct moved { int64_t elements, others; } moved;

static moved moved_on(const dt_mesh *mesh)
{
    dt_counters c = dt_mesh_counters(mesh, NULL);
    moved m = { c.bytes[DT_COMM_EXCHANGE] / 8, c.implied };
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++)
        if (k != DT_COMM_LOCAL && k != DT_COMM_EXCHANGE) m.others += c.calls[k];
    return m;
}

/* ---- known results ----------------------------------------------------------------------------------------------- */

typedef struct known {
    int ranks;
    const char *mesh, *x;
    move_fn *move;
    const char *y;
    int64_t forward, backward;         /* elements that all ranks receive; -1: not asked                           */
} known;

static const known rows_known[] = {
    { 4, "x=4", "f64[13]@x:S(0)", slice_2_9, "f64[7]@x:S(0)", 2, 2 },
    { 4, "x=4", "f64[13]@x:S(0)", slice_none, "f64[0]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[13]@x:S(0)", slice_all, "f64[13]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[13]@x:S(0)", slice_thirds, "f64[4]@x:S(0)", 0, -1 },
    { 4, "x=4", "f64[12]@x:S(0)", roll_1, "f64[12]@x:S(0)", 4, 4 },
    { 4, "x=4", "f64[12]@x:S(0)", roll_by_0, "f64[12]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[12,3]@x:S(0)", flip_first, "f64[12,3]@x:S(0)", 36, 36 },
    { 4, "x=4", "f64[12,3]@x:S(0)", flip_last, "f64[12,3]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[12,3]@x:S(0)", pad_last, "f64[12,5]@x:S(0)", 0, 0 },
    { 3, "x=3", "f64[6]@x:S(0)", pad_by_3, "f64[12]@x:S(0)", 2, 2 },
    { 3, "x=3", "f64[6]@x:S(0)", pad_by_0, "f64[6]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[13,8]@x:S(0)", select_5, "f64[8]", 24, 8 },
    { 4, "x=4", "f64[13,8]@x:S(1)", select_5, "f64[8]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[2,8]@x:S(0)", select_last, "f64[8]", 24, 8 },
    { 4, "x=4", "f64[8]@x:S(0)", select_last, "f64[]", 3, 1 },
    { 4, "x=4", "f64[8,2]@x:S(0)", select_of_last, "f64[8]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[8]@x:S(0)", doubled, "f64[16]@x:S(0)", 12, -1 },
    { 4, "x=4", "f64[8]@x:S(0)", with_itself, "f64[8,2]@x:S(0)", 0, 0 },
    { 5, "x=5", "f64[3]@x:S(0)", roll_1, "f64[3]@x:S(0)", 3, 3 },
    { 5, "x=5", "f64[13,2]@x:S(0)", roll_back, "f64[13,2]@x:S(0)", 26, 26 },
    { 7, "x=7", "f64[13]@x:S(0)", slice_2_9, "f64[7]@x:S(0)", 5, 5 },
    { 7, "x=7", "f64[17]@x:S(0)", flip_first, "f64[17]@x:S(0)", -1, -1 },
    { 7, "x=7", "f64[3,4]@x:S(0)", slice_thirds, "f64[1,4]@x:S(0)", 4, -1 },
    { 6, "x=2,y=3", "f64[13,5]@x:S(0),y:S(1)", slice_2_9, "f64[7,5]@x:S(0),y:S(1)", 5, 5 },
    { 6, "x=2,y=3", "f64[13,5]@y:S(0),x:S(0)", slice_2_9, "f64[7,5]@y:S(0),x:S(0)", -1, -1 },
    { 6, "x=2,y=3", "f64[(4 7),2]@y:S(0.1),x:S(0.0)", slice_2_9, "f64[7,2]@x:S(0),y:S(0)", -1, -1 },
    { 6, "x=2,y=3", "f64[13]@x:S(0),y:P", pad_by_3, "f64[19]@x:S(0),y:P(sum)", -1, -1 },
    { 6, "x=2,y=3", "f64[13]@x:P,y:P", pad_by_3, "f64[19]@x:P(sum),y:P(sum)", 0, -1 },
    { 3, "x=3", "f64[13]@x:P(avg)", pad_by_3, "f64[19]@x:P(avg)", 0, -1 },
    { 3, "x=3", "f64[13]@x:P(max)", pad_by_3, "f64[19]@x:P(max)", 0, -1 },
    { 4, "x=4", "f64[7,0]@x:S(0)", slice_2_9, "f64[5,0]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[0,2]@x:S(0)", pad_by_3, "f64[6,2]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[0,2]@x:S(0)", roll_1, "f64[0,2]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[0,2]@x:S(0)", flip_first, "f64[0,2]@x:S(0)", 0, 0 },
    { 4, "x=4", "f64[0,2]@x:S(0)", doubled, "f64[0,2]@x:S(0)", 0, -1 },
    { 1, "x=1", "f64[13]", slice_2_9, "f64[7]", 0, 0 },
};

typedef struct known_job { const known *row; atomic_llong forward, backward; } known_job;

static moved move_known(dt_mesh *mesh, const known *k, dt_tensor *x, dt_tensor **y)
{
    dt_context *ctx = dt_mesh_context(mesh);
    moved before = moved_on(mesh);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    *y = k->move(x);
    dt_scope_pop(ctx, scope, *y);
    moved after = moved_on(mesh);
    return (moved){ after.elements - before.elements, after.others - before.others };
}

static moved move_back(dt_mesh *mesh, dt_tensor *y)
{
    dt_tensor *g = dt_full(dt_tensor_spec(y), 2);
    moved before = moved_on(mesh);
    dt_backward(y, g);
    moved after = moved_on(mesh);
    return (moved){ after.elements - before.elements, after.others - before.others };
}

static dt_status check_known(dt_context *ctx, void *arg)
{
    known_job *job = arg;
    const known *k = job->row;
    dt_mesh *mesh = dt_mesh_create(ctx, k->mesh);
    dt_tensor *x = dt_require_grad(dt_arange(dt_spec_parse(mesh, k->x), 1, 1)), *y;
    moved m = move_known(mesh, k, x, &y);
    expect(m.others == 0, "%s: %lld moves that are none of its own", k->x, (long long)m.others);
    atomic_fetch_add(&job->forward, m.elements);
    expect(y && dt_tensor_spec(y) == dt_spec_parse(mesh, k->y), "%s: expected %s, got %s", k->x, k->y,
           y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(ctx));
    if (!y) return dt_context_status(ctx);
    if (k->backward >= 0) {
        m = move_back(mesh, y);
        expect(m.others == 0, "%s: %lld moves backward that are none of its own", k->x, (long long)m.others);
        expect(dt_grad(x) && dt_tensor_spec(dt_grad(x)) == dt_tensor_spec(x), "%s: its gradient is %s", k->x,
               dt_grad(x) ? dt_spec_text(dt_tensor_spec(dt_grad(x))) : dt_context_error(ctx));
        atomic_fetch_add(&job->backward, m.elements);
    }
    expect_serial(dt_detach(x), y, k->move);
    return dt_context_status(ctx);
}

static void known_results(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(rows_known); i++) {
        const known *k = &rows_known[i];
        known_job job = { .row = k };
        dt_status status = dt_launch_threads(k->ranks, check_known, &job, error, sizeof error);
        expect(status == DT_OK, "%s: %s", k->x, error);
        long long forward = atomic_load(&job.forward), backward = atomic_load(&job.backward);
        expect(k->forward < 0 || forward == k->forward, "%s to %s: %lld elements move, expected %lld", k->x, k->y,
               forward, (long long)k->forward);
        expect(k->backward < 0 || backward == k->backward, "%s from %s: %lld elements move backward, expected %lld",
               k->x, k->y, backward, (long long)k->backward);
    }
}

/* ---- every placement --------------------------------------------------------------------------------------------- */

static move_fn *const moves[] = {
    slice_2_9, slice_none, slice_thirds, slice_last, select_5, select_of_last, roll_1, roll_back, flip_first, flip_last,
    pad_by_3, pad_last, doubled, with_itself,
};

static dt_status check_places(dt_context *ctx, void *arg)
{
    static const char *const specs[] = {
        "f64[13,6]", "f64[13,6]@x:S(0)", "f64[13,6]@x:S(1)", "f64[13,6]@x:P", "f64[13,6]@x:P(avg)",
        "f64[13,6]@x:P(min)",
        "f64[6,1]@x:S(0)", "f64[(3 4),2]@x:S(0.1)", "f64[(3 4),2]@x:S(0.0)",
    };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int s = 0; s < DT_COUNT(specs); s++)
        for (int m = 0; m < DT_COUNT(moves); m++) {
            int scope = dt_scope_push(ctx, strstr(specs[s], "min") ? 0 : DT_SCOPE_STRICT); /* two: one is reduced   */
            dt_tensor *x = dt_arange(dt_spec_parse(mesh, specs[s]), 1, 1), *y = moves[m](x);
            expect(y != NULL, "%s, move %d: %s", specs[s], m, dt_context_error(ctx));
            if (y) expect_serial(x, y, moves[m]);
            dt_scope_pop(ctx, scope, NULL);
        }
    return dt_context_status(ctx);
}

static void every_placement(void)
{
    static const int worlds[] = { 1, 2, 3, 5, 7 };
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(worlds); i++)
        expect(dt_launch_threads(worlds[i], check_places, NULL, error, sizeof error) == DT_OK, "%d ranks: %s",
               worlds[i], error);
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

/* Element i of the dim is i; pieces of 0, 1, 2, 3, 0, .. elements. */
static dt_status check_many(dt_context *ctx, void *arg)
{
    static const char *const placements[] = { "", "x:S(0)", "x:S(1)", "x:P" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    int64_t sizes[MAX_PIECES];
    (void)arg;
    for (int i = 0; i < MAX_PIECES; i++) sizes[i] = i % 4;
    for (int p = 0; p < DT_COUNT(placements); p++)
        for (int n = 1; n <= MAX_PIECES; n += 13) {
            int64_t count = 0;
            for (int i = 0; i < n; i++) count += i % 4;
            int scope = dt_scope_push(ctx, 0);
            const dt_spec *spec = dt_spec_create(mesh, DT_F64, DT_SHAPE(count, 2), placements[p]);
            dt_tensor *x = dt_require_grad(dt_arange(spec, 0, 1)), *piece[MAX_PIECES];
            sizes[n / 2] = -1;
            expect(dt_split(x, sizes, n, 0, piece) == DT_OK, "%d pieces: %s", n, dt_context_error(ctx));
            sizes[n / 2] = n / 2 % 4;
            for (int i = 0; i < n && piece[i]; i++)
                expect(dt_spec_shape(dt_tensor_spec(piece[i])).dim[0] == sizes[i], "piece %d of %d", i, n);
            dt_tensor *again = dt_cat(piece, n, 0);
            expect(again && dt_tensor_close(again, x, 0, 0), "%d pieces put together again", n);
            dt_backward(dt_mul_scalar(again, 3), dt_full(dt_spec_create(mesh, DT_F64, DT_SHAPE(count, 2), ""), 1));
            expect(dt_grad(x) && dt_tensor_close(dt_grad(x), dt_full(dt_tensor_spec(dt_grad(x)), 3), 0, 0),
                   "%d pieces, gradient", n);
            dt_scope_pop(ctx, scope, NULL);
        }
    return dt_context_status(ctx);
}

static void many_pieces(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_many, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks, error);
}

static dt_status check_stack(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x[MAX_PIECES];
    static _Thread_local values got;
    (void)arg;
    for (int i = 0; i < MAX_PIECES; i++)
        x[i] = dt_full(dt_spec_parse(mesh, i % 2 ? "f64[5]@x:S(0)" : "f64[5]"), i);
    for (int dim = -2; dim < 2; dim++) {
        dt_tensor *y = dt_stack(x, MAX_PIECES, dim);
        bool first = dim == 0 || dim == -2;
        if (!expect(read_values(y, &got), "stack: %s", dt_context_error(ctx))) continue;
        expect(got.shape.dim[first ? 0 : 1] == MAX_PIECES && got.shape.dim[first ? 1 : 0] == 5, "dims of a stack");
        for (int64_t i = 0; i < got.n; i++)
            expect(got.at[i] == (double)(first ? i / 5 : i % MAX_PIECES), "dim %d, element %lld: %g", dim, (long long)i,
                   got.at[i]);
    }
    return dt_context_status(ctx);
}

static void many_stacked(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_stack, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks, error);
}

typedef struct chunking { int64_t size; int n; int64_t pieces[5]; } chunking; /* -1: none                           */

static dt_status check_chunks(dt_context *ctx, void *arg)
{
    static const chunking rows[] = {
        { 13, 4, { 4, 4, 4, 1 } }, { 9, 4, { 3, 3, 3, -1 } }, { 2, 4, { 1, 1, -1, -1 } }, { 0, 4, { 0, 0, 0, 0 } },
        { 8, 2, { 4, 4 } }, { 5, 1, { 5 } }, { 6, 5, { 2, 2, 2, -1, -1 } },
    };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < DT_COUNT(rows); i++) {
        dt_tensor *piece[5];
        dt_tensor *x = dt_arange(dt_spec_create(mesh, DT_F64, DT_SHAPE(2, rows[i].size), "x:S(1)"), 0, 1);
        expect(dt_chunk(x, rows[i].n, -1, piece) == DT_OK, "%s", dt_context_error(ctx));
        for (int k = 0; k < rows[i].n; k++) {
            int64_t size = piece[k] ? dt_spec_shape(dt_tensor_spec(piece[k])).dim[1] : -1;
            expect(size == rows[i].pieces[k], "piece %d of %lld in %d: %lld", k, (long long)rows[i].size, rows[i].n,
                   (long long)size);
        }
    }
    return dt_context_status(ctx);
}

static void chunks(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks += 2)
        expect(dt_launch_threads(ranks, check_chunks, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks,
               error);
}

/* ---- the gradient of a slice by steps ---------------------------------------------------------------------------- */

typedef struct stepped { const char *spec; int dim; int64_t start, stop, step; } stepped;

/* Element i of the slice has the gradient i + 1; those between have none. */
static dt_status check_steps(dt_context *ctx, void *arg)
{
    static const stepped rows[] = {
        { "f64[13]@x:S(0)", 0, 1, 13, 3 }, { "f64[13]", 0, -12, -1, 2 }, { "f64[2,11]@x:S(1)", 1, 0, 100, 4 },
        { "f64[1,2,1,8,1,1,2,1]@x:S(3)", 3, 1, 7, 2 }, { "f64[1,9,1,2,1,1,2,1]@x:S(1)", 1, 0, 9, 4 },
        { "f64[1,2,1,2,1,1,2,5]", 7, 2, 5, 2 }, { "f64[5]@x:S(0)", 0, 4, 5, 7 }, { "f64[5]@x:S(0)", 0, 3, 3, 2 },
    };
    static _Thread_local values got;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int r = 0; r < DT_COUNT(rows); r++) {
        const stepped *s = &rows[r];
        dt_tensor *x = dt_require_grad(dt_zeros(dt_spec_parse(mesh, s->spec)));
        dt_tensor *y = dt_slice(x, s->dim, s->start, s->stop, s->step);
        if (!expect(y != NULL, "%s: %s", s->spec, dt_context_error(ctx))) continue;
        dt_backward(y, dt_arange(dt_spec_create(mesh, DT_F64, dt_spec_shape(dt_tensor_spec(y)), ""), 1, 1));
        if (!expect(read_values(dt_grad(x), &got), "%s: %s", s->spec, dt_context_error(ctx))) continue;
        int64_t n = got.shape.dim[s->dim], start = s->start < 0 ? s->start + n : s->start, inner = 1, count = 0;
        int64_t stop = s->stop < 0 ? s->stop + n : s->stop < n ? s->stop : n;
        for (int d = s->dim + 1; d < got.shape.n; d++) inner *= got.shape.dim[d];
        for (int64_t e = 0; e < got.n; e++) {
            int64_t i = e / inner % n;
            bool taken = i >= start && i < stop && (i - start) % s->step == 0;
            expect(got.at[e] == (taken ? (double)++count : 0), "%s, element %lld: %g", s->spec, (long long)e,
                   got.at[e]);
        }
    }
    return dt_context_status(ctx);
}

static void slices_by_steps(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_steps, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks, error);
}

/* ---- operands that lie otherwise --------------------------------------------------------------------------------- */

typedef struct joining { const char *x, *y, *result; int implied; } joining;

static dt_status check_joined(dt_context *ctx, void *arg)
{
    static const joining rows[] = {
        { "f64[9,4]@x:S(0)", "f64[5,4]@x:S(0)", "f64[14,4]@x:S(0)", 0 },
        { "f64[9,4]@x:S(0)", "f64[5,4]", "f64[14,4]@x:S(0)", 0 },
        { "f64[9,4]", "f64[5,4]@x:S(1)", "f64[14,4]@x:S(1)", 0 },
        { "f64[9,4]@x:P", "f64[5,4]", "f64[14,4]@x:P(sum)", 0 },
        { "f64[9,4]@x:P", "f64[5,4]@x:P(avg)", "f64[14,4]@x:P(sum)", 0 },
        { "f64[9,4]", "f64[5,4]@x:P(avg)", "f64[14,4]@x:P(avg)", 0 },
        { "f64[9,4]", "f64[5,4]@x:P(max)", "f64[14,4]@x:P(max)", 0 },
        { "f64[(3 3),4]@x:S(0.1)", "f64[5,4]@x:S(0)", "f64[14,4]@x:S(0)", 0 },
        { "f64[90,4]@x:S(0)", "f64[5,4]@x:S(1)", "f64[95,4]@x:S(1)", 1 },
    };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < DT_COUNT(rows); i++) {
        dt_tensor *in[] = { dt_arange(dt_spec_parse(mesh, rows[i].x), 1, 1),
                            dt_arange(dt_spec_parse(mesh, rows[i].y), 1, 3) };
        int64_t before = dt_mesh_counters(mesh, NULL).implied;
        dt_tensor *y = dt_cat(in, 2, 0);
        expect(dt_mesh_counters(mesh, NULL).implied - before == rows[i].implied, "%s, %s: implied", rows[i].x,
               rows[i].y);
        expect(y && dt_tensor_spec(y) == dt_spec_parse(mesh, rows[i].result), "%s, %s: expected %s, got %s", rows[i].x,
               rows[i].y, rows[i].result, y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(ctx));
        dt_tensor *whole[] = { dt_redistribute(in[0], ""), dt_redistribute(in[1], "") };
        expect(dt_tensor_close(y, dt_cat(whole, 2, 0), 0, 0), "%s, %s: other values", rows[i].x, rows[i].y);
    }
    return dt_context_status(ctx);
}

static void operands_that_lie_otherwise(void)
{
    char error[512] = "";
    expect(dt_launch_threads(3, check_joined, NULL, error, sizeof error) == DT_OK, "%s", error);
    expect(dt_launch_threads(2, check_joined, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* Sixteen that are P stay so: nothing is reduced. */
static dt_status check_many_partial(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x[DT_MAX_OPERANDS];
    (void)arg;
    for (int i = 0; i < DT_COUNT(x); i++) x[i] = dt_full(dt_spec_parse(mesh, i % 5 ? "f64[3]@x:P" : "f64[3]"), i);
    moved before = moved_on(mesh);
    dt_tensor *y = dt_cat(x, DT_COUNT(x), 0);
    moved after = moved_on(mesh);
    expect(y && strcmp(dt_spec_text(dt_tensor_spec(y)), "f64[48]@x:P(sum)") == 0, "P stays P");
    expect(after.elements == before.elements && after.others == before.others, "nothing moves");
    expect(dt_tensor_item(dt_sum(y, DT_ALL, false)) == 3 * 120, "each is there once");
    return dt_context_status(ctx);
}

static void many_partial_operands(void)
{
    char error[512] = "";
    expect(dt_launch_threads(3, check_many_partial, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- rows of a program ------------------------------------------------------------------------------------------- */

/* Every second element of dim 0, the last ones first. */
static dt_status derive_seconds(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int64_t count = shapes[0].dim[0] / 2, over = *(const int64_t *)attributes;
    (void)ctx;
    (void)n;
    out->size_count = 1;
    out->size[0].letter = 'a';
    out->size[0].size = count;
    out->map.part_count = 1;
    out->map.part[0] = (dt_index_part){ .hi = count, .from = 2 * count - 1 + over, .step = -2 };
    return DT_OK;
}

static dt_status seconds_kernel(const dt_call *call)
{
    const dt_index_part *part = &call->map->part[0];
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    for (int64_t i = part->lo; i < part->hi; i++) y[i] = x[part->from + (i - part->lo) * part->step];
    return DT_OK;
}

static const dt_attribute over[] = { { "over", DT_ATTRIBUTE_INT, 0 } };
static const dt_op seconds_row = {
    .head = "seconds(x)", .rule = "a1 -> a", .polynomial = "x, rising", .derive = derive_seconds, .attributes = over,
    .attribute_count = 1, .attribute_bytes = sizeof(int64_t), .kernel = seconds_kernel,
};

static dt_tensor *seconds(dt_tensor *x) { return dt_apply(&seconds_row, &x, 1, &(int64_t){ 0 }); }

static dt_status check_own_row(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f64[11]@x:S(0)"), 1, 1), *y = seconds(x);
    static const double due[] = { 10, 8, 6, 4, 2 };
    static _Thread_local values got;
    (void)arg;
    expect(read_values(y, &got) && got.n == 5 && memcmp(got.at, due, sizeof due) == 0, "every second, turned round");
    if (y) expect_serial(x, y, seconds);
    for (int64_t far = -20; far <= 20; far += 40) {
        expect(!dt_apply(&seconds_row, &x, 1, &far), "a map that leads elsewhere");
        expect_error(ctx, DT_ERR_ARG, "seconds(x): its index map leads out of its operands or results", "seconds");
    }
    return dt_context_status(ctx);
}

/* An operand as often as a call has it, with one letter for its dtype. */
static dt_status derive_total(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int at = 0, sum = 0;
    (void)ctx;
    (void)attributes;
    (void)shapes;
    for (int i = 0; i < n - 1; i++) {
        at += snprintf(out->rule + at, sizeof out->rule - (size_t)at, ", a");
        sum += snprintf(out->polynomial + sum, sizeof out->polynomial - (size_t)sum, "%sx%d", i ? " + " : "", i);
    }
    snprintf(out->rule + at, sizeof out->rule - (size_t)at, " -> a");
    return DT_OK;
}

static dt_status total_kernel(const dt_call *call)
{
    double *y = call->out[0].data;
    for (int64_t k = 0; k < call->out[0].shape.dim[0]; k++) {
        y[k] = 0;
        for (int i = 1; i < call->in_count; i++) y[k] += ((const double *)call->in[i].data)[k];
    }
    return DT_OK;
}

static const dt_op total_row = { .head = "total(s, x...)", .dtypes = "if->f", .derive = derive_total,
                                 .kernel = total_kernel };

static dt_status check_repeated(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *s = dt_zeros(dt_spec_parse(mesh, "i32[]")), *x = dt_full(dt_spec_parse(mesh, "f64[5]@x:S(0)"), 2);
    dt_tensor *y = dt_apply(&total_row, (dt_tensor *[]){ s, x, x, dt_neg(x), x }, 5, NULL);
    (void)arg;
    expect(y && dt_tensor_close(y, dt_full(dt_tensor_spec(x), 4), 0, 0), "four: %s", dt_context_error(ctx));
    expect(y && dt_tensor_spec(y) == dt_tensor_spec(x), "split as they are");
    dt_apply(&total_row, (dt_tensor *[]){ s, x, x, s }, 4, NULL);
    expect_error(ctx, DT_ERR_DTYPE, "total(s, x...): expected a float for x2, got i32[]", "an integer among floats");
    dt_apply(&total_row, (dt_tensor *[]){ s }, 1, NULL);
    expect_error(ctx, DT_ERR_PARSE, "rule", "none");
    return dt_context_status(ctx);
}

static void rows_of_a_program(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_repeated, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks,
               error);
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_own_row, NULL, error, sizeof error) == DT_OK, "%d ranks: %s", ranks,
               error);
}

/* ---- some of the ranks, and ranks that differ -------------------------------------------------------------------- */

/* Two halves of the world at once, then one of them alone. */
static dt_status check_halves(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=3");
    dt_mesh *half = dt_mesh_slice(mesh, "b"), *one = dt_mesh_select(mesh, "a=1");
    dt_tensor *x = dt_arange(dt_spec_parse(half, "f64[13,2]@b:S(0)"), 1, 1);
    (void)arg;
    for (int m = 0; m < DT_COUNT(moves); m++) {
        dt_tensor *y = moves[m](x);
        expect(y != NULL, "move %d: %s", m, dt_context_error(ctx));
        if (y) expect_serial(x, y, moves[m]);
    }
    x = dt_arange(dt_spec_parse(one, "f64[13,2]@b:S(0)"), 1, 1);
    for (int m = 0; m < DT_COUNT(moves); m++) {
        dt_tensor *y = moves[m](x);
        expect(y && dt_spec_mesh(dt_tensor_spec(y)) == one, "move %d of some ranks: %s", m, dt_context_error(ctx));
        if (y && dt_mesh_coord(one, NULL) >= 0) expect_serial(x, y, moves[m]);
    }
    return dt_context_status(ctx);
}

static void some_of_the_ranks(void)
{
    char error[512] = "";
    expect(dt_launch_threads(6, check_halves, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static dt_status check_desync(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    dt_roll(dt_zeros(dt_spec_parse(mesh, "f64[8]@x:S(0)")), 0, dt_rank(ctx) + 1);
    return dt_context_status(ctx);
}

static void ranks_that_differ(void)
{
    char error[1024] = "";
    dt_status status = dt_launch_threads(2, check_desync, NULL, error, sizeof error);
    expect(status == DT_ERR_DESYNC && strstr(error, "pull f64[8]@x:S(0) 0:1 of dim 0 from 7 by 1")
           && strstr(error, "pull f64[8]@x:S(0) 0:2 of dim 0 from 6 by 1"), "rolled by 1 and by 2: %s", error);
}

/* ---- without data ------------------------------------------------------------------------------------------------ */

static void a_dry_run_counts_alike(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f64[13]@x:S(0)"));
    dt_tensor *y = dt_roll(x, 0, 1);
    expect(strcmp(dt_spec_text(dt_tensor_spec(y)), "f64[13]@x:S(0)") == 0, "a dry roll");
    expect(moved_on(mesh).elements == 1 && moved_on(mesh).others == 0, "rank 0 receives one element");
    dt_context_destroy(&ctx);
}

/* Time and received bytes of a dry run's moves, at the end. at: they are asked for before that move, too. */
typedef struct dry_sums { double time; int64_t bytes; } dry_sums;

static dry_sums sums_of(const dt_context *ctx, const dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    dry_sums sums = { dt_context_time(ctx), 0 };
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) sums.bytes += counters.bytes[k];
    return sums;
}

static dry_sums dry_moves(int at)
{
    static const char *const to[] = { "x:S(1)", "", "x:S(1)", "x:S(0)", "" };
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[64,32]@x:S(0)"));
    dry_sums before = { 0, 0 };
    for (int i = 0; i < DT_COUNT(to); i++) {
        if (i == at) before = sums_of(ctx, mesh);
        if (i == at) expect((before.time > 0) == (i > 0) && (before.bytes > 0) == (i > 0), "%g s before %d",
                            before.time, i);
        dt_tensor *y = dt_redistribute(x, to[i]);
        if (i % 2 == 0) x = y;
    }
    dry_sums all = sums_of(ctx, mesh), again = sums_of(ctx, mesh);
    expect(all.time > before.time && fabs(all.time - again.time) <= 0 && all.bytes > before.bytes
           && all.bytes == again.bytes, "%g s and %lld bytes, then as much", all.time, (long long)all.bytes);
    dt_context_destroy(&ctx);
    return all;
}

static void sums_may_be_asked_for_at_any_time(void)
{
    dry_sums all = dry_moves(-1);
    expect(all.bytes == 2 * 1536 + 2 * 6144, "%lld bytes: two exchanges, two gathers", (long long)all.bytes);
    for (int i = 0; i < 5; i++) {
        dry_sums asked = dry_moves(i);
        expect(fabs(asked.time - all.time) < 1e-12 && asked.bytes == all.bytes, "asked before move %d", i);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static dt_status check_refusals(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[6,4]@x:S(0)")), *y = dt_zeros(dt_spec_parse(mesh, "f32[6,5]"));
    dt_tensor *i = dt_zeros(dt_spec_parse(mesh, "i32[6]@x:S(0)")), *scalar = dt_zeros(dt_spec_parse(mesh, "f32[]"));
    dt_tensor *pieces[12];
    (void)arg;
    dt_slice(x, 2, 0, 1, 1);
    expect_error(ctx, DT_ERR_ARG, "slice(x): expected dim in -2 .. 1, got 2", "slice");
    dt_slice(x, 0, 0, 1, 0);
    expect_error(ctx, DT_ERR_ARG, "slice: expected a step of at least 1, got 0; see dt_flip", "slice");
    dt_select(x, 0, 6);
    expect_error(ctx, DT_ERR_ARG, "select: expected an index of dim 0, which has 6 elements, got 6", "select");
    dt_pad(x, 0, -1, 0, 0);
    expect_error(ctx, DT_ERR_ARG, "pad: expected at least 0 elements before and after, got -1 and 0", "pad");
    dt_pad(x, 0, INT64_MAX - 6, 1, 0);
    expect_error(ctx, DT_ERR_SHAPE, "more than 2^63 - 1", "pad");
    dt_pad(i, 0, 1, 1, 0.5);
    expect_error(ctx, DT_ERR_ARG, "pad(x): expected a whole number for i32, got 0.5", "pad");
    dt_roll(scalar, 0, 1);
    expect_error(ctx, DT_ERR_ARG, "roll(x): a scalar has no dims", "roll");
    dt_cat((dt_tensor *[]){ x, y }, 2, 0);
    expect_error(ctx, DT_ERR_SHAPE, "cat(x0[6,4], x1[6,5]): expected one size for b, got 4 in x0 and 5 in x1", "cat");
    dt_cat((dt_tensor *[]){ x, scalar }, 2, 0);
    expect_error(ctx, DT_ERR_SHAPE, "expected 2 dims for x1 (a2 b), got 0", "cat");
    dt_cat((dt_tensor *[]){ x, NULL }, 2, 0);
    expect_error(ctx, DT_ERR_ARG, "cat: expected a tensor for x1, got none", "cat");
    dt_cat((dt_tensor *[]){ dt_cast(x, DT_F64), x }, 2, 0);
    expect_error(ctx, DT_ERR_DTYPE, "expected one dtype", "cat");
    dt_stack((dt_tensor *[]){ x, x }, 2, 3);
    expect_error(ctx, DT_ERR_ARG, "stack: expected dim in -3 .. 2, got 3", "stack");
    dt_split(x, (int64_t[]){ 2, 3 }, 2, 0, pieces);
    expect_error(ctx, DT_ERR_SHAPE, "split: expected 1 .. 8 sizes that are 6 together", "split");
    expect(!pieces[0] && !pieces[1], "no pieces");
    dt_split(x, (int64_t[]){ -1, 3, -1 }, 3, 0, pieces);
    expect_error(ctx, DT_ERR_SHAPE, "one of them -1 at most", "split");
    dt_split(x, (int64_t[]){ -1, -1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0 }, 12, 0, pieces);
    expect_error(ctx, DT_ERR_SHAPE, "one of them -1 at most", "split");
    dt_tensor *most = dt_zeros(dt_spec_parse(mesh, "f32[1,1,1,1,1,1,1,1]"));
    dt_stack((dt_tensor *[]){ most, most }, 2, 0);
    expect_error(ctx, DT_ERR_SHAPE, "stack: expected at most 7 dims, got 8", "stack");
    dt_split(x, NULL, 2, 0, pieces);
    expect_error(ctx, DT_ERR_ARG, "split: got no sizes", "split");
    dt_split(x, (int64_t[]){ 6 }, 1, 0, NULL);
    expect_error(ctx, DT_ERR_ARG, "split: got no room for pieces", "split");
    dt_chunk(x, 2, 0, NULL);
    expect_error(ctx, DT_ERR_ARG, "chunk: got no room for pieces", "chunk");
    dt_gather(NULL, 0, i);
    expect_error(ctx, DT_ERR_ARG, "gather(x, ids): its first operand, which has the dims, is missing", "gather");
    expect(dt_slice(x, 1, 1, INT64_MAX, INT64_MAX) != NULL, "a slice of one by the largest step");
    dt_chunk(x, 0, 0, pieces);
    expect_error(ctx, DT_ERR_ARG, "chunk: expected at least one piece, got 0", "chunk");
    dt_chunk(x, 3, -3, pieces);
    expect_error(ctx, DT_ERR_ARG, "split(x): expected dim in -2 .. 1, got -3", "chunk");
    expect(dt_split(NULL, NULL, 1, 0, pieces) == DT_ERR_ARG && !dt_cat(NULL, 0, 0), "nothing to move");
    return dt_context_status(ctx);
}

static void refusals(void)
{
    char error[512] = "";
    expect(dt_launch_threads(2, check_refusals, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "known results", known_results },
    { "sums may be asked for at any time", sums_may_be_asked_for_at_any_time },
    { "every placement", every_placement },
    { "many pieces", many_pieces },
    { "many stacked", many_stacked },
    { "chunks", chunks },
    { "slices by steps", slices_by_steps },
    { "operands that lie otherwise", operands_that_lie_otherwise },
    { "many partial operands", many_partial_operands },
    { "rows of a program", rows_of_a_program },
    { "some of the ranks", some_of_the_ranks },
    { "ranks that differ", ranks_that_differ },
    { "a dry run counts alike", a_dry_run_counts_alike },
    { "refusals", refusals },
};

const suite the_suite = { "moves", rows, DT_COUNT(rows) };
