/* SPDX-License-Identifier: Apache-2.0
 *
 * How many ranks a line means, and a context of them. */
#include "dry.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/context.h"
#include "mesh/mesh_text.h"

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static int read_ranks(const char *command, const char *text, int *ranks)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool is_number = isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && value >= 1 && value <= INT_MAX;
    if (!is_number)
        return tool_fail(command, TOOL_USAGE, "--ranks=%s: expected an integer from 1 to %d", text, INT_MAX);
    *ranks = (int)value;
    return TOOL_OK;
}

/* The product of the sizes of a mesh; ctx is only for the error. */
static int multiply_sizes(const char *command, dt_context *ctx, const char *mesh, int *ranks)
{
    dti_list list;
    int64_t product = 1;
    if (!dti_list_read(&list, ctx, DTI_LIST_MESH, mesh)) return tool_fail_context(command, ctx);
    for (int i = 0; i < list.n && product <= INT_MAX; i++) {
        if (list.items[i].number == DTI_UNSIZED)
            return tool_fail(command, TOOL_USAGE, "--mesh=%s: a dim without a size needs --ranks", mesh);
        product *= list.items[i].number;
    }
    if (product > INT_MAX)
        return tool_fail(command, TOOL_FAILED, "mesh \"%s\": expected at most %d ranks", mesh, INT_MAX);
    *ranks = (int)product;
    return TOOL_OK;
}

static int count_ranks(const char *command, const char *mesh, int *ranks)
{
    dt_context *ctx = dt_context_dry(1);
    if (!ctx) return tool_fail(command, TOOL_FAILED, "out of memory");
    int status = multiply_sizes(command, ctx, mesh, ranks);
    dt_context_destroy(&ctx);
    return status;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

int dry_begin(const char *command, const char *mesh, const char *ranks, dt_context **ctx)
{
    int n = 0;
    int status = ranks ? read_ranks(command, ranks, &n) : count_ranks(command, mesh, &n);
    if (status != TOOL_OK) return status;
    *ctx = dt_context_dry(n);
    return *ctx ? TOOL_OK : tool_fail(command, TOOL_FAILED, "out of memory");
}

char *dry_text(dt_context *ctx, const char *format, ...)
{
    char *text = NULL;
    size_t bytes;
    va_list args;
    FILE *out = open_memstream(&text, &bytes);
    va_start(args, format);
    if (out) vfprintf(out, format, args);
    va_end(args);
    if (out && fclose(out) == 0) return text;
    free(text);
    dt_context_fail(ctx, DT_ERR_MEMORY, "out of memory");
    return NULL;
}

bool dry_topology(dt_context *ctx, const char *topology)
{
    if (!topology) return true;
    int argc = 2;
    char *option = dry_text(ctx, "--dt-topology=%s", topology), *words[] = { NULL, option, NULL }, **argv = words;
    if (option) dt_options_read(ctx, &argc, &argv);
    free(option);
    return dt_context_status(ctx) == DT_OK;
}
