/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of modules and their parameters, for the layers above: those place parameters and read what was placed.
 * Until a parameter is materialised its handle has a spec and no storage, and the spec may be set anew. */
#ifndef DTI_MODULE_H
#define DTI_MODULE_H

#include <dtensor/nn.h>

#include "autograd/use.h"
#include "nn/path.h"
#include "tensor/tensor.h"

typedef struct dti_param {
    struct dti_param *next;        /* of its module                                                                */
    dt_module *module;             /* that made it                                                                 */
    char *name, *path;             /* path: NULL until asked for                                                   */
    dt_tensor *tensor;             /* the handle that forward uses; no scope's                                     */
    dt_init init;
    double scale;
    int64_t unit, in_unit;         /* of dims 0 and 1; 1: may be cut anywhere                                      */
    bool made;                     /* has values                                                                   */
    bool in_use;                   /* of its group; see dti_param_use                                              */
    const dt_spec *base;           /* where it lies on its module's mesh, but for what fully_shard does; NULL: R   */
    const dt_spec *by_hand;        /* likewise, used, where that was said apart from it; NULL: it was not          */
    const dt_spec *used;           /* what ops see during the call; NULL: as stored                                */
    const dt_spec *grad;           /* where backward leaves the gradient; NULL: S as stored, else as it comes      */
    const dt_spec *state;          /* where the optimiser's states lie; NULL: as stored                            */
    dt_module *group;              /* with whose parameters it is gathered; NULL: its module's                     */
} dti_param;

/* A second name of a parameter. */
typedef struct dti_tie {
    struct dti_tie *next;          /* of its module                                                                */
    char *name;
    dti_param *param;              /* there as long as its module is                                               */
    uint64_t owner;                /* the id of that                                                               */
} dti_tie;

typedef struct dti_module_hook {
    struct dti_module_hook *next;
    dt_input_fn input;
    dt_output_fn output;
    void *arg;
    void (*release)(void *arg);    /* NULL: nothing                                                                */
} dti_module_hook;

typedef struct dti_shard {
    const char *dim;               /* of the mesh, over which the group's parameters are stored; NULL: is none     */
    dt_dtype compute;
    int zero;
} dti_shard;

struct dt_module {
    dti_handle handle;             /* first: a root is a handle of its scope                                       */
    dt_context *ctx;
    dt_mesh *mesh;
    const dt_module_type *type;
    void *state;
    dt_module *parent, *first, *last, *next;
    char *name, *path;             /* path: NULL until asked for                                                   */
    dti_param *params, *last_param;
    dti_tie *ties;
    dti_module_hook *hooks;
    bool training, recompute;
    dti_shard shard;               /* is a group of parameters: dt_fully_shard                                     */
    dti_use_params use_params;     /* of the group                                                                 */
    dti_use *use;                  /* parameters gathered when it is called, made with their values; NULL: none    */
    uint64_t id;                   /* never used again                                                             */
};

/* The parameter that a tensor is; NULL: it is none. */
dti_param *dti_param_of(const dt_tensor *x);
/* Set where a parameter without values is stored. */
void dti_param_store(dti_param *param, const dt_spec *spec);
/* Is it a pattern? false: DT_ERR_PARSE with the column, or one that is NULL. */
bool dti_pattern_ok(const dt_module *root, const char *who, const char *pattern);
/* What is left of a module's path, or a parameter's, below root. */
const char *dti_path_below(const dt_module *root, const char *path);
/* The next module in tree order below root, a parent before its children; NULL: that was the last. */
dt_module *dti_module_next(const dt_module *root, dt_module *module);
/* What a module is called in messages: its path, of a root its type. */
const char *dti_module_name(const dt_module *module);
/* The use that gathers a parameter; NULL: it is used as it is stored. */
dti_use *dti_param_use(const dti_param *param);
/* As dt_module_hook; release is called with arg when the module ends, on failure too. */
dt_status dti_module_hook_owned(dt_module *module, dt_input_fn input, dt_output_fn output, void *arg,
                                void (*release)(void *arg));
/* Make what has been placed and still has no values: zeros where fill is NULL (a checkpoint comes), else by fill, which
 * is called with storage of any content, NULL where this rank has no part. Then they are leaves and their groups stand.
 * Collective. false: the error. */
typedef bool (*dti_param_fill_fn)(dti_param *param, void *arg);
bool dti_module_make(dt_module *root, dti_param_fill_fn fill, void *arg);

#endif
