/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes and their views from any text. The first byte chooses how many ranks there are; the first line is a mesh; each
 * line after it is a view of what there is: "<dims" slice, "=coords" select, "name<dims" flatten, "dim>parts" split. */
#include "fuzz.h"

#include <dtensor/mesh.h>

static const int ranks[] = { 8, 1, 12, 24, 105, 1 << 20 };

static fuzz_run runs[DT_COUNT(ranks)];

/* Names are distinct, sizes multiply to the whole, a rank's coordinates lie inside. */
static void try_mesh(dt_mesh *mesh)
{
    dt_context *ctx = dt_mesh_context(mesh);
    int size = 1, coord = 0, n = dt_mesh_dim_count(mesh), all = dt_rank_count(ctx);
    for (int d = 0; d < n; d++) {
        const char *name = dt_mesh_dim_name(mesh, d);
        int along = dt_mesh_size(mesh, name), at = dt_mesh_coord(mesh, name);
        fuzz_demand(along >= 1 && at >= -1 && at < along, "a coordinate inside");
        for (int e = 0; e < d; e++) fuzz_demand(strcmp(name, dt_mesh_dim_name(mesh, e)) != 0, "a name once");
        size *= along;
        coord = at < 0 || coord < 0 ? -1 : coord * along + at;
    }
    fuzz_demand(size == dt_mesh_size(mesh, NULL) && size <= all, "sizes multiply to the mesh's");
    fuzz_demand(n == 0 || coord == dt_mesh_coord(mesh, NULL), "coordinates are row-major");
    fuzz_demand(coord < 0 || n == 0 || dt_mesh_rank(mesh, coord) == dt_rank(ctx), "this rank is at its coordinate");
    for (int i = 0, last = size - 1; i < 2; i++) {
        int rank = dt_mesh_rank(mesh, i ? last : 0);
        fuzz_demand(rank >= 0 && rank < all, "ranks are ranks of the run");
    }
    fuzz_demand(n == 0 || dt_mesh_flatten(mesh, dt_mesh_dim_name(mesh, n - 1), dt_mesh_dim_name(mesh, n - 1)) == mesh,
                "a dim flattened to itself");
}

static dt_mesh *view(dt_mesh *mesh, char *line)
{
    char *at = strpbrk(line, "<>");
    if (line[0] == '<') return dt_mesh_slice(mesh, line + 1);
    if (line[0] == '=') return dt_mesh_select(mesh, line + 1);
    if (!at) return dt_mesh_slice(mesh, line);
    bool flatten = *at == '<';
    *at = '\0';
    return flatten ? dt_mesh_flatten(mesh, at + 1, line) : dt_mesh_split(mesh, line, at + 1);
}

static dt_mesh *first_mesh(dt_context *ctx, const char *line)
{
    dt_mesh *mesh = dt_mesh_create(ctx, line);
    fuzz_outcome(ctx, mesh != NULL, false);
    if (!mesh) return NULL;
    fuzz_demand(dt_mesh_create(ctx, dt_mesh_text(mesh)) == mesh, "parses back");
    try_mesh(mesh);
    return mesh;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    int which = data[0] % DT_COUNT(ranks), views = 0;
    dt_context *ctx = fuzz_context(&runs[which], ranks[which]);
    char *text = fuzz_text(data + 1, size - 1), *next;
    dt_mesh *mesh = NULL;
    for (char *line = text; line && views < 16; line = next, views++) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        dt_mesh *made = mesh ? view(mesh, line) : first_mesh(ctx, line);
        if (mesh) fuzz_outcome(ctx, made != NULL, false);
        if (!made) continue;
        mesh = made;
        try_mesh(mesh);
    }
    free(text);
    return 0;
}
