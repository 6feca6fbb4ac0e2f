/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON and the headers of safetensors files: what is read of good ones, why bad ones are refused, and that what is
 * written is read back. */
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "train/json.h"
#include "train/safetensors.h"

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

typedef struct json_case { const char *text, *wrong; } json_case; /* wrong NULL: it is read                        */

static void any_value_is_checked(void)
{
    static const json_case cases[] = {
        { "{}", NULL }, { " [ ] ", NULL }, { "[1,-2,0.5,1e9,-0,10E+2]", NULL },
        { "\"a\\n\\u00e9\\ud83d\\ude00\"", NULL },
        { "[true,false,null]", NULL }, { "{\"a\":{\"b\":[{}]},\"c\":\"\"}", NULL }, { "\t\r\n 7", NULL },
        { "", "expected a value at byte 0, got the end" }, { "{", "expected a name" },
        { "[1 2]", "expected \",\" or \"]\"" },
        { "[1,]", "expected a value at byte 3" }, { "{\"a\":1,}", "expected a name at byte 7" },
        { "{\"a\" 1}", "expected \":\"" }, { "{a:1}", "expected a name" }, { "01", "expected the end at byte 1" },
        { "1.", "expected a digit" }, { "-", "expected a digit" }, { "1e", "expected a digit" }, { ".5", "a value" },
        { "\"abc", "expected the end of a string" }, { "\"\\x\"", "as \\u and four digits" },
        { "\"\\u12g4\"", "as \\u and four digits" }, { "\"\\u0000\"", "a character, not 0" },
        { "\"\\ud800\"", "a character, not 0" }, { "\"\\ud800\\u0041\"", "a character, not 0" },
        { "\"\\udc00\"", "a character, not 0" }, { "\"a\nb\"", "a character in UTF-8" },
        { "\"\xff\"", "a character in UTF-8" }, { "\"\xc0\x80\"", "a character in UTF-8" },
        { "\"\xed\xa0\x80\"", "a character in UTF-8" }, { "\"\xe2\x82\"", "a character in UTF-8" },
        { "\"\xf4\x90\x80\x80\"", "a character in UTF-8" }, { "tru", "a value" }, { "nulL", "a value" },
        { "1 1", "expected the end" }, { "]", "a value" }, { "[}", "a value" }, { "'a'", "a value" },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        dti_arena arena = { 0 };
        dti_told told = { DT_OK, "" };
        dti_json json = dti_json_open(cases[i].text, strlen(cases[i].text), &arena);
        bool read = dti_json_skip(&json) && dti_json_end(&json);
        bool well = dti_json_tell(&json, "text", &told);
        expect(read == well && well == !cases[i].wrong, "%s: %s", cases[i].text, told.text);
        expect(!cases[i].wrong || (told.status == DT_ERR_IO && strstr(told.text, cases[i].wrong)),
               "%s: \"%s\" has no \"%s\"",
               cases[i].text, told.text, cases[i].wrong);
        dti_arena_fini(&arena);
    }
}

static void depth_has_an_end(void)
{
    char text[256];
    dti_arena arena = { 0 };
    for (int depth = 1; depth < 100; depth++) {
        memset(text, '[', sizeof text);
        memset(text + depth, ']', (size_t)depth);
        dti_json json = dti_json_open(text, 2 * (size_t)depth, &arena);
        expect(dti_json_skip(&json) == (depth <= DTI_JSON_DEPTH), "%d arrays in each other", depth);
    }
    size_t many = 10 << 20; /* what would end a reader that calls itself */
    char *deep = malloc(many);
    memset(deep, '[', many);
    dti_json json = dti_json_open(deep, many, &arena);
    expect(!dti_json_skip(&json), "ten million arrays in each other");
    free(deep);
    dti_arena_fini(&arena);
}

static void values_are_what_they_say(void)
{
    static const struct { const char *text; int64_t value; bool fits; } ints[] = {
        { "0", 0, true }, { "-0", 0, true }, { " 42", 42, true }, { "9223372036854775807", INT64_MAX, true },
        { "-9223372036854775808", INT64_MIN, true }, { "9223372036854775808", 0, false },
        { "-9223372036854775809", 0, false }, { "99999999999999999999999", 0, false }, { "1.0", 0, false },
        { "1e3", 0, false }, { "07", 0, false }, { "-", 0, false }, { "+1", 0, false }, { "\"1\"", 0, false },
        { "", 0, false },
    };
    for (int i = 0; i < DT_COUNT(ints); i++) {
        int64_t value = 0;
        dti_json json = dti_json_open(ints[i].text, strlen(ints[i].text), NULL);
        bool fits = dti_json_int(&json, &value) && dti_json_end(&json);
        expect(fits == ints[i].fits && value == ints[i].value, "%s is %lld", ints[i].text, (long long)value);
    }
    static const char text[] = "\"\\u00e9 \\ud83d\\ude00 \\\"\\\\\\/\\b\\f\\n\\r\\t \xe2\x82\xac\\u20AC\"";
    const char *got = "";
    dti_arena arena = { 0 };
    dti_json json = dti_json_open(text, sizeof text - 1, &arena);
    expect(dti_json_string(&json, &got) && dti_json_end(&json), "a string");
    expect(strcmp(got, "\xc3\xa9 \xf0\x9f\x98\x80 \"\\/\b\f\n\r\t \xe2\x82\xac\xe2\x82\xac") == 0, "is \"%s\"", got);
    dti_arena_fini(&arena);
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

#define T(name, dtype, shape, place) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" place "}"

typedef struct header_case { const char *header; int64_t data; const char *wrong; } header_case;

static void headers_are_checked(void)
{
    static const header_case cases[] = {
        { "{}", 0, NULL }, { "{}   ", 0, NULL }, { "{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL },
        { "{" T("a", "F32", "[2,3]", "[0,24]") "}", 24, NULL }, { "{" T("a", "BOOL", "[]", "[0,1]") "}", 1, NULL },
        { "{" T("b", "BF16", "[2]", "[4,8]") "," T("a", "F16", "[2]", "[0,4]") "}", 8, NULL },
        { "{" T("a", "F32", "[0,7]", "[0,0]") "," T("b", "U8", "[1]", "[0,1]") "}", 1, NULL },
        { "{" T("a", "F8_E4M3", "[4]", "[0,4]") "," T("b", "F4", "[4]", "[4,6]") "}", 6, NULL },
        { "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, NULL },
        { "", 0, "expected an object" }, { " {}", 0, "begins with {" }, { "{}x", 0, "expected the end" },
        { "[]", 0, "begins with {" },
        { "{}", 1, "something is behind them" },
        { "{" T("a", "U8", "[2]", "[0,2]") "}", 3, "something is behind them" },
        { "{" T("a", "U8", "[2]", "[0,2]") "}", 1, "it is cut off" },
        { "{" T("a", "U8", "[2]", "[1,3]") "}", 3, "begins at byte 1, expected 0: there is a hole" },
        { "{" T("a", "U8", "[2]", "[0,2]") "," T("b", "U8", "[2]", "[1,3]") "}", 3,
          "\"b\" begins at byte 1, expected 2: it overlaps" },
        { "{" T("a", "U8", "[2]", "[0,2]") "," T("b", "U8", "[1]", "[3,4]") "}", 4, "there is a hole" },
        { "{" T("a", "U8", "[2]", "[2,0]") "}", 2, "expected [begin, end]" },
        { "{" T("a", "U8", "[2]", "[-1,1]") "}", 2, "expected [begin, end]" },
        { "{" T("a", "U8", "[2]", "[0]") "}", 2, "expected [begin, end]" },
        { "{" T("a", "U8", "[2]", "[0,2,2]") "}", 2, "more than two data_offsets" },
        { "{" T("a", "U8", "[2]", "[0,2.0]") "}", 2, "an integer of 64 bits" },
        { "{" T("a", "F32", "[2,3]", "[0,23]") "}", 23, "6 elements of F32 in 23 bytes, expected 24" },
        { "{" T("a", "F4", "[3]", "[0,1]") "}", 1, "3 elements of F4" },
        { "{" T("a", "F99", "[2]", "[0,2]") "}", 2, "dtype \"F99\"" },
        { "{" T("a", "f32", "[2]", "[0,8]") "}", 8, "dtype \"f32\"" },
        { "{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, "more elements than 63 bits" },
        { "{" T("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0, "more bytes than 63 bits" },
        { "{" T("a", "U8", "[-1]", "[0,1]") "}", 1, "more elements than 63 bits" },
        { "{" T("a", "U8", "[1]", "[0,1]") "," T("a", "U8", "[1]", "[1,2]") "}", 2, "tensor \"a\": is there twice" },
        { "{" T("a", "U8", "[1]", "[0,1]") "," T("\\u0061", "U8", "[1]", "[1,2]") "}", 2,
          "tensor \"a\": is there twice" },
        { "{" T("a", "U8", "[1]", "[0,1]") ",}", 1, "expected a name" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "dtype, shape or data_offsets are missing" },
        { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
          "dtype is there twice" },
        { "{\"a\":{\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "shape is there twice" },
        { "{\"a\":{\"data_offsets\":[0,1],\"data_offsets\":[0,1]}}", 1, "data_offsets are there twice" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1, "a field besides" },
        { "{\"a\":[]}", 0, "expected an object" }, { "{\"a\":{\"dtype\":7}}", 0, "expected a string" },
        { "{\"__metadata__\":{\"a\":1}}", 0, "expected a string" },
        { "{\"__metadata__\":[]}", 0, "expected an object" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ is there twice" },
        { "{" T("\xff", "U8", "[1]", "[0,1]") "}", 1, "a character in UTF-8" },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        const header_case *c = &cases[i];
        dti_told told = { DT_OK, "" };
        dti_safetensors read;
        bool ok = dti_safetensors_read(c->header, (int64_t)strlen(c->header), c->data, "f.safetensors", &read, &told);
        expect(ok == !c->wrong && ok == (told.status == DT_OK), "%s: %s", c->header, told.text);
        if (ok) dti_safetensors_fini(&read);
        else expect(c->wrong && told.status == DT_ERR_IO && strstr(told.text, c->wrong)
                    && strstr(told.text, "f.safetensors"),
                    "%s: \"%s\" has no \"%s\"", c->header, told.text, c->wrong ? c->wrong : "");
    }
}

static void lengths_are_checked(void)
{
    static const struct { unsigned char first[8]; int64_t file, length; const char *wrong; } cases[] = {
        { { 2 }, 10, 2, NULL }, { { 0, 1 }, 264, 256, NULL }, { { 3 }, 10, -1, "it is cut off" }, { { 0 }, 8, 0, NULL },
        { { 0 }, 7, -1, "at least 8 bytes, got 7" }, { { 0 }, 0, -1, "at least 8 bytes" },
        { { 255, 255, 255, 255, 255, 255, 255, 255 }, INT64_MAX, -1, "a header of 18446744073709551615 bytes" },
        { { 0, 0xe1, 0xf5, 5 }, 1 << 30, 100000000, NULL }, { { 1, 0xe1, 0xf5, 5 }, 1 << 30, -1, "at most 100000000" },
    };
    for (int i = 0; i < DT_COUNT(cases); i++) {
        dti_told told = { DT_OK, "" };
        int64_t length = dti_safetensors_length(cases[i].first, cases[i].file, "f", &told);
        expect(length == cases[i].length, "case %d: %lld, %s", i, (long long)length, told.text);
        expect(!cases[i].wrong || strstr(told.text, cases[i].wrong), "case %d: %s", i, told.text);
    }
}

static void what_is_found(void)
{
    static const char header[] = "{\"__metadata__\":{\"a\":\"b\"}," T("second", "I64", "[1,2]", "[6,22]") ","
                                 T("first", "BF16", "[3]", "[0,6]") "}";
    dti_told told = { DT_OK, "" };
    dti_safetensors read;
    if (!expect(dti_safetensors_read(header, sizeof header - 1, 22, "f", &read, &told), "%s", told.text)) return;
    const dti_st_tensor *t = dti_safetensors_find(&read, "second");
    expect(read.n == 2 && read.tensors[1] == t && strcmp(read.tensors[0]->name, "first") == 0, "by their places");
    expect(t && t->dtype->dtype == DT_I64 && t->shape.n == 2 && t->shape.dim[1] == 2 && t->begin == 6 && t->end == 22,
           "what it says");
    expect(!dti_safetensors_find(&read, "third"), "nothing else");
    dti_safetensors_fini(&read);
}

static void what_is_written_is_read(void)
{
    static const char *const names[] = { "a", "\"quoted\\\"", "tab\there", "\xc3\xa9\xf0\x9f\x98\x80", "" };
    enum { N = DT_COUNT(names) };
    dti_st_tensor tensors[N];
    for (int n = 0; n <= N; n++) {
        char text[1024];
        int64_t at = 0;
        dti_pen pen = { text, sizeof text, 0 };
        for (int i = 0; i < n; i++) {
            tensors[i] = (dti_st_tensor){ .name = names[i], .dtype = dti_st_dtype_of((dt_dtype)(DT_F64 + i)), .dims = i,
                                          .shape = { i, { 2, 3, 0, 5 } }, .begin = at };
            int64_t elements = 1;
            for (int d = 0; d < i; d++) elements *= tensors[i].shape.dim[d];
            tensors[i].end = at += elements * tensors[i].dtype->bits / 8;
        }
        dti_safetensors_put(&pen, tensors, n);
        dti_told told = { DT_OK, "" };
        dti_safetensors read;
        expect(pen.at % 8 == 0, "%zu bytes", pen.at);
        bool ok = dti_safetensors_read(text, (int64_t)pen.at, at, "f", &read, &told);
        if (!expect(ok, "%s: %s", text, told.text)) continue;
        for (int i = 0; i < n; i++) {
            const dti_st_tensor *t = dti_safetensors_find(&read, names[i]);
            expect(t && t->begin == tensors[i].begin && t->end == tensors[i].end && t->dtype == tensors[i].dtype &&
                   t->shape.n == i, "%s", names[i]);
        }
        dti_safetensors_fini(&read);
    }
    unsigned char first[8];
    dti_told told = { DT_OK, "" };
    dti_safetensors_put_length(123456, first);
    expect(dti_safetensors_length(first, 1 << 20, "f", &told) == 123456, "%s", told.text);
}

/* Every header cut at every byte, and with every byte changed: an error or a header, never a crash. */
static void damaged_headers(void)
{
    static const char header[] = "{\"__metadata__\":{\"a\":\"\\u00e9\"}," T("x", "F32", "[2,1]", "[0,8]") "}";
    char text[sizeof header];
    dti_safetensors read;
    int refused = 0;
    for (size_t n = 0; n < sizeof header - 1; n++) {
        dti_told told = { DT_OK, "" };
        expect(!dti_safetensors_read(header, (int64_t)n, 8, "f", &read, &told), "cut after %zu bytes", n);
        for (int c = 0; c < 256; c++) {
            told.status = DT_OK;
            memcpy(text, header, sizeof header);
            text[n] = (char)c;
            if (dti_safetensors_read(text, sizeof header - 1, 8, "f", &read, &told)) dti_safetensors_fini(&read);
            else refused++;
        }
    }
    expect(refused > 1000, "%d were refused", refused);
}

static const test_row rows[] = {
    { "any_value_is_checked", any_value_is_checked },
    { "depth_has_an_end", depth_has_an_end },
    { "values_are_what_they_say", values_are_what_they_say },
    { "headers_are_checked", headers_are_checked },
    { "lengths_are_checked", lengths_are_checked },
    { "what_is_found", what_is_found },
    { "what_is_written_is_read", what_is_written_is_read },
    { "damaged_headers", damaged_headers },
};

const suite the_suite = { "safetensors", rows, DT_COUNT(rows) };
