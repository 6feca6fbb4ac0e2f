/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of ops on the tape. */
#ifndef DTI_OPS_GRADIENT_H
#define DTI_OPS_GRADIENT_H

#include "autograd/tape.h"
#include "ops/dispatch.h"

/* Record a call if one of its operands has a gradient. in: as given; used: as the kernel had them; out: all results,
 * kept ones among them. false: the error. */
bool dti_op_record(dt_context *ctx, dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *in,
                   dt_tensor *const *used, dt_tensor *const *out);

#endif
