/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory from the system, aligned to 64 bytes; much of it at a time lies in pages of its own, huge ones where the
 * system has them. Nothing is kept here. */
#ifndef DTI_PAGES_H
#define DTI_PAGES_H

#include <stddef.h>

/* bytes: a multiple of 64, not 0. NULL: there is no memory. */
void *dti_pages_take(size_t bytes);
/* Give them back; bytes as asked for. */
void dti_pages_give(void *pages, size_t bytes);

#endif
