/* SPDX-License-Identifier: Apache-2.0
 *
 * Training steps of a Llama on 1, 2 and 4 thread ranks, placed as examples/llama places it: time, tokens per second,
 * the share of communication, bytes, memory, page faults. Every row trains the same model on the same batches, and must
 * end with the same loss. It does not judge what is learnt: the text is noise.
 *
 *   bench_train [--json] [--small] [--size=tiny|small|10m] [--steps=N] [--warmup=N] [--only=ROW] [--list] */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* getrusage's fields */
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <dtensor/dtensor.h>

#include "comm/comm.h"
#include "place.h"
#include "report.h"

enum { MOST_STEPS = 1000, MOST_RANKS = 4, TEXT = 1 << 16 };

typedef struct size { const char *name; dt_llama_params model; int64_t batch, length; } model_size;

static const model_size sizes[] = { /* as of examples/llama */
    { "tiny", { .vocab = 256, .width = 64, .layers = 2, .heads = 4, .kv_heads = 2, .mlp_width = 176 }, 8, 64 },
    { "small", { .vocab = 256, .width = 128, .layers = 4, .heads = 8, .kv_heads = 4, .mlp_width = 344 }, 8, 128 },
    { "10m", { .vocab = 256, .width = 320, .layers = 8, .heads = 8, .kv_heads = 4, .mlp_width = 864 }, 8, 256 },
};

typedef struct row { const char *name; int ranks; const char *mesh, *style; } layout;

static const layout rows[] = {
    { "1", 1, "dp=1,tp=1", "dp" },
    { "2-dp", 2, "dp=2,tp=1", "dp" },
    { "2-fsdp", 2, "dp=2,tp=1", "fsdp" },
    { "2-tp", 2, "dp=1,tp=2", "tp" },
    { "2-sp", 2, "dp=1,tp=2", "sp" },
    { "4-dp", 4, "dp=4,tp=1", "dp" },
    { "4-fsdp", 4, "dp=4,tp=1", "fsdp" },
    { "4-tp", 4, "dp=1,tp=4", "tp" },
    { "4-sp", 4, "dp=1,tp=4", "sp" },
    { "4-sp+fsdp", 4, "dp=2,tp=2", "sp+fsdp" },
};

/* Of one rank, over the measured steps. */
typedef struct record {
    double comm_ns, comm_cpu_ns, cpu_ns; /* in the backend's calls; of this thread in them, and in all              */
    int64_t received, implied, peak; /* bytes, calls, bytes                                                         */
} record;

typedef struct bench {
    bench_report report;
    const model_size *size;
    const layout *row;
    int steps, warmup;
    double step_ns[MOST_STEPS], process_ns, loss; /* rank 0's                                                      */
    long faults;
    record of[MOST_RANKS];
} bench;

/* ---- time in the backend ----------------------------------------------------------------------------------------- *
 * A rank's backend is asked through a table of its own, which has clocks around the backend's. Taking data and waiting
 * for those who have not come are one time by the wall, and two by the clock of the CPU.                             */

static double cpu_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef struct clocks { const dti_comm_ops *ops; dti_comm_ops timed; int depth; double wall, cpu, since, cpu_since; }
    clocks;

static _Thread_local clocks here;  /* a rank is a thread                                                           */

static void enter(void)
{
    if (here.depth++) return;
    here.since = bench_now_ns();
    here.cpu_since = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

static dt_status leave(dt_status status)
{
    if (--here.depth) return status;
    here.cpu += cpu_ns(CLOCK_THREAD_CPUTIME_ID) - here.cpu_since;
    here.wall += bench_now_ns() - here.since;
    return status;
}

static dt_status timed_start(dti_group *group, const dti_exchange *exchange)
{
    enter();
    return leave(here.ops->start(group, exchange));
}

static dt_status timed_finish(dti_group *group)
{
    enter();
    return leave(here.ops->finish(group));
}

static dt_status timed_barrier(dti_group *group, dti_call call)
{
    enter();
    return leave(here.ops->barrier(group, call));
}

static dt_status timed_all_reduce(dti_group *group, const dti_exchange *exchange)
{
    enter();
    return leave(here.ops->all_reduce(group, exchange));
}

static dt_status timed_list(dti_group *group, const dti_exchange *list, int n, bool all_reduce)
{
    enter();
    return leave(here.ops->start_list(group, list, n, all_reduce));
}

static dt_status timed_withdraw(dti_comm *comm, const dti_storage *storage)
{
    enter();
    return leave(here.ops->withdraw(comm, storage));
}

static void watch(dti_comm *comm)
{
    if (!comm) return;             /* one rank                                                                     */
    here = (clocks){ .ops = comm->ops, .timed = *comm->ops };
    here.timed.start = timed_start;
    here.timed.finish = timed_finish;
    here.timed.barrier = timed_barrier;
    if (here.ops->all_reduce) here.timed.all_reduce = timed_all_reduce;
    if (here.ops->start_list) here.timed.start_list = timed_list;
    if (here.ops->withdraw) here.timed.withdraw = timed_withdraw;
    comm->ops = &here.timed;
}

/* Before the thread ends: what is left of the context asks the table that stays. */
static void unwatch(dti_comm *comm)
{
    if (comm) comm->ops = here.ops;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct training {
    dt_context *ctx;
    dt_mesh *mesh;
    dt_module *model;
    dt_optim *adamw;
    dt_text *text;
    const dt_spec *batch;
} training;

/* Bytes that look like nothing, the same on all ranks. */
static dt_text *noise(dt_context *ctx)
{
    unsigned char *bytes = malloc(TEXT);
    uint32_t state = 1;
    for (int i = 0; bytes && i < TEXT; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
    dt_text *text = bytes ? dt_text_from_bytes(ctx, bytes, TEXT) : NULL;
    free(bytes);
    return text;
}

static bool begin(training *t, dt_context *ctx, const bench *run)
{
    placement p;
    const model_size *size = run->size;
    *t = (training){ .ctx = ctx };
    if (!placement_read(ctx, run->row->style, &p)) return false;
    t->mesh = dt_mesh_create(ctx, run->row->mesh);
    t->model = dt_nn_llama(t->mesh, &size->model);
    if (!t->model || placement_apply(&p, t->model, DT_DTYPE_DEFAULT)) return false;
    dt_module_materialize(t->model, 1);
    t->adamw = dt_optim_adamw(t->model, &(dt_adamw_params){ .beta2 = 0.95, .weight_decay = 0.1,
                                                            .no_decay = "**.*norm.weight" });
    t->text = noise(ctx);
    t->batch = dt_spec_create(t->mesh, DT_I32, DT_SHAPE(size->batch, size->length), placement_batch(&p));
    return dt_context_status(ctx) == DT_OK;
}

static double train_step(const training *t, int64_t step)
{
    int scope = dt_scope_push(t->ctx, 0);
    dt_tensor *ids, *targets;
    dt_context_step(t->ctx, step, 0);
    dt_text_batch(t->text, t->batch, 0, 1, 1, step, &ids, &targets);
    dt_module_zero_grad(t->model);
    dt_tensor *loss = dt_token_loss(dt_module_call(t->model, ids), targets, NULL);
    dt_backward(loss, NULL);
    double value = dt_tensor_item(loss);
    dt_tensor *norm = dt_clip_grad_norm(t->model, 1.0);
    dt_optim_step(t->adamw, 1e-3);
    dt_tensor_item(norm);
    dt_scope_pop(t->ctx, scope, NULL);
    return value;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void meet(const training *t)
{
    int scope = dt_scope_push(t->ctx, 0);
    dt_tensor_item(dt_full(dt_spec_create(t->mesh, DT_F32, DT_SCALAR, "dp:P,tp:P"), 1));
    dt_scope_pop(t->ctx, scope, NULL);
}

/* Of the whole process: the threads of kernels fault, too. */
static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int64_t received(const dt_counters *counters)
{
    int64_t bytes = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) bytes += counters->bytes[kind];
    return bytes;
}

/* All steps, not inlined: instructions are counted within. A step is as long on every rank, for it ends with a word of
 * all. */
__attribute__((noinline)) static double run_steps(const training *t, bench *run)
{
    bool first = dt_rank(t->ctx) == 0;
    double loss = 0;
    for (int i = 0; i < run->steps && dt_context_status(t->ctx) == DT_OK; i++) {
        double since = bench_now_ns();
        loss = train_step(t, run->warmup + i);
        if (first) run->step_ns[i] = bench_now_ns() - since;
    }
    return loss;
}

static void measure(const training *t, bench *run)
{
    record *own = &run->of[dt_rank(t->ctx)];
    bool first = dt_rank(t->ctx) == 0;
    for (int i = 0; i < run->warmup; i++) train_step(t, i);
    meet(t);
    dt_counters before = dt_mesh_counters(t->mesh, NULL);
    double wall = here.wall, cpu = here.cpu, thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    if (first) run->faults = -faults(), run->process_ns = -cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    double loss = run_steps(t, run);
    dt_counters after = dt_mesh_counters(t->mesh, NULL);
    *own = (record){ here.wall - wall, here.cpu - cpu, cpu_ns(CLOCK_THREAD_CPUTIME_ID) - thread,
                     received(&after) - received(&before), after.implied - before.implied, after.memory_peak };
    meet(t);
    if (!first) return;
    run->faults += faults(), run->process_ns += cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    run->loss = loss;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    bench *run = arg;
    training t;
    watch(dti_comm_of(ctx));
    if (begin(&t, ctx, run)) measure(&t, run);
    unwatch(dti_comm_of(ctx));
    return dt_context_status(ctx);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void report(bench *run)
{
    double n = run->steps, all = 0, comm = 0, thread = 0, moving = 0;
    int64_t most = 0, peak = 0, implied = 0;
    for (int i = 0; i < run->steps; i++) all += run->step_ns[i];
    for (int r = 0; r < run->row->ranks; r++) {
        const record *own = &run->of[r];
        comm += own->comm_ns, moving += own->comm_cpu_ns, thread += own->cpu_ns;
        if (own->received > most) most = own->received;
        if (own->peak > peak) peak = own->peak;
        if (own->implied > implied) implied = own->implied;
    }
    double median = bench_median(run->step_ns, run->steps);
    double tokens = (double)(run->size->batch * run->size->length);
    bench_cell cells[] = {
        { "ranks", NULL, run->row->ranks, 0 }, { "mesh", run->row->mesh, 0, 0 }, { "style", run->row->style, 0, 0 },
        { "step_ms", NULL, median * 1e-6, 1 }, { "q1", NULL, run->step_ns[run->steps / 4] * 1e-6, 1 },
        { "q3", NULL, run->step_ns[run->steps * 3 / 4] * 1e-6, 1 }, { "tokens/s", NULL, tokens * 1e9 / median, 0 },
        { "cpu_ms", NULL, run->process_ns * 1e-6 / n, 1 },
        { "comm_%", NULL, 100 * comm / (all * run->row->ranks), 1 },
        { "comm_cpu_%", NULL, 100 * moving / thread, 1 },
        { "recv_KiB", NULL, (double)most / 1024 / n, 1 }, { "peak_MiB", NULL, (double)peak / 1048576, 1 },
        { "faults", NULL, (double)run->faults / n, 2 }, { "implied", NULL, (double)implied / n, 1 },
        { "loss", NULL, run->loss, 6 },
    };
    bench_row(&run->report, cells, DT_COUNT(cells));
}

static bool measure_row(bench *run, const layout *row, double *loss)
{
    char error[256] = "";
    run->row = row;
    if (dt_launch_threads(row->ranks, rank_main, run, error, sizeof error)) {
        fprintf(stderr, "%s: %s\n", row->name, error);
        return false;
    }
    report(run);
    if (*loss == 0) *loss = run->loss;
    if (fabs(run->loss - *loss) <= 1e-4 * *loss) return true;
    fprintf(stderr, "%s: expected a loss of %g as before, got %g\n", row->name, *loss, run->loss);
    return false;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct options { const char *size, *only, *steps, *warmup; bool json, small, list; } options;

static const char *value_of(const char *arg, const char *name)
{
    size_t n = strlen(name);
    return strncmp(arg, name, n) == 0 ? arg + n : NULL;
}

static bool read_option(options *o, const char *arg)
{
    const struct { const char *name; const char **to; } texts[] = {
        { "--size=", &o->size }, { "--only=", &o->only }, { "--steps=", &o->steps }, { "--warmup=", &o->warmup },
    };
    const struct { const char *name; bool *to; } flags[] = {
        { "--json", &o->json }, { "--small", &o->small }, { "--list", &o->list },
    };
    for (int i = 0; i < DT_COUNT(flags); i++)
        if (strcmp(arg, flags[i].name) == 0) return *flags[i].to = true;
    for (int i = 0; i < DT_COUNT(texts); i++)
        if (value_of(arg, texts[i].name)) return *texts[i].to = value_of(arg, texts[i].name), true;
    return false;
}

static bool set_up(bench *run, const options *o)
{
    const char *name = o->size ? o->size : o->small ? "tiny" : "10m";
    for (int i = 0; i < DT_COUNT(sizes); i++)
        if (strcmp(sizes[i].name, name) == 0) run->size = &sizes[i];
    run->steps = o->steps ? atoi(o->steps) : o->small ? 2 : 15;
    run->warmup = o->warmup ? atoi(o->warmup) : o->small ? 1 : 4;
    return run->size && run->steps > 0 && run->steps <= MOST_STEPS && run->warmup >= 0;
}

static int list(void)
{
    for (int i = 0; i < DT_COUNT(rows); i++)
        printf("%s %d %s %s\n", rows[i].name, rows[i].ranks, rows[i].mesh, rows[i].style);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static bench run;
    options o = { 0 };
    bool known = true, ok = true;
    double loss = 0;
    for (int i = 1; i < argc; i++) known &= read_option(&o, argv[i]);
    if (!known || !set_up(&run, &o)) return fprintf(stderr, "usage: see the head of bench/train.c\n"), 2;
    if (o.list) return list();
    bench_begin(&run.report, o.json);
    bench_section(&run.report, "train", "Training steps of a Llama");
    for (int i = 0; i < DT_COUNT(rows) && ok; i++)
        if (!o.only || strcmp(o.only, rows[i].name) == 0) ok = measure_row(&run, &rows[i], &loss);
    bench_end(&run.report);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
