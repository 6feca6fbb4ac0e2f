/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters before they have values: declared, tied, found, listed. Invariant: a parameter's tensor is no scope's, and
 * all handles of it share the body under which it is found. */
#include <math.h>
#include <string.h>

#include "core/shape.h"
#include "nn/tree.h"

/* ---- found ------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const dti_body *body) { return dti_hash_mix((uint64_t)(uintptr_t)body, 0); }

dti_param *dti_param_of(const dt_tensor *x)
{
    const dti_modules *modules = x && x->body ? dti_modules_of(x->ctx) : NULL;
    dti_param *param;
    if (!modules) return NULL;
    for (size_t at = dti_table_first(&modules->params, hash_of(x->body));
         (param = dti_table_value(&modules->params, hash_of(x->body), &at)) != NULL;)
        if (param->tensor->body == x->body) return param;
    return NULL;
}

const char *dt_param_path(const dt_tensor *x)
{
    dti_param *param = dti_param_of(x);
    if (!param || param->path) return param ? param->path : NULL;
    const char *above = dt_module_path(param->module);
    return param->path = above ? dti_path_join(x->ctx, above, param->name) : NULL;
}

/* ---- declared ---------------------------------------------------------------------------------------------------- */

static bool refuse(dt_module *module, dt_status status, const char *name, const char *what, int64_t number)
{
    dti_fail(module->ctx, status, "dt_module_param: %s of %s: %s %lld", name, dti_module_name(module), what,
             (long long)number);
    return false;
}

static int64_t or_one(int64_t unit) { return unit ? unit : 1; }

static bool divides(int64_t unit, const dt_shape *shape, int dim)
{
    return unit == 1 || (unit > 0 && dim < shape->n && shape->dim[dim] % unit == 0);
}

static bool check(dt_module *module, const char *name, const dt_shape *shape, const dt_param_params *p)
{
    if (!dti_name_free(module, "dt_module_param", name)) return false;
    if (shape->n < 0 || shape->n > DT_MAX_DIMS)
        return refuse(module, DT_ERR_SHAPE, name, "more dims than there may be,", shape->n);
    for (int d = 0; d < shape->n; d++)
        if (shape->dim[d] < 0) return refuse(module, DT_ERR_SHAPE, name, "a dim of size", shape->dim[d]);
    if ((unsigned)p->dtype > DT_F16)
        return dti_fail(module->ctx, DT_ERR_DTYPE, "dt_module_param: %s of %s: %s is no float", name,
                        dti_module_name(module), dt_dtype_text(p->dtype)), false;
    if ((unsigned)p->init >= DT_INIT_COUNT) return refuse(module, DT_ERR_ARG, name, "no dt_init,", p->init);
    if (!isfinite(p->scale))
        return dti_fail(module->ctx, DT_ERR_ARG, "dt_module_param: %s of %s: scale %g", name, dti_module_name(module),
                        p->scale), false;
    if (!divides(or_one(p->unit), shape, 0))
        return refuse(module, DT_ERR_SHAPE, name, "dim 0 is no number of units of", p->unit);
    if (!divides(or_one(p->in_unit), shape, 1))
        return refuse(module, DT_ERR_SHAPE, name, "dim 1 is no number of units of", p->in_unit);
    return true;
}

static dt_tensor *new_tensor(dt_module *module, dt_shape shape, dt_dtype dtype)
{
    const dt_spec *spec = dt_spec_create(module->mesh, dtype ? dtype : DT_F32, shape, NULL);
    dt_tensor *x = spec ? dti_tensor_new(spec, NULL) : NULL;
    if (!x || !dti_tensor_body(x)) return NULL;
    x->unmade = true;
    return x;
}

static bool enter(dti_param *param)
{
    dti_modules *modules = dti_modules_of(param->tensor->ctx);
    if (modules && dti_table_add(&modules->params, hash_of(param->tensor->body), param)) return true;
    return dti_fail(param->tensor->ctx, DT_ERR_MEMORY, "no memory for parameter %s", param->name), false;
}

static void append(dt_module *module, dti_param *param)
{
    if (module->last_param) module->last_param->next = param;
    else module->params = param;
    module->last_param = param;
}

dt_tensor *dt_module_param(dt_module *module, const char *name, dt_shape shape, const dt_param_params *params)
{
    static const dt_param_params none = { 0 };
    const dt_param_params *p = params ? params : &none;
    if (!module || dti_failed(module->ctx) || !check(module, name, &shape, p)) return NULL;
    dt_tensor *tensor = new_tensor(module, shape, p->dtype);
    char *copy = tensor ? dti_text_new(module->ctx, name) : NULL;
    dti_param *param = copy ? dti_context_borrow(module->ctx, sizeof *param) : NULL;
    if (!param) return NULL;
    *param = (dti_param){ .module = module, .name = copy, .tensor = tensor, .init = p->init,
                          .scale = p->scale != 0 ? p->scale : 1, .unit = or_one(p->unit),
                          .in_unit = or_one(p->in_unit) };
    if (!enter(param)) return NULL;
    dti_scope_disown(&tensor->handle);
    append(module, param);
    return tensor;
}

dt_tensor *dt_module_tie(dt_module *module, const char *name, dt_tensor *x)
{
    if (!module || dti_failed(module->ctx) || !dti_name_free(module, "dt_module_tie", name)) return NULL;
    dti_param *param = x && x->ctx == module->ctx ? dti_param_of(x) : NULL;
    if (!param)
        return dti_fail(module->ctx, DT_ERR_ARG, "dt_module_tie: %s of %s: expected a parameter", name,
                        dti_module_name(module)), NULL;
    char *copy = dti_text_new(module->ctx, name);
    dti_tie *tie = copy ? dti_context_borrow(module->ctx, sizeof *tie) : NULL;
    if (!tie) return NULL;
    *tie = (dti_tie){ module->ties, copy, param, param->module->id };
    module->ties = tie;
    return x;
}

void dti_param_store(dti_param *param, const dt_spec *spec)
{
    if (!param->made) param->tensor->spec = spec;
}

/* ---- ended ------------------------------------------------------------------------------------------------------- */

static void end(dti_param *param)
{
    dt_context *ctx = param->tensor->ctx;
    dti_table_remove(&dti_modules_of(ctx)->params, hash_of(param->tensor->body), param);
    dti_tensor_destroy(param->tensor);
    dti_text_end(ctx, param->name);
    dti_text_end(ctx, param->path);
    dti_context_give(ctx, param, sizeof *param);
}

void dti_params_end(dt_module *module)
{
    while (module->params) {
        dti_param *param = module->params;
        module->params = param->next;
        end(param);
    }
    while (module->ties) {
        dti_tie *tie = module->ties;
        module->ties = tie->next;
        dti_text_end(module->ctx, tie->name);
        dti_context_give(module->ctx, tie, sizeof *tie);
    }
}

void dti_params_forget_paths(dt_module *module)
{
    for (dti_param *param = module->params; param; param = param->next) {
        dti_text_end(module->ctx, param->path);
        param->path = NULL;
    }
}

/* ---- listed ------------------------------------------------------------------------------------------------------ */

int dt_module_params(dt_module *root, const char *pattern, dt_tensor **params, int max)
{
    int n = 0;
    if (!root || dti_failed(root->ctx) || (pattern && !dti_pattern_ok(root, "dt_module_params", pattern))) return 0;
    for (dt_module *at = root; at; at = dti_module_next(root, at))
        for (dti_param *param = at->params; param; param = param->next) {
            const char *path = pattern ? dti_path_below(root, dt_param_path(param->tensor)) : "";
            if (!path) return 0;
            if (pattern && !dti_path_matches(path, pattern)) continue;
            if (params && n < max) params[n] = param->tensor;
            n++;
        }
    return n;
}
