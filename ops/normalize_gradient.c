/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of softmax and norms, from what their rows keep. Statistics and what is made of them stay in the dtype that
 * sums. */
#include "core/number.h"
#include "ops/gradients.h"

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static dt_tensor *sum_along(const dt_gradient *g, dt_tensor *x)
{
    return dt_sum(x, (dt_dims){ 1, { ((const dti_along *)g->attributes)->dim } }, true);
}

/* r (g - sum of g r) */
dt_status dti_grad_softmax(dt_gradient *g)
{
    dt_tensor *r = g->out[0], *up = g->out_grad[0];
    return one(g, dt_mul(r, dt_sub(up, sum_along(g, dt_mul(up, r)))));
}

/* g - exp(r) sum of g */
dt_status dti_grad_log_softmax(dt_gradient *g)
{
    dt_tensor *up = g->out_grad[0];
    return one(g, dt_sub(up, dt_mul(dt_exp(g->out[0]), sum_along(g, up))));
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* x in the dtype that sums, x itself where it is that. */
static dt_tensor *wide(dt_tensor *x)
{
    dt_dtype dtype = x ? dt_spec_dtype(dt_tensor_spec(x)) : DT_F32;
    return dti_sum_dtype(dtype) == dtype ? x : dt_cast(x, dti_sum_dtype(dtype));
}

static dt_tensor *narrow(dt_tensor *x, const dt_spec *like)
{
    return x && dt_spec_dtype(dt_tensor_spec(x)) != dt_spec_dtype(like) ? dt_cast(x, dt_spec_dtype(like)) : x;
}

/* The dims of x that w has: the last ones. */
static dt_dims trailing(const dt_gradient *g)
{
    dt_dims dims = { 0 };
    for (int d = g->in_shape[0].n - g->in_shape[1].n; d < g->in_shape[0].n; d++) dims.dim[dims.n++] = d;
    return dims;
}

static dt_tensor *mean(const dt_gradient *g, dt_tensor *x) { return dt_mean(x, trailing(g), true); }

/* With y = x k w, k = 1 / rms: k (g w) - x k k k mean of (g w) x. */
dt_status dti_grad_rms_norm(dt_gradient *g)
{
    dt_tensor *x = wide(g->in[0]), *up = wide(g->out_grad[0]), *k = dti_unsqueeze(g->out[1], trailing(g));
    dt_tensor *normal = dt_mul(x, k);
    if (g->wanted[0]) {
        dt_tensor *h = dt_mul(up, wide(g->in[1]));
        dt_tensor *along = dt_mul(normal, mean(g, dt_mul(h, normal)));
        g->in_grad[0] = narrow(dt_mul(k, dt_sub(h, along)), g->in_spec[0]);
    }
    if (g->wanted[1]) g->in_grad[1] = narrow(dt_mul(up, normal), g->in_spec[1]);
    return DT_OK;
}

/* With n = (x - mean) k, y = n w + b: k (g w - mean of g w - n mean of (g w) n). */
dt_status dti_grad_layer_norm(dt_gradient *g)
{
    dt_tensor *x = wide(g->in[0]), *up = wide(g->out_grad[0]);
    dt_tensor *k = dti_unsqueeze(g->out[2], trailing(g));
    dt_tensor *normal = dt_mul(dt_sub(x, dti_unsqueeze(g->out[1], trailing(g))), k);
    if (g->wanted[0]) {
        dt_tensor *h = dt_mul(up, wide(g->in[1])), *along = dt_mul(normal, mean(g, dt_mul(h, normal)));
        g->in_grad[0] = narrow(dt_mul(k, dt_sub(dt_sub(h, mean(g, h)), along)), g->in_spec[0]);
    }
    if (g->wanted[1]) g->in_grad[1] = narrow(dt_mul(up, normal), g->in_spec[1]);
    g->in_grad[2] = g->out_grad[0];
    return DT_OK;
}
