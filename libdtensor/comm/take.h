/* SPDX-License-Identifier: Apache-2.0
 *
 * The taking part of an exchange, when all sources can be read: copies, and combinations of what several contribute. It
 * knows no ranks and does not wait. */
#ifndef DTI_TAKE_H
#define DTI_TAKE_H

#include "comm/comm.h"
#include "comm/stream.h"

/* Memory that is kept from call to call. */
typedef struct dti_scratch { void *bytes; size_t n; } dti_scratch;

/* Do what exchange->gets say; sources by member. What is combined is written to n targets alike, what is copied to one.
 * false: memory ran out. */
bool dti_take(const dti_exchange *exchange, const char *const *sources, void *const *targets, int n, dti_caches caches,
              dti_scratch *scratch);
void dti_scratch_fini(dti_scratch *scratch);

#endif
