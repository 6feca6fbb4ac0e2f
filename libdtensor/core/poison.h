/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that nobody may touch: an address-sanitizer build reports who does, any other does nothing here. */
#ifndef DTI_POISON_H
#define DTI_POISON_H

#include <stddef.h>

#if defined __SANITIZE_ADDRESS__
#define DTI_POISONS 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define DTI_POISONS 1
#endif
#endif

#ifdef DTI_POISONS
#include <sanitizer/asan_interface.h>

enum { DTI_IS_POISONED = 1 };
static inline void dti_poison(const void *bytes, size_t n) { __asan_poison_memory_region(bytes, n); }
static inline void dti_unpoison(const void *bytes, size_t n) { __asan_unpoison_memory_region(bytes, n); }
#else
enum { DTI_IS_POISONED = 0 };
static inline void dti_poison(const void *bytes, size_t n) { (void)bytes, (void)n; }
static inline void dti_unpoison(const void *bytes, size_t n) { (void)bytes, (void)n; }
#endif

#endif
