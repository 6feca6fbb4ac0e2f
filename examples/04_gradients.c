/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the f and g of tensor parallelism come from. An MLP whose weights are split by columns and by rows needs one
 * all-reduce forward, of the sum that the rows leave (g), and one backward, of the gradient that the columns leave (f).
 * Neither is written for backward: the gradient of a tensor has placements of its own, and comes back through what the
 * user placed:
 *
 *   forward    y is P, and placed as R       all-reduce           backward   its gradient comes as R, and stays
 *   forward    x is R, and placed as R       nothing              backward   its gradient comes as P, and becomes R
 *
 * So a placement that moves nothing forward still says where the gradient is to be summed. A bias that is whole has a
 * gradient that is whole; where the batch is split, weights get gradients that are P along dp: DDP reduces those.
 *
 * Run: ./04_gradients --dt-ranks=8 --dt-mesh=dp=2,tp=4 --dt-small=0
 *      ./04_gradients --dt-ranks=3 --dt-mesh=dp=1,tp=3         uneven pieces */
#include "show.h"

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static void show(dt_context *ctx, const char *what, dt_tensor *x)
{
    dt_print(ctx, "  %-22s %s\n", what, x ? dt_spec_text(dt_tensor_spec(x)) : "none");
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct mlp { dt_tensor *up, *up_bias, *down, *down_bias; } mlp;

/* Linear's weights are [out, in]: columns of the product are rows of the weight. */
static mlp make_mlp(dt_mesh *mesh, bool split)
{
    return (mlp){
        dt_require_grad(dt_randn(dt_spec_parse(mesh, split ? "f64[24,16]@tp:S(0)" : "f64[24,16]"), 2)),
        dt_require_grad(dt_randn(dt_spec_parse(mesh, split ? "f64[24]@tp:S(0)" : "f64[24]"), 3)),
        dt_require_grad(dt_randn(dt_spec_parse(mesh, split ? "f64[16,24]@tp:S(1)" : "f64[16,24]"), 4)),
        dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[16]"), 5)),
    };
}

/* [b, h] -> [b, h] */
static dt_tensor *forward(const mlp *m, dt_tensor *x)
{
    x = dt_redistribute(x, "tp:R,*");                                  /* f: moves nothing; sums backward          */
    dt_tensor *h = dt_gelu(dt_linear(x, m->up, m->up_bias));           /* [b, f] tp:S(1)                           */
    dt_tensor *y = dt_linear(h, m->down, m->down_bias);                /* [b, h] tp:P(sum); the bias counts once   */
    return dt_redistribute(y, "tp:R,*");                               /* g: sums; moves nothing backward          */
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static bool same(dt_tensor *a, dt_tensor *b) { return dt_tensor_close(dt_grad(a), dt_grad(b), 1e-11, 1e-11); }

/* The same model with whole weights, on the same ranks. */
static void check(dt_context *ctx, dt_mesh *mesh, const mlp *m, dt_tensor *x, dt_tensor *seed)
{
    mlp whole = make_mlp(mesh, false);
    dt_tensor *input = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[6,16]"), 1));
    dt_tensor *y = dt_linear(dt_gelu(dt_linear(input, whole.up, whole.up_bias)), whole.down, whole.down_bias);
    dt_backward(y, seed);
    bool all = same(x, input) && same(m->up, whole.up) && same(m->up_bias, whole.up_bias) && same(m->down, whole.down)
            && same(m->down_bias, whole.down_bias);
    dt_print(ctx, "\ngradients are those of whole weights: %s\n", all ? "yes" : "NO");
    if (!all && !dt_context_status(ctx)) dt_context_fail(ctx, DT_ERR_STATE, "other gradients than with whole weights");
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp,tp");
    dt_tensor *x = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[6,16]@dp:S(0)"), 1));
    mlp m = make_mlp(mesh, true);

    dt_counters before = dt_mesh_counters(mesh, "tp");
    dt_tensor *y = forward(&m, x);
    show_calls(mesh, "tp", "forward  along tp", before);

    dt_tensor *seed = dt_full(dt_spec_parse(mesh, "f64[6,16]@dp:S(0)"), 1);
    before = dt_mesh_counters(mesh, "tp");
    if (dt_backward(y, seed)) return dt_context_status(ctx);
    show_calls(mesh, "tp", "backward along tp", before);

    dt_print(ctx, "\ngradients, where they are\n");
    show(ctx, "x", dt_grad(x));
    show(ctx, "up,   by columns", dt_grad(m.up)), show(ctx, "up's bias", dt_grad(m.up_bias));
    show(ctx, "down, by rows", dt_grad(m.down)), show(ctx, "down's bias", dt_grad(m.down_bias));
    check(ctx, mesh, &m, x, seed);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
