/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of modules. Invariant: however a call ends, its scope is closed, what it gathered is given up, and the context
 * says again what it said before about whose function runs. */
#include "nn/tree.h"

enum { MAX_USES = 16 };

/* What a call gathers: the group that the module is, and those that its parameters are in, which have mostly been
 * gathered by then by the module that is the group. */
typedef struct gathered { dti_use *use[MAX_USES]; int n; } gathered;

static bool ready(dt_module *m, const char *name, bool made)
{
    if (made) return true;
    dti_fail(m->ctx, DT_ERR_STATE, "parameter %s has no values yet; see dt_module_materialize", name);
    return false;
}

static bool tie_ready(dt_module *m, const dti_tie *tie)
{
    if (dti_module_of(m->ctx, tie->owner)) return ready(m, tie->name, tie->param->made);
    dti_fail(m->ctx, DT_ERR_STATE, "the module whose parameter is tied as %s has ended", tie->name);
    return false;
}

static bool check_params(dt_module *m)
{
    for (const dti_param *param = m->params; param; param = param->next)
        if (!ready(m, param->name, param->made)) return false;
    for (const dti_tie *tie = m->ties; tie; tie = tie->next)
        if (!tie_ready(m, tie)) return false;
    return true;
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static bool gather(dt_context *ctx, gathered *g, dti_use *use)
{
    for (int i = 0; i < g->n; i++)
        if (g->use[i] == use) return true;
    if (!use) return true;
    if (g->n == MAX_USES)
        return dti_fail(ctx, DT_ERR_STATE, "parameters of more than %d groups in one module", MAX_USES), false;
    if (!dti_use_begin(use)) return false;
    g->use[g->n++] = use;
    return true;
}

static bool gather_all(dt_module *m, gathered *g)
{
    bool going = gather(m->ctx, g, m->use);
    for (const dti_param *param = m->params; param && going; param = param->next)
        going = gather(m->ctx, g, dti_param_use(param));
    for (const dti_tie *tie = m->ties; tie && going; tie = tie->next)
        going = gather(m->ctx, g, dti_param_use(tie->param));
    return going;
}

static dt_tensor *give_up(gathered *g, dt_tensor *out)
{
    while (g->n) out = dti_use_end(g->use[--g->n], out);
    return out;
}

/* ---- hooks and forward ------------------------------------------------------------------------------------------- */

static dt_tensor *from_hook(dt_module *m, dt_tensor *x)
{
    if (!x && !dti_failed(m->ctx)) dti_fail(m->ctx, DT_ERR_ARG, "a hook returned no tensor");
    return dti_failed(m->ctx) ? NULL : x;
}

static bool hook_inputs(dt_module *m, dt_tensor **in, int n)
{
    for (const dti_module_hook *hook = m->hooks; hook; hook = hook->next)
        for (int i = 0; i < n && hook->input; i++)
            if (in[i] && !(in[i] = from_hook(m, hook->input(m, i, in[i], hook->arg)))) return false;
    return true;
}

static dt_tensor *hook_output(dt_module *m, dt_tensor *out)
{
    for (const dti_module_hook *hook = m->hooks; hook && out; hook = hook->next)
        if (hook->output) out = from_hook(m, hook->output(m, out, hook->arg));
    return out;
}

static dt_tensor *forward(dt_module *m, dt_tensor *const *in)
{
    int scopes = m->ctx->scope_count, own = m->ctx->scopes[scopes - 1].name;
    dt_tensor *out = m->type->forward(m, in);
    if (m->ctx->scope_count < scopes || m->ctx->scopes[scopes - 1].name != own)
        dti_fail(m->ctx, DT_ERR_STATE, "forward has ended a scope that it did not open");
    if (!out && !dti_failed(m->ctx)) dti_fail(m->ctx, DT_ERR_ARG, "forward returned no tensor");
    return dti_failed(m->ctx) ? NULL : out;
}

static int input_count(const dt_module *m) { return m->type->inputs ? m->type->inputs : 1; }

static dt_tensor *run(dt_module *m, dt_tensor *const *in)
{
    dt_tensor *x[DT_MAX_MODULE_INPUTS], *out = NULL;
    const char *outside = m->ctx->inside;
    gathered g = { .n = 0 };
    m->ctx->inside = dti_module_name(m);
    for (int i = 0; i < input_count(m); i++) x[i] = in[i];
    if (check_params(m) && gather_all(m, &g) && hook_inputs(m, x, input_count(m))) out = hook_output(m, forward(m, x));
    out = give_up(&g, out);
    m->ctx->inside = outside;
    return out;
}

/* What is known of a module until it is run again: its id, and whether it was training. */
static void *name_of(const dt_module *m) { return (void *)(uintptr_t)(m->id * 2 + m->training); }

/* The tape may live longer than the module. */
static dt_tensor *run_again(dt_tensor *const *in, void *arg)
{
    dt_context *ctx = in[0]->ctx;
    dt_module *m = dti_module_of(ctx, (uint64_t)(uintptr_t)arg / 2);
    if (m && name_of(m) == arg) return run(m, in);
    if (m)
        dti_fail(ctx, DT_ERR_STATE, "%s was%s training when it ran that backward runs again, and is%s now",
                 dti_module_name(m), m->training ? " not" : "", m->training ? "" : " not");
    else dti_fail(ctx, DT_ERR_STATE, "a module that is to be recomputed has ended");
    return NULL;
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static bool check_inputs(dt_module *m, dt_tensor *const *in, int n)
{
    const char *name = dti_module_name(m);
    if (n != input_count(m))
        return dti_fail(m->ctx, DT_ERR_ARG, "%s: %d inputs, expected %d", name, n, input_count(m)), false;
    if (!in || !in[0]) return dti_fail(m->ctx, DT_ERR_ARG, "%s: input 0 of %d is NULL", name, n), false;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->ctx != m->ctx)
            return dti_fail(m->ctx, DT_ERR_ARG, "%s: input %d is of another context", name, i), false;
    return true;
}

static dt_context *context_of(dt_tensor *const *in, int n)
{
    for (int i = 0; in && i < n; i++)
        if (in[i]) return in[i]->ctx;
    return NULL;
}

dt_tensor *dt_module_call_n(dt_module *m, dt_tensor *const *in, int n)
{
    dt_context *ctx = m ? m->ctx : context_of(in, n);
    if (dti_failed(ctx)) return NULL;
    if (!m) return dti_fail(ctx, DT_ERR_ARG, "dt_module_call: no module for %d inputs", n), NULL;
    if (!check_inputs(m, in, n)) return NULL;
    int scope = dt_scope_push(ctx, 0);
    if (!scope) return NULL;
    return dt_scope_pop(ctx, scope, m->recompute ? dt_recompute(run_again, name_of(m), in, n) : run(m, in));
}

dt_tensor *dt_module_call(dt_module *module, dt_tensor *x) { return dt_module_call_n(module, &x, 1); }
