/* SPDX-License-Identifier: Apache-2.0
 *
 * Are the gradients of a row right? On one rank they are held against differences; on a mesh, where operands lie in any
 * way, against one rank. */
#ifndef OPS_JUDGE_GRADIENTS_H
#define OPS_JUDGE_GRADIENTS_H

#include "judge.h"

typedef struct gradient_calls {        /* of one row                                                               */
    op_calls calls;
    int count;                         /* of those that have a gradient                                            */
    struct gradient_call *at;
} gradient_calls;

/* Up to about *wanted* calls of a row that has a gradient, and their gradients on one rank. */
gradient_calls gradients_make(const dt_op *op, int wanted);
void gradients_free(gradient_calls *calls);
/* How many elements were compared with differences. What is wrong is a failure of the running test. */
int64_t gradients_differ(const gradient_calls *calls);
/* All calls on a mesh, as judge does. */
judge_count gradients_judge(const gradient_calls *calls, const char *mesh, const judge_effort *effort);

#endif
