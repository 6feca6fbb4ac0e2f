/* SPDX-License-Identifier: Apache-2.0
 *
 * From forms to layouts: dims are joined to one list of factors, mesh dims become axes, and the result is interned. */
#include "placements/spec.h"
#include "placements/state.h"

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

/* A layout while it is made, or looked for: its pointers lead to what follows. */
typedef struct draft {
    dti_layout layout;
    dti_layout_factor factors[DT_MAX_FACTORS];
    dti_axis members[DTI_MAX_AXES], axes[DTI_MAX_AXES], partials[DTI_MAX_AXES];
    dti_partial kinds[DTI_MAX_AXES];
} draft;

static int mesh_dim_axes(const dt_mesh *mesh, int dim, dti_axis *axes)
{
    const dti_mesh_dim *d = &mesh->dims[dim];
    for (int i = 0; i < d->axis_count; i++) axes[i] = d->axes[i];
    return d->axis_count;
}

/* Largest stride first: mostly they are few, and sorted. */
static int sort_and_merge(dti_axis *axes, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && axes[k - 1].stride < axes[k].stride; k--) {
            dti_axis swap = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = swap;
        }
    return dti_axes_merge(axes, n);
}

static void set_members(draft *d, const dt_mesh *mesh)
{
    int n = 0;
    for (int i = 0; i < mesh->dim_count; i++) n += mesh_dim_axes(mesh, i, d->members + n);
    d->layout.member_count = sort_and_merge(d->members, n);
    d->layout.base = mesh->base;
    d->layout.ranks = mesh->size;
}

static void set_factors(draft *d, const dt_mesh *mesh, const dti_form *form)
{
    dti_layout *layout = &d->layout;
    layout->factor_count = form->factor_first[form->dim_count];
    for (int f = 0; f < layout->factor_count; f++) {
        dti_axis axes[DTI_MAX_AXES];
        int n = 0;
        for (int i = form->split_first[f]; i < form->split_first[f + 1]; i++)
            n += mesh_dim_axes(mesh, form->split[i], axes + n);
        n = dti_axes_merge(axes, n);
        d->factors[f] = (dti_layout_factor){ form->size[f], dti_form_pieces(form, mesh, f), layout->axis_count, n };
        memcpy(d->axes + layout->axis_count, axes, (size_t)n * sizeof *axes);
        layout->axis_count += n;
    }
}

static void set_partials(draft *d, const dt_mesh *mesh, const dti_form *form)
{
    for (dti_partial kind = DTI_SUM; kind < DTI_PARTIAL_COUNT; kind++) {
        dti_axis *axes = d->partials + d->layout.partial_count;
        int n = 0;
        for (int i = 0; i < mesh->dim_count; i++)
            if (form->partial[i] == (int)kind) n += mesh_dim_axes(mesh, i, axes + n);
        n = sort_and_merge(axes, n);
        for (int i = 0; i < n; i++) d->kinds[d->layout.partial_count++] = kind;
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

/* The arrays of a layout, one after the other. */
enum { ARRAYS = 5 };
typedef struct array { const void *from; size_t bytes; } array;

static void list_arrays(const dti_layout *layout, array arrays[ARRAYS])
{
    arrays[0] = (array){ layout->factors, (size_t)layout->factor_count * sizeof *layout->factors };
    arrays[1] = (array){ layout->members, (size_t)layout->member_count * sizeof *layout->members };
    arrays[2] = (array){ layout->axes, (size_t)layout->axis_count * sizeof *layout->axes };
    arrays[3] = (array){ layout->partials, (size_t)layout->partial_count * sizeof *layout->partials };
    arrays[4] = (array){ layout->kinds, (size_t)layout->partial_count * sizeof *layout->kinds };
}

static uint64_t hash_of(const dti_layout *layout)
{
    const int numbers[] = { (int)layout->dtype, layout->base, layout->ranks, layout->member_count,
                            layout->factor_count, layout->axis_count, layout->partial_count };
    array arrays[ARRAYS];
    uint64_t hash = dti_hash(numbers, sizeof numbers, 0);
    list_arrays(layout, arrays);
    for (int i = 0; i < ARRAYS; i++) hash = dti_hash(arrays[i].from, arrays[i].bytes, hash);
    return hash;
}

static bool layout_equal(const dti_layout *a, const dti_layout *b)
{
    array x[ARRAYS], y[ARRAYS];
    bool equal = a->hash == b->hash && a->dtype == b->dtype && a->base == b->base && a->ranks == b->ranks;
    list_arrays(a, x);
    list_arrays(b, y);
    for (int i = 0; i < ARRAYS && equal; i++)
        equal = x[i].bytes == y[i].bytes && memcmp(x[i].from, y[i].from, x[i].bytes) == 0;
    return equal;
}

static dti_layout *keep(dt_context *ctx, const dti_layout *layout)
{
    array arrays[ARRAYS];
    void *to[ARRAYS];
    size_t bytes = sizeof *layout;
    list_arrays(layout, arrays);
    for (int i = 0; i < ARRAYS; i++) bytes += arrays[i].bytes;
    char *at = dti_context_take(ctx, bytes);
    if (!at) return NULL;
    dti_layout *kept = (dti_layout *)(void *)at;
    *kept = *layout;
    at += sizeof *layout;
    for (int i = 0; i < ARRAYS; at += arrays[i++].bytes) to[i] = memcpy(at, arrays[i].from, arrays[i].bytes);
    kept->factors = to[0];
    kept->members = to[1];
    kept->axes = to[2];
    kept->partials = to[3];
    kept->kinds = to[4];
    return kept;
}

const dti_layout *dti_layout_intern(dt_mesh *mesh, const dti_form *form)
{
    dti_spec_state *state = dti_spec_state_get(mesh->ctx);
    if (!state) return NULL;
    dti_form flat = flatten(form);
    dti_form_normalize(&flat, mesh);
    draft d; /* large: of its arrays what is read is set */
    d.layout = (dti_layout){ .dtype = (dt_dtype)form->dtype, .factors = d.factors, .members = d.members,
                             .axes = d.axes, .partials = d.partials, .kinds = d.kinds };
    set_members(&d, mesh);
    set_factors(&d, mesh, &flat);
    set_partials(&d, mesh, &flat);
    uint64_t hash = d.layout.hash = hash_of(&d.layout);
    dti_layout *found;
    for (size_t at = dti_table_first(&state->layouts, hash);
         (found = dti_table_value(&state->layouts, hash, &at)) != NULL;)
        if (layout_equal(found, &d.layout)) return found;
    found = keep(mesh->ctx, &d.layout);
    if (!found || dti_table_add(&state->layouts, hash, found)) return found;
    dti_fail(mesh->ctx, DT_ERR_MEMORY, "no memory for a table of layouts");
    return NULL;
}
