/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec as a program writes it, drawn at random, and what it means, element by element. The meaning is taken from the
 * definition alone: element j of n lies in piece i of k where i n <= j k < (i + 1) n. It knows no normal form, no
 * interval and no cached text, so that these can be compared with it. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include <stdio.h>
#include <string.h>

#include <dtensor/spec.h>

enum { WRITTEN_TEXT = 2048, WRITTEN_KINDS = 5 };

typedef enum written_place { WRITTEN_R, WRITTEN_S, WRITTEN_P } written_place;

typedef struct written_item {      /* of one mesh dim                                                              */
    written_place place;
    int mesh_dim, dim, factor, kind; /* factor: among those of all dims                                            */
} written_item;

typedef struct written {
    dt_mesh *mesh;
    dt_dtype dtype;
    int dims, first[DT_MAX_DIMS + 1]; /* factors of dim d: [first[d], first[d + 1])                                */
    int64_t size[DT_MAX_FACTORS];
    int n;
    written_item items[DT_MAX_MESH_DIMS]; /* in the order written                                                  */
} written;

static inline unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static inline int written_mesh_size(const written *w, int mesh_dim)
{
    return dt_mesh_size(w->mesh, dt_mesh_dim_name(w->mesh, mesh_dim));
}

static inline int written_factors(const written *w) { return w->first[w->dims]; }

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

/* Sizes of at most this many elements, of dims that are products of up to `factors` factors. */
static inline void written_draw_sizes(written *w, int factors, int64_t elements, unsigned *seed)
{
    int n = 0;
    w->dtype = (dt_dtype)(DT_F64 + below(seed, DT_DTYPE_COUNT - DT_F64));
    w->dims = (int)below(seed, 5);
    for (int d = 0; d < w->dims; d++) {
        w->first[d] = n;
        for (int f = 1 + (int)below(seed, (unsigned)factors); f > 0; f--) {
            int64_t size = below(seed, 40) ? 1 + below(seed, 13) : 0;
            if (size > elements) size = 1;
            if (size) elements /= size;
            w->size[n++] = size;
        }
    }
    w->first[w->dims] = n;
}

static inline int written_dim_of(const written *w, int factor)
{
    int d = 0;
    while (w->first[d + 1] <= factor) d++;
    return d;
}

static inline void written_draw_item(written *w, int mesh_dim, int kind, unsigned *seed)
{
    unsigned what = below(seed, 8);
    if (what == 0) return;
    written_item *item = &w->items[w->n++];
    *item = (written_item){ .mesh_dim = mesh_dim, .place = WRITTEN_R };
    if (what < 6 && w->dims) {
        item->place = WRITTEN_S;
        item->factor = (int)below(seed, (unsigned)written_factors(w));
        item->dim = written_dim_of(w, item->factor);
    } else if (what == 6) {
        item->place = WRITTEN_P;
        item->kind = kind < 2 ? (int)below(seed, 2) : kind;            /* sum and avg mix                          */
    }
}

/* Placements on all dims of its mesh, in any order. */
static inline void written_draw_items(written *w, unsigned *seed)
{
    int order[DT_MAX_MESH_DIMS], n = dt_mesh_dim_count(w->mesh), kind = (int)below(seed, WRITTEN_KINDS);
    w->n = 0;
    for (int d = 0; d < n; d++) {
        int at = (int)below(seed, (unsigned)d + 1);
        order[d] = order[at];
        order[at] = d;
    }
    for (int i = 0; i < n; i++) written_draw_item(w, order[i], kind, seed);
}

static inline written written_draw(dt_mesh *mesh, int factors, int64_t elements, unsigned *seed)
{
    written w;
    memset(&w, 0, sizeof w);
    w.mesh = mesh;
    written_draw_sizes(&w, factors, elements, seed);
    written_draw_items(&w, seed);
    return w;
}

/* ---- text: one of its spellings, by chance ---------------------------------------------------------------------- */

static inline void written_add(char *text, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, WRITTEN_TEXT - n, "%s", more);
}

static inline void written_sizes(const written *w, unsigned *seed, char *text)
{
    char one[64];
    snprintf(text, WRITTEN_TEXT, "%s[", dt_dtype_text(w->dtype));
    for (int d = 0; d < w->dims; d++) {
        int n = w->first[d + 1] - w->first[d];
        written_add(text, d ? "," : "");
        for (int f = w->first[d]; f < w->first[d + 1]; f++) {
            const char *before = f > w->first[d] ? below(seed, 4) ? " " : " \t " : n > 1 ? "(" : "";
            snprintf(one, sizeof one, "%s%s%lld", before, below(seed, 8) ? "" : "00", (long long)w->size[f]);
            written_add(text, one);
        }
        written_add(text, n > 1 ? ")" : "");
    }
    written_add(text, "]");
}

static inline void written_item_text(const written *w, const written_item *item, unsigned *seed, char *text)
{
    static const char *const kinds[WRITTEN_KINDS] = { "(sum)", "(avg)", "(max)", "(min)", "(prod)" };
    char one[192];
    const char *name = dt_mesh_dim_name(w->mesh, item->mesh_dim);
    int part = item->factor - w->first[item->dim], dim = below(seed, 2) ? item->dim : item->dim - w->dims;
    if (item->place == WRITTEN_R) snprintf(one, sizeof one, "%s:R", name);
    else if (item->place == WRITTEN_P)
        snprintf(one, sizeof one, "%s:P%s", name, item->kind == 0 && below(seed, 2) ? "" : kinds[item->kind]);
    else if (part == 0 && below(seed, 2)) snprintf(one, sizeof one, "%s:S(%d)", name, dim);
    else snprintf(one, sizeof one, "%s:S(%d.%d)", name, dim, part);
    written_add(text, one);
}

static inline void written_placements(const written *w, unsigned *seed, char *text)
{
    text[0] = '\0';
    for (int i = 0; i < w->n; i++) {
        written_add(text, i ? "," : "");
        written_item_text(w, &w->items[i], seed, text);
    }
}

static inline void written_text(const written *w, unsigned *seed, char *text)
{
    char placements[WRITTEN_TEXT];
    written_sizes(w, seed, text);
    written_placements(w, seed, placements);
    if (!placements[0] && below(seed, 2)) return;
    written_add(text, "@");
    written_add(text, placements);
}

static inline const dt_spec *written_spec(const written *w, unsigned *seed)
{
    char text[WRITTEN_TEXT];
    written_text(w, seed, text);
    return dt_spec_parse(w->mesh, text);
}

/* ---- meaning ---------------------------------------------------------------------------------------------------- */

/* Coordinate of a mesh rank: ranks are row-major over the dims, outermost first. */
static inline int written_coord(const written *w, int mesh_dim, int rank)
{
    for (int d = dt_mesh_dim_count(w->mesh) - 1; d > mesh_dim; d--) rank /= written_mesh_size(w, d);
    return rank % written_mesh_size(w, mesh_dim);
}

/* Does a mesh rank hold index j of one factor? */
static inline bool written_holds_index(const written *w, int factor, int rank, int64_t j)
{
    int64_t piece = 0, pieces = 1;
    for (int i = 0; i < w->n; i++) {
        const written_item *item = &w->items[i];
        if (item->place != WRITTEN_S || item->factor != factor) continue;
        piece = piece * written_mesh_size(w, item->mesh_dim) + written_coord(w, item->mesh_dim, rank);
        pieces *= written_mesh_size(w, item->mesh_dim);
    }
    return piece * w->size[factor] <= j * pieces && j * pieces < (piece + 1) * w->size[factor];
}

static inline int64_t written_elements(const written *w)
{
    int64_t n = 1;
    for (int f = 0; f < written_factors(w); f++) n *= w->size[f];
    return n;
}

/* holds[e]: does a mesh rank hold the row-major element e? */
static inline void written_holding(const written *w, int rank, bool *holds)
{
    bool index[DT_MAX_FACTORS][64];
    int64_t n = written_elements(w);
    for (int f = 0; f < written_factors(w); f++)
        for (int64_t j = 0; j < w->size[f]; j++) index[f][j] = written_holds_index(w, f, rank, j);
    for (int64_t e = 0; e < n; e++) {
        int64_t rest = e;
        holds[e] = true;
        for (int f = written_factors(w) - 1; f >= 0; f--) {
            holds[e] &= index[f][rest % w->size[f]];
            rest /= w->size[f];
        }
    }
}

/* How many ranks hold each element: those that differ along mesh dims that split nothing. */
static inline int written_copies(const written *w)
{
    int copies = dt_mesh_size(w->mesh, NULL);
    for (int i = 0; i < w->n; i++)
        if (w->items[i].place == WRITTEN_S) copies /= written_mesh_size(w, w->items[i].mesh_dim);
    return copies;
}

/* The kind of P along a mesh dim, -1: none. */
static inline int written_partial(const written *w, int mesh_dim)
{
    for (int i = 0; i < w->n; i++)
        if (w->items[i].mesh_dim == mesh_dim && w->items[i].place == WRITTEN_P) return w->items[i].kind;
    return -1;
}

#endif
