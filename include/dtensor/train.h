/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimisers, clipping, schedules, checkpoints. */
#ifndef DTENSOR_TRAIN_H
#define DTENSOR_TRAIN_H

#include <dtensor/parallel.h>

DT_BEGIN_DECLS

typedef struct dt_adamw_params {
    double beta1, beta2, eps;                                        /* 0: 0.9, 0.999, 1e-8                        */
    double weight_decay;                                             /* 0: none                                    */
    const char *no_decay;                                            /* parameter patterns, separated by ","       */
} dt_adamw_params;

DT_API dt_optim *dt_optim_adamw(dt_module *root, const dt_adamw_params *params); /* states placed as parameters */
DT_API dt_status dt_optim_step(dt_optim *optim, double lr);          /* reduces what is still P. Collective        */
/* The norm before; each element once; reduces what is still P as the step would. Collective. */
DT_API dt_tensor *dt_clip_grad_norm(dt_module *root, double max_norm);
DT_API double dt_lr_cosine(int64_t step, int64_t warmup, int64_t total, double peak, double last);
/* Atomic. Collective. */
DT_API dt_status dt_checkpoint_save(dt_module *root, dt_optim *optim, int64_t step, const char *folder);
/* From any mesh. Collective. */
DT_API dt_status dt_checkpoint_load(dt_module *root, dt_optim *optim, int64_t *step, const char *folder);
DT_API bool dt_checkpoint_exists(dt_context *ctx, const char *folder); /* one answer for all ranks. Collective    */

DT_END_DECLS

#endif
