/* SPDX-License-Identifier: Apache-2.0
 *
 * How the operands of a call are given: which bound factor each mesh dim splits, or of which kind it is P. */
#include "ops/assigning.h"

int dti_bound_factor_of(const dti_bound *bound, const dti_bound_dims *dims, int first, int end)
{
    int factor = dims->factor[first];
    if (factor < 0 || end == first + 1) return factor < 0 ? DTI_FOREIGN : factor;
    const dti_bound_letter *letter = &bound->letter[bound->factor[factor].letter];
    return factor == letter->first && end - first == letter->count ? letter->whole : DTI_FOREIGN;
}

/* The mesh dims that split one factor of a given form, which is the refined factors first .. end - 1. Where these are
 * of several letters, they were joined because the cuts are the same: mesh dims split the first of them into equal
 * pieces, and when those are single the next. */
static void place_splits(dti_assigning *s, int i, int f, const dti_bound_dims *dims, int first, int end)
{
    const dti_form *form = &s->ask->operand[i]->form;
    int factor = dti_bound_factor_of(&s->out->bound, dims, first, end), at = first;
    int64_t pieces = 1;
    for (int k = form->split_first[f]; k < form->split_first[f + 1]; k++) {
        int m = form->split[k], own = factor;
        if (factor == DTI_FOREIGN) {
            for (; at < end - 1 && dims->form.size[at] == pieces; at++) pieces = 1;
            pieces *= s->mesh->dims[m].size;
            bool equal = at == end - 1 || dims->form.size[at] % pieces == 0;
            own = equal && dims->factor[at] >= 0 ? dims->factor[at] : DTI_FOREIGN;
        }
        s->given[i][m] = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)own };
    }
}

static void place_foreign(dti_assigning *s, int i, int f)
{
    const dti_form *form = &s->ask->operand[i]->form;
    for (int k = form->split_first[f]; k < form->split_first[f + 1]; k++)
        s->given[i][form->split[k]] = (dti_place){ .what = DTI_PLACE_S, .factor = DTI_FOREIGN };
}

int dti_assigning_mapped(const dti_assigning *s, const dti_bound_dims *dims, int d)
{
    int first = dims->form.factor_first[d], factor = dims->factor[first];
    if (dims->form.factor_first[d + 1] - first != 1 || factor < 0) return -1;
    return s->out->bound.letter[s->out->bound.factor[factor].letter].map >= 0 ? factor : -1;
}

/* However the dim is cut, the map cuts it anew. */
static void place_mapped(dti_assigning *s, int i, int d, int factor)
{
    const dti_form *form = &s->ask->operand[i]->form;
    int first = form->split_first[form->factor_first[d]], end = form->split_first[form->factor_first[d + 1]];
    for (int k = first; k < end; k++)
        s->given[i][form->split[k]] = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)factor };
}

/* Each factor of a given dim is one or several of the refined ones. One that is cut otherwise is none, and nothing
 * behind it is told, either. */
static void place_dim(dti_assigning *s, int i, const dti_bound_dims *dims, int d)
{
    const dti_form *form = &s->ask->operand[i]->form;
    int at = dims->form.factor_first[d], end = dims->form.factor_first[d + 1];
    for (int f = form->factor_first[d]; f < form->factor_first[d + 1]; f++) {
        int first = at;
        int64_t size = 1, due = form->size[f];
        while (at < end && size != due && (size < due || due == 0)) size *= dims->form.size[at++];
        if (at == first && at < end && due == 1) size = dims->form.size[at++];
        if (size == due && at > first) {
            place_splits(s, i, f, dims, first, at);
            continue;
        }
        place_foreign(s, i, f);
        at = end;
    }
}

void dti_assigning_place(dti_assigning *s, int i)
{
    const dti_form *form = &s->ask->operand[i]->form;
    dti_bound_dims dims;
    dti_bound_operand(s->rule, &s->out->bound, i, 0, &dims);
    s->elements[i] = 1;
    s->element_bytes[i] = (int64_t)dt_dtype_bytes((dt_dtype)form->dtype);
    for (int d = 0; d < form->dim_count; d++) {
        int mapped = dti_assigning_mapped(s, &dims, d);
        s->elements[i] *= dti_form_dim(form, d);
        if (mapped >= 0) place_mapped(s, i, d, mapped);
        else place_dim(s, i, &dims, d);
    }
    for (int m = 0; m < s->mesh->dim_count; m++)
        if (form->partial[m]) s->given[i][m] = (dti_place){ .what = DTI_PLACE_P, .kind = form->partial[m] };
}
