/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over one row in f64. Sums run in lanes: number i goes to lane i modulo their number, and lanes are added in
 * pairs at the end, so the order depends on the row's length alone. */
#include "ops/cpu/math.h"
#include "ops/cpu/rows.h"

typedef struct lanes { double of[DTI_LANES]; } lanes;

DTI_INLINE double add_lanes(lanes sum)
{
    for (int half = DTI_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) sum.of[i] += sum.of[i + half];
    return sum.of[0];
}

DTI_INLINE double sum_of(const double *x, int64_t n)
{
    lanes sum = { { 0 } };
    int64_t at = 0;
    for (; at + DTI_LANES <= n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) sum.of[i] += x[at + i];
    for (int i = 0; at + i < n; i++) sum.of[i] += x[at + i];
    return add_lanes(sum);
}

DTI_CLONES double dti_row_sum(const double *x, int64_t n) { return sum_of(x, n); }

DTI_CLONES double dti_row_squares(const double *x, double center, int64_t n)
{
    lanes sum = { { 0 } };
    int64_t at = 0;
    for (; at + DTI_LANES <= n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) sum.of[i] += (x[at + i] - center) * (x[at + i] - center);
    for (int i = 0; at + i < n; i++) sum.of[i] += (x[at + i] - center) * (x[at + i] - center);
    return add_lanes(sum);
}

DTI_CLONES double dti_row_max(const double *x, int64_t n)
{
    lanes max, nan = { { 0 } };
    int64_t at = 0;
    for (int i = 0; i < DTI_LANES; i++) max.of[i] = -INFINITY;
    for (; at + DTI_LANES <= n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) {
            max.of[i] = x[at + i] > max.of[i] ? x[at + i] : max.of[i];
            nan.of[i] = x[at + i] != x[at + i] ? x[at + i] : nan.of[i];
        }
    for (int i = 0; at + i < n; i++) {
        max.of[i] = x[at + i] > max.of[i] ? x[at + i] : max.of[i];
        nan.of[i] = x[at + i] != x[at + i] ? x[at + i] : nan.of[i];
    }
    for (int i = 1; i < DTI_LANES; i++) {
        max.of[0] = max.of[i] > max.of[0] ? max.of[i] : max.of[0];
        nan.of[0] = nan.of[i] != nan.of[i] ? nan.of[i] : nan.of[0];
    }
    return nan.of[0] != nan.of[0] ? nan.of[0] : max.of[0];
}

/* e^(x - shift) of a whole block; what lies behind the row is not added. */
DTI_CLONES double dti_row_exp(double *x, double shift, int64_t n)
{
    for (int64_t at = 0; at < n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) x[at + i] = dti_exp(x[at + i] - shift);
    return sum_of(x, n);
}

DTI_CLONES double dti_row_exp_sum(const double *x, double shift, int64_t n)
{
    double part[DTI_LANES], sum = 0;
    for (int64_t at = 0; at < n; at += DTI_LANES) {
        for (int i = 0; i < DTI_LANES; i++) part[i] = dti_exp(x[at + i] - shift);
        sum += sum_of(part, n - at < DTI_LANES ? n - at : DTI_LANES);
    }
    return sum;
}

DTI_CLONES double dti_row_weighted(const double *x, double center, const double *w, int64_t n)
{
    lanes sum = { { 0 } };
    int64_t at = 0;
    for (; at + DTI_LANES <= n; at += DTI_LANES)
        for (int i = 0; i < DTI_LANES; i++) sum.of[i] += (x[at + i] - center) * (w ? w[at + i] : 1);
    for (int i = 0; at + i < n; i++) sum.of[i] += (x[at + i] - center) * (w ? w[at + i] : 1);
    return add_lanes(sum);
}

DTI_CLONES void dti_row_scale(double *x, double center, double scale, const double *w, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double y = (x[i] - center) * scale * (w ? w[i] : 1);
        x[i] = b ? y + b[i] : y;
    }
}
