/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimisers: states beside parameters, and steps. A step is five lists: gradients are settled, parameters that lie
 * elsewhere than their states give their pieces, what decays is updated, what does not, and parameters take what has
 * come of their pieces. What an update is, rows of ops say (ops/into.c). Invariant: a step that fails before its
 * updates has written nothing. */
#include "train/optim.h"

#include <math.h>
#include <string.h>

#include "ops/write.h"

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static dt_status update_adamw(const dt_optim *o, double lr, double weight_decay, dt_tensor *const *w,
                              dt_tensor *const *const state[DTI_OPTIM_STATES], dt_tensor *const *grad, int n)
{
    return dt_adamw_into_list(w, state[DTI_OPTIM_FIRST], state[DTI_OPTIM_SECOND], grad, n,
                              &(dt_adamw_into_params){ .lr = lr, .weight_decay = weight_decay,
                                                       .beta1 = o->numbers.beta1, .beta2 = o->numbers.beta2,
                                                       .eps = o->numbers.eps, .step = o->steps + 1 });
}

static dt_status update_sgd(const dt_optim *o, double lr, double weight_decay, dt_tensor *const *w,
                            dt_tensor *const *const state[DTI_OPTIM_STATES], dt_tensor *const *grad, int n)
{
    return dt_sgd_into_list(w, o->kind->states[DTI_OPTIM_FIRST] ? state[DTI_OPTIM_FIRST] : NULL, grad, n,
                            &(dt_sgd_into_params){ .lr = lr, .weight_decay = weight_decay,
                                                   .momentum = o->numbers.momentum, .nesterov = o->numbers.nesterov });
}

static const dti_optim_kind adamw = { "adamw", { "master", "m", "v" }, update_adamw };
static const dti_optim_kind sgd = { "sgd", { "master" }, update_sgd };
static const dti_optim_kind momentum = { "sgd", { "master", "velocity" }, update_sgd };

/* ---- made -------------------------------------------------------------------------------------------------------- */

static void destroy(dti_handle *handle)
{
    dt_optim *o = (dt_optim *)(void *)handle;
    for (int i = 0; i < o->n; i++)
        for (int s = 0; s < DTI_OPTIM_STATES; s++) dti_tensor_destroy(o->slots[i].state[s]);
    dti_context_give(o->ctx, o->slots, (size_t)o->n * sizeof *o->slots);
    dti_context_give(o->ctx, o, sizeof *o);
}

/* A state belongs to the optimiser. */
static bool add_state(dti_optim_slot *slot, int state, dt_tensor *x)
{
    if (!x) return false;
    dti_scope_disown(&x->handle);
    slot->state[state] = x;
    return true;
}

static bool is_narrower(const dti_optim_slot *slot)
{
    return dt_spec_dtype(slot->param->spec) != dt_spec_dtype(slot->spec);
}

static bool fill(const dt_optim *o, dti_optim_slot *slot, dt_tensor *x)
{
    const dti_param *param = dti_param_of(x);
    *slot = (dti_optim_slot){ .param = x, .spec = dti_state_spec(x), .decays = true };
    if (!slot->spec) return false;
    if (!param->made)
        return dti_fail(o->ctx, DT_ERR_STATE, "dt_optim_%s: %s has no values; see dt_module_materialize", o->kind->name,
                        dt_param_path(x)), false;
    for (int s = DTI_OPTIM_FIRST; s < DTI_OPTIM_STATES; s++)
        if (o->kind->states[s] && !add_state(slot, s, dt_zeros(slot->spec))) return false;
    slot->writes = -1;             /* the first step makes the master's values                                     */
    return !is_narrower(slot) || add_state(slot, DTI_OPTIM_MASTER, dt_zeros(slot->spec));
}

static bool fill_all(dt_optim *o, dt_module *root, int n)
{
    dt_tensor **params = dti_context_borrow(o->ctx, (size_t)n * sizeof *params);
    o->slots = params ? dti_context_borrow_zeros(o->ctx, (size_t)n * sizeof *o->slots) : NULL;
    o->n = o->slots ? n : 0;
    if (o->slots) dt_module_params(root, NULL, params, n);
    bool done = o->slots != NULL;
    for (int i = 0; i < n && done; i++) done = fill(o, &o->slots[i], params[i]);
    dti_context_give(o->ctx, params, (size_t)n * sizeof *params);
    return done;
}

/* Both lists are in the order of the tree. */
static bool leave_out(dt_optim *o, dt_module *root, const char *pattern, dt_tensor **found)
{
    int n = dt_module_params(root, pattern, found, o->n), k = 0;
    for (int i = 0; i < o->n && k < n; i++)
        if (o->slots[i].param == found[k]) {
            o->slots[i].decays = false;
            k++;
        }
    if (n == 0) dti_fail(o->ctx, DT_ERR_ARG, "dt_optim_%s: no parameter matches \"%s\" of no_decay", o->kind->name,
                         pattern);
    return n > 0;
}

/* Patterns are separated by ","; blanks beside it do not count. */
static bool leave_out_all(dt_optim *o, dt_module *root, const char *no_decay)
{
    size_t bytes = strlen(no_decay) + 1, list = (size_t)o->n * sizeof(void *);
    char *text = dti_context_borrow(o->ctx, bytes), *at = text, *end;
    dt_tensor **found = dti_context_borrow(o->ctx, list);
    bool done = text && found;
    if (text) memcpy(text, no_decay, bytes);
    while (done && at) {
        at += strspn(at, " ");
        end = strchr(at, ',');
        char *next = end ? end + 1 : NULL;
        if (!end) end = at + strlen(at);
        while (end > at && end[-1] == ' ') end--;
        *end = 0;
        done = leave_out(o, root, at, found);
        at = next;
    }
    dti_context_give(o->ctx, text, bytes);
    dti_context_give(o->ctx, found, list);
    return done;
}

static dt_optim *optim_new(dt_module *root, const dti_optim_kind *kind, const dti_optim_numbers *numbers,
                           const char *no_decay)
{
    dt_optim *o = dti_context_borrow_zeros(root->ctx, sizeof *o);
    if (!o) return NULL;
    *o = (dt_optim){ .handle.destroy = destroy, .ctx = root->ctx, .kind = kind, .numbers = *numbers };
    dti_scope_own(o->ctx, &o->handle);
    bool done = fill_all(o, root, dt_module_params(root, NULL, NULL, 0));
    return done && (!no_decay || leave_out_all(o, root, no_decay)) && !dti_failed(o->ctx) ? o : NULL;
}

/* ---- fronts of kinds --------------------------------------------------------------------------------------------- */

typedef struct bounds { const char *name; double value, least, below; } bounds;

static bool check_numbers(dt_context *ctx, const dti_optim_kind *kind, const bounds *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        const bounds *b = &numbers[i];
        if (b->value >= b->least && b->value < b->below) continue;
        dti_fail(ctx, DT_ERR_ARG, "dt_optim_%s: expected %s of at least %g and below %g, got %g", kind->name, b->name,
                 b->least, b->below, b->value);
        return false;
    }
    return true;
}

static double or_else(double number, double otherwise) { return number != 0 ? number : otherwise; }

dt_optim *dt_optim_adamw(dt_module *root, const dt_adamw_params *params)
{
    dt_adamw_params p = params ? *params : (dt_adamw_params){ .beta1 = 0 };
    dti_optim_numbers numbers = { .beta1 = or_else(p.beta1, 0.9), .beta2 = or_else(p.beta2, 0.999),
                                  .eps = or_else(p.eps, 1e-8), .weight_decay = p.weight_decay };
    const bounds checked[] = { { "beta1", numbers.beta1, 0, 1 }, { "beta2", numbers.beta2, 0, 1 },
                               { "eps", numbers.eps, 0, INFINITY }, { "weight_decay", p.weight_decay, 0, INFINITY } };
    if (!root || dti_failed(root->ctx) || !check_numbers(root->ctx, &adamw, checked, DT_COUNT(checked))) return NULL;
    return optim_new(root, &adamw, &numbers, p.no_decay);
}

dt_optim *dt_optim_sgd(dt_module *root, const dt_sgd_params *params)
{
    dt_sgd_params p = params ? *params : (dt_sgd_params){ .momentum = 0 };
    dti_optim_numbers numbers = { .momentum = p.momentum, .nesterov = p.nesterov, .weight_decay = p.weight_decay };
    const bounds checked[] = { { "momentum", p.momentum, 0, 1 }, { "weight_decay", p.weight_decay, 0, INFINITY } };
    if (!root || dti_failed(root->ctx) || !check_numbers(root->ctx, &sgd, checked, DT_COUNT(checked))) return NULL;
    if (p.nesterov && p.momentum == 0)
        return dti_fail(root->ctx, DT_ERR_ARG, "dt_optim_sgd: nesterov needs a momentum above 0"), NULL;
    return optim_new(root, p.momentum > 0 ? &momentum : &sgd, &numbers, p.no_decay);
}

int64_t dt_optim_steps(const dt_optim *o) { return o ? o->steps : 0; }

void dti_optim_restored(dt_optim *o, int64_t steps)
{
    o->steps = steps;
    for (int i = 0; i < o->n; i++) o->slots[i].writes = o->slots[i].param->body->writes;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Columns of the parameters that have a gradient, those that decay first. */
typedef struct stepping {
    dt_optim *optim;
    int n, decaying, room;
    dti_optim_slot **slots;
    dt_tensor **params, **grads, **w, **state[DTI_OPTIM_STATES]; /* w: what is updated in the parameter's place      */
    dt_tensor **from, **to;        /* of a list that moves                                                         */
    const dt_spec **specs;
    void **block;
} stepping;

enum { COLUMNS = 7 + DTI_OPTIM_STATES };

static bool stepping_init(stepping *s, dt_optim *o)
{
    *s = (stepping){ .optim = o, .room = o->n };
    s->block = dti_context_borrow(o->ctx, COLUMNS * (size_t)o->n * sizeof(void *));
    if (!s->block) return false;
    void **at = s->block;
    dt_tensor ***columns[] = { &s->params, &s->grads,    &s->w,        &s->from,
                               &s->to,     &s->state[0], &s->state[1], &s->state[2] };
    for (int i = 0; i < DT_COUNT(columns); i++, at += o->n) *columns[i] = (dt_tensor **)at;
    s->slots = (dti_optim_slot **)at;
    s->specs = (const dt_spec **)(at + o->n);
    return true;
}

static void stepping_fini(stepping *s)
{
    dti_context_give(s->optim->ctx, s->block, COLUMNS * (size_t)s->room * sizeof(void *));
}

static void collect(stepping *s, bool decays)
{
    for (int i = 0; i < s->optim->n; i++) {
        dti_optim_slot *slot = &s->optim->slots[i];
        if (slot->decays != decays || !dt_grad(slot->param)) continue;
        s->slots[s->n] = slot;
        s->params[s->n] = slot->param;
        s->specs[s->n] = slot->spec;
        for (int k = 0; k < DTI_OPTIM_STATES; k++) s->state[k][s->n] = slot->state[k];
        s->n++;
    }
}

static bool check_owned(stepping *s)
{
    for (int i = 0; i < s->n; i++)
        if (!dti_write_may(s->params[i], "dt_optim_step", dt_param_path(s->params[i]), &s->params[i], 1)) return false;
    return true;
}

/* Masters of parameters that somebody else has written. */
static bool refresh_masters(stepping *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        dti_optim_slot *slot = s->slots[i];
        if (!slot->state[DTI_OPTIM_MASTER] || slot->param->body->writes == slot->writes) continue;
        s->to[n] = slot->state[DTI_OPTIM_MASTER];
        s->from[n++] = slot->param;
    }
    return dt_copy_into_list(s->to, s->from, n) == DT_OK;
}

bool dti_optim_settle(dt_optim *o)
{
    stepping s;
    int scope = dt_scope_push(o->ctx, DT_SCOPE_NO_GRAD);
    bool ready = scope && stepping_init(&s, o);
    for (; ready && s.n < o->n; s.n++) s.slots[s.n] = &o->slots[s.n];
    bool done = ready && refresh_masters(&s);
    for (int i = 0; i < o->n && done; i++) o->slots[i].writes = o->slots[i].param->body->writes;
    if (ready) stepping_fini(&s);
    if (scope) dt_scope_pop(o->ctx, scope, NULL);
    return done;
}

/* What is updated: the master, the parameter, or its pieces, which are here: nothing moves. */
static bool take_pieces(stepping *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        dt_tensor *master = s->slots[i]->state[DTI_OPTIM_MASTER];
        s->w[i] = master ? master : s->params[i];
        if (s->w[i]->spec == s->slots[i]->spec) continue;
        s->from[n] = s->params[i];
        s->specs[n++] = s->slots[i]->spec;
    }
    if (n && !dti_tensors_to(s->optim->ctx, s->from, s->specs, n, s->to)) return false;
    for (int i = 0, k = 0; i < s->n; i++)
        if (s->w[i]->spec != s->slots[i]->spec) s->w[i] = s->to[k++];
    return true;
}

static bool update(stepping *s, double lr)
{
    const dt_optim *o = s->optim;
    for (int k = 0; k < 2; k++) {
        int first = k ? s->decaying : 0, n = (k ? s->n : s->decaying) - first;
        dt_tensor *const *const state[DTI_OPTIM_STATES] = { s->state[0] + first, s->state[1] + first,
                                                            s->state[2] + first };
        double decay = k ? 0 : o->numbers.weight_decay;
        if (n && o->kind->update(o, lr, decay, s->w + first, state, s->grads + first, n)) return false;
    }
    return true;
}

/* Parameters that were not updated where they lie take it from there. */
static bool give_back(stepping *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->w[i] == s->params[i]) continue;
        s->to[n] = s->params[i];
        s->from[n++] = s->w[i];
    }
    if (dt_copy_into_list(s->to, s->from, n)) return false;
    for (int i = 0; i < s->n; i++) s->slots[i]->writes = s->params[i]->body->writes;
    return true;
}

static bool step(stepping *s, double lr)
{
    collect(s, true);
    s->decaying = s->n;
    collect(s, false);
    return check_owned(s) && dti_grads_settle(s->optim->ctx, s->params, s->specs, s->n, s->grads) && refresh_masters(s)
        && take_pieces(s) && update(s, lr) && give_back(s);
}

dt_status dt_optim_step(dt_optim *o, double lr)
{
    if (!o) return DT_ERR_ARG;
    if (dti_failed(o->ctx)) return o->ctx->status;
    if (!(lr >= 0 && lr < INFINITY))
        return dti_fail(o->ctx, DT_ERR_ARG, "dt_optim_step: expected a learning rate of at least 0, got %g", lr);
    stepping s;
    int scope = dt_scope_push(o->ctx, DT_SCOPE_NO_GRAD);
    bool ready = scope && stepping_init(&s, o), done = ready && step(&s, lr);
    if (ready) stepping_fini(&s);
    if (scope) dt_scope_pop(o->ctx, scope, NULL);
    if (!done) return o->ctx->status;
    o->steps++;
    return dt_context_step(o->ctx, o->ctx->step + (o->ctx->step < INT64_MAX), 0);
}
