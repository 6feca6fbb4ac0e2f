/* SPDX-License-Identifier: Apache-2.0
 *
 * What any redistribution moves and costs, without running it. In a plan every rank pulls what its target holding has
 * and its source holding lacks; what is P is summed on the way, each element by one rank. A plan is a value: made from
 * two specs alone, the same on every rank, printed, priced, checked, executed.
 *
 * Bounds. A rank must receive what its target holding has and its source holding lacks. With P, an element of p
 * contributors and h target holders must be received p - 1 times to be summed and h - 1 times to be copied, once more
 * where no source holder is a target holder.
 */
#ifndef DTENSOR_PLAN_H
#define DTENSOR_PLAN_H

#include <dtensor/spec.h>

DT_BEGIN_DECLS

typedef enum dt_plan_goal {
    DT_PLAN_BYTES = 0,             /* fewest bytes on the slowest link class, then on the others, then fewest steps */
    DT_PLAN_TIME,                  /* least time among plans within 10 % of the fewest bytes; among all where no rank's
                                      part of the source has --dt-small bytes or more                              */
    DT_PLAN_GOAL_COUNT
} dt_plan_goal;

/* How to make target from source: two specs of one global shape, on one mesh, on views of it, or on two meshes of one
 * context, in any dtypes. Equal arguments give the same pointer. DT_ERR_SHAPE: shapes differ; DT_ERR_PLACEMENT: P of
 * one kind to P of another along the same ranks (sum and avg convert; where either end has integers P(avg) comes from R
 * and becomes R or S only); DT_ERR_ARG: specs of two contexts; DT_ERR_SHAPE, too: bytes of all ranks that an int64
 * might not count. Local. */
DT_API const dt_plan *dt_plan_create(const dt_spec *source, const dt_spec *target, dt_plan_goal goal);

typedef struct dt_plan_step {
    dt_comm_kind kind;             /* the collective whose work it is                                              */
    const char *dims;              /* mesh dims it runs along, "tp" or "dp,tp"; "dp=2 > pp=4" between two meshes. The
                                      plan owns the text                                                           */
    int64_t bytes;                 /* received by the busiest receiver of this step                                */
    int64_t messages;              /* that rank's; of more than 1,024 ranks one from each class of ranks that hold
                                      alike                                                                        */
    bool sums;                     /* contributions are summed on the way                                          */
    dt_dtype travels, sums_in, gives; /* sums_in: DT_DTYPE_DEFAULT where nothing is summed                         */
} dt_plan_step;

typedef struct dt_plan_cost {
    int64_t bytes;                 /* received by the busiest receiver, all steps                                  */
    int64_t sent;                  /* by the busiest sender; where link_sent is -1 as if all links were alike      */
    int64_t lower_bound;           /* of bytes, over all plans that move no more than total_bound in all           */
    int64_t total;                 /* received by all ranks                                                        */
    int64_t total_bound;           /* its lower bound                                                              */
    double ratio;                  /* bytes / lower_bound; 1 where both are 0                                      */
    int64_t peak_bytes;            /* source, target and what lies between, at once, on the rank with most         */
    double time_us;                /* by the price table                                                           */
    int link_count;                /* link classes of the topology, as in mesh.h                                   */
    int64_t link_bytes[DT_MAX_LINKS]; /* received over each class by its busiest receiver                          */
    int64_t link_sent[DT_MAX_LINKS];  /* sent over each class by its busiest sender; -1: not counted, the ranks are more
                                         than 1,024 and the classes more than one                                  */
} dt_plan_cost;

/* How many steps a plan has; 0 where source and target place the same elements alike. Local. */
DT_API int dt_plan_step_count(const dt_plan *plan);
/* One step, from 0; out of range all zero, its dims "". Local. */
DT_API dt_plan_step dt_plan_step_at(const dt_plan *plan, int step);
/* What it costs; all zero for NULL. Local. The first call on a plan counts what choosing it did not need. */
DT_API dt_plan_cost dt_plan_price(const dt_plan *plan);
/* The plan in words for a reader: a line for its ends, one per step, then its cost. "" for NULL. Local. The plan owns
 * the text. */
DT_API const char *dt_plan_text(const dt_plan *plan);
/* Bytes that a rank (as dt_rank counts) receives and sends in all; -1 for a rank out of range, and for what is sent
 * where link_sent is not counted. Local. */
DT_API int64_t dt_plan_received(const dt_plan *plan, int rank);
DT_API int64_t dt_plan_sent(const dt_plan *plan, int rank);
/* Does it keep its promises: every target element arrives once, from a rank that has it, sums count every contribution
 * once, steps take elements in the dtype they have? For tests and debug builds: as slow as the redistribution itself.
 * DT_OK, or the first broken promise. Local. */
DT_API dt_status dt_plan_check(const dt_plan *plan);

DT_END_DECLS

#endif
