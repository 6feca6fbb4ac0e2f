/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes compared and counted, dims looked for. */
#ifndef DTI_SHAPE_H
#define DTI_SHAPE_H

#include <dtensor/types.h>

static inline bool dti_shape_same(const dt_shape *a, const dt_shape *b)
{
    bool same = a->n == b->n;
    for (int d = 0; same && d < a->n; d++) same = a->dim[d] == b->dim[d];
    return same;
}

/* Elements of a shape. */
static inline int64_t dti_shape_count(const dt_shape *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->n; d++) n *= shape->dim[d];
    return n;
}

/* Is a dim one of those listed? */
static inline bool dti_dims_have(const dt_dims *dims, int d)
{
    for (int i = 0; i < dims->n; i++)
        if (dims->dim[i] == d) return true;
    return false;
}

#endif
