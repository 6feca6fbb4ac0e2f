/* SPDX-License-Identifier: Apache-2.0
 *
 * Where elements lie. The holdings of normalized specs are compared with those of the specs as written, element by
 * element; layouts that are one pointer with the ranks that hold each element; views of a mesh with the mesh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "mesh/mesh.h"
#include "placements/spec.h"
#include "errors.h"
#include "suite.h"
#include "written.h"

enum { ELEMENTS = 600, BOXES = 600, RANKS = 64 };

static dt_context *context_of(int n, int rank)
{
    dt_context *ctx = dt_context_dry(n);
    if (expect(ctx != NULL, "a context of %d ranks", n)) ctx->rank = rank;
    return ctx;
}

/* ---- holdings against the written form -------------------------------------------------------------------------- */

static int64_t flat_index(const dt_shape *shape, const int64_t *index)
{
    int64_t flat = 0;
    for (int d = 0; d < shape->n; d++) flat = flat * shape->dim[d] + index[d];
    return flat;
}

/* Mark the elements of a box; returns how many there are. */
static int64_t mark_box(const dt_shape *shape, const dt_box *box, bool *held)
{
    int64_t index[DT_MAX_DIMS], count = 0;
    for (int d = 0; d < box->n; d++) {
        index[d] = box->lo[d];
        bool inside = 0 <= box->lo[d] && box->lo[d] < box->hi[d] && box->hi[d] <= shape->dim[d];
        if (!expect(inside, "a box has elements and lies inside")) return 0;
    }
    for (bool more = true; more; count++) {
        int64_t at = flat_index(shape, index);
        expect(!held[at], "element %lld lies in one box", (long long)at);
        held[at] = true;
        more = false;
        for (int d = box->n - 1; d >= 0 && !more; d--) {
            more = ++index[d] < box->hi[d];
            if (!more) index[d] = box->lo[d];
        }
    }
    return count;
}

/* What a rank holds, by dt_spec_boxes; checks their order and count on the way. */
static void boxes_holding(const dt_spec *spec, int rank, bool *held)
{
    static dt_box boxes[BOXES];
    dt_shape shape = dt_spec_shape(spec), local = dt_spec_local_shape(spec, rank);
    int64_t elements = 1, count = 0, last = -1;
    memset(held, 0, ELEMENTS * sizeof *held);
    int n = dt_spec_boxes(spec, rank, boxes, BOXES);
    for (int i = 0; i < n && i < BOXES; i++) {
        int64_t first = flat_index(&shape, boxes[i].lo);
        expect(boxes[i].n == shape.n && first > last, "%s, rank %d: row-major order", dt_spec_text(spec), rank);
        last = first;
        count += mark_box(&shape, &boxes[i], held);
    }
    for (int d = 0; d < local.n; d++) elements *= local.dim[d];
    expect(count == elements && n <= BOXES, "%s, rank %d: %lld elements in %d boxes, the local shape has %lld",
           dt_spec_text(spec), rank, (long long)count, n, (long long)elements);
}

/* The local size of a dim: how many of its indices a rank holds, whatever the other dims. */
static int64_t written_local(const written *w, int dim, int rank)
{
    int64_t size = 1;
    for (int f = w->first[dim]; f < w->first[dim + 1]; f++) {
        int64_t held = 0;
        for (int64_t j = 0; j < w->size[f]; j++) held += written_holds_index(w, f, rank, j);
        size *= held;
    }
    return size;
}

static void expect_local(const dt_spec *spec, const written *w, int rank)
{
    dt_shape local = dt_spec_local_shape(spec, rank);
    dti_set set;
    dti_set_init(&set);
    for (int d = 0; d < w->dims; d++) {
        dti_spec_set(spec, d, rank, &set);
        int64_t want = written_local(w, d, rank);
        expect(local.dim[d] == want && dti_set_count(&set) == want, "%s, rank %d, dim %d: %lld, expected %lld",
               dt_spec_text(spec), rank, d, (long long)local.dim[d], (long long)want);
    }
    dti_set_fini(&set);
}

/* A spec holds on every rank what was written, and every element as often as was written. */
static void expect_written(const dt_spec *spec, const written *w)
{
    bool want[ELEMENTS], held[ELEMENTS];
    int copies[ELEMENTS] = { 0 };
    int64_t n = written_elements(w);
    for (int rank = 0; rank < dt_mesh_size(w->mesh, NULL); rank++) {
        boxes_holding(spec, rank, held);
        written_holding(w, rank, want);
        expect(memcmp(want, held, (size_t)n * sizeof *held) == 0, "%s on %s: rank %d holds what was written",
               dt_spec_text(spec), dt_mesh_text(w->mesh), rank);
        expect_local(spec, w, rank);
        for (int64_t e = 0; e < n; e++) copies[e] += held[e];
    }
    for (int64_t e = 0; e < n; e++)
        expect(copies[e] == written_copies(w), "%s: %d ranks hold element %lld, expected %d", dt_spec_text(spec),
               copies[e], (long long)e, written_copies(w));
}

static const char *const meshes[] = {
    "x=1", "x=2", "x=3", "x=5", "x=7", "x=2,y=2", "x=2,y=3", "x=3,y=2", "x=3,y=2,z=2", "x=2,one=1,y=2,z=3", "x=4,y=2",
    "x=2,y=2,z=2,w=2",
};

static void test_holdings(void)
{
    unsigned seed = 11;
    for (int m = 0; m < DT_COUNT(meshes); m++) {
        int ranks = 1;
        for (const char *at = meshes[m]; (at = strchr(at, '=')) != NULL; at++) ranks *= at[1] - '0';
        dt_context *ctx = context_of(ranks, 0);
        dt_mesh *mesh = dt_mesh_create(ctx, meshes[m]);
        for (int i = 0; i < 250; i++) {
            written w = written_draw(mesh, 1 + i % 4, 1 + below(&seed, ELEMENTS), &seed);
            const dt_spec *spec = written_spec(&w, &seed);
            if (!expect(spec != NULL, "%s", dt_context_error(ctx))) break;
            expect_written(spec, &w);
            expect(dt_spec_check(spec) == DT_OK, "%s", dt_context_error(ctx));
        }
        expect_no_error(ctx, meshes[m]);
        dt_context_destroy(&ctx);
    }
}

/* Two neighbour factors with every size and every number of pieces: where they merge it is right to. */
static void test_neighbours(void)
{
    unsigned seed = 1;
    dt_context *ctx = context_of(12, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3,y=2,z=2");
    for (int a = 0; a <= 7; a++)
        for (int b = 0; b <= 7; b++)
            for (int places = 0; places < 64; places++) {
                written w = { .mesh = mesh, .dtype = DT_F32, .dims = 1, .first = { 0, 2 }, .size = { a, b } };
                for (int d = 0; d < 3; d++) {
                    int place = places >> 2 * d & 3;
                    if (place == 3) break;
                    if (place) w.items[w.n++] = (written_item){ WRITTEN_S, .mesh_dim = d, .factor = place - 1 };
                }
                const dt_spec *spec = written_spec(&w, &seed);
                if (!expect(spec != NULL, "%s", dt_context_error(ctx))) return;
                expect_written(spec, &w);
            }
    expect_no_error(ctx, "neighbours");
    dt_context_destroy(&ctx);
}

/* ---- one layout, one placing ------------------------------------------------------------------------------------ *
 * A signature says, with no names and no dims, which rank of the run holds which row-major element, and what it adds up
 * with which ranks. */

typedef struct signature {
    dt_dtype dtype;
    int64_t elements;
    bool member[RANKS], held[RANKS][ELEMENTS];
    bool adds[WRITTEN_KINDS][RANKS][RANKS]; /* along mesh dims of this kind                                         */
} signature;

static bool differ_along_kind(const written *w, int kind, int a, int b)
{
    for (int d = 0; d < dt_mesh_dim_count(w->mesh); d++)
        if (written_coord(w, d, a) != written_coord(w, d, b) && written_partial(w, d) != kind) return false;
    return true;
}

static void sign(const written *w, signature *s)
{
    int ranks = dt_mesh_size(w->mesh, NULL);
    memset(s, 0, sizeof *s);
    s->dtype = w->dtype;
    s->elements = written_elements(w);
    for (int a = 0; a < ranks; a++) {
        int at = dt_mesh_rank(w->mesh, a);
        s->member[at] = true;
        written_holding(w, a, s->held[at]);
        for (int kind = 0; kind < WRITTEN_KINDS; kind++)
            for (int b = 0; b < ranks; b++)
                s->adds[kind][at][dt_mesh_rank(w->mesh, b)] = differ_along_kind(w, kind, a, b);
    }
}

/* There are elements, and no factor has more pieces than elements: then what lies alike is the same. */
static bool is_plain(const written *w)
{
    int64_t pieces[DT_MAX_FACTORS] = { 0 };
    for (int f = 0; f < written_factors(w); f++) pieces[f] = 1;
    for (int i = 0; i < w->n; i++)
        if (w->items[i].place == WRITTEN_S) pieces[w->items[i].factor] *= written_mesh_size(w, w->items[i].mesh_dim);
    for (int f = 0; f < written_factors(w); f++)
        if (w->size[f] < pieces[f]) return false;
    return written_elements(w) > 0;
}

typedef struct sample { const dt_spec *spec; signature *signature; bool plain; } sample;

static int by_signature(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return x->plain != y->plain ? x->plain - y->plain : memcmp(x->signature, y->signature, sizeof(signature));
}

static int by_layout(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const sample *)a)->spec->layout, y = (uintptr_t)((const sample *)b)->spec->layout;
    return (x > y) - (x < y);
}

/* Views of one list of 12 ranks. */
static int views_of_12(dt_context *ctx, dt_mesh **views)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3,y=2,z=2"), *mixed = dt_mesh_slice(mesh, "z,x,y");
    int n = 0;
    views[n++] = mesh;
    views[n++] = mixed;
    views[n++] = dt_mesh_flatten(mesh, "y,z", "yz");
    views[n++] = dt_mesh_flatten(mesh, "x,y", "xy");
    views[n++] = dt_mesh_flatten(mesh, "z,x", "zx");
    views[n++] = dt_mesh_flatten(mesh, "x,y,z", "all");
    views[n++] = dt_mesh_flatten(mesh, "z,y,x", "all");
    views[n++] = dt_mesh_split(dt_mesh_create(ctx, "r"), "r", "a=6,b=1,c=2");
    views[n++] = dt_mesh_create(ctx, "b=4,c=3");
    views[n++] = dt_mesh_select(mesh, "z=1");
    views[n++] = dt_mesh_select(mesh, "x=2");
    views[n++] = dt_mesh_slice(mesh, "z,y");
    views[n++] = dt_mesh_slice(mesh, "x");
    return n;
}

enum { SAMPLES = 1500, VIEWS = 16 };

static void draw_samples(dt_mesh **views, int n, sample *samples, unsigned *seed)
{
    for (int i = 0; i < SAMPLES; i++) {
        written w = written_draw(views[below(seed, (unsigned)n)], 3, 24, seed);
        w.dtype = below(seed, 5) ? DT_F32 : DT_F16;
        samples[i] = (sample){ written_spec(&w, seed), calloc(1, sizeof(signature)), is_plain(&w) };
        expect(samples[i].spec && samples[i].signature, "sample %d: %s", i, dt_context_error(dt_mesh_context(w.mesh)));
        sign(&w, samples[i].signature);
    }
}

static void expect_pair(bool holds, const sample *a, const sample *b, const char *otherwise)
{
    expect(holds, "%s on %s and %s on %s %s", dt_spec_text(a->spec), dt_mesh_text(dt_spec_mesh(a->spec)),
           dt_spec_text(b->spec), dt_mesh_text(dt_spec_mesh(b->spec)), otherwise);
}

static void expect_sound(sample *samples)
{
    int pairs = 0;
    qsort(samples, SAMPLES, sizeof *samples, by_layout);
    for (int i = 1; i < SAMPLES; i++) {
        const sample *a = &samples[i - 1], *b = &samples[i];
        if (!dt_spec_same(a->spec, b->spec)) continue;
        pairs += a->spec != b->spec;
        bool alike = memcmp(a->signature, b->signature, sizeof *a->signature) == 0;
        expect_pair(alike, a, b, "are the same, but lie otherwise");
    }
    expect(pairs > SAMPLES / 10, "%d pairs of specs are the same", pairs);
}

static void expect_complete(sample *samples)
{
    qsort(samples, SAMPLES, sizeof *samples, by_signature);
    for (int i = 1; i < SAMPLES; i++) {
        const sample *a = &samples[i - 1], *b = &samples[i];
        if (!a->plain || by_signature(a, b) != 0) continue;
        expect_pair(dt_spec_same(a->spec, b->spec), a, b, "lie alike, but are not the same");
    }
}

static void test_one_layout(void)
{
    unsigned seed = 19;
    static sample samples[SAMPLES];
    dt_mesh *views[VIEWS];
    dt_context *ctx = context_of(12, 7);
    int n = views_of_12(ctx, views);
    for (int i = 0; i < n; i++) expect(views[i] != NULL, "view %d: %s", i, dt_context_error(ctx));
    draw_samples(views, n, samples, &seed);
    expect_sound(samples);
    expect_complete(samples);
    for (int i = 0; i < SAMPLES; i++) free(samples[i].signature);
    expect_no_error(ctx, "layouts");
    dt_context_destroy(&ctx);
}

/* What should be the same, and what should not. */

typedef struct pair_row { bool same; const char *mesh, *spec, *other_mesh, *other; } pair_row;

static const pair_row pairs[] = { /* over 12 ranks */
    { true, "x=3,y=4", "f32[24]@x:S(0),y:S(0)", "r=12", "f32[24]@r:S(0)" },
    { true, "x=3,y=4", "f32[25]@x:S(0),y:S(0)", "r=12", "f32[25]@r:S(0)" },
    { true, "x=3,y=4", "f32[2]@x:S(0),y:S(0)", "r=12", "f32[2]@r:S(0)" },
    { true, "x=3,y=4", "f32[2]@x:S(0),y:S(0)", "x=3,a=2,b=2", "f32[2]@x:S(0),a:S(0),b:S(0)" },
    { true, "x=3,y=4", "f32[25]@x:S(0)", "dp=3,tp=4", "f32[25]@dp:S(0)" },
    { true, "x=3,y=4", "f32[25]@x:S(0)", "x=3,a=2,b=2", "f32[25]@x:S(0)" },
    { true, "x=3,y=4", "f32[25]@x:S(0)", "x=3,one=1,y=4", "f32[25]@x:S(0),one:S(0)" },
    { true, "x=3,y=4", "f32[25]@y:S(0)", "x=3,a=2,b=2", "f32[25]@a:S(0),b:S(0)" },
    { true, "x=3,y=4", "f32[25]", "a=6,b=2", "f32[25]" },
    { true, "x=3,y=4", "f32[25]@x:P,y:P", "r=12", "f32[25]@r:P" },
    { true, "x=3,y=4", "f32[25]@x:P(max),y:P(max)", "a=6,b=2", "f32[25]@b:P(max),a:P(max)" },
    { true, "x=3,y=4", "f32[25]@y:P(avg),x:P", "x=3,a=2,b=2", "f32[25]@b:P(avg),x:P,a:P(avg)" },
    { true, "x=3,y=4", "f32[6,8]@x:S(0)", "x=3,y=4", "f32[48]@x:S(0)" },
    { true, "x=3,y=4", "f32[6,8]@x:S(0)", "x=3,y=4", "f32[3,16]@x:S(0)" },
    { true, "x=3,y=4", "f32[3,8]@x:S(0),y:S(1)", "r=12", "f32[24]@r:S(0)" },
    { true, "x=3,y=4", "f32[3,5]@x:S(0),y:S(1)", "r=12", "f32[15]@r:S(0)" },
    { true, "x=3,y=4", "f32[2,(7 5)]@x:S(1)", "x=3,y=4", "f32[2,7,5]@x:S(1)" },
    { true, "x=3,y=4", "f32[(2 7),5]@y:S(0.1)", "x=3,y=4", "f32[2,7,5]@y:S(1)" },
    { true, "x=3,y=4", "f32[2,7,5]@y:S(1)", "x=3,y=4", "f32[1,2,1,7,5,1]@y:S(3)" },
    { true, "x=3,y=4", "f32[]", "x=3,y=4", "f32[1]" },
    { true, "x=3,y=4", "f32[]@x:P", "x=3,y=4", "f32[1,1,1]@x:P" },
    { true, "x=3,y=4", "f32[24]", "x=3,y=4", "f32[2,3,4]" },
    { true, "x=3,y=4", "f32[0,3]", "x=3,y=4", "f32[3,0]" },
    { false, "x=3,y=4", "f32[24]", "x=3,y=4", "f32[25]" },
    { false, "x=3,y=4", "f32[24]", "x=3,y=4", "f16[24]" },
    { false, "x=3,y=4", "f32[24]@x:S(0),y:S(0)", "x=3,y=4", "f32[24]@y:S(0),x:S(0)" },
    { false, "x=3,y=4", "f32[25]@y:S(0),x:S(0)", "r=12", "f32[25]@r:S(0)" },
    { false, "x=3,y=4", "f32[24]@x:S(0)", "y=4,x=3", "f32[24]@x:S(0)" },   /* other ranks                          */
    { false, "x=3,y=4", "f32[6,8]@x:S(0)", "x=3,y=4", "f32[6,8]@x:S(1)" },
    { false, "x=3,y=4", "f32[7,8]@x:S(0)", "x=3,y=4", "f32[56]@x:S(0)" },  /* 3,2,2 rows are not 19,19,18          */
    { false, "x=3,y=4", "f32[25]@x:P", "x=3,y=4", "f32[25]@x:P(avg)" },
    { false, "x=3,y=4", "f32[25]@x:P", "x=3,y=4", "f32[25]" },
    { false, "x=3,y=4", "f32[25]@x:P", "x=3,y=4", "f32[25]@y:P" },
    { false, "x=3,y=4", "f32[25]@x:P,y:P(avg)", "x=3,y=4", "f32[25]@x:P(avg),y:P" },
};

static void test_pairs(void)
{
    dt_context *ctx = context_of(12, 0);
    for (int i = 0; i < DT_COUNT(pairs); i++) {
        const pair_row *row = &pairs[i];
        const dt_spec *a = dt_spec_parse(dt_mesh_create(ctx, row->mesh), row->spec);
        const dt_spec *b = dt_spec_parse(dt_mesh_create(ctx, row->other_mesh), row->other);
        expect(a && b, "%s, %s: %s", row->spec, row->other, dt_context_error(ctx));
        expect(dt_spec_same(a, b) == row->same && dt_spec_same(b, a) == row->same, "%s on %s and %s on %s: %s",
               row->spec, row->mesh, row->other, row->other_mesh, row->same ? "are the same" : "differ");
        expect_no_error(ctx, row->spec);
    }
    dt_context_destroy(&ctx);
}

/* ---- views of a mesh -------------------------------------------------------------------------------------------- *
 * A mesh of four dims carries a random spec. Dims that split one factor one after the other, or are P of one kind, or
 * R, are flattened to one; the dims are put in another order; what is then written on the view is the same layout. */

/* How the dim behind `item` is flattened with `next`: both stand side by side in one factor's order, or are alike. */
static bool flattens(const written_item *item, const written_item *next)
{
    if (item->place != next->place) return false;
    return item->place == WRITTEN_S ? item->factor == next->factor
         : item->place == WRITTEN_P ? item->kind == next->kind : true;
}

/* Items by factor, each factor's in their order; and R for dims not written. */
static void group_items(written *w)
{
    written grouped = *w;
    bool seen[DT_MAX_MESH_DIMS] = { false };
    for (int i = 0; i < w->n; i++) seen[w->items[i].mesh_dim] = true;
    for (int d = 0; d < dt_mesh_dim_count(w->mesh); d++)
        if (!seen[d]) w->items[w->n++] = (written_item){ WRITTEN_R, .mesh_dim = d };
    grouped.n = 0;
    for (int place = WRITTEN_R; place <= WRITTEN_P; place++)
        for (int f = 0; f < DT_MAX_FACTORS; f++)
            for (int i = 0; i < w->n; i++)
                if ((int)w->items[i].place == place && w->items[i].factor == f)
                    grouped.items[grouped.n++] = w->items[i];
    *w = grouped;
}

/* Items first .. last - 1 on one dim of the view, which is flattened where they are several. */
static dt_mesh *flatten_items(dt_mesh *view, const written *w, int first, int last, char *placed)
{
    char dims[256] = "", name[16];
    unsigned seed = 0;
    written_item item = w->items[first];
    if (last - first == 1) {
        written_item_text(w, &item, &seed, placed);
        return view;
    }
    for (int i = first; i < last; i++) {
        strcat(dims, i > first ? "," : "");
        strcat(dims, dt_mesh_dim_name(w->mesh, w->items[i].mesh_dim));
    }
    snprintf(name, sizeof name, "flat%d", first);
    char text[256] = "";
    written_item_text(w, &item, &seed, text);
    written_add(placed, name);
    written_add(placed, strchr(text, ':'));
    return dt_mesh_flatten(view, dims, name);
}

static dt_mesh *shuffle_dims(dt_mesh *view, unsigned *seed)
{
    int order[DT_MAX_MESH_DIMS], n = dt_mesh_dim_count(view);
    char dims[256] = "";
    for (int d = 0; d < n; d++) {
        int at = (int)below(seed, (unsigned)d + 1);
        order[d] = order[at];
        order[at] = d;
    }
    for (int d = 0; d < n; d++) {
        strcat(dims, d ? "," : "");
        strcat(dims, dt_mesh_dim_name(view, order[d]));
    }
    return dt_mesh_slice(view, dims);
}

static void try_view(dt_mesh *mesh, unsigned *seed)
{
    char placed[WRITTEN_TEXT] = "", text[WRITTEN_TEXT];
    written w = written_draw(mesh, 2, ELEMENTS, seed);
    group_items(&w);
    dt_mesh *view = mesh;
    for (int first = 0, last; first < w.n; first = last) {
        for (last = first + 1; last < w.n && flattens(&w.items[last - 1], &w.items[last]) && below(seed, 3); last++) { }
        written_add(placed, first ? "," : "");
        view = flatten_items(view, &w, first, last, placed);
    }
    view = shuffle_dims(view, seed);
    written_sizes(&w, seed, text);
    written_add(text, "@");
    written_add(text, placed);
    const dt_spec *spec = written_spec(&w, seed), *viewed = dt_spec_parse(view, text);
    expect(dt_spec_same(spec, viewed), "%s on %s and %s on %s are the same: %s", dt_spec_text(spec), dt_mesh_text(mesh),
           text, dt_mesh_text(view), dt_context_error(dt_mesh_context(mesh)));
    expect(dt_spec_check(viewed) == DT_OK, "%s: %s", text, dt_context_error(dt_mesh_context(mesh)));
    for (int world = 0; world < dt_mesh_size(mesh, NULL); world++) {
        bool a[ELEMENTS], b[ELEMENTS];
        boxes_holding(spec, dti_mesh_index(mesh, world), a);
        boxes_holding(viewed, dti_mesh_index(view, world), b);
        expect(memcmp(a, b, sizeof a) == 0, "%s and %s on rank %d", dt_spec_text(spec), dt_spec_text(viewed), world);
    }
}

static void test_views(void)
{
    static const char *const four[] = { "a=2,b=3,c=2,d=2", "a=3,b=1,c=2,d=4", "a=2,b=2,c=2,d=2", "a=5,b=2,c=3,d=1" };
    unsigned seed = 23;
    for (int m = 0; m < DT_COUNT(four); m++) {
        int ranks = 1;
        for (const char *at = four[m]; (at = strchr(at, '=')) != NULL; at++) ranks *= at[1] - '0';
        dt_context *ctx = context_of(ranks, 0);
        for (int i = 0; i < 300; i++) try_view(dt_mesh_create(ctx, four[m]), &seed);
        expect_no_error(ctx, four[m]);
        dt_context_destroy(&ctx);
    }
}

/* Sub-meshes: the layout's ranks are the mesh's. */
static void test_ranks(void)
{
    dt_mesh *views[VIEWS];
    dt_context *ctx = context_of(12, 7);
    int n = views_of_12(ctx, views);
    for (int v = 0; v < n; v++) {
        const dt_spec *spec = dt_spec_parse(views[v], "f32[5]");
        const dti_layout *layout = spec->layout;
        bool has[12] = { false };
        expect(layout->ranks == dt_mesh_size(views[v], NULL), "%s: %d ranks", dt_mesh_text(views[v]), layout->ranks);
        for (int i = 0; i < layout->ranks; i++) has[dt_mesh_rank(views[v], i)] = true;
        for (int world = -1, i = 0; world < 14; world++) {
            bool member = world >= 0 && world < 12 && has[world];
            expect(dti_layout_has(layout, world) == member, "%s: rank %d", dt_mesh_text(views[v]), world);
            if (!member) continue;
            expect(dti_layout_rank(layout, i++) == world, "%s: rank %d in order", dt_mesh_text(views[v]), world);
        }
        for (int u = 0; u < n; u++) {
            bool same = layout->ranks == dt_mesh_size(views[u], NULL);
            for (int i = 0; same && i < layout->ranks; i++) same = has[dt_mesh_rank(views[u], i)];
            expect(dti_layout_same_ranks(layout, dt_spec_parse(views[u], "f16[3]")->layout) == same, "%s and %s",
                   dt_mesh_text(views[v]), dt_mesh_text(views[u]));
        }
    }
    expect_no_error(ctx, "ranks");
    dt_context_destroy(&ctx);
}

/* ---- known cases ------------------------------------------------------------------------------------------------ */

typedef struct local_row { int ranks; const char *mesh, *spec; int dim; int64_t sizes[12]; } local_row;

static const local_row locals[] = {
    { 4, "x=4", "f32[13,3]@x:S(0)", 0, { 4, 3, 3, 3 } },
    { 4, "x=4", "f32[3,14]@x:S(1)", 1, { 4, 3, 4, 3 } },
    { 4, "x=4", "f32[2,8]@x:S(0)", 0, { 1, 0, 1, 0 } },
    { 4, "x=4", "f32[2,8]@x:S(1)", 1, { 2, 2, 2, 2 } },
    { 4, "x=4", "f32[3,256]@x:S(0)", 0, { 1, 1, 1, 0 } },
    { 4, "x=4", "f32[(3 256)]@x:S(0)", 0, { 256, 256, 256, 0 } },
    { 4, "x=4", "f32[(6 256)]@x:S(0)", 0, { 512, 256, 512, 256 } },
    { 4, "x=4", "f32[0,8]@x:S(0)", 0, { 0 } },
    { 4, "x=4", "f32[1,8]@x:S(0)", 0, { 1 } },
    { 4, "x=2,y=2", "f32[9,5]@x:S(0),y:S(0)", 0, { 3, 2, 2, 2 } },
    { 4, "x=2,y=2", "f32[9,5]@y:S(0),x:S(0)", 0, { 3, 2, 2, 2 } },
    { 4, "x=2,y=2", "f32[10,5]@x:S(0),y:S(0)", 0, { 3, 2, 3, 2 } },
    { 4, "x=2,y=2", "f32[10,5]@y:S(0),x:S(0)", 0, { 3, 3, 2, 2 } },
    { 4, "x=2,y=2", "f32[3,5]@x:S(0),y:S(0)", 0, { 1, 1, 1, 0 } },
    { 4, "x=2,y=2", "f32[1,3]@x:S(0),y:S(0)", 0, { 1, 0, 0, 0 } },
    { 4, "x=2,y=2", "f32[1,3]@x:S(0),y:S(1)", 1, { 2, 1, 2, 1 } },
    { 4, "x=4,y=1", "f32[9,5]@y:S(0)", 0, { 9, 9, 9, 9 } },
    { 4, "x=4,y=1", "f32[9,5]@y:S(0),x:S(0)", 0, { 3, 2, 2, 2 } },
    { 4, "x=4,y=1", "f32[9,5]@y:P(max),x:P", 0, { 9, 9, 9, 9 } },
    { 6, "x=6", "f32[6,256]@x:S(1)", 1, { 43, 43, 42, 43, 43, 42 } },
    { 6, "x=6", "f32[(6 256)]@x:S(0.1)", 0, { 258, 258, 252, 258, 258, 252 } },
    { 2, "x=2", "f32[(2 4)]@x:S(0.1)", 0, { 4, 4 } },
    { 2, "x=2", "f32[8,(7 128)]@x:S(1)", 1, { 512, 384 } },
    { 6, "x=2,y=3", "f32[10]@x:S(0),y:S(0)", 0, { 2, 2, 1, 2, 2, 1 } },
    { 6, "x=2,y=3", "f32[10]@y:S(0),x:S(0)", 0, { 2, 1, 2, 2, 2, 1 } },
    { 6, "x=2,y=3", "f32[(5 6)]@x:S(0.0),y:S(0.1)", 0, { 6, 6, 6, 4, 4, 4 } },
    { 5, "x=5", "f32[13]@x:S(0)", 0, { 3, 3, 2, 3, 2 } },
    { 7, "x=7", "f32[10]@x:S(0)", 0, { 2, 1, 2, 1, 2, 1, 1 } },
    { 12, "x=3,y=2,z=2", "f32[13]@x:S(0),z:S(0)", 0, { 3, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2 } },
};

static void test_locals(void)
{
    for (int i = 0; i < DT_COUNT(locals); i++) {
        const local_row *row = &locals[i];
        dt_context *ctx = context_of(row->ranks, 0);
        const dt_spec *spec = dt_spec_parse(dt_mesh_create(ctx, row->mesh), row->spec);
        for (int rank = 0; rank < row->ranks; rank++) {
            int64_t size = dt_spec_local_shape(spec, rank).dim[row->dim];
            expect(size == row->sizes[rank], "%s on %s: rank %d has %lld", row->spec, row->mesh, rank, (long long)size);
        }
        expect(dt_spec_check(spec) == DT_OK, "%s: %s", row->spec, dt_context_error(ctx));
        dt_context_destroy(&ctx);
    }
}

/* Flattening joins the factor lists of two dims, unflattening takes them apart: no element moves. */
typedef struct join_row { int ranks; const char *mesh, *spec, *joined, *text; } join_row;

static const join_row joins[] = {
    { 6, "x=6", "f32[6,256]@x:S(0)", "f32[(6 256)]@x:S(0)", "f32[1536]@x:S(0)" },
    { 6, "x=6", "f32[6,256]@x:S(1)", "f32[(6 256)]@x:S(0.1)", "f32[(6 256)]@x:S(0.1)" },
    { 2, "x=2", "f32[2,4]@x:S(1)", "f32[(2 4)]@x:S(0.1)", "f32[(2 4)]@x:S(0.1)" },
    { 6, "x=2,y=3", "f32[5,6]@x:S(0),y:S(1)", "f32[(5 6)]@x:S(0.0),y:S(0.1)", "f32[(5 6)]@x:S(0.0),y:S(0.1)" },
    { 6, "x=2,y=3", "f32[6,4]@x:S(0),y:S(0)", "f32[(6 4)]@x:S(0),y:S(0)", "f32[24]@x:S(0),y:S(0)" },
    { 6, "x=3,y=2", "f32[6,12,24]@x:S(0),y:S(0)", "f32[(6 12),24]@x:S(0),y:S(0)", "f32[72,24]@x:S(0),y:S(0)" },
    { 6, "x=3,y=2", "f32[1,1,12]@x:S(2)", "f32[(1 1 12)]@x:S(0.2)", "f32[12]@x:S(0)" },
    { 4, "x=4", "f32[6,256]@x:S(0)", "f32[(6 256)]@x:S(0)", "f32[(6 256)]@x:S(0.0)" },
    { 4, "x=4", "f32[3,256]@x:S(0)", "f32[(3 256)]@x:S(0)", "f32[(3 256)]@x:S(0.0)" },
};

static void test_joins(void)
{
    for (int i = 0; i < DT_COUNT(joins); i++) {
        const join_row *row = &joins[i];
        dt_context *ctx = context_of(row->ranks, 0);
        dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
        const dt_spec *spec = dt_spec_parse(mesh, row->spec), *joined = dt_spec_parse(mesh, row->joined);
        expect(strcmp(dt_spec_text(joined), row->text) == 0, "%s is %s", row->joined, dt_spec_text(joined));
        expect(dt_spec_same(spec, joined), "%s and %s are the same", row->spec, row->joined);
        expect_no_error(ctx, row->spec);
        dt_context_destroy(&ctx);
    }
}

/* The mesh dim of size 1 places nothing: every spec is the one without it. */
static void test_size_1(void)
{
    static const char *const places[] = { "R", "S(0)", "S(1)", "P", "P(max)" };
    dt_context *ctx = context_of(4, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4,one=1"), *bare = dt_mesh_create(ctx, "x=4");
    for (int x = 0; x < DT_COUNT(places); x++)
        for (int one = 0; one < DT_COUNT(places); one++) {
            char text[64], without[64];
            snprintf(without, sizeof without, "f32[9,5]@x:%s", places[x]);
            snprintf(text, sizeof text, "f32[9,5]@one:%s,x:%s", places[one], places[x]);
            const dt_spec *spec = dt_spec_parse(mesh, text);
            expect(spec && spec == dt_spec_parse(mesh, without), "%s is %s", text, without);
            expect(dt_spec_same(spec, dt_spec_parse(bare, without)), "%s without the dim", text);
        }
    expect_no_error(ctx, "size 1");
    dt_context_destroy(&ctx);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------ */

static void test_boxes(void)
{
    dt_box boxes[8];
    dt_context *ctx = context_of(4, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[(2 4),5,(3 2)]@x:S(0.1),y:S(2.1)");
    memset(boxes, 0x55, sizeof boxes);
    expect(dt_spec_boxes(spec, 3, boxes, 2) == 6, "2 x 1 x 3 boxes");
    expect(boxes[2].n == 0x55555555, "at most max are written");
    expect(dt_spec_boxes(spec, 3, NULL, 0) == 6 && dt_spec_boxes(spec, 3, boxes, 8) == 6, "as many whatever max is");
    expect(boxes[0].n == 3 && boxes[0].lo[0] == 2 && boxes[0].hi[0] == 4 && boxes[0].hi[1] == 5, "the first box");
    expect(boxes[0].lo[2] == 1 && boxes[0].hi[2] == 2 && boxes[1].lo[2] == 3 && boxes[3].lo[0] == 6, "and others");
    expect(dt_spec_boxes(spec, 3, NULL, 1) == 0, "nowhere to write");
    expect_error(ctx, DT_ERR_ARG, "room for 1 boxes at NULL", "nowhere to write");
    expect(dt_spec_boxes(spec, 3, boxes, -1) == 0, "a negative max");
    expect_error(ctx, DT_ERR_ARG, "room for -1 boxes", "a negative max");
    expect(dt_spec_boxes(dt_spec_parse(mesh, "u8[(4294967296 2)]@x:S(0.1)"), 3, boxes, 0) == 0, "2^32 boxes");
    expect_error(ctx, DT_ERR_SHAPE, "4294967296 boxes on one rank", "2^32 boxes");
    expect(dt_spec_boxes(dt_spec_parse(mesh, "f32[]"), 3, boxes, 8) == 1 && boxes[0].n == 0, "a scalar is one box");
    expect(dt_spec_boxes(dt_spec_parse(mesh, "f32[3,0]"), 3, boxes, 8) == 0, "no elements, no box");
    expect(dt_spec_boxes(dt_spec_parse(mesh, "f32[1]@x:S(0)"), 3, boxes, 8) == 0, "nothing held, no box");
    spec = dt_spec_parse(mesh, "u8[9223372036854775807]@x:S(0),y:S(0)");
    expect(dt_spec_boxes(spec, 3, boxes, 8) == 1 && boxes[0].hi[0] == INT64_MAX, "2^63 - 1 elements");
    expect(dt_spec_local_shape(spec, 0).dim[0] == 1ll << 61 && boxes[0].lo[0] == 3ll << 61, "in four");
    expect_no_error(ctx, "boxes");
    dt_context_destroy(&ctx);
}

/* ---- many ranks ------------------------------------------------------------------------------------------------- */

static void try_many(dt_mesh *mesh, const char *text, int64_t copies)
{
    dt_box box;
    int64_t elements = 1, held = 0;
    const dt_spec *spec = dt_spec_parse(mesh, text);
    dt_shape shape = dt_spec_shape(spec);
    for (int d = 0; d < shape.n; d++) elements *= shape.dim[d];
    for (int rank = 0; rank < dt_mesh_size(mesh, NULL); rank++) {
        int64_t local = 1, boxed = 1;
        dt_shape size = dt_spec_local_shape(spec, rank);
        int n = dt_spec_boxes(spec, rank, &box, 1);
        for (int d = 0; d < shape.n; d++) {
            local *= size.dim[d];
            boxed *= n ? box.hi[d] - box.lo[d] : 0;
        }
        expect(n > 1 || local == boxed, "%s: rank %d", text, rank);
        held += local;
    }
    expect(spec && held == copies * elements, "%s: %lld elements", text, (long long)held);
    expect(dt_spec_check(spec) == DT_OK, "%s: %s", text, dt_context_error(dt_mesh_context(mesh)));
}

static void test_many_ranks(void)
{
    dt_context *ctx = context_of(16384, 12345);
    dt_mesh *mesh = dt_mesh_create(ctx, "pp=16,dp=128,tp=8");
    try_many(mesh, "f32[53248,16384]@tp:S(0),dp:S(0)", 16);
    try_many(mesh, "f32[53249,3]@tp:S(0),dp:S(0),pp:S(0)", 1);
    try_many(mesh, "f32[1000,1000]@dp:S(0),pp:P,tp:S(1)", 16);
    try_many(mesh, "bf16[(2 53248),16384]@tp:S(0.1),dp:S(1)", 16);
    try_many(mesh, "f32[1000000007]@tp:P,pp:P", 16384);
    try_many(mesh, "f32[7]@pp:S(0),dp:S(0),tp:S(0)", 1);
    dt_mesh *flat = dt_mesh_flatten(mesh, "tp,dp", "fsdp");
    expect(dt_spec_same(dt_spec_parse(flat, "f32[53249,3]@fsdp:S(0)"),
                        dt_spec_parse(mesh, "f32[53249,3]@tp:S(0),dp:S(0)")), "flattened");
    expect(ctx->arena.total < 128 << 10, "%zu bytes: nothing grows with the ranks", ctx->arena.total);
    expect_no_error(ctx, "many ranks");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "holdings", test_holdings },
    { "neighbours", test_neighbours },
    { "one_layout", test_one_layout },
    { "pairs", test_pairs },
    { "views", test_views },
    { "ranks", test_ranks },
    { "locals", test_locals },
    { "joins", test_joins },
    { "size_1", test_size_1 },
    { "boxes", test_boxes },
    { "many_ranks", test_many_ranks },
};

const suite the_suite = { "layout", rows, DT_COUNT(rows) };
