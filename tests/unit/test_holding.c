/* SPDX-License-Identifier: Apache-2.0
 *
 * Holdings and frames, element by element: what a layout's cuts leave each rank is what its text says; open and other
 * digits, shares of what is left, parts and products are what they are made of; frames refine both layouts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "plan/oracle.h"
#include "redistribute/frame.h"
#include "suite.h"

/* ---- random specs ------------------------------------------------------------------------------------------------ */

static uint64_t seed;

static int draw(int n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)n);
}

static const char *const meshes[] = {
    "x=4", "x=2,y=2", "x=2,y=3", "x=4,y=2", "x=2,y=2,z=2", "x=3,y=2,z=2", "x=2,y=1,z=4",
};

/* Spellings of one shape: factors are where S(d.f) cuts. */
typedef struct shape_row { const char *sizes[4]; int dims; int factors[4][2]; } shape_row;

static const shape_row shapes[] = {
    { { "12,4", "(2 6),4", "(3 4),4", "12,(2 2)" }, 2, { { 1, 1 }, { 2, 1 }, { 2, 1 }, { 1, 2 } } },
    { { "13,5", "13,5", "13,5", "13,5" }, 2, { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { { "24", "(2 12)", "(6 4)", "(3 8)" }, 1, { { 1, 0 }, { 2, 0 }, { 2, 0 }, { 2, 0 } } },
    { { "30,2", "(5 6),2", "(6 5),2", "(15 2),2" }, 2, { { 1, 1 }, { 2, 1 }, { 2, 1 }, { 2, 1 } } },
    { { "1,2", "1,2", "(1 1),2", "1,(2 1)" }, 2, { { 1, 1 }, { 1, 1 }, { 2, 1 }, { 1, 2 } } },
    { { "3,0", "3,0", "3,(0 2)", "3,0" }, 2, { { 1, 1 }, { 1, 1 }, { 1, 2 }, { 1, 1 } } },
};

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw(i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

static void random_spec(const dt_mesh *mesh, const shape_row *shape, bool partial, char *text, size_t room)
{
    int spelling = draw(4), order[DT_MAX_MESH_DIMS], n = dt_mesh_dim_count(mesh);
    shuffle(order, n);
    int at = snprintf(text, room, "f32[%s]", shape->sizes[spelling]);
    const char *comma = "@";
    for (int i = 0; i < n; i++) {
        const char *name = dt_mesh_dim_name(mesh, order[i]);
        int kind = draw(partial ? 5 : 4), d = draw(shape->dims);
        if (kind == 0) continue;
        if (kind == 4) at += snprintf(text + at, room - (size_t)at, "%s%s:P", comma, name);
        else at += snprintf(text + at, room - (size_t)at, "%s%s:S(%d.%d)", comma, name, d,
                            draw(shape->factors[spelling][d]));
        comma = ",";
    }
}

/* Two random specs of one shape on one mesh, and their frame. */
typedef struct pair {
    dt_context *ctx;
    oracle_spec source, target;
    dti_frame frame;
} pair;

static bool begin_pair(pair *p, int number, bool partial)
{
    char source[128], target[128];
    seed = (uint64_t)number + 1;
    draw(2);
    const char *mesh_text = meshes[draw(DT_COUNT(meshes))];
    const shape_row *shape = &shapes[draw(DT_COUNT(shapes))];
    int ranks = 1;
    for (const char *at = mesh_text; (at = strchr(at, '=')) != NULL; at++) ranks *= at[1] - '0';
    p->ctx = dt_context_dry(ranks);
    dt_mesh *mesh = dt_mesh_create(p->ctx, mesh_text);
    random_spec(mesh, shape, partial, source, sizeof source);
    random_spec(mesh, shape, partial, target, sizeof target);
    bool read = oracle_read(&p->source, mesh, source) && oracle_read(&p->target, mesh, target);
    if (!expect(read, "%s, %s: %s", source, target, dt_context_error(p->ctx))) return false;
    dti_frame_init(&p->frame, p->source.spec->layout, p->target.spec->layout, dti_topology_get(p->ctx));
    return true;
}

static void end_pair(pair *p)
{
    oracle_free(&p->source);
    oracle_free(&p->target);
    dt_context_destroy(&p->ctx);
}

/* ---- elements of a holding --------------------------------------------------------------------------------------- */

enum { MAX_ELEMENTS = 128 };

typedef struct had { bool has[MAX_ELEMENTS]; } had;

static bool set_has(const dti_set *set, int64_t index)
{
    for (int i = 0; i < set->n; i++)
        if (dti_set_at(set)[i].lo <= index && index < dti_set_at(set)[i].hi) return true;
    return false;
}

static bool is_sorted(const dti_set *set)
{
    for (int i = 0; i < set->n; i++) {
        if (dti_set_at(set)[i].lo >= dti_set_at(set)[i].hi) return false;
        if (i && dti_set_at(set)[i - 1].hi >= dti_set_at(set)[i].lo) return false;
    }
    return true;
}

/* What a rank has, by its sets along the blocks. */
static had elements_of(const dti_frame *frame, const dti_holding *holding, int rank)
{
    had e;
    dti_set set;
    dti_set_init(&set);
    for (int64_t i = 0; i < MAX_ELEMENTS; i++) e.has[i] = i < frame->elements && dti_holding_has(holding, rank);
    int64_t inner = 1;
    for (int b = frame->block_count - 1; b >= 0; b--) {
        dti_holding_set(holding, b, frame->blocks[b], rank, &set);
        expect(is_sorted(&set) && !set.lost, "sets ascend and do not touch");
        for (int64_t i = 0; i < frame->elements; i++) e.has[i] &= set_has(&set, i / inner % frame->blocks[b]);
        inner *= frame->blocks[b];
    }
    dti_set_fini(&set);
    return e;
}

static bool equal(const had *a, const had *b) { return memcmp(a->has, b->has, sizeof a->has) == 0; }

static void cut_room(const pair *p, const dti_layout *layout, dti_room *room)
{
    dti_room_init(room, layout);
    dti_frame_cut(&p->frame, layout, ~UINT32_C(0), room);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

static void expect_layout(const pair *p, const dti_frame *frame, const oracle_spec *spec)
{
    dti_room room;
    dti_room_init(&room, spec->spec->layout);
    dti_frame_cut(frame, spec->spec->layout, ~UINT32_C(0), &room);
    for (int rank = 0; rank < spec->world; rank++) {
        had have = elements_of(frame, &room.holding, rank);
        for (int64_t e = 0; e < spec->elements; e++)
            if (!expect(have.has[e] == oracle_holds(spec, rank, e), "%s beside %s: rank %d, element %lld", spec->text,
                        spec == &p->source ? p->target.text : p->source.text, rank, (long long)e)) return;
    }
}

static void test_layouts(void)
{
    for (int i = 0; i < 4000; i++) {
        pair p;
        if (begin_pair(&p, i, true)) {
            expect_layout(&p, &p.frame, &p.source);
            expect_layout(&p, &p.frame, &p.target);
        }
        end_pair(&p);
    }
}

/* Meshes without a common refinement, and of other ranks: each side has atoms of its own, in the blocks of both. */
static void test_irregular(void)
{
    for (int i = 0; i < 1000; i++) {
        pair p = { .ctx = dt_context_dry(12) };
        char source[128], target[128];
        seed = (uint64_t)i + 1;
        const shape_row *shape = &shapes[draw(DT_COUNT(shapes))];
        dt_mesh *from = dt_mesh_create(p.ctx, i % 2 ? "a=4,b=3" : "a=2,b=3,c=2");
        dt_mesh *to = dt_mesh_create(p.ctx, "d=3,e=4");
        if (i % 4 == 0) from = dt_mesh_select(from, "a=1");
        if (i % 5 == 0) to = dt_mesh_select(to, "d=1");
        random_spec(from, shape, false, source, sizeof source);
        random_spec(to, shape, false, target, sizeof target);
        bool read = oracle_read(&p.source, from, source) && oracle_read(&p.target, to, target);
        if (expect(read, "%s, %s: %s", source, target, dt_context_error(p.ctx))) {
            const dti_topology *topology = dti_topology_get(p.ctx);
            dti_frame side;
            dti_frame_init(&p.frame, p.source.spec->layout, p.target.spec->layout, topology);
            dti_frame_init(&side, p.target.spec->layout, p.target.spec->layout, topology);
            side.block_count = p.frame.block_count;
            memcpy(side.blocks, p.frame.blocks, sizeof side.blocks);
            expect_layout(&p, &p.frame, &p.source);
            expect_layout(&p, &side, &p.target);
        }
        end_pair(&p);
    }
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* Blocks make all elements, atoms all ranks; each atom says what its axis does. */
static void expect_frame(const pair *p)
{
    int64_t all = 1, ranks = 1;
    for (int b = 0; b < p->frame.block_count; b++) all *= p->frame.blocks[b];
    for (int a = 0; a < p->frame.atom_count; a++) {
        ranks *= p->frame.atoms[a].axis.size;
        if (a) expect(p->frame.atoms[a].axis.stride < p->frame.atoms[a - 1].axis.stride, "atoms descend");
    }
    expect(all == p->source.elements && p->frame.elements == all, "%s: blocks make %lld elements", p->source.text,
           (long long)all);
    expect(ranks == p->source.ranks, "%s: atoms make %lld ranks", p->source.text, (long long)ranks);
    expect(p->frame.regular, "%s and %s on one mesh have a refinement", p->source.text, p->target.text);
}

/* The mesh dim whose coordinate an atom is part of, by what differs between two ranks. */
static char place_along(const oracle_spec *spec, dti_axis axis)
{
    int inner = 1, d = spec->dims - 1;
    for (; d > 0 && axis.stride >= inner * spec->size[d]; d--) inner *= spec->size[d];
    return spec->kind[d];
}

static void expect_atoms(const pair *p)
{
    for (int a = 0; a < p->frame.atom_count; a++) {
        const dti_atom *atom = &p->frame.atoms[a];
        char source = place_along(&p->source, atom->axis), target = place_along(&p->target, atom->axis);
        expect((atom->source == DTI_SUM) == (source == 's') && (atom->target == DTI_SUM) == (target == 's'),
               "%s, %s: atom (%d, %d) is partial or not", p->source.text, p->target.text, atom->axis.size,
               atom->axis.stride);
        expect(!atom->source_cuts || source == 'S', "%s: atom (%d, %d) cuts", p->source.text, atom->axis.size,
               atom->axis.stride);
        expect(!atom->target_cuts || target == 'S', "%s: atom (%d, %d) cuts", p->target.text, atom->axis.size,
               atom->axis.stride);
    }
}

static void test_frames(void)
{
    for (int i = 0; i < 2000; i++) {
        pair p;
        if (begin_pair(&p, i, true)) {
            expect_frame(&p);
            if (p.source.elements > 1) expect_atoms(&p);
        }
        end_pair(&p);
    }
}

typedef struct refinement {
    const char *source_mesh, *source, *target_mesh, *target;
    bool regular;
    int blocks, atoms;
} refinement;

static const refinement refinements[] = { /* of 12 ranks */
    { "a=3,b=4", "f32[24]@a:S(0)", "c=6,d=2", "f32[24]@c:S(0)", true, 1, 3 },
    { "a=4,b=3", "f32[24]@a:S(0)", "c=3,d=4", "f32[24]@c:S(0)", false, 1, 2 },
    { "a=12", "f32[24]@a:S(0)", "c=3,d=4", "f32[24]@d:S(0)", true, 1, 2 },
    { "a=4,b=3", "f32[24]@a:S(0)", "c=3,d=4", "f32[24]", true, 1, 2 },
    { "a=2,b=6", "f32[(5 6)]@b:S(0.1)", "c=2,d=6", "f32[(6 5)]", true, 2, 2 },
    { "a=2,b=6", "f32[(5 6)]@b:S(0.1)", "c=2,d=6", "f32[(6 5)]@c:S(0.1)", true, 1, 2 },
    { "a=2,b=6", "f32[(2 12)]@a:S(0)", "c=2,d=6", "f32[24]@c:S(0)", true, 1, 2 },
    { "a=2,b=6", "f32[24]@b:S(0)", "a=2,b=6", "f32[24]@a:S(0),b:S(0)", true, 1, 2 },
};

static void test_refinements(void)
{
    for (int i = 0; i < DT_COUNT(refinements); i++) {
        const refinement *row = &refinements[i];
        dt_context *ctx = dt_context_dry(12);
        const dt_spec *a = dt_spec_parse(dt_mesh_create(ctx, row->source_mesh), row->source);
        const dt_spec *b = dt_spec_parse(dt_mesh_create(ctx, row->target_mesh), row->target);
        dti_frame frame;
        if (expect(a && b, "row %d: %s", i, dt_context_error(ctx))) {
            dti_frame_init(&frame, a->layout, b->layout, dti_topology_get(ctx));
            expect(frame.regular == row->regular, "%s on %s and %s on %s: regular %d", row->source, row->source_mesh,
                   row->target, row->target_mesh, frame.regular);
            expect(frame.atom_count == row->atoms, "row %d: %d atoms", i, frame.atom_count);
            expect(frame.block_count == row->blocks, "row %d: %d blocks", i, frame.block_count);
        }
        dt_context_destroy(&ctx);
    }
}

typedef struct standing { const char *topology; int ranks; bool aligned; int links[3]; } standing;

static const standing standings[] = { /* of x=2,y=2,z=2, all cut */
    { "node=2,gpu=4", 8, true, { 0, 1, 1 } },
    { "node=4,gpu=2", 8, true, { 0, 0, 1 } },
    { "pod=2,node=2,gpu=2", 8, true, { 0, 1, 2 } },
    { "gpu=8", 8, true, { 0, 0, 0 } },
    { "node=3,gpu=3", 8, false, { -1, -1, -1 } },
    { "node=2,gpu=5", 8, false, { -1, -1, -1 } },
};

static void test_links(void)
{
    for (int i = 0; i < DT_COUNT(standings); i++) {
        const standing *row = &standings[i];
        setenv("DT_TOPOLOGY", row->topology, 1);
        dt_context *ctx = dt_context_dry(row->ranks);
        unsetenv("DT_TOPOLOGY");
        dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=2,z=2");
        const dt_spec *a = dt_spec_parse(mesh, "f32[8,8]@x:S(0),y:S(1),z:P");
        dti_frame frame;
        dti_frame_init(&frame, a->layout, a->layout, dti_topology_get(ctx));
        expect(frame.aligned == row->aligned, "%s: aligned %d", row->topology, frame.aligned);
        for (int k = 0; k < 3 && expect(frame.atom_count == 3, "three atoms"); k++)
            expect(frame.atoms[k].link == row->links[k], "%s: atom %d has link %d", row->topology, k,
                   frame.atoms[k].link);
        dt_context_destroy(&ctx);
    }
}

/* ---- open and other digits --------------------------------------------------------------------------------------- */

/* The union of what the ranks along an axis have; without the rank itself where others alone are asked for. */
static had union_along(const pair *p, const dti_holding *holding, dti_axis axis, int rank, bool others)
{
    had all = { { false } };
    int own = rank / axis.stride % axis.size;
    for (int digit = 0; digit < axis.size; digit++) {
        if (others && digit == own) continue;
        had e = elements_of(&p->frame, holding, rank + (digit - own) * axis.stride);
        for (int i = 0; i < MAX_ELEMENTS; i++) all.has[i] |= e.has[i];
    }
    return all;
}

static void expect_mode(const pair *p, dti_axis axis, dti_digit_mode mode)
{
    dti_room closed, room;
    cut_room(p, p->source.spec->layout, &closed);
    if (mode == DTI_OTHER && !dti_holding_closes(&closed.holding, axis)) return;
    dti_room_copy(&room, &closed.holding);
    dti_room_set(&room, axis, mode);
    for (int rank = 0; rank < p->source.world; rank++) {
        had have = elements_of(&p->frame, &room.holding, rank);
        had due = union_along(p, &closed.holding, axis, rank, mode == DTI_OTHER);
        expect(equal(&have, &due), "%s: rank %d, axis (%d, %d) %s", p->source.text, rank, axis.size, axis.stride,
               mode == DTI_OPEN ? "open" : "other");
    }
    expect(!dti_holding_closes(&room.holding, axis), "%s: axis (%d, %d) is not closed", p->source.text, axis.size,
           axis.stride);
}

static void test_modes(void)
{
    for (int i = 0; i < 1000; i++) {
        pair p;
        if (begin_pair(&p, i, false))
            for (int a = 0; a < p.frame.atom_count; a++) {
                expect_mode(&p, p.frame.atoms[a].axis, DTI_OPEN);
                expect_mode(&p, p.frame.atoms[a].axis, DTI_OTHER);
            }
        end_pair(&p);
    }
}

/* A mask leaves digits open from the start; what is closed is told back. */
static void test_masks(void)
{
    for (int i = 0; i < 1000; i++) {
        pair p;
        if (!begin_pair(&p, i, false)) continue;
        uint32_t mask = (uint32_t)draw(1 << p.frame.atom_count), cuts = 0;
        dti_room closed, masked;
        cut_room(&p, p.source.spec->layout, &closed);
        dti_room_init(&masked, p.source.spec->layout);
        dti_frame_cut(&p.frame, p.source.spec->layout, mask, &masked);
        for (int a = 0; a < p.frame.atom_count; a++) {
            cuts |= (uint32_t)p.frame.atoms[a].source_cuts << a;
            if (!(mask >> a & 1)) dti_room_set(&closed, p.frame.atoms[a].axis, DTI_OPEN);
        }
        for (int rank = 0; rank < p.source.world; rank++) {
            had a = elements_of(&p.frame, &closed.holding, rank);
            had b = elements_of(&p.frame, &masked.holding, rank);
            expect(equal(&a, &b), "%s: rank %d, mask %x", p.source.text, rank, mask);
        }
        if (p.source.elements > 0)
            expect(dti_frame_closed(&p.frame, &masked.holding) == (mask & cuts), "%s: closed %x of %x", p.source.text,
                   dti_frame_closed(&p.frame, &masked.holding), mask & cuts);
        end_pair(&p);
    }
}

/* ---- shares, parts, products ------------------------------------------------------------------------------------- */

static int64_t ceil_of(int64_t n, int64_t k) { return (n + k - 1) / k; }

/* Of the indices a rank has along a block, number [lo, hi) of so many pieces. */
static void expect_share(const dti_set *whole, const dti_set *part, int lo, int hi, int pieces, const char *what)
{
    int64_t n = dti_set_count(whole), number = 0;
    for (int i = 0; i < whole->n; i++)
        for (int64_t j = dti_set_at(whole)[i].lo; j < dti_set_at(whole)[i].hi; j++, number++) {
            bool due = number >= ceil_of(n * lo, pieces) && number < ceil_of(n * hi, pieces);
            expect(set_has(part, j) == due, "%s: index %lld, number %lld of %lld", what, (long long)j,
                   (long long)number, (long long)n);
        }
    expect(dti_set_count(part) == ceil_of(n * hi, pieces) - ceil_of(n * lo, pieces), "%s: nothing else", what);
}

/* Share out what a layout leaves along each block, by the digits of an axis that cuts nothing so far. */
static void expect_shares(const pair *p, const dti_atom *atom, int block)
{
    dti_room room, shared, parted;
    dti_set whole, part;
    dti_set_init(&whole);
    dti_set_init(&part);
    cut_room(p, p->source.spec->layout, &room);
    dti_room_copy(&shared, &room.holding);
    dti_room_copy(&parted, &room.holding);
    dti_room_carve(&shared, block, 0, 1, &(dti_digit){ atom->axis.size, atom->axis.stride, DTI_CLOSED }, 1);
    dti_room_part(&parted, block, 1, 4, 5);
    for (int rank = 0; rank < p->source.world; rank++) {
        int digit = rank / atom->axis.stride % atom->axis.size;
        int64_t n = p->frame.blocks[block];
        dti_holding_set(&room.holding, block, n, rank, &whole);
        dti_holding_set(&shared.holding, block, n, rank, &part);
        expect_share(&whole, &part, digit, digit + 1, atom->axis.size, p->source.text);
        dti_holding_set(&parted.holding, block, n, rank, &part);
        expect_share(&whole, &part, 1, 4, 5, p->source.text);
    }
    dti_set_fini(&whole);
    dti_set_fini(&part);
}

static void test_shares(void)
{
    for (int i = 0; i < 1000; i++) {
        pair p;
        if (begin_pair(&p, i, true))
            for (int a = 0; a < p.frame.atom_count * p.frame.block_count; a++) {
                const dti_atom *atom = &p.frame.atoms[a / p.frame.block_count];
                if (!atom->source_cuts) expect_shares(&p, atom, a % p.frame.block_count);
            }
        end_pair(&p);
    }
}

/* Carving on as another holding does leaves what both have. */
static void test_products(void)
{
    for (int i = 0; i < 1000; i++) {
        pair p;
        if (!begin_pair(&p, i, false)) continue;
        dti_room source, target, both;
        cut_room(&p, p.source.spec->layout, &source);
        cut_room(&p, p.target.spec->layout, &target);
        dti_room_copy(&both, &source.holding);
        dti_room_carve_all(&both, &target.holding);
        for (int rank = 0; rank < p.source.world; rank++) {
            had a = elements_of(&p.frame, &source.holding, rank);
            had b = elements_of(&p.frame, &target.holding, rank);
            had have = elements_of(&p.frame, &both.holding, rank);
            for (int e = 0; e < MAX_ELEMENTS; e++) a.has[e] &= b.has[e];
            expect(equal(&a, &have), "%s and %s: rank %d", p.source.text, p.target.text, rank);
        }
        end_pair(&p);
    }
}

/* ---- ranks, values ----------------------------------------------------------------------------------------------- */

static void test_members(void)
{
    static const char *const coords[] = { "x=0", "x=1", "y=2", "z=1", "x=1,z=0", "x=0,y=1,z=1" };
    dt_context *ctx = dt_context_dry(12);
    dt_mesh *mesh = dt_mesh_create(ctx, "x=2,y=3,z=2");
    for (int i = 0; i < DT_COUNT(coords); i++) {
        dt_mesh *part = dt_mesh_select(mesh, coords[i]);
        const dt_spec *spec = dt_spec_parse(part, "f32[12]");
        dti_room room;
        dti_room_init(&room, spec->layout);
        int n = dt_mesh_size(part, NULL), before = -1;
        expect(room.holding.ranks == n, "%s: %d ranks", coords[i], room.holding.ranks);
        for (int r = 0; r < 14; r++) {
            bool in = false;
            for (int k = 0; k < n; k++) in |= dt_mesh_rank(part, k) == r;
            expect(dti_holding_has(&room.holding, r) == in, "%s: rank %d", coords[i], r);
        }
        for (int k = 0; k < n; k++) {
            int rank = dti_holding_member(&room.holding, k);
            expect(rank > before && dti_holding_has(&room.holding, rank), "%s: members ascend", coords[i]);
            before = rank;
        }
    }
    dt_context_destroy(&ctx);
}

static void test_zeros(void)
{
    dt_context *ctx = dt_context_dry(6);
    const dt_spec *spec = dt_spec_parse(dt_mesh_create(ctx, "x=2,y=3"), "f32[12]");
    dti_room room;
    dti_room_init(&room, spec->layout);
    room.zeros[room.holding.zero_count++] = (dti_axis){ 3, 1 };
    for (int r = 0; r < 6; r++)
        expect(dti_holding_has(&room.holding, r) == (r % 3 == 0), "rank %d has digit %d", r, r % 3);
    expect(dti_holding_closes(&room.holding, (dti_axis){ 3, 1 }), "zeros close their axis");
    expect(!dti_holding_closes(&room.holding, (dti_axis){ 2, 3 }), "and no other");
    dt_context_destroy(&ctx);
}

/* A frozen holding is the same value; another cut, mode or part is another. */
static void test_values(void)
{
    for (int i = 0; i < 500; i++) {
        pair p;
        if (!begin_pair(&p, i, true)) continue;
        dti_room a, b;
        cut_room(&p, p.source.spec->layout, &a);
        const dti_holding *frozen = dti_holding_freeze(&a.holding, &p.ctx->arena);
        expect(frozen && dti_holding_equal(frozen, &a.holding), "%s: frozen", p.source.text);
        dti_room_copy(&b, frozen);
        expect(dti_holding_equal(&b.holding, frozen), "%s: copied", p.source.text);
        dti_room_part(&b, 0, 0, 1, 2);
        expect(!dti_holding_equal(&b.holding, frozen), "%s: a part is another value", p.source.text);
        dti_room_part(&a, 0, 1, 2, 2);
        expect(!dti_holding_equal(&a.holding, &b.holding), "%s: another part too", p.source.text);
        for (int k = 0; k < p.frame.atom_count; k++) {
            dti_room_copy(&b, frozen);
            if (!dti_holding_closes(frozen, p.frame.atoms[k].axis)) continue;
            dti_room_set(&b, p.frame.atoms[k].axis, DTI_OPEN);
            expect(!dti_holding_equal(&b.holding, frozen), "%s: an open digit is another value", p.source.text);
        }
        end_pair(&p);
    }
}

static void test_full(void)
{
    dt_context *ctx = dt_context_dry(4);
    const dt_spec *spec = dt_spec_parse(dt_mesh_create(ctx, "x=4"), "f32[12]");
    dti_room room;
    dti_room_init(&room, spec->layout);
    for (int i = 0; i < DTI_MAX_CARVES; i++) dti_room_carve(&room, 0, 0, 1, &(dti_digit){ 4, 1, DTI_CLOSED }, 1);
    expect(!room.full, "takes %d carves", DTI_MAX_CARVES);
    dti_room_carve(&room, 0, 0, 1, &(dti_digit){ 4, 1, DTI_CLOSED }, 1);
    expect(room.full, "and says that one more is too many");
    dt_context_destroy(&ctx);
}

static const test_row rows[] = {
    { "layouts", test_layouts },
    { "irregular", test_irregular },
    { "frames", test_frames },
    { "refinements", test_refinements },
    { "links", test_links },
    { "modes", test_modes },
    { "masks", test_masks },
    { "shares", test_shares },
    { "products", test_products },
    { "members", test_members },
    { "zeros", test_zeros },
    { "values", test_values },
    { "full", test_full },
};

const suite the_suite = { "holding", rows, DT_COUNT(rows) };
