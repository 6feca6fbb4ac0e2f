/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of attention: probabilities are made again from scores and their log-sum-exp, block by block of keys.
 * With p of a row and its g, what comes back to a score is p (g v - delta), delta the sum of g times the result. */
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/kernels.h"

enum { Q, K, V, LSE, DELTA, G, MASK };
enum { DQ, DK, DV, DMASK };
enum { PANEL = DTI_ATTEND_KEYS * DTI_LANES };

typedef struct room {
    void *keys, *values, *blocks;      /* of a group: k and v as [t, d], k as blocks                               */
    void *q, *g, *dq;                  /* of its rows: strips of d; q comes scaled                                 */
    void *q_rows, *g_rows;             /* panels of all rows, one per DTI_LANES elements of d                      */
    void *lse, *delta;                 /* of each row                                                              */
    void *dk, *dv;                     /* of a block of keys: likewise                                             */
    void *scores, *back;               /* strips of keys                                                           */
    void *mask, *more;                 /* of a strip; of what is to be added                                       */
    void *p, *ds;                      /* [keys, DTI_ATTEND_ROWS]                                                  */
    void *line;
    bool finite_rows, finite_keys;     /* and so 0 times one of them                                               */
} room;

typedef struct block {                 /* where it goes on                                                         */
    int64_t b, g, row, rows, key, keys;
    dti_sight sight[DTI_ATTEND_STRIPS];
    int64_t seen[DTI_ATTEND_ROWS];
    bool partly;                       /* some row does not see some key                                           */
} block;

static int64_t panels(const dti_heads *h) { return (int64_t)dti_blocks(h->d); }
static int64_t lanes(int64_t n) { return (int64_t)dti_blocks(n) * DTI_LANES; }

/* ---- a strip ----------------------------------------------------------------------------------------------------- */

static int64_t strips(const block *at) { return (int64_t)dti_blocks(at->rows); }

static int64_t rows_of(const block *at, int64_t i)
{
    return at->rows - i * DTI_LANES < DTI_LANES ? at->rows - i * DTI_LANES : DTI_LANES;
}

/* A key that is not seen gives nothing, whatever it is. */
static void add_apart(const dti_heads *h, const room *m, const block *at, int64_t i, void *dq)
{
    const void *keys = dti_heads_at(h, m->blocks, at->key * h->d);
    for (int64_t lane = 0; lane < DTI_LANES; lane++) {
        h->steps->product(&(dti_panels){ keys, DTI_ATTEND_KEYS, h->d, at->seen[i * DTI_LANES + lane],
                                         dti_heads_at(h, m->back, i * PANEL), m->more, 1, 0, 0 });
        for (int64_t k = lane; k < h->d * DTI_LANES; k += DTI_LANES)
            h->steps->add(dti_heads_at(h, m->more, k), 1, 1, dti_heads_at(h, dq, k));
    }
}

static void add_dq(const dti_heads *h, const room *m, const block *at, int64_t from)
{
    int64_t panel = h->d * DTI_LANES;
    h->steps->product(&(dti_panels){ dti_heads_at(h, m->blocks, at->key * h->d), DTI_ATTEND_KEYS, h->d, at->keys,
                                     dti_heads_at(h, m->back, from * PANEL), m->more, strips(at) - from, PANEL,
                                     panel });
    for (int64_t i = from; i < strips(at); i++)
        if (m->finite_keys || at->sight[i] == DTI_SEES_ALL)
            h->steps->add(dti_heads_at(h, m->more, (i - from) * panel), 1, panel,
                          dti_heads_at(h, m->dq, at->row * h->d + i * panel));
    for (int64_t i = from; i < strips(at) && !m->finite_keys; i++)
        if (at->sight[i] == DTI_SEES_SOME)
            add_apart(h, m, at, i, dti_heads_at(h, m->dq, at->row * h->d + i * panel));
}

static void add_mask(const dti_heads *h, const dt_call *call, const room *m, const block *at, int64_t i)
{
    const dt_part *to = &call->out[DMASK];
    for (int64_t lane = 0; lane < rows_of(at, i); lane++)
        h->steps->add(dti_heads_at(h, m->back, i * PANEL + lane), DTI_LANES, at->keys,
                      dti_heads_at(h, to->data, (at->row + i * DTI_LANES + lane) / h->per_group * h->t + at->key));
}

/* A strip that sees none of the keys. */
static void hide(const dti_heads *h, const room *m, const block *at, int64_t i)
{
    size_t bytes = DTI_LANES * h->steps->bytes;
    for (int64_t j = 0; j < at->keys; j++) {
        memset(dti_heads_at(h, m->p, j * DTI_ATTEND_ROWS + i * DTI_LANES), 0, bytes);
        memset(dti_heads_at(h, m->ds, j * DTI_ATTEND_ROWS + i * DTI_LANES), 0, bytes);
    }
}

static void differ(const dti_heads *h, const dt_call *call, const room *m, const block *at, int64_t i)
{
    int64_t lane = i * DTI_LANES, row = at->row + lane;
    dti_strip s = { .n = at->keys, .seen = at->sight[i] == DTI_SEES_SOME ? at->seen + lane : NULL,
                    .mask = h->mask ? m->mask : NULL, .scores = dti_heads_at(h, m->scores, i * PANEL),
                    .back = dti_heads_at(h, m->back, i * PANEL), .lse = dti_heads_at(h, m->lse, row),
                    .delta = dti_heads_at(h, m->delta, row), .p = dti_heads_at(h, m->p, lane),
                    .ds = dti_heads_at(h, m->ds, lane) };
    if (h->mask) dti_heads_mask(h, row, rows_of(at, i), at->key, at->keys, m->line, m->mask);
    h->steps->differ(&s);
    if (call->out_count > DMASK) add_mask(h, call, m, at, i);
}

/* Strips that see none of the keys are the first ones. */
static int64_t see(const dti_heads *h, block *at)
{
    int64_t from = 0;
    at->partly = false;
    for (int64_t i = 0; i < strips(at); i++) {
        at->sight[i] = dti_heads_see(h, at->row + i * DTI_LANES, rows_of(at, i), at->key, at->keys,
                                     at->seen + i * DTI_LANES);
        at->partly |= at->sight[i] != DTI_SEES_ALL;
        from += at->sight[i] == DTI_SEES_NONE;
    }
    return from;
}

static void multiply(const dti_heads *h, const block *at, int64_t from, const void *keys, const void *rows,
                     void *out)
{
    h->steps->product(&(dti_panels){ dti_heads_at(h, keys, at->key * h->d), h->d, at->keys, h->d,
                                     dti_heads_at(h, rows, (at->row + from * DTI_LANES) * h->d),
                                     dti_heads_at(h, out, from * PANEL), strips(at) - from, h->d * DTI_LANES,
                                     PANEL });
}

/* ---- a block of rows and keys ------------------------------------------------------------------------------------ */

/* Key j alone, from the first row on that sees it: another gives it nothing, whatever it is. */
static void add_key(const dti_heads *h, const room *m, const block *at, int64_t j, const void *weights,
                    const void *rows, void *to)
{
    int64_t from = 0;
    while (from < at->rows && dti_heads_seen(h, at->row + from, at->key, at->keys) <= j) from++;
    for (int64_t c = 0; c < panels(h); c++) {
        h->steps->product(&(dti_panels){ dti_heads_at(h, weights, j * DTI_ATTEND_ROWS + from), 0, 1, at->rows - from,
                                         dti_heads_at(h, rows, (c * h->rows + at->row + from) * DTI_LANES), m->more,
                                         1, 0, 0 });
        h->steps->add(m->more, 1, DTI_LANES, dti_heads_at(h, to, c * PANEL + j * DTI_LANES));
    }
}

/* to += the transpose of weights times the rows, panel by panel of d. */
static void add_keys(const dti_heads *h, const room *m, const block *at, const void *weights, const void *rows,
                     void *to)
{
    if (at->partly && !m->finite_rows) {
        for (int64_t j = 0; j < at->keys; j++) add_key(h, m, at, j, weights, rows, to);
        return;
    }
    h->steps->product(&(dti_panels){ weights, DTI_ATTEND_ROWS, at->keys, at->rows,
                                     dti_heads_at(h, rows, at->row * DTI_LANES), m->more, panels(h),
                                     h->rows * DTI_LANES, PANEL });
    for (int64_t c = 0; c < panels(h); c++)
        h->steps->add(dti_heads_at(h, m->more, c * PANEL), 1, at->keys * DTI_LANES, dti_heads_at(h, to, c * PANEL));
}

static void run_rows(const dti_heads *h, const dt_call *call, const room *m, block *at)
{
    int64_t from = see(h, at);
    for (int64_t i = 0; i < from; i++) hide(h, m, at, i);
    multiply(h, at, from, m->keys, m->q, m->scores);
    multiply(h, at, from, m->values, m->g, m->back);
    for (int64_t i = from; i < strips(at); i++) differ(h, call, m, at, i);
    add_dq(h, m, at, from);
    add_keys(h, m, at, m->p, m->g_rows, m->dv);
    add_keys(h, m, at, m->ds, m->q_rows, m->dk);
}

static void put_keys(const dti_heads *h, const room *m, const block *at, const void *from, const dt_part *to)
{
    for (int64_t j = 0; j < at->keys; j++) {
        for (int64_t c = 0; c < panels(h); c++)
            memcpy(dti_heads_at(h, m->line, c * DTI_LANES),
                   dti_heads_at(h, from, c * PANEL + j * DTI_LANES), DTI_LANES * h->steps->bytes);
        dti_heads_put(h, m->line, to, dti_heads_key(h, at->b, at->g, at->key + j) * h->d, h->d);
    }
}

static void run_keys(const dti_heads *h, const dt_call *call, const room *m, block *at)
{
    size_t bytes = (size_t)(panels(h) * PANEL) * h->steps->bytes;
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
        h->steps->collect(dti_heads_at(h, m->dq, (i - lane) * h->d + lane), DTI_LANES, h->d, h->scale, NULL,
                          m->line);
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

static dti_storage *make_room(dt_context *ctx, const dti_heads *h, room *m)
{
    int64_t line = lanes(h->d) > DTI_ATTEND_KEYS ? lanes(h->d) : DTI_ATTEND_KEYS, rows = lanes(h->rows);
    int64_t square = DTI_ATTEND_KEYS * DTI_ATTEND_ROWS, wide = lanes(h->d);
    int64_t more = DTI_ATTEND_KEYS * wide, strip = DTI_ATTEND_ROWS * h->d;
    dti_heads_array arrays[] = {
        { &m->keys, h->t * h->d }, { &m->values, h->t * h->d }, { &m->blocks, h->blocks * DTI_ATTEND_KEYS * h->d },
        { &m->q, rows * h->d }, { &m->g, rows * h->d }, { &m->dq, rows * h->d },
        { &m->q_rows, h->rows * wide }, { &m->g_rows, h->rows * wide }, { &m->lse, rows }, { &m->delta, rows },
        { &m->dk, panels(h) * PANEL }, { &m->dv, panels(h) * PANEL },
        { &m->scores, DTI_ATTEND_STRIPS * PANEL }, { &m->back, DTI_ATTEND_STRIPS * PANEL }, { &m->mask, PANEL },
        { &m->more, more > strip ? more : strip },
        { &m->p, square }, { &m->ds, square }, { &m->line, line },
    };
    dti_storage *all = dti_heads_room(ctx, h, arrays, DT_COUNT(arrays));
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
    dti_storage *all = make_room(call->ctx, &h, &m);
    if (all) run(&h, call, &m);
    dti_storage_release(all);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
