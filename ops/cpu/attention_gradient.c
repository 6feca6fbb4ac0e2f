/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of attention: probabilities are made again from scores and their log-sum-exp, block by block of keys.
 * With p of a row and its g, what comes back to a score is p (g v - delta), delta the sum of g times the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/kernels.h"

enum { Q, K, V, LSE, DELTA, G, MASK };
enum { DQ, DK, DV, DMASK };

typedef struct room {
    void *keys, *values, *blocks;      /* of a group: k and v as [t, d], k as blocks                               */
    void *q, *g, *dq;                  /* of its rows: strips of d; q comes scaled                                 */
    void *q_rows, *g_rows;             /* panels of all rows, one per DTI_LANES elements of d                      */
    void *lse, *delta;                 /* of each row                                                              */
    void *dk, *dv;                     /* of a block of keys: likewise                                             */
    void *scores, *back, *mask, *more; /* of a strip                                                               */
    void *p, *ds;                      /* [keys, DTI_ATTEND_ROWS]                                                  */
    void *line;
    bool finite_rows, finite_keys;     /* and so 0 times one of them                                               */
} room;

typedef struct block {                 /* where it goes on                                                         */
    int64_t b, g, row, rows, key, keys;
    bool partly;                       /* some row does not see some key                                           */
} block;

static int64_t panels(const dti_heads *h) { return (int64_t)dti_blocks(h->d); }
static int64_t lanes(int64_t n) { return (int64_t)dti_blocks(n) * DTI_LANES; }

/* ---- a strip ----------------------------------------------------------------------------------------------------- */

/* A key that is not seen gives nothing, whatever it is. */
static void add_dq(const dti_heads *h, const room *m, const block *at, int64_t row, const dti_strip *s)
{
    const void *keys = dti_heads_at(h, m->blocks, at->key * h->d);
    void *dq = dti_heads_at(h, m->dq, row * h->d);
    if (!s->seen || m->finite_keys) {
        h->steps->product(keys, DTI_ATTEND_KEYS, h->d, m->back, at->keys, m->more);
        h->steps->add(m->more, 1, h->d * DTI_LANES, dq);
        return;
    }
    for (int64_t i = 0; i < DTI_LANES; i++) {
        h->steps->product(keys, DTI_ATTEND_KEYS, h->d, m->back, s->seen[i], m->more);
        for (int64_t k = 0; k < h->d; k++)
            h->steps->add(dti_heads_at(h, m->more, k * DTI_LANES + i), 1, 1, dti_heads_at(h, dq, k * DTI_LANES + i));
    }
}

static void add_mask(const dti_heads *h, const dt_call *call, const room *m, const block *at, int64_t row,
                     int64_t rows)
{
    const dt_part *to = &call->out[DMASK];
    for (int64_t i = 0; i < rows && call->out_count > DMASK; i++)
        h->steps->add(dti_heads_at(h, m->back, i), DTI_LANES, at->keys,
                      dti_heads_at(h, to->data, (row + i) / h->per_group * h->t + at->key));
}

static void hide(const dti_heads *h, const room *m, const block *at, int64_t lane)
{
    for (int64_t j = 0; j < at->keys; j++) {
        size_t bytes = DTI_LANES * h->steps->bytes;
        memset(dti_heads_at(h, m->p, j * DTI_ATTEND_ROWS + lane), 0, bytes);
        memset(dti_heads_at(h, m->ds, j * DTI_ATTEND_ROWS + lane), 0, bytes);
    }
}

static void run_strip(const dti_heads *h, const dt_call *call, const room *m, block *at, int64_t lane)
{
    int64_t seen[DTI_LANES], row = at->row + lane, rows = at->rows - lane < DTI_LANES ? at->rows - lane : DTI_LANES;
    dti_sight sight = dti_heads_see(h, row, rows, at->key, at->keys, seen);
    at->partly |= sight != DTI_SEES_ALL;
    if (sight == DTI_SEES_NONE) {
        hide(h, m, at, lane);
        return;
    }
    dti_strip s = { .n = at->keys, .seen = sight == DTI_SEES_SOME ? seen : NULL, .mask = h->mask ? m->mask : NULL,
                    .scores = m->scores, .back = m->back, .lse = dti_heads_at(h, m->lse, row),
                    .delta = dti_heads_at(h, m->delta, row), .p = dti_heads_at(h, m->p, lane),
                    .ds = dti_heads_at(h, m->ds, lane) };
    h->steps->product(dti_heads_at(h, m->keys, at->key * h->d), h->d, s.n, dti_heads_at(h, m->q, row * h->d), h->d,
                      m->scores);
    h->steps->product(dti_heads_at(h, m->values, at->key * h->d), h->d, s.n, dti_heads_at(h, m->g, row * h->d), h->d,
                      m->back);
    if (h->mask) dti_heads_mask(h, row, rows, at->key, s.n, m->line, m->mask);
    h->steps->differ(&s);
    add_dq(h, m, at, row, &s);
    add_mask(h, call, m, at, row, rows);
}

/* ---- a block of rows and keys ------------------------------------------------------------------------------------ */

/* to += the transpose of weights times the rows, panel by panel of d. A row that does not see a key gives it nothing,
 * whatever it is. */
static void add_keys(const dti_heads *h, const room *m, const block *at, const void *weights, const void *rows,
                     void *to)
{
    bool whole = !at->partly || m->finite_rows;
    for (int64_t c = 0; c < panels(h); c++) {
        const void *panel = dti_heads_at(h, rows, (c * h->rows + at->row) * DTI_LANES);
        void *out = dti_heads_at(h, to, c * DTI_ATTEND_KEYS * DTI_LANES);
        if (whole) h->steps->product(weights, DTI_ATTEND_ROWS, at->keys, panel, at->rows, m->more);
        for (int64_t j = 0; j < at->keys && !whole; j++) {
            int64_t from = 0;
            while (from < at->rows && dti_heads_seen(h, at->row + from, at->key, at->keys) <= j) from++;
            h->steps->product(dti_heads_at(h, weights, j * DTI_ATTEND_ROWS + from), DTI_ATTEND_ROWS, 1,
                              dti_heads_at(h, panel, from * DTI_LANES), at->rows - from,
                              dti_heads_at(h, m->more, j * DTI_LANES));
        }
        h->steps->add(m->more, 1, at->keys * DTI_LANES, out);
    }
}

static void run_rows(const dti_heads *h, const dt_call *call, const room *m, block *at)
{
    at->partly = false;
    for (int64_t lane = 0; lane < at->rows; lane += DTI_LANES) run_strip(h, call, m, at, lane);
    add_keys(h, m, at, m->p, m->g_rows, m->dv);
    add_keys(h, m, at, m->ds, m->q_rows, m->dk);
}

static void put_keys(const dti_heads *h, const room *m, const block *at, const void *from, const dt_part *to)
{
    for (int64_t j = 0; j < at->keys; j++) {
        for (int64_t c = 0; c < panels(h); c++)
            memcpy(dti_heads_at(h, m->line, c * DTI_LANES),
                   dti_heads_at(h, from, (c * DTI_ATTEND_KEYS + j) * DTI_LANES), DTI_LANES * h->steps->bytes);
        dti_heads_put(h, m->line, to, dti_heads_key(h, at->b, at->g, at->key + j) * h->d, h->d);
    }
}

static void run_keys(const dti_heads *h, const dt_call *call, const room *m, block *at)
{
    size_t bytes = (size_t)(panels(h) * DTI_ATTEND_KEYS * DTI_LANES) * h->steps->bytes;
    memset(m->dk, 0, bytes);
    memset(m->dv, 0, bytes);
    for (at->row = 0; at->row < h->rows; at->row += DTI_ATTEND_ROWS) {
        at->rows = h->rows - at->row < DTI_ATTEND_ROWS ? h->rows - at->row : DTI_ATTEND_ROWS;
        if (dti_heads_seen(h, at->row + at->rows - 1, at->key, at->keys)) run_rows(h, call, m, at);
    }
    put_keys(h, m, at, m->dk, &call->out[DK]);
    put_keys(h, m, at, m->dv, &call->out[DV]);
}

/* ---- a group ----------------------------------------------------------------------------------------------------- */

/* All rows of x times by, as panels. */
static void take_rows(const dti_heads *h, const dt_part *x, const block *at, double by, void *line, void *to)
{
    memset(line, 0, (size_t)lanes(h->d) * h->steps->bytes);
    for (int64_t i = 0; i < h->rows; i++) {
        dti_heads_get(h, x, dti_heads_row(h, at->b, at->g, i) * h->d, h->d, line);
        for (int64_t c = 0; c < panels(h); c++)
            h->steps->spread(dti_heads_at(h, line, c * DTI_LANES), DTI_LANES, by,
                             dti_heads_at(h, to, (c * h->rows + i) * DTI_LANES), 1);
    }
}

static void begin_group(const dti_heads *h, const dt_call *call, room *m, const block *at)
{
    dti_heads_keys(h, &call->in[K], at->b, at->g, m->keys);
    dti_heads_keys(h, &call->in[V], at->b, at->g, m->values);
    dti_heads_blocks(h, &call->in[K], at->b, at->g, m->line, m->blocks);
    dti_heads_strips(h, &call->in[Q], at->b, at->g, 0, h->rows, h->scale, m->line, m->q);
    dti_heads_strips(h, &call->in[G], at->b, at->g, 0, h->rows, 1, m->line, m->g);
    take_rows(h, &call->in[Q], at, h->scale, m->line, m->q_rows);
    take_rows(h, &call->in[G], at, 1, m->line, m->g_rows);
    for (int64_t i = 0; i < h->rows; i++) {
        int64_t index = dti_heads_row(h, at->b, at->g, i);
        dti_heads_get(h, &call->in[LSE], index, 1, dti_heads_at(h, m->lse, i));
        dti_heads_get(h, &call->in[DELTA], index, 1, dti_heads_at(h, m->delta, i));
    }
    memset(m->dq, 0, (size_t)(lanes(h->rows) * h->d) * h->steps->bytes);
    m->finite_keys = h->steps->is_finite(m->keys, h->t * h->d);
    m->finite_rows = h->steps->is_finite(m->q, lanes(h->rows) * h->d)
                  && h->steps->is_finite(m->g, lanes(h->rows) * h->d);
}

static void end_group(const dti_heads *h, const dt_call *call, const room *m, const block *at)
{
    for (int64_t i = 0; i < h->rows; i++) {
        int64_t lane = i % DTI_LANES;
        h->steps->collect(dti_heads_at(h, m->dq, (i - lane) * h->d + lane), DTI_LANES, h->d, h->scale, 1, m->line);
        dti_heads_put(h, m->line, &call->out[DQ], dti_heads_row(h, at->b, at->g, i) * h->d, h->d);
    }
}

static void run_group(const dti_heads *h, const dt_call *call, room *m, block *at)
{
    begin_group(h, call, m, at);
    for (at->key = 0; at->key < h->t; at->key += DTI_ATTEND_KEYS) {
        at->keys = h->t - at->key < DTI_ATTEND_KEYS ? h->t - at->key : DTI_ATTEND_KEYS;
        run_keys(h, call, m, at);
    }
    end_group(h, call, m, at);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static void *make_room(const dti_heads *h, room *m)
{
    int64_t line = lanes(h->d) > DTI_ATTEND_KEYS ? lanes(h->d) : DTI_ATTEND_KEYS, rows = lanes(h->rows);
    int64_t panel = DTI_ATTEND_KEYS * DTI_LANES, square = DTI_ATTEND_KEYS * DTI_ATTEND_ROWS;
    int64_t more = h->d * DTI_LANES > panel ? h->d * DTI_LANES : panel, wide = panels(h) * DTI_LANES;
    dti_heads_array arrays[] = {
        { &m->keys, h->t * h->d }, { &m->values, h->t * h->d }, { &m->blocks, h->blocks * DTI_ATTEND_KEYS * h->d },
        { &m->q, rows * h->d }, { &m->g, rows * h->d }, { &m->dq, rows * h->d },
        { &m->q_rows, h->rows * wide }, { &m->g_rows, h->rows * wide }, { &m->lse, rows }, { &m->delta, rows },
        { &m->dk, panels(h) * panel }, { &m->dv, panels(h) * panel },
        { &m->scores, panel }, { &m->back, panel }, { &m->mask, panel }, { &m->more, more },
        { &m->p, square }, { &m->ds, square }, { &m->line, line },
    };
    void *all = dti_heads_room(h, arrays, DT_COUNT(arrays));
    if (!all) return NULL;
    memset(m->lse, 0, (size_t)rows * h->steps->bytes);
    memset(m->delta, 0, (size_t)rows * h->steps->bytes);
    return all;
}

/* What comes back to the mask is summed over batches and heads where it lies. */
static void run(const dti_heads *h, const dt_call *call, room *m)
{
    block at = { 0 };
    if (call->out_count > DMASK)
        dti_numbers_fill(call->out[DMASK].dtype, 0, call->out[DMASK].data, h->s * h->t);
    for (at.b = 0; at.b < h->b; at.b++)
        for (at.g = 0; at.g < h->groups; at.g++) run_group(h, call, m, &at);
}

dt_status dti_cpu_attention_grad(const dt_call *call)
{
    dti_heads h;
    room m;
    if (!dti_heads_begin(call, MASK, &h)) return dt_context_status(call->ctx);
    void *all = make_room(&h, &m);
    if (all) run(&h, call, &m);
    else dt_context_fail(call->ctx, DT_ERR_MEMORY, "attention: no memory for its gradient's blocks");
    free(all);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
