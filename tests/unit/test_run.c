/* SPDX-License-Identifier: Apache-2.0
 *
 * Redistribution with data on thread ranks: right values, as many bytes as planned, replicas equal bit for bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "suite.h"

enum { MAX_PLACES = 128, MAX_ELEMENTS = 1024 };

typedef struct places { char text[MAX_PLACES][64]; int n; } places;

/* All placements of R, S(0) .. S(dims - 1) and P(sum) along the dims of a mesh. */
static void list_places(const dt_mesh *mesh, int dims, places *out)
{
    int kinds = dims + 2, total = 1;
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++) total *= kinds;
    out->n = 0;
    for (int code = 0; code < total && out->n < MAX_PLACES; code++) {
        char *text = out->text[out->n++];
        int used = 0;
        text[0] = '\0';
        for (int d = 0, rest = code; d < dt_mesh_dim_count(mesh); d++, rest /= kinds) {
            int kind = rest % kinds;
            const char *comma = used ? "," : "", *name = dt_mesh_dim_name(mesh, d);
            if (kind == 0) continue;
            if (kind <= dims) used += snprintf(text + used, 64 - (size_t)used, "%s%s:S(%d)", comma, name, kind - 1);
            else used += snprintf(text + used, 64 - (size_t)used, "%s%s:P(sum)", comma, name);
        }
    }
}

static bool has_partial(const char *placements) { return strstr(placements, "P(") != NULL; }

/* A partial tensor: ranks that differ along a partial mesh dim hold numbers of their own, others the same. Integers go
 * up by one, so that sums are exact; others are random, so that the order of sums shows. */
static dt_tensor *contributions(const dt_spec *spec)
{
    char whole[64] = "";
    const char *text = dt_spec_placements(spec);
    dt_mesh *mesh = dt_spec_mesh(spec);
    int own = 0;
    for (int used = 0; *text;) {
        const char *end = strchr(text, ',');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        char dim[2] = { *text, '\0' };
        if (memchr(text, 'P', n)) own = own * 10 + dt_mesh_coord(mesh, dim);
        else used += snprintf(whole + used, 64 - (size_t)used, "%s%.*s", used ? "," : "", (int)n, text);
        text += n + (end != NULL);
    }
    const dt_spec *apart = dt_spec_create(mesh, dt_spec_dtype(spec), dt_spec_shape(spec), whole);
    dt_tensor *numbers = dt_spec_dtype(spec) == DT_I64 ? dt_arange(apart, 1 + 1000 * own, 1)
                                                       : dt_randn(apart, 1 + (uint64_t)own);
    return dt_from_local(dt_to_local(numbers, whole), spec, whole);
}

static dt_tensor *make(const dt_spec *spec)
{
    return has_partial(dt_spec_placements(spec)) ? contributions(spec) : dt_arange(spec, 1, 3);
}

static void check_pair(dt_mesh *mesh, const char *sizes, const char *from, const char *to)
{
    dt_context *ctx = dt_mesh_context(mesh);
    int scope = dt_scope_push(ctx, 0);
    char text[128];
    snprintf(text, sizeof text, "i64[%s]@%s", sizes, from);
    const dt_spec *source = dt_spec_parse(mesh, text);
    dt_tensor *x = make(source);
    static _Thread_local int64_t before[MAX_ELEMENTS], after[MAX_ELEMENTS];
    size_t n = sizeof(int64_t);
    for (int d = 0; d < dt_spec_shape(source).n; d++) n *= (size_t)dt_spec_shape(source).dim[d];
    dt_tensor_to_host(x, -1, before, n);
    dt_counters then = dt_mesh_counters(mesh, NULL);
    dt_tensor *y = dt_redistribute(x, to);
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t bytes = 0;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++) bytes += now.bytes[k] - then.bytes[k];
    const dt_plan *plan = dt_plan_create(source, dt_tensor_spec(y), DT_PLAN_TIME);
    expect(bytes == dt_plan_received(plan, dt_rank(ctx)), "%s -> %s: rank %d received %lld, planned %lld", text, to,
           dt_rank(ctx), (long long)bytes, (long long)dt_plan_received(plan, dt_rank(ctx)));
    dt_tensor_to_host(y, -1, after, n);
    expect(dt_context_status(ctx) == DT_OK, "%s -> %s: %s", text, to, dt_context_error(ctx));
    expect(memcmp(before, after, n) == 0, "%s -> %s: another value on rank %d", text, to, dt_rank(ctx));
    dt_scope_pop(ctx, scope, NULL);
}

typedef struct job { const char *mesh, *sizes; int dims, stride; } job;

static dt_status all_pairs(dt_context *ctx, void *arg)
{
    const job *j = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, j->mesh);
    places *all = malloc(sizeof *all);
    if (!mesh || !all) return dt_context_fail(ctx, DT_ERR_MEMORY, "no mesh");
    list_places(mesh, j->dims, all);
    for (int i = 0; i < all->n * all->n && !dt_context_status(ctx); i += j->stride)
        check_pair(mesh, j->sizes, all->text[i / all->n], all->text[i % all->n]);
    free(all);
    return dt_context_status(ctx);
}

static void run(int ranks, job j)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(ranks, all_pairs, &j, error, sizeof error);
    expect(status == DT_OK, "%s %s: %s", j.mesh, j.sizes, error);
}

static void pairs_on_one_dim(void)
{
    static const int ranks[] = { 1, 2, 3, 4, 5, 7 };
    for (int i = 0; i < DT_COUNT(ranks); i++) {
        char mesh[16];
        snprintf(mesh, sizeof mesh, "x=%d", ranks[i]);
        run(ranks[i], (job){ mesh, "6,8", 2, 1 });
        run(ranks[i], (job){ mesh, "5,3", 2, 1 });
        run(ranks[i], (job){ mesh, "1,2,3", 3, 1 });
        run(ranks[i], (job){ mesh, "0,4", 2, 1 });
    }
}

static void pairs_on_two_dims(void)
{
    run(4, (job){ "x=2,y=2", "4,6", 2, 1 });
    run(4, (job){ "x=2,y=2", "5,3", 2, 1 });
    run(6, (job){ "x=2,y=3", "5,7", 2, 1 });
    run(8, (job){ "x=4,y=2", "8,12", 2, 3 });
    run(8, (job){ "x=4,y=2", "3,5,2", 3, 7 });
}

static void pairs_on_three_dims(void)
{
    run(8, (job){ "x=2,y=2,z=2", "4,6", 2, 41 });
    run(8, (job){ "x=2,y=2,z=2", "7", 1, 7 });
    run(8, (job){ "x=2,y=2,z=2", "4,3,5", 3, 149 });
}

/* Plans of large tensors, for small ones: P to R is then the backend's all-reduce. */
static void pairs_as_if_large(void)
{
    setenv("DT_SMALL", "0", 1);
    for (int ranks = 2; ranks <= 5; ranks++) {
        char mesh[16];
        snprintf(mesh, sizeof mesh, "x=%d", ranks);
        run(ranks, (job){ mesh, "6,8", 2, 1 });
        run(ranks, (job){ mesh, "5,3", 2, 1 });
        run(ranks, (job){ mesh, "1,2", 2, 1 });
        run(ranks, (job){ mesh, "0,4", 2, 1 });
    }
    run(4, (job){ "x=2,y=2", "5,3", 2, 1 });
    run(6, (job){ "x=2,y=3", "5,7", 2, 1 });
    run(8, (job){ "x=2,y=2,z=2", "4,6", 2, 61 });
    unsetenv("DT_SMALL");
}

/* ---- replicas ---------------------------------------------------------------------------------------------------- */

typedef struct replicas { const char *source, *target; uint64_t sums[8]; int64_t elements[8]; } replicas;

static uint64_t sum_bytes(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a                                                                 */
    for (size_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static dt_status hold_replica(dt_context *ctx, void *arg)
{
    replicas *r = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4,y=2");
    dt_tensor *y = dt_redistribute(contributions(dt_spec_parse(mesh, r->source)), r->target);
    dt_shape shape = dt_spec_local_shape(dt_tensor_spec(y), dt_mesh_coord(mesh, NULL));
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
    if (dt_context_status(ctx)) return dt_context_status(ctx);
    r->elements[dt_rank(ctx)] = n;
    r->sums[dt_rank(ctx)] = sum_bytes(dt_tensor_data(y), (size_t)n * dt_dtype_bytes(dt_spec_dtype(dt_tensor_spec(y))));
    return DT_OK;
}

/* Sums of random numbers: ranks that hold the same elements hold the same bits. same: per rank, the first of these. */
static void check_replicas(const char *source, const char *target, const int same[8])
{
    replicas r = { source, target, { 0 }, { 0 } };
    char error[512] = "";
    expect(dt_launch_threads(8, hold_replica, &r, error, sizeof error) == DT_OK, "%s -> %s: %s", source, target, error);
    for (int i = 0; i < 8; i++)
        expect(r.elements[i] > 0 && r.sums[i] == r.sums[same[i]], "%s -> %s: rank %d differs from rank %d", source,
               target, i, same[i]);
}

static void replicas_equal(void)
{
    static const int all[8] = { 0 }, along_x[8] = { 0, 1, 0, 1, 0, 1, 0, 1 }, along_y[8] = { 0, 0, 2, 2, 4, 4, 6, 6 };
    static const char *const shapes[] = { "f32[37,5]", "bf16[64,24]", "f16[4,4]", "f64[8,129]", "f32[1024,257]" };
    for (int i = 0; i < DT_COUNT(shapes); i++) {
        char x[64], y[64], both[64];
        snprintf(x, sizeof x, "%s@x:P(sum)", shapes[i]);
        snprintf(y, sizeof y, "%s@y:P(sum)", shapes[i]);
        snprintf(both, sizeof both, "%s@x:P(sum),y:P(sum)", shapes[i]);
        check_replicas(x, "x:R", all);
        check_replicas(both, "x:R,y:R", all);
        check_replicas(both, "x:S(0),y:R", along_y);
        check_replicas(both, "x:R,y:S(0)", along_x);
        check_replicas(y, "x:S(1),y:R", along_y);
    }
}

static const test_row rows[] = {
    { "pairs_on_one_dim", pairs_on_one_dim },
    { "pairs_on_two_dims", pairs_on_two_dims },
    { "pairs_on_three_dims", pairs_on_three_dims },
    { "pairs_as_if_large", pairs_as_if_large },
    { "replicas_equal", replicas_equal },
};

const suite the_suite = { "run", rows, DT_COUNT(rows) };
