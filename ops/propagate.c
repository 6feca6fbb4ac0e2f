/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for an assignment: strategies per mesh dim, combinations of them, the best of these; and what is done
 * where operands are cut in ways that have no refinement. */
#include "ops/propagate.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/pen.h"
#include "mesh/topology.h"
#include "ops/assigning.h"

enum { MAX_TRIED = 4096 };

static const int64_t MAX_TOUCHED = INT64_C(1) << 60; /* so that no sum of prices overflows                     */

/* ---- what is given ----------------------------------------------------------------------------------------------- */

static bool find_mesh(dti_assigning *s)
{
    for (int i = 0; i < s->rule->operand_count; i++) {
        const dt_spec *spec = s->ask->operand[i];
        if (!spec) continue;
        if (!s->out->mesh) s->out->mesh = spec->mesh;
        if (spec->mesh == s->out->mesh) continue;
        dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s: %s lies on mesh %s, the first operand on %s; redistribute one of them",
                 dti_rule_op(s->rule), dt_spec_text(spec), spec->mesh->text, s->out->mesh->text);
        return false;
    }
    s->mesh = s->out->mesh;
    if (!s->mesh) dti_fail(s->ctx, DT_ERR_ARG, "%s: no operand says on which mesh", dti_rule_op(s->rule));
    return s->mesh != NULL;
}

/* Forms: of operands that are bound as if a dim were cut otherwise; NULL: none is. */
static bool bind(dti_assigning *s, const dti_form *const *forms)
{
    dti_rule_call call = { .batch = s->ask->batch, .sizes = s->ask->sizes, .size_count = s->ask->size_count };
    for (int i = 0; i < s->rule->operand_count; i++)
        call.operand[i] = forms && forms[i] ? forms[i] : s->ask->operand[i] ? &s->ask->operand[i]->form : NULL;
    return dti_rule_bind(s->ctx, s->rule, &call, &s->out->bound);
}

/* Where placements go by the machine they could not be tried out on another: by what --dt-topology says, else flat. */
static bool price_dims(dti_assigning *s)
{
    static const dti_topology flat = { .level_count = 1, .levels = { { "rank", INT_MAX, 1 } } };
    bool stated = dti_option_value(s->ctx, DTI_OPTION_TOPOLOGY) != NULL;
    const dti_topology *topology = stated ? dti_topology_get(s->ctx) : &flat;
    if (!topology) return false;
    s->levels = topology->level_count;
    dti_price_table(topology, s->prices);
    for (int m = 0; m < s->mesh->dim_count; m++) {
        const dti_mesh_dim *dim = &s->mesh->dims[m];
        int reach = 0;
        for (int a = 0; a < dim->axis_count; a++) reach += (dim->axes[a].size - 1) * dim->axes[a].stride;
        int link = dti_topology_class(topology, s->mesh->base, s->mesh->base + reach);
        s->link[m] = link < s->levels ? link : s->levels - 1;
    }
    return true;
}

/* Add the bytes of a form. false: they are too many for sums of prices. */
static bool add_bytes(dti_assigning *s, const dti_form *form, dt_dtype dtype)
{
    int64_t bytes = (int64_t)dt_dtype_bytes(dtype);
    bool fits = true;
    for (int d = 0; d < form->dim_count; d++) {
        int64_t size = dti_form_dim(form, d);
        fits = fits && (size == 0 || bytes <= MAX_TOUCHED / size);
        if (fits) bytes *= size;
    }
    s->touched += fits ? bytes : 0;
    return fits && s->touched <= MAX_TOUCHED;
}

static bool count_touched(dti_assigning *s)
{
    bool fits = true;
    for (int i = 0; i < s->rule->operand_count && fits; i++)
        if (dti_assigning_has(s, i))
            fits = add_bytes(s, &s->ask->operand[i]->form, (dt_dtype)s->ask->operand[i]->form.dtype);
    for (int r = 0; r < s->rule->result_count && fits; r++) {
        dti_bound_dims dims;
        dti_bound_result(s->rule, &s->out->bound, r, 0, &dims);
        fits = add_bytes(s, &dims.form, dti_assigning_dtype(s, r));
        s->made[r] = 1;
        for (int d = 0; d < dims.form.dim_count && fits; d++) s->made[r] *= dti_form_dim(&dims.form, d);
    }
    if (!fits)
        dti_fail(s->ctx, DT_ERR_SHAPE, "%s: its operands and results are too large, together more than 2^60 bytes",
                 dti_rule_op(s->rule));
    return fits;
}

static void find_kinds_of_price(dti_assigning *s)
{
    s->maps = s->breaks = s->products = s->may_clash = false;
    for (int l = 0; l < s->rule->letter_count; l++) {
        s->maps |= s->out->bound.letter[l].map >= 0;
        s->products |= s->out->bound.letter[l].count > 1;
        s->may_clash |= s->rule->letter[l].kind > DTI_AVG;
        s->breaks |= (s->rule->letter[l].flags & DTI_LETTER_WHOLE) != 0;
    }
}

static bool is_integer(const dt_spec *spec) { return spec->form.dtype >= DT_I64; }

/* ---- strategies -------------------------------------------------------------------------------------------------- */

static bool moves_nothing(const dti_assigning *s, int m, const dti_strategy *strategy)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (dti_assigning_has(s, i) && s->given[i][m].what != DTI_PLACE_R
            && !dti_place_same(s->given[i][m], strategy->operand[i])) return false;
    return true;
}

/* Does an operand that is written stay as it is, and come out so? */
static bool keeps_written(const dti_assigning *s, int m, const dti_strategy *strategy)
{
    for (int i = 0; i < s->ask->writes; i++) {
        dti_place given = s->given[i][m];
        if (!dti_assigning_has(s, i)) continue;
        if (!dti_place_same(given, strategy->operand[i]) || !dti_place_same(given, strategy->result[i])) return false;
        if ((strategy->lift | strategy->rescale) >> i & 1) return false;
    }
    return true;
}

/* May operands be what they are in a strategy? */
static bool may_be(const dti_assigning *s, const uint8_t *kinds, const dti_strategy *strategy)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (strategy->operand[i].what == DTI_PLACE_P && !(kinds[i] >> strategy->operand[i].kind & 1)) return false;
    return true;
}

/* Those that move nothing first, otherwise in their order: that with all operands R is the first listed. */
static void take_listed(const dti_assigning *s, int m, const uint8_t *kinds, int n, dti_candidates *c)
{
    uint64_t kept = 0, free = 0;
    for (int i = 0; i < n; i++) {
        if (!may_be(s, kinds, &s->listed[i]) || !keeps_written(s, m, &s->listed[i])) continue;
        kept |= UINT64_C(1) << i;
        if (moves_nothing(s, m, &s->listed[i])) free |= UINT64_C(1) << i;
    }
    c->count = 0;
    for (int i = 0; i < n; i++)
        if (free >> i & 1) c->strategy[c->count++] = s->listed[i];
    c->free_count = c->count;
    for (int i = 0; i < n; i++)
        if ((kept & ~free) >> i & 1) c->strategy[c->count++] = s->listed[i];
    c->whole = kept & ~free & -kept ? c->free_count : 0; /* the first of those kept                                 */
}

/* What an operand may stay. Averages of integers are rounded, so nothing is linear in them; sums and products of
 * integers wrap, so they neither rise nor fall. */
static uint8_t kinds_of(const dti_assigning *s, int i, int m)
{
    dti_place given = s->given[i][m];
    if (given.what != DTI_PLACE_P) return 0;
    bool reduced_first = given.kind == DTI_AVG || (given.kind != DTI_SUM && s->rule->monomial_count);
    if (reduced_first && is_integer(s->ask->operand[i])) return 0;
    return (uint8_t)(1 << given.kind);
}

/* The factor of a new letter that mesh dim m splits in the result that is asked for; DTI_FOREIGN: none. */
static int asked_factor(const dti_assigning *s, int m)
{
    const dti_form *asked = s->ask->asked ? &s->ask->asked->form : NULL;
    int f = asked ? dti_form_split_by(asked, m) : -1, d = 0;
    dti_bound_dims dims;
    if (f < 0) return DTI_FOREIGN;
    dti_bound_result(s->rule, &s->out->bound, 0, 0, &dims);
    while (asked->factor_first[d + 1] <= f) d++;
    int first = dims.form.factor_first[d], count = dims.form.factor_first[d + 1] - first;
    if (count != asked->factor_first[d + 1] - asked->factor_first[d]) return DTI_FOREIGN;
    int factor = dims.factor[first + f - asked->factor_first[d]];
    return factor < 0 || s->out->bound.letter[s->out->bound.factor[factor].letter].operands ? DTI_FOREIGN : factor;
}

/* The one strategy that makes it so. */
static bool list_asked(dti_assigning *s, int m)
{
    int factor = asked_factor(s, m);
    if (factor == DTI_FOREIGN) return false;
    s->listed_max = 0;
    memset(&s->listed[0], 0, sizeof s->listed[0]);
    s->listed[0].fresh = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)factor };
    return dti_partial_decide(s->rule, &s->out->bound, &s->listed[0], NULL);
}

/* A mesh dim that shards no operand, and along which none is P, shards nothing. */
static bool all_whole(const dti_assigning *s, int m)
{
    bool whole = true;
    for (int i = 0; i < s->rule->operand_count; i++)
        if (dti_assigning_has(s, i)) whole &= s->given[i][m].what == DTI_PLACE_R;
    return whole;
}

static void kinds_along(const dti_assigning *s, int m, uint8_t *kinds)
{
    for (int i = 0; i < s->rule->operand_count; i++) kinds[i] = dti_assigning_has(s, i) ? kinds_of(s, i, m) : 0;
}

/* Strategies for several mesh dims are listed at once, with what operands may be along any: so many are all listed. */
static void find_all_kinds(dti_assigning *s)
{
    uint8_t kinds[DTI_MAX_OPERANDS];
    s->listed_max = 0;
    memset(s->all_kinds, 0, sizeof s->all_kinds);
    for (int m = 0; m < s->mesh->dim_count; m++) {
        kinds_along(s, m, kinds);
        for (int i = 0; i < s->rule->operand_count; i++) {
            s->all_kinds[i] |= kinds[i];
            s->may_clash |= kinds[i] >> (DTI_AVG + 1) != 0;
        }
    }
}

static bool among(const dti_assigning *s, const uint8_t *kinds, const uint8_t *others)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (kinds[i] & ~others[i]) return false;
    return true;
}

static void list(dti_assigning *s, const uint8_t *kinds, int max)
{
    s->listed_count = dti_partial_strategies(s->rule, &s->out->bound, kinds, s->listed, max);
    s->listed_max = max;
    memcpy(s->listed_kinds, kinds, sizeof s->listed_kinds);
}

/* List the legal strategies, at most max, and more: those that operands may be elsewhere, too. */
static int list_legal(dti_assigning *s, const uint8_t *kinds, int max)
{
    bool all = dti_partial_lists_all(s->rule, s->all_kinds);
    if (s->listed_max < max || !among(s, kinds, s->listed_kinds)) list(s, all && max > 1 ? s->all_kinds : kinds, max);
    if (s->listed_count == DTI_MAX_STRATEGIES && memcmp(kinds, s->listed_kinds, sizeof s->listed_kinds) != 0)
        list(s, kinds, max);
    return s->listed_count < max ? s->listed_count : max;
}

static void find_candidates(dti_assigning *s, int m)
{
    uint8_t kinds[DTI_MAX_OPERANDS] = { 0 };
    bool whole = all_whole(s, m);
    kinds_along(s, m, kinds);
    int n = whole && list_asked(s, m) ? 1 : list_legal(s, kinds, whole ? 1 : DTI_MAX_STRATEGIES);
    take_listed(s, m, kinds, n, &s->dim[m]);
    dti_assigning_effects(s, m);
}

/* ---- assignments ------------------------------------------------------------------------------------------------- */

bool dti_assigning_agrees(const dti_assigning *s, uint64_t *whole)
{
    uint64_t parts = 0;
    *whole = 0;
    if (!s->products) return true;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        const dti_strategy *strategy = &s->dim[m].strategy[s->chosen[m]];
        for (int i = 0; i <= s->rule->operand_count; i++) {
            dti_place place = i < s->rule->operand_count ? strategy->operand[i] : strategy->fresh;
            if (place.what != DTI_PLACE_S) continue;
            int l = s->out->bound.factor[place.factor].letter;
            const dti_bound_letter *letter = &s->out->bound.letter[l];
            *(letter->count > 1 && place.factor == letter->whole ? whole : &parts) |= UINT64_C(1) << l;
        }
    }
    return (*whole & parts) == 0;
}

/* Kinds that do not mix are in no spec: a mesh dim that makes a result P(max) forbids others to make it P(sum). */
static bool kinds_mix(const dti_assigning *s, const dti_place *places)
{
    dti_partial kind = DTI_PARTIAL_NONE;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        if (places[m].what != DTI_PLACE_P) continue;
        if (kind && !dti_partial_mixes(kind, (dti_partial)places[m].kind)) return false;
        kind = (dti_partial)places[m].kind;
    }
    return true;
}

static bool partials_agree(const dti_assigning *s)
{
    dti_place places[DT_MAX_MESH_DIMS];
    if (!s->may_clash) return true;
    for (int r = 0; r < s->rule->result_count; r++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = s->dim[m].strategy[s->chosen[m]].result[r];
        if (!kinds_mix(s, places)) return false;
    }
    for (int i = 0; i < s->rule->operand_count; i++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = dti_place_used(&s->dim[m].strategy[s->chosen[m]], i);
        if (!kinds_mix(s, places)) return false;
    }
    return true;
}

static bool is_better(const dti_assignment *a, const dti_assignment *b)
{
    if (a->wasteful != b->wasteful) return a->wasteful < b->wasteful;
    return a->ns != b->ns ? a->ns < b->ns : a->bytes < b->bytes;
}

/* The assignment at hand among the best, behind those that cost as much. Most are too dear: whether all of it agrees is
 * asked of the rest. */
static void consider(dti_assigning *s)
{
    uint64_t whole;
    dti_assignment a;
    int at = s->best_count;
    if (!dti_assigning_price(s, at == s->wanted ? &s->best[at - 1] : NULL, &a)) return;
    while (at > 0 && is_better(&a, &s->best[at - 1])) at--;
    if (at == s->wanted || !dti_assigning_agrees(s, &whole) || !partials_agree(s)) return;
    if (s->best_count < s->wanted) s->best_count++;
    for (int k = s->best_count - 1; k > at; k--) s->best[k] = s->best[k - 1];
    memcpy(a.chosen, s->chosen, sizeof a.chosen);
    s->best[at] = a;
}

/* ---- combinations ------------------------------------------------------------------------------------------------ */

/* The next assignment, the last mesh dim changing fastest. */
static bool next(dti_assigning *s)
{
    for (int m = s->mesh->dim_count - 1; m >= 0; m--) {
        if (++s->chosen[m] < s->dim[m].tried) {
            dti_assigning_changed(s, m);
            return true;
        }
        s->chosen[m] = 0;
    }
    return false;
}

static int64_t combinations(const dti_assigning *s)
{
    int64_t n = 1;
    for (int m = 0; m < s->mesh->dim_count && n <= MAX_TRIED; m++) n *= s->dim[m].tried;
    return n;
}

/* Settle one dim after the other, those behind it not split meanwhile: that agrees with all. */
static void settle(dti_assigning *s)
{
    for (int m = 0; m < s->mesh->dim_count; m++) s->chosen[m] = s->dim[m].whole;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        for (int i = 0; i < s->dim[m].tried; i++) {
            s->chosen[m] = i;
            dti_assigning_changed(s, m);
            consider(s);
        }
        s->chosen[m] = s->best_count ? s->best[0].chosen[m] : s->dim[m].whole;
        dti_assigning_changed(s, m);
    }
}

/* All strategies, or where some move nothing those alone. */
static void try_all(dti_assigning *s, bool free_alone)
{
    s->best_count = 0;
    dti_assigning_changed(s, 0);
    for (int m = 0; m < s->mesh->dim_count; m++)
        s->dim[m].tried = free_alone && s->dim[m].free_count ? s->dim[m].free_count : s->dim[m].count;
    if (combinations(s) > MAX_TRIED) {
        settle(s);
        return;
    }
    memset(s->chosen, 0, sizeof s->chosen);
    do consider(s);
    while (next(s));
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

/* Only operands that have to stay leave no strategy. */
static bool refuse_written(const dti_assigning *s, int m)
{
    char text[640];
    dti_pen pen = { text, sizeof text, 0 };
    for (int i = 0; i < s->ask->writes; i++)
        dti_put(&pen, "%s%s %s", i ? ", " : "", dti_rule_name(s->rule, i), dt_spec_text(s->ask->operand[i]));
    dti_fail(s->ctx, DT_ERR_PLACEMENT,
             "%s: writes %s, which cannot stay so along %s: expected R, a split of what the result has, or P where the "
             "value is linear", dti_rule_op(s->rule), text, s->mesh->dims[m].name);
    return false;
}

/* Results that are operands have their shapes. */
static bool check_written(const dti_assigning *s)
{
    for (int i = 0; i < s->ask->writes; i++) {
        const dt_spec *spec = s->ask->operand[i];
        dt_shape shape = dti_bound_shape(s->rule, &s->out->bound, i);
        bool same = spec && spec->shape.n == shape.n;
        for (int d = 0; same && d < shape.n; d++) same = spec->shape.dim[d] == shape.dim[d];
        if (same) continue;
        dti_fail(s->ctx, DT_ERR_SHAPE, "%s: writes %s %s, and the result has another shape; expected operands that "
                 "broadcast to it", dti_rule_op(s->rule), dti_rule_name(s->rule, i),
                 spec ? dt_spec_text(spec) : "(absent)");
        return false;
    }
    return true;
}

static bool search_all(dti_assigning *s)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (dti_assigning_has(s, i)) dti_assigning_place(s, i);
    if (!price_dims(s) || !count_touched(s)) return false;
    dti_assigning_begin(s);
    find_kinds_of_price(s);
    find_all_kinds(s);
    for (int m = 0; m < s->mesh->dim_count; m++) {
        find_candidates(s, m);
        if (s->dim[m].count == 0) return refuse_written(s, m);
    }
    if (s->wanted == 1) try_all(s, true);
    if (s->best_count == 0) try_all(s, false); /* or a letter would be split whole here, by a factor there         */
    if (s->best_count == 0) {
        dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s: no placements of its operands agree", dti_rule_op(s->rule));
        return false;
    }
    s->out->answer_count = s->best_count;
    for (int i = 0; i < s->best_count; i++)
        if (!dti_assigning_answer(s, i)) return false;
    return true;
}

/* ---- operands that are cut in ways without a refinement ---------------------------------------------------------- */

static uint32_t clashing(const dti_bound *bound)
{
    uint32_t operands = 0;
    for (int l = 0; l < bound->letter_count; l++) operands |= bound->letter[l].clash;
    return operands;
}

/* An operand's form with dims unsplit in which it clashes. */
static void unsplit(const dti_assigning *s, const dti_bound *bound, int operand, dti_form *form)
{
    const dti_form *given = &s->ask->operand[operand]->form;
    dti_bound_dims dims;
    dti_bound_operand(s->rule, bound, operand, 0, &dims);
    memset(form, 0, sizeof *form);
    form->dtype = given->dtype;
    for (int d = 0; d < given->dim_count; d++) {
        bool clashes = false;
        int at = form->factor_first[d];
        for (int f = dims.form.factor_first[d]; f < dims.form.factor_first[d + 1]; f++)
            clashes |= dims.factor[f] >= 0
                && (bound->letter[bound->factor[dims.factor[f]].letter].clash >> operand & 1);
        if (clashes) form->size[at++] = dti_form_dim(given, d);
        for (int f = given->factor_first[d]; f < given->factor_first[d + 1] && !clashes; f++)
            form->size[at++] = given->size[f];
        form->factor_first[++form->dim_count] = at;
    }
}

/* Search again, one of those that clash as it is, the others unsplit. */
static bool keep_one(dti_assigning *s, const dti_bound *bound, uint32_t clash, int kept)
{
    dti_form form[DTI_MAX_OPERANDS];
    const dti_form *forms[DTI_MAX_OPERANDS] = { NULL };
    for (int i = 0; i < s->rule->operand_count; i++) {
        if (!(clash >> i & 1) || i == kept) continue;
        unsplit(s, bound, i, &form[i]);
        forms[i] = &form[i];
    }
    memset(s->given, 0, sizeof s->given);
    s->best_count = 0;
    s->touched = 0;
    return bind(s, forms) && search_all(s);
}

/* The letter as one factor moves all of them: it may be cheaper to move all but one. */
static bool settle_clashes(dti_assigning *s)
{
    dti_propagation *taken = s->out, *other;
    uint32_t clash = clashing(&taken->bound);
    if (!clash) return true;
    dti_bound bound = taken->bound;
    dti_assignment best = s->best[0];
    bool found = true;
    if (!(other = malloc(sizeof *other))) return dti_fail(s->ctx, DT_ERR_MEMORY, "no memory to propagate"), false;
    other->mesh = taken->mesh;
    s->out = other;
    for (int i = 0; i < s->rule->operand_count && found; i++) {
        if (!(clash >> i & 1)) continue;
        found = keep_one(s, &bound, clash, i);
        if (!found || !is_better(&s->best[0], &best)) continue;
        best = s->best[0];
        *taken = *other;
    }
    free(other);
    return found;
}

/* The first operand that is written and clashes; -1: none. */
static int written_clash(const dti_assigning *s)
{
    uint32_t clash = clashing(&s->out->bound);
    for (int i = 0; i < s->ask->writes; i++)
        if (clash >> i & 1) return i;
    return -1;
}

/* What is written does not move: where it clashes the others are unsplit. */
static bool search_bound(dti_assigning *s)
{
    int kept = written_clash(s);
    if (kept < 0) return search_all(s) && settle_clashes(s);
    dti_bound bound = s->out->bound;
    return keep_one(s, &bound, clashing(&bound), kept);
}

bool dti_propagate(dt_context *ctx, const dti_ask *ask, int wanted, dti_propagation *out)
{
    dti_assigning *s = dti_context_borrow(ctx, sizeof *s); /* large: from the heap it would be new pages each time   */
    out->mesh = NULL;
    if (!s) return false;
    memset(s, 0, offsetof(dti_assigning, listed));
    s->ctx = ctx;
    s->ask = ask;
    s->rule = ask->rule;
    s->out = out;
    s->wanted = wanted;
    bool found = find_mesh(s) && bind(s, NULL) && check_written(s) && search_bound(s);
    dti_context_give(ctx, s, sizeof *s);
    return found;
}
