/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tensor says to the host: its whole value, its one number, whether it is close to another, its checksum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "core/shape.h"
#include "tensor/sum.h"
#include "tensor/tensor.h"

/* ---- specs ------------------------------------------------------------------------------------------------------- */

const dt_spec *dti_spec_summed(const dt_spec *spec)
{
    dti_form form = spec->form;
    memset(form.partial, 0, sizeof form.partial);
    return spec->layout->partial_count ? dti_spec_intern(spec->mesh, &form) : spec;
}

static dt_tensor *summed(dt_tensor *x)
{
    const dt_spec *spec = dti_spec_summed(x->spec);
    return spec ? dti_tensor_to(x, spec) : NULL;
}

static bool all_partial(dt_mesh *mesh, dti_form *form)
{
    memset(form, 0, sizeof *form);
    form->dtype = DT_I64;
    for (int d = 0; d < mesh->dim_count; d++)
        if (mesh->dims[d].size > 1) form->partial[d] = DTI_SUM;
    return true;
}

bool dti_ranks_sum(dt_mesh *mesh, int64_t value, int64_t *sum)
{
    dti_form form;
    all_partial(mesh, &form);
    *sum = value;
    if (mesh->ctx->dry || mesh->rank < 0) return !dti_failed(mesh->ctx);
    const dt_spec *spec = dti_spec_intern(mesh, &form), *whole = spec ? dti_spec_summed(spec) : NULL;
    dti_storage *storage;
    if (!whole || !dti_part_new(spec, &storage)) return false;
    memcpy(storage->bytes, &value, sizeof value);
    dt_tensor *x = dti_tensor_new(spec, storage), *y = x ? dti_tensor_to(x, whole) : NULL;
    if (y) memcpy(sum, y->storage->bytes, sizeof *sum);
    return y != NULL;
}

/* ---- to the host ------------------------------------------------------------------------------------------------- */

static bool room_fits(const dt_tensor *x, const void *values, size_t n_bytes)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dt_spec_dtype(x->spec));
    for (int d = 0; d < x->spec->shape.n; d++) bytes *= x->spec->shape.dim[d];
    if ((int64_t)n_bytes == bytes && (values || bytes == 0)) return true;
    dti_fail(x->ctx, DT_ERR_SHAPE, "dt_tensor_to_host: room for %zu bytes, %s has %lld", values ? n_bytes : 0,
             dt_spec_text(x->spec), (long long)bytes);
    return false;
}

dt_status dt_tensor_to_host(dt_tensor *x, int root, void *values, size_t n_bytes)
{
    if (!dti_tensor_ok(x)) return x ? x->ctx->status : DT_ERR_ARG;
    dt_context *ctx = x->ctx;
    if (root < -1 || root >= ctx->rank_count)
        return dti_fail(ctx, DT_ERR_ARG, "dt_tensor_to_host: root %d, expected -1 to %d", root, ctx->rank_count - 1);
    bool here = root == -1 || root == ctx->rank;
    if (here && !room_fits(x, values, n_bytes)) return ctx->status;
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *whole = root == -1 ? dt_redistribute(x, "") : dt_redistribute_to(x, dti_mesh_of_rank(ctx, root), "");
    if (whole && here && whole->storage && n_bytes) memcpy(values, whole->storage->bytes, n_bytes);
    dt_scope_pop(ctx, scope, NULL);
    return ctx->status;
}

double dt_tensor_item(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return NAN;
    int64_t count = 1;
    for (int d = 0; d < x->spec->shape.n; d++) count *= x->spec->shape.dim[d];
    if (count != 1) {
        dti_fail(x->ctx, DT_ERR_SHAPE, "dt_tensor_item: %s has %lld elements, expected one", dt_spec_text(x->spec),
                 (long long)count);
        return NAN;
    }
    int scope = dt_scope_push(x->ctx, 0);
    dt_tensor *whole = dt_redistribute(x, "");
    double value = whole && whole->storage ? dti_number_get(dt_spec_dtype(x->spec), whole->storage->bytes)
                 : whole && x->ctx->dry ? 0 : NAN;
    dt_scope_pop(x->ctx, scope, NULL);
    return value;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool is_close(double a, double b, double rtol, double atol)
{
    return a == b || (isnan(a) && isnan(b)) || (isfinite(a) && isfinite(b) && fabs(a - b) <= atol + rtol * fabs(b));
}

/* Integers of 64 bits may differ and be one double, so their difference is made first. */
static bool numbers_close(dt_dtype a, const void *x, dt_dtype b, const void *y, double rtol, double atol)
{
    int64_t p, q;
    if (a != DT_I64 || b != DT_I64) return is_close(dti_number_get(a, x), dti_number_get(b, y), rtol, atol);
    memcpy(&p, x, sizeof p);
    memcpy(&q, y, sizeof q);
    double far = p > q ? (double)((uint64_t)p - (uint64_t)q) : (double)((uint64_t)q - (uint64_t)p);
    return far <= atol + rtol * fabs((double)q);
}

static int64_t count_far(const dt_tensor *x, const dt_tensor *y, double rtol, double atol)
{
    if (!x->storage) return 0;
    dt_dtype a = dt_spec_dtype(x->spec), b = dt_spec_dtype(y->spec);
    size_t size_a = dt_dtype_bytes(a), size_b = dt_dtype_bytes(b);
    int64_t far = 0, n = (int64_t)(x->storage->n / size_a);
    for (int64_t i = 0; i < n; i++)
        far += !numbers_close(a, (const char *)x->storage->bytes + i * (int64_t)size_a,
                              b, (const char *)y->storage->bytes + i * (int64_t)size_b, rtol, atol);
    return far;
}

/* y as x lies, in y's own dtype. */
static dt_tensor *lie_alike(dt_tensor *x, dt_tensor *y)
{
    dti_form form = x->spec->form;
    form.dtype = y->spec->form.dtype;
    const dt_spec *spec = dti_spec_intern(x->spec->mesh, &form);
    return spec ? dti_tensor_to(y, spec) : NULL;
}

bool dt_tensor_close(dt_tensor *x, dt_tensor *y, double rtol, double atol)
{
    if (!dti_tensor_ok(x)) return false;
    if (!y || y->ctx != x->ctx || !dti_shape_same(&x->spec->shape, &y->spec->shape)) {
        dti_fail(x->ctx, y && y->ctx == x->ctx ? DT_ERR_SHAPE : DT_ERR_ARG, "dt_tensor_close: %s and %s",
                 dt_spec_text(x->spec), y ? dt_spec_text(y->spec) : "nothing");
        return false;
    }
    if (!dti_tensor_ok(y)) return false;
    int scope = dt_scope_push(x->ctx, 0);
    int64_t far = 1;
    dt_tensor *a = summed(x), *b = a ? lie_alike(a, y) : NULL;
    bool told = b && dti_ranks_sum(a->spec->mesh, count_far(a, b, rtol, atol), &far);
    dt_scope_pop(x->ctx, scope, NULL);
    return told && far == 0;
}

/* ---- checksum ---------------------------------------------------------------------------------------------------- */

typedef struct summing { dt_dtype dtype; size_t size; const char *part; uint64_t sum; } summing;

static void sum_run(const dti_part_run *run, void *arg)
{
    summing *s = arg;
    s->sum += dti_checksum(s->dtype, run->global, run->count, s->part + run->local * (int64_t)s->size);
}

uint64_t dt_tensor_checksum(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return 0;
    int scope = dt_scope_push(x->ctx, 0);
    dt_tensor *whole = summed(x);
    int64_t sum = 0;
    if (whole) {
        summing s = { dt_spec_dtype(x->spec), dt_dtype_bytes(dt_spec_dtype(x->spec)), NULL, 0 };
        if (whole->storage && dti_part_is_first(whole->spec, whole->spec->mesh->rank)) {
            s.part = whole->storage->bytes;
            dti_part_runs(whole->spec, whole->spec->mesh->rank, sum_run, &s);
        }
        if (!dti_ranks_sum(whole->spec->mesh, (int64_t)s.sum, &sum)) sum = 0;
    }
    dt_scope_pop(x->ctx, scope, NULL);
    return (uint64_t)sum;
}
