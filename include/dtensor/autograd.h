/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients. The gradient of a tensor is a tensor with a spec of its own, so nothing is summed twice or not at all. */
#ifndef DTENSOR_AUTOGRAD_H
#define DTENSOR_AUTOGRAD_H

#include <dtensor/tensor.h>

DT_BEGIN_DECLS

typedef dt_tensor *(*dt_fn)(dt_tensor *const *in, void *arg);
typedef dt_tensor *(*dt_grad_fn)(dt_tensor *grad, void *arg);

DT_API dt_tensor *dt_require_grad(dt_tensor *x);                     /* x becomes a leaf; returns x                */
/* Adds to the leaves' gradients; seed NULL: y is a scalar. */
DT_API dt_status dt_backward(dt_tensor *y, dt_tensor *seed);
/* The gradient so far, maybe P, owned by x; NULL, without an error, if there is none. */
DT_API dt_tensor *dt_grad(dt_tensor *x);
DT_API dt_status dt_grad_hook(dt_tensor *x, dt_grad_fn fn, void *arg); /* see or replace each gradient of x        */
/* Keep only in; run again in backward. */
DT_API dt_tensor *dt_recompute(dt_fn fn, void *arg, dt_tensor *const *in, int n);
DT_API dt_tensor *dt_detach(dt_tensor *x);                           /* same value, no history                     */

DT_END_DECLS

#endif
