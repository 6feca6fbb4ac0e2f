/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions by sum, product, max and min. Floats are reduced in f64, integers in i64, and rounded or cut once. Sums
 * are sums of short sums, which keeps their error small; the order depends on the reduced dims and their sizes alone,
 * so a result is the same whatever else is computed beside it. */
#include <math.h>
#include <string.h>

#include "core/number_parts.h"
#include "ops/cpu/dims.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"

enum { SHORT = 32 };                   /* summands of a short sum, column by column                                */

typedef union buffer { double f64[DTI_RUN]; int64_t i64[DTI_RUN]; } buffer;

typedef struct reduction {
    const dt_call *call;
    dti_combine combine;
    dti_combine_fn function;
    dt_dtype dtype;                    /* that computes; both are 8 bytes wide                                     */
    dti_nest nest;
    double divide;                     /* the result, where it is not 0                                            */
    int64_t done, held;                /* results that are written; that wait in out                               */
    buffer total, part, x, out;
} reduction;

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void flush(reduction *r)
{
    const dt_part *y = &r->call->out[0];
    char *to = (char *)y->data + r->done * (int64_t)dt_dtype_bytes(y->dtype);
    for (int64_t i = 0; i < r->held && r->divide != 0; i++) r->out.f64[i] /= r->divide;
    dti_numbers_convert(r->dtype, &r->out, y->dtype, to, r->held);
    r->done += r->held;
    r->held = 0;
}

static void put(reduction *r, const buffer *results, int64_t n)
{
    if (r->held + n > DTI_RUN) flush(r);
    memcpy(r->out.f64 + r->held, results, (size_t)n * 8);
    r->held += n;
}

static void identity(const reduction *r, buffer *b, size_t first, size_t n)
{
    if (first < n) dti_numbers_identity(r->dtype, r->combine, b->f64 + first, (int64_t)(n - first));
}

static const char *element(const reduction *r, int64_t at)
{
    const dt_part *x = &r->call->in[0];
    return (const char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype);
}

/* ---- the innermost dim is reduced: a result at a time ------------------------------------------------------------ */

/* One block from a run: halves are combined until it is one. */
static void add_run(reduction *r, int64_t at, size_t n)
{
    size_t size = DTI_LANES;
    while (size < n) size *= 2;
    dti_numbers_convert(r->call->in[0].dtype, element(r, at), r->dtype, &r->x, (int64_t)n);
    identity(r, &r->x, n, size);
    for (; size > DTI_LANES; size /= 2) r->function(&r->x, &r->x, r->x.f64 + size / 2, size / 2 / DTI_BLOCK);
    r->function(&r->total, &r->total, &r->x, 1);
}

static void fold(reduction *r)
{
    for (size_t half = DTI_LANES / 2; half; half /= 2) {
        memcpy(&r->x, r->total.f64 + half, half * 8);
        r->function(&r->total, &r->total, &r->x, 1);
    }
}

static void reduce_rows(reduction *r)
{
    dti_walk *kept = &r->nest.kept, *reduced = &r->nest.reduced;
    for (bool more = dti_walk_begin(kept); more; more = dti_walk_next(kept)) {
        identity(r, &r->total, 0, DTI_LANES);
        for (bool inside = dti_walk_begin(reduced); inside; inside = dti_walk_next(reduced))
            for (int64_t i = 0; i < r->nest.inner; i += DTI_RUN)
                add_run(r, kept->at + reduced->at + i,
                        (size_t)(r->nest.inner - i < DTI_RUN ? r->nest.inner - i : DTI_RUN));
        fold(r);
        put(r, &r->total, 1);
    }
}

/* ---- the innermost dim is kept: as many results at a time as fit ------------------------------------------------- */

static void add_part(reduction *r, size_t n)
{
    r->function(&r->total, &r->total, &r->part, dti_blocks((int64_t)n));
    identity(r, &r->part, 0, n);
}

static void reduce_columns_at(reduction *r, int64_t at, size_t n)
{
    dti_walk *reduced = &r->nest.reduced;
    int summands = 0;
    identity(r, &r->total, 0, n);
    identity(r, &r->part, 0, n);
    for (bool more = dti_walk_begin(reduced); more; more = dti_walk_next(reduced)) {
        const char *x = element(r, at + reduced->at);
        bool direct = r->call->in[0].dtype == r->dtype && n % DTI_LANES == 0;
        if (!direct) dti_numbers_convert(r->call->in[0].dtype, x, r->dtype, &r->x, (int64_t)n);
        r->function(&r->part, &r->part, direct ? (const void *)x : &r->x, dti_blocks((int64_t)n));
        if (++summands % SHORT == 0) add_part(r, n);
    }
    add_part(r, n);
    put(r, &r->total, (int64_t)n);
}

static void reduce_columns(reduction *r)
{
    dti_walk *kept = &r->nest.kept;
    for (bool more = dti_walk_begin(kept); more; more = dti_walk_next(kept))
        for (int64_t i = 0; i < r->nest.inner; i += DTI_RUN)
            reduce_columns_at(r, kept->at + i, (size_t)(r->nest.inner - i < DTI_RUN ? r->nest.inner - i : DTI_RUN));
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

/* How many elements of the whole tensor become one. */
static int64_t count_of(const dt_call *call)
{
    const dti_over *over = call->attributes;
    dt_shape shape = dt_spec_shape(call->in[0].spec);
    int64_t n = 1;
    for (int i = 0; i < over->dims.n; i++) n *= shape.dim[over->dims.dim[i]];
    return n;
}

/* Buffers are set, for loops read whole blocks of them. */
static void begin(reduction *r, const dt_call *call, dti_combine combine)
{
    const dti_over *over = call->attributes;
    memset(r, 0, sizeof *r);
    r->call = call;
    r->combine = combine;
    r->dtype = call->in[0].dtype <= DT_F16 ? DT_F64 : DT_I64;
    r->function = dti_number_combine(r->dtype, combine);
    r->nest = dti_nest_of(&call->in[0].shape, &over->dims);
}

/* Of nothing: what changes no other piece; a sum of nothing at all is 0, a mean NaN. */
static void put_empty(const reduction *r, int64_t count)
{
    const dt_part *y = &r->call->out[0];
    int64_t results = 1;
    for (int d = 0; d < y->shape.n; d++) results *= y->shape.dim[d];
    if (count || r->combine != DTI_COMBINE_SUM) dti_numbers_identity(y->dtype, r->combine, y->data, results);
    else dti_numbers_fill(y->dtype, r->divide != r->divide ? r->divide : 0, y->data, results);
}

static dt_status run(reduction *r, int64_t count)
{
    if (!r->call->out[0].data) return DT_OK;
    if (dti_walk_count(&r->nest.reduced) * (r->nest.taken ? r->nest.inner : 1) == 0) {
        put_empty(r, count);
        return DT_OK;
    }
    if (r->nest.taken) reduce_rows(r);
    else reduce_columns(r);
    flush(r);
    return DT_OK;
}

static dt_status reduce(const dt_call *call, dti_combine combine)
{
    reduction r;
    begin(&r, call, combine);
    return run(&r, count_of(call));
}

dt_status dti_cpu_sum(const dt_call *call) { return reduce(call, DTI_COMBINE_SUM); }
dt_status dti_cpu_max(const dt_call *call) { return reduce(call, DTI_COMBINE_MAX); }
dt_status dti_cpu_min(const dt_call *call) { return reduce(call, DTI_COMBINE_MIN); }
dt_status dti_cpu_prod(const dt_call *call) { return reduce(call, DTI_COMBINE_PROD); }

dt_status dti_cpu_mean(const dt_call *call)
{
    reduction r;
    int64_t count = count_of(call);
    begin(&r, call, DTI_COMBINE_SUM);
    r.divide = count ? (double)count : NAN;
    return run(&r, count);
}
