/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads backend: the conformance suite, and what only ranks that share memory can see. */
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/conformance.h"
#include "suite.h"

static void groups(void) { conformance_groups(dt_launch_threads); }
static void copies(void) { conformance_copies(dt_launch_threads); }
static void dtypes(void) { conformance_dtypes(dt_launch_threads); }
static void combines(void) { conformance_combines(dt_launch_threads); }
static void strides(void) { conformance_strides(dt_launch_threads); }
static void in_place(void) { conformance_in_place(dt_launch_threads); }
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

static const test_row rows[] = {
    { "groups", groups },
    { "copies", copies },
    { "dtypes", dtypes },
    { "combines", combines },
    { "strides", strides },
    { "in_place", in_place },
    { "large", large },
    { "in_flight", in_flight },
    { "barriers", barriers },
    { "releases", releases },
    { "sources_are_held", sources_are_held },
};

const suite the_suite = { "comm", rows, (int)(sizeof rows / sizeof *rows) };
