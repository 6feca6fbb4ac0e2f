/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies past the caches. They win where the target is larger than the cache, and many times over where other CPUs have
 * its lines: a plain store first waits until each has given them back. They lose where the target is in this CPU's
 * cache. */
#ifndef DTI_STREAM_H
#define DTI_STREAM_H

#include <stddef.h>

enum { DTI_STREAM_RUN = 512 };     /* bytes of a run from which it is worth it                                     */

/* Copy n bytes; whoever reads them sees them after dti_stream_end and a release by this thread. */
void dti_stream(void *to, const void *from, size_t n);
void dti_stream_end(void);
/* Sum f32 of count sources, in their order, to all targets, *offset* behind the begin of each: so many of n bytes as
 * is returned, from the first on; 0 where targets lie so, or this CPU is such, that it cannot. */
size_t dti_stream_sum_f32(const char *const *from, int count, void *const *to, int targets, size_t offset, size_t n);
/* Bytes of the last cache that all CPUs share, as far as the system says. */
size_t dti_cache_bytes(void);

#endif
