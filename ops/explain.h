/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a call takes the placements it does: what it was given, what it takes and what moves for that, what else it could
 * take. It asks as a call asks, and makes the plans of what would move. Invariant: what it says is taken is what
 * dt_apply takes. Pure, but for what plans and specs intern. */
#ifndef DTI_OPS_EXPLAIN_H
#define DTI_OPS_EXPLAIN_H

#include "ops/dispatch.h"

enum {
    DTI_MOVES = 2,                     /* an operand may become R on its way                                       */
    DTI_PULLS = DT_MAX_OPERANDS,       /* results that an index map leads to, behind the operands                  */
    DTI_MOVING = DTI_PULLS + DT_MAX_RESULTS
};

/* One way to take a call's operands, and what moves for it. */
typedef struct dti_way {
    const dti_answer *answer;
    const dt_plan *plans[DTI_MOVING][DTI_MOVES]; /* one behind the other; NULL: none                               */
    int64_t moved[DTI_MOVING];         /* received of an operand, or a result, by its busiest rank                 */
    bool pulls;                        /* results are pulled                                                       */
    int64_t statistics, calls;         /* received by the busiest rank where the op is made of others, in calls     */
    int64_t bytes;                     /* received by the busiest rank, of all these together and of statistics    */
} dti_way;

typedef struct dti_explanation {
    const dt_op *op;
    dt_mesh *mesh;                     /* of the call: what refines the operands' views                            */
    int n;                             /* operands, absent ones too                                                */
    const dt_spec *given[DT_MAX_OPERANDS], *on[DT_MAX_OPERANDS]; /* on: on the call's mesh                          */
    bool by_sign;                      /* of numbers among attributes only the sign is said                        */
    dti_attributes attributes;
    dti_asking asking;
    dti_propagation taken, listed;     /* what a call takes; it and what it could take                             */
    dti_way way;                       /* what a call takes                                                        */
    int other_count;
    dti_way others[DTI_MAX_ALTERNATIVES]; /* cheapest first                                                        */
} dti_explanation;

/* Explain a call of op on operands with these specs; mesh: theirs; asked: as in dti_attributes. false and the error:
 * see dt_apply. */
bool dti_explain(dt_mesh *mesh, const dt_op *op, const dt_spec *const *given, int n, const void *attributes,
                 const dt_spec *asked, dti_explanation *out);

enum { DTI_REASON = 1024 };

/* What happens along one mesh dim. */
typedef struct dti_reason {
    const char *dim;
    char takes[DTI_REASON], why[DTI_REASON];
    bool moves;                        /* some placement is not kept                                               */
    char given[DTI_REASON], refusal[DTI_REASON]; /* then: as it was given, and what forbids that; "": nothing      */
} dti_reason;

typedef void (*dti_reason_fn)(const dti_reason *reason, void *arg);

/* Every mesh dim of more than one rank. */
void dti_explain_along(const dti_explanation *e, dti_reason_fn fn, void *arg);
/* All of it, as `dt rule` and dt_explain show it; the caller frees it. NULL: memory ran out. */
char *dti_explain_text(const dti_explanation *e);

#endif
