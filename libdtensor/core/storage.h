/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of tensors: counted references, taken from a cache of the context that keeps its pages. What is asked for is
 * accounted, now and at most; what the cache keeps is not. Free blocks are poisoned in address-sanitizer builds, and so
 * is what lies behind the bytes asked for. A block belongs to its context's thread; peers that read it are waited for
 * by whoever gave it to them. A context that ends frees those not released, too, after all layers above have ended. */
#ifndef DTI_STORAGE_H
#define DTI_STORAGE_H

#include "core/context.h"

enum { DTI_ALIGN = 64 };           /* of every block                                                               */

typedef struct dti_storage {
    dt_context *ctx;
    void *bytes;                   /* NULL where n is 0                                                            */
    size_t n;                      /* as asked for                                                                 */
    int references;
} dti_storage;

/* A block of n bytes, not initialised, with one reference. Where the system has none, what peers have taken and what
 * the cache keeps is given back first; NULL and DT_ERR_MEMORY (what was asked, what the context holds) when that does
 * not help. */
dti_storage *dti_storage_new(dt_context *ctx, size_t n);
dti_storage *dti_storage_retain(dti_storage *storage);
/* Give a reference back; the last one returns the block to the cache. NULL: nothing. */
void dti_storage_release(dti_storage *storage);
/* Bytes asked for and not released, now and at most since the context began. */
int64_t dti_storage_now(const dt_context *ctx);
int64_t dti_storage_peak(const dt_context *ctx);
/* Give cached pages back to the system. */
void dti_storage_trim(dt_context *ctx);
/* As if the system had no more than so many bytes for the blocks of this context; 0: as much as it has. */
void dti_storage_limit(dt_context *ctx, size_t bytes);

#endif
