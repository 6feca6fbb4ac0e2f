/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters placed by hand. */
#include <dtensor/parallel.h>

#include <string.h>

#include "parallel/param.h"
#include "placements/spec.h"

/* "bf16@tp:S(0)" is a dtype and placements; without "@" there are placements alone. false: the error. */
static bool read_used(dt_context *ctx, const char *used, dt_dtype *dtype, const char **placements)
{
    const char *at = strchr(used, '@');
    *dtype = DT_DTYPE_DEFAULT;
    *placements = at ? at + 1 : used;
    if (!at) return true;
    dti_scan scan = { ctx, "used", used, used };
    int32_t read;
    if (!dti_scan_dtype(&scan, &read)) return false;
    *dtype = (dt_dtype)read;
    if (scan.at == at && *dtype <= DT_F16) return true;
    dti_fail(ctx, scan.at == at ? DT_ERR_DTYPE : DT_ERR_PARSE, "used \"%s\": expected a dtype of floats before the @",
             used);
    return false;
}

static bool place(dti_param *param, const char *stored, const char *used, bool checking)
{
    dt_context *ctx = param->tensor->ctx;
    dt_dtype dtype;
    const char *placements;
    if (param->made) return dti_fail(ctx, DT_ERR_STATE, "dt_place: it has values"), false;
    if (used && param->group)
        return dti_fail(ctx, DT_ERR_STATE, "dt_place: it is fully sharded, which says how it is used"), false;
    const dt_spec *base = dti_param_spec(param, stored, DT_DTYPE_DEFAULT), *by_hand = NULL;
    if (base && used && read_used(ctx, used, &dtype, &placements)) by_hand = dti_param_spec(param, placements, dtype);
    if (!base || (used && !by_hand)) return false;
    dti_param placed = *param;
    placed.base = base;
    placed.by_hand = by_hand;
    if (checking) return dti_param_may(&placed, NULL);
    *param = placed;
    return dti_param_derive(param);
}

/* Every parameter that a pattern names. Returns how many; -1: the error. */
static int place_all(dt_module *root, const char *pattern, const char *stored, const char *used, bool checking)
{
    dt_context *ctx = root->ctx;
    int n = 0;
    for (dt_module *at = root; at; at = dti_module_next(root, at))
        for (dti_param *param = at->params; param; param = param->next) {
            const char *path = dt_param_path(param->tensor), *outside = ctx->inside;
            if (!path || !dti_path_matches(dti_path_below(root, path), pattern)) continue;
            ctx->inside = path;
            bool placed = place(param, stored, used, checking);
            ctx->inside = outside;
            if (!placed) return -1;
            n++;
        }
    return n;
}

/* All are looked at before any is changed. */
dt_status dt_place(dt_module *root, const char *pattern, const char *stored, const char *used)
{
    if (!root) return DT_ERR_ARG;
    dt_context *ctx = root->ctx;
    if (dti_failed(ctx) || !dti_pattern_ok(root, "dt_place", pattern)) return ctx->status;
    int n = place_all(root, pattern, stored, used, true);
    if (n > 0) place_all(root, pattern, stored, used, false);
    if (n == 0)
        dti_fail(ctx, DT_ERR_ARG, "dt_place: no parameter of %s matches \"%s\"", dti_module_name(root), pattern);
    return ctx->status;
}
