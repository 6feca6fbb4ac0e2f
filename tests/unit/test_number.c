/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of numbers: every conversion, combination, fill and scale against definitions that go one element at a time
 * and know nothing of blocks. bf16 and f16 are compared with values made by ldexp, all 65,536 of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "suite.h"

/* ---- an independent meaning -------------------------------------------------------------------------------------- */

typedef struct small_float { dt_dtype dtype; int digits, bias; } small_float; /* digits: stored ones               */

static const small_float small_floats[] = { { DT_BF16, 7, 127 }, { DT_F16, 10, 15 } };

static double small_value(const small_float *f, unsigned bits)
{
    int exponents = 1 << (15 - f->digits), exponent = (int)(bits >> f->digits) & (exponents - 1);
    double digits = bits & ((1u << f->digits) - 1), sign = bits & 0x8000 ? -1 : 1;
    if (exponent == exponents - 1) return digits != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(digits, 1 - f->bias - f->digits);
    return sign * ldexp(digits + (double)(1 << f->digits), exponent - f->bias - f->digits);
}

/* The nearest number, of two equally near the one with even bits: by search among all. Infinity stands where the next
 * finite number would. */
static unsigned small_nearest(const small_float *f, long double value)
{
    unsigned sign = signbit(value) ? 0x8000 : 0, infinity = ((1u << (15 - f->digits)) - 1) << f->digits, low = 0, high;
    long double size = fabsl(value), next;
    high = infinity;
    while (high - low > 1) {                                           /* low <= size < high                       */
        unsigned middle = (low + high) / 2;
        if ((long double)small_value(f, middle) <= size) low = middle;
        else high = middle;
    }
    next = high == infinity ? ldexpl(1, f->bias + 1) : (long double)small_value(f, high);
    long double below = size - (long double)small_value(f, low), above = next - size;
    if (below < above || (below == above && low % 2 == 0)) return sign | low;
    return sign | high;
}

static uint16_t small_of(const small_float *f, dt_dtype from, const void *value)
{
    uint16_t bits;
    dti_numbers_convert(from, value, f->dtype, &bits, 1);
    return bits;
}

static bool quiet_nan(const small_float *f, unsigned bits)
{
    unsigned infinity = ((1u << (15 - f->digits)) - 1) << f->digits;
    return (bits & 0x7fff) > infinity && (bits >> (f->digits - 1) & 1);
}

static bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

/* ---- bf16 and f16: exhaustive ------------------------------------------------------------------------------------ */

static void small_floats_are_read_exactly(void)
{
    for (int k = 0; k < DT_COUNT(small_floats); k++) {
        const small_float *f = &small_floats[k];
        int bad = 0;
        for (unsigned bits = 0; bits < 0x10000; bits++) {
            uint16_t number = (uint16_t)bits;
            float single;
            dti_numbers_convert(f->dtype, &number, DT_F32, &single, 1);
            double want = small_value(f, bits);
            bad += !same_bits((double)single, want) || !same_bits(dti_number_get(f->dtype, &number), want);
        }
        expect(bad == 0, "%s: %d of 65536 are read wrong", dt_dtype_text(f->dtype), bad);
    }
}

static void small_floats_come_back(void)
{
    static const dt_dtype through[] = { DT_F32, DT_F64 };
    static uint16_t numbers[0x10000], back[0x10000];
    static double wide[0x10000];
    for (unsigned i = 0; i < 0x10000; i++) numbers[i] = (uint16_t)i;
    for (int k = 0; k < DT_COUNT(small_floats); k++)
        for (int t = 0; t < DT_COUNT(through); t++) {
            const small_float *f = &small_floats[k];
            int bad = 0;
            dti_numbers_convert(f->dtype, numbers, through[t], wide, 0x10000);
            dti_numbers_convert(through[t], wide, f->dtype, back, 0x10000);
            for (unsigned i = 0; i < 0x10000; i++)
                bad += isnan(small_value(f, i)) ? !quiet_nan(f, back[i]) || (back[i] ^ i) >> 15 : back[i] != i;
            expect(bad == 0, "%s through %s: %d of 65536", dt_dtype_text(f->dtype), dt_dtype_text(through[t]), bad);
        }
}

/* At every number, between it and the next, and on both sides of these places, from f32 and from f64. */
static void small_floats_are_rounded_to_even(void)
{
    for (int k = 0; k < DT_COUNT(small_floats); k++) {
        const small_float *f = &small_floats[k];
        unsigned infinity = ((1u << (15 - f->digits)) - 1) << f->digits;
        int bad = 0;
        for (unsigned i = 0; i < 0x10000; i++) {
            if ((i & 0x7fff) >= infinity) continue;
            double here = small_value(f, i), next = small_value(f, i + 1);
            if ((i & 0x7fff) == infinity - 1) next = copysign(ldexp(1, f->bias + 1), here);
            double places[] = { here, here / 2 + next / 2 };
            for (int p = 0; p < 2; p++) {
                double doubles[] = { places[p], nextafter(places[p], -INFINITY), nextafter(places[p], INFINITY) };
                float single = (float)places[p];
                float floats[] = { single, nextafterf(single, -INFINITY), nextafterf(single, INFINITY) };
                for (int j = 0; j < 3; j++) {
                    bad += small_of(f, DT_F64, &doubles[j]) != small_nearest(f, (long double)doubles[j]);
                    if (!isfinite(floats[j])) continue;
                    bad += small_of(f, DT_F32, &floats[j]) != small_nearest(f, (long double)floats[j]);
                }
            }
        }
        expect(bad == 0, "%s: %d rounded wrong", dt_dtype_text(f->dtype), bad);
    }
}

static void small_floats_of_random_bits(void)
{
    uint64_t seed = 1;
    for (int k = 0; k < DT_COUNT(small_floats); k++) {
        const small_float *f = &small_floats[k];
        int bad = 0;
        for (int i = 0; i < 300000; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t bits = (uint32_t)(seed >> 32);
            uint64_t wide = seed ^ seed >> 29;
            int64_t integer = (int64_t)(wide >> (seed >> 58)) * (seed & 1024 ? 1 : -1);
            float single;
            double value;
            memcpy(&single, &bits, sizeof single);
            memcpy(&value, &wide, sizeof value);
            if (i % 2) value = ldexp(value > 0 ? 1 + (double)(bits % 4096) / 2048 : -1, (int)(bits >> 12) % 300 - 150);
            unsigned of_single = small_of(f, DT_F32, &single), of_value = small_of(f, DT_F64, &value);
            bad += single == single ? of_single != small_nearest(f, (long double)single) : !quiet_nan(f, of_single);
            bad += value == value ? of_value != small_nearest(f, (long double)value) : !quiet_nan(f, of_value);
            bad += small_of(f, DT_I64, &integer) != small_nearest(f, (long double)integer);
        }
        expect(bad == 0, "%s: %d of 900000", dt_dtype_text(f->dtype), bad);
    }
}

/* Values that two roundings, through f32 or a double, would get wrong. */
static void conversions_round_once(void)
{
    double value = 1 + 0x1p-8 + 0x1p-40, below = 1 + 0x1p-8 - 0x1p-40;
    int64_t integer = (INT64_C(1) << 62) + (INT64_C(1) << 54) + 1, less = (INT64_C(1) << 62) + (INT64_C(1) << 54) - 1;
    expect(small_of(small_floats, DT_F64, &value) == 0x3f81, "1 + 2^-8 + 2^-40: %x",
           small_of(small_floats, DT_F64, &value));
    expect(small_of(small_floats, DT_F64, &below) == 0x3f80, "1 + 2^-8 - 2^-40");
    expect(small_of(small_floats, DT_I64, &integer) == 0x5e81, "2^62 + 2^54 + 1: %x",
           small_of(small_floats, DT_I64, &integer));
    expect(small_of(small_floats, DT_I64, &less) == 0x5e80, "2^62 + 2^54 - 1");
    integer = -integer;
    expect(small_of(small_floats, DT_I64, &integer) == 0xde81, "-(2^62 + 2^54 + 1)");
}

/* ---- conversions among all --------------------------------------------------------------------------------------- */

typedef struct set_row { double value; int64_t i64; int32_t i32; uint8_t u8, boolean; } set_row;

static void doubles_as_integers(void)
{
    static const set_row table[] = {
        { 0, 0, 0, 0, 0 }, { -0.0, 0, 0, 0, 0 }, { 0.99, 0, 0, 0, 1 }, { -0.99, 0, 0, 0, 1 }, { 1.5, 1, 1, 1, 1 },
        { -1.5, -1, -1, 0, 1 }, { 255.9, 255, 255, 255, 1 }, { 256, 256, 256, 255, 1 }, { NAN, 0, 0, 0, 1 },
        { INFINITY, INT64_MAX, INT32_MAX, 255, 1 }, { -INFINITY, INT64_MIN, INT32_MIN, 0, 1 },
        { 2147483647.5, 2147483647, INT32_MAX, 255, 1 }, { 2147483648.0, 2147483648, INT32_MAX, 255, 1 },
        { -2147483648.5, -2147483648, INT32_MIN, 0, 1 }, { -2147483649.0, -2147483649, INT32_MIN, 0, 1 },
        { 0x1p63, INT64_MAX, INT32_MAX, 255, 1 }, { -0x1p63, INT64_MIN, INT32_MIN, 0, 1 },
        { 0x1.fffffffffffffp62, 0x7ffffffffffffc00, INT32_MAX, 255, 1 }, { 0x1p-1074, 0, 0, 0, 1 },
    };
    for (int i = 0; i < DT_COUNT(table); i++) {
        int64_t i64;
        int32_t i32;
        uint8_t u8, boolean;
        dti_number_set(DT_I64, table[i].value, &i64);
        dti_number_set(DT_I32, table[i].value, &i32);
        dti_number_set(DT_U8, table[i].value, &u8);
        dti_number_set(DT_BOOL, table[i].value, &boolean);
        expect(i64 == table[i].i64 && i32 == table[i].i32 && u8 == table[i].u8 && boolean == table[i].boolean,
               "%g: %lld, %d, %d, %d", table[i].value, (long long)i64, i32, u8, boolean);
        float single = (float)table[i].value;
        double back = (double)single;
        int64_t of_single, of_back;
        int32_t small_single, small_back;
        dti_numbers_convert(DT_F32, &single, DT_I64, &of_single, 1);
        dti_numbers_convert(DT_F64, &back, DT_I64, &of_back, 1);
        dti_numbers_convert(DT_F32, &single, DT_I32, &small_single, 1);
        dti_numbers_convert(DT_F64, &back, DT_I32, &small_back, 1);
        expect(of_single == of_back && small_single == small_back, "%g from f32", table[i].value);
    }
}

static void integers_keep_their_low_bits(void)
{
    static const int64_t values[] = { 0, 1, -1, 255, 256, -256, INT32_MAX, INT32_MIN, INT64_C(2147483648),
                                      INT64_C(-2147483649), INT64_MAX, INT64_MIN, INT64_C(0x123456789abcdef0) };
    for (int i = 0; i < DT_COUNT(values); i++) {
        int32_t i32;
        uint8_t u8, boolean;
        uint32_t low = (uint32_t)values[i], got;
        dti_numbers_convert(DT_I64, &values[i], DT_I32, &i32, 1);
        dti_numbers_convert(DT_I64, &values[i], DT_U8, &u8, 1);
        dti_numbers_convert(DT_I64, &values[i], DT_BOOL, &boolean, 1);
        memcpy(&got, &i32, sizeof got);
        expect(got == low && u8 == (uint8_t)low && boolean == (values[i] != 0), "%lld: %d, %d, %d",
               (long long)values[i], i32, u8, boolean);
    }
}

static void f32_of_f64_is_one_rounding(void)
{
    static const double values[] = { 1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-52, 1 + 3 * 0x1p-24, 0x1.fffffefp127,
                                     0x1.ffffffp127, 0x1p-150, 0x1.8p-150, 1e-46, -0.0, INFINITY, -INFINITY, NAN };
    for (int i = 0; i < DT_COUNT(values); i++) {
        float single, want = (float)values[i];
        dti_number_set(DT_F32, values[i], &single);
        expect(same_bits((double)single, (double)want), "%a: %a, want %a", values[i], (double)single, (double)want);
    }
}

/* ---- arrays: any dtype, any length ------------------------------------------------------------------------------- */

enum { MOST = 1700, SOURCES = 5, GUARD = 64 }; /* elements: over three chunks                                      */

static const int lengths[] = { 0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 511, 512, 513, 527, 528, 529, 1023, 1024, 1025, 1536,
                               1699 };

typedef struct array { uint64_t words[MOST + 2 * GUARD]; } array;  /* of any dtype, aligned for all                */

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static bool is_float(dt_dtype dtype) { return dtype <= DT_F16; }

static void draw(dt_dtype dtype, void *numbers, int n, unsigned *seed)
{
    static const double special[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 2, 0x1p-20, 65504, -3 };
    for (int i = 0; i < n; i++) {
        double plain = ((double)below(seed, 1 << 16) - 0x1p15) * (is_float(dtype) ? 0x1p-7 : 65536);
        double value = below(seed, 4) == 0 ? special[below(seed, DT_COUNT(special))] : plain;
        dti_number_set(dtype, value, (char *)numbers + (size_t)i * dt_dtype_bytes(dtype));
    }
}

static void *at(void *numbers, dt_dtype dtype, int i) { return (char *)numbers + (size_t)i * dt_dtype_bytes(dtype); }

static double f64_pair(dti_combine combine, double a, double b)
{
    if (combine == DTI_COMBINE_SUM) return a + b;
    if (combine == DTI_COMBINE_PROD) return a * b;
    if (isnan(a) || isnan(b)) return NAN;
    bool first = a == b ? (signbit(a) != 0) < (signbit(b) != 0) : a > b; /* is a the larger?                      */
    return first == (combine == DTI_COMBINE_MAX) ? a : b;
}

static int64_t i64_pair(dti_combine combine, int64_t a, int64_t b)
{
    uint64_t wrapped = combine == DTI_COMBINE_SUM ? (uint64_t)a + (uint64_t)b : (uint64_t)a * (uint64_t)b;
    int64_t result;
    memcpy(&result, &wrapped, sizeof result);
    if (combine == DTI_COMBINE_MAX) return a > b ? a : b;
    return combine == DTI_COMBINE_MIN ? a < b ? a : b : result;
}

/* The sum dtype's bits of one element's combination, by definition. */
static void combine_element(dti_combine combine, dt_dtype from, const void *const *sources, int count, int i, void *sum)
{
    dt_dtype dtype = dti_sum_dtype(from);
    for (int s = 0; s < count; s++) {
        union { double f64; float f32; int64_t i64; } number, *total = sum;
        dti_numbers_convert(from, (const char *)sources[s] + (size_t)i * dt_dtype_bytes(from), dtype, &number, 1);
        if (s == 0) *total = number;
        else if (dtype == DT_F64) total->f64 = f64_pair(combine, total->f64, number.f64);
        else if (dtype == DT_F32) total->f32 = (float)f64_pair(combine, (double)total->f32, (double)number.f32);
        else total->i64 = i64_pair(combine, total->i64, number.i64);
    }
}

static bool same_number(dt_dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, dt_dtype_bytes(dtype)) == 0) return true;
    if (!is_float(dtype)) return false;
    double x = dti_number_get(dtype, a), y = dti_number_get(dtype, b);
    return x != x && y != y;
}

static int differences(dt_dtype dtype, void *got, void *want, int n)
{
    int bad = 0;
    for (int i = 0; i < n; i++) bad += !same_number(dtype, at(got, dtype, i), at(want, dtype, i));
    return bad;
}

static bool guarded(const array *a, const void *begin, size_t bytes)
{
    const unsigned char *all = (const unsigned char *)a, *first = begin;
    for (size_t i = 0; i < sizeof *a; i++)
        if ((all + i < first || all + i >= first + bytes) && all[i] != 0xa5) return false;
    return true;
}

static void conversions_do_not_depend_on_length_or_place(void)
{
    static array in, out, want;
    unsigned seed = 2;
    for (dt_dtype from = DT_F64; from < DT_DTYPE_COUNT; from++)
        for (dt_dtype to = DT_F64; to < DT_DTYPE_COUNT; to++)
            for (int k = 0; k < DT_COUNT(lengths); k++) {
                int n = lengths[k], in_at = (int)below(&seed, 9), out_at = (int)below(&seed, 9) + GUARD;
                memset(&out, 0xa5, sizeof out);
                draw(from, at(&in, from, in_at), n, &seed);
                for (int i = 0; i < n; i++)
                    dti_numbers_convert(from, at(&in, from, in_at + i), to, at(&want, to, i), 1);
                dti_numbers_convert(from, at(&in, from, in_at), to, at(&out, to, out_at), n);
                int bad = memcmp(at(&out, to, out_at), &want, (size_t)n * dt_dtype_bytes(to)) != 0;
                expect(!bad, "%s to %s, %d elements", dt_dtype_text(from), dt_dtype_text(to), n);
                expect(guarded(&out, at(&out, to, out_at), (size_t)n * dt_dtype_bytes(to)),
                       "%s to %s, %d: wrote beyond", dt_dtype_text(from), dt_dtype_text(to), n);
            }
}

static void combine_case(dti_combine combine, dt_dtype from, dt_dtype to, int n, unsigned *seed)
{
    static array in[SOURCES], out, want;
    const void *sources[SOURCES];
    int count = 1 + (int)below(seed, SOURCES), out_at = (int)below(seed, 9) + GUARD;
    for (int s = 0; s < count; s++) {
        void *numbers = at(&in[s], from, (int)below(seed, 9));
        draw(from, numbers, n, seed);
        sources[s] = numbers;
    }
    for (int i = 0; i < n; i++) {
        uint64_t sum;
        combine_element(combine, from, sources, count, i, &sum);
        dti_numbers_convert(dti_sum_dtype(from), &sum, to, at(&want, to, i), 1);
    }
    memset(&out, 0xa5, sizeof out);
    dti_numbers_combine(combine, from, sources, count, to, at(&out, to, out_at), n);
    int bad = differences(to, at(&out, to, out_at), &want, n);
    expect(bad == 0, "combination %d of %d x %d %s to %s: %d differ", combine, count, n, dt_dtype_text(from),
           dt_dtype_text(to), bad);
    expect(guarded(&out, at(&out, to, out_at), (size_t)n * dt_dtype_bytes(to)), "wrote beyond");
    if (from != to) return;
    void *own = (void *)(uintptr_t)sources[below(seed, (unsigned)count)];
    dti_numbers_combine(combine, from, sources, count, to, own, n);
    expect(differences(to, own, &want, n) == 0, "combination %d of %d x %d %s in place", combine, count, n,
           dt_dtype_text(from));
}

static void combinations_of_all_dtypes(void)
{
    unsigned seed = 3;
    for (int combine = 0; combine < DTI_COMBINE_COUNT; combine++)
        for (dt_dtype from = DT_F64; from < DT_DTYPE_COUNT; from++)
            for (dt_dtype to = DT_F64; to < DT_DTYPE_COUNT; to++)
                for (int k = 0; k < DT_COUNT(lengths); k++)
                    combine_case((dti_combine)combine, from, to, lengths[k], &seed);
}

static void accumulating_is_combining(void)
{
    static array in[SOURCES], out, want;
    unsigned seed = 4;
    for (int combine = 0; combine < DTI_COMBINE_COUNT; combine++)
        for (dt_dtype from = DT_F64; from < DT_DTYPE_COUNT; from++)
            for (int k = 0; k < DT_COUNT(lengths); k++) {
                int n = lengths[k];
                dt_dtype sum = dti_sum_dtype(from);
                const void *sources[SOURCES];
                memset(&out, 0xa5, sizeof out);
                for (int s = 0; s < SOURCES; s++) {
                    void *numbers = at(&in[s], from, (int)below(&seed, 9));
                    draw(from, numbers, n, &seed);
                    sources[s] = numbers;
                    dti_numbers_accumulate((dti_combine)combine, s == 0, from, numbers, at(&out, sum, GUARD), n);
                }
                dti_numbers_combine((dti_combine)combine, from, sources, SOURCES, sum, &want, n);
                int bad = memcmp(at(&out, sum, GUARD), &want, (size_t)n * dt_dtype_bytes(sum));
                expect(!bad, "combination %d of %d %s", combine, n, dt_dtype_text(from));
                expect(guarded(&out, at(&out, sum, GUARD), (size_t)n * dt_dtype_bytes(sum)), "wrote beyond");
            }
}

/* ---- meanings worth a row ---------------------------------------------------------------------------------------- */

static double pair(dti_combine combine, dt_dtype dtype, double a, double b)
{
    uint64_t x, y, out;
    const void *sources[] = { &x, &y };
    dti_number_set(dtype, a, &x);
    dti_number_set(dtype, b, &y);
    dti_numbers_combine(combine, dtype, sources, 2, dtype, &out, 1);
    return dti_number_get(dtype, &out);
}

static double larger(dt_dtype dtype, double a, double b) { return pair(DTI_COMBINE_MAX, dtype, a, b); }

static double smaller(dt_dtype dtype, double a, double b) { return pair(DTI_COMBINE_MIN, dtype, a, b); }

static void max_and_min_of_zeroes_and_nans(void)
{
    for (dt_dtype d = DT_F64; d <= DT_F16; d++) {
        const char *name = dt_dtype_text(d);
        expect(!signbit(larger(d, -0.0, 0.0)) && !signbit(larger(d, 0.0, -0.0)), "max %s", name);
        expect(signbit(smaller(d, -0.0, 0.0)) && signbit(smaller(d, 0.0, -0.0)), "min %s", name);
        expect(signbit(larger(d, -0.0, -0.0)) && !signbit(smaller(d, 0.0, 0.0)), "same %s", name);
        for (int c = 0; c < DTI_COMBINE_COUNT; c++) {
            dti_combine combine = (dti_combine)c;
            expect(isnan(pair(combine, d, NAN, 1)) && isnan(pair(combine, d, 1, NAN)), "%s, %d: a NaN", name, c);
            expect(isnan(pair(combine, d, NAN, INFINITY)), "%s, %d: NaN, inf", name, c);
            expect(isnan(pair(combine, d, -INFINITY, NAN)), "%s, %d: -inf, NaN", name, c);
            expect(isnan(pair(combine, d, NAN, NAN)), "%s, %d: NaNs", name, c);
        }
    }
}

static void integers_wrap_and_bools_or(void)
{
    int32_t a = INT32_MAX, b = 1, out;
    int64_t x = INT64_MAX, y = 2, wide;
    uint8_t u = 200, v = 100, byte, yes = 1, no = 0, odd = 7;
    const void *i32s[] = { &a, &b }, *i64s[] = { &x, &y }, *u8s[] = { &u, &v };
    const void *bools[] = { &yes, &no }, *odds[] = { &odd, &no };
    dti_numbers_combine(DTI_COMBINE_SUM, DT_I32, i32s, 2, DT_I32, &out, 1);
    expect(out == INT32_MIN, "i32: %d", out);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_I32, i32s, 2, DT_I64, &wide, 1);
    expect(wide == INT64_C(2147483648), "i32 as i64: %lld", (long long)wide);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_I64, i64s, 2, DT_I64, &wide, 1);
    expect(wide == INT64_MIN + 1, "i64: %lld", (long long)wide);
    dti_numbers_combine(DTI_COMBINE_PROD, DT_I64, i64s, 2, DT_I64, &wide, 1);
    expect(wide == -2, "i64 product: %lld", (long long)wide);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_U8, u8s, 2, DT_U8, &byte, 1);
    expect(byte == 44, "u8: %d", byte);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_BOOL, bools, 2, DT_BOOL, &byte, 1);
    expect(byte == 1, "true or false: %d", byte);
    dti_numbers_combine(DTI_COMBINE_PROD, DT_BOOL, bools, 2, DT_BOOL, &byte, 1);
    expect(byte == 0, "true and false: %d", byte);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_BOOL, odds, 2, DT_I64, &wide, 1);
    expect(wide == 1, "a true of bits 7 counts once: %lld", (long long)wide);
}

static void small_sums_are_made_in_f32(void)
{
    uint16_t one, tiny, out;
    dti_number_set(DT_BF16, 256, &one);
    dti_number_set(DT_BF16, 0.5, &tiny);
    const void *sources[] = { &one, &tiny, &tiny, &tiny, &tiny };
    dti_numbers_combine(DTI_COMBINE_SUM, DT_BF16, sources, 5, DT_BF16, &out, 1);
    expect(dti_number_get(DT_BF16, &out) == 258, "256 + 4/2: %g", dti_number_get(DT_BF16, &out));
    float sums[3] = { 0x1p24f, 1, 1 }, sum;                            /* in order: 1 is lost each time            */
    const void *ordered[] = { &sums[0], &sums[1], &sums[2] }, *other[] = { &sums[1], &sums[2], &sums[0] };
    dti_numbers_combine(DTI_COMBINE_SUM, DT_F32, ordered, 3, DT_F32, &sum, 1);
    expect(sum == 0x1p24f, "in order: %a", (double)sum);
    dti_numbers_combine(DTI_COMBINE_SUM, DT_F32, other, 3, DT_F32, &sum, 1);
    expect(sum == 0x1p24f + 2, "in the other order: %a", (double)sum);
}

static void identities_change_no_bit(void)
{
    static array numbers, identity, out;
    unsigned seed = 5;
    for (int c = 0; c < DTI_COMBINE_COUNT; c++)
        for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++)
            for (int first = 0; first < 2; first++) {
                enum { N = 600 };
                const void *sources[] = { first ? &identity : &numbers, first ? &numbers : &identity };
                draw(d, &numbers, N, &seed);
                dti_numbers_identity(d, (dti_combine)c, &identity, N);
                dti_numbers_combine((dti_combine)c, d, sources, 2, d, &out, N);
                expect(differences(d, &out, &numbers, N) == 0, "combination %d, %s", c, dt_dtype_text(d));
            }
}

static void fills_are_exact_and_within(void)
{
    static const double values[] = { 0, -0.0, 1, -1.5, NAN, INFINITY, 300 };
    static array out;
    for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++)
        for (int v = 0; v < DT_COUNT(values); v++)
            for (int k = 0; k < DT_COUNT(lengths); k++) {
                int n = lengths[k], bad = 0;
                uint64_t want;
                dti_number_set(d, values[v], &want);
                memset(&out, 0xa5, sizeof out);
                dti_numbers_fill(d, values[v], at(&out, d, GUARD), n);
                for (int i = 0; i < n; i++) bad += memcmp(at(&out, d, GUARD + i), &want, dt_dtype_bytes(d)) != 0;
                expect(bad == 0, "%s, %d of %g: %d differ", dt_dtype_text(d), n, values[v], bad);
                expect(guarded(&out, at(&out, d, GUARD), (size_t)n * dt_dtype_bytes(d)), "%d: wrote beyond", n);
            }
}

static void scaled(dt_dtype d, double value, int64_t multiply, int64_t divide, double want)
{
    uint64_t number;
    dti_number_set(d, value, &number);
    dti_numbers_scale(d, &number, 1, multiply, divide);
    expect(same_bits(dti_number_get(d, &number), want), "%s %g * %lld / %lld: %g", dt_dtype_text(d), value,
           (long long)multiply, (long long)divide, dti_number_get(d, &number));
}

static void scaling(void)
{
    static array numbers, want;
    scaled(DT_F64, 1, 1, 3, 1.0 / 3);
    scaled(DT_F32, 1, 1, 3, (double)(1.0f / 3));
    scaled(DT_F64, 49, 1, 49, 1);                                      /* times 1/49 would be less                 */
    scaled(DT_F32, -0.0, 1, 8, -0.0);
    scaled(DT_F32, NAN, 2, 8, NAN);
    scaled(DT_F16, 65504, 2, 4, 32752);                                /* 131008 fits the f32 between              */
    scaled(DT_I32, -7, 1, 2, -3);
    scaled(DT_I32, INT32_MAX, 4, 2, -2);
    scaled(DT_I64, 5, -3, 2, -7);
    scaled(DT_U8, 200, 3, 4, 150);
    scaled(DT_BOOL, 1, 1, 2, 0);
    unsigned seed = 6;
    for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++)
        for (int k = 0; k < DT_COUNT(lengths); k++) {
            int n = lengths[k];
            memset(&numbers, 0xa5, sizeof numbers);
            draw(d, at(&numbers, d, GUARD), n, &seed);
            memcpy(&want, at(&numbers, d, GUARD), (size_t)n * dt_dtype_bytes(d));
            for (int i = 0; i < n; i++) dti_numbers_scale(d, at(&want, d, i), 1, 3, 7);
            dti_numbers_scale(d, at(&numbers, d, GUARD), n, 3, 7);
            bool same = memcmp(at(&numbers, d, GUARD), &want, (size_t)n * dt_dtype_bytes(d)) == 0;
            expect(same, "%s, %d", dt_dtype_text(d), n);
            expect(guarded(&numbers, at(&numbers, d, GUARD), (size_t)n * dt_dtype_bytes(d)), "%d: wrote beyond", n);
        }
}

static void sum_dtypes(void)
{
    static const dt_dtype want[DT_DTYPE_COUNT] = { [DT_F64] = DT_F64, [DT_F32] = DT_F32, [DT_BF16] = DT_F32,
                                                   [DT_F16] = DT_F32, [DT_I64] = DT_I64, [DT_I32] = DT_I64,
                                                   [DT_U8] = DT_I64, [DT_BOOL] = DT_I64 };
    for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++)
        expect(dti_sum_dtype(d) == want[d], "%s: %s", dt_dtype_text(d), dt_dtype_text(dti_sum_dtype(d)));
}

static const test_row rows[] = {
    { "small_floats_are_read_exactly", small_floats_are_read_exactly },
    { "small_floats_come_back", small_floats_come_back },
    { "small_floats_are_rounded_to_even", small_floats_are_rounded_to_even },
    { "small_floats_of_random_bits", small_floats_of_random_bits },
    { "conversions_round_once", conversions_round_once },
    { "doubles_as_integers", doubles_as_integers },
    { "integers_keep_their_low_bits", integers_keep_their_low_bits },
    { "f32_of_f64_is_one_rounding", f32_of_f64_is_one_rounding },
    { "conversions_do_not_depend_on_length_or_place", conversions_do_not_depend_on_length_or_place },
    { "combinations_of_all_dtypes", combinations_of_all_dtypes },
    { "accumulating_is_combining", accumulating_is_combining },
    { "max_and_min_of_zeroes_and_nans", max_and_min_of_zeroes_and_nans },
    { "integers_wrap_and_bools_or", integers_wrap_and_bools_or },
    { "small_sums_are_made_in_f32", small_sums_are_made_in_f32 },
    { "identities_change_no_bit", identities_change_no_bit },
    { "fills_are_exact_and_within", fills_are_exact_and_within },
    { "scaling", scaling },
    { "sum_dtypes", sum_dtypes },
};

const suite the_suite = { "number", rows, DT_COUNT(rows) };
