/* SPDX-License-Identifier: Apache-2.0
 *
 * Cross-entropy and its gradient against loops over whole rows of logits, on every placement, with all reductions,
 * class weights, smoothing and ignored targets; what it communicates; what it refuses. */
#include <math.h>
#include <stdlib.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

/* ---- by loops ---------------------------------------------------------------------------------------------------- */

enum { MAX_ROWS = 24, MAX_CLASSES = 1300 };

typedef struct problem {
    const char *logits, *targets, *weights; /* specs without placements                                            */
    int rows, classes;
    double smoothing;
    bool weighted;
    int ignore;                        /* every so many targets is ignored; 1: all; 0: none                        */
} problem;

static const problem problems[] = {
    { "f64[8,16]", "i64[8]", "f64[16]", 8, 16, 0, false, 0 },
    { "f64[8,16]", "i64[8]", "f64[16]", 8, 16, 0.1, true, 3 },
    { "f64[8,16]", "i32[8]", "f32[16]", 8, 16, 0, true, 3 },
    { "f64[8,16]", "i64[8]", "f64[16]", 8, 16, 1, false, 2 },
    { "f64[8,16]", "i64[8]", "f64[16]", 8, 16, 0.1, true, 1 },
    { "f64[2,3,13]", "i64[2,3]", "f64[13]", 6, 13, 0.3, false, 4 },
    { "f64[2,3,3]", "i64[2,3]", "f64[3]", 6, 3, 0.3, true, 4 },
    { "f64[5]", "i64[]", "f64[5]", 1, 5, 0.2, true, 0 },
    { "f64[2,1300]", "i64[2]", "f64[1300]", 2, 1300, 0.2, true, 0 },
};

static double drawn(int array, int64_t i)
{
    uint64_t hash = ((uint64_t)i * 2654435761u + (uint64_t)array * 40503u + 12345) % 1000003;
    return (double)hash / 1000003;
}

static double logit(int64_t i) { return 8 * drawn(1, i) - 4; }
static double weight(const problem *p, int64_t c) { return p->weighted ? 0.25 + (double)(c % 4) / 2 : 1; }

static int target(const problem *p, int row)
{
    return p->ignore && row % p->ignore == 0 ? -1 - row : (int)(drawn(2, row) * p->classes);
}

typedef struct answer { double loss[MAX_ROWS], weight, *slope; } answer;

/* One row: the loss, and its slope by each logit. */
static void row_by_loops(const problem *p, int row, answer *a)
{
    double sum = 0, *slope = a->slope + row * p->classes;
    int y = target(p, row);
    a->loss[row] = 0;
    for (int c = 0; c < p->classes; c++) slope[c] = 0;
    if (y < 0) return;
    for (int c = 0; c < p->classes; c++) sum += exp(logit((int64_t)row * p->classes + c));
    for (int c = 0; c < p->classes; c++) {
        double log_p = logit((int64_t)row * p->classes + c) - log(sum);
        double q = weight(p, c) * ((c == y ? 1 - p->smoothing : 0) + p->smoothing / p->classes);
        a->loss[row] -= q * log_p;
        slope[c] -= q;
        for (int k = 0; k < p->classes; k++) slope[k] += q * exp(logit((int64_t)row * p->classes + k)) / sum;
    }
    a->weight += weight(p, y);
}

static answer by_loops(const problem *p)
{
    answer a = { .slope = malloc((size_t)(p->rows * p->classes) * sizeof(double)) };
    for (int row = 0; row < p->rows; row++) row_by_loops(p, row, &a);
    return a;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static dt_tensor *numbers(dt_mesh *mesh, const char *text, const char *placements, const double *values, int64_t n)
{
    const dt_spec *spec = dt_spec_parse(mesh, text);
    const dt_spec *wide = dt_spec_replace(dt_spec_create(mesh, DT_F64, dt_spec_shape(spec), ""), placements);
    dt_tensor *x = dt_from_host(wide, -1, values, (size_t)n * sizeof *values);
    return dt_spec_dtype(spec) == DT_F64 ? x : dt_cast(x, dt_spec_dtype(spec));
}

static dt_tensor *logits_of(dt_mesh *mesh, const problem *p, const char *placements)
{
    int64_t n = (int64_t)p->rows * p->classes;
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++) values[i] = logit(i);
    dt_tensor *x = numbers(mesh, p->logits, placements, values, n);
    free(values);
    return x;
}

static dt_tensor *targets_of(dt_mesh *mesh, const problem *p, const char *placements)
{
    double values[MAX_ROWS];
    for (int i = 0; i < p->rows; i++) values[i] = target(p, i);
    return numbers(mesh, p->targets, placements, values, p->rows);
}

static dt_tensor *weights_of(dt_mesh *mesh, const problem *p, const char *placements)
{
    double values[MAX_CLASSES];
    for (int c = 0; c < p->classes; c++) values[c] = weight(p, c);
    return p->weighted ? numbers(mesh, p->weights, placements, values, p->classes) : NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double divisor(const answer *a, dt_reduction reduction)
{
    return reduction == DT_REDUCTION_MEAN && a->weight > 0 ? a->weight : 1;
}

/* What comes back to each loss where nothing is reduced. */
static double up(int row) { return 0.5 + row; }

static void check_loss(const problem *p, const answer *a, dt_reduction reduction, dt_tensor *loss, const char *where)
{
    double got[MAX_ROWS] = { 0 }, sum = 0;
    int n = reduction == DT_REDUCTION_NONE ? p->rows : 1;
    if (!expect(loss, "%s of %s: nothing", p->logits, where)) return;
    dt_tensor_to_host(loss, -1, got, (size_t)n * sizeof *got);
    for (int row = 0; row < p->rows; row++) sum += a->loss[row] / divisor(a, reduction);
    for (int i = 0; i < n; i++) {
        double due = reduction == DT_REDUCTION_NONE ? a->loss[i] : sum;
        expect(fabs(got[i] - due) <= 1e-12 * (1 + fabs(due)), "%s, %s, reduction %d: loss %d is %.15g, by loops %.15g",
               p->logits, where, (int)reduction, i, got[i], due);
    }
}

static void check_gradient(const problem *p, const answer *a, dt_reduction reduction, dt_tensor *x, const char *where)
{
    int64_t n = (int64_t)p->rows * p->classes;
    double *due = malloc((size_t)n * sizeof *due);
    for (int64_t i = 0; i < n; i++) {
        int row = (int)(i / p->classes);
        due[i] = a->slope[i] * (reduction == DT_REDUCTION_NONE ? up(row) : 1 / divisor(a, reduction));
    }
    dt_tensor *wanted = numbers(dt_spec_mesh(dt_tensor_spec(x)), p->logits, "", due, n);
    expect(dt_tensor_close(dt_grad(x), wanted, 1e-12, 1e-13), "%s, %s, reduction %d: gradient", p->logits, where,
           (int)reduction);
    free(due);
}

static dt_tensor *seed_of(dt_mesh *mesh, const problem *p)
{
    double values[MAX_ROWS];
    dt_shape shape = dt_spec_shape(dt_spec_parse(mesh, p->targets));
    for (int row = 0; row < p->rows; row++) values[row] = up(row);
    return dt_from_host(dt_spec_create(mesh, DT_F64, shape, ""), -1, values, (size_t)p->rows * sizeof *values);
}

static const struct { const char *logits, *targets, *weights; } places[] = {
    { "", "", "" }, { "x:S(0)", "x:S(0)", "" }, { "x:S(0)", "", "x:S(0)" }, { "x:S(-1)", "", "" },
    { "x:S(-1)", "", "x:S(0)" }, { "", "x:S(0)", "x:S(0)" }, { "x:P", "", "" },
};

static void check(dt_mesh *mesh, const problem *p, const answer *a, dt_reduction reduction, int place)
{
    dt_context *ctx = dt_mesh_context(mesh);
    int scope = dt_scope_push(ctx, 0);
    const char *placements = places[place].targets, *where = places[place].logits;
    if (dt_spec_shape(dt_spec_parse(mesh, p->targets)).n == 0) placements = "";
    dt_tensor *x = dt_require_grad(logits_of(mesh, p, where)), *targets = targets_of(mesh, p, placements);
    dt_tensor *loss = dt_cross_entropy(x, targets, &(dt_cross_entropy_params){
        reduction, p->smoothing, weights_of(mesh, p, places[place].weights) });
    check_loss(p, a, reduction, loss, where);
    dt_backward(loss, reduction == DT_REDUCTION_NONE ? seed_of(mesh, p) : NULL);
    expect_no_error(ctx, p->logits);
    check_gradient(p, a, reduction, x, where);
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status everywhere(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < DT_COUNT(problems); i++) {
        answer a = by_loops(&problems[i]);
        for (int place = 0; place < DT_COUNT(places); place++)
            for (int r = DT_REDUCTION_MEAN; r <= DT_REDUCTION_NONE; r++)
                check(mesh, &problems[i], &a, (dt_reduction)r, place);
        free(a.slope);
    }
    return dt_context_status(ctx);
}

static void as_by_loops(void)
{
    for (int ranks = 1; ranks <= 4; ranks++) launch(ranks, everywhere, NULL);
}

/* ---- known values ------------------------------------------------------------------------------------------------ */

static double loss_of(dt_tensor *x, dt_tensor *targets, dt_reduction reduction, double smoothing, dt_tensor *weights)
{
    return dt_tensor_item(dt_cross_entropy(x, targets, &(dt_cross_entropy_params){ reduction, smoothing, weights }));
}

/* Probabilities are 1/4, 3/4 in each row. */
static dt_status by_hand(dt_context *ctx, void *arg)
{
    static const double rows[] = { 0, 1.0986122886681098, 100, 101.0986122886681098 }, both[] = { 2, 3 };
    static const int64_t first[] = { 0, 1 }, second[] = { 0, -100 }, none[] = { -1, -2 };
    const double quarter = log(4), rest = log(4.0 / 3);
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_from_host(dt_spec_parse(mesh, "f64[2,2]"), -1, rows, sizeof rows);
    dt_tensor *w = dt_from_host(dt_spec_parse(mesh, "f64[2]"), -1, both, sizeof both);
    dt_tensor *a = dt_from_host(dt_spec_parse(mesh, "i64[2]"), -1, first, sizeof first);
    dt_tensor *b = dt_from_host(dt_spec_parse(mesh, "i64[2]"), -1, second, sizeof second);
    dt_tensor *c = dt_from_host(dt_spec_parse(mesh, "i64[2]"), -1, none, sizeof none);
    (void)arg;
    const struct { dt_tensor *targets, *weights; dt_reduction reduction; double smoothing, due; } cases[] = {
        { a, NULL, DT_REDUCTION_SUM, 0, quarter + rest },
        { a, NULL, DT_REDUCTION_MEAN, 0, (quarter + rest) / 2 },
        { b, NULL, DT_REDUCTION_MEAN, 0, quarter },
        { c, NULL, DT_REDUCTION_MEAN, 0, 0 },
        { c, w, DT_REDUCTION_MEAN, 0.1, 0 },
        { a, w, DT_REDUCTION_SUM, 0, 2 * quarter + 3 * rest },
        { a, w, DT_REDUCTION_MEAN, 0, (2 * quarter + 3 * rest) / 5 },
        { b, w, DT_REDUCTION_MEAN, 0, quarter },
        { b, NULL, DT_REDUCTION_SUM, 0.1, 0.9 * quarter + 0.05 * (quarter + rest) },
        { b, w, DT_REDUCTION_SUM, 0.1, 0.9 * 2 * quarter + 0.05 * (2 * quarter + 3 * rest) },
        { b, w, DT_REDUCTION_MEAN, 0.1, (0.9 * 2 * quarter + 0.05 * (2 * quarter + 3 * rest)) / 2 },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        double got = loss_of(x, cases[i].targets, cases[i].reduction, cases[i].smoothing, cases[i].weights);
        expect(fabs(got - cases[i].due) < 1e-12, "case %d: %.15g, by hand %.15g", i, got, cases[i].due);
    }
    expect(fabs(dt_tensor_item(dt_cross_entropy(x, a, NULL)) - (quarter + rest) / 2) < 1e-12, "no params: the mean");
    dt_tensor *narrow = dt_require_grad(dt_cast(x, DT_BF16)), *loss = dt_cross_entropy(narrow, a, NULL);
    expect(dt_spec_dtype(dt_tensor_spec(loss)) == DT_BF16, "%s", dt_spec_text(dt_tensor_spec(loss)));
    dt_backward(loss, NULL);
    const dt_spec *grad = dt_tensor_spec(dt_grad(narrow));
    expect(dt_spec_dtype(grad) == DT_BF16, "%s", dt_spec_text(grad));
    return dt_context_status(ctx);
}

/* Logits far from 0, and those that are hidden. */
static dt_status at_the_ends(dt_context *ctx, void *arg)
{
    static const double rows[] = { 1e300, -1e300, 0, -INFINITY, 5, -INFINITY, 5, -INFINITY };
    static const int64_t targets[] = { 0, 1, 0, 0 };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_require_grad(dt_from_host(dt_spec_parse(mesh, "f64[4,2]"), -1, rows, sizeof rows));
    dt_tensor *y = dt_from_host(dt_spec_parse(mesh, "i64[4]"), -1, targets, sizeof targets);
    double got[4], grad[8];
    (void)arg;
    dt_tensor *loss = dt_cross_entropy(x, y, &(dt_cross_entropy_params){ .reduction = DT_REDUCTION_NONE });
    dt_tensor_to_host(loss, -1, got, sizeof got);
    for (int i = 0; i < 4; i++) expect(got[i] == (i == 1 ? INFINITY : 0), "loss %d is %g", i, got[i]);
    dt_backward(loss, dt_full(dt_spec_parse(mesh, "f64[4]"), 1));
    dt_tensor_to_host(dt_grad(x), -1, grad, sizeof grad);
    for (int i = 0; i < 8; i++)
        expect(grad[i] == (i == 2 ? 1 : i == 3 ? -1 : 0), "gradient %d is %g", i, grad[i]);
    return dt_context_status(ctx);
}

static void known_values(void)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        launch(ranks, by_hand, NULL);
        launch(ranks, at_the_ends, NULL);
    }
}

/* ---- communication ----------------------------------------------------------------------------------------------- */

static int64_t calls(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t n = 0;
    for (int kind = 0; kind < DT_COMM_LOCAL; kind++) n += counters.calls[kind];
    return n;
}

/* A split batch: what a mean divides by is reduced, nothing else is. */
static dt_status batch(dt_context *ctx, void *arg)
{
    const problem *p = &problems[1];
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int r = DT_REDUCTION_MEAN; r <= DT_REDUCTION_NONE; r++) {
        dt_tensor *x = dt_require_grad(logits_of(mesh, p, "x:S(0)")), *y = targets_of(mesh, p, "x:S(0)");
        int64_t before = calls(mesh);
        dt_tensor *loss = dt_cross_entropy(x, y, &(dt_cross_entropy_params){ (dt_reduction)r, 0.1,
                                           weights_of(mesh, p, "") });
        expect(dt_spec_has(dt_tensor_spec(loss), r == DT_REDUCTION_NONE ? "x:S(0)" : "x:P"), "%s",
               dt_spec_text(dt_tensor_spec(loss)));
        dt_tensor *seed = r == DT_REDUCTION_NONE ? dt_full(dt_tensor_spec(loss), 1) : NULL;
        dt_backward(loss, seed);
        expect(calls(mesh) - before == (r == DT_REDUCTION_MEAN), "reduction %d: %lld calls", r,
               (long long)(calls(mesh) - before));
        expect(dt_spec_has(dt_tensor_spec(dt_grad(x)), "x:S(0)"), "%s", dt_spec_text(dt_tensor_spec(dt_grad(x))));
    }
    return dt_context_status(ctx);
}

/* Split classes: three small all-reduces forward, none backward, whatever is asked for. */
static dt_status vocabulary(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < 3 * DT_COUNT(problems); i++) {
        const problem *p = &problems[i / 3];
        dt_reduction reduction = (dt_reduction)(i % 3);
        dt_tensor *x = dt_require_grad(logits_of(mesh, p, "x:S(-1)")), *y = targets_of(mesh, p, "");
        dt_tensor *weights = weights_of(mesh, p, "x:S(0)");
        int64_t before = calls(mesh), bytes = dt_mesh_counters(mesh, NULL).bytes[DT_COMM_ALL_REDUCE];
        int64_t implied = dt_mesh_counters(mesh, NULL).implied;
        dt_tensor *loss = dt_cross_entropy(x, y, &(dt_cross_entropy_params){ reduction, p->smoothing, weights });
        dt_counters after = dt_mesh_counters(mesh, NULL);
        expect(calls(mesh) - before == 3 && after.calls[DT_COMM_ALL_REDUCE] == calls(mesh),
               "%s, reduction %d: %lld calls", p->logits, (int)reduction, (long long)(calls(mesh) - before));
        bytes = after.bytes[DT_COMM_ALL_REDUCE] - bytes;
        int64_t most = (dt_mesh_size(mesh, NULL) - 1) * 8 * (p->weighted ? 5 : 3) * p->rows;
        expect(bytes <= most, "%s: %lld bytes, more than %lld", p->logits, (long long)bytes, (long long)most);
        expect(after.implied - implied == 3, "%s: %lld implied moves", p->logits, (long long)(after.implied - implied));
        expect(dt_spec_has(dt_tensor_spec(loss), "x:R"), "%s", dt_spec_text(dt_tensor_spec(loss)));
        dt_backward(loss, reduction == DT_REDUCTION_NONE ? seed_of(mesh, p) : NULL);
        expect(calls(mesh) - before == 3, "%s, reduction %d: %lld calls with backward", p->logits, (int)reduction,
               (long long)(calls(mesh) - before));
        expect(dt_spec_has(dt_tensor_spec(dt_grad(x)), "x:S(-1)"), "%s", dt_spec_text(dt_tensor_spec(dt_grad(x))));
    }
    return dt_context_status(ctx);
}

/* Nothing of that is implied: strict takes it. Along two mesh dims one reduction does it for both. */
static dt_status two_dims(dt_context *ctx, void *arg)
{
    const problem *p = &problems[5];
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=2");
    (void)arg;
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    dt_tensor *x = dt_require_grad(logits_of(mesh, p, "dp:S(0),tp:S(-1)")), *y = targets_of(mesh, p, "dp:S(0)");
    dt_tensor *loss = dt_cross_entropy(x, y, NULL);
    expect_no_error(ctx, "strict");
    expect(dt_mesh_counters(mesh, "tp").calls[DT_COMM_ALL_REDUCE] == 3, "along tp");
    expect(dt_mesh_counters(mesh, "dp").calls[DT_COMM_ALL_REDUCE] == 1, "along dp");
    expect(dt_spec_has(dt_tensor_spec(loss), "dp:P,tp:R"), "%s", dt_spec_text(dt_tensor_spec(loss)));
    dt_backward(loss, NULL);
    expect(dt_spec_has(dt_tensor_spec(dt_grad(x)), "dp:S(0),tp:S(-1)"), "%s", dt_spec_text(dt_tensor_spec(dt_grad(x))));
    expect(calls(mesh) == 4, "%lld calls", (long long)calls(mesh));
    x = logits_of(mesh, p, "dp:S(-1),tp:S(-1)");
    dt_cross_entropy(x, targets_of(mesh, p, ""), &(dt_cross_entropy_params){ .reduction = DT_REDUCTION_NONE });
    expect(calls(mesh) == 7, "%lld calls", (long long)calls(mesh));
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx);
}

/* Softmax is never there: forward adds a few numbers per target, backward the gradient. */
static dt_status memory(dt_context *ctx, void *arg)
{
    static const char *const ways[] = { "f64[64,4096]", "f64[64,4096]@x:S(0)", "f64[64,4096]@x:S(1)" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    (void)arg;
    for (int i = 0; i < DT_COUNT(ways); i++) {
        int scope = dt_scope_push(ctx, 0);
        const dt_spec *spec = dt_spec_parse(mesh, ways[i]);
        int64_t whole = 64 * 4096 * 8, part = i ? whole / dt_mesh_size(mesh, NULL) : whole, few = 64 * 8 * 16;
        dt_tensor *x = dt_require_grad(dt_rand(spec, 3)), *y = dt_zeros(dt_spec_parse(mesh, "i64[64]"));
        dt_counters before = dt_mesh_counters(mesh, NULL);
        dt_tensor *loss = dt_cross_entropy(x, y, NULL);
        dt_counters after = dt_mesh_counters(mesh, NULL);
        int64_t kept = after.memory - before.memory, most = after.memory_peak - before.memory;
        expect(kept < few, "%s: %lld bytes more", ways[i], (long long)kept);
        expect(most < few || after.memory_peak == before.memory_peak, "%s: %lld bytes more at times", ways[i],
               (long long)most);
        dt_backward(loss, NULL);
        int64_t more = dt_mesh_counters(mesh, NULL).memory - before.memory;
        expect(more < part + few, "%s: with its gradient %lld bytes more", ways[i], (long long)more);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void keeps_little(void)
{
    for (int ranks = 1; ranks <= 4; ranks *= 2) launch(ranks, memory, NULL);
}

static void communication(void)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        launch(ranks, batch, NULL);
        launch(ranks, vocabulary, NULL);
    }
    launch(4, two_dims, NULL);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static dt_status refusals(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x = dt_zeros(dt_spec_parse(mesh, "f32[4,6]")), *targets = dt_zeros(dt_spec_parse(mesh, "i64[4]"));
    (void)arg;
    dt_cross_entropy(NULL, targets, NULL);
    expect_error(ctx, DT_ERR_ARG, "expected a tensor for x, got none", "no logits");
    dt_cross_entropy(x, dt_full(dt_spec_parse(mesh, "i64[4]"), 6), NULL);
    expect_error(ctx, DT_ERR_ARG, "targets below 6, got 6", "a target that is no class");
    dt_cross_entropy(dt_redistribute(x, "x:S(1)"), dt_full(dt_spec_parse(mesh, "i64[4]"), 6), NULL);
    expect_error(ctx, DT_ERR_ARG, "cross_entropy: expected targets below 6, got 6", "the same, classes split");
    dt_cross_entropy(x, targets, &(dt_cross_entropy_params){ .label_smoothing = 1.5 });
    expect_error(ctx, DT_ERR_ARG, "label_smoothing in 0 .. 1, got 1.5", "smoothing");
    dt_cross_entropy(x, targets, &(dt_cross_entropy_params){ .label_smoothing = NAN });
    expect_error(ctx, DT_ERR_ARG, "label_smoothing", "smoothing that is none");
    dt_cross_entropy(x, targets, &(dt_cross_entropy_params){ .reduction = (dt_reduction)7 });
    expect_error(ctx, DT_ERR_ARG, "7 is no DT_REDUCTION", "a reduction");
    dt_cross_entropy(x, dt_zeros(dt_spec_parse(mesh, "i64[5]")), NULL);
    expect_error(ctx, DT_ERR_SHAPE, "cross_entropy", "other rows");
    dt_cross_entropy(x, dt_zeros(dt_spec_parse(mesh, "i64[4,6]")), NULL);
    expect_error(ctx, DT_ERR_SHAPE, "cross_entropy", "targets with classes");
    dt_tensor *few = dt_full(dt_spec_parse(mesh, "f32[5]"), 1);
    dt_cross_entropy(x, targets, &(dt_cross_entropy_params){ .class_weights = few });
    expect_error(ctx, DT_ERR_SHAPE, "cross_entropy", "weights of other classes");
    dt_cross_entropy(x, dt_zeros(dt_spec_parse(mesh, "f32[4]")), NULL);
    expect_error(ctx, DT_ERR_DTYPE, "an integer for targets", "targets that are no integers");
    dt_cross_entropy(dt_zeros(dt_spec_parse(mesh, "i64[4,6]")), targets, NULL);
    expect_error(ctx, DT_ERR_DTYPE, "a float for x", "logits that are no floats");
    dt_cross_entropy(dt_zeros(dt_spec_parse(mesh, "f32[]")), targets, NULL);
    expect_error(ctx, DT_ERR_SHAPE, "at least 1 dim", "no classes");
    dt_cross_entropy(x, NULL, NULL);
    expect_error(ctx, DT_ERR_ARG, "targets", "no targets");
    expect(dt_cross_entropy(x, targets, NULL) != NULL, "the context is usable");
    return dt_context_status(ctx);
}

static void errors(void)
{
    for (int ranks = 1; ranks <= 3; ranks++) launch(ranks, refusals, NULL);
}

static const test_row rows[] = {
    { "as_by_loops", as_by_loops }, { "known_values", known_values }, { "communication", communication },
    { "keeps_little", keeps_little },
    { "errors", errors },
};

const suite the_suite = { "cross_entropy", rows, DT_COUNT(rows) };
