/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes over all ranks, and what one can ask a mesh. Views are in mesh_view.c. A mesh never changes; every answer is
 * arithmetic on a few axes, whatever the number of ranks. */
#include "core/storage.h"
#include "mesh/draft.h"

/* ---- axes and coordinates --------------------------------------------------------------------------------------- */

int dti_axes_coord(const dti_axis *axes, int n, int offset)
{
    int coord = 0;
    for (int i = 0; i < n; i++) coord = coord * axes[i].size + dti_axis_digit(axes[i], offset);
    return coord;
}

int dti_axes_offset(const dti_axis *axes, int n, int coord)
{
    int offset = 0;
    for (int i = n - 1; i >= 0; i--) {
        offset += coord % axes[i].size * axes[i].stride;
        coord /= axes[i].size;
    }
    return offset;
}

bool dti_axes_reach(const dti_axis *axes, int n, int offset)
{
    for (int i = 0; i < n && offset >= 0; i++) {
        int digit = offset / axes[i].stride;
        if (digit >= axes[i].size) return false;
        offset -= digit * axes[i].stride;
    }
    return offset == 0;
}

int dti_mesh_index(const dt_mesh *mesh, int world_rank)
{
    if (world_rank < mesh->base) return -1;
    int offset = world_rank - mesh->base, index = 0, covered = 0;
    for (int d = 0; d < mesh->dim_count; d++) {
        const dti_mesh_dim *dim = &mesh->dims[d];
        int coord = dti_axes_coord(dim->axes, dim->axis_count, offset);
        covered += dti_axes_offset(dim->axes, dim->axis_count, coord);
        index = index * dim->size + coord;
    }
    return covered == offset ? index : -1;
}

int dti_mesh_coord_of(const dt_mesh *mesh, int dim, int world_rank)
{
    if (dti_mesh_index(mesh, world_rank) < 0) return -1;
    return dti_axes_coord(mesh->dims[dim].axes, mesh->dims[dim].axis_count, world_rank - mesh->base);
}

/* ---- dims by name ----------------------------------------------------------------------------------------------- */

int dti_mesh_find(const dt_mesh *mesh, dti_word name)
{
    for (int d = 0; d < mesh->dim_count; d++)
        if (dti_word_is(name, mesh->dims[d].name)) return d;
    return -1;
}

int dti_mesh_dim_index(const dt_mesh *mesh, dti_word name)
{
    int dim = dti_mesh_find(mesh, name);
    if (dim < 0) dti_fail(mesh->ctx, DT_ERR_ARG, "mesh \"%s\" has no dim \"%.*s\"", mesh->text, name.n, name.text);
    return dim;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Sizes that the text lacks, as far as --dt-mesh gives them. */
static bool take_option_sizes(dti_list *list)
{
    dt_context *ctx = list->scan.ctx;
    const char *text = dti_option_value(ctx, DTI_OPTION_MESH);
    dti_list option;
    if (text == NULL) return true;
    if (!dti_list_read(&option, ctx, DTI_LIST_OPTION, text)) return false;
    for (int i = 0; i < option.n; i++) {
        int at = dti_list_find(list, option.items[i].name);
        if (at < 0)
            return dti_scan_fail(&option.scan, DT_ERR_ARG, option.items[i].name.text,
                                 "mesh \"%s\" has no dim \"%.*s\" to take a size", list->scan.text,
                                 option.items[i].name.n, option.items[i].name.text);
        if (list->items[at].number == DTI_UNSIZED) list->items[at].number = option.items[i].number;
    }
    return true;
}

static bool is_sized(const dti_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->items[i].number == DTI_UNSIZED) return false;
    return true;
}

/* The dims of a text with all their sizes; a text NULL is the whole of --dt-mesh. */
static bool read_mesh(dti_list *list, dt_context *ctx, const char *text)
{
    const char *option = dti_option_value(ctx, DTI_OPTION_MESH);
    if (text) {
        if (!dti_list_read(list, ctx, DTI_LIST_MESH, text)) return false;
        if (!is_sized(list) && !take_option_sizes(list)) return false;
    } else if (!dti_list_read(list, ctx, option ? DTI_LIST_OPTION : DTI_LIST_MESH, option ? option : "ranks")) {
        return false;
    }
    return dti_list_fill(list, dt_rank_count(ctx));
}

static void draft_of_list(dti_draft *draft, dt_context *ctx, const dti_list *list)
{
    int stride = dt_rank_count(ctx);
    dti_draft_init(draft, ctx, 0);
    for (int i = 0; i < list->n; i++) {
        stride /= list->items[i].number;
        dti_draft_dim(draft, list->items[i].name, &(dti_axis){ list->items[i].number, stride }, 1);
    }
}

/* Index of the innermost dim of more than one rank, -1: none. */
static int innermost_dim(const dt_mesh *mesh)
{
    int dim = mesh->dim_count - 1;
    while (dim >= 0 && mesh->dims[dim].size == 1) dim--;
    return dim;
}

/* The innermost dim of a mesh over all ranks groups consecutive ranks, k at a time from 0 on: they stay on their hosts
 * where k divides the ranks of one. */
static void warn_of_hosts(const dt_mesh *mesh, const dti_topology *topology)
{
    int host = dti_topology_host(topology), dim = innermost_dim(mesh);
    if (host < 0 || dim < 0) return;
    int ranks = topology->levels[host].ranks;
    if (ranks >= mesh->size || ranks % mesh->dims[dim].size == 0) return;
    dti_log(mesh->ctx, DT_LOG_WARNING,
            "mesh %s: its innermost dim %s=%d leaves the host: topology %s has %d rank%s on one %s", mesh->text,
            mesh->dims[dim].name, mesh->dims[dim].size, topology->text, ranks, ranks == 1 ? "" : "s",
            topology->levels[host].name);
}

dt_mesh *dt_mesh_create(dt_context *ctx, const char *text)
{
    if (dti_failed(ctx)) return NULL;
    dti_list list;
    dti_draft draft;
    const dti_topology *topology = NULL;
    if (!read_mesh(&list, ctx, text)) return NULL;
    /* Without the option all ranks are on one host, and there is no need to look at the machine. */
    if (dti_option_value(ctx, DTI_OPTION_TOPOLOGY)) {
        topology = dti_topology_get(ctx);
        if (topology == NULL) return NULL;
    }
    draft_of_list(&draft, ctx, &list);
    bool is_new;
    dt_mesh *mesh = dti_draft_intern(&draft, &is_new);
    if (is_new && topology) warn_of_hosts(mesh, topology);
    return mesh;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static dti_word word_of(const char *text) { return (dti_word){ text, (int)strlen(text) }; }

int dt_mesh_size(const dt_mesh *mesh, const char *dim)
{
    if (mesh == NULL) return 0;
    if (dim == NULL) return mesh->size;
    int d = dti_mesh_dim_index(mesh, word_of(dim));
    return d < 0 ? 0 : mesh->dims[d].size;
}

int dt_mesh_coord(const dt_mesh *mesh, const char *dim)
{
    if (mesh == NULL) return -1;
    if (dim == NULL) return mesh->rank;
    int d = dti_mesh_dim_index(mesh, word_of(dim));
    return d < 0 ? -1 : dti_mesh_coord_of(mesh, d, mesh->ctx->rank);
}

int dt_mesh_rank(const dt_mesh *mesh, int rank)
{
    if (mesh == NULL || rank < 0 || rank >= mesh->size) return -1;
    int world_rank = mesh->base;
    for (int d = mesh->dim_count - 1; d >= 0; d--) {
        const dti_mesh_dim *dim = &mesh->dims[d];
        world_rank += dti_axes_offset(dim->axes, dim->axis_count, rank % dim->size);
        rank /= dim->size;
    }
    return world_rank;
}

int dt_mesh_dim_count(const dt_mesh *mesh) { return mesh ? mesh->dim_count : 0; }

const char *dt_mesh_dim_name(const dt_mesh *mesh, int dim)
{
    return mesh && dim >= 0 && dim < mesh->dim_count ? mesh->dims[dim].name : NULL;
}

const char *dt_mesh_text(const dt_mesh *mesh) { return mesh ? mesh->text : ""; }

dt_context *dt_mesh_context(const dt_mesh *mesh) { return mesh ? mesh->ctx : NULL; }

static bool overlap(const dti_mesh_dim *a, const dti_mesh_dim *b)
{
    for (int i = 0; i < a->axis_count; i++)
        for (int k = 0; k < b->axis_count; k++) {
            dti_axis x = a->axes[i], y = b->axes[k];
            if (x.stride < y.stride * y.size && y.stride < x.stride * x.size) return true;
        }
    return false;
}

uint32_t dti_mesh_dims_of_view(const dt_mesh *mesh, const dt_mesh *view, uint32_t dims)
{
    uint32_t of = 0;
    for (int d = 0; d < mesh->dim_count; d++)
        for (int v = 0; v < view->dim_count; v++)
            if ((dims >> v & 1) && overlap(&mesh->dims[d], &view->dims[v])) of |= UINT32_C(1) << d;
    return of;
}

dt_counters *dti_mesh_counting(dt_mesh *mesh)
{
    size_t bytes = ((size_t)mesh->dim_count + 1) * sizeof *mesh->counters;
    if (!mesh->counters) mesh->counters = dti_context_take(mesh->ctx, bytes);
    return mesh->counters;
}

dt_counters dt_mesh_counters(const dt_mesh *mesh, const char *dim)
{
    if (!mesh) return (dt_counters){ 0 };
    int index = dim ? dti_mesh_dim_index(mesh, word_of(dim)) : mesh->dim_count;
    dt_counters counters = { 0 };
    if (index < 0) return counters;
    dti_context_settle(mesh->ctx);
    if (mesh->counters) counters = mesh->counters[index];
    counters.memory = dti_storage_now(mesh->ctx);
    counters.memory_peak = dti_storage_peak(mesh->ctx);
    return counters;
}
