/* SPDX-License-Identifier: Apache-2.0
 *
 * Pulls become strided copies. Along a block, the wanted set lies in the holder's set and in the taker's as runs; runs
 * at equal distances are a loop; what lies together on both sides is one run. */
#include "redistribute/compile.h"

#include <stdlib.h>
#include <string.h>

#include "core/pen.h"

/* ---- where elements lie ------------------------------------------------------------------------------------------ */

/* How many elements of a set lie before an index that is in it. */
static int64_t ordinal(const dti_set *set, int64_t index)
{
    const dti_interval *at = dti_set_at(set);
    int64_t before = 0;
    for (int i = 0; i < set->n && at[i].hi <= index; i++) before += at[i].hi - at[i].lo;
    for (int i = 0; i < set->n; i++)
        if (at[i].lo <= index && index < at[i].hi) return before + index - at[i].lo;
    return before;
}

/* Indices that follow each other on the taker's side, and by steps on the holder's. */
typedef struct run { int64_t from, to, length, step; } run;

typedef struct runs { run *at; int n, capacity; bool lost; } runs;

static void add_run(runs *r, run next)
{
    run *last = r->n ? &r->at[r->n - 1] : NULL;
    bool follows = last && last->from + last->length * last->step == next.from && last->step == next.step;
    if (follows && last->to + last->length == next.to) {
        last->length += next.length;
        return;
    }
    if (r->n == r->capacity) {
        int capacity = r->capacity ? 2 * r->capacity : 8;
        run *grown = realloc(r->at, (size_t)capacity * sizeof *grown);
        if (!grown) {
            r->lost = true;
            return;
        }
        r->at = grown;
        r->capacity = capacity;
    }
    r->at[r->n++] = next;
}

/* How many indices the interval of a set that holds one has from there on, by steps. */
static int64_t ahead(const dti_set *set, int64_t index, int64_t step)
{
    const dti_interval *at = dti_set_at(set);
    for (int i = 0; i < set->n; i++)
        if (at[i].lo <= index && index < at[i].hi)
            return step > 0 ? (at[i].hi - 1 - index) / step + 1 : (index - at[i].lo) / -step + 1;
    return 1;
}

static int64_t least(int64_t a, int64_t b, int64_t c)
{
    int64_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static int64_t source_index(const dti_map *map, int64_t index)
{
    return map ? dti_map_source(map, index) : index;
}

/* Runs of the wanted indices, which are the target's; a map leads to the holder's, NULL: they are the same. */
static void find_runs(const dti_set *want, const dti_set *holder, const dti_map *map, const dti_set *taker, runs *out)
{
    const dti_interval *at = dti_set_at(want);
    for (int i = 0; i < want->n && !out->lost; i++)
        for (int64_t lo = at[i].lo, length; lo < at[i].hi; lo += length) {
            int64_t from = source_index(map, lo), step = map ? dti_map_step(map) : 1;
            length = least(at[i].hi - lo, ahead(taker, lo, 1), ahead(holder, from, step));
            add_run(out, (run){ ordinal(holder, from), ordinal(taker, lo), length, step });
        }
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

typedef struct maker {
    const dti_frame *frame;
    int member, contribution;
    const dti_set *holder, *taker; /* per block: all that they hold                                                */
    const dti_map *maps;           /* from the taker's numbers to the holder's; NULL: the same                     */
    dti_copies *out;
    int64_t from_stride[DTI_MAX_BLOCKS], to_stride[DTI_MAX_BLOCKS]; /* elements per index of a block               */
    runs of[DTI_MAX_BLOCKS];
} maker;

static void push(dti_copies *copies, const dti_copy *copy)
{
    if (copies->n == copies->capacity) {
        int capacity = copies->capacity ? 2 * copies->capacity : 4;
        dti_copy *grown = realloc(copies->at, (size_t)capacity * sizeof *grown);
        if (!grown) {
            copies->lost = true;
            return;
        }
        copies->at = grown;
        copies->capacity = capacity;
    }
    copies->at[copies->n++] = *copy;
}

static void add_loop(dti_copy *copy, int64_t count, int64_t from_stride, int64_t to_stride)
{
    if (count == 1) return;
    copy->count[copy->dims] = count;
    copy->from_stride[copy->dims] = from_stride;
    copy->to_stride[copy->dims++] = to_stride;
}

/* Innermost loops whose steps are as long as what they repeat become part of the run. */
static void join_runs(dti_copy *copy)
{
    while (copy->dims) {
        int d = copy->dims - 1;
        if (copy->from_stride[d] != copy->run || copy->to_stride[d] != copy->run) break;
        copy->run *= copy->count[d];
        copy->dims--;
    }
    for (int d = 0; d + 1 < copy->dims; d++) {
        if (copy->from_stride[d] != copy->from_stride[d + 1] * copy->count[d + 1]
            || copy->to_stride[d] != copy->to_stride[d + 1] * copy->count[d + 1]) continue;
        copy->count[d + 1] *= copy->count[d];
        for (int k = d; k + 1 < copy->dims; k++) {
            copy->count[k] = copy->count[k + 1];
            copy->from_stride[k] = copy->from_stride[k + 1];
            copy->to_stride[k] = copy->to_stride[k + 1];
        }
        copy->dims--;
        d = -1;
    }
}

/* Are all runs of a block alike and equally far apart? Then they are one loop. */
static bool evenly(const runs *r)
{
    for (int i = 1; i < r->n; i++)
        if (r->at[i].length != r->at[0].length || r->at[i].step != r->at[0].step
            || r->at[i].from - r->at[i - 1].from != r->at[1].from - r->at[0].from
            || r->at[i].to - r->at[i - 1].to != r->at[1].to - r->at[0].to) return false;
    return true;
}

static void make_copies(maker *m, int block, dti_copy copy);

static void make_loop(maker *m, int block, dti_copy copy)
{
    const runs *r = &m->of[block];
    int64_t from = m->from_stride[block], to = m->to_stride[block];
    copy.from += r->at[0].from * from;
    copy.to += r->at[0].to * to;
    if (r->n > 1) add_loop(&copy, r->n, (r->at[1].from - r->at[0].from) * from, (r->at[1].to - r->at[0].to) * to);
    add_loop(&copy, r->at[0].length, from * r->at[0].step, to);
    make_copies(m, block + 1, copy);
}

/* Loops for the blocks from one on; runs that make no loop, and loops that find no room, are written out. */
static void make_copies(maker *m, int block, dti_copy copy)
{
    if (block == m->frame->block_count) {
        join_runs(&copy);
        push(m->out, &copy);
        return;
    }
    const runs *r = &m->of[block];
    join_runs(&copy);
    if (copy.dims + 2 <= DTI_COPY_DIMS && evenly(r)) {
        make_loop(m, block, copy);
        return;
    }
    for (int i = 0; i < r->n; i++) {
        runs one = { NULL, 1, 1, false }, all = *r;                    /* *r is one of them meanwhile              */
        bool room = copy.dims + 1 <= DTI_COPY_DIMS;
        for (int64_t k = 0; k < (room ? 1 : all.at[i].length) && !m->out->lost; k++) {
            run single = all.at[i];
            single.from += k * single.step;
            single.to += k;
            if (!room) single.length = 1;
            one.at = &single;
            m->of[block] = one;
            make_loop(m, block, copy);
        }
        m->of[block] = all;
    }
}

static void set_strides(maker *m)
{
    int64_t from = 1, to = 1;
    for (int b = m->frame->block_count - 1; b >= 0; b--) {
        m->from_stride[b] = from;
        m->to_stride[b] = to;
        from *= dti_set_count(&m->holder[b]);
        to *= dti_set_count(&m->taker[b]);
    }
}

/* All elements of a product of sets. */
static void copy_product(maker *m, const dti_set *sets)
{
    bool any = true;
    memset(m->of, 0, sizeof m->of);
    for (int b = 0; b < m->frame->block_count; b++) {
        find_runs(&sets[b], &m->holder[b], m->maps ? &m->maps[b] : NULL, &m->taker[b], &m->of[b]);
        any &= m->of[b].n > 0;
        m->out->lost |= m->of[b].lost;
    }
    if (any && !m->out->lost)
        make_copies(m, 0, (dti_copy){ .member = m->member, .contribution = m->contribution, .run = 1 });
    for (int b = 0; b < m->frame->block_count; b++) free(m->of[b].at);
}

/* ---- parts of a product ------------------------------------------------------------------------------------------ */

static void take_ordinals(const dti_set *set, int64_t lo, int64_t hi, dti_set *out)
{
    const dti_interval *at = dti_set_at(set);
    dti_set_init(out);
    for (int i = 0; i < set->n && hi > 0; i++) {
        int64_t count = at[i].hi - at[i].lo;
        dti_set_append(out, at[i].lo + (lo > 0 ? lo : 0), at[i].lo + (hi < count ? hi : count));
        lo -= count;
        hi -= count;
    }
}

static void copy_range(maker *m, dti_set *sets, int block, int64_t lo, int64_t hi);

/* The same with one block cut down to some of its indices, and a range of what is behind it. */
static void copy_rows(maker *m, dti_set *sets, int block, int64_t first, int64_t last, int64_t lo, int64_t hi)
{
    if (first >= last || lo >= hi) return;
    dti_set whole = sets[block];
    take_ordinals(&whole, first, last, &sets[block]);
    copy_range(m, sets, block + 1, lo, hi);
    dti_set_fini(&sets[block]);
    sets[block] = whole;
}

/* Elements lo .. hi - 1, row-major, of the blocks from one on: a part of a first row, whole rows, a part of a last
 * one. */
static void copy_range(maker *m, dti_set *sets, int block, int64_t lo, int64_t hi)
{
    int64_t row = 1;
    for (int b = block + 1; b < m->frame->block_count; b++) row *= dti_set_count(&sets[b]);
    if (block == m->frame->block_count || (lo == 0 && hi == row * dti_set_count(&sets[block]))) {
        copy_product(m, sets);
        return;
    }
    int64_t first = lo / row, last = hi / row;
    if (first == last) {
        copy_rows(m, sets, block, first, first + 1, lo - first * row, hi - first * row);
        return;
    }
    int64_t whole = lo % row ? first + 1 : first;
    if (lo % row) copy_rows(m, sets, block, first, first + 1, lo % row, row);
    copy_rows(m, sets, block, whole, last, 0, row);
    if (hi % row) copy_rows(m, sets, block, last, last + 1, 0, hi % row);
}

/* ---- one step of one rank ---------------------------------------------------------------------------------------- */

typedef struct compiler {
    const dt_plan *plan;
    dti_frame frame;
    const dti_step *step;
    dti_action *action;
    const dti_holding *source;     /* whose arrays the ranks asked have                                            */
    dti_set taker[DTI_MAX_BLOCKS];
    int rank;
    int share, shares;             /* of every pull, cut into so many: which it makes                              */
} compiler;

static void init_sets(const dti_frame *frame, const dti_holding *holding, const dti_map *maps, int rank, dti_set *sets)
{
    for (int b = 0; b < frame->block_count; b++) {
        dti_set_init(&sets[b]);
        dti_holding_set(holding, b, maps ? maps[b].source_size : frame->blocks[b], rank, &sets[b]);
    }
}

static void fini_sets(const dti_frame *frame, dti_set *sets)
{
    for (int b = 0; b < frame->block_count; b++) dti_set_fini(&sets[b]);
}

static int member_of(const dti_group *group, int rank)
{
    for (int i = 0; group && i < group->n; i++)
        if (group->ranks[i] == rank) return i;
    return 0;
}

static void compile_pull(const dti_pull *pull, void *arg)
{
    compiler *c = arg;
    dti_set holder[DTI_MAX_BLOCKS], sets[DTI_MAX_BLOCKS];
    init_sets(&c->frame, pull->early ? c->plan->from : c->source, c->step->maps, pull->rank, holder);
    for (int b = 0; b < c->frame.block_count; b++) {
        dti_set_init(&sets[b]);
        dti_set_intersect(&pull->sets[b], &pull->sets[b], &sets[b]);
    }
    maker m = { .frame = &c->frame, .member = member_of(c->action->group, pull->rank),
                .contribution = pull->contribution, .holder = holder, .maps = c->step->maps, .taker = c->taker,
                .out = pull->early ? &c->action->early : &c->action->gets };
    set_strides(&m);
    int64_t lo = pull->count * c->share / c->shares, hi = pull->count * (c->share + 1) / c->shares;
    copy_range(&m, sets, 0, pull->first + lo, pull->first + hi);
    if (pull->rank != c->rank) c->action->received += (hi - lo) * (int64_t)dt_dtype_bytes(c->step->travels);
    fini_sets(&c->frame, sets);
    fini_sets(&c->frame, holder);
}

static int64_t part_elements(const dti_frame *frame, const dti_holding *holding, int rank)
{
    if (!dti_holding_has(holding, rank)) return 0;
    int64_t count = 1;
    dti_set sets[DTI_MAX_BLOCKS];
    init_sets(frame, holding, NULL, rank, sets);
    for (int b = 0; b < frame->block_count; b++) count *= dti_set_count(&sets[b]);
    fini_sets(frame, sets);
    return count;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int by_rank(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Ranks that differ from this one in the axes asked along only; ascending. */
static int own_ranks(const dti_step *step, int rank, int *ranks)
{
    int axes = step->sum_count + step->cut_count + step->copy_count, n = 1, anchor = rank;
    for (int i = 0; i < axes; i++) {
        anchor -= dti_axis_digit(step->asked[i], rank - step->from->base) * step->asked[i].stride;
        n *= step->asked[i].size;
    }
    for (int i = 0; i < n; i++) ranks[i] = anchor + dti_axes_offset(step->asked, axes, i);
    qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
    return n;
}

static bool reaches(const dti_holding *holding, int rank)
{
    return dti_axes_reach(holding->members, holding->member_count, rank - holding->base);
}

static int both_ranks(const dti_step *step, int *ranks)
{
    int n = 0;
    for (int i = 0; i < step->from->ranks; i++) ranks[n++] = dti_holding_member(step->from, i);
    for (int i = 0; i < step->to->ranks; i++) {
        int rank = dti_holding_member(step->to, i);
        if (!reaches(step->from, rank)) ranks[n++] = rank;
    }
    qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
    return n;
}

static bool find_group(compiler *c, dti_comm *comm)
{
    const dti_step *step = c->step;
    if (!reaches(step->from, c->rank) && !reaches(step->to, c->rank)) return true;
    int *ranks = malloc((size_t)(step->from->ranks + step->to->ranks) * sizeof *ranks);
    if (!ranks) return dti_fail(comm->ctx, DT_ERR_MEMORY, "no memory for a group of ranks"), false;
    int n = step->own ? own_ranks(step, c->rank, ranks) : both_ranks(step, ranks);
    c->action->group = comm->ops->group(comm, ranks, n);
    free(ranks);
    return c->action->group != NULL;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Where a step reads: in the result of the step that makes what it pulls from, or in the plan's source. */
static int source_of(const dt_plan *plan, const dti_step *step)
{
    for (int i = 0; i < plan->step_count && step->stage > 0; i++)
        if (plan->steps[i].stage < step->stage && plan->steps[i].to == step->from) return i;
    return -1;
}

/* The target's whole part, with what is the identity: its cuts alone. */
static void whole_target(const dt_plan *plan, const dti_frame *frame, dti_room *room)
{
    dti_frame side;
    dti_frame_init(&side, frame->target, frame->target, plan->topology);
    side.block_count = frame->block_count;
    memcpy(side.blocks, frame->blocks, sizeof side.blocks);
    dti_room_init(room, frame->target);
    dti_frame_cut(frame->regular ? frame : &side, frame->target, ~UINT32_C(0), room);
}

/* The copies of a step to where their elements lie in a holding. */
static bool compile_pulls(compiler *c, const dti_holding *target)
{
    init_sets(&c->frame, target, NULL, c->rank, c->taker);
    bool done = dti_step_pulls(&c->frame, c->plan->topology, c->step, c->rank, compile_pull, c);
    fini_sets(&c->frame, c->taker);
    return done && !c->action->gets.lost && !c->action->early.lost;
}

static bool compile_step(compiler *c, int i, dti_comm *comm, const dti_holding *whole)
{
    const dt_plan *plan = c->plan;
    const dti_step *step = c->step = &plan->steps[i];
    bool last = step->stage == plan->steps[plan->step_count - 1].stage;
    *c->action = (dti_action){ .step = step, .source = source_of(plan, step), .target = last ? -1 : i };
    c->action->moves = dti_step_moves(&c->frame, step) && comm;
    if (c->action->moves && !find_group(c, comm)) return false;
    c->source = c->action->source < 0 && !plan->mapped ? plan->from : step->from;
    const dti_holding *target = last ? whole : step->to;
    c->action->elements = part_elements(&c->frame, target, c->rank);
    return compile_pulls(c, target);
}

/* Elements that some copies write. */
static int64_t written(const dti_copies *copies)
{
    int64_t elements = 0;
    for (int i = 0; i < copies->n; i++) {
        int64_t n = copies->at[i].contribution == 0 ? copies->at[i].run : 0;
        for (int d = 0; d < copies->at[i].dims; d++) n *= copies->at[i].count[d];
        elements += n;
    }
    return elements;
}

/* Halves of small sums would wait for each other longer than each rank takes to make all. */
static bool is_worth_sharing(const compiler *c)
{
    int64_t bytes = part_elements(&c->frame, c->plan->to, c->rank) * (int64_t)dt_dtype_bytes(c->plan->steps->travels);
    return bytes >= dti_option_number(c->plan->target->mesh->ctx, DTI_OPTION_SMALL, 0);
}

static bool all_reduces(const compiler *c, const dti_comm *comm)
{
    if (!comm || !comm->ops->all_reduce || !dti_plan_all_reduces(c->plan)) return false;
    return dti_step_moves(&c->frame, c->plan->steps) && (c->plan->step_count == 2 || is_worth_sharing(c));
}

/* The plan as one call. The ranks of the last step are the group; what this rank is to sum goes to where it belongs in
 * the target of all, and what it does not write in its own others write there. */
static bool compile_all_reduce(compiler *c, dti_action *actions, dti_comm *comm, const dti_holding *whole)
{
    int last = c->plan->step_count - 1;
    const dti_step *sum = &c->plan->steps[0];
    actions[last] = (dti_action){ .step = &c->plan->steps[last], .source = -1, .target = -1 };
    actions[0] = (dti_action){ .step = sum, .source = -1, .target = -1, .moves = true, .all_reduces = true,
                               .elements = part_elements(&c->frame, whole, c->rank) };
    c->action = &actions[0];
    c->step = &c->plan->steps[last];
    if (!find_group(c, comm)) return false;
    if (last == 0 && actions[0].group) {
        c->share = actions[0].group->index;
        c->shares = actions[0].group->n;
    }
    c->step = sum;
    c->source = c->plan->from;
    if (!compile_pulls(c, whole)) return false;
    int64_t by_others = part_elements(&c->frame, c->plan->to, c->rank) - written(&actions[0].gets);
    actions[0].received += by_others * (int64_t)dt_dtype_bytes(sum->gives);
    return true;
}

static bool compile_steps(compiler *c, dti_program *program, dti_comm *comm, const dti_holding *whole)
{
    if (all_reduces(c, comm)) return compile_all_reduce(c, program->actions, comm, whole);
    for (int i = 0; i < c->plan->step_count; i++) {
        c->action = &program->actions[i];
        if (!compile_step(c, i, comm, whole)) return false;
    }
    return true;
}

static bool writes_all(const dti_program *program, const dt_plan *plan, const dti_frame *frame, int rank)
{
    int64_t elements = 0;
    for (int i = 0; i < plan->step_count; i++) /* in an all-reduce the last counts, which is the second half's */
        if (program->actions[i].target < 0 && !(program->actions[i].all_reduces && plan->step_count == 2))
            elements += dti_step_volume(frame, &plan->steps[i], NULL, rank).to;
    return elements == program->elements;
}

/* A mapped plan's parts: what they are of dims that do not go over as they are. */
static void put_parts(dti_pen *pen, const dt_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        dti_put(pen, "%s%s", i ? ", " : "pull ", dt_spec_text(plan->sources[i]));
        for (int d = 0; d < plan->target->shape.n; d++) {
            const dti_map *map = &plan->steps[i].maps[d];
            if (map->shift == 0 && map->hi == map->source_size && map->hi == plan->target->shape.dim[d]) continue;
            dti_put(pen, " %lld:%lld of dim %d from %lld by %lld", (long long)map->lo, (long long)map->hi, d,
                    (long long)dti_map_source(map, map->lo), (long long)dti_map_step(map));
        }
    }
}

static void put_call(dti_pen *pen, const dt_plan *plan)
{
    if (plan->mapped) put_parts(pen, plan);
    else dti_put(pen, "redistribute %s", dt_spec_text(plan->source));
    dti_put(pen, " to %s", dt_spec_text(plan->target));
}

static const char *call_text(dt_context *ctx, const dt_plan *plan)
{
    dti_pen measure = { NULL, 0, 0 };
    put_call(&measure, plan);
    dti_pen write = { dti_context_take(ctx, measure.at + 1), measure.at + 1, 0 };
    if (write.text) put_call(&write, plan);
    return write.text;
}

dti_program *dti_program_new(const dt_plan *plan)
{
    dt_context *ctx = plan->target->mesh->ctx;
    compiler c = { .plan = plan, .rank = ctx->rank, .shares = 1 };
    dti_program *program = calloc(1, sizeof *program);
    if (program) program->actions = calloc((size_t)plan->step_count + 1, sizeof *program->actions);
    if (!program || !program->actions) goto fail;
    program->action_count = plan->step_count;
    program->call = call_text(ctx, plan);
    if (!program->call) goto fail;
    dti_plan_frame(plan, &c.frame);
    dti_room room;
    if (plan->mapped) dti_room_copy(&room, plan->to);
    else whole_target(plan, &c.frame, &room);
    program->elements = part_elements(&c.frame, &room.holding, c.rank);
    if (!compile_steps(&c, program, dti_comm_of(ctx), &room.holding)) goto fail;
    program->partly = !writes_all(program, plan, &c.frame, c.rank);
    return program;

fail:
    if (!dti_failed(ctx)) dti_fail(ctx, DT_ERR_MEMORY, "no memory to carry out %s", dt_spec_text(plan->target));
    dti_program_free(program);
    return NULL;
}

void dti_program_free(dti_program *program)
{
    for (int i = 0; program && program->actions && i < program->action_count; i++) {
        free(program->actions[i].gets.at);
        free(program->actions[i].early.at);
    }
    if (program) free(program->actions);
    free(program);
}
