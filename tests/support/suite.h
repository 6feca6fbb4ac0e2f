/* SPDX-License-Identifier: Apache-2.0
 *
 * A test suite is one constant table, run by either of two runners: Criterion (runner_criterion.c: a process per row)
 * and a plain main (runner_plain.c: for sanitizers and launchers). A file defines `const suite the_suite` and nothing
 * of a runner. A suite whose rows are those of another table defines what runners ask instead. */
#ifndef SUITE_H
#define SUITE_H

#include <stdbool.h>

typedef struct test_row { const char *name; void (*run)(void); } test_row;
typedef struct suite { const char *name; const test_row *rows; int n; } suite;

extern const suite the_suite;

/* What runners ask; rows.c answers from the_suite. */
const char *suite_name(void);
int suite_count(void);
const char *suite_row(int i);      /* its name; lives as long as the process                                       */
void suite_run(int i);

/* Record a failed expectation of the running row; the row goes on. */
void test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* expect(condition, "what it means: %d", value): true if it holds. */
#define expect(condition, ...) ((condition) ? true : (test_failed(__FILE__, __LINE__, __VA_ARGS__), false))

#endif
