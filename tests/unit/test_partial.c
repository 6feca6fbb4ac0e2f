/* SPDX-License-Identifier: Apache-2.0
 *
 * What is legal along one mesh dim: rows of cases with their reasons, lists of strategies, and every combination of
 * placements of small ops held against numbers. */
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "errors.h"
#include "ops/oracle.h"
#include "suite.h"

enum { ROOM = 1024, MANY = 1024 };

static const dti_row_text matmul = { "matmul(a, b)", "... m k, ... k n -> ... m n", "a b" };
static const dti_row_text linear = { "linear(x, w, b)", "... k, n k, n? -> ... n", "x w + b" };
static const dti_row_text add = { "add(a, b)", "..., ... -> ...", "a + b, rising" };
static const dti_row_text add_scalar = { "add_scalar(x)", "... -> ...", "x + 1, rising" };
static const dti_row_text where = { "where(c, a, b)", "..., ..., ... -> ...", "a + b" };
static const dti_row_text rms_norm = { "rms_norm(x, w)", "... h!, h! -> ... h! | ...", "none, saves x w" };
static const dti_row_text embedding = { "embedding(w, ids)", "v h, ... -> ... h", "w" };
static const dti_row_text attention = { "attention(q, k, v)",
                                        "b s (g r) d!, b t~ g d!, b t~ g d! -> b s (g r) d! | b s (g r)",
                                        "v, saves q k v" };
static const dti_row_text softmax = { "softmax(x)", "... c! -> ... c!", "none, saves result" };
static const dti_row_text exponent = { "exp(x)", "... -> ...", "none, rising, saves result" };
static const dti_row_text sub = { "sub(a, b)", "..., ... -> ...", "a - b, rising" };
static const dti_row_text neg = { "neg(x)", "... -> ...", "-x, falling" };
static const dti_row_text mul = { "mul(a, b)", "..., ... -> ...", "a b" };
static const dti_row_text sum_row = { "sum(x)", "... k -> ...", "x" };
static const dti_row_text mean = { "mean(x)", "... k:avg -> ...", "x" };
static const dti_row_text amax = { "amax(x)", "... k:max -> ...", "none, rising" };
static const dti_row_text prod = { "prod(x)", "... k:prod -> ...", "none, saves x result" };
static const dti_row_text one_hot = { "one_hot(x)", "... -> ... c", "none" };
static const dti_row_text slice = { "slice(x)", "a1 b -> a b", "x, rising" };
static const dti_row_text cat = { "cat(x, y)", "a1 b, a2 b -> a b", "x + y, rising" };
static const dti_row_text split = { "split(x)", "a -> a1, a2", "x, rising" };
static const dti_row_text pick = { "select(x)", "a1 b -> b", "x, rising" };
static const dti_row_text expand = { "expand(x)", "... -> ...", "x" };

/* ---- placements as text: "S(k)", "R", "P(sum)" ------------------------------------------------------------------- */

static const char *place_text(const bound_parts *p, dti_place place, char *room)
{
    dti_pen pen = { room, 64, 0 };
    room[0] = '\0';
    dti_put_place(&pen, &p->rule, &p->bound, place);
    return room;
}

/* All places that a tensor may be told to have. */
static dti_place place_number(int i)
{
    if (i == 0) return (dti_place){ 0 };
    if (i < DTI_PARTIAL_COUNT) return (dti_place){ DTI_PLACE_P, (int8_t)i, 0 };
    return (dti_place){ DTI_PLACE_S, 0, (int16_t)(i - DTI_PARTIAL_COUNT) };
}

static int place_count(const bound_parts *p) { return DTI_PARTIAL_COUNT + p->bound.factor_count; }

static dti_place place_of(const bound_parts *p, const char *text, size_t n)
{
    char room[64];
    for (int i = 0; i < place_count(p); i++) {
        const char *own = place_text(p, place_number(i), room);
        if (strlen(own) == n && memcmp(own, text, n) == 0) return place_number(i);
    }
    expect(false, "no placement %s", text);
    return (dti_place){ 0 };
}

/* "S(k) R": of each operand; one more is of a new letter. */
static dti_strategy strategy_of(const bound_parts *p, const char *text)
{
    dti_strategy s;
    memset(&s, 0, sizeof s);
    for (int o = 0; *text; o++) {
        size_t n = strcspn(text, " ");
        *(o < p->rule.operand_count ? &s.operand[o] : &s.fresh) = place_of(p, text, n);
        text += n + strspn(text + n, " ");
    }
    return s;
}

static void put_marks(dti_pen *pen, const dti_rule *rule, const char *what, uint32_t operands)
{
    for (int o = 0; o < rule->operand_count; o++)
        if (operands >> o & 1) dti_put(pen, " %s %s", what, dti_rule_name(rule, o));
}

static const char *strategy_text(const bound_parts *p, const dti_strategy *s, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    dti_put_strategy(&pen, &p->rule, &p->bound, s);
    put_marks(&pen, &p->rule, "lift", s->lift);
    put_marks(&pen, &p->rule, "rescale", s->rescale);
    dti_put(&pen, "%s", s->lift_number ? " lift 1" : "");
    return room;
}

/* ---- single cases ------------------------------------------------------------------------------------------------ */

typedef struct case_row { bound_call call; const char *places, *text, *why; } case_row; /* text NULL: illegal       */

static const case_row cases[] = {
    /* Splits. */
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "R R", "a R, b R -> R", "" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "S(m) R", "a S(m), b R -> S(m)", "m is split and stays so" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "R S(n)", "a R, b S(n) -> S(n)", "n is split and stays so" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "S(k) S(k)", "a S(k), b S(k) -> P(sum)", "k is split and reduced" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "S(k) R", NULL, "k is split: expected S(k) of b, which has it, got R" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "S(m) S(n)", NULL,
      "a is S(m) and b is S(n), but a mesh dim splits one factor" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "S(m) S(m)", NULL, "b is S(m), but does not have it" },
    { { &matmul, "[2,4,6] [6,8]", 0, 0 }, "S(...[0]) R", "a S(...[0]), b R -> S(...[0])",
      "...[0] is split and stays so" },
    { { &matmul, "[2,4,6] [1,6,8]", 0, 0 }, "S(...[0]) S(...[0])", NULL, "b is S(...[0]), but does not have it" },
    { { &matmul, "[2,4,6] [2,6,8]", 0, 0 }, "S(...[0]) R", NULL,
      "...[0] is split: expected S(...[0]) of b, which has it, got R" },
    { { &matmul, "[4,30] [(5 6),8]", 0, 0 }, "S(k.1) S(k.1)", "a S(k.1), b S(k.1) -> P(sum)",
      "k.1 is split and reduced" },
    { { &matmul, "[4,30] [(5 6),8]", 0, 0 }, "S(k) S(k)", "a S(k), b S(k) -> P(sum)", "k is split and reduced" },
    { { &matmul, "[4,30] [(5 6),8]", 0, 0 }, "S(k) S(k.0)", NULL,
      "a is S(k) and b is S(k.0), but a mesh dim splits one factor" },
    { { &add, "[4,6] [6]", 0, 0 }, "S(...[0]) R", "a S(...[0]), b R -> S(...[0])", "...[0] is split and stays so" },
    { { &add, "[4,6] [6]", 0, 0 }, "S(...[1]) S(...[1])", "a S(...[1]), b S(...[1]) -> S(...[1])",
      "...[1] is split and stays so" },
    { { &embedding, "[17,12] [8,8]", 0, 0 }, "S(v) R", "w S(v), ids R -> P(sum)", "v is split and reduced" },
    { { &embedding, "[17,12] [8,8]", 0, 0 }, "S(h) R", "w S(h), ids R -> S(h)", "h is split and stays so" },
    { { &embedding, "[17,12] [8,8]", 0, 0 }, "R S(...[1])", "w R, ids S(...[1]) -> S(...[1])",
      "...[1] is split and stays so" },
    { { &mean, "[4,6]", 0, 0 }, "S(k)", "x S(k) -> P(sum)", "k is split and reduced" },
    { { &amax, "[4,6]", 0, 0 }, "S(k)", "x S(k) -> P(max)", "k is split and reduced" },
    { { &prod, "[4,6]", 0, 0 }, "S(k)", "x S(k) -> P(prod)", "k is split and reduced" },
    { { &prod, "[4,6]", 0, 0 }, "P(prod)", NULL, "P(prod) of x must be reduced first" },
    /* Through index maps. */
    { { &slice, "[13,4]", 0, "a=7" }, "S(a1)", "x S(a1) -> S(a)",
      "a1 is split and goes through an index map: the result is cut anew" },
    { { &slice, "[(2 7),4]", 0, "a=7" }, "S(a1)", "x S(a1) -> S(a)",
      "a1 is split and goes through an index map: the result is cut anew" },
    { { &slice, "[13,4]", 0, "a=7" }, "S(b)", "x S(b) -> S(b)", "b is split and stays so" },
    { { &slice, "[13,4]", 0, "a=7" }, "S(a)", NULL, "x is S(a), but does not have it" },
    { { &slice, "[13,4]", 0, "a=7" }, "P(sum)", "x P(sum) -> P(sum)", "the value is linear in x" },
    { { &slice, "[13,4]", 0, "a=7" }, "P(max)", "x P(max) -> P(max)", "the value rises with x" },
    { { &slice, "[13,4]", 0, "a=7" }, "P(prod)", NULL, "P(prod) of x must be reduced first" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" }, "S(a1) S(a2)", "x S(a1), y S(a2) -> S(a)",
      "a1 is split and goes through an index map: the result is cut anew" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" }, "S(a1) R", NULL,
      "a1 is split: expected S(a2) of y, which has it, got R" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" }, "S(a1) S(b)", NULL,
      "x is S(a1) and y is S(b), but a mesh dim splits one factor" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" }, "S(a1) P(sum)", NULL,
      "a1 is split: expected S(a2) of y, which has it, got P(sum)" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" }, "P(sum) R", "x P(sum), y R -> P(sum) lift y",
      "the value is linear in x; y, R, becomes P(sum): it is added once, on the first rank" },
    { { &split, "[9]", 0, "a1=4 a2=5" }, "S(a)", "x S(a) -> S(a1), S(a2)",
      "a is split and goes through an index map: the result is cut anew" },
    { { &pick, "[13,4]", 0, 0 }, "S(a1)", "x S(a1) -> R", "one index of a1 is picked, and goes to all" },
    { { &pick, "[13,4]", 0, 0 }, "S(b)", "x S(b) -> S(b)", "b is split and stays so" },
    /* Whole letters, and those in pieces. */
    { { &softmax, "[4,6]", 0, 0 }, "S(...[0])", "x S(...[0]) -> S(...[0])", "...[0] is split and stays so" },
    { { &softmax, "[4,6]", 0, 0 }, "S(c)", NULL, "the kernel wants c whole" },
    { { &softmax, "[4,6]", 0, 0 }, "P(sum)", NULL, "the value is not linear in x: reduce P(sum) first" },
    { { &softmax, "[4,6]", 0, 0 }, "P(max)", NULL,
      "nothing says that the value only rises or falls: reduce P(max) of x first" },
    { { &rms_norm, "[4,5,6] [6]", 0, 0 }, "S(...[1]) R", "x S(...[1]), w R -> S(...[1]) | S(...[1])",
      "...[1] is split and stays so" },
    { { &rms_norm, "[4,5,6] [6]", 0, 0 }, "S(h) S(h)", NULL, "the kernel wants h whole" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "S(g) S(g) S(g)",
      "q S(g), k S(g), v S(g) -> S(g) | S(g)", "g is split and stays so" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "S(r) R R", "q S(r), k R, v R -> S(r) | S(r)",
      "r is split and stays so" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "S(s) R R", "q S(s), k R, v R -> S(s) | S(s)",
      "s is split and stays so" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "R S(t) S(t)", NULL,
      "t is reduced in one kernel: it may come in pieces, not stay split" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "R R P(sum)", "q R, k R, v P(sum) -> P(sum) | R",
      "the value is linear in v" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 }, "P(sum) R R", NULL, "q is in no monomial, so never P" },
    { { &(const dti_row_text){ "f(x, y)", "k n~, m k -> m n~", "x y" },
        "[4,6] [5,4]", 0, 0 }, "S(n) R", "x S(n), y R -> S(n)",
      "n is split and stays so" },
    /* Sums. */
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "P(sum) R", "a P(sum), b R -> P(sum)", "the value is linear in a" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "R P(avg)", "a R, b P(avg) -> P(avg)", "the value is linear in b" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "P(sum) P(sum)", NULL,
      "a is P(sum) and b is P(sum) in one monomial: reduce one first" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "P(sum) S(n)", NULL,
      "a is P(sum) and b is S(n) in one monomial: reduce one first" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "P(max) R", NULL,
      "nothing says that the value only rises or falls: reduce P(max) of a first" },
    { { &matmul, "[4,6] [6,8]", 0, 0 }, "P(prod) R", NULL, "P(prod) of a must be reduced first" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(k) S(k) R", "x S(k), w S(k), b R -> P(sum) lift b",
      "k is split and reduced; b, R, becomes P(sum): it is added once, on the first rank" },
    { { &linear, "[4,6] [8,6] -", 0, 0 }, "S(k) S(k) R", "x S(k), w S(k) -> P(sum)", "k is split and reduced" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(k) S(k) P(sum)", "x S(k), w S(k), b P(sum) -> P(sum)",
      "k is split and reduced; the value is linear in b" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(k) S(k) P(avg)", "x S(k), w S(k), b P(avg) -> P(sum) rescale b",
      "k is split and reduced; the value is linear in b; b, P(avg), is divided by the ranks" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(k) S(k) S(n)", NULL,
      "x is S(k) and b is S(n), but a mesh dim splits one factor" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "P(sum) R R", "x P(sum), w R, b R -> P(sum) lift b",
      "the value is linear in x; b, R, becomes P(sum): it is added once, on the first rank" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "P(avg) R R", "x P(avg), w R, b R -> P(avg)",
      "the value is linear in x" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "R R P(sum)", "x R, w R, b P(sum) -> P(sum) lift x",
      "the value is linear in b; x, R, becomes P(sum): it is added once, on the first rank" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(...[0]) R P(sum)", NULL,
      "the result is S(...[0]): reduce P(sum) of b first" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "R S(n) S(n)", "x R, w S(n), b S(n) -> S(n)", "n is split and stays so" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "R S(n) P(sum)", NULL,
      "n is split: expected S(n) of b, which has it, got P(sum)" },
    { { &linear, "[4,6] [8,6] [8]", 0, 0 }, "S(...[0]) R R", "x S(...[0]), w R, b R -> S(...[0])",
      "...[0] is split and stays so" },
    { { &add, "[4] [4]", 0, 0 }, "P(sum) P(sum)", "a P(sum), b P(sum) -> P(sum)",
      "the value is linear in a; the value is linear in b" },
    { { &add, "[4] [4]", 0, 0 }, "P(sum) R", "a P(sum), b R -> P(sum) lift b",
      "the value is linear in a; b, R, becomes P(sum): it is added once, on the first rank" },
    { { &add, "[4] [4]", 0, 0 }, "P(avg) R", "a P(avg), b R -> P(avg)", "the value is linear in a" },
    { { &add, "[4] [4]", 0, 0 }, "P(avg) P(avg)", "a P(avg), b P(avg) -> P(avg)",
      "the value is linear in a; the value is linear in b" },
    { { &add, "[4] [4]", 0, 0 }, "P(sum) P(avg)", "a P(sum), b P(avg) -> P(sum) rescale b",
      "the value is linear in a; the value is linear in b; b, P(avg), is divided by the ranks" },
    { { &add_scalar, "[4]", 0, 0 }, "P(sum)", "x P(sum) -> P(sum) lift 1",
      "the value is linear in x; the number is added once, on the first rank" },
    { { &add_scalar, "[4]", 0, 0 }, "P(avg)", "x P(avg) -> P(avg)", "the value is linear in x" },
    { { &mul, "[4] [4]", 0, 0 }, "P(sum) R", "a P(sum), b R -> P(sum)", "the value is linear in a" },
    { { &where, "[4] [4] [4]", 0, 0 }, "R P(sum) R", "c R, a P(sum), b R -> P(sum) lift b",
      "the value is linear in a; b, R, becomes P(sum): it is added once, on the first rank" },
    { { &where, "[4] [4] [4]", 0, 0 }, "P(sum) R R", NULL, "c is in no monomial, so never P" },
    { { &where, "[4] [4] [4]", 0, 0 }, "S(...[0]) P(sum) S(...[0])", NULL,
      "...[0] is split: expected S(...[0]) of a, which has it, got P(sum)" },
    { { &where, "[4] [1] [4]", 0, 0 }, "S(...[0]) P(sum) S(...[0])", NULL,
      "the result is S(...[0]): reduce P(sum) of a first" },
    { { &embedding, "[17,12] [8]", 0, 0 }, "P(sum) R", "w P(sum), ids R -> P(sum)", "the value is linear in w" },
    { { &embedding, "[17,12] [8]", 0, 0 }, "R P(max)", NULL, "ids is in no monomial, so never P" },
    /* Monomials that share operands. */
    { { &(const dti_row_text){ "f(x, v, w)", "..., ..., ... -> ...", "x v + x w" }, "[4] [4] [4]", 0, 0 }, "R P(sum) R",
      "x R, v P(sum), w R -> P(sum) lift w",
      "the value is linear in v; w, R, becomes P(sum): it is added once, on the first rank" },
    { { &(const dti_row_text){ "f(x, v, w)", "..., ..., ... -> ...", "x v + x w" }, "[4] [4] [4]", 0, 0 }, "P(avg) R R",
      "x P(avg), v R, w R -> P(avg)", "the value is linear in x" },
    { { &(const dti_row_text){ "f(a, b, c)", "..., ..., ... -> ...", "a b + b c + a c" },
        "[4] [4] [4]", 0, 0 }, "R P(sum) R", NULL,
      "the value is linear in b; a is R in one monomial and cannot become P: it is in others that are P" },
    { { &(const dti_row_text){ "f(a, b, c)", "..., ..., ... -> ...", "b + a b + c" },
        "[4] [4] [4]", 0, 0 }, "R R P(sum)",
      "a R, b R, c P(sum) -> P(sum) lift b",
      "the value is linear in c; b, R, becomes P(sum): it is added once, on the first rank" },
    { { &(const dti_row_text){ "f(a, b, c)", "..., ..., ... -> ...", "a + b c + 1" },
        "[4] [4] [4]", 0, 0 }, "P(sum) R R",
      "a P(sum), b R, c R -> P(sum) lift b lift 1",
      "the value is linear in a; b, R, becomes P(sum): it is added once, on the first rank; "
      "the number is added once, on the first rank" },
    /* Coefficients that have a reduced letter. */
    { { &(const dti_row_text){ "bag(w, ids)", "v h, n -> h", "w" },
        "[5,4] [3]", 0, 0 }, "R S(n)", "w R, ids S(n) -> P(sum)",
      "n is split and reduced" },
    { { &(const dti_row_text){ "bag(w, ids)", "v h, n -> h", "w" }, "[5,4] [3]", 0, 0 }, "P(sum) S(n)", NULL,
      "w is P and n is split in one monomial: reduce it first" },
    { { &(const dti_row_text){ "bag(w, ids, b)", "v h, n, h -> h", "w + b" }, "[5,4] [3] [4]", 0, 0 }, "R S(n) R", NULL,
      "n of ids is reduced, and nothing says in which monomials" },
    { { &(const dti_row_text){ "add_bag(x, ids, y)", "v h, n, n h -> v h", "x + y" }, "[5,4] [3] [3,4]", 0, 0 },
      "R S(n) S(n)", "x R, ids S(n), y S(n) -> P(sum) lift x",
      "n is split and reduced; x, R, becomes P(sum): it is added once, on the first rank" },
    { { &(const dti_row_text){ "f(m, x, w)", "k, k, k ->", "x w" }, "[4] [4] [4]", 0, 0 }, "S(k) S(k) S(k)",
      "m S(k), x S(k), w S(k) -> P(sum)", "k is split and reduced" },
    { { &(const dti_row_text){ "f(a, b)", "..., ... ->", "a + b" }, "[3] [1]", 0, 0 }, "S(...[0]) R", NULL,
      "b is stretched over ...[0], which is split and reduced" },
    { { &(const dti_row_text){ "f(a, b)", "..., ... ->", "a b" },
        "[3] [1]", 0, 0 }, "S(...[0]) R", "a S(...[0]), b R -> P(sum)",
      "...[0] is split and reduced" },
    /* Several results: of a gradient, and of statistics. */
    { { &(const dti_row_text){ "f(g, x, w)", "... h!, ... h!, h! -> ... h!, h!", "g, saves x w" },
        "[4,6] [4,6] [6]", 0, 0 },
      "S(...[0]) S(...[0]) R", "g S(...[0]), x S(...[0]), w R -> S(...[0]), P(sum)", "...[0] is split and reduced" },
    { { &(const dti_row_text){ "f(g, x, w)", "... h!, ... h!, h! -> ... h!, h!", "g, saves x w" },
        "[4,6] [4,6] [6]", 0, 0 },
      "P(avg) R R", "g P(avg), x R, w R -> P(avg), P(avg)", "the value is linear in g" },
    { { &(const dti_row_text){ "f(a, b)", "... k, b -> ... k b, b", "a + b" }, "[4,6] [5]", 0, 0 }, "S(k) R", NULL,
      "k is split and reduced; results that are S and results that are P need different sums" },
    { { &(const dti_row_text){ "f(x)", "... k -> ... | ... k, ...", "none" }, "[4,6]", 0, 0 }, "S(k)",
      "x S(k) -> P(sum) | S(k), P(sum)", "k is split and reduced" },
    { { &(const dti_row_text){ "f(q, v)", "a, e -> a e | a", "v" },
        "[4] [6]", 0, 0 }, "R S(e)", "q R, v S(e) -> S(e) | R",
      "e is split and stays so" },
    { { &(const dti_row_text){ "f(q, v)", "a e, e -> a e | a", "v" }, "[4,6] [6]", 0, 0 }, "S(e) S(e)",
      "q S(e), v S(e) -> S(e) | P(sum)", "e is split and stays so" },
    /* Trends. */
    { { &exponent, "[4]", 0, 0 }, "P(max)", "x P(max) -> P(max)", "the value rises with x" },
    { { &exponent, "[4]", 0, 0 }, "P(min)", "x P(min) -> P(min)", "the value rises with x" },
    { { &exponent, "[4]", 0, 0 }, "P(sum)", NULL, "the value is not linear in x: reduce P(sum) first" },
    { { &neg, "[4]", 0, 0 }, "P(max)", "x P(max) -> P(min)", "the value falls with x" },
    { { &neg, "[4]", 0, 0 }, "P(avg)", "x P(avg) -> P(avg)", "the value is linear in x" },
    { { &sub, "[4] [4]", 0, 0 }, "P(max) R", "a P(max), b R -> P(max)", "the value rises with a" },
    { { &sub, "[4] [4]", 0, 0 }, "R P(max)", "a R, b P(max) -> P(min)", "the value falls with b" },
    { { &add, "[4] [4]", 0, 0 }, "P(max) P(max)", NULL,
      "P(max) of a passes where the others are R, but b is P(max)" },
    { { &add, "[4] [4]", 0, 0 }, "P(sum) P(max)", NULL,
      "P(max) of b passes where the others are R, but a is P(sum)" },
    { { &add, "[4] [1]", 0, 0 }, "S(...[0]) P(min)", NULL,
      "P(min) of b passes where the others are R, but a is S(...[0])" },
    { { &add_scalar, "[4]", 0, 0 }, "P(min)", "x P(min) -> P(min)", "the value rises with x" },
    { { &amax, "[4,6]", 0, 0 }, "P(max)", "x P(max) -> P(max)", "the value rises with x" },
    { { &amax, "[4,6]", 0, 0 }, "P(min)", NULL, "k is reduced by max: reduce P(min) of x first" },
    { { &(const dti_row_text){ "f(x)", "... k -> ...", "x, rising" }, "[4,6]", 0, 0 }, "P(max)", NULL,
      "k is reduced by sum: reduce P(max) of x first" },
    { { &(const dti_row_text){ "f(x)", "... k! -> ... k!", "none, rising" }, "[4,6]", 0, 0 }, "P(max)", NULL,
      "the kernel may mix elements along k: reduce P(max) of x first" },
    { { &(const dti_row_text){ "f(x)", "... -> ... | ...", "none, rising" }, "[4,6]", 0, 0 }, "P(max)", NULL,
      "the row keeps more than its value: reduce P(max) of x first" },
    { { &(const dti_row_text){ "f(a, b)", "..., ... -> ...", "a b - a, rising" }, "[4] [4]", 0, 0 }, "P(max) R", NULL,
      "nothing says that the value only rises or falls: reduce P(max) of a first" },
    /* New letters. */
    { { &one_hot, "[4]", 0, "c=3" }, "R S(c)", "x R -> S(c)", "c is new and split as asked" },
    { { &one_hot, "[4]", 0, "c=3" }, "S(...[0]) S(c)", NULL, "S(c) of a new letter, but x is not R" },
    { { &expand, "[1,4]", "[3,4]", 0 }, "R S(...[0])", "x R -> S(...[0])", "...[0] is new and split as asked" },
    { { &expand, "[1,4]", "[3,4]", 0 }, "P(sum) S(...[0])", NULL, "S(...[0]) of a new letter, but x is not R" },
    { { &expand, "[1,4]", "[3,4]", 0 }, "R S(...[1])", NULL,
      "...[1] is no new letter: its operands say where it is split" },
    { { &expand, "[1,4]", "[3,4]", 0 }, "P(sum)", "x P(sum) -> P(sum)", "the value is linear in x" },
    { { &(const dti_row_text){ "zeros()", "-> ...", "none" }, "", "[2,3]", 0 }, "S(...[1])", "-> S(...[1])",
      "...[1] is new and split as asked" },
    { { &(const dti_row_text){ "zeros()", "-> ...", "none" }, "", "[2,3]", 0 }, "", "-> R", "" },
};

static void expect_case(dt_context *ctx, const case_row *row)
{
    static bound_parts parts;
    char why[ROOM] = "", text[ROOM];
    dti_pen pen = { why, sizeof why, 0 };
    if (!expect(bound_make(ctx, &row->call, &parts), "%s: %s", row->call.row->head, dt_context_error(ctx))) return;
    dti_strategy s = strategy_of(&parts, row->places);
    bool legal = dti_partial_decide(&parts.rule, &parts.bound, &s, &pen);
    expect(legal == (row->text != NULL), "%s %s: legal %d (%s)", row->call.row->head, row->places, legal, why);
    expect(strcmp(why, row->why) == 0, "%s %s:\n#  got  %s\n#  want %s", row->call.row->head, row->places, why,
           row->why);
    if (!legal || !row->text) return;
    expect(strcmp(strategy_text(&parts, &s, text), row->text) == 0, "%s:\n#  got  %s\n#  want %s", row->call.row->head,
           text, row->text);
}

static void cases_and_their_reasons(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(cases); i++) {
        expect_case(ctx, &cases[i]);
        expect_no_error(ctx, cases[i].call.row->head);
    }
    dt_context_destroy(&ctx);
}

/* ---- lists of strategies ----------------------------------------------------------------------------------------- */

typedef struct list_row { bound_call call; const char *text; } list_row;

static const list_row lists[] = {
    { { &matmul, "[2,4,6] [6,8]", 0, 0 },
      "a R, b R -> R\n"
      "a R, b P(sum) -> P(sum)\n"
      "a R, b P(avg) -> P(avg)\n"
      "a P(sum), b R -> P(sum)\n"
      "a P(avg), b R -> P(avg)\n"
      "a S(m), b R -> S(m)\n"
      "a S(k), b S(k) -> P(sum)\n"
      "a R, b S(n) -> S(n)\n"
      "a S(...[0]), b R -> S(...[0])\n" },
    { { &(const dti_row_text){ "linear(x, w, b)", "k, n k, n? -> n", "x w + b" }, "[6] [8,6] [8]", 0, 0 },
      "x R, w R, b R -> R\n"
      "x R, w R, b P(sum) -> P(sum) lift x\n"
      "x R, w R, b P(avg) -> P(avg)\n"
      "x R, w P(sum), b R -> P(sum) lift b\n"
      "x R, w P(sum), b P(sum) -> P(sum)\n"
      "x R, w P(sum), b P(avg) -> P(sum) rescale b\n"
      "x R, w P(avg), b R -> P(avg)\n"
      "x R, w P(avg), b P(sum) -> P(sum) rescale w\n"
      "x R, w P(avg), b P(avg) -> P(avg)\n"
      "x P(sum), w R, b R -> P(sum) lift b\n"
      "x P(sum), w R, b P(sum) -> P(sum)\n"
      "x P(sum), w R, b P(avg) -> P(sum) rescale b\n"
      "x P(avg), w R, b R -> P(avg)\n"
      "x P(avg), w R, b P(sum) -> P(sum) rescale x\n"
      "x P(avg), w R, b P(avg) -> P(avg)\n"
      "x S(k), w S(k), b R -> P(sum) lift b\n"
      "x S(k), w S(k), b P(sum) -> P(sum)\n"
      "x S(k), w S(k), b P(avg) -> P(sum) rescale b\n"
      "x R, w S(n), b S(n) -> S(n)\n" },
    { { &sub, "[4] []", 0, 0 },
      "a R, b R -> R\n"
      "a R, b P(sum) -> P(sum) lift a\n"
      "a R, b P(avg) -> P(avg)\n"
      "a P(sum), b R -> P(sum) lift b\n"
      "a P(sum), b P(sum) -> P(sum)\n"
      "a P(sum), b P(avg) -> P(sum) rescale b\n"
      "a P(avg), b R -> P(avg)\n"
      "a P(avg), b P(sum) -> P(sum) rescale a\n"
      "a P(avg), b P(avg) -> P(avg)\n"
      "a P(max), b R -> P(max)\n"
      "a P(min), b R -> P(min)\n"
      "a R, b P(max) -> P(min)\n"
      "a R, b P(min) -> P(max)\n"
      "a S(...[0]), b R -> S(...[0])\n" },
    { { &attention, "[2,5,8,4] [2,7,2,4] [2,7,2,4]", 0, 0 },
      "q R, k R, v R -> R | R\n"
      "q R, k R, v P(sum) -> P(sum) | R\n"
      "q R, k R, v P(avg) -> P(avg) | R\n"
      "q S(b), k S(b), v S(b) -> S(b) | S(b)\n"
      "q S(s), k R, v R -> S(s) | S(s)\n"
      "q S(g), k S(g), v S(g) -> S(g) | S(g)\n"
      "q S(r), k R, v R -> S(r) | S(r)\n" },
    { { &rms_norm, "[4,6] [6]", 0, 0 }, "x R, w R -> R | R\nx S(...[0]), w R -> S(...[0]) | S(...[0])\n" },
    { { &sum_row, "[(2 3)]", 0, 0 },
      "x R -> R\n"
      "x P(sum) -> P(sum)\n"
      "x P(avg) -> P(avg)\n"
      "x S(k.0) -> P(sum)\n"
      "x S(k.1) -> P(sum)\n"
      "x S(k) -> P(sum)\n" },
    { { &(const dti_row_text){ "f(x)", "a -> a c", "none" },
        "[4]", 0, "c=3" }, "x R -> R\nx S(a) -> S(a)\nx R -> S(c)\n" },
    { { &(const dti_row_text){ "zeros()", "-> ...", "none" }, "", "[2,3]", 0 }, "-> R\n-> S(...[0])\n-> S(...[1])\n" },
    { { &cat, "[9,4] [5,4]", 0, "a=14" },
      "x R, y R -> R\n"
      "x R, y P(sum) -> P(sum) lift x\n"
      "x R, y P(avg) -> P(avg)\n"
      "x P(sum), y R -> P(sum) lift y\n"
      "x P(sum), y P(sum) -> P(sum)\n"
      "x P(sum), y P(avg) -> P(sum) rescale y\n"
      "x P(avg), y R -> P(avg)\n"
      "x P(avg), y P(sum) -> P(sum) rescale x\n"
      "x P(avg), y P(avg) -> P(avg)\n"
      "x P(max), y R -> P(max)\n"
      "x P(min), y R -> P(min)\n"
      "x R, y P(max) -> P(max)\n"
      "x R, y P(min) -> P(min)\n"
      "x S(a1), y S(a2) -> S(a)\n"
      "x S(b), y S(b) -> S(b)\n" },
};

static const char *list_text(const bound_parts *parts, const uint8_t *kinds, int max, char *room, size_t n)
{
    static dti_strategy strategies[MANY];
    char text[ROOM];
    dti_pen pen = { room, n, 0 };
    room[0] = '\0';
    int count = dti_partial_strategies(&parts->rule, &parts->bound, kinds, strategies, max);
    for (int i = 0; i < count; i++) dti_put(&pen, "%s\n", strategy_text(parts, &strategies[i], text));
    return room;
}

static void lists_in_their_order(void)
{
    static bound_parts parts;
    static char text[1 << 14];
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(lists); i++) {
        expect(bound_make(ctx, &lists[i].call, &parts), "%s", dt_context_error(ctx));
        list_text(&parts, NULL, MANY, text, sizeof text);
        expect(strcmp(text, lists[i].text) == 0, "%s:\ngot\n%swant\n%s", lists[i].call.row->head, text, lists[i].text);
    }
    dt_context_destroy(&ctx);
}

static void lists_may_be_narrowed(void)
{
    static bound_parts parts;
    static const uint8_t none[2] = { 0, 0 }, one[2] = { 0, 1 << DTI_AVG | 1 << DTI_MAX };
    char text[ROOM];
    dt_context *ctx = dt_context_dry(1);
    bound_make(ctx, &lists[2].call, &parts);
    expect(strcmp(list_text(&parts, none, MANY, text, sizeof text),
                  "a R, b R -> R\na S(...[0]), b R -> S(...[0])\n") == 0, "no P: %s", text);
    expect(strcmp(list_text(&parts, one, MANY, text, sizeof text),
                  "a R, b R -> R\na R, b P(avg) -> P(avg)\na R, b P(max) -> P(min)\na S(...[0]), b R -> S(...[0])\n")
               == 0, "b avg or max: %s", text);
    expect(strcmp(list_text(&parts, NULL, 2, text, sizeof text),
                  "a R, b R -> R\na R, b P(sum) -> P(sum) lift a\n") == 0, "two: %s", text);
    expect(strcmp(list_text(&parts, NULL, 0, text, sizeof text), "") == 0, "none: %s", text);
    dt_context_destroy(&ctx);
}

static bool is_of(const dti_strategy *s, const uint8_t *kinds)
{
    for (int i = 0; i < DTI_MAX_OPERANDS; i++)
        if (s->operand[i].what == DTI_PLACE_P && !(kinds[i] >> s->operand[i].kind & 1)) return false;
    return true;
}

/* A list for more kinds has those for fewer, in their order. */
static void lists_hold_narrower(void)
{
    static bound_parts parts;
    static dti_strategy all[MANY], some[MANY];
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(lists); i++) {
        uint8_t every[DTI_MAX_OPERANDS], kinds[DTI_MAX_OPERANDS];
        memset(every, 0xff, sizeof every);
        bound_make(ctx, &lists[i].call, &parts);
        int n = dti_partial_strategies(&parts.rule, &parts.bound, every, all, MANY);
        expect(dti_partial_lists_all(&parts.rule, every) && n < MANY, "%s: all are listed", lists[i].call.row->head);
        for (unsigned mask = 0; mask < 1u << 10; mask++) {
            for (int o = 0; o < DTI_MAX_OPERANDS; o++) kinds[o] = (uint8_t)((mask >> (o % 2 * 5) & 31) << DTI_SUM);
            int m = dti_partial_strategies(&parts.rule, &parts.bound, kinds, some, MANY), at = 0;
            for (int k = 0; k < n; k++) {
                if (!is_of(&all[k], kinds)) continue;
                expect(at < m && memcmp(&all[k], &some[at], sizeof *some) == 0, "%s, kinds %x: strategy %d",
                       lists[i].call.row->head, mask, at);
                at++;
            }
            expect(at == m, "%s, kinds %x: %d of %d", lists[i].call.row->head, mask, at, m);
        }
    }
    dt_context_destroy(&ctx);
}

/* Many operands have more strategies than anyone wants: the list ends soon. */
static void long_lists_end(void)
{
    static bound_parts parts;
    static dti_strategy strategies[MANY];
    dt_context *ctx = dt_context_dry(1);
    bound_call call = { &(const dti_row_text){ "f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p)", "z,,,,,,,,,,,,,,, ->",
                          "b+c+d+e+f+g+h+i+j+k+l+m+n+o+p" }, "[4] [] [] [] [] [] [] [] [] [] [] [] [] [] [] []", 0, 0 };
    expect(bound_make(ctx, &call, &parts), "%s", dt_context_error(ctx));
    expect(dti_partial_strategies(&parts.rule, &parts.bound, NULL, strategies, MANY) == MANY, "as many as fit");
    static const uint8_t none[DTI_MAX_OPERANDS] = { 0 };
    uint8_t every[DTI_MAX_OPERANDS];
    memset(every, 0xff, sizeof every);
    expect(!dti_partial_lists_all(&parts.rule, every), "not all");
    expect(dti_partial_strategies(&parts.rule, &parts.bound, none, strategies, MANY) == 1,
           "all R; z is reduced, but nothing says in which monomials");
    dt_context_destroy(&ctx);
}

/* ---- every combination against numbers --------------------------------------------------------------------------- */

static double product(const double *v, const int64_t *at) { (void)at; return v[0] * v[1]; }
static double added(const double *v, const int64_t *at) { (void)at; return v[0] + v[1]; }
static double subtracted(const double *v, const int64_t *at) { (void)at; return v[0] - v[1]; }
static double chosen(const double *v, const int64_t *at) { (void)at; return v[0] != 0 ? v[1] : v[2]; }
static double itself(const double *v, const int64_t *at) { (void)at; return v[0]; }
static double negated(const double *v, const int64_t *at) { (void)at; return -v[0]; }
static double cubed(const double *v, const int64_t *at) { (void)at; return v[0] * v[0] * v[0]; }
static double squared(const double *v, const int64_t *at) { (void)at; return v[0] * v[0]; }
static double looked_up(const double *v, const int64_t *at) { return v[1] == (double)at[0] ? v[0] : 0; }
static double two_products(const double *v, const int64_t *at) { (void)at; return v[0] * v[1] + v[0] * v[2]; }
static double third(const double *v) { return v[2]; }

static const oracle_op ops[] = {
    { { &matmul, "[3,3] [3,2]", 0, 0 }, "mnk", { 3, 2, 3 }, { "mk", "kn" }, "mn", DTI_SUM, .inside = product },
    { { &(const dti_row_text){ "outer(a, b)", "a, b -> a b", "a b" },
        "[3] [2]", 0, 0 }, "ab", { 3, 2 }, { "a", "b" }, "ab", DTI_SUM,
      .inside = product },
    { { &(const dti_row_text){ "dot(a, b)", "k, k ->", "a b" },
        "[3] [3]", 0, 0 }, "k", { 3 }, { "k", "k" }, "", DTI_SUM,
      .inside = product },
    { { &linear, "[3,3] [2,3] [2]", 0, 0 }, "Ank", { 3, 2, 3 }, { "Ak", "nk", "n" }, "An", DTI_SUM,
      .inside = product, .outside = third },
    { { &add, "[3,2] [3,2]", 0, 0 }, "AB", { 3, 2 }, { "AB", "AB" }, "AB", DTI_SUM, .inside = added },
    { { &add, "[3,2] [2]", 0, 0 }, "AB", { 3, 2 }, { "AB", "B" }, "AB", DTI_SUM, .inside = added },
    { { &add, "[3,1] [1,2]", 0, 0 }, "AB", { 3, 2 }, { "A.", ".B" }, "AB", DTI_SUM, .inside = added },
    { { &sub, "[3] [3]", 0, 0 }, "A", { 3 }, { "A", "A" }, "A", DTI_SUM, .inside = subtracted },
    { { &mul, "[3] [3]", 0, 0 }, "A", { 3 }, { "A", "A" }, "A", DTI_SUM, .inside = product },
    { { &mul, "[3,2] [2]", 0, 0 }, "AB", { 3, 2 }, { "AB", "B" }, "AB", DTI_SUM, .inside = product },
    { { &where, "[3] [3] [3]", 0, 0 }, "A", { 3 }, { "A", "A", "A" }, "A", DTI_SUM, .inside = chosen, .choice = true },
    { { &where, "[3,1] [2] [3,2]", 0, 0 }, "AB", { 3, 2 }, { "A.", "B", "AB" }, "AB", DTI_SUM,
      .inside = chosen, .choice = true },
    { { &add_scalar, "[3]", 0, 0 }, "A", { 3 }, { "A" }, "A", DTI_SUM, .inside = itself, .number = 3 },
    { { &(const dti_row_text){ "rsub_scalar(x)", "... -> ...", "1 - x, rising" },
        "[3]", 0, 0 }, "A", { 3 }, { "A" }, "A", DTI_SUM,
      .inside = negated,
      .number = 3 },
    { { &neg, "[3]", 0, 0 }, "A", { 3 }, { "A" }, "A", DTI_SUM, .inside = negated },
    { { &(const dti_row_text){ "cube(x)", "... -> ...", "none, rising" },
        "[3]", 0, 0 }, "A", { 3 }, { "A" }, "A", DTI_SUM,
      .inside = cubed },
    { { &sum_row, "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_SUM, .inside = itself },
    { { &(const dti_row_text){ "sum_and_number(x)", "... k -> ...", "x + 1" },
        "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_SUM,
      .inside = itself, .number = 3 },
    { { &mean, "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_SUM, .inside = itself, .divide = true },
    { { &amax, "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_MAX, .inside = itself },
    { { &(const dti_row_text){ "amin(x)", "... k:min -> ...", "none, rising" },
        "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_MIN,
      .inside = itself },
    { { &(const dti_row_text){ "neg_amax(x)", "... k:min -> ...", "none, falling" },
        "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_MIN,
      .inside = negated },
    { { &prod, "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A", DTI_PROD, .inside = itself },
    { { &(const dti_row_text){ "sum_of_squares(x)", "... k -> ...", "none, saves x" },
        "[2,3]", 0, 0 }, "Ak", { 2, 3 }, { "Ak" }, "A",
      DTI_SUM, .inside = squared },
    { { &embedding, "[3,2] [3]", 0, 0 }, "vAh", { 3, 3, 2 }, { "vh", "A" }, "Ah", DTI_SUM,
      .inside = looked_up, .index = true },
    { { &(const dti_row_text){ "bag(w, ids)", "v h, n -> h", "w" },
        "[3,2] [3]", 0, 0 }, "vnh", { 3, 3, 2 }, { "vh", "n" }, "h", DTI_SUM,
      .inside = looked_up, .index = true },
    { { &(const dti_row_text){ "gate(x, v, w)", "..., ..., ... -> ...", "x v + x w" },
        "[3] [3] [3]", 0, 0 }, "A", { 3 }, { "A", "A", "A" },
      "A", DTI_SUM, .inside = two_products },
    { { &(const dti_row_text){ "repeat(x)", "a -> a c", "x" },
        "[3]", 0, "c=2" }, "ac", { 3, 2 }, { "a" }, "ac", DTI_SUM, .inside = itself },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" },
        "[1,3]", "[2,3]", 0 }, "AB", { 2, 3 }, { ".B" }, "AB", DTI_SUM,
      .inside = itself },
};

/* What always gives the right result though it is not legal: op and operands, and the result that would be right. The
 * rules for P(max), P(min) ask for a row that is marked, and for one operand; P(prod) is always reduced first. */
static const char *const known[] = {
    "outer: a P(prod), b P(prod) -> P(prod)",
    "linear: x R, w R, b P(max) -> P(max)",
    "linear: x R, w R, b P(min) -> P(min)",
    "mul: a P(prod), b P(prod) -> P(prod)",
    "where: c R, a P(max), b R -> P(max)",
    "where: c R, a P(min), b R -> P(min)",
    "where: c R, a R, b P(max) -> P(max)",
    "where: c R, a P(max), b P(max) -> P(max)",
    "where: c R, a R, b P(min) -> P(min)",
    "where: c R, a P(min), b P(min) -> P(min)",
    "where: c R, a P(prod), b P(prod) -> P(prod)",
    "cube: x P(prod) -> P(prod)",
    "prod: x P(prod) -> P(prod)",
    "embedding: w P(max), ids R -> P(max)",
    "embedding: w P(min), ids R -> P(min)",
    "embedding: w P(prod), ids R -> P(prod)",
    "repeat: x P(max) -> P(max)",
    "repeat: x P(min) -> P(min)",
    "repeat: x P(prod) -> P(prod)",
    "expand: x P(max) -> P(max)",
    "expand: x P(min) -> P(min)",
    "expand: x P(prod) -> P(prod)",
};

static bool is_known(const char *text, bool *used)
{
    for (int i = 0; i < DT_COUNT(known); i++)
        if (strcmp(known[i], text) == 0) return used[i] = true;
    return false;
}

static const char *combination_text(const bound_parts *parts, const dti_strategy *s, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    dti_put(&pen, "%s: ", dti_rule_op(&parts->rule));
    dti_put_strategy(&pen, &parts->rule, &parts->bound, s);
    return room;
}

/* Would some result, some operands lifted and averages rescaled or not, be right after all? */
static bool finds_a_result(const oracle_op *op, const bound_parts *parts, dti_strategy *s)
{
    int operands = parts->rule.operand_count;
    for (int result = 0; result < place_count(parts); result++)
        for (uint32_t lift = 0; lift < 1u << (operands + 1); lift++)
            for (uint32_t rescale = 0; rescale < 1u << operands; rescale++) {
                bool sensible = true;
                for (int o = 0; o < operands; o++) {
                    sensible = sensible && !((lift >> o & 1) && s->operand[o].what != DTI_PLACE_R);
                    sensible = sensible && !((rescale >> o & 1) && s->operand[o].kind != DTI_AVG);
                }
                if (!sensible) continue;
                s->result[0] = place_number(result);
                s->lift = lift & ((1u << operands) - 1);
                s->rescale = rescale;
                s->lift_number = lift >> operands;
                if (oracle_holds(op, parts, s)) return true;
            }
    return false;
}

/* Combination number i: the places of operands are its digits. */
static bool combination(const bound_parts *parts, int i, dti_strategy *s)
{
    memset(s, 0, sizeof *s);
    for (int o = 0; o < parts->rule.operand_count; o++) {
        s->operand[o] = place_number(i % place_count(parts));
        i /= place_count(parts);
    }
    return i == 0;
}

typedef struct tally { int legal, illegal, known; bool used[DT_COUNT(known)]; } tally;

static void try_combination(const oracle_op *op, const bound_parts *parts, dti_strategy *s, tally *t)
{
    char text[ROOM], why[ROOM] = "";
    dti_pen pen = { why, sizeof why, 0 };
    if (dti_partial_decide(&parts->rule, &parts->bound, s, &pen)) {
        t->legal++;
        expect(oracle_holds(op, parts, s), "%s does not hold (%s)", combination_text(parts, s, text), why);
        return;
    }
    t->illegal++;
    if (!finds_a_result(op, parts, s)) return;
    t->known++;
    combination_text(parts, s, text);
    expect(is_known(text, t->used), "\"%s\" holds, but: %s", text, why);
}

static void combinations_give_what_they_say(void)
{
    static bound_parts parts;
    tally t = { 0 };
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(ops); i++) {
        dti_strategy s;
        if (!expect(bound_make(ctx, &ops[i].call, &parts), "%s", dt_context_error(ctx))) continue;
        for (int c = 0; combination(&parts, c, &s); c++) try_combination(&ops[i], &parts, &s, &t);
    }
    for (int i = 0; i < DT_COUNT(known); i++) expect(t.used[i], "\"%s\" is known, but does not hold", known[i]);
    expect(t.legal > 150 && t.illegal > 1000, "%d legal, %d not", t.legal, t.illegal);
    dt_context_destroy(&ctx);
}

/* Lists have each legal combination once, and those of new letters, which hold too. */
static void lists_are_complete(void)
{
    static bound_parts parts;
    static dti_strategy strategies[MANY];
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(ops); i++) {
        dti_strategy s;
        int found = 0, fresh = 0;
        bound_make(ctx, &ops[i].call, &parts);
        int n = dti_partial_strategies(&parts.rule, &parts.bound, NULL, strategies, MANY);
        for (int j = 0; j < n; j++) {
            fresh += strategies[j].fresh.what == DTI_PLACE_S;
            expect(oracle_holds(&ops[i], &parts, &strategies[j]), "%s, strategy %d", ops[i].call.row->head, j);
        }
        for (int c = 0; combination(&parts, c, &s); c++) {
            if (!dti_partial_decide(&parts.rule, &parts.bound, &s, NULL)) continue;
            int times = 0;
            for (int j = 0; j < n; j++) times += memcmp(&strategies[j], &s, sizeof s) == 0;
            expect(times == 1, "%s, combination %d: %d times", ops[i].call.row->head, c, times);
            found += times;
        }
        expect(found + fresh == n, "%s: %d listed, %d legal", ops[i].call.row->head, n, found + fresh);
    }
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "cases_and_their_reasons", cases_and_their_reasons },
    { "lists_in_their_order", lists_in_their_order },
    { "lists_may_be_narrowed", lists_may_be_narrowed },
    { "lists_hold_narrower", lists_hold_narrower },
    { "long_lists_end", long_lists_end },
    { "combinations_give_what_they_say", combinations_give_what_they_say },
    { "lists_are_complete", lists_are_complete },
};

const suite the_suite = { "partial", rows, DT_COUNT(rows) };
