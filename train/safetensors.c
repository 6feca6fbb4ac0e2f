/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing headers. No file is touched here: bytes come and go in memory. */
#include "train/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "train/json.h"

static const dti_st_dtype dtypes[] = {
    { "F64", 64, DT_F64 }, { "F32", 32, DT_F32 }, { "BF16", 16, DT_BF16 }, { "F16", 16, DT_F16 },
    { "I64", 64, DT_I64 }, { "I32", 32, DT_I32 }, { "U8", 8, DT_U8 }, { "BOOL", 8, DT_BOOL },
    { "U64", 64, 0 }, { "U32", 32, 0 }, { "U16", 16, 0 }, { "I16", 16, 0 }, { "I8", 8, 0 }, { "C64", 64, 0 },
    { "F8_E4M3", 8, 0 }, { "F8_E5M2", 8, 0 }, { "F8_E8M0", 8, 0 }, { "F6_E2M3", 6, 0 }, { "F6_E3M2", 6, 0 },
    { "F4", 4, 0 },
};

const dti_st_dtype *dti_st_dtype_of(dt_dtype dtype)
{
    for (int i = 0; i < DT_COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype) return &dtypes[i];
    return NULL;
}

const dti_st_dtype *dti_st_dtype_named(const char *name)
{
    for (int i = 0; i < DT_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

int64_t dti_safetensors_length(const void *first, int64_t file_bytes, const char *file, dti_told *told)
{
    const unsigned char *bytes = first;
    uint64_t length = 0;
    if (file_bytes < DTI_ST_LENGTH)
        return dti_tell(told, DT_ERR_IO, "\"%s\": a safetensors file has at least 8 bytes, got %lld", file,
                        (long long)file_bytes), -1;
    for (int i = 0; i < DTI_ST_LENGTH; i++) length |= (uint64_t)bytes[i] << (8 * i);
    if (length > (uint64_t)DTI_ST_MAX_HEADER)
        return dti_tell(told, DT_ERR_IO, "\"%s\": a header of %llu bytes, expected at most %lld", file,
                        (unsigned long long)length, (long long)DTI_ST_MAX_HEADER), -1;
    if ((int64_t)length > file_bytes - DTI_ST_LENGTH)
        return dti_tell(told, DT_ERR_IO, "\"%s\": a header of %lld bytes in a file of %lld: it is cut off", file,
                        (long long)length, (long long)file_bytes), -1;
    return (int64_t)length;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    dti_json json;
    const char *file;
    dti_told *told;
    dti_safetensors *read;
    dti_st_tensor *first, **last;  /* in the order of the header                                                   */
    bool metadata;                 /* has been there                                                               */
} reading;

static uint64_t hash_of(const char *name) { return dti_hash(name, strlen(name), 0); }

const dti_st_tensor *dti_safetensors_find(const dti_safetensors *read, const char *name)
{
    uint64_t hash = hash_of(name);
    const dti_st_tensor *t;
    for (size_t at = dti_table_first(&read->names, hash); (t = dti_table_value(&read->names, hash, &at)) != NULL;)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

static bool wrong(reading *r, const dti_st_tensor *t, const char *what)
{
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": tensor \"%.200s\": %s", r->file, t->name, what);
}

static bool read_dtype(reading *r, dti_st_tensor *t)
{
    const char *name;
    if (t->dtype) return wrong(r, t, "dtype is there twice");
    if (!dti_json_string(&r->json, &name)) return false;
    t->dtype = dti_st_dtype_named(name);
    if (t->dtype) return true;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": tensor \"%.200s\": dtype \"%.40s\", expected one of the format",
                    r->file, t->name, name);
}

/* Sizes; as many as a tensor of ours may have are kept. size: their product. */
static bool read_shape(reading *r, dti_st_tensor *t, int64_t *size)
{
    int64_t n = 1, dim;
    if (*size >= 0) return wrong(r, t, "shape is there twice");
    if (!dti_json_array(&r->json)) return false;
    for (; dti_json_element(&r->json); t->dims++) {
        if (!dti_json_int(&r->json, &dim)) return false;
        if (dim < 0 || __builtin_mul_overflow(n, dim, &n))
            return wrong(r, t, "a shape with more elements than 63 bits count");
        if (t->dims < DT_MAX_DIMS) t->shape.dim[t->dims] = dim;
    }
    t->shape.n = t->dims <= DT_MAX_DIMS ? t->dims : 0;
    *size = n;
    return !r->json.wrong;
}

static bool read_place(reading *r, dti_st_tensor *t)
{
    int64_t place[2];
    int n = 0;
    if (t->begin >= 0) return wrong(r, t, "data_offsets are there twice");
    if (!dti_json_array(&r->json)) return false;
    for (; dti_json_element(&r->json); n++) {
        if (n == 2) return wrong(r, t, "more than two data_offsets");
        if (!dti_json_int(&r->json, &place[n])) return false;
    }
    if (r->json.wrong) return false;
    if (n < 2 || place[0] < 0 || place[0] > place[1]) return wrong(r, t, "data_offsets, expected [begin, end]");
    t->begin = place[0];
    t->end = place[1];
    return true;
}

static bool read_fields(reading *r, dti_st_tensor *t, int64_t *size)
{
    const char *field;
    if (!dti_json_object(&r->json)) return false;
    while (dti_json_member(&r->json, &field)) {
        bool ok = strcmp(field, "dtype") == 0        ? read_dtype(r, t)
                : strcmp(field, "shape") == 0        ? read_shape(r, t, size)
                : strcmp(field, "data_offsets") == 0 ? read_place(r, t)
                                                     : wrong(r, t, "a field besides dtype, shape, data_offsets");
        if (!ok) return false;
    }
    return !r->json.wrong;
}

static bool check_size(reading *r, const dti_st_tensor *t, int64_t size)
{
    int64_t bits;
    if (!t->dtype || size < 0 || t->begin < 0) return wrong(r, t, "dtype, shape or data_offsets are missing");
    bool lost = __builtin_mul_overflow(size, (int64_t)t->dtype->bits, &bits);
    if (lost) return wrong(r, t, "more bytes than 63 bits count");
    if (bits % 8 == 0 && bits / 8 == t->end - t->begin) return true;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": tensor \"%.200s\": %lld elements of %s in %lld bytes, expected %lld",
                    r->file, t->name, (long long)size, t->dtype->name, (long long)(t->end - t->begin),
                    (long long)(bits / 8));
}

static bool read_tensor(reading *r, const char *name)
{
    int64_t size = -1;
    dti_st_tensor *t = dti_arena_take(&r->read->arena, sizeof *t);
    if (!t) return dti_tell(r->told, DT_ERR_MEMORY, "\"%s\": no memory for the header", r->file);
    t->name = name;
    t->begin = t->end = -1;
    if (dti_safetensors_find(r->read, name)) return wrong(r, t, "is there twice");
    if (!read_fields(r, t, &size) || !check_size(r, t, size)) return false;
    if (!dti_table_add(&r->read->names, hash_of(name), t))
        return dti_tell(r->told, DT_ERR_MEMORY, "\"%s\": no memory for the header", r->file);
    *r->last = t;
    r->last = &t->next;
    r->read->n++;
    return true;
}

/* Texts by name, which nobody here asks for. */
static bool read_metadata(reading *r)
{
    if (r->metadata) return dti_tell(r->told, DT_ERR_IO, "\"%s\": __metadata__ is there twice", r->file);
    r->metadata = true;
    if (!dti_json_object(&r->json)) return false;
    while (dti_json_member(&r->json, NULL))
        if (!dti_json_string(&r->json, NULL)) return false;
    return !r->json.wrong;
}

static bool read_header(reading *r)
{
    const char *name;
    bool begins = r->json.at == r->json.end || *r->json.at == '{';
    if (!begins) return dti_json_expected(&r->json, "a header that begins with {");
    if (!dti_json_object(&r->json)) return false;
    while (dti_json_member(&r->json, &name))
        if (!(strcmp(name, "__metadata__") == 0 ? read_metadata(r) : read_tensor(r, name))) return false;
    return dti_json_end(&r->json);
}

static int by_place(const void *a, const void *b)
{
    const dti_st_tensor *x = *(dti_st_tensor *const *)a, *y = *(dti_st_tensor *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool sort_tensors(reading *r)
{
    int n = 0;
    dti_safetensors *read = r->read;
    read->tensors = dti_arena_take(&read->arena, (size_t)read->n * sizeof *read->tensors);
    if (!read->tensors) return dti_tell(r->told, DT_ERR_MEMORY, "\"%s\": no memory for the header", r->file);
    for (dti_st_tensor *t = r->first; t; t = t->next) read->tensors[n++] = t;
    qsort(read->tensors, (size_t)n, sizeof *read->tensors, by_place);
    return true;
}

/* Each begins where the one before ended, the last ends where the file does. */
static bool check_places(reading *r, int64_t data_bytes)
{
    int64_t at = 0;
    for (int i = 0; i < r->read->n; i++) {
        const dti_st_tensor *t = r->read->tensors[i];
        if (t->begin != at)
            return dti_tell(r->told, DT_ERR_IO, "\"%s\": tensor \"%.200s\" begins at byte %lld, expected %lld: %s",
                            r->file, t->name, (long long)t->begin, (long long)at,
                            t->begin < at ? "it overlaps another" : "there is a hole");
        at = t->end;
    }
    if (at == data_bytes) return true;
    return dti_tell(r->told, DT_ERR_IO, "\"%s\": the tensors have %lld bytes, the file has %lld: %s", r->file,
                    (long long)at, (long long)data_bytes,
                    at < data_bytes ? "something is behind them" : "it is cut off");
}

bool dti_safetensors_read(const char *header, int64_t length, int64_t data_bytes, const char *file,
                          dti_safetensors *read, dti_told *told)
{
    *read = (dti_safetensors){ .n = 0 };
    reading r = { .json = dti_json_open(header, (size_t)length, &read->arena), .file = file, .told = told,
                  .read = read };
    r.last = &r.first;
    char what[512];
    dti_pen pen = { what, sizeof what, 0 };
    dti_put(&pen, "\"%s\": header", file);
    if (read_header(&r) && sort_tensors(&r) && check_places(&r, data_bytes)) return true;
    dti_json_tell(&r.json, what, told);
    dti_safetensors_fini(read);
    return false;
}

void dti_safetensors_fini(dti_safetensors *read)
{
    dti_table_fini(&read->names);
    dti_arena_fini(&read->arena);
    *read = (dti_safetensors){ .n = 0 };
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void dti_put_json(dti_pen *pen, const char *text)
{
    dti_put(pen, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') dti_put(pen, "\\%c", *c);
        else if ((unsigned char)*c < ' ') dti_put(pen, "\\u%04x", (unsigned)(unsigned char)*c);
        else dti_put(pen, "%c", *c);
    }
    dti_put(pen, "\"");
}

static void put_tensor(dti_pen *pen, const dti_st_tensor *t)
{
    dti_put_json(pen, t->name);
    dti_put(pen, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype->name);
    for (int d = 0; d < t->shape.n; d++) dti_put(pen, "%s%lld", d ? "," : "", (long long)t->shape.dim[d]);
    dti_put(pen, "],\"data_offsets\":[%lld,%lld]}", (long long)t->begin, (long long)t->end);
}

void dti_safetensors_put(dti_pen *pen, const dti_st_tensor *tensors, int n)
{
    size_t begin = pen->at;
    dti_put(pen, "{");
    for (int i = 0; i < n; i++) {
        dti_put(pen, "%s", i ? "," : "");
        put_tensor(pen, &tensors[i]);
    }
    dti_put(pen, "}");
    while ((pen->at - begin) % DTI_ST_LENGTH) dti_put(pen, " ");
}

void dti_safetensors_put_length(int64_t length, unsigned char first[DTI_ST_LENGTH])
{
    for (int i = 0; i < DTI_ST_LENGTH; i++) first[i] = (unsigned char)((uint64_t)length >> (8 * i));
}
