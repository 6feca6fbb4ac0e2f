/* SPDX-License-Identifier: Apache-2.0
 *
 * Small blocks come from the C library, large ones are mapped, so that giving them back gives them to the system.
 * Mappings that can hold a huge page begin at the border of one. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#endif
#include "core/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static const size_t alignment = 64, mapped_bytes = 1 << 20, huge_bytes = 2 << 20;

static void *map(size_t bytes)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* More is mapped and the ends are cut off. Huge pages are a wish: nothing depends on the answer. */
static void *map_huge(size_t bytes)
{
    char *mapped = bytes <= SIZE_MAX - huge_bytes ? map(bytes + huge_bytes) : NULL;
    if (!mapped) return NULL;
    size_t before = (huge_bytes - (uintptr_t)mapped % huge_bytes) % huge_bytes;
    if (before) munmap(mapped, before);
    if (before < huge_bytes) munmap(mapped + before + bytes, huge_bytes - before);
#ifdef MADV_HUGEPAGE
    madvise(mapped + before, bytes, MADV_HUGEPAGE);
#endif
    return mapped + before;
}

void *dti_pages_take(size_t bytes)
{
    if (bytes < mapped_bytes) return aligned_alloc(alignment, bytes);
    return bytes < huge_bytes ? map(bytes) : map_huge(bytes);
}

void dti_pages_give(void *pages, size_t bytes)
{
    if (bytes < mapped_bytes) free(pages);
    else munmap(pages, bytes);
}
