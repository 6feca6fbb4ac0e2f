/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and keys in and out, and who sees what. */
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/room.h"
#include "placements/spec.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static bool find_limits(dt_context *ctx, const dt_part *q, bool causal, dti_heads *h)
{
    int64_t n = 0;
    dti_set held;
    dti_set_init(&held);
    dti_spec_set(q->spec, 1, q->rank, &held);
    h->limit = held.lost ? NULL : dti_room_take(ctx, (size_t)(h->s + 1) * sizeof *h->limit);
    for (int i = 0; i < held.n && h->limit; i++)
        for (int64_t s = dti_set_at(&held)[i].lo; s < dti_set_at(&held)[i].hi && n < h->s; s++)
            h->limit[n++] = causal ? s + 1 : INT64_MAX;
    dti_set_fini(&held);
    return h->limit != NULL;
}

bool dti_heads_begin(const dt_call *call, int mask, dti_heads *h)
{
    const dt_part *q = &call->in[0], *k = &call->in[1];
    const dti_attention *a = call->attributes;
    *h = (dti_heads){ .b = q->shape.dim[0], .s = q->shape.dim[1], .t = k->shape.dim[1], .groups = k->shape.dim[2],
                      .d = q->shape.dim[3] };
    h->steps = dti_sum_dtype(q->dtype) == DT_F64 ? &dti_attend_f64 : &dti_attend_f32;
    h->per_group = h->groups ? q->shape.dim[2] / h->groups : 0;
    h->rows = h->s * h->per_group;
    h->blocks = (h->t + DTI_ATTEND_KEYS - 1) / DTI_ATTEND_KEYS;
    h->scale = a->scale != 0 ? a->scale : 1 / sqrt((double)h->d);
    h->mask = mask < call->in_count && call->in[mask].spec ? &call->in[mask] : NULL;
    if (find_limits(call->ctx, q, a->causal, h)) return true;
    dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for %lld positions", call->op->head, (long long)h->s);
    return false;
}

void dti_heads_end(dti_heads *h) { dti_room_give(h->limit); }

/* ---- room -------------------------------------------------------------------------------------------------------- */

dti_storage *dti_heads_room(dt_context *ctx, const dti_heads *h, const dti_heads_array *arrays, int count)
{
    size_t lanes = DTI_LANES * h->steps->bytes, all = 1;
    for (int i = 0; i < count; i++) all += dti_blocks(arrays[i].n) * lanes;
    dti_storage *room = dti_storage_new(ctx, all);
    char *at = room ? room->bytes : NULL;
    for (int i = 0; i < count && room; i++) {
        *arrays[i].to = at;
        at += dti_blocks(arrays[i].n) * lanes;
    }
    return room;
}

void *dti_heads_at(const dti_heads *h, const void *array, int64_t at)
{
    return (char *)(uintptr_t)array + at * (int64_t)h->steps->bytes;
}

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static char *element(const dt_part *x, int64_t at) { return (char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype); }

int64_t dti_heads_row(const dti_heads *h, int64_t b, int64_t g, int64_t row)
{
    int64_t s = row / h->per_group, r = row % h->per_group;
    return (b * h->s + s) * h->groups * h->per_group + g * h->per_group + r;
}

int64_t dti_heads_key(const dti_heads *h, int64_t b, int64_t g, int64_t key)
{
    return (b * h->t + key) * h->groups + g;
}

void dti_heads_get(const dti_heads *h, const dt_part *x, int64_t at, int64_t n, void *to)
{
    dti_numbers_convert(x->dtype, element(x, at), h->steps->dtype, to, n);
}

void dti_heads_put(const dti_heads *h, const void *from, const dt_part *x, int64_t at, int64_t n)
{
    dti_numbers_convert(h->steps->dtype, from, x->dtype, element(x, at), n);
}

void dti_heads_keys(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, void *to)
{
    for (int64_t t = 0; t < h->t; t++)
        dti_heads_get(h, x, dti_heads_key(h, b, g, t) * h->d, h->d, dti_heads_at(h, to, t * h->d));
}

void dti_heads_blocks(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, void *row, void *to)
{
    for (int64_t t = 0; t < h->t; t++) {
        int64_t place = t % DTI_ATTEND_KEYS;
        dti_heads_get(h, x, dti_heads_key(h, b, g, t) * h->d, h->d, row);
        h->steps->spread(row, h->d, 1, dti_heads_at(h, to, (t - place) * h->d + place), DTI_ATTEND_KEYS);
    }
}

void dti_heads_strips(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double by,
                      void *row, void *to)
{
    memset(to, 0, (size_t)(h->d * (int64_t)dti_blocks(n) * DTI_LANES) * h->steps->bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t lane = i % DTI_LANES;
        dti_heads_get(h, x, dti_heads_row(h, b, g, first + i) * h->d, h->d, row);
        h->steps->spread(row, h->d, by, dti_heads_at(h, to, (i - lane) * h->d + lane), DTI_LANES);
    }
}

/* ---- who sees what ----------------------------------------------------------------------------------------------- */

int64_t dti_heads_seen(const dti_heads *h, int64_t row, int64_t first, int64_t n)
{
    int64_t limit = h->limit[row / h->per_group];
    return limit <= first ? 0 : limit - first < n ? limit - first : n;
}

dti_sight dti_heads_see(const dti_heads *h, int64_t row, int64_t rows, int64_t first, int64_t n,
                        int64_t seen[DTI_LANES])
{
    if (dti_heads_seen(h, row, first, n) == n) return DTI_SEES_ALL;
    if (dti_heads_seen(h, row + rows - 1, first, n) == 0) return DTI_SEES_NONE;
    for (int64_t i = 0; i < DTI_LANES; i++) seen[i] = i < rows ? dti_heads_seen(h, row + i, first, n) : n;
    return DTI_SEES_SOME;
}

void dti_heads_mask(const dti_heads *h, int64_t row, int64_t rows, int64_t first, int64_t n, void *line, void *to)
{
    if (rows < DTI_LANES) memset(to, 0, (size_t)(n * DTI_LANES) * h->steps->bytes);
    for (int64_t i = 0; i < rows; i++) {
        dti_heads_get(h, h->mask, (row + i) / h->per_group * h->t + first, n, line);
        h->steps->spread(line, n, 1, dti_heads_at(h, to, i), DTI_LANES);
    }
}
