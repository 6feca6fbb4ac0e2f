/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the benchmark of rank threads, and what they have in common. */
#ifndef BENCH_COMM_H
#define BENCH_COMM_H

#include "comm/comm.h"
#include "report.h"

enum { BENCH_MAX_RANKS = 8, BENCH_MAX_ROUNDS = 201 };

typedef struct bench_comm {
    bench_report report;
    bool small;                    /* few rounds and sizes: to see that it runs                                    */
    int argc;                      /* the command line, for options of the library                                 */
    char **argv;
} bench_comm;

bool bench_collectives(bench_comm *run);
bool bench_moves(bench_comm *run);
bool bench_waiting(bench_comm *run);

/* fn on so many ranks, with the command line's options. */
bool bench_launch(const bench_comm *run, int ranks, dt_rank_fn fn, void *arg);
/* The group of all ranks; NULL and the error. */
dti_group *bench_world(dt_context *ctx);
/* All ranks meet. */
dt_status bench_meet(dti_group *group);
/* Rounds that fit the time of a row, if one takes so many microseconds: an odd number of 3 to BENCH_MAX_ROUNDS. */
int bench_rounds(const bench_comm *run, double round_us);

#endif
