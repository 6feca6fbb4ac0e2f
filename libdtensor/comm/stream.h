/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and sums by how far from the CPU their targets are. Stores past the caches win where a target is larger than
 * the last one, and many times over where other CPUs have its lines: a plain store first waits until each has given
 * them back. They lose where the target is in this CPU's cache. */
#ifndef DTI_STREAM_H
#define DTI_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Where what one call writes lies, and as much of what it reads: in the CPU's own cache, in the last one, past it. */
typedef enum dti_reach { DTI_NEAR, DTI_FAR, DTI_PAST } dti_reach;
/* The most bytes each of so many ranks writes near, and far. */
typedef struct dti_caches { size_t near, far; } dti_caches;

dti_caches dti_caches_for(int ranks);

enum { DTI_STREAM_RUN = 512 };     /* bytes of a run from which past the caches is worth it                        */

/* Copy n bytes past the caches; whoever reads them sees them after dti_stream_end and a release by this thread. */
void dti_stream(void *to, const void *from, size_t n);
void dti_stream_end(void);
/* Sum f32 of count sources, in their order, to all targets, *offset* behind the begin of each, far or past: so many of
 * n bytes as is returned, from the first on; 0 where targets lie so, or this CPU is such, that it cannot. */
size_t dti_stream_sum_f32(dti_reach reach, const char *const *from, int count, char *const *to, int targets,
                          size_t offset, size_t n);

#endif
