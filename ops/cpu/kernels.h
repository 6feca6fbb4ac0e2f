/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for the CPU: each sees this rank's parts and nothing else. */
#ifndef DTI_OPS_CPU_KERNELS_H
#define DTI_OPS_CPU_KERNELS_H

#include <dtensor/op.h>

/* matmul.c: sums in f32 for bf16 and f16, in i64 for small integers, else in the dtype; k ascending. */
dt_status dti_cpu_matmul(const dt_call *call);

#endif
