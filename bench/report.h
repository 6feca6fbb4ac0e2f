/* SPDX-License-Identifier: Apache-2.0
 *
 * What a benchmark prints: sections of rows, as aligned text or as JSON. The first row of a section names its
 * columns. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bench_cell {
    const char *name;              /* of the column                                                                */
    const char *text;              /* NULL: a number                                                               */
    double number;
    int digits;                    /* behind the point                                                             */
} bench_cell;

typedef struct bench_report { FILE *out; bool json; int sections, rows; } bench_report;

void bench_begin(bench_report *report, bool json);
/* key: for machines; title: a line or more for people. */
void bench_section(bench_report *report, const char *key, const char *title);
void bench_row(bench_report *report, const bench_cell *cells, int n);
void bench_end(bench_report *report);

/* ---- time -------------------------------------------------------------------------------------------------------- */

double bench_now_ns(void);
/* Sorts; the middle one. */
double bench_median(double *v, int n);
/* The CPU's model as the system names it; how many CPUs are on line. */
const char *bench_cpu(void);
int bench_cpus(void);

#endif
