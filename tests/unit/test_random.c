/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: Philox against published answers, every element against a definition of its own that takes one
 * counter, any cut into calls, moments and tails, and bits that must be the same on every machine. */
#include <math.h>
#include <string.h>

#include "core/number.h"
#include "suite.h"
#include "tensor/random.h"

typedef struct answer { uint32_t counter[4], key[2], words[4]; } answer;

/* Of Random123, kat_vectors: philox4x32, 10 rounds. */
static const answer answers[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void philox_gives_the_known_answers(void)
{
    for (int i = 0; i < DT_COUNT(answers); i++) {
        uint32_t words[4];
        dti_philox(answers[i].counter, answers[i].key, words);
        expect(memcmp(words, answers[i].words, sizeof words) == 0, "row %d: %08x %08x %08x %08x", i, words[0], words[1],
               words[2], words[3]);
    }
}

/* ---- by definition ----------------------------------------------------------------------------------------------- */

enum { MOST = 2100 };

typedef void (*random_fn)(dt_dtype dtype, uint64_t seed, uint64_t stream, int64_t first, int64_t count, void *out);

static const random_fn makers[] = { dti_random_uniform, dti_random_normal };

static const uint64_t seeds[] = { 0, 1, UINT64_C(1) << 32, UINT64_MAX, UINT64_C(0x123456789abcdef0) };
static const int64_t firsts[] = { 0, 1, 2, 3, 4, 5, 511, 1023, (INT64_C(1) << 34) - 2, (INT64_C(1) << 40) + 1,
                                  INT64_MAX - 20 };

static void words_of(uint64_t block, uint64_t seed, uint64_t stream, uint32_t words[4])
{
    uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    dti_philox(counter, key, words);
}

/* The highest `bits` bits of an element, as a number. */
static uint64_t uniform_bits(bool wide, int bits, uint64_t seed, uint64_t stream, int64_t i)
{
    uint32_t words[4];
    words_of((uint64_t)(i / (wide ? 2 : 4)), seed, stream, words);
    if (!wide) return words[i % 4] >> (32 - bits);
    return ((uint64_t)words[i % 2 * 2 + 1] << 32 | words[i % 2 * 2]) >> (64 - bits);
}

static uint64_t number_bits(dt_dtype dtype, const void *numbers, int64_t i)
{
    uint64_t bits = 0;
    size_t bytes = dt_dtype_bytes(dtype);
    unsigned char at[8];
    memcpy(at, (const char *)numbers + (size_t)i * bytes, bytes);
    for (size_t b = 0; b < bytes; b++) bits |= (uint64_t)at[b] << (8 * b); /* these tests run on little-endian ones */
    return bits;
}

typedef struct digits_row { dt_dtype dtype; int bits; bool wide, fraction; } digits_row;

static const digits_row digits[] = {
    { DT_F64, 53, true, true }, { DT_F32, 24, false, true }, { DT_BF16, 8, false, true }, { DT_F16, 11, false, true },
    { DT_I64, 64, true, false }, { DT_I32, 32, false, false }, { DT_U8, 8, false, false }, { DT_BOOL, 1, false, false },
};

static int wrong_uniforms(const digits_row *row, uint64_t seed, uint64_t stream, int64_t first)
{
    static uint64_t out[32];
    int bad = 0;
    dti_random_uniform(row->dtype, seed, stream, first, 19, out);
    for (int64_t i = 0; i < 19; i++) {
        uint64_t want = uniform_bits(row->wide, row->bits, seed, stream, first + i);
        double value = dti_number_get(row->dtype, (char *)out + (size_t)i * dt_dtype_bytes(row->dtype));
        bad += row->fraction ? value != ldexp((double)want, -row->bits) : number_bits(row->dtype, out, i) != want;
    }
    return bad;
}

static void uniform_numbers_are_the_bits_of_their_words(void)
{
    for (int d = 0; d < DT_COUNT(digits); d++)
        for (int s = 0; s < DT_COUNT(seeds); s++)
            for (int t = 0; t < DT_COUNT(seeds); t++)
                for (int f = 0; f < DT_COUNT(firsts); f++) {
                    int bad = wrong_uniforms(&digits[d], seeds[s], seeds[t], firsts[f]);
                    expect(bad == 0, "%s, seed %d, stream %d, from %lld: %d of 19", dt_dtype_text(digits[d].dtype), s,
                           t, (long long)firsts[f], bad);
                }
}

/* Box and Muller by the mathematical library. */
static double normal_of(uint64_t seed, uint64_t stream, int64_t i)
{
    uint32_t words[4];
    words_of((uint64_t)(i / 2) | UINT64_C(1) << 63, seed, stream, words);
    uint64_t first = words[0] | (uint64_t)words[1] << 32, second = words[2] | (uint64_t)words[3] << 32;
    double u = ((double)(first >> 11) + 1) * ldexp(1, -53), angle = 2 * acos(-1) * ldexp((double)(second >> 9), -55);
    return sqrt(-2 * log(u)) * (i % 2 ? sin(angle) : cos(angle));
}

static void normal_numbers_are_box_and_mullers(void)
{
    static double out[200000];
    double worst = 0;
    for (int s = 0; s < DT_COUNT(seeds); s++)
        for (int f = 0; f < DT_COUNT(firsts); f++) {
            dti_random_normal(DT_F64, seeds[s], 7, firsts[f], 19, out);
            for (int i = 0; i < 19; i++) worst = fmax(worst, fabs(out[i] - normal_of(seeds[s], 7, firsts[f] + i)));
        }
    dti_random_normal(DT_F64, 3, 0, 0, DT_COUNT(out), out);
    for (int i = 0; i < DT_COUNT(out); i++) worst = fmax(worst, fabs(out[i] - normal_of(3, 0, i)));
    expect(worst < 1e-14, "off by %g", worst);
}

static void normal_numbers_of_small_dtypes_are_rounded(void)
{
    static double wide[MOST];
    static uint64_t out[MOST], want[MOST];
    for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++) {
        dti_random_normal(DT_F64, 5, 6, 1, MOST, wide);
        dti_numbers_convert(DT_F64, wide, d, want, MOST);
        dti_random_normal(d, 5, 6, 1, MOST, out);
        expect(memcmp(out, want, MOST * dt_dtype_bytes(d)) == 0, "%s", dt_dtype_text(d));
    }
}

/* Bits of the first elements under seed 1, stream 2: equal for every compiler, option and processor. */
static void bits_are_the_same_everywhere(void)
{
    static const double want[] = {
        -0x1.1f0fc6d459e5ap-1, -0x1.129c6548cf82dp-2, -0x1.0507e3a62ddfp-2, 0x1.38d57dcf19af9p-1,
        -0x1.453306ccaa947p+0, -0x1.1a7d7e8f1a8afp+0, 0x1.c84f949ec19fbp-6, 0x1.5eb7452867b57p-1,
    };
    double got[DT_COUNT(want)];
    dti_random_normal(DT_F64, 1, 2, 0, DT_COUNT(want), got);
    for (int i = 0; i < DT_COUNT(want); i++) expect(got[i] == want[i], "%d: %a, want %a", i, got[i], want[i]);
}

/* ---- cuts into calls --------------------------------------------------------------------------------------------- */

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void any_cut_gives_the_same(void)
{
    static uint64_t whole[MOST], parts[MOST + 8];
    unsigned seed = 1;
    for (int m = 0; m < DT_COUNT(makers); m++)
        for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++) {
            size_t bytes = dt_dtype_bytes(d);
            for (int round = 0; round < 40; round++) {
                int64_t first = (int64_t)below(&seed, 3000), at = 0;
                makers[m](d, 9, 1, first, MOST, whole);
                memset(parts, 0xa5, sizeof parts);
                while (at < MOST) {
                    int64_t n = below(&seed, 1 + below(&seed, 1 + below(&seed, 1200)));
                    if (n > MOST - at) n = MOST - at;
                    makers[m](d, 9, 1, first + at, n, (char *)parts + (size_t)at * bytes);
                    at += n;
                }
                expect(memcmp(whole, parts, MOST * bytes) == 0, "maker %d, %s from %lld", m, dt_dtype_text(d),
                       (long long)first);
                bool within = ((unsigned char *)parts)[MOST * bytes] == 0xa5;
                expect(within, "maker %d, %s: wrote beyond", m, dt_dtype_text(d));
            }
        }
}

static void keys_and_kinds_differ(void)
{
    static uint64_t a[64], b[64];
    for (int m = 0; m < DT_COUNT(makers); m++)
        for (int bit = 0; bit < 128; bit++) {
            makers[m](DT_F32, 0, 0, 0, 64, a);
            makers[m](DT_F32, bit < 64 ? UINT64_C(1) << bit : 0, bit < 64 ? 0 : UINT64_C(1) << (bit - 64), 0, 64, b);
            int same = 0;
            for (int i = 0; i < 64; i++) same += ((float *)a)[i] == ((float *)b)[i];
            expect(same < 3, "maker %d: bit %d of seed and stream changes nothing", m, bit);
        }
    dti_random_normal(DT_I64, 0, 0, 0, 0, a);
    dti_random_uniform(DT_I64, 0, 0, 0, 0, a);
}

/* ---- how they lie ------------------------------------------------------------------------------------------------ */

enum { MANY = 1 << 20 };

static double sample[MANY];

static void draw(random_fn make, dt_dtype dtype, uint64_t seed)
{
    static uint64_t numbers[MANY];
    make(dtype, seed, 0, 0, MANY, numbers);
    dti_numbers_convert(dtype, numbers, DT_F64, sample, MANY);
}

static double moment(double about, int power)
{
    double sum = 0;
    for (int i = 0; i < MANY; i++) sum += pow(sample[i] - about, power);
    return sum / MANY;
}

/* Within five deviations of what the mean of so many would have. */
static void uniform_floats_are_flat(void)
{
    for (int d = 0; d < 4; d++) {
        const char *name = dt_dtype_text(digits[d].dtype);
        int counts[16] = { 0 }, outside = 0;
        double unit = ldexp(1, -digits[d].bits), middle = 0.5 - unit / 2, largest = 0, chi = 0;
        draw(dti_random_uniform, digits[d].dtype, 11);
        for (int i = 0; i < MANY; i++) {
            outside += !(sample[i] >= 0 && sample[i] < 1);
            largest = fmax(largest, sample[i]);
            counts[(int)(sample[i] * 16) & 15]++;
        }
        for (int i = 0; i < 16; i++) chi += pow(counts[i] - MANY / 16, 2) / (MANY / 16);
        expect(outside == 0, "%s: %d outside [0, 1)", name, outside);
        expect(largest > 0.999 - unit, "%s: largest %g", name, largest);
        expect(chi < 45, "%s: chi square %g of 15", name, chi);
        expect(fabs(moment(0, 1) - middle) < 5 * 0.2887 / 1024, "%s: mean %g", name, moment(0, 1));
        expect(fabs(moment(middle, 2) - 1.0 / 12) < 5 * 0.0745 / 1024 + unit * unit, "%s: %g", name, moment(middle, 2));
    }
}

static void normal_floats_are_normal(void)
{
    for (int d = 0; d < 4; d++) {
        const char *name = dt_dtype_text(digits[d].dtype);
        static const double borders[] = { 1, 2, 3, 4 }, beyond[] = { 0.317311, 0.045500, 0.0026998, 6.3342e-5 };
        draw(dti_random_normal, digits[d].dtype, 12);
        expect(fabs(moment(0, 1)) < 5.0 / 1024, "%s: mean %g", name, moment(0, 1));
        expect(fabs(moment(0, 2) - 1) < 5 * sqrt(2) / 1024, "%s: variance %g", name, moment(0, 2));
        expect(fabs(moment(0, 3)) < 5 * sqrt(15) / 1024, "%s: third moment %g", name, moment(0, 3));
        expect(fabs(moment(0, 4) - 3) < 5 * sqrt(96) / 1024, "%s: fourth moment %g", name, moment(0, 4));
        for (int b = 0; d < 2 && b < DT_COUNT(borders); b++) {
            int n = 0;
            for (int i = 0; i < MANY; i++) n += fabs(sample[i]) > borders[b];
            expect(fabs(n - beyond[b] * MANY) < 5 * sqrt(beyond[b] * MANY), "%s: %d beyond %g", name, n, borders[b]);
        }
        double product = 0;
        for (int i = 0; i + 1 < MANY; i++) product += sample[i] * sample[i + 1];
        expect(fabs(product / MANY) < 5.0 / 1024, "%s: neighbours correlate by %g", name, product / MANY);
    }
}

static void uniform_and_normal_of_one_key_are_independent(void)
{
    static double other[MANY];
    dti_random_uniform(DT_F64, 13, 0, 0, MANY, other);
    draw(dti_random_normal, DT_F64, 13);
    double product = 0, size = 0;
    for (int i = 0; i < MANY; i++) product += sample[i] * (other[i] - 0.5), size += fabs(sample[i]) * (other[i] - 0.5);
    expect(fabs(product / MANY) < 5 * 0.2887 / 1024, "they correlate by %g", product / MANY);
    expect(fabs(size / MANY) < 5 * 0.2887 / 1024, "the sizes correlate by %g", size / MANY);
}

static void integers_use_every_bit(void)
{
    static uint64_t numbers[MANY];
    for (int d = 4; d < DT_COUNT(digits); d++) {
        dti_random_uniform(digits[d].dtype, 14, 0, 0, MANY, numbers);
        for (int bit = 0; bit < 8 * (int)dt_dtype_bytes(digits[d].dtype); bit++) {
            int n = 0;
            for (int i = 0; i < MANY; i++) n += (int)(number_bits(digits[d].dtype, numbers, i) >> bit & 1);
            double want = digits[d].dtype == DT_BOOL && bit > 0 ? 0 : MANY / 2.0;
            expect(fabs(n - want) < 5 * 512 * (want > 0) + 1, "%s, bit %d: %d", dt_dtype_text(digits[d].dtype), bit, n);
        }
    }
}

static const test_row rows[] = {
    { "philox_gives_the_known_answers", philox_gives_the_known_answers },
    { "uniform_numbers_are_the_bits_of_their_words", uniform_numbers_are_the_bits_of_their_words },
    { "normal_numbers_are_box_and_mullers", normal_numbers_are_box_and_mullers },
    { "normal_numbers_of_small_dtypes_are_rounded", normal_numbers_of_small_dtypes_are_rounded },
    { "bits_are_the_same_everywhere", bits_are_the_same_everywhere },
    { "any_cut_gives_the_same", any_cut_gives_the_same },
    { "keys_and_kinds_differ", keys_and_kinds_differ },
    { "uniform_floats_are_flat", uniform_floats_are_flat },
    { "normal_floats_are_normal", normal_floats_are_normal },
    { "uniform_and_normal_of_one_key_are_independent", uniform_and_normal_of_one_key_are_independent },
    { "integers_use_every_bit", integers_use_every_bit },
};

const suite the_suite = { "random", rows, DT_COUNT(rows) };
