/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes: notation, sizes from the run, views, interning, errors. Coordinates are compared with a model that is a plain
 * table of ranks, through random chains of views. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dtensor/dtensor.h>

#include "mesh/draft.h"
#include "errors.h"
#include "suite.h"

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/* A context of rank `rank` of n, with DT_MESH and DT_TOPOLOGY as given; NULL: unset. */
static dt_context *context_with(int n, int rank, const char *mesh, const char *topology)
{
    if (mesh) setenv("DT_MESH", mesh, 1);
    if (topology) setenv("DT_TOPOLOGY", topology, 1);
    dt_context *ctx = dt_context_dry(n);
    unsetenv("DT_MESH");
    unsetenv("DT_TOPOLOGY");
    if (expect(ctx != NULL, "a context of %d ranks", n)) ctx->rank = rank;
    return ctx;
}

static dt_context *context_of(int n, int rank) { return context_with(n, rank, NULL, NULL); }

static void expect_text(const dt_mesh *mesh, const char *text)
{
    dt_context *ctx = dt_mesh_context(mesh);
    expect(mesh != NULL, "a mesh %s", text);
    expect(strcmp(dt_mesh_text(mesh), text) == 0, "got mesh %s, expected %s: %s", dt_mesh_text(mesh), text,
           ctx ? dt_context_error(ctx) : "");
}

/* ---- create ----------------------------------------------------------------------------------------------------- */

typedef struct create_row { int n; const char *text, *option, *result; } create_row;

static const create_row creates[] = {
    { 8, "dp=2,tp=4", NULL, "dp=2,tp=4" },
    { 8, "dp,tp=4", NULL, "dp=2,tp=4" },
    { 8, "dp=2,tp", NULL, "dp=2,tp=4" },
    { 8, "dp,tp", NULL, "dp=8,tp=1" },
    { 8, "pp=2,dp,tp,ep", NULL, "pp=2,dp=4,tp=1,ep=1" },
    { 8, "dp=8,tp", NULL, "dp=8,tp=1" },
    { 1, "dp,tp", NULL, "dp=1,tp=1" },
    { 1, "dp=1", NULL, "dp=1" },
    { 6, NULL, NULL, "ranks=6" },
    { 8, "dp,tp", "dp=2,tp=4", "dp=2,tp=4" },
    { 8, "tp,dp", "dp=2,tp=4", "tp=4,dp=2" },
    { 8, "dp,tp", "tp=4", "dp=2,tp=4" },
    { 16, "pp,dp,tp", "tp=2", "pp=8,dp=1,tp=2" },
    { 8, "dp=4,tp", "dp=2,tp=2", "dp=4,tp=2" },      /* what the program writes comes first                        */
    { 8, "dp=8", "pp=3", "dp=8" },                   /* nothing is taken from it                                   */
    { 8, NULL, "a=2,b=2,c=2", "a=2,b=2,c=2" },
    { 8, NULL, "a=1,b=8", "a=1,b=8" },
    { 8, "dp,tp", "", "dp=8,tp=1" },
    { 4, "tp.0=2,tp.1=2", NULL, "tp.0=2,tp.1=2" },
    { 4, "a_b=2,C9.10.3=2", NULL, "a_b=2,C9.10.3=2" },
    { 4, "a=02,b=2", NULL, "a=2,b=2" },
    { 2, "a123456789012345678901234567890123456789012345678901234567890bc=2", NULL,
      "a123456789012345678901234567890123456789012345678901234567890bc=2" },
    { 1, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", NULL, "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1" },
    { INT_MAX, "dp", NULL, "dp=2147483647" },
    { 1 << 30, "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2,j=2,k=2,l=2,m=2,n=2,o=2,p", NULL,
      "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2,j=2,k=2,l=2,m=2,n=2,o=2,p=32768" },
};

static void test_create(void)
{
    for (int i = 0; i < DT_COUNT(creates); i++) {
        dt_context *ctx = context_with(creates[i].n, 0, creates[i].option, NULL);
        dt_mesh *mesh = dt_mesh_create(ctx, creates[i].text);
        expect_text(mesh, creates[i].result);
        expect(dt_mesh_size(mesh, NULL) == creates[i].n, "%s: %d ranks", creates[i].result, dt_mesh_size(mesh, NULL));
        expect(dt_mesh_create(ctx, dt_mesh_text(mesh)) == mesh, "%s parses back", creates[i].result);
        expect_no_error(ctx, creates[i].result);
        dt_context_destroy(&ctx);
    }
}

typedef struct refusal { int n; const char *text, *option; dt_status status; const char *part; } refusal;

static const refusal refused_creates[] = {
    { 8, "", NULL, DT_ERR_PARSE, "mesh \"\": expected a name, got the end at column 1" },
    { 8, "dp=2,", NULL, DT_ERR_PARSE, "at column 6" },
    { 8, ",dp", NULL, DT_ERR_PARSE, "at column 1" },
    { 8, "dp=", NULL, DT_ERR_PARSE, "expected a size, got the end at column 4" },
    { 8, "dp=x", NULL, DT_ERR_PARSE, "expected a size, got \"x\" at column 4" },
    { 8, "dp=-2", NULL, DT_ERR_PARSE, "at column 4" },
    { 8, "dp=2 ,tp=4", NULL, DT_ERR_PARSE, "expected \",\", got \" \" at column 5" },
    { 8, "dp=2;tp=4", NULL, DT_ERR_PARSE, "at column 5" },
    { 8, "2dp=8", NULL, DT_ERR_PARSE, "expected a name" },
    { 8, "dp.=8", NULL, DT_ERR_PARSE, "at column 3" },
    { 8, "dp=2,tp=2,dp=2", NULL, DT_ERR_PARSE, "\"dp\" stands twice at column 11" },
    { 8, "a123456789012345678901234567890123456789012345678901234567890bcd=8", NULL, DT_ERR_PARSE, "63" },
    { 8, "dp=99999999999999999999", NULL, DT_ERR_PARSE, "at column 4" },
    { 8, "dp=0,tp=8", NULL, DT_ERR_ARG, "expected a size from 1 to 2147483647, got 0 at column 4" },
    { 8, "dp,tp=2147483648", NULL, DT_ERR_ARG, "got 2147483648 at column 7" },
    { 8, "a=65536,b=65536,c", NULL, DT_ERR_ARG, "divides 8" },
    { 8, "a=2147483647,b=2147483647,c=2147483647,d=2147483647,e=2147483647", NULL, DT_ERR_ARG, "product is 8" },
    { 1, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL, DT_ERR_ARG, "at most 16 names, got one more at column 33" },
    { 8, "dp=2,tp=2", NULL, DT_ERR_ARG, "expected sizes whose product is 8, got dp=2,tp=2" },
    { 8, "dp=4,tp=4", NULL, DT_ERR_ARG, "expected sizes whose product is 8, got dp=4,tp=4" },
    { 8, "dp=3,tp", NULL, DT_ERR_ARG, "mesh \"dp=3,tp\": expected sizes whose product divides 8, got dp=3,tp" },
    { 8, "dp=16,tp", NULL, DT_ERR_ARG, "divides 8" },
    { 8, "dp,tp", "dp=2,tp=3", DT_ERR_ARG, "mesh \"dp,tp\": expected sizes whose product is 8, got dp=2,tp=3" },
    { 8, "dp,tp", "dp=3", DT_ERR_ARG, "expected sizes whose product divides 8, got dp=3,tp" },
    { 8, "dp,tp", "pp=2,dp=2,tp=2", DT_ERR_ARG, "--dt-mesh \"pp=2,dp=2,tp=2\": mesh \"dp,tp\" has no dim \"pp\"" },
    { 8, "dp=4,tp", "pp=1", DT_ERR_ARG, "has no dim \"pp\"" },
    { 8, "dp,tp", "dp=2,tp", DT_ERR_PARSE, "--dt-mesh \"dp=2,tp\": expected \"=\" and a number, got the end" },
    { 8, NULL, "dp", DT_ERR_PARSE, "--dt-mesh \"dp\"" },
    { 8, NULL, "dp=2,tp=2", DT_ERR_ARG, "--dt-mesh \"dp=2,tp=2\": expected sizes whose product is 8" },
    { 8, NULL, "dp=0", DT_ERR_ARG, "--dt-mesh \"dp=0\": expected a size from 1" },
    { 8, NULL, "dp=2,dp=4", DT_ERR_PARSE, "stands twice" },
};

static void test_create_refused(void)
{
    for (int i = 0; i < DT_COUNT(refused_creates); i++) {
        const refusal *row = &refused_creates[i];
        dt_context *ctx = context_with(row->n, 0, row->option, NULL);
        expect(dt_mesh_create(ctx, row->text) == NULL, "\"%s\" is refused", row->text ? row->text : "NULL");
        expect_error(ctx, row->status, row->part, row->text ? row->text : row->option);
        dt_context_destroy(&ctx);
    }
}

static void test_option_line(void)
{
    char program[] = "program", option[] = "--dt-mesh=dp=2,tp=4", rest[] = "file";
    char *args[] = { program, option, rest, NULL }, **argv = args;
    int argc = 3;
    dt_context *ctx = context_with(8, 0, "dp=8,tp=1", NULL);
    expect_text(dt_mesh_create(ctx, "dp,tp"), "dp=8,tp=1");
    expect(dt_options_read(ctx, &argc, &argv) == DT_OK, "%s", dt_context_error(ctx));
    expect(argc == 2, "the option is taken from the line");
    expect_text(dt_mesh_create(ctx, "dp,tp"), "dp=2,tp=4");
    expect_text(dt_mesh_create(ctx, NULL), "dp=2,tp=4");
    dt_context_destroy(&ctx);
}

/* ---- what a mesh answers ---------------------------------------------------------------------------------------- */

static void test_questions(void)
{
    dt_context *ctx = context_of(24, 17);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=1,c=3,d=4");
    expect(dt_mesh_dim_count(mesh) == 4, "dims of size 1 count");
    expect(strcmp(dt_mesh_dim_name(mesh, 1), "b") == 0 && strcmp(dt_mesh_dim_name(mesh, 3), "d") == 0, "names");
    expect(dt_mesh_dim_name(mesh, -1) == NULL && dt_mesh_dim_name(mesh, 4) == NULL, "no name out of range");
    expect(dt_mesh_size(mesh, "a") == 2 && dt_mesh_size(mesh, "b") == 1 && dt_mesh_size(mesh, "d") == 4, "sizes");
    expect(dt_mesh_coord(mesh, "a") == 1 && dt_mesh_coord(mesh, "b") == 0, "17 = 1 * 12 + 1 * 4 + 1");
    expect(dt_mesh_coord(mesh, "c") == 1 && dt_mesh_coord(mesh, "d") == 1, "17 = 1 * 12 + 1 * 4 + 1");
    expect(dt_mesh_coord(mesh, NULL) == 17 && dt_mesh_size(mesh, NULL) == 24, "the whole mesh");
    expect(dt_mesh_rank(mesh, 23) == 23 && dt_mesh_rank(mesh, 0) == 0, "a mesh over all ranks");
    expect(dt_mesh_rank(mesh, 24) == -1 && dt_mesh_rank(mesh, -1) == -1, "-1 out of range");
    expect(dt_mesh_context(mesh) == ctx, "its context");
    expect_no_error(ctx, "questions");

    expect(dt_mesh_size(mesh, "x") == 0, "an unknown dim has no size");
    expect_error(ctx, DT_ERR_ARG, "mesh \"a=2,b=1,c=3,d=4\" has no dim \"x\"", "size");
    expect(dt_mesh_coord(mesh, "aa") == -1, "an unknown dim has no coordinate");
    expect_error(ctx, DT_ERR_ARG, "no dim \"aa\"", "coord");
    expect(dt_mesh_coord(mesh, "") == -1, "nor has the empty name");
    expect_error(ctx, DT_ERR_ARG, "no dim \"\"", "coord");
    dt_context_destroy(&ctx);
}

static void test_counters(void)
{
    static const dt_counters zero;
    dt_context *ctx = context_of(4, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=2");
    dt_counters all = dt_mesh_counters(mesh, NULL), tp = dt_mesh_counters(mesh, "tp");
    dt_counters none = dt_mesh_counters(NULL, "x");
    expect(memcmp(&all, &zero, sizeof zero) == 0 && memcmp(&tp, &zero, sizeof zero) == 0, "nothing communicated");
    expect(memcmp(&none, &zero, sizeof zero) == 0, "nothing without a mesh");
    expect_no_error(ctx, "counters");
    dt_mesh_counters(mesh, "x");
    expect_error(ctx, DT_ERR_ARG, "no dim \"x\"", "counters");
    dt_context_destroy(&ctx);
}

static void test_null(void)
{
    expect(dt_mesh_create(NULL, "dp=2") == NULL, "create");
    expect(dt_mesh_slice(NULL, "dp") == NULL && dt_mesh_select(NULL, "dp=0") == NULL, "slice, select");
    expect(dt_mesh_flatten(NULL, "a,b", "c") == NULL && dt_mesh_split(NULL, "a", "b=2,c") == NULL, "flatten, split");
    expect(dt_mesh_size(NULL, NULL) == 0 && dt_mesh_size(NULL, "a") == 0, "size");
    expect(dt_mesh_coord(NULL, NULL) == -1 && dt_mesh_coord(NULL, "a") == -1, "coord");
    expect(dt_mesh_rank(NULL, 0) == -1 && dt_mesh_dim_count(NULL) == 0, "rank, dim count");
    expect(dt_mesh_dim_name(NULL, 0) == NULL && dt_mesh_context(NULL) == NULL, "dim name, context");
    expect(strcmp(dt_mesh_text(NULL), "") == 0, "text");
}

static void test_failed_context(void)
{
    dt_context *ctx = context_of(8, 5);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    dt_context_fail(ctx, DT_ERR_STATE, "something else");
    expect(dt_mesh_create(ctx, "dp=2,tp=4") == NULL && dt_mesh_create(ctx, "dp=8") == NULL, "create");
    expect(dt_mesh_slice(mesh, "dp") == NULL && dt_mesh_select(mesh, "dp=0") == NULL, "slice, select");
    expect(dt_mesh_flatten(mesh, "dp,tp", "x") == NULL && dt_mesh_split(mesh, "tp", "a=2,b") == NULL, "flatten, split");
    expect_text(mesh, "dp=2,tp=4");
    expect(dt_mesh_size(mesh, "tp") == 4 && dt_mesh_size(mesh, NULL) == 8, "sizes are still answered");
    expect(dt_mesh_coord(mesh, "tp") == 1 && dt_mesh_coord(mesh, NULL) == 5, "coordinates are still answered");
    expect(dt_mesh_rank(mesh, 3) == 3 && dt_mesh_dim_count(mesh) == 2, "ranks are still answered");
    expect(dt_mesh_size(mesh, "x") == 0 && dt_mesh_coord(mesh, "x") == -1, "an unknown dim");
    expect_error(ctx, DT_ERR_STATE, "something else", "the first error stays");
    expect(dt_mesh_slice(mesh, "dp") != NULL, "a cleared context makes meshes again");
    dt_context_destroy(&ctx);
}

/* ---- one pointer, one event ------------------------------------------------------------------------------------- */

typedef struct seen { int meshes; char text[64]; const void *object; } seen;

static void see(const dt_event *event, void *arg)
{
    seen *log = arg;
    if (event->kind != DT_EVENT_MESH) return;
    log->meshes++;
    snprintf(log->text, sizeof log->text, "%s", event->text);
    log->object = event->object;
}

static void test_interned(void)
{
    dt_context *ctx = context_of(8, 0);
    seen log = { 0 };
    dt_context_observe(ctx, see, &log);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=4");
    expect(log.meshes == 1 && log.object == mesh && strcmp(log.text, "dp=2,tp=4") == 0, "an event for a new mesh");
    expect(dt_mesh_create(ctx, "dp,tp=4") == mesh && log.meshes == 1, "an equal mesh is the same, without an event");
    expect(dt_mesh_create(ctx, "dp=2,TP=4") != mesh, "names differ");
    expect(dt_mesh_create(ctx, "dp=4,tp=2") != mesh, "sizes differ");
    expect(dt_mesh_create(ctx, "tp=4,dp=2") != mesh, "order differs");
    expect(dt_mesh_create(ctx, "dp=2,tp=4,x=1") != mesh, "dims differ");
    expect(log.meshes == 5, "%d events", log.meshes);
    dt_mesh *flat = dt_mesh_flatten(mesh, "dp,tp", "x");
    expect(flat == dt_mesh_create(ctx, "x=8"), "a view equals the mesh made directly");
    expect(dt_mesh_split(flat, "x", "dp=2,tp") == mesh, "and back");
    expect(dt_mesh_slice(mesh, "dp,tp") == mesh, "a slice of all dims in order is the mesh");
    expect(dt_mesh_flatten(mesh, "tp", "tp") == mesh, "a dim flattened to itself");
    expect(dt_mesh_split(mesh, "tp", "tp") == mesh, "a dim split into itself");
    expect(dt_mesh_select(mesh, "dp=0") == dt_mesh_slice(mesh, "tp"), "rank 0 stands at dp=0");
    expect(dt_mesh_select(mesh, "dp=1") != dt_mesh_select(mesh, "dp=0"), "bases differ");
    for (int i = 0; i < 1000; i++) { /* more than one table's worth, found again */
        char text[32];
        snprintf(text, sizeof text, "a%d=8", i);
        dt_mesh *many = dt_mesh_create(ctx, text);
        expect(many == dt_mesh_create(ctx, text), "%s is kept", text);
    }
    expect(dt_mesh_create(ctx, "dp=2,tp=4") == mesh, "still the same");
    expect_no_error(ctx, "interned");
    dt_context_destroy(&ctx);
}

/* Meshes that a hash does not tell apart are told apart by what they are. */
static void test_same_hash(void)
{
    static const char *const pairs[][2] = {
        { "dp=2,tp=4", "dp=2,tq=4" }, { "dp=2,tp=4", "dp=4,tp=2" }, { "dp=2,tp=4", "dp=2,tp=4,x=1" },
        { "dp=8", "dpp=8" }, { "dp=1,tp=8", "dp=8,tp=1" },
    };
    for (int i = 0; i < DT_COUNT(pairs); i++) {
        dt_context *ctx = context_of(8, 0), *other = context_of(8, 0);
        dt_mesh *a = dt_mesh_create(ctx, pairs[i][0]), *b = dt_mesh_create(other, pairs[i][1]);
        dti_table_add(&dti_mesh_state_get(ctx)->meshes, b->hash, a);
        expect_text(dt_mesh_create(ctx, pairs[i][1]), pairs[i][1]);
        dt_context_destroy(&ctx);
        dt_context_destroy(&other);
    }
    dt_context *ctx = context_of(8, 0), *other = context_of(8, 0);
    dt_mesh *first = dt_mesh_select(dt_mesh_create(ctx, "dp=2,tp=4"), "dp=0");
    dt_mesh *second = dt_mesh_select(dt_mesh_create(other, "dp=2,tp=4"), "dp=1");
    dti_table_add(&dti_mesh_state_get(ctx)->meshes, second->hash, first);
    expect(dt_mesh_rank(dt_mesh_select(dt_mesh_create(ctx, "dp=2,tp=4"), "dp=1"), 0) == 4, "bases are told apart");
    dt_context_destroy(&ctx);
    dt_context_destroy(&other);
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

typedef enum view_kind { SLICE, SELECT, FLATTEN, SPLIT, VIEW_COUNT } view_kind;

static dt_mesh *view(dt_mesh *mesh, view_kind kind, const char *a, const char *b)
{
    switch (kind) {
    case SLICE: return dt_mesh_slice(mesh, a);
    case SELECT: return dt_mesh_select(mesh, a);
    case FLATTEN: return dt_mesh_flatten(mesh, a, b);
    case SPLIT: return dt_mesh_split(mesh, a, b);
    case VIEW_COUNT: break;
    }
    return NULL;
}

typedef struct view_row { const char *mesh; view_kind kind; const char *a, *b, *result; } view_row;

static const view_row views[] = { /* of 24 ranks */
    { "a=2,b=3,c=4", SLICE, "b", NULL, "b=3" },
    { "a=2,b=3,c=4", SLICE, "c,a", NULL, "c=4,a=2" },
    { "a=2,b=3,c=4", SELECT, "b=2", NULL, "a=2,c=4" },
    { "a=2,b=3,c=4", SELECT, "c=0,a=1", NULL, "b=3" },
    { "a=2,b=3,c=4", SELECT, "c=0,a=1,b=2", NULL, "" },
    { "a=2,b=3,c=4", FLATTEN, "b,c", "x", "a=2,x=12" },
    { "a=2,b=3,c=4", FLATTEN, "c,a", "x", "b=3,x=8" },
    { "a=2,b=3,c=4", FLATTEN, "a,c", "x", "x=8,b=3" },
    { "a=2,b=3,c=4", FLATTEN, "b", "x", "a=2,x=3,c=4" },
    { "a=2,b=3,c=4", FLATTEN, "a,c", "c", "c=8,b=3" },
    { "a=2,b=12", SPLIT, "b", "x=3,y=4", "a=2,x=3,y=4" },
    { "a=2,b=12", SPLIT, "b", "x,y=4", "a=2,x=3,y=4" },
    { "a=2,b=12", SPLIT, "b", "x=3,y", "a=2,x=3,y=4" },
    { "a=2,b=12", SPLIT, "b", "b=3,y", "a=2,b=3,y=4" },
    { "a=2,b=12", SPLIT, "b", "b.0=12,b.1", "a=2,b.0=12,b.1=1" },
    { "a=2,b=12", SPLIT, "b", "x=1,y=2,z=6", "a=2,x=1,y=2,z=6" },
    { "a=2,b=12", SPLIT, "b", "x", "a=2,x=12" },
    { "a=24,b=1", SPLIT, "b", "x,y=1", "a=24,x=1,y=1" },
};

static void test_views(void)
{
    for (int i = 0; i < DT_COUNT(views); i++) {
        dt_context *ctx = context_of(24, 7);
        const view_row *row = &views[i];
        dt_mesh *mesh = dt_mesh_create(ctx, row->mesh);
        expect_text(view(mesh, row->kind, row->a, row->b), row->result);
        expect_text(mesh, row->mesh);
        dt_context_destroy(&ctx);
    }
}

typedef struct view_refusal { view_kind kind; const char *a, *b; dt_status status; const char *part; } view_refusal;

static const view_refusal refused_views[] = { /* of a=2,b=3,c=4 */
    { SLICE, "a,x", NULL, DT_ERR_ARG, "mesh dims \"a,x\": mesh \"a=2,b=3,c=4\" has no dim \"x\" at column 3" },
    { SLICE, "a,b,a", NULL, DT_ERR_ARG, "\"a\" stands twice at column 5" },
    { SLICE, "", NULL, DT_ERR_PARSE, "expected a name, got the end" },
    { SLICE, "a=1", NULL, DT_ERR_PARSE, "expected \",\", got \"=\" at column 2" },
    { SLICE, NULL, NULL, DT_ERR_ARG, "got NULL" },
    { SELECT, "x=0", NULL, DT_ERR_ARG, "mesh coordinates \"x=0\": mesh \"a=2,b=3,c=4\" has no dim \"x\"" },
    { SELECT, "a=0,b=3", NULL, DT_ERR_ARG, "expected a coordinate from 0 to 2 along \"b\", got 3 at column 7" },
    { SELECT, "a=2147483648", NULL, DT_ERR_ARG, "at column 3" },
    { SELECT, "a=-1", NULL, DT_ERR_PARSE, "expected a coordinate" },
    { SELECT, "a", NULL, DT_ERR_PARSE, "expected \"=\"" },
    { SELECT, "a=0,a=0", NULL, DT_ERR_ARG, "stands twice" },
    { SELECT, "", NULL, DT_ERR_PARSE, "expected a name" },
    { SELECT, NULL, NULL, DT_ERR_ARG, "got NULL" },
    { FLATTEN, "a,x", "y", DT_ERR_ARG, "no dim \"x\"" },
    { FLATTEN, "a,a", "y", DT_ERR_ARG, "stands twice" },
    { FLATTEN, "a,b", "c", DT_ERR_ARG, "mesh \"a=2,b=3,c=4\" has a dim \"c\" already" },
    { FLATTEN, "a,b", "", DT_ERR_PARSE, "expected a name" },
    { FLATTEN, "a,b", "x,y", DT_ERR_PARSE, "expected the end of the name, got \",\" at column 2" },
    { FLATTEN, "a,b", "x=6", DT_ERR_PARSE, "at column 2" },
    { FLATTEN, "a,b", NULL, DT_ERR_ARG, "got NULL" },
    { FLATTEN, NULL, "x", DT_ERR_ARG, "got NULL" },
    { SPLIT, "x", "y=2,z=2", DT_ERR_ARG, "has no dim \"x\"" },
    { SPLIT, "c", "y=2,z=3", DT_ERR_ARG, "mesh split \"y=2,z=3\": expected sizes whose product is 4, got y=2,z=3" },
    { SPLIT, "c", "y=3,z", DT_ERR_ARG, "expected sizes whose product divides 4, got y=3,z" },
    { SPLIT, "c", "y=2,z,w", DT_ERR_ARG, "only one may be left out at column 8" },
    { SPLIT, "c", "y=2,b=2", DT_ERR_ARG, "has a dim \"b\" already at column 5" },
    { SPLIT, "c", "y=2,y=2", DT_ERR_ARG, "stands twice" },
    { SPLIT, "c", "y=0,z", DT_ERR_ARG, "expected a size from 1" },
    { SPLIT, "c", "y=2,z=2,", DT_ERR_PARSE, "at column 9" },
    { SPLIT, "c", "", DT_ERR_PARSE, "expected a name" },
    { SPLIT, "c", NULL, DT_ERR_ARG, "got NULL" },
    { SPLIT, NULL, "y=4", DT_ERR_ARG, "got NULL" },
    { SPLIT, "c", "d=4,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1,r=1", DT_ERR_ARG,
      "at most 16 dims, got 17" },
};

static void test_views_refused(void)
{
    dt_context *ctx = context_of(24, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=3,c=4");
    for (int i = 0; i < DT_COUNT(refused_views); i++) {
        const view_refusal *row = &refused_views[i];
        expect(view(mesh, row->kind, row->a, row->b) == NULL, "row %d is refused", i);
        expect_error(ctx, row->status, row->part, row->a ? row->a : "NULL");
    }
    expect_text(dt_mesh_split(mesh, "c", "d=4,e,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1"),
                "a=2,b=3,d=4,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1");
    dt_context_destroy(&ctx);
}

static void test_nothing_left(void)
{
    dt_context *ctx = context_of(6, 5);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=3");
    dt_mesh *point = dt_mesh_select(mesh, "a=1,b=2"), *other = dt_mesh_select(mesh, "a=1,b=1");
    expect(point && other && point != other, "two points");
    expect(dt_mesh_dim_count(point) == 0 && dt_mesh_size(point, NULL) == 1, "no dims, one rank");
    expect(dt_mesh_coord(point, NULL) == 0 && dt_mesh_coord(other, NULL) == -1, "rank 5 is a=1, b=2");
    expect(dt_mesh_rank(point, 0) == 5 && dt_mesh_rank(other, 0) == 4 && dt_mesh_rank(point, 1) == -1, "its rank");
    expect(strcmp(dt_mesh_text(point), "") == 0, "its text is empty");
    expect(dt_mesh_size(point, "a") == 0, "its dims are gone");
    expect_error(ctx, DT_ERR_ARG, "mesh \"\" has no dim \"a\"", "size");
    dt_context_destroy(&ctx);
}

static void test_not_a_member(void)
{
    dt_context *ctx = context_of(16, 3);
    dt_mesh *mesh = dt_mesh_create(ctx, "pp=2,dp=2,tp=4");
    dt_mesh *stage = dt_mesh_select(mesh, "pp=1");
    expect(dt_mesh_coord(stage, NULL) == -1 && dt_mesh_coord(stage, "dp") == -1, "rank 3 is not in pp=1");
    expect(dt_mesh_size(stage, NULL) == 8 && dt_mesh_rank(stage, 0) == 8 && dt_mesh_rank(stage, 7) == 15, "its ranks");
    dt_mesh *tp = dt_mesh_slice(stage, "tp"), *dp = dt_mesh_slice(stage, "dp");
    expect(dt_mesh_rank(tp, 0) == 8 && dt_mesh_rank(tp, 3) == 11, "the slice at dp=0");
    expect(dt_mesh_rank(dp, 0) == 8 && dt_mesh_rank(dp, 1) == 12, "the slice at tp=0");
    expect(dt_mesh_coord(tp, "tp") == -1 && dt_mesh_coord(dp, NULL) == -1, "still not a member");
    expect(dt_mesh_coord(dt_mesh_flatten(stage, "dp,tp", "x"), "x") == -1, "nor of a flat view");
    dt_mesh *first = dt_mesh_select(mesh, "dp=0");
    expect(dt_mesh_coord(first, NULL) == 3 && dt_mesh_coord(dt_mesh_select(mesh, "dp=1"), NULL) == -1, "inside a gap");
    expect(dti_mesh_index(first, 11) == 7 && dti_mesh_index(first, 12) == -1, "of other ranks");
    expect(dti_mesh_index(first, 16) == -1 && dti_mesh_index(first, INT_MAX) == -1, "past the end");
    expect(dti_mesh_index(first, -1) == -1 && dti_mesh_index(stage, INT_MIN) == -1, "before the start");
    expect(dti_mesh_coord_of(first, 0, 11) == 1 && dti_mesh_coord_of(first, 1, 4) == -1, "coordinates of other ranks");
    expect_no_error(ctx, "not a member");
    dt_context_destroy(&ctx);
}

static void expect_axes(const dt_mesh *mesh, int dim, int n, const dti_axis *axes)
{
    if (!expect(mesh && mesh->dims[dim].axis_count == n, "dim %d of %s has %d axes, expected %d", dim,
                dt_mesh_text(mesh), mesh ? mesh->dims[dim].axis_count : 0, n)) return;
    for (int a = 0; a < n; a++)
        expect(mesh->dims[dim].axes[a].size == axes[a].size && mesh->dims[dim].axes[a].stride == axes[a].stride,
               "%s, dim %d, axis %d is (%d, %d)", mesh->text, dim, a, mesh->dims[dim].axes[a].size,
               mesh->dims[dim].axes[a].stride);
}

static void test_axes(void)
{
    dt_context *ctx = context_of(24, 0);
    dt_mesh *mesh = dt_mesh_create(ctx, "a=2,b=2,c=6");
    dt_mesh *flat = dt_mesh_flatten(mesh, "a,c", "x"); /* x = (2, 12), (6, 1) */
    expect_axes(flat, 0, 2, (dti_axis[]){ { 2, 12 }, { 6, 1 } });
    dt_mesh *cut = dt_mesh_split(flat, "x", "y=4,z=3");
    expect_axes(cut, 0, 2, (dti_axis[]){ { 2, 12 }, { 2, 3 } });
    expect_axes(cut, 1, 1, (dti_axis[]){ { 3, 1 } });
    expect_axes(dt_mesh_flatten(mesh, "b,c", "x"), 1, 1, (dti_axis[]){ { 12, 1 } });
    expect_axes(dt_mesh_flatten(mesh, "a,b,c", "x"), 0, 1, (dti_axis[]){ { 24, 1 } });
    expect_axes(dt_mesh_flatten(mesh, "c,b", "x"), 1, 2, (dti_axis[]){ { 6, 1 }, { 2, 6 } });
    expect_axes(dt_mesh_create(ctx, "a=24,b=1"), 1, 0, NULL);
    expect_no_error(ctx, "axes");
    dt_mesh *odd = dt_mesh_flatten(dt_mesh_create(ctx, "a=2,b=4,c=3"), "a,c", "x"); /* (2, 12), (3, 1) */
    expect(dt_mesh_split(odd, "x", "y=3,z=2") == NULL, "3 ends inside the axis of 2");
    expect_error(ctx, DT_ERR_ARG, "x=6 joins axes of its own: \"y=3\" ends inside one of 2 ranks", "split");
    expect_text(dt_mesh_split(odd, "x", "y=2,z=3"), "y=2,z=3,b=4");
    dti_axis touching[] = { { 2, 12 }, { 3, 4 }, { 4, 1 }, { 2, 100 }, { 5, 20 } };
    expect(dti_axes_merge(touching, 5) == 2 && touching[0].size == 24 && touching[0].stride == 1, "three are one");
    expect(touching[1].size == 10 && touching[1].stride == 20, "and two are one");
    expect(dti_axes_merge(touching, 0) == 0, "none stay none");
    dt_context_destroy(&ctx);
}

/* ---- against a table of ranks ----------------------------------------------------------------------------------- */

enum { MODEL_RANKS = 128 };

typedef struct model_dim { char name[16]; int size; } model_dim;
typedef struct model { int n, size; model_dim dims[DT_MAX_MESH_DIMS]; int ranks[MODEL_RANKS]; } model;
typedef struct coords { int at[DT_MAX_MESH_DIMS]; } coords;

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static coords coords_of(const model *m, int index)
{
    coords c = { { 0 } };
    for (int d = m->n - 1; d >= 0; d--) {
        c.at[d] = index % m->dims[d].size;
        index /= m->dims[d].size;
    }
    return c;
}

static int index_of(const model *m, const coords *c)
{
    int index = 0;
    for (int d = 0; d < m->n; d++) index = index * m->dims[d].size + c->at[d];
    return index;
}

static int model_find(const model *m, int rank)
{
    for (int i = 0; i < m->size; i++)
        if (m->ranks[i] == rank) return i;
    return -1;
}

/* Dims of source in some order, the others fixed: what slice and select are, and half of flatten. */
static model model_pick(const model *source, const int *dims, int n, coords fixed)
{
    model m = { .n = n, .size = 1 };
    for (int d = 0; d < n; d++) {
        m.dims[d] = source->dims[dims[d]];
        m.size *= m.dims[d].size;
    }
    for (int i = 0; i < m.size; i++) {
        coords c = coords_of(&m, i);
        for (int d = 0; d < n; d++) fixed.at[dims[d]] = c.at[d];
        m.ranks[i] = source->ranks[index_of(source, &fixed)];
    }
    return m;
}

static void model_text(const model *m, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int d = 0; d < m->n; d++) {
        size_t used = strlen(text);
        snprintf(text + used, bytes - used, "%s%s=%d", d ? "," : "", m->dims[d].name, m->dims[d].size);
    }
}

/* Is every dim a step of its own: can axes describe the table? */
static bool is_separable(const model *m)
{
    for (int i = 0; i < m->size; i++) {
        coords c = coords_of(m, i);
        int rank = m->ranks[0];
        for (int d = 0; d < m->n; d++) {
            coords one = { { 0 } };
            one.at[d] = c.at[d];
            rank += m->ranks[index_of(m, &one)] - m->ranks[0];
        }
        if (rank != m->ranks[i]) return false;
    }
    return true;
}

static void compare_dim(const dt_mesh *mesh, const model *m, int d)
{
    dt_context *ctx = dt_mesh_context(mesh);
    int index = model_find(m, dt_rank(ctx));
    int coord = index < 0 ? -1 : coords_of(m, index).at[d];
    expect(dt_mesh_size(mesh, m->dims[d].name) == m->dims[d].size, "%s: size of %s", mesh->text, m->dims[d].name);
    expect(dt_mesh_coord(mesh, m->dims[d].name) == coord, "%s: rank %d along %s: %d, expected %d", mesh->text,
           dt_rank(ctx), m->dims[d].name, dt_mesh_coord(mesh, m->dims[d].name), coord);
    for (int rank = 0; rank < dt_rank_count(ctx); rank++) {
        int at = model_find(m, rank);
        expect(dti_mesh_coord_of(mesh, d, rank) == (at < 0 ? -1 : coords_of(m, at).at[d]),
               "%s: coordinate of rank %d along %s", mesh->text, rank, m->dims[d].name);
    }
    for (int a = 0; a < mesh->dims[d].axis_count; a++) {
        dti_axis axis = mesh->dims[d].axes[a], outer = a ? mesh->dims[d].axes[a - 1] : axis;
        expect(axis.size > 1, "%s: an axis of size %d", mesh->text, axis.size);
        expect(a == 0 || outer.stride != axis.size * axis.stride, "%s: touching axes", mesh->text);
    }
}

static void compare(const dt_mesh *mesh, const model *m)
{
    char text[512];
    model_text(m, text, sizeof text);
    expect_text(mesh, text);
    if (mesh == NULL) return;
    dt_context *ctx = dt_mesh_context(mesh);
    expect(dt_mesh_size(mesh, NULL) == m->size && dt_mesh_dim_count(mesh) == m->n, "%s: size, dims", text);
    expect(dt_mesh_coord(mesh, NULL) == model_find(m, dt_rank(ctx)), "%s: index of rank %d", text, dt_rank(ctx));
    for (int i = 0; i < m->size; i++)
        expect(dt_mesh_rank(mesh, i) == m->ranks[i], "%s: rank %d is %d, expected %d", text, i, dt_mesh_rank(mesh, i),
               m->ranks[i]);
    for (int rank = 0; rank < dt_rank_count(ctx); rank++)
        expect(dti_mesh_index(mesh, rank) == model_find(m, rank), "%s: index of rank %d", text, rank);
    for (int d = 0; d < m->n; d++) compare_dim(mesh, m, d);
}

/* Some dims in random order; at least one. Their names go to text. */
static int some_dims(const model *m, unsigned *seed, int *dims, char *text, size_t bytes)
{
    int n = 0, want = 1 + (int)below(seed, (unsigned)m->n);
    bool taken[DT_MAX_MESH_DIMS] = { false };
    text[0] = '\0';
    while (n < want) {
        int d = (int)below(seed, (unsigned)m->n);
        if (taken[d]) continue;
        size_t used = strlen(text);
        snprintf(text + used, bytes - used, "%s%s", n ? "," : "", m->dims[d].name);
        taken[d] = true;
        dims[n++] = d;
    }
    return n;
}

static bool contains(const int *dims, int n, int d)
{
    for (int i = 0; i < n; i++)
        if (dims[i] == d) return true;
    return false;
}

static dt_mesh *random_slice(dt_mesh *mesh, model *m, unsigned *seed)
{
    int dims[DT_MAX_MESH_DIMS], at = model_find(m, dt_rank(dt_mesh_context(mesh)));
    char text[512];
    int n = some_dims(m, seed, dims, text, sizeof text);
    *m = model_pick(m, dims, n, coords_of(m, at < 0 ? 0 : at));
    return dt_mesh_slice(mesh, text);
}

static dt_mesh *random_select(dt_mesh *mesh, model *m, unsigned *seed)
{
    char text[64];
    int kept[DT_MAX_MESH_DIMS], n = 0, drop = (int)below(seed, (unsigned)m->n);
    coords fixed = { { 0 } };
    fixed.at[drop] = (int)below(seed, (unsigned)m->dims[drop].size);
    snprintf(text, sizeof text, "%s=%d", m->dims[drop].name, fixed.at[drop]);
    for (int d = 0; d < m->n; d++)
        if (d != drop) kept[n++] = d;
    *m = model_pick(m, kept, n, fixed);
    return dt_mesh_select(mesh, text);
}

static dt_mesh *random_flatten(dt_mesh *mesh, model *m, unsigned *seed, const char *name)
{
    int dims[DT_MAX_MESH_DIMS], order[DT_MAX_MESH_DIMS], n_order = 0, at = 0;
    char text[512];
    int n = some_dims(m, seed, dims, text, sizeof text);
    for (int d = 0; d < m->n; d++) {
        if (d == dims[0]) at = n_order;
        for (int i = 0; d == dims[0] && i < n; i++) order[n_order++] = dims[i];
        if (!contains(dims, n, d)) order[n_order++] = d;
    }
    *m = model_pick(m, order, n_order, (coords){ { 0 } });
    for (int i = 1; i < n; i++) m->dims[at].size *= m->dims[at + i].size; /* row-major: the table stays */
    for (int d = at + n; d < m->n; d++) m->dims[d - n + 1] = m->dims[d];
    m->n -= n - 1;
    snprintf(m->dims[at].name, sizeof m->dims[at].name, "%s", name);
    return dt_mesh_flatten(mesh, text, name);
}

/* Into an outer part of a random divisor and the rest. Where axes cannot say it, the model stays and the mesh too. */
static dt_mesh *random_split(dt_mesh *mesh, model *m, unsigned *seed, const char *name)
{
    model cut = *m;
    char text[64];
    int d = (int)below(seed, (unsigned)m->n), size = m->dims[d].size, outer = 1 + (int)below(seed, (unsigned)size);
    while (size % outer) outer--;
    if (m->n == DT_MAX_MESH_DIMS) return mesh;
    for (int i = cut.n++; i > d; i--) cut.dims[i] = cut.dims[i - 1];
    cut.dims[d].size = outer;
    cut.dims[d + 1].size = size / outer;
    snprintf(cut.dims[d + 1].name, sizeof cut.dims[d + 1].name, "%s", name);
    snprintf(text, sizeof text, "%s=%d,%s", cut.dims[d].name, outer, name);
    dt_mesh *result = dt_mesh_split(mesh, m->dims[d].name, text);
    bool possible = is_separable(&cut);
    expect((result != NULL) == possible, "%s, %s into %s: possible %d", mesh->text, m->dims[d].name, text, possible);
    if (!possible) expect_error(dt_mesh_context(mesh), DT_ERR_ARG, "ends inside one of", text);
    if (possible) *m = cut;
    return possible ? result : mesh;
}

static dt_mesh *random_mesh(dt_context *ctx, model *m, unsigned *seed)
{
    int left = dt_rank_count(ctx);
    char text[512];
    *m = (model){ .size = left };
    for (int d = 0; d < 4; d++) {
        int size = d == 3 ? left : 1 + (int)below(seed, (unsigned)left);
        while (left % size) size--;
        snprintf(m->dims[m->n].name, sizeof m->dims[m->n].name, "d%d", d);
        m->dims[m->n++].size = size;
        left /= size;
    }
    for (int i = 0; i < m->size; i++) m->ranks[i] = i;
    model_text(m, text, sizeof text);
    return dt_mesh_create(ctx, text);
}

static void run_chain(int n, unsigned *seed)
{
    dt_context *ctx = context_of(n, (int)below(seed, (unsigned)n));
    model m;
    dt_mesh *mesh = random_mesh(ctx, &m, seed);
    compare(mesh, &m);
    for (int step = 0; step < 8 && mesh && m.n > 0; step++) {
        char name[16];
        snprintf(name, sizeof name, "x.%d", step);
        unsigned what = below(seed, 10);
        if (what < 4) mesh = random_split(mesh, &m, seed, name);
        else if (what < 7) mesh = random_flatten(mesh, &m, seed, name);
        else if (what < 9) mesh = random_slice(mesh, &m, seed);
        else mesh = random_select(mesh, &m, seed);
        compare(mesh, &m);
    }
    expect_no_error(ctx, "chain");
    dt_context_destroy(&ctx);
}

static void test_model(void)
{
    static const int sizes[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 30, 36, 48, 60, 64, 72, 96, 128 };
    unsigned seed = 1;
    for (int i = 0; i < DT_COUNT(sizes); i++)
        for (int chain = 0; chain < 60; chain++) run_chain(sizes[i], &seed);
}

/* All ranks of a mesh agree about who stands where. */
static void test_every_rank(void)
{
    for (int rank = 0; rank < 24; rank++) {
        dt_context *ctx = context_of(24, rank);
        dt_mesh *mesh = dt_mesh_create(ctx, "pp=2,dp=3,tp=4");
        dt_mesh *slice = dt_mesh_slice(mesh, "tp,pp"), *stage = dt_mesh_select(mesh, "pp=1");
        int pp = rank / 12, dp = rank / 4 % 3, tp = rank % 4;
        expect(dt_mesh_coord(slice, NULL) == tp * 2 + pp, "rank %d in tp,pp", rank);
        expect(dt_mesh_rank(slice, 0) == 4 * dp && dt_mesh_rank(slice, 7) == 12 + 4 * dp + 3, "its first and last");
        expect(dt_mesh_coord(stage, NULL) == (pp == 1 ? rank - 12 : -1), "rank %d in pp=1", rank);
        dt_mesh *group = dt_mesh_slice(stage, "dp");
        expect(dt_mesh_rank(group, 2) == 12 + 8 + (pp == 1 ? tp : 0), "rank %d: its dp group in pp=1", rank);
        dt_context_destroy(&ctx);
    }
}

/* ---- many ranks ------------------------------------------------------------------------------------------------- */

static void try_many(int pp, int dp, int tp, int rank)
{
    char text[64];
    dt_context *ctx = context_of(pp * dp * tp, rank);
    snprintf(text, sizeof text, "pp=%d,dp,tp=%d", pp, tp);
    dt_mesh *mesh = dt_mesh_create(ctx, text);
    expect(dt_mesh_size(mesh, "dp") == dp && dt_mesh_size(mesh, NULL) == pp * dp * tp, "%s", dt_mesh_text(mesh));
    dt_mesh *flat = dt_mesh_flatten(mesh, "pp,tp", "x"), *slice = dt_mesh_slice(mesh, "dp");
    expect(dt_mesh_coord(flat, "x") == rank / (dp * tp) * tp + rank % tp, "flatten");
    expect(dt_mesh_coord(slice, NULL) == rank / tp % dp, "slice");
    expect(dt_mesh_rank(slice, dp - 1) == rank / (dp * tp) * dp * tp + (dp - 1) * tp + rank % tp, "rank of a slice");
    snprintf(text, sizeof text, "outer=2,inner=%d", dp / 2);
    dt_mesh *split = dt_mesh_split(mesh, "dp", text);
    expect(dt_mesh_coord(split, "outer") == rank / tp % dp / (dp / 2), "split, outer");
    expect(dt_mesh_coord(split, "inner") == rank / tp % dp % (dp / 2), "split, inner");
    expect(dt_mesh_rank(split, pp * dp * tp - 1) == pp * dp * tp - 1, "the last rank");
    expect_no_error(ctx, "many ranks");
    expect(ctx->arena.total < 128 << 10, "%zu bytes for %s: nothing grows with the ranks", ctx->arena.total,
           dt_mesh_text(mesh));
    dt_context_destroy(&ctx);
}

static void test_many_ranks(void)
{
    try_many(16, 128, 8, 12345);
    try_many(16, 128, 8, 16383);
    try_many(16, 8192, 8, 1048575);
    try_many(64, 1024, 16, 654321);
}

/* ---- the innermost dim and the host ----------------------------------------------------------------------------- */

typedef struct heard { int lines; dt_log_level level; char line[512]; } heard;

static void hear(dt_log_level level, const char *line, void *arg)
{
    heard *log = arg;
    log->lines++;
    log->level = level;
    snprintf(log->line, sizeof log->line, "%s", line);
}

typedef struct host_row { int n; const char *topology, *mesh; bool warns; } host_row;

static const host_row hosts[] = {
    { 16, "node=2,gpu=8", "dp=2,tp=8", false },
    { 16, "node=2,gpu=8", "dp=4,tp=4", false },
    { 16, "node=2,gpu=8", "dp=16,tp=1", true },      /* dp is the innermost of more than one rank                  */
    { 16, "node=2,gpu=8", "tp=16", true },
    { 12, "node=2,gpu=8", "dp=4,tp=3", true },
    { 12, "node=2,gpu=8", "dp=2,tp=6", true },       /* ranks 6 to 11 lie on both                                  */
    { 6, "node=2,gpu=8", "tp=6", false },            /* one node is enough                                         */
    { 12, "node=4,gpu=3", "dp=4,tp=3", false },
    { 12, "node=12", "dp=6,tp=2", true },
    { 16, "pod=2,node=2,gpu=4", "dp=2,tp=8", true }, /* two nodes of one pod                                       */
    { 16, "pod=2,node=2,gpu=4", "dp=4,tp=4", false },
    { 16, "pod=2,gpu=8", "tp=16", true },
    { 16, "package=2,core=8", "tp=16", false },      /* one host                                                   */
    { 16, "rank=16", "tp=16", false },
    { 16, NULL, "tp=16", false },
    { 1, "node=2,gpu=8", "dp=1", false },
};

static void test_host(void)
{
    for (int i = 0; i < DT_COUNT(hosts); i++) {
        const host_row *row = &hosts[i];
        heard log = { 0 };
        dt_context *ctx = context_with(row->n, 0, NULL, row->topology);
        dt_context_logger(ctx, DT_LOG_WARNING, hear, &log);
        expect_text(dt_mesh_create(ctx, row->mesh), row->mesh);
        expect(log.lines == row->warns, "%s on %s: %d lines", row->mesh, row->topology, log.lines);
        if (row->warns)
            expect(strstr(log.line, row->mesh) && strstr(log.line, row->topology), "names both: %s", log.line);
        dt_mesh_create(ctx, row->mesh);
        expect(log.lines == row->warns, "%s is warned of once", row->mesh);
        expect_no_error(ctx, row->mesh);
        dt_context_destroy(&ctx);
    }
}

static void test_host_line(void)
{
    heard log = { 0 };
    dt_context *ctx = context_with(16, 0, NULL, "node=4,gpu=4");
    dt_context_logger(ctx, DT_LOG_WARNING, hear, &log);
    dt_mesh *mesh = dt_mesh_create(ctx, "dp=2,tp=8,cp=1");
    expect(log.level == DT_LOG_WARNING, "level %d", (int)log.level);
    expect(strcmp(log.line, "mesh dp=2,tp=8,cp=1: its innermost dim tp=8 leaves the host: topology node=4,gpu=4 has 4 "
                            "ranks on one node") == 0, "got: %s", log.line);
    dt_mesh_slice(mesh, "tp");
    dt_mesh_flatten(mesh, "dp,tp", "x");
    expect(log.lines == 1, "views do not warn");
    dt_context_destroy(&ctx);
    ctx = context_with(16, 0, NULL, "node=4,gpu");
    expect(dt_mesh_create(ctx, "dp=2,tp=8") == NULL, "a topology in no notation is found at once");
    expect_error(ctx, DT_ERR_PARSE, "topology \"node=4,gpu\"", "topology");
    dt_context_destroy(&ctx);
}

/* The formula is right for every mesh of two dims. */
static void test_host_model(void)
{
    for (int n = 1; n <= 24; n++)
        for (int on_one = 1; on_one <= n; on_one++)
            for (int tp = 1; tp <= n; tp++) {
                char topology[64], text[64];
                bool leaves = false;
                heard log = { 0 };
                if (n % tp) continue;
                int inner = tp > 1 ? tp : n;
                for (int r = 1; r < n; r++) leaves |= r / inner == (r - 1) / inner && r / on_one != (r - 1) / on_one;
                snprintf(topology, sizeof topology, "node=24,gpu=%d", on_one);
                snprintf(text, sizeof text, "dp=%d,tp=%d", n / tp, tp);
                dt_context *ctx = context_with(n, 0, NULL, topology);
                dt_context_logger(ctx, DT_LOG_WARNING, hear, &log);
                dt_mesh_create(ctx, text);
                expect(log.lines == leaves, "%s on %s: %d", text, topology, log.lines);
                dt_context_destroy(&ctx);
            }
}

static const test_row rows[] = {
    { "create", test_create },
    { "create_refused", test_create_refused },
    { "option_line", test_option_line },
    { "questions", test_questions },
    { "counters", test_counters },
    { "null", test_null },
    { "failed_context", test_failed_context },
    { "interned", test_interned },
    { "same_hash", test_same_hash },
    { "views", test_views },
    { "views_refused", test_views_refused },
    { "nothing_left", test_nothing_left },
    { "not_a_member", test_not_a_member },
    { "axes", test_axes },
    { "model", test_model },
    { "every_rank", test_every_rank },
    { "many_ranks", test_many_ranks },
    { "host", test_host },
    { "host_line", test_host_line },
    { "host_model", test_host_model },
};

const suite the_suite = { "mesh", rows, DT_COUNT(rows) };
