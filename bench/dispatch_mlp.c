/* SPDX-License-Identifier: Apache-2.0
 *
 * A multi-layer perceptron on one rank, forward and backward, beside a loop over the same kernels on buffers that are
 * there before: what the library adds to its kernels. Both take turns, a step each; both give the same gradients. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* getrusage's fields */
#endif
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "heap.h"
#include "ops/cpu/kernels.h"
#include "ops/map.h"

enum { LAYERS = 3, WIDE = 1024, BATCH = 64, MOST_CALLS = 8 * LAYERS, ROUNDS = 301, LEAST_ROUNDS = 3 };

typedef struct tensors { dt_tensor *x, *seed, *w[LAYERS], *b[LAYERS]; } tensors;

typedef struct mlp {
    bench_dispatch *run;
    dt_context *ctx;
    dt_mesh *mesh;
    tensors t;
    int calls;                     /* of the loop                                                                  */
    dt_call call[MOST_CALLS];
    dt_part grad[2 * LAYERS];      /* as the loop writes them: of w, then of b                                     */
    bool same;
} mlp;

/* ---- the library ------------------------------------------------------------------------------------------------- */

static bool equal(dt_tensor *x, const dt_part *part)
{
    int64_t n = 1;
    for (int d = 0; d < part->shape.n; d++) n *= part->shape.dim[d];
    return x && memcmp(dt_tensor_data(x), part->data, (size_t)n * sizeof(float)) == 0;
}

/* Leaves are new, so that their gradients end with the step. */
static void step(mlp *m, bool compare)
{
    int scope = dt_scope_push(m->ctx, 0);
    dt_tensor *w[LAYERS], *b[LAYERS], *y = m->t.x;
    for (int l = 0; l < LAYERS; l++) {
        w[l] = dt_require_grad(dt_detach(m->t.w[l]));
        b[l] = dt_require_grad(dt_detach(m->t.b[l]));
        y = dt_linear(l ? dt_gelu(y) : y, w[l], b[l]);
    }
    dt_backward(y, m->t.seed);
    for (int l = 0; l < LAYERS && compare; l++)
        m->same &= equal(dt_grad(w[l]), &m->grad[l]) && equal(dt_grad(b[l]), &m->grad[LAYERS + l]);
    dt_scope_pop(m->ctx, scope, NULL);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static const dti_over over_rows = { .dims = { 1, { 0 } } };
static const dt_op linear = { .head = "linear", .kernel = dti_cpu_linear };
static const dt_op input = { .head = "linear_input", .kernel = dti_cpu_linear_input };
static const dt_op weight = { .head = "linear_weight", .kernel = dti_cpu_linear_weight };
static const dt_op sum = { .head = "sum", .kernel = dti_cpu_sum };
static const dti_map_row gelu = { { .head = "gelu", .kernel = dti_cpu_map }, .map = DTI_MAP_GELU };
static const dti_map_row gelu_slope = { { .head = "gelu_slope", .kernel = dti_cpu_map }, .map = DTI_MAP_GELU_SLOPE };

static dt_part part_of(dt_tensor *x)
{
    const dt_spec *spec = dt_tensor_spec(x);
    return (dt_part){ .spec = spec, .dtype = dt_spec_dtype(spec), .shape = dt_spec_shape(spec),
                      .data = (void *)(uintptr_t)dt_tensor_data(x) };
}

static dt_part room(const mlp *m, const char *spec) { return part_of(dt_zeros(dt_spec_parse(m->mesh, spec))); }

static dt_part add(mlp *m, const dt_op *op, dt_part x, dt_part y, dt_part z, dt_part out)
{
    m->call[m->calls++] = (dt_call){ .ctx = m->ctx, .op = op, .attributes = op == &sum ? &over_rows : NULL,
                                     .in_count = z.spec ? 3 : y.spec ? 2 : 1, .out_count = 1, .in = { x, y, z },
                                     .out = { out }, .adds_number = true };
    return out;
}

static void build(mlp *m)
{
    const dt_part none = { .spec = NULL };
    dt_part in[LAYERS], out[LAYERS], y = part_of(m->t.x), g = part_of(m->t.seed);
    for (int l = 0; l < LAYERS; l++) {
        in[l] = l ? add(m, &gelu.op, y, none, none, room(m, "f32[64,1024]")) : y;
        y = out[l] = add(m, &linear, in[l], part_of(m->t.w[l]), part_of(m->t.b[l]), room(m, "f32[64,1024]"));
    }
    for (int l = LAYERS - 1; l >= 0; l--) {
        dt_part back = l ? add(m, &input, g, part_of(m->t.w[l]), none, room(m, "f32[64,1024]")) : none;
        m->grad[l] = add(m, &weight, g, in[l], none, room(m, "f32[1024,1024]"));
        m->grad[LAYERS + l] = add(m, &sum, g, none, none, room(m, "f32[1024]"));
        if (l) g = add(m, &gelu_slope.op, back, out[l - 1], none, room(m, "f32[64,1024]"));
    }
}

static void loop(const mlp *m)
{
    for (int i = 0; i < m->calls; i++) m->call[i].op->kernel(&m->call[i]);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static void begin(mlp *m)
{
    m->mesh = dt_mesh_create(m->ctx, "one=1");
    const dt_spec *rows = dt_spec_parse(m->mesh, "f32[64,1024]");
    m->t.x = dt_randn(rows, 1);
    m->t.seed = dt_randn(rows, 2);
    for (int l = 0; l < LAYERS; l++) {
        m->t.w[l] = dt_mul_scalar(dt_randn(dt_spec_parse(m->mesh, "f32[1024,1024]"), 3 + (uint64_t)l), 1.0 / 32);
        m->t.b[l] = dt_randn(dt_spec_parse(m->mesh, "f32[1024]"), 30 + (uint64_t)l);
    }
    build(m);
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

typedef struct counts { long heap, of_kernels, faults; } counts;

/* Of one step, and of one turn of the loop, when both have run before. */
static counts count(mlp *m)
{
    counts c = { 0, 0, 0 };
    for (int i = 0; i < 3; i++) {
        loop(m);
        step(m, true);
    }
    c.heap = -heap_calls(), c.faults = -faults();
    step(m, false);
    c.heap += heap_calls(), c.faults += faults();
    c.of_kernels = -heap_calls();
    loop(m);
    c.of_kernels += heap_calls();
    return c;
}

static void measure(mlp *m)
{
    double library[ROUNDS], plain[ROUNDS], ratio[ROUNDS];
    int rounds = m->run->small ? LEAST_ROUNDS : ROUNDS;
    counts c = count(m);
    for (int r = 0; r < rounds; r++) {
        double from = bench_now_ns();
        loop(m);
        double between = bench_now_ns();
        step(m, false);
        library[r] = (bench_now_ns() - between) * 1e-3;
        plain[r] = (between - from) * 1e-3;
        ratio[r] = library[r] / plain[r];
    }
    double middle[] = { bench_median(library, rounds), bench_median(plain, rounds), bench_median(ratio, rounds) };
    bench_row(&m->run->report, (bench_cell[]){
        { "rounds", NULL, rounds, 0 },
        { "library_us", NULL, middle[0], 1 },
        { "loop_us", NULL, middle[1], 1 },
        { "ratio", NULL, middle[2], 4 },
        { "of_fastest", NULL, library[0] / plain[0], 4 },
        { "heap_calls", NULL, (double)c.heap, 0 },
        { "of_kernels", NULL, (double)c.of_kernels, 0 },
        { "page_faults", NULL, (double)c.faults, 0 },
    }, 8);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    mlp *m = arg;
    m->ctx = ctx;
    begin(m);
    if (dt_context_status(ctx) == DT_OK) measure(m);
    return dt_context_status(ctx);
}

bool bench_mlp(bench_dispatch *run)
{
    mlp *m = calloc(1, sizeof *m);
    char error[512] = "no memory";
    if (run->only) return free(m), true;
    bench_section(&run->report, "mlp", "An MLP of 3 layers, 1,024 wide, batch 64, forward and backward on one rank, "
                                       "and a loop over the same kernels");
    if (m) *m = (mlp){ .run = run, .same = true };
    bool ok = m && dt_launch_threads(1, rank_main, m, error, sizeof error) == DT_OK && m->same;
    if (!ok) fprintf(stderr, "%s\n", *error ? error : "the loop's gradients are others");
    free(m);
    return ok;
}
