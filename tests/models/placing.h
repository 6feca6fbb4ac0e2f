/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways in which tests place models: tables of styles along a mesh dim tp, groups of a mesh dim. */
#ifndef PLACING_H
#define PLACING_H

#include <dtensor/dtensor.h>

enum { TP_ROWS = 9, SP_ROWS = 11, GPT_ROWS = 12 };

extern const dt_style_row tp_rows[TP_ROWS], sp_rows[SP_ROWS]; /* a Llama, norms and residuals R, or S(1)            */
extern const dt_style_row gpt_rows[GPT_ROWS];        /* a GPT, as sp_rows                                          */

typedef struct placing {
    const char *mesh, *batch;
    const dt_style_row *rows;
    int row_count;
    const char *sharded;           /* mesh dim of fully_shard; NULL: none                                          */
    dt_fully_shard_params shard;
    bool shard_first, recompute;
    dt_llama_params llama;
    int ranks;
} placing;

/* Place a model as p says, which is all but its values; returns it. */
dt_module *placing_apply(dt_module *model, const placing *p);

#endif
