/* SPDX-License-Identifier: Apache-2.0
 *
 * Interval lists. Every operation is one pass over its operands. */
#include "placements/set.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void dti_set_fini(dti_set *set)
{
    if (set->capacity) free(set->heap);
    dti_set_init(set);
}

static dti_interval *intervals(dti_set *set) { return set->capacity ? set->heap : set->few; }

static bool set_grow(dti_set *set)
{
    bool fits = set->capacity <= INT_MAX / 2;
    int capacity = !fits ? 0 : set->capacity ? 2 * set->capacity : 4 * DTI_SET_FEW;
    dti_interval *heap = fits ? realloc(set->heap, (size_t)capacity * sizeof *heap) : NULL;
    if (!heap) {
        set->lost = true;
        return false;
    }
    if (!set->capacity) memcpy(heap, set->few, sizeof set->few);
    set->heap = heap;
    set->capacity = capacity;
    return true;
}

void dti_set_scatter(dti_set *set, int64_t lo, int64_t hi)
{
    if (lo >= hi) return;
    if (set->n == (set->capacity ? set->capacity : DTI_SET_FEW) && !set_grow(set)) return;
    intervals(set)[set->n++] = (dti_interval){ lo, hi };
}

void dti_set_append(dti_set *set, int64_t lo, int64_t hi)
{
    if (lo >= hi) return;
    dti_interval *at = intervals(set);
    if (set->n && at[set->n - 1].hi == lo) at[set->n - 1].hi = hi;
    else dti_set_scatter(set, lo, hi);
}

int64_t dti_set_count(const dti_set *set)
{
    const dti_interval *at = dti_set_at(set);
    int64_t count = 0;
    for (int i = 0; i < set->n; i++) count += at[i].hi - at[i].lo;
    return count;
}

int64_t dti_set_find(const dti_set *set, int64_t index)
{
    const dti_interval *at = dti_set_at(set);
    int64_t before = 0;
    for (int i = 0; i < set->n; i++) {
        if (index >= at[i].lo && index < at[i].hi) return before + index - at[i].lo;
        before += at[i].hi - at[i].lo;
    }
    return -1;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first interval that ends behind an index. */
static int first_behind(const dti_set *set, int64_t index)
{
    const dti_interval *at = dti_set_at(set);
    int lo = 0, hi = set->n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (at[middle].hi > index) hi = middle;
        else lo = middle + 1;
    }
    return lo;
}

int64_t dti_set_shared(const dti_set *a, const dti_set *b)
{
    const dti_interval *x = dti_set_at(a), *y = dti_set_at(b);
    int64_t count = 0;
    if (!a->n || !b->n) return 0;
    for (int i = first_behind(a, y[0].lo), j = first_behind(b, x[0].lo); i < a->n && j < b->n;) {
        int64_t lo = later(x[i].lo, y[j].lo), hi = sooner(x[i].hi, y[j].hi);
        if (lo < hi) count += hi - lo;
        if (x[i].hi < y[j].hi) i++;
        else j++;
    }
    return count;
}

void dti_set_intersect(const dti_set *a, const dti_set *b, dti_set *out)
{
    const dti_interval *x = dti_set_at(a), *y = dti_set_at(b);
    dti_set_clear(out);
    out->lost |= a->lost | b->lost;
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        dti_set_append(out, later(x[i].lo, y[j].lo), sooner(x[i].hi, y[j].hi));
        if (x[i].hi < y[j].hi) i++;
        else j++;
    }
}

void dti_set_subtract(const dti_set *a, const dti_set *b, dti_set *out)
{
    const dti_interval *x = dti_set_at(a), *y = dti_set_at(b);
    dti_set_clear(out);
    out->lost |= a->lost | b->lost;
    for (int i = 0, j = 0; i < a->n; i++) {
        int64_t lo = x[i].lo;
        while (j < b->n && y[j].hi <= lo) j++;
        for (int k = j; k < b->n && y[k].lo < x[i].hi; k++) {
            dti_set_append(out, lo, y[k].lo);
            lo = y[k].hi;
        }
        dti_set_append(out, lo, x[i].hi);
    }
}

static int by_begin(const void *a, const void *b)
{
    const dti_interval *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

void dti_set_sort(dti_set *set)
{
    dti_interval *at = intervals(set);
    bool sorted = true;
    for (int i = 1; i < set->n && sorted; i++) sorted = at[i - 1].hi < at[i].lo;
    if (sorted) return;
    qsort(at, (size_t)set->n, sizeof *at, by_begin);
    int n = 0;
    for (int i = 0; i < set->n; i++) {
        if (n && at[n - 1].hi == at[i].lo) at[n - 1].hi = at[i].hi;
        else at[n++] = at[i];
    }
    set->n = n;
}

void dti_set_repeat(const dti_set *inner, int64_t n, int64_t first, int64_t last, dti_set *out)
{
    const dti_interval *at = dti_set_at(inner);
    dti_set_clear(out);
    out->lost |= inner->lost;
    if (inner->n == 1 && at[0].lo == 0 && at[0].hi == n) {
        dti_set_append(out, first * n, last * n);
        return;
    }
    for (int64_t outer = first; outer < last && !out->lost && inner->n; outer++)
        for (int i = 0; i < inner->n; i++) dti_set_append(out, outer * n + at[i].lo, outer * n + at[i].hi);
}
