/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangles by position in the whole tensor: rows and columns are runs of numbers, of which this rank holds some. */
#include <string.h>

#include "core/context.h"
#include "ops/cpu/kernels.h"
#include "placements/spec.h"

typedef struct triangle { bool upper; int64_t diagonal; dti_set rows, columns; size_t size; } triangle;

/* One row, whose number is i: to and from are its first elements. */
static void write_row(const triangle *t, int64_t i, char *to, const char *from)
{
    const dti_interval *run = dti_set_at(&t->columns);
    int64_t border = i + t->diagonal + (t->upper ? 0 : 1);             /* the first column of the right-hand side  */
    for (int r = 0; r < t->columns.n; r++) {
        int64_t n = run[r].hi - run[r].lo, left = border - run[r].lo;
        left = left < 0 ? 0 : left > n ? n : left;
        size_t all = (size_t)n * t->size, below = (size_t)left * t->size;
        memcpy(to, from, all);
        if (t->upper) memset(to, 0, below);
        else memset(to + below, 0, all - below);
        to += all;
        from += all;
    }
}

static void write_matrix(const triangle *t, size_t row_bytes, char *to, const char *from)
{
    const dti_interval *run = dti_set_at(&t->rows);
    for (int r = 0; r < t->rows.n; r++)
        for (int64_t i = run[r].lo; i < run[r].hi; i++, to += row_bytes, from += row_bytes)
            write_row(t, i, to, from);
}

/* Farther out than the matrix is wide and high, a diagonal is all the same. */
static int64_t within(int64_t diagonal, const dt_shape *shape)
{
    int64_t least = -shape->dim[shape->n - 2], most = shape->dim[shape->n - 1];
    return diagonal < least ? least : diagonal > most ? most : diagonal;
}

static dt_status write_triangle(const dt_call *call, bool upper)
{
    const dt_part *x = &call->in[0], *y = &call->out[0];
    dt_shape whole = dt_spec_shape(x->spec);
    int rows = x->shape.n - 2, columns = x->shape.n - 1;
    triangle t = { .upper = upper, .size = dt_dtype_bytes(x->dtype),
                   .diagonal = within(((const dti_triangle *)call->attributes)->diagonal, &whole) };
    size_t row_bytes = (size_t)x->shape.dim[columns] * t.size, matrix = (size_t)x->shape.dim[rows] * row_bytes;
    int64_t count = matrix ? 1 : 0;
    for (int d = 0; d < rows; d++) count *= x->shape.dim[d];
    dti_set_init(&t.rows);
    dti_set_init(&t.columns);
    dti_spec_set(x->spec, rows, x->rank, &t.rows);
    dti_spec_set(x->spec, columns, x->rank, &t.columns);
    bool lost = t.rows.lost || t.columns.lost;
    for (int64_t k = 0; k < count && !lost; k++)
        write_matrix(&t, row_bytes, (char *)y->data + (size_t)k * matrix, (const char *)x->data + (size_t)k * matrix);
    dti_set_fini(&t.rows);
    dti_set_fini(&t.columns);
    return lost ? dt_context_fail(call->ctx, DT_ERR_MEMORY, "%s: no memory for what is held", call->op->head) : DT_OK;
}

dt_status dti_cpu_tril(const dt_call *call) { return write_triangle(call, false); }
dt_status dti_cpu_triu(const dt_call *call) { return write_triangle(call, true); }
