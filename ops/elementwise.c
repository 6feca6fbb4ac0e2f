/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that act element by element. Polynomials say what is linear, trends what is monotone for every value: log and
 * sqrt are not, for a NaN that one rank makes of its negative number would be the maximum. */
#include <stdio.h>

#include <dtensor/ops.h>

#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/map.h"
#include "ops/tables.h"


/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static const char pair[] = "..., ... -> ...", single[] = "... -> ...";

static const dti_map_row add = {
    { .head = "add(x, y)", .rule = pair, .polynomial = "x + y, rising", .kernel = dti_cpu_map, .gradient = dti_grad_add, .doc = "x + y" },
    .map = DTI_MAP_ADD,
};
static const dti_map_row sub = {
    { .head = "sub(x, y)", .rule = pair, .polynomial = "x - y, rising", .dtypes = "nn->n", .kernel = dti_cpu_map,
      .gradient = dti_grad_sub, .doc = "x - y" },
    .map = DTI_MAP_SUB,
};
static const dti_map_row mul = {
    { .head = "mul(x, y)", .rule = pair, .polynomial = "x y", .kernel = dti_cpu_map, .gradient = dti_grad_mul, .doc = "x y" },
    .map = DTI_MAP_MUL,
};
/* Linear in x alone. */
static const dti_map_row divide = {
    { .head = "div(x, y)", .rule = pair, .polynomial = "x, saves x y", .dtypes = "ff->f", .kernel = dti_cpu_map, .gradient = dti_grad_div, .doc = "x / y" },
    .map = DTI_MAP_DIV,
};
static const dti_map_row power = {
    { .head = "pow(x, y)", .rule = pair, .polynomial = "none, saves x y result", .dtypes = "ff->f",
      .kernel = dti_cpu_map, .gradient = dti_grad_pow, .doc = "x to the power y" },
    .map = DTI_MAP_POW,
};
static const dti_map_row negate = {
    { .head = "neg(x)", .rule = single, .polynomial = "-x, falling", .dtypes = "n->n", .kernel = dti_cpu_map,
      .gradient = dti_grad_neg, .doc = "-x" },
    .map = DTI_MAP_NEG,
};
static const dti_map_row absolute = {
    { .head = "abs(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "n->n", .kernel = dti_cpu_map,
      .gradient = dti_grad_abs, .doc = "x without its sign" },
    .map = DTI_MAP_ABS,
};

/* ---- with a number ----------------------------------------------------------------------------------------------- */

static const dt_attribute with_value[] = { { "value", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, a) } };
static const dt_attribute bounds[] = {
    { "min", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, a) },
    { "max", DT_ATTRIBUTE_NUMBER, offsetof(dti_map_numbers, b) },
};

/* x times a number rises or falls by its sign. */
static dt_status derive_scaled(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    double number = ((const dti_map_numbers *)attributes)->a;
    (void)ctx;
    (void)shapes;
    (void)n;
    snprintf(out->polynomial, sizeof out->polynomial, "x%s", number > 0 ? ", rising" : number < 0 ? ", falling" : "");
    return DT_OK;
}

static const dti_map_row add_scalar = {
    { .head = "add_scalar(x)", .rule = single, .polynomial = "x + 1, rising", .attributes = with_value,
      .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers), .kernel = dti_cpu_map,
      .gradient = dti_grad_same, .doc = "x plus a number" },
    .map = DTI_MAP_ADD_NUMBER, .numbers = true, .once = true,
};
static const dti_map_row sub_scalar = {
    { .head = "sub_scalar(x)", .rule = single, .polynomial = "x - 1, rising", .dtypes = "n->n",
      .attributes = with_value, .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers),
      .kernel = dti_cpu_map, .gradient = dti_grad_same, .doc = "x minus a number" },
    .map = DTI_MAP_SUB_NUMBER, .numbers = true, .once = true,
};
static const dti_map_row mul_scalar = {
    { .head = "mul_scalar(x)", .rule = single, .derive = derive_scaled, .attributes = with_value,
      .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers), .kernel = dti_cpu_map,
      .gradient = dti_grad_mul_scalar, .doc = "x times a number" },
    .map = DTI_MAP_MUL_NUMBER, .numbers = true,
};
static const dti_map_row div_scalar = {
    { .head = "div_scalar(x)", .rule = single, .derive = derive_scaled, .dtypes = "f->f", .attributes = with_value,
      .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers), .kernel = dti_cpu_map,
      .gradient = dti_grad_div_scalar, .doc = "x divided by a number" },
    .map = DTI_MAP_DIV_NUMBER, .numbers = true,
};
static const dti_map_row pow_scalar = {
    { .head = "pow_scalar(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f",
      .attributes = with_value, .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers),
      .kernel = dti_cpu_map, .gradient = dti_grad_pow_scalar, .doc = "x to the power of a number" },
    .map = DTI_MAP_POW_NUMBER, .numbers = true,
};
static const dti_map_row clamp = {
    { .head = "clamp(x)", .rule = single, .polynomial = "none, rising, saves x", .attributes = bounds,
      .attribute_count = DT_COUNT(bounds), .attribute_bytes = sizeof(dti_map_numbers), .kernel = dti_cpu_map,
      .gradient = dti_grad_clamp, .doc = "x, but at least min and at most max" },
    .map = DTI_MAP_CLAMP, .numbers = true,
};
/* What mask covers is the number, and so added once where x is a sum. */
static const dti_map_row masked_fill = {
    { .head = "masked_fill(x, mask)", .rule = pair, .polynomial = "x + 1, rising, saves mask", .dtypes = "tb->t",
      .attributes = with_value, .attribute_count = DT_COUNT(with_value), .attribute_bytes = sizeof(dti_map_numbers),
      .kernel = dti_cpu_map, .gradient = dti_grad_masked_fill, .doc = "x, but a number where mask is true" },
    .map = DTI_MAP_FILL, .numbers = true, .once = true,
};

/* ---- smooth functions -------------------------------------------------------------------------------------------- */

static const dti_map_row exponential = {
    { .head = "exp(x)", .rule = single, .polynomial = "none, rising, saves result", .dtypes = "f->f",
      .kernel = dti_cpu_map, .gradient = dti_grad_exp, .doc = "e to the power x" },
    .map = DTI_MAP_EXP,
};
static const dti_map_row logarithm = {
    { .head = "log(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_log, .doc = "natural logarithm" },
    .map = DTI_MAP_LOG,
};
static const dti_map_row square_root = {
    { .head = "sqrt(x)", .rule = single, .polynomial = "none, saves result", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_sqrt, .doc = "square root" },
    .map = DTI_MAP_SQRT,
};
static const dti_map_row rsqrt = {
    { .head = "rsqrt(x)", .rule = single, .polynomial = "none, saves result", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_rsqrt, .doc = "1 / square root" },
    .map = DTI_MAP_RSQRT,
};
static const dti_map_row sine = {
    { .head = "sin(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_sin, .doc = "sine" },
    .map = DTI_MAP_SIN,
};
static const dti_map_row cosine = {
    { .head = "cos(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_cos, .doc = "cosine" },
    .map = DTI_MAP_COS,
};
static const dti_map_row hyperbolic = {
    { .head = "tanh(x)", .rule = single, .polynomial = "none, rising, saves result", .dtypes = "f->f",
      .kernel = dti_cpu_map, .gradient = dti_grad_tanh, .doc = "hyperbolic tangent" },
    .map = DTI_MAP_TANH,
};
static const dti_map_row sigmoid = {
    { .head = "sigmoid(x)", .rule = single, .polynomial = "none, rising, saves result", .dtypes = "f->f",
      .kernel = dti_cpu_map, .gradient = dti_grad_sigmoid, .doc = "1 / (1 + exp(-x))" },
    .map = DTI_MAP_SIGMOID,
};
static const dti_map_row relu = {
    { .head = "relu(x)", .rule = single, .polynomial = "none, rising, saves result", .kernel = dti_cpu_map,
      .gradient = dti_grad_relu, .doc = "x where it is positive, else 0" },
    .map = DTI_MAP_RELU,
};
static const dti_map_row gelu = {
    { .head = "gelu(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_gelu, .doc = "x times the normal distribution up to x" },
    .map = DTI_MAP_GELU,
};
static const dti_map_row gelu_tanh = {
    { .head = "gelu_tanh(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_gelu_tanh, .doc = "gelu by the approximation with tanh" },
    .map = DTI_MAP_GELU_TANH,
};
static const dti_map_row silu = {
    { .head = "silu(x)", .rule = single, .polynomial = "none, saves x", .dtypes = "f->f", .kernel = dti_cpu_map,
      .gradient = dti_grad_silu, .doc = "x sigmoid(x)" },
    .map = DTI_MAP_SILU,
};
static const dti_map_row swiglu = {
    { .head = "swiglu(gate, up)", .rule = pair, .polynomial = "up, saves gate up", .dtypes = "ff->f",
      .kernel = dti_cpu_map, .gradient = dti_grad_swiglu, .doc = "silu(gate) up" },
    .map = DTI_MAP_SWIGLU,
};

/* ---- truth ------------------------------------------------------------------------------------------------------- */

static const dti_map_row equal = {
    { .head = "eq(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x == y" },
    .map = DTI_MAP_EQ,
};
static const dti_map_row unequal = {
    { .head = "ne(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x != y" },
    .map = DTI_MAP_NE,
};
static const dti_map_row less = {
    { .head = "lt(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x < y" },
    .map = DTI_MAP_LT,
};
static const dti_map_row at_most = {
    { .head = "le(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x <= y" },
    .map = DTI_MAP_LE,
};
static const dti_map_row greater = {
    { .head = "gt(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x > y" },
    .map = DTI_MAP_GT,
};
static const dti_map_row at_least = {
    { .head = "ge(x, y)", .rule = pair, .polynomial = "none", .dtypes = "tt->b", .kernel = dti_cpu_map,
      .doc = "x >= y" },
    .map = DTI_MAP_GE,
};
/* Of bools the product is and, the sum or. */
static const dti_map_row both = {
    { .head = "logical_and(x, y)", .rule = pair, .polynomial = "none, rising", .dtypes = "bb->b",
      .kernel = dti_cpu_map, .doc = "x and y" },
    .map = DTI_MAP_MUL,
};
static const dti_map_row either = {
    { .head = "logical_or(x, y)", .rule = pair, .polynomial = "none, rising", .dtypes = "bb->b", .kernel = dti_cpu_map,
      .doc = "x or y" },
    .map = DTI_MAP_ADD,
};
static const dti_map_row one_of = {
    { .head = "logical_xor(x, y)", .rule = pair, .polynomial = "none", .dtypes = "bb->b", .kernel = dti_cpu_map,
      .doc = "x or y, not both" },
    .map = DTI_MAP_NE,
};
static const dti_map_row logical_not = {
    { .head = "logical_not(x)", .rule = single, .polynomial = "none, falling", .dtypes = "b->b", .kernel = dti_cpu_map,
      .doc = "not x" },
    .map = DTI_MAP_NOT,
};
static const dti_map_row where = {
    { .head = "where(c, x, y)", .rule = "..., ..., ... -> ...", .polynomial = "x + y, rising, saves c", .dtypes = "btt->t",
      .kernel = dti_cpu_map, .gradient = dti_grad_where, .doc = "x where c is true, else y" },
    .map = DTI_MAP_WHERE, .of = 1,
};

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

typedef enum number_class { BOOL_NUMBER, INTEGER, FLOATING } number_class;

static number_class class_of(dt_dtype dtype)
{
    return dtype == DT_BOOL ? BOOL_NUMBER : dtype <= DT_F16 ? FLOATING : INTEGER;
}

static int range_of(dt_dtype dtype) { return dtype == DT_F64 ? 3 : dtype == DT_F16 ? 1 : 2; }

/* Is a sum cast the sum of its summands cast? Rounding is taken to be no part of the value, so for floats it is, unless
 * a summand may be too large where the sum is not. Of integers low bits are kept, so it is where no bits are added.
 * Where it is not, it may rise: not to integers of fewer bits, nor to integers of floats, for NaN becomes 0. */
static const char *cast_polynomial(dt_dtype from, dt_dtype to)
{
    number_class a = class_of(from), b = class_of(to);
    if (from == DT_DTYPE_DEFAULT) return "none";
    if (from == to) return "x, rising";
    if (a == FLOATING && b == FLOATING) return range_of(from) <= range_of(to) ? "x, rising" : "none, rising";
    if (a == INTEGER && b == INTEGER && dt_dtype_bytes(to) < dt_dtype_bytes(from)) return "x";
    return b == BOOL_NUMBER || (a == FLOATING && b == INTEGER) ? "none" : "none, rising";
}

static dt_status derive_cast(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_cast *cast = attributes;
    (void)ctx;
    (void)shapes;
    (void)n;
    snprintf(out->polynomial, sizeof out->polynomial, "%s", cast_polynomial(cast->from, cast->dtype));
    return DT_OK;
}

/* *from* is no attribute that a caller gives: the front fills it in, since a rule sees no dtypes. */
static const dt_attribute to_dtype[] = { { "dtype", DT_ATTRIBUTE_DTYPE, offsetof(dti_cast, dtype) } };

static const dt_op cast = {
    .head = "cast(x)", .rule = single, .dtypes = "t->d", .derive = derive_cast, .attributes = to_dtype,
    .attribute_count = DT_COUNT(to_dtype), .attribute_bytes = sizeof(dti_cast), .kernel = dti_cpu_cast,
    .gradient = dti_grad_cast, .doc = "x in another dtype",
};

const dt_op *const dti_ops_elementwise[] = {
    &add.op, &sub.op, &mul.op, &divide.op, &power.op, &add_scalar.op, &sub_scalar.op, &mul_scalar.op, &div_scalar.op,
    &pow_scalar.op, &negate.op, &absolute.op, &exponential.op, &logarithm.op, &square_root.op, &rsqrt.op, &sine.op,
    &cosine.op, &hyperbolic.op, &sigmoid.op, &relu.op, &gelu.op, &gelu_tanh.op, &silu.op, &swiglu.op, &equal.op,
    &unequal.op, &less.op, &at_most.op, &greater.op, &at_least.op, &both.op, &either.op, &one_of.op, &logical_not.op,
    &where.op, &clamp.op, &masked_fill.op, &cast, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

static dt_tensor *of_one(const dti_map_row *row, dt_tensor *x) { return dt_apply(&row->op, &x, 1, NULL); }

static dt_tensor *of_two(const dti_map_row *row, dt_tensor *x, dt_tensor *y)
{
    return dt_apply(&row->op, (dt_tensor *[]){ x, y }, 2, NULL);
}

static dt_tensor *of_number(const dti_map_row *row, dt_tensor *x, double number)
{
    return dt_apply(&row->op, &x, 1, &(dti_map_numbers){ number, 0 });
}

dt_tensor *dt_add(dt_tensor *x, dt_tensor *y) { return of_two(&add, x, y); }
dt_tensor *dt_sub(dt_tensor *x, dt_tensor *y) { return of_two(&sub, x, y); }
dt_tensor *dt_mul(dt_tensor *x, dt_tensor *y) { return of_two(&mul, x, y); }
dt_tensor *dt_div(dt_tensor *x, dt_tensor *y) { return of_two(&divide, x, y); }
dt_tensor *dt_pow(dt_tensor *x, dt_tensor *y) { return of_two(&power, x, y); }
dt_tensor *dt_add_scalar(dt_tensor *x, double value) { return of_number(&add_scalar, x, value); }
dt_tensor *dt_sub_scalar(dt_tensor *x, double value) { return of_number(&sub_scalar, x, value); }
dt_tensor *dt_mul_scalar(dt_tensor *x, double value) { return of_number(&mul_scalar, x, value); }
dt_tensor *dt_div_scalar(dt_tensor *x, double value) { return of_number(&div_scalar, x, value); }
dt_tensor *dt_pow_scalar(dt_tensor *x, double value) { return of_number(&pow_scalar, x, value); }
dt_tensor *dt_neg(dt_tensor *x) { return of_one(&negate, x); }
dt_tensor *dt_abs(dt_tensor *x) { return of_one(&absolute, x); }
dt_tensor *dt_exp(dt_tensor *x) { return of_one(&exponential, x); }
dt_tensor *dt_log(dt_tensor *x) { return of_one(&logarithm, x); }
dt_tensor *dt_sqrt(dt_tensor *x) { return of_one(&square_root, x); }
dt_tensor *dt_rsqrt(dt_tensor *x) { return of_one(&rsqrt, x); }
dt_tensor *dt_sin(dt_tensor *x) { return of_one(&sine, x); }
dt_tensor *dt_cos(dt_tensor *x) { return of_one(&cosine, x); }
dt_tensor *dt_tanh(dt_tensor *x) { return of_one(&hyperbolic, x); }
dt_tensor *dt_sigmoid(dt_tensor *x) { return of_one(&sigmoid, x); }
dt_tensor *dt_relu(dt_tensor *x) { return of_one(&relu, x); }
dt_tensor *dt_gelu(dt_tensor *x) { return of_one(&gelu, x); }
dt_tensor *dt_gelu_tanh(dt_tensor *x) { return of_one(&gelu_tanh, x); }
dt_tensor *dt_silu(dt_tensor *x) { return of_one(&silu, x); }
dt_tensor *dt_swiglu(dt_tensor *gate, dt_tensor *up) { return of_two(&swiglu, gate, up); }
dt_tensor *dt_eq(dt_tensor *x, dt_tensor *y) { return of_two(&equal, x, y); }
dt_tensor *dt_ne(dt_tensor *x, dt_tensor *y) { return of_two(&unequal, x, y); }
dt_tensor *dt_lt(dt_tensor *x, dt_tensor *y) { return of_two(&less, x, y); }
dt_tensor *dt_le(dt_tensor *x, dt_tensor *y) { return of_two(&at_most, x, y); }
dt_tensor *dt_gt(dt_tensor *x, dt_tensor *y) { return of_two(&greater, x, y); }
dt_tensor *dt_ge(dt_tensor *x, dt_tensor *y) { return of_two(&at_least, x, y); }
dt_tensor *dt_logical_and(dt_tensor *x, dt_tensor *y) { return of_two(&both, x, y); }
dt_tensor *dt_logical_or(dt_tensor *x, dt_tensor *y) { return of_two(&either, x, y); }
dt_tensor *dt_logical_xor(dt_tensor *x, dt_tensor *y) { return of_two(&one_of, x, y); }
dt_tensor *dt_logical_not(dt_tensor *x) { return of_one(&logical_not, x); }

dt_tensor *dt_where(dt_tensor *c, dt_tensor *x, dt_tensor *y)
{
    return dt_apply(&where.op, (dt_tensor *[]){ c, x, y }, 3, NULL);
}

dt_tensor *dt_clamp(dt_tensor *x, double min, double max)
{
    return dt_apply(&clamp.op, &x, 1, &(dti_map_numbers){ min, max });
}

dt_tensor *dt_masked_fill(dt_tensor *x, dt_tensor *mask, double value)
{
    return dt_apply(&masked_fill.op, (dt_tensor *[]){ x, mask }, 2, &(dti_map_numbers){ value, 0 });
}

dt_tensor *dt_cast(dt_tensor *x, dt_dtype dtype)
{
    return dt_apply(&cast, &x, 1, &(dti_cast){ dtype, x ? dt_spec_dtype(dt_tensor_spec(x)) : DT_DTYPE_DEFAULT });
}
