/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of collectives between rank threads beside what memory allows: every rank copying as many bytes at once.
 *
 *   bench_comm [--small] [collectives] [moves] [waiting] [--dt-... options]
 *
 * Without names all three parts; this file has the first, and main.
 *
 * An all-reduce in one step: every rank takes everything; in two: a reduce-scatter and an all-gather; and the backend's
 * own. A round is some calls of one kind between two barriers, after one that is not counted; kinds take turns; times
 * are medians over rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"

enum { MAX_RANKS = BENCH_MAX_RANKS, MAX_ROUNDS = BENCH_MAX_ROUNDS, ROW_US = 300000 };

typedef enum kind { KIND_ONE_STEP, KIND_TWO_STEPS, KIND_OWN, KIND_ALL_GATHER, KIND_COPY, KIND_COUNT } kind;

typedef struct bench {
    const bench_comm *run;
    int rounds;                    /* told by rank 0                                                               */
    size_t bytes;                  /* of the whole array                                                           */
    double us[KIND_COUNT];         /* medians, by rank 0                                                           */
} bench;

typedef struct side {              /* one rank's                                                                   */
    dti_group *group;
    dti_storage *in, *out;
    int64_t n;                     /* elements                                                                     */
    dti_copy all[MAX_RANKS], part[MAX_RANKS], share[MAX_RANKS], others[MAX_RANKS], pieces[MAX_RANKS];
} side;

static int64_t cut(int64_t n, int i, int k) { return (i * n + k - 1) / k; }

static void describe(side *s)
{
    int n = s->group->n, me = s->group->index, at = 0;
    int64_t own = cut(s->n, me, n);
    for (int m = 0; m < n; m++) {
        int64_t lo = cut(s->n, m, n), run = cut(s->n, m + 1, n) - lo;
        s->all[m] = (dti_copy){ .member = m, .contribution = m, .run = s->n };
        s->part[m] = (dti_copy){ .member = m, .contribution = m, .run = cut(s->n, me + 1, n) - own, .from = own };
        s->share[m] = s->part[m];
        s->share[m].to = own;
        s->pieces[m] = (dti_copy){ .member = m, .run = run, .from = lo, .to = lo };
        if (m != me) s->others[at++] = s->pieces[m];
    }
}

static dt_status one_step(side *s)
{
    return dti_exchange_run(s->group, &(dti_exchange){
        .call = { 1, "all_reduce" }, .dtype = DT_F32, .source = s->in, .target = s->out->bytes, .gets = s->all,
        .get_count = s->group->n, .contributions = s->group->n, .target_dtype = DT_F32 });
}

static dt_status two_steps(side *s)
{
    const dti_comm_ops *ops = s->group->comm->ops;
    float *own = (float *)s->out->bytes + cut(s->n, s->group->index, s->group->n);
    dt_status status = dti_exchange_run(s->group, &(dti_exchange){
        .call = { 2, "reduce_scatter" }, .dtype = DT_F32, .source = s->in, .target = own, .gets = s->part,
        .get_count = s->group->n, .contributions = s->group->n, .target_dtype = DT_F32 });
    if (status) return status;
    status = ops->start(s->group, &(dti_exchange){
        .call = { 3, "all_gather" }, .dtype = DT_F32, .source = s->out, .target = s->out->bytes, .gets = s->others,
        .get_count = s->group->n - 1, .target_dtype = DT_F32 });
    return status ? status : ops->finish(s->group);
}

static dt_status own(side *s)
{
    const dti_comm_ops *ops = s->group->comm->ops;
    dt_status status = ops->all_reduce(s->group, &(dti_exchange){
        .call = { 5, "all_reduce" }, .dtype = DT_F32, .source = s->in, .result = s->out, .gets = s->share,
        .get_count = s->group->n, .contributions = s->group->n, .target_dtype = DT_F32 });
    return status ? status : ops->finish(s->group);
}

static dt_status all_gather(side *s)
{
    return dti_exchange_run(s->group, &(dti_exchange){
        .call = { 4, "all_gather" }, .dtype = DT_F32, .source = s->in, .target = s->out->bytes, .gets = s->pieces,
        .get_count = s->group->n, .target_dtype = DT_F32 });
}

static dt_status copy(side *s)
{
    memcpy(s->out->bytes, s->in->bytes, s->in->n);
    __asm__ volatile("" ::: "memory");
    return DT_OK;
}

static dt_status (*const calls_of[KIND_COUNT])(side *s) = {
    [KIND_ONE_STEP] = one_step, [KIND_TWO_STEPS] = two_steps, [KIND_OWN] = own, [KIND_ALL_GATHER] = all_gather,
    [KIND_COPY] = copy,
};

/* One round of so many calls, us per call: all ranks begin together, and it is over when all are done. */
static double round_us(side *s, kind k, int calls)
{
    const dti_comm_ops *ops = s->group->comm->ops;
    dti_call barrier = { 9, "barrier" };
    calls_of[k](s);
    ops->barrier(s->group, barrier);
    double begin = bench_now_ns();
    for (int i = 0; i < calls; i++) calls_of[k](s);
    ops->barrier(s->group, barrier);
    return (bench_now_ns() - begin) / 1000 / calls;
}

static int calls_for(const bench *b)
{
    if (b->run->small) return 2;
    int calls = (int)((4 << 20) / b->bytes);
    return calls < 1 ? 1 : calls > 400 ? 400 : calls;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    bench *b = arg;
    double us[KIND_COUNT][MAX_ROUNDS];
    side s = { .group = bench_world(ctx) };
    s.in = dti_storage_new(ctx, b->bytes);
    s.out = dti_storage_new(ctx, b->bytes);
    if (!s.group || !s.in || !s.out) return dt_context_status(ctx);
    s.n = (int64_t)(b->bytes / sizeof(float));
    dti_numbers_fill(DT_F32, 1, s.in->bytes, s.n);
    dti_numbers_fill(DT_F32, 1, s.out->bytes, s.n);
    describe(&s);
    double once = 0;
    for (kind k = 0; k < KIND_COUNT; k++) once += round_us(&s, k, calls_for(b)) * calls_for(b);
    if (dt_rank(ctx) == 0) b->rounds = bench_rounds(b->run, once);
    bench_meet(s.group);
    for (int r = 0; r < b->rounds; r++)
        for (kind k = 0; k < KIND_COUNT; k++) us[k][r] = round_us(&s, k, calls_for(b));
    for (kind k = 0; k < KIND_COUNT; k++)
        if (dt_rank(ctx) == 0) b->us[k] = bench_median(us[k], b->rounds);
    dti_storage_release(s.in);
    dti_storage_release(s.out);
    return dt_context_status(ctx);
}

static bool row(bench_comm *run, bench *b, int ranks)
{
    if (!bench_launch(run, ranks, rank_main, b)) return false;
    bench_row(&run->report, (bench_cell[]){
        { "ranks", NULL, ranks, 0 },
        { "bytes", NULL, (double)b->bytes, 0 },
        { "1_step_us", NULL, b->us[KIND_ONE_STEP], 2 },
        { "2_steps_us", NULL, b->us[KIND_TWO_STEPS], 2 },
        { "all_reduce_us", NULL, b->us[KIND_OWN], 2 },
        { "all_gather_us", NULL, b->us[KIND_ALL_GATHER], 2 },
        { "copy_us", NULL, b->us[KIND_COPY], 2 },
        { "copy/2_steps", NULL, b->us[KIND_COPY] / b->us[KIND_TWO_STEPS], 2 },
        { "copy/all_reduce", NULL, b->us[KIND_COPY] / b->us[KIND_OWN], 2 },
        { "copy/all_gather", NULL, b->us[KIND_COPY] / b->us[KIND_ALL_GATHER], 2 },
    }, 10);
    return true;
}

/* Does every rank find room for two arrays of so many bytes? */
static bool fits_memory(int ranks, size_t bytes)
{
    double free_bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    return 3.0 * ranks * (double)bytes < free_bytes;
}

bool bench_collectives(bench_comm *run)
{
    static const int ranks[] = { 2, 4, 8 };
    bench b = { .run = run };
    bool ok = true;
    bench_section(&run->report, "comm",
                  "Collectives of f32 between rank threads, beside all ranks copying as many bytes at once");
    for (int i = 0; i < DT_COUNT(ranks); i++)
        for (b.bytes = 32; b.bytes <= (size_t)256 << 20 && ok; b.bytes *= run->small ? 512 : b.bytes < 1 << 20 ? 8 : 4)
            if (!run->small || b.bytes <= 1 << 20)
                if (fits_memory(ranks[i], b.bytes)) ok = row(run, &b, ranks[i]);
    return ok;
}

/* ---- what the parts have in common ------------------------------------------------------------------------------- */

bool bench_launch(const bench_comm *run, int ranks, dt_rank_fn fn, void *arg)
{
    enum { MAX_WORDS = 64 };
    char option[32], *words[MAX_WORDS], **line = words;
    int n = 0;
    snprintf(option, sizeof option, "--dt-ranks=%d", ranks);
    for (int i = 0; i < run->argc && n < MAX_WORDS - 2; i++) words[n++] = run->argv[i];
    words[n++] = option;
    words[n] = NULL;
    return dt_launch(&n, &line, fn, arg) == EXIT_SUCCESS;
}

dti_group *bench_world(dt_context *ctx)
{
    int ranks[MAX_RANKS], n = dt_rank_count(ctx);
    dti_comm *comm = dti_comm_of(ctx);
    for (int i = 0; i < n; i++) ranks[i] = i;
    return comm->ops->group(comm, ranks, n);
}

dt_status bench_meet(dti_group *group) { return group->comm->ops->barrier(group, (dti_call){ 9, "barrier" }); }

int bench_rounds(const bench_comm *run, double round_us)
{
    int rounds = round_us * MAX_ROUNDS < ROW_US ? MAX_ROUNDS : (int)(ROW_US / round_us) | 1;
    return run->small ? 1 : rounds < 3 ? 3 : rounds;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static const struct part { const char *name; bool (*fn)(bench_comm *); } parts[] = {
    { "collectives", bench_collectives },
    { "moves", bench_moves },
    { "waiting", bench_waiting },
};

static bool is_named(const bench_comm *run, const char *name)
{
    for (int i = 1; i < run->argc; i++)
        if (strcmp(run->argv[i], name) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    bench_comm run = { .argc = argc, .argv = argv };
    bool ok = true, all = true;
    run.small = is_named(&run, "--small");
    for (int i = 0; i < DT_COUNT(parts); i++) all &= !is_named(&run, parts[i].name);
    bench_begin(&run.report, false);
    for (int i = 0; i < DT_COUNT(parts) && ok; i++)
        if (all || is_named(&run, parts[i].name)) ok = parts[i].fn(&run);
    bench_end(&run.report);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
