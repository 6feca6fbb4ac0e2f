/* SPDX-License-Identifier: Apache-2.0
 *
 * What a row says of one call: attributes read by their table, dtypes by their letters, rule and polynomial parsed from
 * the texts that are fixed or derived. */
#include "ops/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/number.h"
#include "core/pen.h"
#include "placements/views.h"

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static bool read_dim(dt_context *ctx, const dt_op *op, const dt_attribute *a, const dt_shape *first, int *dim)
{
    if (!first)
        return dti_fail(ctx, DT_ERR_ARG, "%s: its first operand, which has the dims, is missing", op->head), false;
    if (*dim >= -first->n && *dim < first->n) {
        if (*dim < 0) *dim += first->n;
        return true;
    }
    if (first->n == 0) dti_fail(ctx, DT_ERR_ARG, "%s: a scalar has no dims, got %s %d", op->head, a->name, *dim);
    else dti_fail(ctx, DT_ERR_ARG, "%s: expected %s in %d .. %d, got %d", op->head, a->name, -first->n, first->n - 1,
                  *dim);
    return false;
}

static bool read_dims(dt_context *ctx, const dt_op *op, const dt_attribute *a, const dt_shape *first, dt_dims *dims)
{
    dt_dims sorted = { .n = dims->n ? dims->n : first ? first->n : 1 };
    bool among[DT_MAX_DIMS] = { false };
    if (dims->n < 0 || dims->n > DT_MAX_DIMS)
        return dti_fail(ctx, DT_ERR_ARG, "%s: expected at most %d %s, got %d", op->head, DT_MAX_DIMS, a->name, dims->n),
               false;
    for (int i = 0; i < sorted.n; i++) {
        int dim = dims->n ? dims->dim[i] : i;
        if (!read_dim(ctx, op, a, first, &dim)) return false;
        if (among[dim])
            return dti_fail(ctx, DT_ERR_ARG, "%s: dim %d stands twice in %s", op->head, dim, a->name), false;
        among[dim] = true;
    }
    for (int d = 0, i = 0; first && d < first->n; d++)
        if (among[d]) sorted.dim[i++] = d;
    *dims = sorted;
    return true;
}

/* Numbers behind the last are 0: calls are remembered by these bytes. */
static bool read_list(dt_context *ctx, const dt_op *op, const dt_attribute *a, dt_shape *list)
{
    bool sizes = a->kind == DT_ATTRIBUTE_SHAPE;
    if (list->n < 0 || list->n > DT_MAX_DIMS)
        return dti_fail(ctx, sizes ? DT_ERR_SHAPE : DT_ERR_ARG, "%s: expected 0 .. %d numbers for %s, got %d", op->head,
                        DT_MAX_DIMS, a->name, list->n), false;
    for (int i = 0; sizes && i < list->n; i++)
        if (list->dim[i] < -1)
            return dti_fail(ctx, DT_ERR_SHAPE, "%s: expected sizes or -1 for %s, got %lld", op->head, a->name,
                            (long long)list->dim[i]), false;
    memset(list->dim + list->n, 0, (size_t)(DT_MAX_DIMS - list->n) * sizeof list->dim[0]);
    return true;
}

/* Its class is all that a rule may know of a number: its sign; 2 where it has none. */
static void classify(unsigned char *key)
{
    double number, class;
    memcpy(&number, key, sizeof number);
    class = isnan(number) ? 2 : (number > 0) - (number < 0);
    memcpy(key, &class, sizeof class);
}

/* Nothing behind its end: calls are remembered by these bytes. */
static bool read_text(dt_context *ctx, const dt_op *op, const dt_attribute *a, char *text)
{
    size_t n = strnlen(text, DT_MAX_TEXT);
    if (n < DT_MAX_TEXT) return memset(text + n, 0, DT_MAX_TEXT - n), true;
    dti_fail(ctx, DT_ERR_ARG, "%s: expected at most %d characters of %s", op->head, DT_MAX_TEXT - 1, a->name);
    return false;
}

static bool read_attribute(dt_context *ctx, const dt_op *op, const dt_attribute *a, const dt_shape *first,
                           dti_attributes *out)
{
    void *value = out->values + a->offset, *key = out->key + a->offset;
    switch (a->kind) {
    case DT_ATTRIBUTE_DIM:
        if (!read_dim(ctx, op, a, first, value)) return false;
        memcpy(key, value, sizeof(int));
        return true;
    case DT_ATTRIBUTE_DIMS:
        if (!read_dims(ctx, op, a, first, value)) return false;
        memcpy(key, value, sizeof(dt_dims));
        return true;
    case DT_ATTRIBUTE_TEXT:
        if (!read_text(ctx, op, a, value)) return false;
        memcpy(key, value, DT_MAX_TEXT);
        return true;
    case DT_ATTRIBUTE_SHAPE:
    case DT_ATTRIBUTE_LIST:
        if (!read_list(ctx, op, a, value)) return false;
        memcpy(key, value, sizeof(dt_shape));
        return true;
    case DT_ATTRIBUTE_NUMBER: classify(key); return true;
    default: return true;
    }
}

/* The table says what is read of the struct, and a program may have written it. */
static bool check_attribute(dt_context *ctx, const dt_op *op, const dt_attribute *a)
{
    static const struct { size_t bytes, align; } of[DT_ATTRIBUTE_KIND_COUNT] = {
        [DT_ATTRIBUTE_INT] = { sizeof(int64_t), _Alignof(int64_t) },
        [DT_ATTRIBUTE_DIM] = { sizeof(int), _Alignof(int) },
        [DT_ATTRIBUTE_DIMS] = { sizeof(dt_dims), _Alignof(dt_dims) }, [DT_ATTRIBUTE_BOOL] = { sizeof(bool), 1 },
        [DT_ATTRIBUTE_NUMBER] = { sizeof(double), _Alignof(double) },
        [DT_ATTRIBUTE_DTYPE] = { sizeof(dt_dtype), _Alignof(dt_dtype) },
        [DT_ATTRIBUTE_SHAPE] = { sizeof(dt_shape), _Alignof(dt_shape) },
        [DT_ATTRIBUTE_LIST] = { sizeof(dt_shape), _Alignof(dt_shape) }, [DT_ATTRIBUTE_TEXT] = { DT_MAX_TEXT, 1 },
    };
    if (!a->name || (unsigned)a->kind >= DT_ATTRIBUTE_KIND_COUNT)
        return dti_fail(ctx, DT_ERR_ARG, "%s: an attribute without a name, or of no DT_ATTRIBUTE_* kind", op->head),
               false;
    if (a->offset <= op->attribute_bytes && of[a->kind].bytes <= op->attribute_bytes - a->offset
        && a->offset % of[a->kind].align == 0)
        return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: attribute %s, %zu bytes at offset %zu, does not lie in a struct of %zu", op->head,
             a->name, of[a->kind].bytes, a->offset, op->attribute_bytes);
    return false;
}

static bool check_attributes(dt_context *ctx, const dt_op *op)
{
    if (op->attribute_count < 0 || op->attribute_count > DT_MAX_ATTRIBUTES || (op->attribute_count && !op->attributes))
        return dti_fail(ctx, DT_ERR_ARG, "%s: expected a table of at most %d attributes, got %d%s", op->head,
                        DT_MAX_ATTRIBUTES, op->attribute_count, op->attributes ? "" : " in none"), false;
    for (int i = 0; i < op->attribute_count; i++)
        if (!check_attribute(ctx, op, &op->attributes[i])) return false;
    return true;
}

bool dti_attributes_read(dt_context *ctx, const dt_op *op, const void *values, const dt_shape *first,
                         dti_attributes *out)
{
    out->asked = NULL;
    out->bytes = op->attribute_bytes;
    if (out->bytes == 0 && op->attribute_count == 0) return true;
    if (!check_attributes(ctx, op)) return false;
    if (out->bytes == 0) return true;
    if (out->bytes > DT_MAX_ATTRIBUTE_BYTES)
        return dti_fail(ctx, DT_ERR_ARG, "%s: %zu bytes of attributes, more than %d", op->head, out->bytes,
                        DT_MAX_ATTRIBUTE_BYTES), false;
    if (!values) return dti_fail(ctx, DT_ERR_ARG, "%s: no attributes", op->head), false;
    memcpy(out->values, values, out->bytes);
    memcpy(out->key, values, out->bytes);
    for (int i = 0; i < op->attribute_count; i++)
        if (!read_attribute(ctx, op, &op->attributes[i], first, out)) return false;
    return true;
}

static void put_number(dti_pen *pen, double number, bool by_sign)
{
    if (!by_sign) dti_put(pen, "=%g", number);
    else dti_put(pen, "%s", isnan(number) ? "=nan" : number < 0 ? "<0" : number > 0 ? ">0" : "=0");
}

static void put_numbers(dti_pen *pen, const dt_shape *list)
{
    dti_put(pen, "=");
    for (int i = 0; i < list->n; i++) dti_put(pen, "%s%lld", i ? "," : "", (long long)list->dim[i]);
}

void dti_put_attribute(dti_pen *pen, const dt_attribute *a, const void *values, bool by_sign)
{
    const void *at = (const char *)values + a->offset;
    const dt_dims *dims = at;
    dti_put(pen, "%s", a->name);
    switch (a->kind) {
    case DT_ATTRIBUTE_INT: dti_put(pen, "=%lld", (long long)*(const int64_t *)at); break;
    case DT_ATTRIBUTE_DIM: dti_put(pen, "=%d", *(const int *)at); break;
    case DT_ATTRIBUTE_BOOL: dti_put(pen, "=%s", *(const bool *)at ? "true" : "false"); break;
    case DT_ATTRIBUTE_NUMBER: put_number(pen, *(const double *)at, by_sign); break;
    case DT_ATTRIBUTE_DTYPE: dti_put(pen, "=%s", dt_dtype_text(*(const dt_dtype *)at)); break;
    case DT_ATTRIBUTE_TEXT: dti_put(pen, "=%s", (const char *)at); break;
    case DT_ATTRIBUTE_DIMS:
        dti_put(pen, "=%s", dims->n ? "" : "all");
        for (int i = 0; i < dims->n; i++) dti_put(pen, "%s%d", i ? "," : "", dims->dim[i]);
        break;
    default: put_numbers(pen, at); break;
    }
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static bool is_float(dt_dtype dtype) { return dtype >= DT_F64 && dtype <= DT_F16; }
static bool is_integer(dt_dtype dtype) { return dtype >= DT_I64 && dtype <= DT_U8; }

static const char *expected_dtype(char letter)
{
    if (letter == 'f' || letter == 's') return "a float";
    return letter == 'i' ? "an integer" : letter == 'n' ? "numbers" : "bool";
}

static bool takes(char letter, dt_dtype dtype)
{
    switch (letter) {
    case 'f':
    case 's': return is_float(dtype);
    case 'i': return is_integer(dtype);
    case 'b': return dtype == DT_BOOL;
    case 'n': return dtype != DT_BOOL;
    default: return true;
    }
}

/* Operands with one letter t, n or f are alike: the first of them is *common. */
static bool match_operand(dt_context *ctx, const dt_op *op, const dti_rule *rule, const dt_spec *const *in, int i,
                          char letter, int *common)
{
    dt_dtype dtype = (dt_dtype)in[i]->form.dtype;
    bool alike = letter == 't' || letter == 'n' || letter == 'f';
    if (!takes(letter, dtype)) {
        dti_fail(ctx, DT_ERR_DTYPE, "%s: expected %s for %s, got %s", op->head, expected_dtype(letter),
                 dti_rule_name(rule, i), dt_spec_text(in[i]));
        return false;
    }
    if (alike && *common < 0) *common = i;
    if (!alike || in[*common]->form.dtype == in[i]->form.dtype) return true;
    dti_fail(ctx, DT_ERR_DTYPE, "%s: expected one dtype, got %s for %s and %s for %s", op->head,
             dt_spec_text(in[*common]), dti_rule_name(rule, *common), dt_spec_text(in[i]), dti_rule_name(rule, i));
    return false;
}

static dt_dtype attribute_dtype(const dt_op *op, const dti_attributes *attributes)
{
    dt_dtype dtype = DT_DTYPE_DEFAULT;
    for (int i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].kind == DT_ATTRIBUTE_DTYPE)
            memcpy(&dtype, attributes->values + op->attributes[i].offset, sizeof dtype);
    return dtype;
}

static dt_dtype result_dtype(const dt_op *op, const dti_attributes *attributes, char letter, dt_dtype common)
{
    switch (letter) {
    case 'b': return DT_BOOL;
    case 'i': return DT_I64;
    case 'w': return DT_F64;
    case 'd': return attribute_dtype(op, attributes);
    case 's': return dti_sum_dtype(common);
    default: return common;
    }
}

/* Letter i of those before end, blanks left out; t where there is none. */
static char letter_at(const char *text, const char *end, int i)
{
    for (; text < end; text++)
        if (*text != ' ' && i-- == 0) return *text;
    return 't';
}

/* The letter of operand i; of one that a head repeats the last. */
static char operand_letter(const dt_op *op, const char *arrow, int i)
{
    int n = 0;
    for (const char *at = op->dtypes; at < arrow; at++) n += *at != ' ';
    return letter_at(op->dtypes, arrow, i >= n && n && strstr(op->head, "...") ? n - 1 : i);
}

static bool match_dtypes(dt_context *ctx, const dt_op *op, const dt_spec *const *in, const dti_attributes *attributes,
                         dti_asking *out)
{
    const dti_rule *rule = &out->rule;
    const char *letters = op->dtypes, *arrow = letters ? strstr(letters, "->") : NULL;
    int common = -1;
    if (letters && (!arrow || strspn(letters, "tnfibs ") != (size_t)(arrow - letters)
                    || strspn(arrow + 2, "tnfibdsw ") != strlen(arrow + 2)))
        return dti_fail(ctx, DT_ERR_ARG, "%s: dtypes \"%s\": expected letters, \"->\", letters", op->head, letters),
               false;
    for (int i = 0; i < rule->operand_count; i++) {
        char letter = arrow ? operand_letter(op, arrow, i) : 't';
        if (in[i] && !match_operand(ctx, op, rule, in, i, letter, &common)) return false;
    }
    dt_dtype alike = common < 0 ? DT_F32 : (dt_dtype)in[common]->form.dtype;
    for (int r = 0; r < rule->result_count; r++) {
        char letter = arrow ? letter_at(arrow + 2, arrow + strlen(arrow), r) : 't';
        if (r < out->ask.writes) {
            out->ask.result[r] = in[r] ? (dt_dtype)in[r]->form.dtype : alike;
            continue;
        }
        out->ask.result[r] = result_dtype(op, attributes, letter, alike);
        if (out->ask.result[r] > DT_DTYPE_DEFAULT && out->ask.result[r] < DT_DTYPE_COUNT) continue;
        dti_fail(ctx, DT_ERR_DTYPE, "%s: %d is no dtype", op->head, (int)out->ask.result[r]);
        return false;
    }
    return true;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Operands left out at the end are absent, too: a row may look at all that its head names. */
static void list_shapes(const dt_spec *const *in, int n, dt_shape *shapes)
{
    for (int i = 0; i < DT_MAX_OPERANDS; i++) shapes[i] = i < n && in[i] ? in[i]->shape : (dt_shape){ .n = -1 };
}

/* Texts that end, counts that the arrays have. */
static bool check_derived(dt_context *ctx, const dt_op *op, const dt_derived *out)
{
    bool fits = memchr(out->rule, 0, sizeof out->rule) && memchr(out->polynomial, 0, sizeof out->polynomial)
        && out->size_count >= 0 && out->size_count <= DT_MAX_DIMS && out->batch.n >= 0 && out->batch.n <= DT_MAX_DIMS
        && out->map.part_count >= 0 && out->map.part_count <= DT_MAX_OPERANDS;
    for (int d = 0; fits && d < out->batch.n; d++) fits = out->batch.dim[d] >= 0;
    if (!fits) dti_fail(ctx, DT_ERR_ARG, "%s: what its row derives is out of range", op->head);
    return fits;
}

static bool derive(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes,
                   dt_derived *out)
{
    dt_shape shapes[DT_MAX_OPERANDS];
    *out = (dt_derived){ .size_count = 0 };
    dti_put_word(&(dti_pen){ out->rule, sizeof out->rule, 0 }, op->rule ? op->rule : "");
    dti_put_word(&(dti_pen){ out->polynomial, sizeof out->polynomial, 0 }, op->polynomial ? op->polynomial : "none");
    if (!op->derive) return true;
    list_shapes(in, n, shapes);
    dt_status status = op->derive(ctx, attributes->values, shapes, n, out);
    if (status && !dti_failed(ctx)) dti_fail(ctx, status, "%s: its rule says no more", op->head);
    return status == DT_OK && !dti_failed(ctx) && check_derived(ctx, op, out);
}

const char *dti_row_head(const dt_op *op, int n, char *text, size_t room)
{
    const char *dots = strstr(op->head, "..."), *name = dots;
    dti_pen pen = { text, room, 0 };
    int before = 0;
    if (!dots) return op->head;
    while (name > op->head && !strchr("(, ", name[-1])) name--;
    for (const char *at = op->head; at < name; at++) before += *at == ',';
    dti_put(&pen, "%.*s", (int)(name - op->head), op->head);
    for (int i = 0; i == 0 || i < n - before; i++)
        dti_put(&pen, "%s%.*s%d", i ? ", " : "", (int)(dots - name), name, i);
    dti_put(&pen, "%s", dots + 3);
    return text;
}

/* ---- rules that were parsed -------------------------------------------------------------------------------------- */

typedef struct parsed { const char *head, *rule, *polynomial; dti_rule parsed; } parsed;

static void rules_fini(void *state) { dti_table_fini(state); }

static uint64_t text_hash(const char *text, uint64_t seed) { return dti_hash(text, strlen(text), seed); }

static const parsed *known_rule(const dti_table *rules, uint64_t hash, const dti_row_text *text)
{
    const parsed *known;
    for (size_t at = dti_table_first(rules, hash); (known = dti_table_value(rules, hash, &at)) != NULL;)
        if (strcmp(known->head, text->head) == 0 && strcmp(known->rule, text->rule) == 0
            && strcmp(known->polynomial, text->polynomial) == 0) break;
    return known;
}

static const char *keep_text(dt_context *ctx, const char *text)
{
    const char *kept = dti_arena_text(&ctx->arena, text, strlen(text));
    if (!kept) dti_context_lacks(ctx, strlen(text) + 1);
    return kept;
}

/* The rule of texts that do not change from call to call. */
static bool parse_once(dt_context *ctx, const dti_row_text *text, dti_rule *rule)
{
    dti_table *rules = dti_context_layer(ctx, DTI_LAYER_ROW, sizeof *rules, rules_fini);
    uint64_t hash = text_hash(text->polynomial, text_hash(text->rule, text_hash(text->head, 0)));
    if (!rules) return false;
    const parsed *known = known_rule(rules, hash, text);
    if (known) {
        *rule = known->parsed;
        return true;
    }
    if (!dti_rule_parse(ctx, text, rule)) return false;
    parsed *kept = dti_context_take(ctx, sizeof *kept);
    if (!kept) return false;
    *kept = (parsed){ keep_text(ctx, text->head), keep_text(ctx, text->rule), keep_text(ctx, text->polynomial), *rule };
    if (!kept->head || !kept->rule || !kept->polynomial) return false;
    if (dti_table_add(rules, hash, kept)) return true;
    dti_fail(ctx, DT_ERR_MEMORY, "no memory for a table of rules");
    return false;
}

static bool parse(dt_context *ctx, const dt_op *op, int n, dti_asking *out)
{
    char head[DTI_MAX_NAMES];
    dti_row_text text = { dti_row_head(op, n, head, sizeof head), out->derived.rule, out->derived.polynomial };
    bool fixed = !op->derive && text.head == op->head;
    if (!(fixed ? parse_once : dti_rule_parse)(ctx, &text, &out->rule)) return false;
    out->rule.decomposes = op->decompose != NULL;
    if (n == out->rule.operand_count) return true;
    dti_fail(ctx, DT_ERR_ARG, "%s: expected %d operands, got %d", op->head, out->rule.operand_count, n);
    return false;
}

/* Only shapes that may fit are asked about: required operands are there, and have the dims that the rule names. What
 * they lack, binding says. */
static bool may_fit(const dti_rule *rule, const dt_spec *const *in, int n)
{
    for (int i = 0; i < n; i++)
        if (in[i] ? in[i]->shape.n < rule->operand[i].dim_count : !rule->operand[i].optional) return false;
    return true;
}

static void count_flops(const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes,
                        dti_asking *out)
{
    dt_shape shapes[DT_MAX_OPERANDS];
    list_shapes(in, n, shapes);
    if (op->flops && may_fit(&out->rule, in, n)) out->ask.flops = op->flops(attributes->values, shapes, n);
}

/* What is asked for on the operands' mesh; on another view of its ranks if that can be said (NULL: it cannot). */
static bool ask_placed(const dt_spec *const *in, int n, const dt_spec *asked, const dt_spec **out)
{
    *out = NULL;
    for (int i = 0; i < n && asked; i++)
        if (in[i]) return dti_spec_on(asked, in[i]->mesh, out);
    return true;
}

bool dti_row_ask(dt_context *ctx, const dt_op *op, const dt_spec *const *in, int n, const dti_attributes *attributes,
                 dti_asking *out)
{
    out->ask = (dti_ask){ .rule = &out->rule, .writes = op->writes };
    if (!ask_placed(in, n, attributes->asked, &out->ask.asked)) return false;
    if (!derive(ctx, op, in, n, attributes, &out->derived) || !parse(ctx, op, n, out)) return false;
    if (op->writes && (op->decompose || out->derived.map.part_count))
        return dti_fail(ctx, DT_ERR_ARG, "%s: writes operands, expected a kernel alone, no decomposition or index map",
                        op->head), false;
    if (op->writes < 0 || op->writes > n || op->writes > dti_rule_results(&out->rule))
        return dti_fail(ctx, DT_ERR_ARG, "%s: writes %d operands, expected at most its %d results", op->head,
                        op->writes, dti_rule_results(&out->rule)), false;
    if (op->shares && (n != 1 || out->rule.result_count != 1 || op->writes || op->decompose
                       || out->derived.map.part_count))
        return dti_fail(ctx, DT_ERR_ARG, "%s: shares its operand, expected one result of one operand, and no more",
                        op->head), false;
    for (int i = 0; i < n; i++) out->ask.operand[i] = in[i];
    if (!match_dtypes(ctx, op, in, attributes, out)) return false;
    for (int i = 0; i < out->derived.size_count; i++)
        out->sizes[i] = (dti_letter_size){ .letter = out->derived.size[i].letter, .number = out->derived.size[i].number,
                                           .size = out->derived.size[i].size };
    out->ask.sizes = out->sizes;
    out->ask.size_count = out->derived.size_count;
    out->ask.batch = out->derived.stretches ? &out->derived.batch : NULL;
    count_flops(op, in, n, attributes, out);
    return true;
}
