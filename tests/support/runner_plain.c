/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain main for a suite: rows run one after another in this process, results are TAP. Arguments are names of rows to
 * run, none: all. Exit status 1 if a row failed, is unknown, or there is none. */
#include "suite.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int failures; /* of the running row; ranks may be threads */

void test_failed(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    atomic_fetch_add(&failures, 1);
    printf("# %s:%d: %s\n", file, line, text);
}

/* Run a row as case i. */
static bool run(int i, int row)
{
    atomic_store(&failures, 0);
    suite_run(row);
    bool passed = atomic_load(&failures) == 0;
    printf("%s %d - %s.%s\n", passed ? "ok" : "not ok", i, suite_name(), suite_row(row));
    return passed;
}

static int find(const char *name)
{
    for (int i = 0; i < suite_count(); i++)
        if (strcmp(suite_row(i), name) == 0) return i;
    return -1;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? argc - 1 : suite_count(), passed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a row that crashes leaves the lines before it */
    printf("1..%d\n", n > 0 ? n : 1);
    if (n == 0) printf("not ok 1 - %s has no rows\n", suite_name());
    for (int i = 0; i < n; i++) {
        int row = argc > 1 ? find(argv[i + 1]) : i;
        if (row >= 0) passed += run(i + 1, row);
        else printf("not ok %d - %s.%s: no such row\n", i + 1, suite_name(), argv[i + 1]);
    }
    return n > 0 && passed == n ? 0 : 1;
}
