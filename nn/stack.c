/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules one after the other, as the layers of a model. Invariant: of the results between them one is alive at a time,
 * but for what the tape keeps. */
#include <math.h>
#include <stdio.h>

#include "nn/layers.h"

typedef struct layers_sizes { int64_t n; dti_layer_fn make; const void *params; } layers_sizes;

static void layers_init(dt_module *self, const void *params)
{
    const layers_sizes *sizes = params;
    char name[24];
    if (sizes->n < 0)
        dt_context_fail(dt_module_context(self), DT_ERR_ARG, "layers: expected a number of them, got %lld",
                        (long long)sizes->n);
    for (int64_t i = 0; i < sizes->n && !dti_failed(dt_module_context(self)); i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        dt_module_add(self, name, sizes->make(dt_module_mesh(self), sizes->params));
    }
}

static dt_tensor *layers_forward(dt_module *self, dt_tensor *const *in)
{
    dt_tensor *x = in[0], *last = NULL;
    for (dt_module *layer = self->first; layer && x; layer = layer->next) {
        int scope = dt_scope_push(self->ctx, 0);
        dt_tensor_hold(&last, dt_module_call(layer, x));
        dt_scope_pop(self->ctx, scope, NULL);
        x = last;
    }
    if (last) x = dti_tensor_share(last);
    dt_tensor_hold(&last, NULL);
    return x;
}

static const dt_module_type layers_type = { .name = "layers", .init = layers_init, .forward = layers_forward };

dt_module *dti_nn_layers(dt_mesh *mesh, int64_t n, dti_layer_fn make, const void *params)
{
    return dt_module_create(mesh, &layers_type, &(layers_sizes){ n, make, params });
}

void dti_nn_calm(dt_module *module, const char *weight, int64_t layers)
{
    dt_tensor *x = NULL;
    dt_module_params(module, weight, &x, 1);
    dti_param *param = layers > 0 ? dti_param_of(x) : NULL;
    if (param) param->scale /= sqrt(2 * (double)layers);
}
