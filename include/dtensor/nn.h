/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: parameters, children, and a function. A module is made on a mesh; its parameters are R there and without
 * storage until materialised, so that placements can be chosen first (parallel.h). Nothing in a module speaks of ranks.
 *
 *     paths      "layers.0.attn.wq.weight": names from the root, by "."; the root's own is ""
 *     patterns   * any characters within one name, [ab] or [0-9] one of these, ** any number of names:
 *                "layers.*.attn.w[qkv]", "**.weight"; "" is the root alone
 *     names      letters, digits, "_" and "-"
 *
 * A module is a handle of its scope until it becomes another's child; then it ends with its parent. Parameters end with
 * their module. Functions here are local unless they say otherwise; all ranks make the same modules. */
#ifndef DTENSOR_NN_H
#define DTENSOR_NN_H

#include <dtensor/ops.h>

DT_BEGIN_DECLS

/* ---- types of modules -------------------------------------------------------------------------------------------- */

typedef struct dt_module_type {
    const char *name;
    size_t state_bytes;                                              /* the author's struct, zeroed                */
    int inputs;                                                      /* of forward; 0: 1                           */
    void (*init)(dt_module *self, const void *params);               /* add parameters and children                */
    dt_tensor *(*forward)(dt_module *self, dt_tensor *const *in);
    void (*fini)(dt_module *self);                                   /* may be NULL                                */
} dt_module_type;

enum { DT_MAX_MODULE_INPUTS = 8 };

typedef enum dt_init { DT_INIT_FAN_IN = 0, DT_INIT_NORMAL, DT_INIT_ZEROS, DT_INIT_ONES, DT_INIT_COUNT } dt_init;
typedef struct dt_param_params {
    dt_dtype dtype;                                                  /* default: f32                               */
    dt_init init;
    double scale;                                                    /* 0: 1                                       */
    int64_t unit;      /* rows of dim 0 never cut, as a head; 0: 1. Fewer units than ranks: the mesh dim is split, units
                          on outer part tp.0 (the largest divisor of its size not above the units), copies on tp.1 */
    int64_t in_unit;                                                 /* the same for columns of dim 1              */
} dt_param_params;

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* A module of this type, which must live as long; params: what its init takes, used during the call. init runs at once.
 * NULL and DT_ERR_ARG: no type, no forward, more inputs than DT_MAX_MODULE_INPUTS. */
DT_API dt_module *dt_module_create(dt_mesh *mesh, const dt_module_type *type, const void *params);
DT_API dt_mesh *dt_module_mesh(const dt_module *module);
DT_API dt_context *dt_module_context(const dt_module *module);
DT_API void *dt_module_state(const dt_module *module);               /* the author's struct                        */
/* child belongs to parent from now on, under this name, without "."; returns child. DT_ERR_ARG: a name that is taken or
 * is none, another context; DT_ERR_STATE: it has a parent, or is one of parent's. */
DT_API dt_module *dt_module_add(dt_module *parent, const char *name, dt_module *child);
/* A parameter: the handle that forward uses, of which the value comes later; till then an op of it is DT_ERR_STATE, and
 * so is dt_tensor_hold. Product dims are declared by units: of 256
 * rows in units of 32 the dim is (8 32). NULL and DT_ERR_ARG: a name that is taken; DT_ERR_SHAPE: a unit that does not
 * divide its dim; DT_ERR_DTYPE: no float. */
DT_API dt_tensor *dt_module_param(dt_module *module, const char *name, dt_shape shape, const dt_param_params *params);
/* The same parameter under a second name, as tied embeddings: it is listed once, where it was made. Returns param. */
DT_API dt_tensor *dt_module_tie(dt_module *module, const char *name, dt_tensor *param);
/* The one module below root, or root, at a path; NULL, without an error, if there is none. */
DT_API dt_module *dt_module_find(dt_module *root, const char *path);
/* Modules in tree order, a parent before its children; parameters in the order in which they were added, those of a
 * module before those of its children. pattern NULL: all. The first max go to the array; returns how many match. */
DT_API int dt_module_list(dt_module *root, const char *pattern, dt_module **modules, int max);
DT_API int dt_module_params(dt_module *root, const char *pattern, dt_tensor **params, int max);
/* From the outermost root; valid until the module gets a parent. */
DT_API const char *dt_module_path(const dt_module *module);
DT_API const char *dt_param_path(const dt_tensor *param);            /* NULL: x is no parameter                    */

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Make the parameters, directly as they are placed, and leaves. What each element is hangs on seed, path and its index
 * in the whole tensor: the same on every mesh. DT_INIT_FAN_IN: normal, with deviation scale / sqrt(dim 1), as of a
 * weight [out,in]; DT_INIT_NORMAL: normal, deviation scale; DT_INIT_ONES: scale. Those that have values keep them.
 * Collective. */
DT_API dt_status dt_module_materialize(dt_module *root, uint64_t seed);
/* Forget the gradients. */
DT_API dt_status dt_module_zero_grad(dt_module *root);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The function of a module: hooks of inputs, forward, hooks of the result, in a scope of its own. Collective. NULL and
 * DT_ERR_STATE: parameters without values; DT_ERR_ARG: another number of inputs; what forward says, with the path. */
DT_API dt_tensor *dt_module_call(dt_module *module, dt_tensor *x);
DT_API dt_tensor *dt_module_call_n(dt_module *module, dt_tensor *const *in, int n);

/* What a call's inputs and its result pass through: in the order in which hooks were added, each gets what the one
 * before returned. Either may be NULL. */
typedef dt_tensor *(*dt_input_fn)(dt_module *self, int index, dt_tensor *in, void *arg);
typedef dt_tensor *(*dt_output_fn)(dt_module *self, dt_tensor *out, void *arg);
DT_API dt_status dt_module_hook(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg);

/* Training, as at first, or not: of root and all below. Dropout draws only in training. */
DT_API dt_status dt_module_train(dt_module *root, bool on);
DT_API bool dt_module_is_training(const dt_module *module);
/* Keep only the inputs of what matches, and run it again in backward (dt_recompute). DT_ERR_ARG: nothing matches. */
DT_API dt_status dt_module_recompute(dt_module *root, const char *pattern);
/* A key for draws (dt_dropout), of the module's path, the context's step and micro-batch, and n: the same for every
 * call of one micro-batch and when it is recomputed. */
DT_API uint64_t dt_module_key(const dt_module *module, uint64_t n);

/* ---- layers ------------------------------------------------------------------------------------------------------ *
 * Weights are [out,in]. A dtype of 0 is f32. Names of parameters and children are in the comments.                   */

typedef struct dt_linear_params {
    bool bias;
    dt_dtype dtype;                                                  /* default: f32                               */
    int64_t unit, in_unit;                                           /* as in dt_param_params, for dims 0 and 1    */
    double scale;                                                    /* of the weight's DT_INIT_FAN_IN; 0: 1       */
} dt_linear_params;

/* weight bias */
DT_API dt_module *dt_nn_linear(dt_mesh *mesh, int64_t in, int64_t out, const dt_linear_params *params);
DT_API dt_module *dt_nn_embedding(dt_mesh *mesh, int64_t vocab, int64_t width, dt_dtype dtype); /* weight          */
DT_API dt_module *dt_nn_rms_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype); /* weight; eps 0: 1e-5 */
DT_API dt_module *dt_nn_layer_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype); /* weight bias       */
DT_API dt_module *dt_nn_dropout(dt_mesh *mesh, double p);            /* as it comes where it does not train        */
DT_API dt_module *dt_nn_swiglu(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype); /* gate up down   */
DT_API dt_module *dt_nn_gelu_mlp(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype); /* up down, biases */

typedef struct dt_nn_attention_params {
    int64_t width, heads, kv_heads, head;                            /* kv_heads 0: heads; head 0: width / heads   */
    double rope_base;                                                /* 0: no rope                                 */
    bool causal, bias;
    double dropout;                                                  /* of the result                              */
    dt_dtype dtype;
} dt_nn_attention_params;

/* Grouped-query attention of [b,s,width] to itself: wq wk wv wo, heads never cut. */
DT_API dt_module *dt_nn_attention(dt_mesh *mesh, const dt_nn_attention_params *params);

/* ---- models ------------------------------------------------------------------------------------------------------ *
 * Ids [b,s] to logits [b,s,vocab]. An embedding's values are as those of the head that it may be tied to; weights of wo
 * and down are smaller by the root of twice the number of layers, as what they give adds up along these.             */

typedef struct dt_llama_params {
    int64_t vocab, width, layers, heads, kv_heads, mlp_width;        /* kv_heads 0: heads                          */
    double rope_base, eps;                                           /* 0: 10000, 1e-5                             */
    dt_dtype dtype;
    bool tied;                                                       /* the head's weight is the embedding's       */
} dt_llama_params;

typedef struct dt_gpt_params {
    int64_t vocab, width, layers, heads, mlp_width, positions;       /* mlp_width 0: 4 width                       */
    double dropout, eps;                                             /* eps 0: 1e-5                                */
    dt_dtype dtype;
    bool tied;
} dt_gpt_params;

DT_API dt_module *dt_nn_llama_block(dt_mesh *mesh, const dt_llama_params *params); /* attn_norm attn mlp_norm mlp  */
DT_API dt_module *dt_nn_llama(dt_mesh *mesh, const dt_llama_params *params); /* embed layers.N norm head           */
DT_API dt_module *dt_nn_gpt_block(dt_mesh *mesh, const dt_gpt_params *params); /* attn_norm attn mlp_norm mlp drop */
DT_API dt_module *dt_nn_gpt(dt_mesh *mesh, const dt_gpt_params *params); /* embed positions drop layers.N norm head */

/* The loss of logits and targets, two inputs, by dt_cross_entropy; params NULL: all 0. */
DT_API dt_module *dt_nn_cross_entropy(dt_mesh *mesh, const dt_cross_entropy_params *params);

DT_END_DECLS

#endif
