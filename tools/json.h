/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes one JSON value, a line per member. Knows no values; nesting and commas are its whole state. Texts are ASCII:
 * any other byte is written as U+FFFD, so what comes out is always valid. */
#ifndef DT_JSON_H
#define DT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MAX_DEPTH = 8 };

typedef enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_KIND_COUNT } json_kind;
typedef enum json_look { JSON_LINES, JSON_ONE_LINE } json_look; /* all inside of one line is on that line, too     */

typedef struct json {
    FILE *out;
    int depth;                     /* of what is open                                                              */
    struct { json_kind kind; json_look look; bool has_members; } open[JSON_MAX_DEPTH];
} json;

/* Members of an object have a key; items of an array, and the outermost value, NULL. */
void json_begin(json *j, const char *key, json_kind kind, json_look look);
void json_end(json *j);
void json_text(json *j, const char *key, const char *text); /* NULL: null                                          */
void json_int(json *j, const char *key, int64_t value);
/* With as few digits as read back to the same number; null for what is none. */
void json_real(json *j, const char *key, double value);
void json_bool(json *j, const char *key, bool value);

#endif
