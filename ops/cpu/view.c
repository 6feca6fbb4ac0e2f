/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that have the operand's elements in their order. */
#include <string.h>

#include "ops/cpu/kernels.h"

dt_status dti_cpu_view(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    size_t bytes = dt_dtype_bytes(y->dtype);
    for (int d = 0; d < y->shape.n; d++) bytes *= (size_t)y->shape.dim[d];
    if (bytes) memcpy(y->data, x->data, bytes);
    return DT_OK;
}
