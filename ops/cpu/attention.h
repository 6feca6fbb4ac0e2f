/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention and its gradient share. Rows are the queries of one batch and one group of heads, (position, head in
 * the group), that read the same keys. They are worked on in strips: a row is a lane, and what is known of a strip and
 * n keys, or n elements of a head, is a panel [n, DTI_LANES]. All of it is in the dtype that sums.
 * Invariant: what is computed for a row hangs neither on its lane nor on its strip. */
#ifndef DTI_OPS_CPU_ATTENTION_H
#define DTI_OPS_CPU_ATTENTION_H

#include <dtensor/op.h>

#include "core/storage.h"
#include "ops/cpu/vector.h"

enum {
    DTI_ATTEND_KEYS = 96,              /* of a block                                                               */
    DTI_ATTEND_STRIPS = 4,             /* that meet a block of keys in turn                                        */
    DTI_ATTEND_ROWS = DTI_ATTEND_STRIPS * DTI_LANES
};

/* ---- steps (attention_f32.c, attention_f64.c) -------------------------------------------------------------------- */

typedef struct dti_strip {             /* of rows, and a block of keys. Arrays are of the dtype that sums          */
    int64_t n;                         /* keys                                                                     */
    const int64_t *seen;               /* how many of them each row sees: the first ones; NULL: all see all        */
    const void *mask;                  /* a panel, added to scores; NULL: none                                     */
    void *scores;                      /* a panel                                                                  */
    void *max, *sum, *less;            /* soften: of each row, and what was summed before is to be multiplied by   */
    const void *lse, *delta;           /* differ: of each row                                                      */
    void *back;                        /* a panel                                                                  */
    void *p, *ds;                      /* [n, DTI_ATTEND_ROWS]                                                     */
} dti_strip;

typedef struct dti_panels {            /* out[i] = sum of a[i * step + j] panel[j] over j < k, i < n                  */
    const void *a;
    int64_t step, n, k;
    const void *panel;                 /* count of them, apart by so many numbers; and so are the panels of out    */
    void *out;
    int64_t count, apart, out_apart;
} dti_panels;

typedef struct dti_attend_steps {
    dt_dtype dtype;
    size_t bytes;
    void (*product)(const dti_panels *p);
    /* to[i * step] = from[i] * by, and to[i] = from[i * step] * by / *over; NULL: 1. */
    void (*spread)(const void *from, int64_t n, double by, void *to, int64_t step);
    void (*collect)(const void *from, int64_t step, int64_t n, double by, const void *over, void *to);
    /* to[i] += from[i * step]. */
    void (*add)(const void *from, int64_t step, int64_t n, void *to);
    bool (*is_finite)(const void *x, int64_t n);
    /* More keys for the rows: scores become their exp, less the largest so far. */
    void (*soften)(const dti_strip *strip);
    /* Of n rows: lse = max + log(sum); a row that has seen no key has the sum 1 from then on. */
    void (*close)(const void *max, int64_t n, void *sum, void *lse);
    /* out = out * less + more, panels of n, for rows that see a key. */
    void (*blend)(const dti_strip *strip, const void *more, int64_t n, void *out);
    /* Scores, and what comes back to probabilities, become p and what comes back to scores, in both layouts. */
    void (*differ)(const dti_strip *strip);
} dti_attend_steps;

extern const dti_attend_steps dti_attend_f32, dti_attend_f64;

/* ---- heads ------------------------------------------------------------------------------------------------------- */

typedef struct dti_heads {
    const dti_attend_steps *steps;
    int64_t b, s, t, groups, per_group, d; /* sizes of this rank's part: heads are groups of per_group             */
    int64_t rows, blocks;              /* s * per_group; of keys                                                   */
    double scale;
    const dt_part *mask;               /* NULL: none                                                               */
    int64_t *limit;                    /* of each of s: the keys before this one it sees; ascending                */
} dti_heads;

/* q, k are operands 0 and 1. false: no memory, the error is set. */
bool dti_heads_begin(const dt_call *call, int mask, dti_heads *heads);
void dti_heads_end(dti_heads *heads);

typedef struct dti_heads_array { void **to; int64_t n; } dti_heads_array;

/* Room for so many numbers each, in whole lanes. NULL and the error: no memory. */
dti_storage *dti_heads_room(dt_context *ctx, const dti_heads *h, const dti_heads_array *arrays, int count);
/* The number at *at* of an array of the dtype that sums. */
void *dti_heads_at(const dti_heads *h, const void *array, int64_t at);

/* The number of a row in x of [b, s, heads], of a key in x of [b, t, groups]. */
int64_t dti_heads_row(const dti_heads *h, int64_t b, int64_t g, int64_t row);
int64_t dti_heads_key(const dti_heads *h, int64_t b, int64_t g, int64_t key);
/* n elements of x from element *at* on, and n numbers back. */
void dti_heads_get(const dti_heads *h, const dt_part *x, int64_t at, int64_t n, void *to);
void dti_heads_put(const dti_heads *h, const void *from, const dt_part *x, int64_t at, int64_t n);

/* Keys of x as [t, d]; as blocks, [d, DTI_ATTEND_KEYS] each. *row*: room for d numbers. */
void dti_heads_keys(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, void *to);
void dti_heads_blocks(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, void *row, void *to);
/* n rows of x, times by, as strips: panels of d; what is beside them is 0. */
void dti_heads_strips(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double by,
                      void *row, void *to);
/* A strip's mask for a block of keys: a panel. */
void dti_heads_mask(const dti_heads *h, int64_t row, int64_t rows, int64_t first, int64_t n, void *line, void *to);
/* How many of n keys from `first` on each row of a strip sees; beside them, all. The last row sees the most. */
typedef enum dti_sight { DTI_SEES_NONE, DTI_SEES_SOME, DTI_SEES_ALL } dti_sight;
dti_sight dti_heads_see(const dti_heads *h, int64_t row, int64_t rows, int64_t first, int64_t n,
                        int64_t seen[DTI_LANES]);
/* How many a row sees. */
int64_t dti_heads_seen(const dti_heads *h, int64_t row, int64_t first, int64_t n);

#endif
