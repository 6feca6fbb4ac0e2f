/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-temporal stores, where the CPU has them. Sanitizers do not see them, so that builds with one copy plainly. */
#define _GNU_SOURCE /* _SC_LEVEL3_CACHE_SIZE */
#include "comm/stream.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <emmintrin.h>

enum { LINE = 64 };

void dti_stream(void *to, const void *from, size_t n)
{
    char *out = to;
    const char *in = from;
    size_t head = (LINE - (uintptr_t)out % LINE) % LINE;
    if (head > n) head = n;
    memcpy(out, in, head);
    out += head;
    in += head;
    n -= head;
    for (; n >= LINE; out += LINE, in += LINE, n -= LINE) {
        const __m128i *read = (const void *)in;
        __m128i *write = (void *)out, a = _mm_loadu_si128(read), b = _mm_loadu_si128(read + 1);
        __m128i c = _mm_loadu_si128(read + 2), d = _mm_loadu_si128(read + 3);
        _mm_stream_si128(write, a);
        _mm_stream_si128(write + 1, b);
        _mm_stream_si128(write + 2, c);
        _mm_stream_si128(write + 3, d);
    }
    memcpy(out, in, n);
}

void dti_stream_end(void) { _mm_sfence(); }

#else

void dti_stream(void *to, const void *from, size_t n) { memcpy(to, from, n); }

void dti_stream_end(void) {}

#endif

size_t dti_cache_bytes(void)
{
    long bytes = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)16 << 20;
}
