/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules bound to shapes: sizes and factors of letters, what broadcasts, what is taken apart, results, and what is
 * refused in which words. */
#include <string.h>

#include "bound.h"
#include "errors.h"
#include "suite.h"

enum { ROOM = 1024 };

static const dti_row_text matmul = { "matmul(a, b)", "... m k, ... k n -> ... m n", "a b" };
static const dti_row_text linear = { "linear(x, w, b)", "... k, n k, n? -> ... n", "x w + b" };
static const dti_row_text add = { "add(a, b)", "..., ... -> ...", "a + b, rising" };
static const dti_row_text rms_norm = { "rms_norm(x, w)", "... h!, h! -> ... h! | ...", "none, saves x w" };
static const dti_row_text embedding = { "embedding(w, ids)", "v h, ... -> ... h", "w" };
static const dti_row_text attention = { "attention(q, k, v)",
                                        "b s (g r) d!, b t~ g d!, b t~ g d! -> b s (g r) d! | b s (g r)",
                                        "v, saves q k v" };
static const dti_row_text unfold = { "unfold(x)", "... (p q) -> ... p q", "x" };

/* ---- what is bound, as text: "k=30(5 6) ...[0]=3~b" --------------------------------------------------------------- *
 * ~b: b is stretched over it. !b: b clashes.                                                                        */

static void put_marks(dti_pen *pen, const dti_rule *rule, char mark, uint32_t operands)
{
    for (int o = 0; o < rule->operand_count; o++)
        if (operands >> o & 1) dti_put(pen, "%c%s", mark, dti_rule_name(rule, o));
}

static void put_letter(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, int i)
{
    const dti_bound_letter *letter = &bound->letter[i];
    if (i < rule->letter_count) dti_put(pen, "%s%c=%lld", i ? " " : "", rule->letter[i].name, (long long)letter->size);
    else dti_put(pen, "%s...[%d]=%lld", i ? " " : "", i - rule->letter_count, (long long)letter->size);
    for (int f = 0; letter->count > 1 && f < letter->count; f++)
        dti_put(pen, "%s%lld%s", f ? " " : "(", (long long)bound->factor[letter->first + f].size,
                f + 1 == letter->count ? ")" : "");
    put_marks(pen, rule, '~', letter->stretched);
    put_marks(pen, rule, '!', letter->clash);
}

static const char *letters_text(const bound_parts *parts, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    room[0] = '\0';
    for (int i = 0; i < parts->bound.letter_count; i++) put_letter(&pen, &parts->rule, &parts->bound, i);
    return room;
}

static const char *results_text(const bound_parts *parts, char *room)
{
    dti_pen pen = { room, ROOM, 0 };
    room[0] = '\0';
    for (int r = 0; r < parts->rule.result_count; r++) {
        dti_bound_dims dims;
        dti_bound_result(&parts->rule, &parts->bound, r, 0, &dims);
        dti_put(&pen, "%s", r ? " " : "");
        dti_put_sizes(&pen, &dims.form);
    }
    return room;
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

typedef struct bind_row { bound_call call; const char *letters, *results; } bind_row;

static const bind_row bindings[] = {
    { { &matmul, "[64,512] [512,256]", NULL, NULL }, "m=64 k=512 n=256", "[64,256]" },
    { { &matmul, "[5,2,3] [3,4]", NULL, NULL }, "m=2 k=3 n=4 ...[0]=5~b", "[5,2,4]" },
    { { &matmul, "[5,1,2,3] [7,3,4]", NULL, NULL }, "m=2 k=3 n=4 ...[0]=5~b ...[1]=7~a", "[5,7,2,4]" },
    { { &matmul, "[0,3] [3,0]", NULL, NULL }, "m=0 k=3 n=0", "[0,0]" },
    { { &matmul, "[12,0] [0,4]", NULL, NULL }, "m=12 k=0 n=4", "[12,4]" },
    { { &matmul, "[4,30] [(5 6),2]", NULL, NULL }, "m=4 k=30(5 6) n=2", "[4,2]" },
    { { &matmul, "[4,(5 6)] [30,2]", NULL, NULL }, "m=4 k=30(5 6) n=2", "[4,2]" },
    { { &matmul, "[4,(5 6)] [(5 6),2]", NULL, NULL }, "m=4 k=30(5 6) n=2", "[4,2]" },
    { { &matmul, "[4,(5 6)] [(6 5),2]", NULL, NULL }, "m=4 k=30!a!b n=2", "[4,2]" },
    { { &matmul, "[4,(2 15)] [(10 3),2]", NULL, NULL }, "m=4 k=30(2 5 3) n=2", "[4,2]" },
    { { &matmul, "[(2 2),30] [30,(1 3)]", NULL, NULL }, "m=4(2 2) k=30 n=3(1 3)", "[(2 2),(1 3)]" },
    { { &matmul, "[4,(5 1)] [(1 5),2]", NULL, NULL }, "m=4 k=5(1 5 1) n=2", "[4,2]" },
    { { &matmul, "[4,(0 6)] [(5 0),2]", NULL, NULL }, "m=4 k=0(5 0 6) n=2", "[4,2]" },
    { { &linear, "[4,8] [3,8] [3]", NULL, NULL }, "k=8 n=3 ...[0]=4", "[4,3]" },
    { { &linear, "[8] [3,8] -", NULL, NULL }, "k=8 n=3", "[3]" },
    { { &linear, "[2,4,8] [(3 1),8] [3]", NULL, NULL }, "k=8 n=3(3 1) ...[0]=2 ...[1]=4", "[2,4,(3 1)]" },
    { { &linear, "[8] [(2 6),8] [(3 4)]", NULL, NULL }, "k=8 n=12!w!b", "[12]" },
    { { &add, "[] []", NULL, NULL }, "", "[]" },
    { { &add, "[3,4] []", NULL, NULL }, "...[0]=3~b ...[1]=4~b", "[3,4]" },
    { { &add, "[3,1] [2,1,4]", NULL, NULL }, "...[0]=2~a ...[1]=3~b ...[2]=4~a", "[2,3,4]" },
    { { &add, "[1] [1,1]", NULL, NULL }, "...[0]=1~a ...[1]=1", "[1,1]" },
    { { &add, "[1,3] [0,1]", NULL, NULL }, "...[0]=0~a ...[1]=3~b", "[0,3]" },
    { { &add, "[(2 3)] [6]", NULL, NULL }, "...[0]=6(2 3)", "[(2 3)]" },
    { { &add, "[(2 3),4] [1,4]", NULL, NULL }, "...[0]=6(2 3)~b ...[1]=4", "[(2 3),4]" },
    { { &add, "[(2 3)] [(3 2)]", NULL, NULL }, "...[0]=6!a!b", "[6]" },
    { { &rms_norm, "[2,3,8] [8]", NULL, NULL }, "h=8 ...[0]=2 ...[1]=3", "[2,3,8] [2,3]" },
    { { &embedding, "[17,12] [2,5]", NULL, NULL }, "v=17 h=12 ...[0]=2 ...[1]=5", "[2,5,12]" },
    { { &embedding, "[17,12] []", NULL, NULL }, "v=17 h=12", "[12]" },
    /* (g r): g is the keys', r is what it leaves. */
    { { &attention, "[2,5,8,16] [2,7,2,16] [2,7,2,16]", NULL, NULL }, "b=2 s=5 g=2 r=4 d=16 t=7",
      "[2,5,(2 4),16] [2,5,(2 4)]" },
    { { &attention, "[2,5,(4 2),16] [2,7,2,16] [2,7,2,16]", NULL, NULL }, "b=2 s=5 g=2 r=4(2 2) d=16 t=7",
      "[2,5,(2 2 2),16] [2,5,(2 2 2)]" },
    { { &attention, "[2,5,(2 4),16] [2,7,4,16] [2,7,4,16]", NULL, NULL }, "b=2 s=5 g=4(2 2) r=2 d=16 t=7",
      "[2,5,(2 2 2),16] [2,5,(2 2 2)]" },
    { { &attention, "[2,5,(3 8),16] [2,7,8,16] [2,7,8,16]", NULL, NULL }, "b=2 s=5 g=8!q r=3!q d=16 t=7",
      "[2,5,(8 3),16] [2,5,(8 3)]" },
    { { &attention, "[2,5,0,16] [2,7,2,16] [2,7,2,16]", NULL, NULL }, "b=2 s=5 g=2 r=0 d=16 t=7",
      "[2,5,(2 0),16] [2,5,(2 0)]" },
    /* Nothing but the operand's own factors, or attributes, says how large p and q are. */
    { { &unfold, "[3,(2 5)]", NULL, NULL }, "p=2 q=5 ...[0]=3", "[3,2,5]" },
    { { &unfold, "[3,10]", NULL, "p=2" }, "p=2 q=5 ...[0]=3", "[3,2,5]" },
    { { &unfold, "[3,10]", NULL, "q=2" }, "p=5 q=2 ...[0]=3", "[3,5,2]" },
    { { &unfold, "[3,(2 5)]", NULL, "q=1" }, "p=10(2 5) q=1 ...[0]=3", "[3,(2 5),1]" },
    { { &unfold, "[3,(0 6)]", NULL, "p=3 q=0" }, "p=3 q=0(0 6) ...[0]=3", "[3,3,(0 6)]" },
    { { &unfold, "[3,(0 6)]", NULL, "p=0 q=4" }, "p=0!x q=4!x ...[0]=3", "[3,0,4]" },
    { { &unfold, "[3,(0 4)]", NULL, "p=0 q=4" }, "p=0 q=4 ...[0]=3", "[3,0,4]" },
    { { &(const dti_row_text){ "f(x)", "(p q r) -> p", "x" },
        "[(0 6)]", NULL, "p=2 q=0 r=3" }, "p=2!x q=0!x r=3!x", "[2]" },
    { { &unfold, "[3,(2 5)]", NULL, "p=5" }, "p=5!x q=2!x ...[0]=3", "[3,5,2]" },
    { { &(const dti_row_text){ "f(x)", "(a b c) -> a c", "x" }, "[(2 3 5)]", NULL, NULL }, "a=2 b=3 c=5", "[2,5]" },
    { { &(const dti_row_text){ "f(x)", "(a b c) -> a c", "x" },
        "[(2 3 5)]", NULL, "a=6 c=5" }, "a=6(2 3) b=1 c=5", "[(2 3),5]" },
    { { &(const dti_row_text){ "f(x, y, z)", "k, k, k ->", "x y z" },
        "[(5 6)] [30] [(6 5)]", NULL, NULL }, "k=30!x!z", "[]" },
    /* A product that is known only after another. */
    { { &(const dti_row_text){ "f(x, y, z)", "(a b), (b c), c -> a", "x y z" },
        "[24] [6] [2]", NULL, NULL }, "a=8 b=3 c=2", "[8]" },
    { { &(const dti_row_text){ "f(x, y)", "(a b), (b c) -> a c", "x y" },
        "[24] [(3 2)]", NULL, NULL }, "a=8 b=3 c=2", "[8,2]" },
    { { &(const dti_row_text){ "f(x, y)", "(a b), (b c) -> a c", "x y" },
        "[(4 6)] [(3 2)]", NULL, NULL }, "a=4 b=6(3 2) c=1", "[4,1]" },
    { { &(const dti_row_text){ "fold(x)", "... a b -> ... (a b)", "x" },
        "[3,(2 2),5]", NULL, NULL }, "a=4(2 2) b=5 ...[0]=3",
      "[3,(2 2 5)]" },
    /* New letters, new leading dims. */
    { { &(const dti_row_text){ "one_hot(x)", "... -> ... c", "none" }, "[3]", NULL, "c=7" }, "c=7 ...[0]=3", "[3,7]" },
    { { &(const dti_row_text){ "zeros()", "-> ...", "none" }, "", "[2,3]", NULL }, "...[0]=2 ...[1]=3", "[2,3]" },
    { { &(const dti_row_text){ "zeros()", "-> ...", "none" }, "", NULL, NULL }, "", "[]" },
    { { &(const dti_row_text){ "zeros()", "->", "none" }, "", NULL, NULL }, "", "[]" },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" },
        "[3,1]", "[2,3,4]", NULL }, "...[0]=2~x ...[1]=3 ...[2]=4~x", "[2,3,4]" },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" }, "[1]", "[0]", NULL }, "...[0]=0~x", "[0]" },
    /* A letter of absent operands only. */
    { { &(const dti_row_text){ "f(x, y)", "a, b? -> a", "x" }, "[3] -", NULL, NULL }, "a=3 b=-1", "[3]" },
    { { &(const dti_row_text){ "scale(s, x)", ", a -> a", "s x" }, "[] [3]", NULL, NULL }, "a=3", "[3]" },
};

static void expect_text(const char *got, const char *want, const char *what)
{
    expect(strcmp(got, want) == 0, "%s: got \"%s\", expected \"%s\"", what, got, want);
}

static void shapes_that_fit(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(bindings); i++) {
        static bound_parts parts;
        char room[ROOM];
        const bind_row *row = &bindings[i];
        bool bound = bound_make(ctx, &row->call, &parts);
        if (expect(bound, "%s %s: %s", row->call.row->head, row->call.shapes, dt_context_error(ctx))) {
            expect_text(letters_text(&parts, room), row->letters, row->call.shapes);
            expect_text(results_text(&parts, room), row->results, row->call.shapes);
        }
        expect_no_error(ctx, row->call.shapes);
    }
    dt_context_destroy(&ctx);
}

/* ---- what holds of every bound rule ------------------------------------------------------------------------------ */

static void expect_letters(const bound_parts *parts, const char *what)
{
    const dti_bound *bound = &parts->bound;
    for (int i = 0; i < bound->letter_count; i++) {
        const dti_bound_letter *letter = &bound->letter[i];
        int64_t size = letter->size < 0 ? -1 : 1;
        for (int f = 0; f < letter->count; f++) size *= bound->factor[letter->first + f].size;
        expect(size == letter->size, "%s: letter %d is %lld, its factors %lld", what, i, (long long)letter->size,
               (long long)size);
        if (letter->count == 0) continue;
        expect(bound->factor[letter->whole].size == letter->size, "%s: letter %d, whole", what, i);
        expect((letter->whole == letter->first) == (letter->count == 1), "%s: letter %d, number of whole", what, i);
        expect(bound->factor[letter->whole].letter == i && bound->factor[letter->first].letter == i, "%s: whose", what);
    }
}

static void expect_operand(const bound_parts *parts, int operand, uint64_t whole, const char *what)
{
    dti_bound_dims dims;
    const dti_form *given = parts->call.operand[operand];
    dti_bound_operand(&parts->rule, &parts->bound, operand, whole, &dims);
    expect(dims.form.dim_count == given->dim_count, "%s: operand %d has %d dims", what, operand, dims.form.dim_count);
    for (int d = 0; d < dims.form.dim_count; d++)
        expect(dti_form_dim(&dims.form, d) == dti_form_dim(given, d), "%s: operand %d, dim %d", what, operand, d);
    for (int f = 0; f < dims.form.factor_first[dims.form.dim_count]; f++) {
        int factor = dims.factor[f];
        expect(dims.form.size[f] == (factor < 0 ? 1 : parts->bound.factor[factor].size), "%s: factor %d", what, f);
    }
}

static void dims_are_products_of_factors(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(bindings); i++) {
        static bound_parts parts;
        const char *what = bindings[i].call.shapes;
        if (!bound_make(ctx, &bindings[i].call, &parts)) continue;
        expect_letters(&parts, what);
        for (int o = 0; o < parts.rule.operand_count; o++) {
            if (!parts.call.operand[o]) continue;
            expect_operand(&parts, o, 0, what);
            expect_operand(&parts, o, UINT64_MAX, what);
        }
        for (int r = 0; r < parts.rule.result_count; r++) {
            dti_bound_dims dims;
            dt_shape shape = dti_bound_shape(&parts.rule, &parts.bound, r);
            dti_bound_result(&parts.rule, &parts.bound, r, UINT64_MAX, &dims);
            expect(shape.n == dims.form.dim_count, "%s: dims of result %d", what, r);
            for (int d = 0; d < shape.n; d++)
                expect(shape.dim[d] == dti_form_dim(&dims.form, d), "%s: dim %d of result %d", what, d, r);
        }
    }
    dt_context_destroy(&ctx);
}

/* A clash ends when one operand is bound unsplit. */
static void unsplit_ends_a_clash(void)
{
    static bound_parts parts;
    dt_context *ctx = dt_context_dry(1);
    bound_call call = { &matmul, "[4,(5 6)] [(6 5),2]", NULL, NULL };
    bound_make(ctx, &call, &parts);
    expect(parts.bound.letter[1].clash == 3, "both clash");
    call.shapes = "[4,(5 6)] [30,2]";
    bound_make(ctx, &call, &parts);
    expect(parts.bound.letter[1].clash == 0 && parts.bound.letter[1].count == 2, "(5 6)");
    dt_context_destroy(&ctx);
}

static void factors_as_messages_say_them(void)
{
    static bound_parts parts;
    static const char *const names[] = { "m", "k.0", "k.1", "k", "n", "...[0]", "...[1].0", "...[1].1", "...[1]" };
    dt_context *ctx = dt_context_dry(1);
    bound_call call = { &matmul, "[3,(2 2),4,(5 6)] [30,2]", NULL, NULL };
    bound_make(ctx, &call, &parts);
    expect(parts.bound.factor_count == DT_COUNT(names), "%d factors", parts.bound.factor_count);
    for (int f = 0; f < DT_COUNT(names); f++) {
        char room[32];
        dti_pen pen = { room, sizeof room, 0 };
        dti_put_factor(&pen, &parts.rule, &parts.bound, f);
        expect_text(room, names[f], "factor");
    }
    dt_context_destroy(&ctx);
}

static void forms_of_shapes(void)
{
    dti_form form;
    char room[64];
    dti_pen pen = { room, sizeof room, 0 };
    dti_form_of_shape(DT_SHAPE(3, 0, 5), &form);
    dti_put_sizes(&pen, &form);
    expect_text(room, "[3,0,5]", "form");
    expect(form.dtype == 0 && form.split_first[3] == 0, "nothing else");
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

typedef struct refusal { bound_call call; dt_status status; const char *message; } refusal;

static const refusal refusals[] = {
    { { &matmul, "[64,512] [256,128]", NULL, NULL }, DT_ERR_SHAPE,
      "matmul(a[64,512], b[256,128]): expected one size for k, got 512 in a and 256 in b" },
    { { &matmul, "[4,1] [4,4]", NULL, NULL }, DT_ERR_SHAPE,
      "matmul(a[4,1], b[4,4]): expected one size for k, got 1 in a and 4 in b" },
    { { &matmul, "[4] [4,4]", NULL, NULL }, DT_ERR_SHAPE,
      "matmul(a[4], b[4,4]): expected at least 2 dims for a (... m k), got 1" },
    { { &matmul, "[2,4,4] [3,4,4]", NULL, NULL }, DT_ERR_SHAPE,
      "matmul(a[2,4,4], b[3,4,4]): expected leading dims that broadcast, got 2 in a and 3 in b" },
    { { &linear, "[4,8] [8] -", NULL, NULL }, DT_ERR_SHAPE,
      "linear(x[4,8], w[8], b=none): expected 2 dims for w (n k), got 1" },
    { { &linear, "[4,8] [3,8] [2,3]", NULL, NULL }, DT_ERR_SHAPE,
      "linear(x[4,8], w[3,8], b[2,3]): expected 1 dim for b (n), got 2" },
    { { &linear, "[4,8] [3,8] [4]", NULL, NULL }, DT_ERR_SHAPE,
      "linear(x[4,8], w[3,8], b[4]): expected one size for n, got 3 in w and 4 in b" },
    { { &linear, "[4,8] - [3]", NULL, NULL }, DT_ERR_ARG,
      "linear(x[4,8], w=none, b[3]): expected a tensor for w, got none" },
    { { &add, "[(2 2),4] [3,4]", NULL, NULL }, DT_ERR_SHAPE,
      "add(a[(2 2),4], b[3,4]): expected leading dims that broadcast, got 4 in a and 3 in b" },
    { { &add, "[0] [3]", NULL, NULL }, DT_ERR_SHAPE,
      "add(a[0], b[3]): expected leading dims that broadcast, got 0 in a and 3 in b" },
    { { &attention, "[2,5,9,16] [2,7,2,16] [2,7,2,16]", NULL, NULL }, DT_ERR_SHAPE,
      "attention(q[2,5,9,16], k[2,7,2,16], v[2,7,2,16]): expected dim 2 of q to be (g r) with g = 2, got 9" },
    { { &attention, "[2,5,8,16] [2,7,0,16] [2,7,0,16]", NULL, NULL }, DT_ERR_SHAPE,
      "attention(q[2,5,8,16], k[2,7,0,16], v[2,7,0,16]): expected dim 2 of q to be (g r) with g = 0, got 8" },
    { { &attention, "[2,5,0,16] [2,7,0,16] [2,7,0,16]", NULL, NULL }, DT_ERR_SHAPE,
      "attention(q[2,5,0,16], k[2,7,0,16], v[2,7,0,16]): expected sizes for (g r): nothing takes dim 2 of q, 0, "
      "apart" },
    { { &unfold, "[3,10]", NULL, NULL }, DT_ERR_SHAPE,
      "unfold(x[3,10]): expected sizes for (p q): nothing takes dim 1 of x, 10, apart" },
    { { &unfold, "[3,(2 5 2)]", NULL, NULL }, DT_ERR_SHAPE,
      "unfold(x[3,(2 5 2)]): expected sizes for (p q): nothing takes dim 1 of x, 20, apart" },
    { { &unfold, "[3,10]", NULL, "p=2 q=4" }, DT_ERR_SHAPE,
      "unfold(x[3,10]): expected dim 1 of x to be (p q) with p = 2, q = 4, got 10" },
    { { &unfold, "[3,0]", NULL, "p=2 q=4" }, DT_ERR_SHAPE,
      "unfold(x[3,0]): expected dim 1 of x to be (p q) with p = 2, q = 4, got 0" },
    { { &unfold, "[3,10]", NULL, "p=2 p=5" }, DT_ERR_SHAPE,
      "unfold(x[3,10]): expected one size for p, got 2 in the attributes and 5 in the attributes" },
    { { &unfold, "[3,10]", NULL, "z=2" }, DT_ERR_ARG,
      "unfold(x[3,10]): the attributes give z a size, but the rule has no such letter" },
    { { &(const dti_row_text){ "one_hot(x)", "... -> ... c", "none" }, "[3]", NULL, NULL }, DT_ERR_SHAPE,
      "one_hot(x[3]): expected a size for c, got none: no operand has it" },
    { { &(const dti_row_text){ "f(x, y)", "a, b? -> a b", "x" }, "[3] -", NULL, NULL }, DT_ERR_SHAPE,
      "f(x[3], y=none): expected a size for b, got none: no operand has it" },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" }, "[3,4]", "[2,4]", NULL }, DT_ERR_SHAPE,
      "expand(x[3,4]): expected leading dims that broadcast to those asked for, got 3 in x for 2" },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" }, "[3,4]", "[4]", NULL }, DT_ERR_SHAPE,
      "expand(x[3,4]): expected at most 1 leading dims, as asked for, got 2" },
    { { &(const dti_row_text){ "expand(x)", "... -> ...", "x" }, "[3]", "[1]", NULL }, DT_ERR_SHAPE,
      "expand(x[3]): expected leading dims that broadcast to those asked for, got 3 in x for 1" },
    { { &(const dti_row_text){ "outer(x, y)", "a, b -> a b", "x y" },
        "[4294967296] [4294967296]", NULL, NULL }, DT_ERR_SHAPE,
      "outer(x[4294967296], y[4294967296]): a result of more than 2^63 - 1 elements" },
    { { &(const dti_row_text){ "outer(x, y)", "... a b, c d e -> ... a b c d e", "x y" },
        "[1,1,1,1,1,1] [1,1,1]", NULL, NULL },
      DT_ERR_SHAPE, "outer(x[1,1,1,1,1,1], y[1,1,1]): a result of 9 dims, more than 8" },
    { { &(const dti_row_text){ "outer(x, y)", "a, b -> a b", "x y" },
        "[(2 2 2 2 2 2 2 2 2)] [(2 2 2 2 2 2 2 2)]", NULL, NULL },
      DT_ERR_SHAPE, "outer(x[(2 2 2 2 2 2 2 2 2)], y[(2 2 2 2 2 2 2 2)]): a result has 17 factors, more than 16" },
};

static void shapes_that_do_not_fit(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(refusals); i++) {
        static bound_parts parts;
        const refusal *row = &refusals[i];
        expect(!bound_make(ctx, &row->call, &parts), "%s is bound", row->message);
        expect(strcmp(dt_context_error(ctx), row->message) == 0, "got  %s\n# want %s", dt_context_error(ctx),
               row->message);
        expect_error(ctx, row->status, "", row->call.shapes);
    }
    dt_context_destroy(&ctx);
}

/* A call too long for a message is cut; what was expected stays. */
static void long_calls(void)
{
    static bound_parts parts;
    const char *huge = "[1000000000000000,1,1,1,1,1,1,1] ";
    char shapes[16 * 48] = "";
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < 15; i++) strcat(shapes, huge);
    strcat(shapes, "[2,1,1,1,1,1,1,1]");
    bound_call call = { &(const dti_row_text){ "a_long_name_of_an_op(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p)",
                          "...,...,...,...,...,...,...,...,...,...,...,...,...,...,...,... -> ...", "a" },
                        shapes, NULL, NULL };
    expect(!bound_make(ctx, &call, &parts), "long");
    expect_error(ctx, DT_ERR_SHAPE, "...: expected leading dims that broadcast, got 1000000000000000 in o and 2 in p",
                 "long");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "shapes_that_fit", shapes_that_fit },
    { "dims_are_products_of_factors", dims_are_products_of_factors },
    { "unsplit_ends_a_clash", unsplit_ends_a_clash },
    { "factors_as_messages_say_them", factors_as_messages_say_them },
    { "forms_of_shapes", forms_of_shapes },
    { "shapes_that_do_not_fit", shapes_that_do_not_fit },
    { "long_calls", long_calls },
};

const suite the_suite = { "bind", rows, DT_COUNT(rows) };
