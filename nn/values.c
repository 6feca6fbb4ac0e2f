/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters get their values, directly as they are placed. Invariant: an element's value is made of the seed, the
 * parameter's path and the element's index in the whole tensor, in f64, and rounded once. */
#include <math.h>

#include "autograd/tape.h"
#include "core/number.h"
#include "nn/tree.h"
#include "tensor/random.h"

/* ---- made -------------------------------------------------------------------------------------------------------- */

static bool fill_zeros(dti_param *param, void *arg)
{
    const dti_storage *part = param->tensor->storage;
    dt_dtype dtype = dt_spec_dtype(param->tensor->spec);
    (void)arg;
    if (part) dti_numbers_fill(dtype, 0, part->bytes, (int64_t)(part->n / dt_dtype_bytes(dtype)));
    return true;
}

/* fill sees a tensor like any other. */
static bool make(dti_param *param, dti_param_fill_fn fill, void *arg)
{
    dt_tensor *x = param->tensor;
    if (!dti_part_new(x->spec, &x->storage)) return false;
    x->unmade = false;
    param->made = (fill ? fill : fill_zeros)(param, arg) && !dti_failed(x->ctx) && dt_require_grad(x);
    if (param->made) return true;
    dti_storage_release(x->storage);
    x->storage = NULL;
    x->unmade = true;
    return false;
}

static dt_module *group_of(const dti_param *param) { return param->group ? param->group : param->module; }

dti_use *dti_param_use(const dti_param *param) { return param->in_use ? group_of(param)->use : NULL; }

/* One that is used as it is stored, and whose gradient stays as it comes, needs none. */
static bool join_group(dti_param *param)
{
    dt_module *group = group_of(param);
    if (param->in_use || (!param->used && !param->grad)) return true;
    if (!group->use) group->use = dti_use_new(group->ctx, &group->use_params);
    const dt_spec *used = param->used ? param->used : param->tensor->spec;
    param->in_use = group->use && dti_use_add(group->use, param->tensor, used, param->grad);
    return param->in_use;
}

bool dti_module_make(dt_module *root, dti_param_fill_fn fill, void *arg)
{
    for (dt_module *at = root; at; at = dti_module_next(root, at))
        for (dti_param *param = at->params; param; param = param->next)
            if (!param->made && !make(param, fill, arg)) return false;
    for (dt_module *at = root; at; at = dti_module_next(root, at))
        for (dti_param *param = at->params; param; param = param->next)
            if (!join_group(param)) return false;
    return !dti_failed(root->ctx);
}

/* ---- values by index --------------------------------------------------------------------------------------------- */

typedef struct drawing {
    uint64_t seed, stream;
    double deviation;
    dt_dtype dtype;
    char *part;
} drawing;

enum { CHUNK = 256 };

static void draw_run(const dti_part_run *run, void *arg)
{
    const drawing *d = arg;
    double values[CHUNK];
    size_t size = dt_dtype_bytes(d->dtype);
    for (int64_t at = 0, n; at < run->count; at += n) {
        n = run->count - at < CHUNK ? run->count - at : CHUNK;
        dti_random_normal(DT_F64, d->seed, d->stream, run->global + at, n, values);
        for (int64_t i = 0; i < n; i++) values[i] *= d->deviation;
        dti_numbers_convert(DT_F64, values, d->dtype, d->part + (run->local + at) * (int64_t)size, n);
    }
}

/* Of bytes, one by one: the same on every machine. */
static uint64_t stream_of(const char *path)
{
    uint64_t stream = 0;
    for (; *path; path++) stream = dti_hash_mix(stream, (unsigned char)*path);
    return stream;
}

static double fan_in(const dt_shape *shape)
{
    int64_t n = shape->n > 1 ? shape->dim[1] : shape->n ? shape->dim[0] : 1;
    return n > 0 ? (double)n : 1;
}

static bool fill_normal(const dti_param *param, uint64_t seed, double deviation)
{
    dt_tensor *x = param->tensor;
    const char *path = dt_param_path(x);
    if (!path) return false;
    drawing d = { seed, stream_of(path), deviation, dt_spec_dtype(x->spec), x->storage->bytes };
    return dti_part_runs(x->spec, x->spec->mesh->rank, draw_run, &d);
}

static bool fill_one(dti_param *param, double value)
{
    const dt_tensor *x = param->tensor;
    dti_numbers_fill(dt_spec_dtype(x->spec), value, x->storage->bytes, x->spec->local_count);
    return true;
}

/* Of a partial parameter only the first rank has the value. */
static bool fill(dti_param *param, void *arg)
{
    dt_tensor *x = param->tensor;
    uint64_t seed = *(const uint64_t *)arg;
    if (!x->storage) return true;
    if (!dti_part_keeps_value(x->spec)) return dti_part_identity(x->spec, x->storage), true;
    switch (param->init) {
    case DT_INIT_FAN_IN: return fill_normal(param, seed, param->scale / sqrt(fan_in(&x->spec->shape)));
    case DT_INIT_NORMAL: return fill_normal(param, seed, param->scale);
    case DT_INIT_ONES: return fill_one(param, param->scale);
    default: return fill_one(param, 0);
    }
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

dt_status dt_module_materialize(dt_module *root, uint64_t seed)
{
    if (!root) return DT_ERR_ARG;
    if (!dti_failed(root->ctx)) dti_module_make(root, fill, &seed);
    return dt_context_status(root->ctx);
}

dt_status dt_module_zero_grad(dt_module *root)
{
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx)) return root->ctx->status;
    for (dt_module *at = root; at; at = dti_module_next(root, at))
        for (const dti_param *param = at->params; param; param = param->next) dti_grad_drop(param->tensor);
    return DT_OK;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

uint64_t dt_module_key(const dt_module *module, uint64_t n)
{
    const char *path = module ? dt_module_path(module) : NULL;
    if (!path) return 0;
    uint64_t key = dti_hash_mix(stream_of(path), (uint64_t)module->ctx->step);
    return dti_hash_mix(dti_hash_mix(key, (uint64_t)module->ctx->micro_batch), n);
}
