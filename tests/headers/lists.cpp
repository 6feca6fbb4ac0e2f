/* SPDX-License-Identifier: Apache-2.0
 *
 * DT_SHAPE and DT_DIMS are compound literals in C and templates here: the same calls compile. */
#include <dtensor/dtensor.h>

dt_shape lists(int64_t n);

dt_shape lists(int64_t n)
{
    dt_shape shapes[] = { DT_SHAPE(n, 2 * n, 3), DT_SHAPE(7), DT_SCALAR };
    dt_dims dims[] = { DT_DIMS(0, -1), DT_ALL };
    return shapes[dims[DT_COUNT(dims) - 1].n];
}
