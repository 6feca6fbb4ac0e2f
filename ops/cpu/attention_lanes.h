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
typedef integer bits __attribute__((vector_size(BYTES)));

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

DTI_INLINE void load(vec *x, const number *from) { memcpy(x, from, sizeof *x); }
DTI_INLINE void store(number *to, const vec *x) { memcpy(to, x, sizeof *x); }

/* x where it holds, y elsewhere. */
DTI_INLINE void choose(vec *to, const bits *where, const vec *x, const vec *y)
{
    *to = (vec)((*where & (bits)*x) | (~*where & (bits)*y));
}

/* Within a few units of the last digit; 0 and infinity as soon as they are near, NaN of NaN. */
DTI_INLINE void exp_of(vec *x)
{
    const vec none = { 0 }, least = none + lowest, most = none + highest;
    const bits base = (bits)(none + shift), less = (bits)(*x < least), more = (bits)(*x > most);
    vec within, r, p = none + series[0], shifted;
    choose(&within, &less, &least, x);
    choose(&within, &more, &most, &within);
    shifted = within * per_ln2 + shift;
    r = (within - (shifted - shift) * ln2_high) - (shifted - shift) * ln2_low;
    for (size_t i = 1; i < sizeof series / sizeof *series; i++) p = p * r + series[i];
    p = 1 + (r + r * r * p);
    p *= (vec)(((bits)shifted - base + BIAS) << MANTISSA);
    choose(x, &less, &none, &p);
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

static void spread(const void *from, int64_t n, double by, void *to, int64_t step)
{
    const number *x = from;
    number *y = to, times = (number)by;
    for (int64_t i = 0; i < n; i++) y[i * step] = x[i] * times;
}

static void collect(const void *from, int64_t step, int64_t n, double by, double over, void *to)
{
    const number *x = from;
    number *y = to, times = (number)by, parts = (number)over;
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
            for (int v = 0; v < vectors; v++) load(&b[v], panel + p * DTI_LANES + v * apart);
            for (int i = 0; i < rows; i++)
                for (int v = 0; v < vectors; v++) sum[i][v] += a[i * step + p] * b[v];
        }
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++) total[i][v] += sum[i][v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) store(out + i * DTI_LANES + v * out_apart, &total[i][v]);
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

/* The keys that lanes *at* .. see, as numbers of the vector's kind. */
DTI_INLINE void sight(const dti_strip *s, int at, bits *seen)
{
    for (int i = 0; i < WIDTH; i++) (*seen)[i] = (integer)(s->seen ? s->seen[at + i] : s->n);
}

/* Scores with the mask, -infinity where a key is not seen; the largest of them, NaN where there is one. */
DTI_INLINE void find_largest(const dti_strip *s, int at, vec *max)
{
    const vec none = { 0 }, hidden = none - INFINITY;
    bits seen, key = { 0 };
    sight(s, at, &seen);
    for (int64_t j = 0; j < s->n; j++) {
        number *place = (number *)s->scores + j * DTI_LANES + at;
        vec x, mask;
        load(&x, place);
        if (s->mask) {
            load(&mask, (const number *)s->mask + j * DTI_LANES + at);
            x += mask;
        }
        if (s->seen) {
            bits shown = (bits)(key < seen);
            choose(&x, &shown, &x, &hidden);
            key += 1;
        }
        if (s->mask || s->seen) store(place, &x);
        bits larger = (bits)(x > *max) | (bits)(x != x);
        choose(max, &larger, &x, max);
    }
}

/* A row that has seen nothing yet has no largest score, and nothing to be multiplied. */
DTI_INLINE void soften_part(const dti_strip *s, int at)
{
    const vec none = { 0 }, hidden = none - INFINITY;
    vec max, less, from, sum = none, before;
    load(&less, (number *)s->max + at);
    max = less;
    find_largest(s, at, &max);
    bits empty = (bits)(max == hidden);
    choose(&from, &empty, &none, &max);
    less -= from;
    exp_of(&less);
    for (int64_t j = 0; j < s->n; j++) {
        number *place = (number *)s->scores + j * DTI_LANES + at;
        vec x;
        load(&x, place);
        x -= from;
        exp_of(&x);
        store(place, &x);
        sum += x;
    }
    load(&before, (number *)s->sum + at);
    sum += before * less;
    store((number *)s->max + at, &max);
    store((number *)s->sum + at, &sum);
    store((number *)s->less + at, &less);
}

DTI_CLONES static void soften(const dti_strip *s)
{
    for (int at = 0; at < DTI_LANES; at += WIDTH) soften_part(s, at);
}

DTI_INLINE void blend_part(const dti_strip *s, const number *more, int64_t n, number *out, int at)
{
    const bits none = { 0 };
    vec less;
    bits seen;
    sight(s, at, &seen);
    load(&less, (const number *)s->less + at);
    seen = (bits)(seen > none);
    for (int64_t i = 0; i < n; i++) {
        vec x, y;
        load(&x, out + i * DTI_LANES + at);
        load(&y, more + i * DTI_LANES + at);
        y += x * less;
        choose(&x, &seen, &y, &x);
        store(out + i * DTI_LANES + at, &x);
    }
}

DTI_CLONES static void blend(const dti_strip *s, const void *more, int64_t n, void *out)
{
    for (int at = 0; at < DTI_LANES; at += WIDTH) blend_part(s, more, n, out, at);
}

/* ---- the way back ------------------------------------------------------------------------------------------------ */

/* What is not seen is 0 whatever comes back; so is a row that sees nothing at all. */
DTI_INLINE void differ_part(const dti_strip *s, int at)
{
    const vec none = { 0 }, hidden = none - INFINITY;
    vec lse, delta;
    bits seen, key = { 0 };
    sight(s, at, &seen);
    load(&lse, (const number *)s->lse + at);
    load(&delta, (const number *)s->delta + at);
    bits sees = (bits)(lse != hidden);
    choose(&lse, &sees, &lse, &none);
    for (int64_t j = 0; j < s->n; j++, key += 1) {
        number *back = (number *)s->back + j * DTI_LANES + at;
        vec p, ds, mask;
        load(&p, (const number *)s->scores + j * DTI_LANES + at);
        load(&ds, back);
        if (s->mask) {
            load(&mask, (const number *)s->mask + j * DTI_LANES + at);
            p += mask;
        }
        p -= lse;
        exp_of(&p);
        choose(&p, &sees, &p, &none);
        ds = p * (ds - delta);
        if (s->seen) {
            bits shown = (bits)(key < seen);
            choose(&p, &shown, &p, &none);
            choose(&ds, &shown, &ds, &none);
        }
        store(back, &ds);
        store((number *)s->p + j * DTI_ATTEND_ROWS + at, &p);
        store((number *)s->ds + j * DTI_ATTEND_ROWS + at, &ds);
    }
}

DTI_CLONES static void differ(const dti_strip *s)
{
    for (int at = 0; at < DTI_LANES; at += WIDTH) differ_part(s, at);
}

#endif
