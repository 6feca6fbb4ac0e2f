/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call does on a mesh is two kinds of parts. Propagation says how each operand is used and what comes out: that
 * computes, one part. And each operand goes from its given spec to that one by itself, whatever the others do: a part
 * for each. So a combination of placements is propagated, and needs to be executed only where one of its parts is in
 * none that is. (That parts tell all is tested, too: by draws that are executed whatever they bring.)
 *
 * Where there are more than MOST combinations it is used that along one mesh dim propagation takes the cheapest of a
 * list of strategies, each of which splits one factor of a letter or none. The list hangs on how letters are cut and on
 * which operands may stay P; what is used, on the letter that is split; only the choice, on all operands. So walked are
 *  - all placements of any FEW operands, the others R: two operands cut a letter in each way in which it can be cut,
 *    clashes among them, and one more is P of each kind, or elsewhere. This is to find all parts;
 *  - DRAWS of all combinations, and, where that is asked for, all of plain placements: R, S of what the call's shapes
 *    have, P(sum). The list is one then, and every choice is made: of P only where it may stay is the kind looked at.
 *    These are to find no more, and what they find is executed like the rest.
 * Invariant: what is walked and can be judged has all its parts in the list, and what is used, if it were given, would
 * be used as it is. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/table.h"
#include "operands.h"
#include "ops/dispatch.h"
#include "suite.h"

enum { MOST = 100000, FEW = 3, DRAWS = 10000 };

typedef struct walk {
    const op_call *call;
    dt_mesh *mesh;
    placed_list *list;
    int64_t count;
    bool told;                         /* one combination of a call is enough                                      */
    dti_attributes attributes;
    dti_table parts;
    placed_choice choice[CALL_OPERANDS];
    const dt_spec *given[CALL_OPERANDS]; /* at hand                                                                 */
} walk;

static bool is_written(const op_call *call, int i) { return i > 0 && i < call->op->writes; }

static void find_choices(walk *w)
{
    for (int i = 0; i < w->call->n; i++) w->choice[i] = placed_choices(w->call, w->mesh, i);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Is a part new? Then it is remembered. */
static bool is_new(walk *w, uint64_t part)
{
    size_t at = dti_table_first(&w->parts, part);
    if (dti_table_value(&w->parts, part, &at)) return false;
    return expect(dti_table_add(&w->parts, part, w), "memory");
}

static uint64_t mix(uint64_t part, const void *pointer) { return dti_hash_mix(part, (uint64_t)(uintptr_t)pointer); }

/* All that a call hangs on once its operands are as it uses them. */
static uint64_t used_part(const dti_dispatch *d)
{
    uint64_t part = dti_hash_mix(d->number_dims, (uint64_t)d->n << 1 | (d->pull[0] != NULL));
    if (d->whole) part = dti_hash(d->whole, strlen(d->whole), part);
    for (int i = 0; i < d->n; i++) part = mix(part, d->used[i]);
    for (int r = 0; r < d->result_count; r++) part = mix(part, d->result[r]);
    return part;
}

static uint64_t moved_part(const dti_dispatch *d, int i)
{
    return mix(mix(mix((uint64_t)i + 1, d->in[i]), d->via[i]), d->used[i]);
}

static bool brings_new(walk *w, const dti_dispatch *d)
{
    bool brings = is_new(w, used_part(d));
    for (int i = 0; i < d->n; i++)
        if (d->in[i] != d->used[i]) brings |= is_new(w, moved_part(d, i));
    return brings;
}

/* What is used, given. */
static bool stays(walk *w, const dti_dispatch *d)
{
    const dt_spec *used[CALL_OPERANDS];
    memcpy(used, d->used, (size_t)d->n * sizeof *used);
    uint64_t part = used_part(d);
    const dti_dispatch *again = dti_dispatch_get(w->mesh->ctx, w->call->op, used, w->call->n, &w->attributes);
    return again && used_part(again) == part;
}

/* ---- combinations ------------------------------------------------------------------------------------------------ */

static void add(walk *w)
{
    placed *p = placed_more(w->list);
    for (int i = 0; p && i < w->call->n; i++)
        if (w->given[i]) strcpy(p->spec[i], dt_spec_text(w->given[i]));
}

static void visit(walk *w)
{
    dt_context *ctx = w->mesh->ctx;
    w->count++;
    for (int i = 1; i < w->call->op->writes; i++) w->given[i] = placed_alike(w->call, i, w->given[0]);
    dti_dispatch *d = dti_dispatch_get(ctx, w->call->op, w->given, w->call->n, &w->attributes);
    if (!d) {
        dt_context_clear(ctx);
        add(w);
        return;
    }
    if (!operands_can_be(w->call, w->given, d->used, d->result) || !brings_new(w, d)) return;
    add(w);
    if (w->told || stays(w, d)) return;
    w->told = true;
    char text[640];
    const char *specs[CALL_OPERANDS];
    for (int i = 0; i < w->call->n; i++) specs[i] = w->given[i] ? dt_spec_text(w->given[i]) : "";
    expect(false, "%s on %s: what is used of it is used otherwise if given (%s)",
           call_text(w->call, specs, text, sizeof text), w->mesh->text, dt_context_error(ctx));
    dt_context_clear(ctx);
}

/* All combinations in which at most so many operands, from this one on, are not R. */
static void vary(walk *w, int i, int most, bool plain)
{
    if (i == w->call->n) {
        visit(w);
        return;
    }
    const placed_choice *choice = &w->choice[i];
    int count = most == 0 || is_written(w->call, i) ? 1 : plain ? choice->plain : choice->count;
    for (int k = 0; k < count; k++) {
        w->given[i] = choice->at[k];
        vary(w, i + 1, most - (k > 0), plain);
    }
}

static void draw(walk *w, int number)
{
    for (int i = 0; i < w->call->n; i++) {
        uint64_t drawn = dti_hash_mix(call_seed(w->call, i, number), 11);
        w->given[i] = w->choice[i].at[drawn % (uint64_t)w->choice[i].count];
    }
    visit(w);
}

static int64_t size_of(const walk *w)
{
    int64_t all = 1;
    for (int i = 0; i < w->call->n; i++) all *= is_written(w->call, i) ? 1 : w->choice[i].count;
    return all;
}

int64_t walk_size(const op_call *call, dt_mesh *mesh)
{
    walk w = { .call = call, .mesh = mesh };
    find_choices(&w);
    return size_of(&w);
}

int64_t walk_call(const op_call *call, dt_mesh *mesh, bool choices, placed_list *list)
{
    walk *w = calloc(1, sizeof *w);
    dt_shape scalar = DT_SCALAR;
    if (!expect(w != NULL, "memory")) return 0;
    w->call = call;
    w->mesh = mesh;
    w->list = list;
    find_choices(w);
    const dt_spec *first = w->choice[0].at[0];
    int64_t count = 0;
    if (expect(dti_attributes_read(mesh->ctx, call->op, call->attributes, first ? &first->shape : &scalar,
                                   &w->attributes), "%s", dt_context_error(mesh->ctx))) {
        bool all = size_of(w) <= MOST;
        vary(w, 0, all ? call->n : FEW, false);
        if (!all && choices) vary(w, 0, call->n, true);
        for (int k = 0; k < DRAWS && !all; k++) draw(w, k);
        count = w->count;
    }
    dti_table_fini(&w->parts);
    free(w);
    return count;
}
