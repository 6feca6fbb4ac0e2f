/* SPDX-License-Identifier: Apache-2.0
 *
 * Text, and batches of it. All bytes are on every rank; a rank copies what its parts of a batch have. Which files there
 * are, files.c says. Invariant: where a sequence begins is a function of text, bounds, seed, step and its number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/data.h>

#include "core/number.h"
#include "tensor/random.h"
#include "tensor/tensor.h"
#include "train/files.h"

struct dt_text {
    dti_handle handle;             /* first: of its scope                                                          */
    dt_context *ctx;
    dti_bytes bytes;
};

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void destroy(dti_handle *handle)
{
    dt_text *text = (dt_text *)(void *)handle;
    free(text->bytes.at);
    dti_context_give(text->ctx, text, sizeof *text);
}

static dt_text *text_new(dt_context *ctx)
{
    dt_text *text = dti_context_borrow_zeros(ctx, sizeof *text);
    if (!text) return NULL;
    text->handle.destroy = destroy;
    text->ctx = ctx;
    dti_scope_own(ctx, &text->handle);
    return text;
}

dt_text *dt_text_from_bytes(dt_context *ctx, const void *bytes, size_t n)
{
    if (dti_failed(ctx)) return NULL;
    if (!bytes || !n) return dti_fail(ctx, DT_ERR_ARG, "dt_text_from_bytes: no bytes"), NULL;
    dt_text *text = text_new(ctx);
    return text && dti_bytes_add(ctx, &text->bytes, bytes, n) ? text : NULL;
}

/* ---- opened ------------------------------------------------------------------------------------------------------ */

/* Have all ranks read the same? Each adds its checksum; where one differs the sum is no multiple of any. */
static bool agree(const dt_text *text, const char *path)
{
    dt_context *ctx = text->ctx;
    char ranks[32];
    snprintf(ranks, sizeof ranks, "ranks=%d", ctx->rank_count);
    dt_mesh *mesh = dt_mesh_create(ctx, ranks);
    uint64_t own = dti_hash(text->bytes.at, text->bytes.n, 0);
    int64_t sum;
    if (!mesh || !dti_ranks_sum(mesh, (int64_t)own, &sum)) return false;
    if (ctx->dry || (uint64_t)sum == own * (uint64_t)ctx->rank_count) return true;
    dti_fail(ctx, DT_ERR_DESYNC, "dt_text_open: %s: ranks read other bytes; here %zu, with checksum %llx", path,
             text->bytes.n, (unsigned long long)own);
    return false;
}

dt_text *dt_text_open(dt_context *ctx, const char *path)
{
    if (dti_failed(ctx)) return NULL;
    if (!path) return dti_fail(ctx, DT_ERR_ARG, "dt_text_open: expected a path, got none"), NULL;
    dt_text *text = text_new(ctx);
    int scope = text ? dt_scope_push(ctx, 0) : 0;
    bool done = scope && dti_files_read(ctx, path, &text->bytes) && agree(text, path);
    if (scope) dt_scope_pop(ctx, scope, NULL);
    return done ? text : NULL;
}

int64_t dt_text_bytes(const dt_text *text) { return text && !dti_failed(text->ctx) ? (int64_t)text->bytes.n : 0; }

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct batch {
    const dt_text *text;
    dt_dtype dtype;
    int64_t first, starts;         /* where a sequence may begin: there, and how many places                       */
    uint64_t seed, step;
    int further;                   /* 0: ids, 1: targets                                                           */
} batch;

static int64_t begin_of(const batch *b, int64_t sequence)
{
    uint64_t word;
    dti_random_uniform(DT_I64, b->seed, b->step, sequence, 1, &word);
    return b->first + (int64_t)(word % (uint64_t)b->starts);
}

static void fill(const dt_box *box, void *values, void *arg)
{
    const batch *b = arg;
    int64_t count = box->hi[1] - box->lo[1];
    char *out = values;
    for (int64_t i = box->lo[0]; i < box->hi[0]; i++) {
        const unsigned char *from = b->text->bytes.at + begin_of(b, i) + box->lo[1] + b->further;
        dti_numbers_convert(DT_U8, from, b->dtype, out, count);
        out += count * (int64_t)dt_dtype_bytes(b->dtype);
    }
}

static bool is_integer(dt_dtype dtype) { return dtype == DT_I64 || dtype == DT_I32 || dtype == DT_U8; }

static bool check_spec(const dt_spec *spec)
{
    if (!is_integer(dt_spec_dtype(spec)))
        return dti_fail(spec->mesh->ctx, DT_ERR_DTYPE, "dt_text_batch: expected integers, i64, i32 or u8, got %s",
                        dt_spec_text(spec)), false;
    if (spec->shape.n == 2) return true;
    dti_fail(spec->mesh->ctx, DT_ERR_SHAPE, "dt_text_batch: expected sequences [b,s], got %s", dt_spec_text(spec));
    return false;
}

static bool check_numbers(dt_context *ctx, double first, double last, int64_t step)
{
    if (!(0 <= first && first < last && last <= 1))
        return dti_fail(ctx, DT_ERR_ARG, "dt_text_batch: expected 0 <= first < last <= 1, got %g and %g", first, last),
               false;
    if (step >= 0) return true;
    dti_fail(ctx, DT_ERR_ARG, "dt_text_batch: expected a step of at least 0, got %lld", (long long)step);
    return false;
}

/* The part of the text, and the places in it from which s + 1 bytes follow. */
static bool bound(batch *b, const dt_spec *spec, double first, double last)
{
    double n = (double)b->text->bytes.n;
    int64_t end = last < 1 ? (int64_t)(last * n) : (int64_t)b->text->bytes.n;
    b->first = (int64_t)(first * n);
    b->starts = end - b->first - spec->shape.dim[1];
    if (b->starts > 0) return true;
    dti_fail(spec->mesh->ctx, DT_ERR_SHAPE, "dt_text_batch: sequences of %s need a part of more than %lld bytes; %g .. "
             "%g of %zu has %lld", dt_spec_text(spec), (long long)spec->shape.dim[1], first, last, b->text->bytes.n,
             (long long)(end - b->first));
    return false;
}

static bool check_given(dt_context *ctx, const dt_text *text, const dt_spec *spec, dt_tensor **ids, dt_tensor **targets)
{
    if (!text || !spec || !ids || !targets)
        return dti_fail(ctx, DT_ERR_ARG, "dt_text_batch: expected %s, got none",
                        !text ? "a text" : !spec ? "a spec" : "room for ids and targets"), false;
    if (text->ctx == spec->mesh->ctx) return true;
    dti_fail(ctx, DT_ERR_ARG, "dt_text_batch: a text and a spec of two contexts");
    return false;
}

dt_status dt_text_batch(const dt_text *text, const dt_spec *spec, double first, double last, uint64_t seed,
                        int64_t step, dt_tensor **ids, dt_tensor **targets)
{
    dt_context *ctx = text ? text->ctx : spec ? spec->mesh->ctx : NULL;
    if (!ctx) return DT_ERR_ARG;
    batch b = { .text = text, .seed = seed, .step = (uint64_t)step };
    if (dti_failed(ctx) || !check_given(ctx, text, spec, ids, targets) || !check_spec(spec)
        || !check_numbers(ctx, first, last, step) || !bound(&b, spec, first, last)) return ctx->status;
    b.dtype = dt_spec_dtype(spec);
    dt_tensor *x = dt_from_fn(spec, fill, &b);
    b.further = 1;
    dt_tensor *y = x ? dt_from_fn(spec, fill, &b) : NULL;
    if (!y) return ctx->status;
    *ids = x;
    *targets = y;
    return DT_OK;
}
