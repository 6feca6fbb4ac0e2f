/* SPDX-License-Identifier: Apache-2.0
 *
 * Smooth functions of doubles without branches, so that loops of them become vectors: within a few units of the last
 * digit, infinities and NaN as in <math.h>. Narrower floats are rounded from these, once. */
#ifndef DTI_OPS_CPU_MATH_H
#define DTI_OPS_CPU_MATH_H

#include <math.h>
#include <string.h>

#include "ops/cpu/vector.h"

DTI_INLINE uint64_t dti_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

DTI_INLINE double dti_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ln 2 in two parts: the first has so many zeros that its product with an exponent is exact. */
static const double dti_ln2_high = 0x1.62e42feep-1, dti_ln2_low = 0x1.a39ef35793c76p-33;

/* x = n ln 2 + r with |r| <= ln 2 / 2. n comes as 2^52 + 2^51 + n, whose last bits are n. */
typedef struct dti_reduced { double r, shifted; } dti_reduced;

DTI_INLINE dti_reduced dti_reduce(double x)
{
    const double shift = 0x1.8p52, per_ln2 = 0x1.71547652b82fep0;
    dti_reduced out = { .shifted = x * per_ln2 + shift };
    double n = out.shifted - shift;
    out.r = (x - n * dti_ln2_high) - n * dti_ln2_low;
    return out;
}

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, by its series. */
DTI_INLINE double dti_exp_rest(double r)
{
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    return p * r + 0.5;
}

/* 2^n is applied in two halves: each is a number where their product is none, or a subnormal one. */
DTI_INLINE double dti_exp(double x)
{
    double within = x < -750 ? -750 : x > 710 ? 710 : x;
    dti_reduced a = dti_reduce(within);
    uint64_t n = dti_bits(a.shifted) - dti_bits(0x1.8p52) + 4096, half = n >> 1, rest = n - half;
    double p = 1 + (a.r + a.r * a.r * dti_exp_rest(a.r));
    return p * dti_of_bits((half - 2048 + 1023) << 52) * dti_of_bits((rest - 2048 + 1023) << 52);
}

/* e^x - 1 for 0 <= x <= 700, exact near 0. */
DTI_INLINE double dti_expm1(double x)
{
    dti_reduced a = dti_reduce(x);
    double scale = dti_of_bits((dti_bits(a.shifted) - dti_bits(0x1.8p52) + 1023) << 52);
    return scale * (a.r + a.r * a.r * dti_exp_rest(a.r)) + (scale - 1);
}

DTI_INLINE double dti_tanh(double x)
{
    double twice = 2 * fabs(x), e = dti_expm1(twice > 44 ? 44 : twice); /* beyond, it is 1                         */
    return copysign(e / (e + 2), x);
}

DTI_INLINE double dti_sigmoid(double x) { return 1 / (1 + dti_exp(-x)); }

/* x = 2^n m with m in [sqrt 1/2, sqrt 2); log m by the series of s = (m - 1) / (m + 1). */
DTI_INLINE double dti_log(double x)
{
    const uint64_t root = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff0000000000000);
    int small = x < 0x1p-1022;
    uint64_t bits = dti_bits(small ? x * 0x1p54 : x) + (one - root);
    double n = dti_of_bits(UINT64_C(0x4330000000000000) | bits >> 52) - (small ? 0x1p52 + 1077 : 0x1p52 + 1023);
    double f = dti_of_bits((bits & UINT64_C(0x000fffffffffffff)) + root) - 1;
    double s = f / (2 + f), z = s * s, half = 0.5 * f * f, p = 2.0 / 23;
    p = p * z + 2.0 / 21;
    p = p * z + 2.0 / 19;
    p = p * z + 2.0 / 17;
    p = p * z + 2.0 / 15;
    p = p * z + 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    double finite = n * dti_ln2_high - ((half - (s * (half + z * p) + n * dti_ln2_low)) - f);
    double special = x == 0 ? -INFINITY : x > 0 ? x : NAN;
    return x > 0 && x < INFINITY ? finite : special;
}

#endif
