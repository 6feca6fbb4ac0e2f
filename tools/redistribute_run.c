/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt redistribute --run`: the plan carried out on thread ranks, on numbers that tell elements apart, and its result
 * held against the same numbers placed directly. */
#include "redistribute_run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "redistribute/execute.h"
#include "tensor/tensor.h"

enum { MAX_THREADS = 256, ROUNDS = 5 };

typedef struct numbers { dt_shape shape; dt_dtype dtype; int64_t factor, modulus; } numbers;

/* Whole numbers that every dtype holds exactly, also added up over all contributions. */
static int64_t largest_exact(dt_dtype dtype)
{
    static const int64_t largest[DT_DTYPE_COUNT] = {
        [DT_F64] = 1 << 20, [DT_F32] = 1 << 20, [DT_BF16] = 256, [DT_F16] = 2048, [DT_I64] = 1 << 20,
        [DT_I32] = 1 << 20, [DT_U8] = 255, [DT_BOOL] = 1,
    };
    return largest[dtype];
}

/* How many equal numbers a P(sum) adds up. */
static int64_t summands(const dt_spec *spec)
{
    int64_t count = 1;
    for (int i = 0; i < spec->layout->partial_count; i++)
        if (spec->layout->kinds[i] == DTI_SUM) count *= spec->layout->partials[i].size;
    return count;
}

static int64_t contributors(const dti_layout *layout)
{
    int64_t count = 1;
    for (int i = 0; i < layout->partial_count; i++) count *= layout->partials[i].size;
    return count;
}

/* So many different numbers that they, sums of them, and what averages are made of, are exact in both dtypes; a product
 * stays 0 or 1. */
static int64_t modulus_of(const dt_spec *source, const dt_spec *target)
{
    const dti_layout *layout = source->layout;
    int64_t a = largest_exact(dt_spec_dtype(source)), b = largest_exact(dt_spec_dtype(target));
    int64_t most = (a < b ? a : b) / contributors(layout) / contributors(target->layout);
    return layout->partial_count && layout->kinds[0] == DTI_PROD ? 2 : most + 1;
}

static void fill(const dt_box *box, void *values, void *arg)
{
    const numbers *n = arg;
    int64_t index[DT_MAX_DIMS], count = 1;
    for (int d = 0; d < box->n; d++) index[d] = box->lo[d], count *= box->hi[d] - box->lo[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t global = 0;
        for (int d = 0; d < box->n; d++) global = global * n->shape.dim[d] + index[d];
        dti_number_set(n->dtype, (double)(global % n->modulus * n->factor),
                       (char *)values + i * (int64_t)dt_dtype_bytes(n->dtype));
        for (int d = box->n - 1; d >= 0 && ++index[d] == box->hi[d]; d--) index[d] = box->lo[d];
    }
}

/* Every contributor has the same number: a sum is it times their count, and every other kind of P is it. */
static dt_tensor *make_source(const dt_spec *spec, numbers n)
{
    n.factor = 1;
    n.dtype = dt_spec_dtype(spec);
    const dt_spec *whole = dti_spec_summed(spec);
    dt_tensor *x = whole ? dt_from_fn(whole, fill, &n) : NULL;
    if (!x || whole == spec) return x;
    return dti_tensor_new(spec, x->storage ? dti_storage_retain(x->storage) : NULL);
}

static dt_tensor *carry_out(const dt_plan *plan, dt_tensor *x, double *seconds)
{
    bool takes_part = plan->source->mesh->rank >= 0 || plan->target->mesh->rank >= 0;
    dti_storage *part = NULL;
    *seconds = 1e9;
    for (int i = 0; i < ROUNDS && takes_part && !dti_failed(x->ctx); i++) {
        dti_storage_release(part);
        double begin = dt_context_time(x->ctx);
        dti_running *running = dti_plan_start(plan, &x->storage, 0);
        part = running ? dti_plan_finish(running) : NULL;
        double took = dt_context_time(x->ctx) - begin;
        if (took < *seconds) *seconds = took;
    }
    return dti_failed(x->ctx) ? NULL : dti_tensor_new(plan->target, plan->target->mesh->rank >= 0 ? part : NULL);
}

typedef struct trial {
    ends_fn make;
    const void *arg;
    dt_plan_goal goal;
    run_result *result;
} trial;

static dt_status run_rank(dt_context *ctx, void *arg)
{
    const trial *t = arg;
    const dt_spec *source, *target;
    if (!t->make(ctx, t->arg, &source, &target)) return dt_context_status(ctx);
    const dt_plan *plan = dt_plan_create(source, target, t->goal);
    if (!plan) return dt_context_status(ctx);
    numbers n = { dt_spec_shape(source), dt_spec_dtype(target), summands(source), modulus_of(source, target) };
    dt_tensor *x = make_source(source, n);
    double seconds = 0;
    dt_tensor *y = x ? carry_out(plan, x, &seconds) : NULL;
    const dt_spec *due = y ? dti_spec_summed(target) : NULL;
    dt_tensor *want = due ? dt_from_fn(due, fill, &n) : NULL;
    bool verified = want && dt_tensor_close(want, y, 0, 0);
    if (dt_rank(ctx) == 0) *t->result = (run_result){ verified, seconds * 1e6 };
    return dt_context_status(ctx);
}

bool redistribute_on_threads(int ranks, ends_fn make, const void *arg, dt_plan_goal goal, run_result *result,
                             char *error, size_t n_bytes)
{
    if (ranks > MAX_THREADS) {
        snprintf(error, n_bytes, "--run: %d ranks, expected at most %d threads", ranks, MAX_THREADS);
        return false;
    }
    trial t = { make, arg, goal, result };
    *result = (run_result){ false, 0 };
    return dt_launch_threads(ranks, run_rank, &t, error, n_bytes) == DT_OK;
}
