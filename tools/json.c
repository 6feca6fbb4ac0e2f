/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as text. Invariant: open[0 .. depth - 1] is what has begun and not ended. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char brackets[JSON_KIND_COUNT][2] = { [JSON_OBJECT] = { '{', '}' }, [JSON_ARRAY] = { '[', ']' } };

static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else if (c < ' ') fprintf(out, "\\u%04x", (unsigned)c);
        else if (c > '~') fputs("\\ufffd", out);
        else fputc(c, out);
    }
    fputc('"', out);
}

static json_look look_inside(const json *j) { return j->depth ? j->open[j->depth - 1].look : JSON_ONE_LINE; }

static void put_break(json *j, json_look look, const char *gap)
{
    if (look == JSON_LINES) fprintf(j->out, "\n%*s", 2 * j->depth, "");
    else fputs(gap, j->out);
}

/* All that stands before a value. */
static void put_key(json *j, const char *key)
{
    if (j->depth) {
        bool has_members = j->open[j->depth - 1].has_members;
        if (has_members) fputc(',', j->out);
        put_break(j, look_inside(j), has_members ? " " : "");
        j->open[j->depth - 1].has_members = true;
    }
    if (!key) return;
    put_text(j->out, key);
    fputs(": ", j->out);
}

void json_begin(json *j, const char *key, json_kind kind, json_look look)
{
    put_key(j, key);
    if (j->depth && look_inside(j) == JSON_ONE_LINE) look = JSON_ONE_LINE;
    fputc(brackets[kind][0], j->out);
    j->open[j->depth].kind = kind;
    j->open[j->depth].look = look;
    j->open[j->depth].has_members = false;
    j->depth++;
}

void json_end(json *j)
{
    j->depth--;
    if (j->open[j->depth].has_members) put_break(j, j->open[j->depth].look, "");
    fputc(brackets[j->open[j->depth].kind][1], j->out);
    if (j->depth == 0) fputc('\n', j->out);
}

void json_text(json *j, const char *key, const char *text)
{
    put_key(j, key);
    if (text) put_text(j->out, text);
    else fputs("null", j->out);
}

void json_int(json *j, const char *key, int64_t value)
{
    put_key(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void json_real(json *j, const char *key, double value)
{
    char text[32] = "null";
    for (int digits = 6; digits <= 17 && isfinite(value); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double read = strtod(text, NULL);
        if (!(read < value) && !(read > value)) break;
    }
    put_key(j, key);
    fputs(text, j->out);
}

void json_bool(json *j, const char *key, bool value)
{
    put_key(j, key);
    fputs(value ? "true" : "false", j->out);
}
