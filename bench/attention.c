/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention beside products of matrices of its shapes, on one rank: GFLOP/s of the result, and of result and gradient,
 * each the best of its rounds, which go in turn, by the time of the CPU: other work on the machine does not count.
 * Its products, of a query and a key and of a probability and a value, are counted as two operations per element, 2 of
 * them forward and 5 back; causal: half of that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dtensor/dtensor.h>

#include "ops/cpu/product.h"
#include "report.h"

typedef struct shape { const char *dtype; int64_t b, s, h, g, d; bool causal; } shape;

static const shape shapes[] = {
    { "f32", 1, 1024, 4, 4, 64, false }, { "f32", 1, 1024, 4, 4, 64, true }, { "f32", 1, 2048, 2, 2, 128, false },
    { "f32", 2, 512, 8, 2, 128, true }, { "f32", 4, 128, 8, 8, 64, false }, { "bf16", 1, 1024, 4, 4, 64, true },
    { "f64", 1, 512, 4, 4, 64, false },
};

typedef struct timing { double tiles, library, forward, both; } timing; /* ns                                        */

typedef struct bench { bench_report report; int rounds; int64_t divide; bool done; } bench;

/* Of this thread alone; what a library uses is one thread, too. */
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void keep(double *best, double since)
{
    double ns = now_ns() - since;
    if (*best == 0 || ns < *best) *best = ns;
}

/* The products of one head: by the reference, and by the library where there is one. */
static void multiply(dt_context *ctx, const shape *z, dt_dtype dtype, void *const data[4], timing *best)
{
    dti_product first = { .dtype = dtype, .m = z->s, .n = z->s, .k = z->d, .a = data[0], .b = data[1],
                          .transposed = true, .c = data[2], .ranks = INT32_MAX, .ctx = ctx };
    dti_product second = { .dtype = dtype, .m = z->s, .n = z->d, .k = z->s, .a = data[2], .b = data[1], .c = data[3],
                           .ranks = INT32_MAX, .ctx = ctx };
    double since = now_ns();
    dti_product_run(&first);
    dti_product_run(&second);
    keep(&best->tiles, since);
    since = now_ns();
    if (dti_product_fast(&first) && dti_product_fast(&second)) keep(&best->library, since);
}

static void attend(dt_context *ctx, const dt_spec *q, const dt_spec *k, bool causal, timing *best)
{
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *x[4] = { dt_require_grad(dt_randn(q, 1)), dt_require_grad(dt_randn(k, 2)),
                        dt_require_grad(dt_randn(k, 3)), dt_randn(q, 4) };
    double since = now_ns();
    dt_tensor *y = dt_attention(x[0], x[1], x[2], &(dt_attention_params){ .causal = causal });
    keep(&best->forward, since);
    dt_backward(y, x[3]);
    keep(&best->both, since);
    dt_scope_pop(ctx, scope, NULL);
}

static bool measure(dt_context *ctx, const shape *z, int rounds, timing *best)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_dtype dtype = strcmp(z->dtype, "f64") == 0 ? DT_F64 : strcmp(z->dtype, "f32") == 0 ? DT_F32 : DT_BF16;
    const dt_spec *q = dt_spec_create(mesh, dtype, DT_SHAPE(z->b, z->s, z->h, z->d), "");
    const dt_spec *k = dt_spec_create(mesh, dtype, DT_SHAPE(z->b, z->s, z->g, z->d), "");
    int64_t sizes[4] = { z->s * z->d, z->s * z->d, z->s * z->s, z->s * z->d };
    void *data[4];
    for (int i = 0; i < 4; i++) data[i] = calloc((size_t)sizes[i], dt_dtype_bytes(dtype));
    for (int round = 0; round < rounds && dt_context_status(ctx) == DT_OK; round++) {
        multiply(ctx, z, dtype, data, best);
        attend(ctx, q, k, z->causal, best);
    }
    for (int i = 0; i < 4; i++) free(data[i]);
    return dt_context_status(ctx) == DT_OK;
}

static void report(bench *run, const shape *z, const timing *best)
{
    double head = 4.0 * (double)(z->s * z->s * z->d), all = head * (double)(z->b * z->h) / (z->causal ? 2 : 1);
    double tiles = head / best->tiles, forward = all / best->forward, both = 3.5 * all / best->both;
    bench_cell cells[] = {
        { "dtype", z->dtype, 0, 0 }, { "b", NULL, (double)z->b, 0 }, { "s", NULL, (double)z->s, 0 },
        { "h", NULL, (double)z->h, 0 }, { "g", NULL, (double)z->g, 0 }, { "d", NULL, (double)z->d, 0 },
        { "causal", z->causal ? "yes" : "no", 0, 0 }, { "tiles", NULL, tiles, 1 },
        { "library", NULL, best->library > 0 ? head / best->library : 0, 1 }, { "forward", NULL, forward, 1 },
        { "both", NULL, both, 1 }, { "forward/tiles", NULL, forward / tiles, 2 },
        { "both/tiles", NULL, both / tiles, 2 },
    };
    bench_row(&run->report, cells, DT_COUNT(cells));
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    bench *run = arg;
    bool going = true;
    for (int i = 0; i < DT_COUNT(shapes) && going; i++) {
        timing best = { 0 };
        shape z = shapes[i];
        z.s /= run->divide;
        int scope = dt_scope_push(ctx, 0);
        going = measure(ctx, &z, run->rounds, &best);
        dt_scope_pop(ctx, scope, NULL);
        if (going) report(run, &z, &best);
    }
    return dt_context_status(ctx);
}

int main(int argc, char **argv)
{
    char error[256] = "";
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    bench run = { .rounds = small ? 1 : 9, .divide = small ? 16 : 1 };
    bench_begin(&run.report, false);
    bench_section(&run.report, "attention",
                  "Attention, and products of one head of its shapes: by tiles, by the library there may be. GFLOP/s");
    dt_status status = dt_launch_threads(1, rank_main, &run, error, sizeof error);
    bench_end(&run.report);
    if (status) fprintf(stderr, "%s\n", error);
    return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
