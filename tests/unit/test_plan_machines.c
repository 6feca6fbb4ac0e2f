/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans on machines of every kind: two meshes, topologies, balance, many ranks. What is moved is judged by the oracle
 * in every row of every table but those of many ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/places.h"
#include "plan/trial.h"
#include "errors.h"
#include "suite.h"

/* ---- two meshes -------------------------------------------------------------------------------------------------- */

/* "a=2,b=3", or a view of it: "a=2,b=3 select a=1", "a=2,b=3 flatten a,b x", "x=6 split x a=2,b=3". */
static dt_mesh *mesh_of(dt_context *ctx, const char *text)
{
    char base[64] = "", view[16] = "", a[64] = "", b[64] = "";
    sscanf(text, "%63s %15s %63s %63s", base, view, a, b);
    dt_mesh *mesh = dt_mesh_create(ctx, base);
    if (strcmp(view, "select") == 0) return dt_mesh_select(mesh, a);
    if (strcmp(view, "flatten") == 0) return dt_mesh_flatten(mesh, a, b);
    if (strcmp(view, "split") == 0) return dt_mesh_split(mesh, a, b);
    return mesh;
}

/* over: bytes in all beyond the bound, as known: sums are shared over all ranks of the source, also those that are no
 * target holders; and parts do not stay where they are when the target's P has no common refinement. */
typedef struct meshes_row { const char *from, *source, *to, *target; int64_t over; } meshes_row;

static const meshes_row same_ranks[] = { /* the same elements on the same ranks: nothing moves */
    { "a=2,b=3", "f32[12]@a:S(0),b:S(0)", "c=3,d=2", "f32[12]@c:S(0),d:S(0)", 0 },
    { "a=2,b=3", "f32[13]@a:S(0),b:S(0)", "x=6", "f32[13]@x:S(0)", 0 },
    { "a=2,b=3", "f32[13]@a:S(0),b:S(0)", "a=2,b=3 flatten a,b x", "f32[13]@x:S(0)", 0 },
    { "x=6", "f32[7,2]@x:S(0)", "x=6 split x a=3,b=2", "f32[7,2]@a:S(0),b:S(0)", 0 },
    { "x=8 split x kv=4,rep=2", "f32[9]@kv:S(0)", "a=4,b=2", "f32[9]@a:S(0)", 0 },
    { "a=2,b=3", "f32[12]", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=4", "f32[12]@a:P", "c=2,d=2,e=2", "f32[12]@c:P", 0 },
};

static void test_views(void)
{
    for (int i = 0; i < DT_COUNT(same_ranks); i++) {
        const meshes_row *row = &same_ranks[i];
        dt_context *ctx = context_of(places_ranks(row->from));
        trial t;
        try_plan(&t, mesh_of(ctx, row->from), row->source, mesh_of(ctx, row->to), row->target);
        expect(t.count.total == 0 && dt_plan_price(t.plan).bytes == 0, "%s on %s is %s on %s: %lld bytes", row->source,
               row->from, row->target, row->to, (long long)t.count.total);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

static const meshes_row other_meshes[] = {
    { "a=2,b=3", "f32[12]@a:S(0)", "c=3,d=2", "f32[12]@c:S(0)", 0 },
    { "a=2,b=3", "f32[13,5]@b:S(0)", "c=3,d=2", "f32[13,5]@d:S(1)", 0 },
    { "a=2,b=3", "f32[13,5]@a:S(0),b:S(1)", "c=3,d=2", "f32[13,5]@c:S(0),d:S(1)", 0 },
    { "a=2,b=3", "f32[12]@a:S(0),b:S(0)", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=3", "f32[12]", "c=3,d=2", "f32[12]@d:S(0)", 0 },
    { "a=2,b=3", "f32[12]@a:P", "c=3,d=2", "f32[12]", 0 },
    { "a=2,b=3", "f32[12]@b:P", "c=3,d=2", "f32[12]@c:S(0)", 0 },
    { "a=2,b=3", "f32[12]@a:S(0)", "c=3,d=2", "f32[12]@c:P", 48 },
    { "a=2,b=4", "f32[16]@a:S(0)", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:S(0)", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:P", "x=8", "f32[16]@x:S(0)", 0 },
    { "a=2,b=4", "f32[16]@b:S(0)", "x=8 split x c=4,d=2", "f32[16]@c:S(0)", 0 },
    /* other ranks */
    { "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[8,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=1", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(1)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[8,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[8,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[8,6]", "pp=2,tp=4 select pp=1", "f32[8,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:P", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:P", "pp=2,tp=4 select pp=1", "f32[9,6]", 0 },
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:P", 0 },
    { "tp=4,pp=2 select pp=0", "f32[9,6]@tp:S(1)", "tp=4,pp=2 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=3,tp=2 select pp=0", "f32[9,6]@tp:S(1)", "pp=3,tp=2 select pp=2", "f32[9,6]@tp:S(0)", 0 },
    /* overlapping */
    { "pp=2,tp=4 select pp=0", "f32[9,6]@tp:S(0)", "pp=2,tp=4", "f32[9,6]@pp:S(0),tp:S(0)", 0 },
    { "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", "pp=2,tp=4", "f32[9,6]", 0 },
    { "pp=2,tp=4 select pp=1", "f32[9,6]@tp:P", "pp=2,tp=4", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[9,6]@pp:S(0),tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[9,6]@pp:P,tp:S(0)", "pp=2,tp=4 select pp=1", "f32[9,6]@tp:S(0)", 108 },
    { "pp=2,tp=4 select tp=1", "f32[8]@pp:S(0)", "pp=2,tp=4 select pp=1", "f32[8]@tp:S(0)", 0 },
    { "pp=2,tp=4 select tp=1", "f32[8]", "pp=2,tp=4 select pp=1", "f32[8]", 0 },
    { "pp=2,tp=4 select tp=1", "f32[8]@pp:P", "pp=2,tp=4 select pp=1", "f32[8]@tp:S(0)", 8 },
    /* one rank */
    { "pp=2,tp=4 select pp=0,tp=1", "f32[64]", "pp=2,tp=4 select pp=1", "f32[64]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4", "f32[13]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4", "f32[13]@tp:S(0)", 0 },
    { "pp=2,tp=4", "f32[13]@pp:S(0),tp:S(0)", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 0 },
    { "pp=2,tp=4", "f32[13]@tp:P", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 44 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4 select pp=1,tp=3", "f32[13]", 0 },
    { "pp=2,tp=4 select pp=0,tp=1", "f32[13]", "pp=2,tp=4 select pp=0,tp=1", "f32[13]", 0 },
};

static void test_meshes(void)
{
    for (int i = 0; i < DT_COUNT(other_meshes); i++) {
        const meshes_row *row = &other_meshes[i];
        dt_context *ctx = context_of(places_ranks(row->from));
        trial t;
        try_plan(&t, mesh_of(ctx, row->from), row->source, mesh_of(ctx, row->to), row->target);
        expect(t.count.total == t.bound.total * 4 + row->over, "%s on %s -> %s on %s: %lld bytes, bound %lld + %lld",
               row->source, row->from, row->target, row->to, (long long)t.count.total, (long long)t.bound.total * 4,
               (long long)row->over);
        for (int r = 0; r < t.source.world && t.bound.busiest >= 0; r++)
            expect(t.count.received[r] == t.bound.rank[r] * 4, "%s on %s -> %s on %s: rank %d receives what it lacks",
                   row->source, row->from, row->target, row->to, r);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* Between part of the ranks and all of them, in every placement: shapes of fewer elements than ranks, too. */
static void check_part(const char *topology, const char *part, const char *dim, const char *shape)
{
    static const char *const places[] = { "R", "S(0)", "P" };
    dt_context *ctx = context_with(6, topology, NULL);
    dt_mesh *all = mesh_of(ctx, "b=3,c=2"), *some = mesh_of(ctx, part);
    bool right = true;
    for (int i = 0; i < 54 && right; i++) {
        char of_all[64], of_some[64];
        trial t;
        snprintf(of_all, sizeof of_all, "f32[%s]@b:%s,c:%s", shape, places[i / 2 % 3], places[i / 6 % 3]);
        snprintf(of_some, sizeof of_some, "f32[%s]@%s:%s", shape, dim, places[i / 18]);
        right = i % 2 ? try_plan(&t, some, of_some, all, of_all) : try_plan(&t, all, of_all, some, of_some);
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

static void test_part_of_ranks(void)
{
    static const char *const topologies[] = { NULL, "node=2,gpu=3" }, *const shapes[] = { "1", "2", "7" };
    for (int t = 0; t < DT_COUNT(topologies); t++)
        for (int s = 0; s < DT_COUNT(shapes); s++) {
            check_part(topologies[t], "b=3,c=2 select c=1", "b", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select c=0", "b", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select b=1", "c", shapes[s]);
            check_part(topologies[t], "b=3,c=2 select b=2", "c", shapes[s]);
        }
}

/* One holder and many takers: each element leaves the holder once, not once per taker. */
static void test_relay(void)
{
    static const char *const targets[] = { "a=2,b=8 select a=1", "a=2,b=8" };
    for (int i = 0; i < DT_COUNT(targets); i++) {
        dt_context *ctx = context_of(16);
        trial t;
        try_plan(&t, mesh_of(ctx, "a=2,b=8 select a=0,b=0"), "f32[64]", mesh_of(ctx, targets[i]), "f32[64]");
        int64_t sent = dt_plan_price(t.plan).sent, all = dt_plan_price(t.plan).total;
        expect(sent <= 2 * 256, "%s: the busiest sends %lld of %lld", targets[i], (long long)sent, (long long)all);
        expect(dt_plan_step_count(t.plan) == 2, "%s: %d steps", targets[i], dt_plan_step_count(t.plan));
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* Many holders of the same answer in turn. */
static void test_many_to_one(void)
{
    dt_context *ctx = context_of(16);
    trial t;
    try_plan(&t, mesh_of(ctx, "a=2,b=8 select a=0"), "f32[64]", mesh_of(ctx, "a=2,b=8 select a=1,b=0"), "f32[64]");
    expect(dt_plan_price(t.plan).sent == 32, "each of 8 sends an eighth: %lld", (long long)dt_plan_price(t.plan).sent);
    end_trial(&t);
    dt_context_destroy(&ctx);
}

/* ---- topologies -------------------------------------------------------------------------------------------------- */

static void specs_text(int i, char *text, size_t room, const char *mesh, const char *shape)
{
    static const char *const places[] = { "R", "S(0)", "S(1)", "P" };
    if (strchr(mesh, ',')) snprintf(text, room, "f32[%s]@x:%s,y:%s", shape, places[i / 4], places[i % 4]);
    else snprintf(text, room, "f32[%s]@x:%s", shape, places[i]);
}

/* All pairs of places on a mesh that stands on a topology: links are counted right, nothing gets lost. */
static void check_topology(const char *topology, const char *mesh_text, const char *shape)
{
    dt_context *ctx = context_with(places_ranks(mesh_text), topology, NULL);
    dt_mesh *mesh = dt_mesh_create(ctx, mesh_text);
    int n = strchr(mesh_text, ',') ? 16 : 4;
    bool right = true;
    for (int i = 0; i < n * n && right; i++) {
        char source[64], target[64];
        trial t;
        specs_text(i / n, source, sizeof source, mesh_text, shape);
        specs_text(i % n, target, sizeof target, mesh_text, shape);
        right = expect(try_plan(&t, mesh, source, mesh, target), "on %s", topology);
        for (int r = 0; r < t.source.world; r++) {
            int64_t over = 0;
            for (int l = 0; l < t.count.links; l++) over += t.count.link_received[r][l];
            expect(over == dt_plan_received(t.plan, r), "classes sum up");
        }
        end_trial(&t);
    }
    dt_context_destroy(&ctx);
}

static void test_topologies(void)
{
    static const char *const topologies[] = { "node=2,gpu=4", "node=4,gpu=2", "node=3,gpu=3", "pod=2,node=2,gpu=2",
                                              "node=2,gpu=5", "node=8,gpu=1", "node=1,gpu=8", "node=2,gpu=2,core=2" };
    static const char *const meshes[] = { "x=8", "x=2,y=4", "x=4,y=2" };
    for (int i = 0; i < DT_COUNT(topologies) * DT_COUNT(meshes); i++) {
        check_topology(topologies[i / DT_COUNT(meshes)], meshes[i % DT_COUNT(meshes)], "8,4");
        check_topology(topologies[i / DT_COUNT(meshes)], meshes[i % DT_COUNT(meshes)], "3,5");
    }
    check_topology("node=3,gpu=2", "x=6", "13,2");
    check_topology("node=3,gpu=2", "x=2,y=3", "6,6");
    check_topology("node=2,gpu=3", "x=2,y=3", "5,7");
}

/* Bytes that the ranks [first, last) get over the outermost links. */
static int64_t into(const trial *t, int first, int last)
{
    int64_t bytes = 0;
    for (int r = first; r < last; r++) bytes += t->count.link_received[r][0];
    return bytes;
}

typedef struct crossing_row { const char *topology, *mesh, *source, *target; int64_t into, busiest; } crossing_row;

static const crossing_row crossings[] = { /* into each node of 4 (or 2) ranks, and into its busiest rank, in bytes */
    { "node=2,gpu=4", "x=8", "f32[16]@x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:S(0),y:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:S(0),x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:S(0)", "f32[16]", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:S(0)", "f32[16]", 0, 0 },
    { "node=4,gpu=2", "x=8", "f32[16]@x:S(0)", "f32[16]", 12 * 4, 6 * 4 },
    { "node=2,gpu=4", "x=8", "f32[16]@x:P", "f32[16]", 16 * 4, 4 * 4 },
    { "node=2,gpu=4", "x=8", "f32[16]@x:P", "f32[16]@x:S(0)", 8 * 4, 2 * 4 },
    { "node=4,gpu=2", "x=8", "f32[16]@x:P", "f32[16]", 24 * 4, 12 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@x:P,y:P", "f32[16]@x:S(0),y:S(0)", 8 * 4, 2 * 4 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]@y:P", "f32[16]", 0, 0 },
    { "node=2,gpu=4", "x=2,y=4", "f32[16]", "f32[16]@x:S(0),y:S(0)", 0, 0 },
};

static void test_crossing(void)
{
    for (int i = 0; i < DT_COUNT(crossings); i++) {
        const crossing_row *row = &crossings[i];
        dt_context *ctx = context_with(8, row->topology, NULL);
        dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
        trial t;
        try_plan(&t, mesh, row->source, mesh, row->target);
        int node = strcmp(row->topology, "node=2,gpu=4") ? 2 : 4;
        for (int first = 0; first < 8; first += node)
            expect(into(&t, first, first + node) == row->into,
                   "%s on %s, %s -> %s: %lld bytes into a node, expected %lld", row->mesh, row->topology, row->source,
                   row->target, (long long)into(&t, first, first + node), (long long)row->into);
        expect(dt_plan_price(t.plan).link_bytes[0] == row->busiest, "%s on %s, %s -> %s: %lld bytes into a rank",
               row->mesh, row->topology, row->source, row->target, (long long)dt_plan_price(t.plan).link_bytes[0]);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* ---- balance ----------------------------------------------------------------------------------------------------- */

/* Ranks that hold the same send the same, to an element. */
static void check_balance(const trial *t)
{
    for (int a = 0; a < t->source.world; a++) {
        int64_t all = 0, copies = 0;
        for (int b = 0; b < t->source.world; b++) {
            if (memcmp(t->source.holds + a * t->source.elements, t->source.holds + b * t->source.elements,
                       (size_t)t->source.elements)) continue;
            all += t->count.sent[b];
            copies++;
        }
        expect((double)t->count.sent[a] < (double)all / (double)copies + 4,
               "%s -> %s: rank %d sends %lld of %lld by %lld", t->source.text, t->target.text, a,
               (long long)t->count.sent[a], (long long)all, (long long)copies);
    }
}

static void test_balance(void)
{
    static const char *const places[] = { "R", "S(0)", "S(1)" };
    static const char *const shapes[] = { "12,12", "13,7", "2,3" };
    static const int sizes[][2] = { { 2, 2 }, { 2, 3 }, { 4, 2 }, { 2, 4 } };
    for (int i = 0; i < DT_COUNT(sizes) * DT_COUNT(shapes) * 81; i++) {
        const int *size = sizes[i / 81 / DT_COUNT(shapes)];
        const char *shape = shapes[i / 81 % DT_COUNT(shapes)];
        char mesh_text[32], source[64], target[64];
        trial t;
        snprintf(mesh_text, sizeof mesh_text, "x=%d,y=%d", size[0], size[1]);
        snprintf(source, sizeof source, "f32[%s]@x:%s,y:%s", shape, places[i / 27 % 3], places[i / 9 % 3]);
        snprintf(target, sizeof target, "f32[%s]@x:%s,y:%s", shape, places[i / 3 % 3], places[i % 3]);
        dt_context *ctx = context_of(size[0] * size[1]);
        dt_mesh *mesh = dt_mesh_create(ctx, mesh_text);
        if (try_plan(&t, mesh, source, mesh, target)) check_balance(&t);
        end_trial(&t);
        dt_context_destroy(&ctx);
    }
}

/* ---- many ranks -------------------------------------------------------------------------------------------------- */

static const char *const wide[][2] = {
    { "f32[65536,512]@dp:S(0),tp:S(1)", "f32[65536,512]@dp:S(0)" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]@tp:S(0),dp:S(0)" },
    { "f32[65536,512]@dp:S(0),tp:S(0)", "f32[65536,512]@dp:S(1)" },
    { "f32[65536,512]@dp:P,tp:S(1)", "f32[65536,512]@tp:S(1)" },
    { "f32[65536,512]@dp:P,tp:P", "f32[65536,512]" },
    { "f32[65536,512]@dp:P,tp:P", "f32[65536,512]@dp:S(0),tp:S(0)" },
};

/* What is counted by looking at few ranks holds for those in between. */
static void check_wide(dt_mesh *mesh, const char *source, const char *target)
{
    const dt_plan *plan = plan_of(mesh, source, target);
    dt_plan_cost cost = dt_plan_price(plan);
    expect(cost.bytes >= cost.lower_bound && cost.total >= cost.total_bound,
           "%s: %s -> %s: bytes %lld, bound %lld, total %lld, bound %lld", dt_mesh_text(mesh), source, target,
           (long long)cost.bytes, (long long)cost.lower_bound, (long long)cost.total, (long long)cost.total_bound);
    int64_t most = 0, sent = 0;
    for (int r = 0; r < 16384; r += 127) {
        int64_t received = dt_plan_received(plan, r);
        if (received > most) most = received;
        if (dt_plan_sent(plan, r) > sent) sent = dt_plan_sent(plan, r);
    }
    expect(most <= cost.bytes && most * 16384 >= cost.total, "%s: %s -> %s: received", dt_mesh_text(mesh),
           source, target);
    expect(sent <= cost.sent, "%s: %s -> %s: sent", dt_mesh_text(mesh), source, target);
}

static void test_many_ranks(void)
{
    static const char *const meshes[] = { "dp=2048,tp=8", "dp=128,tp=128" };
    static const char *const machines[] = { NULL, "node=2048,gpu=8" };
    for (int i = 0; i < DT_COUNT(meshes) * DT_COUNT(machines); i++) {
        dt_context *ctx = context_with(16384, machines[i % 2], NULL);
        dt_mesh *mesh = dt_mesh_create(ctx, meshes[i / 2]);
        for (int k = 0; k < DT_COUNT(wide); k++) check_wide(mesh, wide[k][0], wide[k][1]);
        expect_no_error(ctx, "many ranks");
        dt_context_destroy(&ctx);
    }
}

/* What no later sum needs is not summed: by link class no more in all than at once, and less over the slow links. */
static void test_many_ranks_by_link(void)
{
    dt_context *ctx = context_with(16384, "node=2048,gpu=8", NULL);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=128,tp=128");
    dt_plan_cost cost = dt_plan_price(plan_of(mesh, "f32[16384,16384]@tp:P", "f32[16384,16384]@dp:P,tp:S(0)"));
    int64_t share = (int64_t)16384 * 16384 * 4 / 16384;      /* what a rank is to hold                              */
    expect(cost.bytes == 127 * share && cost.bytes == cost.lower_bound, "bytes %lld", (long long)cost.bytes);
    expect(cost.link_bytes[0] == 15 * share, "between nodes %lld", (long long)cost.link_bytes[0]);
    dt_context_destroy(&ctx);
}

static void test_many_ranks_bytes(void)
{
    dt_context *ctx = context_of(16384);
    dt_mesh *mesh = dt_mesh_create(ctx, "f=128,t=128");
    const dt_plan *gather = plan_of(mesh, "f32[16384]@f:S(0),t:S(0)", "f32[16384]");
    expect(dt_plan_price(gather).bytes == 16383 * 4 && dt_plan_price(gather).sent == 16383 * 4, "all gather of 16,384");
    expect(dt_plan_step_at(gather, 0).messages == 16383, "from all others");
    const dt_plan *swap = plan_of(mesh, "f32[16384]@f:S(0),t:S(0)", "f32[16384]@t:S(0),f:S(0)");
    expect(dt_plan_price(swap).total == (16384 - 128) * 4 && dt_plan_price(swap).bytes == 4, "all but the diagonal");
    const dt_plan *reduce = plan_of(mesh, "f32[16384]@f:P,t:P", "f32[16384]");
    expect(dt_plan_price(reduce).bytes == 2 * 16383 * 4, "all reduce of 16,384: %lld",
           (long long)dt_plan_price(reduce).bytes);
    expect_no_error(ctx, "many ranks");
    dt_context_destroy(&ctx);
}

/* A cut into more pieces than there are indices leaves all or nothing, which is seen without going through the rest of
 * the tensor. */
static void test_long_and_thin(void)
{
    static const char *const thin[][2] = {
        { "f32[1099511627776,1]@x:P", "f32[1099511627776,1]@y:S(1)" },
        { "f32[1099511627776,1,1]@x:S(2)", "f32[1099511627776,1,1]@y:S(1)" },
        { "f32[1099511627776,(1 1)]@x:P,y:S(1.1)", "f32[1099511627776,(1 1)]@x:S(1.0)" },
    };
    dt_context *ctx = context_of(4);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2");
    for (int i = 0; i < DT_COUNT(thin); i++) {
        dt_plan_cost cost = dt_plan_price(plan_of(mesh, thin[i][0], thin[i][1]));
        expect(cost.total > 0 && cost.total == cost.total_bound, "%s to %s: %lld bytes, at least %lld", thin[i][0],
               thin[i][1], (long long)cost.total, (long long)cost.total_bound);
    }
    expect_no_error(ctx, "long and thin");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "views", test_views },
    { "meshes", test_meshes },
    { "part of the ranks", test_part_of_ranks },
    { "relay", test_relay },
    { "many_to_one", test_many_to_one },
    { "topologies", test_topologies },
    { "crossing", test_crossing },
    { "balance", test_balance },
    { "many_ranks", test_many_ranks },
    { "many_ranks_bytes", test_many_ranks_bytes },
    { "long_and_thin", test_long_and_thin },
    { "many_ranks_by_link", test_many_ranks_by_link },
};

const suite the_suite = { "plan_machines", rows, DT_COUNT(rows) };
