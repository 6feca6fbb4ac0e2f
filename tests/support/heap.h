/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts calls of malloc, calloc, realloc and free by standing before those of the C library. */
#ifndef HEAP_H
#define HEAP_H

#include <stdbool.h>

/* Can it count here? Not where a sanitizer stands there, nor with another C library than glibc. */
bool heap_counts(void);
/* Calls by this thread since it began. */
long heap_calls(void);

#endif
