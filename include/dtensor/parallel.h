/* SPDX-License-Identifier: Apache-2.0
 *
 * A style says, for one mesh dim, where a module's parameters lie and what its inputs and result are placed as; other
 * mesh dims stay as they are. One style and one group per module; a pattern that matches nothing is an error. */
#ifndef DTENSOR_PARALLEL_H
#define DTENSOR_PARALLEL_H

#include <dtensor/nn.h>

DT_BEGIN_DECLS

typedef struct dt_style {
    const char *name;
    const char *params;                                              /* "weight=S(0);bias=S(0)"; absent ones no error */
    const char *in;                                                  /* "S(1)", inputs by ";"; NULL: as they come  */
    const char *out;                                                 /* NULL: as it comes                          */
} dt_style;

typedef struct dt_style_row {
    const char *pattern;
    const dt_style *style;
    const char *in, *out;                                            /* NULL: the style's                          */
} dt_style_row;

DT_API extern const dt_style dt_style_colwise;                       /* linear: weight, bias S(0); in R, out S(-1) */
DT_API extern const dt_style dt_style_rowwise;                       /* linear: weight S(1); in S(-1), out R       */
DT_API extern const dt_style dt_style_sequence;                      /* norm, dropout: in S(1), out S(1)           */
DT_API extern const dt_style dt_style_vocab;                         /* embedding: weight S(0); in R, out R        */
DT_API extern const dt_style dt_style_io;                            /* no parameters; the row's in and out        */

typedef struct dt_fully_shard_params {
    dt_dtype compute;                                                /* default: as stored                         */
    dt_dtype reduce;                   /* what gradients travel as; default: as computed; sums are f32             */
    int zero;                          /* 0: 3; 1: states sharded; 2: gradients too; weights whole                 */
    bool keep_gathered;                                              /* from forward to backward                   */
    int prefetch;                                                    /* groups ahead; 0: one, -1: none             */
} dt_fully_shard_params;

DT_API dt_status dt_parallelize(dt_module *root, const char *dim, const dt_style_row *rows, int n);
/* Each match is one group. */
DT_API dt_status dt_fully_shard(dt_module *root, const char *pattern, const char *dim,
                                const dt_fully_shard_params *params);
/* Parameters, by hand; used NULL: as stored; used may name a dtype: "bf16@tp:S(0)". */
DT_API dt_status dt_place(dt_module *root, const char *pattern, const char *stored, const char *used);

DT_END_DECLS

#endif
