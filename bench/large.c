/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh of 16,384 ranks in a dry context: making it, its views, specs and plans, on a machine of one level and on one
 * of hosts with 8 ranks each. Each time is the median of some contexts. */
#include <stdlib.h>
#include <string.h>

#include "suites.h"

enum { MAX_ROUNDS = 9, MAX_LINES = 64 };

static const struct machine { const char *name, *option; } machines[] = {
    { "flat", NULL },
    { "node=2048,gpu=8", "--dt-topology=node=2048,gpu=8" },
};

static const struct change { const char *source, *target; } changes[] = {
    { "tp:S(0)", "tp:S(1)" },
    { "tp:S(0),dp:S(0)", "tp:S(0)" },
    { "tp:S(0),dp:S(0)", "dp:S(1),tp:S(0)" },
    { "dp:S(0),pp:S(1),tp:S(0)", "tp:S(0),pp:S(0),dp:S(1)" },
    { "dp:P", "" },
    { "dp:P", "dp:S(0)" },
    { "dp:P,tp:S(0)", "dp:S(1),tp:S(0)" },
    { "tp:P", "dp:P,tp:S(0)" },
    { "dp:P,tp:P", "dp:S(0)" },
};

typedef struct clockwork {         /* lines in the order of their first measurement                                */
    int line, line_count, round;
    double begin;
    double ms[MAX_LINES][MAX_ROUNDS];
    char what[MAX_LINES][BENCH_TEXT + 8];
} clockwork;

static void start(clockwork *c) { c->begin = bench_now_ns(); }

static void stop(clockwork *c, const char *what, const char *more)
{
    double ms = (bench_now_ns() - c->begin) / 1e6;
    snprintf(c->what[c->line], sizeof c->what[0], *more ? "%-6s%.*s" : "%s%.*s", what, BENCH_TEXT - 1, more);
    c->ms[c->line++][c->round] = ms;
    c->line_count = c->line;
}

static void plan(clockwork *c, dt_mesh *mesh, const struct change *change)
{
    char source[BENCH_TEXT], target[BENCH_TEXT], name[BENCH_TEXT];
    snprintf(source, sizeof source, "bf16[16384,16384]@%s", change->source);
    snprintf(target, sizeof target, "bf16[16384,16384]@%s", change->target);
    snprintf(name, sizeof name, "%s -> %s", change->source, *change->target ? change->target : "R");
    const dt_spec *from = dt_spec_parse(mesh, source), *to = dt_spec_parse(mesh, target);
    start(c);
    const dt_plan *made = dt_plan_create(from, to, DT_PLAN_BYTES);
    stop(c, "plan", name);
    start(c);
    dt_plan_price(made);
    stop(c, "price", name);
    start(c);
    dt_plan_text(made);
    stop(c, "text", name);
}

static void views(clockwork *c, dt_mesh *mesh, bool small)
{
    start(c);
    dt_mesh_slice(mesh, "dp,tp");
    stop(c, "slice", "");
    start(c);
    dt_mesh_flatten(mesh, "dp,pp", "all");
    stop(c, "flatten", "");
    start(c);
    dt_mesh_split(mesh, "dp", small ? "a=2,b=2" : "a=16,b=8");
    stop(c, "split", "");
    start(c);
    dt_spec_parse(mesh, "bf16[16384,16384]@tp:S(0),dp:S(0)");
    stop(c, "spec", "");
}

static bool one_round(clockwork *c, const struct machine *machine, bool small)
{
    char program[] = "bench", option[BENCH_TEXT] = "";
    char *arguments[] = { program, option, NULL }, **argv = arguments;
    int argc = machine->option ? 2 : 1;
    if (machine->option) strcpy(option, machine->option);
    c->line = 0;
    start(c);
    dt_context *ctx = dt_context_dry(small ? 64 : 16384);
    stop(c, "context", "");
    if (!ctx || dt_options_read(ctx, &argc, &argv) != DT_OK) return dt_context_destroy(&ctx), false;
    start(c);
    dt_mesh *mesh = dt_mesh_create(ctx, small ? "dp=4,pp=2,tp=8" : "dp=128,pp=16,tp=8");
    stop(c, "mesh", "");
    views(c, mesh, small);
    for (int i = 0; i < DT_COUNT(changes); i++) plan(c, mesh, &changes[i]);
    bool ok = dt_context_status(ctx) == DT_OK;
    if (!ok) fprintf(stderr, "%s\n", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    return ok;
}

/* "In milliseconds": held here to 10. */
static const char *target_of(const char *what)
{
    if (strncmp(what, "plan ", 5) == 0) return "16,384 ranks: slowest plan, either machine, ms";
    if (strncmp(what, "price ", 6) == 0) return "16,384 ranks: slowest price, either machine, ms";
    if (strncmp(what, "text ", 5) == 0) return "16,384 ranks: slowest text of a plan, either machine, ms";
    return "16,384 ranks: slowest of context, mesh, views, spec, ms";
}

static void show(bench_run *run, clockwork *clocks, int rounds)
{
    for (int i = 0; i < clocks[0].line_count; i++) {
        double flat = bench_median(clocks[0].ms[i], rounds), nodes = bench_median(clocks[1].ms[i], rounds);
        bench_row(&run->report, (bench_cell[]){
            { machines[0].name, NULL, flat, 3 },
            { machines[1].name, NULL, nodes, 3 },
            { "what", clocks[0].what[i], 0, 0 },
        }, 3);
        if (!run->small) bench_target(run, target_of(clocks[0].what[i]), 10, flat > nodes ? flat : nodes);
    }
}

bool bench_large(bench_run *run)
{
    clockwork *clocks = calloc(2, sizeof *clocks);
    int rounds = run->small ? 1 : 5;
    bool ok = clocks != NULL;
    bench_section(&run->report, "large",
                  run->small ? "64 ranks, mesh dp=4,pp=2,tp=8, bf16[16384,16384], ms, by topology"
                             : "16,384 ranks, mesh dp=128,pp=16,tp=8, bf16[16384,16384], ms, by topology");
    for (int m = 0; m < 2 && ok; m++)
        for (int r = 0; r < rounds && ok; r++) {
            clocks[m].round = r;
            ok = one_round(&clocks[m], &machines[m], run->small);
        }
    if (ok) show(run, clocks, rounds);
    free(clocks);
    return ok;
}
