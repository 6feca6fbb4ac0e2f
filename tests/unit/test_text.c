/* SPDX-License-Identifier: Apache-2.0
 *
 * Text: which files are read and in what order, that ranks agree, and batches that are the same on every mesh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dtensor/data.h>
#include <dtensor/dtensor.h>

#include "errors.h"
#include "launch.h"

enum { PATH = 512, MOST = 4096 };

/* ---- folders ----------------------------------------------------------------------------------------------------- */

typedef struct folder { char at[PATH]; } folder;

static const char *within(const folder *f, const char *name, char *path)
{
    snprintf(path, 2 * PATH, "%s/%s", f->at, name);
    return path;
}

static void make_folder(folder *f)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->at, sizeof f->at, "%s/dt_text_XXXXXX", tmp ? tmp : "/tmp");
    expect(mkdtemp(f->at) != NULL, "no folder %s", f->at);
}

static void put_file(const folder *f, const char *name, const void *bytes, size_t n)
{
    char path[2 * PATH];
    FILE *file = fopen(within(f, name, path), "wb");
    if (!expect(file != NULL, "cannot write %s", path)) return;
    expect(fwrite(bytes, 1, n, file) == n, "cannot write %s", path);
    fclose(file);
}

static void put(const folder *f, const char *name, const char *text) { put_file(f, name, text, strlen(text)); }

static void put_folder(const folder *f, const char *name)
{
    char path[2 * PATH];
    expect(mkdir(within(f, name, path), 0700) == 0, "cannot make %s", path);
}

static void put_link(const folder *f, const char *name, const char *to)
{
    char path[2 * PATH];
    expect(symlink(to, within(f, name, path)) == 0, "cannot link %s", path);
}

static void drop(const folder *f, const char *const *names, int n)
{
    char path[2 * PATH];
    for (int i = 0; i < n; i++) remove(within(f, names[i], path));
    expect(rmdir(f->at) == 0, "%s is left", f->at);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* All bytes of a text but the last: the only sequence of that length. */
static void expect_text(dt_mesh *mesh, const dt_text *text, const void *due, int64_t n, const char *what)
{
    unsigned char ids[MOST], targets[MOST];
    dt_tensor *x = NULL, *y = NULL;
    if (!expect(text && dt_text_bytes(text) == n, "%s: %lld bytes, expected %lld: %s", what,
                (long long)dt_text_bytes(text), (long long)n, dt_context_error(dt_mesh_context(mesh)))) return;
    const dt_spec *spec = dt_spec_create(mesh, DT_U8, DT_SHAPE(1, n - 1), "");
    expect(dt_text_batch(text, spec, 0, 1, 3, 5, &x, &y) == DT_OK, "%s", dt_context_error(dt_mesh_context(mesh)));
    dt_tensor_to_host(x, -1, ids, (size_t)n - 1);
    dt_tensor_to_host(y, -1, targets, (size_t)n - 1);
    expect(memcmp(ids, due, (size_t)n - 1) == 0, "%s: ids", what);
    expect(memcmp(targets, (const char *)due + 1, (size_t)n - 1) == 0, "%s: targets", what);
}

static dt_status read_folder(dt_context *ctx, void *arg)
{
    static const char due[] = "first\0second\0of b.c\0of b/a\0of b/b/z\0last";
    const folder *f = arg;
    char path[2 * PATH];
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    expect_text(mesh, dt_text_open(ctx, f->at), due, sizeof due - 1, "a folder");
    expect_text(mesh, dt_text_open(ctx, within(f, "", path)), due, sizeof due - 1, "with a slash");
    expect_text(mesh, dt_text_open(ctx, within(f, "a", path)), "first", 5, "a file");
    expect_text(mesh, dt_text_open(ctx, within(f, "0", path)), "first", 5, "a link to a file");
    expect_text(mesh, dt_text_open(ctx, within(f, "turn", path)), due, sizeof due - 1, "a link to a folder");
    return dt_context_status(ctx);
}

static void a_folder_is_read_in_order(void)
{
    static const char *const names[] = {
        "0", "a", "aa", "b.c", "b/a", "b/b/z", "b/b/pipe", "b/b", "b/up", "b", "c", "d", "e", "gone", "turn",
    };
    char path[2 * PATH];
    folder f;
    make_folder(&f);
    put(&f, "a", "first");
    put_link(&f, "0", "a");            /* before it, and so in its place                                           */
    put(&f, "aa", "second");
    put(&f, "b.c", "of b.c");
    put_folder(&f, "b");
    put(&f, "b/a", "of b/a");
    put_folder(&f, "b/b");
    put(&f, "b/b/z", "of b/b/z");
    expect(mkfifo(within(&f, "b/b/pipe", path), 0600) == 0, "cannot make %s", path);
    put_link(&f, "b/up", "..");
    put(&f, "c", "");
    put_link(&f, "d", "b/a");          /* again                                                                    */
    put(&f, "e", "last");
    put_link(&f, "gone", "nowhere");
    put_link(&f, "turn", ".");
    for (int ranks = 1; ranks <= 3; ranks++) launch(ranks, read_folder, &f);
    drop(&f, names, DT_COUNT(names));
}

static dt_status read_large(dt_context *ctx, void *arg)
{
    dt_text *text = dt_text_open(ctx, ((const folder *)arg)->at);
    expect(dt_text_bytes(text) == 1000003, "%lld bytes", (long long)dt_text_bytes(text));
    return dt_context_status(ctx);
}

static void large_files_are_read(void)
{
    static const char *const names[] = { "a", "b" };
    char *bytes = calloc(1000001, 1);
    folder f;
    make_folder(&f);
    put(&f, "a", "x");
    if (bytes) put_file(&f, "b", bytes, 1000001);
    free(bytes);
    launch(2, read_large, &f);
    drop(&f, names, DT_COUNT(names));
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static dt_status refused(dt_context *ctx, void *arg)
{
    const folder *f = arg;
    char path[2 * PATH];
    expect(dt_text_open(ctx, NULL) == NULL, "no path");
    expect_error(ctx, DT_ERR_ARG, "dt_text_open: expected a path", "no path");
    expect(dt_text_open(ctx, within(f, "missing", path)) == NULL, "missing");
    expect_error(ctx, DT_ERR_IO, "missing: No such file or directory", "missing");
    expect(dt_text_open(ctx, within(f, "empty", path)) == NULL, "empty");
    expect_error(ctx, DT_ERR_IO, "empty: nothing to read", "an empty folder");
    expect(dt_text_open(ctx, within(f, "pipe", path)) == NULL, "a pipe");
    expect_error(ctx, DT_ERR_IO, "pipe: expected a file or a folder", "a pipe");
    expect(dt_text_open(ctx, "") == NULL, "an empty path");
    expect_error(ctx, DT_ERR_IO, "dt_text_open: : No such", "an empty path");
    expect(dt_text_from_bytes(ctx, NULL, 3) == NULL, "no bytes");
    expect_error(ctx, DT_ERR_ARG, "dt_text_from_bytes: no bytes", "no bytes");
    expect(dt_text_from_bytes(ctx, "x", 0) == NULL, "0 bytes");
    expect_error(ctx, DT_ERR_ARG, "dt_text_from_bytes: no bytes", "0 bytes");
    return dt_context_status(ctx);
}

static void what_cannot_be_read_is_refused(void)
{
    static const char *const names[] = { "pipe", "empty" };
    char path[2 * PATH];
    folder f;
    make_folder(&f);
    put_folder(&f, "empty");
    expect(mkfifo(within(&f, "pipe", path), 0600) == 0, "cannot make %s", path);
    launch(1, refused, &f);
    launch(3, refused, &f);
    drop(&f, names, DT_COUNT(names));
}

/* Rank 1 finds another file, or none, in the place of the others'. */
static dt_status read_apart(dt_context *ctx, void *arg)
{
    char path[2 * PATH], name[2] = { dt_rank(ctx) == 1 ? '1' : '0', 0 };
    expect(dt_text_open(ctx, within(arg, name, path)) == NULL, "ranks read other bytes");
    return dt_context_status(ctx);
}

static void ranks_that_read_other_bytes_are_told(void)
{
    static const char *const names[] = { "0", "1" };
    char error[512] = "", path[2 * PATH];
    folder f;
    make_folder(&f);
    put(&f, "0", "what the others read");
    put(&f, "1", "what rank one reads.");
    expect(dt_launch_threads(3, read_apart, &f, error, sizeof error) == DT_ERR_DESYNC, "other bytes: %s", error);
    expect(strstr(error, "ranks read other bytes; here 20") != NULL, "other bytes: %s", error);
    remove(within(&f, "1", path));
    expect(dt_launch_threads(3, read_apart, &f, error, sizeof error) == DT_ERR_IO, "no file: %s", error);
    expect(strstr(error, "No such file") != NULL, "no file: %s", error);
    drop(&f, names, DT_COUNT(names));
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

enum { TEXT = 997, ROWS = 13, LONG = 11 };

static void make_text(unsigned char *bytes)
{
    unsigned word = 1;
    for (int i = 0; i < TEXT; i++) bytes[i] = (unsigned char)((word = word * 1664525u + 1013904223u) >> 24);
}

typedef struct placed { const char *mesh, *placements; int ranks; } placed;

static const placed places[] = {
    { "x", "", 1 },          { "x", "x:S(0)", 2 },        { "x", "x:S(1)", 2 },          { "x", "x:S(0)", 3 },
    { "x", "x:P", 3 },       { "x,y=2", "x:S(0),y:S(0)", 4 }, { "x,y=2", "x:S(1),y:S(0)", 4 }, { "x", "x:S(1)", 5 },
    { "x,y=2", "y:S(0)", 4 },
};

static const dt_dtype dtypes[] = { DT_I64, DT_I32, DT_U8 };

/* By the definition, and the text itself. */
static int64_t begin_of(const unsigned char *bytes, const int64_t *sequence)
{
    for (int64_t at = 0; at + LONG < TEXT; at++) {
        int i = 0;
        while (i < LONG && sequence[i] == bytes[at + i]) i++;
        if (i == LONG) return at;
    }
    return -1;
}

static void expect_within(const unsigned char *bytes, dt_tensor *ids, dt_tensor *targets, int64_t lo, int64_t hi)
{
    int64_t x[ROWS][LONG], y[ROWS][LONG];
    dt_tensor_to_host(dt_cast(ids, DT_I64), -1, x, sizeof x);
    dt_tensor_to_host(dt_cast(targets, DT_I64), -1, y, sizeof y);
    for (int i = 0; i < ROWS; i++) {
        int64_t at = begin_of(bytes, x[i]);
        expect(at >= lo && at + LONG < hi, "sequence %d begins at %lld, expected %lld to %lld", i, (long long)at,
               (long long)lo, (long long)hi);
        for (int k = 0; k < LONG; k++)
            if (at >= 0 && !expect(y[i][k] == bytes[at + k + 1], "target %d of sequence %d", k, i)) break;
    }
}

typedef struct drawn { placed at; uint64_t sums[2][3][2]; } drawn; /* by step, dtype; of ids and targets           */

static dt_status draw(dt_context *ctx, void *arg)
{
    drawn *d = arg;
    unsigned char bytes[TEXT];
    make_text(bytes);
    dt_mesh *mesh = dt_mesh_create(ctx, d->at.mesh);
    dt_text *text = dt_text_from_bytes(ctx, bytes, sizeof bytes);
    for (int step = 0; step < 2; step++)
        for (int k = 0; k < DT_COUNT(dtypes); k++) {
            const dt_spec *spec = dt_spec_create(mesh, dtypes[k], DT_SHAPE(ROWS, LONG), d->at.placements);
            dt_tensor *ids = NULL, *targets = NULL;
            expect(dt_text_batch(text, spec, 0.25, 0.75, 9, step, &ids, &targets) == DT_OK, "%s",
                   dt_context_error(ctx));
            expect(dt_tensor_spec(ids) == spec && dt_tensor_spec(targets) == spec, "placed as asked");
            expect_within(bytes, ids, targets, TEXT / 4, TEXT * 3 / 4);
            uint64_t sums[] = { dt_tensor_checksum(ids), dt_tensor_checksum(targets) };
            if (dt_rank(ctx) == 0) memcpy(d->sums[step][k], sums, sizeof sums);
        }
    return dt_context_status(ctx);
}

static void batches_do_not_hang_on_the_mesh(void)
{
    drawn one = { .at = places[0] };
    launch(places[0].ranks, draw, &one);
    expect(one.sums[0][0][0] != one.sums[1][0][0], "steps draw other sequences");
    for (int i = 1; i < DT_COUNT(places); i++) {
        drawn other = { .at = places[i] };
        launch(places[i].ranks, draw, &other);
        expect(memcmp(one.sums, other.sums, sizeof one.sums) == 0, "%d ranks, %s: another batch", places[i].ranks,
               places[i].placements);
    }
}

/* Every place of a part is drawn, none of another part, and a seed makes others. */
static dt_status spread(dt_context *ctx, void *arg)
{
    enum { DRAWS = 400, PLACES = 20 };
    unsigned char bytes[100];
    int64_t ids_of[DRAWS], seen[PLACES] = { 0 };
    (void)arg;
    for (int i = 0; i < 100; i++) bytes[i] = (unsigned char)i;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_text *text = dt_text_from_bytes(ctx, bytes, sizeof bytes);
    const dt_spec *spec = dt_spec_parse(mesh, "i64[400,1]");
    dt_tensor *ids = NULL, *targets = NULL, *others = NULL;
    dt_text_batch(text, spec, 0.5, 0.71, 1, 0, &ids, &targets);
    dt_text_batch(text, spec, 0.5, 0.71, 2, 0, &others, &targets);
    dt_tensor_to_host(ids, -1, ids_of, sizeof ids_of);
    for (int i = 0; i < DRAWS; i++)
        if (expect(ids_of[i] >= 50 && ids_of[i] < 70, "byte %lld", (long long)ids_of[i])) seen[ids_of[i] - 50]++;
    for (int i = 0; i < PLACES; i++) expect(seen[i] > 4 && seen[i] < 50, "place %d: %lld times", i, (long long)seen[i]);
    expect(dt_tensor_checksum(ids) != dt_tensor_checksum(others), "another seed");
    return dt_context_status(ctx);
}

static void places_are_drawn_evenly(void) { launch(1, spread, NULL); }

static const struct asking {
    const char *spec;
    double first, last;
    int64_t step;
    dt_status status;
    const char *says;
} askings[] = {
    { "f32[2,3]", 0, 1, 0, DT_ERR_DTYPE, "dt_text_batch: expected integers, i64, i32 or u8, got f32[2,3]" },
    { "bool[2,3]", 0, 1, 0, DT_ERR_DTYPE, "expected integers" },
    { "i64[6]", 0, 1, 0, DT_ERR_SHAPE, "dt_text_batch: expected sequences [b,s], got i64[6]" },
    { "i64[2,100]", 0, 1, 0, DT_ERR_SHAPE, "need a part of more than 100 bytes; 0 .. 1 of 100 has 100" },
    { "i64[2,10]", 0.9, 1, 0, DT_ERR_SHAPE, "need a part of more than 10 bytes; 0.9 .. 1 of 100 has 10" },
    { "i64[2,3]", 0.5, 0.5, 0, DT_ERR_ARG, "expected 0 <= first < last <= 1, got 0.5 and 0.5" },
    { "i64[2,3]", -0.1, 0.5, 0, DT_ERR_ARG, "expected 0 <= first" },
    { "i64[2,3]", 0, 1.5, 0, DT_ERR_ARG, "expected 0 <= first" },
    { "i64[2,3]", 0, 1, -1, DT_ERR_ARG, "expected a step of at least 0, got -1" },
};

static dt_status ask(dt_context *ctx, void *arg)
{
    unsigned char bytes[100] = { 0 };
    (void)arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_text *text = dt_text_from_bytes(ctx, bytes, sizeof bytes);
    dt_tensor *ids = NULL, *targets = NULL;
    for (int i = 0; i < DT_COUNT(askings); i++) {
        const struct asking *a = &askings[i];
        dt_text_batch(text, dt_spec_parse(mesh, a->spec), a->first, a->last, 1, a->step, &ids, &targets);
        expect_error(ctx, a->status, a->says, a->spec);
    }
    dt_text_batch(text, NULL, 0, 1, 1, 0, &ids, &targets);
    expect_error(ctx, DT_ERR_ARG, "dt_text_batch: expected a spec, got none", "no spec");
    dt_text_batch(NULL, dt_spec_parse(mesh, "i64[2,3]"), 0, 1, 1, 0, &ids, &targets);
    expect_error(ctx, DT_ERR_ARG, "dt_text_batch: expected a text, got none", "no text");
    dt_text_batch(text, dt_spec_parse(mesh, "i64[2,3]"), 0, 1, 1, 0, &ids, NULL);
    expect_error(ctx, DT_ERR_ARG, "expected room for ids and targets", "no room");
    expect(dt_text_batch(NULL, NULL, 0, 1, 1, 0, &ids, &targets) == DT_ERR_ARG, "nothing at all");
    expect(!ids && !targets, "nothing was made");
    expect(dt_text_batch(text, dt_spec_parse(mesh, "i64[0,3]@x:S(0)"), 0, 1, 1, 0, &ids, &targets) == DT_OK, "no rows");
    return dt_context_status(ctx);
}

static void bad_batches_are_refused(void)
{
    launch(1, ask, NULL);
    launch(2, ask, NULL);
}

static void a_dry_run_reads(void)
{
    dt_context *ctx = dt_context_dry(8);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    dt_text *text = dt_text_from_bytes(ctx, "some bytes", 10);
    dt_tensor *ids = NULL, *targets = NULL;
    dt_text_batch(text, dt_spec_parse(mesh, "i64[4,3]@dp:S(0)"), 0, 1, 1, 0, &ids, &targets);
    expect(ids && targets && !dt_tensor_data(ids), "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "a_folder_is_read_in_order", a_folder_is_read_in_order },
    { "large_files_are_read", large_files_are_read },
    { "what_cannot_be_read_is_refused", what_cannot_be_read_is_refused },
    { "ranks_that_read_other_bytes_are_told", ranks_that_read_other_bytes_are_told },
    { "batches_do_not_hang_on_the_mesh", batches_do_not_hang_on_the_mesh },
    { "places_are_drawn_evenly", places_are_drawn_evenly },
    { "bad_batches_are_refused", bad_batches_are_refused },
    { "a_dry_run_reads", a_dry_run_reads },
};

const suite the_suite = { "text", rows, DT_COUNT(rows) };
