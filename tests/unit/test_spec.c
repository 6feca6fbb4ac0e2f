/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs as text and as values: what parses, how it prints, what is refused and in which words, one pointer for what is
 * equal. Where elements lie is test_layout.c's. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "mesh/mesh.h"
#include "placements/spec.h"
#include "placements/state.h"
#include "errors.h"
#include "suite.h"
#include "written.h"

static dt_context *context_of(int n)
{
    dt_context *ctx = dt_context_dry(n);
    expect(ctx != NULL, "a context of %d ranks", n);
    return ctx;
}

static void expect_text(dt_context *ctx, const dt_spec *spec, const char *from, const char *text)
{
    expect(spec != NULL, "%s: %s", from, dt_context_error(ctx));
    expect(strcmp(dt_spec_text(spec), text) == 0, "%s prints %s, expected %s", from, dt_spec_text(spec), text);
    const char *at = strchr(text, '@');
    expect(strcmp(dt_spec_placements(spec), at ? at + 1 : "") == 0, "%s: placements %s", text,
           dt_spec_placements(spec));
    if (spec) expect(dt_spec_check(spec) == DT_OK, "%s: %s", text, dt_context_error(ctx));
    expect_no_error(ctx, from);
}

/* ---- parse and print -------------------------------------------------------------------------------------------- */

typedef struct text_row { const char *written, *text; } text_row;

static const text_row texts[] = { /* on dp=2,tp=4,one=1 */
    { "f32[64,512]@dp:S(0)", "f32[64,512]@dp:S(0)" },
    { "f32[64,512]@dp:S(0),tp:P(sum)", "f32[64,512]@dp:S(0),tp:P(sum)" },
    { "f32[64,512]", "f32[64,512]" },
    { "f32[64,512]@", "f32[64,512]" },
    { "f32[64,512]@dp:R,tp:R", "f32[64,512]" },
    { "f32[64,512]@tp:R,dp:S(1)", "f32[64,512]@dp:S(1)" },
    { "f32[64,512]@tp:S(1),dp:S(0)", "f32[64,512]@dp:S(0),tp:S(1)" },
    { "f32[64,512]@dp:S(0),tp:S(0)", "f32[64,512]@dp:S(0),tp:S(0)" },
    { "f32[64,512]@tp:S(0),dp:S(0)", "f32[64,512]@tp:S(0),dp:S(0)" },  /* split order is kept                      */
    { "f32[64,512]@tp:S(-1),dp:S(-2)", "f32[64,512]@dp:S(0),tp:S(1)" },
    { "f32[64,512]@tp:S(-1.0)", "f32[64,512]@tp:S(1)" },
    { "f32[64,512]@dp:S(0.0)", "f32[64,512]@dp:S(0)" },
    { "f32[4]@dp:P", "f32[4]@dp:P(sum)" },
    { "f32[4]@dp:P(sum),tp:P(avg)", "f32[4]@dp:P(sum),tp:P(avg)" },
    { "f32[4]@tp:P(sum),dp:P(avg)", "f32[4]@dp:P(avg),tp:P(sum)" },
    { "f32[4]@dp:P(max),tp:P(max)", "f32[4]@dp:P(max),tp:P(max)" },
    { "f32[4]@dp:P(min)", "f32[4]@dp:P(min)" },
    { "f32[4]@tp:P(prod),dp:S(0)", "f32[4]@dp:S(0),tp:P(prod)" },
    { "f32[]", "f32[]" },
    { "f32[]@dp:P", "f32[]@dp:P(sum)" },
    { "f64[1]", "f64[1]" }, { "bf16[1]", "bf16[1]" }, { "f16[1]", "f16[1]" }, { "i64[1]", "i64[1]" },
    { "i32[1]", "i32[1]" }, { "u8[1]", "u8[1]" }, { "bool[1]", "bool[1]" },
    { "f32[0]", "f32[0]" },
    { "f32[0,5]@dp:S(0)", "f32[0,5]@dp:S(0)" },
    { "f32[007]", "f32[7]" },
    { "f32[4]@one:S(0)", "f32[4]" },                                  /* a dim of size 1 behaves like none         */
    { "f32[4]@one:P", "f32[4]" },
    { "f32[4]@one:P(max),dp:P(sum)", "f32[4]@dp:P(sum)" },
    { "f32[4]@one:R,tp:S(0)", "f32[4]@tp:S(0)" },
    { "f32[8]@tp:S(0),one:S(0),dp:S(0)", "f32[8]@tp:S(0),dp:S(0)" },
    /* products */
    { "f32[(2 14336),8192]@tp:S(0.1)", "f32[(2 14336),8192]@tp:S(0.1)" },
    { "f32[(2 14336),8192]@tp:S(0)", "f32[(2 14336),8192]@tp:S(0.0)" },
    { "f32[(2 14336),8192]@dp:S(0)", "f32[28672,8192]@dp:S(0)" },     /* 2 over 2: single, so the product is cut    */
    { "f32[(2 14336),8192]", "f32[28672,8192]" },
    { "f32[(2 14336),8192]@dp:S(0),tp:S(0.1)", "f32[28672,8192]@dp:S(0),tp:S(0)" },
    { "f32[(2 14336),8192]@tp:S(0.1),dp:S(0)", "f32[28672,8192]@dp:S(0),tp:S(0)" },
    { "f32[8192,(7 128)]@dp:S(1)", "f32[8192,(7 128)]@dp:S(1.0)" },   /* 7 heads are 4 and 3                        */
    { "f32[8192,(7 128)]@dp:S(-1)", "f32[8192,(7 128)]@dp:S(1.0)" },
    { "f32[8192,(8 128)]@dp:S(1)", "f32[8192,1024]@dp:S(1)" },        /* equal pieces                               */
    { "f32[(2 3 4 5)]", "f32[120]" },
    { "f32[(2 3 4 5)]@tp:S(0.2)", "f32[(6 20)]@tp:S(0.1)" },
    { "f32[(2 3 4 5)]@dp:S(0.1)", "f32[(2 3 20)]@dp:S(0.1)" },
    { "f32[(3 1)]@dp:S(0)", "f32[3]@dp:S(0)" },
    { "f32[(1 3)]@dp:S(0.1)", "f32[3]@dp:S(0)" },
    { "f32[(1 3)]@dp:S(0)", "f32[(1 3)]@dp:S(0.0)" },                 /* all on dp 0                                */
    { "f32[(3 5)]@dp:S(0.1),tp:S(0.0)", "f32[(3 5)]@dp:S(0.1),tp:S(0.0)" },
    { "f32[(3 5)]@tp:S(0),dp:S(0)", "f32[(3 5)]@tp:S(0.0),dp:S(0.0)" },
    { "f32[(3 \t 5)]@dp:S(0.1)", "f32[(3 5)]@dp:S(0.1)" },
    { "f32[(0 3)]", "f32[0]" },
    { "f32[(3 0)]", "f32[0]" },
    /* limits */
    { "u8[1,2,3,4,5,6,7,8]@dp:S(7),tp:S(-8)", "u8[1,2,3,4,5,6,7,8]@dp:S(7),tp:S(0)" },
    { "f32[(1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1)]", "f32[7776]" },
    { "f32[(3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3)]@tp:S(0.15)", "f32[(14348907 3)]@tp:S(0.1)" },
    { "u8[9223372036854775807]@tp:S(0)", "u8[9223372036854775807]@tp:S(0)" },
    { "u8[0,9223372036854775807]", "u8[0,9223372036854775807]" },
    { "f64[1152921504606846975]", "f64[1152921504606846975]" },
    { "i32[2147483648,1073741823]@dp:S(0)", "i32[2147483648,1073741823]@dp:S(0)" },
};

static void test_texts(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4,one=1");
    for (int i = 0; i < DT_COUNT(texts); i++) {
        const dt_spec *spec = dt_spec_parse(mesh, texts[i].written);
        expect_text(ctx, spec, texts[i].written, texts[i].text);
        expect(dt_spec_parse(mesh, texts[i].text) == spec, "%s parses back", texts[i].text);
        expect(dt_spec_parse(mesh, texts[i].written) == spec, "%s is remembered", texts[i].written);
    }
    dt_context_destroy(&ctx);
}

static void test_part_names(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "tp.0=2,tp.1=2,tp.10=2");
    expect_text(ctx, dt_spec_parse(mesh, "f32[8]@tp.10:S(0),tp.1:P"), "parts", "f32[8]@tp.1:P(sum),tp.10:S(0)");
    expect(dt_spec_parse(mesh, "f32[8]@tp:S(0)") == NULL, "a dim's parts do not make the dim");
    expect_error(ctx, DT_ERR_PLACEMENT, "has no dim \"tp\" at column 8", "tp");
    dt_context_destroy(&ctx);
}

static void test_parts_of_a_spec(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const dt_spec *spec = dt_spec_parse(mesh, "bf16[(3 5),7,0]@dp:S(0.1)");
    dt_shape shape = dt_spec_shape(spec);
    expect(dt_spec_mesh(spec) == mesh && dt_spec_dtype(spec) == DT_BF16, "mesh and dtype");
    expect(shape.n == 3 && shape.dim[0] == 15 && shape.dim[1] == 7 && shape.dim[2] == 0, "the global shape");
    shape = dt_spec_local_shape(spec, 5);
    expect(shape.n == 3 && shape.dim[0] == 6 && shape.dim[1] == 7 && shape.dim[2] == 0, "rank 5 holds 3 x 2");
    shape = dt_spec_local_shape(spec, -1);
    expect(shape.n == 3 && !shape.dim[0] && !shape.dim[1] && !shape.dim[2], "nothing for a rank outside");
    expect(dt_spec_boxes(spec, -1, NULL, 0) == 0, "no box either");
    expect_no_error(ctx, "parts");
    shape = dt_spec_local_shape(spec, 8);
    expect(shape.n == 0, "a scalar for a rank out of range");
    expect_error(ctx, DT_ERR_ARG, "dt_spec_local_shape: rank 8 of mesh \"dp=2,tp=4\", expected -1 to 7", "shape of 8");
    dt_spec_local_shape(spec, -2);
    expect_error(ctx, DT_ERR_ARG, "rank -2", "shape of -2");
    expect(dt_spec_boxes(spec, 8, NULL, 0) == 0, "no box for a rank out of range");
    expect_error(ctx, DT_ERR_ARG, "dt_spec_boxes: rank 8", "boxes of 8");
    dt_context_destroy(&ctx);
}

/* ---- refused ---------------------------------------------------------------------------------------------------- */

typedef struct refusal { const char *text; dt_status status; const char *part; } refusal;

static const refusal refused_specs[] = { /* on dp=2,tp=4,one=1 */
    { "", DT_ERR_PARSE,
      "spec \"\": expected a dtype: f64, f32, bf16, f16, i64, i32, u8 or bool, got the end at column 1" },
    { "f31[4]", DT_ERR_PARSE, "expected a dtype: f64, f32, bf16, f16, i64, i32, u8 or bool, got \"f31\" at column 1" },
    { "f321[4]", DT_ERR_PARSE, "expected a dtype" },
    { "F32[4]", DT_ERR_PARSE, "got \"F32\" at column 1" },
    { " f32[4]", DT_ERR_PARSE, "got \" \" at column 1" },
    { "default[4]", DT_ERR_PARSE, "expected a dtype" },
    { "[4]", DT_ERR_PARSE, "got \"[\" at column 1" },
    { "f32", DT_ERR_PARSE, "spec \"f32\": expected [ and the sizes, got the end at column 4" },
    { "f32(4)", DT_ERR_PARSE, "expected [ and the sizes, got \"(\" at column 4" },
    { "f32 [4]", DT_ERR_PARSE, "got \" \" at column 4" },
    { "f32[", DT_ERR_PARSE, "expected a size of 0 or more, got the end at column 5" },
    { "f32[x]", DT_ERR_PARSE, "expected a size of 0 or more, got \"x\" at column 5" },
    { "f32[-4]", DT_ERR_PARSE, "expected a size of 0 or more, got \"-\" at column 5" },
    { "f32[4", DT_ERR_PARSE, "expected \",\" or \"]\", got the end at column 6" },
    { "f32[4,", DT_ERR_PARSE, "expected a size of 0 or more, got the end at column 7" },
    { "f32[4,]", DT_ERR_PARSE, "expected a size of 0 or more, got \"]\" at column 7" },
    { "f32[,4]", DT_ERR_PARSE, "got \",\" at column 5" },
    { "f32[4, 4]", DT_ERR_PARSE, "got \" \" at column 7" },
    { "f32[4x4]", DT_ERR_PARSE, "expected \",\" or \"]\", got \"x4\" at column 6" },
    { "f32[()]", DT_ERR_PARSE, "expected a size of 0 or more, got \")\" at column 6" },
    { "f32[(4)]", DT_ERR_PARSE, "expected a blank and the next factor of the product, got \")\" at column 7" },
    { "f32[(4", DT_ERR_PARSE, "expected a blank and the next factor of the product, got the end at column 7" },
    { "f32[(4 ", DT_ERR_PARSE, "expected a size of 0 or more, got the end at column 8" },
    { "f32[( 4 5)]", DT_ERR_PARSE, "expected a size of 0 or more, got \" \" at column 6" },
    { "f32[(4 5 )]", DT_ERR_PARSE, "expected a size of 0 or more, got \")\" at column 10" },
    { "f32[(4 5,6)]", DT_ERR_PARSE, "expected a blank and the next factor, or \")\", got \",\" at column 9" },
    { "f32[(4 (5 6))]", DT_ERR_PARSE, "got \"(\" at column 8" },
    { "f32[4 5]", DT_ERR_PARSE, "expected \",\" or \"]\", got \" \" at column 6" },
    { "f32[9223372036854775808]", DT_ERR_PARSE, "a size of 0 or more of at most 9223372036854775807" },
    { "f32[4]x", DT_ERR_PARSE, "expected @ and placements, got \"x\" at column 7" },
    { "f32[4]dp:S(0)", DT_ERR_PARSE, "expected @ and placements, got \"dp\" at column 7" },
    { "f32[4]@dp", DT_ERR_PARSE, "expected \":\" and a placement, got the end at column 10" },
    { "f32[4]@dp=S(0)", DT_ERR_PARSE, "expected \":\" and a placement, got \"=\" at column 10" },
    { "f32[4]@dp:", DT_ERR_PARSE, "expected R, S(dim) or P(kind), got the end at column 11" },
    { "f32[4]@dp:Q", DT_ERR_PARSE, "expected R, S(dim) or P(kind), got \"Q\" at column 11" },
    { "f32[4]@dp:r", DT_ERR_PARSE, "got \"r\" at column 11" },
    { "f32[4]@dp:RR", DT_ERR_PARSE, "got \"RR\" at column 11" },
    { "f32[4]@dp:P0", DT_ERR_PARSE, "got \"P0\" at column 11" },
    { "f32[4]@dp:S", DT_ERR_PARSE, "expected (dim) after S, got the end at column 12" },
    { "f32[4]@dp:S0", DT_ERR_PARSE, "expected (dim) after S, got \"0\" at column 12" },
    { "f32[4]@dp:S(", DT_ERR_PARSE, "expected a dim of the tensor, got the end at column 13" },
    { "f32[4]@dp:S()", DT_ERR_PARSE, "expected a dim of the tensor, got \")\" at column 13" },
    { "f32[4]@dp:S(x)", DT_ERR_PARSE, "got \"x\" at column 13" },
    { "f32[4]@dp:S(--1)", DT_ERR_PARSE, "got \"-\" at column 14" },
    { "f32[4]@dp:S(+0)", DT_ERR_PARSE, "got \"+\" at column 13" },
    { "f32[4]@dp:S(0", DT_ERR_PARSE, "expected \")\", got the end at column 14" },
    { "f32[4]@dp:S(0.)", DT_ERR_PARSE, "expected a factor of the dim, got \")\" at column 15" },
    { "f32[4]@dp:S(0.-1)", DT_ERR_PARSE, "expected a factor of the dim, got \"-\" at column 15" },
    { "f32[4]@dp:S(0.0.0)", DT_ERR_PARSE, "expected \")\", got \".\" at column 16" },
    { "f32[4]@dp:S(0 )", DT_ERR_PARSE, "expected \")\", got \" \" at column 14" },
    { "f32[4]@dp:S(0)x", DT_ERR_PARSE, "expected \",\" and the next mesh dim, got \"x\" at column 15" },
    { "f32[4]@dp:S(0) ", DT_ERR_PARSE, "got \" \" at column 15" },
    { "f32[4]@dp:S(0)@tp:R", DT_ERR_PARSE, "got \"@\" at column 15" },
    { "f32[4]@dp:S(0),", DT_ERR_PARSE, "expected a name, got the end at column 16" },
    { "f32[4]@,dp:S(0)", DT_ERR_PARSE, "expected a name, got \",\" at column 8" },
    { "f32[4]@0:R", DT_ERR_PARSE, "expected a name, got \"0\" at column 8" },
    { "f32[4]@@", DT_ERR_PARSE, "expected a name, got \"@\" at column 8" },
    { "f32[4]@dp:P(", DT_ERR_PARSE,
      "expected a kind of partial: sum, avg, max, min or prod, got the end at column 13" },
    { "f32[4]@dp:P()", DT_ERR_PARSE, "expected a kind of partial: sum, avg, max, min or prod, got \")\" at column 13" },
    { "f32[4]@dp:P(mean)", DT_ERR_PARSE, "got \"mean\" at column 13" },
    { "f32[4]@dp:P(none)", DT_ERR_PARSE, "got \"none\" at column 13" },
    { "f32[4]@dp:P(summ)", DT_ERR_PARSE, "got \"summ\" at column 13" },
    { "f32[4]@dp:P(sum", DT_ERR_PARSE, "expected \")\", got the end at column 16" },
    { "f32[4]@dp:P(sum,avg)", DT_ERR_PARSE, "expected \")\", got \",\" at column 16" },
    { "f32[4\n]", DT_ERR_PARSE, "got \"\\x0a\" at column 6" },
    { "f32[1,2,3,4,5,6,7,8,9]", DT_ERR_SHAPE, "more than 8 dims at column 21" },
    { "f32[(1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1)]", DT_ERR_SHAPE, "more than 16 factors at column 38" },
    { "f32[(1 1 1 1 1 1 1 1),(1 1 1 1 1 1 1 1),1]", DT_ERR_SHAPE, "more than 16 factors at column 41" },
    { "f32[4611686018427387904]", DT_ERR_SHAPE, "the tensor has more than 2^63 - 1 bytes" },
    { "u8[4294967296,2147483648]", DT_ERR_SHAPE, "the tensor has more than 2^63 - 1 bytes at column 26" },
    { "u8[0,9223372036854775807,2]", DT_ERR_SHAPE, "more than 2^63 - 1 bytes" }, /* strides would not fit           */
    { "f32[(4294967296 2147483648)]", DT_ERR_SHAPE, "more than 2^63 - 1 bytes" },
    { "f64[1152921504606846976]", DT_ERR_SHAPE, "more than 2^63 - 1 bytes" },
    { "f32[4]@xx:S(0)", DT_ERR_PLACEMENT, "mesh \"dp=2,tp=4,one=1\" has no dim \"xx\" at column 8" },
    { "f32[4]@dp:R,dp.0:R", DT_ERR_PLACEMENT, "has no dim \"dp.0\" at column 13" },
    { "f32[4]@d:S(0)", DT_ERR_PLACEMENT, "has no dim \"d\" at column 8" },
    { "f32[4]@DP:S(0)", DT_ERR_PLACEMENT, "has no dim \"DP\" at column 8" },
    { "f32[4]@dp:S(0),dp:S(0)", DT_ERR_PLACEMENT, "mesh dim \"dp\" is placed twice at column 16" },
    { "f32[4]@dp:R,tp:R,dp:R", DT_ERR_PLACEMENT, "mesh dim \"dp\" is placed twice at column 18" },
    { "f32[4]@one:S(0),one:R", DT_ERR_PLACEMENT, "mesh dim \"one\" is placed twice at column 17" },
    { "f32[64,512]@dp:S(2)", DT_ERR_PLACEMENT, "no dim 2 in a tensor of 2 dims at column 18" },
    { "f32[64,512]@dp:S(-3)", DT_ERR_PLACEMENT, "no dim -3 in a tensor of 2 dims at column 18" },
    { "f32[64,512]@dp:S(-0)", DT_ERR_PLACEMENT, "no dim -0 in a tensor of 2 dims at column 18" },
    { "f32[64,512]@one:S(2)", DT_ERR_PLACEMENT, "no dim 2 in a tensor of 2 dims at column 19" },
    { "f32[4]@dp:S(9223372036854775807)", DT_ERR_PLACEMENT, "no dim 9223372036854775807 in a tensor of 1 dims" },
    { "f32[4]@dp:S(-9223372036854775807)", DT_ERR_PLACEMENT, "no dim -9223372036854775807" },
    { "f32[4]@dp:S(9223372036854775808)", DT_ERR_PARSE, "a dim of the tensor of at most 9223372036854775807" },
    { "f32[]@dp:S(0)", DT_ERR_PLACEMENT, "no dim 0 in a tensor of 0 dims at column 12" },
    { "f32[]@dp:S(-1)", DT_ERR_PLACEMENT, "no dim -1 in a tensor of 0 dims at column 12" },
    { "f32[4]@dp:S(0.1)", DT_ERR_PLACEMENT, "no factor 1 in dim 0, which has 1 at column 15" },
    { "f32[8,(2 4)]@dp:S(-1.2)", DT_ERR_PLACEMENT, "no factor 2 in dim 1, which has 2 at column 22" },
    { "f32[8,(2 4)]@dp:S(0.1)", DT_ERR_PLACEMENT, "no factor 1 in dim 0, which has 1" },
    { "f32[4]@dp:S(0.9223372036854775807)", DT_ERR_PLACEMENT, "no factor 9223372036854775807" },
    { "f32[4]@*", DT_ERR_PLACEMENT, "* stands for the placements of a tensor, and there is none at column 8" },
    { "f32[4]@dp:R,*", DT_ERR_PLACEMENT, "and there is none at column 13" },
    { "f32[4]@dp:P(sum),tp:P(max)", DT_ERR_PLACEMENT, "dp:P(sum) and tp:P(max) do not mix" },
    { "f32[4]@tp:P(max),dp:P", DT_ERR_PLACEMENT, "dp:P(sum) and tp:P(max) do not mix" },
    { "f32[4]@dp:P(avg),tp:P(prod)", DT_ERR_PLACEMENT, "dp:P(avg) and tp:P(prod) do not mix" },
    { "f32[4]@dp:P(min),tp:P(max)", DT_ERR_PLACEMENT, "dp:P(min) and tp:P(max) do not mix" },
    { "f32[4]@dp:P(min),tp:P(avg)", DT_ERR_PLACEMENT, "dp:P(min) and tp:P(avg) do not mix" },
};

static void test_refused_specs(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4,one=1");
    for (int i = 0; i < DT_COUNT(refused_specs); i++) {
        const refusal *row = &refused_specs[i];
        expect(dt_spec_parse(mesh, row->text) == NULL, "\"%s\" is refused", row->text);
        expect(strncmp(dt_context_error(ctx), "spec \"", 6) == 0, "the message begins with the text: %s",
               dt_context_error(ctx));
        expect_error(ctx, row->status, row->part, row->text);
        expect(dt_spec_parse(mesh, row->text) == NULL, "\"%s\" is refused again", row->text);
        expect_error(ctx, row->status, row->part, row->text);
    }
    expect_text(ctx, dt_spec_parse(mesh, "f32[4]@dp:S(0)"), "after all this", "f32[4]@dp:S(0)");
    dt_context_destroy(&ctx);
}

/* Which kinds of P mix: sum with avg, each with itself. */
static void test_kinds(void)
{
    static const char *const kinds[] = { "sum", "avg", "max", "min", "prod" };
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=2,c=2");
    for (int x = 0; x < 5; x++)
        for (int y = 0; y < 5; y++) {
            char text[64];
            snprintf(text, sizeof text, "f32[4]@a:P(%s),b:S(0),c:P(%s)", kinds[x], kinds[y]);
            bool mix = x == y || (x < 2 && y < 2);
            expect((dt_spec_parse(mesh, text) != NULL) == mix, "%s: mixes %d", text, mix);
            if (!mix) expect_error(ctx, DT_ERR_PLACEMENT, "do not mix", text);
            expect_no_error(ctx, text);
        }
    dt_context_destroy(&ctx);
}

/* Every prefix of a spec, and every spec with one byte changed, is refused in words or prints canonically. */
static void test_damaged(void)
{
    static const char whole[] = "bf16[(3 5),17]@tp:S(0.1),dp:S(-1),one:P(avg)";
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4,one=1");
    for (size_t at = 0; at < sizeof whole; at++)
        for (int byte = 0; byte < 256; byte++) {
            char text[sizeof whole];
            memcpy(text, whole, sizeof whole);
            if (at < sizeof whole - 1) text[at] = (char)byte;
            const dt_spec *spec = dt_spec_parse(mesh, text);
            expect((spec != NULL) == (dt_context_status(ctx) == DT_OK), "one of both: %s", dt_context_error(ctx));
            if (spec) expect(dt_spec_check(spec) == DT_OK, "%s", dt_context_error(ctx));
            else expect(strstr(dt_context_error(ctx), " at column ") != NULL, "a column: %s", dt_context_error(ctx));
            dt_context_clear(ctx);
        }
    dt_context_destroy(&ctx);
}

/* ---- create ----------------------------------------------------------------------------------------------------- */

static void test_create(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const dt_spec *spec = dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512), "dp:S(0),tp:P");
    expect_text(ctx, spec, "create", "f32[64,512]@dp:S(0),tp:P(sum)");
    expect(dt_spec_parse(mesh, "f32[64,512]@tp:P(sum),dp:S(-2)") == spec, "as from text");
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512), "dp:S(0),tp:P") == spec, "remembered");
    expect(dt_spec_create(mesh, DT_F64, DT_SHAPE(64, 512), "dp:S(0),tp:P") != spec, "dtypes differ");
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 513), "dp:S(0),tp:P") != spec, "shapes differ");
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512, 1), "dp:S(0),tp:P") != spec, "dims differ");
    const dt_spec *whole = dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512), NULL);
    expect_text(ctx, whole, "NULL", "f32[64,512]");
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512), "") == whole, "NULL and \"\"");
    expect_text(ctx, dt_spec_create(mesh, DT_BOOL, DT_SCALAR, ""), "scalar", "bool[]");
    expect_text(ctx, dt_spec_create(mesh, DT_I64, DT_SHAPE(0), "dp:S(0)"), "empty", "i64[0]@dp:S(0)");
    expect_text(ctx, dt_spec_create(mesh, DT_U8, DT_SHAPE(1, 2, 3, 4, 5, 6, 7, 8), "dp:S(7)"), "8 dims",
                "u8[1,2,3,4,5,6,7,8]@dp:S(7)");
    dt_shape rubbish = { 2, { 64, 512, 77, -1, INT64_MAX, 5, 5, 5 } };
    expect(dt_spec_create(mesh, DT_F32, rubbish, "dp:S(0),tp:P") == spec, "what is behind n does not count");
    dt_context_destroy(&ctx);
}

typedef struct create_refusal {
    dt_dtype dtype;
    dt_shape shape;
    const char *placements;
    dt_status status;
    const char *part;
} create_refusal;

static const create_refusal refused_creates[] = { /* on dp=2,tp=4 */
    { DT_DTYPE_DEFAULT, { 1, { 4 } }, "", DT_ERR_DTYPE, "dt_spec_create: 0 is no dtype" },
    { DT_DTYPE_COUNT, { 1, { 4 } }, "", DT_ERR_DTYPE, "is no dtype" },
    { (dt_dtype)77, { 1, { 4 } }, "", DT_ERR_DTYPE, "77 is no dtype" },
    { DT_F32, { -1, { 4 } }, "", DT_ERR_SHAPE, "dt_spec_create: -1 dims, expected 0 to 8" },
    { DT_F32, { 9, { 4 } }, "", DT_ERR_SHAPE, "dt_spec_create: 9 dims, expected 0 to 8" },
    { DT_F32, { 2, { 4, -5 } }, "", DT_ERR_SHAPE, "dt_spec_create: dim 1 has size -5, expected 0 or more" },
    { DT_F32, { 2, { INT64_MAX, 2 } }, "dp:S(0)", DT_ERR_SHAPE, "more than 2^63 - 1 bytes" },
    { DT_F64, { 1, { INT64_MAX / 8 + 1 } }, "", DT_ERR_SHAPE, "more than 2^63 - 1 bytes" },
    { DT_F32, { 1, { 4 } }, "dp:S(1)", DT_ERR_PLACEMENT,
      "placements \"dp:S(1)\": no dim 1 in a tensor of 1 dims at column 6" },
    { DT_F32, { 1, { 4 } }, "xp:S(0)", DT_ERR_PLACEMENT, "mesh \"dp=2,tp=4\" has no dim \"xp\" at column 1" },
    { DT_F32, { 1, { 4 } }, "dp:S(0),*", DT_ERR_PLACEMENT, "there is none at column 9" },
    { DT_F32, { 1, { 4 } }, "@dp:S(0)", DT_ERR_PARSE, "expected a name, got \"@\" at column 1" },
    { DT_F32, { 1, { 4 } }, " ", DT_ERR_PARSE, "expected a name, got \" \" at column 1" },
    { DT_F32, { 1, { 4 } }, "dp:S(0.1)", DT_ERR_PLACEMENT, "no factor 1 in dim 0" },
};

static void test_refused_creates(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    for (int i = 0; i < DT_COUNT(refused_creates); i++) {
        const create_refusal *row = &refused_creates[i];
        expect(dt_spec_create(mesh, row->dtype, row->shape, row->placements) == NULL, "row %d is refused", i);
        expect_error(ctx, row->status, row->part, row->part);
    }
    dt_context_destroy(&ctx);
}

/* ---- replace and has -------------------------------------------------------------------------------------------- */

typedef struct replace_row { const char *spec, *placements, *text; } replace_row;

static const replace_row replaces[] = { /* on a=2,b=3,c=2,one=1 */
    { "f32[24,36]@a:S(0),b:P", "b:R,*", "f32[24,36]@a:S(0)" },
    { "f32[24,36]@a:S(0),b:P", "*,b:R", "f32[24,36]@a:S(0)" },
    { "f32[24,36]@a:S(0),b:P", "*", "f32[24,36]@a:S(0),b:P(sum)" },
    { "f32[24,36]@a:S(0),b:P", "", "f32[24,36]" },
    { "f32[24,36]@a:S(0),b:P", "c:S(1)", "f32[24,36]@c:S(1)" },
    { "f32[24,36]@a:S(0)", "b:S(0),*", "f32[24,36]@a:S(0),b:S(0)" },  /* named dims split after                     */
    { "f32[24,36]@b:S(0)", "a:S(0),*", "f32[24,36]@b:S(0),a:S(0)" },
    { "f32[24,36]@b:S(0),a:S(0)", "c:S(0),*", "f32[24,36]@b:S(0),a:S(0),c:S(0)" },
    { "f32[24,36]@c:S(0),b:S(0),a:S(0)", "b:R,*", "f32[24,36]@c:S(0),a:S(0)" },
    { "f32[24,36]@c:S(0),b:S(0),a:S(0)", "c:S(0),*", "f32[24,36]@b:S(0),a:S(0),c:S(0)" },
    { "f32[24,36]@c:S(0),b:S(0),a:S(0)", "a:S(0),c:S(0),*", "f32[24,36]@b:S(0),a:S(0),c:S(0)" },
    { "f32[24,36]@a:S(0)", "a:S(1),*", "f32[24,36]@a:S(1)" },
    { "f32[24,36]@a:S(0)", "a:P(max),*,b:S(-1)", "f32[24,36]@a:P(max),b:S(1)" },
    { "f32[24,36]@a:P,b:P(avg)", "a:P(avg),*", "f32[24,36]@a:P(avg),b:P(avg)" },
    { "f32[24,36]", "one:S(0),*", "f32[24,36]" },
    { "f32[(3 5),2]@a:S(0.1)", "b:S(0),*", "f32[15,2]@b:S(0),a:S(0)" },  /* 3 over 3: single                         */
    { "f32[(3 5),2]@a:S(0.1)", "c:S(0),*", "f32[(3 5),2]@a:S(0.1),c:S(0.0)" },
    { "f32[(3 5),2]@a:S(0.1)", "a:R", "f32[15,2]" },
    { "f32[(3 5),2]@a:S(0.1)", "a:S(1)", "f32[15,2]@a:S(1)" },
    { "f32[]@a:P", "a:R,*", "f32[]" },
};

static void test_replace(void)
{
    dt_context *ctx = context_of(12);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=3,c=2,one=1");
    for (int i = 0; i < DT_COUNT(replaces); i++) {
        const dt_spec *spec = dt_spec_parse(mesh, replaces[i].spec);
        const dt_spec *result = dt_spec_replace(spec, replaces[i].placements);
        expect_text(ctx, result, replaces[i].placements, replaces[i].text);
        expect(dt_spec_replace(spec, replaces[i].placements) == result, "remembered");
        expect(dt_spec_parse(mesh, replaces[i].text) == result, "%s as from text", replaces[i].text);
        expect(dt_spec_has(spec, "*") && dt_spec_has(spec, dt_spec_placements(spec)), "has what it has");
        expect(dt_spec_has(result, dt_spec_placements(result)), "has what it has");
        expect(dt_spec_has(spec, replaces[i].placements) == (spec == result), "has %s", replaces[i].placements);
        expect(dt_spec_replace(spec, "*") == spec && dt_spec_replace(spec, "*,one:P(min)") == spec, "* is as it is");
        expect(dt_spec_replace(spec, NULL) == dt_spec_replace(spec, ""), "NULL is R everywhere");
        expect_no_error(ctx, replaces[i].placements);
    }
    dt_context_destroy(&ctx);
}

static const refusal refused_replaces[] = { /* of f32[24,36]@a:P(sum) on a=2,b=3,c=2,one=1 */
    { "*,*", DT_ERR_PLACEMENT, "placements \"*,*\": a second * at column 3" },
    { "b:S(0),*,c:R,*", DT_ERR_PLACEMENT, "a second * at column 14" },
    { "b:P(max),*", DT_ERR_PLACEMENT, "a:P(sum) and b:P(max) do not mix" },
    { "b:S(2),*", DT_ERR_PLACEMENT, "no dim 2 in a tensor of 2 dims at column 5" },
    { "d:R,*", DT_ERR_PLACEMENT, "has no dim \"d\" at column 1" },
    { "b:R,b:R", DT_ERR_PLACEMENT, "mesh dim \"b\" is placed twice at column 5" },
    { "b:R;*", DT_ERR_PARSE, "expected \",\" and the next mesh dim, got \";\" at column 4" },
    { "**", DT_ERR_PARSE, "expected \",\" and the next mesh dim, got \"*\" at column 2" },
    { "*:R", DT_ERR_PARSE, "got \":\" at column 2" },
    { "b:*", DT_ERR_PARSE, "expected R, S(dim) or P(kind), got \"*\" at column 3" },
    { "*,", DT_ERR_PARSE, "expected a name, got the end at column 3" },
};

static void test_refused_replaces(void)
{
    dt_context *ctx = context_of(12);
    const dt_spec *spec = dt_spec_parse(dt_mesh_create(ctx, "a=2,b=3,c=2,one=1"), "f32[24,36]@a:P");
    for (int i = 0; i < DT_COUNT(refused_replaces); i++) {
        const refusal *row = &refused_replaces[i];
        expect(dt_spec_replace(spec, row->text) == NULL, "%s is refused", row->text);
        expect_error(ctx, row->status, row->part, row->text);
        expect(!dt_spec_has(spec, row->text), "nor has it %s", row->text);
        expect_error(ctx, row->status, row->part, row->text);
    }
    dt_context_destroy(&ctx);
}

static void test_has(void)
{
    dt_context *ctx = context_of(12);
    const dt_spec *spec = dt_spec_parse(dt_mesh_create(ctx, "a=2,b=3,c=2,one=1"), "f32[24,36]@b:S(0),a:S(0),c:P");
    expect(dt_spec_has(spec, "c:P(sum),b:S(-2),a:S(0.0),one:S(1)"), "any spelling");
    expect(dt_spec_has(spec, "b:S(0),c:P,a:S(0)") && dt_spec_has(spec, "c:P,*"), "any spelling");
    expect(!dt_spec_has(spec, "a:S(0),b:S(0),c:P"), "another order");
    expect(!dt_spec_has(spec, "b:S(0),a:S(0)") && !dt_spec_has(spec, "c:R,*"), "without P");
    expect(!dt_spec_has(spec, "b:S(0),a:S(0),c:P(avg)") && !dt_spec_has(spec, ""), "another P, nothing");
    expect_no_error(ctx, "has");
    dt_context_destroy(&ctx);
}

/* ---- NULL, failed ----------------------------------------------------------------------------------------------- */

static void test_null(void)
{
    dt_box box;
    expect(dt_spec_parse(NULL, "f32[4]") == NULL && dt_spec_parse(NULL, NULL) == NULL, "parse");
    expect(dt_spec_create(NULL, DT_F32, DT_SHAPE(4), "") == NULL, "create");
    expect(dt_spec_replace(NULL, "*") == NULL && dt_spec_replace(NULL, NULL) == NULL, "replace");
    expect(strcmp(dt_spec_text(NULL), "") == 0 && strcmp(dt_spec_placements(NULL), "") == 0, "texts");
    expect(!dt_spec_has(NULL, "") && !dt_spec_has(NULL, NULL) && !dt_spec_same(NULL, NULL), "has, same");
    expect(dt_spec_mesh(NULL) == NULL && dt_spec_dtype(NULL) == DT_DTYPE_DEFAULT, "mesh, dtype");
    expect(dt_spec_shape(NULL).n == 0 && dt_spec_local_shape(NULL, 0).n == 0, "shapes");
    expect(dt_spec_boxes(NULL, 0, &box, 1) == 0 && dt_spec_check(NULL) == DT_ERR_ARG, "boxes, check");
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[4]");
    expect(!dt_spec_same(spec, NULL) && !dt_spec_same(NULL, spec) && dt_spec_same(spec, spec), "same");
    expect_no_error(ctx, "NULL operands of questions");
    expect(dt_spec_parse(mesh, NULL) == NULL, "no text");
    expect_error(ctx, DT_ERR_ARG, "dt_spec_parse: no text; expected a spec such as f32[64,512]@dp:S(0)", "parse");
    expect(dt_spec_parse(dt_mesh_select(mesh, "dp=0,tp=0"), NULL) == NULL, "no text, no mesh dim");
    expect_error(ctx, DT_ERR_ARG, "no text", "parse");
    dt_context_destroy(&ctx);
}

static void test_failed_context(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[13,5]@dp:S(0)");
    dt_box box;
    dt_context_fail(ctx, DT_ERR_STATE, "something else");
    expect(dt_spec_parse(mesh, "f32[13,5]@dp:S(0)") == NULL && dt_spec_parse(mesh, "rubbish") == NULL, "parse");
    expect(dt_spec_parse(mesh, NULL) == NULL, "parse");
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(13, 5), "dp:S(0)") == NULL, "create");
    expect(dt_spec_create(mesh, DT_DTYPE_DEFAULT, DT_SHAPE(13, 5), "dp:S(0)") == NULL, "create");
    expect(dt_spec_replace(spec, "*") == NULL && !dt_spec_has(spec, "*"), "replace, has");
    expect(dt_spec_check(spec) == DT_ERR_STATE, "check");
    expect(strcmp(dt_spec_text(spec), "f32[13,5]@dp:S(0)") == 0 && dt_spec_mesh(spec) == mesh, "parts are answered");
    expect(dt_spec_local_shape(spec, 7).dim[0] == 6 && dt_spec_boxes(spec, 7, &box, 1) == 1, "holdings too");
    expect(dt_spec_local_shape(spec, 99).n == 0 && dt_spec_boxes(spec, 99, &box, 1) == 0, "a rank out of range");
    expect_error(ctx, DT_ERR_STATE, "something else", "the first error stays");
    expect(dt_spec_replace(spec, "*") == spec, "a cleared context answers again");
    dt_context_destroy(&ctx);
}

/* ---- one pointer ------------------------------------------------------------------------------------------------ */

static void test_interned(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4"), *other = dt_mesh_create(ctx, "dp=2,tq=4");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[64,512]@tp:S(1),dp:P");
    static const char *const spellings[] = {
        "f32[64,512]@dp:P(sum),tp:S(1)", "f32[64,512]@dp:P,tp:S(-1)", "f32[0064,512]@tp:S(1.0),dp:P",
        "f32[64,(1 512)]@tp:S(1.1),dp:P", "f32[64,(512 1)]@tp:S(1),dp:P", "f32[(8 8),(4 128)]@tp:S(1),dp:P",
        "f32[(1 8 8),(8 64)]@tp:S(1),dp:P",
    };
    for (int i = 0; i < DT_COUNT(spellings); i++)
        expect(dt_spec_parse(mesh, spellings[i]) == spec, "%s is %s", spellings[i], dt_spec_text(spec));
    expect(dt_spec_create(mesh, DT_F32, DT_SHAPE(64, 512), "dp:P,tp:S(-1)") == spec, "from parts");
    expect(dt_spec_replace(dt_spec_parse(mesh, "f32[64,512]"), "tp:S(1),dp:P") == spec, "from another");
    const dt_spec *renamed = dt_spec_parse(other, "f32[64,512]@tq:S(1),dp:P");
    expect(renamed && renamed != spec && dt_spec_same(renamed, spec), "names are the mesh's; the layout is the same");
    for (int i = 0; i < 3000; i++) { /* more than one table's worth, found again */
        char text[64];
        snprintf(text, sizeof text, "f32[%d,512]@tp:S(1),dp:P", i);
        const dt_spec *many = dt_spec_parse(mesh, text);
        expect(many && many == dt_spec_parse(mesh, dt_spec_text(many)), "%s is kept", text);
        expect(many && (many == spec) == (i == 64), "%s is itself", text);
    }
    expect_no_error(ctx, "interned");
    dt_context_destroy(&ctx);
}

/* Specs and layouts that a hash does not tell apart are told apart by what they are. */
static void test_same_hash(void)
{
    static const char *const pairs[][2] = {
        { "f32[8]@dp:S(0)", "f32[8]@tp:S(0)" }, { "f32[8]@dp:S(0)", "f16[8]@dp:S(0)" }, { "f32[8]", "f32[9]" },
        { "f32[8,3]@dp:S(0)", "f32[8,3]@dp:S(1)" }, { "f32[8]@dp:P", "f32[8]@dp:P(avg)" },
        { "f32[8]@dp:S(0),tp:S(0)", "f32[8]@tp:S(0),dp:S(0)" },
    };
    for (int i = 0; i < DT_COUNT(pairs); i++) {
        dt_context *ctx = context_of(8), *apart = context_of(8);
        dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4"), *twin = dt_mesh_create(apart, "dp=2,tp=4");
        const dt_spec *a = dt_spec_parse(mesh, pairs[i][0]), *b = dt_spec_parse(twin, pairs[i][1]);
        dti_spec_state *state = dti_spec_state_get(ctx);
        dti_table_add(&state->specs, b->hash, dti_context_take(ctx, sizeof *a));
        dti_table_add(&state->specs, b->hash, (void *)(uintptr_t)a);
        dti_table_add(&state->layouts, b->layout->hash, (void *)(uintptr_t)a->layout);
        const dt_spec *found = dt_spec_parse(mesh, pairs[i][1]);
        expect(found != a && strcmp(dt_spec_text(found), pairs[i][1]) == 0, "%s is not %s", pairs[i][1], pairs[i][0]);
        expect(!dt_spec_same(found, a), "nor is its layout");
        dt_context_destroy(&ctx);
        dt_context_destroy(&apart);
    }
    dt_context *ctx = context_of(8), *apart = context_of(8);
    const dt_spec *a = dt_spec_parse(dt_mesh_create(ctx, "dp=2,tp=4"), "f32[8]@dp:S(0)");
    const dt_spec *b = dt_spec_parse(dt_mesh_create(apart, "dp=2,tq=4"), "f32[8]@dp:S(0)");
    dti_table_add(&dti_spec_state_get(ctx)->specs, b->hash, (void *)(uintptr_t)a);
    expect(dt_spec_parse(dt_mesh_create(ctx, "dp=2,tq=4"), "f32[8]@dp:S(0)") != a, "meshes are told apart");
    dt_context_destroy(&ctx);
    dt_context_destroy(&apart);
}

/* Text in a loop costs no memory after its first round. */
static void test_loop(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    size_t before = 0;
    for (int i = 0; i < 20000; i++) {
        char buffer[64];                                               /* another address, the same bytes          */
        snprintf(buffer, sizeof buffer, "f32[%d,512]@tp:S(1),dp:S(0)", 64 + i % 3);
        const dt_spec *spec = dt_spec_parse(mesh, buffer);
        memcpy(buffer, "tp:R,*", 7);
        const dt_spec *gathered = dt_spec_replace(spec, buffer);
        memset(buffer, 'x', sizeof buffer);
        const dt_spec *made = dt_spec_create(mesh, DT_F32, DT_SHAPE(64 + i % 3, 512), "dp:S(0)");
        expect(spec && made == gathered, "round %d: %s", i, dt_context_error(ctx));
        expect(dt_spec_has(made, "dp:S(0)") && dt_spec_has(made, dt_spec_placements(gathered)), "round %d", i);
        if (i == 2) before = ctx->arena.total;
    }
    expect(ctx->arena.total == before, "%zu bytes became %zu", before, ctx->arena.total);
    expect(dti_spec_state_get(ctx)->texts.count == 12, "%zu texts of 12 are remembered",
           dti_spec_state_get(ctx)->texts.count);
    dt_context_destroy(&ctx);
}

/* ---- random specs on random meshes ------------------------------------------------------------------------------ */

static dt_mesh *random_mesh(dt_context *ctx, unsigned *seed)
{
    int left = dt_rank_count(ctx), dims = 1 + (int)below(seed, 5);
    char text[256] = "";
    for (int d = 0; d < dims; d++) {
        int size = d == dims - 1 ? left : 1 + (int)below(seed, (unsigned)left);
        while (left % size) size--;
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s%d=%d", d ? "," : "", below(seed, 2) ? "d" : "q_", d, size);
        left /= size;
    }
    return dt_mesh_create(ctx, text);
}

/* The earliest mesh dim of the group at *at, items "dim:S(...)" of one factor; *at moves behind it. -1: a dim that
 * places nothing. */
static int group_dim(const dt_mesh *mesh, const char **at)
{
    int first = INT_MAX, place = 0;
    for (const char *group = *at + strcspn(*at, ":"); **at; *at += **at == ',') {
        int name = (int)strcspn(*at, ":"), end = (int)strcspn(*at, ",");
        if (place && (end - name != place || group[1] == 'P' || strncmp(group, *at + name, (size_t)place) != 0)) break;
        int dim = dti_mesh_find(mesh, (dti_word){ *at, name });
        if (dim < 0 || mesh->dims[dim].size == 1) return -1;
        if (dim < first) first = dim;
        place = end - name;
        *at += end;
    }
    return first;
}

/* Canonical: no blank but in products, no R, no dim of size 1, groups in mesh order of their earliest dims. */
static void expect_canonical(const dt_spec *spec)
{
    const char *text = dt_spec_text(spec), *at = dt_spec_placements(spec);
    expect(!strpbrk(text, "R*-\t") && !strstr(text, "  "), "%s", text);
    for (int last = -1; *at;) {
        int dim = group_dim(dt_spec_mesh(spec), &at);
        if (!expect(dim > last, "%s is in no mesh order, or places a dim of size 1", text)) return;
        last = dim;
    }
}

static void try_random(dt_mesh *mesh, unsigned *seed)
{
    dt_context *ctx = dt_mesh_context(mesh);
    char text[WRITTEN_TEXT], again[WRITTEN_TEXT];
    written w = written_draw(mesh, 1 + (int)below(seed, 3), 1 << 20, seed);
    written_text(&w, seed, text);
    written_text(&w, seed, again);
    const dt_spec *spec = dt_spec_parse(mesh, text);
    if (!expect(spec != NULL, "%s on %s: %s", text, dt_mesh_text(mesh), dt_context_error(ctx))) return;
    expect(dt_spec_parse(mesh, again) == spec, "%s is %s", again, text);
    expect(dt_spec_parse(mesh, dt_spec_text(spec)) == spec, "%s parses back to %s", dt_spec_text(spec), text);
    expect(dt_spec_replace(spec, dt_spec_placements(spec)) == spec, "%s placed as it is", dt_spec_text(spec));
    expect(dt_spec_check(spec) == DT_OK, "%s: %s", text, dt_context_error(ctx));
    dt_shape shape = dt_spec_shape(spec);
    expect(shape.n == w.dims && dt_spec_dtype(spec) == w.dtype && dt_spec_mesh(spec) == mesh, "%s: parts", text);
    for (int d = 0; d < w.dims; d++) {
        int64_t size = 1;
        for (int f = w.first[d]; f < w.first[d + 1]; f++) size *= w.size[f];
        expect(shape.dim[d] == size, "%s: dim %d", text, d);
    }
    expect_canonical(spec);
    expect_no_error(ctx, text);
}

static void test_random(void)
{
    static const int ranks[] = { 1, 2, 3, 6, 8, 12, 30, 64 };
    unsigned seed = 1;
    for (int i = 0; i < DT_COUNT(ranks); i++) {
        dt_context *ctx = context_of(ranks[i]);
        for (int m = 0; m < 40; m++) {
            dt_mesh *mesh = random_mesh(ctx, &seed);
            for (int j = 0; j < 100; j++) try_random(mesh, &seed);
        }
        dt_context_destroy(&ctx);
    }
}

/* What * and some items mean: the items of base that are not named, in canonical order, then those written. */
static written with_star(const written *base, const written *named)
{
    written w = *base;
    w.n = 0;
    for (int i = 0; i < base->n; i++) {
        bool again = false;
        for (int j = 0; j < named->n; j++) again |= named->items[j].mesh_dim == base->items[i].mesh_dim;
        if (!again) w.items[w.n++] = base->items[i];
    }
    for (int j = 0; j < named->n; j++) w.items[w.n++] = named->items[j];
    return w;
}

static void star_text(const written *w, unsigned *seed, char *text)
{
    int star = (int)below(seed, (unsigned)w->n + 1);
    text[0] = '\0';
    for (int i = 0; i <= w->n; i++) {
        if (i == star) written_add(text, i ? ",*" : "*");
        if (i == w->n) return;
        written_add(text, i || i == star ? "," : "");
        written_item_text(w, &w->items[i], seed, text);
    }
}

static bool kinds_mix(const written *w)
{
    bool mix = true;
    for (int i = 0; i < w->n; i++)
        for (int j = 0; j < i; j++)
            if (w->items[i].place == WRITTEN_P && w->items[j].place == WRITTEN_P
                && written_mesh_size(w, w->items[i].mesh_dim) > 1 && written_mesh_size(w, w->items[j].mesh_dim) > 1)
                mix &= w->items[i].kind == w->items[j].kind || (w->items[i].kind < 2 && w->items[j].kind < 2);
    return mix;
}

static void try_star(dt_mesh *mesh, unsigned *seed)
{
    char text[WRITTEN_TEXT];
    written base = written_draw(mesh, 1, 1 << 20, seed), named = base;
    written_draw_items(&named, seed);
    if (named.n > 2) named.n = 1 + (int)below(seed, 2);
    written all = with_star(&base, &named);
    const dt_spec *from = written_spec(&base, seed);
    star_text(&named, seed, text);
    const dt_spec *got = dt_spec_replace(from, text);
    if (!kinds_mix(&all)) {
        expect(got == NULL, "%s of %s mixes", text, dt_spec_text(from));
        expect_error(dt_mesh_context(mesh), DT_ERR_PLACEMENT, "do not mix", text);
        return;
    }
    const dt_spec *want = written_spec(&all, seed);
    expect(got && got == want, "%s of %s: got %s, expected %s: %s", text, dt_spec_text(from), dt_spec_text(got),
           dt_spec_text(want), dt_context_error(dt_mesh_context(mesh)));
    expect(dt_spec_has(want, dt_spec_placements(got)) && dt_spec_has(from, text) == (got == from), "has");
    expect_no_error(dt_mesh_context(mesh), text);
}

static void test_random_star(void)
{
    unsigned seed = 7;
    dt_context *ctx = context_of(24);
    for (int m = 0; m < 40; m++) {
        dt_mesh *mesh = random_mesh(ctx, &seed);
        for (int j = 0; j < 60; j++) try_star(mesh, &seed);
    }
    dt_context_destroy(&ctx);
}

/* ---- check ------------------------------------------------------------------------------------------------------ */

typedef struct breakage { void (*damage)(dt_spec *spec); const char *part; } breakage;

static void split_product(dt_spec *spec)
{
    spec->form.factor_first[1] = 2;
    spec->form.size[0] = spec->form.size[1] = 4;
    spec->form.split_first[1] = spec->form.split_first[2] = 1;
}

static void use_twice(dt_spec *spec) { spec->form.partial[spec->form.split[0]] = DTI_SUM; }
static void use_size_1(dt_spec *spec) { spec->form.partial[2] = DTI_SUM; }
static void other_text(dt_spec *spec) { spec->written = "f32[16]@tp:S(0)"; }

static void mix_kinds(dt_spec *spec)
{
    static const dti_partial kinds[] = { DTI_SUM, DTI_MAX };
    static dti_layout mixed;
    mixed = *spec->layout;
    mixed.partial_count = 2;
    mixed.kinds = kinds;
    spec->layout = &mixed;
}

static const breakage breakages[] = {
    { split_product, "is not in normal form" }, { use_twice, "uses a mesh dim twice" },
    { use_size_1, "or one of size 1" }, { mix_kinds, "mixes kinds of P" },
    { other_text, "does not parse back from its text" },
};

static void test_check(void)
{
    dt_context *ctx = context_of(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4,one=1");
    for (int i = 0; i < DT_COUNT(breakages); i++) {
        dt_spec copy = *dt_spec_parse(mesh, "f32[16]@dp:S(0)");
        breakages[i].damage(&copy);
        expect(dt_spec_check(&copy) == DT_ERR_STATE, "damage %d is found", i);
        expect_error(ctx, DT_ERR_STATE, breakages[i].part, breakages[i].part);
    }
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "texts", test_texts },
    { "part_names", test_part_names },
    { "parts_of_a_spec", test_parts_of_a_spec },
    { "refused_specs", test_refused_specs },
    { "kinds", test_kinds },
    { "damaged", test_damaged },
    { "create", test_create },
    { "refused_creates", test_refused_creates },
    { "replace", test_replace },
    { "refused_replaces", test_refused_replaces },
    { "has", test_has },
    { "null", test_null },
    { "failed_context", test_failed_context },
    { "interned", test_interned },
    { "same_hash", test_same_hash },
    { "loop", test_loop },
    { "random", test_random },
    { "random_star", test_random_star },
    { "check", test_check },
};

const suite the_suite = { "spec", rows, DT_COUNT(rows) };
