/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements from any text: the first byte chooses a tensor, the rest is where it shall lie; as a replacement, where *
 * stands for how it lies, and from parts, where * is an error. */
#include "fuzz.h"

#include <dtensor/spec.h>

static const char *const specs[] = {
    "f32[64,512]@dp:S(0),tp:P(sum)", "f32[(3 5),7,(2 2 9)]@tp:S(0.1),dp:S(2.2)", "bf16[]@one:P,dp:P(max)",
    "i32[0,1,2,3,4,5,6,7]@tp:S(-1),cp:S(-1),dp:S(-1)", "f64[9,9]@dp:P,tp:P(avg)", "u8[13]",
};

static fuzz_run run;

static void try_replaced(const dt_spec *spec, const dt_spec *base, const char *text)
{
    dt_mesh *mesh = dt_spec_mesh(spec);
    dt_shape was = dt_spec_shape(base), is = dt_spec_shape(spec);
    fuzz_demand(memcmp(&was, &is, sizeof is) == 0, "the same tensor");
    fuzz_demand(dt_spec_dtype(spec) == dt_spec_dtype(base) && mesh == dt_spec_mesh(base), "the same tensor");
    fuzz_demand(dt_spec_has(base, text) == (spec == base), "has");
    fuzz_demand(dt_spec_parse(mesh, dt_spec_text(spec)) == spec, "parses back");
    fuzz_demand(dt_spec_replace(spec, "*") == spec, "* is as it is");
    fuzz_demand(dt_spec_check(spec) == DT_OK, dt_context_error(dt_mesh_context(mesh)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    dt_context *ctx = fuzz_context(&run, 12);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,one=1,tp=3,cp=2");
    const dt_spec *base = dt_spec_parse(mesh, specs[data[0] % DT_COUNT(specs)]);
    char *text = fuzz_text(data + 1, size - 1);
    const dt_spec *spec = dt_spec_replace(base, text);
    fuzz_outcome(ctx, spec != NULL, true);
    if (spec) try_replaced(spec, base, text);
    const dt_spec *made = dt_spec_create(mesh, dt_spec_dtype(base), dt_spec_shape(base), text);
    fuzz_outcome(ctx, made != NULL, true);
    fuzz_demand(!made || !strchr(text, '*'), "* without a tensor");
    fuzz_demand(!made || dt_spec_has(made, text), "a spec from parts lies as it says");
    fuzz_demand(!made || dt_spec_check(made) == DT_OK, dt_context_error(ctx));
    free(text);
    return 0;
}
