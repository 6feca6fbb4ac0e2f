/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that act element by element. */
#include "ops/tables.h"

const dt_op *const dti_ops_elementwise[] = { NULL };
