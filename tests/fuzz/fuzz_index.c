/* SPDX-License-Identifier: Apache-2.0
 *
 * Indices of checkpoints, and any JSON, from any bytes. A checksum that is right is put behind an index first, so that
 * what it says is looked at. What is read keeps its promises and is written and read again the same. */
#include "fuzz.h"

#include "train/disk.h"
#include "train/index.h"
#include "train/json.h"

static void put_index(dti_pen *pen, const void *arg) { dti_index_put(pen, arg); }

static void same_again(const dti_index *index)
{
    dti_told told = { DT_OK, "" };
    dti_index again;
    char *text = dti_written(put_index, index), *twice = NULL;
    fuzz_demand(text != NULL, "memory");
    fuzz_demand(dti_index_read(text, (int64_t)strlen(text), "again", &again, &told), told.text);
    twice = dti_written(put_index, &again);
    fuzz_demand(twice && strcmp(text, twice) == 0, "the same text again");
    dti_index_fini(&again);
    free(text);
    free(twice);
}

static void try_index(const dti_index *index)
{
    for (const dti_index_tensor *t = index->tensors; t; t = t->next) {
        int64_t elements = 0, all = 1;
        for (int d = 0; d < t->shape.n; d++) all *= t->shape.dim[d];
        for (const dti_index_box *box = t->boxes; box; box = box->next) {
            int64_t n = 1;
            for (int d = 0; d < t->shape.n; d++) n *= box->box.hi[d] - box->box.lo[d];
            fuzz_demand(box->file >= 0 && box->file < index->file_count, "a box in a file");
            int64_t bytes = index->file_at[box->file]->bytes;
            fuzz_demand(n > 0 && box->at + n * (int64_t)dt_dtype_bytes(t->dtype) <= bytes, "within it");
            elements += n;
        }
        fuzz_demand(elements == all && dti_index_find(index, t->name) == t, "all of a tensor");
    }
    same_again(index);
}

static void try_json(const uint8_t *data, size_t size)
{
    dti_arena arena = { 0 };
    dti_told told = { DT_OK, "" };
    const char *string = NULL;
    dti_json json = dti_json_open((const char *)data, size, &arena);
    bool ok = dti_json_peek(&json) == '"' ? dti_json_string(&json, &string) : dti_json_skip(&json);
    ok = ok && dti_json_end(&json);
    fuzz_demand(dti_json_tell(&json, "text", &told) == ok, "a value or an error");
    fuzz_demand(!ok || !string || strlen(string) <= size, "no more bytes than it has");
    dti_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 64);
    dti_told told = { DT_OK, "" };
    dti_index index;
    fuzz_demand(text != NULL, "memory");
    if (size) memcpy(text, data, size);
    int n = snprintf(text + size, 64, ",\"sum\":\"%016llx\"}\n", (unsigned long long)dti_block_sum(text, size, 1));
    bool ok = dti_index_read(text, (int64_t)size + n, "index", &index, &told);
    fuzz_demand(ok == (told.status == DT_OK) && ok == (told.text[0] == '\0'), "an index or an error");
    if (ok) {
        try_index(&index);
        dti_index_fini(&index);
    }
    free(text);
    try_json(data, size);
    return 0;
}
