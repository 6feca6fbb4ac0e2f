/* SPDX-License-Identifier: Apache-2.0
 *
 * Equations of einsum, "bij, bjk -> bik", read and given shapes. Pure: nothing is written but results and, on failure,
 * the context's error.
 *
 * notation   equation = term {"," term} ["->" term] ;   term = {letter} ["..." {letter}] ;
 * Blanks mean nothing. A letter is a dim of every term that has it, "..." any number of dims, aligned at the last.
 * Without "->" the result has "..." if an operand has, then the letters that stand once, A to Z, a to z. A letter
 * stands once in a term: a mesh dim splits one dim of a tensor, so a diagonal has no placement of its own. */
#ifndef DTI_OPS_EQUATION_H
#define DTI_OPS_EQUATION_H

#include <dtensor/op.h>

#include "core/pen.h"

typedef struct dti_subscripts {        /* a term                                                                   */
    int n, dots;                       /* letters; before which of them "..." stands: 0 .. n, -1: nowhere          */
    char letter[DT_MAX_DIMS];
} dti_subscripts;

typedef struct dti_equation {
    int n;                             /* operands                                                                 */
    dti_subscripts in[DT_MAX_OPERANDS], out;
} dti_equation;

/* Read. false and DT_ERR_PARSE with the column, also for what has no meaning: a letter twice in a term, one of the
 * result that no operand has. */
bool dti_equation_parse(dt_context *ctx, const char *text, dti_equation *out);
/* Canonical text: no blanks, a result always. */
void dti_equation_put(dti_pen *pen, const dti_equation *equation);

bool dti_subscripts_has(const dti_subscripts *term, char letter);

/* A letter for each dim of at most two operands and, behind them, of the result. A dim of 1 that is stretched, for
 * another operand has more there, has a letter of its own, which is summed away. */
typedef struct dti_lettered {
    int n;                             /* operands                                                                 */
    int dims[3];
    char letter[3][DT_MAX_DIMS];
} dti_lettered;

/* Operands as they are there: a shape of n = -1 is absent. Whether sizes agree is not asked. false and the error:
 * DT_ERR_ARG another number of operands; DT_ERR_SHAPE another number of dims, a result of too many. */
bool dti_equation_bind(dt_context *ctx, const dti_equation *equation, const dt_shape *shapes, dti_lettered *out);

#endif
