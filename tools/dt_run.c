/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt run`: a program on many ranks. Ranks are threads of the program's own process, so it only says, by the variables
 * that dt_launch reads, how many there are to be, and becomes the program. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_RANKS, OPTION_BACKEND, OPTION_MESH, OPTION_COUNT };

static const tool_option options[OPTION_COUNT] = {
    [OPTION_RANKS] = { "ranks", "N", "how many ranks; also -n N", 'n' },
    [OPTION_BACKEND] = { "backend", "NAME", "threads; mpi and nccl are not in this version", 0 },
    [OPTION_MESH] = { "mesh", "MESH", "sizes of the mesh dims, dp=2,tp=4", 0 },
};

static const char *const variables[OPTION_COUNT] = { "DT_RANKS", "DT_BACKEND", "DT_MESH" };

static int run(const tool_call *call)
{
    if (!call->program)
        return tool_fail(call->command, TOOL_USAGE, "expected a program; see dt run --help");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (call->values[i] && setenv(variables[i], call->values[i], 1) != 0)
            return tool_fail(call->command, TOOL_FAILED, "out of memory");
    execvp(call->program[0], call->program);
    return tool_fail(call->command, TOOL_FAILED, "%s: %s", call->program[0], strerror(errno));
}

const tool_command dt_run_command = {
    .name = "run",
    .summary = "run a program on many ranks",
    .arguments = "PROGRAM [ARGUMENT...]",
    .takes_program = true,
    .details = "The program's own --dt-* options win over these. Its exit status is the command's.\n",
    .options = options,
    .option_count = OPTION_COUNT,
    .run = run,
};
