/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients. The gradient of a tensor is a tensor with a spec of its own, and a redistribution is the identity on
 * values; so nothing is summed twice or not at all. Along each mesh dim the gradient of a redistribution comes back
 *
 *   source S                  as that S, at once
 *   source and target P       as it is
 *   otherwise                 as R
 *
 * for what the user places: dt_redistribute is recorded where it moves nothing, too, and several of one tensor to one
 * placement are one, so that their users' gradients are summed before they are converted. Along mesh dims that "*"
 * leaves alone, and where an op had to move its operand, S comes back as S and everything else as it is: a gradient
 * that is P stays so until somebody needs its value.
 *
 * What backward needs is kept by the tape: of a tensor that an op moved, the source or the copy, whichever has fewer
 * bytes in its largest part (a leaf costs none; equal: the copy), all copies in a DT_SCOPE_KEEP_GATHERED scope. It goes
 * as backward passes. In a DT_SCOPE_NO_GRAD scope nothing is recorded. */
#ifndef DTENSOR_AUTOGRAD_H
#define DTENSOR_AUTOGRAD_H

#include <dtensor/tensor.h>

DT_BEGIN_DECLS

/* A function of tensors (dt_recompute); one that sees a gradient (dt_grad_hook). */
typedef dt_tensor *(*dt_fn)(dt_tensor *const *in, void *arg);
typedef dt_tensor *(*dt_grad_fn)(dt_tensor *grad, void *arg);

/* Make x a leaf: functions of it are recorded, and backward adds to its gradient. Returns x. Local. NULL and the error:
 * DT_ERR_DTYPE x is no float; DT_ERR_STATE it was made of leaves. */
DT_API dt_tensor *dt_require_grad(dt_tensor *x);
/* Add the gradient of y to the leaves it was made of. seed: the gradient of what comes of y, a tensor like it on its
 * mesh, placed in any way; NULL: 1, for a y of one element. Collective. DT_ERR_STATE: y was made of no leaf, or of
 * something that backward has passed; DT_ERR_SHAPE: no seed, or one of another shape or mesh; DT_ERR_DTYPE. After an
 * error the leaves' gradients are incomplete. */
DT_API dt_status dt_backward(dt_tensor *y, dt_tensor *seed);
/* The gradient of a leaf so far, maybe P; x owns it. NULL, without an error, if there is none. Local. */
DT_API dt_tensor *dt_grad(dt_tensor *x);
/* Call fn with every whole gradient of x, before it goes on; what fn returns (a tensor like it) takes its place, NULL
 * leaves it. In the order in which hooks were added. Local. DT_ERR_STATE: x has no gradient. */
DT_API dt_status dt_grad_hook(dt_tensor *x, dt_grad_fn fn, void *arg);
/* fn(in, arg), of which the tape keeps in alone; backward calls it again (Chen et al. 2016, Training Deep Nets with
 * Sublinear Memory Cost). arg must live as long. fn has to do the same both times; tensors that it finds by itself,
 * leaves or not, get their gradients, too. Collective if fn is. DT_ERR_ARG: more than 16 inputs, or fn returned none;
 * dt_backward says DT_ERR_STATE where fn then returns another shape, dtype or mesh, or takes a leaf that has been
 * written since. */
DT_API dt_tensor *dt_recompute(dt_fn fn, void *arg, dt_tensor *const *in, int n);
/* The same value, made of nothing. Local. */
DT_API dt_tensor *dt_detach(dt_tensor *x);

DT_END_DECLS

#endif
