/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of names in which meshes, parts of meshes and topologies are written: name ["=" int] {"," ...}. One reader
 * and one printer for all of them; what may stand in each kind of list is one row of a table. */
#ifndef DTI_MESH_TEXT_H
#define DTI_MESH_TEXT_H

#include "mesh/mesh.h"

typedef enum dti_list_kind {
    DTI_LIST_MESH,                 /* "dp=2,tp"   sizes may be left out                                            */
    DTI_LIST_OPTION,               /* "dp=2,tp=4" of --dt-mesh: every dim has its size                             */
    DTI_LIST_DIMS,                 /* "dp,tp"     names alone                                                      */
    DTI_LIST_COORDS,               /* "pp=1"      coordinates, from 0                                              */
    DTI_LIST_PARTS,                /* "kv=8,rep"  what a dim is split into                                         */
    DTI_LIST_LEVELS,               /* "node=2,gpu=8" of --dt-topology                                              */
    DTI_LIST_KIND_COUNT
} dti_list_kind;

enum { DTI_UNSIZED = -1 };

typedef struct dti_item { dti_word name; int number; } dti_item; /* number: a size or a coordinate, or DTI_UNSIZED */

/* The names point into the text that was read. */
typedef struct dti_list {
    dti_scan scan;                 /* kept for errors found later: they point at an item's column                  */
    int n;
    dti_item items[DT_MAX_MESH_DIMS];
} dti_list;

/* Room for any list as text: 16 names of 63 characters, each with "=", a number and a comma. */
enum { DTI_LIST_BYTES = DT_MAX_MESH_DIMS * (63 + 1 + 10 + 1) + 1 };

/* Read a text of a kind. false and the error: in no notation, a name twice, a number out of range, NULL. */
bool dti_list_read(dti_list *list, dt_context *ctx, dti_list_kind kind, const char *text);
/* Index of a name, -1: none. */
int dti_list_find(const dti_list *list, dti_word name);
/* Give sizes to the items without: the first takes what remains of total, others 1. false and DT_ERR_ARG if the sizes
 * do not multiply to total. */
bool dti_list_fill(dti_list *list, int total);
/* Write items as text of at most DTI_LIST_BYTES; returns its length. */
size_t dti_list_print(const dti_item *items, int n, char *text);

#endif
