/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the redistribution benchmark, and the targets they are held against. */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include <dtensor/plan.h>

#include "report.h"

enum { BENCH_MAX_STATES = 625, BENCH_TEXT = 160 };

typedef struct bench_run {
    bench_report report;
    bool small;                    /* few rounds, little meshes: to see that it runs                               */
    int target_count, missed;
    struct bench_target { const char *what; double limit, measured; } targets[32];
} bench_run;

/* A measured value that has a limit; the same `what` again: the larger counts. */
void bench_target(bench_run *run, const char *what, double limit, double measured);

/* Bytes of libdtensor and of its peers over their bounds. false and a line on stderr: a plan failed, or a peer's chain
 * does not do what it claims. */
bool bench_bytes(bench_run *run);
/* Time to plan, to find a plan, to parse. */
bool bench_times(bench_run *run);
/* A mesh of 16,384 ranks. */
bool bench_large(bench_run *run);
/* One thing only, a fixed number of times, for a counter of instructions: prints the number. false: no such thing. */
bool bench_only(const char *what);

/* ---- pairs of placements ----------------------------------------------------------------------------------------- */

/* All placements of a mesh: digit d of a number, in base 4 or 5, is mesh dim d's of R, S(0), S(1), S(2), P. */
int bench_state_count(int mesh_dims, bool partial);
int bench_place(int state, int mesh_dim, bool partial);       /* -1 R, -2 P, else the dim                          */
const char *bench_mesh_text(char *text, const int *sizes, int mesh_dims);
/* "f32[48,48,48]@x:S(0),y:P" */
const char *bench_spec_text(char *text, const char *tensor, int state, int mesh_dims, bool partial);

#endif
