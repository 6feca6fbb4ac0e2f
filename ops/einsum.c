/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products by an equation. The row takes one operand or two, and its rule is the equation, with letters for all
 * dims: "ij,jk->ik" is "i j, j k -> i k". More operands are multiplied two at a time. */
#include <string.h>

#include <dtensor/ops.h>

#include "core/context.h"
#include "ops/cpu/kernels.h"
#include "ops/equation.h"
#include "ops/gradients.h"
#include "ops/tables.h"
#include "tensor/tensor.h"

static bool read_equation(dt_context *ctx, const void *attributes, const dt_shape *shapes, dti_lettered *out)
{
    dti_equation equation;
    return dti_equation_parse(ctx, ((const dti_einsum *)attributes)->equation, &equation)
        && dti_equation_bind(ctx, &equation, shapes, out);
}

/* ---- the row ----------------------------------------------------------------------------------------------------- */

static void put_dims(dti_pen *pen, const dti_lettered *l, int term)
{
    for (int d = 0; d < l->dims[term]; d++) dti_put(pen, "%s%c", d ? " " : "", l->letter[term][d]);
}

static dt_status derive_einsum(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    dti_lettered l;
    (void)n;
    if (!read_equation(ctx, attributes, shapes, &l)) return dt_context_status(ctx);
    put_dims(&pen, &l, 0);
    dti_put(&pen, ", ");
    if (l.n == 1) dti_put(&pen, "?");
    else put_dims(&pen, &l, 1);
    dti_put(&pen, " -> ");
    put_dims(&pen, &l, l.n);
    return DT_OK;
}

/* As large as it counts. */
static int64_t times(int64_t a, int64_t b) { return b && a > INT64_MAX / b ? INT64_MAX : a * b; }

/* Two operations for each choice of an index of every letter. */
static int64_t einsum_flops(const void *attributes, const dt_shape *in, int n)
{
    bool seen[128] = { false };
    int64_t flops = 2;
    dti_lettered l;
    (void)n;
    if (!read_equation(NULL, attributes, in, &l)) return 0;
    for (int i = 0; i < l.n; i++)
        for (int d = 0; d < l.dims[i]; d++) {
            if (!seen[(unsigned char)l.letter[i][d]]) flops = times(flops, in[i].dim[d]);
            seen[(unsigned char)l.letter[i][d]] = true;
        }
    return flops;
}

static const dt_attribute by_equation[] = {
    { "equation", DT_ATTRIBUTE_TEXT, offsetof(dti_einsum, equation) },
};

static const dt_op einsum = {
    .head = "einsum(x, y)", .polynomial = "x y", .derive = derive_einsum, .attributes = by_equation,
    .attribute_count = DT_COUNT(by_equation), .attribute_bytes = sizeof(dti_einsum), .kernel = dti_cpu_einsum,
    .flops = einsum_flops, .gradient = dti_grad_einsum, .doc = "sum of products, by an equation as \"ij,jk->ik\"",
};

const dt_op *const dti_ops_einsum[] = { &einsum, NULL };

/* ---- the gradient ------------------------------------------------------------------------------------------------ */

static int64_t size_of(const dti_lettered *l, const dt_shape *shapes, int term, char letter)
{
    for (int d = 0; d < l->dims[term]; d++)
        if (l->letter[term][d] == letter) return shapes[term].dim[d];
    return -1;
}

static bool is_in(const dti_lettered *l, int term, char letter)
{
    return l->dims[term] && memchr(l->letter[term], letter, (size_t)l->dims[term]) != NULL;
}

static void put_term(dti_pen *pen, const dti_lettered *l, int term)
{
    dti_put(pen, "%.*s", l->dims[term], l->letter[term]);
}

/* That of the result times the other operand. A letter that neither has was summed: its gradient is the same along it,
 * which is added to zeros that lie as the operand does. */
static dt_tensor *gradient_of(dt_gradient *g, const dti_lettered *l, int operand)
{
    dti_einsum back = { .equation = "" };
    dti_pen pen = { back.equation, sizeof back.equation, 0 };
    dt_tensor *in[2] = { g->out_grad[0], l->n == 2 ? g->in[1 - operand] : NULL };
    dt_dims missing = { 0 };
    bool spread = false;
    put_term(&pen, l, l->n);
    if (l->n == 2) dti_put(&pen, ",");
    if (l->n == 2) put_term(&pen, l, 1 - operand);
    dti_put(&pen, "->");
    for (int d = 0; d < l->dims[operand]; d++) {
        char letter = l->letter[operand][d];
        if (is_in(l, l->n, letter) || (l->n == 2 && is_in(l, 1 - operand, letter))) dti_put(&pen, "%c", letter);
        else {
            missing.dim[missing.n++] = d;
            spread |= size_of(l, g->in_shape, operand, letter) != 1;
        }
    }
    dt_tensor *grad = dt_apply(&einsum, in, 2, &back);
    if (missing.n) grad = dti_unsqueeze(grad, missing);
    const dt_spec *like = spread ? dti_spec_summed(g->in_spec[operand]) : NULL;
    return spread ? dt_add(like ? dt_zeros(like) : NULL, grad) : grad;
}

dt_status dti_grad_einsum(dt_gradient *g)
{
    dti_lettered l;
    if (!read_equation(g->ctx, g->attributes, g->in_shape, &l)) return dt_context_status(g->ctx);
    for (int i = 0; i < l.n; i++)
        if (g->wanted[i]) g->in_grad[i] = gradient_of(g, &l, i);
    return dt_context_status(g->ctx);
}

/* ---- the front --------------------------------------------------------------------------------------------------- */

/* Is it asked for behind the first two operands? */
static bool is_wanted(const dti_equation *e, char letter)
{
    for (int i = 2; i < e->n; i++)
        if (dti_subscripts_has(&e->in[i], letter)) return true;
    return dti_subscripts_has(&e->out, letter);
}

static bool dots_wanted(const dti_equation *e)
{
    bool wanted = e->out.dots >= 0;
    for (int i = 2; i < e->n; i++) wanted |= e->in[i].dots >= 0;
    return wanted && (e->in[0].dots >= 0 || e->in[1].dots >= 0);
}

/* The product of the first two, with what is asked for of their letters. false: it has too many. */
static bool first_product(const dti_equation *e, dti_equation *pair)
{
    dti_subscripts *out = &pair->out;
    *pair = (dti_equation){ .n = 2, .in = { e->in[0], e->in[1] }, .out = { .dots = dots_wanted(e) ? 0 : -1 } };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < e->in[i].n; k++) {
            char letter = e->in[i].letter[k];
            if (dti_subscripts_has(out, letter) || !is_wanted(e, letter)) continue;
            if (out->n == DT_MAX_DIMS) return false;
            out->letter[out->n++] = letter;
        }
    return true;
}

static dt_tensor *apply(const dti_equation *e, dt_tensor *x, dt_tensor *y)
{
    dti_einsum attributes = { .equation = "" };
    dti_equation_put(&(dti_pen){ attributes.equation, sizeof attributes.equation, 0 }, e);
    return dt_apply(&einsum, (dt_tensor *[]){ x, y }, 2, &attributes);
}

static dt_tensor *multiply(dt_context *ctx, dti_equation *e, dt_tensor *const *x)
{
    dt_tensor *product = x[0];
    dti_equation pair;
    for (int i = 1; e->n > 2 && product; i++) {
        if (!first_product(e, &pair))
            return dti_fail(ctx, DT_ERR_SHAPE, "einsum: the product of its first %d operands has more than %d dims",
                            i + 1, DT_MAX_DIMS), NULL;
        product = apply(&pair, product, x[i]);
        e->in[0] = pair.out;
        memmove(&e->in[1], &e->in[2], (size_t)(--e->n - 1) * sizeof e->in[0]);
    }
    return product;
}

static dt_context *context_of(dt_tensor *const *x, int n)
{
    for (int i = 0; x && i < n; i++)
        if (x[i]) return dt_mesh_context(dt_spec_mesh(dt_tensor_spec(x[i])));
    return NULL;
}

static bool check_operands(dt_context *ctx, const dti_equation *e, dt_tensor *const *x, int n)
{
    if (e->n != n)
        return dti_fail(ctx, DT_ERR_ARG, "einsum: expected %d operands, as its equation has, got %d", e->n, n), false;
    for (int i = 0; i < n; i++)
        if (!x[i]) return dti_fail(ctx, DT_ERR_ARG, "einsum: operand %d is missing", i), false;
    return true;
}

dt_tensor *dt_einsum(const char *equation, dt_tensor *const *x, int n)
{
    dt_context *ctx = context_of(x, n);
    dti_equation e;
    if (dti_failed(ctx)) return NULL;
    if (!equation) return dti_fail(ctx, DT_ERR_ARG, "einsum: expected an equation, got none"), NULL;
    if (!dti_equation_parse(ctx, equation, &e) || !check_operands(ctx, &e, x, n)) return NULL;
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *first = multiply(ctx, &e, x), *y = first ? apply(&e, first, n > 1 ? x[n - 1] : NULL) : NULL;
    return dt_scope_pop(ctx, scope, y);
}
