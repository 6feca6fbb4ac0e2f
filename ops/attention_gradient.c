/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of positions and attention. */
#include "core/number.h"
#include "ops/gradients.h"

/* Turned back. */
dt_status dti_grad_rope(dt_gradient *g)
{
    dti_rope back = *(const dti_rope *)g->attributes;
    back.turns = -back.turns;
    g->in_grad[0] = dt_apply(g->op, &g->out_grad[0], 1, &back);
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

/* In the dtype that sums. */
static dt_tensor *wide(dt_tensor *x)
{
    dt_dtype dtype = x ? dt_spec_dtype(dt_tensor_spec(x)) : DT_F32;
    return dti_sum_dtype(dtype) == dtype ? x : dt_cast(x, dti_sum_dtype(dtype));
}

dt_status dti_grad_attention(dt_gradient *g)
{
    dt_tensor *up = g->out_grad[0], *delta = dt_sum(dt_mul(wide(up), wide(g->out[0])), DT_DIMS(-1), false);
    if (!delta) return DT_ERR_STATE;
    dt_status status = dti_attention_grad(g->attributes,
                                          (dt_tensor *[7]){ g->in[0], g->in[1], g->in[2], g->out[1], delta, up,
                                                            g->in[3] }, g->wanted[3], g->in_grad);
    if (status || !g->wanted[3]) return status;
    dt_dtype dtype = dt_spec_dtype(g->in_spec[3]);
    if (dtype != dti_sum_dtype(dtype)) g->in_grad[3] = dt_cast(g->in_grad[3], dtype);
    return g->in_grad[3] ? DT_OK : DT_ERR_STATE;
}
