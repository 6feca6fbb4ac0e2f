/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that glibc has under names of its own are called from here, each counted once. */
#include "heap.h"

#include <stdlib.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || !defined __GLIBC__
#define COUNTS 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#define COUNTS 1
#endif

static _Thread_local long calls;

bool heap_counts(void) { return COUNTS; }
long heap_calls(void) { return calls; }

#if COUNTS
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

void *malloc(size_t n)
{
    calls++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    calls++;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    calls++;
    __libc_free(p);
}
#endif
