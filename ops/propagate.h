/* SPDX-License-Identifier: Apache-2.0
 *
 * Which placements a call's operands take, and its results get: of all assignments of mesh dims to factors that are
 * legal (partial.h), the cheapest. Pure: it makes specs, no plans, and moves nothing.
 *
 * An assignment is priced by closed formulas, in integers: what the busiest rank receives of each operand, over the
 * slowest link that changes, and its share of the work. Not by plans: those are made for the one that is taken.
 *  - A result that an index map cuts anew is priced as if all of a rank's part came from others.
 *  - A mesh dim along which all operands are R splits nothing, but a new letter as it is asked for.
 *  - What is P along several mesh dims is P of one kind, or of sum and avg: others do not mix.
 *  - A mesh dim along which some strategy moves nothing takes one of those; the others may take any.
 *  - Where a row is made of others, two numbers per row are summed besides, whatever it is made of.
 *  - Fewest nanoseconds win; then fewest bytes; then the first: mesh dims in their order, the last changing fastest,
 *    each through its strategies in the order of dti_partial_strategies.
 *  - Where that are more than MAX_TRIED assignments, dims are settled one after the other, each by the best it finds.
 * Several mesh dims that split one factor do it in the order in which an operand, the first that has two of them there,
 * is split; behind them those that split an operand there, the rest in the mesh's order.
 * Where operands are cut in ways that have no refinement (bind.h, clash), all are taken as one factor there, or one as
 * it is and the others unsplit, whatever costs least.
 * Operands that are written stay as they are: strategies that move them, or take them otherwise, are left out.
 * Where two letters are one dim of an operand, (n d), a mesh dim that splits the dim splits n if its pieces are equal:
 * the cuts are the same. Kinds of P that do not mix are not made in one result. */
#ifndef DTI_OPS_PROPAGATE_H
#define DTI_OPS_PROPAGATE_H

#include "ops/partial.h"

enum { DTI_MAX_ALTERNATIVES = 8 };

typedef struct dti_ask {
    const dti_rule *rule;
    const dt_spec *operand[DTI_MAX_OPERANDS]; /* all on one mesh; NULL: absent                                     */
    dt_dtype result[DTI_MAX_RESULTS];  /* DT_DTYPE_DEFAULT: that of the first operand                              */
    const dt_spec *asked;              /* new letters of the first result are split as here, where all are R; or NULL */
    int writes;                        /* so many of the first operands stay as they are, and are the results      */
    const dt_shape *batch;             /* as in dti_rule_call                                                      */
    const dti_letter_size *sizes;
    int size_count;
    int64_t flops;                     /* of the whole call; 0: one for each element of the largest tensor         */
} dti_ask;

/* One assignment, whole. */
typedef struct dti_answer {
    const dt_spec *used[DTI_MAX_OPERANDS];   /* what the kernel takes; as given where nothing changes              */
    const dt_spec *result[DTI_MAX_RESULTS];
    uint32_t number_dims;              /* bit d: along mesh dim d, the number 1 is added on the first rank alone   */
    uint32_t broken_dims;              /* bit d: along mesh dim d, a "!" letter is split                           */
    int64_t bytes, ns;                 /* by the formulas                                                          */
    dti_strategy along[DT_MAX_MESH_DIMS];
} dti_answer;

typedef struct dti_propagation {
    dt_mesh *mesh;
    dti_bound bound;
    int answer_count;                  /* cheapest first; at least 1                                               */
    dti_answer answer[DTI_MAX_ALTERNATIVES];
} dti_propagation;

/* How many of the cheapest are wanted: 1 for a call, more for those who ask why. false and the error: the rule does
 * not bind, operands lie on different meshes, memory ran out. */
bool dti_propagate(dt_context *ctx, const dti_ask *ask, int wanted, dti_propagation *out);

#endif
