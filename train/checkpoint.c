/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of modules and their optimisers. Draws are keyed by the context's step, so step is all of their state. */
#include "train/items.h"

static bool has_folder(dt_context *ctx, const char *who, const char *folder)
{
    if (folder && folder[0]) return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: no folder", who);
    return false;
}

/* Do all ranks ask for the same? */
static bool is_alike(dt_module *root, const dt_optim *optim, int64_t step, const char *folder, const char *who)
{
    enum { SAID = 3 };
    static const char *const what[SAID] = { "another step", "another folder", "an optimiser, or none," };
    dt_mesh *mesh = root->mesh;
    if (root->ctx->dry || mesh->rank < 0) return true;
    const int64_t mine[SAID] = { step, (int64_t)dti_hash(folder, strlen(folder), 0), optim != NULL };
    size_t bytes = (size_t)mesh->size * sizeof mine;
    int64_t *all = dti_context_borrow(root->ctx, bytes);
    bool gathered = all && dti_ranks_gather(mesh, mine, SAID, all);
    for (int i = SAID; gathered && i < SAID * mesh->size; i++)
        if (all[i] != all[i % SAID])
            dti_fail(root->ctx, DT_ERR_DESYNC, "%s: rank %d of %s gives %s than rank 0, which gives %s", who, i / SAID,
                     mesh->text, what[i % SAID], folder);
    dti_context_give(root->ctx, all, bytes);
    return gathered && !dti_failed(root->ctx);
}

static bool has_values(const dti_items *items, const char *who)
{
    for (int i = 0; i < items->n; i++)
        if (items->at[i].x->unmade)
            return dti_fail(items->root->ctx, DT_ERR_STATE, "%s: %s has no values; see dt_module_materialize", who,
                            items->at[i].name), false;
    return true;
}

dt_status dt_checkpoint_save(dt_module *root, dt_optim *optim, int64_t step, const char *folder)
{
    static const char who[] = "dt_checkpoint_save";
    dti_items items;
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx)) return root->ctx->status;
    if (step < 0) return dti_fail(root->ctx, DT_ERR_ARG, "%s: step %lld, expected at least 0", who, (long long)step);
    if (!has_folder(root->ctx, who, folder) || !dti_items_list(&items, root, optim, who)) return root->ctx->status;
    if (is_alike(root, optim, step, folder, who) && has_values(&items, who) && (!optim || dti_optim_settle(optim))) {
        dti_store store = dti_items_store(&items, folder);
        store.step = step;
        if (optim) store.updates = optim->steps;
        dti_store_save(&store);
    }
    dti_items_fini(&items);
    return root->ctx->status;
}

/* What is read belongs to the same moment: parameters, states, steps. */
static bool load(const dti_store *store, const dti_items *items, dt_optim *optim, dti_index *index, const char *who)
{
    dt_context *ctx = store->mesh->ctx;
    bool here = dti_store_takes_part(store->mesh);
    if (here && optim && index->updates < 0)
        return dti_fail(ctx, DT_ERR_ARG, "checkpoint \"%s\" has no optimiser", store->folder), false;
    if (!dti_store_fits(store, index, optim != NULL) || !dti_items_open(items, who)) return false;
    if (!dti_store_load(store, index, NULL)) return false;
    dti_items_written(items);
    if (here && optim) dti_optim_restored(optim, index->updates);
    return !here || dt_context_step(ctx, index->step, 0) == DT_OK;
}

dt_status dt_checkpoint_load(dt_module *root, dt_optim *optim, int64_t *step, const char *folder)
{
    static const char who[] = "dt_checkpoint_load";
    dti_items items;
    dti_index index;
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx)) return root->ctx->status;
    if (!has_folder(root->ctx, who, folder) || !dti_items_list(&items, root, optim, who)) return root->ctx->status;
    dti_store store = dti_items_store(&items, folder);
    if (is_alike(root, optim, 0, folder, who) && dti_store_index(root->mesh, folder, &index)) {
        bool loaded = load(&store, &items, optim, &index, who);
        if (loaded && step) *step = index.step;
        dti_index_fini(&index);
    }
    dti_items_fini(&items);
    return root->ctx->status;
}

bool dt_checkpoint_exists(dt_context *ctx, const char *folder)
{
    if (dti_failed(ctx) || !has_folder(ctx, "dt_checkpoint_exists", folder)) return false;
    dt_mesh *all = dt_mesh_create(ctx, NULL);
    return all && dti_store_exists(all, folder);
}
