/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan carried out by one rank: compiled once to lists of strided copies, then run on any backend. The bytes that are
 * copied are those the plan says. */
#ifndef DTI_EXECUTE_H
#define DTI_EXECUTE_H

#include "core/storage.h"
#include "redistribute/plan.h"

typedef struct dti_running dti_running;

/* Begin: the first stage is on its way. sources: this rank's parts, of the plan's source, or, mapped, of each part's;
 * they are retained as long as they are needed. fill: what elements are that a mapped plan has no part for. NULL and
 * the error on failure. Collective. */
dti_running *dti_plan_start(const dt_plan *plan, dti_storage *const *sources, double fill);
/* Complete: this rank's part of the target, with a reference for the caller. A plan without steps gives the source
 * itself. NULL and the error on failure. Collective. */
dti_storage *dti_plan_finish(dti_running *running);

/* ---- several at once --------------------------------------------------------------------------------------------- *
 * Steps of one stage that run in one group are one call of the backend. In the counters, what is of one kind, of one
 * stage and along the same mesh dims is one call.                                                                    */

typedef struct dti_moving {
    const dt_plan *plan;
    dti_storage *const *sources;   /* as of dti_plan_start                                                         */
    dti_running *running;          /* under way                                                                    */
    dti_storage *result;           /* done, with a reference for the caller                                        */
} dti_moving;

/* Begin all. Each may be finished by itself, by dti_plan_finish. false and the error, nothing under way. Collective. */
bool dti_plans_start(dt_context *ctx, dti_moving *moving, int n);
/* Complete all; results of all, or the error and none. Collective. */
bool dti_plans_finish(dt_context *ctx, dti_moving *moving, int n);

#endif
