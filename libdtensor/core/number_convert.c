/* SPDX-License-Identifier: Apache-2.0
 *
 * One dtype as another: every dtype is loaded as its sum dtype, exactly, and stored from there with one rounding, to
 * nearest even. Integers from integers wrap, from floats are truncated and saturated with NaN as 0; bool is != 0; a NaN
 * stays one and is quiet in bf16 and f16. Nothing is added here. */
#include <string.h>

#include "core/clones.h"
#include "core/number_parts.h"

/* ---- one number -------------------------------------------------------------------------------------------------- */

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Without a branch: one around arithmetic that could trap would keep the loop from becoming vectors. */
static inline uint32_t choose(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0 - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline float from_bf16(uint16_t number) { return of_bits((uint32_t)number << 16); }

static inline uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/* Exponents are moved to f32's. The subnormal ones become numbers above 2^-14, which is then taken away. */
static inline float from_f16(uint16_t number)
{
    uint32_t sign = (uint32_t)(number & 0x8000) << 16, magnitude = (uint32_t)(number & 0x7fff) << 13;
    uint32_t large = magnitude + (224u << 23), normal = magnitude + (112u << 23);
    uint32_t small = bits_of(of_bits(magnitude + (113u << 23)) - of_bits(113u << 23));
    uint32_t finite = choose(magnitude < 0x400u << 13, small, normal);
    return of_bits(choose(magnitude >= 0x7c00u << 13, large, finite) | sign);
}

/* Below 2^-14 adding 1/2 moves the bits to be kept to the end of the f32, and rounds them. */
static inline uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff), large = magnitude > 0x7f800000 ? nan : 0x7c00;
    uint32_t small = bits_of(of_bits(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t finite = choose(magnitude < 113u << 23, small, normal);
    return (uint16_t)(choose(magnitude >= 143u << 23, large, finite) | (bits >> 16 & 0x8000));
}

/* Rounded to f32 such that another rounding, to a dtype with fewer digits, is right: what is not exact gets an odd last
 * bit, so that it lies on no border. */
static inline float to_odd(double value)
{
    float nearest = (float)value;
    double back = (double)nearest, size = value < 0 ? -value : value, got = back < 0 ? -back : back;
    uint32_t bits = bits_of(nearest), other = got < size ? bits + 1 : bits - 1;
    return of_bits(got != size && size == size && !(bits & 1) ? other : bits);
}

/* The same for the last ten bits of numbers that a double cannot hold. */
static inline float i64_to_odd(int64_t value)
{
    int64_t limit = INT64_C(1) << 53, odd = (value & ~INT64_C(1023)) | (value & 1023 ? 1024 : 0);
    return to_odd((double)(value > limit || value < -limit ? odd : value));
}

static inline int64_t to_i64(double value)
{
    if (!(value < 0x1p63)) return value == value ? INT64_MAX : 0;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

static inline int32_t to_i32(double value)
{
    double low = value > INT32_MIN ? value : INT32_MIN, within = low < INT32_MAX ? low : INT32_MAX;
    return (int32_t)(value == value ? within : 0);
}

static inline uint8_t to_u8(double value)
{
    double low = value > 0 ? value : 0, within = low < UINT8_MAX ? low : UINT8_MAX; /* NaN > 0 is false */
    return (uint8_t)within;
}

/* The low 32 bits, as a number of two's complement. */
static inline int32_t wrapped(int64_t value)
{
    uint32_t bits = (uint32_t)value;
    int32_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* ---- loads: to the sum dtype ------------------------------------------------------------------------------------- */

static void load_bf16(void *restrict out, const void *restrict in, size_t blocks)
{
    float *restrict to = out;
    const uint16_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from_bf16(from[i]);
}

static void load_f16(void *restrict out, const void *restrict in, size_t blocks)
{
    float *restrict to = out;
    const uint16_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from_f16(from[i]);
}

static void load_i32(void *restrict out, const void *restrict in, size_t blocks)
{
    int64_t *restrict to = out;
    const int32_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i];
}

static void load_u8(void *restrict out, const void *restrict in, size_t blocks)
{
    int64_t *restrict to = out;
    const uint8_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i];
}

static void load_bool(void *restrict out, const void *restrict in, size_t blocks)
{
    int64_t *restrict to = out;
    const uint8_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i] != 0;
}

/* ---- stores of f64 ----------------------------------------------------------------------------------------------- */

DTI_CLONES static void f64_to_f32(void *restrict out, const void *restrict in, size_t blocks)
{
    float *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = (float)from[i];
}

static void f64_to_bf16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_bf16(to_odd(from[i]));
}

static void f64_to_f16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_f16(to_odd(from[i]));
}

static void f64_to_i64(void *restrict out, const void *restrict in, size_t blocks)
{
    int64_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_i64(from[i]);
}

static void f64_to_i32(void *restrict out, const void *restrict in, size_t blocks)
{
    int32_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_i32(from[i]);
}

static void f64_to_u8(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_u8(from[i]);
}

static void f64_to_bool(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const double *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i] != 0;
}

/* ---- stores of f32 ----------------------------------------------------------------------------------------------- */

DTI_CLONES static void f32_to_f64(void *restrict out, const void *restrict in, size_t blocks)
{
    double *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = (double)from[i];
}

static void f32_to_bf16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_bf16(from[i]);
}

static void f32_to_f16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_f16(from[i]);
}

static void f32_to_i64(void *restrict out, const void *restrict in, size_t blocks)
{
    int64_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_i64((double)from[i]);
}

static void f32_to_i32(void *restrict out, const void *restrict in, size_t blocks)
{
    int32_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_i32((double)from[i]);
}

static void f32_to_u8(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_u8((double)from[i]);
}

static void f32_to_bool(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const float *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i] != 0;
}

/* ---- stores of i64 ----------------------------------------------------------------------------------------------- */

static void i64_to_f64(void *restrict out, const void *restrict in, size_t blocks)
{
    double *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = (double)from[i];
}

static void i64_to_f32(void *restrict out, const void *restrict in, size_t blocks)
{
    float *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = (float)from[i];
}

static void i64_to_bf16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_bf16(i64_to_odd(from[i]));
}

static void i64_to_f16(void *restrict out, const void *restrict in, size_t blocks)
{
    uint16_t *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = to_f16(i64_to_odd(from[i]));
}

static void i64_to_i32(void *restrict out, const void *restrict in, size_t blocks)
{
    int32_t *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = wrapped(from[i]);
}

static void i64_to_u8(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = (uint8_t)from[i];
}

static void i64_to_bool(void *restrict out, const void *restrict in, size_t blocks)
{
    uint8_t *restrict to = out;
    const int64_t *restrict from = in;
    for (size_t i = 0; i < blocks * DTI_BLOCK; i++) to[i] = from[i] != 0;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

typedef struct dtype_row {
    dt_dtype sum;
    dti_load_fn load;
    dti_store_fn of_f64, of_f32, of_i64;
} dtype_row;

static const dtype_row dtypes[DT_DTYPE_COUNT] = {
    [DT_F64] = { DT_F64, NULL, NULL, f32_to_f64, i64_to_f64 },
    [DT_F32] = { DT_F32, NULL, f64_to_f32, NULL, i64_to_f32 },
    [DT_BF16] = { DT_F32, load_bf16, f64_to_bf16, f32_to_bf16, i64_to_bf16 },
    [DT_F16] = { DT_F32, load_f16, f64_to_f16, f32_to_f16, i64_to_f16 },
    [DT_I64] = { DT_I64, NULL, f64_to_i64, f32_to_i64, NULL },
    [DT_I32] = { DT_I64, load_i32, f64_to_i32, f32_to_i32, i64_to_i32 },
    [DT_U8] = { DT_I64, load_u8, f64_to_u8, f32_to_u8, i64_to_u8 },
    [DT_BOOL] = { DT_I64, load_bool, f64_to_bool, f32_to_bool, i64_to_bool },
};

dt_dtype dti_sum_dtype(dt_dtype dtype) { return dtypes[dtype].sum; }

dti_load_fn dti_number_load(dt_dtype from) { return dtypes[from].load; }

dti_store_fn dti_number_store(dt_dtype sum, dt_dtype to)
{
    return sum == DT_F64 ? dtypes[to].of_f64 : sum == DT_F32 ? dtypes[to].of_f32 : dtypes[to].of_i64;
}
