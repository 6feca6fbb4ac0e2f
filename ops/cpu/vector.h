/* SPDX-License-Identifier: Apache-2.0
 *
 * How loops become vectors. A kernel's loop runs over whole blocks of elements, so that every element gets the same
 * instructions wherever it lies and however many there are; it is a body, inlined with constant parameters into a
 * function that is compiled for several machines. */
#ifndef DTI_OPS_CPU_VECTOR_H
#define DTI_OPS_CPU_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "core/clones.h"

#define DTI_INLINE static inline __attribute__((always_inline))

enum { DTI_LANES = 16, DTI_RUN = 512 }; /* elements of a block; at most of a buffer, which stays in the nearest cache */

static inline size_t dti_blocks(int64_t n) { return ((size_t)n + DTI_LANES - 1) / DTI_LANES; }

#endif
