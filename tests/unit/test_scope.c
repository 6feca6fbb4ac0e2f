/* SPDX-License-Identifier: Apache-2.0
 *
 * Scopes: names, flags, the order in which handles end, keep, and pops on a failed context. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "suite.h"

/* A handle that writes its letter when it ends. */
typedef struct item { dti_handle handle; char letter; char *ended; struct item *takes_along; } item;

static void item_destroy(dti_handle *handle)
{
    item *self = (item *)handle;
    size_t n = strlen(self->ended);
    self->ended[n] = self->letter;
    self->ended[n + 1] = '\0';
    if (self->takes_along) {
        dti_scope_disown(&self->takes_along->handle);
        item_destroy(&self->takes_along->handle);
    }
    free(self);
}

static item *make(dt_context *ctx, char *ended, char letter)
{
    item *made = calloc(1, sizeof *made);
    made->handle.destroy = item_destroy;
    made->letter = letter;
    made->ended = ended;
    dti_scope_own(ctx, &made->handle);
    return made;
}

static dt_tensor *as_tensor(item *made) { return (dt_tensor *)made; }

static void expect_ended(char *ended, const char *wanted)
{
    expect(strcmp(ended, wanted) == 0, "ended %s, want %s", ended, wanted);
}

static void handles_end_newest_first(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    make(ctx, ended, 'o');
    int scope = dt_scope_push(ctx, 0);
    for (char c = 'a'; c <= 'd'; c++) make(ctx, ended, c);
    expect(dt_scope_pop(ctx, scope, NULL) == NULL, "keeps nothing");
    expect_ended(ended, "dcba");
    dt_context_destroy(&ctx);
    expect_ended(ended, "dcbao");
}

static void pop_ends_the_scopes_left_open_inside(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int first = dt_scope_push(ctx, 0);
    make(ctx, ended, 'a');
    int second = dt_scope_push(ctx, 0);
    make(ctx, ended, 'b');
    dt_scope_push(ctx, 0);
    make(ctx, ended, 'c');
    dt_scope_pop(ctx, second, NULL);
    expect_ended(ended, "cb");
    dt_scope_pop(ctx, first, NULL);
    expect_ended(ended, "cba");
    dt_context_destroy(&ctx);
    expect_ended(ended, "cba");
}

static void destroy_ends_open_scopes(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    make(ctx, ended, 'a');
    dt_scope_push(ctx, 0);
    make(ctx, ended, 'b');
    dt_scope_push(ctx, 0);
    make(ctx, ended, 'c');
    dt_context_destroy(&ctx);
    expect_ended(ended, "cba");
}

static void keep_moves_to_the_outer_scope(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int outer = dt_scope_push(ctx, 0);
    make(ctx, ended, 'o');
    int scope = dt_scope_push(ctx, 0);
    make(ctx, ended, 'a');
    item *kept = make(ctx, ended, 'k');
    make(ctx, ended, 'b');
    expect(dt_scope_pop(ctx, scope, as_tensor(kept)) == as_tensor(kept), "is returned");
    expect_ended(ended, "ba");
    dt_scope_pop(ctx, outer, NULL);
    expect_ended(ended, "bako");
    dt_context_destroy(&ctx);
}

static void keep_of_any_scope_that_ends_moves(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int first = dt_scope_push(ctx, 0);
    item *kept = make(ctx, ended, 'k');
    dt_scope_push(ctx, 0);
    make(ctx, ended, 'a');
    expect(dt_scope_pop(ctx, first, as_tensor(kept)) == as_tensor(kept), "is returned");
    expect_ended(ended, "a");
    dt_context_destroy(&ctx);
    expect_ended(ended, "ak");
}

static void keep_of_an_outer_scope_stays_there(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    item *old = make(ctx, ended, 'o');
    int middle = dt_scope_push(ctx, 0);
    make(ctx, ended, 'm');
    int scope = dt_scope_push(ctx, 0);
    make(ctx, ended, 'a');
    expect(dt_scope_pop(ctx, scope, as_tensor(old)) == as_tensor(old), "is returned");
    dt_scope_pop(ctx, middle, NULL);
    expect_ended(ended, "am");
    dt_context_destroy(&ctx);
    expect_ended(ended, "amo");
}

static void keep_that_no_scope_owns_stays_free(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int scope = dt_scope_push(ctx, 0);
    item *held = make(ctx, ended, 'h');
    dti_scope_disown(&held->handle);
    expect(dt_scope_pop(ctx, scope, as_tensor(held)) == as_tensor(held), "is returned");
    dt_context_destroy(&ctx);
    expect_ended(ended, "");
    item_destroy(&held->handle);
}

static void disown_anywhere_in_the_list(void)
{
    for (int at = 0; at < 3; at++) {
        char ended[32] = "", wanted[] = "cba";
        dt_context *ctx = dt_context_dry(1);
        item *items[3];
        for (int i = 0; i < 3; i++) items[i] = make(ctx, ended, (char)('a' + i));
        dti_scope_disown(&items[at]->handle);
        dti_scope_disown(&items[at]->handle); /* again: nothing */
        dt_context_destroy(&ctx);
        memmove(wanted + 2 - at, wanted + 3 - at, (size_t)at + 1);
        expect_ended(ended, wanted);
        item_destroy(&items[at]->handle);
    }
}

static void a_destroy_may_end_others(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int scope = dt_scope_push(ctx, 0);
    item *source = make(ctx, ended, 's');
    make(ctx, ended, 'x');
    item *view = make(ctx, ended, 'v');
    view->takes_along = source;
    dt_scope_pop(ctx, scope, NULL);
    expect_ended(ended, "vsx");
    dt_context_destroy(&ctx);
}

/* The list of a scope begins in the stack, which moves when it grows. */
static void many_open_scopes_keep_their_handles(void)
{
    enum { N = 1000 };
    static char ended[2 * N];
    int scopes[N];
    item *items[N];
    dt_context *ctx = dt_context_dry(1);
    ended[0] = '\0';
    for (int i = 0; i < N; i++) {
        scopes[i] = dt_scope_push(ctx, 0);
        items[i] = make(ctx, ended, 'x');
    }
    for (int i = 0; i < N; i += 2) {
        dti_scope_disown(&items[i]->handle);
        item_destroy(&items[i]->handle);
    }
    expect(strlen(ended) == N / 2, "%zu ended by hand", strlen(ended));
    dt_scope_pop(ctx, scopes[N / 2], NULL);
    expect(strlen(ended) == N / 2 + N / 4, "%zu ended after half the scopes", strlen(ended));
    dt_scope_pop(ctx, scopes[0], NULL);
    expect(strlen(ended) == N, "%zu ended in all", strlen(ended));
    dt_context_destroy(&ctx);
}

/* ---- names and flags -------------------------------------------------------------------------------------------- */

static void names_are_positive_and_fresh(void)
{
    dt_context *ctx = dt_context_dry(1);
    int last = 0;
    for (int i = 0; i < 1000; i++) {
        int scope = dt_scope_push(ctx, 0);
        expect(scope > last, "scope %d after %d", scope, last);
        last = scope;
        if (i % 3) dt_scope_pop(ctx, scope, NULL);
    }
    dt_context_destroy(&ctx);
}

static void names_begin_again_without_those_still_open(void)
{
    dt_context *ctx = dt_context_dry(1);
    int first = dt_scope_push(ctx, DT_SCOPE_STRICT); /* 1, still open */
    ctx->scope_next = INT_MAX;
    int last = dt_scope_push(ctx, 0), next = dt_scope_push(ctx, 0);
    expect(first == 1 && last == INT_MAX && next == 2, "scopes %d, %d, %d", first, last, next);
    dt_scope_pop(ctx, last, NULL);
    expect(ctx->scope_count == 2, "%d scopes open", ctx->scope_count);
    dt_scope_pop(ctx, first, NULL);
    expect(ctx->scope_count == 1, "%d scopes open", ctx->scope_count);
    dt_context_destroy(&ctx);
}

static void numbers_that_name_no_open_scope_end_nothing(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int closed = dt_scope_push(ctx, 0);
    dt_scope_pop(ctx, closed, NULL);
    int open = dt_scope_push(ctx, 0);
    item *made = make(ctx, ended, 'a');
    const int numbers[] = { 0, -1, closed, open + 1, INT_MAX, INT_MIN };
    for (int i = 0; i < DT_COUNT(numbers); i++)
        expect(dt_scope_pop(ctx, numbers[i], as_tensor(made)) == as_tensor(made), "%d returns keep", numbers[i]);
    expect_ended(ended, "");
    expect(ctx->scope_count == 2 && dt_context_status(ctx) == DT_OK, "%d scopes open", ctx->scope_count);
    dt_context_destroy(&ctx);
    expect_ended(ended, "a");
}

static void flags_add_to_the_outer_scopes(void)
{
    dt_context *ctx = dt_context_dry(1);
    expect(dti_scope_flags(ctx) == 0, "the context's own has none");
    int outer = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    int scope = dt_scope_push(ctx, DT_SCOPE_STRICT);
    expect(dti_scope_flags(ctx) == (DT_SCOPE_NO_GRAD | DT_SCOPE_STRICT), "flags 0x%x", dti_scope_flags(ctx));
    dt_scope_pop(ctx, scope, NULL);
    expect(dti_scope_flags(ctx) == DT_SCOPE_NO_GRAD, "flags 0x%x", dti_scope_flags(ctx));
    dt_scope_pop(ctx, outer, NULL);
    expect(dti_scope_flags(ctx) == 0, "flags 0x%x", dti_scope_flags(ctx));
    dt_context_destroy(&ctx);
}

static void unknown_flags_are_refused(void)
{
    static const unsigned unknown[] = { 1u << 4, 1u << 31, DT_SCOPE_STRICT | 1u << 5, ~0u };
    for (int i = 0; i < DT_COUNT(unknown); i++) {
        dt_context *ctx = dt_context_dry(1);
        expect(dt_scope_push(ctx, unknown[i]) == 0, "0x%x opens a scope", unknown[i]);
        expect(dt_context_status(ctx) == DT_ERR_ARG, "status %d", (int)dt_context_status(ctx));
        expect(strstr(dt_context_error(ctx), "scope flags 0x"), "got %s", dt_context_error(ctx));
        expect(ctx->scope_count == 1, "%d scopes open", ctx->scope_count);
        dt_context_destroy(&ctx);
    }
}

static void scopes_open_and_end_on_a_failed_context(void)
{
    char ended[32] = "";
    dt_context *ctx = dt_context_dry(1);
    int before = dt_scope_push(ctx, 0);
    make(ctx, ended, 'a');
    dt_context_fail(ctx, DT_ERR_SHAPE, "first");
    int after = dt_scope_push(ctx, DT_SCOPE_STRICT | 1u << 20);
    expect(after > before && dti_scope_flags(ctx) == DT_SCOPE_STRICT, "scope %d, flags 0x%x", after,
           dti_scope_flags(ctx));
    item *kept = make(ctx, ended, 'k');
    expect(dt_scope_pop(ctx, after, as_tensor(kept)) == as_tensor(kept), "keep is returned");
    dt_scope_pop(ctx, before, NULL);
    expect_ended(ended, "ka");
    expect(strcmp(dt_context_error(ctx), "first") == 0, "got %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
}

static void no_context(void)
{
    char place;
    dt_tensor *keep = (dt_tensor *)(void *)&place;
    expect(dt_scope_push(NULL, 0) == 0, "no scope");
    expect(dt_scope_pop(NULL, 1, keep) == keep, "keep is returned");
}

static const test_row rows[] = {
    { "handles_end_newest_first", handles_end_newest_first },
    { "pop_ends_the_scopes_left_open_inside", pop_ends_the_scopes_left_open_inside },
    { "destroy_ends_open_scopes", destroy_ends_open_scopes },
    { "keep_moves_to_the_outer_scope", keep_moves_to_the_outer_scope },
    { "keep_of_any_scope_that_ends_moves", keep_of_any_scope_that_ends_moves },
    { "keep_of_an_outer_scope_stays_there", keep_of_an_outer_scope_stays_there },
    { "keep_that_no_scope_owns_stays_free", keep_that_no_scope_owns_stays_free },
    { "disown_anywhere_in_the_list", disown_anywhere_in_the_list },
    { "a_destroy_may_end_others", a_destroy_may_end_others },
    { "many_open_scopes_keep_their_handles", many_open_scopes_keep_their_handles },
    { "names_are_positive_and_fresh", names_are_positive_and_fresh },
    { "names_begin_again_without_those_still_open", names_begin_again_without_those_still_open },
    { "numbers_that_name_no_open_scope_end_nothing", numbers_that_name_no_open_scope_end_nothing },
    { "flags_add_to_the_outer_scopes", flags_add_to_the_outer_scopes },
    { "unknown_flags_are_refused", unknown_flags_are_refused },
    { "scopes_open_and_end_on_a_failed_context", scopes_open_and_end_on_a_failed_context },
    { "no_context", no_context },
};

const suite the_suite = { "scope", rows, DT_COUNT(rows) };
