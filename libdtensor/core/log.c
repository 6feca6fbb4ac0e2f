/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages and events: who hears what the library does. Nothing here decides or changes anything.
 * Invariant: a logger gets one line at a time, without a newline, and none above its level. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/parts.h"

static const char *const level_names[DT_LOG_LEVEL_COUNT] = {
    [DT_LOG_NONE] = "none",
    [DT_LOG_WARNING] = "warning",
    [DT_LOG_INFO] = "info",
    [DT_LOG_DEBUG] = "debug",
};

static const char level_notation[] = "none, warning, info or debug";

/* ---- one line -------------------------------------------------------------------------------------------------- */

/* End a line that was cut with "...", not in the middle of a UTF-8 character. */
static void mark_cut(char *line, size_t bytes)
{
    size_t end = bytes - sizeof "...";
    while (end > 0 && ((unsigned char)line[end] & 0xc0) == 0x80) end--;
    memcpy(line + end, "...", sizeof "...");
}

void dti_line(char *line, size_t bytes, const char *format, va_list args)
{
    int n = vsnprintf(line, bytes, format, args);
    if (n < 0) line[0] = '\0';
    else if ((size_t)n >= bytes) mark_cut(line, bytes);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
}

/* ---- the logger ------------------------------------------------------------------------------------------------ */

bool dti_log_setup(dt_context *ctx)
{
    const char *text = dti_option_value(ctx, DTI_OPTION_LOG);
    for (int i = 0; i < DT_LOG_LEVEL_COUNT; i++)
        if (strcmp(text, level_names[i]) == 0) {
            ctx->log_level = (dt_log_level)i;
            return true;
        }
    dti_option_refuse(ctx, DTI_OPTION_LOG, level_notation);
    return false;
}

void dt_context_logger(dt_context *ctx, dt_log_level level, dt_log_fn fn, void *arg)
{
    if (!ctx) return;
    if ((unsigned)level >= DT_LOG_LEVEL_COUNT) {
        dti_fail(ctx, DT_ERR_ARG, "log level %d: expected %s", (int)level, level_notation);
        return;
    }
    ctx->log_level = level;
    ctx->log_fn = fn;
    ctx->log_arg = arg;
}

void dti_log(dt_context *ctx, dt_log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    if (!ctx || level == DT_LOG_NONE || level > ctx->log_level) return;
    va_start(args, format);
    dti_line(line, sizeof line, format, args);
    va_end(args);
    if (ctx->log_fn) ctx->log_fn(level, line, ctx->log_arg);
    else fprintf(stderr, "dtensor %s, rank %d: %s\n", level_names[level], ctx->rank, line);
}

/* ---- observers ------------------------------------------------------------------------------------------------- */

dt_status dt_context_observe(dt_context *ctx, dt_event_fn fn, void *arg)
{
    if (dti_failed(ctx)) return dt_context_status(ctx);
    if (!fn) return dti_fail(ctx, DT_ERR_ARG, "observer: expected a function, got NULL");
    if (ctx->observer_count == DT_MAX_OBSERVERS)
        return dti_fail(ctx, DT_ERR_STATE, "a context has at most %d observers", (int)DT_MAX_OBSERVERS);
    ctx->observers[ctx->observer_count].fn = fn;
    ctx->observers[ctx->observer_count++].arg = arg;
    return DT_OK;
}

void dti_notify(dt_context *ctx, const dt_event *event)
{
    for (int i = 0; i < ctx->observer_count; i++) ctx->observers[i].fn(event, ctx->observers[i].arg);
}
