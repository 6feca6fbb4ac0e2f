/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of sizes, by which free memory is kept in lists. 0: no bytes. Then 64, 128, 192, 256, and from there on four
 * steps to a power of two: 320, 384, 448, 512, 640. */
#ifndef DTI_SIZES_H
#define DTI_SIZES_H

#include <stddef.h>

enum { DTI_SIZE_LEAST = 64, DTI_SIZE_SMALL_BITS = 8, DTI_SIZE_STEP_BITS = 2, DTI_SIZE_STEPS = 1 << DTI_SIZE_STEP_BITS };

/* How many classes there are for sizes up to 2^bits. */
#define DTI_SIZE_CLASSES(bits) (1 + DTI_SIZE_STEPS + DTI_SIZE_STEPS * ((bits) - DTI_SIZE_SMALL_BITS))

static inline int dti_size_class(size_t n)
{
    if (n <= (size_t)1 << DTI_SIZE_SMALL_BITS) return (int)((n + DTI_SIZE_LEAST - 1) / DTI_SIZE_LEAST);
    int power = 63 - __builtin_clzll((unsigned long long)(n - 1));     /* 2^power < n <= 2^(power + 1)             */
    size_t step = ((n - 1) >> (power - DTI_SIZE_STEP_BITS)) - DTI_SIZE_STEPS;
    return 1 + DTI_SIZE_STEPS * (power - DTI_SIZE_SMALL_BITS + 1) + (int)step;
}

static inline size_t dti_size_of_class(int class)
{
    if (class <= DTI_SIZE_STEPS) return (size_t)class * DTI_SIZE_LEAST;
    size_t steps = (size_t)DTI_SIZE_STEPS + (size_t)((class - 1) % DTI_SIZE_STEPS) + 1;
    return steps << ((class - 1) / DTI_SIZE_STEPS - 1 + DTI_SIZE_SMALL_BITS - DTI_SIZE_STEP_BITS);
}

#endif
