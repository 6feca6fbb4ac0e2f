/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of files, on this rank. */
#ifndef DTI_TRAIN_FILES_H
#define DTI_TRAIN_FILES_H

#include "core/context.h"

typedef struct dti_bytes { unsigned char *at; size_t n, room; } dti_bytes; /* of the heap: the owner frees at      */

/* Room for n more bytes. false: the error. */
bool dti_bytes_reserve(dt_context *ctx, dti_bytes *bytes, size_t n);
bool dti_bytes_add(dt_context *ctx, dti_bytes *bytes, const void *from, size_t n);
/* Add a file, or all files below a folder, in the order of their paths, a 0 byte between two that have bytes. Links to
 * files are followed, each file is read once. false and DT_ERR_IO: one cannot be read, or there is nothing. */
bool dti_files_read(dt_context *ctx, const char *path, dti_bytes *bytes);

#endif
