/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing and reading files, by the calls of POSIX. Nothing is known here of what is in them. */
#include "train/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/table.h"

/* Four chains, of every fourth word: one would wait for itself. */
uint64_t dti_block_sum(const void *bytes, size_t n, int64_t block)
{
    const char *at = bytes;
    uint64_t word[4], first = 4 * (uint64_t)block;
    uint64_t a = dti_hash_mix(first, n), b = dti_hash_mix(first + 1, n);
    uint64_t c = dti_hash_mix(first + 2, n), d = dti_hash_mix(first + 3, n);
    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(word, at, sizeof word);
        a = dti_hash_mix(a, word[0]);
        b = dti_hash_mix(b, word[1]);
        c = dti_hash_mix(c, word[2]);
        d = dti_hash_mix(d, word[3]);
    }
    return dti_hash(at, n, dti_hash_mix(dti_hash_mix(a, b), dti_hash_mix(c, d)));
}

bool dti_path(char path[DTI_PATH], const char *folder, const char *name, dti_told *told)
{
    const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
    int n = snprintf(path, DTI_PATH, "%s%s%s", folder, slash, name);
    if (n > 0 && n < DTI_PATH) return true;
    return dti_tell(told, DT_ERR_IO, "\"%.200s\": a path of more than %d bytes", folder, DTI_PATH - 1);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool give_up(dti_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    unlink(w->part);
    return false;
}

bool dti_writer_open(dti_writer *w, const char *path, char *block, uint64_t *sums, dti_told *told)
{
    *w = (dti_writer){ .fd = -1, .block = block, .sums = sums, .told = told };
    snprintf(w->path, sizeof w->path, "%s", path);
    snprintf(w->part, sizeof w->part, "%s" DTI_PART, w->path);
    w->fd = open(w->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return w->fd >= 0 || dti_tell_errno(told, "\"%s\" cannot be written", path);
}

static void write_block(dti_writer *w, const char *bytes, size_t n)
{
    if (w->sums) w->sums[w->bytes / DTI_BLOCK] = dti_block_sum(bytes, n, w->bytes / DTI_BLOCK);
    w->bytes += (int64_t)n;
    while (n) {
        ssize_t wrote = write(w->fd, bytes, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            if (wrote == 0) errno = ENOSPC;
            dti_tell_errno(w->told, "\"%s\": %lld bytes were written", w->path, (long long)(w->bytes - (int64_t)n));
            give_up(w);
            return;
        }
        bytes += wrote;
        n -= (size_t)wrote;
    }
}

void dti_writer_put(dti_writer *w, const void *bytes, size_t n)
{
    for (const char *at = bytes; n && w->fd >= 0;) {
        size_t take = n < DTI_BLOCK - w->filled ? n : DTI_BLOCK - w->filled;
        if (take == DTI_BLOCK) write_block(w, at, take); /* whole blocks are not copied first */
        else {
            memcpy(w->block + w->filled, at, take);
            w->filled += take;
        }
        if (w->filled == DTI_BLOCK) {
            w->filled = 0;
            write_block(w, w->block, DTI_BLOCK);
        }
        at += take;
        n -= take;
    }
}

/* The name of a file is in its folder: that is written, too. File systems that cannot, need not. */
static bool sync_folder_of(const char *path)
{
    char folder[DTI_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == EACCES;
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
    close(fd);
    return ok;
}

bool dti_writer_close(dti_writer *w)
{
    if (w->fd >= 0 && w->filled) write_block(w, w->block, w->filled);
    if (w->fd < 0) return false;
    int fd = w->fd;
    bool ok = fsync(fd) == 0 || errno == EINVAL;
    w->fd = -1;
    ok = close(fd) == 0 && ok;
    w->placed = ok && rename(w->part, w->path) == 0;
    ok = w->placed && sync_folder_of(w->path);
    if (!ok) dti_tell_errno(w->told, "\"%s\" cannot be written", w->path);
    return ok || give_up(w);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool dti_reader_open(dti_reader *r, const char *path, int64_t expected, char *block, const uint64_t *sums,
                     dti_told *told)
{
    struct stat about;
    *r = (dti_reader){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path, .block = block, .sums = sums,
                       .held = -1, .told = told };
    if (r->fd < 0 || fstat(r->fd, &about)) dti_tell_errno(told, "\"%s\" cannot be read", path);
    else if (!S_ISREG(about.st_mode)) dti_tell(told, DT_ERR_IO, "\"%s\" is no file", path);
    else if (expected >= 0 && about.st_size != expected)
        dti_tell(told, DT_ERR_IO, "\"%s\" has %lld bytes, expected %lld", path, (long long)about.st_size,
                 (long long)expected);
    else {
        r->bytes = about.st_size;
        return true;
    }
    dti_reader_close(r);
    return false;
}

void dti_reader_close(dti_reader *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}

static bool read_bytes(dti_reader *r, int64_t at, size_t n, char *to)
{
    r->taken += (int64_t)n;
    while (n) {
        ssize_t got = pread(r->fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return dti_tell_errno(r->told, "\"%s\": cannot be read at byte %lld", r->path, (long long)at);
        if (got == 0)
            return dti_tell(r->told, DT_ERR_IO, "\"%s\" ends at byte %lld: it is cut off", r->path, (long long)at);
        to += got;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static size_t block_bytes(const dti_reader *r, int64_t block)
{
    int64_t rest = r->bytes - block * DTI_BLOCK;
    return (size_t)(rest < DTI_BLOCK ? rest : DTI_BLOCK);
}

/* A whole block, checked. */
static bool read_block(dti_reader *r, int64_t block, char *to)
{
    size_t n = block_bytes(r, block);
    if (!read_bytes(r, block * DTI_BLOCK, n, to)) return false;
    if (!r->sums || dti_block_sum(to, n, block) == r->sums[block]) return true;
    long long first = block * DTI_BLOCK, last = first + (long long)n - 1;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\" is damaged: bytes %lld to %lld are not those that were written",
                    r->path, first, last);
}

bool dti_reader_get(dti_reader *r, int64_t at, size_t n, void *to)
{
    for (char *out = to; n;) {
        int64_t block = at / DTI_BLOCK;
        size_t from = (size_t)(at % DTI_BLOCK), have = block_bytes(r, block) - from, take = n < have ? n : have;
        if (from == 0 && take == have && block != r->held) {
            if (!read_block(r, block, out)) return false;
        } else {
            if (block != r->held) r->held = read_block(r, block, r->block) ? block : -1;
            if (r->held < 0) return false;
            memcpy(out, r->block + from, take);
        }
        out += take;
        at += (int64_t)take;
        n -= take;
    }
    return true;
}

/* ---- folders and small files ------------------------------------------------------------------------------------- */

char *dti_file_read(const char *path, int64_t most, int64_t *bytes, dti_told *told)
{
    dti_reader r;
    if (!dti_reader_open(&r, path, -1, NULL, NULL, told)) return NULL;
    char *text = NULL;
    if (r.bytes > most)
        dti_tell(told, DT_ERR_IO, "\"%s\" has %lld bytes, expected at most %lld", path, (long long)r.bytes,
                 (long long)most);
    else if ((text = malloc((size_t)r.bytes + 1)) == NULL)
        dti_tell(told, DT_ERR_MEMORY, "\"%s\": no memory for %lld bytes", path, (long long)r.bytes);
    if (text && !read_bytes(&r, 0, (size_t)r.bytes, text)) {
        free(text);
        text = NULL;
    }
    if (text) text[*bytes = r.bytes] = '\0';
    dti_reader_close(&r);
    return text;
}

bool dti_file_is_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool dti_folder_is(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Another rank may make it at the same time. */
static bool make_one(const char *path, dti_told *told)
{
    if (dti_folder_is(path)) return true;
    if (mkdir(path, 0777) == 0 && sync_folder_of(path)) return true;
    int error = errno;
    if (error == EEXIST && dti_folder_is(path)) return true;
    if (error == EEXIST || error == ENOTDIR)
        return dti_tell(told, DT_ERR_IO, "\"%s\" is no folder, or lies in none", path);
    errno = error;
    return dti_tell_errno(told, "folder \"%s\" cannot be made", path);
}

bool dti_folder_make(const char *path, dti_told *told)
{
    char part[DTI_PATH];
    if (!path[0]) return make_one(path, told);
    if (!dti_path(part, path, "", told)) return false;
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!make_one(part, told)) return false;
        *slash = '/';
    }
    return true;
}

bool dti_folder_list(const char *path, dti_name_fn fn, void *arg, dti_told *told)
{
    DIR *folder = opendir(path);
    if (!folder) return dti_tell_errno(told, "folder \"%s\" cannot be read", path);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL; errno = 0) fn(entry->d_name, arg);
    bool ok = errno == 0 || dti_tell_errno(told, "folder \"%s\" cannot be read", path);
    closedir(folder);
    return ok;
}
