/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as hwloc sees it: packages, NUMA nodes, L3 caches and cores on which this process may run. A level is
 * kept if it says more than the one outside of it; of a machine that is not the same everywhere only cores are kept.
 * Invariant: what is read has at least one level, and as many places as there are cores. */
#include <hwloc.h>

#include "mesh/topology.h"

const char dti_topology_source[] = "hwloc";

typedef struct machine_level { const char *name; hwloc_obj_type_t type; } machine_level;

static const machine_level machine_levels[DT_MAX_LINKS] = { /* outermost first */
    { "package", HWLOC_OBJ_PACKAGE },
    { "numa", HWLOC_OBJ_NUMANODE },
    { "l3", HWLOC_OBJ_L3CACHE },
    { "core", HWLOC_OBJ_CORE },
};

static int count_inside(hwloc_topology_t machine, hwloc_const_cpuset_t cpus, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_inside_cpuset_by_type(machine, cpus, type);
    if (n == 0 && type == HWLOC_OBJ_CORE) n = hwloc_get_nbobjs_inside_cpuset_by_type(machine, cpus, HWLOC_OBJ_PU);
    return n > 0 ? n : 0;
}

static bool each_holds(hwloc_topology_t machine, hwloc_obj_type_t outer, hwloc_obj_type_t inner, int n)
{
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(machine, outer, obj)) != NULL)
        if (!hwloc_bitmap_iszero(obj->cpuset) && count_inside(machine, obj->cpuset, inner) != n) return false;
    return true;
}

/* false: the levels do not nest evenly. */
static bool read_levels(hwloc_topology_t machine, dti_topology *topology)
{
    hwloc_const_cpuset_t all = hwloc_get_root_obj(machine)->cpuset;
    hwloc_obj_type_t outer = HWLOC_OBJ_MACHINE;
    int outer_count = 1;
    topology->level_count = 0;
    for (int i = 0; i < DT_COUNT(machine_levels); i++) {
        const machine_level *level = &machine_levels[i];
        int count = count_inside(machine, all, level->type);
        if (count <= outer_count) continue;
        if (!each_holds(machine, outer, level->type, count / outer_count)) return false;
        topology->levels[topology->level_count++] = (dti_level){ level->name, count / outer_count, 0 };
        outer = level->type;
        outer_count = count;
    }
    return topology->level_count > 0;
}

static void read_cores(hwloc_topology_t machine, dti_topology *topology)
{
    int cores = count_inside(machine, hwloc_get_root_obj(machine)->cpuset, HWLOC_OBJ_CORE);
    topology->level_count = 1;
    topology->levels[0] = (dti_level){ "core", cores > 0 ? cores : 1, 0 };
}

/* Leave only the CPUs of this process, not of one rank's thread: all ranks must see the same machine. Where it is not
 * known which, all stay. */
static void restrict_to_process(hwloc_topology_t machine)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    if (cpus && hwloc_get_cpubind(machine, cpus, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_topology_restrict(machine, cpus, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS);
    hwloc_bitmap_free(cpus);
}

bool dti_topology_machine(dt_context *ctx, int n, dti_topology *topology)
{
    hwloc_topology_t machine;
    bool is_open = hwloc_topology_init(&machine) == 0;
    bool is_loaded = is_open && hwloc_topology_load(machine) == 0;
    if (is_loaded) {
        dti_topology read = { .level_count = 0 };
        restrict_to_process(machine);
        if (!read_levels(machine, &read)) read_cores(machine, &read);
        dti_topology_finish(&read, n);
        *topology = read;
    } else {
        dti_fail(ctx, DT_ERR_UNAVAILABLE, "hwloc cannot read the topology of this machine");
    }
    if (is_open) hwloc_topology_destroy(machine);
    return is_loaded;
}
