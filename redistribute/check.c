/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan tried out on tokens. Every rank gets, for each element of its part, a number drawn from the element and,
 * where the source is partial, from whose contribution it is; the pulls are carried out; in the end every rank must
 * have, for each element of its part of the target, the sum of what was due. Source and target are read from the
 * specs, not from the holdings that the plan was made of. */
#include <stdlib.h>
#include <string.h>

#include "redistribute/plan.h"

typedef struct cell { uint64_t value; int count; bool held; } cell; /* count: pulls that arrived                    */

typedef struct trial {
    const dt_plan *plan;
    dti_frame frame, side;         /* side: the target's own atoms                                                 */
    int world;
    cell *first, *now, *next;      /* [world][elements]; first: as `now` was before the first step                 */
    int rank;
    const dti_map *maps;           /* of the part at hand                                                          */
    const char *broken;
} trial;

static cell *at(const trial *t, cell *cells, int rank, int64_t element)
{
    return &cells[rank * t->frame.elements + element];
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* The offset of a rank's digits on some partial axes of the source. */
static int partial_offset(const dti_layout *source, int rank)
{
    int offset = 0;
    for (int i = 0; i < source->partial_count; i++)
        offset += dti_axis_digit(source->partials[i], rank - source->base) * source->partials[i].stride;
    return offset;
}

static uint64_t token(int64_t element, int contributor)
{
    return dti_hash_mix((uint64_t)element + 1, (uint64_t)contributor + 77);
}

static bool is_kept(const dti_atom *atom) { return atom->source && atom->target; }

/* What a rank is due of an element: the sum over all contributors that share its digits where P stays P. */
static uint64_t due_from(const trial *t, int atom, int64_t element, int rank, int contributor)
{
    if (t->plan->mapped) return token(element, partial_offset(t->frame.source, rank));
    if (atom == t->frame.atom_count) return token(element, contributor);
    const dti_atom *a = &t->frame.atoms[atom];
    if (!a->source) return due_from(t, atom + 1, element, rank, contributor);
    int own = dti_axis_digit(a->axis, rank - t->frame.source->base);
    if (is_kept(a)) return due_from(t, atom + 1, element, rank, contributor + own * a->axis.stride);
    uint64_t sum = 0;
    for (int digit = 0; digit < a->axis.size; digit++)
        sum += due_from(t, atom + 1, element, rank, contributor + digit * a->axis.stride);
    return sum;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

typedef void (*element_fn)(trial *t, int rank, int64_t element);

static void box_elements(trial *t, int rank, const dt_box *box, const dt_shape *shape, int d, int64_t element,
                         element_fn fn)
{
    if (d == box->n) {
        fn(t, rank, element);
        return;
    }
    for (int64_t i = box->lo[d]; i < box->hi[d]; i++)
        box_elements(t, rank, box, shape, d + 1, element * shape->dim[d] + i, fn);
}

/* Every element of every rank's part of a spec. */
static bool spec_elements(trial *t, const dt_spec *spec, element_fn fn)
{
    for (int r = 0; r < spec->mesh->size; r++) {
        int n = dt_spec_boxes(spec, r, NULL, 0);
        dt_box *boxes = malloc(((size_t)n + 1) * sizeof *boxes);
        if (!boxes) return false;
        dt_spec_boxes(spec, r, boxes, n);
        for (int i = 0; i < n; i++)
            box_elements(t, dt_mesh_rank(spec->mesh, r), &boxes[i], &spec->shape, 0, 0, fn);
        free(boxes);
    }
    return true;
}

static void put_token(trial *t, int rank, int64_t element)
{
    *at(t, t->now, rank, element) = (cell){ token(element, partial_offset(t->frame.source, rank)), 0, true };
}

/* The target's element that a map makes of a source's; -1: none. Both numbered row-major. */
static int64_t mapped_element(const dti_frame *frame, const dti_map *maps, int64_t element)
{
    int64_t mapped = 0, weight = 1;
    for (int d = frame->block_count - 1; d >= 0; d--) {
        int64_t i = element % maps[d].source_size, step = dti_map_step(&maps[d]), j = (i - maps[d].shift) / step;
        if ((i - maps[d].shift) % step != 0 || j < maps[d].lo || j >= maps[d].hi) return -1;
        mapped += j * weight;
        weight *= frame->blocks[d];
        element /= maps[d].source_size;
    }
    return mapped;
}

static void put_mapped(trial *t, int rank, int64_t element)
{
    int64_t mapped = mapped_element(&t->frame, t->maps, element);
    if (mapped >= 0) put_token(t, rank, mapped);
}

/* Every source's tokens, in the target's numbers. */
static bool put_parts(trial *t)
{
    for (int i = 0; i < t->plan->step_count; i++) {
        t->maps = t->plan->steps[i].maps;
        if (!spec_elements(t, t->plan->sources[i], put_mapped)) return false;
    }
    return true;
}

static bool put_sources(trial *t)
{
    return t->plan->mapped ? put_parts(t) : spec_elements(t, t->plan->source, put_token);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void take(trial *t, const dti_pull *pull, int64_t element)
{
    const cell *have = at(t, pull->early ? t->first : t->now, pull->rank, element);
    cell *get = at(t, t->next, t->rank, element);
    if (!have->held) t->broken = "asks a rank for an element that it does not hold";
    if (get->held && get->count == 0) t->broken = "takes an element in two steps at once";
    get->value += have->value;
    get->count++;
    get->held = true;
}

typedef struct walk { trial *t; const dti_pull *pull; int64_t seen; } walk;

static void walk_block(walk *w, int block, int64_t element)
{
    const dti_frame *frame = &w->t->frame;
    if (block == frame->block_count) {
        if (w->seen >= w->pull->first && w->seen < w->pull->first + w->pull->count) take(w->t, w->pull, element);
        w->seen++;
        return;
    }
    const dti_set *set = &w->pull->sets[block];
    for (int i = 0; i < set->n; i++)
        for (int64_t j = dti_set_at(set)[i].lo; j < dti_set_at(set)[i].hi; j++)
            walk_block(w, block + 1, element * frame->blocks[block] + j);
}

static void try_pull(const dti_pull *pull, void *arg)
{
    walk w = { arg, pull, 0 };
    walk_block(&w, 0, 0);
}

/* One rank's pulls of one step: each element that it is to hold arrives with every contribution. */
static bool try_rank(trial *t, const dti_step *step)
{
    for (int64_t e = 0; e < t->frame.elements; e++) at(t, t->next, t->rank, e)->count = 0;
    if (!dti_step_pulls(&t->frame, t->plan->topology, step, t->rank, try_pull, t)) return false;
    int64_t arrived = 0, due_count = dti_step_volume(&t->frame, step, NULL, t->rank).to;
    for (int64_t e = 0; e < t->frame.elements; e++) {
        int count = at(t, t->next, t->rank, e)->count;
        if (count && count != step->summed_ranks) t->broken = "takes an element twice, or not every contribution";
        arrived += count > 0;
    }
    if (arrived != due_count) t->broken = "leaves an element out";
    return true;
}

static bool try_stage(trial *t, const dti_step *steps, int n)
{
    int64_t cells = t->world * t->frame.elements;
    for (int64_t i = 0; i < cells; i++) t->next[i] = (cell){ 0, 0, false };
    for (int i = 0; i < n; i++)
        for (t->rank = 0; t->rank < t->world; t->rank++)
            if (!try_rank(t, &steps[i])) return false;
    cell *swap = t->now;
    t->now = t->next;
    t->next = swap;
    return true;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Do ranks along a target's partial axis hold parts of the value, and not copies of it? */
static bool holds_parts(const dti_atom *atom)
{
    bool copies = atom->target == DTI_AVG || atom->target == DTI_MAX || atom->target == DTI_MIN;
    return atom->target && !atom->source && (!copies || atom->source_cuts);
}

/* The rank that stands for all that differ from it only where the target is newly partial by parts of the value. */
static int sum_anchor(const trial *t, int rank)
{
    const dti_frame *frame = t->frame.regular ? &t->frame : &t->side;
    int anchor = rank;
    for (int i = 0; i < frame->atom_count; i++) {
        dti_atom atom = frame->atoms[i];
        if (!t->frame.regular) atom.source = DTI_PARTIAL_NONE, atom.source_cuts = false;
        if (holds_parts(&atom)) anchor -= dti_axis_digit(atom.axis, rank - t->frame.target->base) * atom.axis.stride;
    }
    return anchor;
}

static void add_up(trial *t, int rank, int64_t element)
{
    const cell *have = at(t, t->now, rank, element);
    cell *sum = at(t, t->next, sum_anchor(t, rank), element);
    sum->value += have->held ? have->value : 0;
    sum->held |= have->held;
}

/* Does a part cover an element of the target? */
static bool is_mapped(const trial *t, int64_t element)
{
    bool any = false;
    for (int i = 0; i < t->plan->step_count; i++) {
        bool in = true;
        int64_t rest = element;
        for (int d = t->frame.block_count - 1; d >= 0; d--) {
            int64_t j = rest % t->frame.blocks[d];
            in &= j >= t->plan->steps[i].maps[d].lo && j < t->plan->steps[i].maps[d].hi;
            rest /= t->frame.blocks[d];
        }
        any |= in;
    }
    return any;
}

static void compare(trial *t, int rank, int64_t element)
{
    const cell *sum = at(t, t->next, sum_anchor(t, rank), element);
    if (!sum->held && t->plan->mapped && !is_mapped(t, element)) return;
    if (!sum->held) t->broken = "leaves a target element without value";
    else if (sum->value != due_from(t, 0, element, rank, 0)) t->broken = "gives a target element another value";
}

static bool try_end(trial *t)
{
    int64_t cells = t->world * t->frame.elements;
    for (int64_t i = 0; i < cells; i++) t->next[i] = (cell){ 0, 0, false };
    return spec_elements(t, t->plan->target, add_up) && spec_elements(t, t->plan->target, compare);
}

static bool try_plan(trial *t)
{
    if (!put_sources(t)) return false;
    memcpy(t->first, t->now, (size_t)(t->world * t->frame.elements) * sizeof *t->now);
    for (int i = 0, n; i < t->plan->step_count && !t->broken; i += n) {
        n = dti_stage_steps(t->plan, i);
        if (!try_stage(t, &t->plan->steps[i], n)) return false;
    }
    return t->broken || try_end(t);
}

/* Does every step take elements in the dtype in which steps before it gave them? */
static bool dtypes_meet(const dt_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < i; k++) {
            const dti_step *step = &plan->steps[i], *before = &plan->steps[k];
            if (before->to == step->from && before->gives != step->travels) return false;
        }
    return true;
}

dt_status dt_plan_check(const dt_plan *plan)
{
    if (!plan) return DT_ERR_ARG;
    dt_context *ctx = plan->source->mesh->ctx;
    if (dti_failed(ctx)) return ctx->status;
    trial t = { .plan = plan, .world = ctx->rank_count };
    dti_plan_frame(plan, &t.frame);
    dti_frame_init(&t.side, t.frame.target, t.frame.target, plan->topology);
    size_t cells = (size_t)t.world * (size_t)t.frame.elements + 1;
    t.first = calloc(cells, sizeof *t.first);
    t.now = calloc(cells, sizeof *t.now);
    t.next = calloc(cells, sizeof *t.next);
    bool done = t.first && t.now && t.next && try_plan(&t);
    if (!t.broken && !dtypes_meet(plan)) t.broken = "takes elements in another dtype than they have";
    free(t.first);
    free(t.now);
    free(t.next);
    if (done && !t.broken) return DT_OK;
    const char *source = dt_spec_text(plan->source), *target = dt_spec_text(plan->target);
    if (!done) return dti_fail(ctx, DT_ERR_MEMORY, "no memory to try %s -> %s", source, target);
    return dti_fail(ctx, DT_ERR_STATE, "the plan %s -> %s %s", source, target, t.broken);
}
