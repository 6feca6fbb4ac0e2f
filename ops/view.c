/* SPDX-License-Identifier: Apache-2.0
 *
 * Views: results that have the operand's elements, in their order or with dims in another one.
 *
 * Between two shapes, each dim is written as a product of letters so that most of them are in both: that is the rule.
 * Dims joined or taken apart at a border share their letters, and a split of one stays where it is. Where the dims of
 * both sides cross, as (3 4) and (2 6) do, their letters are whole: no split can pass. Invariant: letters stand in one
 * order on both sides, but for those of size 1, so what a rank holds is copied as it lies. */
#include <stdio.h>
#include <string.h>

#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/gradients.h"
#include "ops/tables.h"
#include "placements/cut.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

typedef struct shape_text { char text[200]; } shape_text;

static shape_text text_of(const dt_shape *shape)
{
    shape_text out;
    dti_pen pen = { out.text, sizeof out.text, 0 };
    dti_put(&pen, "[");
    for (int d = 0; d < shape->n && d < DT_MAX_DIMS; d++)
        dti_put(&pen, "%s%lld", d ? "," : "", (long long)shape->dim[d]);
    dti_put(&pen, "]");
    return out;
}

/* ---- between two shapes ------------------------------------------------------------------------------------------ */

enum { MAX_VIEW_LETTERS = 4 * DT_MAX_DIMS };

typedef struct side { int count[DT_MAX_DIMS]; int8_t letter[DT_MAX_DIMS][MAX_VIEW_LETTERS]; } side; /* dims        */

typedef struct matching {
    const dt_shape *from, *to;
    side x, y;
    int count;
    struct { int64_t size; bool whole, in_x, in_y; } letter[MAX_VIEW_LETTERS];
} matching;

static int new_letter(matching *m, int64_t size, bool whole)
{
    m->letter[m->count].size = size;
    m->letter[m->count].whole = whole;
    return m->count++;
}

static void put_x(matching *m, int dim, int letter)
{
    m->x.letter[dim][m->x.count[dim]++] = (int8_t)letter;
    m->letter[letter].in_x = true;
}

/* Letters of size 1 in front: a split one behind them then makes one factor with them. */
static void put_y(matching *m, int dim, int letter, bool in_front)
{
    int8_t *at = m->y.letter[dim];
    if (in_front) memmove(at + 1, at, (size_t)m->y.count[dim]);
    at[in_front ? 0 : m->y.count[dim]] = (int8_t)letter;
    m->y.count[dim]++;
    m->letter[letter].in_y = true;
}

static int next_dim(const dt_shape *shape, int d)
{
    do d++;
    while (d < shape->n && shape->dim[d] == 1);
    return d;
}

/* From here to the next border the sides have nothing in common. i and j: dims, of which a and b are left. */
static void cross(matching *m, int *i, int64_t a, int *j, int64_t b)
{
    int64_t of_x = a, of_y = b;
    put_x(m, *i, new_letter(m, a, true));
    put_y(m, *j, new_letter(m, b, true), false);
    while (of_x != of_y) {
        if (of_x < of_y) {
            *i = next_dim(m->from, *i);
            of_x *= m->from->dim[*i];
            put_x(m, *i, new_letter(m, m->from->dim[*i], true));
        } else {
            *j = next_dim(m->to, *j);
            of_y *= m->to->dim[*j];
            put_y(m, *j, new_letter(m, m->to->dim[*j], true), false);
        }
    }
}

/* Dims larger than 1: the largest letter that both have next, again and again. */
static void match_large(matching *m)
{
    int i = next_dim(m->from, -1), j = next_dim(m->to, -1);
    int64_t a = i < m->from->n ? m->from->dim[i] : 1, b = j < m->to->n ? m->to->dim[j] : 1;
    while (i < m->from->n && j < m->to->n) {
        int64_t both = dti_common_divisor(a, b);
        if (both > 1) {
            int letter = new_letter(m, both, false);
            put_x(m, i, letter);
            put_y(m, j, letter, false);
            a /= both;
            b /= both;
        } else {
            cross(m, &i, a, &j, b);
            a = b = 1;
        }
        if (a == 1) i = next_dim(m->from, i);
        if (b == 1) j = next_dim(m->to, j);
        if (a == 1 && i < m->from->n) a = m->from->dim[i];
        if (b == 1 && j < m->to->n) b = m->to->dim[j];
    }
}

/* Product of the dims before one. */
static int64_t before(const dt_shape *shape, int dim)
{
    int64_t n = 1;
    for (int d = 0; d < dim; d++) n *= shape->dim[d];
    return n;
}

/* The dim of the result that takes a dim of size 1 in front of which there are n: one of size 1 at that place, else
 * that which has the next letter, else the last; -1: the result is a scalar. */
static int home_of_one(const matching *m, int64_t n)
{
    int home = -1;
    for (int d = 0; d < m->to->n; d++) {
        int64_t ahead = before(m->to, d);
        if (m->to->dim[d] == 1 && ahead == n && m->y.count[d] == 0) return d;
        if (m->to->dim[d] != 1 && ahead <= n) home = d;
    }
    return home < 0 ? m->to->n - 1 : home;
}

static void match_ones(matching *m)
{
    for (int d = 0; d < m->from->n; d++) {
        if (m->from->dim[d] != 1) continue;
        int home = home_of_one(m, before(m->from, d));
        int letter = new_letter(m, 1, home < 0);
        put_x(m, d, letter);
        if (home >= 0) put_y(m, home, letter, true);
    }
    for (int d = 0; d < m->to->n; d++)
        if (m->y.count[d] == 0) put_y(m, d, new_letter(m, 1, true), false);
}

/* All dims whole, but for the first ones if they are equal: of what is empty, and of what no rule has room for. */
static void match_dims(matching *m)
{
    int d = 0;
    *m = (matching){ .from = m->from, .to = m->to };
    for (; d < m->from->n && d < m->to->n && m->from->dim[d] == m->to->dim[d]; d++) {
        int letter = new_letter(m, m->from->dim[d], false);
        put_x(m, d, letter);
        put_y(m, d, letter, false);
    }
    for (int i = d; i < m->from->n; i++) put_x(m, i, new_letter(m, m->from->dim[i], true));
    for (int j = d; j < m->to->n; j++) put_y(m, j, new_letter(m, m->to->dim[j], true), false);
}

/* Must a letter's size be told? Of a product all but one; of a letter that the operand lacks. */
static bool is_told(const matching *m, int letter)
{
    if (!m->letter[letter].in_x) return true;
    for (int d = 0; d < m->from->n; d++)
        for (int i = 0; i + 1 < m->x.count[d]; i++)
            if (m->x.letter[d][i] == letter) return true;
    return false;
}

static bool has_room(const matching *m)
{
    int told = 0, in_x = 0, in_y = 0;
    for (int l = 0; l < m->count; l++) {
        told += is_told(m, l);
        in_x += m->letter[l].in_x;
        in_y += m->letter[l].in_y;
    }
    return told <= DT_MAX_DIMS && in_x <= DT_MAX_FACTORS && in_y <= DT_MAX_FACTORS;
}

static char name_of(int letter) { return (char)(letter < 26 ? 'a' + letter : 'A' + letter - 26); }

static void put_side(dti_pen *pen, const matching *m, const side *s, int dims)
{
    for (int d = 0; d < dims; d++) {
        dti_put(pen, "%s", s->count[d] > 1 ? " (" : " ");
        for (int i = 0; i < s->count[d]; i++)
            dti_put(pen, "%s%c%s", i ? " " : "", name_of(s->letter[d][i]), m->letter[s->letter[d][i]].whole ? "!" : "");
        dti_put(pen, "%s", s->count[d] > 1 ? ")" : "");
    }
}

/* The rule between two shapes of as many elements. */
static dt_status write_view(const dt_shape *from, const dt_shape *to, dt_derived *out)
{
    matching m = { .from = from, .to = to };
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    bool empty = before(from, from->n) == 0;
    if (!empty) {
        match_large(&m);
        match_ones(&m);
    }
    if (empty || !has_room(&m)) match_dims(&m);
    put_side(&pen, &m, &m.x, from->n);
    dti_put(&pen, " ->");
    put_side(&pen, &m, &m.y, to->n);
    for (int l = 0; l < m.count; l++) {
        if (!is_told(&m, l)) continue;
        out->size[out->size_count].letter = name_of(l);
        out->size[out->size_count++].size = m.letter[l].size;
    }
    return DT_OK;
}

/* ---- sizes that are asked for ------------------------------------------------------------------------------------ */

/* *sizes, of which one may be -1, as a shape of n elements. x: what messages are about. */
static dt_status read_sizes(dt_context *ctx, const char *op, const dt_shape *x, int64_t n, const dt_shape *sizes,
                            dt_shape *out)
{
    int64_t known = 1;
    int open = -1;
    bool fits = sizes->n >= 0 && sizes->n <= DT_MAX_DIMS, empty = false;
    *out = *sizes;
    for (int d = 0; fits && d < sizes->n; d++) {
        int64_t size = sizes->dim[d];
        empty |= size == 0;
        if (size == -1 && open < 0) open = d;
        else if (size < 0 || (size > 0 && known > INT64_MAX / size)) fits = false;
        else known *= size ? size : 1;
    }
    if (empty) known = 0;
    if (fits && open >= 0 && known > 0 && n % known == 0) {
        out->dim[open] = n / known;
        return DT_OK;
    }
    if (fits && open < 0 && known == n) return DT_OK;
    return dt_context_fail(ctx, DT_ERR_SHAPE, "%s: expected sizes of %lld elements in all, one of them -1 at most, for "
                           "x %s, got %s", op, (long long)n, text_of(x).text, text_of(sizes).text);
}

static dt_status derive_reshape(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    dt_shape to;
    (void)n;
    dt_status status = read_sizes(ctx, "reshape", &shapes[0], before(&shapes[0], shapes[0].n), attributes, &to);
    return status ? status : write_view(&shapes[0], &to, out);
}

static dt_status derive_flatten(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    const dti_two_dims *dims = attributes;
    const dt_shape *x = &shapes[0];
    dt_shape to = { .n = x->n - (dims->second - dims->first) };
    (void)n;
    if (dims->first > dims->second)
        return dt_context_fail(ctx, DT_ERR_ARG, "flatten: expected the first dim of x %s not behind the last, got %d "
                               "and %d", text_of(x).text, dims->first, dims->second);
    for (int d = 0; d < dims->first; d++) to.dim[d] = x->dim[d];
    to.dim[dims->first] = 1;
    for (int d = dims->first; d <= dims->second; d++) to.dim[dims->first] *= x->dim[d];
    for (int d = dims->first + 1; d < to.n; d++) to.dim[d] = x->dim[d + dims->second - dims->first];
    return write_view(x, &to, out);
}

static dt_status derive_unflatten(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out)
{
    const dti_unflatten *into = attributes;
    const dt_shape *x = &shapes[0];
    dt_shape parts, to = *x;
    (void)n;
    dt_status status = read_sizes(ctx, "unflatten", x, x->dim[into->dim], &into->sizes, &parts);
    if (status) return status;
    to.n = x->n - 1 + parts.n;
    if (to.n > DT_MAX_DIMS)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "unflatten: expected at most %d dims, got dim %d of x %s as %s",
                               DT_MAX_DIMS, into->dim, text_of(x).text, text_of(&parts).text);
    for (int d = 0; d < parts.n; d++) to.dim[into->dim + d] = parts.dim[d];
    for (int d = into->dim + parts.n; d < to.n; d++) to.dim[d] = x->dim[d - parts.n + 1];
    return write_view(x, &to, out);
}

static dt_status derive_squeeze(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    int dim = ((const dti_along *)attributes)->dim;
    dt_shape to = shapes[0];
    (void)n;
    if (to.dim[dim] != 1)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "squeeze: expected dim %d of x %s to have size 1, got %lld", dim,
                               text_of(&to).text, (long long)to.dim[dim]);
    to.n--;
    for (int d = dim; d < to.n; d++) to.dim[d] = to.dim[d + 1];
    return write_view(&shapes[0], &to, out);
}

/* ---- dims of size 1 put in --------------------------------------------------------------------------------------- */

static bool is_among(const dt_shape *dims, int d, int all)
{
    for (int i = 0; i < dims->n; i++)
        if (dims->dim[i] == d || dims->dim[i] == d - all) return true;
    return false;
}

/* "a b -> a B b": letters A, B, C.. of size 1 are new. */
static dt_status derive_unsqueeze(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out)
{
    const dt_shape *dims = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    int all = shapes[0].n + dims->n, old = 0;
    (void)n;
    if (dims->n < 0 || all > DT_MAX_DIMS)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "unsqueeze: expected at most %d dims, got %d more for x %s",
                               DT_MAX_DIMS, dims->n, text_of(&shapes[0]).text);
    for (int d = 0; d < shapes[0].n; d++) dti_put(&pen, "%c ", 'a' + d);
    dti_put(&pen, "->");
    for (int d = 0; d < all; d++) {
        bool put_in = is_among(dims, d, all);
        dti_put(&pen, " %c", put_in ? 'A' + d : 'a' + old);
        old += !put_in;
        if (!put_in) continue;
        out->size[out->size_count].letter = (char)('A' + d);
        out->size[out->size_count++].size = 1;
    }
    if (old == shapes[0].n) return DT_OK;
    return dt_context_fail(ctx, DT_ERR_ARG, "unsqueeze: expected different dims in %d .. %d for x %s, got %s", -all,
                           all - 1, text_of(&shapes[0]).text, text_of(dims).text);
}

/* ---- dims in another order --------------------------------------------------------------------------------------- */

/* "a b c -> c a b" for 2, 0, 1. */
static void write_order(const int *order, int n, dt_derived *out)
{
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    for (int d = 0; d < n; d++) dti_put(&pen, "%c ", 'a' + d);
    dti_put(&pen, "->");
    for (int d = 0; d < n; d++) dti_put(&pen, " %c", 'a' + order[d]);
}

static dt_status derive_permute(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                dt_derived *out)
{
    const dt_shape *asked = attributes;
    int order[DT_MAX_DIMS];
    unsigned seen = 0;
    bool fits = asked->n == shapes[0].n;
    (void)n;
    for (int d = 0; fits && d < asked->n; d++) {
        int64_t dim = asked->dim[d] < 0 ? asked->dim[d] + asked->n : asked->dim[d];
        fits = dim >= 0 && dim < asked->n && !(seen >> dim & 1);
        if (fits) seen |= 1u << dim;
        order[d] = (int)dim;
    }
    if (!fits)
        return dt_context_fail(ctx, DT_ERR_ARG, "permute: expected each dim of x %s once, got %s",
                               text_of(&shapes[0]).text, text_of(asked).text);
    write_order(order, asked->n, out);
    return DT_OK;
}

static dt_status derive_transpose(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out)
{
    const dti_two_dims *dims = attributes;
    int order[DT_MAX_DIMS];
    (void)ctx;
    (void)n;
    for (int d = 0; d < shapes[0].n; d++) order[d] = d;
    order[dims->first] = dims->second;
    order[dims->second] = dims->first;
    write_order(order, shapes[0].n, out);
    return DT_OK;
}

/* ---- stretched --------------------------------------------------------------------------------------------------- */

static dt_status derive_expand(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                               dt_derived *out)
{
    const dt_shape *asked = attributes, *x = &shapes[0];
    int more = asked->n - x->n;
    bool fits = asked->n <= DT_MAX_DIMS && more >= 0;
    (void)n;
    for (int d = 0; fits && d < asked->n; d++) {
        int64_t own = d < more ? 1 : x->dim[d - more], size = asked->dim[d];
        if (size == -1 && d >= more) size = own;
        fits = size >= 0 && (own == 1 || own == size);
        out->batch.dim[d] = size;
    }
    if (!fits)
        return dt_context_fail(ctx, DT_ERR_SHAPE, "expand: expected the sizes of x %s, others only for 1 and in front, "
                               "got %s", text_of(x).text, text_of(asked).text);
    out->batch.n = asked->n;
    out->stretches = true;
    return DT_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const dt_attribute order[] = { { "order", DT_ATTRIBUTE_LIST, 0 } };
static const dt_attribute sizes[] = { { "shape", DT_ATTRIBUTE_SHAPE, 0 } };
static const dt_attribute new_dims[] = { { "dims", DT_ATTRIBUTE_LIST, 0 } };
static const dt_attribute one_dim[] = { { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) } };
static const dt_attribute two_dims[] = {
    { "first", DT_ATTRIBUTE_DIM, offsetof(dti_two_dims, first) },
    { "second", DT_ATTRIBUTE_DIM, offsetof(dti_two_dims, second) },
};
static const dt_attribute first_last[] = {
    { "first", DT_ATTRIBUTE_DIM, offsetof(dti_two_dims, first) },
    { "last", DT_ATTRIBUTE_DIM, offsetof(dti_two_dims, second) },
};
static const dt_attribute into[] = {
    { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_unflatten, dim) },
    { "shape", DT_ATTRIBUTE_SHAPE, offsetof(dti_unflatten, sizes) },
};

static const dt_op permute = {
    .head = "permute(x)", .polynomial = "x, rising", .derive = derive_permute, .attributes = order,
    .attribute_count = DT_COUNT(order), .attribute_bytes = sizeof(dt_shape), .kernel = dti_cpu_permute,
    .gradient = dti_grad_permute, .doc = "dims in another order",
};
static const dt_op transpose = {
    .head = "transpose(x)", .polynomial = "x, rising", .derive = derive_transpose, .attributes = two_dims,
    .attribute_count = DT_COUNT(two_dims), .attribute_bytes = sizeof(dti_two_dims), .kernel = dti_cpu_transpose,
    .gradient = dti_grad_transpose, .doc = "two dims exchanged",
};
static const dt_op unsqueeze = {
    .head = "unsqueeze(x)", .polynomial = "x, rising", .derive = derive_unsqueeze, .attributes = new_dims,
    .attribute_count = DT_COUNT(new_dims), .attribute_bytes = sizeof(dt_shape), .shares = true,
    .gradient = dti_grad_view, .doc = "dims of size 1 put in, which are then these of the result",
};
static const dt_op squeeze = {
    .head = "squeeze(x)", .polynomial = "x, rising", .derive = derive_squeeze, .attributes = one_dim,
    .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along), .shares = true,
    .gradient = dti_grad_view, .doc = "a dim of size 1 taken out",
};
static const dt_op flatten = {
    .head = "flatten(x)", .polynomial = "x, rising", .derive = derive_flatten, .attributes = first_last,
    .attribute_count = DT_COUNT(first_last), .attribute_bytes = sizeof(dti_two_dims), .shares = true,
    .gradient = dti_grad_view, .doc = "neighbouring dims as one, their product",
};
static const dt_op unflatten = {
    .head = "unflatten(x)", .polynomial = "x, rising", .derive = derive_unflatten, .attributes = into,
    .attribute_count = DT_COUNT(into), .attribute_bytes = sizeof(dti_unflatten), .shares = true,
    .gradient = dti_grad_view, .doc = "a dim as several, whose product it is",
};
static const dt_op reshape = {
    .head = "reshape(x)", .polynomial = "x, rising", .derive = derive_reshape, .attributes = sizes,
    .attribute_count = DT_COUNT(sizes), .attribute_bytes = sizeof(dt_shape), .shares = true,
    .gradient = dti_grad_view, .doc = "the same elements in another shape",
};
static const dt_op expand = {
    .head = "expand(x)", .rule = "... -> ...", .polynomial = "x, rising", .derive = derive_expand,
    .attributes = sizes, .attribute_count = DT_COUNT(sizes), .attribute_bytes = sizeof(dt_shape),
    .kernel = dti_cpu_expand, .gradient = dti_grad_same, .doc = "dims of size 1 stretched, others put in front",
};

const dt_op *const dti_ops_view[] = {
    &permute, &transpose, &unsqueeze, &squeeze, &flatten, &unflatten, &reshape, &expand, NULL,
};

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

/* Calls are remembered by the bytes of attributes: those between and behind are 0. */
static void put_list(dt_shape *to, int n, const int64_t *sizes_of, const int *dims)
{
    memset(to, 0, sizeof *to);
    to->n = n;
    for (int i = 0; i < n && i < DT_MAX_DIMS; i++) to->dim[i] = sizes_of ? sizes_of[i] : dims[i];
}

static dt_tensor *with_sizes(const dt_op *op, dt_tensor *x, const dt_shape *asked)
{
    dt_shape list;
    put_list(&list, asked->n, asked->dim, NULL);
    return dt_apply(op, &x, 1, &list);
}

static dt_tensor *with_dims(const dt_op *op, dt_tensor *x, const dt_dims *dims)
{
    dt_shape list;
    put_list(&list, dims->n, NULL, dims->dim);
    return dt_apply(op, &x, 1, &list);
}

dt_tensor *dt_permute(dt_tensor *x, dt_dims dims) { return with_dims(&permute, x, &dims); }
dt_tensor *dt_transpose(dt_tensor *x, int i, int j) { return dt_apply(&transpose, &x, 1, &(dti_two_dims){ i, j }); }
dt_tensor *dti_unsqueeze(dt_tensor *x, dt_dims dims) { return with_dims(&unsqueeze, x, &dims); }
dt_tensor *dt_unsqueeze(dt_tensor *x, int dim) { return dti_unsqueeze(x, DT_DIMS(dim)); }
dt_tensor *dt_squeeze(dt_tensor *x, int dim) { return dt_apply(&squeeze, &x, 1, &(dti_along){ .dim = dim }); }
dt_tensor *dt_reshape(dt_tensor *x, dt_shape shape) { return with_sizes(&reshape, x, &shape); }
dt_tensor *dt_expand(dt_tensor *x, dt_shape shape) { return with_sizes(&expand, x, &shape); }

dt_tensor *dt_expand_placed(dt_tensor *x, dt_shape shape, const char *placements)
{
    dt_shape list;
    put_list(&list, shape.n, shape.dim, NULL);
    return dt_apply_placed(&expand, &x, 1, &list, placements);
}

dt_tensor *dt_flatten(dt_tensor *x, int first, int last)
{
    return dt_apply(&flatten, &x, 1, &(dti_two_dims){ first, last });
}

dt_tensor *dt_unflatten(dt_tensor *x, int dim, dt_shape shape)
{
    dti_unflatten how = { .dim = dim };
    put_list(&how.sizes, shape.n, shape.dim, NULL);
    return dt_apply(&unflatten, &x, 1, &how);
}
