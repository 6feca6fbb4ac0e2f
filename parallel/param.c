/* SPDX-License-Identifier: Apache-2.0
 *
 * From what was said of a parameter to its specs. A base is written with its units as factors of their own, so that
 * S(0) cuts between units; in normal form they are gone where that makes no difference. */
#include "parallel/param.h"

#include <stdio.h>
#include <string.h>

#include "mesh/mesh.h"
#include "placements/spec.h"

/* ---- units ------------------------------------------------------------------------------------------------------- */

static int64_t unit_of(const dti_param *param, int dim)
{
    return dim == 0 ? param->unit : dim == 1 ? param->in_unit : 1;
}

/* A factor with what splits it, behind the first f of a form. Returns how many there are then. */
static int add_factor(dti_form *to, int f, int64_t size, const dti_form *from, int factor)
{
    int at = to->split_first[f];
    to->size[f] = size;
    for (int i = from->split_first[factor]; i < from->split_first[factor + 1]; i++) to->split[at++] = from->split[i];
    to->split_first[f + 1] = (int8_t)at;
    return f + 1;
}

/* A form with the units of dims 0 and 1 as factors: (8 32) for 256. */
static void with_units(const dti_param *param, const dti_form *from, dti_form *to)
{
    int n = 0;
    memset(to, 0, sizeof *to);
    to->dtype = from->dtype;
    memcpy(to->partial, from->partial, sizeof to->partial);
    for (int d = 0; d < from->dim_count; d++) {
        int first = from->factor_first[d], end = from->factor_first[d + 1];
        int64_t unit = unit_of(param, d);
        bool whole = end - first == 1 && unit > 1;
        for (int f = first; f < end; f++) n = add_factor(to, n, whole ? from->size[f] / unit : from->size[f], from, f);
        if (whole) {
            to->size[n] = unit;
            to->split_first[n + 1] = to->split_first[n];
            n++;
        }
        to->factor_first[++to->dim_count] = n;
    }
}

/* ---- fewer units than ranks -------------------------------------------------------------------------------------- */

typedef struct overflow { int mesh_dim, outer; } overflow; /* outer: ranks that differ; others hold copies           */

static int largest_divisor(int n, int64_t most)
{
    int k = 1;
    for (int i = 2; i <= n; i++)
        if (n % i == 0 && i <= most) k = i;
    return k;
}

/* The first mesh dim that would leave ranks without a unit. false: none. */
static bool find_overflow(const dti_param *param, const dti_form *form, const dt_mesh *mesh, overflow *found)
{
    for (int d = 0; d < form->dim_count && d < 2; d++) {
        int f = form->factor_first[d];
        int64_t pieces = 1;
        if (unit_of(param, d) == 1) continue;
        for (int i = form->split_first[f]; i < form->split_first[f + 1]; i++) {
            int size = mesh->dims[form->split[i]].size;
            pieces *= size;
            if (pieces <= form->size[f]) continue;
            *found = (overflow){ form->split[i], largest_divisor(size, form->size[f] / (pieces / size)) };
            return true;
        }
    }
    return false;
}

static void remove_split(dti_form *form, int mesh_dim)
{
    int from = 0, at = 0;
    for (int f = 0; f < form->factor_first[form->dim_count]; f++) {
        for (; from < form->split_first[f + 1]; from++)
            if (form->split[from] != mesh_dim) form->split[at++] = form->split[from];
        form->split_first[f + 1] = (int8_t)at;
    }
    while (at < from) form->split[at++] = 0;
}

/* The same placements where a mesh dim is two, the first of which stands for it. */
static void shift_dims(dti_form *form, const dt_mesh *mesh, int mesh_dim)
{
    int splits = form->split_first[form->factor_first[form->dim_count]];
    for (int i = 0; i < splits; i++) form->split[i] = (int8_t)(form->split[i] + (form->split[i] > mesh_dim));
    for (int m = mesh->dim_count - 1; m > mesh_dim + 1; m--) form->partial[m] = form->partial[m - 1];
    form->partial[mesh_dim + 1] = 0;
}

/* Units on the outer part of a mesh dim, copies along the inner one. NULL: the error. */
static dt_mesh *split_mesh(dti_form *form, dt_mesh *mesh, const overflow *o)
{
    char text[2 * DT_MAX_TEXT + 64];
    const dti_mesh_dim *dim = &mesh->dims[o->mesh_dim];
    if (o->outer == 1) return remove_split(form, o->mesh_dim), mesh;
    snprintf(text, sizeof text, "%s.0=%d,%s.1=%d", dim->name, o->outer, dim->name, dim->size / o->outer);
    dt_mesh *view = dt_mesh_split(mesh, dim->name, text);
    if (view) shift_dims(form, view, o->mesh_dim);
    return view;
}

/* A base, on a view of the mesh where its units ask for that. NULL: the error. */
static const dt_spec *lay(const dti_param *param, const dt_spec *base)
{
    dti_form form;
    overflow o;
    dt_mesh *mesh = base->mesh;
    with_units(param, &base->form, &form);
    while (mesh && find_overflow(param, &form, mesh, &o)) mesh = split_mesh(&form, mesh, &o);
    return mesh ? dti_spec_intern(mesh, &form) : NULL;
}

int dti_param_outer(const dti_param *param, const char *dim)
{
    dti_form form;
    overflow o;
    if (!param->base) return 0;
    const dt_mesh *mesh = param->base->mesh;
    with_units(param, &param->base->form, &form);
    while (find_overflow(param, &form, mesh, &o)) {
        if (strcmp(mesh->dims[o.mesh_dim].name, dim) == 0) return o.outer;
        remove_split(&form, o.mesh_dim);
    }
    return 0;
}

/* ---- bases ------------------------------------------------------------------------------------------------------- */

static const dt_spec *base_of(const dti_param *param) { return param->base ? param->base : param->tensor->spec; }

const dt_spec *dti_param_spec(const dti_param *param, const char *placements, dt_dtype dtype)
{
    const dt_spec *base = base_of(param);
    dti_form as_it_is, form;
    with_units(param, &base->form, &as_it_is);
    form = as_it_is;
    if (dtype) form.dtype = (int32_t)dtype;
    memset(form.split, 0, sizeof form.split);
    memset(form.split_first, 0, sizeof form.split_first);
    memset(form.partial, 0, sizeof form.partial);
    return dti_spec_place(base->mesh, &as_it_is, placements ? placements : "", &form);
}

/* ---- fully sharded ----------------------------------------------------------------------------------------------- */

static int64_t up(int64_t n, int64_t pieces) { return (n + pieces - 1) / pieces; }

/* Indices of dim 0 in the largest piece, where `more` pieces are made of one of its factors. */
static int64_t largest_piece(const dti_form *form, const dt_mesh *mesh, int factor, int more)
{
    int64_t n = 1;
    for (int f = form->factor_first[0]; f < form->factor_first[1]; f++)
        n *= up(form->size[f], (int64_t)dti_form_pieces(form, mesh, f) * (f == factor ? more : 1));
    return n;
}

static void insert_split(dti_form *form, int factor, int mesh_dim)
{
    int at = form->split_first[factor + 1], factors = form->factor_first[form->dim_count];
    memmove(&form->split[at + 1], &form->split[at], (size_t)(form->split_first[factors] - at) * sizeof form->split[0]);
    form->split[at] = (int8_t)mesh_dim;
    for (int f = factor + 1; f <= factors; f++) form->split_first[f]++;
}

/* Dim 0 split by one mesh dim more, behind what splits it, in the factor that gives the smallest pieces. */
static const dt_spec *in_pieces(const dt_spec *laid, const char *dim)
{
    int m = dti_mesh_dim_index(laid->mesh, (dti_word){ dim, (int)strlen(dim) });
    dti_form form = laid->form;
    if (m < 0 || dti_form_place(&form, m) != DTI_PLACE_R) {
        dti_fail(laid->mesh->ctx, DT_ERR_PLACEMENT, "dt_fully_shard: expected R along %s, got %s on %s", dim,
                 dt_spec_text(laid), dt_mesh_text(laid->mesh));
        return NULL;
    }
    int size = laid->mesh->dims[m].size, best = form.factor_first[0];
    if (form.dim_count == 0 || size == 1) return laid;
    for (int f = best + 1; f < form.factor_first[1]; f++)
        if (largest_piece(&form, laid->mesh, f, size) <= largest_piece(&form, laid->mesh, best, size)) best = f;
    insert_split(&form, best, m);
    return dti_spec_intern(laid->mesh, &form);
}

/* What follows of what was said. */
typedef struct derived { const dt_spec *stored, *used, *grad, *state; } derived;

/* false: the error. */
static bool work_out(const dti_param *param, const dti_shard *shard, derived *out)
{
    const dt_spec *laid = lay(param, base_of(param));
    if (!laid) return false;
    *out = (derived){ .stored = laid, .used = laid };
    if (param->by_hand) out->used = lay(param, param->by_hand);
    else if (shard->dim) {
        const dt_spec *pieces = in_pieces(laid, shard->dim);
        bool whole = shard->zero == 1 || shard->zero == 2;
        out->used = dti_spec_as_dtype(laid, shard->compute);
        if (whole) out->state = pieces;
        else out->stored = pieces;
        if (shard->zero == 2) out->grad = pieces;
        if (!pieces) return false;
    }
    return out->used && !dti_failed(param->tensor->ctx);
}

static const dti_shard *shard_of(const dti_param *param)
{
    static const dti_shard none = { 0 };
    return param->group ? &param->group->shard : &none;
}

bool dti_param_may(const dti_param *param, const dti_shard *shard)
{
    derived d;
    return work_out(param, shard ? shard : shard_of(param), &d);
}

bool dti_param_derive(dti_param *param)
{
    derived d;
    if (!work_out(param, shard_of(param), &d)) return false;
    param->base = base_of(param);
    dti_param_store(param, d.stored);
    param->used = d.used == d.stored ? NULL : d.used;
    param->grad = d.grad;
    param->state = d.state;
    return true;
}
