/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference product: a block of rows of a as the dtype that sums, panels of b of DTI_LANES columns, tiles. What
 * lies beside the matrices is taken as zero, and not stored. */
#include "ops/cpu/product.h"

#include <string.h>

#include "core/number_parts.h"
#include "ops/cpu/room.h"
#include "ops/cpu/vector.h"

enum { BLOCK_ROWS = 384 };

typedef union tile {
    double f64[DTI_TILE_ROWS * DTI_LANES];
    float f32[DTI_TILE_ROWS * DTI_LANES];
    int64_t i64[DTI_TILE_ROWS * DTI_LANES];
} tile;

typedef union lane { double f64[DTI_RUN]; float f32[DTI_RUN]; int64_t i64[DTI_RUN]; } lane;

typedef struct product {
    const dti_product *p;
    dt_dtype sum;
    size_t bytes, sum_bytes;           /* of an element, of one that sums                                          */
    char *rows;                        /* [BLOCK_ROWS, k]; NULL: a is read where it lies                           */
    char *panel;                       /* [k, DTI_LANES]                                                           */
    dti_load_fn load;                  /* NULL: a copy                                                             */
} product;

/* ---- b ----------------------------------------------------------------------------------------------------------- */

static void pack_row(const product *t, int64_t k, int64_t j, int64_t columns)
{
    const char *from = (const char *)t->p->b + (size_t)(k * t->p->n + j) * t->bytes;
    char *to = t->panel + (size_t)k * DTI_LANES * t->sum_bytes;
    size_t used = (size_t)columns * t->sum_bytes;
    if (columns == DTI_LANES && t->load) t->load(to, from, 1);
    else if (!t->load) memcpy(to, from, used);
    else dti_numbers_convert(t->p->dtype, from, t->sum, to, columns);
    memset(to + used, 0, DTI_LANES * t->sum_bytes - used);
}

static void spread_4(const float *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i * DTI_LANES] = from[i];
}

static void spread_8(const double *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i * DTI_LANES] = from[i];
}

/* Column j of a panel from a row of b transposed. */
static void pack_column(const product *t, int64_t row, int64_t j)
{
    lane x;
    for (int64_t k = 0; k < t->p->k; k += DTI_RUN) {
        int64_t n = t->p->k - k < DTI_RUN ? t->p->k - k : DTI_RUN;
        char *to = t->panel + (size_t)(k * DTI_LANES + j) * t->sum_bytes;
        dti_numbers_convert(t->p->dtype, (const char *)t->p->b + (size_t)(row * t->p->k + k) * t->bytes, t->sum, &x, n);
        if (t->sum_bytes == 4) spread_4(x.f32, (float *)(void *)to, n);
        else spread_8(x.f64, (double *)(void *)to, n);
    }
}

static void pack_panel(const product *t, int64_t j, int64_t columns)
{
    if (!t->p->transposed) {
        for (int64_t k = 0; k < t->p->k; k++) pack_row(t, k, j, columns);
        return;
    }
    if (columns < DTI_LANES) memset(t->panel, 0, (size_t)t->p->k * DTI_LANES * t->sum_bytes);
    for (int64_t c = 0; c < columns; c++) pack_column(t, j + c, c);
}

/* ---- c ----------------------------------------------------------------------------------------------------------- */

/* A row of a tile plus what is added to it, as the dtype. */
static void store_row(const product *t, const char *sums, int64_t i, int64_t j, int64_t columns)
{
    const dti_product *p = t->p;
    lane x, add;
    char *to = (char *)p->c + (size_t)(i * p->n + j) * t->bytes;
    if (!p->add) {
        if (t->load) dti_numbers_convert(t->sum, sums, p->dtype, to, columns);
        else memcpy(to, sums, (size_t)columns * t->bytes);
        return;
    }
    const char *from = (const char *)p->add + (size_t)(i * p->add_row + j * p->add_column) * t->bytes;
    memset(&x, 0, DTI_LANES * t->sum_bytes);
    memset(&add, 0, DTI_LANES * t->sum_bytes);
    memcpy(&x, sums, (size_t)columns * t->sum_bytes);
    dti_numbers_convert(p->dtype, from, t->sum, &add, p->add_column ? columns : 1);
    for (int64_t c = 1; c < columns && !p->add_column; c++)
        memcpy((char *)&add + (size_t)c * t->sum_bytes, &add, t->sum_bytes);
    dti_number_combine(t->sum, DTI_COMBINE_SUM)(&x, &x, &add, 1);
    dti_numbers_convert(t->sum, &x, p->dtype, to, columns);
}

static void run_tile(const product *t, const char *a, int64_t i, int rows, int64_t j, int64_t columns)
{
    const void *row[DTI_TILE_ROWS], *panel = t->panel;
    tile sums;
    for (int r = 0; r < rows; r++) row[r] = a + (size_t)(r * t->p->k) * t->sum_bytes;
    if (t->sum == DT_F64) dti_tile_f64((const double *const *)row, panel, t->p->k, rows, sums.f64);
    if (t->sum == DT_F32) dti_tile_f32((const float *const *)row, panel, t->p->k, rows, sums.f32);
    if (t->sum == DT_I64) dti_tile_i64((const int64_t *const *)row, panel, t->p->k, rows, sums.i64);
    for (int r = 0; r < rows; r++)
        store_row(t, (const char *)&sums + (size_t)(r * DTI_LANES) * t->sum_bytes, i + r, j, columns);
}

/* ---- a ----------------------------------------------------------------------------------------------------------- */

/* Rows first .. first + rows - 1 of a that lies transposed: element k of all of them is one piece of its row k. */
static void turn_rows(const product *t, int64_t first, int64_t rows)
{
    lane x;
    for (int64_t k = 0; k < t->p->k; k++)
        for (int64_t i = 0; i < rows; i += DTI_RUN) {
            int64_t n = rows - i < DTI_RUN ? rows - i : DTI_RUN;
            const char *from = (const char *)t->p->a + (size_t)(k * t->p->m + first + i) * t->bytes;
            dti_numbers_convert(t->p->dtype, from, t->sum, &x, n);
            for (int64_t r = 0; r < n; r++)
                memcpy(t->rows + (size_t)((i + r) * t->p->k + k) * t->sum_bytes, (char *)&x + (size_t)r * t->sum_bytes,
                       t->sum_bytes);
        }
}

/* Rows of a in the dtype that sums, [rows, k]. */
static const char *rows_of(const product *t, int64_t first, int64_t rows)
{
    const char *a = (const char *)t->p->a + (size_t)(first * t->p->k) * t->bytes;
    if (!t->rows) return a;
    if (t->p->a_transposed) turn_rows(t, first, rows);
    else dti_numbers_convert(t->p->dtype, a, t->sum, t->rows, rows * t->p->k);
    return t->rows;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void run_block(const product *t, int64_t first, int64_t rows)
{
    const dti_product *p = t->p;
    const char *a = rows_of(t, first, rows);
    for (int64_t j = 0; j < p->n; j += DTI_LANES) {
        int64_t columns = p->n - j < DTI_LANES ? p->n - j : DTI_LANES;
        pack_panel(t, j, columns);
        for (int64_t i = 0; i < rows; i += DTI_TILE_ROWS) {
            int count = (int)(rows - i < DTI_TILE_ROWS ? rows - i : DTI_TILE_ROWS);
            run_tile(t, a + (size_t)(i * p->k) * t->sum_bytes, first + i, count, j, columns);
        }
    }
}

bool dti_product_run(const dti_product *p)
{
    product t = { .p = p, .sum = dti_sum_dtype(p->dtype), .load = dti_number_load(p->dtype) };
    t.bytes = dt_dtype_bytes(p->dtype);
    t.sum_bytes = dt_dtype_bytes(t.sum);
    int64_t block = p->m < BLOCK_ROWS ? p->m : BLOCK_ROWS;
    t.panel = dti_room_take(p->ctx, (size_t)(p->k + 1) * DTI_LANES * t.sum_bytes);
    bool own_rows = t.sum != p->dtype || p->a_transposed;
    if (own_rows) t.rows = dti_room_take(p->ctx, (size_t)(block * p->k + 1) * t.sum_bytes);
    bool room = t.panel && (t.rows || !own_rows);
    for (int64_t i = 0; i < p->m && room; i += block) run_block(&t, i, p->m - i < block ? p->m - i : block);
    dti_room_give(t.rows);
    dti_room_give(t.panel);
    return room;
}
