/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of nn share of modules, and no other layer sees. */
#ifndef DTI_TREE_H
#define DTI_TREE_H

#include "nn/module.h"

/* Is a name free in a module, for a child or a parameter? false: the error; who: "dt_module_add". */
bool dti_name_free(dt_module *module, const char *who, const char *name);
/* The module of an id; NULL: it has ended. */
dt_module *dti_module_of(dt_context *ctx, uint64_t id);
/* A copy of a text, and its end. NULL and the error when memory ran out; NULL: nothing. */
char *dti_text_new(dt_context *ctx, const char *text);
void dti_text_end(dt_context *ctx, char *text);
/* "a.b" of "a" and "b", "b" of "" and "b". NULL and the error when memory ran out. */
char *dti_path_join(dt_context *ctx, const char *path, const char *name);

/* A parameter and what names it end. */
void dti_params_end(dt_module *module);
/* Paths of a module's parameters are to be asked for anew. */
void dti_params_forget_paths(dt_module *module);

/* Tables of a context: parameters by body, modules by id. NULL: the error. */
typedef struct dti_modules { dti_table params, modules; uint64_t last_id; } dti_modules;
dti_modules *dti_modules_of(dt_context *ctx);

#endif
