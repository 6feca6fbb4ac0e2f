/* SPDX-License-Identifier: Apache-2.0
 *
 * Expectations about a context's error. */
#ifndef ERRORS_H
#define ERRORS_H

#include <string.h>

#include <dtensor/context.h>

#include "suite.h"

/* The context has failed with this status and a message that has this part; it is cleared. */
static inline void expect_error(dt_context *ctx, dt_status status, const char *part, const char *what)
{
    expect(dt_context_status(ctx) == status, "%s: status %d, expected %d (%s)", what, (int)dt_context_status(ctx),
           (int)status, dt_context_error(ctx));
    expect(strstr(dt_context_error(ctx), part) != NULL, "%s: error \"%s\" has no \"%s\"", what, dt_context_error(ctx),
           part);
    dt_context_clear(ctx);
}

/* It has not failed; if it has, it is cleared. */
static inline void expect_no_error(dt_context *ctx, const char *what)
{
    expect(dt_context_status(ctx) == DT_OK, "%s: %s", what, dt_context_error(ctx));
    dt_context_clear(ctx);
}

#endif
