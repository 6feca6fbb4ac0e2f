/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are whole or not there, and reads of parts of them. A file is written under another name beside its own
 * and renamed when its bytes are on the disk. Bytes are counted in blocks of 1 MiB; each has a checksum, so that a part
 * can be checked without the rest. */
#ifndef DTI_DISK_H
#define DTI_DISK_H

#include <stdio.h>

#include "train/told.h"

enum { DTI_BLOCK = 1 << 20, DTI_PATH = 4096 };
#define DTI_PART ".part"           /* behind the name of a file that is being written                              */

static inline int64_t dti_blocks(int64_t bytes) { return bytes / DTI_BLOCK + (bytes % DTI_BLOCK != 0); }
/* Of n bytes as a block of this number; for little-endian machines. docs/checkpoints.md has the formula. */
uint64_t dti_block_sum(const void *bytes, size_t n, int64_t block);

/* folder/name. false: told, it is too long. */
bool dti_path(char path[DTI_PATH], const char *folder, const char *name, dti_told *told);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct dti_writer {
    int fd;                        /* -1: none, or it has failed                                                   */
    char path[DTI_PATH], part[DTI_PATH + sizeof DTI_PART];
    char *block;                   /* DTI_BLOCK bytes of the caller's, which live as long                          */
    size_t filled;
    int64_t bytes;                 /* so far                                                                       */
    bool placed;                   /* the file has its name                                                        */
    uint64_t *sums;                /* of the caller's, one for each block; NULL: not wanted                        */
    dti_told *told;
} dti_writer;

bool dti_writer_open(dti_writer *writer, const char *path, char *block, uint64_t *sums, dti_told *told);
/* n more bytes. After a failure it does nothing. */
void dti_writer_put(dti_writer *writer, const void *bytes, size_t n);
/* The bytes are on the disk, and then the name is. false: told, and what had been written is gone. */
bool dti_writer_close(dti_writer *writer);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct dti_reader {
    int fd;                        /* -1: none                                                                     */
    const char *path;              /* of the caller's                                                              */
    int64_t bytes;
    const uint64_t *sums;          /* of the caller's, for each block; NULL: nothing is checked                    */
    char *block;                   /* DTI_BLOCK bytes of the caller's                                              */
    int64_t held;                  /* which block they are; -1: none                                               */
    int64_t taken;                 /* bytes that were read                                                         */
    dti_told *told;
} dti_reader;

/* expected: bytes that the file must have; -1: any. */
bool dti_reader_open(dti_reader *reader, const char *path, int64_t expected, char *block, const uint64_t *sums,
                     dti_told *told);
/* n bytes from `at` on, which are in the file. false: told. */
bool dti_reader_get(dti_reader *reader, int64_t at, size_t n, void *to);
void dti_reader_close(dti_reader *reader);

/* ---- folders and small files ------------------------------------------------------------------------------------- */

/* A whole file and a 0 behind it, which the caller frees; NULL: told. */
char *dti_file_read(const char *path, int64_t most, int64_t *bytes, dti_told *told);
bool dti_file_is_there(const char *path);
bool dti_folder_is(const char *path);
/* Make a folder, and those it is in, where they are missing. false: told. */
bool dti_folder_make(const char *path, dti_told *told);
/* Call fn with every name in a folder. false: told. */
typedef void (*dti_name_fn)(const char *name, void *arg);
bool dti_folder_list(const char *path, dti_name_fn fn, void *arg, dti_told *told);

#endif
