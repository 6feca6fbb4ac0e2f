/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call of an op costs beside its kernel: known calls, calls that are new, and a whole network beside a loop over
 * the same kernels.
 *
 *   bench_dispatch [--json] [--small] [known] [uncached] [mlp]
 *   bench_dispatch --only add|matmul|moved|recorded|backward|kernel|fit|moving|summing
 *
 * Without names all three parts; this file has the first, and main. A known call has a scope of its own, in which its
 * result ends; ranks are dry, so that there is no kernel, but for one call. The copy of an operand that moves belongs
 * to the operand: it is made once. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "heap.h"

enum { CALLS = 1000, ROUNDS = 201, SWEPT = 501, SWEEP_BYTES = 2 << 20, MAX_SAMPLES = SWEPT };

typedef struct known {
    const char *name, *title;
    const char *mesh;                  /* of one rank: it is no dry one, and there are kernels                     */
    const char *w;                     /* placements of w; x lies on a:S(0)                                        */
    bool recorded;                     /* x is a leaf                                                              */
    dt_tensor *(*fn)(dt_tensor *x, dt_tensor *w);
} known;

static dt_tensor *backward(dt_tensor *x, dt_tensor *w)
{
    dt_tensor *y = dt_add(x, w);
    dt_backward(y, w);
    return y;
}

static const known knowns[] = {
    { "add", "add", "a=2,b=2,c=2", "a:S(0)", false, dt_add },
    { "matmul", "matmul", "a=2,b=2,c=2", "b:S(1)", false, dt_matmul },
    { "moved", "matmul, w moves", "a=2,b=2,c=2", "a:S(0)", false, dt_matmul },
    { "recorded", "add, on the tape", "a=2,b=2,c=2", "a:S(0)", true, dt_add },
    { "backward", "add and backward", "a=2,b=2,c=2", "a:S(0)", true, backward },
    { "kernel", "add, with kernel", "a=1", "a:S(0)", false, dt_add },
};

/* ---- one kind ---------------------------------------------------------------------------------------------------- */

typedef struct at { dt_context *ctx; dt_tensor *x, *w; } at;

static at begin(const known *k)
{
    bool one = strcmp(k->mesh, "a=1") == 0;
    at a = { .ctx = one ? dti_context_new(0, 1, false) : dt_context_dry(8) };
    dt_mesh *mesh = dt_mesh_create(a.ctx, k->mesh);
    a.x = dt_zeros(dt_spec_parse(mesh, "f32[16,16]@a:S(0)"));
    a.w = dt_zeros(dt_spec_create(mesh, DT_F32, DT_SHAPE(16, 16), k->w));
    if (k->recorded) dt_require_grad(a.x);
    return a;
}

static void call(const at *a, const known *k)
{
    int scope = dt_scope_push(a->ctx, 0);
    k->fn(a->x, a->w);
    dt_scope_pop(a->ctx, scope, NULL);
}

static double hot_ns(const at *a, const known *k, int rounds, double *fastest)
{
    double ns[MAX_SAMPLES];
    for (int r = 0; r < rounds; r++) {
        double from = bench_now_ns();
        for (int i = 0; i < CALLS; i++) call(a, k);
        ns[r] = (bench_now_ns() - from) / CALLS;
    }
    double middle = bench_median(ns, rounds);
    *fastest = ns[0];
    return middle;
}

/* One call after all of a buffer was written; NULL: only the clock. */
static double swept_ns(const at *a, const known *k, int rounds)
{
    double ns[MAX_SAMPLES];
    volatile char *buffer = malloc(SWEEP_BYTES);
    for (int r = 0; r < rounds && buffer; r++) {
        for (int i = 0; i < SWEEP_BYTES; i += 64) buffer[i] = (char)r;
        double from = bench_now_ns();
        if (k) call(a, k);
        ns[r] = bench_now_ns() - from;
    }
    free((void *)(uintptr_t)buffer);
    return buffer ? bench_median(ns, rounds) : 0;
}

static double heap_calls_of(const at *a, const known *k)
{
    long before = heap_calls();
    for (int i = 0; i < CALLS; i++) call(a, k);
    return (double)(heap_calls() - before) / CALLS;
}

static bool row(bench_dispatch *run, const known *k)
{
    at a = begin(k);
    int rounds = run->small ? 3 : ROUNDS, swept = run->small ? 3 : SWEPT;
    for (int i = 0; i < CALLS; i++) call(&a, k);
    double fastest, hot = hot_ns(&a, k, rounds, &fastest);
    bench_row(&run->report, (bench_cell[]){
        { "call            ", k->title, 0, 0 },
        { "hot_ns", NULL, hot, 0 },
        { "fastest_ns", NULL, fastest, 0 },
        { "swept_ns", NULL, swept_ns(&a, k, swept) - swept_ns(&a, NULL, swept), 0 },
        { "heap_calls", NULL, heap_calls_of(&a, k), 2 },
    }, 5);
    bool done = bench_done(a.ctx);
    dt_context_destroy(&a.ctx);
    return done;
}

/* By its name callgrind knows what to count. */
__attribute__((noinline)) static void counted_known_call(const at *a, const known *k) { call(a, k); }

static bool repeat(const known *k)
{
    at a = begin(k);
    call(&a, k);
    for (int i = 0; i < CALLS; i++) counted_known_call(&a, k);
    printf("%d\n", CALLS);
    bool done = bench_done(a.ctx);
    dt_context_destroy(&a.ctx);
    return done;
}

bool bench_known(bench_dispatch *run)
{
    bool ok = true;
    if (!run->only)
        bench_section(&run->report, "known", "A known call with its scope, mesh 2x2x2, no kernel, but for one on one "
                                             "rank; swept: after 2 MiB of memory were written");
    for (int i = 0; i < DT_COUNT(knowns) && ok; i++) {
        if (!run->only) ok = row(run, &knowns[i]);
        else if (strcmp(run->only, knowns[i].name) == 0) ok = repeat(&knowns[i]);
    }
    return ok;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

bool bench_done(const dt_context *ctx)
{
    if (dt_context_status(ctx) == DT_OK) return true;
    fprintf(stderr, "%s\n", dt_context_error(ctx));
    return false;
}

static const struct part { const char *name; bool (*fn)(bench_dispatch *); } parts[] = {
    { "known", bench_known },
    { "uncached", bench_uncached },
    { "mlp", bench_mlp },
};

static bool is_named(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    bench_dispatch run = { .small = is_named(argc, argv, "--small") };
    bool ok = true, all = true;
    if (argc == 3 && strcmp(argv[1], "--only") == 0) run.only = argv[2]; /* instructions.sh                        */
    for (int i = 0; i < DT_COUNT(parts); i++) all &= !is_named(argc, argv, parts[i].name);
    if (!run.only) bench_begin(&run.report, is_named(argc, argv, "--json"));
    for (int i = 0; i < DT_COUNT(parts) && ok; i++)
        if (all || is_named(argc, argv, parts[i].name)) ok = parts[i].fn(&run);
    if (!run.only) bench_end(&run.report);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
