/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching by names: a pattern's names are compared with a path's one by one, and where that fails the last ** before
 * takes one name more; characters within one name likewise, with the last *. So nothing is exponential. Invariant: a
 * pattern without fault matches or does not; one with a fault matches nothing. */
#include "nn/path.h"

#include <string.h>

/* A text or what is left of it; names are between dots, and "" has none. */
typedef struct span { const char *at, *end; } span;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool dti_name_ok(const char *name)
{
    if (!name || !*name) return false;
    while (is_name_char(*name)) name++;
    return *name == '\0';
}

/* ---- one name ---------------------------------------------------------------------------------------------------- */

/* Behind the ] of the [ at `at`; NULL: there is none, or nothing in between. */
static const char *behind_set(const char *at, const char *end)
{
    const char *close = at + 1;
    while (close < end && *close != ']' && *close != '[') close++;
    return close < end && *close == ']' && close > at + 1 ? close + 1 : NULL;
}

/* Is c one of [abx-z]? */
static bool in_set(const char *at, const char *behind, char c)
{
    for (at++; at < behind - 1; at++) {
        bool range = at + 2 < behind - 1 && at[1] == '-';
        if (range ? at[0] <= c && c <= at[2] : at[0] == c) return true;
        if (range) at += 2;
    }
    return false;
}

/* What one element of a pattern that is no * takes of a character; NULL: not this one. */
static const char *take_char(const char *at, const char *end, char c)
{
    const char *behind = *at == '[' ? behind_set(at, end) : at + 1;
    bool fits = *at == '[' ? behind && in_set(at, behind, c) : *at == c;
    return fits ? behind : NULL;
}

static bool name_matches(span name, span pattern)
{
    const char *star = NULL, *from = NULL, *next;
    while (name.at < name.end) {
        if (pattern.at < pattern.end && *pattern.at == '*') {
            star = ++pattern.at;
            from = name.at;
        } else if (pattern.at < pattern.end && (next = take_char(pattern.at, pattern.end, *name.at)) != NULL) {
            pattern.at = next;
            name.at++;
        } else {
            if (!star) return false;
            pattern.at = star;
            name.at = ++from;
        }
    }
    while (pattern.at < pattern.end && *pattern.at == '*') pattern.at++;
    return pattern.at == pattern.end;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The first name; *rest: what is behind its dot, NULL: nothing. */
static span first_name(const char *text, const char **rest)
{
    const char *dot = strchr(text, '.'), *end = dot ? dot : text + strlen(text);
    *rest = dot ? dot + 1 : NULL;
    return (span){ text, end };
}

static const char *or_none(const char *text) { return text && *text ? text : NULL; }

static bool is_any(span name) { return name.end - name.at == 2 && name.at[0] == '*' && name.at[1] == '*'; }

bool dti_path_matches(const char *path, const char *pattern)
{
    const char *any = NULL, *from = NULL, *path_rest, *pattern_rest;
    path = or_none(path);
    pattern = or_none(pattern);
    while (path) {
        span name = first_name(path, &path_rest), part = pattern ? first_name(pattern, &pattern_rest) : (span){ 0 };
        if (pattern && is_any(part)) {
            any = pattern = pattern_rest;
            from = path;
            if (!any) return true;
        } else if (pattern && name_matches(name, part)) {
            pattern = pattern_rest;
            path = path_rest;
        } else {
            if (!any) return false;
            first_name(from, &from);
            path = from;
            pattern = any;
        }
    }
    while (pattern && is_any(first_name(pattern, &pattern_rest))) pattern = pattern_rest;
    return !pattern;
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* Is a range of [abx-z] the wrong way round? It would have no character. */
static bool is_backward(const char *at, const char *behind)
{
    for (at++; at + 2 < behind - 1; at++)
        if (at[1] == '-' && at[0] > at[2]) return true;
        else if (at[1] == '-') at += 2;
    return false;
}

static const char *name_fault(span part, const char **at)
{
    *at = part.at;
    if (part.at == part.end) return "a name is empty";
    if (is_any(part)) return NULL;
    for (const char *c = part.at, *next; c < part.end; c = next) {
        *at = c;
        next = *c == '[' ? behind_set(c, part.end) : c + 1;
        if (!next) return "[ is not closed, or empty";
        if (*c == '[' && is_backward(c, next)) return "a range ends before it begins";
        if (*c == '*' && next < part.end && *next == '*') return "** stands for whole names";
        if (*c != '[' && *c != '*' && !is_name_char(*c)) return "this is in no name";
    }
    return NULL;
}

const char *dti_pattern_fault(const char *pattern, int *column)
{
    const char *fault = NULL, *at = pattern;
    for (const char *rest = or_none(pattern); rest && !fault;) fault = name_fault(first_name(rest, &rest), &at);
    *column = (int)(at - pattern) + 1;
    return fault;
}
