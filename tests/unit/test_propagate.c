/* SPDX-License-Identifier: Apache-2.0
 *
 * What propagation chooses: tables of an op, a mesh and its operands, with what the operands become and the results
 * are. Prices are those of a flat topology: these are dry contexts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "errors.h"
#include "ops/dispatch.h"
#include "suite.h"

enum { TEXT = 512, OPERANDS = 4 };

/* ---- rows that are not in the table yet -------------------------------------------------------------------------- */

static const dt_op embedding = { .head = "embedding(w, ids)", .rule = "v h, ... -> ... h", .polynomial = "w",
                                 .dtypes = "fi->f" };
static const dt_op softmax = { .head = "softmax(x)", .rule = "... c! -> ... c!" };
static const dt_op rms_norm = { .head = "rms_norm(x, w)", .rule = "... h!, h! -> ... h!" };
static const dt_op heads = { .head = "heads(x, w)", .rule = "b (n d), n d -> b (n d)", .polynomial = "x w" };
static const dt_op both = { .head = "both(a, b)", .rule = "..., ... -> ...", .polynomial = "none, rising" };
static const dt_op one_hot = { .head = "one_hot(x)", .rule = "..., c -> ... c" };
static const dt_op total = { .head = "total(x)", .rule = "m n -> ", .polynomial = "x" };

static const dt_op *const own[] = { &embedding, &softmax, &rms_norm, &heads, &both, &one_hot, &total };

static const dt_op *op_of(const char *name)
{
    for (int i = 0; i < DT_COUNT(own); i++)
        if (strncmp(own[i]->head, name, strlen(name)) == 0 && own[i]->head[strlen(name)] == '(') return own[i];
    return dt_op_find(name);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

typedef struct asked {
    const dt_op *op;
    int n;
    const dt_spec *in[OPERANDS];
    dti_attributes attributes;
    dti_asking asking;
    dti_propagation propagation;
} asked;

/* "f32[4,6]@x:S(0) -": specs, "-" absent. */
static bool parse_operands(dt_mesh *mesh, const char *text, asked *a)
{
    for (a->n = 0; *text && a->n < OPERANDS; a->n++) {
        char one[128];
        int depth = 0, at = 0;
        for (; *text && (*text != ' ' || depth); text++) {
            depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
            one[at++] = *text;
        }
        one[at] = '\0';
        text += *text == ' ';
        a->in[a->n] = strcmp(one, "-") ? dt_spec_parse(mesh, one) : NULL;
        if (strcmp(one, "-") && !a->in[a->n]) return false;
    }
    return true;
}

static bool ask(dt_mesh *mesh, const char *op, const char *operands, const void *attributes, int wanted, asked *a)
{
    dt_context *ctx = dt_mesh_context(mesh);
    a->op = op_of(op);
    return expect(a->op != NULL, "no op %s", op) && parse_operands(mesh, operands, a)
        && dti_attributes_read(ctx, a->op, attributes, a->in[0] ? &a->in[0]->shape : NULL, &a->attributes)
        && dti_row_ask(ctx, a->op, a->in, a->n, &a->attributes, &a->asking)
        && dti_propagate(ctx, &a->asking.ask, wanted, &a->propagation);
}

static void put_placements(const dt_spec *spec, dti_pen *pen)
{
    dti_put(pen, "%s", !spec ? "-" : *dt_spec_placements(spec) ? dt_spec_placements(spec) : "R");
}

/* "x:S(0) R -> x:S(0)", and where the number of the polynomial is added once: " once x". */
static const char *answer_text(const asked *a, int number, char *text)
{
    const dti_answer *answer = &a->propagation.answer[number];
    dti_pen pen = { text, TEXT, 0 };
    for (int i = 0; i < a->n; i++, dti_put(&pen, " ")) put_placements(answer->used[i], &pen);
    dti_put(&pen, "->");
    for (int r = 0; r < a->asking.rule.result_count; r++) {
        dti_put(&pen, " ");
        put_placements(answer->result[r], &pen);
    }
    for (int m = 0; m < a->propagation.mesh->dim_count; m++)
        if (answer->number_dims >> m & 1) dti_put(&pen, " once %s", a->propagation.mesh->dims[m].name);
    return text;
}

typedef struct case_row { const char *mesh, *op, *operands, *answer; } case_row;

static int ranks_of(const char *mesh)
{
    int ranks = 1, size = 0;
    for (const char *at = strchr(mesh, '='); at; at = strchr(at + 1, '='))
        ranks *= sscanf(at, "=%d", &size) == 1 ? size : 1;
    return ranks;
}

static void check_with(const case_row *row, const void *attributes)
{
    static asked a;
    char text[TEXT];
    dt_context *ctx = dt_context_dry(ranks_of(row->mesh));
    dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
    bool told = ask(mesh, row->op, row->operands, attributes, 1, &a);
    if (expect(told, "%s %s on %s: %s", row->op, row->operands, row->mesh, dt_context_error(ctx)))
        expect(strcmp(answer_text(&a, 0, text), row->answer) == 0, "%s %s on %s: got \"%s\", expected \"%s\"", row->op,
               row->operands, row->mesh, text, row->answer);
    dt_context_destroy(&ctx);
}

static void check(const case_row *rows, int n)
{
    static const unsigned char none[DT_MAX_ATTRIBUTE_BYTES];
    for (int i = 0; i < n; i++) check_with(&rows[i], none);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static const case_row products[] = {
    { "x=4", "matmul", "f32[12,8] f32[8,16]", "R R -> R" },
    { "x=4", "matmul", "f32[12,8]@x:S(0) f32[8,16]", "x:S(0) R -> x:S(0)" },
    { "x=4", "matmul", "f32[12,8] f32[8,16]@x:S(1)", "R x:S(1) -> x:S(1)" },
    { "x=4", "matmul", "f32[12,8]@x:S(1) f32[8,16]@x:S(0)", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:S(1) f32[8,16]", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8] f32[8,16]@x:S(0)", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:S(0) f32[8,16]@x:S(0)", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:S(0) f32[8,16]@x:S(1)", "R x:S(1) -> x:S(1)" },
    { "x=4", "matmul", "f32[12,8]@x:S(1) f32[8,16]@x:S(1)", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:P f32[8,16]", "x:P(sum) R -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8] f32[8,16]@x:P(avg)", "R x:P(avg) -> x:P(avg)" },
    { "x=4", "matmul", "f32[12,8]@x:P f32[8,16]@x:P", "R x:P(sum) -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:P f32[8,16]@x:S(1)", "x:P(sum) R -> x:P(sum)" },
    { "x=4", "matmul", "f32[12,8]@x:P(max) f32[8,16]", "x:S(0) R -> x:S(0)" },
    { "x=4", "matmul", "f32[3,4]@x:S(0) f32[4,4]", "x:S(0) R -> x:S(0)" },
    { "x=4", "matmul", "f32[12,0] f32[0,4]@x:S(0)", "x:S(1) x:S(0) -> x:P(sum)" },
    { "x=2,y=2", "matmul", "f32[12,8]@x:P f32[8,16]@y:P", "x:P(sum) y:P(sum) -> x:P(sum),y:P(sum)" },
    { "x=2,y=2", "matmul", "f32[12,8]@x:S(0) f32[8,16]@y:S(1)", "x:S(0) y:S(1) -> x:S(0),y:S(1)" },
    { "x=2,y=2", "matmul", "f32[12,8]@x:S(0),y:S(1) f32[8,16]@y:S(0)", "x:S(0),y:S(1) y:S(0) -> x:S(0),y:P(sum)" },
    { "x=2,y=2,z=2", "matmul", "f32[64,512]@x:S(0),z:S(1) f32[512,256]@y:S(1),z:S(0)",
      "x:S(0),z:S(1) y:S(1),z:S(0) -> x:S(0),y:S(1),z:P(sum)" },
    { "x=4", "bmm", "f32[4,8,4]@x:S(0) f32[4,4,8]@x:S(0)", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "bmm", "f32[4,8,4]@x:S(0) f32[4,4,8]", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "matmul", "f32[2,4,6] f32[1,6,8]@x:S(0)", "x:S(2) x:S(1) -> x:P(sum)" },
    { "x=4", "linear", "f32[6,8]@x:S(1) f32[16,8]@x:S(1) f32[16]", "x:S(1) x:S(1) x:P(sum) -> x:P(sum)" },
    { "x=4", "linear", "f32[6,8]@x:S(1) f32[16,8]@x:S(1) -", "x:S(1) x:S(1) - -> x:P(sum)" },
    { "x=4", "linear", "f32[6,8] f32[16,8]@x:S(0) f32[16]@x:S(0)", "R x:S(0) x:S(0) -> x:S(1)" },
    { "x=4", "linear", "f32[6,8]@x:S(0) f32[16,8] f32[16]", "x:S(0) R R -> x:S(0)" },
    { "x=4", "addmm", "f32[16] f32[6,8]@x:S(1) f32[8,16]@x:S(0)", "x:P(sum) x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "addmm", "f32[1,16] f32[6,8]@x:S(1) f32[8,16]@x:S(0)", "x:P(sum) x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "addmm", "f32[6,1] f32[6,8]@x:S(1) f32[8,16]@x:S(0)", "x:P(sum) x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "addmm", "f32[] f32[6,8]@x:S(1) f32[8,16]@x:S(0)", "x:P(sum) x:S(1) x:S(0) -> x:P(sum)" },
    { "x=4", "embedding", "f32[17,12]@x:S(1) i64[8,8]", "x:S(1) R -> x:S(2)" },
    { "x=4", "embedding", "f32[10,20]@x:S(0) i64[8,8]", "x:S(0) R -> x:P(sum)" },
    { "x=4", "embedding", "f32[10,20] i64[8,8]@x:S(1)", "R x:S(1) -> x:S(1)" },
    { "x=4", "embedding", "f32[10,20] i64[8,8]@x:P", "R x:S(0) -> x:S(0)" },
};

static void test_products(void) { check(products, DT_COUNT(products)); }

/* ---- through index maps, along dim 0 ----------------------------------------------------------------------------- */

static const case_row mapped[] = {
    { "x=4", "cat", "f32[13] f32[5]", "R R -> R" },
    { "x=4", "cat", "f32[13]@x:S(0) f32[5]@x:S(0)", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "cat", "f32[13]@x:S(0) f32[5]", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "cat", "f32[13] f32[5]@x:S(0)", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "cat", "f32[13]@x:P f32[5]", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "cat", "f32[13]@x:P f32[5]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "cat", "f32[13,9]@x:S(0) f32[5,9]@x:S(1)", "x:S(1) x:S(1) -> x:S(1)" },
    { "x=4", "cat", "f32[(3 5)]@x:S(0.1) f32[6]@x:S(0)", "x:S(0.1) x:S(0) -> x:S(0)" },
    { "x=2,y=2", "cat", "f32[9,4]@x:S(0),y:S(1) f32[5,4]@x:S(0)", "x:S(0),y:S(1) x:S(0),y:S(1) -> x:S(0),y:S(1)" },
    { "x=2,y=2", "cat", "f32[9]@y:S(0),x:S(0) f32[5]", "y:S(0),x:S(0) y:S(0),x:S(0) -> y:S(0),x:S(0)" },
    { "x=2,y=2", "cat", "f32[9]@x:S(0),y:P f32[5]@x:S(0)", "x:S(0),y:P(sum) x:S(0),y:P(sum) -> x:S(0),y:P(sum)" },
    { "x=2,y=2", "flip", "f32[(3 5)]@y:S(0.0),x:S(0.1)", "x:S(0.1),y:S(0.0) -> y:S(0),x:S(0)" },
    { "x=4", "stack", "f32[13]@x:S(0) f32[13]", "x:S(0) x:S(0) -> x:S(1)" },
    { "x=4", "select", "f32[13,9]@x:S(0)", "x:S(0) -> R" },
    { "x=4", "select", "f32[13,9]@x:S(1)", "x:S(1) -> x:S(0)" },
};

static void test_mapped(void) { check(mapped, DT_COUNT(mapped)); }

/* ---- element by element ------------------------------------------------------------------------------------------ */

static const case_row elements[] = {
    { "x=2,y=2", "add", "f32[(5 6)]@x:S(0.1) f32[(6 5)]@x:S(0.1)", "x:S(0.1) x:S(0.1) -> x:S(0.1)" },
    { "x=2,y=2", "add", "f32[(5 6),8]@x:S(0.1),y:S(1) f32[(6 5),8]@x:S(0.1),y:S(1)",
      "x:S(0.1),y:S(1) x:S(0.1),y:S(1) -> x:S(0.1),y:S(1)" },
    { "x=2,y=2", "add", "f32[(6 5)]@x:S(0.1) f32[(5 6)]@y:S(0.1)",
      "x:S(0.1),y:S(0.0) x:S(0.1),y:S(0.0) -> x:S(0.1),y:S(0.0)" },
    { "x=4", "add", "f32[8,8]@x:P f32[8,8]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "f32[8,8]@x:P(avg) f32[8,8]", "x:P(avg) R -> x:P(avg)" },
    { "x=4", "add", "f32[8,8]@x:P f32[8,8]", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "f32[8,8]@x:P f32[8,8]@x:P(avg)", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "f32[8,8]@x:P(max) f32[8,8]@x:P(max)", "x:P(max) R -> x:P(max)" },
    { "x=4", "add", "f32[8,8]@x:P(max) f32[8,8]", "x:P(max) R -> x:P(max)" },
    { "x=4", "add", "f32[8,8]@x:P(prod) f32[8,8]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "f32[8,8]@x:S(0) f32[8,8]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "f32[8,8]@x:S(0) f32[8]", "x:S(0) R -> x:S(0)" },
    { "x=4", "add", "f32[8,1]@x:S(0) f32[8]@x:S(0)", "x:S(0) R -> x:S(0)" },
    { "x=4", "sub", "f32[8]@x:P(max) f32[8]", "x:P(max) R -> x:P(max)" },
    { "x=4", "sub", "f32[8] f32[8]@x:P(max)", "R x:P(max) -> x:P(min)" },
    { "x=4", "mul", "f32[8,8]@x:P f32[8,8]", "x:P(sum) R -> x:P(sum)" },
    { "x=4", "mul", "f32[8,8]@x:P f32[8,8]@x:P", "R x:P(sum) -> x:P(sum)" },
    { "x=4", "neg", "f32[8]@x:P(max)", "x:P(max) -> x:P(min)" },
    { "x=4", "relu", "f32[8]@x:P(max)", "x:P(max) -> x:P(max)" },
    { "x=4", "relu", "f32[8]@x:P", "x:S(0) -> x:S(0)" },
    { "x=4", "where", "bool[8] f32[8]@x:P f32[8]", "R x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "where", "bool[8]@x:S(0) f32[8]@x:S(0) f32[8]", "x:S(0) x:S(0) x:S(0) -> x:S(0)" },
    /* Integers: averages are rounded, sums wrap. */
    { "x=4", "add", "i32[8]@x:P i32[8]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "i32[8]@x:P(avg) i32[8]", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "add", "i32[8]@x:P(avg) i32[8]@x:P", "x:P(sum) x:P(sum) -> x:P(sum)" },
    { "x=4", "add", "i32[8]@x:P(max) i32[8]", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=4", "relu", "i32[8]@x:P(max)", "x:P(max) -> x:P(max)" },
    /* Kinds that do not mix are in no result. */
    { "x=2,y=2", "both", "f32[8]@x:P(max) f32[8]@y:P(min)", "x:P(max),y:S(0) y:S(0) -> x:P(max),y:S(0)" },
    { "x=2,y=2", "both", "f32[8]@x:P(max) f32[8]@y:P(max)", "x:P(max) y:P(max) -> x:P(max),y:P(max)" },
    { "x=2,y=2", "add", "f32[8]@x:P(max) f32[8]@y:P", "x:P(max),y:S(0) y:S(0) -> x:P(max),y:S(0)" },
    { "x=2,y=2", "add", "f32[8]@x:P(avg) f32[8]@y:P", "x:P(avg),y:P(sum) y:P(sum) -> x:P(avg),y:P(sum)" },
};

static void test_elements(void) { check(elements, DT_COUNT(elements)); }

/* ---- over dims --------------------------------------------------------------------------------------------------- */

static const case_row dims[] = {
    { "x=4", "softmax", "f32[8,12,16]@x:S(0)", "x:S(0) -> x:S(0)" },
    { "x=4", "softmax", "f32[8,12,16]@x:S(2)", "x:S(0) -> x:S(0)" },
    { "x=4", "softmax", "f32[8,12,16]@x:P", "x:S(0) -> x:S(0)" },
    { "x=4", "rms_norm", "f32[20,5,10]@x:S(0) f32[10]", "x:S(0) R -> x:S(0)" },
    { "x=4", "rms_norm", "f32[20,5,10]@x:S(1) f32[10]@x:S(0)", "x:S(1) R -> x:S(1)" },
    { "x=4", "rms_norm", "f32[20,5,10]@x:S(2) f32[10]@x:S(0)", "x:S(0) R -> x:S(0)" },
    { "x=2", "sum", "f32[10]@x:S(0)", "x:S(0) -> x:P(sum)" },
    { "x=4", "mean", "f32[13]@x:S(0)", "x:S(0) -> x:P(sum)" },
    { "x=4", "sum", "f32[13]@x:P", "x:P(sum) -> x:P(sum)" },
    { "x=4", "mean", "f32[13]@x:P(avg)", "x:P(avg) -> x:P(avg)" },
    { "x=4", "max", "f32[13]@x:S(0)", "x:S(0) -> x:P(max)" },
    { "x=4", "max", "f32[13]@x:P(max)", "x:P(max) -> x:P(max)" },
    { "x=4", "max", "f32[13]@x:P(min)", "x:S(0) -> x:P(max)" },
    { "x=2,y=2", "total", "f32[8,8]@x:S(0),y:S(1)", "x:S(0),y:S(1) -> x:P(sum),y:P(sum)" },
    { "x=2,y=2", "total", "f32[8,8]@x:S(0),y:P", "x:S(0),y:P(sum) -> x:P(sum),y:P(sum)" },
};

static void test_dims(void) { check(dims, DT_COUNT(dims)); }

/* ---- factors, orders --------------------------------------------------------------------------------------------- */

static const case_row factors[] = {
    { "x=4", "matmul", "f32[(3 4),8]@x:S(0.1) f32[8,5]", "x:S(0.1) R -> x:S(0.1)" },
    { "x=2", "matmul", "f32[4,(5 6)]@x:S(1.1) f32[30,8]", "x:S(1.1) x:S(0.1) -> x:P(sum)" },
    { "x=2", "matmul", "f32[4,(5 6)]@x:S(1.1) f32[(5 6),8]@x:S(0.1)", "x:S(1.1) x:S(0.1) -> x:P(sum)" },
    { "x=2", "matmul", "f32[4,(5 6)]@x:S(1.1) f32[(6 5),8]@x:S(0.1)", "x:S(1.1) x:S(0.1) -> x:P(sum)" },
    { "x=2", "matmul", "f32[4,(2 15)]@x:S(1.1) f32[(10 3),8]@x:S(0.1)", "x:S(1.1) x:S(0.1) -> x:P(sum)" },
    { "x=2,y=2", "matmul", "f32[4,(6 6)]@x:S(1.1) f32[36,8]@y:S(0)", "x:S(0),y:S(1) y:S(0) -> x:S(0),y:P(sum)" },
    { "x=2", "heads", "f32[4,(6 5)]@x:S(1.0) f32[6,5]", "x:S(1) x:S(0) -> x:S(1)" },
    { "x=2", "heads", "f32[4,(6 5)]@x:S(1.1) f32[6,5]", "x:S(1.1) x:S(1) -> x:S(1.1)" },
    { "x=2", "heads", "f32[4,30] f32[6,5]@x:S(1)", "x:S(1.1) x:S(1) -> x:S(1.1)" },
    { "x=4", "heads", "f32[4,(6 5)]@x:S(1.0) f32[6,5]", "x:S(1.0) x:S(0) -> x:S(1.0)" },
    { "x=2,y=2", "heads", "f32[4,(2 6)]@x:S(1.0),y:S(1.1) f32[2,6]", "x:S(1),y:S(1) x:S(0),y:S(1) -> x:S(1),y:S(1)" },
    { "x=2,y=2", "heads", "f32[4,(8 5)]@y:S(1.0),x:S(1.0) f32[8,5]", "y:S(1),x:S(1) y:S(0),x:S(0) -> y:S(1),x:S(1)" },
    { "x=4", "relu", "f32[0,3]@x:S(0)", "x:S(0) -> x:S(0)" },
    { "x=4", "add", "f32[0,3]@x:S(1) f32[0,3]@x:S(1)", "x:S(1) x:S(1) -> x:S(1)" },
    /* Mesh dims of one factor in the order of the first operand that has two there. */
    { "x=2,y=2", "matmul", "f32[16,8]@y:S(0),x:S(0) f32[8,5]", "y:S(0),x:S(0) R -> y:S(0),x:S(0)" },
    { "x=2,y=2", "add", "f32[16]@x:S(0) f32[16]@y:S(0),x:S(0)", "y:S(0),x:S(0) y:S(0),x:S(0) -> y:S(0),x:S(0)" },
    { "x=2,y=2", "add", "f32[16]@y:S(0),x:S(0) f32[16]@x:S(0),y:S(0)", "y:S(0),x:S(0) y:S(0),x:S(0) -> y:S(0),x:S(0)" },
    { "x=2,y=2", "add", "f32[16]@x:S(0) f32[16]@y:S(0)", "x:S(0),y:S(0) x:S(0),y:S(0) -> x:S(0),y:S(0)" },
    { "x=2,y=2", "relu", "f32[16]@x:P,y:S(0)", "y:S(0),x:S(0) -> y:S(0),x:S(0)" },
    /* Equal prices: the first factor, the first operand's sums. */
    { "x=2", "add", "f32[8,8]@x:S(0) f32[8,8]@x:S(1)", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=2", "add", "f32[8,8]@x:S(1) f32[8,8]@x:S(0)", "x:S(0) x:S(0) -> x:S(0)" },
    { "x=2", "mul", "f32[8]@x:P f32[8]@x:P", "R x:P(sum) -> x:P(sum)" },
    { "x=2", "add", "f32[8]@x:P(max) f32[8]@x:P(max)", "x:P(max) R -> x:P(max)" },
    /* A mesh dim of size 1 is no mesh dim. */
    { "x=1,y=2", "matmul", "f32[4,6]@x:S(1),y:S(1) f32[6,8]@y:S(0)", "y:S(1) y:S(0) -> y:P(sum)" },
};

static void test_factors(void) { check(factors, DT_COUNT(factors)); }

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void test_numbers(void)
{
    static const struct { double number; case_row row; } rows[] = {
        { 10, { "x=2", "add_scalar", "f32[]@x:P", "x:P(sum) -> x:P(sum) once x" } },
        { 10, { "x=2", "add_scalar", "f32[]@x:P(avg)", "x:P(avg) -> x:P(avg)" } },
        { 10, { "x=2,y=2", "add_scalar", "f32[]@x:P,y:P(avg)", "x:P(sum),y:P(avg) -> x:P(sum),y:P(avg) once x" } },
        { -1, { "x=2", "mul_scalar", "f32[8]@x:P(max)", "x:P(max) -> x:P(min)" } },
        { 2, { "x=2", "mul_scalar", "f32[8]@x:P(max)", "x:P(max) -> x:P(max)" } },
        { 0, { "x=2", "mul_scalar", "f32[8]@x:P(max)", "x:S(0) -> x:S(0)" } },
        { -1, { "x=2", "mul_scalar", "f32[8]@x:P", "x:P(sum) -> x:P(sum)" } },
    };
    for (int i = 0; i < DT_COUNT(rows); i++) {
        double attributes[DT_MAX_ATTRIBUTE_BYTES / sizeof(double)] = { rows[i].number };
        check_with(&rows[i].row, attributes);
    }
}

/* ---- alternatives ------------------------------------------------------------------------------------------------ */

/* The first of many is the one that is taken; the others cost no less. */
static void test_alternatives(void)
{
    static const char *const operands[] = {
        "f32[64,512]@x:S(1) f32[512,256]", "f32[64,512]@x:S(0),y:P f32[512,256]@x:P", "f32[64,512] f32[512,256]@y:S(0)",
    };
    static asked one, many;
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    for (int i = 0; i < DT_COUNT(operands); i++) {
        char a[TEXT], b[TEXT];
        bool told = ask(mesh, "matmul", operands[i], NULL, 1, &one)
                 && ask(mesh, "matmul", operands[i], NULL, DTI_MAX_ALTERNATIVES, &many);
        if (!expect(told, "%s: %s", operands[i], dt_context_error(ctx))) continue;
        expect(strcmp(answer_text(&one, 0, a), answer_text(&many, 0, b)) == 0, "%s: %s, and %s", operands[i], a, b);
        expect(one.propagation.answer_count == 1 && many.propagation.answer_count > 1, "%s: %d", operands[i],
               many.propagation.answer_count);
        for (int k = 1; k < many.propagation.answer_count; k++)
            expect(strcmp(answer_text(&many, k - 1, a), answer_text(&many, k, b)) != 0, "%s: %s twice", operands[i], a);
    }
    dt_context_destroy(&ctx);
}

/* More assignments than are tried: dims are settled one by one, and what need not move stays. */
static void test_many_dims(void)
{
    static const char *const mesh = "a=2,b=2,c=2,d=2,e=2,f=2,g=2";
    const case_row stays[] = {
        { mesh, "matmul", "f32[64,64]@a:S(0),b:S(0),c:S(1),d:S(1) f32[64,64]@c:S(0),d:S(0),e:S(1),f:S(1),g:P",
          "a:S(0),b:S(0),c:S(1),d:S(1) c:S(0),d:S(0),e:S(1),f:S(1),g:P(sum) -> "
          "a:S(0),b:S(0),c:P(sum),d:P(sum),e:S(1),f:S(1),g:P(sum)" },
    };
    const char *const moves = "f32[64,64]@a:S(0),b:S(0),c:S(0),d:P(max),e:P(max) "
                              "f32[64,64]@a:S(1),b:S(1),c:S(1),d:S(0),e:S(0),f:P,g:P";
    static asked a;
    check(stays, DT_COUNT(stays));
    dt_context *ctx = dt_context_dry(128);
    dt_mesh *all = dt_mesh_create(ctx, mesh);
    expect(ask(all, "add", moves, NULL, 1, &a), "add: %s", dt_context_error(ctx));
    expect(ask(all, "add", moves, NULL, DTI_MAX_ALTERNATIVES, &a), "add: %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

/* ---- what is remembered ------------------------------------------------------------------------------------------ */

static const dti_dispatch *dispatch(dt_mesh *mesh, const char *op, const char *operands, double number)
{
    static asked a;
    double attributes[DT_MAX_ATTRIBUTE_BYTES / sizeof(double)] = { number };
    dt_context *ctx = dt_mesh_context(mesh);
    a.op = op_of(op);
    if (!parse_operands(mesh, operands, &a)
        || !dti_attributes_read(ctx, a.op, attributes, &a.in[0]->shape, &a.attributes)) return NULL;
    return dti_dispatch_get(ctx, a.op, a.in, a.n, &a.attributes);
}

static void test_cache(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    const char *pair = "f32[8,4]@x:S(0) f32[4,4]", *one = "f32[8]@x:P(max)";
    const dti_dispatch *first = dispatch(mesh, "matmul", pair, 0);
    expect(first && first == dispatch(mesh, "matmul", pair, 0), "the same call, %s", dt_context_error(ctx));
    expect(first != dispatch(mesh, "matmul", "f64[8,4]@x:S(0) f64[4,4]", 0), "another dtype");
    expect(first != dispatch(mesh, "matmul", "f32[8,4] f32[4,4]", 0), "other placements");
    expect(dispatch(mesh, "add", one, 0) == NULL, "an operand too few");
    expect_error(ctx, DT_ERR_ARG, "expected 2 operands, got 1", "an operand too few");
    const dti_dispatch *two = dispatch(mesh, "mul_scalar", one, 2);
    expect(two && two == dispatch(mesh, "mul_scalar", one, 3), "a number by its sign, %s", dt_context_error(ctx));
    expect(two != dispatch(mesh, "mul_scalar", one, -2), "another sign");
    expect(two != dispatch(mesh, "mul_scalar", one, 0), "none");
    expect(dispatch(mesh, "mul_scalar", one, 0) == dispatch(mesh, "mul_scalar", one, -0.0), "zeros");
    expect(dispatch(mesh, "mul_scalar", one, NAN) == dispatch(mesh, "mul_scalar", one, -NAN), "NaN");
    expect(two != dispatch(mesh, "add_scalar", one, 2), "another op");
    dt_context_destroy(&ctx);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void test_errors(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    dt_tensor *a = dt_zeros(dt_spec_parse(mesh, "f32[8,4]@x:S(1)")), *b = dt_zeros(dt_spec_parse(mesh, "f32[4,4]@y:P"));
    dt_tensor *c = dt_zeros(dt_spec_parse(dt_mesh_select(mesh, "x=1"), "f32[4,4]"));
    dt_tensor *p = dt_zeros(dt_spec_parse(mesh, "f32[8,4]@x:P,y:S(0)"));
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    expect(!dt_relu(p), "relu of P, strict");
    expect_error(ctx, DT_ERR_PLACEMENT, "relu: strict, and its operands do not fit each other; redistribute x "
                 "f32[8,4]@x:P(sum),y:S(0) as y:S(0),x:S(0) (128 bytes)", "strict");
    expect(dt_matmul(p, dt_zeros(dt_spec_parse(mesh, "f32[4,4]"))) != NULL, "what moves nothing: %s",
           dt_context_error(ctx));
    dt_scope_pop(ctx, scope, NULL);
    expect(dt_relu(p) != NULL, "not strict: %s", dt_context_error(ctx));
    expect(!dt_matmul(a, c), "two meshes");
    expect_error(ctx, DT_ERR_PLACEMENT, "matmul(a, b): f32[8,4]@x:S(1) lies on mesh x=2,y=2 and f32[4,4] on y=2, over "
                 "other ranks; expected operands over the same ranks", "meshes");
    expect(!dt_matmul(b, dt_zeros(dt_spec_parse(mesh, "f32[5,4]"))), "sizes");
    expect_error(ctx, DT_ERR_SHAPE, "k", "sizes");
    expect(!dt_matmul(b, dt_zeros(dt_spec_parse(mesh, "f64[4,4]"))), "dtypes");
    expect_error(ctx, DT_ERR_DTYPE, "expected one dtype", "dtypes");
    dt_context_destroy(&ctx);
}

/* One operand twice, moved once: the copy belongs to the tensor. */
static void test_copies(void)
{
    dt_context *ctx = dt_context_dry(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[8,8]@x:P"));
    expect(dt_relu(x) && dt_exp(x), "%s", dt_context_error(ctx));
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    expect(counters.calls[DT_COMM_REDUCE_SCATTER] == 1, "%lld", (long long)counters.calls[DT_COMM_REDUCE_SCATTER]);
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "mapped", test_mapped },
    { "products", test_products },
    { "elements", test_elements },
    { "dims", test_dims },
    { "factors", test_factors },
    { "numbers", test_numbers },
    { "alternatives", test_alternatives },
    { "many_dims", test_many_dims },
    { "cache", test_cache },
    { "errors", test_errors },
    { "copies", test_copies },
};

const suite the_suite = { "propagate", rows, DT_COUNT(rows) };
