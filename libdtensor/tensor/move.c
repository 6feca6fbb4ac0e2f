/* SPDX-License-Identifier: Apache-2.0
 *
 * Redistribution of tensors: a plan made from two specs, and carried out. On a dry context it is only counted. */
#include <stdlib.h>
#include <string.h>

#include "redistribute/compile.h"
#include "redistribute/execute.h"
#include "tensor/tensor.h"

struct dt_work {
    dti_handle handle;             /* of its scope: work that nobody waits for is completed when that ends         */
    dt_context *ctx;
    const dt_spec *spec;
    dti_running *running;          /* NULL: nothing was to be done, and this is the result's part                  */
    dti_storage *storage;
    dt_tensor *source;             /* what the tape is to hear of; else NULL                                       */
    uint32_t named;
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
    dti_tensor_destroy(work->source);
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
    if (y && work->source && !y->ctx->recorder->pinned(work->source, y, work->named)) return NULL;
    return y;
}

/* A result like any other, though its elements are x's. */
static dt_tensor *same(dt_tensor *x)
{
    dt_tensor *y = dti_tensor_share(x);
    if (!y || y->other) return y;
    y->other = true;
    y->body->others++;
    return y;
}

dt_tensor *dti_tensor_to(dt_tensor *x, const dt_spec *spec)
{
    if (x && spec == x->spec) return same(x);
    dt_work *work = dti_tensor_ok(x) ? start(x, spec) : NULL;
    dt_tensor *y = dt_work_wait(work);
    if (work) dti_scope_disown(&work->handle), destroy(&work->handle);
    return y;
}

static dt_tensor *add_copy(dti_body *body, dt_tensor *copy)
{
    copy->next_copy = body->copies;
    body->copies = dti_tensor_hide(copy);
    return copy;
}

dt_tensor *dti_tensor_copy(dt_tensor *x, const dt_spec *spec)
{
    if (spec == x->spec) return x;
    dti_body *body = dti_tensor_body(x);
    for (dt_tensor *copy = body ? body->copies : NULL; copy; copy = copy->next_copy)
        if (copy->spec == spec) return copy;
    dt_tensor *copy = body ? dti_tensor_to(x, spec) : NULL;
    return copy ? add_copy(body, copy) : NULL;
}

/* ---- pins -------------------------------------------------------------------------------------------------------- *
 * What a user places is recorded by the tape, also where nothing moves. Pins of one value to one placement are one.  */

/* The mesh dims that a text of placements names: with a "*" those before a ":", without one all. */
static uint32_t named_dims(const dt_mesh *mesh, const char *placements)
{
    uint32_t named = DTI_PINNED;
    if (!placements || !strchr(placements, '*')) return ~UINT32_C(0);
    for (int d = 0; d < mesh->dim_count; d++) {
        size_t n = strlen(mesh->dims[d].name);
        for (const char *at = placements; (at = strstr(at, mesh->dims[d].name)) != NULL; at += n)
            if ((at == placements || strchr(", \t", at[-1])) && at[n + strspn(at + n, " \t")] == ':')
                named |= UINT32_C(1) << d;
    }
    return named;
}

static dt_tensor *find_pin(dt_tensor *x, const dt_spec *spec, uint32_t named)
{
    for (dt_tensor *copy = x->body ? x->body->copies : NULL; copy; copy = copy->next_copy)
        if (copy->spec == spec && copy->named == named) return copy;
    return NULL;
}

/* A copy of the value with a node of its own. */
static dt_tensor *new_pin(dt_tensor *x, const dt_spec *spec, uint32_t named)
{
    bool same = spec == x->spec;
    dt_tensor *pin = same ? dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL)
                          : dti_tensor_to(x, spec);
    dti_body *body = pin ? dti_tensor_body(x) : NULL;
    if (!body || !x->ctx->recorder->pinned(x, pin, named)) return NULL;
    pin->named = named;
    return add_copy(body, pin);
}

static dt_tensor *pin(dt_tensor *x, const dt_spec *spec, uint32_t named)
{
    const dti_recorder *recorder = spec ? x->ctx->recorder : NULL;
    if (!recorder || !recorder->records(x)) return spec ? dti_tensor_to(x, spec) : NULL;
    if (x->named == named && x->spec == spec) return same(x);
    dt_tensor *found = find_pin(x, spec, named);
    if (!found) found = new_pin(x, spec, named);
    return found ? same(found) : NULL;
}

dt_work *dt_redistribute_start(dt_tensor *x, const char *placements)
{
    dt_work *work = dti_tensor_ok(x) ? start(x, dt_spec_replace(x->spec, placements)) : NULL;
    if (!work || !x->ctx->recorder || !x->ctx->recorder->records(x)) return work;
    work->named = named_dims(x->spec->mesh, placements);
    work->source = dti_tensor_hide(dti_tensor_share(x));
    return work;
}

dt_tensor *dt_redistribute(dt_tensor *x, const char *placements)
{
    if (!dti_tensor_ok(x)) return NULL;
    return pin(x, dt_spec_replace(x->spec, placements), named_dims(x->spec->mesh, placements));
}

dt_tensor *dt_redistribute_to(dt_tensor *x, dt_mesh *mesh, const char *placements)
{
    if (!dti_tensor_ok(x)) return NULL;
    if (!mesh) {
        dti_fail(x->ctx, DT_ERR_ARG, "dt_redistribute_to: no mesh for %s", x->spec->text);
        return NULL;
    }
    const dt_spec *spec = dt_spec_create(mesh, dt_spec_dtype(x->spec), x->spec->shape, placements);
    return pin(x, spec, ~UINT32_C(0));
}
