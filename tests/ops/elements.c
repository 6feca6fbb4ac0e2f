/* SPDX-License-Identifier: Apache-2.0
 *
 * Contributions of a sum are small halves, the last makes up the value; of a product powers of two and signs; of max
 * and min one rank has the value, others something on the right side of it. */
#include "elements.h"

#include <math.h>

#include "core/number.h"
#include "core/table.h"

static bool is_integer(dt_dtype dtype) { return dtype >= DT_I64; }
static bool is_unsigned(dt_dtype dtype) { return dtype == DT_U8 || dtype == DT_BOOL; }

static int below(uint64_t seed, uint64_t what, int n) { return (int)(dti_hash_mix(seed, what) % (uint64_t)n); }

static double draw_special(uint64_t seed)
{
    static const double values[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0 };
    return values[below(seed, 2, DT_COUNT(values))];
}

static double draw_within(dt_dtype dtype, value_range range, uint64_t seed)
{
    double step = is_integer(dtype) ? 1 : 0.5;
    return range.low + step * below(seed, 3, (int)((range.high - range.low) / step) + 1);
}

double value_draw(value_kind kind, dt_dtype dtype, value_range range, uint64_t seed)
{
    _Alignas(8) char number[8];
    if (range.given) return draw_within(dtype, range, seed);
    if (dtype == DT_BOOL) return below(seed, 4, 2);
    if (is_integer(dtype)) return below(seed, 5, 7) - (is_unsigned(dtype) ? 0 : 3);
    if (kind == VALUES_SPECIAL && below(seed, 6, 6) == 0) return draw_special(seed);
    if (kind != VALUES_ROUGH) return 0.5 * (below(seed, 7, 13) - 6);
    dti_number_set(dtype, below(seed, 8, 2000001) * 1e-6 - 1, number);
    return dti_number_get(dtype, number);
}

/* ---- contributions ----------------------------------------------------------------------------------------------- */

bool value_splits(const value_split *split)
{
    if (split->averaged > 1 && is_integer(split->dtype)) return split->averaged == split->count;
    return split->exact || split->averaged <= 2; /* three times a number is rounded                            */
}

/* Of integers: what the average rounds away, too. */
static double average_part(const value_split *split, double value, int i, uint64_t seed)
{
    double more = below(seed, 12, split->count), sign = value < 0 ? -1 : 1;
    if (split->dtype == DT_BOOL) return value;
    return value + (i == 0 ? sign * more : 0);
}

static double sum_part(const value_split *split, double value, int i, uint64_t seed)
{
    int owner = below(seed, 11, split->count / split->averaged);
    if (split->averaged > 1 && is_integer(split->dtype)) return average_part(split, value, i, seed);
    if (split->dtype == DT_BOOL)                                        /* a sum of bools is their or               */
        return value != 0 && (i == owner || below(seed, 100 + (uint64_t)i, 2));
    if (!split->exact || (value == 0 && signbit(value))) return i / split->averaged == owner ? value : -0.0;
    double rest = value * split->averaged;
    for (int k = 0; k + 1 < split->count; k++) {
        double part = below(seed, 100 + (uint64_t)k, 5) - (is_unsigned(split->dtype) ? 0 : 2);
        if (!is_integer(split->dtype)) part *= 0.5;
        if (k == i) return part;
        rest -= part;
    }
    return split->dtype == DT_U8 && rest < 0 ? rest + 256 : rest;       /* sums of integers wrap                     */
}

static double extreme_part(const value_split *split, double value, int i, uint64_t seed)
{
    double step = below(seed, 100 + (uint64_t)i, 3), from = isfinite(value) ? value : 0;
    if (i == below(seed, 11, split->count)) return value;
    if (isinf(value) && (value > 0) == (split->kind == DTI_MIN)) return value; /* nothing is beyond it             */
    if (split->kind == DTI_MIN) {
        if (split->dtype == DT_BOOL) return value != 0 || step > 0;
        return from + step;
    }
    return is_unsigned(split->dtype) && step > from ? 0 : from - step;
}

static double factor_of(const value_split *split, int i, uint64_t seed)
{
    static const double factors[] = { 1, -1, 2, 0.5 };
    return factors[below(seed, 100 + (uint64_t)i, is_unsigned(split->dtype) ? 1 : is_integer(split->dtype) ? 2 : 4)];
}

static double product_part(const value_split *split, double value, int i, uint64_t seed)
{
    int owner = below(seed, 11, split->count);
    if (i != owner) return factor_of(split, i, seed);
    for (int k = 0; k < split->count; k++)
        if (k != owner) value /= factor_of(split, k, seed);
    return value;
}

double value_part(const value_split *split, double value, int i, uint64_t seed)
{
    switch (split->kind) {
    case DTI_MAX:
    case DTI_MIN: return extreme_part(split, value, i, seed);
    case DTI_PROD: return product_part(split, value, i, seed);
    default: return sum_part(split, value, i, seed);
    }
}
