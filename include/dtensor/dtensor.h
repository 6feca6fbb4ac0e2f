/* SPDX-License-Identifier: Apache-2.0
 *
 * libdtensor, the C library for SPMD tensor programs. Include this; read it as a map.
 *
 *   status.h    outcomes of a call                        plan.h      what a redistribution moves and costs
 *   types.h     dtypes, shapes, boxes, handles            tensor.h    a global value, this rank's part of it
 *   context.h   one rank: errors, options, scopes, log    autograd.h  gradients
 *   mesh.h      named dims over ranks, views, topology    ops.h       one declaration per op
 *   spec.h      placements: S, R, P; holdings             nn.h        modules
 *                                                         parallel.h  styles, fully sharded
 *                                                         train.h     optimisers, checkpoints
 *                                                         data.h      text as training data
 *                                                         debug.h     explain, trace
 * Each header includes only those above it.
 *
 * Rules that hold for every function; a doc line says only what differs.
 *  Failure    A function that makes a handle returns NULL, any other fallible one its dt_status; both write the first
 *             error to the context. From then until dt_context_clear() the context has *failed*: every call that would
 *             make, compute or communicate does nothing and returns NULL, that status, or 0. So one check per step is
 *             enough, and NULL for an optional operand means "absent" and nothing else. A required operand that is
 *             NULL while the context has not failed is an error of its own, written where another operand knows the
 *             context. Peers that wait for a failed rank get DT_ERR_PEER with its message. Out-parameters stay
 *             untouched on failure.
 *  Lifetime   Meshes, specs and plans live as long as the context. Every other handle belongs to the innermost scope
 *             open when it was made, and ends with it; tape, modules and optimisers keep what they need. A handle that
 *             must outlive its scope in a variable or struct is stored with dt_tensor_hold. User code has no destroy
 *             calls.
 *  Strings    In: used during the call or copied. Out: valid as long as the object they describe.
 *  Collective All ranks of the mesh call it, in the same order, with the same arguments. Ops are collective over the
 *             meshes of their operands; other functions only where the line says so. Local: any rank, any time.
 *  Threads    A context and all made from it belong to one thread. Ranks may be threads: user code has no mutable
 *             statics.
 *  Arguments  First what is acted on, last what is written; an array is followed by its length; dims count from 0,
 *             negative from the end; sizes are int64_t elements or size_t bytes; a callback ends with its arg.
 *             const dt_x_params *: NULL or all zero is the default, so no field's zero means "off" where on is default.
 */
#ifndef DTENSOR_DTENSOR_H
#define DTENSOR_DTENSOR_H

#include <dtensor/debug.h>

#endif
