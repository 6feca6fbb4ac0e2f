/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that draw random numbers. */
#include <dtensor/ops.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

static const dt_attribute draw[] = {
    { "p", DT_ATTRIBUTE_NUMBER, offsetof(dti_dropout, p) },
    { "key_low", DT_ATTRIBUTE_NUMBER, offsetof(dti_dropout, low) },
    { "key_high", DT_ATTRIBUTE_NUMBER, offsetof(dti_dropout, high) },
};

/* Of the largest that is kept, or 0 for all: so max and min pass. */
static const dt_op dropout = {
    .head = "dropout(x)", .rule = "... -> ...", .polynomial = "x, rising", .dtypes = "f->f", .attributes = draw,
    .attribute_count = DT_COUNT(draw), .attribute_bytes = sizeof(dti_dropout), .kernel = dti_cpu_dropout,
    .gradient = dti_grad_dropout, .doc = "0 with probability p, else x / (1 - p)",
};

const dt_op *const dti_ops_random[] = { &dropout, NULL };

dt_status dti_grad_dropout(dt_gradient *g)
{
    g->in_grad[0] = dt_apply(g->op, &g->out_grad[0], 1, g->attributes);
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

dt_tensor *dt_dropout(dt_tensor *x, double p, uint64_t key)
{
    if (x && !(p >= 0 && p < 1)) {
        dt_context_fail(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x))), DT_ERR_ARG,
                        "dropout: expected p in [0, 1), got %g", p);
        return NULL;
    }
    return dt_apply(&dropout, &x, 1, &(dti_dropout){ p, (double)(uint32_t)key, (double)(uint32_t)(key >> 32) });
}
