/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference product of matrices: rows of the result gathered in the dtype that sums, k ascending, so that every
 * element is the same whatever else is in the call. */
#include "ops/cpu/kernels.h"

#include <stdlib.h>

#include "core/number.h"

typedef struct product { int64_t m, n, k, a_step, b_step; } product; /* steps: elements of a matrix                   */

/* Where matrix number i of the result's leading dims lies in an operand: dims of size 1 stand still. */
static int64_t batch_at(const dt_part *x, const dt_part *y, int64_t i)
{
    int64_t at = 0, weight = 1;
    for (int d = y->shape.n - 3; d >= 0; d--) {
        int own = d - (y->shape.n - x->shape.n);
        int64_t index = i % y->shape.dim[d];
        i /= y->shape.dim[d];
        if (own < 0 || x->shape.dim[own] == 1) continue;
        at += index * weight;
        weight *= x->shape.dim[own];
    }
    return at;
}

static void multiply_f64(const product *p, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < p->m * p->n; i++) c[i] = 0; /* where k is empty, too: its piece of a sum             */
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t j = 0; j < p->n; j++) c[i * p->n + j] += a[i * p->k + k] * b[k * p->n + j];
}

dt_status dti_cpu_matmul(const dt_call *call)
{
    const dt_part *a = &call->in[0], *b = &call->in[1], *c = &call->out[0];
    product p = { .m = c->shape.dim[c->shape.n - 2], .n = c->shape.dim[c->shape.n - 1],
                  .k = a->shape.dim[a->shape.n - 1] };
    int64_t batches = 1;
    for (int d = 0; d < c->shape.n - 2; d++) batches *= c->shape.dim[d];
    p.a_step = p.m * p.k;
    p.b_step = p.k * p.n;
    if (c->dtype != DT_F64) return dt_context_fail(call->ctx, DT_ERR_UNAVAILABLE, "matmul: f64 for now");
    for (int64_t i = 0; i < batches; i++)
        multiply_f64(&p, (const double *)a->data + batch_at(a, c, i) * p.a_step,
                     (const double *)b->data + batch_at(b, c, i) * p.b_step, (double *)c->data + i * p.m * p.n);
    return DT_OK;
}
