/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for a route: holdings are built in rooms and kept, steps are made between them, finished routes are
 * offered, and the best is taken. route.c leads it; route_pull.c and route_sum.c know what can be offered. */
#ifndef DTI_SEARCH_H
#define DTI_SEARCH_H

#include "redistribute/plan.h"

enum {
    DTI_MAX_HOLDINGS = 64,         /* of the largest; of others there is room for more                             */
    DTI_SLACK = 64,                /* the busiest rank receives no more than the mean if it is no more by a 64th    */
    DTI_ROUGH = 16                 /* parts are alike, where time is sought, if they differ by a 16th at most        */
};

struct dti_search {
    dt_context *ctx;
    dt_plan *plan;
    dti_frame frame;
    dti_frame side;                /* the target's own atoms; as frame where that is regular                       */
    uint32_t summed, kept, sliced; /* atoms P -> other, P -> P, and R -> P(sum or prod)                            */
    const dti_holding *from, *to;  /* the first and the last of every route                                        */
    uint32_t from_atoms, to_atoms; /* that these close                                                             */
    dti_route best;
    dti_moves best_moves, best_stages[DTI_MAX_STEPS];
    bool found, counted;           /* counted: these are of best                                                   */
    bool known;                    /* best is, and that every step moves something, without a count                */
    int64_t received, staged, direct; /* then: bytes of the busiest rank, of each stage's together, and of the busiest
                                         if each sums for itself                                                   */
    bool full;                     /* some holding is not what was asked for                                       */
    size_t used;                   /* bytes of holdings                                                            */
    _Alignas(max_align_t) char holdings[(DTI_MAX_HOLDINGS + 1) * sizeof(dti_room)];
};

/* ---- holdings and steps (step.c) --------------------------------------------------------------------------------- */

/* A built holding as a value, to the end of the search. */
const dti_holding *dti_search_keep(dti_search *s, const dti_room *room);
/* A step in a frame whose atoms both holdings use; own: to a holding of the same ranks; summed: which atoms are added
 * up. */
void dti_search_step(const dti_search *s, const dti_frame *frame, const dti_holding *from, const dti_holding *to,
                     bool own, uint32_t summed, dti_step *step);
/* The same as the route's next stage. */
void dti_search_add(dti_search *s, dti_route *route, const dti_frame *frame, const dti_holding *from,
                    const dti_holding *to, bool own, uint32_t summed);
/* The stage behind a route's last one. */
int dti_route_stage(const dti_route *route);
/* Atoms whose digits mean the same in both holdings: a rank need only ask ranks that share them with it. */
uint32_t dti_step_common(const dti_frame *frame, const dti_holding *from, const dti_holding *to);

/* ---- evenness (even.c) ------------------------------------------------------------------------------------------- */

/* Are the parts of a holding alike, and not empty: all carves divide, or, where time is sought, leave parts that hardly
 * differ? */
bool dti_search_alike(const dti_search *s, const dti_holding *holding);
/* Do cuts of the source by some atoms, and cuts of the target, other than common ones, tell the same indices apart?
 * Where none do, and all divide, ranks keep as much as any other; where they cross, what some rank is to hold is
 * nothing of what it has. They are askew where neither's borders are among the other's, as of halves and thirds: then
 * nothing is told. */
typedef enum dti_crossing { DTI_APART, DTI_CROSSING, DTI_ASKEW } dti_crossing;
dti_crossing dti_search_crosses(const dti_search *s, uint32_t atoms);
/* Do cuts of one holding, by different digits? Then ranks do not hold as much as any other. */
bool dti_search_crosses_within(const dti_search *s, const dti_holding *holding);

/* ---- regions (region.c) ------------------------------------------------------------------------------------------- *
 * Where axes shard something in one holding and something else, or nothing, in another, elements fall into regions: by
 * the first axis along which the rank that has an element is not the one that is to have it; or there is none.      */

typedef struct dti_region {
    uint32_t axes;                 /* the atoms that tell regions apart                                            */
    int first;                     /* which of them is the first to differ; their number: none                     */
    int lo, hi, pieces;            /* the part of the region's elements that is meant                              */
} dti_region;

/* A region as one end sees it: closed by its own cuts, and the other end's cuts on the region's axes telling the
 * region; those on other atoms are open, but for also_closed. */
void dti_region_view(const dti_search *s, const dti_region *region, const dti_holding *end, const dti_holding *other,
                     uint32_t also_closed, dti_room *view);

/* ---- routes ------------------------------------------------------------------------------------------------------ */

/* Append the pull from one holding to another, all at once or one link class after the other, slowest first. */
void dti_search_pull(dti_search *s, dti_route *route, const dti_frame *frame, const dti_holding *from,
                     const dti_holding *to, bool by_link);
/* Offer pulls, and sums with the pulls of their results, between the ends of a regular frame. */
void dti_search_pulls(dti_search *s);
void dti_search_sums(dti_search *s);
/* The route where every rank sums for itself all that it is to hold: more bytes, one step. */
void dti_search_direct_sum(dti_search *s, dti_route *route);
/* Offer what leads to other ranks, or to a mesh without common axes. */
void dti_search_across(dti_search *s);
/* Take a route if it is better than the best so far. A single route is never counted. */
void dti_search_offer(dti_search *s, const dti_route *route);
/* Is the best so far as good as can be: no rank receives more than the mean? */
bool dti_search_done(dti_search *s);

#endif
