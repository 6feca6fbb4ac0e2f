/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: what is stripped from a command line, how values read, what is refused and in which words, --help, and the
 * DT_* variables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "suite.h"

enum { MAX_ARGS = 16 };

/* A command line: words after the program's name, ended by NULL. */
typedef struct line { int argc; char *words[MAX_ARGS + 2], **argv; } line;

#define OWN                                                                                                            \
    "known: --dt-ranks, --dt-backend, --dt-dry, --dt-timeout, --dt-bind, --dt-mesh, --dt-topology, --dt-small, --dt-log"
#define LINE(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const *const no_words = (const char *const[]){ NULL };

static dt_status read_line(dt_context *ctx, line *l, const char *const *words)
{
    static char name[] = "program";
    *l = (line){ .argc = 1, .words = { name } };
    for (; *words; words++) l->words[l->argc++] = (char *)(uintptr_t)*words;
    l->argv = l->words;
    return dt_options_read(ctx, &l->argc, &l->argv);
}

/* A context that has read a command line; the variables are as the test set them. */
static dt_context *begin(const char *const *words)
{
    line l;
    dt_context *ctx = dt_context_dry(4);
    read_line(ctx, &l, words);
    return ctx;
}

static void clear_variables(void)
{
    static const char *const names[] = { "DT_RANKS", "DT_BACKEND", "DT_DRY", "DT_TIMEOUT", "DT_BIND",
                                         "DT_MESH", "DT_TOPOLOGY", "DT_SMALL", "DT_LOG" };
    for (int i = 0; i < DT_COUNT(names); i++) unsetenv(names[i]);
}

static void expect_error(const dt_context *ctx, const char *message)
{
    expect(dt_context_status(ctx) == DT_ERR_ARG, "status %d, want %s", (int)dt_context_status(ctx), message);
    expect(strcmp(dt_context_error(ctx), message) == 0, "got  %s\n# want %s", dt_context_error(ctx), message);
}

static void expect_line(const line *l, const char *const *words)
{
    int n = 1;
    for (; words[n - 1]; n++)
        expect(n < l->argc && strcmp(l->argv[n], words[n - 1]) == 0, "word %d is %s, want %s", n,
               n < l->argc ? l->argv[n] : "none", words[n - 1]);
    expect(l->argc == n, "%d words, want %d", l->argc, n);
    expect(l->argv[l->argc] == NULL, "the line does not end in NULL");
    expect(strcmp(l->argv[0], "program") == 0, "the name of the program is %s", l->argv[0]);
}

/* ---- reading a command line ------------------------------------------------------------------------------------- */

typedef struct strip_row { const char *given[10], *left[10]; } strip_row;

static void own_options_are_stripped(void)
{
    static const strip_row lines[] = {
        { { NULL }, { NULL } },
        { { "--dt-mesh=dp=2" }, { NULL } },
        { { "a", "--dt-mesh=dp=2", "--steps=3", "--dt-small=1", "b" }, { "a", "--steps=3", "b" } },
        { { "--x", "-y", "-", "word", "" }, { "--x", "-y", "-", "word", "" } },
        { { "--dt-log=none", "--", "--dt-mesh=a=2", "--dt-what" }, { "--", "--dt-mesh=a=2", "--dt-what" } },
        { { "--", "--dt-mesh" }, { "--", "--dt-mesh" } },
        { { "-dt-mesh=a=1", "dt-mesh=a=1", "--dtx" }, { "-dt-mesh=a=1", "dt-mesh=a=1", "--dtx" } },
        { { "--help", "--dt-log=none", "--help" }, { "--help", "--help" } },
    };
    clear_variables();
    for (int i = 0; i < DT_COUNT(lines); i++) {
        line l;
        dt_context *ctx = dt_context_dry(4);
        expect(read_line(ctx, &l, lines[i].given) == DT_OK, "line %d: %s", i, dt_context_error(ctx));
        expect_line(&l, lines[i].left);
        dt_context_destroy(&ctx);
    }
}

typedef struct refused_row { const char *given[6], *message; } refused_row;

static void refused_lines_stay_as_they_are(void)
{
    static const refused_row lines[] = {
        { { "--dt-mesh=a=4", "--dt-foo=1", "x" },
          "unknown option --dt-foo; " OWN },
        { { "--dt-", "x" }, "unknown option --dt-; " OWN },
        { { "--dt-meshes=a=4" }, "unknown option --dt-meshes; " OWN },
        { { "--dt-me=a=4" }, "unknown option --dt-me; " OWN },
        { { "a", "--dt-mesh", "b=4" }, "--dt-mesh: expected \"=\" and a value" },
        { { "--dt-log=loud", "--dt-mesh=a=4" }, "--dt-log=loud: expected none, warning, info or debug" },
        { { "--dt-log=" }, "--dt-log=: expected none, warning, info or debug" },
    };
    clear_variables();
    for (int i = 0; i < DT_COUNT(lines); i++) {
        line l;
        dt_context *ctx = dt_context_dry(4);
        expect(read_line(ctx, &l, lines[i].given) == DT_ERR_ARG, "line %d was taken", i);
        expect_error(ctx, lines[i].message);
        expect_line(&l, lines[i].given);
        expect(read_line(ctx, &l, LINE("--dt-small=1")) == DT_ERR_ARG && l.argc == 2, "a failed context reads nothing");
        dt_context_destroy(&ctx);
    }
}

static void lines_that_are_none(void)
{
    int argc = 0;
    char *words[] = { NULL }, **argv = words, **none = NULL;
    dt_context *ctx = dt_context_dry(1);
    expect(dt_options_read(ctx, &argc, &argv) == DT_OK && argc == 0, "an empty line");
    expect(dt_options_read(ctx, &argc, &none) == DT_ERR_ARG, "argv NULL");
    dt_context_clear(ctx);
    expect(dt_options_read(ctx, NULL, &argv) == DT_ERR_ARG, "argc NULL");
    dt_context_clear(ctx);
    expect(dt_options_read(ctx, &argc, NULL) == DT_ERR_ARG, "&argv NULL");
    expect(dt_options_read(NULL, &argc, &argv) == DT_ERR_ARG, "context NULL");
    dt_context_destroy(&ctx);
}

static void texts_are_copied(void)
{
    char mesh[] = "--dt-mesh=dp=4", out[] = "--out=file", name[] = "out", value[] = "none";
    dt_context *ctx = begin(LINE(mesh, out));
    const char *other = dt_option_text(ctx, "other", value, name);
    memset(mesh + 2, 'x', sizeof mesh - 3);
    memset(out + 2, 'x', sizeof out - 3);
    memset(value, 'x', sizeof value - 1);
    const char *text = dt_option_text(ctx, name, NULL, NULL);
    memset(name, 'x', sizeof name - 1);
    expect(strcmp(text, "file") == 0, "got %s", text);
    expect(strcmp(other, "none") == 0, "the default is %s", other);
    expect(strcmp(dti_option_value(ctx, DTI_OPTION_MESH), "dp=4") == 0, "mesh");
    expect(dt_options_done(ctx), "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

/* ---- the library's own ------------------------------------------------------------------------------------------ */

static void expect_own(dt_context *ctx, dti_option option, const char *wanted)
{
    const char *value = dti_option_value(ctx, option);
    expect(wanted ? value && strcmp(value, wanted) == 0 : !value, "option %d is %s, want %s", (int)option,
           value ? value : "NULL", wanted ? wanted : "NULL");
}

static void own_values_come_from_line_then_variable_then_default(void)
{
    clear_variables();
    dt_context *ctx = begin(no_words);
    expect_own(ctx, DTI_OPTION_MESH, NULL);
    expect_own(ctx, DTI_OPTION_TOPOLOGY, NULL);
    expect_own(ctx, DTI_OPTION_SMALL, "65536");
    expect_own(ctx, DTI_OPTION_LOG, "none");
    dt_context_destroy(&ctx);

    setenv("DT_MESH", "dp=4", 1);
    setenv("DT_TOPOLOGY", "node=2,gpu=2", 1);
    setenv("DT_SMALL", "128", 1);
    setenv("DT_LOG", "", 1); /* empty counts as not set */
    ctx = begin(LINE("--dt-mesh=tp=4", "--dt-mesh=tp=2"));
    setenv("DT_TOPOLOGY", "node=4", 1); /* too late for this context */
    expect_own(ctx, DTI_OPTION_MESH, "tp=2");
    expect_own(ctx, DTI_OPTION_TOPOLOGY, "node=2,gpu=2");
    expect_own(ctx, DTI_OPTION_SMALL, "128");
    expect_own(ctx, DTI_OPTION_LOG, "none");
    dt_context_destroy(&ctx);
    clear_variables();
}

typedef struct number_row { const char *option, *variable; int64_t min, value; const char *message; } number_row;

static void own_numbers(void)
{
    static const number_row numbers[] = {
        { NULL, NULL, 0, 65536, NULL },
        { "--dt-small=0", NULL, 0, 0, NULL },
        { "--dt-small=7", "x", 0, 7, NULL },
        { NULL, "9", 0, 9, NULL },
        { "--dt-small=0", NULL, 1, 65536, "--dt-small=0: expected an integer of at least 1" },
        { "--dt-small=abc", "9", 0, 65536, "--dt-small=abc: expected an integer of at least 0" },
        { "--dt-small=", NULL, 0, 65536, "--dt-small=: expected an integer of at least 0" },
        { NULL, "64k", 0, 65536, "DT_SMALL=64k: expected an integer of at least 0" },
        { NULL, "-1", 0, 65536, "DT_SMALL=-1: expected an integer of at least 0" },
    };
    for (int i = 0; i < DT_COUNT(numbers); i++) {
        const number_row *row = &numbers[i];
        clear_variables();
        if (row->variable) setenv("DT_SMALL", row->variable, 1);
        dt_context *ctx = begin(row->option ? LINE(row->option) : no_words);
        int64_t value = dti_option_number(ctx, DTI_OPTION_SMALL, row->min);
        expect(value == row->value, "row %d: %lld", i, (long long)value);
        if (row->message) expect_error(ctx, row->message);
        else expect(dt_context_status(ctx) == DT_OK, "row %d: %s", i, dt_context_error(ctx));
        dt_context_destroy(&ctx);
    }
    clear_variables();
}

static void collect(dt_log_level level, const char *text, void *arg)
{
    char *all = arg;
    snprintf(all + strlen(all), 64 - strlen(all), "%d%s", (int)level, text);
}

static void the_line_sets_the_log_level(void)
{
    char all[64] = "";
    clear_variables();
    setenv("DT_LOG", "debug", 1);
    dt_context *ctx = begin(LINE("--dt-log=warning"));
    expect(ctx->log_level == DT_LOG_WARNING && !ctx->log_fn, "level %d", (int)ctx->log_level);
    dt_context_logger(ctx, DT_LOG_DEBUG, collect, all);
    line l;
    read_line(ctx, &l, LINE("--dt-mesh=a=4"));
    expect(ctx->log_level == DT_LOG_DEBUG, "a line without --dt-log changed the level to %d", (int)ctx->log_level);
    read_line(ctx, &l, LINE("--dt-log=info"));
    dti_log(ctx, DT_LOG_INFO, "i");
    dti_log(ctx, DT_LOG_DEBUG, "d");
    expect(strcmp(all, "2i") == 0, "got %s", all);
    expect(read_line(ctx, &l, LINE("--dt-log=loud")) == DT_ERR_ARG && dt_context_clear(ctx) == DT_OK, "no level");
    expect(ctx->log_level == DT_LOG_INFO, "a refused level changed it to %d", (int)ctx->log_level);
    expect(strcmp(dti_option_value(ctx, DTI_OPTION_LOG), "info") == 0, "a refused level is kept");
    dt_context_destroy(&ctx);
    clear_variables();
}

/* ---- the program's ---------------------------------------------------------------------------------------------- */

typedef struct int_row { const char *given; int64_t value; const char *message; } int_row;

static void integers(void)
{
    static const int_row values[] = {
        { "--other=1", 20, NULL }, { "--steps=7", 7, NULL }, { "--steps=-7", -7, NULL }, { "--steps=+7", 7, NULL },
        { "--steps=9223372036854775807", INT64_MAX, NULL }, { "--steps=-9223372036854775808", INT64_MIN, NULL },
        { "--steps=abc", 20, "--steps=abc: expected an integer" },
        { "--steps=", 20, "--steps=: expected an integer" },
        { "--steps=7x", 20, "--steps=7x: expected an integer" },
        { "--steps=7 ", 20, "--steps=7 : expected an integer" },
        { "--steps= 7", 20, "--steps= 7: expected an integer" },
        { "--steps=1.5", 20, "--steps=1.5: expected an integer" },
        { "--steps=0x10", 20, "--steps=0x10: expected an integer" },
        { "--steps=9223372036854775808", 20, "--steps=9223372036854775808: expected an integer" },
        { "--steps=-9223372036854775809", 20, "--steps=-9223372036854775809: expected an integer" },
        { "--steps=a\nb", 20, "--steps=a b: expected an integer" },
        { "--steps", 20, "--steps: expected \"=\" and an integer" },
        { "--step=7", 20, NULL }, { "--steps2=7", 20, NULL }, { "-steps=7", 20, NULL },
    };
    for (int i = 0; i < DT_COUNT(values); i++) {
        dt_context *ctx = begin(LINE(values[i].given));
        int64_t value = dt_option_int(ctx, "steps", 20, "training steps");
        expect(value == values[i].value, "%s: %lld", values[i].given, (long long)value);
        if (values[i].message) expect_error(ctx, values[i].message);
        else expect(dt_context_status(ctx) == DT_OK, "%s: %s", values[i].given, dt_context_error(ctx));
        dt_context_destroy(&ctx);
    }
}

typedef struct float_row { const char *given; double value; const char *message; } float_row;

static void floats(void)
{
    static const float_row values[] = {
        { "--other=1", 0.25, NULL }, { "--lr=3e-3", 3e-3, NULL }, { "--lr=-1", -1, NULL }, { "--lr=.5", 0.5, NULL },
        { "--lr=1e-400", 0, NULL }, { "--lr=inf", INFINITY, NULL },
        { "--lr=1e400", 0.25, "--lr=1e400: expected a number" },
        { "--lr=-1e400", 0.25, "--lr=-1e400: expected a number" },
        { "--lr=fast", 0.25, "--lr=fast: expected a number" },
        { "--lr=", 0.25, "--lr=: expected a number" },
        { "--lr=1,5", 0.25, "--lr=1,5: expected a number" },
        { "--lr=\t1", 0.25, "--lr= 1: expected a number" },
        { "--lr", 0.25, "--lr: expected \"=\" and a number" },
    };
    for (int i = 0; i < DT_COUNT(values); i++) {
        dt_context *ctx = begin(LINE(values[i].given));
        double value = dt_option_float(ctx, "lr", 0.25, "peak learning rate");
        expect(!(value < values[i].value) && !(value > values[i].value), "%s: %g", values[i].given, value);
        if (values[i].message) expect_error(ctx, values[i].message);
        else expect(dt_context_status(ctx) == DT_OK, "%s: %s", values[i].given, dt_context_error(ctx));
        dt_context_destroy(&ctx);
    }
}

static void texts(void)
{
    dt_context *ctx = begin(LINE("--a=x=y", "--b=", "--c"));
    expect(strcmp(dt_option_text(ctx, "a", "-", ""), "x=y") == 0, "only the first = counts");
    expect(strcmp(dt_option_text(ctx, "b", "-", ""), "") == 0, "an empty text is a text");
    expect(strcmp(dt_option_text(ctx, "d", "-", ""), "-") == 0, "the default");
    expect(dt_option_text(ctx, "e", NULL, "") == NULL, "no default");
    expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    expect(strcmp(dt_option_text(ctx, "c", "-", ""), "-") == 0, "the default");
    expect_error(ctx, "--c: expected \"=\" and a text");
    dt_context_destroy(&ctx);
}

typedef struct flag_row { const char *given; bool value; const char *message; } flag_row;

static void flags(void)
{
    static const flag_row values[] = {
        { "--other", false, NULL }, { "--fast", true, NULL }, { "--fast=true", true, NULL },
        { "--fast=false", false, NULL }, { "--fast=1", false, "--fast=1: expected true or false" },
        { "--fast=", false, "--fast=: expected true or false" },
        { "--fast=True", false, "--fast=True: expected true or false" },
    };
    for (int i = 0; i < DT_COUNT(values); i++) {
        dt_context *ctx = begin(LINE(values[i].given));
        bool value = dt_option_flag(ctx, "fast", "skip checks");
        expect(value == values[i].value, "%s: %d", values[i].given, value);
        if (values[i].message) expect_error(ctx, values[i].message);
        else expect(dt_context_status(ctx) == DT_OK, "%s: %s", values[i].given, dt_context_error(ctx));
        dt_context_destroy(&ctx);
    }
}

static void the_last_one_wins(void)
{
    dt_context *ctx = begin(LINE("--steps=abc", "--fast", "--steps=5", "--fast=false", "--", "--steps=6"));
    expect(dt_option_int(ctx, "steps", 20, "") == 5, "steps");
    expect(!dt_option_flag(ctx, "fast", ""), "fast");
    expect(dt_options_done(ctx), "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void asking_again(void)
{
    dt_context *ctx = begin(LINE("--steps=5"));
    expect(dt_option_int(ctx, "steps", 20, "old") == 5 && dt_option_int(ctx, "steps", 30, "new") == 5, "given");
    expect(dt_option_int(ctx, "n", 20, "") == 20 && dt_option_int(ctx, "n", 30, "") == 30, "each its default");
    const char *first = dt_option_text(ctx, "t", "one", ""), *second = dt_option_text(ctx, "t", "two", "");
    expect(strcmp(first, "one") == 0 && strcmp(second, "two") == 0, "%s, %s", first, second);
    size_t total = ctx->arena.total;
    for (int i = 0; i < 10000; i++) dt_option_int(ctx, "n", 30, "");
    expect(ctx->arena.total == total, "asking takes memory");
    const char *help = dt_options_help(ctx), *at = strstr(help, "--steps");
    expect(at && !strstr(at + 1, "--steps") && strstr(help, "new") && !strstr(help, "old"), "listed once:\n%s", help);
    dt_context_destroy(&ctx);
}

static void names_that_cannot_be_asked(void)
{
    static const char *const names[] = { "", "dt-mesh", "a=b", "a b", "a\n", NULL };
    for (int i = 0; i < DT_COUNT(names); i++) {
        dt_context *ctx = begin(LINE("--a=b"));
        expect(dt_option_int(ctx, names[i], 3, "") == 3, "the default");
        expect(dt_context_status(ctx) == DT_ERR_ARG, "%s was taken", names[i] ? names[i] : "NULL");
        expect(strncmp(dt_context_error(ctx), "option \"", 8) == 0, "got %s", dt_context_error(ctx));
        expect(strcmp(dt_option_text(ctx, names[i], "d", ""), "d") == 0, "the default");
        expect(!dt_option_flag(ctx, names[i], ""), "false");
        dt_context_destroy(&ctx);
    }
}

static void a_failed_context_still_answers(void)
{
    dt_context *ctx = begin(LINE("--steps=5", "--lr=fast", "--out=file", "--fast"));
    dt_context_fail(ctx, DT_ERR_IO, "first");
    expect(dt_option_int(ctx, "steps", 20, "") == 5 && dt_option_int(ctx, "n", 20, "") == 20, "integers");
    expect(dt_option_float(ctx, "lr", 2, "") > 1, "floats");
    expect(strcmp(dt_option_text(ctx, "out", "-", ""), "file") == 0, "texts");
    expect(dt_option_flag(ctx, "fast", ""), "flags");
    expect(strcmp(dt_context_error(ctx), "first") == 0, "got %s", dt_context_error(ctx));
    expect(!dt_options_done(ctx), "the program should return");
    dt_context_destroy(&ctx);
}

static void no_context(void)
{
    expect(dt_option_int(NULL, "a", 3, "") == 3 && dt_option_float(NULL, "a", 3, "") > 2, "numbers");
    expect(strcmp(dt_option_text(NULL, "a", "d", ""), "d") == 0 && !dt_option_flag(NULL, "a", ""), "text and flag");
    expect(!dt_options_done(NULL) && *dt_options_help(NULL) == '\0', "nothing to go on with");
}

/* ---- all asked -------------------------------------------------------------------------------------------------- */

static void done_refuses_what_nothing_declares(void)
{
    dt_context *ctx = begin(LINE("--steps=3", "--foo=1"));
    dt_option_int(ctx, "steps", 20, "");
    dt_option_flag(ctx, "fast", "");
    expect(!dt_options_done(ctx), "done");
    expect_error(ctx, "unknown option --foo; known: --steps, --fast");
    dt_context_clear(ctx);
    dt_option_text(ctx, "foo", "", "");
    expect(dt_options_done(ctx), "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void done_without_any_option(void)
{
    dt_context *ctx = begin(LINE("--foo"));
    expect(!dt_options_done(ctx), "done");
    expect_error(ctx, "unknown option --foo; known: none");
    dt_context_destroy(&ctx);
    ctx = begin(LINE("word", "-x", "--", "--foo"));
    expect(dt_options_done(ctx), "%s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    ctx = dt_context_dry(1);
    expect(dt_options_done(ctx), "a context that read no line: %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void done_with_very_many_options(void)
{
    char name[32];
    dt_context *ctx = begin(LINE("--foo"));
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "option-number-%d", i);
        dt_option_int(ctx, name, i, name);
    }
    expect(!dt_options_done(ctx), "done");
    expect(strncmp(dt_context_error(ctx), "unknown option --foo; known: --option-number-0, ", 48) == 0, "got %s",
           dt_context_error(ctx));
    expect(strstr(dt_options_help(ctx), "option-number-499"), "--help lists all");
    dt_context_destroy(&ctx);
}

static void help_is_asked_for(void)
{
    dt_context *ctx = begin(LINE("--help", "--foo"));
    expect(!dt_options_done(ctx), "done");
    expect(dt_context_status(ctx) == DT_OK, "help is no error: %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    ctx = begin(LINE("--", "--help"));
    expect(dt_options_done(ctx), "words after -- are no options");
    dt_context_destroy(&ctx);
}

/* Does one line of the help hold all of these, in this order? */
static bool help_has(const char *help, const char *const *words)
{
    for (; *help; help += strcspn(help, "\n"), help += *help == '\n') {
        const char *at = help, *end = help + strcspn(help, "\n");
        int i = 0;
        for (; words[i] && (at = strstr(at, words[i])) != NULL && at < end; i++) at += strlen(words[i]);
        if (!words[i]) return true;
    }
    return false;
}

static void help_lists_options_with_variables_and_defaults(void)
{
    static const char *const lines[][6] = {
        { "--dt-mesh=", "sizes of the mesh dims, dp=2,tp=4", "DT_MESH" },
        { "--dt-topology=", "where ranks stand, node=2,gpu=8", "DT_TOPOLOGY" },
        { "--dt-small=", "bytes of a rank's part below which latency alone chooses the plan", "DT_SMALL", "65536" },
        { "--dt-log=", "none, warning, info or debug", "DT_LOG", "none" },
        { "--steps=INT", "training steps", "(default 20)" },
        { "--lr=FLOAT", "peak learning rate", "(default 0.003)" },
        { "--third=FLOAT", "a third", "(default 0.3333333333333333)" },
        { "--out=TEXT", "where to", "(default file)" },
        { "--fast", "skip checks" },
        { "--an-option-whose-name-is-very-long=TEXT", "  still apart" },
        { "--help", "show this text" },
    };
    clear_variables();
    dt_context *ctx = begin(LINE("--steps=7", "--help"));
    dt_option_int(ctx, "steps", 20, "training steps");
    dt_option_float(ctx, "lr", 3e-3, "peak learning rate");
    dt_option_float(ctx, "third", 1.0 / 3, "a third");
    dt_option_text(ctx, "out", "file", "where to");
    dt_option_text(ctx, "none", NULL, NULL);
    dt_option_flag(ctx, "fast", "skip checks");
    dt_option_text(ctx, "an-option-whose-name-is-very-long", NULL, "still apart");
    const char *help = dt_options_help(ctx);
    for (int i = 0; i < DT_COUNT(lines); i++) expect(help_has(help, lines[i]), "no %s in\n%s", lines[i][0], help);
    expect(!help_has(help, LINE("--fast=")) && !help_has(help, LINE("--fast", "default")), "a flag:\n%s", help);
    expect(!help_has(help, LINE("--dt-mesh", "default")), "no default:\n%s", help);
    expect(strstr(help, "--dt-log") < strstr(help, "--steps"), "the library's first:\n%s", help);
    expect(help[strlen(help) - 1] == '\n', "ends its last line");
    dt_context_destroy(&ctx);
}

static void help_may_be_asked_again(void)
{
    dt_context *ctx = begin(no_words);
    expect(!strstr(dt_options_help(ctx), "--later"), "not yet");
    dt_option_flag(ctx, "later", "");
    expect(strstr(dt_options_help(ctx), "--later"), "now");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "own_options_are_stripped", own_options_are_stripped },
    { "refused_lines_stay_as_they_are", refused_lines_stay_as_they_are },
    { "lines_that_are_none", lines_that_are_none },
    { "texts_are_copied", texts_are_copied },
    { "own_values_come_from_line_then_variable_then_default", own_values_come_from_line_then_variable_then_default },
    { "own_numbers", own_numbers },
    { "the_line_sets_the_log_level", the_line_sets_the_log_level },
    { "integers", integers },
    { "floats", floats },
    { "texts", texts },
    { "flags", flags },
    { "the_last_one_wins", the_last_one_wins },
    { "asking_again", asking_again },
    { "names_that_cannot_be_asked", names_that_cannot_be_asked },
    { "a_failed_context_still_answers", a_failed_context_still_answers },
    { "no_context", no_context },
    { "done_refuses_what_nothing_declares", done_refuses_what_nothing_declares },
    { "done_without_any_option", done_without_any_option },
    { "done_with_very_many_options", done_with_very_many_options },
    { "help_is_asked_for", help_is_asked_for },
    { "help_lists_options_with_variables_and_defaults", help_lists_options_with_variables_and_defaults },
    { "help_may_be_asked_again", help_may_be_asked_again },
};

const suite the_suite = { "options", rows, DT_COUNT(rows) };
