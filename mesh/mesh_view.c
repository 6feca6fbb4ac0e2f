/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of a mesh: slice, select, flatten, split. A view is a new list of axes, and a base, over the same ranks: no
 * message, no list of ranks. Every view is made from its mesh and one text, and changes neither. */
#include "mesh/draft.h"

/* Dims of a mesh as a text names them. */
typedef struct pick {
    dti_list list;
    int dims[DT_MAX_MESH_DIMS];    /* by item: index of the dim                                                    */
    bool named[DT_MAX_MESH_DIMS];  /* by dim                                                                       */
} pick;

static bool pick_read(pick *picked, const dt_mesh *mesh, dti_list_kind kind, const char *text)
{
    *picked = (pick){ .list = { .n = 0 } };
    if (!dti_list_read(&picked->list, mesh->ctx, kind, text)) return false;
    for (int i = 0; i < picked->list.n; i++) {
        dti_word name = picked->list.items[i].name;
        int dim = dti_mesh_find(mesh, name);
        if (dim < 0)
            return dti_scan_fail(&picked->list.scan, DT_ERR_ARG, name.text, "mesh \"%s\" has no dim \"%.*s\"",
                                 mesh->text, name.n, name.text);
        picked->dims[i] = dim;
        picked->named[dim] = true;
    }
    return true;
}

static dti_word dim_name(const dti_mesh_dim *dim) { return (dti_word){ dim->name, (int)strlen(dim->name) }; }

static void copy_dim(dti_draft *draft, const dti_mesh_dim *dim)
{
    dti_draft_dim(draft, dim_name(dim), dim->axes, dim->axis_count);
}

/* ---- slice, select ---------------------------------------------------------------------------------------------- */

dt_mesh *dt_mesh_slice(dt_mesh *mesh, const char *dims)
{
    if (mesh == NULL || dti_failed(mesh->ctx)) return NULL;
    pick picked;
    dti_draft draft;
    if (!pick_read(&picked, mesh, DTI_LIST_DIMS, dims)) return NULL;
    int offset = mesh->rank < 0 ? 0 : mesh->ctx->rank - mesh->base;
    dti_draft_init(&draft, mesh->ctx, mesh->base);
    for (int d = 0; d < mesh->dim_count; d++) {
        const dti_mesh_dim *dim = &mesh->dims[d];
        if (picked.named[d]) continue;
        draft.base += dti_axes_offset(dim->axes, dim->axis_count, dti_axes_coord(dim->axes, dim->axis_count, offset));
    }
    for (int i = 0; i < picked.list.n; i++) copy_dim(&draft, &mesh->dims[picked.dims[i]]);
    return dti_draft_intern(&draft, NULL);
}

static bool check_coords(pick *picked, const dt_mesh *mesh)
{
    for (int i = 0; i < picked->list.n; i++) {
        const dti_item *item = &picked->list.items[i];
        int size = mesh->dims[picked->dims[i]].size;
        if (item->number >= size)
            return dti_scan_fail(&picked->list.scan, DT_ERR_ARG, item->name.text + item->name.n + 1,
                                 "expected a coordinate from 0 to %d along \"%.*s\", got %d", size - 1, item->name.n,
                                 item->name.text, item->number);
    }
    return true;
}

dt_mesh *dt_mesh_select(dt_mesh *mesh, const char *coords)
{
    if (mesh == NULL || dti_failed(mesh->ctx)) return NULL;
    pick picked;
    dti_draft draft;
    if (!pick_read(&picked, mesh, DTI_LIST_COORDS, coords) || !check_coords(&picked, mesh)) return NULL;
    dti_draft_init(&draft, mesh->ctx, mesh->base);
    for (int i = 0; i < picked.list.n; i++) {
        const dti_mesh_dim *dim = &mesh->dims[picked.dims[i]];
        draft.base += dti_axes_offset(dim->axes, dim->axis_count, picked.list.items[i].number);
    }
    for (int d = 0; d < mesh->dim_count; d++)
        if (!picked.named[d]) copy_dim(&draft, &mesh->dims[d]);
    return dti_draft_intern(&draft, NULL);
}

/* ---- flatten ---------------------------------------------------------------------------------------------------- */

/* A name for a new dim in place of the dims named: the others' names are taken. */
static bool read_new_name(const pick *picked, const dt_mesh *mesh, const char *text, dti_word *name)
{
    dti_scan scan = { .ctx = mesh->ctx, .what = "mesh dim", .text = text, .at = text };
    if (text == NULL) {
        dti_fail(mesh->ctx, DT_ERR_ARG, "mesh dim: expected a name, got NULL");
        return false;
    }
    if (!dti_scan_name(&scan, name) || !dti_scan_end(&scan, "the end of the name")) return false;
    int taken = dti_mesh_find(mesh, *name);
    if (taken < 0 || picked->named[taken]) return true;
    return dti_scan_fail(&scan, DT_ERR_ARG, text, "mesh \"%s\" has a dim \"%s\" already", mesh->text, text);
}

static void join_dims(dti_draft *draft, const dt_mesh *mesh, const pick *picked, dti_word name)
{
    dti_axis axes[DTI_MAX_AXES];
    int n = 0;
    for (int i = 0; i < picked->list.n; i++) {
        const dti_mesh_dim *dim = &mesh->dims[picked->dims[i]];
        for (int a = 0; a < dim->axis_count; a++) axes[n++] = dim->axes[a];
    }
    dti_draft_dim(draft, name, axes, n);
}

dt_mesh *dt_mesh_flatten(dt_mesh *mesh, const char *dims, const char *name)
{
    if (mesh == NULL || dti_failed(mesh->ctx)) return NULL;
    pick picked;
    dti_draft draft;
    dti_word word;
    if (!pick_read(&picked, mesh, DTI_LIST_DIMS, dims) || !read_new_name(&picked, mesh, name, &word)) return NULL;
    dti_draft_init(&draft, mesh->ctx, mesh->base);
    draft.origin = mesh;
    for (int d = 0; d < mesh->dim_count; d++) {
        if (d == picked.dims[0]) join_dims(&draft, mesh, &picked, word);
        else if (!picked.named[d]) copy_dim(&draft, &mesh->dims[d]);
    }
    return dti_draft_intern(&draft, NULL);
}

/* ---- split ------------------------------------------------------------------------------------------------------ */

static bool check_parts(dti_list *parts, const dt_mesh *mesh, int dim)
{
    int unsized = 0;
    for (int i = 0; i < parts->n; i++) {
        dti_word name = parts->items[i].name;
        int taken = dti_mesh_find(mesh, name);
        if (taken >= 0 && taken != dim)
            return dti_scan_fail(&parts->scan, DT_ERR_ARG, name.text, "mesh \"%s\" has a dim \"%.*s\" already",
                                 mesh->text, name.n, name.text);
        if (parts->items[i].number == DTI_UNSIZED && unsized++)
            return dti_scan_fail(&parts->scan, DT_ERR_ARG, name.text + name.n,
                                 "expected a size: only one may be left out");
    }
    if (mesh->dim_count - 1 + parts->n <= DT_MAX_MESH_DIMS) return true;
    dti_fail(mesh->ctx, DT_ERR_ARG, "mesh split \"%s\": expected a mesh of at most %d dims, got %d", parts->scan.text,
             DT_MAX_MESH_DIMS, mesh->dim_count - 1 + parts->n);
    return false;
}

/* Take a part's ranks from the front of the axes that remain. 0 for a part that ends inside an axis which it does not
 * divide: its ranks are then no product of strides. */
static int cut_part(dti_axis **rest, int size, dti_axis *part)
{
    int n = 0;
    while (size > 1) {
        dti_axis *axis = *rest;
        if (size % axis->size == 0) {
            part[n++] = *axis;
            size /= axis->size;
            ++*rest;
        } else if (axis->size % size == 0) {
            axis->size /= size;
            part[n++] = (dti_axis){ size, axis->stride * axis->size };
            size = 1;
        } else {
            return 0;
        }
    }
    return n;
}

static bool split_dim(dti_draft *draft, const dti_mesh_dim *dim, dti_list *parts)
{
    dti_axis axes[DTI_MAX_AXES], *rest = axes;
    for (int a = 0; a < dim->axis_count; a++) axes[a] = dim->axes[a];
    for (int i = 0; i < parts->n; i++) {
        dti_axis part[DTI_MAX_AXES];
        dti_item item = parts->items[i];
        int n = cut_part(&rest, item.number, part);
        if (n == 0 && item.number > 1)
            return dti_scan_fail(&parts->scan, DT_ERR_ARG, item.name.text,
                                 "%s=%d joins axes of its own: \"%.*s=%d\" ends inside one of %d ranks and does not "
                                 "divide it",
                                 dim->name, dim->size, item.name.n, item.name.text, item.number, rest->size);
        dti_draft_dim(draft, item.name, part, n);
    }
    return true;
}

dt_mesh *dt_mesh_split(dt_mesh *mesh, const char *dim, const char *text)
{
    if (mesh == NULL || dti_failed(mesh->ctx)) return NULL;
    dti_list parts;
    dti_draft draft;
    if (dim == NULL) {
        dti_fail(mesh->ctx, DT_ERR_ARG, "mesh \"%s\": expected a dim to split, got NULL", mesh->text);
        return NULL;
    }
    int split = dti_mesh_dim_index(mesh, (dti_word){ dim, (int)strlen(dim) });
    if (split < 0 || !dti_list_read(&parts, mesh->ctx, DTI_LIST_PARTS, text)) return NULL;
    if (!check_parts(&parts, mesh, split) || !dti_list_fill(&parts, mesh->dims[split].size)) return NULL;
    dti_draft_init(&draft, mesh->ctx, mesh->base);
    draft.origin = mesh;
    for (int d = 0; d < mesh->dim_count; d++) {
        if (d != split) copy_dim(&draft, &mesh->dims[d]);
        else if (!split_dim(&draft, &mesh->dims[d], &parts)) return NULL;
    }
    return dti_draft_intern(&draft, NULL);
}

dt_mesh *dti_mesh_of_rank(dt_context *ctx, int world_rank)
{
    dti_draft draft;
    dti_draft_init(&draft, ctx, world_rank);
    return dti_draft_intern(&draft, NULL);
}
