/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads backend. A call has a number in its group. To start it a rank writes a post, which says where its source
 * lies, and the number last; to finish it, it waits for the posts of those it takes from, copies from their memory, and
 * publishes that it has taken. A source is held until every member has. In an all-reduce the post also says where the
 * result lies; taking then is to combine a share and write it to the results of all, and finishing waits until all have
 * taken. A rank that fails before that lets go of its result, but the backend holds it as it holds sources: to the end
 * of the run, if need be. A call may be a list of exchanges: then the post leads to a list of sources and results,
 * which is held as long as they are.
 *
 * A failure is told by numbers: each rank counts how often its context has failed, and each post has that count. A peer
 * whose count is the own one has failed alike, so that calls whose arguments all ranks refused do no harm; one that is
 * ahead has failed alone, and kills the group.
 * Who is far ahead of the slowest gets a larger ring of posts: to start a call waits for nobody.
 * Invariant: released <= taken by all <= taken <= started, and started - released is at most the ring. */
#include "comm/threads.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/take.h"

enum { HELD_BYTES = 16 << 10, HELD_CALLS = DTI_RING / 2 }; /* less is not worth looking whether all have taken      */

typedef enum call_kind { CALL_EXCHANGE, CALL_ALL_REDUCE, CALL_BARRIER } call_kind;

typedef struct call {
    dti_exchange exchange;
    dti_exchange *list;            /* several in one: these, and exchange is the first; NULL: it alone             */
    dti_shown *shown;              /* what the post of a list leads to                                             */
    int count;
    call_kind kind;
    uint64_t failures;             /* of this rank when it was started                                             */
} call;

typedef struct thread_group {
    dti_group base;
    struct thread_group *next;     /* of this rank                                                                 */
    dti_circle *circle;
    dti_member *self;
    uint64_t started, taken, released; /* numbers of calls                                                         */
    uint64_t reduced, settled;     /* the last all-reduce taken; the last one to which all have written             */
    size_t held;                   /* bytes of sources and results not released                                    */
    call *calls;                   /* call i in i & mask                                                           */
    uint64_t mask;
    const dti_shown **lists;       /* of the call being taken, by member: what its post leads to, NULL: no list    */
    const char **sources;          /* of the exchange being taken, by member                                       */
    void **results;                /* of an all-reduce likewise, from this rank's on                               */
    uint64_t *arrived;             /* the last call whose post was read, by member                                 */
} thread_group;

typedef struct threads {
    dti_comm base;
    dti_world *world;
    thread_group *groups;
    uint64_t failures;
    dti_scratch scratch;
} threads;

static threads *threads_of(const thread_group *g) { return (threads *)g->base.comm; }

static call *call_of(thread_group *g, uint64_t number) { return &g->calls[number & g->mask]; }

static const dti_exchange *exchange_at(const call *c, int i) { return c->list ? &c->list[i] : &c->exchange; }

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* This rank cannot go on because of another: as that one's sentence says. The group is dead. */
static dt_status fail_by_peer(thread_group *g, int culprit, const char *sentence)
{
    threads *t = threads_of(g);
    dti_circle_kill(t->world, g->circle, culprit, sentence);
    return dti_fail(t->base.ctx, DT_ERR_PEER, "%s", sentence);
}

/* This rank has an error of its own that kills the group. */
DT_PRINTF(3, 4)
static dt_status fail_group(thread_group *g, dt_status status, const char *format, ...)
{
    threads *t = threads_of(g);
    char error[DTI_SENTENCE], sentence[DTI_SENTENCE + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(error, sizeof error, format, args);
    va_end(args);
    dti_fail(t->base.ctx, status, "%s", error);
    snprintf(sentence, sizeof sentence, "rank %d failed first: %s", t->base.ctx->rank, error);
    dti_circle_kill(t->world, g->circle, t->base.ctx->rank, sentence);
    return status;
}

static dt_status fail_dead(thread_group *g)
{
    threads *t = threads_of(g);
    const dti_circle *circle = g->circle;
    if (circle->culprit != t->base.ctx->rank) return dti_fail(t->base.ctx, DT_ERR_PEER, "%s", circle->sentence);
    return dti_fail(t->base.ctx, DT_ERR_COMM, "the group of %d ranks from %d to %d is dead: %s", circle->n,
                    circle->ranks[0], circle->ranks[circle->n - 1], circle->sentence);
}

static dt_status fail_by_member(thread_group *g, int member)
{
    char sentence[DTI_SENTENCE];
    dti_world_sentence(threads_of(g)->world, g->base.ranks[member], sentence);
    return fail_by_peer(g, g->base.ranks[member], sentence);
}

/* This rank has failed alone, cleared its error and called on. */
static dt_status fail_by_self(thread_group *g)
{
    threads *t = threads_of(g);
    char sentence[DTI_SENTENCE];
    dti_world_sentence(t->world, t->base.ctx->rank, sentence);
    dti_circle_kill(t->world, g->circle, t->base.ctx->rank, sentence);
    return fail_dead(g);
}

static dt_status fail_by_time(thread_group *g, int member, const char *text)
{
    return fail_group(g, DT_ERR_TIMEOUT, "rank %d did not come to %s within %g s", g->base.ranks[member], text,
                      threads_of(g)->world->patience.seconds);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

typedef enum trouble { TROUBLE_NONE, TROUBLE_DEAD, TROUBLE_MEMBER } trouble;

/* Is there a reason not to wait for a member? What it did before is read again by who asks. */
static trouble look(const thread_group *g, int member, uint64_t failures)
{
    const dti_rank_state *state = &threads_of(g)->world->ranks[g->base.ranks[member]];
    if (atomic_load(&g->circle->dead)) return TROUBLE_DEAD;
    return atomic_load(&state->failures) > failures || atomic_load(&state->left) ? TROUBLE_MEMBER : TROUBLE_NONE;
}

static dt_status fail_trouble(thread_group *g, int member, trouble found)
{
    return found == TROUBLE_DEAD ? fail_dead(g) : fail_by_member(g, member);
}

/* Has a member shown this call? The place is looked up each time: its ring may have grown. */
static bool has_shown(const thread_group *g, int member, uint64_t number)
{
    return atomic_load(&dti_member_post(&g->circle->members[member], number)->number) >= number;
}

/* Has it taken this call's sources, and written to this call's results? */
static bool has_taken(const thread_group *g, int member, uint64_t number)
{
    return atomic_load(&g->circle->members[member].taken) >= number;
}

typedef bool (*progress)(const thread_group *g, int member, uint64_t number);

/* Wait until a member has done something with a call. text: the call waited in. */
static dt_status await(thread_group *g, int member, progress has_done, uint64_t number, uint64_t failures,
                       const char *text)
{
    dt_status status = DT_OK;
    dti_wait wait = dti_wait_begin(&g->circle->members[member].event, &threads_of(g)->world->patience);
    while (!has_done(g, member, number) && !status) {
        trouble found = look(g, member, failures);
        if (has_done(g, member, number)) break; /* it came before the trouble */
        if (found) status = fail_trouble(g, member, found);
        else if (!dti_wait_again(&wait)) status = fail_by_time(g, member, text);
    }
    dti_wait_end(&wait);
    return status;
}

/* ---- releasing --------------------------------------------------------------------------------------------------- */

static size_t held_by(const dti_exchange *exchange)
{
    return (exchange->source ? exchange->source->n : 0) + (exchange->result ? exchange->result->n : 0);
}

static void list_give(const thread_group *g, const call *c)
{
    dt_context *ctx = g->base.comm->ctx;
    dti_context_give(ctx, c->list, (size_t)c->count * sizeof *c->list);
    dti_context_give(ctx, c->shown, (size_t)c->count * sizeof *c->shown);
}

static void call_release(const thread_group *g, const call *c)
{
    for (int i = 0; i < c->count; i++) {
        dti_storage_release(exchange_at(c, i)->source);
        dti_storage_release(exchange_at(c, i)->result);
    }
    list_give(g, c);
}

/* Release the sources that all members have taken, and the results to which all have written. */
static void release_taken(thread_group *g)
{
    uint64_t all = g->taken;
    for (int i = 0; i < g->base.n && all > g->released; i++) {
        uint64_t taken = atomic_load(&g->circle->members[i].taken);
        if (taken < all) all = taken;
    }
    while (g->released < all) {
        const call *c = call_of(g, ++g->released);
        for (int i = 0; i < c->count; i++) g->held -= held_by(exchange_at(c, i));
        call_release(g, c);
    }
}

static void release_all_taken(threads *t)
{
    for (thread_group *g = t->groups; g; g = g->next)
        if (g->held >= HELD_BYTES || g->started - g->released >= HELD_CALLS) release_taken(g);
}

static void reclaim(dti_comm *comm)
{
    for (thread_group *g = ((threads *)comm)->groups; g; g = g->next) release_taken(g);
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* A post has come: is it the same call? */
static dt_status check_post(thread_group *g, int member, const dti_post *post, const call *c)
{
    if (post->failures > c->failures) return fail_by_member(g, member);
    if (post->failures < c->failures) return fail_by_self(g);
    if (post->hash == c->exchange.call.hash) return DT_OK;
    int me = g->base.ranks[g->base.index], other = g->base.ranks[member];
    const char *mine = c->exchange.call.text, *its = post->text;
    bool first = me < other;
    return fail_group(g, DT_ERR_DESYNC, "ranks called different things: rank %d %s, rank %d %s", first ? me : other,
                      first ? mine : its, first ? other : me, first ? its : mine);
}

/* Wait for a member's post and read it, once per call. */
static dt_status arrive(thread_group *g, int member, uint64_t number)
{
    const call *c = call_of(g, number);
    if (g->arrived[member] == number) return DT_OK;
    dt_status status = await(g, member, has_shown, number, c->failures, c->exchange.call.text);
    const dti_post *post = dti_member_post(&g->circle->members[member], number);
    if (!status) status = check_post(g, member, post, c);
    if (status) return status;
    g->arrived[member] = number;
    g->lists[member] = post->list;
    g->sources[member] = post->bytes;
    g->results[(member - g->base.index + g->base.n) % g->base.n] = post->result;
    return DT_OK;
}

static dt_status arrive_all(thread_group *g, uint64_t number)
{
    const call *c = call_of(g, number);
    dt_status status = DT_OK;
    if (c->kind != CALL_EXCHANGE)
        for (int i = 0; i < g->base.n && !status; i++) status = arrive(g, i, number);
    else
        for (int k = 0; k < c->count; k++)
            for (int i = 0; i < exchange_at(c, k)->get_count && !status; i++)
                status = arrive(g, exchange_at(c, k)->gets[i].member, number);
    return status;
}

/* Of a list, where exchange k of each member that has arrived lies. */
static void turn_to(thread_group *g, const call *c, int k, uint64_t number)
{
    for (int i = 0; c->list && i < g->base.n; i++) {
        if (g->arrived[i] != number) continue;
        g->sources[i] = g->lists[i][k].bytes;
        g->results[(i - g->base.index + g->base.n) % g->base.n] = g->lists[i][k].result;
    }
}

/* false: memory ran out. */
static bool do_exchange(thread_group *g, const call *c, const dti_exchange *ex)
{
    threads *t = threads_of(g);
    if (c->kind == CALL_ALL_REDUCE)
        return dti_take(ex, g->sources, g->results, g->base.n, t->world->caches, &t->scratch);
    return dti_take(ex, g->sources, &ex->target, 1, t->world->caches, &t->scratch);
}

static bool do_call(thread_group *g, const call *c, uint64_t number)
{
    bool done = true;
    for (int k = 0; k < c->count && done; k++) {
        turn_to(g, c, k, number);
        done = do_exchange(g, c, exchange_at(c, k));
    }
    return done;
}

static dt_status take(thread_group *g, uint64_t number)
{
    const call *c = call_of(g, number);
    dt_status status = arrive_all(g, number);
    if (status) return status;
    if (!do_call(g, c, number))
        return dti_fail(g->base.comm->ctx, DT_ERR_MEMORY, "out of memory for the sums of %s", c->exchange.call.text);
    g->taken = number;
    if (c->kind == CALL_ALL_REDUCE) g->reduced = number;
    atomic_store(&g->self->taken, number);
    dti_event_tell(&g->self->event);
    return DT_OK;
}

/* Wait until all members have written to this rank's results. Failures that all had alike since are none. */
static dt_status settle(thread_group *g)
{
    dt_status status = DT_OK;
    const char *text = call_of(g, g->reduced)->exchange.call.text;
    for (int i = 0; i < g->base.n && !status; i++)
        status = await(g, i, has_taken, g->reduced, threads_of(g)->failures, text);
    if (status) return status;
    g->settled = g->reduced;
    release_taken(g);
    return DT_OK;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Twice as many calls as before; they move to where they belong then. */
static bool grow_calls(thread_group *g)
{
    uint64_t mask = 2 * g->mask + 1;
    call *calls = calloc(mask + 1, sizeof *calls);
    if (!calls) return false;
    for (uint64_t i = g->released + 1; i <= g->started; i++) calls[i & mask] = *call_of(g, i);
    free(g->calls);
    g->calls = calls;
    g->mask = mask;
    return true;
}

/* Is whom the oldest call waits for still there? */
static dt_status check_slowest(thread_group *g)
{
    dt_status status = DT_OK;
    for (int i = 0; i < g->base.n && !status; i++) {
        if (atomic_load(&g->circle->members[i].taken) > g->released) continue;
        trouble found = look(g, i, threads_of(g)->failures);
        if (found) status = fail_trouble(g, i, found);
    }
    return status;
}

/* Room for one more post: where one is that all have taken, else in a larger ring. Who shows does not wait. */
static dt_status make_room(thread_group *g, const char *text)
{
    release_taken(g);
    if (g->started - g->released <= g->mask) return DT_OK;
    dt_status status = check_slowest(g);
    if (status || (dti_member_grow(g->self, g->started + 1) && grow_calls(g))) return status;
    return dti_fail(g->base.comm->ctx, DT_ERR_MEMORY, "out of memory for %s, %llu calls ahead of the slowest rank",
                    text, (unsigned long long)(g->started - g->released));
}

/* May calls be made, and is there room? */
static dt_status ready(thread_group *g, const char *text)
{
    const dt_context *ctx = g->base.comm->ctx;
    if (dti_failed(ctx)) return ctx->status;
    if (atomic_load(&g->circle->dead)) return fail_dead(g);
    return g->started - g->released > g->mask ? make_room(g, text) : DT_OK;
}

static dti_shown shown_of(const dti_exchange *exchange)
{
    return (dti_shown){ exchange->source ? exchange->source->bytes : NULL,
                        exchange->result ? exchange->result->bytes : NULL };
}

/* Copies of a list and of what it shows, of which others read the latter. */
static bool keep_list(dt_context *ctx, call *c, const dti_exchange *list)
{
    c->list = dti_context_borrow(ctx, (size_t)c->count * sizeof *c->list);
    c->shown = dti_context_borrow(ctx, (size_t)c->count * sizeof *c->shown);
    for (int i = 0; c->list && c->shown && i < c->count; i++) {
        c->list[i] = list[i];
        c->shown[i] = shown_of(&list[i]);
    }
    return c->list && c->shown;
}

static dt_status show(thread_group *g, const dti_exchange *list, int n, call_kind kind)
{
    dt_status status = ready(g, list->call.text);
    if (status) return status;
    call c = { .exchange = *list, .count = n, .kind = kind, .failures = threads_of(g)->failures };
    if (n > 1 && !keep_list(g->base.comm->ctx, &c, list)) {
        list_give(g, &c);
        return DT_ERR_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        dti_storage_retain(list[i].source);
        dti_storage_retain(list[i].result);
        g->held += held_by(&list[i]);
    }
    uint64_t number = ++g->started;
    *call_of(g, number) = c;
    dti_post *post = dti_member_post(g->self, number);
    dti_shown shown = shown_of(list);
    post->hash = list->call.hash;
    post->text = list->call.text;
    post->bytes = shown.bytes;
    post->result = shown.result;
    post->list = c.shown;
    post->failures = threads_of(g)->failures;
    atomic_store(&post->number, number);
    dti_event_tell(&g->self->event);
    return DT_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static dt_status start(dti_group *group, const dti_exchange *exchange)
{
    return show((thread_group *)group, exchange, 1, CALL_EXCHANGE);
}

static dt_status all_reduce(dti_group *group, const dti_exchange *exchange)
{
    return show((thread_group *)group, exchange, 1, CALL_ALL_REDUCE);
}

static dt_status start_list(dti_group *group, const dti_exchange *list, int n, bool all_reduce)
{
    return show((thread_group *)group, list, n, all_reduce ? CALL_ALL_REDUCE : CALL_EXCHANGE);
}

static dt_status finish(dti_group *group)
{
    thread_group *g = (thread_group *)group;
    threads *t = threads_of(g);
    dt_status status = t->base.ctx->status;
    while (!status && g->taken < g->started) status = take(g, g->taken + 1);
    if (!status && g->settled < g->reduced) status = settle(g);
    release_all_taken(t);
    return status;
}

static dt_status barrier(dti_group *group, dti_call of)
{
    dt_status status = show((thread_group *)group, &(dti_exchange){ .call = of, .dtype = DT_U8 }, 1,
                            CALL_BARRIER);
    return status ? status : finish(group);
}

static void failed(dti_comm *comm)
{
    threads *t = (threads *)comm;
    t->failures++;
    dti_world_failed(t->world, comm->ctx->rank, comm->ctx->status, comm->ctx->error);
}

static dt_status cleared(dti_comm *comm)
{
    dti_world *world = ((threads *)comm)->world;
    if (dti_world_has_dead(world, comm->ctx->rank)) return comm->ctx->status;
    dti_world_cleared(world, comm->ctx->rank);
    return DT_OK;
}

static void leave(dti_comm *comm) { dti_world_left(((threads *)comm)->world, comm->ctx->rank); }

static bool shows(const call *c, const dti_storage *storage)
{
    for (int i = 0; i < c->count; i++)
        if (exchange_at(c, i)->source == storage || exchange_at(c, i)->result == storage) return true;
    return false;
}

/* A member that has not taken a call which this rank has finished is on its way there, and needs nothing for it that
 * this rank has not shown: so to wait for it is to wait for nobody who waits for this rank. */
static dt_status withdraw_from(thread_group *g, const dti_storage *storage)
{
    dt_status status = DT_OK;
    for (uint64_t number = g->released + 1; number <= g->started && !status; number++) {
        const call *c = call_of(g, number);
        if (!shows(c, storage)) continue;
        if (number > g->taken)
            return dti_fail(g->base.comm->ctx, DT_ERR_STATE, "%s is under way, and what it reads is to be written: "
                            "wait for it before", c->exchange.call.text);
        for (int i = 0; i < g->base.n && !status; i++)
            status = await(g, i, has_taken, number, threads_of(g)->failures, c->exchange.call.text);
    }
    release_taken(g);
    return status;
}

static dt_status withdraw(dti_comm *comm, const dti_storage *storage)
{
    dt_status status = DT_OK;
    for (thread_group *g = ((threads *)comm)->groups; g && !status; g = g->next) status = withdraw_from(g, storage);
    return status;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static void group_free(thread_group *g)
{
    while (g->released < g->started) call_release(g, call_of(g, ++g->released));
    free(g->calls);
    free(g->lists);
    free(g->sources);
    free(g->results);
    free(g->arrived);
    free(g);
}

static thread_group *group_create(threads *t, dti_circle *circle)
{
    thread_group *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->base = (dti_group){ &t->base, circle->ranks, circle->n,
                           dti_ranks_find(circle->ranks, circle->n, t->base.ctx->rank) };
    g->circle = circle;
    g->self = &circle->members[g->base.index];
    g->lists = calloc((size_t)circle->n, sizeof *g->lists);
    g->sources = calloc((size_t)circle->n, sizeof *g->sources);
    g->results = calloc((size_t)circle->n, sizeof *g->results);
    g->arrived = calloc((size_t)circle->n, sizeof *g->arrived);
    g->calls = calloc(DTI_RING, sizeof *g->calls);
    g->mask = DTI_RING - 1;
    if (g->lists && g->sources && g->results && g->arrived && g->calls) return g;
    group_free(g);
    return NULL;
}

static dti_group *group(dti_comm *comm, const int *ranks, int n)
{
    threads *t = (threads *)comm;
    if (dti_failed(comm->ctx)) return NULL;
    dti_circle *circle = dti_world_circle(t->world, ranks, n);
    thread_group *g = t->groups;
    while (g && g->circle != circle) g = g->next;
    if (g) return &g->base;
    g = circle ? group_create(t, circle) : NULL;
    if (!g) {
        dti_fail(comm->ctx, DT_ERR_MEMORY, "out of memory for a group of %d ranks", n);
        return NULL;
    }
    g->next = t->groups;
    t->groups = g;
    return &g->base;
}

static const dti_comm_ops ops = {
    .name = "threads",
    .shares_memory = true,
    .group = group,
    .start = start,
    .finish = finish,
    .barrier = barrier,
    .all_reduce = all_reduce,
    .start_list = start_list,
    .failed = failed,
    .cleared = cleared,
    .leave = leave,
    .withdraw = withdraw,
    .reclaim = reclaim,
};

dti_comm *dti_threads_new(dti_world *world, dt_context *ctx)
{
    threads *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->base = (dti_comm){ &ops, ctx };
    t->world = world;
    return &t->base;
}

void dti_threads_free(dti_comm *comm)
{
    threads *t = (threads *)comm;
    if (!t) return;
    while (t->groups) {
        thread_group *g = t->groups;
        t->groups = g->next;
        group_free(g);
    }
    dti_scratch_fini(&t->scratch);
    free(t);
}
