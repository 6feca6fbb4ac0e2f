/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of a small byte-level model, placed in some way: the same text, values, batches and numbers whatever the
 * mesh, so that its losses are those of one rank. Spaces are never asked for: ranks have different numbers of targets
 * that count. */
#ifndef TRAINING_H
#define TRAINING_H

#include "models/placing.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TRAINING_MANY 16           /* a sanitizer looks at the same code in all of them                            */
#else
#define TRAINING_MANY 50
#endif

enum { TRAINING_STEPS = TRAINING_MANY, TRAINING_BATCH = 8, TRAINING_LENGTH = 16, TRAINING_VOCAB = 123 };

typedef struct training {
    placing placing;               /* its llama, where gpt has no vocab                                            */
    dt_gpt_params gpt;
    int parts;                     /* micro-batches of a step; 0: one                                              */
    bool unclipped;                /* gradients stay as they are; else their norm is at most 0.5                   */
} training;

typedef struct trainer {
    const training *of;
    dt_mesh *mesh;
    dt_module *model;
    dt_optim *optim;
    dt_text *text;
    int64_t step;
} trainer;

/* The model, placed, with its values. Collective. */
dt_module *training_model(dt_mesh *mesh, const training *t);
/* All that a step needs, in the scope that is open. Collective. */
trainer trainer_new(dt_context *ctx, const training *t);
/* Ids and targets of the next step, as the placing says. Local. */
void trainer_batch(const trainer *t, dt_tensor **ids, dt_tensor **targets);
/* One step; returns its loss. Collective. */
double trainer_step(trainer *t);

typedef struct curve {
    double loss[TRAINING_STEPS];
    uint64_t params;               /* a checksum of all of them in the end, that hangs on no mesh                  */
} curve;

/* A launch: TRAINING_STEPS steps on as many ranks as the placing has. */
curve training_curve(const training *t);

#endif
