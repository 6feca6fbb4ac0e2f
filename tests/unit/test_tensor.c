/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors on thread ranks: makers whose value no mesh changes, parts, the host, scopes, errors on every rank. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "launch.h"
#include "suite.h"

/* ---- makers ------------------------------------------------------------------------------------------------------ */

static void fill_index(const dt_box *box, void *values, void *arg)
{
    float *out = values;
    (void)arg;
    for (int64_t i = box->lo[0]; i < box->hi[0]; i++)
        for (int64_t j = box->lo[1]; j < box->hi[1]; j++) *out++ = (float)(100 * i + j);
}

typedef struct made { uint64_t sums[8]; int n; } made;

static void add(made *m, dt_tensor *x) { m->sums[m->n++] = dt_tensor_checksum(x); }

static dt_status make_all(dt_context *ctx, const char *placements, made *out)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x,y");
    const dt_spec *spec = dt_spec_create(mesh, DT_F32, DT_SHAPE(13, 7), placements);
    float host[13 * 7];
    for (int i = 0; i < 13 * 7; i++) host[i] = (float)i * 0.5f;
    add(out, dt_rand(spec, 1));
    add(out, dt_randn(spec, 2));
    add(out, dt_arange(spec, 3, 0.25));
    add(out, dt_full(spec, 8));
    add(out, dt_from_fn(spec, fill_index, NULL));
    add(out, dt_from_host(spec, -1, host, sizeof host));
    add(out, dt_from_host(spec, 0, dt_rank(ctx) == 0 ? host : NULL, sizeof host));
    add(out, dt_rand(dt_spec_create(mesh, DT_BF16, DT_SHAPE(13, 7), placements), 1));
    return dt_context_status(ctx);
}

static dt_status remember(dt_context *ctx, void *arg) { return make_all(ctx, "", arg); }

typedef struct wanted { const char *placements; const made *sums; } wanted;

static dt_status compare(dt_context *ctx, void *arg)
{
    const wanted *w = arg;
    made got = { .n = 0 };
    make_all(ctx, w->placements, &got);
    for (int i = 0; i < got.n; i++)
        expect(got.sums[i] == w->sums->sums[i], "maker %d under %s on %d ranks", i, w->placements, dt_rank_count(ctx));
    return dt_context_status(ctx);
}

static void values_do_not_depend_on_the_mesh(void)
{
    static const char *const placements[] = {
        "", "x:S(0)", "x:S(1)", "x:S(0),y:S(0)", "y:S(0),x:S(0)", "x:S(0),y:S(1)", "x:P", "x:S(1),y:P",
    };
    static const int ranks[] = { 1, 2, 3, 4 };
    char error[512] = "";
    made whole = { .n = 0 };
    expect(dt_launch_threads(1, remember, &whole, error, sizeof error) == DT_OK, "%s", error);
    for (int i = 0; i < DT_COUNT(placements); i++)
        for (int r = 0; r < DT_COUNT(ranks); r++) {
            wanted w = { placements[i], &whole };
            expect(dt_launch_threads(ranks[r], compare, &w, error, sizeof error) == DT_OK, "%s", error);
        }
}

/* ---- parts and host ---------------------------------------------------------------------------------------------- */

static dt_status parts(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f32[14]@x:S(0)"), 0, 1);
    static const int sizes[] = { 4, 3, 4, 3 }, begins[] = { 0, 4, 7, 11 };
    const float *data = dt_tensor_data(x);
    for (int i = 0; i < sizes[dt_rank(ctx)]; i++)
        expect(data[i] == (float)(begins[dt_rank(ctx)] + i), "rank %d, element %d is %g", dt_rank(ctx), i, data[i]);
    float host[14] = { 0 };
    expect(dt_tensor_to_host(x, 2, dt_rank(ctx) == 2 ? host : NULL, sizeof host) == DT_OK, "%s", dt_context_error(ctx));
    expect(host[13] == (dt_rank(ctx) == 2 ? 13.0f : 0.0f), "only rank 2 has the whole value");
    dt_tensor *eight = dt_full(dt_spec_parse(mesh, "f64[]@x:P(sum)"), 8);
    expect(dt_tensor_item(eight) == 8, "fill(8) of P has the value 8");
    expect(dt_tensor_item(dt_full(dt_spec_parse(mesh, "f32[1]@x:P(max)"), -3)) == -3, "and of P(max)");
    expect(dt_tensor_item(dt_full(dt_spec_parse(mesh, "f32[1,1]@x:P(prod)"), 5)) == 5, "and of P(prod)");
    expect(strstr(dt_tensor_text(x), "f32[14]@x:S(0)") && strstr(dt_tensor_text(x), "rank 3 holds [11:14]"), "%s",
           dt_tensor_text(x));
    return dt_context_status(ctx);
}

static void test_parts(void) { launch(4, parts, NULL); }

static dt_status close_to(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3");
    dt_tensor *a = dt_randn(dt_spec_parse(mesh, "f64[5,4]@x:S(0)"), 3);
    dt_tensor *b = dt_randn(dt_spec_parse(mesh, "f64[5,4]@x:S(1)"), 3);
    dt_tensor *c = dt_randn(dt_spec_parse(mesh, "f64[5,4]"), 4);
    expect(dt_tensor_close(a, b, 0, 0), "one value, two placements");
    expect(!dt_tensor_close(a, c, 1e-6, 1e-6), "two values");
    expect(dt_tensor_checksum(a) == dt_tensor_checksum(b), "one value, one checksum");
    expect(dt_tensor_checksum(a) != dt_tensor_checksum(c), "another value, another");
    return dt_context_status(ctx);
}

static void test_close(void) { launch(3, close_to, NULL); }

static dt_status close_at_the_edges(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3");
    const dt_spec *number = dt_spec_parse(mesh, "f32[]"), *integer = dt_spec_parse(mesh, "i64[]");
    dt_tensor *three = dt_full(number, 3), *infinity = dt_full(number, INFINITY), *nan = dt_full(number, NAN);
    static const int64_t near[] = { INT64_C(1) << 53, (INT64_C(1) << 53) + 1, INT64_MIN, INT64_MAX };
    dt_tensor *at[4];
    for (int i = 0; i < 4; i++) at[i] = dt_from_host(integer, -1, &near[i], sizeof near[i]);
    expect(!dt_tensor_close(three, infinity, 1e-6, 0), "finite, infinite");
    expect(!dt_tensor_close(infinity, three, 1e-6, 0), "infinite, finite");
    expect(!dt_tensor_close(infinity, dt_full(number, -INFINITY), 1, 1), "two infinities");
    expect(dt_tensor_close(infinity, infinity, 0, 0) && dt_tensor_close(nan, nan, 0, 0), "the same");
    expect(!dt_tensor_close(nan, three, 1, 1), "NaN and a number");
    expect(!dt_tensor_close(at[0], at[1], 0, 0) && dt_tensor_close(at[0], at[1], 0, 1), "2^53 and the next");
    expect(!dt_tensor_close(at[2], at[3], 0, 1e19) && dt_tensor_close(at[2], at[3], 0, 2e19), "least and most");
    return dt_context_status(ctx);
}

static void test_close_at_the_edges(void) { launch(3, close_at_the_edges, NULL); }

/* ---- averages ---------------------------------------------------------------------------------------------------- */

/* The sum is scaled before it is rounded: it may be more than the dtype holds. */
static dt_status averages(dt_context *ctx, void *arg)
{
    static const struct { const char *spec; double value; } of[] = {
        { "u8[]", 200 }, { "f16[]", 60000 }, { "bf16[]", 37 }, { "i32[]", 2147483647 }, { "bool[]", 1 },
        { "f32[]", -5 },
    };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < DT_COUNT(of); i++) {
        const dt_spec *whole = dt_spec_parse(mesh, of[i].spec);
        dt_tensor *x = dt_full(dt_spec_replace(whole, "x:P(avg)"), of[i].value);
        expect(dt_tensor_item(x) == of[i].value, "%s: made, %g", of[i].spec, dt_tensor_item(x));
        dt_tensor *y = dt_redistribute(dt_full(whole, of[i].value), "x:P(avg)");
        expect(dt_tensor_item(y) == of[i].value, "%s: from R, %g", of[i].spec, dt_tensor_item(y));
    }
    dt_tensor *f = dt_full(dt_spec_parse(mesh, "f64[]@x:P(avg)"), 5);
    expect(dt_tensor_close(dt_redistribute(f, "x:P(sum)"), f, 1e-15, 0), "floats convert: %s", dt_context_error(ctx));
    dt_tensor *i = dt_full(dt_spec_parse(mesh, "i64[]@x:P(avg)"), 5);
    if (dt_rank_count(ctx) == 1) return dt_context_status(ctx);
    expect(!dt_redistribute(i, "x:P(sum)") && dt_context_status(ctx) == DT_ERR_PLACEMENT, "integers do not");
    dt_context_clear(ctx);
    dt_tensor *s = dt_arange(dt_spec_parse(mesh, "u8[9]@x:S(0)"), 0, 1);
    expect(!dt_redistribute(s, "x:P(avg)") && dt_context_status(ctx) == DT_ERR_PLACEMENT, "nor from S");
    return dt_context_clear(ctx);
}

static void test_averages(void)
{
    for (int ranks = 1; ranks <= 7; ranks++) launch(ranks, averages, NULL);
    setenv("DT_TOPOLOGY", "node=2,gpu=3", 1);
    setenv("DT_SMALL", "0", 1);
    launch(6, averages, NULL);
    unsetenv("DT_TOPOLOGY");
    unsetenv("DT_SMALL");
}

/* Every way between averages, sums and the rest keeps the value: scaled once, by the sums of the last stage. */
static dt_status average_pairs(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "x:S(0),y:S(0)", "x:S(1),y:P(avg)", "x:P(avg),y:R", "x:P(avg),y:P(avg)",
                                          "y:S(1),x:P(sum)", "x:P(sum),y:P(avg)" };
    (void)arg;
    const dt_spec *whole = dt_spec_parse(dt_mesh_create(ctx, "x=4,y=2"), "f32[7,5]");
    dt_tensor *due = dt_arange(whole, 8, 8);
    for (int i = 0; i < DT_COUNT(places); i++)
        for (int j = 0; j < DT_COUNT(places); j++) {
            dt_tensor *x = dt_redistribute(dt_redistribute(due, places[i]), places[j]);
            expect(dt_tensor_close(x, due, 0, 0), "%s -> %s: %s", places[i], places[j], dt_context_error(ctx));
        }
    return dt_context_status(ctx);
}

static void test_average_pairs(void)
{
    launch(8, average_pairs, NULL);
    setenv("DT_TOPOLOGY", "node=2,gpu=4", 1);
    setenv("DT_SMALL", "0", 1);        /* so that no sum is made at once over all links                              */
    launch(8, average_pairs, NULL);
    unsetenv("DT_TOPOLOGY");
    unsetenv("DT_SMALL");
}

/* ---- one all-reduce, or its two halves --------------------------------------------------------------------------- */

/* P to R has the bits of P to S and S to R, on every rank: one rank sums each element, in the same order. */
static void same_bits(dt_mesh *mesh, const char *spec, const char *halfway)
{
    dt_tensor *x = dt_randn(dt_spec_parse(mesh, spec), 11);
    dt_tensor *halves = dt_redistribute(dt_redistribute(x, halfway), "x:R");
    dt_tensor *whole = dt_redistribute(x, "x:R");
    expect(dt_tensor_checksum(whole) == dt_tensor_checksum(halves), "%s: another value", spec);
    size_t n = dt_dtype_bytes(dt_spec_dtype(dt_tensor_spec(whole)));
    dt_shape shape = dt_spec_local_shape(dt_tensor_spec(whole), dt_mesh_coord(mesh, NULL));
    for (int d = 0; d < shape.n; d++) n *= (size_t)shape.dim[d];
    const void *a = dt_tensor_data(whole), *b = dt_tensor_data(halves);
    expect(a && b && memcmp(a, b, n) == 0, "%s: other bits on rank %d", spec, dt_rank(dt_mesh_context(mesh)));
}

static dt_status all_reduces(dt_context *ctx, void *arg)
{
    static const char *const dtypes[] = { "f32", "f64", "bf16", "f16", "i64" };
    static const char *const kinds[] = { "sum", "avg", "max", "min", "prod" };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, dt_rank_count(ctx) % 2 ? "x" : "x,y=2");
    for (int d = 0; d < DT_COUNT(dtypes); d++)
        for (int k = 0; k < DT_COUNT(kinds); k++) {
            char spec[64];
            if (strcmp(dtypes[d], "i64") == 0 && k == 1) continue;
            snprintf(spec, sizeof spec, "%s[129,77]@x:P(%s)", dtypes[d], kinds[k]);
            same_bits(mesh, spec, "x:S(0)");
        }
    if (dt_rank_count(ctx) % 2 == 0) same_bits(mesh, "f32[64,33]@x:P,y:S(0)", "x:S(1)");
    return dt_context_status(ctx);
}

static void test_all_reduces(void)
{
    static const int ranks[] = { 2, 3, 4, 6 };
    setenv("DT_SMALL", "0", 1);
    for (int i = 0; i < DT_COUNT(ranks); i++) launch(ranks[i], all_reduces, NULL);
    unsetenv("DT_SMALL");
}

/* P of one kind along one mesh dim to P of another along another: what is reduced goes by the source's kind, what is
 * nothing beside the value by the target's. */
static dt_status kind_pairs(dt_context *ctx, void *arg)
{
    static const char *const all[] = { "sum", "avg", "max", "min", "prod" };
    static const char *const ends[] = { "y:P(%s)", "y:P(%s),x:S(0)", "y:P(%s),x:S(1)" };
    (void)arg;
    const dt_spec *whole = dt_spec_parse(dt_mesh_create(ctx, "x=2,y=3"), "f32[7,5]");
    dt_tensor *due = dt_arange(whole, -16, 8);
    for (int i = 0; i < DT_COUNT(all) * DT_COUNT(all) * DT_COUNT(ends); i++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "x:P(%s)", all[i % DT_COUNT(all)]);
        snprintf(to, sizeof to, ends[i / (DT_COUNT(all) * DT_COUNT(all))], all[i / DT_COUNT(all) % DT_COUNT(all)]);
        dt_tensor *x = dt_redistribute(dt_redistribute(due, from), to);
        expect(dt_tensor_close(x, due, 0, 0), "%s -> %s: %s", from, to, dt_context_error(ctx));
    }
    return dt_context_status(ctx);
}

static void test_kind_pairs(void) { launch(6, kind_pairs, NULL); }

/* ---- work that is started ---------------------------------------------------------------------------------------- */

static dt_status wait_for_none(dt_context *ctx, void *arg)
{
    dt_tensor *x = dt_arange(dt_spec_parse(dt_mesh_create(ctx, "x"), "f32[9]@x:S(0)"), 0, 1);
    dt_work *work = dt_redistribute_start(x, "");
    if (strcmp(arg, "all") != 0 && dt_rank(ctx) != 0) dt_work_wait(work);
    if (strcmp(arg, "fail") == 0 && dt_rank(ctx) == 0) return dt_context_fail(ctx, DT_ERR_IO, "no more");
    return dt_context_status(ctx);
}

static void test_work_not_waited_for(void)
{
    char error[512] = "";
    launch(3, wait_for_none, "all");
    launch(3, wait_for_none, "first");
    dt_status status = dt_launch_threads(3, wait_for_none, (char[]){ "fail" }, error, sizeof error);
    expect(status == DT_ERR_IO && strstr(error, "no more"), "%d %s", (int)status, error);
}

static dt_status wait_twice(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_tensor *x = dt_arange(dt_spec_parse(dt_mesh_create(ctx, "x"), "f32[9]@x:S(0)"), 0, 1);
    dt_work *work = dt_redistribute_start(x, "");
    expect(dt_work_wait(work) != NULL, "once: %s", dt_context_error(ctx));
    expect(!dt_work_wait(work) && dt_context_status(ctx) == DT_ERR_STATE, "twice: %s", dt_context_error(ctx));
    dt_context_clear(ctx);
    dt_tensor_hold(NULL, NULL);
    dt_tensor_hold(NULL, x);
    expect(dt_context_status(ctx) == DT_ERR_ARG, "no slot: %s", dt_context_error(ctx));
    return dt_context_clear(ctx);
}

static void test_wait_twice(void) { launch(3, wait_twice, NULL); }

/* A checksum is 0 where a peer has failed, not what this rank knows. */
static dt_status checksum_of_failed(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_tensor *x = dt_arange(dt_spec_parse(dt_mesh_create(ctx, "x"), "f32[8]@x:S(0)"), 1, 1);
    if (dt_rank(ctx) == 1) return dt_context_fail(ctx, DT_ERR_IO, "bad");
    expect(dt_tensor_checksum(x) == 0, "rank %d", dt_rank(ctx));
    return dt_context_status(ctx);
}

static void test_checksum_of_failed(void)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(3, checksum_of_failed, NULL, error, sizeof error);
    expect(status == DT_ERR_IO, "%d %s", (int)status, error);
}

/* A rank that is none of the mesh's may ask. */
static dt_status outside(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3"), *some = dt_mesh_select(mesh, "x=1");
    bool member = dt_rank(ctx) == 1;
    float two = 2, host = -1;
    dt_tensor *x = dt_from_host(dt_spec_parse(some, "f32[]"), -1, member ? &two : NULL, member ? sizeof two : 0);
    double item = dt_tensor_item(x);
    expect(member ? item == 2 : isnan(item), "rank %d: item %g", dt_rank(ctx), item);
    expect((dt_tensor_checksum(x) != 0) == member, "checksum");
    expect(dt_tensor_to_host(x, -1, &host, sizeof host) == DT_OK, "%s", dt_context_error(ctx));
    expect(host == (member ? 2 : -1), "host %g", (double)host);
    return dt_context_status(ctx);
}

static void test_outside(void) { launch(3, outside, NULL); }

/* ---- local boundaries -------------------------------------------------------------------------------------------- */

/* 2, 3, 4, 5 columns where 4, 3, 4, 3 are due: rank 1 is right by itself, and all are told. */
static dt_status wrong_locals(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    static const char *const places[] = { "x=0", "x=1", "x=2", "x=3" };
    dt_mesh *one = dt_mesh_select(mesh, places[dt_rank(ctx)]);
    dt_tensor *local = dt_zeros(dt_spec_create(one, DT_F32, DT_SHAPE(3, 2 + dt_rank(ctx)), NULL));
    expect(!dt_from_local(local, dt_spec_parse(mesh, "f32[3,14]@x:S(1)"), "x:S(1)"), "rank %d", dt_rank(ctx));
    expect(dt_context_status(ctx) == DT_ERR_SHAPE, "rank %d: %s", dt_rank(ctx), dt_context_error(ctx));
    return dt_context_clear(ctx);
}

static void test_wrong_locals(void) { launch(4, wrong_locals, NULL); }

static dt_status gradients_are_stated(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *s = dt_zeros(dt_spec_parse(mesh, "f32[4]@x:S(0)")), *p = dt_zeros(dt_spec_parse(mesh, "f32[4]@x:P"));
    dt_tensor *r = dt_zeros(dt_spec_parse(mesh, "f32[4]"));
    expect(dt_to_local(s, "x:S(0)") && dt_to_local(r, "") && dt_to_local(r, "x:P"), "%s", dt_context_error(ctx));
    expect(!dt_to_local(s, NULL) && dt_context_status(ctx) == DT_ERR_ARG, "without a gradient's placements");
    dt_context_clear(ctx);
    expect(!dt_to_local(s, "") && dt_context_status(ctx) == DT_ERR_PLACEMENT, "S to R");
    dt_context_clear(ctx);
    expect(!dt_to_local(p, "") && dt_context_status(ctx) == DT_ERR_PLACEMENT, "P has no part");
    dt_context_clear(ctx);
    return DT_OK;
}

static void test_gradients_are_stated(void) { launch(2, gradients_are_stated, NULL); }

/* ---- scopes and memory ------------------------------------------------------------------------------------------- */

static dt_status scopes(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[64]@x:S(0)");
    dt_tensor *held = NULL;
    int64_t before = dt_mesh_counters(mesh, NULL).memory;
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *x = dt_zeros(spec);
    dt_zeros(spec);
    expect(dt_mesh_counters(mesh, NULL).memory == before + 256, "two parts of 128 bytes");
    dt_tensor_hold(&held, x);
    dt_tensor *kept = dt_scope_pop(ctx, scope, dt_full(spec, 1));
    expect(dt_mesh_counters(mesh, NULL).memory == before + 256, "one held, one kept");
    expect(dt_tensor_data(held) && ((const float *)dt_tensor_data(kept))[0] == 1, "both live");
    dt_tensor_hold(&held, NULL);
    expect(held == NULL && dt_mesh_counters(mesh, NULL).memory == before + 128, "released");
    expect(dt_mesh_counters(mesh, NULL).memory_peak >= before + 384, "three at once");
    return dt_context_status(ctx);
}

static void test_scopes(void) { launch(2, scopes, NULL); }

static dt_status loop(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    const dt_spec *spec = dt_spec_parse(mesh, "f32[1024,64]@x:P");
    int64_t memory = 0;
    for (int i = 0; i < 20; i++) {
        int scope = dt_scope_push(ctx, 0);
        dt_work *work = dt_redistribute_start(dt_full(spec, i), "x:S(0)");
        dt_tensor *y = dt_work_wait(work);
        expect(((const float *)dt_tensor_data(y))[0] == (float)i, "round %d", i);
        dt_redistribute(y, "");
        dt_scope_pop(ctx, scope, NULL);
        if (i == 10) memory = dt_mesh_counters(mesh, NULL).memory_peak;
    }
    expect(dt_mesh_counters(mesh, NULL).memory_peak <= memory * 2, "memory does not grow");
    return dt_context_status(ctx);
}

static void test_loop(void) { launch(2, loop, NULL); }

/* ---- kinds of P, dtypes, meshes ---------------------------------------------------------------------------------- */

typedef struct kind { const char *name; double want; } kind;

static dt_status kinds(dt_context *ctx, void *arg)
{
    static const kind all[] = { { "sum", 10 }, { "avg", 2.5 }, { "max", 4 }, { "min", 1 }, { "prod", 24 } };
    static const char *const dtypes[] = { "f64", "f32", "bf16", "f16", "i64", "i32" };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    for (int k = 0; k < DT_COUNT(all); k++)
        for (int d = 0; d < DT_COUNT(dtypes); d++) {
            char text[64];
            snprintf(text, sizeof text, "%s[5,3]", dtypes[d]);
            dt_tensor *own = dt_to_local(dt_full(dt_spec_parse(mesh, text), dt_rank(ctx) + 1), "");
            snprintf(text, sizeof text, "%s[5,3]@x:P(%s)", dtypes[d], all[k].name);
            dt_tensor *x = dt_from_local(own, dt_spec_parse(mesh, text), "");
            double want = dtypes[d][0] == 'i' ? floor(all[k].want) : all[k].want;
            dt_tensor *due = dt_full(dt_spec_replace(dt_tensor_spec(x), ""), want);
            expect(dt_tensor_close(dt_redistribute(x, ""), due, 0, 0), "%s to R", text);
            expect(dt_tensor_close(dt_redistribute(x, "x:S(0)"), due, 0, 0), "%s to S: %s", text,
                   dt_context_error(ctx));
        }
    return dt_context_status(ctx);
}

static void test_kinds(void) { launch(4, kinds, NULL); }

static dt_status meshes(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "pp=2,tp=3"), *first = dt_mesh_select(mesh, "pp=0");
    dt_mesh *second = dt_mesh_select(mesh, "pp=1"), *other = dt_mesh_create(ctx, "a=3,b=2");
    dt_tensor *x = dt_rand(dt_spec_parse(first, "f32[7,4]@tp:S(0)"), 5);
    dt_tensor *y = dt_redistribute_to(x, second, "tp:S(1)");
    dt_tensor *z = dt_redistribute_to(y, other, "a:S(0),b:S(1)");
    expect((dt_mesh_coord(first, NULL) >= 0) == (dt_tensor_data(x) != NULL), "members have data");
    expect(dt_tensor_close(z, dt_rand(dt_spec_parse(mesh, "f32[7,4]"), 5), 0, 0), "the value went along");
    return dt_context_status(ctx);
}

static void test_meshes(void) { launch(6, meshes, NULL); }

static dt_status dry(dt_context *ctx)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x=4");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[64]@x:P"));
    dt_tensor *y = dt_redistribute(x, "");
    dt_counters counters = dt_mesh_counters(mesh, "x");
    expect(y && dt_tensor_data(y) == NULL && dt_tensor_item(dt_zeros(dt_spec_parse(mesh, "f32[]"))) == 0, "no data");
    expect(counters.calls[DT_COMM_ALL_REDUCE] == 1 && counters.bytes[DT_COMM_ALL_REDUCE] > 0, "counted all the same");
    return dt_context_status(ctx);
}

static void test_dry(void)
{
    dt_context *ctx = dt_context_dry(4);
    expect(dry(ctx) == DT_OK, "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static dt_status bad_input(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4,4]@x:S(0)"));
    float room[4];
    expect(!dt_redistribute(x, "y:S(0)") && dt_context_status(ctx) == DT_ERR_PLACEMENT, "unknown mesh dim");
    expect(!dt_zeros(dt_tensor_spec(x)) && !dt_redistribute(x, ""), "a failed context does nothing");
    dt_context_clear(ctx);
    expect(isnan(dt_tensor_item(x)) && dt_context_status(ctx) == DT_ERR_SHAPE, "item of many");
    dt_context_clear(ctx);
    expect(dt_tensor_to_host(x, -1, room, sizeof room) == DT_ERR_SHAPE, "too little room");
    dt_context_clear(ctx);
    expect(!dt_from_host(dt_tensor_spec(x), 7, room, sizeof room), "no such root");
    expect(dt_context_status(ctx) == DT_ERR_ARG, "no such root: %s", dt_context_error(ctx));
    dt_context_clear(ctx);
    expect(dt_tensor_size(x, 2) == 0 && dt_context_status(ctx) == DT_ERR_ARG, "no such dim");
    dt_context_clear(ctx);
    expect(dt_tensor_close(x, dt_redistribute(x, ""), 0, 0), "and all goes on");
    expect(!dt_redistribute(NULL, "") && !dt_tensor_data(NULL), "nothing is nothing");
    expect(dt_context_status(ctx) == DT_OK, "and no error: %s", dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void test_bad_input(void) { launch(2, bad_input, NULL); }

static const test_row rows[] = {
    { "all_reduces", test_all_reduces },
    { "values_do_not_depend_on_the_mesh", values_do_not_depend_on_the_mesh },
    { "parts", test_parts },
    { "close", test_close },
    { "close_at_the_edges", test_close_at_the_edges },
    { "averages", test_averages },
    { "average_pairs", test_average_pairs },
    { "kind_pairs", test_kind_pairs },
    { "work_not_waited_for", test_work_not_waited_for },
    { "wait_twice", test_wait_twice },
    { "checksum_of_failed", test_checksum_of_failed },
    { "outside", test_outside },
    { "wrong_locals", test_wrong_locals },
    { "gradients_are_stated", test_gradients_are_stated },
    { "scopes", test_scopes },
    { "loop", test_loop },
    { "kinds", test_kinds },
    { "meshes", test_meshes },
    { "dry", test_dry },
    { "bad_input", test_bad_input },
};

const suite the_suite = { "tensor", rows, DT_COUNT(rows) };
