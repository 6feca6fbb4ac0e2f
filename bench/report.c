/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as text or JSON, the clock, the name of the machine. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void bench_begin(bench_report *report, bool json)
{
    *report = (bench_report){ stdout, json, 0, 0 };
    if (json) fprintf(report->out, "{\"cpu\": \"%s\", \"cpus\": %d", bench_cpu(), bench_cpus());
    else fprintf(report->out, "CPU: %s, %d of them\n", bench_cpu(), bench_cpus());
}

static void end_section(bench_report *report)
{
    if (report->json && report->sections) fprintf(report->out, "\n]");
}

void bench_section(bench_report *report, const char *key, const char *title)
{
    end_section(report);
    if (report->json) fprintf(report->out, ",\n\"%s\": [", key);
    else fprintf(report->out, "\n%s\n\n", title);
    report->sections++;
    report->rows = 0;
}

/* A column is as wide as its name, texts wider. */
static int width(const bench_cell *cell)
{
    int least = cell->text ? 10 : 6, name = (int)strlen(cell->name);
    return name > least ? name : least;
}

static void put_names(const bench_report *report, const bench_cell *cells, int n)
{
    for (int i = 0; i < n; i++) {
        bool last = i + 1 == n;
        fprintf(report->out, cells[i].text ? "%-*s%s" : "%*s%s", last && cells[i].text ? 0 : width(&cells[i]),
                cells[i].name, last ? "\n" : "  ");
    }
}

static void put_cell(const bench_report *report, const bench_cell *cell, bool last)
{
    if (cell->text) fprintf(report->out, "%-*s%s", last ? 0 : width(cell), cell->text, last ? "" : "  ");
    else fprintf(report->out, "%*.*f%s", width(cell), cell->digits, cell->number, last ? "" : "  ");
}

static void put_member(const bench_report *report, const bench_cell *cell, bool first)
{
    fprintf(report->out, first ? "\"%s\": " : ", \"%s\": ", cell->name);
    if (cell->text) fprintf(report->out, "\"%s\"", cell->text);
    else fprintf(report->out, "%.*f", cell->digits, cell->number);
}

void bench_row(bench_report *report, const bench_cell *cells, int n)
{
    if (report->json) fprintf(report->out, report->rows ? ",\n  {" : "\n  {");
    else if (report->rows == 0) put_names(report, cells, n);
    for (int i = 0; i < n; i++) {
        if (report->json) put_member(report, &cells[i], i == 0);
        else put_cell(report, &cells[i], i + 1 == n);
    }
    fprintf(report->out, report->json ? "}" : "\n");
    report->rows++;
}

void bench_end(bench_report *report)
{
    end_section(report);
    if (report->json) fprintf(report->out, "\n}\n");
}

double bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

static void read_cpu(char *name, int bytes)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !*name && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        colon[strcspn(colon, "\n")] = 0;
        snprintf(name, (size_t)bytes, "%s", colon + 2);
    }
    if (f) fclose(f);
}

const char *bench_cpu(void)
{
    static char name[128];
    if (!*name) read_cpu(name, (int)sizeof name);
    return *name ? name : "unknown";
}

int bench_cpus(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }
