/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a spec. A form is what a spec says, as a plain value: sizes as products of factors, for each factor the
 * mesh dims that split it, for each mesh dim whether it is partial. Specs are forms in normal form, interned. */
#ifndef DTI_SPEC_H
#define DTI_SPEC_H

#include <dtensor/spec.h>

#include "core/pen.h"
#include "core/scan.h"
#include "placements/layout.h"

typedef struct dti_form {          /* no padding that is not zeroed: forms are hashed and compared as bytes        */
    int32_t dtype, dim_count;
    int32_t factor_first[DT_MAX_DIMS + 1]; /* factors of dim d: [factor_first[d], factor_first[d + 1])             */
    int8_t split_first[DT_MAX_FACTORS + 1]; /* mesh dims of factor f: split[split_first[f] .. split_first[f + 1])  */
    int8_t split[DT_MAX_MESH_DIMS];
    int8_t partial[DT_MAX_MESH_DIMS]; /* a dti_partial per mesh dim                                                */
    int8_t zero[7];
    int64_t size[DT_MAX_FACTORS];
} dti_form;

typedef enum dti_place_kind { DTI_PLACE_R = 0, DTI_PLACE_S, DTI_PLACE_P } dti_place_kind;

struct dt_spec {
    dt_mesh *mesh;
    uint64_t hash;
    const dti_layout *layout;
    dt_shape shape;
    dt_shape local;                /* of this rank's part; sizes of 0 outside the mesh                             */
    int64_t local_count, local_bytes; /* its elements, and their bytes                                             */
    dti_form form;                 /* in normal form                                                               */
    const char *written;           /* canonical, once it was asked for (dt_spec_text)                              */
    const char *written_placements; /* the part of it after the @                                                  */
};

/* Bring a form into normal form: neighbouring factors of one dim that are cut like their product become it. */
void dti_form_normalize(dti_form *form, const dt_mesh *mesh);
/* How many pieces the mesh dims of a factor make. */
int dti_form_pieces(const dti_form *form, const dt_mesh *mesh, int factor);
/* The factor that a mesh dim splits; -1: none. */
int dti_form_split_by(const dti_form *form, int mesh_dim);
/* How a mesh dim places a tensor. */
dti_place_kind dti_form_place(const dti_form *form, int mesh_dim);
/* Product of a dim's factors. */
int64_t dti_form_dim(const dti_form *form, int dim);
/* Put a dim of another form behind those of this one, with what splits it. */
void dti_form_add_dim(dti_form *form, const dti_form *from, int dim);
/* Is a dim split? */
bool dti_form_splits(const dti_form *form, int dim);
/* The spec of a form; normalizes it first. NULL and the error when memory ran out. */
const dt_spec *dti_spec_intern(dt_mesh *mesh, dti_form *form);
/* The spec of a form that is not split, placed as a text says. base: what * stands for; NULL: that is an error. NULL:
 * the error. */
const dt_spec *dti_spec_place(dt_mesh *mesh, const dti_form *base, const char *text, dti_form *form);
/* The same in another dtype; 0: its own. NULL and the error when memory ran out. */
const dt_spec *dti_spec_as_dtype(const dt_spec *spec, dt_dtype dtype);
/* The layout of a normal form; NULL and the error when memory ran out. */
const dti_layout *dti_layout_intern(dt_mesh *mesh, const dti_form *form);

/* Indices of one dim that a rank of the mesh holds. */
void dti_spec_set(const dt_spec *spec, int dim, int mesh_rank, dti_set *set);

/* Parsers and printers (spec_text.c). Base: what * stands for, or NULL. */
bool dti_scan_dtype(dti_scan *scan, int32_t *dtype);
bool dti_scan_sizes(dti_scan *scan, dti_form *form);
bool dti_scan_placements(dti_scan *scan, const dt_mesh *mesh, const dti_form *base, dti_form *form);
/* Canonical text of a normal form into arena memory; *placements points behind its @. NULL: memory ran out. */
const char *dti_form_text(const dti_form *form, const dt_mesh *mesh, const char **placements);
/* The sizes of a form, "[(2 14336),8192]". */
void dti_put_sizes(dti_pen *pen, const dti_form *form);
/* Fail unless elements and bytes of all sizes fit 63 bits. */
bool dti_form_fits(dti_scan *scan, const dti_form *form);

#endif
