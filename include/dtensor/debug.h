/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking inside: why an op was placed as it was, and what a run did. */
#ifndef DTENSOR_DEBUG_H
#define DTENSOR_DEBUG_H

#include <dtensor/train.h>

DT_BEGIN_DECLS

DT_API const char *dt_explain(dt_tensor *x);                         /* strategies and prices of the op that made x */
DT_API dt_status dt_trace_start(dt_context *ctx, const char *path);  /* until the context ends; .txt, .json, .trace */

DT_END_DECLS

#endif
