/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a model lies. A style says, for one mesh dim, where a module's parameters lie and what its inputs and result
 * are placed as; other mesh dims stay as they are. dt_place says the same of parameters by hand, dt_fully_shard splits
 * stored parameters over a mesh dim and gathers them in groups while they are used. All of it is said before
 * dt_module_materialize, in any order, and nothing of it changes a value. A call that is refused has changed nothing.
 * Local; every rank says the same.
 *
 *     static const dt_style_row rows[] = {
 *         { "mlp", &dt_style_io, "R", NULL },               what comes in is made whole along tp, once for both
 *         { "mlp.gate", &dt_style_colwise, NULL, NULL },
 *         { "mlp.up", &dt_style_colwise, NULL, NULL },
 *         { "mlp.down", &dt_style_rowwise, NULL, NULL },    what goes out is summed: an all-reduce
 *     };
 *     dt_parallelize(model, "tp", rows, DT_COUNT(rows));
 *     dt_fully_shard(model, "layers.*", "dp", NULL);        a group per layer,
 *     dt_fully_shard(model, "", "dp", NULL);                and one for the rest
 *
 * docs/parallelism.md goes from one rank to three mesh dims by such lines. */
#ifndef DTENSOR_PARALLEL_H
#define DTENSOR_PARALLEL_H

#include <dtensor/nn.h>

DT_BEGIN_DECLS

/* ---- styles ------------------------------------------------------------------------------------------------------ */

/* What one mesh dim does to one module: places, R, S(d) or P, of its own parameters, by name, of its inputs and of its
 * result. It lives as long as the call. */
typedef struct dt_style {
    const char *name;
    const char *params;                                              /* "weight=S(0);bias=S(0)"; absent ones no error */
    const char *in;                                                  /* "S(1)", inputs by ";"; NULL: as they come  */
    const char *out;                                                 /* NULL: as it comes                          */
} dt_style;

/* A style for the modules that match. */
typedef struct dt_style_row {
    const char *pattern;
    const dt_style *style;
    const char *in, *out;                                            /* NULL: the style's; "": as they come        */
} dt_style_row;

/* Shoeybi et al. 2019, Megatron-LM; Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer
 * Models (sequence). */
DT_API extern const dt_style dt_style_colwise;                       /* linear: weight, bias S(0); in R, out S(-1) */
DT_API extern const dt_style dt_style_rowwise;                       /* linear: weight S(1); in S(-1), out R       */
DT_API extern const dt_style dt_style_sequence;                      /* norm, dropout: in S(1), out S(1)           */
DT_API extern const dt_style dt_style_vocab;                         /* embedding: weight S(0); in R, out R        */
DT_API extern const dt_style dt_style_io;                            /* no parameters; the row's in and out        */

/* Place modules by styles, along one mesh dim; a dim of size 1 changes nothing. Inputs and results are placed by each
 * call as dt_redistribute does, along this dim alone: their gradients come back by its rule. Of a parameter with fewer
 * units than the dim has ranks, the dim is split for its module (nn.h, unit). Rows are used during the call.
 * DT_ERR_ARG: a pattern that matches nothing, a module that two rows match, a style that places a parameter twice, an
 * unknown dim; DT_ERR_STATE: one that has a style along this dim, or values; DT_ERR_PARSE, DT_ERR_PLACEMENT: a style
 * that its parameters cannot have: the path is named. */
DT_API dt_status dt_parallelize(dt_module *root, const char *dim, const dt_style_row *rows, int n);

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* Say of the parameters that match where they are stored, and what ops see while their module is called, as placements
 * along all mesh dims; used NULL: as stored; it may name a dtype: "bf16@tp:S(0)". The step between the two is a
 * redistribution, and so is its gradient, at once along mesh dims where the parameter is stored in pieces; along others
 * the gradient stays P. "*": as it is placed so far. DT_ERR_ARG: nothing matches; DT_ERR_STATE: it has values;
 * DT_ERR_PARSE, DT_ERR_PLACEMENT: as of a spec. */
DT_API dt_status dt_place(dt_module *root, const char *pattern, const char *stored, const char *used);

/* ---- fully sharded ----------------------------------------------------------------------------------------------- */

/* zero counts as in Rajbhandari et al. 2020, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models. */
typedef struct dt_fully_shard_params {
    dt_dtype compute;                                                /* default: as stored                         */
    dt_dtype reduce;                   /* what gradients travel as; default: as computed; sums are f32             */
    int zero;                          /* 0: 3; 1: states sharded; 2: gradients too; weights whole                 */
    bool keep_gathered;                                              /* from forward to backward                   */
    int prefetch;                                                    /* groups ahead; 0: one, -1: none             */
} dt_fully_shard_params;

/* Make each match one group: its parameters, and those below that are in no group further down, are stored in pieces of
 * dim 0 over this mesh dim (behind what splits it already), gathered in one call when the module is called and again
 * when backward reaches it, and their gradients reduced in one. In a DT_SCOPE_NO_REDUCE scope gradients stay P, and the
 * next backward outside adds them before it reduces. zero 1 and 2 leave the parameters whole: gradients stay P until
 * the optimiser, or are reduced to pieces by backward; the optimiser's states are pieces. Called for a module and then
 * for its parts, or the other way round: a parameter is in the innermost group. DT_ERR_ARG: nothing matches, zero is
 * none of 0 to 3; DT_ERR_STATE: a match is a group, or has values. */
DT_API dt_status dt_fully_shard(dt_module *root, const char *pattern, const char *dim,
                                const dt_fully_shard_params *params);

DT_END_DECLS

#endif
