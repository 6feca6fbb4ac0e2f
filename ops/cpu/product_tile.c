/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of a product, gathered in registers. A tile of fewer rows is the same loop with fewer accumulators: each
 * element gets the same instructions, in the same order of k. Vectors are of the compiler's own kind, as wide as the
 * widest machine's; narrower machines take them in parts. */
#include <string.h>

#include "ops/cpu/product.h"
#include "ops/cpu/vector.h"

enum { BYTES = 64 };

typedef float f32s __attribute__((vector_size(BYTES)));
typedef double f64s __attribute__((vector_size(BYTES)));
typedef uint64_t u64s __attribute__((vector_size(BYTES)));

DTI_INLINE void tile_f32(const float *const *a, const float *panel, int64_t k, int rows, float *out)
{
    f32s sum[DTI_TILE_ROWS], b;
    for (int i = 0; i < rows; i++) sum[i] = (f32s){ 0 };
    for (int64_t p = 0; p < k; p++) {
        memcpy(&b, panel + p * DTI_LANES, sizeof b);
        for (int i = 0; i < rows; i++) sum[i] += a[i][p] * b;
    }
    memcpy(out, sum, (size_t)rows * sizeof *sum);
}

DTI_INLINE void tile_f64(const double *const *a, const double *panel, int64_t k, int rows, double *out)
{
    f64s sum[DTI_TILE_ROWS][2], b[2];
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (f64s){ 0 };
    for (int64_t p = 0; p < k; p++) {
        memcpy(b, panel + p * DTI_LANES, sizeof b);
        for (int i = 0; i < rows; i++) {
            sum[i][0] += a[i][p] * b[0];
            sum[i][1] += a[i][p] * b[1];
        }
    }
    memcpy(out, sum, (size_t)rows * sizeof *sum);
}

/* Unsigned, so that it wraps. */
DTI_INLINE void tile_i64(const int64_t *const *a, const int64_t *panel, int64_t k, int rows, int64_t *out)
{
    u64s sum[DTI_TILE_ROWS][2], b[2];
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (u64s){ 0 };
    for (int64_t p = 0; p < k; p++) {
        memcpy(b, panel + p * DTI_LANES, sizeof b);
        for (int i = 0; i < rows; i++) {
            sum[i][0] += (uint64_t)a[i][p] * b[0];
            sum[i][1] += (uint64_t)a[i][p] * b[1];
        }
    }
    memcpy(out, sum, (size_t)rows * sizeof *sum);
}

DTI_CLONES void dti_tile_f32(const float *const *a, const float *panel, int64_t k, int rows, float *out)
{
    switch (rows) {
    case 1: tile_f32(a, panel, k, 1, out); break;
    case 2: tile_f32(a, panel, k, 2, out); break;
    case 3: tile_f32(a, panel, k, 3, out); break;
    case 4: tile_f32(a, panel, k, 4, out); break;
    case 5: tile_f32(a, panel, k, 5, out); break;
    default: tile_f32(a, panel, k, DTI_TILE_ROWS, out); break;
    }
}

DTI_CLONES void dti_tile_f64(const double *const *a, const double *panel, int64_t k, int rows, double *out)
{
    switch (rows) {
    case 1: tile_f64(a, panel, k, 1, out); break;
    case 2: tile_f64(a, panel, k, 2, out); break;
    case 3: tile_f64(a, panel, k, 3, out); break;
    case 4: tile_f64(a, panel, k, 4, out); break;
    case 5: tile_f64(a, panel, k, 5, out); break;
    default: tile_f64(a, panel, k, DTI_TILE_ROWS, out); break;
    }
}

DTI_CLONES void dti_tile_i64(const int64_t *const *a, const int64_t *panel, int64_t k, int rows, int64_t *out)
{
    switch (rows) {
    case 1: tile_i64(a, panel, k, 1, out); break;
    case 2: tile_i64(a, panel, k, 2, out); break;
    case 3: tile_i64(a, panel, k, 3, out); break;
    case 4: tile_i64(a, panel, k, 4, out); break;
    case 5: tile_i64(a, panel, k, 5, out); break;
    default: tile_i64(a, panel, k, DTI_TILE_ROWS, out); break;
    }
}
