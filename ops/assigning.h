/* SPDX-License-Identifier: Apache-2.0
 *
 * A propagation under way, as its files share it: propagate.c tries assignments, propagate_given.c says how operands
 * lie, propagate_price.c what an assignment costs, propagate_specs.c which specs it makes. */
#ifndef DTI_OPS_ASSIGNING_H
#define DTI_OPS_ASSIGNING_H

#include "ops/propagate.h"
#include "redistribute/price.h"

enum {
    DTI_MAX_STRATEGIES = 64,           /* along one mesh dim                                                       */
    DTI_FOREIGN = -1                   /* a factor of a given placement that is no factor of the bound rule        */
};

/* What a strategy along one mesh dim does to what an operand moves: by how much it divides each part of a tally, how
 * many contributions are summed; 1: it does nothing. Messages are added, and the slowest link counts. */
typedef struct dti_effect { int32_t part, kept, given, summed, messages, link; } dti_effect;

typedef struct dti_candidates {        /* along one mesh dim; those that move nothing first                        */
    int count, free_count;
    int tried;                         /* how many of them are                                                     */
    int whole;                         /* the one that has all operands R                                          */
    int64_t share[DTI_MAX_STRATEGIES]; /* into how many pieces each splits the work                                */
    dti_effect effect[DTI_MAX_STRATEGIES][DTI_MAX_OPERANDS];
    dti_strategy strategy[DTI_MAX_STRATEGIES];
} dti_candidates;

typedef struct dti_assignment {
    int wasteful;                      /* mesh dims along which something moves and nothing need                   */
    int64_t ns, bytes;
    int chosen[DT_MAX_MESH_DIMS];
} dti_assignment;

/* What an operand's bytes are made of: elements of a part as it is used; of these what is there; of a part as it is
 * given, by the contributions summed, which are so many. */
typedef struct dti_amount { int64_t part, kept, given, summed, messages, slowest; } dti_amount;

/* What an assignment costs, along the mesh dims before one. */
typedef struct dti_tally { int64_t share; int wasteful; dti_amount operand[DTI_MAX_OPERANDS]; } dti_tally;

typedef struct dti_assigning {
    dt_context *ctx;
    const dti_ask *ask;
    const dti_rule *rule;
    dti_propagation *out;
    const dt_mesh *mesh;
    int wanted;
    int64_t elements[DTI_MAX_OPERANDS], made[DTI_MAX_RESULTS]; /* of operands, of results                          */
    int64_t element_bytes[DTI_MAX_OPERANDS];
    int64_t touched;                   /* bytes of all operands and results                                        */
    int64_t work_ns;                   /* of one rank that does it all                                             */
    dti_place given[DTI_MAX_OPERANDS][DT_MAX_MESH_DIMS];
    int link[DT_MAX_MESH_DIMS];        /* the slowest link class along a mesh dim                                  */
    int levels;
    bool maps, breaks, products;       /* any letter goes through an index map, may be broken up, is a product     */
    bool may_clash;                    /* any strategy has another P than sum and avg, which mix                   */
    dti_price prices[DT_MAX_LINKS];
    int chosen[DT_MAX_MESH_DIMS];      /* the assignment at hand                                                   */
    int told;                          /* tallies are of it along so many mesh dims                                */
    int best_count;                    /* the best so far, cheapest first                                          */
    dti_assignment best[DTI_MAX_ALTERNATIVES];
    int listed_count, listed_max;      /* legal strategies, and how many there was room for; 0: none are listed    */
    uint8_t listed_kinds[DTI_MAX_OPERANDS]; /* what operands may be in these                                          */
    uint8_t all_kinds[DTI_MAX_OPERANDS]; /* what they may be along any mesh dim                                       */
    dti_strategy listed[DTI_MAX_STRATEGIES]; /* the rest last: large, and not zeroed                                  */
    dti_candidates dim[DT_MAX_MESH_DIMS];
    dti_tally tally[DT_MAX_MESH_DIMS + 1];
} dti_assigning;

static inline bool dti_assigning_has(const dti_assigning *s, int operand)
{
    return s->out->bound.present >> operand & 1;
}

static inline bool dti_place_same(dti_place a, dti_place b)
{
    return a.what == b.what && (a.what != DTI_PLACE_S || a.factor == b.factor)
        && (a.what != DTI_PLACE_P || a.kind == b.kind);
}

/* Where an operand is lifted to P(sum), or taken as it, that is what the kernel is given. */
static inline dti_place dti_place_used(const dti_strategy *strategy, int i)
{
    if ((strategy->lift | strategy->rescale) >> i & 1) return (dti_place){ .what = DTI_PLACE_P, .kind = DTI_SUM };
    return strategy->operand[i];
}

/* The dtype of a result. */
static inline dt_dtype dti_assigning_dtype(const dti_assigning *s, int r)
{
    if (s->ask->result[r]) return s->ask->result[r];
    for (int i = 0; i < s->rule->operand_count; i++)
        if (s->ask->operand[i]) return (dt_dtype)s->ask->operand[i]->form.dtype;
    return DT_F32;
}

/* The bound factor that some of a dim's refined factors, first .. end - 1, are together; DTI_FOREIGN: none. */
int dti_bound_factor_of(const dti_bound *bound, const dti_bound_dims *dims, int first, int end);
/* The bound factor of a dim that goes through an index map; -1: it does not. */
int dti_assigning_mapped(const dti_assigning *s, const dti_bound_dims *dims, int d);
/* Write how operand i is given along each mesh dim. */
void dti_assigning_place(dti_assigning *s, int i);
/* Write what the strategies along a mesh dim do to the work, and to what operands move. */
void dti_assigning_effects(dti_assigning *s, int m);
/* Before the first price: how long all the work takes one rank, what operands are. */
void dti_assigning_begin(dti_assigning *s);
/* The price of the assignment at hand, but not which it is. false: it is dearer than a bar (NULL: there is none). */
bool dti_assigning_price(dti_assigning *s, const dti_assignment *bar, dti_assignment *price);

/* To be said whenever the assignment at hand changes along a mesh dim. */
static inline void dti_assigning_changed(dti_assigning *s, int m)
{
    if (s->told > m) s->told = m;
}
/* Is each letter of the assignment at hand split either as a whole or by its factors? *whole: those that are, bit l. */
bool dti_assigning_agrees(const dti_assigning *s, uint64_t *whole);
/* Write answer i by the best assignment of this number. false: memory ran out. */
bool dti_assigning_answer(dti_assigning *s, int i);

#endif
