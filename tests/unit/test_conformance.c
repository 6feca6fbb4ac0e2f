/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the op table gives on every mesh and placement what it gives on one rank. A row of this suite is a row
 * of that table; calls are found from the row (calls.h), placed (placed.h) and judged (judge.h). A row for which no
 * call is found fails. What placements a call is given, and which of them are executed, docs/decisions.md says. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/calls.h"
#include "ops/judge.h"
#include "suite.h"

/* Topologies are named, for prices hang on them: without data they would be flat, with data the machine's. */
static const struct { const char *mesh, *topology; } meshes[] = {
    { "x=2", "rank=6" }, { "x=3", "rank=6" }, { "x=4", "node=2,gpu=3" }, { "x=2,y=2", "rank=6" },
    { "x=2,y=3", "node=2,gpu=3" },
};

typedef struct effort { int calls; judge_effort judge; } effort;

/* Where threads are watched a few calls of each row do: whether one rank writes what another reads hangs on no
 * placement. */
#ifdef __SANITIZE_THREAD__
static const effort brief = { 2, { 6, 6, 3, 8, false } }, whole = { 10, { 24, 24, 12, 60, false } };
#else
static const effort brief = { 10, { 24, 24, 12, 60, false } };
static const effort whole = { 24, { 400, INT_MAX, INT_MAX, 2000, true } };
#endif

const char *suite_name(void) { return "conformance"; }
int suite_count(void) { return dt_op_count(); }

const char *suite_row(int i)
{
    static _Thread_local char name[64];
    const char *head = dt_op_at(i)->head;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(head, "("), head);
    return name;
}

void suite_run(int i)
{
    const effort *e = getenv("DT_TEST_LONG") ? &whole : &brief;
    op_calls calls = calls_make(dt_op_at(i), e->calls);
    judge_count all = { 0 };
    expect(calls.count > 0, "%s: no call of it conforms to its row", suite_row(i));
    for (int m = 0; m < DT_COUNT(meshes) && calls.count; m++) {
        setenv("DT_TOPOLOGY", meshes[m].topology, 1);
        judge_count n = judge(&calls, meshes[m].mesh, &e->judge);
        expect(n.cases > 0, "%s: no case on %s", suite_row(i), meshes[m].mesh);
        all.walked += n.walked;
        all.cases += n.cases;
        all.moved += n.moved;
        all.summed += n.summed;
    }
    unsetenv("DT_TOPOLOGY");
    printf("# %s: %d calls, %lld combinations of placements, %lld executed, %lld redistributed, %lld within a bound\n",
           suite_row(i), calls.count, (long long)all.walked, (long long)all.cases, (long long)all.moved,
           (long long)all.summed);
    calls_free(&calls);
}
