/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of elements that box and part share, read one after the other. */
#include "train/fetch.h"

#include <stdlib.h>

#include "core/number.h"

enum { CHUNK = 8192 };             /* bytes that are converted at once                                             */

typedef struct fetching {
    dti_told *told;
    dti_reader reader;
    const dti_fetch_file *file;    /* that is open; NULL: none                                                     */
    dti_storage *block;
    dti_fetch *fetch;
    int64_t taken;
} fetching;

static int by_place(const void *a, const void *b)
{
    const dti_fetch *x = a, *y = b;
    if (x->file != y->file) return (uintptr_t)x->file < (uintptr_t)y->file ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void close_file(fetching *f)
{
    if (!f->file) return;
    f->taken += f->reader.taken;
    dti_reader_close(&f->reader);
    f->file = NULL;
}

static bool open_file(fetching *f)
{
    const dti_fetch_file *file = f->fetch->file;
    if (f->file == file) return true;
    close_file(f);
    if (!dti_reader_open(&f->reader, file->path, file->bytes, f->block->bytes, file->sums, f->told)) return false;
    f->file = file;
    return true;
}

/* Elements of another dtype, a piece at a time. */
static bool convert(fetching *f, int64_t at, int64_t count, dt_dtype to, char *out)
{
    _Alignas(8) char piece[CHUNK];
    dt_dtype from = f->fetch->dtype;
    int64_t most = CHUNK / (int64_t)dt_dtype_bytes(from);
    for (int64_t n; count; count -= n) {
        n = count < most ? count : most;
        if (!dti_reader_get(&f->reader, at, (size_t)n * dt_dtype_bytes(from), piece)) return false;
        dti_numbers_convert(from, piece, to, out, n);
        at += n * (int64_t)dt_dtype_bytes(from);
        out += n * (int64_t)dt_dtype_bytes(to);
    }
    return true;
}

static void fetch_run(const dti_part_run *run, void *arg)
{
    fetching *f = arg;
    if (f->told->status || !open_file(f)) return;
    const dt_tensor *x = f->fetch->x;
    dt_dtype from = f->fetch->dtype, to = dt_spec_dtype(x->spec);
    int64_t at = f->fetch->at + run->global * (int64_t)dt_dtype_bytes(from);
    char *out = (char *)x->storage->bytes + run->local * (int64_t)dt_dtype_bytes(to);
    bool ok = from == to ? dti_reader_get(&f->reader, at, (size_t)run->count * dt_dtype_bytes(to), out)
                         : convert(f, at, run->count, to, out);
    if (ok) f->fetch->got += run->count;
}

bool dti_fetch_all(dt_context *ctx, dti_fetch *list, int64_t n, int64_t *taken, dti_told *told)
{
    fetching f = { .told = told, .block = dti_storage_new(ctx, DTI_BLOCK) };
    bool ok = f.block != NULL;
    if (n) qsort(list, (size_t)n, sizeof *list, by_place);
    for (int64_t i = 0; ok && i < n; i++) {
        const dt_spec *spec = list[i].x->spec;
        f.fetch = &list[i];
        list[i].got = 0;
        if (list[i].x->storage) ok = dti_part_box_runs(spec, spec->mesh->rank, &list[i].box, fetch_run, &f);
        ok = ok && !told->status;
    }
    close_file(&f);
    dti_storage_release(f.block);
    if (taken) *taken = f.taken;
    return ok;
}
