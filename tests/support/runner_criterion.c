/* SPDX-License-Identifier: Apache-2.0
 *
 * A suite under Criterion: a process per row. The parameter is the row's index, as parameters must hold no pointers.
 * Criterion calls all rows suite::row; so every message here begins with "suite.row: ". */
#include "suite.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { TIMEOUT_S = 240 };

static char row_name[128]; /* "suite.row" of the running row */

void test_failed(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cr_expect_fail("%s: %s:%d: %s", row_name, file, line, text);
}

/* A row that crashes is recorded by name, which Criterion would not do. This may hang in a broken heap: hence alarm. */
static void crashed(int signal_number)
{
    alarm(2);
    cr_expect_fail("%s: crashed by signal %d", row_name, signal_number);
    _exit(1);
}

static void watch_crashes(void)
{
    static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    struct sigaction action = { .sa_handler = crashed, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

static void free_rows(struct criterion_test_params *params) { cr_free(params->params); }

/* At least one: the first of no rows fails. */
ParameterizedTestParameters(suite, row)
{
    size_t n = suite_count() > 0 ? (size_t)suite_count() : 1;
    int *rows = cr_malloc(n * sizeof *rows);
    for (size_t i = 0; i < n; i++) rows[i] = (int)i;
    return cr_make_param_array(int, rows, n, free_rows);
}

ParameterizedTest(int *index, suite, row, .timeout = TIMEOUT_S)
{
    cr_assert_lt(*index, suite_count(), "%s has no rows", suite_name());
    snprintf(row_name, sizeof row_name, "%s.%s", suite_name(), suite_row(*index));
    watch_crashes();
    suite_run(*index);
}
