/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows along a dim in order. An element is a key, an unsigned number that is in the order asked for, beside the number
 * that it has along the dim: so no two are alike, and the order is the same wherever they come from. */
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/room.h"

/* What is no element: a place that was not filled, in a row of candidates. */
enum { NONE = -1 };

typedef struct entry { uint64_t key; int64_t number, at; } entry;

typedef struct ordering {
    const dt_call *call;
    int64_t outer, n, inner, kept;     /* rows are n long, and kept of them are a result                           */
    bool down;                         /* the largest first                                                        */
    size_t bytes;
    char *raw;                         /* of one row: elements, the same as i64 or f64, numbers                    */
    int64_t *wide, *numbers;
    entry *entries;
} ordering;

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static uint64_t key_of_float(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    if (x != x) return UINT64_MAX;                                     /* the largest                              */
    if (x == 0) bits = 0;                                              /* of either sign                           */
    return bits < 0 ? ~(uint64_t)bits : (uint64_t)bits | UINT64_C(1) << 63;
}

static uint64_t key_of_integer(int64_t x) { return (uint64_t)x ^ UINT64_C(1) << 63; }

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

/* Elements at, at + step .. of an array as one behind the other. */
static void gather(const void *from, int64_t at, int64_t step, int64_t n, size_t bytes, void *to)
{
    if (n == 0) return;                                                /* there may be no array                    */
    const char *x = (const char *)from + (size_t)at * bytes;
    char *y = to;
    if (step == 1) memcpy(y, x, (size_t)n * bytes);
    else
        for (int64_t i = 0; i < n; i++) memcpy(y + (size_t)i * bytes, x + (size_t)(i * step) * bytes, bytes);
}

/* Numbers come by a second operand, of the dim alone or of every element; else they count. */
static void read_numbers(ordering *o, int64_t at)
{
    const dt_part *numbers = &o->call->in[1];
    if (o->call->in_count < 2)
        for (int64_t i = 0; i < o->n; i++) o->numbers[i] = i;
    else if (numbers->shape.n == 1) dti_numbers_convert(numbers->dtype, numbers->data, DT_I64, o->numbers, o->n);
    else {
        gather(numbers->data, at, o->inner, o->n, dt_dtype_bytes(numbers->dtype), o->raw);
        dti_numbers_convert(numbers->dtype, o->raw, DT_I64, o->numbers, o->n);
    }
}

/* How many there are. */
static int64_t read(ordering *o, int64_t at)
{
    const dt_part *x = &o->call->in[0];
    bool floats = x->dtype <= DT_F16;
    int64_t count = 0;
    read_numbers(o, at);
    gather(x->data, at, o->inner, o->n, o->bytes, o->raw);
    dti_numbers_convert(x->dtype, o->raw, floats ? DT_F64 : DT_I64, o->wide, o->n);
    for (int64_t i = 0; i < o->n; i++) {
        uint64_t key = floats ? key_of_float(o->wide[i]) : key_of_integer(o->wide[i]);
        if (o->numbers[i] != NONE) o->entries[count++] = (entry){ o->down ? ~key : key, o->numbers[i], i };
    }
    return count;
}

static void write(const ordering *o, int64_t count, int64_t at)
{
    const dt_part *y = &o->call->out[0], *ids = &o->call->out[1];
    for (int64_t i = 0; i < o->kept; i++) {
        const entry *e = &o->entries[i];
        char *to = (char *)y->data + (size_t)(at + i * o->inner) * o->bytes;
        if (i < count) memcpy(to, o->raw + (size_t)e->at * o->bytes, o->bytes);
        else memset(to, 0, o->bytes);
        ((int64_t *)ids->data)[at + i * o->inner] = i < count ? e->number : NONE;
    }
}

/* ---- the first of a row ------------------------------------------------------------------------------------------ */

/* The last of the kept ones is on top of a heap. */
static void sink(entry *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t last = i, left = 2 * i + 1;
        if (left < n && compare(&heap[left], &heap[last]) > 0) last = left;
        if (left + 1 < n && compare(&heap[left + 1], &heap[last]) > 0) last = left + 1;
        if (last == i) return;
        entry kept = heap[i];
        heap[i] = heap[last];
        heap[last] = kept;
        i = last;
    }
}

/* The first k of n to the front, in any order. */
static void select_first(entry *e, int64_t n, int64_t k)
{
    if (k == 0 || k >= n) return;
    for (int64_t i = k / 2; i-- > 0;) sink(e, k, i);
    for (int64_t i = k; i < n; i++) {
        if (compare(&e[i], &e[0]) > 0) continue;
        e[0] = e[i];
        sink(e, k, 0);
    }
}

/* ---- all rows ---------------------------------------------------------------------------------------------------- */

static void run_row(ordering *o, int64_t outer, int64_t inner)
{
    int64_t count = read(o, outer * o->n * o->inner + inner), kept = count < o->kept ? count : o->kept;
    select_first(o->entries, count, kept);
    qsort(o->entries, (size_t)kept, sizeof *o->entries, compare);
    write(o, count, outer * o->kept * o->inner + inner);
}

static bool take_room(ordering *o)
{
    size_t n = (size_t)o->n + 1;
    o->raw = dti_room_take(o->call->ctx, n * 8);
    o->wide = dti_room_take(o->call->ctx, n * sizeof *o->wide);
    o->numbers = dti_room_take(o->call->ctx, n * sizeof *o->numbers);
    o->entries = dti_room_take(o->call->ctx, n * sizeof *o->entries);
    return o->raw && o->wide && o->numbers && o->entries;
}

static dt_status order(const dt_call *call, int dim, bool down)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    ordering o = { .call = call, .outer = 1, .n = x->shape.dim[dim], .inner = 1, .kept = y->shape.dim[dim],
                   .down = down, .bytes = dt_dtype_bytes(x->dtype) };
    for (int d = 0; d < dim; d++) o.outer *= x->shape.dim[d];
    for (int d = dim + 1; d < x->shape.n; d++) o.inner *= x->shape.dim[d];
    bool room = take_room(&o);
    for (int64_t i = 0; i < o.outer * o.inner && room && y->data; i++) run_row(&o, i / o.inner, i % o.inner);
    if (!room)
        dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for %lld elements", call->op->head, (long long)o.n);
    dti_room_give(o.raw);
    dti_room_give(o.wide);
    dti_room_give(o.numbers);
    dti_room_give(o.entries);
    return dt_context_status(call->ctx);
}

dt_status dti_cpu_sort(const dt_call *call)
{
    const dti_sort *how = call->attributes;
    return order(call, how->dim, how->descending);
}

dt_status dti_cpu_topk(const dt_call *call)
{
    const dti_topk *how = call->attributes;
    return order(call, how->dim, how->largest);
}
