/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of indices along one dim: a short ascending list of intervals that do not touch. Lists longer than a few go to
 * the heap; when memory runs out the set is `lost` and stays so, to be asked for once at the end. */
#ifndef DTI_SET_H
#define DTI_SET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dti_interval { int64_t lo, hi; } dti_interval; /* [lo, hi), lo < hi                                 */

enum { DTI_SET_FEW = 4 };

typedef struct dti_set {
    int n, capacity;               /* capacity: 0 while the intervals are in few                                   */
    bool lost;
    dti_interval *heap;
    dti_interval few[DTI_SET_FEW];
} dti_set;

static inline const dti_interval *dti_set_at(const dti_set *set) { return set->capacity ? set->heap : set->few; }

/* Make it empty; a set must be started once before use, and ended. */
static inline void dti_set_init(dti_set *set)
{
    set->n = 0;
    set->capacity = 0;
    set->lost = false;
    set->heap = 0;
}

static inline void dti_set_clear(dti_set *set) { set->n = 0; }
void dti_set_fini(dti_set *set);

/* Add [lo, hi) behind all that is there, joining what touches; an empty interval adds nothing. */
void dti_set_append(dti_set *set, int64_t lo, int64_t hi);
/* How many indices it has. */
int64_t dti_set_count(const dti_set *set);
/* How many of its indices come before one of them; -1: it does not have that one. */
int64_t dti_set_find(const dti_set *set, int64_t index);
/* How many indices two sets share. */
int64_t dti_set_shared(const dti_set *a, const dti_set *b);
/* out = a and b; out is another set. */
void dti_set_intersect(const dti_set *a, const dti_set *b, dti_set *out);
/* out = a without b; out is another set. */
void dti_set_subtract(const dti_set *a, const dti_set *b, dti_set *out);
/* Sort the intervals and join what touches: for sets made of disjoint parts in any order. */
void dti_set_sort(dti_set *set);
/* Add [lo, hi) in any order; dti_set_sort must follow. */
void dti_set_scatter(dti_set *set, int64_t lo, int64_t hi);
/* out = { outer * n + i : outer in [first, last), i in inner }, where inner is a set of [0, n). */
void dti_set_repeat(const dti_set *inner, int64_t n, int64_t first, int64_t last, dti_set *out);

#endif
