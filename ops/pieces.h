/* SPDX-License-Identifier: Apache-2.0
 *
 * What decompositions do with the pieces of a dim: ops on this rank's piece alone, and results that have so many
 * elements of each piece in the place of the dim. */
#ifndef DTI_OPS_PIECES_H
#define DTI_OPS_PIECES_H

#include <dtensor/tensor.h>

/* This rank's part of x on a mesh of one; of what is P its contribution. */
dt_tensor *dti_piece_of(dt_tensor *x);
/* The tensor of which this is this rank's part. */
dt_tensor *dti_of_piece(dt_tensor *piece, const dt_spec *spec);

/* like, but in the place of dim *each* elements of every piece, split as dim is: "(pieces each)". */
const dt_spec *dti_spec_of_pieces(const dt_spec *like, int dim, int64_t each, dt_dtype dtype);
/* At most so many elements of dim are in a piece. */
int64_t dti_spec_largest_piece(const dt_spec *spec, int dim);
/* Factors of dim, and the first of them. */
int dti_spec_factors(const dt_spec *spec, int dim, int64_t *first);
/* dim alone, split as it is, of i64. */
const dt_spec *dti_spec_of_dim(const dt_spec *like, int dim);
/* like, but dim is whole: the mesh dims that split it split another dim, that has the most for them, or none. */
const dt_spec *dti_spec_aside(const dt_spec *like, int dim);

#endif
