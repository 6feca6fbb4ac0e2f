/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that are one matrix: linear, embedding, the head of a model. */
#include "nn/layers.h"

/* ---- linear ------------------------------------------------------------------------------------------------------ */

typedef struct linear { dt_tensor *weight, *bias; } linear;
typedef struct linear_sizes { int64_t in, out; dt_linear_params with; dt_tensor *tied; } linear_sizes;

static void linear_init(dt_module *self, const void *params)
{
    const linear_sizes *sizes = params;
    const dt_linear_params *with = &sizes->with;
    linear *l = dt_module_state(self);
    if (sizes->tied) l->weight = dt_module_tie(self, "weight", sizes->tied);
    else
        l->weight = dt_module_param(self, "weight", DT_SHAPE(sizes->out, sizes->in),
                                    &(dt_param_params){ .dtype = with->dtype, .scale = with->scale, .unit = with->unit,
                                                        .in_unit = with->in_unit });
    if (with->bias)
        l->bias = dt_module_param(self, "bias", DT_SHAPE(sizes->out),
                                  &(dt_param_params){ .dtype = with->dtype, .init = DT_INIT_ZEROS,
                                                      .unit = with->unit });
}

static dt_tensor *linear_forward(dt_module *self, dt_tensor *const *in)
{
    const linear *l = dt_module_state(self);
    return dt_linear(in[0], l->weight, l->bias);               /* [..,in] -> [..,out]                              */
}

static const dt_module_type linear_type = {
    .name = "linear", .state_bytes = sizeof(linear), .init = linear_init, .forward = linear_forward,
};

dt_module *dt_nn_linear(dt_mesh *mesh, int64_t in, int64_t out, const dt_linear_params *params)
{
    linear_sizes sizes = { .in = in, .out = out };
    if (params) sizes.with = *params;
    return dt_module_create(mesh, &linear_type, &sizes);
}

dt_module *dti_nn_head(dt_mesh *mesh, int64_t in, int64_t out, dt_dtype dtype, dt_tensor *tied)
{
    return dt_module_create(mesh, &linear_type,
                            &(linear_sizes){ .in = in, .out = out, .with.dtype = dtype, .tied = tied });
}

/* ---- embedding --------------------------------------------------------------------------------------------------- */

typedef struct embedding { dt_tensor *weight; } embedding;
typedef struct embedding_sizes { int64_t vocab, width; dt_dtype dtype; } embedding_sizes;

/* As the weight of a linear layer from width to vocab, which it may be tied to. */
static void embedding_init(dt_module *self, const void *params)
{
    const embedding_sizes *sizes = params;
    embedding *e = dt_module_state(self);
    e->weight = dt_module_param(self, "weight", DT_SHAPE(sizes->vocab, sizes->width),
                                &(dt_param_params){ .dtype = sizes->dtype });
}

static dt_tensor *embedding_forward(dt_module *self, dt_tensor *const *in)
{
    const embedding *e = dt_module_state(self);
    return dt_embedding(e->weight, in[0]);                     /* [..] -> [..,width]                               */
}

static const dt_module_type embedding_type = {
    .name = "embedding", .state_bytes = sizeof(embedding), .init = embedding_init, .forward = embedding_forward,
};

dt_module *dt_nn_embedding(dt_mesh *mesh, int64_t vocab, int64_t width, dt_dtype dtype)
{
    return dt_module_create(mesh, &embedding_type, &(embedding_sizes){ vocab, width, dtype });
}

dt_tensor *dti_nn_embedding_weight(const dt_module *module)
{
    const embedding *e = dt_module_state(module);
    return e ? e->weight : NULL;
}
