/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls by row, remembered: what the operands become and the results are, for one op, one key of attributes and one
 * list of specs. */
#ifndef DTI_OPS_DISPATCH_H
#define DTI_OPS_DISPATCH_H

#include "ops/row.h"
#include "tensor/tensor.h"

/* Calls remembered at most: those of the last DTI_REMEMBERED / 2 or more different ones are. */
enum { DTI_REMEMBERED = 4096 };

typedef struct dti_dispatch {
    dti_origin origin;                 /* first: of the tensors that the call made                                 */
    const dt_op *op;
    const dti_rule *rule;
    int n, result_count;               /* results: kept ones among them                                            */
    uint32_t moved;                    /* bit i: operand i is used on another spec                                 */
    uint32_t number_dims;              /* as in dti_answer                                                         */
    const dt_spec *asked;              /* as in dti_attributes                                                     */
    char *whole;                       /* as in dt_decomposition; NULL: the kernel does it                         */
    size_t key_bytes;
    const unsigned char *key, *values; /* values: of the first such call's attributes                              */
    char *explained;                   /* as text; NULL: nobody asked                                              */
    const dt_spec *in[DT_MAX_OPERANDS], *used[DT_MAX_OPERANDS], *result[DT_MAX_RESULTS];
    const dt_spec *given[DT_MAX_RESULTS]; /* results as the caller gets them: where they can be on the first
                                          operand's mesh, when operands lie on several                             */
    dt_index_map *map;                 /* of the row, for this call; NULL: none                                    */
    const struct dt_plan *pull[DT_MAX_RESULTS]; /* of results, where the map's dim is split; NULL: the kernel's    */
    const dt_spec *via[DT_MAX_OPERANDS]; /* between the two: what is P of another kind is reduced first; else used */
} dti_dispatch;

/* What lies between an operand as it is given, which on the call's mesh is `on` (placements/views.h), and as it is
 * used: one that is P(max) and is lifted to P(sum) is R before; one of a view without a refinement is brought to the
 * mesh first if it is P: nothing is P in both. used itself, where one redistribution leads to it. NULL and the error
 * when memory ran out. */
const dt_spec *dti_dispatch_via(const dt_spec *in, const dt_spec *on, const dt_spec *used);

/* What is remembered for a call, or made now; it is there until the next question, for those who hold it until they
 * release it. NULL and the error: see dt_apply. */
dti_dispatch *dti_dispatch_get(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n,
                               const dti_attributes *attributes);
static inline dti_dispatch *dti_dispatch_hold(dti_dispatch *d)
{
    dti_origin_hold(&d->origin);
    return d;
}

static inline void dti_dispatch_release(dti_dispatch *d)
{
    if (d) dti_origin_release(&d->origin);
}

/* Why the calls that an origin stands for take what they take (explain.h); lives as long as it. NULL: the error. */
const char *dti_dispatch_explained(dt_context *ctx, dti_origin *origin);
/* How many calls are remembered. */
int dti_dispatch_count(dt_context *ctx);

/* ---- parts of a call, for those that make several at once -------------------------------------------------------- */

typedef struct dti_calling {
    const dt_op *op;
    dt_tensor *const *in;
    int n, wanted;                     /* operands; results that somebody wants                                    */
    const char *placements;            /* of the first result; NULL: nobody asks for any                           */
    dti_dispatch *d;                   /* held                                                                     */
    dt_tensor *x[DT_MAX_OPERANDS];     /* as the kernel takes them                                                 */
    dt_tensor *used[DT_MAX_OPERANDS];  /* in, where an operand is in use (autograd/use.h)                          */
    dti_attributes attributes;
} dti_calling;

/* Everything is checked, *d and the attributes are written. false: the error, and nothing to end. */
bool dti_call_begin(dt_context *ctx, dti_calling *c, const void *values);
/* May operands move, as strict scopes do not allow? Then that is counted. */
bool dti_call_admit(dt_context *ctx, const dti_dispatch *d);
/* x on the specs that the kernel takes: it computes, results are made and recorded. */
bool dti_call_compute(dt_context *ctx, dti_calling *c, dt_tensor **out);
void dti_call_end(dti_calling *c);

#endif
