/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-layer perceptrons, as they stand in blocks. */
#include "nn/layers.h"

typedef struct mlp_sizes { int64_t width, mlp_width; dt_dtype dtype; } mlp_sizes;
typedef struct mlp { dt_module *gate, *up, *down; } mlp;

/* ---- SwiGLU ------------------------------------------------------------------------------------------------------ */

static void swiglu_init(dt_module *self, const void *params)
{
    const mlp_sizes *sizes = params;
    const dt_linear_params with = { .dtype = sizes->dtype };
    dt_mesh *mesh = dt_module_mesh(self);
    mlp *m = dt_module_state(self);
    m->gate = dt_module_add(self, "gate", dt_nn_linear(mesh, sizes->width, sizes->mlp_width, &with));
    m->up = dt_module_add(self, "up", dt_nn_linear(mesh, sizes->width, sizes->mlp_width, &with));
    m->down = dt_module_add(self, "down", dt_nn_linear(mesh, sizes->mlp_width, sizes->width, &with));
}

static dt_tensor *swiglu_forward(dt_module *self, dt_tensor *const *in)
{
    const mlp *m = dt_module_state(self);
    dt_tensor *gate = dt_module_call(m->gate, in[0]), *up = dt_module_call(m->up, in[0]);
    return dt_module_call(m->down, dt_swiglu(gate, up));
}

static const dt_module_type swiglu_type = {
    .name = "swiglu", .state_bytes = sizeof(mlp), .init = swiglu_init, .forward = swiglu_forward,
};

dt_module *dt_nn_swiglu(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype)
{
    return dt_module_create(mesh, &swiglu_type, &(mlp_sizes){ width, mlp_width, dtype });
}

/* ---- GELU -------------------------------------------------------------------------------------------------------- */

static void gelu_init(dt_module *self, const void *params)
{
    const mlp_sizes *sizes = params;
    const dt_linear_params with = { .bias = true, .dtype = sizes->dtype };
    dt_mesh *mesh = dt_module_mesh(self);
    mlp *m = dt_module_state(self);
    m->up = dt_module_add(self, "up", dt_nn_linear(mesh, sizes->width, sizes->mlp_width, &with));
    m->down = dt_module_add(self, "down", dt_nn_linear(mesh, sizes->mlp_width, sizes->width, &with));
}

static dt_tensor *gelu_forward(dt_module *self, dt_tensor *const *in)
{
    const mlp *m = dt_module_state(self);
    return dt_module_call(m->down, dt_gelu(dt_module_call(m->up, in[0])));
}

static const dt_module_type gelu_type = {
    .name = "gelu_mlp", .state_bytes = sizeof(mlp), .init = gelu_init, .forward = gelu_forward,
};

dt_module *dt_nn_gelu_mlp(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype)
{
    return dt_module_create(mesh, &gelu_type, &(mlp_sizes){ width, mlp_width, dtype });
}
