/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks as threads. Contexts are made before the first thread starts and end when the last has, so that what a rank has
 * shown stays readable for the others however early it returns. Invariant: a rank whose thread could not be started has
 * failed and left, so that nobody waits for it. */
#include "comm/run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/bind.h"
#include "comm/threads.h"
#include "core/parts.h"

enum { MIN_STACK = 8 << 20, SPINS = 4000 };

typedef struct party party;

typedef struct rank_thread {
    party *of;
    dt_context *ctx;
    dti_comm *comm;                /* NULL where there is one rank                                                 */
    pthread_t thread;
    bool started;
} rank_thread;

struct party {
    const dti_run *run;
    dti_world world;
    dti_cpus cpus;
    rank_thread *ranks;
};

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* A context reads a copy of the line, because it takes words out. */
static void read_line(dt_context *ctx, const dti_run *run)
{
    if (!run->argv || dti_failed(ctx)) return;
    size_t bytes = ((size_t)run->argc + 1) * sizeof *run->argv;
    char **words = malloc(bytes), **argv = words;
    int argc = run->argc;
    if (!words) {
        dti_fail(ctx, DT_ERR_MEMORY, "out of memory for the command line");
        return;
    }
    memcpy(words, run->argv, bytes);
    dt_options_read(ctx, &argc, &argv);
    free(words);
}

static dt_context *context_for(const dti_run *run, int rank)
{
    dt_context *ctx = dti_context_new(rank, run->ranks, run->dry);
    if (ctx) read_line(ctx, run);
    return ctx;
}

/* A program that returns an error has failed, also where its context has not. */
static void call_program(const dti_run *run, dt_context *ctx)
{
    dt_status status = run->fn(ctx, run->arg);
    if (status != DT_OK && !dti_failed(ctx))
        dti_fail(ctx, status, "the program returned an error: %s", dt_status_text(status));
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

static bool is_first_hand(dt_status status) { return status != DT_ERR_PEER && status != DT_ERR_COMM; }

/* Does a's error count rather than b's? One of its own before one that peers have told; then the earlier one. */
static bool comes_before(const party *p, int a, int b)
{
    bool own = is_first_hand(p->ranks[a].ctx->status);
    if (own != is_first_hand(p->ranks[b].ctx->status)) return own;
    return p->world.ranks[a].order < p->world.ranks[b].order;
}

/* -1: no rank has failed. */
static int first_failed(const party *p)
{
    int first = -1;
    for (int i = 0; i < p->run->ranks; i++)
        if (dti_failed(p->ranks[i].ctx) && (first < 0 || comes_before(p, i, first))) first = i;
    return first;
}

static bool all_say(const party *p, const char *error)
{
    for (int i = 0; i < p->run->ranks; i++)
        if (strcmp(p->ranks[i].ctx->error, error) != 0) return false;
    return true;
}

static void find_outcome(dti_outcome *outcome, dt_context *ctx, bool named)
{
    outcome->status = ctx->status;
    outcome->usage = ctx->usage;
    if (named) snprintf(outcome->error, sizeof outcome->error, "rank %d: %s", ctx->rank, ctx->error);
    else snprintf(outcome->error, sizeof outcome->error, "%s", ctx->error);
}

static void find_help(dti_outcome *outcome, dt_context *ctx)
{
    if (dti_options_help_given(ctx)) outcome->help = strdup(dt_options_help(ctx));
}

static dt_status out_of_memory(dti_outcome *outcome, int ranks)
{
    outcome->status = DT_ERR_MEMORY;
    snprintf(outcome->error, sizeof outcome->error, "out of memory for %d ranks", ranks);
    return DT_ERR_MEMORY;
}

/* ---- without threads --------------------------------------------------------------------------------------------- */

static dt_status run_dry(const dti_run *run, dti_outcome *outcome)
{
    dt_context *ctx = context_for(run, 0);
    if (!ctx) return out_of_memory(outcome, run->ranks);
    if (!dti_failed(ctx)) call_program(run, ctx);
    find_outcome(outcome, ctx, false);
    find_help(outcome, ctx);
    dt_context_destroy(&ctx);
    return outcome->status;
}

/* ---- with threads ------------------------------------------------------------------------------------------------ */

static void party_fini(party *p)
{
    for (int i = 0; i < p->run->ranks; i++) {
        dti_threads_free(p->ranks[i].comm);
        dt_context_destroy(&p->ranks[i].ctx);
    }
    dti_world_fini(&p->world);
    free(p->ranks);
}

static bool party_init(party *p, const dti_run *run)
{
    *p = (party){ .run = run };
    dti_cpus_read(&p->cpus);
    p->ranks = calloc((size_t)run->ranks, sizeof *p->ranks);
    if (!p->ranks) return false;
    dti_patience patience = { .spins = run->ranks <= p->cpus.n ? SPINS : 0 };
    if (!dti_world_init(&p->world, run->ranks, patience)) {
        free(p->ranks);
        return false;
    }
    bool made = true;
    for (int i = 0; i < run->ranks && made; i++) {
        rank_thread *r = &p->ranks[i];
        *r = (rank_thread){ .of = p, .ctx = context_for(run, i) };
        made = r->ctx && (run->ranks == 1 || (r->comm = dti_threads_new(&p->world, r->ctx)));
    }
    if (made) p->world.patience.seconds = dti_option_positive(p->ranks[0].ctx, DTI_OPTION_TIMEOUT);
    if (!made) party_fini(p);
    return made;
}

static void *thread_main(void *arg)
{
    rank_thread *r = arg;
    const dti_run *run = r->of->run;
    if (run->bind && run->ranks > 1 && run->ranks <= r->of->cpus.n) dti_bind(&r->of->cpus, r->ctx->rank, run->ranks);
    dti_share_cpus(&r->of->cpus, run->ranks);
    call_program(run, r->ctx);
    dti_scopes_fini(r->ctx);           /* completes what was started, while there are peers                        */
    if (r->comm) dti_comm_leave(r->comm);
    return NULL;
}

static void thread_start(rank_thread *r, const pthread_attr_t *attributes)
{
    int error = pthread_create(&r->thread, attributes, thread_main, r);
    r->started = error == 0;
    if (r->started) return;
    dti_fail(r->ctx, DT_ERR_UNAVAILABLE, "the thread of rank %d of %d could not be started: %s", r->ctx->rank,
             r->of->run->ranks, strerror(error));
    if (r->comm) dti_comm_leave(r->comm);
}

static void attributes_init(pthread_attr_t *attributes)
{
    size_t bytes = 0;
    pthread_attr_init(attributes);
    pthread_attr_getstacksize(attributes, &bytes);
    if (bytes < MIN_STACK) pthread_attr_setstacksize(attributes, MIN_STACK);
}

static void run_threads(party *p)
{
    pthread_attr_t attributes;
    attributes_init(&attributes);
    for (int i = 0; i < p->run->ranks; i++)
        if (p->ranks[i].comm) dti_comm_join(p->ranks[i].comm);
    for (int i = 0; i < p->run->ranks; i++) thread_start(&p->ranks[i], &attributes);
    for (int i = 0; i < p->run->ranks; i++)
        if (p->ranks[i].started) pthread_join(p->ranks[i].thread, NULL);
    pthread_attr_destroy(&attributes);
}

dt_status dti_run_program(const dti_run *run, dti_outcome *outcome)
{
    party p;
    *outcome = (dti_outcome){ .status = DT_OK };
    if (run->dry) return run_dry(run, outcome);
    if (!party_init(&p, run)) return out_of_memory(outcome, run->ranks);
    if (first_failed(&p) < 0) run_threads(&p); /* a command line that cannot be read fails before */
    int first = first_failed(&p);
    if (first >= 0) find_outcome(outcome, p.ranks[first].ctx, !all_say(&p, p.ranks[first].ctx->error));
    find_help(outcome, p.ranks[0].ctx);
    party_fini(&p);
    return outcome->status;
}
