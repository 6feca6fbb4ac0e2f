/* SPDX-License-Identifier: Apache-2.0
 *
 * How loops become vectors. A kernel's loop runs over whole blocks of elements, so that every element gets the same
 * instructions wherever it lies and however many there are; it is a body, inlined with constant parameters into a
 * function that is compiled for several machines. */
#ifndef DTI_OPS_CPU_VECTOR_H
#define DTI_OPS_CPU_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#define DTI_INLINE static inline __attribute__((always_inline))

/* Compiled for several machines, of which the loader takes one; with sanitizers for the baseline alone. */
#ifdef DTI_CLONED
#define DTI_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTI_CLONES
#endif

enum { DTI_LANES = 16, DTI_RUN = 512 }; /* elements of a block; at most of a buffer, which stays in the nearest cache */

static inline size_t dti_blocks(int64_t n) { return ((size_t)n + DTI_LANES - 1) / DTI_LANES; }

#endif
