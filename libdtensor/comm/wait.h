/* SPDX-License-Identifier: Apache-2.0
 *
 * How a rank waits until another has changed something: it spins while every rank has a CPU, gives its CPU away for a
 * while, and then sleeps. Who waits asks for what it waits for between two steps:
 *
 *     dti_wait wait = dti_wait_begin(&event, &patience);
 *     while (!it_has_come && dti_wait_again(&wait)) {}
 *     dti_wait_end(&wait);
 *
 * Whoever changes something stores it first, sequentially consistent as the question is, and tells the event then. */
#ifndef DTI_WAIT_H
#define DTI_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What waiters sleep on. All zero is ready. */
typedef struct dti_event { _Atomic uint32_t changes; _Atomic int32_t sleepers; } dti_event;

typedef struct dti_patience { int spins; double seconds; } dti_patience; /* spins: 0 where CPUs are fewer than ranks */

typedef struct dti_wait {
    dti_event *event;
    const dti_patience *patience;
    int rounds;
    bool armed;                    /* counted among the sleepers: a change after `seen` wakes                      */
    uint32_t seen;
    double deadline;               /* 0: not yet known                                                             */
} dti_wait;

void dti_event_wake(dti_event *event);

static inline void dti_event_tell(dti_event *event)
{
    if (atomic_load(&event->sleepers) != 0) dti_event_wake(event);
}

static inline dti_wait dti_wait_begin(dti_event *event, const dti_patience *patience)
{
    return (dti_wait){ .event = event, .patience = patience };
}

/* Wait a little. false: the time is over. */
bool dti_wait_again(dti_wait *wait);

static inline void dti_wait_end(dti_wait *wait)
{
    if (wait->armed) atomic_fetch_sub(&wait->event->sleepers, 1);
}

/* Seconds on a clock that only goes forward. */
double dti_seconds(void);

#endif
