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
#include "ops/cpu/rows.h"

enum { Q, K, V, LSE, DELTA, G, MASK };

typedef struct room {
    double *q, *g, *k, *v, *k_turned, *v_turned, *dk, *dv; /* of a block                                           */
    double p[DTI_ATTEND * DTI_ATTEND], ds[DTI_ATTEND * DTI_ATTEND]; /* [keys, rows]                                */
    double *dq;                                            /* of all rows of a group                               */
} room;

typedef struct block { int64_t b, g, row, rows, key, keys; } block; /* where the room's blocks are                 */

static double number(const dt_part *x, int64_t at)
{
    return dti_number_get(x->dtype, (const char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype));
}

/* p and ds of one row, and its dq. */
static void go_back(const dti_heads *h, const dt_call *call, room *m, const block *at, int64_t i)
{
    double p[DTI_ATTEND], ds[DTI_ATTEND] = { 0 };
    int64_t row = at->row + i, index = dti_heads_index(h, at->b, at->g, row);
    int64_t seen = dti_heads_seen(h, row, at->key, at->keys);
    double lse = number(&call->in[LSE], index), delta = number(&call->in[DELTA], index);
    if (seen == 0) return;
    dti_heads_scores(h, m->q + i * h->width, m->k_turned, row, at->key, seen, p);
    if (lse == -INFINITY) memset(p, 0, sizeof p);
    else dti_row_exp(p, lse, seen);
    dti_heads_combine(m->g + i * h->width, h->d, m->v_turned, DTI_ATTEND, DTI_ATTEND, ds);
    for (int64_t j = 0; j < seen; j++) ds[j] = p[j] * (ds[j] - delta) * h->scale;
    for (int64_t j = 0; j < seen; j++) {
        m->p[j * DTI_ATTEND + i] = p[j];
        m->ds[j * DTI_ATTEND + i] = ds[j];
    }
    dti_heads_combine(ds, seen, m->k, h->width, h->width, m->dq + row * h->width);
}

static void run_rows(const dti_heads *h, const dt_call *call, room *m, const block *at)
{
    dti_heads_rows(h, &call->in[Q], at->b, at->g, at->row, at->rows, m->q);
    dti_heads_rows(h, &call->in[G], at->b, at->g, at->row, at->rows, m->g);
    for (int64_t i = 0; i < at->rows; i++) go_back(h, call, m, at, i);
    for (int64_t j = 0; j < at->keys; j++) {
        int64_t from = dti_heads_first_row(h, at->key + j, at->row) - at->row, n = at->rows - from;
        if (n <= 0) break;
        dti_heads_combine(m->p + j * DTI_ATTEND + from, n, m->g + from * h->width, h->width, h->width,
                          m->dv + j * h->width);
        dti_heads_combine(m->ds + j * DTI_ATTEND + from, n, m->q + from * h->width, h->width, h->width,
                          m->dk + j * h->width);
    }
}

static void run_keys(const dti_heads *h, const dt_call *call, room *m, block *at)
{
    dti_heads_keys(h, &call->in[K], at->b, at->g, at->key, at->keys, m->k);
    dti_heads_keys(h, &call->in[V], at->b, at->g, at->key, at->keys, m->v);
    dti_heads_turn(h, m->k, at->keys, m->k_turned);
    dti_heads_turn(h, m->v, at->keys, m->v_turned);
    for (int64_t i = 0; i < at->keys * h->width; i++) m->dk[i] = m->dv[i] = 0;
    for (at->row = 0; at->row < h->rows; at->row += DTI_ATTEND) {
        at->rows = h->rows - at->row < DTI_ATTEND ? h->rows - at->row : DTI_ATTEND;
        if (dti_heads_seen(h, at->row + at->rows - 1, at->key, at->keys)) run_rows(h, call, m, at);
    }
    dti_heads_put_keys(h, m->dk, &call->out[1], at->b, at->g, at->key, at->keys);
    dti_heads_put_keys(h, m->dv, &call->out[2], at->b, at->g, at->key, at->keys);
}

static void run_group(const dti_heads *h, const dt_call *call, room *m, block *at)
{
    for (int64_t i = 0; i < h->rows * h->width; i++) m->dq[i] = 0;
    for (at->key = 0; at->key < h->t; at->key += DTI_ATTEND) {
        at->keys = h->t - at->key < DTI_ATTEND ? h->t - at->key : DTI_ATTEND;
        run_keys(h, call, m, at);
    }
    for (int64_t row = 0; row < h->rows; row++)
        dti_heads_put_row(h, m->dq + row * h->width, &call->out[0], at->b, at->g, row);
}

static void run(const dti_heads *h, const dt_call *call, room *m)
{
    block at = { 0 };
    for (at.b = 0; at.b < h->b; at.b++)
        for (at.g = 0; at.g < h->groups; at.g++) run_group(h, call, m, &at);
}

dt_status dti_cpu_attention_grad(const dt_call *call)
{
    dti_heads h;
    if (!dti_heads_begin(call, MASK, &h)) return dt_context_status(call->ctx);
    size_t one = (size_t)h.width * DTI_ATTEND;
    room *m = malloc(sizeof *m);
    double *all = malloc((8 * one + (size_t)(h.rows * h.width) + 1) * sizeof *all);
    if (m && all) {
        double **part[] = { &m->q, &m->g, &m->k, &m->v, &m->k_turned, &m->v_turned, &m->dk, &m->dv, &m->dq };
        for (int i = 0; i < DT_COUNT(part); i++) *part[i] = all + (size_t)i * one;
        run(&h, call, m);
    } else dt_context_fail(call->ctx, DT_ERR_MEMORY, "attention: no memory for its gradient's blocks");
    free(all);
    free(m);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
