/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs: made from text or parts, interned, asked for their parts. What a text meant is remembered by its exact bytes,
 * so a placement written in a loop costs one look-up. */
#include "placements/spec.h"

#include <string.h>

#include "placements/cut.h"
#include "placements/state.h"

static void state_fini(void *state)
{
    dti_spec_state *s = state;
    dti_table_fini(&s->layouts);
    dti_table_fini(&s->specs);
    dti_table_fini(&s->texts);
}

dti_spec_state *dti_spec_state_get(dt_context *ctx)
{
    return dti_context_layer(ctx, DTI_LAYER_SPEC, sizeof(dti_spec_state), state_fini);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Coordinate of a mesh rank along one mesh dim: mesh ranks are row-major over the dims. */
static int mesh_digit(const dt_mesh *mesh, int dim, int mesh_rank)
{
    for (int d = mesh->dim_count - 1; d > dim; d--) mesh_rank /= mesh->dims[d].size;
    return mesh_rank % mesh->dims[dim].size;
}

static dti_interval factor_piece(const dt_spec *spec, int factor, int mesh_rank)
{
    const dti_form *form = &spec->form;
    int64_t piece = 0, pieces = 1;
    for (int i = form->split_first[factor]; i < form->split_first[factor + 1]; i++) {
        int size = spec->mesh->dims[form->split[i]].size;
        piece = piece * size + mesh_digit(spec->mesh, form->split[i], mesh_rank);
        pieces *= size;
    }
    return (dti_interval){ dti_cut(form->size[factor], pieces, piece), dti_cut(form->size[factor], pieces, piece + 1) };
}

static dt_shape part_shape(const dt_spec *spec, int mesh_rank)
{
    dt_shape shape = { spec->form.dim_count, { 0 } };
    for (int d = 0; d < shape.n && mesh_rank >= 0; d++) {
        shape.dim[d] = 1;
        for (int f = spec->form.factor_first[d]; f < spec->form.factor_first[d + 1]; f++) {
            dti_interval piece = factor_piece(spec, f, mesh_rank);
            shape.dim[d] *= piece.hi - piece.lo;
        }
    }
    return shape;
}

/* What every call asks: the part of this rank. */
static void set_local(dt_spec *spec)
{
    spec->local = part_shape(spec, spec->mesh->rank);
    spec->local_count = spec->mesh->rank >= 0;
    for (int d = 0; d < spec->local.n; d++) spec->local_count *= spec->local.dim[d];
    spec->local_bytes = spec->local_count * (int64_t)dt_dtype_bytes((dt_dtype)spec->form.dtype);
}

/* ---- interning --------------------------------------------------------------------------------------------------- */

static dt_shape form_shape(const dti_form *form)
{
    dt_shape shape = { form->dim_count, { 0 } };
    for (int d = 0; d < form->dim_count; d++) shape.dim[d] = dti_form_dim(form, d);
    return shape;
}

static dt_spec *spec_new(dt_mesh *mesh, const dti_form *form, uint64_t hash)
{
    dt_spec *spec = dti_context_take(mesh->ctx, sizeof *spec);
    if (!spec) return NULL;
    spec->mesh = mesh;
    spec->hash = hash;
    spec->form = *form;
    spec->shape = form_shape(form);
    set_local(spec);
    spec->layout = dti_layout_intern(mesh, form);
    return spec->layout ? spec : NULL;
}

const dt_spec *dti_spec_intern(dt_mesh *mesh, dti_form *form)
{
    dti_spec_state *state = dti_spec_state_get(mesh->ctx);
    if (!state) return NULL;
    dti_form_normalize(form, mesh);
    uint64_t hash = dti_hash(form, sizeof *form, mesh->hash);
    dt_spec *found;
    for (size_t at = dti_table_first(&state->specs, hash); (found = dti_table_value(&state->specs, hash, &at)) != NULL;)
        if (found->mesh == mesh && memcmp(&found->form, form, sizeof *form) == 0) return found;
    found = spec_new(mesh, form, hash);
    if (!found) return NULL;
    if (dti_table_add(&state->specs, hash, found)) return found;
    dti_fail(mesh->ctx, DT_ERR_MEMORY, "no memory for a table of specs");
    return NULL;
}

/* ---- what a text meant ------------------------------------------------------------------------------------------- */

typedef struct said {              /* a question: text beside what it was asked of                                 */
    const void *owner;             /* mesh of a whole spec; spec of a replacement                                  */
    dt_shape shape;                /* of dt_spec_create; n = 0 and dtype 0 otherwise                               */
    dt_dtype dtype;
    const char *text;
    size_t n;
} said;

typedef struct answer { said key; const dt_spec *spec; } answer;

static uint64_t said_hash(const said *key)
{
    uint64_t hash = dti_hash_mix((uint64_t)(uintptr_t)key->owner, (uint64_t)key->dtype);
    if (key->dtype) hash = dti_hash(key->shape.dim, (size_t)key->shape.n * sizeof key->shape.dim[0], hash);
    return dti_hash(key->text, key->n, hash);
}

static bool said_equal(const said *a, const said *b)
{
    return a->owner == b->owner && a->n == b->n && a->dtype == b->dtype && a->shape.n == b->shape.n
        && memcmp(a->text, b->text, a->n) == 0
        && memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.n * sizeof a->shape.dim[0]) == 0;
}

static const dt_spec *recall(const dt_context *ctx, const said *key, uint64_t hash)
{
    const dti_spec_state *state = ctx->layers[DTI_LAYER_SPEC].state;
    if (!state) return NULL;
    const answer *found;
    for (size_t at = dti_table_first(&state->texts, hash); (found = dti_table_value(&state->texts, hash, &at)) != NULL;)
        if (said_equal(&found->key, key)) return found->spec;
    return NULL;
}

/* Remembering is a saving, not a duty: without memory the next time parses again. */
static const dt_spec *remember(dt_context *ctx, const said *key, uint64_t hash, const dt_spec *spec)
{
    dti_spec_state *state = dti_spec_state_get(ctx);
    answer *entry = spec && state ? dti_arena_take(&ctx->arena, sizeof *entry) : NULL;
    char *text = entry ? dti_arena_text(&ctx->arena, key->text, key->n) : NULL;
    if (!text) return spec;
    *entry = (answer){ .key = *key, .spec = spec };
    entry->key.text = text;
    dti_table_add(&state->texts, hash, entry);
    return spec;
}

/* ---- makers ------------------------------------------------------------------------------------------------------ */

static const dt_spec *parse_spec(dt_mesh *mesh, const char *text)
{
    dti_scan scan = { mesh->ctx, "spec", text, text };
    dti_form form;
    memset(&form, 0, sizeof form);
    if (!dti_scan_dtype(&scan, &form.dtype) || !dti_scan_sizes(&scan, &form)) return NULL;
    if (dti_scan_char(&scan, '@')) {
        if (!dti_scan_placements(&scan, mesh, NULL, &form)) return NULL;
    } else if (!dti_scan_end(&scan, "@ and placements")) {
        return NULL;
    }
    return dti_spec_intern(mesh, &form);
}

const dt_spec *dt_spec_parse(dt_mesh *mesh, const char *text)
{
    if (!mesh || dti_failed(mesh->ctx)) return NULL;
    if (!text) {
        dti_fail(mesh->ctx, DT_ERR_ARG, "dt_spec_parse: no text; expected a spec such as f32[64,512]@%s:S(0)",
                 mesh->dim_count ? mesh->dims[0].name : "tp");
        return NULL;
    }
    said key = { .owner = mesh, .text = text, .n = strlen(text) };
    uint64_t hash = said_hash(&key);
    const dt_spec *spec = recall(mesh->ctx, &key, hash);
    return spec ? spec : remember(mesh->ctx, &key, hash, parse_spec(mesh, text));
}

static bool shape_form(dt_mesh *mesh, dt_dtype dtype, const dt_shape *shape, dti_form *form)
{
    memset(form, 0, sizeof *form);
    if (dt_dtype_bytes(dtype) == 0)
        return dti_fail(mesh->ctx, DT_ERR_DTYPE, "dt_spec_create: %d is no dtype", (int)dtype), false;
    if (shape->n < 0 || shape->n > DT_MAX_DIMS)
        return dti_fail(mesh->ctx, DT_ERR_SHAPE, "dt_spec_create: %d dims, expected 0 to %d", shape->n, DT_MAX_DIMS),
               false;
    form->dtype = (int32_t)dtype;
    form->dim_count = shape->n;
    for (int d = 0; d < shape->n; d++) {
        if (shape->dim[d] < 0)
            return dti_fail(mesh->ctx, DT_ERR_SHAPE, "dt_spec_create: dim %d has size %lld, expected 0 or more", d,
                            (long long)shape->dim[d]), false;
        form->size[d] = shape->dim[d];
        form->factor_first[d + 1] = d + 1;
    }
    return true;
}

const dt_spec *dti_spec_place(dt_mesh *mesh, const dti_form *base, const char *text, dti_form *form)
{
    dti_scan scan = { mesh->ctx, "placements", text, text };
    if (!dti_form_fits(&scan, form)) return NULL;
    return dti_scan_placements(&scan, mesh, base, form) ? dti_spec_intern(mesh, form) : NULL;
}

const dt_spec *dt_spec_create(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const char *placements)
{
    if (!mesh || dti_failed(mesh->ctx)) return NULL;
    dti_form form;
    if (!shape_form(mesh, dtype, &shape, &form)) return NULL;
    said key = { .owner = mesh, .shape = shape, .dtype = dtype, .text = placements ? placements : "" };
    key.n = strlen(key.text);
    uint64_t hash = said_hash(&key);
    const dt_spec *spec = recall(mesh->ctx, &key, hash);
    return spec ? spec : remember(mesh->ctx, &key, hash, dti_spec_place(mesh, NULL, key.text, &form));
}

const dt_spec *dt_spec_replace(const dt_spec *spec, const char *placements)
{
    if (!spec || dti_failed(spec->mesh->ctx)) return NULL;
    said key = { .owner = spec, .text = placements ? placements : "" };
    key.n = strlen(key.text);
    uint64_t hash = said_hash(&key);
    const dt_spec *found = recall(spec->mesh->ctx, &key, hash);
    if (found) return found;
    dti_form form = spec->form;
    memset(form.split, 0, sizeof form.split);
    memset(form.split_first, 0, sizeof form.split_first);
    memset(form.partial, 0, sizeof form.partial);
    return remember(spec->mesh->ctx, &key, hash, dti_spec_place(spec->mesh, &spec->form, key.text, &form));
}

const dt_spec *dti_spec_as_dtype(const dt_spec *spec, dt_dtype dtype)
{
    dti_form form = spec->form;
    if (!dtype || (dt_dtype)form.dtype == dtype) return spec;
    form.dtype = (int32_t)dtype;
    return dti_spec_intern(spec->mesh, &form);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* Most specs are never shown. Without memory for it there is no text. */
static bool write_text(const dt_spec *spec)
{
    dt_spec *writing = (dt_spec *)(uintptr_t)spec; /* the same value before and after                              */
    if (!spec || spec->written) return spec != NULL;
    writing->written = dti_form_text(&spec->form, spec->mesh, &writing->written_placements);
    return spec->written != NULL;
}

const char *dt_spec_text(const dt_spec *spec) { return write_text(spec) ? spec->written : ""; }
const char *dt_spec_placements(const dt_spec *spec) { return write_text(spec) ? spec->written_placements : ""; }
dt_mesh *dt_spec_mesh(const dt_spec *spec) { return spec ? spec->mesh : NULL; }
dt_dtype dt_spec_dtype(const dt_spec *spec) { return spec ? (dt_dtype)spec->form.dtype : DT_DTYPE_DEFAULT; }
dt_shape dt_spec_shape(const dt_spec *spec) { return spec ? spec->shape : DT_SCALAR; }

bool dt_spec_has(const dt_spec *spec, const char *placements)
{
    return spec && dt_spec_replace(spec, placements) == spec;
}

bool dt_spec_same(const dt_spec *spec, const dt_spec *other)
{
    return spec && other && spec->layout == other->layout;
}

/* ---- holdings ---------------------------------------------------------------------------------------------------- */

void dti_spec_set(const dt_spec *spec, int dim, int mesh_rank, dti_set *set)
{
    dti_set_clear(set);
    if (mesh_rank < 0) return;
    dti_set inner;
    dti_set_init(&inner);
    dti_set_append(set, 0, 1);
    int64_t size = 1;
    for (int f = spec->form.factor_first[dim + 1] - 1; f >= spec->form.factor_first[dim]; f--) {
        dti_interval piece = factor_piece(spec, f, mesh_rank);
        dti_set swap = inner;
        inner = *set;
        *set = swap;
        dti_set_repeat(&inner, size, piece.lo, piece.hi, set);
        size *= spec->form.size[f];
    }
    dti_set_fini(&inner);
}

static bool rank_fits(const dt_spec *spec, int rank, const char *function)
{
    if (rank >= -1 && rank < spec->mesh->size) return true;
    dti_fail(spec->mesh->ctx, DT_ERR_ARG, "%s: rank %d of mesh \"%s\", expected -1 to %d", function, rank,
             spec->mesh->text, spec->mesh->size - 1);
    return false;
}

dt_shape dt_spec_local_shape(const dt_spec *spec, int rank)
{
    if (!spec || !rank_fits(spec, rank, "dt_spec_local_shape")) return DT_SCALAR;
    return rank == spec->mesh->rank ? spec->local : part_shape(spec, rank);
}

static void box_at(const dti_set *sets, const int *index, int n, dt_box *box)
{
    box->n = n;
    for (int d = 0; d < n; d++) {
        box->lo[d] = dti_set_at(&sets[d])[index[d]].lo;
        box->hi[d] = dti_set_at(&sets[d])[index[d]].hi;
    }
}

/* How many intervals a rank's set along a dim has, without making them: rows of what lies inside, joined where they
 * touch. */
static int64_t interval_count(const dt_spec *spec, int dim, int rank)
{
    int64_t count = 1;
    bool whole = true, begins = true, ends = true; /* is the inside all there, its first index, its last            */
    for (int f = spec->form.factor_first[dim + 1] - 1; f >= spec->form.factor_first[dim]; f--) {
        dti_interval piece = factor_piece(spec, f, rank);
        int64_t rows = piece.hi - piece.lo, size = spec->form.size[f];
        if (rows == 0) return 0;
        count = whole ? 1 : rows * count - (begins && ends ? rows - 1 : 0);
        whole &= rows == size;
        begins &= piece.lo == 0;
        ends &= piece.hi == size;
    }
    return count;
}

static int64_t box_count(const dt_spec *spec, int rank)
{
    int64_t count = 1;
    for (int d = 0; d < spec->form.dim_count; d++) count *= interval_count(spec, d, rank);
    return count;
}

/* A negative max, a NULL for boxes that would be written, more boxes than an int counts. */
static bool boxes_fit(const dt_spec *spec, const dt_box *boxes, int max, int64_t count)
{
    dt_context *ctx = spec->mesh->ctx;
    if (max < 0 || (max > 0 && !boxes))
        return dti_fail(ctx, DT_ERR_ARG, "dt_spec_boxes: room for %d boxes%s", max, boxes ? "" : " at NULL"), false;
    if (count <= INT32_MAX) return true;
    dti_fail(ctx, DT_ERR_SHAPE, "dt_spec_boxes: %s has %lld boxes on one rank, more than an int counts",
             dt_spec_text(spec), (long long)count);
    return false;
}

int dt_spec_boxes(const dt_spec *spec, int rank, dt_box *boxes, int max)
{
    if (!spec || !rank_fits(spec, rank, "dt_spec_boxes") || rank < 0) return 0;
    dti_set sets[DT_MAX_DIMS];
    int index[DT_MAX_DIMS] = { 0 }, n = spec->form.dim_count;
    int64_t count = box_count(spec, rank);
    bool lost = false;
    if (!boxes_fit(spec, boxes, max, count)) return 0;
    if (count == 0 || max == 0) return (int)count;
    for (int d = 0; d < n; d++) {
        dti_set_init(&sets[d]);
        dti_spec_set(spec, d, rank, &sets[d]);
        lost |= sets[d].lost;
    }
    for (int64_t i = 0; i < count && i < max && !lost; i++) {
        box_at(sets, index, n, &boxes[i]);
        for (int d = n - 1; d >= 0 && ++index[d] == sets[d].n; d--) index[d] = 0;
    }
    for (int d = 0; d < n; d++) dti_set_fini(&sets[d]);
    if (lost)
        dti_fail(spec->mesh->ctx, DT_ERR_MEMORY, "dt_spec_boxes: no memory for the boxes of %s", dt_spec_text(spec));
    return lost ? 0 : (int)count;
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

/* Every mesh dim of size > 1 splits one factor, or is partial, or neither; none of size 1 does. */
static bool dims_used_once(const dt_spec *spec)
{
    int used[DT_MAX_MESH_DIMS] = { 0 };
    for (int i = 0; i < spec->form.split_first[spec->form.factor_first[spec->form.dim_count]]; i++)
        used[spec->form.split[i]]++;
    for (int d = 0; d < spec->mesh->dim_count; d++) {
        used[d] += spec->form.partial[d] != DTI_PARTIAL_NONE;
        if (used[d] > (spec->mesh->dims[d].size > 1)) return false;
    }
    return true;
}

static bool partials_mix(const dt_spec *spec)
{
    for (int a = 0; a < spec->layout->partial_count; a++)
        for (int b = 0; b < a; b++)
            if (!dti_partial_mixes(spec->layout->kinds[a], spec->layout->kinds[b])) return false;
    return true;
}

dt_status dt_spec_check(const dt_spec *spec)
{
    if (!spec) return DT_ERR_ARG;
    dt_context *ctx = spec->mesh->ctx;
    if (dti_failed(ctx)) return ctx->status;
    dti_form again = spec->form;
    dti_form_normalize(&again, spec->mesh);
    const char *broken = memcmp(&again, &spec->form, sizeof again) ? "is not in normal form"
                       : !dims_used_once(spec)                     ? "uses a mesh dim twice, or one of size 1"
                       : !partials_mix(spec)                       ? "mixes kinds of P"
                       : dt_spec_parse(spec->mesh, dt_spec_text(spec)) != spec ? "does not parse back from its text"
                                                                   : NULL;
    return broken ? dti_fail(ctx, DT_ERR_STATE, "spec %s %s", dt_spec_text(spec), broken) : DT_OK;
}
