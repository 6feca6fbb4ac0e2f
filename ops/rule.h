/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule language: what a row of the op table says of its operands and results, as plain values.
 *
 *   linear(x, w, b)    "... k, n k, n? -> ... n"    : x w + b
 *
 * The head names the op and its operands. The rule says what their dims are: a letter is a dim, "..." any number of
 * leading dims that broadcast, "( )" a dim that is a product, "?" ends a term that may be absent, results after "|" are
 * kept for the gradient. A letter that no result has is reduced; one that no operand has is new. The polynomial says
 * how the value hangs on the operands: what may be Partial follows from it (partial.h).
 *
 * notation   head       = op "(" [ name {"," name} ] ")" ;
 *            rule       = [terms] "->" [terms] ["|" terms] ;  terms = term {"," term} ;  term = ["..."] {axis} ["?"] ;
 *            axis       = flagged | "(" flagged flagged {flagged} ")" ;
 *            flagged    = letter [int] { "!" | "~" | ":" kind } ;
 *            polynomial = ( "none" | mono {("+"|"-") mono} ) ["," ("rising"|"falling")] ["," "saves" name {name}] ;
 *            mono       = ["-"] ( name {name} | "1" ) ;
 * Blanks may stand between all words. Nothing before "->" is no operand where the head names none, one scalar where it
 * names one; nothing behind it is one scalar.
 *
 * What else holds, each an error that points at its column:
 *  - A letter stands once in a term: a mesh dim splits one dim of a tensor, so a diagonal has no placement of its own.
 *  - Letters that differ in their number alone, "n1" and "n", are one dim through an index map: of x[2:9] and x, of a
 *    cat and its operands. Each has a size of its own; a mesh dim that splits one splits all, each cut anew. Where a
 *    result has none of them, one index was picked, and nothing is reduced. Such a letter is a dim by itself, has no
 *    flags, and a term has one of them.
 *  - Flags belong to the letter, wherever one of them is written. ":kind" is for letters that some result lacks.
 *  - A monomial has a name once, and is there once: the value is linear in each operand of a polynomial.
 *  - Reduction by max, min or prod is no polynomial: such a row says "none".
 *  - none, rising, falling, saves and result are no names of operands.
 * A rule holds no pointer and is equal byte by byte to what its texts parse to again. */
#ifndef DTI_RULE_H
#define DTI_RULE_H

#include "core/pen.h"
#include "placements/layout.h"

enum {
    DTI_MAX_OPERANDS = 16,             /* of one op                                                                */
    DTI_MAX_RESULTS = 8,               /* of one op, kept ones among them                                          */
    DTI_MAX_LETTERS = 52,
    DTI_MAX_LETTER_NUMBER = 99,
    DTI_MAX_MONOMIALS = 16,
    DTI_MAX_NAMES = 256                /* characters of all names of a head, each with one more                    */
};

typedef enum dti_letter_flag {
    DTI_LETTER_WHOLE = 1 << 0,         /* "!": the fused kernel wants all of it                                    */
    DTI_LETTER_PIECES = 1 << 1,        /* "~": it may come in pieces; where it is reduced, to one kernel           */
    DTI_LETTER_MAPPED = 1 << 2         /* it, or another of its name, has a number                                 */
} dti_letter_flag;

typedef struct dti_letter {
    char name;
    uint8_t flags;                     /* of dti_letter_flag                                                       */
    uint8_t kind;                      /* a dti_partial: how it is reduced; DTI_PARTIAL_NONE: not stated, sum      */
    uint8_t number;                    /* of those of one name; 0: written without                                 */
    uint32_t operands, results;        /* bit i: operand or result i has it                                        */
} dti_letter;

typedef struct dti_term {
    bool batch, optional;              /* "..." and "?"                                                            */
    int8_t dim_count;                  /* dims besides those of "..."                                              */
    int8_t first[DT_MAX_DIMS + 1];     /* letters of dim d: letter[first[d]] .. letter[first[d + 1] - 1]           */
    int8_t letter[DT_MAX_FACTORS];     /* numbers of letters                                                       */
} dti_term;

typedef struct dti_monomial {
    uint32_t operands;                 /* bit i: operand i is in it; 0: the number 1                               */
    uint32_t minus;                    /* 1: it is subtracted                                                      */
} dti_monomial;

/* How a value goes with the first monomial's operands, with all where there is none; operands under the other sign go
 * the other way. */
typedef enum dti_trend { DTI_TREND_NONE = 0, DTI_RISING, DTI_FALLING } dti_trend;

typedef struct dti_rule {
    int32_t operand_count, result_count; /* results: kept ones among them, at the end                              */
    int32_t kept_count, letter_count, monomial_count; /* monomial_count 0: "none"                                  */
    int32_t trend;                     /* a dti_trend                                                              */
    uint32_t saves;                    /* bit i: "saves" names operand i                                           */
    uint32_t saves_result;             /* 1: "saves" names result                                                  */
    uint32_t decomposes;               /* 1: its row says how it is made of others where a "!" letter is split; no
                                          text says it, so parsing leaves 0                                        */
    dti_letter letter[DTI_MAX_LETTERS]; /* in order of their first appearance                                      */
    dti_term operand[DTI_MAX_OPERANDS], result[DTI_MAX_RESULTS];
    dti_monomial monomial[DTI_MAX_MONOMIALS];
    int16_t name[DTI_MAX_OPERANDS];    /* where an operand's name begins in names; the op's begins at 0            */
    char names[DTI_MAX_NAMES];         /* each ended by 0                                                          */
} dti_rule;

/* The three texts of a row, as a table of ops or a user writes them. */
typedef struct dti_row_text { const char *head, *rule, *polynomial; } dti_row_text;

/* Read a row. false and DT_ERR_PARSE, with the text and the column, otherwise; then *rule says nothing. */
bool dti_rule_parse(dt_context *ctx, const dti_row_text *text, dti_rule *rule);

/* Canonical texts, which parse back to the same rule: one blank between words, "sum" and blanks that mean nothing left
 * out, names of a monomial in the order of the head. */
void dti_put_head(dti_pen *pen, const dti_rule *rule);
void dti_put_rule(dti_pen *pen, const dti_rule *rule);
void dti_put_polynomial(dti_pen *pen, const dti_rule *rule);
/* One term without its flags, as messages say it: "... m k". */
void dti_put_term(dti_pen *pen, const dti_rule *rule, const dti_term *term);

/* A letter with its number. */
void dti_put_letter(dti_pen *pen, const dti_letter *letter);

static inline const char *dti_rule_op(const dti_rule *rule) { return rule->names; }
static inline const char *dti_rule_name(const dti_rule *rule, int operand)
{
    return rule->names + rule->name[operand];
}

/* Results that a caller sees: those before the "|". */
static inline int dti_rule_results(const dti_rule *rule) { return rule->result_count - rule->kept_count; }

/* Is a letter in some operand, and missing from result r? */
static inline bool dti_letter_reduced(const dti_letter *letter, int r)
{
    return letter->operands && !(letter->results >> r & 1) && !(letter->flags & DTI_LETTER_MAPPED);
}

/* How a letter is reduced where it is; sum unless stated. */
static inline dti_partial dti_letter_kind(const dti_letter *letter)
{
    return letter->kind ? (dti_partial)letter->kind : DTI_SUM;
}

/* Operands in some monomial. */
static inline uint32_t dti_rule_operands(const dti_rule *rule)
{
    uint32_t operands = 0;
    for (int i = 0; i < rule->monomial_count; i++) operands |= rule->monomial[i].operands;
    return operands;
}

/* Operands that gradients of those wanted need: those "saves" names, and their partners in a monomial. */
uint32_t dti_rule_saves(const dti_rule *rule, uint32_t wanted);

#endif
