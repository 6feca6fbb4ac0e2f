/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing models: where parameters come to lie, what is refused, that nothing of it changes a value, and what a step
 * communicates. A placed Llama is held against one that is whole on every rank. */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"
#include "models/placing.h"

enum { BATCH = 4, LENGTH = 8, MOST_PARAMS = 64 };

#define DT_F64_LLAMA .vocab = 37, .width = 24, .layers = 2, .heads = 4, .kv_heads = 2, .mlp_width = 40, .dtype = DT_F64

/* ---- models ------------------------------------------------------------------------------------------------------ */

static dt_module *make(dt_mesh *mesh, const placing *p, bool placed)
{
    dt_module *model = dt_nn_llama(mesh, &p->llama);
    if (placed) placing_apply(model, p);
    dt_module_materialize(model, 5);
    return model;
}

static void fill_ids(const dt_box *box, void *values, void *arg)
{
    int64_t *v = values, vocab = *(const int64_t *)arg;
    for (int64_t b = box->lo[0]; b < box->hi[0]; b++)
        for (int64_t s = box->lo[1]; s < box->hi[1]; s++) *v++ = (b * 31 + s * 17 + s * s) % vocab;
}

static dt_tensor *loss_of(dt_module *model, const placing *p, bool placed)
{
    dt_mesh *mesh = dt_module_mesh(model);
    const dt_spec *spec = dt_spec_create(mesh, DT_I64, DT_SHAPE(BATCH, LENGTH), placed ? p->batch : NULL);
    dt_tensor *ids = dt_from_fn(spec, fill_ids, (void *)(uintptr_t)&p->llama.vocab);
    return dt_cross_entropy(dt_module_call(model, ids), ids, NULL);
}

static void expect_alike(dt_tensor *x, dt_tensor *y, double tolerance, const char *what, const char *path)
{
    dt_tensor *a = x ? dt_redistribute_to(x, dt_spec_mesh(dt_tensor_spec(y)), "") : NULL;
    expect(a && y && dt_tensor_close(a, dt_redistribute(y, ""), tolerance, tolerance), "%s of %s", what, path);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static dt_status compare(dt_context *ctx, const placing *p, dt_module *placed, dt_module *whole)
{
    dt_tensor *a[MOST_PARAMS], *b[MOST_PARAMS];
    int n = dt_module_params(placed, NULL, a, MOST_PARAMS);
    expect(n == dt_module_params(whole, NULL, b, MOST_PARAMS) && n > 0, "%d parameters", n);
    double tolerance = p->llama.dtype == DT_F64 && !p->shard.compute ? 1e-11 : 0.05;
    for (int i = 0; i < n && i < MOST_PARAMS; i++) expect_alike(a[i], b[i], 0, "value", dt_param_path(a[i]));
    for (int step = 0; step < 2; step++) {
        dt_tensor *loss = loss_of(placed, p, true), *due = loss_of(whole, p, false);
        expect_alike(loss, due, tolerance, "loss", p->mesh);
        dt_backward(loss, NULL);
        dt_backward(due, NULL);
    }
    for (int i = 0; i < n && i < MOST_PARAMS; i++)
        expect_alike(dt_grad(a[i]), dt_grad(b[i]), tolerance, "gradient", dt_param_path(a[i]));
    return dt_context_status(ctx);
}

static dt_status values_rank(dt_context *ctx, void *arg)
{
    const placing *p = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, p->mesh);
    return compare(ctx, p, make(mesh, p, true), make(mesh, p, false));
}

/* Fully sharded by hand: stored in pieces, used whole. */
static dt_status by_hand_rank(dt_context *ctx, void *arg)
{
    const placing *p = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, p->mesh);
    dt_module *placed = dt_nn_llama(mesh, &p->llama);
    dt_place(placed, "**", "dp:S(0)", "");
    dt_module_materialize(placed, 5);
    compare(ctx, p, placed, make(mesh, p, false));
    dt_tensor *w = NULL;
    dt_module_params(placed, "layers.1.mlp.up.weight", &w, 1);
    expect(dt_spec_has(dt_tensor_spec(dt_grad(w)), "dp:S(0)"), "the gradient is stored as the weight");
    return dt_context_status(ctx);
}

#define TP tp_rows, TP_ROWS
#define SP sp_rows, SP_ROWS
#define NO_ROWS NULL, 0

static const placing placings[] = {
    { "dp=2", "dp:S(0)", NO_ROWS, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 },
    { "tp=2", "", TP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 },
    { "tp=4", "", TP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 4 },       /* 2 heads of k and v on 4 ranks        */
    { "tp=3", "", TP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 3 },       /* 4 heads on 3 ranks, 2 on 3           */
    { "tp=2", "", SP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 },
    { "tp=4", "", SP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 4 },
    { "tp=3", "", SP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 3 },
    { "dp=2,tp=2", "dp:S(0)", SP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=4", "dp:S(0)", NO_ROWS, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=3", "dp:S(0)", NO_ROWS, "dp", { 0 }, false, true, { DT_F64_LLAMA }, 3 },
    { "dp=2,tp=2", "dp:S(0)", TP, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=2,tp=2", "dp:S(0)", SP, "dp", { 0 }, false, true, { DT_F64_LLAMA }, 4 },
    { "dp=2,tp=4", "dp:S(0)", SP, "dp", { 0 }, true, false, { DT_F64_LLAMA }, 8 },
    { "dp=2,tp=3", "dp:S(0)", SP, "dp", { .keep_gathered = true, .prefetch = -1 }, true, true, { DT_F64_LLAMA }, 6 },
    { "dp_replicate=2,dp=2", "dp_replicate:S(0),dp:S(0)", NO_ROWS, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=2,tp=2", "dp:S(0)", SP, "dp", { .zero = 1 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=2,tp=2", "dp:S(0)", SP, "dp", { .zero = 2 }, false, false, { DT_F64_LLAMA }, 4 },
    { "dp=2,tp=2", "dp:S(0)", TP, "dp", { 0 }, false, false, { DT_F64_LLAMA, .tied = true }, 4 },
};

static void test_values(void)
{
    for (int i = 0; i < DT_COUNT(placings); i++) launch(placings[i].ranks, values_rank, &placings[i]);
}

/* ---- where parameters lie ---------------------------------------------------------------------------------------- */

typedef struct lying { const char *path, *spec; } lying;

static void expect_lying(dt_module *model, const lying *due, int n)
{
    for (int i = 0; i < n; i++) {
        dt_tensor *x = NULL;
        dt_module_params(model, due[i].path, &x, 1);
        const char *text = x ? dt_spec_text(dt_tensor_spec(x)) : "nowhere";
        expect(x && dt_spec_check(dt_tensor_spec(x)) == DT_OK, "%s is a spec", text);
        expect(strcmp(text, due[i].spec) == 0, "%s is %s, expected %s", due[i].path, text, due[i].spec);
    }
}

static void test_styles(void)
{
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const placing p = { .rows = sp_rows, .row_count = SP_ROWS, .llama = { DT_F64_LLAMA } };
    const lying due[] = {
        { "embed.weight", "f64[37,24]@tp:S(0)" },
        { "layers.0.attn_norm.weight", "f64[24]" },
        { "layers.0.attn.wq.weight", "f64[24,24]@tp:S(0)" },
        { "layers.1.attn.wk.weight", "f64[12,24]@tp.0:S(0)" },
        { "layers.1.attn.wo.weight", "f64[24,24]@tp:S(1)" },
        { "layers.1.mlp.gate.weight", "f64[40,24]@tp:S(0)" },
        { "layers.1.mlp.down.weight", "f64[24,40]@tp:S(1)" },
        { "head.weight", "f64[37,24]@tp:S(0)" },
    };
    const lying sharded[] = {
        { "embed.weight", "f64[37,24]@tp:S(0),dp:S(0)" },
        { "layers.0.attn_norm.weight", "f64[24]@dp:S(0)" },
        { "layers.1.attn.wk.weight", "f64[12,24]@tp.0:S(0),dp:S(0)" },
        { "layers.1.attn.wo.weight", "f64[24,24]@dp:S(0),tp:S(1)" },
    };
    dt_module *model = make(mesh, &p, true);
    expect_lying(model, due, DT_COUNT(due));
    for (int first = 0; first < 2; first++) {
        placing both = p;
        both.sharded = "dp";
        both.shard_first = first;
        expect_lying(make(mesh, &both, true), sharded, DT_COUNT(sharded));
    }
    expect_no_error(ctx, "styles");
    dt_context_destroy(&ctx);
}

static void test_uneven_heads(void)
{
    dt_context *ctx = dt_context_dry(6);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=3");
    dt_module *linear = dt_nn_linear(mesh, 8, 7 * 4, &(dt_linear_params){ .bias = true, .unit = 4 });
    const dt_style_row row = { "", &dt_style_colwise, NULL, NULL };
    dt_parallelize(linear, "tp", &row, 1);
    const lying due[] = { { "weight", "f32[(7 4),8]@tp:S(0.0)" }, { "bias", "f32[(7 4)]@tp:S(0.0)" } };
    expect_lying(linear, due, DT_COUNT(due));
    dt_fully_shard(linear, "", "dp", NULL);
    const lying sharded[] = { { "weight", "f32[(7 4),8]@dp:S(0.1),tp:S(0.0)" } };
    expect_lying(linear, sharded, DT_COUNT(sharded));
    dt_module *one = dt_nn_linear(mesh, 8, 4, &(dt_linear_params){ .unit = 4 });
    dt_parallelize(one, "tp", &row, 1);
    const lying whole[] = { { "weight", "f32[4,8]" } };
    expect_lying(one, whole, 1);
    dt_mesh *line = dt_mesh_create(ctx, "dp=1,tp=6");
    dt_module *flat = dt_nn_linear(line, 8, 12, NULL);
    dt_fully_shard(flat, "", "dp", NULL);
    const lying alone[] = { { "weight", "f32[12,8]" } };
    expect_lying(flat, alone, 1);
    expect_no_error(ctx, "units");
    dt_context_destroy(&ctx);
}

static void test_by_hand(void)
{
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    dt_module *linear = dt_nn_linear(mesh, 8, 12, &(dt_linear_params){ .bias = true });
    dt_place(linear, "weight", "tp:S(0),dp:S(0)", "bf16@tp:S(0)");
    dt_place(linear, "bias", "dp:S(0)", NULL);
    dt_place(linear, "bias", "*,tp:S(0)", NULL);
    const lying due[] = { { "weight", "f32[12,8]@tp:S(0),dp:S(0)" }, { "bias", "f32[12]@dp:S(0),tp:S(0)" } };
    expect_lying(linear, due, DT_COUNT(due));
    expect_no_error(ctx, "by hand");
    dt_context_destroy(&ctx);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

typedef struct collectives { int all_gathers, reduce_scatters, all_reduces; } collectives;

static collectives count(dt_mesh *mesh, const char *dim)
{
    dt_counters c = dt_mesh_counters(mesh, dim);
    return (collectives){ (int)c.calls[DT_COMM_ALL_GATHER], (int)c.calls[DT_COMM_REDUCE_SCATTER],
                          (int)c.calls[DT_COMM_ALL_REDUCE] };
}

static void expect_count(dt_mesh *mesh, const char *dim, collectives before, collectives due, const char *what)
{
    collectives now = count(mesh, dim);
    int gathers = now.all_gathers - before.all_gathers, scatters = now.reduce_scatters - before.reduce_scatters;
    int reduces = now.all_reduces - before.all_reduces;
    expect(gathers == due.all_gathers && scatters == due.reduce_scatters && reduces == due.all_reduces,
           "%s along %s: %d all-gathers, %d reduce-scatters, %d all-reduces; expected %d, %d, %d", what, dim, gathers,
           scatters, reduces, due.all_gathers, due.reduce_scatters, due.all_reduces);
}

typedef struct counting { placing placing; const char *dim; collectives forward, backward; } counting;

/* Blocks alone, so that what is counted is theirs: their input has a gradient. */
static void count_blocks(dt_context *ctx, const counting *c)
{
    const placing *p = &c->placing;
    dt_mesh *mesh = dt_mesh_create(ctx, p->mesh);
    dt_module *model = make(mesh, p, true), *layers = dt_module_find(model, "layers");
    char text[64];
    bool sequence = p->rows == sp_rows;
    snprintf(text, sizeof text, "%s%s%s", p->batch, *p->batch && sequence ? "," : "", sequence ? "tp:S(1)" : "");
    const dt_spec *spec = dt_spec_create(mesh, DT_F64, DT_SHAPE(BATCH, LENGTH, p->llama.width), text);
    for (int step = 0; step < 2; step++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *x = dt_require_grad(dt_randn(spec, 3));
        collectives before = count(mesh, c->dim);
        dt_tensor *y = dt_module_call(layers, x);
        expect_count(mesh, c->dim, before, c->forward, "forward");
        before = count(mesh, c->dim);
        dt_backward(y, dt_randn(dt_tensor_spec(y), 4));
        expect_count(mesh, c->dim, before, c->backward, "backward");
        expect(dt_mesh_counters(mesh, NULL).implied == 0, "implied %d", (int)dt_mesh_counters(mesh, NULL).implied);
        dt_scope_pop(ctx, scope, NULL);
    }
}

/* Two layers. Of TP forward two all-reduces each and as many backward; of SP two all-gathers and two reduce-scatters,
 * their duals, and two all-gathers of inputs again; of FSDP an all-gather each forward and backward, and one
 * reduce-scatter. */
static const counting countings[] = {
    { { "tp=2", "", TP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 }, "tp", { 0, 0, 4 }, { 0, 0, 4 } },
    { { "tp=2", "", SP, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 }, "tp", { 4, 4, 0 }, { 8, 4, 0 } },
    { { "dp=2", "dp:S(0)", NO_ROWS, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 2 }, "dp", { 2, 0, 0 }, { 2, 2, 0 } },
    { { "dp=2", "dp:S(0)", NO_ROWS, "dp", { .keep_gathered = true }, false, false, { DT_F64_LLAMA }, 2 }, "dp",
      { 2, 0, 0 }, { 0, 2, 0 } },
    { { "dp=2", "dp:S(0)", NO_ROWS, NULL, { 0 }, false, false, { DT_F64_LLAMA }, 2 }, "dp", { 0, 0, 0 }, { 0, 0, 0 } },
    { { "dp=2,tp=2", "dp:S(0)", SP, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 4 }, "tp", { 4, 4, 0 }, { 8, 4, 0 } },
    { { "dp=2,tp=2", "dp:S(0)", SP, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 4 }, "dp", { 2, 0, 0 }, { 2, 2, 0 } },
    { { "dp=2,tp=4", "dp:S(0)", SP, "dp", { 0 }, false, false, { DT_F64_LLAMA }, 8 }, "dp", { 2, 0, 0 }, { 2, 2, 0 } },
};

static void test_collectives(void)
{
    for (int i = 0; i < DT_COUNT(countings); i++) {
        dt_context *ctx = dt_context_dry(countings[i].placing.ranks);
        count_blocks(ctx, &countings[i]);
        expect_no_error(ctx, countings[i].placing.mesh);
        dt_context_destroy(&ctx);
    }
}

/* 80 layers of plain TP: 160 all-reduces of [b,s,h] backward, none for the weights of norms. */
static void test_deep(void)
{
    dt_context *ctx = dt_context_dry(4);
    counting c = countings[0];
    c.placing.mesh = "tp=4";
    c.placing.llama.layers = 80;
    c.forward.all_reduces = c.backward.all_reduces = 160;
    count_blocks(ctx, &c);
    expect_no_error(ctx, "80 layers");
    dt_context_destroy(&ctx);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const dt_style bad_place = { "bad", "weight=S(7)", NULL, NULL }, bad_text = { "bad", "weight", NULL, NULL };
static const dt_style placed_twice = { "bad", "weight=S(0);bias=R; weight=S(1)", NULL, NULL };
static const dt_style bad_in = { "bad", NULL, "X", NULL }, two_in = { "bad", NULL, "R;R", NULL };

typedef struct refusal {
    const char *what, *pattern;
    const dt_style *style;
    dt_status status;
    const char *says;
} refusal;

static const refusal refusals[] = {
    { "nothing matches", "layers.*.atn", &dt_style_io, DT_ERR_ARG, "nothing in llama matches \"layers.*.atn\"" },
    { "a broken pattern", "layers.[", &dt_style_io, DT_ERR_PARSE, "pattern \"layers.[\"" },
    { "no pattern", NULL, &dt_style_io, DT_ERR_ARG, "no pattern" },
    { "no style", "head", NULL, DT_ERR_ARG, "no style for \"head\"" },
    { "a dim that is not there", "head", &bad_place, DT_ERR_PLACEMENT, "head: placements \"*,tp:S(7)\"" },
    { "no place", "head", &bad_text, DT_ERR_PARSE, "head: expected NAME=PLACE, got \"weight\"" },
    { "a parameter twice", "head", &placed_twice, DT_ERR_ARG,
      "head: \"weight=S(0);bias=R; weight=S(1)\" places weight twice" },
    { "no placement", "head", &bad_in, DT_ERR_PARSE, "head: " },
    { "too many inputs", "head", &two_in, DT_ERR_ARG, "head: a style for more inputs than 1" },
};

static void test_errors(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=2");
    const dt_llama_params llama = { DT_F64_LLAMA };
    for (int i = 0; i < DT_COUNT(refusals); i++) {
        const dt_style_row row = { refusals[i].pattern, refusals[i].style, NULL, NULL };
        dt_parallelize(dt_nn_llama(mesh, &llama), "tp", &row, 1);
        expect_error(ctx, refusals[i].status, refusals[i].says, refusals[i].what);
    }
    dt_module *model = dt_nn_llama(mesh, &llama);
    const dt_style_row twice[] = { { "head", &dt_style_io, NULL, NULL }, { "h*", &dt_style_io, NULL, NULL } };
    dt_parallelize(model, "tp", twice, 2);
    expect_error(ctx, DT_ERR_ARG, "head: dt_parallelize: \"head\" and \"h*\" match it", "matched twice");
    dt_parallelize(model, "tp", twice, 1);
    dt_parallelize(model, "tp", twice, 1);
    expect_error(ctx, DT_ERR_STATE, "head: it has a style along tp", "a second style");
    const dt_style_row late_fault[] = { { "embed", &dt_style_vocab, NULL, NULL }, { "head", &bad_in, NULL, NULL } };
    dt_module *later = dt_nn_llama(mesh, &llama);
    dt_parallelize(later, "tp", late_fault, 2);
    expect_error(ctx, DT_ERR_PARSE, "head: ", "a fault in the last row");
    dt_parallelize(later, "tp", late_fault, 1);
    expect_no_error(ctx, "what was refused with it has no style");
    dt_parallelize(model, "cp", twice, 1);
    expect_error(ctx, DT_ERR_ARG, "mesh \"dp=2,tp=2\" has no dim \"cp\"", "an unknown dim");
    dt_mesh *other = dt_mesh_create(ctx, "zz=4");
    dt_module *pair = dt_nn_swiglu(other, 8, 8, DT_F32);
    dt_module_add(pair, "on_another_mesh", dt_nn_linear(mesh, 8, 8, NULL));
    dt_parallelize(pair, "zz", &(dt_style_row){ "on_another_mesh", &dt_style_colwise, NULL, NULL }, 1);
    expect_error(ctx, DT_ERR_ARG, "on_another_mesh: mesh \"dp=2,tp=2\" has no dim \"zz\"", "a child of another mesh");
    dt_fully_shard(pair, "on_another_mesh", "zz", NULL);
    expect_error(ctx, DT_ERR_ARG, "on_another_mesh: mesh \"dp=2,tp=2\" has no dim \"zz\"", "its group");
    dt_fully_shard(model, "layers.7", "dp", NULL);
    expect_error(ctx, DT_ERR_ARG, "nothing in llama matches \"layers.7\"", "no group");
    dt_fully_shard(model, "layers.0", "dp", NULL);
    dt_fully_shard(model, "layers.0", "dp", NULL);
    expect_error(ctx, DT_ERR_STATE, "layers.0: dt_fully_shard: it is a group", "a group twice");
    dt_module *late = dt_nn_llama(mesh, &llama);
    dt_fully_shard(late, "layers.1", "dp", NULL);
    dt_fully_shard(late, "layers.*", "dp", NULL);
    expect_error(ctx, DT_ERR_STATE, "layers.1: dt_fully_shard: it is a group", "a group among others");
    dt_fully_shard(late, "layers.0", "dp", NULL);
    expect_no_error(ctx, "what was refused with it is no group");
    late = dt_nn_llama(mesh, &llama);
    dt_place(late, "layers.1.mlp.up.weight", "dp:S(1)", NULL);
    dt_fully_shard(late, "layers.*", "dp", NULL);
    expect_error(ctx, DT_ERR_PLACEMENT, "layers.1: dt_fully_shard: expected R along dp", "one that is in pieces");
    dt_parallelize(late, "dp", &(dt_style_row){ "layers.*.mlp.down", &dt_style_rowwise, NULL, NULL }, 1);
    expect_no_error(ctx, "layers.0 is no group");
    dt_fully_shard(late, "layers.1.attn", "dp", NULL);
    dt_parallelize(late, "dp", &(dt_style_row){ "layers.*.attn.wq", &dt_style_colwise, NULL, NULL }, 1);
    expect_error(ctx, DT_ERR_PLACEMENT, "layers.1.attn.wq: dt_fully_shard: expected R along dp", "one of a group");
    dt_fully_shard(late, "layers.0.attn", "dp", NULL);
    expect_no_error(ctx, "layers.0.attn.wq has no style");
    dt_fully_shard(model, "layers.1", "dp", &(dt_fully_shard_params){ .zero = 4 });
    expect_error(ctx, DT_ERR_ARG, "expected zero 0 to 3, got 4", "zero 4");
    dt_place(model, "layers.0.attn.wq.weight", "dp:S(0)", "bf16@");
    expect_error(ctx, DT_ERR_STATE, "layers.0.attn.wq.weight: dt_place: it is fully sharded", "used of a group's");
    dt_place(model, "head.weight", "dp:S(0)", "bf17@");
    expect_error(ctx, DT_ERR_PARSE, "head.weight: ", "no dtype");
    dt_place(model, "head.weight", "tp:S(0),tp:S(1)", NULL);
    expect_error(ctx, DT_ERR_PLACEMENT, "head.weight: placements \"tp:S(0),tp:S(1)\"", "a dim twice");
    dt_place(model, "**.b", "", NULL);
    expect_error(ctx, DT_ERR_ARG, "no parameter of llama matches \"**.b\"", "no parameter");
    dt_module_materialize(model, 1);
    dt_place(model, "head.weight", "dp:S(0)", NULL);
    expect_error(ctx, DT_ERR_STATE, "head.weight: dt_place: it has values", "placed too late");
    dt_fully_shard(model, "layers.1", "dp", NULL);
    expect_error(ctx, DT_ERR_STATE, "has values", "grouped too late");
    dt_module *pieces = dt_nn_llama(mesh, &llama), *child = NULL;
    dt_module_list(pieces, "head", &child, 1);
    dt_module_materialize(child, 1);
    dt_place(pieces, "**.weight", "dp:S(0)", NULL);
    expect_error(ctx, DT_ERR_STATE, "head.weight: dt_place: it has values", "one of many has values");
    dt_module_list(pieces, "embed", &child, 1);
    dt_tensor *weight = NULL;
    dt_module_params(child, NULL, &weight, 1);
    expect(strcmp(dt_spec_placements(dt_tensor_spec(weight)), "") == 0, "%s", dt_spec_text(dt_tensor_spec(weight)));
    dt_context_destroy(&ctx);
}

static void test_values_by_hand(void)
{
    for (int ranks = 2; ranks <= 3; ranks++)
        launch(ranks, by_hand_rank, &(placing){ .mesh = "dp", .batch = "dp:S(0)", .llama = placings[0].llama });
}

static const test_row rows[] = {
    { "values by hand", test_values_by_hand },
    { "values", test_values },           { "styles", test_styles },   { "uneven heads", test_uneven_heads },
    { "by hand", test_by_hand },         { "collectives", test_collectives },
    { "deep", test_deep },               { "errors", test_errors },
};

const suite the_suite = { "parallel", rows, DT_COUNT(rows) };
