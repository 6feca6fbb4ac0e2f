/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh names the ways in which ranks are grouped. This prints a mesh of 8 ranks, its views (slice, select, flatten,
 * split: the same ranks, named otherwise), and which link each mesh dim runs over. For that nothing is communicated:
 * the context is dry. Then the ranks of the mesh are threads, and each asks where it is and what it holds.
 *
 * Run: ./00_mesh --dt-mesh=dp=2,tp=4 --dt-topology=node=2,gpu=4
 *      ./00_mesh --dt-mesh=dp=4,tp=2                  other sizes for the same two names
 *      ./00_mesh                                      dp takes all ranks, the topology is flat
 *      ./00_mesh --help                               the options */
#include <stdio.h>

#include <dtensor/tensor.h>

/* ---- printing a mesh -------------------------------------------------------------------------------------------- */

/* The ranks of a mesh of two dims as a table: coordinates along the first go down, along the second to the right. */
static void print_table(const dt_mesh *mesh)
{
    const char *down = dt_mesh_dim_name(mesh, 0), *right = dt_mesh_dim_name(mesh, 1);
    int rows = dt_mesh_size(mesh, down), columns = dt_mesh_size(mesh, right);
    printf("%10s", "");
    for (int c = 0; c < columns; c++) printf("  %s=%d", right, c);
    for (int r = 0; r < rows; r++) {
        printf("\n      %s=%d", down, r);
        for (int c = 0; c < columns; c++) printf("%6d", dt_mesh_rank(mesh, r * columns + c));
    }
    printf("\n\n");
}

/* What was asked, the mesh it gave, its ranks in row-major order, and where this rank stands in it. */
static void print_view(const char *what, const dt_mesh *view)
{
    if (!view) return;
    printf("  %-26s %-17s ranks", what, dt_mesh_text(view));
    for (int i = 0; i < dt_mesh_size(view, NULL); i++) printf(" %d", dt_mesh_rank(view, i));
    if (dt_mesh_coord(view, NULL) < 0) printf("  (not ours: coordinate %d)", dt_mesh_coord(view, NULL));
    printf("\n");
}

/* ---- what a mesh can do ----------------------------------------------------------------------------------------- */

static void show_mesh(dt_mesh *mesh)
{
    dt_context *ctx = dt_mesh_context(mesh);
    printf("mesh %s: %d ranks, the innermost dim counts consecutive ones\n", dt_mesh_text(mesh),
           dt_mesh_size(mesh, NULL));
    print_table(mesh);
    printf("this is rank %d of %d:", dt_rank(ctx), dt_rank_count(ctx));
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++)
        printf(" %s %d", dt_mesh_dim_name(mesh, d), dt_mesh_coord(mesh, dt_mesh_dim_name(mesh, d)));
    printf("\n\n");
}

static void show_views(dt_mesh *mesh)
{
    dt_context *ctx = dt_mesh_context(mesh);
    printf("views, no message needed:\n");
    print_view("slice \"tp\"", dt_mesh_slice(mesh, "tp"));              /* our row                        */
    print_view("slice \"dp\"", dt_mesh_slice(mesh, "dp"));              /* our column                     */
    print_view("slice \"tp,dp\"", dt_mesh_slice(mesh, "tp,dp"));        /* the order is the one written   */
    if (dt_mesh_size(mesh, "dp") > 1)
        print_view("select \"dp=1\"", dt_mesh_select(mesh, "dp=1"));    /* a row that is not ours         */
    print_view("flatten \"dp,tp\" to \"all\"", dt_mesh_flatten(mesh, "dp,tp", "all"));
    print_view("flatten \"tp,dp\" to \"all\"", dt_mesh_flatten(mesh, "tp,dp", "all"));
    if (dt_mesh_size(mesh, "tp") % 2 == 0)                              /* 2 kv heads on 4 ranks: kv, rep */
        print_view("split \"tp\" into \"kv=2,rep\"", dt_mesh_split(mesh, "tp", "kv=2,rep"));
    printf("\nequal meshes are one pointer: %s\n\n",
           dt_mesh_create(ctx, dt_mesh_text(mesh)) == mesh ? "yes" : "no");
}

/* Between a rank and its next along a dim: the link that a step along this dim has to use. */
static void show_links(dt_mesh *mesh)
{
    dt_context *ctx = dt_mesh_context(mesh);
    printf("topology %s, link classes from the slowest:", dt_topology_text(ctx));
    for (int i = 0; i < dt_topology_link_count(ctx); i++) printf(" %s", dt_topology_link_name(ctx, i));
    printf("\n");
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++) {
        dt_mesh *along = dt_mesh_slice(mesh, dt_mesh_dim_name(mesh, d));
        if (dt_mesh_size(along, NULL) < 2) continue;
        int link = dt_topology_link(ctx, dt_mesh_rank(along, 0), dt_mesh_rank(along, 1));
        printf("  %s: ranks %d and %d meet over %s\n", dt_mesh_text(along), dt_mesh_rank(along, 0),
               dt_mesh_rank(along, 1), dt_topology_link_name(ctx, link));
    }
}

/* ---- main ------------------------------------------------------------------------------------------------------- */

/* ---- with data -------------------------------------------------------------------------------------------------- */

/* Each rank of the mesh is a thread and runs this. A tensor of as many elements as there are ranks, split over all mesh
 * dims, leaves one element on each. */
static dt_status with_data(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, arg);
    char text[64];
    snprintf(text, sizeof text, "i32[%d]@%s:S(0),%s:S(0)", dt_mesh_size(mesh, NULL), dt_mesh_dim_name(mesh, 0),
             dt_mesh_dim_name(mesh, 1));
    dt_tensor *own = dt_arange(dt_spec_parse(mesh, text), 0, 1);
    const int32_t *element = dt_tensor_data(own);
    if (element && *element != dt_mesh_coord(mesh, NULL)) return dt_context_fail(ctx, DT_ERR_STATE, "not its own");
    const char *all = dt_tensor_text(own);                              /* collective: every rank calls it */
    dt_print(ctx, "\nas threads, each with the element of its own number:\n%s", all);
    return dt_context_status(ctx);
}

static dt_status run_with_data(dt_context *dry)
{
    char error[256], mesh[64];
    snprintf(mesh, sizeof mesh, "%s", dt_mesh_text(dt_mesh_create(dry, "dp,tp")));
    dt_status status = dt_launch_threads(dt_rank_count(dry), with_data, mesh, error, sizeof error);
    if (status) fprintf(stderr, "00_mesh: %s\n", error);
    return status;
}

static bool run(dt_context *ctx)
{
    if (!dt_options_done(ctx)) {                                        /* --help, or an option nobody asks for */
        if (!dt_context_status(ctx)) fputs(dt_options_help(ctx), stdout);
        return false;
    }
    dt_mesh *mesh = dt_mesh_create(ctx, "dp,tp");                       /* names here, sizes from the run */
    if (!mesh) return false;
    show_mesh(mesh);
    show_views(mesh);
    show_links(mesh);
    return dt_context_status(ctx) == DT_OK;
}

int main(int argc, char **argv)
{
    dt_context *ctx = dt_context_dry(8);
    dt_options_read(ctx, &argc, &argv);
    bool shown = run(ctx);
    dt_status status = dt_context_status(ctx);                          /* the first error of all these calls */
    if (status) fprintf(stderr, "00_mesh: %s\n", dt_context_error(ctx));
    else if (shown) status = run_with_data(ctx);
    dt_context_destroy(&ctx);
    return status ? 1 : 0;
}
