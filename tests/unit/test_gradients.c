/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of every row that has one: on one rank as differences say, on every mesh and placement as on one rank. A
 * row of this suite is such a row of the op table; calls are found from it (calls.h). One for which no call is found,
 * or none that could be held against differences, fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/judge_gradients.h"
#include "suite.h"

static const char *const meshes[] = { "x=2", "x=3", "x=4", "x=2,y=2" };

typedef struct effort { int calls; judge_effort judge; } effort;

static const effort brief = { 6, { 12, 6, 4, 20, false } };
static const effort whole = { 20, { 400, 100, 100, 500, false } };

static const dt_op *row(int i)
{
    for (int k = 0; k < dt_op_count(); k++)
        if (dt_op_at(k)->gradient && i-- == 0) return dt_op_at(k);
    return NULL;
}

const char *suite_name(void) { return "gradients"; }

int suite_count(void)
{
    int n = 0;
    while (row(n)) n++;
    return n;
}

const char *suite_row(int i)
{
    static _Thread_local char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row(i)->head, "("), row(i)->head);
    return name;
}

void suite_run(int i)
{
    const effort *e = getenv("DT_TEST_LONG") ? &whole : &brief;
    gradient_calls calls = gradients_make(row(i), e->calls);
    judge_count all = { 0 };
    expect(calls.count > 0, "%s: no call of it has a gradient", suite_row(i));
    int64_t compared = gradients_differ(&calls);
    expect(compared > 0, "%s: no call of it could be compared with differences", suite_row(i));
    for (int m = 0; m < DT_COUNT(meshes) && calls.count; m++) {
        judge_count n = gradients_judge(&calls, meshes[m], &e->judge);
        expect(n.cases > 0, "%s: no case on %s", suite_row(i), meshes[m]);
        all.cases += n.cases;
        all.summed += n.summed;
    }
    printf("# %s: %lld cases of %d calls, %lld within a bound; %lld elements by differences\n", suite_row(i),
           (long long)all.cases, calls.count, (long long)all.summed, (long long)compared);
    gradients_free(&calls);
}
