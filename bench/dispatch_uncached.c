/* SPDX-License-Identifier: Apache-2.0
 *
 * The first call of matmul on placements on three mesh dims: rule, specs, and where operands must move the plans. Each
 * is timed in a context of its own, in which matmul has been called on other shapes before. */
#include "dispatch.h"

#include <string.h>

enum { PLACES = 4, ONE_SIDE = PLACES * PLACES * PLACES, MAX_PAIRS = ONE_SIDE * ONE_SIDE, AGAIN = 5 };

static const char *const places[PLACES] = { "R", "S(0)", "S(1)", "P" };

typedef struct sample { double us[MAX_PAIRS]; int n; } sample;

/* Placement number i of all. */
static void put_placements(char *text, size_t bytes, int i)
{
    snprintf(text, bytes, "a:%s,b:%s,c:%s", places[i / PLACES / PLACES], places[i / PLACES % PLACES],
             places[i % PLACES]);
}

static bool has_partial(int i)
{
    return i / PLACES / PLACES == PLACES - 1 || i / PLACES % PLACES == PLACES - 1 || i % PLACES == PLACES - 1;
}

static dt_tensor *operand(dt_mesh *mesh, int64_t rows, int64_t columns, int i)
{
    char text[64];
    put_placements(text, sizeof text, i);
    return dt_zeros(dt_spec_create(mesh, DT_F32, DT_SHAPE(rows, columns), text));
}

static int64_t implied(const dt_mesh *mesh) { return dt_mesh_counters(mesh, NULL).implied; }

/* Microseconds of the first call on two placements. */
static double first_us(int i, int j, bool *moves, bool *ok)
{
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=2,c=2");
    dt_matmul(operand(mesh, 32, 64, 21), operand(mesh, 64, 32, 6));
    dt_tensor *x = operand(mesh, 512, 256, i), *y = operand(mesh, 256, 1024, j);
    int64_t before = implied(mesh);
    int scope = dt_scope_push(ctx, 0);
    double from = bench_now_ns();
    dt_matmul(x, y);
    double us = (bench_now_ns() - from) * 1e-3;
    dt_scope_pop(ctx, scope, NULL);
    *moves = implied(mesh) != before;
    *ok &= bench_done(ctx);
    dt_context_destroy(&ctx);
    return us;
}

static double mean(const sample *s)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) sum += s->us[i];
    return s->n ? sum / s->n : 0;
}

static void put_row(bench_dispatch *run, const char *kind, sample *s)
{
    double average = mean(s), middle = bench_median(s->us, s->n);
    bench_row(&run->report, (bench_cell[]){
        { "operands", kind, 0, 0 },
        { "calls", NULL, s->n, 0 },
        { "median_us", NULL, middle, 1 },
        { "mean_us", NULL, average, 1 },
        { "slowest_us", NULL, s->us[s->n - 1], 1 },
    }, 5);
}

typedef struct samples { sample fitting, moving, summing; } samples;

/* Each pair at its fastest. */
static bool time_pairs(bench_dispatch *run, samples *all)
{
    bool ok = true;
    for (int p = 0; p < MAX_PAIRS && ok; p += run->small ? 229 : 1) {
        bool moves = false;
        double best = 0;
        for (int k = 0; k < (run->small ? 1 : AGAIN) && ok; k++) {
            double us = first_us(p / ONE_SIDE, p % ONE_SIDE, &moves, &ok);
            if (k == 0 || us < best) best = us;
        }
        bool sums = has_partial(p / ONE_SIDE) || has_partial(p % ONE_SIDE);
        sample *s = !moves ? &all->fitting : sums ? &all->summing : &all->moving;
        s->us[s->n++] = best;
    }
    return ok;
}

/* Some calls of one kind, once; instructions are counted in dt_matmul, that of the warm-up among them. */
static bool repeat(bool summing)
{
    bool ok = true;
    int calls = 0;
    for (int p = 0; p < MAX_PAIRS && ok; p += 31) {
        bool moves;
        if ((has_partial(p / ONE_SIDE) || has_partial(p % ONE_SIDE)) != summing) continue;
        first_us(p / ONE_SIDE, p % ONE_SIDE, &moves, &ok);
        calls += 2;
    }
    printf("%d\n", calls);
    return ok;
}

bool bench_uncached(bench_dispatch *run)
{
    static samples all;
    if (run->only) {
        bool summing = strcmp(run->only, "summing") == 0;
        return summing || strcmp(run->only, "moving") == 0 ? repeat(summing) : true;
    }
    bench_section(&run->report, "uncached",
                  "The first call of matmul on two placements on mesh 2x2x2: all pairs of R, S(0), S(1), P");
    if (!time_pairs(run, &all)) return false;
    put_row(run, "fit", &all.fitting);
    put_row(run, "must move", &all.moving);
    put_row(run, "must move, some P", &all.summing);
    return true;
}
