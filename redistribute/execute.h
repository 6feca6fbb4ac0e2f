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

#endif
