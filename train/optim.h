/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of optimisers, for checkpoints: what there is beside each parameter. */
#ifndef DTI_TRAIN_OPTIM_H
#define DTI_TRAIN_OPTIM_H

#include <dtensor/train.h>

#include "nn/module.h"

/* What an optimiser keeps of a parameter, each a tensor like it in f32 (f64 for f64), where its states lie: the
 * parameter itself before it was rounded, where that is narrower, and moments. */
typedef enum dti_optim_state {
    DTI_OPTIM_MASTER, DTI_OPTIM_FIRST, DTI_OPTIM_SECOND, DTI_OPTIM_STATES
} dti_optim_state;

typedef struct dti_optim_slot {
    dt_tensor *param;
    const dt_spec *spec;           /* of its states                                                                */
    dt_tensor *state[DTI_OPTIM_STATES]; /* no scope's; NULL: it has none such                                      */
    int64_t writes;                /* of the parameter, when its master was last the same                          */
    bool decays;
} dti_optim_slot;

typedef struct dti_optim_numbers { double beta1, beta2, eps, momentum, weight_decay; bool nesterov; } dti_optim_numbers;

typedef struct dti_optim_kind {
    const char *name;
    const char *states[DTI_OPTIM_STATES]; /* what they are called; NULL: none                                      */
    /* The update of n parameters: w, their states, their gradients, all placed alike. */
    dt_status (*update)(const dt_optim *optim, double lr, double weight_decay, dt_tensor *const *w,
                        dt_tensor *const *const state[DTI_OPTIM_STATES], dt_tensor *const *grad, int n);
} dti_optim_kind;

struct dt_optim {
    dti_handle handle;             /* first: of its scope                                                          */
    dt_context *ctx;
    const dti_optim_kind *kind;
    dti_optim_numbers numbers;
    int64_t steps;                 /* that there were                                                              */
    int n;
    dti_optim_slot *slots;         /* of the parameters, in the order of their tree                                */
};

/* Make masters of parameters that somebody else has written of these anew, so that all states stand. Collective. false:
 * the error. */
bool dti_optim_settle(dt_optim *optim);
/* States and parameters have been read together, and there were so many steps: masters stand. Without this, one of a
 * parameter that has been written is made of it anew. */
void dti_optim_restored(dt_optim *optim, int64_t steps);

/* ---- gradients (grads.c) ----------------------------------------------------------------------------------------- */

/* Where a parameter's states lie, and its gradient once it is reduced. NULL: the error. */
const dt_spec *dti_state_spec(const dt_tensor *param);
/* Bring the gradients of n parameters, which have some, to these specs, together: what is P is reduced. They stay
 * there; grads[i]: the gradient of param[i] from now on. Collective. false: the error. */
bool dti_grads_settle(dt_context *ctx, dt_tensor *const *params, const dt_spec *const *specs, int n,
                      dt_tensor **grads);

#endif
