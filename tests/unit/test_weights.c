/* SPDX-License-Identifier: Apache-2.0
 *
 * Published weights: a file that the safetensors package wrote, Llama by Hugging Face's names in one file, in several,
 * with fused tensors, in other dtypes, on any mesh; and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <dtensor/dtensor.h>

#include "core/number.h"
#include "errors.h"
#include "folder.h"
#include "launch.h"
#include "nn/module.h"
#include "suite.h"
#include "train/disk.h"
#include "train/safetensors.h"

/* ---- a module of any parameters ---------------------------------------------------------------------------------- */

typedef struct bag_row { const char *name; dt_dtype dtype; dt_shape shape; const char *placements; } bag_row;
typedef struct bag { const bag_row *rows; int n; } bag;

static void bag_init(dt_module *self, const void *params)
{
    const bag *b = params;
    for (int i = 0; i < b->n; i++) {
        const bag_row *row = &b->rows[i];
        dt_tensor *x = dt_module_param(self, row->name, row->shape, &(dt_param_params){ .dtype = row->dtype });
        if (x) dti_param_store(dti_param_of(x), dt_spec_replace(dt_tensor_spec(x), row->placements));
    }
}

static dt_tensor *bag_forward(dt_module *self, dt_tensor *const *in) { return (void)self, in[0]; }

static const dt_module_type bag_type = { .name = "bag", .init = bag_init, .forward = bag_forward };

static dt_tensor *param_of(dt_module *root, const char *path)
{
    dt_tensor *x = NULL;
    expect(dt_module_params(root, path, &x, 1) == 1, "one parameter is %s", path);
    return x;
}

/* ---- a file of the safetensors package --------------------------------------------------------------------------- */

/* What safetensors.numpy.save of version 0.8.0 makes of
 *   {"model.half": float16 [1.5, -2, 0.25, 65504], "model.single": float32 [[0, 1, 2], [3, 4, -5.5]],
 *    "model.double": float64 3.25, "position_ids": int64 [[0, 1, 2]], "flags": bool [True, False]}
 * with metadata {"format": "np"}. */
static const char fixture[] =
    "h\1\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"np\"},\"position_ids\":{\"dtype\":\"I64\",\"shape\":[1,3],"
    "\"data_offsets\":[0,24]},\"model.double\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[24,32]},"
    "\"model.single\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[32,56]},\"model.half\":{\"dtype\":\"F16\","
    "\"shape\":[4],\"data_offsets\":[56,64]},\"flags\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[64,66]}}    "
    "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\n@"
    "\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xb0\xc0"
    "\0>\0\xc0\0" "4\xff{"
    "\1";                              /* and the 0 that ends it                                                     */

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    if (!expect(file != NULL, "%s", path)) return;
    expect(fwrite(bytes, 1, n, file) == n, "%s", path);
    expect(fclose(file) == 0, "%s", path);
}

static dt_status read_fixture(dt_context *ctx, void *arg)
{
    static const dt_name_row names[] = {
        { "half", "model.half" }, { "single", "model.single" }, { "wide", "model.single" },
        { "double", "model.double" },
    };
    const bag_row rows[] = {
        { "half", DT_F16, DT_SHAPE(4), "x:S(0)" }, { "single", DT_F32, DT_SHAPE(2, 3), "x:S(1)" },
        { "double", DT_F32, DT_SCALAR, "" },
    };
    static const double single[] = { 0, 1, 2, 3, 4, -5.5 };
    static const double half[] = { 1.5, -2, 0.25, 65504 };
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    dt_module *m = dt_module_create(mesh, &bag_type, &(bag){ rows, 3 });
    expect(dt_weights_load(m, arg, names, DT_COUNT(names)) == DT_OK, "%s", dt_context_error(ctx));
    double got[6] = { 0 };
    float singles[6];
    uint16_t halves[4];
    dt_tensor_to_host(param_of(m, "single"), -1, singles, sizeof singles);
    dti_numbers_convert(DT_F32, singles, DT_F64, got, 6);
    expect(memcmp(got, single, sizeof single) == 0, "float32 as it was");
    dt_tensor_to_host(param_of(m, "half"), -1, halves, sizeof halves);
    dti_numbers_convert(DT_F16, halves, DT_F64, got, 4);
    expect(memcmp(got, half, sizeof half) == 0, "float16 as it was");
    expect(dt_tensor_item(param_of(m, "double")) == 3.25, "float64 as float32");
    return dt_context_status(ctx);
}

static void a_file_of_the_package(void)
{
    folder f = folder_new();
    char path[FOLDER_PATH];
    folder_path(path, &f, "model.safetensors");
    write_bytes(path, fixture, sizeof fixture);
    for (int ranks = 1; ranks <= 4; ranks++) {
        launch(ranks, read_fixture, path);
        launch(ranks, read_fixture, f.path);
    }
    folder_remove(&f);
}

/* ---- files in Hugging Face's manner ------------------------------------------------------------------------------ */

static const dt_llama_params llama = {
    .vocab = 13, .width = 12, .layers = 3, .heads = 3, .kv_heads = 1, .mlp_width = 10, .dtype = DT_F32,
};

enum { MOST = 64 };

typedef struct shard { dti_st_tensor tensors[MOST]; char names[MOST][96]; char *bytes; size_t n; int count; } shard;

/* A tensor of the model behind the others; rows of the same name are joined. */
static void shard_add(shard *s, const char *name, const dt_tensor *x, dt_dtype dtype)
{
    const dt_spec *spec = dt_tensor_spec(x);
    dt_shape shape = dt_spec_shape(spec);
    int64_t elements = 1;
    for (int d = 0; d < shape.n; d++) elements *= shape.dim[d];
    size_t bytes = (size_t)elements * dt_dtype_bytes(dtype);
    s->bytes = realloc(s->bytes, s->n + bytes);
    dti_numbers_convert(dt_spec_dtype(spec), dt_tensor_data(x), dtype, s->bytes + s->n, elements);
    if (s->count && strcmp(s->names[s->count - 1], name) == 0) {
        s->tensors[s->count - 1].shape.dim[0] += shape.dim[0];
    } else {
        snprintf(s->names[s->count], sizeof s->names[0], "%s", name);
        s->tensors[s->count] = (dti_st_tensor){ .name = s->names[s->count], .dtype = dti_st_dtype_of(dtype),
                                                .shape = shape, .begin = (int64_t)s->n };
        s->count++;
    }
    s->n += bytes;
    s->tensors[s->count - 1].end = (int64_t)s->n;
}

static void shard_write(shard *s, const char *path)
{
    char header[16384];
    unsigned char length[DTI_ST_LENGTH];
    dti_pen pen = { header, sizeof header, 0 };
    dti_safetensors_put(&pen, s->tensors, s->count);
    dti_safetensors_put_length((int64_t)pen.at, length);
    FILE *file = fopen(path, "wb");
    if (!expect(file && pen.at < sizeof header, "%s", path)) return;
    expect(fwrite(length, 1, 8, file) == 8 && fwrite(header, 1, pen.at, file) == pen.at &&
           fwrite(s->bytes, 1, s->n, file) == s->n, "%s", path);
    expect(fclose(file) == 0, "%s", path);
}

typedef struct published {
    const char *folder;
    int shards;
    bool index, fused, tied;
    dt_dtype dtype;                /* in the files                                                                 */
    const char *placements;        /* of what is loaded                                                            */
    uint64_t sums[MOST];
} published;

static const dt_name_row fused_names[] = {
    { "embed.weight", "model.embed_tokens.weight" },
    { "layers.#.attn_norm.weight", "model.layers.#.input_layernorm.weight" },
    { "layers.#.attn.wq.weight", "model.layers.#.self_attn.qkv_proj.weight" },
    { "layers.#.attn.wk.weight", "model.layers.#.self_attn.qkv_proj.weight" },
    { "layers.#.attn.wv.weight", "model.layers.#.self_attn.qkv_proj.weight" },
    { "layers.#.attn.wo.weight", "model.layers.#.self_attn.o_proj.weight" },
    { "layers.#.mlp_norm.weight", "model.layers.#.post_attention_layernorm.weight" },
    { "layers.#.mlp.gate.weight", "model.layers.#.mlp.gate_up_proj.weight" },
    { "layers.#.mlp.up.weight", "model.layers.#.mlp.gate_up_proj.weight" },
    { "layers.#.mlp.down.weight", "model.layers.#.mlp.down_proj.weight" },
    { "norm.weight", "model.norm.weight" },
    { "head.weight", "lm_head.weight" },
};

/* "layers.2.mlp.up.weight" and the row for "layers.#...": what its tensor is called, by another way than the
 * library's. */
static void foreign_name(const dt_name_row *rows, int n, const char *path, char name[96])
{
    int layer = -1, end = 0;
    char pattern[96];
    snprintf(pattern, sizeof pattern, "%s", path);
    if (sscanf(path, "layers.%d.%n", &layer, &end) == 1) snprintf(pattern, sizeof pattern, "layers.#.%s", path + end);
    for (int i = 0; i < n; i++) {
        if (strcmp(rows[i].path, pattern)) continue;
        const char *hash = strchr(rows[i].foreign, '#');
        if (hash) snprintf(name, 96, "%.*s%d%s", (int)(hash - rows[i].foreign), rows[i].foreign, layer, hash + 1);
        else snprintf(name, 96, "%s", rows[i].foreign);
        return;
    }
    expect(false, "no row has %s", path);
}

static dt_module *model_of(dt_mesh *mesh, const published *p)
{
    dt_llama_params params = llama;
    params.tied = p->tied;
    return dt_nn_llama(mesh, &params);
}

static void write_index(const published *p, const shard *shards)
{
    char path[FOLDER_PATH + 64];
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", p->folder);
    FILE *file = fopen(path, "w");
    if (!expect(file != NULL, "%s", path)) return;
    fprintf(file, "{\n  \"metadata\": {\n    \"total_size\": 1.5e3, \"more\": [null, true]\n  },\n  \"weight_map\": {");
    const char *comma = "";
    for (int s = 0; s < p->shards; s++)
        for (int i = 0; i < shards[s].count; i++, comma = ",")
            fprintf(file, "%s\n    \"%s\": \"model-%05d-of-%05d.safetensors\"", comma, shards[s].names[i], s + 1,
                    p->shards);
    fprintf(file, "\n  }\n}\n");
    expect(fclose(file) == 0, "%s", path);
}

/* On one rank: a model's values to files, as they would be published, and what they add up to once rounded. */
static dt_status publish(dt_context *ctx, void *arg)
{
    published *p = arg;
    shard *shards = calloc((size_t)p->shards, sizeof *shards);
    dt_module *m = model_of(dt_mesh_create(ctx, "x"), p);
    dt_module_materialize(m, 5);
    dt_tensor *params[MOST];
    int n = dt_module_params(m, NULL, params, MOST);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    for (int i = 0; i < n && shards; i++) {
        char name[96] = "";
        foreign_name(p->fused ? fused_names : dt_names_llama, dt_names_llama_count, dt_param_path(params[i]), name);
        shard *s = &shards[i * p->shards / n];
        if (i && p->fused && shards[(i - 1) * p->shards / n].count) { /* one tensor is in one file                    */
            shard *before = &shards[(i - 1) * p->shards / n];
            if (strcmp(before->names[before->count - 1], name) == 0) s = before;
        }
        shard_add(s, name, params[i], p->dtype);
        dt_tensor *rounded = dt_cast(dt_cast(params[i], p->dtype), DT_F32);
        p->sums[i] = dt_tensor_checksum(rounded);
    }
    dt_scope_pop(ctx, scope, NULL);
    for (int s = 0; s < p->shards && shards; s++) {
        char path[FOLDER_PATH + 64];
        snprintf(path, sizeof path, "%s/model-%05d-of-%05d.safetensors", p->folder, s + 1, p->shards);
        if (p->shards == 1) snprintf(path, sizeof path, "%s/model.safetensors", p->folder);
        shard_write(&shards[s], path);
    }
    if (p->index) write_index(p, shards);
    for (int s = 0; s < p->shards && shards; s++) free(shards[s].bytes);
    free(shards);
    return dt_context_status(ctx);
}

static dt_status load_published(dt_context *ctx, void *arg)
{
    const published *p = arg;
    dt_module *m = model_of(dt_mesh_create(ctx, "x"), p);
    dt_tensor *params[MOST];
    int n = dt_module_params(m, NULL, params, MOST);
    for (int i = 0; i < n; i++)
        if (dt_spec_shape(dt_tensor_spec(params[i])).n == 2 || strstr(p->placements, "S(0)"))
            dti_param_store(dti_param_of(params[i]), dt_spec_replace(dt_tensor_spec(params[i]), p->placements));
    expect(dt_weights_load(m, p->folder, p->fused ? fused_names : dt_names_llama, dt_names_llama_count) == DT_OK, "%s",
           dt_context_error(ctx));
    for (int i = 0; i < n; i++)
        expect(dt_tensor_checksum(params[i]) == p->sums[i], "%s as %s", dt_param_path(params[i]),
               dt_spec_text(dt_tensor_spec(params[i])));
    return dt_context_status(ctx);
}

static void published_models(void)
{
    static const published cases[] = {
        { .shards = 1, .dtype = DT_F32 }, { .shards = 1, .dtype = DT_BF16, .tied = true },
        { .shards = 3, .dtype = DT_F32, .index = true },
        { .shards = 3, .dtype = DT_F16 }, { .shards = 1, .dtype = DT_F32, .fused = true },
        { .shards = 4, .dtype = DT_BF16, .fused = true, .index = true },
        { .shards = 2, .dtype = DT_F64, .fused = true },
    };
    static const char *const placements[] = { "", "x:S(0)", "x:S(1)" };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        folder f = folder_new();
        published p = cases[i];
        p.folder = f.path;
        launch(1, publish, &p);
        for (int ranks = 1; ranks <= 4; ranks++) {
            p.placements = placements[(i + ranks) % DT_COUNT(placements)];
            launch(ranks, load_published, &p);
        }
        folder_remove(&f);
    }
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *path;              /* in the folder; NULL: the folder                                              */
    bag_row row;                   /* of the only parameter                                                        */
    const dt_name_row *names;
    int n;
    dt_status status;
    const char *error;
} refusal;

typedef struct refusing { const char *folder; const refusal *rows; int n; } refusing;

static dt_status refuse_all(dt_context *ctx, void *arg)
{
    const refusing *r = arg;
    dt_mesh *mesh = dt_mesh_create(ctx, "x");
    for (int i = 0; i < r->n; i++) {
        const refusal *row = &r->rows[i];
        char path[FOLDER_PATH + 64];
        snprintf(path, sizeof path, "%s%s%s", r->folder, row->path ? "/" : "", row->path ? row->path : "");
        dt_module *m = dt_module_create(mesh, &bag_type, &(bag){ &row->row, 1 });
        expect(dt_weights_load(m, path, row->names, row->n) == row->status, "%s: %s", row->error,
               dt_context_error(ctx));
        expect_error(ctx, row->status, row->error, path);
        expect(dt_tensor_data(param_of(m, row->row.name)) == NULL, "%s: the parameter stays without values",
               row->error);
    }
    expect(dt_tensor_item(dt_sum(dt_full(dt_spec_parse(mesh, "f32[6]"), 2), DT_ALL, false)) == 12,
           "ranks go on together");
    return dt_context_status(ctx);
}

static void refused(void)
{
    static const dt_name_row more[] = { { "half", "model.#" } }, torn[] = { { "half", NULL } },
        other[] = { { "x", "y" } };
    static const dt_name_row half[] = { { "half", "model.half" } };
    const bag_row whole = { "half", DT_F16, DT_SHAPE(4), "" }, cut = { "half", DT_F16, DT_SHAPE(4), "x:S(0)" };
    const refusal rows[] = {
        { "missing", whole, half, 1, DT_ERR_IO, "No such file" },
        { "empty", whole, half, 1, DT_ERR_IO, "has no safetensors file" },
        { "good.safetensors", whole, more, 1, DT_ERR_ARG, "more \"#\" than \"half\"" },
        { "good.safetensors", whole, torn, 1, DT_ERR_ARG, "row 0 of the names is not whole" },
        { "good.safetensors", whole, other, 1, DT_ERR_ARG, "no row of the names has half" },
        { "good.safetensors", whole, NULL, 0, DT_ERR_ARG, "has no half" },
        { "good.safetensors", { "half", DT_F16, DT_SHAPE(5), "" }, half, 1, DT_ERR_SHAPE,
          "is [4], and half is f16[5]" },
        { "good.safetensors", { "half", DT_F16, DT_SHAPE(4, 1), "" }, half, 1, DT_ERR_SHAPE, "is [4]" },
        { "good.safetensors", { "position_ids", DT_F32, DT_SHAPE(1, 3), "" }, NULL, 0, DT_ERR_DTYPE, "is I64" },
        { "good.safetensors", { "flags", DT_F32, DT_SHAPE(2), "" }, NULL, 0, DT_ERR_DTYPE, "is BOOL" },
        { "good.safetensors", { "half", DT_F16, DT_SHAPE(4), "x:P" }, half, 1, DT_ERR_PLACEMENT, "expected no P" },
        { "short.safetensors", cut, half, 1, DT_ERR_IO, "it is cut off" },
        { "head.safetensors", cut, half, 1, DT_ERR_IO, "it is cut off" },
        { "tiny.safetensors", cut, half, 1, DT_ERR_IO, "at least 8 bytes" },
        { "lying.safetensors", cut, half, 1, DT_ERR_IO, "at most 100000000" },
        { NULL, cut, half, 1, DT_ERR_IO, "header" },
        { "twice", cut, half, 1, DT_ERR_IO, "model.half is in" },
        { "map", cut, half, 1, DT_ERR_IO, "No such file" },
        { "bad-map", cut, half, 1, DT_ERR_IO, "the name of a file beside it" },
        { "no-map", cut, half, 1, DT_ERR_IO, "has no weight_map" },
        { "", cut, half, -1, DT_ERR_ARG, "-1 names" },
    };
    static const char *const folders[] = { "empty", "twice", "map", "bad-map", "no-map" };
    static const struct { const char *name; size_t n; } files[] = {
        { "good.safetensors", sizeof fixture }, { "short.safetensors", sizeof fixture - 1 },
        { "head.safetensors", 100 },
        { "tiny.safetensors", 7 }, { "twice/a.safetensors", sizeof fixture }, { "twice/b.safetensors", sizeof fixture },
    };
    static const struct { const char *name, *text; } texts[] = {
        { "map/model.safetensors.index.json", "{\"weight_map\":{\"model.half\":\"gone.safetensors\"}}" },
        { "bad-map/model.safetensors.index.json", "{\"weight_map\":{\"model.half\":\"../good.safetensors\"}}" },
        { "no-map/model.safetensors.index.json", "{\"metadata\":{}}" },
    };
    folder f = folder_new();
    char path[FOLDER_PATH];
    for (int i = 0; i < DT_COUNT(folders); i++) {
        folder_path(path, &f, folders[i]);
        expect(mkdir(path, 0777) == 0, "%s", path);
    }
    for (int i = 0; i < DT_COUNT(files); i++) {
        folder_path(path, &f, files[i].name);
        write_bytes(path, fixture, files[i].n);
    }
    for (int i = 0; i < DT_COUNT(texts); i++) {
        folder_path(path, &f, texts[i].name);
        write_bytes(path, texts[i].text, strlen(texts[i].text));
    }
    folder_path(path, &f, "lying.safetensors");
    write_bytes(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    launch(1, refuse_all, &(refusing){ f.path, rows, 1 });
    launch(3, refuse_all, &(refusing){ f.path, rows, DT_COUNT(rows) });
    folder_remove(&f);
}

static const test_row rows[] = {
    { "a_file_of_the_package", a_file_of_the_package },
    { "published_models", published_models },
    { "refused", refused },
};

const suite the_suite = { "weights", rows, DT_COUNT(rows) };
