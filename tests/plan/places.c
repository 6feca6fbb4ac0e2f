/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements, enumerated: a choice is a number in base (R, P, S(0), S(1) ..) over the mesh dims. */
#include "plan/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append the place of a mesh dim: 0: R, 1: P, 2 + d: S(d). */
static void put_place(char *text, size_t room, const char *name, int place, const char *partial)
{
    size_t used = strlen(text);
    const char *comma = used ? "," : "";
    if (place == 1) snprintf(text + used, room - used, "%s%s:%s", comma, name, partial);
    else if (place > 1) snprintf(text + used, room - used, "%s%s:S(%d)", comma, name, place - 2);
}

static void put_choice(place_list *list, const dt_mesh *mesh, const int *choice, const char *partial, bool backward)
{
    int dims = dt_mesh_dim_count(mesh);
    if (list->count == PLACES_MAX) return;
    char *text = list->text[list->count++];
    *text = '\0';
    for (int i = 0; i < dims; i++) {
        int d = backward ? dims - 1 - i : i;
        put_place(text, sizeof list->text[0], dt_mesh_dim_name(mesh, d), choice[d], partial);
    }
}

/* Do two mesh dims split one dim, so that their order matters? */
static bool shares(const int *choice, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (choice[i] > 1 && choice[i] == choice[j]) return true;
    return false;
}

static bool has_partial(const int *choice, int n)
{
    for (int i = 0; i < n; i++)
        if (choice[i] == 1) return true;
    return false;
}

void places_fill(place_list *list, const dt_mesh *mesh, int tensor_dims, const char *partial)
{
    int dims = dt_mesh_dim_count(mesh), kinds = 2 + tensor_dims, choice[DT_MAX_MESH_DIMS] = { 0 }, all = 1;
    for (int d = 0; d < dims; d++) all *= kinds;
    list->count = 0;
    for (int i = 0; i < all; i++) {
        for (int d = dims - 1, rest = i; d >= 0; d--, rest /= kinds) choice[d] = rest % kinds;
        if (!partial && has_partial(choice, dims)) continue;
        put_choice(list, mesh, choice, partial, false);
        if (shares(choice, dims)) put_choice(list, mesh, choice, partial, true);
    }
}

const char *places_spec(const place_list *list, int i, const char *sizes, char *text, size_t room)
{
    snprintf(text, room, "f32[%s]%s%s", sizes, *list->text[i] ? "@" : "", list->text[i]);
    return text;
}

int places_dims(const char *sizes)
{
    int n = 1;
    for (; *sizes; sizes++) n += *sizes == ',';
    return n;
}

int places_ranks(const char *mesh)
{
    int ranks = 1;
    for (const char *at = mesh + strcspn(mesh, "= "); *at == '='; at += strcspn(at, "= "))
        ranks *= (int)strtol(++at, NULL, 10);
    return ranks;
}
