/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over dims. */
#include "ops/cpu/dims.h"

#include <string.h>

#include "core/shape.h"

static void put_before(dti_walk *w, int64_t size, int64_t step)
{
    memmove(w->size + 1, w->size, (size_t)w->n * sizeof *w->size);
    memmove(w->step + 1, w->step, (size_t)w->n * sizeof *w->step);
    w->size[0] = size;
    w->step[0] = step;
    w->n++;
}

dti_nest dti_nest_of(const dt_shape *x, const dt_dims *taken)
{
    dti_nest nest = { .taken = x->n == 0 || dti_dims_have(taken, x->n - 1), .inner = 1 };
    int64_t step = 1;
    int d = x->n - 1;
    for (; d >= 0 && dti_dims_have(taken, d) == nest.taken; d--) nest.inner *= x->dim[d];
    step = nest.inner;
    while (d >= 0) {
        bool kind = dti_dims_have(taken, d);
        int64_t size = 1;
        for (; d >= 0 && dti_dims_have(taken, d) == kind; d--) size *= x->dim[d];
        put_before(kind ? &nest.reduced : &nest.kept, size, step);
        step *= size;
    }
    return nest;
}

bool dti_walk_begin(dti_walk *w)
{
    w->at = 0;
    memset(w->index, 0, sizeof w->index);
    return dti_walk_count(w) > 0;
}

bool dti_walk_next(dti_walk *w)
{
    for (int d = w->n - 1; d >= 0; d--) {
        w->at += w->step[d];
        if (++w->index[d] < w->size[d]) return true;
        w->at -= w->size[d] * w->step[d];
        w->index[d] = 0;
    }
    return false;
}

int64_t dti_walk_count(const dti_walk *w)
{
    int64_t n = 1;
    for (int d = 0; d < w->n; d++) n *= w->size[d];
    return n;
}

void dti_copy_run(char *to, const char *from, int64_t n, int64_t step, size_t size)
{
    if (step == (int64_t)size) memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, from + step * i, 4);
    else if (size == 2)
        for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i, from + step * i, 2);
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) memcpy(to + 8 * i, from + step * i, 8);
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[step * i];
}
