/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, paths and patterns as text (nn.h says what they mean). Pure. */
#ifndef DTI_PATH_H
#define DTI_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Letters, digits, "_" and "-", at least one: what stands between two "." of a path. */
bool dti_name_ok(const char *name);
/* Does a path match a pattern? Both relative to the root that the pattern is asked of. */
bool dti_path_matches(const char *path, const char *pattern);
/* What is wrong with a pattern, and the column of it, from 1 on; NULL: nothing. */
const char *dti_pattern_fault(const char *pattern, int *column);

#endif
