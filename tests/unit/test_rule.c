/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the op table as text: what parses to what, how it prints, that it parses back to the same bytes, and what is
 * refused in which words. */
#include <string.h>

#include "errors.h"
#include "ops/rule.h"
#include "suite.h"

enum { ROOM = 1024 };

typedef void put_fn(dti_pen *pen, const dti_rule *rule);

static const char *text_of(put_fn *put, const dti_rule *rule, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    room[0] = '\0';
    put(&pen, rule);
    return room;
}

static bool parse(dt_context *ctx, dti_row_text text, dti_rule *rule) { return dti_rule_parse(ctx, &text, rule); }

/* ---- texts that parse -------------------------------------------------------------------------------------------- */

typedef struct round_row { dti_row_text written, printed; } round_row; /* printed NULL: as written                 */

static const round_row rounds[] = {
    /* The table of the design. */
    { { "matmul(a, b)", "... m k, ... k n -> ... m n", "a b" }, { 0 } },
    { { "linear(x, w, b)", "... k, n k, n? -> ... n", "x w + b" }, { 0 } },
    { { "add(a, b)", "..., ... -> ...", "a + b, rising" }, { 0 } },
    { { "add_scalar(x)", "... -> ...", "x + 1, rising" }, { 0 } },
    { { "where(c, a, b)", "..., ..., ... -> ...", "a + b" }, { 0 } },
    { { "rms_norm(x, w)", "... h!, h! -> ... h! | ...", "none, saves x w" }, { 0 } },
    { { "embedding(w, ids)", "v h, ... -> ... h", "w" }, { 0 } },
    { { "attention(q, k, v)", "b s (g r) d!, b t~ g d!, b t~ g d! -> b s (g r) d! | b s (g r)", "v, saves q k v" },
      { 0 } },
    { { "softmax(x)", "... c! -> ... c!", "none, saves result" }, { 0 } },
    { { "exp(x)", "... -> ...", "none, rising, saves result" }, { 0 } },
    /* Corners of rules. */
    { { "amax(x)", "... k:max -> ...", "none, rising" }, { 0 } },
    { { "mean(x)", "... k:avg -> ...", "x" }, { 0 } },
    { { "sum(x)", "... k:sum -> ...", "x" }, { NULL, "... k -> ...", NULL } },
    { { "one_hot(x)", "... -> ... c", "none" }, { 0 } },
    { { "zeros()", "-> ...", "none" }, { 0 } },
    { { "zeros()", "->", "1" }, { 0 } },
    { { "fold(x)", "... a b -> ... (a b)", "x" }, { 0 } },
    { { "total(x)", "... ->", "x" }, { 0 } },
    { { "scale(x)", "->", "x" }, { 0 } },
    { { "mul(x, s)", "a,->a", "x s" }, { NULL, "a, -> a", NULL } },
    { { "mul(s, x)", ",a -> a,", "s x" }, { NULL, ", a -> a,", NULL } },
    { { "two(x)", "a -> a|", "x" }, { NULL, "a -> a |", NULL } },
    { { "two(x)", "a b -> a, b | , a b", "none" }, { NULL, "a b -> a, b |, a b", NULL } },
    { { "f(x)", "...mk->...mk", "x" }, { NULL, "... m k -> ... m k", NULL } },
    { { "f(x)", "\t...  m  ( g\tr ) ->  ... m ( g r )  ", " x " }, { NULL, "... m (g r) -> ... m (g r)", "x" } },
    { { "f(x, s)", "a, ? -> a", "x" }, { 0 } },
    { { "f(x, s)", "a, ...? -> a", "x" }, { 0 } },
    { { "f(x, y)", "a!, a -> a", "none" }, { NULL, "a!, a! -> a!", NULL } },
    { { "f(x, y)", "a, a~ -> a!", "none" }, { NULL, "a!~, a!~ -> a!~", NULL } },
    { { "f(x, y)", "k, k:max!~ ->", "none" }, { NULL, "k!~:max, k!~:max ->", NULL } },
    { { "f(x, y)", "(a:min b), b -> b", "none" }, { 0 } },
    { { "f(x)", "(abc) Z -> Z (c b a)", "x" }, { NULL, "(a b c) Z -> Z (c b a)", NULL } },
    { { "f(x)", "c:max -> c | ", "x" }, { NULL, "c:max -> c:max |", NULL } },
    { { " f ( x , y ) ", "a, a -> a", "x y" }, { "f(x, y)", NULL, NULL } },
    /* Through index maps. */
    { { "slice(x)", "a b1 -> a b", "x, rising" }, { 0 } },
    { { "select(x)", "a1 b -> b", "x, rising" }, { 0 } },
    { { "cat(x0, x1)", "a b1, a b2 -> a b", "x0 + x1, rising" }, { 0 } },
    { { "split(x)", "a1 -> a12, a3", "x" }, { 0 } },
    { { "f(x)", "a1b->ab", "x" }, { NULL, "a1 b -> a b", NULL } },
    { { "f(x)", "a99 -> a98", "x" }, { 0 } },
    /* Corners of polynomials. */
    { { "sub(a, b)", "..., ... -> ...", "a - b, rising" }, { 0 } },
    { { "sub(a, b)", "..., ... -> ...", "a+-b" }, { NULL, NULL, "a - b" } },
    { { "sub(a, b)", "..., ... -> ...", "-a - -b" }, { NULL, NULL, "-a + b" } },
    { { "rsub(x)", "... -> ...", "1 - x,rising" }, { NULL, NULL, "1 - x, rising" } },
    { { "neg(x)", "... -> ...", "-x, falling" }, { 0 } },
    { { "f(a, b)", "..., ... -> ...", "b a" }, { NULL, NULL, "a b" } },
    { { "f(a, b)", "..., ... -> ...", "a b + a + b + 1" }, { 0 } },
    { { "f(a, b)", "..., ... -> ...", "none, saves b a" }, { NULL, NULL, "none, saves a b" } },
    { { "f(a, b)", "..., ... -> ...", "a, saves result b" }, { NULL, NULL, "a, saves b result" } },
    { { "f(a, b)", "..., ... -> ...", "none, falling, saves a" }, { 0 } },
    { { "f(rise, none1)", "..., ... -> ...", "none1" }, { 0 } },
};

static void expect_text(const char *got, const char *want, const char *what)
{
    expect(strcmp(got, want) == 0, "%s prints \"%s\", expected \"%s\"", what, got, want);
}

static void expect_round(dt_context *ctx, const round_row *row)
{
    dti_rule rule, again;
    char head[ROOM], text[ROOM], polynomial[ROOM];
    const dti_row_text *w = &row->written, *p = &row->printed;
    if (!expect(dti_rule_parse(ctx, w, &rule), "%s: %s", w->rule, dt_context_error(ctx))) return;
    dti_row_text printed = { text_of(dti_put_head, &rule, head), text_of(dti_put_rule, &rule, text),
                             text_of(dti_put_polynomial, &rule, polynomial) };
    expect_text(printed.head, p->head ? p->head : w->head, w->head);
    expect_text(printed.rule, p->rule ? p->rule : w->rule, w->rule);
    expect_text(printed.polynomial, p->polynomial ? p->polynomial : w->polynomial, w->polynomial);
    expect(dti_rule_parse(ctx, &printed, &again), "%s: %s", printed.rule, dt_context_error(ctx));
    expect(memcmp(&rule, &again, sizeof rule) == 0, "%s is another rule after printing", w->rule);
}

static void texts_print_and_parse_back(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(rounds); i++) {
        expect_round(ctx, &rounds[i]);
        expect_no_error(ctx, rounds[i].written.rule);
    }
    dt_context_destroy(&ctx);
}

/* ---- what they mean ---------------------------------------------------------------------------------------------- */

static const dti_letter *letter(const dti_rule *rule, char name)
{
    int i = 0;
    while (i < rule->letter_count && rule->letter[i].name != name) i++;
    expect(i < rule->letter_count, "letter %c", name);
    return &rule->letter[i];
}

static void the_parts_of_attention(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_rule rule;
    parse(ctx, (dti_row_text){ "attention(q, k, v)", "b s (g r) d!, b t~ g d, b t g d -> b s (g r) d | b s (g r)",
                               "v, saves q k v" }, &rule);
    expect(strcmp(dti_rule_op(&rule), "attention") == 0 && strcmp(dti_rule_name(&rule, 2), "v") == 0, "names");
    expect(rule.operand_count == 3 && rule.result_count == 2 && rule.kept_count == 1, "counts");
    expect(dti_rule_results(&rule) == 1, "one result that a caller sees");
    expect(rule.letter_count == 6 && rule.letter[0].name == 'b' && rule.letter[5].name == 't', "letters in order");
    expect(rule.operand[0].dim_count == 4 && rule.operand[0].first[4] == 5, "4 dims of 5 letters");
    expect(rule.operand[0].first[2] == 2 && rule.operand[0].first[3] == 4, "(g r) is dim 2");
    expect(letter(&rule, 'd')->flags == DTI_LETTER_WHOLE && letter(&rule, 't')->flags == DTI_LETTER_PIECES, "flags");
    expect(letter(&rule, 'g')->operands == 7 && letter(&rule, 'r')->operands == 1, "who has g and r");
    expect(letter(&rule, 'd')->results == 1 && letter(&rule, 's')->results == 3, "results with d and s");
    expect(dti_letter_reduced(letter(&rule, 't'), 0) && !dti_letter_reduced(letter(&rule, 'd'), 0), "t is reduced");
    expect(dti_letter_reduced(letter(&rule, 'd'), 1), "d is reduced in what is kept");
    expect(rule.monomial_count == 1 && rule.monomial[0].operands == 4, "linear in v");
    expect(rule.saves == 7 && !rule.saves_result && dti_rule_saves(&rule, UINT32_MAX) == 7, "saves");
    dt_context_destroy(&ctx);
}

static void new_and_reduced_letters(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_rule rule;
    parse(ctx, (dti_row_text){ "f(x, y)", "... k:max j, j? -> ... c", "none, falling, saves result" }, &rule);
    expect(rule.operand[0].batch && !rule.operand[1].batch && rule.result[0].batch, "...");
    expect(rule.operand[1].optional && !rule.operand[0].optional, "?");
    expect(letter(&rule, 'c')->operands == 0 && !dti_letter_reduced(letter(&rule, 'c'), 0), "c is new");
    expect(dti_letter_kind(letter(&rule, 'k')) == DTI_MAX && dti_letter_kind(letter(&rule, 'j')) == DTI_SUM, "kinds");
    expect(rule.trend == DTI_FALLING && rule.saves_result && !rule.saves && rule.monomial_count == 0, "none");
    dt_context_destroy(&ctx);
}

typedef struct saves_row { const char *polynomial; uint32_t saves; } saves_row; /* of f(a, b, c)                    */

static void what_gradients_need(void)
{
    static const saves_row saved[] = {
        { "a b", 3 }, { "a b + c", 3 }, { "a + b + c", 0 }, { "a b c", 7 }, { "a b - b c", 7 }, { "a, saves b", 2 },
        { "a b, saves c", 7 }, { "none", 0 }, { "none, saves a c", 5 }, { "a + 1", 0 },
    };
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(saved); i++) {
        dti_rule rule;
        parse(ctx, (dti_row_text){ "f(a, b, c)", "..., ..., ... -> ...", saved[i].polynomial }, &rule);
        uint32_t saves = dti_rule_saves(&rule, UINT32_MAX);
        expect(saves == saved[i].saves, "%s saves %x", saved[i].polynomial, saves);
        expect_no_error(ctx, saved[i].polynomial);
    }
    dt_context_destroy(&ctx);
}

static void limits_are_reached(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_rule rule;
    dti_row_text wide = { "f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p)", ",,,,,,,,,,,,,,,a b c d e f g h -> a,b,c,d | a,b,c,d",
                          "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p" };
    dti_row_text full = { "f(x)", "(abcdefghijklmnop) -> (ABCDEFGHIJKLMNOP) ", "x" };
    expect(dti_rule_parse(ctx, &wide, &rule) && rule.operand_count == 16 && rule.result_count == 8, "16 operands");
    expect(rule.monomial_count == 16, "16 monomials");
    expect(dti_rule_parse(ctx, &full, &rule) && rule.letter_count == 32, "16 letters in a term");
    expect_no_error(ctx, "limits");
    dt_context_destroy(&ctx);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

typedef struct refusal { const char *text, *message; } refusal;

static const refusal heads[] = {
    { "", "row \"\": expected a name, got the end at column 1" },
    { "3(x)", "row \"3(x)\": expected a name, got \"3\" at column 1" },
    { "f", "row \"f\": expected \"(\" and the operands, got the end at column 2" },
    { "f x", "row \"f x\": expected \"(\" and the operands, got \"x\" at column 3" },
    { "f(", "row \"f(\": expected a name, got the end at column 3" },
    { "f(x", "row \"f(x\": expected \",\" or \")\", got the end at column 4" },
    { "f(x y)", "row \"f(x y)\": expected \",\" or \")\", got \"y\" at column 5" },
    { "f(x,)", "row \"f(x,)\": expected a name, got \")\" at column 5" },
    { "f(x) y", "row \"f(x) y\": expected the end, got \"y\" at column 6" },
    { "f(x, x)", "row \"f(x, x)\": operand \"x\" is named twice at column 6" },
    { "f(x, result)", "row \"f(x, result)\": \"result\" is a word of polynomials, no operand at column 6" },
    { "f(none)", "row \"f(none)\": \"none\" is a word of polynomials, no operand at column 3" },
    { "f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q)",
      "row \"f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q)\": more than 16 operands at column 35" },
};

static const refusal rules[] = { /* of f(x, y) */
    { "", "rule \"\": expected a letter, \"(\", \"?\", \",\" or \"->\", got the end at column 1" },
    { "a", "rule \"a\": expected a letter, \"(\", \"?\", \",\" or \"->\", got the end at column 2" },
    { "a, b", "rule \"a, b\": expected a letter, \"(\", \"?\", \",\" or \"->\", got the end at column 5" },
    { "a, b? c -> a", "rule \"a, b? c -> a\": expected \",\" or \"->\", got \"c\" at column 7" },
    { "a, 3 -> a", "rule \"a, 3 -> a\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \"3\" at column 4" },
    { "a, b - > a", "rule \"a, b - > a\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \"-\" at column 6" },
    { "a, b = a", "rule \"a, b = a\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \"=\" at column 6" },
    { "a, b -> a;", "rule \"a, b -> a;\": expected a letter, \"(\", \",\", \"|\" or the end, got \";\" at column 10" },
    { "a, b -> a | b | c", "rule \"a, b -> a | b | c\": expected a letter, \"(\", \",\" or the end, got \"|\" at "
                           "column 15" },
    { "a, b -> a -> b", "rule \"a, b -> a -> b\": expected a letter, \"(\", \",\", \"|\" or the end, got \"-\" at "
                        "column 11" },
    { "a, b -> a?", "rule \"a, b -> a?\": \"?\" is for operands: a result is always there at column 10" },
    { "a -> a", "rule \"a -> a\": expected 2 terms, one for each operand of f, got 1 at column 3" },
    { "-> a", "rule \"-> a\": expected 2 terms, one for each operand of f, got 1 at column 1" },
    { "a, b, c -> a", "rule \"a, b, c -> a\": a term more than f has operands at column 6" },
    { "a, b -> a,a,a,a,a,a,a,a,a", "rule \"a, b -> a,a,a,a,a,a,a,a,a\": more than 8 results at column 25" },
    { "i i, b -> i", "rule \"i i, b -> i\": letter \"i\" twice in one term, but a mesh dim splits one dim of a tensor "
                     "at column 3" },
    { "(i j) i, b -> i", "rule \"(i j) i, b -> i\": letter \"i\" twice in one term, but a mesh dim splits one dim of a "
                         "tensor at column 7" },
    { "a, b -> a b a", "rule \"a, b -> a b a\": letter \"a\" twice in one term, but a mesh dim splits one dim of a "
                       "tensor at column 13" },
    { "... ..., b -> b", "rule \"... ..., b -> b\": a second \"...\" in one term at column 5" },
    { "a ..., b -> b", "rule \"a ..., b -> b\": \"...\" stands first in its term at column 3" },
    { ".., b -> b", "rule \".., b -> b\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \".\" at column 1" },
    { "...., b -> b", "rule \"...., b -> b\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \".\" at "
                      "column 4" },
    { "(), b -> b", "rule \"(), b -> b\": expected a letter, got \")\" at column 2" },
    { "(a), b -> b", "rule \"(a), b -> b\": expected a letter, got \")\" at column 3" },
    { "(a b, b -> b", "rule \"(a b, b -> b\": expected a letter or \")\", got \",\" at column 5" },
    { "(a (b c)), b -> b", "rule \"(a (b c)), b -> b\": expected a letter, got \"(\" at column 4" },
    { "(a ...), b -> b", "rule \"(a ...), b -> b\": expected a letter, got \".\" at column 4" },
    { "!a, b -> b", "rule \"!a, b -> b\": expected a letter, \"(\", \"?\", \",\" or \"->\", got \"!\" at column 1" },
    { "a:, b -> b", "rule \"a:, b -> b\": expected how it is reduced: sum, avg, max, min or prod, got \",\" at "
                    "column 3" },
    { "a:mox, b -> b", "rule \"a:mox, b -> b\": expected how it is reduced: sum, avg, max, min or prod, got \"mox\" at "
                       "column 3" },
    { "a:maxb, b -> b", "rule \"a:maxb, b -> b\": expected how it is reduced: sum, avg, max, min or prod, got "
                        "\"maxb\" at column 3" },
    { "a:max, a:min ->", "rule \"a:max, a:min ->\": letter \"a\" is reduced by max, and here by min at column 10" },
    { "a:sum, a:min ->", "rule \"a:sum, a:min ->\": letter \"a\" is reduced by sum, and here by min at column 10" },
    { "a:max, b -> a", "rule \"a:max, b -> a\": letter \"a\" is in every result, so it is not reduced at column 3" },
    { "a, b -> a c:sum", "rule \"a, b -> a c:sum\": letter \"c\" is new, so it is not reduced at column 13" },
    { "a b c d e f g h i, b -> b", "rule \"a b c d e f g h i, b -> b\": more than 8 dims at column 17" },
    { "(abcdefghijklmnopq), b -> b", "rule \"(abcdefghijklmnopq), b -> b\": more than 16 letters in one term at "
                                     "column 18" },
    { "a0, b -> b", "rule \"a0, b -> b\": expected a number of 1 .. 99 behind a letter at column 2" },
    { "a100, b -> b", "rule \"a100, b -> b\": expected a number of 1 .. 99 behind a letter at column 2" },
    { "a a1, b -> b", "rule \"a a1, b -> b\": letter \"a\" twice in one term, but a mesh dim splits one dim of a "
                      "tensor at column 3" },
    { "a1!, b -> a b", "rule \"a1!, b -> a b\": letter \"a\" goes through an index map: it is a dim by itself, without "
                       "flags at column 1" },
    { "a!, b -> a1 b", "rule \"a!, b -> a1 b\": letter \"a\" goes through an index map: it is a dim by itself, without "
                       "flags at column 1" },
    { "(a1 c), b -> a c b", "rule \"(a1 c), b -> a c b\": letter \"a\" goes through an index map: it is a dim by "
                            "itself, without flags at column 1" },
    { "a1:max, b -> b", "rule \"a1:max, b -> b\": letter \"a\" goes through an index map: it is a dim by itself, "
                        "without flags at column 1" },
    { "a, \xc3\xa9 -> a", "rule \"a, \\xc3\\xa9 -> a\": expected a letter, \"(\", \"?\", \",\" or \"->\", got "
                          "\"\\xc3\" at column 4" },
};

static const refusal polynomials[] = { /* of f(x, y), "k:max m, m -> m | k" */
    { "", "polynomial \"\": expected \"none\" or operands, got the end at column 1" },
    { "z", "polynomial \"z\": f has no operand \"z\" at column 1" },
    { "xy", "polynomial \"xy\": f has no operand \"xy\" at column 1" },
    { "f", "polynomial \"f\": f has no operand \"f\" at column 1" },
    { "x + z", "polynomial \"x + z\": f has no operand \"z\" at column 5" },
    { "x x", "polynomial \"x x\": \"x\" twice in one monomial is not linear in it at column 3" },
    { "x y + y x", "polynomial \"x y + y x\": a monomial of the same operands is there already at column 7" },
    { "x - x", "polynomial \"x - x\": a monomial of the same operands is there already at column 5" },
    { "1 + 1", "polynomial \"1 + 1\": a monomial of the same operands is there already at column 5" },
    { "x +", "polynomial \"x +\": expected an operand or 1, got the end at column 4" },
    { "+ x", "polynomial \"+ x\": expected an operand or 1, got \"+\" at column 1" },
    { "x * y", "polynomial \"x * y\": expected \"+\", \"-\", \",\" or the end, got \"*\" at column 3" },
    { "2", "polynomial \"2\": expected an operand or 1, got \"2\" at column 1" },
    { "11", "polynomial \"11\": expected an operand or 1, got \"11\" at column 1" },
    { "1 x", "polynomial \"1 x\": expected \"+\", \"-\", \",\" or the end, got \"x\" at column 3" },
    { "x 1", "polynomial \"x 1\": expected \"+\", \"-\", \",\" or the end, got \"1\" at column 3" },
    { "none + x", "polynomial \"none + x\": expected \",\" or the end, got \"+\" at column 6" },
    { "x + none", "polynomial \"x + none\": f has no operand \"none\" at column 5" },
    { "none,", "polynomial \"none,\": expected rising, falling or saves, got the end at column 6" },
    { "none, sinking", "polynomial \"none, sinking\": expected rising, falling or saves, got \"sinking\" at column 7" },
    { "none, rising, falling", "polynomial \"none, rising, falling\": expected \"saves\", got \"falling\" at "
                               "column 15" },
    { "none, rising x", "polynomial \"none, rising x\": expected \",\" or the end, got \"x\" at column 14" },
    { "none, saves", "polynomial \"none, saves\": expected a name, got the end at column 12" },
    { "none, saves z", "polynomial \"none, saves z\": f has no operand \"z\" at column 13" },
    { "none, saves x x", "polynomial \"none, saves x x\": \"x\" is saved twice at column 15" },
    { "none, saves result result", "polynomial \"none, saves result result\": result is saved twice at column 20" },
    { "none, saves x, rising", "polynomial \"none, saves x, rising\": expected an operand, \"result\" or the end, got "
                               "\",\" at column 14" },
    { "x", "polynomial \"x\": letter \"k\" is reduced by max, so the value is no polynomial but none at column 1" },
};

static void expect_refused(dt_context *ctx, dti_row_text text, const refusal *row)
{
    dti_rule rule;
    expect(!dti_rule_parse(ctx, &text, &rule), "\"%s\" parses", row->text);
    expect(strcmp(dt_context_error(ctx), row->message) == 0, "got  %s\n# want %s", dt_context_error(ctx),
           row->message);
    expect_error(ctx, DT_ERR_PARSE, "", row->text);
}

static void refused_texts(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(heads); i++)
        expect_refused(ctx, (dti_row_text){ heads[i].text, "-> ", "none" }, &heads[i]);
    for (int i = 0; i < DT_COUNT(rules); i++)
        expect_refused(ctx, (dti_row_text){ "f(x, y)", rules[i].text, "none" }, &rules[i]);
    for (int i = 0; i < DT_COUNT(polynomials); i++)
        expect_refused(ctx, (dti_row_text){ "f(x, y)", "k:max m, m -> m | k", polynomials[i].text }, &polynomials[i]);
    dt_context_destroy(&ctx);
}

static void operands_where_there_are_none(void)
{
    static const refusal row = { "... -> ...", "rule \"... -> ...\": expected \"->\", for there are no operands, got "
                                               "\".\" at column 1" };
    dt_context *ctx = dt_context_dry(1);
    expect_refused(ctx, (dti_row_text){ "zeros()", row.text, "none" }, &row);
    dt_context_destroy(&ctx);
}

static void long_names(void)
{
    char head[512] = "f(";
    dt_context *ctx = dt_context_dry(1);
    dti_rule rule;
    for (int i = 0; i < 5; i++) {
        size_t n = strlen(head);
        memset(head + n, 'a' + i, 62);
        strcpy(head + n + 62, i < 4 ? "," : ")");
    }
    expect(!parse(ctx, (dti_row_text){ head, ",,,,->", "none" }, &rule), "five names of 62 characters");
    expect_error(ctx, DT_ERR_PARSE, "names of more than 256 characters in all at column 255", "long names");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "texts_print_and_parse_back", texts_print_and_parse_back },
    { "the_parts_of_attention", the_parts_of_attention },
    { "new_and_reduced_letters", new_and_reduced_letters },
    { "what_gradients_need", what_gradients_need },
    { "limits_are_reached", limits_are_reached },
    { "refused_texts", refused_texts },
    { "operands_where_there_are_none", operands_where_there_are_none },
    { "long_names", long_names },
};

const suite the_suite = { "rule", rows, DT_COUNT(rows) };
