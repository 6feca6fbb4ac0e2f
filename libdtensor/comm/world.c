/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared side of a run of rank threads. It is slow and rare work: making circles, failing, returning.
 * Invariant: a state is stored before those who may wait for it are woken. */
#include "comm/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/stream.h"

/* Zeroed memory that begins on a line. */
static void *take_lines(size_t bytes)
{
    bytes = (bytes + DTI_LINE - 1) / DTI_LINE * DTI_LINE;
    void *taken = aligned_alloc(DTI_LINE, bytes);
    return taken ? memset(taken, 0, bytes) : NULL;
}

bool dti_world_init(dti_world *world, int n, dti_patience patience)
{
    *world = (dti_world){ .n = n, .patience = patience, .caches = dti_caches_for(n) };
    world->ranks = take_lines((size_t)n * sizeof *world->ranks);
    if (world->ranks && pthread_mutex_init(&world->mutex, NULL) == 0) return true;
    free(world->ranks);
    return false;
}

static void circle_free(dti_circle *circle)
{
    for (int i = 0; i < circle->n; i++)
        for (dti_ring *ring = circle->members[i].ring, *older; ring != &circle->members[i].smallest; ring = older) {
            older = ring->older;
            free(ring->posts);
            free(ring);
        }
    free(circle->ranks);
    free(circle);
}

void dti_world_fini(dti_world *world)
{
    while (world->circles) {
        dti_circle *circle = world->circles;
        world->circles = circle->next;
        circle_free(circle);
    }
    pthread_mutex_destroy(&world->mutex);
    free(world->ranks);
}

/* ---- circles ----------------------------------------------------------------------------------------------------- */

int dti_ranks_find(const int *ranks, int n, int rank)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (ranks[middle] < rank) lo = middle + 1;
        else hi = middle;
    }
    return lo < n && ranks[lo] == rank ? lo : -1;
}

static dti_circle *circle_find(const dti_world *world, const int *ranks, int n)
{
    dti_circle *at = world->circles;
    while (at && !(at->n == n && memcmp(at->ranks, ranks, (size_t)n * sizeof *ranks) == 0)) at = at->next;
    return at;
}

static dti_circle *circle_create(dti_world *world, const int *ranks, int n)
{
    dti_circle *circle = take_lines(sizeof *circle + (size_t)n * sizeof *circle->members);
    int *copy = malloc((size_t)n * sizeof *copy);
    if (!circle || !copy) {
        free(circle);
        free(copy);
        return NULL;
    }
    circle->n = n;
    circle->ranks = memcpy(copy, ranks, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++) {
        dti_member *member = &circle->members[i];
        member->smallest = (dti_ring){ .mask = DTI_RING - 1, .posts = member->posts };
        atomic_init(&member->ring, &member->smallest);
    }
    circle->next = world->circles;
    world->circles = circle;
    return circle;
}

bool dti_member_grow(dti_member *member, uint64_t first)
{
    dti_ring *older = atomic_load(&member->ring), *ring = malloc(sizeof *ring);
    if (!ring) return false;
    *ring = (dti_ring){ .older = older, .first = first, .mask = 2 * older->mask + 1 };
    ring->posts = take_lines((ring->mask + 1) * sizeof *ring->posts);
    if (!ring->posts) {
        free(ring);
        return false;
    }
    atomic_store(&member->ring, ring);
    return true;
}

dti_circle *dti_world_circle(dti_world *world, const int *ranks, int n)
{
    pthread_mutex_lock(&world->mutex);
    dti_circle *circle = circle_find(world, ranks, n);
    if (!circle) circle = circle_create(world, ranks, n);
    pthread_mutex_unlock(&world->mutex);
    return circle;
}

/* ---- failing and returning --------------------------------------------------------------------------------------- */

/* Wake those who wait for this rank, in whatever circle; under the mutex. */
static void wake_waiters(dti_world *world, int rank)
{
    for (dti_circle *at = world->circles; at; at = at->next) {
        int member = dti_ranks_find(at->ranks, at->n, rank);
        if (member >= 0) dti_event_tell(&at->members[member].event);
    }
}

/* An error that quotes another rank's is passed on as it is, so that all name the rank that failed first. */
void dti_world_failed(dti_world *world, int rank, dt_status status, const char *error)
{
    dti_rank_state *state = &world->ranks[rank];
    pthread_mutex_lock(&world->mutex);
    state->status = status;
    state->order = ++world->failures;
    if (status == DT_ERR_PEER) snprintf(state->sentence, sizeof state->sentence, "%s", error);
    else snprintf(state->sentence, sizeof state->sentence, "rank %d failed first: %s", rank, error);
    atomic_fetch_add(&state->failures, 1);
    wake_waiters(world, rank);
    pthread_mutex_unlock(&world->mutex);
}

void dti_world_cleared(dti_world *world, int rank)
{
    pthread_mutex_lock(&world->mutex);
    world->ranks[rank].status = DT_OK;
    pthread_mutex_unlock(&world->mutex);
}

void dti_world_left(dti_world *world, int rank)
{
    pthread_mutex_lock(&world->mutex);
    atomic_store(&world->ranks[rank].left, true);
    wake_waiters(world, rank);
    pthread_mutex_unlock(&world->mutex);
}

bool dti_world_has_dead(dti_world *world, int rank)
{
    bool found = false;
    pthread_mutex_lock(&world->mutex);
    for (const dti_circle *at = world->circles; at && !found; at = at->next)
        found = atomic_load(&at->dead) && dti_ranks_find(at->ranks, at->n, rank) >= 0;
    pthread_mutex_unlock(&world->mutex);
    return found;
}

void dti_world_sentence(dti_world *world, int rank, char sentence[DTI_SENTENCE])
{
    const dti_rank_state *state = &world->ranks[rank];
    pthread_mutex_lock(&world->mutex);
    if (state->order == 0 || (atomic_load(&state->left) && state->status == DT_OK))
        snprintf(sentence, DTI_SENTENCE, "rank %d has returned", rank);
    else memcpy(sentence, state->sentence, DTI_SENTENCE);
    pthread_mutex_unlock(&world->mutex);
}

void dti_circle_kill(dti_world *world, dti_circle *circle, int culprit, const char *sentence)
{
    pthread_mutex_lock(&world->mutex);
    if (!atomic_load(&circle->dead)) {
        circle->culprit = culprit;
        snprintf(circle->sentence, sizeof circle->sentence, "%s", sentence);
        atomic_store(&circle->dead, true);
    }
    for (int i = 0; i < circle->n; i++) dti_event_tell(&circle->members[i].event);
    pthread_mutex_unlock(&world->mutex);
}
