/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that gradients are made of, and that are of little use elsewhere. They are rows like all others. */
#include "core/pen.h"
#include "core/shape.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/map.h"
#include "ops/tables.h"

/* ---- slopes: linear in the gradient ------------------------------------------------------------------------------ */

static const dti_map_row gelu_slope = {
    { .head = "gelu_slope(g, x)", .rule = "..., ... -> ...", .polynomial = "g", .dtypes = "ff->f",
      .kernel = dti_cpu_map, .doc = "g times the derivative of gelu at x" },
    .map = DTI_MAP_GELU_SLOPE,
};
static const dti_map_row gelu_tanh_slope = {
    { .head = "gelu_tanh_slope(g, x)", .rule = "..., ... -> ...", .polynomial = "g", .dtypes = "ff->f",
      .kernel = dti_cpu_map, .doc = "g times the derivative of gelu_tanh at x" },
    .map = DTI_MAP_GELU_TANH_SLOPE,
};
static const dti_map_row silu_slope = {
    { .head = "silu_slope(g, x)", .rule = "..., ... -> ...", .polynomial = "g", .dtypes = "ff->f",
      .kernel = dti_cpu_map, .doc = "g times the derivative of silu at x" },
    .map = DTI_MAP_SILU_SLOPE,
};

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Each element of the first operand meets as many numbers of the second as one of its dims has. */
static int64_t nt_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return in[1].n < 2 ? 0 : 2 * dti_shape_count(&in[0]) * in[1].dim[in[1].n - 2];
}

static int64_t last_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return in[1].n < 1 ? 0 : 2 * dti_shape_count(&in[0]) * in[1].dim[in[1].n - 1];
}

/* Rows are reduced: their dims are letters of both operands, a, b, c.. before n and k. */
static dt_status derive_weight(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)attributes;
    if (n < 2 || shapes[0].n < 1 || shapes[0].n != shapes[1].n)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "linear_weight: expected as many dims, at least 1, got %d and %d",
                               shapes[0].n, n < 2 ? -1 : shapes[1].n);
    for (int d = 0; d + 1 < shapes[0].n; d++) dti_put(&pen, "%c ", 'a' + d);
    dti_put(&pen, "n, ");
    for (int d = 0; d + 1 < shapes[0].n; d++) dti_put(&pen, "%c ", 'a' + d);
    dti_put(&pen, "k -> n k");
    return DT_OK;
}

static const dt_op matmul_nt = {
    .head = "matmul_nt(a, b)", .rule = "... m k, ... n k -> ... m n", .polynomial = "a b", .kernel = dti_cpu_matmul_nt,
    .flops = nt_flops, .gradient = NULL, .doc = "a times b transposed",
};
static const dt_op matmul_tn = {
    .head = "matmul_tn(a, b)", .rule = "... k m, ... k n -> ... m n", .polynomial = "a b", .kernel = dti_cpu_matmul_tn,
    .flops = last_flops, .doc = "a transposed times b",
};
static const dt_op linear_input = {
    .head = "linear_input(g, w)", .rule = "... n, n k -> ... k", .polynomial = "g w", .kernel = dti_cpu_linear_input,
    .flops = last_flops, .doc = "the gradient of linear's x",
};
static const dt_op linear_weight = {
    .head = "linear_weight(g, x)", .polynomial = "g x", .derive = derive_weight, .kernel = dti_cpu_linear_weight,
    .flops = last_flops, .doc = "the gradient of linear's w",
};

const dt_op *const dti_ops_derivatives[] = {
    &gelu_slope.op, &gelu_tanh_slope.op, &silu_slope.op, &matmul_nt, &matmul_tn, &linear_input, &linear_weight,
    NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

static dt_tensor *of_two(const dt_op *op, dt_tensor *x, dt_tensor *y)
{
    return dt_apply(op, (dt_tensor *[]){ x, y }, 2, NULL);
}

dt_tensor *dti_gelu_slope(dt_tensor *g, dt_tensor *x) { return of_two(&gelu_slope.op, g, x); }
dt_tensor *dti_gelu_tanh_slope(dt_tensor *g, dt_tensor *x) { return of_two(&gelu_tanh_slope.op, g, x); }
dt_tensor *dti_silu_slope(dt_tensor *g, dt_tensor *x) { return of_two(&silu_slope.op, g, x); }
dt_tensor *dti_matmul_nt(dt_tensor *a, dt_tensor *b) { return of_two(&matmul_nt, a, b); }
dt_tensor *dti_matmul_tn(dt_tensor *a, dt_tensor *b) { return of_two(&matmul_tn, a, b); }
dt_tensor *dti_linear_input(dt_tensor *g, dt_tensor *w) { return of_two(&linear_input, g, w); }
dt_tensor *dti_linear_weight(dt_tensor *g, dt_tensor *x) { return of_two(&linear_weight, g, x); }

dt_tensor *dti_number_like(dt_tensor *x, double value)
{
    if (!x) return NULL;
    const dt_spec *like = dt_tensor_spec(x);
    const dt_spec *spec = dt_spec_create(dt_spec_mesh(like), dt_spec_dtype(like), DT_SCALAR, NULL);
    return spec ? dt_full(spec, value) : NULL;
}
