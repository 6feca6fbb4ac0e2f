/* SPDX-License-Identifier: Apache-2.0
 *
 * The legal strategies along one mesh dim, listed: what may be is built operand by operand, and dti_partial_decide says
 * which of it is. */
#include "ops/partial.h"

#include <string.h>

typedef struct listing {
    const dti_rule *rule;
    const dti_bound *bound;
    const uint8_t *kinds;
    dti_strategy *out, s;
    int max, n, factor;                /* factor: that is split; -1: none                                          */
    uint32_t sums;                     /* operands that may be P(sum), P(avg) here                                 */
} listing;

static bool may_be(const listing *l, int operand, dti_partial kind)
{
    return (l->bound->present >> operand & 1) && (!l->kinds || (l->kinds[operand] >> kind & 1));
}

static void add_if_legal(listing *l)
{
    if (l->n < l->max && dti_partial_decide(l->rule, l->bound, &l->s, NULL)) l->out[l->n++] = l->s;
}

/* Operands that have the split factor. */
static uint32_t split_operands(const listing *l)
{
    return l->factor < 0 ? 0 : dti_bound_operands(l->bound, l->bound->factor[l->factor].letter);
}

/* Operands that may be P beside the split, as far as is quickly seen: none where a result keeps the split, and none
 * that share a monomial with it. */
static uint32_t summable(const listing *l)
{
    uint32_t split = split_operands(l), sums = dti_rule_operands(l->rule);
    if (l->factor < 0) return sums;
    if (dti_seen_results(l->rule, l->bound, l->bound->factor[l->factor].letter)) return 0;
    for (int i = 0; i < l->rule->monomial_count; i++)
        if (l->rule->monomial[i].operands & split) sums &= ~l->rule->monomial[i].operands;
    return sums;
}

/* Operands that are P and share a monomial with this one. */
static bool has_partial_partner(const listing *l, int operand)
{
    uint32_t partners = 0;
    for (int i = 0; i < l->rule->monomial_count; i++)
        if (l->rule->monomial[i].operands >> operand & 1) partners |= l->rule->monomial[i].operands;
    for (int o = 0; o < operand; o++)
        if ((partners >> o & 1) && l->s.operand[o].what == DTI_PLACE_P) return true;
    return false;
}

enum { MOST_VARIED = 5 };              /* operands: their choices fit the list                                     */

bool dti_partial_lists_all(const dti_rule *rule, const uint8_t *kinds)
{
    int n = 0;
    for (int o = 0; o < rule->operand_count; o++) n += kinds[o] >> DTI_SUM & 1 || kinds[o] >> DTI_AVG & 1;
    return n <= MOST_VARIED;
}

/* Of many operands that may be P all are, or none. */
static void vary_together(listing *l)
{
    uint32_t split = split_operands(l);
    for (int all = 0; all < 2; all++) {
        for (int o = 0; o < l->rule->operand_count; o++) {
            int own = split >> o & 1 ? dti_bound_operand_factor(l->bound, l->factor, o) : 0;
            dti_partial kind = may_be(l, o, DTI_SUM) ? DTI_SUM : may_be(l, o, DTI_AVG) ? DTI_AVG : DTI_PARTIAL_NONE;
            l->s.operand[o] = split >> o & 1 ? (dti_place){ DTI_PLACE_S, 0, (int16_t)own } : (dti_place){ 0 };
            if (all && kind && (l->sums >> o & 1) && !has_partial_partner(l, o))
                l->s.operand[o] = dti_place_partial(kind);
        }
        add_if_legal(l);
    }
}

static int varied(const listing *l)
{
    int n = 0;
    for (int o = 0; o < l->rule->operand_count; o++)
        n += (l->sums >> o & 1) && (may_be(l, o, DTI_SUM) || may_be(l, o, DTI_AVG));
    return n;
}

/* All choices for the operands from this one on. */
static void vary(listing *l, int operand)
{
    if (operand == l->rule->operand_count) {
        add_if_legal(l);
        return;
    }
    bool split = split_operands(l) >> operand & 1;
    int own = split ? dti_bound_operand_factor(l->bound, l->factor, operand) : 0;
    l->s.operand[operand] = split ? (dti_place){ DTI_PLACE_S, 0, (int16_t)own } : (dti_place){ 0 };
    vary(l, operand + 1);
    if (split || !(l->sums >> operand & 1) || has_partial_partner(l, operand)) return;
    for (dti_partial kind = DTI_SUM; kind <= DTI_AVG && l->n < l->max; kind++) {
        if (!may_be(l, operand, kind)) continue;
        l->s.operand[operand] = dti_place_partial(kind);
        vary(l, operand + 1);
    }
    l->s.operand[operand] = (dti_place){ 0 };
}

static void list_sums(listing *l, int factor)
{
    l->factor = factor;
    l->sums = summable(l);
    memset(&l->s, 0, sizeof l->s);
    if (l->kinds && varied(l) > MOST_VARIED) vary_together(l);
    else vary(l, 0);
}

static void list_trends(listing *l)
{
    for (int o = 0; o < l->rule->operand_count; o++)
        for (dti_partial kind = DTI_MAX; kind <= DTI_MIN; kind++) {
            if (!may_be(l, o, kind)) continue;
            memset(&l->s, 0, sizeof l->s);
            l->s.operand[o] = dti_place_partial(kind);
            add_if_legal(l);
        }
}

/* A factor of a letter that operands have; of those that an index map leads between, the first. */
static bool is_listed(const dti_bound *bound, int factor)
{
    int letter = bound->factor[factor].letter;
    if (!bound->letter[letter].operands) return false;
    for (int i = 0; i < letter; i++)
        if (bound->letter[i].operands && dti_bound_alike(bound, i, letter)) return false;
    return true;
}

static void list_fresh(listing *l, int factor)
{
    memset(&l->s, 0, sizeof l->s);
    l->s.fresh = (dti_place){ DTI_PLACE_S, 0, (int16_t)factor };
    add_if_legal(l);
}

int dti_partial_strategies(const dti_rule *rule, const dti_bound *bound, const uint8_t *kinds,
                           dti_strategy *strategies, int max)
{
    listing l = { .rule = rule, .bound = bound, .kinds = kinds, .out = strategies, .max = max };
    list_sums(&l, -1);
    list_trends(&l);
    for (int f = 0; f < bound->factor_count; f++)
        if (is_listed(bound, f)) list_sums(&l, f);
    for (int f = 0; f < bound->factor_count; f++)
        if (!dti_bound_operands(bound, bound->factor[f].letter)) list_fresh(&l, f);
    return l.n;
}
