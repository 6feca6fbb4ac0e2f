/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for an assignment: places of the operands as they are given, strategies per mesh dim, prices of
 * combinations, specs of the best. */
#include "ops/propagate.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/pen.h"
#include "mesh/topology.h"
#include "redistribute/price.h"

enum {
    MAX_STRATEGIES = 64,               /* along one mesh dim                                                       */
    MAX_TRIED = 4096,
    FOREIGN = -1                       /* a factor of a given placement that is no factor of the bound rule        */
};

static const int64_t MAX_TOUCHED = INT64_C(1) << 60; /* so that no sum of prices overflows                     */

/* Orders of magnitude of an accelerator, as the link classes' prices are: 400 TFLOP/s, 2 TB/s. */
enum { FLOPS_PER_NS = 400000, BYTES_PER_NS = 2000 };

typedef struct candidates {            /* along one mesh dim; those that move nothing first                        */
    int count, free_count;
    int tried;                         /* how many of them are                                                     */
    int whole;                         /* the one that has all operands R                                          */
    dti_strategy strategy[MAX_STRATEGIES];
} candidates;

typedef struct assignment {
    int wasteful;                      /* mesh dims along which something moves and nothing need                   */
    int64_t ns, bytes;
    int chosen[DT_MAX_MESH_DIMS];
} assignment;

typedef struct search {
    dt_context *ctx;
    const dti_ask *ask;
    const dti_rule *rule;
    dti_propagation *out;
    const dt_mesh *mesh;
    int wanted;
    int64_t elements[DTI_MAX_OPERANDS], made[DTI_MAX_RESULTS]; /* of operands, of results                          */
    int64_t touched;                   /* bytes of all operands and results                                        */
    dti_place given[DTI_MAX_OPERANDS][DT_MAX_MESH_DIMS];
    int link[DT_MAX_MESH_DIMS];        /* the slowest link class along a mesh dim                                  */
    int levels;
    dti_price prices[DT_MAX_LINKS];
    int chosen[DT_MAX_MESH_DIMS];      /* the assignment at hand                                                   */
    int best_count;                    /* the best so far, cheapest first                                          */
    assignment best[DTI_MAX_ALTERNATIVES];
    candidates dim[DT_MAX_MESH_DIMS];  /* last: large, and not zeroed                                              */
} search;

static bool is_present(const search *s, int operand) { return s->out->bound.present >> operand & 1; }

/* ---- what is given ----------------------------------------------------------------------------------------------- */

static bool find_mesh(search *s)
{
    for (int i = 0; i < s->rule->operand_count; i++) {
        const dt_spec *spec = s->ask->operand[i];
        if (!spec) continue;
        if (!s->out->mesh) s->out->mesh = spec->mesh;
        if (spec->mesh == s->out->mesh) continue;
        dti_fail(s->ctx, DT_ERR_PLACEMENT, "%s: %s lies on mesh %s, the first operand on %s; redistribute one of them",
                 dti_rule_op(s->rule), spec->text, spec->mesh->text, s->out->mesh->text);
        return false;
    }
    s->mesh = s->out->mesh;
    if (!s->mesh) dti_fail(s->ctx, DT_ERR_ARG, "%s: no operand says on which mesh", dti_rule_op(s->rule));
    return s->mesh != NULL;
}

/* Forms: of operands that are bound as if a dim were cut otherwise; NULL: none is. */
static bool bind(search *s, const dti_form *const *forms)
{
    dti_rule_call call = { .batch = s->ask->batch, .sizes = s->ask->sizes, .size_count = s->ask->size_count };
    for (int i = 0; i < s->rule->operand_count; i++)
        call.operand[i] = forms && forms[i] ? forms[i] : s->ask->operand[i] ? &s->ask->operand[i]->form : NULL;
    return dti_rule_bind(s->ctx, s->rule, &call, &s->out->bound);
}

/* The bound factor that some of a dim's refined factors, first .. end - 1, are together; FOREIGN: none. */
static int factor_of(const dti_bound *bound, const dti_bound_dims *dims, int first, int end)
{
    int factor = dims->factor[first];
    if (factor < 0 || end == first + 1) return factor < 0 ? FOREIGN : factor;
    const dti_bound_letter *letter = &bound->letter[bound->factor[factor].letter];
    return factor == letter->first && end - first == letter->count ? letter->whole : FOREIGN;
}

/* The mesh dims that split one factor of a given form, which is the refined factors first .. end - 1. Where these are
 * of several letters, they were joined because the cuts are the same: mesh dims split the first of them into equal
 * pieces, and when those are single the next. */
static void place_splits(search *s, int i, int f, const dti_bound_dims *dims, int first, int end)
{
    const dti_form *form = &s->ask->operand[i]->form;
    int factor = factor_of(&s->out->bound, dims, first, end), at = first;
    int64_t pieces = 1;
    for (int k = form->split_first[f]; k < form->split_first[f + 1]; k++) {
        int m = form->split[k], own = factor;
        if (factor == FOREIGN) {
            for (; at < end - 1 && dims->form.size[at] == pieces; at++) pieces = 1;
            pieces *= s->mesh->dims[m].size;
            bool equal = at == end - 1 || dims->form.size[at] % pieces == 0;
            own = equal && dims->factor[at] >= 0 ? dims->factor[at] : FOREIGN;
        }
        s->given[i][m] = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)own };
    }
}

static void place_foreign(search *s, int i, int f)
{
    const dti_form *form = &s->ask->operand[i]->form;
    for (int k = form->split_first[f]; k < form->split_first[f + 1]; k++)
        s->given[i][form->split[k]] = (dti_place){ .what = DTI_PLACE_S, .factor = FOREIGN };
}

/* The bound factor of a dim that goes through an index map; -1: it does not. */
static int mapped_factor(const search *s, const dti_bound_dims *dims, int d)
{
    int first = dims->form.factor_first[d], factor = dims->factor[first];
    if (dims->form.factor_first[d + 1] - first != 1 || factor < 0) return -1;
    return s->out->bound.letter[s->out->bound.factor[factor].letter].map >= 0 ? factor : -1;
}

/* However the dim is cut, the map cuts it anew. */
static void place_mapped(search *s, int i, int d, int factor)
{
    const dti_form *form = &s->ask->operand[i]->form;
    int first = form->split_first[form->factor_first[d]], end = form->split_first[form->factor_first[d + 1]];
    for (int k = first; k < end; k++)
        s->given[i][form->split[k]] = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)factor };
}

/* Each factor of a given dim is one or several of the refined ones. One that is cut otherwise is none, and nothing
 * behind it is told, either. */
static void place_dim(search *s, int i, const dti_bound_dims *dims, int d)
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

static void place_operand(search *s, int i)
{
    const dti_form *form = &s->ask->operand[i]->form;
    dti_bound_dims dims;
    dti_bound_operand(s->rule, &s->out->bound, i, 0, &dims);
    s->elements[i] = 1;
    for (int d = 0; d < form->dim_count; d++) {
        int mapped = mapped_factor(s, &dims, d);
        s->elements[i] *= dti_form_dim(form, d);
        if (mapped >= 0) place_mapped(s, i, d, mapped);
        else place_dim(s, i, &dims, d);
    }
    for (int m = 0; m < s->mesh->dim_count; m++)
        if (form->partial[m]) s->given[i][m] = (dti_place){ .what = DTI_PLACE_P, .kind = form->partial[m] };
}

/* Where placements go by the machine they could not be tried out on another: by what --dt-topology says, else flat. */
static bool price_dims(search *s)
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

static dt_dtype result_dtype(const search *s, int r)
{
    if (s->ask->result[r]) return s->ask->result[r];
    for (int i = 0; i < s->rule->operand_count; i++)
        if (s->ask->operand[i]) return (dt_dtype)s->ask->operand[i]->form.dtype;
    return DT_F32;
}

/* Add the bytes of a form. false: they are too many for sums of prices. */
static bool add_bytes(search *s, const dti_form *form, dt_dtype dtype)
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

static bool count_touched(search *s)
{
    bool fits = true;
    for (int i = 0; i < s->rule->operand_count && fits; i++)
        if (is_present(s, i))
            fits = add_bytes(s, &s->ask->operand[i]->form, (dt_dtype)s->ask->operand[i]->form.dtype);
    for (int r = 0; r < s->rule->result_count && fits; r++) {
        dti_bound_dims dims;
        dti_bound_result(s->rule, &s->out->bound, r, 0, &dims);
        fits = add_bytes(s, &dims.form, result_dtype(s, r));
        s->made[r] = 1;
        for (int d = 0; d < dims.form.dim_count && fits; d++) s->made[r] *= dti_form_dim(&dims.form, d);
    }
    if (!fits)
        dti_fail(s->ctx, DT_ERR_SHAPE, "%s: its operands and results are too large, together more than 2^60 bytes",
                 dti_rule_op(s->rule));
    return fits;
}

static bool is_integer(const dt_spec *spec) { return spec->form.dtype >= DT_I64; }

/* ---- strategies -------------------------------------------------------------------------------------------------- */

static bool same_place(dti_place a, dti_place b)
{
    return a.what == b.what && (a.what != DTI_PLACE_S || a.factor == b.factor)
        && (a.what != DTI_PLACE_P || a.kind == b.kind);
}

static bool moves_nothing(const search *s, int m, const dti_strategy *strategy)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (is_present(s, i) && s->given[i][m].what != DTI_PLACE_R
            && !same_place(s->given[i][m], strategy->operand[i])) return false;
    return true;
}

/* Those that move nothing to the front, otherwise in their order: that with all operands R was the first. */
static void free_first(const search *s, int m, candidates *c)
{
    dti_strategy moving[MAX_STRATEGIES];
    int n = 0;
    bool whole_moves = !moves_nothing(s, m, &c->strategy[0]);
    c->free_count = 0;
    for (int i = 0; i < c->count; i++) {
        if (moves_nothing(s, m, &c->strategy[i])) c->strategy[c->free_count++] = c->strategy[i];
        else moving[n++] = c->strategy[i];
    }
    memcpy(c->strategy + c->free_count, moving, (size_t)n * sizeof *moving);
    c->whole = whole_moves ? c->free_count : 0;
}

/* What an operand may stay. Averages of integers are rounded, so nothing is linear in them; sums and products of
 * integers wrap, so they neither rise nor fall. */
static uint8_t kinds_of(const search *s, int i, int m)
{
    dti_place given = s->given[i][m];
    if (given.what != DTI_PLACE_P) return 0;
    bool reduced_first = given.kind == DTI_AVG || (given.kind != DTI_SUM && s->rule->monomial_count);
    if (reduced_first && is_integer(s->ask->operand[i])) return 0;
    return (uint8_t)(1 << given.kind);
}

/* The factor of a new letter that mesh dim m splits in the result that is asked for; FOREIGN: none. */
static int asked_factor(const search *s, int m)
{
    const dti_form *asked = s->ask->asked ? &s->ask->asked->form : NULL;
    int f = asked ? dti_form_split_by(asked, m) : -1, d = 0;
    dti_bound_dims dims;
    if (f < 0) return FOREIGN;
    dti_bound_result(s->rule, &s->out->bound, 0, 0, &dims);
    while (asked->factor_first[d + 1] <= f) d++;
    int first = dims.form.factor_first[d], count = dims.form.factor_first[d + 1] - first;
    if (count != asked->factor_first[d + 1] - asked->factor_first[d]) return FOREIGN;
    int factor = dims.factor[first + f - asked->factor_first[d]];
    return factor < 0 || s->out->bound.letter[s->out->bound.factor[factor].letter].operands ? FOREIGN : factor;
}

/* The one strategy that makes it so. */
static bool take_asked(const search *s, int m, candidates *c)
{
    int factor = asked_factor(s, m);
    if (factor == FOREIGN) return false;
    memset(&c->strategy[0], 0, sizeof c->strategy[0]);
    c->strategy[0].fresh = (dti_place){ .what = DTI_PLACE_S, .factor = (int16_t)factor };
    return dti_partial_decide(s->rule, &s->out->bound, &c->strategy[0], NULL);
}

/* Does an operand that is written stay as it is, and come out so? */
static bool keeps_written(const search *s, int m, const dti_strategy *strategy)
{
    for (int i = 0; i < s->ask->writes; i++) {
        dti_place given = s->given[i][m];
        if (!is_present(s, i)) continue;
        if (!same_place(given, strategy->operand[i]) || !same_place(given, strategy->result[i])) return false;
        if ((strategy->lift | strategy->rescale) >> i & 1) return false;
    }
    return true;
}

static void leave_out_moved(const search *s, int m, candidates *c)
{
    int n = 0;
    for (int i = 0; i < c->count; i++)
        if (keeps_written(s, m, &c->strategy[i])) c->strategy[n++] = c->strategy[i];
    c->count = n;
}

static void find_candidates(search *s, int m)
{
    uint8_t kinds[DTI_MAX_OPERANDS] = { 0 };
    bool whole = true;
    for (int i = 0; i < s->rule->operand_count; i++) {
        if (!is_present(s, i)) continue;
        whole &= s->given[i][m].what == DTI_PLACE_R;
        kinds[i] = kinds_of(s, i, m);
    }
    candidates *c = &s->dim[m];
    if (whole && take_asked(s, m, c)) c->count = 1;
    else c->count = dti_partial_strategies(s->rule, &s->out->bound, kinds, c->strategy, whole ? 1 : MAX_STRATEGIES);
    if (s->ask->writes) leave_out_moved(s, m, c);
    free_first(s, m, c);
}

/* Where an operand is lifted to P(sum), or taken as it, that is what the kernel is given. */
static dti_place used_place(const dti_strategy *strategy, int i)
{
    if ((strategy->lift | strategy->rescale) >> i & 1) return (dti_place){ .what = DTI_PLACE_P, .kind = DTI_SUM };
    return strategy->operand[i];
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

/* Into how many pieces a mesh dim splits a factor, as far as there are elements for them. */
static int64_t pieces(const search *s, int m, dti_place place)
{
    int64_t size = s->mesh->dims[m].size;
    int64_t elements = place.factor < 0 ? size : s->out->bound.factor[place.factor].size;
    return elements < 1 ? 1 : elements < size ? elements : size;
}

/* What the busiest rank receives of an operand along all mesh dims: sums of P first, of its part as it is given; then
 * what it is to hold and does not. */
static int64_t operand_bytes(const search *s, int i, int *slowest, int64_t *messages)
{
    int64_t parts = 1, holders = 1, kept = 1, summed = 1;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        dti_place given = s->given[i][m], used = s->dim[m].strategy[s->chosen[m]].operand[i];
        int64_t size = s->mesh->dims[m].size;
        if (given.what == DTI_PLACE_S) holders *= pieces(s, m, given);
        if (used.what == DTI_PLACE_S) parts *= pieces(s, m, used);
        if (given.what == DTI_PLACE_R || same_place(given, used)) continue;
        if (given.what == DTI_PLACE_P) summed *= size;
        if (given.what == DTI_PLACE_S || used.what == DTI_PLACE_R) kept *= size;
        *messages += size - 1;
        if (s->link[m] < *slowest) *slowest = s->link[m];
    }
    int64_t bytes = (int64_t)dt_dtype_bytes((dt_dtype)s->ask->operand[i]->form.dtype), part = s->elements[i] / parts;
    return (s->elements[i] / (holders * summed) * (summed - 1) + part - part / kept) * bytes;
}

/* Does a mesh dim split a dim that goes through an index map? */
static bool splits_mapped(const search *s, const dti_strategy *strategy)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (strategy->operand[i].what == DTI_PLACE_S
            && s->out->bound.letter[s->out->bound.factor[strategy->operand[i].factor].letter].map >= 0) return true;
    return false;
}

/* What a rank receives of a result that is pulled: at most its part. */
static int64_t pulled_bytes(const search *s, int r, int *slowest, int64_t *messages)
{
    int64_t part = s->made[r];
    bool pulled = false;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        const dti_strategy *strategy = &s->dim[m].strategy[s->chosen[m]];
        if (strategy->result[r].what == DTI_PLACE_S) part /= pieces(s, m, strategy->result[r]);
        if (!splits_mapped(s, strategy)) continue;
        pulled = true;
        *messages += s->mesh->dims[m].size - 1;
        if (s->link[m] < *slowest) *slowest = s->link[m];
    }
    return pulled ? part * (int64_t)dt_dtype_bytes(result_dtype(s, r)) : 0;
}

/* What the busiest rank receives of sums over rows along mesh dims that split what is a row: two f64 for each, reduced
 * and gathered. */
static int64_t statistics_bytes(const search *s, int *slowest, int64_t *messages)
{
    int64_t rows = s->elements[0], ranks = 1;
    for (int l = 0; l < s->rule->letter_count; l++)
        if ((s->rule->letter[l].flags & DTI_LETTER_WHOLE) && s->out->bound.letter[l].size > 0)
            rows /= s->out->bound.letter[l].size;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        const dti_strategy *strategy = &s->dim[m].strategy[s->chosen[m]];
        if (!strategy->broken) {
            if (strategy->operand[0].what == DTI_PLACE_S) rows /= pieces(s, m, strategy->operand[0]);
            continue;
        }
        ranks *= s->mesh->dims[m].size;
        if (s->link[m] < *slowest) *slowest = s->link[m];
    }
    *messages = 4 * (ranks - 1);
    return rows * (int64_t)sizeof(double) / ranks * (ranks - 1) * 4;
}

static int64_t work_ns(const search *s)
{
    int64_t share = 1, flops = s->ask->flops;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        const dti_strategy *strategy = &s->dim[m].strategy[s->chosen[m]];
        dti_place split = strategy->fresh;
        for (int i = 0; i < s->rule->operand_count; i++)
            if (strategy->operand[i].what == DTI_PLACE_S) split = strategy->operand[i];
        if (split.what == DTI_PLACE_S) share *= pieces(s, m, split);
    }
    int64_t compute = flops / FLOPS_PER_NS / share, memory = s->touched / BYTES_PER_NS / share;
    return compute > memory ? compute : memory;
}

/* A letter is split either as a whole or by its factors. */
static bool splits_agree(const search *s, uint64_t *whole)
{
    uint64_t parts = 0;
    *whole = 0;
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
static bool kinds_mix(const search *s, const dti_place *places)
{
    dti_partial kind = DTI_PARTIAL_NONE;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        if (places[m].what != DTI_PLACE_P) continue;
        if (kind && !dti_partial_mixes(kind, (dti_partial)places[m].kind)) return false;
        kind = (dti_partial)places[m].kind;
    }
    return true;
}

static bool partials_agree(const search *s)
{
    dti_place places[DT_MAX_MESH_DIMS];
    for (int r = 0; r < s->rule->result_count; r++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = s->dim[m].strategy[s->chosen[m]].result[r];
        if (!kinds_mix(s, places)) return false;
    }
    for (int i = 0; i < s->rule->operand_count; i++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = used_place(&s->dim[m].strategy[s->chosen[m]], i);
        if (!kinds_mix(s, places)) return false;
    }
    return true;
}

static bool is_better(const assignment *a, const assignment *b)
{
    if (a->wasteful != b->wasteful) return a->wasteful < b->wasteful;
    return a->ns != b->ns ? a->ns < b->ns : a->bytes < b->bytes;
}

static void add_move(const search *s, int64_t bytes, int slowest, int64_t messages, assignment *a)
{
    int64_t moved[DT_MAX_LINKS] = { 0 };
    moved[slowest] = bytes;
    a->bytes += bytes;
    if (bytes) a->ns += dti_price_step(s->prices, s->levels, moved, messages);
}

static assignment price(const search *s)
{
    assignment a = { .ns = work_ns(s) };
    memcpy(a.chosen, s->chosen, sizeof a.chosen);
    for (int m = 0; m < s->mesh->dim_count; m++)
        a.wasteful += s->dim[m].free_count && s->chosen[m] >= s->dim[m].free_count;
    for (int i = 0; i < s->rule->operand_count; i++) {
        int slowest = s->levels - 1;
        int64_t messages = 0;
        if (!is_present(s, i)) continue;
        int64_t bytes = operand_bytes(s, i, &slowest, &messages);
        add_move(s, bytes, slowest, messages, &a);
    }
    for (int r = 0; r < s->rule->result_count; r++) {
        int slowest = s->levels - 1;
        int64_t messages = 0, bytes = pulled_bytes(s, r, &slowest, &messages);
        add_move(s, bytes, slowest, messages, &a);
    }
    int slowest = s->levels - 1;
    int64_t messages, moved[DT_MAX_LINKS] = { 0 }, all = statistics_bytes(s, &slowest, &messages);
    moved[slowest] = all;
    a.bytes += all;
    if (messages) a.ns += dti_price_step(s->prices, s->levels, moved, messages);
    return a;
}

/* The assignment at hand among the best, behind those that cost as much. Most are too dear: whether all of it agrees is
 * asked of the rest. */
static void consider(search *s)
{
    uint64_t whole;
    assignment a = price(s);
    int at = s->best_count;
    while (at > 0 && is_better(&a, &s->best[at - 1])) at--;
    if (at == s->wanted || !splits_agree(s, &whole) || !partials_agree(s)) return;
    if (s->best_count < s->wanted) s->best_count++;
    for (int k = s->best_count - 1; k > at; k--) s->best[k] = s->best[k - 1];
    s->best[at] = a;
}

/* ---- combinations ------------------------------------------------------------------------------------------------ */

/* The next assignment, the last mesh dim changing fastest. */
static bool next(search *s)
{
    for (int m = s->mesh->dim_count - 1; m >= 0; m--) {
        if (++s->chosen[m] < s->dim[m].tried) return true;
        s->chosen[m] = 0;
    }
    return false;
}

static int64_t combinations(const search *s)
{
    int64_t n = 1;
    for (int m = 0; m < s->mesh->dim_count && n <= MAX_TRIED; m++) n *= s->dim[m].tried;
    return n;
}

/* Settle one dim after the other, those behind it not split meanwhile: that agrees with all. */
static void settle(search *s)
{
    for (int m = 0; m < s->mesh->dim_count; m++) s->chosen[m] = s->dim[m].whole;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        for (int i = 0; i < s->dim[m].tried; i++) {
            s->chosen[m] = i;
            consider(s);
        }
        s->chosen[m] = s->best_count ? s->best[0].chosen[m] : s->dim[m].whole;
    }
}

/* All strategies, or where some move nothing those alone. */
static void try_all(search *s, bool free_alone)
{
    s->best_count = 0;
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

/* ---- specs ------------------------------------------------------------------------------------------------------- */

typedef struct split_order { int count; int8_t dims[DT_MAX_MESH_DIMS]; } split_order;

static void add_once(split_order *order, int m)
{
    for (int i = 0; i < order->count; i++)
        if (order->dims[i] == m) return;
    order->dims[order->count++] = (int8_t)m;
}

/* Are two factors one, or of dims that an index map leads between? */
static bool is_one(const search *s, int a, int b)
{
    const dti_bound *bound = &s->out->bound;
    return a == b || (a >= 0 && b >= 0 && bound->factor[a].letter != bound->factor[b].letter
                      && dti_bound_alike(bound, bound->factor[a].letter, bound->factor[b].letter));
}

static bool splits(const search *s, const dti_strategy *strategy, int factor)
{
    bool split = strategy->fresh.what == DTI_PLACE_S && strategy->fresh.factor == factor;
    for (int i = 0; i < s->rule->operand_count; i++)
        split |= strategy->operand[i].what == DTI_PLACE_S && is_one(s, strategy->operand[i].factor, factor);
    return split;
}

/* Those of a factor's mesh dims that split an operand there, too, in its order. */
static void add_own(const search *s, const dti_strategy *along, int operand, int factor, split_order *order)
{
    const dti_form *form = &s->ask->operand[operand]->form;
    for (int k = 0; k < form->split_first[form->factor_first[form->dim_count]]; k++) {
        int m = form->split[k];
        if (is_one(s, s->given[operand][m].factor, factor) && splits(s, &along[m], factor))
            add_once(order, m);
    }
}

/* The mesh dims that split a bound factor, in order: as an operand has two of them, as operands have one, the rest. */
static split_order order_of(const search *s, const dti_strategy *along, int factor)
{
    split_order order = { 0 };
    int operands = s->rule->operand_count;
    for (int i = 0; i < operands && order.count < 2; i++) {
        order.count = 0;
        if (is_present(s, i)) add_own(s, along, i, factor, &order);
    }
    if (order.count < 2) order.count = 0;
    for (int i = 0; i < operands; i++)
        if (is_present(s, i)) add_own(s, along, i, factor, &order);
    for (int m = 0; m < s->mesh->dim_count; m++)
        if (splits(s, &along[m], factor)) add_once(&order, m);
    return order;
}

/* The spec of a tensor with these dims, placed so along each mesh dim. */
static const dt_spec *spec_of(const search *s, const dti_strategy *along, const dti_place *places,
                              dti_bound_dims *dims, dt_dtype dtype)
{
    dti_form *form = &dims->form;
    int count = 0;
    form->dtype = (int32_t)dtype;
    for (int f = 0; f < form->factor_first[form->dim_count]; f++) {
        form->split_first[f] = (int8_t)count;
        split_order order = dims->factor[f] < 0 ? (split_order){ 0 } : order_of(s, along, dims->factor[f]);
        for (int k = 0; k < order.count; k++) {
            dti_place place = places[order.dims[k]];
            if (place.what == DTI_PLACE_S && place.factor == dims->factor[f]) form->split[count++] = order.dims[k];
        }
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
static const dt_spec *keep_cuts(const search *s, int i, const dti_bound_dims *dims, const dt_spec *used)
{
    const dti_form *given = &s->ask->operand[i]->form;
    dti_form form = { .dtype = used->form.dtype };
    bool kept = false;
    memcpy(form.partial, used->form.partial, sizeof form.partial);
    if (given->factor_first[given->dim_count] + used->form.factor_first[given->dim_count] > DT_MAX_FACTORS) return used;
    for (int d = 0; d < given->dim_count; d++) {
        bool keeps = mapped_factor(s, dims, d) >= 0 && dims_that_split(given, d) == dims_that_split(&used->form, d);
        dti_form_add_dim(&form, keeps ? given : &used->form, d);
        kept |= keeps;
    }
    return kept ? dti_spec_intern(s->out->mesh, &form) : used;
}

static bool make_specs(const search *s, uint64_t whole, dti_answer *answer)
{
    dti_place places[DT_MAX_MESH_DIMS];
    dti_bound_dims dims;
    for (int i = 0; i < s->rule->operand_count; i++) {
        if (!is_present(s, i)) continue;
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = used_place(&answer->along[m], i);
        dti_bound_operand(s->rule, &s->out->bound, i, whole, &dims);
        answer->used[i] = spec_of(s, answer->along, places, &dims, (dt_dtype)s->ask->operand[i]->form.dtype);
        if (answer->used[i]) answer->used[i] = keep_cuts(s, i, &dims, answer->used[i]);
        if (!answer->used[i]) return false;
    }
    for (int r = 0; r < s->rule->result_count; r++) {
        for (int m = 0; m < s->mesh->dim_count; m++) places[m] = answer->along[m].result[r];
        dti_bound_result(s->rule, &s->out->bound, r, whole, &dims);
        answer->result[r] = spec_of(s, answer->along, places, &dims, result_dtype(s, r));
        if (!answer->result[r]) return false;
    }
    return true;
}

static bool make_answer(search *s, int i)
{
    dti_answer *answer = &s->out->answer[i];
    uint64_t whole;
    memset(answer, 0, sizeof *answer);
    memcpy(s->chosen, s->best[i].chosen, sizeof s->chosen);
    splits_agree(s, &whole);
    answer->bytes = s->best[i].bytes;
    answer->ns = s->best[i].ns;
    for (int m = 0; m < s->mesh->dim_count; m++) {
        answer->along[m] = s->dim[m].strategy[s->chosen[m]];
        if (answer->along[m].lift_number) answer->number_dims |= UINT32_C(1) << m;
        if (answer->along[m].broken) answer->broken_dims |= UINT32_C(1) << m;
    }
    return make_specs(s, whole, answer);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

/* Only operands that have to stay leave no strategy. */
static bool refuse_written(const search *s, int m)
{
    char text[640];
    dti_pen pen = { text, sizeof text, 0 };
    for (int i = 0; i < s->ask->writes; i++)
        dti_put(&pen, "%s%s %s", i ? ", " : "", dti_rule_name(s->rule, i), s->ask->operand[i]->text);
    dti_fail(s->ctx, DT_ERR_PLACEMENT,
             "%s: writes %s, which cannot stay so along %s: expected R, a split of what the result has, or P where the "
             "value is linear", dti_rule_op(s->rule), text, s->mesh->dims[m].name);
    return false;
}

/* Results that are operands have their shapes. */
static bool check_written(const search *s)
{
    for (int i = 0; i < s->ask->writes; i++) {
        const dt_spec *spec = s->ask->operand[i];
        dt_shape shape = dti_bound_shape(s->rule, &s->out->bound, i);
        bool same = spec && spec->shape.n == shape.n;
        for (int d = 0; same && d < shape.n; d++) same = spec->shape.dim[d] == shape.dim[d];
        if (same) continue;
        dti_fail(s->ctx, DT_ERR_SHAPE, "%s: writes %s %s, and the result has another shape; expected operands that "
                 "broadcast to it", dti_rule_op(s->rule), dti_rule_name(s->rule, i), spec ? spec->text : "(absent)");
        return false;
    }
    return true;
}

static bool search_all(search *s)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (is_present(s, i)) place_operand(s, i);
    if (!price_dims(s) || !count_touched(s)) return false;
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
        if (!make_answer(s, i)) return false;
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
static void unsplit(const search *s, const dti_bound *bound, int operand, dti_form *form)
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
static bool keep_one(search *s, const dti_bound *bound, uint32_t clash, int kept)
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
static bool settle_clashes(search *s)
{
    dti_propagation *taken = s->out, *other;
    uint32_t clash = clashing(&taken->bound);
    dti_bound bound = taken->bound;
    assignment best = s->best[0];
    bool found = true;
    if (!clash) return true;
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
static int written_clash(const search *s)
{
    uint32_t clash = clashing(&s->out->bound);
    for (int i = 0; i < s->ask->writes; i++)
        if (clash >> i & 1) return i;
    return -1;
}

/* What is written does not move: where it clashes the others are unsplit. */
static bool search_bound(search *s)
{
    int kept = written_clash(s);
    dti_bound bound = s->out->bound;
    return kept < 0 ? search_all(s) && settle_clashes(s) : keep_one(s, &bound, clashing(&bound), kept);
}

bool dti_propagate(dt_context *ctx, const dti_ask *ask, int wanted, dti_propagation *out)
{
    search *s = malloc(sizeof *s);
    out->mesh = NULL;
    if (!s) return dti_fail(ctx, DT_ERR_MEMORY, "no memory to propagate placements"), false;
    memset(s, 0, offsetof(search, dim));
    s->ctx = ctx;
    s->ask = ask;
    s->rule = ask->rule;
    s->out = out;
    s->wanted = wanted;
    bool found = find_mesh(s) && bind(s, NULL) && check_written(s) && search_bound(s);
    free(s);
    return found;
}
