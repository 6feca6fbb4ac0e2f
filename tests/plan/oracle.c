/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle: reader, bounds, trial. Whatever can be decided by looking at one element and one rank is decided so. */
#include "plan/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redistribute/plan.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    oracle_spec *spec;
    dt_mesh *mesh;
    int factors, tensor_dims;
    int64_t size[DT_MAX_FACTORS];
    int first[DT_MAX_DIMS + 1];    /* factors of each dim                                                          */
    int splits[DT_MAX_FACTORS];    /* mesh dims that split a factor, in order                                      */
    int split[DT_MAX_FACTORS][DT_MAX_MESH_DIMS];
} reading;

/* Numbers up to ]; one behind "[", "," or "(" begins a dim. */
static void read_sizes(reading *r, const char *at)
{
    while (*at && *at != ']') {
        char before = *at++, *end;
        if (*at < '0' || *at > '9') continue;
        if (before != ' ') r->first[r->tensor_dims++] = r->factors;
        r->size[r->factors++] = strtol(at, &end, 10);
        at = end;
    }
    r->first[r->tensor_dims] = r->factors;
}

static int find_dim(const reading *r, const char *name, size_t n)
{
    for (int d = 0; d < r->spec->dims; d++) {
        const char *have = dt_mesh_dim_name(r->mesh, d);
        if (strlen(have) == n && strncmp(have, name, n) == 0) return d;
    }
    return -1;
}

static char kind_of(const char *place)
{
    if (place[0] != 'P') return place[0];
    if (strncmp(place, "P(max", 5) == 0) return 'M';
    return place[1] == '(' ? place[2] : 's';
}

/* S(d), S(-1), S(d.f) of a mesh dim. */
static void read_split(reading *r, int dim, const char *place)
{
    int d = 0, f = 0;
    sscanf(place, "S(%d.%d)", &d, &f);
    if (d < 0) d += r->tensor_dims;
    f += r->first[d];
    r->split[f][r->splits[f]++] = dim;
}

static bool read_placements(reading *r, const char *at)
{
    while (at && *at) {
        const char *colon = strchr(at, ':'), *next = strchr(at, ',');
        int dim = colon ? find_dim(r, at, (size_t)(colon - at)) : -1;
        if (dim < 0) return false;
        r->spec->kind[dim] = kind_of(colon + 1);
        if (colon[1] == 'S') read_split(r, dim, colon + 1);
        at = next ? next + 1 : NULL;
    }
    return true;
}

/* Coordinate of a mesh rank along a mesh dim. */
static int coord(const oracle_spec *spec, int rank, int dim)
{
    for (int d = spec->dims - 1; d > dim; d--) rank /= spec->size[d];
    return rank % spec->size[dim];
}

static int64_t ceil_of(int64_t n, int64_t k) { return (n + k - 1) / k; }

/* Is index j of a factor in a mesh rank's piece? */
static bool in_piece(const reading *r, int factor, int64_t j, int rank)
{
    int64_t pieces = 1, piece = 0, n = r->size[factor];
    for (int i = 0; i < r->splits[factor]; i++) {
        int dim = r->split[factor][i];
        pieces *= r->spec->size[dim];
        piece = piece * r->spec->size[dim] + coord(r->spec, rank, dim);
    }
    return ceil_of(piece * n, pieces) <= j && j < ceil_of((piece + 1) * n, pieces);
}

static bool holds_element(const reading *r, int64_t element, int rank)
{
    bool holds = true;
    for (int f = r->factors - 1; f >= 0; f--) {
        holds &= in_piece(r, f, element % r->size[f], rank);
        element /= r->size[f];
    }
    return holds;
}

static bool read_mesh(reading *r)
{
    oracle_spec *spec = r->spec;
    spec->world = dt_rank_count(dt_mesh_context(r->mesh));
    spec->ranks = dt_mesh_size(r->mesh, NULL);
    spec->dims = dt_mesh_dim_count(r->mesh);
    if (spec->world > ORACLE_MAX_RANKS) return false;
    for (int d = 0; d < spec->dims; d++) {
        spec->size[d] = dt_mesh_size(r->mesh, dt_mesh_dim_name(r->mesh, d));
        spec->kind[d] = 'R';
    }
    for (int i = 0; i < spec->world; i++) spec->at[i] = -1;
    for (int i = 0; i < spec->ranks; i++) spec->at[dt_mesh_rank(r->mesh, i)] = i;
    return true;
}

static bool fill_holds(const reading *r)
{
    oracle_spec *spec = r->spec;
    spec->holds = calloc((size_t)spec->world * (size_t)spec->elements + 1, 1);
    for (int i = 0; i < spec->world && spec->holds; i++)
        for (int64_t e = 0; e < spec->elements && spec->at[i] >= 0; e++)
            spec->holds[i * spec->elements + e] = holds_element(r, e, spec->at[i]);
    return spec->holds != NULL;
}

bool oracle_read(oracle_spec *spec, dt_mesh *mesh, const char *text)
{
    *spec = (oracle_spec){ .spec = dt_spec_parse(mesh, text), .elements = 1 };
    reading r = { .spec = spec, .mesh = mesh };
    snprintf(spec->text, sizeof spec->text, "%s", text);
    if (!spec->spec || !read_mesh(&r)) return false;
    const char *placements = strchr(text, '@');
    read_sizes(&r, strchr(text, '['));
    for (int f = 0; f < r.factors; f++) spec->elements *= r.size[f];
    return read_placements(&r, placements ? placements + 1 : NULL) && fill_holds(&r);
}

void oracle_free(oracle_spec *spec)
{
    free(spec->holds);
    spec->holds = NULL;
}

bool oracle_holds(const oracle_spec *spec, int world_rank, int64_t element)
{
    return spec->holds[world_rank * spec->elements + element];
}

static bool is_partial(char kind) { return kind != 'R' && kind != 'S'; }

bool oracle_partial(const oracle_spec *spec)
{
    bool partial = false;
    for (int d = 0; d < spec->dims; d++) partial |= is_partial(spec->kind[d]) && spec->size[d] > 1;
    return partial;
}

/* ---- contributors, groups ---------------------------------------------------------------------------------------- */

/* How target mesh dims relate to the source. */
typedef struct relation {
    const oracle_spec *source, *target;
    unsigned kept;                 /* mesh dims of one mesh that are P before and after                            */
    unsigned parts;                /* of the target: newly P, its ranks hold parts of the value                    */
} relation;

/* Number of a mesh rank's coordinates on some dims, row-major. */
static int number_on(const oracle_spec *spec, int rank, unsigned dims)
{
    int number = 0;
    for (int d = 0; d < spec->dims; d++)
        if (dims >> d & 1) number = number * spec->size[d] + coord(spec, rank, d);
    return number;
}

static unsigned partial_dims(const oracle_spec *spec)
{
    unsigned dims = 0;
    for (int d = 0; d < spec->dims; d++) dims |= (unsigned)is_partial(spec->kind[d]) << d;
    return dims;
}

/* A mesh rank with the coordinates on some dims set to 0. */
static int without(const oracle_spec *spec, int rank, unsigned dims)
{
    int result = 0;
    for (int d = 0; d < spec->dims; d++)
        result = result * spec->size[d] + (dims >> d & 1 ? 0 : coord(spec, rank, d));
    return result;
}

/* Have two world ranks the same of the source: elements and contribution? Ranks outside it are taken to. */
static bool alike(const oracle_spec *source, int a, int b)
{
    if (source->at[a] < 0 || source->at[b] < 0) return true;
    unsigned p = partial_dims(source);
    return number_on(source, source->at[a], p) == number_on(source, source->at[b], p)
        && memcmp(source->holds + a * source->elements, source->holds + b * source->elements,
                  (size_t)source->elements) == 0;
}

/* Is the source R along a mesh dim of the target? */
static bool whole_along(const relation *r, int dim)
{
    bool whole = true;
    for (int a = 0; a < r->target->world; a++)
        for (int b = 0; b < r->target->world; b++)
            if (r->target->at[a] >= 0 && r->target->at[b] >= 0
                && without(r->target, r->target->at[a], 1u << dim) == without(r->target, r->target->at[b], 1u << dim))
                whole &= alike(r->source, a, b);
    return whole;
}

static relation relate(const oracle_spec *source, const oracle_spec *target)
{
    relation r = { source, target, 0, 0 };
    bool one_mesh = dt_spec_mesh(source->spec) == dt_spec_mesh(target->spec);
    for (int d = 0; d < target->dims; d++) {
        char kind = target->kind[d];
        if (!is_partial(kind)) continue;
        bool copies = (kind == 'a' || kind == 'M' || kind == 'm') && whole_along(&r, d);
        if (one_mesh && is_partial(source->kind[d])) r.kept |= 1u << d;
        else if (!copies) r.parts |= 1u << d;
    }
    return r;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* What one element of one kept part takes: of the groups of ranks that are to have it, how many have a contributor. */
typedef struct needs { int groups, groups_with_holder; bool held; } needs;

static needs needs_of(const relation *r, int64_t element, int key)
{
    needs n = { 0, 0, false };
    bool wants[ORACLE_MAX_RANKS] = { false }, has[ORACLE_MAX_RANKS] = { false };
    const oracle_spec *source = r->source, *target = r->target;
    for (int rank = 0; rank < target->world; rank++) {
        int s = source->at[rank], t = target->at[rank];
        bool holder = s >= 0 && number_on(source, s, r->kept) == key && oracle_holds(source, rank, element);
        n.held |= holder;
        if (t < 0 || number_on(target, t, r->kept) != key) continue;
        int group = without(target, t, r->parts);
        has[group] |= holder;
        wants[group] |= oracle_holds(target, rank, element);
    }
    for (int g = 0; g < ORACLE_MAX_RANKS; g++) {
        n.groups += wants[g];
        n.groups_with_holder += wants[g] && has[g];
    }
    return n;
}

static int64_t size_on(const oracle_spec *spec, unsigned dims)
{
    int64_t size = 1;
    for (int d = 0; d < spec->dims; d++)
        if (dims >> d & 1) size *= spec->size[d];
    return size;
}

static int64_t total_bound(const relation *r)
{
    int64_t total = 0, contributors = size_on(r->source, partial_dims(r->source) & ~r->kept);
    for (int key = 0; key < size_on(r->target, r->kept); key++)
        for (int64_t e = 0; e < r->source->elements; e++) {
            needs n = needs_of(r, e, key);
            if (contributors > 1) total += contributors - 1 + n.groups - 1 + (n.groups_with_holder == 0);
            else total += n.groups - n.groups_with_holder;
        }
    return total;
}

static void rank_bounds(const relation *r, oracle_bound *bound)
{
    bound->busiest = 0;
    for (int rank = 0; rank < r->target->world; rank++) {
        for (int64_t e = 0; e < r->target->elements; e++)
            bound->rank[rank] += oracle_holds(r->target, rank, e) && !oracle_holds(r->source, rank, e);
        if (bound->rank[rank] > bound->busiest) bound->busiest = bound->rank[rank];
    }
}

void oracle_bound_of(const oracle_spec *source, const oracle_spec *target, oracle_bound *bound)
{
    relation r = relate(source, target);
    bool one_mesh = dt_spec_mesh(source->spec) == dt_spec_mesh(target->spec);
    *bound = (oracle_bound){ .busiest = -1 };
    bool known = one_mesh || !oracle_partial(source) || !oracle_partial(target);
    bound->total = known ? total_bound(&r) : -1;
    if (!oracle_partial(source) && !oracle_partial(target)) rank_bounds(&r, bound);
}

/* ---- trial ------------------------------------------------------------------------------------------------------- */

/* contributions: a bit for each that came, all in the step number `step`. */
typedef struct cell { uint64_t value, contributions; int step; bool held; } cell;

typedef struct trial {
    relation relation;
    const dt_plan *plan;
    dti_frame frame;
    dt_context *ctx;
    int64_t elements;
    cell *first, *now, *next;      /* [world][elements]; first: as before the first step                           */
    int rank, step, stage;         /* stage: in order, from 0; steps of one run at once                            */
    oracle_count *count;
    const char *wrong;
} trial;

static uint64_t token(int64_t element, int contributor)
{
    uint64_t x = (uint64_t)element * 4096 + (uint64_t)contributor + UINT64_C(0x1234567);
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void take(trial *t, const dti_pull *pull, int64_t element)
{
    const cell *have = &(pull->early ? t->first : t->now)[pull->rank * t->elements + element];
    cell *get = &t->next[t->rank * t->elements + element];
    const dti_step *step = &t->plan->steps[t->step];
    if (pull->contribution < 0 || pull->contribution >= 64) t->wrong = "numbers a contribution beyond 63";
    uint64_t bit = UINT64_C(1) << (pull->contribution & 63);
    if (pull->early && pull->rank != t->rank) t->wrong = "asks another rank for what it had earlier";
    if (!have->held) t->wrong = "asks a rank for an element that it does not hold";
    if (get->contributions & bit) t->wrong = "takes an element or a contribution twice";
    if (get->held && get->step != t->step) t->wrong = "takes an element in two steps at once";
    if (step->sum_count == 0 && pull->rank != t->rank && t->now[t->rank * t->elements + element].held
        && t->now[t->rank * t->elements + element].value == have->value)
        t->wrong = "asks another rank for what it has itself";
    get->value += have->value;
    get->contributions |= bit;
    get->step = t->step;
    get->held = true;
}

typedef struct walk { trial *trial; const dti_pull *pull; int64_t seen; } walk;

static void walk_block(walk *w, int block, int64_t element)
{
    const dti_frame *frame = &w->trial->frame;
    if (block == frame->block_count) {
        int64_t number = w->seen++ - w->pull->first;
        if (number >= 0 && number < w->pull->count) take(w->trial, w->pull, element);
        return;
    }
    const dti_interval *at = dti_set_at(&w->pull->sets[block]);
    for (int i = 0; i < w->pull->sets[block].n; i++)
        for (int64_t j = at[i].lo; j < at[i].hi; j++) walk_block(w, block + 1, element * frame->blocks[block] + j);
}

static void count_pull(trial *t, const dti_pull *pull)
{
    oracle_count *count = t->count;
    if (pull->rank == t->rank || pull->count == 0) return;
    int64_t bytes = pull->count * (int64_t)dt_dtype_bytes(t->plan->steps[t->step].travels);
    int link = dt_topology_link(t->ctx, pull->rank, t->rank);
    if (link == count->links) link--;
    count->received[t->rank] += bytes;
    count->sent[pull->rank] += bytes;
    count->link_received[t->rank][link] += bytes;
    count->link_sent[pull->rank][link] += bytes;
    count->stage_received[t->stage][t->rank] += bytes;
    count->stage_messages[t->stage][t->rank]++;
    count->total += bytes;
}

static void try_pull(const dti_pull *pull, void *arg)
{
    trial *t = arg;
    walk w = { t, pull, 0 };
    if (pull->rank < 0 || pull->rank >= t->relation.source->world) {
        t->wrong = "asks a rank that does not exist";
        return;
    }
    count_pull(t, pull);
    walk_block(&w, 0, 0);
    if (w.seen < pull->first + pull->count) t->wrong = "counts more elements than its sets have";
}

static void try_step(trial *t)
{
    for (t->rank = 0; t->rank < t->relation.source->world; t->rank++)
        if (!dti_step_pulls(&t->frame, t->plan->topology, &t->plan->steps[t->step], t->rank, try_pull, t))
            t->wrong = "runs out of memory";
}

static void try_steps(trial *t)
{
    size_t cells = (size_t)t->relation.source->world * (size_t)t->elements;
    for (t->step = t->stage = 0; t->step < t->plan->step_count && !t->wrong; t->stage++) {
        int stage = t->plan->steps[t->step].stage;
        memset(t->next, 0, cells * sizeof *t->next);
        for (; t->step < t->plan->step_count && t->plan->steps[t->step].stage == stage; t->step++) try_step(t);
        cell *swap = t->now;
        t->now = t->next;
        t->next = swap;
    }
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Contributor number, with the coordinates of a key on the kept dims; others count through the rest. */
static uint64_t due(const trial *t, int64_t element, int key)
{
    const oracle_spec *source = t->relation.source;
    unsigned p = partial_dims(source);
    uint64_t sum = 0;
    bool counted[ORACLE_MAX_RANKS] = { false };
    for (int rank = 0; rank < source->ranks; rank++) {
        int contributor = number_on(source, rank, p);
        if (number_on(source, rank, t->relation.kept) != key || counted[contributor]) continue;
        counted[contributor] = true;
        sum += token(element, contributor);
    }
    return sum;
}

/* t->next becomes, at each group's first rank of the target mesh, the sum over the group. */
static void add_groups(trial *t)
{
    const oracle_spec *target = t->relation.target;
    memset(t->next, 0, (size_t)target->world * (size_t)t->elements * sizeof *t->next);
    for (int rank = 0; rank < target->world; rank++)
        for (int64_t e = 0; e < t->elements && target->at[rank] >= 0; e++) {
            const cell *have = &t->now[rank * t->elements + e];
            cell *sum = &t->next[without(target, target->at[rank], t->relation.parts) * t->elements + e];
            if (have->held && !oracle_holds(target, rank, e)) t->wrong = "leaves a rank more than its part";
            if (have->held) sum->value += have->value;
            sum->held |= have->held;
        }
}

static void try_end(trial *t)
{
    const oracle_spec *target = t->relation.target;
    uint64_t known[ORACLE_MAX_RANKS];
    add_groups(t);
    for (int64_t e = 0; e < t->elements; e++) {
        for (int key = 0; key < size_on(target, t->relation.kept); key++) known[key] = due(t, e, key);
        for (int rank = 0; rank < target->world; rank++) {
            if (target->at[rank] < 0 || !oracle_holds(target, rank, e)) continue;
            const cell *sum = &t->next[without(target, target->at[rank], t->relation.parts) * t->elements + e];
            if (!sum->held) t->wrong = "leaves out an element";
            else if (sum->value != known[number_on(target, target->at[rank], t->relation.kept)])
                t->wrong = "ends with another value";
        }
    }
}

/* ---- what the plan says ------------------------------------------------------------------------------------------ */

static int64_t most(const int64_t *values, int n)
{
    int64_t result = 0;
    for (int i = 0; i < n; i++) result = values[i] > result ? values[i] : result;
    return result;
}

static int64_t most_link(const int64_t (*values)[DT_MAX_LINKS], int n, int link)
{
    int64_t result = 0;
    for (int i = 0; i < n; i++) result = values[i][link] > result ? values[i][link] : result;
    return result;
}

static const char *compare_ranks(const trial *t)
{
    for (int r = 0; r < t->relation.source->world; r++) {
        if (dt_plan_received(t->plan, r) != t->count->received[r]) return "dt_plan_received is not what arrives";
        if (dt_plan_sent(t->plan, r) != t->count->sent[r]) return "dt_plan_sent is not what leaves";
    }
    return NULL;
}

static const char *compare_price(const trial *t)
{
    dt_plan_cost cost = dt_plan_price(t->plan);
    const oracle_count *count = t->count;
    int n = t->relation.source->world;
    if (cost.bytes != most(count->received, n)) return "cost.bytes is not what the busiest receives";
    if (cost.sent != most(count->sent, n)) return "cost.sent is not what the busiest sends";
    if (cost.total != count->total) return "cost.total is not what all receive";
    if (cost.lower_bound > cost.bytes) return "cost.bytes is below cost.lower_bound";
    if (cost.total_bound > cost.total) return "cost.total is below cost.total_bound";
    if (cost.link_count != count->links) return "cost.link_count is not the topology's";
    for (int l = 0; l < count->links; l++) {
        if (cost.link_bytes[l] != most_link(count->link_received, n, l)) return "cost.link_bytes is not what arrives";
        if (cost.link_sent[l] != most_link(count->link_sent, n, l)) return "cost.link_sent is not what leaves";
    }
    return NULL;
}

/* A shown step that covers stages [first, last): bytes and messages of one of its busiest receivers. */
static const char *compare_step(const trial *t, const dt_plan_step *shown, int first, int last)
{
    const oracle_count *count = t->count;
    int64_t busiest = 0, bytes[ORACLE_MAX_RANKS] = { 0 }, messages[ORACLE_MAX_RANKS] = { 0 };
    bool right = false;
    for (int r = 0; r < t->relation.source->world; r++) {
        for (int s = first; s < last; s++) {
            bytes[r] += count->stage_received[s][r];
            messages[r] += count->stage_messages[s][r];
        }
        if (bytes[r] > busiest) busiest = bytes[r];
    }
    for (int r = 0; r < t->relation.source->world; r++)
        right |= bytes[r] == busiest && messages[r] == shown->messages;
    if (shown->bytes != busiest) return "a step's bytes are not what its busiest receives";
    if (!right) return "a step's messages are not those of its busiest";
    if ((shown->kind == DT_COMM_LOCAL) != (busiest == 0)) return "local is not what moves no bytes";
    return NULL;
}

/* Users see the stages, or all of them as one all-reduce. */
static const char *compare_steps(const trial *t)
{
    int shown = dt_plan_step_count(t->plan);
    if (shown != t->stage && (shown != 1 || dt_plan_step_at(t->plan, 0).kind != DT_COMM_ALL_REDUCE))
        return "shows other steps than it has";
    const char *wrong = NULL;
    for (int i = 0; i < shown && !wrong; i++) {
        dt_plan_step step = dt_plan_step_at(t->plan, i);
        wrong = compare_step(t, &step, i, shown == t->stage ? i + 1 : t->stage);
    }
    return wrong;
}

static void put_tokens(trial *t)
{
    const oracle_spec *source = t->relation.source;
    unsigned p = partial_dims(source);
    for (int rank = 0; rank < source->world; rank++)
        for (int64_t e = 0; e < t->elements; e++)
            if (oracle_holds(source, rank, e))
                t->now[rank * t->elements + e] = (cell){ token(e, number_on(source, source->at[rank], p)), 0, 0, true };
}

static const char *judge(trial *t)
{
    put_tokens(t);
    memcpy(t->first, t->now, (size_t)t->relation.source->world * (size_t)t->elements * sizeof *t->now);
    try_steps(t);
    if (!t->wrong) try_end(t);
    const char *(*const questions[])(const trial *) = { compare_ranks, compare_price, compare_steps };
    for (int i = 0; i < DT_COUNT(questions) && !t->wrong; i++) t->wrong = questions[i](t);
    return t->wrong;
}

const char *oracle_try(const dt_plan *plan, const oracle_spec *source, const oracle_spec *target, oracle_count *count)
{
    if (!plan) return "is none";
    trial t = { .relation = relate(source, target), .plan = plan, .elements = source->elements, .count = count,
                .ctx = dt_mesh_context(dt_spec_mesh(source->spec)) };
    size_t cells = (size_t)source->world * (size_t)source->elements + 1;
    *count = (oracle_count){ .links = dt_topology_link_count(t.ctx) };
    dti_plan_frame(plan, &t.frame);
    t.first = calloc(cells, sizeof *t.first);
    t.now = calloc(cells, sizeof *t.now);
    t.next = calloc(cells, sizeof *t.next);
    if (plan->step_count > ORACLE_MAX_STEPS) t.wrong = "has too many steps";
    if (!t.first || !t.now || !t.next) t.wrong = "needs more memory than there is";
    const char *wrong = t.wrong ? t.wrong : judge(&t);
    free(t.first);
    free(t.now);
    free(t.next);
    return wrong;
}
