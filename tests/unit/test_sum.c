/* SPDX-License-Identifier: Apache-2.0
 *
 * The checksum: parts add up in any order, every value and place counts, what is the same value is the same sum. */
#include <math.h>
#include <string.h>

#include "core/number.h"
#include "suite.h"
#include "tensor/random.h"
#include "tensor/sum.h"

enum { N = 1000 };

static void parts_add_up_in_any_order(void)
{
    static uint64_t values[N];
    for (dt_dtype d = DT_F64; d < DT_DTYPE_COUNT; d++) {
        dti_random_uniform(d, 1, 2, 0, N, values);
        uint64_t whole = dti_checksum(d, 5, N, values), sum = 0;
        size_t bytes = dt_dtype_bytes(d);
        for (int64_t i = N - 1; i >= 500; i--) sum += dti_checksum(d, 5 + i, 1, (char *)values + (size_t)i * bytes);
        sum += dti_checksum(d, 5 + 123, 500 - 123, (char *)values + 123 * bytes) + dti_checksum(d, 5, 123, values);
        expect(sum == whole, "%s: parts make %llx, the whole %llx", dt_dtype_text(d), (unsigned long long)sum,
               (unsigned long long)whole);
        expect(dti_checksum(d, 5, 0, values) == 0, "%s: of nothing", dt_dtype_text(d));
        expect(dti_checksum(d, 4, N, values) != whole, "%s: places do not count", dt_dtype_text(d));
    }
}

static void every_bit_counts(void)
{
    static uint64_t values[40];
    for (dt_dtype d = DT_F64; d < DT_BOOL; d++) {
        unsigned char *bytes = (unsigned char *)values;
        dti_random_uniform(d, 3, 4, 0, 40, values);
        uint64_t whole = dti_checksum(d, 0, 40, values);
        int bad = 0;
        for (size_t i = 0; i < 40 * dt_dtype_bytes(d); i++)
            for (int bit = 0; bit < 8; bit++) {
                bytes[i] = (unsigned char)(bytes[i] ^ 1 << bit);
                bad += dti_checksum(d, 0, 40, values) == whole;
                bytes[i] = (unsigned char)(bytes[i] ^ 1 << bit);
            }
        expect(bad == 0, "%s: %d bits do not count", dt_dtype_text(d), bad);
    }
}

static void swapped_values_are_seen(void)
{
    double values[] = { 1, 2, 3, 4 }, swapped[] = { 1, 3, 2, 4 }, moved[] = { 2, 3, 4, 1 };
    uint64_t sum = dti_checksum(DT_F64, 0, 4, values);
    expect(sum != dti_checksum(DT_F64, 0, 4, swapped), "two swapped are not seen");
    expect(sum != dti_checksum(DT_F64, 0, 4, moved), "all moved are not seen");
    int64_t zeroes[8] = { 0 };
    for (int n = 1; n < 8; n++) {
        sum = dti_checksum(DT_I64, 0, n, zeroes);
        expect(sum != dti_checksum(DT_I64, 0, n + 1, zeroes), "%d zeroes and one more", n);
    }
}

static void zeroes_differ_and_nans_do_not(void)
{
    static const uint64_t nans[] = { UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000),
                                     UINT64_C(0x7ff0000000000001), UINT64_MAX };
    static const uint32_t singles[] = { 0x7fc00000, 0xffc00000, 0x7f800001, UINT32_MAX };
    static const uint16_t bf16s[] = { 0x7fc0, 0xffc0, 0x7f81, 0xffff }, f16s[] = { 0x7e00, 0xfe00, 0x7c01, 0xffff };
    for (int i = 1; i < 4; i++) {
        expect(dti_checksum(DT_F64, 3, 1, &nans[i]) == dti_checksum(DT_F64, 3, 1, nans), "f64, row %d", i);
        expect(dti_checksum(DT_F32, 3, 1, &singles[i]) == dti_checksum(DT_F32, 3, 1, singles), "f32, row %d", i);
        expect(dti_checksum(DT_BF16, 3, 1, &bf16s[i]) == dti_checksum(DT_BF16, 3, 1, bf16s), "bf16, row %d", i);
        expect(dti_checksum(DT_F16, 3, 1, &f16s[i]) == dti_checksum(DT_F16, 3, 1, f16s), "f16, row %d", i);
    }
    for (dt_dtype d = DT_F64; d <= DT_F16; d++) {
        static const double values[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1, -1 };
        uint64_t sums[DT_COUNT(values)], number;
        for (int i = 0; i < DT_COUNT(values); i++) {
            dti_number_set(d, values[i], &number);
            sums[i] = dti_checksum(d, 3, 1, &number);
            for (int j = 0; j < i; j++)
                expect(sums[i] != sums[j], "%s: %g as %g", dt_dtype_text(d), values[i], values[j]);
        }
    }
    unsigned char trues[] = { 1, 2, 255 }, no = 0;
    uint64_t yes = dti_checksum(DT_BOOL, 0, 1, trues);
    expect(yes == dti_checksum(DT_BOOL, 0, 1, trues + 1) && yes == dti_checksum(DT_BOOL, 0, 1, trues + 2), "trues");
    expect(yes != dti_checksum(DT_BOOL, 0, 1, &no), "true and false");
}

/* A hash of 64 bits: among so many elements no two are alike. */
static void elements_do_not_collide(void)
{
    enum { PLACES = 300, VALUES = 300 };
    static uint64_t seen[1 << 18];
    int bad = 0;
    memset(seen, 0, sizeof seen);
    for (int64_t place = 0; place < PLACES; place++)
        for (int64_t value = 0; value < VALUES; value++) {
            uint64_t sum = dti_checksum(DT_I64, place, 1, &value), at = sum % (1 << 18);
            for (; seen[at] && seen[at] != sum; at = (at + 1) % (1 << 18)) continue;
            bad += seen[at] == sum;
            seen[at] = sum;
        }
    expect(bad == 0, "%d collide", bad);
}

static const test_row rows[] = {
    { "parts_add_up_in_any_order", parts_add_up_in_any_order },
    { "every_bit_counts", every_bit_counts },
    { "swapped_values_are_seen", swapped_values_are_seen },
    { "zeroes_differ_and_nans_do_not", zeroes_differ_and_nans_do_not },
    { "elements_do_not_collide", elements_do_not_collide },
};

const suite the_suite = { "sum", rows, DT_COUNT(rows) };
