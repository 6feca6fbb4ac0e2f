/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of rows, in f64: on one rank against central differences, on several against one. What every row of the
 * table has, a case here has: a row with a gradient and without a case is a failure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "errors.h"

enum { MAX_ELEMENTS = 256, OPERANDS = 4 };

/* ---- cases ------------------------------------------------------------------------------------------------------- */

typedef struct sample {
    const char *op, *shapes[OPERANDS]; /* of the operands: "f64[4,6]"; NULL: no more, "": absent                    */
    double lo, hi;                     /* the floats among them                                                    */
    double numbers[3];
    int dims[3], dim_count;
    bool keep;
    dt_shape shape;
} sample;

static const sample samples[] = {
    { .op = "add", .shapes = { "f64[4,6]", "f64[6]" }, .lo = -2, .hi = 2 },
    { .op = "sub", .shapes = { "f64[4,1]", "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "mul", .shapes = { "f64[4,6]", "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "div", .shapes = { "f64[4,6]", "f64[4,1]" }, .lo = 0.5, .hi = 2 },
    { .op = "pow", .shapes = { "f64[4,6]", "f64[6]" }, .lo = 0.5, .hi = 2 },
    { .op = "add_scalar", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { 3 } },
    { .op = "sub_scalar", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { 3 } },
    { .op = "mul_scalar", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { -3 } },
    { .op = "div_scalar", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { 3 } },
    { .op = "pow_scalar", .shapes = { "f64[4,6]" }, .lo = 0.5, .hi = 2, .numbers = { 3.5 } },
    { .op = "neg", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "abs", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "exp", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "log", .shapes = { "f64[4,6]" }, .lo = 0.5, .hi = 2 },
    { .op = "sqrt", .shapes = { "f64[4,6]" }, .lo = 0.5, .hi = 2 },
    { .op = "rsqrt", .shapes = { "f64[4,6]" }, .lo = 0.5, .hi = 2 },
    { .op = "sin", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "cos", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "tanh", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "sigmoid", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "relu", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "gelu", .shapes = { "f64[4,6]" }, .lo = -3, .hi = 3 },
    { .op = "gelu_tanh", .shapes = { "f64[4,6]" }, .lo = -3, .hi = 3 },
    { .op = "silu", .shapes = { "f64[4,6]" }, .lo = -3, .hi = 3 },
    { .op = "swiglu", .shapes = { "f64[4,6]", "f64[4,6]" }, .lo = -3, .hi = 3 },
    { .op = "where", .shapes = { "bool[4,6]", "f64[4,6]", "f64[6]" }, .lo = -2, .hi = 2 },
    { .op = "clamp", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { -1, 0.7 } },
    { .op = "masked_fill", .shapes = { "f64[4,6]", "bool[4,1]" }, .lo = -2, .hi = 2, .numbers = { 7 } },
    { .op = "sum", .shapes = { "f64[4,6,3]" }, .lo = -2, .hi = 2, .dims = { 1 }, .dim_count = 1 },
    { .op = "sum", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "mean", .shapes = { "f64[4,6,3]" }, .lo = -2, .hi = 2, .dims = { 0, 2 }, .dim_count = 2, .keep = true },
    { .op = "max", .shapes = { "f64[5,6]" }, .lo = -2, .hi = 2, .dims = { 0 }, .dim_count = 1 },
    { .op = "min", .shapes = { "f64[5,6]" }, .lo = -2, .hi = 2, .dims = { 1 }, .dim_count = 1, .keep = true },
    { .op = "prod", .shapes = { "f64[5,3]" }, .lo = 0.5, .hi = 2, .dims = { 0 }, .dim_count = 1 },
    { .op = "logsumexp", .shapes = { "f64[5,6]" }, .lo = -2, .hi = 2, .dims = { 1 }, .dim_count = 1 },
    { .op = "var", .shapes = { "f64[5,6]" }, .lo = -2, .hi = 2, .dims = { 1 }, .dim_count = 1 },
    { .op = "norm", .shapes = { "f64[5,6]" }, .lo = -2, .hi = 2, .dims = { 0 }, .dim_count = 1, .keep = true },
    { .op = "matmul", .shapes = { "f64[2,4,6]", "f64[6,5]" }, .lo = -2, .hi = 2 },
    { .op = "matmul", .shapes = { "f64[3,4]", "f64[2,4,5]" }, .lo = -2, .hi = 2 },
    { .op = "bmm", .shapes = { "f64[3,4,5]", "f64[3,5,2]" }, .lo = -2, .hi = 2 },
    { .op = "linear", .shapes = { "f64[3,4,6]", "f64[5,6]", "f64[5]" }, .lo = -2, .hi = 2 },
    { .op = "linear", .shapes = { "f64[6]", "f64[5,6]", "" }, .lo = -2, .hi = 2 },
    { .op = "softmax", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "log_softmax", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .dims = { 0 } },
    { .op = "rms_norm", .shapes = { "f64[4,6]", "f64[6]" }, .lo = -2, .hi = 2, .numbers = { 1e-3 } },
    { .op = "layer_norm", .shapes = { "f64[4,6]", "f64[6]", "f64[6]" }, .lo = -2, .hi = 2, .numbers = { 1e-3 } },
    { .op = "layer_norm", .shapes = { "f64[3,2,4]", "f64[2,4]", "" }, .lo = -2, .hi = 2, .numbers = { 1e-3 } },
    { .op = "embedding", .shapes = { "f64[5,3]", "i64[2,4]" }, .lo = -2, .hi = 2 },
    { .op = "index_select", .shapes = { "f64[4,5]", "i64[6]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "gather", .shapes = { "f64[4,5]", "i64[4,3]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "scatter_add", .shapes = { "f64[4,5]", "i64[4,3]", "f64[4,3]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "index_add", .shapes = { "f64[4,5]", "i64[6]", "f64[4,6]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "index_add", .shapes = { "f64[5,3]", "i64[2,4]", "f64[2,4,3]" }, .lo = -2, .hi = 2 },
    { .op = "permute", .shapes = { "f64[3,4,5]" }, .lo = -2, .hi = 2, .shape = { 3, { 2, 0, -2 } } },
    { .op = "transpose", .shapes = { "f64[3,4,5]" }, .lo = -2, .hi = 2, .dims = { 0, -1 } },
    { .op = "unsqueeze", .shapes = { "f64[4,5]" }, .lo = -2, .hi = 2, .shape = { 1, { 1 } } },
    { .op = "squeeze", .shapes = { "f64[4,1,5]" }, .lo = -2, .hi = 2, .dims = { 1 } },
    { .op = "flatten", .shapes = { "f64[5,4,3]" }, .lo = -2, .hi = 2, .dims = { 0, 1 } },
    { .op = "unflatten", .shapes = { "f64[12,3]" }, .lo = -2, .hi = 2, .shape = { 2, { 4, -1 } } },
    { .op = "reshape", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .shape = { 3, { 2, -1, 3 } } },
    { .op = "reshape", .shapes = { "f64[3,4]" }, .lo = -2, .hi = 2, .shape = { 2, { 2, 6 } } },
    { .op = "expand", .shapes = { "f64[4,1]" }, .lo = -2, .hi = 2, .shape = { 3, { 3, -1, 5 } } },
    { .op = "tril", .shapes = { "f64[2,4,5]" }, .lo = -2, .hi = 2 },
    { .op = "triu", .shapes = { "f64[5,4]" }, .lo = -2, .hi = 2 },
    { .op = "copy", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "fill", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2, .numbers = { 3 } },
    { .op = "sum_squares", .shapes = { "f64[4,6]" }, .lo = -2, .hi = 2 },
    { .op = "dropout", .shapes = { "f64[5,7]" }, .lo = -2, .hi = 2, .numbers = { 0.4, 11, 3 } },
    { .op = "rope", .shapes = { "f64[2,5,3,4]" }, .lo = -2, .hi = 2, .numbers = { 100, 3, 1 } },
    { .op = "attention", .shapes = { "f64[2,3,4,3]", "f64[2,3,2,3]", "f64[2,3,2,3]", "" }, .lo = -2, .hi = 2 },
    { .op = "attention", .shapes = { "f64[2,3,2,2]", "f64[2,5,2,2]", "f64[2,5,2,2]", "" }, .lo = -2, .hi = 2,
      .numbers = { 0.3 }, .keep = true },
    { .op = "addmm", .shapes = { "f64[4,1]", "f64[4,6]", "f64[6,5]" }, .lo = -2, .hi = 2 },
};

/* ---- one call ---------------------------------------------------------------------------------------------------- */

/* Attributes by their table; of a kind the next one of the sample's. */
static void write_attributes(const sample *s, const dt_op *op, unsigned char *to)
{
    dt_dims dims = { s->dim_count, { s->dims[0], s->dims[1], s->dims[2] } };
    dt_dtype wide = DT_F64;
    int64_t one = 1;
    int number = 0, dim = 0;
    for (int i = 0; i < op->attribute_count; i++) {
        void *at = to + op->attributes[i].offset;
        switch (op->attributes[i].kind) {
        case DT_ATTRIBUTE_NUMBER: memcpy(at, &s->numbers[number++], sizeof s->numbers[0]); break;
        case DT_ATTRIBUTE_DIM: memcpy(at, &s->dims[dim++], sizeof s->dims[0]); break;
        case DT_ATTRIBUTE_DIMS: memcpy(at, &dims, sizeof dims); break;
        case DT_ATTRIBUTE_BOOL: memcpy(at, &s->keep, sizeof s->keep); break;
        case DT_ATTRIBUTE_INT: memcpy(at, &one, sizeof one); break;
        case DT_ATTRIBUTE_DTYPE: memcpy(at, &wide, sizeof wide); break;
        case DT_ATTRIBUTE_SHAPE: memcpy(at, &s->shape, sizeof s->shape); break;
        default: break;
        }
    }
}

static dt_tensor *call(const sample *s, dt_tensor *const *x)
{
    const dt_op *op = dt_op_find(s->op);
    _Alignas(16) unsigned char attributes[DT_MAX_ATTRIBUTE_BYTES] = { 0 };
    int count = 0;
    write_attributes(s, op, attributes);
    while (count < OPERANDS && s->shapes[count]) count++;
    return dt_apply(op, x, count, attributes);
}

/* The same for every mesh: by element number. */
static double number(const sample *s, int operand, int64_t i)
{
    unsigned long long hash = ((unsigned long long)i * 2654435761u + (unsigned)operand * 40503u + 12345u) % 1000003u;
    double unit = (double)hash / 1000003.0;
    return s->lo + (s->hi - s->lo) * unit;
}

typedef struct fill { const sample *s; int operand; int64_t nudged; double nudge; } fill;

static void write_values(const fill *f, const dt_spec *spec, void *values)
{
    dt_shape shape = dt_spec_shape(spec);
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
    for (int64_t i = 0; i < n; i++) {
        double value = number(f->s, f->operand, i) + (i == f->nudged ? f->nudge : 0);
        if (dt_spec_dtype(spec) == DT_BOOL) ((bool *)values)[i] = i % 3 == 1;
        else if (dt_spec_dtype(spec) == DT_I64) ((int64_t *)values)[i] = i * 3 % 5;
        else ((double *)values)[i] = value;
    }
}

static dt_tensor *operand(dt_mesh *mesh, const sample *s, int i, const char *placements, int64_t nudged, double nudge)
{
    double values[MAX_ELEMENTS];
    if (!*s->shapes[i]) return NULL;
    const dt_spec *whole = dt_spec_parse(mesh, s->shapes[i]), *spec = dt_spec_replace(whole, placements);
    write_values(&(fill){ s, i, nudged, nudge }, whole, values);
    int64_t n = 1;
    for (int d = 0; d < dt_spec_shape(whole).n; d++) n *= dt_spec_shape(whole).dim[d];
    return dt_from_host(spec, -1, values, (size_t)n * dt_dtype_bytes(dt_spec_dtype(whole)));
}

/* Weights that tell elements of a result apart: what is differentiated is their sum with it. */
static dt_tensor *weights(dt_tensor *y)
{
    const dt_spec *like = dt_tensor_spec(y);
    const dt_spec *spec = dt_spec_create(dt_spec_mesh(like), DT_F64, dt_spec_shape(like), NULL);
    return dt_add_scalar(dt_sin(dt_arange(spec, 1, 0.7)), 1.5);
}

static double loss(dt_mesh *mesh, const sample *s, int nudged_operand, int64_t nudged, double nudge)
{
    dt_tensor *x[OPERANDS] = { NULL };
    int scope = dt_scope_push(dt_mesh_context(mesh), 0);
    for (int i = 0; i < OPERANDS && s->shapes[i]; i++)
        x[i] = operand(mesh, s, i, "", i == nudged_operand ? nudged : -1, nudge);
    dt_tensor *y = call(s, x);
    double value = dt_tensor_item(dt_sum(dt_mul(y, weights(y)), DT_ALL, false));
    dt_scope_pop(dt_mesh_context(mesh), scope, NULL);
    return value;
}

/* ---- against differences ----------------------------------------------------------------------------------------- */

static bool is_float(const sample *s, int i) { return s->shapes[i] && strncmp(s->shapes[i], "f64", 3) == 0; }

static bool gradients(dt_mesh *mesh, const sample *s, const char *const *placements, dt_tensor **x)
{
    for (int i = 0; i < OPERANDS && s->shapes[i]; i++) {
        x[i] = operand(mesh, s, i, placements ? placements[i] : "", -1, 0);
        if (is_float(s, i)) dt_require_grad(x[i]);
    }
    dt_tensor *y = call(s, x);
    return expect(y && dt_backward(y, weights(y)) == DT_OK, "%s: %s", s->op, dt_context_error(dt_mesh_context(mesh)));
}

static dt_status against_differences(dt_context *ctx, void *arg)
{
    const sample *s = arg;
    const double step = 1e-6;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *x[OPERANDS] = { NULL };
    if (!gradients(mesh, s, NULL, x)) return dt_context_status(ctx);
    for (int i = 0; i < OPERANDS; i++) {
        if (!is_float(s, i)) continue;
        double grad[MAX_ELEMENTS];
        int64_t n = 1;
        dt_shape shape = dt_spec_shape(dt_tensor_spec(x[i]));
        for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
        dt_tensor_to_host(dt_grad(x[i]), -1, grad, (size_t)n * sizeof *grad);
        for (int64_t e = 0; e < n; e++) {
            double slope = (loss(mesh, s, i, e, step) - loss(mesh, s, i, e, -step)) / (2 * step);
            expect(fabs(slope - grad[e]) <= 1e-6 * (1 + fabs(slope)), "%s, operand %d, element %lld: %.9g, by "
                   "differences %.9g", s->op, i, (long long)e, grad[e], slope);
        }
    }
    return dt_context_status(ctx);
}

static void by_differences(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(samples); i++)
        expect(dt_launch_threads(1, against_differences, (void *)(uintptr_t)&samples[i], error, sizeof error) == DT_OK,
               "%s: %s", samples[i].op, error);
}

/* ---- against one rank -------------------------------------------------------------------------------------------- */

static const char *const places[] = { "", "x:S(0)", "x:S(1)", "x:S(-1)", "x:P" };

static bool can_be(const sample *s, int i, const char *placements)
{
    if (!s->shapes[i] || !*s->shapes[i]) return !*placements;
    int dims = (int)strlen(s->shapes[i]) ? 1 : 0;
    for (const char *at = s->shapes[i]; *at; at++) dims += *at == ',';
    if (strstr(placements, "S(1)") && dims < 2) return false;
    return is_float(s, i) || !strstr(placements, "P");
}

static void compare(dt_mesh *mesh, const sample *s, const char *const *placements, dt_tensor *const *wanted)
{
    dt_context *ctx = dt_mesh_context(mesh);
    dt_tensor *x[OPERANDS] = { NULL };
    int scope = dt_scope_push(ctx, 0);
    bool done = gradients(mesh, s, placements, x);
    for (int i = 0; i < OPERANDS && done; i++)
        if (is_float(s, i))
            expect(dt_tensor_close(dt_grad(x[i]), wanted[i], 1e-12, 1e-12), "%s: operand %d of %s; %s; %s: %s",
                   s->op, i, placements[0], placements[1], placements[2],
                   dt_spec_text(dt_tensor_spec(dt_grad(x[i]))));
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status against_one(dt_context *ctx, void *arg)
{
    const sample *s = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_tensor *whole[OPERANDS] = { NULL }, *wanted[OPERANDS] = { NULL };
    if (!gradients(mesh, s, NULL, whole)) return dt_context_status(ctx);
    for (int i = 0; i < OPERANDS; i++)
        if (is_float(s, i)) wanted[i] = dt_grad(whole[i]);
    for (int c = 0; c < 125; c++) {
        const char *placements[OPERANDS] = { places[c % 5], places[c / 5 % 5], places[c / 25], "" };
        bool can = true;
        for (int i = 0; i < OPERANDS; i++) can &= can_be(s, i, placements[i]);
        if (can) compare(mesh, s, placements, wanted);
    }
    return dt_context_status(ctx);
}

static void as_on_one_rank(void)
{
    char error[512] = "";
    for (int i = 0; i < DT_COUNT(samples); i++)
        for (int ranks = 2; ranks <= 4; ranks++)
            expect(dt_launch_threads(ranks, against_one, (void *)(uintptr_t)&samples[i], error, sizeof error) == DT_OK,
                   "%s on %d: %s", samples[i].op, ranks, error);
}

/* ---- no row without ---------------------------------------------------------------------------------------------- */

static void every_row_has_a_case(void)
{
    for (int i = 0; i < dt_op_count(); i++) {
        const dt_op *op = dt_op_at(i);
        bool found = !op->gradient || strncmp(op->head, "cast(", 5) == 0;
        for (int k = 0; k < DT_COUNT(samples) && !found; k++) found = dt_op_find(samples[k].op) == op;
        expect(found, "%s has a gradient and no case", op->head);
    }
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static dt_status by_hand(dt_context *ctx, void *arg)
{
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    static const double tied[8] = { 3, 1, 3, 2, 0, 3, -1, 3 };
    dt_tensor *x = dt_require_grad(dt_from_host(dt_spec_parse(mesh, "f64[8]@x:S(0)"), -1, tied, sizeof tied));
    dt_backward(dt_max(x, DT_ALL, false), NULL);
    double grad[8];
    dt_tensor_to_host(dt_grad(x), -1, grad, sizeof grad);
    for (int i = 0; i < 8; i++)
        expect(fabs(grad[i] - (tied[i] > 2.5 ? 0.25 : 0)) < 1e-15, "ties share: element %d has %g", i, grad[i]);
    static const double zeros[8] = { 2, 0, 3, 5, 2, 1, 1, 1 };
    x = dt_require_grad(dt_from_host(dt_spec_parse(mesh, "f64[8]@x:S(0)"), -1, zeros, sizeof zeros));
    dt_backward(dt_prod(x, DT_ALL, false), NULL);
    dt_tensor_to_host(dt_grad(x), -1, grad, sizeof grad);
    for (int i = 0; i < 8; i++)
        expect(fabs(grad[i] - (i == 1 ? 60 : 0)) < 1e-12, "a zero: element %d has %g", i, grad[i]);
    x = dt_require_grad(dt_full(dt_spec_parse(mesh, "f32[4]@x:S(0)"), 1.5));
    dt_tensor *wide = dt_cast(x, DT_F64);
    dt_backward(wide, dt_full(dt_spec_parse(mesh, "f64[4]"), 2));
    expect(dt_spec_dtype(dt_tensor_spec(dt_grad(x))) == DT_F32, "a cast's gradient is cast back");
    return dt_context_status(ctx);
}

static void known_values(void)
{
    char error[512] = "";
    for (int ranks = 1; ranks <= 3; ranks++)
        expect(dt_launch_threads(ranks, by_hand, NULL, error, sizeof error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "by differences", by_differences },
    { "as on one rank", as_on_one_rank },
    { "every row has a case", every_row_has_a_case },
    { "known values", known_values },
};

const suite the_suite = { "gradients", rows, DT_COUNT(rows) };
