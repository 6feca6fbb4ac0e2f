/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies along one dim, part by part of an index map, and the fill between them. An array is outer times the dim times
 * inner; what follows each other on both sides is one run. */
#include <string.h>

#include "core/number.h"
#include "ops/cpu/kernels.h"

typedef struct span { int64_t outer, size, inner; } span;              /* inner: bytes                             */

/* A tensor that lacks the dim has one element there. */
static span span_of(const dt_part *part, int dim, int dims)
{
    bool lacks = part->shape.n < dims;
    span s = { 1, lacks ? 1 : part->shape.dim[dim], (int64_t)dt_dtype_bytes(part->dtype) };
    for (int d = 0; d < dim; d++) s.outer *= part->shape.dim[d];
    for (int d = lacks ? dim : dim + 1; d < part->shape.n; d++) s.inner *= part->shape.dim[d];
    return s;
}

/* n runs of some bytes; the next ones lie so many bytes on. */
static void copy_runs(char *to, int64_t to_next, const char *from, int64_t from_next, int64_t n, int64_t run)
{
    switch (run) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i * to_next] = from[i * from_next];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_next, from + i * from_next, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_next, from + i * from_next, 4);
        break;
    case 8:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_next, from + i * from_next, 8);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_next, from + i * from_next, (size_t)run);
        break;
    }
}

enum { FEW = 4 };                      /* of a row: column by column is less work                                  */

static void copy_part(const dt_call *call, const dt_index_part *part, int dims)
{
    const dt_part *x = &call->in[part->operand], *y = &call->out[part->result];
    span from = span_of(x, call->map->dim, dims), to = span_of(y, call->map->dim, dims);
    int64_t n = part->hi - part->lo, from_row = from.size * from.inner, to_row = to.size * to.inner;
    int64_t step = n > 1 ? part->step * from.inner : 0; /* that of one may be anything                              */
    if (n == 0 || to.outer * to.inner == 0) return;
    const char *source = (const char *)x->data + part->from * from.inner;
    char *target = (char *)y->data + part->lo * to.inner;
    if (part->step == 1) copy_runs(target, to_row, source, from_row, to.outer, n * to.inner);
    else if (n < FEW)
        for (int64_t i = 0; i < n; i++)
            copy_runs(target + i * to.inner, to_row, source + i * step, from_row, to.outer, to.inner);
    else
        for (int64_t o = 0; o < to.outer; o++)
            copy_runs(target + o * to_row, to.inner, source + o * from_row, step, n, to.inner);
}

/* Indices lo .. hi - 1 of a result: the first row of them, then its copies. */
static void fill(const dt_call *call, const dt_part *y, int64_t lo, int64_t hi, int dims)
{
    span to = span_of(y, call->map->dim, dims);
    int64_t row = to.size * to.inner, run = (hi - lo) * to.inner;
    if (run <= 0 || to.outer == 0) return;
    char *first = (char *)y->data + lo * to.inner;
    dti_numbers_fill(y->dtype, call->fill, first, run / (int64_t)dt_dtype_bytes(y->dtype));
    copy_runs(first + row, row, first, 0, to.outer - 1, run);
}

static int most_dims(const dt_call *call)
{
    return call->in[0].shape.n > call->out[0].shape.n ? call->in[0].shape.n : call->out[0].shape.n;
}

dt_status dti_cpu_move(const dt_call *call)
{
    const dt_index_map *map = call->map;
    int dims = most_dims(call);
    int64_t at[DT_MAX_RESULTS] = { 0 };                                /* up to which index results are written    */
    for (int i = 0; i < map->part_count; i++) {
        const dt_index_part *part = &map->part[i];
        fill(call, &call->out[part->result], at[part->result], part->lo, dims);
        copy_part(call, part, dims);
        at[part->result] = part->hi;
    }
    for (int r = 0; r < call->out_count; r++) {
        const dt_part *y = &call->out[r];
        fill(call, y, at[r], y->shape.n < dims ? 1 : y->shape.dim[map->dim], dims);
    }
    return DT_OK;
}
