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
#include "nn/module.h"
#include "suite.h"
#include "train/disk.h"
#include "train/optim.h"
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
                        "i64[2,3,4]@tp:S(2)", "f32[(2 9),4]@tp:S(0.1),dp:S(0.0)", "f32[0,3]@tp:S(1)",
                        "bool[3]@dp:S(0)" } },
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
    int begun;                     /* a pipe that hears when saves begin                                           */
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
    if (!saved) expect_error(ctx, j->status, j->error ? j->error : "", "save");
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

/* Ranks that ask for different things are told, and nothing is written. */
static dt_status save_elsewhere(dt_context *ctx, void *arg)
{
    char path[FOLDER_PATH + 8];
    dt_module *model = dt_nn_linear(dt_mesh_create(ctx, "dp"), 4, 4, NULL);
    dt_module_materialize(model, 1);
    snprintf(path, sizeof path, "%s%s", (const char *)arg, dt_rank(ctx) == 1 ? "-other" : "");
    expect(dt_checkpoint_save(model, NULL, 1, path) != DT_OK, "another folder");
    expect(strstr(dt_context_error(ctx), "rank 1 of dp=3 gives another folder than rank 0") != NULL, "%s",
           dt_context_error(ctx));
    return DT_OK;
}

static void ranks_that_differ_are_told(void)
{
    folder f = folder_new();
    char path[FOLDER_PATH], error[512];
    folder_path(path, &f, "state");
    dt_launch_threads(3, save_elsewhere, path, error, sizeof error);
    expect(access(path, F_OK) != 0, "nothing is written");
    folder_remove(&f);
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
    else expect_error(ctx, j->status, j->error ? j->error : "", "load");
    expect(dt_tensor_item(dt_sum(dt_full(dt_spec_parse(mesh, "f32[24]"), 2), DT_ALL, false)) == 48,
           "ranks go on together");
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

/* On some of the ranks only, which are not the first ones. */
static dt_status save_on_some(dt_context *ctx, void *arg)
{
    dt_mesh *all = dt_mesh_create(ctx, "pp=2,tp=2"), *last = dt_mesh_select(all, "pp=1");
    const dt_spec *spec = dt_spec_parse(last, "f32[7,3]@tp:S(0)");
    dti_item item = { "some", dt_rand(spec, 3) }, again = { "some", dt_zeros(spec) };
    dti_store store = store_of(last, arg, &item, 1, 1);
    int64_t step = -1;
    expect(!dt_checkpoint_exists(ctx, arg), "not yet");
    expect(dti_store_save(&store), "%s", dt_context_error(ctx));
    store.items = &again;
    expect(load_into(&store, &step), "%s", dt_context_error(ctx));
    expect(step == (dt_rank(ctx) < 2 ? 0 : 1), "others learn nothing");
    expect(dt_tensor_checksum(again.x) == dt_tensor_checksum(item.x), "the same values");
    dt_tensor_item(dt_full(dt_spec_parse(all, "f32[]@pp:P"), 1)); /* others do not wait for those that save          */
    expect(dt_checkpoint_exists(ctx, arg), "all see it");
    item.x = dt_zeros(dt_spec_parse(all, "f32[4]"));
    store.items = &item;
    expect(!dti_store_save(&store), "ranks that the mesh has not");
    expect_error(ctx, DT_ERR_ARG, "which has ranks that mesh tp=2 has not", "more ranks");
    return dt_context_status(ctx);
}

static void some_of_the_ranks(void)
{
    folder f = folder_new();
    launch(4, save_on_some, f.path);
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
    expect(taken <= l->most, "%s: %lld bytes were read, expected at most %lld", l->load, (long long)taken,
           (long long)l->most);
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
    static const char good[] =
        "{\"format\":\"libdtensor checkpoint\",\"version\":1,\"step\":1,\"updates\":-1,\"block\":1048576,"
        "\"files\":[{\"name\":\"a\",\"bytes\":40,\"sums\":\"0123456789abcdef\"}],"
        "\"tensors\":[{\"name\":\"w\",\"dtype\":\"F32\",\"shape\":[2,3],\"boxes\":["
        "{\"file\":0,\"at\":8,\"low\":[0,0],\"high\":[1,3]},{\"file\":0,\"at\":20,\"low\":[1,0],\"high\":[2,3]}]}]";
    static const struct { const char *from, *to, *wrong; } cases[] = {
        { "", "", NULL }, { "\"at\":8", "\"at\":28", NULL }, { "\"at\":8", "\"at\":29", "a box that is in no file" },
        { "\"at\":8", "\"at\":-1", "a box that is in no file" },
        { "\"at\":8", "\"at\":9223372036854775807", "in no file" },
        { "\"file\":0", "\"file\":1", "in no file" }, { "\"file\":0", "\"file\":-1", "in no file" },
        { "\"high\":[1,3]", "\"high\":[2,3]", "boxes that overlap" },
        { "\"high\":[1,3]", "\"high\":[1,2]", "leave something out" },
        { "\"high\":[1,3]", "\"high\":[1,4]", "not in its shape" },
        { "\"high\":[1,3]", "\"high\":[0,3]", "not in its shape" },
        { "\"low\":[0,0]", "\"low\":[0,-1]", "not in its shape" }, { "\"low\":[0,0]", "\"low\":[0]", "as many sizes" },
        { "\"shape\":[2,3]", "\"shape\":[3]", "not in its shape" },
        { "\"shape\":[2,3]", "\"shape\":[2,3,1,1,1,1,1,1,1]", "8 sizes" },
        { "\"shape\":[2,3]", "\"shape\":[4294967296,4294967296]", "63 bits" },
        { "\"shape\":[2,3]", "\"shape\":[-2,-3]", "63 bits" },
        { "F32", "F4", "none of the library's" }, { "F32", "f32", "none of the library's" },
        { "\"bytes\":40", "\"bytes\":-40", "checksums" },
        { "\"bytes\":40", "\"bytes\":2000000", "checksums" }, { "0123456789abcdef", "0123456789abcde", "checksums" },
        { "0123456789abcdef", "0123456789ABCDEF", "no checksum" },
        { "\"name\":\"a\"", "\"name\":\"../a\"", "no name of a file" },
        { "\"name\":\"a\"", "\"name\":\"\"", "no name of a file" }, { "\"version\":1", "\"version\":2", "version 2" },
        { "\"block\":1048576", "\"block\":1", "blocks of 1 bytes" }, { "\"step\":1", "\"step\":-1", "step -1" },
        { "\"updates\":-1", "\"updates\":-2", "updates -2" }, { "\"updates\":-1,", "", "\"updates\": is missing" },
        { "\"updates\":-1", "\"step\":1", "is there twice" }, { "\"updates\"", "\"other\"", "no such one" },
        { "libdtensor checkpoint", "else", "expected that of a checkpoint" },
        { "\"name\":\"w\"", "\"name\":7", "a string" },
        { ",\"boxes\"", ",\"boxes\":[]}, {\"name\":\"w\",\"dtype\":\"U8\",\"shape\":[0],\"boxes\"", "is there twice" },
        { ",\"boxes\"", ",\"boxes\":[]}, {\"name\":\"v\",\"dtype\":\"U8\",\"shape\":[0],\"boxes\"",
          "leave something out" },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        char text[2048], body[1536];
        const char *at = strstr(good, cases[i].from);
        snprintf(body, sizeof body, "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        int n = snprintf(text, sizeof text, "%s,\"sum\":\"%016llx\"}\n", body,
                         (unsigned long long)dti_block_sum(body, strlen(body), 1));
        dti_told told = { DT_OK, "" };
        dti_index index;
        bool ok = dti_index_read(text, n, "index", &index, &told);
        expect(ok == !cases[i].wrong, "%s for %s: %s", cases[i].to, cases[i].from, told.text);
        if (ok) dti_index_fini(&index);
        else expect(told.status == DT_ERR_IO && cases[i].wrong && strstr(told.text, cases[i].wrong),
                    "%s for %s: \"%s\" has no \"%s\"",
                    cases[i].to, cases[i].from, told.text, cases[i].wrong ? cases[i].wrong : "");
    }
}

/* Checksums are part of the format: they must not change. */
static void checksums_stay(void)
{
    char bytes[100];
    for (int i = 0; i < DT_COUNT(bytes); i++) bytes[i] = (char)(i * 7);
    expect(dti_block_sum(bytes, 100, 0) == UINT64_C(0x91d73d4b6daccd53), "is %llx",
           (unsigned long long)dti_block_sum(bytes, 100, 0));
    expect(dti_block_sum(bytes, 96, 5) == UINT64_C(0x93da67c7bc851e8d), "is %llx",
           (unsigned long long)dti_block_sum(bytes, 96, 5));
}

/* ---- another model ----------------------------------------------------------------------------------------------- */

static void another_model(void)
{
    folder f = folder_new();
    save_on(&layouts[1], f.path, 1);
    layout l = layouts[1];
    l.specs[2] = "f32[5,3]";
    job j = { .layout = &l, .folder = f.path, .status = DT_ERR_DTYPE, .error = "half is bf16, expected f32[5,3]" };
    launch(2, load_items, &j);
    l.specs[2] = "bf16[5,4]";
    j.status = DT_ERR_SHAPE;
    j.error = "half is [5,3], expected bf16[5,4]";
    launch(2, load_items, &j);
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

/* ---- folders that cannot be -------------------------------------------------------------------------------------- */

static void save_fails(const layout *l, const char *path, int64_t step, const char *error)
{
    launch(l->ranks, save_items, &(job){ .layout = l, .folder = path, .step = step, .status = DT_ERR_IO,
                                         .error = error });
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

/* ---- a full disk ------------------------------------------------------------------------------------------------- */

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

/* ---- a writer that is killed ------------------------------------------------------------------------------------- */

static dt_status save_for_ever(dt_context *ctx, void *arg)
{
    job j = *(const job *)arg;
    if (dt_rank(ctx) == 0) expect(write(j.begun, "", 1) == 1, "it is told");
    for (j.step = 1; dt_context_status(ctx) == DT_OK && j.step < 1000000; j.step++) {
        int scope = dt_scope_push(ctx, 0);
        save_items(ctx, &j);
        dt_scope_pop(ctx, scope, NULL);
    }
    return dt_context_status(ctx);
}

static void kill_while_it_saves(job j, int microseconds)
{
    char error[256] = "", begun;
    int ends[2];
    if (!expect(pipe(ends) == 0, "a pipe")) return;
    j.begun = ends[1];
    pid_t child = fork();
    if (child == 0) {
        dt_launch_threads(j.layout->ranks, save_for_ever, &j, error, sizeof error);
        _exit(1);
    }
    close(ends[1]);
    expect(child > 0 && read(ends[0], &begun, 1) == 1, "a child that saves");
    close(ends[0]);
    if (child <= 0) return;
    nanosleep(&(struct timespec){ 0, 1000L * microseconds }, NULL);
    int status = 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status), "it was killed");
}

static int microseconds_of_a_save(const folder *f)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    save_on(&layouts[3], f->path, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (int)((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
}

static void killed_writers(void)
{
    folder f = folder_new();
    unsigned seed = 1;
    int interrupted = 0, most = 20000 + 2 * microseconds_of_a_save(&f);
    for (int i = 0; i < 150; i++) {
        const layout *l = &layouts[i % 2 ? 3 : 1];
        seed = seed * 1664525u + 1013904223u;
        kill_while_it_saves((job){ .layout = l, .folder = f.path }, (int)(seed >> 8) % most);
        int left = folder_count(f.path);
        interrupted += left != layouts[1].ranks + 1 && left != layouts[3].ranks + 1;
        launch(1, load_items, &(job){ .layout = &layouts[0], .folder = f.path, .other = true });
    }
    expect(interrupted >= 15, "%d of 150 were killed while they saved", interrupted);
    save_on(&layouts[3], f.path, 3);
    expect(folder_count(f.path) == 5, "%d files: what the killed left is gone", folder_count(f.path));
    folder_remove(&f);
}

/* ---- models and optimisers --------------------------------------------------------------------------------------- */

static const dt_llama_params llama = { .vocab = 11, .width = 12, .layers = 2, .heads = 3, .kv_heads = 1,
                                       .mlp_width = 10 };

typedef enum optim_kind { NONE, ADAMW, SGD, MOMENTUM } optim_kind;

typedef struct training {
    const char *mesh, *placements, *states; /* of dims of two; NULL: as the parameters                            */
    const char *shard;             /* the mesh dim of dt_fully_shard; NULL: none                                   */
    int zero;                      /* its                                                                          */
    dt_dtype dtype, compute;
    optim_kind optim;
    const char *folder;
    int64_t steps;
    uint64_t sums[64];             /* of the parameters, when it has ended                                         */
    int sum_count;
} training;

static dt_module *model_of(dt_mesh *mesh, const training *t)
{
    dt_llama_params params = llama;
    params.dtype = t->dtype;
    dt_module *m = dt_nn_llama(mesh, &params);
    dt_tensor *all[64];
    int n = dt_module_params(m, NULL, all, DT_COUNT(all));
    for (int i = 0; i < n; i++) {
        if (dt_spec_shape(dt_tensor_spec(all[i])).n != 2) continue;
        dti_param *param = dti_param_of(all[i]);
        dti_param_store(param, dt_spec_replace(dt_tensor_spec(all[i]), t->placements));
        if (t->states) param->state = dt_spec_replace(dt_tensor_spec(all[i]), t->states);
    }
    const dt_fully_shard_params sharded = { .compute = t->compute, .zero = t->zero };
    if (t->shard && !dt_fully_shard(m, "layers.*", t->shard, &sharded)) dt_fully_shard(m, "", t->shard, &sharded);
    return m;
}

static dt_optim *optim_of(dt_module *m, optim_kind kind)
{
    if (kind == NONE) return NULL;
    if (kind == ADAMW) return dt_optim_adamw(m, &(dt_adamw_params){ .weight_decay = 0.1 });
    return dt_optim_sgd(m, &(dt_sgd_params){ .momentum = kind == MOMENTUM ? 0.9 : 0 });
}

/* What is trained on hangs on the context's step, as a program's batches and dropout do. */
static void train(dt_module *m, dt_optim *optim, int64_t steps)
{
    dt_context *ctx = dt_module_context(m);
    const dt_spec *spec = dt_spec_parse(dt_module_mesh(m), "i64[2,5]");
    for (int64_t i = 0; i < steps; i++) {
        int scope = dt_scope_push(ctx, 0);
        double first = (double)(ctx->step % 5);
        dt_tensor *ids = dt_arange(spec, first, 0.5), *targets = dt_arange(spec, 3, 0.25 + first / 16);
        dt_backward(dt_token_loss(dt_module_call(m, ids), targets, NULL), NULL);
        dt_optim_step(optim, 0.05);
        dt_module_zero_grad(m);
        dt_scope_pop(ctx, scope, NULL);
    }
}

static int sums_of(dt_module *m, uint64_t *sums)
{
    dt_tensor *all[64];
    int n = dt_module_params(m, NULL, all, DT_COUNT(all));
    for (int i = 0; i < n; i++) sums[i] = dt_tensor_checksum(all[i]);
    return n;
}

/* Train, save, train on. */
static dt_status train_and_save(dt_context *ctx, void *arg)
{
    training *t = arg;
    uint64_t sums[64];
    dt_module *m = model_of(dt_mesh_create(ctx, t->mesh), t);
    dt_module_materialize(m, 3);
    dt_optim *optim = optim_of(m, t->optim);
    dt_context_step(ctx, 20, 0);
    train(m, optim, t->steps);
    expect(dt_checkpoint_save(m, optim, ctx->step, t->folder) == DT_OK, "%s: %s", t->mesh, dt_context_error(ctx));
    train(m, optim, 2);
    int n = sums_of(m, sums);
    if (dt_rank(ctx) == 0) {
        memcpy(t->sums, sums, sizeof sums);
        t->sum_count = n;
    }
    return dt_context_status(ctx);
}

static void expect_resumed(const training *t, dt_context *ctx, dt_module *m, dt_optim *optim, int64_t step)
{
    uint64_t sums[64];
    expect(step == 20 + t->steps && ctx->step == step && dt_optim_steps(optim) == t->steps,
           "step %lld, of %s %lld after %lld",
           (long long)step, t->mesh, (long long)ctx->step, (long long)dt_optim_steps(optim));
    train(m, optim, 2);
    int n = sums_of(m, sums), same = 0;
    for (int i = 0; i < n; i++) same += sums[i] == t->sums[i];
    expect(n == t->sum_count && same == n, "%s as %s: %d of %d parameters are what they were without a stop", t->mesh,
           t->placements, same, n);
}

/* A new model goes on from there as if nothing had been. */
static dt_status resume(dt_context *ctx, void *arg)
{
    const training *t = arg;
    int64_t step = -1;
    dt_module *m = model_of(dt_mesh_create(ctx, t->mesh), t);
    dt_module_materialize(m, 99);
    dt_optim *optim = optim_of(m, t->optim);
    train(m, optim, 1);
    expect(dt_checkpoint_load(m, optim, &step, t->folder) == DT_OK, "%s: %s", t->mesh, dt_context_error(ctx));
    expect_resumed(t, ctx, m, optim, step);
    return dt_context_status(ctx);
}

/* Parameters that had no values, and then an optimiser for them. */
static dt_status resume_new(dt_context *ctx, void *arg)
{
    const training *t = arg;
    int64_t step = -1;
    dt_module *m = model_of(dt_mesh_create(ctx, t->mesh), t);
    expect(dt_checkpoint_load(m, NULL, &step, t->folder) == DT_OK, "%s: %s", t->mesh, dt_context_error(ctx));
    dt_optim *optim = optim_of(m, t->optim);
    expect(dt_checkpoint_load(m, optim, NULL, t->folder) == DT_OK, "%s: %s", t->mesh, dt_context_error(ctx));
    expect_resumed(t, ctx, m, optim, step);
    return dt_context_status(ctx);
}

static const training trainings[] = {
    { .mesh = "x=1", .placements = "", .optim = ADAMW, .steps = 3 },
    { .mesh = "x=2", .placements = "x:S(0)", .optim = ADAMW, .steps = 3 },
    { .mesh = "x=2", .placements = "", .states = "x:S(0)", .optim = ADAMW, .steps = 2 },
    { .mesh = "x=3", .placements = "x:S(0)", .dtype = DT_BF16, .optim = ADAMW, .steps = 3 },
    { .mesh = "x=3", .placements = "x:S(1)", .dtype = DT_BF16, .optim = SGD, .steps = 2 },
    { .mesh = "x=2", .placements = "", .dtype = DT_BF16, .optim = ADAMW, .steps = 0 }, /* masters not yet made       */
    { .mesh = "x=2,y=2", .placements = "y:S(0),x:S(0)", .optim = MOMENTUM, .steps = 3 },
    { .mesh = "x=2,y=2", .placements = "y:S(0)", .states = "y:S(0),x:S(0)", .optim = ADAMW, .steps = 1 },
    { .mesh = "x=3", .placements = "", .shard = "x", .optim = ADAMW, .steps = 2 },
    { .mesh = "x=2", .placements = "", .shard = "x", .compute = DT_BF16, .optim = ADAMW, .steps = 2 },
    { .mesh = "x=2", .placements = "", .shard = "x", .zero = 1, .optim = ADAMW, .steps = 2 },
    { .mesh = "x=2", .placements = "", .shard = "x", .zero = 2, .dtype = DT_BF16, .optim = ADAMW, .steps = 2 },
    { .mesh = "x=2,y=2", .placements = "y:S(0)", .shard = "x", .optim = MOMENTUM, .steps = 2 },
};

static int ranks_of(const char *mesh)
{
    int ranks = 1;
    for (const char *at = mesh; (at = strchr(at, '=')) != NULL;) ranks *= *++at - '0';
    return ranks;
}

static void training_goes_on(void)
{
    for (int i = 0; i < DT_COUNT(trainings); i++) {
        folder f = folder_new();
        training t = trainings[i];
        t.folder = f.path;
        launch(ranks_of(t.mesh), train_and_save, &t);
        launch(ranks_of(t.mesh), resume, &t);
        launch(ranks_of(t.mesh), resume_new, &t);
        folder_remove(&f);
    }
}

typedef struct moved { training to; uint64_t sums[3 * 64]; int n; bool first; } moved;

/* Parameters and states, wherever they lie, add up to the same. */
static dt_status load_all(dt_context *ctx, void *arg)
{
    moved *v = arg;
    uint64_t sums[3 * 64];
    int64_t step;
    dt_module *m = model_of(dt_mesh_create(ctx, v->to.mesh), &v->to);
    dt_module_materialize(m, 1);
    dt_optim *optim = optim_of(m, v->to.optim);
    expect(dt_checkpoint_load(m, optim, &step, v->to.folder) == DT_OK, "%s: %s", v->to.mesh, dt_context_error(ctx));
    int n = sums_of(m, sums);
    for (int i = 0; optim && i < optim->n; i++)
        for (int s = 0; s < DTI_OPTIM_STATES; s++)
            if (optim->slots[i].state[s]) sums[n++] = dt_tensor_checksum(optim->slots[i].state[s]);
    bool same = n == v->n && memcmp(sums, v->sums, (size_t)n * sizeof *sums) == 0;
    if (!v->first) expect(same, "%s as %s", v->to.mesh, v->to.placements);
    else if (dt_rank(ctx) == 0) {
        memcpy(v->sums, sums, sizeof sums);
        v->n = n;
    }
    return dt_context_status(ctx);
}

static void optimisers_on_any_mesh(void)
{
    static const training to[] = {
        { .mesh = "x=1", .placements = "" }, { .mesh = "x=2", .placements = "x:S(1)" },
        { .mesh = "x=3", .placements = "x:S(0)" },
        { .mesh = "x=2,y=3", .placements = "y:S(0),x:S(0)" }, { .mesh = "x=3", .placements = "", .shard = "x" },
        { .mesh = "x=2,y=2", .placements = "x:S(0)", .states = "x:S(0),y:S(1)" },
    };
    folder f = folder_new();
    training from = { .mesh = "x=2,y=2", .placements = "y:S(0)", .states = "y:S(0),x:S(0)", .dtype = DT_BF16,
                      .optim = ADAMW, .steps = 3, .folder = f.path };
    moved v = { .first = true };
    launch(4, train_and_save, &from);
    for (int i = 0; i < DT_COUNT(to); i++) {
        v.to = to[i];
        v.to.dtype = from.dtype;
        v.to.optim = from.optim;
        v.to.folder = f.path;
        v.first = i == 0;
        launch(ranks_of(to[i].mesh), load_all, &v);
    }
    folder_remove(&f);
}

static dt_status refuse_models(dt_context *ctx, void *arg)
{
    const char *path = arg;
    int64_t step = -7;
    const training plain = { .placements = "" }, half = { .placements = "", .dtype = DT_BF16 };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = model_of(mesh, &plain), *other = model_of(mesh, &half);
    dt_module *deep = dt_nn_llama(mesh, &(dt_llama_params){ 11, 12, 3, 3, 1, 10, 0, 0, DT_F32, false });
    dt_module *flat = dt_nn_llama(mesh, &(dt_llama_params){ 11, 12, 1, 3, 1, 10, 0, 0, DT_F32, false });
    dt_module *wide = dt_nn_llama(mesh, &(dt_llama_params){ 11, 12, 2, 3, 1, 11, 0, 0, DT_F32, false });
    expect(!dt_checkpoint_exists(ctx, path), "not yet");
    expect(dt_checkpoint_load(m, NULL, &step, path) == DT_ERR_IO, "there is none");
    expect_error(ctx, DT_ERR_IO, "No such file", "none");
    expect(dt_checkpoint_save(m, NULL, 0, path) == DT_ERR_STATE, "no values");
    expect_error(ctx, DT_ERR_STATE, "embed.weight has no values", "no values");
    dt_module_materialize(m, 1);
    expect(dt_checkpoint_save(m, NULL, -1, path) == DT_ERR_ARG, "a step below 0");
    expect_error(ctx, DT_ERR_ARG, "step -1", "a step below 0");
    expect(dt_checkpoint_save(m, NULL, 0, NULL) == DT_ERR_ARG, "no folder");
    expect_error(ctx, DT_ERR_ARG, "no folder", "no folder");
    expect(dt_checkpoint_save(m, NULL, 4, path) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_checkpoint_exists(ctx, path), "now");
    dt_optim *adamw = optim_of(m, ADAMW);
    expect(dt_checkpoint_load(m, adamw, &step, path) == DT_ERR_ARG, "no states");
    expect_error(ctx, DT_ERR_ARG, "has no optimiser", "no states");
    expect(dt_checkpoint_load(other, NULL, &step, path) == DT_ERR_DTYPE, "another dtype");
    expect_error(ctx, DT_ERR_DTYPE, "embed.weight is f32, expected bf16[11,12]", "another dtype");
    expect(dt_checkpoint_load(deep, NULL, &step, path) == DT_ERR_ARG, "more layers");
    expect_error(ctx, DT_ERR_ARG, "has no layers.2.", "more layers");
    expect(dt_checkpoint_load(flat, NULL, &step, path) == DT_ERR_ARG, "fewer layers");
    expect_error(ctx, DT_ERR_ARG, "has layers.1.", "fewer layers");
    expect(dt_checkpoint_load(wide, NULL, &step, path) == DT_ERR_SHAPE, "wider layers");
    expect_error(ctx, DT_ERR_SHAPE, "layers.0.mlp.gate.weight is [10,12], expected f32[11,12]", "wider layers");
    expect(dt_checkpoint_save(dt_module_find(m, "layers.0"), adamw, 0, path) == DT_ERR_ARG, "more than this module's");
    expect_error(ctx, DT_ERR_ARG, "the optimiser is of embed.weight", "more than this module's");
    expect(dt_checkpoint_save(m, adamw, 5, path) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_checkpoint_load(m, optim_of(m, SGD), &step, path) == DT_ERR_ARG, "another optimiser");
    expect_error(ctx, DT_ERR_ARG, "/m, which there is not here", "another optimiser");
    expect(dt_checkpoint_load(m, optim_of(m, MOMENTUM), &step, path) == DT_ERR_ARG, "another optimiser");
    expect_error(ctx, DT_ERR_ARG, "has no embed.weight/velocity", "another optimiser");
    expect(step == -7, "step stays");
    expect(dt_checkpoint_load(m, NULL, &step, path) == DT_OK && step == 5, "without its states: %s",
           dt_context_error(ctx));
    return dt_context_status(ctx);
}

static void other_models(void)
{
    folder f = folder_new();
    char path[FOLDER_PATH];
    folder_path(path, &f, "new");
    launch(3, refuse_models, path);
    folder_remove(&f);
}

/* A part of a model has a checkpoint of its own, and takes the names from there on. */
static dt_status save_part(dt_context *ctx, void *arg)
{
    const training plain = { .placements = "" };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = model_of(mesh, &plain), *block = dt_nn_llama_block(mesh, &llama);
    dt_module_materialize(m, 1);
    expect(dt_checkpoint_save(dt_module_find(m, "layers.1"), NULL, 0, arg) == DT_OK, "%s", dt_context_error(ctx));
    expect(dt_checkpoint_load(block, NULL, NULL, arg) == DT_OK, "%s", dt_context_error(ctx));
    dt_tensor *a, *b;
    dt_module_params(m, "layers.1.mlp.up.weight", &a, 1);
    dt_module_params(block, "mlp.up.weight", &b, 1);
    expect(dt_tensor_checksum(a) == dt_tensor_checksum(b), "the same values");
    return dt_context_status(ctx);
}

static void parts_of_models(void)
{
    folder f = folder_new();
    launch(2, save_part, f.path);
    folder_remove(&f);
}

static void dry_runs(void)
{
    const training plain = { .placements = "x:S(0)" };
    dt_context *ctx = dt_context_dry(4);
    int64_t step = 5;
    dt_module *m = model_of(dt_mesh_create(ctx, "x"), &plain);
    expect(dt_checkpoint_load(m, NULL, &step, "/no/such/folder") == DT_OK && step == 0, "%s", dt_context_error(ctx));
    expect(dt_checkpoint_save(m, NULL, 1, "/no/such/folder") == DT_OK, "%s", dt_context_error(ctx));
    expect(!dt_checkpoint_exists(ctx, "/tmp"), "nothing is there");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "any_mesh_to_any_other", any_mesh_to_any_other },
    { "some_of_the_ranks", some_of_the_ranks },
    { "ranks_that_differ_are_told", ranks_that_differ_are_told },
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
    { "training_goes_on", training_goes_on },
    { "optimisers_on_any_mesh", optimisers_on_any_mesh },
    { "other_models", other_models },
    { "parts_of_models", parts_of_models },
    { "dry_runs", dry_runs },
};

const suite the_suite = { "checkpoint", rows, DT_COUNT(rows) };
