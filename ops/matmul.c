/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices. */
#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"

/* As large as it counts. */
static int64_t times(int64_t a, int64_t b) { return b && a > INT64_MAX / b ? INT64_MAX : a * b; }

static int64_t elements(const dt_shape *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->n; d++) n = times(n, shape->dim[d]);
    return n;
}

/* Two operations per product that is summed: the elements of a, each times the columns of b; a batch of b alone is as
 * many products. */
static int64_t matmul_flops(const void *attributes, const dt_shape *in, int n)
{
    int64_t rows = in[0].n > 1 ? in[0].dim[in[0].n - 2] : 1, by_a = elements(&in[0]), by_b = elements(&in[1]);
    (void)attributes;
    (void)n;
    by_a = times(by_a, in[1].n ? in[1].dim[in[1].n - 1] : 1);
    by_b = times(by_b, rows);
    return times(2, by_a > by_b ? by_a : by_b);
}

static int64_t linear_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return times(times(2, in[1].n ? in[1].dim[0] : 1), elements(&in[0]));
}

static int64_t addmm_flops(const void *attributes, const dt_shape *in, int n)
{
    (void)attributes;
    (void)n;
    return times(times(2, in[2].n ? in[2].dim[in[2].n - 1] : 1), elements(&in[1]));
}

/* What is added broadcasts: its dims are the product's, or new letters y, z of size 1, which are summed away. */
static dt_status derive_addmm(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dt_shape *c = &shapes[0];
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    bool missing = c->n < 0 || shapes[1].n < 0 || shapes[2].n < 0; /* which is said where the rule is bound        */
    (void)attributes;
    (void)n;
    if (!missing && (shapes[1].n != 2 || shapes[2].n != 2 || c->n > 2))
        return dt_context_fail(ctx, DT_ERR_SHAPE, "addmm: expected at most 2 dims for c, and 2 for a and b, got %d, %d "
                               "and %d", c->n, shapes[1].n, shapes[2].n);
    if (missing) {
        dti_put(&pen, "m n, m k, k n -> m n");
        return DT_OK;
    }
    if (c->n == 2) dti_put(&pen, "%s ", c->dim[0] == 1 && shapes[1].dim[0] != 1 ? "y" : "m");
    if (c->n >= 1) dti_put(&pen, "%s", c->dim[c->n - 1] == 1 && shapes[2].dim[1] != 1 ? "z" : "n");
    dti_put(&pen, ", m k, k n -> m n");
    return DT_OK;
}

static const dt_op matmul = {
    .head = "matmul(a, b)", .rule = "... m k, ... k n -> ... m n", .polynomial = "a b",
    .kernel = dti_cpu_matmul, .flops = matmul_flops,
    .gradient = dti_grad_matmul, .doc = "product of matrices; leading dims are a batch and broadcast",
};
static const dt_op bmm = {
    .head = "bmm(a, b)", .rule = "s m k, s k n -> s m n", .polynomial = "a b", .kernel = dti_cpu_matmul,
    .flops = matmul_flops, .gradient = dti_grad_matmul, .doc = "products of two batches of matrices",
};
static const dt_op linear = {
    .head = "linear(x, w, b)", .rule = "... k, n k, n? -> ... n", .polynomial = "x w + b", .kernel = dti_cpu_linear,
    .flops = linear_flops, .gradient = dti_grad_linear, .doc = "x times w transposed, plus b",
};
static const dt_op addmm = {
    .head = "addmm(c, a, b)", .polynomial = "c + a b", .derive = derive_addmm, .kernel = dti_cpu_addmm,
    .flops = addmm_flops, .gradient = dti_grad_addmm, .doc = "c plus the product of a and b; c broadcasts",
};

const dt_op *const dti_ops_matmul[] = { &matmul, &bmm, &linear, &addmm, NULL };

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_matmul(dt_tensor *a, dt_tensor *b) { return dt_apply(&matmul, (dt_tensor *[]){ a, b }, 2, NULL); }
dt_tensor *dt_bmm(dt_tensor *a, dt_tensor *b) { return dt_apply(&bmm, (dt_tensor *[]){ a, b }, 2, NULL); }

dt_tensor *dt_linear(dt_tensor *x, dt_tensor *w, dt_tensor *bias)
{
    return dt_apply(&linear, (dt_tensor *[]){ x, w, bias }, 3, NULL);
}

dt_tensor *dt_addmm(dt_tensor *c, dt_tensor *a, dt_tensor *b)
{
    return dt_apply(&addmm, (dt_tensor *[]){ c, a, b }, 3, NULL);
}
