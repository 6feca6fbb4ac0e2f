/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that write their operands: whether they may. */
#ifndef DTI_OPS_WRITE_H
#define DTI_OPS_WRITE_H

#include "ops/dispatch.h"
#include "tensor/tensor.h"

/* Do the operands that are written stay on their specs? false: the error. */
bool dti_write_fits(dt_context *ctx, const dti_dispatch *d);
/* May they be written now? Then they are their only owners. false: the error. */
bool dti_write_ready(dt_context *ctx, const dti_dispatch *d, dt_tensor *const *in);
/* The same of one tensor; in: all operands, x among them. name: of x. */
bool dti_write_may(dt_tensor *x, const char *op, const char *name, dt_tensor *const *in, int n);

#endif
