/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REDISTRIBUTE_RUN_H
#define REDISTRIBUTE_RUN_H

#include <dtensor/dtensor.h>

/* Make both specs in a rank's own context. false: the context says why. */
typedef bool (*ends_fn)(dt_context *ctx, const void *arg, const dt_spec **source, const dt_spec **target);

typedef struct run_result { bool verified; double us; } run_result; /* us: rank 0's best of a few rounds           */

/* Carry a plan out on thread ranks. false: one failed, error says why. */
bool redistribute_on_threads(int ranks, ends_fn make, const void *arg, dt_plan_goal goal, run_result *result,
                             char *error, size_t n_bytes);

#endif
