/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: saved on one mesh and loaded on another, read no further than needed, refused where they are damaged or
 * another model's, whole whenever their writer was killed. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dtensor/dtensor.h>

#include "errors.h"
#include "folder.h"
#include "launch.h"
#include "suite.h"
#include "train/disk.h"
#include "train/safetensors.h"
#include "train/store.h"

/* ---- tensors in layouts ------------------------------------------------------------------------------------------ */

static const char *const names[] = { "embed.weight", "bias", "half", "scalar", "counts", "fused", "none", "flags" };
enum { ITEMS = DT_COUNT(names) };

typedef struct layout { int ranks; const char *mesh; const char *specs[ITEMS]; } layout;

static const layout layouts[] = {
    { 1, "x=1", { "f32[13,7]", "f32[9]", "bf16[5,3]", "f64[]", "i64[2,3,4]", "f32[(2 9),4]", "f32[0,3]", "bool[3]" } },
    { 2, "x=2", { "f32[13,7]@x:S(0)", "f32[9]@x:S(0)", "bf16[5,3]@x:S(1)", "f64[]", "i64[2,3,4]@x:S(1)",
                  "f32[(2 9),4]@x:S(0.1)", "f32[0,3]@x:S(1)", "bool[3]@x:S(0)" } },
    { 3, "x=3", { "f32[13,7]@x:S(1)", "f32[9]", "bf16[5,3]@x:S(0)", "f64[]", "i64[2,3,4]@x:S(0)",
                  "f32[(2 9),4]@x:S(0.1)", "f32[0,3]@x:S(0)", "bool[3]@x:S(0)" } },
    { 4, "dp=2,tp=2", { "f32[13,7]@tp:S(0),dp:S(0)", "f32[9]@dp:S(0)", "bf16[5,3]@tp:S(1),dp:S(0)", "f64[]",
                        "i64[2,3,4]@tp:S(2)", "f32[(2 9),4]@tp:S(0.1),dp:S(0.0)", "f32[0,3]@tp:S(1)", "bool[3]@dp:S(0)" } },
    { 4, "x=4", { "f32[13,7]@x:S(0)", "f32[9]@x:S(0)", "bf16[5,3]@x:S(1)", "f64[]", "i64[2,3,4]@x:S(0)",
                  "f32[(2 9),4]@x:S(0.1)", "f32[0,3]@x:S(1)", "bool[3]@x:S(0)" } },
    { 6, "dp=2,tp=3", { "f32[13,7]@dp:S(1),tp:S(0)", "f32[9]@tp:S(0),dp:S(0)", "bf16[5,3]@dp:S(0),tp:S(0)", "f64[]",
                        "i64[2,3,4]@dp:S(2),tp:S(1)", "f32[(2 9),4]@tp:S(0.1),dp:S(1)", "f32[0,3]@tp:S(1)",
                        "bool[3]@tp:S(0)" } },
    { 6, "x=6", { "f32[13,7]", "f32[9]@x:S(0)", "bf16[5,3]@x:S(0)", "f64[]", "i64[2,3,4]", "f32[(2 9),4]@x:S(1)",
                  "f32[0,3]", "bool[3]@x:S(0)" } },
};

typedef struct job {
    const layout *layout;
    const char *folder;
    int64_t step;
    dt_status status;              /* expected of saves and loads                                                  */
    const char *error;             /* a part of its message                                                        */
    bool other;                    /* loads find the values of another step                                        */
} job;

static dt_tensor *value_of(dt_mesh *mesh, const char *spec, int number, int64_t step)
{
    return dt_rand(dt_spec_parse(mesh, spec), (uint64_t)(1000 * step + number));
}

static bool make_items(const layout *l, dt_mesh *mesh, int64_t step, dti_item *items)
{
    bool made = true;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (dti_item){ names[i], step < 0 ? dt_zeros(dt_spec_parse(mesh, l->specs[i]))
                                                  : value_of(mesh, l->specs[i], i, step) };
        made &= items[i].x != NULL;
    }
    return made;
}

static dti_store store_of(dt_mesh *mesh, const char *path, const dti_item *items, int n, int64_t step)
{
    return (dti_store){ .mesh = mesh, .folder = path, .items = items, .n = n, .step = step, .updates = step };
}

static dt_status save_items(dt_context *ctx, void *arg)
{
    const job *j = arg;
    dti_item items[ITEMS];
    dt_mesh *mesh = dt_mesh_create(ctx, j->layout->mesh);
    if (!make_items(j->layout, mesh, j->step, items)) return dt_context_status(ctx);
    dti_store store = store_of(mesh, j->folder, items, ITEMS, j->step);
    bool saved = dti_store_save(&store);
    expect(saved == (j->status == DT_OK), "%s: %s", j->layout->mesh, dt_context_error(ctx));
    if (!saved) expect_error(ctx, j->status, j->error, "save");
    return dt_context_status(ctx);
}

static bool load_into(const dti_store *store, int64_t *step)
{
    dti_index index;
    if (!dti_store_index(store->mesh, store->folder, &index)) return false;
    *step = index.step;
    bool loaded = dti_store_fits(store, &index, true) && dti_store_load(store, &index, NULL);
    dti_index_fini(&index);
    return loaded;
}

static void expect_values(const job *j, dt_mesh *mesh, const dti_item *items, int64_t step)
{
    for (int i = 0; i < ITEMS; i++) {
        dt_tensor *wanted = value_of(mesh, j->layout->specs[i], i, step);
        expect(dt_tensor_checksum(items[i].x) == dt_tensor_checksum(wanted), "%s: %s of step %lld", j->layout->mesh,
               names[i], (long long)step);
    }
}

static dt_status load_items(dt_context *ctx, void *arg)
{
    const job *j = arg;
    dti_item items[ITEMS];
    int64_t step = -1;
    dt_mesh *mesh = dt_mesh_create(ctx, j->layout->mesh);
    if (!make_items(j->layout, mesh, -1, items)) return dt_context_status(ctx);
    dti_store store = store_of(mesh, j->folder, items, ITEMS, 0);
    bool loaded = load_into(&store, &step);
    expect(loaded == (j->status == DT_OK), "%s: %s", j->layout->mesh, dt_context_error(ctx));
    if (loaded) expect_values(j, mesh, items, j->other ? step : j->step);
    else expect_error(ctx, j->status, j->error, "load");
    expect(dt_tensor_item(dt_sum(dt_full(dt_spec_parse(mesh, "f32[24]"), 2), DT_ALL, false)) == 48, "ranks go on together");
    return dt_context_status(ctx);
}

static void save_on(const layout *l, const char *path, int64_t step)
{
    launch(l->ranks, save_items, &(job){ .layout = l, .folder = path, .step = step });
}

static void load_on(const layout *l, const char *path, int64_t step)
{
    launch(l->ranks, load_items, &(job){ .layout = l, .folder = path, .step = step });
}

static void load_fails(const layout *l, const char *path, const char *error)
{
    launch(l->ranks, load_items, &(job){ .layout = l, .folder = path, .status = DT_ERR_IO, .error = error });
}

/* ---- any mesh to any other --------------------------------------------------------------------------------------- */

static void any_mesh_to_any_other(void)
{
    folder f = folder_new();
    for (int from = 0; from < DT_COUNT(layouts); from++) {
        save_on(&layouts[from], f.path, from);
        for (int to = 0; to < DT_COUNT(layouts); to++) load_on(&layouts[to], f.path, from);
        expect(folder_count(f.path) <= layouts[from].ranks + 1, "files of saves before are gone");
    }
    folder_remove(&f);
}

static void the_same_step_again(void)
{
    folder f = folder_new();
    for (int i = 0; i < 3; i++) {
        save_on(&layouts[3], f.path, 7);
        load_on(&layouts[1], f.path, 7);
    }
    expect(folder_count(f.path) == 5, "%d files, expected those of four ranks and the index", folder_count(f.path));
    folder_remove(&f);
}

/* ---- no more than needed ----------------------------------------------------------------------------------------- */

typedef struct large { const char *folder, *save, *load; int64_t most; } large;

static dt_status save_large(dt_context *ctx, void *arg)
{
    const large *l = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dti_item item = { "large", dt_arange(dt_spec_parse(mesh, l->save), 0, 1) };
    dti_store store = store_of(mesh, l->folder, &item, 1, 0);
    dti_store_save(&store);
    return dt_context_status(ctx);
}

static dt_status load_large(dt_context *ctx, void *arg)
{
    const large *l = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    const dt_spec *spec = dt_spec_parse(mesh, l->load);
    dti_item item = { "large", dt_zeros(spec) };
    dti_store store = store_of(mesh, l->folder, &item, 1, 0);
    dti_index index;
    int64_t taken = 0;
    if (!dti_store_index(mesh, l->folder, &index)) return dt_context_status(ctx);
    if (dti_store_fits(&store, &index, true)) dti_store_load(&store, &index, &taken);
    dti_index_fini(&index);
    expect(taken <= l->most, "%s: %lld bytes were read, expected at most %lld", l->load, (long long)taken, (long long)l->most);
    expect(dt_tensor_checksum(item.x) == dt_tensor_checksum(dt_arange(spec, 0, 1)), "%s to %s", l->save, l->load);
    return dt_context_status(ctx);
}

static void reads_what_it_needs(void)
{
    enum { MIB = 1 << 20 };
    static const large cases[] = { /* 8 MiB, and where pieces end within blocks a block more on each side */
        { NULL, "f32[2048,1024]", "f32[2048,1024]@x:S(0)", 2 * MIB + 2 * MIB },
        { NULL, "f32[2048,1024]@x:S(0)", "f32[2048,1024]@x:S(0)", 2 * MIB + MIB },
        { NULL, "f32[2048,1024]@x:S(1)", "f32[2048,1024]@x:S(1)", 2 * MIB + MIB },
        { NULL, "f32[2048,1024]@x:S(1)", "f32[2048,1024]@x:S(0)", 4 * (MIB / 2 + 2 * MIB) },
        { NULL, "f32[2048,1024]@x:S(0)", "f32[2048,1024]", 8 * MIB + 4 * MIB },
    };
    folder f = folder_new();
    for (int i = 0; i < DT_COUNT(cases); i++) {
        large l = cases[i];
        l.folder = f.path;
        launch(4, save_large, &l);
        launch(4, load_large, &l);
    }
    folder_remove(&f);
}

/* ---- damaged ----------------------------------------------------------------------------------------------------- */

static int64_t size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) ? -1 : about.st_size;
}

static void flip(const char *path, int64_t at)
{
    int fd = open(path, O_RDWR);
    char c = 0;
    expect(fd >= 0 && pread(fd, &c, 1, at) == 1, "byte %lld of %s", (long long)at, path);
    c ^= 4;
    expect(pwrite(fd, &c, 1, at) == 1, "byte %lld of %s", (long long)at, path);
    close(fd);
}

static void damage_is_told(void)
{
    folder f = folder_new();
    char data[FOLDER_PATH], index[FOLDER_PATH];
    folder_path(data, &f, "rank-00001-of-00002.3.safetensors");
    folder_path(index, &f, DTI_INDEX_NAME);
    save_on(&layouts[1], f.path, 3);
    load_on(&layouts[3], f.path, 3);
    for (int64_t at = 0, n = size_of(data); at < n; at += n / 5 + 1) {
        flip(data, at);
        load_fails(&layouts[3], f.path, "is damaged");
        flip(data, at);
    }
    for (int64_t at = 0, n = size_of(index); at < n; at += n / 9 + 1) {
        flip(index, at);
        load_fails(&layouts[3], f.path, DTI_INDEX_NAME);
        flip(index, at);
    }
    load_on(&layouts[3], f.path, 3);
    expect(truncate(data, size_of(data) - 1) == 0, "cut");
    load_fails(&layouts[1], f.path, "expected");
    unlink(data);
    load_fails(&layouts[1], f.path, "No such file");
    expect(mkdir(data, 0777) == 0, "a folder where a file should be");
    load_fails(&layouts[1], f.path, "is no file");
    rmdir(data);
    expect(truncate(index, size_of(index) / 2) == 0, "cut");
    load_fails(&layouts[1], f.path, "it is cut off");
    expect(truncate(index, 0) == 0, "cut");
    load_fails(&layouts[1], f.path, "it is cut off");
    unlink(index);
    load_fails(&layouts[1], f.path, "No such file");
    save_on(&layouts[1], f.path, 3);
    load_on(&layouts[3], f.path, 3);
    folder_remove(&f);
}

/* An index that was written by somebody else: its checksum is right, what it says is not. */
static void indices_are_checked(void)
{
    static const char good[] = "{\"format\":\"libdtensor checkpoint\",\"version\":1,\"step\":1,\"updates\":-1,\"block\":1048576,"
        "\"files\":[{\"name\":\"a\",\"bytes\":40,\"sums\":\"0123456789abcdef\"}],"
        "\"tensors\":[{\"name\":\"w\",\"dtype\":\"F32\",\"shape\":[2,3],\"boxes\":["
        "{\"file\":0,\"at\":8,\"low\":[0,0],\"high\":[1,3]},{\"file\":0,\"at\":20,\"low\":[1,0],\"high\":[2,3]}]}]";
    static const struct { const char *from, *to, *wrong; } cases[] = {
        { "", "", NULL }, { "\"at\":8", "\"at\":28", NULL }, { "\"at\":8", "\"at\":29", "a box that is in no file" },
        { "\"at\":8", "\"at\":-1", "a box that is in no file" }, { "\"at\":8", "\"at\":9223372036854775807", "in no file" },
        { "\"file\":0", "\"file\":1", "in no file" }, { "\"file\":0", "\"file\":-1", "in no file" },
        { "\"high\":[1,3]", "\"high\":[2,3]", "boxes that overlap" }, { "\"high\":[1,3]", "\"high\":[1,2]", "leave something out" },
        { "\"high\":[1,3]", "\"high\":[1,4]", "not in its shape" }, { "\"high\":[1,3]", "\"high\":[0,3]", "not in its shape" },
        { "\"low\":[0,0]", "\"low\":[0,-1]", "not in its shape" }, { "\"low\":[0,0]", "\"low\":[0]", "as many sizes" },
        { "\"shape\":[2,3]", "\"shape\":[3]", "not in its shape" }, { "\"shape\":[2,3]", "\"shape\":[2,3,1,1,1,1,1,1,1]", "8 sizes" },
        { "\"shape\":[2,3]", "\"shape\":[4294967296,4294967296]", "63 bits" }, { "\"shape\":[2,3]", "\"shape\":[-2,-3]", "63 bits" },
        { "F32", "F4", "none of the library's" }, { "F32", "f32", "none of the library's" }, { "\"bytes\":40", "\"bytes\":-40", "checksums" },
        { "\"bytes\":40", "\"bytes\":2000000", "checksums" }, { "0123456789abcdef", "0123456789abcde", "checksums" },
        { "0123456789abcdef", "0123456789ABCDEF", "no checksum" }, { "\"name\":\"a\"", "\"name\":\"../a\"", "no name of a file" },
        { "\"name\":\"a\"", "\"name\":\"\"", "no name of a file" }, { "\"version\":1", "\"version\":2", "version 2" },
        { "\"block\":1048576", "\"block\":1", "blocks of 1 bytes" }, { "\"step\":1", "\"step\":-1", "step -1" },
        { "\"updates\":-1", "\"updates\":-2", "updates -2" }, { "\"updates\":-1,", "", "\"updates\": is missing" },
        { "\"updates\":-1", "\"step\":1", "is there twice" }, { "\"updates\"", "\"other\"", "no such one" },
        { "libdtensor checkpoint", "else", "expected that of a checkpoint" }, { "\"name\":\"w\"", "\"name\":7", "a string" },
        { ",\"boxes\"", ",\"boxes\":[]}, {\"name\":\"w\",\"dtype\":\"U8\",\"shape\":[0],\"boxes\"", "is there twice" },
        { ",\"boxes\"", ",\"boxes\":[]}, {\"name\":\"v\",\"dtype\":\"U8\",\"shape\":[0],\"boxes\"", "leave something out" },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        char text[2048], body[1536];
        const char *at = strstr(good, cases[i].from);
        snprintf(body, sizeof body, "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        int n = snprintf(text, sizeof text, "%s,\"sum\":\"%016llx\"}\n", body,
                         (unsigned long long)dti_hash(body, strlen(body), 1));
        dti_told told = { DT_OK, "" };
        dti_index index;
        bool ok = dti_index_read(text, n, "index", &index, &told);
        expect(ok == !cases[i].wrong, "%s for %s: %s", cases[i].to, cases[i].from, told.text);
        if (ok) dti_index_fini(&index);
        else expect(told.status == DT_ERR_IO && cases[i].wrong && strstr(told.text, cases[i].wrong), "%s for %s: \"%s\" has no \"%s\"",
                    cases[i].to, cases[i].from, told.text, cases[i].wrong ? cases[i].wrong : "");
    }
}

/* Checksums are part of the format: they must not change. */
static void checksums_stay(void)
{
    char bytes[100];
    for (int i = 0; i < DT_COUNT(bytes); i++) bytes[i] = (char)(i * 7);
    expect(dti_block_sum(bytes, 100, 0) == UINT64_C(0x8a621e2ee99e1575), "is %llx", (unsigned long long)dti_block_sum(bytes, 100, 0));
    expect(dti_block_sum(bytes, 96, 5) == UINT64_C(0xbf8e06a9cf840215), "is %llx", (unsigned long long)dti_block_sum(bytes, 96, 5));
}

/* ---- another model ----------------------------------------------------------------------------------------------- */

static void another_model(void)
{
    folder f = folder_new();
    save_on(&layouts[1], f.path, 1);
    layout l = layouts[1];
    l.specs[2] = "f32[5,3]";
    launch(2, load_items, &(job){ &l, f.path, 1, DT_ERR_DTYPE, "half is bf16, expected f32[5,3]", false });
    l.specs[2] = "bf16[5,4]";
    launch(2, load_items, &(job){ &l, f.path, 1, DT_ERR_SHAPE, "half is [5,3], expected bf16[5,4]", false });
    folder_remove(&f);
}

static dt_status load_missing(dt_context *ctx, void *arg)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dti_item item = { "missing", dt_zeros(dt_spec_parse(mesh, "f32[4]@x:S(0)")) };
    dti_store store = store_of(mesh, arg, &item, 1, 0);
    int64_t step;
    expect(!load_into(&store, &step), "there is no such tensor");
    expect_error(ctx, DT_ERR_ARG, "has no missing", "load");
    dti_item partial = { "partial", dt_zeros(dt_spec_parse(mesh, "f32[4]@x:P")) };
    store.items = &partial;
    expect(!dti_store_save(&store), "P is not saved");
    expect_error(ctx, DT_ERR_PLACEMENT, "partial is f32[4]@x:P(sum)", "save");
    return dt_context_status(ctx);
}

static void missing_tensors(void)
{
    folder f = folder_new();
    save_on(&layouts[1], f.path, 1);
    launch(3, load_missing, f.path);
    folder_remove(&f);
}

/* ---- folders that cannot be ---------------------------------------------------------------------------------------- */

static void save_fails(const layout *l, const char *path, int64_t step, const char *error)
{
    launch(l->ranks, save_items, &(job){ .layout = l, .folder = path, .step = step, .status = DT_ERR_IO, .error = error });
}

static void folders_that_cannot_be(void)
{
    folder f = folder_new();
    char path[FOLDER_PATH], deep[FOLDER_PATH];
    folder_path(path, &f, "file");
    FILE *file = fopen(path, "w");
    expect(file && fclose(file) == 0, "a file");
    save_fails(&layouts[1], path, 1, "is no folder");
    load_fails(&layouts[1], path, "Not a directory");
    folder_path(path, &f, "file/below");
    save_fails(&layouts[1], path, 1, "is no folder");
    folder_path(path, &f, "missing");
    load_fails(&layouts[1], path, "No such file");
    snprintf(deep, sizeof deep, "%.200s/a/b/c", path);
    save_on(&layouts[1], deep, 1);
    load_on(&layouts[1], deep, 1);
    save_fails(&layouts[1], "/proc/no-such/folder", 1, "cannot be made");
    save_fails(&layouts[1], "", 1, "cannot be made");
    static char huge[2 * DTI_PATH];
    memset(huge, 'x', sizeof huge - 1);
    save_fails(&layouts[1], huge, 1, "a path of more than");
    load_fails(&layouts[1], huge, "a path of more than");
    folder_remove(&f);
}

/* A folder in which nothing can be made; a super-user can, so that is asked first. */
static void folders_to_read_only(void)
{
    folder f = folder_new();
    char path[FOLDER_PATH];
    save_on(&layouts[1], f.path, 1);
    expect(chmod(f.path, 0500) == 0, "read only");
    folder_path(path, &f, "try");
    int fd = open(path, O_CREAT | O_WRONLY, 0666);
    if (fd < 0) {
        save_fails(&layouts[1], f.path, 2, "cannot be written: Permission denied");
        load_on(&layouts[3], f.path, 1);
    } else close(fd);
    expect(chmod(f.path, 0700) == 0, "and not any more");
    folder_remove(&f);
}

/* ---- a full disk --------------------------------------------------------------------------------------------------- */

/* Files may have so many bytes: what is written beyond fails, as on a full disk. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void full_disks(void)
{
    folder f = folder_new();
    char index[FOLDER_PATH];
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    save_on(&layouts[3], f.path, 1);
    int files = folder_count(f.path);
    folder_path(index, &f, DTI_INDEX_NAME);
    const rlim_t limits[] = { 0, 1, 64, 700, (rlim_t)size_of(index) / 2, (rlim_t)size_of(index) - 1 };
    for (int i = 0; i < DT_COUNT(limits); i++) {
        limit_files(limits[i]);
        save_fails(&layouts[3], f.path, 2, "File too large");
        limit_files(RLIM_INFINITY);
        load_on(&layouts[1], f.path, 1);
        expect(folder_count(f.path) == files, "%d files, expected what was there: %d", folder_count(f.path), files);
    }
    save_on(&layouts[3], f.path, 2);
    load_on(&layouts[1], f.path, 2);
    signal(SIGXFSZ, before);
    folder_remove(&f);
}

/* ---- a writer that is killed --------------------------------------------------------------------------------------- */

static dt_status save_for_ever(dt_context *ctx, void *arg)
{
    job j = *(const job *)arg;
    for (j.step = 1; dt_context_status(ctx) == DT_OK && j.step < 1000000; j.step++) {
        int scope = dt_scope_push(ctx, 0);
        save_items(ctx, &j);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void kill_while_it_saves(const job *j, int microseconds)
{
    char error[256] = "";
    pid_t child = fork();
    if (child == 0) {
        dt_launch_threads(j->layout->ranks, save_for_ever, (void *)(uintptr_t)j, error, sizeof error);
        _exit(1);
    }
    if (!expect(child > 0, "a child")) return;
    nanosleep(&(struct timespec){ 0, 1000L * microseconds }, NULL);
    int status = 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status), "it was killed");
}

static void killed_writers(void)
{
    folder f = folder_new();
    unsigned seed = 1;
    int interrupted = 0;
    save_on(&layouts[3], f.path, 0);
    for (int i = 0; i < 150; i++) {
        const layout *l = &layouts[i % 2 ? 3 : 1];
        seed = seed * 1664525u + 1013904223u;
        kill_while_it_saves(&(job){ .layout = l, .folder = f.path }, 2000 + (int)(seed >> 8) % 20000);
        int left = folder_count(f.path);
        interrupted += left != layouts[1].ranks + 1 && left != layouts[3].ranks + 1;
        launch(1, load_items, &(job){ .layout = &layouts[0], .folder = f.path, .other = true });
    }
    expect(interrupted >= 15, "%d of 150 were killed while they saved", interrupted);
    save_on(&layouts[3], f.path, 3);
    expect(folder_count(f.path) == 5, "%d files: what the killed left is gone", folder_count(f.path));
    folder_remove(&f);
}

static const test_row rows[] = {
    { "any_mesh_to_any_other", any_mesh_to_any_other },
    { "the_same_step_again", the_same_step_again },
    { "reads_what_it_needs", reads_what_it_needs },
    { "damage_is_told", damage_is_told },
    { "indices_are_checked", indices_are_checked },
    { "checksums_stay", checksums_stay },
    { "another_model", another_model },
    { "missing_tensors", missing_tensors },
    { "folders_that_cannot_be", folders_that_cannot_be },
    { "folders_to_read_only", folders_to_read_only },
    { "full_disks", full_disks },
    { "killed_writers", killed_writers },
};

const suite the_suite = { "checkpoint", rows, DT_COUNT(rows) };
