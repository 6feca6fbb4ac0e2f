/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleep while a word has a value, and wake who sleeps on it. */
#ifndef DTI_FUTEX_H
#define DTI_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleep until woken, at most so many seconds; returns at once if *word is not value. May wake without a reason. */
void dti_futex_sleep(_Atomic uint32_t *word, uint32_t value, double seconds);
void dti_futex_wake_all(_Atomic uint32_t *word);

#endif
