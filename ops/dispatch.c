/* SPDX-License-Identifier: Apache-2.0
 *
 * From a call to its results: what is remembered of it is found, or made by propagation; operands are redistributed
 * where they must be; the kernel writes new parts. */
#include "ops/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "core/pen.h"
#include "ops/gradient.h"
#include "ops/meshes.h"
#include "ops/write.h"
#include "redistribute/plan.h"
#include "tensor/tensor.h"

typedef struct dispatch_state { dti_table calls; } dispatch_state;

static void state_fini(void *state) { dti_table_fini(&((dispatch_state *)state)->calls); }

static dispatch_state *state_get(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_OP, sizeof(dispatch_state), state_fini);
}

/* ---- remembered calls -------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes)
{
    uint64_t hash = dti_hash_mix((uint64_t)(uintptr_t)op, (uint64_t)n);
    for (int i = 0; i < n; i++) hash = dti_hash_mix(hash, (uint64_t)(uintptr_t)in[i]);
    return attributes->bytes ? dti_hash(attributes->key, attributes->bytes, hash) : hash;
}

static const dti_dispatch *recall(const dispatch_state *state, uint64_t hash, const dt_op *op,
                                  const dt_spec *const *in, int n, const dti_attributes *attributes)
{
    const dti_dispatch *d;
    for (size_t at = dti_table_first(&state->calls, hash); (d = dti_table_value(&state->calls, hash, &at)) != NULL;)
        if (d->op == op && d->n == n && memcmp(d->in, in, (size_t)n * sizeof *in) == 0
            && d->key_bytes == attributes->bytes && memcmp(d->key, attributes->key, attributes->bytes) == 0) return d;
    return NULL;
}

/* Does a plan lead from one kind to the other? Averages of integers are rounded, and so no sums. */
static bool converts(const dti_form *in, const dti_form *used, int m)
{
    dti_partial from = (dti_partial)in->partial[m], to = (dti_partial)used->partial[m];
    if (!from || !to || from == to) return true;
    return dti_partial_mixes(from, to) && in->dtype < DT_I64;
}

const dt_spec *dti_dispatch_via(const dt_spec *in, const dt_spec *used)
{
    dti_form form = used->form;
    bool direct = true;
    for (int m = 0; m < used->mesh->dim_count; m++) {
        if (converts(&in->form, &used->form, m)) continue;
        form.partial[m] = DTI_PARTIAL_NONE;
        direct = false;
    }
    return direct ? used : dti_spec_intern(used->mesh, &form);
}

/* "tp:R,*" for the mesh dims in a mask. */
static const char *whole_text(dt_context *ctx, const dt_mesh *mesh, uint32_t dims)
{
    char text[DT_MAX_MESH_DIMS * 64] = "";
    dti_pen pen = { text, sizeof text, 0 };
    for (int m = 0; m < mesh->dim_count; m++)
        if (dims >> m & 1) dti_put(&pen, "%s:R,", mesh->dims[m].name);
    dti_put(&pen, "*");
    char *kept = dti_context_take(ctx, pen.at + 1);
    return kept ? memcpy(kept, text, pen.at) : NULL;
}

/* What comes between an operand and its use. One of a view that has no refinement is brought to the mesh first where it
 * is P: nothing is P in both. */
static const dt_spec *way_of(const dt_spec *in, const dt_spec *on, const dt_spec *used)
{
    bool elsewhere = on->layout != in->layout && in->layout->partial_count;
    return elsewhere ? on : dti_dispatch_via(on, used);
}

static bool give_results(dti_dispatch *d)
{
    dt_mesh *mesh = NULL;
    for (int i = 0; i < d->n && !mesh; i++) mesh = d->in[i] ? d->in[i]->mesh : NULL;
    for (int r = 0; r < d->result_count; r++) {
        if (mesh && !dti_spec_on(d->result[r], mesh, &d->given[r])) return false;
        if (!d->given[r]) d->given[r] = d->result[r];
    }
    return true;
}

/* What propagation needs is large and short-lived. */
typedef struct work { dti_asking asking; dti_propagation propagation; } work;

static dti_dispatch *new_dispatch(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                                  const dti_attributes *attributes, work *w)
{
    const dt_spec *on[DT_MAX_OPERANDS];
    if (!dti_meshes_join(ctx, op, in, n, on) || !dti_row_ask(ctx, op, on, n, attributes, &w->asking)) return NULL;
    if (!dti_propagate(ctx, &w->asking.ask, 1, &w->propagation)) return NULL;
    const dti_answer *answer = &w->propagation.answer[0];
    dti_dispatch *d = dti_context_take(ctx, sizeof *d);
    unsigned char *key = dti_context_take(ctx, attributes->bytes + 1);
    dti_rule *rule = dti_context_take(ctx, sizeof *rule);
    if (!d || !key || !rule) return NULL;
    *rule = w->asking.rule;
    memcpy(key, attributes->key, attributes->bytes);
    *d = (dti_dispatch){ .op = op, .rule = rule, .n = n, .result_count = rule->result_count, .key = key,
                         .key_bytes = attributes->bytes, .number_dims = answer->number_dims };
    if (answer->broken_dims && !(d->whole = whole_text(ctx, w->propagation.mesh, answer->broken_dims))) return NULL;
    for (int i = 0; i < n; i++) {
        d->in[i] = in[i];
        d->via[i] = d->used[i] = answer->used[i];
        if (d->in[i] == d->used[i]) continue;
        d->moved |= UINT32_C(1) << i;
        if (!(d->via[i] = way_of(d->in[i], on[i], d->used[i]))) return NULL;
    }
    for (int r = 0; r < d->result_count; r++) d->result[r] = answer->result[r];
    return give_results(d) && dti_write_fits(ctx, d) ? d : NULL;
}

const dti_dispatch *dti_dispatch_get(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                                     const dti_attributes *attributes)
{
    dispatch_state *state = state_get(ctx);
    if (!state) return NULL;
    uint64_t hash = hash_of(op, in, n, attributes);
    const dti_dispatch *found = recall(state, hash, op, in, n, attributes);
    if (found) return found;
    work *w = malloc(sizeof *w);
    dti_dispatch *made = w ? new_dispatch(ctx, op, in, n, attributes, w) : NULL;
    bool kept = made && dti_table_add(&state->calls, hash, made);
    if (!kept && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "%s: no memory to remember a call", op->head);
    free(w);
    return kept ? made : NULL;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int64_t plan_bytes(const dt_spec *from, const dt_spec *to)
{
    return from == to ? 0 : dt_plan_price(dt_plan_create(from, to, DT_PLAN_TIME)).total;
}

static int64_t moved_bytes(const dti_dispatch *d, int i)
{
    return plan_bytes(d->in[i], d->via[i]) + plan_bytes(d->via[i], d->used[i]);
}

/* In a strict scope what would have to move is an error, which says what would do. */
static bool refuse_moves(dt_context *ctx, const dti_dispatch *d)
{
    char text[640];
    dti_pen pen = { text, sizeof text, 0 };
    int64_t all = 0;
    for (int i = 0; i < d->n; i++) {
        if (!(d->moved >> i & 1)) continue;
        int64_t bytes = moved_bytes(d, i);
        if (bytes == 0) continue;
        dti_put(&pen, "%s%s %s as %s (%lld bytes)", all ? ", " : "", dti_rule_name(d->rule, i), d->in[i]->text,
                *d->used[i]->placements ? d->used[i]->placements : "R", (long long)bytes);
        all += bytes;
    }
    if (all == 0) return false;
    dti_fail(ctx, DT_ERR_PLACEMENT, "%s: strict, and its operands do not fit each other; redistribute %s",
             dti_rule_op(d->rule), text);
    return true;
}

static void count_implied(dt_context *ctx, const dti_dispatch *d)
{
    dt_mesh *mesh = d->result[0]->mesh;
    dt_counters *counters = dti_mesh_counting(mesh);
    for (int i = 0; i < d->n && counters; i++)
        if ((d->moved >> i & 1) && moved_bytes(d, i)) counters[mesh->dim_count].implied++;
    (void)ctx;
}

bool dti_call_admit(dt_context *ctx, const dti_dispatch *d)
{
    if (!d->moved) return true;
    if ((dti_scope_flags(ctx) & DT_SCOPE_STRICT) && refuse_moves(ctx, d)) return false;
    count_implied(ctx, d);
    return true;
}

static bool move_operands(dt_context *ctx, const dti_dispatch *d, dt_tensor **x)
{
    if (!dti_call_admit(ctx, d)) return false;
    for (int i = 0; i < d->n; i++)
        if (d->moved >> i & 1 && (!(x[i] = dti_tensor_copy(x[i], d->via[i]))
                                  || !(x[i] = dti_tensor_copy(x[i], d->used[i])))) return false;
    return true;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static dt_part part_of(const dt_spec *spec, const dti_storage *storage)
{
    int rank = spec->mesh->rank;
    return (dt_part){ .spec = spec, .rank = rank, .dtype = (dt_dtype)spec->form.dtype,
                      .shape = dt_spec_local_shape(spec, rank), .data = storage ? storage->bytes : NULL };
}

/* The number 1 is added by the first rank along dims where the result is then a sum. */
static bool adds_number(const dti_dispatch *d)
{
    const dt_mesh *mesh = d->result[0]->mesh;
    for (int m = 0; m < mesh->dim_count; m++)
        if ((d->number_dims >> m & 1) && dti_mesh_coord_of(mesh, m, mesh->ctx->rank) > 0) return false;
    return true;
}

static bool run_kernel(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *x,
                       dti_storage *const *y)
{
    dt_call call = { .ctx = ctx, .op = d->op, .attributes = attributes->values, .in_count = d->n,
                     .out_count = d->result_count, .adds_number = adds_number(d) };
    for (int i = 0; i < d->n; i++)
        if (x[i]) call.in[i] = part_of(x[i]->spec, x[i]->storage);
    for (int r = 0; r < d->result_count; r++) call.out[r] = part_of(d->result[r], y[r]);
    dt_status status = d->op->kernel(&call);
    if (status && !dti_failed(ctx)) dti_fail(ctx, status, "%s: its kernel failed", dti_rule_op(d->rule));
    return !dti_failed(ctx);
}

/* ---- ops made of others ------------------------------------------------------------------------------------------ */

/* A result as its spec says; the part of it goes to *y. */
static bool take_result(const dti_dispatch *d, int r, dt_tensor *out, dti_storage **y)
{
    const dt_spec *due = d->result[r];
    bool fits = out && out->spec->shape.n == due->shape.n
        && memcmp(out->spec->shape.dim, due->shape.dim, (size_t)due->shape.n * sizeof due->shape.dim[0]) == 0
        && out->spec->form.dtype == due->form.dtype && out->spec->mesh == due->mesh;
    if (!fits && out)
        dti_fail(out->ctx, DT_ERR_STATE, "%s: made of others its result is %s, not %s", dti_rule_op(d->rule),
                 out->spec->text, due->text);
    if (fits && out->spec != due) out = dti_tensor_to(out, due);
    if (!fits || !out) return false;
    *y = out->storage ? dti_storage_retain(out->storage) : NULL;
    return true;
}

/* Statistics that move are moves that nobody wrote. */
static void count_statistics(dt_counters *counters, const dt_counters *before)
{
    counters->implied = before->implied;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++)
        if (k != DT_COMM_LOCAL) counters->implied += counters->calls[k] - before->calls[k];
}

static bool decompose(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *x,
                      dti_storage **y)
{
    dt_decomposition parts = { .ctx = ctx, .op = d->op, .attributes = attributes->values, .in_count = d->n,
                               .out_count = d->result_count, .whole = d->whole };
    dt_mesh *mesh = d->result[0]->mesh;
    dt_counters before = dt_mesh_counters(mesh, NULL);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dti_scope_drop_flags(ctx, DT_SCOPE_STRICT);
    for (int i = 0; i < d->n; i++) parts.in[i] = x[i];
    dt_status status = d->op->decompose(&parts);
    if (status && !dti_failed(ctx)) dti_fail(ctx, status, "%s: what it is made of failed", dti_rule_op(d->rule));
    for (int r = 0; r < d->result_count && !dti_failed(ctx); r++)
        if (!take_result(d, r, parts.out[r], &y[r]) && !dti_failed(ctx))
            dti_fail(ctx, DT_ERR_STATE, "%s: made of others it gives no result %d", dti_rule_op(d->rule), r);
    dt_scope_pop(ctx, scope, NULL);
    dt_counters *counters = dti_mesh_counting(mesh);
    if (counters) count_statistics(&counters[mesh->dim_count], &before);
    return !dti_failed(ctx);
}

static bool compute(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *x,
                    dti_storage **y)
{
    if (d->whole && d->result[0]->mesh->rank >= 0) return decompose(ctx, d, attributes, x, y);
    for (int r = 0; r < d->op->writes; r++) y[r] = x[r]->storage ? dti_storage_retain(x[r]->storage) : NULL;
    for (int r = d->op->writes; r < d->result_count; r++)
        if (!dti_part_new(d->result[r], &y[r])) return false;
    return ctx->dry || d->result[0]->mesh->rank < 0 || run_kernel(ctx, d, attributes, x, y);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static dt_context *context_of(dt_tensor *const *in, int n)
{
    for (int i = 0; in && i < n && i < DT_MAX_OPERANDS; i++)
        if (in[i]) return in[i]->ctx;
    return NULL;
}

static bool check_call(dt_context *ctx, const dt_op *op, int n, dt_tensor *const *result, int count)
{
    if (!op || !op->head) return dti_fail(ctx, DT_ERR_ARG, "dt_apply: expected a row with a head, got none"), false;
    if (n > DT_MAX_OPERANDS)
        return dti_fail(ctx, DT_ERR_ARG, "%s: %d operands, more than %d", op->head, n, DT_MAX_OPERANDS), false;
    if (count < 0 || (count && !result))
        return dti_fail(ctx, DT_ERR_ARG, "%s: got room for %d results%s", op->head, count, result ? "" : " nowhere"),
               false;
    return true;
}

static bool check_operands(dt_context *ctx, const dt_op *op, dt_tensor *const *in, int n)
{
    if (!op->kernel && !ctx->dry)
        return dti_fail(ctx, DT_ERR_UNAVAILABLE, "%s: has no kernel", op->head), false;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->ctx != ctx)
            return dti_fail(ctx, DT_ERR_ARG, "%s: operands of two contexts", op->head), false;
    return true;
}

static bool check_count(dt_context *ctx, const dti_dispatch *d, int count)
{
    if (count <= dti_rule_results(d->rule)) return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: has %d results, got room for %d", d->op->head, dti_rule_results(d->rule), count);
    return false;
}

/* One tensor per result, kept ones among them; what of them nobody wants ends with the scope. What was written is the
 * operand, in another handle where somebody wants one. */
static bool make_results(const dti_dispatch *d, dt_tensor *const *in, dti_storage **y, int wanted, dt_tensor **out)
{
    bool made = true;
    for (int r = 0; r < d->op->writes; r++) {
        dti_storage_release(y[r]);
        y[r] = NULL;
        dti_tensor_written(in[r]);
        out[r] = r < wanted ? dti_tensor_share(in[r]) : NULL;
        made &= r >= wanted || out[r];
    }
    for (int r = d->op->writes; r < d->result_count; r++) {
        out[r] = made ? dti_tensor_new(d->given[r], y[r]) : NULL;
        if (!made) dti_storage_release(y[r]);
        y[r] = NULL;
        made &= out[r] != NULL;
    }
    return made;
}

bool dti_call_begin(dt_context *ctx, dti_calling *c, const void *values)
{
    const dt_spec *specs[DT_MAX_OPERANDS];
    dt_shape scalar = DT_SCALAR;
    for (int i = 0; i < c->n; i++) {
        c->x[i] = c->in[i];
        specs[i] = c->in[i] ? c->in[i]->spec : NULL;
    }
    return check_operands(ctx, c->op, c->in, c->n)
        && dti_attributes_read(ctx, c->op, values, specs[0] ? &specs[0]->shape : &scalar, &c->attributes)
        && (c->d = dti_dispatch_get(ctx, c->op, specs, c->n, &c->attributes)) != NULL
        && check_count(ctx, c->d, c->wanted) && (!c->op->writes || dti_write_ready(ctx, c->d, c->in));
}

bool dti_call_end(dt_context *ctx, dti_calling *c, dt_tensor **out)
{
    dti_storage *y[DT_MAX_RESULTS] = { NULL };
    if (compute(ctx, c->d, &c->attributes, c->x, y))
        return make_results(c->d, c->in, y, c->wanted, out)
            && (c->op->writes || dti_op_record(ctx, c->d, &c->attributes, c->in, c->x, out));
    for (int r = 0; r < DT_MAX_RESULTS; r++) dti_storage_release(y[r]);
    return false;
}

static bool apply(dt_context *ctx, const dt_op *op, dt_tensor *const *in, int n, const void *values, int count,
                  dt_tensor **out)
{
    dti_calling c; /* not set to zero: it is large */
    c.op = op;
    c.in = in;
    c.n = n;
    c.wanted = count;
    return dti_call_begin(ctx, &c, values) && move_operands(ctx, c.d, c.x) && dti_call_end(ctx, &c, out);
}

dt_status dt_apply_all(const dt_op *op, dt_tensor *const *in, int n, const void *attributes, dt_tensor **result,
                       int count)
{
    dt_tensor *made[DT_MAX_RESULTS] = { NULL };
    dt_context *ctx = context_of(in, n);
    if (!ctx) return DT_ERR_ARG;
    if (dti_failed(ctx)) return ctx->status;
    bool done = check_call(ctx, op, n, result, count) && apply(ctx, op, in, n, attributes, count, made);
    for (int r = 0; r < count && done; r++) result[r] = made[r];
    return dt_context_status(ctx);
}

dt_tensor *dt_apply(const dt_op *op, dt_tensor *const *in, int n, const void *attributes)
{
    dt_tensor *y = NULL;
    dt_apply_all(op, in, n, attributes, &y, 1);
    return y;
}
