/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of safetensors files, as bytes in memory: eight bytes that say how long the header is, little-endian; the
 * header, JSON that names each tensor's dtype, shape and place; then the tensors, one behind the other, row-major. What
 * is read has been checked: places are in order, do not overlap and leave nothing out, sizes are those of shape and
 * dtype. (https://github.com/huggingface/safetensors, README.md, "Format".) */
#ifndef DTI_SAFETENSORS_H
#define DTI_SAFETENSORS_H

#include <dtensor/types.h>

#include "core/arena.h"
#include "core/pen.h"
#include "core/table.h"
#include "train/told.h"

enum { DTI_ST_LENGTH = 8 };        /* bytes that say how long the header is                                        */
#define DTI_ST_MAX_HEADER INT64_C(100000000)

typedef struct dti_st_dtype {
    const char *name;              /* "BF16"                                                                       */
    int bits;                      /* of an element                                                                */
    dt_dtype dtype;                /* DT_DTYPE_DEFAULT: one that only files have                                   */
} dti_st_dtype;

typedef struct dti_st_tensor {
    const char *name;
    const dti_st_dtype *dtype;
    int dims;                      /* may be more than a shape has room for; then shape.n is 0                     */
    dt_shape shape;
    int64_t begin, end;            /* bytes, counted from the end of the header                                    */
    struct dti_st_tensor *next;    /* while it is read: in the order of the header                                 */
} dti_st_tensor;

typedef struct dti_safetensors {
    dti_arena arena;
    dti_table names;
    dti_st_tensor **tensors;       /* in the order of their bytes                                                  */
    int n;
} dti_safetensors;

/* The row of one of ours; of a name, NULL: none. */
const dti_st_dtype *dti_st_dtype_of(dt_dtype dtype);
const dti_st_dtype *dti_st_dtype_named(const char *name);

/* The header's length, of the first eight bytes of a file of so many bytes. -1: told; file: its name, for messages. */
int64_t dti_safetensors_length(const void *first, int64_t file_bytes, const char *file, dti_told *told);
/* The header, which is `length` bytes, of a file with so many bytes of tensors. false: told, and nothing to end. */
bool dti_safetensors_read(const char *header, int64_t length, int64_t data_bytes, const char *file,
                          dti_safetensors *read, dti_told *told);
void dti_safetensors_fini(dti_safetensors *read);
const dti_st_tensor *dti_safetensors_find(const dti_safetensors *read, const char *name); /* NULL: none            */

/* The header of tensors whose begin and end are set, in their order, filled up by blanks so that what follows lies at a
 * multiple of eight; without the eight bytes of its length. */
void dti_safetensors_put(dti_pen *pen, const dti_st_tensor *tensors, int n);
void dti_safetensors_put_length(int64_t length, unsigned char first[DTI_ST_LENGTH]);
/* A text as JSON writes it, in quotes. */
void dti_put_json(dti_pen *pen, const char *text);

#endif
