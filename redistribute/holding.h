/* SPDX-License-Identifier: Apache-2.0
 *
 * A holding says which elements each rank has at one moment of a redistribution. Elements are numbered over blocks
 * (the dims in which a plan thinks, see frame.h); along each block a rank's set is what a chain of carves leaves of
 * it, so a holding is a product of sets, one per block. Layouts are holdings whose carves are the cuts of their
 * factors; the states in between need two things more: a carve by the number of what is left, and open digits.
 *
 * A carve cuts by the mixed-radix number of some digits of the rank. A digit that is open does not restrict: the rank
 * has the pieces of all its values, as after gathering along that axis alone. One that is other has the pieces of all
 * values but the rank's own: the elements of which another rank along the axis is the holder. */
#ifndef DTI_HOLDING_H
#define DTI_HOLDING_H

#include "placements/layout.h"

enum { DTI_MAX_BLOCKS = 2 * DT_MAX_FACTORS, DTI_MAX_CARVES = 48, DTI_MAX_DIGITS = 96 };

typedef enum dti_digit_mode { DTI_CLOSED = 0, DTI_OPEN, DTI_OTHER } dti_digit_mode;

typedef struct dti_digit { int size, stride; dti_digit_mode mode; } dti_digit;

typedef struct dti_carve {
    int block;
    int first, count;              /* digits, outermost cut first                                                  */
    int pieces;                    /* product of their sizes; without digits: into how many, of which it takes     */
    int lo, hi;                    /* lo .. hi - 1, the same on every rank                                         */
    int64_t size, inner;           /* cuts the factor (index / inner) % size; size 0: the count of what is left    */
} dti_carve;

typedef struct dti_holding {
    int base, ranks;               /* world rank at digits 0; how many ranks there are                             */
    int member_count, carve_count, digit_count, zero_count;
    const dti_axis *members;       /* the layout's                                                                 */
    dti_axis *zeros;               /* ranks with another digit than 0 on one of these hold nothing                 */
    dti_digit *digits;
    dti_carve *carves;             /* by block, in the order they cut                                              */
} dti_holding;

typedef struct dti_room {          /* a holding while it is built                                                  */
    dti_holding holding;           /* its pointers lead to what follows                                            */
    bool full;                     /* more was to be carved than it can take: the holding is not what was asked for */
    dti_axis zeros[DTI_MAX_AXES];
    dti_digit digits[DTI_MAX_DIGITS];
    dti_carve carves[DTI_MAX_CARVES];
} dti_room;

/* Where digits of a rank stand: digit = (rank - base) / stride % size. */
static inline int dti_digit_of(const dti_holding *holding, int index, int rank)
{
    const dti_digit *digit = &holding->digits[index];
    return (rank - holding->base) / digit->stride % digit->size;
}

/* A holding of everything by every rank of a layout. */
void dti_room_init(dti_room *room, const dti_layout *layout);
void dti_room_copy(dti_room *to, const dti_holding *from);
/* Carve on, by n digits, behind the block's other carves; nothing where one of these cuts the factor so already. */
void dti_room_carve(dti_room *room, int block, int64_t size, int64_t inner, const dti_digit *digits, int n);
/* Carve on as another holding does. */
void dti_room_carve_all(dti_room *room, const dti_holding *by);
/* Take only pieces lo .. hi - 1 of what is left along a block, cut in so many. */
void dti_room_part(dti_room *room, int block, int lo, int hi, int pieces);
/* Set the mode of the digits on one axis, whatever they cut; open ones stay open. */
void dti_room_set(dti_room *room, dti_axis axis, dti_digit_mode mode);
/* Bytes of a holding with its arrays as one piece; a copy that is one. */
size_t dti_holding_bytes(const dti_holding *holding);
const dti_holding *dti_holding_place(const dti_holding *holding, void *bytes);
/* One in an arena; NULL: memory ran out. */
const dti_holding *dti_holding_freeze(const dti_holding *holding, dti_arena *arena);

/* Does this rank hold anything at all, as far as members and zeros say? */
bool dti_holding_has(const dti_holding *holding, int rank);
/* The rank's set along a block of n elements; the rank is one of the holding's. */
void dti_holding_set(const dti_holding *holding, int block, int64_t n, int rank, dti_set *set);
/* World rank of a member, 0 .. ranks - 1, in ascending order. */
int dti_holding_member(const dti_holding *holding, int index);
/* Is a rank's set along a block seen to be part of its set of another holding: carved on from there? */
bool dti_holding_within(const dti_holding *holding, const dti_holding *other, int block);
/* Is it built alike: the same carves of the same ranks? */
bool dti_holding_equal(const dti_holding *a, const dti_holding *b);
/* Is anything in it carved by count? */
bool dti_holding_shares(const dti_holding *holding);
/* Does a rank's digit on this axis restrict what it holds? */
bool dti_holding_closes(const dti_holding *holding, dti_axis axis);

#endif
