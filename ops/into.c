/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that write their first operands, in place. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/shape.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/map.h"
#include "ops/tables.h"
#include "ops/write.h"

static const dt_attribute factors[] = {
    { "a", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, a) },
    { "b", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, b) },
};

static const dti_map_row axpby_into = {
    { .head = "axpby_into(x, y)", .rule = "..., ... -> ...", .polynomial = "x + y", .dtypes = "nn->n",
      .attributes = factors, .attribute_count = DT_COUNT(factors), .attribute_bytes = sizeof(dti_map_numbers),
      .kernel = dti_cpu_map, .writes = 1, .doc = "x becomes a x + b y" },
    .map = DTI_MAP_AXPBY, .numbers = true,
};
static const dti_map_row mul_into = {
    { .head = "mul_into(x, y)", .rule = "..., ... -> ...", .polynomial = "x y", .kernel = dti_cpu_map, .writes = 1,
      .doc = "x becomes x y" },
    .map = DTI_MAP_MUL,
};

static const dt_attribute adamw_numbers[] = {
    { "lr", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, lr) },
    { "beta1", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, beta1) },
    { "beta2", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, beta2) },
    { "eps", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, eps) },
    { "weight_decay", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, weight_decay) },
    { "step", DT_ATTRIBUTE_NUMBER, offsetof(dti_adamw, step) },
};

static void put_term(char *rule, size_t size, const char *before, int dims)
{
    size_t at = strlen(rule);
    at += (size_t)snprintf(rule + at, size - at, "%s", before);
    for (int d = 0; d < dims; d++) at += (size_t)snprintf(rule + at, size - at, "%s%c", d ? " " : "", 'a' + d);
}

/* The dims of w for all, so that nothing broadcasts: n operands, of which all but the gradient are written. */
static dt_status derive_step(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    int dims = shapes[0].n > 0 ? shapes[0].n : 0;
    (void)ctx;
    (void)attributes;
    for (int i = 0; i < n; i++) put_term(out->rule, sizeof out->rule, i ? ", " : "", dims);
    for (int i = 0; i < n - 1; i++) put_term(out->rule, sizeof out->rule, i ? ", " : " -> ", dims);
    return DT_OK;
}

static const dt_op adamw_into = {
    .head = "adamw_into(w, m, v, g)", .derive = derive_step, .polynomial = "none", .dtypes = "ssss->ttt",
    .attributes = adamw_numbers, .attribute_count = DT_COUNT(adamw_numbers), .attribute_bytes = sizeof(dti_adamw),
    .kernel = dti_cpu_adamw, .writes = 3,
    .doc = "a step of AdamW: w and its moments m, v by the gradient g",
};

static const dt_attribute sgd_numbers[] = {
    { "lr", DT_ATTRIBUTE_NUMBER, offsetof(dti_sgd, lr) },
    { "weight_decay", DT_ATTRIBUTE_NUMBER, offsetof(dti_sgd, weight_decay) },
};
static const dt_attribute momentum_numbers[] = {
    { "lr", DT_ATTRIBUTE_NUMBER, offsetof(dti_sgd, lr) },
    { "weight_decay", DT_ATTRIBUTE_NUMBER, offsetof(dti_sgd, weight_decay) },
    { "momentum", DT_ATTRIBUTE_NUMBER, offsetof(dti_sgd, momentum) },
    { "nesterov", DT_ATTRIBUTE_BOOL, offsetof(dti_sgd, nesterov) },
};

static const dt_op sgd_into = {
    .head = "sgd_into(w, g)", .derive = derive_step, .polynomial = "none", .dtypes = "ss->t",
    .attributes = sgd_numbers, .attribute_count = DT_COUNT(sgd_numbers), .attribute_bytes = sizeof(dti_sgd),
    .kernel = dti_cpu_sgd, .writes = 1, .doc = "a step of SGD: w by the gradient g",
};
static const dt_op momentum_into = {
    .head = "momentum_into(w, v, g)", .derive = derive_step, .polynomial = "none", .dtypes = "sss->tt",
    .attributes = momentum_numbers, .attribute_count = DT_COUNT(momentum_numbers), .attribute_bytes = sizeof(dti_sgd),
    .kernel = dti_cpu_momentum, .writes = 2,
    .doc = "a step of SGD with momentum: w and its velocity v by the gradient g",
};

const dt_op *const dti_ops_into[] = {
    &axpby_into.op, &mul_into.op, &adamw_into, &sgd_into, &momentum_into, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_status dt_axpby_into(dt_tensor *x, dt_tensor *y, double a, double b)
{
    return dt_apply_all(&axpby_into.op, (dt_tensor *[]){ x, y }, 2, &(dti_map_numbers){ a, b }, NULL, 0);
}

dt_status dt_mul_into(dt_tensor *x, dt_tensor *y)
{
    return dt_apply_all(&mul_into.op, (dt_tensor *[]){ x, y }, 2, NULL, NULL, 0);
}

static double or_else(double number, double otherwise) { return number != 0 ? number : otherwise; }

static dti_adamw adamw_of(const dt_adamw_into_params *params)
{
    static const dt_adamw_into_params none = { 0 };
    const dt_adamw_into_params *p = params ? params : &none;
    return (dti_adamw){ p->lr, or_else(p->beta1, 0.9), or_else(p->beta2, 0.999), or_else(p->eps, 1e-8),
                        p->weight_decay, p->step ? (double)p->step : 1 };
}

dt_status dt_adamw_into(dt_tensor *w, dt_tensor *m, dt_tensor *v, dt_tensor *g, const dt_adamw_into_params *params)
{
    dti_adamw numbers = adamw_of(params);
    return dt_apply_all(&adamw_into, (dt_tensor *[]){ w, m, v, g }, 4, &numbers, NULL, 0);
}

static dti_sgd sgd_of(const dt_sgd_into_params *params)
{
    static const dt_sgd_into_params none = { 0 };
    const dt_sgd_into_params *p = params ? params : &none;
    return (dti_sgd){ .lr = p->lr, .weight_decay = p->weight_decay, .momentum = p->momentum, .nesterov = p->nesterov };
}

dt_status dt_sgd_into(dt_tensor *w, dt_tensor *v, dt_tensor *g, const dt_sgd_into_params *params)
{
    dti_sgd numbers = sgd_of(params);
    if (v) return dt_apply_all(&momentum_into, (dt_tensor *[]){ w, v, g }, 3, &numbers, NULL, 0);
    return dt_apply_all(&sgd_into, (dt_tensor *[]){ w, g }, 2, &numbers, NULL, 0);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static bool check_copy(const dt_tensor *x, const dt_tensor *values)
{
    if (x->ctx != values->ctx)
        return dti_fail(x->ctx, DT_ERR_ARG, "copy_into: x and values of two contexts"), false;
    if (!dti_tensor_ok(x) || !dti_tensor_ok(values)) return false;
    if (dti_shape_same(&x->spec->shape, &values->spec->shape)) return true;
    dti_fail(x->ctx, DT_ERR_SHAPE, "copy_into: expected values of the shape of x %s, got %s", dt_spec_text(x->spec),
             dt_spec_text(values->spec));
    return false;
}

static void take_part(dt_tensor *x, const dt_tensor *values)
{
    if (x->storage && x->storage->n) memcpy(x->storage->bytes, values->storage->bytes, x->storage->n);
    dti_tensor_written(x);
}

dt_status dt_copy_into(dt_tensor *x, dt_tensor *values)
{
    const dt_tensor *one = x ? x : values;
    if (!dti_tensor_ok(one)) return one ? one->ctx->status : DT_ERR_ARG;
    if (!x || !values)
        return dti_fail(one->ctx, DT_ERR_ARG, "copy_into: expected x and values, got %s alone",
                        dt_spec_text(one->spec));
    if (x == values) return DT_OK;
    if (!check_copy(x, values) || !dti_write_may(x, "copy_into", "x", (dt_tensor *[]){ x, values }, 2))
        return x->ctx->status;
    int scope = dt_scope_push(x->ctx, 0);
    dt_tensor *y = scope ? dti_tensor_to(values, x->spec) : NULL;
    if (y) take_part(x, y);
    dt_scope_pop(x->ctx, scope, NULL);
    return dt_context_status(x->ctx);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Calls of a row whose operands come in n lists, one of each; step 0: one for all calls. */
typedef struct column { dt_tensor *const *x; int step; } column;

static dt_status apply_columns(const dt_op *op, const column *columns, int n, int count, const void *attributes)
{
    dt_context *ctx = NULL;
    for (int k = 0; k < n; k++)
        for (int i = 0; columns[k].x && i < count && !ctx; i++)
            if (columns[k].x[i * columns[k].step]) ctx = columns[k].x[i * columns[k].step]->ctx;
    if (!ctx) return count == 0 ? DT_OK : DT_ERR_ARG;
    size_t bytes = (size_t)n * (size_t)count * sizeof(dt_tensor *);
    dt_tensor **in = dti_failed(ctx) ? NULL : dti_context_borrow(ctx, bytes);
    if (!in) return ctx->status;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < n; k++) in[i * n + k] = columns[k].x ? columns[k].x[i * columns[k].step] : NULL;
    dt_apply_list(op, in, n, count, attributes, NULL);
    dti_context_give(ctx, in, bytes);
    return dt_context_status(ctx);
}

dt_status dt_axpby_into_list(dt_tensor *const *x, dt_tensor *const *y, int n, double a, double b)
{
    return apply_columns(&axpby_into.op, (column[]){ { x, 1 }, { y, 1 } }, 2, n, &(dti_map_numbers){ a, b });
}

dt_status dt_mul_into_list(dt_tensor *const *x, int n, dt_tensor *y)
{
    return apply_columns(&mul_into.op, (column[]){ { x, 1 }, { &y, 0 } }, 2, n, NULL);
}

dt_status dt_adamw_into_list(dt_tensor *const *w, dt_tensor *const *m, dt_tensor *const *v, dt_tensor *const *g, int n,
                             const dt_adamw_into_params *params)
{
    dti_adamw numbers = adamw_of(params);
    return apply_columns(&adamw_into, (column[]){ { w, 1 }, { m, 1 }, { v, 1 }, { g, 1 } }, 4, n, &numbers);
}

dt_status dt_sgd_into_list(dt_tensor *const *w, dt_tensor *const *v, dt_tensor *const *g, int n,
                           const dt_sgd_into_params *params)
{
    dti_sgd numbers = sgd_of(params);
    if (v) return apply_columns(&momentum_into, (column[]){ { w, 1 }, { v, 1 }, { g, 1 } }, 3, n, &numbers);
    return apply_columns(&sgd_into, (column[]){ { w, 1 }, { g, 1 } }, 2, n, &numbers);
}

static bool check_copies(dt_tensor *const *x, dt_tensor *const *values, int n)
{
    dt_context *ctx = x[0]->ctx;
    for (int i = 0; i < n; i++) {
        if (!x[i] || !values[i])
            return dti_fail(ctx, DT_ERR_ARG, "copy_into_list: pair %d of %d is not whole", i, n), false;
        if (!check_copy(x[i], values[i])
            || !dti_write_may(x[i], "copy_into", "x", (dt_tensor *[]){ x[i], values[i] }, 2)) return false;
    }
    return true;
}

static bool copy_parts(dt_context *ctx, dt_tensor *const *x, dt_tensor *const *values, int n)
{
    size_t bytes = (size_t)n * sizeof(void *);
    const dt_spec **specs = dti_context_borrow(ctx, bytes);
    dt_tensor **y = dti_context_borrow(ctx, bytes);
    bool done = specs && y;
    for (int i = 0; i < n && done; i++) specs[i] = x[i]->spec;
    done = done && dti_tensors_to(ctx, values, specs, n, y);
    for (int i = 0; i < n && done; i++) take_part(x[i], y[i]);
    dti_context_give(ctx, (void *)specs, bytes);
    dti_context_give(ctx, y, bytes);
    return done;
}

dt_status dt_copy_into_list(dt_tensor *const *x, dt_tensor *const *values, int n)
{
    if (n == 0) return DT_OK;
    if (!x || !values || !x[0]) return DT_ERR_ARG;
    dt_context *ctx = x[0]->ctx;
    if (dti_failed(ctx) || !check_copies(x, values, n)) return ctx->status;
    int scope = dt_scope_push(ctx, 0);
    if (scope) copy_parts(ctx, x, values, n);
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx);
}
