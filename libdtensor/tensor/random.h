/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of a global tensor: element i, in row-major order, has a number that depends on (seed, stream), the
 * dtype and i alone, so every mesh, placement and cut into calls gives the same tensor, and so does every machine with
 * IEEE arithmetic: no function of a mathematical library is used but the square root. Philox4x32-10: the key is the
 * seed, the counter holds the element and the stream. Uniform and normal numbers of one key are independent. */
#ifndef DTI_RANDOM_H
#define DTI_RANDOM_H

#include <dtensor/types.h>

/* Elements first .. first + count - 1, uniform: floats in [0, 1), with 53 bits in f64, 24 in f32, 11 in f16 and 8 in
 * bf16; integers have all bits; bools are fair. */
void dti_random_uniform(dt_dtype dtype, uint64_t seed, uint64_t stream, int64_t first, int64_t count, void *out);
/* The same, normal with mean 0 and deviation 1; made in f64, then rounded: the f32 tensor is the f64 one in f32. */
void dti_random_normal(dt_dtype dtype, uint64_t seed, uint64_t stream, int64_t first, int64_t count, void *out);
/* The generator itself: one counter under one key. */
void dti_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

#endif
