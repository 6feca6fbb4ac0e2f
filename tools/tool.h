/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `dt` share: commands and their options as tables, one line per error, aligned text. A command makes
 * all of its output before it prints any, so a failed one prints nothing but its error. */
#ifndef DT_TOOL_H
#define DT_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include <dtensor/plan.h>

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 }; /* exit status                                              */
enum { TOOL_MAX_OPTIONS = 12, TOOL_MAX_ARGUMENTS = 32 };

typedef struct tool_option {
    const char *name;
    const char *value;             /* what its value is called in --help; NULL: a flag                             */
    const char *help;
    char letter;                   /* -n for ranks; 0: none                                                        */
} tool_option;

/* A command line that was read. */
typedef struct tool_call {
    const char *command;
    const char *values[TOOL_MAX_OPTIONS]; /* by option; NULL: not given; "" for a flag that was                    */
    int argument_count;
    const char *arguments[TOOL_MAX_ARGUMENTS];
    char **program;                /* the first plain word and all behind it, where the command takes a program    */
    FILE *out;                     /* what a command that returns TOOL_OK wrote here is printed                    */
} tool_call;

typedef struct tool_command {
    const char *name, *summary;
    const char *arguments;         /* as --help shows them; NULL: none                                             */
    int argument_count;            /* at least                                                                     */
    int argument_limit;            /* at most; 0: as many                                                          */
    bool takes_program;            /* a plain word ends the options: it and what follows are a command line        */
    const char *details;           /* the rest of --help; NULL: nothing                                            */
    const tool_option *options;
    int option_count;
    int (*run)(const tool_call *call); /* NULL: a command of a later version                                       */
} tool_command;

extern const tool_command dt_info_command, dt_redistribute_command, dt_rule_command, dt_run_command;

/* One line on stderr, "dt COMMAND: message"; command NULL: "dt: message". Returns status. */
int tool_fail(const char *command, int status, const char *format, ...) DT_PRINTF(3, 4);
/* The error of a context as such a line. */
int tool_fail_context(const char *command, const dt_context *ctx);

/* Rows of cells ended by tabs and new lines, which put writes, as columns: 'l' or 'r' per column says where its cells
 * stand. false: memory ran out. */
typedef void (*tool_put_fn)(FILE *cells, const void *arg);
bool tool_put(FILE *out, const char *columns, tool_put_fn put, const void *arg);

#endif
