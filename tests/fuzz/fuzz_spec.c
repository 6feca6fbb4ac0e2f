/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs from any text: the first byte chooses the mesh, the rest is the spec. What parses keeps its promises, prints
 * canonically and holds what its local shape says; what does not is refused in one line that names a column. */
#include "fuzz.h"

#include <dtensor/spec.h>

enum { MANY = 4096 };              /* more elements than this are not looked at one by one                         */

static const char *const meshes[] = { "dp=2,tp=4,one=1", "a=3,b=2,c=2", "x", "tp.0=2,tp.1=2,tp.2=2", "p=3,d=5,t=7" };
static const int ranks[] = { 8, 12, 1, 8, 105 };

static fuzz_run runs[DT_COUNT(meshes)];

static int64_t elements_of(const dt_shape *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->n; d++) {
        if (shape->dim[d] > MANY || (n *= shape->dim[d]) > MANY) return MANY + 1;
    }
    return n;
}

static void boxes_fill_the_local_shape(const dt_spec *spec, int rank)
{
    static dt_box boxes[MANY];
    dt_shape local = dt_spec_local_shape(spec, rank);
    int n = dt_spec_boxes(spec, rank, boxes, MANY);
    int64_t held = 0;
    for (int i = 0; i < n; i++) {
        int64_t box = 1;
        for (int d = 0; d < local.n; d++) box *= boxes[i].hi[d] - boxes[i].lo[d];
        held += box;
    }
    fuzz_demand(held == elements_of(&local), dt_spec_text(spec));
}

static void try_spec(const dt_spec *spec)
{
    dt_mesh *mesh = dt_spec_mesh(spec);
    dt_shape shape = dt_spec_shape(spec);
    fuzz_demand(dt_spec_parse(mesh, dt_spec_text(spec)) == spec, "parses back");
    fuzz_demand(dt_spec_replace(spec, dt_spec_placements(spec)) == spec, "placed as it is");
    fuzz_demand(dt_spec_has(spec, "*") && dt_spec_same(spec, spec), "has what it has");
    fuzz_demand(dt_spec_check(spec) == DT_OK, dt_context_error(dt_mesh_context(mesh)));
    if (elements_of(&shape) > MANY) return;
    for (int rank = 0; rank < dt_mesh_size(mesh, NULL); rank++) boxes_fill_the_local_shape(spec, rank);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    int which = data[0] % DT_COUNT(meshes);
    dt_context *ctx = fuzz_context(&runs[which], ranks[which]);
    dt_mesh *mesh = dt_mesh_create(ctx, meshes[which]);
    char *text = fuzz_text(data + 1, size - 1);
    const dt_spec *spec = dt_spec_parse(mesh, text);
    fuzz_outcome(ctx, spec != NULL, true);
    if (spec) try_spec(spec);
    fuzz_demand(dt_spec_parse(mesh, text) == spec, "the same again");
    fuzz_outcome(ctx, spec != NULL, true);
    fuzz_demand(dt_spec_parse(mesh, "f32[4]") != NULL, "a cleared context works");
    free(text);
    return 0;
}
