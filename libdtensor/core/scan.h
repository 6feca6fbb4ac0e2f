/* SPDX-License-Identifier: Apache-2.0
 *
 * A cursor over text in one of the notations. Every parser reads through it, so every parse error points at its column
 * in the same words: mesh "dp=x": expected a size, got "x" at column 4. Columns count bytes from 1; at the end of the
 * text it is: got the end at column 4. No white space is skipped but what dti_scan_space asks for. */
#ifndef DTI_SCAN_H
#define DTI_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include <dtensor/context.h>

typedef struct dti_scan {
    dt_context *ctx;
    const char *what;              /* "mesh", "placements", "spec": what is being read, for the message            */
    const char *text, *at;         /* the whole text; where the cursor stands                                      */
} dti_scan;

typedef struct dti_word { const char *text; int n; } dti_word; /* part of a text, not ended by 0                   */

/* Take one character if it is next. */
bool dti_scan_char(dti_scan *scan, char c);
/* Take a fixed text if it is next and, where it ends in a letter or digit, no letter, digit or "_" follows. */
bool dti_scan_text(dti_scan *scan, const char *text);
/* Take blanks and tabs; how many. */
int dti_scan_space(dti_scan *scan);
/* letter {letter|digit|"_"} {"." int}, at most 63 characters. false and the error otherwise. */
bool dti_scan_name(dti_scan *scan, dti_word *name);
/* Decimal digits, 0 .. INT64_MAX. false and the error, which names what was expected, otherwise. */
bool dti_scan_int(dti_scan *scan, const char *expected, int64_t *value);
/* The end of the text. false and the error, naming what else could stand here, otherwise. */
bool dti_scan_end(dti_scan *scan, const char *expected);
/* Fail with DT_ERR_PARSE at the cursor: expected..., got what stands there. Returns false. */
bool dti_scan_expected(dti_scan *scan, const char *expected);
/* Fail with a status and a message of its own; the text and the column of at are added. Returns false. */
bool dti_scan_fail(dti_scan *scan, dt_status status, const char *at, const char *format, ...) DT_PRINTF(4, 5);

bool dti_word_is(dti_word word, const char *text);

#endif
