/* SPDX-License-Identifier: Apache-2.0
 *
 * Training is the same whatever the mesh: the curve of losses of one rank, and what a step communicates, keeps and
 * takes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "launch.h"
#include "models/training.h"

#define LLAMA(type) .llama = { .vocab = TRAINING_VOCAB, .width = 32, .layers = 2, .heads = 4, .kv_heads = 2, \
                               .mlp_width = 44, .dtype = type }
#define TP .rows = tp_rows, .row_count = TP_ROWS
#define SP .rows = sp_rows, .row_count = SP_ROWS

static const placing placings[] = {
    { "dp=2", "dp:S(0)", .ranks = 2 },
    { "dp=4", "dp:S(0)", .sharded = "dp", .ranks = 4 },
    { "tp=2", "", TP, .ranks = 2 },
    { "tp=4", "", SP, .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", TP, .ranks = 4 },
    { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .ranks = 4 },
    { "rep=2,dp=2", "rep:S(0),dp:S(0)", .sharded = "dp", .ranks = 4 },
    { "tp=3", "", TP, .ranks = 3 },
    { "tp=3", "", SP, .ranks = 3 },
    { "tp=4", "", TP, .ranks = 4 },
    { "dp=3", "dp:S(0)", .sharded = "dp", .ranks = 3 },
    { "dp=2", "dp:S(0)", .sharded = "dp", .shard = { .zero = 1 }, .ranks = 2 },
    { "dp=2,tp=2", "dp:S(0)", SP, .sharded = "dp", .shard = { .zero = 2 }, .ranks = 4 },
};

static double apart(const curve *a, const curve *b)
{
    double most = 0;
    for (int i = 0; i < TRAINING_STEPS; i++) {
        double d = fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

static void curves(dt_dtype dtype)
{
    training t = { .placing = { "dp=1", "", .ranks = 1, LLAMA(dtype) } };
    const dt_llama_params llama = t.placing.llama;
    curve one = training_curve(&t);
    for (int i = 0; i < TRAINING_STEPS; i += 7) printf("# %d %.17g\n", i, one.loss[i]);
    for (int i = 0; i < DT_COUNT(placings); i++) {
        t.placing = placings[i];
        t.placing.llama = llama;
        curve c = training_curve(&t);
        printf("# %s %s %s: %g\n", t.placing.mesh, t.placing.rows == sp_rows ? "sp" : "", t.placing.sharded ? "fsdp" : "", apart(&c, &one));
        fflush(stdout);
    }
}

static void test_f64(void) { curves(DT_F64); }
static void test_f32(void) { curves(DT_F32); }

static const test_row rows[] = {
    { "f64", test_f64 }, { "f32", test_f32 },
};

const suite the_suite = { "training", rows, DT_COUNT(rows) };
