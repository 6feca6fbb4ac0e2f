/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands on different views of the same ranks: values and gradients as on one mesh, where results lie, and what moves
 * for it: nothing, where views have a common refinement. */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

static dt_tensor *leaf(dt_mesh *mesh, const char *spec, uint64_t seed)
{
    return dt_require_grad(dt_randn(dt_spec_parse(mesh, spec), seed));
}

static int64_t bytes_of(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t n = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) n += counters.bytes[kind];
    return n;
}

/* Is x, on any mesh, what due is? Collective. */
static void expect_close(dt_tensor *x, dt_tensor *due, const char *what)
{
    if (!expect(x && due, "%s: %s, due %s", what, x ? "x" : "nothing", due ? "y" : "nothing")) return;
    dt_tensor *there = dt_redistribute_to(dt_detach(x), dt_spec_mesh(dt_tensor_spec(due)), "");
    expect(dt_tensor_close(there, dt_detach(due), 1e-11, 1e-12), "%s: %s on %s", what, dt_spec_text(dt_tensor_spec(x)),
           dt_mesh_text(dt_spec_mesh(dt_tensor_spec(x))));
}

/* ---- two operands ------------------------------------------------------------------------------------------------ */

typedef enum view { WHOLE, FLAT, OTHER, TURNED, VIEWS } view; /* x=2,y=.., all of it, 3 x 2 for 2 x 3, y before x */

static void make_views(dt_context *ctx, dt_mesh **views)
{
    char other[32];
    int ranks = dt_rank_count(ctx);
    snprintf(other, sizeof other, "v=%d,w=2", ranks / 2);
    views[WHOLE] = dt_mesh_create(ctx, "x=2,y");
    views[FLAT] = dt_mesh_flatten(views[WHOLE], "x,y", "all");
    views[OTHER] = dt_mesh_split(views[FLAT], "all", other);
    views[TURNED] = dt_mesh_flatten(views[WHOLE], "y,x", "turned");
}

static const struct given { const char *op; view first, second; const char *a, *b; } given[] = {
    { "add", WHOLE, FLAT, "f64[12,6]@x:S(0)", "f64[12,6]@all:S(0)" },
    { "add", FLAT, WHOLE, "f64[13,6]@all:S(0)", "f64[13,6]@x:S(0),y:S(0)" },
    { "add", FLAT, WHOLE, "f64[13,6]@all:P", "f64[13,6]@y:S(0)" },
    { "mul", FLAT, WHOLE, "f64[13,6]", "f64[13,6]@y:P" },
    { "mul", WHOLE, FLAT, "f64[13,6]@x:P", "f64[6]" },
    { "mul", FLAT, OTHER, "f64[12,6]@all:S(0)", "f64[12,6]@v:S(0),w:S(0)" },
    { "add", WHOLE, OTHER, "f64[12,6]@x:S(0)", "f64[12,6]@v:S(0)" },
    { "mul", WHOLE, OTHER, "f64[12,6]@x:P", "f64[12,6]@v:P,w:S(1)" },
    { "add", TURNED, FLAT, "f64[12,6]@turned:S(0)", "f64[12,6]@all:S(1)" },
    { "matmul", FLAT, WHOLE, "f64[12,6]@all:S(0)", "f64[6,8]@x:S(1)" },
    { "matmul", WHOLE, FLAT, "f64[12,6]@x:S(0),y:S(1)", "f64[6,8]@all:S(1)" },
    { "matmul", FLAT, WHOLE, "f64[12,6]", "f64[6,8]@x:S(1)" },
    { "matmul", OTHER, WHOLE, "f64[12,6]@w:S(1)", "f64[6,8]@y:S(0)" },
};

static void gradients(const struct given *g, dt_tensor *a, dt_tensor *b, dt_tensor **y)
{
    *y = dt_apply(dt_op_find(g->op), (dt_tensor *[]){ a, b }, 2, NULL);
    dt_tensor *seed = *y ? dt_randn(dt_spec_create(dt_spec_mesh(dt_tensor_spec(*y)), DT_F64,
                                                   dt_spec_shape(dt_tensor_spec(*y)), ""), 9) : NULL;
    expect(dt_backward(*y, seed) == DT_OK, "%s %s %s: %s", g->op, g->a, g->b,
           dt_context_error(dt_mesh_context(dt_spec_mesh(dt_tensor_spec(a)))));
}

/* The result placed on the mesh on which it lies without that. */
static void expect_placed(const struct given *g, dt_tensor *a, dt_tensor *b, dt_tensor *y, dt_tensor *due)
{
    char placements[32];
    dt_mesh *mesh = dt_spec_mesh(dt_tensor_spec(y));
    snprintf(placements, sizeof placements, "%s:S(1),*", dt_mesh_dim_name(mesh, 0));
    dt_tensor *x = dt_apply_placed(dt_op_find(g->op), (dt_tensor *[]){ a, b }, 2, NULL, placements);
    expect(x && dt_tensor_spec(x) == dt_spec_replace(dt_tensor_spec(y), placements), "%s %s %s as %s", g->op, g->a,
           g->b, placements);
    expect_close(x, due, placements);
}

static void expect_explained(const struct given *g, const dt_tensor *a, const dt_tensor *b, dt_tensor *y)
{
    const char *text = dt_explain(y);
    bool said = strncmp(text, "op ", 3) == 0 && strstr(text, dt_spec_text(dt_tensor_spec(a)))
        && strstr(text, dt_spec_text(dt_tensor_spec(b)));
    expect(said, "%s %s %s: %s", g->op, g->a, g->b, text);
}

/* P is random parts of a value: that of one mesh is made whole for the other. */
static dt_status two(dt_context *ctx, void *arg)
{
    const struct given *g = arg;
    dt_mesh *views[VIEWS];
    make_views(ctx, views);
    dt_tensor *a = leaf(views[g->first], g->a, 1), *b = leaf(views[g->second], g->b, 2), *y, *due;
    dt_tensor *whole_a = dt_require_grad(dt_redistribute_to(dt_detach(a), views[WHOLE], ""));
    dt_tensor *whole_b = dt_require_grad(dt_redistribute_to(dt_detach(b), views[WHOLE], ""));
    gradients(g, a, b, &y);
    gradients(g, whole_a, whole_b, &due);
    expect_close(y, due, g->op);
    expect_placed(g, a, b, y, due);
    expect_explained(g, a, b, y);
    expect_close(dt_grad(a), dt_grad(whole_a), g->a);
    expect_close(dt_grad(b), dt_grad(whole_b), g->b);
    expect(dt_spec_mesh(dt_tensor_spec(dt_grad(a))) == views[g->first]
           && dt_spec_mesh(dt_tensor_spec(dt_grad(b))) == views[g->second], "gradients lie on their operands' meshes");
    return dt_context_status(ctx);
}

static void operands_on_views(void)
{
    for (int i = 0; i < DT_COUNT(given); i++) {
        launch(4, two, &given[i]);
        launch(6, two, &given[i]);
    }
}

/* Where results lie, and that nothing moves. */
static dt_status placed(dt_context *ctx, void *arg)
{
    (void)arg;
    static const struct { view first, second; const char *a, *b, *mesh, *result; } rows[] = {
        { WHOLE, FLAT, "f64[12,6]@x:S(0),y:S(0)", "f64[12,6]@all:S(0)", "x=2,y=2", "x:S(0),y:S(0)" },
        { FLAT, WHOLE, "f64[12,6]@all:S(0)", "f64[12,6]@x:S(0),y:S(0)", "all=4", "all:S(0)" },
        { FLAT, WHOLE, "f64[12,6]", "f64[12,6]@x:S(0)", "all.0=2,all.1=2", "all.0:S(0)" },
        { FLAT, WHOLE, "f64[12,6]", "f64[12,6]@x:P,y:P", "all=4", "all:P" },
        { FLAT, WHOLE, "f64[12,6]", "f64[12,6]", "all=4", "" },
    };
    dt_mesh *views[VIEWS];
    make_views(ctx, views);
    int64_t before = bytes_of(views[WHOLE]) + bytes_of(views[FLAT]);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    for (int i = 0; i < DT_COUNT(rows); i++) {
        dt_tensor *a = dt_full(dt_spec_parse(views[rows[i].first], rows[i].a), 2);
        dt_tensor *y = dt_mul(a, dt_full(dt_spec_parse(views[rows[i].second], rows[i].b), 3));
        if (!expect(y != NULL, "%s", dt_context_error(ctx))) break;
        const dt_spec *spec = dt_tensor_spec(y);
        expect(strcmp(dt_mesh_text(dt_spec_mesh(spec)), rows[i].mesh) == 0 && dt_spec_has(spec, rows[i].result),
               "row %d: %s on %s", i, dt_spec_text(spec), dt_mesh_text(dt_spec_mesh(spec)));
    }
    dt_scope_pop(ctx, scope, NULL);
    expect(bytes_of(views[WHOLE]) + bytes_of(views[FLAT]) == before, "nothing moves");
    return dt_context_status(ctx);
}

static void results_lie_on_the_first_mesh(void) { launch(4, placed, NULL); }

/* ---- attention with fewer heads of keys than ranks --------------------------------------------------------------- */

enum { B = 2, S = 5, HIDDEN = 12, D = 4 };

typedef struct model { dt_mesh *mesh, *kv; dt_tensor *x, *wq, *wk, *wv, *wo; } model;

static dt_tensor *weight(dt_mesh *mesh, int rows, int columns, const char *placements, uint64_t seed)
{
    char spec[64];
    snprintf(spec, sizeof spec, "f64[%d,%d]@%s", rows, columns, placements);
    return leaf(mesh, spec, seed);
}

static dt_tensor *heads(dt_tensor *x, dt_tensor *w)
{
    return dt_unflatten(dt_linear(x, w, NULL), 2, DT_SHAPE(-1, D));
}

static dt_tensor *forward(const model *m)
{
    dt_tensor *q = heads(m->x, m->wq), *k = heads(m->x, m->wk), *v = heads(m->x, m->wv);
    dt_tensor *y = dt_attention(q, k, v, &(dt_attention_params){ .causal = true });
    return dt_redistribute(dt_linear(dt_flatten(y, 2, 3), m->wo, NULL), "");
}

/* kv weights lie on a view in which dims of the mesh are split by their heads; everything else on the mesh. */
static dt_status grouped(dt_context *ctx, void *arg)
{
    const int *sizes = arg; /* heads of keys, ranks for each of them, heads of queries */
    char mesh[32], split[32];
    int groups = sizes[0], q = sizes[2], k = sizes[0];
    snprintf(mesh, sizeof mesh, "dp,tp=%d", groups * sizes[1]);
    snprintf(split, sizeof split, "kv=%d,rep=%d", groups, sizes[1]);
    model m = { .mesh = dt_mesh_create(ctx, mesh) }, one;
    m.kv = dt_mesh_split(m.mesh, "tp", split);
    m.x = leaf(m.mesh, "f64[2,5,12]", 1);
    m.wq = weight(m.mesh, q * D, HIDDEN, "tp:S(0)", 2);
    m.wk = weight(m.kv, k * D, HIDDEN, "kv:S(0)", 3);
    m.wv = weight(m.kv, k * D, HIDDEN, "kv:S(0)", 4);
    m.wo = weight(m.mesh, HIDDEN, q * D, "tp:S(1)", 5);
    one = (model){ m.mesh, m.mesh, leaf(m.mesh, "f64[2,5,12]", 1), weight(m.mesh, q * D, HIDDEN, "tp:R", 2),
                   weight(m.mesh, k * D, HIDDEN, "tp:R", 3), weight(m.mesh, k * D, HIDDEN, "tp:R", 4),
                   weight(m.mesh, HIDDEN, q * D, "tp:R", 5) };
    dt_tensor *due = forward(&one), *seed = dt_randn(dt_tensor_spec(due), 7);
    dt_backward(due, seed);
    dt_counters before = dt_mesh_counters(m.mesh, NULL);
    dt_tensor *y = forward(&m);
    dt_counters after = dt_mesh_counters(m.mesh, NULL);
    expect(after.calls[DT_COMM_ALL_REDUCE] - before.calls[DT_COMM_ALL_REDUCE] == 1 && after.implied == before.implied,
           "one all-reduce, which was asked for");
    expect(y && dt_spec_mesh(dt_tensor_spec(y)) == m.mesh, "the result lies on the mesh");
    expect_close(y, due, "forward");
    expect(y && dt_backward(y, seed) == DT_OK, "%s", dt_context_error(ctx));
    expect_close(dt_grad(m.x), dt_grad(one.x), "x");
    expect_close(dt_grad(m.wq), dt_grad(one.wq), "wq");
    expect_close(dt_grad(m.wk), dt_grad(one.wk), "wk");
    expect_close(dt_grad(m.wv), dt_grad(one.wv), "wv");
    expect_close(dt_grad(m.wo), dt_grad(one.wo), "wo");
    expect(dt_spec_has(dt_tensor_spec(dt_grad(m.wk)), "kv:S(0),rep:P"), "%s waits for its sum over those who repeat it",
           dt_spec_text(dt_tensor_spec(dt_grad(m.wk))));
    return dt_context_status(ctx);
}

static const int groupings[][3] = { { 2, 2, 4 }, { 2, 2, 8 }, { 3, 2, 6 }, { 2, 3, 6 }, { 8, 2, 16 } };

static void fewer_heads_than_ranks(void)
{
    for (int i = 0; i < DT_COUNT(groupings); i++)
        launch(groupings[i][0] * groupings[i][1], grouped, groupings[i]);
    launch(8, grouped, (void *)(uintptr_t)groupings[0]);
}

/* ---- other ranks ------------------------------------------------------------------------------------------------- */

static dt_status refused(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_mesh *row = dt_mesh_select(mesh, "x=0"), *column = dt_mesh_select(mesh, "y=0");
    dt_tensor *a = dt_zeros(dt_spec_parse(mesh, "f64[4]@x:S(0)")), *b = dt_zeros(dt_spec_parse(row, "f64[4]@y:S(0)"));
    dt_add(a, b);
    expect_error(ctx, DT_ERR_PLACEMENT, "add(x, y): f64[4]@x:S(0) lies on mesh x=2,y=2 and f64[4]@y:S(0) on y=2, over "
                 "other ranks; expected operands over the same ranks: see dt_redistribute_to", "some of the ranks");
    dt_add(b, dt_zeros(dt_spec_parse(column, "f64[4]")));
    expect_error(ctx, DT_ERR_PLACEMENT, "add(x, y): f64[4]@y:S(0) lies on mesh y=2 and f64[4] on x=2", "as many ranks");
    expect(dt_add(a, dt_redistribute_to(b, mesh, "x:S(0)")) != NULL, "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void other_ranks_are_refused(void) { launch(4, refused, NULL); }

static const test_row rows[] = {
    { "operands on views", operands_on_views },
    { "results lie on the first mesh", results_lie_on_the_first_mesh },
    { "fewer heads than ranks", fewer_heads_than_ranks },
    { "other ranks are refused", other_ranks_are_refused },
};

const suite the_suite = { "meshes", rows, DT_COUNT(rows) };
