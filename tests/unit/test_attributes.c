/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes from text, as `dt rule` reads them: every kind, and what is refused in which words. */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "suite.h"
#include "tools/rule.h"

typedef struct all {
    int64_t count;
    int dim;
    dt_dims dims;
    bool keep;
    double value;
    dt_dtype dtype;
    dt_shape shape;
    char text[DT_MAX_TEXT];
} all;

static const dt_attribute attributes[] = {
    { "count", DT_ATTRIBUTE_INT, offsetof(all, count) },    { "dim", DT_ATTRIBUTE_DIM, offsetof(all, dim) },
    { "dims", DT_ATTRIBUTE_DIMS, offsetof(all, dims) },     { "keep", DT_ATTRIBUTE_BOOL, offsetof(all, keep) },
    { "value", DT_ATTRIBUTE_NUMBER, offsetof(all, value) }, { "dtype", DT_ATTRIBUTE_DTYPE, offsetof(all, dtype) },
    { "shape", DT_ATTRIBUTE_SHAPE, offsetof(all, shape) },  { "text", DT_ATTRIBUTE_TEXT, offsetof(all, text) },
};

static const dt_op op = {
    .head = "f(x)", .rule = "... -> ...", .attributes = attributes, .attribute_count = DT_COUNT(attributes),
    .attribute_bytes = sizeof(all),
};

static bool read(dt_context *ctx, const char *const *texts, int n, all *values)
{
    memset(values, 0, sizeof *values);
    return rule_attributes(ctx, &op, texts, n, values);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

typedef struct good_row { const char *text; all values; } good_row;

static const good_row good[] = {
    { "count=7", { .count = 7 } },
    { "count=-9223372036854775807", { .count = -INT64_MAX } },
    { "dim=1", { .dim = 1 } },
    { "dim=-1", { .dim = -1 } },
    { "dims=0,2", { .dims = { 2, { 0, 2 } } } },
    { "dims=-1", { .dims = { 1, { -1 } } } },
    { "dims=all", { .dims = { 0, { 0 } } } },
    { "keep=true", { .keep = true } },
    { "keep=false", { .keep = false } },
    { "value=-0.5", { .value = -0.5 } },
    { "value=1e-5", { .value = 1e-5 } },
    { "value=-inf", { .value = -INFINITY } },
    { "dtype=bf16", { .dtype = DT_BF16 } },
    { "shape=2,3", { .shape = { 2, { 2, 3 } } } },
    { "shape=-1,4", { .shape = { 2, { -1, 4 } } } },
    { "shape=", { .shape = { 0, { 0 } } } },
    { "text=ij, jk -> ik", { .text = "ij, jk -> ik" } },
    { "text=", { .text = "" } },
};

static bool same_dims(const dt_dims *a, const dt_dims *b) { return memcmp(a, b, sizeof *a) == 0; }
static bool same_shape(const dt_shape *a, const dt_shape *b)
{
    return a->n == b->n && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

static bool same(const all *a, const all *b)
{
    return a->count == b->count && a->dim == b->dim && same_dims(&a->dims, &b->dims) && a->keep == b->keep
        && memcmp(&a->value, &b->value, sizeof a->value) == 0 && a->dtype == b->dtype
        && same_shape(&a->shape, &b->shape) && memcmp(a->text, b->text, sizeof a->text) == 0;
}

static void reads(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(good); i++) {
        all values;
        expect(read(ctx, &good[i].text, 1, &values) && same(&values, &good[i].values), "%s", good[i].text);
        expect_no_error(ctx, good[i].text);
    }
    dt_context_destroy(&ctx);
}

static void reads_several(void)
{
    dt_context *ctx = dt_context_dry(1);
    all values, due = { .dim = 2, .keep = true, .value = 3 };
    const char *const texts[] = { "value=3", "dim=2", "keep=true" };
    expect(read(ctx, texts, DT_COUNT(texts), &values) && same(&values, &due), "all");
    expect(read(ctx, NULL, 0, &values), "none");
    dt_context_destroy(&ctx);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

typedef struct bad_row { const char *text; dt_status status; const char *says; } bad_row;

static const bad_row bad[] = {
    { "count=", DT_ERR_PARSE, "expected an integer, got the end at column 7" },
    { "count=1.5", DT_ERR_PARSE, "expected the end, got \".\" at column 8" },
    { "count=99999999999999999999", DT_ERR_PARSE, "at most 9223372036854775807" },
    { "dim=one", DT_ERR_PARSE, "expected an integer, got \"one\" at column 5" },
    { "dim=8", DT_ERR_ARG, "expected a dim in -8 .. 7 at column 5" },
    { "dims=", DT_ERR_PARSE, "column 6" },
    { "dims=0,", DT_ERR_PARSE, "column 8" },
    { "dims=0,1,2,3,4,5,6,7,0", DT_ERR_ARG, "more than 8 dims at column 22" },
    { "keep=1", DT_ERR_PARSE, "expected true or false, got \"1\" at column 6" },
    { "keep=truest", DT_ERR_PARSE, "expected true or false" },
    { "value=", DT_ERR_PARSE, "expected a number" },
    { "value= 1", DT_ERR_PARSE, "expected a number" },
    { "value=1x", DT_ERR_PARSE, "expected the end, got \"x\" at column 8" },
    { "dtype=f33", DT_ERR_PARSE, "expected a dtype" },
    { "shape=2,,3", DT_ERR_PARSE, "column 9" },
    { "shape=1,1,1,1,1,1,1,1,1", DT_ERR_ARG, "more than 8 dims" },
    { "text=0123456789012345678901234567890123456789012345678901234567890123", DT_ERR_ARG,
      "more than 63 characters at column 6" },
    { "axis=1", DT_ERR_ARG,
      "f has no attribute axis, it has count, dim, dims, keep, value, dtype, shape, text at column 1" },
    { "dim", DT_ERR_PARSE, "expected \"=\", got the end at column 4" },
    { "=1", DT_ERR_PARSE, "expected a name" },
    { "", DT_ERR_PARSE, "expected a name, got the end at column 1" },
};

static void refuses(void)
{
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_COUNT(bad); i++) {
        all values;
        expect(!read(ctx, &bad[i].text, 1, &values), "%s is read", bad[i].text);
        expect_error(ctx, bad[i].status, bad[i].says, bad[i].text);
    }
    dt_context_destroy(&ctx);
}

static void refuses_twice(void)
{
    dt_context *ctx = dt_context_dry(1);
    all values;
    expect(!read(ctx, (const char *const[]){ "dim=1", "dim=2" }, 2, &values), "twice");
    expect_error(ctx, DT_ERR_ARG, "dim stands twice at column 1", "twice");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "reads", reads },
    { "reads_several", reads_several },
    { "refuses", refuses },
    { "refuses_twice", refuses_twice },
};

const suite the_suite = { "attributes", rows, DT_COUNT(rows) };
