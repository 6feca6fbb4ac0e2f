/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise rows: dims that all tensors step through alike are joined; the innermost is run through in buffers,
 * operands widened to the dtype that computes, an operand that stands still repeated. Numbers of that dtype are read
 * and written where they lie. Invariant: loops see whole blocks; where a run ends within one, the rest is zero. */
#include <math.h>
#include <string.h>

#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/map.h"

enum { MAX_IN = 3 };

typedef struct walk {                  /* dims of the result, outermost first; steps are in elements               */
    int n;
    int64_t size[DT_MAX_DIMS], step[DT_MAX_DIMS][MAX_IN];
} walk;

typedef union buffer { double f64[DTI_RUN]; float f32[DTI_RUN]; int64_t i64[DTI_RUN]; } buffer;

typedef struct mapping {
    const dt_call *call;
    dt_dtype dtype;                    /* that loops read and write                                                */
    int64_t bytes;                     /* of its elements                                                          */
    int64_t in_bytes[MAX_IN], out_bytes; /* of those of the tensors                                                */
    void (*function)(const dti_map_run *run);
    dti_map_run run;
    int64_t still[MAX_IN];             /* whose element fills in[i], an operand's that stands still; -1: none's    */
    int64_t still_count[MAX_IN];       /* and how many times                                                       */
    buffer in[MAX_IN], out;
} mapping;

/* ---- dims -------------------------------------------------------------------------------------------------------- */

/* The step of an operand in dim d of the result: 0 where it is 1 there, or has no such dim. */
static int64_t step_of(const dt_part *x, const dt_part *y, int d)
{
    int own = d - (y->shape.n - x->shape.n);
    int64_t step = 1;
    if (own < 0 || x->shape.dim[own] == 1) return 0;
    for (int i = own + 1; i < x->shape.n; i++) step *= x->shape.dim[i];
    return step;
}

/* Is dim d of the result one with the dims behind it, for every operand? */
static bool joins(const walk *w, const int64_t *step, int count)
{
    for (int i = 0; i < count; i++)
        if (step[i] != w->step[0][i] * w->size[0]) return false;
    return true;
}

static void add_dim(walk *w, int64_t size, const int64_t *step, int count)
{
    if (w->n && joins(w, step, count)) {
        w->size[0] *= size;
        return;
    }
    memmove(w->size + 1, w->size, (size_t)w->n * sizeof *w->size);
    memmove(w->step + 1, w->step, (size_t)w->n * sizeof *w->step);
    w->size[0] = size;
    for (int i = 0; i < count; i++) w->step[0][i] = step[i];
    w->n++;
}

static walk walk_of(const dt_call *call)
{
    const dt_part *y = &call->out[0];
    walk w = { 0 };
    for (int d = y->shape.n - 1; d >= 0; d--) {
        int64_t step[MAX_IN] = { 0 };
        if (y->shape.dim[d] == 1) continue;
        for (int i = 0; i < call->in_count; i++) step[i] = step_of(&call->in[i], y, d);
        add_dim(&w, y->shape.dim[d], step, call->in_count);
    }
    if (w.n == 0) w = (walk){ .n = 1, .size = { 1 } };
    return w;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void fill(buffer *b, size_t bytes, int64_t n)
{
    size_t all = dti_blocks(n) * DTI_LANES;
    for (size_t done = 1; done < all; done *= 2)
        memcpy((char *)b + done * bytes, b, (done * 2 <= all ? done : all - done) * bytes);
}

/* An element n times; as it was, where it is there from the run before. */
static const void *repeat(mapping *m, int i, int64_t at, const char *from, int64_t n)
{
    if (m->still[i] == at && m->still_count[i] >= n) return &m->in[i];
    dti_numbers_convert(m->call->in[i].dtype, from, m->dtype, &m->in[i], 1);
    fill(&m->in[i], (size_t)m->bytes, n);
    m->still[i] = at;
    m->still_count[i] = n;
    return &m->in[i];
}

/* n elements of operand i from *at* on, as the loop reads them. */
static const void *load(mapping *m, int i, int64_t at, int64_t step, int64_t n)
{
    const dt_part *x = &m->call->in[i];
    const char *from = (const char *)x->data + at * m->in_bytes[i];
    if (!step) return repeat(m, i, at, from, n);
    if (x->dtype == m->dtype && n % DTI_LANES == 0) return from;
    dti_numbers_convert(x->dtype, from, m->dtype, &m->in[i], n);
    memset((char *)&m->in[i] + n * m->bytes, 0, (dti_blocks(n) * DTI_LANES - (size_t)n) * (size_t)m->bytes);
    return &m->in[i];
}

static void run_part(mapping *m, const int64_t *at, const int64_t *step, int64_t to, int64_t n)
{
    const dt_part *y = &m->call->out[0];
    char *out = (char *)y->data + to * m->out_bytes;
    bool apart = m->call->op->writes == 0; /* else loops would write what they read */
    bool direct = apart && y->dtype == m->dtype && n % DTI_LANES == 0;
    for (int i = 0; i < m->call->in_count; i++) m->run.in[i] = load(m, i, at[i], step[i], n);
    for (int i = m->call->in_count; i < MAX_IN; i++) m->run.in[i] = m->run.in[0];
    m->run.out = direct ? (void *)out : &m->out;
    m->run.blocks = dti_blocks(n);
    m->function(&m->run);
    if (!direct) dti_numbers_convert(m->dtype, &m->out, y->dtype, out, n);
}

/* The innermost dim, in parts that fit the buffers. */
static void run_dim(mapping *m, const walk *w, const int64_t *at, int64_t to)
{
    const int64_t *step = w->step[w->n - 1];
    int64_t size = w->size[w->n - 1], from[MAX_IN];
    for (int64_t i = 0; i < size; i += DTI_RUN) {
        for (int k = 0; k < MAX_IN; k++) from[k] = at[k] + i * step[k];
        run_part(m, from, step, to + i, size - i < DTI_RUN ? size - i : DTI_RUN);
    }
}

static void run_all(mapping *m, const walk *w)
{
    int64_t index[DT_MAX_DIMS] = { 0 }, at[MAX_IN] = { 0 }, to = 0;
    int d;
    do {
        run_dim(m, w, at, to);
        to += w->size[w->n - 1];
        for (d = w->n - 2; d >= 0; d--) {
            for (int k = 0; k < MAX_IN; k++) at[k] += w->step[d][k];
            if (++index[d] < w->size[d]) break;
            for (int k = 0; k < MAX_IN; k++) at[k] -= w->size[d] * w->step[d][k];
            index[d] = 0;
        }
    } while (d >= 0);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

/* Integers take whole numbers alone; infinities are their ends. */
static bool take_number(const dt_call *call, dt_dtype dtype, double number, int64_t *whole)
{
    dti_numbers_convert(DT_F64, &number, DT_I64, whole, 1);
    if (dti_sum_dtype(dtype) != DT_I64 || isinf(number) || floor(number) == number) return true;
    dt_context_fail(call->ctx, DT_ERR_ARG, "%s: expected a whole number for %s, got %g", call->op->head,
                    dt_dtype_text(dtype), number);
    return false;
}

/* What adds nothing, where another rank adds the number; but it is refused on all ranks alike. */
static bool take_numbers(mapping *m, const dti_map_row *row, dt_dtype dtype)
{
    if (!row->numbers) return true;
    const dti_map_numbers *numbers = m->call->attributes;
    bool here = !row->once || m->call->adds_number;
    if (!here && !take_number(m->call, dtype, numbers->a, &m->run.a_whole)) return false;
    m->run.a = here ? numbers->a : row->map == DTI_MAP_SUB_NUMBER ? 0.0 : -0.0;
    m->run.b = numbers->b;
    return take_number(m->call, dtype, m->run.a, &m->run.a_whole)
        && take_number(m->call, dtype, m->run.b, &m->run.b_whole);
}

/* Does f32 hold all operands, and is it what comes out? Then f64 need be nowhere but in registers. */
static bool fits_f32(const dt_call *call)
{
    for (int i = 0; i < call->in_count; i++)
        if (dti_sum_dtype(call->in[i].dtype) != DT_F32) return false;
    return call->out[0].dtype == DT_F32;
}

static void choose(mapping *m, const dti_map_row *row, dt_dtype dtype)
{
    bool wide = row->map >= DTI_MAP_WIDE;
    m->dtype = !wide ? dti_sum_dtype(dtype) : fits_f32(m->call) ? DT_F32 : DT_F64;
    if (wide) m->function = m->dtype == DT_F32 ? dti_map_smooth_f32 : dti_map_smooth;
    else m->function = m->dtype == DT_F64 ? dti_map_f64 : m->dtype == DT_F32 ? dti_map_f32 : dti_map_i64;
    m->bytes = (int64_t)dt_dtype_bytes(m->dtype);
    m->out_bytes = (int64_t)dt_dtype_bytes(m->call->out[0].dtype);
    for (int i = 0; i < m->call->in_count; i++) {
        m->in_bytes[i] = (int64_t)dt_dtype_bytes(m->call->in[i].dtype);
        m->still[i] = -1;
    }
}

dt_status dti_cpu_map(const dt_call *call)
{
    const dti_map_row *row = (const dti_map_row *)(const void *)call->op;
    dt_dtype dtype = call->in[row->of].dtype;
    mapping m; /* not set to zero: its buffers are large */
    m.call = call;
    m.run = (dti_map_run){ .map = row->map };
    if (!take_numbers(&m, row, dtype)) return DT_ERR_ARG;
    if (!call->out[0].data) return DT_OK;
    choose(&m, row, dtype);
    walk w = walk_of(call);
    run_all(&m, &w);
    return DT_OK;
}

dt_status dti_cpu_cast(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    int64_t n = 1;
    for (int d = 0; d < y->shape.n; d++) n *= y->shape.dim[d];
    dti_numbers_convert(x->dtype, x->data, y->dtype, y->data, n);
    return DT_OK;
}
