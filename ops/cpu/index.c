/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements picked by their numbers in the whole tensor. A number that this rank does not hold gives, or takes, nothing:
 * -0, which changes no sum. A number that the whole tensor does not have is an error, before anything is written. */
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/room.h"
#include "placements/spec.h"

/* x as [outer, size, inner] around a dim, of which this rank holds some numbers. */
typedef struct picking {
    int64_t outer, size, inner;        /* of this rank's part                                                      */
    int64_t whole;                     /* numbers of the whole tensor                                              */
    int64_t count;                     /* ids                                                                      */
    int64_t *ids;                      /* where each lies in this rank's part; -1: nowhere                         */
} picking;

static int64_t product(const dt_shape *shape, int first, int last)
{
    int64_t n = 1;
    for (int d = first; d < last; d++) n *= shape->dim[d];
    return n;
}

static bool is_there(const dt_call *call, const picking *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        if (p->ids[i] >= 0 && p->ids[i] < p->whole) continue;
        if (p->whole == 0)
            dt_context_fail(call->ctx, DT_ERR_ARG, "%s: expected no ids, of a size of 0, got %lld", call->op->head,
                            (long long)p->ids[i]);
        else
            dt_context_fail(call->ctx, DT_ERR_ARG, "%s: expected ids in 0 .. %lld, got %lld", call->op->head,
                            (long long)p->whole - 1, (long long)p->ids[i]);
        return false;
    }
    return true;
}

/* *x* is the part that is picked from, or scattered to, along dim. false and the error: a number out of range. */
static bool begin(const dt_call *call, const dt_part *x, int dim, const dt_part *ids, picking *p)
{
    dti_set held;
    *p = (picking){ .outer = product(&x->shape, 0, dim), .size = x->shape.dim[dim],
                    .inner = product(&x->shape, dim + 1, x->shape.n), .whole = dt_spec_shape(x->spec).dim[dim],
                    .count = product(&ids->shape, 0, ids->shape.n) };
    p->ids = dti_room_take(call->ctx, (size_t)p->count * sizeof *p->ids);
    if (!p->ids) return dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for ids", call->op->head), false;
    dti_numbers_convert(ids->dtype, ids->data, DT_I64, p->ids, p->count);
    if (!is_there(call, p)) {
        dti_room_give(p->ids);
        return false;
    }
    dti_set_init(&held);
    dti_spec_set(x->spec, dim, x->rank, &held);
    for (int64_t i = 0; i < p->count; i++) p->ids[i] = dti_set_find(&held, p->ids[i]);
    dti_set_fini(&held);
    return true;
}

static void nothing(dt_dtype dtype, char *to, int64_t n) { dti_numbers_identity(dtype, DTI_COMBINE_SUM, to, n); }

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static dt_status select_along(const dt_call *call, int dim)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    int64_t bytes = (int64_t)dt_dtype_bytes(x->dtype);
    picking p;
    if (!begin(call, x, dim, &call->in[1], &p)) return dt_context_status(call->ctx);
    int64_t slice = p.inner * bytes;
    for (int64_t o = 0; o < p.outer && y->data; o++)
        for (int64_t i = 0; i < p.count; i++) {
            char *to = (char *)y->data + (o * p.count + i) * slice;
            if (p.ids[i] < 0) nothing(y->dtype, to, p.inner);
            else memcpy(to, (const char *)x->data + (o * p.size + p.ids[i]) * slice, (size_t)slice);
        }
    dti_room_give(p.ids);
    return DT_OK;
}

dt_status dti_cpu_embedding(const dt_call *call) { return select_along(call, 0); }

dt_status dti_cpu_index_select(const dt_call *call)
{
    return select_along(call, ((const dti_along *)call->attributes)->dim);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Where in a part element i of the ids lies, whose dims are the part's but for the one picked along; -1: nowhere. */
static int64_t element_of(const picking *p, int64_t i)
{
    int64_t along = p->count / (p->outer * p->inner), o = i / (along * p->inner);
    return p->ids[i] < 0 ? -1 : (o * p->size + p->ids[i]) * p->inner + i % p->inner;
}

dt_status dti_cpu_gather(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    int64_t bytes = (int64_t)dt_dtype_bytes(x->dtype);
    picking p;
    if (!begin(call, x, ((const dti_along *)call->attributes)->dim, &call->in[1], &p))
        return dt_context_status(call->ctx);
    for (int64_t i = 0; i < p.count; i++) {
        int64_t from = element_of(&p, i);
        char *to = (char *)y->data + i * bytes;
        if (from < 0) nothing(y->dtype, to, 1);
        else memcpy(to, (const char *)x->data + from * bytes, (size_t)bytes);
    }
    dti_room_give(p.ids);
    return DT_OK;
}

/* Summed in the order of ids, in the dtype that sums. */
static void add_all(const dt_call *call, const picking *p, char *sums)
{
    const dt_part *x = &call->in[0], *y = &call->in[2];
    int64_t n = p->outer * p->size * p->inner;
    size_t bytes = dt_dtype_bytes(y->dtype), wide = dt_dtype_bytes(dti_sum_dtype(y->dtype));
    dti_numbers_convert(x->dtype, x->data, dti_sum_dtype(x->dtype), sums, n);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t to = element_of(p, i);
        if (to < 0) continue;
        dti_numbers_accumulate(DTI_COMBINE_SUM, false, y->dtype, (const char *)y->data + (size_t)i * bytes,
                               sums + (size_t)to * wide, 1);
    }
    dti_numbers_convert(dti_sum_dtype(x->dtype), sums, x->dtype, call->out[0].data, n);
}

/* Slices likewise. */
static void add_slices(const dt_call *call, const picking *p, char *sums)
{
    const dt_part *x = &call->in[0], *y = &call->in[2];
    int64_t n = p->outer * p->size * p->inner;
    size_t bytes = dt_dtype_bytes(y->dtype), wide = dt_dtype_bytes(dti_sum_dtype(y->dtype));
    dti_numbers_convert(x->dtype, x->data, dti_sum_dtype(x->dtype), sums, n);
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->count; i++) {
            if (p->ids[i] < 0) continue;
            const char *from = (const char *)y->data + (size_t)((o * p->count + i) * p->inner) * bytes;
            char *to = sums + (size_t)((o * p->size + p->ids[i]) * p->inner) * wide;
            dti_numbers_accumulate(DTI_COMBINE_SUM, false, y->dtype, from, to, p->inner);
        }
    dti_numbers_convert(dti_sum_dtype(x->dtype), sums, x->dtype, call->out[0].data, n);
}

static dt_status add_by(const dt_call *call, void (*add)(const dt_call *, const picking *, char *))
{
    const dt_part *x = &call->in[0];
    picking p;
    if (!begin(call, x, ((const dti_along *)call->attributes)->dim, &call->in[1], &p))
        return dt_context_status(call->ctx);
    int64_t n = p.outer * p.size * p.inner;
    char *sums = dti_room_take(call->ctx, (size_t)n * dt_dtype_bytes(dti_sum_dtype(x->dtype)));
    if (sums && n) add(call, &p, sums);
    if (!sums) dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for its sums", call->op->head);
    dti_room_give(sums);
    dti_room_give(p.ids);
    return dt_context_status(call->ctx);
}

dt_status dti_cpu_scatter_add(const dt_call *call) { return add_by(call, add_all); }
dt_status dti_cpu_index_add(const dt_call *call) { return add_by(call, add_slices); }

/* ---- one_hot ----------------------------------------------------------------------------------------------------- */

dt_status dti_cpu_one_hot(const dt_call *call)
{
    const dt_part *y = &call->out[0];
    int64_t bytes = (int64_t)dt_dtype_bytes(y->dtype);
    picking p;
    if (!begin(call, y, y->shape.n - 1, &call->in[0], &p)) return dt_context_status(call->ctx);
    dti_numbers_fill(y->dtype, 0, y->data, p.count * p.size);
    for (int64_t i = 0; i < p.count; i++)
        if (p.ids[i] >= 0) dti_number_set(y->dtype, 1, (char *)y->data + (i * p.size + p.ids[i]) * bytes);
    dti_room_give(p.ids);
    return DT_OK;
}
