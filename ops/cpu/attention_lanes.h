/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of attention for one dtype: who includes it says what a number is, and how exp is made of it. Rows are
 * lanes, so nothing here is summed across a vector, and each row gets the same instructions in each of them. */
#ifndef DTI_OPS_CPU_ATTENTION_LANES_H
#define DTI_OPS_CPU_ATTENTION_LANES_H

#include <math.h>
#include <string.h>

#include "ops/cpu/attention.h"

enum { BYTES = 64, WIDTH = BYTES / sizeof(number), TILE_ROWS = 6, CHUNK = 32 };

typedef number vec __attribute__((vector_size(BYTES)));

/* ---- exp --------------------------------------------------------------------------------------------------------- */

/* Within a few units of the last digit; 0 and infinity as soon as they are near, NaN of NaN. */
DTI_INLINE number exp_of(number x)
{
    const number base = shift;
    number within = x > highest ? highest : x, shifted = within * per_ln2 + shift, whole = shifted - shift;
    number r = (within - whole * ln2_high) - whole * ln2_low, p = series[0], power;
    integer n, zero;
    for (size_t i = 1; i < sizeof series / sizeof *series; i++) p = p * r + series[i];
    memcpy(&n, &shifted, sizeof n);
    memcpy(&zero, &base, sizeof zero);
    n = (integer)((whole_bits)(n - zero + BIAS) << MANTISSA);
    memcpy(&power, &n, sizeof power);
    p = (1 + (r + r * r * p)) * power;
    return x < lowest ? 0 : p;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

static void spread(const void *from, int64_t n, double by, void *to, int64_t step)
{
    const number *x = from;
    number *y = to, times = (number)by;
    for (int64_t i = 0; i < n; i++) y[i * step] = x[i] * times;
}

static void collect(const void *from, int64_t step, int64_t n, double by, const void *over, void *to)
{
    const number *x = from;
    number *y = to, times = (number)by, parts = over ? *(const number *)over : 1;
    for (int64_t i = 0; i < n; i++) y[i] = x[i * step] * times / parts;
}

DTI_CLONES static void add(const void *from, int64_t step, int64_t n, void *to)
{
    const number *restrict x = from;
    number *restrict y = to;
    if (step == 1)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] += x[i * step];
}

DTI_CLONES static bool is_finite(const void *x, int64_t n)
{
    const number *y = x;
    integer not = 0;
    for (int64_t i = 0; i < n; i++) not |= y[i] - y[i] != 0;
    return !not;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A few rows times one or two vectors of panels that lie *apart*. Sums are summed in chunks of k, so that they lose
 * less; an element gets the same instructions in a tile of any size. */
DTI_INLINE void tile(const number *a, int64_t step, int rows, const number *panel, int64_t apart, int vectors,
                     int64_t k, number *out, int64_t out_apart)
{
    vec total[TILE_ROWS][2], sum[TILE_ROWS][2], b[2];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) total[i][v] = (vec){ 0 };
    for (int64_t from = 0; from < k; from += CHUNK) {
        int64_t end = k - from < CHUNK ? k : from + CHUNK;
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++) sum[i][v] = (vec){ 0 };
        for (int64_t p = from; p < end; p++) {
            for (int v = 0; v < vectors; v++) memcpy(&b[v], panel + p * DTI_LANES + v * apart, BYTES);
            for (int i = 0; i < rows; i++)
                for (int v = 0; v < vectors; v++) sum[i][v] += a[i * step + p] * b[v];
        }
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++) total[i][v] += sum[i][v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) memcpy(out + i * DTI_LANES + v * out_apart, &total[i][v], BYTES);
}

typedef struct placing { int vectors; int64_t at, apart, out_at, out_apart; } placing;

/* As many tiles of so many rows as there are; those left over begin at the row that is returned. */
DTI_INLINE int64_t tiles(const dti_panels *p, const placing *at, int rows, int64_t i)
{
    for (; i + rows <= p->n; i += rows)
        tile((const number *)p->a + i * p->step, p->step, rows, (const number *)p->panel + at->at, at->apart,
             at->vectors, p->k, (number *)p->out + at->out_at + i * DTI_LANES, at->out_apart);
    return i;
}

DTI_INLINE void multiply(const dti_panels *p, const placing *at)
{
    int64_t i = tiles(p, at, TILE_ROWS, 0);
    i = tiles(p, at, 4, i);
    i = tiles(p, at, 2, i);
    tiles(p, at, 1, i);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

typedef struct lanes { number of[DTI_LANES]; } lanes;

DTI_INLINE lanes lanes_at(const void *x, int64_t at)
{
    lanes all;
    memcpy(&all, (const number *)x + at * DTI_LANES, sizeof all);
    return all;
}

/* The scores of all rows for key j: with the mask, -infinity where it is not seen. */
DTI_INLINE lanes scores_of(const dti_strip *s, const integer *seen, int64_t j)
{
    lanes x = lanes_at(s->scores, j);
    if (s->mask) {
        lanes mask = lanes_at(s->mask, j);
        for (int i = 0; i < DTI_LANES; i++) x.of[i] += mask.of[i];
    }
    for (int i = 0; i < DTI_LANES && s->seen; i++) x.of[i] = j < seen[i] ? x.of[i] : -INFINITY;
    return x;
}

DTI_INLINE void sight(const dti_strip *s, integer *seen)
{
    for (int i = 0; i < DTI_LANES; i++) seen[i] = (integer)(s->seen ? s->seen[i] : s->n);
}

DTI_INLINE void hide(const dti_strip *s)
{
    integer seen[DTI_LANES];
    sight(s, seen);
    for (int64_t j = 0; j < s->n; j++) {
        lanes x = scores_of(s, seen, j);
        memcpy((number *)s->scores + j * DTI_LANES, &x, sizeof x);
    }
}

DTI_INLINE number larger(number x, number max) { return x > max ? x : x != x ? x : max; }

/* The largest, NaN where there is one: in four parts, none of which waits for another. */
DTI_INLINE lanes find_largest(const dti_strip *s)
{
    const number *x = s->scores;
    lanes max = lanes_at(s->max, 0);
    number part[4 * DTI_LANES];
    int64_t j = 0;
    for (int i = 0; i < 4 * DTI_LANES; i++) part[i] = max.of[i % DTI_LANES];
    for (; j + 4 <= s->n; j += 4)
        for (int i = 0; i < 4 * DTI_LANES; i++) part[i] = larger(x[j * DTI_LANES + i], part[i]);
    for (; j < s->n; j++)
        for (int i = 0; i < DTI_LANES; i++) part[i] = larger(x[j * DTI_LANES + i], part[i]);
    for (int i = DTI_LANES; i < 4 * DTI_LANES; i++) part[i % DTI_LANES] = larger(part[i], part[i % DTI_LANES]);
    memcpy(&max, part, sizeof max);
    return max;
}

/* A row that has seen nothing yet has no largest score, and nothing to be multiplied. */
DTI_CLONES static void soften(const dti_strip *s)
{
    lanes sum = { { 0 } }, from, max;
    number *restrict scores = s->scores, *less = s->less, *total = s->sum;
    if (s->mask || s->seen) hide(s);
    max = find_largest(s);
    for (int i = 0; i < DTI_LANES; i++) from.of[i] = max.of[i] == -INFINITY ? 0 : max.of[i];
    for (int i = 0; i < DTI_LANES; i++) less[i] = exp_of(((number *)s->max)[i] - from.of[i]);
    for (int64_t j = 0; j < s->n; j++)
        for (int i = 0; i < DTI_LANES; i++) {
            number x = exp_of(scores[j * DTI_LANES + i] - from.of[i]);
            scores[j * DTI_LANES + i] = x;
            sum.of[i] += x;
        }
    for (int i = 0; i < DTI_LANES; i++) total[i] = total[i] * less[i] + sum.of[i];
    memcpy(s->max, &max, sizeof max);
}

static void close_rows(const void *max, int64_t n, void *sum, void *lse)
{
    const number *most = max;
    number *x = sum, *to = lse;
    for (int64_t i = 0; i < n; i++) {
        if (most[i] == -INFINITY) x[i] = 1;
        to[i] = (number)(most[i] + log((double)x[i]));
    }
}

DTI_CLONES static void blend(const dti_strip *s, const void *more, int64_t n, void *out)
{
    lanes less = lanes_at(s->less, 0);
    const number *restrict x = more;
    number *restrict y = out;
    integer seen[DTI_LANES];
    sight(s, seen);
    for (int64_t j = 0; j < n; j++)
        for (int i = 0; i < DTI_LANES; i++) {
            number blended = y[j * DTI_LANES + i] * less.of[i] + x[j * DTI_LANES + i];
            y[j * DTI_LANES + i] = seen[i] > 0 ? blended : y[j * DTI_LANES + i];
        }
}

/* ---- the way back ------------------------------------------------------------------------------------------------ */

/* What is not seen is 0 whatever comes back; so is a row that sees nothing at all. */
DTI_CLONES static void differ(const dti_strip *s)
{
    lanes lse = lanes_at(s->lse, 0), delta = lanes_at(s->delta, 0);
    number *restrict back = s->back, *restrict p = s->p, *restrict ds = s->ds;
    integer seen[DTI_LANES];
    sight(s, seen);
    for (int i = 0; i < DTI_LANES; i++) {
        seen[i] = lse.of[i] == -INFINITY ? 0 : seen[i];
        lse.of[i] = lse.of[i] == -INFINITY ? 0 : lse.of[i];
    }
    for (int64_t j = 0; j < s->n; j++) {
        lanes x = scores_of(s, seen, j);
        for (int i = 0; i < DTI_LANES; i++) {
            number by = exp_of(x.of[i] - lse.of[i]), change = by * (back[j * DTI_LANES + i] - delta.of[i]);
            by = j < seen[i] ? by : 0;
            change = j < seen[i] ? change : 0;
            p[j * DTI_ATTEND_ROWS + i] = by;
            ds[j * DTI_ATTEND_ROWS + i] = change;
            back[j * DTI_LANES + i] = change;
        }
    }
}

#endif
