/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices. */
#include "ops/cpu/kernels.h"
#include "ops/tables.h"

/* As large as it counts. */
static int64_t times(int64_t a, int64_t b) { return b && a > INT64_MAX / b ? INT64_MAX : a * b; }

/* Two operations per product that is summed: the elements of a, each times the columns of b. */
static int64_t matmul_flops(const void *attributes, const dt_shape *in, int n)
{
    int64_t flops = times(2, in[1].dim[in[1].n - 1]);
    (void)attributes;
    (void)n;
    for (int d = 0; d < in[0].n; d++) flops = times(flops, in[0].dim[d]);
    return flops;
}

static const dt_op matmul = {
    .head = "matmul(a, b)", .rule = "... m k, ... k n -> ... m n", .polynomial = "a b",
    .kernel = dti_cpu_matmul, .flops = matmul_flops,
    .doc = "product of matrices; leading dims are a batch and broadcast",
};

const dt_op *const dti_ops_matmul[] = { &matmul, NULL };
