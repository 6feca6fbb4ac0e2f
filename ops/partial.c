/* SPDX-License-Identifier: Apache-2.0
 *
 * Legality along one mesh dim. A row is judged in one of three ways: a P(max) or P(min) passes a trend; a "none" row
 * takes splits alone; a polynomial row takes splits and sums, monomial by monomial. Invariant: what is called legal
 * gives the one-rank result, for every value of the operands. */
#include "ops/partial.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct judging {
    const dti_rule *rule;
    const dti_bound *bound;
    dti_strategy *s;
    dti_pen *why;
    int factor, letter;                /* that the mesh dim splits; -1: none                                       */
    uint32_t split, partial;           /* operands that are S, P                                                   */
} judging;

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef struct short_text { char text[32]; } short_text;

static short_text factor_text(const judging *j, int factor)
{
    short_text out;
    dti_pen pen = { out.text, sizeof out.text, 0 };
    dti_put_factor(&pen, j->rule, j->bound, factor);
    return out;
}

static short_text place_text(const judging *j, dti_place place)
{
    short_text out;
    dti_pen pen = { out.text, sizeof out.text, 0 };
    dti_put_place(&pen, j->rule, j->bound, place);
    return out;
}

static const char *name(const judging *j, int operand) { return dti_rule_name(j->rule, operand); }

/* A reason: what comes of it, or why not. Reasons of one strategy are joined. */
static void DT_PRINTF(2, 3) say(const judging *j, const char *format, ...)
{
    char text[256];
    va_list args;
    if (!j->why) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dti_put(j->why, "%s%s", j->why->at ? "; " : "", text);
}

void dti_put_place(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, dti_place place)
{
    if (place.what == DTI_PLACE_R) dti_put(pen, "R");
    if (place.what == DTI_PLACE_P) dti_put(pen, "P(%s)", dti_partial_names[place.kind]);
    if (place.what != DTI_PLACE_S) return;
    dti_put(pen, "S(");
    dti_put_factor(pen, rule, bound, place.factor);
    dti_put(pen, ")");
}

void dti_put_strategy(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, const dti_strategy *strategy)
{
    const char *before = "";
    for (int o = 0; o < rule->operand_count; o++) {
        if (!(bound->present >> o & 1)) continue;
        dti_put(pen, "%s%s ", before, dti_rule_name(rule, o));
        dti_put_place(pen, rule, bound, strategy->operand[o]);
        before = ", ";
    }
    for (int r = 0; r < rule->result_count; r++) {
        bool kept = r == dti_rule_results(rule), first = r == 0;
        dti_put(pen, "%s", kept ? " | " : first ? (*before ? " -> " : "-> ") : ", ");
        dti_put_place(pen, rule, bound, strategy->result[r]);
    }
}

/* ---- operands in sets -------------------------------------------------------------------------------------------- */

static int first_of(uint32_t operands)
{
    int i = 0;
    while (!(operands >> i & 1)) i++;
    return i;
}

static bool is_several(uint32_t operands) { return (operands & (operands - 1)) != 0; }

static const dti_letter unnamed = { 0 };                               /* a dim of "..."                           */

static const dti_letter *letter_of(const dti_rule *rule, int letter)
{
    return letter < rule->letter_count ? &rule->letter[letter] : &unnamed;
}

/* Those that a letter of an operand is missing from; nothing is reduced through an index map. */
static uint32_t reduced_results(const dti_rule *rule, const dti_bound *bound, int letter)
{
    uint32_t all = (1u << dti_rule_results(rule)) - 1;
    if (bound->letter[letter].map >= 0) return 0;
    return bound->letter[letter].operands ? all & ~bound->letter[letter].results : 0;
}

/* ---- what is split ----------------------------------------------------------------------------------------------- */

static bool take_split(judging *j, int operand)
{
    int factor = j->s->operand[operand].factor;
    if (dti_bound_operand_factor(j->bound, factor, operand) != factor) {
        say(j, "%s is S(%s), but does not have it", name(j, operand), factor_text(j, factor).text);
        return false;
    }
    if (j->factor >= 0 && dti_bound_operand_factor(j->bound, j->factor, operand) != factor) {
        int other = first_of(j->split);
        say(j, "%s is S(%s) and %s is S(%s), but a mesh dim splits one factor", name(j, other),
            factor_text(j, j->factor).text, name(j, operand), factor_text(j, factor).text);
        return false;
    }
    if (j->factor < 0) j->factor = factor;
    j->split |= 1u << operand;
    return true;
}

static bool take_fresh(judging *j)
{
    if (j->s->fresh.what != DTI_PLACE_S) return true;
    int factor = j->s->fresh.factor;
    if (j->split || j->partial) {
        say(j, "S(%s) of a new letter, but %s is not R", factor_text(j, factor).text,
            name(j, first_of(j->split | j->partial)));
        return false;
    }
    int letter = j->bound->factor[factor].letter;
    bool whole = letter_of(j->rule, letter)->flags & DTI_LETTER_WHOLE;
    j->factor = factor;
    bool old = dti_bound_operands(j->bound, letter) != 0;
    if (old) say(j, "%s is no new letter: its operands say where it is split", factor_text(j, factor).text);
    else if (whole) say(j, "the kernel makes %s whole", factor_text(j, factor).text);
    return !whole && !old;
}

/* What the mesh dim does to the operands. */
static bool take_places(judging *j)
{
    for (int o = 0; o < j->rule->operand_count; o++) {
        if (!(j->bound->present >> o & 1)) continue;
        if (j->s->operand[o].what == DTI_PLACE_P) j->partial |= 1u << o;
        if (j->s->operand[o].what == DTI_PLACE_S && !take_split(j, o)) return false;
    }
    if (!take_fresh(j)) return false;
    if (j->factor >= 0) j->letter = j->bound->factor[j->factor].letter;
    return true;
}

static bool kernel_splits(const judging *j)
{
    const dti_letter *letter = letter_of(j->rule, j->letter);
    if (letter->flags & DTI_LETTER_WHOLE) {
        j->s->broken = j->rule->decomposes;
        if (!j->s->broken) say(j, "the kernel wants %c whole", letter->name);
        return j->s->broken;
    }
    if (!(letter->flags & DTI_LETTER_PIECES) || !reduced_results(j->rule, j->bound, j->letter)) return true;
    say(j, "%c is reduced in one kernel: it may come in pieces, not stay split", letter->name);
    return false;
}

/* All operands that have the factor are split by it, and no others. */
static bool operands_agree(const judging *j)
{
    uint32_t have = dti_bound_operands(j->bound, j->letter);
    if (have == j->split) return true;
    short_text factor = factor_text(j, j->factor);
    if (have & ~j->split) {
        int o = first_of(have & ~j->split);
        short_text own = factor_text(j, dti_bound_operand_factor(j->bound, j->factor, o));
        say(j, "%s is split: expected S(%s) of %s, which has it, got %s", factor.text, own.text, name(j, o),
            place_text(j, j->s->operand[o]).text);
        return false;
    }
    say(j, "%s is S(%s), but does not have it", name(j, first_of(j->split & ~have)), factor.text);
    return false;
}

static bool split_is_legal(const judging *j) { return j->factor < 0 || (kernel_splits(j) && operands_agree(j)); }

/* ---- what is partial --------------------------------------------------------------------------------------------- */

static bool is_extreme(dti_place place)
{
    return place.what == DTI_PLACE_P && (place.kind == DTI_MAX || place.kind == DTI_MIN);
}

static bool partial_is_legal(const judging *j, int operand)
{
    dti_place place = j->s->operand[operand];
    const char *who = name(j, operand), *kind = dti_partial_names[place.kind];
    bool none = j->rule->monomial_count == 0;
    if (place.kind == DTI_PROD) say(j, "P(prod) of %s must be reduced first", who);
    else if (!none && !(dti_rule_operands(j->rule) >> operand & 1)) say(j, "%s is in no monomial, so never P", who);
    else if (none && !is_extreme(place)) say(j, "the value is not linear in %s: reduce P(%s) first", who, kind);
    else return true;
    return false;
}

static bool partials_are_legal(const judging *j)
{
    for (int o = 0; o < j->rule->operand_count; o++)
        if ((j->partial >> o & 1) && !partial_is_legal(j, o)) return false;
    return true;
}

/* ---- results of splits ------------------------------------------------------------------------------------------- */

/* S where the result has the factor; else P, where it hangs on operands that have it. Kernels divide by global sizes,
 * so pieces of an average are sums. */
static dti_place split_place(const judging *j, int result, bool depends)
{
    if (j->factor < 0) return (dti_place){ 0 };
    if (dti_bound_results(j->bound, j->letter) >> result & 1)
        return (dti_place){ DTI_PLACE_S, 0, (int16_t)dti_bound_result_factor(j->bound, j->factor, result) };
    bool mapped = j->bound->letter[j->letter].map >= 0;
    if (!j->bound->letter[j->letter].operands || mapped || !depends) return (dti_place){ 0 };
    dti_partial kind = dti_letter_kind(letter_of(j->rule, j->letter));
    return dti_place_partial(kind == DTI_AVG ? DTI_SUM : kind);
}

static void say_split(const judging *j)
{
    if (j->factor < 0 || !j->why) return;
    short_text factor = factor_text(j, j->factor);
    bool mapped = j->bound->letter[j->letter].map >= 0;
    if (!j->split) say(j, "%s is new and split as asked", factor.text);
    else if (mapped && dti_seen_results(j->rule, j->bound, j->letter))
        say(j, "%s is split and goes through an index map: the result is cut anew", factor.text);
    else if (mapped) say(j, "one index of %s is picked, and goes to all", factor.text);
    else if (reduced_results(j->rule, j->bound, j->letter)) say(j, "%s is split and reduced", factor.text);
    else say(j, "%s is split and stays so", factor.text);
}

/* ---- rows of none ------------------------------------------------------------------------------------------------ */

static bool judge_none(const judging *j)
{
    for (int r = 0; r < j->rule->result_count; r++) j->s->result[r] = split_place(j, r, true);
    say_split(j);
    return true;
}

/* ---- rows made of others ----------------------------------------------------------------------------------------- */

static bool judge_broken(const judging *j)
{
    if (j->partial) {
        int o = first_of(j->partial);
        say(j, "%s is split: reduce %s of %s first", factor_text(j, j->factor).text,
            place_text(j, j->s->operand[o]).text, name(j, o));
        return false;
    }
    for (int r = 0; r < j->rule->result_count; r++)
        if (j->bound->letter[j->letter].results >> r & 1)
            j->s->result[r] = (dti_place){ DTI_PLACE_S, 0, (int16_t)j->factor };
    say(j, "%s is split, and the op is made of others, which move statistics", factor_text(j, j->factor).text);
    return true;
}

/* ---- polynomial rows --------------------------------------------------------------------------------------------- */

typedef enum summand {                 /* what a monomial is along the mesh dim                                    */
    SUMMAND_ABSENT, SUMMAND_R, SUMMAND_SPLIT, SUMMAND_SUM, SUMMAND_AVG
} summand;

typedef struct sum {
    summand is[DTI_MAX_MONOMIALS];
    bool reduced, stays;               /* some results lack the split letter; some have it                         */
    dti_partial kind;                  /* that results are then P of; DTI_PARTIAL_NONE                             */
} sum;

static bool see_monomial(const judging *j, int i, summand *is)
{
    const dti_monomial *monomial = &j->rule->monomial[i];
    uint32_t there = monomial->operands & j->bound->present, partial = there & j->partial, split = there & j->split;
    *is = monomial->operands && !there ? SUMMAND_ABSENT : split ? SUMMAND_SPLIT : SUMMAND_R;
    if (!partial) return true;
    int o = first_of(partial);
    *is = j->s->operand[o].kind == DTI_AVG ? SUMMAND_AVG : SUMMAND_SUM;
    if (!split && !is_several(partial)) return true;
    int other = split ? first_of(split) : first_of(partial & ~(1u << o));
    say(j, "%s is %s and %s is %s in one monomial: reduce one first", name(j, o),
        place_text(j, j->s->operand[o]).text, name(j, other), place_text(j, j->s->operand[other]).text);
    return false;
}

static int count_of(const judging *j, const sum *m, summand is)
{
    int n = 0;
    for (int i = 0; i < j->rule->monomial_count; i++) n += m->is[i] == is;
    return n;
}

static int there_of(const judging *j, const sum *m) { return j->rule->monomial_count - count_of(j, m, SUMMAND_ABSENT); }

/* An operand in no monomial is in the coefficients of some, or of all. A reduced letter that it has is reduced in those
 * monomials whose operands have it, too; where none has, nothing says in which, unless there is but one. */
static bool coefficients_are_clear(const judging *j, sum *m)
{
    uint32_t coefficients = j->split & ~dti_rule_operands(j->rule);
    if (!m->reduced || !coefficients) return true;
    int there = there_of(j, m);
    if (count_of(j, m, SUMMAND_SPLIT) > 0) return true;
    if (there > 1) {
        say(j, "%s of %s is reduced, and nothing says in which monomials", factor_text(j, j->factor).text,
            name(j, first_of(coefficients)));
        return false;
    }
    for (int i = 0; i < j->rule->monomial_count; i++) {
        if (m->is[i] == SUMMAND_ABSENT) continue;
        if (m->is[i] == SUMMAND_R) m->is[i] = SUMMAND_SPLIT;
        else {
            say(j, "%s is P and %s is split in one monomial: reduce it first", name(j, first_of(j->partial)),
                factor_text(j, j->factor).text);
            return false;
        }
    }
    return true;
}

/* A monomial that lacks a reduced letter is added once. One that is stretched over it, once per element. */
static bool nothing_stretches(const judging *j, const sum *m)
{
    for (int i = 0; m->reduced && i < j->rule->monomial_count; i++) {
        uint32_t stretched = j->rule->monomial[i].operands & j->bound->letter[j->letter].stretched;
        if (!stretched || m->is[i] == SUMMAND_SPLIT) continue;
        say(j, "%s is stretched over %s, which is split and reduced", name(j, first_of(stretched)),
            factor_text(j, j->factor).text);
        return false;
    }
    return true;
}

static bool see_sum(const judging *j, sum *m)
{
    memset(m, 0, sizeof *m);
    if (j->factor >= 0) {
        m->reduced = reduced_results(j->rule, j->bound, j->letter) != 0;
        m->stays = dti_seen_results(j->rule, j->bound, j->letter) != 0;
    }
    for (int i = 0; i < j->rule->monomial_count; i++)
        if (!see_monomial(j, i, &m->is[i])) return false;
    if (m->stays && j->partial) {
        int o = first_of(j->partial);
        say(j, "the result is S(%s): reduce %s of %s first", factor_text(j, j->factor).text,
            place_text(j, j->s->operand[o]).text, name(j, o));
        return false;
    }
    return coefficients_are_clear(j, m) && nothing_stretches(j, m);
}

static dti_partial kind_of(const judging *j, const sum *m)
{
    bool sums = count_of(j, m, SUMMAND_SUM) || (m->reduced && count_of(j, m, SUMMAND_SPLIT));
    return sums ? DTI_SUM : count_of(j, m, SUMMAND_AVG) ? DTI_AVG : DTI_PARTIAL_NONE;
}

/* Operands that are in no monomial but those to be lifted. */
static uint32_t liftable(const judging *j, const sum *m)
{
    uint32_t operands = j->bound->present;
    for (int i = 0; i < j->rule->monomial_count; i++)
        if (m->is[i] != SUMMAND_R) operands &= ~j->rule->monomial[i].operands;
    return operands;
}

/* The monomial counts on the first rank alone. */
static bool lift(const judging *j, const sum *m, int i)
{
    uint32_t operands = j->rule->monomial[i].operands & j->bound->present;
    if (!operands) {
        j->s->lift_number = 1;
        say(j, "the number is added once, on the first rank");
        return true;
    }
    if (operands & j->s->lift) return true;
    if (!(operands & liftable(j, m))) {
        say(j, "%s is R in one monomial and cannot become P: it is in others that are P", name(j, first_of(operands)));
        return false;
    }
    int o = first_of(operands & liftable(j, m));
    j->s->lift |= 1u << o;
    say(j, "%s, R, becomes P(sum): it is added once, on the first rank", name(j, o));
    return true;
}

/* All monomials become P(sum). */
static bool make_sums(const judging *j, const sum *m)
{
    for (int o = 0; o < j->rule->operand_count; o++) {
        if (!(j->partial >> o & 1) || j->s->operand[o].kind != DTI_AVG) continue;
        j->s->rescale |= 1u << o;
        say(j, "%s, P(avg), is divided by the ranks", name(j, o));
    }
    if (m->stays && count_of(j, m, SUMMAND_R)) {
        say(j, "results that are S and results that are P need different sums");
        return false;
    }
    for (int i = 0; i < j->rule->monomial_count; i++)
        if (m->is[i] == SUMMAND_R && !lift(j, m, i)) return false;
    return true;
}

static void say_partial(const judging *j)
{
    for (int o = 0; o < j->rule->operand_count; o++)
        if (j->partial >> o & 1) say(j, "the value is linear in %s", name(j, o));
}

static bool judge_polynomial(const judging *j)
{
    sum m;
    if (!see_sum(j, &m)) return false;
    m.kind = kind_of(j, &m);
    say_split(j);
    say_partial(j);
    if (m.kind == DTI_SUM && !make_sums(j, &m)) return false;
    bool kept_depends = (j->split & ~dti_rule_operands(j->rule)) != 0;
    for (int r = 0; r < j->rule->result_count; r++) {
        bool kept = r >= dti_rule_results(j->rule);
        j->s->result[r] = split_place(j, r, kept ? kept_depends : m.kind != DTI_PARTIAL_NONE);
        if (!kept && j->factor < 0 && m.kind) j->s->result[r] = dti_place_partial(m.kind);
    }
    return true;
}

/* ---- trends ------------------------------------------------------------------------------------------------------ */

/* How the value goes with an operand; DTI_TREND_NONE: both ways, or nothing says. */
static dti_trend trend_of(const dti_rule *rule, int operand)
{
    bool same = false, other = false;
    for (int i = 0; i < rule->monomial_count; i++) {
        if (!(rule->monomial[i].operands >> operand & 1)) continue;
        if (rule->monomial[i].minus == rule->monomial[0].minus) same = true;
        else other = true;
    }
    if (rule->trend == DTI_TREND_NONE || (same && other)) return DTI_TREND_NONE;
    if (!other) return (dti_trend)rule->trend;
    return rule->trend == DTI_RISING ? DTI_FALLING : DTI_RISING;
}

/* max over ranks and what a letter of the operand does must be one. */
static bool letter_passes(const judging *j, int operand, int letter, dti_partial kind)
{
    const dti_letter *about = letter_of(j->rule, letter);
    dti_partial reduced_by = dti_letter_kind(about);
    if (!(j->bound->letter[letter].operands >> operand & 1)) return true;
    if (about->flags & DTI_LETTER_WHOLE) {
        say(j, "the kernel may mix elements along %c: reduce %s of %s first", about->name,
            place_text(j, j->s->operand[operand]).text, name(j, operand));
        return false;
    }
    if (!reduced_results(j->rule, j->bound, letter) || reduced_by == kind) return true;
    say(j, "%s is reduced by %s: reduce %s of %s first", factor_text(j, j->bound->letter[letter].whole).text,
        dti_partial_names[reduced_by], place_text(j, j->s->operand[operand]).text, name(j, operand));
    return false;
}

static bool others_are_r(const judging *j, int operand)
{
    uint32_t others = (j->split | j->partial) & ~(1u << operand);
    if (!others) return true;
    int o = first_of(others);
    say(j, "%s of %s passes where the others are R, but %s is %s", place_text(j, j->s->operand[operand]).text,
        name(j, operand), name(j, o), place_text(j, j->s->operand[o]).text);
    return false;
}

static bool judge_trend(const judging *j, int operand)
{
    static const dti_partial swapped[DTI_PARTIAL_COUNT] = { [DTI_MAX] = DTI_MIN, [DTI_MIN] = DTI_MAX };
    dti_partial kind = (dti_partial)j->s->operand[operand].kind;
    dti_trend trend = trend_of(j->rule, operand);
    if (!others_are_r(j, operand)) return false;
    if (trend == DTI_TREND_NONE || j->rule->kept_count) {
        say(j, "%s: reduce P(%s) of %s first", trend ? "the row keeps more than its value" :
            "nothing says that the value only rises or falls", dti_partial_names[kind], name(j, operand));
        return false;
    }
    if (trend == DTI_FALLING) kind = swapped[kind];
    for (int i = 0; i < j->bound->letter_count; i++)
        if (!letter_passes(j, operand, i, kind)) return false;
    for (int r = 0; r < j->rule->result_count; r++) j->s->result[r] = dti_place_partial(kind);
    say(j, "the value %s with %s", trend == DTI_RISING ? "rises" : "falls", name(j, operand));
    return true;
}

/* ---- the front door ---------------------------------------------------------------------------------------------- */

static int first_extreme(const judging *j)
{
    for (int o = 0; o < j->rule->operand_count; o++)
        if ((j->partial >> o & 1) && is_extreme(j->s->operand[o])) return o;
    return -1;
}

static void begin(dti_strategy *s)
{
    memset(s->result, 0, sizeof s->result);
    s->lift = s->rescale = s->lift_number = s->broken = 0;
}

bool dti_partial_decide(const dti_rule *rule, const dti_bound *bound, dti_strategy *strategy, dti_pen *why)
{
    judging j = { .rule = rule, .bound = bound, .s = strategy, .why = why, .factor = -1, .letter = -1 };
    begin(strategy);
    if (!take_places(&j) || !split_is_legal(&j) || !partials_are_legal(&j)) return false;
    if (strategy->broken) return judge_broken(&j);
    int extreme = first_extreme(&j);
    if (extreme >= 0) return judge_trend(&j, extreme);
    return rule->monomial_count ? judge_polynomial(&j) : judge_none(&j);
}
