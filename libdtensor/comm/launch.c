/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching: how many ranks, on what, from options; and the only printing that nobody asked for, one line of error or
 * the text of --help. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/run.h"
#include "core/context.h"

enum { EXIT_USAGE = 2 };

dt_status dt_launch_threads(int n, dt_rank_fn fn, void *arg, char *error, size_t n_bytes)
{
    dti_outcome outcome = { .status = DT_ERR_ARG };
    dti_run run = { .ranks = n, .fn = fn, .arg = arg };
    if (n >= 1 && fn) dti_run_program(&run, &outcome);
    else if (fn) snprintf(outcome.error, sizeof outcome.error, "launch: expected at least 1 rank, got %d", n);
    else snprintf(outcome.error, sizeof outcome.error, "launch: expected a function, got NULL");
    if (error && n_bytes) snprintf(error, n_bytes, "%s", outcome.error);
    free(outcome.help);
    return outcome.status;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The product of the sizes in "dp=2,tp=4"; 1 where one is missing. Whether it is a mesh is for who makes it. */
static int mesh_ranks(const char *text)
{
    long long ranks = 1;
    while (text && *text) {
        size_t n = strcspn(text, ",");
        const char *equals = memchr(text, '=', n);
        long long size = equals ? strtoll(equals + 1, NULL, 10) : 0;
        if (size < 1 || size > INT_MAX / ranks) return 1;
        ranks *= size;
        text += text[n] ? n + 1 : n;
    }
    return (int)ranks;
}

static int read_count(dt_context *ctx, dti_option option)
{
    int64_t count = dti_option_number(ctx, option, 1);
    if (count > INT_MAX) dti_option_refuse(ctx, option, "an integer of at most 2147483647");
    return (int)count;
}

static void check_backend(dt_context *ctx)
{
    const char *text = dti_option_value(ctx, DTI_OPTION_BACKEND);
    if (strcmp(text, "threads") == 0) return;
    if (strcmp(text, "mpi") == 0 || strcmp(text, "nccl") == 0)
        dti_fail(ctx, DT_ERR_UNAVAILABLE, "backend %s: this build has threads only", text);
    else dti_option_refuse(ctx, DTI_OPTION_BACKEND, "threads, mpi or nccl");
}

/* What the options say about the run. false and the error where they cannot be read. */
static bool read_options(dt_context *ctx, dti_run *run)
{
    run->dry = dti_option_value(ctx, DTI_OPTION_DRY) != NULL;
    run->bind = dti_option_is_true(ctx, DTI_OPTION_BIND);
    dti_option_positive(ctx, DTI_OPTION_TIMEOUT);
    if (run->dry) run->ranks = read_count(ctx, DTI_OPTION_DRY);
    else if (dti_option_value(ctx, DTI_OPTION_RANKS)) run->ranks = read_count(ctx, DTI_OPTION_RANKS);
    else run->ranks = mesh_ranks(dti_option_value(ctx, DTI_OPTION_MESH));
    if (!run->dry) check_backend(ctx);
    return !dti_failed(ctx);
}

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

/* A copy of the command line as it was given, for the ranks; the caller's is stripped. NULL: memory ran out. */
static char **copy_line(int argc, char **argv)
{
    size_t bytes = (size_t)argc * sizeof *argv;
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    return copy ? memcpy(copy, argv, bytes) : NULL;
}

/* Read the line into ctx and, where it is in order, run. */
static void read_and_run(dt_context *ctx, int *argc, char ***argv, dti_run *run, dti_outcome *outcome)
{
    char **line = copy_line(*argc, *argv);
    run->argc = *argc;
    run->argv = line;
    if (!line) dti_fail(ctx, DT_ERR_MEMORY, "out of memory for the command line");
    if (dt_options_read(ctx, argc, argv) == DT_OK && read_options(ctx, run)) {
        dti_run_program(run, outcome);
    } else {
        outcome->status = ctx->status;
        outcome->usage = ctx->usage;
        snprintf(outcome->error, sizeof outcome->error, "%s", ctx->error);
    }
    free(line);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Print what there is to say; the exit status. --help is an answer whatever the program made of it. */
static int conclude(const dti_outcome *outcome, const char *name)
{
    if (outcome->help && !outcome->usage) {
        fputs(outcome->help, stdout);
        return EXIT_SUCCESS;
    }
    if (outcome->status == DT_OK) return EXIT_SUCCESS;
    fprintf(stderr, "%s: %s\n", name, outcome->error);
    return outcome->usage ? EXIT_USAGE : EXIT_FAILURE;
}

int dt_launch(int *argc, char ***argv, dt_rank_fn fn, void *arg)
{
    dti_outcome outcome = { .status = DT_ERR_ARG };
    dti_run run = { .fn = fn, .arg = arg };
    bool usable = argc && argv && *argv && fn;
    const char *name = usable && *argc > 0 ? base_name((*argv)[0]) : "dtensor";
    dt_context *ctx = usable ? dt_context_dry(1) : NULL;
    if (ctx) read_and_run(ctx, argc, argv, &run, &outcome);
    else snprintf(outcome.error, sizeof outcome.error, "%s", usable ? "out of memory"
                                                                    : "launch: expected a command line and a function");
    int status = conclude(&outcome, name);
    free(outcome.help);
    dt_context_destroy(&ctx);
    return status;
}
