/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of tensors out of files into the parts of tensors: each rank reads the blocks that have something of its own
 * parts, in the order in which they lie, each once. */
#ifndef DTI_FETCH_H
#define DTI_FETCH_H

#include "tensor/tensor.h"
#include "train/disk.h"

typedef struct dti_fetch_file {
    const char *path;
    int64_t bytes;
    const uint64_t *sums;          /* for each block; NULL: nothing is checked                                     */
} dti_fetch_file;

typedef struct dti_fetch {
    const dti_fetch_file *file;
    int64_t at;                    /* where the box begins, row-major                                              */
    dt_dtype dtype;                /* of the file's elements                                                       */
    dt_box box;                    /* which they are                                                               */
    dt_tensor *x;                  /* whose part they go to, as its dtype                                          */
    int64_t got;                   /* elements that did: set                                                       */
} dti_fetch;

/* Sorts the list. taken (NULL: not wanted): bytes that were read. false: told, or the context's error. Local. */
bool dti_fetch_all(dt_context *ctx, dti_fetch *list, int64_t n, int64_t *taken, dti_told *told);

#endif
