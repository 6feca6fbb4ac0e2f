/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of numbers of any dtype: filled, converted, combined. The reference for what sums mean: bf16 and f16 are
 * summed in f32, small integers and bool in i64, contributions in the order given; max and min propagate NaN and order
 * -0 below +0. The same bits for the same input, whatever the length and the alignment; arrays are aligned as their
 * elements.
 *
 * Conversions: to floats to nearest even, in one rounding; floats to integers truncated and saturated, NaN is 0;
 * integers to integers keep their low bits, so sums of them wrap; to bool: != 0, so a sum of bools is their or. */
#ifndef DTI_NUMBER_H
#define DTI_NUMBER_H

#include <dtensor/types.h>

typedef enum dti_combine {
    DTI_COMBINE_SUM, DTI_COMBINE_MAX, DTI_COMBINE_MIN, DTI_COMBINE_PROD, DTI_COMBINE_COUNT
} dti_combine;

/* The dtype in which a dtype is summed: f32 for bf16 and f16, i64 for the small integers and bool, else itself. */
dt_dtype dti_sum_dtype(dt_dtype dtype);
/* One number as a double, and a double as a number. */
double dti_number_get(dt_dtype dtype, const void *value);
void dti_number_set(dt_dtype dtype, double value, void *number);
/* n times the same number; the identity of a combination (sum: -0, so that adding it changes no bit; max and min:
 * an infinity, or the least and largest integer). */
void dti_numbers_fill(dt_dtype dtype, double value, void *numbers, int64_t n);
void dti_numbers_identity(dt_dtype dtype, dti_combine combine, void *numbers, int64_t n);
/* n numbers in another dtype; equal dtypes copy bytes. The arrays are apart. */
void dti_numbers_convert(dt_dtype from, const void *numbers, dt_dtype to, void *out, int64_t n);
/* out[i] = sources[0][i] combined with sources[1][i] .. sources[count - 1][i], in this order, in dti_sum_dtype, then
 * converted; count is at least 1. out may be one of the sources where the dtypes are equal, else it is apart. */
void dti_numbers_combine(dti_combine combine, dt_dtype from, const void *const *sources, int count, dt_dtype to,
                         void *out, int64_t n);
/* sum[i] = sum[i] combined with numbers[i]; first: sum[i] = numbers[i]. sum is of dti_sum_dtype(from). */
void dti_numbers_accumulate(dti_combine combine, bool first, dt_dtype from, const void *numbers, void *sum, int64_t n);
/* numbers[i] = numbers[i] * multiply / divide, in dti_sum_dtype, integers truncated; divide is at least 1. */
void dti_numbers_scale(dt_dtype dtype, void *numbers, int64_t n, int64_t multiply, int64_t divide);

#endif
