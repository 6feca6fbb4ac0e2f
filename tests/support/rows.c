/* SPDX-License-Identifier: Apache-2.0
 *
 * What runners ask of a suite that is a constant table. */
#include "suite.h"

const char *suite_name(void) { return the_suite.name; }
int suite_count(void) { return the_suite.n; }
const char *suite_row(int i) { return the_suite.rows[i].name; }
void suite_run(int i) { the_suite.rows[i].run(); }
