/* SPDX-License-Identifier: Apache-2.0
 *
 * A rule and the shapes of a call make a bound rule: how large each letter is, which factors it has, what the results'
 * shapes are. Pure: nothing is written but *bound and, on failure, the context's error.
 *
 * A letter is seen as the common refinement of the dims bound to it: 30 with (5 6) is (5 6), (2 15) with (10 3) is
 * (2 5 3). A mesh dim may split any factor, or the letter as a whole. (5 6) with (6 5) has no common refinement: then
 * the letter is one factor, and *clash* has both operands; bound again with one of them unsplit, the other's factors
 * are the letter's. An operand's dim that is a product in the rule clashes alone if its factors do not fit the letters:
 * (3 8) where (g r) is 8 and 3.
 *
 * A letter through an index map is one factor, however its operand is cut: the map cuts it anew.
 *
 * A product is taken apart by what is known: sizes from other operands and attributes; else by the operand's own
 * factors, if they are as many as letters. The dims of "..." are letters without a name, behind those of the rule,
 * outermost first; they broadcast, aligned at the right, where dims of letters must be equal. */
#ifndef DTI_OPS_BIND_H
#define DTI_OPS_BIND_H

#include "ops/rule.h"
#include "placements/spec.h"

enum {
    DTI_MAX_BOUND = DTI_MAX_LETTERS + DT_MAX_DIMS, /* letters and dims of "..."                                    */
    DTI_MAX_BOUND_FACTORS = 128
};

typedef struct dti_letter_size { char letter; uint8_t number; int64_t size; } dti_letter_size;

typedef struct dti_rule_call {         /* what a rule is bound to                                                  */
    const dti_form *operand[DTI_MAX_OPERANDS]; /* sizes as products of factors; NULL: absent                       */
    const dt_shape *batch;             /* the shape that "..." must have: new or stretched; NULL: as operands say  */
    const dti_letter_size *sizes;      /* sizes that attributes give: of new letters, of parts of a product        */
    int size_count;
} dti_rule_call;

typedef struct dti_bound_letter {
    int64_t size;                      /* -1: of absent operands only                                              */
    int first, count;                  /* its factors, row-major: bound factors first .. first + count - 1         */
    int whole;                         /* the bound factor that is all of it: first where count is 1               */
    uint32_t operands;                 /* those that have it                                                       */
    uint32_t stretched;                /* those that broadcast over it: their dim is 1, or not there               */
    uint32_t clash;                    /* those that are cut otherwise: they can be used unsplit in this dim alone */
    uint32_t results;
    int map;                           /* the first letter of those that it is mapped to or from; -1: it is not    */
} dti_bound_letter;

typedef struct dti_bound_factor { int64_t size; int letter; } dti_bound_factor;

typedef struct dti_bound {
    int letter_count, batch_count;     /* letters: the rule's, then batch_count for the dims of "..."              */
    int factor_count;
    uint32_t present;                  /* bit i: operand i is there                                                */
    int operand_batch[DTI_MAX_OPERANDS]; /* how many dims "..." of an operand is                                   */
    dti_bound_letter letter[DTI_MAX_BOUND];
    dti_bound_factor factor[DTI_MAX_BOUND_FACTORS]; /* of letter after letter; a whole behind the factors it has   */
} dti_bound;

/* A tensor of a call, as its letters make it. */
typedef struct dti_bound_dims {
    dti_form form;                     /* sizes alone: dtype 0, nothing split or partial                           */
    int16_t factor[DT_MAX_FACTORS];    /* the bound factor that a factor of form is; -1: a dim of 1 that stretches */
} dti_bound_dims;

/* Are two letters one, or one through an index map? */
static inline bool dti_bound_alike(const dti_bound *bound, int a, int b)
{
    return a == b || (bound->letter[a].map >= 0 && bound->letter[a].map == bound->letter[b].map);
}

/* Operands, results that have a letter, or one that is mapped to or from it. */
uint32_t dti_bound_operands(const dti_bound *bound, int letter);
uint32_t dti_bound_results(const dti_bound *bound, int letter);
/* The factor that a mesh dim splits in an operand, in a result, where it splits this one: itself, or that of a letter
 * that its own is mapped to or from. */
int dti_bound_operand_factor(const dti_bound *bound, int factor, int operand);
int dti_bound_result_factor(const dti_bound *bound, int factor, int result);

/* A form that has these sizes, and nothing else. */
void dti_form_of_shape(dt_shape shape, dti_form *form);

/* Bind. false and the error otherwise, which shows the call: DT_ERR_ARG for a missing operand, DT_ERR_SHAPE for dims
 * that do not fit the rule or each other, sizes that nothing says, results beyond a limit. */
bool dti_rule_bind(dt_context *ctx, const dti_rule *rule, const dti_rule_call *call, dti_bound *bound);

/* Dims of an operand, which must be there, or of a result as products of bound factors; letters in *whole* (bit i:
 * bound letter i) are one factor. */
void dti_bound_operand(const dti_rule *rule, const dti_bound *bound, int operand, uint64_t whole,
                       dti_bound_dims *dims);
void dti_bound_result(const dti_rule *rule, const dti_bound *bound, int result, uint64_t whole, dti_bound_dims *dims);
/* Global shape of a result. */
dt_shape dti_bound_shape(const dti_rule *rule, const dti_bound *bound, int result);

/* A bound factor as messages say it: "k"; "k.1" for one of several; "...[0]" for the first dim of "...". */
void dti_put_factor(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, int factor);

#endif
