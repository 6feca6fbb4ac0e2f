/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of safetensors files, and their first eight bytes, from any bytes: the first of them choose what the file has
 * behind its header. What is read is a whole file: places in order, nothing left out, and written again it is read the
 * same; what is not is refused with a sentence. */
#include "fuzz.h"

#include "train/safetensors.h"

static void same_again(const dti_safetensors *read, int64_t data)
{
    char *text = NULL;
    dti_told told = { DT_OK, "" };
    dti_safetensors again;
    dti_st_tensor *tensors = calloc((size_t)read->n + 1, sizeof *tensors);
    fuzz_demand(tensors != NULL, "memory");
    for (int i = 0; i < read->n; i++) {
        tensors[i] = *read->tensors[i];
        if (tensors[i].dims > DT_MAX_DIMS) data = -1;      /* of such a shape nothing is kept                      */
    }
    dti_pen measure = { NULL, 0, 0 };
    dti_safetensors_put(&measure, tensors, read->n);
    text = malloc(measure.at + 1);
    fuzz_demand(text != NULL, "memory");
    dti_safetensors_put(&(dti_pen){ text, measure.at + 1, 0 }, tensors, read->n);
    if (data >= 0) {
        fuzz_demand(dti_safetensors_read(text, (int64_t)measure.at, data, "again", &again, &told), told.text);
        fuzz_demand(again.n == read->n, "as many tensors");
        dti_safetensors_fini(&again);
    }
    free(text);
    free(tensors);
}

static void try_header(const dti_safetensors *read, int64_t data)
{
    int64_t at = 0;
    for (int i = 0; i < read->n; i++) {
        const dti_st_tensor *t = read->tensors[i];
        fuzz_demand(t->begin == at && t->end >= t->begin, "places in order");
        fuzz_demand(dti_safetensors_find(read, t->name) == t, "found by name");
        at = t->end;
    }
    fuzz_demand(at == data, "nothing left out");
    same_again(read, data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    int64_t bytes = data[0] | (int64_t)data[1] << 8;
    dti_told told = { DT_OK, "" };
    dti_safetensors read;
    char *text = malloc(size);
    fuzz_demand(text != NULL, "memory");
    memcpy(text, data + 2, size - 2);                      /* no more than there is: what reads on is seen         */
    bool ok = dti_safetensors_read(text, (int64_t)size - 2, bytes, "file", &read, &told);
    fuzz_demand(ok == (told.status == DT_OK) && ok == (told.text[0] == '\0'), "a header or an error");
    if (ok) {
        try_header(&read, bytes);
        dti_safetensors_fini(&read);
    }
    memset(&told, 0, sizeof told);
    int64_t length = size >= 10 ? dti_safetensors_length(text, bytes + 8, "file", &told) : 0;
    fuzz_demand(length <= bytes && (length >= 0) == (told.status == DT_OK), "a length within the file, or an error");
    free(text);
    return 0;
}
