/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions and attention. Kernels learn from what a rank holds where it is in the whole sequence. */
#include <dtensor/ops.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

static dt_status refuse(dt_tensor *x, const char *what, double value)
{
    return dt_context_fail(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x))), DT_ERR_ARG, "%s, got %g", what, value);
}

/* ---- rope -------------------------------------------------------------------------------------------------------- */

static dt_status check_pairs(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    (void)attributes;
    (void)n;
    (void)out;
    if (shapes[0].n != 4 || shapes[0].dim[3] % 2 == 0) return DT_OK;
    return dt_context_fail(ctx, DT_ERR_SHAPE, "rope: expected an even d, for pairs, got %lld",
                           (long long)shapes[0].dim[3]);
}

static const dt_attribute turning[] = {
    { "base", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, base) },
    { "offset", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, offset) },
    { "turns", DT_ATTRIBUTE_NUMBER, offsetof(dti_rope, turns) },
};

static const dt_op rope = {
    .head = "rope(x)", .rule = "b s h d! -> b s h d", .polynomial = "x", .dtypes = "f->f", .derive = check_pairs,
    .attributes = turning, .attribute_count = DT_COUNT(turning), .attribute_bytes = sizeof(dti_rope),
    .kernel = dti_cpu_rope, .gradient = dti_grad_rope, .doc = "pairs of x turned by their position",
};

const dt_op *const dti_ops_attention[] = { &rope, NULL };

dt_tensor *dt_rope(dt_tensor *x, double base, int64_t offset)
{
    if (x && !(base > 0)) return refuse(x, "rope: expected a base above 0", base), NULL;
    return dt_apply(&rope, &x, 1, &(dti_rope){ base, (double)offset, 1 });
}
