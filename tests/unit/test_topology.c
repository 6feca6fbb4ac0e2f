/* SPDX-License-Identifier: Apache-2.0
 *
 * Topologies: notation, link classes against a count over places, and the machine's reader, which is shown machines of
 * other people through hwloc's own variables. */
#define _GNU_SOURCE /* sched_setaffinity */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dtensor/dtensor.h>

#include "mesh/topology.h"
#include "errors.h"
#include "suite.h"

static dt_context *context_with(int n, const char *topology)
{
    if (topology) setenv("DT_TOPOLOGY", topology, 1);
    dt_context *ctx = dt_context_dry(n);
    unsetenv("DT_TOPOLOGY");
    expect(ctx != NULL, "a context of %d ranks", n);
    return ctx;
}

/* ---- notation --------------------------------------------------------------------------------------------------- */

static const char *const texts[] = {
    "node=2,gpu=8", "pod=4,node=16,gpu=8", "pod=2,node=2,package=2,numa=2", "package=2,numa=2,l3=4,core=8", "rank=7",
    "node=1,gpu=1", "core=1", "node=65536,gpu=8", "pod=2147483647", "l3=3,rank=5", "gpu=2,core=2,rank=2",
};

static void test_parse(void)
{
    dt_context *ctx = context_with(1, NULL);
    for (int i = 0; i < DT_COUNT(texts); i++) {
        dti_topology topology;
        if (!expect(dti_topology_parse(ctx, texts[i], &topology), "%s: %s", texts[i], dt_context_error(ctx))) continue;
        expect(strcmp(topology.text, texts[i]) == 0, "%s prints as %s", texts[i], topology.text);
        int inside = 1;
        for (int level = topology.level_count - 1; level >= 0; level--) {
            expect(topology.levels[level].ranks == inside, "%s: ranks of level %d", texts[i], level);
            inside *= topology.levels[level].size;
        }
    }
    dt_context_destroy(&ctx);
}

typedef struct refusal { const char *text; dt_status status; const char *part; } refusal;

static const refusal refused[] = {
    { "", DT_ERR_PARSE, "topology \"\": expected a name, got the end at column 1" },
    { "node", DT_ERR_PARSE, "expected \"=\" and a number, got the end at column 5" },
    { "node=2,", DT_ERR_PARSE, "at column 8" },
    { "node=x", DT_ERR_PARSE, "expected a size, got \"x\" at column 6" },
    { "node=0", DT_ERR_ARG, "expected a size from 1 to 2147483647, got 0 at column 6" },
    { "node=2,rack=3", DT_ERR_PARSE,
      "expected a level (pod, node, package, numa, l3, gpu, core, rank), got \"rack\" at column 8" },
    { "gpu=8,node=2", DT_ERR_PARSE, "expected a level inside gpu, got \"node\", which is outside of it at column 7" },
    { "node=2,node=2", DT_ERR_PARSE, "\"node\" stands twice" },
    { "pod=1,node=1,package=1,numa=1,l3=1", DT_ERR_ARG, "expected at most 4 names, got one more at column 31" },
    { "node=65536,gpu=65536", DT_ERR_ARG, "expected at most 2147483647 places, got 65536 times 65536 at column 16" },
    { NULL, DT_ERR_ARG, "got NULL" },
};

static void test_parse_refused(void)
{
    dt_context *ctx = context_with(1, NULL);
    dti_topology topology = { .level_count = 77 };
    for (int i = 0; i < DT_COUNT(refused); i++) {
        expect(!dti_topology_parse(ctx, refused[i].text, &topology), "row %d is refused", i);
        expect_error(ctx, refused[i].status, refused[i].part, refused[i].text ? refused[i].text : "NULL");
    }
    expect(topology.level_count == 77, "the result stays untouched");
    dt_context_destroy(&ctx);
}

/* ---- the context's ---------------------------------------------------------------------------------------------- */

static void test_questions(void)
{
    dt_context *ctx = context_with(12, "pod=2,node=2,gpu=4");
    expect(strcmp(dt_topology_text(ctx), "pod=2,node=2,gpu=4") == 0, "text: %s", dt_topology_text(ctx));
    expect(dt_topology_link_count(ctx) == 3, "one link class per level");
    expect(strcmp(dt_topology_link_name(ctx, 0), "pod") == 0, "the outermost first");
    expect(strcmp(dt_topology_link_name(ctx, 2), "gpu") == 0, "the innermost last");
    expect(!dt_topology_link_name(ctx, -1) && !dt_topology_link_name(ctx, 3), "no name out of range");
    expect(dt_topology_link(ctx, 0, 11) == 0 && dt_topology_link(ctx, 8, 7) == 0, "between pods");
    expect(dt_topology_link(ctx, 3, 4) == 1 && dt_topology_link(ctx, 0, 1) == 2, "between nodes, between gpus");
    expect(dt_topology_link(ctx, 5, 5) == 3, "none between a rank and itself");
    expect(dt_topology_link(ctx, 12, 0) == -1 && dt_topology_link(ctx, 0, 12) == -1, "-1 past the ranks");
    expect(dt_topology_link(ctx, -1, 0) == -1 && dt_topology_link(ctx, 0, INT_MIN) == -1, "-1 before the ranks");
    expect(dt_context_status(ctx) == DT_OK, "%s", dt_context_error(ctx));
    expect(dti_topology_get(ctx) == dti_topology_get(ctx), "read once");
    dt_context_fail(ctx, DT_ERR_STATE, "something else");
    expect(strcmp(dt_topology_text(ctx), "pod=2,node=2,gpu=4") == 0, "a failed context still answers");
    expect(dt_topology_link(ctx, 3, 4) == 1, "a failed context still answers");
    dt_context_destroy(&ctx);
}

static void test_null(void)
{
    expect(strcmp(dt_topology_text(NULL), "") == 0 && dt_topology_link_count(NULL) == 0, "text, count");
    expect(dt_topology_link_name(NULL, 0) == NULL && dt_topology_link(NULL, 0, 0) == -1, "name, link");
    expect(dti_topology_get(NULL) == NULL, "get");
    dt_context *ctx = context_with(2, NULL);
    dt_context_fail(ctx, DT_ERR_STATE, "something else");
    expect(strcmp(dt_topology_text(ctx), "") == 0, "a failed context reads none");
    expect(dt_topology_link_count(ctx) == 0 && dt_topology_link(ctx, 0, 1) == -1, "a failed context reads none");
    expect_error(ctx, DT_ERR_STATE, "something else", "the first error stays");
    expect(strcmp(dt_topology_text(ctx), "rank=2") == 0, "a cleared one does");
    dt_context_destroy(&ctx);
}

static void test_too_small(void)
{
    dt_context *ctx = context_with(17, "node=2,gpu=8");
    expect(strcmp(dt_topology_text(ctx), "") == 0, "no text");
    expect_error(ctx, DT_ERR_ARG, "topology \"node=2,gpu=8\": expected at least 17 places, one for each rank, got 16",
                 "too small");
    expect(dt_topology_link(ctx, 0, 1) == -1, "asked again, it fails again");
    expect_error(ctx, DT_ERR_ARG, "got 16", "too small");
    dt_context_destroy(&ctx);
    ctx = context_with(16, "node=2,gpu=8");
    expect(strcmp(dt_topology_text(ctx), "node=2,gpu=8") == 0, "as many places as ranks are enough");
    dt_context_destroy(&ctx);
}

static void test_option_line(void)
{
    char program[] = "program", option[] = "--dt-topology=node=2,gpu=4";
    char *args[] = { program, option, NULL }, **argv = args;
    int argc = 2;
    dt_context *ctx = context_with(8, "rank=8");
    dt_options_read(ctx, &argc, &argv);
    expect(strcmp(dt_topology_text(ctx), "node=2,gpu=4") == 0, "text: %s", dt_topology_text(ctx));
    dt_context_destroy(&ctx);
}

static void test_dry(void)
{
    dt_context *ctx = context_with(1 << 20, NULL);
    expect(strcmp(dt_topology_text(ctx), "rank=1048576") == 0, "a dry run without one is flat");
    expect(dt_topology_link_count(ctx) == 1 && strcmp(dt_topology_link_name(ctx, 0), "rank") == 0, "one class");
    expect(dt_topology_link(ctx, 0, 1048575) == 0 && dt_topology_link(ctx, 7, 7) == 1, "links");
    dt_context_destroy(&ctx);
}

static void test_host_level(void)
{
    static const struct { const char *text; int level; } cases[] = {
        { "node=2,gpu=8", 0 }, { "pod=2,node=2,gpu=2", 1 }, { "pod=2,gpu=8", 0 }, { "gpu=8", -1 }, { "rank=3", -1 },
    };
    dt_context *ctx = context_with(1, NULL);
    for (int i = 0; i < DT_COUNT(cases); i++) {
        dti_topology topology;
        dti_topology_parse(ctx, cases[i].text, &topology);
        expect(dti_topology_host(&topology) == cases[i].level, "%s: %d", cases[i].text, dti_topology_host(&topology));
    }
    dt_context_destroy(&ctx);
}

/* ---- classes, by walking the places ------------------------------------------------------------------------------ */

/* Digits of a rank's place, outermost first. */
static void place_of(const dti_topology *topology, int rank, int *digits)
{
    int place = rank / topology->levels[topology->level_count - 1].ranks;
    for (int i = topology->level_count - 1; i >= 0; i--) {
        digits[i] = place % topology->levels[i].size;
        place /= topology->levels[i].size;
    }
}

static void expect_classes(const dti_topology *topology, int n)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            int x[DT_MAX_LINKS], y[DT_MAX_LINKS], class = 0;
            place_of(topology, a, x);
            place_of(topology, b, y);
            while (class < topology->level_count && x[class] == y[class]) class++;
            expect(dti_topology_class(topology, a, b) == class, "%s: %d and %d: class %d, expected %d", topology->text,
                   a, b, dti_topology_class(topology, a, b), class);
        }
}

static void test_classes(void)
{
    dt_context *ctx = context_with(1, NULL);
    for (int i = 0; i < DT_COUNT(texts); i++) {
        dti_topology topology;
        dti_topology_parse(ctx, texts[i], &topology);
        int places = topology.levels[0].size * topology.levels[0].ranks;
        expect_classes(&topology, places < 48 ? places : 48);
    }
    dt_context_destroy(&ctx);
}

/* Ranks that share places: as few on one as can be, and levels that still nest. */
static void test_shared(void)
{
    for (int n = 1; n <= 60; n++) {
        dti_topology t = { .level_count = 3, .levels = { { "package", 2, 0 }, { "l3", 3, 0 }, { "core", 2, 0 } } };
        dti_topology_finish(&t, n);
        expect(t.levels[2].ranks == (n + 11) / 12, "%d ranks on 12 cores: %d on one", n, t.levels[2].ranks);
        expect(t.levels[1].ranks == 2 * t.levels[2].ranks && t.levels[0].ranks == 3 * t.levels[1].ranks, "nested");
        expect(n <= 2 * t.levels[0].ranks, "there is a place for each of %d", n);
        expect_classes(&t, n);
    }
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

static bool machine(int n, dti_topology *topology)
{
    dt_context *ctx = context_with(n, NULL);
    bool is_read = dti_topology_machine(ctx, n, topology);
    expect(is_read, "the machine: %s", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    return is_read;
}

static bool has_hwloc(void) { return strcmp(dti_topology_source, "hwloc") == 0; }

static void test_machine(void)
{
    dti_topology topology, again;
    expect(has_hwloc() || strcmp(dti_topology_source, "cpus") == 0, "read by %s", dti_topology_source);
    dt_context *ctx = context_with(4, NULL);
    if (machine(4, &topology) && expect(dti_topology_parse(ctx, topology.text, &again), "%s", dt_context_error(ctx)))
        expect(strcmp(again.text, topology.text) == 0, "%s parses back", topology.text);
    expect_classes(&topology, 4);
    ctx->dry = false;
    expect(strcmp(dt_topology_text(ctx), topology.text) == 0, "a context that is not dry asks the machine");
    expect(dt_topology_link(ctx, 3, 3) == topology.level_count, "a rank and itself");
    dt_context_destroy(&ctx);
}

/* Leave this process one of its CPUs, and write the machine it then sees; what fails leaves zeros. */
static void write_restricted(int fd)
{
    cpu_set_t before, one;
    dti_topology topology = { .level_count = 0 };
    size_t cpu = 0;
    dt_context *ctx = dt_context_dry(3);
    CPU_ZERO(&one);
    if (ctx && sched_getaffinity(0, sizeof before, &before) == 0) {
        while (!CPU_ISSET(cpu, &before)) cpu++;
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0) dti_topology_machine(ctx, 3, &topology);
    }
    if (write(fd, &topology, sizeof topology) < 0) _exit(1); /* short enough for a pipe to take at once */
}

/* One CPU allowed is one core, however many there are. In a process of its own: a runner may have threads elsewhere. */
static void test_machine_restricted(void)
{
    int ends[2];
    dti_topology topology = { .level_count = 0 };
    if (!expect(pipe(ends) == 0, "a pipe")) return;
    pid_t child = fork();
    if (child == 0) {
        write_restricted(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    expect(child > 0 && read(ends[0], &topology, sizeof topology) == (ssize_t)sizeof topology, "the child's answer");
    close(ends[0]);
    waitpid(child, NULL, 0);
    expect(topology.level_count == 1 && strcmp(topology.text, "core=1") == 0, "got %s", topology.text);
    expect(topology.levels[0].ranks == 3 && dti_topology_class(&topology, 0, 2) == 1, "three ranks at one place");
}

typedef struct machine_row { const char *synthetic; int n; const char *text; int ranks; } machine_row;

static const machine_row machines[] = { /* ranks: on one place of the outermost level                             */
    { "pack:2 core:4 pu:1", 4, "package=2,core=4", 4 },
    { "pack:2 core:4 pu:1", 8, "package=2,core=4", 4 },
    { "pack:2 core:4 pu:1", 9, "package=2,core=4", 8 },
    { "pack:2 core:4 pu:1", 16, "package=2,core=4", 8 },
    { "pack:2 core:4 pu:2", 16, "package=2,core=4", 8 },
    { "pack:2 numa:2 l3:2 core:4 pu:2", 32, "package=2,numa=2,l3=2,core=4", 16 },
    { "pack:1 l3:2 core:3 pu:1", 6, "l3=2,core=3", 3 },
    { "numa:4 core:2 pu:1", 8, "numa=4,core=2", 2 },
    { "numa:2 pack:1 core:4 pu:1", 8, "package=2,core=4", 4 },
    { "numa:2 pack:2 core:2 pu:1", 8, "package=4,core=2", 2 },
    { "core:6 pu:2", 6, "core=6", 1 },
    { "core:1 pu:1", 5, "core=1", 5 },
    { "pack:2 core:1 pu:1", 2, "package=2", 1 },
    { "pu:4", 4, "core=4", 1 },
};

static void test_machines(void)
{
    for (int i = 0; has_hwloc() && i < DT_COUNT(machines); i++) {
        dti_topology topology;
        setenv("HWLOC_SYNTHETIC", machines[i].synthetic, 1);
        bool is_read = machine(machines[i].n, &topology);
        unsetenv("HWLOC_SYNTHETIC");
        if (!is_read) continue;
        expect(strcmp(topology.text, machines[i].text) == 0, "%s: %s", machines[i].synthetic, topology.text);
        expect(topology.levels[0].ranks == machines[i].ranks, "%s: %d ranks on one %s", machines[i].synthetic,
               topology.levels[0].ranks, topology.levels[0].name);
        expect_classes(&topology, machines[i].n);
    }
}

/* A package of two cores and one of one core, in hwloc's exchange format. */
static void write_uneven(FILE *file)
{
    static const struct { const char *type; int index, cpus; bool closes; } objects[] = {
        { "Machine", 0, 7, false }, { "NUMANode", 0, 7, true }, { "Package", 0, 3, false }, { "Core", 0, 1, false },
        { "PU", 0, 1, true }, { NULL, 0, 0, true }, { "Core", 1, 2, false }, { "PU", 1, 2, true }, { NULL, 0, 0, true },
        { NULL, 0, 0, true }, { "Package", 1, 4, false }, { "Core", 2, 4, false }, { "PU", 2, 4, true },
        { NULL, 0, 0, true }, { NULL, 0, 0, true }, { NULL, 0, 0, true },
    };
    fputs("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n", file);
    for (int i = 0; i < DT_COUNT(objects); i++) {
        if (objects[i].type)
            fprintf(file, "<object type=\"%s\" os_index=\"%d\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
                    "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"%d\"%s>\n", objects[i].type,
                    objects[i].index, objects[i].cpus, objects[i].cpus, i + 1,
                    i == 0 ? " allowed_cpuset=\"0x7\" allowed_nodeset=\"0x1\"" : "");
        if (objects[i].closes) fputs("</object>\n", file);
    }
    fputs("</topology>\n", file);
}

static void test_uneven_machine(void)
{
    char path[] = "/tmp/dt_topology_XXXXXX";
    dti_topology topology;
    if (!has_hwloc()) return;
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!expect(file != NULL, "a temporary file")) return;
    write_uneven(file);
    fclose(file);
    setenv("HWLOC_XMLFILE", path, 1);
    if (machine(3, &topology)) expect(strcmp(topology.text, "core=3") == 0, "its cores alone: %s", topology.text);
    unsetenv("HWLOC_XMLFILE");
    unlink(path);
}

static void test_unreadable_machine(void)
{
    dti_topology topology = { .level_count = 77 };
    if (!has_hwloc()) return;
    dt_context *ctx = context_with(4, NULL);
    setenv("HWLOC_COMPONENTS", "stop", 1);
    expect(!dti_topology_machine(ctx, 4, &topology), "hwloc without eyes");
    unsetenv("HWLOC_COMPONENTS");
    expect(topology.level_count == 77, "the result stays untouched");
    expect_error(ctx, DT_ERR_UNAVAILABLE, "hwloc cannot read", "unreadable");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "parse", test_parse },
    { "parse_refused", test_parse_refused },
    { "questions", test_questions },
    { "null", test_null },
    { "too_small", test_too_small },
    { "option_line", test_option_line },
    { "dry", test_dry },
    { "host_level", test_host_level },
    { "classes", test_classes },
    { "shared", test_shared },
    { "machine", test_machine },
    { "machine_restricted", test_machine_restricted },
    { "machines", test_machines },
    { "uneven_machine", test_uneven_machine },
    { "unreadable_machine", test_unreadable_machine },
};

const suite the_suite = { "topology", rows, DT_COUNT(rows) };
