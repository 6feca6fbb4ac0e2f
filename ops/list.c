/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of one row on lists of operands: all are checked before anything moves, what moves goes together, and then each
 * computes. */
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"
#include "ops/write.h"

typedef struct calls {
    dt_context *ctx;
    int count, begun;                  /* begun: and not ended                                                     */
    dti_calling *at;
} calls;

/* ---- what is written --------------------------------------------------------------------------------------------- */

static bool refuse(const calls *c, int call, int operand)
{
    const dti_calling *at = &c->at[call];
    dti_fail(c->ctx, DT_ERR_ARG, "%s: call %d of %d takes %s %s, which another of the list writes",
             dti_rule_op(at->d->rule), call, c->count, dti_rule_name(at->d->rule, operand),
             dt_spec_text(at->in[operand]->spec));
    return false;
}

static bool have_bodies(const calls *c)
{
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->at[i].op->writes; k++)
            if (!dti_tensor_body(c->at[i].in[k])) return false;
    return true;
}

static void mark_written(const calls *c, int by)
{
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->at[i].op->writes; k++) c->at[i].in[k]->body->marks += by;
}

/* Is an operand that a call reads, or writes by another's side, among the written ones? */
static bool check_written(const calls *c)
{
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->at[i].n; k++) {
            const dt_tensor *x = c->at[i].in[k];
            if (x && x->body && x->body->marks > (k < c->at[i].op->writes)) return refuse(c, i, k);
        }
    return true;
}

static bool check_apart(const calls *c)
{
    if (c->at[0].op->writes == 0 || c->count < 2) return true;
    if (!have_bodies(c)) return false;
    mark_written(c, 1);
    bool apart = check_written(c);
    mark_written(c, -1);
    return apart;
}

/* ---- what moves -------------------------------------------------------------------------------------------------- */

/* All operands of all calls, as they are now, on the way or at the end of it. */
static bool move_to(const calls *c, bool used, dt_tensor **x, const dt_spec **specs)
{
    int n = 0;
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->at[i].n; k++) {
            const dti_dispatch *d = c->at[i].d;
            if (!(d->moved >> k & 1)) continue;
            x[n] = c->at[i].x[k];
            specs[n++] = used ? d->used[k] : d->via[k];
        }
    if (!dti_tensors_copy(c->ctx, x, specs, n)) return false;
    for (int i = 0, at = 0; i < c->count; i++)
        for (int k = 0; k < c->at[i].n; k++)
            if (c->at[i].d->moved >> k & 1) c->at[i].x[k] = x[at++];
    return true;
}

static bool move(const calls *c)
{
    size_t bytes = (size_t)c->count * (size_t)c->at[0].n * sizeof(void *);
    uint32_t moved = 0;
    for (int i = 0; i < c->count; i++) {
        moved |= c->at[i].d->moved;
        if (!dti_call_admit(c->ctx, c->at[i].d)) return false;
    }
    if (!moved) return true;
    dt_tensor **x = dti_context_borrow(c->ctx, bytes);
    const dt_spec **specs = dti_context_borrow(c->ctx, bytes);
    bool done = x && specs && move_to(c, false, x, specs) && move_to(c, true, x, specs);
    dti_context_give(c->ctx, x, bytes);
    dti_context_give(c->ctx, (void *)specs, bytes);
    return done;
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static bool begin(calls *c, const dt_op *op, dt_tensor *const *in, int n, const void *attributes, int wanted)
{
    while (c->begun < c->count) {
        dti_calling *at = &c->at[c->begun];
        at->op = op;
        at->in = in + (size_t)c->begun * (size_t)n;
        at->n = n;
        at->wanted = wanted;
        at->placements = NULL;
        if (!dti_call_begin(c->ctx, at, attributes)) return false;
        c->begun++;
    }
    return check_apart(c);
}

static bool compute(const calls *c, dt_tensor **result)
{
    dt_tensor *made[DT_MAX_RESULTS];
    for (int i = 0; i < c->count; i++) {
        if (!dti_call_compute(c->ctx, &c->at[i], made)) return false;
        if (result) result[i] = made[0];
    }
    return true;
}

static dt_context *context_of(dt_tensor *const *in, int n)
{
    for (int i = 0; in && i < n; i++)
        if (in[i]) return in[i]->ctx;
    return NULL;
}

static bool check_list(dt_context *ctx, const dt_op *op, int n, int count)
{
    if (!op || !op->head)
        return dti_fail(ctx, DT_ERR_ARG, "dt_apply_list: expected a row with a head, got none"), false;
    if (n >= 1 && n <= DT_MAX_OPERANDS && count >= 0) return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: %d lists of %d operands; expected 1 to %d", op->head, count, n, DT_MAX_OPERANDS);
    return false;
}

dt_status dt_apply_list(const dt_op *op, dt_tensor *const *in, int n, int count, const void *attributes,
                        dt_tensor **result)
{
    dt_context *ctx = context_of(in, n > 0 && count > 0 ? n * count : 0);
    if (!ctx) return count == 0 ? DT_OK : DT_ERR_ARG;
    if (dti_failed(ctx) || !check_list(ctx, op, n, count)) return ctx->status;
    size_t bytes = (size_t)count * sizeof(dti_calling), made_bytes = (size_t)count * sizeof(dt_tensor *);
    calls c = { ctx, count, 0, dti_context_borrow(ctx, bytes) };
    dt_tensor **made = dti_context_borrow(ctx, made_bytes);
    bool done = c.at && made && begin(&c, op, in, n, attributes, result != NULL) && move(&c)
        && compute(&c, result ? made : NULL);
    for (int i = 0; i < count && done && result; i++) result[i] = made[i];
    for (int i = 0; i < c.begun; i++) dti_call_end(&c.at[i]);
    dti_context_give(ctx, c.at, bytes);
    dti_context_give(ctx, made, made_bytes);
    return dt_context_status(ctx);
}

/* ---- the norm of a list ------------------------------------------------------------------------------------------ */

static dt_status derive_squares(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    dt_dtype dtype = ((const dti_squares *)attributes)->dtype;
    int at = 0;
    (void)n;
    if (dtype > DT_F16)
        return dt_context_fail(ctx, DT_ERR_DTYPE, "sum_squares: expected a float for the sum, got %s",
                               dt_dtype_text(dtype));
    for (int d = 0; d < shapes[0].n; d++) {
        out->rule[at++] = (char)('a' + d);
        out->rule[at++] = ' ';
    }
    out->rule[at++] = '-';
    out->rule[at++] = '>';
    out->rule[at] = 0;
    return DT_OK;
}

static dt_status grad_squares(dt_gradient *g)
{
    dt_tensor *x = g->in[0], *twice = dt_mul_scalar(x, 2);
    g->in_grad[0] = dt_mul(twice, dt_cast(g->out_grad[0], dt_spec_dtype(dt_tensor_spec(x))));
    return g->in_grad[0] ? DT_OK : DT_ERR_STATE;
}

static const dt_attribute sum_dtype[] = { { "dtype", DT_ATTRIBUTE_DTYPE, offsetof(dti_squares, dtype) } };

static const dt_op sum_squares = {
    .head = "sum_squares(x)", .derive = derive_squares, .polynomial = "none, saves x", .dtypes = "f->d",
    .attributes = sum_dtype, .attribute_count = DT_COUNT(sum_dtype), .attribute_bytes = sizeof(dti_squares),
    .kernel = dti_cpu_sum_squares, .gradient = grad_squares, .doc = "the sum of all squares, in a dtype",
};

const dt_op *const dti_ops_list[] = { &sum_squares, NULL };

/* What waits to be summed is added where it is: a sum of sums. */
static dt_tensor *add_all(dt_tensor **x, int n)
{
    dt_tensor *sum = x[0];
    for (int i = 1; i < n && sum; i++) sum = dt_add(sum, x[i]);
    return sum;
}

/* Sums of views of the same ranks are one sum; those over other ranks are brought to the first's mesh, one each. */
static dt_tensor *add_meshes(dt_tensor **x, int n)
{
    dt_mesh *first = x[0]->spec->mesh;
    dt_tensor *sum = NULL;
    for (int i = 0; i < n; i++) {
        const dti_layout *layout = x[i]->spec->layout;
        int own = 0;
        for (int k = i; k < n; k++)
            if (dti_layout_same_ranks(x[k]->spec->layout, layout)) {
                dt_tensor *other = x[k];
                x[k] = x[i + own];
                x[i + own++] = other;
            }
        dt_tensor *part = dt_redistribute(add_all(x + i, own), "");
        if (part && part->spec->mesh != first) part = dt_redistribute_to(part, first, "");
        sum = sum ? dt_add(sum, part) : part;
        if (!sum) return NULL;
        i += own - 1;
    }
    return sum;
}

dt_tensor *dt_norm_list(dt_tensor *const *x, int n)
{
    dt_context *ctx = context_of(x, n);
    size_t bytes = n > 0 ? (size_t)n * sizeof(dt_tensor *) : 0;
    dt_tensor **squares = ctx && !dti_failed(ctx) ? dti_context_borrow_zeros(ctx, bytes) : NULL;
    if (!squares) return NULL;
    dt_tensor *norm = NULL;
    int scope = dt_scope_push(ctx, 0);
    if (scope && dt_apply_list(&sum_squares, x, 1, n, &(dti_squares){ DT_F64, 0 }, squares) == DT_OK)
        norm = dt_sqrt(add_meshes(squares, n));
    if (norm && dt_spec_dtype(dt_tensor_spec(x[0])) != DT_F64) norm = dt_cast(norm, DT_F32);
    if (scope) norm = dt_scope_pop(ctx, scope, norm);
    dti_context_give(ctx, squares, bytes);
    return norm;
}
