/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms over the last dim. */
#include <math.h>

#include "nn/layers.h"

typedef struct norm { dt_tensor *weight, *bias; double eps; } norm;
typedef struct norm_sizes { int64_t width; double eps; dt_dtype dtype; bool bias; } norm_sizes;

static void norm_init(dt_module *self, const void *params)
{
    const norm_sizes *sizes = params;
    norm *n = dt_module_state(self);
    n->eps = sizes->eps != 0 ? sizes->eps : 1e-5;
    if (!(n->eps > 0 && n->eps < INFINITY)) {
        dt_context_fail(dt_module_context(self), DT_ERR_ARG, "%s: expected an eps above 0, or 0, got %g",
                        self->type->name, n->eps);
        return;
    }
    n->weight = dt_module_param(self, "weight", DT_SHAPE(sizes->width),
                                &(dt_param_params){ .dtype = sizes->dtype, .init = DT_INIT_ONES });
    if (sizes->bias)
        n->bias = dt_module_param(self, "bias", DT_SHAPE(sizes->width),
                                  &(dt_param_params){ .dtype = sizes->dtype, .init = DT_INIT_ZEROS });
}

static dt_tensor *rms_norm_forward(dt_module *self, dt_tensor *const *in)
{
    const norm *n = dt_module_state(self);
    return dt_rms_norm(in[0], n->weight, n->eps);
}

static dt_tensor *layer_norm_forward(dt_module *self, dt_tensor *const *in)
{
    const norm *n = dt_module_state(self);
    return dt_layer_norm(in[0], n->weight, n->bias, n->eps);
}

static const dt_module_type rms_norm_type = {
    .name = "rms_norm", .state_bytes = sizeof(norm), .init = norm_init, .forward = rms_norm_forward,
};
static const dt_module_type layer_norm_type = {
    .name = "layer_norm", .state_bytes = sizeof(norm), .init = norm_init, .forward = layer_norm_forward,
};

dt_module *dt_nn_rms_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype)
{
    return dt_module_create(mesh, &rms_norm_type, &(norm_sizes){ width, eps, dtype, false });
}

dt_module *dt_nn_layer_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype)
{
    return dt_module_create(mesh, &layer_norm_type, &(norm_sizes){ width, eps, dtype, true });
}
