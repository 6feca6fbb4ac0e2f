/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes over bounds: all pairs of placements on a mesh, for libdtensor and the models of other planners. The bounds
 * are the plan's. A pair whose bound is 0 has no ratio: it is counted, and so are those for which bytes
 * move all the same. */
#include <string.h>

#include "planners.h"
#include "suites.h"

enum { PLANNERS = PEER_COUNT + 1 };        /* libdtensor first                                                     */

typedef struct grid {                      /* a mesh, a shape, a kind of pairs                                     */
    const struct form *form;
    peer_problem problem;
    bool partial;                          /* pairs with P in one or both; else pairs without                      */
} grid;

static const struct mesh_size { const char *name; int dims, size[3]; } meshes[] = {
    { "2x2", 2, { 2, 2 } }, { "4x2", 2, { 4, 2 } }, { "3x2", 2, { 3, 2 } }, { "2x2x2", 3, { 2, 2, 2 } },
};

static const struct form { const char *name, *tensor; int64_t shape[3]; } forms[] = {
    { "even", "f32[48,48,48]", { 48, 48, 48 } },
    { "uneven", "f32[13,7,11]", { 13, 7, 11 } },
};

typedef struct tally {
    int pairs, free, moved;                /* with a bound; without; those of them for which bytes move            */
    double busiest, busiest_worst, mean, mean_worst, sent, sent_worst, padded;
    char worst[BENCH_TEXT];
} tally;

typedef struct pair { int source, target; dt_plan_cost bound; } pair;

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

static bool has_partial(const grid *g, int state)
{
    for (int m = 0; m < g->problem.mesh_dims; m++)
        if (bench_place(state, m, g->partial) == PEER_P) return true;
    return false;
}

static void put_state(char *text, const grid *g, int state)
{
    for (int m = 0; m < g->problem.mesh_dims; m++) {
        int place = bench_place(state, m, g->partial);
        char name[8];
        snprintf(name, sizeof name, place == PEER_R ? "R" : place == PEER_P ? "P" : "S%d", place);
        strcat(strcat(text, m ? "," : ""), name);
    }
}

static void put_pair(char *text, const grid *g, const pair *p)
{
    put_state(text, g, p->source);
    put_state(strcat(text, " -> "), g, p->target);
}

static void add(tally *t, const grid *g, const pair *p, const peer_cost *cost)
{
    if (p->bound.lower_bound == 0 || p->bound.total_bound == 0) {
        t->free++;
        t->moved += cost->total > 0;
        return;
    }
    double bound = (double)p->bound.lower_bound, busiest = (double)cost->received / bound;
    double mean = (double)cost->total / (double)p->bound.total_bound, sent = (double)cost->sent / bound;
    t->pairs++;
    t->busiest += busiest;
    t->mean += mean;
    t->sent += sent;
    t->padded += (double)cost->padded / bound;
    if (mean > t->mean_worst) t->mean_worst = mean;
    if (sent > t->sent_worst) t->sent_worst = sent;
    if (busiest <= t->busiest_worst + 1e-9) return;
    t->busiest_worst = busiest;
    t->worst[0] = 0;
    put_pair(t->worst, g, p);
}

static peer_state state_of(const grid *g, int state)
{
    int8_t places[PEER_MESH_DIMS];
    for (int m = 0; m < g->problem.mesh_dims; m++) places[m] = (int8_t)bench_place(state, m, g->partial);
    return peer_state_of(&g->problem, places);
}

/* Chains of uneven shapes are run on numbers, on a tensor small enough. */
static bool runs(const grid *g, const peer_step *steps, int n, const pair *p)
{
    peer_problem little = g->problem;
    if (g->form == &forms[0]) return true;
    memcpy(little.shape, (int64_t[]){ 5, 3, 4 }, 3 * sizeof little.shape[0]);
    const char *wrong = peer_run(&little, steps, n, state_of(g, p->source), state_of(g, p->target));
    char text[BENCH_TEXT] = "";
    put_pair(text, g, p);
    if (wrong) fprintf(stderr, "%s: %s\n", text, wrong);
    return !wrong;
}

static bool add_peers(tally *tallies, const grid *g, peers *models, const pair *p)
{
    peer_step steps[PEER_STEPS];
    for (int kind = 0; kind < PEER_COUNT; kind++) {
        int n = peers_route(models, (peer_kind)kind, state_of(g, p->source), state_of(g, p->target), steps);
        peer_cost cost = peers_price(models, steps, n);
        if (!runs(g, steps, n, p)) return fprintf(stderr, "the model %s is wrong\n", peer_name((peer_kind)kind)), false;
        add(&tallies[1 + kind], g, p, &cost);
    }
    return true;
}

static void add_own(tally *t, const grid *g, const pair *p)
{
    const dt_plan_cost *c = &p->bound;
    add(t, g, p, &(peer_cost){ 1, c->bytes, c->sent, c->total, c->bytes, c->total });
}

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

static bool add_pairs(tally *tallies, const grid *g, dt_mesh *mesh, peers *models)
{
    const dt_spec *specs[BENCH_MAX_STATES];
    char text[BENCH_TEXT];
    int n = bench_state_count(g->problem.mesh_dims, g->partial);
    for (int i = 0; i < n; i++)
        specs[i] = dt_spec_parse(mesh, bench_spec_text(text, g->form->tensor, i, g->problem.mesh_dims, g->partial));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            if (i == j || (g->partial && !has_partial(g, i) && !has_partial(g, j))) continue;
            const dt_plan *plan = dt_plan_create(specs[i], specs[j], DT_PLAN_BYTES);
            if (!plan) return fprintf(stderr, "%s\n", dt_context_error(dt_mesh_context(mesh))), false;
            pair p = { i, j, dt_plan_price(plan) };
            add_own(&tallies[0], g, &p);
            if (!add_peers(tallies, g, models, &p)) return false;
        }
    return true;
}

static void show(bench_run *run, const struct mesh_size *mesh, const grid *g, int planner, const tally *t)
{
    double n = t->pairs ? t->pairs : 1;
    bench_row(&run->report, (bench_cell[]){
        { "mesh", mesh->name, 0, 0 },
        { "shape", g->form->name, 0, 0 },
        { "places", g->partial ? "with P" : "S, R", 0, 0 },
        { "planner", planner ? peer_name((peer_kind)(planner - 1)) : "libdtensor", 0, 0 },
        { "pairs", NULL, t->pairs, 0 },
        { "busiest", NULL, t->busiest / n, 3 },
        { "worst", NULL, t->busiest_worst, 3 },
        { "mean", NULL, t->mean / n, 3 },
        { "worst_mean", NULL, t->mean_worst, 3 },
        { "sent", NULL, t->sent / n, 3 },
        { "worst_sent", NULL, t->sent_worst, 3 },
        { "padded", NULL, t->padded / n, 3 },
        { "free", NULL, t->free, 0 },
        { "moved", NULL, t->moved, 0 },
        { "worst_pair", t->worst, 0, 0 },
    }, 15);
}

static void hold_to_targets(bench_run *run, const grid *g, const tally *t)
{
    if ((g->partial && g->form != &forms[0]) || !t->pairs) return;
    if (g->partial) {
        bench_target(run, "with P, even: received, mean over ranks / bound, mean over pairs", 1.02, t->mean / t->pairs);
        bench_target(run, "with P, even: received, busiest / bound, mean over pairs", 1.05, t->busiest / t->pairs);
    } else {
        bench_target(run, "S, R: received, busiest / bound, worst pair", 1, t->busiest_worst);
        bench_target(run, "S, R: received, mean over ranks / bound, worst pair", 1, t->mean_worst);
    }
}

static bool measure(bench_run *run, const struct mesh_size *mesh, const grid *g)
{
    tally tallies[PLANNERS] = { 0 };
    char text[BENCH_TEXT];
    dt_context *ctx = dt_context_dry(peer_ranks(&g->problem));
    peers *models = peers_create(&g->problem);
    dt_mesh *made = ctx ? dt_mesh_create(ctx, bench_mesh_text(text, mesh->size, mesh->dims)) : NULL;
    bool ok = models && made && add_pairs(tallies, g, made, models);
    for (int i = 0; ok && i < PLANNERS; i++) show(run, mesh, g, i, &tallies[i]);
    if (ok) hold_to_targets(run, g, &tallies[0]);
    peers_destroy(models);
    dt_context_destroy(&ctx);
    return ok;
}

static bool measure_mesh(bench_run *run, const struct mesh_size *mesh)
{
    for (int i = 0; i < 2 * DT_COUNT(forms); i++) {
        grid g = { .form = &forms[i % 2], .partial = i >= DT_COUNT(forms) };
        g.problem = (peer_problem){ .mesh_dims = mesh->dims, .dims = 3, .element = 4 };
        memcpy(g.problem.size, mesh->size, sizeof mesh->size);
        memcpy(g.problem.shape, g.form->shape, sizeof g.form->shape);
        if (!measure(run, mesh, &g)) return false;
    }
    return true;
}

bool bench_bytes(bench_run *run)
{
    bench_section(&run->report, "bytes",
        "Bytes received over the bound, all pairs of placements. busiest: by the busiest rank; mean: over ranks;\n"
        "sent: by the busiest sender over the bound on receiving; padded: busiest, pieces padded to the largest;\n"
        "each the mean over pairs, beside the worst pair. free: pairs whose bound is 0, left out of the means; moved:\n"
        "those of them for which bytes move all the same.");
    const char *wrong = peer_check_simple();
    if (wrong) return fprintf(stderr, "%s\n", wrong), false;
    for (int i = 0; i < DT_COUNT(meshes); i++)
        if ((!run->small || meshes[i].dims == 2) && !measure_mesh(run, &meshes[i])) return false;
    return true;
}
