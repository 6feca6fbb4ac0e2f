/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a checkpoint, as text in memory: JSON that says which files there are, their bytes and the checksums of
 * their blocks, and of each tensor its dtype, its shape and in which files which boxes of it lie. The last member is a
 * checksum of all text before it. docs/checkpoints.md describes it. What is read has been checked: the boxes of a
 * tensor are in its shape and in their files, do not overlap, and leave nothing out. */
#ifndef DTI_INDEX_H
#define DTI_INDEX_H

#include <dtensor/types.h>

#include "core/arena.h"
#include "core/pen.h"
#include "core/table.h"
#include "train/told.h"

#define DTI_INDEX_NAME "checkpoint.json"
#define DTI_INDEX_MOST INT64_C(2000000000) /* bytes                                                                */

typedef struct dti_index_file {
    const char *name;              /* in the folder                                                                */
    int64_t bytes;
    uint64_t *sums;                /* one for each block (disk.h)                                                  */
    struct dti_index_file *next;
} dti_index_file;

typedef struct dti_index_box {
    int64_t file, at;              /* which file, where in it the elements begin                                   */
    dt_box box;
    struct dti_index_box *next;
} dti_index_box;

typedef struct dti_index_tensor {
    const char *name;
    dt_dtype dtype;
    dt_shape shape;
    dti_index_box *boxes;
    bool wanted;                   /* for who reads: by somebody                                                   */
    struct dti_index_tensor *next;
} dti_index_tensor;

typedef struct dti_index {
    dti_arena arena;               /* of what was read                                                             */
    dti_table names;
    int64_t step, updates;         /* the program's step; of an optimiser, -1: there is none                       */
    dti_index_file *files, **file_at; /* file_at: of what was read, by number                                      */
    int file_count;
    dti_index_tensor *tensors;
} dti_index;

/* The text, without an end behind it. */
void dti_index_put(dti_pen *pen, const dti_index *index);
/* n bytes of text as an index; path: of its file, for messages. false: told, and nothing to end. */
bool dti_index_read(const char *text, int64_t n, const char *path, dti_index *index, dti_told *told);
void dti_index_fini(dti_index *index);
dti_index_tensor *dti_index_find(const dti_index *index, const char *name); /* NULL: none                          */

#endif
