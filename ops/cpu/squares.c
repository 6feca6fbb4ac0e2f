/* SPDX-License-Identifier: Apache-2.0
 *
 * The sum of the squares of all elements, in f64: sums of short runs, which keeps its error small. */
#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"

/* Of whole blocks, lane by lane, then the lanes. */
DTI_CLONES static double squares_of(const double *x, size_t blocks)
{
    double lanes[DTI_LANES] = { 0 }, sum = 0;
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < DTI_LANES; i++) lanes[i] += x[b * DTI_LANES + i] * x[b * DTI_LANES + i];
    for (size_t i = 0; i < DTI_LANES; i++) sum += lanes[i];
    return sum;
}

dt_status dti_cpu_sum_squares(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    double sum = 0;
    int64_t n = x->data ? 1 : 0, bytes = (int64_t)dt_dtype_bytes(x->dtype);
    for (int d = 0; d < x->shape.n; d++) n *= x->shape.dim[d];
    for (int64_t at = 0; at < n; at += DTI_RUN) {
        double run[DTI_RUN] = { 0 };
        int64_t count = n - at < DTI_RUN ? n - at : DTI_RUN;
        dti_numbers_convert(x->dtype, (const char *)x->data + at * bytes, DT_F64, run, count);
        sum += squares_of(run, dti_blocks(count));
    }
    dti_numbers_convert(DT_F64, &sum, y->dtype, y->data, 1);
    return DT_OK;
}
