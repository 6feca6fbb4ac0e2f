/* SPDX-License-Identifier: Apache-2.0
 *
 * Spin, yield, sleep. No wake is lost: a sleeper counts itself before it asks a last time, who tells counts after its
 * change is stored, and all of these are sequentially consistent; so one of the two sees the other. */
#include "comm/wait.h"

#include <sched.h>
#include <time.h>

#include "comm/futex.h"

enum { MAX_YIELDS = 100 };

double dti_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void dti_event_wake(dti_event *event)
{
    atomic_fetch_add(&event->changes, 1);
    dti_futex_wake_all(&event->changes);
}

/* Count as a sleeper; whoever waits asks once more before it sleeps. */
static bool arm(dti_wait *wait)
{
    double now = dti_seconds();
    if (wait->deadline <= 0) wait->deadline = now + wait->patience->seconds;
    if (now >= wait->deadline) return false;
    atomic_fetch_add(&wait->event->sleepers, 1);
    wait->seen = atomic_load(&wait->event->changes);
    return wait->armed = true;
}

static void sleep_armed(dti_wait *wait)
{
    double left = wait->deadline - dti_seconds();
    if (left > 0) dti_futex_sleep(&wait->event->changes, wait->seen, left);
    atomic_fetch_sub(&wait->event->sleepers, 1);
    wait->armed = false;
}

bool dti_wait_again(dti_wait *wait)
{
    int round = wait->rounds++;
    if (round < wait->patience->spins) {
        relax();
        return true;
    }
    if (round - wait->patience->spins < MAX_YIELDS) {
        sched_yield();
        return true;
    }
    wait->rounds = round; /* it stays there */
    if (!wait->armed) return arm(wait);
    sleep_armed(wait);
    return true;
}
