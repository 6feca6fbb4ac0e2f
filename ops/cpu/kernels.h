/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for the CPU: each sees this rank's parts and nothing else. The same bits for the same input, whatever lies
 * beside it. */
#ifndef DTI_OPS_CPU_KERNELS_H
#define DTI_OPS_CPU_KERNELS_H

#include <dtensor/op.h>

/* map.c: rows that are a dti_map_row. Sums and products in the sum dtype, smooth functions in f64, rounded once. */
dt_status dti_cpu_map(const dt_call *call);
/* The operand in the result's dtype. */
dt_status dti_cpu_cast(const dt_call *call);
/* matmul.c: sums in f32 for bf16 and f16, in i64 for small integers, else in the dtype; k ascending. */
dt_status dti_cpu_matmul(const dt_call *call);

#endif
