/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of an optimiser, in place: a run of each tensor is widened into buffers, which the loop goes through in
 * whole blocks, and what is written is rounded once. AdamW is Loshchilov and Hutter 2019, Decoupled Weight Decay
 * Regularization; momentum Sutskever et al. 2013, On the importance of initialization and momentum in deep learning. */
#include <math.h>

#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"

enum { MOST = 4 };                 /* operands                                                                     */

typedef union buffer { double f64[DTI_RUN]; float f32[DTI_RUN]; } buffer;

/* One loop in two dtypes, and what it takes, made once per call. */
typedef struct loops {
    void (*f32)(const void *c, buffer *x, size_t blocks), (*f64)(const void *c, buffer *x, size_t blocks);
    const void *c;
} loops;

static void step_run(const dt_call *call, const loops *l, dt_dtype dtype, int64_t at, int64_t n)
{
    buffer x[MOST] = { { { 0 } } }; /* what is behind the run is computed, too, and left */
    for (int i = 0; i < call->in_count; i++) {
        const dt_part *part = &call->in[i];
        dti_numbers_convert(part->dtype, (const char *)part->data + at * (int64_t)dt_dtype_bytes(part->dtype), dtype,
                            &x[i], n);
    }
    (dtype == DT_F64 ? l->f64 : l->f32)(l->c, x, dti_blocks(n));
    for (int i = 0; i < call->out_count; i++) {
        const dt_part *part = &call->out[i];
        dti_numbers_convert(dtype, &x[i], part->dtype, (char *)part->data + at * (int64_t)dt_dtype_bytes(part->dtype),
                            n);
    }
}

static dt_status step(const dt_call *call, const loops *l)
{
    const dt_part *w = &call->out[0];
    dt_dtype dtype = DT_F32;
    int64_t n = w->data ? 1 : 0;
    for (int i = 0; i < call->in_count; i++)
        if (call->in[i].dtype == DT_F64) dtype = DT_F64;
    for (int d = 0; d < w->shape.n; d++) n *= w->shape.dim[d];
    for (int64_t at = 0; at < n; at += DTI_RUN) step_run(call, l, dtype, at, n - at < DTI_RUN ? n - at : DTI_RUN);
    return DT_OK;
}

/* ---- AdamW: w, m, v, g ------------------------------------------------------------------------------------------- */

enum { W, M, V, G };

/* decay = 1 - lr weight_decay, size = lr over the first moment's correction, root: that of the second moment's
 * correction. */
typedef struct adamw { double beta1, beta2, eps, decay, size, root; } adamw;

DTI_CLONES static void adamw_f32(const void *numbers, buffer *x, size_t blocks)
{
    const adamw *c = numbers;
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

DTI_CLONES static void adamw_f64(const void *numbers, buffer *x, size_t blocks)
{
    const adamw *c = numbers;
    double *restrict w = x[W].f64, *restrict m = x[M].f64, *restrict v = x[V].f64;
    const double *g = x[G].f64;
    double beta1 = c->beta1, rest1 = 1 - c->beta1, beta2 = c->beta2, rest2 = 1 - c->beta2, scale = 1 / c->root;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * (g[i] * g[i]);
        w[i] = c->decay * w[i] - c->size * (m[i] / (sqrt(v[i]) * scale + c->eps));
    }
}

dt_status dti_cpu_adamw(const dt_call *call)
{
    const dti_adamw *a = call->attributes;
    double first = 1 - pow(a->beta1, a->step), second = 1 - pow(a->beta2, a->step);
    adamw c = { a->beta1, a->beta2, a->eps, 1 - a->lr * a->weight_decay, a->lr / first, sqrt(second) };
    return step(call, &(loops){ adamw_f32, adamw_f64, &c });
}

/* ---- SGD: w, g; w, v, g ------------------------------------------------------------------------------------------ */

DTI_CLONES static void sgd_f32(const void *numbers, buffer *x, size_t blocks)
{
    const dti_sgd *c = numbers;
    float *restrict w = x[0].f32, lr = (float)c->lr, decay = (float)c->weight_decay;
    const float *g = x[1].f32;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) w[i] -= lr * (g[i] + decay * w[i]);
}

DTI_CLONES static void sgd_f64(const void *numbers, buffer *x, size_t blocks)
{
    const dti_sgd *c = numbers;
    double *restrict w = x[0].f64, lr = c->lr, decay = c->weight_decay;
    const double *g = x[1].f64;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) w[i] -= lr * (g[i] + decay * w[i]);
}

dt_status dti_cpu_sgd(const dt_call *call) { return step(call, &(loops){ sgd_f32, sgd_f64, call->attributes }); }

DTI_CLONES static void momentum_f32(const void *numbers, buffer *x, size_t blocks)
{
    const dti_sgd *c = numbers;
    float *restrict w = x[0].f32, *restrict v = x[1].f32;
    const float *g = x[2].f32;
    float lr = (float)c->lr, decay = (float)c->weight_decay, momentum = (float)c->momentum;
    bool nesterov = c->nesterov;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) {
        float by = g[i] + decay * w[i];
        v[i] = momentum * v[i] + by;
        w[i] -= lr * (nesterov ? by + momentum * v[i] : v[i]);
    }
}

DTI_CLONES static void momentum_f64(const void *numbers, buffer *x, size_t blocks)
{
    const dti_sgd *c = numbers;
    double *restrict w = x[0].f64, *restrict v = x[1].f64;
    const double *g = x[2].f64;
    double lr = c->lr, decay = c->weight_decay, momentum = c->momentum;
    bool nesterov = c->nesterov;
    for (size_t i = 0; i < blocks * DTI_LANES; i++) {
        double by = g[i] + decay * w[i];
        v[i] = momentum * v[i] + by;
        w[i] -= lr * (nesterov ? by + momentum * v[i] : v[i]);
    }
}

dt_status dti_cpu_momentum(const dt_call *call)
{
    return step(call, &(loops){ momentum_f32, momentum_f64, call->attributes });
}
