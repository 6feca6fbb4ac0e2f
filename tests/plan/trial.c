/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is right where the oracle's tensor arrives and the plan's own check agrees. */
#include "plan/trial.h"

#include <stdlib.h>

#include "suite.h"

dt_context *context_with(int n, const char *topology, const char *small)
{
    if (topology) setenv("DT_TOPOLOGY", topology, 1);
    if (small) setenv("DT_SMALL", small, 1);
    dt_context *ctx = dt_context_dry(n);
    unsetenv("DT_TOPOLOGY");
    unsetenv("DT_SMALL");
    expect(ctx != NULL, "a context of %d ranks", n);
    return ctx;
}

dt_context *context_of(int n) { return context_with(n, NULL, NULL); }

const dt_plan *plan_of(dt_mesh *mesh, const char *source, const char *target)
{
    const dt_plan *plan = dt_plan_create(dt_spec_parse(mesh, source), dt_spec_parse(mesh, target), DT_PLAN_BYTES);
    expect(plan != NULL, "%s -> %s: %s", source, target, dt_context_error(dt_mesh_context(mesh)));
    return plan;
}

bool try_plan(trial *t, dt_mesh *from, const char *source, dt_mesh *to, const char *target)
{
    dt_context *ctx = dt_mesh_context(from);
    bool read = oracle_read(&t->source, from, source) && oracle_read(&t->target, to, target);
    if (!expect(read, "%s -> %s: %s", source, target, dt_context_error(ctx))) return false;
    t->plan = dt_plan_create(t->source.spec, t->target.spec, DT_PLAN_BYTES);
    const char *wrong = oracle_try(t->plan, &t->source, &t->target, &t->count);
    bool right = expect(wrong == NULL, "%s on %s -> %s on %s %s %s", source, dt_mesh_text(from), target,
                        dt_mesh_text(to), wrong, dt_context_error(ctx));
    expect(dt_plan_check(t->plan) == DT_OK, "the plan's own check agrees: %s", dt_context_error(ctx));
    oracle_bound_of(&t->source, &t->target, &t->bound);
    return right;
}

void end_trial(trial *t)
{
    oracle_free(&t->source);
    oracle_free(&t->target);
}
