/* SPDX-License-Identifier: Apache-2.0
 *
 * Training: optimisers, clipping, schedules, a loss over the tokens of a batch, checkpoints. One step is
 *
 *     int scope = dt_scope_push(ctx, 0);                            what the step makes ends with it
 *     dt_text_batch(text, spec, 0, 0.9, seed, step, &ids, &targets);
 *     dt_tensor *loss = dt_token_loss(dt_module_call(model, ids), targets, NULL);
 *     dt_module_zero_grad(model);
 *     dt_backward(loss, NULL);
 *     dt_clip_grad_norm(model, 1);
 *     dt_optim_step(adamw, dt_lr_cosine(step, 100, steps, 3e-4, 3e-5));
 *     dt_print(ctx, "%g\n", dt_tensor_item(loss));
 *     dt_scope_pop(ctx, scope, NULL);
 *
 * on any mesh; what it communicates follows from how the model is placed. */
#ifndef DTENSOR_TRAIN_H
#define DTENSOR_TRAIN_H

#include <dtensor/parallel.h>

DT_BEGIN_DECLS

/* ---- optimisers -------------------------------------------------------------------------------------------------- *
 * Of all parameters below root, which have values. States are f32 (f64 for f64), placed like their parameters, or in
 * pieces where dt_fully_shard says so. A parameter narrower than that has a copy among them that is not rounded, from
 * which it is made; what somebody else writes to it counts. An optimiser is a handle of its scope; the module must live
 * as long. Parameters without a gradient stay as they are.                                                           */

/* Settings of dt_optim_sgd. */
typedef struct dt_sgd_params {
    double momentum;                                                 /* 0: none                                    */
    bool nesterov;
    double weight_decay;                                             /* added to the gradient, times the parameter */
    const char *no_decay;                                            /* parameter patterns, separated by ","       */
} dt_sgd_params;

/* Settings of dt_optim_adamw. */
typedef struct dt_adamw_params {
    double beta1, beta2, eps;                                        /* 0: 0.9, 0.999, 1e-8                        */
    double weight_decay;                                             /* 0: none                                    */
    const char *no_decay;                                            /* parameter patterns, separated by ","       */
} dt_adamw_params;

/* AdamW of all parameters below root, its states 0: Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization.
 * params NULL: all 0. Collective. NULL and DT_ERR_ARG: numbers out of range, a pattern of no_decay that matches
 * nothing; DT_ERR_STATE: parameters without values. */
DT_API dt_optim *dt_optim_adamw(dt_module *root, const dt_adamw_params *params);
/* SGD, likewise: Sutskever et al. 2013, On the importance of initialization and momentum in deep learning: v = momentum
 * v + g, w -= lr v; nesterov: w -= lr (g + momentum v). Collective. Errors as of dt_optim_adamw; nesterov without
 * momentum is one, too. */
DT_API dt_optim *dt_optim_sgd(dt_module *root, const dt_sgd_params *params);
/* Take one step: gradients are brought to where the states lie, together, so that what is still P is reduced, and stay
 * there; then each parameter is written. They stay until dt_module_zero_grad. Sets the context's step one further
 * (dt_context_step). Collective. DT_ERR_ARG: lr is negative or no number; DT_ERR_STATE: the tape still needs a
 * parameter: nothing is written. */
DT_API dt_status dt_optim_step(dt_optim *optim, double lr);
DT_API int64_t dt_optim_steps(const dt_optim *optim);                /* how many there were. Local                 */

/* Bring the norm of all gradients down to max_norm: each is multiplied by max_norm / norm where that is below 1.
 * Returns the norm before, a scalar R in f64 if the first gradient is, else in f32, 0 without gradients; each element
 * counts once. max_norm INFINITY: the norm alone. What is still P is reduced as the step would, and stays so. No value
 * leaves a device. Collective. NULL and DT_ERR_ARG: max_norm is not above 0. */
DT_API dt_tensor *dt_clip_grad_norm(dt_module *root, double max_norm);

/* ---- learning rates ---------------------------------------------------------------------------------------------- *
 * Steps count from 0. From 0 in equal parts up to peak at step `warmup`, then down to `last` at step total - 1, by half
 * a cosine or in equal parts, and so it stays. Local, pure.                                                          */

DT_API double dt_lr_cosine(int64_t step, int64_t warmup, int64_t total, double peak, double last);
DT_API double dt_lr_linear(int64_t step, int64_t warmup, int64_t total, double peak, double last);

/* ---- loss -------------------------------------------------------------------------------------------------------- */

/* How many targets are not negative, over the whole tensor: a scalar f32, R. Collective. NULL and DT_ERR_DTYPE: they
 * are no integers. */
DT_API dt_tensor *dt_token_count(dt_tensor *targets);
/* The sum of cross-entropies of logits and targets over count (a scalar; NULL: that of targets): the mean over valid
 * tokens of all micro-batches where count is their sum, so that accumulated gradients are those of one batch. A count
 * of 0 divides by 1. In f64 for f64 logits, else in f32. Collective. NULL and DT_ERR_SHAPE: count is no float scalar;
 * else as of dt_cross_entropy. */
DT_API dt_tensor *dt_token_loss(dt_tensor *logits, dt_tensor *targets, dt_tensor *count);

/* ---- checkpoints ------------------------------------------------------------------------------------------------- *
 * A folder: safetensors files, one per rank that has something to write, and an index beside them. Each element is
 * written once, by the first rank that has it. A folder is whole or not there: files are written under other names, and
 * the index, which names them and their checksums, is renamed last; a writer that is killed leaves the old one. Loads
 * into any mesh and placements, reading what this rank needs. Names are paths below root. What goes wrong with files on
 * one rank is an error on all, which may be cleared. docs/checkpoints.md describes the files.                        */

/* Save parameters, the states of optim (NULL: parameters alone) and step to a folder, which is made where it is
 * missing; a checkpoint there is replaced. Collective over root's mesh, which has the ranks of all parameters.
 * DT_ERR_ARG: no folder, a step below 0, an optimiser of other parameters; DT_ERR_STATE: parameters without values;
 * DT_ERR_PLACEMENT: one that is P; DT_ERR_IO: the folder is as it was. A dry run writes nothing. */
DT_API dt_status dt_checkpoint_save(dt_module *root, dt_optim *optim, int64_t step, const char *folder);
/* Load what was saved into parameters, which may have no values yet, states, and *step (NULL: not wanted). The
 * context's step is set, so that training goes on as if it had not ended. optim NULL: states that are there are left
 * out. Collective over root's mesh; a dry run gets step 0 and values of 0. DT_ERR_IO: no checkpoint, or a damaged one,
 * of which some values may have been taken; DT_ERR_ARG, DT_ERR_SHAPE, DT_ERR_DTYPE: another model or optimiser: the
 * path is named, and nothing is written; DT_ERR_STATE: the tape still needs a parameter. */
DT_API dt_status dt_checkpoint_load(dt_module *root, dt_optim *optim, int64_t *step, const char *folder);
/* Is there an index in the folder? One answer for all ranks, the first one's. Collective over all ranks of the run. */
DT_API bool dt_checkpoint_exists(dt_context *ctx, const char *folder);

/* One rule of names: what a parameter is called in a foreign file. Digits of the path stand for "#" in both, as in
 * { "layers.#.attn.wq.weight", "model.layers.#.self_attn.q_proj.weight" }. */
typedef struct dt_name_row {
    const char *path, *foreign;
} dt_name_row;

/* Load parameters from published weights: a file or a folder of safetensors files, with "model.safetensors.index.json"
 * or without. names NULL: paths as they are. Several parameters of one foreign name are its dim 0 in pieces, in the
 * order of the rows: a fused [q; k; v] or [gate; up]. Floats are converted to what the model has; what else the files
 * have is left out. Parameters may have no values yet. Collective over root's mesh. DT_ERR_IO: no file, or one that is
 * not of the format; DT_ERR_SHAPE; DT_ERR_DTYPE: no floats; DT_ERR_ARG: a parameter that the files or the rows lack.
 * Nothing is written where one of these is found. */
DT_API dt_status dt_weights_load(dt_module *root, const char *path, const dt_name_row *names, int n);
/* The names of Hugging Face's LlamaForCausalLM for dt_nn_llama, and how many rows there are. */
DT_API extern const dt_name_row dt_names_llama[];
DT_API extern const int dt_names_llama_count;

DT_END_DECLS

#endif
