/* SPDX-License-Identifier: Apache-2.0
 *
 * An op of one's own: a low-rank product, y = scale x a^T b^T, of which the inner rank r is small. The program writes
 * its row, which says what the dims are and how the value hangs on the operands; a kernel that knows nothing of ranks;
 * a gradient of ops. Which placements it takes and gives, what moves for them, strict mode, where gradients lie and
 * what dt_explain says of a call then follow, as for the rows of the library:
 *
 *   rule        m k, r k, n r -> m n    k and r are reduced: split along one of them, y is P
 *   polynomial  x a b                   linear in each operand, so one of them may be P, the others R
 *
 * Run: ./custom_op --dt-ranks=4 --dt-mesh=tp=4
 *      ./custom_op --dt-ranks=3 --dt-mesh=tp=3                 uneven pieces */
#include <stddef.h>
#include <stdio.h>

#include <dtensor/dtensor.h>

/* ---- the row ----------------------------------------------------------------------------------------------------- */

typedef struct low_rank_params { double scale; } low_rank_params;

/* This rank's parts: their sizes are those of the pieces, and may be 0. */
static dt_status low_rank_kernel(const dt_call *call)
{
    const low_rank_params *params = call->attributes;
    const dt_part *x = &call->in[0], *a = &call->in[1], *b = &call->in[2];
    int64_t rows = x->shape.dim[0], k = x->shape.dim[1], r = a->shape.dim[0], n = b->shape.dim[0];
    if (x->dtype != DT_F64) return dt_context_fail(call->ctx, DT_ERR_DTYPE, "low_rank: expected f64");
    const double *xs = x->data, *as = a->data, *bs = b->data;
    double *y = call->out[0].data;
    for (int64_t i = 0; i < rows * n; i++) y[i] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = 0; q < r; q++) {
            double inner = 0;
            for (int64_t j = 0; j < k; j++) inner += xs[i * k + j] * as[q * k + j];
            for (int64_t j = 0; j < n; j++) y[i * n + j] += params->scale * inner * bs[j * r + q];
        }
    return DT_OK;
}

static dt_tensor *turned(dt_tensor *x) { return dt_transpose(x, 0, 1); }

/* Ops on whatever lies wherever: their rows say what becomes of it. */
static dt_status low_rank_gradient(dt_gradient *g)
{
    const low_rank_params *params = g->attributes;
    dt_tensor *x = g->in[0], *a = g->in[1], *b = g->in[2];
    dt_tensor *grad = dt_mul_scalar(g->out_grad[0], params->scale);   /* [m, n]                                   */
    dt_tensor *inner = dt_matmul(grad, b);                             /* [m, r]                                   */
    if (g->wanted[0]) g->in_grad[0] = dt_matmul(inner, a);             /* [m, k]                                   */
    if (g->wanted[1]) g->in_grad[1] = dt_matmul(turned(inner), x);     /* [r, k]                                   */
    if (g->wanted[2]) g->in_grad[2] = dt_matmul(turned(grad), dt_matmul(x, turned(a))); /* [n, r]                  */
    return dt_context_status(g->ctx);
}

static const dt_attribute low_rank_attributes[] = {
    { "scale", DT_ATTRIBUTE_NUMBER, offsetof(low_rank_params, scale) },
};

static const dt_op low_rank_row = {
    .head = "low_rank(x, a, b)", .rule = "m k, r k, n r -> m n", .polynomial = "x a b", .dtypes = "fff->f",
    .attributes = low_rank_attributes, .attribute_count = DT_COUNT(low_rank_attributes),
    .attribute_bytes = sizeof(low_rank_params), .kernel = low_rank_kernel, .gradient = low_rank_gradient,
    .doc = "scale x a^T b^T",
};

static dt_tensor *low_rank(dt_tensor *x, dt_tensor *a, dt_tensor *b, double scale)
{
    return dt_apply(&low_rank_row, (dt_tensor *[]){ x, a, b }, 3, &(low_rank_params){ scale });
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

static dt_tensor *numbers(dt_mesh *mesh, const char *sizes, const char *placements, uint64_t seed)
{
    dt_tensor *x = dt_randn(dt_spec_parse(mesh, sizes), seed);
    return dt_require_grad(dt_detach(dt_redistribute(x, placements)));
}

typedef struct operands { dt_tensor *x, *a, *b; } operands;

static operands place(dt_mesh *mesh, const char *x, const char *a, const char *b)
{
    return (operands){ numbers(mesh, "f64[8,6]", x, 1), numbers(mesh, "f64[4,6]", a, 2),
                       numbers(mesh, "f64[10,4]", b, 3) };
}

static const char *placements_of(dt_tensor *x)
{
    const char *text = dt_spec_placements(dt_tensor_spec(x));
    return text && *text ? text : "R";
}

static bool same(dt_tensor *x, dt_tensor *y) { return dt_tensor_close(x, y, 1e-12, 1e-12); }

static void try_placements(dt_context *ctx, dt_mesh *mesh, const char *x, const char *a, const char *b)
{
    operands whole = place(mesh, "", "", ""), in = place(mesh, x, a, b);
    dt_tensor *due = low_rank(whole.x, whole.a, whole.b, 0.5);
    int before = (int)dt_mesh_counters(mesh, NULL).implied;
    dt_tensor *y = low_rank(in.x, in.a, in.b, 0.5);
    int moved = (int)dt_mesh_counters(mesh, NULL).implied - before;
    dt_tensor *seed = dt_randn(dt_spec_parse(mesh, "f64[8,10]"), 4);
    if (dt_backward(due, seed) || dt_backward(y, seed)) return;
    dt_tensor *dx = dt_grad(in.x), *da = dt_grad(in.a), *db = dt_grad(in.b);
    bool good = same(y, due) && same(dx, dt_grad(whole.x)) && same(da, dt_grad(whole.a)) && same(db, dt_grad(whole.b));
    dt_print(ctx, "%-9s %-9s %-9s ->  %-9s %d      %-9s %-9s %-9s %s\n", placements_of(in.x), placements_of(in.a),
             placements_of(in.b), placements_of(y), moved, placements_of(dx), placements_of(da), placements_of(db),
             good ? "yes" : "NO");
    if (!good && !dt_context_status(ctx)) dt_context_fail(ctx, DT_ERR_STATE, "other values than of whole tensors");
}

/* What would have to move is an error there, which says what would do; the context goes on. */
static void try_strict(dt_context *ctx, dt_mesh *mesh)
{
    char message[512];
    operands in = place(mesh, "tp:S(0)", "", "tp:S(0)");
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    low_rank(in.x, in.a, in.b, 0.5);
    dt_scope_pop(ctx, scope, NULL);
    snprintf(message, sizeof message, "%s", dt_context_error(ctx));
    if (dt_context_status(ctx) == DT_ERR_PLACEMENT) dt_context_clear(ctx);
    dt_print(ctx, "\nin a strict scope:\n  %s\n\n%s", message, dt_explain(low_rank(in.x, in.a, in.b, 0.5)));
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp");
    dt_print(ctx, "%-9s %-9s %-9s ->  %-9s %s  %-9s %-9s %-9s %s\n", "x", "a", "b", "y", "moved", "dx", "da", "db",
             "as of whole ones");
    try_placements(ctx, mesh, "", "", "");
    try_placements(ctx, mesh, "tp:S(0)", "", "");                      /* m: data parallel, da and db are sums     */
    try_placements(ctx, mesh, "", "", "tp:S(0)");                      /* n                                        */
    try_placements(ctx, mesh, "", "tp:S(0)", "tp:S(1)");               /* r: reduced                               */
    try_placements(ctx, mesh, "tp:S(1)", "tp:S(1)", "");               /* k: reduced                               */
    try_placements(ctx, mesh, "tp:P", "", "");                         /* linear                                   */
    try_placements(ctx, mesh, "tp:S(0)", "", "tp:S(0)");               /* m and n: one of them is gathered         */
    try_strict(ctx, mesh);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
