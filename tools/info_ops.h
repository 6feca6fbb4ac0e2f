/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt info --ops`: the op table. */
#ifndef DT_INFO_OPS_H
#define DT_INFO_OPS_H

#include "tool.h"

/* false: memory ran out. */
bool info_ops_text(FILE *out);
void info_ops_json(FILE *out);

#endif
