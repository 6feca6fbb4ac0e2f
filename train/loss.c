/* SPDX-License-Identifier: Apache-2.0
 *
 * A loss over tokens that counts those of the whole batch: a sum over a count, which may be that of several
 * micro-batches. Ops, and nothing else. */
#include <dtensor/train.h>

#include "ops/losses.h"
#include "tensor/tensor.h"

dt_tensor *dt_token_count(dt_tensor *targets)
{
    if (!dti_tensor_ok(targets)) return NULL;
    dt_context *ctx = targets->ctx;
    if (dt_spec_dtype(targets->spec) <= DT_F16)
        return dti_fail(ctx, DT_ERR_DTYPE, "dt_token_count: expected integers, got %s",
                        dt_spec_text(targets->spec)), NULL;
    int scope = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *valid = dt_cast(dt_ge(targets, dt_fill(targets, 0)), DT_F32);
    return dt_scope_pop(ctx, scope, dt_redistribute(dt_sum(valid, DT_ALL, false), ""));
}

/* A count of none as 1: the sum is 0 then. */
static dt_tensor *divisor(dt_tensor *count, dt_dtype dtype)
{
    dt_tensor *none = dt_eq(count, dt_fill(count, 0));
    return dt_cast(dt_masked_fill(count, none, 1), dtype);
}

static dt_tensor *loss_over(dt_tensor *logits, dt_tensor *targets, dt_tensor *count)
{
    dt_tensor *sum = dti_cross_entropy_wide(logits, targets,
                                            &(dt_cross_entropy_params){ .reduction = DT_REDUCTION_SUM });
    if (sum && !count) count = dt_token_count(targets);
    return sum && count ? dt_div(sum, divisor(count, dt_spec_dtype(sum->spec))) : NULL;
}

dt_tensor *dt_token_loss(dt_tensor *logits, dt_tensor *targets, dt_tensor *count)
{
    dt_context *ctx = logits ? logits->ctx : targets ? targets->ctx : count ? count->ctx : NULL;
    if (dti_failed(ctx)) return NULL;
    if (!logits || !targets)
        return dti_fail(ctx, DT_ERR_ARG, "dt_token_loss: expected logits and targets, got no %s",
                        logits ? "targets" : "logits"), NULL;
    if (count && (count->spec->shape.n || dt_spec_dtype(count->spec) > DT_F16))
        return dti_fail(ctx, DT_ERR_SHAPE, "dt_token_loss: expected a count that is a float scalar, got %s",
                        dt_spec_text(count->spec)), NULL;
    int scope = dt_scope_push(ctx, 0);
    return dt_scope_pop(ctx, scope, loss_over(logits, targets, count));
}
