/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences, and how ranks tell them to each other: by numbers on a mesh, as any tensor. */
#include "train/told.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

DT_PRINTF(3, 0)
static bool tell(dti_told *told, dt_status status, const char *format, va_list args)
{
    if (told->status) return false;
    told->status = status;
    vsnprintf(told->text, sizeof told->text, format, args);
    return false;
}

bool dti_tell(dti_told *told, dt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(told, status, format, args);
    va_end(args);
    return false;
}

/* strerror is not for threads; this one writes what it says to memory of ours. */
static void add_errno(dti_told *told, int error)
{
    char reason[128] = "";
    if (strerror_r(error, reason, sizeof reason)) snprintf(reason, sizeof reason, "error %d", error);
    size_t n = strlen(told->text);
    snprintf(told->text + n, sizeof told->text - n, ": %s", reason);
}

bool dti_tell_errno(dti_told *told, const char *format, ...)
{
    int error = errno;
    if (told->status) return false;
    va_list args;
    va_start(args, format);
    tell(told, DT_ERR_IO, format, args);
    va_end(args);
    add_errno(told, error);
    return false;
}

/* ---- between ranks ----------------------------------------------------------------------------------------------- */

static const dt_spec *row_spec(dt_mesh *mesh, int64_t n, bool whole)
{
    dti_form form;
    memset(&form, 0, sizeof form);
    form.dtype = DT_I64;
    form.dim_count = 2;
    for (int d = 1; d <= 2; d++) form.factor_first[d] = d;
    form.size[0] = mesh->size;
    form.size[1] = n;
    int splits = 0;
    for (int d = 0; d < mesh->dim_count && !whole; d++)
        if (mesh->dims[d].size > 1) form.split[splits++] = (int8_t)d;
    form.split_first[1] = form.split_first[2] = (int8_t)splits;
    return dti_spec_intern(mesh, &form);
}

bool dti_ranks_gather(dt_mesh *mesh, const int64_t *mine, int64_t n, int64_t *all)
{
    dt_context *ctx = mesh->ctx;
    if (ctx->dry || mesh->rank < 0) return !dti_failed(ctx);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    const dt_spec *parts = row_spec(mesh, n, false), *whole = parts ? row_spec(mesh, n, true) : NULL;
    dti_storage *storage = NULL;
    bool ok = whole && dti_part_new(parts, &storage);
    if (ok && n) memcpy(storage->bytes, mine, (size_t)n * sizeof *mine);
    dt_tensor *x = ok ? dti_tensor_new(parts, storage) : NULL, *y = x ? dti_tensor_to(x, whole) : NULL;
    if (y && n) memcpy(all, y->storage->bytes, (size_t)(mesh->size * n) * sizeof *all);
    dt_scope_pop(ctx, scope, NULL);
    return y != NULL;
}

bool dti_ranks_broadcast(dt_mesh *mesh, int root, void *bytes, int64_t n)
{
    dt_context *ctx = mesh->ctx;
    if (ctx->dry || mesh->rank < 0 || mesh->size == 1) return !dti_failed(ctx);
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    const dt_spec *spec = dt_spec_create(mesh, DT_U8, DT_SHAPE(n), NULL);
    dt_tensor *x = dt_from_host(spec, dt_mesh_rank(mesh, root), bytes, (size_t)n);
    if (x && n && mesh->rank != root) memcpy(bytes, x->storage->bytes, (size_t)n);
    dt_scope_pop(ctx, scope, NULL);
    return x != NULL;
}

/* The first rank that has something to tell; -1: none; -2: the error. */
static int first_to_tell(dt_mesh *mesh, dt_status mine)
{
    int64_t status = mine, *all = dti_context_borrow(mesh->ctx, (size_t)mesh->size * sizeof *all);
    int first = all && dti_ranks_gather(mesh, &status, 1, all) ? -1 : -2;
    for (int r = mesh->size - 1; r >= 0 && first != -2; r--)
        if (all[r]) first = r;
    dti_context_give(mesh->ctx, all, (size_t)mesh->size * sizeof *all);
    return first;
}

bool dti_told_agree(dt_mesh *mesh, const dti_told *told)
{
    dt_context *ctx = mesh->ctx;
    if (dti_failed(ctx)) return false;
    if (ctx->dry || mesh->rank < 0) return true;
    int first = first_to_tell(mesh, told->status);
    if (first < 0) return first == -1;
    dti_told heard = *told;
    if (!dti_ranks_broadcast(mesh, first, &heard, sizeof heard)) return false;
    if (mesh->size == 1) dti_fail(ctx, heard.status, "%s", heard.text);
    else dti_fail(ctx, heard.status, "rank %d: %s", dt_mesh_rank(mesh, first), heard.text);
    return false;
}
