/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary positions. Sines and cosines are made once per position that this rank holds. */
#include <math.h>

#include "core/context.h"
#include "core/number.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/room.h"
#include "ops/cpu/vector.h"
#include "placements/spec.h"

/* [positions held, (cosines of d / 2, sines of d / 2)], and room for a head behind them. */
static double *angles(dt_context *ctx, const dt_part *x, const dti_rope *rope)
{
    int64_t d = x->shape.dim[3], half = d / 2;
    double *table = dti_room_take(ctx, (size_t)((x->shape.dim[1] + 1) * d) * sizeof *table), *row = table;
    dti_set held;
    dti_set_init(&held);
    dti_spec_set(x->spec, 1, x->rank, &held);
    for (int i = 0; i < held.n && table && !held.lost; i++)
        for (int64_t s = dti_set_at(&held)[i].lo; s < dti_set_at(&held)[i].hi; s++, row += d)
            for (int64_t k = 0; k < half; k++) {
                double angle = (rope->offset + (double)s) * pow(rope->base, -2 * (double)k / (double)d) * rope->turns;
                row[k] = cos(angle);
                row[half + k] = sin(angle);
            }
    if (held.lost) {
        dti_room_give(table);
        table = NULL;
    }
    dti_set_fini(&held);
    return table;
}

DTI_CLONES static void turn(double *x, const double *angle, int64_t half)
{
    for (int64_t k = 0; k < half; k++) {
        double a = x[k], b = x[half + k];
        x[k] = a * angle[k] - b * angle[half + k];
        x[half + k] = b * angle[k] + a * angle[half + k];
    }
}

dt_status dti_cpu_rope(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    int64_t b = x->shape.dim[0], s = x->shape.dim[1], h = x->shape.dim[2], d = x->shape.dim[3];
    int64_t bytes = d * (int64_t)dt_dtype_bytes(x->dtype);
    if (b * s * h * d == 0) return DT_OK;
    double *table = angles(call->ctx, x, call->attributes), *head = table ? table + s * d : NULL;
    if (!table)
        return dt_context_fail(call->ctx, DT_ERR_MEMORY, "rope: no memory for the angles of %lld positions",
                               (long long)s);
    for (int64_t row = 0; row < b * s * h; row++) {
        dti_numbers_convert(x->dtype, (const char *)x->data + row * bytes, DT_F64, head, d);
        turn(head, table + row / h % s * d, d / 2);
        dti_numbers_convert(DT_F64, head, y->dtype, (char *)y->data + row * bytes, d);
    }
    dti_room_give(table);
    return DT_OK;
}
