/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises are made on a dry context: specs of the results, bytes that each rank receives, whether a strict scope lets
 * the call pass. Thread ranks, started once per mesh, make their parts of the operands by themselves, call, and look at
 * their parts of the results. What ranks must agree on is logged and compared when they have ended, so that nothing
 * here makes them wait.
 *
 * A result is due bit for bit, NaN for NaN, unless a sum was split: then within 4 eps of its magnitude. What cannot
 * be judged (operands.h) is left out. */
#include "judge.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "core/number.h"
#include "operands.h"
#include "ops/dispatch.h"
#include "suite.h"
#include "tensor/tensor.h"
#include "walk.h"

enum {
    RANKS = 6, TEXT = 640, MOST_FAILURES = 5,
    ASKED = 8,                         /* of so many cases one is asked for otherwise, too                         */
    FIRST = 16                         /* calls go through all profiles of shapes, where they are twins, too       */
};

typedef struct promise {
    const op_call *call;
    placed at;
    char result[CALL_RESULTS][PLACED_TEXT];
    int moves, implied;                /* operands that are redistributed for more than 0 bytes; and statistics    */
    bool summed, padded;               /* padded: contributions may be larger than the value                       */
    bool decomposed;                   /* made of other ops, which sum what was split                              */
    int64_t received[RANKS], total;    /* bytes, by the plans                                                      */
} promise;

typedef struct seen { int64_t received; uint64_t hash[CALL_RESULTS]; } seen; /* by one rank of one case            */

typedef struct job {
    const char *mesh;
    int ranks, count, room, reached;   /* reached: the case rank 0 was at                                          */
    dt_mesh *dry[RANKS];               /* by rank, of contexts without data                                        */
    promise *at;
    seen *seen[RANKS];
    atomic_int *failures;              /* told so far                                                              */
    judge_count counted;
} job;

/* A failure, unless there were many. */
static void complain(job *j, const promise *p, const char *what)
{
    const char *specs[CALL_OPERANDS];
    char text[TEXT];
    for (int i = 0; i < CALL_OPERANDS; i++) specs[i] = p->at.spec[i];
    if (atomic_fetch_add(j->failures, 1) < MOST_FAILURES)
        expect(false, "%s on %s: %s", call_text(p->call, specs, text, sizeof text), j->mesh, what);
}

static void DT_PRINTF(3, 4) wrong(job *j, const promise *p, const char *format, ...)
{
    char what[TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    complain(j, p, what);
}

/* ---- promises ---------------------------------------------------------------------------------------------------- */

typedef struct promising {             /* large, so made once                                                      */
    dti_attributes attributes;
    dti_asking asking;
    dti_propagation propagation;
} promising;

static bool propagate(dt_mesh *mesh, const promise *p, const dt_spec **specs, promising *s)
{
    dt_shape scalar = DT_SCALAR;
    for (int i = 0; i < p->call->n; i++) specs[i] = p->at.spec[i][0] ? dt_spec_parse(mesh, p->at.spec[i]) : NULL;
    return dti_attributes_read(mesh->ctx, p->call->op, p->call->attributes, specs[0] ? &specs[0]->shape : &scalar,
                               &s->attributes)
        && dti_row_ask(mesh->ctx, p->call->op, specs, p->call->n, &s->attributes, &s->asking)
        && dti_propagate(mesh->ctx, &s->asking.ask, 1, &s->propagation);
}

static int64_t plan_move(promise *p, const dt_spec *from, const dt_spec *to, int ranks)
{
    const dt_plan *plan = from == to ? NULL : dt_plan_create(from, to, DT_PLAN_TIME);
    for (int rank = 0; rank < ranks && plan; rank++) p->received[rank] += dt_plan_received(plan, rank);
    return dt_plan_price(plan).total;
}

static void plan_operands(promise *p, const dti_dispatch *d, int ranks)
{
    for (int i = 0; i < d->n; i++) {
        int64_t total = 0;
        if (!d->in[i]) continue;
        total += plan_move(p, d->in[i], d->via[i], ranks);
        total += plan_move(p, d->via[i], d->used[i], ranks);
        p->total += total;
        p->moves += total > 0;
    }
    for (int r = 0; r < d->result_count; r++)                          /* the op's own: not implied, not refused   */
        for (int rank = 0; rank < ranks && d->pull[r]; rank++)
            p->received[rank] += dt_plan_received(d->pull[r], rank);
}

static int64_t received(const dt_counters *counters)
{
    int64_t bytes = 0;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) bytes += counters->bytes[k];
    return bytes;
}

static dt_status apply_dry(const promise *p, const dt_spec *const *specs, dt_tensor **y)
{
    dt_tensor *x[CALL_OPERANDS];
    for (int i = 0; i < p->call->n; i++) x[i] = specs[i] ? dt_zeros(specs[i]) : NULL;
    return dt_apply_all(p->call->op, x, p->call->n, p->call->attributes, y, p->call->result_count);
}

/* What a rank does in a call that is made of others. */
static void call_decomposed(job *j, promise *p, int rank)
{
    dt_mesh *mesh = j->dry[rank];
    const dt_spec *specs[CALL_OPERANDS];
    dt_tensor *y[CALL_RESULTS];
    int scope = dt_scope_push(mesh->ctx, 0);
    for (int i = 0; i < p->call->n; i++) specs[i] = p->at.spec[i][0] ? dt_spec_parse(mesh, p->at.spec[i]) : NULL;
    dt_counters before = dt_mesh_counters(mesh, NULL);
    if (apply_dry(p, specs, y) != DT_OK) wrong(j, p, "rank %d, dry: %s", rank, dt_context_error(mesh->ctx));
    dt_counters after = dt_mesh_counters(mesh, NULL);
    dt_context_clear(mesh->ctx);
    dt_scope_pop(mesh->ctx, scope, NULL);
    p->received[rank] = received(&after) - received(&before);
    p->implied = (int)(after.implied - before.implied);
}

/* What is remembered is what propagation says, and results are specs that can be written. */
static bool is_kept(const dti_dispatch *d, const dti_answer *answer)
{
    bool kept = memcmp(d->used, answer->used, (size_t)d->n * sizeof *d->used) == 0;
    for (int r = 0; r < d->result_count; r++)
        kept &= d->result[r] == answer->result[r]
             && dt_spec_parse(d->result[r]->mesh, dt_spec_text(d->result[r])) == d->result[r];
    return kept;
}

/* What propagation says. false: not a case for these values. */
static bool promise_answer(job *j, promise *p, const dt_spec *const *specs, const dti_answer *answer,
                           const dti_dispatch *d)
{
    for (int i = 0; i < p->call->n; i++) {
        if (!specs[i]) continue;
        p->padded |= operand_sums(specs[i]);
        p->summed |= operand_sums(answer->used[i]);
    }
    plan_operands(p, d, j->ranks);
    p->implied = p->moves;
    p->decomposed = d->whole != NULL;
    for (int rank = 0; rank < j->ranks && p->decomposed; rank++) call_decomposed(j, p, rank);
    p->summed |= p->decomposed;
    for (int r = 0; r < p->call->result_count; r++) {
        p->summed |= operand_sums(answer->result[r]);
        snprintf(p->result[r], PLACED_TEXT, "%s", dt_spec_text(answer->result[r]));
    }
    if (p->at.free && p->total && !p->call->op->writes)
        wrong(j, p, "strategies along each dim, and yet something moves");
    return operands_can_be(p->call, specs, answer->used, answer->result);
}

/* Calls without data give the same specs, and in a strict scope an error exactly where bytes would move. */
static void call_dry(job *j, dt_context *ctx, const promise *p, const dt_spec *const *specs)
{
    dt_tensor *y[CALL_RESULTS];
    int scope = dt_scope_push(ctx, 0);
    if (apply_dry(p, specs, y) != DT_OK) wrong(j, p, "dry: %s", dt_context_error(ctx));
    else
        for (int r = 0; r < p->call->result_count; r++)
            if (strcmp(dt_spec_text(dt_tensor_spec(y[r])), p->result[r]) != 0)
                wrong(j, p, "dry: result %s, promised %s", dt_spec_text(dt_tensor_spec(y[r])), p->result[r]);
    dt_context_clear(ctx);
    dt_scope_pop(ctx, scope, NULL);
    scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    dt_status status = apply_dry(p, specs, y), due = p->total ? DT_ERR_PLACEMENT : DT_OK;
    if (status != due)
        wrong(j, p, "strict: status %d, expected %d, %lld bytes move (%s)", (int)status, (int)due, (long long)p->total,
              dt_context_error(ctx));
    dt_context_clear(ctx);
    dt_scope_pop(ctx, scope, NULL);
}

static promise *new_promise(job *j)
{
    if (j->count == j->room) {
        int room = j->room ? 2 * j->room : 256;
        promise *at = realloc(j->at, (size_t)room * sizeof *at);
        if (!expect(at != NULL, "memory")) return NULL;
        j->at = at;
        j->room = room;
    }
    memset(&j->at[j->count], 0, sizeof *j->at);
    return &j->at[j->count];
}

/* What is written stays where it lies, and may be such that it cannot. */
static bool is_refused(dt_context *ctx, const op_call *call)
{
    bool refused = call->op->writes && dt_context_status(ctx) == DT_ERR_PLACEMENT;
    if (refused) dt_context_clear(ctx);
    return refused;
}

static void make_promise(job *j, dt_mesh *mesh, const op_call *call, const placed *at, promising *s)
{
    const dt_spec *specs[CALL_OPERANDS];
    const dti_dispatch *d = NULL;
    promise *p = new_promise(j);
    if (!p) return;
    p->call = call;
    p->at = *at;
    if (propagate(mesh, p, specs, s)) d = dti_dispatch_get(mesh->ctx, call->op, specs, call->n, &s->attributes);
    if (is_refused(mesh->ctx, call)) return;
    if (!d) wrong(j, p, "propagation: %s", dt_context_error(mesh->ctx));
    else if (!is_kept(d, &s->propagation.answer[0]))
        wrong(j, p, "remembered otherwise, or no spec: %s", dt_spec_text(d->result[0]));
    else if (promise_answer(j, p, specs, &s->propagation.answer[0], d)) {
        call_dry(j, mesh->ctx, p, specs);
        j->count++;
    }
    if (dt_context_status(mesh->ctx)) wrong(j, p, "plans: %s", dt_context_error(mesh->ctx));
    dt_context_clear(mesh->ctx);
}

/* What is written is placed alike, or it would be refused. */
static void place_written(const op_call *call, placed_list *list)
{
    char spec[PLACED_TEXT];
    for (int k = 0; k < list->count; k++)
        for (int i = 1; i < call->op->writes; i++) {
            const char *first = strchr(list->at[k].spec[0], '[');
            snprintf(spec, sizeof spec, "%s%s", dt_dtype_text(call->form[i].dtype), first ? first : "");
            memcpy(list->at[k].spec[i], spec, sizeof spec);
        }
}

/* ---- by several threads, each with contexts of its own ----------------------------------------------------------- */

typedef struct office {
    const op_calls *calls;
    const judge_effort *effort;
    job *job, *of;                     /* what all is for; by call, what was promised for it                       */
    atomic_int next;                   /* call that nobody has taken                                               */
} office;

typedef struct desk { job dry; dt_context *ctx; dt_mesh *mesh; promising *s; placed_list list; } desk;

/* Do two calls differ in values alone? Then whatever is propagated is the same. */
static bool are_twins(desk *k, const op_call *a, const op_call *b)
{
    dti_attributes read[2];
    const op_call *call[] = { a, b };
    if (a->n != b->n || a->kind != b->kind || memcmp(a->form, b->form, sizeof a->form) != 0) return false;
    for (int i = 0; i < 2; i++) {
        dti_form form = call[i]->form[0];
        dt_shape scalar = DT_SCALAR;
        const dt_spec *first = call[i]->n && form.dtype ? dti_spec_intern(k->mesh, &form) : NULL;
        if (!dti_attributes_read(k->ctx, a->op, call[i]->attributes, first ? &first->shape : &scalar, &read[i]))
            return dt_context_clear(k->ctx), false;
    }
    return read[0].bytes == read[1].bytes && memcmp(read[0].key, read[1].key, read[0].bytes) == 0;
}

/* Where a call's operands are to lie; returns from among how many combinations that was chosen. */
static int64_t choose(desk *k, const office *o, const op_call *call)
{
    bool first = call - o->calls->call < FIRST;
    int64_t walked = 0;
    k->list.count = 0;
    if (o->effort->walk && k->mesh->dim_count == 1 && walk_size(call, k->mesh) > o->effort->combinations) {
        walked = walk_call(call, k->mesh, first, &k->list);
        placed_draws(call, k->mesh, o->effort->draws / o->calls->count + 1, call_seed(call, 1, 0), &k->list);
    } else placed_call(call, k->mesh, o->effort, o->calls->count, &k->list);
    place_written(call, &k->list);
    return walked > k->list.count ? walked : k->list.count;
}

static void promise_call(desk *k, const office *o, const op_call *call, int64_t walked)
{
    job *of = &o->of[call - o->calls->call];
    *of = k->dry;
    of->counted.walked = walked;
    for (int i = 0; i < k->list.count; i++) make_promise(of, k->mesh, call, &k->list.at[i], k->s);
}

static void *work(void *arg)
{
    office *o = arg;
    const op_calls *calls = o->calls;
    desk k = { .dry = { .mesh = o->job->mesh, .ranks = o->job->ranks, .failures = o->job->failures },
               .ctx = dt_context_dry(o->job->ranks), .s = malloc(sizeof *k.s) };
    k.mesh = dt_mesh_create(k.ctx, o->job->mesh);
    for (int rank = 0; rank < k.dry.ranks; rank++)
        k.dry.dry[rank] = dt_mesh_create(dti_context_new(rank, k.dry.ranks, true), k.dry.mesh);
    for (int c; k.s && (c = atomic_fetch_add(&o->next, 1)) < calls->count;) {
        const op_call *call = &calls->call[c];
        if (c > 0 && are_twins(&k, call, call - 1)) continue;
        int64_t walked = choose(&k, o, call);
        do promise_call(&k, o, call, walked);
        while (++call < calls->call + calls->count && are_twins(&k, call, call - 1));
    }
    for (int rank = 0; rank < k.dry.ranks; rank++) {
        dt_context *dry = k.dry.dry[rank]->ctx;
        dt_context_destroy(&dry);
    }
    placed_free(&k.list);
    free(k.s);
    dt_context_destroy(&k.ctx);
    return NULL;
}

/* What was promised for each call, one after the other. */
static void gather(job *j, const office *o)
{
    for (int c = 0; c < o->calls->count; c++) j->count += o->of[c].count;
    j->at = malloc(((size_t)j->count + 1) * sizeof *j->at);
    j->count = 0;
    for (int c = 0; c < o->calls->count; c++) {
        const job *of = &o->of[c];
        for (int i = 0; i < of->count && j->at; i++) j->at[j->count++] = of->at[i];
        j->counted.walked += of->counted.walked;
        free(of->at);
    }
}

static void make_promises(job *j, const op_calls *calls, const judge_effort *effort)
{
    enum { MOST_THREADS = 8 };
    pthread_t thread[MOST_THREADS];
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = 0;
    office o = { .calls = calls, .effort = effort, .job = j, .of = calloc((size_t)calls->count + 1, sizeof *o.of) };
    if (!expect(o.of != NULL, "memory")) return;
    while (threads < MOST_THREADS && threads < cores - 1
           && pthread_create(&thread[threads], NULL, work, &o) == 0) threads++;
    work(&o);
    while (threads > 0) pthread_join(thread[--threads], NULL);
    gather(j, &o);
    free(o.of);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static double epsilon(dt_dtype dtype)
{
    static const double of[DT_DTYPE_COUNT] = { [DT_F64] = 0x1p-52, [DT_F32] = 0x1p-23, [DT_BF16] = 0x1p-7,
                                               [DT_F16] = 0x1p-10 };
    return of[dtype];
}

typedef struct comparing {
    job *j;
    const promise *p;
    const call_result *due;
    const char *part;
    int rank;
    bool told;                         /* one element of a case is enough                                          */
} comparing;

static bool agrees(const comparing *c, const void *got, const void *due, int64_t e)
{
    double a = dti_number_get(c->due->dtype, got), b = dti_number_get(c->due->dtype, due);
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (!c->p->summed || c->due->dtype >= DT_I64) return memcmp(got, due, dt_dtype_bytes(c->due->dtype)) == 0;
    return a == b || fabs(a - b) <= 4 * epsilon(c->due->dtype) * c->due->magnitude[c->p->padded][e];
}

static void compare_run(const dti_part_run *run, void *arg)
{
    comparing *c = arg;
    int64_t size = (int64_t)dt_dtype_bytes(c->due->dtype);
    for (int64_t k = 0; k < run->count && !c->told; k++) {
        int64_t e = run->global + k;
        const char *got = c->part + (run->local + k) * size, *due = (const char *)c->due->values + e * size;
        if (agrees(c, got, due, e)) continue;
        c->told = true;
        wrong(c->j, c->p, "rank %d, element %lld of %s: got %.17g, expected %.17g %s", c->rank, (long long)e,
              c->p->result[c->due - c->p->call->result], dti_number_get(c->due->dtype, got),
              dti_number_get(c->due->dtype, due), c->p->summed ? "about" : "exactly");
    }
}

/* A partial result is brought together, and all ranks look at all of it; else each at its own part. */
static void judge_result(comparing *c, dt_tensor *y)
{
    const dt_spec *spec = dt_tensor_spec(y);
    size_t bytes = (size_t)c->due->count * dt_dtype_bytes(c->due->dtype);
    if (!spec->layout->partial_count) {
        c->part = dt_tensor_data(y);
        dti_part_runs(spec, spec->mesh->rank, compare_run, c);
        return;
    }
    char *whole = malloc(bytes + 1);
    c->part = whole;
    if (whole && dt_tensor_to_host(y, -1, whole, bytes) == DT_OK)
        compare_run(&(dti_part_run){ 0, 0, c->due->count }, c);
    free(whole);
}

static uint64_t hash_of(const dt_tensor *y)
{
    return y->storage ? dti_hash(y->storage->bytes, y->storage->n, 1) : 0;
}

/* The same call, its first result asked to be split along x in one dim or the other. */
static void judge_asked(comparing *c, dt_tensor *const *x, const dt_spec *result, int number)
{
    char placements[32];
    const op_call *call = c->p->call;
    if (result->shape.n == 0 || call->op->writes) return; /* what was written has its place, and another value now */
    snprintf(placements, sizeof placements, "x:S(%d),*", number % result->shape.n);
    dt_tensor *y = dt_apply_placed(call->op, x, call->n, call->attributes, placements);
    const dt_spec *due = dt_spec_replace(result, placements);
    if (!y || dt_tensor_spec(y) != due)
        wrong(c->j, c->p, "asked for %s: %s", due ? dt_spec_text(due) : placements,
              y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(result->mesh->ctx));
    else judge_result(c, y);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static void run_case(dt_context *ctx, dt_mesh *mesh, job *j, int number)
{
    const promise *p = &j->at[number];
    seen *log = &j->seen[dt_rank(ctx)][number];
    dt_tensor *x[CALL_OPERANDS], *y[CALL_RESULTS] = { NULL };
    int scope = dt_scope_push(ctx, p->total ? 0 : DT_SCOPE_STRICT);
    for (int i = 0; i < p->call->n; i++) x[i] = operand_make(mesh, p->call, i, p->at.spec[i]);
    dt_counters before = dt_mesh_counters(mesh, NULL);
    dt_status status = dt_apply_all(p->call->op, x, p->call->n, p->call->attributes, y, p->call->result_count);
    dt_counters after = dt_mesh_counters(mesh, NULL);
    log->received = received(&after) - received(&before);
    if (status == DT_OK && after.implied - before.implied != p->implied)
        wrong(j, p, "rank %d: %lld implied redistributions, planned %d", dt_rank(ctx),
              (long long)(after.implied - before.implied), p->implied);
    for (int r = 0; r < p->call->result_count && status == DT_OK; r++) {
        comparing c = { .j = j, .p = p, .due = &p->call->result[r], .rank = dt_rank(ctx) };
        log->hash[r] = hash_of(y[r]);
        if (strcmp(dt_spec_text(dt_tensor_spec(y[r])), p->result[r]) != 0)
            wrong(j, p, "result %s, promised %s", dt_spec_text(dt_tensor_spec(y[r])), p->result[r]);
        else judge_result(&c, y[r]);
        if (r == 0 && number % ASKED == 0) judge_asked(&c, x, dt_tensor_spec(y[0]), number / ASKED);
    }
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status run_cases(dt_context *ctx, void *arg)
{
    job *j = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, j->mesh);
    for (int i = 0; i < j->count && dt_context_status(ctx) == DT_OK; i++) {
        if (dt_rank(ctx) == 0) j->reached = i;
        run_case(ctx, mesh, j, i);
    }
    return dt_context_status(ctx);
}

/* ---- what ranks saw ---------------------------------------------------------------------------------------------- */

/* The first rank that holds the same part of a result. */
static int leader_of(const dt_spec *spec, int rank)
{
    int leader = 0;
    for (int m = 0; m < spec->mesh->dim_count; m++)
        leader = leader * spec->mesh->dims[m].size
               + (dti_form_place(&spec->form, m) != DTI_PLACE_R ? dti_mesh_coord_of(spec->mesh, m, rank) : 0);
    return leader;
}

static void compare_ranks(job *j, dt_mesh *mesh, int number)
{
    const promise *p = &j->at[number];
    for (int rank = 0; rank < j->ranks; rank++) {
        if (j->seen[rank][number].received != p->received[rank])
            wrong(j, p, "rank %d received %lld bytes, planned %lld", rank, (long long)j->seen[rank][number].received,
                  (long long)p->received[rank]);
        for (int r = 0; r < p->call->result_count; r++) {
            int leader = leader_of(dt_spec_parse(mesh, p->result[r]), rank);
            if (j->seen[rank][number].hash[r] != j->seen[leader][number].hash[r])
                wrong(j, p, "ranks %d and %d hold different bits of %s", leader, rank, p->result[r]);
        }
    }
    j->counted.cases++;
    j->counted.moved += p->total > 0;
    j->counted.summed += p->summed;
}

static void look_back(job *j)
{
    dt_context *ctx = dt_context_dry(j->ranks);
    dt_mesh *mesh = dt_mesh_create(ctx, j->mesh);
    for (int i = 0; i < j->count; i++) compare_ranks(j, mesh, i);
    dt_context_destroy(&ctx);
}

static void run(job *j)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(j->ranks, run_cases, j, error, sizeof error);
    if (status == DT_OK) look_back(j);
    else if (j->count) wrong(j, &j->at[j->reached], "%s", error);
    else expect(false, "%s: %s", j->mesh, error);
}

/* ---- the front door ---------------------------------------------------------------------------------------------- */

int judge_ranks(const char *mesh)
{
    int ranks = 1;
    for (const char *at = strchr(mesh, '='); at; at = strchr(at + 1, '=')) ranks *= atoi(at + 1);
    return ranks;
}

judge_count judge(const op_calls *calls, const char *mesh, const judge_effort *effort)
{
    atomic_int failures = 0;
    job j = { .mesh = mesh, .ranks = judge_ranks(mesh), .failures = &failures };
    make_promises(&j, calls, effort);
    bool room = true;
    for (int rank = 0; rank < j.ranks; rank++) {
        j.seen[rank] = calloc((size_t)j.count + 1, sizeof *j.seen[rank]);
        room &= j.seen[rank] != NULL;
    }
    if (expect(room && j.at, "memory")) run(&j);
    for (int rank = 0; rank < j.ranks; rank++) free(j.seen[rank]);
    free(j.at);
    return j.counted;
}
