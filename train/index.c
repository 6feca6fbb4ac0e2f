/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing and reading the index. No file is touched here. */
#include "train/index.h"

#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "train/disk.h"
#include "train/json.h"
#include "train/safetensors.h"

static const char format_name[] = "libdtensor checkpoint", hex[] = "0123456789abcdef";

enum { VERSION = 1, SUM_DIGITS = 16, TAIL = sizeof ",\"sum\":\"\"}\n" - 1 + SUM_DIGITS };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_sum(dti_pen *pen, uint64_t sum)
{
    char digits[SUM_DIGITS + 1] = "";
    for (int i = SUM_DIGITS - 1; i >= 0; i--, sum >>= 4) digits[i] = hex[sum & 15];
    dti_put(pen, "%s", digits);
}

static void put_file(dti_pen *pen, const dti_index_file *file)
{
    dti_put(pen, "{\"name\":");
    dti_put_json(pen, file->name);
    dti_put(pen, ",\"bytes\":%lld,\"sums\":\"", (long long)file->bytes);
    for (int64_t i = 0; i < dti_blocks(file->bytes); i++) put_sum(pen, file->sums[i]);
    dti_put(pen, "\"}");
}

static void put_sizes(dti_pen *pen, const char *name, const int64_t *sizes, int n)
{
    dti_put(pen, ",\"%s\":[", name);
    for (int d = 0; d < n; d++) dti_put(pen, "%s%lld", d ? "," : "", (long long)sizes[d]);
    dti_put(pen, "]");
}

static void put_box(dti_pen *pen, const dti_index_box *box)
{
    dti_put(pen, "{\"file\":%lld,\"at\":%lld", (long long)box->file, (long long)box->at);
    put_sizes(pen, "low", box->box.lo, box->box.n);
    put_sizes(pen, "high", box->box.hi, box->box.n);
    dti_put(pen, "}");
}

static void put_tensor(dti_pen *pen, const dti_index_tensor *t)
{
    dti_put(pen, "{\"name\":");
    dti_put_json(pen, t->name);
    dti_put(pen, ",\"dtype\":\"%s\"", dti_st_dtype_of(t->dtype)->name);
    put_sizes(pen, "shape", t->shape.dim, t->shape.n);
    dti_put(pen, ",\"boxes\":[");
    for (const dti_index_box *box = t->boxes; box; box = box->next) {
        put_box(pen, box);
        if (box->next) dti_put(pen, ",");
    }
    dti_put(pen, "]}");
}

void dti_index_put(dti_pen *pen, const dti_index *index)
{
    size_t begin = pen->at;
    dti_put(pen, "{\"format\":\"%s\",\"version\":%d,\"block\":%d", format_name, (int)VERSION, (int)DTI_BLOCK);
    dti_put(pen, ",\"step\":%lld,\"updates\":%lld", (long long)index->step, (long long)index->updates);
    dti_put(pen, ",\n\"files\":[");
    for (const dti_index_file *file = index->files; file; file = file->next) {
        put_file(pen, file);
        if (file->next) dti_put(pen, ",\n");
    }
    dti_put(pen, "],\n\"tensors\":[");
    for (const dti_index_tensor *t = index->tensors; t; t = t->next) {
        put_tensor(pen, t);
        if (t->next) dti_put(pen, ",\n");
    }
    dti_put(pen, "]");
    uint64_t sum = pen->at < pen->room ? dti_block_sum(pen->text + begin, pen->at - begin, VERSION) : 0;
    dti_put(pen, ",\"sum\":\"");
    put_sum(pen, sum);
    dti_put(pen, "\"}\n");
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    dti_json json;
    const char *path;
    dti_told *told;
    dti_index *index;
    dti_index_file **last_file;
    dti_index_tensor **last_tensor;
    const char *format;
    int64_t version, block;
} reading;

static bool wrong(reading *r, const char *what, const char *name, const char *why)
{
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": %s \"%.200s\": %s", r->path, what, name ? name : "", why);
}

static void *take(reading *r, size_t bytes)
{
    void *taken = dti_arena_take(&r->index->arena, bytes);
    if (!taken) dti_tell(r->told, DT_ERR_MEMORY, "\"%s\": no memory for the index", r->path);
    return taken;
}

/* A member's value goes to a field, each at most once. */
typedef enum field_kind { TEXT, NUMBER, SIZES, OTHER } field_kind;
typedef struct field {
    const char *name;
    field_kind kind;
    void *to;                      /* const char *, int64_t, dt_shape                                              */
    bool (*read)(reading *r, void *to); /* OTHER                                                                   */
} field;

static bool read_sizes(reading *r, dt_shape *shape)
{
    if (!dti_json_array(&r->json)) return false;
    while (dti_json_element(&r->json)) {
        if (shape->n == DT_MAX_DIMS) return dti_json_expected(&r->json, "no more than 8 sizes");
        if (!dti_json_int(&r->json, &shape->dim[shape->n++])) return false;
    }
    return !r->json.wrong;
}

static bool read_field(reading *r, const field *f)
{
    switch (f->kind) {
    case TEXT: return dti_json_string(&r->json, f->to);
    case NUMBER: return dti_json_int(&r->json, f->to);
    case SIZES: return read_sizes(r, f->to);
    default: return f->read(r, f->to);
    }
}

/* An object of exactly these fields, in any order; n is at most 32. */
static bool read_fields(reading *r, const field *fields, int n)
{
    const char *name;
    uint32_t seen = 0;
    if (!dti_json_object(&r->json)) return false;
    while (dti_json_member(&r->json, &name)) {
        int i = 0;
        while (i < n && strcmp(fields[i].name, name)) i++;
        if (i == n) return wrong(r, "member", name, "there is no such one");
        if (seen >> i & 1) return wrong(r, "member", name, "is there twice");
        seen |= UINT32_C(1) << i;
        if (!read_field(r, &fields[i])) return false;
    }
    if (r->json.wrong) return false;
    for (int i = 0; i < n; i++)
        if (!(seen >> i & 1)) return wrong(r, "member", fields[i].name, "is missing");
    return true;
}

static bool read_sum(const char *digits, uint64_t *sum)
{
    *sum = 0;
    for (int i = 0; i < SUM_DIGITS; i++) {
        const char *digit = digits[i] ? strchr(hex, digits[i]) : NULL;
        if (!digit) return false;
        *sum = *sum << 4 | (uint64_t)(digit - hex);
    }
    return true;
}

static bool read_sums(reading *r, dti_index_file *file, const char *digits)
{
    int64_t n = dti_blocks(file->bytes);
    if (file->bytes < 0 || strlen(digits) % SUM_DIGITS || (int64_t)(strlen(digits) / SUM_DIGITS) != n)
        return wrong(r, "file", file->name, "the checksums are not those of so many bytes");
    file->sums = take(r, (size_t)n * sizeof *file->sums);
    for (int64_t i = 0; file->sums && i < n; i++)
        if (!read_sum(digits + i * SUM_DIGITS, &file->sums[i])) return wrong(r, "file", file->name, "no checksum");
    return file->sums != NULL;
}

static bool read_file(reading *r)
{
    dti_index_file *file = take(r, sizeof *file);
    const char *digits = NULL;
    if (!file) return false;
    const field fields[] = {
        { "name", TEXT, &file->name, NULL }, { "bytes", NUMBER, &file->bytes, NULL }, { "sums", TEXT, &digits, NULL },
    };
    if (!read_fields(r, fields, DT_COUNT(fields))) return false;
    if (!file->name[0] || strchr(file->name, '/') || file->name[0] == '.')
        return wrong(r, "file", file->name, "is no name of a file in a folder");
    *r->last_file = file;
    r->last_file = &file->next;
    r->index->file_count++;
    return read_sums(r, file, digits);
}

static bool read_files(reading *r, void *to)
{
    (void)to;
    if (!dti_json_array(&r->json)) return false;
    while (dti_json_element(&r->json))
        if (!read_file(r)) return false;
    return !r->json.wrong;
}

static bool read_box(reading *r, dti_index_box *box)
{
    dt_shape low = { 0, { 0 } }, high = { 0, { 0 } };
    const field fields[] = {
        { "file", NUMBER, &box->file, NULL }, { "at", NUMBER, &box->at, NULL },
        { "low", SIZES, &low, NULL }, { "high", SIZES, &high, NULL },
    };
    if (!read_fields(r, fields, DT_COUNT(fields))) return false;
    if (low.n != high.n) return dti_json_expected(&r->json, "as many sizes in low and high");
    box->box.n = low.n;
    memcpy(box->box.lo, low.dim, sizeof low.dim);
    memcpy(box->box.hi, high.dim, sizeof high.dim);
    return true;
}

static bool read_boxes(reading *r, void *to)
{
    dti_index_box **last = to;
    if (!dti_json_array(&r->json)) return false;
    while (dti_json_element(&r->json)) {
        dti_index_box *box = take(r, sizeof *box);
        if (!box || !read_box(r, box)) return false;
        *last = box;
        last = &box->next;
    }
    return !r->json.wrong;
}

dti_index_tensor *dti_index_find(const dti_index *index, const char *name)
{
    uint64_t hash = dti_hash(name, strlen(name), 0);
    dti_index_tensor *t;
    for (size_t at = dti_table_first(&index->names, hash); (t = dti_table_value(&index->names, hash, &at)) != NULL;)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

static bool add_tensor(reading *r, dti_index_tensor *t)
{
    if (dti_index_find(r->index, t->name)) return wrong(r, "tensor", t->name, "is there twice");
    if (!dti_table_add(&r->index->names, dti_hash(t->name, strlen(t->name), 0), t))
        return dti_tell(r->told, DT_ERR_MEMORY, "\"%s\": no memory for the index", r->path);
    *r->last_tensor = t;
    r->last_tensor = &t->next;
    return true;
}

static bool read_tensor(reading *r)
{
    dti_index_tensor *t = take(r, sizeof *t);
    const char *dtype = NULL;
    if (!t) return false;
    const field fields[] = {
        { "name", TEXT, &t->name, NULL }, { "dtype", TEXT, &dtype, NULL }, { "shape", SIZES, &t->shape, NULL },
        { "boxes", OTHER, &t->boxes, read_boxes },
    };
    if (!read_fields(r, fields, DT_COUNT(fields))) return false;
    const dti_st_dtype *row = dti_st_dtype_named(dtype);
    if (!row || !row->dtype) return wrong(r, "dtype", dtype, "is none of the library's");
    t->dtype = row->dtype;
    return add_tensor(r, t);
}

static bool read_tensors(reading *r, void *to)
{
    (void)to;
    if (!dti_json_array(&r->json)) return false;
    while (dti_json_element(&r->json))
        if (!read_tensor(r)) return false;
    return !r->json.wrong;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool number_files(reading *r)
{
    int n = 0;
    r->index->file_at = take(r, (size_t)r->index->file_count * sizeof *r->index->file_at);
    if (!r->index->file_at) return false;
    for (dti_index_file *file = r->index->files; file; file = file->next) r->index->file_at[n++] = file;
    return true;
}

/* Elements and bytes of a shape. false: more than 63 bits count. */
static bool count_shape(const dti_index_tensor *t, int64_t *elements)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(t->dtype);
    *elements = 1;
    for (int d = 0; d < t->shape.n; d++)
        if (t->shape.dim[d] < 0 || __builtin_mul_overflow(*elements, t->shape.dim[d], elements)) return false;
    return !__builtin_mul_overflow(*elements, bytes, &bytes);
}

static bool is_in_shape(const dt_box *box, const dt_shape *shape)
{
    bool in = box->n == shape->n;
    for (int d = 0; in && d < box->n; d++)
        in = box->lo[d] >= 0 && box->lo[d] < box->hi[d] && box->hi[d] <= shape->dim[d];
    return in;
}

static int64_t box_elements(const dt_box *box)
{
    int64_t n = 1;
    for (int d = 0; d < box->n; d++) n *= box->hi[d] - box->lo[d];
    return n;
}

static bool overlap(const dt_box *a, const dt_box *b)
{
    for (int d = 0; d < a->n; d++)
        if (a->lo[d] >= b->hi[d] || b->lo[d] >= a->hi[d]) return false;
    return true;
}

static bool check_box(reading *r, const dti_index_tensor *t, const dti_index_box *box)
{
    if (!is_in_shape(&box->box, &t->shape)) return wrong(r, "tensor", t->name, "a box that is not in its shape");
    bool known = box->file >= 0 && box->file < r->index->file_count;
    const dti_index_file *file = known ? r->index->file_at[box->file] : NULL;
    int64_t bytes = box_elements(&box->box) * (int64_t)dt_dtype_bytes(t->dtype);
    if (!file || box->at < 0 || box->at > file->bytes || bytes > file->bytes - box->at)
        return wrong(r, "tensor", t->name, "a box that is in no file");
    for (const dti_index_box *other = t->boxes; other != box; other = other->next)
        if (overlap(&box->box, &other->box)) return wrong(r, "tensor", t->name, "boxes that overlap");
    return true;
}

static bool check_tensor(reading *r, const dti_index_tensor *t)
{
    int64_t elements, found = 0;
    if (!count_shape(t, &elements)) return wrong(r, "tensor", t->name, "more bytes than 63 bits count");
    for (const dti_index_box *box = t->boxes; box; box = box->next) {
        if (!check_box(r, t, box)) return false;
        found += box_elements(&box->box);
    }
    return found == elements || wrong(r, "tensor", t->name, "boxes that leave something out");
}

static bool check_head(reading *r)
{
    if (strcmp(r->format, format_name)) return wrong(r, "format", r->format, "expected that of a checkpoint");
    if (r->version != VERSION || r->block != DTI_BLOCK)
        return dti_tell(r->told, DT_ERR_IO, "\"%s\": version %lld with blocks of %lld bytes, expected %d with %d",
                        r->path, (long long)r->version, (long long)r->block, (int)VERSION, (int)DTI_BLOCK);
    if (r->index->step >= 0 && r->index->updates >= -1) return true;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": step %lld, updates %lld", r->path, (long long)r->index->step,
                    (long long)r->index->updates);
}

/* Its last member says what all before it adds up to. */
static bool check_sum(reading *r, const char *text, int64_t n)
{
    uint64_t sum;
    if (n < TAIL || memcmp(text + n - TAIL, ",\"sum\":\"", 8) || !read_sum(text + n - 3 - SUM_DIGITS, &sum))
        return dti_tell(r->told, DT_ERR_IO, "\"%s\": no checksum at its end: it is cut off, or no index", r->path);
    if (sum == dti_block_sum(text, (size_t)(n - TAIL), VERSION)) return true;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\" is damaged: it is not what was written", r->path);
}

static bool read_index(reading *r, const char *text, int64_t n)
{
    const char *sum;
    const field fields[] = {
        { "format", TEXT, &r->format, NULL }, { "version", NUMBER, &r->version, NULL },
        { "step", NUMBER, &r->index->step, NULL }, { "updates", NUMBER, &r->index->updates, NULL },
        { "block", NUMBER, &r->block, NULL }, { "files", OTHER, NULL, read_files },
        { "tensors", OTHER, NULL, read_tensors }, { "sum", TEXT, &sum, NULL },
    };
    if (!check_sum(r, text, n) || !read_fields(r, fields, DT_COUNT(fields)) || !dti_json_end(&r->json)) return false;
    if (!check_head(r) || !number_files(r)) return false;
    for (const dti_index_tensor *t = r->index->tensors; t; t = t->next)
        if (!check_tensor(r, t)) return false;
    return true;
}

bool dti_index_read(const char *text, int64_t n, const char *path, dti_index *index, dti_told *told)
{
    *index = (dti_index){ .step = 0 };
    reading r = { .json = dti_json_open(text, (size_t)n, &index->arena), .path = path, .told = told, .index = index,
                  .last_file = &index->files, .last_tensor = &index->tensors };
    if (read_index(&r, text, n)) return true;
    dti_json_tell(&r.json, path, told);
    dti_index_fini(index);
    return false;
}

void dti_index_fini(dti_index *index)
{
    dti_table_fini(&index->names);
    dti_arena_fini(&index->arena);
    *index = (dti_index){ .step = 0 };
}
