/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of products: products again, of the gradient and the other operand. */
#include "ops/gradients.h"

dt_status dti_grad_matmul(dt_gradient *g)
{
    if (g->wanted[0]) g->in_grad[0] = dti_matmul_nt(g->out_grad[0], g->in[1]);
    if (g->wanted[1]) g->in_grad[1] = dti_matmul_tn(g->in[0], g->out_grad[0]);
    return DT_OK;
}

dt_status dti_grad_linear(dt_gradient *g)
{
    if (g->wanted[0]) g->in_grad[0] = dti_linear_input(g->out_grad[0], g->in[1]);
    if (g->wanted[1]) g->in_grad[1] = dti_linear_weight(g->out_grad[0], g->in[0]);
    g->in_grad[2] = g->out_grad[0];
    return DT_OK;
}

dt_status dti_grad_addmm(dt_gradient *g)
{
    g->in_grad[0] = g->out_grad[0];
    if (g->wanted[1]) g->in_grad[1] = dti_matmul_nt(g->out_grad[0], g->in[2]);
    if (g->wanted[2]) g->in_grad[2] = dti_matmul_tn(g->in[1], g->out_grad[0]);
    return DT_OK;
}
