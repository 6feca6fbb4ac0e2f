/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of modules: made, joined, walked, asked, ended. Calls are in call.c, parameters in param.c. Invariant: a
 * module is a handle of a scope, or has a parent, with which it ends. */
#include <string.h>

#include "nn/tree.h"

/* ---- of a context ------------------------------------------------------------------------------------------------ */

static void modules_fini(void *state)
{
    dti_modules *modules = state;
    dti_table_fini(&modules->params);
    dti_table_fini(&modules->modules);
}

dti_modules *dti_modules_of(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_MODULE, sizeof(dti_modules), modules_fini);
}

static uint64_t hash_of(uint64_t id) { return dti_hash_mix(id, 0); }

dt_module *dti_module_of(dt_context *ctx, uint64_t id)
{
    const dti_modules *modules = dti_modules_of(ctx);
    dt_module *module;
    if (!modules) return NULL;
    for (size_t at = dti_table_first(&modules->modules, hash_of(id));
         (module = dti_table_value(&modules->modules, hash_of(id), &at)) != NULL;)
        if (module->id == id) return module;
    return NULL;
}

static bool enter(dt_module *module)
{
    dti_modules *modules = dti_modules_of(module->ctx);
    if (!modules) return false;
    module->id = ++modules->last_id;
    if (dti_table_add(&modules->modules, hash_of(module->id), module)) return true;
    dti_fail(module->ctx, DT_ERR_MEMORY, "no memory for module %s", module->type->name);
    return false;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

char *dti_text_new(dt_context *ctx, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = dti_context_borrow(ctx, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void dti_text_end(dt_context *ctx, char *text)
{
    if (text) dti_context_give(ctx, text, strlen(text) + 1);
}

char *dti_path_join(dt_context *ctx, const char *path, const char *name)
{
    size_t n = strlen(path), m = strlen(name), dot = n > 0;
    char *joined = dti_context_borrow(ctx, n + dot + m + 1);
    if (!joined) return NULL;
    memcpy(joined, path, n);
    if (dot) joined[n] = '.';
    memcpy(joined + n + dot, name, m + 1);
    return joined;
}

/* ---- made and ended ---------------------------------------------------------------------------------------------- */

static void end_hooks(dt_module *module)
{
    while (module->hooks) {
        dti_module_hook *hook = module->hooks;
        module->hooks = hook->next;
        if (hook->release) hook->release(hook->arg);
        dti_context_give(module->ctx, hook, sizeof *hook);
    }
}

/* What the author made goes first, for it may look at all the rest. */
static void end(dt_module *module)
{
    dt_context *ctx = module->ctx;
    if (module->type->fini) module->type->fini(module);
    while (module->first) {
        dt_module *child = module->first;
        module->first = child->next;
        end(child);
    }
    end_hooks(module);
    if (module->use) dti_use_destroy(module->use);
    dti_params_end(module);
    dti_table_remove(&dti_modules_of(ctx)->modules, hash_of(module->id), module);
    dti_text_end(ctx, module->name);
    dti_text_end(ctx, module->path);
    if (module->state) dti_context_give(ctx, module->state, module->type->state_bytes);
    dti_context_give(ctx, module, sizeof *module);
}

static void destroy(dti_handle *handle) { end((dt_module *)(void *)handle); }

static bool check_type(dt_context *ctx, const dt_module_type *type)
{
    const char *lack = !type ? "no type" : !type->name ? "a type without a name" : !type->forward ? "no forward" : NULL;
    if (lack) return dti_fail(ctx, DT_ERR_ARG, "dt_module_create: %s", lack), false;
    if (type->inputs >= 0 && type->inputs <= DT_MAX_MODULE_INPUTS) return true;
    dti_fail(ctx, DT_ERR_ARG, "dt_module_create: %s takes %d inputs, expected 1 to %d", type->name, type->inputs,
             DT_MAX_MODULE_INPUTS);
    return false;
}

static dt_module *new_module(dt_mesh *mesh, const dt_module_type *type)
{
    dt_context *ctx = mesh->ctx;
    dt_module *module = dti_context_borrow_zeros(ctx, sizeof *module);
    if (!module) return NULL;
    *module = (dt_module){ .handle.destroy = destroy, .ctx = ctx, .mesh = mesh, .type = type, .training = true };
    if (type->state_bytes) module->state = dti_context_borrow_zeros(ctx, type->state_bytes);
    if ((module->state || !type->state_bytes) && enter(module)) return module;
    if (module->state) dti_context_give(ctx, module->state, type->state_bytes);
    dti_context_give(ctx, module, sizeof *module);
    return NULL;
}

dt_module *dt_module_create(dt_mesh *mesh, const dt_module_type *type, const void *params)
{
    dt_context *ctx = mesh ? mesh->ctx : NULL;
    if (dti_failed(ctx) || !check_type(ctx, type)) return NULL;
    dt_module *module = new_module(mesh, type);
    if (!module) return NULL;
    dti_scope_own(ctx, &module->handle);
    if (type->init) type->init(module, params);
    return dti_failed(ctx) ? NULL : module;
}

dt_mesh *dt_module_mesh(const dt_module *module) { return module ? module->mesh : NULL; }
dt_context *dt_module_context(const dt_module *module) { return module ? module->ctx : NULL; }
void *dt_module_state(const dt_module *module) { return module ? module->state : NULL; }

/* ---- joined ------------------------------------------------------------------------------------------------------ */

static dt_module *child_of(const dt_module *module, const char *name, size_t n)
{
    dt_module *child = module->first;
    while (child && (strncmp(child->name, name, n) != 0 || child->name[n])) child = child->next;
    return child;
}

static bool is_taken(const dt_module *module, const char *name)
{
    for (const dti_param *param = module->params; param; param = param->next)
        if (strcmp(param->name, name) == 0) return true;
    for (const dti_tie *tie = module->ties; tie; tie = tie->next)
        if (strcmp(tie->name, name) == 0) return true;
    return child_of(module, name, strlen(name)) != NULL;
}

bool dti_name_free(dt_module *module, const char *who, const char *name)
{
    if (!dti_name_ok(name))
        return dti_fail(module->ctx, DT_ERR_ARG, "%s: \"%s\" in %s: expected letters, digits, _ or -", who,
                        name ? name : "", dti_module_name(module)), false;
    if (!is_taken(module, name)) return true;
    dti_fail(module->ctx, DT_ERR_ARG, "%s: %s has a \"%s\" already", who, dti_module_name(module), name);
    return false;
}

static bool may_join(dt_module *parent, const char *name, dt_module *child)
{
    static const char who[] = "dt_module_add";
    if (child->ctx != parent->ctx)
        return dti_fail(parent->ctx, DT_ERR_ARG, "%s: %s of another context", who, name ? name : ""), false;
    if (!dti_name_free(parent, who, name)) return false;
    if (child->parent)
        return dti_fail(parent->ctx, DT_ERR_STATE, "%s: %s is %s of %s already", who, name, child->name,
                        dti_module_name(child->parent)), false;
    for (const dt_module *above = parent; above; above = above->parent)
        if (above == child)
            return dti_fail(parent->ctx, DT_ERR_STATE, "%s: %s of %s would be within itself", who, name,
                            dti_module_name(parent)), false;
    return true;
}

static void forget_paths(dt_module *module)
{
    for (dt_module *at = module; at; at = dti_module_next(module, at)) {
        dti_text_end(at->ctx, at->path);
        at->path = NULL;
        dti_params_forget_paths(at);
    }
}

static void join(dt_module *parent, dt_module *child)
{
    dti_scope_disown(&child->handle);
    forget_paths(child);
    child->parent = parent;
    if (parent->last) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
}

dt_module *dt_module_add(dt_module *parent, const char *name, dt_module *child)
{
    dt_context *ctx = parent ? parent->ctx : child ? child->ctx : NULL;
    if (dti_failed(ctx)) return NULL;
    if (!parent || !child)
        return dti_fail(ctx, DT_ERR_ARG, "dt_module_add: no %s for \"%s\" of %s", parent ? "child" : "parent",
                        name ? name : "", parent ? dti_module_name(parent) : "nothing"), NULL;
    if (!may_join(parent, name, child)) return NULL;
    child->name = dti_text_new(ctx, name);
    if (!child->name) return NULL;
    join(parent, child);
    return child;
}

/* ---- walked ------------------------------------------------------------------------------------------------------ */

dt_module *dti_module_next(const dt_module *root, dt_module *module)
{
    if (module->first) return module->first;
    while (module != root && !module->next) module = module->parent;
    return module == root ? NULL : module->next;
}

const char *dt_module_path(const dt_module *module)
{
    dt_module *m = (dt_module *)(uintptr_t)module;
    if (!m) return NULL;
    if (!m->parent) return "";
    const char *above = m->path ? "" : dt_module_path(m->parent);
    if (!m->path && above) m->path = dti_path_join(m->ctx, above, m->name);
    return m->path;
}

const char *dti_module_name(const dt_module *module)
{
    const char *path = module->parent ? dt_module_path(module) : NULL;
    return path ? path : module->type->name;
}

const char *dti_path_below(const dt_module *root, const char *path)
{
    const char *above = path ? dt_module_path(root) : NULL;
    size_t n = above ? strlen(above) : 0;
    return path ? path + n + (n && path[n]) : NULL;
}

/* ---- asked ------------------------------------------------------------------------------------------------------- */

bool dti_pattern_ok(const dt_module *root, const char *who, const char *pattern)
{
    int column;
    if (!pattern)
        return dti_fail(root->ctx, DT_ERR_ARG, "%s: no pattern for %s", who, dti_module_name(root)), false;
    const char *fault = dti_pattern_fault(pattern, &column);
    if (!fault) return true;
    dti_fail(root->ctx, DT_ERR_PARSE, "%s: pattern \"%s\", column %d: %s (%s)", who, pattern, column, fault,
             dti_module_name(root));
    return false;
}

dt_module *dt_module_find(dt_module *root, const char *path)
{
    while (root && path && *path) {
        size_t n = strcspn(path, ".");
        root = child_of(root, path, n);
        path += n + (path[n] == '.' && path[n + 1]);
        if (root && *path == '.') return NULL;
    }
    return root;
}

int dt_module_list(dt_module *root, const char *pattern, dt_module **modules, int max)
{
    int n = 0;
    if (!root || dti_failed(root->ctx) || (pattern && !dti_pattern_ok(root, "dt_module_list", pattern))) return 0;
    for (dt_module *at = root; at; at = dti_module_next(root, at)) {
        const char *path = pattern ? dti_path_below(root, dt_module_path(at)) : "";
        if (!path) return 0;
        if (pattern && !dti_path_matches(path, pattern)) continue;
        if (modules && n < max) modules[n] = at;
        n++;
    }
    return n;
}

/* ---- set --------------------------------------------------------------------------------------------------------- */

dt_status dti_module_hook_owned(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg,
                                void (*release)(void *arg))
{
    dt_context *ctx = module->ctx;
    dti_module_hook *hook = dti_failed(ctx) ? NULL : dti_context_borrow(ctx, sizeof *hook), **end_at = &module->hooks;
    if (!hook) {
        if (release) release(arg);
        return ctx->status;
    }
    while (*end_at) end_at = &(*end_at)->next;
    *hook = (dti_module_hook){ .input = input, .output = output, .arg = arg, .release = release };
    *end_at = hook;
    return DT_OK;
}

dt_status dt_module_hook(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg)
{
    return module ? dti_module_hook_owned(module, input, output, arg, NULL) : DT_ERR_ARG;
}

dt_status dt_module_train(dt_module *root, bool on)
{
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx)) return root->ctx->status;
    for (dt_module *at = root; at; at = dti_module_next(root, at)) at->training = on;
    return DT_OK;
}

bool dt_module_is_training(const dt_module *module) { return module && module->training; }

dt_status dt_module_recompute(dt_module *root, const char *pattern)
{
    static const char who[] = "dt_module_recompute";
    int n = 0;
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx) || !dti_pattern_ok(root, who, pattern)) return root->ctx->status;
    for (dt_module *at = root; at; at = dti_module_next(root, at)) {
        const char *path = dti_path_below(root, dt_module_path(at));
        if (!path || !dti_path_matches(path, pattern)) continue;
        at->recompute = true;
        n++;
    }
    if (n == 0)
        dti_fail(root->ctx, DT_ERR_ARG, "%s: nothing in %s matches \"%s\"", who, dti_module_name(root), pattern);
    return dt_context_status(root->ctx);
}
