/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as calls use them: attributes in canonical form, dtypes matched, texts parsed. A row whose texts are fixed is
 * parsed once per context. */
#ifndef DTI_OPS_ROW_H
#define DTI_OPS_ROW_H

#include <dtensor/op.h>

#include "ops/propagate.h"

/* A call's attributes: the struct with dims counted from 0, and the bytes by which it is remembered: the same with
 * numbers replaced by their sign. */
typedef struct dti_attributes {
    const dt_spec *asked;              /* where the first result is to lie; remembered, too; NULL: anywhere        */
    size_t bytes;
    _Alignas(16) unsigned char values[DT_MAX_ATTRIBUTE_BYTES], key[DT_MAX_ATTRIBUTE_BYTES];
} dti_attributes;

/* Attributes of a call on operands of which the first has this shape (NULL: it is absent). false and DT_ERR_ARG: a dim
 * out of range, or named twice; values missing. */
bool dti_attributes_read(dt_context *ctx, const dt_op *op, const void *values, const dt_shape *first,
                         dti_attributes *out);

/* The head for a call of n operands: "cat(x0, x1)" for "cat(x...)"; *text* is room for it. */
const char *dti_row_head(const dt_op *op, int n, char *text, size_t room);
/* "dim=1", of the struct's values; by_sign: of a number its sign alone, "value<0". */
void dti_put_attribute(dti_pen *pen, const dt_attribute *a, const void *values, bool by_sign);

/* The question to propagate for a call; rule goes to *rule, sizes to *sizes, both of the caller. false and the error:
 * the row's texts, operands missing, dtypes that do not mix, shapes that do not fit. */
typedef struct dti_asking {
    dti_ask ask;
    dti_rule rule;
    dt_derived derived;
    dti_letter_size sizes[DT_MAX_DIMS];
} dti_asking;

bool dti_row_ask(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes,
                 dti_asking *out);

#endif
