/* SPDX-License-Identifier: Apache-2.0
 *
 * Files below a folder: found, put in order, read. Not those that are neither files nor links to files: a link to a
 * folder may lead in a circle, and a pipe may never end. Nothing here speaks with other ranks. */
#include "train/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ROOM = 64, CHUNK = 1 << 16 };

static bool refuse(dt_context *ctx, const char *path, int error)
{
    char why[128] = "unknown error";
    strerror_r(error, why, sizeof why);
    dti_fail(ctx, DT_ERR_IO, "dt_text_open: %s: %s", path, why);
    return false;
}

static bool lacks(dt_context *ctx, size_t bytes)
{
    dti_context_lacks(ctx, bytes);
    return false;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

bool dti_bytes_reserve(dt_context *ctx, dti_bytes *bytes, size_t n)
{
    if (n <= bytes->room - bytes->n) return true;
    if (n > SIZE_MAX / 4 || bytes->n > SIZE_MAX / 4) return lacks(ctx, n);
    size_t room = bytes->n + n > 2 * bytes->room ? bytes->n + n : 2 * bytes->room;
    unsigned char *at = realloc(bytes->at, room);
    if (!at) return lacks(ctx, room);
    bytes->at = at;
    bytes->room = room;
    return true;
}

bool dti_bytes_add(dt_context *ctx, dti_bytes *bytes, const void *from, size_t n)
{
    if (!dti_bytes_reserve(ctx, bytes, n)) return false;
    if (n) memcpy(bytes->at + bytes->n, from, n);
    bytes->n += n;
    return true;
}

/* ---- which files ------------------------------------------------------------------------------------------------- */

typedef struct file { char *path; dev_t device; ino_t inode; off_t size; bool folder, again; } file;
typedef struct files { dt_context *ctx; file *at; size_t n, room; } files;

static void files_fini(files *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->at[i].path);
    free(f->at);
}

static bool add(files *f, char *path, const struct stat *is)
{
    if (f->n == f->room) {
        size_t room = f->room ? 2 * f->room : FIRST_ROOM;
        file *at = realloc(f->at, room * sizeof *at);
        if (!at) return lacks(f->ctx, room * sizeof *at);
        f->at = at;
        f->room = room;
    }
    f->at[f->n++] = (file){ path, is->st_dev, is->st_ino, is->st_size, S_ISDIR(is->st_mode), false };
    return true;
}

static char *joined(dt_context *ctx, const char *folder, const char *name)
{
    size_t n = strlen(folder), bytes = n + strlen(name) + 2;
    char *path = malloc(bytes);
    if (!path) return lacks(ctx, bytes), NULL;
    snprintf(path, bytes, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

/* Something in a folder; what is no file, no folder and no link to a file is left out. */
static bool meet(files *f, const char *folder, const char *name)
{
    struct stat is;
    char *path = joined(f->ctx, folder, name);
    if (!path) return false;
    bool done = lstat(path, &is) == 0, link = done && S_ISLNK(is.st_mode);
    if (!done) refuse(f->ctx, path, errno);
    if (link && (stat(path, &is) || S_ISDIR(is.st_mode))) is.st_mode = 0;
    if (done && (S_ISREG(is.st_mode) || S_ISDIR(is.st_mode))) {
        if (add(f, path, &is)) return true;
        done = false;
    }
    free(path);
    return done;
}

static bool look_into(files *f, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return refuse(f->ctx, folder, errno);
    bool done = true;
    const struct dirent *entry;
    errno = 0;
    while (done && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) done = meet(f, folder, entry->d_name);
        errno = 0;
    }
    if (done && errno) done = refuse(f->ctx, folder, errno);
    closedir(dir);
    return done;
}

static bool find(files *f, const char *path)
{
    struct stat is;
    if (stat(path, &is)) return refuse(f->ctx, path, errno);
    if (!S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode))
        return dti_fail(f->ctx, DT_ERR_IO, "dt_text_open: %s: expected a file or a folder", path), false;
    char *copy = strdup(path);
    if (!copy) return lacks(f->ctx, strlen(path) + 1);
    if (!add(f, copy, &is)) return free(copy), false;
    for (size_t i = 0; i < f->n; i++) /* folders that are found are looked into in their turn */
        if (f->at[i].folder && !look_into(f, f->at[i].path)) return false;
    return true;
}

/* ---- in order, each once ----------------------------------------------------------------------------------------- */

static int by_path(const void *x, const void *y) { return strcmp(((const file *)x)->path, ((const file *)y)->path); }

static int by_inode(const void *x, const void *y)
{
    const file *a = x, *b = y;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    if (a->inode != b->inode) return a->inode < b->inode ? -1 : 1;
    return by_path(x, y);
}

static void put_in_order(files *f)
{
    qsort(f->at, f->n, sizeof *f->at, by_inode);
    for (size_t i = 1; i < f->n; i++)
        f->at[i].again = f->at[i].device == f->at[i - 1].device && f->at[i].inode == f->at[i - 1].inode;
    qsort(f->at, f->n, sizeof *f->at, by_path);
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

/* To its end, wherever that is by then. */
static bool read_all(dt_context *ctx, const char *path, int handle, dti_bytes *bytes)
{
    for (;;) {
        if (!dti_bytes_reserve(ctx, bytes, CHUNK)) return false;
        ssize_t n = read(handle, bytes->at + bytes->n, bytes->room - bytes->n);
        if (n == 0) return true;
        if (n > 0) bytes->n += (size_t)n;
        else if (errno != EINTR) return refuse(ctx, path, errno);
    }
}

static bool read_file(dt_context *ctx, const char *path, dti_bytes *bytes)
{
    int handle = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    size_t before = bytes->n, gap = before > 0;
    if (handle < 0) return refuse(ctx, path, errno);
    bool done = dti_bytes_add(ctx, bytes, "", gap) && read_all(ctx, path, handle, bytes);
    if (bytes->n == before + gap) bytes->n = before;
    close(handle);
    return done;
}

static bool read_files(const files *f, dti_bytes *bytes)
{
    size_t expected = CHUNK;
    for (size_t i = 0; i < f->n; i++)
        if (!f->at[i].folder && !f->at[i].again) expected += (size_t)f->at[i].size + 1;
    if (!dti_bytes_reserve(f->ctx, bytes, expected)) return false;
    for (size_t i = 0; i < f->n; i++)
        if (!f->at[i].folder && !f->at[i].again && !read_file(f->ctx, f->at[i].path, bytes)) return false;
    return true;
}

bool dti_files_read(dt_context *ctx, const char *path, dti_bytes *bytes)
{
    files f = { .ctx = ctx };
    bool done = find(&f, path);
    if (done) put_in_order(&f);
    done = done && read_files(&f, bytes);
    files_fini(&f);
    if (done && bytes->n == 0) dti_fail(ctx, DT_ERR_IO, "dt_text_open: %s: nothing to read", path);
    return done && bytes->n > 0;
}
