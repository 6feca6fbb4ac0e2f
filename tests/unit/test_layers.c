/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers and models: result and gradients under placements made by hand are those of one rank. */
#include <stdio.h>
#include <math.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"
#include "nn/module.h"

/* ---- what is called ---------------------------------------------------------------------------------------------- */

static dt_module *linear(dt_mesh *mesh) { return dt_nn_linear(mesh, 12, 7, &(dt_linear_params){ .dtype = DT_F64 }); }

static dt_module *linear_bias(dt_mesh *mesh)
{
    return dt_nn_linear(mesh, 12, 7, &(dt_linear_params){ .bias = true, .dtype = DT_F64 });
}

static dt_module *embedding(dt_mesh *mesh) { return dt_nn_embedding(mesh, 17, 12, DT_F64); }
static dt_module *rms_norm(dt_mesh *mesh) { return dt_nn_rms_norm(mesh, 12, 0, DT_F64); }
static dt_module *layer_norm(dt_mesh *mesh) { return dt_nn_layer_norm(mesh, 12, 1e-3, DT_F64); }
static dt_module *dropout(dt_mesh *mesh) { return dt_nn_dropout(mesh, 0.3); }
static dt_module *swiglu(dt_mesh *mesh) { return dt_nn_swiglu(mesh, 12, 13, DT_F64); }
static dt_module *gelu_mlp(dt_mesh *mesh) { return dt_nn_gelu_mlp(mesh, 12, 13, DT_F64); }

static dt_module *grouped(dt_mesh *mesh)
{
    return dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 12, .heads = 6, .kv_heads = 2, .head = 4,
                                                            .rope_base = 100, .causal = true, .dtype = DT_F64 });
}

static dt_module *multi_head(dt_mesh *mesh)
{
    return dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 12, .heads = 3, .bias = true, .dropout = 0.2,
                                                            .dtype = DT_F64 });
}

static const dt_llama_params llama_sizes = { .vocab = 17, .width = 12, .layers = 2, .heads = 6, .kv_heads = 3,
                                             .mlp_width = 13, .dtype = DT_F64 };
static const dt_gpt_params gpt_sizes = { .vocab = 17, .width = 12, .layers = 2, .heads = 3, .positions = 6,
                                         .dropout = 0.1, .dtype = DT_F64 };

static dt_module *llama_block(dt_mesh *mesh) { return dt_nn_llama_block(mesh, &llama_sizes); }
static dt_module *llama(dt_mesh *mesh) { return dt_nn_llama(mesh, &llama_sizes); }

static dt_module *llama_tied(dt_mesh *mesh)
{
    dt_llama_params tied = llama_sizes;
    tied.tied = true;
    return dt_nn_llama(mesh, &tied);
}

static dt_module *gpt_block(dt_mesh *mesh) { return dt_nn_gpt_block(mesh, &gpt_sizes); }
static dt_module *gpt(dt_mesh *mesh) { return dt_nn_gpt(mesh, &gpt_sizes); }

static dt_module *gpt_tied(dt_mesh *mesh)
{
    dt_gpt_params tied = gpt_sizes;
    tied.tied = true;
    return dt_nn_gpt(mesh, &tied);
}

/* ---- how it lies ------------------------------------------------------------------------------------------------- */

typedef struct place { const char *pattern, *placements; } place;

enum { MOST_PLACES = 12 };

static const struct placing { const char *mesh, *input; place places[MOST_PLACES]; } placings[] = {
    { "x", "", { { 0 } } },
    { "x", "x:S(0)", { { 0 } } },
    { "x", "x:S(1)", { { 0 } } },
    { "x", "", { { "**", "x:S(0)" } } },
    { "x", "x:S(0)", { { "**", "x:S(0)" } } },
    { "x", "x:S(1)", { { "**.weight", "x:S(1)" } } },
    { "x", "", { { "**.w[qkv].*", "x:S(0)" }, { "**.wo.weight", "x:S(1)" }, { "**.gate.*", "x:S(0)" },
                 { "**.up.*", "x:S(0)" }, { "**.down.weight", "x:S(1)" }, { "embed.*", "x:S(0)" },
                 { "head.*", "x:S(0)" }, { "positions.*", "x:S(1)" } } },
    { "x", "x:S(1)", { { "**.w[qkv].*", "x:S(0)" }, { "**.wo.weight", "x:S(1)" }, { "**.gate.*", "x:S(0)" },
                       { "**.up.*", "x:S(0)" }, { "**.down.weight", "x:S(1)" }, { "**.*norm.*", "x:S(0)" } } },
    { "x", "x:S(0)", { { "**.wo.*", "x:S(0)" }, { "**.down.*", "x:S(0)" }, { "**.w[kv].weight", "x:S(1)" },
                       { "embed.*", "x:S(1)" } } },
    { "x,y=2", "x:S(0)", { { "**.w[qkv].*", "y:S(0)" }, { "**.wo.weight", "y:S(1)" }, { "**.gate.*", "y:S(0)" },
                           { "**.up.*", "y:S(0)" }, { "**.down.weight", "y:S(1)" }, { "embed.*", "y:S(0)" },
                           { "head.*", "y:S(0)" } } },
    { "x,y=2", "x:S(0),y:S(1)", { { "**.w[qkv].*", "y:S(0),x:S(0)" }, { "**.wo.weight", "y:S(1),x:S(0)" },
                                  { "**.gate.*", "y:S(0),x:S(0)" }, { "**.up.*", "x:S(0),y:S(0)" },
                                  { "**.down.weight", "x:S(0),y:S(1)" }, { "embed.*", "y:S(0),x:S(1)" },
                                  { "weight", "x:S(0)" } } },
};

/* Placed with its units whole: of 6 rows in units of 2 the dim is (3 2). */
static const dt_spec *placed(const dti_param *param, const char *placements)
{
    const dt_spec *spec = dt_tensor_spec(param->tensor);
    char text[256] = "";
    int at = snprintf(text, sizeof text, "%s[", dt_dtype_text(dt_spec_dtype(spec)));
    dt_shape shape = dt_spec_shape(spec);
    for (int d = 0; d < shape.n; d++) {
        long long unit = d == 0 ? param->unit : d == 1 ? param->in_unit : 1, n = shape.dim[d];
        const char *comma = d ? "," : "";
        if (unit > 1) at += snprintf(text + at, sizeof text - (size_t)at, "%s(%lld %lld)", comma, n / unit, unit);
        else at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", comma, n);
    }
    snprintf(text + at, sizeof text - (size_t)at, "]@%s", placements);
    return dt_spec_parse(dt_spec_mesh(spec), text);
}

/* S(1) is of no vector: such a one stays whole. */
static bool has_dim(const dt_tensor *x, const char *placements)
{
    return dt_spec_shape(dt_tensor_spec(x)).n > 1 || !strstr(placements, "S(1)");
}

static void put(dt_module *root, const place *places)
{
    dt_tensor *params[64];
    for (int i = 0; i < MOST_PLACES && places[i].pattern; i++) {
        int n = dt_module_params(root, places[i].pattern, params, DT_COUNT(params));
        for (int k = 0; k < n; k++)
            if (has_dim(params[k], places[i].placements))
                dti_param_store(dti_param_of(params[k]), placed(dti_param_of(params[k]), places[i].placements));
    }
}

/* ---- the same as on one rank ------------------------------------------------------------------------------------- */

/* f64 has 2e-16; sums here have at most some hundred terms of about one, and pass some ten ops. */
static const double tolerance = 1e-12;

static const struct subject { const char *name; dt_module *(*make)(dt_mesh *mesh); bool ids; } subjects[] = {
    { "linear", linear, false },
    { "linear with bias", linear_bias, false },
    { "embedding", embedding, true },
    { "rms_norm", rms_norm, false },
    { "layer_norm", layer_norm, false },
    { "dropout", dropout, false },
    { "swiglu", swiglu, false },
    { "gelu_mlp", gelu_mlp, false },
    { "grouped attention", grouped, false },
    { "attention", multi_head, false },
    { "llama_block", llama_block, false },
    { "gpt_block", gpt_block, false },
    { "llama", llama, true },
    { "llama, tied", llama_tied, true },
    { "gpt", gpt, true },
    { "gpt, tied", gpt_tied, true },
};

typedef struct run { const struct subject *subject; uint64_t sum; } run; /* sum: of what one rank gets             */
typedef struct whole { dt_module *module; dt_tensor *x, *y; } whole; /* all of it on each rank                      */

/* 5 sequences of 6. */
static dt_tensor *input(dt_mesh *mesh, const struct subject *s, const char *placements)
{
    const dt_spec *spec = s->ids ? dt_spec_create(mesh, DT_I64, DT_SHAPE(5, 6), placements)
                                 : dt_spec_create(mesh, DT_F64, DT_SHAPE(5, 6, 12), placements);
    if (!s->ids) return dt_require_grad(dt_randn(spec, 3));
    static const int64_t ids[30] = { 3, 16, 0, 5, 5, 9, 1, 2, 3, 4, 15, 14, 13, 12, 11, 0, 0, 0, 7, 8, 16, 10, 6, 3 };
    return dt_from_host(spec, -1, ids, sizeof ids);
}

/* Loss: the sum of the result times fixed numbers. */
static dt_tensor *pass(dt_module *m, dt_tensor *x)
{
    dt_tensor *y = dt_module_call(m, x);
    const dt_spec *spec = dt_spec_create(dt_module_mesh(m), DT_F64, dt_spec_shape(dt_tensor_spec(y)), NULL);
    dt_backward(dt_sum(dt_mul(y, dt_randn(spec, 4)), DT_ALL, false), NULL);
    return y;
}

static void expect_close(const char *name, const struct placing *placing, const char *what, dt_tensor *x, dt_tensor *y)
{
    if (expect(x && y, "%s: %s is missing", name, what))
        expect(dt_tensor_close(x, y, tolerance, tolerance), "%s on %s, placing %d: %s of %s", name,
               dt_mesh_text(dt_spec_mesh(dt_tensor_spec(x))), (int)(placing - placings), what,
               dt_spec_text(dt_tensor_spec(x)));
}

static uint64_t sum_all(dt_tensor *y, dt_tensor *const *params, int n)
{
    uint64_t sum = dt_tensor_checksum(y);
    for (int i = 0; i < n; i++) sum = 31 * sum + dt_tensor_checksum(dt_grad(params[i]));
    return sum;
}

/* One placing; its mesh may be another view of the ranks. */
static void compare(dt_context *ctx, const struct subject *s, const struct placing *placing, const whole *w)
{
    dt_mesh *mesh = dt_mesh_create(ctx, placing->mesh);
    dt_module *split = s->make(mesh);
    dt_tensor *a[64], *b[64];
    put(split, placing->places);
    dt_module_materialize(split, 8);
    int n = dt_module_params(w->module, NULL, a, DT_COUNT(a));
    dt_module_params(split, NULL, b, DT_COUNT(b));
    dt_tensor *x = input(mesh, s, placing->input);
    expect_close(s->name, placing, "the result", pass(split, x), w->y);
    for (int i = 0; i < n; i++) expect_close(s->name, placing, dt_param_path(a[i]), dt_grad(b[i]), dt_grad(a[i]));
    if (!s->ids) expect_close(s->name, placing, "the gradient of x", dt_grad(x), dt_grad(w->x));
}

static dt_status compare_placings(dt_context *ctx, void *arg)
{
    run *r = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    whole w = { .module = r->subject->make(mesh), .x = input(mesh, r->subject, "") };
    dt_tensor *params[64];
    dt_module_materialize(w.module, 8);
    int n = dt_module_params(w.module, NULL, params, DT_COUNT(params));
    w.y = pass(w.module, w.x);
    if (!w.y) return dt_context_status(ctx);
    uint64_t sum = sum_all(w.y, params, n);
    if (ctx->rank_count == 1) r->sum = sum;
    expect(sum == r->sum, "%s: whole on %d ranks, the bits of one", r->subject->name, ctx->rank_count);
    for (int i = 0; i < DT_COUNT(placings) && ctx->rank_count > 1; i++) {
        bool flat = strcmp(placings[i].mesh, "x") == 0;
        int scope = dt_scope_push(ctx, 0);
        if (flat ? ctx->rank_count < 6 : ctx->rank_count % 2 == 0) compare(ctx, r->subject, &placings[i], &w);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void compare_all(const struct subject *s)
{
    run r = { s, 0 };
    for (int ranks = 1; ranks <= 6; ranks++) launch(ranks, compare_placings, &r);
}

static void layers_equal_one_rank(void)
{
    for (int i = 0; i < DT_COUNT(subjects); i++)
        if (!strstr(subjects[i].name, "llama") && !strstr(subjects[i].name, "gpt")) compare_all(&subjects[i]);
}

static void blocks_equal_one_rank(void)
{
    for (int i = 0; i < DT_COUNT(subjects); i++)
        if (strstr(subjects[i].name, "block")) compare_all(&subjects[i]);
}

static void models_of(const char *name)
{
    for (int i = 0; i < DT_COUNT(subjects); i++)
        if (strncmp(subjects[i].name, name, strlen(name)) == 0 && !strstr(subjects[i].name, "block"))
            compare_all(&subjects[i]);
}

static void llama_equals_one_rank(void) { models_of("llama"); }
static void gpt_equals_one_rank(void) { models_of("gpt"); }

/* ---- recomputed -------------------------------------------------------------------------------------------------- */

static dt_status redo(dt_context *ctx, void *arg)
{
    static const char *const patterns[] = { "layers.*", "layers.*.attn", "**" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *params[64], *x = input(mesh, &(struct subject){ .ids = true }, "x:S(0)");
    uint64_t sum = 0;
    (void)arg;
    for (int i = -1; i < DT_COUNT(patterns); i++) {
        dt_module *m = gpt(mesh);
        put(m, placings[6].places);
        dt_module_materialize(m, 2);
        if (i >= 0) dt_module_recompute(m, patterns[i]);
        int n = dt_module_params(m, NULL, params, DT_COUNT(params));
        uint64_t this_sum = sum_all(pass(m, x), params, n);
        if (i < 0) sum = this_sum;
        expect(this_sum == sum, "%s: the same bits", i < 0 ? "" : patterns[i]);
    }
    return dt_context_status(ctx);
}

static void recomputed_layers_have_the_same_bits(void)
{
    launch(1, redo, NULL);
    launch(3, redo, NULL);
}

/* ---- what they are ----------------------------------------------------------------------------------------------- */

static const struct tree { dt_module *(*make)(dt_mesh *mesh); const char *modules; int params; } trees[] = {
    { linear_bias, "", 2 },
    { swiglu, "gate up down", 3 },
    { gelu_mlp, "up down", 4 },
    { grouped, "wq wk wv wo", 4 },
    { llama_block, "attn_norm attn mlp_norm mlp attn.wq attn.wk attn.wv attn.wo mlp.gate mlp.up mlp.down", 9 },
    { gpt_block, "attn_norm attn mlp_norm mlp drop", 16 },
    { llama, "embed layers layers.0 layers.1 norm head layers.1.mlp.down", 21 },
    { llama_tied, "embed layers layers.0 layers.1 norm head", 20 },
    { gpt, "embed positions drop layers layers.0 layers.1 norm head", 37 },
    { gpt_tied, "embed positions drop layers layers.1.attn norm head", 36 },
};

static void names_are_as_written(void)
{
    dt_context *ctx = dt_context_dry(2);
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(trees); i++) {
        char text[256], *rest = text;
        dt_module *m = trees[i].make(mesh);
        snprintf(text, sizeof text, "%s", trees[i].modules);
        for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
            expect(dt_module_find(m, name) != NULL, "tree %d has no %s", i, name);
        int n = dt_module_params(m, "**", NULL, 0);
        expect(n == trees[i].params, "tree %d has %d parameters, expected %d", i, n, trees[i].params);
    }
    expect_no_error(ctx, "trees");
    dt_context_destroy(&ctx);
}

static void wrong_sizes_are_refused(void)
{
    dt_context *ctx = dt_context_dry(2);
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_nn_attention(mesh, NULL), expect_error(ctx, DT_ERR_ARG, "attention: no params", "attention");
    dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 8 });
    expect_error(ctx, DT_ERR_ARG, "0 heads", "no heads");
    dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 8, .heads = 3 });
    expect_error(ctx, DT_ERR_ARG, "3 heads", "a width that is no number of heads");
    dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 8, .heads = 4, .kv_heads = 3 });
    expect_error(ctx, DT_ERR_ARG, "4 heads", "heads that do not share");
    dt_nn_llama(mesh, NULL), expect_error(ctx, DT_ERR_ARG, "llama: no params", "llama");
    dt_nn_gpt_block(mesh, NULL), expect_error(ctx, DT_ERR_ARG, "gpt: no params", "gpt");
    dt_nn_llama(mesh, &(dt_llama_params){ .vocab = 3, .width = 4, .heads = 2, .layers = -1 });
    expect_error(ctx, DT_ERR_ARG, "-1", "layers");
    dt_nn_dropout(mesh, 1), expect_error(ctx, DT_ERR_ARG, "dropout", "dropout");
    dt_nn_linear(mesh, -1, 2, NULL), expect_error(ctx, DT_ERR_SHAPE, "weight of linear", "linear");
    dt_nn_linear(mesh, 4, 6, &(dt_linear_params){ .unit = 4 });
    expect_error(ctx, DT_ERR_SHAPE, "units of 4", "units");
    dt_nn_rms_norm(mesh, 4, -1e-5, DT_F32), expect_error(ctx, DT_ERR_ARG, "rms_norm: expected an eps", "eps below 0");
    dt_nn_layer_norm(mesh, 4, NAN, DT_F32), expect_error(ctx, DT_ERR_ARG, "layer_norm: expected an eps", "no eps");
    dt_nn_attention(mesh, &(dt_nn_attention_params){ .width = 8, .heads = 2, .rope_base = -1 });
    expect_error(ctx, DT_ERR_ARG, "rope_base above 0", "rope_base");
    dt_nn_linear(mesh, 4, 6, &(dt_linear_params){ .scale = NAN });
    expect_error(ctx, DT_ERR_ARG, "weight of linear: scale nan", "scale");
    dt_nn_rms_norm(mesh, 4, 0, DT_I64), expect_error(ctx, DT_ERR_DTYPE, "weight of rms_norm", "dtype");
    dt_module *m = dt_nn_gpt(mesh, &gpt_sizes);
    dt_module_materialize(m, 1);
    dt_module_call(m, dt_zeros(dt_spec_parse(mesh, "i64[2,7]")));
    expect_error(ctx, DT_ERR_SHAPE, "a sequence of 7, expected at most 6", "positions");
    expect(!dt_nn_linear(NULL, 2, 2, NULL) && !dt_nn_llama(NULL, &llama_sizes), "no mesh");
    dt_context_destroy(&ctx);
}

/* In evaluation nothing is drawn; eval of dropout is what came. */
static dt_status evaluated(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = dt_nn_dropout(mesh, 0.5), *g = gpt(mesh);
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f64[64]@x:S(0)"), 1), *ids = input(mesh, &subjects[2], "");
    expect(!dt_tensor_close(dt_module_call(m, x), x, 0, 0), "it drops");
    dt_module_train(m, false);
    expect(dt_module_call(m, x) == x, "it does not");
    dt_module_materialize(g, 1);
    dt_module_train(g, false);
    uint64_t one = dt_tensor_checksum(dt_module_call(g, ids));
    dt_context_step(ctx, 1, 0);
    expect(dt_tensor_checksum(dt_module_call(g, ids)) == one, "no draws in evaluation");
    dt_module_train(g, true);
    expect(dt_tensor_checksum(dt_module_call(g, ids)) != one, "draws in training");
    return dt_context_status(ctx);
}

static void evaluation_draws_nothing(void) { launch(2, evaluated, NULL); }

/* The loss as a module, with weights that outlive their scope. */
static dt_status loss(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *logits = dt_randn(dt_spec_parse(mesh, "f64[5,6,17]@x:S(2)"), 1);
    dt_tensor *targets = input(mesh, &subjects[2], "");
    int scope = dt_scope_push(ctx, 0);
    dt_module *plain = dt_nn_cross_entropy(mesh, NULL), *weighted = NULL, *keeper = dt_nn_dropout(mesh, 0);
    dt_tensor *weights = dt_rand(dt_spec_parse(mesh, "f64[17]"), 2);
    dt_cross_entropy_params with = { .reduction = DT_REDUCTION_SUM, .class_weights = weights };
    weighted = dt_module_add(keeper, "loss", dt_nn_cross_entropy(mesh, &with));
    dt_tensor *in[] = { logits, targets };
    expect(dt_tensor_close(dt_module_call_n(plain, in, 2), dt_cross_entropy(logits, targets, NULL), 0, 0), "the mean");
    expect(dt_tensor_close(dt_module_call_n(weighted, in, 2), dt_cross_entropy(logits, targets, &with), 0, 0), "a sum");
    dt_module_call(plain, logits);
    expect_error(ctx, DT_ERR_ARG, "cross_entropy: 1 inputs, expected 2", "no targets");
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx);
}

static void the_loss_is_a_module(void) { launch(3, loss, NULL); }

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static dt_tensor *weight(dt_module *m, const char *path)
{
    dt_tensor *x = NULL;
    expect(dt_module_params(m, path, &x, 1) == 1, "no %s", path);
    return x;
}

static dt_tensor *heads(dt_module *m, dt_tensor *x, const char *path, int64_t n)
{
    return dt_reshape(dt_linear(x, weight(m, path), NULL), DT_SHAPE(5, 6, n, 2));
}

static dt_status llama_by_hand(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = llama_block(mesh);
    dt_module_materialize(m, 8);
    dt_tensor *x = input(mesh, &subjects[10], ""), *y = dt_module_call(m, x);
    dt_tensor *h = dt_rms_norm(x, weight(m, "attn_norm.weight"), 1e-5);
    dt_tensor *q = dt_rope(heads(m, h, "attn.wq.weight", 6), 10000, 0);
    dt_tensor *k = dt_rope(heads(m, h, "attn.wk.weight", 3), 10000, 0), *v = heads(m, h, "attn.wv.weight", 3);
    dt_tensor *o = dt_reshape(dt_attention(q, k, v, &(dt_attention_params){ .causal = true }), DT_SHAPE(5, 6, 12));
    x = dt_add(x, dt_linear(o, weight(m, "attn.wo.weight"), NULL));
    h = dt_rms_norm(x, weight(m, "mlp_norm.weight"), 1e-5);
    dt_tensor *gate = dt_silu(dt_linear(h, weight(m, "mlp.gate.weight"), NULL));
    dt_tensor *up = dt_linear(h, weight(m, "mlp.up.weight"), NULL);
    x = dt_add(x, dt_linear(dt_mul(gate, up), weight(m, "mlp.down.weight"), NULL));
    expect(dt_tensor_close(y, x, tolerance, tolerance), "a block of Llama");
    return dt_context_status(ctx);
}

static dt_status gpt_by_hand(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_gpt_params sizes = gpt_sizes;
    sizes.layers = 0;
    dt_module *m = dt_nn_gpt(mesh, &sizes), *b = gpt_block(mesh);
    dt_module_materialize(m, 8);
    dt_module_materialize(b, 8);
    dt_module_train(m, false);
    dt_module_train(b, false);
    dt_tensor *ids = input(mesh, &subjects[2], ""), *x = input(mesh, &subjects[11], ""), *y = dt_module_call(b, x);
    dt_tensor *h = dt_add(dt_embedding(weight(m, "embed.weight"), ids),
                          dt_slice(weight(m, "positions.weight"), 0, 0, 6, 1));
    h = dt_layer_norm(h, weight(m, "norm.weight"), weight(m, "norm.bias"), 1e-5);
    expect(dt_tensor_close(dt_module_call(m, ids), dt_linear(h, weight(m, "head.weight"), NULL), tolerance, tolerance),
           "a GPT without blocks");
    h = dt_layer_norm(x, weight(b, "attn_norm.weight"), weight(b, "attn_norm.bias"), 1e-5);
    x = dt_add(x, dt_module_call(dt_module_find(b, "attn"), h));
    h = dt_layer_norm(x, weight(b, "mlp_norm.weight"), weight(b, "mlp_norm.bias"), 1e-5);
    h = dt_gelu(dt_linear(h, weight(b, "mlp.up.weight"), weight(b, "mlp.up.bias")));
    x = dt_add(x, dt_linear(h, weight(b, "mlp.down.weight"), weight(b, "mlp.down.bias")));
    expect(dt_tensor_close(y, x, tolerance, tolerance), "a block of GPT");
    return dt_context_status(ctx);
}

static void models_are_what_is_written_by_hand(void)
{
    launch(1, llama_by_hand, NULL);
    launch(1, gpt_by_hand, NULL);
}

/* ---- what is kept for backward ----------------------------------------------------------------------------------- */

/* Bytes of a block's activations, b s h and so on in elements of 4 bytes. */
static dt_status kept(dt_context *ctx, void *arg)
{
    enum { B = 2, S = 16, H = 32, HEADS = 4, KV = 2, F = 80, BYTES = 4 };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = dt_nn_llama_block(mesh, &(dt_llama_params){ .width = H, .heads = HEADS, .kv_heads = KV,
                                                               .mlp_width = F });
    dt_module_materialize(m, 1);
    dt_tensor *x = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f32[2,16,32]"), 1));
    int64_t before = dt_mesh_counters(mesh, NULL).memory;
    dt_module_call(m, x);
    int64_t got = dt_mesh_counters(mesh, NULL).memory - before;
    /* besides the block's input: both norms' results, q k v, the attention's result and its input to wo, which are one,
     * the stream between, gate, up and their product; the result; and for each row of both norms a number, and of each
     * head's queries one */
    int64_t tensors = B * S * (2 * H + H + 2 * H * KV / HEADS + H + H + 3 * F + H), rows = B * S * (2 + HEADS);
    expect(got == BYTES * tensors + BYTES * rows || got == BYTES * tensors + 8 * rows,
           "%lld bytes, expected %lld and statistics", (long long)got, (long long)(BYTES * tensors));
    return dt_context_status(ctx);
}

static void a_block_keeps_what_it_must(void) { launch(1, kept, NULL); }

static const test_row rows[] = {
    { "names_are_as_written", names_are_as_written },
    { "wrong_sizes_are_refused", wrong_sizes_are_refused },
    { "layers_equal_one_rank", layers_equal_one_rank },
    { "blocks_equal_one_rank", blocks_equal_one_rank },
    { "llama_equals_one_rank", llama_equals_one_rank },
    { "gpt_equals_one_rank", gpt_equals_one_rank },
    { "models_are_what_is_written_by_hand", models_are_what_is_written_by_hand },
    { "recomputed_layers_have_the_same_bits", recomputed_layers_have_the_same_bits },
    { "evaluation_draws_nothing", evaluation_draws_nothing },
    { "the_loss_is_a_module", the_loss_is_a_module },
    { "a_block_keeps_what_it_must", a_block_keeps_what_it_must },
};

const suite the_suite = { "layers", rows, DT_COUNT(rows) };
