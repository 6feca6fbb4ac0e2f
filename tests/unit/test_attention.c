/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention, rotary positions and dropout. Attention and its gradient against loops that make the whole matrix of
 * scores, over sizes on both sides of a block; where it lies in ways that need no communication, that there is none;
 * that what hangs on a position or a number of an element hangs on the global one. */
#include <math.h>
#include <stdlib.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

/* ---- attention by loops ------------------------------------------------------------------------------------------ */

typedef struct sizes { int b, s, t, h, g, d; bool causal, masked; double scale; } sizes;

enum { Q, K, V, UP, OUT, DQ, DK, DV, MASK, DMASK, ARRAYS };

typedef struct arrays { int64_t n[ARRAYS]; double *x[ARRAYS]; } arrays;

static double drawn(int array, int64_t i)
{
    uint64_t hash = ((uint64_t)i * 2654435761u + (uint64_t)array * 40503u + 12345) % 1000003;
    return (double)hash / 1000003 * 3 - 1.5;
}

/* Key 0 is hidden from every third row, row 1 sees none. */
static double drawn_mask(const sizes *z, int64_t i)
{
    int64_t s = i / z->t, t = i % z->t;
    return s == 1 || (t == 0 && s % 3 == 0) ? -INFINITY : drawn(MASK, i);
}

static void arrays_new(const sizes *z, arrays *a)
{
    int64_t q = (int64_t)z->b * z->s * z->h * z->d, k = (int64_t)z->b * z->t * z->g * z->d;
    for (int i = 0; i < ARRAYS; i++) {
        a->n[i] = i >= MASK ? (int64_t)z->s * z->t : i == K || i == V || i == DK || i == DV ? k : q;
        a->x[i] = calloc((size_t)a->n[i] + 1, sizeof(double));
        for (int64_t e = 0; e < a->n[i]; e++)
            a->x[i][e] = i <= UP ? drawn(i, e) : i == MASK ? drawn_mask(z, e) : 0;
    }
}

static void arrays_free(arrays *a)
{
    for (int i = 0; i < ARRAYS; i++) free(a->x[i]);
}

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void add(double *to, const double *x, double by, int n)
{
    for (int i = 0; i < n; i++) to[i] += by * x[i];
}

/* The row of a query: result and gradients. */
static void reference_row(const sizes *z, arrays *a, int b, int s, int h, double *p)
{
    int g = h / (z->h / z->g), d = z->d, seen = z->causal && s + 1 < z->t ? s + 1 : z->t;
    double scale = z->scale != 0 ? z->scale : 1 / sqrt(d), max = -INFINITY, sum = 0, delta = 0;
    int64_t row = (((int64_t)b * z->s + s) * z->h + h) * d, key = ((int64_t)b * z->t * z->g + g) * d, step = z->g * d;
    for (int t = 0; t < seen; t++) {
        p[t] = dot(a->x[Q] + row, a->x[K] + key + t * step, d) * scale + (z->masked ? a->x[MASK][s * z->t + t] : 0);
        max = fmax(max, p[t]);
    }
    if (max == -INFINITY) return;
    for (int t = 0; t < seen; t++) sum += p[t] = exp(p[t] - max);
    for (int t = 0; t < seen; t++) {
        p[t] /= sum;
        add(a->x[OUT] + row, a->x[V] + key + t * step, p[t], d);
        delta += p[t] * dot(a->x[UP] + row, a->x[V] + key + t * step, d);
    }
    for (int t = 0; t < seen; t++) {
        double back = p[t] * (dot(a->x[UP] + row, a->x[V] + key + t * step, d) - delta);
        a->x[DMASK][s * z->t + t] += back;
        back *= scale;
        add(a->x[DQ] + row, a->x[K] + key + t * step, back, d);
        add(a->x[DK] + key + t * step, a->x[Q] + row, back, d);
        add(a->x[DV] + key + t * step, a->x[UP] + row, p[t], d);
    }
}

static void reference(const sizes *z, arrays *a)
{
    double *p = malloc(((size_t)z->t + 1) * sizeof *p);
    for (int b = 0; b < z->b; b++)
        for (int s = 0; s < z->s; s++)
            for (int h = 0; h < z->h; h++) reference_row(z, a, b, s, h, p);
    free(p);
}

/* ---- against them ------------------------------------------------------------------------------------------------ */

static const sizes samples[] = {
    { 2, 5, 5, 4, 2, 3, .causal = true },
    { 1, 3, 7, 3, 1, 8, .scale = 0.5 },
    { 4, 8, 8, 8, 8, 8, .causal = true },
    { 2, 70, 130, 8, 4, 20, .scale = 0 },
    { 1, 9, 9, 3, 3, 4, .causal = true },
    { 1, 130, 70, 2, 2, 80, .causal = true },
    { 1, 200, 200, 3, 1, 16, .causal = true, .masked = true },
    { 1, 64, 128, 2, 1, 64, .masked = true },
    { 1, 1, 129, 1, 1, 1, .scale = 0 },
    { 2, 3, 0, 2, 1, 4, .scale = 0 }, { 0, 3, 2, 2, 1, 4, .scale = 0 }, { 1, 0, 3, 2, 1, 4, .causal = true },
};

typedef struct lying { const char *q, *k, *out, *dk; bool free; } lying;

/* out NULL: not told. free: nothing is sent, forward and back, where ranks hold whole groups of heads. */
static const lying layouts[] = {
    { "", "", "", "", true },
    { "x:S(0)", "x:S(0)", "x:S(0)", "x:S(0)", true },
    { "x:S(2)", "x:S(2)", "x:S(2)", "x:S(2)", true },
    { "x:S(1)", "", "x:S(1)", "x:P", true },
    { "x:S(1)", "x:S(1)", NULL, NULL, false },
    { "x:S(3)", "x:S(2)", NULL, NULL, false },
    { "", "x:P", NULL, NULL, false },
};

static dt_tensor *tensor(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const double *x, const char *placements)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
    dt_tensor *wide = dt_from_host(dt_spec_create(mesh, DT_F64, shape, placements), -1, x, (size_t)n * sizeof *x);
    return dtype == DT_F64 ? wide : dt_cast(wide, dtype);
}

static void expect_close(dt_tensor *y, const double *due, double tolerance, const char *what, const lying *at,
                         const sizes *z)
{
    if (!expect(y != NULL, "%s: none", what)) return;
    const dt_spec *spec = dt_tensor_spec(y);
    dt_dtype dtype = dt_spec_dtype(spec);
    dt_tensor *whole = tensor(dt_spec_mesh(spec), DT_F64, dt_spec_shape(spec), due, "");
    expect(dt_tensor_close(dtype == DT_F64 ? y : dt_cast(y, DT_F64), whole, tolerance, tolerance),
           "%s of q %s, k %s, [%d,%d,%d,%d] and [%d,%d], is %s", what, at->q, at->k, z->b, z->s, z->h, z->d, z->t, z->g,
           dt_spec_text(spec));
}

static int64_t received(dt_mesh *mesh)
{
    dt_counters now = dt_mesh_counters(mesh, NULL);
    int64_t sum = 0;
    for (int i = 0; i < DT_COMM_KIND_COUNT; i++) sum += now.bytes[i];
    return sum;
}

static void expect_lies(dt_tensor *x, const char *placements, const char *what, const lying *at)
{
    dt_shape shape = x ? dt_spec_shape(dt_tensor_spec(x)) : DT_SCALAR;
    for (int d = 0; d < shape.n; d++)
        if (shape.dim[d] == 0) return;                                 /* it moves for nothing                     */
    expect(!x || !placements || dt_spec_has(dt_tensor_spec(x), placements), "%s of q %s, k %s: %s", what, at->q, at->k,
           x ? dt_spec_text(dt_tensor_spec(x)) : "");
}

static void try_layout(dt_mesh *mesh, const sizes *z, const arrays *a, const lying *at, dt_dtype dtype,
                       double tolerance)
{
    dt_shape q_shape = DT_SHAPE(z->b, z->s, z->h, z->d), k_shape = DT_SHAPE(z->b, z->t, z->g, z->d);
    dt_tensor *q = dt_require_grad(tensor(mesh, dtype, q_shape, a->x[Q], at->q));
    dt_tensor *k = dt_require_grad(tensor(mesh, dtype, k_shape, a->x[K], at->k));
    dt_tensor *v = dt_require_grad(tensor(mesh, dtype, k_shape, a->x[V], at->k));
    dt_tensor *mask = z->masked ? dt_require_grad(tensor(mesh, dtype, DT_SHAPE(z->s, z->t), a->x[MASK], "")) : NULL;
    dt_tensor *up = tensor(mesh, dtype, q_shape, a->x[UP], at->free ? at->out : "");
    int64_t before = received(mesh);
    dt_tensor *y = dt_attention(q, k, v, &(dt_attention_params){ z->causal, z->scale, mask });
    if (!expect(y && dt_backward(y, up) == DT_OK, "%s", dt_context_error(dt_mesh_context(mesh)))) return;
    expect(!at->free || received(mesh) == before, "q %s, k %s: %lld bytes", at->q, at->k,
           (long long)(received(mesh) - before));
    expect_lies(y, at->out, "the result", at);
    expect_lies(dt_grad(q), at->free ? at->q : NULL, "dq", at);
    expect_lies(dt_grad(k), at->dk, "dk", at);
    expect_close(y, a->x[OUT], tolerance, "the result", at, z);
    expect_close(dt_grad(q), a->x[DQ], tolerance, "dq", at, z);
    expect_close(dt_grad(k), a->x[DK], tolerance * 8, "dk", at, z);
    expect_close(dt_grad(v), a->x[DV], tolerance * 8, "dv", at, z);
    if (mask) expect_close(dt_grad(mask), a->x[DMASK], tolerance * 8, "the mask's gradient", at, z);
}

static const struct { dt_dtype dtype; double tolerance; } dtypes[] = {
    { DT_F64, 1e-13 }, { DT_F32, 2e-6 }, { DT_BF16, 3e-2 },
};

/* A group of heads that ranks divide among them is redistributed first. */
static lying layout(const sizes *z, int i, int ranks)
{
    lying at = layouts[i];
    if (z->h == z->g || z->g % ranks == 0 || strcmp(at.q, "x:S(2)") != 0) return at;
    return (lying){ at.q, at.k, NULL, NULL, false };
}

static void try_all(dt_mesh *mesh, const sizes *z, const arrays *a, int i)
{
    lying at = layout(z, i, dt_rank_count(dt_mesh_context(mesh)));
    for (int k = 0; k < (i ? 1 : DT_COUNT(dtypes)); k++) {
        int scope = dt_scope_push(dt_mesh_context(mesh), 0);
        try_layout(mesh, z, a, &at, dtypes[k].dtype, dtypes[k].tolerance);
        dt_scope_pop(dt_mesh_context(mesh), scope, NULL);
    }
}

static dt_status run_attention(dt_context *ctx, void *arg)
{
    const sizes *z = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    arrays a;
    arrays_new(z, &a);
    reference(z, &a);
    for (int i = 0; i < DT_COUNT(layouts); i++) try_all(mesh, z, &a, i);
    arrays_free(&a);
    return dt_context_status(ctx);
}

static void by_loops(void)
{
    for (int i = 0; i < DT_COUNT(samples); i++)
        for (int ranks = 1; ranks <= 4; ranks += ranks) launch(ranks, run_attention, &samples[i]);
}

/* Fewer heads of k and v than ranks: they lie whole along a second mesh dim, and their gradients are summed there. */
static dt_status run_few_heads(dt_context *ctx, void *arg)
{
    static const sizes z = { 2, 5, 5, 8, 2, 4, .causal = true };
    static const lying at = { "g:S(2),r:S(2)", "g:S(2)", "g:S(2),r:S(2)", "g:S(2),r:P", true };
    arrays a;
    (void)arg;
    arrays_new(&z, &a);
    reference(&z, &a);
    try_layout(dt_mesh_create(ctx, "g=2,r=2"), &z, &a, &at, DT_F64, 1e-13);
    arrays_free(&a);
    return dt_context_status(ctx);
}

static void few_heads(void) { launch(4, run_few_heads, NULL); }

/* ---- what a row hangs on ----------------------------------------------------------------------------------------- */

enum { LONG = 200, HEADS = 3, WIDE = 20, FROM = 150 };

typedef struct row_test { dt_tensor *y, *dq; } row_test;

/* Of f32, causal; at key FROM of k and v, and at query 10 of what comes back, there is *odd*. */
static row_test attend_long(dt_mesh *mesh, const arrays *a, double odd, const char *placements)
{
    dt_shape shape = DT_SHAPE(1, LONG, HEADS, WIDE);
    arrays b = *a;
    static const int changed[] = { K, V, UP };
    for (int i = 0; i < DT_COUNT(changed); i++) {
        int64_t at = (int64_t)(changed[i] == UP ? 10 : FROM) * HEADS * WIDE + 7;
        b.x[changed[i]] = malloc((size_t)a->n[changed[i]] * sizeof(double));
        memcpy(b.x[changed[i]], a->x[changed[i]], (size_t)a->n[changed[i]] * sizeof(double));
        if (odd != 0) b.x[changed[i]][at] = odd;
    }
    dt_tensor *q = dt_require_grad(tensor(mesh, DT_F32, shape, b.x[Q], placements));
    dt_tensor *k = tensor(mesh, DT_F32, shape, b.x[K], ""), *v = tensor(mesh, DT_F32, shape, b.x[V], "");
    dt_tensor *y = dt_attention(q, k, v, &(dt_attention_params){ .causal = true });
    dt_backward(y, tensor(mesh, DT_F32, shape, b.x[UP], ""));
    for (int i = 0; i < DT_COUNT(changed); i++) free(b.x[changed[i]]);
    return (row_test){ y, dt_grad(q) };
}

/* Positions first .. last - 1 of two are finite, and as near as that. */
static void expect_same(dt_tensor *x, dt_tensor *y, int64_t first, int64_t last, double near, const char *what)
{
    enum { ROW = HEADS * WIDE };
    float *one = calloc(LONG * ROW, sizeof *one), *other = calloc(LONG * ROW, sizeof *other);
    dt_tensor_to_host(x, -1, one, LONG * ROW * sizeof *one);
    dt_tensor_to_host(y, -1, other, LONG * ROW * sizeof *other);
    int64_t odd = 0;
    for (int64_t i = first * ROW; i < last * ROW; i++) odd += !(fabs((double)one[i] - other[i]) <= near);
    expect(odd == 0, "%s: %lld of %lld differ", what, (long long)odd, (long long)((last - first) * ROW));
    free(one);
    free(other);
}

static dt_status run_rows(dt_context *ctx, void *arg)
{
    static const sizes z = { 1, LONG, LONG, HEADS, HEADS, WIDE, .causal = true };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    arrays a;
    (void)arg;
    arrays_new(&z, &a);
    row_test whole = attend_long(mesh, &a, 0, ""), split = attend_long(mesh, &a, 0, "x:S(1)");
    expect_same(split.y, whole.y, 0, LONG, 0, "the result where queries are split");
    expect_same(split.dq, whole.dq, 0, LONG, 0, "dq where queries are split");
    row_test odd = attend_long(mesh, &a, NAN, ""), far = attend_long(mesh, &a, INFINITY, "");
    expect_same(odd.y, whole.y, 0, FROM, 0, "rows that see no NaN");
    expect_same(odd.dq, whole.dq, 0, 10, 0, "dq of rows that see no NaN");
    expect_same(odd.dq, whole.dq, 11, FROM, 0, "dq of later rows that see no NaN");
    expect_same(far.y, whole.y, 0, FROM, 0, "rows that see no infinity");
    arrays_free(&a);
    return dt_context_status(ctx);
}

static void rows_by_themselves(void)
{
    for (int ranks = 1; ranks <= 3; ranks += 2) launch(ranks, run_rows, NULL);
}

/* A NaN that comes back to query 10 reaches no key behind it. */
static dt_status run_keys(dt_context *ctx, void *arg)
{
    static const sizes z = { 1, LONG, LONG, HEADS, HEADS, WIDE, .causal = true };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_shape shape = DT_SHAPE(1, LONG, HEADS, WIDE);
    dt_tensor *grad[2][2];
    arrays a;
    (void)arg;
    arrays_new(&z, &a);
    for (int i = 0; i < 2; i++) {
        for (int64_t e = 10 * HEADS * WIDE; i && e < 11 * HEADS * WIDE; e++) a.x[UP][e] = NAN;
        for (int64_t e = 0; i == 0 && e < 11 * HEADS * WIDE; e++) a.x[UP][e] = 0;
        for (int64_t e = 0; i && e < 10 * HEADS * WIDE; e++) a.x[UP][e] = 0;
        dt_tensor *k = dt_require_grad(tensor(mesh, DT_F32, shape, a.x[K], ""));
        dt_tensor *v = dt_require_grad(tensor(mesh, DT_F32, shape, a.x[V], ""));
        dt_tensor *y = dt_attention(tensor(mesh, DT_F32, shape, a.x[Q], ""), k, v,
                                    &(dt_attention_params){ .causal = true });
        dt_backward(y, tensor(mesh, DT_F32, shape, a.x[UP], ""));
        grad[i][0] = dt_grad(k);
        grad[i][1] = dt_grad(v);
    }
    expect_same(grad[0][0], grad[1][0], 11, LONG, 1e-5, "dk of keys that query 10 does not see");
    expect_same(grad[0][1], grad[1][1], 11, LONG, 1e-5, "dv of keys that query 10 does not see");
    arrays_free(&a);
    return dt_context_status(ctx);
}

static void keys_not_seen(void) { launch(1, run_keys, NULL); }

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static dt_status run_errors(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    dt_tensor *q = dt_zeros(dt_spec_parse(mesh, "f32[2,3,7,4]")), *k = dt_zeros(dt_spec_parse(mesh, "f32[2,3,2,4]"));
    dt_tensor *odd = dt_zeros(dt_spec_parse(mesh, "f32[2,3,2,5]")), *flat = dt_zeros(dt_spec_parse(mesh, "f32[6,4]"));
    dt_attention(q, k, k, NULL);
    expect_error(ctx, DT_ERR_SHAPE, "to be (g r) with g = 2, got 7", "7 heads read 2");
    dt_attention(odd, k, k, NULL);
    expect_error(ctx, DT_ERR_SHAPE, "one size for d", "two sizes of heads");
    dt_attention(k, k, k, &(dt_attention_params){ .mask = flat });
    expect_error(ctx, DT_ERR_SHAPE, "", "a mask of another size");
    dt_rope(odd, 10000, 0);
    expect_error(ctx, DT_ERR_SHAPE, "expected an even d, for pairs, got 5", "an odd d");
    dt_rope(flat, 10000, 0);
    expect_error(ctx, DT_ERR_SHAPE, "rope", "two dims");
    dt_rope(k, 0, 0);
    expect_error(ctx, DT_ERR_ARG, "expected a base above 0, got 0", "no base");
    static const double bad[] = { -0.1, 1, NAN };
    for (int i = 0; i < DT_COUNT(bad); i++) {
        expect(!dt_dropout(k, bad[i], 1), "p %g", bad[i]);
        expect_error(ctx, DT_ERR_ARG, "expected p in [0, 1)", "p out of range");
    }
    return dt_context_status(ctx);
}

static void errors(void) { launch(1, run_errors, NULL); }

/* ---- rope -------------------------------------------------------------------------------------------------------- */

static dt_status run_rope(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "x:S(0)", "x:S(1)", "x:S(2)", "x:S(3)", "x:P" };
    enum { B = 2, S = 5, H = 3, D = 6, OFFSET = 7 };
    static const double base = 100;
    double x[B * S * H * D], due[B * S * H * D];
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < B * S * H * D; i++) x[i] = drawn(Q, i);
    for (int row = 0; row < B * S * H; row++)
        for (int i = 0; i < D / 2; i++) {
            double angle = (OFFSET + row / H % S) * pow(base, -2.0 * i / D);
            double one = x[row * D + i], other = x[row * D + D / 2 + i];
            due[row * D + i] = one * cos(angle) - other * sin(angle);
            due[row * D + D / 2 + i] = other * cos(angle) + one * sin(angle);
        }
    for (int i = 0; i < DT_COUNT(places); i++) {
        dt_tensor *y = dt_rope(tensor(mesh, DT_F64, DT_SHAPE(B, S, H, D), x, places[i]), base, OFFSET);
        expect(dt_tensor_close(y, tensor(mesh, DT_F64, DT_SHAPE(B, S, H, D), due, ""), 0, 1e-14), "rope of %s",
               places[i]);
        expect(i == 4 || dt_spec_has(dt_tensor_spec(y), places[i]), "%s: %s", places[i],
               dt_spec_text(dt_tensor_spec(y)));
    }
    return dt_context_status(ctx);
}

static void turns_by_position(void)
{
    for (int ranks = 1; ranks <= 3; ranks++) launch(ranks, run_rope, NULL);
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

static dt_status run_dropout(dt_context *ctx, void *arg)
{
    static const char *const places[] = { "", "x:S(0)", "x:S(1)", "x:P" };
    uint64_t *sums = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const dt_spec *spec = dt_spec_parse(mesh, "f64[50,41]");
    dt_tensor *y = dt_dropout(dt_full(spec, 1), 0.25, 9), *other = dt_dropout(dt_full(spec, 1), 0.25, 10);
    dt_tensor *high = dt_dropout(dt_full(spec, 1), 0.25, 9 + (UINT64_C(1) << 32));
    double kept = dt_tensor_item(dt_sum(y, DT_ALL, false)) * 0.75 / (50 * 41);
    expect(fabs(kept - 0.75) < 0.04, "of 3/4 are kept %g", kept);
    expect(dt_tensor_item(dt_max(y, DT_ALL, false)) == 1 / 0.75, "they grow by 1/(1-p)");
    expect(!dt_tensor_close(y, other, 0, 0) && !dt_tensor_close(y, high, 0, 0), "another key draws the same");
    expect(dt_tensor_close(y, dt_dropout(dt_full(spec, 1), 0.25, 9), 0, 0), "one key draws twice");
    expect(dt_tensor_close(dt_dropout(y, 0, 9), y, 0, 0), "p = 0 drops");
    for (int i = 0; i < DT_COUNT(places); i++) {
        dt_tensor *x = dt_require_grad(dt_full(dt_spec_replace(spec, places[i]), 1));
        dt_tensor *z = dt_dropout(x, 0.25, 9);
        expect(dt_tensor_close(z, y, 0, 0) && dt_spec_has(dt_tensor_spec(z), places[i]), "%s: %s", places[i],
               dt_spec_text(dt_tensor_spec(z)));
        dt_backward(z, dt_full(spec, 1));
        expect(dt_tensor_close(dt_grad(x), y, 0, 0), "%s: the gradient has another mask", places[i]);
    }
    dt_tensor *narrow = dt_dropout(dt_full(dt_spec_parse(mesh, "bf16[50,41]"), 3), 0.25, 9);
    expect(dt_tensor_close(dt_cast(narrow, DT_F64), dt_mul_scalar(y, 3), 0, 0), "bf16 has another mask");
    dt_tensor *nan = dt_dropout(dt_full(spec, NAN), 0.25, 9), *is = dt_cast(dt_ne(nan, nan), DT_F64);
    expect(dt_tensor_close(dt_mul_scalar(is, 1 / 0.75), y, 0, 0), "what is dropped is 0, whatever it was");
    uint64_t sum = dt_tensor_checksum(y);
    if (dt_rank(ctx) == 0) sums[0] = sum;
    return dt_context_status(ctx);
}

static void one_mask(void)
{
    uint64_t first = 0, sum = 0;
    launch(1, run_dropout, &first);
    for (int ranks = 2; ranks <= 4; ranks++) {
        launch(ranks, run_dropout, &sum);
        expect(sum == first, "%d ranks draw another mask", ranks);
    }
}

static const test_row rows[] = {
    { "by_loops", by_loops }, { "few_heads", few_heads }, { "errors", errors },
    { "rows_by_themselves", rows_by_themselves }, { "keys_not_seen", keys_not_seen },
    { "turns_by_position", turns_by_position }, { "one_mask", one_mask },
};

const suite the_suite = { "attention", rows, DT_COUNT(rows) };
