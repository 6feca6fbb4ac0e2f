/* SPDX-License-Identifier: Apache-2.0
 *
 * The dry world that a command's --mesh, --ranks and --topology describe. Nothing runs in it: it is asked. */
#ifndef DT_DRY_H
#define DT_DRY_H

#include "tool.h"

/* A context of as many ranks as `ranks` says, NULL: as the sizes of `mesh` multiply to. Another exit status than
 * TOOL_OK: it was said why. */
int dry_begin(const char *command, const char *mesh, const char *ranks, dt_context **ctx);
/* Say where the ranks stand, before the first plan; NULL: as they would. false: the context says why. */
bool dry_topology(dt_context *ctx, const char *topology);
/* A text of its own, which the caller frees; NULL and the error when memory ran out. */
char *dry_text(dt_context *ctx, const char *format, ...) DT_PRINTF(2, 3);

#endif
