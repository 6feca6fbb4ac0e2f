/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec says where a tensor lies. This draws, for several placements of a small matrix on 2 x 4 ranks, which ranks
 * hold which element, from the boxes of their holdings.
 *
 *   S(d)   split: every element on one rank along that mesh dim; sizes need not divide, pieces may be empty
 *   R      whole: every element on all ranks along it
 *   P      partial: all ranks along it hold a summand of every element; drawn with a "+"
 *
 * Run: ./01_placements                               the pictures below
 *      ./01_placements --spec='f32[7,3]@x:S(0)'       your own; at most 12 x 12, mesh dims x=2 and y=4 */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

enum { MAX_SIZE = 12, MAX_RANKS = 8, MAX_BOXES = MAX_SIZE * MAX_SIZE };

typedef struct picture { const char *spec, *says; } picture;

static const picture pictures[] = {
    { "f32[4,6]", "R everywhere: all ranks hold all" },
    { "f32[4,6]@x:S(0)", "x splits the rows; along y every rank holds the same" },
    { "f32[4,6]@x:S(0),y:S(1)", "6 columns over 4 are 2,1,2,1: cuts at ceil(i n / k)" },
    { "f32[6,4]@x:S(0),y:S(0)", "both split the rows: x first, y inside; 8 pieces of 6 rows, two of them empty" },
    { "f32[6,4]@y:S(0),x:S(0)", "the same, y first: other ranks hold the pieces" },
    { "f32[2,4]@y:S(0)", "2 rows over 4: 1,0,1,0" },
    { "f32[4,6]@x:S(0),y:P(sum)", "each rank holds half of the rows, and a summand of each element" },
    { "f32[3,(2 4)]@y:S(1.1)", "a product dim split on its second factor: rank 0 has a column of each half" },
};

/* ---- who holds what --------------------------------------------------------------------------------------------- */

typedef struct holders { unsigned ranks[MAX_SIZE][MAX_SIZE]; } holders; /* a bit per rank */

static void add_box(holders *held, const dt_box *box, int rank)
{
    for (int64_t r = box->lo[0]; r < box->hi[0]; r++)
        for (int64_t c = box->lo[1]; c < box->hi[1]; c++) held->ranks[r][c] |= 1u << rank;
}

static holders find_holders(const dt_spec *spec)
{
    holders held = { { { 0 } } };
    dt_box boxes[MAX_BOXES];
    for (int rank = 0; rank < dt_mesh_size(dt_spec_mesh(spec), NULL); rank++) {
        int n = dt_spec_boxes(spec, rank, boxes, MAX_BOXES);
        for (int i = 0; i < n; i++) add_box(&held, &boxes[i], rank);
    }
    return held;
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

/* Ranks of a bit set, runs shortened: "0-3", "1,5", "0-7". */
static void write_ranks(unsigned ranks, bool partial, char *text, size_t n)
{
    size_t used = 0;
    for (int r = 0; r < MAX_RANKS && used < n; r++) {
        int last = r;
        if (!(ranks >> r & 1)) continue;
        while (ranks >> (last + 1) & 1) last++;
        const char *before = used ? "," : partial ? "+" : "";
        int wrote = last > r ? snprintf(text + used, n - used, "%s%d-%d", before, r, last)
                             : snprintf(text + used, n - used, "%s%d", before, r);
        used += (size_t)wrote;
        r = last;
    }
}

static void draw(const dt_spec *spec, const holders *held)
{
    dt_shape shape = dt_spec_shape(spec);
    bool partial = strstr(dt_spec_placements(spec), "P(") != NULL;
    for (int64_t r = 0; r < shape.dim[0]; r++) {
        for (int64_t c = 0; c < shape.dim[1]; c++) {
            char text[4 * MAX_RANKS] = "";
            write_ranks(held->ranks[r][c], partial, text, sizeof text);
            printf(c + 1 < shape.dim[1] ? "  %-8s" : "  %s", text);
        }
        printf("\n");
    }
}

/* The sizes of what each rank holds, which is what it allocates. */
static void print_parts(const dt_spec *spec)
{
    printf("  parts ");
    for (int rank = 0; rank < dt_mesh_size(dt_spec_mesh(spec), NULL); rank++) {
        dt_shape part = dt_spec_local_shape(spec, rank);
        printf(" %d:%lldx%lld", rank, (long long)part.dim[0], (long long)part.dim[1]);
    }
    printf("\n");
}

static void show(dt_mesh *mesh, const picture *shown)
{
    const dt_spec *spec = dt_spec_parse(mesh, shown->spec);
    if (!spec) return;
    dt_shape shape = dt_spec_shape(spec);
    if (shape.n != 2 || shape.dim[0] > MAX_SIZE || shape.dim[1] > MAX_SIZE) {
        dt_context_fail(dt_mesh_context(mesh), DT_ERR_SHAPE, "%s: expected 2 dims of at most %d", shown->spec,
                        MAX_SIZE);
        return;
    }
    printf("\n%s%s%s\n", dt_spec_text(spec), *shown->says ? "   " : "", shown->says);
    holders held = find_holders(spec);
    draw(spec, &held);
    print_parts(spec);
}

/* ---- main ------------------------------------------------------------------------------------------------------- */

static void run(dt_context *ctx)
{
    picture own = { dt_option_text(ctx, "spec", NULL, "a spec to draw in place of all others"), "" };
    if (!dt_options_done(ctx)) {
        if (!dt_context_status(ctx)) fputs(dt_options_help(ctx), stdout);
        return;
    }
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=4");
    if (!mesh) return;
    printf("mesh %s: each element shows the ranks that hold it\n", dt_mesh_text(mesh));
    if (own.spec) show(mesh, &own);
    for (int i = 0; i < DT_COUNT(pictures) && !own.spec; i++) show(mesh, &pictures[i]);
}

/* ---- with data ------------------------------------------------------------------------------------------------- */

/* Every rank runs this: numbers placed one way and then another, and the one sum they add up to. */
static dt_status with_data(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *rows = dt_arange(dt_spec_parse(mesh, "f32[5,3]@x:S(0)"), 0, 1);
    dt_tensor *columns = dt_redistribute(rows, "x:S(1)");
    const char *before = dt_tensor_text(rows), *after = dt_tensor_text(columns); /* collective: on every rank */
    dt_print(ctx, "\n%sand redistributed\n%s", before, after);
    dt_tensor *eight = dt_full(dt_spec_parse(mesh, "f32[]@x:P(sum)"), 8);
    dt_print(ctx, "a partial 8 adds up to %g\n", dt_tensor_item(eight));
    return dt_context_status(ctx);
}

int main(int argc, char **argv)
{
    dt_context *ctx = dt_context_dry(MAX_RANKS);
    dt_options_read(ctx, &argc, &argv);
    run(ctx);
    dt_status status = dt_context_status(ctx);
    if (status) fprintf(stderr, "01_placements: %s\n", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    if (status || argc > 1) return status ? 1 : 0;           /* a spec of its own: only drawn */

    char error[256];
    printf("\nthe same on 4 ranks with data\n");
    status = dt_launch_threads(4, with_data, NULL, error, sizeof error);
    if (status) fprintf(stderr, "01_placements: %s\n", error);
    return status ? 1 : 0;
}
