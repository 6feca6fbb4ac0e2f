/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a call give on a mesh what it gives on one rank? What is promised without data is written down first, then ranks
 * run, and write down what they see. */
#ifndef OPS_JUDGE_H
#define OPS_JUDGE_H

#include "placed.h"

typedef placed_effort judge_effort;

typedef struct judge_count {           /* combinations of placements                                               */
    int64_t walked, cases;             /* propagated; and executed                                                 */
    int64_t moved, summed;             /* where something was redistributed; judged within a bound, not bit for bit */
} judge_count;

/* How many ranks a mesh has. */
int judge_ranks(const char *mesh);
/* All calls on a mesh of one or two dims, "x=2,y=3". What is wrong is a failure of the running test. */
judge_count judge(const op_calls *calls, const char *mesh, const judge_effort *effort);

#endif
