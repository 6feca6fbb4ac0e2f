/* SPDX-License-Identifier: Apache-2.0
 *
 * New tensors that lie as another does: with its elements, or with a number. */
#include <stddef.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

/* The number hangs on nothing. */
static dt_status grad_fill(dt_gradient *g)
{
    g->in_grad[0] = dt_fill(g->out_grad[0], 0);
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

static const dt_attribute value[] = { { "value", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, a) } };

static const dt_op copy = {
    .head = "copy(x)", .rule = "... -> ...", .polynomial = "x, rising", .kernel = dti_cpu_copy,
    .gradient = dti_grad_same, .doc = "the same elements once more",
};
/* x + 1: of what is P the first rank has the number. */
static const dt_op fill = {
    .head = "fill(x)", .rule = "... -> ...", .polynomial = "x + 1, rising", .attributes = value,
    .attribute_count = DT_COUNT(value), .attribute_bytes = sizeof(dti_map_numbers), .kernel = dti_cpu_fill,
    .gradient = grad_fill, .doc = "a number in the place of each element",
};

const dt_op *const dti_ops_fill[] = { &copy, &fill, NULL };

dt_tensor *dt_copy(dt_tensor *x) { return dt_apply(&copy, &x, 1, NULL); }
dt_tensor *dt_fill(dt_tensor *x, double number) { return dt_apply(&fill, &x, 1, &(dti_map_numbers){ number, 0 }); }
