/* SPDX-License-Identifier: Apache-2.0
 *
 * Where ranks stand: levels, outermost first; place of a rank = row-major number over the levels. A rank stands at the
 * place of its own number, or, where there are more ranks than places on a real machine, as many consecutive ranks
 * share each place as are needed. So the ranks inside a place of one level are a multiple of those of the next. */
#ifndef DTI_TOPOLOGY_H
#define DTI_TOPOLOGY_H

#include "mesh/mesh.h"

typedef struct dti_level {
    const char *name;              /* one of dti_level_names                                                       */
    int size;
    int ranks;                     /* consecutive ranks inside one place of this level: 8 for node in node=2,gpu=8 */
} dti_level;

typedef struct dti_topology {
    int level_count;               /* 1 .. DT_MAX_LINKS                                                            */
    dti_level levels[DT_MAX_LINKS];
    char text[128];
} dti_topology;

/* Known level names from the outermost kind to the innermost; ended by NULL. */
extern const char *const dti_level_names[];

/* The context's topology, read once; NULL on failure. */
const dti_topology *dti_topology_get(dt_context *ctx);
/* Read "node=2,gpu=8". false and the error otherwise; needs no context state but the error. */
bool dti_topology_parse(dt_context *ctx, const char *text, dti_topology *topology);
/* The machine's own levels (hwloc, or, built without it, its CPUs as cores), for n ranks. */
bool dti_topology_machine(dt_context *ctx, int n, dti_topology *topology);
/* Who reads the machine in this build: "hwloc" or "cpus". */
extern const char dti_topology_source[];
/* Given the names and sizes of the levels, set the rest, for n ranks. */
void dti_topology_finish(dti_topology *topology, int n);
/* Index of the level whose border is that of a host: the innermost of pod and node; -1: there is one host. */
int dti_topology_host(const dti_topology *topology);

/* The outermost level at which two ranks stand in different places; level_count where at none. */
static inline int dti_topology_class(const dti_topology *topology, int a, int b)
{
    for (int i = 0; i < topology->level_count; i++)
        if (a / topology->levels[i].ranks != b / topology->levels[i].ranks) return i;
    return topology->level_count;
}

#endif
