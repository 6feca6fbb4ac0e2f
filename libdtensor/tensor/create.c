/* SPDX-License-Identifier: Apache-2.0
 *
 * Makers: every element is made from its global index, so a tensor's value does not depend on mesh or placements. On a
 * partial spec the first rank keeps the value and the others hold the identity (avg, max, min: all hold it). */
#include <string.h>

#include "core/number.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

typedef struct making making;
typedef void (*make_fn)(making *m, const dti_part_run *run, void *values);

struct making {
    const dt_spec *spec;
    dt_dtype dtype;
    size_t size;                   /* bytes of an element                                                          */
    char *part;
    make_fn make;
    uint64_t seed;
    double value, step;
    const void *values;
};

static void make_run(const dti_part_run *run, void *arg)
{
    making *m = arg;
    m->make(m, run, m->part + run->local * (int64_t)m->size);
}

static dt_tensor *make(const dt_spec *spec, making m, make_fn fn)
{
    if (!spec || dti_failed(spec->mesh->ctx)) return NULL;
    dti_storage *storage;
    if (!dti_part_new(spec, &storage)) return NULL;
    if (!storage) return dti_tensor_new(spec, NULL);
    m.spec = spec;
    m.dtype = dt_spec_dtype(spec);
    m.size = dt_dtype_bytes(m.dtype);
    m.part = storage->bytes;
    m.make = fn;
    if (!dti_part_keeps_value(spec)) dti_part_identity(spec, storage);
    else if (!dti_part_runs(spec, spec->mesh->rank, make_run, &m)) {
        dti_storage_release(storage);
        return NULL;
    }
    return dti_tensor_new(spec, storage);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void make_full(making *m, const dti_part_run *run, void *values)
{
    dti_numbers_fill(m->dtype, m->value, values, run->count);
}

dt_tensor *dt_zeros(const dt_spec *spec) { return make(spec, (making){ .value = 0 }, make_full); }
dt_tensor *dt_full(const dt_spec *spec, double value) { return make(spec, (making){ .value = value }, make_full); }

static void make_arange(making *m, const dti_part_run *run, void *values)
{
    for (int64_t i = 0; i < run->count; i++)
        dti_number_set(m->dtype, m->value + m->step * (double)(run->global + i), (char *)values + i * (int64_t)m->size);
}

dt_tensor *dt_arange(const dt_spec *spec, double first, double step)
{
    return make(spec, (making){ .value = first, .step = step }, make_arange);
}

static void make_rand(making *m, const dti_part_run *run, void *values)
{
    dti_random_uniform(m->dtype, m->seed, 0, run->global, run->count, values);
}

static void make_randn(making *m, const dti_part_run *run, void *values)
{
    dti_random_normal(m->dtype, m->seed, 0, run->global, run->count, values);
}

dt_tensor *dt_rand(const dt_spec *spec, uint64_t seed) { return make(spec, (making){ .seed = seed }, make_rand); }
dt_tensor *dt_randn(const dt_spec *spec, uint64_t seed) { return make(spec, (making){ .seed = seed }, make_randn); }

/* ---- from host memory -------------------------------------------------------------------------------------------- */

static void make_copy(making *m, const dti_part_run *run, void *values)
{
    memcpy(values, (const char *)m->values + run->global * (int64_t)m->size, (size_t)run->count * m->size);
}

static int64_t whole_bytes(const dt_spec *spec)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dt_spec_dtype(spec));
    for (int d = 0; d < spec->shape.n; d++) bytes *= spec->shape.dim[d];
    return bytes;
}

static bool host_fits(const dt_spec *spec, const void *values, size_t n_bytes)
{
    dt_context *ctx = spec->mesh->ctx;
    if ((int64_t)n_bytes != whole_bytes(spec))
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_from_host: %zu bytes for %s, expected %lld", n_bytes, dt_spec_text(spec),
                        (long long)whole_bytes(spec)), false;
    if (!values && n_bytes)
        return dti_fail(ctx, DT_ERR_ARG, "dt_from_host: no values for %s", dt_spec_text(spec)), false;
    return true;
}

static dt_tensor *from_root(const dt_spec *spec, int root, const void *values, size_t n_bytes)
{
    dt_context *ctx = spec->mesh->ctx;
    bool here = ctx->rank == root;
    if (here && !host_fits(spec, values, n_bytes)) return NULL;
    dt_mesh *one = dti_mesh_of_rank(ctx, root); /* the whole value lies on it alone */
    const dt_spec *whole = one ? dt_spec_create(one, dt_spec_dtype(spec), spec->shape, NULL) : NULL;
    dt_tensor *x = whole ? make(whole, (making){ .values = values }, make_copy) : NULL;
    return x && x->spec != spec ? dti_tensor_to(x, spec) : x;
}

dt_tensor *dt_from_host(const dt_spec *spec, int root, const void *values, size_t n_bytes)
{
    if (!spec || dti_failed(spec->mesh->ctx)) return NULL;
    dt_context *ctx = spec->mesh->ctx;
    if (root < -1 || root >= ctx->rank_count) {
        dti_fail(ctx, DT_ERR_ARG, "dt_from_host: root %d, expected -1 to %d", root, ctx->rank_count - 1);
        return NULL;
    }
    if (root >= 0) return from_root(spec, root, values, n_bytes);
    if (spec->mesh->rank >= 0 && !host_fits(spec, values, n_bytes)) return NULL;
    return make(spec, (making){ .values = values }, make_copy);
}

/* ---- from a function --------------------------------------------------------------------------------------------- */

typedef struct scatter { size_t size; const char *from; char *to; } scatter; /* values of a box into the part         */

static void scatter_run(const dti_part_run *run, void *arg)
{
    const scatter *s = arg;
    int64_t size = (int64_t)s->size;
    memcpy(s->to + run->local * size, s->from + run->global * size, (size_t)(run->count * size));
}

static int64_t box_bytes(const dt_spec *spec, const dt_box *box)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dt_spec_dtype(spec));
    for (int d = 0; d < box->n; d++) bytes *= box->hi[d] - box->lo[d];
    return bytes;
}

static bool fill_boxes(const dt_spec *spec, const dt_box *boxes, int n, dt_fill_fn fill, void *arg, void *part)
{
    if (n == 1) {
        fill(&boxes[0], part, arg);
        return true;
    }
    for (int i = 0; i < n; i++) {
        dti_storage *values = dti_storage_new(spec->mesh->ctx, (size_t)box_bytes(spec, &boxes[i]));
        if (!values) return false;
        fill(&boxes[i], values->bytes, arg);
        scatter s = { dt_dtype_bytes(dt_spec_dtype(spec)), values->bytes, part };
        bool done = dti_part_box_runs(spec, spec->mesh->rank, &boxes[i], scatter_run, &s);
        dti_storage_release(values);
        if (!done) return false;
    }
    return true;
}

dt_tensor *dt_from_fn(const dt_spec *spec, dt_fill_fn fill, void *arg)
{
    if (!spec || dti_failed(spec->mesh->ctx)) return NULL;
    dt_context *ctx = spec->mesh->ctx;
    if (!fill) return dti_fail(ctx, DT_ERR_ARG, "dt_from_fn: no function for %s", dt_spec_text(spec)), NULL;
    dti_storage *storage, *list = NULL;
    if (!dti_part_new(spec, &storage)) return NULL;
    if (!storage) return dti_tensor_new(spec, NULL);
    int n = dt_spec_boxes(spec, spec->mesh->rank, NULL, 0);
    bool filled = dti_part_keeps_value(spec);
    if (!filled) dti_part_identity(spec, storage);
    else {
        list = dti_storage_new(ctx, (size_t)n * sizeof(dt_box));
        dt_box *boxes = list ? list->bytes : NULL;
        if (list) dt_spec_boxes(spec, spec->mesh->rank, boxes, n);
        filled = list && !dti_failed(ctx) && fill_boxes(spec, boxes, n, fill, arg, storage->bytes);
        dti_storage_release(list);
        if (!filled) return dti_storage_release(storage), NULL;
    }
    return dti_tensor_new(spec, storage);
}
