/* SPDX-License-Identifier: Apache-2.0
 *
 * Redistribution of tensors: a plan made from two specs, and carried out. On a dry context it is only counted. */
#include <stdlib.h>

#include "redistribute/compile.h"
#include "redistribute/execute.h"
#include "tensor/tensor.h"

struct dt_work {
    dti_handle handle;             /* of its scope: work that nobody waits for is completed when that ends         */
    dt_context *ctx;
    const dt_spec *spec;
    dti_running *running;          /* NULL: nothing was to be done, and this is the result's part                  */
    dti_storage *storage;
    bool failed, spent;
};

static bool takes_part(const dt_spec *source, const dt_spec *target)
{
    return source->mesh->rank >= 0 || target->mesh->rank >= 0;
}

static void complete(dt_work *work)
{
    if (!work->running) return;
    work->storage = dti_plan_finish(work->running);
    work->failed = work->storage == NULL;
    work->running = NULL;
}

static void destroy(dti_handle *handle)
{
    dt_work *work = (dt_work *)(void *)handle;
    complete(work);
    dti_storage_release(work->storage);
    free(work);
}

static dt_work *work_new(const dt_spec *spec)
{
    dt_context *ctx = spec->mesh->ctx;
    dt_work *work = calloc(1, sizeof *work);
    if (!work) {
        dti_fail(ctx, DT_ERR_MEMORY, "no memory to redistribute to %s", spec->text);
        return NULL;
    }
    work->handle.destroy = destroy;
    work->ctx = ctx;
    work->spec = spec;
    dti_scope_own(ctx, &work->handle);
    return work;
}

/* A dry run has what a run would have: the calls, the bytes, and by the price table the time. */
static void predict(dt_context *ctx, const dt_plan *plan)
{
    dti_plan_count((dt_plan *)(uintptr_t)plan);
    ctx->time += dt_plan_price(plan).time_us * 1e-6;
}

static dt_work *start(dt_tensor *x, const dt_spec *spec)
{
    const dt_plan *plan = spec ? dt_plan_create(x->spec, spec, DT_PLAN_TIME) : NULL;
    dt_work *work = plan ? work_new(spec) : NULL;
    if (!work) return NULL;
    if (x->ctx->dry) predict(x->ctx, plan);
    if (x->ctx->dry || !takes_part(x->spec, spec)) return work;
    work->running = dti_plan_start(plan, &x->storage);
    if (work->running) return work;
    dti_scope_disown(&work->handle);
    destroy(&work->handle);
    return NULL;
}

dt_tensor *dt_work_wait(dt_work *work)
{
    if (!work) return NULL;
    if (work->spent) {
        dti_fail(work->ctx, DT_ERR_STATE, "dt_work_wait: %s has been waited for", work->spec->text);
        return NULL;
    }
    work->spent = true;
    complete(work);
    bool done = !work->failed && !dti_failed(work->ctx);
    bool has = work->spec->mesh->rank >= 0 && work->storage;
    dt_tensor *y = done ? dti_tensor_new(work->spec, has ? dti_storage_retain(work->storage) : NULL) : NULL;
    dti_storage_release(work->storage);
    work->storage = NULL;
    return y;
}

dt_tensor *dti_tensor_to(dt_tensor *x, const dt_spec *spec)
{
    if (x && spec == x->spec) return dti_tensor_share(x);
    dt_work *work = dti_tensor_ok(x) ? start(x, spec) : NULL;
    dt_tensor *y = dt_work_wait(work);
    if (work) dti_scope_disown(&work->handle), destroy(&work->handle);
    return y;
}

dt_tensor *dti_tensor_copy(dt_tensor *x, const dt_spec *spec)
{
    if (spec == x->spec) return x;
    for (dt_tensor *copy = x->copies; copy; copy = copy->next_copy)
        if (copy->spec == spec) return copy;
    dt_tensor *copy = dti_tensor_to(x, spec);
    if (!copy) return NULL;
    dti_scope_disown(&copy->handle);
    copy->next_copy = x->copies;
    x->copies = copy;
    return copy;
}

dt_work *dt_redistribute_start(dt_tensor *x, const char *placements)
{
    return dti_tensor_ok(x) ? start(x, dt_spec_replace(x->spec, placements)) : NULL;
}

dt_tensor *dt_redistribute(dt_tensor *x, const char *placements)
{
    return dti_tensor_ok(x) ? dti_tensor_to(x, dt_spec_replace(x->spec, placements)) : NULL;
}

dt_tensor *dt_redistribute_to(dt_tensor *x, dt_mesh *mesh, const char *placements)
{
    if (!dti_tensor_ok(x)) return NULL;
    if (!mesh) {
        dti_fail(x->ctx, DT_ERR_ARG, "dt_redistribute_to: no mesh for %s", x->spec->text);
        return NULL;
    }
    return dti_tensor_to(x, dt_spec_create(mesh, dt_spec_dtype(x->spec), x->spec->shape, placements));
}
