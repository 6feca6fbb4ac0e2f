/* SPDX-License-Identifier: Apache-2.0
 *
 * Einsum against loops over all letters: equations written by hand and drawn, in every dtype; more than two operands;
 * what it refuses; and that placements follow from the equation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "ops/values.h"

enum { OPERANDS = 4, LETTERS = 128, TEXT = 64 };

/* ---- by loops ---------------------------------------------------------------------------------------------------- */

/* Terms with a letter for each dim, the result behind the operands; a dim of 1 is stretched. */
typedef struct loops {
    int n;
    char term[OPERANDS + 1][TEXT];
    dt_shape shape[OPERANDS + 1];
    int64_t size[LETTERS], index[LETTERS];
    char letters[TEXT];                /* all of them                                                              */
} loops;

static loops loops_of(const char *explicit, const dt_shape *shapes, int n)
{
    loops l = { .n = n };
    const char *at = explicit;
    for (int i = 0; i <= n; i++) {
        size_t length = strcspn(at, ",-");
        memcpy(l.term[i], at, length);
        at += length + (at[length] == '-' ? 2 : 1);
        if (i < n) l.shape[i] = shapes[i];
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < shapes[i].n; d++) {
            unsigned char letter = (unsigned char)l.term[i][d];
            if (!strchr(l.letters, letter)) l.letters[strlen(l.letters)] = (char)letter;
            if (l.size[letter] == 0 || l.size[letter] == 1 || shapes[i].dim[d] == 0) l.size[letter] = shapes[i].dim[d];
        }
    for (const char *c = l.term[n]; *c; c++) l.shape[n].dim[l.shape[n].n++] = l.size[(unsigned char)*c];
    return l;
}

static int64_t place(const loops *l, int term)
{
    int64_t at = 0;
    for (int d = 0; d < l->shape[term].n; d++) {
        int64_t size = l->shape[term].dim[d];
        at = at * size + (size == 1 ? 0 : l->index[(unsigned char)l->term[term][d]]);
    }
    return at;
}

static bool next(loops *l)
{
    for (const char *c = l->letters; *c; c++) {
        if (++l->index[(unsigned char)*c] < l->size[(unsigned char)*c]) return true;
        l->index[(unsigned char)*c] = 0;
    }
    return false;
}

static void run_loops(loops *l, const values *x, double *sum, double *magnitude)
{
    for (const char *c = l->letters; *c; c++)
        if (l->size[(unsigned char)*c] == 0) return;
    do {
        double product = 1;
        for (int i = 0; i < l->n; i++) product *= x[i].at[place(l, i)];
        sum[place(l, l->n)] += product;
        magnitude[place(l, l->n)] += fabs(product);
    } while (next(l));
}

static double due_of(dt_dtype dtype, double sum)
{
    return dtype == DT_U8 ? (double)((int64_t)sum & 255) : dtype == DT_BOOL ? sum != 0 : rounded(dtype, sum);
}

/* More than two operands are rounded between. */
static double least_of(dt_dtype dtype, double magnitude, int n)
{
    if (dtype >= DT_I64) return 0;
    return magnitude * (dtype == DT_F64 ? 1e-14 : n > 2 && dtype != DT_F32 ? (n - 2) * epsilon(dtype) : 1e-5);
}

static void check(dt_mesh *mesh, dt_dtype dtype, const char *equation, const char *explicit, const dt_shape *shapes,
                  int n)
{
    static _Thread_local values in[OPERANDS], out;
    static _Thread_local double sum[VALUES], magnitude[VALUES];
    loops l = loops_of(explicit, shapes, n);
    dt_tensor *x[OPERANDS];
    memset(sum, 0, sizeof sum);
    memset(magnitude, 0, sizeof magnitude);
    for (int i = 0; i < n; i++) {
        x[i] = drawn(mesh, dtype, shapes[i], (uint64_t)i + 1);
        read_values(x[i], &in[i]);
    }
    run_loops(&l, in, sum, magnitude);
    read_values(dt_einsum(equation, x, n), &out);
    expect_no_error(dt_mesh_context(mesh), equation);
    bool shaped = out.shape.n == l.shape[n].n;
    for (int d = 0; d < out.shape.n && shaped; d++) shaped = out.shape.dim[d] == l.shape[n].dim[d];
    if (!expect(shaped, "%s: another shape", equation)) return;
    for (int64_t i = 0; i < out.n; i++)
        if (!near(dtype, out.at[i], due_of(dtype, sum[i]), 1, least_of(dtype, magnitude[i], n))) {
            expect(false, "%s, %s, element %lld: %.17g, by loops %.17g", equation, dt_dtype_text(dtype), (long long)i,
                   out.at[i], due_of(dtype, sum[i]));
            return;
        }
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static const dt_dtype dtypes[] = { DT_F64, DT_F32, DT_BF16, DT_F16, DT_I64, DT_I32, DT_U8, DT_BOOL };

typedef struct written { const char *equation, *explicit; int n; dt_shape shape[OPERANDS]; } written;

static const written all_written[] = {
    { "ij,jk->ik", "ij,jk->ik", 2, { { 2, { 7, 9 } }, { 2, { 9, 17 } } } },
    { "ij,jk->ki", "ij,jk->ki", 2, { { 2, { 130, 120 } }, { 2, { 120, 140 } } } },
    { "ij,jk", "ij,jk->ik", 2, { { 2, { 7, 9 } }, { 2, { 9, 17 } } } },
    { " ij , jk -> ki ", "ij,jk->ki", 2, { { 2, { 7, 9 } }, { 2, { 9, 17 } } } },
    { "ij,kj->ik", "ij,kj->ik", 2, { { 2, { 7, 9 } }, { 2, { 5, 9 } } } },
    { "ji,jk->ik", "ji,jk->ik", 2, { { 2, { 9, 7 } }, { 2, { 9, 5 } } } },
    { "bij,bjk->bik", "bij,bjk->bik", 2, { { 3, { 3, 4, 5 } }, { 3, { 3, 5, 6 } } } },
    { "bhqd,bkhd->bhqk", "bhqd,bkhd->bhqk", 2, { { 4, { 2, 3, 4, 5 } }, { 4, { 2, 6, 3, 5 } } } },
    { "...ij,...jk->...ik", "abij,bjk->abik", 2, { { 4, { 2, 3, 4, 5 } }, { 3, { 3, 5, 6 } } } },
    { "...ij,...jk", "abij,bjk->abik", 2, { { 4, { 2, 1, 4, 5 } }, { 3, { 3, 5, 6 } } } },
    { "i...,...i->...", "iab,bi->ab", 2, { { 3, { 4, 2, 3 } }, { 2, { 1, 4 } } } },
    { "...i->i", "abi->i", 1, { { 3, { 2, 3, 4 } } } },
    { "...,...->...", "a,a->a", 2, { { 1, { 5 } }, { 1, { 1 } } } },
    { "ij,ij->ij", "ij,ij->ij", 2, { { 2, { 4, 5 } }, { 2, { 4, 1 } } } },
    { "ij,ij", "ij,ij->", 2, { { 2, { 40, 50 } }, { 2, { 40, 50 } } } },
    { "ij,ji->", "ij,ji->", 2, { { 2, { 40, 5 } }, { 2, { 5, 40 } } } },
    { "i,i->", "i,i->", 2, { { 1, { 1200 } }, { 1, { 1200 } } } },
    { "ij,i->ij", "ij,i->ij", 2, { { 2, { 4, 600 } }, { 1, { 4 } } } },
    { "ij,j->i", "ij,j->i", 2, { { 2, { 4, 600 } }, { 1, { 600 } } } },
    { "i,j->ij", "i,j->ij", 2, { { 1, { 20 } }, { 1, { 30 } } } },
    { "ij,k->j", "ij,k->j", 2, { { 2, { 6, 7 } }, { 1, { 3 } } } },
    { "ij->ji", "ij->ji", 1, { { 2, { 6, 7 } } } },
    { "ijk->", "ijk->", 1, { { 3, { 6, 7, 5 } } } },
    { "ba", "ba->ab", 1, { { 2, { 3, 4 } } } },
    { "aB", "aB->Ba", 1, { { 2, { 3, 4 } } } },
    { "", "->", 1, { { 0, { 0 } } } },
    { ",->", ",->", 2, { { 0, { 0 } }, { 0, { 0 } } } },
    { ",ij", ",ij->ij", 2, { { 0, { 0 } }, { 2, { 3, 2 } } } },
    { "ij,jk->ik", "ij,jk->ik", 2, { { 2, { 3, 0 } }, { 2, { 0, 4 } } } },
    { "ij,jk->ik", "ij,jk->ik", 2, { { 2, { 0, 3 } }, { 2, { 3, 4 } } } },
    { "ij,jk,kl->il", "ij,jk,kl->il", 3, { { 2, { 3, 4 } }, { 2, { 4, 5 } }, { 2, { 5, 2 } } } },
    { "ij,ik,il->jkl", "ij,ik,il->jkl", 3, { { 2, { 3, 4 } }, { 2, { 3, 2 } }, { 2, { 3, 2 } } } },
    { "i,j,k,l", "i,j,k,l->ijkl", 4, { { 1, { 3 } }, { 1, { 2 } }, { 1, { 4 } }, { 1, { 2 } } } },
    { "...i,ij,...j->...", "abi,ij,bj->ab", 3, { { 3, { 2, 3, 4 } }, { 2, { 4, 5 } }, { 2, { 3, 5 } } } },
};

static dt_status by_hand(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    for (int i = 0; i < DT_COUNT(all_written); i++)
        for (int k = 0; k < DT_COUNT(dtypes); k++) {
            const written *w = &all_written[i];
            if (w->n > 2 && dtypes[k] == DT_F16) continue; /* products of many are beyond its range                  */
            int scope = dt_scope_push(ctx, 0);
            check(mesh, dtypes[k], w->equation, w->explicit, w->shape, w->n);
            dt_scope_pop(ctx, scope, NULL);
        }
    return dt_context_status(ctx);
}

static void written_equations(void) { on_one_rank(by_hand); }

/* ---- drawn ------------------------------------------------------------------------------------------------------- */

static unsigned draw(unsigned *state, unsigned n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static const char alphabet[] = "aBcDe";
static const int64_t sizes[] = { 3, 2, 4, 1, 5 };

/* Some letters, in any order. */
static void draw_term(unsigned *state, const char *from, char *term)
{
    char left[TEXT];
    int n = 0;
    strcpy(left, from);
    for (unsigned take = draw(state, (unsigned)strlen(from) + 1); take > 0; take--) {
        unsigned i = draw(state, (unsigned)strlen(left));
        term[n++] = left[i];
        memmove(left + i, left + i + 1, strlen(left + i));
    }
    term[n] = '\0';
}

static dt_shape shape_of(const char *term)
{
    dt_shape shape = { .n = (int)strlen(term) };
    for (int d = 0; d < shape.n; d++) shape.dim[d] = sizes[strchr(alphabet, term[d]) - alphabet];
    return shape;
}

static dt_status by_draws(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    unsigned state = 1;
    (void)arg;
    for (int i = 0; i < 500; i++) {
        char x[TEXT], y[TEXT], both[TEXT], result[TEXT], equation[4 * TEXT];
        draw_term(&state, alphabet, x);
        draw_term(&state, alphabet, y);
        int n = snprintf(both, sizeof both, "%s", x);
        for (const char *c = y; *c; c++)
            if (!strchr(x, *c)) both[n++] = *c;
        both[n] = '\0';
        draw_term(&state, both, result);
        snprintf(equation, sizeof equation, "%s,%s->%s", x, y, result);
        int scope = dt_scope_push(ctx, 0);
        check(mesh, dtypes[i % DT_COUNT(dtypes)], equation, equation, (dt_shape[]){ shape_of(x), shape_of(y) }, 2);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void drawn_equations(void) { on_one_rank(by_draws); }

/* ---- placements -------------------------------------------------------------------------------------------------- */

static const struct { const char *equation, *x, *y, *result; } places[] = {
    { "ij,jk->ik", "f64[12,8]@x:S(0)", "f64[8,16]", "x:S(0)" },
    { "ij,jk->ki", "f64[12,8]", "f64[8,16]@x:S(1)", "x:S(0)" },
    { "ij,jk->ik", "f64[12,8]@x:S(1)", "f64[8,16]@x:S(0)", "x:P" },
    { "ij,jk->ik", "f64[12,8]@x:P", "f64[8,16]", "x:P" },
    { "bqhd,bkhd->bhqk", "f64[2,3,5,2]@x:S(2)", "f64[2,4,5,2]@x:S(2)", "x:S(1)" },
    { "...i,ij->...j", "f64[7,2,4]@x:S(0)", "f64[4,5]", "x:S(0)" },
    { "ij->j", "f64[12,8]@x:S(0)", NULL, "x:P" },
};

static dt_status placed(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    (void)arg;
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    for (int i = 0; i < DT_COUNT(places); i++) {
        dt_tensor *x[2] = { dt_rand(dt_spec_parse(mesh, places[i].x), 1) };
        if (places[i].y) x[1] = dt_rand(dt_spec_parse(mesh, places[i].y), 2);
        dt_tensor *y = dt_einsum(places[i].equation, x, places[i].y ? 2 : 1);
        expect_no_error(ctx, places[i].equation);
        expect(y && dt_spec_has(dt_tensor_spec(y), places[i].result), "%s: %s", places[i].equation,
               y ? dt_spec_text(dt_tensor_spec(y)) : "nothing");
    }
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx);
}

static void placements(void)
{
    char error[512] = "";
    for (int ranks = 2; ranks <= 4; ranks++)
        expect(dt_launch_threads(ranks, placed, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- a chain ----------------------------------------------------------------------------------------------------- */

/* Gradients of three operands are those of two products. */
static dt_status chained(dt_context *ctx, void *arg)
{
    static const char *const specs[] = { "f64[6,4]@x:S(0)", "f64[4,5]@x:S(1)", "f64[5,3]" };
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x[3], *y[3];
    (void)arg;
    for (int i = 0; i < 3; i++) {
        x[i] = dt_require_grad(dt_rand(dt_spec_parse(mesh, specs[i]), 1));
        y[i] = dt_require_grad(dt_rand(dt_spec_parse(mesh, specs[i]), 1));
    }
    dt_tensor *a = dt_einsum("ij,jk,kl->li", x, 3), *b = dt_transpose(dt_matmul(dt_matmul(y[0], y[1]), y[2]), 0, 1);
    dt_tensor *seed = dt_rand(dt_spec_parse(mesh, "f64[3,6]"), 5);
    dt_backward(a, seed);
    dt_backward(b, seed);
    expect_no_error(ctx, "a chain");
    expect(dt_tensor_close(a, b, 1e-13, 1e-13), "another value");
    for (int i = 0; i < 3; i++) expect(dt_tensor_close(dt_grad(x[i]), dt_grad(y[i]), 1e-13, 1e-13), "gradient %d", i);
    return dt_context_status(ctx);
}

static void chain(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, chained, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const struct { const char *equation; int n; dt_status status; const char *says; } bad[] = {
    { "ii,ij", 2, DT_ERR_PARSE, "letter \"i\" twice in one term, but a diagonal has no placement at column 2" },
    { "ij,jk->iik", 2, DT_ERR_PARSE, "letter \"i\" twice" },
    { "ij,jk->iz", 2, DT_ERR_PARSE, "no operand has letter \"z\" at column 9" },
    { "ij;jk", 2, DT_ERR_PARSE, "expected a letter, \"...\", \",\", \"->\" or the end, got \";\" at column 3" },
    { "ij,jk->ik,", 2, DT_ERR_PARSE, "got \",\" at column 10" },
    { "ij,jk-ik", 2, DT_ERR_PARSE, "got \"-\"" },
    { "...i...,ij", 2, DT_ERR_PARSE, "a second \"...\" in one term at column 5" },
    { "i..,ij", 2, DT_ERR_PARSE, "got \".\" at column 2" },
    { "abcdefghi,ij", 2, DT_ERR_PARSE, "more than 8 letters" },
    { "ij", 2, DT_ERR_ARG, "expected 1 operands, as its equation has, got 2" },
    { "ij,jk,kl", 2, DT_ERR_ARG, "expected 3 operands, as its equation has, got 2" },
    { "ijk,jk", 2, DT_ERR_SHAPE, "expected 3 dims of operand 0, as its equation has, got 2" },
    { "ij,...jkl", 2, DT_ERR_SHAPE, "expected at least 3 dims of operand 1, as its equation has, got 2" },
    { "ij,ij", 2, DT_ERR_SHAPE, "einsum" },
};

static dt_status refusals(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = mesh_of(ctx);
    dt_tensor *x[3] = { dt_zeros(dt_spec_parse(mesh, "f32[4,6]")), dt_zeros(dt_spec_parse(mesh, "f32[6,5]")) };
    (void)arg;
    for (int i = 0; i < DT_COUNT(bad); i++) {
        expect(dt_einsum(bad[i].equation, x, bad[i].n) == NULL, "%s is taken", bad[i].equation);
        expect_error(ctx, bad[i].status, bad[i].says, bad[i].equation);
    }
    dt_einsum(NULL, x, 2);
    expect_error(ctx, DT_ERR_ARG, "an equation, got none", "none");
    dt_einsum("ij,jk,k", x, 3);
    expect_error(ctx, DT_ERR_ARG, "operand 2 is missing", "an operand that is missing");
    x[1] = dt_zeros(dt_spec_parse(mesh, "f64[6,5]"));
    dt_einsum("ij,jk", x, 2);
    expect_error(ctx, DT_ERR_DTYPE, "one dtype", "dtypes");
    dt_einsum("abcde,fghi->abcdefghi", (dt_tensor *[]){ dt_zeros(dt_spec_parse(mesh, "f32[1,1,1,1,1]")),
                                                        dt_zeros(dt_spec_parse(mesh, "f32[1,1,1,1]")) }, 2);
    expect_error(ctx, DT_ERR_PARSE, "more than 8 letters", "a result of nine dims");
    dt_einsum("...a,b->...ab", (dt_tensor *[]){ dt_zeros(dt_spec_parse(mesh, "f32[1,1,1,1,1,1,1,1]")),
                                                dt_zeros(dt_spec_parse(mesh, "f32[1]")) }, 2);
    expect_error(ctx, DT_ERR_SHAPE, "more than 8 dims", "a result of nine dims");
    expect(dt_einsum("ij,kj", (dt_tensor *[]){ x[0], x[0] }, 2) != NULL, "the context is usable");
    return dt_context_status(ctx);
}

static void errors(void) { on_one_rank(refusals); }

static const test_row rows[] = {
    { "written_equations", written_equations }, { "drawn_equations", drawn_equations }, { "placements", placements },
    { "chain", chain }, { "errors", errors },
};

const suite the_suite = { "einsum", rows, DT_COUNT(rows) };
