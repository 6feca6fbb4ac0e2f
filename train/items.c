/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of what modules and optimisers keep. */
#include "train/items.h"

#include <stdlib.h>
#include <string.h>

#include "ops/write.h"

static bool lacks(const dti_items *items)
{
    dti_context_lacks(items->root->ctx, (size_t)items->room * sizeof *items->at);
    return false;
}

static bool add(dti_items *items, const char *path, const char *state, dt_tensor *x)
{
    size_t n = strlen(path), more = state ? strlen(state) + 1 : 0;
    char *name = dti_arena_take(&items->arena, n + more + 1);
    if (!name) return lacks(items);
    memcpy(name, path, n);
    if (state) {
        name[n] = '/';
        memcpy(name + n + 1, state, more);
    }
    items->at[items->n++] = (dti_item){ name, x };
    return true;
}

static const char *path_of(const dti_items *items, const dt_tensor *param)
{
    return dti_path_below(items->root, dt_param_path(param));
}

static bool add_params(dti_items *items)
{
    for (dt_module *at = items->root; at; at = dti_module_next(items->root, at))
        for (const dti_param *param = at->params; param; param = param->next) {
            const char *path = path_of(items, param->tensor);
            if (!path || !add(items, path, NULL, param->tensor)) return false;
        }
    return true;
}

static bool has(const dti_items *items, const dt_tensor *x)
{
    for (int i = 0; i < items->n; i++)
        if (items->at[i].x == x) return true;
    return false;
}

static bool add_states(dti_items *items, const dt_optim *optim, const char *who)
{
    int params = items->n;
    for (int i = 0; i < optim->n; i++) {
        const dti_optim_slot *slot = &optim->slots[i];
        const char *path = path_of(items, slot->param);
        if (!path) return false;
        bool here = i < params && items->at[i].x == slot->param; /* of the same root they are in the same order     */
        if (!here && !has(items, slot->param))
            return dti_fail(items->root->ctx, DT_ERR_ARG, "%s: the optimiser is of %s, which is not in %s", who,
                            dt_param_path(slot->param), dti_module_name(items->root)), false;
        for (int s = 0; s < DTI_OPTIM_STATES; s++)
            if (slot->state[s] && !add(items, path, optim->kind->states[s], slot->state[s])) return false;
    }
    return true;
}

bool dti_items_list(dti_items *items, dt_module *root, dt_optim *optim, const char *who)
{
    *items = (dti_items){ .root = root, .room = dt_module_params(root, NULL, NULL, 0) };
    if (optim) items->room += DTI_OPTIM_STATES * optim->n;
    items->at = calloc((size_t)items->room + 1, sizeof *items->at);
    if (!items->at) return lacks(items);
    bool other = optim && optim->ctx != root->ctx;
    if (other) dti_fail(root->ctx, DT_ERR_ARG, "%s: the optimiser is of another context", who);
    if (!dti_failed(root->ctx) && add_params(items) && (!optim || add_states(items, optim, who))) return true;
    dti_items_fini(items);
    return false;
}

bool dti_items_open(const dti_items *items, const char *who)
{
    dt_context *ctx = items->root->ctx;
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    bool open = true;
    for (int i = 0; i < items->n && open; i++) {
        dt_tensor *x = items->at[i].x;
        open = x->unmade || dti_write_may(x, who, items->at[i].name, &x, 1);
    }
    open = open && dti_module_make(items->root, NULL, NULL);
    dt_scope_pop(ctx, scope, NULL);
    return open && !dti_failed(ctx);
}

void dti_items_written(const dti_items *items)
{
    for (int i = 0; i < items->n; i++) dti_tensor_written(items->at[i].x);
}

void dti_items_fini(dti_items *items)
{
    free(items->at);
    dti_arena_fini(&items->arena);
    *items = (dti_items){ .n = 0 };
}

dti_store dti_items_store(const dti_items *items, const char *folder)
{
    return (dti_store){ .mesh = items->root->mesh, .folder = folder, .items = items->at, .n = items->n, .updates = -1 };
}
