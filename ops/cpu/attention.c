/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention: keys come block by block, and each row keeps the largest score so far, the sum of exp of the others
 * beside it, and the sum of values by these. So no matrix of scores is made, and memory grows with the sequence, not
 * with its square. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/kernels.h"

typedef struct room {
    void *keys, *values;               /* of a group: [t, d], and blocks                                           */
    void *q, *out;                     /* strips of d                                                              */
    void *scores, *mask, *more, *less, *line; /* of a strip                                                        */
    void *max, *sum;                   /* of each row                                                              */
    bool finite;                       /* are the values, and so 0 times one of them?                              */
} room;

/* What values by exp of scores add. A value that is not seen adds nothing, whatever it is. */
static void combine(const dti_heads *h, const room *m, const dti_strip *s, int64_t first, void *out)
{
    const void *values = dti_heads_at(h, m->values, first * h->d);
    h->steps->product(values, DTI_ATTEND_KEYS, h->d, s->scores, s->n, m->more);
    for (int64_t i = 0; i < DTI_LANES && s->seen && !m->finite; i++) {
        dti_strip one = *s;
        int64_t seen[DTI_LANES] = { 0 };
        seen[i] = s->seen[i];
        one.seen = seen;
        h->steps->product(values, DTI_ATTEND_KEYS, h->d, s->scores, seen[i], m->more);
        h->steps->blend(&one, m->more, h->d, out);
    }
    if (!s->seen || m->finite) h->steps->blend(s, m->more, h->d, out);
}

static void attend(const dti_heads *h, const room *m, int64_t row, int64_t rows, int64_t strip, int64_t first,
                   int64_t n)
{
    int64_t seen[DTI_LANES], lane = strip * DTI_LANES;
    dti_sight sight = dti_heads_see(h, row, rows, first, n, seen);
    if (sight == DTI_SEES_NONE) return;
    dti_strip s = { .n = n, .seen = sight == DTI_SEES_SOME ? seen : NULL, .mask = h->mask ? m->mask : NULL,
                    .scores = m->scores, .less = m->less, .max = dti_heads_at(h, m->max, lane),
                    .sum = dti_heads_at(h, m->sum, lane) };
    h->steps->product(dti_heads_at(h, m->keys, first * h->d), h->d, n, dti_heads_at(h, m->q, lane * h->d), h->d,
                      m->scores);
    if (h->mask) dti_heads_mask(h, row, rows, first, n, m->line, m->mask);
    h->steps->soften(&s);
    combine(h, m, &s, first, dti_heads_at(h, m->out, lane * h->d));
}

static void begin_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                       int64_t n)
{
    dti_heads_strips(h, &call->in[0], b, g, row, n, h->scale, m->line, m->q);
    memset(m->out, 0, (size_t)(DTI_ATTEND_ROWS * h->d) * h->steps->bytes);
    dti_numbers_fill(h->steps->dtype, -INFINITY, m->max, DTI_ATTEND_ROWS);
    dti_numbers_fill(h->steps->dtype, 0, m->sum, DTI_ATTEND_ROWS);
}

static void end_row(const dti_heads *h, const dt_call *call, const room *m, int64_t index, int64_t i)
{
    const dt_part *lse = &call->out[1];
    double max = dti_number_get(h->steps->dtype, dti_heads_at(h, m->max, i));
    double sum = dti_number_get(h->steps->dtype, dti_heads_at(h, m->sum, i));
    int64_t lane = i % DTI_LANES;
    h->steps->collect(dti_heads_at(h, m->out, (i - lane) * h->d + lane), DTI_LANES, h->d, 1,
                      max == -INFINITY ? 1 : sum, m->line);
    dti_heads_put(h, m->line, &call->out[0], index * h->d, h->d);
    dti_number_set(lse->dtype, max == -INFINITY ? max : max + log(sum),
                   (char *)lse->data + index * (int64_t)dt_dtype_bytes(lse->dtype));
}

static void run_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                     int64_t n)
{
    begin_rows(h, call, m, b, g, row, n);
    for (int64_t first = 0; first < h->t; first += DTI_ATTEND_KEYS) {
        int64_t keys = h->t - first < DTI_ATTEND_KEYS ? h->t - first : DTI_ATTEND_KEYS;
        if (dti_heads_seen(h, row + n - 1, first, keys) == 0) break;
        for (int64_t i = 0; i < n; i += DTI_LANES)
            attend(h, m, row + i, n - i < DTI_LANES ? n - i : DTI_LANES, i / DTI_LANES, first, keys);
    }
    for (int64_t i = 0; i < n; i++) end_row(h, call, m, dti_heads_row(h, b, g, row + i), i);
}

static void run_group(const dti_heads *h, const dt_call *call, room *m, int64_t b, int64_t g)
{
    dti_heads_keys(h, &call->in[1], b, g, m->keys);
    dti_heads_blocks(h, &call->in[2], b, g, m->line, m->values);
    m->finite = h->steps->is_finite(m->values, h->blocks * DTI_ATTEND_KEYS * h->d);
    for (int64_t row = 0; row < h->rows; row += DTI_ATTEND_ROWS)
        run_rows(h, call, m, b, g, row, h->rows - row < DTI_ATTEND_ROWS ? h->rows - row : DTI_ATTEND_ROWS);
}

static void *make_room(const dti_heads *h, room *m)
{
    int64_t line = h->d > DTI_ATTEND_KEYS ? h->d : DTI_ATTEND_KEYS;
    dti_heads_array arrays[] = {
        { &m->keys, h->t * h->d }, { &m->values, h->blocks * DTI_ATTEND_KEYS * h->d },
        { &m->q, DTI_ATTEND_ROWS * h->d }, { &m->out, DTI_ATTEND_ROWS * h->d },
        { &m->scores, DTI_ATTEND_KEYS * DTI_LANES }, { &m->mask, DTI_ATTEND_KEYS * DTI_LANES },
        { &m->more, DTI_LANES * h->d }, { &m->less, DTI_LANES }, { &m->line, line },
        { &m->max, DTI_ATTEND_ROWS }, { &m->sum, DTI_ATTEND_ROWS },
    };
    void *all = dti_heads_room(h, arrays, DT_COUNT(arrays));
    if (all) memset(m->values, 0, (size_t)(h->blocks * DTI_ATTEND_KEYS * h->d) * h->steps->bytes);
    return all;
}

dt_status dti_cpu_attention(const dt_call *call)
{
    dti_heads h;
    room m;
    if (!dti_heads_begin(call, 3, &h)) return dt_context_status(call->ctx);
    void *all = make_room(&h, &m);
    if (!all) dt_context_fail(call->ctx, DT_ERR_MEMORY, "attention: no memory for its blocks");
    for (int64_t i = 0; i < h.b * h.groups && all; i++) run_group(&h, call, &m, i / h.groups, i % h.groups);
    free(all);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
