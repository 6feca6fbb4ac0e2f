/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library's models are made of besides the layers of nn.h. */
#ifndef DTI_LAYERS_H
#define DTI_LAYERS_H

#include "nn/module.h"

/* A linear layer without bias; tied: with this parameter as its weight, NULL: with one of its own. */
dt_module *dti_nn_head(dt_mesh *mesh, int64_t in, int64_t out, dt_dtype dtype, dt_tensor *tied);
/* The weight of an embedding. */
dt_tensor *dti_nn_embedding_weight(const dt_module *embedding);
/* n modules, called "0" to "n - 1", one after the other. */
typedef dt_module *(*dti_layer_fn)(dt_mesh *mesh, const void *params);
dt_module *dti_nn_layers(dt_mesh *mesh, int64_t n, dti_layer_fn make, const void *params);
/* What adds to the stream of a model with so many layers of two branches each: the weight of a module's part is made
 * smaller, so that the stream's size does not grow with them. */
void dti_nn_calm(dt_module *module, const char *weight, int64_t layers);

#endif
