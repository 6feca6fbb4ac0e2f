/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of rows and keys in and out, and the products of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/vector.h"
#include "placements/spec.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static bool find_positions(const dt_part *q, dti_heads *h)
{
    int64_t n = 0;
    dti_set held;
    dti_set_init(&held);
    dti_spec_set(q->spec, 1, q->rank, &held);
    h->position = held.lost ? NULL : malloc((size_t)(h->s + 1) * sizeof *h->position);
    for (int i = 0; i < held.n && h->position; i++)
        for (int64_t s = dti_set_at(&held)[i].lo; s < dti_set_at(&held)[i].hi && n < h->s; s++) h->position[n++] = s;
    dti_set_fini(&held);
    return h->position != NULL;
}

bool dti_heads_begin(const dt_call *call, int mask, dti_heads *h)
{
    const dt_part *q = &call->in[0], *k = &call->in[1];
    const dti_attention *a = call->attributes;
    *h = (dti_heads){ .b = q->shape.dim[0], .s = q->shape.dim[1], .t = k->shape.dim[1], .groups = k->shape.dim[2],
                      .d = q->shape.dim[3], .causal = a->causal };
    h->per_group = h->groups ? q->shape.dim[2] / h->groups : 0;
    h->rows = h->s * h->per_group;
    h->width = (int64_t)dti_blocks(h->d) * DTI_LANES;
    h->scale = a->scale != 0 ? a->scale : 1 / sqrt((double)h->d);
    h->mask = mask < call->in_count && call->in[mask].spec ? &call->in[mask] : NULL;
    if (find_positions(q, h)) return true;
    dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for %lld positions", call->op->head, (long long)h->s);
    return false;
}

void dti_heads_end(dti_heads *h) { free(h->position); }

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static char *element(const dt_part *x, int64_t at) { return (char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype); }

static void take(const dti_heads *h, const dt_part *x, int64_t index, double *to)
{
    dti_numbers_convert(x->dtype, element(x, index * h->d), DT_F64, to, h->d);
    for (int64_t i = h->d; i < h->width; i++) to[i] = 0;
}

int64_t dti_heads_index(const dti_heads *h, int64_t b, int64_t g, int64_t row)
{
    int64_t s = row / h->per_group, r = row % h->per_group;
    return (b * h->s + s) * h->groups * h->per_group + g * h->per_group + r;
}

void dti_heads_rows(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++) take(h, x, dti_heads_index(h, b, g, first + i), to + i * h->width);
}

void dti_heads_put_row(const dti_heads *h, const double *from, const dt_part *x, int64_t b, int64_t g, int64_t row)
{
    dti_numbers_convert(DT_F64, from, x->dtype, element(x, dti_heads_index(h, b, g, row) * h->d), h->d);
}

void dti_heads_keys(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++) take(h, x, (b * h->t + first + i) * h->groups + g, to + i * h->width);
}

void dti_heads_put_keys(const dti_heads *h, const double *from, const dt_part *x, int64_t b, int64_t g, int64_t first,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dti_numbers_convert(DT_F64, from + i * h->width, x->dtype,
                            element(x, ((b * h->t + first + i) * h->groups + g) * h->d), h->d);
}

void dti_heads_turn(const dti_heads *h, const double *keys, int64_t n, double *to)
{
    memset(to, 0, (size_t)h->d * DTI_ATTEND * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < h->d; k++) to[k * DTI_ATTEND + i] = keys[i * h->width + k];
}

/* ---- who sees what ----------------------------------------------------------------------------------------------- */

int64_t dti_heads_seen(const dti_heads *h, int64_t row, int64_t first, int64_t n)
{
    int64_t seen = h->causal ? h->position[row / h->per_group] + 1 - first : n;
    return seen < 0 ? 0 : seen < n ? seen : n;
}

int64_t dti_heads_first_row(const dti_heads *h, int64_t key, int64_t row)
{
    while (h->causal && row < h->rows && h->position[row / h->per_group] < key) row++;
    return row;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

DTI_INLINE void combine(const double *w, int64_t n, const double *x, int64_t stride, int lanes, double *out)
{
    double sum[4 * DTI_LANES];
    for (int i = 0; i < lanes; i++) sum[i] = out[i];
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < lanes; i++) sum[i] += w[k] * x[k * stride + i];
    for (int i = 0; i < lanes; i++) out[i] = sum[i];
}

DTI_CLONES void dti_heads_combine(const double *w, int64_t n, const double *x, int64_t stride, int64_t width,
                                  double *out)
{
    int64_t at = 0;
    for (; at + 4 * DTI_LANES <= width; at += 4 * DTI_LANES) combine(w, n, x + at, stride, 4 * DTI_LANES, out + at);
    for (; at < width; at += DTI_LANES) combine(w, n, x + at, stride, DTI_LANES, out + at);
}

void dti_heads_scores(const dti_heads *h, const double *q, const double *turned, int64_t row, int64_t first, int64_t n,
                      double *scores)
{
    double mask[DTI_ATTEND];
    for (int i = 0; i < DTI_ATTEND; i++) scores[i] = 0;
    dti_heads_combine(q, h->d, turned, DTI_ATTEND, DTI_ATTEND, scores);
    for (int i = 0; i < DTI_ATTEND; i++) scores[i] *= h->scale;
    if (!h->mask) return;
    dti_numbers_convert(h->mask->dtype, element(h->mask, row / h->per_group * h->t + first), DT_F64, mask, n);
    for (int64_t i = 0; i < n; i++) scores[i] += mask[i];
}
