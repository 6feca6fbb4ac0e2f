/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of views: the view back. */
#include "ops/gradients.h"

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

dt_status dti_grad_view(dt_gradient *g) { return one(g, dt_reshape(g->out_grad[0], g->in_shape[0])); }

dt_status dti_grad_permute(dt_gradient *g)
{
    const dt_shape *order = g->attributes;
    dt_dims back = { .n = order->n };
    for (int d = 0; d < order->n; d++) back.dim[order->dim[d] < 0 ? order->dim[d] + order->n : order->dim[d]] = d;
    return one(g, dt_permute(g->out_grad[0], back));
}

dt_status dti_grad_transpose(dt_gradient *g)
{
    const dti_two_dims *dims = g->attributes;
    return one(g, dt_transpose(g->out_grad[0], dims->first, dims->second));
}
