/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a context, for the library's own layers. The core knows no upper layer: each keeps what it needs in a
 * slot of its own. */
#ifndef DTI_CONTEXT_H
#define DTI_CONTEXT_H

#include <dtensor/context.h>

#include "core/arena.h"
#include "core/pool.h"
#include "core/table.h"

/* ---- layers' own state ------------------------------------------------------------------------------------------ */

typedef enum dti_layer {           /* lower ones first: they end last                                              */
    DTI_LAYER_STORAGE, DTI_LAYER_MESH, DTI_LAYER_SPEC, DTI_LAYER_PLAN, DTI_LAYER_TAPE,
    DTI_LAYER_ROW, DTI_LAYER_OP, DTI_LAYER_MODULE, DTI_LAYER_COUNT
} dti_layer;

typedef struct dti_layer_state { void *state; void (*fini)(void *state); } dti_layer_state;

/* The library's own options: one row each with name, variable, default and help. */
typedef enum dti_option {
    DTI_OPTION_RANKS, DTI_OPTION_BACKEND, DTI_OPTION_DRY, DTI_OPTION_TIMEOUT, DTI_OPTION_BIND,
    DTI_OPTION_MESH, DTI_OPTION_TOPOLOGY, DTI_OPTION_SMALL, DTI_OPTION_LOG, DTI_OPTION_COUNT
} dti_option;

/* What that row says; fallback NULL: there is no default. */
typedef struct dti_option_about { const char *name, *variable, *fallback, *help; } dti_option_about;

/* ---- peers ------------------------------------------------------------------------------------------------------- *
 * What a backend of communication hears from its context; the core knows no more of it. comm NULL: no peers.        */

typedef struct dti_peers {
    void *comm;
    void (*failed)(void *comm);    /* the context has just failed                                                  */
    dt_status (*cleared)(void *comm); /* may its error be forgotten? DT_OK, or the status that forbids it          */
    void (*reclaim)(void *comm);   /* memory is short: release what is not needed; NULL: nothing ever is           */
} dti_peers;

/* ---- handles: what belongs to a scope ---------------------------------------------------------------------------- *
 * A handle struct begins with this. The scope that owns it calls destroy when it ends.                              */

typedef struct dti_handle {
    struct dti_handle *next, **slot; /* in the list of its scope                                                   */
    void (*destroy)(struct dti_handle *handle);
} dti_handle;

typedef struct dti_scope { unsigned flags; int name; dti_handle *handles; } dti_scope;

struct dt_context {
    int rank, rank_count;
    bool dry;
    dt_status status;              /* first error; the context has failed while it is not DT_OK                    */
    char error[1024];
    bool usage;                    /* the error is one of the command line or a variable                           */
    const char *inside;            /* whose function runs: stands in front of errors; NULL: nobody's               */
    dti_peers peers;
    dti_arena arena;               /* all that lives as long as the context                                        */
    dti_pool pool;                 /* what comes and goes                                                          */
    dti_layer_state layers[DTI_LAYER_COUNT];
    const struct dti_recorder *recorder; /* what the tape wants to hear of tensors (tensor.h); NULL: no tape       */
    struct dti_options *options;
    dti_scope *scopes;             /* scopes[0] is the context's own                                               */
    int scope_count, scope_capacity, scope_next; /* scope_next: the next scope's name                              */
    int64_t writes;                /* how often a tensor was written in place                                      */
    int64_t step;
    int micro_batch;
    double time;                   /* predicted seconds of a dry run, but for what is not settled                  */
    void (*settle)(struct dt_context *); /* works out what is not in time and counters yet; NULL: all is           */
    dt_log_level log_level;
    dt_log_fn log_fn;
    void *log_arg;
    struct { dt_event_fn fn; void *arg; } observers[DT_MAX_OBSERVERS + 1]; /* one for the library                 */
    int observer_count;
};

/* A context for rank `rank` of n; see dt_context_dry, which is the dry one of rank 0. The caller destroys it. */
dt_context *dti_context_new(int rank, int n, bool dry);

/* Has the context failed, or is there none? The check at every front door. */
static inline bool dti_failed(const dt_context *ctx) { return ctx == NULL || ctx->status != DT_OK; }

/* Write the first error, tell observers; a failed context keeps its first one. Returns status. */
dt_status dti_fail(dt_context *ctx, dt_status status, const char *format, ...) DT_PRINTF(3, 4);
void *dti_context_layer_new(dt_context *ctx, dti_layer layer, size_t bytes, void (*fini)(void *state));
/* A layer's state, zeroed at the first call; fini (may be NULL) runs before the arena goes, upper layers first. NULL
 * and DT_ERR_MEMORY when memory ran out. */
static inline void *dti_context_layer(dt_context *ctx, dti_layer layer, size_t bytes, void (*fini)(void *state))
{
    void *state = ctx->layers[layer].state;
    return state ? state : dti_context_layer_new(ctx, layer, bytes, fini);
}
/* Whoever asks for time or counters has all in them; the same answer before and after. */
static inline void dti_context_settle(const dt_context *ctx)
{
    if (ctx->settle) ctx->settle((dt_context *)(uintptr_t)ctx);
}
/* Fail with DT_ERR_MEMORY: what was asked for, what the context holds. */
void dti_context_lacks(dt_context *ctx, size_t bytes);
/* Zeroed memory that lives as long as the context. NULL and DT_ERR_MEMORY when memory ran out. */
void *dti_context_take(dt_context *ctx, size_t bytes);
/* Memory for a while, not initialised or zeroed, and given back as so many bytes (NULL: nothing). What is not given
 * back ends with the context. NULL and DT_ERR_MEMORY when memory ran out. */
static inline void *dti_context_borrow(dt_context *ctx, size_t bytes)
{
    void *object = dti_pool_take(&ctx->pool, &ctx->arena, bytes);
    if (!object) dti_context_lacks(ctx, bytes);
    return object;
}
void *dti_context_borrow_zeros(dt_context *ctx, size_t bytes);
static inline void dti_context_give(dt_context *ctx, void *object, size_t bytes)
{
    dti_pool_give(&ctx->pool, object, bytes);
}
/* The row of one of the library's own options. */
dti_option_about dti_option_row(dti_option option);
/* Value of one of the library's own options: command line, else environment, else default (NULL: none). */
const char *dti_option_value(dt_context *ctx, dti_option option);
/* The same as a number of at least min. The default (none: min) and DT_ERR_ARG for a text that is none. */
int64_t dti_option_number(dt_context *ctx, dti_option option, int64_t min);
/* The same as a number above 0, and as true or false. */
double dti_option_positive(dt_context *ctx, dti_option option);
bool dti_option_is_true(dt_context *ctx, dti_option option);
/* Fail with DT_ERR_ARG: where an own option's value came from, its text, and what was expected. */
void dti_option_refuse(dt_context *ctx, dti_option option, const char *expected);
/* Was --help among the options read? */
bool dti_options_help_given(const dt_context *ctx);

void dti_log(dt_context *ctx, dt_log_level level, const char *format, ...) DT_PRINTF(3, 4);
void dti_notify(dt_context *ctx, const dt_event *event);

/* Flags of the innermost scope, its outer ones' included. */
unsigned dti_scope_flags(const dt_context *ctx);
/* Take flags from the innermost scope, until it ends. */
void dti_scope_drop_flags(dt_context *ctx, unsigned flags);
/* Give a new handle to the innermost scope; take it from whichever it is in. */
void dti_scope_own(dt_context *ctx, dti_handle *handle);
void dti_scope_disown(dti_handle *handle);
/* Move a handle one scope outwards; the context's own scope keeps it. One that is in no scope stays so. */
void dti_scope_keep(dt_context *ctx, dti_handle *handle);

#endif
