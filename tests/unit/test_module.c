/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: the tree, paths and patterns, parameters and their values, calls, hooks, recomputing, what is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"
#include "nn/module.h"

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static const struct matching { const char *path, *pattern; bool matches; } matchings[] = {
    { "", "", true },
    { "", "**", true },
    { "", "*", false },
    { "a", "", false },
    { "a", "*", true },
    { "a.b", "*", false },
    { "a.b", "*.*", true },
    { "a.b", "**", true },
    { "a.b", "a.**", true },
    { "a", "a.**", true },
    { "a", "**.a", true },
    { "b.a", "**.a", true },
    { "c.b.a", "**.a", true },
    { "c.b.a", "**.b", false },
    { "c.b.a", "**.b.**", true },
    { "a.b.c.b.d", "**.b.d", true },
    { "a.b.c.b.d", "a.**.b.d", true },
    { "a.b.c.b.d", "a.**.b", false },
    { "a.b", "a.**.b", true },
    { "layers.0.attn.wq.weight", "layers.*.attn.w[qkv].weight", true },
    { "layers.0.attn.wo.weight", "layers.*.attn.w[qkv].weight", false },
    { "layers.12.mlp", "layers.[0-9]*.mlp", true },
    { "layers.12.mlp", "layers.[0-9].mlp", false },
    { "layers.12.mlp", "layers.[0-1][2-5].mlp", true },
    { "a-b", "a[-c]b", true },
    { "acb", "a[-c]b", true },
    { "abb", "a[-c]b", false },
    { "attn_norm", "*norm", true },
    { "attn_norm", "*_*", true },
    { "attn_norm", "a*n*m", true },
    { "attn_norm", "a*x*m", false },
    { "attn_norm", "attn", false },
    { "attn", "attn_norm", false },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a*a*a*a*a*a*a*a*a*a*b", false },
    { "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "**.a.**.a.**.a.**.a.**.a.**.b", false },
};

static void patterns_match(void)
{
    for (int i = 0; i < DT_COUNT(matchings); i++)
        expect(dti_path_matches(matchings[i].path, matchings[i].pattern) == matchings[i].matches, "\"%s\" and \"%s\"",
               matchings[i].path, matchings[i].pattern);
}

static const struct fault { const char *pattern; int column; } faults[] = {
    { "a[", 2 }, { "a[]", 2 }, { "[ab", 1 }, { "a.[b", 3 }, { "a[b[c]]", 2 }, { "a..b", 3 }, { ".a", 1 }, { "a.", 3 },
    { "a**", 2 }, { "**a", 1 }, { "a b", 2 }, { "]", 1 }, { "a.b,c", 4 }, { "[a.b]", 1 },
    { "a[z-a]", 2 }, { "[ab-cz-x]", 1 },
};

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

typedef struct plain { dt_tensor *weight; } plain;

static void plain_init(dt_module *self, const void *params)
{
    plain *p = dt_module_state(self);
    if (params) p->weight = dt_module_param(self, "weight", DT_SHAPE(4, 4), params);
}

static dt_tensor *plain_forward(dt_module *self, dt_tensor *const *in)
{
    const plain *p = dt_module_state(self);
    dt_tensor *x = in[0];
    for (dt_module *child = self->first; child; child = child->next) x = dt_module_call(child, x);
    return p->weight ? dt_matmul(x, p->weight) : dt_neg(x);
}

static const dt_module_type plain_type = {
    .name = "plain", .state_bytes = sizeof(plain), .init = plain_init, .forward = plain_forward,
};
static const dt_param_params f64 = { .dtype = DT_F64 };

static dt_module *new_plain(dt_mesh *mesh, const dt_param_params *params)
{
    return dt_module_create(mesh, &plain_type, params);
}

/* With a parameter each: a, a.c, a.d, a.d.e, b */
static dt_module *new_tree(dt_mesh *mesh)
{
    dt_module *root = new_plain(mesh, &f64), *a = dt_module_add(root, "a", new_plain(mesh, &f64));
    dt_module_add(a, "c", new_plain(mesh, &f64));
    dt_module *d = new_plain(mesh, &f64);
    dt_module_add(d, "e", new_plain(mesh, &f64));
    dt_module_add(a, "d", d);
    dt_module_add(root, "b", new_plain(mesh, &f64));
    return root;
}

static void expect_paths(dt_module *root, const char *pattern, const char *paths)
{
    dt_module *modules[16];
    char text[256] = "";
    int n = dt_module_list(root, pattern, modules, DT_COUNT(modules));
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s;", dt_module_path(modules[i]));
    expect(strcmp(text, paths) == 0, "%s: %s, expected %s", pattern ? pattern : "all", text, paths);
}

static void expect_params(dt_module *root, const char *pattern, const char *paths)
{
    dt_tensor *params[16];
    char text[256] = "";
    int n = dt_module_params(root, pattern, params, DT_COUNT(params));
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s;", dt_param_path(params[i]));
    expect(strcmp(text, paths) == 0, "%s: %s, expected %s", pattern ? pattern : "all", text, paths);
}

static void in_dry(void (*fn)(dt_context *ctx, dt_mesh *mesh))
{
    dt_context *ctx = dt_context_dry(4);
    fn(ctx, dt_mesh_create(ctx, "x"));
    dt_context_destroy(&ctx);
}

static void tree(dt_context *ctx, dt_mesh *mesh)
{
    dt_module *root = new_tree(mesh), *found[2];
    expect_paths(root, NULL, ";a;a.c;a.d;a.d.e;b;");
    expect_paths(root, "**", ";a;a.c;a.d;a.d.e;b;");
    expect_paths(root, "", ";");
    expect_paths(root, "*", "a;b;");
    expect_paths(root, "a.*", "a.c;a.d;");
    expect_paths(root, "**.[de]", "a.d;a.d.e;");
    expect_paths(dt_module_find(root, "a"), "*", "a.c;a.d;");
    expect_paths(dt_module_find(root, "a"), "", "a;");
    expect_params(root, NULL, "weight;a.weight;a.c.weight;a.d.weight;a.d.e.weight;b.weight;");
    expect_params(root, "*.weight", "a.weight;b.weight;");
    expect_params(dt_module_find(root, "a.d"), "**", "a.d.weight;a.d.e.weight;");
    expect_params(dt_module_find(root, "a.d"), "weight", "a.d.weight;");
    expect_params(root, "nothing", "");
    expect(dt_module_list(root, "**", found, 2) == 6 && found[0] == root, "more than there is room for");
    expect(dt_module_list(root, "**", NULL, 0) == 6 && dt_module_params(root, "**", NULL, 0) == 6, "counted");
    expect(dt_module_find(root, "") == root && dt_module_find(root, "a.d.e") != NULL, "found");
    expect(!dt_module_find(root, "d") && !dt_module_find(root, "a.") && !dt_module_find(root, "a..d")
               && !dt_module_find(root, "a.d.e.f") && !dt_module_find(NULL, "a"), "not there");
    dt_module *above = new_plain(mesh, NULL);
    dt_module_add(above, "model", root);
    expect_params(above, "**.c.*", "model.a.c.weight;");
    expect(dt_module_mesh(root) == mesh && dt_module_context(root) == ctx, "where it is");
    expect_no_error(ctx, "tree");
}

static void a_tree_is_walked(void) { in_dry(tree); }

/* ---- what ends when ---------------------------------------------------------------------------------------------- */

typedef struct counted { int *ended; } counted;

static void counted_init(dt_module *self, const void *params)
{
    counted *c = dt_module_state(self);
    memcpy(&c->ended, params, sizeof c->ended);
}

static void counted_fini(dt_module *self) { ++*((counted *)dt_module_state(self))->ended; }

static const dt_module_type counted_type = {
    .name = "counted", .state_bytes = sizeof(counted), .init = counted_init, .forward = plain_forward,
    .fini = counted_fini,
};

static void count_release(void *arg) { ++*(int *)arg; }

static void endings(dt_context *ctx, dt_mesh *mesh)
{
    int ended = 0, released = 0, *at = &ended, scope = dt_scope_push(ctx, 0);
    dt_module *root = dt_module_create(mesh, &counted_type, &at);
    int inner = dt_scope_push(ctx, 0);
    dt_module_add(root, "child", dt_module_create(mesh, &counted_type, &at));
    dt_module_create(mesh, &counted_type, &at);
    dt_tensor *w = dt_module_param(root, "w", DT_SHAPE(2), NULL), *held = NULL;
    dti_module_hook_owned(root, NULL, NULL, &released, count_release);
    dt_scope_pop(ctx, inner, NULL);
    expect(ended == 1 && dt_module_find(root, "child"), "%d ended: the one that was not added", ended);
    dt_module_materialize(root, 1);
    dt_tensor_hold(&held, w);
    expect(dti_param_of(held) == dti_param_of(w) && dti_param_of(w), "a handle of a parameter is it");
    expect(strcmp(dt_param_path(held), "w") == 0, "%s", dt_param_path(held));
    dt_scope_pop(ctx, scope, NULL);
    expect(ended == 3 && released == 1, "%d ended, %d hooks", ended, released);
    expect(!dti_param_of(held) && !dt_param_path(held), "its module has ended");
    dt_tensor_hold(&held, NULL);
    dt_module *later = new_plain(mesh, NULL);
    dt_context_fail(ctx, DT_ERR_ARG, "on purpose");
    expect(dti_module_hook_owned(later, NULL, NULL, &released, count_release) == DT_ERR_ARG && released == 2,
           "released where it cannot be added");
}

static void modules_end_with_scopes_and_parents(void) { in_dry(endings); }

/* Many that come and go: none is found in the place of another. */
static void comings(dt_context *ctx, dt_mesh *mesh)
{
    dt_module *stay = new_tree(mesh);
    for (int i = 0; i < 50; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_module *trees[7];
        for (int k = 0; k < 7; k++) trees[k] = new_tree(mesh);
        for (int k = 0; k < 7; k++) expect_params(trees[k], "a.d.e.*", "a.d.e.weight;");
        dt_scope_pop(ctx, scope, NULL);
        expect_params(stay, "**.e.*", "a.d.e.weight;");
    }
    expect_no_error(ctx, "comings");
}

static void modules_come_and_go(void) { in_dry(comings); }

/* Values of few hashes, of which many go: the others are still found. */
static bool is_in(const dti_table *table, uint64_t hash, const void *value)
{
    const void *at_hand;
    for (size_t at = dti_table_first(table, hash); (at_hand = dti_table_value(table, hash, &at)) != NULL;)
        if (at_hand == value) return true;
    return false;
}

static void tables_give_values_back(void)
{
    enum { N = 300, HASHES = 23 };
    char values[N] = { 0 };
    dti_table table = { 0 };
    dti_table_remove(&table, 0, values);
    for (int i = 0; i < N; i++) dti_table_add(&table, (uint64_t)(i * i % HASHES), &values[i]);
    for (int i = 0; i < N; i += 3) dti_table_remove(&table, (uint64_t)(i * i % HASHES), &values[i]);
    dti_table_remove(&table, 0, values);
    for (int i = 0; i < N; i++)
        expect(is_in(&table, (uint64_t)(i * i % HASHES), &values[i]) == (i % 3 != 0), "value %d", i);
    expect(table.count == N - N / 3, "%zu are left", table.count);
    dti_table_fini(&table);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static const dt_module_type no_forward = { .name = "no_forward" };
static const dt_module_type many_inputs = { .name = "many", .inputs = DT_MAX_MODULE_INPUTS + 1,
                                            .forward = plain_forward };
static const char *const no_names[] = { "", ".", "a.b", "a b", "a*", "a[b]", "a,b", "ä" };

static void refused_names(dt_context *ctx, dt_module *root)
{
    dt_mesh *mesh = dt_module_mesh(root);
    dt_module *b = dt_module_find(root, "a.d");
    for (int i = 0; i < DT_COUNT(no_names); i++) {
        expect(!dt_module_add(b, no_names[i], new_plain(mesh, NULL)), "a child called %s", no_names[i]);
        expect_error(ctx, DT_ERR_ARG, "a.d", no_names[i]);
        expect(!dt_module_param(b, no_names[i], DT_SHAPE(1), NULL), "a parameter called %s", no_names[i]);
        expect_error(ctx, DT_ERR_ARG, "a.d", no_names[i]);
    }
    dt_module_add(b, NULL, new_plain(mesh, NULL));
    expect_error(ctx, DT_ERR_ARG, "a.d", "no name");
    dt_module_add(b, "weight", new_plain(mesh, NULL));
    expect_error(ctx, DT_ERR_ARG, "a.d has a \"weight\"", "the name of a parameter");
    dt_module_add(b, "e", new_plain(mesh, NULL));
    expect_error(ctx, DT_ERR_ARG, "a.d has a \"e\"", "the name of a child");
    dt_module_param(b, "e", DT_SHAPE(1), NULL);
    expect_error(ctx, DT_ERR_ARG, "a.d has a \"e\"", "a parameter called as a child");
    dt_module_tie(b, "e", ((plain *)dt_module_state(b))->weight);
    expect_error(ctx, DT_ERR_ARG, "a.d has a \"e\"", "tied under the name of a child");
}

static void refused_trees(dt_context *ctx, dt_module *root)
{
    dt_mesh *mesh = dt_module_mesh(root);
    dt_module *d = dt_module_find(root, "a.d");
    dt_context *other = dt_context_dry(1);
    dt_module_add(d, "up", root);
    expect_error(ctx, DT_ERR_STATE, "a.d would be within itself", "a cycle");
    dt_module *own = new_plain(mesh, NULL);
    dt_module_add(own, "own", own);
    expect_error(ctx, DT_ERR_STATE, "within itself", "itself");
    dt_module_add(root, "second", d);
    expect_error(ctx, DT_ERR_STATE, "d of a already", "two parents");
    dt_module_add(d, "none", NULL);
    expect_error(ctx, DT_ERR_ARG, "a.d", "no child");
    dt_module_add(NULL, "none", new_plain(mesh, NULL));
    expect_error(ctx, DT_ERR_ARG, "no parent", "no parent");
    dt_module_add(d, "other", new_plain(dt_mesh_create(other, "x=1"), NULL));
    expect_error(ctx, DT_ERR_ARG, "another context", "another context");
    expect(!dt_module_add(NULL, "a", NULL) && !dt_module_create(NULL, &plain_type, NULL), "nothing at all");
    dt_context_destroy(&other);
    dt_module_create(mesh, NULL, NULL);
    expect_error(ctx, DT_ERR_ARG, "no type", "no type");
    dt_module_create(mesh, &no_forward, NULL);
    expect_error(ctx, DT_ERR_ARG, "no forward", "no forward");
    dt_module_create(mesh, &many_inputs, NULL);
    expect_error(ctx, DT_ERR_ARG, "9 inputs", "many inputs");
}

static void refused_patterns(dt_context *ctx, dt_module *root)
{
    dt_module *a = dt_module_find(root, "a");
    for (int i = 0; i < DT_COUNT(faults); i++) {
        char column[32];
        snprintf(column, sizeof column, "column %d:", faults[i].column);
        expect(dt_module_list(a, faults[i].pattern, NULL, 0) == 0, "%s", faults[i].pattern);
        expect_error(ctx, DT_ERR_PARSE, column, faults[i].pattern);
        expect(dt_module_params(a, faults[i].pattern, NULL, 0) == 0, "%s", faults[i].pattern);
        expect_error(ctx, DT_ERR_PARSE, "(a)", faults[i].pattern);
        dt_module_recompute(a, faults[i].pattern);
        expect_error(ctx, DT_ERR_PARSE, column, faults[i].pattern);
    }
    dt_module_recompute(a, "x");
    expect_error(ctx, DT_ERR_ARG, "nothing in a matches \"x\"", "no match");
    dt_module_recompute(a, NULL);
    expect_error(ctx, DT_ERR_ARG, "no pattern for a", "no pattern");
    expect(dt_module_list(NULL, "**", NULL, 0) == 0 && dt_module_train(NULL, true) == DT_ERR_ARG, "no module");
    expect(dt_module_recompute(NULL, "") == DT_ERR_ARG && dt_module_hook(NULL, NULL, NULL, NULL) == DT_ERR_ARG
               && dt_module_materialize(NULL, 1) == DT_ERR_ARG && dt_module_zero_grad(NULL) == DT_ERR_ARG
               && !dt_module_path(NULL) && !dt_module_state(NULL) && !dt_param_path(NULL), "no module");
}

static const struct no_param { dt_shape shape; dt_param_params params; dt_status status; const char *says; }
no_params[] = {
    { { 2, { 6, 4 } }, { .unit = 4 }, DT_ERR_SHAPE, "units of 4" },
    { { 2, { 6, 4 } }, { .unit = -2 }, DT_ERR_SHAPE, "units of -2" },
    { { 2, { 6, 4 } }, { .in_unit = 3 }, DT_ERR_SHAPE, "dim 1" },
    { { 1, { 6 } }, { .in_unit = 2 }, DT_ERR_SHAPE, "dim 1" },
    { { 0, { 0 } }, { .unit = 2 }, DT_ERR_SHAPE, "dim 0" },
    { { 1, { 6 } }, { .dtype = DT_I64 }, DT_ERR_DTYPE, "i64 is no float" },
    { { 1, { 6 } }, { .dtype = (dt_dtype)99 }, DT_ERR_DTYPE, "? is no float" },
    { { 1, { 6 } }, { .init = DT_INIT_COUNT }, DT_ERR_ARG, "dt_init" },
    { { 1, { -1 } }, { .unit = 0 }, DT_ERR_SHAPE, "size -1" },
    { { 9, { 1 } }, { .unit = 0 }, DT_ERR_SHAPE, "dims" },
    { { 3, { INT64_MAX, 4, 4 } }, { .unit = 0 }, DT_ERR_SHAPE, "" },
};

static void refused_params(dt_context *ctx, dt_module *root)
{
    dt_module *b = dt_module_find(root, "b");
    for (int i = 0; i < DT_COUNT(no_params); i++) {
        expect(!dt_module_param(b, "p", no_params[i].shape, &no_params[i].params), "parameter %d", i);
        expect_error(ctx, no_params[i].status, no_params[i].says, "a parameter that cannot be");
    }
    dt_tensor *x = dt_zeros(dt_spec_parse(dt_module_mesh(root), "f32[2]"));
    dt_module_tie(b, "tied", x);
    expect_error(ctx, DT_ERR_ARG, "tied of b: expected a parameter", "tied to a tensor");
    dt_module_tie(b, "tied", NULL);
    expect_error(ctx, DT_ERR_ARG, "tied of b: expected a parameter", "tied to nothing");
    expect(dt_module_param(b, "p", DT_SCALAR, NULL) != NULL && dt_module_param(b, "q", DT_SHAPE(0, 3), NULL) != NULL,
           "a scalar, an empty one");
    expect(!dt_param_path(x), "no parameter has no path");
}

static void refusals(dt_context *ctx, dt_mesh *mesh)
{
    dt_module *root = new_tree(mesh);
    refused_names(ctx, root);
    refused_trees(ctx, root);
    refused_patterns(ctx, root);
    refused_params(ctx, root);
    expect_paths(root, NULL, ";a;a.c;a.d;a.d.e;b;");
    expect_no_error(ctx, "after all");
}

static void wrong_trees_are_refused(void) { in_dry(refusals); }

/* ---- without values ---------------------------------------------------------------------------------------------- */

static dt_tensor *first_input(dt_tensor *const *in, void *arg)
{
    (void)arg;
    return dt_neg(in[0]);
}

/* Along the only dim. */
static const char *places_of(dt_mesh *mesh) { return dt_mesh_size(mesh, NULL) == 1 ? "" : "x:S(0)"; }

/* Every way in. */
static void unmade(dt_context *ctx, dt_mesh *mesh)
{
    static const char says[] = "has no values yet";
    dt_module *root = new_plain(mesh, &f64);
    dt_tensor *w = ((plain *)dt_module_state(root))->weight, *y[2];
    dt_tensor *x = dt_full(dt_tensor_spec(w), 2), *slot = NULL, *list[] = { x, w };
    double room[16];
    expect(dt_tensor_size(w, 0) == 4 && !dt_grad(w) && !dt_tensor_data(w), "what can be asked");
    dt_matmul(x, w), expect_error(ctx, DT_ERR_STATE, says, "matmul");
    dt_mul_scalar(w, 2), expect_error(ctx, DT_ERR_STATE, says, "mul_scalar");
    dt_redistribute(w, "*"), expect_error(ctx, DT_ERR_STATE, says, "redistribute");
    dt_redistribute(w, places_of(mesh)), expect_error(ctx, DT_ERR_STATE, says, "redistribute");
    dt_redistribute_to(w, dt_mesh_create(ctx, "z"), ""), expect_error(ctx, DT_ERR_STATE, says, "redistribute_to");
    dt_redistribute_start(w, places_of(mesh)), expect_error(ctx, DT_ERR_STATE, says, "redistribute_start");
    dt_redistribute_list(list, 2, (const char *[]){ "*", "*" }, y), expect_error(ctx, DT_ERR_STATE, says, "a list");
    dt_tensor_to_host(w, -1, room, sizeof room), expect_error(ctx, DT_ERR_STATE, says, "to_host");
    dt_tensor_item(w), expect_error(ctx, DT_ERR_STATE, says, "item");
    dt_tensor_close(w, x, 0, 0), expect_error(ctx, DT_ERR_STATE, says, "close");
    dt_tensor_close(x, w, 0, 0), expect_error(ctx, DT_ERR_STATE, says, "close");
    dt_tensor_checksum(w), expect_error(ctx, DT_ERR_STATE, says, "checksum");
    dt_tensor_text(w), expect_error(ctx, DT_ERR_STATE, says, "text");
    dt_tensor_hold(&slot, w), expect_error(ctx, DT_ERR_STATE, says, "hold");
    dt_to_local(w, ""), expect_error(ctx, DT_ERR_STATE, says, "to_local");
    dt_detach(w), expect_error(ctx, DT_ERR_STATE, says, "detach");
    dt_require_grad(w), expect_error(ctx, DT_ERR_STATE, says, "require_grad");
    dt_backward(w, x), expect_error(ctx, DT_ERR_STATE, "", "backward");
    dt_require_grad(x), dt_backward(dt_neg(x), w), expect_error(ctx, DT_ERR_STATE, says, "backward's seed");
    dt_copy_into(w, x), expect_error(ctx, DT_ERR_STATE, says, "copy_into");
    dt_copy_into(x, w), expect_error(ctx, DT_ERR_STATE, says, "copy_into");
    dt_copy_into_list(&x, &w, 1), expect_error(ctx, DT_ERR_STATE, says, "copy_into_list");
    dt_axpby_into(w, x, 1, 1), expect_error(ctx, DT_ERR_STATE, says, "axpby_into");
    dt_norm_list(list, 2), expect_error(ctx, DT_ERR_STATE, says, "norm_list");
    dt_recompute(first_input, NULL, &w, 1), expect_error(ctx, DT_ERR_STATE, says, "recompute");
    dt_module_call(root, x), expect_error(ctx, DT_ERR_STATE, "plain: parameter weight has no values", "a call");
    expect(!slot, "nothing is held");
    expect(dt_module_materialize(root, 1) == DT_OK && dt_module_call(root, x), "%s", dt_context_error(ctx));
}

/* On every rank, also where it is not of the mesh, and without data. */
static dt_status unmade_on_ranks(dt_context *ctx, void *arg)
{
    (void)arg;
    unmade(ctx, dt_mesh_create(ctx, "x"));
    unmade(ctx, dti_mesh_of_rank(ctx, 1));
    return dt_context_status(ctx);
}

static void tensors_without_values_are_refused(void)
{
    launch(3, unmade_on_ranks, NULL);
    in_dry(unmade);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum { PARAMS = 6 };

static const struct declared { dt_shape shape; dt_param_params params; } declared[PARAMS] = {
    { { 2, { 13, 6 } }, { .dtype = DT_F32 } },
    { { 2, { 13, 6 } }, { .dtype = DT_BF16 } },
    { { 2, { 60, 60 } }, { .dtype = DT_F64, .init = DT_INIT_NORMAL, .scale = 3 } },
    { { 1, { 7 } }, { .init = DT_INIT_ONES, .scale = 0.5 } },
    { { 3, { 3, 5, 2 } }, { .init = DT_INIT_ZEROS } },
    { { 0, { 0 } }, { .init = DT_INIT_NORMAL } },
};
static const char *const names[PARAMS] = { "a", "b", "c", "d", "e", "f" };

static void declared_init(dt_module *self, const void *params)
{
    (void)params;
    for (int i = 0; i < PARAMS; i++) dt_module_param(self, names[i], declared[i].shape, &declared[i].params);
}

static const dt_module_type declared_type = { .name = "declared", .init = declared_init, .forward = plain_forward };

static const char *const places[][PARAMS] = {
    { "", "", "", "", "", "" },
    { "x:S(0)", "x:S(0)", "x:S(0)", "x:S(0)", "x:S(0)", "" },
    { "x:S(1)", "x:S(1)", "x:S(1)", "", "x:S(1)", "" },
    { "y:S(0),x:S(0)", "x:S(1),y:S(0)", "x:S(0),y:S(1)", "x:S(0),y:S(0)", "x:S(2)", "" },
};

typedef struct sums { uint64_t of[PARAMS]; int place; } sums;

static dt_status checksums(dt_context *ctx, void *arg)
{
    sums *s = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, ctx->rank_count % 2 ? "x,y=1" : "x,y=2");
    dt_module *root = dt_module_create(mesh, &declared_type, NULL);
    dt_tensor *params[PARAMS];
    dt_module_params(root, NULL, params, PARAMS);
    for (int i = 0; i < PARAMS; i++)
        dti_param_store(dti_param_of(params[i]), dt_spec_replace(dt_tensor_spec(params[i]), places[s->place][i]));
    expect(dt_module_materialize(root, 42) == DT_OK, "%s", dt_context_error(ctx));
    for (int i = 0; i < PARAMS; i++) {
        uint64_t sum = dt_tensor_checksum(params[i]);
        if (ctx->rank_count == 1 && s->place == 0) s->of[i] = sum;
        expect(sum == s->of[i], "%s on %d ranks, %s", names[i], ctx->rank_count, places[s->place][i]);
        expect(dt_spec_has(dt_tensor_spec(params[i]), places[s->place][i]), "as it was placed");
    }
    dti_param_store(dti_param_of(params[0]), dt_spec_replace(dt_tensor_spec(params[0]), "x:S(1)"));
    expect(dt_spec_has(dt_tensor_spec(params[0]), places[s->place][0]), "one with values stays where it is");
    return dt_context_status(ctx);
}

static void values_are_the_same_on_every_mesh(void)
{
    static const int worlds[] = { 1, 2, 3, 4, 6 };
    sums s = { .place = 0 };
    for (int w = 0; w < DT_COUNT(worlds); w++)
        for (s.place = 0; s.place < DT_COUNT(places); s.place++) launch(worlds[w], checksums, &s);
}

/* What they are: deviations, constants, bf16 as f32 rounded; another seed, another path, other values. */
static dt_status values(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = dt_module_create(mesh, &declared_type, NULL);
    dt_module *other = dt_module_create(mesh, &declared_type, NULL);
    dt_tensor *p[PARAMS], *q[PARAMS];
    dt_module_params(root, NULL, p, PARAMS);
    dt_module_params(other, NULL, q, PARAMS);
    dt_module_materialize(root, 1);
    dt_module_materialize(other, 2);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    double deviation = sqrt(dt_tensor_item(dt_mean(dt_mul(p[2], p[2]), DT_ALL, false)));
    expect(fabs(deviation / 3 - 1) < 0.05, "%g: 3,600 draws of deviation 3", deviation);
    deviation = sqrt(dt_tensor_item(dt_mean(dt_mul(p[0], p[0]), DT_ALL, false)));
    expect(fabs(deviation * sqrt(6) - 1) < 0.35, "%g: 78 draws of deviation 1 / sqrt(6)", deviation);
    expect(dt_tensor_close(p[3], dt_full(dt_tensor_spec(p[3]), 0.5), 0, 0), "ones times a half");
    expect(dt_tensor_close(p[4], dt_zeros(dt_tensor_spec(p[4])), 0, 0), "zeros");
    expect(!dt_tensor_close(p[0], q[0], 1e-3, 1e-3), "another seed");
    expect(!dt_tensor_close(p[0], dt_cast(p[1], DT_F32), 1e-2, 1e-2), "another path");
    dt_tensor *before = dt_copy(p[0]);
    dt_module_materialize(root, 3);
    expect(dt_tensor_close(p[0], before, 0, 0), "those that have values keep them");
    dt_scope_pop(ctx, scope, NULL);
    dt_module *zeros = dt_module_create(mesh, &declared_type, NULL);
    expect(dti_module_make(zeros, NULL, NULL), "%s", dt_context_error(ctx));
    dt_module_params(zeros, NULL, q, PARAMS);
    expect(dt_tensor_close(q[2], dt_zeros(dt_tensor_spec(q[2])), 0, 0), "made without a filler");
    return dt_context_status(ctx);
}

static void values_are_as_declared(void) { launch(2, values, NULL); }

/* A parameter of bf16 is that of f32, rounded. */
static dt_status rounded(dt_context *ctx, void *arg)
{
    (void)arg;
    static const dt_param_params wide = { .dtype = DT_F32 }, narrow = { .dtype = DT_BF16 };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *a = new_plain(mesh, &wide), *b = new_plain(mesh, &narrow);
    dt_module_materialize(a, 5);
    dt_module_materialize(b, 5);
    dt_tensor *x = ((plain *)dt_module_state(a))->weight, *y = ((plain *)dt_module_state(b))->weight;
    expect(dt_tensor_close(dt_cast(x, DT_BF16), y, 0, 0), "bf16 is f32, rounded");
    return dt_context_status(ctx);
}

static void values_are_rounded_once(void) { launch(2, rounded, NULL); }

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static dt_tensor *add_input(dt_module *self, int index, dt_tensor *in, void *arg)
{
    (void)self;
    return index == 0 ? dt_add_scalar(in, *(const double *)arg) : in;
}

static dt_tensor *times_output(dt_module *self, dt_tensor *out, void *arg)
{
    (void)self;
    return dt_mul_scalar(out, *(const double *)arg);
}

static dt_tensor *minus_output(dt_module *self, dt_tensor *out, void *arg)
{
    (void)self;
    return dt_sub_scalar(out, *(const double *)arg);
}

/* -(((x + 1) + 2)) times 3, less 1 */
static dt_status hooks(dt_context *ctx, void *arg)
{
    (void)arg;
    double one = 1, two = 2, three = 3;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = new_plain(mesh, NULL);
    dt_module_hook(root, add_input, times_output, &three);
    dt_module_hook(root, NULL, NULL, NULL);
    dt_module_hook(root, add_input, minus_output, &one);
    dt_tensor *x = dt_full(dt_spec_parse(mesh, "f64[4]@x:S(0)"), 5);
    dt_tensor *y = dt_module_call(root, x);
    expect(dt_tensor_close(y, dt_full(dt_tensor_spec(x), -9 * three - one), 0, 0), "in the order in which they came");
    (void)two;
    return dt_context_status(ctx);
}

static void hooks_go_in_order(void) { launch(2, hooks, NULL); }

static dt_tensor *nothing(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    (void)in;
    return NULL;
}

static dt_tensor *wrong_shapes(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    return dt_matmul(in[0], in[0]);
}

static dt_tensor *same(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    return in[0];
}

static dt_tensor *second(dt_module *self, dt_tensor *const *in)
{
    (void)self;
    return in[1] ? dt_add(in[0], in[1]) : in[0];
}

static dt_tensor *no_input(dt_module *self, int index, dt_tensor *in, void *arg)
{
    (void)self;
    (void)index;
    (void)in;
    (void)arg;
    return NULL;
}

static const dt_module_type nothing_type = { .name = "nothing", .forward = nothing };
static const dt_module_type wrong_type = { .name = "wrong", .forward = wrong_shapes };
static const dt_module_type same_type = { .name = "same", .forward = same };
static const dt_module_type second_type = { .name = "second", .inputs = 2, .forward = second };

static dt_status call_errors(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f64[3,4]")), *pair[] = { x, NULL };
    dt_module *root = new_plain(mesh, NULL), *a = dt_module_add(root, "a", new_plain(mesh, NULL));
    dt_module_add(a, "wrong", dt_module_create(mesh, &wrong_type, NULL));
    dt_module_call(root, x);
    expect_error(ctx, DT_ERR_SHAPE, "a.wrong: matmul", "what forward says");
    expect(dt_context_status(ctx) == DT_OK && !ctx->inside, "nobody's function runs");
    dt_neg(NULL);
    dt_module_call(dt_module_create(mesh, &nothing_type, NULL), x);
    expect_error(ctx, DT_ERR_ARG, "nothing: forward returned no tensor", "no result");
    dt_module *one = new_plain(mesh, NULL), *two = dt_module_create(mesh, &second_type, NULL);
    dt_module_call(one, NULL);
    expect_error(ctx, DT_ERR_ARG, "plain: input 0 of 1 is NULL", "no input");
    dt_module_call_n(one, NULL, 1);
    expect_error(ctx, DT_ERR_ARG, "plain: input 0 of 1 is NULL", "no inputs");
    dt_module_call(two, x);
    expect_error(ctx, DT_ERR_ARG, "second: 1 inputs, expected 2", "fewer inputs");
    dt_module_call_n(one, pair, 2);
    expect_error(ctx, DT_ERR_ARG, "plain: 2 inputs, expected 1", "more inputs");
    dt_module_call(NULL, x);
    expect_error(ctx, DT_ERR_ARG, "no module", "no module");
    expect(!dt_module_call(NULL, NULL), "nothing at all");
    dt_module_hook(one, no_input, NULL, NULL);
    dt_module_call(one, x);
    expect_error(ctx, DT_ERR_ARG, "plain: a hook returned no tensor", "a hook");
    expect(dt_module_call_n(two, pair, 2) == x, "a second input may be absent");
    expect(dt_module_call(dt_module_create(mesh, &same_type, NULL), x) == x, "what comes is returned");
    return dt_context_status(ctx);
}

static void calls_that_fail_name_the_path(void) { launch(2, call_errors, NULL); }

/* One rank fails inside a module: the others hear where. */
static dt_tensor *fails_on_one(dt_module *self, dt_tensor *const *in)
{
    dt_context *ctx = dt_module_context(self);
    if (dt_rank(ctx) == 1) dt_context_fail(ctx, DT_ERR_IO, "on purpose");
    return dt_redistribute(in[0], "");
}

static const dt_module_type one_type = { .name = "one", .forward = fails_on_one };

static dt_status peer(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = new_plain(mesh, NULL);
    dt_module_add(root, "deep", dt_module_create(mesh, &one_type, NULL));
    dt_module_call(root, dt_zeros(dt_spec_parse(mesh, "f64[8]@x:S(0)")));
    expect(dt_context_status(ctx) == (dt_rank(ctx) == 1 ? DT_ERR_IO : DT_ERR_PEER), "%s", dt_context_error(ctx));
    expect(strstr(dt_context_error(ctx), "deep: on purpose") != NULL, "%s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void peers_hear_the_path(void)
{
    char error[512] = "";
    expect(dt_launch_threads(3, peer, NULL, error, sizeof error) == DT_ERR_IO, "%s", error);
    expect(strcmp(error, "rank 1: deep: on purpose") == 0, "%s", error);
}

/* ---- gradients, and again ---------------------------------------------------------------------------------------- */

static dt_status zeroed(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = new_tree(mesh);
    dt_module_materialize(root, 1);
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f64[8,4]@x:S(0)"), 1), *first = NULL, *params[PARAMS];
    dt_module_params(root, NULL, params, PARAMS);
    for (int i = 0; i < 2; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *y = dt_module_call(root, x);
        dt_backward(dt_sum(dt_mul(y, y), DT_ALL, false), NULL);
        if (i == 0) dt_tensor_hold(&first, dt_grad(params[3]));
        dt_scope_pop(ctx, scope, NULL);
    }
    dt_tensor *twice = dt_add(first, first);
    expect(dt_tensor_close(dt_grad(params[3]), twice, 1e-12, 0), "gradients add up");
    dt_module_zero_grad(dt_module_find(root, "a"));
    expect(!dt_grad(params[1]) && !dt_grad(params[4]) && dt_grad(params[0]) && dt_grad(params[5]), "those below a");
    dt_tensor *y = dt_module_call(root, x);
    dt_backward(dt_sum(dt_mul(y, y), DT_ALL, false), NULL);
    expect(dt_tensor_close(dt_grad(params[3]), first, 0, 0), "as at first");
    dt_tensor_hold(&first, NULL);
    return dt_context_status(ctx);
}

static void gradients_are_forgotten(void) { launch(2, zeroed, NULL); }

/* A tree whose modules drop: root, a, a.d */
static dt_tensor *drop_forward(dt_module *self, dt_tensor *const *in)
{
    const plain *p = dt_module_state(self);
    dt_tensor *x = dt_gelu(dt_matmul(in[0], p->weight));
    for (dt_module *child = self->first; child; child = child->next) x = dt_module_call(child, x);
    return dt_module_is_training(self) ? dt_dropout(x, 0.4, dt_module_key(self, 7)) : x;
}

static const dt_module_type drop_type = {
    .name = "drop", .state_bytes = sizeof(plain), .init = plain_init, .forward = drop_forward,
};

static dt_module *new_drops(dt_mesh *mesh)
{
    dt_module *root = dt_module_create(mesh, &drop_type, &f64);
    dt_module *a = dt_module_add(root, "a", dt_module_create(mesh, &drop_type, &f64));
    dt_module_add(a, "d", dt_module_create(mesh, &drop_type, &f64));
    dt_module_materialize(root, 9);
    return root;
}

/* Result and gradients of a step; between forward and backward the context goes on to the next. */
static uint64_t step_sum(dt_context *ctx, dt_module *root, dt_tensor *x, int64_t step, int micro_batch)
{
    dt_tensor *params[3];
    uint64_t sum = 0;
    int scope = dt_scope_push(ctx, 0);
    dt_context_step(ctx, step, micro_batch);
    dt_module_zero_grad(root);
    dt_tensor *y = dt_module_call(root, x);
    sum = dt_tensor_checksum(y);
    dt_context_step(ctx, step + 1, 0);
    dt_backward(dt_sum(dt_mul(y, y), DT_ALL, false), NULL);
    expect(ctx->step == step + 1 && ctx->micro_batch == 0, "the context is where it was");
    dt_module_params(root, NULL, params, 3);
    for (int i = 0; i < 3; i++) sum = 31 * sum + dt_tensor_checksum(dt_grad(params[i]));
    sum = 31 * sum + (dt_grad(x) ? dt_tensor_checksum(dt_grad(x)) : 0);
    dt_scope_pop(ctx, scope, NULL);
    return sum;
}

static const char *const recomputed[] = { "", "a", "a.d", "**", "a.**" };

static dt_status again(dt_context *ctx, void *arg)
{
    const char *pattern = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *kept = new_drops(mesh), *redone = new_drops(mesh);
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f64[9,4]@x:S(0)"), 1);
    expect(dt_module_recompute(redone, pattern) == DT_OK, "%s", dt_context_error(ctx));
    uint64_t one = step_sum(ctx, kept, x, 3, 1);
    expect(step_sum(ctx, redone, x, 3, 1) == one, "recomputed at \"%s\": the same bits", pattern);
    expect(step_sum(ctx, kept, x, 4, 1) != one && step_sum(ctx, kept, x, 3, 2) != one, "other draws");
    expect(step_sum(ctx, kept, x, 3, 1) == one, "the same step draws the same");
    dt_module_train(kept, false);
    expect(step_sum(ctx, kept, x, 3, 1) != one && step_sum(ctx, kept, x, 4, 0) == step_sum(ctx, kept, x, 3, 1),
           "no draws");
    expect(!dt_module_is_training(dt_module_find(kept, "a.d")), "all below");
    return dt_context_status(ctx);
}

static void recomputing_gives_the_same_bits(void)
{
    for (int i = 0; i < DT_COUNT(recomputed); i++)
        for (int ranks = 1; ranks <= 3; ranks++) launch(ranks, again, recomputed[i]);
}

/* What backward runs again must be as it was. */
static dt_status changed(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = new_drops(mesh);
    dt_module_recompute(root, "a");
    dt_tensor *y = dt_module_call(root, dt_rand(dt_spec_parse(mesh, "f64[9,4]@x:S(0)"), 1));
    dt_module_train(root, false);
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
    expect_error(ctx, DT_ERR_STATE, "a was training when it ran that backward runs again, and is not now", "training");
    return dt_context_status(ctx);
}

static void what_is_recomputed_must_stand(void) { launch(2, changed, NULL); }

/* ---- scopes that forward ends ------------------------------------------------------------------------------------ */

static dt_tensor *ending_forward(dt_module *self, dt_tensor *const *in)
{
    dt_scope_pop(dt_module_context(self), *(int *)dt_module_state(self), NULL);
    return in[0];
}

static const dt_module_type ending_type = { .name = "ending", .state_bytes = sizeof(int), .forward = ending_forward };

static void scopes_of_others_are_not_ended(void)
{
    dt_context *ctx = dt_context_dry(2);
    dt_module *ending = dt_module_create(dt_mesh_create(ctx, "x"), &ending_type, NULL);
    int scope = dt_scope_push(ctx, 0);
    *(int *)dt_module_state(ending) = scope;
    dt_tensor *x = NULL;
    dt_tensor_hold(&x, dt_zeros(dt_spec_parse(dt_module_mesh(ending), "f32[4]")));
    expect(dt_module_call(ending, x) == NULL, "a result of no scope");
    expect_error(ctx, DT_ERR_STATE, "ending: forward has ended a scope that it did not open", "a scope of the caller");
    dt_tensor_hold(&x, NULL);
    dt_context_destroy(&ctx);
}

/* Less is kept, and a tape that outlives its module is refused. */
static dt_status less(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    int64_t kept[2];
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f64[90,4]"), 1), *y = NULL;
    for (int i = 0; i < 2; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_module *root = new_drops(mesh);
        if (i) dt_module_recompute(root, "");
        dt_tensor_hold(&y, NULL);
        int64_t before = dt_mesh_counters(mesh, NULL).memory;
        dt_tensor_hold(&y, dt_module_call(root, x));
        kept[i] = dt_mesh_counters(mesh, NULL).memory - before;
        dt_scope_pop(ctx, scope, NULL);
    }
    expect(kept[1] == 90 * 4 * 8 && kept[0] > 3 * kept[1], "%lld and %lld bytes", (long long)kept[0],
           (long long)kept[1]);
    dt_backward(dt_sum(y, DT_ALL, false), NULL);
    expect_error(ctx, DT_ERR_STATE, "has ended", "a module that has ended");
    dt_tensor_hold(&y, NULL);
    return dt_context_status(ctx);
}

static void recomputing_keeps_less(void) { launch(2, less, NULL); }

/* ---- tied -------------------------------------------------------------------------------------------------------- */

static dt_status tied(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *root = new_plain(mesh, NULL), *a = dt_module_add(root, "a", new_plain(mesh, &f64));
    dt_module *b = dt_module_add(root, "b", new_plain(mesh, NULL));
    plain *of_a = dt_module_state(a), *of_b = dt_module_state(b);
    of_b->weight = dt_module_tie(b, "weight", of_a->weight);
    expect(of_b->weight == of_a->weight, "the same handle");
    expect_params(root, NULL, "a.weight;");
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f64[4,4]"), 1);
    dt_module_call(b, x);
    expect_error(ctx, DT_ERR_STATE, "b: parameter weight has no values", "a tied one");
    dt_module_materialize(root, 1);
    dt_tensor *y = dt_module_call(root, x);
    dt_backward(y, dt_full(dt_tensor_spec(y), 1));
    dt_tensor *w = of_a->weight, *g = dt_full(dt_tensor_spec(y), -1);
    dt_tensor *due = dt_add(dt_matmul(dt_transpose(dt_matmul(x, w), 0, 1), g),
                            dt_matmul(dt_transpose(x, 0, 1), dt_matmul(g, dt_transpose(w, 0, 1))));
    expect(dt_tensor_close(dt_grad(w), due, 1e-12, 1e-14), "the gradients of both");
    dt_module *alone = new_plain(mesh, NULL);
    int scope = dt_scope_push(ctx, 0);
    dt_module_tie(alone, "weight", ((plain *)dt_module_state(new_plain(mesh, &f64)))->weight);
    dt_scope_pop(ctx, scope, NULL);
    dt_module_call(alone, x);
    expect_error(ctx, DT_ERR_STATE, "has ended", "the owner has ended");
    return dt_context_status(ctx);
}

static void a_tied_parameter_is_one(void) { launch(2, tied, NULL); }

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void keys(dt_context *ctx, dt_mesh *mesh)
{
    dt_module *root = new_tree(mesh), *c = dt_module_find(root, "a.c"), *d = dt_module_find(root, "a.d");
    uint64_t key = dt_module_key(c, 0);
    expect(key == dt_module_key(c, 0), "no count of calls");
    expect(key != dt_module_key(c, 1) && key != dt_module_key(d, 0) && key != dt_module_key(root, 0), "n, path");
    dt_context_step(ctx, 0, 1);
    uint64_t second_batch = dt_module_key(c, 0);
    dt_context_step(ctx, 1, 0);
    expect(second_batch != key && dt_module_key(c, 0) != key && dt_module_key(c, 0) != second_batch, "step, batch");
    dt_context_step(ctx, 0, 0);
    expect(key == dt_module_key(c, 0) && !dt_module_key(NULL, 0), "the same again");
}

static void keys_hang_on_path_and_step(void) { in_dry(keys); }

static const test_row rows[] = {
    { "patterns_match", patterns_match },
    { "a_tree_is_walked", a_tree_is_walked },
    { "modules_end_with_scopes_and_parents", modules_end_with_scopes_and_parents },
    { "modules_come_and_go", modules_come_and_go },
    { "tables_give_values_back", tables_give_values_back },
    { "wrong_trees_are_refused", wrong_trees_are_refused },
    { "tensors_without_values_are_refused", tensors_without_values_are_refused },
    { "values_are_the_same_on_every_mesh", values_are_the_same_on_every_mesh },
    { "values_are_as_declared", values_are_as_declared },
    { "values_are_rounded_once", values_are_rounded_once },
    { "hooks_go_in_order", hooks_go_in_order },
    { "calls_that_fail_name_the_path", calls_that_fail_name_the_path },
    { "peers_hear_the_path", peers_hear_the_path },
    { "gradients_are_forgotten", gradients_are_forgotten },
    { "recomputing_gives_the_same_bits", recomputing_gives_the_same_bits },
    { "recomputing_keeps_less", recomputing_keeps_less },
    { "what_is_recomputed_must_stand", what_is_recomputed_must_stand },
    { "scopes_of_others_are_not_ended", scopes_of_others_are_not_ended },
    { "a_tied_parameter_is_one", a_tied_parameter_is_one },
    { "keys_hang_on_path_and_step", keys_hang_on_path_and_step },
};

const suite the_suite = { "module", rows, DT_COUNT(rows) };
