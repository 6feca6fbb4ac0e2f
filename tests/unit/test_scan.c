/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner: what each word takes, where the cursor stays, and every message with its column. */
#include <stdio.h>
#include <string.h>

#include "core/scan.h"
#include "suite.h"

static dti_scan scan_of(dt_context *ctx, const char *text) { return (dti_scan){ ctx, "mesh", text, text }; }

static void expect_error(const dt_context *ctx, const char *text, const char *message)
{
    expect(dt_context_status(ctx) == DT_ERR_PARSE, "%s: status %d", text, (int)dt_context_status(ctx));
    expect(strcmp(dt_context_error(ctx), message) == 0, "got  %s\n# want %s", dt_context_error(ctx), message);
}

static void characters(void)
{
    dti_scan scan = scan_of(NULL, "a=");
    expect(!dti_scan_char(&scan, '=') && scan.at == scan.text, "took what is not next");
    expect(dti_scan_char(&scan, 'a') && dti_scan_char(&scan, '='), "did not take what is next");
    expect(!dti_scan_char(&scan, '\0') && scan.at == scan.text + 2, "passed the end");
}

typedef struct text_row { const char *text, *fixed; int taken; } text_row; /* taken -1: refused */

static void fixed_texts(void)
{
    static const text_row texts[] = {
        { "sum)", "sum", 3 }, { "sum", "sum", 3 }, { "sums", "sum", -1 }, { "sum1", "sum", -1 }, { "sum_", "sum", -1 },
        { "sum.", "sum", 3 }, { "su", "sum", -1 }, { "", "sum", -1 }, { "->x", "->", 2 }, { "P(x", "P(", 2 },
        { "S(0)", "S(", 2 }, { "f32[", "f32", 3 }, { "f321", "f32", -1 }, { "a_b", "a_", 2 }, { "x", "", 0 },
        { "sum\xc3\xa9", "sum", 3 },
    };
    for (int i = 0; i < DT_COUNT(texts); i++) {
        dti_scan scan = scan_of(NULL, texts[i].text);
        bool taken = dti_scan_text(&scan, texts[i].fixed);
        expect(taken == (texts[i].taken >= 0), "%s in %s: %d", texts[i].fixed, texts[i].text, taken);
        expect(scan.at - scan.text == (taken ? texts[i].taken : 0), "%s in %s: cursor", texts[i].fixed, texts[i].text);
    }
}

static void spaces(void)
{
    dti_scan scan = scan_of(NULL, " \t \nx");
    expect(dti_scan_space(&scan) == 3 && *scan.at == '\n', "blanks and tabs only");
    expect(dti_scan_space(&scan) == 0, "none here");
}

#define NAME_63 "a23456789_123456789_123456789_123456789_123456789_123456789_123"

typedef struct name_row { const char *text; int n; } name_row;

static void names(void)
{
    static const name_row good[] = {
        { "dp", 2 }, { "dp=2", 2 }, { "dp_1:x", 4 }, { "dp.0", 4 }, { "dp.0.12,", 7 }, { "dp.", 2 }, { "dp.x", 2 },
        { "dp.0.", 4 }, { "Z9", 2 }, { "dp\xc3\xa9", 2 }, { NAME_63 ",", 63 },
    };
    for (int i = 0; i < DT_COUNT(good); i++) {
        dti_word name = { NULL, 0 };
        dti_scan scan = scan_of(NULL, good[i].text);
        expect(dti_scan_name(&scan, &name) && name.text == scan.text && name.n == good[i].n, "%s: %d characters",
               good[i].text, name.n);
        expect(scan.at == scan.text + good[i].n, "%s: cursor", good[i].text);
    }
}

typedef struct refused_row { const char *text, *message; } refused_row;

static void refused_names(void)
{
    static const refused_row bad[] = {
        { "", "mesh \"\": expected a name, got the end at column 1" },
        { "2dp", "mesh \"2dp\": expected a name, got \"2dp\" at column 1" },
        { "_a", "mesh \"_a\": expected a name, got \"_a\" at column 1" },
        { ".0", "mesh \".0\": expected a name, got \".\" at column 1" },
        { "\xc3\xa9", "mesh \"\\xc3\\xa9\": expected a name, got \"\\xc3\" at column 1" },
        { "\n\x7f", "mesh \"\\x0a\\x7f\": expected a name, got \"\\x0a\" at column 1" },
    };
    for (int i = 0; i < DT_COUNT(bad); i++) {
        dt_context *ctx = dt_context_dry(1);
        dti_word name = { NULL, -1 };
        dti_scan scan = scan_of(ctx, bad[i].text);
        expect(!dti_scan_name(&scan, &name) && name.n == -1 && scan.at == scan.text, "%s taken", bad[i].text);
        expect_error(ctx, bad[i].text, bad[i].message);
        dt_context_destroy(&ctx);
    }
}

static void long_names_are_refused(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_word name;
    dti_scan scan = scan_of(ctx, NAME_63 "4");
    expect(!dti_scan_name(&scan, &name), "64 characters");
    expect_error(ctx, scan.text, "mesh \"" NAME_63 "4\": expected a name of at most 63 characters, got 64 at column 1");
    dt_context_destroy(&ctx);
}

typedef struct int_row { const char *text; int64_t value; int n; } int_row;

static void integers(void)
{
    static const int_row good[] = {
        { "0", 0, 1 }, { "12,", 12, 2 }, { "007", 7, 3 }, { "9223372036854775807)", INT64_MAX, 19 }, { "4x", 4, 1 },
    };
    for (int i = 0; i < DT_COUNT(good); i++) {
        int64_t value = -1;
        dti_scan scan = scan_of(NULL, good[i].text);
        expect(dti_scan_int(&scan, "a size", &value) && value == good[i].value, "%s: %lld", good[i].text,
               (long long)value);
        expect(scan.at == scan.text + good[i].n, "%s: cursor", good[i].text);
    }
}

static void refused_integers(void)
{
    static const refused_row bad[] = {
        { "dp=x", "mesh \"dp=x\": expected a size, got \"x\" at column 4" },
        { "dp=", "mesh \"dp=\": expected a size, got the end at column 4" },
        { "dp=-1", "mesh \"dp=-1\": expected a size, got \"-\" at column 4" },
        { "dp= 1", "mesh \"dp= 1\": expected a size, got \" \" at column 4" },
        { "dp=9223372036854775808", "mesh \"dp=9223372036854775808\": expected a size of at most 9223372036854775807, "
                                    "got \"9223372036854775808\" at column 4" },
        { "dp=99999999999999999999999999", "mesh \"dp=99999999999999999999999999\": expected a size of at most "
                                           "9223372036854775807, got \"999999999999999999999999...\" at column 4" },
    };
    for (int i = 0; i < DT_COUNT(bad); i++) {
        dt_context *ctx = dt_context_dry(1);
        int64_t value = -1;
        dti_scan scan = scan_of(ctx, bad[i].text);
        scan.at += 3;
        expect(!dti_scan_int(&scan, "a size", &value), "%s taken", bad[i].text);
        expect(value == -1 && scan.at == scan.text + 3, "%s: value or cursor changed", bad[i].text);
        expect_error(ctx, bad[i].text, bad[i].message);
        dt_context_destroy(&ctx);
    }
}

static void ends(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_scan scan = scan_of(ctx, "dp");
    scan.at += 2;
    expect(dti_scan_end(&scan, "\",\"") && dt_context_status(ctx) == DT_OK, "the end is the end");
    scan.at--;
    expect(!dti_scan_end(&scan, "\",\""), "\"p\" is no end");
    expect_error(ctx, "dp", "mesh \"dp\": expected \",\", got \"p\" at column 2");
    dt_context_destroy(&ctx);
}

static void messages_of_ones_own(void)
{
    dt_context *ctx = dt_context_dry(1);
    dti_scan scan = scan_of(ctx, "dp=2,dp=4");
    expect(!dti_scan_fail(&scan, DT_ERR_ARG, scan.text + 5, "dim %s is named twice", "dp"), "returns false");
    expect(dt_context_status(ctx) == DT_ERR_ARG, "its own status");
    expect(strcmp(dt_context_error(ctx), "mesh \"dp=2,dp=4\": dim dp is named twice at column 6") == 0, "got %s",
           dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

/* One message about column at + 1 of 1000 bytes must be one short line that shows that byte. */
static void expect_window(char fill, size_t at)
{
    char text[1001], wanted[64];
    dt_context *ctx = dt_context_dry(1);
    memset(text, fill, 1000);
    text[1000] = '\0';
    text[at] = '#';
    dti_scan scan = scan_of(ctx, text);
    scan.at += at;
    expect(!dti_scan_expected(&scan, "a size"), "returns false");
    const char *message = dt_context_error(ctx);
    snprintf(wanted, sizeof wanted, "expected a size, got \"#\" at column %zu", at + 1);
    const char *own = strstr(message, wanted);
    expect(own && own[strlen(wanted)] == '\0', "%s does not end in: %s", message, wanted);
    expect(own && memchr(message, '#', (size_t)(own - message)), "%s does not show column %zu", message, at + 1);
    expect(strlen(message) < 400, "%zu characters", strlen(message));
    expect((strncmp(message, "mesh \"...", 9) == 0) == (at > 40), "%s: cut before?", message);
    expect((strstr(message, "...\": ") != NULL) == (at < 960), "%s: cut after?", message);
    for (const char *c = message; *c; c++) expect(*c >= 0x20 && *c < 0x7f, "byte %d in the message", *c);
    dt_context_destroy(&ctx);
}

static void long_texts_are_shortened_around_the_column(void)
{
    static const size_t places[] = { 0, 1, 31, 500, 970, 998, 999 };
    static const char fills[] = { 'a', '\n', '\xff', '"' };
    for (int i = 0; i < DT_COUNT(places); i++)
        for (int f = 0; f < DT_COUNT(fills); f++) expect_window(fills[f], places[i]);
}

static void the_end_of_a_long_text(void)
{
    char text[1001];
    dt_context *ctx = dt_context_dry(1);
    memset(text, 'a', 1000);
    text[1000] = '\0';
    dti_scan scan = scan_of(ctx, text);
    scan.at += 1000;
    dti_scan_expected(&scan, "a size");
    expect(strstr(dt_context_error(ctx), "aaa\": expected a size, got the end at column 1001"), "got %s",
           dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void words(void)
{
    dti_word word = { "sum)", 3 };
    expect(dti_word_is(word, "sum"), "sum is sum");
    expect(!dti_word_is(word, "sum)") && !dti_word_is(word, "su") && !dti_word_is(word, ""), "sum is nothing else");
    expect(dti_word_is((dti_word){ "x", 0 }, ""), "the empty word");
}

static const test_row rows[] = {
    { "characters", characters },
    { "fixed_texts", fixed_texts },
    { "spaces", spaces },
    { "names", names },
    { "refused_names", refused_names },
    { "long_names_are_refused", long_names_are_refused },
    { "integers", integers },
    { "refused_integers", refused_integers },
    { "ends", ends },
    { "messages_of_ones_own", messages_of_ones_own },
    { "long_texts_are_shortened_around_the_column", long_texts_are_shortened_around_the_column },
    { "the_end_of_a_long_text", the_end_of_a_long_text },
    { "words", words },
};

const suite the_suite = { "scan", rows, DT_COUNT(rows) };
