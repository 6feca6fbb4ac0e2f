/* SPDX-License-Identifier: Apache-2.0
 *
 * The topology of a context: from its notation, or flat, or as the machine's reader (topology_hwloc.c, topology_cpus.c)
 * finds it. Which links cost what is known to the plans alone. Read once per context, then constant. */
#include "mesh/topology.h"

#include <limits.h>

#include "core/pen.h"
#include "mesh/draft.h"

const char *const dti_level_names[] = { "pod", "node", "package", "numa", "l3", "gpu", "core", "rank", NULL };

/* ---- levels ----------------------------------------------------------------------------------------------------- */

/* Position of a name among the known ones, -1: unknown. */
static int level_kind(dti_word name)
{
    for (int i = 0; dti_level_names[i]; i++)
        if (dti_word_is(name, dti_level_names[i])) return i;
    return -1;
}

static int place_count(const dti_topology *topology)
{
    int places = 1;
    for (int i = 0; i < topology->level_count; i++) places *= topology->levels[i].size;
    return places;
}

void dti_topology_finish(dti_topology *topology, int n)
{
    char text[DTI_LIST_BYTES];
    dti_item items[DT_MAX_LINKS];
    int places = place_count(topology);
    int ranks = n > places ? (n - 1) / places + 1 : 1;
    for (int i = topology->level_count - 1; i >= 0; i--) {
        dti_level *level = &topology->levels[i];
        items[i] = (dti_item){ { level->name, (int)strlen(level->name) }, level->size };
        level->ranks = ranks;
        ranks *= level->size;
    }
    size_t length = dti_list_print(items, topology->level_count, text);
    memcpy(topology->text, text, length + 1); /* DT_MAX_LINKS known names and sizes: shorter than the field */
}

int dti_topology_host(const dti_topology *topology)
{
    int host = -1;
    for (int i = 0; i < topology->level_count; i++)
        if (strcmp(topology->levels[i].name, "pod") == 0 || strcmp(topology->levels[i].name, "node") == 0) host = i;
    return host;
}

/* ---- notation --------------------------------------------------------------------------------------------------- */

static bool unknown_level(dti_list *list, dti_word name)
{
    char known[128];
    dti_pen pen = { .text = known, .room = sizeof known };
    for (int i = 0; dti_level_names[i]; i++) dti_put(&pen, "%s%s", i ? ", " : "", dti_level_names[i]);
    return dti_scan_fail(&list->scan, DT_ERR_PARSE, name.text, "expected a level (%s), got \"%.*s\"", known, name.n,
                         name.text);
}

/* Add a level inside those there are, outer being the last one's kind. */
static bool add_level(dti_list *list, const dti_item *item, int *outer, dti_topology *topology)
{
    int kind = level_kind(item->name), places = place_count(topology);
    if (kind < 0) return unknown_level(list, item->name);
    if (kind < *outer)
        return dti_scan_fail(&list->scan, DT_ERR_PARSE, item->name.text,
                             "expected a level inside %s, got \"%s\", which is outside of it",
                             dti_level_names[*outer], dti_level_names[kind]);
    if (item->number > INT_MAX / places)
        return dti_scan_fail(&list->scan, DT_ERR_ARG, item->name.text + item->name.n + 1,
                             "expected at most %d places, got %d times %d", INT_MAX, places, item->number);
    topology->levels[topology->level_count++] = (dti_level){ dti_level_names[kind], item->number, 0 };
    *outer = kind;
    return true;
}

bool dti_topology_parse(dt_context *ctx, const char *text, dti_topology *topology)
{
    dti_list list;
    dti_topology read = { .level_count = 0 };
    int outer = 0;
    if (!dti_list_read(&list, ctx, DTI_LIST_LEVELS, text)) return false;
    for (int i = 0; i < list.n; i++)
        if (!add_level(&list, &list.items[i], &outer, &read)) return false;
    dti_topology_finish(&read, 1);
    *topology = read;
    return true;
}

/* ---- the context's ---------------------------------------------------------------------------------------------- */

static bool read_option(dt_context *ctx, const char *text, dti_topology *topology)
{
    if (!dti_topology_parse(ctx, text, topology)) return false;
    int places = place_count(topology);
    if (places >= ctx->rank_count) return true;
    dti_fail(ctx, DT_ERR_ARG, "topology \"%s\": expected at least %d places, one for each rank, got %d", topology->text,
             ctx->rank_count, places);
    return false;
}

static bool read_topology(dt_context *ctx, dti_topology *topology)
{
    const char *text = dti_option_value(ctx, DTI_OPTION_TOPOLOGY);
    if (text) return read_option(ctx, text, topology);
    if (!ctx->dry) return dti_topology_machine(ctx, ctx->rank_count, topology);
    *topology = (dti_topology){ .level_count = 1, .levels = { { "rank", ctx->rank_count, 1 } } };
    dti_topology_finish(topology, ctx->rank_count);
    return true;
}

const dti_topology *dti_topology_get(dt_context *ctx)
{
    dti_mesh_state *state = ctx ? dti_mesh_state_get(ctx) : NULL;
    if (state == NULL) return NULL;
    if (!state->has_topology) state->has_topology = !dti_failed(ctx) && read_topology(ctx, &state->topology);
    return state->has_topology ? &state->topology : NULL;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const char *dt_topology_text(dt_context *ctx)
{
    const dti_topology *topology = dti_topology_get(ctx);
    return topology ? topology->text : "";
}

int dt_topology_link_count(dt_context *ctx)
{
    const dti_topology *topology = dti_topology_get(ctx);
    return topology ? topology->level_count : 0;
}

const char *dt_topology_link_name(dt_context *ctx, int link)
{
    const dti_topology *topology = dti_topology_get(ctx);
    return topology && link >= 0 && link < topology->level_count ? topology->levels[link].name : NULL;
}

int dt_topology_link(dt_context *ctx, int rank, int peer)
{
    const dti_topology *topology = dti_topology_get(ctx);
    if (topology == NULL || rank < 0 || peer < 0 || rank >= ctx->rank_count || peer >= ctx->rank_count) return -1;
    return dti_topology_class(topology, rank, peer);
}
