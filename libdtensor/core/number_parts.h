/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of numbers, and the CPU kernels that reduce, need of each other. A kernel works on whole blocks, so
 * that the compiler makes vectors of its loop and needs no second loop for a rest: the same element gets the same
 * instructions wherever it lies. Arrays are aligned as their elements. */
#ifndef DTI_NUMBER_PARTS_H
#define DTI_NUMBER_PARTS_H

#include "core/number.h"

/* Before a loop that reads and writes the same arrays, at the same index only: the compiler cannot know. */
#if defined(__clang__)
#define DTI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DTI_INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { DTI_BLOCK = 16, DTI_CHUNK = 512 }; /* elements of a block; of a buffer, two of which stay in the nearest cache */

/* Elements of a dtype to its sum dtype; NULL: it is its own. */
typedef void (*dti_load_fn)(void *restrict out, const void *restrict in, size_t blocks);
/* Elements of a sum dtype to any dtype; NULL: the same one. */
typedef void (*dti_store_fn)(void *restrict out, const void *restrict in, size_t blocks);
/* out[i] = left[i] combined with right[i], all of a sum dtype; out may be left or right. */
typedef void (*dti_combine_fn)(void *out, const void *left, const void *right, size_t blocks);
typedef void (*dti_scale_fn)(void *sum, size_t blocks, int64_t multiply, int64_t divide);

dti_load_fn dti_number_load(dt_dtype from);
dti_store_fn dti_number_store(dt_dtype sum, dt_dtype to);
dti_combine_fn dti_number_combine(dt_dtype sum, dti_combine combine);
dti_scale_fn dti_number_scale(dt_dtype sum);

#endif
