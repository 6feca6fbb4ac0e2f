/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: the library's own, one row each, and the program's, which exist because it asks for them. What a value means
 * is for who asks; this file reads text, numbers and flags. Nothing is printed here, --help neither.
 * Invariant: every text kept here is a copy that lives as long as the context. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parts.h"
#include "core/scan.h"

typedef enum option_kind { KIND_INT, KIND_FLOAT, KIND_TEXT, KIND_FLAG, KIND_COUNT } option_kind;

typedef struct kind_row { const char *expected, *shown; } kind_row;

static const kind_row kinds[KIND_COUNT] = {
    [KIND_INT] = { "an integer", "=INT" },
    [KIND_FLOAT] = { "a number", "=FLOAT" },
    [KIND_TEXT] = { "a text", "=TEXT" },
    [KIND_FLAG] = { "true or false", "" },
};

typedef struct own_row { const char *name, *variable, *fallback; option_kind kind; const char *help; } own_row;

static const own_row own_rows[DTI_OPTION_COUNT] = {
    [DTI_OPTION_RANKS] = { "dt-ranks", "DT_RANKS", NULL, KIND_INT,
                           "ranks to run; not given: as many as --dt-mesh has, else 1" },
    [DTI_OPTION_BACKEND] = { "dt-backend", "DT_BACKEND", "threads", KIND_TEXT,
                             "what connects the ranks: threads, mpi or nccl" },
    [DTI_OPTION_DRY] = { "dt-dry", "DT_DRY", NULL, KIND_INT, "run once without data, as rank 0 of so many" },
    [DTI_OPTION_TIMEOUT] = { "dt-timeout", "DT_TIMEOUT", "300", KIND_FLOAT,
                             "seconds after which a rank that does not come is an error" },
    [DTI_OPTION_BIND] = { "dt-bind", "DT_BIND", "true", KIND_FLAG,
                          "keep each rank on CPUs of its own where there are enough" },
    [DTI_OPTION_MESH] = { "dt-mesh", "DT_MESH", NULL, KIND_TEXT, "sizes of the mesh dims, dp=2,tp=4" },
    [DTI_OPTION_TOPOLOGY] = { "dt-topology", "DT_TOPOLOGY", NULL, KIND_TEXT, "where ranks stand, node=2,gpu=8" },
    [DTI_OPTION_SMALL] = { "dt-small", "DT_SMALL", "65536", KIND_INT,
                           "bytes of a rank's part below which latency alone chooses the plan" },
    [DTI_OPTION_LOG] = { "dt-log", "DT_LOG", "none", KIND_TEXT,
                         "messages on stderr up to none, warning, info or debug" },
};

/* --name=value of the command line; value NULL: --name. */
typedef struct argument { struct argument *next; const char *name, *value; } argument;

/* What the program asked for. */
typedef struct question {
    struct question *next;
    const char *name, *fallback, *help;
    option_kind kind;
    const argument *given;         /* the last one of this name, NULL: none                                        */
} question;

typedef struct dti_options {
    const char *given[DTI_OPTION_COUNT], *variables[DTI_OPTION_COUNT]; /* NULL: not there                          */
    argument *arguments, **arguments_end;
    question *questions, **questions_end;
    bool help_given;
    char *help;                    /* text of the last dt_options_help                                             */
} dti_options;

/* A copy that lives as long as the context; text NULL: NULL. */
static bool copy(dt_context *ctx, const char *text, const char **result)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    char *copied = text ? dti_context_take(ctx, bytes) : NULL;
    if (text && !copied) return false;
    *result = text ? memcpy(copied, text, bytes) : NULL;
    return true;
}

bool dti_options_init(dt_context *ctx)
{
    dti_options *options = dti_context_take(ctx, sizeof *options);
    if (!options) return false;
    options->arguments_end = &options->arguments;
    options->questions_end = &options->questions;
    ctx->options = options;
    for (int i = 0; i < DTI_OPTION_COUNT; i++) {
        const char *text = getenv(own_rows[i].variable);
        if (text && *text && !copy(ctx, text, &options->variables[i])) return false;
    }
    return true;
}

void dti_options_fini(dt_context *ctx)
{
    if (ctx->options) free(ctx->options->help);
}

/* Add a name to a list of options; what does not fit is left out. */
static void list_add(char *list, size_t bytes, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s--%s", used ? ", " : "", name);
}

/* Fail because of what the command line or a variable says. */
DT_PRINTF(2, 3)
static void refuse_usage(dt_context *ctx, const char *format, ...)
{
    char line[sizeof ctx->error];
    va_list args;
    if (dti_failed(ctx)) return;
    va_start(args, format);
    dti_line(line, sizeof line, format, args);
    va_end(args);
    ctx->usage = true;
    dti_fail(ctx, DT_ERR_ARG, "%s", line);
}

/* ---- reading values -------------------------------------------------------------------------------------------- */

static bool begins_with_space(const char *text) { return *text == ' ' || (*text >= '\t' && *text <= '\r'); }

static bool read_int(const char *text, int64_t *value)
{
    char *end;
    if (begins_with_space(text)) return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno == ERANGE) return false;
    *value = number;
    return true;
}

static bool read_float(const char *text, double *value)
{
    char *end;
    if (begins_with_space(text)) return false;
    errno = 0;
    double number = strtod(text, &end);
    bool overflows = errno == ERANGE && (number > 1 || number < -1); /* too small is 0 or nearly so, and fine */
    if (end == text || *end != '\0' || overflows) return false;
    *value = number;
    return true;
}

static bool read_flag(const char *text, bool *value)
{
    bool is_true = text == NULL || strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0) return false;
    *value = is_true;
    return true;
}

/* ---- the library's own ----------------------------------------------------------------------------------------- */

dti_option_about dti_option_row(dti_option option)
{
    const own_row *row = &own_rows[option];
    return (dti_option_about){ row->name, row->variable, row->fallback, row->help };
}

const char *dti_option_value(dt_context *ctx, dti_option option)
{
    const dti_options *options = ctx->options;
    if (options->given[option]) return options->given[option];
    return options->variables[option] ? options->variables[option] : own_rows[option].fallback;
}

void dti_option_refuse(dt_context *ctx, dti_option option, const char *expected)
{
    bool given = ctx->options->given[option] != NULL;
    refuse_usage(ctx, "%s%s=%s: expected %s", given ? "--" : "",
                 given ? own_rows[option].name : own_rows[option].variable, dti_option_value(ctx, option), expected);
}

int64_t dti_option_number(dt_context *ctx, dti_option option, int64_t min)
{
    char expected[64];
    int64_t value = 0;
    if (read_int(dti_option_value(ctx, option), &value) && value >= min) return value;
    snprintf(expected, sizeof expected, "an integer of at least %" PRId64, min);
    dti_option_refuse(ctx, option, expected);
    value = min;
    if (own_rows[option].fallback) read_int(own_rows[option].fallback, &value);
    return value;
}

double dti_option_positive(dt_context *ctx, dti_option option)
{
    double value = 0;
    if (read_float(dti_option_value(ctx, option), &value) && value > 0) return value;
    dti_option_refuse(ctx, option, "a number above 0");
    read_float(own_rows[option].fallback, &value);
    return value;
}

bool dti_option_is_true(dt_context *ctx, dti_option option)
{
    bool value = false;
    if (read_flag(dti_option_value(ctx, option), &value)) return value;
    dti_option_refuse(ctx, option, kinds[KIND_FLAG].expected);
    read_flag(own_rows[option].fallback, &value);
    return value;
}

bool dti_options_help_given(const dt_context *ctx) { return ctx->options->help_given; }

/* ---- the command line ------------------------------------------------------------------------------------------ */

typedef struct parts { dti_word name; const char *value; } parts;

/* Is it --name or --name=value? */
static bool split(const char *text, parts *result)
{
    if (strncmp(text, "--", 2) != 0) return false;
    size_t n = strcspn(text + 2, "=");
    *result = (parts){ { text + 2, (int)n }, text[2 + n] ? text + 2 + n + 1 : NULL };
    return true;
}

static bool is_own(const char *text) { return strncmp(text, "--dt-", 5) == 0; }

/* Where options end: at "--", else at the end. */
static int options_end(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) return i;
    return argc;
}

static int own_find(dti_word name)
{
    int i = 0;
    while (i < DTI_OPTION_COUNT && !dti_word_is(name, own_rows[i].name)) i++;
    return i;
}

/* Is an own option known, and with a value? */
static bool own_check(dt_context *ctx, const parts *option)
{
    char known[256] = "";
    int own = own_find(option->name);
    if (own < DTI_OPTION_COUNT) {
        if (option->value || own_rows[own].kind == KIND_FLAG) return true;
        refuse_usage(ctx, "--%s: expected \"=\" and a value", option->name.text);
        return false;
    }
    for (int i = 0; i < DTI_OPTION_COUNT; i++) list_add(known, sizeof known, own_rows[i].name);
    refuse_usage(ctx, "unknown option --%.*s; known: %s", option->name.n, option->name.text, known);
    return false;
}

static bool add_argument(dt_context *ctx, const parts *option)
{
    dti_options *options = ctx->options;
    argument *added = dti_context_take(ctx, sizeof *added);
    char *name = dti_context_take(ctx, (size_t)option->name.n + 1);
    if (!added || !name || !copy(ctx, option->value, &added->value)) return false;
    added->name = memcpy(name, option->name.text, (size_t)option->name.n);
    *options->arguments_end = added;
    options->arguments_end = &added->next;
    return true;
}

static bool store(dt_context *ctx, const parts *option)
{
    int own = own_find(option->name);
    if (own < DTI_OPTION_COUNT) return copy(ctx, option->value ? option->value : "true", &ctx->options->given[own]);
    if (!option->value && dti_word_is(option->name, "help")) return ctx->options->help_given = true;
    return add_argument(ctx, option);
}

static void strip(int end, int *argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < *argc; i++)
        if (i >= end || !is_own(argv[i])) argv[kept++] = argv[i];
    if (kept >= *argc) return;
    argv[kept] = NULL;
    *argc = kept;
}

/* Store the options of a line. A log level that cannot be read is forgotten, so that it is refused only once. */
static bool store_all(dt_context *ctx, int end, char **argv)
{
    parts option;
    const char *log_before = ctx->options->given[DTI_OPTION_LOG];
    for (int i = 1; i < end; i++)
        if (split(argv[i], &option) && !store(ctx, &option)) return false;
    if (ctx->options->given[DTI_OPTION_LOG] == log_before || dti_log_setup(ctx)) return true;
    ctx->options->given[DTI_OPTION_LOG] = log_before;
    return false;
}

/* All is checked before anything is stored, and stored before anything is stripped. */
dt_status dt_options_read(dt_context *ctx, int *argc, char ***argv)
{
    parts option;
    if (dti_failed(ctx)) return dt_context_status(ctx);
    if (!argc || !argv || !*argv) return dti_fail(ctx, DT_ERR_ARG, "options: expected a command line, got NULL");
    int end = options_end(*argc, *argv);
    for (int i = 1; i < end; i++)
        if (is_own((*argv)[i]) && split((*argv)[i], &option) && !own_check(ctx, &option)) return ctx->status;
    if (!store_all(ctx, end, *argv)) return ctx->status;
    strip(end, argc, *argv);
    return DT_OK;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

static question *question_find(const dti_options *options, const char *name)
{
    question *at = options->questions;
    while (at && strcmp(at->name, name) != 0) at = at->next;
    return at;
}

static const argument *argument_last(const dti_options *options, const char *name)
{
    const argument *last = NULL;
    for (const argument *at = options->arguments; at; at = at->next)
        if (strcmp(at->name, name) == 0) last = at;
    return last;
}

static question *question_create(dt_context *ctx, const char *name)
{
    question *made = dti_context_take(ctx, sizeof *made);
    if (!made || !copy(ctx, name, &made->name)) return NULL;
    *ctx->options->questions_end = made;
    ctx->options->questions_end = &made->next;
    return made;
}

/* Replace a kept text if it changed, so that asking again takes no memory. */
static bool keep(dt_context *ctx, const char **kept, const char *text)
{
    if (*kept && text && strcmp(*kept, text) == 0) return true;
    return copy(ctx, text, kept);
}

static bool name_is_usable(dt_context *ctx, const char *name)
{
    bool usable = name && *name && !strpbrk(name, "= \t\r\n") && strncmp(name, "dt-", 3) != 0;
    if (!usable)
        dti_fail(ctx, DT_ERR_ARG, "option \"%s\": expected a name without blanks and \"=\", not beginning with dt-",
                 name ? name : "");
    return usable;
}

/* Declare an option and look for its argument; the last asking is the one that counts. NULL: it cannot be asked. */
static question *ask(dt_context *ctx, option_kind kind, const char *name, const char *fallback, const char *help)
{
    if (!ctx || !name_is_usable(ctx, name)) return NULL;
    question *asked = question_find(ctx->options, name);
    if (!asked) asked = question_create(ctx, name);
    if (!asked || !keep(ctx, &asked->fallback, fallback) || !keep(ctx, &asked->help, help)) return NULL;
    asked->kind = kind;
    asked->given = argument_last(ctx->options, name);
    return asked;
}

/* The text to read; NULL for the default, because nothing was given or, with the error, no value. */
static const char *answer(dt_context *ctx, const question *asked)
{
    if (!asked || !asked->given) return NULL;
    if (!asked->given->value)
        refuse_usage(ctx, "--%s: expected \"=\" and %s", asked->name, kinds[asked->kind].expected);
    return asked->given->value;
}

static void refuse(dt_context *ctx, const question *asked)
{
    refuse_usage(ctx, "--%s=%s: expected %s", asked->name, asked->given->value, kinds[asked->kind].expected);
}

int64_t dt_option_int(dt_context *ctx, const char *name, int64_t value, const char *help)
{
    char fallback[32];
    int64_t result = value;
    snprintf(fallback, sizeof fallback, "%" PRId64, value);
    const question *asked = ask(ctx, KIND_INT, name, fallback, help);
    const char *text = answer(ctx, asked);
    if (text && !read_int(text, &result)) refuse(ctx, asked);
    return result;
}

/* The shortest text that reads back as the same number. */
static void float_text(char *text, size_t bytes, double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, bytes, "%.*g", digits, value);
        if (!(strtod(text, NULL) < value) && !(strtod(text, NULL) > value)) return;
    }
}

double dt_option_float(dt_context *ctx, const char *name, double value, const char *help)
{
    char fallback[32];
    double result = value;
    float_text(fallback, sizeof fallback, value);
    const question *asked = ask(ctx, KIND_FLOAT, name, fallback, help);
    const char *text = answer(ctx, asked);
    if (text && !read_float(text, &result)) refuse(ctx, asked);
    return result;
}

const char *dt_option_text(dt_context *ctx, const char *name, const char *value, const char *help)
{
    const question *asked = ask(ctx, KIND_TEXT, name, value, help);
    const char *text = answer(ctx, asked);
    if (text) return text;
    return asked ? asked->fallback : value;
}

bool dt_option_flag(dt_context *ctx, const char *name, const char *help)
{
    bool result = false;
    const question *asked = ask(ctx, KIND_FLAG, name, NULL, help);
    if (asked && asked->given && !read_flag(asked->given->value, &result)) refuse(ctx, asked);
    return result;
}

/* ---- all asked ------------------------------------------------------------------------------------------------- */

static void refuse_unknown(dt_context *ctx, const char *name)
{
    char known[1024] = "";
    for (const question *at = ctx->options->questions; at; at = at->next) list_add(known, sizeof known, at->name);
    refuse_usage(ctx, "unknown option --%s; known: %s", name, *known ? known : "none");
}

bool dt_options_done(dt_context *ctx)
{
    if (dti_failed(ctx) || ctx->options->help_given) return false;
    for (const argument *at = ctx->options->arguments; at; at = at->next)
        if (!question_find(ctx->options, at->name)) {
            refuse_unknown(ctx, at->name);
            return false;
        }
    return true;
}

/* One option: what to write, what it does, then its variable and its default where it has them. */
static void help_line(FILE *out, const char *name, option_kind kind, const char *help, const char *variable,
                      const char *fallback)
{
    int width = 24 - (int)strlen(kinds[kind].shown);
    int used = fprintf(out, "  --%s", name);
    fprintf(out, "%s", kinds[kind].shown);
    fprintf(out, "%*s  %s", used < width ? width - used : 0, "", help ? help : "");
    if (variable) fprintf(out, " [%s]", variable);
    if (fallback) fprintf(out, " (default %s)", fallback);
    fputc('\n', out);
}

static void help_write(FILE *out, const dti_options *options)
{
    fputs("options of the library, each with its variable:\n", out);
    for (int i = 0; i < DTI_OPTION_COUNT; i++)
        help_line(out, own_rows[i].name, own_rows[i].kind, own_rows[i].help, own_rows[i].variable,
                  own_rows[i].fallback);
    fputs("options of the program:\n", out);
    for (const question *at = options->questions; at; at = at->next)
        help_line(out, at->name, at->kind, at->help, NULL, at->fallback);
    help_line(out, "help", KIND_FLAG, "show this text", NULL, NULL);
}

const char *dt_options_help(dt_context *ctx)
{
    size_t bytes;
    if (!ctx) return "";
    free(ctx->options->help);
    ctx->options->help = NULL;
    FILE *out = open_memstream(&ctx->options->help, &bytes);
    if (out) help_write(out, ctx->options);
    if (!out || fclose(out) != 0) dti_fail(ctx, DT_ERR_MEMORY, "out of memory for the text of --help");
    return ctx->options->help ? ctx->options->help : "";
}
