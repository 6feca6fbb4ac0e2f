/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives of an MPI, measured as ../comm.c measures those of rank threads: rounds of some calls between two
 * barriers, kinds in turn, medians over rounds, beside all ranks copying as many bytes at once. run_mpi.sh builds and
 * runs it; neither the library nor its tests need it. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MAX_ROUNDS = 201, ROW_US = 300000 };

typedef enum kind { KIND_ALL_REDUCE, KIND_ALL_GATHER, KIND_COPY, KIND_COUNT } kind;

typedef struct side { int ranks, rank; size_t bytes; float *in, *out; } side; /* bytes: of the whole array         */

static void all_reduce(const side *s)
{
    MPI_Allreduce(s->in, s->out, (int)(s->bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_gather(const side *s)
{
    int piece = (int)(s->bytes / sizeof(float)) / s->ranks;
    MPI_Allgather(s->in, piece, MPI_FLOAT, s->out, piece, MPI_FLOAT, MPI_COMM_WORLD);
}

static void copy(const side *s)
{
    memcpy(s->out, s->in, s->bytes);
    __asm__ volatile("" ::: "memory");
}

static void (*const calls_of[KIND_COUNT])(const side *s) = {
    [KIND_ALL_REDUCE] = all_reduce, [KIND_ALL_GATHER] = all_gather, [KIND_COPY] = copy,
};

static double round_us(const side *s, kind k, int calls)
{
    if (calls > 1) calls_of[k](s);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = bench_now_ns();
    for (int i = 0; i < calls; i++) calls_of[k](s);
    MPI_Barrier(MPI_COMM_WORLD);
    return (bench_now_ns() - begin) / 1000 / calls;
}

static int calls_for(size_t bytes)
{
    int calls = (int)((4 << 20) / bytes);
    return calls < 1 ? 1 : calls > 400 ? 400 : calls;
}

/* As many as fit the time of a row; rank 0 says. */
static int rounds_for(const side *s, int calls)
{
    double once = 0;
    for (kind k = 0; k < KIND_COUNT; k++) once += round_us(s, k, calls) * calls;
    int rounds = once * MAX_ROUNDS < ROW_US ? MAX_ROUNDS : (int)(ROW_US / once) | 1;
    rounds = rounds < 3 ? 3 : rounds;
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rounds;
}

static void row(bench_report *report, const side *s)
{
    double us[KIND_COUNT][MAX_ROUNDS], median[KIND_COUNT];
    int calls = calls_for(s->bytes), rounds = rounds_for(s, calls);
    for (int r = 0; r < rounds; r++)
        for (kind k = 0; k < KIND_COUNT; k++) us[k][r] = round_us(s, k, calls);
    for (kind k = 0; k < KIND_COUNT; k++) median[k] = bench_median(us[k], rounds);
    if (s->rank > 0) return;
    bench_row(report, (bench_cell[]){
        { "ranks", NULL, s->ranks, 0 },
        { "bytes", NULL, (double)s->bytes, 0 },
        { "all_reduce_us", NULL, median[KIND_ALL_REDUCE], 2 },
        { "all_gather_us", NULL, median[KIND_ALL_GATHER], 2 },
        { "copy_us", NULL, median[KIND_COPY], 2 },
        { "copy/all_reduce", NULL, median[KIND_COPY] / median[KIND_ALL_REDUCE], 2 },
        { "copy/all_gather", NULL, median[KIND_COPY] / median[KIND_ALL_GATHER], 2 },
    }, 7);
}

/* With --rows there is no title. */
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], title[256];
    int length;
    side s;
    bench_report report = { .out = stdout, .rows = argc > 1 && strcmp(argv[1], "--rows") == 0 };
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Get_library_version(version, &length);
    snprintf(title, sizeof title, "%.*s: collectives of f32 between processes, measured alike",
             (int)strcspn(version, ","), version);
    if (s.rank == 0 && report.rows == 0) bench_section(&report, "mpi", title);
    for (s.bytes = 32; s.bytes <= (size_t)256 << 20; s.bytes *= s.bytes < 1 << 20 ? 8 : 4) {
        s.in = malloc(s.bytes);
        s.out = malloc(s.bytes);
        if (!s.in || !s.out) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        for (size_t i = 0; i < s.bytes / sizeof(float); i++) s.in[i] = s.out[i] = 1;
        row(&report, &s);
        free(s.in);
        free(s.out);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
