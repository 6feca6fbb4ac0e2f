/* SPDX-License-Identifier: Apache-2.0
 *
 * Views on thread ranks: where results lie, that nothing moves for it, forward and backward, and what they hold. */
#include <stdio.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"

enum { MAX_ELEMENTS = 2048 };

/* ---- what a view is ---------------------------------------------------------------------------------------------- */

typedef dt_tensor *view_fn(dt_tensor *x);

static dt_tensor *flat(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(-1)); }
static dt_tensor *to_8(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(8)); }
static dt_tensor *to_2_4(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(2, 4)); }
static dt_tensor *to_6_4(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(6, 4)); }
static dt_tensor *to_3_4(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(3, 4)); }
static dt_tensor *to_2_6(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(2, 6)); }
static dt_tensor *to_72_24(dt_tensor *x) { return dt_reshape(x, DT_SHAPE(72, 24)); }
static dt_tensor *turned(dt_tensor *x) { return dt_permute(x, DT_DIMS(2, 0, 1)); }
static dt_tensor *exchanged(dt_tensor *x) { return dt_transpose(x, 0, -1); }
static dt_tensor *longer(dt_tensor *x) { return dt_unsqueeze(x, 1); }
static dt_tensor *last_longer(dt_tensor *x) { return dt_unsqueeze(x, -1); }
static dt_tensor *shorter(dt_tensor *x) { return dt_squeeze(x, 1); }
static dt_tensor *joined(dt_tensor *x) { return dt_flatten(x, 1, -1); }
static dt_tensor *parted(dt_tensor *x) { return dt_unflatten(x, 0, DT_SHAPE(-1, 2)); }
static dt_tensor *stretched(dt_tensor *x) { return dt_expand(x, DT_SHAPE(2, -1, 12, 24)); }

static int64_t communicated(const dt_mesh *mesh)
{
    dt_counters c = dt_mesh_counters(mesh, NULL);
    int64_t n = c.implied;
    for (int k = 0; k < DT_COMM_KIND_COUNT; k++)
        if (k != DT_COMM_LOCAL) n += c.calls[k] + c.bytes[k];
    return n;
}

static int64_t count(dt_tensor *x)
{
    dt_shape shape = dt_spec_shape(dt_tensor_spec(x));
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
    return n;
}

/* The same view of the same numbers, nowhere split. */
static void expect_serial(dt_tensor *x, dt_tensor *y, view_fn *view)
{
    static _Thread_local double got[MAX_ELEMENTS], due[MAX_ELEMENTS];
    const char *text = dt_spec_text(dt_tensor_spec(x));
    dt_tensor *whole = view(dt_redistribute(x, ""));
    if (!expect(y && whole && count(y) == count(whole) && count(y) <= MAX_ELEMENTS, "%s: no result", text)) return;
    size_t bytes = (size_t)count(y) * sizeof *got;
    dt_tensor_to_host(y, -1, got, bytes);
    dt_tensor_to_host(whole, -1, due, bytes);
    expect(memcmp(got, due, bytes) == 0, "%s: is not what one rank has", text);
}

/* Nothing moves, and the gradient lies as the operand does. */
static dt_tensor *expect_free(dt_tensor *x, view_fn *view, bool back)
{
    dt_mesh *mesh = dt_spec_mesh(dt_tensor_spec(x));
    const char *text = dt_spec_text(dt_tensor_spec(x));
    int64_t before = communicated(mesh);
    dt_tensor *y = view(dt_require_grad(x));
    expect(communicated(mesh) == before, "%s: a view moves something", text);
    if (!y || !back) return y;
    dt_backward(y, dt_full(dt_tensor_spec(y), 2));
    expect(communicated(mesh) == before, "%s: a view's gradient moves something", text);
    expect(dt_grad(x) && dt_tensor_spec(dt_grad(x)) == dt_tensor_spec(x), "%s: its gradient is %s", text,
           dt_grad(x) ? dt_spec_text(dt_tensor_spec(dt_grad(x))) : "not there");
    return y;
}

/* ---- known results ----------------------------------------------------------------------------------------------- */

typedef struct known { int ranks; const char *mesh, *x; view_fn *view; const char *y; } known;

static const known rows_known[] = {
    { 6, "x=6", "f64[6,256]@x:S(0)", flat, "f64[1536]@x:S(0)" },
    { 6, "x=6", "f64[6,256]@x:S(1)", flat, "f64[(6 256)]@x:S(0.1)" },
    { 2, "x=2", "f64[2,4]@x:S(1)", to_8, "f64[(2 4)]@x:S(0.1)" },
    { 2, "x=2", "f64[(2 4)]@x:S(0.1)", to_2_4, "f64[2,4]@x:S(1)" },
    { 6, "x=2,y=3", "f64[5,6]@x:S(0),y:S(1)", flat, "f64[(5 6)]@x:S(0.0),y:S(0.1)" },
    { 6, "x=2,y=3", "f64[24]@x:S(0),y:S(0)", to_6_4, "f64[6,4]@x:S(0),y:S(0)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(0),y:S(0)", to_72_24, "f64[72,24]@x:S(0),y:S(0)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(0),y:S(2)", to_72_24, "f64[72,24]@x:S(0),y:S(1)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(1)", to_72_24, "f64[(6 12),24]@x:S(0.1)" },
    { 6, "x=3,y=2", "f64[1,1,12]@x:S(2),y:S(2)", flat, "f64[12]@x:S(0),y:S(0)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(0),y:S(2)", turned, "f64[24,6,12]@x:S(1),y:S(0)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(0),y:S(1)", exchanged, "f64[24,12,6]@x:S(2),y:S(1)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(0),y:S(1)", longer, "f64[6,1,12,24]@x:S(0),y:S(2)" },
    { 6, "x=3,y=2", "f64[6,12]@x:S(0),y:S(1)", last_longer, "f64[6,12,1]@x:S(0),y:S(1)" },
    { 6, "x=3,y=2", "f64[6,1,12]@x:S(0),y:S(2)", shorter, "f64[6,12]@x:S(0),y:S(1)" },
    { 6, "x=3,y=2", "f64[6,12,24]@x:S(1),y:P", joined, "f64[6,288]@x:S(1),y:P(sum)" },
    { 6, "x=3,y=2", "f64[6,12]@x:S(0),y:S(1)", parted, "f64[3,2,12]@x:S(0),y:S(2)" },
    { 4, "x=4", "f64[6,256]@x:S(0)", flat, "f64[(6 256)]@x:S(0.0)" },
    { 4, "x=4", "f64[3,256]@x:S(0)", flat, "f64[(3 256)]@x:S(0.0)" },
    { 3, "x=3", "f64[3,4]@x:P", to_2_6, "f64[2,6]@x:P(sum)" },
    { 2, "x=2", "f64[1,5,7]@x:S(1)", joined, "f64[1,(5 7)]@x:S(1.0)" },
};

static dt_status check_known(dt_context *ctx, void *arg)
{
    const known *k = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, k->mesh);
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, k->x), 1, 1);
    dt_tensor *y = expect_free(x, k->view, !strchr(k->x, 'P'));
    expect(y && dt_tensor_spec(y) == dt_spec_parse(mesh, k->y), "%s: expected %s, got %s", k->x, k->y,
           y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(ctx));
    if (y) expect_serial(x, y, k->view);
    return dt_context_status(ctx);
}

static void known_results(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(rows_known); i++) {
        dt_status status = dt_launch_threads(rows_known[i].ranks, check_known, (void *)(uintptr_t)&rows_known[i], error,
                                             sizeof error);
        expect(status == DT_OK, "%s: %s", rows_known[i].x, error);
    }
}

/* ---- every placement --------------------------------------------------------------------------------------------- */

static const char *const along_x[] = { "", "x:S(0)", "x:S(1)", "x:S(2)", "x:P" };
static const char *const along_y[] = { "", "y:S(0)", "y:S(1)", "y:S(2)", "y:P" };

static void check_placed(dt_mesh *mesh, const char *sizes, int x_place, int y_place, view_fn *view, bool back)
{
    char text[64];
    dt_context *ctx = dt_mesh_context(mesh);
    const char *x_text = along_x[x_place], *y_text = along_y[y_place];
    snprintf(text, sizeof text, "f64[%s]@%s%s%s", sizes, x_text, *x_text && *y_text ? "," : "", y_text);
    if (!*x_text && !*y_text) *strchr(text, '@') = '\0';
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, text), 1, 1);
    dt_tensor *y = expect_free(x, view, back && x_place < 4 && y_place < 4);
    expect_serial(x, y, view);
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status check_places(dt_context *ctx, void *arg)
{
    static view_fn *const views[] = { to_72_24, flat, turned, exchanged, longer, last_longer, joined };
    dt_mesh *mesh = dt_mesh_create(ctx, "x=3,y=2");
    (void)arg;
    for (int p = 0; p < 25; p++) {
        for (int v = 0; v < DT_COUNT(views); v++) check_placed(mesh, "6,12,24", p % 5, p / 5, views[v], true);
        for (int v = 1; v < DT_COUNT(views); v++) check_placed(mesh, "5,7,4", p % 5, p / 5, views[v], true);
        if (p % 5 != 2 && p / 5 != 2) check_placed(mesh, "2,1,24", p % 5, p / 5, stretched, false);
    }
    return dt_context_status(ctx);
}

static void every_placement(void)
{
    char error[512] = "";
    expect(dt_launch_threads(6, check_places, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- any two shapes ---------------------------------------------------------------------------------------------- */

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* Primes put into dims at random. */
static dt_shape draw_shape(unsigned *seed, const int64_t *primes, int n)
{
    dt_shape shape = { .n = 1 + (int)below(seed, DT_MAX_DIMS) };
    for (int d = 0; d < shape.n; d++) shape.dim[d] = 1;
    for (int i = 0; i < n; i++) shape.dim[below(seed, (unsigned)shape.n)] *= primes[i];
    return shape;
}

static const char *draw_placements(unsigned *seed, int dims, char *text)
{
    unsigned x = below(seed, (unsigned)dims + 1), y = below(seed, (unsigned)dims + 1);
    text[0] = '\0';
    if (x) sprintf(text, "x:S(%u)", x - 1);
    if (y) sprintf(text + strlen(text), "%sy:S(%u)", x ? "," : "", y - 1);
    return text;
}

static void check_pair(dt_mesh *mesh, unsigned *seed, const int64_t *primes, int n, bool values)
{
    static _Thread_local double got[MAX_ELEMENTS];
    char placements[64];
    dt_context *ctx = dt_mesh_context(mesh);
    int scope = dt_scope_push(ctx, 0);
    dt_shape from = draw_shape(seed, primes, n), to = draw_shape(seed, primes, n);
    const dt_spec *spec = dt_spec_create(mesh, DT_F64, from, draw_placements(seed, from.n, placements));
    dt_tensor *x = dt_arange(spec, 0, 1), *y = dt_reshape(x, to);
    dt_shape made = y ? dt_spec_shape(dt_tensor_spec(y)) : DT_SCALAR;
    expect(made.n == to.n && memcmp(made.dim, to.dim, (size_t)to.n * sizeof to.dim[0]) == 0, "%s: %s",
           dt_spec_text(spec), y ? dt_spec_text(dt_tensor_spec(y)) : dt_context_error(ctx));
    if (y && values) {
        int64_t all = count(y), right = 0;
        dt_tensor_to_host(y, -1, got, (size_t)all * sizeof *got);
        while (right < all && got[right] == (double)right) right++;
        expect(right == all, "%s as %s: element %lld", dt_spec_text(spec), dt_spec_text(dt_tensor_spec(y)),
               (long long)right);
    }
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status check_pairs(dt_context *ctx, void *arg)
{
    static const int64_t primes[] = { 2, 3, 2, 5, 3, 2, 3 };
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=3");
    unsigned seed = 1;
    (void)arg;
    for (int i = 0; i < 200; i++) check_pair(mesh, &seed, primes, 1 + i % DT_COUNT(primes), true);
    return dt_context_status(ctx);
}

/* Large ones without data: so many crossing dims that no rule has room for their letters, too. */
static void any_shapes(void)
{
    static const int64_t primes[] = { 2, 3, 5, 7, 11, 13, 2, 3, 5, 7, 2, 3, 2, 3, 5, 2 };
    char error[512] = "";
    expect(dt_launch_threads(6, check_pairs, NULL, error, sizeof error) == DT_OK, "%s", error);
    dt_context *ctx = dt_context_dry(6);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=3");
    unsigned seed = 2;
    for (int i = 0; i < 1000; i++) check_pair(mesh, &seed, primes, DT_COUNT(primes), false);
    expect_no_error(ctx, "any shapes");
    dt_context_destroy(&ctx);
}

/* ---- what must move ---------------------------------------------------------------------------------------------- */

static dt_status check_crossing(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=3");
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f64[12]@x:S(0),y:S(0)"), 1, 1);
    (void)arg;
    expect_serial(x, to_3_4(x), to_3_4);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    expect(!to_3_4(x), "(12) cut in 6 is no (3,4)");
    expect_error(ctx, DT_ERR_PLACEMENT, "reshape: strict", "a cut inside a factor");
    dt_scope_pop(ctx, scope, NULL);
    x = dt_arange(dt_spec_parse(mesh, "f64[3,4]@x:S(1),y:S(0)"), 1, 1);
    expect_serial(x, to_2_6(x), to_2_6);
    x = dt_arange(dt_spec_parse(mesh, "f64[6,5]@x:S(0),y:S(1)"), 1, 1);
    expect_serial(x, parted(x), parted);
    return dt_context_status(ctx);
}

static void crossing_cuts(void)
{
    char error[512] = "";
    expect(dt_launch_threads(6, check_crossing, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static dt_status check_by_hand(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    double got[60];
    (void)arg;
    dt_tensor *x = dt_arange(dt_spec_parse(mesh, "f64[3,4,5]@x:S(1)"), 0, 1);
    dt_tensor_to_host(turned(x), -1, got, sizeof got);
    for (int e = 0; e < 60; e++) {
        int k = e / 12, i = e / 4 % 3, j = e % 4;
        expect(got[e] == 20 * i + 5 * j + k, "permute: element %d is %g", e, got[e]);
    }
    dt_tensor_to_host(exchanged(x), -1, got, sizeof got);
    for (int e = 0; e < 60; e++) {
        int k = e / 12, j = e / 3 % 4, i = e % 3;
        expect(got[e] == 20 * i + 5 * j + k, "transpose: element %d is %g", e, got[e]);
    }
    dt_tensor_to_host(dt_reshape(x, DT_SHAPE(4, -1)), -1, got, sizeof got);
    for (int e = 0; e < 60; e++) expect(got[e] == e, "reshape: element %d is %g", e, got[e]);
    x = dt_arange(dt_spec_parse(mesh, "f64[3,1]@x:S(0)"), 0, 1);
    dt_tensor_to_host(dt_expand(x, DT_SHAPE(2, -1, 4)), -1, got, 24 * sizeof *got);
    for (int e = 0; e < 24; e++) expect(got[e] == e / 4 % 3, "expand: element %d is %g", e, got[e]);
    x = dt_arange(dt_spec_parse(mesh, "f64[1,1]@x:S(0)"), 7, 1);
    expect(dt_tensor_item(dt_reshape(x, DT_SCALAR)) == 7, "one element as a scalar");
    expect(dt_tensor_item(dt_reshape(dt_reshape(x, DT_SCALAR), DT_SHAPE(1, 1, 1))) == 7, "and back");
    x = dt_zeros(dt_spec_parse(mesh, "f64[0,3]@x:S(1)"));
    expect(count(dt_reshape(x, DT_SHAPE(2, 5, 0))) == 0, "none as none");
    return dt_context_status(ctx);
}

static dt_status check_triangles(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "@x:S(1)", "@x:S(2)", "@x:S(0)" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    double got[40];
    (void)arg;
    for (int p = 0; p < DT_COUNT(places); p++)
        for (int64_t from = -5; from <= 6; from++) {
            char text[32];
            snprintf(text, sizeof text, "f64[2,4,5]%s", places[p]);
            dt_tensor *x = dt_arange(dt_spec_parse(mesh, text), 1, 1);
            int64_t before = communicated(mesh);
            dt_tensor *low = dt_tril(x, from), *high = dt_triu(x, from);
            expect(communicated(mesh) == before && dt_tensor_spec(low) == dt_tensor_spec(x), "%s moves", text);
            dt_tensor_to_host(low, -1, got, sizeof got);
            for (int e = 0; e < 40; e++)
                expect(got[e] == (e % 5 <= e / 5 % 4 + from ? e + 1 : 0), "tril %s: %d is %g", text, e, got[e]);
            dt_tensor_to_host(high, -1, got, sizeof got);
            for (int e = 0; e < 40; e++)
                expect(got[e] == (e % 5 >= e / 5 % 4 + from ? e + 1 : 0), "triu %s: %d is %g", text, e, got[e]);
        }
    dt_tensor *x = dt_full(dt_spec_parse(mesh, "f64[3,3]"), 1);
    expect(dt_tensor_item(dt_sum(dt_tril(x, INT64_MAX), DT_ALL, false)) == 9, "tril of all");
    expect(dt_tensor_item(dt_sum(dt_triu(x, INT64_MAX), DT_ALL, false)) == 0, "triu of nothing");
    return dt_context_status(ctx);
}

static void triangles(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 4; ranks++)
        expect(dt_launch_threads(ranks, check_triangles, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static dt_status check_fill(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "@x:S(0)", "@x:P", "@x:P(avg)", "@x:P(max)" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int p = 0; p < DT_COUNT(places); p++) {
        char text[32];
        snprintf(text, sizeof text, "f64[5]%s", places[p]);
        dt_tensor *x = dt_full(dt_spec_parse(mesh, text), 3);
        int64_t before = communicated(mesh);
        dt_tensor *y = dt_fill(x, 8), *z = dt_copy(x);
        expect(communicated(mesh) == before && dt_tensor_spec(z) == dt_tensor_spec(x), "%s moves", text);
        expect(dt_tensor_item(dt_sum(y, DT_ALL, false)) == 40, "fill(8) of %s has another value", text);
        expect(dt_tensor_item(dt_sum(z, DT_ALL, false)) == 15, "a copy of %s has another value", text);
    }
    dt_fill(dt_full(dt_spec_parse(mesh, "i32[5]"), 3), 0.5);
    expect_error(ctx, DT_ERR_ARG, "fill(x): expected a whole number for i32, got 0.5", "a fraction");
    return dt_context_status(ctx);
}

static void filled(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 4; ranks++)
        expect(dt_launch_threads(ranks, check_fill, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static void by_hand(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 4; ranks++)
        expect(dt_launch_threads(ranks, check_by_hand, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static dt_status check_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f64[4,6]")), *none = dt_zeros(dt_spec_parse(mesh, "f64[0,6]"));
    (void)arg;
    dt_reshape(x, DT_SHAPE(5, 5));
    expect_error(ctx, DT_ERR_SHAPE, "reshape: expected sizes of 24 elements", "sizes that do not multiply");
    dt_reshape(x, DT_SHAPE(5, -1));
    expect_error(ctx, DT_ERR_SHAPE, "for x [4,6], got [5,-1]", "what is left divides");
    dt_reshape(x, DT_SHAPE(-1, -1));
    expect_error(ctx, DT_ERR_SHAPE, "one of them -1 at most", "two open");
    dt_reshape(none, DT_SHAPE(0, -1));
    expect_error(ctx, DT_ERR_SHAPE, "for x [0,6], got [0,-1]", "open and empty");
    dt_reshape(x, DT_SHAPE(INT64_MAX, 2, -1));
    expect_error(ctx, DT_ERR_SHAPE, "reshape: expected sizes", "sizes that overflow");
    dt_permute(x, DT_DIMS(0, 0));
    expect_error(ctx, DT_ERR_ARG, "permute: expected each dim of x [4,6] once, got [0,0]", "a dim twice");
    dt_permute(x, DT_DIMS(0));
    expect_error(ctx, DT_ERR_ARG, "x [4,6] once, got [0]", "too few dims");
    dt_permute(x, DT_DIMS(0, 2));
    expect_error(ctx, DT_ERR_ARG, "got [0,2]", "no dim");
    dt_transpose(x, 0, 2);
    expect_error(ctx, DT_ERR_ARG, "transpose(x): expected second in -2 .. 1, got 2", "no dim");
    dt_unsqueeze(x, 3);
    expect_error(ctx, DT_ERR_ARG, "unsqueeze: expected different dims in -3 .. 2 for x [4,6], got [3]", "no dim");
    dt_squeeze(x, 1);
    expect_error(ctx, DT_ERR_SHAPE, "squeeze: expected dim 1 of x [4,6] to have size 1, got 6", "more than one");
    dt_squeeze(x, 2);
    expect_error(ctx, DT_ERR_ARG, "squeeze(x): expected dim in -2 .. 1, got 2", "no dim");
    dt_flatten(x, 1, 0);
    expect_error(ctx, DT_ERR_ARG, "flatten: expected the first dim of x [4,6] not behind the last", "turned round");
    dt_unflatten(x, 1, DT_SHAPE(4, -1));
    expect_error(ctx, DT_ERR_SHAPE, "unflatten: expected sizes of 6 elements", "no divisor");
    dt_unflatten(x, 1, DT_SHAPE(1, 1, 1, 1, 1, 1, 1, 6));
    expect_error(ctx, DT_ERR_SHAPE, "unflatten: expected at most 8 dims", "too many dims");
    dt_expand(x, DT_SHAPE(4, 12));
    expect_error(ctx, DT_ERR_SHAPE, "expand: expected the sizes of x [4,6]", "no size 1");
    dt_expand(x, DT_SHAPE(6));
    expect_error(ctx, DT_ERR_SHAPE, "got [6]", "fewer dims");
    dt_expand(x, DT_SHAPE(-1, 4, 6));
    expect_error(ctx, DT_ERR_SHAPE, "got [-1,4,6]", "a new dim that is open");
    return dt_context_status(ctx);
}

static void errors(void)
{
    char error[512] = "";
    expect(dt_launch_threads(1, check_errors, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const dt_op two_operands = { .head = "two_operands(x, y)", .rule = "n, n -> n", .polynomial = "x + y",
                                    .shares = true };

/* A view takes no memory, and who writes what it shares is told. */
static dt_status check_memory(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_rand(dt_spec_parse(mesh, "f32[(6 4),5]@x:S(0)"), 1);
    (void)arg;
    int64_t before = dt_mesh_counters(mesh, NULL).memory;
    int scope = dt_scope_push(ctx, 0);
    dt_tensor *y = dt_unflatten(x, 0, DT_SHAPE(6, 4));
    dt_squeeze(dt_unsqueeze(dt_flatten(dt_reshape(y, DT_SHAPE(6, 2, 2, 5)), 0, 2), 1), 1);
    expect(dt_mesh_counters(mesh, NULL).memory == before, "%lld bytes more",
           (long long)(dt_mesh_counters(mesh, NULL).memory - before));
    dt_axpby_into(x, dt_full(dt_tensor_spec(x), 1), 2, 1);
    expect_error(ctx, DT_ERR_STATE, "shares its elements", "written while a view of it lives");
    dt_scope_pop(ctx, scope, NULL);
    expect(dt_axpby_into(x, dt_full(dt_tensor_spec(x), 1), 2, 1) == DT_OK, "%s", dt_context_error(ctx));
    dt_tensor *one = dt_full(dt_spec_parse(mesh, "f32[3]"), 1);
    dt_apply(&two_operands, (dt_tensor *[]){ one, one }, 2, NULL);
    expect_error(ctx, DT_ERR_ARG, "two_operands(x, y): shares its operand", "a row of two operands");
    return dt_context_status(ctx);
}

static void memory(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, check_memory, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "known results", known_results },
    { "every placement", every_placement },
    { "any two shapes", any_shapes },
    { "crossing cuts", crossing_cuts },
    { "by hand", by_hand },
    { "triangles", triangles },
    { "copy and fill", filled },
    { "memory", memory },
    { "errors", errors },
};

const suite the_suite = { "views", rows, DT_COUNT(rows) };
