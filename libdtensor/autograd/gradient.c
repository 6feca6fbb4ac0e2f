/* SPDX-License-Identifier: Apache-2.0
 *
 * Where gradients lie: how two of one value are added, and how one comes back through a redistribution. Both say, per
 * mesh dim, where the result is placed; the rest is a redistribution. */
#include <string.h>

#include "autograd/tape.h"
#include "core/number.h"
#include "placements/views.h"

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static bool same_factors(const dti_form *a, const dti_form *b)
{
    return memcmp(a->factor_first, b->factor_first, sizeof a->factor_first) == 0
        && memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* The factors of one form with the placements of another, mesh dim by mesh dim: those in *of a* from a, those of b from
 * b, others R. Splits of a come first; where b has other factors than a, its splits are left out. */
static const dt_spec *mix(const dt_spec *a, uint32_t of_a, const dt_spec *b, uint32_t of_b, dt_dtype dtype)
{
    dti_form form = a->form;
    bool fits = same_factors(&a->form, &b->form);
    int at = 0;
    form.dtype = (int32_t)dtype;
    memset(form.split, 0, sizeof form.split);
    for (int f = 0; f < form.factor_first[form.dim_count]; f++) {
        form.split_first[f] = (int8_t)at;
        for (int i = a->form.split_first[f]; i < a->form.split_first[f + 1]; i++)
            if (of_a >> a->form.split[i] & 1) form.split[at++] = a->form.split[i];
        for (int i = b->form.split_first[f]; fits && i < b->form.split_first[f + 1]; i++)
            if (of_b >> b->form.split[i] & 1) form.split[at++] = b->form.split[i];
        form.split_first[f + 1] = (int8_t)at;
    }
    for (int m = 0; m < DT_MAX_MESH_DIMS; m++)
        form.partial[m] = of_a >> m & 1 ? a->form.partial[m] : of_b >> m & 1 ? b->form.partial[m] : 0;
    return dti_spec_intern(a->mesh, &form);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* P(sum) rather than P(avg), P rather than S, S rather than R; the first of two that are alike. */
static const dt_spec *sum_spec(const dt_spec *a, const dt_spec *b)
{
    uint32_t of_a = 0, of_b = 0;
    for (int m = 0; m < a->mesh->dim_count; m++) {
        dti_place_kind p = dti_form_place(&a->form, m), q = dti_form_place(&b->form, m);
        bool second = q > p || (p == DTI_PLACE_P && a->form.partial[m] == DTI_AVG && b->form.partial[m] == DTI_SUM);
        *(second ? &of_b : &of_a) |= UINT32_C(1) << m;
    }
    return a == b ? a : mix(a, of_a, b, of_b, dt_spec_dtype(a));
}

static dt_tensor *add_parts(dt_tensor *a, dt_tensor *b)
{
    dti_storage *sum = NULL;
    if (!dti_part_new(a->spec, &sum)) return NULL;
    if (sum) {
        const void *parts[] = { a->storage->bytes, b->storage->bytes };
        dt_dtype dtype = dt_spec_dtype(a->spec);
        dti_numbers_combine(DTI_COMBINE_SUM, dtype, parts, 2, dtype, sum->bytes,
                            (int64_t)(sum->n / dt_dtype_bytes(dtype)));
    }
    return dti_tensor_new(a->spec, sum);
}

dt_tensor *dti_gradient_add(dt_tensor *a, dt_tensor *b)
{
    const dt_spec *spec = sum_spec(a->spec, b->spec);
    dt_tensor *x = spec ? dti_tensor_to(a, spec) : NULL, *y = x ? dti_tensor_to(b, spec) : NULL;
    return y ? add_parts(x, y) : NULL;
}

/* ---- redistributions --------------------------------------------------------------------------------------------- */

const dt_spec *dti_gradient_through_spec(const dt_spec *grad, const dt_spec *source, const dt_spec *target,
                                         uint32_t named)
{
    uint32_t of_source = 0, of_grad = 0;
    for (int m = 0; m < source->mesh->dim_count; m++) {
        uint32_t bit = UINT32_C(1) << m;
        dti_place_kind from = dti_form_place(&source->form, m);
        bool both = from == DTI_PLACE_P && target->mesh == source->mesh
            && dti_form_place(&target->form, m) == DTI_PLACE_P;
        if (from == DTI_PLACE_S) of_source |= bit;
        else if (both || !(named & bit)) of_grad |= bit;
    }
    return mix(source, of_source, grad, of_grad, dt_spec_dtype(source));
}

/* On another mesh, of which the source's is no view, it comes back to that first: there R, but for what becomes S. */
dt_tensor *dti_gradient_through(dt_tensor *grad, const dt_spec *source, const dt_spec *target, uint32_t named)
{
    const dt_spec *on, *spec;
    if (!dti_spec_on(grad->spec, source->mesh, &on)) return NULL;
    if (on) spec = dti_gradient_through_spec(on, source, target, named);
    else spec = mix(source, UINT32_MAX, source, 0, dt_spec_dtype(source));
    if (spec && !on) spec = dti_spec_summed(spec);
    return spec ? dti_tensor_to(grad, spec) : NULL;
}
