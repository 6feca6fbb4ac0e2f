/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements as numbers, and combinations as numbers with a digit per operand and mesh dim. */
#include "placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "suite.h"

enum { MESH_DIMS = 2, MAX_STRATEGIES = 64 };

typedef struct place {                 /* of one operand along one mesh dim                                        */
    int8_t what, kind;                 /* a dti_place_kind; of P                                                   */
    int8_t dim, part;                  /* of S: of which factor                                                    */
    int8_t prime;                      /* the dim is (prime, rest), 0: as it is                                    */
} place;

typedef struct place_list { int count; place at[PLACED_MOST]; } place_list;

/* ---- of one operand ---------------------------------------------------------------------------------------------- */

static void add(place_list *list, place p)
{
    if (list->count < PLACED_MOST) list->at[list->count++] = p;
}

/* A dim's own factors; the dim as two factors, with each prime that leaves more than 1. */
static void add_splits(const dti_form *form, int d, place_list *list)
{
    static const int8_t primes[] = { 2, 3 };
    int factors = form->factor_first[d + 1] - form->factor_first[d];
    int64_t size = form->size[form->factor_first[d]];
    for (int8_t f = 0; f < factors; f++) add(list, (place){ .what = DTI_PLACE_S, .dim = (int8_t)d, .part = f });
    for (int i = 0; i < DT_COUNT(primes) && factors == 1; i++)
        for (int8_t part = 0; part < 2 && size > primes[i] && size % primes[i] == 0; part++)
            add(list, (place){ .what = DTI_PLACE_S, .dim = (int8_t)d, .part = part, .prime = primes[i] });
}

static place_list places_of(const dti_form *form)
{
    place_list list = { 1, { { 0 } } };
    if (!form->dtype) return list;
    for (int d = 0; d < form->dim_count; d++) add_splits(form, d, &list);
    for (int8_t kind = DTI_SUM; kind < DTI_PARTIAL_COUNT; kind++)
        add(&list, (place){ .what = DTI_PLACE_P, .kind = kind });
    return list;
}

/* ---- specs ------------------------------------------------------------------------------------------------------- */

/* How a dim is taken apart by those who split it; -1: in two ways. */
static int prime_of(const place *along, int mesh_dims, int d)
{
    int prime = 0;
    for (int m = 0; m < mesh_dims; m++) {
        if (along[m].what != DTI_PLACE_S || along[m].dim != d || !along[m].prime) continue;
        if (prime && prime != along[m].prime) return -1;
        prime = along[m].prime;
    }
    return prime;
}

static void put_dim(const dti_form *from, const place *along, int mesh_dims, int d, bool backward, dti_form *form)
{
    int prime = prime_of(along, mesh_dims, d), at = form->factor_first[d];
    for (int f = from->factor_first[d]; f < from->factor_first[d + 1]; f++) form->size[at++] = from->size[f];
    if (prime) {
        form->size[at] = form->size[at - 1] / prime;
        form->size[at++ - 1] = prime;
    }
    form->factor_first[d + 1] = at;
    for (int f = form->factor_first[d]; f < at; f++) {
        int8_t n = form->split_first[f];
        for (int k = 0; k < mesh_dims; k++) {
            int m = backward ? mesh_dims - 1 - k : k;
            if (along[m].what == DTI_PLACE_S && along[m].dim == d && along[m].part == f - form->factor_first[d])
                form->split[n++] = (int8_t)m;
        }
        form->split_first[f + 1] = n;
    }
}

static bool partial_fits(const place *along, int mesh_dims, dt_dtype dtype)
{
    int kind = 0;
    for (int m = 0; m < mesh_dims; m++) {
        if (along[m].what != DTI_PLACE_P) continue;
        if (kind && !dti_partial_mixes((dti_partial)kind, (dti_partial)along[m].kind)) return false;
        if (kind && kind != along[m].kind && dtype >= DT_I64) return false; /* averages of integers are no sums      */
        kind = along[m].kind;
    }
    return true;
}

/* NULL: there is no such spec. */
static const dt_spec *spec_of(dt_mesh *mesh, const dti_form *from, const place *along, bool backward)
{
    int mesh_dims = dt_mesh_dim_count(mesh);
    dti_form form;
    memset(&form, 0, sizeof form);
    form.dtype = from->dtype;
    form.dim_count = from->dim_count;
    if (!partial_fits(along, mesh_dims, (dt_dtype)form.dtype)) return NULL;
    for (int d = 0; d < from->dim_count; d++) {
        if (prime_of(along, mesh_dims, d) < 0) return NULL;
        put_dim(from, along, mesh_dims, d, backward, &form);
    }
    for (int m = 0; m < mesh_dims; m++)
        if (along[m].what == DTI_PLACE_P) form.partial[m] = along[m].kind;
    const dt_spec *spec = dti_spec_intern(mesh, &form);
    return spec && strlen(dt_spec_text(spec)) < PLACED_TEXT ? spec : NULL;
}

/* false: there is no such spec. */
static bool put_spec(dt_mesh *mesh, const dti_form *from, const place *along, bool backward, char *text)
{
    const dt_spec *spec = from->dtype ? spec_of(mesh, from, along, backward) : NULL;
    snprintf(text, PLACED_TEXT, "%s", spec ? dt_spec_text(spec) : "");
    return spec || !from->dtype;
}

/* ---- one operand, one mesh dim ----------------------------------------------------------------------------------- */

static bool is_plain(place p) { return p.what == DTI_PLACE_P ? p.kind == DTI_SUM : !p.prime; }

placed_choice placed_choices(const op_call *call, dt_mesh *mesh, int operand)
{
    placed_choice choice = { 0 };
    place_list places = places_of(&call->form[operand]);
    for (int plain = 1; plain >= 0; plain--) {
        for (int k = 0; k < places.count; k++)
            if (is_plain(places.at[k]) == plain)
                choice.at[choice.count++] = call->form[operand].dtype
                    ? spec_of(mesh, &call->form[operand], &places.at[k], false) : NULL;
        if (plain) choice.plain = choice.count;
    }
    return choice;
}

const dt_spec *placed_alike(const op_call *call, int operand, const dt_spec *other)
{
    dti_form form = other->form;
    form.dtype = call->form[operand].dtype;
    return dti_spec_intern(other->mesh, &form);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

placed *placed_more(placed_list *list)
{
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 256;
        placed *at = realloc(list->at, (size_t)room * sizeof *at);
        if (!expect(at != NULL, "memory")) return NULL;
        list->at = at;
        list->room = room;
    }
    memset(&list->at[list->count], 0, sizeof *list->at);
    return &list->at[list->count++];
}

void placed_free(placed_list *list)
{
    free(list->at);
    *list = (placed_list){ 0 };
}

typedef struct odometer { int count, size[CALL_OPERANDS * MESH_DIMS + 1]; place_list places[CALL_OPERANDS]; } odometer;

static odometer odometer_of(const op_call *call, int mesh_dims)
{
    odometer o = { .count = 0 };
    for (int i = 0; i < call->n; i++) {
        o.places[i] = places_of(&call->form[i]);
        for (int m = 0; m < mesh_dims; m++) o.size[o.count++] = o.places[i].count;
    }
    o.size[o.count++] = mesh_dims;                                     /* mesh dims of one factor both ways        */
    return o;
}

static void put_combination(const op_call *call, dt_mesh *mesh, const odometer *o, const int *digit,
                            placed_list *list)
{
    int mesh_dims = dt_mesh_dim_count(mesh);
    placed *p = placed_more(list);
    for (int i = 0; p && i < call->n; i++) {
        place along[MESH_DIMS];
        for (int m = 0; m < mesh_dims; m++) along[m] = o->places[i].at[digit[i * mesh_dims + m]];
        if (put_spec(mesh, &call->form[i], along, digit[o->count - 1] == 1, p->spec[i])) continue;
        list->count--;
        return;
    }
}

static void draw_combination(const op_call *call, dt_mesh *mesh, const odometer *o, uint64_t seed, placed_list *list)
{
    int digit[CALL_OPERANDS * MESH_DIMS + 1];
    for (int k = 0; k < o->count; k++)
        digit[k] = (int)(dti_hash_mix(seed, (uint64_t)k + 1) % (uint64_t)o->size[k]);
    put_combination(call, mesh, o, digit, list);
}

/* Does it matter in which order mesh dims split? */
static bool is_ordered(const op_call *call, const odometer *o, const int *digit)
{
    int mesh_dims = o->size[o->count - 1];
    for (int i = 0; i < call->n && mesh_dims == 2; i++) {
        const place *a = &o->places[i].at[digit[2 * i]], *b = &o->places[i].at[digit[2 * i + 1]];
        if (a->what == DTI_PLACE_S && b->what == DTI_PLACE_S && a->dim == b->dim && a->part == b->part) return true;
    }
    return false;
}

static void all_combinations(const op_call *call, dt_mesh *mesh, const odometer *o, placed_list *list)
{
    int digit[CALL_OPERANDS * MESH_DIMS + 1] = { 0 }, k;
    do {
        if (!digit[o->count - 1] || is_ordered(call, o, digit)) put_combination(call, mesh, o, digit, list);
        for (k = o->count - 1; k >= 0 && ++digit[k] == o->size[k]; k--) digit[k] = 0;
    } while (k >= 0);
}

/* All of them, or *most* at random. */
static void combinations(const op_call *call, dt_mesh *mesh, const odometer *o, int most, placed_list *list)
{
    int64_t all = 1;
    for (int k = 0; k < o->count; k++) all *= o->size[k];
    if (all <= most) all_combinations(call, mesh, o, list);
    else
        for (int i = 0; i < most; i++) draw_combination(call, mesh, o, call_seed(call, o->count, i), list);
}

void placed_all(const op_call *call, dt_mesh *mesh, int most, placed_list *list)
{
    odometer o = odometer_of(call, dt_mesh_dim_count(mesh));
    combinations(call, mesh, &o, most, list);
}

void placed_singles(const op_call *call, dt_mesh *mesh, int most, placed_list *list)
{
    int mesh_dims = dt_mesh_dim_count(mesh);
    for (int i = 0; i < call->n; i++) {
        odometer o = odometer_of(call, mesh_dims);
        for (int k = 0; k < o.count - 1; k++)
            if (k / mesh_dims != i) o.size[k] = 1;
        combinations(call, mesh, &o, most, list);
    }
}

void placed_draws(const op_call *call, dt_mesh *mesh, int n, uint64_t seed, placed_list *list)
{
    odometer o = odometer_of(call, dt_mesh_dim_count(mesh));
    for (int i = 0; i < n; i++) draw_combination(call, mesh, &o, dti_hash_mix(seed, (uint64_t)i + 7), list);
}

/* ---- strategies -------------------------------------------------------------------------------------------------- */

typedef struct strategies {
    dti_asking asking;
    dti_attributes attributes;
    dti_propagation propagation;
    int count;
    dti_strategy at[MAX_STRATEGIES];
} strategies;

static bool find_strategies(const op_call *call, dt_mesh *mesh, strategies *s)
{
    const dt_spec *specs[CALL_OPERANDS] = { NULL };
    dt_shape scalar = DT_SCALAR;
    for (int i = 0; i < call->n; i++) {
        dti_form form = call->form[i];
        if (form.dtype) specs[i] = dti_spec_intern(mesh, &form);
    }
    if (!dti_attributes_read(mesh->ctx, call->op, call->attributes, specs[0] ? &specs[0]->shape : &scalar,
                             &s->attributes)
        || !dti_row_ask(mesh->ctx, call->op, specs, call->n, &s->attributes, &s->asking)
        || !dti_propagate(mesh->ctx, &s->asking.ask, 1, &s->propagation)) return false;
    s->count = dti_partial_strategies(&s->asking.rule, &s->propagation.bound, NULL, s->at, MAX_STRATEGIES);
    return true;
}

static place place_of(const strategies *s, int operand, dti_place from)
{
    place p = { .what = from.what, .kind = from.kind };
    dti_bound_dims dims;
    if (from.what != DTI_PLACE_S) return p;
    dti_bound_operand(&s->asking.rule, &s->propagation.bound, operand, 0, &dims);
    for (int d = 0; d < dims.form.dim_count; d++)
        for (int f = dims.form.factor_first[d]; f < dims.form.factor_first[d + 1]; f++) {
            if (dims.factor[f] != from.factor) continue;
            p.dim = (int8_t)d;
            p.part = (int8_t)(f - dims.form.factor_first[d]);
        }
    return p;
}

/* Averages of integers are reduced first, and extremes where numbers wrap. */
static bool is_reduced_first(const op_call *call, const strategies *s, int strategy)
{
    for (int i = 0; i < call->n; i++) {
        dti_place p = s->at[strategy].operand[i];
        if (call->form[i].dtype < DT_I64 || p.what != DTI_PLACE_P) continue;
        if (p.kind == DTI_AVG || (p.kind != DTI_SUM && s->asking.rule.monomial_count)) return true;
    }
    return false;
}

/* P(max) along one mesh dim and P(sum) along the other are no result. */
static bool is_free(const op_call *call, const strategies *s, int first, int second)
{
    for (int r = 0; r < s->asking.rule.result_count; r++) {
        dti_place a = s->at[first].result[r], b = s->at[second].result[r];
        if (a.what == DTI_PLACE_P && b.what == DTI_PLACE_P
            && !dti_partial_mixes((dti_partial)a.kind, (dti_partial)b.kind)) return false;
    }
    return !is_reduced_first(call, s, first) && !is_reduced_first(call, s, second);
}

static void put_pair(const op_call *call, dt_mesh *mesh, const strategies *s, int first, int second,
                     placed_list *list)
{
    placed *p = placed_more(list);
    if (p) p->free = is_free(call, s, first, second);
    for (int i = 0; p && i < call->n; i++) {
        place along[MESH_DIMS] = { { 0 } };
        dti_bound_dims dims = { .form = { 0 } };                       /* products as the rule of this call has them */
        if (call->form[i].dtype) {
            dti_bound_operand(&s->asking.rule, &s->propagation.bound, i, 0, &dims);
            along[0] = place_of(s, i, s->at[first].operand[i]);
            along[1] = place_of(s, i, s->at[second].operand[i]);
        }
        dims.form.dtype = call->form[i].dtype;
        if (put_spec(mesh, &dims.form, along, false, p->spec[i])) continue;
        list->count--;
        return;
    }
}

void placed_pairs(const op_call *call, dt_mesh *mesh, int most, placed_list *list)
{
    strategies *s = malloc(sizeof *s);
    if (s && expect(find_strategies(call, mesh, s), "strategies: %s", dt_context_error(mesh->ctx))) {
        int all = s->count * s->count, n = all < most ? all : most;
        for (int i = 0; i < n; i++) {
            int pair = all <= most ? i : (int)(dti_hash_mix(call_seed(call, 9, i), 3) % (uint64_t)all);
            put_pair(call, mesh, s, pair / s->count, pair % s->count, list);
        }
    }
    free(s);
}

void placed_call(const op_call *call, dt_mesh *mesh, const placed_effort *effort, int n, placed_list *list)
{
    if (dt_mesh_dim_count(mesh) == 1) {
        placed_all(call, mesh, effort->combinations, list);
        return;
    }
    placed_pairs(call, mesh, effort->pairs, list);
    placed_singles(call, mesh, effort->singles, list);
    placed_draws(call, mesh, effort->draws / n + 1, call_seed(call, 1, call_count(call, 0)), list);
}
