/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut: where n elements are divided over k pieces. Nothing else in the library knows how pieces are sized. The
 * cuts by a are every b-th of the cuts by a b, so mesh dims on one factor act as one of the product size, for every n.
 * A piece cut again by itself may fall otherwise: 2 over 6 is 1,0,0,1,0,0, but 2 over 3, each over 2, is
 * 1,0,1,0,0,0. */
#ifndef DTI_CUT_H
#define DTI_CUT_H

#include <stdint.h>

/* Where piece i of k begins, ceil(i n / k); piece i is [cut(i), cut(i + 1)). 0 <= i <= k, k < 2^31. */
static inline int64_t dti_cut(int64_t n, int64_t k, int64_t i)
{
    int64_t rest = n % k;
    return i * (n / k) + (rest ? (i * rest + k - 1) / k : 0);
}

/* The largest number that divides both; they are not both 0. */
static inline int64_t dti_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The piece that holds element j of n > 0: floor(j k / n). */
static inline int64_t dti_cut_piece(int64_t n, int64_t k, int64_t j)
{
    __extension__ typedef __int128 wide;
    return (int64_t)((wide)j * k / n);
}

#endif
