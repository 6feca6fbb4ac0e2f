/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, dtypes, and a context without its options and scopes: making and ending, the first error, observers, the
 * logger, time and printing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "suite.h"

/* ---- statuses, dtypes, kinds ------------------------------------------------------------------------------------ */

static void statuses_have_one_sentence_each(void)
{
    for (int i = 0; i < DT_STATUS_COUNT; i++) {
        const char *text = dt_status_text((dt_status)i);
        expect(text && *text && strcmp(text, "unknown status") != 0, "status %d has no sentence", i);
        for (int k = 0; text && k < i; k++)
            expect(strcmp(text, dt_status_text((dt_status)k)) != 0, "statuses %d and %d say the same", k, i);
    }
    expect(strcmp(dt_status_text(DT_STATUS_COUNT), "unknown status") == 0, "one too many");
    expect(strcmp(dt_status_text((dt_status)-1), "unknown status") == 0, "negative");
}

typedef struct dtype_row { dt_dtype dtype; const char *name; size_t bytes; } dtype_row;

static void dtypes_have_names_and_sizes(void)
{
    static const dtype_row dtypes[] = {
        { DT_DTYPE_DEFAULT, "default", 0 }, { DT_F64, "f64", 8 }, { DT_F32, "f32", 4 }, { DT_BF16, "bf16", 2 },
        { DT_F16, "f16", 2 }, { DT_I64, "i64", 8 }, { DT_I32, "i32", 4 }, { DT_U8, "u8", 1 }, { DT_BOOL, "bool", 1 },
        { DT_DTYPE_COUNT, "?", 0 }, { (dt_dtype)-1, "?", 0 },
    };
    expect(DT_COUNT(dtypes) == DT_DTYPE_COUNT + 2, "a dtype is not tested");
    for (int i = 0; i < DT_COUNT(dtypes); i++) {
        const char *text = dt_dtype_text(dtypes[i].dtype);
        expect(text && strcmp(text, dtypes[i].name) == 0, "%s: %s", dtypes[i].name, text ? text : "NULL");
        expect(dt_dtype_bytes(dtypes[i].dtype) == dtypes[i].bytes, "%s: %zu bytes", dtypes[i].name,
               dt_dtype_bytes(dtypes[i].dtype));
    }
}

static void kinds_of_communication_have_names(void)
{
    static const char *const names[DT_COMM_KIND_COUNT + 1] = {
        [DT_COMM_ALL_GATHER] = "all_gather", [DT_COMM_REDUCE_SCATTER] = "reduce_scatter",
        [DT_COMM_ALL_REDUCE] = "all_reduce", [DT_COMM_ALL_TO_ALL] = "all_to_all", [DT_COMM_PERMUTE] = "permute",
        [DT_COMM_BROADCAST] = "broadcast", [DT_COMM_EXCHANGE] = "exchange", [DT_COMM_SEND] = "send",
        [DT_COMM_LOCAL] = "local", [DT_COMM_KIND_COUNT] = "?",
    };
    for (int i = 0; i < DT_COUNT(names); i++) {
        const char *text = dt_comm_kind_text((dt_comm_kind)i);
        expect(names[i] && text && strcmp(text, names[i]) == 0, "kind %d: %s", i, text ? text : "NULL");
    }
    expect(strcmp(dt_comm_kind_text((dt_comm_kind)-1), "?") == 0, "negative");
}

/* ---- making and ending ------------------------------------------------------------------------------------------ */

static void a_dry_context_is_rank_0_of_n(void)
{
    static const int counts[] = { 1, 2, 3, 8, 16384 };
    for (int i = 0; i < DT_COUNT(counts); i++) {
        dt_context *ctx = dt_context_dry(counts[i]);
        expect(ctx && dt_rank(ctx) == 0 && dt_rank_count(ctx) == counts[i], "%d ranks", counts[i]);
        expect(dt_context_status(ctx) == DT_OK && *dt_context_error(ctx) == '\0', "begins without an error");
        dt_context_destroy(&ctx);
        expect(ctx == NULL, "destroy sets NULL");
    }
    expect(!dt_context_dry(0) && !dt_context_dry(-1), "fewer than one rank");
}

static void destroying_nothing_is_fine(void)
{
    dt_context *none = NULL;
    dt_context_destroy(&none);
    dt_context_destroy(NULL);
    expect(none == NULL, "still none");
}

static void calls_without_a_context(void)
{
    expect(dt_rank(NULL) == 0 && dt_rank_count(NULL) == 0, "no rank");
    expect(dt_context_status(NULL) == DT_ERR_ARG && *dt_context_error(NULL), "an error with a message");
    expect(dt_context_clear(NULL) == DT_ERR_ARG && dt_context_sync(NULL) == DT_ERR_ARG, "clear and sync");
    expect(dt_context_step(NULL, 0, 0) == DT_ERR_ARG && dt_context_observe(NULL, NULL, NULL) == DT_ERR_ARG, "step");
    expect(dt_context_fail(NULL, DT_ERR_IO, "x") == DT_ERR_IO, "fail returns its status");
    expect(!(dt_context_time(NULL) > 0), "no time");
    dt_context_logger(NULL, DT_LOG_INFO, NULL, NULL);
    dt_print(NULL, "must not appear\n");
}

typedef struct layer { char *ended; char letter; dt_context *ctx; char bytes[100]; } layer;

static void layer_fini(void *state)
{
    layer *self = state;
    self->ended[strlen(self->ended)] = self->letter;
    dti_context_take(self->ctx, 10); /* the arena is still there */
}

static void end_handle(dti_handle *handle)
{
    layer *self = (layer *)(void *)(handle + 1);
    self->ended[strlen(self->ended)] = self->letter;
}

static void layers_end_after_scopes_from_the_highest(void)
{
    char ended[DTI_LAYER_COUNT + 2] = "";
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DTI_LAYER_COUNT; i++) {
        layer *state = dti_context_layer(ctx, (dti_layer)i, sizeof *state, layer_fini);
        expect(state && !state->ended && !state->bytes[99], "layer %d begins zeroed", i);
        *state = (layer){ .ended = ended, .letter = (char)('0' + i), .ctx = ctx };
        expect(dti_context_layer(ctx, (dti_layer)i, sizeof *state, layer_fini) == state, "layer %d is one", i);
    }
    dti_handle *handle = dti_context_take(ctx, sizeof *handle + sizeof(layer));
    *(layer *)(void *)(handle + 1) = (layer){ .ended = ended, .letter = 'h' };
    handle->destroy = end_handle;
    dti_scope_own(ctx, handle);
    dt_context_destroy(&ctx);
    expect(ended[0] == 'h', "scopes end first: %s", ended);
    for (int i = 0; i < DTI_LAYER_COUNT; i++)
        expect(ended[1 + i] == (char)('0' + DTI_LAYER_COUNT - 1 - i), "layers end from the highest: %s", ended);
}

static void layers_without_fini(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dti_context_layer(ctx, DTI_LAYER_SPEC, 8, NULL) != NULL, "made");
    dt_context_destroy(&ctx); /* the others were never asked for */
}

static void memory_that_cannot_be_had_is_an_error(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(!dti_context_take(ctx, SIZE_MAX / 2), "took half of all memory");
    expect(dt_context_status(ctx) == DT_ERR_MEMORY, "status %d", (int)dt_context_status(ctx));
    char size[32];
    snprintf(size, sizeof size, "%zu bytes", SIZE_MAX / 2);
    expect(strstr(dt_context_error(ctx), size), "%s does not say %s", dt_context_error(ctx), size);
    dt_context_clear(ctx);
    expect(!dti_context_layer(ctx, DTI_LAYER_MESH, SIZE_MAX / 2, layer_fini), "a layer of that size");
    expect(dt_context_status(ctx) == DT_ERR_MEMORY, "status %d", (int)dt_context_status(ctx));
    dt_context_clear(ctx);
    expect(dti_context_layer(ctx, DTI_LAYER_MESH, 8, NULL) != NULL, "smaller, it works");
    dt_context_destroy(&ctx);
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static void the_first_error_stays(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dt_context_fail(ctx, DT_ERR_SHAPE, "got %d, want %s", 3, "4") == DT_ERR_SHAPE, "returns its status");
    expect(dt_context_fail(ctx, DT_ERR_IO, "second") == DT_ERR_IO, "returns its status");
    expect(dti_fail(ctx, DT_ERR_MEMORY, "third") == DT_ERR_MEMORY, "returns its status");
    expect(dt_context_status(ctx) == DT_ERR_SHAPE, "status %d", (int)dt_context_status(ctx));
    expect(strcmp(dt_context_error(ctx), "got 3, want 4") == 0, "got %s", dt_context_error(ctx));
    expect(dt_context_clear(ctx) == DT_OK, "clears");
    expect(dt_context_status(ctx) == DT_OK && *dt_context_error(ctx) == '\0', "is clear");
    dti_fail(ctx, DT_ERR_DTYPE, "next");
    expect(strcmp(dt_context_error(ctx), "next") == 0, "got %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void ok_is_no_error(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dt_context_fail(ctx, DT_OK, "nothing") == DT_OK, "returns DT_OK");
    expect(dt_context_status(ctx) == DT_OK && *dt_context_error(ctx) == '\0', "changes nothing");
    dt_context_destroy(&ctx);
}

static void a_failed_context_does_nothing(void)
{
    dt_context *ctx = dt_context_dry(1);
    dt_context_fail(ctx, DT_ERR_SHAPE, "first");
    expect(dt_context_sync(ctx) == DT_ERR_SHAPE, "sync");
    expect(dt_context_step(ctx, 5, 1) == DT_ERR_SHAPE && ctx->step == 0, "step");
    expect(dt_context_step(ctx, -5, 1) == DT_ERR_SHAPE, "wrong step");
    expect(dt_context_observe(ctx, NULL, NULL) == DT_ERR_SHAPE, "observe");
    expect(strcmp(dt_context_error(ctx), "first") == 0, "got %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void messages_are_one_line(void)
{
    dt_context *ctx = dt_context_dry(1);
    dt_context_fail(ctx, DT_ERR_IO, "a\nb\r\nc\td\x1b[0m\x7f %s", "f\xc3\xbcnf\n");
    expect(strcmp(dt_context_error(ctx), "a b  c d [0m  f\xc3\xbcnf ") == 0, "got %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void an_empty_message_is_the_sentence_of_the_status(void)
{
    dt_context *ctx = dt_context_dry(1);
    dt_context_fail(ctx, DT_ERR_TIMEOUT, "%s", "");
    expect(strcmp(dt_context_error(ctx), dt_status_text(DT_ERR_TIMEOUT)) == 0, "got %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

/* A message of n characters, each `unit` bytes long, after a prefix that shifts them. */
static void expect_cut(const char *prefix, const char *unit)
{
    char text[5000] = "";
    size_t bytes = strlen(unit), at = strlen(prefix);
    dt_context *ctx = dt_context_dry(1);
    strcpy(text, prefix);
    while (strlen(text) + bytes < sizeof text) strcat(text, unit);
    dt_context_fail(ctx, DT_ERR_IO, "%s", text);
    const char *error = dt_context_error(ctx);
    size_t n = strlen(error);
    expect(n < sizeof ctx->error && n + bytes >= sizeof ctx->error - 1, "%zu characters", n);
    expect(n > 3 && strcmp(error + n - 3, "...") == 0, "does not end in ...");
    expect(n > 3 && strncmp(error, text, n - 3) == 0, "differs before the end");
    expect(n > 3 && (n - 3 - at) % bytes == 0, "a character of %zu bytes is cut", bytes);
    dt_context_destroy(&ctx);
}

static void long_messages_are_cut_between_characters(void)
{
    static const char *const prefixes[] = { "", "1", "12", "123" };
    static const char *const units[] = { "x", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x99\x82" };
    for (int i = 0; i < DT_COUNT(prefixes); i++)
        for (int k = 0; k < DT_COUNT(units); k++) expect_cut(prefixes[i], units[k]);
}

static void a_message_that_just_fits_is_whole(void)
{
    char text[1025];
    memset(text, 'x', sizeof text);
    for (size_t n = 1022; n <= 1024; n++) {
        dt_context *ctx = dt_context_dry(1);
        text[n] = '\0';
        dti_fail(ctx, DT_ERR_IO, "%s", text);
        expect((strcmp(dt_context_error(ctx), text) == 0) == (n < sizeof ctx->error), "%zu characters", n);
        text[n] = 'x';
        dt_context_destroy(&ctx);
    }
}

/* ---- observers -------------------------------------------------------------------------------------------------- */

typedef struct seen { char order[64]; int n; char letter; dt_event event; char text[64]; struct seen *all; } seen;

static void watch(const dt_event *event, void *arg)
{
    seen *self = arg, *all = self->all ? self->all : self;
    self->n++;
    self->event = *event;
    snprintf(self->text, sizeof self->text, "%s", event->text);
    all->order[strlen(all->order)] = self->letter;
}

static void observers_see_the_first_error_in_order(void)
{
    seen all[DT_MAX_OBSERVERS] = { 0 };
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_MAX_OBSERVERS; i++) {
        all[i].all = all;
        all[i].letter = (char)('a' + i);
        expect(dt_context_observe(ctx, watch, &all[i]) == DT_OK, "observer %d", i);
    }
    dt_context_fail(ctx, DT_ERR_DEVICE, "gone");
    dt_context_fail(ctx, DT_ERR_IO, "later");
    expect(strcmp(all->order, "abcdefgh") == 0, "order %s", all->order);
    for (int i = 0; i < DT_MAX_OBSERVERS; i++) {
        const dt_event *event = &all[i].event;
        expect(event->kind == DT_EVENT_ERROR && event->status == DT_ERR_DEVICE && !event->object, "observer %d", i);
        expect(strcmp(all[i].text, "gone") == 0, "observer %d got %s", i, all[i].text);
    }
    dt_context_destroy(&ctx);
}

static void one_observer_too_many_is_refused(void)
{
    seen all[DT_MAX_OBSERVERS + 1] = { 0 };
    dt_context *ctx = dt_context_dry(1);
    for (int i = 0; i < DT_MAX_OBSERVERS; i++) dt_context_observe(ctx, watch, &all[i]);
    expect(dt_context_observe(ctx, watch, &all[DT_MAX_OBSERVERS]) == DT_ERR_STATE, "was taken");
    expect(dt_context_status(ctx) == DT_ERR_STATE && strstr(dt_context_error(ctx), "8"), "got %s",
           dt_context_error(ctx));
    expect(all[0].n == 1 && all[DT_MAX_OBSERVERS - 1].n == 1 && all[DT_MAX_OBSERVERS].n == 0, "who saw it");
    dt_context_destroy(&ctx);
}

static void an_observer_needs_a_function(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dt_context_observe(ctx, NULL, NULL) == DT_ERR_ARG && ctx->observer_count == 0, "was taken");
    dt_context_destroy(&ctx);
}

static void other_events_reach_observers(void)
{
    seen one = { 0 };
    dt_context *ctx = dt_context_dry(1);
    dt_context_observe(ctx, watch, &one);
    dti_notify(ctx, &(dt_event){ DT_EVENT_MESH, DT_OK, "dp=2", ctx });
    expect(one.n == 1 && one.event.kind == DT_EVENT_MESH && one.event.object == ctx, "the event");
    dt_context_destroy(&ctx);
}

/* ---- what is written to a stream -------------------------------------------------------------------------------- */

typedef struct capture { FILE *stream, *file; int saved; } capture;

static capture capture_begin(FILE *stream)
{
    capture begun = { stream, tmpfile(), dup(fileno(stream)) };
    fflush(stream);
    dup2(fileno(begun.file), fileno(stream));
    return begun;
}

static void capture_end(capture *begun, char *text, size_t bytes)
{
    fflush(begun->stream);
    dup2(begun->saved, fileno(begun->stream));
    close(begun->saved);
    rewind(begun->file);
    text[fread(text, 1, bytes - 1, begun->file)] = '\0';
    fclose(begun->file);
}

static void print_writes_on_rank_0_only(void)
{
    char text[256];
    dt_context *ctx = dt_context_dry(2);
    capture begun = capture_begin(stdout);
    dt_print(ctx, "%s %d\n", "zero", 0);
    ctx->rank = 1;
    dt_print(ctx, "one\n");
    ctx->rank = 0;
    dt_context_fail(ctx, DT_ERR_IO, "x");
    dt_print(ctx, "failed\n");
    capture_end(&begun, text, sizeof text);
    expect(strcmp(text, "zero 0\n") == 0, "got %s", text);
    dt_context_destroy(&ctx);
}

static void log_all(dt_context *ctx)
{
    dti_log(ctx, DT_LOG_WARNING, "w%d", 1);
    dti_log(ctx, DT_LOG_INFO, "i\n2");
    dti_log(ctx, DT_LOG_DEBUG, "d");
    dti_log(ctx, DT_LOG_NONE, "n");
}

static void nothing_is_written_unasked(void)
{
    char text[256], out[256];
    unsetenv("DT_LOG");
    capture begun = capture_begin(stderr), begun_out = capture_begin(stdout);
    dt_context *ctx = dt_context_dry(2);
    log_all(ctx);
    dti_log(NULL, DT_LOG_WARNING, "no context");
    dt_context_fail(ctx, DT_ERR_IO, "x");
    dt_context_destroy(&ctx);
    capture_end(&begun_out, out, sizeof out);
    capture_end(&begun, text, sizeof text);
    expect(*text == '\0' && *out == '\0', "got %s%s", text, out);
}

static void the_logger_without_a_function_is_stderr(void)
{
    char text[256];
    capture begun = capture_begin(stderr);
    dt_context *ctx = dt_context_dry(2);
    dt_context_logger(ctx, DT_LOG_INFO, NULL, NULL);
    log_all(ctx);
    dt_context_destroy(&ctx);
    capture_end(&begun, text, sizeof text);
    expect(strcmp(text, "dtensor warning, rank 0: w1\ndtensor info, rank 0: i 2\n") == 0, "got %s", text);
}

static void the_variable_sets_the_log_level(void)
{
    char text[256];
    setenv("DT_LOG", "warning", 1);
    capture begun = capture_begin(stderr);
    dt_context *ctx = dt_context_dry(2);
    log_all(ctx);
    dt_context_destroy(&ctx);
    capture_end(&begun, text, sizeof text);
    unsetenv("DT_LOG");
    expect(strcmp(text, "dtensor warning, rank 0: w1\n") == 0, "got %s", text);
}

static void a_variable_that_is_no_level_fails_the_context(void)
{
    setenv("DT_LOG", "loud", 1);
    dt_context *ctx = dt_context_dry(2);
    unsetenv("DT_LOG");
    expect(dt_context_status(ctx) == DT_ERR_ARG, "status %d", (int)dt_context_status(ctx));
    expect(strcmp(dt_context_error(ctx), "DT_LOG=loud: expected none, warning, info or debug") == 0, "got %s",
           dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void collect(dt_log_level level, const char *line, void *arg)
{
    char *all = arg;
    snprintf(all + strlen(all), 256 - strlen(all), "%d:%s;", (int)level, line);
}

static void the_logger_gets_lines_up_to_its_level(void)
{
    static const char *const wanted[DT_LOG_LEVEL_COUNT] = { "", "1:w1;", "1:w1;2:i 2;", "1:w1;2:i 2;3:d;" };
    for (int level = 0; level < DT_LOG_LEVEL_COUNT; level++) {
        char all[256] = "";
        dt_context *ctx = dt_context_dry(1);
        dt_context_logger(ctx, (dt_log_level)level, collect, all);
        log_all(ctx);
        expect(strcmp(all, wanted[level]) == 0, "level %d: %s", level, all);
        dt_context_destroy(&ctx);
    }
}

static void an_unknown_log_level_is_refused(void)
{
    static const dt_log_level unknown[] = { DT_LOG_LEVEL_COUNT, (dt_log_level)-1 };
    for (int i = 0; i < DT_COUNT(unknown); i++) {
        char all[256] = "";
        dt_context *ctx = dt_context_dry(1);
        dt_context_logger(ctx, unknown[i], collect, all);
        expect(dt_context_status(ctx) == DT_ERR_ARG, "status %d", (int)dt_context_status(ctx));
        log_all(ctx);
        expect(*all == '\0', "logged %s", all);
        dt_context_destroy(&ctx);
    }
}

/* ---- steps and time --------------------------------------------------------------------------------------------- */

static void steps_are_kept_and_checked(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dt_context_step(ctx, INT64_MAX, 3) == DT_OK && ctx->step == INT64_MAX && ctx->micro_batch == 3, "kept");
    expect(dt_context_step(ctx, -1, 0) == DT_ERR_ARG && ctx->step == INT64_MAX, "negative step");
    dt_context_clear(ctx);
    expect(dt_context_step(ctx, 0, -1) == DT_ERR_ARG && ctx->micro_batch == 3, "negative micro-batch");
    expect(strstr(dt_context_error(ctx), "micro-batch -1"), "got %s", dt_context_error(ctx));
    dt_context_clear(ctx);
    expect(dt_context_step(ctx, 0, 0) == DT_OK && ctx->step == 0 && ctx->micro_batch == 0, "back to 0");
    expect(dt_context_sync(ctx) == DT_OK, "nothing to wait for");
    dt_context_destroy(&ctx);
}

static void time_is_predicted_in_a_dry_run(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(!(dt_context_time(ctx) > 0) && !(dt_context_time(ctx) < 0), "begins at %g", dt_context_time(ctx));
    ctx->time = 2.5;
    expect(!(dt_context_time(ctx) > 2.5) && !(dt_context_time(ctx) < 2.5), "is %g", dt_context_time(ctx));
    ctx->dry = false;
    double first = dt_context_time(ctx), second = dt_context_time(ctx);
    while (!(second > first) && second - first < 1) second = dt_context_time(ctx);
    expect(second > first, "a real clock goes on: %g, %g", first, second);
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "statuses_have_one_sentence_each", statuses_have_one_sentence_each },
    { "dtypes_have_names_and_sizes", dtypes_have_names_and_sizes },
    { "kinds_of_communication_have_names", kinds_of_communication_have_names },
    { "a_dry_context_is_rank_0_of_n", a_dry_context_is_rank_0_of_n },
    { "destroying_nothing_is_fine", destroying_nothing_is_fine },
    { "calls_without_a_context", calls_without_a_context },
    { "layers_end_after_scopes_from_the_highest", layers_end_after_scopes_from_the_highest },
    { "layers_without_fini", layers_without_fini },
    { "memory_that_cannot_be_had_is_an_error", memory_that_cannot_be_had_is_an_error },
    { "the_first_error_stays", the_first_error_stays },
    { "ok_is_no_error", ok_is_no_error },
    { "a_failed_context_does_nothing", a_failed_context_does_nothing },
    { "messages_are_one_line", messages_are_one_line },
    { "an_empty_message_is_the_sentence_of_the_status", an_empty_message_is_the_sentence_of_the_status },
    { "long_messages_are_cut_between_characters", long_messages_are_cut_between_characters },
    { "a_message_that_just_fits_is_whole", a_message_that_just_fits_is_whole },
    { "observers_see_the_first_error_in_order", observers_see_the_first_error_in_order },
    { "one_observer_too_many_is_refused", one_observer_too_many_is_refused },
    { "an_observer_needs_a_function", an_observer_needs_a_function },
    { "other_events_reach_observers", other_events_reach_observers },
    { "print_writes_on_rank_0_only", print_writes_on_rank_0_only },
    { "nothing_is_written_unasked", nothing_is_written_unasked },
    { "the_logger_without_a_function_is_stderr", the_logger_without_a_function_is_stderr },
    { "the_variable_sets_the_log_level", the_variable_sets_the_log_level },
    { "a_variable_that_is_no_level_fails_the_context", a_variable_that_is_no_level_fails_the_context },
    { "the_logger_gets_lines_up_to_its_level", the_logger_gets_lines_up_to_its_level },
    { "an_unknown_log_level_is_refused", an_unknown_log_level_is_refused },
    { "steps_are_kept_and_checked", steps_are_kept_and_checked },
    { "time_is_predicted_in_a_dry_run", time_is_predicted_in_a_dry_run },
};

const suite the_suite = { "context", rows, DT_COUNT(rows) };
