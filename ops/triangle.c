/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangles of matrices: what lies on one side of a diagonal, 0 on the other. */
#include <stddef.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

static int64_t diagonal(const dt_gradient *g) { return ((const dti_triangle *)g->attributes)->diagonal; }

static dt_status grad_tril(dt_gradient *g)
{
    g->in_grad[0] = dt_tril(g->out_grad[0], diagonal(g));
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

static dt_status grad_triu(dt_gradient *g)
{
    g->in_grad[0] = dt_triu(g->out_grad[0], diagonal(g));
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

static const dt_attribute attributes[] = { { "diagonal", DT_ATTRIBUTE_INT, offsetof(dti_triangle, diagonal) } };

static const dt_op tril = {
    .head = "tril(x)", .rule = "... m n -> ... m n", .polynomial = "x, rising", .attributes = attributes,
    .attribute_count = DT_COUNT(attributes), .attribute_bytes = sizeof(dti_triangle), .kernel = dti_cpu_tril,
    .gradient = grad_tril, .doc = "x where the column is at most the row plus diagonal, else 0",
};
static const dt_op triu = {
    .head = "triu(x)", .rule = "... m n -> ... m n", .polynomial = "x, rising", .attributes = attributes,
    .attribute_count = DT_COUNT(attributes), .attribute_bytes = sizeof(dti_triangle), .kernel = dti_cpu_triu,
    .gradient = grad_triu, .doc = "x where the column is at least the row plus diagonal, else 0",
};

const dt_op *const dti_ops_triangle[] = { &tril, &triu, NULL };

dt_tensor *dt_tril(dt_tensor *x, int64_t from) { return dt_apply(&tril, &x, 1, &(dti_triangle){ from }); }
dt_tensor *dt_triu(dt_tensor *x, int64_t from) { return dt_apply(&triu, &x, 1, &(dti_triangle){ from }); }
