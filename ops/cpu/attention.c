/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention: keys come block by block, and each row keeps the largest score so far, the sum of exp of the others
 * beside it, and the sum of values by these. So no matrix of scores is made, and memory grows with the sequence, not
 * with its square. */
#include <math.h>
#include <stdlib.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/attributes.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/rows.h"

typedef struct state { double max, sum; } state; /* of a row                                                       */

typedef struct room { double *q, *out, *keys, *values, *turned; state *row; } room; /* of a block                  */

/* More keys for one row. -infinity hides a key; a row that sees none has no largest score yet. */
static void attend(const dti_heads *h, const room *m, int64_t i, int64_t row, int64_t first, int64_t n)
{
    double scores[DTI_ATTEND], *out = m->out + i * h->width;
    state *s = &m->row[i];
    int64_t seen = dti_heads_seen(h, row, first, n);
    if (seen == 0) return;
    dti_heads_scores(h, m->q + i * h->width, m->turned, row, first, seen, scores);
    double max = dti_row_max(scores, seen), before = s->max;
    if (max > before || max != max) s->max = max;
    if (s->max == -INFINITY) return;
    if (before != s->max) {
        double less = before == -INFINITY ? 0 : exp(before - s->max);
        s->sum *= less;
        for (int64_t k = 0; k < h->width; k++) out[k] *= less;
    }
    s->sum += dti_row_exp(scores, s->max, seen);
    dti_heads_combine(scores, seen, m->values, h->width, h->width, out);
}

static void begin_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                       int64_t n)
{
    dti_heads_rows(h, &call->in[0], b, g, row, n, m->q);
    for (int64_t i = 0; i < n * h->width; i++) m->out[i] = 0;
    for (int64_t i = 0; i < n; i++) m->row[i] = (state){ -INFINITY, 0 };
}

static void end_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                     int64_t n)
{
    const dt_part *lse = &call->out[1];
    for (int64_t i = 0; i < n; i++) {
        const state *s = &m->row[i];
        double *out = m->out + i * h->width;
        for (int64_t k = 0; k < h->d && s->max != -INFINITY; k++) out[k] /= s->sum;
        dti_heads_put_row(h, out, &call->out[0], b, g, row + i);
        dti_number_set(lse->dtype, s->max == -INFINITY ? s->max : s->max + log(s->sum),
                       (char *)lse->data + dti_heads_index(h, b, g, row + i) * (int64_t)dt_dtype_bytes(lse->dtype));
    }
}

static void run_rows(const dti_heads *h, const dt_call *call, const room *m, int64_t b, int64_t g, int64_t row,
                     int64_t n)
{
    begin_rows(h, call, m, b, g, row, n);
    for (int64_t first = 0; first < h->t; first += DTI_ATTEND) {
        int64_t keys = h->t - first < DTI_ATTEND ? h->t - first : DTI_ATTEND;
        if (dti_heads_seen(h, row + n - 1, first, keys) == 0) break;
        dti_heads_keys(h, &call->in[1], b, g, first, keys, m->keys);
        dti_heads_turn(h, m->keys, keys, m->turned);
        dti_heads_keys(h, &call->in[2], b, g, first, keys, m->values);
        for (int64_t i = 0; i < n; i++) attend(h, m, i, row + i, first, keys);
    }
    end_rows(h, call, m, b, g, row, n);
}

static void run(const dti_heads *h, const dt_call *call, const room *m)
{
    for (int64_t b = 0; b < h->b; b++)
        for (int64_t g = 0; g < h->groups; g++)
            for (int64_t row = 0; row < h->rows; row += DTI_ATTEND)
                run_rows(h, call, m, b, g, row, h->rows - row < DTI_ATTEND ? h->rows - row : DTI_ATTEND);
}

dt_status dti_cpu_attention(const dt_call *call)
{
    dti_heads h;
    if (!dti_heads_begin(call, 3, &h)) return dt_context_status(call->ctx);
    size_t block = (size_t)h.width * DTI_ATTEND;
    double *all = malloc((5 * block + 2 * DTI_ATTEND) * sizeof *all);
    state rows[DTI_ATTEND];
    if (all) run(&h, call, &(room){ all, all + block, all + 2 * block, all + 3 * block, all + 4 * block, rows });
    else dt_context_fail(call->ctx, DT_ERR_MEMORY, "attention: no memory for its blocks");
    free(all);
    dti_heads_end(&h);
    return dt_context_status(call->ctx);
}
