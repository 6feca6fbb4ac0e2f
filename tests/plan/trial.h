/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans made and tried: dry contexts, plans from texts, and what the oracle says of them. */
#ifndef TRIAL_H
#define TRIAL_H

#include <dtensor/dtensor.h>

#include "plan/oracle.h"

/* A dry context with DT_TOPOLOGY and DT_SMALL as given; NULL: unset. */
dt_context *context_with(int n, const char *topology, const char *small);
dt_context *context_of(int n);

/* The plan of fewest bytes between two specs of a mesh. */
const dt_plan *plan_of(dt_mesh *mesh, const char *source, const char *target);

/* A plan between two meshes, tried by the oracle; bound: what any plan must move. */
typedef struct trial { oracle_spec source, target; const dt_plan *plan; oracle_count count; oracle_bound bound; } trial;

/* Whether it is right; end_trial in either case. */
bool try_plan(trial *t, dt_mesh *from, const char *source, dt_mesh *to, const char *target);
void end_trial(trial *t);

#endif
