/* SPDX-License-Identifier: Apache-2.0
 *
 * The first call of matmul on placements on three mesh dims: rule, specs, and where operands must move the plans. Each
 * is timed in a context of its own, in which matmul has been called on other shapes before. */
#include "dispatch.h"

#include <string.h>

enum { PLACES = 4, ONE_SIDE = PLACES * PLACES * PLACES, PAIRS = ONE_SIDE * ONE_SIDE, AGAIN = 15, HELD_US = 20 };

static const char *const places[PLACES] = { "R", "S(0)", "S(1)", "P" };

typedef enum kind { KIND_FIT, KIND_MOVING, KIND_SUMMING, KIND_COUNT } kind;

static const struct { const char *name, *title; } kinds[KIND_COUNT] = {
    [KIND_FIT] = { "fit", "fit" },
    [KIND_MOVING] = { "moving", "must move" },
    [KIND_SUMMING] = { "summing", "must move, some P" },
};

typedef struct sample { double us[PAIRS]; int n; } sample;
typedef dt_tensor *(*call_fn)(dt_tensor *x, dt_tensor *y);

/* ---- one call ---------------------------------------------------------------------------------------------------- */

/* A tensor with placement number i of all. */
static dt_tensor *operand(dt_mesh *mesh, int64_t rows, int64_t columns, int i)
{
    char text[64];
    snprintf(text, sizeof text, "a:%s,b:%s,c:%s", places[i / PLACES / PLACES], places[i / PLACES % PLACES],
             places[i % PLACES]);
    return dt_zeros(dt_spec_create(mesh, DT_F32, DT_SHAPE(rows, columns), text));
}

static bool is_partial(const dt_tensor *x) { return strchr(dt_spec_placements(dt_tensor_spec(x)), 'P') != NULL; }

static int64_t implied(const dt_mesh *mesh) { return dt_mesh_counters(mesh, NULL).implied; }

/* Microseconds of the first call on a pair of placements, and which kind it is of. */
static double first_us(int pair, call_fn fn, kind *k, bool *ok)
{
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=2,c=2");
    dt_matmul(operand(mesh, 32, 64, 21), operand(mesh, 64, 32, 6));
    dt_tensor *x = operand(mesh, 512, 256, pair / ONE_SIDE), *y = operand(mesh, 256, 1024, pair % ONE_SIDE);
    int64_t before = implied(mesh);
    double from = bench_now_ns();
    fn(x, y);
    double us = (bench_now_ns() - from) * 1e-3;
    *k = implied(mesh) == before ? KIND_FIT : is_partial(x) || is_partial(y) ? KIND_SUMMING : KIND_MOVING;
    *ok &= bench_done(ctx);
    dt_context_destroy(&ctx);
    return us;
}

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

static double mean(const sample *s)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) sum += s->us[i];
    return s->n ? sum / s->n : 0;
}

static int above(const sample *s, double us)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->us[i] > us;
    return n;
}

static void put_row(bench_dispatch *run, kind k, sample *s)
{
    double average = mean(s), middle = bench_median(s->us, s->n);
    bench_row(&run->report, (bench_cell[]){
        { "operands         ", kinds[k].title, 0, 0 },
        { "calls", NULL, s->n, 0 },
        { "median_us", NULL, middle, 1 },
        { "mean_us", NULL, average, 1 },
        { "slowest_us", NULL, s->n ? s->us[s->n - 1] : 0, 1 },
        { "above_20_us", NULL, above(s, HELD_US), 0 },
    }, 6);
}

/* Each pair at its fastest of some rounds over all pairs: what else the machine does is then seldom in all of them. */
static bool time_pairs(const bench_dispatch *run, sample *samples)
{
    static double best[PAIRS];
    static kind kinds_of[PAIRS];
    int rounds = run->small ? 1 : AGAIN, step = run->small ? 229 : 1;
    bool ok = true;
    for (int i = 0; i < rounds; i++)
        for (int p = 0; p < PAIRS && ok; p += step) {
            double us = first_us(p, dt_matmul, &kinds_of[p], &ok);
            if (i == 0 || us < best[p]) best[p] = us;
        }
    for (int p = 0; p < PAIRS; p += step) {
        sample *to = &samples[kinds_of[p]];
        to->us[to->n++] = best[p];
    }
    return ok;
}

/* By its name callgrind knows what to count. */
__attribute__((noinline)) static dt_tensor *counted_first_call(dt_tensor *x, dt_tensor *y) { return dt_matmul(x, y); }

/* Some calls of one kind; which a pair is of, another call says before. */
static bool repeat(kind wanted)
{
    bool ok = true;
    int calls = 0;
    for (int p = 0; p < PAIRS && ok; p += 31) {
        kind k;
        first_us(p, dt_matmul, &k, &ok);
        if (k != wanted) continue;
        first_us(p, counted_first_call, &k, &ok);
        calls++;
    }
    printf("%d\n", calls);
    return ok;
}

bool bench_uncached(bench_dispatch *run)
{
    static sample samples[KIND_COUNT];
    for (kind k = 0; k < KIND_COUNT && run->only; k++)
        if (strcmp(run->only, kinds[k].name) == 0) return repeat(k);
    if (run->only) return true;
    bench_section(&run->report, "uncached",
                  "The first call of matmul on two placements on mesh 2x2x2: all pairs of R, S(0), S(1), P");
    if (!time_pairs(run, samples)) return false;
    for (kind k = 0; k < KIND_COUNT; k++) put_row(run, k, &samples[k]);
    return true;
}
