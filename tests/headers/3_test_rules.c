/* Placement rules as unit tests: without data on a dry context, with data on thread ranks. */
#include <criterion/criterion.h>
#include <dtensor/dtensor.h>

/* ---- without data: one context of 8 ranks, no threads ----------------------------------------------------------- */

static dt_context *ctx;
static dt_mesh *mesh;

static void begin(void)
{
    ctx = dt_context_dry(8);
    mesh = dt_mesh_create(ctx, "dp=2,tp=4");
}

static void end(void) { dt_context_destroy(&ctx); }

TestSuite(rules, .init = begin, .fini = end);

static dt_tensor *tensor(const char *spec) { return dt_zeros(dt_spec_parse(mesh, spec)); }

static void expect(dt_tensor *y, const char *placements)
{
    cr_assert(y, "%s", dt_context_error(ctx));
    cr_expect(dt_spec_has(dt_tensor_spec(y), placements), "%s, want %s", dt_spec_text(dt_tensor_spec(y)), placements);
}

Test(rules, contracted_dim_sharded_gives_partial)
{
    expect(dt_matmul(tensor("f32[64,512]@dp:S(0),tp:S(1)"), tensor("f32[512,256]@tp:S(0)")), "dp:S(0),tp:P(sum)");
    cr_expect_eq(dt_mesh_counters(mesh, NULL).implied, 0);
}

Test(rules, gradient_of_a_replicated_weight_is_partial)
{
    dt_tensor *w = dt_require_grad(tensor("f32[256,512]"));
    dt_backward(dt_sum(dt_linear(tensor("f32[64,512]@dp:S(0)"), w, NULL), DT_ALL, false), NULL);
    expect(dt_grad(w), "dp:P(sum)");
}

Test(rules, strict_mode_refuses_and_the_context_recovers)
{
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    cr_expect_null(dt_matmul(tensor("f32[64,512]@tp:S(1)"), tensor("f32[512,256]@tp:S(1)")));
    cr_expect_eq(dt_context_status(ctx), DT_ERR_PLACEMENT, "%s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    cr_expect_eq(dt_context_clear(ctx), DT_OK);
    expect(dt_gelu(tensor("f32[8]@tp:S(0)")), "tp:S(0)");
}

/* ---- with data: 4 thread ranks, value equal to the replicated one ------------------------------------------------ */

typedef struct row { const char *placements; int implied; } row;

static dt_status softmax_equals_serial(dt_context *c, void *arg)
{
    const row *r = arg;
    dt_mesh *m = dt_mesh_create(c, "tp=4");
    dt_tensor *whole = dt_randn(dt_spec_parse(m, "f64[5,13]"), 3);          /* 13 over 4: uneven */
    dt_tensor *y = dt_softmax(dt_redistribute(whole, r->placements), -1);
    cr_expect(dt_spec_has(dt_tensor_spec(y), r->placements), "%s", dt_spec_text(dt_tensor_spec(y)));
    cr_expect(dt_tensor_close(y, dt_softmax(whole, -1), 1e-12, 0), "differs under %s", r->placements);
    cr_expect_eq(dt_mesh_counters(m, NULL).implied, r->implied);
    return dt_context_status(c);
}

Test(values, softmax)
{
    row rows[] = { { "tp:S(0)", 0 }, { "tp:S(1)", 2 }, { "", 0 } };          /* S(1): row maximum, row sum */
    for (int i = 0; i < DT_COUNT(rows); i++) {
        char error[512] = "";
        cr_expect_eq(dt_launch_threads(4, softmax_equals_serial, &rows[i], error, sizeof error), DT_OK, "%s", error);
    }
}
