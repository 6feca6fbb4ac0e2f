/* SPDX-License-Identifier: Apache-2.0
 *
 * Redistribution of tensors on rank threads: time of dt_redistribute, plan and result included, beside all ranks
 * copying as many bytes as their results have. GB/s: bytes of all ranks' results over the time. */
#include <string.h>

#include <dtensor/dtensor.h>

#include "comm.h"

enum { COLUMNS = 1024 };

typedef struct move { const char *name, *from, *to; } move;

static const move moves[] = {
    { "S(0) -> S(1)", "x:S(0)", "x:S(1)" },
    { "P -> R", "x:P", "" },
    { "S(0) -> R", "x:S(0)", "" },
};

typedef struct job {
    const bench_comm *run;
    const move *m;
    size_t bytes;                  /* of the whole tensor                                                          */
    int rounds;                    /* told by rank 0                                                               */
    size_t result_bytes;           /* of rank 0's result                                                           */
    double move_us, copy_us;       /* medians                                                                      */
} job;

typedef struct side { dt_context *ctx; dti_group *group; dt_tensor *x; dti_storage *from, *to; const move *m; } side;

static double move_us(side *s)
{
    int scope = dt_scope_push(s->ctx, 0);
    bench_meet(s->group);
    double begin = bench_now_ns();
    dt_redistribute(s->x, s->m->to);
    bench_meet(s->group);
    double us = (bench_now_ns() - begin) / 1000;
    dt_scope_pop(s->ctx, scope, NULL);
    return us;
}

static double copy_us(side *s)
{
    bench_meet(s->group);
    double begin = bench_now_ns();
    memcpy(s->to->bytes, s->from->bytes, s->to->n);
    bench_meet(s->group);
    return (bench_now_ns() - begin) / 1000;
}

/* The tensor, and room to copy as many bytes as the result has. */
static bool make(side *s, dt_context *ctx, job *j)
{
    char text[64];
    *s = (side){ .ctx = ctx, .group = bench_world(ctx), .m = j->m };
    snprintf(text, sizeof text, "x=%d", dt_rank_count(ctx));
    dt_mesh *mesh = dt_mesh_create(ctx, text);
    snprintf(text, sizeof text, "f32[%zu,%d]@%s", j->bytes / COLUMNS / sizeof(float), COLUMNS, j->m->from);
    s->x = dt_full(dt_spec_parse(mesh, text), 1);
    dt_tensor *y = dt_redistribute(s->x, j->m->to);
    size_t n = y ? j->bytes / (strcmp(j->m->to, "") == 0 ? 1 : (size_t)dt_rank_count(ctx)) : 0;
    s->from = dti_storage_new(ctx, n);
    s->to = dti_storage_new(ctx, n);
    if (!s->group || !y || !s->from || !s->to) return false;
    memset(s->from->bytes, 1, n);
    memset(s->to->bytes, 1, n);
    if (dt_rank(ctx) == 0) j->result_bytes = n;
    return true;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    job *j = arg;
    side s;
    double moved[BENCH_MAX_ROUNDS], copied[BENCH_MAX_ROUNDS];
    if (!make(&s, ctx, j)) return dt_context_status(ctx);
    move_us(&s);
    double once = move_us(&s) + copy_us(&s);
    if (dt_rank(ctx) == 0) j->rounds = bench_rounds(j->run, once);
    bench_meet(s.group);
    for (int r = 0; r < j->rounds; r++) {
        moved[r] = move_us(&s);
        copied[r] = copy_us(&s);
    }
    if (dt_rank(ctx) == 0) {
        j->move_us = bench_median(moved, j->rounds);
        j->copy_us = bench_median(copied, j->rounds);
    }
    dti_storage_release(s.from);
    dti_storage_release(s.to);
    return dt_context_status(ctx);
}

static bool row(bench_comm *run, const move *m, int ranks, size_t bytes)
{
    job j = { .run = run, .m = m, .bytes = bytes };
    if (!bench_launch(run, ranks, rank_main, &j)) return false;
    double gigabytes = (double)j.result_bytes * ranks * 1e-9;
    bench_row(&run->report, (bench_cell[]){
        { "move", m->name, 0, 0 },
        { "ranks", NULL, ranks, 0 },
        { "bytes", NULL, (double)bytes, 0 },
        { "us", NULL, j.move_us, 2 },
        { "copy_us", NULL, j.copy_us, 2 },
        { "GB/s", NULL, gigabytes / (j.move_us * 1e-6), 2 },
        { "copy_GB/s", NULL, gigabytes / (j.copy_us * 1e-6), 2 },
        { "copy/move", NULL, j.copy_us / j.move_us, 2 },
    }, 8);
    return true;
}

bool bench_moves(bench_comm *run)
{
    static const int ranks[] = { 2, 8 };
    bool ok = true;
    bench_section(&run->report, "moves",
                  "dt_redistribute of f32 on rank threads, beside all ranks copying as many bytes as results have");
    for (int m = 0; m < DT_COUNT(moves); m++)
        for (int r = 0; r < DT_COUNT(ranks); r++)
            for (size_t bytes = 1 << 20; bytes <= (size_t)64 << 20 && ok; bytes *= run->small ? 64 : 4)
                ok = row(run, &moves[m], ranks[r], bytes);
    return ok;
}
