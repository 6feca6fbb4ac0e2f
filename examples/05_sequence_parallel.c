/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequence parallelism: between the MLPs of tensor parallelism activations are split over the sequence, so that norms,
 * residuals and what is kept of them cost every rank its share. The all-reduce forward is then a reduce-scatter behind
 * the MLP and an all-gather before it, of the same bytes, and nobody writes either of their duals backward:
 *
 *   forward    n is S(1), and placed as R    all-gather           backward   its gradient is P, comes as S(1):
 *                                                                            reduce-scatter
 *   forward    y is P, and placed as S(1)    reduce-scatter       backward   its gradient is S(1), comes as R:
 *                                                                            all-gather
 *
 * Backward also needs the MLP's input. The tape keeps n, which has fewer bytes than its gathered copy, and gathers it
 * once more: one all-gather beyond the duals. The norm's weight, whole on all ranks, gets a gradient that is P.
 *
 * Run: ./05_sequence_parallel --dt-ranks=4 --dt-mesh=tp=4 --dt-small=0
 *      ./05_sequence_parallel --dt-ranks=3 --dt-mesh=tp=3      10 tokens over 3 ranks are 4, 3, 3 */
#include "show.h"

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct layer { dt_tensor *norm, *up, *down; } layer;

static layer make_layer(dt_mesh *mesh, bool split)
{
    return (layer){
        dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[16]"), 2)),
        dt_require_grad(dt_randn(dt_spec_parse(mesh, split ? "f64[24,16]@tp:S(0)" : "f64[24,16]"), 3)),
        dt_require_grad(dt_randn(dt_spec_parse(mesh, split ? "f64[16,24]@tp:S(1)" : "f64[16,24]"), 4)),
    };
}

/* [b, s, h] tp:S(1) -> [b, s, h] tp:S(1). What is made between ends with the scope, but for what the tape keeps. */
static dt_tensor *forward(dt_context *ctx, const layer *l, dt_tensor *x)
{
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *n = dt_rms_norm(x, l->norm, 1e-5);                      /* [b, s, h] tp:S(1)                        */
    dt_tensor *whole = dt_redistribute(n, "tp:R,*");                   /* all-gather                               */
    dt_tensor *h = dt_gelu(dt_linear(whole, l->up, NULL));             /* [b, s, f] tp:S(2)                        */
    dt_tensor *y = dt_linear(h, l->down, NULL);                        /* [b, s, h] tp:P(sum)                      */
    y = dt_redistribute(y, "tp:S(1),*");                               /* reduce-scatter                           */
    return dt_scope_pop(ctx, scope, dt_add(x, y));
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static bool same(dt_tensor *a, dt_tensor *b) { return dt_tensor_close(dt_grad(a), dt_grad(b), 1e-10, 1e-10); }

static void check(dt_context *ctx, dt_mesh *mesh, const layer *l, dt_tensor *x, dt_tensor *seed)
{
    layer whole = make_layer(mesh, false);
    dt_tensor *input = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[2,10,16]"), 1));
    dt_tensor *h = dt_gelu(dt_linear(dt_rms_norm(input, whole.norm, 1e-5), whole.up, NULL));
    dt_backward(dt_add(input, dt_linear(h, whole.down, NULL)), seed);
    bool all = same(x, input) && same(l->norm, whole.norm) && same(l->up, whole.up) && same(l->down, whole.down);
    dt_print(ctx, "\ngradients are those of whole tensors: %s\n", all ? "yes" : "NO");
    if (!all && !dt_context_status(ctx)) dt_context_fail(ctx, DT_ERR_STATE, "other gradients than of whole tensors");
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp");
    dt_tensor *x = dt_require_grad(dt_randn(dt_spec_parse(mesh, "f64[2,10,16]@tp:S(1)"), 1));
    layer l = make_layer(mesh, true);

    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = forward(ctx, &l, x);
    show_calls(mesh, NULL, "forward ", before);

    dt_tensor *seed = dt_full(dt_spec_parse(mesh, "f64[2,10,16]@tp:S(1)"), 1);
    before = dt_mesh_counters(mesh, NULL);
    if (dt_backward(y, seed)) return dt_context_status(ctx);
    show_calls(mesh, NULL, "backward", before);

    dt_print(ctx, "\ngradients, where they are\n");
    dt_print(ctx, "  x                  %s\n", dt_spec_text(dt_tensor_spec(dt_grad(x))));
    dt_print(ctx, "  the norm's weight  %s\n", dt_spec_text(dt_tensor_spec(dt_grad(l.norm))));
    dt_print(ctx, "  up, by columns     %s\n", dt_spec_text(dt_tensor_spec(dt_grad(l.up))));
    dt_print(ctx, "  down, by rows      %s\n", dt_spec_text(dt_tensor_spec(dt_grad(l.down))));
    check(ctx, mesh, &l, x, seed);
    return dt_context_status(ctx);
}

int main(int argc, char **argv) { return dt_launch(&argc, &argv, rank_main, NULL); }
