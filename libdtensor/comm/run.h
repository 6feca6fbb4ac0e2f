/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a program on all its ranks: contexts made, threads started and joined, the first error found. It prints
 * nothing. */
#ifndef DTI_RUN_H
#define DTI_RUN_H

#include <dtensor/context.h>

typedef struct dti_run {
    int ranks;
    bool dry;                      /* rank 0 alone, without data, in the calling thread                            */
    bool bind;                     /* ranks on CPUs of their own where there are enough                            */
    int argc;                      /* a command line that every rank's context reads; argv NULL: none              */
    char **argv;
    dt_rank_fn fn;
    void *arg;
} dti_run;

typedef struct dti_outcome {
    dt_status status;              /* of the rank that failed first                                                */
    bool usage;                    /* it was an error of the command line                                          */
    char error[1200];              /* its message; "rank 2: " before it where not all ranks say the same           */
    char *help;                    /* --help was given: its text, which the caller frees; else NULL                */
} dti_outcome;

/* Returns outcome->status. */
dt_status dti_run_program(const dti_run *run, dti_outcome *outcome);

#endif
