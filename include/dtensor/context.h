/* SPDX-License-Identifier: Apache-2.0
 *
 * A context is one rank's state: its number, its options, the first error, the open scopes, the caches. It belongs to
 * one thread, and so does everything made from it. */
#ifndef DTENSOR_CONTEXT_H
#define DTENSOR_CONTEXT_H

#include <dtensor/types.h>

DT_BEGIN_DECLS

/* ---- making contexts ------------------------------------------------------------------------------------------- */

typedef dt_status (*dt_rank_fn)(dt_context *ctx, void *arg);         /* what each rank runs                        */

/* Run fn on every rank as --dt-* options and DT_* variables say; strips --dt-*. Prints the first error of the run as
 * one line on stderr, and the --help text: the only printing nobody asked for. Returns main's exit status: 0, 1, 2. */
DT_API int dt_launch(int *argc, char ***argv, dt_rank_fn fn, void *arg);
/* The same on n thread ranks of this process, for tests: no options, prints nothing; the message goes to error. */
DT_API dt_status dt_launch_threads(int n, dt_rank_fn fn, void *arg, char *error, size_t n_bytes);

/* A context for n ranks without data, kernels or messages, in the calling thread: rule tests and estimates. It is rank
 * 0 of n; DT_* variables are read, options come from dt_options_read. Local. NULL if n < 1 or memory ran out: there is
 * no context yet to say which. The caller destroys it. */
DT_API dt_context *dt_context_dry(int n);
/* End a context of dt_context_dry and everything made from it; sets *ctx to NULL. Local. NULL, or pointing at NULL:
 * does nothing. */
DT_API void dt_context_destroy(dt_context **ctx);

/* This rank, 0 .. dt_rank_count - 1. Local. */
DT_API int dt_rank(const dt_context *ctx);
/* How many ranks the run has. Local. */
DT_API int dt_rank_count(const dt_context *ctx);

/* ---- errors ---------------------------------------------------------------------------------------------------- */

/* The first error since the last clear, DT_OK if none. Local. */
DT_API dt_status dt_context_status(const dt_context *ctx);
/* Its message, one line; "" if none. Local. Valid until the context is cleared or destroyed. */
DT_API const char *dt_context_error(const dt_context *ctx);
/* Forget the error; refused with its status once a group of ranks is dead. Who failed alone may clear until a peer
 * notices, and is told by its next collective. Local. */
DT_API dt_status dt_context_clear(dt_context *ctx);
/* Fail with an error of the program's own: peers are told, scopes stay usable. A failed context keeps its first error;
 * DT_OK is no error and changes nothing. Local. Returns status. */
DT_API dt_status dt_context_fail(dt_context *ctx, dt_status status, const char *format, ...) DT_PRINTF(3, 4);

/* ---- steps, time, printing ------------------------------------------------------------------------------------- */

/* Wait for this rank's device. Local. */
DT_API dt_status dt_context_sync(dt_context *ctx);
/* Keys the draws of modules; dt_optim_step sets step + 1, 0. Negative numbers are DT_ERR_ARG. Local. */
DT_API dt_status dt_context_step(dt_context *ctx, int64_t step, int micro_batch);
/* Seconds on this rank's clock; predicted ones in a dry run, from 0. Local. */
DT_API double dt_context_time(const dt_context *ctx);
/* printf on rank 0; nothing on a failed context. Arguments are evaluated on all ranks, so collective calls may stand
 * among them. */
DT_API void dt_print(dt_context *ctx, const char *format, ...) DT_PRINTF(2, 3);

/* ---- options --------------------------------------------------------------------------------------------------- *
 * --name=value, else the default; a flag is --name, --name=true or --name=false. Asking declares: --help lists what was
 * asked, dt_options_done refuses the rest. The library's own options begin with --dt- and have a DT_ variable each.  */

/* Take the options of a command line: --dt-* are stripped from it at once, --name=value are kept for the questions
 * below, "--" ends them. For programs with a context of dt_context_dry, before its first mesh or plan;
 * dt_launch does it by itself. Local. DT_ERR_ARG: an unknown --dt-* option. Texts are copied. */
DT_API dt_status dt_options_read(dt_context *ctx, int *argc, char ***argv);
/* The value of an option, declared with its default and one line of help. A value in no notation of its type is
 * DT_ERR_ARG and gives the default. Local. */
DT_API int64_t dt_option_int(dt_context *ctx, const char *name, int64_t value, const char *help);
DT_API double dt_option_float(dt_context *ctx, const char *name, double value, const char *help);
DT_API const char *dt_option_text(dt_context *ctx, const char *name, const char *value, const char *help);
DT_API bool dt_option_flag(dt_context *ctx, const char *name, const char *help);
/* All options have been asked for: false if the program should return now, because --help was given or, with
 * DT_ERR_ARG, because an option was given that nothing declares. Local. */
DT_API bool dt_options_done(dt_context *ctx);
/* The text of --help: the library's options, then those asked for. Local. Valid until the next call. */
DT_API const char *dt_options_help(dt_context *ctx);

/* ---- scopes ---------------------------------------------------------------------------------------------------- */

typedef enum dt_scope_flag {       /* regions are scopes; flags add to the outer scope's                           */
    DT_SCOPE_NO_GRAD = 1 << 0,     /* record nothing                                                               */
    DT_SCOPE_STRICT = 1 << 1,      /* an implied redistribution is an error that lists the legal fixes             */
    DT_SCOPE_NO_REDUCE = 1 << 2,   /* fully sharded gradients stay P; the next backward outside adds, then reduces */
    DT_SCOPE_KEEP_GATHERED = 1 << 3 /* the tape keeps gathered operands, not their sharded sources                 */
} dt_scope_flag;

/* Open a scope; the result names it, 0 on failure. Unknown flags are DT_ERR_ARG. On a failed context the scope opens
 * all the same, so that the pop beside it closes the right one. Local. */
DT_API int dt_scope_push(dt_context *ctx, unsigned flags);
/* End it and all left open inside; keep (may be NULL) moves to the outer scope and is returned. Never refused; a number
 * that names no open scope ends nothing. Local. */
DT_API dt_tensor *dt_scope_pop(dt_context *ctx, int scope, dt_tensor *keep);

/* ---- logger and observers -------------------------------------------------------------------------------------- */

/* How much is logged, and what gets each line, without its newline. */
typedef enum dt_log_level {
    DT_LOG_NONE = 0, DT_LOG_WARNING, DT_LOG_INFO, DT_LOG_DEBUG, DT_LOG_LEVEL_COUNT
} dt_log_level;
typedef void (*dt_log_fn)(dt_log_level level, const char *line, void *arg);

/* Where messages up to this level go, from now on; fn NULL: to stderr. At first to stderr up to the level of DT_LOG:
 * none, warning, info or debug; none if it is not set. A --dt-log read by dt_options_read sets the level anew and keeps
 * fn. A text that is no level fails the context with DT_ERR_ARG. Local. */
DT_API void dt_context_logger(dt_context *ctx, dt_log_level level, dt_log_fn fn, void *arg);

typedef enum dt_event_kind {
    DT_EVENT_ERROR,                /* the context failed; text is its message                                      */
    DT_EVENT_MESH,                 /* a mesh was made; object is the dt_mesh, text its notation                    */
    DT_EVENT_PLAN,                 /* a plan was made, not taken from the cache; object is the dt_plan             */
    DT_EVENT_MOVE,                 /* a plan is carried out; object is the dt_plan                                 */
    DT_EVENT_KIND_COUNT
} dt_event_kind;

/* What an observer sees, during the call. */
typedef struct dt_event { dt_event_kind kind; dt_status status; const char *text; const void *object; } dt_event;
typedef void (*dt_event_fn)(const dt_event *event, void *arg);

enum { DT_MAX_OBSERVERS = 8 };         /* of one context                                                            */

/* Call fn on every event from now on, in the order of registration; more than DT_MAX_OBSERVERS is DT_ERR_STATE. An
 * observer only looks: it makes nothing from the context. Local. */
DT_API dt_status dt_context_observe(dt_context *ctx, dt_event_fn fn, void *arg);

/* ---- counters -------------------------------------------------------------------------------------------------- */

typedef enum dt_comm_kind {
    DT_COMM_ALL_GATHER, DT_COMM_REDUCE_SCATTER, DT_COMM_ALL_REDUCE, DT_COMM_ALL_TO_ALL, DT_COMM_PERMUTE,
    DT_COMM_BROADCAST, DT_COMM_EXCHANGE, DT_COMM_SEND, DT_COMM_LOCAL, /* local: each rank has all it needs         */
    DT_COMM_KIND_COUNT
} dt_comm_kind;

/* Name of a kind: "all_gather", "local". "?" for a number that is none. Local. */
DT_API const char *dt_comm_kind_text(dt_comm_kind kind);

/* A call over several mesh dims counts once under each and once under NULL; a list is one call; P -> R is one
 * all-reduce; item, close and to_host do not count as implied. */
typedef struct dt_counters {       /* since the context began; subtract two to measure a region                    */
    int64_t calls[DT_COMM_KIND_COUNT];
    int64_t bytes[DT_COMM_KIND_COUNT]; /* received by this rank                                                    */
    int64_t implied;               /* calls that move bytes and nobody wrote, statistics of a decomposition too    */
    int64_t memory, memory_peak;   /* bytes of tensors now, at most, with what kernels need; of the whole context  */
} dt_counters;

DT_END_DECLS

#endif
