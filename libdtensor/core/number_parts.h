/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of numbers need of each other; no other file includes this. A kernel works on whole blocks, so that
 * the compiler makes vectors of its loop and needs no second loop for a rest: the same element gets the same
 * instructions wherever it lies. Arrays are aligned as their elements. */
#ifndef DTI_NUMBER_PARTS_H
#define DTI_NUMBER_PARTS_H

#include "core/number.h"

enum { DTI_BLOCK = 16, DTI_CHUNK = 512 }; /* elements of a block; of a buffer, two of which stay in the nearest cache */

/* Elements of a dtype to its sum dtype; NULL: it is its own. */
typedef void (*dti_load_fn)(void *restrict out, const void *restrict in, size_t blocks);
/* Elements of a sum dtype to any dtype; NULL: the same one. */
typedef void (*dti_store_fn)(void *restrict out, const void *restrict in, size_t blocks);
/* sum[i] = sum[i] combined with in[i], both of a sum dtype. */
typedef void (*dti_combine_fn)(void *restrict sum, const void *restrict in, size_t blocks);
typedef void (*dti_scale_fn)(void *sum, size_t blocks, int64_t multiply, int64_t divide);

dti_load_fn dti_number_load(dt_dtype from);
dti_store_fn dti_number_store(dt_dtype sum, dt_dtype to);
dti_combine_fn dti_number_combine(dt_dtype sum, dti_combine combine);
dti_scale_fn dti_number_scale(dt_dtype sum);

#endif
