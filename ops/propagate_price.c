/* SPDX-License-Identifier: Apache-2.0
 *
 * What an assignment costs, in integers: bytes of the busiest rank at the price of the slowest link, and its share of
 * the work. */
#include "ops/assigning.h"

/* Orders of magnitude of an accelerator, as the link classes' prices are: 400 TFLOP/s, 2 TB/s. */
enum { FLOPS_PER_NS = 400000, BYTES_PER_NS = 2000 };

/* n / by; mostly by is a power of two, and a division takes longer than all else. */
static int64_t over(int64_t n, int64_t by)
{
    return by & (by - 1) ? n / by : n >> __builtin_ctzll((unsigned long long)by);
}

/* Into how many pieces a mesh dim splits a factor, as far as there are elements for them. */
static int64_t pieces(const dti_assigning *s, int m, dti_place place)
{
    int64_t size = s->mesh->dims[m].size;
    int64_t elements = place.factor < 0 ? size : s->out->bound.factor[place.factor].size;
    return elements < 1 ? 1 : elements < size ? elements : size;
}

/* What the busiest rank receives of an operand along all mesh dims: sums of P first, of its part as it is given; then
 * what it is to hold and does not. */
static int64_t operand_bytes(const dti_assigning *s, int i, const dti_amount *t)
{
    return (t->given * (t->summed - 1) + t->part - t->kept) * s->element_bytes[i];
}

static dti_effect effect(const dti_assigning *s, int i, int m, dti_place used)
{
    dti_place given = s->given[i][m];
    int64_t size = s->mesh->dims[m].size, parts = used.what == DTI_PLACE_S ? pieces(s, m, used) : 1;
    bool moves = given.what != DTI_PLACE_R && !dti_place_same(given, used), sums = moves && given.what == DTI_PLACE_P;
    bool lacks = moves && (given.what == DTI_PLACE_S || used.what == DTI_PLACE_R);
    int64_t holders = given.what == DTI_PLACE_S ? pieces(s, m, given) : 1;
    return (dti_effect){ (int32_t)parts, (int32_t)(lacks ? size : 1), (int32_t)(sums ? size : holders),
                         (int32_t)(sums ? size : 1), (int32_t)(moves ? size - 1 : 0),
                         moves ? s->link[m] : s->levels - 1 };
}

static void tally_dim(const dti_assigning *s, int m, const dti_tally *before, dti_tally *t)
{
    const dti_candidates *c = &s->dim[m];
    int k = s->chosen[m];
    t->share = before->share * c->share[k];
    t->wasteful = before->wasteful + (c->free_count && k >= c->free_count);
    for (int i = 0; i < s->rule->operand_count; i++) {
        const dti_effect *e = &c->effect[k][i];
        const dti_amount *x = &before->operand[i];
        dti_amount *y = &t->operand[i];
        y->part = over(x->part, e->part);
        y->kept = over(over(x->kept, e->part), e->kept);
        y->given = over(x->given, e->given);
        y->summed = x->summed * e->summed;
        y->messages = x->messages + e->messages;
        y->slowest = e->link < x->slowest ? e->link : x->slowest;
    }
}

/* Along all mesh dims: mostly the last alone has changed. */
static const dti_tally *tally(dti_assigning *s)
{
    for (; s->told < s->mesh->dim_count; s->told++) tally_dim(s, s->told, &s->tally[s->told], &s->tally[s->told + 1]);
    return &s->tally[s->told];
}

/* Does a mesh dim split a dim that goes through an index map? */
static bool splits_mapped(const dti_assigning *s, const dti_strategy *strategy)
{
    for (int i = 0; i < s->rule->operand_count; i++)
        if (strategy->operand[i].what == DTI_PLACE_S
            && s->out->bound.letter[s->out->bound.factor[strategy->operand[i].factor].letter].map >= 0) return true;
    return false;
}

/* What a rank receives of a result that is pulled: at most its part. */
static int64_t pulled_bytes(const dti_assigning *s, int r, int *slowest, int64_t *messages)
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
    return pulled ? part * (int64_t)dt_dtype_bytes(dti_assigning_dtype(s, r)) : 0;
}

/* What the busiest rank receives of sums over rows along mesh dims that split what is a row: two f64 for each, reduced
 * and gathered. */
static int64_t statistics_bytes(const dti_assigning *s, int *slowest, int64_t *messages)
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

static int64_t share(const dti_assigning *s, int m, const dti_strategy *strategy)
{
    dti_place split = strategy->fresh;
    for (int i = 0; i < s->rule->operand_count; i++)
        if (strategy->operand[i].what == DTI_PLACE_S) split = strategy->operand[i];
    return split.what == DTI_PLACE_S ? pieces(s, m, split) : 1;
}

void dti_assigning_effects(dti_assigning *s, int m)
{
    dti_candidates *c = &s->dim[m];
    for (int k = 0; k < c->count; k++) {
        c->share[k] = share(s, m, &c->strategy[k]);
        for (int i = 0; i < s->rule->operand_count; i++) c->effect[k][i] = effect(s, i, m, c->strategy[k].operand[i]);
    }
}

void dti_assigning_begin(dti_assigning *s)
{
    int64_t compute = s->ask->flops / FLOPS_PER_NS, memory = s->touched / BYTES_PER_NS;
    s->work_ns = compute > memory ? compute : memory;
    s->told = 0;
    s->tally[0].share = 1;
    s->tally[0].wasteful = 0;
    for (int i = 0; i < s->rule->operand_count; i++) {
        int64_t elements = dti_assigning_has(s, i) ? s->elements[i] : 0;
        s->tally[0].operand[i] = (dti_amount){ elements, elements, elements, 1, 0, s->levels - 1 };
    }
}

static void add_move(const dti_assigning *s, int64_t bytes, int slowest, int64_t messages, dti_assignment *a)
{
    if (bytes == 0) return;
    a->bytes += bytes;
    a->ns += dti_price_link(&s->prices[slowest], bytes, messages);
}

static bool is_dearer(const dti_assignment *a, const dti_assignment *bar)
{
    return bar && (a->wasteful != bar->wasteful ? a->wasteful > bar->wasteful : a->ns > bar->ns);
}

bool dti_assigning_price(dti_assigning *s, const dti_assignment *bar, dti_assignment *a)
{
    const dti_tally *t = tally(s);
    a->wasteful = t->wasteful;
    a->ns = over(s->work_ns, t->share);
    a->bytes = 0;
    for (int i = 0; i < s->rule->operand_count; i++) {
        const dti_amount *x = &t->operand[i];
        add_move(s, operand_bytes(s, i, x), (int)x->slowest, x->messages, a);
    }
    for (int r = 0; r < s->rule->result_count && s->maps; r++) {
        int slowest = s->levels - 1;
        int64_t messages = 0, bytes = pulled_bytes(s, r, &slowest, &messages);
        add_move(s, bytes, slowest, messages, a);
    }
    if (s->breaks) {
        int slowest = s->levels - 1;
        int64_t messages, bytes = statistics_bytes(s, &slowest, &messages);
        add_move(s, bytes, slowest, messages, a);
    }
    return !is_dearer(a, bar);
}
