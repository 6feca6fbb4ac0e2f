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

/* Run one row as case i. */
static bool run(int i, const test_row *row)
{
    atomic_store(&failures, 0);
    row->run();
    bool passed = atomic_load(&failures) == 0;
    printf("%s %d - %s.%s\n", passed ? "ok" : "not ok", i, the_suite.name, row->name);
    return passed;
}

static const test_row *find(const char *name)
{
    for (int i = 0; i < the_suite.n; i++)
        if (strcmp(the_suite.rows[i].name, name) == 0) return &the_suite.rows[i];
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? argc - 1 : the_suite.n, passed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a row that crashes leaves the lines before it */
    printf("1..%d\n", n > 0 ? n : 1);
    if (n == 0) printf("not ok 1 - %s has no rows\n", the_suite.name);
    for (int i = 0; i < n; i++) {
        const test_row *row = argc > 1 ? find(argv[i + 1]) : &the_suite.rows[i];
        if (row) passed += run(i + 1, row);
        else printf("not ok %d - %s.%s: no such row\n", i + 1, the_suite.name, argv[i + 1]);
    }
    return n > 0 && passed == n ? 0 : 1;
}
