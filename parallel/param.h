/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a parameter lies. What styles and dt_place say is its base, on its module's mesh; what follows of that, of its
 * units and of its group is where it is stored and used. Pure but for that. */
#ifndef DTI_PARALLEL_PARAM_H
#define DTI_PARALLEL_PARAM_H

#include "nn/module.h"

/* A parameter's base placed as a text says; "*" is as it is so far. dtype 0: its own. NULL: the error. */
const dt_spec *dti_param_spec(const dti_param *param, const char *placements, dt_dtype dtype);
/* Could it be derived, in a group of such a kind (NULL: its own)? Changes nothing. false: the error. */
bool dti_param_may(const dti_param *param, const dti_shard *shard);
/* Set where it is stored, used, where its gradient and its states lie. false: the error. */
bool dti_param_derive(dti_param *param);
/* The outer part of a mesh dim that is split for a parameter with fewer units than it has ranks; 0: it is not. */
int dti_param_outer(const dti_param *param, const char *dim);

#endif
