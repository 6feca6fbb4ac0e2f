/* SPDX-License-Identifier: Apache-2.0
 *
 * Common refinements of views. A piece is an axis between two cuts that follow each other; a mesh dim is a list of
 * pieces, and two views that are refined by the same cuts have the same pieces. */
#include "placements/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/draft.h"

enum { MAX_CUTS = 2 * DTI_MAX_AXES * (DTI_MAX_VIEWS + 1), MAX_NAME = 64 };

typedef struct cuts { int n, at[MAX_CUTS]; } cuts;     /* ranks apart, largest first                               */

typedef struct pieces {                /* of a mesh, dim after dim                                                 */
    int n;
    dti_axis at[DTI_MAX_AXES];
    int dim[DTI_MAX_AXES];
} pieces;

static bool is_same(dti_axis a, dti_axis b) { return a.size == b.size && a.stride == b.stride; }

/* ---- refining ---------------------------------------------------------------------------------------------------- */

static void add_cut(cuts *c, int cut)
{
    int at = 0;
    while (at < c->n && c->at[at] > cut) at++;
    if (at < c->n && c->at[at] == cut) return;
    memmove(c->at + at + 1, c->at + at, (size_t)(c->n - at) * sizeof c->at[0]);
    c->at[at] = cut;
    c->n++;
}

static void add_mesh(cuts *c, const dt_mesh *mesh)
{
    for (int d = 0; d < mesh->dim_count; d++)
        for (int a = 0; a < mesh->dims[d].axis_count; a++) {
            dti_axis axis = mesh->dims[d].axes[a];
            add_cut(c, axis.stride);
            add_cut(c, axis.stride * axis.size);
        }
}

/* false: a cut falls inside an axis and does not divide it. */
static bool refine(const dt_mesh *mesh, const cuts *c, pieces *out)
{
    out->n = 0;
    for (int d = 0; d < mesh->dim_count; d++)
        for (int a = 0; a < mesh->dims[d].axis_count; a++) {
            dti_axis axis = mesh->dims[d].axes[a];
            int end = axis.stride * axis.size;
            for (int i = 0; i < c->n; i++) {
                if (c->at[i] >= end || c->at[i] < axis.stride) continue;
                if (end % c->at[i] != 0 || out->n == DTI_MAX_AXES) return false;
                out->dim[out->n] = d;
                out->at[out->n++] = (dti_axis){ end / c->at[i], c->at[i] };
                end = c->at[i];
            }
        }
    return true;
}

static int find_piece(const pieces *p, dti_axis piece)
{
    for (int i = 0; i < p->n; i++)
        if (is_same(p->at[i], piece)) return i;
    return -1;
}

/* ---- one spec on another view ------------------------------------------------------------------------------------ */

/* How many pieces of a list are those of the dim that begins with its first; 0: none does, or it goes on otherwise. */
static int whole_dim(const pieces *to, const dti_axis *list, int n, int *dim)
{
    int first = n ? find_piece(to, list[0]) : -1, count = 0;
    if (first < 0 || (first > 0 && to->dim[first - 1] == to->dim[first])) return 0;
    *dim = to->dim[first];
    while (first + count < to->n && to->dim[first + count] == *dim) {
        if (count == n || !is_same(to->at[first + count], list[count])) return 0;
        count++;
    }
    return count;
}

static bool split_factor(const dti_form *form, int f, const pieces *from, const pieces *to, dti_form *out)
{
    dti_axis list[DTI_MAX_AXES];
    int n = 0, at = out->split_first[f];
    for (int k = form->split_first[f]; k < form->split_first[f + 1]; k++)
        for (int i = 0; i < from->n; i++)
            if (from->dim[i] == form->split[k]) list[n++] = from->at[i];
    for (int i = 0, dim = 0, count; i < n; i += count) {
        count = whole_dim(to, list + i, n - i, &dim);
        if (count == 0) return false;
        out->split[at++] = (int8_t)dim;
    }
    out->split_first[f + 1] = (int8_t)at;
    return true;
}

static bool place_partial(const dti_form *form, const pieces *from, const pieces *to, dti_form *out)
{
    for (int i = 0; i < to->n; i++) {
        int piece = find_piece(from, to->at[i]);
        int8_t kind = piece < 0 ? 0 : form->partial[from->dim[piece]];
        bool first = i == 0 || to->dim[i - 1] != to->dim[i];
        if (!first && out->partial[to->dim[i]] != kind) return false;
        out->partial[to->dim[i]] = kind;
    }
    return true;
}

bool dti_spec_on(const dt_spec *spec, dt_mesh *mesh, const dt_spec **out)
{
    cuts c = { 0 };
    pieces from, to;
    dti_form form;
    *out = spec->mesh == mesh ? spec : NULL;
    if (*out || spec->mesh->base != mesh->base || spec->mesh->size != mesh->size) return true;
    add_mesh(&c, spec->mesh);
    add_mesh(&c, mesh);
    if (!refine(spec->mesh, &c, &from) || !refine(mesh, &c, &to)) return true;
    form = spec->form;
    memset(form.split, 0, sizeof form.split);
    memset(form.split_first, 0, sizeof form.split_first);
    memset(form.partial, 0, sizeof form.partial);
    for (int f = 0; f < form.factor_first[form.dim_count]; f++)
        if (!split_factor(&spec->form, f, &from, &to, &form)) return true;
    if (!place_partial(&spec->form, &from, &to, &form)) return true;
    const dt_spec *made = dti_spec_intern(mesh, &form);
    if (made && made->layout == spec->layout) *out = made; /* else these are other ranks                           */
    return made != NULL;
}

/* ---- the common refinement --------------------------------------------------------------------------------------- */

typedef struct joining {               /* large, so made once                                                      */
    int n;                             /* meshes: the first is the first operand's                                 */
    dt_mesh *mesh[DTI_MAX_VIEWS];
    bool refined[DTI_MAX_VIEWS];     /* it has a refinement with those before it                                 */
    cuts cuts;
    pieces pieces[DTI_MAX_VIEWS];
} joining;

static void add_view(joining *j, dt_mesh *mesh)
{
    for (int i = 0; i < j->n; i++)
        if (j->mesh[i] == mesh) return;
    j->mesh[j->n++] = mesh;
}

/* Meshes join while all that joined before can still be refined. */
static void refine_views(joining *j)
{
    for (int i = 0; i < j->n; i++) {
        cuts before = j->cuts;
        bool all = true;
        add_mesh(&j->cuts, j->mesh[i]);
        j->refined[i] = true;
        for (int k = 0; k <= i && all; k++) all = !j->refined[k] || refine(j->mesh[k], &j->cuts, &j->pieces[k]);
        if (all) continue;
        j->refined[i] = false;
        j->cuts = before;
    }
    for (int k = 0; k < j->n; k++)
        if (j->refined[k]) refine(j->mesh[k], &j->cuts, &j->pieces[k]);
}

/* Do two pieces of one dim of the first mesh follow each other in one dim of every other? */
static bool stay_together(const joining *j, dti_axis a, dti_axis b)
{
    for (int k = 1; k < j->n; k++) {
        const pieces *p = &j->pieces[k];
        int at = j->refined[k] ? find_piece(p, a) : -1;
        if (!j->refined[k]) continue;
        if (at < 0 || at + 1 == p->n || p->dim[at] != p->dim[at + 1] || !is_same(p->at[at + 1], b)) return false;
    }
    return true;
}

static bool add_part(dti_draft *draft, const dti_mesh_dim *dim, int part, char *name, const dti_axis *axes, int n)
{
    int length = snprintf(name, MAX_NAME + 16, "%s.%d", dim->name, part);
    if (length >= MAX_NAME) return false;
    dti_draft_dim(draft, (dti_word){ name, length }, axes, n);
    return true;
}

/* The first mesh, its dims split where pieces do not stay together. NULL without an error: it would have too many dims,
 * or names too long. */
static dt_mesh *split_first_mesh(const joining *j)
{
    dt_mesh *mesh = j->mesh[0];
    const pieces *p = &j->pieces[0];
    char names[DT_MAX_MESH_DIMS][MAX_NAME + 16]; /* a draft copies none                                            */
    dti_draft draft;
    dti_draft_init(&draft, mesh->ctx, mesh->base);
    draft.origin = mesh;
    for (int d = 0, at = 0; d < mesh->dim_count; d++) {
        const dti_mesh_dim *dim = &mesh->dims[d];
        int end = at, parts = 0;
        bool whole = true;
        while (end < p->n && p->dim[end] == d) end++;
        for (int i = at; i + 1 < end; i++) whole &= stay_together(j, p->at[i], p->at[i + 1]);
        if (whole && draft.dim_count == DT_MAX_MESH_DIMS) return NULL;
        if (whole) dti_draft_dim(&draft, (dti_word){ dim->name, (int)strlen(dim->name) }, dim->axes, dim->axis_count);
        for (int first = at, i = at; !whole && i < end; i++) {
            if (i + 1 < end && stay_together(j, p->at[i], p->at[i + 1])) continue;
            if (draft.dim_count == DT_MAX_MESH_DIMS
                || !add_part(&draft, dim, parts++, names[draft.dim_count], p->at + first, i + 1 - first)) return NULL;
            first = i + 1;
        }
        at = end;
    }
    return dti_draft_intern(&draft, NULL);
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static const dt_spec *whole_on(const dt_spec *spec, dt_mesh *mesh)
{
    return dt_spec_create(mesh, dt_spec_dtype(spec), spec->shape, NULL);
}

static bool check_ranks(dt_context *ctx, const char *who, const dt_spec *first, const dt_spec *spec)
{
    if (dti_layout_same_ranks(first->layout, spec->layout)) return true;
    dti_fail(ctx, DT_ERR_PLACEMENT, "%s: %s lies on mesh %s and %s on %s, over other ranks; expected operands over the "
             "same ranks: see dt_redistribute_to", who, dt_spec_text(first), first->mesh->text, dt_spec_text(spec),
             spec->mesh->text);
    return false;
}

static bool find_views(joining *j, dt_context *ctx, const char *who, const dt_spec *const *in, int n)
{
    const dt_spec *first = NULL;
    for (int i = 0; i < n; i++) {
        if (!in[i]) continue;
        if (!first) first = in[i];
        if (!check_ranks(ctx, who, first, in[i])) return false;
        add_view(j, in[i]->mesh);
    }
    return true;
}

static bool place_all(const joining *j, const dt_spec *const *in, int n, const dt_spec **on)
{
    dt_mesh *mesh = split_first_mesh(j);
    if (!mesh && dti_failed(j->mesh[0]->ctx)) return false;
    if (!mesh) mesh = j->mesh[0];
    for (int i = 0; i < n; i++) {
        on[i] = NULL;
        if (!in[i]) continue;
        if (!dti_spec_on(in[i], mesh, &on[i]) || (!on[i] && !(on[i] = whole_on(in[i], mesh)))) return false;
    }
    return true;
}

bool dti_meshes_join(dt_context *ctx, const char *who, const dt_spec *const *in, int n, const dt_spec **on)
{
    const dt_mesh *mesh = NULL;
    bool one = true;
    for (int i = 0; i < n; i++) {
        on[i] = in[i];
        if (!mesh && in[i]) mesh = in[i]->mesh;
        one &= !in[i] || in[i]->mesh == mesh;
    }
    if (one) return true;
    joining *j = calloc(1, sizeof *j);
    if (!j) return dti_fail(ctx, DT_ERR_MEMORY, "%s: no memory for its meshes", who), false;
    bool joined = find_views(j, ctx, who, in, n);
    if (joined) {
        refine_views(j);
        joined = place_all(j, in, n, on);
    }
    free(j);
    return joined;
}
