/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a plan: a chain of holdings, from the source's to the target's, and the steps between them. In a step
 * every rank pulls what it is to hold next from ranks that hold it now; a step that sums pulls every contribution. */
#ifndef DTI_PLAN_H
#define DTI_PLAN_H

#include <dtensor/plan.h>

#include "placements/spec.h"
#include "redistribute/frame.h"
#include "redistribute/price.h"

enum {
    DTI_MAX_STEPS = 16,
    DTI_COUNTED_PAIRS = 1 << 20    /* of ranks: beyond, pulls are not gone through to count                        */
};

/* Element j of the target in [lo, hi) along a block is element shift + j of the source, or shift - j where reversed;
 * with a stride, every so-manieth: shift + j stride. 0: 1. */
typedef struct dti_map { int64_t lo, hi, shift, source_size; bool reversed; int64_t stride; } dti_map;

static inline int64_t dti_map_step(const dti_map *map)
{
    int64_t stride = map->stride ? map->stride : 1;
    return map->reversed ? -stride : stride;
}

static inline int64_t dti_map_source(const dti_map *map, int64_t j) { return map->shift + j * dti_map_step(map); }

typedef struct dti_step {
    const dti_holding *from, *to;
    const dti_holding *early;      /* what ranks have since before `from`, and need not ask for; NULL: nothing      */
    const dti_map *maps;           /* per block; NULL: the identity                                                */
    int stage;                     /* steps of one stage run at once, each over elements of its own                */
    int summed_ranks;              /* contributions per element that are added; 1: a plain pull                    */
    dt_dtype travels, sums_in, gives;
    dt_comm_kind kind;
    /* Whom a rank asks: ranks that differ from it on these axes only (own), or any rank of `from`. The axes are listed
     * as those that number contributions, those that cut `from`, those along which `from` is replicated. */
    bool own;
    int sum_count, cut_count, copy_count;
    int takers;                    /* how many ranks of such a group are to hold each element                      */
    dti_axis asked[DTI_MAX_AXES];
} dti_step;

typedef struct dti_route { int step_count; dti_step steps[DTI_MAX_STEPS]; } dti_route;

/* What a chain of steps moves, in bytes. */
typedef struct dti_moves {
    int64_t total;                 /* received by all ranks                                                        */
    int64_t received;              /* by the busiest                                                               */
    int64_t first;                 /* by the rank at coordinates 0 of the last step's                              */
    int64_t link[DT_MAX_LINKS];    /* over each link class, by its busiest                                         */
} dti_moves;

struct dt_plan {
    const dt_spec *source, *target;
    const dt_spec **sources;       /* of the steps, where mapped                                                   */
    dt_plan_goal goal;
    bool mapped;                   /* through index maps (map.h): several sources, blocks are the target's dims    */
    const dti_topology *topology;
    const dti_holding *from, *to;  /* what ranks have at first, and hold in the end (where P is new: a share)      */
    const dti_step *steps;         /* by stage                                                                     */
    int step_count;
    int64_t multiply, divide;      /* P(avg): by what values are scaled, after the sums                            */
    dt_plan_step *shown;           /* as users see them: a sum and its copies along the same dims are one          */
    struct dti_shown *behind;      /* of these: which steps, along which mesh dims                                 */
    int shown_count;
    struct dti_program *program;   /* compiled at the first run (execute.h)                                        */
    bool even;                     /* in every step that is not local some rank receives something                 */
    bool measured, timed;          /* moves, time_us: counted by the search, or at the first question              */
    dti_moves moves;
    dti_moves *stages;             /* the same of each stage, at its first step; NULL: not counted, or but one     */
    double time_us;
    int64_t untimed_runs, uncounted_runs; /* before time_us was asked for, and what ranks receive                    */
    bool unsettled;                /* these are in no time, no counters                                            */
    struct dt_plan *next_unsettled;
    dt_plan_cost *cost;            /* likewise                                                                     */
    const int64_t *sends;          /* by rank and link class; likewise                                             */
    const char *text;
};

/* Plans that others than dt_plan_create make are kept by the context, too, and found again by who knows them. false:
 * memory ran out. */
bool dti_plan_keep(dt_context *ctx, uint64_t hash, dt_plan *plan);
typedef bool (*dti_plan_is_fn)(const dt_plan *plan, const void *arg);
const dt_plan *dti_plan_kept(const dt_context *ctx, uint64_t hash, dti_plan_is_fn is, const void *arg);
/* Tell who observes the context of an event of a plan. */
void dti_plan_notify(const dt_plan *plan, dt_event_kind kind);
/* Can the bytes of a spec, moved by all ranks, be counted? */
bool dti_plan_countable(const dt_context *ctx, const dt_spec *spec);
/* The frame of a plan: cheap, so made when needed. */
void dti_plan_frame(const dt_plan *plan, dti_frame *frame);

/* ---- pulls (pull.c): what a step moves, rank by rank ------------------------------------------------------------- */

typedef struct dti_pull {
    int rank;                      /* whom to ask; the asking rank itself for what it has                          */
    int contribution;              /* which of the contributions; 0 where nothing is summed                        */
    const dti_set *sets;           /* per block, in the target's numbers; the elements are their product           */
    int64_t first, count;          /* of these, row-major, only elements first .. first + count - 1                */
    bool early;                    /* from what the rank has in `early`, not in `from`                             */
} dti_pull;

typedef void (*dti_pull_fn)(const dti_pull *pull, void *arg);

/* Every pull of one rank, contributions in coordinate order. false: memory ran out. */
bool dti_step_pulls(const dti_frame *frame, const dti_topology *topology, const dti_step *step, int rank,
                    dti_pull_fn fn, void *arg);
/* World rank of member i, 0 .. dti_plan_ranks - 1, of all that take part: the source's, then the target's others. */
int dti_plan_rank(const dt_plan *plan, int i);
int dti_plan_ranks(const dt_plan *plan);
/* How many steps from one on are of its stage. */
int dti_stage_steps(const dt_plan *plan, int first);
/* How many of n > 0 steps, the first among them, are of its stage. */
int dti_steps_at_once(const dti_step *steps, int n);

/* ---- counting (volume.c, measure.c) ------------------------------------------------------------------------------ */

/* A rank's set along a block as a step sees it: in the target's numbers. */
void dti_step_from(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set);
void dti_step_to(const dti_frame *frame, const dti_step *step, int block, int rank, dti_set *set);

/* Sets that were asked for once, for asking about many ranks; per step. NULL, of all or of one: they are too few to be
 * worth it, or memory ran out, and every set is made anew. */
typedef struct dti_memo dti_memo;
dti_memo **dti_memos_new(const dti_frame *frame, const dti_step *steps, int n, int ranks);
void dti_memos_free(dti_memo **memos, int n);

/* Elements that a rank is to hold after a step, how many of these it holds before. */
typedef struct dti_volume { int64_t to, kept; } dti_volume;

dti_volume dti_step_volume(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank);
/* The same of two ranks: elements that the taker is to hold, of these those that the holder holds. */
dti_volume dti_pair_volume(const dti_frame *frame, const dti_step *step, dti_memo *memo, int taker, int holder);
/* Of what one rank is to hold and another holds, elements that the first has since earlier. */
int64_t dti_early_volume(const dti_frame *frame, const dti_step *step, int taker, int holder);
/* Elements that a rank holds before a step. */
int64_t dti_step_held(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank);

/* Bytes that a rank receives, and sends, in a step. Sending is counted for one link class: with more, who is nearest
 * decides, and pulls are counted one by one. */
int64_t dti_step_received(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank);
int64_t dti_step_sent(const dti_frame *frame, const dti_step *step, dti_memo *memo, int rank);
/* Does any rank lack something that a step is to give it; is any to hold something? */
bool dti_step_moves(const dti_frame *frame, const dti_step *step);
bool dti_step_holds(const dti_frame *frame, const dti_step *step);
/* The most messages that a rank can get: one from each class of ranks that hold alike. */
int64_t dti_step_messages(const dti_step *step);
/* stages: what each stage moves, at its first step; or NULL. */
dti_moves dti_route_moves(const dti_frame *frame, const dti_topology *topology, const dti_step *steps, int n,
                          dti_moves *stages);
/* Nanoseconds of their price: stages run one after the other. */
int64_t dti_route_ns(const dti_topology *topology, const dti_step *steps, int n, const dti_moves *stages);

/* Does what is asked of a rank and its copies divide evenly among them? */
bool dti_step_sends_evenly(const dti_frame *frame, const dti_step *step, int rank);

/* ---- ranks that are alike (alike.c) ------------------------------------------------------------------------------ *
 * Whoever counts over all ranks of some steps looks at these: for (dti_ranks r = ...; dti_ranks_next(&r);).          */

typedef struct dti_ranks {
    int rank;                      /* to look at, after dti_ranks_next                                             */
    int64_t times;                 /* how many ranks it stands for, itself among them                              */
    int count, at;                 /* the rest is the iterator's: how many to go through, which is next            */
    bool all;                      /* every rank of either end                                                     */
    const dti_holding *from, *to;
    int axis_count;
    dti_axis axes[DTI_MAX_AXES];
} dti_ranks;

dti_ranks dti_ranks_all(const dti_step *steps, int n);
/* Classes of ranks that hold, keep and receive alike in one step: by their digits on some axes, each less its digit on
 * the axis of a stride, if that is not 0. */
typedef struct dti_classes { int n, count; struct { dti_axis axis; int with; } axes[DTI_MAX_AXES]; } dti_classes;

/* The class, 0 .. count - 1, of the rank so many behind the first. */
int dti_class_of(const dti_classes *classes, int offset);

/* Ranks that stand for all in what they hold, keep and receive in n > 0 steps; and also in what they send. classes: of
 * each step, where these are not all ranks; or NULL. */
dti_ranks dti_ranks_alike(const dti_frame *frame, const dti_step *steps, int n, dti_classes *classes);
dti_ranks dti_ranks_sending_alike(const dti_frame *frame, const dti_step *steps, int n);
bool dti_ranks_next(dti_ranks *ranks);

/* ---- choosing (route.c), bounds (bound.c), names (name.c) -------------------------------------------------------- */

/* What a search works in: large, so made once per context. */
typedef struct dti_search dti_search;
/* NULL: memory ran out; freed by free. */
dti_search *dti_search_new(void);
/* The frame of the plan that was searched for last; NULL: that was another. */
const dti_frame *dti_search_frame(const dti_search *search, const dt_plan *plan);
/* The best chain of steps for a goal, in arena memory. false and the error on failure. */
bool dti_route_choose(dt_context *ctx, dt_plan *plan, dti_search *search);
/* Lower bounds on the bytes that all ranks, and the busiest, receive; moves: what the plan moves. */
void dti_plan_bound(const dt_plan *plan, const dti_frame *frame, const dti_moves *moves, int64_t *total,
                    int64_t *busiest);
/* The collective whose work a step is, as far as its axes tell. */
dt_comm_kind dti_step_kind(const dti_frame *frame, const dti_step *step);
/* Is the plan the work of one all-reduce, which moves as many bytes: sums shared out among some ranks and every share
 * copied to all of them, or one step in which each of two ranks sums all? */
bool dti_plan_all_reduces(const dt_plan *plan);
/* The steps as users see them, but for their dims and messages, which only people ask for; and with these. false and
 * the error when memory ran out. */
bool dti_plan_name(dt_plan *plan);
bool dti_plan_show(dt_plan *plan);
typedef struct dti_shown {
    int first, count;
    dt_mesh *mesh;
    uint32_t dims;
    int64_t received;              /* by this rank; -1: not counted yet                                            */
} dti_shown;
/* Write what this rank is to receive behind each shown step, where no program tells. */
void dti_plan_expect(const dt_plan *plan);
/* Does anything move between ranks? */
bool dti_plan_moves(dt_plan *plan);
/* What it moves; the time of its price, without the rest of that. */
dti_moves dti_plan_measure(dt_plan *plan);
/* Room for what stages move, where they are several. false: memory ran out. */
bool dti_plan_stage_room(dt_plan *plan);
double dti_plan_time_us(dt_plan *plan);

/* ---- what runs add to time and counters (plan.c, count.c) -------------------------------------------------------- */

/* Add its time to the context's, once that is asked for. */
void dti_plan_predict(dt_plan *plan);
/* Count a run of plans, together, in their meshes' counters. */
void dti_plans_count(dt_context *ctx, dt_plan *const *plans, int n);
/* Let it be settled once time or counters are asked for. false: memory ran out. */
bool dti_plan_settle_late(dt_plan *plan);
/* Add what its uncounted runs received to the counters. */
void dti_plan_count_late(dt_plan *plan);

#endif
