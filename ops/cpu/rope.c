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

/* The angle from one position to the next, of each pair. */
static void turns_of(const dti_rope *rope, int64_t d, double *turns)
{
    for (int64_t k = 0; k < d / 2; k++) turns[k] = pow(rope->base, -2 * (double)k / (double)d);
}

/* [positions held, (cosines of d / 2, sines of d / 2)], and room for a position's heads behind them. */
static double *angles(dt_context *ctx, const dt_part *x, const dti_rope *rope)
{
    int64_t d = x->shape.dim[3], half = d / 2, n = (x->shape.dim[1] + x->shape.dim[2]) * d + 1;
    double *table = dti_room_take(ctx, (size_t)n * sizeof *table), *row = table;
    double *turns = table ? table + x->shape.dim[1] * d : NULL; /* the heads' room                                 */
    dti_set held;
    dti_set_init(&held);
    dti_spec_set(x->spec, 1, x->rank, &held);
    if (table) turns_of(rope, d, turns);
    for (int i = 0; i < held.n && table && !held.lost; i++)
        for (int64_t s = dti_set_at(&held)[i].lo; s < dti_set_at(&held)[i].hi; s++, row += d)
            for (int64_t k = 0; k < half; k++) {
                double angle = (rope->offset + (double)s) * turns[k] * rope->turns;
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
    int64_t bytes = h * d * (int64_t)dt_dtype_bytes(x->dtype);
    if (b * s * h * d == 0) return DT_OK;
    double *table = angles(call->ctx, x, call->attributes), *heads = table ? table + s * d : NULL;
    if (!table)
        return dt_context_fail(call->ctx, DT_ERR_MEMORY, "rope: no memory for the angles of %lld positions",
                               (long long)s);
    for (int64_t row = 0; row < b * s; row++) {
        dti_numbers_convert(x->dtype, (const char *)x->data + row * bytes, DT_F64, heads, h * d);
        for (int64_t i = 0; i < h; i++) turn(heads + i * d, table + row % s * d, d / 2);
        dti_numbers_convert(DT_F64, heads, y->dtype, (char *)y->data + row * bytes, h * d);
    }
    dti_room_give(table);
    return DT_OK;
}
