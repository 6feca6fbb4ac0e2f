/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of numbers, a chunk at a time, so that what lies between two dtypes stays in the nearest cache and each array
 * is passed over once. Kernels are elsewhere. Invariant: a kernel sees whole blocks only; where an array ends within
 * one, the chunk goes through a buffer whose rest is zero. */
#include <math.h>
#include <string.h>

#include "core/number_parts.h"

/* A chunk of any dtype. */
typedef union chunk { double f64[DTI_CHUNK]; float f32[DTI_CHUNK]; int64_t i64[DTI_CHUNK]; } chunk;

static size_t blocks_of(size_t n) { return (n + DTI_BLOCK - 1) / DTI_BLOCK; }

static size_t chunk_at(int64_t at, int64_t n) { return (size_t)(n - at < DTI_CHUNK ? n - at : DTI_CHUNK); }

/* n numbers where they lie, or in whole blocks in padded. */
static const void *whole_blocks(dt_dtype dtype, const void *numbers, size_t n, chunk *padded)
{
    size_t whole = blocks_of(n) * DTI_BLOCK;
    if (whole == n) return numbers;
    size_t bytes = dt_dtype_bytes(dtype);
    memset((char *)padded + n * bytes, 0, (whole - n) * bytes);
    return memcpy(padded, numbers, n * bytes);
}

/* sum = numbers, as their sum dtype, in whole blocks. */
static void load(dt_dtype from, const void *numbers, size_t n, chunk *sum)
{
    dti_load_fn convert = dti_number_load(from);
    chunk padded;
    const void *whole = whole_blocks(from, numbers, n, convert ? &padded : sum);
    if (convert) convert(sum, whole, blocks_of(n));
    else if (whole != sum) memcpy(sum, whole, n * dt_dtype_bytes(from));
}

/* numbers = sum, whole blocks of a sum dtype. */
static void store(dt_dtype sum_dtype, const chunk *sum, dt_dtype to, void *numbers, size_t n)
{
    dti_store_fn convert = dti_number_store(sum_dtype, to);
    chunk padded;
    if (!convert) memcpy(numbers, sum, n * dt_dtype_bytes(to));
    else if (n % DTI_BLOCK == 0) convert(numbers, sum, n / DTI_BLOCK);
    else {
        convert(&padded, sum, blocks_of(n));
        memcpy(numbers, &padded, n * dt_dtype_bytes(to));
    }
}

/* sum = sum combined with numbers. */
static void combine_one(dti_combine_fn combine, dt_dtype from, const void *numbers, size_t n, chunk *sum)
{
    dti_load_fn convert = dti_number_load(from);
    chunk loaded;
    if (convert) load(from, numbers, n, &loaded);
    combine(sum, sum, convert ? &loaded : whole_blocks(from, numbers, n, &loaded), blocks_of(n));
}

/* The same for n numbers in whole blocks, all of a sum dtype: they are read where they lie, and written by the last
 * step only, so that out may be a source. */
static void combine_whole(dti_combine_fn combine, const void *const *sources, int count, size_t bytes, void *out,
                          size_t n)
{
    chunk sum;
    for (size_t at = 0; at < n; at += DTI_CHUNK) {
        size_t blocks = (n - at < DTI_CHUNK ? n - at : DTI_CHUNK) / DTI_BLOCK, begin = at * bytes;
        for (int i = 1; i < count; i++)
            combine(i == count - 1 ? (char *)out + begin : (char *)&sum,
                    i == 1 ? (const char *)sources[0] + begin : (const char *)&sum, (const char *)sources[i] + begin,
                    blocks);
    }
}

/* ---- one number -------------------------------------------------------------------------------------------------- */

double dti_number_get(dt_dtype dtype, const void *value)
{
    double got;
    dti_numbers_convert(dtype, value, DT_F64, &got, 1);
    return got;
}

void dti_number_set(dt_dtype dtype, double value, void *number)
{
    dti_numbers_convert(DT_F64, &value, dtype, number, 1);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

void dti_numbers_fill(dt_dtype dtype, double value, void *numbers, int64_t n)
{
    size_t bytes = dt_dtype_bytes(dtype);
    chunk values;
    dti_number_set(dtype, value, &values);
    for (size_t done = 1; done < chunk_at(0, n); done *= 2)
        memcpy((char *)&values + done * bytes, &values, done * bytes);
    for (int64_t at = 0; at < n; at += DTI_CHUNK)
        memcpy((char *)numbers + (size_t)at * bytes, &values, chunk_at(at, n) * bytes);
}

void dti_numbers_identity(dt_dtype dtype, dti_combine combine, void *numbers, int64_t n)
{
    static const double identities[DTI_COMBINE_COUNT] = {
        [DTI_COMBINE_SUM] = -0.0,
        [DTI_COMBINE_MAX] = -INFINITY, /* integers: their least                                                    */
        [DTI_COMBINE_MIN] = INFINITY,
        [DTI_COMBINE_PROD] = 1,
    };
    bool falses = dtype == DT_BOOL && combine == DTI_COMBINE_MAX;
    dti_numbers_fill(dtype, falses ? 0 : identities[combine], numbers, n);
}

/* Up to a chunk of numbers in another dtype. */
static void convert_chunk(dt_dtype from, const void *numbers, dt_dtype to, void *out, size_t n)
{
    chunk sum;
    bool direct = dti_number_load(from) == NULL;
    if (!direct) load(from, numbers, n, &sum);
    store(dti_sum_dtype(from), direct ? whole_blocks(from, numbers, n, &sum) : &sum, to, out, n);
}

void dti_numbers_convert(dt_dtype from, const void *numbers, dt_dtype to, void *out, int64_t n)
{
    if (n <= 0) return;
    if (from == to) {
        memcpy(out, numbers, (size_t)n * dt_dtype_bytes(to));
        return;
    }
    if (n <= DTI_CHUNK) {
        convert_chunk(from, numbers, to, out, (size_t)n);
        return;
    }
    size_t from_bytes = dt_dtype_bytes(from), to_bytes = dt_dtype_bytes(to);
    for (int64_t at = 0; at < n; at += DTI_CHUNK)
        convert_chunk(from, (const char *)numbers + (size_t)at * from_bytes, to, (char *)out + (size_t)at * to_bytes,
                      chunk_at(at, n));
}

void dti_numbers_combine(dti_combine combine, dt_dtype from, const void *const *sources, int count, dt_dtype to,
                         void *out, int64_t n)
{
    size_t from_bytes = dt_dtype_bytes(from), to_bytes = dt_dtype_bytes(to);
    dt_dtype dtype = dti_sum_dtype(from);
    dti_combine_fn kernel = dti_number_combine(dtype, combine);
    int64_t at = from == dtype && to == dtype && count > 1 ? n / DTI_BLOCK * DTI_BLOCK : 0;
    combine_whole(kernel, sources, count, from_bytes, out, (size_t)at);
    for (; at < n; at += DTI_CHUNK) {
        size_t part = chunk_at(at, n);
        chunk sum;
        load(from, (const char *)sources[0] + (size_t)at * from_bytes, part, &sum);
        for (int i = 1; i < count; i++)
            combine_one(kernel, from, (const char *)sources[i] + (size_t)at * from_bytes, part, &sum);
        store(dtype, &sum, to, (char *)out + (size_t)at * to_bytes, part);
    }
}

void dti_numbers_accumulate(dti_combine combine, bool first, dt_dtype from, const void *numbers, void *sum, int64_t n)
{
    dt_dtype dtype = dti_sum_dtype(from);
    size_t from_bytes = dt_dtype_bytes(from), sum_bytes = dt_dtype_bytes(dtype);
    dti_combine_fn kernel = dti_number_combine(dtype, combine);
    if (first) dti_numbers_convert(from, numbers, dtype, sum, n);
    for (int64_t at = 0; !first && at < n; at += DTI_CHUNK) {
        char *out = (char *)sum + (size_t)at * sum_bytes;
        size_t count = chunk_at(at, n);
        chunk part;
        load(dtype, out, count, &part);
        combine_one(kernel, from, (const char *)numbers + (size_t)at * from_bytes, count, &part);
        store(dtype, &part, dtype, out, count);
    }
}

void dti_numbers_scale(dt_dtype dtype, void *numbers, int64_t n, int64_t multiply, int64_t divide)
{
    size_t bytes = dt_dtype_bytes(dtype);
    dti_scale_fn scale = dti_number_scale(dti_sum_dtype(dtype));
    for (int64_t at = 0; at < n; at += DTI_CHUNK) {
        char *part = (char *)numbers + (size_t)at * bytes;
        size_t count = chunk_at(at, n);
        chunk sum;
        load(dtype, part, count, &sum);
        scale(&sum, blocks_of(count), multiply, divide);
        store(dti_sum_dtype(dtype), &sum, dtype, part, count);
    }
}
