/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of reductions: of every element that went into a result, from what came of the result. */
#include <math.h>

#include "ops/gradients.h"
#include "placements/spec.h"
#include "tensor/tensor.h"

static const dti_over *over(const dt_gradient *g) { return g->attributes; }

/* A result, or its gradient, with the dims that were reduced as dims of size 1. */
static dt_tensor *spread(const dt_gradient *g, dt_tensor *x)
{
    return over(g)->keep ? x : dti_unsqueeze(x, over(g)->dims);
}

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

/* Elements that one result is of. */
static int64_t count(const dt_gradient *g)
{
    int64_t n = 1;
    for (int i = 0; i < over(g)->dims.n; i++) n *= g->in_shape[0].dim[over(g)->dims.dim[i]];
    return n;
}

/* The same gradient for all elements: added to zeros that lie as the operand does, so that no rank makes the whole. */
static dt_tensor *everywhere(const dt_gradient *g, dt_tensor *grad)
{
    const dt_spec *like = dti_spec_summed(g->in_spec[0]);
    dt_tensor *zeros = like ? dt_zeros(like) : NULL;
    return dt_add(zeros, spread(g, grad));
}

dt_status dti_grad_sum(dt_gradient *g) { return one(g, everywhere(g, g->out_grad[0])); }

dt_status dti_grad_mean(dt_gradient *g)
{
    return one(g, everywhere(g, dt_div_scalar(g->out_grad[0], (double)count(g))));
}

/* Elements equal to the result share its gradient; they are counted over all ranks. */
dt_status dti_grad_extreme(dt_gradient *g)
{
    dt_tensor *x = g->in[0];
    dt_tensor *ties = dt_cast(dt_eq(x, spread(g, g->out[0])), dt_spec_dtype(dt_tensor_spec(x)));
    dt_tensor *share = dt_div(spread(g, g->out_grad[0]), dt_sum(ties, over(g)->dims, true));
    return one(g, dt_mul(ties, share));
}

/* The product of all others: of all that are not 0, over x; where x is 0, that itself if no other is. */
dt_status dti_grad_prod(dt_gradient *g)
{
    dt_tensor *x = g->in[0], *zero = dt_eq(x, dti_number_like(x, 0)), *filled = dt_masked_fill(x, zero, 1);
    dt_tensor *others = dt_prod(filled, over(g)->dims, true);
    dt_tensor *zeros = dt_sum(dt_cast(zero, DT_I64), over(g)->dims, true), *none = dti_number_like(zeros, 0);
    dt_tensor *of_zero = dt_masked_fill(others, dt_ne(zeros, dti_number_like(zeros, 1)), 0);
    dt_tensor *of_other = dt_div(dt_masked_fill(others, dt_ne(zeros, none), 0), filled);
    return one(g, dt_mul(spread(g, g->out_grad[0]), dt_where(zero, of_zero, of_other)));
}

dt_status dti_grad_logsumexp(dt_gradient *g)
{
    return one(g, dt_mul(dt_exp(dt_sub(g->in[0], spread(g, g->out[0]))), spread(g, g->out_grad[0])));
}

dt_status dti_grad_var(dt_gradient *g)
{
    double by = (double)count(g) - (double)over(g)->correction;
    dt_tensor *apart = dt_sub(g->in[0], dt_mean(g->in[0], over(g)->dims, true));
    return one(g, dt_mul(dt_mul_scalar(apart, by > 0 ? 2 / by : NAN), spread(g, g->out_grad[0])));
}

/* x / norm, 0 where that is. */
dt_status dti_grad_norm(dt_gradient *g)
{
    dt_tensor *length = spread(g, g->out[0]), *none = dt_eq(length, dti_number_like(length, 0));
    dt_tensor *share = dt_div(spread(g, g->out_grad[0]), dt_masked_fill(length, none, 1));
    return one(g, dt_mul(g->in[0], share));
}
