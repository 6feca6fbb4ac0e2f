/* SPDX-License-Identifier: Apache-2.0
 *
 * Smooth element-wise functions, in f64; f32 is widened and rounded on the way. Those of <math.h> are called element by
 * element. */
#include "ops/cpu/map.h"
#include "ops/cpu/math.h"

/* x times the normal distribution up to x. */
DTI_INLINE double gelu(double x) { return 0.5 * x * erfc(-x * 0x1.6a09e667f3bcdp-1); }

DTI_INLINE double gelu_tanh(double x)
{
    const double root = 0x1.9884533d43651p-1;                          /* sqrt(2 / pi)                             */
    return x * dti_sigmoid(2 * root * (x + 0.044715 * x * x * x));
}

/* Derivatives: the distribution plus x times its density; those of x sigmoid(c x). */
DTI_INLINE double gelu_slope(double x)
{
    const double density = 0x1.9884533d43651p-2;                       /* 1 / sqrt(2 pi)                           */
    return 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1) + x * density * dti_exp(-0.5 * x * x);
}

DTI_INLINE double gelu_tanh_slope(double x)
{
    const double root = 0x1.9884533d43651p-1;
    double s = dti_sigmoid(2 * root * (x + 0.044715 * x * x * x));
    return s + x * s * (1 - s) * 2 * root * (1 + 3 * 0.044715 * x * x);
}

DTI_INLINE double silu_slope(double x)
{
    double s = dti_sigmoid(x);
    return s + x * s * (1 - s);
}

DTI_INLINE double value(dti_map map, double x, double y, double a)
{
    switch (map) {
    case DTI_MAP_POW: return pow(x, y);
    case DTI_MAP_POW_NUMBER: return pow(x, a);
    case DTI_MAP_EXP: return dti_exp(x);
    case DTI_MAP_LOG: return dti_log(x);
    case DTI_MAP_RSQRT: return 1 / sqrt(x);
    case DTI_MAP_SIN: return sin(x);
    case DTI_MAP_COS: return cos(x);
    case DTI_MAP_TANH: return dti_tanh(x);
    case DTI_MAP_SIGMOID: return dti_sigmoid(x);
    case DTI_MAP_GELU: return gelu(x);
    case DTI_MAP_GELU_TANH: return gelu_tanh(x);
    case DTI_MAP_SILU: return x * dti_sigmoid(x);
    case DTI_MAP_SWIGLU: return x * dti_sigmoid(x) * y;
    case DTI_MAP_GELU_SLOPE: return x * gelu_slope(y);
    case DTI_MAP_GELU_TANH_SLOPE: return x * gelu_tanh_slope(y);
    case DTI_MAP_SILU_SLOPE: return x * silu_slope(y);
    default: return x;
    }
}

DTI_INLINE void loop_f64(dti_map map, const dti_map_run *run)
{
    double *restrict out = run->out, a = run->a;
    const double *x = run->in[0], *y = run->in[1];
    for (size_t i = 0; i < run->blocks * DTI_LANES; i++) out[i] = value(map, x[i], y[i], a);
}

DTI_INLINE void loop_f32(dti_map map, const dti_map_run *run)
{
    float *restrict out = run->out;
    double a = run->a;
    const float *x = run->in[0], *y = run->in[1];
    for (size_t i = 0; i < run->blocks * DTI_LANES; i++) out[i] = (float)value(map, (double)x[i], (double)y[i], a);
}

DTI_INLINE void loop(dti_map map, const dti_map_run *run, bool narrow)
{
    if (narrow) loop_f32(map, run);
    else loop_f64(map, run);
}

DTI_INLINE void all_loops(const dti_map_run *run, bool narrow)
{
    switch (run->map) {
    case DTI_MAP_POW: loop(DTI_MAP_POW, run, narrow); break;
    case DTI_MAP_POW_NUMBER: loop(DTI_MAP_POW_NUMBER, run, narrow); break;
    case DTI_MAP_EXP: loop(DTI_MAP_EXP, run, narrow); break;
    case DTI_MAP_LOG: loop(DTI_MAP_LOG, run, narrow); break;
    case DTI_MAP_RSQRT: loop(DTI_MAP_RSQRT, run, narrow); break;
    case DTI_MAP_SIN: loop(DTI_MAP_SIN, run, narrow); break;
    case DTI_MAP_COS: loop(DTI_MAP_COS, run, narrow); break;
    case DTI_MAP_TANH: loop(DTI_MAP_TANH, run, narrow); break;
    case DTI_MAP_SIGMOID: loop(DTI_MAP_SIGMOID, run, narrow); break;
    case DTI_MAP_GELU: loop(DTI_MAP_GELU, run, narrow); break;
    case DTI_MAP_GELU_TANH: loop(DTI_MAP_GELU_TANH, run, narrow); break;
    case DTI_MAP_SILU: loop(DTI_MAP_SILU, run, narrow); break;
    case DTI_MAP_SWIGLU: loop(DTI_MAP_SWIGLU, run, narrow); break;
    case DTI_MAP_GELU_SLOPE: loop(DTI_MAP_GELU_SLOPE, run, narrow); break;
    case DTI_MAP_GELU_TANH_SLOPE: loop(DTI_MAP_GELU_TANH_SLOPE, run, narrow); break;
    case DTI_MAP_SILU_SLOPE: loop(DTI_MAP_SILU_SLOPE, run, narrow); break;
    default: break;
    }
}

DTI_CLONES void dti_map_smooth(const dti_map_run *run) { all_loops(run, false); }
DTI_CLONES void dti_map_smooth_f32(const dti_map_run *run) { all_loops(run, true); }
