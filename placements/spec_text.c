/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs and placements in notation, read and written. The grammar is in <dtensor/spec.h>; what is written here parses
 * back to the same form. */
#include <string.h>

#include "core/pen.h"
#include "placements/spec.h"

/* ---- reading dtype and sizes ------------------------------------------------------------------------------------- */

bool dti_scan_dtype(dti_scan *scan, int32_t *dtype)
{
    for (int i = DT_DTYPE_DEFAULT + 1; i < DT_DTYPE_COUNT; i++) {
        if (!dti_scan_text(scan, dt_dtype_text((dt_dtype)i))) continue;
        *dtype = i;
        return true;
    }
    return dti_scan_expected(scan, "a dtype: f64, f32, bf16, f16, i64, i32, u8 or bool");
}

static bool add_factor(dti_scan *scan, dti_form *form)
{
    int factors = form->factor_first[form->dim_count + 1];
    const char *at = scan->at;
    int64_t size;
    if (!dti_scan_int(scan, "a size of 0 or more", &size)) return false;
    if (factors == DT_MAX_FACTORS)
        return dti_scan_fail(scan, DT_ERR_SHAPE, at, "more than %d factors", DT_MAX_FACTORS);
    form->size[factors] = size;
    form->factor_first[form->dim_count + 1]++;
    return true;
}

static bool scan_product(dti_scan *scan, dti_form *form)
{
    if (!add_factor(scan, form)) return false;
    int count = 1;
    while (dti_scan_space(scan)) {
        if (!add_factor(scan, form)) return false;
        count++;
    }
    if (count == 1) return dti_scan_expected(scan, "a blank and the next factor of the product");
    return dti_scan_char(scan, ')') || dti_scan_expected(scan, "a blank and the next factor, or \")\"");
}

static bool scan_size(dti_scan *scan, dti_form *form)
{
    if (form->dim_count == DT_MAX_DIMS)
        return dti_scan_fail(scan, DT_ERR_SHAPE, scan->at, "more than %d dims", DT_MAX_DIMS);
    form->factor_first[form->dim_count + 1] = form->factor_first[form->dim_count];
    if (!(dti_scan_char(scan, '(') ? scan_product(scan, form) : add_factor(scan, form))) return false;
    form->dim_count++;
    return true;
}

bool dti_scan_sizes(dti_scan *scan, dti_form *form)
{
    if (!dti_scan_char(scan, '[')) return dti_scan_expected(scan, "[ and the sizes");
    if (!dti_scan_char(scan, ']')) {
        do {
            if (!scan_size(scan, form)) return false;
        } while (dti_scan_char(scan, ','));
        if (!dti_scan_char(scan, ']')) return dti_scan_expected(scan, "\",\" or \"]\"");
    }
    return dti_form_fits(scan, form);
}

bool dti_form_fits(dti_scan *scan, const dti_form *form)
{
    int64_t bytes = (int64_t)dt_dtype_bytes((dt_dtype)form->dtype);
    for (int f = 0; f < form->factor_first[form->dim_count]; f++) {
        int64_t size = form->size[f] ? form->size[f] : 1;
        if (bytes > INT64_MAX / size)
            return dti_scan_fail(scan, DT_ERR_SHAPE, scan->at, "the tensor has more than 2^63 - 1 bytes");
        bytes *= size;
    }
    return true;
}

/* ---- reading placements ------------------------------------------------------------------------------------------ */

typedef struct place { bool named; int factor; dti_partial partial; } place; /* factor -1: it splits none          */

typedef struct written {           /* what a placements text says                                                  */
    place of[DT_MAX_MESH_DIMS];
    int order[DT_MAX_MESH_DIMS], n; /* mesh dims as written                                                        */
    bool star;
} written;

static bool scan_factor(dti_scan *scan, const dti_form *form, int *factor)
{
    const char *at = scan->at;
    int64_t dim, part = 0;
    bool negative = dti_scan_char(scan, '-');
    if (!dti_scan_int(scan, "a dim of the tensor", &dim)) return false;
    if (dim > DT_MAX_DIMS || (negative ? dim < 1 || dim > form->dim_count : dim >= form->dim_count))
        return dti_scan_fail(scan, DT_ERR_PLACEMENT, at, "no dim %s%lld in a tensor of %d dims", negative ? "-" : "",
                             (long long)dim, form->dim_count);
    if (negative) dim = form->dim_count - dim;
    int first = form->factor_first[dim], count = form->factor_first[dim + 1] - first;
    if (dti_scan_char(scan, '.')) {
        at = scan->at;
        if (!dti_scan_int(scan, "a factor of the dim", &part)) return false;
        if (part >= count)
            return dti_scan_fail(scan, DT_ERR_PLACEMENT, at, "no factor %lld in dim %lld, which has %d",
                                 (long long)part, (long long)dim, count);
    }
    *factor = first + (int)part;
    return dti_scan_char(scan, ')') || dti_scan_expected(scan, "\")\"");
}

static bool scan_kind(dti_scan *scan, dti_partial *partial)
{
    *partial = DTI_SUM;
    if (!dti_scan_char(scan, '(')) return true;
    for (dti_partial kind = DTI_SUM; kind < DTI_PARTIAL_COUNT; kind++) {
        if (!dti_scan_text(scan, dti_partial_names[kind])) continue;
        *partial = kind;
        return dti_scan_char(scan, ')') || dti_scan_expected(scan, "\")\"");
    }
    return dti_scan_expected(scan, "a kind of partial: sum, avg, max, min or prod");
}

static bool scan_place(dti_scan *scan, const dti_form *form, place *out)
{
    *out = (place){ true, -1, DTI_PARTIAL_NONE };
    if (dti_scan_text(scan, "R")) return true;
    if (dti_scan_char(scan, 'S'))
        return dti_scan_char(scan, '(') ? scan_factor(scan, form, &out->factor)
                                        : dti_scan_expected(scan, "(dim) after S");
    if (dti_scan_text(scan, "P")) return scan_kind(scan, &out->partial);
    return dti_scan_expected(scan, "R, S(dim) or P(kind)");
}

static bool scan_item(dti_scan *scan, const dt_mesh *mesh, const dti_form *form, bool has_base, written *w)
{
    const char *at = scan->at;
    if (dti_scan_char(scan, '*')) {
        if (!has_base)
            return dti_scan_fail(scan, DT_ERR_PLACEMENT, at,
                                 "* stands for the placements of a tensor, and there is none");
        if (w->star) return dti_scan_fail(scan, DT_ERR_PLACEMENT, at, "a second *");
        w->star = true;
        return true;
    }
    dti_word name;
    if (!dti_scan_name(scan, &name)) return false;
    int dim = dti_mesh_find(mesh, name);
    if (dim < 0)
        return dti_scan_fail(scan, DT_ERR_PLACEMENT, at, "mesh \"%s\" has no dim \"%.*s\"", mesh->text, name.n,
                             name.text);
    if (w->of[dim].named)
        return dti_scan_fail(scan, DT_ERR_PLACEMENT, at, "mesh dim \"%.*s\" is placed twice", name.n, name.text);
    if (!dti_scan_char(scan, ':')) return dti_scan_expected(scan, "\":\" and a placement");
    w->order[w->n++] = dim;
    return scan_place(scan, form, &w->of[dim]);
}

/* Mesh dims of one factor: first those * stands for, in their order, then those written. Size 1 places nothing. */
static void set_splits(const dt_mesh *mesh, const dti_form *base, const written *w, dti_form *form)
{
    int n = 0;
    for (int f = 0; f < form->factor_first[form->dim_count]; f++) {
        for (int i = w->star ? base->split_first[f] : 0; w->star && i < base->split_first[f + 1]; i++)
            if (!w->of[base->split[i]].named) form->split[n++] = base->split[i];
        for (int i = 0; i < w->n; i++)
            if (w->of[w->order[i]].factor == f && mesh->dims[w->order[i]].size > 1)
                form->split[n++] = (int8_t)w->order[i];
        form->split_first[f + 1] = (int8_t)n;
    }
}

static void set_partials(const dt_mesh *mesh, const dti_form *base, const written *w, dti_form *form)
{
    for (int d = 0; d < mesh->dim_count; d++) {
        if (w->of[d].named && mesh->dims[d].size > 1) form->partial[d] = (int8_t)w->of[d].partial;
        if (!w->of[d].named && w->star) form->partial[d] = base->partial[d];
    }
}

static bool kinds_mix(dti_scan *scan, const dt_mesh *mesh, const dti_form *form)
{
    for (int a = 0; a < mesh->dim_count; a++)
        for (int b = 0; b < a; b++) {
            dti_partial x = (dti_partial)form->partial[b], y = (dti_partial)form->partial[a];
            if (x && y && !dti_partial_mixes(x, y))
                return dti_scan_fail(scan, DT_ERR_PLACEMENT, scan->text, "%s:P(%s) and %s:P(%s) do not mix",
                                     mesh->dims[b].name, dti_partial_names[x], mesh->dims[a].name,
                                     dti_partial_names[y]);
        }
    return true;
}

bool dti_scan_placements(dti_scan *scan, const dt_mesh *mesh, const dti_form *base, dti_form *form)
{
    written w;
    memset(&w, 0, sizeof w);
    if (*scan->at) {
        do {
            if (!scan_item(scan, mesh, form, base != NULL, &w)) return false;
        } while (dti_scan_char(scan, ','));
        if (!dti_scan_end(scan, "\",\" and the next mesh dim")) return false;
    }
    set_splits(mesh, base, &w, form);
    set_partials(mesh, base, &w, form);
    return kinds_mix(scan, mesh, form);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_size(dti_pen *pen, const dti_form *form, int dim)
{
    int first = form->factor_first[dim], last = form->factor_first[dim + 1];
    if (last - first > 1) dti_put_word(pen, "(");
    for (int f = first; f < last; f++) {
        if (f > first) dti_put_word(pen, " ");
        dti_put_number(pen, form->size[f]);
    }
    if (last - first > 1) dti_put_word(pen, ")");
}

void dti_put_sizes(dti_pen *pen, const dti_form *form)
{
    dti_put_word(pen, "[");
    for (int d = 0; d < form->dim_count; d++) {
        if (d) dti_put_word(pen, ",");
        put_size(pen, form, d);
    }
    dti_put_word(pen, "]");
}

static int dim_of_factor(const dti_form *form, int factor)
{
    int dim = 0;
    while (form->factor_first[dim + 1] <= factor) dim++;
    return dim;
}

static void put_split(dti_pen *pen, const dti_form *form, const dt_mesh *mesh, int factor, const char **comma)
{
    int dim = dim_of_factor(form, factor), first = form->factor_first[dim];
    for (int i = form->split_first[factor]; i < form->split_first[factor + 1]; i++) {
        dti_put_word(pen, *comma);
        dti_put_word(pen, mesh->dims[form->split[i]].name);
        dti_put_word(pen, ":S(");
        dti_put_number(pen, dim);
        if (form->factor_first[dim + 1] - first > 1) dti_put(pen, ".%d", factor - first);
        dti_put_word(pen, ")");
        *comma = ",";
    }
}

static void put_placements(dti_pen *pen, const dti_form *form, const dt_mesh *mesh)
{
    bool put_already[DT_MAX_FACTORS] = { false };
    const char *comma = "";
    for (int d = 0; d < mesh->dim_count; d++) {
        int factor = dti_form_split_by(form, d);
        if (factor >= 0 && !put_already[factor]) {
            put_already[factor] = true;
            put_split(pen, form, mesh, factor, &comma);
        }
        if (form->partial[d]) {
            dti_put(pen, "%s%s:P(%s)", comma, mesh->dims[d].name, dti_partial_names[form->partial[d]]);
            comma = ",";
        }
    }
}

/* Returns where the placements begin: the end of the text where there are none. */
static size_t put_form(dti_pen *pen, const dti_form *form, const dt_mesh *mesh)
{
    dti_put_word(pen, dt_dtype_text((dt_dtype)form->dtype));
    dti_put_sizes(pen, form);
    size_t end = pen->at;
    dti_put_word(pen, "@");
    size_t placements = pen->at;
    put_placements(pen, form, mesh);
    if (pen->at > placements) return placements;
    pen->at = end;
    if (end < pen->room) pen->text[end] = '\0';
    return end;
}

const char *dti_form_text(const dti_form *form, const dt_mesh *mesh, const char **placements)
{
    char room[256];
    dti_pen first = { room, sizeof room, 0 };
    size_t begin = put_form(&first, form, mesh), n = first.at + 2;  /* the @ that may be taken back, and the end    */
    char *text = dti_context_take(mesh->ctx, n);
    if (!text) return NULL;
    *placements = text + begin;
    if (n <= sizeof room) return memcpy(text, room, first.at + 1);
    dti_pen again = { text, n, 0 };
    put_form(&again, form, mesh);
    return text;
}
