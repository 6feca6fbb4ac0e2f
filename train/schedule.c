/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning rates as functions of the step. */
#include <math.h>

#include <dtensor/train.h>

/* How far a step is on the way from peak to last, 0 .. 1; below 0: before the peak, 1 + as a fraction of it. */
static double way(int64_t step, int64_t warmup, int64_t total)
{
    if (step < 0) step = 0;
    if (warmup < 0) warmup = 0;
    if (step < warmup) return (double)step / (double)warmup - 1;
    if (step >= total - 1) return 1;
    return (double)(step - warmup) / (double)(total - 1 - warmup);
}

double dt_lr_linear(int64_t step, int64_t warmup, int64_t total, double peak, double last)
{
    double at = way(step, warmup, total);
    return at < 0 ? peak * (1 + at) : peak + (last - peak) * at;
}

double dt_lr_cosine(int64_t step, int64_t warmup, int64_t total, double peak, double last)
{
    static const double pi = 3.14159265358979323846;
    double at = way(step, warmup, total);
    return at < 0 ? peak * (1 + at) : last + (peak - last) * (1 + cos(pi * at)) / 2;
}
