/* SPDX-License-Identifier: Apache-2.0
 *
 * From a call to its results: what is remembered of it is found, or made by propagation; operands are redistributed
 * where they must be; the kernel writes new parts. */
#include "ops/dispatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/pen.h"
#include "ops/gradient.h"
#include "ops/pull.h"
#include "ops/write.h"
#include "placements/views.h"
#include "redistribute/plan.h"

/* Attributes and shapes may be new in every step, so what is remembered has an end: when there are many calls those
 * that were not asked for since there were as many before are forgotten. */
enum { DEEPEST = 16 };                  /* ops that are made of ops that are made of others ..                      */

typedef struct dispatch_state {
    dti_table calls, before;
    int depth;                         /* of ops that are being made of others                                     */
} dispatch_state;

typedef struct remembered { dti_dispatch dispatch; dti_rule rule; unsigned char key[]; } remembered;

static void destroy(dti_origin *origin)
{
    dti_dispatch *d = (dti_dispatch *)(void *)origin;
    free(d->explained);
    free(d->whole);
    free(d->map);
    free(d);
}

static void forget(dti_table *calls)
{
    for (size_t i = 0; i < calls->capacity; i++) dti_dispatch_release(calls->slots[i].value);
    dti_table_fini(calls);
}

static void state_fini(void *state)
{
    forget(&((dispatch_state *)state)->calls);
    forget(&((dispatch_state *)state)->before);
}

static dispatch_state *state_get(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_OP, sizeof(dispatch_state), state_fini);
}

/* ---- remembered calls -------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes)
{
    uint64_t hash = dti_hash_mix((uint64_t)(uintptr_t)op ^ (uint64_t)(uintptr_t)attributes->asked, (uint64_t)n);
    for (int i = 0; i < n; i++) hash = dti_hash_mix(hash, (uint64_t)(uintptr_t)in[i]);
    return attributes->bytes ? dti_hash(attributes->key, attributes->bytes, hash) : hash;
}

static bool same_specs(const dt_spec *const *a, const dt_spec *const *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static dti_dispatch *recall(const dti_table *calls, uint64_t hash, const dt_op *op, const dt_spec *const *in, int n,
                            const dti_attributes *attributes)
{
    dti_dispatch *d;
    for (size_t at = dti_table_first(calls, hash); (d = dti_table_value(calls, hash, &at)) != NULL;)
        if (d->op == op && d->n == n && d->asked == attributes->asked && same_specs(d->in, in, n)
            && d->key_bytes == attributes->bytes
            && (!d->key_bytes || memcmp(d->key, attributes->key, d->key_bytes) == 0)) return d;
    return NULL;
}

/* Does a plan lead from one kind to the other? Averages of integers are rounded, and so no sums. */
static bool converts(const dti_form *in, const dti_form *used, int m)
{
    dti_partial from = (dti_partial)in->partial[m], to = (dti_partial)used->partial[m];
    if (!from || !to || from == to) return true;
    return dti_partial_mixes(from, to) && in->dtype < DT_I64;
}

static const dt_spec *via(const dt_spec *in, const dt_spec *used)
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

const dt_spec *dti_dispatch_via(const dt_spec *in, const dt_spec *on, const dt_spec *used)
{
    bool elsewhere = on->layout != in->layout && in->layout->partial_count;
    return elsewhere ? on : via(on, used);
}

/* "tp:R,*" for the mesh dims in a mask. */
typedef struct broken { const dt_mesh *mesh; uint32_t dims; } broken;

static void put_whole(dti_pen *pen, const void *arg)
{
    const broken *b = arg;
    for (int m = 0; m < b->mesh->dim_count; m++)
        if (b->dims >> m & 1) dti_put(pen, "%s:R,", b->mesh->dims[m].name);
    dti_put(pen, "*");
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

/* A new dim of size 1 may be asked for in pieces: then this rank has all there is, or nothing. */
static bool may_share(dt_context *ctx, const dti_dispatch *d)
{
    int64_t bytes = d->result[0]->local_bytes;
    if (!d->op->shares || bytes == 0 || bytes == d->used[0]->local_bytes) return true;
    dti_fail(ctx, DT_ERR_SHAPE, "%s: shares its operand %s, and makes %s of it", dti_rule_op(d->rule),
             dt_spec_text(d->used[0]), dt_spec_text(d->result[0]));
    return false;
}

/* What propagation needs is large and short-lived. */
typedef struct work { dti_asking asking; dti_propagation propagation; } work;

/* Results along an index map: by the kernel, or, where its dim is split, by plans. */
static bool set_pulls(dt_context *ctx, dti_dispatch *d, const dt_index_map *map)
{
    if (!map->part_count) return true;
    d->map = malloc(sizeof *d->map);
    if (!d->map || !dti_map_check(ctx, map, d)) return false;
    *d->map = *map;
    for (int r = 0; r < d->result_count && dti_pulls(map, d); r++)
        if (!(d->pull[r] = dti_pull_plan(map, d, r))) return false;
    return true;
}

static dti_dispatch *new_dispatch(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                                  const dti_attributes *attributes, work *w)
{
    const dt_spec *on[DT_MAX_OPERANDS];
    if (!dti_meshes_join(ctx, op->head, in, n, on) || !dti_row_ask(ctx, op, on, n, attributes, &w->asking)) return NULL;
    if (!dti_propagate(ctx, &w->asking.ask, 1, &w->propagation)) return NULL;
    const dti_answer *answer = &w->propagation.answer[0];
    remembered *made = malloc(sizeof *made + 2 * attributes->bytes);
    if (!made) return NULL;
    dti_dispatch *d = &made->dispatch;
    made->rule = w->asking.rule;
    memcpy(made->key, attributes->key, attributes->bytes);
    memcpy(made->key + attributes->bytes, attributes->values, attributes->bytes);
    *d = (dti_dispatch){ .origin = { 1, destroy, dti_dispatch_explained }, .op = op, .rule = &made->rule, .n = n,
                         .result_count = made->rule.result_count, .key = made->key, .key_bytes = attributes->bytes,
                         .values = made->key + attributes->bytes, .asked = attributes->asked,
                         .number_dims = answer->number_dims };
    if (answer->broken_dims
        && !(d->whole = dti_written(put_whole, &(broken){ w->propagation.mesh, answer->broken_dims }))) {
        dti_dispatch_release(d);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        d->in[i] = in[i];
        d->via[i] = d->used[i] = answer->used[i];
        if (d->in[i] == d->used[i]) continue;
        d->moved |= UINT32_C(1) << i;
        if ((d->via[i] = dti_dispatch_via(d->in[i], on[i], d->used[i]))) continue;
        dti_dispatch_release(d);
        return NULL;
    }
    for (int r = 0; r < d->result_count; r++) d->result[r] = answer->result[r];
    if (give_results(d) && may_share(ctx, d) && dti_write_fits(ctx, d) && set_pulls(ctx, d, &w->asking.derived.map))
        return d;
    dti_dispatch_release(d);
    return NULL;
}

static dti_dispatch *make(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                          const dti_attributes *attributes)
{
    work *w = dti_context_borrow(ctx, sizeof *w);
    dti_dispatch *d = w ? new_dispatch(ctx, op, in, n, attributes, w) : NULL;
    if (!d && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "%s: no memory to remember a call", op->head);
    dti_context_give(ctx, w, sizeof *w);
    return d;
}

/* Takes the reference, also on failure. */
static dti_dispatch *remember(dt_context *ctx, dispatch_state *state, uint64_t hash, dti_dispatch *d)
{
    if (state->calls.count == DTI_REMEMBERED / 2) {
        forget(&state->before);
        state->before = state->calls;
        state->calls = (dti_table){ 0 };
    }
    if (dti_table_add(&state->calls, hash, d)) return d;
    dti_fail(ctx, DT_ERR_MEMORY, "%s: no memory to remember a call", d->op->head);
    dti_dispatch_release(d);
    return NULL;
}

dti_dispatch *dti_dispatch_get(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                               const dti_attributes *attributes)
{
    dispatch_state *state = state_get(ctx);
    if (!state) return NULL;
    uint64_t hash = hash_of(op, in, n, attributes);
    dti_dispatch *d = recall(&state->calls, hash, op, in, n, attributes);
    if (d) return d;
    d = recall(&state->before, hash, op, in, n, attributes);
    d = d ? dti_dispatch_hold(d) : make(ctx, op, in, n, attributes);
    return d ? remember(ctx, state, hash, d) : NULL;
}

int dti_dispatch_count(dt_context *ctx)
{
    const dispatch_state *state = state_get(ctx);
    return state ? (int)(state->calls.count + state->before.count) : 0;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const dt_plan *plan_of(const dt_spec *from, const dt_spec *to)
{
    return from == to ? NULL : dt_plan_create(from, to, DT_PLAN_TIME);
}

static int64_t moved_bytes(const dti_dispatch *d, int i)
{
    return dt_plan_price(plan_of(d->in[i], d->via[i])).total + dt_plan_price(plan_of(d->via[i], d->used[i])).total;
}

static bool moves_any(const dt_plan *plan) { return plan && dti_plan_moves((dt_plan *)(uintptr_t)plan); }

static bool moves_operand(const dti_dispatch *d, int i)
{
    return moves_any(plan_of(d->in[i], d->via[i])) || moves_any(plan_of(d->via[i], d->used[i]));
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
        dti_put(&pen, "%s%s %s as %s (%lld bytes)", all ? ", " : "", dti_rule_name(d->rule, i), dt_spec_text(d->in[i]),
                *dt_spec_placements(d->used[i]) ? dt_spec_placements(d->used[i]) : "R", (long long)bytes);
        all += bytes;
    }
    if (all == 0) return false;
    dti_fail(ctx, DT_ERR_PLACEMENT, "%s: strict, and its operands do not fit each other; redistribute %s",
             dti_rule_op(d->rule), text);
    return true;
}

/* To a mesh, and to what it is a view of. */
static void add_implied(dt_mesh *mesh, int64_t n)
{
    for (; mesh && n; mesh = mesh->origin) {
        dt_counters *counters = dti_mesh_counting(mesh);
        if (counters) counters[mesh->dim_count].implied += n;
    }
}

static void count_implied(const dti_dispatch *d)
{
    int n = 0;
    for (int i = 0; i < d->n; i++) n += (d->moved >> i & 1) && moves_operand(d, i);
    add_implied(d->result[0]->mesh, n);
}

bool dti_call_admit(dt_context *ctx, const dti_dispatch *d)
{
    if (!d->moved) return true;
    if ((dti_scope_flags(ctx) & DT_SCOPE_STRICT) && refuse_moves(ctx, d)) return false;
    count_implied(d);
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

static void set_part(dt_part *part, const dt_spec *spec, const dti_storage *storage)
{
    part->spec = spec;
    part->rank = spec->mesh->rank;
    part->dtype = (dt_dtype)spec->form.dtype;
    part->shape = spec->local;
    part->data = storage ? storage->bytes : NULL;
}

/* The number 1 is added by the first rank along dims where the result is then a sum. */
static bool adds_number(const dti_dispatch *d)
{
    const dt_mesh *mesh = d->result[0]->mesh;
    for (int m = 0; m < mesh->dim_count && d->number_dims; m++)
        if ((d->number_dims >> m & 1) && dti_mesh_coord_of(mesh, m, mesh->ctx->rank) > 0) return false;
    return true;
}

/* What elements are that no part of an index map covers: the row's first number. false: it is none of the dtype. */
static bool read_fill(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, double *fill)
{
    const dt_op *op = d->op;
    *fill = 0;
    for (int i = 0; d->map && i < op->attribute_count; i++) {
        if (op->attributes[i].kind != DT_ATTRIBUTE_NUMBER) continue;
        memcpy(fill, attributes->values + op->attributes[i].offset, sizeof *fill);
        break;
    }
    if (!d->map || dt_spec_dtype(d->result[0]) <= DT_F16 || isinf(*fill) || floor(*fill) == *fill) return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: expected a whole number for %s, got %g", op->head,
             dt_dtype_text(dt_spec_dtype(d->result[0])), *fill);
    return false;
}

static bool run_kernel(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, double fill,
                       dt_tensor *const *x, dti_storage *const *y)
{
    dt_call call; /* large: only the parts that are counted are set                                                */
    call.ctx = ctx;
    call.op = d->op;
    call.attributes = attributes->values;
    call.in_count = d->n;
    call.out_count = d->result_count;
    call.adds_number = adds_number(d);
    call.map = d->map;
    call.fill = call.adds_number ? fill : -0.0;
    for (int i = 0; i < d->n; i++) {
        if (x[i]) set_part(&call.in[i], x[i]->spec, x[i]->storage);
        else memset(&call.in[i], 0, sizeof call.in[i]);
    }
    for (int r = 0; r < d->result_count; r++) set_part(&call.out[r], d->result[r], y[r]);
    dt_status status = d->op->kernel(&call);
    if (status && !dti_failed(ctx)) dti_fail(ctx, status, "%s: its kernel failed", dti_rule_op(d->rule));
    return !dti_failed(ctx);
}

static bool pull(const dti_dispatch *d, double fill, dt_tensor *const *x, dti_storage **y)
{
    dti_storage *sources[DT_MAX_OPERANDS];
    for (int r = 0; r < d->result_count; r++) {
        int n = 0;
        for (int i = 0; i < d->map->part_count; i++)
            if (d->map->part[i].result == r) sources[n++] = x[d->map->part[i].operand]->storage;
        if (!dti_part_pull(d->pull[r], sources, adds_number(d) ? fill : -0.0, &y[r])) return false;
    }
    return true;
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
                 dt_spec_text(out->spec), dt_spec_text(due));
    if (fits && out->spec != due) out = dti_tensor_to(out, due);
    if (!fits || !out) return false;
    *y = out->storage ? dti_storage_retain(out->storage) : NULL;
    return true;
}

/* Statistics that move are moves that nobody wrote. */
static void count_statistics(dt_mesh *mesh, const dt_counters *before)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t n = before->implied - now.implied;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++)
        if (k != DT_COMM_LOCAL) n += now.calls[k] - before->calls[k];
    add_implied(mesh, n);
}

static bool enter(dt_context *ctx, dispatch_state *state, const dti_dispatch *d)
{
    if (state->depth < DEEPEST) return ++state->depth;
    dti_fail(ctx, DT_ERR_STATE, "%s: made of others, which are made of others, %d deep: of itself?",
             dti_rule_op(d->rule), DEEPEST);
    return false;
}

static bool decompose(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *x,
                      dti_storage **y)
{
    dispatch_state *state = state_get(ctx);
    if (!state || !enter(ctx, state, d)) return false;
    dt_decomposition parts = { .ctx = ctx, .op = d->op, .attributes = attributes->values, .in_count = d->n,
                               .out_count = d->result_count, .whole = d->whole };
    dt_mesh *mesh = d->result[0]->mesh;
    dt_counters before = dt_mesh_counters(mesh, NULL);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dti_scope_drop_flags(ctx, DT_SCOPE_STRICT);
    for (int i = 0; i < d->n; i++) parts.in[i] = x[i];
    dt_status status = d->op->decompose(&parts);
    state->depth--;
    if (status && !dti_failed(ctx)) dti_fail(ctx, status, "%s: what it is made of failed", dti_rule_op(d->rule));
    for (int r = 0; r < d->result_count && !dti_failed(ctx); r++)
        if (!take_result(d, r, parts.out[r], &y[r]) && !dti_failed(ctx))
            dti_fail(ctx, DT_ERR_STATE, "%s: made of others it gives no result %d", dti_rule_op(d->rule), r);
    dt_scope_pop(ctx, scope, NULL);
    count_statistics(mesh, &before);
    return !dti_failed(ctx);
}

static bool compute(dt_context *ctx, const dti_dispatch *d, const dti_attributes *attributes, dt_tensor *const *x,
                    dti_storage **y)
{
    double fill;
    if (d->whole && d->result[0]->mesh->rank >= 0) return decompose(ctx, d, attributes, x, y);
    if (d->op->shares && d->result[0]->local_bytes == x[0]->spec->local_bytes)
        return y[0] = x[0]->storage ? dti_storage_retain(x[0]->storage) : NULL, true;
    if (d->op->shares) return dti_part_new(d->result[0], &y[0]);
    if (!read_fill(ctx, d, attributes, &fill)) return false;
    if (d->pull[0]) return pull(d, fill, x, y);
    for (int r = 0; r < d->op->writes; r++) y[r] = x[r]->storage ? dti_storage_retain(x[r]->storage) : NULL;
    for (int r = d->op->writes; r < d->result_count; r++)
        if (!dti_part_new(d->result[r], &y[r])) return false;
    return ctx->dry || d->result[0]->mesh->rank < 0 || run_kernel(ctx, d, attributes, fill, x, y);
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
    if (!op->kernel && !op->shares && !ctx->dry)
        return dti_fail(ctx, DT_ERR_UNAVAILABLE, "%s: has no kernel", op->head), false;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->ctx != ctx)
            return dti_fail(ctx, DT_ERR_ARG, "%s: operands of two contexts", op->head), false;
        else if (in[i] && in[i]->unmade) return dti_tensor_ok(in[i]);
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
static bool make_results(dti_dispatch *d, dt_tensor *const *in, dti_storage **y, int wanted, dt_tensor **out)
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
        if (out[r]) out[r]->origin = dti_origin_hold(&d->origin);
        y[r] = NULL;
        made &= out[r] != NULL;
    }
    return made;
}

/* What is remembered for a call, its result placed as asked: "*" is what it would be without. */
static dti_dispatch *find(dt_context *ctx, dti_calling *c, const dt_spec *const *specs)
{
    dti_dispatch *d = dti_dispatch_get(ctx, c->op, specs, c->n, &c->attributes);
    if (!d || !c->placements) return d;
    c->attributes.asked = dt_spec_replace(d->given[0], c->placements);
    return c->attributes.asked ? dti_dispatch_get(ctx, c->op, specs, c->n, &c->attributes) : NULL;
}

/* Of what is not written. */
static void take_used(dti_calling *c)
{
    for (int i = 0; i < c->n; i++) c->used[i] = i < c->op->writes ? c->in[i] : dti_used(c->in[i]);
    c->in = c->used;
}

bool dti_call_begin(dt_context *ctx, dti_calling *c, const void *values)
{
    const dt_spec *specs[DT_MAX_OPERANDS];
    dt_shape scalar = DT_SCALAR;
    specs[0] = NULL;
    for (int i = 0; i < c->n; i++)
        if (c->in[i] && c->in[i]->used) {
            take_used(c);
            break;
        }
    for (int i = 0; i < c->n; i++) {
        c->x[i] = c->in[i];
        specs[i] = c->in[i] ? c->in[i]->spec : NULL;
    }
    const dt_shape *first = c->n == 0 ? &scalar : specs[0] ? &specs[0]->shape : NULL;
    bool found = check_operands(ctx, c->op, c->in, c->n)
        && dti_attributes_read(ctx, c->op, values, first, &c->attributes)
        && (c->d = find(ctx, c, specs)) != NULL
        && check_count(ctx, c->d, c->wanted) && (!c->op->writes || dti_write_ready(ctx, c->d, c->in));
    if (found) dti_dispatch_hold(c->d);                                /* others are asked for before it ends      */
    return found;
}

bool dti_call_compute(dt_context *ctx, dti_calling *c, dt_tensor **out)
{
    dti_storage *y[DT_MAX_RESULTS] = { NULL };
    if (compute(ctx, c->d, &c->attributes, c->x, y))
        return make_results(c->d, c->in, y, c->wanted, out)
            && (c->op->writes || !ctx->recorder || dti_op_record(ctx, c->d, &c->attributes, c->in, c->x, out));
    for (int r = 0; r < DT_MAX_RESULTS; r++) dti_storage_release(y[r]);
    return false;
}

void dti_call_end(dti_calling *c) { dti_dispatch_release(c->d); }

/* In one function with all that it goes through: that saves an eighth of a known call's instructions. */
__attribute__((flatten))
static bool apply(dt_context *ctx, const dt_op *op, dt_tensor *const *in, int n, const void *values,
                  const char *placements, int count, dt_tensor **out)
{
    dti_calling c; /* not set to zero: it is large */
    c.op = op;
    c.in = in;
    c.n = n;
    c.wanted = count;
    c.placements = placements;
    if (!dti_call_begin(ctx, &c, values)) return false;
    bool done = move_operands(ctx, c.d, c.x) && dti_call_compute(ctx, &c, out);
    dti_call_end(&c);
    return done;
}

static dt_status apply_checked(const dt_op *op, dt_tensor *const *in, int n, const void *attributes,
                               const char *placements, dt_tensor **result, int count)
{
    dt_tensor *made[DT_MAX_RESULTS] = { NULL };
    dt_context *ctx = context_of(in, n);
    if (!ctx) return DT_ERR_ARG;
    if (dti_failed(ctx)) return ctx->status;
    bool done = check_call(ctx, op, n, result, count) && apply(ctx, op, in, n, attributes, placements, count, made);
    for (int r = 0; r < count && done; r++) result[r] = made[r];
    return dt_context_status(ctx);
}

dt_status dt_apply_all(const dt_op *op, dt_tensor *const *in, int n, const void *attributes, dt_tensor **result,
                       int count)
{
    return apply_checked(op, in, n, attributes, NULL, result, count);
}

dt_tensor *dt_apply(const dt_op *op, dt_tensor *const *in, int n, const void *attributes)
{
    dt_tensor *y = NULL;
    apply_checked(op, in, n, attributes, NULL, &y, 1);
    return y;
}

dt_tensor *dt_apply_placed(const dt_op *op, dt_tensor *const *in, int n, const void *attributes,
                           const char *placements)
{
    dt_tensor *y = NULL;
    apply_checked(op, in, n, attributes, placements ? placements : "", &y, 1);
    return y ? dt_redistribute(y, placements) : NULL;
}
