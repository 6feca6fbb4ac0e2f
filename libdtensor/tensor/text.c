/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor as text: its spec, its values, and which rank holds what. */
#include <stdlib.h>

#include "core/number.h"
#include "core/pen.h"
#include "tensor/tensor.h"

enum { MAX_VALUES = 64, MAX_RANKS = 16 };

static void put_values(dti_pen *pen, const dt_tensor *whole)
{
    dt_dtype dtype = dt_spec_dtype(whole->spec);
    size_t size = dt_dtype_bytes(dtype);
    int64_t n = whole->storage ? (int64_t)(whole->storage->n / size) : 0;
    int columns = whole->spec->shape.n ? (int)whole->spec->shape.dim[whole->spec->shape.n - 1] : 1;
    for (int64_t i = 0; i < n && i < MAX_VALUES; i++)
        dti_put(pen, "%s%g", columns && i % columns ? " " : "\n  ",
                dti_number_get(dtype, (const char *)whole->storage->bytes + i * (int64_t)size));
    if (n > MAX_VALUES) dti_put(pen, "\n  ... %lld elements", (long long)n);
}

static void put_holders(dti_pen *pen, const dt_spec *spec)
{
    for (int r = 0; r < spec->mesh->size && r < MAX_RANKS; r++) {
        dt_box box;
        int n = dt_spec_boxes(spec, r, &box, 1);
        dti_put(pen, "\n  rank %d holds", dt_mesh_rank(spec->mesh, r));
        for (int d = 0; n && d < box.n; d++)
            dti_put(pen, "%s%lld:%lld", d ? "," : " [", (long long)box.lo[d], (long long)box.hi[d]);
        dti_put(pen, "%s", n == 0 ? " nothing" : box.n ? "]" : " it");
        if (n > 1) dti_put(pen, " and %d boxes more", n - 1);
    }
    if (spec->mesh->size > MAX_RANKS) dti_put(pen, "\n  ... %d ranks", spec->mesh->size);
}

static void put_tensor(dti_pen *pen, const dt_tensor *x, const dt_tensor *whole)
{
    dti_put(pen, "%s", dt_spec_text(x->spec));
    put_values(pen, whole);
    put_holders(pen, x->spec);
    dti_put(pen, "\n");
}

const char *dt_tensor_text(dt_tensor *x)
{
    if (!dti_tensor_ok(x)) return "";
    int scope = dt_scope_push(x->ctx, 0);
    dt_tensor *whole = dt_redistribute(x, "");
    if (whole && !x->text) {
        dti_pen measure = { NULL, 0, 0 };
        put_tensor(&measure, x, whole);
        x->text = malloc(measure.at + 1);
        dti_pen write = { x->text, measure.at + 1, 0 };
        if (x->text) put_tensor(&write, x, whole);
    }
    dt_scope_pop(x->ctx, scope, NULL);
    return x->text ? x->text : "";
}
