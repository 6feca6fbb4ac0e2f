/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, pulled value by value out of memory: what headers and indices of tensor files need of RFC 8259, and strict. No
 * tree is made and nothing recurses, so the memory a text takes is that of the strings asked for, whatever it nests.
 * Numbers that are asked for are integers of 64 bits; strings are valid UTF-8 without a 0. The first error stays, and
 * from then on every question is answered false.
 *
 *     if (dti_json_object(&json))
 *         while (dti_json_member(&json, &name)) ...one value...;
 */
#ifndef DTI_JSON_H
#define DTI_JSON_H

#include <dtensor/types.h>

#include "core/arena.h"
#include "train/told.h"

enum { DTI_JSON_DEPTH = 32 };      /* objects and arrays in each other                                             */

typedef struct dti_json {
    const char *text, *at, *end;
    dti_arena *arena;              /* of the strings                                                               */
    int depth;
    bool first;                    /* of the innermost object or array nothing has been read                       */
    const char *wrong;             /* what was expected at the cursor; NULL: nothing is wrong                      */
} dti_json;

/* Before the first value of n bytes, which live as long; so do strings of the arena. */
dti_json dti_json_open(const char *text, size_t n, dti_arena *arena);
/* The next character that begins a value, without taking it: one of { [ " t f n - 0 .. 9; 0: none. */
char dti_json_peek(dti_json *json);
/* Enter an object; its next member's name (NULL: not wanted), whose value is then to be taken. false at its end. */
bool dti_json_object(dti_json *json);
bool dti_json_member(dti_json *json, const char **name);
/* Enter an array; does it have another value? */
bool dti_json_array(dti_json *json);
bool dti_json_element(dti_json *json);
/* A string, ended by 0; an integer; any value, unread but checked. */
bool dti_json_string(dti_json *json, const char **text);
bool dti_json_int(dti_json *json, int64_t *value);
bool dti_json_skip(dti_json *json);
/* White space and then the end. */
bool dti_json_end(dti_json *json);
/* An error that the reader of the text found: what it expected where the cursor stands. Returns false. */
bool dti_json_expected(dti_json *json, const char *expected);
/* Tell what was wrong, if anything: "what: expected a string at byte 12, got ...". Is all well? */
bool dti_json_tell(const dti_json *json, const char *what, dti_told *told);

#endif
