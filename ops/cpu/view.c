/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that have the operand's elements: in their order, with dims in another one, or several times. */
#include <string.h>

#include "ops/cpu/dims.h"
#include "ops/cpu/kernels.h"

dt_status dti_cpu_copy(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    size_t bytes = dt_dtype_bytes(y->dtype);
    for (int d = 0; d < y->shape.n; d++) bytes *= (size_t)y->shape.dim[d];
    if (bytes) memcpy(y->data, x->data, bytes);
    return DT_OK;
}

/* ---- by steps ---------------------------------------------------------------------------------------------------- */

/* Dims of the result that lie one behind the other in the operand, too, are one. */
static void join(dti_walk *w)
{
    int kept = 0;
    for (int d = 0; d < w->n; d++) {
        int64_t size = w->size[d], step = w->step[d];
        if (size == 1) continue;
        if (kept && w->step[kept - 1] == step * size) size *= w->size[--kept];
        w->size[kept] = size;
        w->step[kept++] = step;
    }
    w->n = kept;
}

/* The result, whose dims are those of the walk, row-major; steps are the operand's, in elements. */
static void copy_walk(const dt_part *x, const dt_part *y, dti_walk *w)
{
    size_t size = dt_dtype_bytes(y->dtype);
    char *to = y->data;
    int64_t n = 1, step = 1;
    if (dti_walk_count(w) == 0) return;
    join(w);
    if (w->n) {
        n = w->size[--w->n];
        step = w->step[w->n];
    }
    for (bool more = dti_walk_begin(w); more; more = dti_walk_next(w), to += n * (int64_t)size)
        dti_copy_run(to, (const char *)x->data + w->at * (int64_t)size, n, step * (int64_t)size, size);
}

static void steps_of(const dt_shape *shape, int64_t *step)
{
    int64_t next = 1;
    for (int d = shape->n - 1; d >= 0; d--) {
        step[d] = next;
        next *= shape->dim[d];
    }
}

dt_status dti_cpu_permute(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    const dt_shape *order = call->attributes;
    int64_t step[DT_MAX_DIMS];
    dti_walk w = { .n = y->shape.n };
    steps_of(&x->shape, step);
    for (int d = 0; d < w.n; d++) {
        w.size[d] = y->shape.dim[d];
        w.step[d] = step[order->dim[d] < 0 ? order->dim[d] + order->n : order->dim[d]];
    }
    copy_walk(x, y, &w);
    return DT_OK;
}

dt_status dti_cpu_transpose(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    const dti_two_dims *dims = call->attributes;
    dti_walk w = { .n = y->shape.n };
    steps_of(&x->shape, w.step);
    for (int d = 0; d < w.n; d++) w.size[d] = y->shape.dim[d];
    int64_t first = w.step[dims->first];
    w.step[dims->first] = w.step[dims->second];
    w.step[dims->second] = first;
    copy_walk(x, y, &w);
    return DT_OK;
}

dt_status dti_cpu_expand(const dt_call *call)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    int more = y->shape.n - x->shape.n;
    int64_t step[DT_MAX_DIMS];
    dti_walk w = { .n = y->shape.n };
    steps_of(&x->shape, step);
    for (int d = 0; d < w.n; d++) {
        w.size[d] = y->shape.dim[d];
        w.step[d] = d < more || x->shape.dim[d - more] == 1 ? 0 : step[d - more];
    }
    copy_walk(x, y, &w);
    return DT_OK;
}
