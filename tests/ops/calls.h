/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of an op, found from its row alone: shapes from the rule, attributes from their table, dtypes from their
 * letters, and what one rank makes of them. */
#ifndef OPS_CALLS_H
#define OPS_CALLS_H

#include "ops/row.h"
#include "elements.h"

enum { CALL_OPERANDS = 8, CALL_RESULTS = 4 };

typedef struct call_result {
    dt_dtype dtype;
    int64_t count;
    void *values;                      /* of one rank                                                              */
    double *magnitude[2];              /* per element, of what it is the sum of; [1]: where operands are, too      */
} call_result;

typedef struct op_call {
    const dt_op *op;
    int n, result_count;               /* operands; results that a caller sees                                     */
    value_kind kind;
    dti_form form[CALL_OPERANDS];      /* sizes, products as the rule has them, and dtype; 0: absent               */
    double *values[CALL_OPERANDS];
    _Alignas(16) unsigned char attributes[DT_MAX_ATTRIBUTE_BYTES];
    call_result result[CALL_RESULTS];
} op_call;

typedef struct op_calls {
    int count, refused;                /* refused: shapes, attributes or dtypes that the op does not take          */
    op_call *call;
} op_calls;

/* Up to *wanted* calls that one rank can do, twice as many of a row with texts, or with numbers: what is remembered of
 * a call must not hang on them; fewer where the row has no more. What fails otherwise is a failure of the running
 * test. */
op_calls calls_make(const dt_op *op, int wanted);
void calls_free(op_calls *calls);

/* Elements of an operand. */
int64_t call_count(const op_call *call, int operand);
/* Operands as text, with those specs; those that are NULL by the sizes alone. */
const char *call_text(const op_call *call, const char *const *specs, char *text, size_t room);
/* The letter of the row's dtypes for an operand, 't' where it has none. */
char call_dtype_letter(const dt_op *op, int operand);
/* Seed of an element's values. */
static inline uint64_t call_seed(const op_call *call, int operand, int64_t element)
{
    return ((uint64_t)operand << 40 ^ (uint64_t)element) * 2654435761u + (uint64_t)call->kind;
}

#endif
