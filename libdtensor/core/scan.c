/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that all notations are made of, and the message that points at a column. It knows no grammar. Columns count
 * bytes from 1. Invariant: the cursor never passes the end of the text, and stays where it was if a word is refused. */
#include "core/scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

enum {
    NAME_MAX_CHARS = 63,
    SHOWN = 64,                    /* bytes of a long text that a message shows                                    */
    SHOWN_WORD = 24,               /* of what stands at the cursor                                                 */
    ESCAPED = 4                    /* characters that a byte takes at most: \xNN                                   */
};

/* Not ctype.h: the notations are ASCII whatever the locale says. */
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

/* ---- words ----------------------------------------------------------------------------------------------------- */

bool dti_scan_char(dti_scan *scan, char c)
{
    if (*scan->at == '\0' || *scan->at != c) return false;
    scan->at++;
    return true;
}

bool dti_scan_text(dti_scan *scan, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(scan->at, text, n) != 0) return false;
    if (n && (is_letter(text[n - 1]) || is_digit(text[n - 1])) && is_word(scan->at[n])) return false;
    scan->at += n;
    return true;
}

int dti_scan_space(dti_scan *scan)
{
    int n = 0;
    for (; *scan->at == ' ' || *scan->at == '\t'; scan->at++) n++;
    return n;
}

/* The end of {"." int}: a point that no digit follows is not part of the name. */
static const char *skip_parts(const char *at)
{
    while (at[0] == '.' && is_digit(at[1]))
        for (at++; is_digit(*at); at++) { }
    return at;
}

bool dti_scan_name(dti_scan *scan, dti_word *name)
{
    const char *end = scan->at;
    if (!is_letter(*end)) return dti_scan_expected(scan, "a name");
    while (is_word(*end)) end++;
    end = skip_parts(end);
    if (end - scan->at > NAME_MAX_CHARS)
        return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "expected a name of at most %d characters, got %td",
                             (int)NAME_MAX_CHARS, end - scan->at);
    *name = (dti_word){ scan->at, (int)(end - scan->at) };
    scan->at = end;
    return true;
}

static bool too_large(dti_scan *scan, const char *expected)
{
    char limited[128];
    snprintf(limited, sizeof limited, "%s of at most %" PRId64, expected, INT64_MAX);
    return dti_scan_expected(scan, limited);
}

bool dti_scan_int(dti_scan *scan, const char *expected, int64_t *value)
{
    const char *at = scan->at;
    int64_t number = 0;
    if (!is_digit(*at)) return dti_scan_expected(scan, expected);
    for (; is_digit(*at); at++) {
        int digit = *at - '0';
        if (number > (INT64_MAX - digit) / 10) return too_large(scan, expected);
        number = 10 * number + digit;
    }
    scan->at = at;
    *value = number;
    return true;
}

bool dti_scan_end(dti_scan *scan, const char *expected)
{
    return *scan->at == '\0' || dti_scan_expected(scan, expected);
}

bool dti_word_is(dti_word word, const char *text)
{
    size_t n = (size_t)word.n;
    return strlen(text) == n && memcmp(word.text, text, n) == 0;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* Copy n bytes, those that are not printable ASCII as \xNN; out has room for ESCAPED * n + 1. */
static void show(char *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte < 0x7f) *out++ = text[i];
        else out += snprintf(out, ESCAPED + 1, "\\x%02x", byte);
    }
    *out = '\0';
}

typedef struct window { size_t begin, n; bool cut_before, cut_after; } window;

/* The part of a text that a message about one place shows. */
static window window_around(const char *text, size_t at)
{
    size_t length = strlen(text), begin = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
    if (length <= SHOWN) return (window){ 0, length, false, false };
    if (begin > length - SHOWN) begin = length - SHOWN;
    return (window){ begin, SHOWN, begin > 0, begin + SHOWN < length };
}

bool dti_scan_fail(dti_scan *scan, dt_status status, const char *at, const char *format, ...)
{
    char message[512], shown[ESCAPED * SHOWN + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    size_t offset = (size_t)(at - scan->text);
    window part = window_around(scan->text, offset);
    show(shown, scan->text + part.begin, part.n);
    dti_fail(scan->ctx, status, "%s \"%s%s%s\": %s at column %zu", scan->what, part.cut_before ? "..." : "", shown,
             part.cut_after ? "..." : "", message, offset + 1);
    return false;
}

/* How much of what stands at the cursor is one word; any other byte stands for itself. */
static size_t word_length(const char *at)
{
    size_t n = 0;
    while (is_word(at[n])) n++;
    return n ? n : 1;
}

bool dti_scan_expected(dti_scan *scan, const char *expected)
{
    char shown[ESCAPED * SHOWN_WORD + 1];
    if (*scan->at == '\0') return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "expected %s, got the end", expected);
    size_t n = word_length(scan->at);
    show(shown, scan->at, n < SHOWN_WORD ? n : SHOWN_WORD);
    return dti_scan_fail(scan, DT_ERR_PARSE, scan->at, "expected %s, got \"%s%s\"", expected, shown,
                         n > SHOWN_WORD ? "..." : "");
}
