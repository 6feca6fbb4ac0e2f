/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of picking: what was picked gets, added up, what came of it. Sums begin from zeros that lie as the operand
 * does, so that each rank makes its own part. */
#include "core/shape.h"
#include "ops/gradients.h"
#include "tensor/tensor.h"

static int dim_of(const dt_gradient *g) { return ((const dti_along *)g->attributes)->dim; }

static dt_tensor *zeros_like(const dt_spec *spec)
{
    const dt_spec *whole = dti_spec_summed(spec);
    return whole ? dt_zeros(whole) : NULL;
}

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

dt_status dti_grad_embedding(dt_gradient *g)
{
    return one(g, dt_index_add(zeros_like(g->in_spec[0]), 0, g->in[1], g->out_grad[0]));
}

dt_status dti_grad_index_select(dt_gradient *g)
{
    return one(g, dt_index_add(zeros_like(g->in_spec[0]), dim_of(g), g->in[1], g->out_grad[0]));
}

dt_status dti_grad_gather(dt_gradient *g)
{
    return one(g, dt_scatter_add(zeros_like(g->in_spec[0]), dim_of(g), g->in[1], g->out_grad[0]));
}

dt_status dti_grad_scatter_add(dt_gradient *g)
{
    g->in_grad[0] = g->out_grad[0];
    if (g->wanted[2]) g->in_grad[2] = dt_gather(g->out_grad[0], dim_of(g), g->in[1]);
    return DT_OK;
}

/* Slices are picked by a list of ids; where these have several dims, or none, so has what was picked. */
dt_status dti_grad_index_add(dt_gradient *g)
{
    dt_shape ids = g->in_shape[1];
    g->in_grad[0] = g->out_grad[0];
    if (!g->wanted[2]) return DT_OK;
    dt_tensor *list = ids.n == 1 ? g->in[1] : dt_reshape(g->in[1], DT_SHAPE(dti_shape_count(&ids)));
    dt_tensor *slices = dt_index_select(g->out_grad[0], dim_of(g), list);
    if (ids.n == 0) slices = dt_squeeze(slices, dim_of(g));
    g->in_grad[2] = ids.n > 1 ? dt_unflatten(slices, dim_of(g), ids) : slices;
    return DT_OK;
}
