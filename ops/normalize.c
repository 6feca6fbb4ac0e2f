/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and norms. Their kernels want what they normalize over whole. */
#include <stdio.h>

#include <dtensor/ops.h>

#include "core/pen.h"
#include "ops/cpu/kernels.h"
#include "ops/decompositions.h"
#include "ops/gradients.h"
#include "ops/tables.h"

/* ---- along a dim ------------------------------------------------------------------------------------------------- */

/* "a b! c -> a b! c" for dim 1 of 3. */
static dt_status derive_along(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n, dt_derived *out)
{
    const dti_along *along = attributes;
    dti_pen pen = { out->rule, sizeof out->rule, 0 };
    (void)ctx;
    (void)n;
    for (int side = 0; side < 2; side++) {
        dti_put(&pen, "%s", side ? "->" : "");
        for (int d = 0; d < shapes[0].n; d++) dti_put(&pen, " %c%s", 'a' + d, d == along->dim ? "!" : "");
        dti_put(&pen, "%s", side ? "" : " ");
    }
    return DT_OK;
}

static const dt_attribute one_dim[] = { { "dim", DT_ATTRIBUTE_DIM, offsetof(dti_along, dim) } };

static const dt_op softmax = {
    .head = "softmax(x)", .polynomial = "none, saves result", .dtypes = "f->f", .derive = derive_along,
    .attributes = one_dim, .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_softmax, .decompose = dti_parts_of_softmax, .gradient = dti_grad_softmax,
    .doc = "exp(x) over its sum along a dim",
};
static const dt_op log_softmax = {
    .head = "log_softmax(x)", .polynomial = "none, saves result", .dtypes = "f->f", .derive = derive_along,
    .attributes = one_dim, .attribute_count = DT_COUNT(one_dim), .attribute_bytes = sizeof(dti_along),
    .kernel = dti_cpu_log_softmax, .decompose = dti_parts_of_log_softmax, .gradient = dti_grad_log_softmax,
    .doc = "log of softmax along a dim",
};

/* ---- over the trailing dims that w has --------------------------------------------------------------------------- */

/* A rule of the trailing letters: "... a! b!, a! b! -> ... a! b! | ..." for two. */
static dt_status write_trailing(dt_context *ctx, const char *op, const dti_norm *norm, const dt_shape *shapes,
                                const char *format, dt_derived *out)
{
    char letters[4 * DT_MAX_DIMS] = "";
    dti_pen pen = { letters, sizeof letters, 0 };
    bool there = shapes[0].n >= 0 && shapes[1].n >= 0; /* else that is what is said                                  */
    int dims = there ? shapes[1].n : 1;
    if (!(norm->eps >= 0))
        return dt_context_fail(ctx, DT_ERR_ARG, "%s: expected an eps of at least 0, got %g", op, norm->eps);
    if (there && (dims < 1 || dims > shapes[0].n))
        return dt_context_fail(ctx, DT_ERR_SHAPE, "%s: expected 1 .. %d dims for w, as x has, got %d", op, shapes[0].n,
                               dims);
    for (int d = 0; d < dims; d++) dti_put(&pen, "%s%c!", d ? " " : "", 'a' + d);
    pen = (dti_pen){ out->rule, sizeof out->rule, 0 };
    for (; *format; format++) dti_put(&pen, *format == '#' ? "%s" : "%.1s", *format == '#' ? letters : format);
    return DT_OK;
}

static dt_status derive_rms_norm(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                 dt_derived *out)
{
    (void)n;
    return write_trailing(ctx, "rms_norm", attributes, shapes, "... #, # -> ... # | ...", out);
}

static dt_status derive_layer_norm(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                   dt_derived *out)
{
    (void)n;
    return write_trailing(ctx, "layer_norm", attributes, shapes, "... #, #, #? -> ... # | ..., ...", out);
}

static const dt_attribute epsilon[] = { { "eps", DT_ATTRIBUTE_NUMBER, offsetof(dti_norm, eps) } };

static const dt_op rms_norm = {
    .head = "rms_norm(x, w)", .polynomial = "none, saves x w", .dtypes = "ff->fs", .derive = derive_rms_norm,
    .attributes = epsilon, .attribute_count = DT_COUNT(epsilon), .attribute_bytes = sizeof(dti_norm),
    .kernel = dti_cpu_rms_norm, .decompose = dti_parts_of_rms_norm, .gradient = dti_grad_rms_norm,
    .doc = "x over the root of its mean square, times w",
};
static const dt_op layer_norm = {
    .head = "layer_norm(x, w, b)", .polynomial = "none, saves x w", .dtypes = "fff->fss", .derive = derive_layer_norm,
    .attributes = epsilon, .attribute_count = DT_COUNT(epsilon), .attribute_bytes = sizeof(dti_norm),
    .kernel = dti_cpu_layer_norm, .decompose = dti_parts_of_layer_norm, .gradient = dti_grad_layer_norm,
    .doc = "x less its mean over its deviation, times w, plus b",
};

const dt_op *const dti_ops_normalize[] = { &softmax, &log_softmax, &rms_norm, &layer_norm, NULL };

/* ---- fronts ------------------------------------------------------------------------------------------------------ */

dt_tensor *dt_softmax(dt_tensor *x, int dim) { return dt_apply(&softmax, &x, 1, &(dti_along){ .dim = dim }); }
dt_tensor *dt_log_softmax(dt_tensor *x, int dim) { return dt_apply(&log_softmax, &x, 1, &(dti_along){ .dim = dim }); }

dt_tensor *dt_rms_norm(dt_tensor *x, dt_tensor *w, double eps)
{
    return dt_apply(&rms_norm, (dt_tensor *[]){ x, w }, 2, &(dti_norm){ eps });
}

dt_tensor *dt_layer_norm(dt_tensor *x, dt_tensor *w, dt_tensor *bias, double eps)
{
    return dt_apply(&layer_norm, (dt_tensor *[]){ x, w, bias }, 3, &(dti_norm){ eps });
}
