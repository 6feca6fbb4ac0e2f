/* SPDX-License-Identifier: Apache-2.0
 *
 * Benchmark of the redistribution planner: bytes against bounds and against other planners, time to plan, large meshes.
 *
 *   bench_redistribute [--json] [--small] [--only cold|cached|parse|replace] [bytes] [times] [large]
 *
 * Without names all three parts. Exit status 1 where something failed; a missed target is a line, not a failure. */
#include <string.h>

#include "suites.h"

static const struct part { const char *name; bool (*fn)(bench_run *); } parts[] = {
    { "bytes", bench_bytes },
    { "times", bench_times },
    { "large", bench_large },
};

/* ---- pairs of placements ----------------------------------------------------------------------------------------- */

int bench_state_count(int mesh_dims, bool partial)
{
    int n = 1;
    for (int m = 0; m < mesh_dims; m++) n *= partial ? 5 : 4;
    return n;
}

int bench_place(int state, int mesh_dim, bool partial)
{
    for (int m = 0; m < mesh_dim; m++) state /= partial ? 5 : 4;
    int digit = state % (partial ? 5 : 4);
    return digit == 4 ? -2 : digit - 1;
}

static const char mesh_names[] = "xyzw";

const char *bench_mesh_text(char *text, const int *sizes, int mesh_dims)
{
    int at = 0;
    for (int m = 0; m < mesh_dims; m++)
        at += snprintf(text + at, (size_t)(BENCH_TEXT - at), "%s%c=%d", m ? "," : "", mesh_names[m], sizes[m]);
    return text;
}

const char *bench_spec_text(char *text, const char *tensor, int state, int mesh_dims, bool partial)
{
    int at = snprintf(text, BENCH_TEXT, "%s", tensor);
    const char *before = "@";
    for (int m = 0; m < mesh_dims; m++) {
        int place = bench_place(state, m, partial);
        if (place == -1) continue;
        at += snprintf(text + at, (size_t)(BENCH_TEXT - at), "%s%c:", before, mesh_names[m]);
        if (place == -2) at += snprintf(text + at, (size_t)(BENCH_TEXT - at), "P");
        else at += snprintf(text + at, (size_t)(BENCH_TEXT - at), "S(%d)", place);
        before = ",";
    }
    return text;
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

void bench_target(bench_run *run, const char *what, double limit, double measured)
{
    for (int i = 0; i < run->target_count; i++) {
        if (strcmp(run->targets[i].what, what)) continue;
        if (measured > run->targets[i].measured) run->targets[i].measured = measured;
        return;
    }
    if (run->target_count < DT_COUNT(run->targets))
        run->targets[run->target_count++] = (struct bench_target){ what, limit, measured };
}

static void show_targets(bench_run *run)
{
    bench_section(&run->report, "targets", "Targets");
    for (int i = 0; i < run->target_count; i++) {
        const struct bench_target *t = &run->targets[i];
        bench_row(&run->report, (bench_cell[]){
            { "limit", NULL, t->limit, 2 },
            { "measured", NULL, t->measured, t->measured < 10 ? 3 : 1 },
            { "met", t->measured <= t->limit + 1e-9 ? "yes" : "NO", 0, 0 },
            { "what", t->what, 0, 0 },
        }, 4);
    }
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_redistribute [--json] [--small] [bytes] [times] [large]\n"
            "       bench_redistribute --only cold|cached|parse|replace\n");
    return 2;
}

static int run_parts(bench_run *run, unsigned chosen, bool json)
{
    bench_begin(&run->report, json);
    bool ok = true;
    for (int i = 0; i < DT_COUNT(parts) && ok; i++)
        if (chosen >> i & 1) ok = parts[i].fn(run);
    if (ok) show_targets(run);
    bench_end(&run->report);
    return ok ? 0 : 1;
}

static unsigned find_part(const char *name)
{
    for (int i = 0; i < DT_COUNT(parts); i++)
        if (strcmp(name, parts[i].name) == 0) return 1u << i;
    return 0;
}

int main(int argc, char **argv)
{
    static bench_run run;
    unsigned chosen = 0;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        unsigned part = find_part(argv[i]);
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) return bench_only(argv[i + 1]) ? 0 : usage();
        if (strcmp(argv[i], "--json") == 0) json = true;
        else if (strcmp(argv[i], "--small") == 0) run.small = true;
        else if (part) chosen |= part;
        else return usage();
    }
    return run_parts(&run, chosen ? chosen : ~0u, json);
}
