/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of collectives between rank threads beside what memory allows: every rank copying as many bytes at once.
 *
 *   bench_comm [--small] [--dt-... options]
 *
 * An all-reduce in one step: every rank takes everything; in two: a reduce-scatter and an all-gather; the backend's
 * own; and dt_redistribute of P to R, which is one of these and all that is around it. A round is some calls of one
 * kind between two barriers, after one that is not counted; kinds take turns; times are medians over rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "report.h"
#include "tensor/tensor.h"

enum { MAX_RANKS = 8, MAX_ROUNDS = 41 };

typedef enum kind {
    KIND_ONE_STEP, KIND_TWO_STEPS, KIND_OWN, KIND_REDISTRIBUTE, KIND_ALL_GATHER, KIND_COPY, KIND_COUNT
} kind;

typedef struct bench {
    bool small;
    size_t bytes;                  /* of the whole array                                                           */
    double us[KIND_COUNT];         /* medians, by rank 0                                                           */
} bench;

typedef struct side {              /* one rank's                                                                   */
    dti_group *group;
    dt_tensor *x;                  /* P on all ranks                                                               */
    dti_storage *in, *out;         /* in: of x                                                                     */
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

static dt_status redistribute(side *s)
{
    int scope = dt_scope_push(s->x->ctx, 0);
    dt_redistribute(s->x, "");
    dt_scope_pop(s->x->ctx, scope, NULL);
    return dt_context_status(s->x->ctx);
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
    [KIND_ONE_STEP] = one_step, [KIND_TWO_STEPS] = two_steps, [KIND_OWN] = own, [KIND_REDISTRIBUTE] = redistribute,
    [KIND_ALL_GATHER] = all_gather, [KIND_COPY] = copy,
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
    if (b->small) return 2;
    int calls = (int)((4 << 20) / b->bytes);
    return calls < 1 ? 1 : calls > 2000 ? 2000 : calls;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    bench *b = arg;
    int ranks[MAX_RANKS], rounds = b->small ? 1 : b->bytes > 16 << 20 ? 15 : MAX_ROUNDS;
    double us[KIND_COUNT][MAX_ROUNDS];
    for (int i = 0; i < dt_rank_count(ctx); i++) ranks[i] = i;
    side s = { .group = dti_comm_of(ctx)->ops->group(dti_comm_of(ctx), ranks, dt_rank_count(ctx)) };
    s.n = (int64_t)(b->bytes / sizeof(float));
    s.x = dt_full(dt_spec_create(dt_mesh_create(ctx, "x"), DT_F32, DT_SHAPE(s.n), "x:P"), 1);
    s.out = dti_storage_new(ctx, b->bytes);
    if (!s.group || !s.x || !s.out) return dt_context_status(ctx);
    s.in = s.x->storage;
    dti_numbers_fill(DT_F32, 1, s.out->bytes, s.n);
    describe(&s);
    for (kind k = 0; k < KIND_COUNT; k++) round_us(&s, k, calls_for(b));
    for (int r = 0; r < rounds; r++)
        for (kind k = 0; k < KIND_COUNT; k++) us[k][r] = round_us(&s, k, calls_for(b));
    for (kind k = 0; k < KIND_COUNT; k++)
        if (dt_rank(ctx) == 0) b->us[k] = bench_median(us[k], rounds);
    dti_storage_release(s.out);
    return dt_context_status(ctx);
}

static bool row(bench_report *report, bench *b, int ranks, int argc, char **argv)
{
    char option[32], *words[MAX_ROUNDS], **line = words;
    int n = 0;
    snprintf(option, sizeof option, "--dt-ranks=%d", ranks);
    for (int i = 0; i < argc && n < MAX_ROUNDS - 2; i++) words[n++] = argv[i];
    words[n++] = option;
    words[n] = NULL;
    if (dt_launch(&n, &line, rank_main, b)) return false;
    bench_row(report, (bench_cell[]){
        { "ranks", NULL, ranks, 0 },
        { "bytes", NULL, (double)b->bytes, 0 },
        { "1_step_us", NULL, b->us[KIND_ONE_STEP], 2 },
        { "2_steps_us", NULL, b->us[KIND_TWO_STEPS], 2 },
        { "all_reduce_us", NULL, b->us[KIND_OWN], 2 },
        { "redistribute_us", NULL, b->us[KIND_REDISTRIBUTE], 2 },
        { "all_gather_us", NULL, b->us[KIND_ALL_GATHER], 2 },
        { "copy_us", NULL, b->us[KIND_COPY], 2 },
        { "copy/2_steps", NULL, b->us[KIND_COPY] / b->us[KIND_TWO_STEPS], 2 },
        { "copy/all_reduce", NULL, b->us[KIND_COPY] / b->us[KIND_OWN], 2 },
        { "copy/redistribute", NULL, b->us[KIND_COPY] / b->us[KIND_REDISTRIBUTE], 2 },
        { "copy/all_gather", NULL, b->us[KIND_COPY] / b->us[KIND_ALL_GATHER], 2 },
    }, 12);
    return true;
}

int main(int argc, char **argv)
{
    static const int ranks[] = { 2, 4, 8 };
    bench b = { .small = argc > 1 && strcmp(argv[1], "--small") == 0 };
    bench_report report;
    bool ok = true;
    bench_begin(&report, false);
    bench_section(&report, "comm",
                  "Collectives of f32 between rank threads, beside all ranks copying as many bytes at once");
    for (int i = 0; i < 3; i++)
        for (size_t bytes = 32; bytes <= (size_t)64 << 20 && ok; bytes *= b.small ? 512 : bytes < 1 << 20 ? 8 : 4) {
            b.bytes = bytes;
            ok = row(&report, &b, ranks[i], argc, argv);
        }
    bench_end(&report);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
