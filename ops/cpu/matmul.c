/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices, batch by batch. Where all of a batch meets one b, its rows are one matrix. */
#include "core/context.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/product.h"

/* Where matrix number i of the result's leading dims lies in an operand: dims of size 1 stand still. */
static int64_t batch_at(const dt_part *x, const dt_part *y, int64_t i)
{
    int64_t at = 0, weight = 1;
    for (int d = y->shape.n - 3; d >= 0; d--) {
        int own = d - (y->shape.n - x->shape.n);
        int64_t index = i % y->shape.dim[d];
        i /= y->shape.dim[d];
        if (own < 0 || x->shape.dim[own] == 1) continue;
        at += index * weight;
        weight *= x->shape.dim[own];
    }
    return at;
}

static int64_t count(const dt_part *x, int dims)
{
    int64_t n = 1;
    for (int d = 0; d < dims; d++) n *= x->shape.dim[d];
    return n;
}

static dt_status run(const dt_call *call, dti_product *p)
{
    p->ranks = dt_rank_count(call->ctx);
    p->ctx = call->ctx;
    if (p->m == 0 || p->n == 0) return DT_OK;
    if (dti_product_fast(p) || dti_product_run(p)) return DT_OK;
    return dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for its panels", call->op->head);
}

/* The last two dims of a, or of b, may lie the other way round. */
static dt_status run_batches(const dt_call *call, bool turn_a, bool turn_b)
{
    const dt_part *a = &call->in[0], *b = &call->in[1], *c = &call->out[0];
    int64_t bytes = (int64_t)dt_dtype_bytes(c->dtype), batches = count(c, c->shape.n - 2);
    dti_product p = { .dtype = c->dtype, .m = c->shape.dim[c->shape.n - 2], .n = c->shape.dim[c->shape.n - 1],
                      .k = a->shape.dim[a->shape.n - (turn_a ? 2 : 1)], .a_transposed = turn_a, .transposed = turn_b };
    if (!c->data) return DT_OK;
    if (!turn_a && count(b, b->shape.n - 2) == 1 && count(a, a->shape.n - 2) == batches) {
        p.m *= batches;
        batches = 1;
    }
    for (int64_t i = 0; i < batches; i++) {
        p.a = (const char *)a->data + batch_at(a, c, i) * p.m * p.k * bytes;
        p.b = (const char *)b->data + batch_at(b, c, i) * p.k * p.n * bytes;
        p.c = (char *)c->data + i * p.m * p.n * bytes;
        if (run(call, &p)) return dt_context_status(call->ctx);
    }
    return DT_OK;
}

dt_status dti_cpu_matmul(const dt_call *call) { return run_batches(call, false, false); }
dt_status dti_cpu_matmul_nt(const dt_call *call) { return run_batches(call, false, true); }
dt_status dti_cpu_matmul_tn(const dt_call *call) { return run_batches(call, true, false); }

dt_status dti_cpu_linear_input(const dt_call *call)
{
    const dt_part *g = &call->in[0], *w = &call->in[1], *x = &call->out[0];
    dti_product p = { .dtype = x->dtype, .m = count(g, g->shape.n - 1), .n = w->shape.dim[1], .k = w->shape.dim[0],
                      .a = g->data, .b = w->data, .c = x->data };
    return run(call, &p);
}

dt_status dti_cpu_linear_weight(const dt_call *call)
{
    const dt_part *g = &call->in[0], *x = &call->in[1], *w = &call->out[0];
    dti_product p = { .dtype = w->dtype, .m = w->shape.dim[0], .n = w->shape.dim[1], .k = count(g, g->shape.n - 1),
                      .a = g->data, .a_transposed = true, .b = x->data, .c = w->data };
    return run(call, &p);
}

dt_status dti_cpu_linear(const dt_call *call)
{
    const dt_part *x = &call->in[0], *w = &call->in[1], *bias = &call->in[2], *y = &call->out[0];
    dti_product p = { .dtype = y->dtype, .m = count(y, y->shape.n - 1), .n = w->shape.dim[0], .k = w->shape.dim[1],
                      .a = x->data, .b = w->data, .transposed = true, .c = y->data };
    if (bias->spec) p.add = bias->data;
    p.add_column = 1;
    return run(call, &p);
}

/* What is added may be a part that has nothing where its one row, or column, is another rank's. */
dt_status dti_cpu_addmm(const dt_call *call)
{
    const dt_part *add = &call->in[0], *a = &call->in[1], *b = &call->in[2], *c = &call->out[0];
    dti_product p = { .dtype = c->dtype, .m = c->shape.dim[0], .n = c->shape.dim[1], .k = a->shape.dim[1],
                      .a = a->data, .b = b->data, .add = add->data, .c = c->data };
    int last = add->shape.n - 1;
    bool columns = last >= 0 && dt_spec_shape(add->spec).dim[last] == dt_spec_shape(c->spec).dim[1];
    bool rows = last >= 1 && dt_spec_shape(add->spec).dim[0] == dt_spec_shape(c->spec).dim[0];
    p.add_column = columns;
    p.add_row = rows ? (columns ? p.n : 1) : 0;
    return run(call, &p);
}
