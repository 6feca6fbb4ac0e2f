/* SPDX-License-Identifier: Apache-2.0
 *
 * Which placements a bound rule takes along one mesh dim, and what its results are then. The one place that decides it:
 * no op knows a placement. Pure: it writes to its arguments alone.
 *
 * One mesh dim either splits one factor or none.
 *  - Splits one: all operands that have the factor are S, the others R. A result that has it is S. A result that lacks
 *    it is P of the letter's kind: sums of sums, and averages too, for kernels divide by the global size.
 *  - "!" letters are whole to the fused kernel, "~" letters where they are reduced: neither is split here.
 *  - But where the row decomposes a "!" letter may be: all others are R, and a result that lacks it is R.
 *  - A polynomial row takes P(sum) and P(avg): in a monomial one operand may be it, the others are R; or a split letter
 *    is reduced in it. Then every monomial is P of one kind. One that is R becomes P(sum), for free: by one of its
 *    operands, which keeps its value on the first rank alone (*lift*), or the number 1, added there alone. R is P(avg)
 *    as it is. P(avg) beside P(sum) is divided by the ranks (*rescale*).
 *  - An operand in no monomial is R or S, never P. What a polynomial row keeps ("|") hangs on such operands alone.
 *  - A "none" row takes no P(sum), P(avg). Its reductions are outermost: sum over k of some f(x), not f of a sum.
 *  - Of integers, P(avg) is reduced first, and P(max), P(min) where the row is a polynomial (propagate.c): they round
 *    and wrap.
 *  - P(max), P(min) pass a row marked rising, swapped where the operand falls: one operand is P, all others R. Not
 *    where that operand has a "!" letter, which mixes elements, nor a letter reduced by another kind, nor where results
 *    are kept.
 *  - P(prod) is reduced first.
 *  - Letters that an index map leads between are split together: S(n1) of x gives S(n) of the result. A result that has
 *    none of them is R: one index goes to all ranks. Nothing is reduced.
 *  - A new letter is split where it is asked for, and all operands are R; not one with "!". */
#ifndef DTI_OPS_PARTIAL_H
#define DTI_OPS_PARTIAL_H

#include "ops/bind.h"

typedef struct dti_place {             /* of one tensor along the mesh dim; all zero: R                            */
    int8_t what;                       /* a dti_place_kind                                                         */
    int8_t kind;                       /* of P: a dti_partial                                                      */
    int16_t factor;                    /* of S: a bound factor                                                     */
} dti_place;

typedef struct dti_strategy {          /* along one mesh dim                                                       */
    dti_place operand[DTI_MAX_OPERANDS]; /* as the kernel takes them, before lift and rescale; absent ones R       */
    dti_place fresh;                   /* S: a factor of a new letter, as it was asked for                         */
    dti_place result[DTI_MAX_RESULTS];
    uint32_t lift;                     /* operands that are R and become P(sum): R but on the first rank nothing   */
    uint32_t rescale;                  /* operands that are P(avg) and are taken as P(sum): divided by the ranks   */
    uint32_t broken;                   /* 1: it splits a "!" letter, and the op is made of others                  */
    uint32_t lift_number;              /* 1: the number 1 is added on the first rank alone                         */
} dti_strategy;

static inline dti_place dti_place_partial(dti_partial kind) { return (dti_place){ DTI_PLACE_P, (int8_t)kind, 0 }; }

/* Results that a caller sees, not kept ones, that have a letter, or one that is mapped to or from it. */
static inline uint32_t dti_seen_results(const dti_rule *rule, const dti_bound *bound, int letter)
{
    return dti_bound_results(bound, letter) & ((1u << dti_rule_results(rule)) - 1);
}

/* Is operand (and fresh) of a strategy legal? Then the rest of it is written. The reason goes to *why* (NULL: nowhere),
 * one sentence without an end: what comes of it, or what forbids it and what would do. */
bool dti_partial_decide(const dti_rule *rule, const dti_bound *bound, dti_strategy *strategy, dti_pen *why);

/* Write the legal strategies for one mesh dim, at most max, and return how many. *kinds*: what each operand may be
 * besides R and S, bit k for P of dti_partial k, so bit 1 << DTI_SUM where it is P(sum) now; NULL: all. In this order:
 *  1. nothing is split: operands R, P(sum), P(avg), the last operand changing fastest; first all R; where more than
 *     five may be P, all of them are it or none;
 *  2. P(max), then P(min), operand after operand;
 *  3. each bound factor that operands have, in its order; for each, P of operands that lack it as in 1;
 *  4. each bound factor of new letters. */
/* Are those with fewer kinds all among them, in this order? */
bool dti_partial_lists_all(const dti_rule *rule, const uint8_t *kinds);
int dti_partial_strategies(const dti_rule *rule, const dti_bound *bound, const uint8_t *kinds,
                           dti_strategy *strategies, int max);

/* A placement as messages say it: "R", "S(k)", "P(sum)". */
void dti_put_place(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, dti_place place);
/* All of a strategy, as in "a S(k), b S(k) -> P(sum)". */
void dti_put_strategy(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, const dti_strategy *strategy);

#endif
