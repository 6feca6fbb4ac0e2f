/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses, for the layers above. */
#ifndef DTI_OPS_LOSSES_H
#define DTI_OPS_LOSSES_H

#include <dtensor/ops.h>

/* dt_cross_entropy before it is rounded: in f64 for f64, else in f32. */
dt_tensor *dti_cross_entropy_wide(dt_tensor *logits, dt_tensor *targets, const dt_cross_entropy_params *params);

#endif
