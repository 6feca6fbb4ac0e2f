/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of a call as tensors on a mesh, made without messages. */
#ifndef OPS_OPERANDS_H
#define OPS_OPERANDS_H

#include "calls.h"

/* Can an operand be placed so that it has its value, bit for bit? */
bool operand_can_be(const op_call *call, const dt_spec *spec);
/* Is something a sum, or a product, in it? */
bool operand_sums(const dt_spec *spec);
/* Can it be judged what a call gives, with these values, so given, used so, with these results? */
bool operands_can_be(const op_call *call, const dt_spec *const *given, const dt_spec *const *used,
                     const dt_spec *const *result);
/* Operand i with this spec, as text; "": NULL. */
dt_tensor *operand_make(dt_mesh *mesh, const op_call *call, int i, const char *spec);

#endif
