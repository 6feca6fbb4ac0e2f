/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from a model of bytes. */
#ifndef LLAMA_GENERATE_H
#define LLAMA_GENERATE_H

#include <dtensor/dtensor.h>

/* Print prompt and n bytes that the model goes on with, one at a time, drawn with this temperature (0: the likeliest).
 * window: how many bytes it sees. The same text on every mesh. Collective; rank 0 prints. */
dt_status generate(dt_module *model, const char *prompt, int n, int window, double temperature, uint64_t seed);

#endif
