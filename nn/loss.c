/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses as modules, so that styles can place their inputs. */
#include "nn/layers.h"

static void cross_entropy_init(dt_module *self, const void *params)
{
    const dt_cross_entropy_params *given = params;
    dt_cross_entropy_params *with = dt_module_state(self);
    if (!given) return;
    *with = *given;
    with->class_weights = NULL;
    dt_tensor_hold(&with->class_weights, given->class_weights);
}

static dt_tensor *cross_entropy_forward(dt_module *self, dt_tensor *const *in)
{
    return dt_cross_entropy(in[0], in[1], dt_module_state(self)); /* [..,v] [..] -> a scalar, or [..]              */
}

static void cross_entropy_fini(dt_module *self)
{
    dt_cross_entropy_params *with = dt_module_state(self);
    dt_tensor_hold(&with->class_weights, NULL);
}

static const dt_module_type cross_entropy_type = {
    .name = "cross_entropy", .state_bytes = sizeof(dt_cross_entropy_params), .inputs = 2, .init = cross_entropy_init,
    .forward = cross_entropy_forward, .fini = cross_entropy_fini,
};

dt_module *dt_nn_cross_entropy(dt_mesh *mesh, const dt_cross_entropy_params *params)
{
    return dt_module_create(mesh, &cross_entropy_type, params);
}
