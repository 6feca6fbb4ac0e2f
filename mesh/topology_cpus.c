/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as far as the operating system tells without hwloc: its CPUs, as cores of one host. Only those on which
 * this process may run count. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <unistd.h>

#include "mesh/topology.h"

const char dti_topology_source[] = "cpus";

/* Of the process, not of the calling thread: all ranks must see the same machine. */
static int cpu_count(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than the set can hold */
    return online > 1 ? (int)online : 1;
}

bool dti_topology_machine(dt_context *ctx, int n, dti_topology *topology)
{
    (void)ctx;
    *topology = (dti_topology){ .level_count = 1, .levels = { { "core", cpu_count(), 0 } } };
    dti_topology_finish(topology, n);
    return true;
}
