/* SPDX-License-Identifier: Apache-2.0
 *
 * The border between a tensor and its parts: a part as a tensor on a mesh of one, and back. What the gradient's
 * placements are there cannot be known, so the caller states them. */
#include "tensor/tensor.h"

#include <string.h>

#include "core/shape.h"

/* May the gradient of a value placed so be placed so along a mesh dim? Where S, it must be the same S: the forms'
 * splits are compared. P(max) and the like have no gradient; R says so. */
static bool grad_fits(const dti_form *value, const dti_form *grad, int mesh_dim, bool to_local)
{
    dti_place_kind stated = dti_form_place(grad, mesh_dim);
    switch (dti_form_place(value, mesh_dim)) {
    case DTI_PLACE_S: return stated == DTI_PLACE_S;
    case DTI_PLACE_R: return stated == DTI_PLACE_R || grad->partial[mesh_dim] == DTI_SUM;
    default: return !to_local && stated == DTI_PLACE_R;
    }
}

/* The spec of the gradient, as the caller states it. NULL: the error. */
static const dt_spec *read_grad(const dt_spec *spec, const char *grad, const char *function, bool to_local)
{
    dt_context *ctx = spec->mesh->ctx;
    if (!grad)
        return dti_fail(ctx, DT_ERR_ARG, "%s: the gradient's placements of %s are needed, \"\" if it is R everywhere",
                        function, dt_spec_text(spec)), NULL;
    const dt_spec *stated = dt_spec_replace(spec, grad);
    if (!stated) return NULL;
    bool fits = true;
    for (int d = 0; d < spec->mesh->dim_count; d++)
        fits &= spec->mesh->dims[d].size == 1 || grad_fits(&spec->form, &stated->form, d, to_local);
    fits &= memcmp(spec->form.split, stated->form.split, sizeof spec->form.split) == 0
         && memcmp(spec->form.split_first, stated->form.split_first, sizeof spec->form.split_first) == 0;
    if (fits) return stated;
    dti_fail(ctx, DT_ERR_PLACEMENT,
             "%s: the gradient of %s cannot be %s; S stays S, R becomes R or P(sum), P becomes R", function,
             dt_spec_text(spec), *dt_spec_placements(stated) ? dt_spec_placements(stated) : "R everywhere");
    return NULL;
}

/* The tape hears of it, if x has a gradient. */
static dt_tensor *crossed(dt_tensor *x, dt_tensor *y, const dt_spec *grad)
{
    const dti_recorder *recorder = x && y ? x->ctx->recorder : NULL;
    if (!recorder || !recorder->records(x)) return y;
    return recorder->crossed(x, y, grad) ? y : NULL;
}

dt_tensor *dt_to_local(dt_tensor *x, const char *grad)
{
    if (!dti_tensor_ok(x)) return NULL;
    if (x->spec->layout->partial_count) {
        dti_fail(x->ctx, DT_ERR_PLACEMENT, "dt_to_local: %s is partial; reduce it first", dt_spec_text(x->spec));
        return NULL;
    }
    const dt_spec *stated = read_grad(x->spec, grad, "dt_to_local", true);
    if (!stated) return NULL;
    dt_mesh *one = dti_mesh_of_rank(x->ctx, x->ctx->rank);
    dt_shape shape = dt_spec_local_shape(x->spec, x->spec->mesh->rank);
    const dt_spec *spec = one ? dt_spec_create(one, dt_spec_dtype(x->spec), shape, NULL) : NULL;
    return spec ? crossed(x, dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL), stated) : NULL;
}

static bool local_fits(const dt_tensor *local, const dt_spec *spec)
{
    if (spec->mesh->rank < 0) return true;
    dt_shape due = dt_spec_local_shape(spec, spec->mesh->rank);
    return local && !local->unmade && local->spec->mesh->size == 1 && dt_spec_dtype(local->spec) == dt_spec_dtype(spec)
        && dti_shape_same(&local->spec->shape, &due);
}

/* The ranks agree: one local that does not fit is an error on all of them, and no hang. */
static bool check_locals(const dt_tensor *local, const dt_spec *spec)
{
    int64_t wrong;
    bool fits = local_fits(local, spec);
    if (!dti_ranks_sum(spec->mesh, !fits, &wrong)) return false;
    if (wrong == 0) return true;
    dt_shape due = dt_spec_local_shape(spec, spec->mesh->rank);
    const dt_spec *part = dt_spec_create(dti_mesh_of_rank(spec->mesh->ctx, spec->mesh->ctx->rank), dt_spec_dtype(spec),
                                         due, NULL);
    dti_fail(spec->mesh->ctx, DT_ERR_SHAPE,
             "dt_from_local: the locals of %lld ranks do not fit %s; here %s, expected %s", (long long)wrong,
             dt_spec_text(spec), local ? dt_spec_text(local->spec) : "none", dt_spec_text(part));
    return false;
}

dt_tensor *dt_from_local(dt_tensor *local, const dt_spec *spec, const char *grad)
{
    if (!spec || dti_failed(spec->mesh->ctx)) return NULL;
    const dt_spec *stated = read_grad(spec, grad, "dt_from_local", false);
    if (!stated || !check_locals(local, spec)) return NULL;
    bool has = spec->mesh->rank >= 0 && local && local->storage;
    return crossed(local, dti_tensor_new(spec, has ? dti_storage_retain(local->storage) : NULL), stated);
}
