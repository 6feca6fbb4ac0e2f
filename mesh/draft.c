/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes meshes from drafts and keeps them, one per content and context. Reads no text and checks no arguments. Nothing
 * here grows with the number of ranks. */
#include "mesh/draft.h"

static void state_fini(void *state)
{
    dti_mesh_state *mesh_state = state;
    dti_table_fini(&mesh_state->meshes);
}

dti_mesh_state *dti_mesh_state_get(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_MESH, sizeof(dti_mesh_state), state_fini);
}

/* ---- drafting --------------------------------------------------------------------------------------------------- */

int dti_axes_merge(dti_axis *axes, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        dti_axis *last = kept ? &axes[kept - 1] : NULL;
        if (last && last->stride == axes[i].size * axes[i].stride)
            *last = (dti_axis){ last->size * axes[i].size, axes[i].stride };
        else
            axes[kept++] = axes[i];
    }
    return kept;
}

void dti_draft_init(dti_draft *draft, dt_context *ctx, int base)
{
    *draft = (dti_draft){ .ctx = ctx, .base = base };
}

void dti_draft_dim(dti_draft *draft, dti_word name, const dti_axis *axes, int n)
{
    dti_axis *own = draft->axes + draft->axis_count;
    int kept = 0, size = 1;
    for (int i = 0; i < n; i++) {
        if (axes[i].size > 1) own[kept++] = axes[i];
        size *= axes[i].size;
    }
    kept = dti_axes_merge(own, kept);
    draft->axis_count += kept;
    draft->axis_counts[draft->dim_count] = kept;
    draft->dims[draft->dim_count++] = (dti_item){ name, size };
}

/* ---- interning -------------------------------------------------------------------------------------------------- */

/* Sizes follow from axes, so they need no place in the hash. */
static uint64_t draft_hash(const dti_draft *draft)
{
    uint64_t hash = dti_hash(draft->axes, sizeof(dti_axis) * (size_t)draft->axis_count, (uint64_t)draft->base);
    for (int d = 0; d < draft->dim_count; d++)
        hash = dti_hash(draft->dims[d].name.text, (size_t)draft->dims[d].name.n,
                        dti_hash_mix(hash, (uint64_t)draft->axis_counts[d]));
    return hash;
}

static bool draft_is(const dti_draft *draft, const dt_mesh *mesh)
{
    if (draft->base != mesh->base || draft->dim_count != mesh->dim_count) return false;
    const dti_axis *axes = draft->axes;
    for (int d = 0; d < mesh->dim_count; d++) {
        const dti_mesh_dim *dim = &mesh->dims[d];
        int n = draft->axis_counts[d];
        if (n != dim->axis_count || !dti_word_is(draft->dims[d].name, dim->name)) return false;
        if (memcmp(axes, dim->axes, sizeof *axes * (size_t)n) != 0) return false;
        axes += n;
    }
    return true;
}

/* Give the mesh its dims, whose axes and names lie in the given room. */
static void set_dims(dt_mesh *mesh, const dti_draft *draft, dti_axis *axes, char *names)
{
    mesh->size = 1;
    mesh->dim_count = draft->dim_count;
    memcpy(axes, draft->axes, sizeof *axes * (size_t)draft->axis_count);
    for (int d = 0; d < draft->dim_count; d++) {
        dti_word name = draft->dims[d].name;
        memcpy(names, name.text, (size_t)name.n);
        mesh->dims[d] = (dti_mesh_dim){ names, draft->dims[d].number, draft->axis_counts[d], axes };
        mesh->size *= draft->dims[d].number;
        names += name.n + 1;
        axes += draft->axis_counts[d];
    }
}

/* One piece of memory: the mesh, its axes, its text, its names. */
static dt_mesh *draft_make(const dti_draft *draft, uint64_t hash)
{
    dt_context *ctx = draft->ctx;
    char text[DTI_LIST_BYTES];
    size_t text_bytes = dti_list_print(draft->dims, draft->dim_count, text) + 1;
    size_t axes_bytes = sizeof(dti_axis) * (size_t)draft->axis_count, names_bytes = 0;
    for (int d = 0; d < draft->dim_count; d++) names_bytes += (size_t)draft->dims[d].name.n + 1;
    dt_mesh *mesh = dti_context_take(ctx, sizeof *mesh + axes_bytes + text_bytes + names_bytes);
    if (mesh == NULL) return NULL;
    dti_axis *axes = (dti_axis *)(mesh + 1);
    char *own_text = (char *)(axes + draft->axis_count);
    memcpy(own_text, text, text_bytes);
    set_dims(mesh, draft, axes, own_text + text_bytes);
    mesh->ctx = ctx;
    mesh->text = own_text;
    mesh->hash = hash;
    mesh->base = draft->base;
    mesh->origin = draft->origin;
    mesh->rank = dti_mesh_index(mesh, ctx->rank);
    return mesh;
}

dt_mesh *dti_draft_intern(const dti_draft *draft, bool *is_new)
{
    dti_mesh_state *state = dti_mesh_state_get(draft->ctx);
    if (is_new) *is_new = false;
    if (state == NULL) return NULL;
    const dti_table *meshes = &state->meshes;
    uint64_t hash = draft_hash(draft);
    dt_mesh *mesh;
    for (size_t at = dti_table_first(meshes, hash); (mesh = dti_table_value(meshes, hash, &at)) != NULL;)
        if (draft_is(draft, mesh)) return mesh;
    mesh = draft_make(draft, hash);
    if (mesh == NULL) return NULL;
    if (!dti_table_add(&state->meshes, hash, mesh)) {
        dti_fail(draft->ctx, DT_ERR_MEMORY, "no memory to keep mesh %s", mesh->text);
        return NULL;
    }
    if (is_new) *is_new = true;
    dti_notify(draft->ctx, &(dt_event){ .kind = DT_EVENT_MESH, .text = mesh->text, .object = mesh });
    return mesh;
}
