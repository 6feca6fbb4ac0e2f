/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the core need of each other; no other layer includes this. */
#ifndef DTI_PARTS_H
#define DTI_PARTS_H

#include <stdarg.h>

#include "core/context.h"

/* Format one line: control characters become spaces, what does not fit ends in "...". */
void dti_line(char *line, size_t bytes, const char *format, va_list args) DT_PRINTF(3, 0);

/* The context's own scope. false: memory ran out, nothing to undo. */
bool dti_scopes_init(dt_context *ctx);
/* End every scope, the context's own last, and free the stack. */
void dti_scopes_fini(dt_context *ctx);

/* No options yet, and a copy of the DT_* variables. false: memory ran out. */
bool dti_options_init(dt_context *ctx);
void dti_options_fini(dt_context *ctx);
/* Set the log level from --dt-log. false and DT_ERR_ARG for a text that is no level. */
bool dti_log_setup(dt_context *ctx);

#endif
