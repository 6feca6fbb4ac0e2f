/* SPDX-License-Identifier: Apache-2.0
 *
 * The two system calls that the C library has no names for. */
#define _DEFAULT_SOURCE /* syscall */
#include "comm/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const double longest = 3600; /* who sleeps asks again anyway */

void dti_futex_sleep(_Atomic uint32_t *word, uint32_t value, double seconds)
{
    if (!(seconds < longest)) seconds = longest;
    time_t whole = (time_t)seconds;
    struct timespec time = { .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) };
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

void dti_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
