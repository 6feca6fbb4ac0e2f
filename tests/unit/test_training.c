/* SPDX-License-Identifier: Apache-2.0
 *
 * Training is the same whatever the mesh: curves of losses are those of one rank, to the rounding of sums that are
 * split otherwise; where none is, bit for bit. With DT_TEST_LONG, on 5 to 8 ranks, too. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/training.h"
#include "suite.h"

#define LLAMA(type) { .vocab = TRAINING_VOCAB, .width = 32, .layers = 2, .heads = 4, .kv_heads = 2, .mlp_width = 44, \
                      .dtype = type }
#define GPT(type) { .vocab = TRAINING_VOCAB, .width = 32, .layers = 2, .heads = 4, .positions = TRAINING_LENGTH, \
                    .dropout = 0.1, .dtype = type }
#define TP .rows = tp_rows, .row_count = TP_ROWS
#define SP .rows = sp_rows, .row_count = SP_ROWS
#define GPT_SP .rows = gpt_rows, .row_count = GPT_ROWS

/* Sums that are split otherwise move a weight by some eps of itself, up as often as down, and the loss, to which all
 * weights and tokens add, by about as much as its own rounding: 2 eps at most where this was measured. */
static const double f64_bound = 16 * DBL_EPSILON, f32_bound = 16 * (double)FLT_EPSILON;

/* Ops see weights of 8 bits: where masters differ in their last bit, they may see weights that are a step apart, which
 * is 2^-7 of a number. Measured: 2^-8.6. */
static const double bf16_bound = 0x1p-7;

/* ---- curves against curves --------------------------------------------------------------------------------------- */

typedef struct name_text { char text[128]; } name_text;

static name_text name_of(const placing *p)
{
    name_text name;
    const char *style = p->rows == tp_rows ? " TP" : p->rows ? " SP" : "", *groups = p->sharded ? " sharded" : "";
    snprintf(name.text, sizeof name.text, "%s%s%s, zero %d%s", p->mesh, style, groups, p->shard.zero,
             p->recompute ? ", recomputed" : "");
    return name;
}

/* The largest relative difference of losses; NaN is one. */
static double apart(const curve *a, const curve *b)
{
    double most = 0;
    for (int i = 0; i < TRAINING_STEPS; i++) {
        double difference = fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]);
        if (!(difference <= most)) most = difference;
    }
    return most;
}

/* The curve of one rank, on which the model has learned something. */
static curve due_curve(const training *t)
{
    curve due = training_curve(t);
    expect(due.loss[TRAINING_STEPS - 1] < 0.6 * due.loss[0], "the loss goes from %g to %g", due.loss[0],
           due.loss[TRAINING_STEPS - 1]);
    return due;
}

/* What t trains, placed in each of these ways. */
static void expect_curve(const curve *due, training t, const placing *placings, int n, double bound)
{
    const dt_llama_params llama = t.placing.llama;
    for (int i = 0; i < n; i++) {
        t.placing = placings[i];
        t.placing.llama = llama;
        curve got = training_curve(&t);
        double most = apart(&got, due);
        expect(most <= bound, "%s: losses are %g apart, expected at most %g", name_of(&t.placing).text, most, bound);
    }
}

/* All of them bit for bit as the first. */
static void expect_same(training t, const placing *placings, int n)
{
    const dt_llama_params llama = t.placing.llama;
    curve first;
    for (int i = 0; i < n; i++) {
        t.placing = placings[i];
        t.placing.llama = llama;
        curve got = training_curve(&t);
        if (i == 0) first = got;
        bool losses = memcmp(got.loss, first.loss, sizeof got.loss) == 0;
        expect(losses, "%s: other losses than %s, %g apart", name_of(&t.placing).text, placings[0].mesh,
               apart(&got, &first));
        expect(got.params == first.params, "%s: other parameters than %s", name_of(&t.placing).text, placings[0].mesh);
    }
}

/* ---- placements of a Llama --------------------------------------------------------------------------------------- */

static const placing one_rank = { "dp=1", "", .ranks = 1 };

static const placing placings[] = {
    { "dp=2", "dp:S(0)", .ranks = 2 },
    { "dp=4", "dp:S(0)", .sharded = "dp", .ranks = 4 },
    { "tp=2", "", TP, .ranks = 2 },
    { "tp=3", "", TP, .ranks = 3 },                                            /* 4 heads, 44 columns, 123 bytes      */
    { "tp=4", "", TP, .ranks = 4 },                                            /* 2 heads of k and v on 4 ranks       */
    { "tp=3", "", SP, .ranks = 3 },
    { "tp=4", "", SP, .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", TP, .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .ranks = 4 },
    { "rep=2,dp=2", "rep:S(0),dp:S(0)", .sharded = "dp", .ranks = 4 },
};

static const placing more_placings[] = {
    { "dp=3", "dp:S(0)", .sharded = "dp", .ranks = 3 },                        /* 8 sequences on 3 ranks              */
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 1 }, .ranks = 2 },
    { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .shard = { .zero = 2 }, .ranks = 4 },
};

static const placing large_placings[] = {
    { "dp=5", "dp:S(0)", .ranks = 5 },
    { "tp=5", "", TP, .ranks = 5 },
    { "tp=6", "", SP, .ranks = 6 },
    { "dp=6", "dp:S(0)", .sharded = "dp", .ranks = 6 },
    { "dp=2,tp=3", "dp:S(0)", SP, .sharded = "dp", .ranks = 6 },
    { "dp=3,tp=2", "dp:S(0)", TP, .sharded = "dp", .recompute = true, .ranks = 6 },
    { "tp=7", "", SP, .ranks = 7 },
    { "dp=7", "dp:S(0)", .sharded = "dp", .shard = { .zero = 2 }, .ranks = 7 },
    { "tp=8", "", TP, .ranks = 8 },
    { "tp=8", "", SP, .ranks = 8 },
    { "dp=2,tp=4", "dp:S(0)", SP, .sharded = "dp", .ranks = 8 },
    { "dp=4,tp=2", "dp:S(0)", SP, .sharded = "dp", .shard = { .zero = 1 }, .ranks = 8 },
    { "rep=2,dp=2,tp=2", "rep:S(0),dp:S(0)", SP, .sharded = "dp", .shard_first = true, .ranks = 8 },
};

static void llama_as_on_one_rank(dt_dtype dtype, double bound)
{
    training t = { .placing = one_rank };
    t.placing.llama = (dt_llama_params)LLAMA(dtype);
    curve due = due_curve(&t);
    expect_curve(&due, t, placings, DT_COUNT(placings), bound);
    if (dtype == DT_F64) expect_curve(&due, t, more_placings, DT_COUNT(more_placings), bound);
    if (getenv("DT_TEST_LONG")) expect_curve(&due, t, large_placings, DT_COUNT(large_placings), bound);
}

static void test_f64(void) { llama_as_on_one_rank(DT_F64, f64_bound); }
static void test_f32(void) { llama_as_on_one_rank(DT_F32, f32_bound); }

static void test_tied(void)
{
    static const placing tied[] = {
        { "dp=2", "dp:S(0)", .ranks = 2 },
        { "tp=2", "", TP, .ranks = 2 },
        { "tp=3", "", SP, .ranks = 3 },
        { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .ranks = 4 },
    };
    training t = { .placing = one_rank };
    t.placing.llama = (dt_llama_params)LLAMA(DT_F64);
    t.placing.llama.tied = true;
    curve due = due_curve(&t);
    expect_curve(&due, t, tied, DT_COUNT(tied), f64_bound);
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

/* Masks are those of one rank, drawn again where blocks are run again. */
static void test_dropout(void)
{
    static const placing gpts[] = {
        { "tp=2", "", GPT_SP, .ranks = 2 },
        { "tp=3", "", GPT_SP, .ranks = 3 },
        { "dp=2", "dp:S(0)", .recompute = true, .ranks = 2 },
        { "dp=2,tp=2", "dp:S(0)", GPT_SP, .sharded = "dp", .recompute = true, .ranks = 4 },
    };
    training t = { .placing = one_rank, .gpt = GPT(DT_F64) };
    curve due = due_curve(&t);
    expect_curve(&due, t, gpts, DT_COUNT(gpts), f64_bound);
    t.gpt.dtype = DT_F32;
    due = due_curve(&t);
    expect_curve(&due, t, gpts, 1, f32_bound);
    t.gpt.dropout = 0;
    curve without = training_curve(&t);
    expect(apart(&without, &due) > 0.01, "dropout changes nothing");
}

/* ---- narrower weights -------------------------------------------------------------------------------------------- */

static const placing narrow_one = { "dp=1", "", .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 1 };

static void test_bf16(void)
{
    static const placing narrow[] = {
        { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 2 },
        { "dp=4", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 4 },
        { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 4 },
    };
    training t = { .placing = narrow_one }, wide = { .placing = one_rank };
    t.placing.llama = wide.placing.llama = (dt_llama_params)LLAMA(DT_F32);
    curve due = due_curve(&t), f32 = training_curve(&wide);
    double most = apart(&due, &f32);
    expect(most > 0 && most < 2 * bf16_bound, "bf16 is %g from f32", most);
    expect_curve(&due, t, narrow, DT_COUNT(narrow), bf16_bound);
}

/* ---- micro-batches ----------------------------------------------------------------------------------------------- */

static void test_accumulated(void)
{
    static const placing accumulated[] = {
        { "dp=1", "", .ranks = 1 },
        { "dp=2", "dp:S(0)", .ranks = 2 },
        { "dp=2", "dp:S(0)", .sharded = "dp", .ranks = 2 },
        { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .shard = { .zero = 2 }, .ranks = 4 },
    };
    training t = { .placing = one_rank };
    t.placing.llama = (dt_llama_params)LLAMA(DT_F64);
    curve due = due_curve(&t);
    t.parts = 4;
    expect_curve(&due, t, accumulated, DT_COUNT(accumulated), f64_bound);
}

/* ---- bit for bit ------------------------------------------------------------------------------------------------- */

/* A gradient is summed over dp in the order of ranks, wherever the sum is to lie and whenever it is taken: all
 * gradients at once, or a group's in backward. The norm of all would be summed in another order: nothing is clipped. */
static const placing same_dp[] = {
    { "dp=3", "dp:S(0)", .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .shard = { .zero = 1 }, .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .shard = { .zero = 2 }, .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .shard = { .prefetch = -1 }, .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .shard = { .keep_gathered = true, .prefetch = 2 }, .ranks = 3 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .recompute = true, .ranks = 3 },
};
static const placing same_2d[] = {
    { "dp=2,tp=2", "dp:S(0)", TP, .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", TP, .sharded = "dp", .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", TP, .sharded = "dp", .shard = { .zero = 2 }, .recompute = true, .ranks = 4 },
};
static const placing same_parts[] = {
    { "dp=2", "dp:S(0)", .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 1 }, .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 2 }, .ranks = 2 },
};
static const placing same_bf16[] = {       /* sums are f32, so what travels may be bf16                            */
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16 }, .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16, .reduce = DT_F32 }, .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16, .zero = 1 }, .ranks = 2 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .compute = DT_BF16, .zero = 2 }, .recompute = true, .ranks = 2 },
};
static const placing same_whole[] = {      /* what is run again gives what it gave                                 */
    { "tp=2", "", SP, .ranks = 2 },
    { "tp=2", "", SP, .recompute = true, .ranks = 2 },
};

static void test_bits(void)
{
    training t = { .unclipped = true };
    t.placing.llama = (dt_llama_params)LLAMA(DT_F32);
    expect_same(t, same_dp, DT_COUNT(same_dp));
    expect_same(t, same_2d, DT_COUNT(same_2d));
    expect_same(t, same_bf16, DT_COUNT(same_bf16));
    t.placing.llama.dtype = DT_F64;
    t.parts = 4;
    expect_same(t, same_parts, DT_COUNT(same_parts));
    t.unclipped = false;
    t.parts = 0;
    expect_same(t, same_whole, DT_COUNT(same_whole));
}

static const test_row rows[] = {
    { "f64", test_f64 },         { "f32", test_f32 },   { "tied", test_tied },
    { "dropout", test_dropout }, { "bf16", test_bf16 }, { "accumulated", test_accumulated },
    { "bits", test_bits },
};

const suite the_suite = { "training", rows, DT_COUNT(rows) };
