/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as training data: bytes of files, cut into sequences, placed by spec. Which bytes a batch has hangs on the text,
 * the seed and the step, never on the mesh. */
#ifndef DTENSOR_DATA_H
#define DTENSOR_DATA_H

#include <dtensor/tensor.h>

DT_BEGIN_DECLS

typedef struct dt_text dt_text;                                      /* a text, whole, on every rank               */

/* The bytes of a file, or of all files of a folder and of those within, in the order of their paths, a 0 byte between
 * two that have bytes. Links to files are followed, those to folders within are not; each file is read once. A handle
 * of its scope. Each rank reads; all must read the same, which is checked. Collective over all ranks. NULL and
 * DT_ERR_IO: nothing to read, or something that cannot be; DT_ERR_DESYNC: ranks read other bytes. */
DT_API dt_text *dt_text_open(dt_context *ctx, const char *path);
/* The same from memory, which is copied; all ranks give the same. Local. NULL and DT_ERR_ARG: no bytes;
 * DT_ERR_MEMORY. */
DT_API dt_text *dt_text_from_bytes(dt_context *ctx, const void *bytes, size_t n);
/* How many bytes it has; 0 for NULL. Local. */
DT_API int64_t dt_text_bytes(const dt_text *text);
/* Draw sequences for one step: ids and targets, each [b,s] of i64, i32 or u8 on this spec; targets are ids one further.
 * Where sequence i of step begins is drawn by (seed, step, i) from the part of the text that `first` .. `last` bounds,
 * fractions of it: 0, 0.9 to train, 0.9, 1 to judge. Local. DT_ERR_SHAPE: the part has no s + 1 bytes, or the spec is
 * not two dims; DT_ERR_DTYPE; DT_ERR_ARG: not 0 <= first < last <= 1, or a step below 0. */
DT_API dt_status dt_text_batch(const dt_text *text, const dt_spec *spec, double first, double last, uint64_t seed,
                               int64_t step, dt_tensor **ids, dt_tensor **targets);

DT_END_DECLS

#endif
