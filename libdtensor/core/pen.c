/* SPDX-License-Identifier: Apache-2.0
 *
 * What most texts are made of is written here: words, characters and whole numbers without a width. From the first
 * directive on that is another, the C library writes the rest. */
#include "core/pen.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As snprintf does it: what does not fit is left out, and there is an end where there is room. */
static void put_text(dti_pen *pen, const char *text, size_t n)
{
    size_t room = pen->at < pen->room ? pen->room - pen->at - 1 : 0, fits = n < room ? n : room;
    if (fits) memcpy(pen->text + pen->at, text, fits);
    if (pen->at < pen->room) pen->text[pen->at + fits] = '\0';
    pen->at += n;
}

void dti_put_word(dti_pen *pen, const char *word) { put_text(pen, word, strlen(word)); }

void dti_put_number(dti_pen *pen, int64_t number)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--at = '-';
    put_text(pen, at, (size_t)(digits + sizeof digits - at));
}

/* The directive that begins here, and *format behind it. false: one that is not written here. */
static bool put_directive(dti_pen *pen, const char **format, va_list *args)
{
    switch ((*format)[1]) {
    case 's': dti_put_word(pen, va_arg(*args, const char *)); break;
    case 'c': put_text(pen, (const char[]){ (char)va_arg(*args, int) }, 1); break;
    case 'd': dti_put_number(pen, va_arg(*args, int)); break;
    case 'l':
        if ((*format)[2] != 'l' || (*format)[3] != 'd') return false;
        dti_put_number(pen, va_arg(*args, long long));
        *format += 2;
        break;
    default: return false;
    }
    *format += 2;
    return true;
}

DT_PRINTF(2, 0)
static void put_rest(dti_pen *pen, const char *format, va_list args)
{
    size_t room = pen->at < pen->room ? pen->room - pen->at : 0;
    int wrote = vsnprintf(room ? pen->text + pen->at : NULL, room, format, args);
    if (wrote > 0) pen->at += (size_t)wrote;
}

void dti_put(dti_pen *pen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    do {
        size_t plain = 0; /* mostly a few characters */
        while (format[plain] && format[plain] != '%') plain++;
        put_text(pen, format, plain);
        format += plain;
    } while (*format && put_directive(pen, &format, &args));
    if (*format) put_rest(pen, format, args);
    va_end(args);
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
