/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves that are stored on one spec and used on another (design, law five): f32 in pieces over dp as bf16 whole. A use
 * is a group of them that is gathered in one call when its function begins and given up when that ends; when backward
 * comes to what the function made, they are gathered in one call again, and when it has passed the function their
 * gradients go back in one. Nothing here knows modules. */
#ifndef DTI_USE_H
#define DTI_USE_H

#include "autograd/tape.h"

typedef struct dti_use dti_use;

typedef struct dti_use_params {
    dt_dtype reduce;               /* what gradients travel as; default: as they come                              */
    bool keep;                     /* what was gathered stays from forward to backward                             */
    int prefetch;                  /* uses that are gathered ahead, in the order of the calls before               */
} dti_use_params;

/* A use without leaves. NULL: the error. The caller destroys it, which ends no leaf. */
dti_use *dti_use_new(dt_context *ctx, const dti_use_params *params);
void dti_use_destroy(dti_use *use);
/* Add a leaf x, which outlives the use: ops between begin and end see it on `used`. grad: where its gradient goes;
 * NULL: S where x is S, else as it comes. false: the error. */
bool dti_use_add(dti_use *use, dt_tensor *x, const dt_spec *used, const dt_spec *grad);
/* Gather; from now on ops that are given x take its used value. Calls nest: the outermost gathers. false: the error,
 * and nothing to end. Collective. */
bool dti_use_begin(dti_use *use);
/* The end of the function whose result is out (NULL: it failed), which is returned, maybe in another handle. NULL: the
 * error. */
dt_tensor *dti_use_end(dti_use *use, dt_tensor *out);

/* End what is gathered ahead and was not asked for: the next values may be others. Collective. */
void dti_uses_settle_ahead(dt_context *ctx);

/* Which uses does a function take from that backward is to run again? Watch, run it, then ask how many, and which, each
 * with a reference; uses NULL: only how many. */
void dti_uses_watch(dt_context *ctx);
int dti_uses_taken(dt_context *ctx, dti_use **uses);
void dti_use_release(dti_use *use);

#endif
