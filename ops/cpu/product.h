/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of two matrices plus a third. The reference sums in f32 for bf16 and f16, in i64 for small integers, else
 * in the dtype, k ascending, one accumulator an element: its bits depend on its row of a and its column of b alone. */
#ifndef DTI_OPS_CPU_PRODUCT_H
#define DTI_OPS_CPU_PRODUCT_H

#include <dtensor/context.h>

typedef struct dti_product {           /* c[i][j] = sum over k of a[i][k] b[k][j] + add[i][j]; all of one dtype    */
    dt_dtype dtype;
    int64_t m, n, k;
    const void *a, *b, *add;           /* add NULL: nothing is added                                               */
    bool transposed;                   /* b is [n, k], row-major; else [k, n]                                      */
    bool a_transposed;                 /* a is [k, m], row-major; else [m, k]                                      */
    int64_t add_row, add_column;       /* its steps, in elements                                                   */
    void *c;                           /* row-major                                                                */
    int ranks;                         /* of the run: a library's threads are shared among them                    */
    dt_context *ctx;                   /* whose room it takes                                                      */
} dti_product;

/* The reference. false: no memory. */
bool dti_product_run(const dti_product *p);
/* By a library, where there is one that does it better (product_onednn.c). false: nothing was done. Its bits may differ
 * from the reference's, and for few rows or columns by their number. */
bool dti_product_fast(const dti_product *p);

/* product_tile.c. One tile: rows (1 .. DTI_TILE_ROWS) of a, each of k numbers, times a panel [k, DTI_LANES] of b; all
 * in the dtype that sums. out: [rows, DTI_LANES]. */
enum { DTI_TILE_ROWS = 6 };
void dti_tile_f64(const double *const *a, const double *panel, int64_t k, int rows, double *out);
void dti_tile_f32(const float *const *a, const float *panel, int64_t k, int rows, float *out);
void dti_tile_i64(const int64_t *const *a, const int64_t *panel, int64_t k, int rows, int64_t *out);

#endif
