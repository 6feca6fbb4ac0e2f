/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention and its gradient share. Rows are the queries of one batch and one group of heads, (position, head in
 * the group), that read the same keys; they are worked on in blocks of rows and of keys, in f64, padded with zeros.
 * Invariant: what is computed for a row hangs on its place in no block. */
#ifndef DTI_OPS_CPU_ATTENTION_H
#define DTI_OPS_CPU_ATTENTION_H

#include <dtensor/op.h>

enum { DTI_ATTEND = 64 };              /* rows, and keys, of a block                                               */

typedef struct dti_heads {
    int64_t b, s, t, groups, per_group, d; /* sizes of this rank's part: heads are groups of per_group             */
    int64_t rows;                      /* s * per_group                                                            */
    int64_t width;                     /* d in whole lanes                                                         */
    double scale;
    bool causal;
    const dt_part *mask;               /* NULL: none                                                               */
    int64_t *position;                 /* in the whole tensor, of each of s; ascending                             */
} dti_heads;

/* q, k are operands 0 and 1. false: no memory, the error is set. */
bool dti_heads_begin(const dt_call *call, int mask, dti_heads *heads);
void dti_heads_end(dti_heads *heads);

/* Rows first .. first + n - 1 of batch b and group g, of x as q: [n, width]; and one of them back. */
void dti_heads_rows(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double *to);
void dti_heads_put_row(const dti_heads *h, const double *from, const dt_part *x, int64_t b, int64_t g, int64_t row);
/* The number of a row in x of [b, s, heads]. */
int64_t dti_heads_index(const dti_heads *h, int64_t b, int64_t g, int64_t row);
/* Keys first .. first + n - 1, of x as k: [n, width]; and back. */
void dti_heads_keys(const dti_heads *h, const dt_part *x, int64_t b, int64_t g, int64_t first, int64_t n, double *to);
void dti_heads_put_keys(const dti_heads *h, const double *from, const dt_part *x, int64_t b, int64_t g, int64_t first,
                        int64_t n);
/* [n, width] as [d, DTI_ATTEND]. */
void dti_heads_turn(const dti_heads *h, const double *keys, int64_t n, double *to);
/* How many of n keys from `first` on a row sees: they are the first ones. */
int64_t dti_heads_seen(const dti_heads *h, int64_t row, int64_t first, int64_t n);
/* The first row from `row` on that sees a key. */
int64_t dti_heads_first_row(const dti_heads *h, int64_t key, int64_t row);
/* Scores of one row and a block of keys, turned: scaled, the mask added to the first n. */
void dti_heads_scores(const dti_heads *h, const double *q, const double *turned, int64_t row, int64_t first, int64_t n,
                      double *scores);
/* out[i] += w[0] x[0][i] + .. + w[n - 1] x[n - 1][i] for i below width, which is whole lanes. */
void dti_heads_combine(const double *w, int64_t n, const double *x, int64_t stride, int64_t width, double *out);

#endif
