/* SPDX-License-Identifier: Apache-2.0
 *
 * Each rank fills its part from the call's values; where it is partial, with its contribution to them.
 *
 * NaN and infinities are left out where an operand is used as P(sum), P(avg), given so or lifted: 1 x inf is inf, but
 * 2 x inf - 1 x inf is NaN. And where a result is bool and an operand is P: what is compared with NaN forgets it. */
#include "operands.h"

#include "core/context.h"
#include "core/number.h"
#include "tensor/tensor.h"

static value_split split_of(const dt_spec *spec, value_kind kind)
{
    value_split split = { .count = 1, .averaged = 1, .dtype = dt_spec_dtype(spec), .exact = kind != VALUES_ROUGH };
    for (int m = 0; m < spec->mesh->dim_count; m++) {
        int size = spec->mesh->dims[m].size;
        if (!spec->form.partial[m]) continue;
        split.kind = (dti_partial)spec->form.partial[m];
        split.count *= size;
        if (split.kind == DTI_AVG) split.averaged *= size;
    }
    return split;
}

bool operand_can_be(const op_call *call, const dt_spec *spec)
{
    value_split split = split_of(spec, call->kind);
    return !spec->layout->partial_count || value_splits(&split);
}

bool operand_sums(const dt_spec *spec)
{
    bool sums = false;
    for (int m = 0; m < spec->mesh->dim_count; m++) {
        int kind = spec->mesh->dims[m].size > 1 ? spec->form.partial[m] : 0;
        sums |= kind == DTI_SUM || kind == DTI_AVG || kind == DTI_PROD;
    }
    return sums;
}

bool operands_can_be(const op_call *call, const dt_spec *const *given, const dt_spec *const *used,
                     const dt_spec *const *result)
{
    bool can = true, sums = false, partial = false, bools = false;
    for (int i = 0; i < call->n; i++) {
        if (!given[i]) continue;
        can &= operand_can_be(call, given[i]);
        sums |= operand_sums(used[i]);
        partial |= used[i]->layout->partial_count > 0;
    }
    for (int r = 0; r < call->result_count; r++) bools |= result[r]->form.dtype == DT_BOOL;
    return can && !(call->kind == VALUES_SPECIAL && (sums || (bools && partial)));
}

typedef struct filling {
    const op_call *call;
    int operand, contribution;
    value_split split;
    size_t size;
    char *part;
} filling;

static void fill_run(const dti_part_run *run, void *arg)
{
    const filling *f = arg;
    for (int64_t k = 0; k < run->count; k++) {
        int64_t e = run->global + k;
        double value = f->call->values[f->operand][e];
        if (f->split.kind)
            value = value_part(&f->split, value, f->contribution, call_seed(f->call, f->operand, e));
        dti_number_set(f->split.dtype, value, f->part + (run->local + k) * (int64_t)f->size);
    }
}

static int contribution_of(const dt_spec *spec)
{
    const dt_mesh *mesh = spec->mesh;
    int at = 0;
    for (int m = 0; m < mesh->dim_count; m++)
        if (spec->form.partial[m]) at = at * mesh->dims[m].size + dti_mesh_coord_of(mesh, m, mesh->ctx->rank);
    return at;
}

dt_tensor *operand_make(dt_mesh *mesh, const op_call *call, int i, const char *placed)
{
    const dt_spec *spec = *placed ? dt_spec_parse(mesh, placed) : NULL;
    dti_storage *storage;
    if (!spec || !dti_part_new(spec, &storage)) return NULL;
    filling f = { .call = call, .operand = i, .contribution = contribution_of(spec),
                  .split = split_of(spec, call->kind), .size = dt_dtype_bytes(dt_spec_dtype(spec)),
                  .part = storage ? storage->bytes : NULL };
    dti_part_runs(spec, mesh->rank, fill_run, &f);
    return dti_tensor_new(spec, storage);
}
