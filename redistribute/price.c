/* SPDX-License-Identifier: Apache-2.0
 *
 * Prices per link class. Orders of magnitude of 400 Gb/s networks, NVLink-class links and memory of one host. */
#include "redistribute/price.h"

#include <string.h>

static const dti_price table[] = {
    { "pod",     20000, 500, 25000 },
    { "node",     8000, 200, 50000 },
    { "numa",     1000,  40, 60000 },
    { "package",  1000,  40, 60000 },
    { "l3",        600,  20, 80000 },
    { "gpu",      3000, 100, 450000 },
    { "core",      500,  20, 100000 },
    { "rank",     3000, 100, 450000 },
};

static const dti_price *price_of(const char *level)
{
    for (int i = 0; i < DT_COUNT(table); i++)
        if (strcmp(table[i].level, level) == 0) return &table[i];
    return &table[DT_COUNT(table) - 1];
}

void dti_price_table(const dti_topology *topology, dti_price *prices)
{
    for (int i = 0; i < topology->level_count; i++) prices[i] = *price_of(topology->levels[i].name);
}

/* bytes / rate in nanoseconds, rounded up, without overflow: bytes * 1000 may not fit. */
static int64_t move_ns(int64_t bytes, int64_t bytes_per_us)
{
    if (bytes < INT64_MAX / 2000) return (bytes * 1000 + bytes_per_us - 1) / bytes_per_us;
    return bytes / bytes_per_us * 1000 + (bytes % bytes_per_us * 1000 + bytes_per_us - 1) / bytes_per_us;
}

int64_t dti_price_link(const dti_price *price, int64_t bytes, int64_t messages)
{
    return price->start_ns + messages * price->message_ns + move_ns(bytes, price->bytes_per_us);
}

int64_t dti_price_step(const dti_price *prices, int n, const int64_t *bytes, int64_t messages)
{
    int64_t start = 0, move = 0, message = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (bytes[i] == 0) continue;
        int64_t ns = move_ns(bytes[i], prices[i].bytes_per_us);
        if (ns > move) move = ns;
        start = prices[i].start_ns;
        message = prices[i].message_ns;
    }
    return start + messages * message + move;
}
