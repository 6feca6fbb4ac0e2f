/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter of Philox serves four elements of up to 32 bits or two of 64; two normal numbers come from one counter,
 * too, by Box and Muller. Logarithm, sine and cosine are series of sums and products, the same on every machine; their
 * errors are a few units in the last place of a double. Invariant: nothing but the index of an element says which words
 * it gets. */
#include "tensor/random.h"

#include <math.h>
#include <string.h>

#include "core/number.h"

#ifdef __clang__ /* gcc does not contract in ISO mode, and warns of the pragma */
#pragma STDC FP_CONTRACT OFF
#endif

/* ---- words ------------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 10, BLOCK_WORDS = 4, CHUNK = 512, WORDS = CHUNK + 2 * BLOCK_WORDS };

/* Which numbers a counter serves, in the two bits that no element's counter reaches. */
static const uint64_t uniform_blocks = 0, normal_blocks = UINT64_C(1) << 63;

void dti_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k = key[0], l = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p = UINT64_C(0xd2511f53) * a, q = UINT64_C(0xcd9e8d57) * c;
        a = (uint32_t)(q >> 32) ^ b ^ k;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ l;
        d = (uint32_t)p;
        k += 0x9e3779b9;
        l += 0xbb67ae85;
    }
    words[0] = a, words[1] = b, words[2] = c, words[3] = d;
}

typedef struct source { uint64_t seed, stream, kind; } source;

/* The words of n counters from `block` on. */
static void draw(const source *s, uint64_t block, size_t n, uint32_t *words)
{
    uint32_t key[2] = { (uint32_t)s->seed, (uint32_t)(s->seed >> 32) };
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (block + i) | s->kind;
        uint32_t counter[4] = { (uint32_t)at, (uint32_t)(at >> 32), (uint32_t)s->stream, (uint32_t)(s->stream >> 32) };
        dti_philox(counter, key, words + i * BLOCK_WORDS);
    }
}

static inline uint64_t word64(const uint32_t *words) { return words[0] | (uint64_t)words[1] << 32; }

/* ---- uniform ----------------------------------------------------------------------------------------------------- */

/* n elements of their words, one each, two for 64 bits. */
typedef void (*uniform_fn)(const uint32_t *words, size_t n, void *out);

static void uniform_f64(const uint32_t *words, size_t n, void *out)
{
    double *to = out;
    for (size_t i = 0; i < n; i++) to[i] = (double)(int64_t)(word64(words + 2 * i) >> 11) * 0x1p-53;
}

/* The highest bits of a word as a fraction; any dtype with as many digits holds it exactly. */
static void fractions(const uint32_t *words, size_t n, int bits, float *out)
{
    float unit = ldexpf(1, -bits);
    for (size_t i = 0; i < n; i++) out[i] = (float)(int32_t)(words[i] >> (32 - bits)) * unit;
}

static void uniform_f32(const uint32_t *words, size_t n, void *out) { fractions(words, n, 24, out); }

static void uniform_bf16(const uint32_t *words, size_t n, void *out)
{
    float values[CHUNK];
    fractions(words, n, 8, values);
    dti_numbers_convert(DT_F32, values, DT_BF16, out, (int64_t)n);
}

static void uniform_f16(const uint32_t *words, size_t n, void *out)
{
    float values[CHUNK];
    fractions(words, n, 11, values);
    dti_numbers_convert(DT_F32, values, DT_F16, out, (int64_t)n);
}

static void uniform_i64(const uint32_t *words, size_t n, void *out)
{
    uint64_t *to = out;
    for (size_t i = 0; i < n; i++) to[i] = word64(words + 2 * i);
}

static void uniform_i32(const uint32_t *words, size_t n, void *out) { memcpy(out, words, n * sizeof *words); }

static void uniform_u8(const uint32_t *words, size_t n, void *out)
{
    uint8_t *to = out;
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(words[i] >> 24);
}

static void uniform_bool(const uint32_t *words, size_t n, void *out)
{
    uint8_t *to = out;
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(words[i] >> 31);
}

typedef struct uniform_row { int words; uniform_fn make; } uniform_row;

static const uniform_row uniforms[DT_DTYPE_COUNT] = {
    [DT_F64] = { 2, uniform_f64 },
    [DT_F32] = { 1, uniform_f32 },
    [DT_BF16] = { 1, uniform_bf16 },
    [DT_F16] = { 1, uniform_f16 },
    [DT_I64] = { 2, uniform_i64 },
    [DT_I32] = { 1, uniform_i32 },
    [DT_U8] = { 1, uniform_u8 },
    [DT_BOOL] = { 1, uniform_bool },
};

void dti_random_uniform(dt_dtype dtype, uint64_t seed, uint64_t stream, int64_t first, int64_t count, void *out)
{
    const uniform_row *row = &uniforms[dtype];
    const source s = { seed, stream, uniform_blocks };
    uint32_t words[WORDS];
    int64_t per_block = BLOCK_WORDS / row->words, per_chunk = CHUNK / row->words, n;
    char *to = out;
    for (int64_t end = first + count; first < end; first += n, to += (size_t)n * dt_dtype_bytes(dtype)) {
        int64_t skip = first % per_block;
        n = end - first < per_chunk ? end - first : per_chunk;
        draw(&s, (uint64_t)(first / per_block), (size_t)((skip + n + per_block - 1) / per_block), words);
        row->make(words + skip * row->words, (size_t)n, to);
    }
}

/* ---- normal ------------------------------------------------------------------------------------------------------ */

/* ln x for 0 < x <= 1, normal: x = 2^power (1 + f), half a power around 1, and ln (1 + f) = 2 artanh(f / (2 + f)). */
static inline double logarithm(double x)
{
    uint64_t bits, root = UINT64_C(0x3fe6a09e00000000), one = UINT64_C(0x3ff0000000000000);
    double near, sum;
    memcpy(&bits, &x, sizeof bits);
    bits += one - root;
    int64_t power = (int64_t)(bits >> 52) - 1023;
    bits = (bits & (UINT64_C(0x000fffffffffffff))) + root;
    memcpy(&near, &bits, sizeof near);
    double s = (near - 1) / (near + 1), z = s * s;
    sum = 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    return (double)power * 0x1.62e42fefa39efp-1 + (2 * s + 2 * s * (z * sum));
}

/* Sine and cosine for |x| <= pi / 4. */
static inline double sine(double x)
{
    double z = x * x, sum = -1.0 / 1307674368000;
    sum = sum * z + 1.0 / 6227020800;
    sum = sum * z - 1.0 / 39916800;
    sum = sum * z + 1.0 / 362880;
    sum = sum * z - 1.0 / 5040;
    sum = sum * z + 1.0 / 120;
    sum = sum * z - 1.0 / 6;
    return x + x * (z * sum);
}

static inline double cosine(double x)
{
    double z = x * x, sum = 1.0 / 20922789888000;
    sum = sum * z - 1.0 / 87178291200;
    sum = sum * z + 1.0 / 479001600;
    sum = sum * z - 1.0 / 3628800;
    sum = sum * z + 1.0 / 40320;
    sum = sum * z - 1.0 / 720;
    sum = sum * z + 1.0 / 24;
    sum = sum * z - 0.5;
    return 1 + z * sum;
}

/* Two of four words. The angle is a whole turn in 64 bits: the nearest quarter is taken off exactly, and what is left
 * is between minus and plus an eighth, of which 53 bits count. */
static inline void normal_pair(const uint32_t *words, double *out)
{
    uint64_t turn = word64(words + 2), quarter = (turn + (UINT64_C(1) << 61)) >> 62;
    int64_t rest = (int64_t)((turn - (quarter << 62) + (UINT64_C(1) << 61)) >> 9) - (INT64_C(1) << 52);
    double x = (double)rest * (0x1.921fb54442d18p+2 * 0x1p-55), s = sine(x), c = cosine(x);
    double u = (double)(int64_t)((word64(words) >> 11) + 1) * 0x1p-53, radius = sqrt(-2 * logarithm(u));
    double across = quarter & 1 ? s : c, up = quarter & 1 ? c : s;
    out[0] = radius * ((quarter + 1) & 2 ? -across : across);
    out[1] = radius * (quarter & 2 ? -up : up);
}

void dti_random_normal(dt_dtype dtype, uint64_t seed, uint64_t stream, int64_t first, int64_t count, void *out)
{
    const source s = { seed, stream, normal_blocks };
    enum { PAIRS = CHUNK / BLOCK_WORDS };
    uint32_t words[WORDS];
    double values[2 * PAIRS + 2];
    char *to = out;
    int64_t n;
    for (int64_t end = first + count; first < end; first += n, to += (size_t)n * dt_dtype_bytes(dtype)) {
        int64_t skip = first % 2, pairs;
        n = end - first < 2 * PAIRS ? end - first : 2 * PAIRS;
        pairs = (skip + n + 1) / 2;
        draw(&s, (uint64_t)(first / 2), (size_t)pairs, words);
        for (int64_t i = 0; i < pairs; i++) normal_pair(words + i * BLOCK_WORDS, values + 2 * i);
        dti_numbers_convert(DT_F64, values + skip, dtype, to, n);
    }
}
