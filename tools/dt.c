/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `dt`: reads a command line by the tables of its commands, runs one, prints what it made. What a command
 * does is in dt_COMMAND.c. Exit status: 0; 1 where the library or the machine failed; 2 where the line is wrong. */
#include "tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/pen.h"

static const tool_command later_plan = { .name = "plan", .summary = "run a program without data, on any cluster" };

static const tool_command *const commands[] = {
    &dt_info_command, &dt_rule_command, &dt_redistribute_command, &dt_run_command, &later_plan,
};

/* ---- errors ------------------------------------------------------------------------------------------------------ */

int tool_fail(const char *command, int status, const char *format, ...)
{
    char line[1280];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = ' '; /* one line, whatever was in the arguments           */
    fprintf(stderr, "dt%s%s: %s\n", command ? " " : "", command ? command : "", line);
    return status;
}

int tool_fail_context(const char *command, const dt_context *ctx)
{
    return tool_fail(command, TOOL_FAILED, "%s", dt_context_error(ctx));
}

/* ---- aligned text ------------------------------------------------------------------------------------------------ */

typedef struct aligned { const char *cells, *columns; } aligned;

static void put_aligned(dti_pen *pen, const void *arg)
{
    const aligned *a = arg;
    dti_put_columns(pen, a->cells, a->columns);
}

bool tool_put(FILE *out, const char *columns, tool_put_fn put, const void *arg)
{
    char *text = NULL;
    size_t bytes;
    FILE *cells = open_memstream(&text, &bytes);
    if (cells) put(cells, arg);
    bool made = cells && fclose(cells) == 0;
    char *lines = made ? dti_written(put_aligned, &(aligned){ text, columns }) : NULL;
    if (lines) fputs(lines, out);
    free(lines);
    free(text);
    return lines != NULL;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static const tool_command *find_command(const char *name)
{
    for (int i = 0; i < DT_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static void print_commands(void)
{
    puts("usage: dt COMMAND [OPTION...] [ARGUMENT...]\n");
    for (int i = 0; i < DT_COUNT(commands); i++)
        printf("  %-14s %s%s\n", commands[i]->name, commands[i]->summary, commands[i]->run ? "" : " (a later version)");
    puts("\n  dt COMMAND --help   the options of a command\n"
         "  dt --version        the version\n\n"
         "Options are written --name=value or --name value. Exit status: 0; 1 for an error; 2 for a wrong line.");
}

static void print_command(const tool_command *command)
{
    printf("usage: dt %s [OPTION...]%s%s\n\n%s\n\n", command->name, command->arguments ? " " : "",
           command->arguments ? command->arguments : "", command->summary);
    for (int i = 0; i < command->option_count; i++) {
        const tool_option *option = &command->options[i];
        int used = printf("  --%s%s%s", option->name, option->value ? "=" : "", option->value ? option->value : "");
        printf("%*s%s\n", used < 26 ? 26 - used : 1, "", option->help);
    }
    printf("  %-24s%s\n", "--help", "show this text");
    if (command->details) printf("\n%s", command->details);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

typedef struct line { int count; char **words; int at; } line;

/* Index of the option that a word names, with or without "=value"; -1: none. */
static int find_option(const tool_command *command, const char *word)
{
    size_t length = strcspn(word, "=");
    for (int i = 0; i < command->option_count; i++) {
        const char *name = command->options[i].name;
        if (strlen(name) == length && strncmp(name, word, length) == 0) return i;
    }
    return -1;
}

/* Read one option, word being what follows "--"; its value may be the next word. */
static int read_option(const tool_command *command, const char *word, line *rest, tool_call *call)
{
    int option = find_option(command, word);
    if (option < 0)
        return tool_fail(command->name, TOOL_USAGE, "unknown option --%s; see dt %s --help", word, command->name);
    const char *equals = strchr(word, '=');
    bool takes = command->options[option].value != NULL;
    if (!takes && equals)
        return tool_fail(command->name, TOOL_USAGE, "--%s takes no value", command->options[option].name);
    if (takes && !equals && rest->at == rest->count)
        return tool_fail(command->name, TOOL_USAGE, "--%s: expected a value, %s", command->options[option].name,
                         command->options[option].value);
    call->values[option] = !takes ? "" : equals ? equals + 1 : rest->words[rest->at++];
    return TOOL_OK;
}

/* The option that -n stands for, as its word; NULL: none. */
static const char *long_word(const tool_command *command, const char *word)
{
    for (int i = 0; i < command->option_count; i++)
        if (command->options[i].letter && word[1] == command->options[i].letter && !word[2])
            return command->options[i].name;
    return NULL;
}

static int read_call(const tool_command *command, line *rest, tool_call *call)
{
    int status = TOOL_OK, most = command->argument_limit ? command->argument_limit : command->argument_count;
    bool options_end = false;
    while (rest->at < rest->count && status == TOOL_OK) {
        const char *word = rest->words[rest->at++];
        if (!options_end && strcmp(word, "--") == 0) options_end = true;
        else if (!options_end && strncmp(word, "--", 2) == 0) status = read_option(command, word + 2, rest, call);
        else if (!options_end && word[0] == '-' && long_word(command, word))
            status = read_option(command, long_word(command, word), rest, call);
        else if (!options_end && word[0] == '-' && word[1])
            status = tool_fail(command->name, TOOL_USAGE, "unknown option %s; options begin with --", word);
        else if (command->takes_program) {
            call->program = &rest->words[rest->at - 1];
            rest->at = rest->count;
        } else if (call->argument_count < most) call->arguments[call->argument_count++] = word;
        else status = tool_fail(command->name, TOOL_USAGE, "unexpected argument \"%s\"", word);
    }
    if (status == TOOL_OK && call->argument_count < command->argument_count)
        status = tool_fail(command->name, TOOL_USAGE, "expected %s; see dt %s --help", command->arguments,
                           command->name);
    return status;
}

/* Behind "--", and behind a program's name, --help is not the command's. */
static bool asks_help(const tool_command *command, const line *rest)
{
    for (int i = rest->at; i < rest->count && strcmp(rest->words[i], "--") != 0; i++) {
        if (strcmp(rest->words[i], "--help") == 0) return true;
        if (command->takes_program && rest->words[i][0] != '-') return false;
    }
    return false;
}

/* Run a command; print its output if it did well. */
static int run_command(const tool_command *command, line *rest)
{
    char *text = NULL;
    size_t bytes;
    tool_call call = { .command = command->name };
    if (!command->run) return tool_fail(command->name, TOOL_USAGE, "not in this version");
    if (asks_help(command, rest)) return print_command(command), TOOL_OK;
    int status = read_call(command, rest, &call);
    if (status != TOOL_OK) return status;
    call.out = open_memstream(&text, &bytes);
    if (!call.out) return tool_fail(command->name, TOOL_FAILED, "out of memory");
    status = command->run(&call);
    if (fclose(call.out) != 0 && status == TOOL_OK) status = tool_fail(command->name, TOOL_FAILED, "out of memory");
    if (status == TOOL_OK) fputs(text, stdout);
    free(text);
    return status;
}

static int help(line *rest)
{
    const char *name = rest->at < rest->count ? rest->words[rest->at] : NULL;
    const tool_command *command = name ? find_command(name) : NULL;
    if (!name) return print_commands(), TOOL_OK;
    if (!command) return tool_fail(NULL, TOOL_USAGE, "unknown command \"%s\"; see dt --help", name);
    if (!command->run) return tool_fail(name, TOOL_USAGE, "not in this version");
    return print_command(command), TOOL_OK;
}

static int dispatch(line *rest)
{
    if (rest->count < 2) return tool_fail(NULL, TOOL_USAGE, "expected a command; see dt --help");
    const char *name = rest->words[rest->at++];
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) return help(rest);
    if (strcmp(name, "--version") == 0) return puts("dt " TOOL_VERSION), TOOL_OK;
    const tool_command *command = find_command(name);
    if (command) return run_command(command, rest);
    return tool_fail(NULL, TOOL_USAGE, "unknown %s \"%s\"; see dt --help", name[0] == '-' ? "option" : "command", name);
}

int main(int argc, char **argv)
{
    line rest = { argc, argv, 1 };
    int status = dispatch(&rest);
    if (fflush(stdout) != 0 || ferror(stdout)) return tool_fail(NULL, TOOL_FAILED, "cannot write to standard output");
    return status;
}
