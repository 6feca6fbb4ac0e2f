/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder for a test's files, that goes with all that is in it. */
#ifndef FOLDER_H
#define FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"
#include "train/disk.h"

enum { FOLDER_PATH = 512 };

typedef struct folder { char path[FOLDER_PATH]; } folder;

static inline folder folder_new(void)
{
    folder f = { "/tmp/dtensor-test-XXXXXX" };
    expect(mkdtemp(f.path) != NULL, "a folder");
    return f;
}

static inline void folder_remove_one(const char *name, void *arg)
{
    char path[DTI_PATH];
    dti_told told = { DT_OK, "" };
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !dti_path(path, arg, name, &told)) return;
    if (unlink(path) == 0 || rmdir(path) == 0) return;
    dti_folder_list(path, folder_remove_one, path, &told);
    rmdir(path);
}

static inline void folder_remove(folder *f)
{
    dti_told told = { DT_OK, "" };
    dti_folder_list(f->path, folder_remove_one, f->path, &told);
    expect(rmdir(f->path) == 0, "%s is empty", f->path);
}

static inline void folder_count_one(const char *name, void *arg) { *(int *)arg += name[0] != '.'; }

/* How many files and folders are in it. */
static inline int folder_count(const char *path)
{
    int n = 0;
    dti_told told = { DT_OK, "" };
    dti_folder_list(path, folder_count_one, &n, &told);
    return n;
}

static inline void folder_path(char path[FOLDER_PATH], const folder *f, const char *name)
{
    snprintf(path, FOLDER_PATH, "%.255s/%.255s", f->path, name);
}

#endif
