/* SPDX-License-Identifier: Apache-2.0
 *
 * Styles: what a module's parameters, inputs and result are placed as along one mesh dim. Parameters are placed when
 * the style is given; inputs and result by hooks, each of which is a pin of that mesh dim alone. */
#include <dtensor/parallel.h>

#include <stdio.h>
#include <string.h>

#include "mesh/mesh.h"
#include "parallel/param.h"
#include "placements/views.h"

const dt_style dt_style_colwise = { "colwise", "weight=S(0);bias=S(0)", "R", "S(-1)" };
const dt_style dt_style_rowwise = { "rowwise", "weight=S(1)", "S(-1)", "R" };
const dt_style dt_style_sequence = { "sequence", NULL, "S(1)", "S(1)" };
const dt_style dt_style_vocab = { "vocab", "weight=S(0)", "R", "R" };
const dt_style dt_style_io = { "io", NULL, NULL, NULL };

enum { MAX_PLACE = 32, MAX_TEXT = 512 };

typedef struct styled {            /* a module along one mesh dim; lives as long as the context                    */
    const char *dim;
    int outer;                     /* its parameters differ along so many ranks of the dim alone; 0: along all     */
    char in[DT_MAX_MODULE_INPUTS][MAX_PLACE], out[MAX_PLACE]; /* "": as it comes                                   */
} styled;

/* ---- one tensor along one mesh dim ------------------------------------------------------------------------------- */

static bool is_part(const char *name, const char *dim)
{
    size_t n = strlen(dim);
    return strncmp(name, dim, n) == 0 && (name[n] == 0 || name[n] == '.');
}

/* The mesh dims of a view that are parts of one, or are it. */
static uint32_t parts_of(const dt_mesh *mesh, const char *dim)
{
    uint32_t parts = 0;
    for (int m = 0; m < mesh->dim_count; m++)
        if (is_part(mesh->dims[m].name, dim)) parts |= UINT32_C(1) << m;
    return parts;
}

/* A spec placed along a dim, or its parts; inner ones R if only the outer one is split. */
static const dt_spec *along(const dt_spec *spec, const char *dim, const char *place, bool outer_alone)
{
    char text[MAX_TEXT];
    dti_pen pen = { text, sizeof text, 0 };
    uint32_t parts = parts_of(spec->mesh, dim);
    bool first = true;
    dti_put(&pen, "*");
    for (int m = 0; m < spec->mesh->dim_count; m++) {
        if (!(parts >> m & 1)) continue;
        dti_put(&pen, ",%s:%s", spec->mesh->dims[m].name, first || !outer_alone ? place : "R");
        first = false;
    }
    return dt_spec_replace(spec, text);
}

/* Is a place one along the outer part of the dim alone? */
static bool is_outer(const styled *s, const char *place) { return s->outer > 1 && *place == 'S'; }

/* The view on which a module's parameters have their units. */
static dt_mesh *view_of(dt_module *module, const styled *s)
{
    char text[MAX_TEXT];
    int size = dt_mesh_size(module->mesh, s->dim);
    snprintf(text, sizeof text, "%s.0=%d,%s.1=%d", s->dim, s->outer, s->dim, size / s->outer);
    return dt_mesh_split(module->mesh, s->dim, text);
}

/* What a tensor is to become: on the module's mesh, or the view, if its other placements can be said there, else on its
 * own. */
static const dt_spec *target(dt_module *module, const styled *s, const dt_spec *given, const char *place)
{
    const dt_spec *on, *whole = along(given, s->dim, "R", false);
    bool outer = is_outer(s, place), copies = s->outer == 1 && *place == 'S';
    dt_mesh *mesh = outer ? view_of(module, s) : module->mesh;
    if (!whole || !mesh || !dti_spec_on(whole, mesh, &on)) return NULL;
    return along(on ? on : whole, s->dim, copies ? "R" : place, outer && on);
}

/* What is split along the outer part alone says nothing of the inner one: gradients of copies there stay P, so that
 * their sum is that of a weight, once per step, not of activations. */
static uint32_t named_by(const styled *s, const dt_mesh *mesh, const char *place)
{
    uint32_t parts = parts_of(mesh, s->dim);
    return is_outer(s, place) ? parts & (~parts + 1) : parts;
}

static dt_tensor *place(dt_module *module, const styled *s, dt_tensor *x, const char *text)
{
    if (!*text) return x;
    const dt_spec *spec = target(module, s, x->spec, text);
    return spec ? dti_tensor_pin(x, spec, named_by(s, x->spec->mesh, text)) : NULL;
}

static dt_tensor *place_input(dt_module *module, int index, dt_tensor *in, void *arg)
{
    const styled *s = arg;
    return place(module, s, in, s->in[index]);
}

static dt_tensor *place_output(dt_module *module, dt_tensor *out, void *arg)
{
    const styled *s = arg;
    return place(module, s, out, s->out);
}

/* ---- one module -------------------------------------------------------------------------------------------------- */

/* The next piece of a list, without blanks at its ends; *list goes behind it. false: there is none. */
static bool next_piece(const char **list, const char *separator, dti_word *piece)
{
    if (!*list || !**list) return false;
    const char *at = *list + strspn(*list, " \t");
    size_t n = strcspn(at, separator);
    *list = at + n + (at[n] != 0);
    while (n && strchr(" \t", at[n - 1])) n--;
    *piece = (dti_word){ at, (int)n };
    return true;
}

/* A place as text, checked where nothing is said of dims yet. */
static bool read_place(dt_module *module, const char *dim, dti_word piece, char *place)
{
    char text[MAX_TEXT];
    *place = 0;
    if (piece.n == 0) return true;
    if (piece.n >= MAX_PLACE)
        return dti_fail(module->ctx, DT_ERR_PARSE, "expected R, S(d) or P, got \"%.*s\"", piece.n, piece.text), false;
    snprintf(place, MAX_PLACE, "%.*s", piece.n, piece.text);
    snprintf(text, sizeof text, "%s:%s", dim, place);
    return dt_spec_create(module->mesh, DT_F32, (dt_shape){ DT_MAX_DIMS, { 1, 1, 1, 1, 1, 1, 1, 1 } }, text) != NULL;
}

static bool read_inputs(dt_module *module, const char *dim, const char *in, styled *s)
{
    int most = module->type->inputs ? module->type->inputs : 1, n = 0;
    for (dti_word piece; next_piece(&in, ";", &piece); n++) {
        if (n == most)
            return dti_fail(module->ctx, DT_ERR_ARG, "a style for more inputs than %d", most), false;
        if (!read_place(module, dim, piece, s->in[n])) return false;
    }
    return true;
}

static dti_param *find_param(dt_module *module, dti_word name)
{
    dti_param *param = module->params;
    while (param && !dti_word_is(name, param->name)) param = param->next;
    return param;
}

static bool place_param(dti_param *param, const char *dim, const char *place, bool checking)
{
    char text[MAX_TEXT];
    if (param->made) return dti_fail(param->tensor->ctx, DT_ERR_STATE, "%s has values", param->name), false;
    snprintf(text, sizeof text, "*,%s:%s", dim, place);
    const dt_spec *base = dti_param_spec(param, text, DT_DTYPE_DEFAULT);
    if (!base) return false;
    dti_param placed = *param;
    placed.base = base;
    if (checking) return dti_param_may(&placed, NULL);
    *param = placed;
    return dti_param_derive(param);
}

static dti_word name_of(dti_word piece)
{
    const char *equals = memchr(piece.text, '=', (size_t)piece.n);
    return (dti_word){ piece.text, equals ? (int)(equals - piece.text) : 0 };
}

/* Does a piece of a list before this one have its name? */
static bool named_before(const char *list, dti_word name)
{
    for (dti_word piece; next_piece(&list, ";", &piece) && piece.text != name.text;)
        if (name_of(piece).n == name.n && memcmp(piece.text, name.text, (size_t)name.n) == 0) return true;
    return false;
}

/* "weight=S(0);bias=S(0)". */
static bool place_params(dt_module *module, const char *list, styled *s, bool checking)
{
    char place[MAX_PLACE];
    const char *all = list;
    for (dti_word piece; next_piece(&list, ";", &piece);) {
        dti_word name = name_of(piece);
        if (name.n == 0)
            return dti_fail(module->ctx, DT_ERR_PARSE, "expected NAME=PLACE, got \"%.*s\"", piece.n, piece.text), false;
        if (named_before(all, name))
            return dti_fail(module->ctx, DT_ERR_ARG, "\"%s\" places %.*s twice", all, name.n, name.text), false;
        dti_param *param = find_param(module, name);
        dti_word at = { name.text + name.n + 1, piece.n - name.n - 1 };
        if (!read_place(module, s->dim, at, place)) return false;
        if (!param || !*place) continue;
        if (!place_param(param, s->dim, place, checking)) return false;
        int outer = dti_param_outer(param, s->dim);
        if (outer) s->outer = outer;
    }
    return true;
}

static bool has_style(const dt_module *module, const char *dim)
{
    for (const dti_module_hook *hook = module->hooks; hook; hook = hook->next)
        if (hook->input == place_input && strcmp(((const styled *)hook->arg)->dim, dim) == 0) return true;
    return false;
}

static bool apply(dt_module *module, const char *dim, const dt_style_row *row, bool checking)
{
    dt_context *ctx = module->ctx;
    styled checked;
    if (has_style(module, dim)) return dti_fail(ctx, DT_ERR_STATE, "it has a style along %s", dim), false;
    int m = dti_mesh_dim_index(module->mesh, (dti_word){ dim, (int)strlen(dim) });
    styled *s = m < 0 ? NULL : checking ? memset(&checked, 0, sizeof checked) : dti_context_take(ctx, sizeof *s);
    const char *out = row->out ? row->out : row->style->out;
    if (!s) return false;
    s->dim = module->mesh->dims[m].name;
    return place_params(module, row->style->params, s, checking)
        && read_inputs(module, dim, row->in ? row->in : row->style->in, s)
        && (!out || read_place(module, dim, (dti_word){ out, (int)strlen(out) }, s->out))
        && (checking || dti_module_hook_owned(module, place_input, place_output, s, NULL) == DT_OK);
}

/* ---- a table ----------------------------------------------------------------------------------------------------- */

/* The row of a module; NULL: none, or, *clash, two. */
static const dt_style_row *row_of(const char *path, const dt_style_row *rows, int n, const dt_style_row **clash)
{
    const dt_style_row *found = NULL;
    *clash = NULL;
    for (int i = 0; i < n && !*clash; i++) {
        if (!dti_path_matches(path, rows[i].pattern)) continue;
        if (found) *clash = &rows[i];
        else found = &rows[i];
    }
    return found;
}

static bool check_rows(dt_module *root, const char *dim, const dt_style_row *rows, int n)
{
    if (!dim)
        return dti_fail(root->ctx, DT_ERR_ARG, "dt_parallelize: no dim of mesh %s", dt_mesh_text(root->mesh)), false;
    if (dti_mesh_dim_index(root->mesh, (dti_word){ dim, (int)strlen(dim) }) < 0) return false;
    if (n < 0 || (n && !rows)) return dti_fail(root->ctx, DT_ERR_ARG, "dt_parallelize: %d rows", n), false;
    for (int i = 0; i < n; i++) {
        if (!dti_pattern_ok(root, "dt_parallelize", rows[i].pattern)) return false;
        if (!rows[i].style)
            return dti_fail(root->ctx, DT_ERR_ARG, "dt_parallelize: no style for \"%s\"", rows[i].pattern), false;
        if (dt_module_list(root, rows[i].pattern, NULL, 0) == 0 && !dti_failed(root->ctx))
            dti_fail(root->ctx, DT_ERR_ARG, "dt_parallelize: nothing in %s matches \"%s\"", dti_module_name(root),
                     rows[i].pattern);
        if (dti_failed(root->ctx)) return false;
    }
    return true;
}

static bool visit(dt_module *root, dt_module *module, const char *dim, const dt_style_row *rows, int n, bool checking)
{
    const char *path = dti_path_below(root, dt_module_path(module)), *outside = root->ctx->inside;
    const dt_style_row *clash, *row = path ? row_of(path, rows, n, &clash) : NULL;
    if (!row) return path != NULL;
    root->ctx->inside = dti_module_name(module);
    if (clash)
        dti_fail(root->ctx, DT_ERR_ARG, "dt_parallelize: \"%s\" and \"%s\" match it", row->pattern, clash->pattern);
    bool done = !clash && apply(module, dim, row, checking);
    root->ctx->inside = outside;
    return done;
}

/* All are looked at before any is changed. */
dt_status dt_parallelize(dt_module *root, const char *dim, const dt_style_row *rows, int n)
{
    if (!root) return DT_ERR_ARG;
    if (dti_failed(root->ctx) || !check_rows(root, dim, rows, n)) return root->ctx->status;
    for (int checking = 1; checking >= 0; checking--)
        for (dt_module *at = root; at; at = dti_module_next(root, at))
            if (!visit(root, at, dim, rows, n, checking)) return root->ctx->status;
    return DT_OK;
}
