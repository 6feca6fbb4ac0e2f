/* SPDX-License-Identifier: Apache-2.0
 *
 * From pulls to copies: where the elements of a pull lie in the array of the rank that has them and in that of the rank
 * that takes them. A rank's part of a holding is one array, row-major over the blocks, each index counted within the
 * rank's set. */
#ifndef DTI_COMPILE_H
#define DTI_COMPILE_H

#include "comm/comm.h"
#include "redistribute/plan.h"

typedef struct dti_copies { dti_copy *at; int n, capacity; bool lost; } dti_copies; /* lost: memory ran out         */

/* What one rank does in one step. */
typedef struct dti_action {
    const dti_step *step;
    int source, target;            /* step whose result is read, -1: the plan's source; whose buffer is written: this
                                      step's own, -1: the plan's target                                            */
    bool moves;                    /* does anything cross ranks; the same on every rank                            */
    bool all_reduces;              /* the whole plan, as one call of the backend: gets write to all ranks of the group,
                                      and there is nothing left for a second step                                  */
    dti_group *group;              /* NULL where nothing does, or this rank takes no part                          */
    dti_copies gets, early;        /* early: from the plan's source, without communication                         */
    int64_t elements;              /* of this step's own buffer                                                    */
    int64_t received;              /* bytes from others, by the copies, and by those that write here               */
} dti_action;

typedef struct dti_program {
    int action_count;
    dti_action *actions;           /* one per step                                                                 */
    int64_t elements;              /* of the target's part                                                         */
    const char *call;              /* "redistribute A to B", for ranks that call other things                      */
    bool partly;                   /* some of these no step writes: they are the identity of the sum               */
} dti_program;

/* The rank's program; NULL and the error on failure. */
dti_program *dti_program_new(const dt_plan *plan);
void dti_program_free(dti_program *program);

#endif
