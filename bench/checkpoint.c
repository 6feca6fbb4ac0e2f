/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints beside the same bytes written, synced and read by plain calls of the system: MB/s, and the time of all
 * CPUs that the process used, each the best of its rounds, which go in turn; page faults of the last round. Files are
 * in a folder of their own below TMPDIR, else /tmp, and in the cache when they are read. "whole": every rank reads all.
 *
 *   bench_checkpoint [--small] */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dtensor/dtensor.h>

#include "report.h"
#include "train/disk.h"
#include "train/store.h"

enum { TENSORS = 32, PATH = 256 };

typedef struct layout { const char *kind, *save, *load; } layout;

static const layout layouts[] = {
    { "as it lay", "x:S(0)", "x:S(0)" },
    { "another dim", "x:S(0)", "x:S(1)" },
    { "whole", "x:S(0)", "" },
    { "pieces of a whole", "", "x:S(0)" },
};

typedef struct span { double ns, cpu; long faults; } span; /* a moment, or what is between two                   */
typedef struct timing { span write, read, save, load; } timing;

typedef struct bench {
    bench_report report;
    int rounds, ranks;
    int64_t rows;                  /* of each tensor, of 1024 f32                                                  */
    char folder[PATH];
    timing best[DT_COUNT(layouts)];
} bench;

static int64_t bytes_of(const bench *run) { return run->rows * 4096 * TENSORS; }

static double ns_of(struct timeval t) { return 1e9 * (double)t.tv_sec + 1e3 * (double)t.tv_usec; }

static span now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (span){ bench_now_ns(), ns_of(usage.ru_utime) + ns_of(usage.ru_stime), usage.ru_minflt };
}

static void keep(span *best, span since)
{
    span end = now();
    double ns = end.ns - since.ns, cpu = end.cpu - since.cpu;
    if (best->ns == 0 || ns < best->ns) best->ns = ns;
    if (best->cpu == 0 || cpu < best->cpu) best->cpu = cpu;
    best->faults = end.faults - since.faults;
}

/* One file by one thread, of memory that has been used. */
static bool plain(const bench *run, char *memory, timing *best)
{
    char path[PATH + 16];
    snprintf(path, sizeof path, "%s/plain", run->folder);
    span since = now();
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    size_t n = (size_t)bytes_of(run), chunk = 1 << 20;
    bool ok = fd >= 0;
    for (size_t at = 0; at < n && ok; at += chunk) ok = write(fd, memory + at, chunk) == (ssize_t)chunk;
    ok = ok && fsync(fd) == 0;
    keep(&best->write, since);
    since = now();
    for (size_t at = 0; at < n && ok; at += chunk) ok = pread(fd, memory + at, chunk, (off_t)at) == (ssize_t)chunk;
    keep(&best->read, since);
    if (fd >= 0) close(fd);
    unlink(path);
    return ok;
}

static dti_store store_of(const bench *run, dt_mesh *mesh, const char *placements, dti_item *items, bool values)
{
    static const char *const names[TENSORS] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
        "q", "r", "s", "t", "u", "v", "w", "x", "y", "z", "A", "B", "C", "D", "E", "F",
    };
    const dt_spec *spec = dt_spec_create(mesh, DT_F32, DT_SHAPE(run->rows, 1024), placements);
    for (int i = 0; i < TENSORS; i++)
        items[i] = (dti_item){ names[i], values ? dt_rand(spec, (uint64_t)i) : dt_zeros(spec) };
    return (dti_store){ .mesh = mesh, .folder = run->folder, .items = items, .n = TENSORS, .updates = -1 };
}

static bool load(const dti_store *store)
{
    dti_index index;
    bool ok = dti_store_index(store->mesh, store->folder, &index);
    ok = ok && dti_store_fits(store, &index, true) && dti_store_load(store, &index, NULL);
    if (ok) dti_index_fini(&index);
    return ok;
}

/* Ranks begin together: what is timed begins and ends with a word of all. */
static dt_status measure(dt_context *ctx, bench *run, const layout *l, timing *best)
{
    dti_item saved[TENSORS], loaded[TENSORS];
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dti_store from = store_of(run, mesh, l->save, saved, true), to = store_of(run, mesh, l->load, loaded, false);
    bool first = dt_rank(ctx) == 0;
    char *memory = first ? calloc((size_t)bytes_of(run), 1) : NULL;
    for (int round = 0; round <= run->rounds; round++) {
        timing t = { 0 }, *here = round ? best : &t;   /* the first one makes pages                                */
        if (first && memory && !plain(run, memory, here)) return dt_context_fail(ctx, DT_ERR_IO, "%s", run->folder);
        dt_tensor_item(dt_full(dt_spec_create(mesh, DT_F32, DT_SCALAR, "x:P"), 1));
        span since = now();
        if (!dti_store_save(&from)) break;
        if (first) keep(&here->save, since);
        dt_tensor_item(dt_full(dt_spec_create(mesh, DT_F32, DT_SCALAR, "x:P"), 1));
        since = now();
        if (!load(&to)) break;
        if (first) keep(&here->load, since);
    }
    free(memory);
    return dt_context_status(ctx);
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    bench *run = arg;
    for (int i = 0; i < DT_COUNT(layouts) && dt_context_status(ctx) == DT_OK; i++) {
        timing unused = { 0 };
        int scope = dt_scope_push(ctx, 0);
        measure(ctx, run, &layouts[i], dt_rank(ctx) == 0 ? &run->best[i] : &unused);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void report(bench *run)
{
    double bytes = 1e3 * (double)bytes_of(run);        /* bytes per ns, as MB/s                                    */
    for (int i = 0; i < DT_COUNT(layouts); i++) {
        const timing *t = &run->best[i];
        bench_cell cells[] = {
            { "ranks", NULL, (double)run->ranks, 0 }, { "loaded", layouts[i].kind, 0, 0 },
            { "save", NULL, bytes / t->save.ns, 0 }, { "write", NULL, bytes / t->write.ns, 0 },
            { "load", NULL, bytes / t->load.ns, 0 }, { "read", NULL, bytes / t->read.ns, 0 },
            { "save cpu", NULL, t->save.cpu / 1e6, 0 }, { "write cpu", NULL, t->write.cpu / 1e6, 0 },
            { "load cpu", NULL, t->load.cpu / 1e6, 0 }, { "read cpu", NULL, t->read.cpu / 1e6, 0 },
            { "save faults", NULL, (double)t->save.faults, 0 }, { "load faults", NULL, (double)t->load.faults, 0 },
        };
        bench_row(&run->report, cells, DT_COUNT(cells));
    }
}

static void remove_one(const char *name, void *arg)
{
    char path[DTI_PATH];
    dti_told nobody = { DT_OK, "" };
    if (name[0] != '.' && dti_path(path, arg, name, &nobody)) unlink(path);
}

static void clean(bench *run)
{
    dti_told nobody = { DT_OK, "" };
    dti_folder_list(run->folder, remove_one, run->folder, &nobody);
    rmdir(run->folder);
}

int main(int argc, char **argv)
{
    static const int ranks[] = { 1, 2, 4 };
    char error[256] = "";
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    const char *where = getenv("TMPDIR");
    bench run = { .rounds = small ? 1 : 5, .rows = small ? 256 : 1024 };
    snprintf(run.folder, sizeof run.folder, "%.200s/dtensor-bench-XXXXXX", where ? where : "/tmp");
    if (!mkdtemp(run.folder)) return fprintf(stderr, "no folder %s\n", run.folder), EXIT_FAILURE;
    bench_begin(&run.report, false);
    bench_section(&run.report, "checkpoint",
                  "Checkpoints of 128 MiB, and the same bytes by write, fsync and pread of one thread. MB/s, ms");
    dt_status status = DT_OK;
    for (int i = 0; i < DT_COUNT(ranks) && !status; i++) {
        run.ranks = ranks[i];
        memset(run.best, 0, sizeof run.best);
        status = dt_launch_threads(ranks[i], rank_main, &run, error, sizeof error);
        if (!status) report(&run);
    }
    bench_end(&run.report);
    clean(&run);
    if (status) fprintf(stderr, "%s\n", error);
    return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
