/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that draw. A stream of their own keeps them apart from dt_rand under the same number. */
#include "tensor/random.h"

#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector.h"
#include "tensor/tensor.h"

enum { DROPOUT_STREAM = 1 };

typedef struct dropping {
    const dt_part *x, *y;
    double p, scale;
    uint64_t key;
} dropping;

static void drop(const dropping *d, int64_t global, int64_t local, int64_t count)
{
    float draws[DTI_RUN];
    double values[DTI_RUN];
    int64_t bytes = (int64_t)dt_dtype_bytes(d->x->dtype);
    dti_random_uniform(DT_F32, d->key, DROPOUT_STREAM, global, count, draws);
    dti_numbers_convert(d->x->dtype, (const char *)d->x->data + local * bytes, DT_F64, values, count);
    for (int64_t i = 0; i < count; i++) values[i] = draws[i] < d->p ? 0 : values[i] * d->scale;
    dti_numbers_convert(DT_F64, values, d->y->dtype, (char *)d->y->data + local * bytes, count);
}

static void drop_run(const dti_part_run *run, void *arg)
{
    for (int64_t at = 0; at < run->count; at += DTI_RUN)
        drop(arg, run->global + at, run->local + at, run->count - at < DTI_RUN ? run->count - at : DTI_RUN);
}

dt_status dti_cpu_dropout(const dt_call *call)
{
    const dti_dropout *a = call->attributes;
    dropping d = { .x = &call->in[0], .y = &call->out[0], .p = a->p, .scale = 1 / (1 - a->p),
                   .key = (uint64_t)a->high << 32 | (uint64_t)a->low };
    if (!d.y->data) return DT_OK;
    return dti_part_runs(d.y->spec, d.y->rank, drop_run, &d) ? DT_OK : dt_context_status(call->ctx);
}
