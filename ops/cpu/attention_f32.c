/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of attention in f32. */
#include <stdint.h>

typedef float number;
typedef int32_t integer;
typedef uint32_t whole_bits;

enum { MANTISSA = 23, BIAS = 127 };

/* Before exp it is 0, behind it infinite; ln 2 in two parts, as in math.h; 1 over factorials, from the last. */
static const float lowest = -87, highest = 89, shift = 0x1.8p23f, per_ln2 = 0x1.715476p0f;
static const float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
static const float series[] = {
    1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f,
};

#include "ops/cpu/attention_lanes.h"

/* A vector is a panel; two at once where the machine has the registers for their sums. */
DTI_CLONES static void product(const dti_panels *p)
{
    int64_t i = 0;
    if (dti_has_wide_vectors())
        for (; i + 2 <= p->count; i += 2)
            multiply(p, &(placing){ 2, i * p->apart, p->apart, i * p->out_apart, p->out_apart });
    for (; i < p->count; i++) multiply(p, &(placing){ 1, i * p->apart, 0, i * p->out_apart, 0 });
}

const dti_attend_steps dti_attend_f32 = {
    DT_F32, sizeof(float), product, spread, collect, add, is_finite, soften, close_rows, blend, differ,
};
