/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads backend: the conformance suite, and what only ranks that share memory can see. */
#include <stdatomic.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/conformance.h"
#include "suite.h"

static void groups(void) { conformance_groups(dt_launch_threads); }
static void copies(void) { conformance_copies(dt_launch_threads); }
static void dtypes(void) { conformance_dtypes(dt_launch_threads); }
static void combines(void) { conformance_combines(dt_launch_threads); }
static void strides(void) { conformance_strides(dt_launch_threads); }
static void in_place(void) { conformance_in_place(dt_launch_threads); }
static void all_reduces(void) { conformance_all_reduces(dt_launch_threads); }
static void lists(void) { conformance_lists(dt_launch_threads); }
static void withdrawn(void) { conformance_withdrawn(dt_launch_threads); }
static void large(void) { conformance_large(dt_launch_threads); }
static void in_flight(void) { conformance_in_flight(dt_launch_threads); }
static void barriers(void) { conformance_barriers(dt_launch_threads); }
static void releases(void) { conformance_releases(dt_launch_threads); }
static void broadcasts(void) { conformance_broadcasts(dt_launch_threads); }
static void permutes(void) { conformance_permutes(dt_launch_threads); }
static void sends(void) { conformance_sends(dt_launch_threads); }
static void senders_do_not_wait(void) { conformance_senders_do_not_wait(dt_launch_threads); }

/* ---- sources are held -------------------------------------------------------------------------------------------- */

enum { RANKS = 3, ELEMENTS = 100 };

typedef struct held_test { atomic_int shown; } held_test;

/* Rank 0 shows, takes nothing and goes on; its source stays until the others, who come late, have taken. */
static dt_status hold(dt_context *ctx, void *arg)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    held_test *test = arg;
    float taken[ELEMENTS] = { 0 };
    dti_comm *comm = dti_comm_of(ctx);
    dti_group *group = comm->ops->group(comm, ranks, RANKS);
    dti_storage *source = dt_rank(ctx) == 0 ? dti_storage_new(ctx, sizeof taken) : NULL;
    dti_exchange exchange = { .call = { 7, "broadcast" }, .dtype = DT_F32, .source = source, .target_dtype = DT_F32,
                              .target = source ? NULL : taken, .gets = &(dti_copy){ .run = ELEMENTS },
                              .get_count = source ? 0 : 1 };
    if (source) {
        for (int i = 0; i < ELEMENTS; i++) ((float *)source->bytes)[i] = (float)i;
        expect(dti_exchange_run(group, &exchange) == DT_OK, "%s", dt_context_error(ctx));
        comm->ops->reclaim(comm);
        expect(source->references == 2, "%d references, while nobody has taken", source->references);
        atomic_store(&test->shown, 1);
    } else {
        while (!atomic_load(&test->shown)) {}
        expect(dti_exchange_run(group, &exchange) == DT_OK, "%s", dt_context_error(ctx));
        expect(taken[ELEMENTS - 1] >= ELEMENTS - 1, "taken: %g", (double)taken[ELEMENTS - 1]);
    }
    comm->ops->barrier(group, (dti_call){ 8, "barrier" });
    comm->ops->reclaim(comm);
    if (source) expect(source->references == 1, "%d references, when all have taken", source->references);
    dti_storage_release(source);
    return dt_context_status(ctx);
}

static void sources_are_held(void)
{
    char error[256];
    held_test test = { 0 };
    expect(dt_launch_threads(RANKS, hold, &test, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- memory is short --------------------------------------------------------------------------------------------- *
 * Rank 0 may hold four blocks and shows four before the others take any; when they have, it has as many again.       */

enum { BLOCK = 64 << 10, BLOCKS = 4 };

typedef struct short_test { atomic_int shown, taken; } short_test;

static dt_status show_much(dt_context *ctx, void *arg)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    short_test *test = arg;
    dti_comm *comm = dti_comm_of(ctx);
    dti_group *group = comm->ops->group(comm, ranks, RANKS);
    dti_message message = { { 9, "a block" }, DT_U8, BLOCK };
    bool root = dt_rank(ctx) == 0;
    if (root) dti_storage_limit(ctx, BLOCKS * BLOCK);
    while (!root && atomic_load(&test->shown) < BLOCKS) {}
    for (int i = 0; i < 2 * BLOCKS && !dt_context_status(ctx); i++) {
        while (root && i == BLOCKS && atomic_load(&test->taken) < (RANKS - 1) * BLOCKS) {}
        dti_storage *block = dti_storage_new(ctx, BLOCK);
        if (block && root) memset(block->bytes, i, BLOCK);
        if (block) dti_comm_broadcast(group, &message, 0, root ? block : NULL, root ? NULL : block->bytes);
        expect(block && ((unsigned char *)block->bytes)[BLOCK - 1] == i, "block %d: %s", i, dt_context_error(ctx));
        atomic_fetch_add(root ? &test->shown : &test->taken, 1);
        dti_storage_release(block);
    }
    return dt_context_status(ctx);
}

static void what_was_taken_is_reclaimed(void)
{
    char error[256];
    short_test test = { 0 };
    expect(dt_launch_threads(RANKS, show_much, &test, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- both ends are named ----------------------------------------------------------------------------------------- *
 * A backend that sends must know both ends of a message: this one writes down what it is asked for.                 */

typedef struct recorder { dti_comm base; dti_exchange asked; dti_copy gets[RANKS], puts[RANKS]; } recorder;

static dt_status record(dti_group *group, const dti_exchange *exchange)
{
    recorder *r = (recorder *)group->comm;
    r->asked = *exchange;
    for (int i = 0; i < exchange->get_count; i++) r->gets[i] = exchange->gets[i];
    for (int i = 0; i < exchange->put_count; i++) r->puts[i] = exchange->puts[i];
    return DT_OK;
}

static dt_status finish_record(dti_group *group) { return (void)group, DT_OK; }

static void expect_asked(const recorder *r, const char *what, bool shows, int gets, int from, int puts, int to)
{
    bool right = (r->asked.source != NULL) == shows && r->asked.get_count == gets && r->asked.put_count == puts;
    if (right && gets) right = r->gets[0].member == from && r->gets[0].run == ELEMENTS;
    if (right && puts) right = r->puts[0].member == to && r->puts[0].run == ELEMENTS;
    expect(right, "%s: %d gets, the first from %d, %d puts, the first to %d", what, r->asked.get_count,
           r->gets[0].member, r->asked.put_count, r->puts[0].member);
}

static void messages_name_both_ends(void)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    static const dti_comm_ops ops = { .name = "recorder", .start = record, .finish = finish_record };
    dt_context *ctx = dt_context_dry(RANKS);
    recorder r = { .base = { &ops, ctx } };
    dti_group group = { &r.base, ranks, RANKS, 1 };
    dti_message message = { { 1, "message" }, DT_F32, ELEMENTS };
    dti_storage *source = dti_storage_new(ctx, ELEMENTS * sizeof(float));
    float target[ELEMENTS];
    dti_comm_broadcast(&group, &message, 1, source, NULL);
    expect_asked(&r, "broadcast, root", true, 0, 0, RANKS - 1, 0);
    expect(r.puts[1].member == 2, "the second put goes to %d", r.puts[1].member);
    dti_comm_broadcast(&group, &message, 1, source, target);
    expect_asked(&r, "broadcast, root with a target", true, 1, 1, RANKS - 1, 0);
    dti_comm_broadcast(&group, &message, 2, NULL, target);
    expect_asked(&r, "broadcast, other", false, 1, 2, 0, 0);
    dti_comm_permute(&group, &message, 2, source, 0, target);
    expect_asked(&r, "permute", true, 1, 0, 1, 2);
    dti_comm_permute(&group, &message, 1, source, 1, target);
    expect_asked(&r, "permute to the own place", true, 1, 1, 0, 0);
    dti_comm_send(&group, &message, 0, source);
    expect_asked(&r, "send", true, 0, 0, 1, 0);
    dti_comm_recv(&group, &message, 2, target);
    expect_asked(&r, "recv", false, 1, 2, 0, 0);
    dti_storage_release(source);
    dt_context_destroy(&ctx);
}

/* ---- results are held -------------------------------------------------------------------------------------------- */

enum { ALL = RANKS * ELEMENTS };

typedef struct result_test { atomic_int let_go, written; } result_test;

/* Begin an all-reduce in which each member combines ELEMENTS; gets live until it is finished. */
static dt_status begin(dti_group *group, dti_storage *source, dti_storage *result, dti_copy gets[RANKS])
{
    int64_t own = group->index * ELEMENTS;
    for (int m = 0; m < RANKS; m++)
        gets[m] = (dti_copy){ .member = m, .contribution = m, .run = ELEMENTS, .from = own, .to = own };
    return group->comm->ops->all_reduce(group, &(dti_exchange){
        .call = { 9, "all_reduce" }, .dtype = DT_F32, .source = source, .result = result, .gets = gets,
        .get_count = RANKS, .contributions = RANKS, .target_dtype = DT_F32 });
}

static dti_group *all_ranks(dt_context *ctx)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    return dti_comm_of(ctx)->ops->group(dti_comm_of(ctx), ranks, RANKS);
}

static dti_storage *filled(dt_context *ctx, double value)
{
    dti_storage *storage = dti_storage_new(ctx, ALL * sizeof(float));
    if (storage) dti_numbers_fill(DT_F32, value, storage->bytes, ALL);
    return storage;
}

/* Are all of a value? Sums of small integers are exact. */
static bool all_are(const dti_storage *storage, float value)
{
    const float *at = storage->bytes;
    int same = 0;
    for (int i = 0; i < ALL; i++) same += at[i] >= value && at[i] <= value;
    return same == ALL;
}

/* Fail, let go of both, make something else of the memory, and look at it when the others have been there. */
static void fail_and_go(dti_group *group, result_test *test, dti_storage *source, dti_storage *result)
{
    dti_comm *comm = group->comm;
    dti_fail(comm->ctx, DT_ERR_IO, "the disk is full");
    expect(comm->ops->finish(group) == DT_ERR_IO, "it does not go on");
    dti_storage_release(source);
    dti_storage_release(result);
    comm->ops->reclaim(comm);
    dti_storage *one = filled(comm->ctx, 7), *two = filled(comm->ctx, 7);
    atomic_store(&test->let_go, 1);
    while (atomic_load(&test->written) < RANKS - 1) {}
    expect(all_are(one, 7) && all_are(two, 7), "a peer wrote to memory that is in use again");
    dti_storage_release(one);
    dti_storage_release(two);
}

/* The others come late and still write to rank 0's result. */
static void come_late(dti_group *group, result_test *test, dti_storage *source, dti_storage *result)
{
    dt_status status = group->comm->ops->finish(group);
    const char *error = dt_context_error(group->comm->ctx);
    expect(status == DT_ERR_PEER && strstr(error, "the disk is full"), "%s", error);
    dti_storage_release(source);
    dti_storage_release(result);
    atomic_fetch_add(&test->written, 1);
}

static dt_status let_go(dt_context *ctx, void *arg)
{
    result_test *test = arg;
    dti_group *group = all_ranks(ctx);
    dti_storage *source = filled(ctx, 2), *result = filled(ctx, 0);
    dti_copy gets[RANKS];
    expect(begin(group, source, result, gets) == DT_OK, "%s", dt_context_error(ctx));
    while (dt_rank(ctx) != 0 && !atomic_load(&test->let_go)) {}
    (dt_rank(ctx) == 0 ? fail_and_go : come_late)(group, test, source, result);
    return DT_OK;
}

static void results_are_held(void)
{
    char error[256];
    for (int round = 0; round < 20; round++) {
        result_test test = { 0 };
        dt_status status = dt_launch_threads(RANKS, let_go, &test, error, sizeof error);
        expect(status == DT_ERR_IO, "%d %s", (int)status, error);
    }
}

/* When a call is finished the backend holds nothing of it: in place, again and again. */
static dt_status give_back(dt_context *ctx, void *arg)
{
    (void)arg;
    dti_group *group = all_ranks(ctx);
    dti_storage *both = filled(ctx, 0);
    dti_copy gets[RANKS];
    for (int i = 0; i < 50; i++) {
        dti_numbers_fill(DT_F32, 1 + dt_rank(ctx), both->bytes, ALL);
        dt_status status = begin(group, both, both, gets);
        if (!status) status = group->comm->ops->finish(group);
        expect(status == DT_OK, "%s", dt_context_error(ctx));
        expect(both->references == 1, "%d references", both->references);
        expect(all_are(both, 1 + 2 + 3), "round %d on rank %d", i, dt_rank(ctx));
    }
    dti_storage_release(both);
    return dt_context_status(ctx);
}

static void results_are_given_back(void)
{
    char error[256];
    expect(dt_launch_threads(RANKS, give_back, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "groups", groups },
    { "copies", copies },
    { "dtypes", dtypes },
    { "combines", combines },
    { "strides", strides },
    { "in_place", in_place },
    { "all_reduces", all_reduces },
    { "lists are one call", lists },
    { "what was shown is withdrawn", withdrawn },
    { "large", large },
    { "in_flight", in_flight },
    { "barriers", barriers },
    { "releases", releases },
    { "broadcasts", broadcasts },
    { "permutes", permutes },
    { "sends", sends },
    { "senders_do_not_wait", senders_do_not_wait },
    { "messages_name_both_ends", messages_name_both_ends },
    { "sources_are_held", sources_are_held },
    { "what_was_taken_is_reclaimed", what_was_taken_is_reclaimed },
    { "results_are_held", results_are_held },
    { "results_are_given_back", results_are_given_back },
};

const suite the_suite = { "comm", rows, (int)(sizeof rows / sizeof *rows) };
