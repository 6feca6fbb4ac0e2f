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
static void large(void) { conformance_large(dt_launch_threads); }
static void in_flight(void) { conformance_in_flight(dt_launch_threads); }
static void barriers(void) { conformance_barriers(dt_launch_threads); }
static void releases(void) { conformance_releases(dt_launch_threads); }

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

/* ---- results are held -------------------------------------------------------------------------------------------- */

typedef struct result_test { atomic_int let_go, written; } result_test;

/* Elements [member * ELEMENTS, ..) of both are this rank's to combine. */
static void share_of(int member, dti_copy gets[RANKS])
{
    for (int m = 0; m < RANKS; m++)
        gets[m] = (dti_copy){ .member = m, .contribution = m, .run = ELEMENTS, .from = member * ELEMENTS,
                              .to = member * ELEMENTS };
}

/* Rank 0 begins an all-reduce, fails and lets go of all it has. The others come late and still write to its result: that
 * has not become anything else. */
static dt_status let_go(dt_context *ctx, void *arg)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    result_test *test = arg;
    dti_copy gets[RANKS];
    dti_comm *comm = dti_comm_of(ctx);
    dti_group *group = comm->ops->group(comm, ranks, RANKS);
    size_t bytes = RANKS * ELEMENTS * sizeof(float);
    dti_storage *source = dti_storage_new(ctx, bytes), *result = dti_storage_new(ctx, bytes);
    dti_numbers_fill(DT_F32, 2, source->bytes, RANKS * ELEMENTS);
    dti_numbers_fill(DT_F32, 0, result->bytes, RANKS * ELEMENTS);
    share_of(group->index, gets);
    while (dt_rank(ctx) != 0 && !atomic_load(&test->let_go)) {}
    dt_status status = comm->ops->all_reduce(group, &(dti_exchange){
        .call = { 9, "all_reduce" }, .dtype = DT_F32, .source = source, .result = result, .gets = gets,
        .get_count = RANKS, .contributions = RANKS, .target_dtype = DT_F32 });
    if (dt_rank(ctx) != 0) {
        if (!status) status = comm->ops->finish(group);
        expect(status == DT_ERR_PEER && strstr(dt_context_error(ctx), "the disk is full"), "%s", dt_context_error(ctx));
        atomic_fetch_add(&test->written, 1);
    } else {
        const float *kept = result->bytes;
        expect(status == DT_OK, "%s", dt_context_error(ctx));
        dti_fail(ctx, DT_ERR_IO, "the disk is full");
        expect(comm->ops->finish(group) == DT_ERR_IO, "it does not go on");
        dti_storage_release(source);
        dti_storage_release(result);
        comm->ops->reclaim(comm);
        dti_storage *other = dti_storage_new(ctx, bytes);
        expect(other && other->bytes != kept, "the result's memory is used again");
        dti_numbers_fill(DT_F32, 7, other->bytes, RANKS * ELEMENTS);
        atomic_store(&test->let_go, 1);
        while (atomic_load(&test->written) < RANKS - 1) {}
        for (int i = 0; i < RANKS * ELEMENTS; i++)
            expect(((const float *)other->bytes)[i] >= 7, "a peer wrote to memory that is in use again");
        dti_storage_release(other);
        return DT_OK;
    }
    dti_storage_release(source);
    dti_storage_release(result);
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

/* What was all-reduced is nobody's any more when the call is finished. */
static dt_status given_back(dt_context *ctx, void *arg)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    (void)arg;
    dti_copy gets[RANKS];
    dti_comm *comm = dti_comm_of(ctx);
    dti_group *group = comm->ops->group(comm, ranks, RANKS);
    size_t bytes = RANKS * ELEMENTS * sizeof(float);
    dti_storage *both = dti_storage_new(ctx, bytes);
    share_of(group->index, gets);
    for (int i = 0; i < 50; i++) {
        dti_numbers_fill(DT_F32, 1 + dt_rank(ctx), both->bytes, RANKS * ELEMENTS);
        dt_status status = comm->ops->all_reduce(group, &(dti_exchange){
            .call = { 9, "all_reduce" }, .dtype = DT_F32, .source = both, .result = both, .gets = gets,
            .get_count = RANKS, .contributions = RANKS, .target_dtype = DT_F32 });
        expect(status == DT_OK && comm->ops->finish(group) == DT_OK, "%s", dt_context_error(ctx));
        expect(both->references == 1, "%d references", both->references);
        for (int k = 0; k < RANKS * ELEMENTS; k++)
            expect(((const float *)both->bytes)[k] >= 6, "element %d is %g", k, (double)((const float *)both->bytes)[k]);
    }
    dti_storage_release(both);
    return dt_context_status(ctx);
}

static void results_are_given_back(void)
{
    char error[256];
    expect(dt_launch_threads(RANKS, given_back, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "groups", groups },
    { "copies", copies },
    { "dtypes", dtypes },
    { "combines", combines },
    { "strides", strides },
    { "in_place", in_place },
    { "all_reduces", all_reduces },
    { "large", large },
    { "in_flight", in_flight },
    { "barriers", barriers },
    { "releases", releases },
    { "sources_are_held", sources_are_held },
    { "results_are_held", results_are_held },
    { "results_are_given_back", results_are_given_back },
};

const suite the_suite = { "comm", rows, (int)(sizeof rows / sizeof *rows) };
