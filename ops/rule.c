/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules read and written. The grammar is in rule.h. Nothing here knows a shape or a placement. Invariant: what is read
 * here prints to a text that reads back to the same bytes. */
#include "ops/rule.h"

#include <string.h>

#include "core/scan.h"

typedef struct reading {               /* a row being read; scan is at one of its texts                            */
    dti_scan scan;
    dti_rule *rule;
    int names_used;
    const char *kind_at[DTI_MAX_LETTERS]; /* where a letter's kind is written                                      */
} reading;

typedef struct side { dti_term *terms; int count, max; bool results; } side; /* of the "->"                        */

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static const char *const reserved[] = { "none", "rising", "falling", "saves", "result" };

static bool keep_name(reading *r, dti_word word)
{
    if (r->names_used + word.n + 1 > DTI_MAX_NAMES)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text, "names of more than %d characters in all",
                             DTI_MAX_NAMES);
    memcpy(r->rule->names + r->names_used, word.text, (size_t)word.n);
    r->names_used += word.n + 1;
    return true;
}

static int find_operand(const dti_rule *rule, dti_word word)
{
    for (int i = 0; i < rule->operand_count; i++)
        if (dti_word_is(word, dti_rule_name(rule, i))) return i;
    return -1;
}

static bool scan_operand_name(reading *r)
{
    dti_rule *rule = r->rule;
    dti_word word;
    dti_scan_space(&r->scan);
    if (!dti_scan_name(&r->scan, &word)) return false;
    for (int i = 0; i < DT_COUNT(reserved); i++)
        if (dti_word_is(word, reserved[i]))
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text, "\"%s\" is a word of polynomials, no operand",
                                 reserved[i]);
    if (find_operand(rule, word) >= 0)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text, "operand \"%.*s\" is named twice", word.n, word.text);
    if (rule->operand_count == DTI_MAX_OPERANDS)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text, "more than %d operands", DTI_MAX_OPERANDS);
    rule->name[rule->operand_count++] = (int16_t)r->names_used;
    dti_scan_space(&r->scan);
    return keep_name(r, word);
}

static bool scan_head(reading *r)
{
    dti_word op;
    dti_scan_space(&r->scan);
    if (!dti_scan_name(&r->scan, &op) || !keep_name(r, op)) return false;
    dti_scan_space(&r->scan);
    if (!dti_scan_char(&r->scan, '(')) return dti_scan_expected(&r->scan, "\"(\" and the operands");
    dti_scan_space(&r->scan);
    if (!dti_scan_char(&r->scan, ')')) {
        do {
            if (!scan_operand_name(r)) return false;
        } while (dti_scan_char(&r->scan, ','));
        if (!dti_scan_char(&r->scan, ')')) return dti_scan_expected(&r->scan, "\",\" or \")\"");
    }
    dti_scan_space(&r->scan);
    return dti_scan_end(&r->scan, "the end");
}

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Which letter of the rule it is; -1: there is no room for more. */
static int find_letter(dti_rule *rule, char name, uint8_t number)
{
    int i = 0;
    while (i < rule->letter_count && (rule->letter[i].name != name || rule->letter[i].number != number)) i++;
    if (i == DTI_MAX_LETTERS) return -1;
    if (i == rule->letter_count) {
        rule->letter[i].name = name;
        rule->letter[rule->letter_count++].number = number;
    }
    return i;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A letter and the number behind it. */
static bool scan_numbered(reading *r, int *letter)
{
    const char *at = r->scan.at++;
    int number = 0;
    if (is_digit(*r->scan.at)) {
        while (is_digit(*r->scan.at) && number <= DTI_MAX_LETTER_NUMBER) number = 10 * number + *r->scan.at++ - '0';
        if (number > DTI_MAX_LETTER_NUMBER || at[1] == '0')
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, at + 1, "expected a number of 1 .. %d behind a letter",
                                 DTI_MAX_LETTER_NUMBER);
    }
    *letter = find_letter(r->rule, *at, (uint8_t)number);
    return *letter >= 0 || dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "more than %d letters", DTI_MAX_LETTERS);
}

static bool scan_kind(reading *r, int number)
{
    dti_letter *letter = &r->rule->letter[number];
    const char *at = r->scan.at;
    for (int kind = DTI_SUM; kind < DTI_PARTIAL_COUNT; kind++) {
        if (!dti_scan_text(&r->scan, dti_partial_names[kind])) continue;
        if (letter->kind && letter->kind != kind)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "letter \"%c\" is reduced by %s, and here by %s",
                                 letter->name, dti_partial_names[letter->kind], dti_partial_names[kind]);
        letter->kind = (uint8_t)kind;
        r->kind_at[number] = at;
        return true;
    }
    return dti_scan_expected(&r->scan, "how it is reduced: sum, avg, max, min or prod");
}

static const struct { char text; uint8_t flag; } flags[] = { { '!', DTI_LETTER_WHOLE }, { '~', DTI_LETTER_PIECES } };

static bool scan_flags(reading *r, int number)
{
    bool more = true;
    while (more) {
        more = false;
        for (int i = 0; i < DT_COUNT(flags); i++) {
            if (!dti_scan_char(&r->scan, flags[i].text)) continue;
            r->rule->letter[number].flags |= flags[i].flag;
            more = true;
        }
        if (dti_scan_char(&r->scan, ':')) {
            if (!scan_kind(r, number)) return false;
            more = true;
        }
    }
    return true;
}

static bool scan_letter(reading *r, dti_term *term)
{
    int last = term->first[term->dim_count + 1];
    const char *at = r->scan.at;
    int number = 0;
    if (!is_letter(*at)) return dti_scan_expected(&r->scan, "a letter");
    if (!scan_numbered(r, &number)) return false;
    for (int i = 0; i < last; i++)
        if (r->rule->letter[term->letter[i]].name == *at)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, at,
                                 "letter \"%c\" twice in one term, but a mesh dim splits one dim of a tensor", *at);
    if (last == DT_MAX_FACTORS)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "more than %d letters in one term", DT_MAX_FACTORS);
    term->letter[last] = (int8_t)number;
    term->first[term->dim_count + 1]++;
    return scan_flags(r, number);
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

static bool scan_product(reading *r, dti_term *term)
{
    int count = 0;
    dti_scan_space(&r->scan);
    do {
        if (!scan_letter(r, term)) return false;
        dti_scan_space(&r->scan);
    } while (++count < 2 || is_letter(*r->scan.at));
    return dti_scan_char(&r->scan, ')') || dti_scan_expected(&r->scan, "a letter or \")\"");
}

static bool scan_axis(reading *r, dti_term *term)
{
    const char *at = r->scan.at;
    if (term->dim_count == DT_MAX_DIMS)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "more than %d dims", DT_MAX_DIMS);
    term->first[term->dim_count + 1] = term->first[term->dim_count];
    if (!(dti_scan_char(&r->scan, '(') ? scan_product(r, term) : scan_letter(r, term))) return false;
    term->dim_count++;
    dti_scan_space(&r->scan);
    return true;
}

static bool refuse_dots(reading *r, const dti_term *term)
{
    return dti_scan_fail(&r->scan, DT_ERR_PARSE, r->scan.at,
                         term->batch ? "a second \"...\" in one term" : "\"...\" stands first in its term");
}

static bool scan_optional(reading *r, dti_term *term, bool result)
{
    const char *at = r->scan.at;
    if (!dti_scan_char(&r->scan, '?')) return true;
    if (result) return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "\"?\" is for operands: a result is always there");
    term->optional = true;
    dti_scan_space(&r->scan);
    return true;
}

static bool scan_term(reading *r, dti_term *term, bool result)
{
    dti_scan_space(&r->scan);
    term->batch = dti_scan_text(&r->scan, "...");
    dti_scan_space(&r->scan);
    while (is_letter(*r->scan.at) || *r->scan.at == '(')
        if (!scan_axis(r, term)) return false;
    if (strncmp(r->scan.at, "...", 3) == 0) return refuse_dots(r, term);
    return scan_optional(r, term, result);
}

static bool scan_terms(reading *r, side *s)
{
    do {
        if (s->count == s->max)
            return s->results ? dti_scan_fail(&r->scan, DT_ERR_PARSE, r->scan.at, "more than %d results", s->max)
                              : dti_scan_fail(&r->scan, DT_ERR_PARSE, r->scan.at, "a term more than %s has operands",
                                              dti_rule_op(r->rule));
        if (!scan_term(r, &s->terms[s->count++], s->results)) return false;
    } while (dti_scan_char(&r->scan, ','));
    return true;
}

/* What may stand behind a term. */
static const char *behind_term(const side *s)
{
    bool closed = s->count > 0 && s->terms[s->count - 1].optional;
    if (s->results) return "a letter, \"(\", \",\", \"|\" or the end";
    return closed ? "\",\" or \"->\"" : "a letter, \"(\", \"?\", \",\" or \"->\"";
}

static bool scan_operands(reading *r)
{
    dti_rule *rule = r->rule;
    side s = { rule->operand, 0, rule->operand_count, false };
    dti_scan_space(&r->scan);
    const char *at = r->scan.at;
    if (s.max == 0 && strncmp(at, "->", 2) != 0)
        return dti_scan_expected(&r->scan, "\"->\", for there are no operands");
    if (s.max > 0 && !scan_terms(r, &s)) return false;
    at = r->scan.at;
    if (!dti_scan_text(&r->scan, "->")) return dti_scan_expected(&r->scan, behind_term(&s));
    return s.count == s.max || dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "expected %d terms, one for each operand of "
                                             "%s, got %d", s.max, dti_rule_op(rule), s.count);
}

static bool scan_results(reading *r)
{
    dti_rule *rule = r->rule;
    side s = { rule->result, 0, DTI_MAX_RESULTS, true };
    if (!scan_terms(r, &s)) return false;
    int results = s.count;
    if (dti_scan_char(&r->scan, '|')) {
        if (!scan_terms(r, &s)) return false;
        rule->kept_count = s.count - results;
    }
    rule->result_count = s.count;
    return dti_scan_end(&r->scan, rule->kept_count ? "a letter, \"(\", \",\" or the end" : behind_term(&s));
}

/* ---- what letters are over all terms ----------------------------------------------------------------------------- */

static void note_letters(dti_rule *rule)
{
    for (int o = 0; o < rule->operand_count; o++)
        for (int i = 0; i < rule->operand[o].first[rule->operand[o].dim_count]; i++)
            rule->letter[rule->operand[o].letter[i]].operands |= 1u << o;
    for (int r = 0; r < rule->result_count; r++)
        for (int i = 0; i < rule->result[r].first[rule->result[r].dim_count]; i++)
            rule->letter[rule->result[r].letter[i]].results |= 1u << r;
}

/* Kinds belong to letters that are reduced. Sum is what holds unsaid, so it is not kept. */
static bool settle_kinds(reading *r)
{
    uint32_t all = (1u << r->rule->result_count) - 1;
    for (int i = 0; i < r->rule->letter_count; i++) {
        dti_letter *letter = &r->rule->letter[i];
        if (!letter->kind) continue;
        if (!letter->operands)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, r->kind_at[i], "letter \"%c\" is new, so it is not reduced",
                                 letter->name);
        if (letter->results == all)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, r->kind_at[i],
                                 "letter \"%c\" is in every result, so it is not reduced", letter->name);
        if (letter->kind == DTI_SUM) letter->kind = DTI_PARTIAL_NONE;
    }
    return true;
}

static bool in_product(const dti_term *terms, int count, int letter)
{
    bool found = false;
    for (int t = 0; t < count; t++)
        for (int d = 0; d < terms[t].dim_count; d++)
            for (int i = terms[t].first[d]; i < terms[t].first[d + 1]; i++)
                found |= terms[t].letter[i] == letter && terms[t].first[d + 1] - terms[t].first[d] > 1;
    return found;
}

/* Letters of one name, of which some have a number, are mapped. */
static bool settle_maps(reading *r)
{
    dti_rule *rule = r->rule;
    for (int i = 0; i < rule->letter_count; i++) {
        dti_letter *letter = &rule->letter[i];
        bool mapped = false;
        for (int k = 0; k < rule->letter_count; k++)
            mapped |= rule->letter[k].name == letter->name && rule->letter[k].number;
        if (!mapped) continue;
        if (letter->flags & ~DTI_LETTER_MAPPED || letter->kind
            || in_product(rule->operand, rule->operand_count, i) || in_product(rule->result, rule->result_count, i))
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, r->scan.text, "letter \"%c\" goes through an index map: it is "
                                 "a dim by itself, without flags", letter->name);
        letter->flags |= DTI_LETTER_MAPPED;
    }
    return true;
}

static bool scan_rule(reading *r)
{
    if (!scan_operands(r) || !scan_results(r)) return false;
    note_letters(r->rule);
    return settle_kinds(r) && settle_maps(r);
}

/* ---- the polynomial ---------------------------------------------------------------------------------------------- */

static bool scan_operand(reading *r, dti_word *word, int *operand)
{
    if (!dti_scan_name(&r->scan, word)) return false;
    *operand = find_operand(r->rule, *word);
    if (*operand >= 0) return true;
    return dti_scan_fail(&r->scan, DT_ERR_PARSE, word->text, "%s has no operand \"%.*s\"", dti_rule_op(r->rule),
                         word->n, word->text);
}

static bool scan_factors(reading *r, dti_monomial *monomial)
{
    if (dti_scan_text(&r->scan, "1")) return true;
    if (!is_letter(*r->scan.at)) return dti_scan_expected(&r->scan, "an operand or 1");
    do {
        dti_word word;
        int operand;
        if (!scan_operand(r, &word, &operand)) return false;
        if (monomial->operands >> operand & 1)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text,
                                 "\"%.*s\" twice in one monomial is not linear in it", word.n, word.text);
        monomial->operands |= 1u << operand;
        dti_scan_space(&r->scan);
    } while (is_letter(*r->scan.at));
    return true;
}

static bool scan_monomial(reading *r, bool minus)
{
    dti_rule *rule = r->rule;
    dti_monomial monomial = { 0, 0 };
    dti_scan_space(&r->scan);
    const char *at = r->scan.at;
    if (dti_scan_char(&r->scan, '-')) minus = !minus;
    dti_scan_space(&r->scan);
    if (!scan_factors(r, &monomial)) return false;
    monomial.minus = minus;
    for (int i = 0; i < rule->monomial_count; i++)
        if (rule->monomial[i].operands == monomial.operands)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "a monomial of the same operands is there already");
    if (rule->monomial_count == DTI_MAX_MONOMIALS)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "more than %d monomials", DTI_MAX_MONOMIALS);
    rule->monomial[rule->monomial_count++] = monomial;
    dti_scan_space(&r->scan);
    return true;
}

static bool scan_sum(reading *r)
{
    bool minus = false;
    if (!*r->scan.at) return dti_scan_expected(&r->scan, "\"none\" or operands");
    do {
        if (!scan_monomial(r, minus)) return false;
        minus = *r->scan.at == '-';
    } while (dti_scan_char(&r->scan, '+') || dti_scan_char(&r->scan, '-'));
    return true;
}

static bool scan_saved(reading *r)
{
    const char *at = r->scan.at;
    dti_word word;
    int operand;
    if (dti_scan_text(&r->scan, "result")) {
        if (r->rule->saves_result) return dti_scan_fail(&r->scan, DT_ERR_PARSE, at, "result is saved twice");
        r->rule->saves_result = 1;
        return true;
    }
    if (!scan_operand(r, &word, &operand)) return false;
    if (r->rule->saves >> operand & 1)
        return dti_scan_fail(&r->scan, DT_ERR_PARSE, word.text, "\"%.*s\" is saved twice", word.n, word.text);
    r->rule->saves |= 1u << operand;
    return true;
}

static bool scan_saves(reading *r)
{
    do {
        dti_scan_space(&r->scan);
        if (!scan_saved(r)) return false;
        dti_scan_space(&r->scan);
    } while (is_letter(*r->scan.at));
    return dti_scan_end(&r->scan, "an operand, \"result\" or the end");
}

static const char *const trends[] = { [DTI_RISING] = "rising", [DTI_FALLING] = "falling" };

/* What stands behind the sum: [, trend] [, saves]. */
static bool scan_remarks(reading *r)
{
    while (dti_scan_char(&r->scan, ',')) {
        dti_scan_space(&r->scan);
        if (dti_scan_text(&r->scan, "saves")) return scan_saves(r);
        int trend = r->rule->trend ? 0 : DTI_FALLING;
        while (trend && !dti_scan_text(&r->scan, trends[trend])) trend--;
        if (!trend) return dti_scan_expected(&r->scan, r->rule->trend ? "\"saves\"" : "rising, falling or saves");
        r->rule->trend = trend;
        dti_scan_space(&r->scan);
    }
    const char *more = r->rule->trend ? "\",\" or the end" : "\"+\", \"-\", \",\" or the end";
    return dti_scan_end(&r->scan, r->rule->monomial_count ? more : "\",\" or the end");
}

/* A max is no sum of products. */
static bool is_linear(reading *r)
{
    uint32_t seen = (1u << dti_rule_results(r->rule)) - 1;
    for (int i = 0; i < r->rule->letter_count && r->rule->monomial_count; i++) {
        const dti_letter *letter = &r->rule->letter[i];
        bool reduced = letter->operands && (letter->results & seen) != seen && !(letter->flags & DTI_LETTER_MAPPED);
        if (reduced && letter->kind > DTI_AVG)
            return dti_scan_fail(&r->scan, DT_ERR_PARSE, r->scan.text, "letter \"%c\" is reduced by %s, so the value "
                                 "is no polynomial but none", letter->name, dti_partial_names[letter->kind]);
    }
    return true;
}

static bool scan_polynomial(reading *r)
{
    dti_scan_space(&r->scan);
    if (!dti_scan_text(&r->scan, "none") && !scan_sum(r)) return false;
    dti_scan_space(&r->scan);
    return scan_remarks(r) && is_linear(r);
}

bool dti_rule_parse(dt_context *ctx, const dti_row_text *text, dti_rule *rule)
{
    reading r = { .rule = rule };
    memset(rule, 0, sizeof *rule);
    r.scan = (dti_scan){ ctx, "row", text->head, text->head };
    if (!scan_head(&r)) return false;
    r.scan = (dti_scan){ ctx, "rule", text->rule, text->rule };
    if (!scan_rule(&r)) return false;
    r.scan = (dti_scan){ ctx, "polynomial", text->polynomial, text->polynomial };
    return scan_polynomial(&r);
}

/* ---- what follows from a row ------------------------------------------------------------------------------------- */

uint32_t dti_rule_saves(const dti_rule *rule, uint32_t wanted)
{
    uint32_t saves = rule->saves;
    for (int i = 0; i < rule->monomial_count; i++) {
        uint32_t operands = rule->monomial[i].operands;
        for (int k = 0; k < rule->operand_count; k++) /* each is the slope of the others                           */
            if ((operands >> k & 1) && (operands & wanted & ~(UINT32_C(1) << k))) saves |= UINT32_C(1) << k;
    }
    return saves;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void dti_put_head(dti_pen *pen, const dti_rule *rule)
{
    dti_put(pen, "%s(", dti_rule_op(rule));
    for (int i = 0; i < rule->operand_count; i++) dti_put(pen, "%s%s", i ? ", " : "", dti_rule_name(rule, i));
    dti_put(pen, ")");
}

void dti_put_letter(dti_pen *pen, const dti_letter *letter)
{
    dti_put(pen, "%c", letter->name);
    if (letter->number) dti_put(pen, "%d", letter->number);
}

static void put_letter(dti_pen *pen, const dti_letter *letter, bool flagged)
{
    dti_put_letter(pen, letter);
    for (int i = 0; flagged && i < DT_COUNT(flags); i++)
        if (letter->flags & flags[i].flag) dti_put(pen, "%c", flags[i].text);
    if (flagged && letter->kind) dti_put(pen, ":%s", dti_partial_names[letter->kind]);
}

static void put_term(dti_pen *pen, const dti_rule *rule, const dti_term *term, bool flagged)
{
    dti_put(pen, "%s", term->batch ? "..." : "");
    for (int d = 0; d < term->dim_count; d++) {
        int first = term->first[d], last = term->first[d + 1];
        dti_put(pen, "%s%s", d || term->batch ? " " : "", last - first > 1 ? "(" : "");
        for (int i = first; i < last; i++) {
            dti_put(pen, "%s", i > first ? " " : "");
            put_letter(pen, &rule->letter[term->letter[i]], flagged);
        }
        dti_put(pen, "%s", last - first > 1 ? ")" : "");
    }
    dti_put(pen, "%s", flagged && term->optional ? "?" : "");
}

void dti_put_term(dti_pen *pen, const dti_rule *rule, const dti_term *term) { put_term(pen, rule, term, false); }

static bool is_blank(const dti_term *term) { return !term->batch && term->dim_count == 0 && !term->optional; }

static void put_terms(dti_pen *pen, const dti_rule *rule, const dti_term *terms, int count)
{
    for (int i = 0; i < count; i++) {
        dti_put(pen, "%s%s", i ? "," : "", i && !is_blank(&terms[i]) ? " " : "");
        put_term(pen, rule, &terms[i], true);
    }
}

void dti_put_rule(dti_pen *pen, const dti_rule *rule)
{
    int results = dti_rule_results(rule);
    bool nothing = rule->operand_count == 0 || (rule->operand_count == 1 && is_blank(&rule->operand[0]));
    put_terms(pen, rule, rule->operand, rule->operand_count);
    dti_put(pen, "%s->%s", nothing ? "" : " ", is_blank(&rule->result[0]) ? "" : " ");
    put_terms(pen, rule, rule->result, results);
    if (!rule->kept_count) return;
    dti_put(pen, " |%s", is_blank(&rule->result[results]) ? "" : " ");
    put_terms(pen, rule, rule->result + results, rule->kept_count);
}

static void put_names(dti_pen *pen, const dti_rule *rule, uint32_t operands)
{
    const char *blank = "";
    for (int i = 0; i < rule->operand_count; i++) {
        if (!(operands >> i & 1)) continue;
        dti_put(pen, "%s%s", blank, dti_rule_name(rule, i));
        blank = " ";
    }
}

static void put_sum(dti_pen *pen, const dti_rule *rule)
{
    for (int i = 0; i < rule->monomial_count; i++) {
        const dti_monomial *monomial = &rule->monomial[i];
        dti_put(pen, "%s", monomial->minus ? (i ? " - " : "-") : i ? " + " : "");
        if (monomial->operands) put_names(pen, rule, monomial->operands);
        else dti_put(pen, "1");
    }
    if (!rule->monomial_count) dti_put(pen, "none");
}

void dti_put_polynomial(dti_pen *pen, const dti_rule *rule)
{
    put_sum(pen, rule);
    if (rule->trend) dti_put(pen, ", %s", trends[rule->trend]);
    if (!rule->saves && !rule->saves_result) return;
    dti_put(pen, ", saves ");
    put_names(pen, rule, rule->saves);
    if (rule->saves_result) dti_put(pen, "%sresult", rule->saves ? " " : "");
}
