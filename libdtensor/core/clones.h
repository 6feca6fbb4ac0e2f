/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose loops become vectors, compiled for several machines, of which the loader takes one; with sanitizers
 * for the baseline alone. */
#ifndef DTI_CLONES_H
#define DTI_CLONES_H

#include <stdbool.h>

#ifdef DTI_CLONED
#define DTI_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* Does the machine have 32 vectors of 64 bytes? */
static inline bool dti_has_wide_vectors(void) { return __builtin_cpu_supports("avx512f"); }
#else
#define DTI_CLONES
static inline bool dti_has_wide_vectors(void) { return false; }
#endif

#endif
