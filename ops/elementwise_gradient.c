/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of element-wise ops. Where a derivative jumps it is that from the side on which it is 0. */
#include "ops/gradients.h"

static dt_tensor *up(const dt_gradient *g) { return g->out_grad[0]; }

/* One operand, whose gradient is this. */
static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

dt_status dti_grad_add(dt_gradient *g)
{
    g->in_grad[0] = g->in_grad[1] = up(g);
    return DT_OK;
}

dt_status dti_grad_sub(dt_gradient *g)
{
    g->in_grad[0] = up(g);
    if (g->wanted[1]) g->in_grad[1] = dt_neg(up(g));
    return DT_OK;
}

dt_status dti_grad_mul(dt_gradient *g)
{
    if (g->wanted[0]) g->in_grad[0] = dt_mul(up(g), g->in[1]);
    if (g->wanted[1]) g->in_grad[1] = dt_mul(up(g), g->in[0]);
    return DT_OK;
}

dt_status dti_grad_div(dt_gradient *g)
{
    dt_tensor *part = dt_div(up(g), g->in[1]);
    g->in_grad[0] = part;
    if (g->wanted[1]) g->in_grad[1] = dt_neg(dt_mul(part, dt_div(g->in[0], g->in[1])));
    return DT_OK;
}

/* y x^(y - 1); result log x, 0 where x is. */
dt_status dti_grad_pow(dt_gradient *g)
{
    dt_tensor *x = g->in[0], *y = g->in[1];
    if (g->wanted[0]) g->in_grad[0] = dt_mul(up(g), dt_mul(y, dt_pow(x, dt_sub_scalar(y, 1))));
    if (!g->wanted[1]) return DT_OK;
    dt_tensor *none = dt_eq(x, dti_number_like(x, 0));
    g->in_grad[1] = dt_mul(up(g), dt_mul(g->out[0], dt_log(dt_masked_fill(x, none, 1))));
    return DT_OK;
}

dt_status dti_grad_same(dt_gradient *g) { return one(g, up(g)); }
dt_status dti_grad_neg(dt_gradient *g) { return one(g, dt_neg(up(g))); }

/* 0 at 0. */
dt_status dti_grad_abs(dt_gradient *g)
{
    dt_tensor *x = g->in[0], *zero = dti_number_like(x, 0);
    dt_tensor *falls = dt_where(dt_lt(x, zero), dt_neg(up(g)), up(g));
    return one(g, dt_masked_fill(falls, dt_eq(x, zero), 0));
}

static double number(const dt_gradient *g) { return ((const dti_map_numbers *)g->attributes)->a; }

dt_status dti_grad_mul_scalar(dt_gradient *g) { return one(g, dt_mul_scalar(up(g), number(g))); }
dt_status dti_grad_div_scalar(dt_gradient *g) { return one(g, dt_div_scalar(up(g), number(g))); }

dt_status dti_grad_pow_scalar(dt_gradient *g)
{
    dt_tensor *slope = dt_mul_scalar(dt_pow_scalar(g->in[0], number(g) - 1), number(g));
    return one(g, dt_mul(up(g), slope));
}

/* ---- smooth functions -------------------------------------------------------------------------------------------- */

dt_status dti_grad_exp(dt_gradient *g) { return one(g, dt_mul(up(g), g->out[0])); }
dt_status dti_grad_log(dt_gradient *g) { return one(g, dt_div(up(g), g->in[0])); }
dt_status dti_grad_sqrt(dt_gradient *g) { return one(g, dt_div(dt_mul_scalar(up(g), 0.5), g->out[0])); }
dt_status dti_grad_sin(dt_gradient *g) { return one(g, dt_mul(up(g), dt_cos(g->in[0]))); }
dt_status dti_grad_cos(dt_gradient *g) { return one(g, dt_neg(dt_mul(up(g), dt_sin(g->in[0])))); }

dt_status dti_grad_rsqrt(dt_gradient *g)
{
    dt_tensor *r = g->out[0];
    return one(g, dt_mul_scalar(dt_mul(up(g), dt_mul(r, dt_mul(r, r))), -0.5));
}

/* 1 - r r */
dt_status dti_grad_tanh(dt_gradient *g)
{
    return one(g, dt_mul(up(g), dt_add_scalar(dt_neg(dt_mul(g->out[0], g->out[0])), 1)));
}

/* r (1 - r) */
dt_status dti_grad_sigmoid(dt_gradient *g)
{
    return one(g, dt_mul(up(g), dt_mul(g->out[0], dt_add_scalar(dt_neg(g->out[0]), 1))));
}

dt_status dti_grad_relu(dt_gradient *g)
{
    return one(g, dt_masked_fill(up(g), dt_le(g->out[0], dti_number_like(g->out[0], 0)), 0));
}

dt_status dti_grad_gelu(dt_gradient *g) { return one(g, dti_gelu_slope(up(g), g->in[0])); }
dt_status dti_grad_gelu_tanh(dt_gradient *g) { return one(g, dti_gelu_tanh_slope(up(g), g->in[0])); }
dt_status dti_grad_silu(dt_gradient *g) { return one(g, dti_silu_slope(up(g), g->in[0])); }

dt_status dti_grad_swiglu(dt_gradient *g)
{
    if (g->wanted[0]) g->in_grad[0] = dti_silu_slope(dt_mul(up(g), g->in[1]), g->in[0]);
    if (g->wanted[1]) g->in_grad[1] = dt_mul(up(g), dt_silu(g->in[0]));
    return DT_OK;
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

dt_status dti_grad_where(dt_gradient *g)
{
    dt_tensor *c = g->in[0];
    if (g->wanted[1]) g->in_grad[1] = dt_masked_fill(up(g), dt_logical_not(c), 0);
    if (g->wanted[2]) g->in_grad[2] = dt_masked_fill(up(g), c, 0);
    return DT_OK;
}

dt_status dti_grad_clamp(dt_gradient *g)
{
    const dti_map_numbers *bounds = g->attributes;
    dt_tensor *x = g->in[0];
    dt_tensor *outside = dt_logical_or(dt_lt(x, dti_number_like(x, bounds->a)), dt_gt(x, dti_number_like(x, bounds->b)));
    return one(g, dt_masked_fill(up(g), outside, 0));
}

dt_status dti_grad_masked_fill(dt_gradient *g) { return one(g, dt_masked_fill(up(g), g->in[1], 0)); }

dt_status dti_grad_cast(dt_gradient *g) { return one(g, dt_cast(up(g), dt_spec_dtype(g->in_spec[0]))); }
