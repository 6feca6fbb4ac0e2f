/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting under uneven load: rank 0 computes so long, in time on a CPU, and the others wait for it in a barrier. What
 * that costs: how much longer rank 0 takes than the same work without ranks that wait, the CPU time of who waits, and
 * how long after rank 0 has come each goes on. */
#include <time.h>

#include "comm.h"

typedef struct job {
    const bench_comm *run;
    double load_us;
    int rounds;
    double came_ns;                /* when rank 0 did, in this round                                               */
    double took[BENCH_MAX_ROUNDS], alone[BENCH_MAX_ROUNDS]; /* us, of rank 0; without the others                   */
    double cpu[BENCH_MAX_RANKS][BENCH_MAX_ROUNDS], late[BENCH_MAX_RANKS][BENCH_MAX_ROUNDS]; /* us, of the others   */
} job;

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* So many microseconds on a CPU, however long that takes. */
static void compute(double us)
{
    for (double end = cpu_us() + us; cpu_us() < end;) {}
}

/* How long that is while nobody waits. */
static double alone_us(job *j)
{
    for (int round = 0; round < j->rounds; round++) {
        double begin = bench_now_ns();
        compute(j->load_us);
        j->alone[round] = (bench_now_ns() - begin) / 1000;
    }
    return bench_median(j->alone, j->rounds);
}

static void be_late(job *j, dti_group *group, int round)
{
    double begin = bench_now_ns();
    compute(j->load_us);
    j->came_ns = bench_now_ns();
    j->took[round] = (j->came_ns - begin) / 1000;
    bench_meet(group);
}

static void wait_for_it(job *j, dti_group *group, int round)
{
    double begin = cpu_us();
    bench_meet(group);
    double end = bench_now_ns();
    j->cpu[group->index][round] = cpu_us() - begin;
    j->late[group->index][round] = (end - j->came_ns) / 1000;
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    job *j = arg;
    dti_group *group = bench_world(ctx);
    if (!group) return dt_context_status(ctx);
    for (int round = 0; round < j->rounds && !dt_context_status(ctx); round++) {
        bench_meet(group);
        if (group->index == 0) be_late(j, group, round);
        else wait_for_it(j, group, round);
    }
    return dt_context_status(ctx);
}

/* The median of the medians of those who wait, and the largest. */
static double median_of(double (*us)[BENCH_MAX_ROUNDS], int ranks, int rounds, double *largest)
{
    double medians[BENCH_MAX_RANKS];
    for (int r = 1; r < ranks; r++) medians[r - 1] = bench_median(us[r], rounds);
    double median = bench_median(medians, ranks - 1);
    *largest = medians[ranks - 2];
    return median;
}

static bool row(bench_comm *run, job *j, int ranks, double load_us)
{
    double slowest, busiest;
    *j = (job){ .run = run, .load_us = load_us, .rounds = bench_rounds(run, 2 * load_us) };
    double alone = alone_us(j);
    if (!bench_launch(run, ranks, rank_main, j)) return false;
    double took = bench_median(j->took, j->rounds), cpu = median_of(j->cpu, ranks, j->rounds, &busiest);
    double late = median_of(j->late, ranks, j->rounds, &slowest);
    bench_row(&run->report, (bench_cell[]){
        { "ranks", NULL, ranks, 0 },
        { "load_us", NULL, load_us, 0 },
        { "took_us", NULL, took, 2 },
        { "alone_us", NULL, alone, 2 },
        { "took/alone", NULL, took / alone, 2 },
        { "waiter_cpu_us", NULL, cpu, 2 },
        { "waiter_cpu/took", NULL, cpu / took, 2 },
        { "wake_us", NULL, late, 2 },
        { "slowest_wake_us", NULL, slowest, 2 },
    }, 9);
    return true;
}

bool bench_waiting(bench_comm *run)
{
    static const int ranks[] = { 2, 4, 8 };
    static const double loads[] = { 10, 100, 1000, 10000 };
    static job j;
    bool ok = true;
    bench_section(&run->report, "waiting",
                  "Waiting for one rank that computes longer: its time, CPU time of who waits, their delay after it");
    for (int r = 0; r < DT_COUNT(ranks); r++)
        for (int l = 0; l < DT_COUNT(loads) && ok; l++) ok = row(run, &j, ranks[r], loads[l]);
    return ok;
}
