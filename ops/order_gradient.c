/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of running sums and of order: a sum runs back; what comes to an element in order goes to where it was. */
#include "ops/gradients.h"
#include "ops/pieces.h"
#include "tensor/tensor.h"

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

dt_status dti_grad_cumsum(dt_gradient *g)
{
    dti_cumsum back = *(const dti_cumsum *)g->attributes;
    back.reverse = !back.reverse;
    return one(g, dti_cumsum_with(g->out_grad[0], back));
}

static dt_status put_back(dt_gradient *g, int dim, const dt_spec *spec)
{
    dt_tensor *zeros = spec ? dt_zeros(spec) : NULL;
    return one(g, dt_scatter_add(zeros, dim, g->out[1], g->out_grad[0]));
}

/* Where the dim is whole, as the elements were when they were sorted. */
dt_status dti_grad_sort(dt_gradient *g)
{
    int dim = ((const dti_sort *)g->attributes)->dim;
    const dt_spec *summed = dti_spec_summed(g->in_spec[0]);
    if (!g->out_grad[0]) return DT_OK;
    return put_back(g, dim, summed ? dti_spec_aside(summed, dim) : NULL);
}

dt_status dti_grad_topk(dt_gradient *g)
{
    if (!g->out_grad[0]) return DT_OK;
    return put_back(g, ((const dti_topk *)g->attributes)->dim, dti_spec_summed(g->in_spec[0]));
}
