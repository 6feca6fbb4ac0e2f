/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt redistribute`: how one spec becomes another, and what that costs. It reads the line, makes two meshes, two specs
 * and a plan in a dry context of as many ranks as are meant, and prints what plan.h answers. With
 * --run it also has it carried out. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "dry.h"
#include "json.h"
#include "redistribute_run.h"
#include "step.h"

enum {
    OPTION_MESH, OPTION_AT, OPTION_TO_MESH, OPTION_TO_AT, OPTION_RANKS, OPTION_TOPOLOGY, OPTION_LEAST_TIME, OPTION_RUN,
    OPTION_JSON, OPTION_COUNT
};

static const tool_option options[OPTION_COUNT] = {
    [OPTION_MESH] = { "mesh", "MESH", "the mesh of SOURCE, x=4,y=2; required" },
    [OPTION_AT] = { "at", "COORDS", "SOURCE lies on the mesh's ranks at these coordinates, pp=0" },
    [OPTION_TO_MESH] = { "to-mesh", "MESH", "the mesh of TARGET, over the same ranks; default: that of SOURCE" },
    [OPTION_TO_AT] = { "to-at", "COORDS", "as --at, for TARGET" },
    [OPTION_RANKS] = { "ranks", "N", "ranks in all; default: the product of the mesh's sizes" },
    [OPTION_TOPOLOGY] = { "topology", "LEVELS", "where ranks stand, node=2,gpu=4; default: DT_TOPOLOGY, else flat" },
    [OPTION_LEAST_TIME] = { "least-time", NULL, "plan for the least time, not for the fewest bytes" },
    [OPTION_RUN] = { "run", NULL, "carry the plan out on thread ranks, and verify" },
    [OPTION_JSON] = { "json", NULL, "one JSON object" },
};

typedef struct ends { const dt_spec *source, *target; } ends;

/* ---- meshes and specs -------------------------------------------------------------------------------------------- */

static dt_mesh *make_mesh(dt_context *ctx, const char *text, const char *at)
{
    dt_mesh *mesh = dt_mesh_create(ctx, text);
    return at ? dt_mesh_select(mesh, at) : mesh;
}

/* A tensor like source on another mesh: its dtype and sizes, factors too. */
static const dt_spec *place_elsewhere(dt_mesh *mesh, const dt_spec *source, const char *placements)
{
    const char *text = dt_spec_text(source);
    char *made = dry_text(dt_mesh_context(mesh), "%.*s@%s", (int)strcspn(text, "@"), text, placements);
    const dt_spec *target = made ? dt_spec_parse(mesh, made) : NULL;
    free(made);
    return target;
}

/* TARGET may leave out SOURCE's dtype and sizes. */
static const dt_spec *make_target(dt_mesh *mesh, const dt_spec *source, const char *text)
{
    if (strchr(text, '[')) return dt_spec_parse(mesh, text);
    if (mesh == dt_spec_mesh(source)) return dt_spec_replace(source, text);
    return place_elsewhere(mesh, source, text);
}

/* false: the context says why. */
static bool make_ends(const tool_call *call, dt_context *ctx, ends *made)
{
    const char *const *values = call->values;
    bool to_mesh = values[OPTION_TO_MESH] != NULL;
    const char *to_at = values[OPTION_TO_AT] || to_mesh ? values[OPTION_TO_AT] : values[OPTION_AT];
    dt_mesh *source = make_mesh(ctx, values[OPTION_MESH], values[OPTION_AT]);
    dt_mesh *target = make_mesh(ctx, to_mesh ? values[OPTION_TO_MESH] : values[OPTION_MESH], to_at);
    made->source = dt_spec_parse(source, call->arguments[0]);
    made->target = made->source && target ? make_target(target, made->source, call->arguments[1]) : NULL;
    return made->target != NULL;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_dtypes(FILE *out, const dt_plan_step *step)
{
    fputs(dt_dtype_text(step->travels), out);
    if (step->sums) fprintf(out, ", sums in %s", dt_dtype_text(step->sums_in));
    if (step->gives != step->travels) fprintf(out, ", gives %s", dt_dtype_text(step->gives));
}

static void put_steps(FILE *out, const void *arg)
{
    const dt_plan *plan = arg;
    if (dt_plan_step_count(plan) == 0) {
        fputs("nothing to do\n", out);
        return;
    }
    fputs("step\tkind\tdims\tbytes\tmessages\tdtypes\n", out);
    for (int i = 0; i < dt_plan_step_count(plan); i++) {
        dt_plan_step step = dt_plan_step_at(plan, i);
        fprintf(out, "%d\t%s\t%s\t%lld\t%lld\t", i + 1, dt_comm_kind_text(step.kind), step.dims, (long long)step.bytes,
                (long long)step.messages);
        put_dtypes(out, &step);
        fputc('\n', out);
    }
}

static void put_cost(FILE *out, dt_context *ctx, const dt_plan_cost *cost)
{
    fprintf(out, "bytes\t%lld\treceived by the busiest rank\n", (long long)cost->bytes);
    fprintf(out, "bound\t%lld\tratio %.6g\n", (long long)cost->lower_bound, cost->ratio);
    fprintf(out, "sent\t%lld\tby the busiest sender\n", (long long)cost->sent);
    fprintf(out, "total\t%lld\treceived by all ranks, bound %lld\n", (long long)cost->total,
            (long long)cost->total_bound);
    for (int i = 0; i < cost->link_count && cost->link_count > 1; i++)
        if (cost->link_sent[i] < 0)
            fprintf(out, "%s\t%lld\tover this link, sent not counted\n", dt_topology_link_name(ctx, i),
                    (long long)cost->link_bytes[i]);
        else
            fprintf(out, "%s\t%lld\tover this link, sent %lld\n", dt_topology_link_name(ctx, i),
                    (long long)cost->link_bytes[i], (long long)cost->link_sent[i]);
    fprintf(out, "peak\t%lld\tmemory of the rank with most\n", (long long)cost->peak_bytes);
    fprintf(out, "time\t%.3f\tus\n", cost->time_us);
}

/* What a run said, NULL: none was asked for. */
static void put_run(FILE *out, const run_result *ran)
{
    if (ran)
        fprintf(out, "run\t%.3f\tus on threads of this machine, %s\n", ran->us, ran->verified ? "verified" : "WRONG");
}

typedef struct costs { dt_context *ctx; const dt_plan_cost *cost; const run_result *ran; } costs;

static void put_costs(FILE *out, const void *arg)
{
    const costs *c = arg;
    put_cost(out, c->ctx, c->cost);
    put_run(out, c->ran);
}

static bool print_text(FILE *out, const ends *made, const dt_plan *plan, const dt_plan_cost *cost,
                       const run_result *ran)
{
    dt_mesh *from = dt_spec_mesh(made->source), *to = dt_spec_mesh(made->target);
    costs c = { dt_mesh_context(from), cost, ran };
    fprintf(out, "source  %s  on %s\ntarget  %s  on %s\n\n", dt_spec_text(made->source), dt_mesh_text(from),
            dt_spec_text(made->target), dt_mesh_text(to));
    if (!tool_put(out, "rllrrl", put_steps, plan)) return false;
    fputc('\n', out);
    return tool_put(out, "lrl", put_costs, &c);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_json_links(json *j, dt_context *ctx, const dt_plan_cost *cost)
{
    json_begin(j, "links", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < cost->link_count; i++) {
        json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
        json_text(j, "name", dt_topology_link_name(ctx, i));
        json_int(j, "bytes", cost->link_bytes[i]);
        if (cost->link_sent[i] < 0) json_text(j, "sent", NULL);
        else json_int(j, "sent", cost->link_sent[i]);
        json_end(j);
    }
    json_end(j);
}

static void put_json_cost(json *j, const dt_plan_cost *cost)
{
    json_int(j, "bytes", cost->bytes);
    json_int(j, "sent", cost->sent);
    json_int(j, "lower_bound", cost->lower_bound);
    json_real(j, "ratio", cost->ratio);
    json_int(j, "total", cost->total);
    json_int(j, "total_bound", cost->total_bound);
    json_int(j, "peak_bytes", cost->peak_bytes);
    json_real(j, "time_us", cost->time_us);
}

static void print_json(FILE *out, const ends *made, const dt_plan *plan, const dt_plan_cost *cost,
                       const run_result *ran)
{
    json j = { .out = out };
    json_begin(&j, NULL, JSON_OBJECT, JSON_LINES);
    json_text(&j, "source", dt_spec_text(made->source));
    json_text(&j, "target", dt_spec_text(made->target));
    json_text(&j, "source_mesh", dt_mesh_text(dt_spec_mesh(made->source)));
    json_text(&j, "target_mesh", dt_mesh_text(dt_spec_mesh(made->target)));
    step_json(&j, &plan, 1, JSON_LINES);
    put_json_cost(&j, cost);
    if (ran) json_bool(&j, "verified", ran->verified);
    if (ran) json_real(&j, "run_us", ran->us);
    put_json_links(&j, dt_mesh_context(dt_spec_mesh(made->source)), cost);
    json_end(&j);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool make_in_rank(dt_context *ctx, const void *arg, const dt_spec **source, const dt_spec **target)
{
    const tool_call *call = arg;
    ends made = { NULL, NULL };
    if (!dry_topology(ctx, call->values[OPTION_TOPOLOGY]) || !make_ends(call, ctx, &made)) return false;
    *source = made.source;
    *target = made.target;
    return true;
}

static int run_on_threads(const tool_call *call, int ranks, run_result *ran)
{
    char error[1024] = "";
    dt_plan_goal goal = call->values[OPTION_LEAST_TIME] ? DT_PLAN_TIME : DT_PLAN_BYTES;
    if (redistribute_on_threads(ranks, make_in_rank, call, goal, ran, error, sizeof error)) return TOOL_OK;
    return tool_fail(call->command, TOOL_FAILED, "%s", error);
}

static int plan_and_print(const tool_call *call, dt_context *ctx)
{
    ends made = { NULL, NULL };
    dt_plan_goal goal = call->values[OPTION_LEAST_TIME] ? DT_PLAN_TIME : DT_PLAN_BYTES;
    if (!dry_topology(ctx, call->values[OPTION_TOPOLOGY]) || !make_ends(call, ctx, &made))
        return tool_fail_context(call->command, ctx);
    const dt_plan *plan = dt_plan_create(made.source, made.target, goal);
    dt_plan_cost cost = dt_plan_price(plan);
    dt_plan_step_count(plan);      /* the last thing that can fail                                                 */
    if (dt_context_status(ctx)) return tool_fail_context(call->command, ctx);
    run_result result, *ran = call->values[OPTION_RUN] ? &result : NULL;
    int status = ran ? run_on_threads(call, dt_rank_count(ctx), ran) : TOOL_OK;
    if (status != TOOL_OK) return status;
    if (call->values[OPTION_JSON]) print_json(call->out, &made, plan, &cost, ran);
    else if (!print_text(call->out, &made, plan, &cost, ran))
        return tool_fail(call->command, TOOL_FAILED, "out of memory");
    if (ran && !ran->verified) return tool_fail(call->command, TOOL_FAILED, "the result is not the target");
    return TOOL_OK;
}

static int redistribute_run(const tool_call *call)
{
    dt_context *ctx = NULL;
    if (!call->values[OPTION_MESH])
        return tool_fail(call->command, TOOL_USAGE, "expected --mesh, the mesh of SOURCE; see dt redistribute --help");
    int status = dry_begin(call->command, call->values[OPTION_MESH], call->values[OPTION_RANKS], &ctx);
    if (status != TOOL_OK) return status;
    status = plan_and_print(call, ctx);
    dt_context_destroy(&ctx);
    return status;
}

const tool_command dt_redistribute_command = {
    .name = "redistribute",
    .summary = "how one spec becomes another, and what that costs",
    .arguments = "SOURCE TARGET",
    .argument_count = 2,
    .details = "SOURCE and TARGET are specs, f32[16,8,12]@y:S(0),x:S(2). TARGET may be placements alone, x:S(1),*:\n"
               "SOURCE's tensor placed so, where * stands for the mesh dims not named, as they are in SOURCE.\n"
               "--to-at without --to-mesh takes other ranks of SOURCE's mesh; without both they are those of --at.\n",
    .options = options,
    .option_count = OPTION_COUNT,
    .run = redistribute_run,
};
