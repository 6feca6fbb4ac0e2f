/* SPDX-License-Identifier: Apache-2.0
 *
 * The window is always full: what is not there yet are zeros behind, which a causal model does not see. So every call
 * is the same call, and its plans are made once. */
#include "generate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

/* Uniform in [0, 1) by counter: the same on every rank. */
static double uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int likeliest(const float *logits)
{
    int best = 0;
    for (int i = 1; i < BYTES; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static int draw(const float *logits, double temperature, double u)
{
    double weight[BYTES], sum = 0;
    int best = likeliest(logits);
    if (temperature <= 0) return best;
    for (int i = 0; i < BYTES; i++) sum += weight[i] = exp((logits[i] - logits[best]) / temperature);
    for (int i = 0; i < BYTES; i++)
        if ((u -= weight[i] / sum) < 0) return i;
    return best;
}

/* Logits behind the last of count bytes. false: the context has failed. */
static bool ask(dt_module *model, const int32_t *window, int size, int count, float *logits)
{
    dt_context *ctx = dt_module_context(model);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    const dt_spec *spec = dt_spec_create(dt_module_mesh(model), DT_I32, DT_SHAPE(1, size), NULL);
    dt_tensor *ids = dt_from_host(spec, -1, window, (size_t)size * sizeof *window);
    dt_tensor *last = dt_select(dt_module_call(model, ids), 1, count - 1);     /* [1, vocab]                       */
    dt_tensor_to_host(dt_cast(last, DT_F32), -1, logits, BYTES * sizeof *logits);
    dt_scope_pop(ctx, scope, NULL);
    return dt_context_status(ctx) == DT_OK;
}

static void show(dt_context *ctx, int byte)
{
    dt_print(ctx, "%c", isprint(byte) || byte == '\n' ? byte : byte == '\t' ? ' ' : '?');
}

static int begin(int32_t *window, int size, const char *prompt)
{
    int length = (int)strlen(prompt), skip = length > size ? length - size : 0, n = 0;
    for (int i = skip; i < length; i++) window[n++] = (unsigned char)prompt[i];
    if (n == 0) window[n++] = '\n';
    return n;
}

dt_status generate(dt_module *model, const char *prompt, int n, int size, double temperature, uint64_t seed)
{
    dt_context *ctx = dt_module_context(model);
    int32_t *window = calloc((size_t)size, sizeof *window);
    float logits[BYTES];
    if (!window) return dt_context_fail(ctx, DT_ERR_MEMORY, "no memory for %d bytes", size);
    int count = begin(window, size, prompt);
    dt_print(ctx, "\n%s", prompt);
    dt_module_train(model, false);
    for (int i = 0; i < n && ask(model, window, size, count, logits); i++) {
        if (count == size) memmove(window, window + 1, (size_t)(--count) * sizeof *window);
        window[count] = draw(logits, temperature, uniform(seed, (uint64_t)i));
        show(ctx, window[count++]);
    }
    dt_print(ctx, "\n");
    dt_module_train(model, true);
    free(window);
    return dt_context_status(ctx);
}
