/* SPDX-License-Identifier: Apache-2.0
 *
 * What examples print alike: the calls that were counted since some moment, and the bytes that rank 0 received. Small
 * tensors go by the way that takes least time; run with --dt-small=0 they go by the one of fewest bytes, as large ones
 * do, and the formulas of books hold. */
#ifndef EXAMPLES_SHOW_H
#define EXAMPLES_SHOW_H

#include <inttypes.h>
#include <stdio.h>

#include <dtensor/dtensor.h>

/* "what: 2 all_gather 3072 B, 1 reduce_scatter 3072 B": along one mesh dim, NULL: along all, since before. */
static inline void show_calls(dt_mesh *mesh, const char *dim, const char *what, dt_counters before)
{
    dt_context *ctx = dt_mesh_context(mesh);
    dt_counters now = dt_mesh_counters(mesh, dim);
    bool any = false;
    dt_print(ctx, "%s:", what);
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) {
        int64_t calls = now.calls[kind] - before.calls[kind], bytes = now.bytes[kind] - before.bytes[kind];
        if (calls == 0 || kind == DT_COMM_LOCAL) continue;
        dt_print(ctx, "%s %" PRId64 " %s %" PRId64 " B", any ? "," : "", calls, dt_comm_kind_text((dt_comm_kind)kind),
                 bytes);
        any = true;
    }
    dt_print(ctx, "%s\n", any ? "" : " nothing");
}

#endif
