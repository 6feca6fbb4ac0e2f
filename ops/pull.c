/* SPDX-License-Identifier: Apache-2.0
 *
 * From an index map along one dim to parts of a mapped plan, whose maps are of all dims. A plan's source and target
 * have as many dims and the same P. So a tensor that lacks the map's dim is planned with one of size 1, and an operand
 * that is R where the result is P is said to be P: propagation has seen to it that its values are right as they are. */
#include "ops/pull.h"

#include <string.h>

/* Dims of operands and results; those that lack the map's have one less. */
static int most_dims(const dti_dispatch *d)
{
    int most = 0;
    for (int i = 0; i < d->n; i++)
        if (d->used[i] && d->used[i]->shape.n > most) most = d->used[i]->shape.n;
    return d->result[0]->shape.n > most ? d->result[0]->shape.n : most;
}

/* Elements along the map's dim; 1 where it is not there. */
static int64_t size_along(const dt_spec *spec, int dim, int dims)
{
    return spec->shape.n < dims ? 1 : spec->shape.dim[dim];
}

static bool part_fits(const dt_index_map *map, const dti_dispatch *d, const dt_index_part *part, int dims, int64_t *end)
{
    if (part->operand < 0 || part->operand >= d->n || !d->used[part->operand]) return false;
    int64_t from = size_along(d->used[part->operand], map->dim, dims);
    int64_t to = size_along(d->result[part->result], map->dim, dims), n = part->hi - part->lo;
    if (part->lo < *end || n < 0 || part->hi > to) return false;
    *end = part->hi;
    if (n == 0) return true;
    int64_t ahead = part->step > 0 ? from - 1 - part->from : part->from;
    return part->from >= 0 && part->from < from && ahead / (part->step > 0 ? part->step : -part->step) >= n - 1;
}

bool dti_map_check(dt_context *ctx, const dt_index_map *map, const dti_dispatch *d)
{
    int64_t end[DT_MAX_RESULTS] = { 0 };
    int dims = most_dims(d);
    bool fits = map->dim >= 0 && map->dim < dims;
    for (int i = 0; i < map->part_count; i++)
        if (map->part[i].step == 0)
            return dti_fail(ctx, DT_ERR_ARG, "%s: part %d of its index map has step 0, expected another", d->op->head,
                            i), false;
    for (int i = 0; i < map->part_count && fits; i++) {
        const dt_index_part *part = &map->part[i];
        fits = part->result >= 0 && part->result < d->result_count && part_fits(map, d, part, dims, &end[part->result]);
    }
    if (!fits) dti_fail(ctx, DT_ERR_ARG, "%s: its index map leads out of its operands or results", d->op->head);
    return fits;
}

static bool splits(const dt_spec *spec, int dim, int dims)
{
    return spec && spec->shape.n == dims && dti_form_splits(&spec->form, dim);
}

bool dti_pulls(const dt_index_map *map, const dti_dispatch *d)
{
    bool split = false;
    int dims = most_dims(d);
    for (int i = 0; i < d->n; i++) split |= splits(d->used[i], map->dim, dims);
    for (int r = 0; r < d->result_count; r++) split |= splits(d->result[r], map->dim, dims);
    return split;
}

/* With the map's dim, where it is not there. */
static const dt_spec *with_dim(const dt_spec *spec, int dim, int dims)
{
    if (spec->shape.n == dims) return spec;
    static const dti_form one = { .dim_count = 1, .factor_first = { 0, 1 }, .size = { 1 } };
    dti_form form = { .dtype = spec->form.dtype };
    for (int d = 0; d < spec->form.dim_count; d++) {
        if (d == dim) dti_form_add_dim(&form, &one, 0);
        dti_form_add_dim(&form, &spec->form, d);
    }
    if (dim == spec->form.dim_count) dti_form_add_dim(&form, &one, 0);
    memcpy(form.partial, spec->form.partial, sizeof form.partial);
    return dti_spec_intern(spec->mesh, &form);
}

static const dt_spec *with_partial(const dt_spec *spec, const dt_spec *of)
{
    dti_form form = spec->form;
    memcpy(form.partial, of->form.partial, sizeof form.partial);
    return dti_spec_intern(spec->mesh, &form);
}

static void set_maps(const dt_index_map *map, const dt_index_part *part, const dt_spec *target, dti_map *maps)
{
    int64_t stride = part->step < 0 ? -part->step : part->step;
    for (int d = 0; d < target->shape.n; d++) maps[d] = (dti_map){ .hi = target->shape.dim[d] };
    maps[map->dim] = (dti_map){ .lo = part->lo, .hi = part->hi, .shift = part->from - part->lo * part->step,
                                .stride = stride, .reversed = part->step < 0 };
}

const dt_plan *dti_pull_plan(const dt_index_map *map, const dti_dispatch *d, int result)
{
    int dims = most_dims(d), n = 0;
    const dt_spec *target = with_dim(d->result[result], map->dim, dims);
    dti_part parts[DT_MAX_OPERANDS];
    for (int i = 0; i < map->part_count && target; i++) {
        const dt_index_part *part = &map->part[i];
        if (part->result != result) continue;
        const dt_spec *source = with_dim(d->used[part->operand], map->dim, dims);
        if (!source || !(parts[n].source = with_partial(source, target))) return NULL;
        set_maps(map, part, target, parts[n++].maps);
    }
    return target ? dti_plan_mapped(target, parts, n) : NULL;
}
