/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in and out of tensors of one rank. */
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "suite.h"

void on_one_rank(dt_rank_fn fn)
{
    char error[512] = "";
    dt_status status = dt_launch_threads(1, fn, NULL, error, sizeof error);
    expect(status == DT_OK, "%s", error);
}

dt_mesh *mesh_of(dt_context *ctx) { return dt_mesh_create(ctx, "x"); }

int64_t count_of(const dt_shape *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->n; d++) n *= shape->dim[d];
    return n;
}

dt_tensor *tensor_of(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const double *numbers)
{
    int64_t n = count_of(&shape);
    void *host = malloc((size_t)n * 8 + 8);
    dti_numbers_convert(DT_F64, numbers, dtype, host, n);
    dt_tensor *x = dt_from_host(dt_spec_create(mesh, dtype, shape, ""), -1, host, (size_t)n * dt_dtype_bytes(dtype));
    free(host);
    return x;
}

dt_tensor *drawn(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, uint64_t seed)
{
    int64_t n = count_of(&shape);
    double *numbers = malloc((size_t)n * sizeof *numbers + 8);
    uint64_t state = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double draw = (double)(state >> 40) / (double)(1 << 24) * 8 - 4;
        double whole = dtype == DT_BOOL ? draw > 0 : dtype == DT_U8 ? floor(draw + 4) : floor(draw);
        numbers[i] = dtype >= DT_I64 ? whole : draw;
    }
    dt_tensor *x = tensor_of(mesh, dtype, shape, numbers);
    free(numbers);
    return x;
}

void read_values(dt_tensor *x, values *out)
{
    memset(out, 0, sizeof *out);
    if (!expect(x != NULL, "no tensor")) return;
    dt_dtype dtype = dt_spec_dtype(dt_tensor_spec(x));
    out->shape = dt_spec_shape(dt_tensor_spec(x));
    out->n = count_of(&out->shape);
    if (!expect(out->n <= VALUES, "%lld values are more than fit", (long long)out->n)) return;
    dti_numbers_convert(dtype, dt_tensor_data(x), DT_F64, out->at, out->n);
}

double rounded(dt_dtype dtype, double number)
{
    unsigned char bytes[8];
    dti_number_set(dtype, number, bytes);
    return dti_number_get(dtype, bytes);
}

double epsilon(dt_dtype dtype)
{
    static const double of[DT_DTYPE_COUNT] = {
        [DT_F64] = 0x1p-52, [DT_F32] = 0x1p-23, [DT_BF16] = 0x1p-7, [DT_F16] = 0x1p-10,
    };
    return of[dtype];
}

bool near(dt_dtype dtype, double got, double due, double ulps, double least)
{
    if (isnan(due) || isnan(got)) return isnan(due) && isnan(got);
    return got == due || fabs(got - due) <= ulps * epsilon(dtype) * fabs(due) + least;
}

double broadcast_at(const values *x, const dt_shape *shape, int64_t i)
{
    int64_t at = 0, weight = 1;
    for (int d = shape->n - 1; d >= 0; d--) {
        int own = d - (shape->n - x->shape.n);
        int64_t index = i % shape->dim[d];
        i /= shape->dim[d];
        if (own < 0) continue;
        if (x->shape.dim[own] != 1) at += index * weight;
        weight *= x->shape.dim[own];
    }
    return x->at[at];
}
