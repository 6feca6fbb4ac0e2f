/* SPDX-License-Identifier: Apache-2.0
 *
 * Every pattern says who shows what and who takes what, and, apart from that, what the result is: element by element,
 * from the values that ranks show. Patterns run on groups of every kind, in worlds of 1 to 8 ranks.
 * Invariant: a value depends on the rank and the index only, and sums of values are exact in every dtype. */
#include "comm/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "suite.h"

enum { MAX_RANKS = 8, MAX_GETS = 3 * MAX_RANKS, PERIOD = 55 };

static const int worlds[] = { 1, 2, 3, 4, 6, 8 };

/* One exchange of a group, as a member sees it; len: elements of a piece. */
typedef struct setting {
    dti_group *group;
    int64_t len;
    dt_dtype dtype, target_dtype;
    dti_combine combine;
    int64_t multiply, divide;      /* as in an exchange                                                            */
} setting;

/* Elements of one dtype; summed, where they are combined. */
static setting moved(dti_group *group, int64_t len, dt_dtype dtype)
{
    return (setting){ .group = group, .len = len, .dtype = dtype, .target_dtype = dtype };
}

typedef struct pattern {
    const char *name;
    bool combines, in_place;       /* in place: the target is in the source                                        */
    bool to_all;                   /* the backend's all-reduce: each member combines a share for all               */
    int64_t (*source_n)(const setting *s); /* elements; 0: shows nothing                                           */
    int64_t (*target_n)(const setting *s);
    int (*gets)(const setting *s, dti_copy *gets);
    double (*result)(const setting *s, int64_t i);
    int64_t (*target_at)(const setting *s); /* in place: where the target begins in the source                     */
} pattern;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double value_of(const setting *s, int rank, int64_t i)
{
    int64_t mixed = 7 * rank + 13 * i + i / 5;
    if (s->dtype == DT_BOOL) return (double)(mixed % 2);
    if (s->combine == DTI_COMBINE_PROD) return mixed % 5 == 0 ? 2 : 1;
    return (double)(s->dtype == DT_U8 ? mixed % 11 : mixed % 11 - 5);
}

static double of_member(const setting *s, int member, int64_t i) { return value_of(s, s->group->ranks[member], i); }

static double combined(const setting *s, int64_t i)
{
    double sum = of_member(s, 0, i);
    for (int m = 1; m < s->group->n; m++) {
        double v = of_member(s, m, i);
        switch (s->combine) {
        case DTI_COMBINE_SUM: sum += v; break;
        case DTI_COMBINE_PROD: sum *= v; break;
        case DTI_COMBINE_MAX: sum = v > sum ? v : sum; break;
        default: sum = v < sum ? v : sum; break;
        }
    }
    return sum;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static int64_t one_piece(const setting *s) { return s->len; }

static int64_t all_pieces(const setting *s) { return s->group->n * s->len; }

static int64_t at_own_piece(const setting *s) { return s->group->index * s->len; }

static int64_t at_begin(const setting *s) { return (void)s, 0; }

static int all_gather_gets(const setting *s, dti_copy *gets)
{
    for (int m = 0; m < s->group->n; m++) gets[m] = (dti_copy){ .member = m, .run = s->len, .to = m * s->len };
    return s->group->n;
}

static double all_gather_result(const setting *s, int64_t i) { return of_member(s, (int)(i / s->len), i % s->len); }

static int all_gather_in_place_gets(const setting *s, dti_copy *gets)
{
    int n = 0;
    for (int m = 0; m < s->group->n; m++)
        if (m != s->group->index)
            gets[n++] = (dti_copy){ .member = m, .run = s->len, .from = m * s->len, .to = m * s->len };
    return n;
}

static double all_gather_in_place_result(const setting *s, int64_t i) { return of_member(s, (int)(i / s->len), i); }

static int all_to_all_gets(const setting *s, dti_copy *gets)
{
    int64_t own = s->group->index * s->len;
    for (int m = 0; m < s->group->n; m++)
        gets[m] = (dti_copy){ .member = m, .run = s->len, .from = own, .to = m * s->len };
    return s->group->n;
}

static double all_to_all_result(const setting *s, int64_t i)
{
    return of_member(s, (int)(i / s->len), s->group->index * s->len + i % s->len);
}

static int permute_from(const setting *s) { return (s->group->index + 1) % s->group->n; }

static int permute_gets(const setting *s, dti_copy *gets)
{
    gets[0] = (dti_copy){ .member = permute_from(s), .run = s->len };
    return 1;
}

static double permute_result(const setting *s, int64_t i) { return of_member(s, permute_from(s), i); }

static int root_of(const setting *s) { return s->group->n / 2; }

static int64_t broadcast_source(const setting *s) { return s->group->index == root_of(s) ? s->len : 0; }

static int64_t broadcast_target(const setting *s) { return s->group->index == root_of(s) ? 0 : s->len; }

static int broadcast_gets(const setting *s, dti_copy *gets)
{
    gets[0] = (dti_copy){ .member = root_of(s), .run = s->len };
    return s->group->index != root_of(s);
}

static double broadcast_result(const setting *s, int64_t i) { return of_member(s, root_of(s), i); }

static int all_reduce_gets(const setting *s, dti_copy *gets)
{
    for (int m = 0; m < s->group->n; m++) gets[m] = (dti_copy){ .member = m, .contribution = m, .run = s->len };
    return s->group->n;
}

/* Odd contributions come in two parts, the second one first: not to the same places. */
static int cut_reduce_gets(const setting *s, dti_copy *gets)
{
    int n = 0;
    int64_t half = s->len / 2;
    for (int m = 0; m < s->group->n; m++) {
        if (m % 2) gets[n++] = (dti_copy){ .member = m, .contribution = m, .run = s->len - half, .from = half,
                                           .to = half };
        gets[n++] = (dti_copy){ .member = m, .contribution = m, .run = m % 2 ? half : s->len };
    }
    return n;
}

static int reduce_scatter_gets(const setting *s, dti_copy *gets)
{
    int64_t own = s->group->index * s->len;
    for (int m = 0; m < s->group->n; m++)
        gets[m] = (dti_copy){ .member = m, .contribution = m, .run = s->len, .from = own };
    return s->group->n;
}

static double reduce_scatter_result(const setting *s, int64_t i) { return combined(s, s->group->index * s->len + i); }

/* Uneven shares; of a short piece some have nothing. */
static int64_t share_begin(const setting *s, int member)
{
    int n = s->group->n;
    return s->len * member * (member + 1) / (n * (n + 1));
}

static int shared_gets(const setting *s, dti_copy *gets)
{
    int64_t lo = share_begin(s, s->group->index), hi = share_begin(s, s->group->index + 1);
    for (int m = 0; m < s->group->n; m++)
        gets[m] = (dti_copy){ .member = m, .contribution = m, .run = hi - lo, .from = lo, .to = lo };
    return s->group->n;
}

/* The same share, every other element before those between; odd contributions the other way round. */
static int split_gets(const setting *s, dti_copy *gets)
{
    int64_t lo = share_begin(s, s->group->index), n = share_begin(s, s->group->index + 1) - lo;
    for (int m = 0; m < s->group->n; m++)
        for (int half = 0; half < 2; half++) {
            int64_t first = lo + (m % 2 ? 1 - half : half), count = (n + 1 - (first - lo)) / 2;
            gets[2 * m + half] = (dti_copy){ .member = m, .contribution = m, .dims = 1, .run = 1, .from = first,
                                             .to = first, .count = { count }, .from_stride = { 2 },
                                             .to_stride = { 2 } };
        }
    return 2 * s->group->n;
}

/* Column `index` of a [len, n] matrix of every member becomes column m of the own one. */
static int columns_gets(const setting *s, dti_copy *gets)
{
    int n = s->group->n;
    for (int m = 0; m < n; m++)
        gets[m] = (dti_copy){ .member = m, .dims = 1, .run = 1, .from = s->group->index, .to = m, .count = { s->len },
                              .from_stride = { n }, .to_stride = { n } };
    return n;
}

static double columns_result(const setting *s, int64_t i)
{
    int n = s->group->n;
    return of_member(s, (int)(i % n), i / n * n + s->group->index);
}

/* The same, combined, in the order from the last to the first. */
static int columns_reduce_gets(const setting *s, dti_copy *gets)
{
    int n = s->group->n;
    int64_t last = s->len > 0 ? s->len - 1 : 0;
    for (int m = 0; m < n; m++)
        gets[m] = (dti_copy){ .member = m, .contribution = m, .dims = 1, .run = 1, .from = s->group->index, .to = last,
                              .count = { s->len }, .from_stride = { n }, .to_stride = { -1 } };
    return n;
}

static double columns_reduce_result(const setting *s, int64_t i)
{
    return combined(s, (s->len - 1 - i) * s->group->n + s->group->index);
}

/* Of the next member's [4, 6, len]: rows 1 to 2, columns 2 to 4, turned: [3, 2, len]. */
enum { ROWS = 4, COLUMNS = 6, FIRST_ROW = 1, TAKEN_ROWS = 2, FIRST_COLUMN = 2, TAKEN_COLUMNS = 3 };

static int64_t box_source(const setting *s) { return ROWS * COLUMNS * s->len; }

static int64_t box_target(const setting *s) { return TAKEN_ROWS * TAKEN_COLUMNS * s->len; }

static int box_gets(const setting *s, dti_copy *gets)
{
    gets[0] = (dti_copy){ .member = permute_from(s), .dims = 2, .run = s->len,
                          .from = (FIRST_ROW * COLUMNS + FIRST_COLUMN) * s->len,
                          .count = { TAKEN_ROWS, TAKEN_COLUMNS }, .from_stride = { COLUMNS * s->len, s->len },
                          .to_stride = { s->len, TAKEN_ROWS * s->len } };
    return 1;
}

static double box_result(const setting *s, int64_t i)
{
    int64_t column = i / (TAKEN_ROWS * s->len) + FIRST_COLUMN, row = i / s->len % TAKEN_ROWS + FIRST_ROW;
    return of_member(s, permute_from(s), (row * COLUMNS + column) * s->len + i % s->len);
}

enum { ALL_GATHER, ALL_TO_ALL, PERMUTE, BROADCAST, BOX, COLUMNS_MOVED, ALL_REDUCE, REDUCE_SCATTER, CUT_REDUCE,
       COLUMNS_REDUCED, SHARED, SPLIT, ALL_GATHER_IN_PLACE, REDUCE_SCATTER_IN_PLACE, SHARED_IN_PLACE, PATTERN_COUNT };

static const pattern patterns[PATTERN_COUNT] = {
    [ALL_GATHER] = { "all_gather", .source_n = one_piece, .target_n = all_pieces, .gets = all_gather_gets,
                     .result = all_gather_result },
    [ALL_TO_ALL] = { "all_to_all", .source_n = all_pieces, .target_n = all_pieces, .gets = all_to_all_gets,
                     .result = all_to_all_result },
    [PERMUTE] = { "permute", .source_n = one_piece, .target_n = one_piece, .gets = permute_gets,
                  .result = permute_result },
    [BROADCAST] = { "broadcast", .source_n = broadcast_source, .target_n = broadcast_target, .gets = broadcast_gets,
                    .result = broadcast_result },
    [BOX] = { "box", .source_n = box_source, .target_n = box_target, .gets = box_gets, .result = box_result },
    [COLUMNS_MOVED] = { "columns", .source_n = all_pieces, .target_n = all_pieces, .gets = columns_gets,
                        .result = columns_result },
    [ALL_REDUCE] = { "all_reduce", .combines = true, .source_n = one_piece, .target_n = one_piece,
                     .gets = all_reduce_gets, .result = combined },
    [REDUCE_SCATTER] = { "reduce_scatter", .combines = true, .source_n = all_pieces, .target_n = one_piece,
                         .gets = reduce_scatter_gets, .result = reduce_scatter_result },
    [CUT_REDUCE] = { "cut reduce", .combines = true, .source_n = one_piece, .target_n = one_piece,
                     .gets = cut_reduce_gets, .result = combined },
    [COLUMNS_REDUCED] = { "columns reduced", .combines = true, .source_n = all_pieces, .target_n = one_piece,
                          .gets = columns_reduce_gets, .result = columns_reduce_result },
    [SHARED] = { "shared all_reduce", .combines = true, .to_all = true, .source_n = one_piece, .target_n = one_piece,
                 .gets = shared_gets, .result = combined },
    [SPLIT] = { "split all_reduce", .combines = true, .to_all = true, .source_n = one_piece, .target_n = one_piece,
                .gets = split_gets, .result = combined },
    [ALL_GATHER_IN_PLACE] = { "all_gather in place", .in_place = true, .source_n = all_pieces, .target_n = all_pieces,
                              .gets = all_gather_in_place_gets, .result = all_gather_in_place_result,
                              .target_at = at_begin },
    [REDUCE_SCATTER_IN_PLACE] = { "reduce_scatter in place", .combines = true, .in_place = true,
                                  .source_n = all_pieces, .target_n = one_piece, .gets = reduce_scatter_gets,
                                  .result = reduce_scatter_result, .target_at = at_own_piece },
    [SHARED_IN_PLACE] = { "shared all_reduce in place", .combines = true, .in_place = true, .to_all = true,
                          .source_n = one_piece, .target_n = one_piece, .gets = shared_gets, .result = combined,
                          .target_at = at_begin },
};

/* ---- one exchange ------------------------------------------------------------------------------------------------ */

typedef struct trial {
    const pattern *p;
    setting s;
    dti_copy gets[MAX_GETS];
    dti_storage *source, *target;  /* target NULL: nothing, or in place                                            */
    char *out;
} trial;

/* Of many elements some are looked at, of every remainder. */
static int64_t step_of(int64_t n) { return n > 100000 ? 97 : n > 500 ? 7 : 1; }

static char *at(void *bytes, int64_t i, dt_dtype dtype) { return (char *)bytes + i * (int64_t)dt_dtype_bytes(dtype); }

/* Values that are summed repeat themselves. */
static int64_t period_of(const setting *s, int64_t n)
{
    return s->combine == DTI_COMBINE_SUM && s->dtype != DT_BOOL && n > PERIOD ? PERIOD : n;
}

static dti_storage *fill_source(const setting *s, int64_t n)
{
    int rank = s->group->ranks[s->group->index];
    dti_storage *source = n ? dti_storage_new(s->group->comm->ctx, (size_t)n * dt_dtype_bytes(s->dtype)) : NULL;
    int64_t done = period_of(s, n);
    for (int64_t i = 0; i < done && source; i++)
        dti_number_set(s->dtype, value_of(s, rank, i), at(source->bytes, i, s->dtype));
    for (int64_t more; done < n && source; done += more) {
        more = done < n - done ? done : n - done;
        memcpy(at(source->bytes, done, s->dtype), source->bytes, (size_t)more * dt_dtype_bytes(s->dtype));
    }
    return source;
}

/* A backend without an all-reduce is asked for the exchange that has the same result. */
static const pattern *known_to(const dti_group *group, const pattern *p)
{
    return p->to_all && !group->comm->ops->all_reduce ? &patterns[ALL_REDUCE] : p;
}

static dti_exchange exchange_of(trial *t, const pattern *p, const setting *s)
{
    p = known_to(s->group, p);
    *t = (trial){ .p = p, .s = *s };
    t->source = fill_source(s, p->source_n(s));
    int64_t n = p->target_n(s);
    if (p->in_place) t->out = t->source ? at(t->source->bytes, p->target_at(s), s->dtype) : NULL;
    else if (n) t->target = dti_storage_new(s->group->comm->ctx, (size_t)n * dt_dtype_bytes(s->target_dtype));
    if (t->target) t->out = memset(t->target->bytes, 0xa5, t->target->n);
    dti_exchange exchange = {
        .call = { 1000 + (uint64_t)(p - patterns), p->name }, .dtype = s->dtype, .source = t->source, .target = t->out,
        .gets = t->gets, .get_count = p->gets(s, t->gets), .contributions = p->combines ? s->group->n : 0,
        .combine = s->combine, .multiply = s->multiply, .divide = s->divide, .target_dtype = s->target_dtype,
    };
    if (!p->to_all) return exchange;
    exchange.target = NULL;
    exchange.result = p->in_place ? t->source : t->target;
    return exchange;
}

static dt_status begin(trial *t, const pattern *p, const setting *s)
{
    const dti_comm_ops *ops = s->group->comm->ops;
    dti_exchange exchange = exchange_of(t, p, s);
    return (t->p->to_all ? ops->all_reduce : ops->start)(s->group, &exchange);
}

/* From the dtype that sums it is scaled and converted, as numbers are. */
static bool same(const setting *s, const char *got, double wanted)
{
    _Alignas(8) char sum[8], number[8];
    dt_dtype dtype = dti_sum_dtype(s->dtype);
    dti_number_set(dtype, wanted, sum);
    if (s->divide) dti_numbers_scale(dtype, sum, 1, s->multiply, s->divide);
    dti_numbers_convert(dtype, sum, s->target_dtype, number, 1);
    double rounded = dti_number_get(s->target_dtype, number), found = dti_number_get(s->target_dtype, got);
    return found <= rounded && found >= rounded;
}

static void end(trial *t)
{
    const setting *s = &t->s;
    int64_t wrong = 0, n = t->out ? t->p->target_n(s) : 0;
    for (int64_t i = n - 1; i >= 0; i -= step_of(n))
        wrong += !same(s, at(t->out, i, s->target_dtype), t->p->result(s, i));
    expect(wrong == 0, "%s of %lld %s to %s, combine %d, group of %d, rank %d: %lld elements of %lld are wrong",
           t->p->name, (long long)s->len, dt_dtype_text(s->dtype), dt_dtype_text(s->target_dtype), (int)s->combine,
           s->group->n, s->group->ranks[s->group->index], (long long)wrong, (long long)n);
    dti_storage_release(t->source);
    dti_storage_release(t->target);
}

static void try_pattern(const pattern *p, const setting *s)
{
    trial t;
    dt_status status = begin(&t, p, s);
    if (!status) status = s->group->comm->ops->finish(s->group);
    if (expect(status == DT_OK, "%s: %s", p->name, dt_context_error(s->group->comm->ctx))) end(&t);
}

/* Several as one call, of different lengths and dtypes. */
static void try_list(dti_group *group, const int *which, int n, bool to_all)
{
    static const int64_t lengths[] = { 7, 0, 300, 1 };
    static const dt_dtype dtypes[] = { DT_F32, DT_I64, DT_BF16 };
    const dti_comm_ops *ops = group->comm->ops;
    trial *trials = calloc((size_t)n, sizeof *trials);
    dti_exchange list[SPLIT + 1] = { { .get_count = 0 } };
    if (!expect(trials != NULL, "memory")) return;
    for (int i = 0; i < n; i++) {
        setting s = moved(group, lengths[i % DT_COUNT(lengths)], dtypes[i % DT_COUNT(dtypes)]);
        list[i] = exchange_of(&trials[i], &patterns[which[i]], &s);
    }
    dt_status status = ops->start_list(group, list, n, to_all);
    if (!status) status = ops->finish(group);
    for (int i = 0; i < n && expect(status == DT_OK, "a list: %s", dt_context_error(group->comm->ctx)); i++)
        end(&trials[i]);
    free(trials);
}

static void try_lists(dti_group *group)
{
    static const int copies[] = { ALL_GATHER, ALL_TO_ALL, PERMUTE, BOX, BROADCAST, REDUCE_SCATTER, ALL_REDUCE };
    static const int sums[] = { SHARED, SPLIT, SHARED };
    const dti_comm_ops *ops = group->comm->ops;
    for (int round = 0; round < 3 && ops->start_list; round++) {
        try_list(group, copies + round, DT_COUNT(copies) - round, false);
        if (ops->all_reduce) try_list(group, sums, DT_COUNT(sums) - round, true);
        try_pattern(&patterns[ALL_GATHER], &(setting){ .group = group, .len = 5, .dtype = DT_F32,
                                                       .target_dtype = DT_F32 });
    }
}

/* What was shown is written again as soon as nobody reads it. */
static void try_withdrawn(dti_group *group)
{
    const dti_comm_ops *ops = group->comm->ops;
    for (int i = 0; i < 50 && ops->withdraw; i++) {
        trial t;
        setting s = moved(group, 400, DT_F32);
        dt_status status = begin(&t, &patterns[i % 2 ? ALL_GATHER : REDUCE_SCATTER], &s);
        if (!status) status = ops->finish(group);
        if (!status) status = ops->withdraw(group->comm, t.source);
        memset(t.source->bytes, 0x5a, t.source->n);
        if (expect(status == DT_OK, "withdraw: %s", dt_context_error(group->comm->ctx))) end(&t);
    }
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool in_all(int rank, int n) { return (void)rank, (void)n, true; }

static bool in_even(int rank, int n) { return (void)n, rank % 2 == 0; }

static bool in_odd(int rank, int n) { return (void)n, rank % 2 == 1; }

static bool in_ends(int rank, int n) { return rank == 0 || rank == n - 1; }

static bool in_last_two(int rank, int n) { return rank >= n - 2; }

static bool in_first_three(int rank, int n) { return (void)n, rank < 3; }

static bool in_middle(int rank, int n) { return rank == n / 2; }

static bool (*const parts[])(int rank, int n) = { in_all, in_even, in_odd, in_ends, in_last_two, in_first_three,
                                                  in_middle };

/* The group of a part of the world; NULL where this rank is outside, or the context has no backend. */
static dti_group *group_of(dt_context *ctx, int part)
{
    int ranks[MAX_RANKS], n = 0, world = dt_rank_count(ctx);
    dti_comm *comm = dti_comm_of(ctx);
    for (int rank = 0; rank < world; rank++)
        if (parts[part](rank, world)) ranks[n++] = rank;
    return comm && parts[part](dt_rank(ctx), world) ? comm->ops->group(comm, ranks, n) : NULL;
}

typedef void (*body)(dti_group *group);

static dt_status on_all_groups(dt_context *ctx, void *arg)
{
    body const *run = arg;
    for (int part = 0; part < DT_COUNT(parts); part++) {
        dti_group *group = group_of(ctx, part);
        if (group) (*run)(group);
    }
    return dt_context_status(ctx);
}

static dt_status on_whole(dt_context *ctx, void *arg)
{
    body const *run = arg;
    dti_group *group = group_of(ctx, 0);
    if (group) (*run)(group);
    return dt_context_status(ctx);
}

static void launch_all(conformance_launch launch, dt_rank_fn fn, body run, int max_ranks)
{
    char error[256];
    for (int i = 0; i < DT_COUNT(worlds) && worlds[i] <= max_ranks; i++)
        expect(launch(worlds[i], fn, &run, error, sizeof error) == DT_OK, "%d ranks: %s", worlds[i], error);
}

/* ---- the parts --------------------------------------------------------------------------------------------------- */

static void check_group(dti_group *group)
{
    const dti_comm_ops *ops = group->comm->ops;
    int rank = dt_rank(group->comm->ctx);
    expect(group->ranks[group->index] == rank, "member %d is rank %d", group->index, rank);
    for (int i = 1; i < group->n; i++) expect(group->ranks[i] > group->ranks[i - 1], "ranks ascend");
    expect(ops->group(group->comm, group->ranks, group->n) == group, "the same list is the same group");
    expect(ops->barrier(group, (dti_call){ 1, "barrier" }) == DT_OK, "%s", dt_context_error(group->comm->ctx));
}

void conformance_groups(conformance_launch launch) { launch_all(launch, on_all_groups, check_group, MAX_RANKS); }

void conformance_lists(conformance_launch launch) { launch_all(launch, on_all_groups, try_lists, MAX_RANKS); }

void conformance_withdrawn(conformance_launch launch) { launch_all(launch, on_all_groups, try_withdrawn, MAX_RANKS); }

static const int64_t lengths[] = { 0, 1, 3, 1000 };

static void try_moved(int which, dti_group *group, int64_t len, dt_dtype dtype)
{
    setting s = moved(group, len, dtype);
    try_pattern(&patterns[which], &s);
}

static void try_copies(dti_group *group)
{
    for (int p = ALL_GATHER; p <= BROADCAST; p++)
        for (int i = 0; i < DT_COUNT(lengths); i++) try_moved(p, group, lengths[i], DT_F32);
}

void conformance_copies(conformance_launch launch) { launch_all(launch, on_all_groups, try_copies, MAX_RANKS); }

static void try_dtypes(dti_group *group)
{
    for (dt_dtype dtype = DT_F64; dtype < DT_DTYPE_COUNT; dtype++)
        for (int i = 0; i < DT_COUNT(lengths); i++)
            for (int p = ALL_GATHER; p <= COLUMNS_MOVED; p++)
                if (lengths[i] < 1000 || p == ALL_TO_ALL || p == COLUMNS_MOVED) try_moved(p, group, lengths[i], dtype);
}

void conformance_dtypes(conformance_launch launch) { launch_all(launch, on_whole, try_dtypes, MAX_RANKS); }

/* sum, max, min, prod, and the average of the members. */
enum { AVERAGE = DTI_COMBINE_COUNT, WAY_COUNT };

static setting combined_in(dti_group *group, int64_t len, dt_dtype from, dt_dtype to, int way)
{
    return (setting){ .group = group, .len = len, .dtype = from, .target_dtype = to,
                      .combine = way == AVERAGE ? DTI_COMBINE_SUM : (dti_combine)way,
                      .multiply = way == AVERAGE, .divide = way == AVERAGE ? group->n : 0 };
}

/* What travels, and what comes out; what sums follows from what travels. */
static void try_combines_of(dti_group *group, int64_t len, dt_dtype from, dt_dtype to)
{
    static const int which[] = { ALL_REDUCE, REDUCE_SCATTER, CUT_REDUCE, SHARED };
    for (int w = 0; w < DT_COUNT(which); w++)
        for (int way = 0; way < WAY_COUNT; way++) {
            setting s = combined_in(group, len, from, to, way);
            try_pattern(&patterns[which[w]], &s);
        }
}

static void try_combines(dti_group *group)
{
    for (dt_dtype from = DT_F64; from < DT_DTYPE_COUNT; from++)
        for (dt_dtype to = DT_F64; to < DT_DTYPE_COUNT; to++)
            for (int i = 0; i < DT_COUNT(lengths); i++)
                if (from == to || lengths[i] == 3) try_combines_of(group, lengths[i], from, to);
    try_combines_of(group, 1000, DT_BF16, DT_F32);
    try_combines_of(group, 1000, DT_F32, DT_BF16);
    try_combines_of(group, 1000, DT_F16, DT_F32);
}

void conformance_combines(conformance_launch launch) { launch_all(launch, on_whole, try_combines, MAX_RANKS); }

static void try_strides(dti_group *group)
{
    static const int which[] = { BOX, COLUMNS_MOVED, COLUMNS_REDUCED, CUT_REDUCE };
    for (int w = 0; w < DT_COUNT(which); w++)
        for (int i = 0; i < DT_COUNT(lengths); i++) try_moved(which[w], group, lengths[i], DT_F32);
}

void conformance_strides(conformance_launch launch) { launch_all(launch, on_all_groups, try_strides, MAX_RANKS); }

static void try_in_place(dti_group *group)
{
    for (int i = 1; i < DT_COUNT(lengths); i++) {
        try_moved(ALL_GATHER_IN_PLACE, group, lengths[i], DT_F32);
        try_moved(REDUCE_SCATTER_IN_PLACE, group, lengths[i], DT_F32);
        try_moved(REDUCE_SCATTER_IN_PLACE, group, lengths[i], DT_BF16);
    }
}

void conformance_in_place(conformance_launch launch) { launch_all(launch, on_all_groups, try_in_place, MAX_RANKS); }

/* Two members have as much as fits few caches; more of them have less each. */
static void try_large(dti_group *group)
{
    int64_t len = group->n <= 2 ? 1 << 20 : 1 << 15;
    for (int p = ALL_GATHER; p < PATTERN_COUNT; p++)
        if (p != BOX && p != COLUMNS_MOVED && p != COLUMNS_REDUCED) try_moved(p, group, len, DT_F32);
    try_moved(ALL_REDUCE, group, len, DT_BF16);
    try_moved(SHARED, group, (1 << 20) + 3, DT_F32);
    setting narrow = combined_in(group, (1 << 18) + 5, DT_F32, DT_BF16, DTI_COMBINE_SUM);
    try_pattern(&patterns[SHARED], &narrow);
}

void conformance_large(conformance_launch launch) { launch_all(launch, on_whole, try_large, MAX_RANKS); }

/* Many are started, more than a backend has room for, and finished at once; those of two groups among each other. */
static void start_many(dti_group *group, dti_group *other, int n)
{
    trial *trials = calloc((size_t)n, sizeof *trials);
    dt_status status = trials ? DT_OK : DT_ERR_MEMORY;
    for (int i = 0; i < n && !status; i++)
        if (i % 3 == 0 || other) {
            setting s = moved(i % 3 ? other : group, 1 + i * 7, DT_F32);
            status = begin(&trials[i], &patterns[i % (SPLIT + 1)], &s);
        }
    if (!status) status = group->comm->ops->finish(group);
    if (!status && other) status = other->comm->ops->finish(other);
    if (expect(status == DT_OK, "%s", dt_context_error(group->comm->ctx)))
        for (int i = 0; i < n; i++)
            if (trials[i].p) end(&trials[i]);
    free(trials);
}

static void try_in_flight(dti_group *group)
{
    for (int part = 0; part < DT_COUNT(parts); part++)
        for (int n = 1; n <= 60; n += 19) start_many(group, group_of(group->comm->ctx, part), n);
}

void conformance_in_flight(conformance_launch launch) { launch_all(launch, on_whole, try_in_flight, MAX_RANKS); }

static void try_all_reduces(dti_group *group)
{
    static const int which[] = { SHARED, SPLIT, SHARED_IN_PLACE };
    for (int w = 0; w < DT_COUNT(which); w++)
        for (int i = 0; i < DT_COUNT(lengths); i++)
            for (int repeat = 0; repeat < 3; repeat++) try_moved(which[w], group, lengths[i], DT_F32);
}

void conformance_all_reduces(conformance_launch launch)
{
    launch_all(launch, on_all_groups, try_all_reduces, MAX_RANKS);
}

/* Ranks come at different times; a barrier between two exchanges orders what they write. */
static void try_barriers(dti_group *group)
{
    const dti_comm_ops *ops = group->comm->ops;
    for (int i = 0; i < 100; i++) {
        expect(ops->barrier(group, (dti_call){ (uint64_t)i, "barrier" }) == DT_OK, "barrier %d", i);
        if (i % 10 == group->index)
            try_moved(ALL_GATHER, ops->group(group->comm, &group->ranks[group->index], 1), 10, DT_F32);
    }
}

void conformance_barriers(conformance_launch launch) { launch_all(launch, on_all_groups, try_barriers, MAX_RANKS); }

/* What was shown is held until all have taken it, and given back then. */
static void try_releases(dti_group *group)
{
    const dti_comm_ops *ops = group->comm->ops;
    setting s = moved(group, 500, DT_F32);
    int64_t before = dti_storage_now(group->comm->ctx);
    for (int i = 0; i < 40; i++) try_pattern(&patterns[i % (SPLIT + 1)], &s);
    expect(ops->barrier(group, (dti_call){ 5, "barrier" }) == DT_OK, "%s", dt_context_error(group->comm->ctx));
    if (ops->reclaim) ops->reclaim(group->comm);
    expect(dti_storage_now(group->comm->ctx) == before, "%lld bytes are held, %lld were before",
           (long long)dti_storage_now(group->comm->ctx), (long long)before);
}

void conformance_releases(conformance_launch launch) { launch_all(launch, on_whole, try_releases, MAX_RANKS); }

/* ---- calls by name ----------------------------------------------------------------------------------------------- */

static dti_message message_of(const setting *s) { return (dti_message){ { 2000, "a message" }, s->dtype, s->len }; }

/* Room for a piece, filled with something else. */
static dti_storage *empty_target(const setting *s)
{
    dti_storage *target = dti_storage_new(s->group->comm->ctx, (size_t)s->len * dt_dtype_bytes(s->dtype));
    if (target && target->n) memset(target->bytes, 0x5a, target->n);
    return target;
}

/* Is what came the first elements of that member's source? DTI_NOBODY: nothing came, nor may anything change. */
static void check_came(const setting *s, const char *name, int member, dt_status status, const dti_storage *target)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->len && !status && member != DTI_NOBODY; i += step_of(s->len))
        wrong += !same(s, at(target->bytes, i, s->dtype), of_member(s, member, i));
    for (size_t i = 0; i < target->n && !status && member == DTI_NOBODY; i++)
        wrong += ((unsigned char *)target->bytes)[i] != 0x5a;
    expect(!status && wrong == 0, "%s of %lld %s from %d, group of %d, member %d: %lld wrong, %s", name,
           (long long)s->len, dt_dtype_text(s->dtype), member, s->group->n, s->group->index, (long long)wrong,
           dt_context_error(s->group->comm->ctx));
}

/* The root has its result in a place of its own, in its source, or nowhere. */
typedef enum place { PLACE_APART, PLACE_SOURCE, PLACE_NONE, PLACE_COUNT } place;

static void try_broadcast(const setting *s, int root, place where)
{
    dti_message message = message_of(s);
    bool is_root = s->group->index == root;
    dti_storage *source = is_root ? fill_source(s, s->len > 0 ? s->len : 1) : NULL, *target = empty_target(s);
    void *to = !is_root || where == PLACE_APART ? target->bytes : where == PLACE_SOURCE ? source->bytes : NULL;
    dt_status status = dti_comm_broadcast(s->group, &message, root, source, to);
    check_came(s, "broadcast", root, status, is_root && where != PLACE_APART ? source : target);
    dti_storage_release(source);
    dti_storage_release(target);
}

static void try_permute(const setting *s, int to, int from)
{
    dti_message message = message_of(s);
    dti_storage *source = to == DTI_NOBODY ? NULL : fill_source(s, s->len > 0 ? s->len : 1), *target = empty_target(s);
    dt_status status = dti_comm_permute(s->group, &message, to, source, from, target->bytes);
    check_came(s, "permute", from, status, target);
    dti_storage_release(source);
    dti_storage_release(target);
}

static void try_broadcasts(dti_group *group)
{
    for (dt_dtype dtype = DT_F64; dtype < DT_DTYPE_COUNT; dtype++)
        for (int i = 0; i < DT_COUNT(lengths); i++)
            for (int where = 0; where < PLACE_COUNT; where++) {
                setting s = moved(group, lengths[i], dtype);
                try_broadcast(&s, (where + (int)dtype) % group->n, (place)where);
            }
    for (int root = 0; root < group->n; root++) {
        setting large = moved(group, 1 << 17, DT_F32);
        try_broadcast(&large, root, PLACE_NONE);
    }
}

void conformance_broadcasts(conformance_launch launch)
{
    launch_all(launch, on_all_groups, try_broadcasts, MAX_RANKS);
}

/* Every turn of all members, the own place too; then each even one gives to the next, and who is left does nothing. */
static void try_permutes(dti_group *group)
{
    int n = group->n, me = group->index;
    for (dt_dtype dtype = DT_F64; dtype < DT_DTYPE_COUNT; dtype++)
        for (int i = 0; i < DT_COUNT(lengths); i++) {
            setting s = moved(group, lengths[i], dtype);
            for (int turn = dtype == DT_F32 ? 0 : n - 1; turn < n; turn++)
                try_permute(&s, (me + turn) % n, (me + n - turn) % n);
            try_permute(&s, me % 2 == 0 && me + 1 < n ? me + 1 : DTI_NOBODY, me % 2 == 1 ? me - 1 : DTI_NOBODY);
        }
    setting large = moved(group, 1 << 17, DT_F32);
    try_permute(&large, (me + 1) % n, (me + n - 1) % n);
}

void conformance_permutes(conformance_launch launch) { launch_all(launch, on_all_groups, try_permutes, MAX_RANKS); }

/* One way: the first member of a pair to the second. */
static void pass(const setting *s)
{
    dti_message message = message_of(s);
    dt_context *ctx = s->group->comm->ctx;
    bool sends = s->group->index == 0;
    dti_storage *storage = sends ? fill_source(s, s->len > 0 ? s->len : 1) : empty_target(s);
    dt_status status = sends ? dti_comm_send(s->group, &message, 1, storage)
                             : dti_comm_recv(s->group, &message, 0, storage->bytes);
    if (!sends) check_came(s, "recv", 0, status, storage);
    else expect(status == DT_OK, "send: %s", dt_context_error(ctx));
    dti_storage_release(storage);
}

/* Every pair of members on its own group: nobody else has to come. */
static void try_sends(dti_group *group)
{
    for (int a = 0; a < group->n; a++)
        for (int b = a + 1; b < group->n; b++) {
            if (group->index != a && group->index != b) continue;
            int ranks[2] = { group->ranks[a], group->ranks[b] };
            dti_group *pair = group->comm->ops->group(group->comm, ranks, 2);
            for (int i = 0; i < DT_COUNT(lengths); i++) {
                setting s = moved(pair, lengths[i], i % 2 ? DT_BF16 : DT_F32);
                pass(&s);
            }
        }
}

void conformance_sends(conformance_launch launch) { launch_all(launch, on_all_groups, try_sends, MAX_RANKS); }

/* The first member sends a lot before the others take any: all meet in between, so that a sender that waited for its
 * takers would wait for ever. */
static void try_ahead(dti_group *group)
{
    enum { AHEAD = 100 };
    const dti_comm_ops *ops = group->comm->ops;
    setting s = moved(group, 50, DT_F32);
    dti_message message = message_of(&s);
    dti_storage *storage = group->index == 0 ? fill_source(&s, s.len) : empty_target(&s);
    dt_status status = DT_OK;
    for (int i = 0; i < AHEAD && group->index == 0 && !status; i++)
        status = dti_comm_broadcast(group, &message, 0, storage, NULL);
    for (int m = 1; m < group->n && !status; m++)
        if (group->index == 0 || group->index == m)
            status = ops->barrier(ops->group(group->comm, (int[]){ group->ranks[0], group->ranks[m] }, 2),
                                  (dti_call){ 3, "barrier" });
    for (int i = 0; i < AHEAD && group->index > 0 && !status; i++)
        status = dti_comm_broadcast(group, &message, 0, NULL, storage->bytes);
    check_came(&s, "broadcast", 0, status, storage);
    dti_storage_release(storage);
}

/* Only in groups of more than two is the barrier on another group. */
static void try_ahead_of_many(dti_group *group)
{
    if (group->n > 2) try_ahead(group);
}

void conformance_senders_do_not_wait(conformance_launch launch)
{
    launch_all(launch, on_whole, try_ahead_of_many, MAX_RANKS);
}
