/* SPDX-License-Identifier: Apache-2.0
 *
 * Cross-entropy, row by row of logits, each in chunks that stay in the nearest cache: softmax is never there. With
 * logits less the largest, the loss of a row is weight * log(sum of exp) - target, where target is the sum of q x and
 * weight that of q, over classes, and q = w ((1 - e) at the target + e / v). All of them are sums over the classes that
 * are here, so a part of the classes gives its part of them. In f64, rounded once. */
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/room.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vector.h"
#include "placements/spec.h"

typedef struct losses {
    const dt_call *call;
    const dt_part *x;
    int64_t rows, n;                   /* of this rank                                                             */
    int64_t *targets;                  /* of rows; negative: ignored                                               */
    double *w;                         /* of this rank's classes; NULL: 1 each                                     */
    double keep, smooth;               /* 1 - e, e / v                                                             */
    dti_set held;                      /* this rank's classes                                                      */
    double chunk[DTI_RUN];
} losses;

typedef struct sums { double exp, target, weight, own; } sums; /* of a row; own: w of the target                    */

static int64_t count_of(const dt_part *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->shape.n; d++) n *= x->shape.dim[d];
    return n;
}

static char *element(const dt_part *x, int64_t at) { return (char *)x->data + at * (int64_t)dt_dtype_bytes(x->dtype); }

static double number(const dt_part *x, int64_t at) { return dti_number_get(x->dtype, element(x, at)); }

static void put(const dt_part *y, int64_t at, double value) { dti_number_set(y->dtype, value, element(y, at)); }

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static bool are_classes(const losses *l, int64_t classes)
{
    for (int64_t i = 0; i < l->rows; i++) {
        if (l->targets[i] < classes) continue;
        dt_context_fail(l->call->ctx, DT_ERR_ARG, "cross_entropy: expected targets below %lld, got %lld",
                        (long long)classes, (long long)l->targets[i]); /* whichever row of its parts sees it       */
        return false;
    }
    return true;
}

static void end(losses *l)
{
    dti_room_give(l->targets);
    dti_room_give(l->w);
    dti_set_fini(&l->held);
}

/* x and targets are the first operands. false and the error: a target that is no class. */
static bool begin(const dt_call *call, int weights, losses *l)
{
    const dt_part *x = &call->in[0], *targets = &call->in[1], *w = &call->in[weights];
    int64_t classes = dt_spec_shape(x->spec).dim[x->shape.n - 1];
    double smoothing = ((const dti_cross_entropy *)call->attributes)->smoothing;
    memset(l, 0, sizeof *l);
    l->call = call;
    l->x = x;
    l->rows = count_of(targets);
    l->n = x->shape.dim[x->shape.n - 1];
    l->keep = 1 - smoothing;
    l->smooth = classes ? smoothing / (double)classes : 0;
    dti_set_init(&l->held);
    dti_spec_set(x->spec, x->shape.n - 1, x->rank, &l->held);
    l->targets = dti_room_take(call->ctx, (size_t)l->rows * sizeof *l->targets);
    if (w->spec) l->w = dti_room_take(call->ctx, (size_t)l->n * sizeof *l->w);
    if (l->targets && (l->w || !w->spec)) {
        dti_numbers_convert(targets->dtype, targets->data, DT_I64, l->targets, l->rows);
        if (l->w) dti_numbers_convert(w->dtype, w->data, DT_F64, l->w, l->n);
        if (are_classes(l, classes)) return true;
    } else dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for targets", call->op->head);
    end(l);
    return false;
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

/* Logits of a row from class *at* on, as many as fit; zeros fill the block. */
static int64_t load(losses *l, int64_t row, int64_t at)
{
    int64_t n = l->n - at < DTI_RUN ? l->n - at : DTI_RUN, all = (int64_t)dti_blocks(n) * DTI_LANES;
    dti_numbers_convert(l->x->dtype, element(l->x, row * l->n + at), DT_F64, l->chunk, n);
    memset(l->chunk + n, 0, (size_t)(all - n) * sizeof *l->chunk);
    return n;
}

/* NaN where there is one. */
static double max_of(losses *l, int64_t row)
{
    double max = -INFINITY;
    for (int64_t at = 0; at < l->n && max == max; at += DTI_RUN) {
        int64_t n = load(l, row, at);
        double here = dti_row_max(l->chunk, n);
        if (here > max || here != here) max = here;
    }
    return max;
}

static void add_smooth(const losses *l, int64_t at, int64_t n, double max, sums *s)
{
    const double *w = l->w ? l->w + at : NULL;
    s->target += l->smooth * dti_row_weighted(l->chunk, max, w, n);
    s->weight += l->smooth * (w ? dti_row_sum(w, n) : (double)n);
}

static void add_target(const losses *l, int64_t at, double x, sums *s)
{
    s->own = l->w ? l->w[at] : 1;
    s->target += l->keep * s->own * x;
    s->weight += l->keep * s->own;
}

static sums sums_of(losses *l, int64_t row, double max)
{
    sums s = { 0 };
    int64_t target = dti_set_find(&l->held, l->targets[row]);
    for (int64_t at = 0; at < l->n; at += DTI_RUN) {
        int64_t n = load(l, row, at);
        if (l->smooth > 0) add_smooth(l, at, n, max, &s);
        if (target >= at && target < at + n) add_target(l, target, l->chunk[target - at] - max, &s);
        s.exp += dti_row_exp_sum(l->chunk, max, n);
    }
    return s;
}

/* Loss, weight of the target; log-sum-exp, weight of the classes. */
static void put_row(const dt_call *call, int64_t row, double max, const sums *s)
{
    double rest = log(s->exp), result[] = { s->weight * rest - s->target, s->own, max + rest, s->weight };
    for (int r = 0; r < call->out_count; r++) put(&call->out[r], row, result[r]);
}

static void put_nothing(const dt_call *call, int64_t row)
{
    for (int r = 0; r < call->out_count; r++) put(&call->out[r], row, 0);
}

/* Without class weights the sums of q are 1, but for rounding. */
static void put_unweighted(const dt_call *call, int64_t row, double max, double exp, double target)
{
    put_row(call, row, max, &(sums){ exp, target, 1, 1 });
}

/* ---- all rows ---------------------------------------------------------------------------------------------------- */

static void run_row(losses *l, int64_t row)
{
    if (l->targets[row] < 0) {
        put_nothing(l->call, row);
        return;
    }
    double max = max_of(l, row);
    sums s = sums_of(l, row, max);
    if (l->w) put_row(l->call, row, max, &s);
    else put_unweighted(l->call, row, max, s.exp, s.target);
}

dt_status dti_cpu_cross_entropy(const dt_call *call)
{
    losses l;
    if (!begin(call, 2, &l)) return dt_context_status(call->ctx);
    for (int64_t row = 0; row < l.rows; row++) run_row(&l, row);
    end(&l);
    return DT_OK;
}

/* ---- in two halves ----------------------------------------------------------------------------------------------- */

enum { PARTS = 3 };                    /* target, weight, own; the first alone without class weights               */

dt_status dti_cpu_cross_entropy_sums(const dt_call *call)
{
    const dt_part *max = &call->in[2], *exp = &call->out[0], *parts = &call->out[1];
    int64_t count = parts->shape.dim[parts->shape.n - 1];
    losses l;
    if (!begin(call, 3, &l)) return dt_context_status(call->ctx);
    for (int64_t row = 0; row < l.rows; row++) {
        bool counts = l.targets[row] >= 0;
        sums s = counts ? sums_of(&l, row, number(max, row)) : (sums){ 0 };
        double part[PARTS] = { s.target, s.weight, s.own };
        put(exp, row, s.exp);
        for (int64_t k = 0; k < count; k++) put(parts, row * count + k, part[k]);
    }
    end(&l);
    return DT_OK;
}

dt_status dti_cpu_cross_entropy_end(const dt_call *call)
{
    const dt_part *targets = &call->in[0], *max = &call->in[1], *exp = &call->in[2], *parts = &call->in[3];
    int64_t count = parts->shape.dim[parts->shape.n - 1], rows = count_of(targets);
    for (int64_t row = 0; row < rows; row++) {
        double part[PARTS] = { 0 };
        for (int64_t k = 0; k < count; k++) part[k] = number(parts, row * count + k);
        if (number(targets, row) < 0) put_nothing(call, row);
        else if (count < PARTS) put_unweighted(call, row, number(max, row), number(exp, row), part[0]);
        else put_row(call, row, number(max, row), &(sums){ number(exp, row), part[0], part[1], part[2] });
    }
    return DT_OK;
}

/* ---- the gradient ------------------------------------------------------------------------------------------------ */

enum { LSE = 2, SCALE, G, WEIGHTS };

/* g (scale p - q), p the softmax. */
static void go_back(losses *l, int64_t row)
{
    const dt_part *y = &l->call->out[0];
    double lse = number(&l->call->in[LSE], row), scale = number(&l->call->in[SCALE], row);
    double g = number(&l->call->in[G], row);
    int64_t target = dti_set_find(&l->held, l->targets[row]);
    for (int64_t at = 0; at < l->n; at += DTI_RUN) {
        int64_t n = load(l, row, at);
        dti_row_exp(l->chunk, lse, n);
        for (int64_t i = 0; i < n; i++) l->chunk[i] = g * (scale * l->chunk[i] - l->smooth * (l->w ? l->w[at + i] : 1));
        if (target >= at && target < at + n) l->chunk[target - at] -= g * l->keep * (l->w ? l->w[target] : 1);
        dti_numbers_convert(DT_F64, l->chunk, y->dtype, element(y, row * l->n + at), n);
    }
}

dt_status dti_cpu_cross_entropy_grad(const dt_call *call)
{
    losses l;
    if (!begin(call, WEIGHTS, &l)) return dt_context_status(call->ctx);
    for (int64_t row = 0; row < l.rows && l.n; row++) {
        if (l.targets[row] >= 0) go_back(&l, row);
        else dti_numbers_fill(call->out[0].dtype, 0, element(&call->out[0], row * l.n), l.n);
    }
    end(&l);
    return DT_OK;
}
