/* SPDX-License-Identifier: Apache-2.0
 *
 * The price table: what a step costs on each link class, in integers, so that no two ranks ever choose differently. The
 * default is fixed and speaks of no machine: a row per level of the topology. */
#ifndef DTI_PRICE_H
#define DTI_PRICE_H

#include "mesh/topology.h"

typedef struct dti_price {
    const char *level;
    int64_t start_ns;              /* a step that crosses this level's border begins                               */
    int64_t message_ns;            /* each message of a rank                                                       */
    int64_t bytes_per_us;          /* into one rank                                                                */
} dti_price;

/* The prices of a topology's link classes, by level, into price[DT_MAX_LINKS]. */
void dti_price_table(const dti_topology *topology, dti_price *prices);
/* Nanoseconds of bytes that a rank receives over one link class; and of a step: the slowest class it uses begins it,
 * messages come one by one, classes move bytes together. bytes: received per class by the busiest receiver. */
int64_t dti_price_link(const dti_price *price, int64_t bytes, int64_t messages);
int64_t dti_price_step(const dti_price *prices, int n, const int64_t *bytes, int64_t messages);

#endif
