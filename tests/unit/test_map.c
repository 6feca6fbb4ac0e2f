/* SPDX-License-Identifier: Apache-2.0
 *
 * Pulls through index maps: what slice, pad, cat, roll, flip and stack along sharded dims move. */
#include <stdio.h>
#include <string.h>

#include "redistribute/map.h"
#include "suite.h"

static dt_context *ctx;
static dt_mesh *mesh;

static void begin(int ranks, const char *text)
{
    ctx = dt_context_dry(ranks);
    mesh = dt_mesh_create(ctx, text);
}

static void end(void) { dt_context_destroy(&ctx); }

static const dt_spec *spec(const char *text) { return dt_spec_parse(mesh, text); }

/* Bytes of f32 as elements. */
static int64_t elements(const dt_plan *plan) { return dt_plan_price(plan).total / 4; }

static const dt_plan *planned(const char *target, const dti_part *parts, int n)
{
    const dt_plan *plan = dti_plan_mapped(spec(target), parts, n);
    if (expect(plan != NULL, "%s: %s", target, dt_context_error(ctx)))
        expect(dt_plan_check(plan) == DT_OK, "%s", dt_context_error(ctx));
    return plan;
}

static void slice_moves_what_crosses_a_border(void)
{
    begin(4, "x=4");
    dti_part part = { spec("f32[13]@x:S(0)"), { { .lo = 0, .hi = 7, .shift = 2 } } };
    const dt_plan *plan = planned("f32[7]@x:S(0)", &part, 1);
    expect(elements(plan) == 2, "x[2:9] moves %lld elements, want 2", (long long)elements(plan));
    expect(dt_plan_received(plan, 0) == 0 && dt_plan_received(plan, 1) == 0, "ranks 0 and 1 have theirs");
    expect(dt_plan_received(plan, 2) == 4 && dt_plan_sent(plan, 1) == 4, "rank 2 gets 6 from rank 1");
    end();
}

static void select_of_one_index_reaches_all(void)
{
    begin(4, "x=4");
    dti_part part = { spec("f32[13,8]@x:S(0)"), { { .lo = 0, .hi = 1, .shift = 5 }, { .lo = 0, .hi = 8 } } };
    const dt_plan *plan = planned("f32[1,8]", &part, 1);
    expect(elements(plan) == 3 * 8, "all but the holder receive the row: %lld", (long long)elements(plan));
    end();
}

static void pad_leaves_the_rest_to_the_caller(void)
{
    begin(3, "x=3");
    dti_part part = { spec("f32[6]@x:S(0)"), { { .lo = 3, .hi = 9, .shift = -3 } } };
    const dt_plan *plan = planned("f32[12]@x:S(0)", &part, 1); /* 4,4,4: 3 | 4..7 | 8; sources 0,1 | 2,3 | 4,5    */
    expect(elements(plan) == 2, "%lld elements move, want 2: 1 and 4 to rank 1", (long long)elements(plan));
    end();
}

static void cat_of_two(void)
{
    begin(4, "x=2,y=2");
    dti_part parts[] = {
        { spec("f32[5,6]@x:S(0),y:S(1)"), { { .lo = 0, .hi = 5 }, { .lo = 0, .hi = 6 } } },
        { spec("f32[4,6]@y:S(0)"), { { .lo = 5, .hi = 9, .shift = -5 }, { .lo = 0, .hi = 6 } } },
    };
    planned("f32[9,6]@x:S(0),y:S(1)", parts, 2);
    planned("f32[9,6]", parts, 2);
    planned("f32[9,6]@y:S(0),x:S(0)", parts, 2);
    end();
}

static void roll_and_flip(void)
{
    begin(4, "x=4");
    const dt_spec *x = spec("f32[12]@x:S(0)");
    dti_part roll[] = { { x, { { .lo = 3, .hi = 12, .shift = -3 } } }, { x, { { .lo = 0, .hi = 3, .shift = 9 } } } };
    expect(elements(planned("f32[12]@x:S(0)", roll, 2)) == 12, "a roll by one piece moves every piece");
    dti_part flip = { x, { { .lo = 0, .hi = 12, .shift = 11, .reversed = true } } };
    const dt_plan *plan = planned("f32[12]@x:S(0)", &flip, 1);
    expect(elements(plan) == 12 && dt_plan_received(plan, 0) == 12 && dt_plan_sent(plan, 3) == 12,
           "a flip swaps the first and the last piece");
    dti_part still = { spec("f32[12]"), { { .lo = 0, .hi = 12, .shift = 11, .reversed = true } } };
    expect(elements(planned("f32[12]@x:S(0)", &still, 1)) == 0, "what all ranks have need not move");
    end();
}

static void partial_sources_stay_partial(void)
{
    begin(6, "x=3,y=2");
    dti_part part = { spec("f32[9]@x:S(0),y:P(sum)"), { { .lo = 0, .hi = 5, .shift = 1 } } };
    planned("f32[5]@x:S(0),y:P(sum)", &part, 1);
    expect(!dti_plan_mapped(spec("f32[5]@x:S(0)"), &part, 1) && dt_context_status(ctx) == DT_ERR_PLACEMENT,
           "P that would have to be summed is refused");
    end();
}

static void product_dims(void)
{
    begin(6, "x=3,y=2");
    dti_part part = { spec("f32[(4 7),3]@x:S(0.1),y:S(0.0)"),
                      { { .lo = 0, .hi = 20, .shift = 5 }, { .lo = 0, .hi = 3 } } };
    planned("f32[20,3]@x:S(0)", &part, 1);
    planned("f32[(4 5),3]@x:S(0.1)", &part, 1);
    end();
}

/* A slice [lo, hi) by a stride, reversed or not: right, and no byte too many. */
static void one_slice(const char *source, const char *placements, int64_t lo, int64_t hi, int64_t stride, int ranks)
{
    char target[64];
    bool reversed = (lo + hi) % 2;
    int64_t n = (hi - lo + stride - 1) / stride, sent = 0;
    snprintf(target, sizeof target, "f32[%d,4]@%s", (int)n, placements);
    dti_part part = { spec(source), { { .lo = 0, .hi = n, .shift = reversed ? hi - 1 : lo, .reversed = reversed,
                                        .stride = stride }, { .lo = 0, .hi = 4 } } };
    const dt_plan *plan = planned(target, &part, 1);
    dt_plan_cost cost = dt_plan_price(plan);
    expect(cost.bytes == cost.lower_bound, "%s[%d:%d:%d] to %s", source, (int)lo, (int)hi, (int)stride, target);
    for (int r = 0; r < ranks; r++) sent += dt_plan_sent(plan, r);
    expect(sent == cost.total, "sent %lld, received %lld", (long long)sent, (long long)cost.total);
}

/* Every slice of every placement to every placement. */
static void all_slices(int ranks, const char *dims, int64_t n, const char *const *placements, int count)
{
    begin(ranks, dims);
    for (int s = 0; s < count; s++)
        for (int t = 0; t < count; t++)
            for (int64_t lo = 0; lo < n; lo += 2)
                for (int64_t hi = lo; hi <= n; hi += 3)
                    for (int64_t stride = 1; stride <= 3; stride++) {
                        char source[64];
                        snprintf(source, sizeof source, "f32[%d,4]@%s", (int)n, placements[s]);
                        one_slice(source, placements[t], lo, hi, stride, ranks);
                    }
    end();
}

static void slices_on_one_dim(void)
{
    static const char *const placements[] = { "", "x:S(0)", "x:S(1)" };
    all_slices(3, "x=3", 13, placements, 3);
    all_slices(4, "x=4", 9, placements, 3);
}

static void slices_on_two_dims(void)
{
    static const char *const placements[] = {
        "", "x:S(0)", "y:S(0)", "x:S(0),y:S(0)", "y:S(0),x:S(0)", "x:S(0),y:S(1)",
    };
    all_slices(6, "x=2,y=3", 7, placements, 6);
}

typedef struct bad { const char *source, *target; dti_map map; dt_status status; } bad;

static void refusals(void)
{
    static const bad rows[] = {
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 5 }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 4, .shift = 5 }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 4, .shift = -1 }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 4, .shift = 2, .reversed = true }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 4, .shift = 0, .stride = 3 }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 0, .hi = 4, .stride = -1 }, DT_ERR_SHAPE },
        { "f32[8]@x:S(0)", "f32[4]", { .lo = 3, .hi = 2 }, DT_ERR_SHAPE },
        { "f32[8,1]", "f32[4]", { .lo = 0, .hi = 4 }, DT_ERR_SHAPE },
        { "bf16[8]", "f32[4]", { .lo = 0, .hi = 4 }, DT_ERR_DTYPE },
    };
    begin(2, "x=2");
    for (int i = 0; i < DT_COUNT(rows); i++) {
        dti_part part = { spec(rows[i].source), { rows[i].map } };
        expect(!dti_plan_mapped(spec(rows[i].target), &part, 1), "row %d is refused", i);
        expect(dt_context_status(ctx) == rows[i].status, "row %d: %s", i, dt_context_error(ctx));
        dt_context_clear(ctx);
    }
    dti_part twice[] = { { spec("f32[8]"), { { .lo = 0, .hi = 4 } } }, { spec("f32[8]"), { { .lo = 3, .hi = 6 } } } };
    expect(!dti_plan_mapped(spec("f32[8]"), twice, 2) && dt_context_status(ctx) == DT_ERR_SHAPE, "overlapping parts");
    end();
}

static const test_row rows[] = {
    { "slice_moves_what_crosses_a_border", slice_moves_what_crosses_a_border },
    { "select_of_one_index_reaches_all", select_of_one_index_reaches_all },
    { "pad_leaves_the_rest_to_the_caller", pad_leaves_the_rest_to_the_caller },
    { "cat_of_two", cat_of_two },
    { "roll_and_flip", roll_and_flip },
    { "partial_sources_stay_partial", partial_sources_stay_partial },
    { "product_dims", product_dims },
    { "slices_on_one_dim", slices_on_one_dim },
    { "slices_on_two_dims", slices_on_two_dims },
    { "refusals", refusals },
};

const suite the_suite = { "map", rows, DT_COUNT(rows) };
