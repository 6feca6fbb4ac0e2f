/* SPDX-License-Identifier: Apache-2.0
 *
 * A call, a seed, backward: on one rank for reference, with seeds of other signs to know of what a gradient is the sum;
 * on thread ranks for each placement, where every rank looks at its own part. What is differentiated is the first
 * result times the seed.
 *
 * A gradient is due exactly (but for the sign of 0) unless a sum may have been split: something is P, was reduced
 * forward or moved backward. Then it may be off by 4 eps of its magnitude. That is bounded by the root of how many
 * elements the result has times the largest gradient under a few random signs (Cauchy and Schwarz); of a row that is no
 * polynomial, where rounded operands tell, too, by that of any element, and 1. Where an operand is P its contributions
 * are larger than it by up to VALUE_PAD, and so is that of which the gradient is the sum. */
#include "judge_gradients.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "core/number.h"
#include "operands.h"
#include "suite.h"
#include "tensor/tensor.h"

enum { SIGNS = 6, SLOPES = 8, TEXT = 640, MOST_FAILURES = 5, RANKS = 6 };

typedef struct gradient_call {
    const op_call *call;
    double *seed;                      /* of the first result                                                      */
    double *grad[CALL_OPERANDS];       /* NULL: the operand has none                                               */
    double *magnitude[CALL_OPERANDS], most[CALL_OPERANDS];
} gradient_call;

/* The one thing rows do not say: operands that are floats and have no gradient. */
static bool has_gradient(const op_call *call, int i)
{
    static const struct { const char *head; int operand; } constants[] = {
        { "cross_entropy(", 2 },
    };
    bool is_constant = false;
    for (int k = 0; k < DT_COUNT(constants); k++)
        is_constant |= constants[k].operand == i
            && strncmp(call->op->head, constants[k].head, strlen(constants[k].head)) == 0;
    return call->form[i].dtype && call->form[i].dtype <= DT_F16 && !is_constant;
}

/* ---- tensors of numbers ------------------------------------------------------------------------------------------ */

static dt_tensor *of_numbers(const dt_spec *spec, const double *numbers, int64_t n)
{
    size_t size = dt_dtype_bytes(dt_spec_dtype(spec));
    char *raw = malloc((size_t)n * size + 1);
    for (int64_t e = 0; raw && e < n; e++) dti_number_set(dt_spec_dtype(spec), numbers[e], raw + e * (int64_t)size);
    dt_tensor *x = raw ? dt_from_host(spec, -1, raw, (size_t)n * size) : NULL;
    free(raw);
    return x;
}

static double *numbers_of(dt_tensor *x, int64_t n)
{
    double *numbers = calloc((size_t)n + 1, sizeof *numbers);
    dt_dtype dtype = x ? dt_spec_dtype(dt_tensor_spec(x)) : DT_F64;
    size_t size = dt_dtype_bytes(dtype);
    char *raw = malloc((size_t)n * size + 1);
    bool told = x && raw && numbers && dt_tensor_to_host(x, -1, raw, (size_t)n * size) == DT_OK;
    for (int64_t e = 0; e < n && told; e++) numbers[e] = dti_number_get(dtype, raw + e * (int64_t)size);
    free(raw);
    return numbers;
}

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

typedef struct work {
    dt_mesh *mesh;
    const gradient_call *g;
    uint64_t signs;                    /* which seed; 0: the call's own                                            */
    double jitter;                     /* values are moved a little, each by another step of it                    */
    int nudged;                        /* an operand, one of whose elements                                        */
    int64_t element;                   /* is moved                                                                 */
    double nudge;                      /* by this                                                                  */
} work;

static double *values_of(const work *w, int i)
{
    const op_call *call = w->g->call;
    int64_t n = call_count(call, i);
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    for (int64_t e = 0; e < n && values; e++) {
        values[e] = call->values[i][e];
        if (has_gradient(call, i)) values[e] += w->jitter * (double)(1 + e * 7919 % 1009);
        if (w->nudged == i && w->element == e) values[e] += w->nudge;
    }
    return values;
}

/* The first result; NULL: the error. x: the operands, leaves where *leaves*. */
static dt_tensor *apply(const work *w, bool leaves, dt_tensor **x)
{
    const op_call *call = w->g->call;
    dt_tensor *y[CALL_RESULTS] = { NULL };
    for (int i = 0; i < call->n; i++) {
        dti_form form = call->form[i];
        if (!form.dtype) continue;
        double *values = values_of(w, i);
        x[i] = values ? of_numbers(dti_spec_intern(w->mesh, &form), values, call_count(call, i)) : NULL;
        if (leaves && has_gradient(call, i)) dt_require_grad(x[i]);
        free(values);
    }
    dt_apply_all(call->op, x, call->n, call->attributes, y, call->result_count);
    return y[0];
}

static dt_tensor *seed_of(const gradient_call *g, const dt_spec *spec, uint64_t signs)
{
    int64_t n = g->call->result[0].count;
    double *seed = malloc(((size_t)n + 1) * sizeof *seed);
    for (int64_t e = 0; e < n && seed; e++)
        seed[e] = signs && dti_hash_mix(signs, (uint64_t)e) % 2 ? -g->seed[e] : g->seed[e];
    dt_tensor *x = seed ? of_numbers(spec, seed, n) : NULL;
    free(seed);
    return x;
}

/* Gradients under a seed; false: the error. */
static bool differentiate(const work *w, double **grad)
{
    dt_tensor *x[CALL_OPERANDS] = { NULL }, *y = apply(w, true, x);
    if (!y || dt_backward(y, seed_of(w->g, dt_tensor_spec(y), w->signs))) return false;
    for (int i = 0; i < w->g->call->n; i++)
        if (has_gradient(w->g->call, i)) grad[i] = numbers_of(dt_grad(x[i]), call_count(w->g->call, i));
    return true;
}

static void free_all(double **numbers)
{
    for (int i = 0; i < CALL_OPERANDS; i++) free(numbers[i]);
}

static bool is_polynomial(const dt_op *op) { return op->polynomial && strncmp(op->polynomial, "none", 4) != 0; }

/* false: it failed. */
static bool measure(work *w, gradient_call *g)
{
    double root = sqrt((double)g->call->result[0].count);
    for (w->signs = 0; w->signs <= SIGNS; w->signs++) {
        double *grad[CALL_OPERANDS] = { NULL };
        int scope = dt_scope_push(w->mesh->ctx, 0);
        bool done = differentiate(w, grad);
        dt_scope_pop(w->mesh->ctx, scope, NULL);
        for (int i = 0; i < g->call->n && done; i++) {
            if (!grad[i]) continue;
            int64_t n = call_count(g->call, i);
            if (!g->magnitude[i]) g->magnitude[i] = calloc((size_t)n + 1, sizeof *g->magnitude[i]);
            for (int64_t e = 0; e < n; e++) {
                g->magnitude[i][e] = fmax(g->magnitude[i][e], root * fabs(grad[i][e]));
                g->most[i] = fmax(g->most[i], 1 + g->magnitude[i][e]);
            }
            if (w->signs) continue;
            g->grad[i] = grad[i];
            grad[i] = NULL;
        }
        free_all(grad);
        if (!done) return false;
    }
    return true;
}

static dt_status make(dt_context *ctx, void *arg)
{
    gradient_calls *all = arg;
    for (int c = 0; c < all->count; c++) {
        gradient_call *g = &all->at[c];
        work w = { .mesh = dt_mesh_create(ctx, "x"), .g = g, .nudged = -1 };
        char text[TEXT];
        if (!expect(measure(&w, g), "%s: %s", call_text(g->call, NULL, text, sizeof text), dt_context_error(ctx)))
            break;
    }
    return dt_context_status(ctx);
}

static bool is_f64(const op_call *call)
{
    bool is = call->result[0].dtype == DT_F64;
    for (int i = 0; i < call->n; i++) is &= !has_gradient(call, i) || call->form[i].dtype == DT_F64;
    return is;
}

static bool can_be_differentiated(const op_call *call)
{
    bool any = false;
    for (int i = 0; i < call->n; i++) any |= has_gradient(call, i);
    return any && call->kind != VALUES_SPECIAL && call->result[0].dtype <= DT_F16;
}

static void add_call(gradient_calls *all, const op_call *call)
{
    gradient_call *g = &all->at[all->count++];
    g->call = call;
    g->seed = malloc(((size_t)call->result[0].count + 1) * sizeof *g->seed);
    for (int64_t e = 0; e < call->result[0].count && g->seed; e++)
        g->seed[e] = value_draw(VALUES_EXACT, DT_F64, (value_range){ 0 }, call_seed(call, 7, e));
}

/* Half of them in f64, which alone is held against differences. */
gradient_calls gradients_make(const dt_op *op, int wanted)
{
    gradient_calls all = { .calls = calls_make(op, 4 * wanted) };
    char error[512] = "";
    all.at = calloc((size_t)all.calls.count + 1, sizeof *all.at);
    for (int exact = 1; exact >= 0; exact--)
        for (int c = 0; c < all.calls.count && all.at && all.count < (exact ? wanted / 2 : wanted); c++) {
            const op_call *call = &all.calls.call[c];
            if (can_be_differentiated(call) && is_f64(call) == exact) add_call(&all, call);
        }
    if (!expect(dt_launch_threads(1, make, &all, error, sizeof error) == DT_OK, "%s: %s", op->head, error))
        all.count = 0;
    return all;
}

void gradients_free(gradient_calls *calls)
{
    for (int c = 0; c < calls->count; c++) {
        free(calls->at[c].seed);
        free_all(calls->at[c].grad);
        free_all(calls->at[c].magnitude);
    }
    free(calls->at);
    calls_free(&calls->calls);
}

/* ---- against differences ----------------------------------------------------------------------------------------- */

static const double STEP = 1e-5, JITTER = 1e-4;

/* The first result of a call that is changed a little. */
static double *nudged(work *w, int operand, int64_t element, double nudge)
{
    dt_tensor *x[CALL_OPERANDS] = { NULL };
    int scope = dt_scope_push(w->mesh->ctx, 0);
    w->nudged = operand;
    w->element = element;
    w->nudge = nudge;
    double *y = numbers_of(apply(w, false, x), w->g->call->result[0].count);
    dt_scope_pop(w->mesh->ctx, scope, NULL);
    return y;
}

static double slope(work *w, int operand, int64_t element)
{
    double *up = nudged(w, operand, element, STEP), *down = nudged(w, operand, element, -STEP), sum = 0;
    for (int64_t e = 0; e < w->g->call->result[0].count; e++)
        if (up[e] != down[e]) sum += w->g->seed[e] * ((up[e] - down[e]) / (2 * STEP));
    free(up);
    free(down);
    w->nudged = -1;
    return sum;
}

static int64_t differ(work *w)
{
    const op_call *call = w->g->call;
    double *grad[CALL_OPERANDS] = { NULL };
    int64_t compared = 0;
    char text[TEXT];
    int scope = dt_scope_push(w->mesh->ctx, 0);
    bool done = differentiate(w, grad);
    dt_scope_pop(w->mesh->ctx, scope, NULL);
    for (int i = 0; i < call->n && done; i++) {
        int64_t n = grad[i] ? call_count(call, i) : 0;
        for (int k = 0; k < SLOPES && k < n; k++) {
            int64_t e = n <= SLOPES ? k : (int64_t)(dti_hash_mix((uint64_t)k + 1, (uint64_t)n) % (uint64_t)n);
            double due = slope(w, i, e);
            if (!isfinite(due)) continue;
            compared++;
            expect(fabs(due - grad[i][e]) <= 1e-6 * (1 + fabs(due)), "%s: operand %d, element %lld: %.9g, by "
                   "differences %.9g", call_text(call, NULL, text, sizeof text), i, (long long)e, grad[i][e], due);
        }
    }
    free_all(grad);
    return compared;
}

typedef struct differing { const gradient_calls *all; int64_t compared; } differing;

static dt_status differ_all(dt_context *ctx, void *arg)
{
    differing *d = arg;
    for (int c = 0; c < d->all->count; c++) {
        work w = { .mesh = dt_mesh_create(ctx, "x"), .g = &d->all->at[c], .nudged = -1, .jitter = JITTER };
        if (is_f64(w.g->call)) d->compared += differ(&w);
    }
    return dt_context_status(ctx);
}

int64_t gradients_differ(const gradient_calls *calls)
{
    differing d = { .all = calls };
    char error[512] = "";
    expect(dt_launch_threads(1, differ_all, &d, error, sizeof error) == DT_OK, "%s", error);
    return d.compared;
}

/* ---- on a mesh --------------------------------------------------------------------------------------------------- */

typedef struct placed_gradient { const gradient_call *g; placed at; } placed_gradient;

typedef struct job {
    const char *mesh;
    int ranks, count, room;
    placed_gradient *at;
    atomic_int failures;
    judge_count counted;               /* by rank 0                                                                */
} job;

static void DT_PRINTF(3, 4) wrong(job *j, const placed_gradient *p, const char *format, ...)
{
    const char *specs[CALL_OPERANDS];
    char text[TEXT], what[TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (int i = 0; i < CALL_OPERANDS; i++) specs[i] = p->at.spec[i];
    if (atomic_fetch_add(&j->failures, 1) < MOST_FAILURES)
        expect(false, "%s on %s: %s", call_text(p->g->call, specs, text, sizeof text), j->mesh, what);
}

static bool can_be(dt_mesh *mesh, const op_call *call, const placed *at)
{
    for (int i = 0; i < call->n; i++)
        if (at->spec[i][0] && !operand_can_be(call, dt_spec_parse(mesh, at->spec[i]))) return false;
    return true;
}

static void place(job *j, const gradient_calls *calls, const judge_effort *effort)
{
    dt_context *ctx = dt_context_dry(j->ranks);
    dt_mesh *mesh = dt_mesh_create(ctx, j->mesh);
    for (int c = 0; c < calls->count; c++) {
        placed_list list = { 0 };
        placed_call(calls->at[c].call, mesh, effort, calls->count, &list);
        placed_gradient *at = realloc(j->at, (size_t)(j->count + list.count + 1) * sizeof *at);
        if (expect(at != NULL, "memory")) j->at = at;
        for (int k = 0; k < list.count && at; k++)
            if (can_be(mesh, calls->at[c].call, &list.at[k]))
                j->at[j->count++] = (placed_gradient){ &calls->at[c], list.at[k] };
        placed_free(&list);
    }
    dt_context_destroy(&ctx);
}

typedef struct comparing {
    job *j;
    const placed_gradient *p;
    const dt_spec *spec;
    const char *part;
    int operand;
    bool summed, padded, told;         /* told: one element of a gradient is enough                                */
} comparing;

static double magnitude(const comparing *c, int64_t e)
{
    const gradient_call *g = c->p->g;
    if (c->padded) return (1 + VALUE_PAD) * g->most[c->operand];
    return is_polynomial(g->call->op) ? g->magnitude[c->operand][e] : g->most[c->operand];
}

static void compare_run(const dti_part_run *run, void *arg)
{
    static const double eps[DT_DTYPE_COUNT] = { [DT_F64] = 0x1p-52, [DT_F32] = 0x1p-23, [DT_BF16] = 0x1p-7,
                                                [DT_F16] = 0x1p-10 };
    comparing *c = arg;
    const gradient_call *g = c->p->g;
    dt_dtype dtype = dt_spec_dtype(c->spec);
    for (int64_t k = 0; k < run->count && !c->told; k++) {
        int64_t e = run->global + k;
        double got = dti_number_get(dtype, c->part + (run->local + k) * (int64_t)dt_dtype_bytes(dtype));
        double due = g->grad[c->operand][e], room = c->summed ? 4 * eps[dtype] * magnitude(c, e) : 0;
        if (got == due || (isnan(got) && isnan(due)) || fabs(got - due) <= room) continue;
        c->told = true;
        wrong(c->j, c->p, "rank %d, gradient of operand %d, %s, element %lld: got %.17g, expected %.17g %s",
              c->spec->mesh->rank, c->operand, dt_spec_text(c->spec), (long long)e, got, due,
              c->summed ? "about" : "exactly");
    }
}

/* Where the operand is S, so is its gradient. A partial one is brought together, and all ranks look at all of it. */
static void compare(comparing *c, const dt_spec *in, dt_tensor *grad)
{
    const dt_mesh *mesh = in->mesh;
    int64_t n = call_count(c->p->g->call, c->operand);
    c->spec = dt_tensor_spec(grad);
    for (int m = 0; m < mesh->dim_count; m++)
        if (dti_form_place(&in->form, m) == DTI_PLACE_S && dti_form_place(&c->spec->form, m) != DTI_PLACE_S)
            wrong(c->j, c->p, "the gradient of operand %d is %s", c->operand, dt_spec_text(c->spec));
    if (!c->spec->layout->partial_count) {
        c->part = dt_tensor_data(grad);
        dti_part_runs(c->spec, mesh->rank, compare_run, c);
        return;
    }
    size_t bytes = (size_t)n * dt_dtype_bytes(dt_spec_dtype(c->spec));
    char *whole = malloc(bytes + 1);
    c->part = whole;
    if (whole && dt_tensor_to_host(grad, -1, whole, bytes) == DT_OK) compare_run(&(dti_part_run){ 0, 0, n }, c);
    free(whole);
}

static int64_t sums(const dt_mesh *mesh)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    return now.calls[DT_COMM_ALL_REDUCE] + now.calls[DT_COMM_REDUCE_SCATTER];
}

/* A gradient that is P and becomes another S is summed by an exchange. */
static int64_t moves(const dt_mesh *mesh)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t calls = 0;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) calls += k == DT_COMM_LOCAL ? 0 : now.calls[k];
    return calls;
}

static bool is_partial(dt_tensor *x) { return x && dt_tensor_spec(x)->layout->partial_count; }

static void compare_all(dt_mesh *mesh, job *j, const placed_gradient *p, dt_tensor *const *x, bool summed)
{
    const op_call *call = p->g->call;
    bool padded = false;
    for (int i = 0; i < call->n; i++) padded |= is_partial(x[i]);
    for (int i = 0; i < call->n; i++) summed |= padded || (has_gradient(call, i) && is_partial(dt_grad(x[i])));
    if (dt_mesh_coord(mesh, NULL) == 0) {
        j->counted.cases++;
        j->counted.summed += summed;
    }
    for (int i = 0; i < call->n; i++) {
        if (!has_gradient(call, i)) continue;
        comparing c = { .j = j, .p = p, .operand = i, .summed = summed, .padded = padded };
        dt_tensor *grad = dt_grad(x[i]);
        if (!grad) grad = dt_zeros(dti_spec_summed(dt_tensor_spec(x[i])));
        compare(&c, dt_tensor_spec(x[i]), grad);
    }
}

/* The seed lies now whole, now as the result. */
static bool run_case(dt_context *ctx, dt_mesh *mesh, job *j, int number)
{
    const placed_gradient *p = &j->at[number];
    const op_call *call = p->g->call;
    dt_tensor *x[CALL_OPERANDS] = { NULL }, *y[CALL_RESULTS] = { NULL };
    int scope = dt_scope_push(ctx, 0);
    for (int i = 0; i < call->n; i++) {
        x[i] = operand_make(mesh, call, i, p->at.spec[i]);
        if (has_gradient(call, i)) dt_require_grad(x[i]);
    }
    int64_t before = sums(mesh);
    dt_apply_all(call->op, x, call->n, call->attributes, y, call->result_count);
    bool split = sums(mesh) != before || is_partial(y[0]);
    const dt_spec *summed = y[0] ? dti_spec_summed(dt_tensor_spec(y[0])) : NULL;
    dt_tensor *seed = summed ? seed_of(p->g, number % 2 ? summed : dt_spec_replace(summed, ""), 0) : NULL;
    before = moves(mesh);
    if (seed && dt_backward(y[0], seed) == DT_OK) compare_all(mesh, j, p, x, split || moves(mesh) != before);
    else wrong(j, p, "%s", dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx) == DT_OK;
}

static dt_status run_cases(dt_context *ctx, void *arg)
{
    job *j = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, j->mesh);
    for (int i = 0; i < j->count; i++)
        if (!run_case(ctx, mesh, j, i)) break;
    return dt_context_status(ctx);
}

judge_count gradients_judge(const gradient_calls *calls, const char *mesh, const judge_effort *effort)
{
    job j = { .mesh = mesh, .ranks = judge_ranks(mesh) };
    char error[512] = "";
    place(&j, calls, effort);
    expect(dt_launch_threads(j.ranks, run_cases, &j, error, sizeof error) == DT_OK, "%s: %s", mesh, error);
    free(j.at);
    return j.counted;
}
