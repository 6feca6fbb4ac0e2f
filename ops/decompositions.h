/* SPDX-License-Identifier: Apache-2.0
 *
 * What rows are made of where a letter that their kernel wants whole is split: numbers of rows are reduced, in f64,
 * and made whole; the tensor itself does not move. */
#ifndef DTI_OPS_DECOMPOSITIONS_H
#define DTI_OPS_DECOMPOSITIONS_H

#include <dtensor/op.h>

dt_status dti_parts_of_softmax(dt_decomposition *d);
dt_status dti_parts_of_log_softmax(dt_decomposition *d);
dt_status dti_parts_of_rms_norm(dt_decomposition *d);
dt_status dti_parts_of_layer_norm(dt_decomposition *d);
dt_status dti_parts_of_logsumexp(dt_decomposition *d);
dt_status dti_parts_of_var(dt_decomposition *d);
dt_status dti_parts_of_norm(dt_decomposition *d);
dt_status dti_parts_of_argmax(dt_decomposition *d);
dt_status dti_parts_of_argmin(dt_decomposition *d);
dt_status dti_parts_of_cross_entropy(dt_decomposition *d); /* in cross_entropy.c                                    */

#endif
