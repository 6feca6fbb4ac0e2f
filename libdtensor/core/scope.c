/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of open scopes and the handles that end with them. It does not know what a handle is; the scope's flags are
 * read by the layers above. Invariant: a handle is in the list of exactly one open scope, or its slot is NULL. */
#include <limits.h>
#include <stdlib.h>

#include "core/parts.h"

enum { FIRST_CAPACITY = 8 };

static const unsigned known_flags = DT_SCOPE_NO_GRAD | DT_SCOPE_STRICT | DT_SCOPE_NO_REDUCE | DT_SCOPE_KEEP_GATHERED;

static dti_scope *innermost(const dt_context *ctx) { return &ctx->scopes[ctx->scope_count - 1]; }

unsigned dti_scope_flags(const dt_context *ctx) { return innermost(ctx)->flags; }

void dti_scope_drop_flags(dt_context *ctx, unsigned flags) { innermost(ctx)->flags &= ~flags; }

/* ---- handles --------------------------------------------------------------------------------------------------- */

static void own(dti_scope *scope, dti_handle *handle)
{
    dti_handle **slot = &scope->handles;
    handle->next = *slot;
    handle->slot = slot;
    if (handle->next) handle->next->slot = &handle->next;
    *slot = handle;
}

void dti_scope_own(dt_context *ctx, dti_handle *handle) { own(innermost(ctx), handle); }

void dti_scope_keep(dt_context *ctx, dti_handle *handle)
{
    int scope = ctx->scope_count - 1;
    for (; scope > 0; scope--) {
        const dti_handle *at = ctx->scopes[scope].handles;
        while (at && at != handle) at = at->next;
        if (at) break;
    }
    if (scope == 0 || !handle->slot) return;
    dti_scope_disown(handle);
    own(&ctx->scopes[scope - 1], handle);
}

void dti_scope_disown(dti_handle *handle)
{
    if (!handle->slot) return;
    *handle->slot = handle->next;
    if (handle->next) handle->next->slot = handle->slot;
    handle->next = NULL;
    handle->slot = NULL;
}

/* End the innermost scope, newest handle first. true: keep was one of its handles, and now belongs to none. What a
 * destroy makes falls to the same scope and ends too. */
static bool end_innermost(dt_context *ctx, const dti_handle *keep)
{
    bool kept = false;
    dti_handle *handle;
    while ((handle = innermost(ctx)->handles) != NULL) {
        dti_scope_disown(handle);
        if (handle == keep) kept = true;
        else handle->destroy(handle);
    }
    ctx->scope_count--;
    return kept;
}

/* ---- the stack ------------------------------------------------------------------------------------------------- */

bool dti_scopes_init(dt_context *ctx)
{
    ctx->scopes = calloc(FIRST_CAPACITY, sizeof *ctx->scopes);
    if (!ctx->scopes) return false;
    ctx->scope_capacity = FIRST_CAPACITY;
    ctx->scope_count = 1;
    ctx->scope_next = 1;
    return true;
}

void dti_scopes_fini(dt_context *ctx)
{
    while (ctx->scope_count) end_innermost(ctx, NULL);
    free(ctx->scopes);
    ctx->scopes = NULL;
}

static bool grow(dt_context *ctx)
{
    if (ctx->scope_capacity > INT_MAX / 2) return false;
    int capacity = 2 * ctx->scope_capacity;
    dti_scope *scopes = realloc(ctx->scopes, (size_t)capacity * sizeof *scopes);
    if (!scopes) return false;
    ctx->scopes = scopes;
    ctx->scope_capacity = capacity;
    for (int i = 0; i < ctx->scope_count; i++) /* the lists begin in the array that moved */
        if (scopes[i].handles) scopes[i].handles->slot = &scopes[i].handles;
    return true;
}

/* Where an open scope of this name stands; 0, which has no name for users, for none. */
static int find(const dt_context *ctx, int name)
{
    int at = ctx->scope_count - 1;
    while (at > 0 && ctx->scopes[at].name != name) at--;
    return at;
}

/* After INT_MAX names begin again at 1; those of scopes still open are passed over. */
static int next_name(dt_context *ctx)
{
    int name;
    do {
        name = ctx->scope_next;
        ctx->scope_next = name < INT_MAX ? name + 1 : 1;
    } while (find(ctx, name));
    return name;
}

int dt_scope_push(dt_context *ctx, unsigned flags)
{
    if (!ctx) return 0;
    if (!dti_failed(ctx) && (flags & ~known_flags)) {
        dti_fail(ctx, DT_ERR_ARG, "scope flags 0x%x: expected a sum of the DT_SCOPE_* values, 0x%x is none", flags,
                 flags & ~known_flags);
        return 0;
    }
    if (ctx->scope_count == ctx->scope_capacity && !grow(ctx)) {
        dti_fail(ctx, DT_ERR_MEMORY, "out of memory for scope %d", ctx->scope_count);
        return 0;
    }
    int name = next_name(ctx);
    flags = (flags & known_flags) | dti_scope_flags(ctx);
    ctx->scopes[ctx->scope_count++] = (dti_scope){ .flags = flags, .name = name };
    return name;
}

dt_tensor *dt_scope_pop(dt_context *ctx, int scope, dt_tensor *keep)
{
    int at = ctx ? find(ctx, scope) : 0;
    dti_handle *handle = (dti_handle *)keep; /* a dt_tensor begins with one */
    bool kept = false;
    if (at == 0) return keep;
    while (ctx->scope_count > at)
        if (end_innermost(ctx, handle)) kept = true;
    if (kept) dti_scope_own(ctx, handle);
    return keep;
}
