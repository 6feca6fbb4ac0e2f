/* SPDX-License-Identifier: Apache-2.0
 *
 * What the placements layer keeps per context: the interned layouts and specs, and which text meant which spec. */
#ifndef DTI_SPEC_STATE_H
#define DTI_SPEC_STATE_H

#include "core/context.h"

typedef struct dti_spec_state { dti_table layouts, specs, texts; } dti_spec_state;

/* NULL and the error when memory ran out. */
dti_spec_state *dti_spec_state_get(dt_context *ctx);

#endif
