/* SPDX-License-Identifier: Apache-2.0
 *
 * A draw picks sizes, batch dims, dtypes, attributes, values. The first draws go through each list once, the rest are
 * mixed. What the row does not take is forgotten; what it takes runs on one rank, and is the reference. Invariant: a
 * call kept here has succeeded. */
#include "calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "core/context.h"
#include "core/number.h"
#include "core/pen.h"
#include "suite.h"
#include "tensor/tensor.h"

enum { SIZES = 5, MAX_DIMS = 4, RANKS = MAX_DIMS + 1, MAX_GUESSES = 25, MAX_ELEMENTS = 1500, TRIES = 30 };

/* ---- what there is to choose from -------------------------------------------------------------------------------- */

/* Sizes of letters, in their order. */
static const int64_t profiles[][SIZES] = {
    { 12, 4, 6, 2, 3 },                /* even on 2, 3, 4 ranks, and products                                      */
    { 5, 7, 3, 9, 2 },                 /* uneven                                                                   */
    { 1, 2, 3, 1, 2 }, { 2, 1, 1, 3, 1 }, /* fewer than ranks                                                      */
    { 0, 3, 2, 4, 2 }, { 3, 0, 5, 2, 1 }, /* empty                                                                 */
    { 13, 6, 2, 5, 3 },
    { 3, 5, 7, 4, 2 },                 /* uneven, but the fourth                                                   */
};

/* How operands broadcast over "..." of at least one dim. */
typedef enum batch_pattern {
    BATCH_ALIKE, BATCH_LATER_SHORTER, BATCH_FIRST_STRETCHED, BATCH_BOTH_STRETCHED
} batch_pattern;

static const dt_dtype floats[] = { DT_F64, DT_F32, DT_F64, DT_BF16, DT_F64, DT_F16 };
static const dt_dtype any[] = {
    DT_F64, DT_I64, DT_F32, DT_F64, DT_I32, DT_BF16, DT_F64, DT_U8, DT_F16, DT_BOOL,
};
static const value_kind kinds[] = { VALUES_EXACT, VALUES_EXACT, VALUES_ROUGH, VALUES_SPECIAL };
static const double numbers[] = { -1.5, 0, 2, 0.5 };
static const int64_t integers[] = { 1, 2, 0, -1, 3 };

enum { NUMBERS = -1 };                 /* in place of an operand: the attributes that are numbers                  */

/* The one thing that rows do not say: where an op is defined, or its real value. Operands of the letter i are indices,
 * from 0 or where their line begins, below the size of letter v, of the first letter where there is none. */
static const struct { const char *op; int operand; value_range range; } domains[] = {
    { "adamw_into", NUMBERS, { true, 0.25, 0.75 } }, { "adamw_into", 2, { true, 0.5, 4 } },
    { "rms_norm", NUMBERS, { true, 0, 1 } }, { "layer_norm", NUMBERS, { true, 0, 1 } },
    { "attention", NUMBERS, { true, 0, 1 } },
    { "attention_grad", NUMBERS, { true, 0.25, 1 } }, { "attention_grad", 3, { true, 3, 6 } },
    { "cross_entropy", NUMBERS, { true, 0, 1 } }, { "cross_entropy", 1, { true, -1, 0 } },
    { "cross_entropy_end", 0, { true, -1, 0 } }, { "cross_entropy_end", 2, { true, 0.5, 4 } },
    { "cross_entropy_grad", NUMBERS, { true, 0, 1 } }, { "cross_entropy_grad", 1, { true, -1, 0 } },
    { "cross_entropy_grad", 2, { true, 3, 6 } },
    { "cross_entropy_sums", NUMBERS, { true, 0, 1 } }, { "cross_entropy_sums", 1, { true, -1, 0 } },
    { "attention_mask_grad", NUMBERS, { true, 0.25, 1 } }, { "attention_mask_grad", 3, { true, 3, 6 } },
    { "attention_mask_grad", 6, { true, -4, 0 } },
    { "div_scalar", NUMBERS, { true, 0.5, 4 } }, { "dropout", NUMBERS, { true, 0, 0.75 } },
    { "div", 1, { true, 0.5, 4 } }, { "log", 0, { true, 0.5, 4 } }, { "pow", 0, { true, 0.5, 4 } },
    { "rope", NUMBERS, { true, 0.5, 4 } },
    { "rsqrt", 0, { true, 0.5, 4 } }, { "sqrt", 0, { true, 0.5, 4 } },
};

/* Texts mean something to their op alone. */
static const struct { const char *op, *text; } texts[] = {
    { "einsum", "ij,jk->ik" }, { "einsum", "bij,bjk->bik" }, { "einsum", "ij->ji" }, { "einsum", "i,i->i" },
    { "einsum", "bhqd,bkhd->bhqk" }, { "einsum", "ij,kj->ki" }, { "einsum", "i,j" }, { "einsum", "ij,ij->" },
    { "einsum", "ijk->j" }, { "einsum", "...i,...i->..." }, { "einsum", "ji,kj->ik" }, { "einsum", "ij,j->i" },
    { "einsum", "ij,jk" }, { "einsum", "ib,kjb->jb" }, { "einsum", "...ij,jk->...ik" }, { "einsum", "ijk,kl->il" },
    { "einsum", "ij,jk->" }, { "einsum", "...i" }, { "einsum", "i...,i...j->j..." }, { "einsum", "i,ij->j" },
};

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static bool is_named(const dt_op *op, const char *name)
{
    size_t n = strlen(name);
    return strncmp(op->head, name, n) == 0 && op->head[n] == '(';
}

/* The line of the table for an operand, else not given. */
static value_range domain_of(const dt_op *op, int operand)
{
    for (int i = 0; i < DT_COUNT(domains); i++)
        if (domains[i].operand == operand && is_named(op, domains[i].op)) return domains[i].range;
    return (value_range){ 0 };
}

typedef enum choice {                  /* what is chosen, from 0; attributes behind them                           */
    CHOOSE_PROFILE, CHOOSE_BATCH, CHOOSE_PATTERN, CHOOSE_DTYPE, CHOOSE_KIND, CHOOSE_ABSENT, CHOOSE_RANKS,
    CHOOSE_ATTRIBUTE, CHOOSE_COUNT = CHOOSE_ATTRIBUTE + DT_MAX_ATTRIBUTES
} choice;

typedef struct drawing {
    dt_context *ctx;
    dt_mesh *mesh;                     /* of one rank                                                              */
    const dt_op *op;
    op_calls *out;
    int number, wanted;                /* of the draw                                                              */
    bool twins;                        /* the row has numbers: draws come in pairs that differ in them alone        */
    op_call call;                      /* at hand                                                                  */
    const dt_spec *specs[CALL_OPERANDS];
    dti_attributes attributes;
    dti_asking asking;
    dti_propagation propagation;
} drawing;

static int pick(int number, int what, int n)
{
    if (number < n) return (number + what) % n;
    return (int)(dti_hash_mix((uint64_t)number, (uint64_t)what + 1) % (uint64_t)n);
}

static int choose(const drawing *d, int what, int n) { return pick(d->twins ? d->number / 2 : d->number, what, n); }

static bool op_has(const dt_op *op, dt_attribute_kind kind)
{
    for (int i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].kind == kind) return true;
    return false;
}

/* The last operand of a head with dots is there up to three times. */
static int operands_of(const drawing *d)
{
    const char *open = strchr(d->op->head, '('), *at = open;
    int n = open && open[1] != ')';
    while (at && (at = strchr(at + 1, ',')) != NULL) n++;
    return strstr(d->op->head, "...") ? n + (choose(d, CHOOSE_COUNT, 3) + 1) % 3 : n;
}

char call_dtype_letter(const dt_op *op, int operand)
{
    const char *arrow = op->dtypes ? strstr(op->dtypes, "->") : NULL;
    return arrow && op->dtypes + operand < arrow ? op->dtypes[operand] : 't';
}

static dt_dtype draw_dtype(const drawing *d, int operand)
{
    bool real = d->op->dtypes && strchr(d->op->dtypes, 'f');
    switch (call_dtype_letter(d->op, operand)) {
    case 'i': return choose(d, CHOOSE_DTYPE, 2) ? DT_I32 : DT_I64;
    case 'b': return DT_BOOL;
    default: break;
    }
    return real ? floats[choose(d, CHOOSE_DTYPE, DT_COUNT(floats))] : any[choose(d, CHOOSE_DTYPE, DT_COUNT(any))];
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void add_dim(dti_form *form, const int64_t *factors, int n)
{
    if (form->dim_count == DT_MAX_DIMS) return;
    int at = form->factor_first[form->dim_count];
    for (int f = 0; f < n && at < DT_MAX_FACTORS; f++) form->size[at++] = factors[f];
    form->factor_first[++form->dim_count] = at;
}

/* A dim of "..." of an operand: how many of all dims it is, from the left. */
static void add_batch(const drawing *d, int operand, int dims, dti_form *form)
{
    const int64_t *sizes = profiles[choose(d, CHOOSE_PROFILE, DT_COUNT(profiles))];
    batch_pattern pattern = (batch_pattern)choose(d, CHOOSE_PATTERN, BATCH_BOTH_STRETCHED + 1);
    for (int b = 0; b < dims; b++) {
        int64_t size = sizes[(d->asking.rule.letter_count + b) % SIZES];
        if (pattern == BATCH_LATER_SHORTER && operand > 0 && b == 0) continue;
        if (pattern == BATCH_FIRST_STRETCHED && operand == 0 && b == 0) size = 1;
        if (pattern == BATCH_BOTH_STRETCHED && b == operand % dims) size = 1;
        add_dim(form, &size, 1);
    }
}

static void shape_by_rule(drawing *d, int operand)
{
    const int64_t *sizes = profiles[choose(d, CHOOSE_PROFILE, DT_COUNT(profiles))];
    const dti_term *term = &d->asking.rule.operand[operand];
    dti_form *form = &d->call.form[operand];
    int32_t dtype = form->dtype;
    memset(form, 0, sizeof *form);
    form->dtype = dtype;
    if (term->batch) add_batch(d, operand, choose(d, CHOOSE_BATCH, MAX_DIMS), form);
    for (int i = 0; i < term->dim_count; i++) {
        int64_t factors[DT_MAX_FACTORS];
        int n = term->first[i + 1] - term->first[i];
        for (int f = 0; f < n; f++) factors[f] = sizes[term->letter[term->first[i] + f] % SIZES];
        add_dim(form, factors, n);
    }
}

/* Where the rule is derived, shapes come before it: all have the first sizes of the profile, each its own rank, a digit
 * of *ranks*. */
static void shape_by_guess(drawing *d, int operand, int ranks)
{
    const int64_t *sizes = profiles[choose(d, CHOOSE_PROFILE, DT_COUNT(profiles))];
    dti_form *form = &d->call.form[operand];
    int32_t dtype = form->dtype;
    memset(form, 0, sizeof *form);
    form->dtype = dtype;
    for (int i = 0; i < operand; i++) ranks /= RANKS;
    for (int k = 0; k < (ranks + 1) % RANKS && dtype; k++) add_dim(form, &sizes[k], 1);
}

static bool make_specs(drawing *d)
{
    for (int i = 0; i < d->call.n; i++) {
        dti_form form = d->call.form[i];
        if (form.dim_count > MAX_DIMS || call_count(&d->call, i) > MAX_ELEMENTS) return false;
        d->specs[i] = form.dtype ? dti_spec_intern(d->mesh, &form) : NULL;
    }
    return true;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static dt_dims draw_dims(int which, int rank)
{
    switch (rank ? which : 0) {
    case 1: return DT_DIMS(0);
    case 2: return DT_DIMS(-1);
    case 3: return rank > 1 ? DT_DIMS(-1, 0) : DT_DIMS(0);
    default: return DT_ALL;
    }
}

enum { SHAPES = 8 };

/* Sizes, or numbers of dims: a row takes what it has a meaning for. */
static dt_shape draw_shape(int which, const dt_shape *first)
{
    dt_shape shape = *first;
    int last = shape.n - 1;
    switch (which) {
    case 1:                                                            /* one more in front                        */
        if (shape.n == MAX_DIMS) break;
        memmove(shape.dim + 1, shape.dim, (size_t)shape.n++ * sizeof shape.dim[0]);
        shape.dim[0] = 2;
        break;
    case 2:                                                            /* turned round                             */
        for (int i = 0; i < shape.n; i++) shape.dim[i] = first->dim[last - i];
        break;
    case 3: return DT_SHAPE(-1);
    case 4:                                                            /* the last dim in two                      */
        if (shape.n == MAX_DIMS) break;
        shape.dim[shape.n++] = 2;
        if (last >= 0) shape.dim[last] = -1;
        break;
    case 5: return DT_SHAPE(3, -1);
    case 6:                                                            /* numbers of dims, turned on               */
        for (int i = 0; i < shape.n; i++) shape.dim[i] = (i + last) % shape.n - shape.n * (i % 2);
        break;
    case 7: return DT_SHAPE(1);
    default: break;
    }
    return shape;
}

static double draw_number(const drawing *d, int what)
{
    value_range range = domain_of(d->op, NUMBERS);
    if (!range.given) return numbers[pick(d->number, what, DT_COUNT(numbers))];
    return range.low + (range.high - range.low) * pick(d->number, what, 4) / 4;
}

static const char *draw_text(const drawing *d, int what)
{
    int own = 0;
    for (int i = 0; i < DT_COUNT(texts); i++) own += is_named(d->op, texts[i].op);
    int number = own ? choose(d, what, own) : 0;
    for (int i = 0; i < DT_COUNT(texts); i++)
        if (is_named(d->op, texts[i].op) && number-- == 0) return texts[i].text;
    return "";
}

static void draw_attribute(drawing *d, int number, const dt_shape *first)
{
    const dt_attribute *a = &d->op->attributes[number];
    void *at = d->call.attributes + a->offset;
    int what = CHOOSE_ATTRIBUTE + number;
    switch (a->kind) {
    case DT_ATTRIBUTE_INT: *(int64_t *)at = integers[choose(d, what, DT_COUNT(integers))]; break;
    case DT_ATTRIBUTE_DIM: *(int *)at = first->n ? choose(d, what, 2 * first->n) - first->n : 0; break;
    case DT_ATTRIBUTE_DIMS: *(dt_dims *)at = draw_dims(choose(d, what, 4), first->n); break;
    case DT_ATTRIBUTE_BOOL: *(bool *)at = choose(d, what, 2) != 0; break;
    case DT_ATTRIBUTE_NUMBER: *(double *)at = draw_number(d, what); break;
    case DT_ATTRIBUTE_DTYPE: *(dt_dtype *)at = any[choose(d, what, DT_COUNT(any))]; break;
    case DT_ATTRIBUTE_TEXT: snprintf(at, DT_MAX_TEXT, "%s", draw_text(d, what)); break;
    default: *(dt_shape *)at = draw_shape(choose(d, what, SHAPES), first); break;
    }
}

static void draw_attributes(drawing *d)
{
    dt_shape scalar = DT_SCALAR;
    memset(d->call.attributes, 0, sizeof d->call.attributes);
    for (int i = 0; i < d->op->attribute_count; i++)
        draw_attribute(d, i, d->specs[0] ? &d->specs[0]->shape : &scalar);
}

/* ---- does the row take it? --------------------------------------------------------------------------------------- */

static bool ask(drawing *d)
{
    dt_shape scalar = DT_SCALAR;
    return dti_attributes_read(d->ctx, d->op, d->call.attributes, d->specs[0] ? &d->specs[0]->shape : &scalar,
                               &d->attributes)
        && dti_row_ask(d->ctx, d->op, d->specs, d->call.n, &d->attributes, &d->asking);
}

static bool takes(drawing *d)
{
    bool taken = make_specs(d) && ask(d) && dti_propagate(d->ctx, &d->asking.ask, 1, &d->propagation);
    dt_context_clear(d->ctx);
    return taken;
}

static void shape_all_by_rule(drawing *d)
{
    for (int i = 0; i < d->call.n; i++)
        if (d->call.form[i].dtype) shape_by_rule(d, i);
}

/* false: the row has no rule for such ranks. */
static bool is_told(drawing *d, int ranks)
{
    for (int i = 0; i < d->call.n; i++) shape_by_guess(d, i, ranks);
    if (!make_specs(d)) return false;
    draw_attributes(d);
    bool told = ask(d);
    dt_context_clear(d->ctx);
    return told;
}

/* From the ranks that were drawn on, the first that the row has a rule for, which says what letters are alike. */
static bool draw_derived(drawing *d)
{
    int all = 1, k = 0;
    for (int i = 0; i < d->call.n; i++) all *= RANKS;
    int first = choose(d, CHOOSE_RANKS, all);
    while (k < MAX_GUESSES && !is_told(d, (first + k) % all)) k++;
    if (k == MAX_GUESSES) return false;
    if (takes(d)) return true;
    shape_all_by_rule(d);
    return takes(d);
}

static bool draw_shapes(drawing *d)
{
    if (d->op->derive) return draw_derived(d);
    shape_all_by_rule(d);
    if (!make_specs(d)) return false;
    draw_attributes(d);
    return takes(d);
}

/* A rule that is derived says it too late: it may be the last operand, but not the only one. */
static bool may_lack(const drawing *d, int operand)
{
    return d->op->derive ? operand > 0 && operand == d->call.n - 1 : d->asking.rule.operand[operand].optional;
}

static bool draw(drawing *d)
{
    memset(&d->call, 0, sizeof d->call);
    d->call.op = d->op;
    d->call.n = operands_of(d);
    d->call.kind = kinds[choose(d, CHOOSE_KIND, DT_COUNT(kinds))];
    if (d->call.n > CALL_OPERANDS) return false;
    if (!d->op->derive && !dti_rule_parse(d->ctx, &(dti_row_text){ d->op->head, d->op->rule,
                                                     d->op->polynomial ? d->op->polynomial : "none" }, &d->asking.rule))
        return false;
    for (int i = 0; i < d->call.n; i++) d->call.form[i].dtype = (int32_t)draw_dtype(d, i);
    for (int i = 0; i < d->call.n; i++)
        if (may_lack(d, i) && choose(d, CHOOSE_ABSENT, 2)) d->call.form[i].dtype = 0;
    return draw_shapes(d);
}

static bool is_known(const drawing *d)
{
    for (int k = 0; k < d->out->count; k++) {
        const op_call *other = &d->out->call[k];
        if (other->kind == d->call.kind && memcmp(other->form, d->call.form, sizeof other->form) == 0
            && memcmp(other->attributes, d->call.attributes, sizeof other->attributes) == 0) return true;
    }
    return false;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int64_t call_count(const op_call *call, int operand)
{
    int64_t n = 1;
    for (int d = 0; d < call->form[operand].dim_count; d++) n *= dti_form_dim(&call->form[operand], d);
    return n;
}

static int64_t indexed(const drawing *d)
{
    const dti_rule *rule = &d->asking.rule;
    int v = 0;
    while (v < rule->letter_count && rule->letter[v].name != 'v') v++;
    return d->propagation.bound.letter[v < rule->letter_count ? v : 0].size;
}

static value_range range_of(const drawing *d, int operand)
{
    value_range range = domain_of(d->op, operand);
    if (call_dtype_letter(d->op, operand) != 'i') return range;
    return (value_range){ true, range.low, (double)indexed(d) - 1 };
}

/* false: there is no value in the range. */
static bool fill(drawing *d, int operand)
{
    value_range range = range_of(d, operand);
    int64_t n = call_count(&d->call, operand);
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    d->call.values[operand] = values;
    if (!values || (range.given && range.high < range.low && n)) return false;
    for (int64_t e = 0; e < n; e++)
        values[e] = value_draw(d->call.kind, (dt_dtype)d->call.form[operand].dtype, range,
                               call_seed(&d->call, operand, e));
    return true;
}

static void call_fini(op_call *call)
{
    for (int i = 0; i < CALL_OPERANDS; i++) free(call->values[i]);
    for (int r = 0; r < CALL_RESULTS; r++) {
        free(call->result[r].values);
        for (int padded = 0; padded < 2; padded++) free(call->result[r].magnitude[padded]);
    }
}

void calls_free(op_calls *calls)
{
    for (int i = 0; i < calls->count; i++) call_fini(&calls->call[i]);
    free(calls->call);
    *calls = (op_calls){ 0 };
}

/* ---- on one rank ------------------------------------------------------------------------------------------------- */

static dt_tensor *tensor_of(const drawing *d, int operand, const double *values)
{
    const dt_spec *spec = d->specs[operand];
    int64_t n = call_count(&d->call, operand);
    size_t size = dt_dtype_bytes(dt_spec_dtype(spec));
    char *raw = malloc((size_t)n * size + 1);
    for (int64_t e = 0; raw && e < n; e++) dti_number_set(dt_spec_dtype(spec), values[e], raw + e * (int64_t)size);
    dt_tensor *x = raw ? dt_from_host(spec, -1, raw, (size_t)n * size) : NULL;
    free(raw);
    return x;
}

/* Values as they are, or with these signs and this much larger. */
typedef struct changed { int signs[CALL_OPERANDS]; double pad; } changed;

static double value_of(const drawing *d, int operand, int64_t e, const changed *as)
{
    double value = d->call.values[operand][e];
    bool number = d->call.form[operand].dtype != DT_BOOL && call_dtype_letter(d->op, operand) != 'i';
    return as && number ? as->signs[operand] * (fabs(value) + as->pad) : value;
}

static bool run(const drawing *d, const changed *as, const void *attributes, dt_tensor **result)
{
    dt_tensor *x[CALL_OPERANDS] = { NULL };
    for (int i = 0; i < d->call.n; i++) {
        if (!d->specs[i]) continue;
        int64_t n = call_count(&d->call, i);
        double *values = malloc((size_t)(n + 1) * sizeof *values);
        for (int64_t e = 0; values && e < n; e++) values[e] = value_of(d, i, e, as);
        x[i] = values ? tensor_of(d, i, values) : NULL;
        free(values);
    }
    return dt_apply_all(d->op, x, d->call.n, attributes, result, d->call.result_count) == DT_OK;
}

static bool keep_results(drawing *d, dt_tensor *const *y)
{
    for (int r = 0; r < d->call.result_count; r++) {
        call_result *out = &d->call.result[r];
        const dt_spec *spec = dt_tensor_spec(y[r]);
        out->dtype = dt_spec_dtype(spec);
        out->count = dti_part_count(spec, 0);
        size_t bytes = (size_t)out->count * dt_dtype_bytes(out->dtype);
        out->values = malloc(bytes + 1);
        if (!out->values || dt_tensor_to_host(y[r], -1, out->values, bytes)) return false;
    }
    return true;
}

/* Signs of operands that give all monomials one sign. An operand in none is a coefficient and counts by its size. */
static bool find_signs(const dti_rule *rule, int *signs)
{
    for (unsigned minus = 0; minus < 1u << rule->operand_count; minus++) {
        int first = 0, fits = 1;
        for (int m = 0; m < rule->monomial_count; m++) {
            bool odd = __builtin_popcount(rule->monomial[m].operands & minus) % 2 != 0;
            int sign = odd == (rule->monomial[m].minus != 0) ? 1 : -1;
            if (m == 0) first = sign;
            fits &= sign == first;
        }
        for (int i = 0; i < rule->operand_count; i++) signs[i] = minus >> i & 1 ? -1 : 1;
        if (fits) return true;
    }
    return false;
}

static double number_at(const call_result *result, const void *values, int64_t e)
{
    return dti_number_get(result->dtype, (const char *)values + e * (int64_t)dt_dtype_bytes(result->dtype));
}

/* The other thing that rows do not say: coefficients of both signs, so that magnitudes, too, cancel. Their largest is
 * what counts. */
static bool is_mixed(const dt_op *op) { return is_named(op, "rope") || is_named(op, "cross_entropy_grad"); }

static bool measure(const dt_op *op, call_result *out, int padded, dt_tensor *y)
{
    size_t bytes = (size_t)out->count * dt_dtype_bytes(out->dtype);
    char *raw = malloc(bytes + 1);
    double *magnitude = out->magnitude[padded] = malloc(((size_t)out->count + 1) * sizeof *magnitude);
    bool told = raw && magnitude && (!y || dt_tensor_to_host(y, -1, raw, bytes) == DT_OK);
    double most = 1;
    for (int64_t e = 0; e < out->count && told; e++) {
        magnitude[e] = fabs(number_at(out, y ? raw : out->values, e));
        if (isfinite(magnitude[e]) && magnitude[e] + 1 > most) most = magnitude[e] + 1;
    }
    for (int64_t e = 0; e < out->count && told && (!y || is_mixed(op)); e++) magnitude[e] = most;
    free(raw);
    return told;
}

/* What a result is the sum of, in size: for a polynomial the op itself on magnitudes; else nothing says, and it is the
 * largest finite element and 1. */
static bool keep_magnitudes(drawing *d, int padded)
{
    changed as = { .pad = padded ? VALUE_PAD : 0 };
    _Alignas(16) unsigned char attributes[DT_MAX_ATTRIBUTE_BYTES];
    dt_tensor *y[CALL_RESULTS] = { NULL };
    memcpy(attributes, d->call.attributes, sizeof attributes);
    for (int i = 0; i < d->op->attribute_count; i++) {
        if (d->op->attributes[i].kind != DT_ATTRIBUTE_NUMBER) continue;
        double *number = (double *)(void *)(attributes + d->op->attributes[i].offset);
        *number = fabs(*number);
    }
    if (d->asking.rule.monomial_count && find_signs(&d->asking.rule, as.signs) && !run(d, &as, attributes, y))
        return false;
    for (int r = 0; r < d->call.result_count; r++)
        if (!measure(d->op, &d->call.result[r], padded, y[r])) return false;
    return true;
}

static bool is_refusal(dt_status status)
{
    return status == DT_ERR_ARG || status == DT_ERR_SHAPE || status == DT_ERR_DTYPE || status == DT_ERR_UNAVAILABLE;
}

static bool compute(drawing *d)
{
    dt_tensor *y[CALL_RESULTS] = { NULL };
    d->call.result_count = dti_rule_results(&d->asking.rule);
    if (d->call.result_count > CALL_RESULTS) d->call.result_count = CALL_RESULTS;
    for (int i = 0; i < d->call.n; i++)
        if (d->call.form[i].dtype && !fill(d, i)) return false;
    if (run(d, NULL, d->call.attributes, y) && keep_results(d, y) && keep_magnitudes(d, 0) && keep_magnitudes(d, 1))
        return true;
    expect(is_refusal(dt_context_status(d->ctx)), "%s on one rank: %s", d->op->head, dt_context_error(d->ctx));
    return false;
}

static void try_one(drawing *d)
{
    int scope = dt_scope_push(d->ctx, 0);
    bool kept = draw(d) && !is_known(d) && compute(d);
    dt_context_clear(d->ctx);
    dt_scope_pop(d->ctx, scope, NULL);
    if (kept) d->out->call[d->out->count++] = d->call;
    else call_fini(&d->call);
    d->out->refused += !kept;
}

static dt_status make(dt_context *ctx, void *arg)
{
    drawing *d = arg;
    d->ctx = ctx;
    d->mesh = dt_mesh_create(ctx, "x");
    d->out->call = calloc((size_t)d->wanted, sizeof *d->out->call);
    for (; d->out->call && d->number < TRIES * d->wanted && d->out->count < d->wanted; d->number++) try_one(d);
    return dt_context_status(ctx);
}

op_calls calls_make(const dt_op *op, int wanted)
{
    op_calls calls = { 0 };
    char error[512] = "";
    drawing *d = calloc(1, sizeof *d);
    if (!expect(d != NULL, "memory")) return calls;
    d->op = op;
    d->out = &calls;
    d->twins = op_has(op, DT_ATTRIBUTE_NUMBER);
    d->wanted = d->twins || op_has(op, DT_ATTRIBUTE_TEXT) ? 2 * wanted : wanted;
    dt_status status = dt_launch_threads(1, make, d, error, sizeof error);
    expect(status == DT_OK, "%s: %s", op->head, error);
    free(d);
    return calls;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

const char *call_text(const op_call *call, const char *const *specs, char *text, size_t room)
{
    dti_pen pen = { text, room, 0 };
    dti_put(&pen, "%.*s:", (int)strcspn(call->op->head, "("), call->op->head);
    for (int i = 0; i < call->n; i++) {
        dti_put(&pen, " ");
        if (!call->form[i].dtype) dti_put(&pen, "-");
        else if (specs && specs[i]) dti_put(&pen, "%s", specs[i]);
        else {
            dti_put(&pen, "%s", dt_dtype_text((dt_dtype)call->form[i].dtype));
            dti_put_sizes(&pen, &call->form[i]);
        }
    }
    for (int i = 0; i < call->op->attribute_count; i++) {
        dti_put(&pen, " ");
        dti_put_attribute(&pen, &call->op->attributes[i], call->attributes, false);
    }
    return text;
}
