/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt info`: what this build is and where it runs. Looks inside the library, changes nothing. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "tool.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "info_ops.h"
#include "json.h"
#include "redistribute/price.h"

enum { OPTION_OPS, OPTION_JSON, OPTION_COUNT };

static const tool_option options[OPTION_COUNT] = {
    [OPTION_OPS] = { "ops", NULL, "the op table instead: heads, rules, polynomials, dtypes, attributes" },
    [OPTION_JSON] = { "json", NULL, "one JSON object" },
};

typedef struct part { const char *name; bool is_there; } part;

static const part backends[] = { { "dry", true }, { "threads", true }, { "mpi", false }, { "nccl", false } };
static const part libraries[] = {
    { "hwloc", TOOL_HWLOC }, { "onednn", TOOL_ONEDNN }, { "mpi", false }, { "cuda", false }, { "nccl", false },
};

typedef struct info {
    int cpus;
    dti_topology machine;
    bool has_topology;             /* DT_TOPOLOGY is set                                                           */
    dti_topology topology;         /* the one whose links plans are priced by: it, else the machine's              */
} info;

/* CPUs on which this process may run. */
static int cpu_count(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 1 ? (int)online : 1;
}

static bool read_info(dt_context *ctx, info *read)
{
    const char *text = dti_option_value(ctx, DTI_OPTION_TOPOLOGY);
    read->cpus = cpu_count();
    if (!dti_topology_machine(ctx, 1, &read->machine)) return false;
    read->topology = read->machine;
    read->has_topology = text != NULL;
    return !text || dti_topology_parse(ctx, text, &read->topology);
}

static bool has_level(const dti_topology *topology, const char *name)
{
    for (int i = 0; i < topology->level_count; i++)
        if (strcmp(topology->levels[i].name, name) == 0) return true;
    return false;
}

static dti_price price_of(const char *level)
{
    dti_topology alone = { .level_count = 1, .levels = { { level, 1, 1 } } };
    dti_price price[DT_MAX_LINKS];
    dti_price_table(&alone, price);
    return price[0];
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_parts(FILE *out, const char *title, const part *parts, int n)
{
    fprintf(out, "%s\t", title);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s%s", i ? ", " : "", parts[i].name, parts[i].is_there ? "" : " (not in this build)");
    fputc('\n', out);
}

static void put_facts(FILE *out, const void *arg)
{
    const info *read = arg;
    fprintf(out, "version\t%s\n", TOOL_VERSION);
    fprintf(out, "compiler\t%s\n", TOOL_COMPILER);
    fprintf(out, "build\t%s\n", TOOL_BUILD);
    put_parts(out, "libraries", libraries, DT_COUNT(libraries));
    put_parts(out, "backends", backends, DT_COUNT(backends));
    fprintf(out, "devices\t%d CPU%s\n", read->cpus, read->cpus == 1 ? "" : "s");
    fprintf(out, "machine\t%s (by %s)\n", read->machine.text, dti_topology_source);
    if (read->has_topology) fprintf(out, "DT_TOPOLOGY\t%s\n", read->topology.text);
}

static void put_links(FILE *out, const void *arg)
{
    const info *read = arg;
    fprintf(out, "link\tstart us\tmessage us\tGB/s\t\n");
    for (int i = 0; dti_level_names[i]; i++) {
        dti_price price = price_of(dti_level_names[i]);
        fprintf(out, "%s\t%.1f\t%.2f\t%.0f\t%s\n", dti_level_names[i], (double)price.start_ns / 1e3,
                (double)price.message_ns / 1e3, (double)price.bytes_per_us / 1e3,
                has_level(&read->topology, dti_level_names[i]) ? "here" : "");
    }
}

static void put_options(FILE *out, const void *arg)
{
    (void)arg;
    fprintf(out, "option\tvariable\tdefault\t\n");
    for (int i = 0; i < DTI_OPTION_COUNT; i++) {
        dti_option_about row = dti_option_row((dti_option)i);
        fprintf(out, "--%s\t%s\t%s\t%s\n", row.name, row.variable, row.fallback ? row.fallback : "-", row.help);
    }
}

typedef struct section { tool_put_fn put; const char *columns; } section;

static const section sections[] = { { put_facts, "ll" }, { put_links, "lrrrl" }, { put_options, "llll" } };

/* Sections as columns, an empty line between them. */
static bool print_text(FILE *out, const info *read)
{
    for (int i = 0; i < DT_COUNT(sections); i++) {
        if (i) fputc('\n', out);
        if (!tool_put(out, sections[i].columns, sections[i].put, read)) return false;
    }
    return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_json_parts(json *j, const char *key, const part *parts, int n)
{
    json_begin(j, key, JSON_OBJECT, JSON_ONE_LINE);
    for (int i = 0; i < n; i++) json_bool(j, parts[i].name, parts[i].is_there);
    json_end(j);
}

static void put_json_levels(json *j, const char *key, const dti_topology *topology)
{
    json_begin(j, key, JSON_OBJECT, JSON_LINES);
    json_text(j, "text", topology->text);
    json_begin(j, "levels", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < topology->level_count; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", topology->levels[i].name);
        json_int(j, "size", topology->levels[i].size);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

static void put_json_links(json *j, const dti_topology *topology)
{
    json_begin(j, "links", JSON_ARRAY, JSON_LINES);
    for (int i = 0; dti_level_names[i]; i++) {
        dti_price price = price_of(dti_level_names[i]);
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", dti_level_names[i]);
        json_int(j, "start_ns", price.start_ns);
        json_int(j, "message_ns", price.message_ns);
        json_int(j, "bytes_per_us", price.bytes_per_us);
        json_bool(j, "here", has_level(topology, dti_level_names[i]));
        json_end(j);
    }
    json_end(j);
}

static void put_json_options(json *j)
{
    json_begin(j, "options", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < DTI_OPTION_COUNT; i++) {
        dti_option_about row = dti_option_row((dti_option)i);
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", row.name);
        json_text(j, "variable", row.variable);
        json_text(j, "default", row.fallback);
        json_text(j, "help", row.help);
        json_end(j);
    }
    json_end(j);
}

static void print_json(FILE *out, const info *read)
{
    json j = { .out = out };
    json_begin(&j, NULL, JSON_OBJECT, JSON_LINES);
    json_text(&j, "version", TOOL_VERSION);
    json_text(&j, "compiler", TOOL_COMPILER);
    json_text(&j, "build", TOOL_BUILD);
    put_json_parts(&j, "libraries", libraries, DT_COUNT(libraries));
    put_json_parts(&j, "backends", backends, DT_COUNT(backends));
    json_begin(&j, "devices", JSON_OBJECT, JSON_ONE_LINE);
    json_int(&j, "cpu", read->cpus);
    json_end(&j);
    put_json_levels(&j, "machine", &read->machine);
    put_json_levels(&j, "topology", &read->topology);
    put_json_links(&j, &read->topology);
    put_json_options(&j);
    json_end(&j);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int print_build(const tool_call *call)
{
    dt_context *ctx = dt_context_dry(1);
    info read;
    int status = TOOL_OK;
    if (!ctx) return tool_fail(call->command, TOOL_FAILED, "out of memory");
    if (dt_context_status(ctx) || !read_info(ctx, &read)) status = tool_fail_context(call->command, ctx);
    else if (call->values[OPTION_JSON]) print_json(call->out, &read);
    else if (!print_text(call->out, &read)) status = tool_fail(call->command, TOOL_FAILED, "out of memory");
    dt_context_destroy(&ctx);
    return status;
}

static int print_ops(const tool_call *call)
{
    if (call->values[OPTION_JSON]) info_ops_json(call->out);
    else if (!info_ops_text(call->out)) return tool_fail(call->command, TOOL_FAILED, "out of memory");
    return TOOL_OK;
}

static int info_run(const tool_call *call) { return call->values[OPTION_OPS] ? print_ops(call) : print_build(call); }

const tool_command dt_info_command = {
    .name = "info",
    .summary = "version, build, backends, devices, topology, prices of links, options of the library; ops",
    .options = options,
    .option_count = OPTION_COUNT,
    .run = info_run,
};
