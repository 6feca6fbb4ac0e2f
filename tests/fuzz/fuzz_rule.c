/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows from any text: head, rule and polynomial are lines; the bytes of a fourth line are sizes. What parses prints to
 * what parses to the same bytes; what is refused is refused in one line that names a column. What binds has factors
 * that multiply to its sizes, and every strategy listed for it is legal. */
#include "fuzz.h"

#include "ops/partial.h"

enum { TEXT = 4096, STRATEGIES = 64 };

static fuzz_run run;

/* Cut the line that ends at the next newline; *text then stands behind it. */
static char *line(char **text)
{
    char *begin = *text, *end = strchr(begin, '\n');
    *text = end ? end + 1 : begin + strlen(begin);
    if (end) *end = '\0';
    return begin;
}

static const char *put(void (*fn)(dti_pen *, const dti_rule *), const dti_rule *rule, char *room)
{
    dti_pen pen = { room, TEXT, 0 };
    room[0] = '\0';
    fn(&pen, rule);
    fuzz_demand(pen.at < TEXT, "room for the text");
    return room;
}

static void parses_back(dt_context *ctx, const dti_rule *rule)
{
    static char head[TEXT], text[TEXT], polynomial[TEXT];
    static dti_rule again;
    dti_row_text printed = { put(dti_put_head, rule, head), put(dti_put_rule, rule, text),
                             put(dti_put_polynomial, rule, polynomial) };
    fuzz_demand(dti_rule_parse(ctx, &printed, &again), dt_context_error(ctx));
    fuzz_demand(memcmp(rule, &again, sizeof again) == 0, "the same bytes");
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

typedef struct drawing { const char *sizes; int64_t elements; } drawing; /* elements: of the form so far          */

/* Forms fit 63 bits; results need not. */
static int64_t next_size(drawing *d)
{
    static const int64_t chosen[] = { 0, 1, 1, 2, 2, 3, 4, 5, 6, 6, 12, 12, 30, INT64_C(1) << 40 };
    int64_t size = *d->sizes ? chosen[(unsigned char)*d->sizes++ % DT_COUNT(chosen)] : 6;
    if (size && d->elements > INT64_MAX / size) return 1;
    d->elements *= size ? size : 1;
    return size;
}

/* A dim for each of the term's, some of two factors, some more for "...". */
static void draw_form(const dti_term *term, const char **sizes, dti_form *form)
{
    drawing draw = { *sizes, 1 };
    int more = term->batch ? (int)(next_size(&draw) % 3) : 0, n = 0;
    memset(form, 0, sizeof *form);
    for (int d = 0; d < term->dim_count + more && d < DT_MAX_DIMS; d++) {
        bool product = *draw.sizes & 0x20;
        form->size[n++] = next_size(&draw);
        if (product && n < DT_MAX_FACTORS - DT_MAX_DIMS) form->size[n++] = next_size(&draw);
        form->factor_first[++form->dim_count] = n;
    }
    *sizes = draw.sizes;
}

static void holds_together(const dti_rule *rule, const dti_bound *bound)
{
    for (int i = 0; i < bound->letter_count; i++) {
        const dti_bound_letter *letter = &bound->letter[i];
        int64_t size = letter->count ? 1 : letter->size;
        for (int f = 0; f < letter->count; f++) size *= bound->factor[letter->first + f].size;
        fuzz_demand(size == letter->size, "factors of a letter");
    }
    for (int r = 0; r < rule->result_count; r++) {
        dti_bound_dims dims;
        dt_shape shape = dti_bound_shape(rule, bound, r);
        dti_bound_result(rule, bound, r, UINT64_MAX, &dims);
        fuzz_demand(shape.n == dims.form.dim_count, "dims of a result");
        for (int d = 0; d < shape.n; d++) fuzz_demand(shape.dim[d] == dti_form_dim(&dims.form, d), "size of a dim");
    }
}

static void strategies_are_legal(const dti_rule *rule, const dti_bound *bound)
{
    static dti_strategy strategies[STRATEGIES];
    static char text[TEXT];
    int n = dti_partial_strategies(rule, bound, NULL, strategies, STRATEGIES);
    fuzz_demand(n > 0, "all R is legal");
    for (int i = 0; i < n; i++) {
        dti_pen pen = { text, TEXT, 0 };
        dti_strategy again = strategies[i];
        fuzz_demand(dti_partial_decide(rule, bound, &again, &pen), text);
        fuzz_demand(memcmp(&again, &strategies[i], sizeof again) == 0, "decided alike");
    }
}

static void try_binding(dt_context *ctx, const dti_rule *rule, const char *sizes)
{
    static dti_form forms[DTI_MAX_OPERANDS];
    static dti_bound bound;
    dti_rule_call call = { .sizes = (dti_letter_size[]){ { 'c', 0, 4 } }, .size_count = sizes[0] == 'c' };
    for (int o = 0; o < rule->operand_count; o++) {
        draw_form(&rule->operand[o], &sizes, &forms[o]);
        if (!rule->operand[o].optional || *sizes % 4) call.operand[o] = &forms[o];
    }
    bool made = dti_rule_bind(ctx, rule, &call, &bound);
    fuzz_outcome(ctx, made, false);
    if (!made) return;
    holds_together(rule, &bound);
    strategies_are_legal(rule, &bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dti_rule rule;
    dt_context *ctx = fuzz_context(&run, 1);
    char *text = fuzz_text(data, size), *rest = text;
    dti_row_text row;
    row.head = line(&rest);
    row.rule = line(&rest);
    row.polynomial = line(&rest);
    bool made = dti_rule_parse(ctx, &row, &rule);
    fuzz_outcome(ctx, made, true);
    if (made) {
        parses_back(ctx, &rule);
        try_binding(ctx, &rule, rest);
    }
    free(text);
    return 0;
}
