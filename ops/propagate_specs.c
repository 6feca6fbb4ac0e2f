/* SPDX-License-Identifier: Apache-2.0
 *
 * The specs of an assignment: in which order mesh dims split a factor, what operands become, what results are. */
#include "ops/assigning.h"

#include <string.h>

typedef struct split_order { int count; int8_t dims[DT_MAX_MESH_DIMS]; } split_order;

static void add_once(split_order *order, int m)
{
    for (int i = 0; i < order->count; i++)
        if (order->dims[i] == m) return;
    order->dims[order->count++] = (int8_t)m;
}

/* Are two factors one, or of dims that an index map leads between? */
static bool is_one(const dti_assigning *s, int a, int b)
{
    const dti_bound *bound = &s->out->bound;
    return a == b || (a >= 0 && b >= 0 && bound->factor[a].letter != bound->factor[b].letter
                      && dti_bound_alike(bound, bound->factor[a].letter, bound->factor[b].letter));
}

static bool splits(const dti_assigning *s, const dti_strategy *strategy, int factor)
{
    bool split = strategy->fresh.what == DTI_PLACE_S && strategy->fresh.factor == factor;
    for (int i = 0; i < s->rule->operand_count; i++)
        split |= strategy->operand[i].what == DTI_PLACE_S && is_one(s, strategy->operand[i].factor, factor);
    return split;
}

/* Those of a factor's mesh dims that split an operand there, too, in its order. */
static void add_own(const dti_assigning *s, const dti_strategy *along, int operand, int factor, split_order *order)
{
    const dti_form *form = &s->ask->operand[operand]->form;
    for (int k = 0; k < form->split_first[form->factor_first[form->dim_count]]; k++) {
        int m = form->split[k];
        if (is_one(s, s->given[operand][m].factor, factor) && splits(s, &along[m], factor))
            add_once(order, m);
    }
}

/* The mesh dims that split a bound factor, in order: as an operand has two of them, as operands have one, the rest. */
static split_order order_of(const dti_assigning *s, const dti_strategy *along, int factor)
{
    split_order order = { 0 };
    int operands = s->rule->operand_count;
    for (int i = 0; i < operands && order.count < 2; i++) {
        order.count = 0;
        if (dti_assigning_has(s, i)) add_own(s, along, i, factor, &order);
    }
    if (order.count < 2) order.count = 0;
    for (int i = 0; i < operands; i++)
        if (dti_assigning_has(s, i)) add_own(s, along, i, factor, &order);
    for (int m = 0; m < s->mesh->dim_count; m++)
        if (splits(s, &along[m], factor)) add_once(&order, m);
    return order;
}

/* The mesh dims that split a tensor's factor, in order. */
static split_order splits_of(const dti_assigning *s, const dti_strategy *along, const dti_place *places, int factor)
{
    split_order all, own = { 0 };
    for (int m = 0; m < s->mesh->dim_count; m++)
        if (factor >= 0 && places[m].what == DTI_PLACE_S && places[m].factor == factor) add_once(&own, m);
    if (own.count < 2) return own;
    all = order_of(s, along, factor);
    own.count = 0;
    for (int k = 0; k < all.count; k++) {
        dti_place place = places[all.dims[k]];
        if (place.what == DTI_PLACE_S && place.factor == factor) add_once(&own, all.dims[k]);
    }
    return own;
}

/* The spec of a tensor with these dims, placed so along each mesh dim. */
static const dt_spec *spec_of(const dti_assigning *s, const dti_strategy *along, const dti_place *places,
                              dti_bound_dims *dims, dt_dtype dtype)
{
    dti_form *form = &dims->form;
    int count = 0;
    form->dtype = (int32_t)dtype;
    for (int f = 0; f < form->factor_first[form->dim_count]; f++) {
        form->split_first[f] = (int8_t)count;
        split_order order = splits_of(s, along, places, dims->factor[f]);
        for (int k = 0; k < order.count; k++) form->split[count++] = order.dims[k];
        form->split_first[f + 1] = (int8_t)count;
    }
    for (int m = 0; m < s->mesh->dim_count; m++)
        form->partial[m] = places[m].what == DTI_PLACE_P ? places[m].kind : 0;
    return dti_spec_intern(s->out->mesh, form);
}

static uint32_t dims_that_split(const dti_form *form, int d)
{
    uint32_t dims = 0;
    for (int k = form->split_first[form->factor_first[d]]; k < form->split_first[form->factor_first[d + 1]]; k++)
        dims |= UINT32_C(1) << form->split[k];
    return dims;
}

/* A dim that goes through an index map stays cut as it is given, where the same mesh dims are to split it. */
static const dt_spec *keep_cuts(const dti_assigning *s, int i, const dti_bound_dims *dims, const dt_spec *used)
{
    const dti_form *given = &s->ask->operand[i]->form;
    dti_form form = { .dtype = used->form.dtype };
    bool kept = false;
    memcpy(form.partial, used->form.partial, sizeof form.partial);
    if (given->factor_first[given->dim_count] + used->form.factor_first[given->dim_count] > DT_MAX_FACTORS) return used;
    for (int d = 0; d < given->dim_count; d++) {
        bool keeps = dti_assigning_mapped(s, dims, d) >= 0
            && dims_that_split(given, d) == dims_that_split(&used->form, d);
        dti_form_add_dim(&form, keeps ? given : &used->form, d);
        kept |= keeps;
    }
    return kept ? dti_spec_intern(s->out->mesh, &form) : used;
}

static bool make_specs(const dti_assigning *s, uint64_t whole, dti_answer *answer)
{
    dti_place places[DT_MAX_MESH_DIMS];
    dti_bound_dims dims;
    for (int i = 0; i < s->rule->operand_count; i++) {
        if (!dti_assigning_has(s, i)) continue;
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = dti_place_used(&answer->along[m], i);
        dti_bound_operand(s->rule, &s->out->bound, i, whole, &dims);
        answer->used[i] = spec_of(s, answer->along, places, &dims, (dt_dtype)s->ask->operand[i]->form.dtype);
        if (answer->used[i]) answer->used[i] = keep_cuts(s, i, &dims, answer->used[i]);
        if (!answer->used[i]) return false;
    }
    for (int r = 0; r < s->rule->result_count; r++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = answer->along[m].result[r];
        dti_bound_result(s->rule, &s->out->bound, r, whole, &dims);
        answer->result[r] = spec_of(s, answer->along, places, &dims, dti_assigning_dtype(s, r));
        if (!answer->result[r]) return false;
    }
    return true;
}

bool dti_assigning_answer(dti_assigning *s, int i)
{
    dti_answer *answer = &s->out->answer[i];
    uint64_t whole;
    memset(answer, 0, sizeof *answer);
    memcpy(s->chosen, s->best[i].chosen, sizeof s->chosen);
    dti_assigning_agrees(s, &whole);
    answer->bytes = s->best[i].bytes;
    answer->ns = s->best[i].ns;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        answer->along[m] = s->dim[m].strategy[s->chosen[m]];
        if (answer->along[m].lift_number) answer->number_dims |= UINT32_C(1) << m;
        if (answer->along[m].broken) answer->broken_dims |= UINT32_C(1) << m;
    }
    return make_specs(s, whole, answer);
}
