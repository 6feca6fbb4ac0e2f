/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: parameters, children, and a function. A module is made on a mesh; its parameters are R there and without
 * storage until materialised, so that placements can be chosen first (parallel.h). Nothing in a module speaks of ranks.
 *
 *     dt_module *model = dt_nn_llama(mesh, &params);        made: a tree of modules, no values yet
 *     dt_parallelize(model, "tp", rows, n);                 placed (parallel.h), or not
 *     dt_module_materialize(model, seed);                   values, each rank its own parts
 *     dt_tensor *logits = dt_module_call(model, ids);       called
 *
 *     names      letters, digits, "_" and "-"
 *     paths      "layers.0.attn.wq.weight": names from the root, by "."; the root's own is ""
 *     patterns   paths below the root that a function is given, where * is any characters within one name, [ab] or
 *                [0-9] one of these, ** any number of names: "layers.*.attn.w[qkv]", "**.weight"; "" is the root alone
 *
 * A module is a handle of its scope until it becomes another's child; then it ends with its parent. Parameters end with
 * their module. Functions here are local unless they say otherwise; all ranks make the same modules, in the same order.
 * A pattern or a style in no notation is DT_ERR_PARSE, with the column. */
#ifndef DTENSOR_NN_H
#define DTENSOR_NN_H

#include <dtensor/ops.h>

DT_BEGIN_DECLS

/* ---- types of modules -------------------------------------------------------------------------------------------- */

/* What a module of one's own is made of, as a static const: init fills the state and adds parameters and children,
 * forward computes with ops and calls of children. Neither knows of ranks. A failure in either is on the context. */
typedef struct dt_module_type {
    const char *name;                                                /* for messages                               */
    size_t state_bytes;                                              /* of the author's struct, zeroed             */
    int inputs;                                                      /* of forward; 0: 1                           */
    void (*init)(dt_module *self, const void *params);               /* may be NULL                                */
    dt_tensor *(*forward)(dt_module *self, dt_tensor *const *in);    /* NULL for inputs that a call leaves out     */
    void (*fini)(dt_module *self);                                   /* may be NULL; before children end           */
} dt_module_type;

enum { DT_MAX_MODULE_INPUTS = 8 };                                   /* inputs of one module                       */

/* What a parameter's elements are at first, times a scale (dt_module_materialize). */
typedef enum dt_init {
    DT_INIT_FAN_IN = 0,            /* normal, deviation 1 / sqrt(dim 1), as of a weight [out,in]; of one dim, dim 0 */
    DT_INIT_NORMAL,                /* normal, deviation 1                                                          */
    DT_INIT_ZEROS,
    DT_INIT_ONES,
    DT_INIT_COUNT
} dt_init;

typedef struct dt_param_params {
    dt_dtype dtype;                                                  /* default: f32                               */
    dt_init init;
    double scale;                                                    /* of init; 0: 1                              */
    int64_t unit;      /* rows of dim 0 never cut, as a head; 0: 1. Fewer units than ranks: the mesh dim is split, units
                          on outer part tp.0 (the largest divisor of its size not above the units), copies on tp.1 */
    int64_t in_unit;                                                 /* the same for columns of dim 1              */
} dt_param_params;

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* A module of this type, which must live as long; params: what its init takes, used during the call. init runs at once.
 * NULL and DT_ERR_ARG: no type, no forward, more inputs than DT_MAX_MODULE_INPUTS. */
DT_API dt_module *dt_module_create(dt_mesh *mesh, const dt_module_type *type, const void *params);
/* The mesh and the context that it was made in, and its state, the author's struct; NULL for NULL. The module owns its
 * state. */
DT_API dt_mesh *dt_module_mesh(const dt_module *module);
DT_API dt_context *dt_module_context(const dt_module *module);
DT_API void *dt_module_state(const dt_module *module);
/* child belongs to parent from now on, under this name, without "."; returns child. DT_ERR_ARG: a name that is taken or
 * is none, another context; DT_ERR_STATE: it has a parent, or is one of parent's. */
DT_API dt_module *dt_module_add(dt_module *parent, const char *name, dt_module *child);
/* A parameter of this global shape: the handle that forward uses, of which the value comes later
 * (dt_module_materialize, dt_checkpoint_load, dt_weights_load); till then an op of it is DT_ERR_STATE, and so is
 * dt_tensor_hold. The module owns it. Product dims are declared by units: of 256 rows in units of 32 the dim is (8 32).
 * params NULL: all 0. NULL and DT_ERR_ARG: a name that is taken or is none, a scale that is no finite number;
 * DT_ERR_SHAPE: a unit that does not divide its dim; DT_ERR_DTYPE: no float. */
DT_API dt_tensor *dt_module_param(dt_module *module, const char *name, dt_shape shape, const dt_param_params *params);
/* The same parameter under a second name, as tied embeddings: it is listed once, where it was made, whose module must
 * live as long. Returns param. NULL and DT_ERR_ARG: a name that is taken or is none, a tensor that is no parameter. */
DT_API dt_tensor *dt_module_tie(dt_module *module, const char *name, dt_tensor *param);
/* The one module at a path below root, "": root itself; NULL, without an error, if there is none. */
DT_API dt_module *dt_module_find(dt_module *root, const char *path);
/* Modules in tree order, a parent before its children; parameters in the order in which they were added, those of a
 * module before those of its children. pattern NULL: all. The first max go to the array, which may be NULL where max is
 * 0; returns how many match. */
DT_API int dt_module_list(dt_module *root, const char *pattern, dt_module **modules, int max);
DT_API int dt_module_params(dt_module *root, const char *pattern, dt_tensor **params, int max);
/* The path from the outermost root, "" for the root; of a tensor that is no parameter NULL. The module owns the text,
 * which is valid until it, or one above it, gets a parent. */
DT_API const char *dt_module_path(const dt_module *module);
DT_API const char *dt_param_path(const dt_tensor *param);

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Make the parameters of root and all below, directly as they are placed, and leaves (dt_require_grad). What each
 * element is hangs on seed, path and its index in the whole tensor, as its dt_init says: the same on every mesh. Those
 * that have values keep them. From then on placements are fixed. Collective. DT_ERR_MEMORY. */
DT_API dt_status dt_module_materialize(dt_module *root, uint64_t seed);
/* Forget the gradients of all parameters: once per step, before its first backward. */
DT_API dt_status dt_module_zero_grad(dt_module *root);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The function of a module: hooks of inputs, forward, hooks of the result, in a scope of its own, so that what is made
 * between ends with the call, but for what the tape keeps; the result is a handle of the caller's scope. dt_module_call
 * is for modules of one input, dt_module_call_n for any; inputs behind the first may be NULL. Collective. NULL and
 * DT_ERR_STATE: parameters without values; DT_ERR_ARG: another number of inputs; what forward says, with the path. */
DT_API dt_tensor *dt_module_call(dt_module *module, dt_tensor *x);
DT_API dt_tensor *dt_module_call_n(dt_module *module, dt_tensor *const *in, int n);

/* A hook: returns what is to go on in the place of what it gets, the same where it only looks. NULL is an error. */
typedef dt_tensor *(*dt_input_fn)(dt_module *self, int index, dt_tensor *in, void *arg);
typedef dt_tensor *(*dt_output_fn)(dt_module *self, dt_tensor *out, void *arg);
/* Let a call's inputs and its result pass through hooks: in the order in which they were added, each gets what the one
 * before returned, and so do the placements of styles (dt_parallelize), which are hooks, too. Either may be NULL; arg
 * must live as long as the module. */
DT_API dt_status dt_module_hook(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg);

/* Set training, on at first, of root and all below. Dropout draws only in training. */
DT_API dt_status dt_module_train(dt_module *root, bool on);
/* Is it training? */
DT_API bool dt_module_is_training(const dt_module *module);
/* Of the modules that match keep only the inputs, and run them again in backward (dt_recompute), which must find them
 * as they were: training or not, their parameters not written; else it is DT_ERR_STATE. DT_ERR_ARG: nothing matches. */
DT_API dt_status dt_module_recompute(dt_module *root, const char *pattern);
/* A key for draws (dt_dropout), of the module's path, the context's step and micro-batch, and n: the same for every
 * call of one micro-batch and when it is recomputed. */
DT_API uint64_t dt_module_key(const dt_module *module, uint64_t n);

/* ---- layers ------------------------------------------------------------------------------------------------------ *
 * Each makes a module, without values, a handle of the scope. Weights are [out,in]; matrices begin as DT_INIT_FAN_IN,
 * norms as ones, biases as zeros. A dtype of 0 is f32. Names of parameters and children are those that paths have. NULL
 * and the error: as of dt_module_create and dt_module_param.                                                         */

typedef struct dt_linear_params {
    bool bias;
    dt_dtype dtype;                                                  /* default: f32                               */
    int64_t unit, in_unit;                                           /* as in dt_param_params, for dims 0 and 1    */
    double scale;                                                    /* of the weight's DT_INIT_FAN_IN; 0: 1       */
} dt_linear_params;

/* [..,in] to [..,out] by dt_linear; params NULL: all 0. Parameters: weight, bias. */
DT_API dt_module *dt_nn_linear(dt_mesh *mesh, int64_t in, int64_t out, const dt_linear_params *params);
/* Ids [..] to [..,width], rows of its weight [vocab,width]. Parameter: weight. */
DT_API dt_module *dt_nn_embedding(dt_mesh *mesh, int64_t vocab, int64_t width, dt_dtype dtype);
/* [..,width] as by dt_rms_norm; eps 0: 1e-5. Parameter: weight. DT_ERR_ARG: eps is below 0 or no number. */
DT_API dt_module *dt_nn_rms_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype);
/* [..,width] as by dt_layer_norm; eps 0: 1e-5. Parameters: weight, bias. DT_ERR_ARG: as of dt_nn_rms_norm. */
DT_API dt_module *dt_nn_layer_norm(dt_mesh *mesh, int64_t width, double eps, dt_dtype dtype);
/* dt_dropout in training, keyed by path, step and micro-batch; else what comes. DT_ERR_ARG: p is not in [0, 1). */
DT_API dt_module *dt_nn_dropout(dt_mesh *mesh, double p);
/* [..,width] to itself: down(silu(gate x) up x), without biases. Children: gate, up, down. */
DT_API dt_module *dt_nn_swiglu(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype);
/* [..,width] to itself: down(gelu(up x)), with biases. Children: up, down. */
DT_API dt_module *dt_nn_gelu_mlp(dt_mesh *mesh, int64_t width, int64_t mlp_width, dt_dtype dtype);

typedef struct dt_nn_attention_params {
    int64_t width, heads, kv_heads, head;                            /* kv_heads 0: heads; head 0: width / heads   */
    double rope_base;                                                /* 0: no rope                                 */
    bool causal, bias;
    double dropout;                                                  /* of the result                              */
    dt_dtype dtype;
} dt_nn_attention_params;

/* Grouped-query attention of [b,s,width] to itself; heads are units of the weights, and never cut (dt_param_params).
 * Children: wq, wk, wv, wo. DT_ERR_ARG: no params, heads that are no multiple of kv_heads, a width that is none of
 * heads where head is 0, a dropout that is not in [0, 1), a rope_base below 0. */
DT_API dt_module *dt_nn_attention(dt_mesh *mesh, const dt_nn_attention_params *params);

/* ---- models ------------------------------------------------------------------------------------------------------ *
 * Ids [b,s] to logits [b,s,vocab]; a block, [b,s,width] to itself. An embedding's values are as those of the head that
 * it may be tied to; weights of wo and down are smaller by the root of twice the number of layers, as what they give
 * adds up along these. NULL and the error: as of layers; DT_ERR_ARG: no params.                                      */

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

/* x + attn(attn_norm x), then y + mlp(mlp_norm y): RMS norms, rotary positions, SwiGLU, no biases. Children: attn_norm,
 * attn, mlp_norm, mlp. */
DT_API dt_module *dt_nn_llama_block(dt_mesh *mesh, const dt_llama_params *params);
/* Touvron et al. 2023, LLaMA: Open and Efficient Foundation Language Models. Children: embed, layers.N, norm, head. */
DT_API dt_module *dt_nn_llama(dt_mesh *mesh, const dt_llama_params *params);
/* The same with layer norms, a GELU MLP, biases and dropout. Children: attn_norm, attn, mlp_norm, mlp, drop. */
DT_API dt_module *dt_nn_gpt_block(dt_mesh *mesh, const dt_gpt_params *params);
/* Radford et al. 2019, Language Models are Unsupervised Multitask Learners: learnt positions, of which there are as
 * many as params say. Children: embed, positions, drop, layers.N, norm, head. DT_ERR_SHAPE, by a call: a longer
 * sequence. */
DT_API dt_module *dt_nn_gpt(dt_mesh *mesh, const dt_gpt_params *params);

/* The loss of logits [..,v] and targets [..], two inputs, by dt_cross_entropy; params NULL: all 0. */
DT_API dt_module *dt_nn_cross_entropy(dt_mesh *mesh, const dt_cross_entropy_params *params);

DT_END_DECLS

#endif
