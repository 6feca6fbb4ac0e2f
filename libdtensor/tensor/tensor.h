/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a tensor: a spec and this rank's part, shared with other tensors of the same value. A rank outside the
 * mesh, and every rank of a dry context, has a spec and no part. */
#ifndef DTI_TENSOR_H
#define DTI_TENSOR_H

#include <dtensor/tensor.h>

#include "core/storage.h"
#include "placements/spec.h"

/* What all handles of one value share. */
typedef struct dti_body {
    int references, handles;       /* of these, handles that are not hidden                                        */
    int others;                    /* handles that are results of their own, of the same value                     */
    int kept;                      /* hidden handles that do not insist on the value: it may be written            */
    int64_t writes;                /* how often it was                                                             */
    int64_t written;               /* the last time: of all writes of the context, which this was                  */
    int marks;                     /* of who looks for it in a list; 0 but then                                    */
    int needs;                     /* how many calls on the tape will make a copy again                            */
    dt_tensor *copies;             /* the same value on other specs, made for ops that need it so, or pinned there;
                                      they end with the last handle that is not hidden, made again with the last
                                      that needs them                                                              */
    struct dti_node *node;         /* of the tape: what made the value; NULL: nothing that has a gradient          */
    int output;                    /* which of its outputs the value is                                            */
} dti_body;

/* What the tape wants to hear. */
typedef struct dti_recorder {
    /* Would a function of x be recorded? */
    bool (*records)(const dt_tensor *x);
    /* y is x, pinned to y's placements on some mesh dims; or across the border of a mesh, with the spec of x's
     * gradient. false: the error. */
    bool (*pinned)(dt_tensor *x, dt_tensor *y, uint32_t named);
    bool (*crossed)(dt_tensor *x, dt_tensor *y, const dt_spec *grad);
    void (*release)(struct dti_node *node);
} dti_recorder;

/* The call that made a tensor's value, for those who ask why. */
typedef struct dti_origin {
    int references;
    void (*destroy)(struct dti_origin *origin);
    const char *(*explain)(dt_context *ctx, struct dti_origin *origin); /* lives as long as it; NULL: the error    */
} dti_origin;

static inline dti_origin *dti_origin_hold(dti_origin *origin)
{
    if (origin) origin->references++;
    return origin;
}

static inline void dti_origin_release(dti_origin *origin)
{
    if (origin && --origin->references == 0) origin->destroy(origin);
}

#define DTI_PINNED (UINT32_C(1) << 31)

struct dt_tensor {
    dti_handle handle;             /* first: a tensor is a handle of its scope                                     */
    dt_context *ctx;
    const dt_spec *spec;
    dti_storage *storage;          /* row-major; NULL: no part                                                     */
    char *text;                    /* of dt_tensor_text                                                            */
    dti_body *body;                /* NULL: no other handle has asked for one                                      */
    bool hidden;                   /* no scope's and no user's: a copy, or kept by the tape                        */
    bool other;                    /* a result that happens to be the value of another tensor                      */
    bool unmade;                   /* a parameter that has no values yet, and no storage                           */
    uint32_t named;                /* pinned by a user: the mesh dims that were named, and DTI_PINNED; else 0      */
    dt_tensor *next_copy;          /* in the list of copies it is in                                               */
    dti_origin *origin;            /* NULL: no call of an op                                                       */
    dt_tensor *used;               /* what ops take for it now (autograd/use.h); NULL: itself                      */
    bool taken;                    /* has one taken this one, as used?                                             */
};

/* What an op is to take for an operand: its used value where it is in a use that has begun, else x. */
static inline dt_tensor *dti_used(dt_tensor *x)
{
    if (!x || !x->used) return x;
    x->used->taken = true;
    return x->used;
}

/* y comes of the call that made x, too. */
void dti_tensor_come_of(dt_tensor *y, const dt_tensor *x);
/* y, made by one call, is what a function made of several gives, of which this is the first that counts: both are told
 * of. false: memory ran out. */
bool dti_tensor_made_of(dt_tensor *y, const dt_tensor *first);

/* A tensor of the innermost scope with this rank's part; takes the reference, also on failure. NULL: the error. */
dt_tensor *dti_tensor_new(const dt_spec *spec, dti_storage *storage);
/* The same value in another handle of the innermost scope. */
dt_tensor *dti_tensor_share(dt_tensor *x);
/* Make x the only owner of its elements, so that they can be written: copies of its value end, peers that still read
 * are waited for, and what the tape keeps as a gradient takes a part of its own where it shares one. All handles of a
 * tensor (dt_tensor_hold) are it; who: what is to write it, "op: x". false and DT_ERR_STATE: the tape still needs the
 * value, or another tensor shares it. */
bool dti_tensor_own(dt_tensor *x, const char *who);
/* Its parts: the copies end; x, a hidden handle, leaves the others of its value. */
void dti_tensor_drop_copies(dt_tensor *x);
void dti_tensor_leave(dt_tensor *x);
/* It has been written. */
void dti_tensor_written(dt_tensor *x);
/* What x's handles share; NULL and the error when memory ran out. */
dti_body *dti_tensor_body(dt_tensor *x);
/* Take a handle out of its scope, and out of the count of those that keep copies alive; the caller destroys it. NULL
 * for NULL. */
dt_tensor *dti_tensor_hide(dt_tensor *x);
/* One that needs a copy of x's value again, and one less; without handles and needs the copies end. */
void dti_tensor_need(dt_tensor *x);
void dti_tensor_need_no_more(dt_tensor *x);
/* End a handle that is in no scope. NULL: nothing. */
void dti_tensor_destroy(dt_tensor *x);
/* Room for this rank's part, not initialised. has: does it have one? false: memory ran out. */
bool dti_part_new(const dt_spec *spec, dti_storage **storage);
/* Is x a tensor that can be used: not NULL, its context not failed? A NULL operand is not told whose fault it is; one
 * without values fails the context. */
bool dti_tensor_ok(const dt_tensor *x);

/* ---- runs of a part (part.c) ------------------------------------------------------------------------------------- */

/* Elements of a rank's part that follow each other in the whole tensor too. */
typedef struct dti_part_run { int64_t global, local, count; } dti_part_run;
typedef void (*dti_run_fn)(const dti_part_run *run, void *arg);

/* Every run of a mesh rank's part, in order. false: memory ran out, the error is set. */
bool dti_part_runs(const dt_spec *spec, int mesh_rank, dti_run_fn fn, void *arg);
/* The runs of what a mesh rank's part and a box, not empty, share, in order; global: counted in the box, row-major. */
bool dti_part_box_runs(const dt_spec *spec, int mesh_rank, const dt_box *box, dti_run_fn fn, void *arg);
/* Of the mesh ranks that hold the same, is this the first? */
bool dti_part_is_first(const dt_spec *spec, int mesh_rank);
/* How many elements a mesh rank's part has. */
int64_t dti_part_count(const dt_spec *spec, int mesh_rank);
/* Does this rank keep the value of a tensor that is made partial? Others hold the identity. */
bool dti_part_keeps_value(const dt_spec *spec);
/* Fill this rank's part with the identity of its P. */
void dti_part_identity(const dt_spec *spec, dti_storage *storage);

/* ---- between ranks ----------------------------------------------------------------------------------------------- */

/* x on another spec of the same shape; not counted as an op of the user. Collective. */
dt_tensor *dti_tensor_to(dt_tensor *x, const dt_spec *spec);
/* The same, made once: it belongs to x and ends with it. Collective. */
dt_tensor *dti_tensor_copy(dt_tensor *x, const dt_spec *spec);
/* The same of several tensors of one context, whose steps of one stage move together; specs may be what they have. In
 * the second a NULL spec leaves its tensor, and x[i] becomes the copy. false: the error. Collective over all. */
bool dti_tensors_to(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_tensor **y);
bool dti_tensors_copy(dt_context *ctx, dt_tensor **x, const dt_spec *const *specs, int n);
/* x's copy on a spec, which x keeps; NULL: there is none. */
dt_tensor *dti_tensor_kept(dt_tensor *x, const dt_spec *spec);
/* x on another spec, pinned along the mesh dims named, of its own mesh; recorded as dt_redistribute is. NULL: the
 * error. Collective. */
dt_tensor *dti_tensor_pin(dt_tensor *x, const dt_spec *spec, uint32_t named);
/* A copy of x's value, made elsewhere: it belongs to x from now on. Returns it. */
dt_tensor *dti_tensor_add_copy(dt_tensor *x, dt_tensor *copy);
/* The first half of dti_tensors_to, and the second: work that is no scope's, each finished or dropped once. */
bool dti_tensors_start(dt_context *ctx, dt_tensor *const *x, const dt_spec *const *specs, int n, dt_work **work);
bool dti_tensors_finish(dt_context *ctx, dt_work **work, int n, dt_tensor **y);
void dti_work_drop(dt_work *work);
/* This rank's part of a mapped plan's target (redistribute/map.h), from its parts of the sources; none on a dry
 * context. false: the error. Collective. */
bool dti_part_pull(const struct dt_plan *plan, dti_storage *const *sources, double fill, dti_storage **part);
/* Bytes of the largest part: the same number on every rank. */
int64_t dti_spec_part_bytes(const dt_spec *spec);
/* The same spec without P: what is partial becomes R. NULL: the error. */
const dt_spec *dti_spec_summed(const dt_spec *spec);
/* The sum over all ranks of a mesh of one number per rank, wrapping; the same on all. Collective. false: the error. */
bool dti_ranks_sum(dt_mesh *mesh, int64_t value, int64_t *sum);

#endif
