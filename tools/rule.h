/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dt rule` finds out, and who prints it. */
#ifndef DT_RULE_H
#define DT_RULE_H

#include <stdio.h>

#include "ops/dispatch.h"

/* Attributes by the table of an op, from texts name=value: dim=1, dims=0,2, keep=true, value=-0.5, dtype=bf16,
 * shape=2,3. values has DT_MAX_ATTRIBUTE_BYTES, zeroed. false: the context says which text, and where in it. */
bool rule_attributes(dt_context *ctx, const dt_op *op, const char *const *texts, int n, void *values);
/* A kind of attribute as a word: "int". */
const char *rule_attribute_kind(dt_attribute_kind which);

enum {
    RULE_MOVES = 2,                    /* an operand may become R on its way                                       */
    RULE_PULLS = DT_MAX_OPERANDS,      /* results that an index map leads to, behind the operands                  */
    RULE_TENSORS = RULE_PULLS + DT_MAX_RESULTS
};

/* One way to take a call's operands, and what moves for it. */
typedef struct rule_way {
    const dti_answer *answer;
    const dt_plan *plans[RULE_TENSORS][RULE_MOVES]; /* one behind the other; NULL: none                            */
    int64_t moved[RULE_TENSORS];       /* received of an operand, or a result, by its busiest rank                 */
    bool pulls;                        /* results are pulled                                                       */
    int64_t statistics, calls;         /* bytes of what is reduced where the op is made of others, in calls        */
    int64_t bytes;                     /* received by the busiest rank, of all these together and of statistics    */
} rule_way;

typedef struct rule_report {
    const dt_op *op;
    dt_op own;                         /* the op, where it is no row of the table                                  */
    dt_mesh *mesh;
    int n, attribute_count;            /* operands, absent ones too; attributes given                              */
    const dt_spec *given[DT_MAX_OPERANDS];
    const char *attribute_texts[DT_MAX_ATTRIBUTES];
    _Alignas(16) unsigned char values[DT_MAX_ATTRIBUTE_BYTES]; /* of the attributes, as dt_apply takes them        */
    dti_asking asking;
    dti_propagation taken, listed;     /* what a call takes; it and what it could take                             */
    rule_way way;                      /* what a call takes                                                        */
    int other_count;
    rule_way others[DTI_MAX_ALTERNATIVES]; /* cheapest first                                                       */
} rule_report;

/* false: memory ran out. */
bool rule_print_text(FILE *out, const rule_report *report);
void rule_print_json(FILE *out, const rule_report *report);

#endif
