/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of one rank from numbers and back, as doubles, whatever the dtype; and comparisons. */
#ifndef VALUES_H
#define VALUES_H

#include <dtensor/dtensor.h>

enum { VALUES = 20480 };

typedef struct values { dt_shape shape; int64_t n; double at[VALUES]; } values;

/* Run a test on one rank. */
void on_one_rank(dt_rank_fn fn);
/* The mesh of a test's rank. */
dt_mesh *mesh_of(dt_context *ctx);

/* The numbers, rounded to the dtype; NULL and the error as dt_from_host. */
dt_tensor *tensor_of(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const double *numbers);
/* Draws from -4 to 4, of integers whole ones; the same for one seed. */
dt_tensor *drawn(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, uint64_t seed);
/* What a tensor holds; all zero, with a failed expectation, for NULL. */
void read_values(dt_tensor *x, values *out);

/* A number rounded to a dtype. */
double rounded(dt_dtype dtype, double number);
/* The distance of 1 to the next number; 0 for integers. */
double epsilon(dt_dtype dtype);
/* Equal, both NaN, or apart by at most *ulps* units of the last digit of due, and *least*. */
bool near(dt_dtype dtype, double got, double due, double ulps, double least);
/* The element of x, broadcast to a shape, at row-major index i of it. */
double broadcast_at(const values *x, const dt_shape *shape, int64_t i);
/* Elements of a shape. */
int64_t count_of(const dt_shape *shape);

#endif
