/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a rank are drawn for partial operands, and their combination is the global value; so nothing has to be
 * taken apart. Numbers are small integers of both signs. */
#include "oracle.h"

#include <math.h>
#include <string.h>

#include "placements/cut.h"

enum { DRAWS = 8 };

typedef struct array { int n; int64_t size[ORACLE_DIMS]; double v[ORACLE_ELEMENTS]; } array;

typedef struct range { int64_t lo, hi; } range;

typedef struct world {                 /* one draw                                                                 */
    const oracle_op *op;
    const bound_parts *parts;
    const dti_strategy *s;
    array global[3], local[ORACLE_RANKS][3];
    range range[ORACLE_RANKS][4];      /* of each letter on each rank                                              */
} world;

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static int letter_index(const oracle_op *op, char letter) { return (int)(strchr(op->letters, letter) - op->letters); }

/* The letter of the op that a bound factor is: by its name, or by its place among those of "...". */
static char letter_of_factor(const world *w, int factor)
{
    int number = w->parts->bound.factor[factor].letter, rule_letters = w->parts->rule.letter_count;
    return number < rule_letters ? w->parts->rule.letter[number].name : (char)('A' + number - rule_letters);
}

static range cut(int64_t n, int rank)
{
    return (range){ dti_cut(n, ORACLE_RANKS, rank), dti_cut(n, ORACLE_RANKS, rank + 1) };
}

/* What a place leaves of a letter on a rank. */
static range place_range(const world *w, dti_place place, char letter, int rank)
{
    int64_t n = letter == '.' ? 1 : w->op->size[letter_index(w->op, letter)];
    bool split = place.what == DTI_PLACE_S && letter_of_factor(w, place.factor) == letter;
    return split ? cut(n, rank) : (range){ 0, n };
}

static int operand_count(const oracle_op *op)
{
    int n = 0;
    while (n < 3 && op->operand[n]) n++;
    return n;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static int64_t elements(const array *a)
{
    int64_t n = 1;
    for (int d = 0; d < a->n; d++) n *= a->size[d];
    return n;
}

static array array_of(const oracle_op *op, const char *letters)
{
    array a;
    memset(&a, 0, sizeof a);
    for (a.n = 0; letters[a.n]; a.n++)
        a.size[a.n] = letters[a.n] == '.' ? 1 : op->size[letter_index(op, letters[a.n])];
    return a;
}

/* Row-major offset of the element at the letters' indices, counted from the local beginnings. */
static int64_t offset(const oracle_op *op, const array *a, const char *letters, const int64_t *index,
                      const range *begin)
{
    int64_t at = 0;
    for (int d = 0; d < a->n; d++) {
        int letter = letters[d] == '.' ? -1 : letter_index(op, letters[d]);
        at = at * a->size[d] + (letter < 0 ? 0 : index[letter] - begin[letter].lo);
    }
    return at;
}

/* The part of an array that lies in ranges of its dims. */
static array part(const array *a, const range *r)
{
    array out = *a;
    for (int d = 0; d < a->n; d++) out.size[d] = r[d].hi - r[d].lo;
    for (int64_t e = 0; e < elements(&out); e++) {
        int64_t rest = e, from = 0, stride = 1;
        for (int d = a->n - 1; d >= 0; d--) {
            from += (r[d].lo + rest % out.size[d]) * stride;
            rest /= out.size[d];
            stride *= a->size[d];
        }
        out.v[e] = a->v[from];
    }
    return out;
}

static double combine(dti_partial kind, double a, double b)
{
    switch (kind) {
    case DTI_MAX: return fmax(a, b);
    case DTI_MIN: return fmin(a, b);
    case DTI_PROD: return a * b;
    case DTI_AVG: return (a + b) / 2;
    default: return a + b;
    }
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static double draw(const oracle_op *op, int operand, unsigned *seed)
{
    static const double values[] = { -3, -2, -1, 1, 2, 3 };
    if (op->choice && operand == 0) return below(seed, 2);
    if (op->index && operand == 1) return below(seed, 3);
    return values[below(seed, 6)];
}

static void draw_operand(world *w, int o, unsigned *seed)
{
    dti_place place = w->s->operand[o];
    array one = array_of(w->op, w->op->operand[o]), other = one;
    w->global[o] = one;
    for (int64_t e = 0; e < elements(&one); e++) {
        one.v[e] = draw(w->op, o, seed);
        other.v[e] = draw(w->op, o, seed);
        w->global[o].v[e] = one.v[e];
        if (place.what == DTI_PLACE_P)
            w->global[o].v[e] = combine((dti_partial)place.kind, one.v[e], other.v[e]);
    }
    for (int rank = 0; rank < ORACLE_RANKS; rank++) {
        range r[ORACLE_DIMS];
        for (int d = 0; d < one.n; d++) r[d] = place_range(w, place, w->op->operand[o][d], rank);
        w->local[rank][o] = part(place.what == DTI_PLACE_P && rank ? &other : &one, r);
    }
}

/* What a strategy says is done to operands before the kernel runs. */
static void prepare(world *w)
{
    for (int rank = 0; rank < ORACLE_RANKS; rank++)
        for (int o = 0; o < operand_count(w->op); o++)
            for (int64_t e = 0; e < elements(&w->local[rank][o]); e++) {
                if (rank && (w->s->lift >> o & 1)) w->local[rank][o].v[e] = 0;
                if (w->s->rescale >> o & 1) w->local[rank][o].v[e] /= ORACLE_RANKS;
            }
}

/* Is an operand split by a letter that it has not? */
static bool is_no_placement(const world *w)
{
    for (int o = 0; o < operand_count(w->op); o++) {
        dti_place place = w->s->operand[o];
        if (place.what == DTI_PLACE_S && !strchr(w->op->operand[o], letter_of_factor(w, place.factor))) return true;
    }
    return false;
}

/* Ranges of letters on a rank: operands that have one must agree. false: there is no such kernel call. */
static bool find_ranges(world *w, int rank)
{
    for (int i = 0; w->op->letters[i]; i++) {
        char letter = w->op->letters[i];
        range found = place_range(w, w->s->fresh, letter, rank);
        bool known = false;
        for (int o = 0; o < operand_count(w->op); o++) {
            if (!strchr(w->op->operand[o], letter)) continue;
            range own = place_range(w, w->s->operand[o], letter, rank);
            if (known && (own.lo != found.lo || own.hi != found.hi)) return false;
            found = own;
            known = true;
        }
        w->range[rank][i] = found;
    }
    return true;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct call { const array *in; const range *range; double number; } call; /* one kernel call               */

static void fetch(const oracle_op *op, const call *c, const int64_t *index, double *value)
{
    for (int o = 0; o < operand_count(op); o++)
        value[o] = c->in[o].v[offset(op, &c->in[o], op->operand[o], index, c->range)];
}

static bool is_reduced(const oracle_op *op, int letter) { return !strchr(op->result, op->letters[letter]); }

/* Next index within the ranges, over reduced letters or over the others; false: there is none. */
static bool next(const oracle_op *op, const range *r, bool reduced, int64_t *index)
{
    for (int i = (int)strlen(op->letters) - 1; i >= 0; i--) {
        if (is_reduced(op, i) != reduced) continue;
        if (++index[i] < r[i].hi) return true;
        index[i] = r[i].lo;
    }
    return false;
}

static bool is_empty(const oracle_op *op, const range *r, bool reduced)
{
    for (int i = 0; op->letters[i]; i++)
        if (is_reduced(op, i) == reduced && r[i].lo == r[i].hi) return true;
    return false;
}

static double reduce(const oracle_op *op, const call *c, int64_t *index)
{
    double total = op->reduce == DTI_MAX ? -INFINITY : op->reduce == DTI_MIN ? INFINITY : op->reduce == DTI_PROD;
    double value[3] = { 0 };
    bool more = !is_empty(op, c->range, true);
    for (; more; more = next(op, c->range, true, index)) {
        fetch(op, c, index, value);
        total = combine(op->reduce, total, op->inside(value, index));
    }
    for (int i = 0; op->divide && op->letters[i]; i++)
        if (is_reduced(op, i)) total /= (double)op->size[i];
    if (op->outside) {
        fetch(op, c, index, value);
        total += op->outside(value);
    }
    return total + c->number;
}

static array run(const oracle_op *op, const call *c)
{
    array out = array_of(op, op->result);
    int64_t index[4];
    for (int i = 0; op->letters[i]; i++) index[i] = c->range[i].lo;
    for (int d = 0; d < out.n; d++) {
        const range *r = &c->range[letter_index(op, op->result[d])];
        out.size[d] = r->hi - r->lo;
    }
    bool more = !is_empty(op, c->range, false);
    for (; more; more = next(op, c->range, false, index))
        out.v[offset(op, &out, op->result, index, c->range)] = reduce(op, c, index);
    return out;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool same(const array *a, const array *b)
{
    for (int d = 0; d < a->n; d++)
        if (a->size[d] != b->size[d]) return false;
    for (int64_t e = 0; e < elements(a); e++)
        if (!(fabs(a->v[e] - b->v[e]) <= 1e-9 * (1 + fabs(a->v[e])))) return false;
    return true;
}

static bool is_claimed(const world *w, const array *global, const array *local)
{
    dti_place place = w->s->result[0];
    for (int rank = 0; rank < ORACLE_RANKS; rank++) {
        range r[ORACLE_DIMS];
        for (int d = 0; d < global->n; d++) r[d] = place_range(w, place, w->op->result[d], rank);
        array want = part(global, r);
        if (place.what != DTI_PLACE_P && !same(&want, &local[rank])) return false;
        for (int d = 0; d < global->n; d++)
            if (local[rank].size[d] != want.size[d]) return false;
    }
    if (place.what != DTI_PLACE_P) return true;
    array both = local[0];
    for (int64_t e = 0; e < elements(&both); e++)
        both.v[e] = combine((dti_partial)place.kind, local[0].v[e], local[1].v[e]);
    return same(global, &both);
}

static bool draw_holds(world *w, unsigned *seed)
{
    range whole[4] = { { 0, 0 } };
    array local[ORACLE_RANKS];
    for (int i = 0; w->op->letters[i]; i++) whole[i] = (range){ 0, w->op->size[i] };
    for (int o = 0; o < operand_count(w->op); o++) draw_operand(w, o, seed);
    prepare(w);
    for (int rank = 0; rank < ORACLE_RANKS; rank++) {
        if (!find_ranges(w, rank)) return false;
        double number = rank && w->s->lift_number ? 0 : w->op->number;
        local[rank] = run(w->op, &(call){ w->local[rank], w->range[rank], number });
    }
    array global = run(w->op, &(call){ w->global, whole, w->op->number });
    return is_claimed(w, &global, local);
}

bool oracle_holds(const oracle_op *op, const bound_parts *parts, const dti_strategy *strategy)
{
    unsigned seed = 1;
    for (int i = 0; i < DRAWS; i++) {
        world w = { .op = op, .parts = parts, .s = strategy };
        if (is_no_placement(&w) || !draw_holds(&w, &seed)) return false;
    }
    return true;
}
