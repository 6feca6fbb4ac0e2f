/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, norms and reductions over dims that are split. Each statistic is one reduction, made whole before the next
 * hangs on it. */
#include "ops/decompositions.h"

#include <math.h>

#include "ops/attributes.h"
#include "ops/gradients.h"
#include "ops/parts.h"

static dt_tensor *whole(const dt_decomposition *d, dt_tensor *x) { return dt_redistribute(x, d->whole); }

static dt_dtype dtype_of(const dt_tensor *x) { return dt_spec_dtype(dt_tensor_spec(x)); }

static dt_tensor *as(dt_tensor *x, dt_dtype dtype) { return x && dtype_of(x) != dtype ? dt_cast(x, dtype) : x; }

static dt_shape shape_of(const dt_decomposition *d) { return dt_spec_shape(dt_tensor_spec(d->in[0])); }

/* Elements of a row. */
static double count(const dt_decomposition *d, dt_dims dims)
{
    double n = 1;
    for (int i = 0; i < dims.n; i++) n *= (double)shape_of(d).dim[dims.dim[i]];
    return n;
}

static dt_status one(dt_decomposition *d, dt_tensor *y)
{
    d->out[0] = y;
    return dt_context_status(d->ctx);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* The log of the sum of exp of each row; NaN where its largest is infinite. */
static dt_tensor *log_sum(const dt_decomposition *d, dt_tensor *max, dt_dims dims)
{
    return dt_add(as(max, DT_F64), dt_log(whole(d, dti_exp_sum(d->in[0], max, dims))));
}

static dt_tensor *largest(const dt_decomposition *d, dt_dims dims)
{
    return whole(d, dt_max(d->in[0], dims, false));
}

static dt_dims along(const dt_decomposition *d) { return DT_DIMS(((const dti_along *)d->attributes)->dim); }

dt_status dti_parts_of_softmax(dt_decomposition *d)
{
    return one(d, dti_exp_less(d->in[0], log_sum(d, largest(d, along(d)), along(d)), along(d)));
}

dt_status dti_parts_of_log_softmax(dt_decomposition *d)
{
    dt_tensor *sum = log_sum(d, largest(d, along(d)), along(d)), *ones = dt_fill(sum, 1);
    return one(d, dti_scale_rows(d->in[0], ones, sum, NULL, NULL, along(d)));
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* The trailing dims that w has. */
static dt_dims trailing(const dt_decomposition *d)
{
    int n = shape_of(d).n, first = n - dt_spec_shape(dt_tensor_spec(d->in[1])).n;
    dt_dims dims = { 0 };
    for (int i = first; i < n; i++) dims.dim[dims.n++] = i;
    return dims;
}

/* 1 / sqrt(mean of squared distances + eps) */
static dt_tensor *inverse(const dt_decomposition *d, dt_tensor *center, dt_dims dims)
{
    dt_tensor *squares = dt_div_scalar(whole(d, dti_square_sum(d->in[0], center, dims)), count(d, dims));
    return dt_rsqrt(dt_add_scalar(squares, ((const dti_norm *)d->attributes)->eps));
}

static dt_tensor *mean(const dt_decomposition *d, dt_dims dims)
{
    return dt_div_scalar(whole(d, dti_wide_sum(d->in[0], dims)), count(d, dims));
}

/* A statistic as the row keeps it. */
static dt_tensor *kept(const dt_decomposition *d, dt_tensor *x)
{
    return as(x, dtype_of(d->in[0]) == DT_F64 ? DT_F64 : DT_F32);
}

dt_status dti_parts_of_rms_norm(dt_decomposition *d)
{
    dt_dims dims = trailing(d);
    dt_tensor *scale = inverse(d, NULL, dims);
    d->out[1] = kept(d, scale);
    return one(d, dti_scale_rows(d->in[0], scale, NULL, d->in[1], NULL, dims));
}

dt_status dti_parts_of_layer_norm(dt_decomposition *d)
{
    dt_dims dims = trailing(d);
    dt_tensor *center = mean(d, dims), *scale = inverse(d, center, dims);
    d->out[1] = kept(d, center);
    d->out[2] = kept(d, scale);
    return one(d, dti_scale_rows(d->in[0], scale, center, d->in[1], d->in[2], dims));
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static const dti_over *over(const dt_decomposition *d) { return d->attributes; }

/* Numbers of rows as the result: in its dtype, reduced dims with size 1 where they are kept. */
static dt_status numbers(dt_decomposition *d, dt_tensor *y)
{
    y = as(y, dtype_of(d->in[0]));
    return one(d, over(d)->keep ? dti_unsqueeze(y, over(d)->dims) : y);
}

static dt_tensor *is_infinite(dt_tensor *x) { return dt_eq(dt_abs(x), dti_number_like(x, INFINITY)); }

dt_status dti_parts_of_logsumexp(dt_decomposition *d)
{
    dt_tensor *max = largest(d, over(d)->dims), *sum = log_sum(d, max, over(d)->dims), *wide = as(max, DT_F64);
    return numbers(d, dt_where(is_infinite(wide), wide, sum));
}

dt_status dti_parts_of_var(dt_decomposition *d)
{
    dt_dims dims = over(d)->dims;
    double n = count(d, dims), by = n - (double)over(d)->correction;
    dt_tensor *squares = whole(d, dti_square_sum(d->in[0], mean(d, dims), dims));
    return numbers(d, dt_div_scalar(squares, by > 0 ? by : NAN));
}

/* Of f64 the squares may overflow, or vanish: they are taken of what has been brought near 1. */
static dt_tensor *scaled_norm(const dt_decomposition *d, dt_dims dims)
{
    dt_tensor *max = whole(d, dt_max(dt_abs(d->in[0]), dims, false)), *none = dti_number_like(max, 0);
    dt_tensor *by = dt_masked_fill(max, dt_logical_or(dt_eq(max, none), is_infinite(max)), 1);
    dt_tensor *near = dt_div(d->in[0], dti_unsqueeze(by, dims));
    return dt_mul(by, dt_sqrt(whole(d, dti_square_sum(near, NULL, dims))));
}

dt_status dti_parts_of_norm(dt_decomposition *d)
{
    dt_dims dims = over(d)->dims;
    if (dtype_of(d->in[0]) == DT_F64) return numbers(d, scaled_norm(d, dims));
    return numbers(d, dt_sqrt(whole(d, dti_square_sum(d->in[0], NULL, dims))));
}

/* ---- where the largest is ---------------------------------------------------------------------------------------- */

static dt_status find(dt_decomposition *d, dt_tensor *extreme)
{
    const dti_along *how = d->attributes;
    dt_tensor *at = whole(d, dti_first_of(d->in[0], whole(d, extreme), how->dim));
    return one(d, how->keep ? dti_unsqueeze(at, DT_DIMS(how->dim)) : at);
}

dt_status dti_parts_of_argmax(dt_decomposition *d) { return find(d, dt_max(d->in[0], along(d), false)); }
dt_status dti_parts_of_argmin(dt_decomposition *d) { return find(d, dt_min(d->in[0], along(d), false)); }
