/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that do not do the same: every rank is told, with the reason, and none waits for ever. */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "suite.h"

enum { RANKS = 3, ROUNDS = 50 };

typedef struct fault { int who; dt_status seen[RANKS]; char said[RANKS][256]; } fault;

static void see(dt_context *ctx, fault *f)
{
    f->seen[dt_rank(ctx)] = dt_context_status(ctx);
    snprintf(f->said[dt_rank(ctx)], sizeof f->said[0], "%s", dt_context_error(ctx));
}

static dt_tensor *start(dt_context *ctx)
{
    return dt_full(dt_spec_parse(dt_mesh_create(ctx, "x=3"), "f32[64]@x:P"), 1);
}

/* ---- one rank fails alone ---------------------------------------------------------------------------------------- */

static dt_status fails_alone(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx);
    if (dt_rank(ctx) == f->who) dt_context_fail(ctx, DT_ERR_IO, "the disk is full");
    dt_redistribute(x, "");
    dt_redistribute(x, "x:S(0)");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_fails(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = { .who = round % RANKS };
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
    dt_tensor *x = start(ctx);
    dt_redistribute(x, dt_rank(ctx) == f->who ? "x:S(0)" : "");
    dt_redistribute(x, "");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_calls_otherwise(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = { .who = round % RANKS };
        char error[512] = "";
        dt_status status = dt_launch_threads(RANKS, calls_otherwise, &f, error, sizeof error);
        expect(status == DT_ERR_DESYNC, "round %d: %s", round, error);
        expect(strstr(error, "redistribute f32[64]@x:P(sum) to f32[64]"), "names the calls: %s", error);
        for (int r = 0; r < RANKS; r++)
            expect(f.seen[r] == DT_ERR_DESYNC || f.seen[r] == DT_ERR_PEER, "round %d, rank %d: %s", round, r,
                   f.said[r]);
    }
}

/* ---- one rank returns early -------------------------------------------------------------------------------------- */

static dt_status returns_early(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dt_tensor *x = start(ctx);
    if (dt_rank(ctx) == f->who) return DT_OK;
    dt_redistribute(x, "");
    see(ctx, f);
    return dt_context_status(ctx);
}

static void one_returns_early(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fault f = { .who = round % RANKS };
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
    (void)arg;
    dt_tensor *x = start(ctx);
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
    expect(dt_launch_threads(RANKS, fail_alike, NULL, error, sizeof error) == DT_OK, "%s", error);
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
    { "sources_end_early", sources_end_early },
};

const suite the_suite = { "faults", rows, DT_COUNT(rows) };
