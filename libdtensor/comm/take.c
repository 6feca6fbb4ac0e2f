/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies go straight from the source to the target. Combinations go in one pass where every contribution consists of
 * copies to the same places: a chunk of the target is combined from the same chunk of every source while it is in the
 * cache, and from there it goes to all targets. Else contributions are added one after the other in a temporary of the
 * dtype that sums. Invariant: a part of a target is written when all sources of that part have been read, so a source
 * may be a target. */
#include "comm/take.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a target that are combined at once, and bytes of one where targets are written past the caches: there
 * stores must come among the loads, so that memory is always busy with both. */
enum { CHUNK = 4096, STREAM_CHUNK_BYTES = 512 };

static void *scratch_take(dti_scratch *scratch, size_t bytes)
{
    if (bytes <= scratch->n) return scratch->bytes;
    free(scratch->bytes);
    *scratch = (dti_scratch){ malloc(bytes), bytes };
    if (!scratch->bytes) scratch->n = 0;
    return scratch->bytes;
}

void dti_scratch_fini(dti_scratch *scratch) { free(scratch->bytes); }

/* What one exchange reads and writes. */
typedef struct taking {
    const dti_exchange *ex;
    const char *const *sources;    /* by member                                                                    */
    void *const *targets;          /* the first is read again while it is in the cache                             */
    int target_count;
    dti_reach reach;               /* of what is written                                                           */
    dti_scratch *scratch;
} taking;

/* ---- runs of a copy ---------------------------------------------------------------------------------------------- *
 * All dims but the last are walked like the digits of a number; the last is left to whoever works on a row of runs.  */

typedef struct walk { const dti_copy *copy; int64_t at[DTI_COPY_DIMS], from, to; } walk;

static bool walk_begin(walk *w, const dti_copy *copy)
{
    *w = (walk){ .copy = copy, .from = copy->from, .to = copy->to };
    for (int d = 0; d < copy->dims; d++)
        if (copy->count[d] <= 0) return false;
    return copy->run > 0;
}

static bool walk_next(walk *w)
{
    const dti_copy *copy = w->copy;
    for (int d = copy->dims - 2; d >= 0; d--) {
        w->from += copy->from_stride[d];
        w->to += copy->to_stride[d];
        if (++w->at[d] < copy->count[d]) return true;
        w->from -= copy->count[d] * copy->from_stride[d];
        w->to -= copy->count[d] * copy->to_stride[d];
        w->at[d] = 0;
    }
    return false;
}

typedef struct row { int64_t count, from_stride, to_stride; } row; /* of runs, in the last dim                     */

static row row_of(const dti_copy *copy)
{
    int last = copy->dims - 1;
    if (last < 0) return (row){ 1, 0, 0 };
    return (row){ copy->count[last], copy->from_stride[last], copy->to_stride[last] };
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* With a constant size of a run the compiler makes it a load and a store. */
static inline void copy_runs(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, size_t run)
{
    for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) memcpy(to, from, run);
}

static void copy_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, size_t run,
                     bool streams)
{
    if (streams && run >= DTI_STREAM_RUN) {
        for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) dti_stream(to, from, run);
        return;
    }
    switch (run) {
    case 1: copy_runs(to, to_step, from, from_step, n, 1); break;
    case 2: copy_runs(to, to_step, from, from_step, n, 2); break;
    case 4: copy_runs(to, to_step, from, from_step, n, 4); break;
    case 8: copy_runs(to, to_step, from, from_step, n, 8); break;
    case 16: copy_runs(to, to_step, from, from_step, n, 16); break;
    default: copy_runs(to, to_step, from, from_step, n, run);
    }
}

static void copy(const dti_copy *c, const char *source, char *target, int64_t bytes, bool streams)
{
    walk w;
    row r = row_of(c);
    if (!walk_begin(&w, c)) return;
    if (source + c->from * bytes == target + c->to * bytes) return; /* it is where it belongs */
    do copy_row(target + w.to * bytes, r.to_stride * bytes, source + w.from * bytes, r.from_stride * bytes, r.count,
                (size_t)(c->run * bytes), streams);
    while (walk_next(&w));
}

static void take_copies(const taking *t)
{
    const dti_exchange *ex = t->ex;
    int64_t bytes = (int64_t)dt_dtype_bytes(ex->dtype);
    for (int i = 0; i < ex->get_count; i++)
        copy(&ex->gets[i], t->sources[ex->gets[i].member], t->targets[0], bytes, t->reach == DTI_PAST);
}

/* ---- combinations in one pass ------------------------------------------------------------------------------------ */

static bool same_places(const dti_copy *a, const dti_copy *b)
{
    if (a->dims != b->dims || a->run != b->run || a->to != b->to) return false;
    for (int d = 0; d < a->dims; d++)
        if (a->count[d] != b->count[d] || a->to_stride[d] != b->to_stride[d]) return false;
    return true;
}

/* Has every contribution the same copies, but for where they come from? */
static bool is_aligned(const dti_exchange *ex)
{
    int each = ex->get_count / ex->contributions;
    if (ex->get_count % ex->contributions != 0) return false;
    for (int i = 0; i < ex->get_count; i++)
        if (ex->gets[i].contribution != i / each || !same_places(&ex->gets[i], &ex->gets[i % each])) return false;
    return true;
}

/* n combined numbers as they are to be, from the dtype that sums. */
static void finish_numbers(const dti_exchange *ex, dt_dtype dtype, void *numbers, int64_t n, void *to)
{
    if (ex->divide) dti_numbers_scale(dtype, numbers, n, ex->multiply, ex->divide);
    dti_numbers_convert(dtype, numbers, ex->target_dtype, to, n);
}

static void combine_chunk(const dti_exchange *ex, const void *const *from, void *to, int64_t n)
{
    _Alignas(64) char wide[CHUNK * sizeof(int64_t)];
    dt_dtype dtype = ex->divide ? dti_sum_dtype(ex->dtype) : ex->target_dtype;
    dti_numbers_combine(ex->combine, ex->dtype, from, ex->contributions, dtype, ex->divide ? wide : to, n);
    if (ex->divide) finish_numbers(ex, dtype, wide, n, to);
}

/* So many elements of a run as can be summed in one pass over sources and targets. */
static int64_t sum_at_once(const taking *t, const char *const *from, int64_t to, int64_t run)
{
    const dti_exchange *ex = t->ex;
    bool can = t->reach != DTI_NEAR && ex->combine == DTI_COMBINE_SUM && ex->dtype == DT_F32
        && ex->target_dtype == DT_F32 && !ex->divide;
    if (!can) return 0;
    return (int64_t)(dti_stream_sum_f32(t->reach, from, ex->contributions, (char *const *)t->targets, t->target_count,
                                        (size_t)to, (size_t)run * sizeof(float)) / sizeof(float));
}

/* One run of the result, from where `from` says to `to` bytes behind the begin of every target. */
static void combine_run(const taking *t, const char **from, int64_t to, int64_t run)
{
    _Alignas(64) char apart[STREAM_CHUNK_BYTES];
    const dti_exchange *ex = t->ex;
    int64_t bytes = (int64_t)dt_dtype_bytes(ex->dtype), to_bytes = (int64_t)dt_dtype_bytes(ex->target_dtype);
    bool streams = t->reach == DTI_PAST;
    int64_t most = streams ? STREAM_CHUNK_BYTES / to_bytes : CHUNK, done = sum_at_once(t, from, to, run);
    for (int c = 0; c < ex->contributions; c++) from[c] += done * bytes;
    to += done * to_bytes;
    run -= done;
    for (int64_t n; run > 0; run -= n, to += n * to_bytes) {
        n = run < most ? run : most;
        size_t size = (size_t)(n * to_bytes);
        bool past = streams && size >= DTI_STREAM_RUN;
        char *chunk = past ? apart : (char *)t->targets[0] + to;
        combine_chunk(ex, (const void *const *)from, chunk, n);
        for (int i = past ? 0 : 1; i < t->target_count; i++) {
            if (past) dti_stream((char *)t->targets[i] + to, chunk, size);
            else memcpy((char *)t->targets[i] + to, chunk, size);
        }
        for (int c = 0; c < ex->contributions; c++) from[c] += n * bytes;
    }
}

/* Where the run at w, i in its row, begins in the source of another copy to the same places. */
static int64_t from_at(const dti_copy *c, const walk *w, int64_t i)
{
    int64_t from = c->from;
    for (int d = 0; d < c->dims - 1; d++) from += w->at[d] * c->from_stride[d];
    return c->dims > 0 ? from + i * c->from_stride[c->dims - 1] : from;
}

/* The copies i of every contribution at once. */
static void combine_aligned(const taking *t, int i, const char **from)
{
    walk w;
    const dti_exchange *ex = t->ex;
    int each = ex->get_count / ex->contributions;
    int64_t bytes = (int64_t)dt_dtype_bytes(ex->dtype), to_bytes = (int64_t)dt_dtype_bytes(ex->target_dtype);
    row r = row_of(&ex->gets[i]);
    if (!walk_begin(&w, &ex->gets[i])) return;
    do
        for (int64_t k = 0; k < r.count; k++) {
            for (int c = 0; c < ex->contributions; c++) {
                const dti_copy *get = &ex->gets[c * each + i];
                from[c] = t->sources[get->member] + from_at(get, &w, k) * bytes;
            }
            combine_run(t, from, (w.to + k * r.to_stride) * to_bytes, ex->gets[i].run);
        }
    while (walk_next(&w));
}

static bool take_aligned(const taking *t)
{
    const dti_exchange *ex = t->ex;
    const char **from = scratch_take(t->scratch, (size_t)ex->contributions * sizeof *from);
    for (int i = 0; from && i < ex->get_count / ex->contributions; i++) combine_aligned(t, i, from);
    return from != NULL;
}

/* ---- combinations in a temporary --------------------------------------------------------------------------------- */

typedef struct part { int64_t lo, hi; } part; /* of the target, that is written to                                 */

static part part_of(const dti_exchange *ex)
{
    part p = { INT64_MAX, INT64_MIN };
    for (int i = 0; i < ex->get_count; i++) {
        const dti_copy *c = &ex->gets[i];
        int64_t lo = c->to, hi = c->to + c->run;
        bool empty = c->run <= 0;
        for (int d = 0; d < c->dims; d++) {
            int64_t reach = (c->count[d] - 1) * c->to_stride[d];
            if (reach < 0) lo += reach;
            else hi += reach;
            empty |= c->count[d] <= 0;
        }
        if (!empty && lo < p.lo) p.lo = lo;
        if (!empty && hi > p.hi) p.hi = hi;
    }
    return p;
}

typedef struct sum { char *numbers; dt_dtype dtype; int64_t lo; } sum; /* element i of the target is at i - lo      */

static void accumulate(const dti_exchange *ex, const dti_copy *c, const char *source, const sum *s)
{
    walk w;
    int64_t bytes = (int64_t)dt_dtype_bytes(ex->dtype), wide = (int64_t)dt_dtype_bytes(s->dtype);
    row r = row_of(c);
    if (!walk_begin(&w, c)) return;
    do
        for (int64_t k = 0; k < r.count; k++)
            dti_numbers_accumulate(ex->combine, c->contribution == 0, ex->dtype,
                                   source + (w.from + k * r.from_stride) * bytes,
                                   s->numbers + (w.to + k * r.to_stride - s->lo) * wide, c->run);
    while (walk_next(&w));
}

/* What the first contribution wrote is all there is. */
static void convert(const taking *t, const dti_copy *c, const sum *s)
{
    walk w;
    const dti_exchange *ex = t->ex;
    int64_t to_bytes = (int64_t)dt_dtype_bytes(ex->target_dtype), wide = (int64_t)dt_dtype_bytes(s->dtype);
    row r = row_of(c);
    if (!walk_begin(&w, c)) return;
    do
        for (int64_t k = 0; k < r.count; k++) {
            int64_t to = w.to + k * r.to_stride;
            char *first = (char *)t->targets[0] + to * to_bytes;
            finish_numbers(ex, s->dtype, s->numbers + (to - s->lo) * wide, c->run, first);
            for (int i = 1; i < t->target_count; i++)
                memcpy((char *)t->targets[i] + to * to_bytes, first, (size_t)(c->run * to_bytes));
        }
    while (walk_next(&w));
}

static bool take_in_turn(const taking *t)
{
    const dti_exchange *ex = t->ex;
    part p = part_of(ex);
    if (p.lo >= p.hi) return true;
    sum s = { .dtype = dti_sum_dtype(ex->dtype), .lo = p.lo };
    s.numbers = scratch_take(t->scratch, (size_t)(p.hi - p.lo) * dt_dtype_bytes(s.dtype));
    if (!s.numbers) return false;
    for (int i = 0; i < ex->get_count; i++) accumulate(ex, &ex->gets[i], t->sources[ex->gets[i].member], &s);
    for (int i = 0; i < ex->get_count && ex->gets[i].contribution == 0; i++) convert(t, &ex->gets[i], &s);
    return true;
}

/* To each target. */
static size_t bytes_written(const dti_exchange *ex)
{
    int64_t elements = 0;
    for (int i = 0; i < ex->get_count && (ex->contributions == 0 || ex->gets[i].contribution == 0); i++) {
        int64_t n = ex->gets[i].run;
        for (int d = 0; d < ex->gets[i].dims; d++) n *= ex->gets[i].count[d];
        elements += n;
    }
    return (size_t)elements * dt_dtype_bytes(ex->target_dtype);
}

bool dti_take(const dti_exchange *ex, const char *const *sources, void *const *targets, int n, dti_caches caches,
              dti_scratch *scratch)
{
    bool done = true;
    if (!targets[0] || ex->get_count == 0) return true;
    size_t bytes = bytes_written(ex) * (size_t)n;
    dti_reach reach = bytes > caches.far ? DTI_PAST : bytes > caches.near ? DTI_FAR : DTI_NEAR;
    taking t = { ex, sources, targets, n, reach, scratch };
    if (ex->contributions == 0) take_copies(&t);
    else if (is_aligned(ex)) done = take_aligned(&t);
    else done = take_in_turn(&t);
    if (reach == DTI_PAST) dti_stream_end();
    return done;
}
