/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of AdamW (Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization), in place: a run of each tensor
 * is widened into buffers, which the loop goes through in whole blocks, and what is written is rounded once. */
#include <math.h>

#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"

enum { W, M, V, G, TENSORS };

typedef union buffer { double f64[DTI_RUN]; float f32[DTI_RUN]; } buffer;

/* What the loop takes, made once per call: decay = 1 - lr weight_decay, size = lr over the first moment's correction,
 * root: that of the second moment's correction. */
typedef struct coefficients { double beta1, beta2, eps, decay, size, root; } coefficients;

static coefficients coefficients_of(const dti_adamw *a)
{
    double first = 1 - pow(a->beta1, a->step), second = 1 - pow(a->beta2, a->step);
    return (coefficients){ a->beta1, a->beta2, a->eps, 1 - a->lr * a->weight_decay, a->lr / first, sqrt(second) };
}

DTI_CLONES static void step_f32(const coefficients *c, buffer *x, size_t blocks)
{
    float *restrict w = x[W].f32, *restrict m = x[M].f32, *restrict v = x[V].f32;
    const float *g = x[G].f32;
    float beta1 = (float)c->beta1, rest1 = (float)(1 - c->beta1), beta2 = (float)c->beta2;
    float rest2 = (float)(1 - c->beta2), eps = (float)c->eps, decay = (float)c->decay, size = (float)c->size;
    float scale = (float)(1 / c->root);
    for (size_t i = 0; i < blocks * DTI_LANES; i++) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * (g[i] * g[i]);
        w[i] = decay * w[i] - size * (m[i] / (sqrtf(v[i]) * scale + eps));
    }
}

DTI_CLONES static void step_f64(const coefficients *c, buffer *x, size_t blocks)
{
    double *restrict w = x[W].f64, *restrict m = x[M].f64, *restrict v = x[V].f64;
    const double *g = x[G].f64;
    double beta1 = c->beta1, rest1 = 1 - c->beta1, beta2 = c->beta2, rest2 = 1 - c->beta2, scale = 1 / c->root;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * (g[i] * g[i]);
        w[i] = c->decay * w[i] - c->size * (m[i] / (sqrt(v[i]) * scale + c->eps));
    }
}

static void step_run(const dt_call *call, const coefficients *c, dt_dtype dtype, int64_t at, int64_t n)
{
    buffer x[TENSORS] = { { { 0 } } }; /* what is behind the run is computed, too, and left */
    for (int i = 0; i < TENSORS; i++) {
        const dt_part *part = &call->in[i];
        dti_numbers_convert(part->dtype, (const char *)part->data + at * (int64_t)dt_dtype_bytes(part->dtype), dtype,
                            &x[i], n);
    }
    if (dtype == DT_F64) step_f64(c, x, dti_blocks(n));
    else step_f32(c, x, dti_blocks(n));
    for (int i = 0; i < G; i++) {
        const dt_part *part = &call->out[i];
        dti_numbers_convert(dtype, &x[i], part->dtype, (char *)part->data + at * (int64_t)dt_dtype_bytes(part->dtype),
                            n);
    }
}

dt_status dti_cpu_adamw(const dt_call *call)
{
    coefficients c = coefficients_of(call->attributes);
    dt_dtype dtype = DT_F32;
    int64_t n = 1;
    if (!call->out[W].data) return DT_OK;
    for (int i = 0; i < TENSORS; i++)
        if (call->in[i].dtype == DT_F64) dtype = DT_F64;
    for (int d = 0; d < call->out[W].shape.n; d++) n *= call->out[W].shape.dim[d];
    for (int64_t at = 0; at < n; at += DTI_RUN) step_run(call, &c, dtype, at, n - at < DTI_RUN ? n - at : DTI_RUN);
    return DT_OK;
}
