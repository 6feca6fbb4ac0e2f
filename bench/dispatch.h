/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the benchmark of calls of ops. */
#ifndef BENCH_DISPATCH_H
#define BENCH_DISPATCH_H

#include <dtensor/dtensor.h>

#include "report.h"

typedef struct bench_dispatch {
    bench_report report;
    bool small;                    /* few rounds and small arrays: to see that it runs                             */
    const char *only;              /* repeat one kind of call and print how many they were (instructions.sh)       */
} bench_dispatch;

bool bench_known(bench_dispatch *run);
bool bench_uncached(bench_dispatch *run);
bool bench_mlp(bench_dispatch *run);

/* The error of a context goes to standard error; true if there is none. */
bool bench_done(const dt_context *ctx);

#endif
