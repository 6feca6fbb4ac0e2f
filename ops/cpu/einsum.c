/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products of one array or two, by letters. Letters of two arrays are of four kinds: of both and the result
 * (a batch), of one and the result (rows, columns), of both alone (inner); what one array alone has is summed first.
 * With rows or columns it is a product of matrices, batch by batch: arrays that do not lie as it takes them are packed.
 * Without, products are summed where they lie, in f64 or i64, and rounded once. How it goes hangs on the equation
 * alone, never on sizes, so that a part is computed as the whole is. */
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/dims.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/product.h"
#include "ops/cpu/room.h"
#include "ops/cpu/vector.h"
#include "ops/equation.h"

typedef struct letters { int n; char at[2 * DT_MAX_DIMS]; } letters;

typedef struct array {                 /* an array with a letter for each dim                                      */
    const char *data;
    dt_dtype dtype;
    letters letters;
    int64_t size[DT_MAX_DIMS], step[DT_MAX_DIMS]; /* steps in elements                                             */
} array;

typedef struct scratch { dt_context *ctx; int n; void *at[4]; } scratch; /* what is to be given back               */

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static int find(const letters *l, char letter)
{
    int i = 0;
    while (i < l->n && l->at[i] != letter) i++;
    return i < l->n ? i : -1;
}

static bool has(const array *x, char letter) { return find(&x->letters, letter) >= 0; }

static void add(letters *l, char letter) { l->at[l->n++] = letter; }

static letters join(const letters *a, const letters *b)
{
    letters out = *a;
    for (int i = 0; i < b->n; i++) add(&out, b->at[i]);
    return out;
}

static bool same(const letters *a, const letters *b) { return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n) == 0; }

/* Letters of x that y has, or lacks, and z has, or lacks; in x's order. */
static letters choose(const array *x, const array *y, bool in_y, const array *z, bool in_z)
{
    letters out = { 0 };
    for (int i = 0; i < x->letters.n; i++) {
        char letter = x->letters.at[i];
        if (has(y, letter) == in_y && has(z, letter) == in_z) add(&out, letter);
    }
    return out;
}

static int64_t size_of(const array *x, const letters *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->n; i++) n *= x->size[find(&x->letters, l->at[i])];
    return n;
}

static dti_walk walk_of(const array *x, const letters *l)
{
    dti_walk w = { .n = l->n };
    for (int i = 0; i < l->n; i++) {
        int d = find(&x->letters, l->at[i]);
        w.size[i] = x->size[d];
        w.step[i] = x->step[d];
    }
    return w;
}

static void set_steps(array *x)
{
    int64_t step = 1;
    for (int d = x->letters.n - 1; d >= 0; d--) {
        x->step[d] = step;
        step *= x->size[d];
    }
}

static array array_of(const dt_part *part, const dti_lettered *l, int term)
{
    array x = { .data = part->data, .dtype = part->dtype, .letters = { .n = l->dims[term] } };
    memcpy(x.letters.at, l->letter[term], (size_t)l->dims[term]);
    for (int d = 0; d < l->dims[term]; d++) x.size[d] = part->shape.dim[d];
    set_steps(&x);
    return x;
}

/* ---- runs of elements -------------------------------------------------------------------------------------------- */

typedef union buffer { double f64[DTI_RUN]; uint64_t u64[DTI_RUN]; } buffer; /* of f64 or i64; unsigned, so it wraps */

static dt_dtype wide_dtype(dt_dtype dtype) { return dtype <= DT_F16 ? DT_F64 : DT_I64; }

/* n elements of x from *at* on, in another dtype. */
static void gather(const array *x, int64_t at, int64_t n, int64_t step, dt_dtype dtype, void *to)
{
    int64_t size = (int64_t)dt_dtype_bytes(x->dtype);
    const char *from = x->data + at * size;
    buffer raw;
    if (x->dtype == dtype) {
        dti_copy_run(to, from, n, step * size, (size_t)size);
        return;
    }
    if (step != 1) {
        dti_copy_run((char *)&raw, from, n, step * size, (size_t)size);
        from = (const char *)&raw;
    }
    dti_numbers_convert(x->dtype, from, dtype, to, n);
}

DTI_CLONES static void add_runs(bool real, const buffer *x, buffer *sum, int64_t n)
{
    for (int64_t i = 0; i < n && real; i++) sum->f64[i] += x->f64[i];
    for (int64_t i = 0; i < n && !real; i++) sum->u64[i] += x->u64[i];
}

DTI_CLONES static void add_products(bool real, const buffer *x, const buffer *y, buffer *sum, int64_t n)
{
    for (int64_t i = 0; i < n && real; i++) sum->f64[i] += x->f64[i] * y->f64[i];
    for (int64_t i = 0; i < n && !real; i++) sum->u64[i] += x->u64[i] * y->u64[i];
}

/* The last letter of a list, apart: where its runs lie. */
static dti_walk split_last(const array *x, const letters *l, int64_t *n, int64_t *step)
{
    dti_walk w = walk_of(x, l);
    *n = 1;
    *step = 1;
    if (w.n) {
        *n = w.size[--w.n];
        *step = w.step[w.n];
    }
    return w;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* Sums over the letters of *summed*, of n elements from *at* on. */
static void sum_run(const array *x, dti_walk *summed, int64_t at, int64_t n, int64_t step, buffer *sum)
{
    buffer part;
    memset(sum, 0, (size_t)n * 8);
    for (bool more = dti_walk_begin(summed); more; more = dti_walk_next(summed)) {
        gather(x, at + summed->at, n, step, wide_dtype(x->dtype), &part);
        add_runs(x->dtype <= DT_F16, &part, sum, n);
    }
}

/* x with the letters of *kept* in their order, summed over its others, as a dtype; row-major. */
static void pack(const array *x, const letters *kept, dt_dtype dtype, char *to)
{
    letters others = { 0 };
    int64_t n, step, size = (int64_t)dt_dtype_bytes(dtype);
    buffer sum;
    for (int i = 0; i < x->letters.n; i++)
        if (find(kept, x->letters.at[i]) < 0) add(&others, x->letters.at[i]);
    dti_walk outer = split_last(x, kept, &n, &step), summed = walk_of(x, &others);
    for (bool more = n && dti_walk_begin(&outer); more; more = dti_walk_next(&outer))
        for (int64_t i = 0; i < n; i += DTI_RUN) {
            int64_t count = n - i < DTI_RUN ? n - i : DTI_RUN, at = outer.at + i * step;
            if (others.n) {
                sum_run(x, &summed, at, count, step, &sum);
                dti_numbers_convert(wide_dtype(x->dtype), &sum, dtype, to, count);
            } else gather(x, at, count, step, dtype, to);
            to += count * size;
        }
}

/* x becomes an array that lies so. false: no memory. */
static bool repack(array *x, const letters *kept, dt_dtype dtype, scratch *room)
{
    array y = { .dtype = dtype, .letters = *kept };
    char *data = dti_room_take(room->ctx, (size_t)size_of(x, kept) * dt_dtype_bytes(dtype));
    if (!data) return false;
    room->at[room->n++] = data;
    for (int i = 0; i < kept->n; i++) y.size[i] = x->size[find(&x->letters, kept->at[i])];
    set_steps(&y);
    pack(x, kept, dtype, data);
    y.data = data;
    *x = y;
    return true;
}

/* ---- products of matrices ---------------------------------------------------------------------------------------- */

typedef struct plan { letters batch, rows, columns, inner; } plan; /* in the result's order; inner: in x's          */

static plan plan_of(const array *x, const array *y, const array *z)
{
    return (plan){ choose(z, x, true, y, true), choose(z, x, true, y, false), choose(z, x, false, y, true),
                   choose(x, y, true, z, false) };
}

/* Rows of x go with columns of y, so that the result lies as it is wanted, or a single row meets a matrix. */
static bool is_turned(const array *z, const plan *p)
{
    if (p->rows.n == 0 || p->columns.n == 0) return p->columns.n == 0;
    return find(&p->rows, z->letters.at[z->letters.n - 1]) >= 0;
}

static bool multiply_batches(const dt_call *call, const array *x, const array *y, const plan *p, bool turned, char *to)
{
    dti_product m = { .dtype = x->dtype, .m = size_of(x, &p->rows), .n = size_of(y, &p->columns),
                      .k = size_of(x, &p->inner), .transposed = turned, .ranks = dt_rank_count(call->ctx),
                      .ctx = call->ctx };
    int64_t bytes = (int64_t)dt_dtype_bytes(x->dtype), batches = size_of(x, &p->batch);
    for (int64_t i = 0; i < batches && m.m && m.n; i++) {
        m.a = x->data + i * m.m * m.k * bytes;
        m.b = y->data + i * m.k * m.n * bytes;
        m.c = to + i * m.m * m.n * bytes;
        if (!dti_product_fast(&m) && !dti_product_run(&m)) return false;
    }
    return true;
}

/* Arrays as products take them: x [batch, rows, inner], y [batch, inner, columns] or the last two turned. */
static bool prepare(array *x, array *y, const plan *p, dt_dtype dtype, bool *turned, scratch *room)
{
    letters left = join(&p->batch, &p->rows), right = join(&p->batch, &p->inner), other = join(&p->batch, &p->columns);
    left = join(&left, &p->inner);
    right = join(&right, &p->columns);
    other = join(&other, &p->inner);
    *turned = p->columns.n && same(&y->letters, &other);
    bool fits = x->dtype == dtype && same(&x->letters, &left);
    if (!fits && !repack(x, &left, dtype, room)) return false;
    fits = y->dtype == dtype && (*turned || same(&y->letters, &right));
    if (!fits) *turned = false;
    return fits || repack(y, &right, dtype, room);
}

static bool multiply(const dt_call *call, array x, array y, const array *z, scratch *room)
{
    plan p = plan_of(&x, &y, z);
    if (is_turned(z, &p)) {
        array other = x;
        x = y;
        y = other;
        p = plan_of(&x, &y, z);
    }
    letters matrix = join(&p.rows, &p.columns), order = join(&p.batch, &matrix);
    bool summed = x.letters.n > p.batch.n + p.rows.n + p.inner.n || y.letters.n > p.batch.n + p.columns.n + p.inner.n;
    bool turned, direct = !summed && same(&order, &z->letters);
    array out = { .dtype = summed ? dti_sum_dtype(z->dtype) : z->dtype, .letters = order };
    if (!prepare(&x, &y, &p, out.dtype, &turned, room)) return false;
    for (int i = 0; i < order.n; i++) out.size[i] = z->size[find(&z->letters, order.at[i])];
    set_steps(&out);
    char *to = (char *)(uintptr_t)z->data;
    if (!direct) {
        to = dti_room_take(room->ctx, (size_t)size_of(z, &z->letters) * dt_dtype_bytes(out.dtype));
        if (!to) return false;
        room->at[room->n++] = to;
    }
    out.data = to;
    if (!multiply_batches(call, &x, &y, &p, turned, to)) return false;
    if (!direct) pack(&out, &z->letters, z->dtype, (char *)(uintptr_t)z->data);
    return true;
}

/* ---- without rows and columns ------------------------------------------------------------------------------------ */

DTI_CLONES static double dot_f64(const double *x, const double *y, int64_t n)
{
    double sum[DTI_LANES] = { 0 };
    int64_t at = 0;
    for (; at + DTI_LANES <= n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) sum[i] += x[at + i] * y[at + i];
    for (int i = 0; at + i < n; i++) sum[i] += x[at + i] * y[at + i];
    for (int half = DTI_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    return sum[0];
}

static uint64_t dot_u64(const uint64_t *x, const uint64_t *y, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static bool begin_both(dti_walk *x, dti_walk *y)
{
    bool in_x = dti_walk_begin(x), in_y = dti_walk_begin(y);
    return in_x && in_y;
}

static bool next_both(dti_walk *x, dti_walk *y)
{
    bool in_x = dti_walk_next(x), in_y = dti_walk_next(y);
    return in_x && in_y;
}

typedef struct pair {                  /* two arrays walked together                                               */
    const array *x, *y;
    dti_walk in_x, in_y;
    int64_t n, x_step, y_step;         /* of runs                                                                  */
} pair;

static pair pair_of(const array *x, const array *y, const letters *l)
{
    pair p = { .x = x, .y = y };
    p.in_x = split_last(x, l, &p.n, &p.x_step);
    p.in_y = split_last(y, l, &p.n, &p.y_step);
    return p;
}

/* *count* elements of both, wide. */
static void load(const pair *p, int64_t x_at, int64_t y_at, int64_t count, buffer *x, buffer *y)
{
    dt_dtype wide = wide_dtype(p->x->dtype);
    gather(p->x, x_at, count, p->x_step, wide, x);
    gather(p->y, y_at, count, p->y_step, wide, y);
}

/* One number of the result: inner letters in runs. */
static void sum_inner(pair *inner, int64_t x_at, int64_t y_at, buffer *sum)
{
    buffer x, y;
    memset(sum, 0, 8);
    for (bool more = inner->n && begin_both(&inner->in_x, &inner->in_y); more;
         more = next_both(&inner->in_x, &inner->in_y))
        for (int64_t i = 0; i < inner->n; i += DTI_RUN) {
            int64_t count = inner->n - i < DTI_RUN ? inner->n - i : DTI_RUN;
            load(inner, x_at + inner->in_x.at + i * inner->x_step, y_at + inner->in_y.at + i * inner->y_step, count,
                 &x, &y);
            if (inner->x->dtype <= DT_F16) sum->f64[0] += dot_f64(x.f64, y.f64, count);
            else sum->u64[0] += dot_u64(x.u64, y.u64, count);
        }
}

static void run_inner(const array *x, const array *y, const array *z, const letters *inner)
{
    dti_walk in_x = walk_of(x, &z->letters), in_y = walk_of(y, &z->letters);
    char *to = (char *)(uintptr_t)z->data;
    pair p = pair_of(x, y, inner);
    buffer sum;
    for (bool more = begin_both(&in_x, &in_y); more; more = next_both(&in_x, &in_y)) {
        sum_inner(&p, in_x.at, in_y.at, &sum);
        dti_numbers_convert(wide_dtype(x->dtype), &sum, z->dtype, to, 1);
        to += dt_dtype_bytes(z->dtype);
    }
}

/* The result in runs: of each, all inner letters. */
static void run_batch(const array *x, const array *y, const array *z, const letters *inner)
{
    pair p = pair_of(x, y, &z->letters);
    dti_walk in_x = walk_of(x, inner), in_y = walk_of(y, inner);
    char *to = (char *)(uintptr_t)z->data;
    buffer a, b, sum;
    for (bool more = p.n && begin_both(&p.in_x, &p.in_y); more; more = next_both(&p.in_x, &p.in_y))
        for (int64_t i = 0; i < p.n; i += DTI_RUN) {
            int64_t count = p.n - i < DTI_RUN ? p.n - i : DTI_RUN;
            memset(&sum, 0, (size_t)count * 8);
            for (bool inside = begin_both(&in_x, &in_y); inside; inside = next_both(&in_x, &in_y)) {
                load(&p, p.in_x.at + in_x.at + i * p.x_step, p.in_y.at + in_y.at + i * p.y_step, count, &a, &b);
                add_products(x->dtype <= DT_F16, &a, &b, &sum, count);
            }
            dti_numbers_convert(wide_dtype(x->dtype), &sum, z->dtype, to, count);
            to += count * (int64_t)dt_dtype_bytes(z->dtype);
        }
}

/* What one array alone has is summed first, in the dtype that sums. */
static bool sum_first(array *x, const array *y, const array *z, scratch *room)
{
    letters kept = { 0 };
    for (int i = 0; i < x->letters.n; i++)
        if (has(y, x->letters.at[i]) || has(z, x->letters.at[i])) add(&kept, x->letters.at[i]);
    return kept.n == x->letters.n || repack(x, &kept, dti_sum_dtype(x->dtype), room);
}

static bool multiply_elements(array x, array y, const array *z, scratch *room)
{
    if (!sum_first(&x, &y, z, room) || !sum_first(&y, &x, z, room)) return false;
    letters inner = choose(&x, z, false, z, false);
    bool along = inner.n && inner.at[inner.n - 1] == x.letters.at[x.letters.n - 1];
    if (along) run_inner(&x, &y, z, &inner);
    else run_batch(&x, &y, z, &inner);
    return true;
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static bool run(const dt_call *call, const dti_lettered *l, scratch *room)
{
    array x = array_of(&call->in[0], l, 0), z = array_of(&call->out[0], l, l->n);
    if (l->n == 1) {
        pack(&x, &z.letters, z.dtype, call->out[0].data);
        return true;
    }
    array y = array_of(&call->in[1], l, 1);
    plan p = plan_of(&x, &y, &z);
    if (p.rows.n == 0 && p.columns.n == 0) return multiply_elements(x, y, &z, room);
    return multiply(call, x, y, &z, room);
}

dt_status dti_cpu_einsum(const dt_call *call)
{
    dt_shape shapes[2] = { { .n = -1 }, { .n = -1 } };
    dti_equation equation;
    dti_lettered l;
    scratch room = { .ctx = call->ctx };
    for (int i = 0; i < 2; i++)
        if (call->in[i].spec) shapes[i] = dt_spec_shape(call->in[i].spec);
    if (!dti_equation_parse(call->ctx, ((const dti_einsum *)call->attributes)->equation, &equation)
        || !dti_equation_bind(call->ctx, &equation, shapes, &l)) return dt_context_status(call->ctx);
    bool done = !call->out[0].data || run(call, &l, &room);
    for (int i = 0; i < room.n; i++) dti_room_give(room.at[i]);
    return done ? DT_OK : dt_context_fail(call->ctx, DT_ERR_MEMORY, "einsum: no memory for its arrays");
}
