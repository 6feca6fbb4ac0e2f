/* SPDX-License-Identifier: Apache-2.0
 *
 * One number everywhere. Of a sum over ranks it is on one of them; the others hold what adds nothing. */
#include <math.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/kernels.h"

dt_status dti_cpu_fill(const dt_call *call)
{
    const dt_part *y = &call->out[0];
    double number = ((const dti_map_numbers *)call->attributes)->a;
    int64_t n = 1;
    if (dti_sum_dtype(y->dtype) == DT_I64 && !isinf(number) && floor(number) != number)
        return dt_context_fail(call->ctx, DT_ERR_ARG, "%s: expected a whole number for %s, got %g", call->op->head,
                               dt_dtype_text(y->dtype), number);
    for (int d = 0; d < y->shape.n; d++) n *= y->shape.dim[d];
    if (call->adds_number) dti_numbers_fill(y->dtype, number, y->data, n);
    else dti_numbers_identity(y->dtype, DTI_COMBINE_SUM, y->data, n);
    return DT_OK;
}
