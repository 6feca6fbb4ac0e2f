/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention: keys come block by block, and each row keeps the largest score so far, the sum of exp of the others
 * beside it, and the sum of values by these. So no matrix of scores is made, and memory grows with the sequence, not
 * with its square. */
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/kernels.h"

typedef struct room {
    void *keys, *values;               /* of a group: [t, d], and blocks                                           */
    void *q, *out;                     /* strips of d                                                              */
    void *scores, *more;               /* likewise, of keys and of d                                               */
    void *mask;                        /* of a strip                                                               */
    void *max, *sum, *less;            /* of each row                                                              */
    void *line;
    bool finite;                       /* are the values, and so 0 times one of them?                              */
} room;

/* The rows of a room meet a block of keys. */
typedef struct meeting {
    int64_t row, rows, key, keys;
    dti_sight sight[DTI_ATTEND_STRIPS];
    int64_t seen[DTI_ATTEND_ROWS];
} meeting;

enum { PANEL = DTI_ATTEND_KEYS * DTI_LANES };

static int64_t strips(const meeting *at) { return (int64_t)dti_blocks(at->rows); }

static dti_strip strip_of(const dti_heads *h, const room *m, const meeting *at, int64_t i)
{
    int64_t lane = i * DTI_LANES;
    return (dti_strip){ .n = at->keys, .seen = at->sight[i] == DTI_SEES_SOME ? at->seen + lane : NULL,
                        .mask = h->mask ? m->mask : NULL, .scores = dti_heads_at(h, m->scores, i * PANEL),
                        .less = dti_heads_at(h, m->less, lane), .max = dti_heads_at(h, m->max, lane),
                        .sum = dti_heads_at(h, m->sum, lane) };
}

/* A value that is not seen adds nothing, whatever it is. */
static void blend_apart(const dti_heads *h, const room *m, const meeting *at, int64_t i, void *out)
{
    const void *values = dti_heads_at(h, m->values, at->key * h->d);
    dti_strip s = strip_of(h, m, at, i);
    for (int64_t lane = 0; lane < DTI_LANES; lane++) {
        int64_t seen[DTI_LANES] = { 0 };
        seen[lane] = s.seen[lane];
        dti_strip one = s;
        one.seen = seen;
        h->steps->product(&(dti_panels){ values, DTI_ATTEND_KEYS, h->d, seen[lane], s.scores, m->more, 1, 0, 0 });
        h->steps->blend(&one, m->more, h->d, out);
    }
}

/* What values by exp of scores add. */
static void combine(const dti_heads *h, const room *m, const meeting *at, int64_t from)
{
    const void *values = dti_heads_at(h, m->values, at->key * h->d);
    h->steps->product(&(dti_panels){ values, DTI_ATTEND_KEYS, h->d, at->keys,
                                     dti_heads_at(h, m->scores, from * PANEL), m->more, strips(at) - from, PANEL,
                                     h->d * DTI_LANES });
    for (int64_t i = from; i < strips(at); i++) {
        dti_strip s = strip_of(h, m, at, i);
        if (m->finite || !s.seen)
            h->steps->blend(&s, dti_heads_at(h, m->more, (i - from) * h->d * DTI_LANES), h->d,
                            dti_heads_at(h, m->out, i * h->d * DTI_LANES));
    }
    for (int64_t i = from; i < strips(at) && !m->finite; i++)
        if (at->sight[i] == DTI_SEES_SOME) blend_apart(h, m, at, i, dti_heads_at(h, m->out, i * h->d * DTI_LANES));
}

static int64_t rows_of(const meeting *at, int64_t i)
{
    return at->rows - i * DTI_LANES < DTI_LANES ? at->rows - i * DTI_LANES : DTI_LANES;
}

/* Strips that see none of the keys are the first ones. */
static void attend(const dti_heads *h, const room *m, meeting *at)
{
    int64_t from = 0;
    for (int64_t i = 0; i < strips(at); i++) {
        at->sight[i] = dti_heads_see(h, at->row + i * DTI_LANES, rows_of(at, i), at->key, at->keys,
                                     at->seen + i * DTI_LANES);
        from += at->sight[i] == DTI_SEES_NONE;
    }
    h->steps->product(&(dti_panels){ dti_heads_at(h, m->keys, at->key * h->d), h->d, at->keys, h->d,
                                     dti_heads_at(h, m->q, from * h->d * DTI_LANES),
                                     dti_heads_at(h, m->scores, from * PANEL), strips(at) - from, h->d * DTI_LANES,
                                     PANEL });
    for (int64_t i = from; i < strips(at); i++) {
        dti_strip s = strip_of(h, m, at, i);
        if (h->mask)
            dti_heads_mask(h, at->row + i * DTI_LANES, rows_of(at, i), at->key, at->keys, m->line, m->mask);
        h->steps->soften(&s);
    }
    combine(h, m, at, from);
}

static void begin_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                       int64_t n)
{
    dti_heads_strips(h, &call->in[0], b, g, row, n, h->scale, m->line, m->q);
    memset(m->out, 0, (size_t)(DTI_ATTEND_ROWS * h->d) * h->steps->bytes);
    dti_numbers_fill(h->steps->dtype, -INFINITY, m->max, DTI_ATTEND_ROWS);
    dti_numbers_fill(h->steps->dtype, 0, m->sum, DTI_ATTEND_ROWS);
}

static void end_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                     int64_t n)
{
    h->steps->close(m->max, n, m->sum, m->less);
    for (int64_t i = 0; i < n; i++) {
        int64_t lane = i % DTI_LANES, index = dti_heads_row(h, b, g, row + i);
        h->steps->collect(dti_heads_at(h, m->out, (i - lane) * h->d + lane), DTI_LANES, h->d, 1,
                          dti_heads_at(h, m->sum, i), m->line);
        dti_heads_put(h, m->line, &call->out[0], index * h->d, h->d);
        dti_heads_put(h, dti_heads_at(h, m->less, i), &call->out[1], index, 1);
    }
}

static void run_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                     int64_t n)
{
    begin_rows(h, call, m, b, g, row, n);
    meeting at = { .row = row, .rows = n };
    for (; at.key < h->t; at.key += DTI_ATTEND_KEYS) {
        at.keys = h->t - at.key < DTI_ATTEND_KEYS ? h->t - at.key : DTI_ATTEND_KEYS;
        if (dti_heads_seen(h, row + n - 1, at.key, at.keys) == 0) break;
        attend(h, m, &at);
    }
    end_rows(h, call, m, b, g, row, n);
}

static void run_group(const dti_heads *h, const dt_call *call, room *m, int64_t b, int64_t g)
{
    dti_heads_keys(h, &call->in[1], b, g, m->keys);
    dti_heads_blocks(h, &call->in[2], b, g, m->line, m->values);
    m->finite = h->steps->is_finite(m->values, h->blocks * DTI_ATTEND_KEYS * h->d);
    for (int64_t row = 0; row < h->rows; row += DTI_ATTEND_ROWS)
        run_rows(h, call, m, b, g, row, h->rows - row < DTI_ATTEND_ROWS ? h->rows - row : DTI_ATTEND_ROWS);
}

static dti_storage *make_room(dt_context *ctx, const dti_heads *h, room *m)
{
    int64_t line = h->d > DTI_ATTEND_KEYS ? h->d : DTI_ATTEND_KEYS;
    dti_heads_array arrays[] = {
        { &m->keys, h->t * h->d }, { &m->values, h->blocks * DTI_ATTEND_KEYS * h->d },
        { &m->q, DTI_ATTEND_ROWS * h->d }, { &m->out, DTI_ATTEND_ROWS * h->d },
        { &m->scores, DTI_ATTEND_STRIPS * PANEL }, { &m->mask, PANEL }, { &m->more, DTI_ATTEND_ROWS * h->d },
        { &m->less, DTI_ATTEND_ROWS }, { &m->line, line },
        { &m->max, DTI_ATTEND_ROWS }, { &m->sum, DTI_ATTEND_ROWS },
    };
    dti_storage *all = dti_heads_room(ctx, h, arrays, DT_COUNT(arrays));
    if (all) memset(m->values, 0, (size_t)(h->blocks * DTI_ATTEND_KEYS * h->d) * h->steps->bytes);
    return all;
}

dt_status dti_cpu_attention(const dt_call *call)
{
    dti_heads h;
    room m;
    if (!dti_heads_begin(call, 3, &h)) return dt_context_status(call->ctx);
    dti_storage *all = make_room(call->ctx, &h, &m);
    for (int64_t i = 0; i < h.b * h.groups && all; i++) run_group(&h, call, &m, i / h.groups, i % h.groups);
    dti_storage_release(all);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
