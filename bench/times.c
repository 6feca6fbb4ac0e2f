/* SPDX-License-Identifier: Apache-2.0
 *
 * Time to plan. Cold: both specs exist, the pair was never planned in the context; every round has a context of its
 * own. Cached: the plan exists. Parse, replace: the spec exists. Times are those of a whole round over its
 * calls; rounds are many, so that a machine with other work still shows a best and a median. */
#include <stdlib.h>
#include <string.h>

#include "suites.h"

enum { MAX_ROUNDS = 400 };

typedef struct cold_case {
    int mesh_dims, size;
    bool partial;
    int every, rounds;             /* one of how many pairs                                                        */
} cold_case;

static const cold_case cold_cases[] = {
    { 1, 2, false, 1, 400 }, { 1, 2, true, 1, 400 },
    { 2, 2, false, 1, 100 }, { 2, 2, true, 1, 100 },
    { 3, 2, false, 1, 40 }, { 3, 2, true, 1, 15 },
    { 3, 4, false, 1, 15 }, { 3, 4, true, 11, 9 },
    { 3, 8, false, 11, 9 }, { 3, 8, true, 101, 5 },
};

/* ---- a context with all specs of a mesh -------------------------------------------------------------------------- */

typedef struct stage {
    dt_context *ctx;
    dt_mesh *mesh;
    int count;
    const dt_spec *specs[BENCH_MAX_STATES];
} stage;

static bool stage_init(stage *s, const cold_case *c)
{
    int sizes[3] = { c->size, c->size, c->size }, ranks = 1;
    char text[BENCH_TEXT];
    for (int m = 0; m < c->mesh_dims; m++) ranks *= c->size;
    s->ctx = dt_context_dry(ranks);
    s->mesh = s->ctx ? dt_mesh_create(s->ctx, bench_mesh_text(text, sizes, c->mesh_dims)) : NULL;
    s->count = bench_state_count(c->mesh_dims, c->partial);
    for (int i = 0; i < s->count; i++)
        s->specs[i] = dt_spec_parse(s->mesh, bench_spec_text(text, "f32[48,48,48]", i, c->mesh_dims, c->partial));
    dt_topology_link_count(s->ctx);
    return s->ctx && dt_context_status(s->ctx) == DT_OK;
}

static bool stage_fini(stage *s)
{
    dt_status status = s->ctx ? dt_context_status(s->ctx) : DT_ERR_MEMORY;
    if (status != DT_OK) fprintf(stderr, "%s\n", s->ctx ? dt_context_error(s->ctx) : "no memory");
    dt_context_destroy(&s->ctx);
    return status == DT_OK;
}

/* ---- cold -------------------------------------------------------------------------------------------------------- */

static int plan_pairs(const stage *s, int every)
{
    int calls = 0;
    for (int pair = 0; pair < s->count * s->count; pair += every) {
        int i = pair / s->count, j = pair % s->count;
        if (i == j) continue;
        dt_plan_create(s->specs[i], s->specs[j], DT_PLAN_BYTES);
        calls++;
    }
    return calls;
}

/* The slowest pair, each at its fastest so far. Every other round goes backwards, so that a pair at which the table of
 * plans grows is not taken for slow. */
static double time_pairs(const stage *s, int every, bool backwards, double *fastest)
{
    double slowest = 0;
    int pairs = (s->count * s->count + every - 1) / every;
    for (int k = 0; k < pairs; k++) {
        int pair = (backwards ? pairs - 1 - k : k) * every, i = pair / s->count, j = pair % s->count;
        if (i == j) continue;
        double begin = bench_now_ns();
        dt_plan_create(s->specs[i], s->specs[j], DT_PLAN_BYTES);
        double ns = bench_now_ns() - begin;
        if (fastest[pair] == 0 || ns < fastest[pair]) fastest[pair] = ns;
        if (fastest[pair] > slowest) slowest = fastest[pair];
    }
    return slowest;
}

static bool cold_round(const cold_case *c, double *ns, int *calls)
{
    stage s;
    if (!stage_init(&s, c)) return stage_fini(&s);
    double begin = bench_now_ns();
    *calls = plan_pairs(&s, c->every);
    *ns = (bench_now_ns() - begin) / *calls;
    return stage_fini(&s);
}

static bool slowest_pair(const cold_case *c, int rounds, double *ns)
{
    double *fastest = calloc((size_t)BENCH_MAX_STATES * BENCH_MAX_STATES, sizeof *fastest);
    bool ok = fastest != NULL;
    for (int r = 0; r < rounds && ok; r++) {
        stage s;
        ok = stage_init(&s, c);
        if (ok) *ns = time_pairs(&s, c->every, r % 2, fastest);
        ok &= stage_fini(&s);
    }
    free(fastest);
    return ok;
}

static const char *mesh_name(const cold_case *c, char *text)
{
    *text = 0;
    for (int m = 0; m < c->mesh_dims; m++) sprintf(text + strlen(text), "%s%d", m ? "x" : "", c->size);
    return text;
}

static bool cold(bench_run *run, const cold_case *c)
{
    double ns[MAX_ROUNDS], slowest = 0;
    int rounds = run->small ? 1 : c->rounds, calls = 0;
    char text[BENCH_TEXT];
    for (int r = 0; r < rounds; r++)
        if (!cold_round(c, &ns[r], &calls)) return false;
    if (!slowest_pair(c, rounds < 9 ? rounds : 9, &slowest)) return false;
    double median = bench_median(ns, rounds);
    bench_row(&run->report, (bench_cell[]){
        { "mesh", mesh_name(c, text), 0, 0 },
        { "places", c->partial ? "all with P" : "S, R", 0, 0 },
        { "plans", NULL, calls, 0 },
        { "rounds", NULL, rounds, 0 },
        { "median_us", NULL, median / 1000, 3 },
        { "best_us", NULL, ns[0] / 1000, 3 },
        { "slowest_pair_us", NULL, slowest / 1000, 3 },
    }, 7);
    if (c->mesh_dims == 3 && c->size == 2 && !c->partial)
        bench_target(run, "plan S, R, 3 mesh dims (2x2x2), cold: us, median", 5, median / 1000);
    return true;
}

static bool cold_all(bench_run *run)
{
    bench_section(&run->report, "cold",
                  "Time of dt_plan_create for a pair of specs not planned before, f32[48,48,48], us per call");
    for (int i = 0; i < DT_COUNT(cold_cases); i++)
        if ((!run->small || cold_cases[i].mesh_dims < 3) && !cold(run, &cold_cases[i])) return false;
    return true;
}

/* ---- known plans and specs --------------------------------------------------------------------------------------- */

static const cold_case known_case = { 3, 2, false, 1, 1 };

static const char *const known_texts[] = {
    "f32[64,512]@x:S(0)",
    "f32[64,512]@x:S(0),y:S(1),z:P(sum)",
    "bf16[8,4096,8192]@x:S(0),y:S(1)",
    "f32[(2 14336),8192]@x:S(0.1)",
};
static const char *const known_changes[] = { "y:R,*", "x:S(1),*", "x:S(0),y:S(1)" };

static int lookup_one(const stage *s, int n)
{
    for (int i = 0; i < n; i++) dt_plan_create(s->specs[5], s->specs[22], DT_PLAN_BYTES);
    return n;
}

static int lookup_all(const stage *s, int n)
{
    int calls = 0;
    while (calls < n) calls += plan_pairs(s, 1);
    return calls;
}

static int parse_one(const stage *s, int n)
{
    for (int i = 0; i < n; i++) dt_spec_parse(s->mesh, known_texts[0]);
    return n;
}

static int parse_all(const stage *s, int n)
{
    for (int i = 0; i < n; i++) dt_spec_parse(s->mesh, known_texts[i % DT_COUNT(known_texts)]);
    return n;
}

static int replace_one(const stage *s, int n)
{
    for (int i = 0; i < n; i++) dt_spec_replace(s->specs[5], known_changes[0]);
    return n;
}

static int replace_all(const stage *s, int n)
{
    for (int i = 0; i < n; i++)
        dt_spec_replace(s->specs[(i * 7) % s->count], known_changes[i % DT_COUNT(known_changes)]);
    return n;
}

static const struct known {
    const char *what;
    int (*fn)(const stage *, int);
    double limit;
    const char *target;
} knowns[] = {
    { "dt_plan_create, one pair", lookup_one, 100, "find a plan, one pair: ns, median" },
    { "dt_plan_create, 4,032 pairs in turn", lookup_all, 100, "find a plan, 4,032 pairs in turn: ns, median" },
    { "dt_spec_parse, one text", parse_one, 50, "text to spec, one text: ns, median" },
    { "dt_spec_parse, four texts in turn", parse_all, 50, "text to spec, four texts in turn: ns, median" },
    { "dt_spec_replace, one", replace_one, 50, "replace, one: ns, median" },
    { "dt_spec_replace, 64 specs, three changes", replace_all, 50, "replace, 64 specs, three changes: ns, median" },
};

static void known(bench_run *run, const stage *s, const struct known *k)
{
    double ns[MAX_ROUNDS];
    int rounds = run->small ? 1 : 101, calls = run->small ? 100 : 20000;
    k->fn(s, calls);
    for (int r = 0; r < rounds; r++) {
        double begin = bench_now_ns();
        int n = k->fn(s, calls);
        ns[r] = (bench_now_ns() - begin) / n;
    }
    double median = bench_median(ns, rounds);
    bench_row(&run->report, (bench_cell[]){
        { "median_ns", NULL, median, 1 },
        { "best_ns", NULL, ns[0], 1 },
        { "call", k->what, 0, 0 },
    }, 3);
    bench_target(run, k->target, k->limit, median);
}

static bool known_all(bench_run *run)
{
    stage s;
    bench_section(&run->report, "known", "Time of calls whose answer is known, mesh 2x2x2, ns per call");
    bool ok = stage_init(&s, &known_case);
    for (int i = 0; i < DT_COUNT(knowns) && ok; i++) known(run, &s, &knowns[i]);
    return stage_fini(&s) && ok;
}

bool bench_times(bench_run *run) { return cold_all(run) && known_all(run); }

/* ---- one thing only ---------------------------------------------------------------------------------------------- */

static int cold_only(const stage *s, int n) { return n ? plan_pairs(s, 1) : 0; }

static const struct only { const char *name; int (*fn)(const stage *, int); } onlys[] = {
    { "cold", cold_only },
    { "cached", lookup_one },
    { "parse", parse_one },
    { "replace", replace_one },
};

bool bench_only(const char *what)
{
    for (int i = 0; i < DT_COUNT(onlys); i++) {
        if (strcmp(what, onlys[i].name)) continue;
        stage s;
        bool ok = stage_init(&s, &known_case);
        if (ok) printf("%d\n", onlys[i].fn(&s, 10000));
        return stage_fini(&s) && ok;
    }
    return false;
}
