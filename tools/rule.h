/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dt rule` is asked, and who prints what it finds out. */
#ifndef DT_RULE_H
#define DT_RULE_H

#include <stdio.h>

#include "ops/explain.h"

/* Attributes by the table of an op, from texts name=value: dim=1, dims=0,2, keep=true, value=-0.5, dtype=bf16,
 * shape=2,3. values has DT_MAX_ATTRIBUTE_BYTES, zeroed. false: the context says which text, and where in it. */
bool rule_attributes(dt_context *ctx, const dt_op *op, const char *const *texts, int n, void *values);
/* A kind of attribute as a word: "int". */
const char *rule_attribute_kind(dt_attribute_kind which);

typedef struct rule_report {
    const dt_op *op;
    dt_op own;                         /* the op, where it is no row of the table                                  */
    dt_mesh *mesh;
    int n, attribute_count;            /* operands, absent ones too; attributes given                              */
    const dt_spec *given[DT_MAX_OPERANDS];
    const char *attribute_texts[DT_MAX_ATTRIBUTES];
    _Alignas(16) unsigned char values[DT_MAX_ATTRIBUTE_BYTES]; /* of the attributes, as dt_apply takes them        */
    dti_explanation why;
} rule_report;

void rule_print_json(FILE *out, const rule_report *report);

#endif
