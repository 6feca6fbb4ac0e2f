/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and ending a context, its first error, its clock. It knows no upper layer but as a slot with a fini; runs of
 * many ranks are made elsewhere. Invariant: error is "" exactly while status is DT_OK. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/parts.h"

/* ---- making contexts ------------------------------------------------------------------------------------------- */

dt_context *dti_context_new(int rank, int n, bool dry)
{
    dt_context *ctx = n >= 1 ? calloc(1, sizeof *ctx) : NULL;
    if (!ctx) return NULL;
    ctx->rank = rank;
    ctx->rank_count = n;
    ctx->dry = dry;
    if (!dti_scopes_init(ctx) || !dti_options_init(ctx)) {
        dt_context_destroy(&ctx);
        return NULL;
    }
    dti_log_setup(ctx);
    return ctx;
}

dt_context *dt_context_dry(int n) { return dti_context_new(0, n, true); }

void dt_context_destroy(dt_context **ctx)
{
    if (!ctx || !*ctx) return;
    dt_context *ended = *ctx;
    *ctx = NULL;
    dti_scopes_fini(ended);
    for (int i = DTI_LAYER_COUNT - 1; i >= 0; i--)
        if (ended->layers[i].state && ended->layers[i].fini) ended->layers[i].fini(ended->layers[i].state);
    dti_options_fini(ended);
    dti_arena_fini(&ended->arena);
    free(ended);
}

int dt_rank(const dt_context *ctx) { return ctx ? ctx->rank : 0; }

int dt_rank_count(const dt_context *ctx) { return ctx ? ctx->rank_count : 0; }

/* ---- memory ---------------------------------------------------------------------------------------------------- */

void dti_context_lacks(dt_context *ctx, size_t bytes)
{
    dti_fail(ctx, DT_ERR_MEMORY, "out of memory: asked for %zu bytes, the context holds %zu", bytes, ctx->arena.total);
}

void *dti_context_take(dt_context *ctx, size_t bytes)
{
    void *taken = dti_arena_take(&ctx->arena, bytes);
    if (!taken) dti_context_lacks(ctx, bytes);
    return taken;
}

void *dti_context_borrow_zeros(dt_context *ctx, size_t bytes)
{
    void *object = dti_context_borrow(ctx, bytes);
    return object ? memset(object, 0, bytes) : NULL;
}

void *dti_context_layer_new(dt_context *ctx, dti_layer layer, size_t bytes, void (*fini)(void *state))
{
    dti_layer_state *slot = &ctx->layers[layer];
    *slot = (dti_layer_state){ dti_context_take(ctx, bytes), fini };
    return slot->state;
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

dt_status dt_context_status(const dt_context *ctx) { return ctx ? ctx->status : DT_ERR_ARG; }

const char *dt_context_error(const dt_context *ctx) { return ctx ? ctx->error : "there is no context"; }

dt_status dt_context_clear(dt_context *ctx)
{
    if (!ctx) return DT_ERR_ARG;
    if (ctx->status != DT_OK && ctx->peers.comm) {
        dt_status refused = ctx->peers.cleared(ctx->peers.comm);
        if (refused) return refused;
    }
    ctx->status = DT_OK;
    ctx->error[0] = '\0';
    ctx->usage = false;
    return DT_OK;
}

/* Whose function runs, in at most half of the room: how many characters. */
static size_t put_inside(dt_context *ctx)
{
    size_t half = sizeof ctx->error / 2;
    int n = ctx->inside ? snprintf(ctx->error, half, "%s: ", ctx->inside) : 0;
    return n < 0 ? 0 : (size_t)n < half ? (size_t)n : half - 1;
}

DT_PRINTF(3, 0)
static dt_status fail(dt_context *ctx, dt_status status, const char *format, va_list args)
{
    if (dti_failed(ctx) || status == DT_OK) return status;
    size_t at = put_inside(ctx);
    dti_line(ctx->error + at, sizeof ctx->error - at, format, args);
    if (ctx->error[at] == '\0') snprintf(ctx->error + at, sizeof ctx->error - at, "%s", dt_status_text(status));
    ctx->status = status;
    if (ctx->peers.comm) ctx->peers.failed(ctx->peers.comm);
    dti_notify(ctx, &(dt_event){ .kind = DT_EVENT_ERROR, .status = status, .text = ctx->error });
    return status;
}

dt_status dti_fail(dt_context *ctx, dt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = fail(ctx, status, format, args);
    va_end(args);
    return status;
}

dt_status dt_context_fail(dt_context *ctx, dt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = fail(ctx, status, format, args);
    va_end(args);
    return status;
}

/* ---- steps, time, printing ------------------------------------------------------------------------------------- */

/* No context has a device yet: there is nothing to wait for. */
dt_status dt_context_sync(dt_context *ctx) { return dt_context_status(ctx); }

dt_status dt_context_step(dt_context *ctx, int64_t step, int micro_batch)
{
    if (dti_failed(ctx)) return dt_context_status(ctx);
    if (step < 0 || micro_batch < 0)
        return dti_fail(ctx, DT_ERR_ARG, "step %lld, micro-batch %d: expected numbers of at least 0", (long long)step,
                        micro_batch);
    ctx->step = step;
    ctx->micro_batch = micro_batch;
    return DT_OK;
}

static double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double dt_context_time(const dt_context *ctx)
{
    if (!ctx) return 0;
    dti_context_settle(ctx);
    return ctx->dry ? ctx->time : clock_seconds();
}

void dt_print(dt_context *ctx, const char *format, ...)
{
    va_list args;
    if (dti_failed(ctx) || ctx->rank != 0) return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

/* ---- counters -------------------------------------------------------------------------------------------------- */

static const char *const comm_kinds[DT_COMM_KIND_COUNT] = {
    [DT_COMM_ALL_GATHER] = "all_gather",
    [DT_COMM_REDUCE_SCATTER] = "reduce_scatter",
    [DT_COMM_ALL_REDUCE] = "all_reduce",
    [DT_COMM_ALL_TO_ALL] = "all_to_all",
    [DT_COMM_PERMUTE] = "permute",
    [DT_COMM_BROADCAST] = "broadcast",
    [DT_COMM_EXCHANGE] = "exchange",
    [DT_COMM_SEND] = "send",
    [DT_COMM_LOCAL] = "local",
};

const char *dt_comm_kind_text(dt_comm_kind kind)
{
    return (unsigned)kind < DT_COMM_KIND_COUNT ? comm_kinds[kind] : "?";
}
