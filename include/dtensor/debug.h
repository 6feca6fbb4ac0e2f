/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking inside: why an op was placed as it was, and what a run did. */
#ifndef DTENSOR_DEBUG_H
#define DTENSOR_DEBUG_H

#include <dtensor/data.h>
#include <dtensor/train.h>

DT_BEGIN_DECLS

/* Why the op that made x placed it so: what it was given, took and moved, why, and what else it could have taken at
 * which price, as `dt rule` says it. Of numbers among its attributes the sign alone is told. Of a loss that is made of
 * several ops: of its row, then of the last op. Of what was redistributed, recomputed or detached since: of the op that
 * made the value, whose result lies as it did then. "no op made it" for what was created; "" on error. Valid as long as
 * x. Local. */
DT_API const char *dt_explain(dt_tensor *x);
/* Not in this version: declared, and not to be linked with. */
DT_API dt_status dt_trace_start(dt_context *ctx, const char *path);  /* until the context ends; .txt, .json, .trace */

DT_END_DECLS

#endif
