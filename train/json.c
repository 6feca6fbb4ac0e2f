/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON. Invariant: text <= at <= end, and nothing is read at or behind end. */
#include "train/json.h"

#include <string.h>

dti_json dti_json_open(const char *text, size_t n, dti_arena *arena)
{
    return (dti_json){ .text = text, .at = text, .end = text + n, .arena = arena };
}

bool dti_json_expected(dti_json *json, const char *expected)
{
    if (!json->wrong) json->wrong = expected;
    return false;
}

bool dti_json_tell(const dti_json *json, const char *what, dti_told *told)
{
    if (!json->wrong) return true;
    int n = (int)(json->end - json->at < 16 ? json->end - json->at : 16);
    for (int i = 0; i < n; i++)
        if ((unsigned char)json->at[i] < ' ' || (unsigned char)json->at[i] > '~') n = i;
    long long byte = json->at - json->text;
    const char *got = n ? json->at : json->at == json->end ? "the end" : "no text";
    return dti_tell(told, DT_ERR_IO, "%s: expected %s at byte %lld, got %.*s", what, json->wrong, byte,
                    n ? n : 16, got);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool is_digit(const dti_json *json) { return json->at < json->end && *json->at >= '0' && *json->at <= '9'; }

static void skip_space(dti_json *json)
{
    while (json->at < json->end && is_space(*json->at)) json->at++;
}

/* Take one character if it is next behind white space. */
static bool take(dti_json *json, char c)
{
    skip_space(json);
    if (json->wrong || json->at == json->end || *json->at != c) return false;
    json->at++;
    return true;
}

char dti_json_peek(dti_json *json)
{
    skip_space(json);
    bool begins = !json->wrong && json->at < json->end && *json->at && strchr("{[\"tfn-0123456789", *json->at);
    return begins ? *json->at : '\0';
}

/* ---- objects and arrays ------------------------------------------------------------------------------------------ */

static bool enter(dti_json *json, char open, const char *expected)
{
    skip_space(json);
    if (json->depth == DTI_JSON_DEPTH)
        return dti_json_expected(json, "no more than 32 objects and arrays in each other");
    if (!take(json, open)) return dti_json_expected(json, expected);
    json->depth++;
    json->first = true;
    return true;
}

/* Is there another, behind its comma? */
static bool another(dti_json *json, char close, const char *expected)
{
    if (json->wrong) return false;
    if (take(json, close)) {
        json->depth--;
        json->first = false;
        return false;
    }
    if (!json->first && !take(json, ',')) return dti_json_expected(json, expected);
    json->first = false;
    return true;
}

bool dti_json_object(dti_json *json) { return enter(json, '{', "an object"); }
bool dti_json_array(dti_json *json) { return enter(json, '[', "an array"); }
bool dti_json_element(dti_json *json) { return another(json, ']', "\",\" or \"]\""); }

static bool read_string(dti_json *json, const char **text, const char *expected);

bool dti_json_member(dti_json *json, const char **name)
{
    if (!another(json, '}', "\",\" or \"}\"") || !read_string(json, name, "a name")) return false;
    return take(json, ':') || dti_json_expected(json, "\":\"");
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character that begins here, n of them there at most; 0: none does. (Unicode 15, table 3-7.) */
static int character_bytes(const unsigned char *c, ptrdiff_t n)
{
    if (c[0] < 0x80) return 1;
    int bytes = c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : c[0] >= 0xf0 && c[0] < 0xf5 ? 4 : 0;
    if (bytes == 0 || bytes > n) return 0;
    unsigned least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    if (c[1] < least || c[1] > most) return 0;
    for (int i = 2; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return !at ? -1 : at - digits < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

/* Four hexadecimal digits behind "\u"; -1: there are none. */
static int take_unit(dti_json *json)
{
    int unit = 0;
    if (json->end - json->at < 6 || json->at[0] != '\\' || json->at[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(json->at[i]);
        if (digit < 0) return -1;
        unit = 16 * unit + digit;
    }
    json->at += 6;
    return unit;
}

static int put_character(char *to, unsigned c)
{
    if (c < 0x80) return to[0] = (char)c, 1;
    int bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (int i = bytes - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[bytes] | c);
    return bytes;
}

/* "\uXXXX", or two of them that are one character: how many bytes of UTF-8; 0: the error. */
static int take_unicode(dti_json *json, char *to)
{
    const char *at = json->at;
    int unit = take_unit(json), low = 0;
    bool high = unit >= 0xd800 && unit < 0xdc00, pair = high && (low = take_unit(json)) >= 0xdc00 && low < 0xe000;
    if (unit <= 0 || (unit >= 0xd800 && unit < 0xe000 && !pair)) {
        json->at = at;
        dti_json_expected(json, "a character, not 0, as \\u and four digits");
        return 0;
    }
    unsigned character = (unsigned)unit;
    if (pair) character = 0x10000u + ((character - 0xd800u) << 10) + ((unsigned)low - 0xdc00u);
    return put_character(to, character);
}

static int take_escape(dti_json *json, char *to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *name = json->end - json->at >= 2 && json->at[1] ? strchr(names, json->at[1]) : NULL;
    if (!name) return take_unicode(json, to);
    to[0] = meanings[name - names];
    json->at += 2;
    return 1;
}

/* One character of a string: how many bytes it is; 0: the error. */
static int take_character(dti_json *json, char *to)
{
    if (*json->at == '\\') return take_escape(json, to);
    const unsigned char *at = (const unsigned char *)json->at;
    int bytes = *at < ' ' ? 0 : character_bytes(at, json->end - json->at);
    if (bytes == 0) dti_json_expected(json, "a character in UTF-8");
    memcpy(to, json->at, (size_t)bytes);
    json->at += bytes;
    return bytes;
}

/* Up to the quote that ends it: into `to`, which has room for it, or nowhere. Returns its bytes. */
static size_t read_characters(dti_json *json, char *to)
{
    char one[4];
    size_t n = 0;
    while (!json->wrong && json->at < json->end && *json->at != '"')
        n += (size_t)take_character(json, to ? to + n : one);
    if (!json->wrong && json->at == json->end) dti_json_expected(json, "the end of a string");
    return n;
}

static bool read_string(dti_json *json, const char **text, const char *expected)
{
    if (!take(json, '"')) return dti_json_expected(json, expected);
    const char *begin = json->at;
    size_t n = read_characters(json, NULL);
    if (json->wrong) return false;
    if (text) {
        char *copy = dti_arena_take(json->arena, n + 1);
        if (!copy) return dti_json_expected(json, "memory for a string");
        json->at = begin;
        read_characters(json, copy);
        *text = copy;
    }
    json->at++;
    return true;
}

bool dti_json_string(dti_json *json, const char **text) { return read_string(json, text, "a string"); }

/* ---- other values ------------------------------------------------------------------------------------------------ */

bool dti_json_int(dti_json *json, int64_t *value)
{
    static const char expected[] = "an integer of 64 bits";
    skip_space(json);
    const char *begin = json->at;
    bool negative = take(json, '-');
    uint64_t number = 0, most = (uint64_t)INT64_MAX + negative;
    if (json->wrong || !is_digit(json)) return dti_json_expected(json, expected);
    bool zero = *json->at == '0', fits = true;
    int digits = 0;
    for (; is_digit(json); json->at++, digits++) {
        unsigned digit = (unsigned)(*json->at - '0');
        fits = fits && number <= (most - digit) / 10;
        number = 10 * number + digit;
    }
    bool is_float = json->at < json->end && *json->at && strchr(".eE", *json->at);
    if (!fits || is_float || (zero && digits > 1)) {
        json->at = begin;
        return dti_json_expected(json, expected);
    }
    *value = negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static bool skip_digits(dti_json *json)
{
    if (!is_digit(json)) return dti_json_expected(json, "a digit");
    while (is_digit(json)) json->at++;
    return true;
}

static bool take_one_of(dti_json *json, const char *characters)
{
    if (json->at == json->end || !*json->at || !strchr(characters, *json->at)) return false;
    json->at++;
    return true;
}

static bool skip_number(dti_json *json)
{
    take_one_of(json, "-");
    if (!take_one_of(json, "0") && !skip_digits(json)) return false;
    if (take_one_of(json, ".") && !skip_digits(json)) return false;
    if (!take_one_of(json, "eE")) return true;
    take_one_of(json, "+-");
    return skip_digits(json);
}

static bool skip_word(dti_json *json, char first)
{
    const char *word = first == 't' ? "true" : first == 'f' ? "false" : "null";
    size_t n = strlen(word);
    if ((size_t)(json->end - json->at) < n || memcmp(json->at, word, n)) return dti_json_expected(json, "a value");
    json->at += n;
    return true;
}

static bool skip_scalar(dti_json *json, char first)
{
    if (first == '"') return dti_json_string(json, NULL);
    if (!first) return dti_json_expected(json, "a value");
    return strchr("tfn", first) ? skip_word(json, first) : skip_number(json);
}

bool dti_json_skip(dti_json *json)
{
    char open[DTI_JSON_DEPTH];
    int n = 0;
    do {
        if (n && !(open[n - 1] == '{' ? dti_json_member(json, NULL) : dti_json_element(json))) {
            n--;
            continue;
        }
        char first = dti_json_peek(json);
        if (first != '{' && first != '[') skip_scalar(json, first);
        else if (first == '{' ? dti_json_object(json) : dti_json_array(json)) open[n++] = first;
    } while (n && !json->wrong);
    return !json->wrong;
}

bool dti_json_end(dti_json *json)
{
    skip_space(json);
    if (json->wrong) return false;
    return json->at == json->end || dti_json_expected(json, "the end");
}
