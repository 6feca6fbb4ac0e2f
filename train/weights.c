/* SPDX-License-Identifier: Apache-2.0
 *
 * Published weights: safetensors files by other names than the module's paths, several parameters in one tensor maybe.
 * Every rank reads the headers and of the tensors what its parts need. */
#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "train/disk.h"
#include "train/fetch.h"
#include "train/items.h"
#include "train/json.h"
#include "train/safetensors.h"

static const char who[] = "dt_weights_load";

#define LLAMA "model.layers.#."

const dt_name_row dt_names_llama[] = {
    { "embed.weight", "model.embed_tokens.weight" },
    { "layers.#.attn_norm.weight", LLAMA "input_layernorm.weight" },
    { "layers.#.attn.wq.weight", LLAMA "self_attn.q_proj.weight" },
    { "layers.#.attn.wk.weight", LLAMA "self_attn.k_proj.weight" },
    { "layers.#.attn.wv.weight", LLAMA "self_attn.v_proj.weight" },
    { "layers.#.attn.wo.weight", LLAMA "self_attn.o_proj.weight" },
    { "layers.#.mlp_norm.weight", LLAMA "post_attention_layernorm.weight" },
    { "layers.#.mlp.gate.weight", LLAMA "mlp.gate_proj.weight" },
    { "layers.#.mlp.up.weight", LLAMA "mlp.up_proj.weight" },
    { "layers.#.mlp.down.weight", LLAMA "mlp.down_proj.weight" },
    { "norm.weight", "model.norm.weight" },
    { "head.weight", "lm_head.weight" },
};
const int dt_names_llama_count = DT_COUNT(dt_names_llama);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct source {
    char *path;                    /* NULL: none                                                                   */
    dti_safetensors header;
    int64_t data;                  /* where it ends                                                                */
    dti_fetch_file file;
    struct source *next;
} source;

typedef struct loading {
    dt_context *ctx;
    const char *path;              /* that was asked for                                                           */
    const dt_name_row *names;
    int name_count;
    dti_items items;
    dti_arena arena;
    dti_told told;
    source *sources;               /* in the order of their paths                                                  */
} loading;

static void *take(loading *l, size_t bytes)
{
    void *taken = dti_arena_take(&l->arena, bytes);
    if (!taken) dti_tell(&l->told, DT_ERR_MEMORY, "%s: no memory for \"%s\"", who, l->path);
    return taken;
}

/* A file is listed once, and in order, so that all ranks read the same in the same order. */
static void add_source(loading *l, const char *path)
{
    source **at = &l->sources;
    while (*at && strcmp((*at)->path, path) < 0) at = &(*at)->next;
    if (*at && strcmp((*at)->path, path) == 0) return;
    source *s = take(l, sizeof *s);
    char *copy = s ? dti_arena_text(&l->arena, path, strlen(path)) : NULL;
    if (!copy) return;
    *s = (source){ .path = copy, .next = *at };
    *at = s;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static void add_name(const char *name, void *arg)
{
    loading *l = arg;
    char path[DTI_PATH];
    bool is_one = ends_with(name, ".safetensors") && name[0] != '.';
    if (is_one && dti_path(path, l->path, name, &l->told)) add_source(l, path);
}

/* The files that an index's weight_map names. */
static bool read_map(loading *l, dti_json *json)
{
    const char *file;
    char path[DTI_PATH];
    if (!dti_json_object(json)) return false;
    while (dti_json_member(json, NULL)) {
        if (!dti_json_string(json, &file)) return false;
        bool beside = file[0] && file[0] != '.' && !strchr(file, '/');
        if (!beside) return dti_json_expected(json, "the name of a file beside it");
        if (!dti_path(path, l->path, file, &l->told)) return false;
        add_source(l, path);
    }
    return !json->wrong;
}

static void read_index(loading *l, const char *path, const char *text, int64_t n)
{
    const char *name;
    bool found = false;
    dti_json json = dti_json_open(text, (size_t)n, &l->arena);
    if (dti_json_object(&json))
        while (dti_json_member(&json, &name)) {
            bool map = strcmp(name, "weight_map") == 0;
            found |= map;
            if (!(map ? read_map(l, &json) : dti_json_skip(&json))) break;
        }
    dti_json_end(&json);
    if (dti_json_tell(&json, path, &l->told) && !found) dti_tell(&l->told, DT_ERR_IO, "\"%s\" has no weight_map", path);
}

/* Those of the index, or the one of this name, or all. */
static void list_folder(loading *l)
{
    char path[DTI_PATH], one[DTI_PATH];
    int64_t n;
    if (!dti_path(path, l->path, "model.safetensors.index.json", &l->told)
        || !dti_path(one, l->path, "model.safetensors", &l->told)) return;
    if (dti_file_is_there(path)) {
        char *text = dti_file_read(path, DTI_ST_MAX_HEADER, &n, &l->told);
        if (text) read_index(l, path, text, n);
        free(text);
    } else if (dti_file_is_there(one)) add_source(l, one);
    else dti_folder_list(l->path, add_name, l, &l->told);
}

/* The length and the header behind it. */
static bool read_header(source *s, dti_reader *reader, dti_told *told)
{
    unsigned char first[DTI_ST_LENGTH] = { 0 };
    size_t there = reader->bytes < DTI_ST_LENGTH ? 0 : DTI_ST_LENGTH;
    if (there && !dti_reader_get(reader, 0, there, first)) return false;
    int64_t length = dti_safetensors_length(first, reader->bytes, s->path, told);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (length >= 0 && !text) dti_tell(told, DT_ERR_MEMORY, "\"%s\": no memory for the header", s->path);
    s->data = DTI_ST_LENGTH + length;
    s->file = (dti_fetch_file){ .path = s->path, .bytes = reader->bytes };
    bool ok = text && dti_reader_get(reader, DTI_ST_LENGTH, (size_t)length, text)
           && dti_safetensors_read(text, length, reader->bytes - s->data, s->path, &s->header, told);
    free(text);
    return ok;
}

static bool read_source(loading *l, source *s, char *block)
{
    dti_reader reader;
    if (!dti_reader_open(&reader, s->path, -1, block, NULL, &l->told)) return false;
    bool ok = read_header(s, &reader, &l->told);
    dti_reader_close(&reader);
    return ok;
}

static bool read_sources(loading *l)
{
    if (dti_folder_is(l->path)) list_folder(l);
    else add_source(l, l->path);
    if (l->told.status) return false;
    if (!l->sources) return dti_tell(&l->told, DT_ERR_IO, "\"%s\" has no safetensors file", l->path);
    char *block = malloc(DTI_BLOCK);
    bool ok = block || dti_tell(&l->told, DT_ERR_MEMORY, "%s: no memory for \"%s\"", who, l->path);
    for (source *s = l->sources; s && ok; s = s->next) ok = read_source(l, s, block);
    free(block);
    return ok;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

typedef struct wanted {            /* a parameter                                                                  */
    const char *foreign;
    int row;                       /* of the names                                                                 */
} wanted;

typedef struct digits { const char *at[DT_MAX_DIMS]; int n[DT_MAX_DIMS], count; } digits;

/* Does a path match a pattern, where "#" stands for digits? These. */
static bool match(const char *path, const char *pattern, digits *found)
{
    found->count = 0;
    for (; *pattern; pattern++) {
        size_t n = *pattern == '#' ? strspn(path, "0123456789") : *path == *pattern;
        if (n == 0 || (*pattern == '#' && found->count == DT_COUNT(found->at))) return false;
        if (*pattern == '#') {
            found->at[found->count] = path;
            found->n[found->count++] = (int)n;
        }
        path += n;
    }
    return !*path;
}

static bool put_foreign(dti_pen *pen, const char *pattern, const digits *found)
{
    int used = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '#') dti_put(pen, "%c", *pattern);
        else if (used == found->count) return false;
        else {
            dti_put(pen, "%.*s", found->n[used], found->at[used]);
            used++;
        }
    }
    return true;
}

static const char *foreign_name(loading *l, const dt_name_row *row, const digits *found)
{
    dti_pen measure = { NULL, 0, 0 };
    if (!put_foreign(&measure, row->foreign, found))
        return dti_tell(&l->told, DT_ERR_ARG, "%s: \"%s\" has more \"#\" than \"%s\"", who, row->foreign, row->path),
               NULL;
    char *name = take(l, measure.at + 1);
    if (name) put_foreign(&(dti_pen){ name, measure.at + 1, 0 }, row->foreign, found);
    return name;
}

/* The first row that has it. */
static bool name_param(loading *l, const char *path, wanted *w)
{
    digits found;
    if (!l->names) {
        w->foreign = path;
        return true;
    }
    for (w->row = 0; w->row < l->name_count; w->row++)
        if (match(path, l->names[w->row].path, &found))
            return (w->foreign = foreign_name(l, &l->names[w->row], &found)) != NULL;
    return dti_tell(&l->told, DT_ERR_ARG, "%s: no row of the names has %s", who, path);
}

static bool check_names(loading *l)
{
    for (int i = 0; l->names && i < l->name_count; i++)
        if (!l->names[i].path || !l->names[i].foreign)
            return dti_tell(&l->told, DT_ERR_ARG, "%s: row %d of the names is not whole", who, i);
    return true;
}

/* ---- which bytes ------------------------------------------------------------------------------------------------- */

/* The tensor of a name, and the file it is in. NULL: told. */
static const dti_st_tensor *find(loading *l, const char *param, const char *name, const source **in)
{
    const dti_st_tensor *found = NULL, *t;
    for (const source *s = l->sources; s; s = s->next) {
        if ((t = dti_safetensors_find(&s->header, name)) == NULL) continue;
        if (found)
            return dti_tell(&l->told, DT_ERR_IO, "%s is in \"%s\" and in \"%s\"", name, (*in)->path, s->path), NULL;
        found = t;
        *in = s;
    }
    if (!found) dti_tell(&l->told, DT_ERR_ARG, "\"%s\" has no %s, which is %s here", l->path, name, param);
    return found;
}

/* Which rows of dim 0 of a foreign tensor a parameter is: those of the names' rows before come first. */
typedef struct piece { int64_t first, rows; bool twice; } piece;

static piece piece_of(const loading *l, const wanted *all, int number)
{
    piece p = { 0, 0, false };
    for (int i = 0; i < l->items.n; i++) {
        if (i != number && strcmp(all[i].foreign, all[number].foreign)) continue;
        const dt_shape *shape = &l->items.at[i].x->spec->shape;
        int64_t rows = shape->n ? shape->dim[0] : 1;
        p.rows += rows;
        if (all[i].row < all[number].row) p.first += rows;
        p.twice |= i != number && all[i].row == all[number].row;
    }
    return p;
}

static bool shape_fits(const dti_st_tensor *t, const dt_shape *shape, int64_t rows)
{
    dt_shape whole = *shape;
    if (whole.n) whole.dim[0] = rows;
    return t->dims == whole.n && dti_shape_same(&t->shape, &whole);
}

static void tell_shape(loading *l, const char *name, const dti_item *item, const dti_st_tensor *t, const source *s,
                       int64_t rows)
{
    char text[200] = "";
    dti_pen pen = { text, sizeof text, 0 };
    for (int d = 0; d < t->shape.n; d++) dti_put(&pen, "%s%lld", d ? "," : "", (long long)t->shape.dim[d]);
    dti_tell(&l->told, DT_ERR_SHAPE, "\"%s\": %s is [%s], and %s is %s: expected %lld rows", s->path, name, text,
             item->name, dt_spec_text(item->x->spec), (long long)rows);
}

static bool is_float(dt_dtype dtype)
{
    return dtype == DT_F64 || dtype == DT_F32 || dtype == DT_BF16 || dtype == DT_F16;
}

static bool set_fetch(loading *l, const wanted *all, int number, dti_fetch *fetch)
{
    const source *s = NULL;
    const dti_item *item = &l->items.at[number];
    const char *name = all[number].foreign;
    const dti_st_tensor *t = find(l, item->name, name, &s);
    const dt_shape *shape = &item->x->spec->shape;
    piece p = piece_of(l, all, number);
    if (!t) return false;
    if (p.twice) return dti_tell(&l->told, DT_ERR_ARG, "%s: two parameters of one row are %s", who, name);
    if (!is_float(t->dtype->dtype))
        return dti_tell(&l->told, DT_ERR_DTYPE, "\"%s\": %s is %s, and %s is %s", s->path, name, t->dtype->name,
                        item->name, dt_spec_text(item->x->spec));
    if (!shape_fits(t, shape, p.rows)) return tell_shape(l, name, item, t, s, p.rows), false;
    int64_t row_bytes = p.rows ? (t->end - t->begin) / p.rows : 0;
    *fetch = (dti_fetch){ .file = &s->file, .at = s->data + t->begin + p.first * row_bytes, .dtype = t->dtype->dtype,
                          .box.n = shape->n, .x = item->x };
    for (int d = 0; d < shape->n; d++) fetch->box.hi[d] = shape->dim[d];
    return true;
}

static dti_fetch *list_fetches(loading *l)
{
    int n = l->items.n;
    wanted *all = take(l, (size_t)n * sizeof *all);
    dti_fetch *list = all ? take(l, (size_t)n * sizeof *list) : NULL;
    bool ok = list && check_names(l);
    for (int i = 0; i < n && ok; i++) ok = name_param(l, l->items.at[i].name, &all[i]);
    for (int i = 0; i < n && ok; i++) ok = set_fetch(l, all, i, &list[i]);
    return ok ? list : NULL;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* All is looked at before anything is written. */
static bool load(loading *l)
{
    dt_mesh *mesh = l->items.root->mesh;
    bool here = dti_store_takes_part(mesh);
    dti_store store = dti_items_store(&l->items, "");
    dti_fetch *list = NULL;
    if (!dti_store_check(&store)) return false;
    if (here && read_sources(l)) list = list_fetches(l);
    if (here && !dti_told_agree(mesh, &l->told)) return false;
    if (!dti_items_open(&l->items, who)) return false;
    if (here) dti_fetch_all(l->ctx, list, l->items.n, NULL, &l->told);
    if (here && !dti_told_agree(mesh, &l->told)) return false;
    dti_items_written(&l->items);
    return true;
}

dt_status dt_weights_load(dt_module *root, const char *path, const dt_name_row *names, int n)
{
    if (!root) return DT_ERR_ARG;
    loading l = { .ctx = root->ctx, .path = path, .names = names, .name_count = n };
    if (dti_failed(root->ctx)) return root->ctx->status;
    if (!path || !path[0]) return dti_fail(root->ctx, DT_ERR_ARG, "%s: no path", who);
    if (n < 0) return dti_fail(root->ctx, DT_ERR_ARG, "%s: %d names", who, n);
    if (!dti_items_list(&l.items, root, NULL, who)) return root->ctx->status;
    load(&l);
    for (source *s = l.sources; s; s = s->next) dti_safetensors_fini(&s->header);
    dti_arena_fini(&l.arena);
    dti_items_fini(&l.items);
    return root->ctx->status;
}
