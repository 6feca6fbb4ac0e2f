/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that decompositions are made of, and that are of little use elsewhere: numbers of rows, in f64, and what is made
 * of rows and their numbers. A row lies along dims of x, in their order; its numbers have the other dims. */
#ifndef DTI_OPS_PARTS_H
#define DTI_OPS_PARTS_H

#include <dtensor/tensor.h>

dt_tensor *dti_wide_sum(dt_tensor *x, dt_dims dims);
dt_tensor *dti_exp_sum(dt_tensor *x, dt_tensor *shift, dt_dims dims); /* of exp(x - shift)                          */
dt_tensor *dti_square_sum(dt_tensor *x, dt_tensor *center, dt_dims dims); /* of squared distances; NULL: from 0     */
/* The first index along a dim at which x is the number, or a NaN where that is one; the largest i64 where none is. */
dt_tensor *dti_first_of(dt_tensor *x, dt_tensor *number, int dim);
dt_tensor *dti_exp_less(dt_tensor *x, dt_tensor *number, dt_dims dims); /* exp(x - number)                          */
/* (x - center) scale w + bias, w and bias with the dims of a row; center, w, bias NULL: 0, 1, 0. */
dt_tensor *dti_scale_rows(dt_tensor *x, dt_tensor *scale, dt_tensor *center, dt_tensor *w, dt_tensor *bias,
                          dt_dims dims);

#endif
