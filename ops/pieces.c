/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of a dim, and specs with other factors in its place. */
#include "ops/pieces.h"

#include <string.h>

#include "placements/spec.h"
#include "tensor/tensor.h"

dt_tensor *dti_piece_of(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return NULL;
    dt_mesh *one = dti_mesh_of_rank(x->ctx, x->ctx->rank);
    dt_shape shape = dt_spec_local_shape(x->spec, x->spec->mesh->rank);
    const dt_spec *spec = one ? dt_spec_create(one, dt_spec_dtype(x->spec), shape, NULL) : NULL;
    return spec ? dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL) : NULL;
}

dt_tensor *dti_of_piece(dt_tensor *piece, const dt_spec *spec)
{
    if (!spec || !dti_tensor_ok(piece)) return NULL;
    return dti_tensor_new(spec, piece->storage ? dti_storage_retain(piece->storage) : NULL);
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

/* Dims and factors are written one behind the other. */
static void begin_dim(dti_form *form) { form->factor_first[form->dim_count + 1] = form->factor_first[form->dim_count]; }

static void add_factor(dti_form *form, int64_t size)
{
    int f = form->factor_first[form->dim_count + 1]++;
    form->size[f] = size;
    form->split_first[f + 1] = form->split_first[f];
}

static void add_split(dti_form *form, int mesh_dim)
{
    form->split[form->split_first[form->factor_first[form->dim_count + 1]]++] = (int8_t)mesh_dim;
}

static void copy_splits(const dti_form *from, int f, dti_form *to)
{
    for (int s = from->split_first[f]; s < from->split_first[f + 1]; s++) add_split(to, from->split[s]);
}

static void copy_dim(const dti_form *from, int dim, dti_form *to)
{
    begin_dim(to);
    for (int f = from->factor_first[dim]; f < from->factor_first[dim + 1]; f++) {
        add_factor(to, from->size[f]);
        copy_splits(from, f, to);
    }
    to->dim_count++;
}

static dti_form empty(const dti_form *like, dt_dtype dtype)
{
    dti_form form;
    memset(&form, 0, sizeof form);
    form.dtype = (int32_t)dtype;
    memcpy(form.partial, like->partial, sizeof form.partial);
    return form;
}

/* ---- specs ------------------------------------------------------------------------------------------------------- */

static int pieces(const dt_spec *spec, int dim)
{
    int n = 1;
    for (int f = spec->form.factor_first[dim]; f < spec->form.factor_first[dim + 1]; f++)
        n *= dti_form_pieces(&spec->form, spec->mesh, f);
    return n;
}

const dt_spec *dti_spec_of_pieces(const dt_spec *like, int dim, int64_t each, dt_dtype dtype)
{
    dti_form form = empty(&like->form, dtype);
    for (int d = 0; d < like->form.dim_count; d++) {
        if (d != dim) {
            copy_dim(&like->form, d, &form);
            continue;
        }
        begin_dim(&form);
        add_factor(&form, pieces(like, dim));
        for (int f = like->form.factor_first[dim]; f < like->form.factor_first[dim + 1]; f++)
            copy_splits(&like->form, f, &form);
        add_factor(&form, each);
        form.dim_count++;
    }
    return dti_spec_intern(like->mesh, &form);
}

int64_t dti_spec_largest_piece(const dt_spec *spec, int dim)
{
    int64_t most = 1;
    for (int f = spec->form.factor_first[dim]; f < spec->form.factor_first[dim + 1]; f++) {
        int64_t n = dti_form_pieces(&spec->form, spec->mesh, f);
        most *= spec->form.size[f] / n + (spec->form.size[f] % n != 0);
    }
    return most;
}

int dti_spec_factors(const dt_spec *spec, int dim, int64_t *first)
{
    *first = spec->form.size[spec->form.factor_first[dim]];
    return spec->form.factor_first[dim + 1] - spec->form.factor_first[dim];
}

const dt_spec *dti_spec_of_dim(const dt_spec *like, int dim)
{
    dti_form form = empty(&like->form, DT_I64);
    memset(form.partial, 0, sizeof form.partial);
    copy_dim(&like->form, dim, &form);
    return dti_spec_intern(like->mesh, &form);
}

/* The factor of another dim of which every piece has the most elements, at least 2; -1: none. */
static int roomiest(const dt_spec *like, int dim)
{
    int best = -1;
    int64_t most = 1;
    for (int f = 0; f < like->form.factor_first[like->form.dim_count]; f++) {
        if (f >= like->form.factor_first[dim] && f < like->form.factor_first[dim + 1]) continue;
        int64_t each = like->form.size[f] / dti_form_pieces(&like->form, like->mesh, f);
        if (each <= most) continue;
        most = each;
        best = f;
    }
    return best;
}

const dt_spec *dti_spec_aside(const dt_spec *like, int dim)
{
    const dti_form *from = &like->form;
    dti_form form = empty(from, (dt_dtype)from->dtype);
    int room = roomiest(like, dim);
    for (int d = 0; d < from->dim_count; d++) {
        begin_dim(&form);
        for (int f = from->factor_first[d]; f < from->factor_first[d + 1]; f++) {
            add_factor(&form, from->size[f]);
            if (d != dim) copy_splits(from, f, &form);
            for (int g = from->factor_first[dim]; f == room && g < from->factor_first[dim + 1]; g++)
                copy_splits(from, g, &form);
        }
        form.dim_count++;
    }
    return dti_spec_intern(like->mesh, &form);
}
