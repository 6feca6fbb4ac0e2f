/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding in four steps, each of which trusts the one before: how many dims; "..." ; sizes of letters; factors of
 * letters. Then the results are looked at. No placement is. Invariant: in a bound rule, the factors of a letter
 * multiply to its size, and so do the dims of each operand that is there. */
#include "ops/bind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/pen.h"

enum { UNKNOWN = -1, ATTRIBUTES = -1 };

typedef struct binding {
    dt_context *ctx;
    const dti_rule *rule;
    const dti_rule_call *call;
    dti_bound *bound;
    int from[DTI_MAX_BOUND];           /* the operand a letter's size comes from; ATTRIBUTES                       */
} binding;

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void put_call(dti_pen *pen, const binding *b)
{
    dti_put(pen, "%s(", dti_rule_op(b->rule));
    for (int o = 0; o < b->rule->operand_count; o++) {
        dti_put(pen, "%s%s", o ? ", " : "", dti_rule_name(b->rule, o));
        if (b->call->operand[o]) dti_put_sizes(pen, b->call->operand[o]);
        else dti_put(pen, "=none");
    }
    dti_put(pen, ")");
}

/* Fail; the message begins with the call. Returns false. */
static bool DT_PRINTF(3, 4) refuse(const binding *b, dt_status status, const char *format, ...)
{
    char call[512], message[384];
    dti_pen pen = { call, sizeof call, 0 };
    va_list args;
    put_call(&pen, b);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    dti_fail(b->ctx, status, "%s%s: %s", call, pen.at < sizeof call ? "" : "...", message);
    return false;
}

static const char *from_text(const binding *b, int letter)
{
    return b->from[letter] == ATTRIBUTES ? "the attributes" : dti_rule_name(b->rule, b->from[letter]);
}

/* A product of a term as it is written: "(g r)". */
typedef struct product_text { char text[64]; } product_text;

static product_text text_of(const dti_rule *rule, const dti_term *term, int dim)
{
    product_text out;
    dti_pen pen = { out.text, sizeof out.text, 0 };
    for (int i = term->first[dim]; i < term->first[dim + 1]; i++)
        dti_put(&pen, "%s%c", i > term->first[dim] ? " " : "(", rule->letter[term->letter[i]].name);
    dti_put(&pen, ")");
    return out;
}

/* ---- how many dims ----------------------------------------------------------------------------------------------- */

static bool refuse_dims(const binding *b, int operand)
{
    char text[128];
    dti_pen pen = { text, sizeof text, 0 };
    const dti_term *term = &b->rule->operand[operand];
    dti_put_term(&pen, b->rule, term);
    return refuse(b, DT_ERR_SHAPE, "expected %s%d dim%s for %s (%s), got %d", term->batch ? "at least " : "",
                  term->dim_count, term->dim_count == 1 ? "" : "s", dti_rule_name(b->rule, operand),
                  text[0] ? text : "a scalar", b->call->operand[operand]->dim_count);
}

static bool count_dims(binding *b)
{
    dti_bound *bound = b->bound;
    for (int o = 0; o < b->rule->operand_count; o++) {
        const dti_term *term = &b->rule->operand[o];
        const dti_form *form = b->call->operand[o];
        if (!form && term->optional) continue;
        if (!form) return refuse(b, DT_ERR_ARG, "expected a tensor for %s, got none", dti_rule_name(b->rule, o));
        int more = form->dim_count - term->dim_count;
        if (more < 0 || (more > 0 && !term->batch)) return refuse_dims(b, o);
        bound->present |= 1u << o;
        bound->operand_batch[o] = more;
        if (more > bound->batch_count) bound->batch_count = more;
    }
    return true;
}

/* ---- "..." ------------------------------------------------------------------------------------------------------- */

/* Which dim of an operand lies under dim i of "..."; negative: none, it has fewer. */
static int batch_dim(const dti_bound *bound, int operand, int i)
{
    return i - (bound->batch_count - bound->operand_batch[operand]);
}

static bool is_batched(const binding *b, int operand)
{
    return (b->bound->present >> operand & 1) && b->rule->operand[operand].batch;
}

/* The size under dim i of "..." in an operand; 1 where it has none. */
static int64_t batch_size(const binding *b, int operand, int i)
{
    int dim = batch_dim(b->bound, operand, i);
    return dim < 0 ? 1 : dti_form_dim(b->call->operand[operand], dim);
}

static bool fit_batch(binding *b, int i)
{
    int number = b->rule->letter_count + i;
    dti_bound_letter *letter = &b->bound->letter[number];
    letter->size = 1;
    for (int o = 0; o < b->rule->operand_count; o++) {
        int64_t size = is_batched(b, o) ? batch_size(b, o, i) : 1;
        if (size == 1) continue;
        if (letter->size != 1 && letter->size != size)
            return refuse(b, DT_ERR_SHAPE, "expected leading dims that broadcast, got %lld in %s and %lld in %s",
                          (long long)letter->size, from_text(b, number), (long long)size, dti_rule_name(b->rule, o));
        letter->size = size;
        b->from[number] = o;
    }
    return true;
}

/* Attributes may stretch, not shrink. */
static bool fit_asked_batch(binding *b, int i)
{
    dti_bound_letter *letter = &b->bound->letter[b->rule->letter_count + i];
    int64_t asked = b->call->batch->dim[i];
    if (letter->size != 1 && letter->size != asked)
        return refuse(b, DT_ERR_SHAPE, "expected leading dims that broadcast to those asked for, got %lld in %s for "
                      "%lld", (long long)letter->size, from_text(b, b->rule->letter_count + i), (long long)asked);
    letter->size = asked;
    return true;
}

static void note_batch(binding *b, int i)
{
    dti_bound_letter *letter = &b->bound->letter[b->rule->letter_count + i];
    for (int o = 0; o < b->rule->operand_count; o++) {
        if (!is_batched(b, o)) continue;
        bool has = batch_dim(b->bound, o, i) >= 0 && batch_size(b, o, i) == letter->size;
        *(has ? &letter->operands : &letter->stretched) |= 1u << o;
    }
    for (int r = 0; r < b->rule->result_count; r++) letter->results |= (uint32_t)b->rule->result[r].batch << r;
}

static bool bind_batch(binding *b)
{
    dti_bound *bound = b->bound;
    const dt_shape *asked = b->call->batch;
    if (asked && asked->n < bound->batch_count)
        return refuse(b, DT_ERR_SHAPE, "expected at most %d leading dims, as asked for, got %d", asked->n,
                      bound->batch_count);
    if (asked) bound->batch_count = asked->n;
    bound->letter_count = b->rule->letter_count + bound->batch_count;
    for (int i = 0; i < bound->batch_count; i++) {
        if (!fit_batch(b, i) || (asked && !fit_asked_batch(b, i))) return false;
        note_batch(b, i);
    }
    return true;
}

/* ---- sizes of letters -------------------------------------------------------------------------------------------- */

static bool set_size(binding *b, int letter, int64_t size, int from)
{
    int64_t *known = &b->bound->letter[letter].size;
    if (*known == UNKNOWN) {
        *known = size;
        b->from[letter] = from;
    }
    if (*known == size) return true;
    return refuse(b, DT_ERR_SHAPE, "expected one size for %c, got %lld in %s and %lld in %s",
                  b->rule->letter[letter].name, (long long)*known, from_text(b, letter), (long long)size,
                  from == ATTRIBUTES ? "the attributes" : dti_rule_name(b->rule, from));
}

/* The first letter of a name. */
static int first_named(const dti_rule *rule, char name)
{
    int i = 0;
    while (rule->letter[i].name != name) i++;
    return i;
}

static void begin_letters(binding *b)
{
    for (int i = 0; i < b->rule->letter_count; i++) {
        dti_bound_letter *letter = &b->bound->letter[i];
        if (b->rule->letter[i].flags & DTI_LETTER_MAPPED) letter->map = first_named(b->rule, b->rule->letter[i].name);
        letter->size = UNKNOWN;
        letter->operands = b->rule->letter[i].operands & b->bound->present;
        letter->results = b->rule->letter[i].results;
    }
}

static bool take_attributes(binding *b)
{
    for (int i = 0; i < b->call->size_count; i++) {
        dti_letter_size given = b->call->sizes[i];
        int letter = 0;
        while (letter < b->rule->letter_count && (b->rule->letter[letter].name != given.letter
                                                  || b->rule->letter[letter].number != given.number)) letter++;
        if (letter == b->rule->letter_count)
            return refuse(b, DT_ERR_ARG, "the attributes give %c a size, but the rule has no such letter",
                          given.letter);
        if (!set_size(b, letter, given.size, ATTRIBUTES)) return false;
    }
    return true;
}

/* Dim d of a term, bound to a dim of an operand. */
typedef struct bound_dim { int operand, dim; const dti_term *term; const dti_form *form; int form_dim; } bound_dim;

static bound_dim dim_of(const binding *b, int operand, int dim)
{
    return (bound_dim){ operand, dim, &b->rule->operand[operand], b->call->operand[operand],
                        b->bound->operand_batch[operand] + dim };
}

static int letters_of(const bound_dim *d) { return d->term->first[d->dim + 1] - d->term->first[d->dim]; }

typedef bool dim_fn(binding *b, const bound_dim *dim, bool *progress);

static bool for_dims(binding *b, dim_fn *fn, bool *progress)
{
    for (int o = 0; o < b->rule->operand_count; o++)
        for (int d = 0; (b->bound->present >> o & 1) && d < b->rule->operand[o].dim_count; d++) {
            bound_dim dim = dim_of(b, o, d);
            if (!fn(b, &dim, progress)) return false;
        }
    return true;
}

static bool take_plain(binding *b, const bound_dim *d, bool *progress)
{
    (void)progress;
    if (letters_of(d) > 1) return true;
    return set_size(b, d->term->letter[d->term->first[d->dim]], dti_form_dim(d->form, d->form_dim), d->operand);
}

typedef struct rest { int unknown, count; int64_t size; bool divides; } rest; /* of a product; unknown: one letter */

/* What the known letters of a product leave of its size. */
static rest rest_of(const binding *b, const bound_dim *d)
{
    rest r = { UNKNOWN, 0, dti_form_dim(d->form, d->form_dim), true };
    bool empty = false;
    for (int i = d->term->first[d->dim]; i < d->term->first[d->dim + 1]; i++) {
        int64_t size = b->bound->letter[d->term->letter[i]].size;
        if (size == UNKNOWN) {
            r.unknown = d->term->letter[i];
            r.count++;
        } else if (size == 0) empty = true;
        else {
            r.divides = r.divides && r.size % size == 0;
            r.size /= size;
        }
    }
    if (empty) r.divides = r.size == 0;                                /* and an unknown letter may be anything    */
    if (empty) r.unknown = UNKNOWN;
    if (empty && r.divides) r.size = 1;
    return r;
}

static bool refuse_product(const binding *b, const bound_dim *d)
{
    product_text text = text_of(b->rule, d->term, d->dim);
    char known[256];
    dti_pen pen = { known, sizeof known, 0 };
    for (int i = d->term->first[d->dim]; i < d->term->first[d->dim + 1]; i++) {
        int letter = d->term->letter[i];
        if (b->bound->letter[letter].size == UNKNOWN) continue;
        dti_put(&pen, "%s%c = %lld", pen.at ? ", " : "", b->rule->letter[letter].name,
                (long long)b->bound->letter[letter].size);
    }
    return refuse(b, DT_ERR_SHAPE, "expected dim %d of %s to be %s with %s, got %lld", d->form_dim,
                  dti_rule_name(b->rule, d->operand), text.text, known,
                  (long long)dti_form_dim(d->form, d->form_dim));
}

/* One unknown letter of a product is what the others leave. */
static bool take_rest(binding *b, const bound_dim *d, bool *progress)
{
    if (letters_of(d) == 1) return true;
    rest r = rest_of(b, d);
    if (!r.divides || (r.count == 0 && r.size != 1)) return refuse_product(b, d);
    if (r.count != 1 || r.unknown == UNKNOWN) return true;
    *progress = true;
    return set_size(b, r.unknown, r.size, d->operand);
}

/* Nothing known leaves one letter: the first product whose operand has as many factors as letters says it itself. */
static bool take_declared(binding *b, const bound_dim *d, bool *progress)
{
    int first = d->form->factor_first[d->form_dim], count = d->form->factor_first[d->form_dim + 1] - first;
    if (letters_of(d) == 1 || *progress || letters_of(d) != count || rest_of(b, d).count == 0) return true;
    *progress = true;
    for (int i = 0; i < count; i++)
        if (!set_size(b, d->term->letter[d->term->first[d->dim] + i], d->form->size[first + i], d->operand))
            return false;
    return true;
}

static bool all_taken(binding *b, const bound_dim *d, bool *progress)
{
    (void)progress;
    if (letters_of(d) == 1 || rest_of(b, d).count == 0) return true;
    product_text text = text_of(b->rule, d->term, d->dim);
    return refuse(b, DT_ERR_SHAPE, "expected sizes for %s: nothing takes dim %d of %s, %lld, apart", text.text,
                  d->form_dim, dti_rule_name(b->rule, d->operand), (long long)dti_form_dim(d->form, d->form_dim));
}

static bool take_products(binding *b)
{
    bool progress = true;
    while (progress) {
        progress = false;
        if (!for_dims(b, take_rest, &progress)) return false;
        if (!progress && !for_dims(b, take_declared, &progress)) return false;
    }
    return for_dims(b, all_taken, &progress);
}

static bool all_known(const binding *b)
{
    for (int i = 0; i < b->rule->letter_count; i++)
        if (b->bound->letter[i].size == UNKNOWN && b->bound->letter[i].results)
            return refuse(b, DT_ERR_SHAPE, "expected a size for %c, got none: no operand has it",
                          b->rule->letter[i].name);
    return true;
}

static bool bind_letters(binding *b)
{
    begin_letters(b);
    return take_attributes(b) && for_dims(b, take_plain, NULL) && take_products(b) && all_known(b);
}

/* ---- factors of letters ------------------------------------------------------------------------------------------ */

typedef struct factors { int n; int64_t size[DT_MAX_FACTORS]; int8_t owner[DT_MAX_FACTORS]; } factors;

static bool add_factor(factors *f, int64_t size, int owner)
{
    if (f->n == DT_MAX_FACTORS) return false;
    f->owner[f->n] = (int8_t)owner;
    f->size[f->n++] = size;
    return true;
}

/* The factor that two lists have next in common, where x and y remain of theirs; -1: none. */
static int64_t next_common(int64_t x, int64_t y)
{
    if (x == y) return x;
    if (x && y % x == 0) return x;
    return y && x % y == 0 ? y : -1;
}

/* Are the factors of one owner a product of this size? */
static bool multiplies_to(const factors *f, int owner, int64_t size)
{
    bool empty = false;
    int64_t left = size;
    for (int i = 0; i < f->n; i++) {
        if (f->owner[i] != owner) continue;
        empty = empty || f->size[i] == 0;
        if (size && (f->size[i] == 0 || left % f->size[i] != 0)) return false;
        if (size) left /= f->size[i];
    }
    return size ? left == 1 : empty;
}

/* What is left of one list when the other ends is ones; of an empty dim anything that an empty letter can take. */
static bool add_rest(const factors *a, int i, int64_t x, const factors *b, int j, int64_t y, factors *out)
{
    for (; i < a->n; x = ++i < a->n ? a->size[i] : 0)
        if (!add_factor(out, x, b->n - 1)) return false;
    for (; j < b->n; y = ++j < b->n ? b->size[j] : 0)
        if (!add_factor(out, y, j)) return false;
    for (j = 0; j < b->n; j++)
        if (!multiplies_to(out, j, b->size[j])) return false;
    return true;
}

/* The common refinement of two products of one size; owner says which factor of b each is in. false: there is none. */
static bool refine(const factors *a, const factors *b, factors *out)
{
    int i = 0, j = 0;
    int64_t x = a->size[0], y = b->size[0];
    out->n = 0;
    while (i < a->n && j < b->n) {
        int64_t common = next_common(x, y);
        if (common < 0 || !add_factor(out, common, j)) return false;
        bool x_ends = x == common, y_ends = y == common;
        if (!x_ends) x /= common;
        else x = ++i < a->n ? a->size[i] : 0;
        if (!y_ends) y /= common;
        else y = ++j < b->n ? b->size[j] : 0;
    }
    return add_rest(a, i, x, b, j, y, out);
}

static factors dim_factors(const dti_form *form, int dim)
{
    factors f = { 0 };
    for (int i = form->factor_first[dim]; i < form->factor_first[dim + 1]; i++) add_factor(&f, form->size[i], 0);
    return f;
}

/* The part of a product's dim that is one of its letters, number *part* among them. false: factors cross letters. */
static bool part_of(const binding *b, const bound_dim *d, int part, factors *own)
{
    factors dim = dim_factors(d->form, d->form_dim), letters = { 0 }, both;
    for (int i = d->term->first[d->dim]; i < d->term->first[d->dim + 1]; i++)
        add_factor(&letters, b->bound->letter[d->term->letter[i]].size, 0);
    if (!refine(&dim, &letters, &both)) return false;
    own->n = 0;
    for (int i = 0; i < both.n; i++)
        if (both.owner[i] == part) add_factor(own, both.size[i], 0);
    return true;
}

/* An operand's own factors of a letter it has. */
static bool named_factors(const binding *b, int operand, int letter, factors *own)
{
    const dti_term *term = &b->rule->operand[operand];
    for (int dim = 0; dim < term->dim_count; dim++)
        for (int i = term->first[dim]; i < term->first[dim + 1]; i++) {
            if (term->letter[i] != letter) continue;
            bound_dim d = dim_of(b, operand, dim);
            return part_of(b, &d, i - term->first[dim], own);
        }
    return false;
}

static bool own_factors(const binding *b, int operand, int letter, factors *own)
{
    if (letter < b->rule->letter_count) return named_factors(b, operand, letter, own);
    *own = dim_factors(b->call->operand[operand], batch_dim(b->bound, operand, letter - b->rule->letter_count));
    return true;
}

/* The refinement of all operands' factors of a letter; who clashes is noted in it. */
static factors common_factors(const binding *b, int number)
{
    dti_bound_letter *letter = &b->bound->letter[number];
    const factors whole = { 1, { letter->size }, { 0 } };
    factors all = whole, own, finer;
    uint32_t cut = 0;
    bool fits = true;
    if (letter->map >= 0) return whole;
    for (int o = 0; o < b->rule->operand_count; o++) {
        if (!(letter->operands >> o & 1)) continue;
        if (!own_factors(b, o, number, &own)) {
            letter->clash |= 1u << o;
            continue;
        }
        if (own.n > 1) cut |= 1u << o;
        fits = fits && refine(&all, &own, &finer);
        if (fits) all = finer;
    }
    if (fits) return all;
    letter->clash |= cut;
    return whole;
}

static bool add_bound_factor(const binding *b, int letter, int64_t size)
{
    dti_bound *bound = b->bound;
    if (bound->factor_count == DTI_MAX_BOUND_FACTORS)
        return refuse(b, DT_ERR_SHAPE, "more than %d factors of all letters", DTI_MAX_BOUND_FACTORS);
    bound->factor[bound->factor_count++] = (dti_bound_factor){ size, letter };
    return true;
}

static bool bind_factors(binding *b)
{
    for (int i = 0; i < b->bound->letter_count; i++) {
        dti_bound_letter *letter = &b->bound->letter[i];
        letter->first = letter->whole = b->bound->factor_count;
        if (letter->size == UNKNOWN) continue;
        factors all = common_factors(b, i);
        letter->count = all.n;
        for (int f = 0; f < all.n; f++)
            if (!add_bound_factor(b, i, all.size[f])) return false;
        if (all.n == 1) continue;
        letter->whole = b->bound->factor_count;
        if (!add_bound_factor(b, i, letter->size)) return false;
    }
    return true;
}

/* ---- tensors as their letters make them -------------------------------------------------------------------------- */

typedef struct tensor { const dti_term *term; int batch, operand; } tensor; /* operand -1: a result                */

static tensor operand_of(const dti_rule *rule, const dti_bound *bound, int operand)
{
    return (tensor){ &rule->operand[operand], bound->operand_batch[operand], operand };
}

static tensor result_of(const dti_rule *rule, const dti_bound *bound, int result)
{
    return (tensor){ &rule->result[result], rule->result[result].batch ? bound->batch_count : 0, -1 };
}

static bool stretches(const dti_bound *bound, const tensor *t, int letter)
{
    return t->operand >= 0 && (bound->letter[letter].stretched >> t->operand & 1);
}

static int factor_count(const dti_rule *rule, const dti_bound *bound, const tensor *t)
{
    int n = 0, batch = rule->letter_count + bound->batch_count - t->batch;
    for (int i = 0; i < t->batch; i++) n += stretches(bound, t, batch + i) ? 1 : bound->letter[batch + i].count;
    for (int i = 0; i < t->term->first[t->term->dim_count]; i++) n += bound->letter[t->term->letter[i]].count;
    return n;
}

static void put_factor(dti_bound_dims *dims, int64_t size, int factor)
{
    int *n = &dims->form.factor_first[dims->form.dim_count + 1];
    dims->form.size[*n] = size;
    dims->factor[(*n)++] = (int16_t)factor;
}

static void put_letter(const dti_bound *bound, int number, uint64_t whole, dti_bound_dims *dims)
{
    const dti_bound_letter *letter = &bound->letter[number];
    if (whole >> number & 1) put_factor(dims, letter->size, letter->whole);
    else
        for (int i = 0; i < letter->count; i++)
            put_factor(dims, bound->factor[letter->first + i].size, letter->first + i);
}

static void begin_dim(dti_bound_dims *dims)
{
    dims->form.factor_first[dims->form.dim_count + 1] = dims->form.factor_first[dims->form.dim_count];
}

static void make_dims(const dti_rule *rule, const dti_bound *bound, const tensor *t, uint64_t whole,
                      dti_bound_dims *dims)
{
    int batch = rule->letter_count + bound->batch_count - t->batch;
    memset(dims, 0, sizeof *dims);
    for (int i = 0; i < t->batch; i++, dims->form.dim_count++) {
        begin_dim(dims);
        if (stretches(bound, t, batch + i)) put_factor(dims, 1, -1);
        else put_letter(bound, batch + i, whole, dims);
    }
    for (int d = 0; d < t->term->dim_count; d++, dims->form.dim_count++) {
        begin_dim(dims);
        for (int i = t->term->first[d]; i < t->term->first[d + 1]; i++)
            put_letter(bound, t->term->letter[i], whole, dims);
    }
}

void dti_bound_operand(const dti_rule *rule, const dti_bound *bound, int operand, uint64_t whole,
                       dti_bound_dims *dims)
{
    tensor t = operand_of(rule, bound, operand);
    make_dims(rule, bound, &t, whole, dims);
}

void dti_bound_result(const dti_rule *rule, const dti_bound *bound, int result, uint64_t whole, dti_bound_dims *dims)
{
    tensor t = result_of(rule, bound, result);
    make_dims(rule, bound, &t, whole, dims);
}

dt_shape dti_bound_shape(const dti_rule *rule, const dti_bound *bound, int result)
{
    dti_bound_dims dims;
    dt_shape shape = { 0, { 0 } };
    dti_bound_result(rule, bound, result, 0, &dims);
    for (shape.n = 0; shape.n < dims.form.dim_count; shape.n++)
        shape.dim[shape.n] = dti_form_dim(&dims.form, shape.n);
    return shape;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static bool multiply(int64_t *product, int64_t size)
{
    if (size && *product > INT64_MAX / size) return false;
    *product *= size ? size : 1;                                       /* one empty dim does not excuse the others */
    return true;
}

static bool result_fits(const binding *b, int result)
{
    const dti_bound *bound = b->bound;
    tensor t = result_of(b->rule, bound, result);
    int64_t elements = 1;
    bool fits = true;
    if (t.batch + t.term->dim_count > DT_MAX_DIMS)
        return refuse(b, DT_ERR_SHAPE, "a result of %d dims, more than %d", t.batch + t.term->dim_count, DT_MAX_DIMS);
    for (int i = 0; i < t.batch; i++) fits = fits && multiply(&elements, bound->letter[b->rule->letter_count + i].size);
    for (int i = 0; i < t.term->first[t.term->dim_count]; i++)
        fits = fits && multiply(&elements, bound->letter[t.term->letter[i]].size);
    return fits || refuse(b, DT_ERR_SHAPE, "a result of more than 2^63 - 1 elements");
}

static bool factors_fit(const binding *b, tensor t, const char *name)
{
    int n = factor_count(b->rule, b->bound, &t);
    return n <= DT_MAX_FACTORS
           || refuse(b, DT_ERR_SHAPE, "%s has %d factors, more than %d", name, n, DT_MAX_FACTORS);
}

static bool fits(const binding *b)
{
    for (int o = 0; o < b->rule->operand_count; o++)
        if ((b->bound->present >> o & 1)
            && !factors_fit(b, operand_of(b->rule, b->bound, o), dti_rule_name(b->rule, o))) return false;
    for (int r = 0; r < b->rule->result_count; r++)
        if (!result_fits(b, r) || !factors_fit(b, result_of(b->rule, b->bound, r), "a result")) return false;
    return true;
}

bool dti_rule_bind(dt_context *ctx, const dti_rule *rule, const dti_rule_call *call, dti_bound *bound)
{
    binding b = { .ctx = ctx, .rule = rule, .call = call, .bound = bound };
    memset(bound, 0, sizeof *bound);
    for (int i = 0; i < DTI_MAX_BOUND; i++) {
        b.from[i] = ATTRIBUTES;
        bound->letter[i].map = -1;
    }
    return count_dims(&b) && bind_batch(&b) && bind_letters(&b) && bind_factors(&b) && fits(&b);
}

/* ---- letters through index maps ---------------------------------------------------------------------------------- */

uint32_t dti_bound_operands(const dti_bound *bound, int letter)
{
    uint32_t operands = 0;
    for (int i = 0; i < bound->letter_count; i++)
        if (dti_bound_alike(bound, i, letter)) operands |= bound->letter[i].operands;
    return operands;
}

uint32_t dti_bound_results(const dti_bound *bound, int letter)
{
    uint32_t results = 0;
    for (int i = 0; i < bound->letter_count; i++)
        if (dti_bound_alike(bound, i, letter)) results |= bound->letter[i].results;
    return results;
}

int dti_bound_operand_factor(const dti_bound *bound, int factor, int operand)
{
    for (int i = 0; i < bound->letter_count && bound->letter[bound->factor[factor].letter].map >= 0; i++)
        if (dti_bound_alike(bound, i, bound->factor[factor].letter) && (bound->letter[i].operands >> operand & 1))
            return bound->letter[i].first;
    return factor;
}

int dti_bound_result_factor(const dti_bound *bound, int factor, int result)
{
    for (int i = 0; i < bound->letter_count && bound->letter[bound->factor[factor].letter].map >= 0; i++)
        if (dti_bound_alike(bound, i, bound->factor[factor].letter) && (bound->letter[i].results >> result & 1))
            return bound->letter[i].first;
    return factor;
}

/* ---- small things ------------------------------------------------------------------------------------------------ */

void dti_form_of_shape(dt_shape shape, dti_form *form)
{
    memset(form, 0, sizeof *form);
    form->dim_count = shape.n;
    for (int d = 0; d < shape.n; d++) {
        form->size[d] = shape.dim[d];
        form->factor_first[d + 1] = d + 1;
    }
}

void dti_put_factor(dti_pen *pen, const dti_rule *rule, const dti_bound *bound, int factor)
{
    int number = bound->factor[factor].letter;
    const dti_bound_letter *letter = &bound->letter[number];
    if (number < rule->letter_count) dti_put_letter(pen, &rule->letter[number]);
    else dti_put(pen, "...[%d]", number - rule->letter_count);
    if (factor != letter->whole) dti_put(pen, ".%d", factor - letter->first);
}
