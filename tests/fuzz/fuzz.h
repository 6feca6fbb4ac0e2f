/* SPDX-License-Identifier: Apache-2.0
 *
 * What fuzzers of notations share: contexts that do not grow, texts that end, and what holds of every outcome. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/context.h>

enum { FUZZ_INPUTS = 1000 };       /* of one context: what it interns is bounded                                   */

typedef struct fuzz_run { dt_context *ctx; int inputs; } fuzz_run;

/* End the process, and say why, unless an invariant holds. */
static inline void fuzz_demand(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

static inline dt_context *fuzz_context(fuzz_run *run, int ranks)
{
    if (run->inputs++ % FUZZ_INPUTS == 0) {
        dt_context_destroy(&run->ctx);
        run->ctx = dt_context_dry(ranks);
    }
    fuzz_demand(run->ctx != NULL, "a context");
    return run->ctx;
}

/* The input as a text of its own, up to its first 0. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_demand(text != NULL, "memory");
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Either there is a result and no error, or an error in one line, which names a column where it is of a text alone.
 * Clears it. */
static inline void fuzz_outcome(dt_context *ctx, bool made, bool column)
{
    const char *error = dt_context_error(ctx);
    fuzz_demand(made == (dt_context_status(ctx) == DT_OK), "a result or an error");
    fuzz_demand(made == (error[0] == '\0'), "a message with every error");
    fuzz_demand(made || !column || strstr(error, " at column "), error);
    for (const char *at = error; *at; at++) fuzz_demand((unsigned char)*at >= ' ' && *at != 0x7f, "one line");
    dt_context_clear(ctx);
    fuzz_demand(dt_context_status(ctx) == DT_OK, "clear");
}

#endif
