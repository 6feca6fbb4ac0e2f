/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication between ranks, behind one table of functions. A backend moves bytes and combines numbers for lists of
 * copies that it is given; it knows no mesh, no placement and no plan. Arguments have been checked before.
 *
 * Ranks that communicate form a group, an ascending list of world ranks. All members make the same calls on a group in
 * the same order, and each call carries a hash and a text of what is called: members that differ get DT_ERR_DESYNC with
 * both texts. The first error on a rank reaches members that wait for it, or come later, as DT_ERR_PEER with its
 * message; a member that does not come within the time-out is DT_ERR_TIMEOUT. Either kills the group: calls on it are
 * DT_ERR_COMM. Where all members fail alike, before the first message, and clear, no harm is done. */
#ifndef DTI_COMM_H
#define DTI_COMM_H

#include "core/context.h"
#include "core/number.h"
#include "core/storage.h"

typedef struct dti_comm dti_comm;   /* one rank's end of a backend                                                  */
typedef struct dti_group dti_group; /* one rank's end of a group                                                    */

typedef struct dti_call { uint64_t hash; const char *text; } dti_call; /* text lives as long as the context        */

enum { DTI_COPY_DIMS = 8 };

/* Elements of one member's source to places in the own target: count[0] x .. count[dims - 1] runs of `run` elements
 * that lie next to each other on both sides. All numbers are in elements. */
typedef struct dti_copy {
    int member;                    /* of the group; the own index: from the own source                             */
    int contribution;              /* of a sum; else 0                                                             */
    int dims;
    int64_t run, from, to;         /* from, to: where the first run begins                                         */
    int64_t count[DTI_COPY_DIMS], from_stride[DTI_COPY_DIMS], to_stride[DTI_COPY_DIMS];
} dti_copy;

/* One call: what this rank shows, and what it takes. Copies and target live until it is finished. */
typedef struct dti_exchange {
    dti_call call;
    dt_dtype dtype;                /* of what travels                                                              */
    dti_storage *source;           /* shown to the members; kept until all have taken; NULL: shows nothing         */
    void *target;                  /* this rank's result; NULL: it takes nothing                                   */
    const dti_copy *gets;          /* from whom it takes what; by contribution                                     */
    int get_count;
    const dti_copy *puts;          /* the same for members that take from this rank (member: the taker): for
                                      backends that send; NULL where the backend shares memory                     */
    int put_count;
    int contributions;             /* 0: copies; else every target element is combined from so many                */
    dti_combine combine;
    int64_t multiply, divide;      /* what is combined is scaled so before it is rounded; divide 0: it is not      */
    dt_dtype target_dtype;         /* of the target: as dtype where nothing is combined                            */
    dti_storage *result;           /* of an all-reduce only: what the target is elsewhere, and shown like the source */
} dti_exchange;

typedef struct dti_comm_ops {
    const char *name;
    bool shares_memory;            /* members read each other's sources: puts are not asked for                    */
    /* required */
    dti_group *(*group)(dti_comm *comm, const int *ranks, int n); /* made lazily, one object per list of ranks; this
                                      rank is among them. NULL and the error                                       */
    /* Begin: the source is shown or sent, and nobody waited for, however far ahead this rank is. */
    dt_status (*start)(dti_group *group, const dti_exchange *exchange);
    /* Complete the group's calls up to and with the one started last: take what is to be taken. */
    dt_status (*finish)(dti_group *group);
    dt_status (*barrier)(dti_group *group, dti_call call);
    void (*failed)(dti_comm *comm); /* this rank's context has failed: tell the peers                              */
    dt_status (*cleared)(dti_comm *comm); /* it is to be cleared: DT_OK, or the status of a dead group            */
    void (*leave)(dti_comm *comm); /* this rank returns; the last call. What it has shown stays readable: its context
                                      is destroyed when all ranks have left                                        */
    /* optional, with a default: NULL, and the caller makes a reduce-scatter and an all-gather of it */
    /* Begin an all-reduce. Every member shows a source and a result, and what its gets combine goes to the same places
     * in the result of every member; the gets of all members together write each element once, so replicas are equal.
     * The source may be the result, where every element comes from where it goes. A call is finished when all members
     * have written, and that they do in their finish: who finishes waits for it. Until then the result is held, also
     * where this rank fails: nobody writes to memory that is in use again. */
    dt_status (*all_reduce)(dti_group *group, const dti_exchange *exchange);
    /* optional, with a default: NULL, and the caller starts one after the other */
    /* Begin n exchanges, or all-reduces, as one call, which is shown, waited for and taken as one. Of the calls' hashes
     * and texts the first is the list's. */
    dt_status (*start_list)(dti_group *group, const dti_exchange *list, int n, bool all_reduce);
    /* optional */
    /* Wait until no member reads this storage any more, for it is to be written; they come to that by themselves.
     * DT_ERR_STATE: this rank has a call under way that shows it. NULL: nobody reads it once a call is finished. */
    dt_status (*withdraw)(dti_comm *comm, const dti_storage *storage);
    void (*reclaim)(dti_comm *comm); /* release at once, without waiting, what all have taken: memory is short     */
} dti_comm_ops;

struct dti_comm {                  /* a backend's own struct begins with this                                      */
    const dti_comm_ops *ops;
    dt_context *ctx;
};

struct dti_group {                 /* likewise                                                                     */
    dti_comm *comm;
    const int *ranks;              /* ascending                                                                    */
    int n, index;                  /* index: this rank's                                                           */
};

/* The context's backend; NULL: a dry context, or one rank alone. */
dti_comm *dti_comm_of(const dt_context *ctx);
/* Make a backend's end its context's, and take it away: what is left of the context then has no peers. */
void dti_comm_join(dti_comm *comm);
void dti_comm_leave(dti_comm *comm);

/* A whole exchange. */
static inline dt_status dti_exchange_run(dti_group *group, const dti_exchange *exchange)
{
    dt_status status = group->comm->ops->start(group, exchange);
    return status ? status : group->comm->ops->finish(group);
}

/* ---- calls by name ----------------------------------------------------------------------------------------------- *
 * Whole exchanges with another shape of arguments, the same on every backend. All members of the group make the call,
 * with the same message; between two ranks it is best made on their own group, where nobody else has to come. Who only
 * gives returns at once: it waits for no taker, its source is kept until the last one has it. Elements are the first
 * ones of sources and targets. */

typedef struct dti_message { dti_call call; dt_dtype dtype; int64_t n; } dti_message; /* n: elements               */

enum { DTI_NOBODY = -1 };

/* One member's to all. source: the root's, of the others NULL. target: where this rank wants it; at the root that may
 * be NULL, or the source's own bytes. */
dt_status dti_comm_broadcast(dti_group *group, const dti_message *message, int root, dti_storage *source, void *target);
/* From each member to at most one other: its source goes to `to`, what `from` gives comes to target, apart from the
 * source. Both ends name each other; DTI_NOBODY where there is none, and no source or target then. */
dt_status dti_comm_permute(dti_group *group, const dti_message *message, int to, dti_storage *source, int from,
                           void *target);

static inline dt_status dti_comm_send(dti_group *group, const dti_message *message, int to, dti_storage *source)
{
    return dti_comm_permute(group, message, to, source, DTI_NOBODY, NULL);
}

static inline dt_status dti_comm_recv(dti_group *group, const dti_message *message, int from, void *target)
{
    return dti_comm_permute(group, message, DTI_NOBODY, NULL, from, target);
}

#endif
