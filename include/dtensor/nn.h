/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules. A module is made on a mesh; its parameters are R there and without storage until materialised, so that
 * placements can be chosen first. Children belong to their parent. Paths are "layers.0.attn.wq.weight"; in patterns *
 * and [ab] stand within one name, ** for any number of names. */
#ifndef DTENSOR_NN_H
#define DTENSOR_NN_H

#include <dtensor/ops.h>

DT_BEGIN_DECLS

typedef struct dt_module_type {
    const char *name;
    size_t state_bytes;                                              /* the author's struct, zeroed                */
    int inputs;                                                      /* of forward; 0: 1                           */
    void (*init)(dt_module *self, const void *params);               /* add parameters and children                */
    dt_tensor *(*forward)(dt_module *self, dt_tensor *const *in);
    void (*fini)(dt_module *self);                                   /* may be NULL                                */
} dt_module_type;

typedef enum dt_init { DT_INIT_FAN_IN = 0, DT_INIT_NORMAL, DT_INIT_ZEROS, DT_INIT_ONES } dt_init;
typedef struct dt_param_params {
    dt_dtype dtype;                                                  /* default: f32                               */
    dt_init init;
    double scale;                                                    /* 0: 1                                       */
    int64_t unit;      /* rows of dim 0 never cut, as a head; 0: 1. Fewer units than ranks: the mesh dim is split, units
                          on outer part tp.0 (the largest divisor of its size not above the units), copies on tp.1 */
} dt_param_params;

typedef dt_tensor *(*dt_input_fn)(dt_module *self, int index, dt_tensor *in, void *arg);
typedef dt_tensor *(*dt_output_fn)(dt_module *self, dt_tensor *out, void *arg);

DT_API dt_module *dt_module_create(dt_mesh *mesh, const dt_module_type *type, const void *params);
DT_API dt_mesh *dt_module_mesh(const dt_module *module);
DT_API void *dt_module_state(const dt_module *module);               /* the author's struct                        */
DT_API dt_module *dt_module_add(dt_module *parent, const char *name, dt_module *child); /* returns child           */
DT_API dt_tensor *dt_module_param(dt_module *module, const char *name, dt_shape shape, const dt_param_params *params);
/* Tree order; how many. */
DT_API int dt_module_params(dt_module *root, const char *pattern, dt_tensor **params, int max);
DT_API const char *dt_param_path(const dt_tensor *param);
/* Values by path and global index. Collective. */
DT_API dt_status dt_module_materialize(dt_module *root, uint64_t seed);
DT_API dt_status dt_module_hook(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg);
DT_API dt_status dt_module_train(dt_module *root, bool on);
DT_API dt_status dt_module_recompute(dt_module *root, const char *pattern); /* keep only inputs of what matches    */
DT_API dt_tensor *dt_module_call(dt_module *module, dt_tensor *x);   /* hooks, forward, in a scope of its own      */
DT_API dt_tensor *dt_module_call_n(dt_module *module, dt_tensor *const *in, int n);
DT_API dt_status dt_module_zero_grad(dt_module *root);

typedef struct dt_linear_params {
    bool bias;
    dt_dtype dtype;                                                  /* default: f32                               */
    int64_t unit, in_unit;                                           /* as in dt_param_params, for dims 0 and 1    */
} dt_linear_params;
typedef struct dt_llama_params {
    int64_t vocab, width, layers, heads, kv_heads, mlp_width;
    double rope_base, eps;                                           /* 0: 10000, 1e-5                             */
    dt_dtype dtype;
} dt_llama_params;

/* Weight [out,in]. */
DT_API dt_module *dt_nn_linear(dt_mesh *mesh, int64_t in, int64_t out, const dt_linear_params *params);
DT_API dt_module *dt_nn_embedding(dt_mesh *mesh, int64_t vocab, int64_t width, dt_dtype dtype);
DT_API dt_module *dt_nn_rms_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype);
DT_API dt_module *dt_nn_swiglu(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype); /* gate up down   */
DT_API dt_module *dt_nn_llama(dt_mesh *mesh, const dt_llama_params *params); /* embed layers.N norm head           */

DT_END_DECLS

#endif
