/* SPDX-License-Identifier: Apache-2.0
 *
 * What all rank threads of a run share: who has failed or returned, and the circles, the shared sides of groups. Atomic
 * numbers say that something is there; texts are behind the mutex. */
#ifndef DTI_WORLD_H
#define DTI_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/stream.h"
#include "comm/wait.h"

enum {
    DTI_LINE = 64,                 /* bytes of a cache line                                                        */
    DTI_RING = 16,                 /* calls that a member may be ahead of the slowest before its ring grows        */
    DTI_SENTENCE = 1200            /* bytes of a message about a rank                                              */
};

/* What a member shows in one call: a line of its own, so that one transfer brings the number and all that belongs to
 * it. It is written again only when all members have taken. */
typedef struct dti_post {
    _Alignas(DTI_LINE) _Atomic uint64_t number; /* of the call; from 1                                             */
    uint64_t hash, failures;
    const char *text, *bytes;
    void *result;                  /* of an all-reduce: where the others write                                     */
    const struct dti_shown *list;  /* of several exchanges at once: both, of each                                  */
} dti_post;

typedef struct dti_shown { const char *bytes; void *result; } dti_shown;

/* The posts of calls from `first` on: call i in i & mask. Those before are in older rings, which nobody writes any
 * more, but readers may be in them. */
typedef struct dti_ring {
    struct dti_ring *older;
    uint64_t first, mask;
    dti_post *posts;
} dti_ring;

typedef struct dti_member {
    _Alignas(DTI_LINE) _Atomic uint64_t taken; /* the last call whose sources it has taken, and, of an all-reduce,
                                      whose results it has written                                                 */
    dti_event event;               /* told when the member has shown or taken, failed or returned                  */
    _Alignas(DTI_LINE) _Atomic(dti_ring *) ring; /* the newest; it seldom changes: its line stays with readers     */
    dti_ring smallest;
    dti_post posts[DTI_RING];      /* of the smallest                                                              */
} dti_member;

typedef struct dti_circle {
    struct dti_circle *next;       /* of the world                                                                 */
    int n, *ranks;
    _Atomic bool dead;
    int culprit;                   /* before dead is set: which rank's failure killed it, and what to say of it    */
    char sentence[DTI_SENTENCE];
    dti_member members[];
} dti_circle;

typedef struct dti_rank_state {
    _Alignas(DTI_LINE) _Atomic uint64_t failures; /* how often its context has failed                              */
    _Atomic bool left;
    dt_status status;              /* the rest is behind the mutex: OK, or the error it has not cleared            */
    uint64_t order;                /* of its last failure among all of the run, from 1                             */
    char sentence[DTI_SENTENCE];   /* what peers say of its last failure                                           */
} dti_rank_state;

typedef struct dti_world {
    int n;
    dti_patience patience;
    dti_caches caches;
    pthread_mutex_t mutex;
    dti_circle *circles;
    uint64_t failures;
    dti_rank_state *ranks;
} dti_world;

/* false: memory ran out, nothing to undo. */
bool dti_world_init(dti_world *world, int n, dti_patience patience);
void dti_world_fini(dti_world *world);

/* The circle of these ranks, made by who asks first; NULL: memory ran out. */
dti_circle *dti_world_circle(dti_world *world, const int *ranks, int n);
/* Where a member shows a call, now that its ring is as it is. */
static inline dti_post *dti_member_post(const dti_member *member, uint64_t number)
{
    const dti_ring *ring = atomic_load(&member->ring);
    while (number < ring->first) ring = ring->older;
    return &ring->posts[number & ring->mask];
}
/* A ring of twice as many posts for the member's calls from `first` on; false: memory ran out, all is as before. */
bool dti_member_grow(dti_member *member, uint64_t first);
/* Where a rank stands in an ascending list; -1: it does not. */
int dti_ranks_find(const int *ranks, int n, int rank);

/* A rank's context has failed, its error may be forgotten, it returns: peers that wait for it are woken. */
void dti_world_failed(dti_world *world, int rank, dt_status status, const char *error);
void dti_world_cleared(dti_world *world, int rank);
void dti_world_left(dti_world *world, int rank);
/* Is a circle that this rank belongs to dead? */
bool dti_world_has_dead(dti_world *world, int rank);
/* What to say of a rank that failed, else of one that returned. */
void dti_world_sentence(dti_world *world, int rank, char sentence[DTI_SENTENCE]);
/* The circle is dead from now on; the first reason stays. Wakes its members. */
void dti_circle_kill(dti_world *world, dti_circle *circle, int culprit, const char *sentence);

#endif
