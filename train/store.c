/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving and loading. What a rank finds wrong it keeps until all ranks have come to the same place; then all fail with
 * its sentence, or none. Files of one save have a number in their names that no file in the folder has, so nothing that
 * an index names is ever written to. */
#include "train/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/shape.h"
#include "train/disk.h"
#include "train/fetch.h"
#include "train/safetensors.h"

enum { NAME = 128, BOX_TEXT = 512 };

/* ---- which boxes a rank writes ----------------------------------------------------------------------------------- */

typedef struct piece {
    const dti_item *item;
    int number;                    /* of the item                                                                  */
    int mesh_rank;                 /* in the item's mesh                                                           */
    bool whole;                    /* the item is in one piece                                                     */
    dt_box box;
    int64_t at, bytes;             /* counted from the end of the header                                           */
} piece;

typedef struct pieces { piece *at; int64_t n, room, bytes; } pieces;

static bool pieces_reserve(dt_context *ctx, pieces *p, int64_t n)
{
    if (p->n + n <= p->room) return true;
    int64_t room = 2 * p->room + n;
    piece *at = realloc(p->at, (size_t)room * sizeof *at);
    if (!at) return dti_context_lacks(ctx, (size_t)room * sizeof *at), false;
    p->at = at;
    p->room = room;
    return true;
}

static bool is_whole(const dt_box *box, const dt_shape *shape)
{
    bool whole = true;
    for (int d = 0; d < box->n; d++) whole &= box->hi[d] - box->lo[d] == shape->dim[d];
    return whole;
}

static int64_t box_bytes(const dt_box *box, dt_dtype dtype)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dtype);
    for (int d = 0; d < box->n; d++) bytes *= box->hi[d] - box->lo[d];
    return bytes;
}

static void place_piece(pieces *p, piece *new, const dt_spec *spec)
{
    new->whole = is_whole(&new->box, &spec->shape);
    new->at = p->bytes;
    new->bytes = box_bytes(&new->box, dt_spec_dtype(spec));
    p->bytes += new->bytes;
    p->n++;
}

/* Where a world rank is the first holder of something. */
static bool add_item(const dti_store *store, int number, int world_rank, pieces *p)
{
    const dt_spec *spec = store->items[number].x->spec;
    int mesh_rank = dti_mesh_index(spec->mesh, world_rank);
    if (mesh_rank < 0 || !dti_part_is_first(spec, mesh_rank) || dti_part_count(spec, mesh_rank) == 0) return true;
    int n = dt_spec_boxes(spec, mesh_rank, NULL, 0);
    dt_box *boxes = dti_context_borrow(spec->mesh->ctx, (size_t)n * sizeof *boxes);
    bool ok = boxes && pieces_reserve(spec->mesh->ctx, p, n) && dt_spec_boxes(spec, mesh_rank, boxes, n) == n;
    for (int i = 0; ok && i < n; i++) {
        p->at[p->n] = (piece){ .item = &store->items[number], .number = number, .mesh_rank = mesh_rank,
                               .box = boxes[i] };
        place_piece(p, &p->at[p->n], spec);
    }
    dti_context_give(spec->mesh->ctx, boxes, (size_t)n * sizeof *boxes);
    return ok;
}

/* All that a world rank writes, larger elements first: each lies at a multiple of its size. The caller frees. */
static bool list_pieces(const dti_store *store, int world_rank, pieces *p)
{
    *p = (pieces){ .n = 0 };
    for (size_t size = 8; size; size /= 2)
        for (int i = 0; i < store->n; i++)
            if (dt_dtype_bytes(dt_spec_dtype(store->items[i].x->spec)) == size && !add_item(store, i, world_rank, p))
                return false;
    return !dti_failed(store->mesh->ctx);
}

/* ---- one rank's file --------------------------------------------------------------------------------------------- */

typedef struct rank_file {
    char name[NAME], path[DTI_PATH];
    int64_t bytes, data;           /* of the file; where the header ends. bytes 0: there is none                   */
    uint64_t *sums;
} rank_file;

static void put_box_name(dti_pen *pen, const piece *p)
{
    dti_put(pen, "%s", p->item->name);
    for (int d = 0; d < p->box.n && !p->whole; d++)
        dti_put(pen, "%s%lld:%lld", d ? "," : "@", (long long)p->box.lo[d], (long long)p->box.hi[d]);
}

typedef struct header { const pieces *pieces; dti_st_tensor *tensors; } header;

static bool set_tensor(const piece *p, dti_arena *arena, dti_st_tensor *t)
{
    dti_pen measure = { NULL, 0, 0 };
    put_box_name(&measure, p);
    char *name = dti_arena_take(arena, measure.at + 1);
    if (!name) return false;
    put_box_name(&(dti_pen){ name, measure.at + 1, 0 }, p);
    *t = (dti_st_tensor){ .name = name, .dtype = dti_st_dtype_of(dt_spec_dtype(p->item->x->spec)), .begin = p->at,
                          .end = p->at + p->bytes, .shape.n = p->box.n };
    for (int d = 0; d < p->box.n; d++) t->shape.dim[d] = p->box.hi[d] - p->box.lo[d];
    return true;
}

static void put_header(dti_pen *pen, const void *arg)
{
    const header *h = arg;
    dti_safetensors_put(pen, h->tensors, (int)h->pieces->n);
}

/* The header as text, which the caller frees. NULL: told. */
static char *write_header(const pieces *p, dti_told *told)
{
    dti_arena arena = { 0 };
    header h = { p, dti_arena_take(&arena, (size_t)p->n * sizeof *h.tensors) };
    bool ok = h.tensors != NULL;
    for (int64_t i = 0; ok && i < p->n; i++) ok = set_tensor(&p->at[i], &arena, &h.tensors[i]);
    char *text = ok ? dti_written(put_header, &h) : NULL;
    dti_arena_fini(&arena);
    if (!text) dti_tell(told, DT_ERR_MEMORY, "no memory for a header of %lld tensors", (long long)p->n);
    return text;
}

typedef struct writing { dti_writer *writer; const char *part; int64_t size; } writing;

static void write_run(const dti_part_run *run, void *arg)
{
    const writing *w = arg;
    dti_writer_put(w->writer, w->part + run->local * w->size, (size_t)(run->count * w->size));
}

static bool write_pieces(const pieces *p, dti_writer *writer)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < p->n; i++) {
        const dt_tensor *x = p->at[i].item->x;
        writing w = { writer, x->storage->bytes, (int64_t)dt_dtype_bytes(dt_spec_dtype(x->spec)) };
        ok = dti_part_box_runs(x->spec, p->at[i].mesh_rank, &p->at[i].box, write_run, &w);
    }
    return ok;
}

/* sums and block are there. */
static bool write_parts(const pieces *p, const char *text, rank_file *file, char *block, dti_told *told)
{
    dti_writer writer;
    unsigned char length[DTI_ST_LENGTH];
    dti_safetensors_put_length(file->data - DTI_ST_LENGTH, length);
    if (!dti_writer_open(&writer, file->path, block, file->sums, told)) return false;
    dti_writer_put(&writer, length, sizeof length);
    dti_writer_put(&writer, text, (size_t)(file->data - DTI_ST_LENGTH));
    bool ok = write_pieces(p, &writer);
    return dti_writer_close(&writer) && ok;
}

static bool write_file(dt_context *ctx, const pieces *p, rank_file *file, dti_told *told)
{
    char *text = write_header(p, told);
    if (!text) return false;
    int64_t length = (int64_t)strlen(text);
    file->data = DTI_ST_LENGTH + length;
    file->bytes = file->data + p->bytes;
    file->sums = malloc((size_t)dti_blocks(file->bytes) * sizeof *file->sums);
    dti_storage *block = dti_storage_new(ctx, DTI_BLOCK);
    bool ok = file->sums && block;
    if (!ok) dti_tell(told, DT_ERR_MEMORY, "no memory for the blocks of \"%s\"", file->path);
    if (length > DTI_ST_MAX_HEADER)
        ok = dti_tell(told, DT_ERR_IO, "\"%s\": a header of %lld bytes, more than readers take", file->path,
                      (long long)length);
    ok = ok && write_parts(p, text, file, block->bytes, told);
    dti_storage_release(block);
    free(text);
    return ok;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* What the first rank learns of each: bytes, where the header ends, then the checksums. */
typedef struct learnt { int64_t stride, *all; } learnt;

static bool gather_files(const dti_store *store, const rank_file *mine, learnt *l)
{
    dt_mesh *mesh = store->mesh;
    int64_t most = 0, *bytes = malloc((size_t)mesh->size * sizeof *bytes);
    if (!bytes) return dti_context_lacks(mesh->ctx, (size_t)mesh->size * sizeof *bytes), false;
    bool ok = dti_ranks_gather(mesh, &mine->bytes, 1, bytes);
    for (int r = 0; ok && r < mesh->size; r++) most = bytes[r] > most ? bytes[r] : most;
    free(bytes);
    l->stride = 2 + dti_blocks(most);
    int64_t *row = ok ? calloc((size_t)l->stride * ((size_t)mesh->size + 1), sizeof *row) : NULL;
    if (!row) return dti_context_lacks(mesh->ctx, (size_t)l->stride * sizeof *row), false;
    row[0] = mine->bytes;
    row[1] = mine->data;
    if (mine->bytes) memcpy(row + 2, mine->sums, (size_t)dti_blocks(mine->bytes) * sizeof *row);
    l->all = row + l->stride;
    ok = dti_ranks_gather(mesh, row, l->stride, l->all);
    if (!ok) free(row);
    return ok;
}

static void set_name(const dti_store *store, int mesh_rank, int64_t save, char name[NAME])
{
    dti_pen pen = { name, NAME, 0 };
    dti_put(&pen, "rank-%05d-of-%05d.%lld", mesh_rank, store->mesh->size, (long long)store->step);
    if (save) dti_put(&pen, "-%lld", (long long)save);
    dti_put(&pen, ".safetensors");
}

typedef struct indexing {
    const dti_store *store;
    dti_index index;
    dti_index_tensor *tensors;     /* of the items                                                                 */
    dti_index_box **last_box;      /* of each                                                                      */
    dti_index_file **last_file;
} indexing;

static bool index_items(indexing *x)
{
    int n = x->store->n;
    x->tensors = dti_arena_take(&x->index.arena, (size_t)n * sizeof *x->tensors);
    dti_index_tensor **last = &x->index.tensors;
    for (int i = 0; x->tensors && i < n; i++) {
        const dt_spec *spec = x->store->items[i].x->spec;
        x->tensors[i] = (dti_index_tensor){ .name = x->store->items[i].name, .dtype = dt_spec_dtype(spec),
                                            .shape = spec->shape };
        *last = &x->tensors[i];
        last = &x->tensors[i].next;
    }
    return x->tensors != NULL;
}

static bool index_pieces(indexing *x, const pieces *p, int64_t data)
{
    for (int64_t i = 0; i < p->n; i++) {
        dti_index_box *box = dti_arena_take(&x->index.arena, sizeof *box);
        if (!box) return false;
        *box = (dti_index_box){ .file = x->index.file_count, .at = data + p->at[i].at, .box = p->at[i].box,
                                .next = x->tensors[p->at[i].number].boxes };
        x->tensors[p->at[i].number].boxes = box;
    }
    return true;
}

/* A rank's file and what is in it, if it has written one. */
static bool index_rank(indexing *x, int mesh_rank, int64_t save, int64_t *row)
{
    if (row[0] == 0) return true;
    pieces p;
    dti_index_file *file = dti_arena_take(&x->index.arena, sizeof *file);
    char *name = dti_arena_take(&x->index.arena, NAME);
    bool ok = file && name && list_pieces(x->store, dt_mesh_rank(x->store->mesh, mesh_rank), &p);
    if (!ok) return false;
    set_name(x->store, mesh_rank, save, name);
    *file = (dti_index_file){ .name = name, .bytes = row[0], .sums = (uint64_t *)(row + 2) };
    ok = index_pieces(x, &p, row[1]);
    free(p.at);
    *x->last_file = file;
    x->last_file = &file->next;
    x->index.file_count++;
    return ok;
}

static void put_index(dti_pen *pen, const void *arg) { dti_index_put(pen, arg); }

/* Is the file in its place? It may be, and yet be told of. */
static bool write_text(const char *path, const char *text, char *block, dti_told *told)
{
    dti_writer writer;
    if (!dti_writer_open(&writer, path, block, NULL, told)) return false;
    dti_writer_put(&writer, text, strlen(text));
    dti_writer_close(&writer);
    return writer.placed;
}

static bool write_index(const dti_store *store, const dti_index *index, dti_told *told)
{
    char path[DTI_PATH];
    char *text = dti_written(put_index, index), *block = malloc(DTI_BLOCK);
    dti_index again;
    bool ok = text && block;
    if (!ok) dti_tell(told, DT_ERR_MEMORY, "no memory for the index");
    ok = ok && dti_path(path, store->folder, DTI_INDEX_NAME, told);
    /* What could not be read again, as a name that is not UTF-8, is not written. */
    ok = ok && dti_index_read(text, (int64_t)strlen(text), path, &again, told);
    if (ok) dti_index_fini(&again);
    ok = ok && write_text(path, text, block, told);
    free(text);
    free(block);
    return ok;
}

/* Does the folder's index name the new files now? */
static bool save_index(const dti_store *store, int64_t save, const learnt *l, dti_told *told)
{
    indexing x = { .store = store, .index = { .step = store->step, .updates = store->updates } };
    x.last_file = &x.index.files;
    bool ok = index_items(&x);
    for (int r = 0; ok && r < store->mesh->size; r++) ok = index_rank(&x, r, save, l->all + r * l->stride);
    if (!ok) dti_tell(told, DT_ERR_MEMORY, "no memory for the index");
    ok = ok && write_index(store, &x.index, told);
    dti_arena_fini(&x.index.arena);
    return ok;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool take_text(const char **at, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*at, text, n)) return false;
    *at += n;
    return true;
}

static bool take_number(const char **at, int64_t *number)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return true;
}

/* "rank-00000-of-00004.12-3.safetensors", or such a file while it was written: the step and the number of the save. */
static bool read_name(const char *name, int64_t *step, int64_t *save)
{
    int64_t number;
    const char *at = name;
    *save = 0;
    if (!take_text(&at, "rank-") || !take_number(&at, &number) || !take_text(&at, "-of-")) return false;
    if (!take_number(&at, &number) || !take_text(&at, ".") || !take_number(&at, step)) return false;
    if (take_text(&at, "-") && !take_number(&at, save)) return false;
    return strcmp(at, ".safetensors") == 0 || strcmp(at, ".safetensors" DTI_PART) == 0;
}

typedef struct looking { int64_t step, next; } looking;

static void look_at(const char *name, void *arg)
{
    looking *l = arg;
    int64_t step, save;
    if (read_name(name, &step, &save) && step == l->step && save >= l->next && save < INT64_MAX) l->next = save + 1;
}

typedef struct sweeping { const dti_store *store; int64_t save; } sweeping;

static void sweep(const char *name, void *arg)
{
    const sweeping *s = arg;
    int64_t step, save;
    char path[DTI_PATH];
    dti_told nobody = { DT_OK, "" };
    bool ours = read_name(name, &step, &save);
    bool stays = ours && step == s->store->step && save == s->save && strstr(name, DTI_PART) == NULL;
    if (ours && !stays && dti_path(path, s->store->folder, name, &nobody)) unlink(path);
}

/* Make the folder; the first rank finds a number for the save, which all learn. */
static bool begin_save(const dti_store *store, int64_t *save)
{
    dti_told told = { DT_OK, "" };
    looking l = { store->step, 0 };
    bool first = store->mesh->rank == 0;
    if (dti_folder_make(store->folder, &told) && first) dti_folder_list(store->folder, look_at, &l, &told);
    *save = l.next;
    return dti_told_agree(store->mesh, &told) && dti_ranks_broadcast(store->mesh, 0, save, sizeof *save);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void save_part(const dti_store *store, int64_t save, rank_file *file, dti_told *told)
{
    pieces p;
    dt_context *ctx = store->mesh->ctx;
    bool ok = list_pieces(store, ctx->rank, &p);
    set_name(store, store->mesh->rank, save, file->name);
    ok = ok && dti_path(file->path, store->folder, file->name, told);
    if (ok && p.n) write_file(ctx, &p, file, told);
    free(p.at);
}

/* *named: an index may name this rank's file. */
static bool save_all(const dti_store *store, int64_t save, rank_file *file, bool *named)
{
    dti_told told = { DT_OK, "" };
    learnt l;
    save_part(store, save, file, &told);
    if (!dti_told_agree(store->mesh, &told)) return false;
    *named = true;
    if (!gather_files(store, file, &l)) return false;
    int64_t placed = store->mesh->rank == 0 && save_index(store, save, &l, &told);
    free(l.all - l.stride);
    if (dti_ranks_broadcast(store->mesh, 0, &placed, sizeof placed)) *named = placed;
    return dti_told_agree(store->mesh, &told);
}

bool dti_store_check(const dti_store *store)
{
    dt_context *ctx = store->mesh->ctx;
    for (int i = 0; i < store->n; i++) {
        const dt_spec *spec = store->items[i].x->spec;
        if (spec->layout->partial_count)
            return dti_fail(ctx, DT_ERR_PLACEMENT, "checkpoint: %s is %s, expected no P", store->items[i].name,
                            dt_spec_text(spec)), false;
        for (int r = 0; r < spec->mesh->size; r++)
            if (dti_mesh_index(store->mesh, dt_mesh_rank(spec->mesh, r)) < 0)
                return dti_fail(ctx, DT_ERR_ARG, "checkpoint: %s is %s, which has ranks that mesh %s has not",
                                store->items[i].name, dt_spec_text(spec), store->mesh->text), false;
    }
    return true;
}

bool dti_store_takes_part(const dt_mesh *mesh) { return !mesh->ctx->dry && mesh->rank >= 0; }

bool dti_store_save(const dti_store *store)
{
    int64_t save = 0;
    rank_file file = { .bytes = 0 };
    if (dti_failed(store->mesh->ctx) || !dti_store_check(store)) return false;
    if (!dti_store_takes_part(store->mesh)) return true;
    bool named = false, saved = begin_save(store, &save) && save_all(store, save, &file, &named);
    if (!saved && !named && file.bytes) unlink(file.path);
    if (saved && store->mesh->rank == 0)
        dti_folder_list(store->folder, sweep, &(sweeping){ store, save }, &(dti_told){ DT_OK, "" });
    free(file.sums);
    return saved;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* The first rank's text of the index, at all; the caller frees it. NULL: the error. */
static char *read_index(dt_mesh *mesh, const char *path, dti_told *told, int64_t *n)
{
    *n = -1;
    char *text = mesh->rank == 0 ? dti_file_read(path, DTI_INDEX_MOST, n, told) : NULL;
    if (!dti_told_agree(mesh, told) || !dti_ranks_broadcast(mesh, 0, n, sizeof *n)) return free(text), NULL;
    if (mesh->rank) text = malloc((size_t)*n + 1);
    if (!text) dti_context_lacks(mesh->ctx, (size_t)*n + 1);
    else text[*n] = '\0';
    if (text && (*n == 0 || dti_ranks_broadcast(mesh, 0, text, *n))) return text;
    free(text);
    return NULL;
}

bool dti_store_index(dt_mesh *mesh, const char *folder, dti_index *index)
{
    char path[DTI_PATH];
    dti_told told = { DT_OK, "" };
    int64_t n;
    *index = (dti_index){ .step = 0 };
    if (dti_failed(mesh->ctx)) return false;
    if (!dti_store_takes_part(mesh)) return true;
    dti_path(path, folder, DTI_INDEX_NAME, &told);
    char *text = told.status ? (dti_told_agree(mesh, &told), NULL) : read_index(mesh, path, &told, &n);
    bool ok = text && dti_index_read(text, n, path, index, &told);
    free(text);
    if (!text || dti_told_agree(mesh, &told)) return ok;
    if (ok) dti_index_fini(index);
    return false;
}

bool dti_store_exists(dt_mesh *mesh, const char *folder)
{
    char path[DTI_PATH];
    dti_told nobody = { DT_OK, "" };
    int64_t there = 0;
    if (dti_failed(mesh->ctx) || !dti_store_takes_part(mesh)) return false;
    if (mesh->rank == 0) there = dti_path(path, folder, DTI_INDEX_NAME, &nobody) && dti_file_is_there(path);
    return dti_ranks_broadcast(mesh, 0, &there, sizeof there) && there;
}

/* Has the index such a tensor? The error is the same on every rank. */
static bool check_item(const dti_store *store, const dti_item *item, dti_index *index)
{
    dt_context *ctx = store->mesh->ctx;
    const dt_spec *spec = item->x->spec;
    dti_index_tensor *t = dti_index_find(index, item->name);
    if (!t) return dti_fail(ctx, DT_ERR_ARG, "checkpoint \"%s\" has no %s, which is %s here", store->folder, item->name,
                            dt_spec_text(spec)), false;
    if (t->dtype != dt_spec_dtype(spec))
        return dti_fail(ctx, DT_ERR_DTYPE, "checkpoint \"%s\": %s is %s, expected %s", store->folder, item->name,
                        dt_dtype_text(t->dtype), dt_spec_text(spec)), false;
    if (!dti_shape_same(&t->shape, &spec->shape)) {
        char shape[256] = "";
        dti_pen pen = { shape, sizeof shape, 0 };
        for (int d = 0; d < t->shape.n; d++) dti_put(&pen, "%s%lld", d ? "," : "", (long long)t->shape.dim[d]);
        return dti_fail(ctx, DT_ERR_SHAPE, "checkpoint \"%s\": %s is [%s], expected %s", store->folder, item->name,
                        shape, dt_spec_text(spec)), false;
    }
    t->wanted = true;
    return true;
}

static int64_t count_boxes(const dti_store *store, const dti_index *index)
{
    int64_t n = 0;
    for (int i = 0; i < store->n; i++)
        for (const dti_index_box *box = dti_index_find(index, store->items[i].name)->boxes; box; box = box->next) n++;
    return n;
}

static void list_fetches(const dti_store *store, const dti_index *index, const dti_fetch_file *files, dti_fetch *list)
{
    for (int i = 0; i < store->n; i++) {
        const dti_index_tensor *t = dti_index_find(index, store->items[i].name);
        for (const dti_index_box *box = t->boxes; box; box = box->next)
            *list++ = (dti_fetch){ .file = &files[box->file], .at = box->at, .dtype = t->dtype, .box = box->box,
                                   .x = store->items[i].x };
    }
}

static bool set_files(const dti_store *store, const dti_index *index, dti_arena *arena, dti_fetch_file *files,
                      dti_told *told)
{
    for (int i = 0; i < index->file_count; i++) {
        char path[DTI_PATH];
        const dti_index_file *file = index->file_at[i];
        if (!dti_path(path, store->folder, file->name, told)) return false;
        files[i] = (dti_fetch_file){ dti_arena_text(arena, path, strlen(path)), file->bytes, file->sums };
        if (!files[i].path) return dti_tell(told, DT_ERR_MEMORY, "no memory for the files of \"%s\"", store->folder);
    }
    return true;
}

static bool fetch_items(const dti_store *store, const dti_index *index, int64_t *taken, dti_told *told)
{
    dti_arena arena = { 0 };
    int64_t n = count_boxes(store, index);
    dti_fetch_file *files = dti_arena_take(&arena, (size_t)index->file_count * sizeof *files);
    dti_fetch *list = dti_arena_take(&arena, (size_t)n * sizeof *list);
    bool ok = files && list;
    if (!ok) dti_tell(told, DT_ERR_MEMORY, "no memory for the files of \"%s\"", store->folder);
    ok = ok && set_files(store, index, &arena, files, told);
    if (ok) list_fetches(store, index, files, list);
    ok = ok && dti_fetch_all(store->mesh->ctx, list, n, taken, told);
    dti_arena_fini(&arena);
    return ok;
}

bool dti_store_fits(const dti_store *store, dti_index *index, bool all)
{
    if (dti_failed(store->mesh->ctx) || !dti_store_check(store)) return false;
    if (!dti_store_takes_part(store->mesh)) return true;
    for (int i = 0; i < store->n; i++)
        if (!check_item(store, &store->items[i], index)) return false;
    for (const dti_index_tensor *t = index->tensors; t; t = t->next)
        if (!t->wanted && (all || !strchr(t->name, '/')))
            return dti_fail(store->mesh->ctx, DT_ERR_ARG, "checkpoint \"%s\" has %s, which there is not here",
                            store->folder, t->name), false;
    return true;
}

bool dti_store_load(const dti_store *store, const dti_index *index, int64_t *taken)
{
    dti_told told = { DT_OK, "" };
    if (dti_failed(store->mesh->ctx)) return false;
    if (!dti_store_takes_part(store->mesh)) return true;
    fetch_items(store, index, taken, &told);
    return dti_told_agree(store->mesh, &told);
}
