/* SPDX-License-Identifier: Apache-2.0
 *
 * From forms to layouts: dims are joined to one list of factors, mesh dims become axes, and the result is interned. */
#include "placements/spec.h"
#include "placements/state.h"

#include <stdlib.h>
#include <string.h>

const char *const dti_partial_names[DTI_PARTIAL_COUNT + 1] = {
    [DTI_PARTIAL_NONE] = "none", [DTI_SUM] = "sum", [DTI_AVG] = "avg", [DTI_MAX] = "max", [DTI_MIN] = "min",
    [DTI_PROD] = "prod",
};

bool dti_layout_has(const dti_layout *layout, int world_rank)
{
    return dti_axes_reach(layout->members, layout->member_count, world_rank - layout->base);
}

int dti_layout_rank(const dti_layout *layout, int i)
{
    return layout->base + dti_axes_offset(layout->members, layout->member_count, i);
}

bool dti_layout_same_ranks(const dti_layout *a, const dti_layout *b)
{
    return a->base == b->base && a->member_count == b->member_count
        && memcmp(a->members, b->members, (size_t)a->member_count * sizeof *a->members) == 0;
}

static int by_stride(const void *a, const void *b)
{
    const dti_axis *x = a, *y = b;
    return (x->stride < y->stride) - (x->stride > y->stride);
}

static int mesh_dim_axes(const dt_mesh *mesh, int dim, dti_axis *axes)
{
    const dti_mesh_dim *d = &mesh->dims[dim];
    for (int i = 0; i < d->axis_count; i++) axes[i] = d->axes[i];
    return d->axis_count;
}

static void set_members(dti_layout *layout, const dt_mesh *mesh)
{
    int n = 0;
    for (int d = 0; d < mesh->dim_count; d++) n += mesh_dim_axes(mesh, d, layout->members + n);
    qsort(layout->members, (size_t)n, sizeof *layout->members, by_stride);
    layout->member_count = dti_axes_merge(layout->members, n);
    memset(layout->members + layout->member_count, 0, (size_t)(n - layout->member_count) * sizeof *layout->members);
    layout->base = mesh->base;
    layout->ranks = mesh->size;
}

static void set_factors(dti_layout *layout, const dt_mesh *mesh, const dti_form *form)
{
    layout->factor_count = form->factor_first[form->dim_count];
    for (int f = 0; f < layout->factor_count; f++) {
        dti_layout_factor *factor = &layout->factors[f];
        dti_axis axes[DTI_MAX_AXES];
        int n = 0;
        for (int i = form->split_first[f]; i < form->split_first[f + 1]; i++)
            n += mesh_dim_axes(mesh, form->split[i], axes + n);
        *factor = (dti_layout_factor){
            .size = form->size[f], .axis_first = layout->axis_count, .axis_count = dti_axes_merge(axes, n),
            .pieces = dti_form_pieces(form, mesh, f),
        };
        memcpy(layout->axes + factor->axis_first, axes, (size_t)factor->axis_count * sizeof *axes);
        layout->axis_count += factor->axis_count;
    }
}

static void set_partials(dti_layout *layout, const dt_mesh *mesh, const dti_form *form)
{
    for (dti_partial kind = DTI_SUM; kind < DTI_PARTIAL_COUNT; kind++) {
        dti_axis axes[DTI_MAX_AXES];
        int n = 0;
        for (int d = 0; d < mesh->dim_count; d++)
            if (form->partial[d] == (int)kind) n += mesh_dim_axes(mesh, d, axes + n);
        qsort(axes, (size_t)n, sizeof *axes, by_stride);
        n = dti_axes_merge(axes, n);
        for (int i = 0; i < n; i++) {
            layout->partials[layout->partial_count] = axes[i];
            layout->kinds[layout->partial_count++] = kind;
        }
    }
}

/* The whole tensor as one dim: factors then merge across dims. A scalar is a dim of one element. */
static dti_form flatten(const dti_form *form)
{
    dti_form flat = *form;
    int factors = form->factor_first[form->dim_count];
    memset(flat.factor_first, 0, sizeof flat.factor_first);
    flat.dim_count = 1;
    flat.factor_first[1] = factors ? factors : 1;
    if (!factors) flat.size[0] = 1;
    return flat;
}

static bool layout_equal(const dti_layout *a, const dti_layout *b)
{
    return a->hash == b->hash && memcmp(a, b, sizeof *a) == 0;
}

const dti_layout *dti_layout_intern(dt_mesh *mesh, const dti_form *form)
{
    dti_spec_state *state = dti_spec_state_get(mesh->ctx);
    if (!state) return NULL;
    dti_form flat = flatten(form);
    dti_form_normalize(&flat, mesh);
    dti_layout key, *found;
    memset(&key, 0, sizeof key);
    key.dtype = (dt_dtype)form->dtype;
    set_members(&key, mesh);
    set_factors(&key, mesh, &flat);
    set_partials(&key, mesh, &flat);
    key.hash = dti_hash(&key, sizeof key, 0);
    for (size_t at = dti_table_first(&state->layouts, key.hash);
         (found = dti_table_value(&state->layouts, key.hash, &at)) != NULL;)
        if (layout_equal(found, &key)) return found;
    found = dti_context_take(mesh->ctx, sizeof *found);
    if (!found) return NULL;
    *found = key;
    if (dti_table_add(&state->layouts, key.hash, found)) return found;
    dti_fail(mesh->ctx, DT_ERR_MEMORY, "no memory for a table of layouts");
    return NULL;
}
