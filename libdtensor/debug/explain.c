/* SPDX-License-Identifier: Apache-2.0
 *
 * dt_explain: the call that made a tensor, explained as `dt rule` explains it. */
#include <dtensor/debug.h>

#include "tensor/tensor.h"

const char *dt_explain(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return "";
    const char *text = x->origin ? x->origin->explain(x->ctx, x->origin) : "no op made it\n";
    return text ? text : "";
}
