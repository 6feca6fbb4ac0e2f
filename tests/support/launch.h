/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a test that runs on thread ranks. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdint.h>

#include <dtensor/context.h>

#include "suite.h"

/* fn on so many ranks, of which none is expected to fail. */
static inline void launch(int ranks, dt_rank_fn fn, const void *arg)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(ranks, fn, (void *)(uintptr_t)arg, error, sizeof error);
    expect(status == DT_OK, "%d ranks: %s", ranks, error);
}

#endif
