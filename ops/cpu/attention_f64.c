/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of attention in f64. */
#include <stdint.h>

typedef double number;
typedef int64_t integer;
typedef uint64_t whole_bits;

enum { MANTISSA = 52, BIAS = 1023 };

/* Before exp it is 0, behind it infinite; ln 2 in two parts, as in math.h; 1 over factorials, from the last. */
static const double lowest = -708, highest = 710, shift = 0x1.8p52, per_ln2 = 0x1.71547652b82fep0;
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
static const double series[] = {
    1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
    1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5,
};

#include "ops/cpu/attention_lanes.h"

/* Two vectors are a panel. */
DTI_CLONES static void product(const dti_panels *p)
{
    for (int64_t i = 0; i < p->count; i++)
        multiply(p, &(placing){ 2, i * p->apart, WIDTH, i * p->out_apart, WIDTH });
}

const dti_attend_steps dti_attend_f64 = {
    DT_F64, sizeof(double), product, spread, collect, add, is_finite, soften, close_rows, blend, differ,
};
