/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parallelisms communicate, as redistributions: each row is a tensor that changes its placements where a
 * training step makes it do so. The plan says which collective that is and what the busiest rank receives; the program
 * checks it against the formula of the ring algorithm, M being the bytes of the whole tensor:
 *
 *   all-gather, reduce-scatter   (n-1)/n M       all-reduce   2 (n-1)/n M       all-to-all   (n-1)/n of a rank's part
 *
 * Sizes are those of a layer of Llama-3 70B: b = 1, s = 4096, h = 8192, F = 28672, 64 heads of 128. Then 8 ranks of
 * this process carry each row out on a smaller tensor, and every one compares what it received with the plan.
 *
 * Run: ./02_redistribute_cost
 *      ./02_redistribute_cost --dt-topology=node=2,gpu=4    two hosts: other plans and times, no more bytes */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <dtensor/tensor.h>

/* One move; its formula says that the busiest rank receives  times (n - 1) / (n parts) M. */
typedef struct move {
    const char *what, *mesh, *source, *target; /* target: placements                                               */
    const char *formula;
    int times, n, parts;
} move;

static const move moves[] = {
    { "DP: weight gradient, whole", "dp=8", "bf16[28672,8192]@dp:P", "", "2(n-1)/n M", 2, 8, 1 },
    { "FSDP: weight before its use", "dp=8", "bf16[28672,8192]@dp:S(0)", "", "(n-1)/n M", 1, 8, 1 },
    { "FSDP: weight gradient", "dp=8", "bf16[28672,8192]@dp:P", "dp:S(0)", "(n-1)/n M", 1, 8, 1 },
    { "HSDP: weight before its use", "rep=2,dp=4", "bf16[28672,8192]@dp:S(0)", "", "(n-1)/n M", 1, 4, 1 },
    { "HSDP: gradient inside a replica", "rep=2,dp=4", "bf16[28672,8192]@rep:P,dp:P", "rep:P,dp:S(0)", "(n-1)/n M",
      1, 4, 1 },
    { "HSDP: gradient shard, across", "rep=2,dp=4", "bf16[28672,8192]@rep:P,dp:S(0)", "dp:S(0)", "2(n-1)/n M/4",
      2, 2, 4 },
    { "FSDP on TP: weight's tp shard", "dp=2,tp=4", "bf16[28672,8192]@tp:S(0),dp:S(0)", "tp:S(0)", "(n-1)/n M/4",
      1, 2, 4 },
    { "TP: row-parallel output", "tp=8", "bf16[1,4096,8192]@tp:P", "", "2(n-1)/n M", 2, 8, 1 },
    { "SP: row-parallel output", "tp=8", "bf16[1,4096,8192]@tp:P", "tp:S(1)", "(n-1)/n M", 1, 8, 1 },
    { "SP: before a column-parallel layer", "tp=8", "bf16[1,4096,8192]@tp:S(1)", "", "(n-1)/n M", 1, 8, 1 },
    { "CP: Ulysses, sequence to heads", "cp=8", "bf16[1,4096,64,128]@cp:S(1)", "cp:S(2)", "(n-1)/n M/n", 1, 8, 8 },
    { "CP: and back", "cp=8", "bf16[1,4096,64,128]@cp:S(2)", "cp:S(1)", "(n-1)/n M/n", 1, 8, 8 },
    { "EP: tokens to their experts", "ep=8", "bf16[8,512,8192]@ep:S(1)", "ep:S(0)", "(n-1)/n M/n", 1, 8, 8 },
    { "vocabulary: cross-entropy sums", "tp=8", "f32[1,4096]@tp:P", "", "2(n-1)/n M", 2, 8, 1 },
    { "into TP: R to S is free", "tp=8", "bf16[1,4096,8192]", "tp:S(1)", "0", 0, 8, 1 },
};

static int64_t whole_bytes(const dt_spec *spec)
{
    dt_shape shape = dt_spec_shape(spec);
    int64_t bytes = (int64_t)dt_dtype_bytes(dt_spec_dtype(spec));
    for (int d = 0; d < shape.n; d++) bytes *= shape.dim[d];
    return bytes;
}

/* "reduce_scatter + all_gather"; "-" where nothing is to do. */
static void write_kinds(const dt_plan *plan, char *text, size_t bytes)
{
    size_t used = 0;
    snprintf(text, bytes, "-");
    for (int i = 0; i < dt_plan_step_count(plan) && used < bytes; i++) {
        dt_plan_step step = dt_plan_step_at(plan, i);
        int n = snprintf(text + used, bytes - used, "%s%s", i ? " + " : "", dt_comm_kind_text(step.kind));
        used += n > 0 ? (size_t)n : 0;
    }
}

static void print_move(const move *m, const dt_plan *plan, int64_t bytes, int64_t expected)
{
    char kinds[96];
    dt_plan_cost cost = dt_plan_price(plan);
    write_kinds(plan, kinds, sizeof kinds);
    printf("%-35s %-11s %-25s %9.3f MiB  %-13s %6.3f %10.1f us\n", m->what, m->mesh, kinds,
           (double)bytes / (1 << 20), m->formula, cost.ratio, cost.time_us);
    if (bytes != expected) printf("    the formula says %" PRId64 " bytes, the plan %" PRId64 "\n", expected, bytes);
}

static void show(dt_context *ctx, const move *m)
{
    dt_mesh *mesh = dt_mesh_create(ctx, m->mesh);
    const dt_spec *source = dt_spec_parse(mesh, m->source);
    const dt_plan *plan = dt_plan_create(source, dt_spec_replace(source, m->target), DT_PLAN_BYTES);
    int64_t bytes = dt_plan_price(plan).bytes;
    int64_t expected = m->times * (m->n - 1) * (whole_bytes(source) / (m->n * m->parts));
    if (dt_context_status(ctx)) return;                       /* the first of these calls that failed wrote why */
    print_move(m, plan, bytes, expected);
    if (bytes != expected)
        dt_context_fail(ctx, DT_ERR_STATE, "%s: received %" PRId64 " bytes, expected %" PRId64, m->what, bytes,
                        expected);
}

/* From one pipeline stage to the next: other ranks, so the target is on another mesh. Point to point: M / tp. */
static void show_pipeline(dt_context *ctx)
{
    dt_mesh *mesh = dt_mesh_create(ctx, "pp=2,tp=4");
    dt_mesh *first = dt_mesh_select(mesh, "pp=0"), *second = dt_mesh_select(mesh, "pp=1");
    const char *text = "bf16[1,4096,8192]@tp:S(1)";
    const dt_spec *source = dt_spec_parse(first, text);
    const dt_plan *plan = dt_plan_create(source, dt_spec_parse(second, text), DT_PLAN_BYTES);
    move m = { .what = "PP: [b, s, h] to the next stage", .mesh = "pp=2,tp=4", .formula = "M/4" };
    if (!dt_context_status(ctx)) print_move(&m, plan, dt_plan_price(plan).bytes, whole_bytes(source) / 4);
}

static void run(dt_context *ctx)
{
    if (!dt_options_done(ctx)) {
        if (!dt_context_status(ctx)) fputs(dt_options_help(ctx), stdout);
        return;
    }
    printf("8 ranks, topology %s; received by the busiest rank\n\n", dt_topology_text(ctx));
    printf("%-35s %-11s %-25s %13s  %-13s %6s %13s\n", "what", "mesh", "plan", "received", "formula", "ratio", "time");
    for (int i = 0; i < DT_COUNT(moves); i++) show(ctx, &moves[i]);
    show_pipeline(ctx);
    if (!dt_context_status(ctx)) printf("\nevery row is its formula, to the byte\n");
}

/* ---- with data -------------------------------------------------------------------------------------------------- */

/* The row's spec with its larger sizes divided by 32, in f32: sums of few numbers are then the same in any order. */
static const dt_spec *smaller(const dt_spec *spec)
{
    char text[128] = "f32[";
    dt_shape shape = dt_spec_shape(spec);
    for (int d = 0; d < shape.n; d++) {
        int64_t size = shape.dim[d] > 64 ? shape.dim[d] / 32 : shape.dim[d];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%" PRId64, d ? "," : "", size);
    }
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "]@%s", dt_spec_placements(spec));
    return dt_spec_parse(dt_spec_mesh(spec), text);
}

static int64_t received(dt_mesh *mesh)
{
    dt_counters counters = dt_mesh_counters(mesh, NULL);
    int64_t bytes = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) bytes += counters.bytes[kind];
    return bytes;
}

static void carry_out(dt_context *ctx, const move *m)
{
    int scope = dt_scope_push(ctx, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, m->mesh);
    const dt_spec *source = smaller(dt_spec_parse(mesh, m->source));
    dt_tensor *x = dt_rand(source, 1);
    const dt_plan *plan = dt_plan_create(source, dt_spec_replace(source, m->target), DT_PLAN_TIME); /* what runs */
    int64_t before = received(mesh);
    dt_tensor *y = dt_redistribute(x, m->target);
    int64_t bytes = received(mesh) - before, planned = dt_plan_received(plan, dt_rank(ctx));
    if (bytes != planned)
        dt_context_fail(ctx, DT_ERR_STATE, "%s: received %" PRId64 " bytes, planned %" PRId64, m->what, bytes, planned);
    if (!dt_tensor_close(x, y, 1e-6, 1e-6) && !dt_context_status(ctx))
        dt_context_fail(ctx, DT_ERR_STATE, "%s: another value", m->what);
    dt_scope_pop(ctx, scope, NULL);
}

static dt_status with_data(dt_context *ctx, void *arg)
{
    (void)arg;
    for (int i = 0; i < DT_COUNT(moves); i++) carry_out(ctx, &moves[i]);
    return dt_context_status(ctx);
}

static dt_status run_with_data(void)
{
    char error[256];
    dt_status status = dt_launch_threads(8, with_data, NULL, error, sizeof error);
    if (status) fprintf(stderr, "02_redistribute_cost: %s\n", error);
    else printf("carried out by 8 ranks on smaller tensors: the values stay, each rank received what was planned\n");
    return status;
}

int main(int argc, char **argv)
{
    dt_context *ctx = dt_context_dry(8);
    dt_options_read(ctx, &argc, &argv);
    run(ctx);
    dt_status status = dt_context_status(ctx);
    if (status) fprintf(stderr, "02_redistribute_cost: %s\n", dt_context_error(ctx));
    dt_context_destroy(&ctx);
    return status || run_with_data() ? 1 : 0;
}
