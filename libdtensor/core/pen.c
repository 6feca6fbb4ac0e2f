/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pen.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dti_put(dti_pen *pen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = pen->at < pen->room ? pen->room - pen->at : 0;
    int wrote = vsnprintf(room ? pen->text + pen->at : NULL, room, format, args);
    va_end(args);
    if (wrote > 0) pen->at += (size_t)wrote;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 32 };

static const char *cell_end(const char *cell) { return cell + strcspn(cell, "\t\n"); }

static void measure_columns(const char *cells, int *widths)
{
    int column = 0;
    for (const char *cell = cells; *cell; cell = cell_end(cell) + 1) {
        int width = (int)(cell_end(cell) - cell);
        if (width > widths[column]) widths[column] = width;
        column = *cell_end(cell) == '\n' ? 0 : column + 1;
    }
}

void dti_put_columns(dti_pen *pen, const char *cells, const char *columns)
{
    int widths[MAX_COLUMNS] = { 0 }, column = 0, gap = 0; /* gap: blanks due before the next cell, none at line ends */
    measure_columns(cells, widths);
    for (const char *cell = cells; *cell; cell = cell_end(cell) + 1) {
        int width = (int)(cell_end(cell) - cell), pad = widths[column] - width;
        bool right = columns[column] == 'r';
        if (width) dti_put(pen, "%*s%.*s", gap + (right ? pad : 0), "", width, cell);
        gap = width ? (right ? 2 : pad + 2) : gap + pad + 2;
        column++;
        if (*cell_end(cell) == '\t') continue;
        dti_put(pen, "\n");
        column = gap = 0;
    }
}

/* ---- in memory of its own ---------------------------------------------------------------------------------------- */

char *dti_written(dti_put_fn put, const void *arg)
{
    dti_pen measure = { NULL, 0, 0 };
    put(&measure, arg);
    char *text = malloc(measure.at + 1);
    dti_pen write = { text, measure.at + 1, 0 };
    if (!text) return NULL;
    text[0] = '\0';
    put(&write, arg);
    return text;
}
