/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of mapped pulls: one step per part, all at once, in a frame whose blocks are the target's dims. Ranks ask only
 * along mesh dims that cut the source or the target; P stays as it is. */
#include "redistribute/map.h"

#include <string.h>

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool refuse(const dt_spec *target, const dti_part *part, dt_status status, const char *why)
{
    dti_fail(target->mesh->ctx, status, "%s from %s: %s", dt_spec_text(target), dt_spec_text(part->source), why);
    return false;
}

static bool map_fits(const dti_map *map, int64_t target_size, int64_t source_size)
{
    if (map->stride < 0 || map->lo < 0 || map->hi < map->lo || map->hi > target_size) return false;
    if (map->lo == map->hi) return true;
    int64_t first = dti_map_source(map, map->lo), last = dti_map_source(map, map->hi - 1);
    return first >= 0 && last >= 0 && first < source_size && last < source_size;
}

static bool check_part(const dt_spec *target, const dti_part *part)
{
    const dt_spec *source = part->source;
    if (source->mesh != target->mesh) return refuse(target, part, DT_ERR_PLACEMENT, "they lie on two meshes");
    if (source->form.dtype != target->form.dtype) return refuse(target, part, DT_ERR_DTYPE, "their dtypes differ");
    if (source->shape.n != target->shape.n)
        return refuse(target, part, DT_ERR_SHAPE, "they have other numbers of dims");
    if (!dti_plan_countable(target->mesh->ctx, source) || !dti_plan_countable(target->mesh->ctx, target))
        return refuse(target, part, DT_ERR_SHAPE, "they are too large for their bytes to be counted");
    if (memcmp(source->form.partial, target->form.partial, sizeof source->form.partial))
        return refuse(target, part, DT_ERR_PLACEMENT, "P must be the same in both");
    for (int d = 0; d < target->shape.n; d++)
        if (!map_fits(&part->maps[d], target->shape.dim[d], source->shape.dim[d]))
            return refuse(target, part, DT_ERR_SHAPE, "a map leads out of range");
    return true;
}

static bool overlap(const dt_spec *target, const dti_part *a, const dti_part *b)
{
    for (int d = 0; d < target->shape.n; d++)
        if (a->maps[d].hi <= b->maps[d].lo || b->maps[d].hi <= a->maps[d].lo || a->maps[d].lo == a->maps[d].hi
            || b->maps[d].lo == b->maps[d].hi) return false;
    return true;
}

static bool check_parts(const dt_spec *target, const dti_part *parts, int n)
{
    for (int i = 0; i < n; i++) {
        if (!parts[i].source)
            return dti_fail(target->mesh->ctx, DT_ERR_ARG, "%s: part %d has no source", dt_spec_text(target), i), false;
        if (!check_part(target, &parts[i])) return false;
        for (int k = 0; k < i; k++)
            if (overlap(target, &parts[k], &parts[i])) return refuse(target, &parts[i], DT_ERR_SHAPE, "parts overlap");
    }
    return true;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int dim_digits(const dt_mesh *mesh, int dim, dti_digit *digits)
{
    const dti_mesh_dim *d = &mesh->dims[dim];
    for (int i = 0; i < d->axis_count; i++) digits[i] = (dti_digit){ d->axes[i].size, d->axes[i].stride, DTI_CLOSED };
    return d->axis_count;
}

/* The cuts of a spec, dim by dim. */
static void cut_dims(const dt_spec *spec, dti_room *room)
{
    const dti_form *form = &spec->form;
    dti_room_init(room, spec->layout);
    for (int d = 0; d < form->dim_count; d++) {
        int64_t inner = 1;
        for (int f = form->factor_first[d + 1] - 1; f >= form->factor_first[d]; f--) {
            dti_digit digits[DTI_MAX_AXES];
            int n = 0;
            for (int i = form->split_first[f]; i < form->split_first[f + 1]; i++)
                n += dim_digits(spec->mesh, form->split[i], digits + n);
            if (n) dti_room_carve(room, d, form->size[f], inner, digits, n);
            inner *= form->size[f];
        }
    }
}

static bool cuts_any(const dt_spec *spec, int mesh_dim) { return dti_form_split_by(&spec->form, mesh_dim) >= 0; }

/* Ranks ask along mesh dims that cut one or the other; those that cut only the target find copies of the source. */
static void set_asked(const dt_spec *source, const dt_spec *target, dti_step *step)
{
    int at = 0;
    step->takers = 1;
    for (int copies = 0; copies < 2; copies++)
        for (int d = 0; d < target->mesh->dim_count; d++) {
            const dti_mesh_dim *dim = &target->mesh->dims[d];
            bool from = cuts_any(source, d), to = cuts_any(target, d);
            if (copies ? from || !to : !from) continue;
            for (int i = 0; i < dim->axis_count; i++) step->asked[at++] = dim->axes[i];
            *(copies ? &step->copy_count : &step->cut_count) += dim->axis_count;
            if (!to) step->takers *= dim->size;
        }
}

static bool make_part(dt_context *ctx, const dt_spec *target, const dti_part *part, const dti_holding *to,
                      dti_step *step)
{
    dti_room room;
    cut_dims(part->source, &room);
    dti_map *maps = dti_context_take(ctx, DT_MAX_DIMS * sizeof *maps);
    dt_dtype dtype = (dt_dtype)target->form.dtype;
    *step = (dti_step){ .from = dti_holding_freeze(&room.holding, &ctx->arena), .to = to, .maps = maps,
                        .summed_ranks = 1, .travels = dtype, .gives = dtype, .own = true };
    if (!maps || !step->from) return false;
    memcpy(maps, part->maps, DT_MAX_DIMS * sizeof *maps);
    for (int d = 0; d < target->shape.n; d++) maps[d].source_size = part->source->shape.dim[d];
    set_asked(part->source, target, step);
    step->kind = step->cut_count ? DT_COMM_EXCHANGE : DT_COMM_LOCAL;
    return true;
}

static dt_plan *new_plan(dt_context *ctx, const dt_spec *target, const dti_part *parts, int n)
{
    dt_plan *plan = dti_context_take(ctx, sizeof *plan);
    dti_step *steps = dti_context_take(ctx, ((size_t)n + 1) * sizeof *steps);
    const dt_spec **sources = dti_context_take(ctx, ((size_t)n + 1) * sizeof *sources);
    dti_room room;
    cut_dims(target, &room);
    const dti_holding *to = dti_holding_freeze(&room.holding, &ctx->arena);
    if (!plan || !steps || !sources || !to) return NULL;
    *plan = (dt_plan){ .source = n ? parts->source : target, .target = target, .mapped = true, .from = to, .to = to,
                       .sources = sources,
                       .steps = steps, .step_count = n, .multiply = 1, .divide = 1,
                       .topology = dti_topology_get(ctx) };
    for (int i = 0; i < n; i++) sources[i] = parts[i].source;
    for (int i = 0; i < n; i++)
        if (!make_part(ctx, target, &parts[i], to, &steps[i])) return NULL;
    return plan->topology ? plan : NULL;
}

/* ---- recalled ---------------------------------------------------------------------------------------------------- */

typedef struct asked { const dt_spec *target; const dti_part *parts; int n; } asked;

static uint64_t hash_of(const asked *a)
{
    uint64_t hash = dti_hash_mix((uint64_t)(uintptr_t)a->target, (uint64_t)a->n);
    for (int i = 0; i < a->n; i++) {
        hash = dti_hash_mix(hash, (uint64_t)(uintptr_t)a->parts[i].source);
        for (int d = 0; d < a->target->shape.n; d++) {
            const dti_map *map = &a->parts[i].maps[d];
            hash = dti_hash_mix(dti_hash_mix(hash, (uint64_t)map->lo), (uint64_t)map->hi);
            hash = dti_hash_mix(dti_hash_mix(hash, (uint64_t)map->shift), (uint64_t)dti_map_step(map));
        }
    }
    return hash;
}

static bool is_made_of(const dt_plan *plan, const void *arg)
{
    const asked *a = arg;
    bool same = plan->mapped && plan->target == a->target && plan->step_count == a->n;
    for (int i = 0; i < a->n && same; i++) {
        same = plan->sources[i] == a->parts[i].source;
        for (int d = 0; d < a->target->shape.n; d++) {
            const dti_map *x = &a->parts[i].maps[d], *y = &plan->steps[i].maps[d];
            same &= x->lo == y->lo && x->hi == y->hi && x->shift == y->shift && dti_map_step(x) == dti_map_step(y);
        }
    }
    return same;
}

const dt_plan *dti_plan_mapped(const dt_spec *target, const dti_part *parts, int n)
{
    if (!target || dti_failed(target->mesh->ctx) || !check_parts(target, parts, n)) return NULL;
    dt_context *ctx = target->mesh->ctx;
    asked a = { target, parts, n };
    uint64_t hash = hash_of(&a);
    const dt_plan *found = dti_plan_kept(ctx, hash, is_made_of, &a);
    if (found) return found;
    dt_plan *plan = new_plan(ctx, target, parts, n);
    if (!plan && !dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "no memory for a plan of %s", dt_spec_text(target));
    if (!plan || !dti_plan_keep(ctx, hash, plan)) return NULL;
    dti_plan_notify(plan, DT_EVENT_PLAN);
    return plan;
}
