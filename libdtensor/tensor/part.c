/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's part as runs of elements that are neighbours in the whole tensor: what makers, checksums and gathering go
 * by. */
#include <string.h>

#include "core/number.h"
#include "tensor/tensor.h"

typedef struct walk {
    const dt_spec *spec;
    dti_set sets[DT_MAX_DIMS];
    int64_t inner[DT_MAX_DIMS];    /* elements of the whole tensor behind one index of a dim                       */
    int last;                      /* dims behind this one are whole: their indices make longer runs               */
    int64_t local;
    dti_run_fn fn;
    void *arg;
} walk;

static void walk_dim(walk *w, int dim, int64_t global)
{
    const dti_set *set = &w->sets[dim];
    for (int i = 0; i < set->n; i++) {
        const dti_interval *v = &dti_set_at(set)[i];
        if (dim == w->last) {
            int64_t count = (v->hi - v->lo) * w->inner[dim];
            w->fn(&(dti_part_run){ global + v->lo * w->inner[dim], w->local, count }, w->arg);
            w->local += count;
            continue;
        }
        for (int64_t index = v->lo; index < v->hi; index++) walk_dim(w, dim + 1, global + index * w->inner[dim]);
    }
}

static bool is_whole(const dti_set *set, int64_t n) { return set->n == 1 && dti_set_count(set) == n; }

bool dti_part_runs(const dt_spec *spec, int mesh_rank, dti_run_fn fn, void *arg)
{
    int n = spec->shape.n;
    if (dti_part_count(spec, mesh_rank) == 0) return true;
    if (n == 0) {
        fn(&(dti_part_run){ 0, 0, 1 }, arg);
        return true;
    }
    walk w = { .spec = spec, .fn = fn, .arg = arg, .last = n - 1 };
    bool lost = false;
    int64_t inner = 1;
    for (int d = n - 1; d >= 0; d--) {
        w.inner[d] = inner;
        inner *= spec->shape.dim[d];
        dti_set_init(&w.sets[d]);
        dti_spec_set(spec, d, mesh_rank, &w.sets[d]);
        lost |= w.sets[d].lost;
    }
    while (w.last > 0 && is_whole(&w.sets[w.last], spec->shape.dim[w.last])) w.last--;
    if (!lost) walk_dim(&w, 0, 0);
    for (int d = 0; d < n; d++) dti_set_fini(&w.sets[d]);
    if (lost) dti_fail(spec->mesh->ctx, DT_ERR_MEMORY, "no memory for the part of %s", dt_spec_text(spec));
    return !lost;
}

/* ---- runs of a box ----------------------------------------------------------------------------------------------- */

typedef struct box_walk {
    const dt_box *box;
    dti_set sets[DT_MAX_DIMS];
    int64_t box_inner[DT_MAX_DIMS], part_inner[DT_MAX_DIMS]; /* elements of box and part behind one index of a dim */
    int last;                      /* dims behind this one are the same in box and part                            */
    dti_run_fn fn;
    void *arg;
} box_walk;

static void walk_box(box_walk *w, int dim, int64_t in_box, int64_t in_part)
{
    int64_t before = 0, low = w->box->lo[dim], high = w->box->hi[dim];
    for (int i = 0; i < w->sets[dim].n; i++) {
        const dti_interval *v = &dti_set_at(&w->sets[dim])[i];
        int64_t lo = v->lo > low ? v->lo : low, hi = v->hi < high ? v->hi : high;
        int64_t box_at = in_box + (lo - low) * w->box_inner[dim];
        int64_t part_at = in_part + (before + lo - v->lo) * w->part_inner[dim];
        if (dim == w->last && lo < hi)
            w->fn(&(dti_part_run){ box_at, part_at, (hi - lo) * w->part_inner[dim] }, w->arg);
        for (int64_t index = lo; dim < w->last && index < hi; index++) {
            walk_box(w, dim + 1, box_at, part_at);
            box_at += w->box_inner[dim];
            part_at += w->part_inner[dim];
        }
        before += v->hi - v->lo;
    }
}

static bool is_all_of(const dti_set *set, int64_t lo, int64_t hi)
{
    return set->n == 1 && dti_set_at(set)->lo == lo && dti_set_at(set)->hi == hi;
}

bool dti_part_box_runs(const dt_spec *spec, int mesh_rank, const dt_box *box, dti_run_fn fn, void *arg)
{
    int n = spec->shape.n;
    if (dti_part_count(spec, mesh_rank) == 0) return true;
    if (n == 0) {
        fn(&(dti_part_run){ 0, 0, 1 }, arg);
        return true;
    }
    box_walk w = { .box = box, .fn = fn, .arg = arg, .last = n - 1 };
    bool lost = false;
    int64_t box_inner = 1, part_inner = 1;
    for (int d = n - 1; d >= 0; d--) {
        dti_set_init(&w.sets[d]);
        dti_spec_set(spec, d, mesh_rank, &w.sets[d]);
        lost |= w.sets[d].lost;
        w.box_inner[d] = box_inner;
        w.part_inner[d] = part_inner;
        box_inner *= box->hi[d] - box->lo[d];
        part_inner *= dti_set_count(&w.sets[d]);
    }
    while (w.last > 0 && is_all_of(&w.sets[w.last], box->lo[w.last], box->hi[w.last])) w.last--;
    if (!lost) walk_box(&w, 0, 0, 0);
    for (int d = 0; d < n; d++) dti_set_fini(&w.sets[d]);
    if (lost) dti_fail(spec->mesh->ctx, DT_ERR_MEMORY, "no memory for the part of %s", dt_spec_text(spec));
    return !lost;
}

/* ---- what a part has --------------------------------------------------------------------------------------------- */

bool dti_part_is_first(const dt_spec *spec, int mesh_rank)
{
    for (int d = spec->mesh->dim_count - 1; d >= 0; d--) {
        int size = spec->mesh->dims[d].size;
        if (dti_form_split_by(&spec->form, d) < 0 && mesh_rank % size) return false;
        mesh_rank /= size;
    }
    return true;
}

int64_t dti_part_count(const dt_spec *spec, int mesh_rank)
{
    if (mesh_rank < 0) return 0;
    if (mesh_rank == spec->mesh->rank) return spec->local_count;
    dt_shape shape = dt_spec_local_shape(spec, mesh_rank);
    int64_t count = 1;
    for (int d = 0; d < shape.n; d++) count *= shape.dim[d];
    return count;
}

int64_t dti_spec_part_bytes(const dt_spec *spec)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dt_spec_dtype(spec));
    for (int f = 0; f < spec->form.factor_first[spec->form.dim_count]; f++) {
        int pieces = dti_form_pieces(&spec->form, spec->mesh, f);
        bytes *= (spec->form.size[f] + pieces - 1) / pieces;
    }
    return bytes;
}

bool dti_part_new(const dt_spec *spec, dti_storage **storage)
{
    dt_context *ctx = spec->mesh->ctx;
    *storage = NULL;
    if (ctx->dry || spec->mesh->rank < 0) return true;
    *storage = dti_storage_new(ctx, (size_t)spec->local_bytes);
    return *storage != NULL;
}

/* ---- partial values ---------------------------------------------------------------------------------------------- */

bool dti_part_keeps_value(const dt_spec *spec)
{
    const dti_layout *layout = spec->layout;
    int offset = spec->mesh->ctx->rank - layout->base;
    for (int i = 0; i < layout->partial_count; i++) {
        bool parts = layout->kinds[i] == DTI_SUM || layout->kinds[i] == DTI_PROD;
        if (parts && dti_axis_digit(layout->partials[i], offset)) return false;
    }
    return true;
}

void dti_part_identity(const dt_spec *spec, dti_storage *storage)
{
    dt_dtype dtype = dt_spec_dtype(spec);
    bool product = spec->layout->partial_count && spec->layout->kinds[0] == DTI_PROD;
    dti_numbers_identity(dtype, product ? DTI_COMBINE_PROD : DTI_COMBINE_SUM, storage->bytes,
                         (int64_t)(storage->n / dt_dtype_bytes(dtype)));
}
