/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of positions and attention. */
#include "ops/gradients.h"

/* Turned back. */
dt_status dti_grad_rope(dt_gradient *g)
{
    dti_rope back = *(const dti_rope *)g->attributes;
    back.turns = -back.turns;
    g->in_grad[0] = dt_apply(g->op, &g->out_grad[0], 1, &back);
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}
