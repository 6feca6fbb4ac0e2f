/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that do not do the same: every rank is told, with the reason, and none waits for ever. */
#define _POSIX_C_SOURCE 200809L /* nanosleep, setenv */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dtensor/dtensor.h>

#include "suite.h"

enum { RANKS = 3, ROUNDS = 50 };

/* A sum of few elements is one exchange, one of many the backend's all-reduce. */
static const char *const specs[] = { "f32[64]@x:P", "f32[300,101]@x:P" };

typedef struct fault {
    int who;
    const char *spec;
    atomic_int gone;               /* ranks that have seen what came of it                                         */
    dt_status seen[RANKS];
    char said[RANKS][256];
} fault;

static void see(dt_context *ctx, fault *f)
{
    f->seen[dt_rank(ctx)] = dt_context_status(ctx);
    snprintf(f->said[dt_rank(ctx)], sizeof f->said[0], "%s", dt_context_error(ctx));
}

static fault fault_of(int round) { return (fault){ .who = round % RANKS, .spec = specs[round / RANKS % 2] }; }

static dt_tensor *start(dt_context *ctx, const char *spec)
{
    return dt_full(dt_spec_parse(dt_mesh_create(ctx, "x=3"), spec), 1);
}

/* ---- one rank fails alone ---------------------------------------------------------------------------------------- */

static dt_status fails_alone(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx, f->spec);
    if (dt_rank(ctx) == f->who) dt_context_fail(ctx, DT_ERR_IO, "the disk is full");
    dt_redistribute(x, "");
    dt_redistribute(x, "x:S(0)");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_fails(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = fault_of(round);
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, fails_alone, &f, error, sizeof error);
        expect(status == DT_ERR_IO && strstr(error, "the disk is full"), "round %d: %d %s", round, (int)status, error);
        for (int r = 0; r < RANKS; r++) {
            dt_status want = r == f.who ? DT_ERR_IO : DT_ERR_PEER;
            expect(f.seen[r] == want && strstr(f.said[r], "the disk is full"), "round %d, rank %d: %s", round, r,
                   f.said[r]);
        }
    }
}

/* ---- one rank calls something else ------------------------------------------------------------------------------- */

static dt_status calls_otherwise(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx, f->spec);
    dt_redistribute(x, dt_rank(ctx) == f->who ? "x:S(0)" : "");
    dt_redistribute(x, "");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_calls_otherwise(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = fault_of(round);
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, calls_otherwise, &f, error, sizeof error);
        expect(status == DT_ERR_DESYNC, "round %d: %s", round, error);
        expect(strstr(error, "redistribute f32[") && strstr(error, "]@x:P(sum) to f32["), "names the calls: %s", error);
        for (int r = 0; r < RANKS; r++)
            expect(f.seen[r] == DT_ERR_DESYNC || f.seen[r] == DT_ERR_PEER, "round %d, rank %d: %s", round, r,
                   f.said[r]);
    }
}

/* ---- one rank returns early -------------------------------------------------------------------------------------- */

static dt_status returns_early(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx, f->spec);
    if (dt_rank(ctx) == f->who) return DT_OK;
    dt_redistribute(x, "");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_returns_early(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = fault_of(round);
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, returns_early, &f, error, sizeof error);
        expect(status == DT_ERR_PEER, "round %d: %s", round, error);
        for (int r = 0; r < RANKS; r++)
            expect(r == f.who || (f.seen[r] == DT_ERR_PEER && strstr(f.said[r], "returned")), "rank %d: %s", r,
                   f.said[r]);
    }
}

/* ---- all fail alike ---------------------------------------------------------------------------------------------- */

static dt_status fail_alike(dt_context *ctx, void *arg)
{
    dt_tensor *x = start(ctx, arg);
    for (int i = 0; i < 20; i++) {
        expect(!dt_redistribute(x, "q:R"), "no such mesh dim");
        expect(dt_context_status(ctx) == DT_ERR_PLACEMENT && dt_context_clear(ctx) == DT_OK, "%s",
               dt_context_error(ctx));
        dt_tensor *y = dt_redistribute(x, "");
        expect(y && ((const float *)dt_tensor_data(y))[63] == 1, "and all goes on: %s", dt_context_error(ctx));
    }
    return dt_context_status(ctx);
}

static void all_fail_alike(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(specs); i++)
        expect(dt_launch_threads(RANKS, fail_alike, (void *)(uintptr_t)specs[i], error, sizeof error) == DT_OK, "%s",
               error);
}

/* ---- in the middle of an all-reduce ------------------------------------------------------------------------------ */

/* This rank has begun, so that peers write to its result; then it fails, and makes other tensors of the memory. */
static dt_status fails_in_the_middle(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_work *work = dt_redistribute_start(start(ctx, f->spec), "");
    if (dt_rank(ctx) == f->who) dt_context_fail(ctx, DT_ERR_IO, "the disk is full");
    dt_work_wait(work);
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_fails_in_the_middle(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = { .who = round % RANKS, .spec = specs[1] };
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, fails_in_the_middle, &f, error, sizeof error);
        expect(status == DT_ERR_IO && strstr(error, "the disk is full"), "round %d: %d %s", round, (int)status, error);
        for (int r = 0; r < RANKS; r++) {
            dt_status want = r == f.who ? DT_ERR_IO : DT_ERR_PEER;
            expect(f.seen[r] == want && strstr(f.said[r], "the disk is full"), "round %d, rank %d: %s", round, r,
                   f.said[r]);
        }
    }
}

/* All have begun, and fail alike before they wait: what they began goes on when they have cleared. */
static dt_status fail_alike_in_the_middle(dt_context *ctx, void *arg)
{
    dt_tensor *x = start(ctx, arg);
    for (int i = 0; i < 20; i++) {
        dt_work *work = dt_redistribute_start(x, "");
        expect(!dt_redistribute(x, "q:R") && dt_context_clear(ctx) == DT_OK, "no such mesh dim");
        dt_tensor *y = dt_work_wait(work);
        expect(y && ((const float *)dt_tensor_data(y))[63] >= 1, "it goes on: %s", dt_context_error(ctx));
    }
    return dt_context_status(ctx);
}

static void all_fail_alike_in_the_middle(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(specs); i++)
        expect(dt_launch_threads(RANKS, fail_alike_in_the_middle, (void *)(uintptr_t)specs[i], error, sizeof error)
               == DT_OK, "%s", error);
}

/* One has begun and comes too late to the end: the others do not wait for ever. All have written for it by then, so its
 * own result is right; it hears of them in its next call. */
static dt_status stays_away(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx, f->spec);
    dt_work *work = dt_redistribute_start(x, "");
    while (dt_rank(ctx) == f->who && atomic_load(&f->gone) < RANKS - 1)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    dt_tensor *y = dt_work_wait(work);
    if (dt_rank(ctx) == f->who)
        expect(y && ((const float *)dt_tensor_data(y))[300 * 101 - 1] >= 1, "complete: %s", dt_context_error(ctx));
    dt_redistribute(x, "");
    see(ctx, f);
    atomic_fetch_add(&f->gone, 1);
    return dt_context_status(ctx);
}

static void one_stays_away(void)
{
    setenv("DT_TIMEOUT", "0.5", 1);
    for (int round = 0; round < RANKS; round++) {
        fault f = { .who = round, .spec = specs[1] };
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, stays_away, &f, error, sizeof error);
        expect(status == DT_ERR_TIMEOUT && strstr(error, "did not come to redistribute"), "%d %s", (int)status, error);
        for (int r = 0; r < RANKS; r++)
            expect(f.seen[r] == DT_ERR_TIMEOUT || f.seen[r] == DT_ERR_PEER, "rank %d: %s", r, f.said[r]);
    }
    unsetenv("DT_TIMEOUT");
}

/* ---- sources that end while peers still take --------------------------------------------------------------------- */

static dt_status sources_end(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3");
    const dt_spec *spec = dt_spec_parse(mesh, "i64[999]@x:S(0)");
    for (int i = 0; i < 200; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_tensor *whole = dt_redistribute(dt_arange(spec, i, 1), "");
        const int64_t *at = dt_tensor_data(whole);
        bool right = true;
        for (int k = 0; k < 999; k++) right &= at[k] == i + k;
        expect(right, "round %d on rank %d", i, dt_rank(ctx));
        dt_scope_pop(ctx, scope, NULL); /* the part may be asked for still: its memory is not used again before    */
    }
    return dt_context_status(ctx);
}

static void sources_end_early(void)
{
    char error[512] = "";
    expect(dt_launch_threads(RANKS, sources_end, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "one_fails", one_fails },
    { "one_calls_otherwise", one_calls_otherwise },
    { "one_returns_early", one_returns_early },
    { "all_fail_alike", all_fail_alike },
    { "one_fails_in_the_middle", one_fails_in_the_middle },
    { "all_fail_alike_in_the_middle", all_fail_alike_in_the_middle },
    { "one_stays_away", one_stays_away },
    { "sources_end_early", sources_end_early },
};

const suite the_suite = { "faults", rows, DT_COUNT(rows) };
