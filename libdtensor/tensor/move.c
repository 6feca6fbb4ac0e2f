/* SPDX-License-Identifier: Apache-2.0
 *
 * Redistribution of tensors: a plan made from two specs, and carried out. On a dry context it is only counted. */
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
    dti_origin *origin;            /* of what is moved                                                             */
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
    dti_origin_release(work->origin);
    dti_context_give(work->ctx, work, sizeof *work);
}

static dt_work *work_new(const dt_tensor *x, const dt_spec *spec)
{
    dt_context *ctx = spec->mesh->ctx;
    dt_work *work = dti_context_borrow(ctx, sizeof *work);
    if (!work) return NULL;
    *work = (dt_work){ .handle.destroy = destroy, .ctx = ctx, .spec = spec,
                       .origin = dti_origin_hold(x->origin) };
    dti_scope_own(ctx, &work->handle);
    return work;
}

/* A dry run has what a run would have: the calls, the bytes, and by the price table the time. */
static void predict(dt_context *ctx, const dt_plan *plan)
{
    dt_plan *counted = (dt_plan *)(uintptr_t)plan;
    dti_plans_count(ctx, &counted, 1);
    dti_plan_predict(counted);
}

static dt_work *start(dt_tensor *x, const dt_spec *spec)
{
    const dt_plan *plan = spec ? dt_plan_create(x->spec, spec, DT_PLAN_TIME) : NULL;
    dt_work *work = plan ? work_new(x, spec) : NULL;
    if (!work) return NULL;
    if (x->ctx->dry) predict(x->ctx, plan);
    if (x->ctx->dry || !takes_part(x->spec, spec)) return work;
    work->running = dti_plan_start(plan, &x->storage, 0);
    if (work->running) return work;
    dti_scope_disown(&work->handle);
    destroy(&work->handle);
    return NULL;
}

dt_tensor *dt_work_wait(dt_work *work)
{
    if (!work) return NULL;
    if (work->spent) {
        dti_fail(work->ctx, DT_ERR_STATE, "dt_work_wait: %s has been waited for", dt_spec_text(work->spec));
        return NULL;
    }
    work->spent = true;
    complete(work);
    bool done = !work->failed && !dti_failed(work->ctx);
    bool has = work->spec->mesh->rank >= 0 && work->storage;
    dt_tensor *y = done ? dti_tensor_new(work->spec, has ? dti_storage_retain(work->storage) : NULL) : NULL;
    dti_storage_release(work->storage);
    work->storage = NULL;
    if (y) y->origin = dti_origin_hold(work->origin);
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

bool dti_part_pull(const dt_plan *plan, dti_storage *const *sources, double fill, dti_storage **part)
{
    dt_context *ctx = plan->target->mesh->ctx;
    *part = NULL;
    if (ctx->dry) predict(ctx, plan);
    if (ctx->dry || plan->target->mesh->rank < 0) return !dti_failed(ctx);
    dti_running *running = dti_plan_start(plan, sources, fill);
    *part = running ? dti_plan_finish(running) : NULL;
    return *part != NULL;
}

dt_tensor *dti_tensor_to(dt_tensor *x, const dt_spec *spec)
{
    if (x && spec == x->spec) return same(x);
    dt_work *work = dti_tensor_ok(x) ? start(x, spec) : NULL;
    dt_tensor *y = dt_work_wait(work);
    if (work) dti_work_drop(work);
    return y;
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

/* Pointers. */
static size_t list_bytes(int n) { return (size_t)n * sizeof(void *); }
static void *list_new(dt_context *ctx, int n) { return dti_context_borrow_zeros(ctx, list_bytes(n)); }
static void list_give(dt_context *ctx, void *list, int n) { dti_context_give(ctx, list, list_bytes(n)); }

typedef struct flock {             /* tensors that move together                                                   */
    dt_context *ctx;
    dti_moving *moving;            /* those that this rank takes part in                                           */
    dt_work **work;                /* of each of these                                                             */
    int n, room;
} flock;

static void flock_fini(flock *f)
{
    dti_context_give(f->ctx, f->moving, (size_t)f->room * sizeof *f->moving);
    list_give(f->ctx, f->work, f->room);
}

static bool flock_init(flock *f, dt_context *ctx, int n)
{
    *f = (flock){ .ctx = ctx, .moving = dti_context_borrow_zeros(ctx, (size_t)n * sizeof *f->moving),
                  .work = list_new(ctx, n), .room = n };
    if (f->moving && f->work) return true;
    flock_fini(f);
    return false;
}

static void predict_all(flock *f)
{
    dt_plan **plans = list_new(f->ctx, f->n);
    for (int i = 0; plans && i < f->n; i++) {
        plans[i] = (dt_plan *)(uintptr_t)f->moving[i].plan;
        dti_plan_predict(plans[i]);
    }
    if (plans) dti_plans_count(f->ctx, plans, f->n);
    list_give(f->ctx, plans, f->n);
}

/* Works for all; those of NULL specs are not asked for. */
static bool join(flock *f, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_work **work)
{
    for (int i = 0; i < n; i++) {
        const dt_plan *plan = specs[i] ? dt_plan_create(x[i]->spec, specs[i], DT_PLAN_TIME) : NULL;
        work[i] = plan ? work_new(x[i], specs[i]) : NULL;
        if (specs[i] && !work[i]) return false;
        if (!work[i] || !(takes_part(x[i]->spec, specs[i]) || f->ctx->dry)) continue;
        f->moving[f->n] = (dti_moving){ .plan = plan, .sources = &x[i]->storage };
        f->work[f->n++] = work[i];
    }
    return true;
}

static bool start_all(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_work **work)
{
    flock f;
    if (!flock_init(&f, ctx, n)) return false;
    bool started = join(&f, x, specs, n, work);
    if (ctx->dry && started) predict_all(&f);
    else if (started && f.n) started = dti_plans_start(ctx, f.moving, f.n);
    for (int i = 0; i < f.n && started; i++) f.work[i]->running = f.moving[i].running;
    flock_fini(&f);
    return started;
}

/* Complete them together, so that later stages are, too; what came of each is in its work. */
static bool complete_all(dt_context *ctx, int n, dt_work *const *work)
{
    flock f;
    if (!flock_init(&f, ctx, n)) return false;
    for (int i = 0; i < n; i++) {
        if (!work[i] || !work[i]->running) continue;
        f.moving[f.n].running = work[i]->running;
        f.work[f.n++] = work[i];
        work[i]->running = NULL;
    }
    bool done = dti_plans_finish(ctx, f.moving, f.n);
    for (int i = 0; i < f.n; i++) {
        f.work[i]->storage = f.moving[i].result;
        f.work[i]->failed = !done;
    }
    flock_fini(&f);
    return done;
}

void dti_work_drop(dt_work *work)
{
    dti_scope_disown(&work->handle);
    destroy(&work->handle);
}

static void end_works(dt_work **work, int n)
{
    for (int i = 0; i < n; i++)
        if (work[i]) dti_work_drop(work[i]);
}

bool dti_tensors_start(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_work **work)
{
    bool started = start_all(ctx, x, specs, n, work);
    for (int i = 0; i < n && started; i++)
        if (work[i]) dti_scope_disown(&work[i]->handle);
    if (!started) end_works(work, n);
    return started;
}

bool dti_tensors_finish(dt_context *ctx, dt_work **work, int n, dt_tensor **y)
{
    bool done = complete_all(ctx, n, work);
    for (int i = 0; i < n && done; i++)
        if (work[i]) done = (y[i] = dt_work_wait(work[i])) != NULL;
    end_works(work, n);
    return done;
}

/* y[i] = x[i] moved, where specs[i] is not NULL and another than it has. */
static bool move_all(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_work **work,
                     dt_tensor **y)
{
    return dti_tensors_start(ctx, x, specs, n, work) && dti_tensors_finish(ctx, work, n, y);
}

bool dti_tensors_to(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_tensor **y)
{
    const dt_spec **moved = list_new(ctx, n);
    dt_work **work = list_new(ctx, n);
    bool done = moved && work;
    for (int i = 0; i < n && done; i++) moved[i] = specs[i] == x[i]->spec ? NULL : specs[i];
    done = done && move_all(ctx, x, moved, n, work, y);
    for (int i = 0; i < n && done; i++)
        if (!moved[i]) done = (y[i] = same(x[i])) != NULL;
    list_give(ctx, (void *)moved, n);
    list_give(ctx, work, n);
    return done;
}

static dt_tensor *add_copy(dti_body *body, dt_tensor *copy)
{
    copy->next_copy = body->copies;
    body->copies = dti_tensor_hide(copy);
    return copy;
}

dt_tensor *dti_tensor_add_copy(dt_tensor *x, dt_tensor *copy) { return add_copy(x->body, copy); }

dt_tensor *dti_tensor_copy(dt_tensor *x, const dt_spec *spec)
{
    if (spec == x->spec) return x;
    dti_body *body = dti_tensor_body(x);
    for (dt_tensor *copy = body ? body->copies : NULL; copy; copy = copy->next_copy)
        if (copy->spec == spec) return copy;
    dt_tensor *copy = body ? dti_tensor_to(x, spec) : NULL;
    return copy ? add_copy(body, copy) : NULL;
}

dt_tensor *dti_tensor_kept(dt_tensor *x, const dt_spec *spec)
{
    dti_body *body = spec ? dti_tensor_body(x) : NULL;
    for (dt_tensor *copy = body ? body->copies : NULL; copy; copy = copy->next_copy)
        if (copy->spec == spec) return copy;
    return NULL;
}

/* The first in a list that is to become what x[i] is to. */
static int first_alike(dt_tensor *const *x, const dt_spec *const *specs, int i)
{
    for (int k = 0; k < i; k++)
        if (specs[k] == specs[i] && (x[k] == x[i] || (x[k]->body && x[k]->body == x[i]->body))) return k;
    return i;
}

static bool copy_all(dt_context *ctx, dt_tensor **x, const dt_spec *const *specs, int n, const dt_spec **missing,
                     dt_tensor **made)
{
    for (int i = 0; i < n; i++) {
        bool there = !specs[i] || specs[i] == x[i]->spec || dti_tensor_kept(x[i], specs[i])
            || first_alike(x, specs, i) < i;
        missing[i] = there ? NULL : specs[i];
    }
    dt_work **work = list_new(ctx, n);
    if (!work) return false;
    bool done = move_all(ctx, x, missing, n, work, made);
    list_give(ctx, work, n);
    for (int i = 0; i < n && done; i++)
        if (made[i]) add_copy(x[i]->body, made[i]);
    for (int i = 0; i < n && done; i++)
        if (specs[i] && specs[i] != x[i]->spec) x[i] = dti_tensor_kept(x[i], specs[i]);
    return done && !dti_failed(ctx);
}

bool dti_tensors_copy(dt_context *ctx, dt_tensor **x, const dt_spec *const *specs, int n)
{
    const dt_spec **missing = list_new(ctx, n);
    dt_tensor **made = list_new(ctx, n);
    bool done = missing && made && copy_all(ctx, x, specs, n, missing, made);
    list_give(ctx, (void *)missing, n);
    list_give(ctx, made, n);
    return done;
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

/* A copy of the value with a node of its own; moved: the value on that spec, NULL: it is to be moved now. */
static dt_tensor *new_pin(dt_tensor *x, const dt_spec *spec, uint32_t named, dt_tensor *moved)
{
    bool same = spec == x->spec;
    dt_tensor *pin = moved ? moved
                   : same ? dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL)
                          : dti_tensor_to(x, spec);
    dti_body *body = pin ? dti_tensor_body(x) : NULL;
    if (!body || !x->ctx->recorder->pinned(x, pin, named)) return NULL;
    pin->named = named;
    dti_tensor_come_of(pin, x);
    return add_copy(body, pin);
}

static bool records(const dt_tensor *x) { return x->ctx->recorder && x->ctx->recorder->records(x); }

/* The pin that a tensor is, or has; NULL: none. */
static dt_tensor *old_pin(dt_tensor *x, const dt_spec *spec, uint32_t named)
{
    return x->named == named && x->spec == spec ? x : find_pin(x, spec, named);
}

static dt_tensor *pin(dt_tensor *x, const dt_spec *spec, uint32_t named, dt_tensor *moved)
{
    if (!spec) return NULL;
    if (!records(x)) return moved ? moved : dti_tensor_to(x, spec);
    dt_tensor *found = old_pin(x, spec, named);
    if (!found) found = new_pin(x, spec, named, moved);
    return found ? same(found) : NULL;
}

dt_tensor *dti_tensor_pin(dt_tensor *x, const dt_spec *spec, uint32_t named)
{
    return pin(x, spec, named | DTI_PINNED, NULL);
}

dt_work *dt_redistribute_start(dt_tensor *x, const char *placements)
{
    x = dti_used(x);
    dt_work *work = dti_tensor_ok(x) ? start(x, dt_spec_replace(x->spec, placements)) : NULL;
    if (!work || !records(x)) return work;
    work->named = named_dims(x->spec->mesh, placements);
    work->source = dti_tensor_hide(dti_tensor_share(x));
    return work;
}

dt_tensor *dt_redistribute(dt_tensor *x, const char *placements)
{
    x = dti_used(x);
    if (!dti_tensor_ok(x)) return NULL;
    return pin(x, dt_spec_replace(x->spec, placements), named_dims(x->spec->mesh, placements), NULL);
}

dt_tensor *dt_redistribute_to(dt_tensor *x, dt_mesh *mesh, const char *placements)
{
    x = dti_used(x);
    if (!dti_tensor_ok(x)) return NULL;
    if (!mesh) {
        dti_fail(x->ctx, DT_ERR_ARG, "dt_redistribute_to: no mesh for %s", dt_spec_text(x->spec));
        return NULL;
    }
    const dt_spec *spec = dt_spec_create(mesh, dt_spec_dtype(x->spec), x->spec->shape, placements);
    return pin(x, spec, ~UINT32_C(0), NULL);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static dt_context *context_of(dt_tensor *const *x, int n)
{
    for (int i = 0; x && i < n; i++)
        if (x[i]) return x[i]->ctx;
    return NULL;
}

static bool check_list(dt_context *ctx, const char *call, dt_tensor *const *x, int n, const char *const *placements,
                       const void *result)
{
    if (!placements || !result)
        return dti_fail(ctx, DT_ERR_ARG, "%s: expected %s for %d tensors, got none", call,
                        placements ? "room" : "placements", n), false;
    for (int i = 0; i < n; i++)
        if (!x[i] || x[i]->ctx != ctx)
            return dti_fail(ctx, DT_ERR_ARG, "%s: tensor %d of %d is %s", call, i, n,
                            x[i] ? "of another context" : "none"), false;
        else if (!dti_tensor_ok(x[i])) return false;
    return true;
}

static bool read_list(dt_tensor *const *x, int n, const char *const *placements, const dt_spec **specs)
{
    for (int i = 0; i < n; i++)
        if (!(specs[i] = dt_spec_replace(x[i]->spec, placements[i]))) return false;
    return true;
}

/* What is recorded and there, or twice in the list, need not move. */
static void leave_pins(dt_tensor *const *x, int n, const char *const *placements, const dt_spec *const *specs,
                       const dt_spec **moved)
{
    for (int i = 0; i < n; i++) {
        bool stays = specs[i] == x[i]->spec || first_alike(x, specs, i) < i;
        if (!stays && records(x[i]))
            stays = old_pin(x[i], specs[i], named_dims(x[i]->spec->mesh, placements[i])) != NULL;
        moved[i] = stays ? NULL : specs[i];
    }
}

typedef struct list { const dt_spec **specs, **moved; dt_tensor **made; dt_work **work; } list;

static bool list_init(list *l, dt_context *ctx, int n)
{
    *l = (list){ list_new(ctx, n), list_new(ctx, n), list_new(ctx, n), list_new(ctx, n) };
    return l->specs && l->moved && l->made && l->work;
}

static void list_fini(list *l, dt_context *ctx, int n)
{
    list_give(ctx, (void *)l->specs, n);
    list_give(ctx, (void *)l->moved, n);
    list_give(ctx, l->made, n);
    list_give(ctx, l->work, n);
}

dt_status dt_redistribute_list(dt_tensor *const *x, int n, const char *const *placements, dt_tensor **result)
{
    dt_context *ctx = context_of(x, n);
    if (!ctx) return n == 0 ? DT_OK : DT_ERR_ARG;
    if (dti_failed(ctx) || !check_list(ctx, "dt_redistribute_list", x, n, placements, result)) return ctx->status;
    list l;
    bool done = list_init(&l, ctx, n) && read_list(x, n, placements, l.specs);
    if (done) leave_pins(x, n, placements, l.specs, l.moved);
    done = done && move_all(ctx, x, l.moved, n, l.work, l.made);
    for (int i = 0; i < n && done; i++) {
        int first = first_alike(x, l.specs, i);
        if (first < i && !records(x[i])) l.made[i] = same(l.made[first]);
        l.made[i] = pin(x[i], l.specs[i], named_dims(x[i]->spec->mesh, placements[i]), l.made[i]);
        done = l.made[i] != NULL;
    }
    for (int i = 0; i < n && done; i++) result[i] = l.made[i];
    list_fini(&l, ctx, n);
    return dt_context_status(ctx);
}

dt_status dt_redistribute_start_list(dt_tensor *const *x, int n, const char *const *placements, dt_work **work)
{
    dt_context *ctx = context_of(x, n);
    if (!ctx) return n == 0 ? DT_OK : DT_ERR_ARG;
    if (dti_failed(ctx) || !check_list(ctx, "dt_redistribute_start_list", x, n, placements, work)) return ctx->status;
    list l;
    bool done = list_init(&l, ctx, n) && read_list(x, n, placements, l.specs)
        && start_all(ctx, x, l.specs, n, l.work);
    for (int i = 0; i < n && done; i++) {
        work[i] = l.work[i];
        if (!records(x[i])) continue;
        work[i]->named = named_dims(x[i]->spec->mesh, placements[i]);
        work[i]->source = dti_tensor_hide(dti_tensor_share(x[i]));
    }
    if (!done && l.work) end_works(l.work, n);
    list_fini(&l, ctx, n);
    return dt_context_status(ctx);
}
