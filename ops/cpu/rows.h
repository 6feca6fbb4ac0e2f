/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that see some dims of an array whole: the elements along them, a row, are gathered, floats as f64 and
 * integers as i64, worked on, and written back or made a number or two. */
#ifndef DTI_OPS_CPU_ROWS_H
#define DTI_OPS_CPU_ROWS_H

#include <dtensor/op.h>

typedef struct dti_row {
    int64_t n;
    double *x;                         /* may be written; behind it is room for a block                            */
    const int64_t *integers;           /* the same place, where x has an integer dtype                             */
    const double *w, *b;               /* operands of n elements; NULL: absent                                     */
    double number[DT_MAX_OPERANDS];    /* operands that have a number per row; 0: absent                           */
    int64_t integer[DT_MAX_OPERANDS];  /* the same, of integers                                                    */
    const int64_t *index;              /* in the whole tensor, of elements along the dim; NULL: not asked for       */
    const void *attributes;
    double result[DT_MAX_RESULTS];     /* numbers that come of it                                                  */
} dti_row;

typedef void (*dti_row_fn)(dti_row *row);

typedef struct dti_rows {
    dt_dims dims;                      /* of operand 0, along which its rows are                                   */
    bool back;                         /* result 0 is the rows as fn left them, further ones are numbers; else all
                                          are                                                                      */
    int w, b;                          /* which operands they are; 0: none                                         */
    bool indexed;                      /* the index is asked for; dims is one                                      */
    int numbers;                       /* operands 1 .. numbers have a number per row                              */
    dti_row_fn fn;
} dti_rows;

dt_status dti_rows_run(const dt_call *call, const dti_rows *rows);

/* row_sums.c: over n numbers, in lanes, so that loops become vectors. */
double dti_row_sum(const double *x, int64_t n);
double dti_row_squares(const double *x, double center, int64_t n); /* of distances from center                     */
double dti_row_max(const double *x, int64_t n); /* NaN where there is one                                          */
/* x = exp(x - shift), and their sum. */
double dti_row_exp(double *x, double shift, int64_t n);
/* The sum alone. */
double dti_row_exp_sum(const double *x, double shift, int64_t n);
/* The sum of (x - center) * w; w NULL: of ones. */
double dti_row_weighted(const double *x, double center, const double *w, int64_t n);
/* x = (x - center) * scale * w + b; w and b may be NULL. */
void dti_row_scale(double *x, double center, double scale, const double *w, const double *b, int64_t n);

#endif
