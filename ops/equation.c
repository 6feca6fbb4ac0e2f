/* SPDX-License-Identifier: Apache-2.0
 *
 * Equations: the text, then letters for the dims of "..." and for those that are stretched. */
#include "ops/equation.h"

#include <string.h>

#include "core/context.h"
#include "core/scan.h"

enum { LETTERS = 52 };

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* A to Z, a to z. */
static char letter_at(int i) { return (char)(i < 26 ? 'A' + i : 'a' + i - 26); }

bool dti_subscripts_has(const dti_subscripts *term, char letter)
{
    return term->n && memchr(term->letter, letter, (size_t)term->n) != NULL;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static bool scan_letter(dti_scan *scan, dti_subscripts *term)
{
    char letter = *scan->at;
    if (dti_subscripts_has(term, letter))
        return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "letter \"%c\" twice in one term, but a diagonal has no "
                             "placement", letter);
    if (term->n == DT_MAX_DIMS)
        return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "more than %d letters in one term", DT_MAX_DIMS);
    term->letter[term->n++] = letter;
    scan->at++;
    return true;
}

static bool scan_dots(dti_scan *scan, dti_subscripts *term)
{
    if (term->dots >= 0) return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "a second \"...\" in one term");
    term->dots = term->n;
    scan->at += 3;
    return true;
}

static bool scan_term(dti_scan *scan, dti_subscripts *term)
{
    *term = (dti_subscripts){ .dots = -1 };
    for (dti_scan_space(scan);; dti_scan_space(scan)) {
        if (is_letter(*scan->at)) {
            if (!scan_letter(scan, term)) return false;
        } else if (strncmp(scan->at, "...", 3) == 0) {
            if (!scan_dots(scan, term)) return false;
        } else return true;
    }
}

/* How many operands have a letter. */
static int count_of(const dti_equation *e, char letter)
{
    int n = 0;
    for (int i = 0; i < e->n; i++) n += dti_subscripts_has(&e->in[i], letter);
    return n;
}

static bool has_dots(const dti_equation *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->in[i].dots >= 0) return true;
    return false;
}

/* The result that is not written. */
static bool make_result(dti_scan *scan, dti_equation *e)
{
    e->out = (dti_subscripts){ .dots = has_dots(e) ? 0 : -1 };
    for (int i = 0; i < LETTERS; i++) {
        if (count_of(e, letter_at(i)) != 1) continue;
        if (e->out.n == DT_MAX_DIMS)
            return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "a result of more than %d letters", DT_MAX_DIMS);
        e->out.letter[e->out.n++] = letter_at(i);
    }
    return true;
}

static bool scan_result(dti_scan *scan, dti_equation *e)
{
    const char *at = scan->at;
    if (!scan_term(scan, &e->out) || !dti_scan_end(scan, "a letter, \"...\" or the end")) return false;
    for (int i = 0; i < e->out.n; i++)
        if (!count_of(e, e->out.letter[i]))
            return dti_scan_fail(scan, DT_ERR_PARSE, strchr(at, e->out.letter[i]), "no operand has letter \"%c\"",
                                 e->out.letter[i]);
    return true;
}

bool dti_equation_parse(dt_context *ctx, const char *text, dti_equation *e)
{
    dti_scan scan = { ctx, "einsum", text, text };
    e->n = 0;
    do {
        if (e->n == DT_MAX_OPERANDS)
            return dti_scan_fail(&scan, DT_ERR_PARSE, scan.at, "more than %d operands", DT_MAX_OPERANDS);
        if (!scan_term(&scan, &e->in[e->n++])) return false;
    } while (dti_scan_char(&scan, ','));
    if (dti_scan_text(&scan, "->")) return scan_result(&scan, e);
    return dti_scan_end(&scan, "a letter, \"...\", \",\", \"->\" or the end") && make_result(&scan, e);
}

static void put_term(dti_pen *pen, const dti_subscripts *term)
{
    for (int i = 0; i <= term->n; i++) {
        if (i == term->dots) dti_put(pen, "...");
        if (i < term->n) dti_put(pen, "%c", term->letter[i]);
    }
}

void dti_equation_put(dti_pen *pen, const dti_equation *e)
{
    for (int i = 0; i < e->n; i++) {
        dti_put(pen, "%s", i ? "," : "");
        put_term(pen, &e->in[i]);
    }
    dti_put(pen, "->");
    put_term(pen, &e->out);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

typedef struct naming {
    const dti_equation *e;
    bool used[128];
    char dots[DT_MAX_DIMS];            /* letters for the dims of "...", the last one at the end                   */
} naming;

static char fresh(naming *names)
{
    int i = 0;
    while (i < LETTERS - 1 && names->used[(unsigned char)letter_at(i)]) i++;
    names->used[(unsigned char)letter_at(i)] = true;
    return letter_at(i);
}

static void note_used(naming *names)
{
    for (int i = 0; i < names->e->n; i++)
        for (int k = 0; k < names->e->in[i].n; k++) names->used[(unsigned char)names->e->in[i].letter[k]] = true;
}

static bool check_dims(dt_context *ctx, const dti_equation *e, const dt_shape *shapes)
{
    for (int i = 0; i < 2; i++) {
        const dti_subscripts *term = &e->in[i];
        if ((shapes[i].n >= 0) != (i < e->n))
            return dti_fail(ctx, DT_ERR_ARG, "einsum: expected %d operands, as its equation has, got %d", e->n,
                            (shapes[0].n >= 0) + (shapes[1].n >= 0)), false;
        if (i < e->n && (term->dots >= 0 ? shapes[i].n < term->n : shapes[i].n != term->n))
            return dti_fail(ctx, DT_ERR_SHAPE, "einsum: expected %s%d dims of operand %d, as its equation has, got %d",
                            term->dots >= 0 ? "at least " : "", term->n, i, shapes[i].n), false;
    }
    return true;
}

/* Dims of a term of which "..." is *dots*. */
static int name_dims(const naming *names, const dti_subscripts *term, int dots, char *letter)
{
    int n = 0;
    for (int i = 0; i <= term->n; i++) {
        for (int k = 0; i == term->dots && k < dots; k++) letter[n++] = names->dots[DT_MAX_DIMS - dots + k];
        if (i < term->n) letter[n++] = term->letter[i];
    }
    return n;
}

/* Does another operand have more than the one element of this dim? */
static bool is_stretched(const dti_lettered *l, const dt_shape *shapes, int operand, int dim)
{
    int other = 1 - operand;
    if (shapes[operand].dim[dim] != 1 || l->n < 2) return false;
    for (int d = 0; d < l->dims[other]; d++)
        if (l->letter[other][d] == l->letter[operand][dim]) return shapes[other].dim[d] != 1;
    return false;
}

bool dti_equation_bind(dt_context *ctx, const dti_equation *e, const dt_shape *shapes, dti_lettered *l)
{
    naming names = { .e = e };
    int dots = 0;
    *l = (dti_lettered){ .n = e->n };
    if (e->n > 2) return dti_fail(ctx, DT_ERR_ARG, "einsum: expected at most 2 operands, got %d", e->n), false;
    if (!check_dims(ctx, e, shapes)) return false;
    note_used(&names);
    for (int i = 0; i < e->n; i++)
        if (e->in[i].dots >= 0 && shapes[i].n - e->in[i].n > dots) dots = shapes[i].n - e->in[i].n;
    for (int k = DT_MAX_DIMS - dots; k < DT_MAX_DIMS; k++) names.dots[k] = fresh(&names);
    if (e->out.n + (e->out.dots >= 0 ? dots : 0) > DT_MAX_DIMS)
        return dti_fail(ctx, DT_ERR_SHAPE, "einsum: a result of more than %d dims", DT_MAX_DIMS), false;
    for (int i = 0; i < e->n; i++) l->dims[i] = name_dims(&names, &e->in[i], shapes[i].n - e->in[i].n, l->letter[i]);
    l->dims[e->n] = name_dims(&names, &e->out, dots, l->letter[e->n]);
    bool stretched[2][DT_MAX_DIMS] = { { false } };
    for (int i = 0; i < e->n; i++)
        for (int d = 0; d < l->dims[i]; d++) stretched[i][d] = is_stretched(l, shapes, i, d);
    for (int i = 0; i < e->n; i++)
        for (int d = 0; d < l->dims[i]; d++)
            if (stretched[i][d]) l->letter[i][d] = fresh(&names);
    return true;
}
