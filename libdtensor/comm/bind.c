/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUs are ordered by socket, core and number, as the system numbers them, so that neighbours share caches; ranks get
 * consecutive ones, cut as everything is cut. OpenMP is not linked, but called where something else has brought it. */
#define _GNU_SOURCE /* sched_getaffinity, pthread_setaffinity_np */
#include "comm/bind.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

extern void omp_set_num_threads(int n) __attribute__((weak)); /* NULL where there is no OpenMP                     */

typedef struct cpu { int socket, core, id; } cpu;

/* A number that the system tells of a CPU; 0 where it does not. */
static int read_fact(int id, const char *fact)
{
    char path[128], text[16] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", id, fact);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = '\0';
    fclose(file);
    return (int)strtol(text, NULL, 10);
}

static int compare(const void *a, const void *b)
{
    const cpu *x = a, *y = b;
    if (x->socket != y->socket) return x->socket < y->socket ? -1 : 1;
    if (x->core != y->core) return x->core < y->core ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void dti_cpus_read(dti_cpus *cpus)
{
    cpu_set_t allowed;
    cpu found[DTI_MAX_CPUS];
    cpus->n = 0;
    if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0) return;
    for (int id = 0; id < DTI_MAX_CPUS && id < CPU_SETSIZE; id++)
        if (CPU_ISSET((size_t)id, &allowed))
            found[cpus->n++] = (cpu){ read_fact(id, "physical_package_id"), read_fact(id, "core_id"), id };
    qsort(found, (size_t)cpus->n, sizeof *found, compare);
    for (int i = 0; i < cpus->n; i++) cpus->id[i] = found[i].id;
}

void dti_bind(const dti_cpus *cpus, int i, int n)
{
    cpu_set_t part;
    CPU_ZERO(&part);
    for (int at = (cpus->n * i + n - 1) / n; at < (cpus->n * (i + 1) + n - 1) / n; at++)
        CPU_SET((size_t)cpus->id[at], &part);
    if (CPU_COUNT(&part)) pthread_setaffinity_np(pthread_self(), sizeof part, &part);
}

/* Each rank would start as many threads as there are CPUs, and all of them would wait for each other. */
void dti_share_cpus(const dti_cpus *cpus, int n)
{
    const char *said = getenv("OMP_NUM_THREADS");
    if (omp_set_num_threads && !(said && *said)) omp_set_num_threads(cpus->n > n ? cpus->n / n : 1);
}
