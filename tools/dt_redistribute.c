/* SPDX-License-Identifier: Apache-2.0
 *
 * `dt redistribute`: how one spec becomes another, and what that costs. It reads the line, makes two meshes, two specs
 * and a plan in a dry context of as many ranks as are meant, and prints what plan.h answers. With
 * --run it also has it carried out. */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "json.h"
#include "mesh/mesh_text.h"
#include "redistribute_run.h"

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

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static int read_ranks(const tool_call *call, const char *text, int *ranks)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool is_number = isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && value >= 1 && value <= INT_MAX;
    if (!is_number)
        return tool_fail(call->command, TOOL_USAGE, "--ranks=%s: expected an integer from 1 to %d", text, INT_MAX);
    *ranks = (int)value;
    return TOOL_OK;
}

/* The product of the sizes of a mesh; ctx is only for the error. */
static int multiply_sizes(const tool_call *call, dt_context *ctx, int *ranks)
{
    const char *text = call->values[OPTION_MESH];
    dti_list list;
    int64_t product = 1;
    if (!dti_list_read(&list, ctx, DTI_LIST_MESH, text)) return tool_fail_context(call->command, ctx);
    for (int i = 0; i < list.n && product <= INT_MAX; i++) {
        if (list.items[i].number == DTI_UNSIZED)
            return tool_fail(call->command, TOOL_USAGE, "--mesh=%s: a dim without a size needs --ranks", text);
        product *= list.items[i].number;
    }
    if (product > INT_MAX)
        return tool_fail(call->command, TOOL_FAILED, "mesh \"%s\": expected at most %d ranks", text, INT_MAX);
    *ranks = (int)product;
    return TOOL_OK;
}

static int count_ranks(const tool_call *call, int *ranks)
{
    if (call->values[OPTION_RANKS]) return read_ranks(call, call->values[OPTION_RANKS], ranks);
    dt_context *ctx = dt_context_dry(1);
    if (!ctx) return tool_fail(call->command, TOOL_FAILED, "out of memory");
    int status = multiply_sizes(call, ctx, ranks);
    dt_context_destroy(&ctx);
    return status;
}

/* ---- meshes and specs -------------------------------------------------------------------------------------------- */

static dt_mesh *make_mesh(dt_context *ctx, const char *text, const char *at)
{
    dt_mesh *mesh = dt_mesh_create(ctx, text);
    return at ? dt_mesh_select(mesh, at) : mesh;
}

/* A text of its own; NULL and the error when memory ran out. */
DT_PRINTF(2, 3)
static char *make_text(dt_context *ctx, const char *format, ...)
{
    char *text = NULL;
    size_t bytes;
    va_list args;
    FILE *out = open_memstream(&text, &bytes);
    va_start(args, format);
    if (out) vfprintf(out, format, args);
    va_end(args);
    if (out && fclose(out) == 0) return text;
    free(text);
    dt_context_fail(ctx, DT_ERR_MEMORY, "out of memory");
    return NULL;
}

/* A tensor like source on another mesh: its dtype and sizes, factors too. */
static const dt_spec *place_elsewhere(dt_mesh *mesh, const dt_spec *source, const char *placements)
{
    const char *text = dt_spec_text(source);
    char *made = make_text(dt_mesh_context(mesh), "%.*s@%s", (int)strcspn(text, "@"), text, placements);
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

static bool set_topology(dt_context *ctx, const char *text)
{
    if (!text) return true;
    int argc = 2;
    char *option = make_text(ctx, "--dt-topology=%s", text), *words[] = { NULL, option, NULL }, **argv = words;
    if (option) dt_options_read(ctx, &argc, &argv);
    free(option);
    return dt_context_status(ctx) == DT_OK;
}

/* ---- dims of a step ---------------------------------------------------------------------------------------------- */

typedef void (*name_fn)(const char *name, size_t n, void *arg);

static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* Does a name stand among the first n characters of a text of dims? */
static bool stands_before(const char *text, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i + length <= n; i++)
        if ((i == 0 || !is_name_char(text[i - 1])) && strncmp(text + i, name, length) == 0
            && !is_name_char(text[i + length]))
            return true;
    return false;
}

/* Each mesh dim of a step once: of "x,y", or, from mesh to mesh, of "x=4 > a=2,x=2". */
static void each_dim(const char *dims, name_fn fn, void *arg)
{
    for (const char *at = dims; *at;) {
        size_t n = 0;
        while (is_name_char(at[n])) n++;
        bool is_name = n && isalpha((unsigned char)*at);
        if (is_name && !stands_before(dims, (size_t)(at - dims), at, n)) fn(at, n, arg);
        at += n ? n : 1;
    }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_dtypes(FILE *out, const dt_plan_step *step)
{
    fputs(dt_dtype_text(step->travels), out);
    if (step->sums) fprintf(out, ", sums in %s", dt_dtype_text(step->sums_in));
    if (step->gives != step->travels) fprintf(out, ", gives %s", dt_dtype_text(step->gives));
}

static void put_steps(FILE *out, const dt_plan *plan)
{
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

static bool print_aligned(FILE *out, const char *columns, FILE *cells, char **text)
{
    bool made = cells && fclose(cells) == 0;
    if (made) tool_align(out, *text, columns);
    free(*text);
    *text = NULL;
    return made;
}

/* What a run said, NULL: none was asked for. */
static void put_run(FILE *out, const run_result *ran)
{
    if (ran)
        fprintf(out, "run\t%.3f\tus on threads of this machine, %s\n", ran->us, ran->verified ? "verified" : "WRONG");
}

static bool print_text(FILE *out, const ends *made, const dt_plan *plan, const dt_plan_cost *cost,
                       const run_result *ran)
{
    dt_mesh *from = dt_spec_mesh(made->source), *to = dt_spec_mesh(made->target);
    char *text = NULL;
    size_t bytes;
    fprintf(out, "source  %s  on %s\ntarget  %s  on %s\n\n", dt_spec_text(made->source), dt_mesh_text(from),
            dt_spec_text(made->target), dt_mesh_text(to));
    FILE *cells = open_memstream(&text, &bytes);
    if (cells && dt_plan_step_count(plan)) put_steps(cells, plan);
    else if (cells) fputs("nothing to do\n", cells);
    if (!print_aligned(out, "rllrrl", cells, &text)) return false;
    fputc('\n', out);
    cells = open_memstream(&text, &bytes);
    if (cells) put_cost(cells, dt_mesh_context(from), cost);
    if (cells) put_run(cells, ran);
    return print_aligned(out, "lrl", cells, &text);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_json_dim(const char *name, size_t n, void *arg)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    json_text(arg, NULL, text);
}

static void put_json_step(json *j, const dt_plan_step *step)
{
    json_begin(j, NULL, JSON_OBJECT, JSON_ONE_LINE);
    json_text(j, "kind", dt_comm_kind_text(step->kind));
    json_begin(j, "dims", JSON_ARRAY, JSON_ONE_LINE);
    each_dim(step->dims, put_json_dim, j);
    json_end(j);
    json_int(j, "bytes", step->bytes);
    json_int(j, "messages", step->messages);
    json_bool(j, "sums", step->sums);
    json_text(j, "travels", dt_dtype_text(step->travels));
    json_text(j, "sums_in", step->sums ? dt_dtype_text(step->sums_in) : NULL);
    json_text(j, "gives", dt_dtype_text(step->gives));
    json_end(j);
}

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
    json_begin(&j, "steps", JSON_ARRAY, JSON_LINES);
    for (int i = 0; i < dt_plan_step_count(plan); i++) {
        dt_plan_step step = dt_plan_step_at(plan, i);
        put_json_step(&j, &step);
    }
    json_end(&j);
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
    if (!set_topology(ctx, call->values[OPTION_TOPOLOGY]) || !make_ends(call, ctx, &made)) return false;
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
    if (!set_topology(ctx, call->values[OPTION_TOPOLOGY]) || !make_ends(call, ctx, &made))
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
    int ranks = 0;
    if (!call->values[OPTION_MESH])
        return tool_fail(call->command, TOOL_USAGE, "expected --mesh, the mesh of SOURCE; see dt redistribute --help");
    int status = count_ranks(call, &ranks);
    if (status != TOOL_OK) return status;
    dt_context *ctx = dt_context_dry(ranks);
    if (!ctx) return tool_fail(call->command, TOOL_FAILED, "out of memory");
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
