/* SPDX-License-Identifier: Apache-2.0
 *
 * Two numbers of a sum dtype made one, and one scaled. Integers wrap; max and min give a NaN where there is one, the
 * first of two, and order -0 below +0. */
#include <string.h>

#include "core/clones.h"
#include "core/number_parts.h"

/* ---- one number -------------------------------------------------------------------------------------------------- */

static inline uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Equal numbers differ at most in the sign of zero. What no comparison holds for has a NaN. */
static inline float f32_max(float a, float b)
{
    float larger = a > b ? a : b, same = f32_of(f32_bits(a) & f32_bits(b));
    return a != a ? a : a == b ? same : larger;
}

static inline float f32_min(float a, float b)
{
    float smaller = a < b ? a : b, same = f32_of(f32_bits(a) | f32_bits(b));
    return a != a ? a : a == b ? same : smaller;
}

static inline double f64_max(double a, double b)
{
    double larger = a > b ? a : b, same = f64_of(f64_bits(a) & f64_bits(b));
    return a != a ? a : a == b ? same : larger;
}

static inline double f64_min(double a, double b)
{
    double smaller = a < b ? a : b, same = f64_of(f64_bits(a) | f64_bits(b));
    return a != a ? a : a == b ? same : smaller;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

DTI_CLONES static void sum_f64(void *out, const void *left, const void *right, size_t blocks)
{
    double *to = out;
    const double *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] + b[i];
}

DTI_CLONES static void sum_f32(void *out, const void *left, const void *right, size_t blocks)
{
    float *to = out;
    const float *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] + b[i];
}

/* Unsigned, so that it wraps; a signed number may be read as the unsigned of its bits. */
DTI_CLONES static void sum_i64(void *out, const void *left, const void *right, size_t blocks)
{
    uint64_t *to = out;
    const uint64_t *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] + b[i];
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

DTI_CLONES static void prod_f64(void *out, const void *left, const void *right, size_t blocks)
{
    double *to = out;
    const double *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] * b[i];
}

DTI_CLONES static void prod_f32(void *out, const void *left, const void *right, size_t blocks)
{
    float *to = out;
    const float *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] * b[i];
}

DTI_CLONES static void prod_i64(void *out, const void *left, const void *right, size_t blocks)
{
    uint64_t *to = out;
    const uint64_t *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] * b[i];
}

/* ---- max and min ------------------------------------------------------------------------------------------------- */

DTI_CLONES static void max_f64(void *out, const void *left, const void *right, size_t blocks)
{
    double *to = out;
    const double *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = f64_max(a[i], b[i]);
}

DTI_CLONES static void max_f32(void *out, const void *left, const void *right, size_t blocks)
{
    float *to = out;
    const float *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = f32_max(a[i], b[i]);
}

DTI_CLONES static void max_i64(void *out, const void *left, const void *right, size_t blocks)
{
    int64_t *to = out;
    const int64_t *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] > b[i] ? a[i] : b[i];
}

DTI_CLONES static void min_f64(void *out, const void *left, const void *right, size_t blocks)
{
    double *to = out;
    const double *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = f64_min(a[i], b[i]);
}

DTI_CLONES static void min_f32(void *out, const void *left, const void *right, size_t blocks)
{
    float *to = out;
    const float *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = f32_min(a[i], b[i]);
}

DTI_CLONES static void min_i64(void *out, const void *left, const void *right, size_t blocks)
{
    int64_t *to = out;
    const int64_t *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = a[i] < b[i] ? a[i] : b[i];
}

/* ---- scale ------------------------------------------------------------------------------------------------------- */

DTI_CLONES static void scale_f64(void *sum, size_t blocks, int64_t multiply, int64_t divide)
{
    double *a = sum, by = (double)multiply, over = (double)divide;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) a[i] = a[i] * by / over;
}

DTI_CLONES static void scale_f32(void *sum, size_t blocks, int64_t multiply, int64_t divide)
{
    float *a = sum, by = (float)multiply, over = (float)divide;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) a[i] = a[i] * by / over;
}

DTI_CLONES static void scale_i64(void *sum, size_t blocks, int64_t multiply, int64_t divide)
{
    int64_t *a = sum;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) {
        uint64_t product = (uint64_t)a[i] * (uint64_t)multiply;
        int64_t number;
        memcpy(&number, &product, sizeof number);
        a[i] = number / divide;
    }
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

typedef struct sum_row { dti_combine_fn combine[DTI_COMBINE_COUNT]; dti_scale_fn scale; } sum_row;

static const sum_row sums[DT_DTYPE_COUNT] = {
    [DT_F64] = { { [DTI_COMBINE_SUM] = sum_f64, [DTI_COMBINE_MAX] = max_f64, [DTI_COMBINE_MIN] = min_f64,
                   [DTI_COMBINE_PROD] = prod_f64 }, scale_f64 },
    [DT_F32] = { { [DTI_COMBINE_SUM] = sum_f32, [DTI_COMBINE_MAX] = max_f32, [DTI_COMBINE_MIN] = min_f32,
                   [DTI_COMBINE_PROD] = prod_f32 }, scale_f32 },
    [DT_I64] = { { [DTI_COMBINE_SUM] = sum_i64, [DTI_COMBINE_MAX] = max_i64, [DTI_COMBINE_MIN] = min_i64,
                   [DTI_COMBINE_PROD] = prod_i64 }, scale_i64 },
};

dti_combine_fn dti_number_combine(dt_dtype sum, dti_combine combine) { return sums[sum].combine[combine]; }

dti_scale_fn dti_number_scale(dt_dtype sum) { return sums[sum].scale; }
