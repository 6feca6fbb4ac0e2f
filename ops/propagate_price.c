/* SPDX-License-Identifier: Apache-2.0
 *
 * What an assignment costs, in integers: bytes of the busiest rank at the price of the slowest link, and its share of
 * the work. */
#include "ops/assigning.h"

/* Orders of magnitude of an accelerator, as the link classes' prices are: 400 TFLOP/s, 2 TB/s. */
enum { FLOPS_PER_NS = 400000, BYTES_PER_NS = 2000 };

/* Into how many pieces a mesh dim splits a factor, as far as there are elements for them. */
static int64_t pieces(const dti_assigning *s, int m, dti_place place)
{
    int64_t size = s->mesh->dims[m].size;
    int64_t elements = place.factor < 0 ? size : s->out->bound.factor[place.factor].size;
    return elements < 1 ? 1 : elements < size ? elements : size;
}

/* n / by; mostly by is a power of two, and a division takes as long as the rest of a price. */
static int64_t over(int64_t n, int64_t by)
{
    return by & (by - 1) ? n / by : n >> __builtin_ctzll((unsigned long long)by);
}

/* What the busiest rank receives of an operand along all mesh dims: sums of P first, of its part as it is given; then
 * what it is to hold and does not. */
static int64_t operand_bytes(const dti_assigning *s, int i, const dti_tally *t)
{
    return t->messages ? (t->given * (t->summed - 1) + t->part - t->kept) * s->element_bytes[i] : 0;
}

/* Field by field: what was just written that way is slow to read as a whole. */
static void add_dim(const dti_assigning *s, int i, int m, const dti_tally *before, dti_tally *t)
{
    dti_place given = s->given[i][m], used = s->dim[m].strategy[s->chosen[m]].operand[i];
    int64_t size = s->mesh->dims[m].size, parts = used.what == DTI_PLACE_S ? pieces(s, m, used) : 1;
    bool moves = given.what != DTI_PLACE_R && !dti_place_same(given, used), sums = moves && given.what == DTI_PLACE_P;
    bool lacks = moves && (given.what == DTI_PLACE_S || used.what == DTI_PLACE_R);
    int64_t holders = given.what == DTI_PLACE_S ? pieces(s, m, given) : sums ? size : 1;
    t->part = over(before->part, parts);
    t->kept = over(before->kept, lacks ? parts * size : parts);
    t->given = over(before->given, holders);
    t->summed = sums ? before->summed * size : before->summed;
    t->messages = moves ? before->messages + size - 1 : before->messages;
    t->slowest = moves && s->link[m] < before->slowest ? s->link[m] : before->slowest;
}

/* Along all mesh dims: mostly the last alone has changed. */
static const dti_tally *tally_operand(dti_assigning *s, int i)
{
    dti_tally *t = s->tally[i];
    if (s->told[i] == 0)
        t[0] = (dti_tally){ .part = s->elements[i], .kept = s->elements[i], .given = s->elements[i], .summed = 1,
                            .slowest = s->levels - 1 };
    for (int m = s->told[i]; m < s->mesh->dim_count; m++) add_dim(s, i, m, &t[m], &t[m + 1]);
    s->told[i] = s->mesh->dim_count;
    return &t[s->told[i]];
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

void dti_assigning_share(dti_assigning *s, int m)
{
    for (int k = 0; k < s->dim[m].count; k++) {
        const dti_strategy *strategy = &s->dim[m].strategy[k];
        dti_place split = strategy->fresh;
        for (int i = 0; i < s->rule->operand_count; i++)
            if (strategy->operand[i].what == DTI_PLACE_S) split = strategy->operand[i];
        s->dim[m].share[k] = split.what == DTI_PLACE_S ? pieces(s, m, split) : 1;
    }
}

int64_t dti_assigning_work_ns(const dti_assigning *s)
{
    int64_t compute = s->ask->flops / FLOPS_PER_NS, memory = s->touched / BYTES_PER_NS;
    return compute > memory ? compute : memory;
}

/* One rank's share of the work. */
static int64_t share_ns(const dti_assigning *s)
{
    int64_t share = 1;
    for (int m = 0; m < s->mesh->dim_count; m++) share *= s->dim[m].share[s->chosen[m]];
    return over(s->work_ns, share);
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
    a->wasteful = 0;
    for (int m = 0; m < s->mesh->dim_count; m++)
        a->wasteful += s->dim[m].free_count && s->chosen[m] >= s->dim[m].free_count;
    a->ns = share_ns(s);
    a->bytes = 0;
    for (int i = 0; i < s->rule->operand_count && !is_dearer(a, bar); i++) {
        if (!dti_assigning_has(s, i)) continue;
        const dti_tally *t = tally_operand(s, i);
        add_move(s, operand_bytes(s, i, t), (int)t->slowest, t->messages, a);
    }
    for (int r = 0; r < s->rule->result_count && s->maps && !is_dearer(a, bar); r++) {
        int slowest = s->levels - 1;
        int64_t messages = 0, bytes = pulled_bytes(s, r, &slowest, &messages);
        add_move(s, bytes, slowest, messages, a);
    }
    if (s->breaks && !is_dearer(a, bar)) {
        int slowest = s->levels - 1;
        int64_t messages, bytes = statistics_bytes(s, &slowest, &messages);
        add_move(s, bytes, slowest, messages, a);
    }
    return !is_dearer(a, bar);
}
