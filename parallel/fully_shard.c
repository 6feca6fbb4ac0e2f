/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of parameters that are stored in pieces. What follows of that is derived (param.c), gathered by uses
 * (autograd/use.h) and stepped by optimisers; here groups are told apart, no more. */
#include <dtensor/parallel.h>

#include <string.h>

#include "mesh/mesh.h"
#include "parallel/param.h"

static bool is_below(const dt_module *module, const dt_module *root)
{
    while (module && module != root) module = module->parent;
    return module != NULL;
}

/* A group within a group keeps what it has. */
static bool stays(const dti_param *param, const dt_module *group)
{
    return param->group && param->group != group && is_below(param->group, group);
}

static bool may_join(const dti_param *param, const dt_module *group, const dti_shard *shard)
{
    dt_context *ctx = group->ctx;
    if (stays(param, group)) return true;
    if (param->made) return dti_fail(ctx, DT_ERR_STATE, "dt_fully_shard: %s has values", param->name), false;
    if (param->by_hand)
        return dti_fail(ctx, DT_ERR_STATE, "dt_fully_shard: dt_place has said how %s is used", param->name), false;
    return dti_param_may(param, shard);
}

static bool join(dti_param *param, dt_module *group)
{
    if (stays(param, group)) return true;
    param->group = group;
    return dti_param_derive(param);
}

typedef struct sharding { const char *dim; const dt_fully_shard_params *with; } sharding;
typedef bool (*module_fn)(dt_module *module, const sharding *s);

static dti_shard shard_for(const dt_module *module, const sharding *s)
{
    int m = dti_mesh_dim_index(module->mesh, (dti_word){ s->dim, (int)strlen(s->dim) });
    return (dti_shard){ m < 0 ? NULL : module->mesh->dims[m].name, s->with->compute, s->with->zero };
}

static bool may_be_group(dt_module *module, const sharding *s)
{
    if (module->shard.dim) return dti_fail(module->ctx, DT_ERR_STATE, "dt_fully_shard: it is a group"), false;
    dti_shard shard = shard_for(module, s);
    if (!shard.dim) return false;
    for (dt_module *at = module; at; at = dti_module_next(module, at))
        for (const dti_param *param = at->params; param; param = param->next)
            if (!may_join(param, module, &shard)) return false;
    return true;
}

static bool make_group(dt_module *module, const sharding *s)
{
    const dt_fully_shard_params *p = s->with;
    module->shard = shard_for(module, s);
    module->use_params = (dti_use_params){ .reduce = p->reduce, .keep = p->keep_gathered,
                                           .prefetch = p->prefetch ? p->prefetch : 1 };
    for (dt_module *at = module; at; at = dti_module_next(module, at))
        for (dti_param *param = at->params; param; param = param->next)
            if (!join(param, module)) return false;
    return true;
}

static bool is_float(dt_dtype dtype) { return (unsigned)dtype <= DT_F16; }

static bool check(dt_module *root, const char *pattern, const char *dim, const dt_fully_shard_params *p)
{
    if (!dim)
        return dti_fail(root->ctx, DT_ERR_ARG, "dt_fully_shard: no dim of mesh %s", dt_mesh_text(root->mesh)), false;
    if (dti_mesh_dim_index(root->mesh, (dti_word){ dim, (int)strlen(dim) }) < 0) return false;
    if (p->zero < 0 || p->zero > 3)
        return dti_fail(root->ctx, DT_ERR_ARG, "dt_fully_shard: expected zero 0 to 3, got %d", p->zero), false;
    if (p->prefetch < -1)
        return dti_fail(root->ctx, DT_ERR_ARG, "dt_fully_shard: expected prefetch from -1 on, got %d", p->prefetch),
               false;
    if (!is_float(p->compute) || !is_float(p->reduce))
        return dti_fail(root->ctx, DT_ERR_DTYPE, "dt_fully_shard: compute and reduce are dtypes of floats"), false;
    return dti_pattern_ok(root, "dt_fully_shard", pattern);
}

/* Every module that a pattern names. Returns how many; -1: the error. */
static int for_matches(dt_module *root, const char *pattern, module_fn fn, const sharding *s)
{
    dt_context *ctx = root->ctx;
    int n = 0;
    for (dt_module *at = root; at; at = dti_module_next(root, at)) {
        const char *path = dti_path_below(root, dt_module_path(at)), *outside = ctx->inside;
        if (!path || !dti_path_matches(path, pattern)) continue;
        ctx->inside = dti_module_name(at);
        bool done = fn(at, s);
        ctx->inside = outside;
        if (!done) return -1;
        n++;
    }
    return n;
}

/* All are looked at before any is changed. */
dt_status dt_fully_shard(dt_module *root, const char *pattern, const char *dim, const dt_fully_shard_params *params)
{
    static const dt_fully_shard_params none = { 0 };
    sharding s = { dim, params ? params : &none };
    if (!root) return DT_ERR_ARG;
    dt_context *ctx = root->ctx;
    if (dti_failed(ctx) || !check(root, pattern, dim, s.with)) return ctx->status;
    int n = for_matches(root, pattern, may_be_group, &s);
    if (n > 0) for_matches(root, pattern, make_group, &s);
    if (n == 0)
        dti_fail(ctx, DT_ERR_ARG, "dt_fully_shard: nothing in %s matches \"%s\"", dti_module_name(root), pattern);
    return ctx->status;
}
