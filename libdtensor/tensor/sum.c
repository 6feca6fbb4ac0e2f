/* SPDX-License-Identifier: Apache-2.0
 *
 * One element after the other: its bits in canonical form, hashed with its index. Floats are looked at as bits, so
 * nothing here rounds. */
#include "tensor/sum.h"

#include <string.h>

#include "core/table.h"

static inline uint64_t hash_of(uint64_t index, uint64_t bits) { return dti_hash_mix(dti_hash_mix(index, 1), bits); }

/* All NaNs made one; infinity: the bits of the positive one, under which the sign is the only bit not used. */
static inline uint64_t one_nan(uint64_t bits, uint64_t sign, uint64_t infinity)
{
    return (bits & ~sign) > infinity ? infinity + 1 : bits;
}

/* ---- a loop for each width and kind ------------------------------------------------------------------------------ */

typedef uint64_t (*checksum_fn)(uint64_t first, size_t n, const void *values, uint64_t infinity);

static uint64_t sum_float64(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const unsigned char *at = values;
    uint64_t sum = 0, bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, at + i * sizeof bits, sizeof bits);
        sum += hash_of(first + i, one_nan(bits, UINT64_C(1) << 63, infinity));
    }
    return sum;
}

static uint64_t sum_float32(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const unsigned char *at = values;
    uint64_t sum = 0;
    uint32_t bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, at + i * sizeof bits, sizeof bits);
        sum += hash_of(first + i, one_nan(bits, UINT64_C(1) << 31, infinity));
    }
    return sum;
}

static uint64_t sum_float16(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const unsigned char *at = values;
    uint64_t sum = 0;
    uint16_t bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, at + i * sizeof bits, sizeof bits);
        sum += hash_of(first + i, one_nan(bits, UINT64_C(1) << 15, infinity));
    }
    return sum;
}

static uint64_t sum_i64(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const int64_t *at = values;
    uint64_t sum = infinity;
    for (size_t i = 0; i < n; i++) sum += hash_of(first + i, (uint64_t)at[i]);
    return sum;
}

static uint64_t sum_i32(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const int32_t *at = values;
    uint64_t sum = infinity;
    for (size_t i = 0; i < n; i++) sum += hash_of(first + i, (uint64_t)at[i]);
    return sum;
}

static uint64_t sum_u8(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const uint8_t *at = values;
    uint64_t sum = infinity;
    for (size_t i = 0; i < n; i++) sum += hash_of(first + i, at[i]);
    return sum;
}

static uint64_t sum_bool(uint64_t first, size_t n, const void *values, uint64_t infinity)
{
    const uint8_t *at = values;
    uint64_t sum = infinity;
    for (size_t i = 0; i < n; i++) sum += hash_of(first + i, at[i] != 0);
    return sum;
}

typedef struct dtype_row { checksum_fn sum; uint64_t infinity; } dtype_row; /* infinity: 0 where there is none     */

static const dtype_row dtypes[DT_DTYPE_COUNT] = {
    [DT_F64] = { sum_float64, UINT64_C(0x7ff0000000000000) },
    [DT_F32] = { sum_float32, 0x7f800000 },
    [DT_BF16] = { sum_float16, 0x7f80 },
    [DT_F16] = { sum_float16, 0x7c00 },
    [DT_I64] = { sum_i64, 0 },
    [DT_I32] = { sum_i32, 0 },
    [DT_U8] = { sum_u8, 0 },
    [DT_BOOL] = { sum_bool, 0 },
};

uint64_t dti_checksum(dt_dtype dtype, int64_t first, int64_t count, const void *values)
{
    return dtypes[dtype].sum((uint64_t)first, (size_t)count, values, dtypes[dtype].infinity);
}
