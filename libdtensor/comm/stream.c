/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-temporal stores, or lines asked for ahead, where the CPU has them, and few instructions beside them: the more of
 * those, the fewer loads and stores are under way at once. Sanitizers do not see the stores, so that builds with one
 * copy plainly. */
#define _GNU_SOURCE /* _SC_LEVEL2_CACHE_SIZE */
#include "comm/stream.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <immintrin.h>

#define DTI_AVX __attribute__((target("avx"))) /* called where the CPU has it */

enum { LINE = 64 };

/* Whole lines. Few instructions between loads and stores keep more of both under way. */
static void lines_sse2(char *to, const char *from, size_t n)
{
    for (; n > 0; to += LINE, from += LINE, n -= LINE) {
        const __m128i *read = (const void *)from;
        __m128i *write = (void *)to, a = _mm_loadu_si128(read), b = _mm_loadu_si128(read + 1);
        __m128i c = _mm_loadu_si128(read + 2), d = _mm_loadu_si128(read + 3);
        _mm_stream_si128(write, a);
        _mm_stream_si128(write + 1, b);
        _mm_stream_si128(write + 2, c);
        _mm_stream_si128(write + 3, d);
    }
}

DTI_AVX static void lines_avx(char *to, const char *from, size_t n)
{
    for (; n > 0; to += LINE, from += LINE, n -= LINE) {
        const __m256i *read = (const void *)from;
        __m256i *write = (void *)to, a = _mm256_loadu_si256(read), b = _mm256_loadu_si256(read + 1);
        _mm256_stream_si256(write, a);
        _mm256_stream_si256(write + 1, b);
    }
}

void dti_stream(void *to, const void *from, size_t n)
{
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    if (head > n) head = n;
    size_t lines = (n - head) / LINE * LINE, end = head + lines;
    if (head) memcpy(to, from, head);
    if (__builtin_cpu_supports("avx")) lines_avx((char *)to + head, (const char *)from + head, lines);
    else lines_sse2((char *)to + head, (const char *)from + head, lines);
    if (end < n) memcpy((char *)to + end, (const char *)from + end, n - end);
}

/* A block, one line, is summed in registers: loads and stores are then always under way together. */
enum { VECTORS = 2, BLOCK = VECTORS * sizeof(__m256) };

DTI_AVX static inline __m256 load(const char *from, int v)
{
    return _mm256_loadu_ps((const void *)(from + (size_t)v * sizeof(__m256)));
}

DTI_AVX static inline void sum_block(__m256 sum[VECTORS], const char *const *from, int count, size_t at)
{
    for (int v = 0; v < VECTORS; v++) sum[v] = load(from[0] + at, v);
    for (int c = 1; c < count; c++)
        for (int v = 0; v < VECTORS; v++) sum[v] = _mm256_add_ps(sum[v], load(from[c] + at, v));
}

DTI_AVX static void sum_past(const char *const *from, int count, char *const *to, int targets, size_t offset, size_t n)
{
    __m256 sum[VECTORS];
    for (size_t at = 0; at < n; at += BLOCK) {
        sum_block(sum, from, count, at);
        for (int t = 0; t < targets; t++)
            for (int v = 0; v < VECTORS; v++) _mm256_stream_ps((float *)(to[t] + offset + at) + 8 * v, sum[v]);
    }
}

/* A plain store waits for its line as a load does: lines of sources and targets are asked for ahead. */
DTI_AVX static void sum_far(const char *const *from, int count, char *const *to, int targets, size_t offset, size_t n)
{
    enum { AHEAD = 1024 };
    __m256 sum[VECTORS];
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t ahead = at + AHEAD < n ? at + AHEAD : at;
        for (int c = 0; c < count; c++) _mm_prefetch(from[c] + ahead, _MM_HINT_T0);
        for (int t = 0; t < targets; t++) _mm_prefetch(to[t] + offset + ahead, _MM_HINT_T0);
        sum_block(sum, from, count, at);
        for (int t = 0; t < targets; t++)
            for (int v = 0; v < VECTORS; v++) _mm256_storeu_ps((float *)(to[t] + offset + at) + 8 * v, sum[v]);
    }
}

size_t dti_stream_sum_f32(dti_reach reach, const char *const *from, int count, char *const *to, int targets,
                          size_t offset, size_t n)
{
    uintptr_t low = offset;
    for (int t = 0; t < targets; t++) low |= (uintptr_t)to[t];
    bool can = __builtin_cpu_supports("avx") && (reach == DTI_FAR || low % sizeof(__m256) == 0);
    size_t whole = can ? n / BLOCK * BLOCK : 0;
    (reach == DTI_FAR ? sum_far : sum_past)(from, count, to, targets, offset, whole);
    return whole;
}

void dti_stream_end(void) { _mm_sfence(); }

#else

void dti_stream(void *to, const void *from, size_t n) { memcpy(to, from, n); }

size_t dti_stream_sum_f32(dti_reach reach, const char *const *from, int count, char *const *to, int targets,
                          size_t offset, size_t n)
{
    (void)reach, (void)from, (void)count, (void)to, (void)targets, (void)offset, (void)n;
    return 0;
}

void dti_stream_end(void) {}

#endif

/* Of a cache of the CPU, as far as the system says. */
static size_t cache_bytes(int name, size_t otherwise)
{
    long bytes = name < 0 ? -1 : sysconf(name);
    return bytes > 0 ? (size_t)bytes : otherwise;
}

dti_caches dti_caches_for(int ranks)
{
    int near = -1, far = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    near = _SC_LEVEL2_CACHE_SIZE;
    far = _SC_LEVEL3_CACHE_SIZE;
#endif
    return (dti_caches){ cache_bytes(near, 1 << 20), cache_bytes(far, 16 << 20) / 4 / (size_t)ranks };
}
