/* SPDX-License-Identifier: Apache-2.0
 *
 * The normal form. Two neighbour factors A B of one dim are cut as their product A B would be, and become it, where
 *   both are whole;
 *   A's pieces are equal and B is whole;
 *   A's pieces are single elements: then B's cuts follow A's;
 *   B has one element and is whole. */
#include "placements/spec.h"

#include <string.h>

int dti_form_split_by(const dti_form *form, int mesh_dim)
{
    for (int f = 0; f < form->factor_first[form->dim_count]; f++)
        for (int i = form->split_first[f]; i < form->split_first[f + 1]; i++)
            if (form->split[i] == mesh_dim) return f;
    return -1;
}

dti_place_kind dti_form_place(const dti_form *form, int mesh_dim)
{
    if (form->partial[mesh_dim]) return DTI_PLACE_P;
    return dti_form_split_by(form, mesh_dim) < 0 ? DTI_PLACE_R : DTI_PLACE_S;
}

int dti_form_pieces(const dti_form *form, const dt_mesh *mesh, int factor)
{
    int pieces = 1;
    for (int i = form->split_first[factor]; i < form->split_first[factor + 1]; i++)
        pieces *= mesh->dims[form->split[i]].size;
    return pieces;
}

int64_t dti_form_dim(const dti_form *form, int dim)
{
    int64_t size = 1;
    for (int f = form->factor_first[dim]; f < form->factor_first[dim + 1]; f++) size *= form->size[f];
    return size;
}

void dti_form_add_dim(dti_form *form, const dti_form *from, int dim)
{
    int f = form->factor_first[form->dim_count];
    for (int k = from->factor_first[dim]; k < from->factor_first[dim + 1]; k++, f++) {
        int8_t n = form->split_first[f];
        form->size[f] = from->size[k];
        for (int i = from->split_first[k]; i < from->split_first[k + 1]; i++) form->split[n++] = from->split[i];
        form->split_first[f + 1] = n;
    }
    form->factor_first[++form->dim_count] = f;
}

bool dti_form_splits(const dti_form *form, int dim)
{
    return form->split_first[form->factor_first[dim]] < form->split_first[form->factor_first[dim + 1]];
}

static bool merges(int64_t a, int a_pieces, int64_t b, int b_pieces)
{
    if (a == a_pieces) return true;
    return b_pieces == 1 && (a % a_pieces == 0 || b == 1);
}

/* Factor f and f + 1 become f. Their splits already stand one behind the other. */
static void join(dti_form *form, int f, int factors)
{
    form->size[f] *= form->size[f + 1];
    for (int i = f + 1; i < factors; i++) {
        form->size[i] = i + 1 < factors ? form->size[i + 1] : 0;
        form->split_first[i] = form->split_first[i + 1];
    }
    form->split_first[factors] = 0;
    for (int d = 0; d <= form->dim_count; d++) form->factor_first[d] -= form->factor_first[d] > f;
}

void dti_form_normalize(dti_form *form, const dt_mesh *mesh)
{
    for (int d = 0; d < form->dim_count; d++) {
        for (int f = form->factor_first[d]; f + 1 < form->factor_first[d + 1];) {
            bool joined = merges(form->size[f], dti_form_pieces(form, mesh, f),
                                 form->size[f + 1], dti_form_pieces(form, mesh, f + 1));
            if (joined) join(form, f, form->factor_first[form->dim_count]);
            else f++;
        }
    }
}
