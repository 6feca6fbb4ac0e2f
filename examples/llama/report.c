/* SPDX-License-Identifier: Apache-2.0
 *
 * Text on rank 0. Numbers per step are means over the steps of this run. */
#include "report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMS = 4096, MAX_PATH = 128, LINES = 20 };

/* ---- where parameters lie ---------------------------------------------------------------------------------------- */

/* "layers.#.attn.wq.weight" of "layers.3.attn.wq.weight". */
static void without_numbers(const char *path, char *text)
{
    size_t n = 0;
    for (const char *at = path; *at && n + 1 < MAX_PATH; at++) {
        bool digit = isdigit((unsigned char)*at) != 0, again = n && text[n - 1] == '#';
        if (digit && again) continue;
        text[n++] = digit ? '#' : *at;
    }
    text[n] = 0;
}

static bool alike(dt_tensor *x, dt_tensor *y)
{
    char a[MAX_PATH], b[MAX_PATH];
    without_numbers(dt_param_path(x), a);
    without_numbers(dt_param_path(y), b);
    return strcmp(a, b) == 0 && dt_tensor_spec(x) == dt_tensor_spec(y);
}

static int64_t elements(const dt_tensor *x)
{
    dt_shape shape = dt_spec_shape(dt_tensor_spec(x));
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.dim[d];
    return n;
}

static void print_param(dt_context *ctx, dt_tensor *const *params, int n, int i)
{
    char path[MAX_PATH];
    int times = 0;
    for (int k = 0; k < i; k++)
        if (alike(params[k], params[i])) return;
    for (int k = i; k < n; k++) times += alike(params[k], params[i]);
    without_numbers(dt_param_path(params[i]), path);
    dt_print(ctx, "  %-28s %3d x  %s\n", times > 1 ? path : dt_param_path(params[i]), times,
             dt_spec_text(dt_tensor_spec(params[i])));
}

void report_model(dt_module *model)
{
    dt_context *ctx = dt_module_context(model);
    dt_tensor **params = malloc(MOST_PARAMS * sizeof *params);
    int n = params ? dt_module_params(model, NULL, params, MOST_PARAMS) : 0;
    int64_t size = 0;
    if (n > MOST_PARAMS) n = MOST_PARAMS;
    for (int i = 0; i < n; i++) size += elements(params[i]);
    dt_print(ctx, "mesh %s, %d ranks\n%" PRId64 " numbers in %d parameters, stored as\n",
             dt_mesh_text(dt_module_mesh(model)), dt_rank_count(ctx), size, n);
    for (int i = 0; i < n; i++) print_param(ctx, params, n, i);
    dt_print(ctx, "\n");
    free(params);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

bool report_begin(report *r, dt_mesh *mesh, int64_t first, int64_t steps, int64_t tokens)
{
    dt_context *ctx = dt_mesh_context(mesh);
    *r = (report){ .mesh = mesh, .first = first, .steps = steps, .tokens = tokens };
    int64_t n = steps > first ? steps - first : 1;
    r->loss = malloc((size_t)n * sizeof *r->loss);
    if (!r->loss) return dt_context_fail(ctx, DT_ERR_MEMORY, "no memory for %" PRId64 " losses", n), false;
    r->before = dt_mesh_counters(mesh, NULL);
    r->begin = dt_context_time(ctx);
    dt_print(ctx, "   step    loss  |grad|        lr  tokens/s  time left  memory MiB  received KiB/step\n");
    return true;
}

static int64_t received(const dt_counters *now, const dt_counters *before)
{
    int64_t bytes = 0;
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) bytes += now->bytes[kind] - before->bytes[kind];
    return bytes;
}

void report_step(report *r, int64_t step, double loss, double norm, double lr)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    int64_t every = (r->steps - r->first + LINES - 1) / LINES;
    if (dt_context_status(ctx)) return;
    r->loss[r->count++] = loss;
    if (step != r->first && step != r->steps - 1 && (every == 0 || step % every)) return;
    dt_counters now = dt_mesh_counters(r->mesh, NULL);
    double seconds = dt_context_time(ctx) - r->begin, each = seconds / (double)r->count;
    dt_print(ctx, "%7" PRId64 "  %6.4f  %6.3f  %8.2e  %8.0f  %7.0f s  %10.1f  %17.1f\n", step, loss, norm, lr,
             each > 0 ? (double)r->tokens / each : 0, each * (double)(r->steps - 1 - step),
             (double)now.memory_peak / 1048576, (double)received(&now, &r->before) / 1024 / (double)r->count);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static void print_kinds(const report *r, const char *dim)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    dt_counters now = dt_mesh_counters(r->mesh, dim);
    for (int kind = 0; kind < DT_COMM_KIND_COUNT; kind++) {
        double calls = (double)now.calls[kind] / (double)r->count;
        double kib = (double)now.bytes[kind] / 1024 / (double)r->count;
        if (now.calls[kind] == 0 || kind == DT_COMM_LOCAL) continue;
        dt_print(ctx, "  %-12s %-16s %8.1f calls  %10.1f KiB\n", dim ? dim : "all dims",
                 dt_comm_kind_text((dt_comm_kind)kind), calls, kib);
    }
}

void report_collectives(const report *r)
{
    if (r->count == 0) return;
    dt_print(dt_mesh_context(r->mesh), "\ncommunication per step, by mesh dim and kind; what crosses two dims counts "
             "for both\n");
    for (int m = 0; m < dt_mesh_dim_count(r->mesh); m++) print_kinds(r, dt_mesh_dim_name(r->mesh, m));
    print_kinds(r, NULL);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct curve { int64_t *step; double *loss; int64_t n, room; } curve;

static void add_point(curve *c, int64_t step, double loss)
{
    if (c->n == c->room) return;
    c->step[c->n] = step;
    c->loss[c->n++] = loss;
}

/* What earlier runs wrote, up to the first step of this one. */
static void read_csv(curve *c, const char *path, int64_t before)
{
    FILE *file = *path ? fopen(path, "r") : NULL;
    char line[128];
    long long step;
    double loss;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%lld,%lf", &step, &loss) == 2 && step < before) add_point(c, step, loss);
    if (file) fclose(file);
}

static bool write_csv(const curve *c, const char *path)
{
    FILE *file = *path ? fopen(path, "w") : NULL;
    if (!*path) return true;
    if (!file) return false;
    fprintf(file, "step,loss\n");
    for (int64_t i = 0; i < c->n; i++) fprintf(file, "%" PRId64 ",%.9g\n", c->step[i], c->loss[i]);
    return fclose(file) == 0;
}

enum { WIDE = 720, HIGH = 400, EDGE = 56 };

static double across(const curve *c, int64_t i)
{
    int64_t span = c->step[c->n - 1] - c->step[0];
    return EDGE + (double)(WIDE - 2 * EDGE) * (span ? (double)(c->step[i] - c->step[0]) / (double)span : 0.5);
}

static double down(double loss, double most) { return HIGH - EDGE - (HIGH - 2 * EDGE) * loss / most; }

/* From 0 to the largest, with four lines between. */
static void draw(FILE *file, const curve *c, double most)
{
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                  "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", WIDE, HIGH, WIDE, HIGH);
    for (int i = 0; i <= 4; i++) {
        double y = down(most * i / 4, most);
        fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f"
                      "</text>\n", EDGE, y, WIDE - EDGE, EDGE - 6, y + 4, most * i / 4);
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\">loss</text>\n<text x=\"%d\" y=\"%d\">step %" PRId64 "</text>\n", EDGE,
            EDGE - 12, EDGE, HIGH - EDGE + 20, c->step[0]);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRId64 "</text>\n", WIDE - EDGE, HIGH - EDGE + 20,
            c->step[c->n - 1]);
    fprintf(file, "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"1.5\" points=\"");
    for (int64_t i = 0; i < c->n; i++) fprintf(file, "%.1f,%.1f ", across(c, i), down(c->loss[i], most));
    fprintf(file, "\"/>\n</svg>\n");
}

static bool write_svg(const curve *c, const char *path)
{
    FILE *file = *path ? fopen(path, "w") : NULL;
    double most = 0;
    if (!*path) return true;
    if (!file) return false;
    for (int64_t i = 0; i < c->n; i++)
        if (c->loss[i] > most) most = c->loss[i];
    if (c->n) draw(file, c, most > 0 ? most : 1);
    return fclose(file) == 0;
}

void report_files(const report *r, const char *csv, const char *svg)
{
    dt_context *ctx = dt_mesh_context(r->mesh);
    size_t room = (size_t)(r->first + r->count);
    if (dt_rank(ctx) != 0 || dt_context_status(ctx) || room == 0 || !(*csv || *svg)) return;
    curve c = { malloc(room * sizeof *c.step), malloc(room * sizeof *c.loss), 0, (int64_t)room };
    if (c.step && c.loss) {
        read_csv(&c, csv, r->first);
        for (int64_t i = 0; i < r->count; i++) add_point(&c, r->first + i, r->loss[i]);
        if (!write_csv(&c, csv)) dt_context_fail(ctx, DT_ERR_IO, "cannot write %s", csv);
        else if (!write_svg(&c, svg)) dt_context_fail(ctx, DT_ERR_IO, "cannot write %s", svg);
    }
    free(c.step);
    free(c.loss);
}

void report_end(report *r) { free(r->loss); }
