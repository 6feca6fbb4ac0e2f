/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a plan as JSON, for the commands that show plans. */
#ifndef DT_STEP_H
#define DT_STEP_H

#include <dtensor/plan.h>

#include "json.h"

/* "steps": an array of those of some plans, one behind the other; NULL: a plan of none. */
void step_json(json *j, const dt_plan *const *plans, int n, json_look look);

#endif
